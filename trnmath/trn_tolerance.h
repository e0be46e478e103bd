/* trn_tolerance.h - how far a product may be from the exact one: a bound, and what is likely.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_tolerance.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint16_t a[64 * 512], b[512 * 64];
 *         static float c[64 * 64], worst[64 * 64], sigma[64 * 64];
 *         trn_error error;
 *         const trn_matmul_args product = { .dst = trn_tensor_2d(TRN_F32, c, 64, 64), .error = &error,
 *                                           .a = trn_tensor_2d(TRN_BF16, a, 64, 512),
 *                                           .b = trn_tensor_2d(TRN_BF16, b, 512, 64) };
 *         const trn_tolerance_args args = { .matmul = &product, .worst = trn_tensor_2d(TRN_F32, worst, 64, 64),
 *                                           .sigma = trn_tensor_2d(TRN_F32, sigma, 64, 64), .error = &error };
 *         if (trn_tolerance(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return 0; // |c - exact| <= worst always, and <= 3 sigma in more than 99 of 100 elements
 *     }
 *
 * DOES: for each element of trn_matmul's result two numbers that follow from the roundings that these numerics really
 *     make on their way (products, chains, merges, PSUM, the cast to dst) and from the operands' own values.
 * DOES NOT: multiply, know what another library's order does (add its own tolerance), or follow a whole kernel.
 *
 * CONTENTS
 *     trn_tolerance_args, trn_tolerance
 *
 * KNOWN FROM: Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., chapter 3 (the bound); Higham and
 *     Mary, "A new approach to probabilistic rounding error analysis", SISC 41(5), 2019 (independent roundings).
 */
#ifndef TRN_TOLERANCE_H
#define TRN_TOLERANCE_H

#include "base/words_begin.h"

#include "trn_matmul.h"

/* Exact is the sum of products of the numbers as the array reads them (a TF32 that has been rounded, MX with its
 * scales), with dst as it was under accumulate. A result that may overflow has no tolerance: both are infinite. */
typedef struct trn_tolerance_args {
    const trn_matmul_args *matmul; /* the call that will be made; packed weights have no part in it */
    trn_tensor worst; /* [M, N] F32: no element is further from the exact one. Rank 0 = not wanted */
    trn_tensor sigma; /* [M, N] F32: the root mean square of the distance, were roundings independent of each other and
                       * operands in no order. Where sums happen to be exact it is less. Rank 0 = not wanted */
    trn_error *error;
} trn_tolerance_args;

/* TRN_EUNSUPPORTED for accumulators of blocks (aligned, pairwise) and TRN_EFORMAT for int8, which have no such chains;
 * otherwise fails as trn_matmul would, and where worst and sigma do not fit. It takes some eight bytes for each element
 * of b, and the time of a plain loop in binary64. */
TRN_API trn_status trn_tolerance(const trn_tolerance_args *args);

#if TRNI_BODIES

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/workspace.h"

/* ---- the roundings of one element ---- */

/* Half the distance of neighbours at 1, and whether it cuts: then errors lean to one side, and are twice as large. */
typedef struct trni_rounding_step {
    double half;
    bool cuts, random;
} trni_rounding_step;

typedef struct trni_roundings {
    trni_rounding_step chain, product, single, psum, dst; /* half = 0: none; single: of an addition to PSUM */
    double merges;    /* additions of chains that the first one passes */
    double steps;     /* additions of the longest chain of a tile */
    double chains, tiles;
    double operations; /* on one element, all told */
    double least;     /* below it each of these may lose all */
    double dst_least; /* the smallest number of dst */
    double most;      /* the largest */
} trni_roundings;

#define TRNI_LN2 0.6931471805599453

TRNI_FN double trni_step_worst(const trni_rounding_step *s) { return s->cuts || s->random ? 2 * s->half : s->half; }

/* Of an error over the number that was rounded, whose significand is spread evenly over its logarithm: the variance.
 * E[1/m^2] = 3 / (8 ln 2); neighbours are 2 half apart, and an even error has a twelfth of their square, a drawn one a
 * sixth. */
TRNI_FN double trni_step_variance(const trni_rounding_step *s)
{
    const double apart = 2 * s->half, spread = 3.0 / (8.0 * TRNI_LN2);
    return apart * apart * spread / (s->random ? 6 : 12);
}

/* And the mean, of one that cuts: E[1/m] = 1 / (2 ln 2). */
TRNI_FN double trni_step_mean(const trni_rounding_step *s)
{
    return s->cuts ? s->half / (2.0 * TRNI_LN2) : 0;
}

/* The square of the error of rounding this very number. */
TRNI_FN double trni_step_square(const trni_rounding_step *s, double number)
{
    int exponent;
    frexp(number, &exponent);
    const double apart = ldexp(s->half, exponent); /* of neighbours */
    return apart * apart / (s->cuts ? 3 : s->random ? 6 : 12);
}

TRNI_FN trni_rounding_step trni_step_of(int bits, trn_rounding rounding)
{
    const trni_rounding_step s = { ldexp(1.0, -bits), rounding != TRN_NEAREST_EVEN && rounding != TRN_STOCHASTIC,
                                   rounding == TRN_STOCHASTIC };
    return s;
}

TRNI_FN void trni_roundings_dst(trni_roundings *r, const trni_product *p)
{
    const trn_format_info *f = &p->dst_info;
    r->most = (double)trni_float(trni_decode_row(f, f->max_code));
    if (p->dst.format == TRN_F32) return;
    r->dst = trni_step_of(f->mantissa_bits + 1, p->rounding);
    r->dst_least = ldexp(1.0, 1 - f->bias - f->mantissa_bits);
}

TRNI_DRIVER trni_roundings trni_roundings_of(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    const double depth = (double)p->a.depth, deep = (double)trni_tile_depth(p), group = trni_spread_group(p->spread);
    const double tile = depth < deep ? depth : deep, passes = p->f32 && n->fp32_mode == TRN_FP32_SPLIT ? 4 : 1;
    const bool exact = n->accumulator == TRN_ACCUMULATOR_EXACT, cuts = n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO;
    trni_roundings r;
    memset(&r, 0, sizeof r);
    r.chain = trni_step_of(exact ? 24 : n->accumulator_bits, cuts ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN);
    if (n->product == TRN_PRODUCT_BF16) r.product = trni_step_of(8, TRN_NEAREST_EVEN);
    r.single = trni_step_of(24, TRN_NEAREST_EVEN);
    if (n->psum_format == TRN_BF16) r.psum = trni_step_of(8, n->psum_rounding);
    r.tiles = ceil(depth / deep);
    r.chains = exact ? 1 : n->chains;
    r.steps = exact ? 1 : ceil(ceil(tile / group) / r.chains) * (group + (group > 1 ? 1 : 0)) * passes;
    r.merges = r.chains - 1;
    r.operations = depth * passes * 2 + r.tiles * (r.chains + 3);
    r.least = n->flush_products || n->flush_sums ? 0x1p-126 : 0x1p-149;
    trni_roundings_dst(&r, p);
    return r;
}

/* ---- what an element is made of ---- */

typedef struct trni_made {
    double sum, magnitude, square; /* of its products */
    double before;                 /* what dst held */
} trni_made;

/* |result - exact|, at most. */
TRNI_DRIVER double trni_made_worst(const trni_made *e, const trni_roundings *r)
{
    double grows = (r->steps + r->merges) * log1p(trni_step_worst(&r->chain)) + log1p(trni_step_worst(&r->product));
    grows += (r->tiles + 1) * log1p(r->single.half) + r->tiles * log1p(trni_step_worst(&r->psum));
    const double all = e->magnitude + fabs(e->before), inside = expm1(grows) * all + r->operations * r->least;
    const double result = fabs(e->sum + e->before) + inside;
    const double worst = inside + trni_step_worst(&r->dst) * result + r->dst_least;
    return all + worst < r->most ? worst : HUGE_VAL; /* also where there is no number */
}

/* `steps` numbers in no order are added, one of `parts` shares of the element. What a sum of all is, is known, and
 * between it and 0 a walk is a bridge: after a share f of the steps its square is f^2 end + f (1 - f) square, where end
 * is the square of the share's own sum. The sum of these over all steps, times the variance of one rounding. */
TRNI_FN double trni_walk(const trni_made *e, double parts, double steps)
{
    const double square = e->square / parts, mean = e->sum / parts, end = mean * mean + square * (1 - 1 / parts);
    const double first = (steps + 1) / 2, second = (steps + 1) * (2 * steps + 1) / (6 * steps);
    return end * second + square * (first - second);
}

TRNI_DRIVER double trni_made_sigma(const trni_made *e, const trni_roundings *r)
{
    const double chain = trni_step_variance(&r->chain), psum = trni_step_variance(&r->single) +
                                                               trni_step_variance(&r->psum);
    const double parts = r->tiles * r->chains, result = e->sum + e->before;
    double v = chain * parts * trni_walk(e, parts, r->steps) + chain * r->tiles * trni_walk(e, r->tiles, r->chains);
    v += psum * (trni_walk(e, 1, r->tiles) + r->tiles * e->before * e->before);
    v += trni_step_variance(&r->product) * e->square + trni_step_square(&r->dst, result);
    /* What leans to one side: the means of all steps, and how far a walk's sum of sums strays. */
    const double lean = trni_step_mean(&r->chain), steps = r->steps + r->merges;
    const double mean = lean * e->sum * (steps + 1) / 2;
    v += mean * mean + lean * lean * e->square * steps * steps / 3;
    return sqrt(v) + r->operations * r->least * 0x1p-10 + r->dst_least / 3;
}

/* ---- the sums ---- */

typedef struct trni_tolerance_work {
    const trni_product *p;
    const trn_tolerance_args *args;
    trni_roundings roundings;
    double *b; /* [K][N], scaled */
} trni_tolerance_work;

/* Numbers [k, k + count) of a lane as the array reads them, in order, times their scales. */
TRNI_DRIVER void trni_tolerance_numbers(const trni_product *p, const trni_operand *o, const trni_scales *scales,
                                        int64_t lane, double *to, int64_t step)
{
    enum { piece = 128 }; /* whole blocks of a scale */
    float x[piece];
    for (int64_t k = 0; k < o->depth; k += piece) {
        const int count = (int)trni_min64(o->depth - k, piece);
        trni_operand_gather(o, lane, k, 1, count, p->numerics.flush_inputs, x, 1);
        for (int i = 0; i < count; i++) {
            const unsigned byte = scales->data ? trni_scale_at(scales, lane, (k + i) / TRNI_SCALE_BLOCK) : 127;
            to[(k + i) * step] = byte == TRNI_SCALE_BYTE_NAN ? (double)NAN : ldexp((double)x[i], (int)byte - 127);
        }
    }
}

TRNI_FN void trni_tolerance_write(const trn_tensor *t, int64_t m, int64_t n, double value)
{
    int64_t stride[TRN_MAX_RANK];
    if (!t->rank) return;
    trni_strides(t, stride);
    const double up = value * (1 + 0x1p-20); /* binary64's own roundings, and binary32's */
    const float narrow = up <= (double)FLT_MAX ? (float)up : HUGE_VALF;
    memcpy((char *)t->data + (m * stride[0] + n * stride[1]) * (int64_t)sizeof narrow, &narrow, sizeof narrow);
}

/* Row m: `a` [K], `made` [N] to work in. */
TRNI_DRIVER void trni_tolerance_row(const trni_tolerance_work *w, int64_t m, double *a, trni_made *made)
{
    const trni_product *p = w->p;
    const int64_t columns = p->b.lanes;
    trni_tolerance_numbers(p, &p->a, &p->a_scale, m, a, 1);
    memset(made, 0, sizeof *made * (size_t)columns);
    for (int64_t k = 0; k < p->a.depth; k++)
        for (int64_t n = 0; n < columns; n++) {
            const double product = a[k] * w->b[k * columns + n];
            made[n].sum += product;
            made[n].magnitude += fabs(product);
            made[n].square += product * product;
        }
    for (int64_t n = 0; n < columns; n++) {
        made[n].before = p->accumulate ? (double)trni_dst_read(p, m, n) : 0;
        const double worst = p->a.depth ? trni_made_worst(&made[n], &w->roundings) : 0;
        trni_tolerance_write(&w->args->worst, m, n, worst);
        trni_tolerance_write(&w->args->sigma, m, n,
                             worst < HUGE_VAL && p->a.depth ? trni_made_sigma(&made[n], &w->roundings) : worst);
    }
}

/* ---- the call ---- */

TRNI_DRIVER trn_status trni_tolerance_check_view(const trn_tensor *t, const char *name, const trni_product *p,
                                                 trn_error *error)
{
    if (!t->rank) return TRN_OK;
    const trn_status status = trn_tensor_check(t, name, TRNI_OUTPUT, 2, error);
    if (status) return status;
    if (t->format != TRN_F32)
        return trni_fail(error, TRN_EFORMAT, "%s is %s; it takes float32", name, trn_format_name(t->format));
    if (t->shape[0] == p->a.lanes && t->shape[1] == p->b.lanes) return TRN_OK;
    return trni_fail(error, TRN_ESHAPE, "%s is [%lld, %lld] but the product is [%lld, %lld]", name,
                     (long long)t->shape[0], (long long)t->shape[1], (long long)p->a.lanes, (long long)p->b.lanes);
}

/* Neither output lies on what is read, or on the other. */
TRNI_DRIVER trn_status trni_tolerance_check_apart(const trn_tolerance_args *args, trn_error *error)
{
    const trn_matmul_args *q = args->matmul;
    const trn_tensor *const out[2] = { &args->worst, &args->sigma },
                     *const in[5] = { &q->a, &q->b, &q->a_scale, &q->b_scale, &q->dst };
    static const char *const name[2] = { "worst", "sigma" }, *const of[5] = { "a", "b", "a_scale", "b_scale", "dst" };
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 5; j++)
            if (out[i]->rank && in[j]->rank && trn_tensor_overlap(*out[i], *in[j]))
                return trni_fail(error, TRN_EINVAL, "%s overlaps %s", name[i], of[j]);
    if (args->worst.rank && args->sigma.rank && trn_tensor_overlap(args->worst, args->sigma))
        return trni_fail(error, TRN_EINVAL, "worst overlaps sigma");
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_tolerance_check(const trn_tolerance_args *args, trni_product *p)
{
    if (!args->matmul) return trni_fail(args->error, TRN_EINVAL, "matmul is null");
    trn_matmul_args ask = *args->matmul;
    ask.error = args->error;
    ask.packed = NULL;
    trn_status status = trni_matmul_check(&ask, p);
    if (status == TRN_OK) status = trni_tolerance_check_view(&args->worst, "worst", p, args->error);
    if (status == TRN_OK) status = trni_tolerance_check_view(&args->sigma, "sigma", p, args->error);
    if (status == TRN_OK) status = trni_tolerance_check_apart(args, args->error);
    if (status != TRN_OK) return status;
    if (p->integer) return trni_fail(args->error, TRN_EFORMAT, "int8 products are exact, or wrap");
    if (p->numerics.accumulator > TRN_ACCUMULATOR_EXACT)
        return trni_fail(args->error, TRN_EUNSUPPORTED, "numerics.accumulator adds blocks, which have no chains");
    return TRN_OK;
}

/* All rows, one after the other in each thread; every row is one thread's alone. */
TRNI_DRIVER trn_status trni_tolerance_rows(const trni_tolerance_work *w, trn_error *error)
{
    trni_workspace space;
    const int64_t rows = w->p->a.lanes;
    const int threads = (int)trni_min64(trni_threads(), rows);
    const size_t made = sizeof(trni_made) * (size_t)w->p->b.lanes, row = sizeof(double) * (size_t)w->p->a.depth;
    const trn_status status = trni_workspace_open(&space, made + row, threads, error);
    if (status != TRN_OK) return status;
    TRNI_PARALLEL(num_threads(threads) if (threads > 1))
    {
        TRNI_FLOATS;
        char *at = (char *)trni_workspace_of(&space, threads > 1 ? trni_thread() : 0);
        TRNI_FOR(schedule(static))
        for (int64_t m = 0; m < rows; m++)
            trni_tolerance_row(w, m, (double *)(void *)(at + made), (trni_made *)(void *)at);
    }
    trni_workspace_close(&space);
    return TRN_OK;
}

TRN_API trn_status trn_tolerance(const trn_tolerance_args *args)
{
    trni_product p;
    TRNI_ENTER(args);
    trn_status status = trni_tolerance_check(args, &p);
    if (status != TRN_OK || p.a.lanes == 0 || p.b.lanes == 0) return status;
    trni_tolerance_work work = { &p, args, trni_roundings_of(&p), NULL };
    const double bytes = (double)p.b.lanes * (double)p.b.depth * (double)sizeof *work.b;
    if (bytes < 0x1p62) work.b = (double *)malloc((size_t)bytes + 1);
    if (!work.b) return trni_fail(args->error, TRN_ENOSPC, "could not allocate %.0f bytes for b", bytes);
    for (int64_t n = 0; n < p.b.lanes; n++)
        trni_tolerance_numbers(&p, &p.b, &p.b_scale, n, work.b + n, p.b.lanes);
    status = trni_tolerance_rows(&work, args->error);
    free(work.b);
    return status;
}

#endif /* TRNI_BODIES */

#include "base/words_end.h"

#endif /* TRN_TOLERANCE_H */
