/* trn_vector_side.h - sixteen partitions side by side: for work that goes along each of them in order.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_side.h>
 *     int main(void) {
 *         static float x[2 * 3] = { 1, 2, 3, 4, 5, 6 }, tile[TRNI_SIDE_TILE];
 *         const trn_tensor t = trn_tensor_2d(TRN_F32, x, 2, 3);
 *         trni_span v;
 *         trni_span_init(&v, &t, TRN_ISA_PORTABLE);
 *         trni_side_read(&v, 0, 2, 0, 3, tile);
 *         return tile[2 * TRNI_SIDE] == 3.0f && tile[2 * TRNI_SIDE + 1] == 6.0f ? 0 : 1;
 *     }
 *
 * DOES: turns a chunk of up to 16 partitions so that element f of all of them is one run of 16 numbers: a loop over f
 *     keeps the order within each partition, and a vector register holds all of them.
 * DOES NOT: compute.
 *
 * CONTENTS
 *     TRNI_SIDE, TRNI_SIDE_CHUNK, TRNI_SIDE_TILE   partitions, elements of each, numbers of a tile
 *     trni_side_read                               the chunk
 *     trni_side_nan                                what an engine makes of a NaN
 *
 * KNOWN FROM: measurements; the order is the instructions' own.
 */
#ifndef TRN_VECTOR_SIDE_H
#define TRN_VECTOR_SIDE_H

#include "trn_span.h"

enum { TRNI_SIDE = 16, TRNI_SIDE_CHUNK = 512, TRNI_SIDE_TILE = TRNI_SIDE * TRNI_SIDE_CHUNK };

/* tile[i, lane] = line[lane][i], i < n. Four by four where the compiler has shuffles for it (1.3 to 2 times the speed,
 * measured). */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TRNI_SIDE_SHUFFLES 1
#endif
#endif
#ifndef TRNI_SIDE_SHUFFLES
#define TRNI_SIDE_SHUFFLES 0
#endif

#if TRNI_SIDE_SHUFFLES
typedef float trni_side_four __attribute__((vector_size(16), may_alias, aligned(4)));

/* Four words from each of four places, to four places `step` words apart. */
TRNI_INLINE void trni_side_square(void *__restrict to, int64_t step, const void *a, const void *b, const void *c,
                                  const void *d)
{
    float *__restrict y = (float *)to;
    const trni_side_four p = *(const trni_side_four *)a, q = *(const trni_side_four *)b,
                         r = *(const trni_side_four *)c, s = *(const trni_side_four *)d;
    const trni_side_four pq = __builtin_shufflevector(p, q, 0, 4, 1, 5), rs = __builtin_shufflevector(r, s, 0, 4, 1, 5);
    const trni_side_four qp = __builtin_shufflevector(p, q, 2, 6, 3, 7), sr = __builtin_shufflevector(r, s, 2, 6, 3, 7);
    *(trni_side_four *)y = __builtin_shufflevector(pq, rs, 0, 1, 4, 5);
    *(trni_side_four *)(y + step) = __builtin_shufflevector(pq, rs, 2, 3, 6, 7);
    *(trni_side_four *)(y + 2 * step) = __builtin_shufflevector(qp, sr, 0, 1, 4, 5);
    *(trni_side_four *)(y + 3 * step) = __builtin_shufflevector(qp, sr, 2, 3, 6, 7);
}
#endif

TRNI_INLINE void trni_side_turn_body(float *__restrict tile, const float *const *line, size_t n)
{
    for (int lane = 0; lane < TRNI_SIDE; lane += 4) {
        const float *a = line[lane], *b = line[lane + 1], *c = line[lane + 2], *d = line[lane + 3];
        float *__restrict y = tile + lane;
        size_t i = 0;
#if TRNI_SIDE_SHUFFLES
        for (; i + 4 <= n; i += 4, y += 4 * TRNI_SIDE) trni_side_square(y, TRNI_SIDE, a + i, b + i, c + i, d + i);
#endif
        for (; i < n; i++, y += TRNI_SIDE) y[0] = a[i], y[1] = b[i], y[2] = c[i], y[3] = d[i];
    }
}
TRNI_STAMP(trni_side_turn, (float *__restrict tile, const float *const *line, size_t n), (tile, line, n))

/* Elements [f, f + n) of partitions [p, p + lanes), n <= TRNI_SIDE_CHUNK; lanes that are not there repeat the last. */
TRNI_FN void trni_side_read(const trni_span *v, int64_t p, int64_t lanes, int64_t f, int64_t n, float *tile)
{
    float buffer[TRNI_SIDE][TRNI_SIDE_CHUNK];
    const float *line[TRNI_SIDE];
    for (int lane = 0; lane < TRNI_SIDE; lane++)
        line[lane] = lane < lanes ? trni_span_read(v, p + lane, f, n, buffer[lane]) : line[lanes - 1];
    trni_side_turn_for(v->isa)(tile, line, (size_t)n);
}

TRNI_INLINE float trni_side_nan(float x) { return trni_is_nan_bits(trni_bits(x)) ? trni_float(TRNI_F32_NAN) : x; }

#endif /* TRN_VECTOR_SIDE_H */
