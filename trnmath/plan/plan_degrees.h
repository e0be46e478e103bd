/* plan/plan_degrees.h - degrees as they are asked for: in chips, or tp in logical cores; do they fill the machine?
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * KNOWN FROM: neuronx-distributed and NxD Inference count tp in logical cores (NEURON_LOGICAL_NC_CONFIG = 1 or 2). That
 *     replicas of dp fill the rest of a chip follows from their order of ranks, tp innermost; that nothing else does is
 *     assumed: cp, ep and pp go from chip to chip.
 */
#ifndef TRNI_PLAN_PLAN_DEGREES_H
#define TRNI_PLAN_PLAN_DEGREES_H

#include "plan_memory.h"

/* tp in chips and, with lnc, in logical cores, whichever of them is given; not filled when it is no part of a chip. */
TRNI_FN void trni_plan_count_tp(const trni_plan_work *w, trn_plan *p)
{
    const int cores = w->a.ranks_per_chip;
    if (!w->a.lnc)
        p->tp_cores = 0;
    else if (p->tp_cores < 1)
        p->tp_cores = p->tp > 0 && p->tp <= (1 << 27) ? p->tp * cores : 0;
    else
        p->tp = p->tp_cores % cores == 0 ? p->tp_cores / cores : cores % p->tp_cores == 0;
}

/* Are its degrees those of so many chips, and its order one? */
TRNI_FN bool trni_plan_fills(const trni_plan_work *w, const trn_plan *plan)
{
    const int degree[TRN_AXIS_COUNT] = { plan->tp, plan->cp, plan->ep, plan->dp, plan->pp };
    const int64_t all = (int64_t)w->a.net->chips * trni_plan_sharing(w, plan);
    int64_t product = 1;
    trni_plan_place place;
    for (int i = 0; i < TRN_AXIS_COUNT; i++)
        product = degree[i] < 1 || product > (INT64_C(1) << 31) ? 0 : product * degree[i];
    return product == all && (unsigned)plan->order <= (unsigned)TRN_ORDER_PP_DP &&
           trni_plan_place_plan(w->a.net, plan, &place);
}

TRNI_DRIVER trn_status trni_plan_not_filled(const trni_plan_work *w, const trn_plan *p)
{
    const trn_topology *net = w->a.net;
    if (!w->a.lnc)
        return trni_fail(w->a.error, TRN_EINVAL, "tp %d x cp %d x ep %d x dp %d x pp %d are not the %d chips of %s",
                         p->tp, p->cp, p->ep, p->dp, p->pp, net->chips, net->name);
    return trni_fail(w->a.error, TRN_EINVAL,
                     "tp %d x cp %d x ep %d x dp %d x pp %d are not the logical cores of %s: %d chips of %d",
                     p->tp_cores, p->cp, p->ep, p->dp, p->pp, net->name, net->chips, w->a.ranks_per_chip);
}

/* Degrees that were asked for and that no plan has. */
TRNI_DRIVER trn_status trni_plan_none_found(const trn_plan_args *args, int cores)
{
    const int *d = args->degree, tp = d[TRN_AXIS_TP];
    if (cores && tp && tp % cores && cores % tp)
        return trni_fail(args->error, TRN_EINVAL,
                         "tp %d is neither a divisor nor a multiple of the %d logical cores of a chip", tp, cores);
    if (cores)
        return trni_fail(args->error, TRN_EINVAL,
                         "no plan of %lld logical cores has these degrees (0 = any): tp %d, cp %d, ep %d, dp %d, pp %d",
                         (long long)args->net->chips * cores, tp, d[TRN_AXIS_CP], d[TRN_AXIS_EP], d[TRN_AXIS_DP],
                         d[TRN_AXIS_PP]);
    return trni_fail(args->error, TRN_EINVAL,
                     "no plan of %d chips has these degrees (0 = any): tp %d, cp %d, ep %d, dp %d, pp %d",
                     args->net->chips, tp, d[TRN_AXIS_CP], d[TRN_AXIS_EP], d[TRN_AXIS_DP], d[TRN_AXIS_PP]);
}

#endif /* TRNI_PLAN_PLAN_DEGREES_H */
