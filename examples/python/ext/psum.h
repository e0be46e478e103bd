/* psum.h - what of a tile in PSUM products have written, and what is there for the next to add to.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: keeps the parts of a tile that products have written, by boxes; looks at the core's bits where it keeps some.
 * DOES NOT: say whether a product adds (isa.py).
 */
#ifndef TRNPY_PSUM_H
#define TRNPY_PSUM_H

#include "aside.h"
#include "objects.h"

enum { SUMS_PRODUCTS = 1, SUMS_ZEROS = 2, SUMS_NUMBERS = 4, SUMS_NOTHING = 8 };

/* Its numbers are there for the host. */
static int tile_seen(tensor *self)
{
    PyObject *view = (PyObject *)self;
    return self->owner->tile ? tiles_here(self->owner->core, &view, 1) : 0;
}

/* Partitions and bytes that a view of a tile reaches. */
static struct box box_of(const tensor *self)
{
    const int64_t bytes = (int64_t)trn_format_bytes(self->t.format);
    const int64_t whole = (int64_t)trn_format_bytes(self->owner->whole.format);
    const int64_t pitch = self->owner->whole.stride[0] * whole;
    const int64_t at = (char *)self->t.data - (char *)self->owner->whole.data;
    struct box box = { at / pitch, at / pitch + 1, at % pitch, at % pitch + bytes };
    for (int i = 0; i < self->t.rank; i++) {
        const int64_t step = self->t.stride[i] * bytes, more = self->t.shape[i] - 1;
        if (step && step % pitch == 0)
            box.p_end += step / pitch * more;
        else
            box.b_end += step * more;
    }
    return box;
}

/* Has a product written any of this since the tile was made? */
static bool touched(const tensor *self)
{
    const struct box b = box_of(self);
    for (int i = 0; i < self->owner->boxes; i++) {
        const struct box *a = &self->owner->touched[i];
        if (a->p < b.p_end && b.p < a->p_end && a->b < b.b_end && b.b < a->b_end) return true;
    }
    return false;
}

static PyObject *tensor_touched(tensor *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(touched(self));
}

static int touch(owner *o, const struct box *b)
{
    for (int i = 0; i < o->boxes; i++)
        if (!memcmp(&o->touched[i], b, sizeof *b)) return 0;
    if (o->boxes == o->room) {
        struct box *more = (struct box *)realloc(o->touched, (size_t)(o->room * 2 + 4) * sizeof *b);
        if (!more) return PyErr_NoMemory(), -1;
        o->touched = more;
        o->room = o->room * 2 + 4;
    }
    o->touched[o->boxes++] = *b;
    return 0;
}

static PyObject *tensor_touch(tensor *self, PyObject *unused)
{
    (void)unused;
    const struct box b = box_of(self);
    if (touch(self->owner, &b)) return NULL;
    Py_RETURN_NONE;
}

/* ---- the core's bits ---- */

/* The cells of a view of a tile that is there; its memory, or null where the core keeps no bits. */
static trni_memory *cells_of(const tensor *self)
{
    const owner *o = self->owner;
    trni_memory *m = memory_of_tile(o);
    if (!o->tile || o->slot < 0 || !m->poison || is_indirect(&self->t)) return NULL;
    const trni_rect *at = &m->tile[o->slot].at;
    const struct box b = box_of(self);
    const trni_rect reached = { at->p + b.p, at->p + b.p_end, at->b + b.b, at->b + b.b_end };
    trni_cells_of(o->core->core->cells, m, &self->t, &reached);
    return m;
}

/* Numbers that are not 0 where these bits of a word's bytes are. */
static bool numbers_at(const char *bytes, uint64_t bits)
{
    for (; bits; bits &= bits - 1)
        if (bytes[__builtin_ctzll(bits)]) return true;
    return false;
}

/* zeros(): a new tile is full of zeros, which are written when something else than a product of all of it uses it.
 * False: they have to be written now, as the kernel has placed the tile, where others may lie, too. */
static PyObject *tensor_zeros(tensor *self, PyObject *unused)
{
    (void)unused;
    if (self->owner->placed) Py_RETURN_FALSE;
    Py_INCREF(self->dtype);
    Py_XSETREF(self->owner->zeros, self->dtype);
    Py_RETURN_TRUE;
}

/* overwritten(): a product writes all of this view and reads nothing of it. Had it zeros that nobody has written? */
static PyObject *tensor_overwritten(tensor *self, PyObject *unused)
{
    (void)unused;
    const trn_tensor *whole = &self->owner->whole;
    if (!self->owner->zeros || self->t.data != whole->data || self->t.format != whole->format ||
        trn_tensor_elements(self->t) != trn_tensor_elements(*whole))
        Py_RETURN_FALSE;
    Py_CLEAR(self->owner->zeros);
    Py_RETURN_TRUE;
}

/* What a product that adds would find. From Trainium3 on a core keeps no bits of who wrote, and boxes tell. */
static PyObject *tensor_sums(tensor *self, PyObject *unused)
{
    (void)unused;
    if (self->owner->zeros) return PyLong_FromLong(memory_of_tile(self->owner)->poison ? SUMS_ZEROS : SUMS_NOTHING);
    if (tile_seen(self)) return NULL;
    const bool products = touched(self);
    const trni_memory *m = cells_of(self);
    if (!m) return PyLong_FromLong(products ? SUMS_PRODUCTS : SUMS_NOTHING);
    const trni_cells *c = self->owner->core->core->cells;
    long found = products && !m->by_matmul ? SUMS_PRODUCTS : 0;
    int64_t partition, byte;
    if (m->by_matmul && !trni_cells_missing(c, m, m->by_matmul, &partition, &byte))
        return PyLong_FromLong(SUMS_PRODUCTS);
    for (int64_t p = c->at.p; p < c->at.p_end; p++)
        for (int64_t w = 0; c->partition[p] && w < c->words; w++) {
            const int64_t at = p * m->pitch / 64 + c->word + w;
            const uint64_t by = m->by_matmul ? m->by_matmul[at] & c->mask[w] : 0, rest = c->mask[w] & ~by;
            found |= by ? SUMS_PRODUCTS : 0;
            found |= rest & ~m->written[at] ? SUMS_NOTHING : 0;
            if (!(rest & m->written[at])) continue;
            found |= numbers_at(m->base + 64 * at, rest & m->written[at]) ? SUMS_NUMBERS : SUMS_ZEROS;
        }
    return PyLong_FromLong(found);
}

/* Before Trainium3: what no product has written is zero, as if one had written it; from then on: what nothing has. */
static PyObject *tensor_begin_sums(tensor *self, PyObject *unused)
{
    (void)unused;
    if (tile_seen(self)) return NULL;
    trni_memory *m = cells_of(self);
    if (!m) Py_RETURN_NONE;
    const trni_cells *c = self->owner->core->core->cells;
    for (int64_t p = c->at.p; p < c->at.p_end; p++)
        for (int64_t w = 0; c->partition[p] && w < c->words; w++) {
            const int64_t at = p * m->pitch / 64 + c->word + w;
            uint64_t rest = c->mask[w] & ~(m->by_matmul ? m->by_matmul[at] : m->written[at]);
            for (; rest; rest &= rest - 1) m->base[64 * at + __builtin_ctzll(rest)] = 0;
        }
    trni_cells_write(c, m, &m->tile[self->owner->slot]);
    if (m->by_matmul) trni_cells_mark(c, m, m->by_matmul, true);
    Py_RETURN_NONE;
}

#endif /* TRNPY_PSUM_H */
