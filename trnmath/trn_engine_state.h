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
 *   engine/engine_state.h: what the Vector and GpSimd engines remember between instructions.
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

#include "engine/engine_state.h"

#include "base/words_end.h"

#endif /* TRN_ENGINE_STATE_H */
