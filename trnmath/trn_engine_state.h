/* trn_engine_state.h - what the Vector and GpSimd engines remember between instructions, in the caller's hands.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_engine_state.h>
 *     int main(void) {
 *         static trn_vector_state engine;
 *         trn_gpsimd_state gpsimd;
 *         trn_vector_state_init(&engine, 1);
 *         trn_gpsimd_state_init(&gpsimd, 1);
 *         return !engine.accumulator_known && gpsimd.seeded ? 0 : 1; // no instruction has set the registers yet
 *     }
 *
 * DOES: VectorE: one accumulator register per partition, which several instructions share, and the generators of random
 *     words of all generations. GpSimd: one XORWOW generator of six words for each partition, as rand_set_state and
 *     rand_get_state show them.
 * DOES NOT: compute, or draw: the engines' instructions do.
 *
 * CONTENTS
 *     trn_vector_state, trn_vector_state_init    VectorE's registers and generators
 *     trn_gpsimd_state, trn_gpsimd_state_init    GpSimd's generators
 *
 * KNOWN FROM: NKI, exponential, range_select, select_reduce, tensor_scalar_reduce, tensor_scalar_cumulative
 *     (documented: the registers are shared, idle may change them); rand_set_state (documented: [P, 6] words on
 *     GpSimd). How a seed becomes states: assumed, as trn_xorwow_seed has it.
 */
#ifndef TRN_ENGINE_STATE_H
#define TRN_ENGINE_STATE_H

#include "base/words_begin.h"

#include "trn_instruction.h"
#include "trn_random.h"

typedef struct trn_vector_state {
    float accumulator[TRN_PARTITIONS]; /* of partition p of an instruction's tiles */
    bool accumulator_known;            /* false: never set, or an instruction ran with idle since */
    trn_lfsr_vector lfsr;              /* Trainium1, Trainium2 */
    trn_xorwow_vector xorwow;          /* Trainium3 */
    bool seeded;
} trn_vector_state;

/* Both generators are seeded; nobody knows the registers. */
TRN_API void trn_vector_state_init(trn_vector_state *state, uint64_t seed);

typedef struct trn_gpsimd_state {
    trn_xorwow lane[TRN_PARTITIONS];
    bool seeded; /* false in zeroed memory: instructions that draw refuse it */
} trn_gpsimd_state;

/* Partition p becomes generator p of the seed. */
TRN_API void trn_gpsimd_state_init(trn_gpsimd_state *state, uint64_t seed);

#if TRNI_BODIES

TRN_API void trn_vector_state_init(trn_vector_state *state, uint64_t seed)
{
    memset(state, 0, sizeof *state);
    trn_lfsr_vector_seed(&state->lfsr, seed);
    trn_xorwow_vector_seed(&state->xorwow, seed);
    state->seeded = true;
}

TRN_API void trn_gpsimd_state_init(trn_gpsimd_state *state, uint64_t seed)
{
    for (int p = 0; p < TRN_PARTITIONS; p++) trn_xorwow_seed(&state->lane[p], seed, (uint64_t)p);
    state->seeded = true;
}

#endif /* TRNI_BODIES */

#include "base/words_end.h"

#endif /* TRN_ENGINE_STATE_H */
