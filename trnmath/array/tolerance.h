/* array/tolerance.h - how far a product may be from the exact one.
 * A part of trn_tolerance.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ARRAY_TOLERANCE_H
#define TRNI_ARRAY_TOLERANCE_H

#include "matmul.h"

/* Exact is the sum of products of the numbers as the array reads them (a TF32 that has been rounded, MX with its
 * scales), with dst as it was under accumulate. A result that may overflow has no tolerance: both are infinite. */
typedef struct trn_tolerance_args {
    const trn_matmul_args *matmul; /* the call that will be made; packed weights have no part in it */
    trn_tensor worst;              /* [M, N] F32: no element is further from the exact one. Rank 0 = not wanted */
    trn_tensor sigma; /* [M, N] F32: the root mean square of the distance, were roundings independent of each other; 0
                       * where nothing is rounded. Numbers that are all alike lose the same again and again: such data
                       * lie further out (exactness.md, "Tolerances", has figures). Rank 0 = not wanted */
    trn_error *error;
} trn_tolerance_args;

/* TRN_EFORMAT for int8; otherwise fails as trn_matmul would, and where worst and sigma do not fit. It takes some eight
 * bytes for each element of b, and the time of a loop in binary64: a nanosecond or two a product, six where fp32_mode=
 * split makes four of it. Accumulators of blocks (aligned, pairwise) take twice the memory and some 20 ns. */
TRN_API trn_status trn_tolerance(const trn_tolerance_args *args);

#if TRNI_BODIES

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tolerance_blocks.h"
#include "../base/workspace.h"

/* ---- the bound of chains ---- */

/* Of one rounding: an error over the number that was rounded, at most. */
typedef struct trni_roundings {
    double chain, product, psum, dst;
    double merges; /* additions of chains that the first one passes */
    double steps;  /* additions of the longest chain of a tile */
    double tiles;
    double operations; /* on one element, all told */
    double least;      /* below it each of these may lose all */
    double dst_least;  /* the smallest number of dst */
    double most;       /* the largest */
} trni_roundings;

TRNI_FN double trni_rounding_worst(int bits, trn_rounding rounding)
{
    return ldexp(rounding == TRN_NEAREST_EVEN ? 1 : 2, -bits);
}

TRNI_DRIVER trni_roundings trni_roundings_of(const trni_product *p)
{
    const trn_numerics *n = &p->numerics;
    const trn_format_info *f = &p->dst_info;
    const double depth = (double)p->a.depth, deep = (double)trni_tile_depth(p), group = trni_spread_group(p->spread);
    const double tile = depth < deep ? depth : deep, passes = p->f32 && n->fp32_mode == TRN_FP32_SPLIT ? 4 : 1;
    const bool exact = n->accumulator == TRN_ACCUMULATOR_EXACT, cuts = n->accumulator == TRN_ACCUMULATOR_TOWARD_ZERO;
    const double chains = exact ? 1 : n->chains;
    trni_roundings r;
    memset(&r, 0, sizeof r);
    r.chain = trni_rounding_worst(exact ? 24 : n->accumulator_bits, cuts ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN);
    if (n->product == TRN_PRODUCT_BF16) r.product = trni_rounding_worst(8, TRN_NEAREST_EVEN);
    if (n->psum_format == TRN_BF16) r.psum = trni_rounding_worst(8, n->psum_rounding);
    r.tiles = ceil(depth / deep);
    r.steps = exact ? 1 : ceil(ceil(tile / group) / chains) * (group + (group > 1 ? 1 : 0)) * passes;
    r.merges = chains - 1;
    r.operations = depth * passes * 2 + r.tiles * (chains + 3);
    r.least = n->flush_products || n->flush_sums ? 0x1p-126 : 0x1p-149;
    r.most = (double)trni_float(trni_decode_row(f, f->max_code));
    if (p->dst.format == TRN_F32) return r;
    r.dst = trni_rounding_worst(f->mantissa_bits + 1, p->rounding);
    r.dst_least = ldexp(1.0, 1 - f->bias - f->mantissa_bits);
    return r;
}

/* |PSUM - exact|, at most; `all`: the products' magnitudes, and what dst held. */
TRNI_DRIVER double trni_chains_worst(double all, const trni_roundings *r)
{
    double grows = (r->steps + r->merges) * log1p(r->chain) + log1p(r->product);
    grows += (r->tiles + 1) * log1p(0x1p-24) + r->tiles * log1p(r->psum);
    return expm1(grows) * all + r->operations * r->least;
}

/* ---- an element ---- */

/* What PSUM came to: a sum in binary64 of numbers that are rounded as the array rounds. */
typedef struct trni_made {
    double psum, all, worst; /* all: of the magnitudes; worst: |PSUM - exact|, at most */
    trni_loss loss;
} trni_made;

/* |result - exact|, at most. */
TRNI_DRIVER double trni_made_worst(const trni_made *e, const trni_roundings *r)
{
    const double result = fabs(e->psum) + 2 * e->worst; /* both ways to PSUM are within the bound */
    const double worst = e->worst + r->dst * (result + e->worst) + r->dst_least;
    return e->all + worst < r->most ? worst : HUGE_VAL; /* also where there is no number */
}

TRNI_DRIVER double trni_made_sigma(const trni_made *e, const trni_product *p)
{
    const trn_format_info *f = &p->dst_info;
    trni_loss loss = e->loss;
    if (p->dst.format != TRN_F32)
        trni_loses(&loss, e->psum, trni_apart(e->psum, ldexp(1, -f->mantissa_bits), ldexp(1, 1 - f->bias)),
                   p->rounding);
    return sqrt(loss.mean * loss.mean + loss.twelve / 12);
}

/* ---- the operands ---- */

typedef struct trni_tolerance_work {
    const trni_product *p;
    const trn_tolerance_args *args;
    trni_roundings roundings;
    trni_walk walk;
    double *b;       /* scaled: [K][N]; with blocks [N][K], and as many powers */
    int64_t b_count; /* K N */
} trni_tolerance_work;

/* Numbers [k, k + count) of a lane as the array reads them, in order, times their scales; and if wanted the powers of
 * two that blocks align by. */
TRNI_DRIVER void trni_tolerance_numbers(const trni_product *p, const trni_operand *o, const trni_scales *scales,
                                        int64_t lane, double *to, double *power, int64_t step)
{
    enum { piece = 128 }; /* whole blocks of a scale */
    const double least = ldexp(1, 1 - o->info.bias);
    float x[piece];
    for (int64_t k = 0; k < o->depth; k += piece) {
        const int count = (int)trni_min64(o->depth - k, piece);
        trni_operand_gather(o, lane, k, 1, count, p->numerics.flush_inputs, x, 1);
        for (int i = 0; i < count; i++) {
            const unsigned byte = scales->data ? trni_scale_at(scales, lane, (k + i) / TRNI_SCALE_BLOCK) : 127;
            const double scale = byte == TRNI_SCALE_BYTE_NAN ? (double)NAN : ldexp(1, (int)byte - 127);
            to[(k + i) * step] = (double)x[i] * scale;
            if (power) power[k + i] = x[i] == 0 ? 0 : fmax(trni_power_below((double)x[i]), least) * scale;
        }
    }
}

/* ---- a row ---- */

TRNI_FN void trni_tolerance_write(const trn_tensor *t, int64_t m, int64_t n, double value)
{
    int64_t stride[TRN_MAX_RANK];
    if (!t->rank) return;
    trni_strides(t, stride);
    const double up = value * (1 + 0x1p-20); /* binary64's own roundings, and binary32's */
    const float narrow = up <= (double)FLT_MAX ? (float)up : HUGE_VALF;
    memcpy((char *)t->data + (m * stride[0] + n * stride[1]) * (int64_t)sizeof narrow, &narrow, sizeof narrow);
}

TRNI_DRIVER void trni_tolerance_element(const trni_tolerance_work *w, int64_t m, int64_t n, const trni_made *made)
{
    const bool any = w->p->a.depth > 0; /* else nothing is added, and nothing is rounded */
    const double worst = any ? trni_made_worst(made, &w->roundings) : 0;
    trni_tolerance_write(&w->args->worst, m, n, worst);
    trni_tolerance_write(&w->args->sigma, m, n, any && worst < HUGE_VAL ? trni_made_sigma(made, w->p) : worst);
}

TRNI_FN double trni_tolerance_before(const trni_product *p, int64_t m, int64_t n)
{
    return p->accumulate ? (double)trni_dst_read(p, m, n) : 0;
}

/* By chains: some columns at a time. */
TRNI_DRIVER void trni_tolerance_chains(const trni_tolerance_work *w, int64_t m, const double *a, trni_walk_lines *l)
{
    const int64_t columns = w->p->b.lanes;
    for (int64_t n = 0; n < columns; n += TRNI_WALK_COLUMNS) {
        const size_t count = (size_t)trni_min64(columns - n, TRNI_WALK_COLUMNS);
        memset(l->magnitude, 0, sizeof l->magnitude);
        memset(l->twelve, 0, sizeof l->twelve);
        memset(l->mean, 0, sizeof l->mean);
        for (size_t i = 0; i < count; i++) l->psum[i] = trni_tolerance_before(w->p, m, n + (int64_t)i);
        trni_walk_columns(&w->walk, l, a, w->b + n, count);
        for (size_t i = 0; i < count; i++) {
            const double all = l->magnitude[i] + fabs(trni_tolerance_before(w->p, m, n + (int64_t)i));
            const trni_made made = {
                l->psum[i], all, trni_chains_worst(all, &w->roundings), { l->mean[i], l->twelve[i] }
            };
            trni_tolerance_element(w, m, n + (int64_t)i, &made);
        }
    }
}

TRNI_DRIVER void trni_tolerance_blocks(const trni_tolerance_work *w, int64_t m, const double *a)
{
    const int64_t depth = w->p->a.depth;
    const trni_powered row = { a, a + depth };
    for (int64_t n = 0; n < w->p->b.lanes; n++) {
        const trni_powered column = { w->b + n * depth, w->b + w->b_count + n * depth };
        const trni_blocks s = trni_blocks_of(w->p, row, column, trni_tolerance_before(w->p, m, n));
        const trni_made made = { s.psum, s.magnitude, s.worst, s.loss };
        trni_tolerance_element(w, m, n, &made);
    }
}

/* Row m: `a` [2 K] and the lines to work in. */
TRNI_DRIVER void trni_tolerance_row(const trni_tolerance_work *w, int64_t m, double *a, trni_walk_lines *lines)
{
    const trni_product *p = w->p;
    const bool blocks = trni_has_blocks(&p->numerics);
    trni_tolerance_numbers(p, &p->a, &p->a_scale, m, a, blocks ? a + p->a.depth : NULL, 1);
    if (blocks)
        trni_tolerance_blocks(w, m, a);
    else
        trni_tolerance_chains(w, m, a, lines);
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
    const trn_tensor *const out[2] = { &args->worst, &args->sigma }, *const in[5] = { &q->a, &q->b, &q->a_scale,
                                                                                      &q->b_scale, &q->dst };
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
    return TRN_OK;
}

/* All rows, one after the other in each thread; every row is one thread's alone. */
TRNI_DRIVER trn_status trni_tolerance_rows(const trni_tolerance_work *w, trn_error *error)
{
    trni_workspace space;
    const int64_t rows = w->p->a.lanes;
    const int threads = (int)trni_min64(trni_threads(), rows);
    const size_t lines = sizeof(trni_walk_lines), row = 2 * sizeof(double) * (size_t)w->p->a.depth;
    const trn_status status = trni_workspace_open(&space, lines + row, threads, error);
    if (status != TRN_OK) return status;
    TRNI_PARALLEL(num_threads(threads) if (threads > 1))
    {
        TRNI_FLOATS;
        char *at = (char *)trni_workspace_of(&space, threads > 1 ? trni_thread() : 0);
        TRNI_FOR(schedule(static))
        for (int64_t m = 0; m < rows; m++)
            trni_tolerance_row(w, m, (double *)(void *)(at + lines), (trni_walk_lines *)(void *)at);
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
    trni_tolerance_work work = { &p, args, trni_roundings_of(&p), trni_walk_of(&p), NULL, p.b.lanes * p.b.depth };
    const bool blocks = trni_has_blocks(&p.numerics);
    const double bytes = (double)p.b.lanes * (double)p.b.depth * (double)sizeof *work.b * (blocks ? 2 : 1);
    if (bytes < 0x1p62) work.b = (double *)malloc((size_t)bytes + 1);
    if (!work.b) return trni_fail(args->error, TRN_ENOSPC, "could not allocate %.0f bytes for b", bytes);
    for (int64_t n = 0; n < p.b.lanes; n++) {
        double *const column = blocks ? work.b + n * p.b.depth : work.b + n;
        trni_tolerance_numbers(&p, &p.b, &p.b_scale, n, column, blocks ? column + work.b_count : NULL,
                               blocks ? 1 : p.b.lanes);
    }
    status = trni_tolerance_rows(&work, args->error);
    free(work.b);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ARRAY_TOLERANCE_H */
