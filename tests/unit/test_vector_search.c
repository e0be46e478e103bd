/* test_vector_search.c - max8, nc_find_index8, nc_match_replace8: the page's example, ties, NaN and zeros, an exact
 * top-k made of rounds, limits, refusals.
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

enum { P = 18, LONG = 16384, WIDER = 70000 };
static float x[P * LONG], y[P * LONG], vals[P * 8];
static uint32_t where[P * 8];

static trn_max8_args max_of(int partitions, int elements)
{
    return (trn_max8_args){ .dst = trn_tensor_2d(TRN_F32, vals, partitions, 8),
                            .src = trn_tensor_2d(TRN_F32, x, partitions, elements) };
}

static trn_nc_find_index8_args find_of(int partitions, int elements)
{
    return (trn_nc_find_index8_args){ .dst = trn_tensor_2d(TRN_U32, where, partitions, 8),
                                      .data = trn_tensor_2d(TRN_F32, x, partitions, elements),
                                      .vals = trn_tensor_2d(TRN_F32, vals, partitions, 8) };
}

static trn_nc_match_replace8_args replace_of(int partitions, int elements)
{
    return (trn_nc_match_replace8_args){ .dst = trn_tensor_2d(TRN_F32, y, partitions, elements),
                                         .data = trn_tensor_2d(TRN_F32, x, partitions, elements),
                                         .vals = trn_tensor_2d(TRN_F32, vals, partitions, 8),
                                         .imm = -1.0f,
                                         .dst_idx = trn_tensor_2d(TRN_U32, where, partitions, 8) };
}

/* ---- the page's example ---- */

static void published_example(void **unused)
{
    static const float data[11] = { 1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8 }, wanted[8] = { 3, 8, 8, 8, 8, 8, 8, 8 };
    static const uint32_t descending[8] = { 2, 10, 9, 8, 7, 6, 5, 4 }, ascending[8] = { 2, 4, 5, 6, 7, 8, 9, 10 };
    (void)unused;
    memcpy(x, data, sizeof data);
    memcpy(vals, wanted, sizeof wanted);
    trn_nc_match_replace8_args replace = replace_of(1, 11);
    assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
    for (int i = 0; i < 8; i++) CASES_EQUAL(descending[i], where[i], "nc_match_replace8, %d", i);
    for (int i = 0; i < 11; i++) assert_true(y[i] == (data[i] == 3 || data[i] == 8 ? -1.0f : data[i]));
    trn_nc_find_index8_args find = find_of(1, 11);
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    for (int i = 0; i < 8; i++) CASES_EQUAL(ascending[i], where[i], "nc_find_index8, %d", i);

    static uint16_t narrow[8];
    vals[0] = 5, vals[7] = 9;
    find.dst = replace.dst_idx = trn_tensor_2d(TRN_U16, narrow, 1, 8);
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    CASES_EQUAL(0xffff, narrow[0], "5 is not there");
    CASES_EQUAL(4, narrow[1], "the first 8");
    CASES_EQUAL(0xffff, narrow[7], "9 is not there");
    assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
    CASES_EQUAL(0xffff, narrow[0], "nor to be replaced");
    CASES_EQUAL(4, narrow[6], "the last 8 of vals takes the first");
    assert_true(y[10] == 8.0f && y[9] == -1.0f); /* six values, seven elements */
}

/* Fewer elements than equal values: the late ones (the early ones) go without. */
static void equals_compete(void **unused)
{
    (void)unused;
    for (int i = 0; i < 8; i++) x[i] = i % 3 ? 0 : 7, vals[i] = 7; /* 7 at 0, 3, 6 */
    trn_nc_find_index8_args find = find_of(1, 8);
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    for (uint32_t i = 0; i < 8; i++) CASES_EQUAL(i < 3 ? 3 * i : 0xffffffffu, where[i], "found, %d", (int)i);
    trn_nc_match_replace8_args replace = replace_of(1, 8);
    replace.imm = 7; /* what was put there is not found again */
    assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
    for (uint32_t i = 0; i < 8; i++) CASES_EQUAL(i > 4 ? 3 * (7 - i) : 0xffffffffu, where[i], "replaced, %d", (int)i);
}

/* ---- order and equality ---- */

static uint32_t b(float value) { return cases_bits_of(value); }

static void nan_is_last_and_zeros_are_apart(void **unused)
{
    const float nan = cases_float_of(0x7fffffff), minus_nan = cases_float_of(0xffffffff);
    const float data[9] = { minus_nan, -0.0f, nan, -INFINITY, 0.0f, INFINITY, -0.0f, 0x1p-149f, -0x1p-149f };
    const uint32_t top[8] = { b(INFINITY), b(0x1p-149f),  b(0.0f),      b(-0.0f),
                              b(-0.0f),    b(-0x1p-149f), b(-INFINITY), 0x7fc00000 };
    (void)unused;
    for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
        if (!trn_isa_supported(all_isas[i])) continue;
        memcpy(x, data, sizeof data);
        trn_max8_args max = max_of(1, 9);
        max.isa = all_isas[i];
        assert_int_equal(trn_max8(&max), TRN_OK);
        for (int k = 0; k < 8; k++) CASES_EQUAL(top[k], b(vals[k]), "%d, isa %d", k, (int)i);
        trn_nc_find_index8_args find = find_of(1, 9);
        find.isa = all_isas[i];
        assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
        static const uint32_t at[8] = { 5, 7, 1, 4, 6, 8, 3, 0xffffffff }; /* zeros are equal, NaN is nothing's equal */
        for (int k = 0; k < 8; k++) CASES_EQUAL(at[k], where[k], "where %d is, isa %d", k, (int)i);
    }
}

/* NaN that is left keeps its bits within a format, and is the cast's between two. */
static void what_is_left_is_moved(void **unused)
{
    static uint16_t narrow[9];
    (void)unused;
    for (int i = 0; i < 9; i++) x[i] = (float)i;
    x[2] = cases_float_of(0xff812345);
    for (int i = 0; i < 8; i++) vals[i] = 4;
    trn_nc_match_replace8_args replace = replace_of(1, 9);
    replace.imm = 1.00390625f; /* between two bfloat16 */
    assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
    CASES_EQUAL(0xff812345, b(y[2]), "moved");
    replace.dst = trn_tensor_2d(TRN_BF16, narrow, 1, 9);
    replace.rounding = TRN_TOWARD_POSITIVE;
    assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
    CASES_EQUAL(0xffc0, narrow[2], "cast");
    CASES_EQUAL(0x3f81, narrow[4], "imm, rounded up");
    replace = replace_of(1, 9);
    replace.dst = replace.data; /* in place */
    assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
    assert_true(x[4] == -1.0f && x[3] == 3.0f && x[5] == 5.0f);
    CASES_EQUAL(0xff812345, b(x[2]), "in place");
}

/* Integers beyond 2^24 are rounded before they are compared. */
static void integers_are_numbers(void **unused)
{
    static int32_t data[8] = { 16777217, 16777216, 5, -3, 7, 0, 1, 2 }, top[8];
    (void)unused;
    trn_max8_args max = max_of(1, 8);
    max.src = trn_tensor_2d(TRN_I32, data, 1, 8);
    max.dst = trn_tensor_2d(TRN_I32, top, 1, 8);
    assert_int_equal(trn_max8(&max), TRN_OK);
    static const int32_t sorted[8] = { 16777216, 16777216, 7, 5, 2, 1, 0, -3 };
    assert_memory_equal(top, sorted, sizeof sorted);
    for (int i = 0; i < 8; i++) vals[i] = 16777216.0f;
    trn_nc_find_index8_args find = find_of(1, 8);
    find.data = max.src;
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    assert_true(where[0] == 0 && where[1] == 1 && where[2] == 0xffffffffu);
}

/* ---- rounds of the three: all of a partition, sorted; lower positions first among equals ---- */

static void rounds_sort(void **unused)
{
    enum { F = 512 };
    static float before[P * F];
    (void)unused;
    uint64_t rng = 9;
    for (int i = 0; i < P * F; i++) before[i] = x[i] = (float)cases_below(&rng, 60) - 30;
    float last[P];
    int last_at[P];
    for (int round = 0; round < F / 8; round++) {
        trn_max8_args max = max_of(P, F);
        trn_nc_find_index8_args find = find_of(P, F);
        trn_nc_match_replace8_args replace = replace_of(P, F);
        static uint32_t replaced[P * 8];
        replace.dst = replace.data;
        replace.dst_idx.data = replaced;
        replace.imm = -INFINITY;
        assert_int_equal(trn_max8(&max), TRN_OK);
        assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
        assert_int_equal(trn_nc_match_replace8(&replace), TRN_OK);
        for (int p = 0; p < P; p++)
            for (int i = 0; i < 8; i++) {
                const uint32_t at = where[8 * p + i];
                assert_true(at < F && before[p * F + (int)at] == vals[8 * p + i]);
                if (round || i) {
                    assert_true(vals[8 * p + i] <= last[p]);
                    if (vals[8 * p + i] == last[p]) assert_true((int)at > last_at[p]);
                }
                last[p] = vals[8 * p + i];
                last_at[p] = (int)at;
                uint32_t twice = 0;
                for (int j = 0; j < 8; j++) twice += replaced[8 * p + j] == at;
                assert_int_equal(twice, 1);
            }
    }
    for (int i = 0; i < P * F; i++) assert_true(x[i] == -INFINITY);
}

/* ---- long partitions, threads, instruction sets ---- */

static int descending(const void *a, const void *c)
{
    const float l = *(const float *)a, r = *(const float *)c;
    return l > r ? -1 : l < r;
}

static void long_partitions(void **unused)
{
    static const int sizes[] = { 8, 9, 511, 512, 513, 1025, LONG };
    static float sorted[LONG];
    (void)unused;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
            if (!trn_isa_supported(all_isas[i])) continue;
            const int n = sizes[s], partitions = n == LONG ? 3 : P;
            uint64_t rng = s + 1;
            with_threads(i % 2 ? 3 : 1);
            for (int k = 0; k < partitions * n; k++) x[k] = (float)cases_below(&rng, 4 * n);
            trn_max8_args max = max_of(partitions, n);
            trn_nc_find_index8_args find = find_of(partitions, n);
            max.isa = find.isa = all_isas[i];
            assert_int_equal(trn_max8(&max), TRN_OK);
            assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
            for (int p = 0; p < partitions; p++) {
                memcpy(sorted, x + p * n, (size_t)n * sizeof sorted[0]);
                qsort(sorted, (size_t)n, sizeof sorted[0], descending);
                for (int k = 0; k < 8; k++) {
                    int at = 0, equal = 0;
                    for (int j = 0; j < k; j++) equal += sorted[j] == sorted[k];
                    while (x[p * n + at] != sorted[k] || equal-- > 0) at++;
                    CASES_EQUAL(b(sorted[k]), b(vals[8 * p + k]), "%d elements, partition %d, %d", n, p, k);
                    CASES_EQUAL(at, where[8 * p + k], "%d elements, partition %d, where %d is", n, p, k);
                }
            }
        }
    with_threads(1);
}

/* With .unlimited a partition may be longer than an index of 16 bits. */
static void beyond_the_limits(void **unused)
{
    static uint16_t narrow[8];
    (void)unused;
    for (int i = 0; i < WIDER; i++) x[i] = (float)i;
    for (int i = 0; i < 8; i++) vals[i] = (float)(WIDER - 1 - i);
    trn_nc_find_index8_args find = find_of(1, WIDER);
    find.unlimited = true;
    assert_int_equal(trn_nc_find_index8(&find), TRN_OK);
    for (int i = 0; i < 8; i++) CASES_EQUAL(WIDER - 1 - i, where[i], "%d", i);
    const refusal_watch watch = { (unsigned char *)narrow, sizeof narrow };
    find.dst = trn_tensor_2d(TRN_U16, narrow, 1, 8);
    REFUSED(trn_nc_find_index8, find, TRN_ELIMIT, "dst is uint16, and there are 70000 elements per partition", &watch);
    const float kept = vals[0];
    trn_max8_args max = max_of(1, WIDER);
    max.unlimited = true;
    assert_int_equal(trn_max8(&max), TRN_OK);
    assert_true(vals[0] == kept);
}

/* ---- what is refused ---- */

static void refusals(void **unused)
{
    static unsigned char out[4 * 64];
    const refusal_watch watch = { out, sizeof out };
    (void)unused;
    assert_int_equal(trn_max8(NULL), TRN_EINVAL);
    assert_int_equal(trn_nc_find_index8(NULL), TRN_EINVAL);
    assert_int_equal(trn_nc_match_replace8(NULL), TRN_EINVAL);
    trn_max8_args m = max_of(2, 7);
    m.dst.data = out;
    REFUSED(trn_max8, m, TRN_ELIMIT, "src has 7 elements per partition; max8 takes 8 to 16384", &watch);
    m.src.shape[1] = LONG + 1;
    REFUSED(trn_max8, m, TRN_ELIMIT, "src has 16385 elements per partition; max8 takes 8 to 16384", &watch);
    m.unlimited = true;
    m.src.shape[1] = 7;
    REFUSED(trn_max8, m, TRN_ELIMIT, "max8 takes 8 to 2147483647", &watch);
    m.unlimited = false;
    m.src.shape[1] = 8;
    m.dst.shape[1] = 9;
    REFUSED(trn_max8, m, TRN_ESHAPE, "dst has 2 partitions of 9 elements; it takes 2 of 8", &watch);
    m.dst.shape[1] = 8;
    m.src.data = out + 4;
    REFUSED(trn_max8, m, TRN_EINVAL, "dst overlaps src", &watch);
    m.engine = TRN_ENGINE_TENSOR;
    REFUSED(trn_max8, m, TRN_EINVAL, "engine is tensor, which does not execute max8", &watch);

    trn_nc_find_index8_args f = find_of(2, 12);
    f.dst = trn_tensor_2d(TRN_I32, out, 2, 8);
    REFUSED(trn_nc_find_index8, f, TRN_EFORMAT, "dst is int32; indices are uint16 or uint32", &watch);
    f.dst.format = TRN_U32;
    f.vals.shape[1] = 7;
    REFUSED(trn_nc_find_index8, f, TRN_ESHAPE, "vals has 2 partitions of 7 elements; it takes 2 of 8", &watch);
    f.vals = trn_tensor_2d(TRN_F32, out, 2, 8);
    REFUSED(trn_nc_find_index8, f, TRN_EINVAL, "dst overlaps vals", &watch);
    f = find_of(2, 12);
    f.dst.data = out;
    f.data.data = out;
    REFUSED(trn_nc_find_index8, f, TRN_EINVAL, "dst overlaps data", &watch);
    f = find_of(2, 5);
    f.dst.data = out;
    REFUSED(trn_nc_find_index8, f, TRN_ELIMIT, "data has 5 elements per partition; nc_find_index8 takes 8 to 16384",
            &watch);

    trn_nc_match_replace8_args r = replace_of(2, 16);
    r.dst.data = out;
    r.generation = TRN_TRAINIUM1;
    REFUSED(trn_nc_match_replace8, r, TRN_EUNSUPPORTED, "dst_idx of nc_match_replace8 is not available on Trainium1",
            &watch);
    r.generation = TRN_TRAINIUM3;
    r.dst_idx.format = TRN_U8;
    REFUSED(trn_nc_match_replace8, r, TRN_EFORMAT, "dst_idx is uint8; indices are uint16 or uint32", &watch);
    r.dst_idx = trn_tensor_2d(TRN_U32, out + 64, 2, 8);
    REFUSED(trn_nc_match_replace8, r, TRN_EINVAL, "dst_idx overlaps dst", &watch);
    r.dst_idx = trn_tensor_2d(TRN_U32, x, 2, 8);
    REFUSED(trn_nc_match_replace8, r, TRN_EINVAL, "dst_idx overlaps data", &watch);
    r.dst_idx = trn_tensor_2d(TRN_U32, vals, 2, 8);
    REFUSED(trn_nc_match_replace8, r, TRN_EINVAL, "dst_idx overlaps vals", &watch);
    r.dst_idx.rank = 0;
    r.vals.data = out;
    REFUSED(trn_nc_match_replace8, r, TRN_EINVAL, "dst overlaps vals", &watch);
    r = replace_of(2, 16);
    r.dst = trn_tensor_2d(TRN_F32, out, 2, 15);
    REFUSED(trn_nc_match_replace8, r, TRN_ESHAPE, "data has 2 partitions of 16 elements but dst has 2 of 15", &watch);
    r.data.data = out + 4;
    r.data.shape[1] = 15;
    REFUSED(trn_nc_match_replace8, r, TRN_EINVAL, "dst overlaps data", &watch);
}

static void every_generation_has_them(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2 * 8; i++) x[i] = (float)i;
    for (int g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g++) {
        trn_max8_args m = max_of(2, 8);
        trn_nc_find_index8_args f = find_of(2, 8);
        trn_nc_match_replace8_args r = replace_of(2, 8);
        m.generation = f.generation = r.generation = (trn_generation)g;
        if (g == TRN_TRAINIUM1) r.dst_idx.rank = 0;
        assert_int_equal(trn_max8(&m), TRN_OK);
        assert_int_equal(trn_nc_find_index8(&f), TRN_OK);
        assert_int_equal(trn_nc_match_replace8(&r), TRN_OK);
        assert_true(vals[8] == 15 && where[8] == 7 && y[15] == -1);
    }
    trn_max8_args none = max_of(0, 8);
    assert_int_equal(trn_max8(&none), TRN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_example),
        cmocka_unit_test(equals_compete),
        cmocka_unit_test(nan_is_last_and_zeros_are_apart),
        cmocka_unit_test(what_is_left_is_moved),
        cmocka_unit_test(integers_are_numbers),
        cmocka_unit_test(rounds_sort),
        cmocka_unit_test(long_partitions),
        cmocka_unit_test(beyond_the_limits),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_generation_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
