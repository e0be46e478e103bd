/* search.c - the model, the network, every plan on it; and the same job on one chip, one server, ... the whole system.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include "shardplan.h"

#include <stdlib.h>
#include <string.h>

enum { PLANS = 20000 }; /* that are kept; no system has so many */

/* ---- parts of a system ---- */

/* A ring with chips left out is no ring, but for two neighbours on it; behind a switch any number will do, and of a
 * graph the first chips that their own links still join. */
static bool can_be(const trn_level *level, int64_t size)
{
    if (size == level->size || size == 1) return true;
    return level->wiring == TRN_WIRING_RING ? size == 2 : true;
}

/* Of a level that is a graph the links among its first chips. */
static void keep_links(trn_topology *net, int level, int64_t size)
{
    int kept = 0;
    for (int i = 0; i < net->wires; i++) {
        const trn_wire *w = &net->wire[i];
        if (w->level != level || (w->from < size && w->to < size)) net->wire[kept++] = *w;
    }
    net->wires = kept;
}

/* The same network with fewer chips: whole inner levels, part of the next; false when these chips are no part of it. */
bool sp_part_of(const trn_topology *net, int64_t chips, trn_topology *part)
{
    *part = *net;
    for (int l = 0; l < net->levels; l++) {
        trn_level *at = &part->level[l];
        const int64_t all = at->size, here = chips % all == 0 ? all : chips < all ? chips : 0;
        if (here == 0 || !can_be(at, here)) return false;
        at->size = (int)here;
        keep_links(part, l, here);
        chips /= here;
    }
    part->chips = trn_topology_stride(part, part->levels);
    return chips == 1 && trn_topology_check(part, NULL) == TRN_OK;
}

/* ---- the same work per chip on fewer chips ---- */

/* The fastest plan on so many chips, and an all_reduce over all of them. */
static bool one_size(sp_job *job, const trn_topology *net, sp_scale *s, char *why)
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
        return app_fail(why, "--scaling: on %d chips: %s", net->chips, job->error.text);
    s->legal = list.legal > 0;
    return true;
}

/* Powers of two that are a part of the system, and all of it. */
static bool scaling(sp_job *job, char *why)
{
    trn_topology part;
    for (int64_t chips = 1; job->scales < SP_SCALES; chips *= 2) {
        const bool last = chips >= job->net.chips;
        if (last)
            part = job->net;
        else if (!sp_part_of(&job->net, chips, &part)) {
            const int whole = job->net.chips / job->net.level[job->net.levels - 1].size;
            if (chips < whole || !sp_part_of(&job->net, chips / whole * whole, &part)) continue;
            if (job->scales && job->scale[job->scales - 1].chips == part.chips) continue;
        }
        if (!one_size(job, &part, &job->scale[job->scales], why)) return false;
        job->scales++;
        if (last) break;
    }
    return true;
}

/* ---- the search ---- */

/* Formats of the file's quantization_config, where the command line says none of weights. */
static void take_quantised(sp_job *job)
{
    const hf_quantised *q = &job->config.quantised;
    trn_plan_formats *f = &job->options.args.formats;
    const struct {
        hf_kind kind;
        trn_format *format;
        double *bits;
    } row[] = { { HF_MLP, &f->weights, &f->weights_bits },
                { HF_ATTENTION, &f->attention, &f->attention_bits },
                { HF_EXPERTS, &f->experts, &f->experts_bits },
                { HF_HEAD, &f->head, &f->head_bits } };
    const bool given = f->weights || f->attention || f->experts || f->head;
    for (size_t i = 0; q->any && !given && i < sizeof row / sizeof row[0]; i++) {
        *row[i].format = q->kind[row[i].kind].format;
        *row[i].bits = q->kind[row[i].kind].bits;
    }
    if (q->any && given) hf_note_in(&job->config.notes, "--format takes the place of the file's quantization_config");
    if (q->kv.format && !f->kv) f->kv = q->kv.format, f->kv_bits = q->kv.bits;
}

/* Tokens of a sequence where nothing is said: 4096, or as many as the model takes. */
static bool read_model(sp_job *job, char *why)
{
    hf_ask ask = job->options.ask;
    ask.decodes = job->options.args.job == TRN_JOB_DECODE;
    if (!hf_config_load(job->options.config, &ask, &job->config, why)) return false;
    job->model = job->config.model;
    take_quantised(job);
    int64_t *const length = &job->options.args.sequence, longest = job->model.longest;
    if (*length == 0) *length = longest && longest < 4096 ? longest : 4096;
    return trn_model_size_of(&job->model, &job->size, &job->error) == TRN_OK ||
           app_fail(why, "%s: %s", job->options.config, job->error.text);
}

trn_topology sp_whole_net(const sp_job *job)
{
    const sp_options *o = &job->options;
    return o->network.loaded ? o->network.net
           : o->instance     ? sp_instance_net(o->instance)
                             : trn_topology_preset(o->system, o->preset);
}

static bool build_network(sp_job *job, char *why)
{
    const sp_options *o = &job->options;
    const int64_t chips = o->chips || !o->instance ? o->chips : sp_instance_chips(o->instance);
    trn_topology all = sp_whole_net(job);
    if (o->instance && (o->preset || o->chips > sp_instance_chips(o->instance)))
        return app_fail(why, "%s: this instance has %d chip%s", o->preset ? "--preset" : "--chips",
                        sp_instance_chips(o->instance), sp_instance_chips(o->instance) > 1 ? "s" : "");
    if (all.chips == 0)
        return app_fail(why, "--preset %s: %s has no such preset", o->preset, trn_system_name(o->system));
    if (o->network.loaded && all.system >= TRN_SYSTEM_COUNT)
        return app_fail(why,
                        "--topology: %s names no system, and a plan needs its chips: system = trn2.48xlarge, "
                        "for instance",
                        all.name);
    if (!app_network_break(&o->network, &all, why)) return false;
    if (all.faults && (chips || o->scaling))
        return app_refuse(why, "--chips and --scaling are for networks where nothing is down or slow");
    if (all.faults && (sp_pareto_asked(o) || o->serving.prefill_chips))
        return app_refuse(why, "--pareto, targets and --prefill-chips are for networks where nothing is down or slow");
    job->net = all;
    if (chips > all.chips)
        return app_fail(why, "--chips %lld: %s has %d; --topology takes a file that describes a larger network",
                        (long long)chips, all.name, all.chips);
    return !chips || sp_part_of(&all, chips, &job->net) ||
           app_fail(why, "--chips %lld: no part of %s (%d chips)", (long long)chips, all.name, all.chips);
}

/* Rates and times as factors of what they are. */
static void scale(sp_job *job)
{
    const double *f = job->options.factor;
    for (int l = 0; l < job->net.levels; l++) {
        job->net.level[l].bytes_per_s *= f[SP_LINK_RATE];
        job->net.level[l].latency_s *= f[SP_LINK_LATENCY];
    }
    for (int i = 0; i < job->net.wires; i++) {
        job->net.wire[i].bytes_per_s *= f[SP_LINK_RATE];
        job->net.wire[i].latency_s *= f[SP_LINK_LATENCY];
    }
    job->net.start_s *= f[SP_DMA_START];
    job->net.hbm_bytes_per_s *= f[SP_HBM_RATE];
    job->own.system = *trn_system_spec_of(job->net.system);
    job->own.server = *job->own.system.server;
    job->own.chip = *job->own.server.chip;
    job->own.chip.hbm_bytes_per_s *= f[SP_HBM_RATE];
    job->own.server.chip = &job->own.chip;
    job->own.system.server = &job->own.server;
}

bool sp_settle(sp_job *job, char *why)
{
    const sp_options *o = &job->options;
    if (!build_network(job, why)) return false;
    scale(job);
    job->args = job->options.args;
    job->args.system = &job->own.system;
    job->args.calibration = &job->options.calibration.now;
    job->args.ignore_groups = job->args.ignore_groups || sp_instance_any_group(o->instance);
    job->args.model = &job->model;
    job->args.net = &job->net;
    job->args.error = &job->error;
    const int each = job->model.tables ? 1024 : job->args.job == TRN_JOB_TRAIN ? 4 : 1;
    if (job->args.batch == 0) job->args.batch = (int64_t)job->net.chips * each;
    const int64_t answer = o->serving.rates ? o->serving.answer : 0, room = job->args.sequence - answer;
    if (job->args.prompt == 0) job->args.prompt = room > 0 ? room : 1;
    if (!answer || job->args.prompt <= room) return true;
    return app_fail(why, "--arrivals: a prompt of %lld and an answer of %lld tokens are more than --seq %lld",
                    (long long)job->args.prompt, (long long)answer, (long long)job->args.sequence);
}

bool sp_search(sp_job *job, char *why)
{
    const sp_options *o = &job->options;
    if (!read_model(job, why) || !sp_settle(job, why) || !sp_calibrate(job, why)) return false;
    job->plan = app_resize(NULL, PLANS, sizeof *job->plan);
    if (trn_plan_search(&job->args, job->plan, PLANS, &job->list) != TRN_OK) return app_refuse(why, job->error.text);
    return (!o->scaling || scaling(job, why)) && (!sp_pareto_asked(o) || sp_pareto_run(job, why)) &&
           (!o->serving.rates || sp_serve_run(job, why)) && (!o->sweep.values || sp_sweep_run(job, why)) &&
           (!o->tornado || sp_tornado_run(job, why));
}

void sp_free(sp_job *job)
{
    free(job->plan);
    free(job->row);
    free(job->swing);
    free(job->point);
    if (job->served.columns) app_table_free(&job->served);
    app_calibration_free(&job->options.calibration);
}
