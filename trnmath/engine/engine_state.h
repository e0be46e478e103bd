/* engine/engine_state.h - what the Vector and GpSimd engines remember between instructions.
 * A part of trn_engine_state.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_ENGINE_ENGINE_STATE_H
#define TRNI_ENGINE_ENGINE_STATE_H

#include "instruction.h"
#include "../number/random.h"

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

#endif /* TRNI_ENGINE_ENGINE_STATE_H */
