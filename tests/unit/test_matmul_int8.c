/* test_matmul_int8.c - products of int8 beyond one slab in every direction against plain sums of int64, tile by tile.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "trnmath/trn_matmul.h"
#include "twin/cases.h"
#include "twin/host.h"

static uint64_t rng = 5;

typedef struct problem {
    int m, n, k, step; /* step: between elements of a row of dst */
    bool a_turned, b_turned, accumulate, saturates;
    int k_tile;
    signed char *a, *b;
    int32_t *before, *expected, *dst;
} problem;

static int some_size(int usual, int border)
{
    return cases_one_in(&rng, 4) ? border - 2 + cases_below(&rng, 5) : 1 + cases_below(&rng, usual);
}

static int a_at(const problem *p, int m, int k) { return p->a[p->a_turned ? k * p->m + m : m * p->k + k]; }
static int b_at(const problem *p, int k, int n) { return p->b[p->b_turned ? n * p->k + k : k * p->n + n]; }

/* One tile after the other; PSUM wraps or stops at its ends after each. */
static int32_t sum_of(const problem *p, int m, int n, int32_t before)
{
    int64_t psum = before;
    for (int k = 0; k < p->k; k += p->k_tile) {
        for (int i = k; i < p->k && i < k + p->k_tile; i++) psum += a_at(p, m, i) * b_at(p, i, n);
        if (p->saturates)
            psum = psum > INT32_MAX ? INT32_MAX : psum < INT32_MIN ? INT32_MIN : psum;
        else
            psum = (int64_t)(((uint64_t)psum & 0xffffffffu) ^ 0x80000000u) - INT64_C(0x80000000);
    }
    return (int32_t)psum;
}

static void fill(problem *p)
{
    const bool extreme = cases_one_in(&rng, 3); /* nothing but -128: the largest sums that there are */
    const size_t results = (size_t)p->m * (size_t)p->n * (size_t)p->step;
    p->a = malloc((size_t)p->m * (size_t)p->k);
    p->b = malloc((size_t)p->n * (size_t)p->k);
    p->before = malloc(sizeof(int32_t) * results);
    p->expected = malloc(sizeof(int32_t) * results);
    p->dst = malloc(sizeof(int32_t) * results);
    assert_true(p->a && p->b && p->before && p->expected && p->dst);
    for (int i = 0; i < p->m * p->k; i++) p->a[i] = (signed char)(extreme ? -128 : cases_below(&rng, 256) - 128);
    for (int i = 0; i < p->n * p->k; i++) p->b[i] = (signed char)(extreme ? -128 : cases_below(&rng, 256) - 128);
    for (size_t i = 0; i < results; i++)
        p->before[i] = (int32_t)(cases_u32(&rng) | (cases_one_in(&rng, 2) ? 0x7fff0000u : 0));
    memcpy(p->expected, p->before, sizeof(int32_t) * results);
    for (int m = 0; m < p->m; m++)
        for (int n = 0; n < p->n; n++) {
            int32_t *at = &p->expected[(m * p->n + n) * p->step];
            *at = sum_of(p, m, n, p->accumulate ? *at : 0);
        }
}

static void ask(problem *p, trn_isa isa, int threads)
{
    const size_t bytes = sizeof(int32_t) * (size_t)p->m * (size_t)p->n * (size_t)p->step;
    trn_numerics numerics = trn_numerics_default(TRN_TRAINIUM1);
    trn_error error = { TRN_OK, "" };
    trn_matmul_args args = {
        .generation = TRN_TRAINIUM1, .accumulate = p->accumulate, .numerics = &numerics, .isa = isa, .error = &error
    };
    args.a = p->a_turned ? trn_tensor_transposed(trn_tensor_2d(TRN_I8, p->a, p->k, p->m))
                         : trn_tensor_2d(TRN_I8, p->a, p->m, p->k);
    args.b = p->b_turned ? trn_tensor_transposed(trn_tensor_2d(TRN_I8, p->b, p->n, p->k))
                         : trn_tensor_2d(TRN_I8, p->b, p->k, p->n);
    args.dst = trn_tensor_2d(TRN_I32, p->dst, p->m, p->n);
    args.dst.stride[0] = (int64_t)p->n * p->step;
    args.dst.stride[1] = p->step;
    numerics.int32_overflow = p->saturates ? TRN_INT32_SATURATE : TRN_INT32_WRAP;
    numerics.k_tile = p->k_tile;
    with_threads(threads);
    args.scratch_bytes = trn_matmul_scratch_bytes(&args);
    if (args.scratch_bytes && cases_one_in(&rng, 2)) args.scratch = malloc(args.scratch_bytes);
    memcpy(p->dst, p->before, bytes);
    if (trn_matmul(&args) != TRN_OK) fail_msg("%s", error.text);
    free(args.scratch);
    if (memcmp(p->dst, p->expected, bytes) == 0) return;
    fail_msg("%d x %d x %d, k_tile %d%s%s%s%s, %s, %d threads: another result", p->m, p->n, p->k, p->k_tile,
             p->saturates ? ", saturating" : "", p->accumulate ? ", accumulating" : "", p->a_turned ? ", a turned" : "",
             p->b_turned ? ", b turned" : "", trn_isa_text(isa), threads);
}

static void products(void **state)
{
    (void)state;
    for (int round = 0; round < cases_rounds(250, 4000); round++) {
        problem p = { .m = some_size(40, round % 8 ? 12 : 96),
                      .n = some_size(70, round % 8 ? 32 : 512),
                      .k = some_size(300, round % 8 ? 128 : 2048),
                      .step = cases_one_in(&rng, 5) ? 2 : 1,
                      .a_turned = cases_one_in(&rng, 3),
                      .b_turned = cases_one_in(&rng, 2),
                      .accumulate = cases_one_in(&rng, 2),
                      .saturates = cases_one_in(&rng, 2),
                      .k_tile = 128 };
        if (cases_one_in(&rng, 3)) p.k_tile = 1 + cases_below(&rng, 128);
        fill(&p);
        for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++)
            if (trn_isa_supported((trn_isa)isa)) ask(&p, (trn_isa)isa, 1 + cases_below(&rng, 3));
        free(p.a);
        free(p.b);
        free(p.before);
        free(p.expected);
        free(p.dst);
    }
    with_threads(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
