/* core/core_memory.h - the memories of one NeuronCore: tiles in SBUF and PSUM, and which of their bytes were written.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * DOES: places tiles first-fit along the bytes of their partitions, quadrant by quadrant, so that quadrants may hold
 *     different tiles; keeps tiles of PSUM within a bank; says of any address whose it is, or was; fills new tiles with
 *     ones (NaN in every float format, -1 in integers) and keeps a bit per byte that was written since, so that what
 *     reads too early can be told, by tile, partition and element.
 * DOES NOT: compute, know time (core/core_clock.h), or see a view of a freed tile whose memory another tile has taken.
 *
 * KNOWN FROM: NKI's architecture guides: sizes, banks, start partitions 0, 32, 64, 96 (documented). Tiles begin at
 *     multiples of 64 bytes, and take their quadrants' bytes even where they use fewer partitions: choices of this
 *     allocator (assumed). Rows lie a little further apart in the host's memory than in the machine's: it suits caches.
 */
#ifndef TRNI_CORE_CORE_MEMORY_H
#define TRNI_CORE_CORE_MEMORY_H

#include "core_types.h"

#include <math.h>

/* How many rows after one that x takes y's first lies, where both take some of every so many. */
TRNI_FN int64_t trni_rect_after(const trni_rect *x, const trni_rect *y)
{
    const int64_t after = (y->p - x->p) % x->step;
    return after < 0 ? after + x->step : after;
}

/* Rows between each other's rows. */
TRNI_FN bool trni_rect_between(const trni_rect *x, const trni_rect *y)
{
    if (!x->step || x->step != y->step) return false;
    const int64_t after = trni_rect_after(x, y);
    return after >= x->rows && after + y->rows <= x->step;
}

TRNI_FN bool trni_rect_meet(const trni_rect *x, const trni_rect *y)
{
    return x->p < y->p_end && y->p < x->p_end && x->b < y->b_end && y->b < x->b_end && !trni_rect_between(x, y);
}

TRNI_FN bool trni_rect_holds(const trni_rect *outer, const trni_rect *inner)
{
    if (outer->step && (outer->step != inner->step || trni_rect_after(outer, inner) + inner->rows > outer->rows))
        return false;
    return outer->p <= inner->p && inner->p_end <= outer->p_end && outer->b <= inner->b && inner->b_end <= outer->b_end;
}

/* ---- room ---- */

TRNI_FN int64_t trni_memory_partition(const trn_core_spec *spec, trn_space space)
{
    return (int64_t)(space == TRN_SPACE_SBUF ? spec->sbuf_partition_bytes : spec->psum_partition_bytes);
}

/* What trni_memory_begin takes, for SBUF or PSUM. */
TRNI_FN size_t trni_memory_bytes(const trn_core_spec *spec, trn_space space)
{
    const size_t cells = (size_t)TRNI_MEMORY_ROWS * (size_t)(trni_memory_partition(spec, space) + TRNI_ROW_GAP);
    return TRNI_TILE_ALIGN + cells + cells / 8 * (space == TRN_SPACE_PSUM ? 2 : 1) +
           TRNI_TILES * sizeof(trni_allocation) + TRNI_QUADRANTS * TRNI_SEGMENTS * sizeof(trni_segment);
}

TRNI_FN void trni_memory_begin(trni_memory *m, const trn_core_spec *spec, trn_space space, void *buffer, bool poison)
{
    char *at = (char *)buffer + (size_t)(-(uintptr_t)buffer % TRNI_TILE_ALIGN);
    memset(m, 0, sizeof *m);
    m->space = space;
    m->poison = poison;
    m->partition_bytes = trni_memory_partition(spec, space);
    m->bank_bytes = space == TRN_SPACE_PSUM ? m->partition_bytes / spec->psum_banks : 0;
    m->pitch = m->partition_bytes + TRNI_ROW_GAP;
    const size_t cells = (size_t)(TRNI_MEMORY_ROWS * m->pitch);
    m->base = at;
    at += cells;
    m->written = (uint64_t *)(void *)at;
    at += cells / 8;
    if (space == TRN_SPACE_PSUM) {
        m->by_matmul = spec->generation < TRN_TRAINIUM3 ? (uint64_t *)(void *)at : NULL;
        at += cells / 8;
    }
    m->tile = (trni_allocation *)(void *)at;
    at += TRNI_TILES * sizeof(trni_allocation);
    for (int q = 0; q < TRNI_QUADRANTS; q++, at += TRNI_SEGMENTS * sizeof(trni_segment))
        m->segment[q] = (trni_segment *)(void *)at;
}

/* ---- bits ---- */

/* Bits [first, end) of the 64 that begin at bit 64 * word. */
TRNI_FN uint64_t trni_word_mask(int64_t word, int64_t first, int64_t end)
{
    const int64_t low = first - 64 * word, high = end - 64 * word;
    const uint64_t up = low <= 0 ? ~(uint64_t)0 : low >= 64 ? 0 : ~(uint64_t)0 << low;
    const uint64_t down = high >= 64 ? ~(uint64_t)0 : high <= 0 ? 0 : ~(~(uint64_t)0 << high);
    return up & down;
}

TRNI_FN void trni_bits_fill(uint64_t *bits, int64_t first, int64_t end, bool value)
{
    int64_t w = first / 64;
    for (; w * 64 < end && (first > 64 * w || end < 64 * (w + 1)); w++) { /* no whole word */
        const uint64_t mask = trni_word_mask(w, first, end);
        bits[w] = value ? bits[w] | mask : bits[w] & ~mask;
    }
    const int64_t whole = end / 64 - w;
    if (whole <= 0) return;
    memset(bits + w, value ? 0xff : 0, (size_t)whole * sizeof *bits);
    if (end % 64) trni_bits_fill(bits, 64 * (w + whole), end, value);
}

/* ---- free runs ---- */

/* How many segments of quadrant q end at or before byte b. */
TRNI_FN int trni_segment_after(const trni_memory *m, int q, int64_t b)
{
    int low = 0, high = m->segments[q];
    while (low < high) {
        const int middle = (low + high) / 2;
        if (m->segment[q][middle].b_end <= b)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first run from *b on that is free in quadrants [q, q_end): where it begins and ends; false at the end of the
 * partition. cursor: per quadrant, where the search is. */
TRNI_FN bool trni_memory_run(const trni_memory *m, int q, int q_end, int cursor[TRNI_QUADRANTS], int64_t *b,
                             int64_t *b_end)
{
    int64_t end = m->partition_bytes;
    for (int i = q, settled = 0; settled < q_end - q && *b < m->partition_bytes; i = i + 1 < q_end ? i + 1 : q) {
        const trni_segment *s = m->segment[i];
        while (cursor[i] < m->segments[i] && (s[cursor[i]].tile < 0 || s[cursor[i]].b_end <= *b)) cursor[i]++;
        const bool taken = cursor[i] < m->segments[i] && s[cursor[i]].b <= *b;
        if (taken) *b = s[cursor[i]].b_end;
        settled = taken ? 0 : settled + 1;
    }
    if (*b >= m->partition_bytes) return false;
    for (int i = q; i < q_end; i++)
        if (cursor[i] < m->segments[i] && m->segment[i][cursor[i]].b < end) end = m->segment[i][cursor[i]].b;
    *b_end = end;
    return true;
}

typedef struct trni_memory_request {
    const char *name;
    int start, partitions;
    int64_t bytes; /* of each partition */
    bool anything; /* it holds: nobody asks what was written */
} trni_memory_request;

enum { TRNI_PLACES = 16 }; /* that are compared for a tile: any more, and programs of many tiles take longer */

TRNI_FN int64_t trni_align_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Where a tile would begin, from this byte on; -1 when there is no room. */
TRNI_FN int64_t trni_memory_place_from(const trni_memory *m, const trni_memory_request *ask, int64_t first)
{
    const int q = ask->start / TRNI_QUADRANT, q_end = (ask->start + ask->partitions - 1) / TRNI_QUADRANT + 1;
    const int64_t bytes = trni_align_up(ask->bytes, TRNI_TILE_ALIGN), bank = m->bank_bytes;
    int cursor[TRNI_QUADRANTS] = { 0 };
    int64_t b = first, b_end;
    for (int i = q; i < q_end && first; i++) cursor[i] = trni_segment_after(m, i, first);
    for (; trni_memory_run(m, q, q_end, cursor, &b, &b_end); b = b_end) {
        int64_t at = b;
        if (bank && (bytes > bank ? at % bank != 0 : at / bank != (at + bytes - 1) / bank))
            at = trni_align_up(at, bank);
        if (at + bytes <= b_end) return at;
    }
    return -1;
}

/* When free memory from byte b on is ready, in all quadrants of a tile that would begin there. *next: where the freed
 * memory that it begins in ends. */
TRNI_FN double trni_memory_ready(const trni_memory *m, const trni_memory_request *ask, int64_t b, int64_t *next)
{
    double ready_s = 0;
    *next = b + ask->bytes;
    for (int q = ask->start / TRNI_QUADRANT; q * TRNI_QUADRANT < ask->start + ask->partitions; q++) {
        int i = trni_segment_after(m, q, b);
        if (i < m->segments[q] && m->segment[q][i].b <= b) *next = m->segment[q][i].b_end;
        for (; i < m->segments[q] && m->segment[q][i].b < b + ask->bytes; i++)
            ready_s = fmax(ready_s, m->segment[q][i].ready_s);
    }
    return ready_s;
}

/* Of the next few places, once round, the one that is ready first. */
TRNI_FN int64_t trni_memory_place_ready(const trni_memory *m, const trni_memory_request *ask)
{
    int64_t found = -1, from = m->next, next;
    double found_s = HUGE_VAL;
    for (int tries = 0, rounds = 0; tries < TRNI_PLACES && rounds < 2 && found_s > 0; tries++) {
        const int64_t b = trni_memory_place_from(m, ask, from);
        if (b < 0) {
            rounds++;
            from = 0;
            continue;
        }
        const double ready_s = trni_memory_ready(m, ask, b, &next);
        if (ready_s < found_s) {
            found_s = ready_s;
            found = b;
        }
        from = next;
    }
    return found;
}

TRNI_FN int64_t trni_memory_place(const trni_memory *m, const trni_memory_request *ask)
{
    return m->rotates ? trni_memory_place_ready(m, ask) : trni_memory_place_from(m, ask, 0);
}

/* ---- no room: what there is instead ---- */

TRNI_FN void trni_memory_largest(const trni_memory *m, int q, int q_end, int largest[3])
{
    largest[0] = largest[1] = largest[2] = -1;
    for (int i = 0; i < m->tiles; i++) {
        const trni_allocation *t = &m->tile[i];
        if (!t->live || t->at.p >= q_end * TRNI_QUADRANT || t->at.p_end <= q * TRNI_QUADRANT) continue;
        for (int k = 0, now = i; k < 3 && now >= 0; k++) {
            const int other = largest[k];
            if (other >= 0 &&
                m->tile[other].at.b_end - m->tile[other].at.b >= m->tile[now].at.b_end - m->tile[now].at.b)
                continue;
            largest[k] = now;
            now = other;
        }
    }
}

TRNI_FN trn_status trni_memory_full(const trni_memory *m, const trni_memory_request *ask, trn_error *error)
{
    const int q = ask->start / TRNI_QUADRANT, q_end = (ask->start + ask->partitions - 1) / TRNI_QUADRANT + 1;
    int cursor[TRNI_QUADRANTS] = { 0 }, largest[3];
    int64_t b = 0, b_end, all = 0, longest = 0;
    for (; trni_memory_run(m, q, q_end, cursor, &b, &b_end); b = b_end) {
        all += b_end - b;
        longest = b_end - b > longest ? b_end - b : longest;
    }
    char tiles[128] = "";
    trni_memory_largest(m, q, q_end, largest);
    for (int k = 0, used = 0; k < 3 && largest[k] >= 0; k++) {
        const trni_allocation *t = &m->tile[largest[k]];
        used += snprintf(tiles + used, sizeof tiles - (size_t)used, "%s'%.20s' %lld",
                         k ? ", " : "; the largest tiles are ", t->name, (long long)(t->at.b_end - t->at.b));
    }
    return trni_fail(error, TRN_ELIMIT,
                     "%s has no room for '%.20s', %lld bytes per partition: %lld of %lld are free, %lld in a row%s%s",
                     trn_space_name(m->space), ask->name, (long long)ask->bytes, (long long)all,
                     (long long)m->partition_bytes, (long long)longest,
                     m->bank_bytes && ask->bytes <= m->bank_bytes ? " (a tile stays in its bank)" : "", tiles);
}

/* ---- segments ---- */

TRNI_FN void trni_segment_remove(trni_memory *m, int q, int i, int count)
{
    trni_segment *s = m->segment[q];
    memmove(s + i, s + i + count, (size_t)(m->segments[q] - i - count) * sizeof *s);
    m->segments[q] -= count;
}

TRNI_FN void trni_segment_insert(trni_memory *m, int q, int i, const trni_segment *one)
{
    trni_segment *s = m->segment[q];
    memmove(s + i + 1, s + i, (size_t)(m->segments[q] - i) * sizeof *s);
    s[i] = *one;
    m->segments[q]++;
}

/* Freed memory that is taken again is forgotten; returns when it is ready. */
TRNI_FN double trni_segment_claim(trni_memory *m, int q, int64_t b, int64_t b_end)
{
    double ready_s = 0;
    int i = trni_segment_after(m, q, b);
    while (i < m->segments[q] && m->segment[q][i].b < b_end) {
        trni_segment *s = &m->segment[q][i], rest = *s;
        ready_s = s->ready_s > ready_s ? s->ready_s : ready_s;
        const bool before = s->b<b, after = s->b_end> b_end;
        rest.b = b_end;
        if (before) s->b_end = b;
        if (before && after)
            trni_segment_insert(m, q, i + 1, &rest);
        else if (after)
            s->b = b_end;
        if (!before && !after)
            trni_segment_remove(m, q, i, 1);
        else
            i++;
        if (after) break;
    }
    return ready_s;
}

/* Two freed neighbours become one when there are too many: the careful answer about time, and the first one's name. */
TRNI_FN void trni_segment_squeeze(trni_memory *m, int q)
{
    trni_segment *s = m->segment[q];
    for (int i = 0; i + 1 < m->segments[q]; i++) {
        if (s[i].tile >= 0 || s[i + 1].tile >= 0) continue;
        s[i].b_end = s[i + 1].b_end;
        s[i].ready_s = s[i].ready_s > s[i + 1].ready_s ? s[i].ready_s : s[i + 1].ready_s;
        trni_segment_remove(m, q, i + 1, 1);
        return;
    }
}

/* ---- tiles ---- */

TRNI_FN int trni_allocation_slot(trni_memory *m)
{
    for (int i = 0; i < m->tiles; i++)
        if (!m->tile[i].live) return i;
    return m->tiles < TRNI_TILES ? m->tiles++ : -1;
}

TRNI_FN void trni_allocation_poison(const trni_memory *m, const trni_rect *at)
{
    for (int64_t p = at->p; p < at->p_end; p++) {
        const int64_t row = p * m->pitch;
        memset(m->base + row + at->b, TRNI_POISON, (size_t)(at->b_end - at->b));
        trni_bits_fill(m->written, row + at->b, row + at->b_end, false);
        if (m->by_matmul) trni_bits_fill(m->by_matmul, row + at->b, row + at->b_end, false);
    }
}

TRNI_FN void trni_memory_count(trni_memory *m)
{
    int64_t most = 0, all = 0;
    for (int q = 0; q < TRNI_QUADRANTS; q++) {
        most = m->used[q] > most ? m->used[q] : most;
        all += m->used[q] * TRNI_QUADRANT;
    }
    m->high_partition = most > m->high_partition ? most : m->high_partition;
    m->high_total = all > m->high_total ? all : m->high_total;
}

/* start and partitions follow the rules of the machine (the caller has looked); bytes >= 1. */
TRNI_FN trn_status trni_memory_take(trni_memory *m, const trni_memory_request *ask, int *tile, trn_error *error)
{
    const int64_t b = m->place ? m->place - 1 : trni_memory_place(m, ask);
    if (b < 0) return trni_memory_full(m, ask, error);
    const int slot = trni_allocation_slot(m);
    if (slot < 0)
        return trni_fail(error, TRN_ELIMIT, "'%.20s' would be tile number %d of %s", ask->name, TRNI_TILES + 1,
                         trn_space_name(m->space));
    trni_allocation *t = &m->tile[slot];
    memset(t, 0, sizeof *t);
    trni_copy_text(t->name, sizeof t->name, ask->name);
    t->at.p = ask->start;
    t->at.p_end = ask->start + ask->partitions;
    t->at.b = b;
    t->at.b_end = b + ask->bytes;
    t->anything = ask->anything || !m->poison;
    t->unwritten = t->anything ? 0 : ask->partitions * ask->bytes;
    t->serial = m->serial++;
    t->access = -1;
    t->live = true;
    trni_segment segment = { b, b + (m->place ? ask->bytes : trni_align_up(ask->bytes, TRNI_TILE_ALIGN)), slot, 0, "" };
    for (int q = ask->start / TRNI_QUADRANT; q * TRNI_QUADRANT < t->at.p_end; q++) {
        const double ready_s = trni_segment_claim(m, q, segment.b, segment.b_end);
        t->ready_s = ready_s > t->ready_s ? ready_s : t->ready_s;
        trni_segment_insert(m, q, trni_segment_after(m, q, b), &segment);
        m->used[q] += segment.b_end - segment.b;
        if (m->segments[q] > TRNI_SEGMENTS - 2) trni_segment_squeeze(m, q);
    }
    if (m->poison) trni_allocation_poison(m, &t->at);
    trni_memory_count(m);
    m->next = segment.b_end;
    *tile = slot;
    return TRN_OK;
}

/* ready_s: when the last instruction is done that uses it. */
TRNI_FN void trni_memory_give(trni_memory *m, int tile, double ready_s)
{
    trni_allocation *t = &m->tile[tile];
    for (int q = (int)t->at.p / TRNI_QUADRANT; q * TRNI_QUADRANT < t->at.p_end; q++) {
        trni_segment *s = &m->segment[q][trni_segment_after(m, q, t->at.b)];
        s->tile = -1;
        s->ready_s = ready_s > t->ready_s ? ready_s : t->ready_s;
        memcpy(s->name, t->name, sizeof s->name);
        m->used[q] -= s->b_end - s->b;
    }
    t->live = false;
}

TRNI_FN bool trni_memory_owns(const trni_memory *m, const void *data)
{
    const uintptr_t at = (uintptr_t)data, from = (uintptr_t)m->base;
    return at >= from && at - from < (uintptr_t)(TRNI_MEMORY_ROWS * m->pitch);
}

/* The segment that holds byte b of partition p, a tile's or a freed one; NULL where nothing ever was. */
TRNI_FN const trni_segment *trni_memory_find(const trni_memory *m, int64_t p, int64_t b)
{
    const int q = (int)(p / TRNI_QUADRANT), i = trni_segment_after(m, q, b);
    return i < m->segments[q] && m->segment[q][i].b <= b ? &m->segment[q][i] : NULL;
}

/* ---- the bytes of a view ---- */

typedef struct trni_step {
    int64_t size, bytes;
} trni_step;

/* Partitions that the axes with steps of whole partitions reach. Within the memory: the caller has looked. */
TRNI_FN void trni_cells_partitions(trni_cells *c, const trni_step *axis, int rank, int64_t pitch)
{
    memset(c->partition, 0, sizeof c->partition);
    c->partition[c->at.p] = true;
    for (int i = 0; i < rank; i++) {
        const int64_t step = axis[i].bytes / pitch;
        if (axis[i].size < 2 || step == 0) continue;
        for (int64_t p = c->at.p_end - 1; p >= c->at.p; p--)
            for (int64_t k = 1; c->partition[p] && k < axis[i].size && p + k * step < c->at.p_end; k++)
                c->partition[p + k * step] = true;
    }
}

/* The pattern of bytes: elements `bytes` wide at every combination of the axes' steps. */
TRNI_FN void trni_cells_pattern(trni_cells *c, const trni_step *axis, int rank, int64_t bytes)
{
    int64_t index[TRN_MAX_RANK] = { 0 }, run = bytes;
    c->word = c->at.b / 64;
    c->words = (c->at.b_end + 63) / 64 - c->word;
    memset(c->mask, 0, (size_t)c->words * sizeof c->mask[0]);
    for (; rank && axis[rank - 1].bytes == run; rank--) run *= axis[rank - 1].size;
    for (int64_t at = c->at.b - 64 * c->word;;) {
        trni_bits_fill(c->mask, at, at + run, true);
        int i = rank - 1;
        for (; i >= 0 && ++index[i] == axis[i].size; i--) {
            at -= (axis[i].size - 1) * axis[i].bytes;
            index[i] = 0;
        }
        if (i < 0) return;
        at += axis[i].bytes;
    }
}

/* A view that lies within `at`, a rectangle of m. */
TRNI_FN void trni_cells_of(trni_cells *c, const trni_memory *m, const trn_tensor *t, const trni_rect *at)
{
    const int64_t bytes = (int64_t)trn_format_bytes(t->format);
    trni_step along[TRN_MAX_RANK], across[TRN_MAX_RANK];
    int64_t stride[TRN_MAX_RANK];
    int rank = 0, ranks = 0;
    trni_strides(t, stride);
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 2 || stride[i] == 0) continue;
        const trni_step step = { t->shape[i], stride[i] * bytes };
        if (step.bytes % m->pitch == 0)
            across[ranks++] = step;
        else
            along[rank++] = step;
    }
    c->at = *at;
    trni_cells_partitions(c, across, ranks, m->pitch);
    trni_cells_pattern(c, along, rank, bytes);
}

/* Is a byte missing in these bits? Then where. */
TRNI_FN bool trni_cells_missing(const trni_cells *c, const trni_memory *m, const uint64_t *bits, int64_t *p, int64_t *b)
{
    for (*p = c->at.p; *p < c->at.p_end; ++*p) {
        const uint64_t *row = bits + *p * m->pitch / 64 + c->word;
        uint64_t none = 0;
        if (!c->partition[*p]) continue;
        for (int64_t w = 0; w < c->words; w++) none |= c->mask[w] & ~row[w];
        if (!none) continue;
        for (int64_t w = 0; w < c->words; w++)
            if ((none = c->mask[w] & ~row[w]) != 0) {
                *b = 64 * (c->word + w) + __builtin_ctzll(none);
                return true;
            }
    }
    return false;
}

/* Returns how many are new. Whole words are the rule, and counting bits is slow without an instruction for it. */
TRNI_FN int64_t trni_cells_fill(const trni_cells *c, const trni_memory *m, uint64_t *bits, int64_t partition)
{
    uint64_t *row = bits + partition * m->pitch / 64 + c->word;
    int64_t fresh = 0;
    for (int64_t w = 0; w < c->words; w++) {
        const uint64_t new_bits = c->mask[w] & ~row[w];
        fresh += new_bits == ~(uint64_t)0 ? 64 : new_bits ? __builtin_popcountll(new_bits) : 0;
        row[w] |= c->mask[w];
    }
    return fresh;
}

TRNI_FN void trni_cells_mark(const trni_cells *c, const trni_memory *m, uint64_t *bits, bool value)
{
    for (int64_t p = c->at.p; p < c->at.p_end; p++) {
        uint64_t *row = bits + p * m->pitch / 64 + c->word;
        if (!c->partition[p]) continue;
        for (int64_t w = 0; w < c->words; w++) row[w] = value ? row[w] | c->mask[w] : row[w] & ~c->mask[w];
    }
}

TRNI_FN void trni_cells_write(const trni_cells *c, const trni_memory *m, trni_allocation *tile)
{
    for (int64_t p = c->at.p; p < c->at.p_end; p++)
        if (c->partition[p]) tile->unwritten -= trni_cells_fill(c, m, m->written, p);
}

#endif /* TRNI_CORE_CORE_MEMORY_H */
