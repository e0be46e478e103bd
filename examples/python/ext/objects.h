/* objects.h - what a core, its memory and views of it are to Python.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: Core (a trn_core of its own, or one of many), the owner of a tile or of a tensor in HBM, the view.
 * DOES NOT: make them or free them (memory.h), cut them (views.h), run anything.
 */
#ifndef TRNPY_OBJECTS_H
#define TRNPY_OBJECTS_H

#include "hbm.h"
#include "places.h"
#include "refuse.h"

#include <trnmath/trnmath.h>

/* ---- a core ---- */

/* A tile's life in program order: from the first call that uses it to the last. */
typedef struct life {
    uint64_t first, last; /* 0: none has */
    int64_t bytes, at;    /* of a partition; at: where the kernel has placed it, or -1 */
    int quadrant, quadrant_end;
    int line; /* that made it; 0: not known */
    char name[TRNI_TILE_NAME];
} life;

/* What aside.h keeps of a memory. */
typedef struct aside {
    uint64_t since;            /* the first call that put numbers out; 0: none has */
    uint64_t returns;          /* of tiles with numbers in them */
    life *ended;               /* of tiles that are no more, and were used after that */
    int64_t ends, room, bytes; /* bytes: that lie outside */
    struct owner *outside;     /* a list */
} aside;

typedef struct path path; /* path.h */

/* What passes that would be refused. */
typedef struct core_lets {
    int no_races; /* nobody asks which programs use what */
    int spill;    /* nor whether what lives fits */
} core_lets;

typedef struct core_object {
    PyObject_HEAD trn_core *core; /* its own, or one of many */
    trn_core own;
    trn_trace trace;
    trn_cores_rank *rank; /* null where it is alone */
    PyObject *many;       /* the Cores object that owns the rank */
    PyObject *hbm;        /* a list: memory whose addresses the core knows stays where it is */
    bool begun, traced;
    PyObject *pending;  /* what has been asked for and not been made yet: results.py's */
    PyObject *observer; /* called in place of each instruction: bounds.py's */
    bool *placed[2];    /* [TRNI_TILES] of SBUF and PSUM: tiles that the kernel placed itself */
    void *memory;       /* of the pool, or null where the core has its own */
    size_t memory_bytes;
    place *tiles[2];          /* [TRNI_TILES] of SBUF and PSUM, of the pool */
    struct owner **owners[2]; /* of the same */
    watched *watched;         /* [TRNI_HBM_TENSORS], once it knows one */
    int program, programs;    /* of how many that share HBM; 0: it is alone */
    bool apart;               /* they run one after the other */
    core_lets lets;
    place now;              /* the kernel's line that an instruction comes from */
    path *path;             /* null: nothing has run */
    uint64_t step;          /* calls so far that use tiles: program order */
    aside aside[2];         /* of SBUF and PSUM */
    unsigned shuffled;      /* bits of spaces: a tile went that the call has looked up */
    bool packs;             /* the call looks again, and its tiles come back one behind the other */
    struct owner *unfilled; /* one that the call has looked up, whose zeros are not there yet */
} core_object;

/* Memory that views look into. */
typedef struct owner {
    PyObject_HEAD core_object *core; /* null after its core has ended */
    trn_tensor whole;
    int space;         /* trn_space, TRN_SPACE_HBM */
    bool tile, placed; /* placed: at an address that the kernel chose */
    int slot;          /* of a tile that has memory, else -1 */
    uint64_t serial;
    hbm_state *state; /* of a tensor in HBM */
    PyObject *memory; /* of a tensor in HBM: a Memory or a memoryview */
    struct box {
        int64_t p, p_end, b, b_end;
    } * touched; /* by products: partitions x bytes */
    int boxes, room;
    char name[64];
    struct tensor *views;
    place made;
    life life;
    PyObject *zeros;            /* its dtype: it is full of zeros, which nobody has written yet */
    bool copied;                /* of places that no view has: who writes it writes them not */
    bool outside, lost, pinned; /* outside: it has no memory now; lost: nor numbers; pinned: to its address */
    trni_allocation was;        /* outside: what it was */
    char *kept;                 /* and its numbers, if there are any */
    struct owner *next, **link; /* of those outside */
} owner;

typedef struct tensor {
    PyObject_HEAD owner *owner;
    trn_tensor t;
    PyObject *dtype;
    struct tensor *next, **link; /* all views of an owner: they move with it */
} tensor;

static PyTypeObject core_type, owner_type, tensor_type;
static PyTypeObject *tensor_class = &tensor_type; /* what views are made of: Python's subclass, once it is registered */

/* What the failure of its core is about; null: no tile or tensor that it knows. */
static const place *culprit_of(const core_object *self)
{
    const trn_core *core = self->core;
    const uintptr_t at = (uintptr_t)core->culprit;
    for (int i = 0; i < 2 && at; i++) {
        const trni_memory *m = &core->memory[i];
        if (self->tiles[i] && at >= (uintptr_t)m->tile && at < (uintptr_t)(m->tile + m->tiles))
            return &self->tiles[i][core->culprit - m->tile];
    }
    if (at >= (uintptr_t)core->hbm && at < (uintptr_t)(core->hbm + core->hbm_tensors) && self->watched)
        return &self->watched[(const trni_hbm *)(const void *)core->culprit - core->hbm].made;
    return NULL;
}

/* A core's sentence, and what is to be said of the operand that it is about. */
static PyObject *refuse_core(const core_object *self, const char *why)
{
    char more[PLACE_TEXT];
    place_text(more, culprit_of(self));
    return refuse("%s%s", why, more);
}

static int failed(core_object *self)
{
    const char *text;
    if (!trn_core_status(self->core, &text)) return 0;
    refuse_core(self, text);
    return 1;
}

static void tensor_dealloc(tensor *self)
{
    if (self->link) *self->link = self->next;
    if (self->next) self->next->link = self->link;
    Py_XDECREF(self->owner);
    Py_XDECREF(self->dtype);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *tensor_new(owner *o, const trn_tensor *t, PyObject *dtype)
{
    tensor *made = (tensor *)tensor_class->tp_alloc(tensor_class, 0);
    if (!made) return NULL;
    Py_INCREF(o);
    Py_INCREF(dtype);
    made->owner = o;
    made->t = *t;
    made->dtype = dtype;
    made->next = o->views;
    made->link = &o->views;
    if (o->views) o->views->link = &made->next;
    o->views = made;
    return (PyObject *)made;
}

/* ---- shapes from Python ---- */

static int sizes_of(PyObject *sequence, int64_t *size, const char *what)
{
    PyObject *fast = PySequence_Fast(sequence, "a shape is a tuple of numbers");
    if (!fast) return -1;
    const Py_ssize_t rank = PySequence_Fast_GET_SIZE(fast);
    if (rank > TRN_MAX_RANK) {
        Py_DECREF(fast);
        refuse("%s has %zd axes; %d are possible", what, rank, TRN_MAX_RANK);
        return -1;
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        size[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
        if (size[i] == -1 && PyErr_Occurred()) {
            Py_DECREF(fast);
            return -1;
        }
    }
    Py_DECREF(fast);
    return (int)rank;
}

static void explicit_strides(trn_tensor *t)
{
    bool none = true;
    for (int i = 0; i < t->rank; i++) none = none && !t->stride[i];
    if (!none) return;
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        t->stride[i] = step;
        step *= t->shape[i] > 0 ? t->shape[i] : 1;
    }
}

/* A view whose elements an index tile chooses has a stride that no axis of it has: core/core_indirect.h. */
static bool is_indirect(const trn_tensor *t) { return t->rank < TRN_MAX_RANK && t->stride[TRN_MAX_RANK - 1]; }

/* The view for a call of the library, where strides that are all 0 mean packed rows: one element that is seen many
 * times gets an axis of size 1 in front of it. */
static trn_tensor seen_by_calls(const tensor *self)
{
    trn_tensor t = self->t;
    bool many = false;
    if (is_indirect(&t)) return t;
    for (int i = 0; i < t.rank; i++) {
        if (t.stride[i]) return t;
        many = many || t.shape[i] > 1;
    }
    if (!many) return t;
    if (t.shape[0] != 1 && t.rank < TRN_MAX_RANK) {
        memmove(t.shape + 1, t.shape, (size_t)t.rank * sizeof t.shape[0]);
        memset(t.stride, 0, sizeof t.stride);
        t.shape[0] = 1;
        t.rank++;
    }
    t.stride[0] = 1;
    return t;
}

#endif /* TRNPY_OBJECTS_H */
