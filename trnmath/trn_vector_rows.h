/* trn_vector_rows.h - many rows side by side: sums and scans that keep the order within each row, at a vector's speed.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_rows.h>
 *     int main(void) {
 *         const float x[5] = { 1, 2, 3, 4, 5 }, *line[TRNI_ROWS];
 *         float sum[TRNI_ROWS] = { 10 };
 *         for (int i = 0; i < TRNI_ROWS; i++) line[i] = x;
 *         trni_rows_add_for(TRN_ISA_PORTABLE)(sum, line, 5);
 *         return sum[0] == 25.0f && sum[1] == 15.0f ? 0 : 1;
 *     }
 *
 * DOES: sum[i] op= line[i][0], line[i][1], ... for 16 rows at once, ascending in each, for the operators whose order
 *     shows in the bits (add, subtract, multiply); turns up to 64 rows so that what stands at one place in all of them
 *     is one run, and back: operators of trn_alu_kernels.h then scan all rows together.
 * DOES NOT: know formats or instructions.
 *
 * CONTENTS
 *     TRNI_ROWS, TRNI_ROWS_CHUNK       rows of a sum, elements of each at a time
 *     trni_rows_kernel, trni_rows_kernel_of   the sums
 *     TRNI_SCAN_ROWS, TRNI_SCAN_CHUNK  rows of a scan, elements of each at a time
 *     trni_rows_turn, trni_rows_turn_back     rows to runs, and back
 *
 * KNOWN FROM: measurements; the order is the instructions' own.
 */
#ifndef TRN_VECTOR_ROWS_H
#define TRN_VECTOR_ROWS_H

#include "trn_alu_kernels.h"

enum { TRNI_ROWS = 16, TRNI_ROWS_CHUNK = 256, TRNI_SCAN_ROWS = 64, TRNI_SCAN_CHUNK = 128 };

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

/* ---- sums ---- */

typedef void trni_rows_kernel(float *sum, const float *const *line, size_t n);

#define TRNI_ROWS_LOAD(row) (*(const trni_four *)(const void *)(line[row] + i))
#define TRNI_ROWS_GROUP(g, op)                                                                                         \
    do {                                                                                                               \
        TRNI_FOUR_TURN(TRNI_ROWS_LOAD(4 * g), TRNI_ROWS_LOAD(4 * g + 1), TRNI_ROWS_LOAD(4 * g + 2),                    \
                       TRNI_ROWS_LOAD(4 * g + 3));                                                                     \
        s##g = s##g op c0 op c1 op c2 op c3;                                                                           \
    } while (0)

/* NaN stays NaN, so that one look at the end is enough. */
#define TRNI_ROWS_SUM(name, op)                                                                                        \
    TRNI_INLINE void trni_rows_##name##_body(float *sum, const float *const *line, size_t n)                           \
    {                                                                                                                  \
        trni_four *const at = (trni_four *)(void *)sum;                                                                \
        trni_four s0 = at[0], s1 = at[1], s2 = at[2], s3 = at[3];                                                      \
        size_t i = 0;                                                                                                  \
        for (; i < n / 4 * 4; i += 4) {                                                                                \
            TRNI_ROWS_GROUP(0, op);                                                                                    \
            TRNI_ROWS_GROUP(1, op);                                                                                    \
            TRNI_ROWS_GROUP(2, op);                                                                                    \
            TRNI_ROWS_GROUP(3, op);                                                                                    \
        }                                                                                                              \
        at[0] = s0, at[1] = s1, at[2] = s2, at[3] = s3;                                                                \
        for (; i < n; i++)                                                                                             \
            for (int r = 0; r < TRNI_ROWS; r++) sum[r] = sum[r] op line[r][i];                                         \
        for (int r = 0; r < TRNI_ROWS; r++) sum[r] = trni_alu_number(sum[r]);                                          \
    }                                                                                                                  \
    TRNI_STAMP(trni_rows_##name, (float *sum, const float *const *line, size_t n), (sum, line, n))
TRNI_ROWS_SUM(add, +)
TRNI_ROWS_SUM(subtract, -)
TRNI_ROWS_SUM(multiply, *)
#undef TRNI_ROWS_SUM
#undef TRNI_ROWS_GROUP
#undef TRNI_ROWS_LOAD

/* NULL for other operators. */
TRNI_FN trni_rows_kernel *trni_rows_kernel_of(trn_alu op, trn_isa isa)
{
    return op == TRN_ALU_ADD        ? trni_rows_add_for(isa)
           : op == TRN_ALU_SUBTRACT ? trni_rows_subtract_for(isa)
           : op == TRN_ALU_MULTIPLY ? trni_rows_multiply_for(isa)
                                    : NULL;
}

/* ---- scans: rows turned into runs ---- */

#define TRNI_ROWS_SQUARE(from, to)                                                                                     \
    do {                                                                                                               \
        TRNI_FOUR_TURN(*(const trni_four *)(const void *)(from(0)), *(const trni_four *)(const void *)(from(1)),       \
                       *(const trni_four *)(const void *)(from(2)), *(const trni_four *)(const void *)(from(3)));      \
        *(trni_four *)(void *)(to(0)) = c0, *(trni_four *)(void *)(to(1)) = c1;                                        \
        *(trni_four *)(void *)(to(2)) = c2, *(trni_four *)(void *)(to(3)) = c3;                                        \
    } while (0)

/* run[i, r] = line[r][i]; rows is a multiple of 4, a run has `rows` numbers. */
TRNI_INLINE void trni_rows_turn_body(float *__restrict run, const float *const *line, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r += 4) {
        size_t i = 0;
#define TRNI_ROWS_FROM(k) (line[r + k] + i)
#define TRNI_ROWS_TO(k) (run + (i + k) * rows + r)
        for (; i < n / 4 * 4; i += 4) TRNI_ROWS_SQUARE(TRNI_ROWS_FROM, TRNI_ROWS_TO);
#undef TRNI_ROWS_FROM
#undef TRNI_ROWS_TO
        for (; i < n; i++)
            for (size_t k = 0; k < 4; k++) run[i * rows + r + k] = line[r + k][i];
    }
}
TRNI_STAMP(trni_rows_turn, (float *__restrict run, const float *const *line, size_t rows, size_t n),
           (run, line, rows, n))

/* line[r][i] = run[i, r] */
TRNI_INLINE void trni_rows_turn_back_body(float *const *line, const float *__restrict run, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r += 4) {
        size_t i = 0;
#define TRNI_ROWS_FROM(k) (run + (i + k) * rows + r)
#define TRNI_ROWS_TO(k) (line[r + k] + i)
        for (; i < n / 4 * 4; i += 4) TRNI_ROWS_SQUARE(TRNI_ROWS_FROM, TRNI_ROWS_TO);
#undef TRNI_ROWS_FROM
#undef TRNI_ROWS_TO
        for (; i < n; i++)
            for (size_t k = 0; k < 4; k++) line[r + k][i] = run[i * rows + r + k];
    }
}
TRNI_STAMP(trni_rows_turn_back, (float *const *line, const float *__restrict run, size_t rows, size_t n),
           (line, run, rows, n))
#undef TRNI_ROWS_SQUARE
#undef TRNI_FOUR_TURN
#undef TRNI_FOUR_MIX

#endif /* TRN_VECTOR_ROWS_H */
