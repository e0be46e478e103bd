/* sharded/reshard.h - a tensor moved from one sharding to another.
 * A part of trn_reshard.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_SHARDED_RESHARD_H
#define TRNI_SHARDED_RESHARD_H

#include "reshard_plan.h"

/* dst = what src holds, in the other sharding. Statuses as trn_redistribute_plan's; TRN_ESHAPE and TRN_EFORMAT for
 * views that are not their device's part, TRN_EINVAL for shared memory, TRN_ENOSPC when memory is short. */
TRN_API trn_status trn_redistribute(const trn_redistribute_args *args);

#if TRNI_BODIES

#include "reshard_values.h"

TRN_API trn_status trn_redistribute(const trn_redistribute_args *args)
{
    trni_way way; /* with its plan, of which a second one is too large for a small stack */
    TRNI_ENTER(args);
    trn_status status = trni_redistribute_check_run(args);
    if (!status) status = trn_redistribute_plan(args, &way.plan);
    if (status) return status;
    way.ask = args;
    way.at = args->from;
    way.now = NULL;
    way.mine.view = NULL;
    way.mine.memory = NULL;
    way.by = NULL;
    status = trni_way_run(&way);
    trni_own_parts_free(&way.mine);
    return status;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_SHARDED_RESHARD_H */
