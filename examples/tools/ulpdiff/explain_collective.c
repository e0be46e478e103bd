/* explain_collective.c - hypotheses about a sum over ranks: the algorithm, its links, the wire, where it was rounded.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_collective.h>

enum { ALGORITHM, LINKS, WIRE, ADDS, OUTPUT, SCALE };
static const char *const aspects[] = { "algorithm", "links", "wire", "additions", "output", "scale", NULL };
enum { KEY_SUM, KEY_NET, KEY_FORMATS, KEY_SCALE }; /* KEY_SUM: a trn_algorithm, or BY_HOST + a host_sum */
enum { BY_HOST = 100, NETS = 6, WIRES = 8, OUTPUTS = 4, PER_CHIP = 64, MOST_RANKS = 1024 };

typedef enum host_sum { HOST_FLOAT64, HOST_ASCENDING, HOST_DESCENDING, HOST_PAIRWISE, HOST_SUMS } host_sum;
static const char *const host_name[HOST_SUMS] = { "float64 sums, rounded once",
                                                  "ranks 0, 1, 2, ... one after the other", "the last rank first",
                                                  "neighbours in pairs, pairs of pairs" };

typedef enum co_scale { SCALE_SUM, SCALE_AFTER, SCALE_BEFORE, SCALES } co_scale;
static const char *const scale_name[SCALES] = { "sum", "mean, divided at the end", "mean, divided first" };

typedef struct co_net {
    trn_topology net;
    char name[40];
    int ranks_per_chip;
} co_net;

typedef struct co_context {
    const ud_job *job;
    trn_collective op;
    int ranks;
    int64_t n, first, count; /* elements of a rank; of these, those that A and B hold */
    float *x, *copy, *out;   /* [ranks, n] */
    co_net net[NETS];
    int nets, wires, outputs;
    trn_format wire[WIRES], output[OUTPUTS];
    bool mean;
} co_context;

/* ---- computing ---- */

static void divide(float *x, int64_t n, int ranks)
{
    const float factor = 1.0f / (float)ranks;
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

static void add_rounded(trn_format wire, float *sum, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) sum[i] += x[i];
    ud_round_values(wire, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, sum, n);
}

static void add_pairs(const co_context *c, trn_format wire)
{
    for (int step = 1; step < c->ranks; step *= 2)
        for (int r = 0; r + step < c->ranks; r += 2 * step)
            add_rounded(wire, c->copy + r * c->n, c->copy + (r + step) * c->n, c->n);
}

static void add_doubles(const co_context *c)
{
    for (int64_t i = 0; i < c->n; i++) {
        double sum = 0;
        for (int r = 0; r < c->ranks; r++) sum += (double)c->copy[r * c->n + i];
        c->copy[i] = (float)sum;
    }
}

/* The sum ends in the first rank's copy. */
static void by_host(const co_context *c, host_sum sum, trn_format wire)
{
    ud_round_values(wire, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, c->copy, c->n * c->ranks);
    if (sum == HOST_PAIRWISE)
        add_pairs(c, wire);
    else if (sum == HOST_FLOAT64)
        add_doubles(c);
    else if (sum == HOST_ASCENDING)
        for (int r = 1; r < c->ranks; r++) add_rounded(wire, c->copy, c->copy + r * c->n, c->n);
    else {
        float *last = c->copy + (c->ranks - 1) * c->n;
        for (int r = c->ranks - 2; r >= 0; r--) add_rounded(wire, last, c->copy + r * c->n, c->n);
        memmove(c->copy, last, sizeof *last * (size_t)c->n);
    }
    ud_round_values(wire, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, c->copy, c->n);
    memcpy(c->out, c->copy, sizeof *c->out * (size_t)c->n);
}

static trn_collective_args args_of(const co_context *c, const co_net *net)
{
    trn_collective_args args;
    memset(&args, 0, sizeof args);
    args.net = &net->net;
    args.op = TRN_ALL_REDUCE; /* a reduce_scatter's part is that part of it */
    args.bytes = c->n * 4;
    args.ranks_per_chip = net->ranks_per_chip;
    return args;
}

static bool by_library(const co_context *c, const ud_hypothesis *h, trn_format wire, bool adds)
{
    trn_tensor *view = app_memory((size_t)c->ranks * 2, sizeof *view);
    for (int r = 0; r < c->ranks; r++) {
        view[r] = trn_tensor_1d(TRN_F32, c->copy + r * c->n, c->n);
        view[c->ranks + r] = trn_tensor_1d(TRN_F32, c->out + r * c->n, c->n);
    }
    trn_collective_args args = args_of(c, &c->net[h->key[KEY_NET]]);
    args.algorithm = (trn_algorithm)h->key[KEY_SUM];
    args.wire = wire;
    args.accumulate = adds ? wire : TRN_FORMAT_UNSET;
    args.src = view;
    args.dst = view + c->ranks;
    const bool done = app_worked(trn_collective_run(&args), NULL);
    free(view);
    return done;
}

static bool run(void *context, const ud_hypothesis *h, bool whole, float *value)
{
    const co_context *c = context;
    const trn_format wire = c->wire[h->key[KEY_FORMATS] % WIRES],
                     output = c->output[h->key[KEY_FORMATS] / WIRES % OUTPUTS];
    const bool adds = h->key[KEY_FORMATS] / WIRES / OUTPUTS;
    (void)whole;
    memcpy(c->copy, c->x, sizeof *c->x * (size_t)(c->n * c->ranks));
    if (h->key[KEY_SCALE] == SCALE_BEFORE) divide(c->copy, c->n * c->ranks, c->ranks);
    if (h->key[KEY_SUM] >= BY_HOST)
        by_host(c, (host_sum)(h->key[KEY_SUM] - BY_HOST), wire);
    else if (!by_library(c, h, wire, adds))
        return false;
    memcpy(value, c->out + c->first, sizeof *value * (size_t)c->count);
    if (h->key[KEY_SCALE] == SCALE_AFTER) {
        divide(value, c->count, c->ranks);
        ud_round_values(wire, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, value, c->count);
    }
    ud_round_values(output, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, value, c->count);
    return true;
}

/* ---- the hypotheses ---- */

static void suppose(co_context *c, ud_explanation *e, int sum, int net, int wire, int output, bool adds, co_scale scale)
{
    ud_hypothesis *h = ud_suppose(e);
    const bool host = sum >= BY_HOST, once = host && sum - BY_HOST == HOST_FLOAT64;
    const char *algorithm = host ? host_name[sum - BY_HOST] : trn_algorithm_name((trn_algorithm)sum);
    const bool cast = output > 0;
    const char *travels = trn_format_name(c->wire[wire]), *ends = cast ? trn_format_name(c->output[output]) : travels;
    snprintf(h->text, sizeof h->text, "%s%s%s; wire %s%s%s%s%s%s", algorithm, host ? "" : " on ",
             host ? "" : c->net[net].name, travels, adds ? ", added in it" : "", cast ? "; output " : "",
             cast ? ends : "", scale ? "; " : "", scale ? scale_name[scale] : "");
    ud_say(h, ALGORITHM, "%s", host ? "host's" : algorithm);
    if (!host) ud_say(h, LINKS, "%s", c->net[net].name);
    ud_say(h, WIRE, "%s", travels);
    if (!once) ud_say(h, ADDS, "%s", adds ? "in the wire's format" : "in float32");
    ud_say(h, OUTPUT, "%s", cast ? ends : "as it travels");
    ud_say(h, SCALE, "%s", scale_name[scale]);
    h->key[KEY_SUM] = sum;
    h->key[KEY_NET] = net;
    h->key[KEY_FORMATS] = wire + WIRES * (output + OUTPUTS * adds);
    h->key[KEY_SCALE] = (int)scale;
    h->surprise = (host ? 4 : net) + wire + 2 * adds + (scale == SCALE_BEFORE) + (once ? 1 : 0);
}

static void suppose_sums(co_context *c, ud_explanation *e, int wire, int output, co_scale scale)
{
    for (int s = 0; s < HOST_SUMS; s++) suppose(c, e, BY_HOST + s, 0, wire, output, false, scale);
    for (int k = 0; k < c->nets; k++) {
        trn_algorithm list[TRN_ALGORITHM_COUNT];
        const trn_collective_args args = args_of(c, &c->net[k]);
        const int count = trn_collective_candidates(&args, list);
        for (int i = 0; i < count; i++)
            for (int adds = 0; adds < 2; adds++)
                if (!adds || c->wire[wire] != TRN_F32) suppose(c, e, (int)list[i], k, wire, output, adds, scale);
    }
}

static void suppose_all(co_context *c, ud_explanation *e)
{
    for (int w = 0; w < c->wires; w++)
        for (int o = 0; o < c->outputs; o++) {
            if (o && ud_significand(c->output[o]) >= ud_significand(c->wire[w])) continue; /* output[0]: no cast */
            for (int s = c->mean ? SCALE_AFTER : SCALE_SUM; s < (c->mean ? SCALES : SCALE_AFTER); s++)
                suppose_sums(c, e, w, o, (co_scale)s);
        }
}

/* ---- links ---- */

static void add_net(co_context *c, const char *name, trn_topology net, int ranks_per_chip)
{
    if (c->nets == NETS || net.chips * ranks_per_chip != c->ranks) return;
    co_net *n = &c->net[c->nets++];
    n->net = net;
    n->ranks_per_chip = ranks_per_chip;
    snprintf(n->name, sizeof n->name, "%s", name);
}

static void list_nets(co_context *c)
{
    const double rate = 128e9, start = 1.5e-6; /* the values do not depend on them */
    if (c->job->options.system) {
        const trn_topology net = trn_topology_of(trn_system_from_name(c->job->options.system));
        if (net.chips && c->ranks % net.chips == 0 && c->ranks / net.chips <= PER_CHIP)
            add_net(c, c->job->options.system, net, c->ranks / net.chips);
        return;
    }
    add_net(c, "a ring", trn_topology_ring(c->ranks, rate, start), 1);
    add_net(c, "all to all links", trn_topology_fully_connected(c->ranks, rate, start), 1);
    int size[2] = { 1, c->ranks };
    for (int i = 2; i * i <= c->ranks; i++)
        if (c->ranks % i == 0) size[0] = i, size[1] = c->ranks / i;
    if (size[0] > 1) add_net(c, "a torus", trn_topology_torus(2, size, rate, start), 1);
    for (int s = 0; s < TRN_SYSTEM_COUNT; s++) { /* systems of as many chips, or half or a quarter, of cores */
        const trn_topology net = trn_topology_of((trn_system)s);
        for (int per = 1; per <= 8; per *= 2)
            if (net.chips > 1 && net.chips * per == c->ranks) add_net(c, trn_system_name((trn_system)s), net, per);
    }
}

/* ---- opening ---- */

static void list_formats(co_context *c)
{
    static const trn_format usual[] = { TRN_F32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E5M2 };
    const trn_format own = ud_has_floats(&c->job->operand[0]) ? c->job->operand[0].format : TRN_F32;
    const ud_array *side[2] = { &c->job->pair[0].b, &c->job->pair[0].a };
    c->output[c->outputs++] = TRN_F32;
    for (int k = 0; k < 2; k++)
        if (ud_has_floats(side[k]) && side[k]->format != TRN_F32 && side[k]->format != c->output[c->outputs - 1])
            c->output[c->outputs++] = side[k]->format;
    if (c->job->options.wire) {
        c->wire[c->wires++] = c->job->options.wire;
        return;
    }
    c->wire[c->wires++] = own;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (usual[i] != own) c->wire[c->wires++] = usual[i];
}

/* One array [ranks, ...], or one per rank. */
static bool read_ranks(co_context *c, char *why)
{
    const ud_job *job = c->job;
    const bool stacked = job->operands == 1 && job->operand[0].rank > 0;
    c->ranks = !stacked                                 ? job->operands
               : job->operand[0].shape[0] <= MOST_RANKS ? (int)job->operand[0].shape[0]
                                                        : MOST_RANKS + 1;
    if (c->ranks > MOST_RANKS) return app_fail(why, "--inputs: more than %d ranks", MOST_RANKS);
    if (c->ranks < 2)
        return app_refuse(
            why, "--inputs: a sum over ranks needs two of them, as files, as arrays of one, or as its first axis");
    c->n = stacked ? job->operand[0].elements / c->ranks : job->operand[0].elements;
    for (int r = 0; r < job->operands; r++)
        if (!stacked && job->operand[r].elements != c->n)
            return app_fail(why, "%s: it has %" PRId64 " elements and %s has %" PRId64, job->operand[r].name,
                            job->operand[r].elements, job->operand[0].name, c->n);
    c->x = stacked ? ud_read_floats(&job->operand[0]) : app_memory((size_t)(c->n * c->ranks), sizeof *c->x);
    for (int r = 0; r < c->ranks && !stacked; r++) {
        float *one = ud_read_floats(&job->operand[r]);
        memcpy(c->x + r * c->n, one, sizeof *one * (size_t)c->n);
        free(one);
    }
    return true;
}

static bool find_part(co_context *c, char *why)
{
    const int64_t have = c->job->pair[0].b.elements;
    const int rank = c->job->options.rank;
    c->count = c->n;
    if (c->job->options.op == UD_OP_REDUCE_SCATTER && (rank >= 0 || have != c->n)) {
        if (rank >= c->ranks) return app_fail(why, "--rank %d: there are %d", rank, c->ranks);
        trn_collective_chunk(c->n, 0, c->ranks, rank < 0 ? 0 : rank, &c->first, &c->count);
    }
    if (have == c->count) return true;
    return app_fail(why, "--inputs: from %d ranks of %" PRId64 " elements come %" PRId64 ", and %s has %" PRId64,
                    c->ranks, c->n, c->count, c->job->options.b, have);
}

static void detect_mean(co_context *c)
{
    double product = 0, energy = 0;
    for (int64_t i = 0; i < c->count; i++) {
        double sum = 0, is;
        for (int r = 0; r < c->ranks; r++) sum += (double)c->x[r * c->n + c->first + i];
        ud_values(&c->job->pair[0].b, i, 1, &is);
        if (!isfinite(is) || !isfinite(sum)) continue;
        product += sum * is;
        energy += sum * sum;
    }
    c->mean = energy > 0 && fabs(product / energy * c->ranks - 1) < 0.25;
}

/* The sum as a product, for those who look for a part of it. */
static void lend_ranks(ud_job *job, const co_context *c)
{
    ud_product *p = &job->product;
    *p = (ud_product){ app_memory((size_t)c->ranks, sizeof(float)),
                       app_memory((size_t)(c->ranks * c->count), sizeof(float)),
                       1,
                       c->count,
                       c->ranks,
                       true };
    for (int r = 0; r < c->ranks; r++) {
        p->a[r] = 1;
        memcpy(p->b + r * c->count, c->x + r * c->n + c->first, sizeof(float) * (size_t)c->count);
    }
}

static void close_context(void *context)
{
    co_context *c = context;
    free(c->x);
    free(c->copy);
    free(c->out);
    free(c);
}

bool ud_open_collective(ud_job *job, ud_explanation *e, char *why)
{
    co_context *c = app_memory(1, sizeof *c);
    c->job = job;
    e->source.context = c;
    e->source.close = close_context;
    e->source.run = run;
    e->source.aspect = aspects;
    if (!read_ranks(c, why) || !find_part(c, why)) return false;
    c->copy = app_memory((size_t)(c->n * c->ranks), sizeof *c->copy);
    c->out = app_memory((size_t)(c->n * c->ranks), sizeof *c->out);
    list_nets(c);
    if (job->options.system && !c->nets)
        return app_fail(why, "--system %s: its chips are not %d ranks, nor is a multiple of them", job->options.system,
                        c->ranks);
    list_formats(c);
    detect_mean(c);
    lend_ranks(job, c);
    e->source.outputs = e->source.sampled = e->source.total = c->count;
    snprintf(e->source.inputs, sizeof e->source.inputs, "%s of %d ranks, %" PRId64 " elements each, %s%s",
             job->options.op == UD_OP_ALL_REDUCE ? "all_reduce" : "reduce_scatter", c->ranks, c->n,
             job->operand[0].type, c->mean ? "; B is a mean" : "");
    suppose_all(c, e);
    return true;
}
