/* trn_vector_state.h - what the Vector engine remembers between instructions, in the caller's hands.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_state.h>
 *     int main(void) {
 *         static trn_vector_state engine;
 *         trn_vector_state_init(&engine, 1);
 *         return engine.accumulator_known ? 1 : 0;       // no instruction has set the registers yet
 *     }
 *
 * DOES: holds one accumulator register per partition, which several instructions share, and the generators of random
 *     words of all generations; checks and moves the registers as reduce commands say.
 * DOES NOT: compute.
 *
 * CONTENTS
 *     trn_vector_state, trn_vector_state_init   the state
 *     trni_registers_check                      may this command run on this state?
 *     trni_registers_load                       what the registers hold before an instruction
 *
 * KNOWN FROM: NKI, exponential, range_select, select_reduce, tensor_scalar_reduce, tensor_scalar_cumulative
 *     (documented: the registers are shared, idle may change them). That `reduce` on registers nobody set is refused:
 *     ours.
 */
#ifndef TRN_VECTOR_STATE_H
#define TRN_VECTOR_STATE_H

#include "trn_alu.h"

typedef struct trn_vector_state {
    float accumulator[TRN_PARTITIONS]; /* of partition p of an instruction's tiles */
    bool accumulator_known;            /* false: never set, or an instruction ran with idle since */
    trn_lfsr_vector lfsr;              /* Trainium1, Trainium2 */
    trn_xorwow_vector xorwow;          /* Trainium3 */
    bool seeded;
} trn_vector_state;

/* Both generators are seeded; nobody knows the registers. */
TRNI_FN void trn_vector_state_init(trn_vector_state *state, uint64_t seed)
{
    memset(state, 0, sizeof *state);
    trn_lfsr_vector_seed(&state->lfsr, seed);
    trn_xorwow_vector_seed(&state->xorwow, seed);
    state->seeded = true;
}

/* A reduce command, its default replaced: legal ones are bits 1 << command. Without a state only commands that begin
 * anew can run, and nothing is kept. More partitions than registers take no state. */
TRNI_COLD void trni_registers_check(trni_frame *f, trn_reduce_cmd cmd, unsigned legal, const trn_vector_state *state)
{
    static const char *const name[TRN_REDUCE_CMD_COUNT] = { "default", "idle",         "reset",
                                                            "reduce",  "reset_reduce", "load_reduce" };
    if (f->status) return;
    if ((unsigned)cmd >= TRN_REDUCE_CMD_COUNT)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "reduce_cmd is %d, not a command", (int)cmd);
    else if (!(legal >> (unsigned)cmd & 1u))
        f->status = trni_fail(f->how.error, TRN_EINVAL, "reduce_cmd is %s, which this instruction does not take",
                              name[(unsigned)cmd]);
    else if (cmd == TRN_REDUCE_CMD_REDUCE && !state)
        f->status =
            trni_fail(f->how.error, TRN_EINVAL, "reduce_cmd is reduce, but state, which holds the registers, is null");
    else if (cmd == TRN_REDUCE_CMD_REDUCE && !state->accumulator_known)
        f->status = trni_fail(f->how.error, TRN_EINVAL,
                              "reduce_cmd is reduce, but the accumulator registers are undefined: nothing has set them "
                              "since the start, or since an instruction with idle");
    else if (state && f->partitions > TRN_PARTITIONS)
        f->status = trni_fail(f->how.error, TRN_ELIMIT, "dst has %lld partitions; a state has registers for %d",
                              (long long)f->partitions, TRN_PARTITIONS);
}

/* The register of partition p as an instruction finds it. `start` is the operator's identity, or the value to load. */
TRNI_FN float trni_registers_load(trn_reduce_cmd cmd, const trn_vector_state *state, int64_t p, float start)
{
    return cmd == TRN_REDUCE_CMD_REDUCE ? state->accumulator[p] : start;
}

#endif /* TRN_VECTOR_STATE_H */
