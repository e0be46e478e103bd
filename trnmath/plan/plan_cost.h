/* plan/plan_cost.h - what products, attention and collectives take, each shape asked once.
 * Behind trn_plan.h. SPDX-License-Identifier: MIT
 *
 * DOES: asks trn_matmul_system_cost and trn_collective_cost, and remembers: a product by its sizes, a collective by its
 *     kind and the shape of its group, as one line (latency + bytes x slope) for each algorithm that may run, which is
 *     exact because the cost of a fixed algorithm is linear in bytes.
 * DOES NOT: keep anything between calls: the memory belongs to one search and is freed with it.
 *
 * KNOWN FROM: trn_cost.h (a roofline of TensorE, HBM and DMA), trn_collective.h (schedules over links).
 */
#ifndef TRNI_PLAN_PLAN_COST_H
#define TRNI_PLAN_PLAN_COST_H

#include <stdlib.h>

#include "../network/collective_cost.h"
#include "../machine/cost.h"
#include "plan_place.h"

typedef struct trni_plan_work_time {
    double time_s;
    double expected_s; /* at the shares of TensorE and HBM that are reached */
    bool tensor;       /* TensorE sets it; else HBM or DMA */
} trni_plan_work_time;

typedef struct trni_plan_product_row {
    int64_t m, n, k;
    int kind; /* 0 = free */
    trni_plan_work_time time;
} trni_plan_product_row;

enum { TRNI_PLAN_LINES = 32, TRNI_PLAN_COLLECTIVES = 4096 };

typedef struct trni_plan_line {
    trn_algorithm algorithm;
    double latency_s, slope; /* seconds a byte */
    double expected_latency_s, expected_slope;
    double graph_s; /* beside the expected latency, whatever is chosen */
} trni_plan_line;

/* What a line gives for so many bytes. */
typedef struct trni_plan_seconds {
    double ideal_s, expected_s;
} trni_plan_seconds;

typedef struct trni_plan_collective_row {
    bool used;
    int op, ranks_per_chip;
    int key[TRNI_PLAN_KEY];
    int lines;
    trni_plan_line line[TRNI_PLAN_LINES];
} trni_plan_collective_row;

/* One kind of matrices. */
typedef struct trni_plan_storage {
    trn_format format;
    double bits;   /* of an element in HBM */
    bool converts; /* they become the compute format on their way into SBUF */
} trni_plan_storage;

/* What a step asked of the network, in the order in which it did: plan_operations.h lists it. */
typedef struct trni_plan_told {
    trn_collective op;
    unsigned axes;
    double bytes; /* of each */
    double count; /* so many, one after the other */
    double ideal_s, expected_s;
} trni_plan_told;

enum { TRNI_PLAN_TOLD = 8 };

typedef struct trni_plan_work {
    trn_plan_args a; /* settled: every default replaced; model points at the next field */
    trn_model m;
    trn_model_size size;
    trn_chip_spec chip; /* one that is a rank of tp: a chip, or a logical core's part of it */
    trn_server_spec server;
    trn_system_spec unit;
    const trn_chip_spec *whole; /* the chip itself */
    trni_plan_storage kept[TRNI_PLAN_KEPTS];
    int domain; /* chips that NeuronLink joins */
    trni_plan_product_row *product;
    int64_t products;                     /* a power of two */
    trni_plan_collective_row *collective; /* [TRNI_PLAN_COLLECTIVES] */
    int *chips;                           /* trni_plan_place_capacity() */
    int64_t asked;                        /* costs that were computed, not remembered */
    int group_tp;                         /* whose groups were checked last, and what was said; "" = they are good */
    char group_why[200];
    trn_status status; /* the first failure of a cost */
    int tolds;         /* of told[]; the first ones, where there are more */
    trni_plan_told told[TRNI_PLAN_TOLD];
} trni_plan_work;

/* ---- arguments ---- */

/* Bits of an element, and what training does not know. */
TRNI_DRIVER trn_status trni_plan_check_bits(const trn_plan_args *a)
{
    const trn_plan_formats *f = &a->formats;
    const struct {
        const char *name;
        double bits;
    } row[] = {
        { "weights_bits", f->weights_bits }, { "attention_bits", f->attention_bits },
        { "experts_bits", f->experts_bits }, { "head_bits", f->head_bits },
        { "kv_bits", f->kv_bits },
    };
    const bool several = (f->attention && f->attention != f->weights) || (f->experts && f->experts != f->weights) ||
                         (f->head && f->head != f->weights);
    bool scaled = false;
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (!(row[i].bits >= 0 && row[i].bits <= 256))
            return trni_fail(a->error, TRN_EINVAL, "formats.%s is %g; an element has 0 to 256", row[i].name,
                             row[i].bits);
        scaled = scaled || (i < 4 && row[i].bits > 0);
    }
    if (a->job != TRN_JOB_TRAIN || (!several && !scaled)) return TRN_OK;
    return trni_fail(a->error, TRN_EUNSUPPORTED,
                     "weights of several formats, or with block scales, are for prefill and decode: training keeps one "
                     "format, without scales");
}

TRNI_DRIVER trn_status trni_plan_check_formats(const trn_plan_args *a)
{
    const trn_plan_formats *f = &a->formats;
    const struct {
        const char *name;
        trn_format format;
    } row[] = {
        { "weights", f->weights },
        { "activations", f->activations },
        { "gradients", f->gradients },
        { "optimizer", f->optimizer },
        { "kv", f->kv },
        { "wire", f->wire },
        { "compute", f->compute },
        { "attention", f->attention },
        { "experts", f->experts },
        { "head", f->head },
    };
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].format && trn_format_bits(row[i].format) == 0)
            return trni_fail(a->error, TRN_EFORMAT, "formats.%s is %d, not a format", row[i].name, (int)row[i].format);
    return trni_plan_check_bits(a);
}

TRNI_DRIVER trn_status trni_plan_check_choices(const trn_plan_args *a)
{
    if ((unsigned)a->job >= TRN_JOB_COUNT) return trni_fail(a->error, TRN_EINVAL, "job is %d, not a job", (int)a->job);
    if ((unsigned)a->recompute >= TRN_RECOMPUTE_COUNT)
        return trni_fail(a->error, TRN_EINVAL, "recompute is %d, not a choice", (int)a->recompute);
    if ((unsigned)a->precision >= TRN_PRECISION_COUNT)
        return trni_fail(a->error, TRN_EINVAL, "precision is %d, not a choice", (int)a->precision);
    if ((unsigned)a->zero >= TRN_ZERO_COUNT)
        return trni_fail(a->error, TRN_EINVAL, "zero is %d, not a choice", (int)a->zero);
    for (int i = 0; i < TRN_AXIS_COUNT; i++)
        if (a->degree[i] < 0)
            return trni_fail(a->error, TRN_EINVAL, "degree of %s is %d", trn_plan_axis_name((trn_plan_axis)i),
                             a->degree[i]);
    if (a->experts_over < 0) return trni_fail(a->error, TRN_EINVAL, "experts_over is %d", a->experts_over);
    if (a->microbatch < 0 || a->microbatch > (INT64_C(1) << 32) || a->max_pp < 0 || a->prompt < 0 || a->prompts < 0 ||
        a->prompts > (INT64_C(1) << 32))
        return trni_fail(
            a->error, TRN_EINVAL,
            "microbatch %lld, prompt %lld, prompts %lld and max_pp %d must not be negative, nor beyond 2^32",
            (long long)a->microbatch, (long long)a->prompt, (long long)a->prompts, a->max_pp);
    return TRN_OK;
}

#define TRNI_PLAN_MOST (INT64_C(1) << 32) /* sequences, tokens of one */
#define TRNI_PLAN_TOKENS 0x1p40           /* of a step: no product of sizes overflows */
#define TRNI_PLAN_ROUTED 0x1p60           /* the same tokens, once for each of their experts */

TRNI_DRIVER trn_status trni_plan_check_assumptions(const trn_plan_args *a)
{
#define TRNI_X(field, value, unit, why) { #field, a->assumptions.field },
    const struct {
        const char *name;
        double value;
    } row[] = { TRNI_PLAN_ASSUMPTIONS(TRNI_X) };
#undef TRNI_X
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++)
        if (!(row[i].value >= -0x1p60 && row[i].value <= 0x1p60))
            return trni_fail(a->error, TRN_EINVAL, "assumptions.%s is %g, not a number of any use", row[i].name,
                             row[i].value);
    if (a->assumptions.expert_imbalance > 1024)
        return trni_fail(a->error, TRN_EINVAL, "assumptions.expert_imbalance is %g; 1024 is the most",
                         a->assumptions.expert_imbalance);
    const trn_plan_assumptions meant = trn_plan_assumptions_default(&a->assumptions);
    if (meant.bucket_bytes < 1 && meant.bucket_rank_bytes < 1)
        return trni_fail(a->error, TRN_EINVAL,
                         "assumptions.bucket_bytes is %g and bucket_rank_bytes %g; a bucket has at least one byte",
                         meant.bucket_bytes, meant.bucket_rank_bytes);
    return TRN_OK;
}

/* The busiest experts' tokens are rows of a product, whose number must be one. */
TRNI_DRIVER trn_status trni_plan_check_routing(const trn_plan_args *a, double tokens)
{
    const double busiest = trn_plan_assumptions_default(&a->assumptions).expert_imbalance;
    const double routed = tokens * (double)a->model->experts_per_token * busiest;
    if (routed <= TRNI_PLAN_ROUTED) return TRN_OK;
    return trni_fail(a->error, TRN_ELIMIT,
                     "%.0f tokens for %lld experts each, times expert_imbalance %g, are more than 2^60 rows", tokens,
                     (long long)a->model->experts_per_token, busiest);
}

TRNI_DRIVER trn_status trni_plan_check_args(const trn_plan_args *a)
{
    trn_status status = trn_topology_check(a->net, a->error);
    if (status != TRN_OK) return status;
    if (!a->system && !trn_system_spec_of(a->net->system))
        return trni_fail(a->error, TRN_EINVAL,
                         "system is null, and %s is a network of no system: whose chips are they?", a->net->name);
    if (a->batch < 1 || a->batch > TRNI_PLAN_MOST || a->sequence < 1 || a->sequence > TRNI_PLAN_MOST ||
        a->prompt > TRNI_PLAN_MOST)
        return trni_fail(a->error, TRN_EINVAL, "batch is %lld and sequence %lld; both begin at 1 and end at 2^32",
                         (long long)a->batch, (long long)a->sequence);
    const double length = (double)(a->prompt > a->sequence ? a->prompt : a->sequence);
    const int64_t most = a->prompts > a->batch ? a->prompts : a->batch;
    if ((double)most * length > TRNI_PLAN_TOKENS)
        return trni_fail(a->error, TRN_ELIMIT, "batch %lld of %.0f tokens is more than 2^40 tokens in a step",
                         (long long)most, length);
    status = trni_plan_check_choices(a);
    if (status == TRN_OK) status = trni_plan_check_assumptions(a);
    if (status == TRN_OK) status = trni_plan_check_routing(a, (double)most * length);
    if (status == TRN_OK) status = trni_plan_check_formats(a);
    return status;
}

/* Chips of the innermost levels that the system's NeuronLink joins; all of them in a network of no system. */
TRNI_FN int trni_plan_link_domain(const trn_plan_args *a)
{
    const trn_system_spec *spec = trn_system_spec_of(a->net->system);
    const int most = spec ? spec->server->chips * spec->servers_per_domain : a->net->chips;
    return most < a->net->chips ? most : a->net->chips;
}

/* Logical cores of the size that is asked are the ranks. */
TRNI_FN trn_status trni_plan_resolve_lnc(trni_plan_work *w)
{
    const int lnc = w->a.lnc, most = w->whole->cores_per_logical_core, asked = w->a.ranks_per_chip;
    if (!lnc && !asked) w->a.ranks_per_chip = 1;
    if (!lnc) return TRN_OK;
    if (lnc < 1 || lnc > most)
        return trni_fail(w->a.error, TRN_EINVAL, "lnc is %d; a logical core of %s has %s", lnc, w->whole->name,
                         most > 1 ? "1 or 2 cores" : "1 core");
    w->a.ranks_per_chip = w->whole->cores / lnc;
    return !asked || asked == w->a.ranks_per_chip
               ? TRN_OK
               : trni_fail(w->a.error, TRN_EINVAL, "ranks_per_chip is %d, but with lnc %d a chip has %d logical cores",
                           asked, lnc, w->a.ranks_per_chip);
}

/* A chip, or the part of it that is one rank of tp. */
TRNI_FN trn_status trni_plan_resolve_unit(trni_plan_work *w)
{
    if (trni_plan_resolve_lnc(w) != TRN_OK) return TRN_EINVAL;
    const int ranks = w->a.ranks_per_chip;
    w->server = *w->a.system->server;
    w->chip = *w->whole;
    if (ranks < 1 || w->chip.cores % ranks)
        return trni_fail(w->a.error, TRN_EINVAL, "ranks_per_chip is %d, which does not divide the %d cores of %s",
                         ranks, w->chip.cores, w->chip.name);
    w->chip.cores /= ranks;
    w->chip.hbm_bytes /= ranks;
    w->chip.hbm_bytes_per_s /= ranks;
    w->server.chip = &w->chip;
    w->server.chips = 1;
    w->unit = *w->a.system;
    w->unit.server = &w->server;
    w->unit.servers = w->unit.servers_per_domain = 1;
    return TRN_OK;
}

/* What an encoder has no use for, and sequences that it has no positions for. */
TRNI_DRIVER trn_status trni_plan_check_model(const trn_model *m, const trn_plan_args *a)
{
    const long long sequence = (long long)a->sequence, longest = (long long)m->longest;
    if (m->bidirectional && a->job == TRN_JOB_DECODE)
        return trni_fail(a->error, TRN_EUNSUPPORTED,
                         "%s is an encoder, which keeps no cache: there is nothing to decode (prefill is its forward "
                         "pass)",
                         m->name[0] ? m->name : "the model");
    if (m->tables && a->job == TRN_JOB_DECODE)
        return trni_fail(a->error, TRN_EUNSUPPORTED,
                         "a recommender keeps no cache: there is nothing to decode "
                         "(prefill is its forward pass)");
    if (m->tables && (a->lnc || a->ranks_per_chip > 1))
        return trni_fail(a->error, TRN_EUNSUPPORTED,
                         "plans of a recommender are counted in chips: without lnc and "
                         "ranks_per_chip");
    if (m->tables && (a->recompute > TRN_RECOMPUTE_NONE ||
                      (a->zero != TRN_ZERO_AUTO && a->zero != TRN_ZERO_NONE && a->zero != TRN_ZERO_ANY)))
        return trni_fail(a->error, TRN_EUNSUPPORTED,
                         "plans of a recommender neither compute again (recompute) nor "
                         "share out what the MLPs keep (zero)");
    if (a->experts_over > 1 && !m->experts)
        return trni_fail(a->error, TRN_EINVAL, "experts_over is %d, but %s has no experts", a->experts_over,
                         m->name[0] ? m->name : "the model");
    if (m->patch_inputs && sequence != longest)
        return trni_fail(a->error, TRN_EINVAL, "sequence is %lld, but an image is %lld tokens", sequence, longest);
    if (longest && sequence > longest)
        return trni_fail(a->error, TRN_EINVAL, "sequence is %lld, but the model has positions for %lld tokens",
                         sequence, longest);
    return TRN_OK;
}

TRNI_FN trn_status trni_plan_resolve_args(trni_plan_work *w, const trn_plan_args *args)
{
    if (!args) return TRN_EINVAL;
    if (!args->net) return trni_fail(args->error, TRN_EINVAL, "net is null: a plan needs a topology");
    trn_status status = trn_model_settle(args->model, &w->m, args->error);
    if (status == TRN_OK) status = trn_model_size_of(&w->m, &w->size, args->error);
    if (status == TRN_OK) status = trni_plan_check_args(args);
    if (status == TRN_OK) status = trni_plan_check_model(&w->m, args);
    if (status != TRN_OK) return status;
    w->a = *args;
    w->a.model = &w->m;
    if (!w->a.system) w->a.system = trn_system_spec_of(args->net->system);
    w->whole = w->a.system->server->chip;
    w->a.assumptions = trn_plan_assumptions_default(&args->assumptions);
    if (w->a.prompt == 0) w->a.prompt = w->a.sequence;
    if (w->a.max_pp == 0) w->a.max_pp = 64;
    w->a.formats = trn_plan_formats_default(&args->formats, args->precision);
    w->domain = trni_plan_link_domain(&w->a);
    return trni_plan_resolve_unit(w);
}

/* ---- products ---- */

/* HELD: activations are in SBUF, and HBM has the weights alone. A kind is one of these, and EACH_KEPT times a
 * trni_plan_kept. */
enum { TRNI_PLAN_ON_CHIP = 1, TRNI_PLAN_ADDED, TRNI_PLAN_ON_CORE, TRNI_PLAN_HELD, TRNI_PLAN_EACH_KEPT = 8 };

TRNI_FN uint64_t trni_plan_hash(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

/* The row of these sizes, or the one to be filled; NULL when the table is full. */
TRNI_FN trni_plan_product_row *trni_plan_product_find(trni_plan_work *w, int64_t m, int64_t n, int64_t k, int kind)
{
    uint64_t at = trni_plan_hash(trni_plan_hash(trni_plan_hash((uint64_t)kind, (uint64_t)m), (uint64_t)n), (uint64_t)k);
    for (int64_t tried = 0; tried < 64; tried++, at++) {
        trni_plan_product_row *row = &w->product[at & (uint64_t)(w->products - 1)];
        if (row->kind == 0 || (row->kind == kind && row->m == m && row->n == n && row->k == k)) return row;
    }
    return NULL;
}

TRNI_FN trn_matmul_cost_args trni_plan_product_args(const trni_plan_work *w, const trni_plan_storage *kept, int64_t m,
                                                    int64_t n, int64_t k)
{
    trn_matmul_cost_args args;
    memset(&args, 0, sizeof args);
    args.system = &w->unit;
    args.m = m;
    args.n = n;
    args.k = k;
    args.a_format = w->a.formats.compute;
    args.b_format = kept->converts ? w->a.formats.compute : kept->format;
    args.error = w->a.error;
    return args;
}

/* Never less than what it takes at full rates. */
TRNI_FN double trni_plan_product_expected(const trn_plan_assumptions *a, const trn_core_cost *core, double time_s)
{
    const double tensor = (core->tensor_s + core->load_stationary_s) / a->tensor_share;
    return fmax(time_s, fmax(tensor, fmax(core->hbm_s / a->hbm_share, core->dma_s)));
}

/* HBM and DMA move this share of the bytes, and no sooner than `least_s`. */
TRNI_FN void trni_plan_product_moves(trn_system_cost *cost, double share, double least_s)
{
    trn_core_cost *c = &cost->core;
    c->bytes *= share;
    c->hbm_s = fmax(c->hbm_s * share, least_s);
    c->dma_s *= share;
    const double tensor = c->tensor_s + c->load_stationary_s + c->throttle_s;
    cost->time_s = fmax(tensor, fmax(c->hbm_s, c->dma_s)) + c->startup_s;
}

/* Elements of b that a core reads. */
TRNI_FN double trni_plan_product_weights(const trn_system_cost *cost)
{
    return (double)cost->core_k * (double)cost->core_n * cost->core.b_reads;
}

/* A product whose b is stored in other bits than it was asked with: as many bytes as that has. */
TRNI_FN void trni_plan_product_stored(const trni_plan_work *w, const trni_plan_storage *kept, trn_system_cost *cost)
{
    const double elements = trni_plan_product_weights(cost), bytes = cost->core.bytes;
    const int asked = trn_format_bits(kept->converts ? w->a.formats.compute : kept->format);
    const double fewer = elements * (asked - kept->bits) / 8,
                 passes = kept->converts ? w->a.assumptions.convert_passes : 0;
    if (!kept->converts && fabs(fewer) <= 0) return;
    trni_plan_product_moves(cost, bytes > 0 ? (bytes - fewer) / bytes : 1,
                            passes * elements / (w->chip.core->vector_elements * w->chip.core->vector_clock_hz));
}

/* A product whose a and dst lie in SBUF. */
TRNI_FN void trni_plan_product_held(const trni_plan_storage *kept, trn_system_cost *cost)
{
    const double all = cost->core.bytes, own = trni_plan_product_weights(cost) * kept->bits / 8;
    trni_plan_product_moves(cost, all > own ? own / all : 1, 0);
}

TRNI_FN trni_plan_work_time trni_plan_product_request(trni_plan_work *w, int64_t m, int64_t n, int64_t k, int all)
{
    const int kind = all % TRNI_PLAN_EACH_KEPT;
    const trni_plan_storage *kept = &w->kept[all / TRNI_PLAN_EACH_KEPT];
    trn_matmul_cost_args args = trni_plan_product_args(w, kept, m, n, k);
    trn_system_cost on_chip;
    trn_core_cost on_core;
    trni_plan_work_time t = { 0, 0, true };
    trn_status status;
    w->asked++;
    if (kind == TRNI_PLAN_ON_CORE) { /* attention: both operands are activations, in SBUF */
        args.b_format = args.a_format;
        status = trn_matmul_cost(&args, &on_core);
        if (status == TRN_OK) t.time_s = on_core.tensor_s + on_core.load_stationary_s;
        t.expected_s = t.time_s / w->a.assumptions.tensor_share;
    } else {
        args.accumulate = kind == TRNI_PLAN_ADDED;
        status = trn_matmul_system_cost(&args, &on_chip);
        if (status == TRN_OK && !args.accumulate) trni_plan_product_stored(w, kept, &on_chip);
        if (status == TRN_OK && kind == TRNI_PLAN_HELD) trni_plan_product_held(kept, &on_chip);
        if (status == TRN_OK) {
            t.time_s = on_chip.time_s - on_chip.core.startup_s + w->a.assumptions.product_start_s;
            t.tensor = on_chip.core.tensor_s >= on_chip.core.hbm_s && on_chip.core.tensor_s >= on_chip.core.dma_s;
            t.expected_s = trni_plan_product_expected(&w->a.assumptions, &on_chip.core, t.time_s);
        }
    }
    if (status != TRN_OK && w->status == TRN_OK) w->status = status;
    return t;
}

/* On all cores of a rank; ADDED: to what dst holds, as gradients of weights are. */
TRNI_FN trni_plan_work_time trni_plan_product_time(trni_plan_work *w, int64_t m, int64_t n, int64_t k, int kind)
{
    const trni_plan_work_time nothing = { 0, 0, true };
    if (m <= 0 || n <= 0 || k <= 0) return nothing;
    trni_plan_product_row *row = trni_plan_product_find(w, m, n, k, kind);
    if (!row) return trni_plan_product_request(w, m, n, k, kind);
    if (row->kind == 0) {
        row->time = trni_plan_product_request(w, m, n, k, kind);
        row->m = m;
        row->n = n;
        row->k = k;
        row->kind = kind;
    }
    return row->time;
}

/* Seconds of one core: queries[rows, wide] keys[context, wide], then [rows, context] values[context, value]. */
TRNI_FN trni_plan_seconds trni_plan_work_scores(trni_plan_work *w, int64_t rows, int64_t context, int64_t wide,
                                                int64_t value)
{
    const trni_plan_work_time scores = trni_plan_product_time(w, rows, context, wide, TRNI_PLAN_ON_CORE);
    const trni_plan_work_time values = trni_plan_product_time(w, rows, value, context, TRNI_PLAN_ON_CORE);
    const trni_plan_seconds t = { scores.time_s + values.time_s, scores.expected_s + values.expected_s };
    return t;
}

/* ---- collectives ---- */

/* One more line, unless it is the one before. False when the collective was refused. */
TRNI_FN bool trni_plan_collective_line(trni_plan_work *w, const trn_collective_args *args,
                                       trni_plan_collective_row *row)
{
    trn_cost cost;
    w->asked++;
    const trn_status status = trn_collective_cost(args, &cost);
    if (status != TRN_OK && w->status == TRN_OK) w->status = status;
    if (status != TRN_OK || row->lines == TRNI_PLAN_LINES) return false;
    trni_plan_line *line = &row->line[row->lines];
    line->algorithm = args->algorithm;
    line->latency_s = cost.latency_s;
    line->slope = (cost.time_s - cost.latency_s) / (double)args->bytes;
    line->expected_latency_s = cost.expected_latency_s - cost.graph_s;
    line->graph_s = cost.graph_s;
    line->expected_slope = (cost.expected_s - cost.expected_latency_s) / (double)args->bytes;
    if (row->lines && line[-1].algorithm == line->algorithm && fabs(line[-1].latency_s - line->latency_s) <= 1e-12)
        return true;
    row->lines++;
    return true;
}

/* One algorithm may do small buffers in another way than large ones; where these agree, so does what lies between. */
TRNI_FN void trni_plan_algorithm_lines(trni_plan_work *w, trn_collective_args *args, trni_plan_collective_row *row)
{
    static const int64_t size[] = { INT64_C(1) << 30, INT64_C(1) << 12, INT64_C(1) << 20, INT64_C(1) << 24 };
    const int before = row->lines;
    for (int i = 0; i < 4; i++) {
        if (i == 2 && row->lines < before + 2) return;
        args->bytes = size[i];
        if (!trni_plan_collective_line(w, args, row)) return;
    }
}

/* Every algorithm that may run. */
TRNI_FN void trni_plan_collective_lines(trni_plan_work *w, const trni_plan_place *place, unsigned axes,
                                        trni_plan_collective_row *row)
{
    trn_collective_args args;
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    int *const target = w->chips + trni_plan_place_capacity(w->a.net);
    trn_topology net;
    trni_plan_place part;
    trni_plan_place_reduce(place, axes, &net, &part);
    memset(&args, 0, sizeof args);
    trni_plan_place_groups(&part, axes, w->chips, &args.count, &args.groups);
    args.net = &net;
    args.op = (trn_collective)row->op;
    args.chips = w->chips;
    args.ranks_per_chip = row->ranks_per_chip;
    args.calibration = w->a.calibration;
    args.in_graph = true;
    args.error = w->a.error;
    if (row->op == TRN_PERMUTE) { /* down the pipeline: the last stage sends to nobody */
        for (int i = 0; i < args.count; i++) target[i] = i + 1 < args.count ? i + 1 : -1;
        args.targets = target;
    }
    int count = 0;
    if (trni_collective_candidates(&args, list, &count) == TRN_ENOSPC && w->status == TRN_OK) w->status = TRN_ENOSPC;
    if (!count) list[count++] = TRN_RING; /* more ranks than any algorithm of the runtime is known to take */
    row->lines = 0;
    for (int i = 0; i < count; i++) {
        args.algorithm = list[i];
        trni_plan_algorithm_lines(w, &args, row);
        args.single_step = list[i] == TRN_MESH && row->op == TRN_ALL_REDUCE && trn_collective_ranks(&args) <= 256;
        if (args.single_step) trni_plan_algorithm_lines(w, &args, row);
        args.single_step = false;
    }
    if (!row->lines && w->status == TRN_OK)
        w->status = trni_fail(w->a.error, TRN_EUNSUPPORTED, "no algorithm does %s over groups of %d chips",
                              trn_collective_name(args.op), args.count);
}

/* The row of this kind and shape, filled. When the table is crowded, an old one gives way. */
TRNI_FN const trni_plan_collective_row *trni_plan_collective_find(trni_plan_work *w, const trni_plan_place *place,
                                                                  unsigned axes, int op, int ranks)
{
    int key[TRNI_PLAN_KEY];
    trni_plan_place_key(place, axes, key);
    uint64_t at = trni_plan_hash(trni_plan_hash(0, (uint64_t)op), (uint64_t)ranks);
    for (int i = 0; i < TRNI_PLAN_KEY; i++) at = trni_plan_hash(at, (uint64_t)key[i]);
    trni_plan_collective_row *row = NULL;
    for (int tried = 0; tried < 64; tried++, at++) {
        row = &w->collective[at % TRNI_PLAN_COLLECTIVES];
        if (!row->used) break;
        if (row->op == op && row->ranks_per_chip == ranks && memcmp(row->key, key, sizeof key) == 0) return row;
    }
    row->used = true;
    row->op = op;
    row->ranks_per_chip = ranks;
    memcpy(row->key, key, sizeof key);
    trni_plan_collective_lines(w, place, axes, row);
    return row;
}

TRNI_FN trni_plan_seconds trni_plan_line_time(const trni_plan_line *line, double bytes)
{
    trni_plan_seconds t = { line->latency_s + bytes * line->slope,
                            line->expected_latency_s + bytes * line->expected_slope };
    t.expected_s = fmax(t.expected_s, t.ideal_s);
    return t;
}

/* The line of a row that is expected to be the fastest. */
TRNI_FN trni_plan_seconds trni_plan_row_time(const trni_plan_collective_row *row, double bytes,
                                             trn_algorithm *algorithm)
{
    trni_plan_seconds best = { 0, 0 };
    int chosen = 0;
    for (int i = 0; i < row->lines; i++) {
        const trni_plan_seconds t = trni_plan_line_time(&row->line[i], bytes);
        if (i > 0 && t.expected_s >= best.expected_s) continue;
        best = t;
        chosen = i;
    }
    if (algorithm && row->lines) *algorithm = row->line[chosen].algorithm;
    if (row->lines) best.expected_s += row->line[chosen].graph_s;
    return best;
}

/* Groups of more than 64 chips, which a switch joins outermost, are put together from collectives that are asked by
 * themselves: first inside, then across with what is left, and inside again. Across more ports than a mesh takes, the
 * same once more, with the ports in two factors. What `hierarchical` does in one piece; the runtime is documented to
 * combine any pair, and a mesh to have at most 128 members (nec.h). */
enum { TRNI_PLAN_LARGE = 64, TRNI_PLAN_MESH = 128 };

TRNI_FN trni_plan_seconds trni_plan_sum(trni_plan_seconds a, trni_plan_seconds b)
{
    a.ideal_s += b.ideal_s;
    a.expected_s += b.expected_s;
    return a;
}

TRNI_FN trni_plan_seconds trni_plan_request(trni_plan_work *w, const trni_plan_place *p, unsigned axes,
                                            trn_collective op, double bytes)
{
    return trni_plan_row_time(trni_plan_collective_find(w, p, axes, (int)op, 1), bytes, NULL);
}

/* Inside before and after: half of it for a reduce_scatter, the other half for an all_gather. */
TRNI_FN trni_plan_seconds trni_plan_request_inside(trni_plan_work *w, const trni_plan_place *p, unsigned axes,
                                                   trn_collective op, double bytes)
{
    trni_plan_seconds t = { 0, 0 };
    if (op != TRN_ALL_GATHER) t = trni_plan_request(w, p, axes, TRN_REDUCE_SCATTER, bytes);
    if (op != TRN_REDUCE_SCATTER) t = trni_plan_sum(t, trni_plan_request(w, p, axes, TRN_ALL_GATHER, bytes));
    return t;
}

/* So many ports of the switch at this level, and nothing else. */
TRNI_FN trni_plan_place trni_plan_ports(const trni_plan_place *place, unsigned axes, int level, int ports)
{
    trni_plan_place p = *place;
    int axis = 0;
    while (!(axes >> axis & 1u)) axis++;
    memset(p.parts, 0, sizeof p.parts);
    p.parts[level] = 1;
    p.part[level][0].axis = axis;
    p.part[level][0].factor = ports;
    return p;
}

TRNI_FN trni_plan_seconds trni_plan_across(trni_plan_work *w, const trni_plan_place *outer, unsigned axes,
                                           trn_collective op, double bytes, int level)
{
    const int all = trni_plan_place_count(outer, axes);
    trni_plan_seconds best = trni_plan_request(w, outer, axes, op, bytes);
    for (int first = 2; all > TRNI_PLAN_MESH && first <= TRNI_PLAN_MESH; first++) {
        if (all % first || all / first > TRNI_PLAN_MESH) continue;
        const trni_plan_place a = trni_plan_ports(outer, axes, level, first);
        const trni_plan_place b = trni_plan_ports(outer, axes, level, all / first);
        const trni_plan_seconds t = trni_plan_sum(trni_plan_request_inside(w, &a, axes, op, bytes),
                                                  trni_plan_request(w, &b, axes, op, bytes / first));
        if (t.expected_s < best.expected_s) best = t;
    }
    return best;
}

TRNI_FN trni_plan_seconds trni_plan_large_collective(trni_plan_work *w, const trni_plan_place *place, unsigned axes,
                                                     trn_collective op, double bytes, int reach)
{
    const trni_plan_place inner = trni_plan_place_within(place, axes, 0, reach - 1);
    const trni_plan_place outer = trni_plan_place_within(place, axes, reach, reach);
    const int inside = trni_plan_place_count(&inner, axes);
    trni_plan_seconds within = { 0, 0 };
    if (inside > 1) within = trni_plan_request_inside(w, &inner, axes, op, bytes);
    return trni_plan_sum(within, trni_plan_across(w, &outer, axes, op, bytes / inside, reach));
}

/* All groups of these axes at once, `bytes` a rank (all_gather: the result). 0 for groups of one rank. */
TRNI_FN trni_plan_seconds trni_plan_work_collective(trni_plan_work *w, const trni_plan_place *place, unsigned axes,
                                                    trn_collective op, double bytes, int ranks_per_chip,
                                                    trn_algorithm *algorithm)
{
    const int count = trni_plan_place_count(place, axes), reach = trni_plan_place_reach(place, axes);
    const trni_plan_seconds nothing = { 0, 0 };
    if (bytes <= 0 || count * ranks_per_chip < 2) return nothing;
    if (count > TRNI_PLAN_LARGE && op <= TRN_ALL_REDUCE && ranks_per_chip == 1 &&
        w->a.net->level[reach].wiring == TRN_WIRING_SWITCH) {
        if (algorithm) *algorithm = TRN_HIERARCHICAL;
        return trni_plan_large_collective(w, place, axes, op, bytes, reach);
    }
    return trni_plan_row_time(trni_plan_collective_find(w, place, axes, (int)op, ranks_per_chip), bytes, algorithm);
}

/* ---- one search ---- */

TRNI_FN void trni_plan_work_end(trni_plan_work *w)
{
    free(w->product);
    free(w->collective);
    free(w->chips);
    w->product = NULL;
    w->collective = NULL;
    w->chips = NULL;
}

/* Do products take the weights as they are stored, or must they become the compute format? A compute format that there
 * is no product in is told once, before the search. */
TRNI_DRIVER trn_status trni_plan_check_products(trni_plan_work *w)
{
    static const char *const name[TRNI_PLAN_KEPTS] = { "compute", "attention", "experts", "head" };
    const trn_plan_formats *f = &w->a.formats;
    const trni_plan_storage kept[TRNI_PLAN_KEPTS] = { { f->weights, f->weights_bits, false },
                                                      { f->attention, f->attention_bits, false },
                                                      { f->experts, f->experts_bits, false },
                                                      { f->head, f->head_bits, false } };
    trn_system_cost cost;
    trn_error told;
    trn_status status = TRN_OK;
    memcpy(w->kept, kept, sizeof kept);
    for (int i = 0; i < TRNI_PLAN_KEPTS; i++) {
        for (int convert = 0; convert < 2; convert++) {
            w->kept[i].converts = convert;
            trn_matmul_cost_args args = trni_plan_product_args(w, &w->kept[i], 128, 128, 128);
            args.error = &told;
            status = trn_matmul_system_cost(&args, &cost);
            if (status == TRN_OK) break;
        }
        if (status != TRN_OK) return trni_fail(w->a.error, status, "formats.%s: %.200s", name[i], told.text);
    }
    return TRN_OK;
}

/* `shapes`: how many products may be remembered. After a failure nothing is held. */
TRNI_FN trn_status trni_plan_work_begin(trni_plan_work *w, const trn_plan_args *args, int64_t shapes)
{
    memset(w, 0, sizeof *w);
    trn_status status = trni_plan_resolve_args(w, args);
    if (status != TRN_OK) return status;
    for (w->products = 64; w->products < shapes; w->products *= 2) {}
    w->product = (trni_plan_product_row *)calloc((size_t)w->products, sizeof *w->product);
    w->collective = (trni_plan_collective_row *)calloc(TRNI_PLAN_COLLECTIVES, sizeof *w->collective);
    w->chips = (int *)calloc((size_t)(trni_plan_place_capacity(w->a.net) + w->a.net->chips), sizeof *w->chips);
    if (!w->product || !w->collective || !w->chips)
        status = trni_fail(w->a.error, TRN_ENOSPC, "no memory for a search over %d chips", w->a.net->chips);
    if (status == TRN_OK) status = trni_plan_check_products(w);
    if (status != TRN_OK) trni_plan_work_end(w);
    return status;
}

#endif /* TRNI_PLAN_PLAN_COST_H */
