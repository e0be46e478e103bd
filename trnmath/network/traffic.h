/* network/traffic.h - several collectives at once on the same links.
 * A part of trn_traffic.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NETWORK_TRAFFIC_H
#define TRNI_NETWORK_TRAFFIC_H

#include "collective_cost.h"

typedef enum trn_late {
    TRN_LATE_NONE = 0,
    TRN_LATE_UNIFORM,     /* from mean - spread to mean + spread */
    TRN_LATE_EXPONENTIAL, /* of that mean */
    TRN_LATE_NORMAL       /* with spread as its standard deviation */
} trn_late;

/* "none", "uniform", "exponential", "normal"; "unknown" for anything else. */
TRN_API const char *trn_late_name(trn_late late);

typedef struct trn_traffic_args {
    const trn_collective_args *collective; /* [count] on one and the same net */
    int count;
    const double *start_s;    /* [count] when each begins; NULL = all at 0 */
    const double *background; /* [levels] share of the rate of a level's links that others take, below 1; NULL = none */
    trn_late late;            /* how much later than that a rank is there; below 0 is 0. A rank is a core of a chip, as
                                 late in all collectives: drawn by random(seed, stream + sample, 2 (64 chip + core)) */
    double late_mean_s, late_spread_s;
    int samples; /* 0 = 1 */
    uint64_t seed, stream;
    trn_error *error;
} trn_traffic_args;

/* From the start of a collective to the end of its last rank; of all: from the first start to the last end. */
typedef struct trn_traffic_time {
    double mean_s, least_s, median_s, p90_s, p99_s, most_s; /* over the samples */
    double alone_s;          /* with nothing else, nobody late; of all: if none waited for another */
    trn_algorithm algorithm; /* that AUTO came to; of all: AUTO */
    int64_t messages;
} trn_traffic_time;

/* each: [count]; all: may be NULL. Both are written only when TRN_OK is returned. */
TRN_API trn_status trn_traffic(const trn_traffic_args *args, trn_traffic_time *each, trn_traffic_time *all);

#if TRNI_BODIES

#include <math.h>

#include "traffic_flow.h"
#include "../number/random.h"

TRN_API const char *trn_late_name(trn_late late)
{
    static const char *const name[] = { "none", "uniform", "exponential", "normal" };
    return (unsigned)late <= TRN_LATE_NORMAL ? name[(unsigned)late] : "unknown";
}

/* ---- checks ---- */

TRNI_FN bool trni_traffic_time_holds(double s) { return s >= 0 && s <= 1e9; }

TRNI_DRIVER trn_status trni_traffic_check_late(const trn_traffic_args *a)
{
    if ((unsigned)a->late > TRN_LATE_NORMAL)
        return trni_fail(a->error, TRN_EINVAL, "late = %d is no distribution", (int)a->late);
    if (!trni_traffic_time_holds(a->late_mean_s) || !trni_traffic_time_holds(a->late_spread_s))
        return trni_fail(a->error, TRN_EINVAL, "late_mean_s = %g and late_spread_s = %g: expected 0 to 1e9 s",
                         a->late_mean_s, a->late_spread_s);
    if (a->samples < 0 || a->samples > 1000000)
        return trni_fail(a->error, TRN_EINVAL, "samples = %d, expected 1 to 1000000", a->samples);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_traffic_check(const trn_traffic_args *a)
{
    if (!a->collective || a->count < 1 || a->count > 4096)
        return trni_fail(a->error, TRN_EINVAL, "%s, count = %d: expected 1 to 4096 collectives",
                         a->collective ? "collective is given" : "collective is NULL", a->count);
    for (int i = 0; i < a->count; i++) {
        if (!a->collective[i].net || a->collective[i].net != a->collective[0].net)
            return trni_fail(a->error, TRN_EINVAL, "collective[%d].net is %s", i,
                             a->collective[i].net ? "not that of collective[0]: links are shared on one network"
                                                  : "NULL: a collective needs a topology");
        if (a->start_s && !trni_traffic_time_holds(a->start_s[i]))
            return trni_fail(a->error, TRN_EINVAL, "start_s[%d] = %g, expected 0 to 1e9 s", i, a->start_s[i]);
    }
    trn_status status = trn_topology_check(a->collective[0].net, a->error);
    for (int l = 0; status == TRN_OK && a->background && l < a->collective[0].net->levels; l++)
        if (!(a->background[l] >= 0 && a->background[l] < 1))
            return trni_fail(a->error, TRN_EINVAL, "background[%d] = %g is no share from 0 to below 1", l,
                             a->background[l]);
    return status == TRN_OK ? trni_traffic_check_late(a) : status;
}

/* ---- what happens ---- */

/* Adds collective i, by the algorithm that a cost would have. */
TRNI_FN trn_status trni_traffic_add(const trn_traffic_args *a, int i, trni_program *p, trn_traffic_time *t)
{
    trn_collective_args ask = a->collective[i];
    trni_layout l;
    trni_pick pick;
    trni_schedule s;
    ask.error = a->error;
    trn_status status = trni_layout_init(&l, &ask);
    if (status == TRN_OK && ask.enforce_rules) status = trn_replica_group_check(&ask);
    if (status == TRN_OK) status = trni_pick_best(&l, (double)ask.bytes, &pick);
    if (status != TRN_OK) return status;
    l.whole = true;
    memset(&s, 0, sizeof s);
    s.ranks = s.block = l.ranks;
    if (pick.algorithm != TRN_POINT_TO_POINT) status = trni_layout_schedule(&l, pick.algorithm, pick.variant, &s);
    if (status != TRN_OK) return status;
    const int64_t before = p->messages;
    trni_program_collective(p, &l, &s, i);
    trni_schedule_free(&s);
    t->algorithm = pick.algorithm;
    t->messages = p->messages - before;
    return p->status;
}

/* How late a rank is. */
TRNI_FN double trni_traffic_late(const trn_traffic_args *a, int sample, int64_t rank)
{
    const uint64_t stream = a->stream + (uint64_t)sample, index = 2 * (uint64_t)rank;
    const double u = ((double)trn_random_u32(a->seed, stream, index) + 0.5) * 0x1p-32;
    const double v = ((double)trn_random_u32(a->seed, stream, index + 1) + 0.5) * 0x1p-32;
    double s = 0;
    switch (a->late) {
    case TRN_LATE_UNIFORM: s = a->late_mean_s + a->late_spread_s * (2 * u - 1); break;
    case TRN_LATE_EXPONENTIAL: s = -a->late_mean_s * log(u); break;
    case TRN_LATE_NORMAL: s = a->late_mean_s + a->late_spread_s * sqrt(-2 * log(u)) * cos(6.283185307179586 * v); break;
    default: break;
    }
    return s > 0 ? s : 0;
}

TRNI_FN double trni_traffic_start(const trn_traffic_args *a, int i) { return a->start_s ? a->start_s[i] : 0; }

TRNI_FN int trni_seconds_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Mean and quantiles: the least value that so many of the samples do not exceed. */
TRNI_FN void trni_traffic_summary(double *s, int n, trn_traffic_time *t)
{
    double sum = 0;
    qsort(s, (size_t)n, sizeof *s, trni_seconds_order);
    for (int i = 0; i < n; i++) sum += s[i];
    t->mean_s = sum / n;
    t->least_s = s[0];
    t->median_s = s[(n + 1) / 2 - 1];
    t->p90_s = s[(int)(((int64_t)n * 90 + 99) / 100) - 1];
    t->p99_s = s[(int)(((int64_t)n * 99 + 99) / 100) - 1];
    t->most_s = s[n - 1];
}

/* seconds: [count + 1][samples], the last row of all together. */
TRNI_FN void trni_traffic_samples(const trn_traffic_args *a, trni_flows *f, double *begin, double *seconds)
{
    const int samples = a->samples ? a->samples : 1;
    double first = trni_traffic_start(a, 0);
    for (int i = 1; i < a->count; i++)
        if (trni_traffic_start(a, i) < first) first = trni_traffic_start(a, i);
    for (int k = 0; k < samples; k++) {
        double last = 0;
        for (int i = 0; i < f->p->parties; i++)
            begin[i] = trni_traffic_start(a, f->p->owner[i]) - first + trni_traffic_late(a, k, f->p->rank[i]);
        trni_flows_run(f, begin, a->count);
        for (int i = 0; i < a->count; i++) {
            if (f->end[i] > last) last = f->end[i];
            seconds[(int64_t)i * samples + k] = f->end[i] - (trni_traffic_start(a, i) - first);
        }
        seconds[(int64_t)a->count * samples + k] = last;
    }
}

/* Runs the program `samples` times and sums the samples up. */
TRNI_FN trn_status trni_traffic_run(const trn_traffic_args *a, const trni_program *p, trn_traffic_time *t)
{
    const int samples = a->samples ? a->samples : 1;
    trni_flows f;
    const size_t rows = (size_t)(a->count + 1) * (size_t)samples;
    double *seconds = (double *)malloc(sizeof(double) * (rows + (size_t)p->parties));
    trn_status status = seconds ? trni_flows_init(&f, p, a->count, a->background) : TRN_ENOSPC;
    if (!seconds) return trni_fail(a->error, TRN_ENOSPC, "could not allocate the times of %d samples", samples);
    if (status == TRN_OK) {
        trni_traffic_samples(a, &f, seconds + (int64_t)(a->count + 1) * samples, seconds);
        for (int i = 0; i <= a->count; i++) trni_traffic_summary(seconds + (int64_t)i * samples, samples, &t[i]);
    }
    trni_flows_free(&f);
    free(seconds);
    return status;
}

/* Collective i by itself. */
TRNI_FN trn_status trni_traffic_alone(const trn_traffic_args *a, int i, double *seconds)
{
    trn_traffic_args one;
    trni_program p;
    trn_traffic_time t[2];
    memset(&one, 0, sizeof one);
    memset(&p, 0, sizeof p);
    memset(t, 0, sizeof t);
    one.collective = &a->collective[i];
    one.count = 1;
    one.error = p.error = a->error;
    p.net = a->collective[i].net;
    trn_status status = trni_traffic_add(&one, 0, &p, &t[0]);
    if (status == TRN_OK) status = trni_traffic_run(&one, &p, t);
    *seconds = t[0].mean_s;
    trni_program_free(&p);
    return status;
}

TRN_API trn_status trn_traffic(const trn_traffic_args *args, trn_traffic_time *each, trn_traffic_time *all)
{
    trni_program p;
    TRNI_ENTER(args);
    if (!each) return trni_fail(args->error, TRN_EINVAL, "each is NULL: there is no place for the times");
    trn_status status = trni_traffic_check(args);
    if (status != TRN_OK) return status;
    trn_traffic_time *t = (trn_traffic_time *)calloc((size_t)args->count + 1, sizeof *t);
    if (!t) return trni_fail(args->error, TRN_ENOSPC, "could not allocate the times of %d collectives", args->count);
    memset(&p, 0, sizeof p);
    p.net = args->collective[0].net;
    p.error = args->error;
    for (int i = 0; i < args->count && status == TRN_OK; i++) status = trni_traffic_add(args, i, &p, &t[i]);
    if (status == TRN_OK) status = trni_traffic_run(args, &p, t);
    double first = trni_traffic_start(args, 0), last = 0;
    for (int i = 0; i < args->count && status == TRN_OK; i++) {
        status = trni_traffic_alone(args, i, &t[i].alone_s);
        if (trni_traffic_start(args, i) < first) first = trni_traffic_start(args, i);
        if (trni_traffic_start(args, i) + t[i].alone_s > last) last = trni_traffic_start(args, i) + t[i].alone_s;
    }
    t[args->count].alone_s = last - first;
    t[args->count].messages = p.messages;
    if (status == TRN_OK) memcpy(each, t, sizeof *t * (size_t)args->count);
    if (status == TRN_OK && all) *all = t[args->count];
    trni_program_free(&p);
    free(t);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_TRAFFIC_H */
