/* test_vector_statistics.c - bn_stats and bn_aggr: known moments, their definition written out, long tensors, refusals.
 * SPDX-License-Identifier: MIT
 *
 * Random arguments against the twin: test_engine_twin_search.c.
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

enum { P = 21, MOST = 3000 };
static float x[P * MOST], stats[P * 6], moments[P * 2];

static trn_bn_stats_args stats_of(int partitions, int elements)
{
    return (trn_bn_stats_args){ .dst = trn_tensor_2d(TRN_F32, stats, partitions, 6),
                                .data = trn_tensor_2d(TRN_F32, x, partitions, elements) };
}

static trn_bn_aggr_args moments_of(float *triples, int partitions, int count)
{
    return (trn_bn_aggr_args){ .dst = trn_tensor_2d(TRN_F32, moments, partitions, 2),
                               .data = trn_tensor_2d(TRN_F32, triples, partitions, 3 * count) };
}

static void fill(uint64_t seed, int n)
{
    for (int i = 0; i < n; i++) x[i] = (float)(int32_t)cases_u32(&seed) * 0x1p-29f + 0.75f;
}

/* ---- known moments ---- */

/* Small integers: no operation rounds, whatever the formula. */
static void integers_are_exact(void **unused)
{
    (void)unused;
    for (int i = 0; i < 512; i++) x[i] = (float)(i / 2 % 4 * 2 + i % 2); /* even elements 0 2 4 6, odd ones 1 3 5 7 */
    trn_bn_stats_args one = stats_of(1, 512);
    assert_int_equal(trn_bn_stats(&one), TRN_OK);
    const float expected[6] = { 256, 3, 256 * 5, 256, 4, 256 * 5 };
    for (int i = 0; i < 6; i++) CASES_EQUAL(cases_bits_of(expected[i]), cases_bits_of(stats[i]), "statistic %d", i);
    trn_bn_aggr_args all = moments_of(stats, 1, 2);
    assert_int_equal(trn_bn_aggr(&all), TRN_OK);
    assert_true(moments[0] == 3.5f && moments[1] == 5.25f); /* of 0..7: the population's, not the sample's */
}

/* 512 values, and 2048 as four times 512 in one array of triples, against binary64. */
static void moments_are_the_populations(void **unused)
{
    static float all[P * 24];
    (void)unused;
    for (int tiles = 1; tiles <= 4; tiles += 3) {
        fill(7, P * 512 * tiles);
        for (int t = 0; t < tiles; t++) {
            trn_bn_stats_args one = stats_of(P, 512);
            one.data.data = x + 512 * t;
            one.data.stride[0] = 512 * tiles;
            one.data.stride[1] = 1;
            one.dst.data = all + 6 * t;
            one.dst.stride[0] = 6 * tiles;
            one.dst.stride[1] = 1;
            assert_int_equal(trn_bn_stats(&one), TRN_OK);
        }
        trn_bn_aggr_args join = moments_of(all, P, 2 * tiles);
        assert_int_equal(trn_bn_aggr(&join), TRN_OK);
        for (int p = 0; p < P; p++) {
            double mean = 0, square = 0;
            const int n = 512 * tiles;
            for (int i = 0; i < n; i++) mean += (double)x[p * n + i];
            mean /= n;
            for (int i = 0; i < n; i++) square += ((double)x[p * n + i] - mean) * ((double)x[p * n + i] - mean);
            assert_true(fabs((double)moments[2 * p] - mean) < 2e-6);
            assert_true(fabs((double)moments[2 * p + 1] - square / n) < 2e-5 * square / n);
        }
    }
}

/* ---- the definition ---- */

/* One parity, every operation through memory. */
static void define_half(const float *from, int n, float *out)
{
    volatile float sum = 0, square = 0, mean = 0;
    int count = 0;
    for (int i = 0; i < n; i += 2, count++) sum = sum + from[i];
    if (count) mean = sum / (float)count;
    for (int i = 0; i < n; i += 2) {
        volatile float d = from[i] - mean, product = d * d;
        square = square + product;
    }
    out[0] = (float)count;
    out[1] = isnan(mean) ? cases_float_of(0x7fc00000) : mean;
    out[2] = isnan(square) ? cases_float_of(0x7fc00000) : square;
}

static void sizes_follow_the_definition(void **unused)
{
    static const int sizes[] = { 0, 1, 2, 3, 4, 5, 7, 16, 31, 511, 512, 513, 1024, 1537, MOST };
    (void)unused;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const int n = sizes[s];
        fill(s, P * n);
        if (n > 4) x[n + 4] = INFINITY, x[2 * n + 3] = cases_float_of(0xffc12345), x[3 * n] = -0.0f;
        for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            with_threads(i % 2 ? 3 : 1);
            trn_bn_stats_args args = stats_of(P, n);
            args.unlimited = n > 512;
            args.isa = all_isas[i];
            memset(stats, 0x5a, sizeof stats);
            assert_int_equal(trn_bn_stats(&args), TRN_OK);
            for (int p = 0; p < P; p++) {
                float expected[6];
                define_half(x + p * n, n, expected);
                define_half(x + p * n + 1, n - 1, expected + 3);
                for (int k = 0; k < 6; k++)
                    CASES_EQUAL(cases_bits_of(expected[k]), cases_bits_of(stats[6 * p + k]),
                                "%d elements, partition %d, %d", n, p, k);
            }
        }
    }
    with_threads(1);
}

/* More triples than a chunk, empty ones and a NaN among them. */
static void triples_follow_the_definition(void **unused)
{
    enum { TRIPLES = 700 };
    static float triple[P * 3 * TRIPLES];
    uint64_t rng = 5;
    (void)unused;
    for (int i = 0; i < P * TRIPLES; i++) {
        triple[3 * i] = (float)cases_below(&rng, 40);
        triple[3 * i + 1] = (float)(int32_t)cases_u32(&rng) * 0x1p-30f;
        triple[3 * i + 2] = (float)cases_u32(&rng) * 0x1p-20f;
    }
    for (int i = 0; i < TRIPLES; i++) triple[3 * TRIPLES + 3 * i] = 0; /* nothing was counted */
    triple[2 * 3 * TRIPLES + 4] = cases_float_of(0xff812345);
    trn_bn_aggr_args args = moments_of(triple, P, TRIPLES);
    assert_int_equal(trn_bn_aggr(&args), TRN_OK);
    for (int p = 0; p < P; p++) {
        volatile float c = 0, m = 0, s = 0;
        for (int i = 0; i < TRIPLES; i++) {
            const float *t = triple + 3 * (p * TRIPLES + i);
            if (t[0] == 0) continue;
            if (c == 0) {
                c = t[0], m = t[1], s = t[2];
                continue;
            }
            volatile float total = c + t[0], delta = t[1] - m, share = t[0] / total;
            volatile float square = delta * delta, weight = c * share, apart = square * weight, step = delta * share;
            s = s + t[2];
            s = s + apart;
            m = m + step;
            c = total;
        }
        volatile float variance = c == 0 ? 0 : s / c;
        const uint32_t mean_bits = isnan(m) ? 0x7fc00000 : cases_bits_of(m);
        CASES_EQUAL(c == 0 ? 0 : mean_bits, cases_bits_of(moments[2 * p]), "mean of partition %d", p);
        CASES_EQUAL(isnan(variance) ? 0x7fc00000 : cases_bits_of(variance), cases_bits_of(moments[2 * p + 1]),
                    "variance of partition %d", p);
    }
    assert_true(moments[2] == 0 && moments[3] == 0);
    assert_true(isnan(moments[4]));
}

/* In and out of narrow formats: the results of the float32 data, cast once. */
static void formats_are_cast_once(void **unused)
{
    static uint16_t half[P * 512], narrow[P * 6];
    uint64_t rng = 3;
    (void)unused;
    for (int i = 0; i < P * 512; i++) {
        half[i] = (uint16_t)(0x3f00 + cases_below(&rng, 0x200));
        x[i] = cases_float_of((uint32_t)half[i] << 16);
    }
    trn_bn_stats_args wide = stats_of(P, 512), args = wide;
    args.data = trn_tensor_2d(TRN_BF16, half, P, 512);
    args.dst = trn_tensor_2d(TRN_BF16, narrow, P, 6);
    args.rounding = TRN_TOWARD_ZERO;
    assert_int_equal(trn_bn_stats(&wide), TRN_OK);
    assert_int_equal(trn_bn_stats(&args), TRN_OK);
    for (int i = 0; i < P * 6; i++) CASES_EQUAL(cases_bits_of(stats[i]) >> 16, narrow[i], "%d", i);
}

/* ---- what is refused ---- */

static void refusals(void **unused)
{
    const refusal_watch watch = { (unsigned char *)stats, sizeof stats };
    (void)unused;
    assert_int_equal(trn_bn_stats(NULL), TRN_EINVAL);
    assert_int_equal(trn_bn_aggr(NULL), TRN_EINVAL);
    trn_bn_stats_args a = stats_of(P, 513);
    REFUSED(trn_bn_stats, a, TRN_ELIMIT, "data has 513 elements per partition; bn_stats takes at most 512", &watch);
    a = stats_of(P, 512);
    a.dst.shape[1] = 5;
    REFUSED(trn_bn_stats, a, TRN_ESHAPE, "dst has 21 partitions of 5 elements; it takes 21 of 6", &watch);
    a = stats_of(P, 512);
    a.dst.shape[0] = 20;
    REFUSED(trn_bn_stats, a, TRN_ESHAPE, "dst has 20 partitions of 6 elements; it takes 21 of 6", &watch);
    a = stats_of(1, 6);
    a.data.data = stats;
    REFUSED(trn_bn_stats, a, TRN_EINVAL, "dst overlaps data", &watch);
    a = stats_of(129, 2);
    REFUSED(trn_bn_stats, a, TRN_ELIMIT, "data has 129 partitions; a tile has at most 128", &watch);
    a = stats_of(P, 8);
    a.engine = TRN_ENGINE_GPSIMD;
    REFUSED(trn_bn_stats, a, TRN_EINVAL, "engine is gpsimd, which does not execute bn_stats", &watch);
    a = stats_of(P, 8);
    a.data.rank = 0;
    REFUSED(trn_bn_stats, a, TRN_ESHAPE, "data is missing", &watch);

    trn_bn_aggr_args b = moments_of(x, 2, 4);
    b.dst.data = stats;
    b.data.shape[1] = 10;
    REFUSED(trn_bn_aggr, b, TRN_ESHAPE, "data has 10 elements per partition; bn_aggr takes triples", &watch);
    b.data.shape[1] = 12;
    b.dst.shape[1] = 3;
    REFUSED(trn_bn_aggr, b, TRN_ESHAPE, "dst has 2 partitions of 3 elements; it takes 2 of 2", &watch);
    b.dst.shape[1] = 2;
    b.data.data = stats + 1;
    REFUSED(trn_bn_aggr, b, TRN_EINVAL, "dst overlaps data", &watch);
    b = moments_of(x, 2, 4);
    b.engine = TRN_ENGINE_SCALAR;
    REFUSED(trn_bn_aggr, b, TRN_EINVAL, "engine is scalar, which does not execute bn_aggr", &watch);
}

static void every_generation_has_them(void **unused)
{
    (void)unused;
    fill(1, P * 6);
    for (int g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g++) {
        trn_bn_stats_args a = stats_of(P, 6);
        trn_bn_aggr_args b = moments_of(stats, P, 2);
        a.generation = b.generation = (trn_generation)g;
        a.engine = b.engine = TRN_ENGINE_VECTOR;
        assert_int_equal(trn_bn_stats(&a), TRN_OK);
        assert_int_equal(trn_bn_aggr(&b), TRN_OK);
    }
    trn_bn_stats_args none = stats_of(0, 6);
    assert_int_equal(trn_bn_stats(&none), TRN_OK);
    trn_bn_aggr_args nothing = moments_of(stats, P, 0);
    memset(moments, 0x5a, sizeof moments);
    assert_int_equal(trn_bn_aggr(&nothing), TRN_OK);
    for (int i = 0; i < 2 * P; i++) assert_true(moments[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact),          cmocka_unit_test(moments_are_the_populations),
        cmocka_unit_test(sizes_follow_the_definition), cmocka_unit_test(triples_follow_the_definition),
        cmocka_unit_test(formats_are_cast_once),       cmocka_unit_test(refusals),
        cmocka_unit_test(every_generation_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
