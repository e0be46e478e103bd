/* network/collective_group.h - what a collective is asked, and which part of the machine its ranks are.
 * A part of trn_collective_cost.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_collective_cost.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         const int rows[] = { 0, 1, 2, 3, 4, 5, 6, 7 }; // rows 0 and 1: not how TP32 is placed
 *         trn_error why;
 *         trn_collective_args args = { 0 };
 *         args.net = &net;
 *         args.chips = rows;
 *         args.count = 8;
 *         args.ranks_per_chip = 4;
 *         args.error = &why;
 *         return trn_replica_group_check(&args) == TRN_ELIMIT ? 0 : 1; // why.text: "... rows {0, 3} or {1, 2} ..."
 *     }
 *
 * DOES: the arguments of all collectives; which rank sits on which chip; whether the chips of a group are a box of the
 *     topology (per level a set of digits, in order), so that algorithms that know dimensions may run on them; the
 *     vendor's rules for replica groups, each with its reason.
 * DOES NOT: schedule, compute or cost anything.
 *
 * KNOWN FROM: the Neuron SDK (intranode-collective-comm.rst, runtime release notes, nec.h); neuronx-distributed,
 *     parallel_layers/parallel_state.py; optimum-neuron issue 619 (the runtime's own error text).
 */
#ifndef TRNI_NETWORK_COLLECTIVE_GROUP_H
#define TRNI_NETWORK_COLLECTIVE_GROUP_H

#include "../machine/calibration.h"
#include "../base/cpu.h"
#include "schedule.h"
#include "../data/tensor.h"
#include "topology_file.h"
#include "topology_svg.h"

/* ---- the question ---- */

typedef struct trn_collective_args {
    const trn_topology *net;
    trn_collective op;
    trn_algorithm algorithm;
    int64_t bytes;         /* per rank: the full buffer of all_reduce, reduce_scatter, all_to_all and the rest; the
                             gathered result of all_gather. In the wire's format; at most 2^60, as any view.
                             trn_collective_run ignores it */
    const int *chips;      /* [groups][count], in rank order; NULL = all chips of the topology */
    int count;             /* chips of one group; 0 = all */
    int groups;            /* that work at the same time; 0 = 1 */
    int ranks_per_chip;    /* 0 = 1; rank r is on chip r / ranks_per_chip of its group */
    trn_format wire;       /* what travels, and what every sum is rounded to; unset = the format of src */
    trn_format accumulate; /* every addition inside a sum is rounded to it; unset = F32 */
    trn_rounding rounding; /* to the wire, of sources and sums */
    trn_overflow overflow;
    uint64_t seed, stream; /* stochastic rounding */
    int sr_bits;
    bool uncalibrated;                  /* the link loads alone; nothing more is expected */
    const trn_calibration *calibration; /* NULL = trn_calibration_default() */
    bool single_step;   /* TRN_MESH, all_reduce: each rank sends everything to each other, and sums alone */
    bool enforce_rules; /* refuse groups that trn_replica_group_check refuses */
    int root;           /* broadcast; send_recv: who sends (to `target`, or to the last rank when both are equal) */
    int target;
    const int *targets;    /* permute: [ranks], to whom each rank sends, -1 = to nobody; NULL = to the next rank */
    const int64_t *counts; /* all_to_all: [ranks][ranks] elements that rank i sends to rank j; NULL = even */
    int64_t granule;       /* elements that stay together when a buffer is cut; 0 = 1 */
    trn_tensor *src, *dst; /* run only: [groups][ranks] views */
    trn_isa isa;
    trn_error *error;
    bool in_graph; /* of a compiled graph or a kernel: its steps are expected to take calibration.graph_s more */
} trn_collective_args;

/* Ranks of one group; the arguments must be valid. */
TRN_API int trn_collective_ranks(const trn_collective_args *args);

/* Elements [first, first + count) of n are rank's, of `ranks`: shares of equal size, rounded up to whole granules, of
 * which the last ones may be short or empty (the ceil split of DTensor). */
TRN_API void trn_collective_chunk(int64_t n, int64_t granule, int ranks, int rank, int64_t *first, int64_t *count);

/* ---- the vendor's rules ---- */

/* TRN_OK, or TRN_ELIMIT with the rule that the group breaks. Systems without published rules (Trainium3, custom
 * topologies, other numbers of ranks per chip) have none to break. */
TRN_API trn_status trn_replica_group_check(const trn_collective_args *args);

#if TRNI_BODIES

#include <stdlib.h>

#include "../base/threads.h"

/* ---- the question ---- */

TRNI_FN int trni_ranks_per_chip(const trn_collective_args *a) { return a->ranks_per_chip ? a->ranks_per_chip : 1; }
TRNI_FN int trni_group_count(const trn_collective_args *a) { return a->groups ? a->groups : 1; }
TRNI_FN int trni_group_chips(const trn_collective_args *a) { return a->count ? a->count : a->net->chips; }

TRN_API int trn_collective_ranks(const trn_collective_args *args)
{
    return trni_group_chips(args) * trni_ranks_per_chip(args);
}

TRNI_FN int trni_chip_of_rank(const trn_collective_args *a, int group, int rank)
{
    const int at = rank / trni_ranks_per_chip(a);
    return a->chips ? a->chips[(int64_t)group * trni_group_chips(a) + at] : at;
}

TRN_API void trn_collective_chunk(int64_t n, int64_t granule, int ranks, int rank, int64_t *first, int64_t *count)
{
    if (granule < 1) granule = 1;
    if (granule > n && n > 0) granule = n; /* all in one share, and no product below can overflow */
    const int64_t each = trni_ceil_div(trni_ceil_div(n, granule), ranks) * granule;
    *first = each && rank > n / each ? n : trni_min64(each * rank, n);
    *count = trni_min64(each, n - *first);
}

/* To whom a rank sends in permute and send_recv; -1 = to nobody. */
TRNI_FN int trni_target_of(const trn_collective_args *a, int rank)
{
    const int ranks = trn_collective_ranks(a);
    if (a->op == TRN_SEND_RECV) return rank != a->root ? -1 : a->target != a->root ? a->target : ranks - 1;
    return a->targets ? a->targets[rank] : (rank + 1) % ranks;
}

/* From whom a rank receives in broadcast, permute and send_recv; -1 = from nobody. */
TRNI_FN int trni_source_of(const trn_collective_args *a, int rank)
{
    if (a->op == TRN_BROADCAST) return a->root;
    for (int r = 0; r < trn_collective_ranks(a); r++)
        if (trni_target_of(a, r) == rank) return r;
    return -1;
}

/* ---- checks ---- */

enum { TRNI_MAX_RANKS = 1 << 24 };

TRNI_DRIVER trn_status trni_group_check_numbers(const trn_collective_args *a)
{
    if ((unsigned)a->op >= TRN_COLLECTIVE_COUNT)
        return trni_fail(a->error, TRN_EINVAL, "op = %d is not a collective", (int)a->op);
    if ((unsigned)a->algorithm >= TRN_ALGORITHM_COUNT)
        return trni_fail(a->error, TRN_EINVAL, "algorithm = %d is not one", (int)a->algorithm);
    if (a->single_step && (a->op != TRN_ALL_REDUCE || (a->algorithm != TRN_MESH && a->algorithm != TRN_ALGORITHM_AUTO)))
        return trni_fail(a->error, TRN_EINVAL, "single_step is a way of all_reduce by mesh, not of %s by %s",
                         trn_collective_name(a->op), trn_algorithm_name(a->algorithm));
    if (a->bytes < 0) return trni_fail(a->error, TRN_EINVAL, "bytes = %lld is negative", (long long)a->bytes);
    if (a->bytes > TRNI_MOST_BYTES)
        return trni_fail(a->error, TRN_EINVAL, "bytes = %lld is more than 2^%d, which no buffer has",
                         (long long)a->bytes, TRNI_ADDRESS_BITS);
    if (a->ranks_per_chip < 0 || a->ranks_per_chip > 64)
        return trni_fail(a->error, TRN_EINVAL, "ranks_per_chip = %d, expected 1 to 64", a->ranks_per_chip);
    if (a->groups < 0 || a->count < 0)
        return trni_fail(a->error, TRN_EINVAL, "count = %d and groups = %d must not be negative", a->count, a->groups);
    if (a->chips && !a->count) return trni_fail(a->error, TRN_EINVAL, "chips are given, but count = 0 of them");
    if (!a->chips && (trni_group_count(a) > 1 || trni_group_chips(a) != a->net->chips))
        return trni_fail(a->error, TRN_EINVAL,
                         "count = %d and groups = %d, but chips is null (all %d chips, one group)", a->count, a->groups,
                         a->net->chips);
    if ((int64_t)trni_group_chips(a) * trni_ranks_per_chip(a) > TRNI_MAX_RANKS)
        return trni_fail(a->error, TRN_ELIMIT, "%d chips of %d ranks are more than %d ranks", trni_group_chips(a),
                         trni_ranks_per_chip(a), (int)TRNI_MAX_RANKS);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_group_check_roles(const trn_collective_args *a)
{
    const int ranks = trn_collective_ranks(a);
    if (a->root < 0 || a->root >= ranks || a->target < 0 || a->target >= ranks)
        return trni_fail(a->error, TRN_EINVAL, "root = %d and target = %d, but the group has ranks 0 to %d", a->root,
                         a->target, ranks - 1);
    for (int r = 0; a->op == TRN_PERMUTE && a->targets && r < ranks; r++)
        if (a->targets[r] < -1 || a->targets[r] >= ranks)
            return trni_fail(a->error, TRN_EINVAL, "targets[%d] = %d, but the group has ranks 0 to %d", r,
                             a->targets[r], ranks - 1);
    for (int64_t i = 0; a->op == TRN_ALL_TO_ALL && a->counts && i < (int64_t)ranks * ranks; i++)
        if (a->counts[i] < 0 || a->counts[i] > INT64_MAX / ranks) /* sums of them must not overflow */
            return trni_fail(a->error, TRN_EINVAL, "counts[%lld][%lld] = %lld is %s", (long long)(i / ranks),
                             (long long)(i % ranks), (long long)a->counts[i],
                             a->counts[i] < 0 ? "negative" : "more than any view holds");
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_group_check_calibration(const trn_collective_args *a)
{
    char range[48];
#define TRNI_X(name, newer, older, unit, known, where)                                                                 \
    if (a->calibration && !trni_calibration_can_be(unit, a->calibration->name))                                        \
        return trni_fail(a->error, TRN_EINVAL, "calibration: " #name " = %g, expected %s", a->calibration->name,       \
                         trni_legal_text(trni_calibration_unit(unit), 0, range));
    TRNI_CALIBRATION_LIST(TRNI_X)
#undef TRNI_X
    return TRN_OK;
}

/* Every chip exists, and works for one group only. */
TRNI_DRIVER trn_status trni_group_check_chips(const trn_collective_args *a)
{
    const int64_t all = (int64_t)trni_group_count(a) * trni_group_chips(a);
    if (!a->chips) return TRN_OK;
    if (all > a->net->chips)
        return trni_fail(a->error, TRN_EINVAL, "%lld chips in %d groups, but %s has %d", (long long)all,
                         trni_group_count(a), a->net->name, a->net->chips);
    for (int64_t i = 0; i < all; i++)
        if (a->chips[i] < 0 || a->chips[i] >= a->net->chips)
            return trni_fail(a->error, TRN_EINVAL, "chips[%lld] = %d, but %s has chips 0 to %d", (long long)i,
                             a->chips[i], a->net->name, a->net->chips - 1);
    uint8_t *seen = (uint8_t *)calloc((size_t)a->net->chips, 1);
    if (!seen) return trni_fail(a->error, TRN_ENOSPC, "could not allocate %d bytes", a->net->chips);
    int64_t twice = -1;
    for (int64_t i = 0; i < all && twice < 0; i++)
        if (seen[a->chips[i]]++) twice = i;
    free(seen);
    if (twice >= 0)
        return trni_fail(a->error, TRN_EINVAL, "chip %d is in the groups twice (chips[%lld])", a->chips[twice],
                         (long long)twice);
    return TRN_OK;
}

TRNI_DRIVER trn_status trni_collective_check(const trn_collective_args *a)
{
    if (!a->net) return trni_fail(a->error, TRN_EINVAL, "net is null: a collective needs a topology");
    trn_status status = trn_topology_check(a->net, a->error);
    if (status == TRN_OK) status = trni_group_check_numbers(a);
    if (status == TRN_OK) status = trni_group_check_calibration(a);
    if (status == TRN_OK) status = trni_group_check_chips(a);
    return status == TRN_OK ? trni_group_check_roles(a) : status;
}

/* ---- boxes ---- */

/* The chips of a group as a box: at each level a set of digits, every combination once, innermost fastest. */
typedef struct trni_box {
    int dims; /* levels with more than one digit; 0 = not a box (or one chip) */
    int level[TRN_MAX_LEVELS];
    int size[TRN_MAX_LEVELS];
    bool whole[TRN_MAX_LEVELS]; /* all digits of that level */
} trni_box;

/* Sizes of the box that the first chips of a group span, if it is one; the rest is checked against them. */
TRNI_FN bool trni_box_of_group(const trn_collective_args *a, int group, trni_box *box)
{
    const trn_topology *net = a->net;
    const int count = trni_group_chips(a);
    const int *chip = a->chips + (int64_t)group * count;
    int64_t step = 1; /* ranks from one digit of this level to the next */
    box->dims = 0;
    for (int l = 0; l < net->levels; l++) {
        int n = 1; /* digits that follow each other in rank order before another level's changes */
        while (step * n < count && n < net->level[l].size) {
            const int here = chip[step * n], first = chip[0];
            const int digit = trn_topology_digit(net, here, l), stride = trn_topology_stride(net, l);
            if (digit <= trn_topology_digit(net, chip[step * (n - 1)], l)) break;
            if (here - digit * stride != first - trn_topology_digit(net, first, l) * stride) break;
            n++;
        }
        if (n == 1) continue;
        box->level[box->dims] = l;
        box->size[box->dims] = n;
        box->whole[box->dims++] = n == net->level[l].size;
        step *= n;
    }
    if (step != count) return false;
    for (int64_t i = 0; i < count; i++) { /* each chip is where its number in the group says */
        int64_t rest = i, stride_in_group = 1;
        for (int d = 0; d < box->dims; d++) {
            const int l = box->level[d], digit = (int)(rest % box->size[d]);
            if (trn_topology_digit(net, chip[i], l) != trn_topology_digit(net, chip[digit * stride_in_group], l))
                return false;
            rest /= box->size[d];
            stride_in_group *= box->size[d];
        }
        int64_t other = chip[i] - chip[0]; /* digits of the levels that are not in the box agree */
        for (int d = 0; d < box->dims; d++) {
            const int l = box->level[d];
            other -= (int64_t)(trn_topology_digit(net, chip[i], l) - trn_topology_digit(net, chip[0], l)) *
                     trn_topology_stride(net, l);
        }
        if (other) return false;
    }
    return true;
}

/* The box of all groups, when each is one of the same levels and sizes. */
TRNI_FN bool trni_box_of(const trn_collective_args *a, trni_box *box)
{
    memset(box, 0, sizeof *box);
    if (!a->chips) {
        for (int l = 0; l < a->net->levels; l++) {
            if (a->net->level[l].size < 2) continue;
            box->level[box->dims] = l;
            box->size[box->dims] = a->net->level[l].size;
            box->whole[box->dims++] = true;
        }
        return true;
    }
    if (!trni_box_of_group(a, 0, box)) return false;
    for (int g = 1; g < trni_group_count(a); g++) {
        trni_box other;
        if (!trni_box_of_group(a, g, &other) || other.dims != box->dims) return false;
        for (int d = 0; d < box->dims; d++)
            if (other.level[d] != box->level[d] || other.size[d] != box->size[d]) return false;
    }
    return true;
}

/* ---- the vendor's rules ---- */

/* Ranks that a group may have. */
typedef struct trni_group_rule {
    trn_generation generation;
    int ranks_per_chip;
    const char *sizes; /* as the sentence lists them */
    int size[8];
    int multiple_of; /* larger groups: multiples of this */
} trni_group_rule;

TRNI_FN const trni_group_rule *trni_group_rule_of(const trn_collective_args *a)
{
    static const trni_group_rule rule[] = {
        { TRN_TRAINIUM1, 2, "1, 2, 8, 16 or a multiple of 32", { 1, 2, 8, 16 }, 32 }, /* the runtime's own words */
        { TRN_TRAINIUM2, 4, "1, 2, 4, 8, 16, 32, 64 or a multiple of 64", { 1, 2, 4, 8, 16, 32 }, 64 },
        { TRN_TRAINIUM2, 8, "4, 8, 16, 32, 64, 128 or a multiple of 128", { 4, 8, 16, 32, 64 }, 128 },
    };
    if (a->net->system >= TRN_SYSTEM_COUNT) return NULL;
    const trn_generation generation = trn_system_spec_of(a->net->system)->server->chip->core->generation;
    for (unsigned i = 0; i < sizeof rule / sizeof rule[0]; i++)
        if (rule[i].generation == generation && rule[i].ranks_per_chip == trni_ranks_per_chip(a)) return &rule[i];
    return NULL;
}

TRNI_FN bool trni_group_rule_allows(const trni_group_rule *rule, int ranks)
{
    for (int i = 0; i < 8 && rule->size[i]; i++)
        if (rule->size[i] == ranks) return true;
    return ranks % rule->multiple_of == 0;
}

/* Rows of one server that a group fills completely, as a set of bits; 0 when it fills none or has anything else. */
TRNI_FN unsigned trni_group_rows(const trn_collective_args *a, int group)
{
    int chips_of[4] = { 0, 0, 0, 0 };
    const int count = trni_group_chips(a);
    unsigned rows = 0;
    for (int i = 0; i < count; i++) {
        const int chip = a->chips ? a->chips[(int64_t)group * count + i] : i;
        if (chip / 16 != (a->chips ? a->chips[(int64_t)group * count] / 16 : 0)) return 0;
        chips_of[chip % 16 / 4]++;
    }
    for (int r = 0; r < 4; r++)
        if (chips_of[r] == 4)
            rows |= 1u << r;
        else if (chips_of[r])
            return 0;
    return rows;
}

/* Trainium2: four chips are a row (or a column, which sharding in three ways uses), eight are rows 0 and 3 or 1 and 2.
 *  */
TRNI_DRIVER trn_status trni_group_check_trn2(const trn_collective_args *a, int group, const trni_box *box)
{
    const int count = trni_group_chips(a);
    const unsigned rows = trni_group_rows(a, group);
    const int ranks = count * trni_ranks_per_chip(a);
    if (count == 4 && !(box->dims == 1 && box->whole[0] && box->level[0] <= 2))
        return trni_fail(a->error, TRN_ELIMIT,
                         "%d ranks on 4 chips must be one row of the torus (such as chips 0 1 2 3), one "
                         "column (0 4 8 12), or one chip of each server",
                         ranks);
    if (count == 8 && rows != 0x9 && rows != 0x6)
        return trni_fail(a->error, TRN_ELIMIT,
                         "%d ranks on 8 chips must be rows {0, 3} or {1, 2} of the torus (chips 0-3 and "
                         "12-15, or 4-11), so that those who hold the same shard are neighbours",
                         ranks);
    if (count == 16 && rows != 0xf && !(box->dims == 2 && box->whole[0] && box->whole[1]))
        return trni_fail(a->error, TRN_ELIMIT,
                         "%d ranks on 16 chips must be one instance (chips 16 i to 16 i + 15), or a row "
                         "or column through four of them",
                         ranks);
    return TRN_OK;
}

/* Trainium1: consecutive ranks from a multiple of their number; four chips may also be one column. */
TRNI_DRIVER trn_status trni_group_check_trn1(const trn_collective_args *a, int group, const trni_box *box)
{
    const int count = trni_group_chips(a);
    if (!a->chips || count == 1) return TRN_OK;
    const int *chip = a->chips + (int64_t)group * count;
    if (count == 4 && box->dims == 1 && box->level[0] == 1) return TRN_OK;
    for (int i = 0; i < count; i++)
        if (chip[i] != chip[0] + i || chip[0] % count)
            return trni_fail(a->error, TRN_ELIMIT,
                             "%d ranks must be consecutive and begin at a multiple of %d chips; chip %d of "
                             "the group is %d, and it begins at %d",
                             count * trni_ranks_per_chip(a), count, i, chip[i], chip[0]);
    return TRN_OK;
}

TRN_API trn_status trn_replica_group_check(const trn_collective_args *args)
{
    TRNI_FLOATS;
    const trn_status status = trni_collective_check(args);
    if (status != TRN_OK) return status;
    const trni_group_rule *rule = trni_group_rule_of(args);
    const int ranks = trn_collective_ranks(args);
    if (!rule) return TRN_OK;
    if (!trni_group_rule_allows(rule, ranks))
        return trni_fail(args->error, TRN_ELIMIT, "a replica group of %d ranks; %s with %d ranks per chip takes %s",
                         ranks, trn_generation_name(rule->generation), rule->ranks_per_chip, rule->sizes);
    for (int g = 0; g < trni_group_count(args); g++) {
        trni_box box;
        memset(&box, 0, sizeof box);
        if (!args->chips)
            trni_box_of(args, &box);
        else if (!trni_box_of_group(args, g, &box))
            box.dims = 0;
        const trn_status here = rule->generation == TRN_TRAINIUM1 ? trni_group_check_trn1(args, g, &box)
                                                                  : trni_group_check_trn2(args, g, &box);
        if (here != TRN_OK) return here;
    }
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NETWORK_COLLECTIVE_GROUP_H */
