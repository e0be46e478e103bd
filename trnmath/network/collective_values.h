/* network/collective_values.h - the values of a reduction: each element's sums in the schedule's order, bit for bit.
 * Behind trn_collective.h. SPDX-License-Identifier: MIT
 *
 * DOES: compiles the part of a schedule that makes one chunk into a list of sums, and runs it on tiles of elements:
 *     inside a sum binary32, one addition after another, ascending as trn_schedule.h lists the sources; then one
 *     rounding to the wire. A sum of more than 16 sources is made 16 at a time, the partial sums rounded to the wire
 *     and summed in turn (the DMA engines take 16; the tree's shape is assumed).
 * DOES NOT: move data between ranks: copies do not change bits, so an element's value at its owner is its value
 *     everywhere.
 *
 * KNOWN FROM: NKI dma_compute: sources of any format are added in FP32 and cast once. That the wire's format is the
 *     tensor's, and each step rounds to it: neuronx-distributed casts to FP32 before a reduction where it wants more.
 *     Whether a DMA's cast obeys the stochastic rounding switch is not documented: .rounding, nearest even by default.
 */
#ifndef TRNI_NETWORK_COLLECTIVE_VALUES_H
#define TRNI_NETWORK_COLLECTIVE_VALUES_H

#include "../engine/alu_kernels.h"
#include "../data/cast.h"
#include "collective_layout.h"
#include "../number/random.h"

/* ---- arithmetic ---- */

/* Binary32 numbers rounded to a format, and back. */
typedef struct trni_cc_format {
    bool exact; /* the format is binary32 */
    trni_encoder encoder;
    trni_decoder decoder;
} trni_cc_format;

typedef struct trni_arith {
    trni_cc_format wire, accumulate;
    trni_cc_format exact; /* the wire, for what needs no rounding: values into codes without random words */
    bool stochastic;
    int sr_bits;
    uint64_t seed, stream;
    trn_isa isa;
    trni_alu_kernel add;
} trni_arith;

TRNI_FN void trni_cc_format_init(trni_cc_format *r, trn_format format, trn_rounding rounding, trn_overflow overflow,
                                 int bits, trn_isa isa)
{
    trni_encoding how;
    memset(&how, 0, sizeof how);
    how.how.rounding = rounding;
    how.how.bits = bits ? bits : 32;
    how.overflow = overflow;
    r->exact = format == TRN_F32;
    trni_encoder_init(&r->encoder, trn_format_info_of(format), how, isa);
    trni_decoder_init(&r->decoder, trn_format_info_of(format), isa);
}

/* The arguments' formats must be valid; isa must be one of the host. */
TRNI_FN void trni_arith_init(trni_arith *m, const trn_collective_args *a, trn_format wire, trn_isa isa)
{
    m->stochastic = a->rounding == TRN_STOCHASTIC && wire != TRN_F32;
    m->sr_bits = a->sr_bits ? a->sr_bits : 32;
    m->seed = a->seed;
    m->stream = a->stream;
    m->isa = isa;
    m->add = trni_alu_kernel_of(TRN_ALU_ADD, isa);
    trni_cc_format_init(&m->wire, wire, a->rounding, a->overflow, m->sr_bits, isa);
    trni_cc_format_init(&m->exact, wire, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0, isa);
    trni_cc_format_init(&m->accumulate, a->accumulate ? a->accumulate : TRN_F32, TRN_NEAREST_EVEN, a->overflow, 0, isa);
}

enum { TRNI_FOLD_TILE = 1024 };

/* n <= TRNI_FOLD_TILE numbers in place; with stochastic rounding, element i draws word index + i of the stream. */
TRNI_FN void trni_round_in_place(const trni_arith *m, const trni_cc_format *to, float *x, int64_t n, uint64_t stream,
                                 uint64_t index)
{
    uint32_t code[TRNI_FOLD_TILE], field[TRNI_FOLD_TILE];
    const bool draw = m->stochastic && to == &m->wire;
    if (to->exact) return;
    if (draw) trn_random_fields(field, (size_t)n, m->sr_bits, m->seed, stream, index, m->isa);
    trni_encoder_run(&to->encoder, code, x, draw ? field : NULL, (size_t)n);
    trni_decoder_run(&to->decoder, x, code, (size_t)n);
}

/* ---- the sums that make a chunk ---- */

/* One sum of the schedule, as ranks. sources = TRNI_ALL_MEMBERS: those at positions base + i stride. */
typedef struct trni_cc_sum {
    int to, from[3], sources;
    int base, stride, size;
    int part; /* as in trni_hop */
    int step; /* of the phase */
} trni_cc_sum;

TRNI_FN trni_cc_sum trni_cc_sum_from(const trni_schedule *s, const trni_cc_channel *c, const trni_cc_stage *st,
                                     int base, int step, const trni_hop *move)
{
    trni_cc_sum sum;
    memset(&sum, 0, sizeof sum);
    sum.to = trni_rank_at(s, c, base + move->to * st->stride);
    for (int i = 0; i < move->sources; i++) sum.from[i] = trni_rank_at(s, c, base + move->from[i] * st->stride);
    sum.sources = move->sources;
    sum.base = base;
    sum.stride = st->stride;
    sum.size = st->size;
    sum.part = move->part;
    sum.step = step;
    return sum;
}

/* Sums of one stage for the chunk whose owner stands at position `owner`: in every group whose members agree with the
 * owner in the digits of the stages before. */
TRNI_FN int trni_fold_stage(const trni_schedule *s, const trni_cc_channel *c, int stage, int owner, int first_step,
                            trni_cc_sum *sum)
{
    const trni_cc_stage *st = &c->stage[stage];
    const int v = trni_stage_digit(st, owner), steps = trni_pattern_steps(st->how, st->size);
    int64_t groups = 1;
    int sums = 0;
    for (int i = stage + 1; i < c->stages; i++) groups *= c->stage[i].size;
    for (int64_t g = 0; g < groups; g++) {
        int base = owner - v * st->stride;
        int64_t rest = g;
        for (int i = stage + 1; i < c->stages; i++) {
            const trni_cc_stage *later = &c->stage[i];
            base += ((int)(rest % later->size) - trni_stage_digit(later, owner)) * later->stride;
            rest /= later->size;
        }
        for (int step = 0; step < steps; step++) {
            trni_hop move[TRNI_HOPS];
            const int moves = trni_reduce_moves(st->how, st->size, step, v, move);
            for (int i = 0; i < moves; i++) sum[sums++] = trni_cc_sum_from(s, c, st, base, first_step + step, &move[i]);
        }
    }
    return sums;
}

/* What makes chunk `owner` of one channel, in the order in which it may be done. Returns how many sums; sum has room
 * for 2 * ranks (two halves of everything). */
TRNI_FN int trni_fold_program(const trni_schedule *s, int channel, int owner, trni_cc_sum *sum)
{
    const trni_cc_channel *c = &s->channel[channel];
    if (s->single_step) {
        memset(sum, 0, sizeof *sum);
        sum->to = owner;
        sum->stride = 1;
        sum->size = s->ranks;
        return 1;
    }
    const int position = trni_position_of(s, c, owner);
    int sums = 0, step = 0;
    for (int i = 0; i < c->stages; i++) {
        sums += trni_fold_stage(s, c, i, position, step, sum + sums);
        step += trni_pattern_steps(c->stage[i].how, c->stage[i].size);
    }
    return sums;
}

/* Do the two halves of a channel's elements go different ways? */
TRNI_FN bool trni_channel_halves(const trni_cc_channel *c)
{
    for (int i = 0; i < c->stages; i++)
        if (c->stage[i].how == TRNI_BOTH_WAYS && c->stage[i].size % 2 == 0) return true;
    return false;
}

/* Which of a chunk's n elements are a channel's: shares one after the other, rounded to whole elements. */
TRNI_FN void trni_channel_range(const trni_schedule *s, int channel, int64_t n, int64_t *first, int64_t *end)
{
    double before = 0;
    for (int k = 0; k < channel; k++) before += s->channel[k].share;
    *first = (int64_t)(before * (double)n + 0.5);
    *end = channel + 1 == s->channels ? n : (int64_t)((before + s->channel[channel].share) * (double)n + 0.5);
    if (*first > n) *first = n;
    if (*end > n) *end = n;
}

/* Where the second half of a channel's elements [first, end) begins: at the end, where both go one way. */
TRNI_FN int64_t trni_channel_middle(const trni_cc_channel *c, int64_t first, int64_t end)
{
    return trni_channel_halves(c) ? first + (end - first) / 2 : end;
}

/* Elements [first, end) of a buffer that are half `part` (1, 2; 0 = both) of a channel of the chunk of rank `owner`. */
TRNI_FN void trni_part_range(const trni_schedule *s, int64_t elements, int64_t granule, int owner, int channel,
                             int part, int64_t *first, int64_t *end)
{
    int64_t chunk, count;
    trn_collective_chunk(elements, granule, s->ranks, owner, &chunk, &count);
    trni_channel_range(s, channel, count, first, end);
    const int64_t middle = trni_channel_middle(&s->channel[channel], *first, *end);
    if (part == 1) *end = middle;
    if (part == 2) *first = middle;
    *first += chunk;
    *end += chunk;
}

/* ---- the sums, computed ---- */

/* Gives elements [first, first + n) of a rank's contribution, already rounded to the wire. */
typedef void trni_fold_load(void *user, int rank, int64_t first, int64_t n, float *value);

typedef struct trni_fold {
    const trni_schedule *s;
    const trni_arith *arith;
    trni_cc_sum *sum; /* [2 ranks] */
    float *value;     /* [ranks][TRNI_FOLD_TILE] what each rank holds */
    float *partial;   /* [partials][TRNI_FOLD_TILE] of sums of more than 16 */
    uint8_t *loaded;  /* [ranks] */
    int sums, channel, owner;
    trni_fold_load *load;
    void *user;
} trni_fold;

TRNI_FN size_t trni_fold_bytes(int ranks)
{
    const size_t r = (size_t)ranks, partials = r / TRNI_SUM_SOURCES + 1;
    return r * 2 * sizeof(trni_cc_sum) + (r + partials) * TRNI_FOLD_TILE * sizeof(float) + r + 128;
}

/* memory: trni_fold_bytes(ranks), aligned as malloc aligns. */
TRNI_FN void trni_fold_init(trni_fold *f, const trni_schedule *s, const trni_arith *arith, void *memory)
{
    const size_t r = (size_t)s->ranks;
    memset(f, 0, sizeof *f);
    f->s = s;
    f->arith = arith;
    f->sum = (trni_cc_sum *)memory;
    f->value = (float *)(void *)(f->sum + 2 * r);
    f->partial = f->value + r * TRNI_FOLD_TILE;
    f->loaded = (uint8_t *)(void *)(f->partial + (r / TRNI_SUM_SOURCES + 1) * TRNI_FOLD_TILE);
    f->channel = f->owner = -1;
}

TRNI_FN float *trni_fold_value(trni_fold *f, int rank, int64_t first, int64_t n)
{
    float *value = f->value + (size_t)rank * TRNI_FOLD_TILE;
    if (!f->loaded[rank]) f->load(f->user, rank, first, n, value);
    f->loaded[rank] = 1;
    return value;
}

/* to = source[0] + source[1] + ..., and one rounding to the wire. to may be one of the sources. */
TRNI_FN void trni_fold_add(const trni_arith *m, float *to, float *const *source, int sources, int64_t n,
                           uint64_t stream, uint64_t index)
{
    float sum[TRNI_FOLD_TILE];
    const float *so_far = source[0];
    for (int i = 1; i < sources; i++) {
        float *out = i + 1 == sources ? to : sum;
        trni_alu_run(m->add, out, so_far, source[i], (size_t)n);
        trni_round_in_place(m, &m->accumulate, out, n, 0, 0);
        so_far = out;
    }
    if (sources == 1 && to != source[0]) memcpy(to, source[0], (size_t)n * sizeof *to);
    if (sources > 1) trni_round_in_place(m, &m->wire, to, n, stream, index);
}

/* All members: 16 at a time into partial sums, which are then summed in turn. Partial sum number i draws words from
 * (i + 1) 2^48 on. */
TRNI_FN void trni_fold_all(trni_fold *f, const trni_cc_sum *sum, uint64_t stream, int64_t first, int64_t n)
{
    const trni_cc_channel *c = &f->s->channel[f->channel];
    float *source[TRNI_SUM_SOURCES], *to = trni_fold_value(f, sum->to, first, n);
    int left = sum->size, node = 0;
    for (bool leaf = true; leaf || left > 1; leaf = false) {
        const int total = left;
        left = (total + TRNI_SUM_SOURCES - 1) / TRNI_SUM_SOURCES;
        for (int p = 0; p < left; p++) {
            const int from = p * TRNI_SUM_SOURCES,
                      sources = total - from < TRNI_SUM_SOURCES ? total - from : TRNI_SUM_SOURCES;
            for (int i = 0; i < sources; i++)
                source[i] =
                    leaf ? trni_fold_value(f, trni_rank_at(f->s, c, sum->base + (from + i) * sum->stride), first, n)
                         : f->partial + (size_t)(from + i) * TRNI_FOLD_TILE;
            const bool last = left == 1;
            const uint64_t word = (uint64_t)first + (last ? 0 : (uint64_t)++node << 48);
            trni_fold_add(f->arith, last ? to : f->partial + (size_t)p * TRNI_FOLD_TILE, source, sources, n, stream,
                          word);
        }
    }
}

/* Compiles the sums for chunk `owner` of a channel, unless it is there already. */
TRNI_FN void trni_fold_aim(trni_fold *f, int channel, int owner)
{
    if (f->channel == channel && f->owner == owner) return;
    f->channel = channel;
    f->owner = owner;
    f->sums = trni_fold_program(f->s, channel, owner, f->sum);
}

/* One sum: what its receiver holds of elements [first, first + n) afterwards. */
TRNI_FN float *trni_fold_one(trni_fold *f, const trni_cc_sum *sum, int64_t first, int64_t n)
{
    const uint64_t stream = f->arith->stream + (uint64_t)f->s->ranks * (uint64_t)(sum->step + 1) + (uint64_t)sum->to;
    float *source[3], *to = f->value + (size_t)sum->to * TRNI_FOLD_TILE;
    if (sum->sources == TRNI_ALL_MEMBERS) {
        trni_fold_all(f, sum, stream, first, n);
        return to;
    }
    for (int k = 0; k < sum->sources; k++) source[k] = trni_fold_value(f, sum->from[k], first, n);
    trni_fold_add(f->arith, to, source, sum->sources, n, stream, (uint64_t)first);
    f->loaded[sum->to] = 1;
    return to;
}

TRNI_FN void trni_fold_forget(trni_fold *f) { memset(f->loaded, 0, (size_t)f->s->ranks); }

/* Elements [first, first + n), n <= TRNI_FOLD_TILE, of the buffer, all of them of the chunk, channel and half (1, 2; 0
 * = either) that the workspace is aimed at: their values, valid until the next call. */
TRNI_FN const float *trni_fold_tile(trni_fold *f, int part, int64_t first, int64_t n)
{
    trni_fold_forget(f);
    for (int i = 0; i < f->sums; i++)
        if (!f->sum[i].part || f->sum[i].part == part) trni_fold_one(f, &f->sum[i], first, n);
    return trni_fold_value(f, f->owner, first, n);
}

#endif /* TRNI_NETWORK_COLLECTIVE_VALUES_H */
