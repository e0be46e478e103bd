/* cost.c - how a product is laid over the cores of a system, and what the cost model says of it.
 * SPDX-License-Identifier: MIT
 *
 * The model itself is trn_cost.h; here is only who works on what. A group of cores shares each product evenly (M and N,
 * never K); the system is so many groups side by side, each with its own data. The experts of a layer that are awake
 * run at the same time, each on its share of the group's cores. Nothing is communicated: the shards are where they are
 * used.
 */
#include "matmul.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *text;
} shares[TB_SHARES] = {
    { "domain", "the cores that NeuronLink joins share each product" },
    { "system", "all cores of the system share each product" },
    { "chip", "the cores of one chip share each product" },
    { "core", "each core has its own product" },
};

const char *tb_share_name(tb_share share) { return shares[share].name; }
const char *tb_share_text(tb_share share) { return shares[share].text; }

static int64_t cores_in_group(const trn_system_spec *spec, tb_share share)
{
    const int64_t chip = spec->server->chip->cores, server = chip * spec->server->chips;
    const int64_t cores[TB_SHARES] = { server * spec->servers_per_domain, server * spec->servers, chip, 1 };
    return cores[share];
}

/* A system of any number of cores: chips of one core each, with a core's share of everything that a chip has. */
typedef struct cores {
    trn_chip_spec chip;
    trn_server_spec server;
    trn_system_spec system;
} cores;

static void take_cores(cores *c, const trn_system_spec *spec, int64_t count)
{
    const double n = spec->server->chip->cores;
    c->chip = *spec->server->chip;
    c->server = *spec->server;
    c->system = *spec;
    double *const shared[] = {
        &c->chip.hbm_bytes,        &c->chip.hbm_bytes_per_s,         &c->chip.f32_flops_per_s,
        &c->chip.bf16_flops_per_s, &c->chip.f8_flops_per_s,          &c->chip.mx_flops_per_s,
        &c->chip.int8_ops_per_s,   &c->chip.sparse_bf16_flops_per_s, &c->chip.sparse_f8_flops_per_s
    };
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) *shared[i] /= n;
    c->chip.cores = 1;
    c->server.chips = (int)count;
    c->server.chip = &c->chip;
    c->system.servers = c->system.servers_per_domain = 1;
    c->system.server = &c->server;
}

/* Against the published figure; NaN without one. */
static void finish(tb_cost *cost, const tb_format *format, const trn_system_spec *spec)
{
    cost->spec_tflops = tb_format_spec_tflops(format, spec);
    cost->tflops = cost->time_s > 0 ? cost->flops * cost->groups / cost->time_s / 1e12 : 0;
    cost->share_of_spec = cost->tflops / cost->spec_tflops;
}

static tb_cost nothing_yet(const trn_system_spec *spec, tb_share share)
{
    const int64_t group = cores_in_group(spec, share);
    const double all = (double)trn_spec_chips(spec) * spec->server->chip->cores;
    tb_cost cost;
    memset(&cost, 0, sizeof cost);
    cost.group_cores = (double)group;
    cost.groups = all / (double)group;
    return cost;
}

/* With the scale of a block. */
static double weight_bits(const tb_format *format)
{
    return trn_format_bits(format->b) + (format->mode == TRN_MODE_MX ? 8.0 / 32 : 0);
}

static double group_hbm_bytes(const tb_cost *cost, const trn_system_spec *spec)
{
    return cost->group_cores * spec->server->chip->hbm_bytes / spec->server->chip->cores;
}

tb_cost tb_cost_product(const tb_product *p, const tb_format *format, const trn_system_spec *spec, tb_share share)
{
    tb_cost cost = nothing_yet(spec, share);
    const int64_t group = (int64_t)cost.group_cores;
    const int64_t each = p->together < group ? group / p->together : 1; /* cores for one product */
    const int64_t turns = (p->together + group - 1) / group;            /* more experts than cores: in turn */
    cores few;
    trn_system_cost answer;
    trn_error error = { TRN_OK, "" };
    memset(&answer, 0, sizeof answer); /* for gcc, which does not see that only a success is read */
    take_cores(&few, spec, each);
    trn_matmul_cost_args args = tb_format_cost(format);
    args.system = &few.system;
    args.m = p->m, args.n = p->n, args.k = p->k;
    args.error = &error;
    cost.there = trn_matmul_system_cost(&args, &answer) == TRN_OK;
    if (!cost.there) {
        snprintf(cost.why_not, sizeof cost.why_not, "%.159s", error.text);
        return cost;
    }
    cost.time_s = answer.time_s * (double)(p->rounds * turns);
    cost.flops = answer.flops * (double)(p->rounds * p->together);
    cost.core = answer.core;
    cost.core_m = answer.core_m;
    cost.core_n = answer.core_n;
    cost.limit = answer.core.limit;
    cost.limit_share = 1;
    cost.fits = p->weights * weight_bits(format) / 8 <= group_hbm_bytes(&cost, spec);
    finish(&cost, format, spec);
    return cost;
}

tb_cost tb_cost_total(const tb_cost *part, int count, const tb_product *product, const tb_format *format,
                      const trn_system_spec *spec, tb_share share)
{
    enum { LIMITS = TRN_LIMIT_STARTUP + 1 };
    tb_cost total = nothing_yet(spec, share);
    double time_of[LIMITS] = { 0 }, weights = 0;
    total.there = count > 0;
    for (int i = 0; i < count; i++) {
        if (!part[i].there) return part[i];
        total.time_s += part[i].time_s;
        total.flops += part[i].flops;
        time_of[part[i].limit] += part[i].time_s;
        weights += product[i].weights;
    }
    for (int i = 0; i < LIMITS; i++)
        if (time_of[i] > time_of[total.limit]) total.limit = (trn_limit)i;
    total.limit_share = total.time_s > 0 ? time_of[total.limit] / total.time_s : 1;
    total.fits = weights * weight_bits(format) / 8 <= group_hbm_bytes(&total, spec);
    finish(&total, format, spec);
    return total;
}
