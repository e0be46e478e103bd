/* trn_reshard.h - sharded work: tensors from one sharding to another, products of sharded matrices; values and time.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_reshard.h>
 *     #include <stdio.h>
 *     int main(void) { // rows over `data` become columns over `tensor`: which collectives, and how long?
 *         const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
 *         trn_mesh mesh;
 *         trn_reshard_plan plan;
 *         trn_redistribute_args args = { .mesh = &mesh };
 *         args.global = trn_tensor_2d(TRN_BF16, NULL, 8192, 8192); // its shape; plans look at no data
 *         if (trn_mesh_init(&mesh, &net, "data=4,tensor=16")) return 1;
 *         trn_pspec_parse(&args.from, &mesh, "(data, *)");
 *         trn_pspec_parse(&args.to, &mesh, "(*, tensor)");
 *         if (trn_redistribute_plan(&args, &plan)) return 1;
 *         printf("%d steps, %.0f us\n", plan.steps, 1e6 * plan.time_s);
 *         return plan.steps > 0 ? 0 : 1;
 *     }
 *
 * DOES: what trn_redistribute_plan plans. Moves keep every bit; reductions are trn_collective_run's, in the order of
 *     the plan's algorithm, rounded to the wire. Shards may be uneven or empty. All that belongs to
 *     sharded work is here: plans of redistributions, and products of sharded matrices.
 * DOES NOT: store what lies between moves: several in a row are done as one.
 *
 * CONTENTS
 *   sharded/reshard.h: a tensor moved from one sharding to another.
 *     trn_redistribute        the values on every device; on failure nothing is written
 *   sharded/reshard_args.h: what is asked of a redistribution, and what a plan of it holds.
 *     trn_redistribute_args     mesh, from, to, shape and format; views where values are moved
 *     trn_reshard_kind          what a step is
 *     trn_reshard_step          one move
 *     trn_reshard_plan          steps, time, a bound
 *   sharded/reshard_plan.h: the cheapest way from one sharding to another: which collectives, over which axes, how
 *                           long.
 *     trn_reshard_plan              steps, time, a bound
 *     trn_reshard_step, trn_reshard_step_format   one move, and its name
 *     trn_redistribute_plan         finds it
 *   sharded/sharded_plan.h: a product of sharded matrices: what moves first, what each device multiplies, what moves
 *                           then.
 *     trn_sharded_matmul_args       operands, shardings, sizes, how to multiply and to sum
 *     trn_sharded_matmul_plan       three redistributions, and what is multiplied between them
 *     trn_sharded_matmul_plan_of    fills it, and .cost; no views are needed
 *   sharded/sharded_matmul.h: products of sharded matrices: the values on every device, and the time.
 *     trn_sharded_matmul     the values, and .cost; on failure nothing is written
 *
 * KNOWN FROM: trn_collective.h (the sums); tests/unit/test_reshard.c, where each element is followed on its own.
 */
#ifndef TRN_RESHARD_H
#define TRN_RESHARD_H

#include "base/words_begin.h"

#include "sharded/reshard.h"
#include "sharded/reshard_args.h"
#include "sharded/reshard_plan.h"
#include "sharded/sharded_plan.h"
#include "sharded/sharded_matmul.h"

#include "base/words_end.h"

#endif /* TRN_RESHARD_H */
