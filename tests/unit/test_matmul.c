/* test_matmul.c - trn_matmul against the twin and against plain fmaf loops, bit for bit; its refusals; its memory.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "twin/problem.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* ---- random products ---- */

static void ask_random(uint64_t seed, int count, const problem_choice *choice, problem_reference *reference)
{
    uint64_t rng = seed;
    for (int i = 0; i < count; i++) {
        problem p;
        problem_random_of(&p, choice, i % 2 ? problem_formats : problem_mode_formats, &rng);
        problem_expect(&p, reference);
        problem_ask_all(&p, &rng);
        problem_free(&p);
    }
}

/* Shapes around every width a kernel or a tile has; all formats, layouts, values and full-speed orders. */
static void random_products_equal_the_twins(void **state)
{
    (void)state;
    static const int mn[] = { 0, 1, 1, 2, 3, 5, 7, 8, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 48 };
    static const int k[] = { 0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 127, 128, 129, 130, 255, 256, 257, 385 };
    const problem_choice choice = { mn, mn, k, COUNT(mn), COUNT(mn), COUNT(k), 20000 };
    ask_random(11, cases_rounds(1500, 40000), &choice, twin_matmul);
}

/* The faster reference is nothing but a claim until the twin confirms it. */
static void the_scalar_reference_equals_the_twin(void **state)
{
    (void)state;
    static const int mn[] = { 1, 2, 5, 9 }, k[] = { 1, 3, 4, 17, 127, 128, 129, 300 };
    const problem_choice choice = { mn, mn, k, COUNT(mn), COUNT(mn), COUNT(k), 10000 };
    uint64_t rng = 12;
    for (int i = 0; i < 400; i++) {
        problem p;
        problem_random_of(&p, &choice, problem_mode_formats, &rng);
        const size_t n = (size_t)p.twin.m * (size_t)p.twin.n;
        uint32_t *start = bridge_codes(&p.dst, p.twin.m, p.twin.n), *own = p.twin.dst;
        scalar_matmul(&p.twin);
        p.twin.dst = start;
        twin_matmul(&p.twin);
        for (size_t e = 0; e < n; e++)
            if (start[e] != own[e]) problem_print(&p, "scalar reference");
        assert_memory_equal(start, own, n * sizeof(uint32_t));
        free(own);
        problem_free(&p);
    }
}

static void larger_products(void **state)
{
    (void)state;
    static const int mn[] = { 1,  2,   6,   12,  13,  16,  24,  31,  32,  33,  64, 65,
                              96, 127, 128, 129, 191, 192, 193, 255, 256, 257, 300 };
    static const int k[] = { 1, 64, 127, 128, 129, 255, 256, 257, 384, 511, 512, 513, 640, 700 };
    const problem_choice choice = { mn, mn, k, COUNT(mn), COUNT(mn), COUNT(k), 3000000 };
    ask_random(13, cases_rounds(60, 1500), &choice, scalar_matmul);
}

/* Beyond one slab of the blocking in every direction: more than 192 and 384 rows, 1024 columns, 512 of K; with few
 * rows, 2^17 / rows of K. */
static void products_of_several_slabs(void **state)
{
    (void)state;
    static const int shape[][3] = { { 390, 40, 530 }, { 3, 1100, 700 },  { 200, 1030, 140 },
                                    { 800, 33, 129 }, { 1, 2100, 600 },  { 2100, 1, 600 },
                                    { 1, 1, 5000 },   { 150, 150, 900 }, { 16, 40, 8400 } };
    uint64_t rng = 14;
    for (int s = 0; s < COUNT(shape); s++)
        for (int round = 0; round < cases_rounds(1, 20); round++) {
            const problem_choice choice = { &shape[s][0], &shape[s][1], &shape[s][2], 1, 1, 1, (int64_t)1 << 40 };
            problem p;
            problem_random_of(&p, &choice, problem_mode_formats, &rng);
            problem_expect(&p, scalar_matmul);
            problem_ask_all(&p, &rng);
            problem_free(&p);
        }
}

/* ---- every combination of what can be chosen ---- */

static void every_format_and_order(void **state)
{
    (void)state;
    static const int pair[8][2] = { { TWIN_F32, TWIN_F32 },   { TWIN_F32, TWIN_TF32 },  { TWIN_TF32, TWIN_F32 },
                                    { TWIN_TF32, TWIN_TF32 }, { TWIN_BF16, TWIN_BF16 }, { TWIN_BF16, TWIN_F16 },
                                    { TWIN_F16, TWIN_BF16 },  { TWIN_F16, TWIN_F16 } };
    static const int dst[3] = { TWIN_F32, TWIN_BF16, TWIN_F16 };
    static const bridge_layout packed[3] = { BRIDGE_PACKED, BRIDGE_PACKED, BRIDGE_PACKED };
    uint64_t rng = 15;
    /* 8 pairs, 3 results, accumulating or not, 5 chain counts, 2 layouts, 2 merges, 10 kinds of values */
    const int step = cases_level() == 1 ? 7 : 1; /* 7 divides none of these: every pair of choices still meets */
    for (int c = 0; c < 8 * 3 * 2 * 5 * 2 * 2 * BRIDGE_VALUES; c += step) {
        problem p;
        int left = c;
        memset(&p, 0, sizeof p);
        p.twin.m = 5 + cases_below(&rng, 4);
        p.twin.n = 33;
        p.twin.k = 129 + cases_below(&rng, 8);
        p.twin.a_format = pair[left % 8][0], p.twin.b_format = pair[left % 8][1], left /= 8;
        p.twin.dst_format = dst[left % 3], left /= 3;
        p.twin.accumulate = left % 2, left /= 2;
        p.numerics.chains = 1 << left % 5, left /= 5;
        p.numerics.chain_layout = (trn_chain_layout)(left % 2), left /= 2;
        p.numerics.merge = (trn_merge)(left % 2), left /= 2;
        problem_build(&p, packed, (bridge_values)left, &rng);
        problem_expect(&p, scalar_matmul);
        problem_ask(&p, TRN_ISA_AUTO);
        problem_free(&p);
    }
}

/* One row of a, where b passes by only once: a path of its own. */
static void a_single_row(void **state)
{
    (void)state;
    static const int n[] = { 1, 15, 16, 17, 40, 64, 100 }, k[] = { 1, 3, 7, 8, 9, 127, 128, 131, 260 };
    static const bridge_layout b_layout[] = { BRIDGE_PACKED, BRIDGE_PADDED, BRIDGE_ONE_ROW, BRIDGE_TRANSPOSED };
    uint64_t rng = 24;
    const int count = cases_rounds(1500, 30000);
    for (int i = 0; i < count; i++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.twin.m = 1;
        p.twin.n = problem_size(n, COUNT(n), &rng);
        p.twin.k = problem_size(k, COUNT(k), &rng);
        (cases_one_in(&rng, 2) ? problem_formats : problem_mode_formats)(&p.twin, &rng);
        p.twin.accumulate = cases_one_in(&rng, 2);
        p.twin.rounding = (twin_mode)cases_below(&rng, TWIN_MODES);
        p.twin.seed = cases_next(&rng);
        p.numerics = problem_fast_order(&rng);
        const bridge_layout layout[3] = { (bridge_layout)cases_below(&rng, BRIDGE_LAYOUTS),
                                          b_layout[cases_below(&rng, COUNT(b_layout))],
                                          (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS) };
        problem_build(&p, layout, (bridge_values)(i % BRIDGE_VALUES), &rng);
        problem_expect(&p, scalar_matmul);
        problem_ask_all(&p, &rng);
        problem_free(&p);
    }
}

static void every_layout(void **state)
{
    (void)state;
    uint64_t rng = 16;
    for (int c = 0; c < BRIDGE_LAYOUTS * BRIDGE_LAYOUTS * BRIDGE_OUTPUTS * 2; c++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.twin.m = 1 + cases_below(&rng, 20);
        p.twin.n = 1 + cases_below(&rng, 70);
        p.twin.k = 1 + cases_below(&rng, 140);
        (cases_one_in(&rng, 2) ? problem_formats : problem_mode_formats)(&p.twin, &rng);
        p.twin.accumulate = c & 1;
        const bridge_layout layout[3] = { (bridge_layout)(c / 2 % BRIDGE_LAYOUTS),
                                          (bridge_layout)(c / 2 / BRIDGE_LAYOUTS % BRIDGE_LAYOUTS),
                                          (bridge_layout)(c / 2 / BRIDGE_LAYOUTS / BRIDGE_LAYOUTS) };
        problem_build(&p, layout, BRIDGE_WIDE, &rng);
        problem_expect(&p, scalar_matmul);
        problem_ask_all(&p, &rng);
        problem_free(&p);
    }
}

/* The same product with 1 to 8 threads, large enough to be cut: one answer. */
static void every_thread_count(void **state)
{
    (void)state;
    static const int size[3] = { 90, 100, 260 };
    const problem_choice choice = { &size[0], &size[1], &size[2], 1, 1, 1, (int64_t)1 << 40 };
    uint64_t rng = 17;
    for (int round = 0; round < 4; round++) {
        problem p;
        problem_random_of(&p, &choice, problem_mode_formats, &rng);
        while (p.twin.group == 4 && p.values > BRIDGE_INTEGERS) { /* scales far from 1 are slow, and cut alike */
            problem_free(&p);
            problem_random_of(&p, &choice, problem_mode_formats, &rng);
        }
        problem_expect(&p, scalar_matmul);
        for (int threads = 1; threads <= 8; threads++) {
            problem_threads(threads);
            problem_ask(&p, TRN_ISA_AUTO);
        }
        problem_free(&p);
    }
}

/* ---- corners, by hand ---- */

static uint32_t one_f32(const float *a, const float *b, int k, bool accumulate, uint32_t before, const trn_numerics *n)
{
    uint32_t out = before;
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, &out, 1, 1);
    args.a = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)a, 1, k);
    args.b = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)b, k, 1);
    args.accumulate = accumulate;
    args.numerics = n;
    assert_int_equal(TRN_OK, trn_matmul(&args));
    return out;
}

static void corners(void **state)
{
    (void)state;
    const float inf = cases_float_of(0x7f800000), nan = cases_float_of(0xffc12345), tiny = 0x1p-80f, huge = 0x1p100f;
    trn_numerics one;
    memset(&one, 0, sizeof one);
    one.chains = 1;

    /* An underflow in the only chain: -2^-160 rounds to -0, and +0 + -0 never happens in a tile of one chain. */
    CASES_EQUAL(0x80000000, one_f32((const float[]){ -tiny }, (const float[]){ tiny }, 1, false, 0x12345678, &one),
                "-0 by underflow, one chain");
    /* With four chains the empty ones add +0, which wins. */
    CASES_EQUAL(0x00000000, one_f32((const float[]){ -tiny }, (const float[]){ tiny }, 1, false, 0x12345678, NULL),
                "-0 meets empty chains");
    const float minus4[4] = { -tiny, -tiny, -tiny, -tiny }, plus4[4] = { tiny, tiny, tiny, tiny };
    CASES_EQUAL(0x80000000, one_f32(minus4, plus4, 4, false, 0x12345678, NULL),
                "-0 in all four chains survives the first tile");
    CASES_EQUAL(0x00000000, one_f32(minus4, plus4, 4, true, 0x00000000, NULL), "+0 in PSUM plus a tile of -0");
    CASES_EQUAL(0x80000000, one_f32(minus4, plus4, 4, true, 0x80000000, NULL), "-0 in PSUM plus a tile of -0");
    /* An exact product of zero is not an underflow: +0 + -0 = +0 in the chain already. */
    CASES_EQUAL(0x00000000, one_f32((const float[]){ -0.0f }, (const float[]){ 1.0f }, 1, false, 0x12345678, &one),
                "-0 * 1");

    /* Two tiles of -0: the first overwrites, the second is added. */
    float a[132], b[132];
    for (int i = 0; i < 132; i++) a[i] = -tiny, b[i] = tiny;
    CASES_EQUAL(0x80000000, one_f32(a, b, 132, false, 0x12345678, NULL), "two tiles of -0");

    CASES_EQUAL(0x7fc00000, one_f32((const float[]){ inf }, (const float[]){ 0.0f }, 1, false, 0, NULL), "inf * 0");
    CASES_EQUAL(0x7fc00000, one_f32((const float[]){ inf, 1 }, (const float[]){ 1, -inf }, 2, false, 0, NULL),
                "inf - inf across chains");
    CASES_EQUAL(0x7fc00000, one_f32((const float[]){ nan }, (const float[]){ 1 }, 1, false, 0, NULL),
                "a NaN loses sign and payload");
    CASES_EQUAL(0x7fc00000, one_f32((const float[]){ 1 }, (const float[]){ 1 }, 1, true, 0xff812345, NULL),
                "a NaN in PSUM too");
    CASES_EQUAL(0xff800000, one_f32((const float[]){ -inf, 5 }, (const float[]){ 2, 7 }, 2, false, 0, NULL),
                "-inf stays");
    CASES_EQUAL(0x7f800000, one_f32((const float[]){ huge }, (const float[]){ huge }, 1, false, 0, NULL),
                "2^200 overflows");
    /* fmaf: the product alone overflows, the sum does not... in one chain the first term already did. */
    CASES_EQUAL(0x7f800000, one_f32((const float[]){ huge, -huge }, (const float[]){ huge, huge }, 2, false, 0, &one),
                "inf, then -2^200");
    CASES_EQUAL(0x7fc00000, one_f32((const float[]){ huge, -huge }, (const float[]){ huge, huge }, 2, false, 0, NULL),
                "inf - inf in the merge");
    /* One chain: 2^127, and then a product of -2^128 that is no binary32 number: the sum is -2^127. */
    CASES_EQUAL(0xff000000,
                one_f32((const float[]){ 0x1p127f, -0x1p64f }, (const float[]){ 1, 0x1p64f }, 2, false, 0, &one),
                "a product beyond binary32 enters the sum exactly");

    CASES_EQUAL(0x00000001, one_f32((const float[]){ 0x1p-74f }, (const float[]){ 0x1p-75f }, 1, false, 0, NULL),
                "the smallest subnormal");
    CASES_EQUAL(0x00000000, one_f32((const float[]){ 0x1p-75f }, (const float[]){ 0x1p-75f }, 1, false, 0, NULL),
                "half of it ties to even");
    CASES_EQUAL(0x00000003, one_f32((const float[]){ 0x1p-149f }, (const float[]){ 3 }, 1, false, 0, NULL),
                "a subnormal operand");
}

/* K = 0: +0, or unchanged to the last bit of a payload. */
static void empty_sums(void **state)
{
    (void)state;
    CASES_EQUAL(0, one_f32(NULL, NULL, 0, false, 0x7fc12345, NULL), "K = 0");
    CASES_EQUAL(0xffc12345, one_f32(NULL, NULL, 0, true, 0xffc12345, NULL), "K = 0, accumulating");
    uint16_t half[2] = { 0xffff, 0xabcd };
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F16, half, 1, 2);
    args.a = trn_tensor_2d(TRN_BF16, NULL, 1, 0);
    args.b = trn_tensor_2d(TRN_F16, NULL, 0, 2);
    args.accumulate = true;
    assert_int_equal(TRN_OK, trn_matmul(&args));
    CASES_EQUAL(0xffff, half[0], "K = 0, accumulating, F16");
    args.accumulate = false;
    args.rounding = TRN_STOCHASTIC;
    assert_int_equal(TRN_OK, trn_matmul(&args));
    CASES_EQUAL(0, half[0] | half[1], "K = 0, F16");
}

/* Nothing to write: legal, with null data. */
static void empty_results(void **state)
{
    (void)state;
    static const int shape[3][2] = { { 0, 3 }, { 3, 0 }, { 0, 0 } };
    float data[64] = { 0 };
    for (int s = 0; s < 3; s++)
        for (int k = 0; k < 8; k += 4) {
            trn_matmul_args args;
            memset(&args, 0, sizeof args);
            args.dst = trn_tensor_2d(TRN_F32, NULL, shape[s][0], shape[s][1]);
            args.a = trn_tensor_2d(TRN_F32, shape[s][0] && k ? data : NULL, shape[s][0], k);
            args.b = trn_tensor_2d(TRN_F32, shape[s][1] && k ? data : NULL, k, shape[s][1]);
            assert_int_equal(TRN_OK, trn_matmul(&args));
        }
}

/* 1 + 2^-24 and its like: the orders differ, and each gives what the definition says. */
static void the_order_is_the_definition(void **state)
{
    (void)state;
    float a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = i ? 0x1p-24f : 1.0f, b[i] = 1.0f;
    trn_numerics n;
    memset(&n, 0, sizeof n);
    n.chains = 1;
    CASES_EQUAL(0x3f800000, one_f32(a, b, 8, false, 0, &n), "one chain: seven ties to even");
    /* four chains: s0 = 1 + 2^-24 -> 1; the others 2^-23 each; merged one by one */
    CASES_EQUAL(0x3f800003, one_f32(a, b, 8, false, 0, NULL), "four chains");
    n.chains = 2; /* s0 = 1, s1 = 4 * 2^-24 */
    CASES_EQUAL(0x3f800002, one_f32(a, b, 8, false, 0, &n), "two chains");
    n.chains = 8; /* s0 = 1, seven times 2^-24, ascending: all ties */
    CASES_EQUAL(0x3f800000, one_f32(a, b, 8, false, 0, &n), "eight chains, ascending");
    n.merge = TRN_MERGE_PAIRWISE; /* ((1 + u) + 2u) + 4u = (1 + 2u) + 4u with u = 2^-24 */
    CASES_EQUAL(0x3f800003, one_f32(a, b, 8, false, 0, &n), "eight chains, pairwise");
    n.chain_layout = TRN_CHAINS_BLOCKED; /* blocks of 16 rows: all eight rows are chain 0 */
    CASES_EQUAL(0x3f800000, one_f32(a, b, 8, false, 0, &n), "eight blocked chains");
    memset(&n, 0, sizeof n);
    n.k_tile = 2; /* PSUM after the tiles: 1, then three times 2^-23 */
    CASES_EQUAL(0x3f800003, one_f32(a, b, 8, false, 0, &n), "tiles of two rows");
}

/* One cast on the way out, in each mode; stochastic takes index m*N + n of (seed, stream). */
static void the_way_out(void **state)
{
    (void)state;
    enum { M = 3, N = 5 };
    const uint32_t x = 0x3f814000; /* 1 + 1.25 * 2^-7: a quarter of the way from bf16 3f81 to 3f82 */
    float a[M], b[N];
    for (int i = 0; i < M; i++) a[i] = cases_float_of(x);
    for (int j = 0; j < N; j++) b[j] = j & 1 ? -1.0f : 1.0f;
    for (int mode = 0; mode < TWIN_MODES; mode++) {
        uint16_t out[M * N];
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        args.dst = trn_tensor_2d(TRN_BF16, out, M, N);
        args.a = trn_tensor_2d(TRN_F32, a, M, 1);
        args.b = trn_tensor_2d(TRN_F32, b, 1, N);
        args.rounding = bridge_rounding((twin_mode)mode);
        args.seed = 0x123456789abcdef0;
        args.stream = 42;
        assert_int_equal(TRN_OK, trn_matmul(&args));
        for (int e = 0; e < M * N; e++) {
            const uint32_t sign = e % N & 1 ? 0x8000 : 0;
            uint32_t expected = 0x3f81;
            if (mode == TWIN_TOWARD_POSITIVE && !sign) expected = 0x3f82;
            if (mode == TWIN_TOWARD_NEGATIVE && sign) expected = 0x3f82;
            if (mode == TWIN_STOCHASTIC && twin_random_word(args.seed, args.stream, (uint64_t)e) >= 0xc0000000u)
                expected = 0x3f82;
            CASES_EQUAL(expected | sign, out[e], "mode %d, element %d", mode, e);
        }
    }
}

/* Do not pad K with computed zeros: 0 * inf would be NaN, and +0 would hide a -0. */
static void tails_add_nothing(void **state)
{
    (void)state;
    uint64_t rng = 18;
    for (int k = 1; k <= 140; k++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.twin.m = 3;
        p.twin.n = 35;
        p.twin.k = k;
        p.twin.a_format = p.twin.b_format = k & 1 ? TWIN_F32 : TWIN_BF16;
        p.twin.dst_format = TWIN_F32;
        p.numerics.chains = 1 << k % 5;
        static const bridge_layout packed[3] = { BRIDGE_PACKED, BRIDGE_PACKED, BRIDGE_PACKED };
        problem_build(&p, packed, k % 3 ? BRIDGE_TINY : BRIDGE_SPECIAL, &rng);
        problem_expect(&p, scalar_matmul);
        problem_ask_all(&p, &rng);
        problem_free(&p);
    }
}

/* ---- memory ---- */

/* Exactly scratch_bytes between canaries, with bad alignment; one byte less is refused before anything is written. */
static void scratch(void **state)
{
    (void)state;
    static const int sizes[] = { 1, 17, 130, 300 };
    const problem_choice choice = { sizes, sizes, sizes, COUNT(sizes), COUNT(sizes), COUNT(sizes), 4000000 };
    uint64_t rng = 19;
    for (int i = 0; i < 30; i++) {
        problem p;
        problem_random_of(&p, &choice, problem_mode_formats, &rng);
        problem_expect(&p, scalar_matmul);
        problem_threads(1 + i % 4);
        const size_t bytes = trn_matmul_scratch_bytes(&p.args), margin = 64 + (size_t)(i % 7);
        if (!bytes) { /* block scales far from 1 go another way, without scratch */
            assert_int_equal(4, p.twin.group);
            problem_free(&p);
            continue;
        }
        unsigned char *memory = (unsigned char *)malloc(bytes + 2 * margin);
        assert_non_null(memory);
        memset(memory, 0x5a, bytes + 2 * margin);
        p.args.scratch = memory + margin;
        p.args.scratch_bytes = bytes;
        problem_ask(&p, TRN_ISA_AUTO);
        for (size_t m = 0; m < margin; m++) assert_true(memory[m] == 0x5a && memory[margin + bytes + m] == 0x5a);

        trn_error error;
        memset(&error, 0, sizeof error);
        memcpy(p.dst.memory, p.before, p.dst.bytes);
        p.args.scratch_bytes = bytes - 1;
        p.args.error = &error;
        assert_int_equal(TRN_ENOSPC, trn_matmul(&p.args));
        assert_int_equal(TRN_ENOSPC, error.status);
        assert_non_null(strstr(error.text, "scratch_bytes"));
        assert_memory_equal(p.dst.memory, p.before, p.dst.bytes);
        free(memory);
        problem_free(&p);
    }
}

/* Bounded by the caches, never by the matrices. */
static void scratch_does_not_grow_with_the_matrices(void **state)
{
    (void)state;
    static float one;
    problem_threads(1);
    size_t bytes[3];
    for (int i = 0; i < 3; i++) {
        const int64_t n = (int64_t)1024 << (3 * i);
        trn_matmul_args args;
        memset(&args, 0, sizeof args);
        args.a = trn_tensor_2d(TRN_F32, &one, n, n); /* asked about, never read */
        args.b = args.a;
        args.dst = trn_tensor_2d(TRN_F32, (void *)((uintptr_t)&one + ((uintptr_t)1 << 40)), n, n);
        bytes[i] = trn_matmul_scratch_bytes(&args);
        assert_true(bytes[i] > 0);
    }
    assert_int_equal(bytes[1], bytes[2]);
    assert_true(bytes[2] <= (size_t)8 << 20);
}

/* ---- refusals ---- */

typedef struct refusal {
    float a[64], b[64], dst[64], before[64];
    trn_matmul_args args;
    trn_error error;
} refusal;

static void refusal_start(refusal *r)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < 64; i++) r->a[i] = r->b[i] = 1.0f, r->dst[i] = (float)i;
    memcpy(r->before, r->dst, sizeof r->dst);
    r->args.dst = trn_tensor_2d(TRN_F32, r->dst, 4, 8);
    r->args.a = trn_tensor_2d(TRN_F32, r->a, 4, 6);
    r->args.b = trn_tensor_2d(TRN_F32, r->b, 6, 8);
    r->args.error = &r->error;
}

/* The status, a sentence with the word in it, nothing written; and the same without .error. */
static void refused(refusal *r, trn_status expected, const char *word)
{
    const trn_status status = trn_matmul(&r->args);
    if (status != expected)
        fail_msg("expected %s, got %s (\"%s\") where %s is wrong", trn_status_text(expected), trn_status_text(status),
                 r->error.text, word);
    assert_int_equal(expected, r->error.status);
    assert_true(strlen(r->error.text) > 10 && strlen(r->error.text) < sizeof r->error.text - 1);
    if (!strstr(r->error.text, word)) fail_msg("\"%s\" does not say \"%s\"", r->error.text, word);
    assert_memory_equal(r->dst, r->before, sizeof r->dst);
    r->args.error = NULL;
    assert_int_equal(expected, trn_matmul(&r->args));
    assert_memory_equal(r->dst, r->before, sizeof r->dst);
    assert_int_equal(0, trn_matmul_scratch_bytes(&r->args));
}

#define REFUSED(status, word, ...)                                                                                     \
    do {                                                                                                               \
        refusal r;                                                                                                     \
        refusal_start(&r);                                                                                             \
        __VA_ARGS__;                                                                                                   \
        refused(&r, status, word);                                                                                     \
    } while (0)

static void the_start_of_a_refusal_is_legal(void **state)
{
    (void)state;
    refusal r;
    refusal_start(&r);
    assert_int_equal(TRN_OK, trn_matmul(&r.args));
    for (int i = 0; i < 32; i++) assert_true(r.dst[i] == 6.0f);
    assert_int_equal(0, r.error.text[0]); /* untouched on success */
}

static void refuses_shapes(void **state)
{
    (void)state;
    REFUSED(TRN_ESHAPE, "dst", r.args.dst = trn_tensor_2d(TRN_F32, r.dst, 5, 8));
    REFUSED(TRN_ESHAPE, "dst", r.args.dst = trn_tensor_2d(TRN_F32, r.dst, 4, 7));
    REFUSED(TRN_ESHAPE, "dst", r.args.dst = trn_tensor_transposed(r.args.dst));
    REFUSED(TRN_ESHAPE, "K = 5", r.args.b = trn_tensor_2d(TRN_F32, r.b, 5, 8));
    REFUSED(TRN_ESHAPE, "a has", r.args.a = trn_tensor_1d(TRN_F32, r.a, 24));
    REFUSED(TRN_ESHAPE, "b has", r.args.b.rank = 3; r.args.b.shape[2] = 1);
    REFUSED(TRN_ESHAPE, "dst has", r.args.dst.rank = 0);
    REFUSED(TRN_ESHAPE, "rank 7", r.args.a.rank = 7);
    REFUSED(TRN_ESHAPE, "rank -1", r.args.a.rank = -1);
    REFUSED(TRN_ESHAPE, "-4", r.args.a.shape[0] = -4);
    REFUSED(TRN_ESHAPE, "negative stride -1", r.args.a.stride[0] = 6; r.args.a.stride[1] = -1);
    REFUSED(TRN_ESHAPE, "stride", r.args.dst.stride[0] = 0; r.args.dst.stride[1] = 1); /* dst may not broadcast */
    REFUSED(TRN_ESHAPE, "dst", r.args.dst.stride[0] = 1; r.args.dst.stride[1] = 1);    /* nor meet itself */
    REFUSED(TRN_ESHAPE, "dst", r.args.dst.stride[0] = 3; r.args.dst.stride[1] = 1);
}

static void refuses_absurd_sizes(void **state)
{
    (void)state;
    REFUSED(TRN_ESHAPE, "a spans", r.args.a.shape[0] = r.args.dst.shape[0] = INT64_MAX);
    REFUSED(TRN_ESHAPE, "b spans", r.args.a.shape[1] = 0; r.args.a.shape[0] = 4; r.args.b.shape[0] = (int64_t)1 << 40;
            r.args.b.shape[1] = (int64_t)1 << 40);
    REFUSED(TRN_ESHAPE, "a spans", r.args.a.shape[0] = r.args.a.shape[1] = (int64_t)1 << 31);
    REFUSED(TRN_ESHAPE, "a spans", r.args.a.stride[0] = INT64_MAX; r.args.a.stride[1] = 1);
    REFUSED(TRN_ESHAPE, "dst spans", r.args.dst.stride[0] = (int64_t)1 << 60; r.args.dst.stride[1] = 1);
}

static void refuses_formats(void **state)
{
    (void)state;
    REFUSED(TRN_EFORMAT, "a ", r.args.a.format = TRN_FORMAT_UNSET);
    REFUSED(TRN_EFORMAT, "99", r.args.a.format = (trn_format)99);
    REFUSED(TRN_EFORMAT, "int8", r.args.a.format = TRN_I8);
    REFUSED(TRN_EFORMAT, "b is uint32", r.args.b.format = TRN_U32);
    REFUSED(TRN_EFORMAT, "bfloat16", r.args.a.format = TRN_BF16);
    REFUSED(TRN_EFORMAT, "float16", r.args.b.format = TRN_F16);
    REFUSED(TRN_EFORMAT, "tfloat32", r.args.a.format = TRN_TF32; r.args.b.format = TRN_BF16);
    REFUSED(TRN_EFORMAT, "dst is tfloat32", r.args.dst.format = TRN_TF32);
    REFUSED(TRN_EFORMAT, "dst is int32", r.args.dst.format = TRN_I32);
    REFUSED(TRN_EFORMAT, "dst", r.args.dst.format = (trn_format)-3);
    REFUSED(TRN_EFORMAT, "double_row", r.args.double_row = true);
    REFUSED(TRN_EFORMAT, "a_scale", r.args.a_scale = trn_tensor_2d(TRN_F8_E8M0, r.a, 4, 1));
    REFUSED(TRN_EFORMAT, "b_scale", r.args.b_scale = trn_tensor_2d(TRN_F8_E8M0, r.a, 8, 1));
}

static void refuses_data(void **state)
{
    (void)state;
    REFUSED(TRN_EINVAL, "a has", r.args.a.data = NULL);
    REFUSED(TRN_EINVAL, "b has", r.args.b.data = NULL);
    REFUSED(TRN_EINVAL, "dst has", r.args.dst.data = NULL);
    REFUSED(TRN_EINVAL, "a runs", r.args.a.data = (void *)(UINTPTR_MAX - 7));
    REFUSED(TRN_EINVAL, "overlaps a", r.args.a.data = r.dst);
    REFUSED(TRN_EINVAL, "overlaps a", r.args.a.data = r.dst + 31); /* the last element of dst */
    REFUSED(TRN_EINVAL, "overlaps b", r.args.b.data = r.dst);
    REFUSED(TRN_EINVAL, "overlaps b", r.args.dst.data = r.dst; r.args.b.data = r.dst + 8; r.args.b.stride[0] = 1;
            r.args.b.stride[1] = 6);
    REFUSED(TRN_EINVAL, "overlaps a", r.args.a.data = (char *)r.dst + 3); /* odd bytes too */
    assert_int_equal(TRN_EINVAL, trn_matmul(NULL));
    assert_int_equal(0, trn_matmul_scratch_bytes(NULL));
}

/* Side by side, and between each other's columns, is no overlap. */
static void neighbours_are_no_overlap(void **state)
{
    (void)state;
    refusal r;
    refusal_start(&r);
    r.args.dst = trn_tensor_2d(TRN_F32, r.dst, 4, 4);
    r.args.dst.stride[0] = 8;
    r.args.dst.stride[1] = 2;
    r.args.a = trn_tensor_2d(TRN_F32, r.dst + 1, 4, 4); /* the odd columns of the same rows */
    r.args.a.stride[0] = 8;
    r.args.a.stride[1] = 2;
    r.args.b = trn_tensor_2d(TRN_F32, r.b, 4, 4);
    assert_int_equal(TRN_OK, trn_matmul(&r.args));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            assert_true(r.dst[8 * i + 2 * j] == (float)(4 * 8 * i + 1 + 3 + 5 + 7));
            assert_true(r.dst[8 * i + 2 * j + 1] == r.before[8 * i + 2 * j + 1]);
        }
    refusal_start(&r);
    r.args.a.data = r.dst + 32; /* right behind dst */
    assert_int_equal(TRN_OK, trn_matmul(&r.args));
}

static void refuses_options(void **state)
{
    (void)state;
    trn_numerics n;
    memset(&n, 0, sizeof n);
    REFUSED(TRN_EINVAL, "rounding", r.args.rounding = (trn_rounding)6);
    REFUSED(TRN_EINVAL, "rounding", r.args.rounding = (trn_rounding)-1);
    REFUSED(TRN_EINVAL, "generation", r.args.generation = (trn_generation)1);
    REFUSED(TRN_EINVAL, "generation", r.args.generation = (trn_generation)5);
    REFUSED(TRN_EINVAL, "chains = 3", n.chains = 3; r.args.numerics = &n);
    n.chains = 0;
    REFUSED(TRN_EINVAL, "k_tile = 129", n.k_tile = 129; r.args.numerics = &n);
    n.k_tile = 0;
    n.psum_format = TRN_BF16;
    REFUSED(TRN_EUNSUPPORTED, "Trainium2", r.args.generation = TRN_TRAINIUM2; r.args.numerics = &n);
    REFUSED(TRN_EUNSUPPORTED, "Trainium1", r.args.generation = TRN_TRAINIUM1; r.args.numerics = &n);
    n.psum_format = TRN_FORMAT_UNSET;

    REFUSED(TRN_EUNSUPPORTED, "isa", r.args.isa = (trn_isa)77);
    REFUSED(TRN_EUNSUPPORTED, "isa", r.args.isa = (trn_isa)-1);
    int lacking = 0;
    for (int isa = TRN_ISA_PORTABLE; isa < TRN_ISA_COUNT; isa++) {
        if (trn_isa_supported((trn_isa)isa)) continue;
        REFUSED(TRN_EUNSUPPORTED, trn_isa_text((trn_isa)isa), r.args.isa = (trn_isa)isa);
        lacking++;
    }
    assert_true(lacking > 0); /* no host has both NEON and AVX */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scalar_reference_equals_the_twin),
        cmocka_unit_test(random_products_equal_the_twins),
        cmocka_unit_test(larger_products),
        cmocka_unit_test(products_of_several_slabs),
        cmocka_unit_test(every_format_and_order),
        cmocka_unit_test(a_single_row),
        cmocka_unit_test(every_layout),
        cmocka_unit_test(every_thread_count),
        cmocka_unit_test(corners),
        cmocka_unit_test(empty_sums),
        cmocka_unit_test(empty_results),
        cmocka_unit_test(the_order_is_the_definition),
        cmocka_unit_test(the_way_out),
        cmocka_unit_test(tails_add_nothing),
        cmocka_unit_test(scratch),
        cmocka_unit_test(scratch_does_not_grow_with_the_matrices),
        cmocka_unit_test(the_start_of_a_refusal_is_legal),
        cmocka_unit_test(refuses_shapes),
        cmocka_unit_test(refuses_absurd_sizes),
        cmocka_unit_test(refuses_formats),
        cmocka_unit_test(refuses_data),
        cmocka_unit_test(neighbours_are_no_overlap),
        cmocka_unit_test(refuses_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
