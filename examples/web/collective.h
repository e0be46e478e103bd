/* collective.h - the tool "collective": how long it takes, what each link carries, and what rounding does on the way.
 * SPDX-License-Identifier: MIT
 *
 *     collective?system=trn2.48xlarge&op=all_reduce&algorithm=auto&bytes=67108864&cores=1&wire=bfloat16&values=256 1
 */
#ifndef WEB_COLLECTIVE_H
#define WEB_COLLECTIVE_H

#include <trnmath/trn_collective.h>
#include <trnmath/trn_topology.h>

#include "choices.h"
#include "codes.h"

/* Chips whose links are shown; ranks that compute; ranks of an algorithm that is asked for: auto knows which of them
 * would take minutes to look at. */
enum { COLLECTIVE_DRAWN = 256, COLLECTIVE_RANKS = 1024, COLLECTIVE_ASKED = 4096 };

typedef struct collective_ask {
    trn_topology net;
    trn_collective_args args;
    const char *values; /* of the ranks, the last one repeated; "" = none */
} collective_ask;

static bool read_collective(const ask *q, collective_ask *c, trn_error *why)
{
    int system, op, algorithm;
    int64_t bytes, cores;
    trn_format wire;
    if (!ask_knows(q, "system op algorithm bytes cores wire values", why) ||
        !ask_choice(q, "system", "trn2.48xlarge", &systems, &system, why) ||
        !ask_choice(q, "op", "all_reduce", &collectives, &op, why) ||
        !ask_choice(q, "algorithm", "auto", &algorithms, &algorithm, why) ||
        !ask_whole(q, "bytes", 64 << 20, 1, INT64_C(1) << 40, &bytes, why) ||
        !ask_whole(q, "cores", 1, 1, 8, &cores, why) || !ask_format(q, "wire", "bfloat16", &wire, why))
        return false;
    c->net = trn_topology_of((trn_system)system);
    c->args.net = &c->net;
    c->args.op = (trn_collective)op;
    c->args.algorithm = (trn_algorithm)algorithm;
    c->args.bytes = bytes;
    c->args.ranks_per_chip = (int)cores;
    c->args.wire = wire;
    c->args.error = why;
    c->values = past_blanks(ask_text(q, "values", ""));
    const int ranks = trn_collective_ranks(&c->args);
    if (algorithm == TRN_ALGORITHM_AUTO || ranks <= COLLECTIVE_ASKED) return true;
    return refuse(why, "algorithm is '%s', which is looked at for up to %d ranks; here are %d, and auto chooses",
                  trn_algorithm_name(c->args.algorithm), (int)COLLECTIVE_ASKED, ranks);
}

/* ---- times ---- */

static void put_cost(answer *a, const trn_cost *cost)
{
    const struct {
        const char *name;
        double value;
    } number[] = {
        { "bound_s", cost->lower_bound_s },   { "ideal_s", cost->time_s },
        { "expected_s", cost->expected_s },   { "low_s", cost->expected_low_s },
        { "high_s", cost->expected_high_s },  { "latency_s", cost->latency_s },
        { "bytes_per_s", cost->bytes_per_s }, { "bus_bytes_per_s", cost->bus_bytes_per_s },
    };
    put_text(a, "algorithm", trn_algorithm_name(cost->algorithm));
    put_text(a, "bottleneck", cost->bottleneck);
    put_whole(a, "steps", cost->steps);
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) put_number(a, number[i].name, number[i].value);
}

/* Those that AUTO chooses among, each with its times. */
static void put_candidates(answer *a, const collective_ask *c)
{
    trn_algorithm list[TRN_ALGORITHM_COUNT];
    trn_collective_args args = c->args;
    trn_cost cost;
    args.algorithm = TRN_ALGORITHM_AUTO;
    args.error = NULL;
    const int count = trn_collective_candidates(&args, list);
    put_open(a, "candidates", '[');
    for (int i = 0; i < count; i++) {
        args.algorithm = list[i];
        if (trn_collective_cost(&args, &cost) != TRN_OK) continue;
        put_open(a, NULL, '{');
        put_cost(a, &cost);
        put_close(a, '}');
    }
    put_close(a, ']');
}

/* ---- the picture ---- */

static void keep_text(void *user, const char *text, size_t bytes) { put((answer *)user, text, bytes); }

static bool put_picture(answer *a, const collective_ask *c, trn_error *why)
{
    const bool drawn = c->net.chips <= COLLECTIVE_DRAWN;
    answer svg = { 0 };
    double *load = drawn ? (double *)calloc((size_t)trn_topology_link_count(&c->net) + 1, sizeof *load) : NULL;
    if (drawn && !load) return refuse(why, "there is not enough memory for the links");
    const trn_topology_svg_args args = {
        .net = &c->net, .write = keep_text, .user = &svg, .load = load, .load_unit = "bytes", .error = why
    };
    bool ok = !drawn || trn_collective_loads(&c->args, load) == TRN_OK;
    ok = ok && trn_topology_svg(&args) == TRN_OK;
    if (ok && svg.text && !svg.lost) put_text(a, "svg", svg.text);
    a->lost = a->lost || svg.lost;
    free(svg.text);
    free(load);
    return ok;
}

/* ---- values ---- */

typedef struct contributions {
    int ranks;
    float value[COLLECTIVE_RANKS];
    uint32_t code[COLLECTIVE_RANKS], out[COLLECTIVE_RANKS];
    trn_tensor src[COLLECTIVE_RANKS], dst[COLLECTIVE_RANKS];
} contributions;

static bool read_values(const collective_ask *c, contributions *v, trn_error *why)
{
    int found = 0;
    for (const char *at = c->values; *(at += strspn(at, " ,;\n"));) {
        const char *entry = at;
        float x = 0;
        if (!read_float(at, &x, &at) || (*at && !strchr(" ,;\n", *at)))
            return refuse(why, "values: '%.*s' is no number such as 0.5",
                          (int)(strcspn(entry, " ,;\n") > 40 ? 40 : strcspn(entry, " ,;\n")), entry);
        if (found == v->ranks) return refuse(why, "values has more numbers than there are ranks, %d", v->ranks);
        v->value[found++] = x;
    }
    for (int r = found; r < v->ranks; r++) v->value[r] = v->value[found - 1];
    return true;
}

/* One element in every rank, summed in the order of the algorithm; and the exact sum beside it. */
static bool put_sum(answer *a, const collective_ask *c, contributions *v)
{
    trn_collective_args args = c->args;
    double exact = 0;
    for (int r = 0; r < v->ranks; r++) {
        v->code[r] = trn_encode(c->args.wire, v->value[r], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
        v->src[r] = trn_tensor_1d(c->args.wire, &v->code[r], 1);
        v->dst[r] = trn_tensor_1d(c->args.wire, &v->out[r], 1);
        exact += value_of(c->args.wire, v->code[r]);
    }
    args.src = v->src;
    args.dst = v->dst;
    if (trn_collective_run(&args) != TRN_OK) return false;
    put_shown(a, "sum", value_of(c->args.wire, v->out[0]));
    put_shown(a, "exact_sum", exact);
    return true;
}

/* Why there is no sum; NULL where there is one. */
static const char *no_sum(const collective_ask *c)
{
    const int ranks = trn_collective_ranks(&c->args);
    if (c->args.op != TRN_ALL_REDUCE) return "values are added by all_reduce; here they are not looked at";
    if (ranks < 2) return "one rank alone adds nothing";
    return ranks > COLLECTIVE_RANKS ? "values are added for up to 1024 ranks; here are more" : NULL;
}
_Static_assert(COLLECTIVE_RANKS == 1024, "no_sum() says so");

static bool put_values(answer *a, const collective_ask *c, trn_error *why)
{
    const char *reason = *c->values ? no_sum(c) : "";
    if (reason) {
        if (*reason) put_text(a, "no_sum", reason);
        return true;
    }
    contributions *v = (contributions *)calloc(1, sizeof *v);
    if (!v) return refuse(why, "there is not enough memory for the ranks");
    v->ranks = trn_collective_ranks(&c->args);
    const bool ok = read_values(c, v, why) && put_sum(a, c, v);
    free(v);
    return ok;
}

static bool collective(const ask *q, answer *a, trn_error *why)
{
    collective_ask c = { 0 };
    trn_cost cost;
    if (!read_collective(q, &c, why) || trn_collective_cost(&c.args, &cost) != TRN_OK) return false;
    put_text(a, "system", trn_system_name(c.net.system));
    put_whole(a, "chips", c.net.chips);
    put_whole(a, "ranks", trn_collective_ranks(&c.args));
    put_flag(a, "drawn", c.net.chips <= COLLECTIVE_DRAWN);
    put_cost(a, &cost);
    put_candidates(a, &c);
    return put_values(a, &c, why) && put_picture(a, &c, why);
}

#endif /* WEB_COLLECTIVE_H */
