/* engine/vector_transpose.h - sixteen partitions side by side: for work that goes along each of them in order.
 * Behind trn_vector_search.h trn_vector_statistics.h. SPDX-License-Identifier: MIT
 *
 * DOES: turns a chunk of up to 16 partitions so that element f of all of them is one run of 16 numbers: a loop over f
 *     keeps the order within each partition, and a vector register holds all of them.
 * DOES NOT: compute.
 *
 * KNOWN FROM: measurements; the order is the instructions' own.
 */
#ifndef TRNI_ENGINE_VECTOR_TRANSPOSE_H
#define TRNI_ENGINE_VECTOR_TRANSPOSE_H

#include "span.h"
#include "vector_rows.h"

enum { TRNI_SIDE = 16, TRNI_SIDE_CHUNK = 512, TRNI_SIDE_TILE = TRNI_SIDE * TRNI_SIDE_CHUNK };

/* Elements [f, f + n) of partitions [p, p + lanes), n <= TRNI_SIDE_CHUNK; lanes that are not there repeat the last. */
TRNI_FN void trni_side_read(const trni_span *v, int64_t p, int64_t lanes, int64_t f, int64_t n, float *tile)
{
    float buffer[TRNI_SIDE][TRNI_SIDE_CHUNK];
    const float *line[TRNI_SIDE];
    for (int lane = 0; lane < TRNI_SIDE; lane++)
        line[lane] = lane < lanes ? trni_span_read(v, p + lane, f, n, buffer[lane]) : line[lanes - 1];
    trni_rows_turn_for(v->isa)(tile, line, TRNI_SIDE, (size_t)n);
}

#endif /* TRNI_ENGINE_VECTOR_TRANSPOSE_H */
