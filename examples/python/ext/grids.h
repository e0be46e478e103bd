/* grids.h - views by arrays of indices that are evenly spaced, which is what kernels write most.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: tensor[i, j], where each index is an int or an array of 64-bit integers of NumPy's that grows evenly along each
 *     of its axes, and all lie within the tensor: the view, without an array as large as it.
 * DOES NOT: slices beside arrays, arrays that are even only together, places outside of the tensor, steps backwards:
 *     index.py, which has the rule for all and says what is wrong.
 */
#ifndef TRNPY_GRIDS_H
#define TRNPY_GRIDS_H

#include "objects.h"

enum { GRID_RANK = 5 }; /* axes that every access pattern has */

/* An index: the first number, the smallest and the largest, and for each axis of the grid how far numbers lie apart. */
typedef struct grid_index {
    int64_t first, low, high;
    int64_t step[GRID_RANK], size[GRID_RANK]; /* of its last axis first */
    int rank;
} grid_index;

static int64_t grid_number(const char *at)
{
    int64_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* What lies in a tensor is small; sums and products of others would not be numbers of 64 bits. */
static bool grid_is_small(int64_t number) { return number >= INT32_MIN && number <= INT32_MAX; }

/* Are the numbers from `at` on `expected`, and further by the steps? */
static bool grid_is_even(const Py_buffer *b, const grid_index *g, int axis, const char *at, int64_t expected)
{
    if (axis == b->ndim) return grid_number(at) == expected;
    const int64_t step = g->step[b->ndim - 1 - axis];
    if (axis == b->ndim - 1) {
        int64_t other = 0;
        for (Py_ssize_t i = 0; i < b->shape[axis]; i++)
            other |= grid_number(at + i * b->strides[axis]) ^ (expected + i * step);
        return !other;
    }
    for (Py_ssize_t i = 0; i < b->shape[axis]; i++)
        if (!grid_is_even(b, g, axis + 1, at + i * b->strides[axis], expected + i * step)) return false;
    return true;
}

static bool grid_of_buffer(const Py_buffer *b, grid_index *g)
{
    const char *const at = (const char *)b->buf;
    if (b->ndim > GRID_RANK || b->itemsize != sizeof(int64_t) || !b->format || !strchr("lq", b->format[0]))
        return false;
    for (int i = 0; i < b->ndim; i++)
        if (b->shape[i] == 0) return false;
    g->rank = b->ndim;
    g->first = g->low = g->high = grid_number(at);
    if (!grid_is_small(g->first)) return false;
    for (int i = 0; i < b->ndim; i++) {
        const int64_t size = b->shape[b->ndim - 1 - i];
        const int64_t second = size > 1 ? grid_number(at + b->strides[b->ndim - 1 - i]) : g->first;
        const int64_t step = second - g->first;
        if (!grid_is_small(second)) return false;
        g->size[i] = size;
        g->step[i] = step;
        *(step < 0 ? &g->low : &g->high) += step * (size - 1);
    }
    return grid_is_even(b, g, 0, at, g->first);
}

/* Is this an index that is even by itself? No exception is left. */
static bool grid_of(PyObject *item, grid_index *g)
{
    Py_buffer b;
    memset(g, 0, sizeof *g);
    if (PyLong_Check(item) && !PyBool_Check(item)) {
        g->first = g->low = g->high = PyLong_AsLongLong(item);
        if (g->first != -1 || !PyErr_Occurred()) return true;
        PyErr_Clear();
        return false;
    }
    if (strcmp(Py_TYPE(item)->tp_name, "numpy.ndarray")) return false;
    if (PyObject_GetBuffer(item, &b, PyBUF_STRIDES | PyBUF_FORMAT)) {
        PyErr_Clear();
        return false;
    }
    const bool even = grid_of_buffer(&b, g);
    PyBuffer_Release(&b);
    return even;
}

/* Adds what an index of this axis contributes to a view. False: arrays of shapes that do not go together. */
static bool grid_add(trn_tensor *view, int64_t *size, int64_t *step, const grid_index *g, int64_t stride)
{
    for (int i = 0; i < g->rank; i++) {
        if (g->size[i] == 1) continue;
        if (size[i] != 1 && size[i] != g->size[i]) return false;
        size[i] = g->size[i];
        step[i] += g->step[i] * stride;
    }
    if (g->rank > view->rank) view->rank = g->rank;
    view->data = (char *)view->data + g->first * stride * (int64_t)trn_format_bytes(view->format);
    return true;
}

/* The view, or null without an exception: it is none of these. */
static PyObject *grid_view(tensor *self, PyObject *const *item, Py_ssize_t items)
{
    int64_t size[GRID_RANK] = { 1, 1, 1, 1, 1 }, step[GRID_RANK] = { 0 };
    trn_tensor view = self->t;
    view.rank = 0;
    if (items != self->t.rank) return NULL;
    for (Py_ssize_t i = 0; i < items; i++) {
        grid_index g;
        if (!grid_of(item[i], &g) || g.low < 0 || g.high >= self->t.shape[i]) return NULL;
        if (!grid_add(&view, size, step, &g, self->t.stride[i])) return NULL;
    }
    for (int i = 0; i < TRN_MAX_RANK; i++) {
        const int back = view.rank - 1 - i;
        if (back >= 0 && step[back] < 0) return NULL;
        view.shape[i] = back >= 0 ? size[back] : 0;
        view.stride[i] = back < 0 ? 0 : size[back] > 1 ? step[back] : 1;
    }
    return view.rank ? tensor_new(self->owner, &view, self->dtype) : NULL;
}

#endif /* TRNPY_GRIDS_H */
