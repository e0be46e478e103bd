/* gradients.c - what rounding at every hop of a ring does to a gradient.
 * SPDX-License-Identifier: MIT
 *
 * Every rank holds N(0, 1) in BF16; a reduce-scatter adds them up. The error is against the exact sum of what the ranks
 * hold, relative in root mean square.
 */
#include "conformance.h"

#include <stdlib.h>

#include "normal.h"
#include "trnmath/trn_collective.h"

enum { ELEMENTS = 1 << 14, MOST_RANKS = 144 };

typedef struct hops {
    trn_format wire;
    trn_rounding rounding;
} hops;

static const hops nearest = { TRN_BF16, TRN_NEAREST_EVEN }, stochastic = { TRN_BF16, TRN_STOCHASTIC },
                  in_f32 = { TRN_F32, TRN_NEAREST_EVEN };

typedef struct ranks {
    int count;
    int64_t elements; /* of each; a multiple of count */
    uint16_t *sent, *sum;
    double *exact;
    trn_tensor src[MOST_RANKS], dst[MOST_RANKS];
} ranks;

static void ranks_make(ranks *r, int count)
{
    static float x[ELEMENTS];
    memset(r, 0, sizeof *r);
    r->count = count;
    r->elements = ELEMENTS / count * count;
    r->sent = app_memory((size_t)count * (size_t)r->elements, sizeof *r->sent);
    r->sum = app_memory((size_t)r->elements, sizeof *r->sum);
    r->exact = app_memory((size_t)r->elements, sizeof *r->exact);
    for (int k = 0; k < count; k++) {
        uint16_t *at = r->sent + k * r->elements;
        cf_normal(x, ELEMENTS, 100 + (uint64_t)k);
        for (int64_t i = 0; i < r->elements; i++) {
            at[i] = trn_bf16_from_f32(x[i]);
            r->exact[i] += (double)trn_bf16_to_f32(at[i]);
        }
        const int64_t share = r->elements / count;
        r->src[k] = trn_tensor_1d(TRN_BF16, at, r->elements);
        r->dst[k] = trn_tensor_1d(TRN_BF16, r->sum + k * share, share);
    }
}

static void ranks_free(ranks *r)
{
    free(r->sent);
    free(r->sum);
    free(r->exact);
}

/* NaN after a refusal. */
static double ring_error(int count, const hops *h)
{
    static ranks r;
    double off = 0, size = 0;
    trn_topology net = trn_topology_ring(count, 1e9, 1e-6);
    const trn_collective_args args = { .net = &net,
                                       .op = TRN_REDUCE_SCATTER,
                                       .algorithm = TRN_RING,
                                       .wire = h->wire,
                                       .rounding = h->rounding,
                                       .seed = 9,
                                       .src = r.src,
                                       .dst = r.dst };
    ranks_make(&r, count);
    const bool good = trn_collective_run(&args) == TRN_OK;
    for (int64_t i = 0; good && i < r.elements; i++) {
        const double e = (double)trn_bf16_to_f32(r.sum[i]) - r.exact[i];
        off += e * e;
        size += r.exact[i] * r.exact[i];
    }
    ranks_free(&r);
    return good ? sqrt(off / size) : (double)NAN;
}

/* .at ranks */
static void error_of_ring(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = ring_error(v->at, v->about);
    a->cases = ELEMENTS / v->at * v->at;
}

static void worse_than_nearest(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)o;
    a->got = ring_error(v->at, &stochastic) / ring_error(v->at, &nearest);
    a->cases = ELEMENTS / v->at * v->at;
}

/* The power of N by which the error grows from 16 to 144 ranks. */
static void growth(const cf_vector *v, const cf_options *o, cf_answer *a)
{
    (void)v, (void)o;
    a->got = log(ring_error(144, &nearest) / ring_error(16, &nearest)) / log(144.0 / 16);
}

/* ---- the vectors ---- */

void cf_fill_gradients(cf_list *list)
{
    static const struct {
        int ranks;
        double error;
    } ring[] = { { 16, 5.0e-3 }, { 64, 9.8e-3 }, { 144, 1.42e-2 } };
    static const char drawn[] = "independent draws, for github.com/NVIDIA/Megatron-LM/issues/6199";
    for (size_t i = 0; i < sizeof ring / sizeof ring[0]; i++) {
        const int n = ring[i].ranks;
        cf_vector v = { .kind = CF_CALCULATED, .source = drawn, .at = n, .test = error_of_ring };
        cf_vector one = v, worse = v;
        v.id = cf_id(list, "gradient.ring.bfloat16.%d", n);
        v.what = cf_text(list, "ring reduce-scatter of N(0, 1), %d ranks, BF16 at every hop: relative RMS error", n);
        v.about = &nearest;
        v.expected = ring[i].error;
        v.low = 0.95 * ring[i].error;
        v.high = 1.05 * ring[i].error;
        one.id = cf_id(list, "gradient.float32.%d", n);
        one.what = cf_text(list, "the same summed in FP32, one rounding, %d ranks", n);
        one.about = &in_f32;
        one.expected = 1.67e-3;
        one.low = 1.62e-3;
        one.high = 1.72e-3;
        worse.id = cf_id(list, "gradient.ring.stochastic.%d", n);
        worse.what = cf_text(list, "stochastic rounding at every hop, %d ranks: its RMS over that of nearest even", n);
        worse.test = worse_than_nearest;
        worse.expected = 1.375;
        worse.low = 1.315;
        worse.high = 1.435;
        cf_add(list, v);
        cf_add(list, one);
        cf_add(list, worse);
    }
    cf_add(list, (cf_vector){ .id = "gradient.ring.growth",
                              .what = "the error of a BF16 ring grows as a power of N",
                              CF_ABOUT(0.5, 0.06),
                              .kind = CF_DOCUMENTED,
                              .source = "github.com/NVIDIA/Megatron-LM/issues/6199: about sqrt(N)",
                              .test = growth });
}
