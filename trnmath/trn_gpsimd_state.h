/* trn_gpsimd_state.h - what GpSimd remembers between instructions: its random generators, in the caller's hands.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_gpsimd_state.h>
 *     int main(void) {
 *         trn_gpsimd_state state;
 *         trn_gpsimd_state_init(&state, 1);
 *         return state.seeded && trn_xorwow_next(&state.lane[5]) ? 0 : 1;
 *     }
 *
 * DOES: one XORWOW generator of six words for each partition, as rand_set_state and rand_get_state show them.
 * DOES NOT: draw; rng does.
 *
 * CONTENTS
 *     trn_gpsimd_state, trn_gpsimd_state_init
 *
 * KNOWN FROM: NKI, rand_set_state (documented: [P, 6] words on GpSimd); how a seed becomes states: assumed, as
 *     trn_xorwow_seed has it.
 */
#ifndef TRN_GPSIMD_STATE_H
#define TRN_GPSIMD_STATE_H

#include "trn_random.h"
#include "engine/span.h"

typedef struct trn_gpsimd_state {
    trn_xorwow lane[TRN_PARTITIONS];
    bool seeded; /* false in zeroed memory: instructions that draw refuse it */
} trn_gpsimd_state;

/* Partition p becomes generator p of the seed. */
TRNI_FN void trn_gpsimd_state_init(trn_gpsimd_state *state, uint64_t seed)
{
    for (int p = 0; p < TRN_PARTITIONS; p++) trn_xorwow_seed(&state->lane[p], seed, (uint64_t)p);
    state->seeded = true;
}

#endif /* TRN_GPSIMD_STATE_H */
