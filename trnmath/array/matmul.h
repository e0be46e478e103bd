/* array/matmul.h - matrix products of any size, of tiles that the Tensor engine takes.
 * A part of trn_matmul.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ARRAY_MATMUL_H
#define TRNI_ARRAY_MATMUL_H

#include "tensor_engine.h"

/* What the host's matrix unit did, in blocks of one strip by one panel by one tile of K. The bits do not depend on
 * it. */
typedef struct trn_matmul_units {
    int64_t vectors; /* nothing: multiply-adds of vectors did all */
    int64_t half;    /* the first 16 steps of each chain, whose order the unit keeps */
    int64_t chains;  /* all of each chain, whose sums are proven exact */
    int64_t whole;   /* all of the tile, likewise */
    int64_t pairs;   /* all of each chain, two of its steps at a time, in their order */
} trn_matmul_units;

typedef struct trn_matmul_args {
    trn_generation generation;   /* 0 = Trainium2, or Trainium3 for MX and E4M3FN */
    trn_tensor dst;              /* [M, N] F32, BF16, F16, FP8; I32 for int8 operands */
    trn_tensor a;                /* [M, K] */
    trn_tensor b;                /* [K, N] */
    trn_tensor a_scale, b_scale; /* MX: [M, K/32] and [N, K/32] E8M0; rank 0 = none */
    bool accumulate;             /* PSUM starts as dst instead of fresh */
    bool double_row;       /* FP8 operands only: 256 rows of K in a tile, two products summed before their chain */
    trn_rounding rounding; /* of the cast to dst */
    trn_overflow overflow;
    uint64_t seed, stream;        /* stochastic: element [m, n] takes index m * N + n */
    const trn_numerics *numerics; /* null = the generation's default */
    trn_isa isa;
    void *scratch; /* null = allocated and freed here */
    size_t scratch_bytes;
    trn_error *error;
    const void *packed;      /* b from trn_matmul_pack; b and b_scale say its shape, their data may be null */
    trn_matmul_units *units; /* added to, where a matrix unit has a part in this call; or null */
} trn_matmul_args;

/* ---- the call ---- */

/* Bytes that .scratch must hold for this call with the present number of threads; 0 when the arguments are refused or
 * none is needed. */
TRN_API size_t trn_matmul_scratch_bytes(const trn_matmul_args *args);

/* dst[m, n] = (accumulate ? dst[m, n] + : ) sum over k of a[m, k] * b[k, n]. TRN_EFORMAT for operands that cannot meet,
 * TRN_ESHAPE for sizes and strides that do not fit, TRN_EINVAL for null data, overlap and illegal values, TRN_ENOSPC
 * when memory or scratch is short, TRN_EUNSUPPORTED for what an explicit generation or this host lacks. */
TRN_API trn_status trn_matmul(const trn_matmul_args *args);

/* ---- weights that are used many times ---- */

/* Bytes that trn_matmul_pack writes for these args: about 4 for each element of b, or 2 where pairs of BF16 are used,
 * and b once more as it is. 0 when they are refused. Of args count generation, b, b_scale, double_row, numerics, isa
 * and error. */
TRN_API size_t trn_matmul_pack_bytes(const trn_matmul_args *args);

/* Packs b into `packed`, aligned as malloc aligns, best on a cache line. Any number of calls may then have it in
 * args.packed, at the same time, too, with any a, dst, rounding and threads: the bits are those without it. A call with
 * other numerics, another instruction set or shape is refused. The bytes may be copied elsewhere, and hold for one
 * version of trnmath. TRN_ENOSPC when `bytes` are too few; nothing is written then. */
TRN_API trn_status trn_matmul_pack(const trn_matmul_args *args, void *packed, size_t bytes);

#if TRNI_BODIES

#include <stdlib.h>

#include "matmul_dots.h"
#include "matmul_int8.h"
#include "matmul_pack.h"
#include "matmul_row.h"
#include "matmul_slabs.h"
#include "../base/workspace.h"

/* ---- one thread ---- */

TRNI_DRIVER void trni_block_multiply(const trni_product *p, const trni_cut *cut, int block, unsigned char *scratch)
{
    const int64_t m = block / cut->threads_n * cut->rows, n = block % cut->threads_n * cut->columns;
    const int64_t rows = trni_min64(p->a.lanes - m, cut->rows), columns = trni_min64(p->b.lanes - n, cut->columns);
    int64_t pairs[2] = { 0, 0 };
    bool wild = p->packed || p->a.depth > INT64_C(1) << 40; /* nobody looked at b; so many sums of 2^80 may overflow */
    trni_worker w;
    trni_worker_init(&w, p, cut, scratch + cut->thread_bytes * (size_t)block);
    w.pairs_count = pairs;
    w.wild = &wild;
    if (cut->pairs) trni_worker_try_pairs(&w, m, rows, n, columns);
    if (cut->unit) trni_worker_try_unit(&w, m, rows, n, columns);
    trni_worker_take_quads(&w);
    if (cut->unit && w.unit.tiles.begin) w.unit.tiles.begin();
    for (int64_t j = 0; j < columns; j += cut->slab_columns) {
        const int64_t count = trni_min64(columns - j, cut->slab_columns);
        if (cut->dots)
            trni_region_dots(&w, n + j, count);
        else if (cut->single)
            trni_region_stream(&w, n + j, count);
        else if (cut->direct)
            trni_region_direct(&w, m, rows, n + j, count);
        else
            trni_region_cast(&w, m, rows, n + j, count);
    }
    if (cut->unit && w.unit.tiles.end) w.unit.tiles.end();
    if (!p->counts) return;
    for (int i = 0; i < TRNI_UNIT_MODES && cut->unit; i++)
        __atomic_fetch_add(p->counts + i, w.unit.count[i], __ATOMIC_RELAXED);
    __atomic_fetch_add(p->counts + TRNI_UNIT_NEVER, pairs[0], __ATOMIC_RELAXED);
    __atomic_fetch_add(p->counts + TRNI_UNIT_MODES, pairs[1], __ATOMIC_RELAXED);
}

/* ---- the call ---- */

/* A product of few columns and more rows is the turned one of few rows: each of a row's products has two factors, and
 * does not mind their order. Then weights are b, whichever side they come from. Random words are drawn by their place
 * in dst, which a single column turned keeps. */
enum { TRNI_TURN_COLUMNS = 16 };

TRNI_DRIVER void trni_matmul_turn(trni_product *p)
{
    const bool drawn = p->rounding == TRN_STOCHASTIC || p->numerics.psum_rounding == TRN_STOCHASTIC;
    if (p->b.lanes >= p->a.lanes || p->b.lanes > (drawn ? 1 : TRNI_TURN_COLUMNS)) return;
    const trni_operand a = p->a;
    const trni_scales scale = p->a_scale;
    const int64_t rows = p->dst.shape[0], row = p->dst.stride[0];
    p->packed = NULL; /* its copy of b has become a */
    p->a = p->b;
    p->b = a;
    p->a_scale = p->b_scale;
    p->b_scale = scale;
    p->dst.shape[0] = p->dst.shape[1];
    p->dst.stride[0] = p->dst.stride[1];
    p->dst.shape[1] = rows;
    p->dst.stride[1] = row;
}

TRNI_DRIVER trn_status trni_matmul_check(const trn_matmul_args *args, trni_product *p)
{
    trni_request ask;
    TRNI_REQUEST(ask, args);
    ask.a = args->a;
    ask.b = args->b;
    ask.a_name = "a";
    ask.b_name = "b";
    ask.a_depth_axis = ask.b_lane_axis = 1;
    ask.a_scale = args->a_scale;
    ask.b_scale = args->b_scale;
    ask.mx = args->a_scale.rank || args->b_scale.rank;
    ask.double_row = args->double_row;
    ask.overflow = args->overflow;
    if (ask.mx && args->double_row)
        return trni_fail(args->error, TRN_EINVAL, "double_row and MX scales are two modes; a product has one");
    if (args->packed) { /* somewhere that may be read; what matters is checked by trni_pack_use */
        if ((uintptr_t)args->packed % sizeof(int64_t))
            return trni_fail(args->error, TRN_EINVAL, "packed is not aligned as malloc would");
        if (!ask.b.data) ask.b.data = (void *)(uintptr_t)args->packed;
        if (!ask.b_scale.data) ask.b_scale.data = (void *)(uintptr_t)args->packed;
    }
    trn_status status = trni_product_resolve(p, &ask);
    if (status == TRN_OK) status = trni_check_result(p, args->error);
    if (status == TRN_OK && args->packed) status = trni_pack_use(p, args->packed, args->error);
    p->counts = args->units ? &args->units->vectors : NULL;
    if (status != TRN_OK) return status;
    const bool bf16_psum = args->generation == TRN_GENERATION_DEFAULT || trni_core_plain_of(p->generation)->bf16_psum;
    if (p->numerics.psum_format == TRN_BF16 && !bf16_psum)
        return trni_fail(args->error, TRN_EUNSUPPORTED,
                         "numerics.psum_format = bfloat16, which %s's PSUM does not hold",
                         trn_generation_name(p->generation));
    return TRN_OK;
}

/* The product of nothing with b, which stands for all products with it. */
TRNI_DRIVER trn_status trni_matmul_pack_check(const trn_matmul_args *args, trni_product *p)
{
    trn_matmul_args ask = *args;
    if (ask.b.rank != 2)
        return trni_fail(args->error, TRN_ESHAPE, "b has rank %d; trn_matmul_pack takes a matrix", ask.b.rank);
    const int64_t k = ask.b.shape[0], n = ask.b.shape[1];
    ask.packed = NULL;
    ask.a = ask.b;
    ask.a.shape[0] = 0;
    ask.a.shape[1] = k;
    ask.a.stride[0] = ask.a.stride[1] = 0;
    ask.a_scale = ask.b_scale;
    ask.a_scale.shape[0] = 0;
    ask.a_scale.stride[0] = ask.a_scale.stride[1] = 0;
    ask.dst = trn_tensor_2d(ask.b.format == TRN_I8 ? TRN_I32 : TRN_F32, NULL, 0, n);
    ask.rounding = TRN_NEAREST_EVEN;
    ask.overflow = TRN_OVERFLOW_DEFAULT;
    const trn_status status = trni_matmul_check(&ask, p);
    if (status != TRN_OK || trni_pack_head_of(p).bytes) return status;
    return trni_fail(args->error, TRN_ESHAPE, "b is [%lld, %lld], and packed it would take more than 2^%d bytes",
                     (long long)k, (long long)n, TRNI_ADDRESS_BITS);
}

TRN_API size_t trn_matmul_pack_bytes(const trn_matmul_args *args)
{
    trni_product p;
    if (!args) return 0;
    trn_matmul_args quiet = *args;
    quiet.error = NULL;
    return trni_matmul_pack_check(&quiet, &p) == TRN_OK ? (size_t)trni_pack_head_of(&p).bytes : 0;
}

TRN_API trn_status trn_matmul_pack(const trn_matmul_args *args, void *packed, size_t bytes)
{
    trni_product p;
    TRNI_ENTER(args);
    const trn_status status = trni_matmul_pack_check(args, &p);
    if (status != TRN_OK) return status;
    const trni_pack_head head = trni_pack_head_of(&p);
    if (!packed || (uintptr_t)packed % sizeof(int64_t))
        return trni_fail(args->error, TRN_EINVAL, "packed is %s", packed ? "not aligned as malloc would" : "NULL");
    if (bytes < (size_t)head.bytes)
        return trni_fail(args->error, TRN_ENOSPC, "packed has %zu bytes but b needs %zu", bytes, (size_t)head.bytes);
    memset(packed, 0, TRNI_PACK_HEAD);
    memcpy(packed, &head, sizeof head);
    unsigned char *data = (unsigned char *)packed + TRNI_PACK_HEAD;
    trni_pack_copy(&p, data);
    if (head.panels && p.b.lanes && p.b.depth)
        trni_pack_panels(&p, (float *)(void *)(data + head.copy), head.panels == TRNI_PACK_WORDS);
    return TRN_OK;
}

TRNI_DRIVER bool trni_matmul_is_packed(const trni_product *p)
{
    return p->a.lanes && p->b.lanes && p->a.depth && trni_kernels_apply(p);
}

/* ---- how a product goes ---- */

typedef enum trni_matmul_way { TRNI_MATMUL_PACKED, TRNI_MATMUL_INT8, TRNI_MATMUL_DEFINED } trni_matmul_way;

typedef struct trni_matmul_plan {
    trni_matmul_way way;
    trni_cut cut; /* packed */
    trni_int8_work int8;
    trni_int8_cut int8_cut;
    size_t bytes; /* of scratch; 0 = none */
} trni_matmul_plan;

/* Turns the product where that pays. (Whether the packed kernels apply is asked once: of MX that reads all scales.) Of
 * the plan only what its way needs is filled: clearing and copying it took a tenth of the smallest product. */
TRNI_DRIVER void trni_matmul_plan_of(trni_matmul_plan *plan, trni_product *p)
{
    const bool packed = trni_matmul_is_packed(p), integer = p->integer && p->b.lanes && p->a.depth;
    plan->bytes = 0;
    if (packed || integer) trni_matmul_turn(p);
    if (packed) {
        const bool unit = trni_unit_applies(p);
        const trni_array array = trni_matmul_array(p, unit);
        plan->way = TRNI_MATMUL_PACKED;
        trni_cut_of(&plan->cut, p, &array, unit);
        plan->bytes = trni_cut_bytes(&plan->cut);
    } else if (integer && p->a.lanes >= TRNI_INT8_FEW) {
        plan->way = TRNI_MATMUL_INT8;
        plan->int8 = trni_int8_work_of(p);
        plan->int8_cut = trni_int8_cut_of(&plan->int8);
        plan->bytes = trni_cut_bytes(&plan->int8_cut.blocks);
    } else
        plan->way = TRNI_MATMUL_DEFINED;
}

TRN_API size_t trn_matmul_scratch_bytes(const trn_matmul_args *args)
{
    trni_product p;
    if (!args) return 0;
    trn_matmul_args quiet = *args;
    quiet.error = NULL;
    trni_matmul_plan plan;
    if (trni_matmul_check(&quiet, &p) != TRN_OK) return 0;
    trni_matmul_plan_of(&plan, &p);
    return plan.bytes;
}

TRNI_DRIVER void trni_matmul_blocks(const trni_product *p, const trni_cut *cut, unsigned char *scratch)
{
    const int blocks = cut->threads_m * cut->threads_n;
    scratch += (0 - (uintptr_t)scratch) % TRNI_SCRATCH_ALIGN;
    trni_team team = trni_team_begin(blocks);
    if (team.threads == 1) {
        for (int block = 0; block < blocks; block++) trni_block_multiply(p, cut, block, scratch);
        return;
    }
    TRNI_PARALLEL(num_threads(team.threads))
    {
        TRNI_FLOATS;
        TRNI_FOR(schedule(static, 1) nowait)
        for (int block = 0; block < blocks; block++) trni_block_multiply(p, cut, block, scratch);
        trni_team_worked(&team);
    }
    trni_team_end(&team);
}

TRNI_DRIVER void trni_matmul_run(const trni_product *p, const trni_matmul_plan *plan, void *scratch)
{
    if (plan->way == TRNI_MATMUL_INT8)
        trni_int8_multiply(&plan->int8, &plan->int8_cut, (unsigned char *)scratch);
    else
        trni_matmul_blocks(p, &plan->cut, (unsigned char *)scratch);
}

/* A small product works on the stack. */
enum { TRNI_MATMUL_SMALL = 16384 };

TRNI_DRIVER void trni_matmul_small(const trni_product *p, const trni_matmul_plan *plan)
{
    TRNI_LINES(unsigned char) scratch[TRNI_MATMUL_SMALL];
    trni_matmul_run(p, plan, scratch);
}

/* In the caller's scratch, on the stack, or in memory of our own. */
TRNI_DRIVER trn_status trni_matmul_fast(const trn_matmul_args *args, const trni_product *p,
                                        const trni_matmul_plan *plan)
{
    if (args->scratch && args->scratch_bytes < plan->bytes)
        return trni_fail(args->error, TRN_ENOSPC, "scratch_bytes = %zu but this call needs %zu", args->scratch_bytes,
                         plan->bytes);
    if (!args->scratch && plan->bytes <= TRNI_MATMUL_SMALL) {
        trni_matmul_small(p, plan);
        return TRN_OK;
    }
    void *scratch = args->scratch ? args->scratch : malloc(plan->bytes);
    if (!scratch) return trni_fail(args->error, TRN_ENOSPC, "could not allocate %zu bytes of scratch", plan->bytes);
    trni_matmul_run(p, plan, scratch);
    if (!args->scratch) free(scratch);
    return TRN_OK;
}

TRNI_COLD trn_status trni_matmul_regions(const trni_product *p, trn_error *error)
{
    trni_workspace space;
    const trni_fast_orders *orders = trni_fast_orders_here();
    const int64_t count = trni_regions(p);
    const int threads = (int)trni_min64(trni_threads(), count);
    const trn_status status = trni_workspace_open(&space, trni_region_space(orders), threads, error);
    if (status != TRN_OK) return status;
    TRNI_PARALLEL(num_threads(threads) if (threads > 1))
    {
        TRNI_FLOATS;
        void *room = trni_workspace_of(&space, threads > 1 ? trni_thread() : 0);
        TRNI_FOR(schedule(static))
        for (int64_t i = 0; i < count; i++) trni_region_run(p, orders, i, room);
    }
    trni_workspace_close(&space);
    return TRN_OK;
}

TRN_API trn_status trn_matmul(const trn_matmul_args *args)
{
    trni_product p;
    TRNI_ENTER(args);
    const trn_status status = trni_matmul_check(args, &p);
    if (status != TRN_OK || p.a.lanes == 0 || p.b.lanes == 0) return status;
    trni_matmul_plan plan;
    trni_matmul_plan_of(&plan, &p);
    if (plan.way != TRNI_MATMUL_DEFINED) return trni_matmul_fast(args, &p, &plan);
    if (p.a.depth) return trni_matmul_regions(&p, args->error);
    trni_dst_clear(&p);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ARRAY_MATMUL_H */
