/* trn_vector_random.h - random numbers in tiles: rng, rand2, dropout, set_rng_seed, rand_set_state, rand_get_state.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_random.h>
 *     int main(void) { return trn_rng(NULL) == TRN_EINVAL ? 0 : 1; }
 *
 * DOES: the args and the names of these instructions.
 * DOES NOT: execute them yet.
 *
 * CONTENTS
 *     trn_rng_args, trn_rng
 *     trn_rand2_args, trn_rand2
 *     trn_dropout_args, trn_dropout
 *     trn_set_rng_seed_args, trn_set_rng_seed
 *     trn_rand_set_state_args, trn_rand_set_state
 *     trn_rand_get_state_args, trn_rand_get_state
 *
 * KNOWN FROM: NKI's pages of these instructions.
 */
#ifndef TRN_VECTOR_RANDOM_H
#define TRN_VECTOR_RANDOM_H

#include "trn_gpsimd_state.h"
#include "trn_vector_state.h"

typedef struct trn_rng_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;
    trn_vector_state *state;
    trn_gpsimd_state *gpsimd;
} trn_rng_args;

TRNI_FN trn_status trn_rng(const trn_rng_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "rng is not built yet");
}

typedef struct trn_rand2_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;
    float min, max;
    trn_tensor min_tile, max_tile;
    trn_vector_state *state;
} trn_rand2_args;

TRNI_FN trn_status trn_rand2(const trn_rand2_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "rand2 is not built yet");
}

typedef struct trn_dropout_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data;
    float prob;
    trn_tensor prob_tile;
    trn_vector_state *state;
} trn_dropout_args;

TRNI_FN trn_status trn_dropout(const trn_dropout_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "dropout is not built yet");
}

typedef struct trn_set_rng_seed_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor src_seeds; /* [1, 1], 32 bits */
    trn_vector_state *state;
} trn_set_rng_seed_args;

TRNI_FN trn_status trn_set_rng_seed(const trn_set_rng_seed_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "set_rng_seed is not built yet");
}

typedef struct trn_rand_set_state_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor src_seeds; /* [P, 6] GpSimd (the default) or [P, 24] Vector, U32 */
    trn_vector_state *state;
    trn_gpsimd_state *gpsimd;
} trn_rand_set_state_args;

TRNI_FN trn_status trn_rand_set_state(const trn_rand_set_state_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "rand_set_state is not built yet");
}

typedef struct trn_rand_get_state_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* as src_seeds of rand_set_state */
    trn_vector_state *state;
    trn_gpsimd_state *gpsimd;
} trn_rand_get_state_args;

TRNI_FN trn_status trn_rand_get_state(const trn_rand_get_state_args *args)
{
    if (!args) return TRN_EINVAL;
    return trni_fail(args->error, TRN_EUNSUPPORTED, "rand_get_state is not built yet");
}

#endif /* TRN_VECTOR_RANDOM_H */
