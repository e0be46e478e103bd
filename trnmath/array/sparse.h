/* array/sparse.h - products whose stationary operand has m of every n elements stored.
 * A part of trn_sparse.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ARRAY_SPARSE_H
#define TRNI_ARRAY_SPARSE_H

#include "../data/convert.h"
#include "../machine/numerics.h"
#include "sparse_pack.h"

typedef struct trn_nc_matmul_sparse_args {
    trn_generation generation;  /* whose limits hold; 0 = Trainium2 (Trainium3 for float8_e4m3fn) */
    trn_tensor dst;             /* [M, N] PSUM: F32; on Trainium3 also BF16 (upcast, binary32 add, one rounding) */
    trn_tensor stationary;      /* [S, M] stored values, S <= 128, M <= 128 */
    trn_tensor tags;            /* [S, M] U8: logical positions in the windows; column m has its own */
    trn_tensor moving;          /* [K, N], K = S·n/m; N <= 512; on Trainium3 4096 with an F32 dst, 8192 with BF16 */
    trn_sparse_pattern pattern; /* S is a multiple of its m */
    bool accumulate;            /* add to dst; else dst is overwritten */
    bool *psum_written;         /* optional: has a matmul written dst since it was allocated? Accumulating onto one that
                                   has not is refused; true after a success */
    trn_rounding rounding;      /* of a BF16 dst */
    uint64_t seed, stream;      /* stochastic: element [m, n] takes index m * N + n */
    const trn_numerics *numerics; /* null = the generation's default; k_tile and psum_format do not apply: an
                                     instruction is one tile, and dst is PSUM */
    trn_isa isa;
    trn_error *error;
} trn_nc_matmul_sparse_args;

typedef struct trn_sparse_matmul_args {
    trn_generation generation; /* 0 = Trainium2 (Trainium3 for float8_e4m3fn) */
    trn_tensor dst;            /* [M, N] F32, BF16, F16 or FP8 */
    trn_tensor values;         /* [M, S] stored values of a */
    trn_tensor tags;           /* [M, S] U8: logical positions in the windows, ascending */
    trn_sparse_pattern pattern;
    trn_tensor b;          /* [K, N], K = S·n/m */
    bool accumulate;       /* PSUM starts as dst instead of fresh */
    trn_rounding rounding; /* of the cast to dst */
    trn_overflow overflow;
    uint64_t seed, stream;        /* stochastic: element [m, n] takes index m * N + n */
    const trn_numerics *numerics; /* null = the generation's default; k_tile counts stored elements */
    trn_isa isa;
    void *scratch; /* null = allocated and freed here */
    size_t scratch_bytes;
    trn_error *error;
} trn_sparse_matmul_args;

/* ---- the instruction ---- */

/* One sparse matmul: dst[m, n] = (accumulate ? dst[m, n] + : ) sum over s of stationary[s, m] * moving[k(s, m), n] with
 * k(s, m) = floor(s / pattern.m) * pattern.n + tags[s, m], in the order of trn_systolic_tile. TRN_ELIMIT beyond the
 * generation's tile limits, TRN_EUNSUPPORTED for what it lacks (all of it on Trainium1), TRN_EFORMAT for operands that
 * cannot meet, TRN_EINVAL for a tag outside its window or not ascending, for a pattern that does not exist, for overlap
 * and for accumulating onto unwritten PSUM, TRN_ESHAPE for sizes that do not fit. On failure nothing is written. */
TRN_API trn_status trn_nc_matmul_sparse(const trn_nc_matmul_sparse_args *args);

/* ---- the call ---- */

/* Bytes that .scratch must hold for this call with the present number of threads; 0 when the arguments are refused or
 * none is needed. */
TRN_API size_t trn_sparse_matmul_scratch_bytes(const trn_sparse_matmul_args *args);

/* dst[m, n] = (accumulate ? dst[m, n] + : ) sum over s of values[m, s] * b[k(m, s), n], where k(m, s) is
 * floor(s / pattern.m) * pattern.n + tags[m, s], in tiles of 128 stored elements. TRN_EFORMAT for operands that cannot
 * meet, TRN_ESHAPE for sizes that do not fit (K must be a multiple of pattern.n), TRN_EINVAL for a tag outside its
 * window or not ascending, null data, overlap and illegal values, TRN_ENOSPC when memory or scratch is short,
 * TRN_EUNSUPPORTED for what the generation (Trainium1: all of it) or this host lacks. On failure nothing is written. */
TRN_API trn_status trn_sparse_matmul(const trn_sparse_matmul_args *args);

#if TRNI_BODIES

#include <stdlib.h>

#include "product_define.h"
#include "sparse_kernels.h"
#include "../base/workspace.h"

/* ---- a sparse product, checked and resolved: what both levels share ---- */

typedef struct trni_sparse_product {
    trni_product of; /* a: the stored values; b: all of it */
    const unsigned char *tags;
    int64_t tag_lane, tag_depth; /* strides */
    trn_sparse_pattern pattern;
} trni_sparse_product;

/* What is asked of the array itself: as many rows of b as are stored. The names are the caller's. */
TRNI_FN trn_status trni_sparse_resolve(trni_sparse_product *s, const trni_request *question, const trn_tensor *tags,
                                       trn_sparse_pattern pattern)
{
    trni_request ask = *question;
    const int depth_axis = ask.a_depth_axis;
    const trn_tensor b = ask.b;
    int64_t stride[TRN_MAX_RANK];
    trn_status status;
    if ((status = trni_sparse_check_pattern(pattern, ask.error)) != TRN_OK) return status;
    if ((status = trn_tensor_check(&ask.a, ask.a_name, TRNI_INPUT, 2, ask.error)) != TRN_OK) return status;
    if ((status = trni_sparse_check_tags_view(tags, &ask.a, ask.a_name, TRNI_INPUT, ask.error)) != TRN_OK)
        return status;
    if ((status = trn_tensor_check(&b, ask.b_name, TRNI_INPUT, 2, ask.error)) != TRN_OK) return status;
    if ((status = trni_sparse_check_depth(pattern, b.shape[0], ask.b_name, ask.a.shape[depth_axis], ask.a_name,
                                          ask.error)) != TRN_OK)
        return status;
    if (ask.a.format == TRN_I8 || b.format == TRN_I8)
        return trni_fail(ask.error, TRN_EFORMAT, "%s is int8, which sparse products do not take",
                         ask.a.format == TRN_I8 ? ask.a_name : ask.b_name);

    ask.b.shape[0] = ask.a.shape[depth_axis];
    if ((status = trni_product_resolve(&s->of, &ask)) != TRN_OK) return status;
    if (!trn_core_spec_of(s->of.generation)->sparse)
        return trni_fail(ask.error, TRN_EUNSUPPORTED, "pattern %d:%d: %s has no structured sparsity", pattern.m,
                         pattern.n, trn_generation_name(s->of.generation));
    if (trn_tensor_overlap(ask.dst, b)) return trni_fail(ask.error, TRN_EINVAL, "dst overlaps %s", ask.b_name);
    if (trn_tensor_overlap(ask.dst, *tags)) return trni_fail(ask.error, TRN_EINVAL, "dst overlaps tags");
    s->of.b = trni_operand_of(&b, 1, 0, &s->of.numerics);
    s->pattern = pattern;
    s->tags = (const unsigned char *)tags->data;
    trni_strides(tags, stride);
    s->tag_lane = tags->shape[1 - depth_axis] > 1 ? stride[1 - depth_axis] : 1;
    s->tag_depth = tags->shape[depth_axis] > 1 ? stride[depth_axis] : 1;
    if (trn_tensor_elements(*tags) == 0 || trn_tensor_elements(ask.dst) == 0) return TRN_OK;
    return trni_sparse_check_tags(tags, depth_axis, pattern, s->of.isa, ask.error);
}

TRNI_FN int64_t trni_sparse_depth(const trni_sparse_product *s) { return s->of.a.depth; }

/* Do the kernels compute what these rules define? A PSUM that rounds after each tile is left to the definition. */
TRNI_FN bool trni_sparse_kernels_apply(const trni_sparse_product *s)
{
    return trni_kernels_apply(&s->of) && s->of.numerics.psum_format == TRN_F32;
}

/* ---- by definition: one output element after the other, any order of trn_numerics ---- */

TRNI_FN void trni_sparse_define_element(const trni_sparse_product *s, int64_t m, int64_t n)
{
    const trni_product *p = &s->of;
    const trn_numerics *rules = &p->numerics;
    const int64_t stored = trni_sparse_depth(s);
    float x[TRNI_ARRAY_ROWS], w[TRNI_ARRAY_ROWS], psum = p->accumulate ? trni_dst_read(p, m, n) : 0.0f;
    bool fresh = !p->accumulate;
    for (int64_t first = 0, tile = 0; first < stored; first += rules->k_tile, tile++) {
        const int rows = (int)trni_min64(stored - first, rules->k_tile);
        trni_operand_gather(&p->a, m, first, 1, rows, rules->flush_inputs, x, 1);
        for (int i = 0; i < rows; i++) {
            const int64_t window = (first + i) / s->pattern.m,
                          tag = s->tags[m * s->tag_lane + (first + i) * s->tag_depth];
            trni_operand_gather(&p->b, n, window * s->pattern.n + tag, 1, 1, rules->flush_inputs, w + i, 1);
        }
        const trni_tile one = { x, w, NULL, rows, 1, 0, p->f32, trni_formats_of(&p->a, &p->b) };
        psum = trni_psum_rounded(p, trni_tile_onto(psum, fresh, &one, rules), tile, m, n);
        fresh = false;
    }
    trni_dst_write(p, m, n, psum);
}

TRNI_FN void trni_sparse_define_row(const trni_sparse_product *s, int64_t m)
{
    for (int64_t n = 0; n < s->of.b.lanes; n++) trni_sparse_define_element(s, m, n);
}

/* ---- at full speed: what a worker holds ---- */

typedef struct trni_sparse_worker {
    const trni_sparse_product *s;
    trni_sparse_micro *micro;
    trni_loader loader_a, loader_b;
    trni_sparse_stored stored;
    trni_sparse_cutting cutting;
    trni_sparse_list *lists; /* gang after gang, over one tile */
    unsigned char *strips;   /* of one tile */
    float *psum;             /* of a region of dst that is cast; null: PSUM is dst itself */
    bool direct;
} trni_sparse_worker;

TRNI_FN void trni_sparse_worker_init(trni_sparse_worker *w, const trni_sparse_product *s)
{
    const trni_product *p = &s->of;
    w->s = s;
    w->micro = trni_sparse_micro_of(trni_sparse_halves(&p->b, p->isa), p->isa);
    trni_loader_init(&w->loader_a, &p->a, p->isa);
    trni_loader_init(&w->loader_b, &p->b, p->isa);
    w->stored.values = &p->a;
    w->stored.loader = &w->loader_a;
    w->stored.tags = s->tags;
    w->stored.tag_lane = s->tag_lane;
    w->stored.tag_depth = s->tag_depth;
    w->cutting = trni_sparse_cutting_of(&p->b, &w->loader_b, p->isa);
}

TRNI_FN trni_sparse_tile trni_sparse_worker_tile(const trni_sparse_worker *w, int64_t first)
{
    return trni_sparse_tile_of(&w->s->of.numerics, w->s->pattern, first, trni_sparse_depth(w->s));
}

/* The lists of rows [m, m + rows) over one tile. */
TRNI_FN void trni_sparse_lists_make(const trni_sparse_worker *w, const trni_sparse_tile *t, int64_t m, int64_t rows)
{
    enum { gang = TRNI_SPARSE_GANG };
    for (int64_t i = 0; i < rows; i += gang) {
        trni_sparse_want_list(&w->stored, t, m + i + gang, trni_min64(rows - i - gang, gang));
        trni_sparse_list_make(&w->stored, t, m + i, (int)trni_min64(rows - i, gang), w->s->of.isa, w->lists + i / gang);
    }
}

/* PSUM of a region: [row][step] floats. */
typedef struct trni_sparse_psum {
    float *at;
    int64_t step;
} trni_sparse_psum;

TRNI_FN void trni_sparse_copy(float *dst, int64_t dst_step, const float *src, int64_t src_step, int rows,
                              int64_t columns)
{
    for (int i = 0; i < rows; i++) memcpy(dst + i * dst_step, src + i * src_step, sizeof(float) * (size_t)columns);
}

/* One list times one strip, onto `rows` x `columns` of PSUM; the kernel itself always writes a whole gang and strip. */
TRNI_FN void trni_sparse_block(const trni_sparse_worker *w, const trni_sparse_tile *t, const trni_sparse_list *list,
                               const unsigned char *strip, trni_sparse_psum psum, int rows, int64_t columns, bool fresh)
{
    enum { width = TRNI_SPARSE_WIDTH };
    float local[(int)TRNI_SPARSE_GANG * width];
    if (rows == TRNI_SPARSE_GANG && columns == width) {
        w->micro(list, strip, &t->order, fresh ? NULL : psum.at, psum.step, psum.at, psum.step);
        return;
    }
    memset(local, 0, sizeof local);
    if (!fresh) trni_sparse_copy(local, width, psum.at, psum.step, rows, columns);
    w->micro(list, strip, &t->order, fresh ? NULL : local, width, local, width);
    trni_sparse_copy(psum.at, psum.step, local, width, rows, columns);
}

/* ---- the instruction ---- */

TRNI_DRIVER trn_status trni_nc_matmul_sparse_check(const trn_nc_matmul_sparse_args *args, trni_sparse_product *s)
{
    trn_error *error = args->error;
    trni_request ask;
    TRNI_REQUEST(ask, args);
    ask.a = args->stationary;
    ask.b = args->moving;
    ask.a_name = "stationary";
    ask.b_name = "moving";
    ask.a_lane_axis = 1;
    const trn_status status = trni_sparse_resolve(s, &ask, &args->tags, args->pattern);
    if (status != TRN_OK) return status;

    const trn_core_spec *core = trn_core_spec_of(s->of.generation);
    const char *chip = trn_generation_name(s->of.generation);
    const bool bf16 = args->dst.format == TRN_BF16;
    const trn_status format = trni_check_psum_format(core, args->dst.format, error);
    if (format != TRN_OK) return format;
    const struct {
        int64_t size;
        int limit;
        const char *what;
    } limit[] = {
        { s->of.a.depth, core->max_k, "stored elements S (partitions)" },
        { s->of.a.lanes, core->max_m, "stationary free size M" },
        { s->of.b.lanes, bf16 ? core->max_n_bf16 : core->max_n, "moving free size N" },
    };
    for (int i = 0; i < 3; i++)
        if (limit[i].size > limit[i].limit)
            return trni_fail(error, TRN_ELIMIT, "%s %lld exceeds %d (%s, %s dst)", limit[i].what,
                             (long long)limit[i].size, limit[i].limit, chip, trn_format_name(args->dst.format));
    const trn_status written = trni_check_psum_written(args->accumulate, args->psum_written, error);
    if (written != TRN_OK) return written;
    s->of.numerics.psum_format = TRN_F32; /* dst is PSUM: its format rounds, once, on the way out */
    s->of.numerics.k_tile = TRNI_ARRAY_ROWS;
    return TRN_OK;
}

enum { TRNI_SPARSE_NC_ROWS = 64 }; /* whose lists are made at once */

/* Rows [m, m + rows) of the instruction, their lists being made. */
TRNI_FN void trni_nc_sparse_rows(const trni_sparse_worker *w, const trni_sparse_tile *t, int64_t m, int64_t rows)
{
    enum { gang = TRNI_SPARSE_GANG, width = TRNI_SPARSE_WIDTH };
    const trni_product *p = &w->s->of;
    float psum[gang * width];
    const trni_sparse_psum local = { psum, width };
    for (int64_t n = 0; n < p->b.lanes; n += width) {
        const int64_t columns = trni_min64(p->b.lanes - n, width);
        trni_sparse_strips(&w->cutting, n, columns, t->k, t->depth, w->strips);
        for (int64_t i = 0; i < rows; i += gang) {
            const int64_t count = trni_min64(rows - i, gang);
            memset(psum, 0, sizeof psum);
            for (int64_t r = 0; r < count && p->accumulate; r++)
                for (int64_t j = 0; j < columns; j++) psum[r * width + j] = trni_dst_read(p, m + i + r, n + j);
            trni_sparse_block(w, t, w->lists + i / gang, w->strips, local, gang, width, !p->accumulate);
            for (int64_t r = 0; r < count; r++)
                for (int64_t j = 0; j < columns; j++) trni_dst_write(p, m + i + r, n + j, psum[r * width + j]);
        }
    }
}

TRNI_FN trn_status trni_nc_matmul_sparse_run(const trni_sparse_product *s, trn_error *error)
{
    enum {
        strip_bytes = (2 * TRNI_SPARSE_DEPTH + 1) * TRNI_SPARSE_LINE,
        gangs = (int)TRNI_SPARSE_NC_ROWS / TRNI_SPARSE_GANG
    };
    trni_workspace space;
    trni_sparse_worker w;
    const trn_status status = trni_workspace_open(&space, strip_bytes + gangs * sizeof(trni_sparse_list), 1, error);
    if (status != TRN_OK) return status;
    trni_sparse_worker_init(&w, s);
    w.strips = (unsigned char *)trni_workspace_of(&space, 0);
    w.lists = (trni_sparse_list *)(void *)(w.strips + strip_bytes);
    const trni_sparse_tile t = trni_sparse_worker_tile(&w, 0);
    for (int64_t m = 0; m < s->of.a.lanes; m += TRNI_SPARSE_NC_ROWS) {
        const int64_t rows = trni_min64(s->of.a.lanes - m, TRNI_SPARSE_NC_ROWS);
        trni_sparse_lists_make(&w, &t, m, rows);
        trni_nc_sparse_rows(&w, &t, m, rows);
    }
    trni_workspace_close(&space);
    return TRN_OK;
}

TRN_API trn_status trn_nc_matmul_sparse(const trn_nc_matmul_sparse_args *args)
{
    trni_sparse_product s;
    TRNI_ENTER(args);
    trn_status status = trni_nc_matmul_sparse_check(args, &s);
    if (status != TRN_OK) return status;
    if (s.of.a.lanes == 0 || s.of.b.lanes == 0) return TRN_OK;
    if (trni_sparse_depth(&s) == 0)
        trni_dst_clear(&s.of);
    else if (trni_sparse_kernels_apply(&s))
        status = trni_nc_matmul_sparse_run(&s, args->error);
    else
        for (int64_t m = 0; m < s.of.a.lanes; m++) trni_sparse_define_row(&s, m);
    if (status == TRN_OK && args->psum_written) *args->psum_written = true;
    return status;
}

/* ---- any size: how the work is cut ----
 *
 * Each thread owns a block of dst and runs alone: for each slab of TRNI_SPARSE_COLUMNS columns and each tile, strips
 * of b are made once (for the second-level cache); for each TRNI_SPARSE_ROWS rows, the lists of a; then every strip
 * stays in the first-level cache while the lists pass by. The cuts do not touch the order of sums: only tile boundaries
 * do, and they are the definition's. */

enum {
    TRNI_SPARSE_COLUMNS = 512,
    TRNI_SPARSE_ROWS = 256,
    TRNI_SPARSE_PSUM_ROWS = 512, /* rows of dst whose PSUM is kept in scratch when dst itself cannot hold it */
    TRNI_SPARSE_ALIGN = 64
};

typedef struct trni_sparse_cut {
    int threads_m, threads_n;
    int64_t rows, columns; /* of one thread's block, at most */
    bool direct;           /* dst is F32, aligned, with unit column stride: PSUM lives in it */
    size_t list_bytes, strip_bytes, psum_bytes, thread_bytes;
} trni_sparse_cut;

/* Lists are worth about 16 columns of products, strips about 40 rows of them at 4:16, and less at other patterns. */
TRNI_FN void trni_sparse_cut_threads(trni_sparse_cut *cut, int64_t m, int64_t n, int64_t stored)
{
    const double worth_a_thread = 1 << 18; /* multiply-adds; about what waking a thread costs */
    const double work = (double)m * (double)n * (double)stored / worth_a_thread;
    int threads = trni_threads();
    if (work < threads) threads = work < 1 ? 1 : (int)work;
    double best = 0;
    for (int tm = 1; tm <= threads; tm++) {
        const int tn = threads / tm;
        const int64_t rows = trni_round_up(trni_ceil_div(m, tm), TRNI_SPARSE_GANG),
                      columns = trni_round_up(trni_ceil_div(n, tn), TRNI_SPARSE_WIDTH);
        const double time = (double)rows * (double)columns * (1 + 40.0 / (double)rows + 16.0 / (double)columns);
        if (best != 0 && time >= best) continue;
        best = time;
        cut->rows = trni_min64(rows, m);
        cut->columns = trni_min64(columns, n);
    }
    cut->threads_m = (int)trni_ceil_div(m, cut->rows);
    cut->threads_n = (int)trni_ceil_div(n, cut->columns);
}

TRNI_FN size_t trni_sparse_aligned(size_t bytes)
{
    return (bytes + TRNI_SPARSE_ALIGN - 1) / TRNI_SPARSE_ALIGN * TRNI_SPARSE_ALIGN;
}

/* Columns of a slab, so that its strips fit the second-level cache. */
TRNI_FN int64_t trni_sparse_slab_columns(const trni_sparse_product *s)
{
    return trni_sparse_halves(&s->of.b, s->of.isa) ? TRNI_SPARSE_COLUMNS : TRNI_SPARSE_COLUMNS / 2;
}

TRNI_FN trni_sparse_cut trni_sparse_cut_of(const trni_sparse_product *s)
{
    const trni_product *p = &s->of;
    trni_sparse_cut cut;
    trni_sparse_cut_threads(&cut, p->a.lanes, p->b.lanes, trni_sparse_depth(s));
    const size_t strips =
        (size_t)trni_ceil_div(trni_min64(cut.columns, trni_sparse_slab_columns(s)), TRNI_SPARSE_WIDTH);
    const size_t gangs = (size_t)trni_ceil_div(trni_min64(cut.rows, TRNI_SPARSE_ROWS), TRNI_SPARSE_GANG);
    const size_t strip_bytes =
        TRNI_SPARSE_DEPTH * (size_t)trni_sparse_row_bytes(trni_sparse_halves(&p->b, p->isa)) + TRNI_SPARSE_LINE;
    cut.direct = p->dst.format == TRN_F32 && p->dst.stride[1] == 1 && (uintptr_t)p->dst.data % sizeof(float) == 0;
    cut.list_bytes = gangs * sizeof(trni_sparse_list);
    cut.strip_bytes = strips * strip_bytes;
    cut.psum_bytes =
        cut.direct ? 0
                   : sizeof(float) * strips * TRNI_SPARSE_WIDTH * (size_t)trni_min64(cut.rows, TRNI_SPARSE_PSUM_ROWS);
    cut.thread_bytes = trni_sparse_aligned(cut.list_bytes) + trni_sparse_aligned(cut.strip_bytes) +
                       trni_sparse_aligned(cut.psum_bytes);
    return cut;
}

TRNI_FN size_t trni_sparse_cut_bytes(const trni_sparse_cut *cut)
{
    return cut->thread_bytes * (size_t)cut->threads_m * (size_t)cut->threads_n + TRNI_SPARSE_ALIGN;
}

/* ---- one thread's work ---- */

/* The lines of PSUM that come next, on their way while this gang is multiplied. */
TRNI_FN void trni_sparse_want(const float *at, int64_t step, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        __builtin_prefetch(at + i * step, 1, 3);
        __builtin_prefetch(at + i * step + TRNI_SPARSE_WIDTH / 2, 1, 3);
    }
}

/* All lists times one strip. */
TRNI_FN void trni_sparse_lists_times_strip(const trni_sparse_worker *w, const trni_sparse_tile *t,
                                           const unsigned char *strip, trni_sparse_psum psum, int64_t rows,
                                           int64_t columns)
{
    enum { gang = TRNI_SPARSE_GANG };
    const bool fresh = t->first == 0 && !w->s->of.accumulate,
               last = t->first + t->order.rows == trni_sparse_depth(w->s);
    for (int64_t i = 0; i < rows; i += gang) {
        const trni_sparse_psum here = { psum.at + i * psum.step, psum.step };
        const int count = (int)trni_min64(rows - i, gang);
        trni_sparse_want(here.at + count * psum.step, psum.step, trni_min64(rows - i - count, gang));
        trni_sparse_block(w, t, w->lists + i / gang, strip, here, count, columns, fresh);
        for (int r = 0; r < count && last && w->direct; r++)
            trni_canonical_nans_for(w->s->of.isa)(here.at + r * here.step, (size_t)columns);
    }
}

/* Rows [m, m + rows) times columns [n, n + columns) over all stored elements, PSUM at psum. */
TRNI_FN void trni_sparse_region(const trni_sparse_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns,
                                trni_sparse_psum psum)
{
    enum { width = TRNI_SPARSE_WIDTH };
    for (int64_t first = 0; first < trni_sparse_depth(w->s); first += w->s->of.numerics.k_tile) {
        const trni_sparse_tile t = trni_sparse_worker_tile(w, first);
        const int64_t step = trni_sparse_strip_step(&w->cutting, t.depth);
        trni_sparse_strips(&w->cutting, n, columns, t.k, t.depth, w->strips);
        for (int64_t i = 0; i < rows; i += TRNI_SPARSE_ROWS) {
            const int64_t count = trni_min64(rows - i, TRNI_SPARSE_ROWS);
            trni_sparse_lists_make(w, &t, m + i, count);
            for (int64_t j = 0; j < columns; j += width) {
                const trni_sparse_psum here = { psum.at + i * psum.step + j, psum.step };
                trni_sparse_lists_times_strip(w, &t, w->strips + j / width * step, here, count,
                                              trni_min64(columns - j, width));
            }
        }
    }
}

/* One thread's block of dst, a slab of columns at a time. */
TRNI_FN void trni_sparse_slab(const trni_sparse_worker *w, int64_t m, int64_t rows, int64_t n, int64_t columns)
{
    const trni_product *p = &w->s->of;
    if (w->direct) {
        const trni_sparse_psum home = { (float *)(void *)trni_dst_at(p, m, n), p->dst.stride[0] };
        trni_sparse_region(w, m, rows, n, columns, home);
        return;
    }
    for (int64_t i = 0; i < rows; i += TRNI_SPARSE_PSUM_ROWS) {
        const trni_sparse_psum psum = { w->psum, columns };
        const int64_t count = trni_min64(rows - i, TRNI_SPARSE_PSUM_ROWS);
        if (p->accumulate) trni_psum_from_dst(p, w->psum, m + i, count, n, columns);
        trni_sparse_region(w, m + i, count, n, columns, psum);
        trni_psum_to_dst(p, w->psum, m + i, count, n, columns);
    }
}

TRNI_FN void trni_sparse_part(const trni_sparse_product *s, const trni_sparse_cut *cut, int part,
                              unsigned char *scratch)
{
    const int64_t m = part / cut->threads_n * cut->rows, n = part % cut->threads_n * cut->columns;
    const int64_t rows = trni_min64(s->of.a.lanes - m, cut->rows),
                  columns = trni_min64(s->of.b.lanes - n, cut->columns);
    unsigned char *at = scratch + cut->thread_bytes * (size_t)part;
    trni_sparse_worker w;
    trni_sparse_worker_init(&w, s);
    w.direct = cut->direct;
    w.lists = (trni_sparse_list *)(void *)at;
    w.strips = at += trni_sparse_aligned(cut->list_bytes);
    w.psum = (float *)(void *)(at + trni_sparse_aligned(cut->strip_bytes));
    const int64_t slab = trni_sparse_slab_columns(s);
    for (int64_t j = 0; j < columns; j += slab) trni_sparse_slab(&w, m, rows, n + j, trni_min64(columns - j, slab));
}

/* ---- the call ---- */

TRNI_DRIVER trn_status trni_sparse_matmul_check(const trn_sparse_matmul_args *args, trni_sparse_product *s)
{
    trni_request ask;
    TRNI_REQUEST(ask, args);
    ask.a = args->values;
    ask.b = args->b;
    ask.a_name = "values";
    ask.b_name = "b";
    ask.a_depth_axis = 1;
    ask.overflow = args->overflow;
    const trn_status status = trni_sparse_resolve(s, &ask, &args->tags, args->pattern);
    if (status != TRN_OK) return status;
    return trni_check_result(&s->of, args->error);
}

TRNI_FN bool trni_sparse_matmul_is_cut(const trni_sparse_product *s)
{
    return s->of.a.lanes && s->of.b.lanes && trni_sparse_depth(s) && trni_sparse_kernels_apply(s);
}

TRN_API size_t trn_sparse_matmul_scratch_bytes(const trn_sparse_matmul_args *args)
{
    trni_sparse_product s;
    if (!args) return 0;
    trn_sparse_matmul_args quiet = *args;
    quiet.error = NULL;
    if (trni_sparse_matmul_check(&quiet, &s) != TRN_OK || !trni_sparse_matmul_is_cut(&s)) return 0;
    const trni_sparse_cut cut = trni_sparse_cut_of(&s);
    return trni_sparse_cut_bytes(&cut);
}

TRNI_FN trn_status trni_sparse_matmul_run(const trn_sparse_matmul_args *args, const trni_sparse_product *s)
{
    const trni_sparse_cut cut = trni_sparse_cut_of(s);
    const size_t bytes = trni_sparse_cut_bytes(&cut);
    const int parts = cut.threads_m * cut.threads_n;
    if (args->scratch && args->scratch_bytes < bytes)
        return trni_fail(args->error, TRN_ENOSPC, "scratch_bytes = %zu but this call needs %zu", args->scratch_bytes,
                         bytes);
    void *scratch = args->scratch ? args->scratch : malloc(bytes);
    if (!scratch) return trni_fail(args->error, TRN_ENOSPC, "could not allocate %zu bytes of scratch", bytes);
    unsigned char *at = (unsigned char *)scratch + (0 - (uintptr_t)scratch) % TRNI_SPARSE_ALIGN;
    TRNI_PARALLEL_FOR(num_threads(parts) schedule(static, 1) if (parts > 1))
    for (int part = 0; part < parts; part++) {
        TRNI_FLOATS;
        trni_sparse_part(s, &cut, part, at);
    }
    if (!args->scratch) free(scratch);
    return TRN_OK;
}

TRNI_FN void trni_sparse_matmul_by_definition(const trni_sparse_product *s)
{
    TRNI_PARALLEL_FOR(num_threads(trni_threads()) schedule(static) if (s->of.a.lanes > 1))
    for (int64_t m = 0; m < s->of.a.lanes; m++) {
        TRNI_FLOATS;
        trni_sparse_define_row(s, m);
    }
}

TRN_API trn_status trn_sparse_matmul(const trn_sparse_matmul_args *args)
{
    trni_sparse_product s;
    TRNI_ENTER(args);
    const trn_status status = trni_sparse_matmul_check(args, &s);
    if (status != TRN_OK || s.of.a.lanes == 0 || s.of.b.lanes == 0) return status;
    if (trni_sparse_matmul_is_cut(&s)) return trni_sparse_matmul_run(args, &s);
    if (trni_sparse_depth(&s) == 0)
        trni_dst_clear(&s.of);
    else
        trni_sparse_matmul_by_definition(&s);
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ARRAY_SPARSE_H */
