/* test_nc_matmul.c - one instruction: its bits against the twin, its limits, and trn_matmul as a sequence of it; scale
 * tiles of nc_matmul_mx.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "twin/problem.h"
#include "twin/views.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static trn_nc_matmul_args instruction_of(const problem *p, trn_generation generation, trn_isa isa)
{
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = generation;
    args.dst = p->dst.view;
    args.stationary = trn_tensor_transposed(p->a.view); /* [K, M] */
    args.moving = p->b.view;
    args.accumulate = p->twin.accumulate;
    args.rounding = bridge_rounding(p->twin.rounding);
    args.seed = p->twin.seed;
    args.stream = p->twin.stream;
    args.numerics = &p->numerics;
    args.isa = isa;
    return args;
}

/* ---- bits ---- */

static void build(problem *p, trn_generation generation, int values, uint64_t *rng)
{
    const int wide = cases_below(rng, 2);
    p->twin.a_format = (wide ? TWIN_F32 : TWIN_BF16) + cases_below(rng, 2);
    p->twin.b_format = (wide ? TWIN_F32 : TWIN_BF16) + cases_below(rng, 2);
    p->twin.dst_format = generation == TRN_TRAINIUM3 && cases_one_in(rng, 2) ? TWIN_BF16 : TWIN_F32;
    p->twin.accumulate = cases_one_in(rng, 2);
    p->twin.rounding = cases_one_in(rng, 2) ? TWIN_STOCHASTIC : TWIN_NEAREST_EVEN;
    p->twin.seed = cases_next(rng);
    p->twin.stream = cases_next(rng);
    const bridge_layout layout[3] = { (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_LAYOUTS),
                                      (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS) };
    problem_build(p, layout, (bridge_values)values, rng);
    p->twin.numerics.k_tile = 128; /* an instruction is one tile, and dst is PSUM: these two fields do not apply */
    p->twin.numerics.psum_bf16 = false;
}

static void ask(problem *p, trn_generation generation, trn_isa isa)
{
    trn_error error;
    memset(&error, 0, sizeof error);
    memcpy(p->dst.memory, p->before, p->dst.bytes);
    trn_nc_matmul_args args = instruction_of(p, generation, isa);
    args.error = &error;
    const trn_status status = trn_nc_matmul(&args);
    if (status != TRN_OK) {
        problem_print(p, "refused");
        fail_msg("status %d: %s", (int)status, error.text);
    }
    problem_compare(p, "trn_nc_matmul");
}

static void one_instruction_equals_the_twin(void **state)
{
    (void)state;
    static const int m[] = { 0, 1, 2, 5, 8, 12, 13, 17, 33 }, n[] = { 0, 1, 3, 8, 16, 31, 32, 33, 65 },
                     k[] = { 0, 1, 2, 3, 4, 5, 15, 64, 100, 127, 128 };
    static const trn_generation generations[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM1, TRN_TRAINIUM2, TRN_TRAINIUM3 };
    uint64_t rng = 31;
    const int count = cases_rounds(600, 20000);
    for (int i = 0; i < count; i++) {
        const trn_generation generation = generations[i % 4];
        problem p;
        memset(&p, 0, sizeof p);
        do {
            p.twin.m = problem_size(m, COUNT(m), &rng);
            p.twin.n = problem_size(n, COUNT(n), &rng);
            p.twin.k = problem_size(k, COUNT(k), &rng);
        } while (p.twin.m * p.twin.n * p.twin.k > 15000);
        p.numerics = problem_fast_order(&rng);
        if (cases_one_in(&rng, 4)) { /* and orders that take the slow path */
            p.numerics.accumulator = (trn_accumulator)cases_below(&rng, 3);
            p.numerics.product = (trn_product)cases_below(&rng, 2);
            p.numerics.fp32_mode = (trn_fp32_mode)cases_below(&rng, 2);
            p.numerics.flush_sums = cases_one_in(&rng, 2);
            p.numerics.psum_format = TRN_BF16;
            p.numerics.psum_rounding = TRN_STOCHASTIC;
        }
        build(&p, generation, cases_below(&rng, BRIDGE_VALUES), &rng);
        problem_expect(&p, twin_matmul);
        for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++)
            if (isa == TRN_ISA_AUTO || trn_isa_supported((trn_isa)isa)) ask(&p, generation, (trn_isa)isa);
        problem_free(&p);
    }
}

/* The largest instruction of each generation runs. */
static void full_tiles(void **state)
{
    (void)state;
    static const struct {
        trn_generation generation;
        int n, dst_format;
    } tile[] = {
        { TRN_TRAINIUM1, 512, TWIN_F32 },
        { TRN_TRAINIUM2, 512, TWIN_F32 },
        { TRN_TRAINIUM3, 4096, TWIN_F32 },
        { TRN_TRAINIUM3, 8192, TWIN_BF16 },
    };
    static const bridge_layout packed[3] = { BRIDGE_TRANSPOSED, BRIDGE_PACKED, BRIDGE_PACKED };
    uint64_t rng = 32;
    for (int i = 0; i < COUNT(tile); i++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.twin.m = i < 2 ? 128 : 3; /* keeps the reference short */
        p.twin.n = tile[i].n;
        p.twin.k = 128;
        p.twin.a_format = TWIN_BF16;
        p.twin.b_format = TWIN_F16;
        p.twin.dst_format = tile[i].dst_format;
        problem_build(&p, packed, BRIDGE_WIDE, &rng);
        problem_expect(&p, scalar_matmul);
        ask(&p, tile[i].generation, TRN_ISA_AUTO);
        problem_free(&p);
    }
}

/* ---- trn_matmul is this instruction, tile by tile ---- */

static trn_tensor part(trn_tensor t, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    int64_t stride[TRN_MAX_RANK];
    view_strides(&t, stride);
    t.data = (char *)t.data + (row * stride[0] + column * stride[1]) * (int64_t)trn_format_bytes(t.format);
    t.shape[0] = rows;
    t.shape[1] = columns;
    t.stride[0] = stride[0];
    t.stride[1] = stride[1];
    return t;
}

/* psum [M, N] packed, F32 or BF16: all K-tiles of one block of M and N, ascending. */
static void block_by_instructions(const problem *p, trn_tensor psum, int m, int rows, int n, int columns)
{
    const int k_tile = p->twin.numerics.k_tile;
    for (int k = 0, tile = 0; k < p->twin.k; k += k_tile, tile++) {
        const int depth = p->twin.k - k < k_tile ? p->twin.k - k : k_tile;
        trn_error error;
        memset(&error, 0, sizeof error);
        trn_nc_matmul_args args = instruction_of(p, TRN_TRAINIUM3, TRN_ISA_AUTO);
        args.dst = part(psum, m, rows, n, columns);
        args.stationary = trn_tensor_transposed(part(p->a.view, m, rows, k, depth));
        args.moving = part(p->b.view, k, depth, n, columns);
        args.accumulate = p->twin.accumulate || tile > 0;
        args.rounding = p->numerics.psum_rounding;
        args.stream = p->twin.stream + (uint64_t)tile;
        args.error = &error;
        if (trn_nc_matmul(&args) != TRN_OK) fail_msg("%s", error.text);
    }
}

/* A reference in problem_expect's sense: it needs the views as well as the twin's arrays. */
static const problem *current;

static void by_instructions(const twin_problem *t)
{
    const problem *p = current;
    const int m = p->twin.m, n = p->twin.n;
    const bool bf16 = p->numerics.psum_format == TRN_BF16;
    float *wide = (float *)malloc(sizeof(float) * (size_t)(m * n));
    uint16_t *narrow = (uint16_t *)malloc(sizeof(uint16_t) * (size_t)(m * n));
    assert_true(wide && narrow);
    for (int e = 0; e < m * n; e++) {
        const uint32_t code = bridge_get(&p->dst, e / n, e % n);
        wide[e] = trn_decode(bridge_format(p->twin.dst_format), code);
        narrow[e] = (uint16_t)code;
    }
    const trn_tensor psum = bf16 ? trn_tensor_2d(TRN_BF16, narrow, m, n) : trn_tensor_2d(TRN_F32, wide, m, n);
    for (int i = 0; i < m; i += 128)
        for (int j = 0; j < n; j += 512)
            block_by_instructions(p, psum, i, m - i < 128 ? m - i : 128, j, n - j < 512 ? n - j : 512);
    for (int e = 0; e < m * n; e++) {
        const float x = bf16 ? trn_bf16_to_f32(narrow[e]) : wide[e];
        const int bits = p->twin.numerics.sr_bits ? p->twin.numerics.sr_bits : 32; /* the codec takes 32 of them */
        const uint32_t random = trn_random_field(p->twin.seed, p->twin.stream, (uint64_t)e, bits) << (32 - bits);
        t->dst[e] = trn_encode(bridge_format(p->twin.dst_format), x, bridge_rounding(p->twin.rounding),
                               TRN_OVERFLOW_DEFAULT, random);
    }
    free(wide);
    free(narrow);
}

static void trn_matmul_is_a_sequence_of_instructions(void **state)
{
    (void)state;
    static const int m[] = { 1, 2, 17, 64, 127, 128, 129, 200 }, n[] = { 1, 3, 32, 100, 511, 512, 513, 700 },
                     k[] = { 1, 4, 127, 128, 129, 256, 300, 513 };
    const problem_choice choice = { m, n, k, COUNT(m), COUNT(n), COUNT(k), 4000000 };
    uint64_t rng = 33;
    const int count = cases_rounds(60, 3000);
    int stochastic_psum = 0;
    for (int i = 0; i < count; i++) {
        problem p;
        problem_random(&p, &choice, &rng);
        if (i % 3 == 0 && p.twin.m * p.twin.n * p.twin.k < 100000) { /* the orders that take the slow path too */
            p.numerics.accumulator = (trn_accumulator)cases_below(&rng, 3);
            p.numerics.product = (trn_product)cases_below(&rng, 2);
            p.numerics.accumulator_bits = 24 + cases_below(&rng, 30);
            p.numerics.flush_products = cases_one_in(&rng, 2);
            /* BF16 PSUM: dst must be able to hold what accumulation starts from; stochastic indices are those of the
             * instruction's own dst, so they agree when one instruction covers M and N. */
            if (!p.twin.accumulate || p.twin.dst_format == TWIN_BF16) p.numerics.psum_format = TRN_BF16;
            if (p.twin.m <= 128 && p.twin.n <= 512) p.numerics.psum_rounding = TRN_STOCHASTIC;
            p.twin.numerics = bridge_numerics(&p.numerics);
            stochastic_psum += p.numerics.psum_format == TRN_BF16 && p.numerics.psum_rounding == TRN_STOCHASTIC;
        }
        current = &p;
        problem_expect(&p, by_instructions);
        problem_threads(1 + i % 3);
        problem_ask(&p, TRN_ISA_AUTO);
        problem_free(&p);
    }
    assert_true(stochastic_psum > 0);
}

/* ---- limits and refusals ---- */

typedef struct refusal {
    uint16_t stationary[130 * 130], moving[130];
    float dst[64], before[64];
    trn_nc_matmul_args args;
    trn_error error;
} refusal;

static void refusal_start(refusal *r)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < 64; i++) r->dst[i] = (float)i;
    memcpy(r->before, r->dst, sizeof r->dst);
    r->args.dst = trn_tensor_2d(TRN_F32, r->dst, 4, 8);
    r->args.stationary = trn_tensor_2d(TRN_BF16, r->stationary, 6, 4);
    r->args.moving = trn_tensor_2d(TRN_BF16, r->moving, 6, 8);
    r->args.error = &r->error;
}

static void refused(refusal *r, trn_status expected, const char *word)
{
    const trn_status status = trn_nc_matmul(&r->args);
    if (status != expected)
        fail_msg("expected %s, got %s (\"%s\") where %s is wrong", trn_status_text(expected), trn_status_text(status),
                 r->error.text, word);
    assert_int_equal(expected, r->error.status);
    if (!strstr(r->error.text, word)) fail_msg("\"%s\" does not say \"%s\"", r->error.text, word);
    assert_memory_equal(r->dst, r->before, sizeof r->dst);
    r->args.error = NULL;
    assert_int_equal(expected, trn_nc_matmul(&r->args));
    assert_memory_equal(r->dst, r->before, sizeof r->dst);
}

#define REFUSED(status, word, ...)                                                                                     \
    do {                                                                                                               \
        static refusal r;                                                                                              \
        refusal_start(&r);                                                                                             \
        __VA_ARGS__;                                                                                                   \
        refused(&r, status, word);                                                                                     \
    } while (0)

/* A problem of this size with a format pair and generation: does the instruction take it, and what does it say? */
static void limit(trn_generation generation, trn_format dst, int m, int n, int k, trn_status expected, const char *word)
{
    static uint16_t operand[130 * 8193];
    static float out[8193 * 130];
    trn_error error;
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    memset(&error, 0, sizeof error);
    memset(out, 0x5a, sizeof(float) * (size_t)(m * n));
    args.generation = generation;
    args.dst = trn_tensor_2d(dst, out, m, n);
    args.stationary = trn_tensor_2d(TRN_BF16, operand, k, m);
    args.moving = trn_tensor_2d(TRN_BF16, operand, k, n);
    args.error = &error;
    const trn_status status = trn_nc_matmul(&args);
    if (status != expected)
        fail_msg("generation %d, [%d, %d, %d]: expected %s, got %s (\"%s\")", (int)generation, m, n, k,
                 trn_status_text(expected), trn_status_text(status), error.text);
    if (expected == TRN_OK) {
        CASES_EQUAL(0, cases_bits_of(out[0]) & 0xffff, "zeros times zeros");
        return;
    }
    if (!strstr(error.text, word)) fail_msg("\"%s\" does not say \"%s\"", error.text, word);
    CASES_EQUAL(0x5a5a5a5a, cases_bits_of(out[0]), "nothing may be written");
}

static void tile_limits(void **state)
{
    (void)state;
    static const trn_generation small[] = { TRN_GENERATION_DEFAULT, TRN_TRAINIUM1, TRN_TRAINIUM2 };
    for (int g = 0; g < 3; g++) {
        limit(small[g], TRN_F32, 128, 512, 128, TRN_OK, "");
        limit(small[g], TRN_F32, 1, 512, 129, TRN_ELIMIT, "129 exceeds 128");
        limit(small[g], TRN_F32, 129, 1, 1, TRN_ELIMIT, "129 exceeds 128");
        limit(small[g], TRN_F32, 1, 513, 1, TRN_ELIMIT, "513 exceeds 512");
        limit(small[g], TRN_BF16, 1, 1, 1, TRN_EUNSUPPORTED, small[g] == TRN_TRAINIUM1 ? "Trainium1" : "Trainium2");
    }
    limit(TRN_TRAINIUM3, TRN_F32, 1, 4096, 1, TRN_OK, "");
    limit(TRN_TRAINIUM3, TRN_F32, 1, 4097, 1, TRN_ELIMIT, "4097 exceeds 4096");
    limit(TRN_TRAINIUM3, TRN_BF16, 1, 8192, 1, TRN_OK, "");
    limit(TRN_TRAINIUM3, TRN_BF16, 1, 8193, 1, TRN_ELIMIT, "8193 exceeds 8192");
    limit(TRN_TRAINIUM3, TRN_F32, 1, 1, 129, TRN_ELIMIT, "129 exceeds 128");
    limit(TRN_TRAINIUM3, TRN_F32, 129, 1, 1, TRN_ELIMIT, "129 exceeds 128");
    limit(TRN_TRAINIUM3, TRN_F32, 129, 1, 1, TRN_ELIMIT, "Trainium3");
    limit(TRN_TRAINIUM2, TRN_F32, 1, 600, 1, TRN_ELIMIT, "moving");
    limit(TRN_TRAINIUM2, TRN_F32, 200, 1, 1, TRN_ELIMIT, "stationary");
    limit(TRN_TRAINIUM2, TRN_F32, 1, 1, 129, TRN_ELIMIT, "K");
}

static void format_mixtures(void **state)
{
    (void)state;
    static const trn_format all[] = { TRN_F32, TRN_TF32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E8M0, TRN_I8, TRN_I32 };
    static refusal r;
    for (int s = 0; s < COUNT(all); s++)
        for (int m = 0; m < COUNT(all); m++) {
            refusal_start(&r);
            r.args.stationary.format = all[s];
            r.args.moving.format = all[m];
            r.args.moving.data = r.stationary + 4096;
            const bool legal = (s < 2 && m < 2) || (s >= 2 && s <= 4 && m >= 2 && m <= 4);
            if (s == 6 && m == 6)
                refused(&r, TRN_EUNSUPPORTED, "int8"); /* of Trainium1 */
            else if (legal)
                assert_int_equal(TRN_OK, trn_nc_matmul(&r.args));
            else
                refused(&r, TRN_EFORMAT,
                        trn_format_name(s < 5 || m == 5 || m == 7 ? (s == 5 || s == 7 ? all[s] : all[m]) : all[s]));
        }
    REFUSED(TRN_EFORMAT, "dst is float16", r.args.dst.format = TRN_F16);
    REFUSED(TRN_EFORMAT, "dst is float16", r.args.dst.format = TRN_F16; r.args.generation = TRN_TRAINIUM3);
    REFUSED(TRN_EFORMAT, "dst", r.args.dst.format = TRN_FORMAT_UNSET);
    REFUSED(TRN_EFORMAT, "stationary", r.args.stationary.format = (trn_format)200);
}

static void refuses_the_rest(void **state)
{
    (void)state;
    trn_numerics n;
    memset(&n, 0, sizeof n);
    REFUSED(TRN_ESHAPE, "dst", r.args.dst = trn_tensor_2d(TRN_F32, r.dst, 8, 4));
    REFUSED(TRN_ESHAPE, "K = 6", r.args.moving.shape[0] = 5);
    REFUSED(TRN_ESHAPE, "stationary has", r.args.stationary.rank = 3; r.args.stationary.shape[2] = 1);
    REFUSED(TRN_ESHAPE, "moving has", r.args.moving = trn_tensor_1d(TRN_BF16, r.moving, 8));
    REFUSED(TRN_ESHAPE, "negative", r.args.moving.shape[1] = -8);
    REFUSED(TRN_ESHAPE, "stationary spans", r.args.stationary.shape[1] = r.args.dst.shape[0] = INT64_MAX);
    REFUSED(TRN_EINVAL, "stationary has", r.args.stationary.data = NULL);
    REFUSED(TRN_EINVAL, "moving has", r.args.moving.data = NULL);
    REFUSED(TRN_EINVAL, "dst has", r.args.dst.data = NULL);
    REFUSED(TRN_EINVAL, "overlaps stationary", r.args.stationary.data = r.dst);
    REFUSED(TRN_EINVAL, "overlaps moving", r.args.moving.data = r.dst + 31);
    REFUSED(TRN_EINVAL, "generation", r.args.generation = (trn_generation)7);
    REFUSED(TRN_EINVAL, "rounding", r.args.rounding = (trn_rounding)9);
    REFUSED(TRN_EINVAL, "chains = 5", n.chains = 5; r.args.numerics = &n);
    REFUSED(TRN_EFORMAT, "double_row", r.args.double_row = true);
    REFUSED(TRN_EFORMAT, "transposing bfloat16 makes bfloat16", r.args.is_transpose = true);
    REFUSED(TRN_EUNSUPPORTED, "isa", r.args.isa = (trn_isa)50);
    assert_int_equal(TRN_EINVAL, trn_nc_matmul(NULL));
}

/* ---- nc_matmul_mx: scale tiles against dense scales ---- */

enum { MX_K = 128, MX_M = 24, MX_N = 70, MX_PITCH = 80 };

typedef struct mx_case {
    unsigned char stationary[MX_K * MX_M * 4], moving[MX_K * MX_N * 4];
    unsigned char dense[2][MX_K / 8 * MX_N], tile[2][MX_K * MX_PITCH]; /* of stationary and moving */
    unsigned char before[MX_M * MX_N * 4], expected[MX_M * MX_N * 4], dst[MX_M * MX_N * 4];
    trn_nc_matmul_mx_args args;
    trn_error error;
} mx_case;

/* Where the scale of block g lies in a tile: four partitions of each 32. */
static int scale_partition(int g, int offset) { return g / 4 * 32 + offset + g % 4; }

static void mx_draw(mx_case *c, int k, int m, int n, trn_format a, trn_format b, trn_format dst, uint64_t *rng)
{
    const int64_t stationary[3] = { k, m, 4 }, moving[3] = { k, n, 4 };
    unsigned char *const all[] = { c->stationary, c->moving, c->before };
    const size_t bytes[] = { sizeof c->stationary, sizeof c->moving, sizeof c->before };
    for (int i = 0; i < 3; i++)
        for (size_t at = 0; at < bytes[i]; at++) all[i][at] = (unsigned char)(cases_u32(rng) & 0x77); /* no NaN */
    for (int i = 0; i < 2; i++)
        for (size_t at = 0; at < sizeof c->dense[i]; at++)
            c->dense[i][at] = (unsigned char)(110 + cases_below(rng, 30));
    if (cases_one_in(rng, 8)) c->dense[0][cases_below(rng, k / 8 * m)] = (unsigned char)cases_u32(rng);
    memset(&c->args, 0, sizeof c->args);
    c->args.dst = trn_tensor_2d(dst, c->dst, m, n);
    c->args.stationary = trn_tensor_nd(a, c->stationary, 3, stationary);
    c->args.moving = trn_tensor_nd(b, c->moving, 3, moving);
    c->args.stationary_scale = trn_tensor_2d(TRN_F8_E8M0, c->dense[0], k / 8, m);
    c->args.moving_scale = trn_tensor_2d(TRN_F8_E8M0, c->dense[1], k / 8, n);
    c->args.error = &c->error;
}

/* The same scales in a tile full of others; the view begins at the offset, as NKI's tile[offset:, :]. */
static trn_tensor mx_tile(mx_case *c, int which, int k, int lanes, int offset, uint64_t *rng)
{
    for (size_t at = 0; at < sizeof c->tile[which]; at++) c->tile[which][at] = (unsigned char)cases_u32(rng);
    for (int g = 0; g < k / 8; g++)
        memcpy(c->tile[which] + scale_partition(g, offset) * MX_PITCH, c->dense[which] + g * lanes, (size_t)lanes);
    trn_tensor whole = trn_tensor_2d(TRN_F8_E8M0, c->tile[which], k, lanes);
    whole.stride[0] = MX_PITCH, whole.stride[1] = 1;
    return trn_tensor_slice(whole, 0, offset, k - offset);
}

static void mx_run(mx_case *c, const char *what)
{
    memcpy(c->dst, c->before, sizeof c->dst);
    if (trn_nc_matmul_mx(&c->args) != TRN_OK) fail_msg("%s: %s", what, c->error.text);
}

static void scale_tiles_hold_what_dense_scales_do(void **state)
{
    (void)state;
    static mx_case c;
    static const trn_format format[] = { TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F4_E2M1 };
    uint64_t rng = 77;
    for (int i = 0; i < 3 * 3 * 4 * 4 * 4; i++) { /* formats, partitions, offsets */
        const int k = 32 + 32 * (i / 9 % 4), offset[2] = { 4 * (i / 36 % 4), 4 * (i / 144 % 4) };
        const int m = 2 + 2 * cases_below(&rng, MX_M / 2), n = 1 + cases_below(&rng, MX_N);
        const trn_numerics slow = { .accumulator = TRN_ACCUMULATOR_EXACT };
        mx_draw(&c, k, m, n, format[i % 3], format[i / 3 % 3], cases_one_in(&rng, 3) ? TRN_BF16 : TRN_F32, &rng);
        c.args.accumulate = cases_one_in(&rng, 2);
        if (cases_one_in(&rng, 5)) c.args.numerics = &slow;
        const trn_tensor dense[2] = { c.args.stationary_scale, c.args.moving_scale };
        mx_run(&c, "dense");
        memcpy(c.expected, c.dst, sizeof c.dst);
        const trn_tensor tile[2] = { mx_tile(&c, 0, k, m, offset[0], &rng), mx_tile(&c, 1, k, n, offset[1], &rng) };
        for (int which = 1; which < 4; which++) /* one of them, the other, both */
            for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
                if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
                c.args.isa = (trn_isa)isa;
                c.args.stationary_scale = which & 1 ? tile[0] : dense[0];
                c.args.moving_scale = which & 2 ? tile[1] : dense[1];
                mx_run(&c, "a scale tile");
                if (memcmp(c.expected, c.dst, sizeof c.dst))
                    fail_msg("K %d, M %d, N %d, offsets %d and %d, tiles %d, isa %d: other bits", k, m, n, offset[0],
                             offset[1], which, isa);
            }
    }
}

static void mx_refused(mx_case *c, trn_status expected, const char *word)
{
    memcpy(c->dst, c->before, sizeof c->dst);
    const trn_status status = trn_nc_matmul_mx(&c->args);
    if (status != expected || !strstr(c->error.text, word))
        fail_msg("expected %s with \"%s\", got %s, \"%s\"", trn_status_text(expected), word, trn_status_text(status),
                 c->error.text);
    assert_memory_equal(c->before, c->dst, sizeof c->dst);
}

static void scale_tiles_of_other_shapes_are_refused(void **state)
{
    (void)state;
    static mx_case c;
    static const int rows[] = { 0, 1, 7, 9, 12, 16, 47, 48, 50, 51, 53, 54, 59, 61, 62, 63, 65, 68, 72, 128 };
    uint64_t rng = 78;
    for (int i = 0; i < COUNT(rows); i++) { /* K is 64: dense 8; tiles 64, 60, 56, 52 */
        mx_draw(&c, 64, 2, 3, TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_F32, &rng);
        c.args.stationary_scale = mx_tile(&c, 0, 64, 2, 0, &rng);
        c.args.stationary_scale.shape[0] = rows[i];
        mx_refused(&c, TRN_ESHAPE, "lanes and 8 blocks of 32 need [8, 2], or a scale tile of K partitions");
        mx_draw(&c, 64, 2, 3, TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_F32, &rng);
        c.args.moving_scale = mx_tile(&c, 1, 64, 3, 0, &rng);
        c.args.moving_scale.shape[0] = rows[i];
        mx_refused(&c, TRN_ESHAPE, "moving_scale is [");
    }
#define MX_REFUSED(status, word, ...)                                                                                  \
    do {                                                                                                               \
        mx_draw(&c, 64, 2, 4, TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_F32, &rng);                                            \
        c.args.stationary_scale = mx_tile(&c, 0, 64, 2, 4, &rng);                                                      \
        c.args.moving_scale = mx_tile(&c, 1, 64, 4, 0, &rng);                                                          \
        __VA_ARGS__;                                                                                                   \
        mx_refused(&c, status, word);                                                                                  \
    } while (0)
    MX_REFUSED(TRN_ESHAPE, "stationary_scale is [8, 3]; 2 lanes", c.args.stationary_scale.shape[1] = 3);
    MX_REFUSED(TRN_ESHAPE, "moving_scale has rank 3",
               c.args.moving_scale = trn_tensor_split(c.args.moving_scale, 1, 2));
    MX_REFUSED(TRN_EFORMAT, "moving_scale is int8", c.args.moving_scale.format = TRN_I8);
    MX_REFUSED(TRN_EINVAL, "moving_scale has", c.args.moving_scale.data = NULL);
    MX_REFUSED(TRN_ESHAPE, "stationary_scale spans", /* from row 16 on */
               c.args.stationary_scale.stride[0] = (int64_t)1 << 56);
    MX_REFUSED(TRN_EINVAL, "dst overlaps stationary_scale", /* with its last partitions */
               c.args.stationary_scale.data = c.dst + 8 - 59 * MX_PITCH);
    MX_REFUSED(TRN_ESHAPE, "K = 48 partitions", c.args.stationary.shape[0] = c.args.moving.shape[0] = 48;
               c.args.stationary_scale.shape[0] = c.args.moving_scale.shape[0] = 6);
    MX_REFUSED(TRN_ESHAPE, "6 blocks of 32 need [6, 2]", c.args.stationary.shape[0] = c.args.moving.shape[0] = 48;
               c.args.stationary_scale.shape[0] = 48);
#undef MX_REFUSED
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_instruction_equals_the_twin),
        cmocka_unit_test(full_tiles),
        cmocka_unit_test(trn_matmul_is_a_sequence_of_instructions),
        cmocka_unit_test(tile_limits),
        cmocka_unit_test(format_mixtures),
        cmocka_unit_test(refuses_the_rest),
        cmocka_unit_test(scale_tiles_hold_what_dense_scales_do),
        cmocka_unit_test(scale_tiles_of_other_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
