/* certify_cost.c - what a cure costs: the library's models of collectives and of products, before and after.
 * SPDX-License-Identifier: MIT
 *
 * All times are modelled (trn_collective_cost.h: expected_s, of a step in a compiled graph; trn_cost.h: time_s),
 * none is measured. A core is one rank, on as few chips as hold them. Messages follow each other.
 */
#include "certify.h"

#include <math.h>

#include <trnmath/trn_collective_cost.h>
#include <trnmath/trn_cost.h>

static int common(int a, int b) { return b ? common(b, a % b) : a; }

typedef struct asked {
    trn_system system;
    int ranks;
    trn_collective op;
    mr_reduce reduce; /* of an all-reduce */
    int64_t bytes;
} asked;

/* NaN: the system has no room for so many. */
static double seconds_of(const asked *q)
{
    const trn_topology net = trn_topology_of(q->system);
    const trn_chip_spec *chip = trn_system_spec_of(q->system)->server->chip;
    const int each = common(q->ranks, chip->cores / chip->cores_per_logical_core), count = q->ranks / each;
    int chips[64];
    trn_cost cost;
    for (int i = 0; i < count; i++) chips[i] = i;
    trn_collective_args a = { .net = &net, .op = q->op, .bytes = q->bytes, .chips = chips };
    a.count = count;
    a.ranks_per_chip = each;
    if (q->op == TRN_ALL_REDUCE) a.algorithm = q->reduce == MR_REDUCE_ORDERED ? TRN_MESH : TRN_RING;
    a.in_graph = true;
    a.single_step = q->op == TRN_ALL_REDUCE && q->reduce == MR_REDUCE_ORDERED;
    return count <= net.chips && app_worked(trn_collective_cost(&a, &cost), NULL) ? cost.expected_s : NAN;
}

static double message(const mr_config *c, const mr_setting *s, trn_system system, int64_t tokens)
{
    const asked q = { system, s->tp, TRN_ALL_REDUCE, s->reduce,
                      tokens * c->hidden * (int64_t)trn_format_bytes(s->wire) };
    return seconds_of(&q);
}

static void price_messages(const mr_config *c, const mr_setting *before, const mr_setting *after, trn_system system,
                           mr_time *t)
{
    const bool each = after->reduce == MR_REDUCE_TOKEN;
    t->before_s = message(c, before, system, MR_MESSAGE_ROWS);
    t->after_s = each ? MR_MESSAGE_ROWS * message(c, after, system, 1) : message(c, after, system, MR_MESSAGE_ROWS);
    snprintf(t->of, sizeof t->of, "an all-reduce of %d tokens over %d cores, by ring; then %s", MR_MESSAGE_ROWS,
             before->tp, each ? "as many of one token, one after the other" : "by mesh, in one step");
}

/* What is multiplied, and what comes out, is gathered; one of both all-reduces. */
static void price_gather(const mr_config *c, const mr_setting *before, const mr_setting *after, trn_system system,
                         mr_time *t)
{
    const int64_t each = MR_MESSAGE_ROWS * (int64_t)trn_format_bytes(after->act);
    const asked in = { system, after->tp, TRN_ALL_GATHER, MR_REDUCE_RING, each * c->heads * c->value_dim };
    const asked out = { system, after->tp, TRN_ALL_GATHER, MR_REDUCE_RING, each * c->hidden };
    if (after->tp < 2) {
        snprintf(t->of, sizeof t->of, "nothing travels on one core");
        return;
    }
    t->before_s = message(c, before, system, MR_MESSAGE_ROWS);
    t->after_s = seconds_of(&in) + seconds_of(&out);
    snprintf(t->of, sizeof t->of,
             "an all-reduce of %d tokens over %d cores, of attention's output; then an all-gather of what it is made "
             "from, and one of it",
             MR_MESSAGE_ROWS, before->tp);
}

static double product(const mr_setting *s, int64_t m, int64_t k, int64_t n)
{
    trn_matmul_cost_args a = { .generation = s->generation, .m = m, .n = n, .k = k };
    trn_core_cost cost;
    a.a_format = s->act;
    return app_worked(trn_matmul_cost(&a, &cost), NULL) ? cost.time_s : NAN;
}

/* One token of one head of keys, in a window that is full: scores, and values times softmax. */
static void price_keys(const mr_config *c, const mr_setting *before, const mr_setting *after, trn_system system,
                       mr_time *t)
{
    int64_t window = 0;
    const int64_t group = c->heads / c->kv_heads, n = c->head_dim, v = c->value_dim;
    (void)system;
    for (int64_t i = 0; i < c->layers; i++)
        if (c->window[i] && (!window || c->window[i] < window)) window = c->window[i];
    const int64_t most = window + mr_key_tile(after) - 1;
    t->before_s = product(before, group, n, window) + product(before, group, window, v);
    t->after_s = product(after, group, n, most) + product(after, group, most, v);
    snprintf(t->of, sizeof t->of, "a token's scores, and values times softmax, of %lld keys; then of %lld at most",
             (long long)window, (long long)most);
}

static void price_none(const mr_config *c, const mr_setting *before, const mr_setting *after, trn_system system,
                       mr_time *t)
{
    (void)c, (void)before, (void)after, (void)system;
    snprintf(t->of, sizeof t->of, "the same instructions");
}

void mr_price_of(const mr_config *c, const mr_setting *before, const mr_setting *after, mr_price price,
                 trn_system system, mr_time *t)
{
    static void (*const by[])(const mr_config *, const mr_setting *, const mr_setting *, trn_system, mr_time *) = {
        [MR_PRICE_NONE] = price_none,
        [MR_PRICE_MESSAGES] = price_messages,
        [MR_PRICE_GATHER] = price_gather,
        [MR_PRICE_KEYS] = price_keys,
    };
    *t = (mr_time){ .before_s = NAN, .after_s = NAN };
    by[price](c, before, after, system, t);
    if (price != MR_PRICE_NONE && after->tp > 1 && isnan(t->after_s))
        snprintf(t->of, sizeof t->of, "no time: %s has too few chips for %d cores", trn_system_name(system), after->tp);
}
