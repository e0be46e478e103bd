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
 * DOES: includes the headers that its CONTENTS name.
 * DOES NOT: define anything.
 *
 * CONTENTS
 *     trn_reshard_plan.h      redistribute_plan: the cheapest list of collectives (sharded/reshard_moves.h _search.h)
 *     sharded/reshard_values.h    redistribute: the values on every device
 *     trn_sharded_plan.h      sharded_matmul_plan_of: what moves, what is multiplied, what is summed
 *     trn_sharded_matmul.h    sharded_matmul: the values, and the cost (sharded/sharded_fold.h)
 *
 * KNOWN FROM: each header's own lines.
 */
#ifndef TRN_RESHARD_H
#define TRN_RESHARD_H

#include "trn_sharded_matmul.h"

/* dst = what src holds, in the other sharding. Statuses as trn_redistribute_plan's; TRN_ESHAPE and TRN_EFORMAT for
 * views that are not their device's part, TRN_EINVAL for shared memory, TRN_ENOSPC when memory is short. */
TRN_API trn_status trn_redistribute(const trn_redistribute_args *args);

#if TRNI_BODIES

#include "sharded/reshard_moves.h"
#include "sharded/reshard_search.h"
#include "sharded/reshard_values.h"
#include "sharded/sharded_fold.h"
#include "sharded/sharded_pack.h"
#include "sharded/sharded_sums.h"

TRN_API trn_status trn_redistribute(const trn_redistribute_args *args)
{
    trni_way way;
    if (!args) return TRN_EINVAL;
    trn_status status = trni_redistribute_check_run(args);
    if (!status) status = trn_redistribute_plan(args, &way.plan);
    if (status) return status;
    way.ask = args;
    way.by = NULL;
    way.mine.view = NULL;
    way.mine.memory = NULL;
    status = trni_way_run(&way);
    trni_own_parts_free(&way.mine);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRN_RESHARD_H */
