/* sharded/reshard_args.h - what is asked of a redistribution, and what a plan of it holds.
 * A part of trn_reshard.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_reshard.h>
 *     int main(void) {
 *         const trn_redistribute_args args = { .algorithm = TRN_RING, .even_only = true };
 *         return args.algorithm == TRN_RING ? 0 : 1;
 *     }
 *
 * DOES: the types that the search for a plan, its execution and sharded products share.
 * DOES NOT: plan (sharded/reshard_plan.h) or move anything (trn_reshard.h).
 *
 * KNOWN FROM: sharded/reshard_plan.h.
 */
#ifndef TRNI_SHARDED_RESHARD_ARGS_H
#define TRNI_SHARDED_RESHARD_ARGS_H

#include "../network/collective_cost.h"
#include "../network/shard.h"

typedef struct trn_redistribute_args {
    const trn_mesh *mesh;
    trn_pspec from, to;
    trn_tensor global;     /* shape and format of the whole; data and strides play no part */
    const trn_tensor *src; /* trn_redistribute: [mesh->devices] parts as `from` has them, */
    const trn_tensor *dst; /* and as `to` has them; all in global's format */
    trn_format wire;       /* of reductions: what travels, and what sums are rounded to; unset = global's format */
    trn_rounding rounding; /* to the wire */
    trn_overflow overflow;
    uint64_t seed, stream; /* stochastic rounding */
    int sr_bits;
    trn_algorithm algorithm; /* AUTO = the cheapest. Moves that it does not fit take the cheapest, sums do without */
    bool uncalibrated;
    const trn_calibration *calibration;
    int ranks_per_chip; /* costs only: as collectives count it; 0 = 1 */
    bool even_only;     /* refuse what does not divide */
    trn_isa isa;
    trn_error *error;
} trn_redistribute_args;

typedef enum trn_reshard_kind { TRN_RESHARD_SLICE = 0, TRN_RESHARD_ZERO_FILL, TRN_RESHARD_COLLECTIVE } trn_reshard_kind;

typedef struct trn_reshard_step {
    trn_reshard_kind kind;
    trn_collective op; /* TRN_RESHARD_COLLECTIVE */
    trn_algorithm algorithm;
    int axes; /* the group: its members are counted with the first of these axes outermost */
    int axis[TRN_MAX_AXES];
    int from_dim, to_dim; /* the (first) dimension that loses axes, and the one that gains them; -1 = none */
    int64_t bytes;        /* as trn_collective_args has them: the larger of a chip's two buffers, parts rounded up */
    trn_pspec after;      /* axes of size 1 left out */
    trn_cost cost;
} trn_reshard_step;

enum { TRN_RESHARD_STEPS = 24 };

typedef struct trn_reshard_plan {
    int steps;
    trn_reshard_step step[TRN_RESHARD_STEPS];
    double time_s;        /* of all, one after another */
    double lower_bound_s; /* the bytes that the neediest chip lacks, at its injection rate */
} trn_reshard_plan;

#endif /* TRNI_SHARDED_RESHARD_ARGS_H */
