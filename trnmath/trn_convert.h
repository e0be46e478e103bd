/* trn_convert.h - whole arrays from any number format to any other, with one rounding, at memory speed.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_convert.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         float x[3] = { 1.0f, 3.14159f, 3.4e38f };
 *         uint16_t y[3];
 *         trn_error error;
 *         trn_status status = trn_convert(&(trn_convert_args){
 *             .dst = trn_tensor_1d(TRN_BF16, y, 3), .src = trn_tensor_1d(TRN_F32, x, 3), .error = &error });
 *         if (status) return fprintf(stderr, "%s\n", error.text), 1;
 *         printf("%04x %04x %04x\n", y[0], y[1], y[2]);            // 3f80 4049 7f80
 *         return 0;
 *     }
 *
 * DOES: source -> binary32 -> destination, one rounding at the end, all six rounding modes; any strides, up to six
 *     axes, inputs that broadcast; in place when data, element size and strides are the same. Copies within one
 *     format keep every bit. Stochastic rounding takes its bits from (seed, stream, row-major position), so the result
 *     does not depend on threads, strides or instruction set. Uses OpenMP when compiled with it.
 * DOES NOT: allocate, pack sub-byte codes, scale (trn_mx.h), or accept other overlaps of dst and src.
 *
 * CONTENTS
 *     trn_convert_args   the two views and how to round
 *     trn_convert        does it, or says in one sentence why not; on failure nothing is written
 *
 * How it works: the axes are sorted and merged so that the innermost one is as long and as contiguous as can be, the
 * index space is cut into tiles, and each row of a tile runs through straight-line kernels. F32 to and from BF16, F16
 * and TF32, nearest even, have vector kernels; so has stochastic rounding to BF16 and TF32. Everything else takes the
 * codec of trn_format.h, element by element. All kernels are exact in any floating-point environment: they use integer
 * arithmetic, and float steps whose results are exact and normal.
 *
 * KNOWN FROM: tests/unit/test_convert.c (every BF16 and F16 code, all 2^32 floats at level 2, the golden vectors);
 *     bench/convert_speed.c for what each kernel is worth.
 */
#ifndef TRN_CONVERT_H
#define TRN_CONVERT_H

#include "trn_cpu.h"
#include "trn_random.h"
#include "trn_tensor.h"

typedef struct trn_convert_args {
    trn_tensor dst; /* any shape; every index has its own element */
    trn_tensor src; /* the same shape; may broadcast with stride 0 */
    trn_rounding rounding;
    trn_overflow overflow;
    uint64_t seed, stream; /* TRN_STOCHASTIC: element i, in row-major order, takes */
    uint64_t index;        /* trn_random_field(seed, stream, index + i); 0, or where a part begins in its whole */
    int sr_bits;           /* random bits per element, 1..32; 0 means 32 */
    bool sr_carry_to_inf;  /* stochastic: may a value between the maximum and the next step become infinity? */
    trn_isa isa;           /* 0 = the best of this host; the bits do not depend on it */
    trn_error *error;      /* optional */
} trn_convert_args;

/* ---- kernels: one element, branch-free, so that both compilers vectorise the loop around it ---- */

/* The caller's arrays may hold floats and sit at any address. */
typedef uint32_t trni_any32 __attribute__((may_alias, aligned(1)));
typedef uint16_t trni_any16 __attribute__((may_alias, aligned(1)));

TRNI_INLINE uint32_t trni_canonical_nan(uint32_t u) { return (u & TRNI_F32_SIGN) | TRNI_F32_NAN; }

TRNI_INLINE uint32_t trni_bits_from_bf16(uint16_t code)
{
    const uint32_t u = (uint32_t)code << 16;
    return trni_is_nan_bits(u) ? trni_canonical_nan(u) : u;
}

TRNI_INLINE uint32_t trni_bits_from_tf32(uint32_t code)
{
    const uint32_t u = code & ~0x1fffu;
    return trni_is_nan_bits(u) ? trni_canonical_nan(u) : u;
}

/* As trni_bf16_from_bits: adding just under half, plus one when the kept part is odd, carries exactly when nearest
 * even rounds up, and the carry of the largest finite number runs into infinity. Right for everything but NaN. */
TRNI_INLINE uint16_t trni_bf16_from_number(uint32_t u) { return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16); }
TRNI_INLINE uint32_t trni_tf32_from_number(uint32_t u) { return (u + 0xfffu + (u >> 13 & 1u)) & ~0x1fffu; }

TRNI_INLINE uint32_t trni_tf32_from_bits(uint32_t u)
{
    return trni_is_nan_bits(u) ? trni_canonical_nan(u) : trni_tf32_from_number(u);
}

/* yes where the condition holds, no elsewhere, without a branch: were the float steps below behind a ?:, gcc would
 * move them into the branch and then, since they might trap, refuse to vectorise. */
TRNI_INLINE uint32_t trni_either(bool condition, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

/* Subnormals: the 10-bit integer m is exact in binary32, and so is m · 2^-24, which is normal. */
TRNI_INLINE uint32_t trni_bits_from_f16(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000u) << 16, m = code & 0x7fffu;
    const uint32_t normal = (m << 13) + (112u << 23), small = trni_bits((float)(int32_t)m * 0x1p-24f);
    const uint32_t finite = trni_either(m < 0x400u, small, normal);
    const uint32_t other = trni_either(m > 0x7c00u, TRNI_F32_NAN, TRNI_F32_INF);
    return sign | trni_either(m < 0x7c00u, finite, other);
}

/* Below 2^-14 the result counts units of 2^-24: y = |x| · 2^24 is exact and at most 2^10, its whole part k and its rest
 * y - k are exact, and the rest rounds up when it is above one half, or equal to it with k odd. A subnormal x gives 0
 * whether or not the processor reads it as zero. From 2^-14 on, moving the exponent and rounding as for BF16 is right.
 * No choice is needed: with y held at 2^10, `small` is the larger below 2^-14 (512 + t/2 >= t in the binade underneath)
 * and `normal` above. A NaN is cut to infinity's code before its own bit is added. */
TRNI_INLINE uint16_t trni_f16_from_bits(uint32_t u)
{
    const int32_t m = (int32_t)(u & ~TRNI_F32_SIGN), least_normal = 0x38800000; /* 2^-14 */
    const float y = trni_float((uint32_t)(m < least_normal ? m : least_normal)) * 0x1p24f;
    const int32_t k = (int32_t)y;
    const int32_t rest = (int32_t)trni_bits(y - (float)k);
    const int32_t small = k + (rest + (k & 1) > 0x3f000000);
    const int32_t normal = (m - (112 << 23) + 0xfff + (m >> 13 & 1)) >> 13;
    const int32_t finite = small > normal ? small : normal;
    const int32_t code = (finite < 0x7c00 ? finite : 0x7c00) + ((m > 0x7f800000) << 9);
    return (uint16_t)((uint32_t)code | (u >> 16 & 0x8000u));
}

typedef void trni_cast(void *__restrict dst, const void *__restrict src, size_t n);

#define TRNI_CAST(name, to, from, element)                                                   \
    TRNI_INLINE void name##_body(void *__restrict dst, const void *__restrict src, size_t n) \
    {                                                                                        \
        to *__restrict y = (to *)dst;                                                        \
        const from *__restrict x = (const from *)src;                                        \
        for (size_t i = 0; i < n; i++) y[i] = element(x[i]);                                 \
    }                                                                                        \
    TRNI_STAMP(name, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

/* The same with NaN looked for once per block, by the largest magnitude: a block that holds one is done again. That is
 * 1.3 (AVX-512) to 1.9 (AVX2) times as fast as asking each element (measured, gcc 12). */
#define TRNI_CAST_BLOCK ((size_t)256)
#define TRNI_CAST_NUMBERS(name, to, number, element)                                         \
    TRNI_INLINE void name##_body(void *__restrict dst, const void *__restrict src, size_t n) \
    {                                                                                        \
        to *__restrict y = (to *)dst;                                                        \
        const trni_any32 *__restrict x = (const trni_any32 *)src;                            \
        for (size_t block; n > 0; n -= block, x += block, y += block) {                      \
            int32_t most = 0;                                                                \
            block = n < TRNI_CAST_BLOCK ? n : TRNI_CAST_BLOCK;                               \
            for (size_t i = 0; i < block; i++) {                                             \
                const int32_t m = (int32_t)(x[i] & ~TRNI_F32_SIGN);                          \
                most = m > most ? m : most;                                                  \
                y[i] = number(x[i]);                                                         \
            }                                                                                \
            if (most > (int32_t)TRNI_F32_INF)                                                \
                for (size_t i = 0; i < block; i++) y[i] = element(x[i]);                     \
        }                                                                                    \
    }                                                                                        \
    TRNI_STAMP(name, (void *__restrict dst, const void *__restrict src, size_t n), (dst, src, n))

TRNI_CAST_NUMBERS(trni_cast_f32_bf16, trni_any16, trni_bf16_from_number, trni_bf16_from_bits)
TRNI_CAST_NUMBERS(trni_cast_f32_tf32, trni_any32, trni_tf32_from_number, trni_tf32_from_bits)
TRNI_CAST(trni_cast_f32_f16, trni_any16, trni_any32, trni_f16_from_bits)
TRNI_CAST(trni_cast_bf16_f32, trni_any32, trni_any16, trni_bits_from_bf16)
TRNI_CAST(trni_cast_f16_f32, trni_any32, trni_any16, trni_bits_from_f16)
TRNI_CAST(trni_cast_tf32_f32, trni_any32, trni_any32, trni_bits_from_tf32)
#undef TRNI_CAST
#undef TRNI_CAST_NUMBERS
#undef TRNI_CAST_BLOCK

/* ---- kernels on binary32 bits, in place: what happens before the last cast ---- */

/* TRN_SATURATE: finite magnitudes stop at max, which the cast then leaves alone. */
TRNI_INLINE void trni_clamp_body(uint32_t *bits, size_t n, uint32_t max)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = bits[i], m = u & ~TRNI_F32_SIGN;
        bits[i] = m > max && m < TRNI_F32_INF ? (u & TRNI_F32_SIGN) | max : u;
    }
}
TRNI_STAMP(trni_clamp, (uint32_t *bits, size_t n, uint32_t max), (bits, n, max))

/* How stochastic rounding moves binary32 onto a format of the same exponent range, whose codes are the bits above
 * `cut`. With n random bits r: up iff floor(2^n · low / 2^cut) + r >= 2^n. Scaled to the width of the cut bits, n > cut
 * drops r's lower bits (they meet zeros) and n < cut appends zeros (low's lower bits then cannot carry): either way
 * the rule is one addition. An exact value has low = 0 and cannot move; subnormals need no second thought. */
typedef struct trni_sr {
    int cut;           /* 16 for BF16, 13 for TF32 */
    int bits;          /* n */
    uint32_t max;      /* largest finite magnitude of the format, as binary32 */
    uint32_t overflow; /* what a carry beyond it becomes */
} trni_sr;

TRNI_INLINE void trni_round_sr_body(uint32_t *__restrict bits, const uint32_t *__restrict field, size_t n, trni_sr sr)
{
    const int right = sr.bits > sr.cut ? sr.bits - sr.cut : 0, left = sr.bits < sr.cut ? sr.cut - sr.bits : 0;
    const uint32_t kept = ~0u << sr.cut;
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = bits[i], m = u & ~TRNI_F32_SIGN;
        const uint32_t moved = (m + (field[i] >> right << left)) & kept, finite = moved > sr.max ? sr.overflow : moved;
        bits[i] = (u & TRNI_F32_SIGN) | (m < TRNI_F32_INF ? finite : m);
    }
}
TRNI_STAMP(trni_round_sr, (uint32_t *__restrict bits, const uint32_t *__restrict field, size_t n, trni_sr sr),
           (bits, field, n, sr))

/* Random words 4·first_block … of one stream. */
TRNI_INLINE void trni_words_body(uint32_t *__restrict word, size_t blocks, uint64_t first_block, uint64_t seed,
                                 uint64_t stream)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    for (size_t j = 0; j < blocks; j++) {
        const uint64_t b = first_block + j;
        const uint32_t counter[4] = { (uint32_t)b, (uint32_t)(b >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
        trn_philox4x32_10(counter, key, word + 4 * j);
    }
}
TRNI_STAMP(trni_words,
           (uint32_t *__restrict word, size_t blocks, uint64_t first_block, uint64_t seed, uint64_t stream),
           (word, blocks, first_block, seed, stream))

/* Fields skip, skip + 1, … of a row of words, as trn_random_field cuts them. */
TRNI_INLINE void trni_fields_body(uint32_t *__restrict field, const uint32_t *__restrict word, size_t skip, size_t n,
                                  int bits)
{
    const trni_any16 *half = (const trni_any16 *)(const void *)word;
    const unsigned char *byte = (const unsigned char *)word;
    if (bits == 16) /* low first, as little-endian memory has them */
        for (size_t i = 0; i < n; i++) field[i] = half[skip + i];
    else if (bits == 8)
        for (size_t i = 0; i < n; i++) field[i] = byte[skip + i];
    else
        for (size_t i = 0; i < n; i++) field[i] = word[skip + i] >> (32 - bits);
}
TRNI_STAMP(trni_fields,
           (uint32_t *__restrict field, const uint32_t *__restrict word, size_t skip, size_t n, int bits),
           (field, word, skip, n, bits))

/* ---- guests: the same bits, faster; without them the plain kernels above do everything ---- */

#if TRNI_X86 && TRNI_INTRINSICS
#define TRNI_CONVERT_GUESTS 1
#include "simd/trn_convert_avx2.h"
#include "simd/trn_convert_avx512.h"
#else
#define TRNI_CONVERT_GUESTS 0
#endif

/* The cast between binary32 and one format, nearest even with the format's own overflow; NULL: no kernel. */
typedef struct trni_cast_row {
    trn_format from, to;
    trni_cast *(*kernel)(trn_isa isa);
    trni_cast *avx2, *avx512; /* guests, or NULL */
    trni_cast *past;          /* AVX-512, and the result bypasses the caches */
} trni_cast_row;

TRNI_FN const trni_cast_row *trni_cast_find(trn_format from, trn_format to)
{
#if TRNI_CONVERT_GUESTS
#define TRNI_GUEST(name) name
#else
#define TRNI_GUEST(name) NULL
#endif
    static const trni_cast_row row[] = {
        { TRN_F32, TRN_BF16, trni_cast_f32_bf16_for, NULL, TRNI_GUEST(trni_guest_f32_bf16),
          TRNI_GUEST(trni_guest_f32_bf16_past) },
        { TRN_F32, TRN_F16, trni_cast_f32_f16_for, TRNI_GUEST(trni_guest256_f32_f16), TRNI_GUEST(trni_guest_f32_f16),
          NULL },
        { TRN_F32, TRN_TF32, trni_cast_f32_tf32_for, NULL, NULL, NULL },
        { TRN_BF16, TRN_F32, trni_cast_bf16_f32_for, NULL, NULL, NULL },
        { TRN_F16, TRN_F32, trni_cast_f16_f32_for, TRNI_GUEST(trni_guest256_f16_f32), TRNI_GUEST(trni_guest_f16_f32),
          NULL },
        { TRN_TF32, TRN_F32, trni_cast_tf32_f32_for, NULL, NULL, NULL },
    };
#undef TRNI_GUEST
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].from == from && row[i].to == to) return &row[i];
    return NULL;
}

TRNI_FN trni_cast *trni_cast_kernel(const trni_cast_row *row, trn_isa isa)
{
    if (!row) return NULL;
    trni_cast *const guest = isa == TRN_ISA_AVX512 ? row->avx512 : isa == TRN_ISA_AVX2 ? row->avx2 : NULL;
    return guest ? guest : row->kernel(isa);
}

TRNI_FN trni_words_fn *trni_words_pick(trn_isa isa)
{
#if TRNI_CONVERT_GUESTS
    if (isa == TRN_ISA_AVX512) return trni_guest_words;
#endif
    return trni_words_for(isa);
}

/* Stores past the caches: for results too large to stay in them (1.2 to 1.6 times the speed, measured). */
TRNI_FN bool trni_stream_available(trn_isa isa) { return TRNI_CONVERT_GUESTS && isa == TRN_ISA_AVX512; }

TRNI_FN void trni_stream(void *dst, const void *src, size_t bytes, const char *ahead, size_t ahead_per_line)
{
#if TRNI_CONVERT_GUESTS
    trni_guest_stream(dst, src, bytes, ahead, ahead_per_line);
#else
    (void)ahead, (void)ahead_per_line;
    memcpy(dst, src, bytes);
#endif
}

TRNI_FN void trni_stream_end(void)
{
#if TRNI_CONVERT_GUESTS
    trni_guest_fence();
#endif
}

/* ---- the plan: everything that is decided once per call ---- */

typedef enum trni_convert_limit {
    TRNI_CONVERT_CHUNK = 512,         /* elements per pass through the stages: all buffers stay in the first cache */
    TRNI_CONVERT_TILE = 16384,        /* elements per tile: the unit that threads share out */
    TRNI_CONVERT_SQUARE = 64,         /* tile edge when one side is transposed */
    TRNI_CONVERT_SHORT = 16,          /* an inner axis shorter than this gives way to a longer one */
    TRNI_CONVERT_PARALLEL = 1 << 17,  /* elements from which threads pay for being woken */
    TRNI_CONVERT_STREAM = 8 << 20     /* bytes of dst from which stores bypass the caches */
} trni_convert_limit;

typedef struct trni_convert_axis {
    int64_t size;
    int64_t dst, src; /* steps in bytes */
    int64_t index;    /* step of the row-major position */
} trni_convert_axis;

typedef struct trni_convert_plan {
    const trn_convert_args *args;
    trn_isa isa;
    char *dst;
    const char *src;
    size_t dst_bytes, src_bytes; /* per element */
    bool copy;                   /* same format: bits move, nothing is rounded */
    bool in_place;
    bool stream;
    trni_cast *direct; /* one kernel does it all on contiguous runs, or NULL */
    trni_cast *past;   /* the same, past the caches */
    trni_cast *decode; /* to binary32, NULL: the codec */
    trni_cast *encode; /* from binary32, NULL: the codec */
    bool clamp, round_sr;
    trni_sr sr;
    int rank; /* >= 2: the last two axes are the tile's rows and columns */
    trni_convert_axis axis[TRN_MAX_RANK + 1];
    int64_t tile_rows, tile_columns, row_tiles, column_tiles, tiles;
} trni_convert_plan;

/* Copies n elements between two constant steps. */
TRNI_FN void trni_move(char *dst, int64_t dst_step, const char *src, int64_t src_step, size_t bytes, size_t n)
{
#define TRNI_MOVE(size) \
    for (size_t i = 0; i < n; i++) memcpy(dst + (int64_t)i * dst_step, src + (int64_t)i * src_step, size)
    if (dst_step == (int64_t)bytes && src_step == (int64_t)bytes) memcpy(dst, src, n * bytes);
    else if (bytes == 1) TRNI_MOVE(1);
    else if (bytes == 2) TRNI_MOVE(2);
    else TRNI_MOVE(4);
#undef TRNI_MOVE
}

TRNI_FN uint32_t trni_load_code(const char *at, size_t bytes)
{
    uint32_t code = 0;
    memcpy(&code, at, bytes); /* little endian */
    return code;
}

typedef struct trni_fields {
    uint32_t word[TRNI_CONVERT_CHUNK + 8], field[TRNI_CONVERT_CHUNK];
} trni_fields;

/* The random fields of elements index, index + step, …; they stay in f. */
TRNI_FN const uint32_t *trni_convert_fields(const trni_convert_plan *p, trni_fields *f, size_t n, int64_t index,
                                            int64_t step)
{
    const trn_convert_args *a = p->args;
    const int bits = a->sr_bits ? a->sr_bits : 32;
    const uint64_t first = a->index + (uint64_t)index;
    const uint64_t share = bits == 8 ? 4 : bits == 16 ? 2 : 1; /* elements per word */
    if (step != 1 || first + (n - 1) < first) { /* the position may pass 2^64 and go on at 0 */
        for (size_t i = 0; i < n; i++)
            f->field[i] = trn_random_field(a->seed, a->stream, first + (uint64_t)i * (uint64_t)step, bits);
        return f->field;
    }
    const uint64_t block = first / share / 4, last_block = (first + n - 1) / share / 4;
    const size_t skip = (size_t)(first - 4 * share * block);
    trni_words_pick(p->isa)(f->word, (size_t)(last_block - block + 1), block, a->seed, a->stream);
    if (bits == 32) return f->word + skip;
    trni_fields_for(p->isa)(f->field, f->word, skip, n, bits);
    return f->field;
}

/* ---- one run: n elements at constant steps ---- */

TRNI_FN void trni_convert_decode(const trni_convert_plan *p, uint32_t *value, const char *src, size_t n)
{
    if (p->decode) p->decode(value, src, n);
    else
        for (size_t i = 0; i < n; i++)
            value[i] = trni_bits(trn_decode(p->args->src.format, trni_load_code(src + i * p->src_bytes, p->src_bytes)));
}

TRNI_FN void trni_convert_encode(const trni_convert_plan *p, char *dst, const uint32_t *value, const uint32_t *field,
                                 size_t n)
{
    if (p->encode) {
        p->encode(dst, value, n);
        return;
    }
    const trn_convert_args *a = p->args;
    const bool stochastic = a->rounding == TRN_STOCHASTIC;
    trni_encoding how = { { a->rounding, 0, a->sr_bits }, a->overflow, a->sr_carry_to_inf };
    for (size_t i = 0; i < n; i++) {
        if (stochastic) how.how.random = field[i];
        const uint32_t code = trni_encode_how(a->dst.format, value[i], how);
        memcpy(dst + i * p->dst_bytes, &code, p->dst_bytes); /* little endian */
    }
}

/* The stages, for at most one chunk of contiguous elements; src may be dst, since it is read before dst is written. */
TRNI_FN void trni_convert_stages(const trni_convert_plan *p, char *dst, const char *src, size_t n, int64_t index,
                                 int64_t index_step)
{
    uint32_t value[TRNI_CONVERT_CHUNK];
    trni_fields fields;
    const uint32_t *field = NULL;
    if (p->args->rounding == TRN_STOCHASTIC) field = trni_convert_fields(p, &fields, n, index, index_step);
    if (p->args->src.format == TRN_F32) memcpy(value, src, n * sizeof value[0]);
    else trni_convert_decode(p, value, src, n);
    if (p->round_sr) trni_round_sr_for(p->isa)(value, field, n, p->sr);
    if (p->clamp) trni_clamp_for(p->isa)(value, n, p->sr.max);
    if (p->args->dst.format == TRN_F32) memcpy(dst, value, n * sizeof value[0]);
    else trni_convert_encode(p, dst, value, field, n);
}

typedef struct trni_convert_run {
    char *dst;
    const char *src;
    int64_t n, dst_step, src_step, index, index_step;
} trni_convert_run;

TRNI_FN void trni_convert_run_chunks(const trni_convert_plan *p, const trni_convert_run *r)
{
    uint32_t in[TRNI_CONVERT_CHUNK], out[TRNI_CONVERT_CHUNK];
    const bool gather = r->src_step != (int64_t)p->src_bytes, scatter = r->dst_step != (int64_t)p->dst_bytes;
    const bool stream = p->stream && !scatter;
    for (int64_t i = 0, take; i < r->n; i += take) {
        char *dst = r->dst + i * r->dst_step;
        const char *src = r->src + i * r->src_step;
        take = TRNI_CONVERT_CHUNK;
        if (stream) take -= (int64_t)(((uintptr_t)dst & 63) / p->dst_bytes); /* the next chunk starts on a line */
        if (take > r->n - i) take = r->n - i;
        const size_t n = (size_t)take;
        const char *x = src;
        char *y = scatter || stream ? (char *)out : dst;
        if (gather) {
            trni_move((char *)in, (int64_t)p->src_bytes, src, r->src_step, p->src_bytes, n);
            x = (const char *)in;
        }
        if (p->direct && !(p->in_place && x == y)) p->direct(y, x, n);
        else trni_convert_stages(p, y, x, n, r->index + i * r->index_step, r->index_step);
        if (stream) trni_stream(dst, out, n * p->dst_bytes, src, 64 / p->dst_bytes * p->src_bytes);
        else if (scatter) trni_move(dst, r->dst_step, (const char *)out, (int64_t)p->dst_bytes, p->dst_bytes, n);
    }
}

TRNI_FN void trni_convert_run_one(const trni_convert_plan *p, const trni_convert_run *r)
{
    const bool contiguous = r->src_step == (int64_t)p->src_bytes && r->dst_step == (int64_t)p->dst_bytes;
    if (p->copy) trni_move(r->dst, r->dst_step, r->src, r->src_step, p->dst_bytes, (size_t)r->n);
    else if (p->direct && contiguous && !p->in_place && !p->stream) p->direct(r->dst, r->src, (size_t)r->n);
    else if (p->past && contiguous && p->stream) p->past(r->dst, r->src, (size_t)r->n);
    else trni_convert_run_chunks(p, r);
}

TRNI_FN void trni_convert_tile(const trni_convert_plan *p, int64_t tile)
{
    const trni_convert_axis *rows = &p->axis[p->rank - 2], *columns = &p->axis[p->rank - 1];
    const int64_t column = tile % p->column_tiles * p->tile_columns;
    tile /= p->column_tiles;
    const int64_t row = tile % p->row_tiles * p->tile_rows;
    tile /= p->row_tiles;
    const int64_t column_end = column + p->tile_columns < columns->size ? column + p->tile_columns : columns->size;
    const int64_t row_end = row + p->tile_rows < rows->size ? row + p->tile_rows : rows->size;

    trni_convert_run r = { p->dst, p->src, column_end - column, columns->dst, columns->src, 0, columns->index };
    for (int i = p->rank - 3; i >= -2; i--) { /* -1 and -2 stand for the tile's own corner */
        const trni_convert_axis *axis = i >= 0 ? &p->axis[i] : i == -1 ? rows : columns;
        const int64_t at = i >= 0 ? tile % axis->size : i == -1 ? row : column;
        if (i >= 0) tile /= axis->size;
        r.dst += at * axis->dst;
        r.src += at * axis->src;
        r.index += at * axis->index;
    }
    for (int64_t i = row; i < row_end; i++) {
        trni_convert_run_one(p, &r);
        r.dst += rows->dst;
        r.src += rows->src;
        r.index += rows->index;
    }
}

/* ---- building the plan ---- */

/* The axes that matter, longest dst step first; neighbours that continue each other in dst, src and position merge. */
TRNI_FN void trni_convert_axes(trni_convert_plan *p)
{
    const trn_tensor *dst = &p->args->dst, *src = &p->args->src;
    int64_t dst_stride[TRN_MAX_RANK], src_stride[TRN_MAX_RANK], index = 1;
    trni_convert_axis *axis = p->axis;
    int n = 0;
    trni_strides(dst, dst_stride);
    trni_strides(src, src_stride);
    for (int i = dst->rank - 1; i >= 0; index *= dst->shape[i--]) {
        if (dst->shape[i] == 1) continue;
        const trni_convert_axis one = { dst->shape[i], dst_stride[i] * (int64_t)p->dst_bytes,
                                        src_stride[i] * (int64_t)p->src_bytes, index };
        int at = n++;
        for (; at > 0 && axis[at - 1].dst < one.dst; at--) axis[at] = axis[at - 1];
        axis[at] = one;
    }
    int kept = 0;
    for (int i = 1; i < n; i++) {
        trni_convert_axis *outer = &axis[kept], *inner = &axis[i];
        if (outer->dst == inner->dst * inner->size && outer->src == inner->src * inner->size &&
            outer->index == inner->index * inner->size) {
            inner->size *= outer->size;
            *outer = *inner;
        } else {
            axis[++kept] = *inner;
        }
    }
    p->rank = n ? kept + 1 : 0;
}

TRNI_FN void trni_convert_swap(trni_convert_axis *a, trni_convert_axis *b)
{
    const trni_convert_axis t = *a;
    *a = *b;
    *b = t;
}

/* Chooses columns (long, contiguous in dst) and rows (contiguous in src, when the columns are not), and cuts tiles. */
TRNI_FN void trni_convert_tiles(trni_convert_plan *p)
{
    const trni_convert_axis unit = { 1, 0, 0, 0 };
    while (p->rank < 2) { /* in front, so that the columns stay last */
        p->axis[p->rank] = p->rank ? p->axis[0] : unit;
        if (p->rank) p->axis[0] = unit;
        p->rank++;
    }
    trni_convert_axis *rows = &p->axis[p->rank - 2], *columns = &p->axis[p->rank - 1];
    if (columns->size < TRNI_CONVERT_SHORT)
        for (int i = 0; i < p->rank - 1; i++)
            if (p->axis[i].size > columns->size) trni_convert_swap(&p->axis[i], columns);
    for (int i = 0; i < p->rank - 2; i++)
        if (p->axis[i].size > 1 && p->axis[i].src < rows->src) trni_convert_swap(&p->axis[i], rows);

    const bool transposed = rows->size > 1 && columns->src > rows->src && columns->src > (int64_t)p->src_bytes;
    const int64_t most = (int)(transposed ? TRNI_CONVERT_SQUARE : TRNI_CONVERT_TILE);
    p->tile_columns = columns->size < most ? columns->size : most;
    const int64_t rows_most = transposed ? most : TRNI_CONVERT_TILE / p->tile_columns;
    p->tile_rows = rows->size < rows_most ? rows->size : rows_most;
    p->column_tiles = (columns->size + p->tile_columns - 1) / p->tile_columns;
    p->row_tiles = (rows->size + p->tile_rows - 1) / p->tile_rows;
    p->tiles = p->column_tiles * p->row_tiles;
    for (int i = 0; i < p->rank - 2; i++) p->tiles *= p->axis[i].size;
}

/* Which kernels apply. Stochastic rounding and saturation reach the nearest-even casts as values that no longer need
 * rounding; formats whose exponent range is not binary32's leave stochastic rounding to the codec. */
TRNI_FN void trni_convert_kernels(trni_convert_plan *p)
{
    const trn_convert_args *a = p->args;
    const trn_format from = a->src.format, to = a->dst.format;
    p->copy = from == to;
    const trni_cast_row *encode = trni_cast_find(TRN_F32, to);
    p->decode = trni_cast_kernel(trni_cast_find(from, TRN_F32), p->isa);
    if (encode) {
        const trn_format_info *f = trn_format_info_of(to);
        p->sr.max = trni_bits(trn_decode(to, f->max_code << f->low_zeros));
        p->sr.overflow = a->sr_carry_to_inf && a->overflow != TRN_SATURATE ? TRNI_F32_INF : p->sr.max;
        p->sr.cut = 23 - f->mantissa_bits;
        p->sr.bits = a->sr_bits ? a->sr_bits : 32;
        p->round_sr = a->rounding == TRN_STOCHASTIC && f->bias == 127;
        p->clamp = a->rounding == TRN_NEAREST_EVEN && a->overflow == TRN_SATURATE;
        if (p->round_sr || a->rounding == TRN_NEAREST_EVEN) p->encode = trni_cast_kernel(encode, p->isa);
    }
    if (from == TRN_F32 && !p->round_sr && !p->clamp) p->direct = p->encode;
    if (p->direct && p->isa == TRN_ISA_AVX512) p->past = encode->past;
    if (to == TRN_F32) p->direct = p->decode;
}

TRNI_FN bool trni_same_steps(const trn_tensor *a, const trn_tensor *b)
{
    int64_t x[TRN_MAX_RANK], y[TRN_MAX_RANK];
    trni_strides(a, x);
    trni_strides(b, y);
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] > 1 && x[i] != y[i]) return false;
    return true;
}

/* A view of TRN_CFP8 may say nothing, or what the bare format means. */
TRNI_FN trn_status trni_convert_check_cfp8(const trn_tensor *t, const char *name, trn_error *error)
{
    const trn_cfp8 *c = &t->cfp8;
    const bool plain = (c->exponent_bits == 0 && c->bias == 0) || (c->exponent_bits == 4 && c->bias == 7);
    if (t->format != TRN_CFP8 || (plain && !c->no_infinity)) return TRN_OK;
    return trni_fail(error, TRN_EUNSUPPORTED,
                     "%s is cfp8 with %d exponent bits, bias %d%s; trn_convert knows 4 and 7 only", name,
                     c->exponent_bits, c->bias, c->no_infinity ? " and no infinity" : "");
}

TRNI_FN trn_status trni_convert_check_views(const trn_convert_args *a)
{
    const trn_tensor *dst = &a->dst, *src = &a->src;
    trn_status status = trn_tensor_check(dst, "dst", TRNI_OUTPUT, 0, a->error);
    if (!status) status = trn_tensor_check(src, "src", TRNI_INPUT, 0, a->error);
    if (!status) status = trni_convert_check_cfp8(dst, "dst", a->error);
    if (!status) status = trni_convert_check_cfp8(src, "src", a->error);
    if (status) return status;
    if (dst->rank != src->rank)
        return trni_fail(a->error, TRN_ESHAPE, "dst has rank %d but src has rank %d", dst->rank, src->rank);
    for (int i = 0; i < dst->rank; i++)
        if (dst->shape[i] != src->shape[i])
            return trni_fail(a->error, TRN_ESHAPE, "dst has size %lld on axis %d but src has %lld",
                             (long long)dst->shape[i], i, (long long)src->shape[i]);
    return TRN_OK;
}

TRNI_FN trn_status trni_convert_check_modes(const trn_convert_args *a)
{
    if ((unsigned)a->rounding >= TRNI_ROUNDING_COUNT)
        return trni_fail(a->error, TRN_EINVAL, "rounding %d is not a rounding mode", (int)a->rounding);
    if ((unsigned)a->overflow > TRN_SATURATE)
        return trni_fail(a->error, TRN_EINVAL, "overflow %d is neither TRN_OVERFLOW_DEFAULT nor TRN_SATURATE",
                         (int)a->overflow);
    if (a->sr_bits < 0 || a->sr_bits > 32)
        return trni_fail(a->error, TRN_EINVAL, "sr_bits is %d; stochastic rounding takes 1 to 32 bits (0 means 32)",
                         a->sr_bits);
    return TRN_OK;
}

/* dst[i] = src[i] in dst's format, for every index i. TRN_ESHAPE: ranks or sizes differ; TRN_EINVAL: an unknown mode,
 * sr_bits outside 1..32, or dst overlaps src other than in place; TRN_EUNSUPPORTED: an isa this host lacks. */
TRNI_FN trn_status trn_convert(const trn_convert_args *args)
{
    if (!args) return TRN_EINVAL;
    trni_convert_plan plan;
    memset(&plan, 0, sizeof plan);
    trni_convert_plan *const p = &plan;
    p->args = args;
    p->isa = args->isa;
    trn_status status = trni_convert_check_views(args);
    if (!status) status = trni_convert_check_modes(args);
    if (!status) status = trni_isa_resolve(&p->isa, args->error);
    if (status) return status;

    for (int i = 0; i < args->dst.rank; i++)
        if (args->dst.shape[i] == 0) return TRN_OK;
    p->dst = (char *)args->dst.data;
    p->src = (const char *)args->src.data;
    p->dst_bytes = trn_format_bytes(args->dst.format);
    p->src_bytes = trn_format_bytes(args->src.format);
    p->in_place = p->dst == p->src && p->dst_bytes == p->src_bytes && trni_same_steps(&args->dst, &args->src);
    if (!p->in_place && trn_tensor_overlap(args->dst, args->src))
        return trni_fail(args->error, TRN_EINVAL,
                         "dst overlaps src; in place needs the same data, element size and strides");
    trni_convert_kernels(p);
    if (p->copy && p->in_place) return TRN_OK;
    trni_convert_axes(p);
    trni_convert_tiles(p);

    const int64_t elements = trn_tensor_elements(args->dst);
    p->stream = trni_stream_available(p->isa) && !p->copy && !p->in_place &&
                elements >= TRNI_CONVERT_STREAM / (int64_t)p->dst_bytes;
    if (elements < TRNI_CONVERT_PARALLEL) { /* not even an inactive parallel region: it costs 300 ns */
        for (int64_t tile = 0; tile < p->tiles; tile++) trni_convert_tile(p, tile);
        return TRN_OK;
    }
#if defined(_OPENMP)
#pragma omp parallel
#endif
    {
#if defined(_OPENMP)
#pragma omp for schedule(static)
#endif
        for (int64_t tile = 0; tile < p->tiles; tile++) trni_convert_tile(p, tile);
        if (p->stream) trni_stream_end();
    }
    return TRN_OK;
}

#endif /* TRN_CONVERT_H */
