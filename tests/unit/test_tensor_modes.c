/* test_tensor_modes.c - every pair of formats in every mode on every generation: bits against the twin, or a refusal.
 * SPDX-License-Identifier: MIT
 *
 * First the twin is held against relations and numbers that need no twin. Then each row of {pair} x {mode} x
 * {generation}, as an instruction and as an operation of any size, on all instruction sets; the corners by hand; and
 * the limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "twin/instruction.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* ---- the twin, on itself ---- */

static uint32_t *twin_result(twin_problem *p)
{
    p->dst = instruction_zeroed(p->m, p->n);
    twin_matmul(p);
    return p->dst;
}

static void same_results(twin_problem *p, twin_problem *q, const char *what)
{
    uint32_t *x = twin_result(p), *y = twin_result(q);
    for (int e = 0; e < p->m * p->n; e++) CASES_EQUAL(x[e], y[e], "%s, element %d of %d rows", what, e, p->k);
    free(x);
    free(y);
}

static twin_numerics twin_order(uint64_t *rng)
{
    twin_numerics n = twin_numerics_default();
    n.chains = 1 << cases_below(rng, 5);
    n.blocked = cases_one_in(rng, 2);
    n.pairwise = cases_one_in(rng, 2);
    n.group_exact = cases_one_in(rng, 2);
    if (cases_one_in(rng, 3)) n.k_tile = 1 + cases_below(rng, 128);
    if (cases_one_in(rng, 4)) n.adder_bits = 24 + cases_below(rng, 30);
    if (cases_one_in(rng, 4)) n.adder = TWIN_ADDER_TOWARD_ZERO;
    return n;
}

/* Two products in a row, of which one is zero times zero, are one product in a row. */
static void twin_pairs_with_zeros_are_plain(void **state)
{
    (void)state;
    static const int format[] = { TWIN_E4M3, TWIN_E4M3FN, TWIN_E5M2, TWIN_E3M4 };
    enum { ROWS = 128, M = 2, N = 2 };
    uint64_t rng = 101;
    for (int round = 0; round < 200; round++) {
        uint32_t a[M * ROWS], b[ROWS * N], a2[M * 2 * ROWS] = { 0 }, b2[2 * ROWS * N] = { 0 };
        const int rows = 1 + cases_below(&rng, ROWS), kind = cases_below(&rng, BRIDGE_VALUES);
        twin_problem p;
        memset(&p, 0, sizeof p);
        p.m = M;
        p.n = N;
        p.k = rows;
        p.a_format = format[cases_below(&rng, 4)];
        p.b_format = format[cases_below(&rng, 4)];
        p.dst_format = TWIN_F32;
        p.a = a;
        p.b = b;
        p.numerics = twin_order(&rng);
        p.numerics.k_tile = 128;
        for (int i = 0; i < M; i++)
            for (int k = 0; k < rows; k++)
                a2[i * 2 * rows + k] = a[i * rows + k] = bridge_code(p.a_format, (bridge_values)kind, &rng);
        for (int e = 0; e < rows * N; e++) b2[e] = b[e] = bridge_code(p.b_format, (bridge_values)kind, &rng);
        twin_problem pairs = p;
        pairs.group = 2;
        pairs.k = 2 * rows;
        pairs.a = a2;
        pairs.b = b2;
        same_results(&p, &pairs, "pairs");
    }
}

/* One product of four under a scale is a product of two F32 numbers that carry the scale, when binary32 has them. */
static void twin_quads_of_one_are_scaled_products(void **state)
{
    (void)state;
    enum { ROWS = 128, N = 2 };
    static const int format[] = { TWIN_E4M3FN, TWIN_E5M2, TWIN_E2M1 };
    uint64_t rng = 102;
    for (int round = 0; round < 200; round++) {
        uint32_t a[ROWS], b[ROWS * N], a4[4 * ROWS] = { 0 }, b4[4 * ROWS * N] = { 0 }, a_scale[16], b_scale[N * 16];
        const int blocks = 1 + cases_below(&rng, 16), rows = 8 * blocks, slot = cases_below(&rng, 4);
        twin_problem p;
        memset(&p, 0, sizeof p);
        p.m = 1;
        p.n = N;
        p.k = rows;
        p.a_format = p.b_format = p.dst_format = TWIN_F32;
        p.a = a;
        p.b = b;
        p.numerics = twin_order(&rng);
        p.numerics.k_tile = 128;
        twin_problem quads = p;
        quads.group = 4;
        quads.k = 4 * rows;
        quads.a_format = format[cases_below(&rng, 3)];
        quads.b_format = format[cases_below(&rng, 3)];
        quads.a = a4;
        quads.b = b4;
        quads.a_scale = a_scale;
        quads.b_scale = b_scale;
        for (int e = 0; e < blocks; e++) a_scale[e] = (uint32_t)(30 + cases_below(&rng, 160));
        for (int e = 0; e < N * blocks; e++) b_scale[e] = (uint32_t)(30 + cases_below(&rng, 160));
        for (int r = 0; r < rows; r++)
            for (int j = -1; j < N; j++) { /* -1: the row of a */
                const int f = j < 0 ? quads.a_format : quads.b_format;
                const uint32_t code = bridge_code(f, BRIDGE_ANYTHING, &rng);
                const uint32_t scale = j < 0 ? a_scale[r / 8] : b_scale[j * blocks + r / 8];
                const twin_number x = twin_decode(&twin_formats[f], code),
                                  power = twin_make(false, 1, (int)scale - 127), scaled = twin_multiply(&x, &power);
                const uint32_t whole = twin_to_f32(&scaled);
                if (j < 0)
                    a4[4 * r + slot] = code, a[r] = whole;
                else
                    b4[(4 * r + slot) * N + j] = code, b[r * N + j] = whole;
            }
        same_results(&p, &quads, "quads");
    }
}

/* Where every sum is exact, all modes are the sum of the products. */
static void twin_modes_agree_on_integers(void **state)
{
    (void)state;
    enum { MOST = 600 };
    static const int format[3] = { TWIN_E4M3, TWIN_E5M2, TWIN_E2M1 }; /* plain, pairs, quads */
    uint64_t rng = 103;
    for (int round = 0; round < 150; round++) {
        const int mode = round % 3,
                  k = mode == 2 ? 32 * (1 + cases_below(&rng, MOST / 32)) : 1 + cases_below(&rng, MOST);
        uint32_t a[MOST], b[MOST], scale[MOST / 32 + 1];
        int sum = 0;
        twin_problem p;
        memset(&p, 0, sizeof p);
        p.m = p.n = 1;
        p.k = k;
        p.group = 1 << mode;
        p.a_format = p.b_format = format[mode];
        p.dst_format = TWIN_F32;
        p.a = a;
        p.b = b;
        p.numerics = twin_order(&rng);
        for (int i = 0; i <= MOST / 32; i++) scale[i] = 127;
        if (mode == 2) p.a_scale = p.b_scale = scale;
        for (int i = 0; i < k; i++) {
            const int x = cases_below(&rng, 9) - 4, y = cases_below(&rng, 9) - 4;
            const twin_number nx = twin_make(x < 0, (uint64_t)abs(x), 0), ny = twin_make(y < 0, (uint64_t)abs(y), 0);
            a[i] = twin_encode(&twin_formats[format[mode]], &nx, twin_plain(TWIN_NEAREST_EVEN));
            b[i] = twin_encode(&twin_formats[format[mode]], &ny, twin_plain(TWIN_NEAREST_EVEN));
            sum += x * y;
        }
        uint32_t *out = twin_result(&p);
        const float expected = (float)sum;
        CASES_EQUAL(cases_bits_of(expected + 0.0f), out[0], "%d products in groups of %d", k, 1 << mode);
        free(out);
    }
}

static void which_k_a_row_holds(void **state)
{
    (void)state;
    static const struct {
        int row, slot, group, depth, k;
    } known[] = {
        { 5, 0, 1, 128, 5 },     { 0, 0, 2, 256, 0 },     { 0, 1, 2, 256, 128 },   { 127, 1, 2, 256, 255 },
        { 0, 1, 2, 5, 3 },       { 1, 1, 2, 5, 4 },       { 2, 0, 2, 5, 2 },       { 2, 1, 2, 5, -1 },
        { 127, 0, 2, 255, 127 }, { 126, 1, 2, 255, 254 }, { 127, 1, 2, 255, -1 },  { 0, 0, 2, 1, 0 },
        { 0, 1, 2, 1, -1 },      { 0, 3, 4, 512, 3 },     { 127, 3, 4, 512, 511 }, { 7, 0, 4, 32, 28 },
    };
    for (int i = 0; i < COUNT(known); i++)
        CASES_EQUAL(known[i].k, twin_k_of(known[i].row, known[i].slot, known[i].group, known[i].depth), "row %d", i);
}

/* ---- by hand ---- */

/* One output element, asked of the twin, of trn_matmul, and as one instruction where it is one; all must agree. */
typedef struct hand {
    problem_mode mode;
    int a_format, b_format, k;
    uint32_t a[600], b[600], a_scale[20], b_scale[20];
    uint32_t before;
    bool accumulate;
    int dst_format;
    trn_numerics numerics;
    trn_generation generation;
} hand;

static hand hand_start(problem_mode mode, int format, int k)
{
    hand h;
    memset(&h, 0, sizeof h);
    h.mode = mode;
    h.a_format = h.b_format = format;
    h.k = k;
    h.dst_format = TWIN_F32;
    for (int i = 0; i < 20; i++) h.a_scale[i] = h.b_scale[i] = 127;
    return h;
}

static void hand_bytes(const uint32_t *code, int count, int format, unsigned char *to)
{
    const size_t size = bridge_bytes(format);
    for (int i = 0; i < count; i++) memcpy(to + (size_t)i * size, &code[i], size);
}

static uint32_t hand_ask(const hand *h)
{
    unsigned char a[2400], b[2400], a_scale[80], b_scale[80];
    uint32_t expected = h->before;
    twin_problem p;
    memset(&p, 0, sizeof p);
    p.m = p.n = 1;
    p.k = h->k;
    p.group = instruction_group(h->mode);
    p.a_format = h->a_format;
    p.b_format = h->b_format;
    p.dst_format = h->dst_format;
    p.a = h->a;
    p.b = h->b;
    if (h->mode == PROBLEM_MX) p.a_scale = h->a_scale, p.b_scale = h->b_scale;
    p.dst = &expected;
    p.accumulate = h->accumulate;
    p.numerics = bridge_numerics(&h->numerics);
    twin_matmul(&p);

    hand_bytes(h->a, h->k, h->a_format, a);
    hand_bytes(h->b, h->k, h->b_format, b);
    hand_bytes(h->a_scale, 20, TWIN_E8M0, a_scale);
    hand_bytes(h->b_scale, 20, TWIN_E8M0, b_scale);
    for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
        uint32_t out = h->before;
        trn_error error;
        trn_matmul_args args;
        if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
        memset(&args, 0, sizeof args);
        args.generation = h->generation;
        args.dst = trn_tensor_2d(bridge_format(h->dst_format), &out, 1, 1);
        args.a = trn_tensor_2d(bridge_format(h->a_format), a, 1, h->k);
        args.b = trn_tensor_2d(bridge_format(h->b_format), b, h->k, 1);
        args.double_row = h->mode == PROBLEM_DOUBLE_ROW;
        if (h->mode == PROBLEM_MX) {
            args.a_scale = trn_tensor_2d(TRN_F8_E8M0, a_scale, 1, h->k / 32);
            args.b_scale = trn_tensor_2d(TRN_F8_E8M0, b_scale, 1, h->k / 32);
        }
        args.accumulate = h->accumulate;
        args.numerics = &h->numerics;
        args.isa = (trn_isa)isa;
        args.error = &error;
        if (trn_matmul(&args) != TRN_OK) fail_msg("%s", error.text);
        CASES_EQUAL(expected, out, "trn_matmul by hand, isa %d", isa);
        if (h->dst_format == TWIN_I32 || h->k == 0) continue;
        trni_product product; /* the definition that kernels fall back on */
        out = h->before;
        assert_int_equal(TRN_OK, trni_matmul_check(&args, &product));
        trni_define_element(&product, 0, 0);
        CASES_EQUAL(expected, out, "the definition by hand");
    }
    return expected;
}

enum {
    ONE_E5M2 = 0x3c,
    MAX_E5M2 = 0x7b,
    INF_E5M2 = 0x7c,
    NAN_E5M2 = 0x7e,
    MINUS = 0x80,
    ONE_E4M3 = 0x38,
    INF_E4M3 = 0x78,
    NAN_E4M3FN = 0x7f
};

/* A = 57344^2 has 32 bits of which 3 are used; A + 1 is A. Who meets whom decides whether the 1 survives. */
static void pairs_by_hand(void **state)
{
    (void)state;
    static const struct {
        int k, large, minus, one; /* where A, -A and 1 are */
        uint32_t sum;
        const char *why;
    } known[] = {
        { 5, 0, 1, 3, 0, "half of 5 is 3: the 1 meets A" },
        { 5, 0, 3, 1, 0x3f800000, "A meets -A, the 1 is alone" },
        { 5, 0, 1, 2, 0x3f800000, "the third has no partner" },
        { 4, 0, 1, 2, 0, "half of 4 is 2" },
        { 255, 0, 1, 128, 0, "half of 255 is 128" },
        { 255, 0, 128, 1, 0x3f800000, "A meets -A in row 0" },
        { 255, 127, 123, 126, 0x3f800000, "row 127 has no partner" },
        { 256, 127, 123, 255, 0, "row 127 has one" },
        { 257, 0, 128, 256, 0x3f800000, "the 257th is a tile of its own" },
        { 512, 256, 257, 384, 0, "the second tile is like the first" },
    };
    for (int i = 0; i < COUNT(known); i++) {
        hand h = hand_start(PROBLEM_DOUBLE_ROW, TWIN_E5M2, known[i].k);
        h.a[known[i].large] = h.b[known[i].large] = h.b[known[i].minus] = MAX_E5M2;
        h.a[known[i].minus] = MAX_E5M2 | MINUS;
        h.a[known[i].one] = h.b[known[i].one] = ONE_E5M2;
        CASES_EQUAL(known[i].sum, hand_ask(&h), "K = %d: %s", known[i].k, known[i].why);
    }
    hand h = hand_start(PROBLEM_DOUBLE_ROW, TWIN_E4M3, 3);
    h.a[0] = INF_E4M3, h.b[0] = 0;
    CASES_EQUAL(0x7fc00000, hand_ask(&h), "inf * 0 in a pair");
    h.b[0] = ONE_E4M3;
    CASES_EQUAL(0x7f800000, hand_ask(&h), "inf * 1, and a partner of zeros");
    h.a[2] = INF_E4M3 | MINUS, h.b[2] = ONE_E4M3; /* half of 3 is 2: 0 and 2 are a pair */
    CASES_EQUAL(0x7fc00000, hand_ask(&h), "inf - inf in a pair");
    for (int i = 0; i < 3; i++) h.a[i] = h.b[i] = 0;
    h.before = 0x80000000;
    h.accumulate = true;
    CASES_EQUAL(0x00000000, hand_ask(&h), "-0 in PSUM plus a tile of zeros");
    h.k = 0;
    CASES_EQUAL(0x80000000, hand_ask(&h), "K = 0 leaves PSUM alone");
    h.accumulate = false;
    CASES_EQUAL(0x00000000, hand_ask(&h), "K = 0 clears it");
}

static void quads_by_hand(void **state)
{
    (void)state;
    hand h = hand_start(PROBLEM_MX, TWIN_E5M2, 32);
    h.a[0] = h.b[0] = h.b[2] = MAX_E5M2, h.a[2] = MAX_E5M2 | MINUS, h.a[1] = h.b[1] = ONE_E5M2;
    CASES_EQUAL(0, hand_ask(&h), "(A + 1) - A, one after the other");
    h.numerics.group = TRN_GROUP_EXACT;
    CASES_EQUAL(0x3f800000, hand_ask(&h), "A + 1 - A exactly");
    h.numerics.group = TRN_GROUP_SEQUENTIAL;
    h.numerics.accumulator = TRN_ACCUMULATOR_EXACT;
    CASES_EQUAL(0x3f800000, hand_ask(&h), "one exact sum of the tile");
    h = hand_start(PROBLEM_MX, TWIN_E5M2, 32);
    h.a[0] = h.b[0] = h.b[1] = MAX_E5M2, h.a[1] = MAX_E5M2 | MINUS, h.a[2] = h.b[2] = ONE_E5M2;
    CASES_EQUAL(0x3f800000, hand_ask(&h), "(A - A) + 1");
    h.a[2] = 0, h.a[4] = h.b[4] = ONE_E5M2; /* the next row, the next chain */
    CASES_EQUAL(0x3f800000, hand_ask(&h), "the fifth is in another row");
}

static hand scaled_by(uint32_t a_scale, uint32_t b_scale)
{
    hand h = hand_start(PROBLEM_MX, TWIN_E4M3FN, 32);
    h.a_scale[0] = a_scale;
    h.b_scale[0] = b_scale;
    return h;
}

static void scales_by_hand(void **state)
{
    (void)state;
    hand h = scaled_by(0, 0);
    for (int i = 0; i < 32; i++) h.a[i] = ONE_E4M3 | MINUS, h.b[i] = ONE_E4M3;
    CASES_EQUAL(0x80000000, hand_ask(&h), "-4 * 2^-254 underflows to -0 in every chain");
    h.a[0] = ONE_E4M3, h.b[0] = 0x40; /* 1 * 2 - 1 - 1 - 1 = -1 */
    CASES_EQUAL(0x80000000, hand_ask(&h), "and in this one still");
    for (int i = 0; i < 4; i++) h.a[i] = 0;
    for (int i = 16; i < 20; i++) h.a[i] = 0; /* rows 0 and 4: chain 0 */
    CASES_EQUAL(0x00000000, hand_ask(&h), "an exact zero in one chain makes +0");
    h.accumulate = true;
    h.before = 0x3f800000;
    CASES_EQUAL(0x3f800000, hand_ask(&h), "1 + -0");

    h = scaled_by(0, 0);
    h.k = 64;
    for (int i = 0; i < 64; i++) h.a[i] = MINUS | (i < 32 ? ONE_E4M3 : 0), h.b[i] = ONE_E4M3;
    CASES_EQUAL(0x80000000, hand_ask(&h), "-0 + (-0 - 0 - 0 - 0)");
    h.numerics.group = TRN_GROUP_EXACT;
    CASES_EQUAL(0x80000000, hand_ask(&h), "the exact sum of four -0 is -0 too");
    h.a[36] = 0; /* row 9, chain 1 */
    CASES_EQUAL(0x00000000, hand_ask(&h), "but with one +0 it is +0");

    h = scaled_by(254, 254);
    CASES_EQUAL(0x00000000, hand_ask(&h), "zeros times 2^254 are zeros");
    h.a[3] = h.b[3] = 1; /* 2^-9 */
    CASES_EQUAL(0x7f800000, hand_ask(&h), "2^-18 * 2^254");
    h.a[4] = 1 | MINUS, h.b[4] = 1; /* row 1: chain 1 */
    CASES_EQUAL(0x7fc00000, hand_ask(&h), "inf - inf in the merge");
    h = scaled_by(254, 254);
    h.a[0] = h.b[0] = h.b[1] = 1, h.a[1] = 1 | MINUS;
    CASES_EQUAL(0x00000000, hand_ask(&h), "the quad cancels before it is scaled");

    h = scaled_by(254, 0);
    for (int i = 0; i < 32; i++) h.a[i] = h.b[i] = ONE_E4M3;
    CASES_EQUAL(0x42000000, hand_ask(&h), "2^127 * 2^-127 * 32");
    h = scaled_by(0, 105);
    h.a[9] = h.b[9] = ONE_E4M3;
    CASES_EQUAL(0x00000001, hand_ask(&h), "2^-127 * 2^-22 is the smallest subnormal");
    h.b_scale[0] = 104;
    CASES_EQUAL(0x00000000, hand_ask(&h), "half of it ties to even");
    h.a[10] = ONE_E4M3, h.b[10] = 0x40;
    CASES_EQUAL(0x00000002, hand_ask(&h), "3/2 of it ties to even");
    h = scaled_by(0, 90);
    h.a[0] = h.b[0] = 0x7e; /* 448 * 448 * 2^-164 = 49 * 2^-152 */
    CASES_EQUAL(0x00000006, hand_ask(&h), "a product that comes up from below");

    for (int which = 0; which < 3; which++) {
        h = hand_start(PROBLEM_MX, TWIN_E2M1, 64);
        if (which != 1) h.a_scale[1] = 0xff;
        if (which != 0) h.b_scale[1] = 0xff;
        CASES_EQUAL(0x7fc00000, hand_ask(&h), "a scale of ff makes NaN of zeros");
        h.k = 32;
        CASES_EQUAL(0x00000000, hand_ask(&h), "but not of another block");
    }
    for (int rules = 0; rules < 8; rules++) { /* under rules of every speed: scales far apart, and one of them ff */
        h = hand_start(PROBLEM_MX, TWIN_E5M2, 96);
        for (int i = 0; i < 64; i++) h.a[i] = h.b[i] = (uint32_t)(1 + i);
        h.a_scale[0] = h.b_scale[0] = 254;
        h.a_scale[1] = h.b_scale[1] = 0;
        h.numerics.accumulator = rules & 1 ? TRN_ACCUMULATOR_EXACT : TRN_ACCUMULATOR_NEAREST_EVEN;
        h.numerics.group = rules & 2 ? TRN_GROUP_EXACT : TRN_GROUP_SEQUENTIAL;
        h.numerics.accumulator_bits = rules & 4 ? 53 : 24;
        CASES_EQUAL(0x7f800000, hand_ask(&h), "2^254 and 2^-254, rules %d", rules);
        h.a_scale[2] = 0xff;
        CASES_EQUAL(0x7fc00000, hand_ask(&h), "and zeros under ff, rules %d", rules);
    }
    h = scaled_by(0, 0); /* a quantised block of zeros: scale byte 00 */
    for (int i = 0; i < 32; i++) h.a[i] = i & 1 ? MINUS : 0, h.b[i] = 0x7e;
    CASES_EQUAL(0x00000000, hand_ask(&h), "a zero block with its tiny scale");
}

static void specials_by_hand(void **state)
{
    (void)state;
    static const struct {
        problem_mode mode;
        int format;
        uint32_t a, b, expected;
    } known[] = {
        { PROBLEM_PLAIN, TWIN_E4M3, INF_E4M3, 0, 0x7fc00000 },
        { PROBLEM_PLAIN, TWIN_E4M3, INF_E4M3 | MINUS, ONE_E4M3, 0xff800000 },
        { PROBLEM_PLAIN, TWIN_E4M3, 0x79, ONE_E4M3, 0x7fc00000 },
        { PROBLEM_PLAIN, TWIN_E4M3, 0x77, 0x77, 0x47610000 },       /* 240 * 240 = 57600 */
        { PROBLEM_PLAIN, TWIN_E4M3FN, 0x78, ONE_E4M3, 0x43800000 }, /* 256: no infinity here */
        { PROBLEM_PLAIN, TWIN_E4M3FN, NAN_E4M3FN, 0, 0x7fc00000 },
        { PROBLEM_PLAIN, TWIN_E4M3FN, NAN_E4M3FN | MINUS, ONE_E4M3, 0x7fc00000 },
        { PROBLEM_PLAIN, TWIN_E5M2, INF_E5M2, INF_E5M2 | MINUS, 0xff800000 },
        { PROBLEM_PLAIN, TWIN_E5M2, 0xfd, ONE_E5M2, 0x7fc00000 },
        { PROBLEM_PLAIN, TWIN_E5M2, 1, 1, 0x2f800000 },         /* 2^-32 */
        { PROBLEM_PLAIN, TWIN_E3M4, 0x6f, 0x6f, 0x43704000 },   /* 15.5^2 = 240.25 */
        { PROBLEM_PLAIN, TWIN_E3M4, 1, 1 | MINUS, 0xb9800000 }, /* -2^-12 */
        { PROBLEM_DOUBLE_ROW, TWIN_E4M3FN, NAN_E4M3FN, 0, 0x7fc00000 },
        { PROBLEM_DOUBLE_ROW, TWIN_E5M2, INF_E5M2, ONE_E5M2, 0x7f800000 },
        { PROBLEM_MX, TWIN_E5M2, INF_E5M2, 0, 0x7fc00000 },
        { PROBLEM_MX, TWIN_E5M2, INF_E5M2 | MINUS, ONE_E5M2, 0xff800000 },
        { PROBLEM_MX, TWIN_E5M2, NAN_E5M2, ONE_E5M2, 0x7fc00000 },
        { PROBLEM_MX, TWIN_E4M3FN, NAN_E4M3FN, 0, 0x7fc00000 },
        { PROBLEM_MX, TWIN_E2M1, 0x7, 0xf, 0xc2100000 }, /* 6 * -6 */
        { PROBLEM_MX, TWIN_E2M1, 0x1, 0x1, 0x3e800000 }, /* 0.5 * 0.5 */
    };
    for (int i = 0; i < COUNT(known); i++) {
        hand h = hand_start(known[i].mode, known[i].format, 32);
        if (known[i].format == TWIN_E4M3FN) h.generation = TRN_TRAINIUM3;
        h.a[11] = known[i].a;
        h.b[11] = known[i].b;
        CASES_EQUAL(known[i].expected, hand_ask(&h), "%s %02x * %02x", twin_formats[known[i].format].name,
                    (unsigned)known[i].a, (unsigned)known[i].b);
    }
}

/* BF16 times FP8: 2^-133 * 2^-16 is the smallest subnormal; with the bias moved the product is below it: -0 lives. */
static void underflow_by_hand(void **state)
{
    (void)state;
    hand h = hand_start(PROBLEM_PLAIN, TWIN_BF16, 4);
    h.b_format = TWIN_E5M2;
    for (int i = 0; i < 4; i++) h.a[i] = 0x8001, h.b[i] = 1;
    CASES_EQUAL(0x80000004, hand_ask(&h), "four times -2^-149");
    h.numerics.fp8_bias = 17;
    CASES_EQUAL(0x80000000, hand_ask(&h), "four chains of -2^-151: -0");
    h.numerics.flush_products = true;
    CASES_EQUAL(0x00000000, hand_ask(&h), "a flushed product is an exact -0, and +0 + -0 = +0");
    h.b_format = TWIN_BF16;
    memset(&h.numerics, 0, sizeof h.numerics);
    for (int i = 0; i < 4; i++) h.b[i] = 0x0080; /* 2^-126 */
    CASES_EQUAL(0x80000000, hand_ask(&h), "BF16 subnormal times the smallest normal");
    h.k = 3;
    CASES_EQUAL(0x00000000, hand_ask(&h), "a chain without rows is +0");
}

static void integers_by_hand(void **state)
{
    (void)state;
    hand h = hand_start(PROBLEM_PLAIN, TWIN_I8, 300);
    h.dst_format = TWIN_I32;
    h.generation = TRN_TRAINIUM1;
    for (int i = 0; i < 300; i++) h.a[i] = h.b[i] = 0x80; /* -128 */
    CASES_EQUAL(300 * 128 * 128, hand_ask(&h), "300 products of -128 and -128");
    for (int i = 0; i < 300; i++) h.a[i] = 0x7f;
    CASES_EQUAL(0u - 300u * 127u * 128u, hand_ask(&h), "300 products of 127 and -128");
    h.accumulate = true;
    h.before = 0x80000000u;
    CASES_EQUAL(0x80000000u - 300u * 127u * 128u, hand_ask(&h), "below the range: wraps");
    h.numerics.int32_overflow = TRN_INT32_SATURATE;
    CASES_EQUAL(0x80000000u, hand_ask(&h), "below the range: stays");
    h.before = 0x7fffffff;
    for (int i = 0; i < 128; i++) h.b[i] = 0x01; /* the first tile wants up, the others go down */
    CASES_EQUAL(0x7fffffffu - 172u * 127u * 128u, hand_ask(&h), "the first tile stays at the top, the rest comes down");
    h.numerics.int32_overflow = TRN_INT32_WRAP;
    CASES_EQUAL(0x7fffffffu + 128u * 127u - 172u * 127u * 128u, hand_ask(&h), "wrapping forgets nothing");
    h.k = 0;
    CASES_EQUAL(0x7fffffffu, hand_ask(&h), "K = 0 leaves it");
    h.accumulate = false;
    CASES_EQUAL(0, hand_ask(&h), "K = 0 clears it");
}

/* ---- the table: {pair} x {mode} x {generation} ---- */

/* Any rules that the generation has: half of them run at full speed. */
static trn_numerics random_rules(trn_generation generation, uint64_t *rng)
{
    trn_numerics n = problem_fast_order(rng);
    if (cases_one_in(rng, 2)) return n;
    n.group = (trn_group)cases_below(rng, 2);
    n.accumulator = cases_one_in(rng, 2) ? TRN_ACCUMULATOR_NEAREST_EVEN : (trn_accumulator)cases_below(rng, 3);
    if (cases_one_in(rng, 3)) n.accumulator_bits = 24 + cases_below(rng, 30);
    n.product = cases_one_in(rng, 4) ? TRN_PRODUCT_BF16 : TRN_PRODUCT_EXACT;
    n.fp32_mode = (trn_fp32_mode)cases_below(rng, 3);
    n.int32_overflow = (trn_int32_overflow)cases_below(rng, 2);
    n.flush_inputs = cases_one_in(rng, 4);
    n.flush_products = cases_one_in(rng, 4);
    n.flush_sums = cases_one_in(rng, 4);
    if (cases_one_in(rng, 3)) n.fp8_bias = 1 + cases_below(rng, 30);
    if (generation == TRN_TRAINIUM3 && cases_one_in(rng, 4)) {
        n.psum_format = TRN_BF16;
        n.psum_rounding = cases_one_in(rng, 2) ? TRN_STOCHASTIC : TRN_NEAREST_EVEN;
    }
    return n;
}

static void random_twin(twin_problem *t, int a, int b, uint64_t *rng)
{
    t->a_format = a;
    t->b_format = b;
    for (int i = 0; i < 3; i++) t->cfp8[i] = problem_cfp8(rng);
    t->accumulate = cases_one_in(rng, 2);
    t->seed = cases_next(rng);
    t->stream = cases_one_in(rng, 2) ? 0 : cases_next(rng);
}

/* Rows and columns of the array that are tiles of their own, and within its size. */
static void random_tile(instruction *q, uint64_t *rng)
{
    const bool first = q->generation == TRN_TRAINIUM1;
    const int rows = instruction_rows(q), columns = q->twin.m;
    int row = 128, column = 128;
    if (cases_one_in(rng, 2)) return; /* {0, 0}: the whole array */
    while (row / 2 >= rows && row / 2 >= (first ? 64 : 32) && cases_one_in(rng, 2)) row /= 2;
    if (q->mode == PROBLEM_PLAIN)
        while (column / 2 >= columns && column / 2 >= (first ? 64 : 32) && cases_one_in(rng, 2)) column /= 2;
    if (row < 128 && column < 128 && first) column = 128; /* Trainium1 cannot combine them */
    q->size.row = row;
    q->size.column = column;
    q->position.row = row * cases_below(rng, 128 / row);
    q->position.column = column * cases_below(rng, 128 / column);
}

static void one_instruction(problem_mode mode, trn_generation generation, int a, int b, uint64_t *rng)
{
    static const int lanes[] = { 1, 2, 3, 5, 8, 12, 17, 33 }, rows[] = { 1, 2, 3, 4, 7, 31, 32, 33, 64, 100, 127, 128 };
    instruction q;
    memset(&q, 0, sizeof q);
    q.mode = mode;
    q.generation = generation;
    do {
        q.twin.m = problem_size(lanes, COUNT(lanes), rng);
        q.twin.n = problem_size(lanes, COUNT(lanes), rng);
        q.twin.k = problem_size(rows, COUNT(rows), rng) * instruction_group(mode);
        if (mode == PROBLEM_MX) { /* documented: rows in quadrants of 32, an even number of stationary columns */
            q.twin.k = 128 * (1 + cases_below(rng, 4));
            q.twin.m += q.twin.m % 2;
        }
    } while (q.twin.m * q.twin.n * q.twin.k > 6000);
    random_twin(&q.twin, a, b, rng);
    q.twin.dst_format = a == TWIN_I8                                          ? TWIN_I32
                        : generation == TRN_TRAINIUM3 && cases_one_in(rng, 2) ? TWIN_BF16
                                                                              : TWIN_F32;
    q.twin.rounding = cases_one_in(rng, 2) ? TWIN_STOCHASTIC : TWIN_NEAREST_EVEN;
    q.numerics = random_rules(generation, rng);
    random_tile(&q, rng);
    instruction_build(&q, (bridge_values)cases_below(rng, BRIDGE_VALUES), rng);
    instruction_expect(&q, twin_matmul);
    instruction_ask_all(&q);
    instruction_free(&q);
}

/* The definition that the library's kernels are held to, and fall back on, is held to the twin as well. */
static void ask_the_definition(problem *p)
{
    trni_product product;
    memcpy(p->dst.memory, p->before, p->dst.bytes);
    assert_int_equal(TRN_OK, trni_matmul_check(&p->args, &product));
    for (int e = 0; e < p->twin.m * p->twin.n; e++) trni_define_element(&product, e / p->twin.n, e % p->twin.n);
    problem_compare(p, "trni_define_element");
}

/* What a program has that names orders in fields alone (TRN_ALL_ORDERS): the definition, region by region. */
static void ask_without_orders(problem *p)
{
    trni_product product;
    trni_workspace space;
    memcpy(p->dst.memory, p->before, p->dst.bytes);
    assert_int_equal(TRN_OK, trni_matmul_check(&p->args, &product));
    assert_int_equal(TRN_OK, trni_workspace_open(&space, trni_region_space(NULL), 1, NULL));
    for (int64_t i = 0; i < trni_regions(&product); i++)
        trni_region_run(&product, NULL, i, trni_workspace_of(&space, 0));
    trni_workspace_close(&space);
    problem_compare(p, "regions without fast orders");
}

static void one_operation(problem_mode mode, trn_generation generation, int a, int b, uint64_t *rng)
{
    static const int lanes[] = { 1, 1, 2, 3, 7, 13, 17, 33 };
    static const int depth[] = { 1, 2, 3, 4, 5, 31, 127, 128, 129, 130, 255, 256, 257, 300, 511, 513 };
    static const int dst[] = { TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E4M3FN, TWIN_E5M2, TWIN_E3M4, TWIN_CFP8 };
    problem p;
    memset(&p, 0, sizeof p);
    do {
        p.twin.m = problem_size(lanes, COUNT(lanes), rng);
        p.twin.n = problem_size(lanes, COUNT(lanes), rng);
        p.twin.k = problem_size(depth, COUNT(depth), rng);
        if (mode == PROBLEM_MX) p.twin.k = 32 * (1 + cases_below(rng, 18));
    } while (p.twin.m * p.twin.n * p.twin.k > 6000);
    p.twin.group = instruction_group(mode);
    random_twin(&p.twin, a, b, rng);
    do p.twin.dst_format = a == TWIN_I8 ? TWIN_I32 : dst[cases_below(rng, COUNT(dst))];
    while (p.twin.dst_format != TWIN_I32 && p.twin.dst_format > TWIN_F16 &&
           !problem_known(generation, p.twin.dst_format));
    p.twin.rounding = cases_one_in(rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(rng, TWIN_MODES);
    p.twin.saturate = cases_one_in(rng, 3);
    p.numerics = random_rules(generation, rng);
    if (cases_one_in(rng, 4)) p.numerics.sr_bits = 1 + cases_below(rng, 32);
    const bridge_layout layout[3] = { (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS) };
    problem_build(&p, layout, (bridge_values)cases_below(rng, BRIDGE_VALUES), rng);
    p.args.generation = generation;
    problem_expect(&p, twin_matmul);
    problem_ask_all(&p, rng);
    if (a != TWIN_I8) ask_the_definition(&p);
    if (a != TWIN_I8) ask_without_orders(&p);
    problem_free(&p);
}

/* Why a row of the table is refused: statuses and what the sentence has to name. */
typedef struct reason {
    trn_status status;
    const char *word[2];
} reason;

static int reasons_of(problem_mode mode, trn_generation generation, int a, int b, reason *to)
{
    const int f[2] = { a, b };
    const char *const name[2] = { twin_formats[a].name, twin_formats[b].name };
    const char *const chip = trn_generation_name(generation);
    int n = 0;
#define REASON(condition, status, one, two)                                                                            \
    if (condition) to[n++] = (reason)                                                                                  \
        {                                                                                                              \
            status, { one, two }                                                                                       \
        }
    for (int i = 0; i < 2; i++) {
        const bool known = problem_known(TRN_TRAINIUM1, f[i]) || problem_known(TRN_TRAINIUM3, f[i]);
        REASON(!known, TRN_EFORMAT, i ? "moving" : "stationary", name[i]);
        REASON(known && !problem_known(generation, f[i]), TRN_EUNSUPPORTED, name[i], chip);
        REASON(mode == PROBLEM_PLAIN && f[i] == TWIN_E2M1, TRN_EFORMAT, name[i], "MX");
        REASON(mode == PROBLEM_DOUBLE_ROW && !problem_is_fp8(f[i]), TRN_EFORMAT, name[i], "double_row");
        REASON(mode == PROBLEM_MX && !problem_is_mx(f[i]), TRN_EFORMAT, i ? "moving" : "stationary", name[i]);
    }
    REASON(mode != PROBLEM_MX && problem_class(a) != problem_class(b), TRN_EFORMAT, name[0], name[1]);
    REASON((a == TWIN_E4M3 && b == TWIN_E4M3FN) || (a == TWIN_E4M3FN && b == TWIN_E4M3), TRN_EFORMAT, name[0], name[1]);
    REASON(mode == PROBLEM_DOUBLE_ROW && generation == TRN_TRAINIUM1, TRN_EUNSUPPORTED, "double_row", chip);
    REASON(mode == PROBLEM_MX && generation != TRN_TRAINIUM3, TRN_EUNSUPPORTED, "MX", chip);
#undef REASON
    return n;
}

/* Some reason of that status, and its words in the sentence; an operation calls its operands a and b. */
static void because(const reason *why, int count, trn_status status, const char *text, const char *row)
{
    for (int i = 0; i < count; i++) {
        bool said = why[i].status == status;
        for (int w = 0; w < 2; w++) {
            const char *word = why[i].word[w];
            const char *other = strcmp(word, "stationary") == 0 ? "a " : strcmp(word, "moving") == 0 ? "b " : word;
            said = said && (strstr(text, word) || strstr(text, other));
        }
        if (said) return;
    }
    fail_msg("%s: %s, \"%s\"", row, trn_status_text(status), text);
}

static void refused_row(problem_mode mode, trn_generation generation, int a, int b)
{
    static uint32_t zeros[4096], out[64];
    static const char *const mode_name[PROBLEM_MODES] = { "plain", "double rows", "MX" };
    const int64_t k_shape[PROBLEM_MODES][3] = { { 32, 2, 1 }, { 32, 2, 2 }, { 32, 2, 4 } };
    const int rank = mode == PROBLEM_PLAIN ? 2 : 3;
    reason why[12];
    const int count = reasons_of(mode, generation, a, b, why);
    char row[128];
    snprintf(row, sizeof row, "%s, %s times %s, %s", mode_name[mode], twin_formats[a].name, twin_formats[b].name,
             trn_generation_name(generation));
    memset(out, 0x5a, sizeof out);

    instruction q;
    memset(&q, 0, sizeof q);
    q.mode = mode;
    q.generation = generation;
    q.stationary.view = trn_tensor_nd(bridge_format(a), zeros, rank, k_shape[mode]);
    q.moving.view = trn_tensor_nd(bridge_format(b), zeros, rank, k_shape[mode]);
    q.stationary_scale.view = q.moving_scale.view = trn_tensor_2d(TRN_F8_E8M0, zeros, 4, 2);
    q.dst.view = trn_tensor_2d(a == TWIN_I8 && b == TWIN_I8 ? TRN_I32 : TRN_F32, out, 2, 2);
    trn_error error;
    const trn_status status = instruction_run(&q, TRN_ISA_AUTO, NULL, &error);
    because(why, count, status, error.text, row);
    assert_int_equal(status, error.status);

    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    memset(&error, 0, sizeof error);
    args.generation = generation;
    args.dst = q.dst.view;
    args.a = trn_tensor_2d(bridge_format(a), zeros, 2, 64);
    args.b = trn_tensor_2d(bridge_format(b), zeros, 64, 2);
    args.double_row = mode == PROBLEM_DOUBLE_ROW;
    if (mode == PROBLEM_MX) args.a_scale = args.b_scale = trn_tensor_2d(TRN_F8_E8M0, zeros, 2, 2);
    args.error = &error;
    because(why, count, trn_matmul(&args), error.text, row);
    for (int i = 0; i < 64; i++) CASES_EQUAL(0x5a5a5a5a, out[i], "%s: something was written", row);
}

static void every_row_of_the_table(void **state)
{
    (void)state;
    const int rounds = cases_rounds(3, 60);
    uint64_t rng = 104;
    int legal = 0, illegal = 0;
    for (int mode = 0; mode < PROBLEM_MODES; mode++)
        for (int g = 0; g < 3; g++)
            for (int a = 0; a <= TWIN_FORMATS; a++)
                for (int b = 0; b <= TWIN_FORMATS; b++) {
                    const trn_generation generation = problem_generations[g];
                    if (!problem_legal((problem_mode)mode, generation, a, b)) {
                        refused_row((problem_mode)mode, generation, a, b);
                        illegal++;
                        continue;
                    }
                    legal++;
                    for (int round = 0; round < rounds; round++) {
                        one_instruction((problem_mode)mode, generation, a, b, &rng);
                        one_operation((problem_mode)mode, generation, a, b, &rng);
                    }
                }
    CASES_EQUAL(41 + 40 + 27 + 16 + 7 + 9, legal, "rows that are legal");
    CASES_EQUAL(9 * 19 * 19, legal + illegal, "rows");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_k_a_row_holds),
        cmocka_unit_test(twin_pairs_with_zeros_are_plain),
        cmocka_unit_test(twin_quads_of_one_are_scaled_products),
        cmocka_unit_test(twin_modes_agree_on_integers),
        cmocka_unit_test(pairs_by_hand),
        cmocka_unit_test(quads_by_hand),
        cmocka_unit_test(scales_by_hand),
        cmocka_unit_test(specials_by_hand),
        cmocka_unit_test(underflow_by_hand),
        cmocka_unit_test(integers_by_hand),
        cmocka_unit_test(every_row_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
