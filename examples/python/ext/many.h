/* many.h - several NeuronCores that run one kernel, each in a thread of its own: barriers, sendrecv, collectives.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: Cores(ranks=, ...) with run(callable), which is called once for each core with its Core; core_barrier, sendrecv
 *     and collectives, which wait for the others without the interpreter's lock.
 * DOES NOT: know grids or NKI's spelling of arguments (many.py).
 */
#ifndef TRNPY_MANY_H
#define TRNPY_MANY_H

#include "instruction.h"
#include "memory.h"
#include "objects.h"

enum { MANY_STACK = 64 << 20, MANY_CORES = 128 };

typedef struct cores_object {
    PyObject_HEAD trn_cores cores;
    bool begun;
    core_lets lets;
    PyObject *list; /* of Core, while the kernel runs: they hold this */
    long long events;
    PyObject *callable;
    PyObject *type, *value, *traceback; /* the first exception that a kernel raised */
} cores_object;

static PyTypeObject cores_type;

static void cores_dealloc(cores_object *self)
{
    /* A core's tiles hold its Core, which holds this: none is left. */
    Py_XDECREF(self->list);
    Py_XDECREF(self->type);
    Py_XDECREF(self->value);
    Py_XDECREF(self->traceback);
    if (self->begun) trn_cores_end(&self->cores);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static core_object *rank_new(cores_object *many, trn_cores_rank *rank)
{
    core_object *self = (core_object *)core_type.tp_alloc(&core_type, 0);
    if (!self) return NULL;
    self->core = &rank->core;
    self->rank = rank;
    self->begun = true;
    self->program = rank->program_id;
    self->lets = many->lets;
    self->programs = rank->programs;
    if (core_trace_begin(self, many->events)) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->traced) {
        rank->core.args.trace = &self->trace;
        trni_core_tracks(&self->trace);
    }
    Py_INCREF(many);
    self->many = (PyObject *)many;
    return self;
}

/* Programs of logical cores have met, and none of them runs. A collective is one of all programs of a logical core
 * where all have come to it. */
static void cores_met(void *user, const char *call, const int *member, int members, const trn_tensor *data)
{
    const cores_object *self = (const cores_object *)user;
    const trni_cores *work = self->cores.work;
    const bool collective = strcmp(call, "core_barrier") != 0 && strcmp(call, "sendrecv") != 0;
    for (int i = 0; self->list && i < members; i++) {
        const core_object *one = (const core_object *)PyList_GET_ITEM(self->list, member[i]);
        const int first = member[i] - one->program;
        uint64_t mask = 0;
        bool all = collective;
        for (int k = 0; k < members; k++)
            if (member[k] >= first && member[k] < first + one->programs) mask |= (uint64_t)1 << (member[k] - first);
        for (int k = 0; k < one->programs; k++)
            all = all && work->matched[first + k] &&
                  work->message[first + k].terms.op == work->message[member[i]].terms.op;
        if (all) mask = ((uint64_t)1 << one->programs) - 1;
        for (int h = 0; one->watched && h < one->core->hbm_tensors; h++) {
            const trni_hbm *known = &one->core->hbm[h];
            const char *at = (const char *)data->data;
            if (!known->watched || (data->rank && (at < known->base || at >= known->base + known->bytes))) continue;
            hbm_met(one->watched[h].state, mask);
        }
    }
}

/* Cores(ranks, programs, **options of a Core): so many logical cores of so many cores. */
static PyObject *cores_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    int ranks, programs;
    core_lets lets = { 0, 0 };
    trn_numerics parsed;
    long long events = 0;
    trn_cores_args a;
    memset(&a, 0, sizeof a);
    if (!PyArg_ParseTuple(args, "ii", &ranks, &programs) || core_options(keywords, &a.core, &parsed, &events, &lets))
        return NULL;
    if (ranks < 1 || programs < 1 || ranks > MANY_CORES / programs)
        return refuse("%d ranks of %d cores: up to %d cores run together", ranks, programs, MANY_CORES);
    cores_object *self = (cores_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    a.ranks = ranks * programs;
    a.lnc = programs;
    a.threads = 1;
    a.no_races = true; /* hbm.h looks, which lets programs leave the same bytes in a place; ranks run in turn */
    a.met = cores_met;
    a.met_user = self;
    a.stack_bytes = MANY_STACK;
    if (trn_cores_begin(&self->cores, &a)) {
        refuse("%s", self->cores.failure.text);
        Py_DECREF(self);
        return NULL;
    }
    self->begun = true;
    self->lets = lets;
    self->events = events;
    return (PyObject *)self;
}

/* Runs in the rank's thread. */
static trn_status cores_live(trn_cores_rank *rank, void *user)
{
    cores_object *self = (cores_object *)user;
    const PyGILState_STATE state = PyGILState_Ensure();
    trn_status status = TRN_OK;
    PyObject *core = self->list ? PyList_GetItem(self->list, rank->rank) : NULL;
    PyObject *result = core ? PyObject_CallOneArg(self->callable, core) : NULL;
    if (!result) {
        status = rank->core.failure.status ? rank->core.failure.status : TRN_EINVAL;
        if (!self->type)
            PyErr_Fetch(&self->type, &self->value, &self->traceback);
        else
            PyErr_Clear();
    }
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

/* run(callable): callable(core) for each that ranks() gave; the first exception goes on here. Once only. */
static PyObject *cores_run(cores_object *self, PyObject *callable)
{
    trn_status status;
    if (!self->list) return refuse("run comes after ranks");
    self->callable = callable;
    Py_BEGIN_ALLOW_THREADS status = trn_cores_run(&self->cores, cores_live, self);
    Py_END_ALLOW_THREADS self->callable = NULL;
    Py_CLEAR(self->list);
    if (self->type) {
        PyErr_Restore(self->type, self->value, self->traceback);
        self->type = self->value = self->traceback = NULL;
        return NULL;
    }
    if (status) return refuse("%s", self->cores.failure.text);
    Py_RETURN_NONE;
}

/* A Core for each, in the order of programs. They hold this object, which does not hold them. */
static PyObject *cores_ranks(cores_object *self, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < self->cores.ranks; i++) {
        core_object *one = rank_new(self, &self->cores.rank[i]);
        if (!one || PyList_Append(list, (PyObject *)one)) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    Py_XDECREF(self->list);
    Py_XINCREF(list);
    self->list = list;
    return list;
}

static PyMethodDef cores_methods[] = {
    { "run", (PyCFunction)cores_run, METH_O, "a kernel on every core" },
    { "ranks", (PyCFunction)cores_ranks, METH_NOARGS, "a Core for each, once" },
    { NULL, NULL, 0, NULL },
};

static PyTypeObject cores_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "nki._core.Cores",
    .tp_basicsize = sizeof(cores_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "NeuronCores of one logical core, which wait for each other.",
    .tp_new = cores_make,
    .tp_dealloc = (destructor)cores_dealloc,
    .tp_methods = cores_methods,
};

/* ---- calls that wait ---- */

static PyObject *call_ended(const core_object *self, trn_status status)
{
    if (!status) Py_RETURN_NONE;
    const char *why = self->rank->core.failure.text;
    return refuse_core(self, why[0] ? why : trn_status_text(status));
}

static int ranks_of(PyObject *sequence, int *list, int most)
{
    PyObject *fast = PySequence_Fast(sequence, "a list of cores");
    if (!fast) return -1;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast);
    int status = count > most ? (refuse("%zd cores are listed; %d can be", count, most), -1) : (int)count;
    for (Py_ssize_t i = 0; i < count && status >= 0; i++) {
        list[i] = (int)PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i));
        if (list[i] == -1 && PyErr_Occurred()) status = -1;
    }
    Py_DECREF(fast);
    return status;
}

/* barrier(data or None, cores, engine) */
static PyObject *core_barrier(core_object *self, PyObject *args)
{
    PyObject *data, *list;
    int engine, cores[64];
    trn_cores_barrier_args a;
    memset(&a, 0, sizeof a);
    if (!PyArg_ParseTuple(args, "OOi", &data, &list, &engine)) return NULL;
    if (!self->rank) Py_RETURN_NONE;
    if (data != Py_None && PyObject_TypeCheck(data, &tensor_type)) {
        if (tiles_here(self, &data, 1)) return NULL;
        a.data = ((tensor *)data)->t;
    }
    if (list != Py_None) {
        a.count = ranks_of(list, cores, 64);
        if (a.count < 0) return NULL;
        a.cores = cores;
    }
    a.engine = (trn_engine)engine;
    trn_status status;
    Py_BEGIN_ALLOW_THREADS status = trn_cores_barrier(self->rank, &a);
    Py_END_ALLOW_THREADS return call_ended(self, status);
}

/* sendrecv(dst, src, send_to_rank, recv_from_rank, pipe_id, gpsimd) */
static PyObject *core_sendrecv(core_object *self, PyObject *args)
{
    PyObject *dst, *src;
    int gpsimd;
    trn_cores_sendrecv_args a;
    memset(&a, 0, sizeof a);
    if (!PyArg_ParseTuple(args, "O!O!iiip", &tensor_type, &dst, &tensor_type, &src, &a.send_to_rank, &a.recv_from_rank,
                          &a.pipe_id, &gpsimd))
        return NULL;
    if (!self->rank)
        return refuse("sendrecv: the kernel runs on one core; start it with a grid of two, kernel[2](...)");
    PyObject *const both[2] = { dst, src };
    if (tiles_here(self, both, 2)) return NULL;
    a.dst = ((tensor *)dst)->t;
    a.src = ((tensor *)src)->t;
    a.dma_engine = gpsimd ? TRN_DMA_ENGINE_GPSIMD : TRN_DMA_ENGINE_DMA;
    trn_status status;
    Py_BEGIN_ALLOW_THREADS status = trn_cores_sendrecv(self->rank, &a);
    Py_END_ALLOW_THREADS return call_ended(self, status);
}

/* ---- collectives ---- */

typedef trn_status collective_call(trn_cores_rank *self, const trn_cores_collective_args *args);

static const struct {
    const char *name;
    collective_call *call;
} collectives[] = {
    { "all_reduce", trn_cores_all_reduce },
    { "all_gather", trn_cores_all_gather },
    { "reduce_scatter", trn_cores_reduce_scatter },
    { "all_to_all", trn_cores_all_to_all },
    { "all_gather_v", trn_cores_all_gather_v },
    { "all_to_all_v", trn_cores_all_to_all_v },
    { "collective_permute", trn_cores_collective_permute },
    { "collective_permute_implicit", trn_cores_collective_permute_implicit },
    { "collective_permute_implicit_reduce", trn_cores_collective_permute_implicit_reduce },
};

typedef struct collective_room {
    trn_tensor dst[TRN_CORES_TENSORS], src[TRN_CORES_TENSORS], src1[TRN_CORES_TENSORS];
    int rank[MANY_CORES], pair[MANY_CORES][2], channel[TRN_CORES_TENSORS];
} collective_room;

/* The views of a list; how many, or -1 and a sentence. */
static int views_of(PyObject *list, trn_tensor *view)
{
    PyObject *fast = list == Py_None ? NULL : PySequence_Fast(list, "a list of tensors");
    if (!fast) return list == Py_None ? 0 : -1;
    int count = (int)PySequence_Fast_GET_SIZE(fast);
    if (count > TRN_CORES_TENSORS) {
        refuse("%d tensors in one collective; %d can be", count, (int)TRN_CORES_TENSORS);
        count = -1;
    }
    for (int i = 0; i < count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        if (!PyObject_TypeCheck(item, &tensor_type)) {
            refuse("a %s is no tensor", Py_TYPE(item)->tp_name);
            count = -1;
            break;
        }
        if (tile_here(((tensor *)item)->owner)) {
            count = -1;
            break;
        }
        view[i] = seen_by_calls((tensor *)item);
    }
    Py_DECREF(fast);
    return count;
}

/* Lists of ranks, all of one length. */
static int groups_of(PyObject *list, int *rank, trn_replica_group *group)
{
    if (list == Py_None) return 0;
    PyObject *fast = PySequence_Fast(list, "a replica group is a list of lists of ranks");
    if (!fast) return -1;
    const Py_ssize_t groups = PySequence_Fast_GET_SIZE(fast);
    int status = 0, all = 0;
    for (Py_ssize_t i = 0; i < groups && !status; i++) {
        const int count = ranks_of(PySequence_Fast_GET_ITEM(fast, i), rank + all, MANY_CORES - all);
        if (count < 0)
            status = -1;
        else if (i && count != group->count)
            status = (refuse("the lists of a replica group differ in length"), -1);
        group->count = count;
        all += count;
    }
    group->groups = (int)groups;
    group->rank = groups ? rank : NULL;
    Py_DECREF(fast);
    return status;
}

static int pairs_of(PyObject *list, int (*pair)[2])
{
    PyObject *fast = list == Py_None ? NULL : PySequence_Fast(list, "a list of pairs of ranks");
    if (!fast) return list == Py_None ? 0 : -1;
    int count = (int)PySequence_Fast_GET_SIZE(fast);
    if (count > MANY_CORES) count = (refuse("there are %d pairs", count), -1);
    for (int i = 0; i < count; i++) {
        const int two = ranks_of(PySequence_Fast_GET_ITEM(fast, i), pair[i], 2);
        if (two == 2) continue;
        if (two >= 0) refuse("a pair has two ranks, not %d", two);
        count = -1;
        break;
    }
    Py_DECREF(fast);
    return count;
}

/* What _v takes: (metadata, recv_counts_known, has_rdispls), or None. */
static int counts_of(PyObject *given, trn_cores_collective_args *a)
{
    PyObject *metadata;
    int known = 0, places = 0;
    if (given == Py_None) return 0;
    if (!PyArg_ParseTuple(given, "Opp", &metadata, &known, &places)) return -1;
    if (!PyObject_TypeCheck(metadata, &tensor_type))
        return refuse("metadata_tensor is a %s, not a tensor", Py_TYPE(metadata)->tp_name), -1;
    if (tile_here(((tensor *)metadata)->owner)) return -1;
    a->metadata = seen_by_calls((tensor *)metadata);
    a->recv_counts_known = known != 0;
    a->has_rdispls = places != 0;
    return 0;
}

/* One tensor lies in the args themselves, several in lists. */
static int collective_fill(PyObject *args, trn_cores_collective_args *a, collective_room *room, const char **name)
{
    PyObject *dsts, *srcs, *srcs1, *groups, *pairs, *channels, *counts;
    int op;
    if (!PyArg_ParseTuple(args, "sOOOOiiOOO", name, &dsts, &srcs, &srcs1, &groups, &a->collective_dim, &op, &pairs,
                          &channels, &counts) ||
        counts_of(counts, a))
        return -1;
    const int count = views_of(dsts, room->dst), from = views_of(srcs, room->src), more = views_of(srcs1, room->src1);
    if (count < 0 || from < 0 || more < 0) return -1;
    if (count != from || (more && more != count)) return refuse("%d dsts and %d srcs", count, from), -1;
    a->op = (trn_alu)op;
    if (groups_of(groups, room->rank, &a->replica_group)) return -1;
    a->pairs = pairs_of(pairs, room->pair);
    if (a->pairs < 0) return -1;
    if (a->pairs) a->source_target_pairs = (const int(*)[2])room->pair;
    if (channels != Py_None && ranks_of(channels, room->channel, TRN_CORES_TENSORS) < 0) return -1;
    if (channels != Py_None) a->channel_ids = room->channel;
    if (count == 1) {
        a->dst = room->dst[0];
        a->src = room->src[0];
        if (more) a->src1 = room->src1[0];
    } else {
        a->count = count;
        a->dsts = room->dst;
        a->srcs = room->src;
        if (more) a->srcs1 = room->src1;
    }
    return 0;
}

/* collective(name, dsts, srcs, srcs1, groups, collective_dim, op, pairs, channels, counts) */
static PyObject *core_collective(core_object *self, PyObject *args)
{
    trn_cores_collective_args a;
    collective_room room;
    const char *name;
    memset(&a, 0, sizeof a);
    use_begins(self);
    for (int turns = 0, again = 1; again;) {
        if (collective_fill(args, &a, &room, &name)) return NULL;
        again = use_settles(self, &turns);
        if (again < 0) return NULL;
    }
    if (!self->rank) Py_RETURN_NOTIMPLEMENTED;
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++) {
        if (strcmp(name, collectives[i].name) != 0) continue;
        trn_status status;
        Py_BEGIN_ALLOW_THREADS status = collectives[i].call(self->rank, &a);
        Py_END_ALLOW_THREADS return call_ended(self, status);
    }
    return refuse("there is no collective %s", name);
}

/* ring_rank(iteration, groups, channel): whose data a rank has after so many implicit permutes. */
static PyObject *core_ring_rank(core_object *self, PyObject *args)
{
    int iteration, channel, rank[MANY_CORES];
    PyObject *groups;
    trn_replica_group group = { NULL, 0, 0 };
    if (!PyArg_ParseTuple(args, "iOi", &iteration, &groups, &channel) || groups_of(groups, rank, &group)) return NULL;
    if (!self->rank) return PyLong_FromLong(0);
    return PyLong_FromLong(trn_cores_current_processing_rank_id(self->rank, iteration, &group, channel));
}

#endif /* TRNPY_MANY_H */
