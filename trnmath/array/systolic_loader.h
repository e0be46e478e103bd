/* array/systolic_loader.h - the way into the systolic array: operands in memory, decoded in the order that feeds it.
 * Behind trn_sparse.h trn_tensor_engine.h. SPDX-License-Identifier: MIT
 *
 * DOES: views of operands as lanes (rows of a, columns of b) and depth (K); every format the array reads, as binary32:
 *     lines of consecutive elements for packing, and the products of a single row with lines read in memory order.
 * DOES NOT: check views, or know what is done with the numbers.
 *
 * KNOWN FROM: NKI's nc_matmul (formats: documented); TF32 rounding and fp32r as trn_numerics says (assumed).
 */
#ifndef TRNI_ARRAY_SYSTOLIC_LOADER_H
#define TRNI_ARRAY_SYSTOLIC_LOADER_H

#include <math.h>

#include "../data/convert.h"
#include "../machine/numerics.h"
#include "operand_range.h"
#include "systolic_aligned.h"

/* ---- operands: a matrix of `lanes` rows (of a) or columns (of b), each `depth` long along K ----
 *
 * An instruction's tile of double rows or MX has a third axis: `slots` numbers of K for each of `depth` rows. */

typedef struct trni_operand {
    const unsigned char *data;
    trn_format format; /* TRN_TF32 also for F32 read as fp32r */
    trn_format_info info;
    trn_tf32_input tf32;
    int64_t bytes; /* of one element */
    int64_t lanes, depth, slots;
    int64_t lane_stride, depth_stride, slot_stride; /* in elements */
} trni_operand;

/* The row of the operand's format, as these rules read it. */
TRNI_DRIVER trn_format_info trni_operand_info(const trn_tensor *t, const trn_numerics *n)
{
    trn_format_info info = trn_tensor_format_info(t);
    const bool own_bias = info.bits != 8 || t->format == TRN_CFP8 || info.kind != TRN_KIND_FLOAT;
    if (n->fp8_bias && !own_bias) info.bias = n->fp8_bias;
    return info;
}

/* `lane_axis` and `depth_axis` name two axes of the view; a third one, if there is one, holds the slots. */
TRNI_DRIVER trni_operand trni_operand_of(const trn_tensor *t, int lane_axis, int depth_axis, const trn_numerics *n)
{
    int64_t stride[TRN_MAX_RANK];
    trni_operand o;
    const int slot_axis = 3 - lane_axis - depth_axis; /* of three */
    trni_strides(t, stride);
    o.data = (const unsigned char *)t->data;
    o.format = t->format == TRN_F32 && n->fp32_mode == TRN_FP32_R ? TRN_TF32 : t->format;
    o.info = trni_operand_info(t, n);
    o.tf32 = n->tf32_input;
    o.bytes = (int64_t)trn_format_bytes(t->format);
    o.lanes = t->shape[lane_axis];
    o.depth = t->shape[depth_axis];
    o.slots = t->rank == 3 ? t->shape[slot_axis] : 1;
    o.lane_stride = o.lanes > 1 ? stride[lane_axis] : 1; /* a stride that is never taken may be any number */
    o.depth_stride = o.depth > 1 ? stride[depth_axis] : 1;
    o.slot_stride = o.slots > 1 ? stride[slot_axis] : 0;
    return o;
}

TRNI_INLINE const unsigned char *trni_operand_at(const trni_operand *o, int64_t lane, int64_t k)
{
    return o->data + (lane * o->lane_stride + k * o->depth_stride) * o->bytes;
}

/* What the accumulators without chains want to know of a and b. */
TRNI_FN trni_formats trni_formats_of(const trni_operand *a, const trni_operand *b)
{
    const trni_formats f = { (int)(a->bytes > b->bytes ? a->bytes : b->bytes), 1 - a->info.bias, 1 - b->info.bias };
    return f;
}

/* One slot of every row, as an operand without slots. */
TRNI_FN trni_operand trni_operand_slot(const trni_operand *o, int64_t slot)
{
    trni_operand one = *o;
    one.data += slot * o->slot_stride * o->bytes;
    one.slots = 1;
    return one;
}

/* Decoding on the way into the array. NaN payloads pass: the result's NaN is made canonical at the end. */

TRNI_INLINE uint32_t trni_in_f32(uint32_t u) { return u; }

TRNI_INLINE uint32_t trni_in_tf32_cut(uint32_t u)
{
    return (u & 0xffffe000u) | (trni_is_nan_bits(u) ? 0x00400000u : 0); /* a NaN may not lose all its payload */
}

TRNI_INLINE uint32_t trni_in_tf32(uint32_t u) { return trni_tf32_from_bits(u); }
TRNI_INLINE uint32_t trni_in_bf16(uint16_t code) { return (uint32_t)code << 16; }
TRNI_INLINE uint32_t trni_in_f16(uint16_t code) { return trni_bits_from_f16(code); }

TRNI_INLINE void trni_cast_tf32_cut_body(void *__restrict dst, const void *__restrict src, size_t n)
{
    trni_any32 *__restrict y = (trni_any32 *)dst;
    const trni_any32 *__restrict x = (const trni_any32 *)src;
    for (size_t i = 0; i < n; i++) y[i] = trni_in_tf32_cut(x[i]);
}
TRNI_DISPATCH_AVX2(trni_cast_tf32_cut, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

TRNI_COLD uint32_t trni_operand_bits(const trni_operand *o, int64_t lane, int64_t k)
{
    const unsigned char *at = trni_operand_at(o, lane, k);
    uint32_t word = 0;
    memcpy(&word, at, (size_t)o->bytes); /* little endian */
    if (o->format == TRN_F32) return word;
    if (o->format != TRN_TF32) return trni_decode_row(&o->info, word);
    return o->tf32 == TRN_TF32_TRUNCATE ? trni_in_tf32_cut(word) : trni_in_tf32(word);
}

/* `count` numbers of one lane, k, k + step, …, for the definition, into out[0], out[out_step], …. */
TRNI_COLD void trni_operand_gather(const trni_operand *o, int64_t lane, int64_t k, int64_t step, int count, bool flush,
                                   float *out, int out_step)
{
    const double smallest = ldexp(1.0, 1 - o->info.bias); /* normal number of its format */
    for (int i = 0; i < count; i++) {
        const float x = trni_float(trni_operand_bits(o, lane, k + i * step));
        const bool subnormal = (double)x > -smallest && (double)x < smallest;
        out[i * out_step] = flush && subnormal ? trni_float(trni_bits(x) & TRNI_F32_SIGN) : x;
    }
}

/* ---- lines ---- */

enum { TRNI_MAX_WIDTH = 32 };

struct trni_loader;

typedef void trni_lines_fn(const struct trni_loader *loader, float *dst, size_t panel_step, const uint16_t *slot,
                           const unsigned char *src, int64_t row_step, int rows, int64_t panels);

/* The same for groups of two or four lines, slot_step bytes apart, whose products are summed before they join, times
 * their column's scale (quads only; E8M0). */
typedef void trni_groups_fn(const struct trni_loader *loader, float *sum, const float *x, const unsigned char *src,
                            int64_t row_step, int64_t slot_step, int rows, const uint8_t *scale, int64_t ahead,
                            size_t n);

typedef void trni_stream_fn(const struct trni_loader *loader, float *sum, const float *x, const unsigned char *src,
                            int64_t row_step, int rows, int64_t ahead, size_t n);

/* sum[j] = x[r] * line r [j] + sum[j], for `count` lines in order; asks for the same lines `ahead` bytes further on. */
#define TRNI_STREAM_ONE(name, code_t, count, i)                                                                        \
    {                                                                                                                  \
        float s = sum[i];                                                                                              \
        for (int r = 0; r < count; r++) {                                                                              \
            code_t code;                                                                                               \
            memcpy(&code, src + r * row_step + (i) * sizeof code, sizeof code);                                        \
            s = __builtin_fmaf(x[r], trni_float(trni_in_##name(code)), s);                                             \
        }                                                                                                              \
        sum[i] = s;                                                                                                    \
    }
#define TRNI_STREAM_ROWS(name, code_t, count)                                                                          \
    {                                                                                                                  \
        enum { line = (int)(64 / sizeof(code_t)) };                                                                    \
        size_t j = 0;                                                                                                  \
        for (; j + line <= n; j += line) {                                                                             \
            for (int r = 0; r < count; r++)                                                                            \
                __builtin_prefetch(                                                                                    \
                    (const void *)((uintptr_t)(src + r * row_step + j * sizeof(code_t)) + (uintptr_t)ahead));          \
            for (size_t i = j; i < j + line; i++) TRNI_STREAM_ONE(name, code_t, count, i)                              \
        }                                                                                                              \
        for (; j < n; j++) TRNI_STREAM_ONE(name, code_t, count, j)                                                     \
    }

/* For the formats that matter most, compiled per instruction set:
 *   lines   `rows` lines of consecutive elements into panels of `width` lanes, a slot for each row
 *   stream  one chain of a single row of a: sums of n columns, `rows` lines of b
 * All read in memory order. The others are decoded a stretch at a time. */
#define TRNI_LINES_PARAMS                                                                                              \
    const struct trni_loader *loader, float *dst, size_t panel_step, const uint16_t *slot, const unsigned char *src,   \
        int64_t row_step, int rows, int64_t panels
#define TRNI_STREAM_PARAMS                                                                                             \
    const struct trni_loader *loader, float *sum, const float *x, const unsigned char *src, int64_t row_step,          \
        int rows, int64_t ahead, size_t n
#define TRNI_GROUPS_PARAMS                                                                                             \
    const struct trni_loader *loader, float *sum, const float *x, const unsigned char *src, int64_t row_step,          \
        int64_t slot_step, int rows, const uint8_t *scale, int64_t ahead, size_t n
#define TRNI_DECODER(name, code_t)                                                                                     \
    TRNI_INLINE void trni_line_##name(float *dst, const unsigned char *src, size_t n)                                  \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            code_t code;                                                                                               \
            memcpy(&code, src + i * sizeof code, sizeof code);                                                         \
            const uint32_t u = trni_in_##name(code);                                                                   \
            memcpy(dst + i, &u, sizeof u);                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    TRNI_INLINE void trni_lines_##name##_body(trn_isa isa, TRNI_LINES_PARAMS)                                          \
    {                                                                                                                  \
        const size_t width = (size_t)trni_panel_width(isa);                                                            \
        (void)loader;                                                                                                  \
        for (int64_t p = 0; p < panels; p++)                                                                           \
            for (int r = 0; r < rows; r++)                                                                             \
                trni_line_##name(dst + (size_t)p * panel_step + slot[r] * width,                                       \
                                 src + r * row_step + p * (int64_t)(width * sizeof(code_t)), width);                   \
    }                                                                                                                  \
    TRNI_INLINE void trni_stream_##name##_body(trn_isa isa, TRNI_STREAM_PARAMS)                                        \
    {                                                                                                                  \
        (void)isa, (void)loader;                                                                                       \
        for (; rows >= 4; rows -= 4, x += 4, src += 4 * row_step) TRNI_STREAM_ROWS(name, code_t, 4)                    \
        for (; rows > 0; rows--, x++, src += row_step) TRNI_STREAM_ROWS(name, code_t, 1)                               \
    }                                                                                                                  \
    TRNI_DISPATCH_ISA(trni_stream_##name, (TRNI_STREAM_PARAMS), (loader, sum, x, src, row_step, rows, ahead, n))       \
    TRNI_DISPATCH_ISA(trni_lines_##name, (TRNI_LINES_PARAMS),                                                          \
                      (loader, dst, panel_step, slot, src, row_step, rows, panels))

/* Columns of b in one panel. Plain C wants 32: gcc 12 peels loops of up to 16 steps before it would vectorise them. */
TRNI_INLINE int trni_panel_width(trn_isa isa)
{
    return TRNI_INTRINSICS && (TRNI_AARCH64 || isa == TRN_ISA_AVX2) ? 16 : 32;
}

#define TRNI_LOADER_SIMD (TRNI_INTRINSICS && TRNI_X86)
#define TRNI_LOADER_NEON (TRNI_INTRINSICS && TRNI_AARCH64)
#if !TRNI_LOADER_SIMD && !TRNI_LOADER_NEON
TRNI_DECODER(f32, uint32_t)
TRNI_DECODER(tf32, uint32_t)
TRNI_DECODER(bf16, uint16_t)
TRNI_DECODER(f16, uint16_t)
#endif
#undef TRNI_DECODER

/* How lines of an operand are read. */
typedef struct trni_loader {
    trni_cast *line; /* n consecutive elements, or null: the decoder reads them */
    trni_lines_fn *lines;
    trni_stream_fn *stream;
    trni_groups_fn *pairs, *quads; /* of codes of a byte */
    trn_isa isa;
    int width;     /* of a panel */
    int64_t bytes; /* of an element */
    bool woven;    /* stream, pairs and quads keep blocks of 64 sums in the order of trni_woven; unweave mends that */
    void (*unweave)(float *dst, const float *src, size_t n);
    trni_decoder decoder;
} trni_loader;

/* Some kernels find it easier to leave columns 4 l + q of a block of 64 at place 16 q + l. */
enum { TRNI_WEAVE = 64 };
TRNI_INLINE size_t trni_woven(size_t j) { return (j & ~(size_t)63) + 16 * (j & 3) + (j >> 2 & 15); }

TRNI_FN void trni_loader_line(const trni_loader *f, float *dst, const unsigned char *src, size_t n)
{
    if (f->line)
        f->line(dst, src, n);
    else
        trni_decoder_run(&f->decoder, dst, src, n);
}

/* ---- any format: decoded a stretch at a time ---- */

enum { TRNI_LOADER_STRETCH = 512 }; /* a multiple of every panel's width */

TRNI_FN void trni_lines_any(TRNI_LINES_PARAMS)
{
    float line[TRNI_LOADER_STRETCH];
    const size_t width = (size_t)loader->width, total = (size_t)panels * width;
    for (int r = 0; r < rows; r++)
        for (size_t j = 0; j < total; j += TRNI_LOADER_STRETCH) {
            const size_t count = total - j < TRNI_LOADER_STRETCH ? total - j : (size_t)TRNI_LOADER_STRETCH;
            trni_loader_line(loader, line, src + r * row_step + (int64_t)j * loader->bytes, count);
            for (size_t i = 0; i < count; i += width)
                memcpy(dst + (j + i) / width * panel_step + slot[r] * width, line + i, sizeof(float) * width);
        }
}

/* sum[i] = w * y[i] + sum[i] */
TRNI_INLINE void trni_add_times_body(float *__restrict sum, float w, const float *__restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) sum[i] = __builtin_fmaf(w, y[i], sum[i]);
}
TRNI_DISPATCH_AVX2(trni_add_times, (float *sum, float w, const float *y, size_t n), (sum, w, y, n))

/* The same without a fused instruction, where all products are exact. */
TRNI_KERNEL static void trni_add_times_exact(float *__restrict sum, float w, const float *__restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++) sum[i] = w * y[i] + sum[i];
}

/* Which of them: portable x86-64 looks at the numbers. */
TRNI_FN trni_add_times_fn *trni_add_times_of(trn_isa isa, float w, const float *y, size_t n)
{
    trni_range one = { 0, 0, 0 }, line = { 0, 0, 0 };
    if (!TRNI_X86 || isa != TRN_ISA_PORTABLE) return trni_add_times_for(isa);
    trni_range_of_portable(&w, 1, &one);
    trni_range_of_portable(y, n, &line);
    return trni_products_are_exact(&one, &line) ? trni_add_times_exact : trni_add_times_for(isa);
}

TRNI_FN void trni_stream_any(TRNI_STREAM_PARAMS)
{
    float line[TRNI_LOADER_STRETCH];
    for (int r = 0; r < rows; r++, src += row_step)
        for (size_t j = 0; j < n; j += TRNI_LOADER_STRETCH) {
            const size_t count = n - j < TRNI_LOADER_STRETCH ? n - j : (size_t)TRNI_LOADER_STRETCH;
            const unsigned char *at = src + (int64_t)j * loader->bytes;
            for (int64_t i = 0; i < (int64_t)count * loader->bytes; i += 64)
                __builtin_prefetch((const void *)((uintptr_t)(at + i) + (uintptr_t)ahead));
            trni_loader_line(loader, line, at, count);
            trni_add_times_of(loader->isa, x[r], line, count)(sum + j, x[r], line, count);
        }
}

/* An MX scale as a factor: exact for what is safe (array/product.h), and ff is NaN. */
enum { TRNI_SCALE_BYTE_NAN = 0xff };
TRNI_INLINE uint32_t trni_scale_bits(uint32_t byte)
{
    return byte == TRNI_SCALE_BYTE_NAN ? TRNI_F32_NAN : byte == 0 ? 0x00400000u : byte << 23;
}
TRNI_INLINE void trni_scale_values_body(float *__restrict factor, const uint8_t *__restrict scale, size_t n)
{
    for (size_t i = 0; i < n; i++) factor[i] = trni_float(trni_scale_bits(scale[i]));
}
TRNI_DISPATCH_AVX2(trni_scale_values, (float *factor, const uint8_t *scale, size_t n), (factor, scale, n))

/* Columns [0, n) of sums in place j from their woven places; `n` in whole blocks of TRNI_WEAVE. */
TRNI_FN void trni_unweave(float *dst, const float *src, size_t n)
{
    for (size_t j = 0; j < n; j++) dst[j] = src[trni_woven(j)];
}

/* `group` lines of codes at src, decoded, times x; their sums joined to sum, times scale if there is one. */
TRNI_INLINE void trni_add_group_body(int group, float *__restrict sum, const float *x,
                                     const float (*line)[TRNI_LOADER_STRETCH], const float *scale, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float q = __builtin_fmaf(x[1], line[1][i], x[0] * line[0][i]); /* the product is exact */
        for (int g = 2; g < group; g++) q = __builtin_fmaf(x[g], line[g][i], q);
        sum[i] = group == 4 ? __builtin_fmaf(q, scale[i], sum[i]) : sum[i] + q;
    }
}
TRNI_INLINE void trni_add_pair_body(float *__restrict sum, const float *x, const float (*line)[TRNI_LOADER_STRETCH],
                                    const float *scale, size_t n)
{
    trni_add_group_body(2, sum, x, line, scale, n);
}
TRNI_INLINE void trni_add_quad_body(float *__restrict sum, const float *x, const float (*line)[TRNI_LOADER_STRETCH],
                                    const float *scale, size_t n)
{
    trni_add_group_body(4, sum, x, line, scale, n);
}
#define TRNI_ADD_GROUP_PARAMS                                                                                          \
    float *sum, const float *x, const float(*line)[TRNI_LOADER_STRETCH], const float *scale, size_t n
TRNI_DISPATCH_AVX2(trni_add_pair, (TRNI_ADD_GROUP_PARAMS), (sum, x, line, scale, n))
TRNI_DISPATCH_AVX2(trni_add_quad, (TRNI_ADD_GROUP_PARAMS), (sum, x, line, scale, n))
#undef TRNI_ADD_GROUP_PARAMS

TRNI_FN void trni_stream_groups(int group, TRNI_GROUPS_PARAMS)
{
    float line[4][TRNI_LOADER_STRETCH], factor[TRNI_LOADER_STRETCH];
    trni_add_pair_fn *const add = group == 4 ? trni_add_quad_for(loader->isa) : trni_add_pair_for(loader->isa);
    for (int r = 0; r < rows; r++, src += row_step)
        for (size_t j = 0; j < n; j += TRNI_LOADER_STRETCH) {
            const size_t count = n - j < TRNI_LOADER_STRETCH ? n - j : (size_t)TRNI_LOADER_STRETCH;
            if (group == 4) trni_scale_values_for(loader->isa)(factor, scale + j, count);
            for (int g = 0; g < group; g++) {
                const unsigned char *at = src + g * slot_step + j;
                __builtin_prefetch((const void *)((uintptr_t)at + (uintptr_t)ahead));
                trni_loader_line(loader, line[g], at, count);
            }
            add(sum + j, x + r * group, (const float(*)[TRNI_LOADER_STRETCH])line, factor, count);
        }
}
TRNI_FN void trni_stream_pairs(TRNI_GROUPS_PARAMS)
{
    trni_stream_groups(2, loader, sum, x, src, row_step, slot_step, rows, scale, ahead, n);
}
TRNI_FN void trni_stream_quads(TRNI_GROUPS_PARAMS)
{
    trni_stream_groups(4, loader, sum, x, src, row_step, slot_step, rows, scale, ahead, n);
}

#if TRNI_LOADER_SIMD || TRNI_LOADER_NEON
/* Kernels read this many codes at a time, and take up so many lines together. */
enum { TRNI_LOADER_CODES = 16, TRNI_LOADER_TOGETHER = 4 };

/* The last n % TRNI_LOADER_CODES columns, through memory, by the kernel for whole ones. */
TRNI_COLD void trni_stream_rest(trni_stream_fn *stream, const trni_loader *loader, float *sum, const float *x,
                                const unsigned char *src, int64_t row_step, int rows, size_t n)
{
    const size_t count = n % TRNI_LOADER_CODES, done = n - count, bytes = (size_t)loader->bytes;
    for (int r = 0; r < rows; r += TRNI_LOADER_TOGETHER) {
        const int some = rows - r < TRNI_LOADER_TOGETHER ? rows - r : (int)TRNI_LOADER_TOGETHER;
        float rest[TRNI_LOADER_CODES] = { 0 };
        unsigned char code[TRNI_LOADER_TOGETHER][TRNI_LOADER_CODES * sizeof(float)] = { { 0 } };
        memcpy(rest, sum + done, sizeof(float) * count);
        for (int i = 0; i < some; i++) memcpy(code[i], src + (r + i) * row_step + done * bytes, count * bytes);
        stream(loader, rest, x + r, code[0], (int64_t)sizeof code[0], some, 0, TRNI_LOADER_CODES);
        memcpy(sum + done, rest, sizeof(float) * count);
    }
}
#endif
#if TRNI_LOADER_SIMD
#include "../simd/systolic_loader_avx2.h"
#include "../simd/systolic_loader_avx512.h"
#define TRNI_OWN_KERNEL(kind, name, isa)                                                                               \
    (isa == TRN_ISA_AVX512 ? trni_simd_##kind##_##name##_avx512                                                        \
     : isa == TRN_ISA_AVX2 ? trni_simd_##kind##_##name##_avx2                                                          \
                           : NULL)
#elif TRNI_LOADER_NEON
#include "../simd/systolic_loader_neon.h"
#define TRNI_OWN_KERNEL(kind, name, isa) trni_simd_##kind##_##name##_neon
#else
#define TRNI_OWN_KERNEL(kind, name, isa) trni_##kind##_##name##_for(isa)
#endif

/* ---- choosing ---- */

/* The kernels of the formats that have their own. */
#define TRNI_LOADER_KERNELS(name) lines = TRNI_OWN_KERNEL(lines, name, isa), stream = TRNI_OWN_KERNEL(stream, name, isa)
TRNI_DRIVER void trni_loader_pick(trni_loader *f, trn_format format, bool cut)
{
    const trn_isa isa = f->isa;
    (void)isa; /* on aarch64 the baseline is NEON already */
    trni_lines_fn *lines = NULL;
    trni_stream_fn *stream = NULL;
    if (format == TRN_F32) TRNI_LOADER_KERNELS(f32);
    if (format == TRN_TF32 && !cut) TRNI_LOADER_KERNELS(tf32);
    if (format == TRN_BF16) TRNI_LOADER_KERNELS(bf16);
    if (format == TRN_F16) TRNI_LOADER_KERNELS(f16);
#if TRNI_LOADER_SIMD
    if (f->decoder.lookup && !f->line && f->bytes == 1) { /* AVX-512 */
        f->woven = true;
        f->unweave = trni_simd_unweave_avx512;
        lines = trni_simd_lines_bytes_avx512;
        stream = trni_simd_stream_bytes_avx512;
        f->pairs = trni_simd_stream_pairs_avx512;
        f->quads = trni_simd_stream_quads_avx512;
    }
#endif
    if (lines) f->lines = lines;
    if (stream) f->stream = stream;
}
#undef TRNI_LOADER_KERNELS
#undef TRNI_OWN_KERNEL

TRNI_DRIVER void trni_loader_init(trni_loader *f, const trni_operand *o, trn_isa isa)
{
    f->line = NULL;
    f->lines = trni_lines_any;
    f->stream = trni_stream_any;
    f->pairs = trni_stream_pairs;
    f->quads = trni_stream_quads;
    f->isa = isa;
    f->width = trni_panel_width(isa);
    f->bytes = o->bytes;
    f->woven = false;
    f->unweave = trni_unweave;
    trni_decoder_init_float(&f->decoder, &o->info, isa); /* int8 does not come here */
    /* the array rounds or cuts what a container holds; the plain decoding expects nothing below the code */
    const bool cut = o->tf32 == TRN_TF32_TRUNCATE;
    if (o->format == TRN_TF32) f->line = cut ? trni_cast_tf32_cut_for(isa) : trni_cast_f32_tf32_for(isa);
    trni_loader_pick(f, o->format, cut);
}

#endif /* TRNI_ARRAY_SYSTOLIC_LOADER_H */
