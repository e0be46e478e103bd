/* aside.h - tiles for which there is no room wait outside of their memory; does what lives together fit?
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: gives a tile memory when a call uses it. Where there is none the tile goes outside, with its numbers, whose
 *     last use is longest ago in program order; it comes back when it is used again. So Python may keep tiles longer
 *     than a kernel needs them, and results do not depend on it. Of a kernel that needed it: whether tiles that live at
 *     the same time, each from its first use to its last, fit their memory, as NKI's compiler has to place them.
 * DOES NOT: take simulated time, as on the machine nothing moves; spill, unless it is asked to: what does not fit is
 *     refused; find the places that a compiler would: sizes alone are asked, in banks where there are some (assumed).
 */
#ifndef TRNPY_ASIDE_H
#define TRNPY_ASIDE_H

#include "objects.h"
#include "slabs.h"

/* Bytes that lie outside, of all numbers, and where the kernel may spill; what is over is lost. */
static const int64_t ASIDE_MOST = (int64_t)2 << 30, ASIDE_SPILLED = (int64_t)8 << 30;

enum { ASIDE_NAMED = 5, ASIDE_BANKS = 64, ASIDE_ALIGN = 4 }; /* a compiler's tiles begin at words (assumed) */

/* ---- in and out ---- */

static aside *aside_of(const owner *o) { return &o->core->aside[o->space]; }

static trni_memory *memory_of_tile(const owner *o) { return &o->core->core->memory[o->space]; }

static int64_t aside_most(const core_object *self) { return self->lets.spill ? ASIDE_SPILLED : ASIDE_MOST; }

static int64_t rows_of(const trni_rect *at) { return at->p_end - at->p; }

/* Numbers of a tile, and a bit for each byte of them; rows of bits begin at words, as tiles do. */
static int64_t kept_words(const trni_rect *at) { return (at->b_end - at->b + 63) / 64; }

static int64_t kept_bytes(const trni_memory *m, const trni_rect *at)
{
    return rows_of(at) * (64 + 8 * (m->by_matmul ? 2 : 1)) * kept_words(at);
}

/* Between a tile's place and what is kept of it. */
static void kept_move(const trni_memory *m, const trni_rect *at, char *kept, bool out)
{
    uint64_t *const bits[2] = { m->written, m->by_matmul };
    const int64_t words = kept_words(at);
    for (int64_t p = at->p; p < at->p_end; p++) {
        const int64_t place = p * m->pitch + at->b;
        memcpy(out ? kept : m->base + place, out ? m->base + place : kept, (size_t)(at->b_end - at->b));
        kept += 64 * words;
        for (int i = 0; i < 2 && bits[i]; i++, kept += 8 * words) {
            char *row = (char *)(bits[i] + place / 64);
            memcpy(out ? kept : row, out ? row : kept, (size_t)(8 * words));
        }
    }
}

/* A tile has this memory from now on. */
static void owner_has(owner *o, int slot)
{
    place **all = &o->core->tiles[o->space];
    owner ***owners = &o->core->owners[o->space];
    o->slot = slot;
    if (!*all) *all = (place *)pool_take(TRNI_TILES * sizeof **all);
    if (*all) (*all)[slot] = o->made;
    if (!*owners) *owners = (owner **)calloc(TRNI_TILES, sizeof **owners);
    if (*owners) (*owners)[slot] = o;
}

static void outside_add(owner *o)
{
    owner **list = &aside_of(o)->outside;
    o->outside = true;
    o->slot = -1;
    o->next = *list;
    o->link = list;
    if (*list) (*list)->link = &o->next;
    *list = o;
}

static void outside_remove(owner *o)
{
    *o->link = o->next;
    if (o->next) o->next->link = o->link;
    o->outside = false;
}

static void kept_drop(owner *o)
{
    if (!o->kept) return;
    const int64_t bytes = kept_bytes(memory_of_tile(o), &o->was.at);
    slab_give(o->kept, (size_t)bytes);
    aside_of(o)->bytes -= bytes;
    o->kept = NULL;
}

/* Of those outside the one whose last use is longest ago loses its numbers. */
static void outside_forgets(aside *a)
{
    owner *oldest = NULL;
    for (owner *o = a->outside; o; o = o->next)
        if (o->kept && (!oldest || o->life.last < oldest->life.last)) oldest = o;
    if (!oldest) return;
    kept_drop(oldest);
    oldest->lost = true;
}

/* A tile that the core has placed goes outside. 0, or -1 and a sentence. */
static int tile_goes(owner *o)
{
    core_object *self = o->core;
    trni_memory *m = memory_of_tile(o);
    trni_allocation *t = &m->tile[o->slot];
    aside *a = aside_of(o);
    const int64_t most = aside_most(self);
    t->ready_s = trni_history_end(&self->core->history, t);
    o->was = *t;
    if (t->anything || t->unwritten < rows_of(&t->at) * (t->at.b_end - t->at.b)) {
        const int64_t bytes = kept_bytes(m, &t->at);
        while (a->bytes + bytes > most && a->bytes) outside_forgets(a);
        o->kept = (char *)slab_take((size_t)bytes);
        if (!o->kept) return PyErr_NoMemory(), -1;
        kept_move(m, &t->at, o->kept, true);
        a->bytes += bytes;
        if (!a->since) a->since = self->step;
    }
    trni_core_give(self->core, m, o->slot);
    self->owners[o->space][o->slot] = NULL;
    if (self->placed[o->space]) self->placed[o->space][o->slot] = false;
    outside_add(o);
    if (o->life.last == self->step) self->shuffled |= 1u << o->space;
    return 0;
}

/* The tile whose last use is longest ago; of those that nobody has used the first. Those in use now only if asked. */
static owner *longest_idle(const core_object *self, int space, bool in_use)
{
    const trni_memory *m = &self->core->memory[space];
    owner *oldest = NULL;
    for (int i = 0; i < m->tiles && self->owners[space]; i++) {
        owner *o = self->owners[space][i];
        if (!m->tile[i].live || !o || o->placed || o->pinned) continue;
        if (o->life.last == self->step && o->life.last && !in_use) continue;
        if (!oldest || o->life.last < oldest->life.last) oldest = o;
    }
    return oldest;
}

static bool slot_is_free(const trni_memory *m)
{
    for (int i = 0; i < m->tiles; i++)
        if (!m->tile[i].live) return true;
    return m->tiles < TRNI_TILES;
}

static bool has_room(const trni_memory *m, const trn_core_tile_args *a, int64_t bytes)
{
    const trni_memory_request ask = { "", a->start_partition, (int)a->shape[0], bytes, false };
    return slot_is_free(m) && trni_memory_place(m, &ask) >= 0;
}

/* Others go until there is room; in the end those of the same call, which come back. 0, or -1 and a sentence. */
static int make_room(core_object *self, int space, const trni_memory_request *ask)
{
    const trni_memory *m = &self->core->memory[space];
    while (!slot_is_free(m) || trni_memory_place(m, ask) < 0) {
        owner *o = longest_idle(self, space, false);
        if (!o) o = longest_idle(self, space, true);
        if (!o) return 0; /* trni_memory_take says why */
        if (tile_goes(o)) return -1;
    }
    return 0;
}

/* ---- what lives at the same time ---- */

static int life_order(const void *x, const void *y)
{
    const life *a = (const life *)x, *b = (const life *)y;
    return (a->first > b->first) - (a->first < b->first);
}

/* By size, the largest first; tiles that the kernel has placed by their place, before all others. */
static int size_order(const void *x, const void *y)
{
    const life *a = *(const life *const *)x, *b = *(const life *const *)y;
    if (a->at != b->at) return a->at < 0 || (b->at >= 0 && b->at < a->at) ? 1 : -1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return life_order(a, b);
}

/* Bytes of quadrant q that these take, in order of size: those at an address count once where they share it. */
static int64_t taken_bytes(const life *const *one, int64_t count, int q)
{
    int64_t all = 0, end = 0;
    for (int64_t i = 0; i < count; i++) {
        if (one[i]->quadrant > q || one[i]->quadrant_end <= q) continue;
        if (one[i]->at < 0) {
            all += trni_align_up(one[i]->bytes, ASIDE_ALIGN);
            continue;
        }
        const int64_t from = one[i]->at > end ? one[i]->at : end, to = one[i]->at + one[i]->bytes;
        all += to > from ? to - from : 0;
        end = to > end ? to : end;
    }
    return all;
}

/* The same in banks, which tiles do not cross: each, the largest first, into the first that has room. What they would
 * take of more banks than there are is in the sum. */
static int64_t taken_banks(const life *const *one, int64_t count, int q, int64_t bank)
{
    int64_t used[ASIDE_BANKS] = { 0 };
    int banks = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t left = trni_align_up(one[i]->bytes, ASIDE_ALIGN);
        if (one[i]->quadrant > q || one[i]->quadrant_end <= q) continue;
        int k = left > bank ? banks : 0;
        while (k < banks && used[k] + left > bank) k++;
        for (; left > 0 && k < ASIDE_BANKS; k++) {
            used[k] += left < bank ? left : bank;
            left -= bank;
            banks = k + 1 > banks ? k + 1 : banks;
        }
    }
    return banks * bank;
}

static int64_t taken(const trni_memory *m, const life *const *one, int64_t count, int q)
{
    return m->bank_bytes ? taken_banks(one, count, q, m->bank_bytes) : taken_bytes(one, count, q);
}

/* "'a' 86,016 bytes (line 10)" for the largest of these, and how many more there are. */
static void lives_text(char *text, size_t capacity, const life *const *one, int64_t count, const life *but)
{
    size_t used = 0;
    int64_t named = 0;
    for (int64_t i = 0; i < count && named < ASIDE_NAMED; i++) {
        if (one[i] == but) continue;
        used += (size_t)snprintf(text + used, capacity - used, "%s'%s' %lld", named++ ? ", " : "", one[i]->name,
                                 (long long)one[i]->bytes);
        if (one[i]->line) used += (size_t)snprintf(text + used, capacity - used, " (line %d)", one[i]->line);
    }
    if (count - 1 > named) snprintf(text + used, capacity - used, " and %lld more", (long long)(count - 1 - named));
}

/* Those that live when `now` begins do not fit. */
static void lives_refuse(const trni_memory *m, const life **one, int64_t count, const life *now, int q)
{
    char others[512] = "";
    int64_t most = m->partition_bytes;
    qsort(one, (size_t)count, sizeof *one, size_order);
    lives_text(others, sizeof others, one, count, now);
    int64_t at = 0;
    while (one[at] != now) at++;
    memmove(one + at, one + at + 1, (size_t)(count - 1 - at) * sizeof *one);
    most -= taken(m, one, count - 1, q);
    refuse(
        "%s has %lld bytes in a partition, and what lives at the same time does not fit: with '%s', %lld bytes, made "
        "in line %d, live %s; beside them there is room for %lld (spilling is not imitated)",
        trn_space_name(m->space), (long long)m->partition_bytes, now->name, (long long)now->bytes, now->line, others,
        (long long)(most > 0 ? most : 0));
}

/* In order of their beginning: does what lives fit each time that one begins? */
static int lives_fit(const trni_memory *m, life *all, int64_t count)
{
    const life **now = (const life **)malloc((size_t)(count + 1) * sizeof *now);
    int64_t living = 0;
    int status = 0;
    if (!now) return PyErr_NoMemory(), -1;
    qsort(all, (size_t)count, sizeof *all, life_order);
    for (int64_t i = 0; i < count && !status; i++) {
        int64_t kept = 0;
        for (int64_t k = 0; k < living; k++)
            if (now[k]->last >= all[i].first) now[kept++] = now[k];
        living = kept;
        now[living++] = &all[i];
        if (i + 1 < count && all[i + 1].first == all[i].first) continue;
        qsort(now, (size_t)living, sizeof *now, size_order);
        for (int q = 0; q < TRNI_QUADRANTS && !status; q++)
            if (taken(m, now, living, q) > m->partition_bytes) {
                lives_refuse(m, now, living, &all[i], q);
                status = -1;
            }
    }
    free(now);
    return status;
}

static int64_t life_add(life *all, int64_t count, const life *one, uint64_t since)
{
    if (one->first && one->last >= since) all[count++] = *one;
    return count;
}

/* Does the kernel fit so far? 0, or -1 and a sentence. */
static int aside_fits(core_object *self, int space)
{
    const aside *a = &self->aside[space];
    const trni_memory *m = &self->core->memory[space];
    int64_t count = 0, most = a->ends + m->tiles;
    if (self->lets.spill || (!a->returns && !self->shuffled)) return 0;
    for (const owner *o = a->outside; o; o = o->next) most++;
    life *all = (life *)malloc((size_t)most * sizeof *all);
    if (!all) return PyErr_NoMemory(), -1;
    for (int64_t i = 0; i < a->ends; i++) count = life_add(all, count, &a->ended[i], a->since);
    for (int i = 0; i < m->tiles; i++)
        if (self->owners[space] && self->owners[space][i])
            count = life_add(all, count, &self->owners[space][i]->life, a->since);
    for (const owner *o = a->outside; o; o = o->next) count = life_add(all, count, &o->life, a->since);
    const int status = lives_fit(m, all, count);
    free(all);
    return status;
}

static void life_begins(owner *o, const trn_core_tile_args *a, int64_t bytes, int64_t at)
{
    life *l = &o->life;
    l->bytes = bytes;
    l->at = at;
    l->quadrant = a->start_partition / TRNI_QUADRANT;
    l->quadrant_end = (int)(a->start_partition + a->shape[0] - 1) / TRNI_QUADRANT + 1;
    l->line = o->made.line;
    trni_copy_text(l->name, sizeof l->name, o->name);
}

/* No view is left of a tile. Without memory for its life the kernel is taken to fit. */
static void aside_ends(owner *o)
{
    aside *a = aside_of(o);
    if (o->outside) {
        kept_drop(o);
        outside_remove(o);
    }
    if (!a->since || o->life.last < a->since) return;
    if (a->ends == a->room) {
        life *more = (life *)realloc(a->ended, (size_t)(2 * a->room + 64) * sizeof *more);
        if (!more) return;
        a->ended = more;
        a->room = 2 * a->room + 64;
    }
    a->ended[a->ends++] = o->life;
}

/* ---- use ---- */

/* A new tile for which there is no room gets some when a call uses it. */
static void tile_waits(owner *o, const trn_core_tile_args *a, int64_t bytes)
{
    const trni_memory *m = memory_of_tile(o);
    memset(&o->was, 0, sizeof o->was);
    o->was.at.p = a->start_partition;
    o->was.at.p_end = a->start_partition + a->shape[0];
    o->was.at.b_end = bytes;
    o->was.anything = a->no_poison;
    o->serial = o->core->core->serial++;
    o->whole.data = m->base + o->was.at.p * m->pitch;
    outside_add(o);
}

/* It comes back, all views of it with it. 0, or -1 and a sentence. */
static int tile_returns(owner *o)
{
    core_object *self = o->core;
    trni_memory *m = memory_of_tile(o);
    const trni_rect was = o->was.at;
    const trni_memory_request ask = { o->name, (int)was.p, (int)rows_of(&was), was.b_end - was.b, o->was.anything };
    const bool rotates = m->rotates;
    trn_error error = { TRN_OK, "" };
    int slot;
    if (o->lost)
        return refuse(
                   "'%s' had to go for others, and of such tiles %lld MiB are kept; use it earlier, or less at a time",
                   o->name, (long long)(aside_most(self) >> 20)),
               -1;
    m->rotates = rotates && !self->packs;
    const int room = make_room(self, o->space, &ask);
    const trn_status taken = room ? TRN_OK : trni_memory_take(m, &ask, &slot, &error);
    m->rotates = rotates;
    if (room) return -1;
    if (taken) return refuse("%s", error.text), -1;
    trni_allocation *t = &m->tile[slot];
    const int64_t moved = t->at.b - was.b;
    t->serial = o->serial;
    outside_remove(o);
    owner_has(o, slot);
    o->whole.data = (char *)o->whole.data + moved;
    for (tensor *view = o->views; view; view = view->next) view->t.data = (char *)view->t.data + moved;
    if (!o->kept) return 0;
    kept_move(m, &t->at, o->kept, false);
    kept_drop(o);
    t->ready_s = o->was.ready_s;
    t->unwritten = o->was.unwritten;
    t->wrote = o->was.wrote;
    t->wrote_name = o->was.wrote_name;
    t->brought = o->was.brought;
    const uint64_t returns = ++aside_of(o)->returns;
    return returns & (returns - 1) ? 0 : aside_fits(self, o->space); /* now and then; core_fits() at the end */
}

/* A call uses it. 0, or -1 and a sentence. */
static int tile_here(owner *o)
{
    if (!o->tile) return 0;
    if (o->zeros) o->core->unfilled = o;
    o->life.last = o->core->step;
    if (!o->life.first) o->life.first = o->life.last;
    return o->outside ? tile_returns(o) : 0;
}

/* Before a call looks up its tiles. */
static void use_begins(core_object *self)
{
    self->step++;
    self->shuffled = 0;
    self->packs = false;
    self->unfilled = NULL;
}

/* Where one had to go for another all that the call has looked up go, and come back one behind the other: there may
 * have been room for them, but not in a row. */
static int tiles_pack(core_object *self)
{
    const unsigned spaces = self->shuffled;
    for (int space = 0; space < 2; space++) {
        const trni_memory *m = &self->core->memory[space];
        for (int i = 0; spaces >> space & 1 && i < m->tiles; i++) {
            owner *o = self->owners[space] ? self->owners[space][i] : NULL;
            if (!o || !m->tile[i].live || o->placed || o->pinned || o->life.last != self->step) continue;
            if (tile_goes(o)) return -1;
        }
    }
    self->shuffled = 0;
    self->packs = true;
    return 0;
}

static PyObject *zeros_fill; /* tiles.py's: fill(view, 0) */

/* A tile that is read, or written in part, has its zeros now: an instruction of its own. */
static int tile_fill(owner *o)
{
    PyObject *dtype = o->zeros, *view = tensor_new(o, &o->whole, dtype);
    o->zeros = NULL;
    PyObject *done = view ? PyObject_CallFunction(zeros_fill, "Oi", view, 0) : NULL;
    Py_XDECREF(view);
    Py_XDECREF(done);
    Py_DECREF(dtype);
    return done ? 0 : -1;
}

/* After that: has one no zeros yet, or did one have to go for another? Then the call looks again, and packs them; the
 * second time they do not fit. 1: again, 0: all are there, -1 and a sentence. */
static int use_settles(core_object *self, int *turns)
{
    if (self->unfilled) {
        const int status = tile_fill(self->unfilled);
        use_begins(self);
        return status ? status : 1;
    }
    if (!self->shuffled) return 0;
    if ((*turns)++ == 0) return tiles_pack(self) ? -1 : 1;
    for (int space = 0; space < 2; space++)
        if (aside_fits(self, space)) return -1;
    self->shuffled = 0;
    return refuse("there is no room for all operands of one instruction at the same time"), -1;
}

/* All of these are there at the same time. 0, or -1 and a sentence. */
static int tiles_here(core_object *self, PyObject *const *view, Py_ssize_t count)
{
    use_begins(self);
    for (int turns = 0, more = 1; more;) {
        for (Py_ssize_t i = 0; i < count; i++)
            if (PyObject_TypeCheck(view[i], &tensor_type) && tile_here(((tensor *)view[i])->owner)) return -1;
        more = use_settles(self, &turns);
        if (more < 0) return -1;
    }
    return 0;
}

/* fits(): at the end of a kernel: does what lived at the same time fit? */
static PyObject *core_fits(core_object *self, PyObject *unused)
{
    (void)unused;
    for (int space = 0; space < 2; space++)
        if (aside_fits(self, space)) return NULL;
    Py_RETURN_NONE;
}

#endif /* TRNPY_ASIDE_H */
