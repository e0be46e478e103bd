/* test_convert_random.c - stochastic rounding by trn_convert: places, parts, shares, words from a caller's generator.
 * SPDX-License-Identifier: MIT
 */
#include "twin/convert.h"

/* ---- randomness ---- */

/* Element i takes field i, whatever the strides and however the call is cut; seed and stream both matter. */
static void stochastic_rounding_follows_the_position(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float x[N];
    static uint16_t whole[N];
    for (int i = 0; i < N; i++) x[i] = 1.0f + 0x1p-9f * (float)(i % 4); /* quarters of a BF16 step */
    for (int bits = 1; bits <= 32; bits++) {
        trn_convert_args a = arguments(&kinds[BF16], whole, &kinds[F32], x, N);
        a.rounding = TRN_STOCHASTIC;
        a.sr_bits = bits;
        a.seed = 0x123456789abcdefu;
        a.stream = 0xfedcba9876543210u;
        must(a);
        check_row(&a, &kinds[BF16], (const unsigned char *)whole, &kinds[F32], (const unsigned char *)x, N, 1);
        const uint64_t first = digest(whole, sizeof whole);
        a.seed ^= 1ull << 40;
        must(a);
        const uint64_t other_seed = digest(whole, sizeof whole);
        a.seed ^= 1ull << 40;
        a.stream ^= 1ull << 40;
        must(a);
        const uint64_t other_stream = digest(whole, sizeof whole);
        assert_true(first != other_seed && first != other_stream && other_seed != other_stream);
    }
}

/* A part takes the fields it would take inside its whole, wherever it is cut, past 2^32 blocks, and through 2^64. */
static void parts_round_as_their_whole(void **state)
{
    (void)state;
    enum { N = 3000 };
    static const uint64_t firsts[] = { 0, 1, 0x3fffffff0u, 0x3ffffffffu, UINT64_MAX - 1000, UINT64_MAX };
    static const int bits[] = { 32, 16, 8, 13 };
    static unsigned char x[4 * N];
    static uint16_t whole[N], parts[N];
    uint64_t rng = 33;
    fill_random(&kinds[F32], x, N, &rng);
    for (int f = 0; f < COUNT(firsts); f++)
        for (int b = 0; b < COUNT(bits); b++) {
            trn_convert_args a = arguments(&kinds[BF16], whole, &kinds[F32], x, N);
            a.rounding = TRN_STOCHASTIC;
            a.sr_bits = bits[b];
            a.index = firsts[f];
            must(a);
            check_row(&a, &kinds[BF16], (const unsigned char *)whole, &kinds[F32], x, N, 1);
            for (int at = 0, n; at < N; at += n) {
                n = 1 + cases_below(&rng, N - at);
                trn_convert_args part = arguments(&kinds[BF16], parts + at, &kinds[F32], x + 4 * at, n);
                part.rounding = TRN_STOCHASTIC;
                part.sr_bits = bits[b];
                part.index = firsts[f] + (uint64_t)at;
                must(part);
            }
            assert_memory_equal(whole, parts, sizeof whole);
        }
}

/* The chance to go up is the position between the neighbours: 0, 1/4, 1/2 and 3/4 of 2^17 draws each. */
static void stochastic_rounding_is_fair(void **state)
{
    (void)state;
    enum { N = 1 << 17 };
    static float x[N];
    static uint16_t y[N];
    static const trn_format formats[2] = { TRN_BF16, TRN_F16 };
    for (int f = 0; f < 2; f++)
        for (int quarter = 0; quarter < 4; quarter++) {
            const float step = f ? 0x1p-24f : 0x1p-133f; /* subnormals: the least steps of F16 and BF16 */
            for (int i = 0; i < N; i++) x[i] = step * (1.0f + 0.25f * (float)quarter);
            trn_convert_args a = arguments(&kinds[f ? F16 : BF16], y, &kinds[F32], x, N);
            assert_int_equal(a.dst.format, formats[f]);
            a.rounding = TRN_STOCHASTIC;
            must(a);
            int up = 0;
            for (int i = 0; i < N; i++) up += y[i] == 2;
            const int fair = N / 4 * quarter, off = up - fair;
            /* six standard deviations; deterministic, since the seed is fixed */
            if (quarter == 0 ? off != 0 : off < -6 * 157 || off > 6 * 157)
                fail_msg("%s: %d of %d went up, %d would be fair", kinds[f ? F16 : BF16].name, up, N, fair);
        }
}

/* ---- words from a generator with a state ---- */

/* After a call that took `words` of them, the generator's next word is the one that follows. */
static void check_drawn(trn_xorwow_vector *g, size_t words, const char *what)
{
    uint32_t next;
    trn_xorwow_vector_words(g, &next, 1, TRN_ISA_PORTABLE);
    CASES_EQUAL(drawn[words], next, "the word after %d, %s", (int)words, what);
}

static size_t words_for(const trn_convert_args *a, int64_t n)
{
    const int64_t share = a->sr_bits == 8 ? 4 : a->sr_bits == 16 ? 2 : 1;
    if (a->dst.format == a->src.format || a->dst.format == TRN_F32) return 0; /* nothing can round */
    return (size_t)((n + share - 1) / share);
}

/* Row-major, whatever the strides, the runs and the instruction set; and no word too many. */
static void xorwow_words_come_row_major(void **state)
{
    (void)state;
    static const int bits[] = { 0, 8, 16, 32, 13 };
    uint64_t rng = 34;
    trn_xorwow_vector start, g;
    trn_xorwow_vector_seed(&start, 7);
    for (int number = 0; number < 1500; number++) {
        const kind *to = random_kind(&rng), *from = random_kind(&rng);
        trn_convert_args a = arguments(to, target, from, source, 1);
        if (!random_call(&a, to, from, &rng)) continue;
        a.rounding = TRN_STOCHASTIC;
        a.sr_bits = bits[cases_below(&rng, COUNT(bits))];
        trn_xorwow_vector_words(&start, drawn, (size_t)cases_below(&rng, 700), TRN_ISA_AUTO);
        g = start;
        trn_xorwow_vector_words(&g, drawn, 5000, TRN_ISA_AUTO);
        g = start;
        a.xorwow = &g;
        check_view(&a, to, from, "xorwow view", number);
        check_drawn(&g, words_for(&a, trn_tensor_elements(a.dst)), "a view");
    }
}

/* Large enough for threads, which are not used, and for stores past the caches; modes without random bits draw none. */
static void xorwow_words_in_large_arrays(void **state)
{
    (void)state;
    static unsigned char x[4 * DRAWN], y[2 * DRAWN];
    const int64_t n = DRAWN - 3;
    uint64_t rng = 35;
    trn_xorwow_vector g;
    fill_random(&kinds[F32], x, n, &rng);
    for (int i = 0; i < COUNT(all_isas); i++)
        for (int mode = 0; mode < 2; mode++) {
            trn_convert_args a = arguments(&kinds[mode ? F16 : BF16], y, &kinds[F32], x, n);
            if (!trn_isa_supported(all_isas[i])) continue;
            trn_xorwow_vector_seed(&g, 8);
            trn_xorwow_vector_words(&g, drawn, DRAWN, TRN_ISA_AUTO);
            trn_xorwow_vector_seed(&g, 8);
            a.isa = all_isas[i];
            a.xorwow = &g;
            must(a); /* nearest even */
            a.rounding = TRN_STOCHASTIC;
            a.sr_bits = mode ? 16 : 0;
            must(a);
            check_row(&a, &kinds[mode ? F16 : BF16], y, &kinds[F32], x, n, 1);
            check_drawn(&g, words_for(&a, n), "a large array");
        }

    enum { ROWS = 5, COLUMNS = 20001, PITCH = COLUMNS + 10 }; /* rows that are longer than a tile, with gaps */
    trn_convert_args a = arguments(&kinds[BF16], y, &kinds[F32], x, 1);
    a.dst = trn_tensor_2d(TRN_BF16, y, ROWS, COLUMNS);
    a.src = trn_tensor_2d(TRN_F32, x, ROWS, COLUMNS);
    a.src.stride[0] = PITCH;
    a.src.stride[1] = 1;
    a.rounding = TRN_STOCHASTIC;
    a.xorwow = &g;
    trn_xorwow_vector_seed(&g, 8);
    must(a);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const uint32_t code = load(x + 4 * (i / COLUMNS * PITCH + i % COLUMNS), 4);
        const uint32_t right = oracle(&kinds[BF16], &kinds[F32], code, way_of(&a, (uint64_t)i));
        CASES_EQUAL(right, load(y + 2 * i, 2), "long row, %d", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stochastic_rounding_follows_the_position),
        cmocka_unit_test(parts_round_as_their_whole),
        cmocka_unit_test(stochastic_rounding_is_fair),
        cmocka_unit_test(xorwow_words_come_row_major),
        cmocka_unit_test(xorwow_words_in_large_arrays),
    };
    return cmocka_run_group_tests_name("convert_random", tests, NULL, NULL);
}
