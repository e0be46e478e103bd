/* engine/vector_rows.h - many rows side by side: sums and scans that keep the order within each row, vectorised.
 * Behind . SPDX-License-Identifier: MIT
 *
 * DOES: sum[i] op= line[i][0], line[i][1], ... for 16 rows at once, ascending in each, for the operators whose order
 *     shows in the bits (add, subtract, multiply); turns up to 64 rows so that what stands at one place in all of them
 *     is one run, and back: operators of engine/alu_kernels.h then scan all rows together.
 * DOES NOT: know formats or instructions.
 *
 * KNOWN FROM: measurements; the order is the instructions' own.
 */
#ifndef TRNI_ENGINE_VECTOR_ROWS_H
#define TRNI_ENGINE_VECTOR_ROWS_H

#include "alu_kernels.h"

enum { TRNI_ROWS = 16, TRNI_ROWS_MOST = 32, TRNI_ROWS_CHUNK = 256, TRNI_SCAN_ROWS = 64, TRNI_SCAN_CHUNK = 128 };

/* ---- squares of four by four ---- */

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TRNI_ROWS_SHUFFLES 1
#endif
#endif
#ifndef TRNI_ROWS_SHUFFLES
#define TRNI_ROWS_SHUFFLES 0
#endif

typedef float trni_four __attribute__((vector_size(16), may_alias, aligned(4)));

#if TRNI_ROWS_SHUFFLES
#define TRNI_FOUR_MIX(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
typedef int32_t trni_four_index __attribute__((vector_size(16)));
#define TRNI_FOUR_MIX(x, y, a, b, c, d) __builtin_shuffle(x, y, (trni_four_index){ a, b, c, d })
#endif

/* Columns c0..c3 of the rows p, q, r, s. */
#define TRNI_FOUR_TURN(p, q, r, s)                                                                                     \
    const trni_four pr = TRNI_FOUR_MIX(p, r, 0, 4, 1, 5), qs = TRNI_FOUR_MIX(q, s, 0, 4, 1, 5);                        \
    const trni_four rp = TRNI_FOUR_MIX(p, r, 2, 6, 3, 7), sq = TRNI_FOUR_MIX(q, s, 2, 6, 3, 7);                        \
    const trni_four c0 = TRNI_FOUR_MIX(pr, qs, 0, 4, 1, 5), c1 = TRNI_FOUR_MIX(pr, qs, 2, 6, 3, 7);                    \
    const trni_four c2 = TRNI_FOUR_MIX(rp, sq, 0, 4, 1, 5), c3 = TRNI_FOUR_MIX(rp, sq, 2, 6, 3, 7)

/* ---- sums ----
 *
 * Lines are of binary32 numbers, or of bfloat16: then a word holds two, the lower half first. */

typedef void trni_rows_kernel(float *sum, const void *const *line, size_t n);

typedef float trni_four_any __attribute__((vector_size(16), may_alias, aligned(1)));
typedef uint32_t trni_four_bits __attribute__((vector_size(16)));

/* Fetched so many bytes before its use: sixteen rows at once are more than prefetchers follow. */
enum { TRNI_ROWS_AHEAD = 1024 };

#define TRNI_ROWS_WORDS(s, op, c) s = s op(c)
#define TRNI_ROWS_HALVES(s, op, c)                                                                                     \
    s = s op(trni_four)((trni_four_bits)(c) << 16) op(trni_four)((trni_four_bits)(c)&0xffff0000u)
#define TRNI_ROWS_LOAD(row) (*(const trni_four_any *)((const char *)line[row] + i))
#define TRNI_ROWS_GROUP(g, op, add)                                                                                    \
    do {                                                                                                               \
        TRNI_FOUR_TURN(TRNI_ROWS_LOAD(4 * g), TRNI_ROWS_LOAD(4 * g + 1), TRNI_ROWS_LOAD(4 * g + 2),                    \
                       TRNI_ROWS_LOAD(4 * g + 3));                                                                     \
        add(s##g, op, c0);                                                                                             \
        add(s##g, op, c1);                                                                                             \
        add(s##g, op, c2);                                                                                             \
        add(s##g, op, c3);                                                                                             \
    } while (0)

TRNI_INLINE float trni_rows_one(const void *line, bool half, size_t i)
{
    float x;
    uint16_t h;
    if (half) {
        memcpy(&h, (const char *)line + 2 * i, sizeof h);
        return trni_float((uint32_t)h << 16);
    }
    memcpy(&x, (const float *)line + i, sizeof x);
    return x;
}

/* NaN stays NaN, so that one look at the end is enough. */
#define TRNI_ROWS_SUM(name, op, add, half)                                                                             \
    TRNI_INLINE void trni_rows_##name##_body(float *sum, const void *const *line, size_t n)                            \
    {                                                                                                                  \
        trni_four_any *const at = (trni_four_any *)(void *)sum;                                                        \
        trni_four s0 = at[0], s1 = at[1], s2 = at[2], s3 = at[3];                                                      \
        const size_t bytes = n * (half ? 2 : 4) / 16 * 16;                                                             \
        for (size_t i = 0; i < bytes; i += 16) {                                                                       \
            if (i % 64 == 0)                                                                                           \
                for (int r = 0; r < TRNI_ROWS; r++) __builtin_prefetch((const char *)line[r] + i + TRNI_ROWS_AHEAD);   \
            TRNI_ROWS_GROUP(0, op, add);                                                                               \
            TRNI_ROWS_GROUP(1, op, add);                                                                               \
            TRNI_ROWS_GROUP(2, op, add);                                                                               \
            TRNI_ROWS_GROUP(3, op, add);                                                                               \
        }                                                                                                              \
        at[0] = s0, at[1] = s1, at[2] = s2, at[3] = s3;                                                                \
        for (size_t i = bytes / (half ? 2 : 4); i < n; i++)                                                            \
            for (int r = 0; r < TRNI_ROWS; r++) sum[r] = sum[r] op trni_rows_one(line[r], half, i);                    \
        for (int r = 0; r < TRNI_ROWS; r++) sum[r] = trni_alu_number(sum[r]);                                          \
    }                                                                                                                  \
    TRNI_DISPATCH(trni_rows_##name, (float *sum, const void *const *line, size_t n), (sum, line, n))
TRNI_ROWS_SUM(add, +, TRNI_ROWS_WORDS, false)
TRNI_ROWS_SUM(subtract, -, TRNI_ROWS_WORDS, false)
TRNI_ROWS_SUM(multiply, *, TRNI_ROWS_WORDS, false)
TRNI_ROWS_SUM(add_half, +, TRNI_ROWS_HALVES, true)
TRNI_ROWS_SUM(subtract_half, -, TRNI_ROWS_HALVES, true)
TRNI_ROWS_SUM(multiply_half, *, TRNI_ROWS_HALVES, true)
#undef TRNI_ROWS_SUM
#undef TRNI_ROWS_GROUP
#undef TRNI_ROWS_LOAD
#undef TRNI_ROWS_HALVES
#undef TRNI_ROWS_WORDS

/* 32 rows at a time, whole squares of them: how many elements that was. */
typedef size_t trni_rows_simd(float *sum, const void *const *line, size_t n);

#if TRNI_X86 && TRNI_INTRINSICS
#include "../simd/vector_rows_avx512.h"
#define TRNI_ROWS_SIMD(name) (isa == TRN_ISA_AVX512 ? trni_simd_rows_##name : (trni_rows_simd *)0)
#else
#define TRNI_ROWS_SIMD(name) ((trni_rows_simd *)0)
#endif

/* How the rows of one operator and format are summed; kernel is null for other operators. */
typedef struct trni_rows_how {
    trni_rows_kernel *kernel; /* 16 rows */
    trni_rows_simd *simd;   /* or null */
    size_t bytes;             /* of an element */
} trni_rows_how;

TRNI_FN trni_rows_how trni_rows_how_of(trn_alu op, bool half, trn_isa isa)
{
#define TRNI_ROWS_HOW(name)                                                                                            \
    {                                                                                                                  \
        h.kernel = half ? trni_rows_##name##_half_for(isa) : trni_rows_##name##_for(isa);                              \
        h.simd = half ? TRNI_ROWS_SIMD(name##_half) : TRNI_ROWS_SIMD(name);                                         \
    }
    trni_rows_how h = { NULL, NULL, (size_t)(half ? 2 : 4) };
    if (op == TRN_ALU_ADD)
        TRNI_ROWS_HOW(add)
    else if (op == TRN_ALU_SUBTRACT)
        TRNI_ROWS_HOW(subtract)
    else if (op == TRN_ALU_MULTIPLY)
        TRNI_ROWS_HOW(multiply)
    return h;
#undef TRNI_ROWS_HOW
}
#undef TRNI_ROWS_SIMD

/* n > 0 elements of each of `count` rows, up to 32. Lines that are not there repeat the last one; they may be moved. */
TRNI_FN void trni_rows_run(const trni_rows_how *how, float *sum, const void **line, int64_t count, size_t n)
{
    const int64_t all = count <= TRNI_ROWS ? TRNI_ROWS : TRNI_ROWS_MOST;
    for (int64_t i = count; i < all; i++) {
        line[i] = line[count - 1];
        sum[i] = 0;
    }
    const size_t done = how->simd && all == TRNI_ROWS_MOST ? how->simd(sum, line, n) : 0;
    for (int64_t i = 0; i < all && done; i++) line[i] = (const char *)line[i] + done * how->bytes;
    for (int64_t i = 0; i < all; i += TRNI_ROWS) how->kernel(sum + i, line + i, n - done);
}

/* ---- scans: rows turned into runs ---- */

/* Four words from each of four places, to four places `step` words apart. */
TRNI_INLINE void trni_square(void *__restrict to, size_t step, const void *a, const void *b, const void *c,
                             const void *d)
{
    float *__restrict y = (float *)to;
    TRNI_FOUR_TURN(*(const trni_four *)a, *(const trni_four *)b, *(const trni_four *)c, *(const trni_four *)d);
    *(trni_four *)(void *)y = c0;
    *(trni_four *)(void *)(y + step) = c1;
    *(trni_four *)(void *)(y + 2 * step) = c2;
    *(trni_four *)(void *)(y + 3 * step) = c3;
}

/* run[i, r] = line[r][i]; rows is a multiple of 4, a run has `rows` numbers. */
TRNI_INLINE void trni_rows_turn_body(float *__restrict run, const float *const *line, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r += 4) {
        size_t i = 0;
        for (; i < n / 4 * 4; i += 4)
            trni_square(run + i * rows + r, rows, line[r] + i, line[r + 1] + i, line[r + 2] + i, line[r + 3] + i);
        for (; i < n; i++)
            for (size_t k = 0; k < 4; k++) run[i * rows + r + k] = line[r + k][i];
    }
}
TRNI_DISPATCH(trni_rows_turn, (float *__restrict run, const float *const *line, size_t rows, size_t n),
           (run, line, rows, n))

/* line[r][i] = run[i, r] */
TRNI_INLINE void trni_rows_turn_back_body(float *const *line, const float *__restrict run, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r += 4) {
        size_t i = 0;
        for (; i < n / 4 * 4; i += 4) {
            const trni_four *const from = (const trni_four *)(const void *)(run + i * rows + r);
            TRNI_FOUR_TURN(from[0], from[rows / 4], from[rows / 2], from[3 * rows / 4]);
            *(trni_four *)(void *)(line[r] + i) = c0;
            *(trni_four *)(void *)(line[r + 1] + i) = c1;
            *(trni_four *)(void *)(line[r + 2] + i) = c2;
            *(trni_four *)(void *)(line[r + 3] + i) = c3;
        }
        for (; i < n; i++)
            for (size_t k = 0; k < 4; k++) line[r + k][i] = run[i * rows + r + k];
    }
}
TRNI_DISPATCH(trni_rows_turn_back, (float *const *line, const float *__restrict run, size_t rows, size_t n),
           (line, run, rows, n))
#undef TRNI_FOUR_TURN
#undef TRNI_FOUR_MIX

#endif /* TRNI_ENGINE_VECTOR_ROWS_H */
