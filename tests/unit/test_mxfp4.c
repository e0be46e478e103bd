/* test_mxfp4.c - MXFP4 tensors of checkpoints: every code under every scale against the library's formats, the order of
 * nibbles, names, and pairs that do not fit.
 * SPDX-License-Identifier: MIT
 */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#if defined(HAVE_CJSON)

#include "io/mxfp4.h"
#include "unit/made_tensor.h"

/* ---- values ---- */

static void every_code_under_every_scale(void **state)
{
    static unsigned char blocks[256 * 16], scales[256];
    float row[32];
    unsigned char code[32];
    mxfp4 m;
    char why[IO_WHY];
    (void)state;
    for (int s = 0; s < 256; s++) {
        scales[s] = (unsigned char)s;
        for (int i = 0; i < 16; i++) blocks[16 * s + i] = (unsigned char)(i | (15 - i) << 4);
    }
    const st_tensor b = tensor("x_blocks", "U8", 3, (int64_t[4]){ 256, 1, 16 }, blocks);
    const st_tensor s = tensor("x_scales", "U8", 2, (int64_t[4]){ 256, 1 }, scales);
    assert_true(mxfp4_open(&b, &s, &m, why));
    for (int r = 0; r < 256; r++) {
        mxfp4_row(&m, r, row);
        mxfp4_codes(&m, r, code);
        for (int k = 0; k < 32; k++) {
            const int expected = k % 2 ? 15 - k / 2 : k / 2; /* the low half comes first */
            const float value = trn_decode(TRN_F4_E2M1, (uint32_t)expected) * trn_decode(TRN_F8_E8M0, (uint32_t)r);
            assert_int_equal(code[k], expected);
            assert_int_equal(mxfp4_code(&m, r, k), expected);
            assert_int_equal(bits_of(row[k]), bits_of(value));
            assert_int_equal(bits_of(mxfp4_at(&m, r, k)), bits_of(value));
            assert_int_equal(bits_of(trn_bf16_to_f32(trn_bf16_from_f32(value))), bits_of(value));
        }
    }
}

/* Elements of [2, 3, 64], each block with a scale of its own. */
static void rows_groups_and_matrices(void **state)
{
    static unsigned char blocks[2 * 3 * 2 * 16], scales[2 * 3 * 2];
    float row[64];
    mxfp4 m, flat;
    char why[IO_WHY];
    (void)state;
    for (size_t i = 0; i < sizeof blocks; i++) blocks[i] = (unsigned char)(37 * i + i / 16);
    for (size_t i = 0; i < sizeof scales; i++) scales[i] = (unsigned char)(120 + i);
    const st_tensor b = tensor("x.blocks", "U8", 4, (int64_t[4]){ 2, 3, 2, 16 }, blocks);
    const st_tensor c = tensor("x_packed", "U8", 3, (int64_t[4]){ 2, 3, 32 }, blocks);
    const st_tensor s = tensor("x.scales", "F8_E8M0", 3, (int64_t[4]){ 2, 3, 2 }, scales);
    assert_true(mxfp4_open(&b, &s, &m, why) && mxfp4_open(&c, &s, &flat, why));
    assert_true(m.matrices == 2 && m.rows == 3 && m.columns == 64 && m.groups == 2);
    assert_memory_equal(&m, &flat, sizeof m);
    for (int64_t r = 0; r < 6; r++) {
        mxfp4_row(&m, r, row);
        for (int64_t k = 0; k < 64; k++) {
            const int64_t group = 2 * r + k / 32, inside = k % 32;
            const int code = blocks[16 * group + inside / 2] >> (inside % 2 ? 4 : 0) & 15;
            assert_true(row[k] == ldexpf(trn_decode(TRN_F4_E2M1, (uint32_t)code), scales[group] - 127));
        }
    }
}

/* ---- names and shapes ---- */

static void names(void **state)
{
    char scales[MXFP4_NAME], base[MXFP4_NAME];
    (void)state;
    assert_true(mxfp4_scales_name("a.experts.down_proj_blocks", scales, base));
    assert_string_equal(scales, "a.experts.down_proj_scales");
    assert_string_equal(base, "a.experts.down_proj");
    assert_true(mxfp4_scales_name("block.0.mlp.mlp1_weight.blocks", scales, base));
    assert_string_equal(scales, "block.0.mlp.mlp1_weight.scales");
    assert_string_equal(base, "block.0.mlp.mlp1_weight");
    assert_true(mxfp4_scales_name("x_blocks", NULL, NULL));
    assert_false(mxfp4_scales_name("blocks", scales, base));
    assert_false(mxfp4_scales_name("_blocks", scales, base));
    assert_false(mxfp4_scales_name("xblocks", scales, base));
    assert_false(mxfp4_scales_name("x_blocks.weight", scales, base));
}

static void what_does_not_fit(void **state)
{
    static const struct {
        const char *type, *scale_type;
        int rank, scale_rank;
        int64_t shape[4], scale_shape[4];
        const char *what;
    } row[] = {
        { "U8", "U8", 3, 2, { 4, 2, 16 }, { 4, 3 }, "do not fit" },
        { "U8", "U8", 3, 2, { 4, 2, 16 }, { 3, 2 }, "do not fit" },
        { "U8", "U8", 3, 2, { 4, 2, 8 }, { 4, 2 }, "do not fit" },
        { "U8", "U8", 2, 2, { 4, 33 }, { 4, 2 }, "do not fit" },
        { "U8", "U8", 2, 2, { 4, 16 }, { 4, 2 }, "do not fit" },
        { "U8", "U8", 1, 0, { 16 }, { 0 }, "do not fit" },
        { "U8", "U8", 4, 2, { 1, 4, 2, 16 }, { 4, 2 }, "do not fit" },
        { "BF16", "U8", 3, 2, { 4, 2, 16 }, { 4, 2 }, "it is BF16" },
        { "U8", "F32", 3, 2, { 4, 2, 16 }, { 4, 2 }, "its scales are F32" },
    };
    mxfp4 m;
    char why[IO_WHY];
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const st_tensor b = tensor("x_blocks", row[i].type, row[i].rank, row[i].shape, NULL);
        const st_tensor s = tensor("x_scales", row[i].scale_type, row[i].scale_rank, row[i].scale_shape, NULL);
        assert_false(mxfp4_open(&b, &s, &m, why));
        if (!strstr(why, row[i].what) || strncmp(why, "x_blocks: ", 10) != 0) fail_msg("row %d: %s", (int)i, why);
        assert_false(mxfp4_open(&b, NULL, &m, why));
        assert_string_equal(why, "x_blocks: its scales are missing");
    }
    assert_false(mxfp4_open(NULL, NULL, &m, why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_under_every_scale),
        cmocka_unit_test(rows_groups_and_matrices),
        cmocka_unit_test(names),
        cmocka_unit_test(what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("cJSON is not installed: safetensors files are not read\n");
    return 0;
}

#endif
