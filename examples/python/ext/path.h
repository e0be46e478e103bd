/* path.h - what a run waited for: the chain of instructions that ends with the last one, by lines of the kernel.
 * Part of core.c. SPDX-License-Identifier: MIT
 *
 * DOES: keeps for every instruction when it was ready, began and was done, and the line that asked for it; walks back
 *     from the last one to be done: each began when its engine was free of another, or when what it reads or writes was
 *     there, and that is the one before it. Sums the time of the chain by engine and line.
 * DOES NOT: say how much faster the kernel gets without one of them: another chain may be as long.
 */
#ifndef TRNPY_PATH_H
#define TRNPY_PATH_H

#include "objects.h"

enum { PATH_ROWS = 4096 };

/* ---- lines ---- */

/* A line of a kernel that has asked for an instruction. */
typedef struct path_line {
    char file[48];
    int line;
} path_line;

struct path {
    trn_core_steps steps;
    path_line line[PATH_ROWS];
    int lines;
    char where[TRN_TRACE_WHERE]; /* the present line, for a trace */
};

/* The number of this line, from 1 on; 0 for those that there is no room for. */
static int path_line_of(path *p, const place *at)
{
    for (int i = p->lines - 1; i >= 0; i--)
        if (p->line[i].line == at->line && !strcmp(p->line[i].file, at->file)) return i + 1;
    if (p->lines == PATH_ROWS) return 0;
    memcpy(p->line[p->lines].file, at->file, sizeof at->file);
    p->line[p->lines].line = at->line;
    return ++p->lines;
}

/* An instruction is about to run, here. 0, or -1 and MemoryError. */
static int path_step(core_object *core)
{
    trn_core *const c = core->core;
    path *p = core->path;
    if (!p) p = core->path = (path *)calloc(1, sizeof *p);
    if (p && p->steps.count == p->steps.capacity) {
        const int64_t capacity = p->steps.capacity ? 2 * p->steps.capacity : 1024;
        trn_core_step *more = (trn_core_step *)realloc(p->steps.step, (size_t)capacity * sizeof *more);
        if (more) {
            p->steps.step = more;
            p->steps.capacity = capacity;
        } else {
            p = NULL;
        }
    }
    if (!p) {
        PyErr_NoMemory();
        return -1;
    }
    c->args.steps = &p->steps;
    place_now(&core->now);
    c->mark = core->now.line ? path_line_of(p, &core->now) : 0;
    if (!c->args.trace) return 0;
    snprintf(p->where, sizeof p->where, "%s:%d", core->now.file, core->now.line);
    c->args.trace->where = core->now.line ? p->where : NULL;
    return 0;
}

static void path_free(path *p)
{
    if (p) free(p->steps.step);
    free(p);
}

/* ---- the way back ---- */

typedef struct path_end {
    double end_s;
    int64_t step;
} path_end;

/* Steps of an engine (0: of all) by their ends. */
typedef struct path_order {
    path_end *end;
    int64_t count;
} path_order;

static int path_before(const void *x, const void *y)
{
    const path_end *a = (const path_end *)x, *b = (const path_end *)y;
    return a->end_s < b->end_s ? -1 : a->end_s > b->end_s ? 1 : a->step < b->step ? -1 : a->step > b->step;
}

static bool path_sort(path_order *o, const trn_core_steps *all, int engine)
{
    o->count = 0;
    o->end = (path_end *)malloc((size_t)(all->count + 1) * sizeof *o->end);
    for (int64_t i = 0; o->end && i < all->count; i++)
        if (!engine || (int)all->step[i].engine == engine) {
            const path_end one = { all->step[i].end_s, i };
            o->end[o->count++] = one;
        }
    if (o->end) qsort(o->end, (size_t)o->count, sizeof *o->end, path_before);
    return o->end != NULL;
}

/* The last that is done by then; -1: none. A picosecond is no difference. */
static int64_t path_done_by(const path_order *o, double end_s, int64_t but)
{
    int64_t low = 0, high = o->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (o->end[middle].end_s <= end_s + 1e-12)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && o->end[low - 1].step == but) low--;
    return low ? o->end[low - 1].step : -1;
}

/* What step i waited for last. A transfer begins its latency after it is ready: unless the engines were taken. */
static int64_t path_previous(const path_order order[TRN_ENGINE_COUNT], const trn_core *core, int64_t i)
{
    const trn_core_steps *all = core->args.steps;
    const trn_core_step *s = &all->step[i];
    const double free_s = s->ready_s + (s->engine == TRN_ENGINE_DMA ? core->spec->dma_latency_s + 1e-6 : 0);
    const bool taken = s->start_s > free_s + 1e-12;
    return path_done_by(&order[taken ? s->engine : 0], taken ? s->start_s : s->ready_s, i);
}

typedef struct path_sum {
    double work_s, latency_s; /* of the chain */
    int64_t steps;
} path_sum;

/* [PATH_ROWS + 1][TRN_ENGINE_COUNT], or null. */
static path_sum *path_sums(const trn_core *core)
{
    const trn_core_steps *all = core->args.steps;
    path_order order[TRN_ENGINE_COUNT];
    path_sum *sums = (path_sum *)calloc((PATH_ROWS + 1) * TRN_ENGINE_COUNT, sizeof *sums);
    bool good = sums != NULL;
    for (int e = 0; e < TRN_ENGINE_COUNT; e++) good = path_sort(&order[e], all, e) && good;
    for (int64_t i = good && order[0].count ? order[0].end[order[0].count - 1].step : -1, left = all->count; i >= 0;
         left--) {
        const trn_core_step *s = &all->step[i];
        const int64_t before = left > 0 ? path_previous(order, core, i) : -1;
        const double from_s = before >= 0 ? all->step[before].end_s : 0;
        path_sum *sum = &sums[s->mark * TRN_ENGINE_COUNT + s->engine];
        sum->steps++;
        sum->work_s += s->end_s - s->start_s;
        sum->latency_s += s->start_s > from_s ? s->start_s - from_s : 0;
        i = before;
    }
    for (int e = 0; e < TRN_ENGINE_COUNT; e++) free(order[e].end);
    return good ? sums : (free(sums), NULL);
}

/* path(): [(seconds of work, seconds of latency, instructions, engine, file, line)]. */
static PyObject *core_path(core_object *self, PyObject *unused)
{
    (void)unused;
    static const char *const engine[] = { "", "TensorE", "VectorE", "ScalarE", "GpSimdE", "DMA" };
    const path *p = self->path;
    PyObject *list = PyList_New(0);
    path_sum *sums = p && p->steps.count ? path_sums(self->core) : NULL;
    for (int i = 0; list && sums && i < (p->lines + 1) * TRN_ENGINE_COUNT; i++) {
        const path_line *at = i / TRN_ENGINE_COUNT ? &p->line[i / TRN_ENGINE_COUNT - 1] : NULL;
        if (!sums[i].steps) continue;
        PyObject *one = Py_BuildValue("(ddLssi)", sums[i].work_s, sums[i].latency_s, (long long)sums[i].steps,
                                      engine[i % TRN_ENGINE_COUNT], at ? at->file : "", at ? at->line : 0);
        if (!one || PyList_Append(list, one)) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    free(sums);
    return list;
}

#endif /* TRNPY_PATH_H */
