/* host.h - memory of tensors in HBM, which the host has: filled by all threads, and a result's is the array it gets.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: gives memory of the pool as a Memory, whose buffer NumPy takes; fills it, or copies a caller's buffer into it,
 *     so that threads share what the system does for pages that nobody had before.
 * DOES NOT: know what lies in it (memory.h, hbm.h).
 */
#ifndef TRNPY_HOST_H
#define TRNPY_HOST_H

#include "pool.h"
#include "refuse.h"

typedef struct host_memory {
    PyObject_HEAD void *data;
    size_t bytes, taken; /* of the tensor; of the pool */
    bool handed;         /* to the caller of a kernel, once */
} host_memory;

static PyTypeObject host_type;

enum { HOST_CHUNK = 4 << 20 };

/* n bytes, all of this value, or those at `from`. */
static void host_fill(char *to, int value, const char *from, size_t n)
{
    const int64_t chunks = (int64_t)((n + HOST_CHUNK - 1) / HOST_CHUNK);
    const int threads = chunks > 1 ? (int)trni_min64(trni_threads(), chunks) : 1;
    TRNI_PARALLEL_FOR(num_threads(threads) schedule(dynamic) if (threads > 1))
    for (int64_t i = 0; i < chunks; i++) {
        const size_t at = (size_t)i * HOST_CHUNK, size = n - at < HOST_CHUNK ? n - at : (size_t)HOST_CHUNK;
        if (from)
            memcpy(to + at, from + at, size);
        else
            memset(to + at, value, size);
    }
}

/* With anything in it. */
static host_memory *host_raw(int64_t bytes)
{
    host_memory *made = PyObject_New(host_memory, &host_type);
    if (!made) return NULL;
    made->bytes = bytes > 0 ? (size_t)bytes : 0;
    made->taken = made->bytes ? made->bytes : 1;
    made->handed = false;
    made->data = pool_take(made->taken);
    if (made->data) return made;
    Py_DECREF(made);
    PyErr_NoMemory();
    return NULL;
}

/* Full of ones: NaN in every format of floats, so that what nobody has written shows. Without poison full of zeros. */
static PyObject *host_new(int64_t bytes, bool poison)
{
    host_memory *made = host_raw(bytes);
    if (made) host_fill((char *)made->data, poison ? 0xff : 0, NULL, made->bytes);
    return (PyObject *)made;
}

/* With what a buffer holds. */
static PyObject *host_of(PyObject *buffer, int64_t bytes)
{
    Py_buffer b;
    host_memory *made = NULL;
    if (PyObject_GetBuffer(buffer, &b, PyBUF_SIMPLE)) return NULL;
    if (b.len == bytes)
        made = host_raw(bytes);
    else
        refuse("the buffer has %zd bytes, the shape needs %lld", b.len, (long long)bytes);
    if (made) host_fill((char *)made->data, 0, (const char *)b.buf, made->bytes);
    PyBuffer_Release(&b);
    return (PyObject *)made;
}

static void host_dealloc(host_memory *self)
{
    pool_give(self->data, self->taken);
    PyObject_Free(self);
}

static int host_buffer(host_memory *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)self, self->data, (Py_ssize_t)self->bytes, 0, flags);
}

static PyBufferProcs host_buffers = { (getbufferproc)host_buffer, NULL };

static PyTypeObject host_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "nki._core.Memory",
    .tp_basicsize = sizeof(host_memory),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Memory of a tensor in HBM, a buffer.",
    .tp_dealloc = (destructor)host_dealloc,
    .tp_as_buffer = &host_buffers,
};

#endif /* TRNPY_HOST_H */
