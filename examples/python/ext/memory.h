/* memory.h - cores, tiles in SBUF and PSUM, tensors in HBM.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: begins a core with its options, and frees it; takes tiles, where there is room or where a kernel says;
 *     registers memory in HBM, a caller's buffer or its own; gives both back.
 * DOES NOT: share cores (many.h); know what to do where there is no room (aside.h).
 */
#ifndef TRNPY_MEMORY_H
#define TRNPY_MEMORY_H

#include "aside.h"
#include "hbm.h"
#include "host.h"
#include "objects.h"
#include "path.h"

/* ---- Core ---- */

/* What a core is asked: numerics are parsed into `parsed`. 0, or -1 and a sentence. */
static int core_options(PyObject *options, trn_core_args *a, trn_numerics *parsed, long long *events, core_lets *lets)
{
    static char *names[] = { "generation", "numerics", "rounding", "seed", "events",
                             "no_poison",  "no_races", "spill",    "pace", NULL };
    int generation = 2, no_poison = 0; /* 1, 2, 3, as the caller counts */
    const char *numerics = NULL, *rounding = NULL, *pace = "measured";
    unsigned long long seed = 0;
    PyObject *none = PyTuple_New(0);
    const int good =
        none && PyArg_ParseTupleAndKeywords(none, options, "|izzKLppps", names, &generation, &numerics, &rounding,
                                            &seed, events, &no_poison, &lets->no_races, &lets->spill, &pace);
    Py_XDECREF(none);
    if (!good) return -1;
    if (generation < 1 || generation > 3) {
        refuse("generation is %d; there are 1, 2 and 3, for Trainium1, 2 and 3", generation);
        return -1;
    }
    memset(a, 0, sizeof *a);
    a->generation = (trn_generation)(generation - 1 + TRN_TRAINIUM1); /* Trainium1, 2, 3 */
    a->seed = seed;
    a->no_poison = no_poison;
    trn_error error;
    if (numerics && trn_numerics_read(parsed, numerics, &error) != TRN_OK) {
        refuse("numerics '%s': %s", numerics, error.text);
        return -1;
    }
    if (numerics) a->numerics = parsed;
    a->pace = strcmp(pace, "documented") ? TRN_PACE_MEASURED : TRN_PACE_DOCUMENTED;
    if (a->pace == TRN_PACE_MEASURED && strcmp(pace, "measured")) {
        refuse("pace '%s': there are measured and documented", pace);
        return -1;
    }
    if (rounding) a->rounding = trn_round_from_text(rounding);
    if (rounding && (int)a->rounding >= TRN_ROUNDING_COUNT) {
        refuse("rounding '%s': there are nearest_even, stochastic, toward_zero, toward_positive, toward_negative and "
               "to_odd",
               rounding);
        return -1;
    }
    return 0;
}

static int core_trace_begin(core_object *self, long long events)
{
    if (events <= 0) return 0;
    self->trace.event = (trn_trace_event *)malloc((size_t)events * sizeof *self->trace.event);
    if (!self->trace.event) {
        PyErr_NoMemory();
        return -1;
    }
    self->trace.capacity = events;
    self->traced = true;
    return 0;
}

static PyObject *core_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    trn_core_args a;
    trn_numerics parsed;
    long long events = 0;
    core_lets lets = { 0, 0 };
    if (PyTuple_GET_SIZE(args)) return refuse("a core takes its options by name");
    if (core_options(keywords, &a, &parsed, &events, &lets)) return NULL;
    core_object *self = (core_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->core = &self->own;
    self->lets = lets;
    if (core_trace_begin(self, events)) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->traced) a.trace = &self->trace;
    if (!a.no_poison) { /* without poison reads of old numbers would show */
        a.memory_bytes = trn_core_memory_bytes(a.generation);
        a.memory = a.memory_bytes ? pool_take(a.memory_bytes) : NULL;
    }
    self->memory = a.memory;
    self->memory_bytes = a.memory_bytes;
    if (trn_core_begin(self->core, &a)) {
        refuse("%s", self->core->failure.text);
        Py_DECREF(self);
        return NULL;
    }
    self->core->args.numerics = NULL; /* the core has a copy */
    self->begun = true;
    return (PyObject *)self;
}

static void core_dealloc(core_object *self)
{
    if (self->begun && !self->rank) trn_core_end(self->core);
    pool_give(self->memory, self->memory_bytes);
    for (int i = 0; i < 2; i++) pool_give(self->tiles[i], TRNI_TILES * sizeof(place));
    for (int i = 0; i < 2; i++) free(self->owners[i]);
    for (int i = 0; self->watched && i < TRNI_HBM_TENSORS; i++) hbm_state_drop(self->watched[i].state);
    free(self->watched);
    for (int i = 0; i < 2; i++) free(self->aside[i].ended);
    free(self->trace.event);
    path_free(self->path);
    Py_XDECREF(self->observer);
    Py_XDECREF(self->pending);
    for (int i = 0; i < 2; i++) free(self->placed[i]);
    Py_XDECREF(self->many);
    Py_XDECREF(self->hbm);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static owner *owner_new(core_object *core, int space, const char *name)
{
    owner *o = (owner *)owner_type.tp_alloc(&owner_type, 0);
    if (!o) return NULL;
    Py_INCREF(core);
    o->core = core;
    o->space = space;
    o->slot = -1;
    snprintf(o->name, sizeof o->name, "%s", name ? name : "");
    return o;
}

/* The tile's memory goes back, unless another tile was placed on it meanwhile. */
static void owner_free(owner *self)
{
    trn_core *core = self->core->core;
    aside_ends(self);
    if (!self->core->begun || self->slot < 0) return;
    trni_memory *m = &core->memory[self->space];
    struct owner **owners = self->core->owners[self->space];
    if (owners && owners[self->slot] == self) owners[self->slot] = NULL;
    if (core->failure.status) return;
    if (m->tile[self->slot].live && m->tile[self->slot].serial == self->serial) trni_core_give(core, m, self->slot);
}

static void owner_dealloc(owner *self)
{
    if (self->tile && self->core) owner_free(self);
    Py_XDECREF(self->zeros);
    free(self->touched);
    hbm_state_drop(self->state);
    Py_XDECREF(self->memory);
    Py_XDECREF(self->core);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Tiles that the kernel placed make room for one that it places on them: what they are is what is written there now. A
 * tile that the core placed goes elsewhere; where it cannot: -1 and a sentence. 0: there is no such place. */
static int place_is_free(core_object *self, const trn_core_tile_args *a, int64_t byte, int64_t bytes)
{
    trn_core *core = self->core;
    trni_memory *m = &core->memory[a->space];
    const int q = a->start_partition / TRNI_QUADRANT;
    const int q_end = (int)(a->start_partition + a->shape[0] - 1) / TRNI_QUADRANT;
    if (byte + bytes > m->partition_bytes) return 0;
    for (int i = 0; i < m->tiles; i++) {
        const trni_allocation *t = &m->tile[i];
        const int from = (int)t->at.p / TRNI_QUADRANT, to = (int)(t->at.p_end - 1) / TRNI_QUADRANT;
        if (!t->live || from > q_end || to < q) continue;
        const trni_segment *s = trni_memory_find(m, t->at.p, t->at.b);
        const int64_t end = s ? s->b_end : t->at.b_end;
        if (t->at.b >= byte + bytes || end <= byte) continue;
        if (self->placed[a->space] && self->placed[a->space][i]) {
            trni_core_give(core, m, i);
            continue;
        }
        owner *o = self->owners[a->space] ? self->owners[a->space][i] : NULL;
        if (!o || o->pinned) {
            refuse("'%s' is to lie at byte %lld of its partitions, where '%s' lies, which has to stay there: give that "
                   "an address, too",
                   a->name, (long long)byte, t->name);
            return -1;
        }
        if (tile_goes(o)) return -1;
    }
    return 1;
}

/* Does the machine have such a place? Else a sentence. */
static bool place_exists(core_object *self, const trn_core_tile_args *a, int64_t byte, int64_t bytes)
{
    const int64_t room = self->core->memory[a->space].partition_bytes;
    if (a->start_partition >= 0 && a->start_partition + a->shape[0] <= TRNI_MEMORY_ROWS && byte <= room - bytes)
        return true;
    refuse("'%s' is to lie in partitions %d to %lld from byte %lld on, %lld bytes in each; %s has %d partitions of "
           "%lld",
           a->name, a->start_partition, (long long)(a->start_partition + a->shape[0] - 1), (long long)byte,
           (long long)bytes, a->space == TRN_SPACE_PSUM ? "PSUM" : "SBUF", (int)TRNI_MEMORY_ROWS, (long long)room);
    return false;
}

/* An allocation that the kernel makes now. */
static void place_here(place *p, const owner *o)
{
    place_now(p);
    p->shape = o->whole;
    snprintf(p->name, sizeof p->name, "%s", o->name);
}

/* A view of a whole tile is its owner's. */
static void owner_find(owner *o)
{
    const trni_memory *m = &o->core->core->memory[o->space];
    const int64_t at = (char *)o->whole.data - m->base;
    const trni_segment *s = trni_memory_find(m, at / m->pitch, at % m->pitch);
    if (!s || s->tile < 0) return;
    o->serial = m->tile[s->tile].serial;
    if (o->core->placed[o->space]) o->core->placed[o->space][s->tile] = o->placed;
    owner_has(o, s->tile);
}

static int64_t partition_bytes(const trn_core_tile_args *a)
{
    int64_t bytes = (int64_t)trn_format_bytes(a->format);
    for (int i = 1; i < a->rank; i++) bytes *= a->shape[i];
    return bytes;
}

/* tile(name, space, format, shape, dtype, start_partition=0, byte=-1, no_poison=False, later=False): byte >= 0: where
 * in each partition it begins; later: it gets memory when it is used. */
static PyObject *core_tile(core_object *self, PyObject *args)
{
    const char *name;
    int space, format, start = 0, no_poison = 0, later = 0;
    long long byte = -1;
    PyObject *shape, *dtype;
    trn_core_tile_args a;
    if (!PyArg_ParseTuple(args, "ziiOO|iLpp", &name, &space, &format, &shape, &dtype, &start, &byte, &no_poison,
                          &later))
        return NULL;
    memset(&a, 0, sizeof a);
    a.space = (trn_space)space;
    a.name = name;
    a.format = (trn_format)format;
    a.start_partition = start;
    a.no_poison = no_poison;
    a.rank = sizes_of(shape, a.shape, "a tile");
    if (a.rank < 0) return NULL;
    if (byte >= 0 && (space == TRN_SPACE_SBUF || space == TRN_SPACE_PSUM) && !trni_tile_check(self->core, &a, NULL) &&
        !place_exists(self, &a, byte, partition_bytes(&a)))
        return NULL;
    const bool legal = (space == TRN_SPACE_SBUF || space == TRN_SPACE_PSUM) && !trni_tile_check(self->core, &a, NULL);
    const bool takes = legal && a.shape[0] > 0 && partition_bytes(&a) > 0 && !self->core->failure.status;
    const int free_place = takes && byte >= 0 ? place_is_free(self, &a, byte, partition_bytes(&a)) : 0;
    if (free_place < 0) return NULL;
    owner *o = owner_new(self, space, name);
    if (!o) return NULL;
    if (free_place) {
        if (!self->placed[space]) self->placed[space] = (bool *)calloc(TRNI_TILES, sizeof(bool));
        o->placed = self->placed[space] != NULL;
        self->core->memory[space].place = byte + 1;
    }
    const bool waits = takes && !o->placed && (later || !has_room(&self->core->memory[space], &a, partition_bytes(&a)));
    o->whole = waits ? trni_tile_view(&self->core->memory[space], &a) : trn_core_tile(self->core, &a);
    if (legal) self->core->memory[space].place = 0;
    if (failed(self)) {
        Py_DECREF(o);
        return NULL;
    }
    o->tile = true;
    if (takes) {
        place_here(&o->made, o);
        life_begins(o, &a, partition_bytes(&a), o->placed ? byte : -1);
        if (waits)
            tile_waits(o, &a, partition_bytes(&a));
        else
            owner_find(o);
    }
    explicit_strides(&o->whole);
    PyObject *made = tensor_new(o, &o->whole, dtype);
    Py_DECREF(o);
    return made;
}

static int memory_data(owner *o, int64_t bytes, void **data)
{
    if (Py_IS_TYPE(o->memory, &host_type)) {
        *data = ((host_memory *)o->memory)->data;
        return 0;
    }
    const Py_buffer *view = PyMemoryView_GET_BUFFER(o->memory);
    *data = view->buf;
    if (view->readonly) return refuse("the buffer of '%s' cannot be written", o->name), -1;
    if (!PyBuffer_IsContiguous(view, 'C')) return refuse("the buffer of '%s' is not packed", o->name), -1;
    if (view->len == bytes) return 0;
    refuse("the buffer of '%s' has %zd bytes, its shape needs %lld", o->name, view->len, (long long)bytes);
    return -1;
}

/* A transfer of one of several programs touches a tensor in HBM that they share. */
static trn_status hbm_watch(trn_core *core, const trni_hbm *h, const trn_tensor *view, bool write, bool after)
{
    watched *w = (watched *)h->watched;
    hbm_state *s = w->state;
    const int program = w->core->program;
    trn_status status = TRN_OK;
    if (s->apart) hbm_next(s, program);
    if (write)
        status = hbm_write(core, h, s, view, program, after);
    else if (!after)
        status = hbm_read(core, h, s, view, program);
    if (!status && after && !hbm_remember(s, view, program, write, &w->core->now))
        status = trni_fail(&core->failure, TRN_ENOSPC, "no memory to remember who uses what");
    return status;
}

static int core_knows(core_object *self, owner *o)
{
    if (!trn_tensor_elements(o->whole)) return 0;
    if (!self->hbm) self->hbm = PyList_New(0);
    if (!self->hbm || PyList_Append(self->hbm, o->memory)) return -1;
    if (!self->watched) self->watched = (watched *)calloc(TRNI_HBM_TENSORS, sizeof *self->watched);
    const int before = self->core->hbm_tensors;
    trn_core_hbm_empty(self->core, o->name, o->whole, &o->state->written);
    if (failed(self)) return -1;
    if (!self->watched || self->core->hbm_tensors == before) return 0;
    watched *w = &self->watched[before];
    w->state = o->state;
    w->state->refs++;
    w->core = self;
    w->made = o->state->made;
    if (o->state->programs < 2) return 0;
    self->core->hbm[before].watched = w;
    self->core->watch = hbm_watch;
    return 0;
}

/* hbm(name, format, shape, dtype, buffer=None, poison=True, own=False, shared=False): memory of its own, or the
 * buffer's; own: of its own, with what the buffer holds; shared: with the other programs of the grid. */
static PyObject *core_hbm(core_object *self, PyObject *args)
{
    const char *name;
    int format, poison = 1, own = 0, shared = 0;
    PyObject *shape, *dtype, *buffer = Py_None;
    int64_t size[TRN_MAX_RANK] = { 0 };
    if (!PyArg_ParseTuple(args, "ziOO|Oppp", &name, &format, &shape, &dtype, &buffer, &poison, &own, &shared))
        return NULL;
    const int rank = sizes_of(shape, size, "a tensor");
    if (rank < 0) return NULL;
    owner *o = owner_new(self, TRN_SPACE_HBM, name);
    if (!o) return NULL;
    trn_tensor t = trn_tensor_nd((trn_format)format, NULL, rank, size);
    explicit_strides(&t);
    int64_t bytes = (int64_t)trn_format_bytes((trn_format)format);
    for (int i = 0; i < rank; i++) bytes *= size[i];
    o->memory = buffer == Py_None ? host_new(bytes, poison)
                : own             ? host_of(buffer, bytes)
                                  : PyMemoryView_FromObject(buffer);
    if (!o->memory || memory_data(o, bytes, &t.data)) {
        Py_DECREF(o);
        return NULL;
    }
    o->whole = t;
    o->state = hbm_state_new(&t, buffer != Py_None || self->core->args.no_poison);
    if (!o->state) {
        Py_DECREF(o);
        return PyErr_NoMemory();
    }
    if (shared && self->programs > 1 && !self->lets.no_races) o->state->programs = self->programs;
    o->state->apart = self->apart;
    place_here(&o->state->made, o);
    PyObject *made = core_knows(self, o) ? NULL : tensor_new(o, &t, dtype);
    Py_DECREF(o);
    return made;
}

/* adopt(tensor): a handle to the memory of another core's tensor in HBM, which this core reads and writes, too. */
static PyObject *core_adopt(core_object *self, PyObject *other)
{
    if (!PyObject_TypeCheck(other, &tensor_type) || ((tensor *)other)->owner->space != TRN_SPACE_HBM)
        return refuse("only tensors in HBM are shared");
    owner *from = ((tensor *)other)->owner, *o = owner_new(self, TRN_SPACE_HBM, from->name);
    if (!o) return NULL;
    o->whole = from->whole;
    Py_INCREF(from->memory);
    o->memory = from->memory;
    o->state = from->state;
    o->state->refs++;
    PyObject *made = core_knows(self, o) ? NULL : tensor_new(o, &((tensor *)other)->t, ((tensor *)other)->dtype);
    Py_DECREF(o);
    return made;
}

#endif /* TRNPY_MEMORY_H */
