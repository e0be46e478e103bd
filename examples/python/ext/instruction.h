/* instruction.h - every instruction by its name, its args filled by a table.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: one row for each instruction with its fields in the args' struct; a call takes a core and values by position.
 * DOES NOT: know NKI's keywords and defaults (isa.py).
 */
#ifndef TRNPY_INSTRUCTION_H
#define TRNPY_INSTRUCTION_H

#include <stddef.h>

#include "aside.h"
#include "objects.h"
#include "path.h"

/* ---- instructions ---- */

typedef enum kind {
    END = 0,
    VIEW,    /* a Tensor */
    RESULT,  /* a Tensor that is written */
    EITHER,  /* a Tensor, or a float at the other offset */
    NUMBER,  /* float */
    FLAG,    /* bool */
    INT,     /* int, or an enum's number */
    LONG,    /* int64_t */
    PATTERN, /* [[step, number], ...] */
    MASK,    /* 32 ints */
    SOURCES, /* a list of Tensors */
    SCALES,  /* a list of floats */
    PAIR,    /* trn_pe_tile */
    WORD     /* EITHER whose number is also an integer's 32 bits, for operators on bits */
} kind;

typedef struct field {
    kind kind;
    size_t at, number;
    const char *name;
    size_t bits;
} field;

enum { SOURCES_MOST = 16, ARGS_BYTES = 2048 };

#define RUN(i)                                                                                                         \
    _Static_assert(sizeof(trn_##i##_args) <= ARGS_BYTES, "there is room for its args");                                \
    static trn_status run_##i(trn_core *core, const void *args)                                                        \
    {                                                                                                                  \
        return trn_core_##i(core, (const trn_##i##_args *)args);                                                       \
    }
#define INSTRUCTIONS(X)                                                                                                \
    X(nc_matmul, D(dst) V(stationary) V(moving) B(accumulate) B(double_row) B(is_transpose) B(is_stationary_onezero)   \
                     B(is_moving_onezero) P(tile_position) P(tile_size) I(rounding))                                   \
    X(nc_matmul_mx, D(dst) V(stationary) V(moving) V(stationary_scale) V(moving_scale) B(accumulate) P(tile_position)  \
                        P(tile_size) I(rounding))                                                                      \
    X(nc_transpose, D(dst) V(data))                                                                                    \
    X(vector_transpose, D(dst) V(data))                                                                                \
    X(tensor_tensor, D(dst) V(data1) V(data2) I(op) I(engine))                                                         \
    X(tensor_scalar,                                                                                                   \
      D(dst) V(data) I(op0) W(operand0, bits0) B(reverse0) I(op1) W(operand1, bits1) B(reverse1) I(engine))            \
    X(scalar_tensor_tensor, D(dst) V(data) I(op0) E(operand0) B(reverse0) I(op1) V(operand1) B(reverse1))              \
    X(tensor_copy, D(dst) V(src) I(engine))                                                                            \
    X(tensor_copy_predicated, D(dst) S(src, value) V(predicate) B(reverse_pred))                                       \
    X(memset, D(dst) N(value) I(engine) B(is_integer) L(integer))                                                      \
    X(reciprocal, D(dst) V(data))                                                                                      \
    X(tensor_reduce, D(dst) V(data) I(op) I(axes) B(negate) B(keepdims))                                               \
    X(tensor_scalar_reduce, D(dst) V(data) I(op0) E(operand0) B(reverse0) I(reduce_op) D(reduce_res) I(reduce_cmd)     \
                                E(reduce_init) B(reduce_res_negate))                                                   \
    X(tensor_scalar_cumulative, D(dst) V(src) I(op0) I(op1) E(imm0) E(imm1) I(reduce_cmd))                             \
    X(tensor_tensor_scan, D(dst) V(data0) V(data1) E(initial) I(op0) I(op1) B(reverse0) B(reverse1))                   \
    X(exponential, D(dst) V(src) E(max_value) D(reduce_res) I(reduce_cmd) E(reduce_init))                              \
    X(range_select, D(dst) V(on_true_tile) I(comp_op0) I(comp_op1) V(bound0) V(bound1) I(reduce_cmd) D(reduce_res)     \
                        I(reduce_op) L(range_start) N(on_false_value))                                                 \
    X(select_reduce,                                                                                                   \
      D(dst) V(predicate) V(on_true) E(on_false) D(reduce_res) I(reduce_cmd) I(reduce_op) B(reverse_pred))             \
    X(bn_stats, D(dst) V(data))                                                                                        \
    X(bn_aggr, D(dst) V(data))                                                                                         \
    X(max8, D(dst) V(src))                                                                                             \
    X(nc_find_index8, D(dst) V(data) V(vals))                                                                          \
    X(nc_match_replace8, D(dst) V(data) V(vals) N(imm) D(dst_idx))                                                     \
    X(nc_stream_shuffle, D(dst) V(src) M(shuffle_mask))                                                                \
    X(partition_broadcast, D(dst) V(src))                                                                              \
    X(quantize_mx, D(dst) V(src) D(dst_scale))                                                                         \
    X(rng, D(dst) I(engine))                                                                                           \
    X(rand2, D(dst) T(min) T(max))                                                                                     \
    X(dropout, D(dst) V(data) E(prob))                                                                                 \
    X(set_rng_seed, V(src_seeds))                                                                                      \
    X(rand_set_state, V(src_seeds) I(engine))                                                                          \
    X(rand_get_state, D(dst) I(engine))                                                                                \
    X(activation, D(dst) V(data) I(op) E(scale) E(bias) E(param) D(reduce_res) I(reduce_cmd))                          \
    X(activate2, D(dst) V(data) I(op) I(op0) I(op1) E(imm0) E(imm1) E(relu_param) B(reverse0) B(reverse1) I(reduce_op) \
                     D(reduce_res) I(reduce_cmd))                                                                      \
    X(iota, D(dst) A(pattern) I(offset) I(channel_multiplier))                                                         \
    X(affine_select, D(dst) A(pattern) I(channel_multiplier) V(on_true_tile) N(on_false_value) I(cmp_op) I(offset))    \
    X(local_gather, D(dst) V(src_buffer) V(index) I(num_elem_per_idx) L(num_valid_indices))                            \
    X(nc_n_gather, D(dst) V(data) V(indices))                                                                          \
    X(tensor_partition_reduce, D(dst) V(data) I(op))                                                                   \
    X(nonzero_with_count, D(dst) V(src) I(index_offset) I(padding_val))                                                \
    X(sequence_bounds, D(dst) V(segment_ids))                                                                          \
    X(topk, D(val_dst) D(idx_dst) V(src) L(n))                                                                         \
    X(dma_copy, D(dst) V(src) V(src_index) V(dst_index) I(oob_mode) I(dge_mode) I(priority) B(accumulate)              \
                    O(src_offset) O(dst_offset))                                                                       \
    X(dma_transpose, D(dst) V(src) V(index) I(oob_mode) I(dge_mode) M(axes) I(priority))                               \
    X(dma_compute, D(dst) X_SOURCES X_SCALES I(reduce_op) V(index) B(scatter) I(oob_mode) B(unique_indices))

#define V(f) { VIEW, offsetof(ARGS, f), 0, #f, 0 },
#define D(f) { RESULT, offsetof(ARGS, f), 0, #f, 0 },
#define E(f) { EITHER, offsetof(ARGS, f##_tile), offsetof(ARGS, f), #f, 0 },
#define T(f) E(f)
#define W(f, b) { WORD, offsetof(ARGS, f##_tile), offsetof(ARGS, f), #f, offsetof(ARGS, b) },
#define S(f, n) { EITHER, offsetof(ARGS, f), offsetof(ARGS, n), #f, 0 },
#define N(f) { NUMBER, offsetof(ARGS, f), 0, #f, 0 },
#define B(f) { FLAG, offsetof(ARGS, f), 0, #f, 0 },
#define I(f) { INT, offsetof(ARGS, f), 0, #f, 0 },
#define L(f) { LONG, offsetof(ARGS, f), 0, #f, 0 },
#define A(f) { PATTERN, offsetof(ARGS, f), 0, #f, 0 },
#define M(f) { MASK, offsetof(ARGS, f), 0, #f, 0 },
#define P(f) { PAIR, offsetof(ARGS, f), 0, #f, 0 },
#define O(f) V(f.value) V(f.of) I(f.dim)
#define X_SOURCES { SOURCES, offsetof(ARGS, srcs), offsetof(ARGS, count), "srcs", 0 },
#define X_SCALES { SCALES, offsetof(ARGS, scales), 0, "scales", 0 },

#define ROW_RUN(i, fields)                                                                                             \
    RUN(i)                                                                                                             \
    static const field *fields_##i(void)                                                                               \
    {                                                                                                                  \
        typedef trn_##i##_args ARGS;                                                                                   \
        static const field list[] = { fields{ END, 0, 0, NULL, 0 } };                                                  \
        return list;                                                                                                   \
    }
INSTRUCTIONS(ROW_RUN)

typedef struct row {
    const char *name;
    const field *(*fields)(void);
    trn_status (*run)(trn_core *core, const void *args);
    size_t error;
} row;

static const row rows[] = {
#define ROW(i, fields) { #i, fields_##i, run_##i, offsetof(trn_##i##_args, error) },
    INSTRUCTIONS(ROW)
#undef ROW
};

typedef struct scratch {
    trn_tensor source[SOURCES_MOST];
    float scale[SOURCES_MOST];
} scratch;

static bool is_tensor(PyObject *value)
{
    return Py_TYPE(value) == tensor_class || PyType_IsSubtype(Py_TYPE(value), &tensor_type);
}

static int put_view(PyObject *value, char *args, const field *f)
{
    if (value == Py_None) return 0;
    if (!is_tensor(value)) {
        PyObject *now = PyObject_CallMethod(value, "now", NULL); /* index.py's Placed */
        PyErr_Clear();
        if (now) {
            const int status = is_tensor(now) ? put_view(now, args, f) : (refuse("%s is out of bounds", f->name), -1);
            Py_DECREF(now);
            return status;
        }
        PyObject *why = PyObject_GetAttrString(value, "refusal"); /* index.py's Nowhere */
        PyErr_Clear();
        if (why && PyUnicode_Check(why))
            refuse("%s: %U", f->name, why);
        else if (why)
            refuse("%s names places that no access pattern can follow, only transfers: nl.load, nl.store, nl.copy and "
                   "tensor[...] = value move them",
                   f->name);
        else
            refuse("%s is a %s, not a tensor", f->name, Py_TYPE(value)->tp_name);
        Py_XDECREF(why);
        return -1;
    }
    if (f->kind == RESULT && ((tensor *)value)->owner->copied)
        return refuse("%s is a copy, as no access pattern steps backwards or along so many axes: what is written there "
                      "would be lost; write tensor[...] = value",
                      f->name),
               -1;
    if (tile_here(((tensor *)value)->owner)) return -1;
    const trn_tensor t = seen_by_calls((tensor *)value);
    memcpy(args + f->at, &t, sizeof t);
    return 0;
}

static int put_number(PyObject *value, char *args, size_t at)
{
    const double d = PyFloat_AsDouble(value);
    const float n = (float)d;
    if (d == -1 && PyErr_Occurred()) return -1;
    memcpy(args + at, &n, sizeof n);
    return 0;
}

/* The low 32 bits of an int; of a float that is one. */
static int put_bits(PyObject *value, char *args, size_t at)
{
    uint32_t bits = 0;
    if (PyLong_Check(value)) {
        bits = (uint32_t)PyLong_AsUnsignedLongLongMask(value);
    } else {
        const double d = PyFloat_AsDouble(value);
        if (d == -1 && PyErr_Occurred()) return -1;
        if (d >= -2147483648.0 && d <= 4294967295.0) bits = (uint32_t)(int64_t)d;
    }
    memcpy(args + at, &bits, sizeof bits);
    return 0;
}

static int put_int(PyObject *value, char *args, size_t at)
{
    const long long n = PyLong_AsLongLong(value);
    const int i = (int)n;
    if (n == -1 && PyErr_Occurred()) return -1;
    memcpy(args + at, &i, sizeof i);
    return 0;
}

static int put_list(PyObject *value, char *args, const field *f, scratch *room)
{
    PyObject *fast = PySequence_Fast(value, f->name);
    if (!fast) return -1;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast);
    int status = 0;
    if (count > (f->kind == MASK ? 32 : f->kind == PATTERN ? 4 : SOURCES_MOST)) {
        refuse("%s has %zd items", f->name, count);
        status = -1;
    }
    for (Py_ssize_t i = 0; i < count && !status; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        const field to = { VIEW, (size_t)i * sizeof(trn_tensor), 0, f->name, 0 };
        switch (f->kind) {
        case MASK: status = put_int(item, args, f->at + (size_t)i * sizeof(int)); break;
        case SOURCES: status = put_view(item, (char *)room->source, &to); break;
        case SCALES: status = put_number(item, (char *)room->scale, (size_t)i * sizeof(float)); break;
        default: {
            int64_t pair[TRN_MAX_RANK];
            trn_pattern *p = (trn_pattern *)(args + f->at);
            if (sizes_of(item, pair, "a pair") != 2) {
                if (!PyErr_Occurred()) refuse("%s is a list of pairs [step, number]", f->name);
                status = -1;
                break;
            }
            p->axis[i].step = (int32_t)pair[0];
            p->axis[i].num = (int32_t)pair[1];
            p->rank = (int)count;
        }
        }
    }
    if (f->kind == SOURCES && !status) {
        const trn_tensor *list = room->source;
        const int n = (int)count;
        memcpy(args + f->at, &list, sizeof list);
        memcpy(args + f->number, &n, sizeof n);
    }
    if (f->kind == SCALES && !status) {
        const float *list = room->scale;
        memcpy(args + f->at, &list, sizeof list);
    }
    Py_DECREF(fast);
    return status;
}

static int put_pair(PyObject *value, char *args, const field *f)
{
    int64_t pair[TRN_MAX_RANK];
    const int rank = sizes_of(value, pair, f->name);
    if (rank == 0) return 0;
    if (rank != 2) return PyErr_Occurred() ? -1 : (refuse("%s is a pair", f->name), -1);
    trn_pe_tile *tile = (trn_pe_tile *)(args + f->at);
    tile->row = (int)pair[0];
    tile->column = (int)pair[1];
    return 0;
}

static int put(PyObject *value, char *args, const field *f, scratch *room)
{
    if (value == Py_None) return 0;
    switch (f->kind) {
    case VIEW:
    case RESULT: return put_view(value, args, f);
    case EITHER:
        if (PyFloat_Check(value) || PyLong_Check(value)) return put_number(value, args, f->number);
        if (is_tensor(value)) return put_view(value, args, f);
        return put_number(value, args, f->number);
    case WORD:
        if (PyType_IsSubtype(Py_TYPE(value), &tensor_type)) return put_view(value, args, f);
        return put_number(value, args, f->number) || put_bits(value, args, f->bits) ? -1 : 0;
    case NUMBER: return put_number(value, args, f->at);
    case FLAG: {
        const bool b = PyObject_IsTrue(value) == 1;
        memcpy(args + f->at, &b, sizeof b);
        return 0;
    }
    case INT: return put_int(value, args, f->at);
    case LONG: {
        const int64_t n = PyLong_AsLongLong(value);
        if (n == -1 && PyErr_Occurred()) return -1;
        memcpy(args + f->at, &n, sizeof n);
        return 0;
    }
    case PAIR: return put_pair(value, args, f);
    default: return put_list(value, args, f, room);
    }
}

/* instruction(core, its fields in the table's order, ...) */
static PyObject *instruction_call(PyObject *callable, PyObject *const *given, size_t flags, PyObject *keywords);

typedef struct instruction {
    PyObject_HEAD vectorcallfunc call;
    const row *row;
    const field *fields;
} instruction;

static PyObject *instruction_repeat(PyObject *callable, PyObject *const *given, Py_ssize_t count);

static PyMethodDef instruction_methods[] = {
    { "repeat", (PyCFunction)(void (*)(void))instruction_repeat, METH_FASTCALL, "again and again, without Python" },
    { NULL, NULL, 0, NULL },
};

static PyObject *instruction_names(PyObject *callable, void *unused)
{
    const field *f = ((instruction *)callable)->fields;
    PyObject *list = PyList_New(0);
    (void)unused;
    for (; list && f->kind != END; f++) {
        PyObject *s = PyUnicode_FromString(f->name);
        if (s) PyList_Append(list, s);
        Py_XDECREF(s);
    }
    return list;
}

static PyGetSetDef instruction_fields[] = {
    { "names", instruction_names, NULL, "of its arguments, in order", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyTypeObject instruction_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "nki._core.Instruction",
    .tp_basicsize = sizeof(instruction),
    .tp_vectorcall_offset = offsetof(instruction, call),
    .tp_call = PyVectorcall_Call,
    .tp_getset = instruction_fields,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_methods = instruction_methods,
    .tp_doc = "One instruction of nki.isa: called with a core and its arguments in the order of names().",
};

static int fields_put(const instruction *self, PyObject *const *given, Py_ssize_t count, char *args, scratch *room)
{
    memset(args, 0, ARGS_BYTES);
    for (Py_ssize_t i = 1; i < count; i++) {
        const field *f = &self->fields[i - 1];
        if (f->kind == END) return refuse("%s has fewer arguments", self->row->name), -1;
        if (put(given[i], args, f, room)) return -1;
    }
    return 0;
}

/* The args of a core and arguments by position; the core, or null and a sentence. */
static core_object *instruction_fill(const instruction *self, PyObject *const *given, Py_ssize_t count, char *args,
                                     scratch *room)
{
    if (count < 1 || !PyObject_TypeCheck(given[0], &core_type))
        return (core_object *)refuse("%s: a core, then its arguments by position", self->row->name);
    core_object *core = (core_object *)given[0];
    use_begins(core);
    for (int turns = 0, more = 1; more;) {
        if (fields_put(self, given, count, args, room)) return NULL;
        more = use_settles(core, &turns);
        if (more < 0) return NULL;
    }
    return core;
}

static PyObject *instruction_ended(const core_object *core, trn_status status)
{
    if (!status) Py_RETURN_NONE;
    const char *why = core->core->failure.text;
    return refuse_core(core, why[0] ? why : trn_status_text(status));
}

/* What waits is made first. */
static int settle(core_object *core)
{
    PyObject *waits = core->pending;
    core->pending = NULL;
    PyObject *done = PyObject_CallMethod(waits, "materialise", NULL);
    Py_DECREF(waits);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* observer(instruction, name, core, arguments), which runs the instruction itself. */
static PyObject *observe(core_object *core, PyObject *callable, PyObject *const *given, Py_ssize_t count)
{
    PyObject *observer = core->observer, *list = PyTuple_New(count - 1);
    for (Py_ssize_t i = 1; list && i < count; i++) {
        Py_INCREF(given[i]);
        PyTuple_SET_ITEM(list, i - 1, given[i]);
    }
    core->observer = NULL;
    PyObject *said =
        list ? PyObject_CallFunction(observer, "OsOO", callable, ((instruction *)callable)->row->name, given[0], list)
             : NULL;
    core->observer = observer;
    Py_XDECREF(list);
    return said;
}

static PyObject *instruction_call(PyObject *callable, PyObject *const *given, size_t flags, PyObject *keywords)
{
    const instruction *self = (const instruction *)callable;
    char args[ARGS_BYTES] __attribute__((aligned(16)));
    scratch room;
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (keywords && PyTuple_GET_SIZE(keywords)) return refuse("%s takes no keywords here", self->row->name);
    if (count > 0 && PyObject_TypeCheck(given[0], &core_type)) {
        core_object *first = (core_object *)given[0];
        if (first->pending && settle(first)) return NULL;
        if (first->observer) return observe(first, callable, given, count);
    }
    core_object *core = instruction_fill(self, given, count, args, &room);
    if (!core) return NULL;
    if (path_step(core)) return NULL;
    trn_status status;
    Py_BEGIN_ALLOW_THREADS status = self->row->run(core->core, args);
    Py_END_ALLOW_THREADS return instruction_ended(core, status);
}

/* repeat(times, core, ...): the same instruction again and again, without Python between: what the C core takes. */
static PyObject *instruction_repeat(PyObject *callable, PyObject *const *given, Py_ssize_t count)
{
    const instruction *self = (const instruction *)callable;
    char args[ARGS_BYTES] __attribute__((aligned(16)));
    scratch room;
    const long long times = count ? PyLong_AsLongLong(given[0]) : -1;
    if (times < 0) return PyErr_Occurred() ? NULL : refuse("repeat: how often?");
    core_object *core = instruction_fill(self, given + 1, count - 1, args, &room);
    if (!core) return NULL;
    trn_status status = TRN_OK;
    Py_BEGIN_ALLOW_THREADS for (long long i = 0; i < times && !status; i++) status = self->row->run(core->core, args);
    Py_END_ALLOW_THREADS return instruction_ended(core, status);
}

#endif /* TRNPY_INSTRUCTION_H */
