/* test_sparse.c - structured sparsity: packing, tags, and products of both levels against the twin, bit for bit.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_sparse.h"
#include "twin/problem.h"
#include "twin/twin_sparse.h"

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static const trn_sparse_pattern patterns[7] = {
    { 4, 16 }, { 4, 12 }, { 4, 8 }, { 2, 8 }, { 2, 4 }, { 1, 4 }, { 1, 2 }
};
enum { PATTERNS = COUNT(patterns) };

/* ---- packing ---- */

static void seven_patterns(void **state)
{
    (void)state;
    int valid = 0;
    for (int m = -1; m <= 17; m++)
        for (int n = -1; n <= 17; n++) {
            const trn_sparse_pattern p = { m, n };
            bool listed = false;
            for (int i = 0; i < PATTERNS; i++) listed = listed || (patterns[i].m == m && patterns[i].n == n);
            assert_int_equal(listed, trn_sparse_pattern_valid(p));
            assert_int_equal(listed ? 48 / n * m : -1, trn_sparse_stored(p, 48));
            valid += listed;
            if (listed) assert_int_equal(-1, trn_sparse_stored(p, 47));
        }
    assert_int_equal(PATTERNS, valid);
    assert_int_equal(-1, trn_sparse_stored(patterns[0], -16));
    assert_int_equal(0, trn_sparse_stored(patterns[0], 0));
}

typedef struct packing {
    int format, rows, k, stored;
    trn_sparse_pattern pattern;
    bridge_matrix full, values, tags;
    trn_sparse_pack_args args;
    trn_error error;
} packing;

static void packing_start(packing *p, int format, trn_sparse_pattern pattern, int rows, int windows, bool plain,
                          uint64_t *rng)
{
    memset(p, 0, sizeof *p);
    p->format = format;
    p->pattern = pattern;
    p->rows = rows;
    p->k = windows * pattern.n;
    p->stored = windows * pattern.m;
    bridge_layout layout[3] = { BRIDGE_PACKED, BRIDGE_PACKED, BRIDGE_PACKED };
    for (int i = 0; i < 3 && !plain; i++) layout[i] = (bridge_layout)cases_below(rng, BRIDGE_OUTPUTS);
    p->full = bridge_make(format, rows, p->k, layout[0], rng);
    p->values = bridge_make(format, rows, p->stored, layout[1], rng);
    p->tags = bridge_make(TWIN_U8, rows, p->stored, layout[2], rng);
    p->args.src = p->full.view;
    p->args.values = p->values.view;
    p->args.tags = p->tags.view;
    p->args.pattern = pattern;
    p->args.error = &p->error;
}

static void packing_free(packing *p)
{
    free(p->full.memory);
    free(p->values.memory);
    free(p->tags.memory);
}

/* A code of a format with many ties, zeros of both signs and whatever else there is. */
static uint32_t some_code(int format, uint64_t *rng)
{
    const twin_format *f = &twin_formats[format];
    const uint32_t sign = cases_one_in(rng, 2) ? 1u << (f->e + f->m) : 0, one = (uint32_t)f->bias << f->m;
    const uint32_t few[4] = { 0, one, one + 1, 1 };
    const uint32_t any = cases_u32(rng) & twin_ones(f->e + f->m);
    return (sign | (cases_one_in(rng, 3) ? any : few[cases_below(rng, 4)])) << (format == TWIN_TF32 ? 13 : 0);
}

/* What pack must have written, by the twin; and that unpack is its inverse, but for the signs of zeros that went. */
static void packing_check(packing *p)
{
    for (int i = 0; i < p->rows; i++)
        for (int w = 0; w < p->k / p->pattern.n; w++) {
            uint32_t code[16];
            int position[16];
            for (int e = 0; e < p->pattern.n; e++) code[e] = bridge_get(&p->full, i, w * p->pattern.n + e);
            twin_sparse_window(p->format, code, p->pattern.m, p->pattern.n, position);
            for (int s = 0; s < p->pattern.m; s++) {
                CASES_EQUAL(position[s], bridge_get(&p->tags, i, w * p->pattern.m + s),
                            "tag, row %d, window %d, place %d", i, w, s);
                CASES_EQUAL(code[position[s]], bridge_get(&p->values, i, w * p->pattern.m + s),
                            "value, row %d, window %d", i, w);
            }
        }
}

static void unpacking_check(packing *p, bool whole)
{
    unsigned char *src = bridge_copy(p->full.memory, p->full.bytes);
    trn_sparse_unpack_args args;
    memset(&args, 0, sizeof args);
    args.dst = p->full.view;
    args.values = p->values.view;
    args.tags = p->tags.view;
    args.pattern = p->pattern;
    args.error = &p->error;
    if (trn_sparse_unpack(&args) != TRN_OK) fail_msg("%s", p->error.text);
    bridge_matrix old = p->full;
    const ptrdiff_t offset = (unsigned char *)p->full.view.data - p->full.memory;
    old.memory = src;
    old.view.data = src + offset;
    for (int i = 0; i < p->rows; i++)
        for (int k = 0; k < p->k; k++) {
            const int w = k / p->pattern.n;
            bool stored = false;
            for (int s = 0; s < p->pattern.m; s++)
                stored = stored || (int)bridge_get(&p->tags, i, w * p->pattern.m + s) == k % p->pattern.n;
            const uint32_t was = bridge_get(&old, i, k), is = bridge_get(&p->full, i, k);
            const twin_number x = twin_decode(&twin_formats[p->format], was);
            CASES_EQUAL(stored ? was : 0, is, "row %d, k %d", i, k);
            if (whole && !stored && !twin_sparse_is_zero(&x)) fail_msg("a nonzero went: row %d, k %d", i, k);
            bridge_put(&p->full, i, k, was);
        }
    assert_memory_equal(src, p->full.memory, p->full.bytes); /* nothing between the elements was written */
    free(src);
}

static const int packed_formats[] = { TWIN_F32,  TWIN_TF32, TWIN_BF16, TWIN_F16,  TWIN_E4M3, TWIN_E4M3FN,
                                      TWIN_E5M2, TWIN_E3M4, TWIN_E2M3, TWIN_E3M2, TWIN_E2M1 };

/* Any numbers, pruned: every pattern, every format, every layout. */
static void pruning_keeps_the_largest(void **state)
{
    (void)state;
    uint64_t rng = 41;
    for (int round = 0; round < cases_rounds(600, 20000); round++) {
        packing p;
        packing_start(&p, packed_formats[round % COUNT(packed_formats)], patterns[cases_below(&rng, PATTERNS)],
                      cases_below(&rng, 7), cases_below(&rng, 9), false, &rng);
        for (int i = 0; i < p.rows; i++)
            for (int k = 0; k < p.k; k++) bridge_put(&p.full, i, k, some_code(p.format, &rng));
        p.args.prune = true;
        if (trn_sparse_pack(&p.args) != TRN_OK) fail_msg("%s", p.error.text);
        packing_check(&p);
        unpacking_check(&p, false);
        packing_free(&p);
    }
}

/* Every set of nonzeros that a window can have: one that fits is stored whole, another is refused and named. */
static void every_set_of_nonzeros(void **state)
{
    (void)state;
    uint64_t rng = 42;
    for (int which = 0; which < PATTERNS; which++) {
        const trn_sparse_pattern pattern = patterns[which];
        const int sets = 1 << pattern.n;
        packing p;
        packing_start(&p, TWIN_BF16, pattern, sets, 1, true, &rng);
        int fit = 0;
        for (int set = 0; set < sets; set++) { /* the sets that fit, one to a row */
            if (__builtin_popcount((unsigned)set) > pattern.m) continue;
            for (int k = 0; k < pattern.n; k++)
                bridge_put(&p.full, fit, k, set >> k & 1 ? 0x3f80u + (uint32_t)k : cases_one_in(&rng, 2) ? 0x8000 : 0);
            fit++;
        }
        p.rows = fit;
        p.args.src.shape[0] = p.args.values.shape[0] = p.args.tags.shape[0] = fit;
        p.full.view = p.args.src, p.values.view = p.args.values, p.tags.view = p.args.tags;
        if (trn_sparse_pack(&p.args) != TRN_OK) fail_msg("%s", p.error.text);
        packing_check(&p);
        unpacking_check(&p, true);
        packing_free(&p);

        for (int set = 0; set<sets; set += pattern.n> 8 ? 97 : 1) {
            if (__builtin_popcount((unsigned)set) <= pattern.m) continue;
            char where[64];
            packing_start(&p, TWIN_BF16, pattern, 3, 4, true, &rng);
            for (int k = 0; k < p.k; k++)
                for (int i = 0; i < 3; i++)
                    bridge_put(&p.full, i, k, i == 1 && k / pattern.n == 2 && set >> k % pattern.n & 1 ? 0xbf80 : 0);
            assert_int_equal(TRN_EINVAL, trn_sparse_pack(&p.args));
            snprintf(where, sizeof where, "row 1, window 2 (k = %d to %d)", 2 * pattern.n, 3 * pattern.n - 1);
            if (!strstr(p.error.text, where)) fail_msg("\"%s\" does not say \"%s\"", p.error.text, where);
            for (size_t e = 0; e < p.values.bytes; e++) assert_int_equal(BRIDGE_FILL, p.values.memory[e]);
            for (size_t e = 0; e < p.tags.bytes; e++) assert_int_equal(BRIDGE_FILL, p.tags.memory[e]);
            packing_free(&p);
        }
    }
}

static void packing_refusals(void **state)
{
    (void)state;
    uint16_t src[3 * 16], values[3 * 4], dst[3 * 16];
    uint8_t tags[3 * 4];
    memset(src, 0, sizeof src);
    memset(values, 0x5a, sizeof values);
    memset(tags, 0x5a, sizeof tags);
    memset(dst, 0x5a, sizeof dst);
    trn_error error;
    trn_sparse_pack_args good;
    memset(&good, 0, sizeof good);
    good.src = trn_tensor_2d(TRN_BF16, src, 3, 16);
    good.values = trn_tensor_2d(TRN_BF16, values, 3, 4);
    good.tags = trn_tensor_2d(TRN_U8, tags, 3, 4);
    good.pattern = patterns[0];
    good.error = &error;
#define REFUSES(expected, word, ...)                                                                                   \
    do {                                                                                                               \
        trn_sparse_pack_args bad = good;                                                                               \
        __VA_ARGS__;                                                                                                   \
        memset(&error, 0, sizeof error);                                                                               \
        assert_int_equal(expected, trn_sparse_pack(&bad));                                                             \
        assert_int_equal(expected, error.status);                                                                      \
        if (!strstr(error.text, word)) fail_msg("\"%s\" does not say \"%s\"", error.text, word);                       \
        for (int i = 0; i < 12; i++) assert_true(values[i] == 0x5a5a && tags[i] == 0x5a);                              \
    } while (0)
    REFUSES(TRN_EINVAL, "3:16", bad.pattern.m = 3);
    REFUSES(TRN_EINVAL, "0:0", bad.pattern.m = bad.pattern.n = 0);
    REFUSES(TRN_ESHAPE, "K = 15", bad.src.shape[1] = 15; bad.src.stride[0] = 16; bad.src.stride[1] = 1);
    REFUSES(TRN_ESHAPE, "4:16", bad.values.shape[1] = bad.tags.shape[1] = 3);
    REFUSES(TRN_ESHAPE, "tags has size 3", bad.tags.shape[1] = 3);
    REFUSES(TRN_ESHAPE, "2 rows", bad.values.shape[0] = bad.tags.shape[0] = 2);
    REFUSES(TRN_ESHAPE, "rank", bad.src.rank = 1);
    REFUSES(TRN_EFORMAT, "float16", bad.values.format = TRN_F16);
    REFUSES(TRN_EFORMAT, "uint8", bad.tags.format = TRN_I8);
    REFUSES(TRN_EFORMAT, "int16", bad.src.format = bad.values.format = TRN_I16);
    REFUSES(TRN_EFORMAT, "float8_e8m0", bad.src.format = bad.values.format = TRN_F8_E8M0);
    REFUSES(TRN_EINVAL, "values overlaps src", bad.values.data = src);
    REFUSES(TRN_EINVAL, "tags overlaps src", bad.tags.data = src);
    REFUSES(TRN_EINVAL, "values overlaps tags", bad.tags.data = values);
    REFUSES(TRN_EINVAL, "null", bad.src.data = NULL);
    assert_int_equal(TRN_EINVAL, trn_sparse_pack(NULL));
    assert_int_equal(TRN_OK, trn_sparse_pack(&good));
#undef REFUSES

    trn_sparse_unpack_args back;
    memset(&back, 0, sizeof back);
    back.dst = trn_tensor_2d(TRN_BF16, dst, 3, 16);
    back.values = good.values;
    back.tags = good.tags;
    back.pattern = good.pattern;
    back.error = &error;
    tags[6] = tags[5];
    assert_int_equal(TRN_EINVAL, trn_sparse_unpack(&back));
    assert_non_null(strstr(error.text, "tags[1, 2] = 1"));
    tags[6] = 16;
    assert_int_equal(TRN_EINVAL, trn_sparse_unpack(&back));
    assert_non_null(strstr(error.text, "tags[1, 2] = 16"));
    for (int i = 0; i < 48; i++) assert_int_equal(0x5a5a, dst[i]);
    assert_int_equal(TRN_EINVAL, trn_sparse_unpack(NULL));
}

/* Four to a word, the first in the low nibble, zeros in what is missing; and back. */
static void packed_tags(void **state)
{
    (void)state;
    uint64_t rng = 43;
    for (int round = 0; round < cases_rounds(300, 5000); round++) {
        const int rows = cases_below(&rng, 4), count = cases_below(&rng, 19), words = (count + 3) / 4;
        bridge_matrix tags = bridge_make(TWIN_U8, rows, count, (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS), &rng);
        bridge_matrix word = bridge_make(TWIN_U16, rows, words, (bridge_layout)cases_below(&rng, BRIDGE_OUTPUTS), &rng);
        trn_error error;
        trn_sparse_tags_pack_args args = { word.view, tags.view, TRN_ISA_AUTO, &error };
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < count; j++) bridge_put(&tags, i, j, (uint32_t)cases_below(&rng, 16));
        if (trn_sparse_tags_pack(&args) != TRN_OK) fail_msg("%s", error.text);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < words; j++) {
                uint32_t expected = 0;
                for (int t = 0; t < 4 && 4 * j + t < count; t++) expected |= bridge_get(&tags, i, 4 * j + t) << 4 * t;
                CASES_EQUAL(expected, bridge_get(&word, i, j), "row %d, word %d", i, j);
            }
        unsigned char *before = bridge_copy(tags.memory, tags.bytes);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < count; j++) bridge_put(&tags, i, j, 0xee);
        args.dst = tags.view;
        args.src = word.view;
        if (trn_sparse_tags_unpack(&args) != TRN_OK) fail_msg("%s", error.text);
        assert_memory_equal(before, tags.memory, tags.bytes);
        free(before);
        free(tags.memory);
        free(word.memory);
    }
    uint8_t tag[5] = { 1, 2, 15, 16, 3 };
    uint16_t word[2] = { 7, 7 };
    trn_error error;
    trn_sparse_tags_pack_args args = { trn_tensor_2d(TRN_U16, word, 1, 2), trn_tensor_2d(TRN_U8, tag, 1, 5),
                                       TRN_ISA_AUTO, &error };
    assert_int_equal(TRN_EINVAL, trn_sparse_tags_pack(&args));
    assert_non_null(strstr(error.text, "src[0, 3] = 16"));
    assert_true(word[0] == 7 && word[1] == 7);
    args.dst.shape[1] = 3;
    tag[3] = 0;
    assert_int_equal(TRN_ESHAPE, trn_sparse_tags_pack(&args));
    args.dst.format = TRN_U8;
    assert_int_equal(TRN_EFORMAT, trn_sparse_tags_pack(&args));
    assert_int_equal(TRN_EINVAL, trn_sparse_tags_pack(NULL));
    assert_int_equal(TRN_EINVAL, trn_sparse_tags_unpack(NULL));
}

/* ---- products ---- */

typedef struct product {
    twin_sparse twin;
    int k; /* rows of b */
    bridge_matrix values, tags, b, dst;
    trn_numerics numerics;
    trn_generation generation;
    bool instruction;
    unsigned char *before, *expected;
} product;

/* Shape, pattern, formats, numerics and modes are there; memory is made here. For an instruction the values
 * and tags are [S, M], which a transposed view shows. */
static void product_build(product *p, bridge_values values, bool plain, uint64_t *rng)
{
    twin_problem *t = &p->twin.product;
    const int m = p->twin.pattern_m, n = p->twin.pattern_n;
    bridge_layout layout[4] = { BRIDGE_PACKED, BRIDGE_PACKED, BRIDGE_PACKED, BRIDGE_PACKED };
    for (int i = 0; i < 4 && !plain; i++)
        layout[i] = (bridge_layout)cases_below(rng, i == 3 || i == 1 ? BRIDGE_OUTPUTS : BRIDGE_LAYOUTS);
    p->k = t->k / m * n;
    p->values = bridge_make(t->a_format, t->m, t->k, layout[0], rng);
    p->tags = bridge_make(TWIN_U8, t->m, t->k, layout[1], rng);
    p->b = bridge_make(t->b_format, p->k, t->n, layout[2], rng);
    p->dst = bridge_make(t->dst_format, t->m, t->n, layout[3], rng);
    bridge_fill(&p->values, t->a_format, t->m, t->k, values, rng);
    bridge_fill(&p->b, t->b_format, p->k, t->n, values, rng);
    bridge_fill(&p->dst, t->dst_format, t->m, t->n, values, rng);
    if (t->a_format == TWIN_TF32 && cases_one_in(rng, 2)) bridge_dirty_tf32(&p->values, t->m, t->k, rng);
    if (t->b_format == TWIN_TF32 && cases_one_in(rng, 2)) bridge_dirty_tf32(&p->b, p->k, t->n, rng);
    for (int i = 0; i < t->m; i++)
        for (int s = 0; s < t->k; s++) { /* ascending, with room for those that follow */
            const int place = s % m, low = place ? (int)bridge_get(&p->tags, i, s - 1) + 1 : 0;
            bridge_put(&p->tags, i, s, (uint32_t)(low + cases_below(rng, n - (m - place) - low + 1)));
        }
    t->numerics = bridge_numerics(&p->numerics);
    t->a = bridge_codes(&p->values, t->m, t->k);
    t->b = bridge_codes(&p->b, p->k, t->n);
    t->dst = bridge_codes(&p->dst, t->m, t->n);
    p->twin.tags = bridge_codes(&p->tags, t->m, t->k);
    p->before = bridge_copy(p->dst.memory, p->dst.bytes);
}

static void product_free(product *p)
{
    free(p->values.memory);
    free(p->tags.memory);
    free(p->b.memory);
    free(p->dst.memory);
    free((void *)(uintptr_t)p->twin.product.a);
    free((void *)(uintptr_t)p->twin.product.b);
    free((void *)(uintptr_t)p->twin.tags);
    free(p->twin.product.dst);
    free(p->before);
    free(p->expected);
}

/* The faster reference, for orders of fused multiply-adds: each row as a dense product in binary32, then one cast. */
static void scalar_sparse(const twin_sparse *t)
{
    const twin_problem *p = &t->product;
    const twin_format dst = twin_format_of(p, TWIN_DST);
    for (int i = 0; i < p->m; i++) {
        twin_problem row = twin_sparse_dense_row(t, i);
        uint32_t *psum = (uint32_t *)malloc(sizeof(uint32_t) * ((size_t)row.n + 1)),
                 *out = p->dst + (size_t)i * (size_t)p->n;
        assert_non_null(psum);
        for (int j = 0; j < row.n; j++) {
            const twin_number old = twin_decode(&dst, out[j]);
            psum[j] = twin_to_f32(&old);
        }
        row.a += (size_t)i * (size_t)row.k;
        row.m = 1;
        row.dst = psum;
        row.dst_format = TWIN_F32;
        row.rounding = TWIN_NEAREST_EVEN;
        scalar_matmul(&row);
        for (int j = 0; j < row.n && (p->k || !p->accumulate); j++) {
            const uint64_t index = (uint64_t)i * (uint64_t)p->n + (uint64_t)j;
            twin_way way = twin_plain(p->rounding);
            way.random_bits = p->numerics.sr_bits;
            way.random = twin_random_bits(p->seed, p->stream, index, p->numerics.sr_bits);
            way.saturate = p->saturate;
            const twin_number x = twin_from_f32(psum[j]), result = x.kind == TWIN_NAN ? twin_nan() : x;
            out[j] = twin_encode(&dst, &result, way);
        }
        free(psum);
        free((void *)(uintptr_t)row.b);
    }
}

static void product_expect(product *p, void (*reference)(const twin_sparse *))
{
    const twin_problem *t = &p->twin.product;
    reference(&p->twin);
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->n; j++) bridge_put(&p->dst, i, j, t->dst[(size_t)i * (size_t)t->n + (size_t)j]);
    p->expected = bridge_copy(p->dst.memory, p->dst.bytes);
}

static trn_status product_call(const product *p, trn_isa isa, trn_error *error)
{
    const twin_problem *t = &p->twin.product;
    const trn_sparse_pattern pattern = { p->twin.pattern_m, p->twin.pattern_n };
    if (p->instruction) {
        trn_nc_matmul_sparse_args args;
        memset(&args, 0, sizeof args);
        args.generation = p->generation;
        args.dst = p->dst.view;
        args.stationary = trn_tensor_transposed(p->values.view);
        args.tags = trn_tensor_transposed(p->tags.view);
        args.moving = p->b.view;
        args.pattern = pattern;
        args.accumulate = t->accumulate;
        args.rounding = bridge_rounding(t->rounding);
        args.seed = t->seed;
        args.stream = t->stream;
        args.numerics = &p->numerics;
        args.isa = isa;
        args.error = error;
        return trn_nc_matmul_sparse(&args);
    }
    trn_sparse_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = p->generation;
    args.dst = p->dst.view;
    args.values = p->values.view;
    args.tags = p->tags.view;
    args.pattern = pattern;
    args.b = p->b.view;
    args.accumulate = t->accumulate;
    args.rounding = bridge_rounding(t->rounding);
    args.overflow = t->saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    args.seed = t->seed;
    args.stream = t->stream;
    args.numerics = &p->numerics;
    args.isa = isa;
    args.error = error;
    return trn_sparse_matmul(&args);
}

static void product_ask(product *p, trn_isa isa)
{
    const twin_problem *t = &p->twin.product;
    const twin_numerics *n = &t->numerics;
    char what[300];
    trn_error error;
    snprintf(what, sizeof what,
             "%s %d:%d, %dx%dx%d stored, %s times %s to %s%s, rounding %d, isa %s, chains %d%s%s, k_tile %d",
             p->instruction ? "instruction" : "product", p->twin.pattern_m, p->twin.pattern_n, t->m, t->n, t->k,
             twin_formats[t->a_format].name, twin_formats[t->b_format].name, twin_formats[t->dst_format].name,
             t->accumulate ? ", accumulating" : "", (int)t->rounding, trn_isa_text(isa), n->chains,
             n->blocked ? " blocked" : "", n->pairwise ? " pairwise" : "", n->k_tile);
    memcpy(p->dst.memory, p->before, p->dst.bytes);
    if (product_call(p, isa, &error) != TRN_OK) fail_msg("%s: %s", what, error.text);
    if (memcmp(p->dst.memory, p->expected, p->dst.bytes) == 0) return;
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->n; j++)
            CASES_EQUAL(t->dst[(size_t)i * (size_t)t->n + (size_t)j], bridge_get(&p->dst, i, j), "%s: element [%d, %d]",
                        what, i, j);
    fail_msg("%s: bytes outside the elements of dst were written", what);
}

static void product_ask_all(product *p, uint64_t *rng)
{
    static const int threads[4] = { 1, 2, 3, 7 };
    for (int isa = TRN_ISA_AUTO; isa < TRN_ISA_COUNT; isa++) {
        if (isa != TRN_ISA_AUTO && !trn_isa_supported((trn_isa)isa)) continue;
        problem_threads(threads[cases_below(rng, 4)]);
        product_ask(p, (trn_isa)isa);
    }
}

/* Formats that meet on a generation that has sparsity, the options of the call, and a pattern. */
static void product_choose(product *p, uint64_t *rng)
{
    static const int results[] = {
        TWIN_F32, TWIN_F32, TWIN_BF16, TWIN_F16, TWIN_E4M3, TWIN_E4M3FN, TWIN_E5M2, TWIN_E3M4
    };
    twin_problem *t = &p->twin.product;
    const trn_sparse_pattern pattern = patterns[cases_below(rng, PATTERNS)];
    memset(p, 0, sizeof *p);
    p->twin.pattern_m = pattern.m;
    p->twin.pattern_n = pattern.n;
    do {
        p->generation = cases_one_in(rng, 2) ? TRN_TRAINIUM2 : TRN_TRAINIUM3;
        t->a_format = cases_below(rng, TWIN_FORMATS + 1);
        t->b_format = cases_one_in(rng, 2) ? t->a_format : cases_below(rng, TWIN_FORMATS + 1);
    } while (!problem_legal(PROBLEM_PLAIN, p->generation, t->a_format, t->b_format));
    t->dst_format = results[cases_below(rng, COUNT(results))];
    t->accumulate = cases_one_in(rng, 2);
    t->saturate = cases_one_in(rng, 3);
    t->rounding = cases_one_in(rng, 2) ? TWIN_NEAREST_EVEN : (twin_mode)cases_below(rng, TWIN_MODES);
    t->seed = cases_next(rng);
    t->stream = cases_one_in(rng, 2) ? 0 : cases_next(rng);
    p->numerics = problem_fast_order(rng);
    if (cases_one_in(rng, 4)) p->numerics.sr_bits = 1 + cases_below(rng, 32);
    if (cases_one_in(rng, 8)) p->numerics.fp8_bias = 1 + cases_below(rng, 30);
}

static void product_size(product *p, int m, int n, int windows)
{
    p->twin.product.m = m;
    p->twin.product.n = n;
    p->twin.product.k = windows * p->twin.pattern_m;
}

/* Shapes around every width that a gang, a strip, a window or a tile has; all formats, layouts, values, fast orders. */
static void random_products_equal_the_twins(void **state)
{
    (void)state;
    static const int m[] = { 0, 1, 2, 3, 7, 8, 9, 11, 16, 17 }, n[] = { 0, 1, 2, 15, 16, 17, 31, 32, 33, 40 };
    static const int windows[] = { 0, 1, 2, 3, 5, 8, 31, 32, 33, 40, 65 };
    uint64_t rng = 44;
    for (int round = 0; round < cases_rounds(500, 20000);) {
        product p;
        product_choose(&p, &rng);
        product_size(&p, m[cases_below(&rng, COUNT(m))], n[cases_below(&rng, COUNT(n))],
                     windows[cases_below(&rng, COUNT(windows))]);
        if ((int64_t)p.twin.product.m * p.twin.product.n * p.twin.product.k > 12000) continue;
        product_build(&p, (bridge_values)cases_below(&rng, BRIDGE_VALUES), false, &rng);
        product_expect(&p, twin_sparse_matmul);
        product_ask_all(&p, &rng);
        product_free(&p);
        round++;
    }
}

/* Every other order there is: rounded products, other accumulators, flushing, the split of F32, PSUM in BF16. */
static void other_numerics_equal_the_twins(void **state)
{
    (void)state;
    static const char *const setting[] = { "product=bf16",
                                           "accumulator=toward_zero",
                                           "accumulator=exact",
                                           "accumulator_bits=26",
                                           "accumulator_bits=53",
                                           "fp32_mode=split",
                                           "fp32_mode=fp32r",
                                           "flush_inputs=on",
                                           "flush_products=on",
                                           "flush_sums=on",
                                           "psum_format=bfloat16",
                                           "psum_format=bfloat16,psum_rounding=stochastic,sr_bits=8",
                                           "product=bf16,chains=8,chain_layout=blocked",
                                           "k_tile=7,accumulator=exact" };
    uint64_t rng = 45;
    for (int round = 0; round < cases_rounds(280, 6000); round++) {
        product p;
        product_choose(&p, &rng);
        assert_int_equal(TRN_OK, trn_numerics_parse(&p.numerics, setting[round % COUNT(setting)]));
        if (p.numerics.psum_format == TRN_BF16 && p.generation == TRN_TRAINIUM2) p.generation = TRN_GENERATION_DEFAULT;
        product_size(&p, 1 + cases_below(&rng, 3), 1 + cases_below(&rng, 5), 1 + cases_below(&rng, 70));
        product_build(&p, (bridge_values)cases_below(&rng, BRIDGE_VALUES), false, &rng);
        product_expect(&p, twin_sparse_matmul);
        product_ask(&p, TRN_ISA_AUTO);
        product_free(&p);
    }
}

/* The faster reference is nothing but a claim until the twin confirms it. */
static void the_scalar_reference_equals_the_twin(void **state)
{
    (void)state;
    uint64_t rng = 46;
    for (int round = 0; round < cases_rounds(150, 2000); round++) {
        product p;
        product_choose(&p, &rng);
        p.numerics.fp8_bias = 0;
        product_size(&p, 1 + cases_below(&rng, 4), 1 + cases_below(&rng, 6), cases_below(&rng, 50));
        product_build(&p, (bridge_values)cases_below(&rng, BRIDGE_VALUES), true, &rng);
        const size_t count = (size_t)p.twin.product.m * (size_t)p.twin.product.n;
        uint32_t *before = bridge_codes(&p.dst, p.twin.product.m, p.twin.product.n), *own = p.twin.product.dst;
        scalar_sparse(&p.twin);
        p.twin.product.dst = before;
        twin_sparse_matmul(&p.twin);
        assert_memory_equal(before, own, count * sizeof(uint32_t));
        free(own);
        product_free(&p);
    }
}

/* Beyond one slab, one block of lists and one part of PSUM in every direction, and cut among threads. */
static void larger_products(void **state)
{
    (void)state;
    static const int shape[][3] = { { 130, 70, 90 }, { 270, 40, 70 },  { 530, 33, 40 }, { 9, 530, 40 },
                                    { 8, 1030, 33 }, { 40, 300, 130 }, { 65, 260, 65 }, { 1, 600, 200 } };
    uint64_t rng = 47;
    for (int round = 0; round < COUNT(shape) * cases_rounds(2, 20); round++) {
        const int *s = shape[round % COUNT(shape)];
        product p;
        product_choose(&p, &rng);
        if (cases_one_in(&rng, 2)) p.twin.product.a_format = p.twin.product.b_format = TWIN_BF16;
        product_size(&p, s[0], s[1], s[2]);
        product_build(&p, cases_one_in(&rng, 3) ? BRIDGE_SPECIAL : BRIDGE_WIDE, cases_one_in(&rng, 2), &rng);
        p.twin.product.numerics.fp8_bias = p.numerics.fp8_bias = 0;
        product_expect(&p, scalar_sparse);
        product_ask_all(&p, &rng);
        for (int threads = 1; threads <= 8; threads++) {
            problem_threads(threads);
            product_ask(&p, TRN_ISA_AUTO);
        }
        product_free(&p);
    }
}

/* Every pattern with every count of chains, layout and merge, to the last stored element of a short tile. */
static void every_pattern_and_order(void **state)
{
    (void)state;
    uint64_t rng = 48;
    for (int c = 0; c < PATTERNS * 5 * 2 * 2 * 2; c++) {
        product p;
        int left = c;
        product_choose(&p, &rng);
        p.twin.pattern_m = patterns[left % PATTERNS].m, p.twin.pattern_n = patterns[left % PATTERNS].n,
        left /= PATTERNS;
        p.numerics = trn_numerics_default(TRN_TRAINIUM2);
        p.numerics.chains = 1 << left % 5, left /= 5;
        p.numerics.chain_layout = (trn_chain_layout)(left % 2), left /= 2;
        p.numerics.merge = (trn_merge)(left % 2), left /= 2;
        if (left) p.twin.product.a_format = p.twin.product.b_format = TWIN_BF16;
        for (int round = 0; round < cases_rounds(2, 4); round++) {
            product_size(&p, 9 + cases_below(&rng, 9), 40,
                         128 / p.twin.pattern_m + 1 + cases_below(&rng, 120 / p.twin.pattern_m));
            product_build(&p, cases_one_in(&rng, 2) ? BRIDGE_WIDE : BRIDGE_TINY, round > 0, &rng);
            product_expect(&p, scalar_sparse);
            product_ask_all(&p, &rng);
            product_free(&p);
            p.expected = NULL;
        }
    }
}

/* ---- the instruction ---- */

static void instructions_equal_the_twins_and_the_operation(void **state)
{
    (void)state;
    uint64_t rng = 49;
    for (int round = 0; round < cases_rounds(300, 8000); round++) {
        product p;
        product_choose(&p, &rng);
        twin_problem *t = &p.twin.product;
        p.instruction = true;
        p.numerics.k_tile = 0;
        t->saturate = false;
        t->dst_format = p.generation == TRN_TRAINIUM3 && cases_one_in(&rng, 2) ? TWIN_BF16 : TWIN_F32;
        const bool full = cases_one_in(&rng, 10);
        product_size(&p, full ? 128 : cases_below(&rng, 20), full ? 40 : cases_below(&rng, 70),
                     cases_below(&rng, 128 / p.twin.pattern_m + 1));
        product_build(&p, (bridge_values)cases_below(&rng, BRIDGE_VALUES), false, &rng);
        const bool slow = (int64_t)t->m * t->n * t->k > 12000;
        if (slow) t->numerics.fp8_bias = p.numerics.fp8_bias = 0;
        product_expect(&p, slow ? scalar_sparse : twin_sparse_matmul);
        product_ask_all(&p, &rng);
        p.instruction = false;
        product_ask_all(&p, &rng);
        product_free(&p);
    }
}

typedef struct refusal {
    uint16_t values[64], b[64 * 8];
    uint8_t tags[64];
    float dst[64], before[64];
    trn_sparse_matmul_args args;
    trn_error error;
} refusal;

static void refusal_start(refusal *r) /* [4, 8] = [4, 8 of 32] * [32, 8] */
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < 64; i++)
        r->values[i] = 0x3f80, r->dst[i] = r->before[i] = (float)i, r->tags[i] = (uint8_t)(i % 4);
    for (int i = 0; i < 512; i++) r->b[i] = 0x3f80;
    r->args.dst = trn_tensor_2d(TRN_F32, r->dst, 4, 8);
    r->args.values = trn_tensor_2d(TRN_BF16, r->values, 4, 8);
    r->args.tags = trn_tensor_2d(TRN_U8, r->tags, 4, 8);
    r->args.b = trn_tensor_2d(TRN_BF16, r->b, 32, 8);
    r->args.pattern = patterns[0];
    r->args.error = &r->error;
}

static void refused(refusal *r, trn_status expected, const char *word)
{
    const trn_status status = trn_sparse_matmul(&r->args);
    if (status != expected)
        fail_msg("expected %s, got %s (\"%s\") where %s is wrong", trn_status_text(expected), trn_status_text(status),
                 r->error.text, word);
    assert_int_equal(expected, r->error.status);
    if (!strstr(r->error.text, word)) fail_msg("\"%s\" does not say \"%s\"", r->error.text, word);
    assert_memory_equal(r->dst, r->before, sizeof r->dst);
    assert_int_equal(0, trn_sparse_matmul_scratch_bytes(&r->args));
    r->args.error = NULL;
    assert_int_equal(expected, trn_sparse_matmul(&r->args));
    assert_memory_equal(r->dst, r->before, sizeof r->dst);
}

#define REFUSED(status, word, ...)                                                                                     \
    do {                                                                                                               \
        refusal r;                                                                                                     \
        refusal_start(&r);                                                                                             \
        __VA_ARGS__;                                                                                                   \
        refused(&r, status, word);                                                                                     \
    } while (0)

static void refusals(void **state)
{
    (void)state;
    trn_numerics n;
    memset(&n, 0, sizeof n);
    refusal fine;
    refusal_start(&fine);
    assert_int_equal(TRN_OK, trn_sparse_matmul(&fine.args));
    for (int i = 0; i < 32; i++) assert_true(fine.dst[i] == 8.0f);

    REFUSED(TRN_EINVAL, "5:16", r.args.pattern.m = 5);
    REFUSED(TRN_EINVAL, "tags[2, 5] = 16", r.tags[21] = 16);
    REFUSED(TRN_EINVAL, "tags[2, 5] = 0", r.tags[21] = 0);
    REFUSED(TRN_EINVAL, "tags[0, 7] = 255", r.tags[7] = 255);
    REFUSED(TRN_ESHAPE, "K = 31", r.args.b.shape[0] = 31);
    REFUSED(TRN_ESHAPE, "stores 4", r.args.b.shape[0] = 16);
    REFUSED(TRN_ESHAPE, "tags has size 7", r.args.tags.shape[1] = 7);
    REFUSED(TRN_ESHAPE, "dst is [5, 8]", r.args.dst.shape[0] = 5);
    REFUSED(TRN_ESHAPE, "values has rank 1", r.args.values.rank = 1);
    REFUSED(TRN_ESHAPE, "b has negative", r.args.b.shape[1] = -1);
    REFUSED(TRN_EFORMAT, "tags is int8", r.args.tags.format = TRN_I8);
    REFUSED(TRN_EFORMAT, "values is int8", r.args.values.format = TRN_I8; r.args.b.format = TRN_I8);
    REFUSED(TRN_EFORMAT, "float32", r.args.b.format = TRN_F32);
    REFUSED(TRN_EFORMAT, "float4", r.args.values.format = TRN_F4_E2M1);
    REFUSED(TRN_EFORMAT, "dst is uint32", r.args.dst.format = TRN_U32);
    REFUSED(TRN_EFORMAT, "dst is int32", r.args.dst.format = TRN_I32);
    REFUSED(TRN_EFORMAT, "dst is tfloat32", r.args.dst.format = TRN_TF32);
    REFUSED(TRN_EFORMAT, "E4M3", r.args.values.format = TRN_F8_E4M3; r.args.b.format = TRN_F8_E4M3FN);
    REFUSED(TRN_EUNSUPPORTED, "Trainium1 has no structured sparsity", r.args.generation = TRN_TRAINIUM1);
    REFUSED(TRN_EUNSUPPORTED, "Trainium2", r.args.generation = TRN_TRAINIUM2; r.args.values.format = TRN_F8_E4M3FN);
    REFUSED(TRN_EINVAL, "generation = 9", r.args.generation = (trn_generation)9);
    REFUSED(TRN_EINVAL, "values has", r.args.values.data = NULL);
    REFUSED(TRN_EINVAL, "tags has", r.args.tags.data = NULL);
    REFUSED(TRN_EINVAL, "b has", r.args.b.data = NULL);
    REFUSED(TRN_EINVAL, "dst overlaps values", r.args.values.data = r.dst);
    REFUSED(TRN_EINVAL, "dst overlaps tags", r.args.tags.data = r.dst);
    REFUSED(TRN_EINVAL, "dst overlaps b",
            r.args.b.data = r.dst - 120); /* its last rows, beyond as many as are stored */
    REFUSED(TRN_EINVAL, "rounding", r.args.rounding = (trn_rounding)6);
    REFUSED(TRN_EINVAL, "overflow", r.args.overflow = (trn_overflow)2);
    REFUSED(TRN_EINVAL, "chains = 3", n.chains = 3; r.args.numerics = &n);
    REFUSED(TRN_EUNSUPPORTED, "isa", r.args.isa = (trn_isa)77);
    assert_int_equal(TRN_EINVAL, trn_sparse_matmul(NULL));
    assert_int_equal(0, trn_sparse_matmul_scratch_bytes(NULL));
}

static void instruction_refusals_and_psum(void **state)
{
    (void)state;
    static uint16_t stationary[132 * 132], moving[528 * 16];
    static uint8_t tags[132 * 132];
    static float dst[132 * 16];
    for (int i = 0; i < 132 * 132; i++) tags[i] = (uint8_t)(i / 132 % 4); /* [S, M] */
    trn_error error;
    trn_nc_matmul_sparse_args good;
    memset(&good, 0, sizeof good);
    good.dst = trn_tensor_2d(TRN_F32, dst, 8, 16);
    good.stationary = trn_tensor_2d(TRN_BF16, stationary, 128, 8);
    good.tags = trn_tensor_2d(TRN_U8, tags, 128, 8);
    good.moving = trn_tensor_2d(TRN_BF16, moving, 512, 16);
    good.stationary.stride[0] = good.tags.stride[0] = 132;
    good.stationary.stride[1] = good.tags.stride[1] = 1;
    good.pattern = patterns[0];
    good.error = &error;
    assert_int_equal(TRN_OK, trn_nc_matmul_sparse(&good));
#define REFUSES(expected, word, ...)                                                                                   \
    do {                                                                                                               \
        trn_nc_matmul_sparse_args bad = good;                                                                          \
        __VA_ARGS__;                                                                                                   \
        memset(&error, 0, sizeof error);                                                                               \
        assert_int_equal(expected, trn_nc_matmul_sparse(&bad));                                                        \
        if (!strstr(error.text, word)) fail_msg("\"%s\" does not say \"%s\"", error.text, word);                       \
        for (int i = 0; i < COUNT(dst); i++) assert_true(dst[i] == 0);                                                 \
    } while (0)
    REFUSES(TRN_ELIMIT, "S (partitions) 132 exceeds 128", bad.stationary.shape[0] = bad.tags.shape[0] = 132;
            bad.moving.shape[0] = 528);
    REFUSES(TRN_ELIMIT, "M 129 exceeds 128", bad.stationary.shape[1] = bad.tags.shape[1] = bad.dst.shape[0] = 129);
    REFUSES(TRN_ELIMIT, "N 513 exceeds 512", bad.moving.shape[1] = bad.dst.shape[1] = 513;
            bad.moving.shape[0] = bad.stationary.shape[0] = 0; bad.tags.shape[0] = 0;
            bad.dst.shape[0] = bad.stationary.shape[1] = bad.tags.shape[1] = 1);
    REFUSES(TRN_ESHAPE, "512", bad.stationary.shape[0] = bad.tags.shape[0] = 124);
    REFUSES(TRN_EUNSUPPORTED, "Trainium1", bad.generation = TRN_TRAINIUM1);
    REFUSES(TRN_EUNSUPPORTED, "bfloat16", bad.dst.format = TRN_BF16);
    REFUSES(TRN_EFORMAT, "float16", bad.dst.format = TRN_F16; bad.generation = TRN_TRAINIUM3);
    tags[5 * 132 + 3] = 0;
    REFUSES(TRN_EINVAL, "tags[5, 3] = 0", (void)0);
    tags[5 * 132 + 3] = 1;
    bool written = false;
    REFUSES(TRN_EINVAL, "undefined", bad.psum_written = &written; bad.accumulate = true);
    assert_false(written);
    good.psum_written = &written;
    assert_int_equal(TRN_OK, trn_nc_matmul_sparse(&good));
    assert_true(written);
    good.accumulate = true;
    assert_int_equal(TRN_OK, trn_nc_matmul_sparse(&good));
    assert_int_equal(TRN_EINVAL, trn_nc_matmul_sparse(NULL));
#undef REFUSES
}

/* ---- where the bits are not those of the dense product, and why ---- */

enum { ROW = 1024 }; /* of K: two tiles of stored elements at 4:16, eight dense tiles */

/* One row and one column, F32, 4:16: the sparse product and the dense one of the same numbers. */
static void both(const float *a, const float *b, uint32_t *sparse, uint32_t *dense, const trn_numerics *n)
{
    static float values[ROW / 4];
    static uint8_t tags[ROW / 4];
    trn_error error;
    trn_sparse_pack_args pack;
    memset(&pack, 0, sizeof pack);
    pack.src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)a, 1, ROW);
    pack.values = trn_tensor_2d(TRN_F32, values, 1, ROW / 4);
    pack.tags = trn_tensor_2d(TRN_U8, tags, 1, ROW / 4);
    pack.pattern = patterns[0];
    pack.error = &error;
    if (trn_sparse_pack(&pack) != TRN_OK) fail_msg("%s", error.text);
    trn_sparse_matmul_args s;
    memset(&s, 0, sizeof s);
    s.dst = trn_tensor_2d(TRN_F32, sparse, 1, 1);
    s.values = pack.values;
    s.tags = pack.tags;
    s.pattern = pack.pattern;
    s.b = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)b, ROW, 1);
    s.numerics = n;
    s.error = &error;
    if (trn_sparse_matmul(&s) != TRN_OK) fail_msg("%s", error.text);
    trn_matmul_args d;
    memset(&d, 0, sizeof d);
    d.dst = trn_tensor_2d(TRN_F32, dense, 1, 1);
    d.a = pack.src;
    d.b = s.b;
    d.numerics = n;
    d.error = &error;
    if (trn_matmul(&d) != TRN_OK) fail_msg("%s", error.text);
}

static void where_the_dense_product_differs(void **state)
{
    (void)state;
    static float a[ROW], b[ROW];
    uint32_t sparse, dense;
    trn_numerics one;
    memset(&one, 0, sizeof one);
    one.chains = 1;

    /* Small integers: every sum is exact, in any order. */
    uint64_t rng = 50;
    for (int k = 0; k < ROW; k++)
        a[k] = k % 16 < 4 ? (float)(cases_below(&rng, 17) - 8) : 0.0f, b[k] = (float)(cases_below(&rng, 17) - 8);
    both(a, b, &sparse, &dense, NULL);
    CASES_EQUAL(dense, sparse, "exact sums");

    /* PSUM: 1 in the first 128 of K, 2^-24 in each of the next three. One tile of stored elements adds them to each
     * other first, in a chain of their own; dense PSUM has 1 already, and each of them is lost to it. */
    memset(a, 0, sizeof a);
    for (int k = 0; k < ROW; k++) b[k] = 1.0f;
    a[0] = 1.0f;                         /* stored element 0, chain 0 */
    a[129] = a[257] = a[385] = 0x1p-24f; /* filled up with zeros before it, each is the second of its window: chain 1 */
    both(a, b, &sparse, &dense, NULL);
    CASES_EQUAL(0x3f800000, dense, "dense: three ties to even");
    CASES_EQUAL(0x3f800002, sparse, "sparse: 3 * 2^-24 rounds up");

    /* Chains: k = 1 and k = 5 are chain 1 of the dense tile. Stored, they are elements 1 and 2 after k = 0 (the fourth
     * is a filling zero): chains 1 and 2. */
    memset(a, 0, sizeof a);
    a[0] = 1.0f;
    a[1] = a[5] = 0x1p-24f;
    both(a, b, &sparse, &dense, NULL);
    CASES_EQUAL(0x3f800001, dense, "dense: chain 1 holds 2^-23");
    CASES_EQUAL(0x3f800000, sparse, "sparse: 2^-24 twice, each a tie to even");

    /* 0 · inf and 0 · NaN: only what is stored is multiplied, and a filling zero is stored. */
    b[7] = cases_float_of(0x7f800000);
    both(a, b, &sparse, &dense, NULL);
    CASES_EQUAL(0x7fc00000, dense, "dense: 0 * inf");
    CASES_EQUAL(0x3f800000, sparse, "sparse: never multiplied");
    b[7] = cases_float_of(0x7fc00000);
    both(a, b, &sparse, &dense, NULL);
    CASES_EQUAL(0x7fc00000, dense, "dense: 0 * NaN");
    CASES_EQUAL(0x3f800000, sparse, "sparse: never multiplied");
    b[7] = 1.0f;
    b[2] = cases_float_of(0x7f800000); /* the lowest zero of the first window, which fills it up */
    both(a, b, &sparse, &dense, NULL);
    CASES_EQUAL(0x7fc00000, sparse, "a filling zero is multiplied");

    /* -0: an underflow leaves it as the last element stored; what follows it in a dense row are zeros, and +0 wins. */
    for (int k = 0; k < ROW; k++) a[k] = 0.0f, b[k] = 1.0f;
    for (int k = 0; k < ROW; k++) a[k] = k % 16 < 4 ? -0x1p-100f : 0.0f, b[k] = 0x1p-100f;
    both(a, b, &sparse, &dense, &one);
    CASES_EQUAL(0x00000000, dense, "dense: -0 + 0 * x = +0");
    CASES_EQUAL(0x80000000, sparse, "sparse: -0");
}

/* ---- memory ---- */

static void scratch(void **state)
{
    (void)state;
    uint64_t rng = 51;
    for (int round = 0; round < 30; round++) {
        product p;
        do product_choose(&p, &rng);
        while (p.numerics.fp8_bias);
        product_size(&p, 1 + cases_below(&rng, 200), 1 + cases_below(&rng, 90), 1 + cases_below(&rng, 40));
        product_build(&p, BRIDGE_WIDE, true, &rng);
        product_expect(&p, scalar_sparse);
        problem_threads(1 + round % 4);
        trn_error error;
        trn_sparse_matmul_args args;
        memset(&args, 0, sizeof args);
        args.generation = p.generation;
        args.dst = p.dst.view;
        args.values = p.values.view;
        args.tags = p.tags.view;
        args.pattern.m = p.twin.pattern_m;
        args.pattern.n = p.twin.pattern_n;
        args.b = p.b.view;
        args.accumulate = p.twin.product.accumulate;
        args.rounding = bridge_rounding(p.twin.product.rounding);
        args.overflow = p.twin.product.saturate ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
        args.seed = p.twin.product.seed;
        args.stream = p.twin.product.stream;
        args.numerics = &p.numerics;
        args.error = &error;
        const size_t bytes = trn_sparse_matmul_scratch_bytes(&args), margin = 64 + (size_t)(round % 7);
        assert_true(bytes > 0);
        unsigned char *memory = (unsigned char *)malloc(bytes + 2 * margin);
        assert_non_null(memory);
        memset(memory, 0x5a, bytes + 2 * margin);
        args.scratch = memory + margin;
        args.scratch_bytes = bytes - 1;
        memcpy(p.dst.memory, p.before, p.dst.bytes);
        assert_int_equal(TRN_ENOSPC, trn_sparse_matmul(&args));
        assert_non_null(strstr(error.text, "scratch_bytes"));
        assert_memory_equal(p.dst.memory, p.before, p.dst.bytes);
        args.scratch_bytes = bytes;
        if (trn_sparse_matmul(&args) != TRN_OK) fail_msg("%s", error.text);
        assert_memory_equal(p.dst.memory, p.expected, p.dst.bytes);
        for (size_t i = 0; i < margin; i++) assert_true(memory[i] == 0x5a && memory[margin + bytes + i] == 0x5a);
        free(memory);
        product_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seven_patterns),
        cmocka_unit_test(pruning_keeps_the_largest),
        cmocka_unit_test(every_set_of_nonzeros),
        cmocka_unit_test(packing_refusals),
        cmocka_unit_test(packed_tags),
        cmocka_unit_test(the_scalar_reference_equals_the_twin),
        cmocka_unit_test(random_products_equal_the_twins),
        cmocka_unit_test(other_numerics_equal_the_twins),
        cmocka_unit_test(larger_products),
        cmocka_unit_test(every_pattern_and_order),
        cmocka_unit_test(instructions_equal_the_twins_and_the_operation),
        cmocka_unit_test(refusals),
        cmocka_unit_test(instruction_refusals_and_psum),
        cmocka_unit_test(where_the_dense_product_differs),
        cmocka_unit_test(scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
