/* array/systolic_panels.h - the systolic array at full speed: packed panels and kernels for any chains and merge.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: the orders whose chain steps are plain binary32 operations: any chain count, layout and merge, one product a
 *     row, or the sum of two or four.
 * DOES NOT: know what dst is, or split work: trn_tensor_engine.h and trn_matmul.h do.
 *
 * A packed panel, for a tile of P rows:
 *
 *     [ rows of chain 0 | rows of chain 1 | … ]   each row: 1, 2 or 4 lines of `width` lanes (rows of a, or columns
 *     of b)
 *
 * so that each chain is a plain rank-1-update loop over a sub-block, whatever the chain count or layout.
 *
 * KNOWN FROM: array/systolic.h, whose bits these are.
 */
#ifndef TRNI_ARRAY_SYSTOLIC_PANELS_H
#define TRNI_ARRAY_SYSTOLIC_PANELS_H

#include "operand_range.h"
#include "systolic.h"
#include "systolic_loader.h"

/* ---- from places along K to lines of a panel ---- */

enum { TRNI_MAX_DEPTH = TRNI_ARRAY_ROWS * TRNI_MAX_GROUP };

/* How the depth of a tile is laid over the rows of the array. */
typedef enum trni_spread {
    TRNI_SINGLE, /* row p holds k0 + p */
    TRNI_PAIRS,  /* double rows: k0 + p and k0 + half + p */
    TRNI_QUADS   /* MX: k0 + 4 p … k0 + 4 p + 3 */
} trni_spread;

TRNI_FN int trni_spread_group(trni_spread s) { return s == TRNI_QUADS ? 4 : s == TRNI_PAIRS ? 2 : 1; }

typedef struct trni_map {
    trni_chains chains;
    int depth, group, rows, lines; /* lines = rows * group >= depth: an odd depth leaves one line of zeros */
    uint16_t line[TRNI_MAX_DEPTH]; /* of the t-th number along K */
} trni_map;

/* Row and slot of the t-th number of a tile. */
TRNI_FN void trni_spread_place(trni_spread s, int rows, int t, int *row, int *slot)
{
    *row = s == TRNI_QUADS ? t / 4 : t % rows;
    *slot = s == TRNI_QUADS ? t % 4 : t / rows;
}

TRNI_FN void trni_map_init(trni_map *m, const trn_numerics *n, int first_row, int depth, trni_spread spread)
{
    m->depth = depth;
    m->group = trni_spread_group(spread);
    m->rows = (depth + m->group - 1) / m->group;
    m->lines = m->rows * m->group;
    trni_chains_init(&m->chains, n, first_row, m->rows);
    for (int t = 0; t < depth; t++) {
        int row = t, slot = 0;
        if (spread != TRNI_SINGLE) trni_spread_place(spread, m->rows, t, &row, &slot);
        m->line[t] = (uint16_t)(m->chains.slot[row] * m->group + slot);
    }
}

/* ---- packing ---- */

/* lines[lane][k] -> dst[slot[k]][lane]: `lanes` <= 16 lines of `rows` floats, `step` floats apart. */
TRNI_INLINE void trni_transpose_body(float *dst, size_t width, const uint16_t *slot, const float *lines, int64_t step,
                                     int lanes, int rows)
{
    for (int k = 0; k < rows; k++)
        for (int i = 0; i < lanes; i++) dst[slot[k] * width + (size_t)i] = lines[i * step + k];
}
TRNI_DISPATCH_BESIDE(trni_transpose,
                     (float *dst, size_t width, const uint16_t *slot, const float *lines, int64_t step, int lanes,
                      int rows),
                     (dst, width, slot, lines, step, lanes, rows))

/* ---- micro-kernels ----
 *
 * One strip of a times one panel of b over one tile: out[i][j] = (in ? in[i][j] + : ) merged chains, ascending merge.
 * a is packed [line][strip rows], b is packed [line][panel width]; a row of the array is one, two or four lines. With
 * every line the cache line at ahead is asked for, and ahead moves on by ahead_step: memory fetches the next tile while
 * this one is multiplied. */

#define TRNI_MICRO_PARAMS                                                                                              \
    const float *a, const float *b, const int *length, int chains, const float *in, ptrdiff_t in_step, float *out,     \
        ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step
#define TRNI_MICRO_ARGS a, b, length, chains, in, in_step, out, out_step, ahead, ahead_step

typedef void trni_micro_fn(TRNI_MICRO_PARAMS);

TRNI_INLINE void trni_micro_body(int strip, int group, TRNI_MICRO_PARAMS)
{
    enum { most_rows = 8, width = TRNI_MAX_WIDTH };
    float t[most_rows][TRNI_MAX_WIDTH] = { { 0 } }, s[most_rows][TRNI_MAX_WIDTH];
    for (int c = 0; c < chains; c++) {
        TRNI_UNROLL for (int i = 0; i < strip; i++) for (int j = 0; j < width; j++) s[i][j] = 0;
        for (int k = length[c]; k > 0; k--) {
            TRNI_UNROLL for (int i = 0; i < strip; i++) for (int j = 0; j < width; j++)
            {
                if (group == 1) {
                    s[i][j] = __builtin_fmaf(a[i], b[j], s[i][j]);
                } else {
                    float q = __builtin_fmaf(a[strip + i], b[width + j], a[i] * b[j]); /* the product is exact */
                    if (group == 4) {
                        q = __builtin_fmaf(a[2 * strip + i], b[2 * width + j], q);
                        q = __builtin_fmaf(a[3 * strip + i], b[3 * width + j], q);
                    }
                    s[i][j] = s[i][j] + q;
                }
            }
            a += group * strip;
            b += group * width;
            for (int g = 0; g < group; g++) {
                __builtin_prefetch((const void *)ahead, 0, 2);
                ahead += ahead_step;
            }
        }
        for (int i = 0; i < strip; i++)
            for (int j = 0; j < width; j++) t[i][j] = c ? t[i][j] + s[i][j] : s[i][j];
    }
    for (int i = 0; i < strip; i++)
        for (int j = 0; j < width; j++) out[i * out_step + j] = in ? in[i * in_step + j] + t[i][j] : t[i][j];
}

#define TRNI_MICRO(rows, group)                                                                                        \
    TRNI_INLINE void trni_micro_##rows##x##group##_body(TRNI_MICRO_PARAMS)                                             \
    {                                                                                                                  \
        trni_micro_body(rows, group, TRNI_MICRO_ARGS);                                                                 \
    }                                                                                                                  \
    TRNI_DISPATCH_FAST(trni_micro_##rows##x##group, (TRNI_MICRO_PARAMS), (TRNI_MICRO_ARGS))
#define TRNI_MICROS(rows) TRNI_MICRO(rows, 1) TRNI_MICRO(rows, 2) TRNI_MICRO(rows, 4)
#define TRNI_PANEL_SIMD (TRNI_INTRINSICS && TRNI_X86)
#define TRNI_PANEL_NEON (TRNI_INTRINSICS && TRNI_AARCH64)
#if !TRNI_PANEL_SIMD && !TRNI_PANEL_NEON
TRNI_MICROS(1)
TRNI_MICROS(2)
TRNI_MICROS(4)
TRNI_MICROS(8)
#endif
#undef TRNI_MICROS
#undef TRNI_MICRO

/* ---- micro-kernels of hosts without a fused multiply-add ----
 *
 * There fmaf is a function of the C library, thirty times as slow as a multiplication and an addition. Where every
 * product is exact (operand_range.h), these two are the same: kernels of exact products do them for 4 rows times 8
 * columns at a time, in vectors of 16 bytes, which every x86-64 host has, and WebAssembly with -msimd128. (A compiler
 * that fuses them all the same changes nothing.) Other rows are asked for one or two at a time: they take the time of
 * four. */

#if TRNI_X86 || defined(__wasm__)
#define TRNI_PANEL_EXACT 1
#else
#define TRNI_PANEL_EXACT 0
#endif

#if TRNI_PANEL_EXACT
typedef float trni_lanes4 __attribute__((vector_size(16)));

TRNI_INLINE trni_lanes4 trni_lanes4_at(const float *x)
{
    trni_lanes4 v;
    memcpy(&v, x, sizeof v);
    return v;
}

#define TRNI_EACH_OF_FOUR TRNI_UNROLL for (int i = 0; i < 4; i++)

/* Eight columns. */
TRNI_INLINE void trni_micro_exact_part(int rows, int group, TRNI_MICRO_PARAMS)
{
    enum { width = TRNI_MAX_WIDTH };
    const int row[4] = { 0, rows > 1, rows > 2 ? 2 : rows > 1, rows > 2 ? 3 : rows > 1 };
    const trni_lanes4 zero = { 0, 0, 0, 0 };
    trni_lanes4 t[4][2], s[4][2];
    (void)ahead, (void)ahead_step;
    TRNI_EACH_OF_FOUR t[i][0] = t[i][1] = zero;
    for (int c = 0; c < chains; c++) {
        TRNI_EACH_OF_FOUR s[i][0] = s[i][1] = zero;
        for (int k = length[c]; k > 0; k--) {
            TRNI_EACH_OF_FOUR
            {
                trni_lanes4 p = a[row[i]] * trni_lanes4_at(b), q = a[row[i]] * trni_lanes4_at(b + 4);
                for (int g = 1; g < group; g++) {
                    p = p + a[g * rows + row[i]] * trni_lanes4_at(b + g * width);
                    q = q + a[g * rows + row[i]] * trni_lanes4_at(b + g * width + 4);
                }
                s[i][0] = s[i][0] + p;
                s[i][1] = s[i][1] + q;
            }
            a += group * rows;
            b += group * width;
        }
        TRNI_EACH_OF_FOUR
        {
            t[i][0] = c ? t[i][0] + s[i][0] : s[i][0];
            t[i][1] = c ? t[i][1] + s[i][1] : s[i][1];
        }
    }
    for (int i = 0; i < rows; i++, out += out_step, in = in ? in + in_step : in)
        for (int h = 0; h < 2; h++) {
            const trni_lanes4 sum = in ? trni_lanes4_at(in + 4 * h) + t[i][h] : t[i][h];
            memcpy(out + 4 * h, &sum, sizeof sum);
        }
}

#if TRNI_CLANG
#define TRNI_ONE_COPY
#else
#define TRNI_ONE_COPY __attribute__((noclone))
#endif
#define TRNI_MICRO_EXACT(name, group)                                                                                  \
    TRNI_KERNEL TRNI_ONE_COPY static void trni_micro_exact_##name(int rows, int together, TRNI_MICRO_PARAMS)           \
    {                                                                                                                  \
        (void)together;                                                                                                \
        for (int j = 0; j < TRNI_MAX_WIDTH; j += 8)                                                                    \
            trni_micro_exact_part(rows, group, a, b + j, length, chains, in ? in + j : in, in_step, out + j, out_step, \
                                  ahead, ahead_step);                                                                  \
    }
TRNI_MICRO_EXACT(one, 1)
TRNI_MICRO_EXACT(some, together)
#undef TRNI_MICRO_EXACT
#undef TRNI_ONE_COPY
#undef TRNI_EACH_OF_FOUR

/* Of any numbers, a group of one: as it is defined. */
TRNI_COLD void trni_micro_slow(int rows, TRNI_MICRO_PARAMS)
{
    enum { width = TRNI_MAX_WIDTH };
    (void)ahead, (void)ahead_step;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < width; j++) {
            const float *x = a + i, *w = b + j;
            float t = 0;
            for (int c = 0; c < chains; c++) {
                float s = 0;
                for (int k = length[c]; k > 0; k--, x += rows, w += width) s = __builtin_fmaf(*x, *w, s);
                t = c ? t + s : s;
            }
            out[i * out_step + j] = in ? in[i * in_step + j] + t : t;
        }
}

#define TRNI_MICRO_EXACT_OF(rows, group)                                                                               \
    TRNI_FN void trni_micro_exact_##rows##x##group(TRNI_MICRO_PARAMS)                                                  \
    {                                                                                                                  \
        if (group == 1)                                                                                                \
            trni_micro_exact_one(rows, 1, TRNI_MICRO_ARGS);                                                            \
        else                                                                                                           \
            trni_micro_exact_some(rows, group, TRNI_MICRO_ARGS);                                                       \
    }
#define TRNI_MICROS(rows)                                                                                              \
    TRNI_FN void trni_micro_slow_##rows(TRNI_MICRO_PARAMS) { trni_micro_slow(rows, TRNI_MICRO_ARGS); }                 \
    TRNI_MICRO_EXACT_OF(rows, 1) TRNI_MICRO_EXACT_OF(rows, 2) TRNI_MICRO_EXACT_OF(rows, 4)
TRNI_MICROS(4)
TRNI_MICROS(2)
TRNI_MICROS(1)
#undef TRNI_MICROS
#undef TRNI_MICRO_EXACT_OF
#endif

#if TRNI_PANEL_SIMD
#include "../simd/systolic_panels_avx2.h"
#include "../simd/systolic_panels_avx512.h"
#endif
#if TRNI_PANEL_NEON
#include "../simd/systolic_panels_neon.h"
#endif

/* x[i] = x[i] + y[i]: merging chains, adding to PSUM. */
TRNI_INLINE void trni_add_line_body(float *__restrict x, const float *__restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = x[i] + y[i];
}
TRNI_DISPATCH_AVX2(trni_add_line, (float *x, const float *y, size_t n), (x, y, n))

/* The shape of the work on one instruction set: strips of the listed row counts (falling; the last is 1) and the
 * kernel for each, panels of `width` columns. */
enum { TRNI_KERNELS = 5 };

typedef struct trni_array {
    int width;
    int rows[TRNI_KERNELS];
    trni_micro_fn *micro[TRNI_KERNELS];
    trni_transpose_fn *transpose;
    trni_add_line_fn *add;
} trni_array;

#if TRNI_PANEL_EXACT
/* Any products, then exact ones, alone, in pairs and in quads: these two have no other kind (array/product.h, safe). */
#define TRNI_PLAIN_ARRAY(kind)                                                                                         \
    {                                                                                                                  \
        32, { 4, 2, 1, 1, 1 }, { trni_micro_##kind(4), trni_micro_##kind(2), trni_micro_##kind(1), NULL, NULL },       \
            trni_transpose_portable, trni_add_line_portable                                                            \
    }
#define trni_micro_any(rows) trni_micro_slow_##rows
#define trni_micro_one(rows) trni_micro_exact_##rows##x1
#define trni_micro_two(rows) trni_micro_exact_##rows##x2
#define trni_micro_all(rows) trni_micro_exact_##rows##x4
static const trni_array trni_array_plain[4] = { TRNI_PLAIN_ARRAY(any), TRNI_PLAIN_ARRAY(one), TRNI_PLAIN_ARRAY(two),
                                                TRNI_PLAIN_ARRAY(all) };
#undef TRNI_PLAIN_ARRAY
#undef trni_micro_any
#undef trni_micro_one
#undef trni_micro_two
#undef trni_micro_all

/* Does it pay to look for tiles whose products are exact? */
TRNI_FN bool trni_array_looks(const trni_array *array) { return array->micro[0] == trni_micro_slow_4; }

/* What multiplies a packed tile of n numbers of b with one of a, whose range is known. */
TRNI_FN const trni_array *trni_array_of_tile(const trni_array *array, const trni_range *a, const float *b, size_t n)
{
    trni_range range = { 0, 0, 0 };
    if (!trni_array_looks(array)) return array;
    trni_range_of_portable(b, n, &range);
    return trni_products_are_exact(a, &range) ? trni_array_plain + 1 : array;
}
#else
TRNI_FN bool trni_array_looks(const trni_array *array) { return (void)array, false; }
TRNI_FN const trni_array *trni_array_of_tile(const trni_array *array, const trni_range *a, const float *b, size_t n)
{
    (void)a, (void)b, (void)n;
    return array;
}
#endif

#if TRNI_PANEL_SIMD
TRNI_FN trni_array trni_array_of(int group, trn_isa isa)
{
#define TRNI_SIMD(rows, group, isa) trni_simd_micro_##rows##x##group##_##isa
#define TRNI_ENDS trni_simd_transpose_avx512, trni_add_line_avx2
    static const trni_array avx512[3] = {
        { 32,
          { 12, 8, 4, 2, 1 },
          { TRNI_SIMD(12, 1, avx512), TRNI_SIMD(8, 1, avx512), TRNI_SIMD(4, 1, avx512), TRNI_SIMD(2, 1, avx512),
            TRNI_SIMD(1, 1, avx512) },
          TRNI_ENDS },
        { 32,
          { 12, 4, 1, 1, 1 },
          { TRNI_SIMD(12, 2, avx512), TRNI_SIMD(4, 2, avx512), TRNI_SIMD(1, 2, avx512), NULL, NULL },
          TRNI_ENDS },
        { 32,
          { 8, 4, 1, 1, 1 },
          { TRNI_SIMD(8, 4, avx512), TRNI_SIMD(4, 4, avx512), TRNI_SIMD(1, 4, avx512), NULL, NULL },
          TRNI_ENDS },
    };
#undef TRNI_ENDS
#define TRNI_ENDS trni_simd_transpose_avx2, trni_add_line_avx2
    static const trni_array avx2[3] = {
        { 16,
          { 6, 4, 2, 1, 1 },
          { TRNI_SIMD(6, 1, avx2), TRNI_SIMD(4, 1, avx2), TRNI_SIMD(2, 1, avx2), TRNI_SIMD(1, 1, avx2), NULL },
          TRNI_ENDS },
        { 16, { 4, 1, 1, 1, 1 }, { TRNI_SIMD(4, 2, avx2), TRNI_SIMD(1, 2, avx2) }, TRNI_ENDS },
        { 16, { 4, 1, 1, 1, 1 }, { TRNI_SIMD(4, 4, avx2), TRNI_SIMD(1, 4, avx2) }, TRNI_ENDS },
    };
#undef TRNI_ENDS
#undef TRNI_SIMD
    if (isa == TRN_ISA_PORTABLE) return trni_array_plain[group == 1 ? 0 : group / 2 + 1];
    return (isa == TRN_ISA_AVX512 ? avx512 : avx2)[group / 2];
}
#elif TRNI_PANEL_NEON
TRNI_FN trni_array trni_array_of(int group, trn_isa isa)
{
#define TRNI_SIMD(rows, group) trni_simd_micro_##rows##x##group##_neon
#define TRNI_ENDS trni_transpose_for(isa), trni_add_line_for(isa)
    const trni_array neon[3] = {
        { 16, { 6, 4, 2, 1, 1 }, { TRNI_SIMD(6, 1), TRNI_SIMD(4, 1), TRNI_SIMD(2, 1), TRNI_SIMD(1, 1) }, TRNI_ENDS },
        { 16, { 4, 1, 1, 1, 1 }, { TRNI_SIMD(4, 2), TRNI_SIMD(1, 2) }, TRNI_ENDS },
        { 16, { 4, 1, 1, 1, 1 }, { TRNI_SIMD(4, 4), TRNI_SIMD(1, 4) }, TRNI_ENDS },
    };
#undef TRNI_ENDS
#undef TRNI_SIMD
    return neon[group / 2];
}
#else
/* Registers are wide enough for eight rows of 32 sums, or for two. */
TRNI_FN trni_array trni_array_of(int group, trn_isa isa)
{
#define TRNI_OF(rows, group) trni_micro_##rows##x##group##_for(isa)
#define TRNI_ENDS trni_transpose_for(isa), trni_add_line_for(isa)
#define TRNI_TALL(group)                                                                                               \
    {                                                                                                                  \
        32, { 8, 4, 2, 1, 1 }, { TRNI_OF(8, group), TRNI_OF(4, group), TRNI_OF(2, group), TRNI_OF(1, group) },         \
            TRNI_ENDS                                                                                                  \
    }
#define TRNI_LOW(group)                                                                                                \
    {                                                                                                                  \
        32, { 2, 1, 1, 1, 1 }, { TRNI_OF(2, group), TRNI_OF(1, group) }, TRNI_ENDS                                     \
    }
    const trni_array tall[3] = { TRNI_TALL(1), TRNI_TALL(2), TRNI_TALL(4) };
    const trni_array low[3] = { TRNI_LOW(1), TRNI_LOW(2), TRNI_LOW(4) };
#if TRNI_PANEL_EXACT
    if (isa == TRN_ISA_PORTABLE) return trni_array_plain[group == 1 ? 0 : group / 2 + 1];
#endif
    return (isa == TRN_ISA_AVX512 ? tall : low)[group / 2];
#undef TRNI_LOW
#undef TRNI_TALL
#undef TRNI_ENDS
#undef TRNI_OF
}
#endif

/* The tallest kernel that `left` rows can fill. */
TRNI_FN int trni_strip_kernel(const trni_array *array, int64_t left)
{
    int i = 0;
    while (array->rows[i] > left) i++;
    return i;
}

/* What is packed, and how: an operand, its loader and where the numbers of a tile go. */
typedef struct trni_packer {
    const trni_array *array;
    const trni_loader *loader;
    const trni_operand *o;
    const uint16_t *line; /* of each number along K */
    int lines;            /* of a panel */
} trni_packer;

/* Numbers along K follow each other: up to 16 lines at a time are read, and turned. While they are, memory is asked for
 * the same numbers of the lanes that come next, which are far from these. (F32, too, is copied first: turned where it
 * stands, a line of memory at a time of each lane, 16 x 4096 x 4096 takes 1.35 times as long, measured.) */
TRNI_FN void trni_pack_lines(const trni_packer *p, int64_t lane, int lanes, int width, int64_t k, int depth, float *dst)
{
    enum { group = 16 };
    float line[(int)group * TRNI_ARRAY_ROWS];
    const trni_operand *o = p->o;
    const uintptr_t ahead = (uintptr_t)(o->lane_stride * group * o->bytes);
    for (int t = 0; t < depth; t += TRNI_ARRAY_ROWS) {
        const int part = depth - t < TRNI_ARRAY_ROWS ? depth - t : TRNI_ARRAY_ROWS;
        for (int i = 0; i < lanes; i++) {
            const unsigned char *at = trni_operand_at(o, lane + i, k + t);
            for (int64_t c = 0; c < part * o->bytes; c += TRNI_LINE)
                __builtin_prefetch((const void *)((uintptr_t)at + ahead + (uintptr_t)c), 0, 3);
            trni_loader_line(p->loader, line + i * TRNI_ARRAY_ROWS, at, (size_t)part);
        }
        p->array->transpose(dst, (size_t)width, p->line + t, line, TRNI_ARRAY_ROWS, lanes, part);
    }
}

/* Packs lanes [lane, lane + lanes) of `depth` numbers along K into one panel of `width` >= lanes; the rest is zero. */
TRNI_FN void trni_pack_panel(const trni_packer *p, int64_t lane, int lanes, int width, int64_t k, int depth, float *dst)
{
    enum { group = 16 };
    const trni_operand *o = p->o;
    if (o->lane_stride == 1 && (lanes > 1 || o->depth_stride != 1)) {
        for (int t = 0; t < depth; t++)
            trni_loader_line(p->loader, dst + p->line[t] * width, trni_operand_at(o, lane, k + t), (size_t)lanes);
    } else if (o->depth_stride == 1) {
        for (int first = 0; first < lanes; first += group)
            trni_pack_lines(p, lane + first, lanes - first < group ? lanes - first : (int)group, width, k, depth,
                            dst + first);
    } else {
        for (int t = 0; t < depth; t++)
            for (int i = 0; i < lanes; i++)
                dst[p->line[t] * width + i] = trni_float(trni_operand_bits(o, lane + i, k + t));
    }
}

/* Packs columns [column, column + columns) of one tile of b: panel after panel, [panel][line][width]. */
TRNI_DRIVER void trni_pack_columns(const trni_packer *p, int64_t column, int64_t columns, int64_t k, int depth,
                                   float *dst)
{
    const int width = p->array->width;
    const int group = columns > width ? 8 : depth; /* lines read together: as many streams as the prefetcher follows */
    const int64_t whole = p->o->lane_stride == 1 ? columns / width : 0;
    const size_t panel = (size_t)p->lines * (size_t)width;
    if (whole) {
        const int64_t row_step = trni_operand_at(p->o, 0, 1) - trni_operand_at(p->o, 0, 0);
        for (int t = 0; t < depth; t += group)
            p->loader->lines(p->loader, dst, panel, p->line + t, trni_operand_at(p->o, column, k + t), row_step,
                             depth - t < group ? depth - t : group, whole);
    }
    for (int64_t i = whole; i * width < columns; i++) {
        const int64_t left = columns - i * width;
        trni_pack_panel(p, column + i * width, left < width ? (int)left : width, width, k, depth,
                        dst + (size_t)i * panel);
    }
}

/* The numbers of one line, `t`, shared out among the strips that begin at dst. */
TRNI_FN void trni_share_line(const trni_packer *p, const float *line, int64_t lanes, int t, float *dst)
{
    enum { together = 4 }; /* heights of strips are multiples of it, but for the lowest */
    for (int64_t done = 0; done < lanes;) {
        const int strip = p->array->rows[trni_strip_kernel(p->array, lanes - done)];
        const float *from = line + done;
        float *to = dst + done * p->lines + p->line[t] * strip;
        int i = 0;
        for (; i + together <= strip; i += together) memcpy(to + i, from + i, together * sizeof *to);
        for (; i < strip; i++) to[i] = from[i];
        done += strip;
    }
}

/* The same where lanes follow each other: lines of them are read at once, several where as many lanes are left as are
 * read together, and shared out among the strips. */
TRNI_LEAN void trni_pack_strips(const trni_packer *p, int64_t lane, int64_t lanes, int64_t k, int depth, float *dst)
{
    enum { most = 96, together = 8 };
    float line[(int)most * (int)together];
    const int width = p->array->width, panels = most / width;
    const int64_t whole = most / p->array->rows[0] * p->array->rows[0]; /* strips of the tallest kernel */
    const int64_t row_step = trni_operand_at(p->o, 0, 1) - trni_operand_at(p->o, 0, 0);
    uint16_t place[together]; /* panels that lie side by side: [t][panel][width] */
    for (int t = 0; t < together; t++) place[t] = (uint16_t)(t * panels);
    for (int64_t from = 0; from < lanes; from += whole) {
        const int64_t count = lanes - from < whole ? lanes - from : whole;
        float *strips = dst + from * p->lines;
        for (int t = 0; t < depth; t += together) {
            const int part = depth - t < together ? depth - t : (int)together;
            const unsigned char *at = trni_operand_at(p->o, lane + from, k + t);
            if (count == most && most % width == 0)
                p->loader->lines(p->loader, line, (size_t)width, place, at, row_step, part, panels);
            else
                for (int i = 0; i < part; i++)
                    trni_loader_line(p->loader, line + i * most, at + i * row_step, (size_t)count);
            for (int i = 0; i < part; i++) trni_share_line(p, line + i * most, count, t + i, strips);
        }
    }
}

/* Packs rows [lane, lane + lanes) of one tile of a, strip after strip; strip s of r rows is [line][r]. */
TRNI_DRIVER void trni_pack_rows(const trni_packer *p, int64_t lane, int64_t lanes, int64_t k, int depth, float *dst)
{
    if (p->o->lane_stride == 1 && lanes > p->array->rows[0]) {
        trni_pack_strips(p, lane, lanes, k, depth, dst);
        return;
    }
    for (int64_t done = 0; done < lanes;) {
        const int strip = p->array->rows[trni_strip_kernel(p->array, lanes - done)];
        trni_pack_panel(p, lane + done, strip, strip, k, depth, dst + (size_t)(done * p->lines));
        done += strip;
    }
}

/* ---- one strip times one panel over one tile, any merge ----
 *
 * Chains that are merged in pairs (their number is a power of two) are added to their neighbours as soon as both are
 * there: of sixteen no more than five wait at a time. */

TRNI_DRIVER void trni_strip_times_panel(const trni_array *array, int kernel, const float *a, const float *b,
                                        const trni_map *map, trn_merge merge, const float *in, ptrdiff_t in_step,
                                        float *out, ptrdiff_t out_step, uintptr_t ahead, uintptr_t ahead_step)
{
    const trni_chains *c = &map->chains;
    if (merge == TRN_MERGE_ASCENDING || c->count < 4) { /* up to three sums the two merges are one */
        array->micro[kernel](a, b, c->length, c->count, in, in_step, out, out_step, ahead, ahead_step);
        return;
    }
    enum { most = 16 * TRNI_MAX_WIDTH, waiting = 5 };
    const int strip = array->rows[kernel], width = array->width, size = strip * width;
    float s[waiting][most];
    int depth = 0;
    for (int chain = 0; chain < c->count; chain++) {
        const int lines = c->length[chain] * map->group;
        array->micro[kernel](a, b, &c->length[chain], 1, NULL, 0, s[depth++], width, ahead, ahead_step);
        ahead += ahead_step * (uintptr_t)lines;
        a += lines * strip;
        b += lines * width;
        for (int done = chain + 1; done % 2 == 0; done /= 2, depth--)
            array->add(s[depth - 2], s[depth - 1], (size_t)size);
    }
    for (int i = 0; i < strip; i++, in = in ? in + in_step : in) {
        float *line = s[0] + i * width;
        if (in) array->add(line, in, (size_t)width); /* addition does not mind the order of two */
        memcpy(out + i * out_step, line, sizeof(float) * (size_t)width);
    }
}

/* ---- the way out ---- */

/* BF16 PSUM, nearest even: rows of sums, `step` floats apart, become BF16 numbers. */
TRNI_INLINE void trni_round_bf16_body(float *at, ptrdiff_t step, int rows, size_t n)
{
    for (int r = 0; r < rows; r++, at += step)
        for (size_t i = 0; i < n; i++) {
            const uint32_t u = trni_bits(at[i]), even = u + 0x7fffu + (u >> 16 & 1u);
            at[i] = trni_float((trni_is_nan_bits(u) ? u | 0x00400000u : even) & 0xffff0000u);
        }
}
TRNI_DISPATCH_AVX2(trni_round_bf16, (float *at, ptrdiff_t step, int rows, size_t n), (at, step, rows, n))

TRNI_COLD void trni_mend_nans(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (trni_is_nan_bits(trni_bits(x[i]))) x[i] = trni_float(TRNI_F32_NAN);
}

/* Every NaN that an engine computes is 7fc00000, whatever operand or instruction it came from. NaNs are rare: look
 * first, write only then. */
TRNI_INLINE void trni_canonical_nans_body(float *x, size_t n)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++) found |= trni_is_nan_bits(trni_bits(x[i]));
    if (found) trni_mend_nans(x, n);
}
TRNI_DISPATCH_AVX2(trni_canonical_nans, (float *x, size_t n), (x, n))

#endif /* TRNI_ARRAY_SYSTOLIC_PANELS_H */
