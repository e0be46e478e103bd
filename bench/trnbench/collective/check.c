/* check.c - collectives by their definition, one element after another.
 * SPDX-License-Identifier: MIT
 *
 * What a rank must hold is stated here from what the operation is (concatenation, transposition, sum), with two pieces
 * of the library: the scalar codec of a format, and in which order a ring visits its ranks.
 *
 * The bound of a sum of n numbers x: each x passes m roundings to the wire (unit u) and at most n - 1 additions in
 * binary32 (unit v), each of which multiplies it by at most 1 + u or 1 + v; a result below the normal range adds half
 * the smallest subnormal s for each of at most n - 1 sums; and the reference itself adds n - 1 roundings of binary64
 * (unit w):
 *
 *     |got - sum x| <= ((1 + u)^m (1 + v)^(n-1) - 1 + n w) sum |x| + n s (1 + u)^m / 2
 *
 * m is at most the steps of the reduction, and one for the sum inside a chip or a pair, each with the levels of a tree
 * of 16 sources; never more than n - 1, because each sum joins at least two parts. For integers, which are kept small
 * enough, the bound is 0.
 */
#include "collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct field {
    const trn_collective_args *ask;
    bool integers; /* of the wire; else numbers with a fraction */
    tb_cc_check *check;
    int ranks, groups;
    int64_t n;               /* elements of a whole buffer */
    int64_t room;            /* elements between views: an all_to_all's output may be longer than n */
    size_t bytes;            /* of an element */
    unsigned char *in, *out; /* [groups][ranks][room] codes */
    float *value;            /* [groups][ranks][n] what in stands for, for sums */
    trn_tensor *src, *dst;   /* [groups][ranks] */
    double bound_relative, bound_absolute;
    int *order; /* [ranks] a ring's, or NULL */
    int *place; /* [ranks] where a rank stands in it */
} field;

/* ---- shares: ceil(n / ranks) each, the last ones short or empty ---- */

static int64_t share_first(const field *f, int rank)
{
    const int64_t each = (f->n + f->ranks - 1) / f->ranks;
    return each * rank < f->n ? each * rank : f->n;
}

static int64_t share_count(const field *f, int rank) { return share_first(f, rank + 1) - share_first(f, rank); }

/* ---- codes ---- */

static int64_t at(const field *f, int group, int rank) { return (int64_t)group * f->ranks + rank; }

static uint32_t code_of(const field *f, const unsigned char *codes, int64_t i)
{
    const unsigned char *p = codes + (size_t)i * f->bytes;
    uint32_t code = 0;
    for (size_t b = 0; b < f->bytes; b++)
        code |= (uint32_t)p[b] << 8 * b; /* little endian, as every host of this library */
    return code;
}

static void wrong(field *f, int group, int rank, int64_t i, const char *text)
{
    if (f->check->wrong++ == 0)
        snprintf(f->check->first, sizeof f->check->first, "element %lld of rank %d of group %d %s", (long long)i, rank,
                 group, text);
}

static void must_be(field *f, int group, int rank, int64_t i, uint32_t expected)
{
    char text[96];
    const uint32_t got = code_of(f, f->out, at(f, group, rank) * f->room + i);
    f->check->compared++;
    if (got == expected) return;
    snprintf(text, sizeof text, "is %0*x and should be %0*x", (int)(2 * f->bytes), (unsigned)got, (int)(2 * f->bytes),
             (unsigned)expected);
    wrong(f, group, rank, i, text);
}

static uint32_t input(const field *f, int group, int rank, int64_t i)
{
    return code_of(f, f->in, at(f, group, rank) * f->room + i);
}

/* ---- moves ---- */

static int receives_from(const field *f, int rank)
{
    if (f->ask->op == TRN_BROADCAST) return f->ask->root;
    if (f->ask->op == TRN_SEND_RECV)
        return rank == f->ranks - 1 && f->ranks > 1 ? 0 : -1; /* as asked below: 0 to the last */
    return (rank + f->ranks - 1) % f->ranks;                  /* permute: from the rank before */
}

static void check_move(field *f, int group, int rank)
{
    for (int from = 0; f->ask->op == TRN_ALL_GATHER && from < f->ranks; from++)
        for (int64_t i = 0; i < share_count(f, from); i++)
            must_be(f, group, rank, share_first(f, from) + i, input(f, group, from, i));
    for (int from = 0; f->ask->op == TRN_ALL_TO_ALL && from < f->ranks; from++)
        for (int64_t i = 0; i < share_count(f, rank); i++)
            must_be(f, group, rank, share_count(f, rank) * from + i, input(f, group, from, share_first(f, rank) + i));
    if (f->ask->op < TRN_BROADCAST) return;
    const int from = receives_from(f, rank);
    for (int64_t i = 0; from >= 0 && i < f->n; i++) must_be(f, group, rank, i, input(f, group, from, i));
}

/* ---- sums ---- */

/* The fold around the ring: the partial for `owner` begins behind it and comes to it last. */
static uint32_t ring_fold(const field *f, int group, int owner, int64_t i)
{
    const float *x = f->value + at(f, group, 0) * f->n;
    float sum = x[f->order[(f->place[owner] + 1) % f->ranks] * f->n + i];
    uint32_t code = trn_encode(f->ask->wire, sum, TRN_NEAREST_EVEN, f->ask->overflow, 0);
    for (int k = 2; k <= f->ranks; k++) {
        sum = sum + x[f->order[(f->place[owner] + k) % f->ranks] * f->n + i];
        code = trn_encode(f->ask->wire, sum, TRN_NEAREST_EVEN, f->ask->overflow, 0);
        sum = trn_decode(f->ask->wire, code);
    }
    return code;
}

static void check_sum(field *f, int group, int rank, int owner, int64_t i, int64_t where)
{
    double sum = 0, magnitude = 0;
    if (f->order) {
        must_be(f, group, rank, where, ring_fold(f, group, owner, i));
        return;
    }
    for (int r = 0; r < f->ranks; r++) {
        const double x = (double)f->value[at(f, group, r) * f->n + i];
        sum += x;
        magnitude += fabs(x);
    }
    const double got = (double)trn_decode(f->ask->wire, code_of(f, f->out, at(f, group, rank) * f->room + where));
    const double bound = f->bound_relative * magnitude + f->bound_absolute;
    char text[128];
    f->check->compared++;
    if (fabs(got - sum) <= bound) return; /* a NaN is wrong */
    snprintf(text, sizeof text, "is %.9g and should be %.9g, give or take %.3g", got, sum, bound);
    wrong(f, group, rank, where, text);
}

/* Of an all_reduce, rank 0 is compared with the definition and the others with rank 0. */
static void check_reduction(field *f, int group, int rank)
{
    const bool all = f->ask->op == TRN_ALL_REDUCE;
    for (int owner = 0; owner < f->ranks; owner++)
        for (int64_t i = 0; i < share_count(f, owner); i++) {
            const int64_t element = share_first(f, owner) + i;
            if (!all && owner == rank)
                check_sum(f, group, rank, owner, element, i);
            else if (all && rank == 0)
                check_sum(f, group, rank, owner, element, element);
            else if (all)
                must_be(f, group, rank, element, code_of(f, f->out, at(f, group, 0) * f->room + element));
        }
}

/* ---- the bound ---- */

static void set_bound(field *f, const trn_cost *cost)
{
    const trn_format_limits l = trn_format_limits_of(f->ask->wire);
    const double n = f->ranks, u = l.epsilon / 2, v = 0x1p-24, w = 0x1p-53;
    const bool both = f->ask->op == TRN_ALL_REDUCE && !cost->single_step;
    int levels = 1;
    for (int64_t reach = 16; reach < f->ranks; reach *= 16) levels++;
    double m = levels * ((both ? (cost->steps + 1) / 2 : cost->steps) + 1.0);
    if (m > n - 1) m = n - 1;
    f->bound_relative = f->bound_absolute = 0;
    if (f->integers) return;
    f->bound_relative = expm1(m * log1p(u) + (n - 1) * log1p(v)) + n * w;
    f->bound_absolute = n * l.min_subnormal / 2 * exp(m * log1p(u));
}

static trn_status no_memory(const field *f, const char *what)
{
    trn_error *error = f->ask->error;
    if (error) {
        error->status = TRN_ENOSPC;
        snprintf(error->text, sizeof error->text, "not enough memory %s %d ranks", what, f->ranks);
    }
    return TRN_ENOSPC;
}

/* The order in which a ring goes round: the library's, and a permutation. */
static trn_status set_order(field *f)
{
    trni_layout layout;
    trni_schedule schedule;
    trn_status status = trni_layout_init(&layout, f->ask);
    if (status == TRN_OK) status = trni_layout_schedule(&layout, TRN_RING, 0, &schedule);
    if (status != TRN_OK) return status;
    f->order = malloc(sizeof *f->order * (size_t)f->ranks * 2);
    if (f->order) {
        f->place = f->order + f->ranks;
        for (int p = 0; p < f->ranks; p++) f->place[p] = -1;
        for (int p = 0; p < f->ranks; p++) {
            f->order[p] = trni_rank_at(&schedule, &schedule.channel[0], p);
            f->place[f->order[p]] = p;
        }
        for (int r = 0; r < f->ranks; r++)
            if (f->place[r] < 0) wrong(f, 0, r, 0, "is not in the ring");
    }
    trni_schedule_free(&schedule);
    return f->order ? TRN_OK : no_memory(f, "for the order of");
}

/* ---- inputs and views ---- */

/* So small that no sum leaves the format: the largest magnitude over twice the ranks, but 1 at most for numbers with a
 * fraction; integers too coarse for that are zero on most ranks. */
static float random_value(const field *f, uint64_t seed, int64_t view, int64_t i)
{
    const uint32_t word = trn_random_u32(seed, (uint64_t)view, (uint64_t)i);
    const double max = trn_format_limits_of(f->ask->wire).max, most = max / 2 / f->ranks;
    if (!f->integers) {
        const double signed_unit = (double)word * 0x1p-31 - 1;
        return (float)(signed_unit * (most < 1 ? most : 1));
    }
    const int64_t limit = most > 100 ? 100 : most < 1 ? (view % f->ranks < (int64_t)max) : (int64_t)most;
    return (float)((int64_t)word % (limit + 1)); /* unsigned formats too */
}

static void fill(field *f, uint64_t seed)
{
    for (int64_t view = 0; view < (int64_t)f->groups * f->ranks; view++)
        for (int64_t i = 0; i < f->n; i++) {
            const uint32_t code =
                trn_encode(f->ask->wire, random_value(f, seed, view, i), TRN_NEAREST_EVEN, TRN_SATURATE, 0);
            unsigned char *p = f->in + (size_t)(view * f->room + i) * f->bytes;
            for (size_t b = 0; b < f->bytes; b++) p[b] = (unsigned char)(code >> 8 * b);
            f->value[view * f->n + i] = trn_decode(f->ask->wire, code);
        }
}

static void set_views(field *f)
{
    const bool gathers = f->ask->op == TRN_ALL_GATHER, scatters = f->ask->op == TRN_REDUCE_SCATTER;
    for (int64_t v = 0; v < (int64_t)f->groups * f->ranks; v++) {
        const int rank = (int)(v % f->ranks);
        const int64_t share = share_count(f, rank), out = f->ask->op == TRN_ALL_TO_ALL ? share * f->ranks
                                                          : scatters                   ? share
                                                                                       : f->n;
        const size_t offset = (size_t)(v * f->room) * f->bytes;
        f->src[v] = trn_tensor_1d(f->ask->wire, f->in + offset, gathers ? share : f->n);
        f->dst[v] = trn_tensor_1d(f->ask->wire, f->out + offset, out);
    }
}

static bool allocate(field *f)
{
    const size_t views = (size_t)f->groups * (size_t)f->ranks, codes = views * (size_t)f->room * f->bytes;
    f->in = malloc(codes + 1);
    f->out = malloc(codes + 1);
    f->value = malloc(views * (size_t)f->n * sizeof *f->value + 1);
    f->src = calloc(views, sizeof *f->src);
    f->dst = calloc(views, sizeof *f->dst);
    if (f->out) memset(f->out, 0xa5, codes);
    return f->in && f->out && f->value && f->src && f->dst;
}

static void release(field *f) { free(f->in), free(f->out), free(f->value), free(f->src), free(f->dst), free(f->order); }

/* ---- the call ---- */

static trn_status run(field *f, trn_collective_args *args, uint64_t seed)
{
    trn_cost cost;
    trn_status status = trn_collective_cost(args, &cost);
    if (status != TRN_OK) return status;
    if (!allocate(f)) return no_memory(f, "to check");
    fill(f, seed);
    set_views(f);
    args->src = f->src;
    args->dst = f->dst;
    status = trn_collective_run(args);
    if (status != TRN_OK) return status;
    const bool reduces = args->op == TRN_ALL_REDUCE || args->op == TRN_REDUCE_SCATTER;
    if (reduces && cost.algorithm == TRN_RING) status = set_order(f);
    if (reduces) set_bound(f, &cost);
    for (int g = 0; status == TRN_OK && g < f->groups; g++)
        for (int r = 0; r < f->ranks; r++) (reduces ? check_reduction : check_move)(f, g, r);
    return status;
}

trn_status tb_cc_check_values(const trn_collective_args *ask, uint64_t seed, tb_cc_check *check)
{
    trn_collective_args args = *ask;
    field f;
    memset(&f, 0, sizeof f);
    memset(check, 0, sizeof *check);
    f.ask = &args;
    f.check = check;
    f.ranks = trn_collective_ranks(ask);
    f.groups = ask->groups ? ask->groups : 1;
    f.bytes = trn_format_bytes(ask->wire);
    f.integers = trn_format_info_of(ask->wire)->exponent_bits == 0;
    f.n = ask->bytes / (int64_t)f.bytes;
    f.room = (f.n + f.ranks - 1) / f.ranks * f.ranks;
    const trn_status status = run(&f, &args, seed);
    release(&f);
    return status;
}
