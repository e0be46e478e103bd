/* engine/vector_random.h - random numbers in tiles: rng, rand2, dropout, and the seeds and states of the generators.
 * A part of trn_vector_engine.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_vector_engine.h>
 *     int main(void) {
 *         static trn_vector_state engine;
 *         static float x[128 * 512];
 *         trn_vector_state_init(&engine, 1);
 *         for (int i = 0; i < 128 * 512; i++) x[i] = 1.0f;
 *         trn_dropout_args half = { .dst = trn_tensor_2d(TRN_F32, x, 128, 512),
 *                                   .data = trn_tensor_2d(TRN_F32, x, 128, 512), .prob = 0.5f, .state = &engine };
 *         double kept = 0;
 *         if (trn_dropout(&half)) return 1;
 *         for (int i = 0; i < 128 * 512; i++) kept += (double)x[i];
 *         return kept > 32000 && kept < 33500 ? 0 : 1;
 *     }
 *
 * DOES: draws from the engines' own generators (trn_random.h), which the caller owns in a trn_vector_state or a
 *     trn_gpsimd_state; whoever draws first moves them on, so the order of instructions matters, as on the chip.
 * DOES NOT: use threads, or (seed, stream), but for the stochastic rounding of rand2's dst.
 *
 * Which word an element takes (assumed). The 128 lanes of an engine step together: each makes one word a step, on the
 * Vector engine of Trainium3 four, one from each of its states. An instruction on [P, F] begins with a new step;
 * element f of partition p takes word f of lane p. All lanes step as far as F needs, also those beyond P; what is
 * left of the last step is lost. More than 128 partitions (.unlimited) are drawn 128 at a time, as by one instruction
 * after the other.
 *
 *     rng       the low bits of the word (documented)
 *     rand2     min + (u 2^-32) (max - min), u the word as a binary32 number; conversion, difference, product and sum
 *               are each rounded to nearest even, and what the sum's rounding puts above max is max. max is possible
 *     dropout   zero where u 2^-32 < prob, exactly: prob = 1 leaves nothing, prob = 0 everything; nothing is rescaled
 *
 * KNOWN FROM: NKI, rng, rand2, dropout, set_rng_seed, rand_set_state, rand_get_state (documented: engines, generations,
 *     formats, widths of the states, 32 bits per element, the range, what 0 and 1 do); the rest as said above and in
 *     trn_random.h: assumed.
 */
#ifndef TRNI_ENGINE_VECTOR_RANDOM_H
#define TRNI_ENGINE_VECTOR_RANDOM_H

#include "alu.h"
#include "engine_state.h"

typedef struct trn_rng_args {
    TRN_INSTRUCTION_FIELDS;  /* engine: VECTOR (default), or GPSIMD from Trainium2 on */
    trn_tensor dst;          /* [P, F] of integers */
    trn_vector_state *state; /* of the engine that draws; the other may be null */
    trn_gpsimd_state *gpsimd;
} trn_rng_args;

typedef struct trn_rand2_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst;                /* [P, F] E4M3, E5M2, F16, BF16, F32, TF32 or integers */
    float min, max;                /* min < max */
    trn_tensor min_tile, max_tile; /* optional [P], one for each partition */
    trn_vector_state *state;
} trn_rand2_args;

typedef struct trn_dropout_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst, data; /* one format; dst may be data */
    float prob;           /* 0 to 1 */
    trn_tensor prob_tile; /* optional [P]; F32 when data are integers, else any float format */
    trn_vector_state *state;
} trn_dropout_args;

typedef struct trn_set_rng_seed_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor src_seeds;    /* [1, 1], 32 bits; they count as they are */
    trn_vector_state *state; /* both of its generators are seeded, and nothing else is touched */
} trn_set_rng_seed_args;

typedef struct trn_rand_set_state_args {
    TRN_INSTRUCTION_FIELDS; /* engine: GPSIMD (default), or VECTOR on Trainium3 */
    trn_tensor src_seeds;   /* [P, 6] for GPSIMD, [P, 24] for VECTOR, U32: x y z w v d of each state; lanes 0..P-1 */
    trn_vector_state *state;
    trn_gpsimd_state *gpsimd;
} trn_rand_set_state_args;

typedef struct trn_rand_get_state_args {
    TRN_INSTRUCTION_FIELDS;
    trn_tensor dst; /* as src_seeds of trn_rand_set_state */
    trn_vector_state *state;
    trn_gpsimd_state *gpsimd;
} trn_rand_get_state_args;

/* ---- an engine's lanes ---- */

enum { TRNI_DRAW_CHUNK = 64, TRNI_DRAW_WORDS = TRN_VECTOR_LANES * TRNI_DRAW_CHUNK }; /* elements per lane at a time */

/* ---- rng ---- */

/* TRN_EFORMAT: dst is not of integers; TRN_EUNSUPPORTED: GpSimd on Trainium1; TRN_EINVAL: generators that are not
 * there, or were never seeded. */
TRN_API trn_status trn_rng(const trn_rng_args *args);

/* ---- rand2 ---- */

/* TRN_EUNSUPPORTED: not Trainium3; TRN_EFORMAT: a dst that rand2 does not write; TRN_EINVAL: an empty or infinite
 * range, or generators as for trn_rng. */
TRN_API trn_status trn_rand2(const trn_rand2_args *args);

/* ---- dropout ---- */

/* TRN_EFORMAT: two formats, or a prob_tile that does not go with data; TRN_EINVAL: a probability that is none,
 * generators as for trn_rng, or overlap. */
TRN_API trn_status trn_dropout(const trn_dropout_args *args);

/* ---- seeds and states ---- */

/* TRN_EFORMAT: not 32 bits; TRN_ESHAPE: not [1, 1]; TRN_EINVAL: state is null. */
TRN_API trn_status trn_set_rng_seed(const trn_set_rng_seed_args *args);

/* Sets the states of lanes 0..P-1 and no others. TRN_EUNSUPPORTED: Trainium1, or the Vector engine before Trainium3;
 * TRN_EINVAL: a state whose x, y, z, w, v are all zero (it would stay so), or no place for it. */
TRN_API trn_status trn_rand_set_state(const trn_rand_set_state_args *args);

/* dst = the states of lanes 0..P-1. Errors as of trn_rand_set_state; TRN_EINVAL too where nothing was seeded. */
TRN_API trn_status trn_rand_get_state(const trn_rand_get_state_args *args);

#if TRNI_BODIES

#include "vector_rows.h"

/* ---- an engine's lanes ---- */

typedef struct trni_draw_lanes {
    trn_lfsr_vector *lfsr; /* one of the three is not null */
    trn_xorwow_vector *xorwow;
    trn_gpsimd_state *gpsimd;
    int64_t each; /* words of a lane and step */
    trn_isa isa;
} trni_draw_lanes;

/* The generators that draw, or what is wrong with them. */
TRNI_FN trni_draw_lanes trni_draw_lanes_of(trni_frame *f, trn_engine engine, trn_vector_state *state,
                                           trn_gpsimd_state *gpsimd)
{
    trni_draw_lanes l = { NULL, NULL, NULL, 1, f->isa };
    const bool vector = engine == TRN_ENGINE_VECTOR;
    const char *name = vector ? "state" : "gpsimd";
    if (f->status) return l;
    if (vector ? !state : !gpsimd)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "%s, which holds the %s engine's generators, is null", name,
                              trn_engine_name(engine));
    else if (vector ? !state->seeded : !gpsimd->seeded)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "%s was never seeded", name);
    else if (!vector)
        l.gpsimd = gpsimd;
    else if (f->core->generation >= TRN_TRAINIUM3) {
        l.xorwow = &state->xorwow;
        l.each = TRN_XORWOW_STATES;
    } else
        l.lfsr = &state->lfsr;
    return l;
}

/* A generator without a single bit set: nobody seeded it, and nothing would come of it. */
TRNI_FN bool trni_lane_dead(const trni_draw_lanes *l, int lane)
{
    uint32_t any[TRN_XORWOW_STATES] = { 0, 0, 0, 0 };
    if (l->gpsimd) return trni_all_zero(l->gpsimd->lane[lane].state, 5);
    for (int j = 0; l->lfsr && j < 4; j++) any[0] |= l->lfsr->row[j][lane];
    if (l->lfsr) return any[0] == 0;
    for (int j = 0; j < 5; j++)
        for (int s = 0; s < TRN_XORWOW_STATES; s++) any[s] |= l->xorwow->row[j][TRN_XORWOW_STATES * lane + s];
    return !any[0] || !any[1] || !any[2] || !any[3];
}

TRNI_DRIVER void trni_draw_lanes_check(trni_frame *f, const trni_draw_lanes *l, int64_t partitions)
{
    for (int lane = 0; !f->status && lane < trni_min64(partitions, TRN_VECTOR_LANES); lane++)
        if (trni_lane_dead(l, lane))
            f->status = trni_fail(f->how.error, TRN_EINVAL, "%s has no state in lane %d: it was never seeded",
                                  l->gpsimd ? "gpsimd" : "state", lane);
}

/* GpSimd's generators, word j of all side by side: a word of each a step, and as before. */
TRNI_INLINE void trni_gpsimd_words_body(trn_xorwow *lane, uint32_t *word, size_t steps)
{
    uint32_t row[6][TRN_VECTOR_LANES];
    for (int i = 0; i < TRN_VECTOR_LANES; i++)
        for (int j = 0; j < 6; j++) row[j][i] = lane[i].state[j];
    for (size_t s = 0; s < steps; s++, word += TRN_VECTOR_LANES)
        trni_xorwow_step(row[s % 5], row[(s + 4) % 5], row[5], word, TRN_VECTOR_LANES);
    for (int i = 0; i < TRN_VECTOR_LANES; i++) {
        for (size_t j = 0; j < 5; j++) lane[i].state[j] = row[(steps + j) % 5][i];
        lane[i].state[5] = row[5][i];
    }
}

TRNI_DISPATCH(trni_gpsimd_words, (trn_xorwow * lane, uint32_t *word, size_t steps), (lane, word, steps))

/* The next steps of all lanes: [steps, 128, each]. */
TRNI_FN void trni_draw_lanes_words(const trni_draw_lanes *l, uint32_t *word, int64_t steps)
{
    const size_t n = (size_t)(steps * l->each * TRN_VECTOR_LANES);
    if (l->gpsimd)
        trni_gpsimd_words_for(l->isa)(l->gpsimd->lane, word, (size_t)steps);
    else if (l->lfsr)
        trn_lfsr_vector_words(l->lfsr, word, n, l->isa);
    else
        trn_xorwow_vector_words(l->xorwow, word, n, l->isa);
}

/* A step that somebody began by himself is brought to its end. */
TRNI_FN void trni_draw_lanes_begin(const trni_draw_lanes *l)
{
    uint32_t rest[TRNI_XORWOW_ALL];
    if (l->lfsr && l->lfsr->next % TRN_VECTOR_LANES)
        trn_lfsr_vector_words(l->lfsr, rest, TRN_VECTOR_LANES - l->lfsr->next % TRN_VECTOR_LANES, l->isa);
    if (l->xorwow && l->xorwow->next % TRNI_XORWOW_ALL)
        trn_xorwow_vector_words(l->xorwow, rest, TRNI_XORWOW_ALL - l->xorwow->next % TRNI_XORWOW_ALL, l->isa);
}

enum { TRNI_DRAW_LANES = 4 };

/* What four lanes have of [steps, 128, each], one line after the other. */
TRNI_INLINE void trni_draw_turn_body(uint32_t *__restrict line, const uint32_t *__restrict word, size_t steps,
                                     size_t each)
{
    size_t s = 0;
    if (each == TRN_XORWOW_STATES) {
        for (size_t lane = 0; lane < TRNI_DRAW_LANES; lane++, line += TRNI_DRAW_CHUNK, word += TRN_XORWOW_STATES)
            for (s = 0; s < steps; s++) memcpy(line + 4 * s, word + TRNI_XORWOW_ALL * s, 4 * sizeof word[0]);
        return;
    }
    for (; s + 4 <= steps; s += 4, word += 4 * TRN_VECTOR_LANES)
        trni_square(line + s, TRNI_DRAW_CHUNK, word, word + TRN_VECTOR_LANES, word + 2 * TRN_VECTOR_LANES,
                    word + 3 * TRN_VECTOR_LANES);
    for (; s < steps; s++, word += TRN_VECTOR_LANES)
        for (size_t lane = 0; lane < TRNI_DRAW_LANES; lane++) line[lane * TRNI_DRAW_CHUNK + s] = word[lane];
}

TRNI_DISPATCH(trni_draw_turn, (uint32_t *__restrict line, const uint32_t *__restrict word, size_t steps, size_t each),
              (line, word, steps, each))

/* Use of n words by elements [f, f + n) of partition p. */
typedef void trni_draw_work(const void *plan, int64_t p, int64_t f, int64_t n, uint32_t *word);

TRNI_FN trn_status trni_draw(const trni_draw_lanes *l, const trni_frame *f, trni_draw_work *work, const void *plan)
{
    trni_workspace space;
    const trn_status status = trni_workspace_open(&space, sizeof(uint32_t) * TRNI_DRAW_WORDS, 1, f->how.error);
    if (status != TRN_OK) return status;
    uint32_t *const word = (uint32_t *)trni_workspace_of(&space, 0);
    uint32_t line[(int)TRNI_DRAW_LANES * TRNI_DRAW_CHUNK] __attribute__((aligned(64)));
    trni_draw_lanes_begin(l);
    for (int64_t tile = 0; tile < f->partitions; tile += TRN_VECTOR_LANES)
        for (int64_t at = 0; at < f->elements; at += TRNI_DRAW_CHUNK) {
            const int64_t n = trni_min64(TRNI_DRAW_CHUNK, f->elements - at), steps = trni_ceil_div(n, l->each);
            const int64_t lanes = trni_min64(TRN_VECTOR_LANES, f->partitions - tile);
            trni_draw_lanes_words(l, word, steps);
            for (int64_t lane = 0; lane < lanes; lane++) {
                const int64_t in_turn = lane % TRNI_DRAW_LANES;
                if (in_turn == 0)
                    trni_draw_turn_for(l->isa)(line, word + lane * l->each, (size_t)steps, (size_t)l->each);
                work(plan, tile + lane, at, n, line + in_turn * TRNI_DRAW_CHUNK);
            }
        }
    trni_stream_end();
    trni_workspace_close(&space);
    return TRN_OK;
}

/* ---- rng ---- */

TRNI_FN void trni_rng_work(const void *plan, int64_t p, int64_t f, int64_t n, uint32_t *word)
{
    const trni_span *dst = (const trni_span *)plan;
    unsigned char code[TRNI_DRAW_CHUNK * sizeof(uint16_t)];
    const bool narrow = dst->bytes < sizeof word[0];
    if (narrow) trni_narrow_for(dst->isa)(code, word, (size_t)n, dst->bytes);
    trni_span_put(dst, p, f, n, narrow ? (const void *)code : (const void *)word);
}

TRN_API trn_status trn_rng(const trn_rng_args *args)
{
    trni_frame f;
    trni_span dst;
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "rng");
    const trn_engine engine = trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_GPSIMD, "rng");
    if (!f.status && engine == TRN_ENGINE_GPSIMD && f.core->generation < TRN_TRAINIUM2)
        return trni_fail(args->error, TRN_EUNSUPPORTED, "rng on the gpsimd engine is not available on %s",
                         trn_generation_name(f.core->generation));
    trni_frame_dst(&f, &args->dst);
    if (!f.status && !trn_format_is_integer(args->dst.format))
        return trni_fail(args->error, TRN_EFORMAT, "dst is %s; rng writes integers", trn_format_name(args->dst.format));
    const trni_draw_lanes lanes = trni_draw_lanes_of(&f, engine, args->state, args->gpsimd);
    trni_draw_lanes_check(&f, &lanes, f.partitions);
    if (f.status || trni_frame_empty(&f)) return f.status;
    trni_span_init(&dst, &f.dst, f.isa);
    return trni_draw(&lanes, &f, trni_rng_work, &dst);
}

/* ---- rand2 ---- */

/* u 2^-32 times the width, and min to that: two passes, so that no compiler fuses the product with the sum. */
TRNI_INLINE void trni_rand_scale_body(float *__restrict x, const uint32_t *__restrict word, float width, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)word[i] * 0x1p-32f * width;
}

TRNI_DISPATCH(trni_rand_scale, (float *__restrict x, const uint32_t *__restrict word, float width, size_t n),
              (x, word, width, n))

TRNI_INLINE void trni_rand_shift_body(float *x, float min, float max, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float sum = min + x[i];
        x[i] = sum > max ? max : sum;
    }
}

TRNI_DISPATCH(trni_rand_shift, (float *x, float min, float max, size_t n), (x, min, max, n))

typedef struct trni_rand_plan {
    trni_span dst;
    trni_column min, max;
} trni_rand_plan;

TRNI_FN void trni_rand_work(const void *plan, int64_t p, int64_t f, int64_t n, uint32_t *word)
{
    const trni_rand_plan *r = (const trni_rand_plan *)plan;
    const float min = trni_column_at(&r->min, p), max = trni_column_at(&r->max, p);
    float x[TRNI_DRAW_CHUNK];
    trni_rand_scale_for(r->dst.isa)(x, word, max - min, (size_t)n);
    trni_rand_shift_for(r->dst.isa)(x, min, max, (size_t)n);
    trni_span_write(&r->dst, p, f, n, x);
}

TRNI_DRIVER trn_status trni_rand_check_range(const trni_rand_plan *r, const trni_frame *f)
{
    const int64_t ranges = r->min.varies || r->max.varies ? f->partitions : f->partitions > 0;
    for (int64_t p = 0; p < ranges; p++) {
        const float min = trni_column_at(&r->min, p), max = trni_column_at(&r->max, p), width = max - min;
        if (!(min < max))
            return trni_fail(f->how.error, TRN_EINVAL, "min %g is not below max %g in partition %lld", (double)min,
                             (double)max, (long long)p);
        if (trni_bits(width) >= TRNI_F32_INF)
            return trni_fail(f->how.error, TRN_EINVAL, "max %g - min %g in partition %lld is more than float32 holds",
                             (double)max, (double)min, (long long)p);
    }
    return TRN_OK;
}

TRNI_FN bool trni_rand_format(trn_format format)
{
    static const trn_format can[] = { TRN_F8_E4M3, TRN_F8_E5M2, TRN_F16, TRN_BF16, TRN_F32, TRN_TF32 };
    for (size_t i = 0; i < sizeof can / sizeof can[0]; i++)
        if (can[i] == format) return true;
    return trn_format_is_integer(format);
}

TRN_API trn_status trn_rand2(const trn_rand2_args *args)
{
    trni_frame f;
    trni_view min, max;
    trni_rand_plan plan;
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(&f, &how, TRN_TRAINIUM3, TRN_TRAINIUM3, "rand2");
    (void)trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "rand2");
    trni_frame_dst(&f, &args->dst);
    if (!f.status && !trni_rand_format(args->dst.format))
        return trni_fail(args->error, TRN_EFORMAT, "dst is %s, which rand2 does not write",
                         trn_format_name(args->dst.format));
    trni_frame_column(&f, &min, &args->min_tile, "min_tile", f.partitions);
    trni_frame_column(&f, &max, &args->max_tile, "max_tile", f.partitions);
    trni_frame_apart(&f, &f.dst, &min);
    trni_frame_apart(&f, &f.dst, &max);
    const trni_draw_lanes lanes = trni_draw_lanes_of(&f, TRN_ENGINE_VECTOR, args->state, NULL);
    trni_draw_lanes_check(&f, &lanes, f.partitions);
    if (f.status) return f.status;
    trni_column_init(&plan.min, &min, args->min, f.isa);
    trni_column_init(&plan.max, &max, args->max, f.isa);
    if (trni_rand_check_range(&plan, &f)) return TRN_EINVAL;
    if (trni_frame_empty(&f)) return TRN_OK;
    trni_span_output(&plan.dst, &f.dst, &f);
    return trni_draw(&lanes, &f, trni_rand_work, &plan);
}

/* ---- dropout ---- */

/* code[i] = 0 where word[i] <= last. */
TRNI_INLINE void trni_drop_body(void *codes, const uint32_t *__restrict word, uint32_t last, size_t n, size_t bytes)
{
    trni_any32 *__restrict w = (trni_any32 *)codes;
    trni_any16 *__restrict h = (trni_any16 *)codes;
    unsigned char *__restrict b = (unsigned char *)codes;
    if (bytes == 4)
        for (size_t i = 0; i < n; i++) w[i] &= trni_either(word[i] <= last, 0, 0xffffffffu);
    else if (bytes == 2)
        for (size_t i = 0; i < n; i++) h[i] = (uint16_t)(h[i] & trni_either(word[i] <= last, 0, 0xffffffffu));
    else
        for (size_t i = 0; i < n; i++) b[i] = (unsigned char)(b[i] & trni_either(word[i] <= last, 0, 0xffffffffu));
}

TRNI_DISPATCH(trni_drop, (void *codes, const uint32_t *__restrict word, uint32_t last, size_t n, size_t bytes),
              (codes, word, last, n, bytes))

typedef struct trni_drop_plan {
    trni_span dst, data;
    trni_column prob;
} trni_drop_plan;

/* How many of the 2^32 words drop an element: the smallest integer that is not below prob 2^32. */
TRNI_FN uint64_t trni_drop_words(float prob)
{
    const double exact = (double)prob * 0x1p32;
    const uint64_t below = (uint64_t)exact;
    return below + ((double)below < exact);
}

TRNI_FN void trni_drop_work(const void *plan, int64_t p, int64_t f, int64_t n, uint32_t *word)
{
    const trni_drop_plan *d = (const trni_drop_plan *)plan;
    const uint64_t words = trni_drop_words(trni_column_at(&d->prob, p));
    uint32_t buffer[TRNI_DRAW_CHUNK];
    const void *bits = trni_span_bits(&d->data, p, f, n, buffer);
    if (words > 0) {
        if (bits != buffer) memcpy(buffer, bits, (size_t)n * d->data.bytes);
        trni_drop_for(d->data.isa)(buffer, word, (uint32_t)(words - 1), (size_t)n, d->data.bytes);
        bits = buffer;
    }
    trni_span_put(&d->dst, p, f, n, bits);
}

TRNI_DRIVER trn_status trni_drop_check_prob(const trni_drop_plan *d, const trni_frame *f)
{
    const int64_t probs = d->prob.varies ? f->partitions : f->partitions > 0;
    for (int64_t p = 0; p < probs; p++) {
        const float prob = trni_column_at(&d->prob, p);
        if (!(prob >= 0.0f && prob <= 1.0f))
            return trni_fail(f->how.error, TRN_EINVAL, "prob is %g in partition %lld; it is 0 to 1", (double)prob,
                             (long long)p);
    }
    return TRN_OK;
}

TRNI_DRIVER void trni_drop_check_formats(trni_frame *f, const trn_dropout_args *args)
{
    if (f->status) return;
    if (!trni_same_format(&args->dst, &args->data))
        f->status = trni_fail(args->error, TRN_EFORMAT, "dst is %s and data is %s; dropout changes no format",
                              trn_format_name(args->dst.format), trn_format_name(args->data.format));
    else if (args->data.format == TRN_F8_E8M0)
        f->status = trni_fail(args->error, TRN_EFORMAT, "data is %s, which has no zero", trn_format_name(TRN_F8_E8M0));
    else if (args->prob_tile.rank && trn_format_is_integer(args->data.format) && args->prob_tile.format != TRN_F32)
        f->status = trni_fail(args->error, TRN_EFORMAT, "prob_tile is %s; for data of %s it is float32",
                              trn_format_name(args->prob_tile.format), trn_format_name(args->data.format));
    else if (args->prob_tile.rank && trn_format_is_integer(args->prob_tile.format))
        f->status = trni_fail(args->error, TRN_EFORMAT, "prob_tile is %s; probabilities are floats",
                              trn_format_name(args->prob_tile.format));
}

TRN_API trn_status trn_dropout(const trn_dropout_args *args)
{
    trni_frame f;
    trni_view data, prob;
    trni_drop_plan plan;
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "dropout");
    (void)trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "dropout");
    trni_frame_dst(&f, &args->dst);
    trni_frame_src(&f, &data, &args->data, "data");
    trni_frame_column(&f, &prob, &args->prob_tile, "prob_tile", f.partitions);
    trni_drop_check_formats(&f, args);
    trni_frame_apart(&f, &f.dst, &prob);
    const trni_draw_lanes lanes = trni_draw_lanes_of(&f, TRN_ENGINE_VECTOR, args->state, NULL);
    trni_draw_lanes_check(&f, &lanes, f.partitions);
    if (f.status) return f.status;
    trni_column_init(&plan.prob, &prob, args->prob, f.isa);
    if (trni_drop_check_prob(&plan, &f)) return TRN_EINVAL;
    if (trni_frame_empty(&f)) return TRN_OK;
    trni_span_init(&plan.dst, &f.dst, f.isa);
    trni_span_init(&plan.data, &data, f.isa);
    return trni_draw(&lanes, &f, trni_drop_work, &plan);
}

/* ---- seeds and states ---- */

TRN_API trn_status trn_set_rng_seed(const trn_set_rng_seed_args *args)
{
    trni_frame f;
    trni_view seeds;
    uint32_t seed;
    TRNI_ENTER(args);
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(&f, &how, TRN_TRAINIUM2, TRN_TRAINIUM1, "set_rng_seed");
    (void)trni_frame_engine(&f, TRN_ENGINE_VECTOR, TRN_ENGINE_UNKNOWN, "set_rng_seed");
    trni_frame_tile(&f, &seeds, &args->src_seeds, "src_seeds", TRNI_INPUT, 1, 1);
    if (f.status) return f.status;
    if (seeds.size != sizeof seed)
        return trni_fail(args->error, TRN_EFORMAT, "src_seeds is %s; a seed has 32 bits", seeds.info.name);
    if (!args->state)
        return trni_fail(args->error, TRN_EINVAL, "state, which holds the vector engine's generators, is null");
    memcpy(&seed, args->src_seeds.data, sizeof seed);
    trn_lfsr_vector_seed(&args->state->lfsr, seed);
    trn_xorwow_vector_seed(&args->state->xorwow, seed);
    args->state->seeded = true;
    return TRN_OK;
}

/* What rand_set_state and rand_get_state agree about. Returns the engine. */
TRNI_FN trn_engine trni_state_check(trni_frame *f, const void *args, trni_view *v, const trn_tensor *t, trni_use use,
                                    const void *state, const void *gpsimd)
{
    const char *name = use == TRNI_INPUT ? "src_seeds" : "dst",
               *what = use == TRNI_INPUT ? "rand_set_state" : "rand_get_state";
    const trn_instruction how = trni_instruction_of(args);
    (void)trni_frame_begin(f, &how, TRN_TRAINIUM2, TRN_TRAINIUM2, what);
    const trn_engine engine = trni_frame_engine(f, TRN_ENGINE_GPSIMD, TRN_ENGINE_VECTOR, what);
    const bool vector = engine == TRN_ENGINE_VECTOR;
    if (!f->status && vector && f->core->generation < TRN_TRAINIUM3)
        f->status = trni_fail(f->how.error, TRN_EUNSUPPORTED, "%s on the vector engine is not available on %s", what,
                              trn_generation_name(f->core->generation));
    f->how.unlimited = false; /* lanes are as many as they are */
    trni_frame_tile(f, v, t, name, use, t->shape[0], vector ? 24 : 6);
    if (f->status) return engine;
    f->partitions = t->shape[0];
    if (t->format != TRN_U32)
        f->status = trni_fail(f->how.error, TRN_EFORMAT, "%s is %s; states are uint32", name, v->info.name);
    else if (vector ? !state : !gpsimd)
        f->status = trni_fail(f->how.error, TRN_EINVAL, "%s, which holds the %s engine's generators, is null",
                              vector ? "state" : "gpsimd", trn_engine_name(engine));
    return engine;
}

/* One state of a lane, 6 words. */
TRNI_FN void trni_state_words(const trni_span *v, int64_t p, int state, uint32_t *word)
{
    const void *bits = trni_span_bits(v, p, 6 * state, 6, word);
    if (bits != word) memcpy(word, bits, 6 * sizeof word[0]);
}

TRNI_FN void trni_state_set_vector(trn_vector_state *to, const trni_span *v)
{
    trn_xorwow_vector *g = &to->xorwow;
    const trni_draw_lanes lanes = { NULL, g, NULL, TRN_XORWOW_STATES, TRN_ISA_PORTABLE };
    uint32_t word[6];
    if (!to->seeded) {
        memset(g, 0, sizeof *g);
        memset(&to->lfsr, 0, sizeof to->lfsr);
    }
    trni_draw_lanes_begin(&lanes);
    g->first %= 5;
    for (int64_t i = 0; i < v->partitions * TRN_XORWOW_STATES; i++) {
        trni_state_words(v, i / TRN_XORWOW_STATES, (int)(i % TRN_XORWOW_STATES), word);
        for (uint32_t j = 0; j < 5; j++) g->row[(g->first + j) % 5][i] = word[j];
        g->d[i] = word[5];
    }
    to->seeded = true;
}

TRN_API trn_status trn_rand_set_state(const trn_rand_set_state_args *args)
{
    trni_frame f;
    trni_view view;
    trni_span v;
    uint32_t word[6];
    TRNI_ENTER(args);
    const trn_engine engine =
        trni_state_check(&f, args, &view, &args->src_seeds, TRNI_INPUT, args->state, args->gpsimd);
    if (f.status || f.partitions == 0) return f.status;
    trni_span_init(&v, &view, f.isa);
    const int states = engine == TRN_ENGINE_VECTOR ? TRN_XORWOW_STATES : 1;
    for (int64_t i = 0; i < f.partitions * states; i++) {
        trni_state_words(&v, i / states, (int)(i % states), word);
        if (trni_all_zero(word, 5))
            return trni_fail(args->error, TRN_EINVAL,
                             "src_seeds: the first five words of partition %lld, state %d are all zero",
                             (long long)(i / states), (int)(i % states));
    }
    if (engine == TRN_ENGINE_VECTOR) {
        trni_state_set_vector(args->state, &v);
        return TRN_OK;
    }
    if (!args->gpsimd->seeded) memset(args->gpsimd, 0, sizeof *args->gpsimd);
    for (int64_t p = 0; p < f.partitions; p++) trni_state_words(&v, p, 0, args->gpsimd->lane[p].state);
    args->gpsimd->seeded = true;
    return TRN_OK;
}

TRN_API trn_status trn_rand_get_state(const trn_rand_get_state_args *args)
{
    trni_frame f;
    trni_view view;
    trni_span v;
    TRNI_ENTER(args);
    const trn_engine engine = trni_state_check(&f, args, &view, &args->dst, TRNI_OUTPUT, args->state, args->gpsimd);
    (void)trni_draw_lanes_of(&f, engine, args->state, args->gpsimd);
    if (f.status || f.partitions == 0) return f.status;
    trni_span_init(&v, &view, f.isa);
    if (engine == TRN_ENGINE_VECTOR) {
        uint32_t all[TRN_VECTOR_LANES][24];
        (void)trn_xorwow_vector_get_state(&args->state->xorwow, all[0]);
        for (int64_t p = 0; p < f.partitions; p++) trni_span_put(&v, p, 0, 24, all[p]);
    } else {
        for (int64_t p = 0; p < f.partitions; p++) trni_span_put(&v, p, 0, 6, args->gpsimd->lane[p].state);
    }
    return TRN_OK;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_ENGINE_VECTOR_RANDOM_H */
