/* test_vector_random.c - rng, rand2, dropout and the generators' states: which word goes where, what is made of it,
 * what survives, refusals. The words themselves come from the twin's generators.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "trnmath/trn_vector_engine.h"
#include "twin/cases.h"
#include "twin/host.h"
#include "twin/refusal.h"
#include "twin/twin_random.h"

enum { P = 128, MOST = 300 };
static trn_vector_state state;
static trn_gpsimd_state gpsimd;
static uint32_t word[2 * P * MOST], want[2 * P * MOST];

/* ---- the twin's engines: a step makes `each` words in each of 128 lanes ---- */

typedef struct lanes {
    uint32_t s[P][4][6];
    int each; /* 0: the LFSR, one word */
} lanes;
static lanes twin;

static void twin_lanes(trn_generation generation, trn_engine engine)
{
    uint32_t all[P * 24];
    twin.each = engine == TRN_ENGINE_GPSIMD ? 1 : generation == TRN_TRAINIUM3 ? 4 : 0;
    if (twin.each == 4) (void)trn_xorwow_vector_get_state(&state.xorwow, all);
    if (twin.each == 0) (void)trn_lfsr_vector_get_state(&state.lfsr, all);
    for (int p = 0; p < P; p++)
        for (int k = 0; k < 4; k++) {
            if (twin.each == 4) memcpy(twin.s[p][k], all + 24 * p + 6 * k, sizeof twin.s[p][k]);
            if (twin.each == 1) memcpy(twin.s[p][k], gpsimd.lane[p].state, sizeof twin.s[p][k]);
            if (twin.each == 0) memcpy(twin.s[p][k], all + 4 * p, 4 * sizeof all[0]);
        }
}

/* [partitions, elements] of words, of an instruction that begins a new step. */
static void twin_words(int partitions, int elements)
{
    const int each = twin.each ? twin.each : 1;
    for (int p = 0; p < P; p++)
        for (int f = 0; f < (elements + each - 1) / each * each; f++) {
            uint32_t *s = twin.s[p][f % each];
            const uint32_t made = twin.each ? twin_xorwow(s) : twin_lfsr(s);
            if (p < partitions && f < elements) want[p * elements + f] = made;
        }
}

static void seed_all(uint64_t seed)
{
    trn_vector_state_init(&state, seed);
    trn_gpsimd_state_init(&gpsimd, seed);
}

/* ---- rng ---- */

static const struct {
    trn_generation generation;
    trn_engine engine;
} drawers[] = { { TRN_TRAINIUM1, TRN_ENGINE_VECTOR },
                { TRN_TRAINIUM2, TRN_ENGINE_UNKNOWN },
                { TRN_TRAINIUM2, TRN_ENGINE_GPSIMD },
                { TRN_TRAINIUM3, TRN_ENGINE_VECTOR },
                { TRN_TRAINIUM3, TRN_ENGINE_GPSIMD } };
enum { DRAWERS = sizeof drawers / sizeof drawers[0] };

static trn_rng_args rng_of(int drawer, trn_format format, int partitions, int elements)
{
    return (trn_rng_args){ .generation = drawers[drawer].generation,
                           .engine = drawers[drawer].engine,
                           .dst = trn_tensor_2d(format, word, partitions, elements),
                           .state = &state,
                           .gpsimd = &gpsimd };
}

/* One instruction after the other, of all shapes: each begins a new step and leaves the lanes where the twin's are. */
static void words_go_by_lanes(void **unused)
{
    static const int shapes[][2] = { { 5, 1 },    { 1, 5 },    { 3, 64 }, { P, 65 },
                                     { 17, 130 }, { 2, MOST }, { P, 4 },  { 31, 7 } };
    (void)unused;
    for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++)
        for (int d = 0; d < DRAWERS; d++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            seed_all(i + 1);
            twin_lanes(drawers[d].generation, drawers[d].engine);
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                trn_rng_args a = rng_of(d, TRN_U32, shapes[s][0], shapes[s][1]);
                a.isa = all_isas[i];
                assert_int_equal(trn_rng(&a), TRN_OK);
                twin_words(shapes[s][0], shapes[s][1]);
                for (int e = 0; e < shapes[s][0] * shapes[s][1]; e++)
                    CASES_EQUAL(want[e], word[e], "drawer %d, shape %d, element %d", d, (int)s, e);
            }
        }
}

/* Narrow integers take the low bits; strides and free axes only place them. */
static void low_bits(void **unused)
{
    static const trn_format formats[] = { TRN_I8, TRN_U8, TRN_I16, TRN_U16, TRN_I32, TRN_U32 };
    (void)unused;
    for (int k = 0; k < 6; k++)
        for (int d = 0; d < DRAWERS; d++) {
            seed_all(5);
            twin_lanes(drawers[d].generation, drawers[d].engine);
            twin_words(9, 70);
            trn_rng_args a = rng_of(d, formats[k], 9, 70);
            const int64_t shape[3] = { 9, 7, 10 };
            a.dst = trn_tensor_nd(formats[k], word, 3, shape);
            a.dst.stride[0] = 10, a.dst.stride[1] = 90, a.dst.stride[2] = 1;
            memset(word, 0, sizeof word);
            assert_int_equal(trn_rng(&a), TRN_OK);
            const size_t size = trn_format_bytes(formats[k]);
            for (int p = 0; p < 9; p++)
                for (int f = 0; f < 70; f++) {
                    uint32_t got = 0, low = 0;
                    memcpy(&got, (char *)word + (size_t)(10 * p + 90 * (f / 10) + f % 10) * size, size);
                    memcpy(&low, &want[70 * p + f], size);
                    CASES_EQUAL(low, got, "format %d, [%d, %d]", k, p, f);
                }
        }
}

/* Many partitions: 128 at a time, as two instructions. */
static void more_than_the_lanes(void **unused)
{
    (void)unused;
    for (int d = 0; d < DRAWERS; d++) {
        seed_all(6);
        trn_rng_args a = rng_of(d, TRN_U32, 200, 66);
        a.unlimited = true;
        assert_int_equal(trn_rng(&a), TRN_OK);
        memcpy(want, word, 200 * 66 * sizeof word[0]);
        seed_all(6);
        a = rng_of(d, TRN_U32, P, 66);
        assert_int_equal(trn_rng(&a), TRN_OK);
        a.dst = trn_tensor_2d(TRN_U32, word + P * 66, 200 - P, 66);
        assert_int_equal(trn_rng(&a), TRN_OK);
        assert_memory_equal(want, word, 200 * 66 * sizeof word[0]);
    }
}

/* Words that somebody drew by himself from a step: the rest of it is lost. */
static void a_step_begins_anew(void **unused)
{
    uint32_t some[600];
    (void)unused;
    seed_all(7);
    twin_lanes(TRN_TRAINIUM3, TRN_ENGINE_VECTOR);
    trn_xorwow_vector_words(&state.xorwow, some, 515, TRN_ISA_AUTO);
    twin_words(1, 8); /* two steps */
    trn_rng_args a = rng_of(3, TRN_U32, 3, 9);
    assert_int_equal(trn_rng(&a), TRN_OK);
    twin_words(3, 9);
    assert_memory_equal(want, word, 27 * sizeof word[0]);
    twin_lanes(TRN_TRAINIUM2, TRN_ENGINE_VECTOR);
    trn_lfsr_vector_words(&state.lfsr, some, 1, TRN_ISA_AUTO);
    twin_words(1, 1);
    a = rng_of(1, TRN_U32, 3, 9);
    assert_int_equal(trn_rng(&a), TRN_OK);
    twin_words(3, 9);
    assert_memory_equal(want, word, 27 * sizeof word[0]);
}

/* ---- rand2 ---- */

static float uniform(uint32_t u, float min, float max)
{
    volatile float number = (float)u, width = max - min, part = number * 0x1p-32f;
    volatile float product = part * width, sum = min + product;
    return sum > max ? max : sum;
}

static void numbers_follow_the_definition(void **unused)
{
    static float x[P * 70], low[P], high[P];
    static const float ranges[][2] = { { 0, 1 },          { -1, 1 },          { 0.1f, 0.1f + 0x1p-26f },
                                       { -3e38f, 1e37f }, { 1e-45f, 3e-45f }, { 100, 100.5f } };
    (void)unused;
    for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++)
        for (int round = 0; round < 7; round++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            seed_all(8);
            twin_lanes(TRN_TRAINIUM3, TRN_ENGINE_VECTOR);
            twin_words(P, 70);
            trn_rand2_args a = { .dst = trn_tensor_2d(TRN_F32, x, P, 70), .state = &state, .isa = all_isas[i] };
            for (int p = 0; p < P; p++) {
                low[p] = round < 6 ? ranges[round][0] : (float)p - 60;
                high[p] = round < 6 ? ranges[round][1] : (float)(2 * p) + 0.3f;
            }
            a.min = low[0], a.max = high[0];
            if (round == 6)
                a.min_tile = trn_tensor_2d(TRN_F32, low, P, 1), a.max_tile = trn_tensor_1d(TRN_F32, high, P);
            assert_int_equal(trn_rand2(&a), TRN_OK);
            for (int e = 0; e < P * 70; e++) {
                CASES_EQUAL(cases_bits_of(uniform(want[e], low[e / 70], high[e / 70])), cases_bits_of(x[e]),
                            "round %d, %d", round, e);
                assert_true(x[e] >= low[e / 70] && x[e] <= high[e / 70]);
            }
        }
}

/* Spread evenly, and cast once to what dst is. */
static void numbers_are_uniform(void **unused)
{
    enum { F = 256 };
    static float x[P * F];
    static uint16_t narrow[P * F];
    static int8_t whole[P * F];
    int bins[16] = { 0 };
    (void)unused;
    seed_all(11);
    trn_rand2_args a = { .dst = trn_tensor_2d(TRN_F32, x, P, F), .max = 16, .state = &state };
    assert_int_equal(trn_rand2(&a), TRN_OK);
    for (int i = 0; i < P * F; i++) bins[x[i] == 16.0f ? 15 : (int)x[i]]++;
    for (int i = 0; i < 16; i++) assert_true(bins[i] > P * F / 16 - 300 && bins[i] < P * F / 16 + 300);
    seed_all(11);
    a.dst = trn_tensor_2d(TRN_BF16, narrow, P, F);
    a.rounding = TRN_TOWARD_ZERO;
    assert_int_equal(trn_rand2(&a), TRN_OK);
    for (int i = 0; i < P * F; i++) CASES_EQUAL(cases_bits_of(x[i]) >> 16, narrow[i], "%d", i);
    seed_all(11);
    a.dst = trn_tensor_2d(TRN_I8, whole, P, F);
    assert_int_equal(trn_rand2(&a), TRN_OK);
    for (int i = 0; i < P * F; i++) assert_true(whole[i] == (int8_t)x[i]);
}

/* ---- dropout ---- */

static void drops_follow_the_words(void **unused)
{
    enum { F = 131 };
    static unsigned char data[P * F * 4], out[P * F * 4];
    static float probs[P];
    static const trn_format formats[] = { TRN_F32, TRN_BF16, TRN_F8_E4M3, TRN_I32, TRN_U16, TRN_I8, TRN_F8_E5M2 };
    static const float fixed[] = { 0, 1, 0.5f, 0x1p-31f, 0.3f, 0x1.fffffep-1f, 1e-40f };
    uint64_t rng = 1;
    (void)unused;
    for (int round = 0; round < 210; round++) {
        const trn_isa isa = all_isas[round % 3];
        if (!trn_isa_supported(isa)) continue;
        const trn_format format = formats[round % 7];
        const size_t size = trn_format_bytes(format);
        const int partitions = 1 + cases_below(&rng, round % 10 ? 20 : P), elements = 1 + cases_below(&rng, F);
        const trn_generation generation = (trn_generation)(TRN_TRAINIUM1 + round / 3 % 3);
        const bool tile = round % 2, in_place = round % 5 == 0;
        for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(cases_u32(&rng) | 1);
        for (int p = 0; p < P; p++) probs[p] = tile ? fixed[cases_below(&rng, 7)] : fixed[round / 7 % 7];
        seed_all((uint64_t)round);
        twin_lanes(generation, TRN_ENGINE_VECTOR);
        twin_words(partitions, elements);
        trn_dropout_args a = { .generation = generation,
                               .dst = trn_tensor_2d(format, out, partitions, elements),
                               .data = trn_tensor_2d(format, data, partitions, elements),
                               .prob = probs[0],
                               .state = &state,
                               .isa = isa };
        if (tile) a.prob_tile = trn_tensor_2d(TRN_F32, probs, partitions, 1);
        if (in_place) memcpy(out, data, sizeof out), a.data = a.dst;
        assert_int_equal(trn_dropout(&a), TRN_OK);
        for (int e = 0; e < partitions * elements; e++) {
            const bool drops = (double)want[e] * 0x1p-32 < (double)probs[e / elements];
            uint32_t before = 0, after = 0;
            memcpy(&before, data + (size_t)e * size, size);
            memcpy(&after, out + (size_t)e * size, size);
            CASES_EQUAL(drops ? 0 : before, after, "round %d, element %d, prob %g", round, e,
                        (double)probs[e / elements]);
        }
    }
}

/* ---- the ends of the range: words that no seed is known for ---- */

/* Lane 0's next word of the LFSR is 0: it drops what can be dropped at all. */
static void the_least_word(void **unused)
{
    static float one[1] = { 3 }, out[1];
    static const float probs[3] = { 0, 1e-45f, 0.25f };
    (void)unused;
    for (int k = 0; k < 3; k++) {
        seed_all(2);
        state.lfsr.row[state.lfsr.first][0] = state.lfsr.row[(state.lfsr.first + 1) % 4][0] = 0;
        trn_dropout_args a = { .dst = trn_tensor_2d(TRN_F32, out, 1, 1),
                               .data = trn_tensor_2d(TRN_F32, one, 1, 1),
                               .prob = probs[k],
                               .state = &state };
        assert_int_equal(trn_dropout(&a), TRN_OK);
        assert_true(out[0] == (k ? 0.0f : 3.0f));
    }
}

/* Lane 0's next word of XORWOW is the largest: as a binary32 number it is 2^32, and the result is max, not the sum that
 * rounding has put above it. */
static void the_largest_word(void **unused)
{
    static float out[1];
    (void)unused;
    seed_all(2);
    trn_xorwow_vector *g = &state.xorwow;
    for (uint32_t j = 0; j < 5; j++) g->row[(g->first + j) % 5][0] = j > 0; /* the new v is 1 ^ 1 << 4 */
    g->d[0] = 0xffffffffu - 0x11u - 362437u;
    const trn_vector_state kept = state;
    trn_rng_args word_args = rng_of(3, TRN_U32, 1, 1);
    assert_int_equal(trn_rng(&word_args), TRN_OK);
    CASES_EQUAL(0xffffffff, word[0], "the word");
    state = kept;
    trn_rand2_args a = { .dst = trn_tensor_2d(TRN_F32, out, 1, 1), .min = -1, .max = 0x1.8p-24f, .state = &state };
    assert_int_equal(trn_rand2(&a), TRN_OK);
    CASES_EQUAL(cases_bits_of(0x1.8p-24f), cases_bits_of(out[0]), "max");
}

/* ---- seeds and states ---- */

static void seeds(void **unused)
{
    static trn_vector_state other;
    static uint32_t seed;
    (void)unused;
    for (int k = 0; k < 3; k++) {
        seed = k ? 0x80000001u : 77;
        memset(&other, 0, sizeof other);
        trn_set_rng_seed_args a = { .src_seeds = trn_tensor_2d(k == 2 ? TRN_F32 : TRN_U32, &seed, 1, 1),
                                    .state = &other };
        assert_int_equal(trn_set_rng_seed(&a), TRN_OK);
        trn_vector_state_init(&state, seed);
        assert_true(other.seeded && !other.accumulator_known);
        assert_memory_equal(&other.lfsr, &state.lfsr, sizeof state.lfsr);
        assert_memory_equal(&other.xorwow, &state.xorwow, sizeof state.xorwow);
    }
}

/* What get gives, set takes: the same words follow, also from the middle of a program. */
static void states_come_back(void **unused)
{
    static uint32_t kept[P * 24], again[P * 24];
    (void)unused;
    for (int vector = 0; vector < 2; vector++) {
        seed_all(13);
        trn_rng_args draw = rng_of(vector ? 3 : 2, TRN_U32, P, 11);
        assert_int_equal(trn_rng(&draw), TRN_OK);
        const int width = vector ? 24 : 6;
        trn_rand_get_state_args get = { .engine = vector ? TRN_ENGINE_VECTOR : TRN_ENGINE_UNKNOWN,
                                        .generation = vector ? TRN_TRAINIUM3 : TRN_TRAINIUM2,
                                        .state = &state,
                                        .gpsimd = &gpsimd,
                                        .dst = trn_tensor_2d(TRN_U32, kept, P, width) };
        assert_int_equal(trn_rand_get_state(&get), TRN_OK);
        assert_int_equal(trn_rng(&draw), TRN_OK);
        memcpy(want, word, P * 11 * sizeof word[0]);
        trn_rand_set_state_args set = {
            .engine = get.engine, .generation = get.generation, .state = &state, .gpsimd = &gpsimd, .src_seeds = get.dst
        };
        assert_int_equal(trn_rand_set_state(&set), TRN_OK);
        get.dst.data = again;
        assert_int_equal(trn_rand_get_state(&get), TRN_OK);
        assert_memory_equal(again, kept, (size_t)(P * width) * sizeof kept[0]);
        assert_int_equal(trn_rng(&draw), TRN_OK);
        assert_memory_equal(want, word, P * 11 * sizeof word[0]);
    }
}

/* A state of 32 lanes leaves the others; where nobody set those, they cannot draw. */
static void few_lanes(void **unused)
{
    static uint32_t words[P * 24], again[P * 24];
    const refusal_watch watch = { (unsigned char *)word, sizeof word };
    (void)unused;
    for (int i = 0; i < P * 24; i++) words[i] = (uint32_t)(i + 1) * 2654435761u;
    for (int vector = 0; vector < 2; vector++) {
        const int width = vector ? 24 : 6;
        trn_rand_set_state_args set = { .engine = vector ? TRN_ENGINE_VECTOR : TRN_ENGINE_GPSIMD,
                                        .generation = TRN_TRAINIUM3,
                                        .state = &state,
                                        .gpsimd = &gpsimd,
                                        .src_seeds = trn_tensor_2d(TRN_U32, words, 32, width) };
        memset(&state, 0xff, sizeof state);
        memset(&gpsimd, 0xff, sizeof gpsimd);
        state.seeded = gpsimd.seeded = false;
        assert_int_equal(trn_rand_set_state(&set), TRN_OK);
        trn_rng_args draw = rng_of(vector ? 3 : 4, TRN_U32, 33, 5);
        REFUSED(trn_rng, draw, TRN_EINVAL, "has no state in lane 32: it was never seeded", &watch);
        draw.dst.shape[0] = 32;
        assert_int_equal(trn_rng(&draw), TRN_OK);
        CASES_EQUAL(twin_xorwow(words), word[0], "the first word of lane 0");
        words[0] = 2654435761u; /* the twin has moved it on */
        for (int i = 1; i < 6; i++) words[i] = (uint32_t)(i + 1) * 2654435761u;
        draw = rng_of(1, TRN_U32, 1, 5);
        if (vector) REFUSED(trn_rng, draw, TRN_EINVAL, "state has no state in lane 0", &watch); /* the LFSR */
        seed_all(3);
        assert_int_equal(trn_rand_set_state(&set), TRN_OK);
        static trn_vector_state fresh;
        static trn_gpsimd_state fresh_gpsimd;
        trn_vector_state_init(&fresh, 3);
        trn_gpsimd_state_init(&fresh_gpsimd, 3);
        trn_rand_get_state_args get = { .engine = set.engine,
                                        .generation = TRN_TRAINIUM3,
                                        .state = &state,
                                        .gpsimd = &gpsimd,
                                        .dst = trn_tensor_2d(TRN_U32, again, P, width) };
        assert_int_equal(trn_rand_get_state(&get), TRN_OK);
        assert_memory_equal(again, words, (size_t)(32 * width) * sizeof words[0]);
        get.state = &fresh, get.gpsimd = &fresh_gpsimd;
        static uint32_t untouched[P * 24];
        get.dst.data = untouched;
        assert_int_equal(trn_rand_get_state(&get), TRN_OK);
        assert_memory_equal(again + 32 * width, untouched + 32 * width, (size_t)((P - 32) * width) * sizeof words[0]);
    }
}

/* ---- what is refused ---- */

static void refusals(void **unused)
{
    static trn_vector_state before;
    static trn_gpsimd_state none;
    static uint32_t words[P * 24];
    static float probs[4] = { 0, 1, 1.5f, 0 };
    const refusal_watch watch = { (unsigned char *)word, sizeof word };
    (void)unused;
    assert_int_equal(trn_rng(NULL), TRN_EINVAL);
    assert_int_equal(trn_rand2(NULL), TRN_EINVAL);
    assert_int_equal(trn_dropout(NULL), TRN_EINVAL);
    assert_int_equal(trn_set_rng_seed(NULL), TRN_EINVAL);
    assert_int_equal(trn_rand_set_state(NULL), TRN_EINVAL);
    assert_int_equal(trn_rand_get_state(NULL), TRN_EINVAL);
    seed_all(1);
    before = state;

    trn_rng_args a = rng_of(1, TRN_F32, 4, 4);
    REFUSED(trn_rng, a, TRN_EFORMAT, "dst is float32; rng writes integers", &watch);
    a = rng_of(2, TRN_U32, 4, 4);
    a.generation = TRN_TRAINIUM1;
    REFUSED(trn_rng, a, TRN_EUNSUPPORTED, "rng on the gpsimd engine is not available on Trainium1", &watch);
    a = rng_of(1, TRN_U32, 4, 4);
    a.engine = TRN_ENGINE_SCALAR;
    REFUSED(trn_rng, a, TRN_EINVAL, "engine is scalar, which does not execute rng", &watch);
    a = rng_of(1, TRN_U32, 4, 4);
    a.state = NULL;
    REFUSED(trn_rng, a, TRN_EINVAL, "state, which holds the vector engine's generators, is null", &watch);
    a = rng_of(2, TRN_U32, 4, 4);
    a.gpsimd = &none;
    REFUSED(trn_rng, a, TRN_EINVAL, "gpsimd was never seeded", &watch);
    a = rng_of(1, TRN_U32, 129, 4);
    REFUSED(trn_rng, a, TRN_ELIMIT, "dst has 129 partitions", &watch);

    trn_rand2_args r = { .dst = trn_tensor_2d(TRN_F32, word, 4, 4), .max = 1, .state = &state };
    r.generation = TRN_TRAINIUM2;
    REFUSED(trn_rand2, r, TRN_EUNSUPPORTED, "rand2 is not available on Trainium2", &watch);
    r.generation = TRN_GENERATION_DEFAULT;
    r.dst.format = TRN_F8_E4M3FN;
    REFUSED(trn_rand2, r, TRN_EFORMAT, "dst is float8_e4m3fn, which rand2 does not write", &watch);
    r.dst.format = TRN_F32;
    r.min = 1;
    REFUSED(trn_rand2, r, TRN_EINVAL, "min 1 is not below max 1 in partition 0", &watch);
    r.min = NAN;
    REFUSED(trn_rand2, r, TRN_EINVAL, "is not below max 1", &watch);
    r.min = -3e38f, r.max = 3e38f;
    REFUSED(trn_rand2, r, TRN_EINVAL, "is more than float32 holds", &watch);
    r.min = 0;
    r.max_tile = trn_tensor_2d(TRN_F32, probs, 4, 1);
    REFUSED(trn_rand2, r, TRN_EINVAL, "min 0 is not below max 0 in partition 0", &watch);
    r.max_tile.shape[0] = 3;
    REFUSED(trn_rand2, r, TRN_ESHAPE, "max_tile has 3 partitions of 1 elements; it takes one for each of 4", &watch);

    trn_dropout_args d = { .dst = trn_tensor_2d(TRN_F32, word, 4, 4),
                           .data = trn_tensor_2d(TRN_F32, words, 4, 4),
                           .prob = 1.01f,
                           .state = &state };
    REFUSED(trn_dropout, d, TRN_EINVAL, "prob is 1.01 in partition 0; it is 0 to 1", &watch);
    d.prob = NAN;
    REFUSED(trn_dropout, d, TRN_EINVAL, "it is 0 to 1", &watch);
    d.prob_tile = trn_tensor_2d(TRN_F32, probs, 4, 1);
    REFUSED(trn_dropout, d, TRN_EINVAL, "prob is 1.5 in partition 2", &watch);
    d.prob_tile.format = TRN_I32;
    REFUSED(trn_dropout, d, TRN_EFORMAT, "prob_tile is int32; probabilities are floats", &watch);
    d.prob_tile.format = TRN_BF16;
    d.dst.format = d.data.format = TRN_I32;
    REFUSED(trn_dropout, d, TRN_EFORMAT, "prob_tile is bfloat16; for data of int32 it is float32", &watch);
    d.prob_tile.rank = 0;
    d.prob = 0.5f;
    d.data.format = TRN_F32;
    REFUSED(trn_dropout, d, TRN_EFORMAT, "dst is int32 and data is float32; dropout changes no format", &watch);
    d.dst.format = d.data.format = TRN_F8_E8M0;
    REFUSED(trn_dropout, d, TRN_EFORMAT, "data is float8_e8m0fnu, which has no zero", &watch);
    d.dst.format = d.data.format = TRN_F32;
    d.data.data = word + 1;
    REFUSED(trn_dropout, d, TRN_EINVAL, "dst overlaps data", &watch);

    trn_set_rng_seed_args s = { .src_seeds = trn_tensor_2d(TRN_U16, words, 1, 1), .state = &state };
    REFUSED(trn_set_rng_seed, s, TRN_EFORMAT, "src_seeds is uint16; a seed has 32 bits", &watch);
    s.src_seeds = trn_tensor_2d(TRN_U32, words, 1, 2);
    REFUSED(trn_set_rng_seed, s, TRN_ESHAPE, "src_seeds has 1 partitions of 2 elements; it takes 1 of 1", &watch);
    s.src_seeds.shape[1] = 1;
    s.state = NULL;
    REFUSED(trn_set_rng_seed, s, TRN_EINVAL, "state, which holds", &watch);

    trn_rand_set_state_args t = { .src_seeds = trn_tensor_2d(TRN_U32, words, P, 6),
                                  .state = &state,
                                  .gpsimd = &gpsimd };
    for (int i = 0; i < P * 24; i++) words[i] = 5;
    t.generation = TRN_TRAINIUM1;
    REFUSED(trn_rand_set_state, t, TRN_EUNSUPPORTED, "rand_set_state is not available on Trainium1", &watch);
    t.generation = TRN_TRAINIUM2;
    t.engine = TRN_ENGINE_VECTOR;
    REFUSED(trn_rand_set_state, t, TRN_EUNSUPPORTED,
            "rand_set_state on the vector engine is not available on Trainium2", &watch);
    t.generation = TRN_TRAINIUM3;
    REFUSED(trn_rand_set_state, t, TRN_ESHAPE, "src_seeds has 128 partitions of 6 elements; it takes 128 of 24",
            &watch);
    t.src_seeds.shape[1] = 24;
    memset(words + 24 * 7 + 6 * 2, 0, 5 * sizeof words[0]);
    REFUSED(trn_rand_set_state, t, TRN_EINVAL, "the first five words of partition 7, state 2 are all zero", &watch);
    t.src_seeds.format = TRN_I32;
    REFUSED(trn_rand_set_state, t, TRN_EFORMAT, "src_seeds is int32; states are uint32", &watch);
    t.src_seeds.format = TRN_U32;
    t.state = NULL;
    REFUSED(trn_rand_set_state, t, TRN_EINVAL, "state, which holds the vector engine's generators, is null", &watch);
    t.engine = TRN_ENGINE_DMA;
    REFUSED(trn_rand_set_state, t, TRN_EINVAL, "engine is dma", &watch);
    t.engine = TRN_ENGINE_GPSIMD;
    t.unlimited = true;
    t.src_seeds = trn_tensor_2d(TRN_U32, words, 129, 6);
    REFUSED(trn_rand_set_state, t, TRN_ELIMIT, "src_seeds has 129 partitions", &watch);

    trn_rand_get_state_args g = { .dst = trn_tensor_2d(TRN_U32, word, P, 6), .gpsimd = &none };
    REFUSED(trn_rand_get_state, g, TRN_EINVAL, "gpsimd was never seeded", &watch);
    g.gpsimd = NULL;
    REFUSED(trn_rand_get_state, g, TRN_EINVAL, "gpsimd, which holds the gpsimd engine's generators, is null", &watch);
    g.dst.shape[1] = 7;
    REFUSED(trn_rand_get_state, g, TRN_ESHAPE, "dst has 128 partitions of 7 elements; it takes 128 of 6", &watch);

    assert_memory_equal(&before, &state, sizeof state); /* nobody drew a word */
    trn_rng_args nothing = rng_of(1, TRN_U32, 4, 0);
    assert_int_equal(trn_rng(&nothing), TRN_OK);
    assert_memory_equal(&before, &state, sizeof state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_go_by_lanes),
        cmocka_unit_test(low_bits),
        cmocka_unit_test(more_than_the_lanes),
        cmocka_unit_test(a_step_begins_anew),
        cmocka_unit_test(numbers_follow_the_definition),
        cmocka_unit_test(numbers_are_uniform),
        cmocka_unit_test(drops_follow_the_words),
        cmocka_unit_test(the_least_word),
        cmocka_unit_test(the_largest_word),
        cmocka_unit_test(seeds),
        cmocka_unit_test(states_come_back),
        cmocka_unit_test(few_lanes),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
