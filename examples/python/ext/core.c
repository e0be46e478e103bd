/* core.c - a simulated NeuronCore for Python: tensors are handles to views, instructions are calls of trn_core.h.
 * SPDX-License-Identifier: MIT
 *
 * DOES: Core (a trn_core, its trace, its report), View (of a tile or of HBM; a tile's memory goes back when its last
 *     handle dies), and Instruction, which fills an instruction's args by a table.
 * DOES NOT: know NKI's spelling of arguments (isa.py) or index expressions with arrays (index.py).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>

#include <trnmath/trnmath.h>

#include "aside.h"
#include "host.h"
#include "instruction.h"
#include "many.h"
#include "memory.h"
#include "objects.h"
#include "path.h"
#include "places.h"
#include "refuse.h"
#include "views.h"

/* ---- what a core has done ---- */

static PyObject *core_report(core_object *self, PyObject *unused)
{
    (void)unused;
    trn_core_report r;
    trn_core_report_of(self->core, &r);
    PyObject *engines = PyDict_New();
    for (int e = 1; engines && e < TRN_ENGINE_COUNT; e++) {
        const trn_core_engine_report *of = &r.engine[e];
        PyObject *one = Py_BuildValue("{s:L,s:d,s:d,s:d}", "instructions", (long long)of->instructions, "cycles",
                                      of->cycles, "busy_s", of->busy_s, "share", of->share);
        if (!one || PyDict_SetItemString(engines, r.engine[e].name, one)) Py_CLEAR(engines);
        Py_XDECREF(one);
    }
    return engines
               ? Py_BuildValue("{s:d,s:L,s:N,s:L,s:L,s:L,s:L,s:L,s:L,s:d,s:s}", "time_s", r.time_s, "instructions",
                               (long long)r.instructions, "engines", engines, "sbuf_high_water",
                               (long long)r.sbuf_high_water, "sbuf_high_water_partition",
                               (long long)r.sbuf_high_water_partition, "psum_high_water", (long long)r.psum_high_water,
                               "psum_high_water_partition", (long long)r.psum_high_water_partition, "sbuf_bytes",
                               (long long)r.sbuf_bytes, "psum_bytes", (long long)r.psum_bytes, "dma_bytes", r.dma_bytes,
                               "bound", r.bound_text)
               : NULL;
}

typedef struct text {
    PyObject *list;
} text;

static void text_add(void *user, const char *piece, size_t bytes)
{
    PyObject *s = PyUnicode_DecodeUTF8(piece, (Py_ssize_t)bytes, "replace");
    if (s) PyList_Append(((text *)user)->list, s);
    Py_XDECREF(s);
}

/* The trace as JSON that Perfetto opens. */
static PyObject *core_trace(core_object *self, PyObject *unused)
{
    (void)unused;
    if (!self->traced) return refuse("the core was made without events");
    text t = { PyList_New(0) };
    if (!t.list) return NULL;
    trn_trace_json(&self->trace, text_add, &t);
    PyObject *empty = PyUnicode_FromString(""), *all = empty ? PyUnicode_Join(empty, t.list) : NULL;
    Py_XDECREF(empty);
    Py_DECREF(t.list);
    return all;
}

static int set_add(PyObject *set, int space, uint64_t serial)
{
    PyObject *one = Py_BuildValue("(iK)", space, (unsigned long long)serial);
    const int status = one ? PySet_Add(set, one) : -1;
    Py_XDECREF(one);
    return status;
}

/* The allocations of tiles that there are now. */
static PyObject *core_tiles(core_object *self, PyObject *unused)
{
    (void)unused;
    PyObject *set = PySet_New(NULL);
    int status = set ? 0 : -1;
    for (int space = 0; space < 2; space++) {
        const trni_memory *m = &self->core->memory[space];
        for (int i = 0; i < m->tiles && !status; i++)
            if (m->tile[i].live) status = set_add(set, space, m->tile[i].serial);
        for (const owner *o = self->aside[space].outside; o && !status; o = o->next)
            status = set_add(set, space, o->serial);
    }
    if (status) Py_CLEAR(set);
    return set;
}

/* What has been asked for and waits is done. */
static PyObject *core_settle(core_object *self, PyObject *unused)
{
    (void)unused;
    if (self->pending && settle(self)) return NULL;
    Py_RETURN_NONE;
}

/* written(tensor): the caller has filled it himself. */
static PyObject *core_written(core_object *self, PyObject *view)
{
    if (!is_tensor(view)) return refuse("not a tensor");
    if (tiles_here(self, &view, 1)) return NULL;
    trn_core_written(self->core, ((tensor *)view)->t);
    if (failed(self)) return NULL;
    Py_RETURN_NONE;
}

/* result(tensor): the caller is about to look at it: was all of it written? */
static PyObject *core_result(core_object *self, PyObject *view)
{
    if (!is_tensor(view)) return refuse("not a tensor");
    if (tiles_here(self, &view, 1)) return NULL;
    if (trn_tensor_elements(((tensor *)view)->t)) trn_core_result(self->core, seen_by_calls((tensor *)view));
    if (failed(self)) return NULL;
    Py_RETURN_NONE;
}

/* part(program, programs): of a grid whose programs run one after the other. */
static PyObject *core_part(core_object *self, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "ii", &self->program, &self->programs)) return NULL;
    self->apart = true;
    Py_RETURN_NONE;
}

/* indirect(data, index, count, inner): a view whose elements the index chooses; 0: all that the index has. */
static PyObject *core_indirect(core_object *self, PyObject *args)
{
    PyObject *data, *index;
    long long count, inner;
    if (!PyArg_ParseTuple(args, "OOLL", &data, &index, &count, &inner)) return NULL;
    if (!is_tensor(data) || !is_tensor(index)) return refuse("indirect: data and index are tensors");
    PyObject *const both[2] = { data, index };
    if (tiles_here(self, both, 2)) return NULL;
    for (int i = 0; i < 2; i++) ((tensor *)both[i])->owner->pinned = true;
    const trn_indirect_args a = {
        .data = seen_by_calls((tensor *)data), .index = seen_by_calls((tensor *)index), .count = count, .inner = inner
    };
    const trn_tensor t = trn_core_indirect(self->core, &a);
    if (failed(self)) return NULL;
    return tensor_new(((tensor *)data)->owner, &t, ((tensor *)data)->dtype);
}

static PyMethodDef core_methods[] = {
    { "barrier", (PyCFunction)core_barrier, METH_VARARGS, "wait for other cores" },
    { "sendrecv", (PyCFunction)core_sendrecv, METH_VARARGS, "exchange tiles with another core" },
    { "collective", (PyCFunction)core_collective, METH_VARARGS, "all_reduce, all_gather, ..." },
    { "ring_rank", (PyCFunction)core_ring_rank, METH_VARARGS, "whose data have come round the ring" },
    { "tile", (PyCFunction)core_tile, METH_VARARGS, "a tile of SBUF or PSUM" },
    { "hbm", (PyCFunction)core_hbm, METH_VARARGS, "a tensor in HBM" },
    { "adopt", (PyCFunction)core_adopt, METH_O, "a tensor in HBM that cores share" },
    { "report", (PyCFunction)core_report, METH_NOARGS, "what it has done, as a dict" },
    { "tiles", (PyCFunction)core_tiles, METH_NOARGS, "the allocations of tiles that there are now" },
    { "trace", (PyCFunction)core_trace, METH_NOARGS, "JSON" },
    { "path", (PyCFunction)core_path, METH_NOARGS, "what the run waited for" },
    { "indirect", (PyCFunction)core_indirect, METH_VARARGS, "a view whose elements an index tile chooses" },
    { "settle", (PyCFunction)core_settle, METH_NOARGS, "what waits is done" },
    { "written", (PyCFunction)core_written, METH_O, "the caller has filled a tile" },
    { "fits", (PyCFunction)core_fits, METH_NOARGS, "at the end: what lived at the same time fits" },
    { "result", (PyCFunction)core_result, METH_O, "the caller looks at a tensor, all of which was written" },
    { "part", (PyCFunction)core_part, METH_VARARGS, "which program of a grid it runs" },
    { NULL, NULL, 0, NULL },
};

static PyObject *core_generation(core_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong((long)self->core->spec->generation - TRN_TRAINIUM1 + 1);
}
static PyObject *core_traced(core_object *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(self->traced);
}

static PyObject *got(PyObject *kept)
{
    PyObject *value = kept ? kept : Py_None;
    Py_INCREF(value);
    return value;
}
static int kept(PyObject **place, PyObject *value)
{
    PyObject *old = *place;
    *place = value == Py_None ? NULL : value;
    Py_XINCREF(*place);
    Py_XDECREF(old);
    return 0;
}
static PyObject *core_pending(core_object *self, void *unused) { return (void)unused, got(self->pending); }
static int core_set_pending(core_object *self, PyObject *value, void *unused)
{
    (void)unused;
    return kept(&self->pending, value);
}
static PyObject *core_observer(core_object *self, void *unused) { return (void)unused, got(self->observer); }
static int core_set_observer(core_object *self, PyObject *value, void *unused)
{
    (void)unused;
    return kept(&self->observer, value);
}

static PyObject *core_rank_id(core_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(self->rank ? self->rank->rank_id : 0);
}

static PyGetSetDef core_fields[] = {
    { "rank_id", (getter)core_rank_id, NULL, "which logical core it belongs to", NULL },
    { "pending", (getter)core_pending, (setter)core_set_pending, "has a method materialise(); called first", NULL },
    { "observer", (getter)core_observer, (setter)core_set_observer, "called in place of each instruction", NULL },
    { "generation", (getter)core_generation, NULL, "1, 2, 3 for Trainium1, 2, 3", NULL },
    { "traced", (getter)core_traced, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyTypeObject core_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "nki._core.Core",
    .tp_basicsize = sizeof(core_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_getset = core_fields,
    .tp_doc = "A NeuronCore: memory with its limits, every instruction, a clock per engine.",
    .tp_new = core_make,
    .tp_dealloc = (destructor)core_dealloc,
    .tp_methods = core_methods,
};

static PyTypeObject owner_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "nki._core.Owner",
    .tp_basicsize = sizeof(owner),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = (destructor)owner_dealloc,
};

static PyTypeObject tensor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "nki._core.View",
    .tp_basicsize = sizeof(tensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "A view of a tile or of a tensor in HBM.",
    .tp_dealloc = (destructor)tensor_dealloc,
    .tp_getset = tensor_fields,
    .tp_methods = tensor_methods,
};

static PyObject *alu_number(PyObject *self, PyObject *name)
{
    (void)self;
    const char *n = PyUnicode_AsUTF8(name);
    return n ? PyLong_FromLong(trn_alu_from_name(n)) : NULL;
}

static PyObject *act_number(PyObject *self, PyObject *name)
{
    (void)self;
    const char *n = PyUnicode_AsUTF8(name);
    return n ? PyLong_FromLong(trn_act_from_name(n)) : NULL;
}

/* One packed array of codes as another format's: decode(buffer, format) to float32, encode(its buffer, format). */
static PyObject *converted(PyObject *args, bool encode)
{
    Py_buffer from;
    int format;
    trn_error error = { TRN_OK, "" };
    if (!PyArg_ParseTuple(args, "y*i", &from, &format)) return NULL;
    const trn_format source = encode ? TRN_F32 : (trn_format)format, target = encode ? (trn_format)format : TRN_F32;
    const int64_t size = (int64_t)trn_format_bytes(source), n = size ? from.len / size : 0;
    PyObject *made = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(n * (int64_t)trn_format_bytes(target)));
    if (made) {
        const trn_convert_args a = { .dst = trn_tensor_1d(target, PyByteArray_AS_STRING(made), n),
                                     .src = trn_tensor_1d(source, from.buf, n),
                                     .error = &error };
        trn_status status = TRN_OK;
        Py_BEGIN_ALLOW_THREADS if (n) status = trn_convert(&a);
        Py_END_ALLOW_THREADS if (status)
        {
            Py_CLEAR(made);
            refuse("%s", error.text);
        }
    }
    PyBuffer_Release(&from);
    return made;
}

static PyObject *decode(PyObject *self, PyObject *args) { return (void)self, converted(args, false); }
static PyObject *encode(PyObject *self, PyObject *args) { return (void)self, converted(args, true); }

/* register(class): a subclass of View without fields of its own. */
static PyObject *register_class(PyObject *self, PyObject *type)
{
    (void)self;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &tensor_type))
        return refuse("not a class of views");
    Py_INCREF(type);
    tensor_class = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

/* fills(function): function(view, 0) fills a tile. */
static PyObject *set_fills(PyObject *self, PyObject *function)
{
    (void)self;
    Py_INCREF(function);
    Py_XSETREF(zeros_fill, function);
    Py_RETURN_NONE;
}

/* inside(tuple of strings): how the names of the files begin that are no kernel's. */
static PyObject *set_inside(PyObject *self, PyObject *prefixes)
{
    (void)self;
    if (!PyTuple_Check(prefixes)) return refuse("not a tuple");
    Py_INCREF(prefixes);
    Py_XSETREF(places_inside, prefixes);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "register", register_class, METH_O, "the class that views are made of" },
    { "decode", decode, METH_VARARGS, "codes as float32" },
    { "encode", encode, METH_VARARGS, "float32 as codes, rounded to nearest even" },
    { "fills", set_fills, METH_O, "what fills a tile with zeros" },
    { "inside", set_inside, METH_O, "which files are no kernel's" },
    { "alu", alu_number, METH_O, "an operator's number" },
    { "act", act_number, METH_O, "a function's number" },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "nki._core", "A simulated NeuronCore.", -1, functions, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit__core(void)
{
    PyTypeObject *const types[] = { &core_type, &cores_type, &host_type, &owner_type, &tensor_type, &instruction_type };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (PyType_Ready(types[i])) return NULL;
    PyObject *m = PyModule_Create(&module);
    if (!m) return NULL;
    nki_error = PyErr_NewExceptionWithDoc("nki.Error", "One sentence that says what the machine cannot do.",
                                          PyExc_RuntimeError, NULL);
    if (PyModule_AddObject(m, "Error", nki_error)) return NULL;
    Py_INCREF(nki_error);
    PyModule_AddObjectRef(m, "Core", (PyObject *)&core_type);
    PyModule_AddObjectRef(m, "Cores", (PyObject *)&cores_type);
    PyModule_AddObjectRef(m, "View", (PyObject *)&tensor_type);
    PyModule_AddIntConstant(m, "MAX_RANK", TRN_MAX_RANK);
    PyObject *all = PyDict_New();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        instruction *one = PyObject_New(instruction, &instruction_type);
        one->call = instruction_call;
        one->row = &rows[i];
        one->fields = rows[i].fields();
        PyDict_SetItemString(all, rows[i].name, (PyObject *)one);
        Py_DECREF(one);
    }
    PyModule_AddObject(m, "instruction", all);
    return m;
}
