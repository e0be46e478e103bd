/* views.h - views of tiles and of tensors in HBM, as methods.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: indices by ints, slices and even grids, access patterns, shapes, other formats, strides, bytes out and in.
 * DOES NOT: know ranges or arrays of indices (index.py).
 */
#ifndef TRNPY_VIEWS_H
#define TRNPY_VIEWS_H

#include "aside.h"
#include "grids.h"
#include "host.h"
#include "objects.h"
#include "psum.h"

/* ---- Tensor: views ---- */

/* One axis of an index: keeps `count` of them from `first`, `step` apart; count < 0: an int, the axis goes. */
static int axis_of(PyObject *index, int64_t size, int64_t *first, int64_t *count, int64_t *step, int axis)
{
    *step = 1;
    if (!PyBool_Check(index) && (PyLong_Check(index) || (PyIndex_Check(index) && !PySequence_Check(index)))) {
        *first = PyNumber_AsSsize_t(index, PyExc_IndexError);
        if (*first == -1 && PyErr_Occurred()) return -1;
        if (*first < 0) *first += size;
        *count = -1;
        if (*first < 0 || *first >= size) {
            PyErr_Format(PyExc_IndexError, "index %lld of axis %d, which has %lld", (long long)*first, axis,
                         (long long)size);
            return -1;
        }
        return 0;
    }
    if (!PySlice_Check(index)) return 1;
    Py_ssize_t start, stop, by;
    if (PySlice_Unpack(index, &start, &stop, &by)) return -1;
    PyObject *given = ((PySliceObject *)index)->stop;
    if (given != Py_None && stop > size) {
        PyErr_Format(PyExc_IndexError, "slice ends at %zd on axis %d, which has %lld", stop, axis, (long long)size);
        return -1;
    }
    *count = PySlice_AdjustIndices(size, &start, &stop, by);
    *first = start;
    *step = by;
    return 0;
}

static PyObject *tensor_index(tensor *self, PyObject *index)
{
    PyObject *one[1] = { index }, **item = one;
    Py_ssize_t items = 1;
    if (PyTuple_Check(index)) {
        item = &PyTuple_GET_ITEM(index, 0);
        items = PyTuple_GET_SIZE(index);
    }
    trn_tensor t = self->t;
    trn_tensor out = t;
    int axis = 0, rank = 0;
    Py_ssize_t named = 0;
    for (Py_ssize_t i = 0; i < items; i++) named += item[i] != Py_None && item[i] != Py_Ellipsis;
    if (named > t.rank) return PyErr_Format(PyExc_IndexError, "%zd indices for %d axes", named, t.rank);
    char *data = (char *)t.data;
    const int64_t bytes = (int64_t)trn_format_bytes(t.format);
    for (Py_ssize_t i = 0; i < items; i++) {
        if (rank >= TRN_MAX_RANK) return refuse("a view would have more than %d axes", TRN_MAX_RANK);
        if (item[i] == Py_None) {
            out.shape[rank] = 1;
            out.stride[rank++] = axis < t.rank ? t.stride[axis] : 1;
            continue;
        }
        if (item[i] == Py_Ellipsis) {
            for (Py_ssize_t skip = t.rank - named; skip > 0; skip--, axis++, rank++) {
                out.shape[rank] = t.shape[axis];
                out.stride[rank] = t.stride[axis];
            }
            continue;
        }
        int64_t first, count, step;
        const int kind = axis_of(item[i], t.shape[axis], &first, &count, &step, axis);
        if (kind < 0) return NULL;
        if (kind) {
            PyObject *const view = grid_view(self, item, items);
            if (!view && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED; /* index.py's: ranges, other arrays of indices */
            return view;
        }
        data += first * t.stride[axis] * bytes;
        if (axis == 0 && count < 0 && self->owner->space != TRN_SPACE_HBM) count = 1; /* tiles keep their partitions */
        if (count >= 0) {
            out.shape[rank] = count;
            out.stride[rank++] = t.stride[axis] * step;
        }
        axis++;
    }
    for (; axis < t.rank && rank < TRN_MAX_RANK; axis++, rank++) {
        out.shape[rank] = t.shape[axis];
        out.stride[rank] = t.stride[axis];
    }
    if (rank == 0) { /* one element */
        out.shape[0] = out.stride[0] = 1;
        rank = 1;
    }
    if (rank == 1 && t.rank > 1 && self->owner->space != TRN_SPACE_HBM) { /* a column is [partitions, 1] */
        out.shape[1] = out.stride[1] = 1;
        rank = 2;
    }
    out.rank = rank;
    out.data = data;
    for (int i = rank; i < TRN_MAX_RANK; i++) out.shape[i] = out.stride[i] = 0;
    return tensor_new(self->owner, &out, self->dtype);
}

static PyObject *tensor_ap(tensor *self, PyObject *args)
{
    PyObject *pattern;
    long long offset = 0;
    int64_t steps[TRN_MAX_RANK][2];
    if (!PyArg_ParseTuple(args, "O|L", &pattern, &offset)) return NULL;
    PyObject *fast = PySequence_Fast(pattern, "a pattern is a list of [step, number]");
    if (!fast) return NULL;
    const Py_ssize_t rank = PySequence_Fast_GET_SIZE(fast);
    bool good = rank <= TRN_MAX_RANK;
    for (Py_ssize_t i = 0; good && i < rank; i++) {
        int64_t pair[TRN_MAX_RANK];
        good = sizes_of(PySequence_Fast_GET_ITEM(fast, i), pair, "a pair") == 2;
        steps[i][0] = pair[0];
        steps[i][1] = pair[1];
    }
    Py_DECREF(fast);
    if (!good && PyErr_Occurred()) return NULL;
    if (!good) return refuse("a pattern is a list of up to %d pairs [step, number]", TRN_MAX_RANK);
    bool one = rank > 0; /* one element, many times */
    for (Py_ssize_t i = 0; i < rank; i++) one = one && steps[i][0] == 0 && steps[i][1] > 0;
    static const int64_t single[1][2] = { { 1, 1 } };
    const trn_tensor t =
        one ? trn_tensor_pattern(self->t, single, 1, offset) : trn_tensor_pattern(self->t, steps, (int)rank, offset);
    if (!t.rank) return refuse("'%s': the pattern leaves the tensor, or cannot be followed", self->owner->name);
    trn_tensor out = t;
    if (!one) explicit_strides(&out);
    for (Py_ssize_t i = 0; one && i < rank; i++) {
        out.shape[i] = steps[i][1];
        out.stride[i] = 0;
    }
    if (one) out.rank = (int)rank;
    return tensor_new(self->owner, &out, self->dtype);
}

/* The same elements in another shape: axes that lie in order merge and split. */
static PyObject *tensor_reshape(tensor *self, PyObject *shape)
{
    int64_t size[TRN_MAX_RANK] = { 0 };
    const int rank = sizes_of(shape, size, "a view");
    if (rank < 0) return NULL;
    int64_t have = 1, want = 1;
    int open = -1;
    for (int i = 0; i < self->t.rank; i++) have *= self->t.shape[i];
    for (int i = 0; i < rank; i++) {
        if (size[i] == -1 && open < 0)
            open = i;
        else
            want *= size[i];
    }
    if (open >= 0 && want) want *= size[open] = have / want;
    if (want != have) return refuse("%lld elements cannot have a shape of %lld", (long long)have, (long long)want);
    if (open >= 0 && size[open] < 0) return refuse("no elements can have any size on axis %d", open);
    trn_tensor t = self->t;
    t.rank = rank;
    for (int i = 0; i < TRN_MAX_RANK; i++) t.shape[i] = i < rank ? size[i] : 0, t.stride[i] = 0;
    if (!have) { /* nothing lies anywhere */
        for (int i = 0; i < rank; i++) t.stride[i] = 1;
        return tensor_new(self->owner, &t, self->dtype);
    }
    /* Groups of old axes that follow each other in memory, from the last one on, are cut into new axes. */
    int old = self->t.rank - 1, at = rank - 1;
    while (at >= 0) {
        if (t.shape[at] == 1) {
            t.stride[at--] = 1;
            continue;
        }
        while (old >= 0 && self->t.shape[old] == 1) old--;
        if (old < 0) break;
        int64_t product = self->t.shape[old], taken = 1;
        const int64_t step = self->t.stride[old];
        while (at >= 0 && taken < product) {
            taken *= t.shape[at];
            t.stride[at] = t.shape[at] == 1 ? 1 : step * (taken / t.shape[at]);
            at--;
            while (product < taken || product % taken) { /* the next old axis has to follow */
                while (old > 0 && self->t.shape[old - 1] == 1) old--;
                if (old <= 0 || self->t.stride[old - 1] != product * step)
                    return refuse("'%s': axes do not follow each other in memory; this shape needs a copy",
                                  self->owner->name);
                product *= self->t.shape[--old];
            }
        }
        old--;
    }
    return tensor_new(self->owner, &t, self->dtype);
}

/* view_as(format, dtype): the same bytes as other numbers; the last axis shrinks or grows. */
static PyObject *tensor_view_as(tensor *self, PyObject *args)
{
    int format;
    PyObject *dtype;
    if (!PyArg_ParseTuple(args, "iO", &format, &dtype)) return NULL;
    const int64_t was = (int64_t)trn_format_bytes(self->t.format), is = (int64_t)trn_format_bytes((trn_format)format);
    trn_tensor t = self->t;
    t.format = (trn_format)format;
    if (was != is) {
        const int last = t.rank - 1;
        if (t.stride[last] != 1 && t.shape[last] != 1)
            return refuse("a view of other bytes needs a last axis without steps");
        if (t.shape[last] * was % is)
            return refuse("%lld bytes are no whole elements", (long long)(t.shape[last] * was));
        t.shape[last] = t.shape[last] * was / is;
        for (int i = 0; i < last; i++) {
            if (t.stride[i] * was % is && t.shape[i] != 1) return refuse("rows do not begin at whole elements");
            t.stride[i] = t.stride[i] * was / is;
        }
    }
    return tensor_new(self->owner, &t, dtype);
}

/* strided(shape, strides, offset, format, dtype): any view, in elements of its format from this one's first. */
static PyObject *tensor_strided(tensor *self, PyObject *args)
{
    PyObject *shape, *strides, *dtype = self->dtype;
    long long offset = 0;
    int format = self->t.format;
    trn_tensor t = self->t;
    if (!PyArg_ParseTuple(args, "OO|LiO", &shape, &strides, &offset, &format, &dtype)) return NULL;
    t.format = (trn_format)format;
    memset(t.shape, 0, sizeof t.shape);
    memset(t.stride, 0, sizeof t.stride);
    t.rank = sizes_of(shape, t.shape, "a view");
    const int steps = t.rank < 0 ? -1 : sizes_of(strides, t.stride, "a view");
    if (PyErr_Occurred()) return NULL;
    if (steps != t.rank) return refuse("shape and strides differ in number");
    t.data = (char *)t.data + offset * (int64_t)trn_format_bytes(t.format);
    return tensor_new(self->owner, &t, dtype);
}

static PyObject *tuple_of(const int64_t *number, int count)
{
    PyObject *made = PyTuple_New(count);
    for (int i = 0; made && i < count; i++) {
        PyObject *n = PyLong_FromLongLong(number[i]);
        if (!n)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, n);
    }
    return made;
}

static PyObject *tensor_shape(tensor *self, void *unused)
{
    (void)unused;
    return tuple_of(self->t.shape, self->t.rank);
}
static PyObject *tensor_strides(tensor *self, void *unused)
{
    (void)unused;
    return tuple_of(self->t.stride, self->t.rank);
}
static PyObject *tensor_space(tensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->owner->space);
}
static PyObject *tensor_ndim(tensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->t.rank);
}
static PyObject *tensor_name(tensor *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(self->owner->name);
}
static PyObject *tensor_format(tensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong((long)self->t.format);
}
static PyObject *tensor_owner(tensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(self->owner);
}
static PyObject *tensor_core(tensor *self, void *unused)
{
    (void)unused;
    Py_INCREF(self->owner->core);
    return (PyObject *)self->owner->core;
}
/* Elements of this view's format from the owner's first byte. */
static PyObject *tensor_offset(tensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(((char *)self->t.data - (char *)self->owner->whole.data) /
                               (int64_t)trn_format_bytes(self->t.format));
}
/* The first partition of a view of SBUF or PSUM that has memory now; else None. */
static PyObject *tensor_partition(tensor *self, void *unused)
{
    (void)unused;
    const owner *o = self->owner;
    if (o->space == TRN_SPACE_HBM || !o->core || o->outside) Py_RETURN_NONE;
    const trni_memory *m = &o->core->core->memory[o->space];
    return PyLong_FromLongLong(((char *)self->t.data - m->base) / m->pitch);
}
/* Is it in SBUF or PSUM, and has nothing written its first element? */
static PyObject *tensor_blank(tensor *self, void *unused)
{
    (void)unused;
    const owner *o = self->owner;
    if (o->space == TRN_SPACE_HBM || !o->core || o->outside) Py_RETURN_FALSE;
    const trni_memory *m = &o->core->core->memory[o->space];
    const int64_t byte = (char *)self->t.data - m->base;
    return PyBool_FromLong(!(m->written[byte / 64] >> (byte % 64) & 1));
}
/* Is it all of its allocation, in order? Then elements have the same numbers here and there. */
static PyObject *tensor_whole(tensor *self, void *unused)
{
    (void)unused;
    const trn_tensor *t = &self->t, *w = &self->owner->whole;
    const int64_t is = (int64_t)trn_format_bytes(t->format), was = (int64_t)trn_format_bytes(w->format);
    if (t->data != w->data || trn_tensor_elements(*t) * is != trn_tensor_elements(*w) * was) Py_RETURN_FALSE;
    const int first = self->owner->space != TRN_SPACE_HBM; /* partitions lie apart */
    int64_t step = 1;
    for (int i = t->rank - 1; i >= first; i--) {
        if (t->shape[i] != 1 && t->stride[i] != step) Py_RETURN_FALSE;
        step *= t->shape[i];
    }
    if (first && t->shape[0] != 1 && t->stride[0] * is != w->stride[0] * was) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

static PyObject *tensor_base(tensor *self, void *unused)
{
    (void)unused;
    return tensor_new(self->owner, &self->owner->whole, self->dtype);
}
static bool copy_out(const trn_tensor *t, int axis, const char *from, char **to)
{
    const size_t bytes = trn_format_bytes(t->format);
    if (axis == t->rank) {
        memcpy(*to, from, bytes);
        *to += bytes;
        return true;
    }
    if (axis == t->rank - 1 && t->stride[axis] == 1) {
        memcpy(*to, from, bytes * (size_t)t->shape[axis]);
        *to += bytes * (size_t)t->shape[axis];
        return true;
    }
    for (int64_t i = 0; i < t->shape[axis]; i++) copy_out(t, axis + 1, from + i * t->stride[axis] * (int64_t)bytes, to);
    return true;
}

static void copy_in(const trn_tensor *t, int axis, char *to, const char **from)
{
    const size_t bytes = trn_format_bytes(t->format);
    if (axis == t->rank) {
        memcpy(to, *from, bytes);
        *from += bytes;
        return;
    }
    for (int64_t i = 0; i < t->shape[axis]; i++) copy_in(t, axis + 1, to + i * t->stride[axis] * (int64_t)bytes, from);
}

/* The codes, packed. */
static PyObject *tensor_tobytes(tensor *self, PyObject *unused)
{
    (void)unused;
    int64_t bytes = (int64_t)trn_format_bytes(self->t.format);
    for (int i = 0; i < self->t.rank; i++) bytes *= self->t.shape[i];
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (!made || !bytes) return made;
    if (tile_seen(self)) return Py_DECREF(made), NULL;
    char *to = PyBytes_AS_STRING(made);
    copy_out(&self->t, 0, (const char *)self->t.data, &to);
    return made;
}

/* into(buffer): the codes, packed, into a buffer of their size. */
static PyObject *tensor_into(tensor *self, PyObject *buffer)
{
    Py_buffer b;
    int64_t bytes = (int64_t)trn_format_bytes(self->t.format);
    for (int i = 0; i < self->t.rank; i++) bytes *= self->t.shape[i];
    if (tile_seen(self) || PyObject_GetBuffer(buffer, &b, PyBUF_WRITABLE)) return NULL;
    const bool fits = b.len == bytes;
    char *to = (char *)b.buf;
    if (fits && bytes) copy_out(&self->t, 0, (const char *)self->t.data, &to);
    PyBuffer_Release(&b);
    if (!fits) return refuse("%lld bytes are needed", (long long)bytes);
    Py_RETURN_NONE;
}

/* Do the elements follow each other, as in a new array? */
static bool is_packed(const trn_tensor *t)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; step *= t->shape[i--])
        if (t->shape[i] != 1 && t->stride[i] != step) return false;
    return true;
}

/* hand(): the memory of a tensor in HBM of its own, of which this view is all, for a caller who gets it as the result;
 * None: it is another's, was given before, or lies in another order. */
static PyObject *tensor_hand(tensor *self, PyObject *unused)
{
    (void)unused;
    host_memory *memory = (host_memory *)self->owner->memory;
    if (!memory || !Py_IS_TYPE(memory, &host_type) || memory->handed || !is_packed(&self->t)) Py_RETURN_NONE;
    const int64_t bytes = trn_tensor_elements(self->t) * (int64_t)trn_format_bytes(self->t.format);
    if (!bytes || (size_t)bytes != memory->bytes || self->t.data != memory->data) Py_RETURN_NONE;
    memory->handed = true;
    Py_INCREF(memory);
    return (PyObject *)memory;
}

static PyObject *tensor_dtype(tensor *self, void *unused)
{
    (void)unused;
    Py_INCREF(self->dtype);
    return self->dtype;
}

/* frombytes(codes): the tensor is filled by the host; a tile counts as written. */
static PyObject *tensor_frombytes(tensor *self, PyObject *codes)
{
    Py_buffer b;
    if (tile_seen(self) || PyObject_GetBuffer(codes, &b, PyBUF_SIMPLE)) return NULL;
    int64_t bytes = (int64_t)trn_format_bytes(self->t.format);
    for (int i = 0; i < self->t.rank; i++) bytes *= self->t.shape[i];
    if (b.len == bytes && bytes) {
        const char *from = (const char *)b.buf;
        copy_in(&self->t, 0, (char *)self->t.data, &from);
        trn_core_written(self->owner->core->core, self->t);
    }
    PyBuffer_Release(&b);
    if (b.len != bytes) return refuse("%lld bytes are needed", (long long)bytes);
    Py_RETURN_NONE;
}

/* (memory, number): which allocation it is, unlike any other of this core. */
static PyObject *tensor_allocation(tensor *self, void *unused)
{
    (void)unused;
    const owner *o = self->owner;
    const unsigned long long number =
        o->tile ? (unsigned long long)o->serial : (unsigned long long)(uintptr_t)o->whole.data;
    return Py_BuildValue("(iK)", o->space, number);
}

/* Of a tensor in HBM; else 0. */
static PyObject *tensor_unwritten(tensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(self->owner->state ? (long long)self->owner->state->written.unwritten : 0);
}

static PyObject *tensor_copied(tensor *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(self->owner->copied);
}

static int tensor_set_copied(tensor *self, PyObject *value, void *unused)
{
    (void)unused;
    self->owner->copied = value && PyObject_IsTrue(value) == 1;
    return 0;
}

static PyGetSetDef tensor_fields[] = {
    { "allocation", (getter)tensor_allocation, NULL, "which one it views", NULL },
    { "dtype", (getter)tensor_dtype, NULL, NULL, NULL },
    { "shape", (getter)tensor_shape, NULL, "sizes, partitions first", NULL },
    { "strides", (getter)tensor_strides, NULL, "in elements", NULL },
    { "space", (getter)tensor_space, NULL, NULL, NULL },
    { "ndim", (getter)tensor_ndim, NULL, NULL, NULL },
    { "name", (getter)tensor_name, NULL, NULL, NULL },
    { "format", (getter)tensor_format, NULL, NULL, NULL },
    { "owner", (getter)tensor_owner, NULL, "a number per allocation", NULL },
    { "core", (getter)tensor_core, NULL, NULL, NULL },
    { "element_offset", (getter)tensor_offset, NULL, NULL, NULL },
    { "partition", (getter)tensor_partition, NULL, "its first partition, or None", NULL },
    { "blank", (getter)tensor_blank, NULL, "has nothing written its first element?", NULL },
    { "base", (getter)tensor_base, NULL, "the whole allocation", NULL },
    { "copied", (getter)tensor_copied, (setter)tensor_set_copied, "of places that no view has; not to be written",
      NULL },
    { "unwritten", (getter)tensor_unwritten, NULL, "bytes of its allocation in HBM that nothing has written", NULL },
    { "whole", (getter)tensor_whole, NULL, "is it all of its allocation, in order?", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyObject *tensor_is_indirect(tensor *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(is_indirect(&self->t));
}

static PyMethodDef tensor_methods[] = {
    { "index", (PyCFunction)tensor_index, METH_O, "a view by ints and slices" },
    { "pattern", (PyCFunction)tensor_ap, METH_VARARGS, "a view by [step, number] pairs" },
    { "reshaped", (PyCFunction)tensor_reshape, METH_O, "the same elements in another shape" },
    { "view_as", (PyCFunction)tensor_view_as, METH_VARARGS, "the same bytes in another format" },
    { "strided", (PyCFunction)tensor_strided, METH_VARARGS, "any view" },
    { "is_indirect", (PyCFunction)tensor_is_indirect, METH_NOARGS, "does an index tile choose its elements?" },
    { "touched", (PyCFunction)tensor_touched, METH_NOARGS, "has a product written any of it?" },
    { "touch", (PyCFunction)tensor_touch, METH_NOARGS, "a product has written it" },
    { "sums", (PyCFunction)tensor_sums, METH_NOARGS,
      "what is there for a product to add to: bits 1 products, "
      "2 zeros, 4 other numbers, 8 nothing" },
    { "zeros", (PyCFunction)tensor_zeros, METH_NOARGS, "a new tile is full of zeros" },
    { "overwritten", (PyCFunction)tensor_overwritten, METH_NOARGS, "a product writes all of this and reads nothing" },
    { "begin_sums", (PyCFunction)tensor_begin_sums, METH_NOARGS, "what no product has written of it begins at zero" },
    { "frombytes", (PyCFunction)tensor_frombytes, METH_O, "filled by the host" },
    { "tobytes", (PyCFunction)tensor_tobytes, METH_NOARGS, "the codes, packed" },
    { "hand", (PyCFunction)tensor_hand, METH_NOARGS, "its memory, for the caller of a kernel" },
    { "into", (PyCFunction)tensor_into, METH_O, "the codes, packed, into a buffer" },
    { NULL, NULL, 0, NULL },
};

#endif /* TRNPY_VIEWS_H */
