/* engine/vector_transpose.h - sixteen partitions side by side: for work that goes along each of them in order.
 * Behind trn_vector_engine.h. SPDX-License-Identifier: MIT
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

enum {
    TRNI_TRANSPOSED_LANES = 16,
    TRNI_TRANSPOSED_CHUNK = 512,
    TRNI_TRANSPOSED_TILE = TRNI_TRANSPOSED_LANES * TRNI_TRANSPOSED_CHUNK
};

typedef struct trni_transposed {
    float tile[TRNI_TRANSPOSED_TILE]; /* [element][lane] */
    float buffer[TRNI_TRANSPOSED_LANES][TRNI_TRANSPOSED_CHUNK];
} trni_transposed;

/* The tile of elements [f, f + n) of partitions [p, p + lanes), n <= TRNI_TRANSPOSED_CHUNK; lanes that are not there
 * repeat the last. */
TRNI_FN void trni_transposed_read(const trni_span *v, int64_t p, int64_t lanes, int64_t f, int64_t n,
                                  trni_transposed *room)
{
    const float *line[TRNI_TRANSPOSED_LANES];
    for (int lane = 0; lane < TRNI_TRANSPOSED_LANES; lane++)
        line[lane] = lane < lanes ? trni_span_read(v, p + lane, f, n, room->buffer[lane]) : line[lanes - 1];
    trni_rows_turn_for(v->isa)(room->tile, line, TRNI_TRANSPOSED_LANES, (size_t)n);
}

#endif /* TRNI_ENGINE_VECTOR_TRANSPOSE_H */
