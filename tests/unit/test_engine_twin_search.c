/* test_engine_twin_search.c - the Vector engine's statistics, searches, moves and random numbers against the slow twin.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_vector_engine.h"
#include "twin/engine_cases.h"
#include "twin/twin_search.h"

ENGINE_CALL(bn_stats)
ENGINE_CALL(bn_aggr)
ENGINE_CALL(max8)
ENGINE_CALL(nc_find_index8)
ENGINE_CALL(nc_match_replace8)

static void one_bn_stats(engine_case *c)
{
    trn_bn_stats_args a;
    ENGINE_ARGS(c, a);
    if (c->elements > 512) c->elements = 512 - cases_below(c->rng, 3);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, 6);
    a.data = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    twin_bn_stats(&dst, &x, &c->how.cast);
    engine_check(c, call_bn_stats, &a, &a.dst, &dst, "bn_stats");
    engine_free(2, &dst, &x);
}

static void one_bn_aggr(engine_case *c)
{
    trn_bn_aggr_args a;
    ENGINE_ARGS(c, a);
    c->elements = 3 * cases_below(c->rng, cases_one_in(c->rng, 10) ? 60 : 6);
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, 2);
    a.data = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    if (cases_one_in(c->rng, 2)) /* counts, some of them zero */
        for (int p = 0; p < c->partitions; p++)
            for (int f = 0; f < c->elements; f += 3) {
                const twin_format row = tiles_row(&a.data);
                const twin_number n = twin_make(false, (uint64_t)cases_below(c->rng, 6), 0);
                tiles_put(&c->s, &a.data, p, f, twin_encode(&row, &n, twin_plain(TWIN_NEAREST_EVEN)));
            }
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    twin_bn_aggr(&dst, &x, &c->how.cast);
    engine_check(c, call_bn_aggr, &a, &a.dst, &dst, "bn_aggr");
    engine_free(2, &dst, &x);
}

/* Few different values: duplicates are what these instructions are about. */
static void few_values(engine_case *c, const trn_tensor *t)
{
    uint32_t code[6];
    if (cases_one_in(c->rng, 3)) return;
    for (int i = 0; i < 6; i++) code[i] = tiles_code(&c->s, tiles_format_of(t));
    for (int p = 0; p < t->shape[0]; p++)
        for (int f = 0; f < tiles_elements(t); f++)
            if (!cases_one_in(c->rng, 5)) tiles_put(&c->s, t, p, f, code[cases_below(c->rng, 6)]);
}

/* vals out of data, mostly. */
static void vals_of(engine_case *c, const trn_tensor *vals, const trn_tensor *data)
{
    for (int p = 0; p < vals->shape[0]; p++)
        for (int i = 0; i < 8; i++) {
            uint32_t code = 0;
            memcpy(&code, tiles_at(data, p, cases_below(c->rng, c->elements)), bridge_bytes(tiles_format_of(data)));
            if (!cases_one_in(c->rng, 4)) tiles_put(&c->s, vals, p, i, code);
        }
}

static void one_max8(engine_case *c)
{
    trn_max8_args a;
    ENGINE_ARGS(c, a);
    if (c->elements < 8) c->elements = 8;
    a.dst = tiles_output(&c->s, tiles_format(c->rng), c->partitions, 8);
    a.src = tiles_input(&c->s, tiles_format(c->rng), c->partitions, c->elements);
    few_values(c, &a.src);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src);
    twin_max8(&dst, &x, &c->how.cast);
    engine_check(c, call_max8, &a, &a.dst, &dst, "max8");
    engine_free(2, &dst, &x);
}

static void one_nc_find_index8(engine_case *c)
{
    trn_nc_find_index8_args a;
    ENGINE_ARGS(c, a);
    if (c->elements < 8) c->elements = 8;
    const int format = tiles_format(c->rng);
    a.dst = tiles_output(&c->s, cases_one_in(c->rng, 2) ? TWIN_U16 : TWIN_U32, c->partitions, 8);
    a.data = tiles_input(&c->s, format, c->partitions, c->elements);
    few_values(c, &a.data);
    a.vals = tiles_input(&c->s, format, c->partitions, 8);
    vals_of(c, &a.vals, &a.data);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data), v = tiles_load(&c->s, &a.vals);
    twin_find_index8(&dst, &x, &v);
    engine_check(c, call_nc_find_index8, &a, &a.dst, &dst, "nc_find_index8");
    engine_free(3, &dst, &x, &v);
}

static void one_nc_match_replace8(engine_case *c)
{
    trn_nc_match_replace8_args a;
    ENGINE_ARGS(c, a);
    if (c->elements < 8) c->elements = 8;
    const int format = tiles_format(c->rng);
    a.dst = tiles_output(&c->s, cases_one_in(c->rng, 2) ? format : tiles_format(c->rng), c->partitions, c->elements);
    a.data = tiles_input(&c->s, format, c->partitions, c->elements);
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.data, &a.dst);
    few_values(c, &a.data);
    a.vals = tiles_input(&c->s, tiles_format_of(&a.data), c->partitions, 8);
    vals_of(c, &a.vals, &a.data);
    if (a.generation != TRN_TRAINIUM1 && cases_one_in(c->rng, 2))
        a.dst_idx = tiles_output(&c->s, cases_one_in(c->rng, 2) ? TWIN_U16 : TWIN_U32, c->partitions, 8);
    a.imm = twin_value(cases_float(c->rng));
    if (cases_one_in(c->rng, 4) && c->partitions && c->elements)
        a.imm = twin_value(twin_widen(&twin_formats[TWIN_BF16], cases_u32(c->rng)));
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data), v = tiles_load(&c->s, &a.vals),
                    index = tiles_load(&c->s, &a.dst_idx);
    twin_match_replace8(&dst, &x, &v, twin_bits(a.imm), &index, &c->how.cast);
    tiles_want(&c->s, &a.dst_idx, &index);
    engine_check(c, call_nc_match_replace8, &a, &a.dst, &dst, "nc_match_replace8");
    engine_free(4, &dst, &x, &v, &index);
}

/* ---- moves ---- */

ENGINE_CALL(nc_stream_shuffle)
ENGINE_CALL(vector_transpose)
ENGINE_CALL(quantize_mx)

static void one_nc_stream_shuffle(engine_case *c)
{
    trn_nc_stream_shuffle_args a;
    ENGINE_ARGS(c, a);
    const int format = tiles_format(c->rng);
    if (cases_one_in(c->rng, 2)) c->partitions = 32 * cases_below(c->rng, 5);
    while (c->partitions * c->elements > 3000) c->elements /= 2;
    a.dst = tiles_output(&c->s, format, c->partitions, c->elements);
    a.src = tiles_input(&c->s, format, c->partitions, c->elements);
    a.src.cfp8 = a.dst.cfp8;
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.src, &a.dst);
    const int last = c->partitions % 32 ? c->partitions % 32 : 32; /* of the last quadrant */
    for (int i = 0; i < 32; i++) a.shuffle_mask[i] = cases_one_in(c->rng, 6) ? 255 : cases_below(c->rng, last);
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.src);
    twin_stream_shuffle(&dst, &x, a.shuffle_mask);
    engine_check(c, call_nc_stream_shuffle, &a, &a.dst, &dst, "nc_stream_shuffle");
    engine_free(2, &dst, &x);
}

static void one_vector_transpose(engine_case *c)
{
    trn_vector_transpose_args a;
    ENGINE_ARGS(c, a);
    const int format = tiles_format(c->rng), p = cases_below(c->rng, 33), f = cases_below(c->rng, 33);
    a.dst = tiles_output(&c->s, format, f, p);
    a.data = tiles_input(&c->s, format, p, f);
    a.data.cfp8 = a.dst.cfp8;
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    twin_vector_transpose(&dst, &x);
    engine_check(c, call_vector_transpose, &a, &a.dst, &dst, "vector_transpose");
    engine_free(2, &dst, &x);
}

static void one_quantize_mx(engine_case *c)
{
    trn_quantize_mx_args a;
    ENGINE_ARGS(c, a);
    const int which = cases_below(c->rng, 2), source = cases_one_in(c->rng, 2) ? TWIN_BF16 : TWIN_F16;
    static const trn_mx_scale rule[] = { TRN_MX_SCALE_NEURON, TRN_MX_SCALE_OCP_FLOOR, TRN_MX_SCALE_ROUND_UP,
                                         TRN_MX_SCALE_EVEN, TRN_MX_SCALE_CEIL };
    const twin_mx_rule any = (twin_mx_rule)cases_below(c->rng, TWIN_MX_RULES),
                       chosen = cases_one_in(c->rng, 2) ? TWIN_MX_DOUBLED : any;
    c->partitions = 32 * cases_below(c->rng, 5);
    c->elements = 4 * cases_below(c->rng, 12);
    c->numerics.mx_scale_rule = rule[chosen];
    a.numerics = &c->numerics;
    a.generation = cases_one_in(c->rng, 2) ? TRN_TRAINIUM3 : TRN_GENERATION_DEFAULT;
    const int64_t shape[3] = { c->partitions, c->elements / 4, 4 };
    a.dst = trn_tensor_nd(bridge_format(twin_mx_elements[which].format), NULL, 3, shape);
    tiles_place(&c->s, &a.dst, false);
    const int at = cases_one_in(c->rng, 2) ? -1 : 4 * cases_below(c->rng, 4); /* dense, or from there in a scale tile */
    const bool in_tile = at >= 0 && c->partitions;
    a.dst_scale = tiles_output(&c->s, cases_one_in(c->rng, 2) ? TWIN_E8M0 : TWIN_U8,
                               in_tile ? c->partitions - at : c->partitions / 8, c->elements / 4);
    a.src = tiles_input(&c->s, source, c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst), scale = tiles_load(&c->s, &a.dst_scale),
                    x = tiles_load(&c->s, &a.src);
    const twin_grid dense = twin_grid_make(&scale.format, c->partitions / 8, c->elements / 4);
    twin_quantize_mx(&dst, &dense, &x, &twin_mx_elements[which], chosen, &c->how.cast);
    for (int g = 0; g < dense.partitions; g++)
        for (int f = 0; f < dense.elements; f++)
            *twin_at(&scale, in_tile ? g / 4 * 32 + g % 4 : g, f) = *twin_at(&dense, g, f);
    tiles_want(&c->s, &a.dst_scale, &scale);
    engine_check(c, call_quantize_mx, &a, &a.dst, &dst, "quantize_mx");
    engine_free(4, &dst, &scale, &dense, &x);
}

/* ---- random numbers ---- */

ENGINE_CALL(rng)
ENGINE_CALL(rand2)
ENGINE_CALL(dropout)
ENGINE_CALL(set_rng_seed)
ENGINE_CALL(rand_set_state)
ENGINE_CALL(rand_get_state)

/* The generators of the engine that draws, as NKI shapes their states: lanes of 4 (LFSR), 6 (GpSimd) or 24 words. */
typedef struct generators {
    int kind; /* 0: LFSR, 1: XORWOW of GpSimd, 2: XORWOW of the Vector engine */
    uint32_t state[128 * 24];
} generators;

static const int state_words[3] = { 4, 6, 6 }, states_of_lane[3] = { 1, 1, 4 };
static trn_gpsimd_state gpsimd, gpsimd_before;

static void look(generators *g, const engine_case *c, uint32_t *next)
{
    *next = 0;
    if (g->kind == 0) *next = trn_lfsr_vector_get_state(&c->state.lfsr, g->state);
    if (g->kind == 1) memcpy(g->state, gpsimd.lane, sizeof gpsimd.lane);
    if (g->kind == 2) *next = trn_xorwow_vector_get_state(&c->state.xorwow, g->state);
}

static uint32_t step_one(generators *g, int generator)
{
    uint32_t *state = g->state + (size_t)generator * (size_t)state_words[g->kind];
    return g->kind == 0 ? twin_lfsr(state) : twin_xorwow(state);
}

/* A new step begins; element f of partition p takes word f of lane p, 128 partitions at a time. */
static void draw_words(generators *g, uint32_t next, uint32_t *word, int partitions, int elements)
{
    const int each = states_of_lane[g->kind];
    for (int i = (int)next; next && i < 128 * each; i++) (void)step_one(g, i);
    for (int first = 0; first < partitions; first += 128)
        for (int lane = 0; lane < 128; lane++)
            for (int f = 0; f < (elements + each - 1) / each * each; f++) {
                const uint32_t w = step_one(g, lane * each + f % each);
                if (first + lane < partitions && f < elements) word[(first + lane) * elements + f] = w;
            }
}

/* Draws on the engine that the case chose, and what its generators must be afterwards. */
static generators want_words(engine_case *c, int kind, uint32_t *word, int partitions, int elements)
{
    generators g;
    uint32_t next, some[300];
    g.kind = kind;
    trn_vector_state_init(&c->state, cases_next(c->rng));
    trn_gpsimd_state_init(&gpsimd, cases_next(c->rng));
    if (cases_one_in(c->rng, 4)) { /* another has stopped within a step */
        trn_lfsr_vector_words(&c->state.lfsr, some, (size_t)cases_below(c->rng, 300), TRN_ISA_PORTABLE);
        trn_xorwow_vector_words(&c->state.xorwow, some, (size_t)cases_below(c->rng, 300), TRN_ISA_PORTABLE);
    }
    look(&g, c, &next);
    if (partitions && elements) draw_words(&g, next, word, partitions, elements);
    return g;
}

static uint32_t *some_words(int n) { return twin_words(n); }

/* The call on every instruction set, generators included. */
static void ask_generators(engine_case *c, trn_status (*call)(const void *), void *args, const trn_tensor *dst,
                           const generators *want, const char *what)
{
    const trn_vector_state before = c->state;
    gpsimd_before = gpsimd;
    for (size_t i = 0; i < sizeof all_isas / sizeof all_isas[0]; i++) {
        if (!trn_isa_supported(all_isas[i])) continue;
        trn_instruction head;
        memcpy(&head, args, sizeof head);
        head.isa = all_isas[i];
        memcpy(args, &head, sizeof head);
        const trn_status status = call(args);
        if (status != TRN_OK)
            fail_msg("%s (seed %llu): %s: %s", what, (unsigned long long)c->seed, trn_status_text(status),
                     c->error.text);
        tiles_check(&c->s, dst, what, all_isas[i], c->seed);
        generators after;
        uint32_t next;
        after.kind = want->kind;
        look(&after, c, &next);
        const size_t words = (size_t)(128 * states_of_lane[want->kind] * state_words[want->kind]);
        if (memcmp(after.state, want->state, words * sizeof(uint32_t)) != 0)
            fail_msg("%s (seed %llu): the generators (kind %d) are in another state", what, (unsigned long long)c->seed,
                     want->kind);
        c->state = before;
        gpsimd = gpsimd_before;
        tiles_restore(&c->s);
    }
}

static int vector_kind(const engine_case *c) { return c->generation == TRN_TRAINIUM3 ? 2 : 0; }

static void one_rng(engine_case *c)
{
    trn_rng_args a;
    ENGINE_ARGS(c, a);
    if (cases_one_in(c->rng, 8)) {
        c->partitions = 120 + cases_below(c->rng, 200);
        c->elements = cases_below(c->rng, 9);
        a.unlimited = true;
    }
    const bool on_gpsimd = c->generation != TRN_TRAINIUM1 && cases_one_in(c->rng, 2);
    a.engine = on_gpsimd ? TRN_ENGINE_GPSIMD : cases_one_in(c->rng, 2) ? TRN_ENGINE_VECTOR : TRN_ENGINE_UNKNOWN;
    a.dst = tiles_output(&c->s, engine_integer(c), c->partitions, c->elements);
    a.state = &c->state;
    a.gpsimd = &gpsimd;
    uint32_t *word = some_words(c->partitions * c->elements);
    const generators g = want_words(c, on_gpsimd ? 1 : vector_kind(c), word, c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst);
    for (int i = 0; i < c->partitions * c->elements; i++) dst.code[i] = word[i] & twin_ones(dst.format.bits);
    tiles_want(&c->s, &a.dst, &dst);
    ask_generators(c, call_rng, &a, &a.dst, &g, "rng");
    free(word);
    engine_free(1, &dst);
}

static void one_rand2(engine_case *c)
{
    static const int format[] = { TWIN_F32,  TWIN_TF32, TWIN_BF16, TWIN_F16, TWIN_E4M3,
                                  TWIN_E5M2, TWIN_I8,   TWIN_U16,  TWIN_I32 };
    trn_rand2_args a;
    ENGINE_ARGS(c, a);
    c->generation = a.generation = TRN_TRAINIUM3;
    a.dst = tiles_output(&c->s, format[cases_below(c->rng, 9)], c->partitions, c->elements);
    a.state = &c->state;
    a.min = cases_one_in(c->rng, 2) ? 0.0f : (float)(cases_below(c->rng, 200) - 100);
    a.max = a.min + (cases_one_in(c->rng, 4) ? 1e-5f * a.min * a.min + 1e-6f : (float)(1 + cases_below(c->rng, 100)));
    twin_column low = { twin_bits(a.min), twin_no_grid() }, high = { twin_bits(a.max), twin_no_grid() };
    if (cases_one_in(c->rng, 3)) {
        a.max_tile = tiles_input(&c->s, TWIN_F32, c->partitions, 1);
        for (int p = 0; p < c->partitions; p++)
            tiles_put(&c->s, &a.max_tile, p, 0, twin_bits(a.min + 1.0f + (float)(p % 7)));
        high.tile = tiles_load(&c->s, &a.max_tile);
    }
    uint32_t *word = some_words(c->partitions * c->elements);
    const generators g = want_words(c, 2, word, c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst);
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < c->elements; f++) {
            const uint32_t u =
                twin_f32_product(twin_widen(&twin_formats[TWIN_U32], word[p * c->elements + f]), twin_bits(0x1p-32f));
            const uint32_t least = twin_column_at(&low, p), most = twin_column_at(&high, p);
            const uint32_t x = twin_f32_sum(least, twin_f32_product(u, twin_f32_difference(most, least)));
            twin_store(&dst, p, f, twin_order(x, most) > 0 ? most : x, &c->how.cast);
        }
    tiles_want(&c->s, &a.dst, &dst);
    ask_generators(c, call_rand2, &a, &a.dst, &g, "rand2");
    free(word);
    engine_free(2, &dst, &high.tile);
}

static void one_dropout(engine_case *c)
{
    trn_dropout_args a;
    ENGINE_ARGS(c, a);
    int format = tiles_format(c->rng);
    if (format == TWIN_E8M0) format = TWIN_F16; /* a zero is needed */
    a.dst = tiles_output(&c->s, format, c->partitions, c->elements);
    a.data = tiles_input(&c->s, format, c->partitions, c->elements);
    a.data.cfp8 = a.dst.cfp8;
    if (cases_one_in(c->rng, 4)) tiles_in_place(&c->s, &a.data, &a.dst);
    a.state = &c->state;
    a.prob = cases_one_in(c->rng, 3) ? (float)cases_below(c->rng, 2) : (float)cases_below(c->rng, 1000) / 1000.0f;
    twin_column prob = { twin_bits(a.prob), twin_no_grid() };
    if (cases_one_in(c->rng, 3)) {
        const twin_format row = tiles_row(&a.data);
        const int kind = row.sort == TWIN_SORT_INTEGER ? TWIN_F32 : cases_one_in(c->rng, 2) ? TWIN_BF16 : TWIN_F32;
        a.prob_tile = tiles_input(&c->s, kind, c->partitions, 1);
        for (int p = 0; p < c->partitions; p++) {
            const uint32_t x = twin_bits((float)cases_below(c->rng, 17) / 16.0f); /* exact in both */
            tiles_put(&c->s, &a.prob_tile, p, 0, kind == TWIN_BF16 ? x >> 16 : x);
        }
        prob.tile = tiles_load(&c->s, &a.prob_tile);
    }
    uint32_t *word = some_words(c->partitions * c->elements);
    const generators g = want_words(c, vector_kind(c), word, c->partitions, c->elements);
    for (int i = 0; i < c->partitions * c->elements && !prob.tile.code; i++)
        if (word[i] < 1u << 24) { /* at and just above a word: kept, and dropped */
            a.prob = twin_value(twin_f32_product(twin_bits((float)(word[i] + (i & 1))), twin_bits(0x1p-32f)));
            prob.bits = twin_bits(a.prob);
        }
    const twin_grid dst = tiles_load(&c->s, &a.dst), x = tiles_load(&c->s, &a.data);
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < c->elements; f++) {
            const bool drops =
                (double)word[p * c->elements + f] < (double)twin_value(twin_column_at(&prob, p)) * 4294967296.0;
            *twin_at(&dst, p, f) = drops ? 0 : *twin_at(&x, p, f);
        }
    tiles_want(&c->s, &a.dst, &dst);
    ask_generators(c, call_dropout, &a, &a.dst, &g, "dropout");
    free(word);
    engine_free(3, &dst, &x, &prob.tile);
}

static void one_set_rng_seed(engine_case *c)
{
    static const int format[] = { TWIN_U32, TWIN_I32, TWIN_F32 };
    trn_set_rng_seed_args a;
    ENGINE_ARGS(c, a);
    a.src_seeds = trn_tensor_2d(bridge_format(format[cases_below(c->rng, 3)]), NULL, 1, 1);
    tiles_place(&c->s, &a.src_seeds, true);
    const twin_grid seed = tiles_load(&c->s, &a.src_seeds);
    uint32_t word[1];
    generators g = want_words(c, vector_kind(c), word, 0, 0);
    a.state = &c->state;
    for (int i = 0; i < 128 * states_of_lane[g.kind]; i++) /* as trn_random.h says that a seed becomes states */
        for (int j = 0; j < state_words[g.kind]; j++)
            g.state[i * state_words[g.kind] + j] =
                g.kind ? twin_random_word(seed.code[0], 0x574f57524f58u,
                                          8 * (((uint64_t)1 << 32) + (uint64_t)i) + (uint64_t)j)
                       : twin_random_word(seed.code[0], 0x5253464cu, 4 * (uint64_t)i + (uint64_t)j);
    ask_generators(c, call_set_rng_seed, &a, NULL, &g, "set_rng_seed");
    engine_free(1, &seed);
}

/* States of the lanes 0..P-1, in and out. */
static void one_rand_state(engine_case *c)
{
    trn_rand_set_state_args set;
    trn_rand_get_state_args get;
    ENGINE_ARGS(c, set);
    ENGINE_ARGS(c, get);
    const bool vector = cases_one_in(c->rng, 2);
    const int width = vector ? 24 : 6;
    set.generation = get.generation = vector                           ? TRN_TRAINIUM3
                                      : c->generation == TRN_TRAINIUM1 ? TRN_TRAINIUM2
                                                                       : c->generation;
    set.engine = get.engine = vector                    ? TRN_ENGINE_VECTOR
                              : cases_one_in(c->rng, 2) ? TRN_ENGINE_GPSIMD
                                                        : TRN_ENGINE_UNKNOWN;
    set.src_seeds = tiles_output(&c->s, TWIN_U32, c->partitions, width); /* (no broadcast: states are put into it) */
    get.dst = tiles_output(&c->s, TWIN_U32, c->partitions, width);
    set.state = get.state = &c->state;
    set.gpsimd = get.gpsimd = &gpsimd;
    const twin_grid seeds = tiles_load(&c->s, &set.src_seeds), dst = tiles_load(&c->s, &get.dst);
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < width; f++) tiles_put(&c->s, &set.src_seeds, p, f, *twin_at(&seeds, p, f) | (f % 6 == 0));
    const twin_grid put = tiles_load(&c->s, &set.src_seeds);
    uint32_t word[1];
    generators g = want_words(c, vector ? 2 : 1, word, 0, 0), now = g;
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < width; f++) *twin_at(&dst, p, f) = g.state[p * width + f];
    tiles_want(&c->s, &get.dst, &dst);
    ask_generators(c, call_rand_get_state, &get, &get.dst, &g, "rand_get_state");
    uint32_t next;
    look(&now, c, &next);
    if (c->partitions) draw_words(&now, next, word, 0, 0); /* a step that somebody began ends */
    for (int p = 0; p < c->partitions; p++)
        for (int f = 0; f < width; f++) now.state[p * width + f] = *twin_at(&put, p, f);
    memcpy(tiles_home(&c->s, &get.dst)->want, tiles_home(&c->s, &get.dst)->before, tiles_home(&c->s, &get.dst)->bytes);
    ask_generators(c, call_rand_set_state, &set, NULL, &now, "rand_set_state");
    engine_free(3, &seeds, &dst, &put);
}

ENGINE_TEST(rng, 60, 4000)
ENGINE_TEST(rand2, 60, 4000)
ENGINE_TEST(dropout, 60, 4000)
ENGINE_TEST(set_rng_seed, 10, 500)
ENGINE_TEST(rand_state, 40, 2000)
ENGINE_TEST(nc_stream_shuffle, 1500, 20000)
ENGINE_TEST(vector_transpose, 1000, 10000)
ENGINE_TEST(quantize_mx, 300, 6000)
ENGINE_TEST(bn_stats, 1500, 20000)
ENGINE_TEST(bn_aggr, 1500, 20000)
ENGINE_TEST(max8, 2000, 20000)
ENGINE_TEST(nc_find_index8, 2000, 20000)
ENGINE_TEST(nc_match_replace8, 2000, 20000)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bn_stats),
        cmocka_unit_test(test_bn_aggr),
        cmocka_unit_test(test_max8),
        cmocka_unit_test(test_nc_find_index8),
        cmocka_unit_test(test_nc_match_replace8),
        cmocka_unit_test(test_nc_stream_shuffle),
        cmocka_unit_test(test_vector_transpose),
        cmocka_unit_test(test_quantize_mx),
        cmocka_unit_test(test_rng),
        cmocka_unit_test(test_rand2),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_set_rng_seed),
        cmocka_unit_test(test_rand_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
