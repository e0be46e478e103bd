/* scaling.c - the same job, with as much work per chip, on one chip, one server, ... the whole system.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

/* A ring with chips left out is no ring, but for two neighbours on it; behind a switch any number will do. */
static bool can_be(const trn_level *level, int64_t size)
{
    if (size == level->size || size == 1) return true;
    return level->wiring == TRN_WIRING_RING ? size == 2 : true;
}

bool sp_cut(const trn_topology *net, int64_t chips, trn_topology *part)
{
    *part = *net;
    for (int l = 0; l < net->levels; l++) {
        trn_level *at = &part->level[l];
        const int64_t all = at->size, here = chips % all == 0 ? all : chips < all ? chips : 0;
        if (here == 0 || !can_be(at, here)) return false;
        at->size = (int)here;
        chips /= here;
    }
    part->chips = trn_topology_stride(part, part->levels);
    return chips == 1 && trn_topology_check(part, NULL) == TRN_OK;
}

/* The fastest plan on so many chips, and an all_reduce over all of them. */
static int one_size(sp_job *job, const trn_topology *net, sp_scale *s)
{
    trn_plan_args args = job->args;
    trn_plan_list list = { 0 };
    trn_plan everywhere = { .tp = 1, .cp = 1, .ep = 1, .dp = net->chips, .pp = 1 };
    args.net = net;
    s->chips = net->chips;
    s->batch = args.batch * net->chips / job->net.chips;
    if (s->batch < 1) s->batch = 1;
    args.batch = s->batch;
    for (int i = 0; i < TRN_AXIS_COUNT; i++) args.degree[i] = 0; /* those of the whole system are not meant */
    if (trn_plan_search(&args, &s->plan, 1, &list) != TRN_OK ||
        trn_plan_collective(&args, &everywhere, 1u << TRN_AXIS_DP, TRN_ALL_REDUCE, SP_BUFFER, &s->all_reduce_s,
                            &s->algorithm) != TRN_OK)
        return app_complain(APP_USAGE, "--scaling: on %d chips: %s", net->chips, job->error.text);
    s->legal = list.legal > 0;
    return APP_OK;
}

/* Powers of two that are a part of the system, and all of it. */
int sp_scaling(sp_job *job)
{
    trn_topology part;
    for (int64_t chips = 1; job->scales < SP_SCALES; chips *= 2) {
        const bool last = chips >= job->net.chips;
        if (last) part = job->net;
        else if (!sp_cut(&job->net, chips, &part)) {
            const int whole = job->net.chips / job->net.level[job->net.levels - 1].size;
            if (chips < whole || !sp_cut(&job->net, chips / whole * whole, &part)) continue;
            if (job->scales && job->scale[job->scales - 1].chips == part.chips) continue;
        }
        if (one_size(job, &part, &job->scale[job->scales]) != APP_OK) return APP_USAGE;
        job->scales++;
        if (last) break;
    }
    return APP_OK;
}
