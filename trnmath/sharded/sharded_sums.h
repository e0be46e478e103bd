/* sharded/sharded_sums.h - how the members of a group are added, as a list of steps over a few buffers.
 * Behind trn_reshard.h. SPDX-License-Identifier: MIT
 *
 * DOES: turns the sums that make a chunk (network/collective_values.h) into an order in which each member's numbers are
 *     wanted once and few sums wait: a ring needs one buffer, a tree as many as it is deep. Says where all chunks are
 *     summed alike. The steps themselves, on runs of binary32 numbers.
 * DOES NOT: draw random words, or know what the members' numbers are.
 *
 * KNOWN FROM: network/collective_values.h, whose sums these are.
 */
#ifndef TRNI_SHARDED_SHARDED_SUMS_H
#define TRNI_SHARDED_SHARDED_SUMS_H

#include "../network/collective.h"
#include "../array/matmul.h"

typedef enum trni_sum_what {
    TRNI_SUM_TAKE = 0, /* buffer = what member `from` has, rounded */
    TRNI_SUM_TAKE_ADD, /* buffer += what member `from` has, rounded */
    TRNI_SUM_ADD,      /* buffer += buffer `from` */
    TRNI_SUM_ROUND
} trni_sum_what;

typedef struct trni_sum_op {
    trni_sum_what what;
    int buffer, from;
} trni_sum_op;

/* A summand: a rank's own numbers, or what sum `maker` left with it. */
typedef struct trni_summand {
    int rank, maker; /* -1 = its own */
} trni_summand;

typedef struct trni_sum_list {
    trni_sum_op *op;
    int ops, buffers;
    void *memory;
    trni_cc_sum *sum; /* [2 ranks] as trni_fold_program gives them */
    trni_summand *summand;
    int *first; /* [2 ranks + 1] of each sum's summands */
    int *maker; /* [ranks] the sum that wrote a rank's buffer last */
    int *chain; /* [2 ranks] sums that wait for their first summand */
    int waiting;
} trni_sum_list;

enum { TRNI_SUM_CAPACITY = 8, TRNI_SUM_SPARE = 16 };

TRNI_FN trn_status trni_sum_list_init(trni_sum_list *l, int ranks)
{
    const size_t r = (size_t)ranks, most = TRNI_SUM_CAPACITY * r + TRNI_SUM_SPARE;
    memset(l, 0, sizeof *l);
    l->memory = malloc(2 * r * sizeof(trni_cc_sum) + most * (sizeof(trni_sum_op) + sizeof(trni_summand)) +
                       (5 * r + 2) * sizeof(int));
    if (!l->memory) return TRN_ENOSPC;
    l->sum = (trni_cc_sum *)l->memory;
    l->op = (trni_sum_op *)(void *)(l->sum + 2 * r);
    l->summand = (trni_summand *)(void *)(l->op + most);
    l->first = (int *)(void *)(l->summand + most);
    l->maker = l->first + 2 * r + 2;
    l->chain = l->maker + r;
    return TRN_OK;
}

TRNI_FN void trni_sum_list_free(trni_sum_list *l)
{
    free(l->memory);
    l->memory = NULL;
}

TRNI_FN void trni_sum_put(trni_sum_list *l, trni_sum_what what, int buffer, int from)
{
    const trni_sum_op op = { what, buffer, from };
    l->op[l->ops++] = op;
    if (buffer >= l->buffers) l->buffers = buffer + 1;
}

TRNI_FN void trni_sum_emit(trni_sum_list *l, int sum, int buffer);

/* Summands [low, end) of a sum into a buffer: up to 16 at once, else 16 sums of equal spans, and so on. `made`: the
 * first is there already. */
TRNI_FN void trni_sum_emit_some(trni_sum_list *l, int low, int end, int buffer, bool made)
{
    int span = 1, sources = 0;
    while (span * TRNI_SUM_SOURCES < end - low) span *= TRNI_SUM_SOURCES;
    for (int i = low; i < end; i += span, sources++) {
        const trni_summand *s = &l->summand[i];
        const int to = sources ? buffer + 1 : buffer, last = i + span < end ? i + span : end;
        if (made && !sources) continue;
        if (span == 1 && s->maker < 0) {
            trni_sum_put(l, sources ? TRNI_SUM_TAKE_ADD : TRNI_SUM_TAKE, buffer, s->rank);
            continue;
        }
        if (span == 1)
            trni_sum_emit(l, s->maker, to);
        else
            trni_sum_emit_some(l, i, last, to, false);
        if (sources) trni_sum_put(l, TRNI_SUM_ADD, buffer, to);
    }
    if (sources > 1) trni_sum_put(l, TRNI_SUM_ROUND, buffer, 0);
}

/* A ring is a chain of first summands as long as it has members: those are followed without calling. */
TRNI_FN void trni_sum_emit(trni_sum_list *l, int sum, int buffer)
{
    const int base = l->waiting;
    bool made = false;
    for (;; sum = l->summand[l->first[sum]].maker) {
        const int low = l->first[sum];
        l->chain[l->waiting++] = sum;
        if (l->summand[low].maker < 0 || l->first[sum + 1] - low > TRNI_SUM_SOURCES) break;
    }
    for (; l->waiting > base; made = true) {
        const int next = l->chain[--l->waiting];
        trni_sum_emit_some(l, l->first[next], l->first[next + 1], buffer, made);
    }
}

/* The list for the half `part` (1, 2) of a channel of the chunk of rank `owner`; its result is in buffer 0. */
TRNI_FN void trni_sum_compile(trni_sum_list *l, const trni_schedule *s, int channel, int owner, int part)
{
    const trni_cc_channel *c = &s->channel[channel];
    const int sums = trni_fold_program(s, channel, owner, l->sum);
    int count = 0;
    l->ops = l->buffers = l->waiting = 0;
    for (int r = 0; r < s->ranks; r++) l->maker[r] = -1;
    for (int i = 0; i < sums; i++) {
        const trni_cc_sum *sum = &l->sum[i];
        const int sources = sum->sources == TRNI_ALL_MEMBERS ? sum->size : sum->sources;
        l->first[i] = l->first[i + 1] = count;
        if (sum->part && sum->part != part) continue;
        for (int k = 0; k < sources; k++) {
            const bool all = sum->sources == TRNI_ALL_MEMBERS;
            const int rank = all ? trni_rank_at(s, c, sum->base + k * sum->stride) : sum->from[k];
            const trni_summand summand = { rank, l->maker[rank] };
            l->summand[count++] = summand;
        }
        l->first[i + 1] = count;
        l->maker[sum->to] = i;
    }
    if (l->maker[owner] < 0)
        trni_sum_put(l, TRNI_SUM_TAKE, 0, owner);
    else
        trni_sum_emit(l, l->maker[owner], 0);
}

/* ---- which elements are summed alike ---- */

/* Does the sum of an element not depend on whose chunk it is in? So where each stage adds all members at once; two
 * numbers give the same sum in any pattern. */
TRNI_FN bool trni_sums_agree(const trni_schedule *s)
{
    for (int k = 0; k < s->channels && !s->single_step; k++)
        for (int i = 0; i < s->channel[k].stages; i++)
            if (s->channel[k].stage[i].how != TRNI_DIRECT && s->channel[k].stage[i].size != 2) return false;
    return true;
}

/* Elements with the same key are summed alike. */
TRNI_FN int64_t trni_sum_key(const trni_schedule *s, bool agree, int owner, int channel, int part)
{
    return agree ? channel : ((int64_t)owner * s->channels + channel) * 2 + part - 1;
}

/* Of elements [first, first + n) of a buffer of `elements`: how many belong together, and to what. */
TRNI_FN int64_t trni_sum_locate(const trni_schedule *s, int64_t elements, int64_t granule, int64_t first, int64_t n,
                                int *owner, int *channel, int *part)
{
    int64_t chunk, count, low = 0, high = 0;
    trn_collective_chunk(elements, granule, s->ranks, 0, &chunk, &count);
    *owner = (int)(first / count);
    trn_collective_chunk(elements, granule, s->ranks, *owner, &chunk, &count);
    for (*channel = 0; *channel < s->channels; ++*channel) {
        trni_channel_range(s, *channel, count, &low, &high);
        if (first - chunk < high) break;
    }
    const int64_t middle = trni_channel_middle(&s->channel[*channel], low, high);
    *part = first - chunk < middle ? 1 : 2;
    return trni_min64(n, chunk + (*part == 1 ? middle : high) - first);
}

/* ---- the steps ---- */

/* sum += x, x rounded to BF16 first. */
TRNI_INLINE void trni_add_bf16_body(float *sum, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = trni_bits(x[i]), even = u + 0x7fffu + (u >> 16 & 1u);
        const float r = sum[i] + trni_float((trni_is_nan_bits(u) ? TRNI_F32_NAN : even) & 0xffff0000u);
        sum[i] = trni_float(trni_is_nan_bits(trni_bits(r)) ? TRNI_F32_NAN : trni_bits(r));
    }
}
TRNI_DISPATCH(trni_add_bf16, (float *sum, const float *x, size_t n), (sum, x, n))

typedef struct trni_sum_arith {
    trni_arith arith;
    bool bf16; /* nearest even: the fast way */
} trni_sum_arith;

TRNI_FN void trni_sum_arith_init(trni_sum_arith *f, const trn_collective_args *a, trn_format wire, trn_isa isa)
{
    trni_arith_init(&f->arith, a, wire, isa);
    f->bf16 = wire == TRN_BF16 && a->rounding == TRN_NEAREST_EVEN && a->overflow == TRN_OVERFLOW_DEFAULT;
}

TRNI_FN void trni_sum_round(const trni_sum_arith *f, float *x, int64_t n)
{
    if (f->bf16) {
        trni_round_bf16_for(f->arith.isa)(x, 0, 1, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n && !f->arith.wire.exact; i += TRNI_FOLD_TILE)
        trni_round_in_place(&f->arith, &f->arith.wire, x + i, trni_min64(n - i, TRNI_FOLD_TILE), 0, 0);
}

/* sum += x; x is rounded first, where it is. */
TRNI_FN void trni_sum_add(const trni_sum_arith *f, float *sum, float *x, int64_t n)
{
    if (f->bf16) {
        trni_add_bf16_for(f->arith.isa)(sum, x, (size_t)n);
        return;
    }
    trni_sum_round(f, x, n);
    trni_alu_run(f->arith.add, sum, sum, x, (size_t)n);
}

#endif /* TRNI_SHARDED_SHARDED_SUMS_H */
