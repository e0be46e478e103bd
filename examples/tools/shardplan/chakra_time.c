/* chakra_time.c - what each operation of a trace takes on the system, and when it runs.
 * SPDX-License-Identifier: MIT
 *
 * Work takes the longer of its operations at TensorE's rate and its bytes at HBM's, ideal as documented and expected at
 * the shares that --assumptions has, with the floor of an operation; work without a size takes what was recorded. A
 * collective takes what the library says of it while all other groups that do the same are at work, too; where there is
 * work between collectives they are those of a graph. A rank does one operation at a time of each kind: work, the host,
 * collectives, what it sends. What is ready first begins first. Communication beside work costs contention.
 * The range: every operation at the lower end of its own, and at the upper.
 */
#define _POSIX_C_SOURCE 200809L

#include "traces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_collective_cost.h>

/* ---- work ---- */

typedef struct rates {
    double flops, bytes; /* a second, of a chip */
    trn_plan_assumptions a;
    double spread;
    bool recorded;
} rates;

static bool rates_of(const sp_job *job, rates *r, char *why)
{
    const trn_plan_formats f = trn_plan_formats_default(&job->args.formats, job->args.precision);
    const trn_system_spec *system = trn_system_spec_of(job->net.system);
    r->flops = 1e12 * trn_spec_tflops(system, f.compute, false) / trn_spec_chips(system);
    r->bytes = job->own.chip.hbm_bytes_per_s;
    r->a = trn_plan_assumptions_default(&job->args.assumptions);
    r->spread = trn_evidence_of(TRN_EVIDENCE_OTHER).spread;
    r->recorded = job->options.chakra.recorded;
    return (isfinite(r->flops) && r->flops > 0) ||
           app_fail(why, "--format compute: %s has no published rate for %s", trn_system_name(job->net.system),
                    trn_format_name(f.compute));
}

static void price_range(double takes[SP_TIMES], double ideal, double expected, double spread)
{
    takes[SP_IDEAL] = ideal;
    takes[SP_EXPECTED] = fmax(ideal, expected);
    takes[SP_LOW] = fmax(ideal, takes[SP_EXPECTED] / spread);
    takes[SP_HIGH] = takes[SP_EXPECTED] * spread;
}

static void price_work(const rates *r, const chakra_node *n, double takes[SP_TIMES], int64_t *silent)
{
    const double flops = (double)n->flops, bytes = (double)n->bytes, recorded = 1e-6 * (double)n->micros;
    const bool sized = !n->host && (n->flops || n->bytes), told = n->ideal_s >= 0 && n->expected_s >= 0;
    if (sized && !r->recorded)
        price_range(takes, fmax(flops / r->flops, bytes / r->bytes),
                    fmax(flops / (r->flops * r->a.tensor_share), bytes / (r->bytes * r->a.hbm_share)) + r->a.kernel_s,
                    r->spread);
    else if (told)
        price_range(takes, n->ideal_s, n->expected_s, r->spread);
    else
        price_range(takes, recorded, recorded, 1); /* what was measured has no range */
    *silent += !sized && !told && !n->micros;
}

/* ---- communication: classes of groups that do the same and share no rank ---- */

typedef struct exchange {
    trn_collective op;
    int64_t bytes; /* as the library counts them */
    int count;     /* ranks of a group */
    int group;     /* -1: a pair */
    int pair[2];
    int64_t operation; /* the first */
    int class;
} exchange;

static const trn_collective none = TRN_COLLECTIVE_COUNT;

/* By the format's numbers; `none`: the library has no such collective. */
static trn_collective collective_of(chakra_collective c)
{
    static const trn_collective op[CHAKRA_COLLECTIVES] = {
        TRN_ALL_REDUCE, TRN_COLLECTIVE_COUNT, TRN_ALL_GATHER,     TRN_COLLECTIVE_COUNT, TRN_COLLECTIVE_COUNT,
        TRN_BROADCAST,  TRN_ALL_TO_ALL,       TRN_REDUCE_SCATTER, TRN_REDUCE_SCATTER,   TRN_ALL_REDUCE,
    };
    return op[c];
}

static bool refuse(const sp_traces *t, const sp_operation *o, const char *what, char *why)
{
    const chakra_node *n = &t->rank[o->rank].node[o->node];
    return app_fail(why, "rank %d, node %llu '%.60s': %.300s", o->rank, (unsigned long long)n->id, n->name, what);
}

static bool exchange_of(const sp_traces *t, int64_t operation, exchange *x, char *why)
{
    const sp_operation *o = &t->operation[operation];
    const uint64_t count = o->type == CHAKRA_SEND ? 2 : (uint64_t)t->group[o->group].count;
    uint64_t bytes = o->bytes;
    memset(x, 0, sizeof *x);
    x->op = o->type == CHAKRA_SEND ? TRN_SEND_RECV : collective_of(o->collective);
    if (x->op == none) return refuse(t, o, "reduce, gather and scatter have no price here", why);
    if (o->type == CHAKRA_COLLECTIVE && o->collective == CHAKRA_BARRIER) bytes = 0;
    if (x->op == TRN_ALL_GATHER && !io_multiply(bytes, count, &bytes)) bytes = CHAKRA_MOST + 1;
    if (bytes > CHAKRA_MOST) return refuse(t, o, "it gathers more than 2^60 bytes", why);
    x->bytes = (int64_t)bytes;
    x->count = (int)count;
    x->group = o->type == CHAKRA_SEND ? -1 : o->group;
    x->pair[0] = o->rank;
    x->pair[1] = o->peer;
    x->operation = operation;
    return true;
}

static int by_shape(const exchange *a, const exchange *b)
{
    const int64_t x[] = { (int64_t)a->op, a->bytes, a->count }, y[] = { (int64_t)b->op, b->bytes, b->count };
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* All alike are neighbours, and of those each group or pair. */
static int by_kind(const void *left, const void *right)
{
    const exchange *a = left, *b = right;
    const int64_t x[] = { a->group, a->group < 0 ? a->pair[0] : 0, a->group < 0 ? a->pair[1] : 0, a->operation };
    const int64_t y[] = { b->group, b->group < 0 ? b->pair[0] : 0, b->group < 0 ? b->pair[1] : 0, b->operation };
    const int shape = by_shape(a, b);
    if (shape) return shape;
    for (int i = 0; i < 4; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static bool same_ranks(const exchange *a, const exchange *b)
{
    return a->group == b->group && (a->group >= 0 || (a->pair[0] == b->pair[0] && a->pair[1] == b->pair[1]));
}

static const int *ranks_of(const sp_traces *t, const exchange *x)
{
    return x->group < 0 ? x->pair : t->group[x->group].rank;
}

typedef struct pricing {
    const sp_traces *t;
    sp_job *job;
    bool graph; /* is there work between them? */
    int *chips;
    int *class_of; /* [ranks] the class that has the rank already */
} pricing;

/* Takes the groups that share no rank with those of this class; the others are left for the next. */
static int gather_class(pricing *p, exchange *x, int64_t count, int class)
{
    int groups = 0;
    for (int64_t i = 0; i < count; i++) {
        const int *rank = ranks_of(p->t, &x[i]);
        bool free = x[i].class < 0;
        if (i && same_ranks(&x[i], &x[i - 1])) {
            x[i].class = x[i - 1].class;
            continue;
        }
        for (int k = 0; free && k < x[i].count; k++) free = p->class_of[rank[k]] != class;
        if (!free) continue;
        for (int k = 0; k < x[i].count; k++) {
            p->class_of[rank[k]] = class;
            p->chips[groups * x[i].count + k] = rank[k];
        }
        x[i].class = class;
        groups++;
    }
    return groups;
}

static trn_status ask(const pricing *p, const exchange *x, int groups, trn_cost *cost)
{
    trn_collective_args a = { .net = &p->job->net,
                              .op = x->op,
                              .bytes = x->bytes,
                              .chips = p->chips,
                              .count = x->count,
                              .groups = groups,
                              .target = x->op == TRN_SEND_RECV,
                              .calibration = p->job->args.calibration,
                              .in_graph = p->graph,
                              .error = &p->job->error };
    const trn_status status = trn_collective_cost(&a, cost);
    if (status != TRN_EUNSUPPORTED) return status;
    a.algorithm = TRN_RING; /* more ranks than any algorithm of the runtime is known to take: as plans have it */
    return trn_collective_cost(&a, cost);
}

/* All that are alike, one class after the other. */
static bool price_alike(pricing *p, exchange *x, int64_t count, int *class, char *why)
{
    const bool alone = x->count < 2;
    for (int64_t i = 0; i < count; i++) x[i].class = -1;
    for (int64_t left = count; left > 0; ++*class) {
        trn_cost cost = { 0 };
        const int groups = gather_class(p, x, count, *class);
        int64_t first = 0;
        while (x[first].class != *class) first++;
        if (!alone && ask(p, x, groups, &cost) != TRN_OK)
            return refuse(p->t, &p->t->operation[x[first].operation], p->job->error.text, why);
        for (int64_t i = 0; i < count; i++) {
            if (x[i].class != *class) continue;
            double *takes = p->t->takes[x[i].operation];
            takes[SP_IDEAL] = cost.time_s;
            takes[SP_EXPECTED] = cost.expected_s;
            takes[SP_LOW] = cost.expected_low_s;
            takes[SP_HIGH] = cost.expected_high_s;
            left--;
        }
    }
    return true;
}

static bool price_all(pricing *p, exchange *x, int64_t count, char *why)
{
    int class = 0;
    p->chips = app_memory((size_t)p->t->ranks + 2, sizeof *p->chips);
    p->class_of = app_memory((size_t)p->t->ranks, sizeof *p->class_of);
    for (int r = 0; r < p->t->ranks; r++) p->class_of[r] = -1;
    if (count) qsort(x, (size_t)count, sizeof *x, by_kind);
    bool ok = true;
    for (int64_t i = 0, n = 0; ok && i < count; i += n) {
        for (n = 1; i + n < count && by_shape(&x[i], &x[i + n]) == 0;) n++;
        ok = price_alike(p, &x[i], n, &class, why);
    }
    free(p->chips);
    free(p->class_of);
    return ok;
}

bool sp_traces_price(sp_job *job, sp_traces *t, char *why)
{
    rates r;
    exchange *x = app_resize(NULL, (size_t)t->operations, sizeof *x);
    int64_t count = 0;
    pricing p = { .t = t, .job = job };
    t->takes = app_memory((size_t)t->operations, sizeof *t->takes);
    bool ok = rates_of(job, &r, why);
    for (int64_t i = 0; ok && i < t->operations; i++) {
        const sp_operation *o = &t->operation[i];
        p.graph = p.graph || o->type == CHAKRA_WORK;
        if (o->type == CHAKRA_WORK) price_work(&r, &t->rank[o->rank].node[o->node], t->takes[i], &t->silent);
        if (o->type == CHAKRA_COLLECTIVE || o->type == CHAKRA_SEND) ok = exchange_of(t, i, &x[count++], why);
    }
    ok = ok && price_all(&p, x, count, why);
    free(x);
    return ok;
}

/* ---- when ---- */

typedef enum lane { LANE_WORK, LANE_HOST, LANE_TALK, LANE_SEND, LANES } lane;

typedef struct ready {
    double at;
    int64_t operation;
} ready;

typedef struct queue {
    const sp_traces *t;
    int which;
    sp_run *run;
    int64_t *left;         /* [operations] what it still waits for */
    int64_t *start, *next; /* who waits for whom */
    double *since;         /* [operations] when all that it waited for had ended */
    ready *heap;
    int64_t heaped;
    double *free_at; /* [ranks][LANES] */
    int64_t *latest; /* [ranks][LANES] the operation that was there last */
} queue;

static bool sooner(const ready *a, const ready *b)
{
    return a->at < b->at || (!(b->at < a->at) && a->operation < b->operation);
}

static void push(queue *q, double at, int64_t operation)
{
    int64_t i = q->heaped++;
    const ready new = { at, operation };
    for (; i > 0 && sooner(&new, &q->heap[(i - 1) / 2]); i = (i - 1) / 2) q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = new;
}

static ready pop(queue *q)
{
    const ready top = q->heap[0], last = q->heap[--q->heaped];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < q->heaped; i = child) {
        if (child + 1 < q->heaped && sooner(&q->heap[child + 1], &q->heap[child])) child++;
        if (sooner(&last, &q->heap[child])) break;
        q->heap[i] = q->heap[child];
    }
    q->heap[i] = last;
    return top;
}

/* The lane of an operation; LANES: it needs none. */
static lane lane_of(const sp_operation *o)
{
    switch (o->type) {
    case CHAKRA_WORK: return o->host ? LANE_HOST : LANE_WORK;
    case CHAKRA_COLLECTIVE: return LANE_TALK;
    case CHAKRA_SEND: return LANE_SEND;
    default: return LANES;
    }
}

/* How many ranks' lanes it takes, and which. */
static int takers(const sp_traces *t, const sp_operation *o)
{
    return o->type == CHAKRA_COLLECTIVE ? t->group[o->group].count : lane_of(o) < LANES;
}

static int taker(const sp_traces *t, const sp_operation *o, int i)
{
    return o->type == CHAKRA_COLLECTIVE ? t->group[o->group].rank[i] : o->rank;
}

/* Counts (next NULL) or lists who waits for whom: nodes of all ranks, and receives for their sends. */
static void wire(queue *q, bool list)
{
    const sp_traces *t = q->t;
    for (int r = 0; r < t->ranks; r++)
        for (int64_t i = 0; i < t->rank[r].count; i++) {
            const chakra_node *n = &t->rank[r].node[i];
            const int64_t to = t->operation_of[r][i];
            for (int64_t k = n->first; k < n->first + n->waits; k++) {
                const int64_t from = t->operation_of[r][t->rank[r].wait[k]];
                if (list) q->next[q->start[from]++] = to;
                if (!list) q->start[from + 1]++, q->left[to]++;
            }
        }
    for (int64_t i = 0; i < t->operations; i++) {
        const int64_t from = t->operation[i].before;
        if (from < 0) continue;
        if (list) q->next[q->start[from]++] = i;
        if (!list) q->start[from + 1]++, q->left[i]++;
    }
}

static void wire_all(queue *q)
{
    const int64_t n = q->t->operations;
    wire(q, false);
    for (int64_t i = 0; i < n; i++) q->start[i + 1] += q->start[i];
    q->next = app_memory((size_t)q->start[n] + 1, sizeof *q->next);
    wire(q, true);
    for (int64_t i = n; i > 0; i--) q->start[i] = q->start[i - 1];
    q->start[0] = 0;
}

static void begin(queue *q, const ready *now)
{
    const sp_operation *o = &q->t->operation[now->operation];
    const lane l = lane_of(o);
    double at = now->at;
    const int count = takers(q->t, o);
    for (int i = 0; i < count; i++) {
        const size_t place = (size_t)taker(q->t, o, i) * LANES + l;
        if (q->free_at[place] > at) at = q->free_at[place], q->run->after[now->operation] = q->latest[place];
    }
    const double end = at + q->t->takes[now->operation][q->which];
    for (int i = 0; i < count; i++) {
        const size_t place = (size_t)taker(q->t, o, i) * LANES + l;
        q->free_at[place] = end;
        q->latest[place] = now->operation;
    }
    q->run->start[now->operation] = at;
    if (end > q->run->end_s || q->run->last < 0) q->run->end_s = end, q->run->last = now->operation;
    for (int64_t k = q->start[now->operation]; k < q->start[now->operation + 1]; k++) {
        const int64_t to = q->next[k];
        if (end > q->since[to] || q->run->after[to] < 0) q->since[to] = end, q->run->after[to] = now->operation;
        if (--q->left[to] == 0) push(q, q->since[to], to);
    }
}

/* ---- what the rank that ends last did ---- */

typedef struct span {
    double begin, end;
} span;

static int by_begin(const void *left, const void *right)
{
    const span *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Overlapping spans become one; returns how many are left, and what they cover. */
static int64_t cover(span *s, int64_t count, double *covered)
{
    int64_t kept = 0;
    if (count) qsort(s, (size_t)count, sizeof *s, by_begin);
    for (int64_t i = 0; i < count; i++) {
        if (kept && s[i].begin <= s[kept - 1].end)
            s[kept - 1].end = fmax(s[kept - 1].end, s[i].end);
        else
            s[kept++] = s[i];
    }
    *covered = 0;
    for (int64_t i = 0; i < kept; i++) *covered += s[i].end - s[i].begin;
    return kept;
}

static void add_up(const sp_traces *t, int which, sp_run *run)
{
    const int rank = t->operation[run->last].rank;
    const int64_t n = t->rank[rank].count;
    span *s[2] = { app_memory((size_t)n + 1, sizeof **s), app_memory((size_t)n + 1, sizeof **s) };
    int64_t count[2] = { 0, 0 };
    for (int64_t i = 0; i < n; i++) {
        const int64_t o = t->operation_of[rank][i];
        const lane l = lane_of(&t->operation[o]);
        const int talks = l == LANE_TALK || l == LANE_SEND;
        if (l == LANES || !(t->takes[o][which] > 0)) continue;
        s[talks][count[talks]++] = (span){ run->start[o], run->start[o] + t->takes[o][which] };
    }
    count[0] = cover(s[0], count[0], &run->work_s);
    count[1] = cover(s[1], count[1], &run->talk_s);
    for (int64_t i = 0, k = 0; i < count[0] && k < count[1];) {
        run->both_s += fmax(0, fmin(s[0][i].end, s[1][k].end) - fmax(s[0][i].begin, s[1][k].begin));
        if (s[0][i].end < s[1][k].end)
            i++;
        else
            k++;
    }
    free(s[0]);
    free(s[1]);
}

bool sp_traces_run(const sp_traces *t, int which, sp_run *run, char *why)
{
    const size_t n = (size_t)t->operations, places = (size_t)t->ranks * LANES;
    queue q = { .t = t, .which = which, .run = run };
    int64_t done = 0;
    *run = (sp_run){ app_memory(n, sizeof *run->start), app_memory(n, sizeof *run->after), -1, 0, 0, 0, 0 };
    q.left = app_memory(n, sizeof *q.left);
    q.start = app_memory(n + 1, sizeof *q.start);
    q.since = app_memory(n, sizeof *q.since);
    q.heap = app_memory(n, sizeof *q.heap);
    q.free_at = app_memory(places, sizeof *q.free_at);
    q.latest = app_memory(places, sizeof *q.latest);
    for (size_t i = 0; i < n; i++) run->after[i] = -1;
    wire_all(&q);
    for (size_t i = 0; i < n; i++)
        if (!q.left[i]) push(&q, 0, (int64_t)i);
    for (; q.heaped; done++) {
        const ready now = pop(&q);
        begin(&q, &now);
    }
    bool ok = done == t->operations;
    for (size_t i = 0; !ok && i < n; i++) {
        if (!q.left[i]) continue;
        refuse(t, &t->operation[i], "it never begins: ranks wait for each other", why);
        break;
    }
    if (ok) add_up(t, which, run);
    free(q.left);
    free(q.start);
    free(q.next);
    free(q.since);
    free(q.heap);
    free(q.free_at);
    free(q.latest);
    return ok;
}

void sp_run_free(sp_run *run)
{
    free(run->start);
    free(run->after);
    memset(run, 0, sizeof *run);
}
