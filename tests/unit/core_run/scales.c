/* core_run/scales.c - scale tiles of MX on a core: where they may lie, what is read and written of them, and when.
 * SPDX-License-Identifier: MIT
 */
#include "unit/core_run/groups.h"
#include "unit/core_steps.h"

#include <stdio.h>

/* ---- scale tiles: four partitions of each quadrant, at an offset ---- */

enum { MX_P = 64, MX_F = 8 }; /* partitions and words of a data tile */

static trn_tensor scale_part(trn_tensor scales, int64_t offset)
{
    return trn_tensor_slice(scales, 0, offset, scales.shape[0] - offset); /* NKI's scales[offset:, :] */
}

static trn_tensor mx_codes(const char *name)
{
    return trn_tensor_split(trn_core_sbuf(&core, name, TRN_F8_E4M3FN, MX_P, 4 * MX_F), 1, 4);
}

static void quantize(trn_tensor dst, trn_tensor dst_scale, trn_tensor src)
{
    const trn_quantize_mx_args args = { .dst = dst, .src = src, .dst_scale = dst_scale };
    trn_core_quantize_mx(&core, &args);
}

static void multiply(trn_tensor dst, trn_tensor codes, trn_tensor stationary_scale, trn_tensor moving_scale)
{
    const trn_nc_matmul_mx_args args = { .dst = dst,
                                         .stationary = codes,
                                         .moving = codes,
                                         .stationary_scale = stationary_scale,
                                         .moving_scale = moving_scale };
    trn_core_nc_matmul_mx(&core, &args);
}

/* Two tensors' scales in one tile, as in the guide's kernel with packed scales; the sums of dense scales. */
static void a_scale_tile_holds_scales_of_several_tensors(void **state)
{
    (void)state;
    static float sums[2][MX_F * MX_F];
    static uint8_t dense[2][MX_P / 8 * MX_F], codes[MX_P * MX_F * 4];
    static uint16_t in[2][MX_P * 4 * MX_F];
    for (int i = 0; i < MX_P * 4 * MX_F; i++) {
        in[0][i] = (uint16_t)(0x3e00 + i * 37 % 0x280 + i % 2 * 0x8000);
        in[1][i] = (uint16_t)(0x3d00 + i * 53 % 0x380);
    }
    for (int offset = 0; offset < 16; offset += 4) {
        const int other = (offset + 4) % 16;
        begin(TRN_TRAINIUM3);
        const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
        const trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, MX_F, MX_F);
        for (int i = 0; i < 2; i++) {
            const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F), q = mx_codes("codes");
            move(x, trn_core_hbm(&core, "in", trn_tensor_2d(TRN_BF16, in[i], MX_P, 4 * MX_F)));
            quantize(q, scale_part(scales, i ? other : offset), x);
            if (i) multiply(acc, q, scale_part(scales, offset), scale_part(scales, other));
        }
        fine();
        for (int i = 0; i < 2; i++) {
            const int64_t shape[3] = { MX_P, MX_F, 4 };
            const trn_quantize_mx_args args = { .dst = trn_tensor_nd(TRN_F8_E4M3FN, codes, 3, shape),
                                                .src = trn_tensor_2d(TRN_BF16, in[i], MX_P, 4 * MX_F),
                                                .dst_scale = trn_tensor_2d(TRN_F8_E8M0, dense[i], MX_P / 8, MX_F) };
            assert_int_equal(trn_quantize_mx(&args), TRN_OK);
            const trn_nc_matmul_mx_args mm = { .dst = trn_tensor_2d(TRN_F32, sums[1], MX_F, MX_F),
                                               .stationary = args.dst,
                                               .moving = args.dst,
                                               .stationary_scale = trn_tensor_2d(TRN_F8_E8M0, dense[0], MX_P / 8, MX_F),
                                               .moving_scale = args.dst_scale };
            if (i) assert_int_equal(trn_nc_matmul_mx(&mm), TRN_OK);
        }
        for (int p = 0; p < MX_P; p++) { /* what nothing has written is as it was */
            const uint8_t *row = (const uint8_t *)scales.data + p * scales.stride[0];
            const int i = p % 32 / 4 == offset / 4 ? 0 : p % 32 / 4 == other / 4 ? 1 : -1;
            for (int f = 0; f < MX_F; f++)
                assert_int_equal(row[f], i < 0 ? 0xff : dense[i][(p / 32 * 4 + p % 4) * MX_F + f]);
        }
        for (int m = 0; m < MX_F; m++)
            memcpy(sums[0] + m * MX_F, (const float *)acc.data + m * acc.stride[0], MX_F * sizeof(float));
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    }
}

/* What is read of a scale tile is four partitions of each quadrant; those are asked for, and no others. */
static void scales_that_nothing_wrote_are_told_and_others_are_not(void **state)
{
    (void)state;
    char sentence[160];
    for (int offset = 0; offset < 16; offset += 4)
        for (int without = -1; without < 8; without++) {
            begin(TRN_TRAINIUM3);
            const trn_tensor q = mx_codes("codes"), acc = trn_core_psum(&core, "acc", TRN_F32, MX_F, MX_F);
            const trn_tensor ones = trn_core_sbuf(&core, "ones", TRN_F8_E8M0, MX_P, MX_F);
            const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
            set(q, 1);
            set(ones, 1);
            for (int g = 0; g < 8; g++) {
                const int64_t p = g / 4 * 32 + offset + g % 4;
                if (g != without) trn_core_written(&core, trn_tensor_slice(scales, 0, p, 1));
                memset((char *)scales.data + p * scales.stride[0], 127, MX_F);
            }
            multiply(acc, q, offset % 8 ? scale_part(scales, offset) : ones,
                     offset % 8 ? ones : scale_part(scales, offset));
            snprintf(sentence, sizeof sentence,
                     "instruction 2, nc_matmul_mx: %s reads partition %d, element 0 of 'scales', which nothing has "
                     "written",
                     offset % 8 ? "stationary_scale" : "moving_scale", without / 4 * 32 + offset + without % 4);
            if (without >= 0)
                expect(sentence);
            else
                fine();
            if (without < 0) assert_true(((const float *)acc.data)[0] == 4.0f * MX_P);
        }

    begin(TRN_TRAINIUM3); /* and so quantize_mx writes no others */
    static uint8_t host[32 * MX_F];
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F),
                     out = trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F8_E8M0, host, 32, MX_F));
    const trn_tensor q = mx_codes("codes"), scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
    set(x, 1);
    quantize(q, scale_part(scales, 8), x);
    move(trn_tensor_slice(out, 0, 0, 4), trn_tensor_slice(scales, 0, 32 + 8, 4));
    fine();
    move(trn_tensor_slice(out, 0, 0, 5), trn_tensor_slice(scales, 0, 32 + 8, 5));
    expect("instruction 3, dma_copy: src reads partition 44, element 0 of 'scales', which nothing has written");
}

static void scale_tiles_lie_where_tiles_can(void **state)
{
    (void)state;
    static const struct {
        int tile, first, rows;
        const char *rest;
    } row[] = {
        { 128, 0, 64, NULL },
        { 128, 4, 60, NULL },
        { 128, 12, 52, NULL },
        { 128, 64, 64, NULL },
        { 128, 72, 56, NULL },
        { 128, 4, 64, "takes 64 partitions of 'scales' from partition 4; tiles begin at partition 0, 32, 64 or 96" },
        { 128, 32, 64, "takes 64 partitions of 'scales' from partition 32; more than 32 partitions begin at 0 or 64" },
        { 128, 0, 60, "takes 64 partitions of 'scales' from partition -4; tiles begin at partition 0, 32, 64 or 96" },
        { 128, 8, 60, "takes 64 partitions of 'scales' from partition 4; tiles begin at partition 0, 32, 64 or 96" },
        { 63, 0, 64, "leaves tile 'scales': partitions 0 to 63, bytes 0 to 7 of a tile of 63 x 8" },
    };
    char sentence[200];
    for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
        begin(TRN_TRAINIUM3);
        const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F), q = mx_codes("codes");
        trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, row[i].tile, MX_F);
        set(x, 1);
        scales.shape[0] = 128;
        quantize(q, trn_tensor_slice(scales, 0, row[i].first, row[i].rows), x);
        snprintf(sentence, sizeof sentence, "instruction 1, quantize_mx: dst_scale %s", row[i].rest ? row[i].rest : "");
        if (row[i].rest)
            expect(sentence);
        else
            fine();
    }
    begin(TRN_TRAINIUM3);
    const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * MX_F), q = mx_codes("codes");
    const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, MX_F);
    set(x, 1);
    trn_core_free(&core, scales);
    quantize(q, scales, x);
    expect("instruction 1, quantize_mx: dst_scale writes 'scales', which was freed");
    begin(TRN_TRAINIUM3);
    const trn_tensor y = trn_core_sbuf(&core, "y", TRN_BF16, MX_P, 4 * MX_F), codes = mx_codes("codes");
    set(y, 1);
    quantize(codes, trn_core_sbuf(&core, "scales", TRN_F8_E8M0, 63, MX_F), y);
    expect("instruction 1, quantize_mx: dst_scale has 63 partitions of 8 elements; it takes 8 of 8, or as a scale tile "
           "64");
}

/* A matmul waits for its own scales, not for those that another tensor is getting in the same tile. */
static void scales_of_others_are_not_waited_for(void **state)
{
    (void)state;
    for (int offset = 0; offset < 16; offset += 4) {
        begin(TRN_TRAINIUM3);
        const trn_tensor x = trn_core_sbuf(&core, "x", TRN_BF16, MX_P, 4 * 2000), q = mx_codes("codes");
        const trn_tensor wide = trn_core_sbuf(&core, "wide", TRN_F8_E4M3FN, MX_P, 4 * 2000);
        const trn_tensor scales = trn_core_sbuf(&core, "scales", TRN_F8_E8M0, MX_P, 2000);
        const trn_tensor mine = trn_tensor_slice(scales, 1, 0, MX_F);
        const trn_tensor acc = trn_core_psum(&core, "acc", TRN_F32, MX_F, MX_F);
        trn_core_report before, report;
        set(x, 1);
        quantize(q, mine, trn_tensor_slice(x, 1, 0, 4 * MX_F));
        trn_core_report_of(&core, &before);
        quantize(trn_tensor_split(wide, 1, 4), scale_part(scales, offset), x);
        multiply(acc, q, mine, mine);
        fine();
        trn_core_report_of(&core, &report);
        const double matmul_s = report.engine[TRN_ENGINE_TENSOR].busy_s, wide_s = report.time_s - before.time_s;
        assert_true(matmul_s > 0 && wide_s > 2 * matmul_s);
        assert_true((core.lane[TRN_ENGINE_TENSOR].free_s < core.lane[TRN_ENGINE_VECTOR].free_s) == (offset > 0));
    }
}

int core_run_scales(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scale_tile_holds_scales_of_several_tensors),
        cmocka_unit_test(scales_that_nothing_wrote_are_told_and_others_are_not),
        cmocka_unit_test(scale_tiles_lie_where_tiles_can),
        cmocka_unit_test(scales_of_others_are_not_waited_for),
    };
    return cmocka_run_group_tests_name("core_run_scales", tests, NULL, NULL);
}
