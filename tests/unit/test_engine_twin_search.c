/* test_engine_twin_search.c - statistics, searches, moves and random numbers of the Vector engine against the slow twin.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trnmath/trn_vector_move.h"
#include "trnmath/trn_vector_random.h"
#include "trnmath/trn_vector_search.h"
#include "trnmath/trn_vector_statistics.h"
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
    if (cases_one_in(c->rng, 4) && c->partitions && c->elements) a.imm = twin_value(twin_widen(&twin_formats[TWIN_BF16], cases_u32(c->rng)));
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
    static const trn_mx_scale rule[] = { TRN_MX_SCALE_NEURON, TRN_MX_SCALE_OCP_FLOOR, TRN_MX_SCALE_ROUND_UP };
    const twin_mx_rule chosen = cases_one_in(c->rng, 2) ? TWIN_MX_DOUBLED : (twin_mx_rule)cases_below(c->rng, 3);
    c->partitions = 32 * cases_below(c->rng, 5);
    c->elements = 4 * cases_below(c->rng, 12);
    c->numerics.mx_scale_rule = rule[chosen];
    a.numerics = &c->numerics;
    a.generation = cases_one_in(c->rng, 2) ? TRN_TRAINIUM3 : TRN_GENERATION_DEFAULT;
    const int64_t shape[3] = { c->partitions, c->elements / 4, 4 };
    a.dst = trn_tensor_nd(bridge_format(twin_mx_elements[which].format), NULL, 3, shape);
    tiles_place(&c->s, &a.dst, false);
    a.dst_scale = tiles_output(&c->s, cases_one_in(c->rng, 2) ? TWIN_E8M0 : TWIN_U8, c->partitions / 8, c->elements / 4);
    a.src = tiles_input(&c->s, source, c->partitions, c->elements);
    const twin_grid dst = tiles_load(&c->s, &a.dst), scale = tiles_load(&c->s, &a.dst_scale), x = tiles_load(&c->s, &a.src);
    twin_quantize_mx(&dst, &scale, &x, &twin_mx_elements[which], chosen, &c->how.cast);
    tiles_want(&c->s, &a.dst_scale, &scale);
    engine_check(c, call_quantize_mx, &a, &a.dst, &dst, "quantize_mx");
    engine_free(3, &dst, &scale, &x);
}

ENGINE_TEST(nc_stream_shuffle, 1500, 20000)
ENGINE_TEST(vector_transpose, 1000, 10000)
ENGINE_TEST(quantize_mx, 600, 6000)
ENGINE_TEST(bn_stats, 1500, 20000)
ENGINE_TEST(bn_aggr, 1500, 20000)
ENGINE_TEST(max8, 2000, 20000)
ENGINE_TEST(nc_find_index8, 2000, 20000)
ENGINE_TEST(nc_match_replace8, 2000, 20000)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bn_stats),       cmocka_unit_test(test_bn_aggr),          cmocka_unit_test(test_max8),
        cmocka_unit_test(test_nc_find_index8), cmocka_unit_test(test_nc_match_replace8),
        cmocka_unit_test(test_nc_stream_shuffle), cmocka_unit_test(test_vector_transpose), cmocka_unit_test(test_quantize_mx),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
