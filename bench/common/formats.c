/* formats.c - the table behind --format, and matrices made for each of its rows.
 * SPDX-License-Identifier: MIT
 */
#include "formats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>
#include <trnmath/trn_mx.h>

static const tb_format formats[] = {
    { "f32", TRN_F32, TRN_F32, TRN_MODE_PLAIN, 0, NULL, "binary32, four passes" },
    { "tf32", TRN_TF32, TRN_TF32, TRN_MODE_PLAIN, 0, NULL, "TF32" },
    { "bf16", TRN_BF16, TRN_BF16, TRN_MODE_PLAIN, 0, NULL, "bfloat16" },
    { "f16", TRN_F16, TRN_F16, TRN_MODE_PLAIN, 0, NULL, "binary16" },
    { "f32-split", TRN_F32, TRN_F32, TRN_MODE_PLAIN, 0, "fp32_mode=split", "binary32 as high and low halves" },
    { "fp32r", TRN_F32, TRN_F32, TRN_MODE_PLAIN, 0, "fp32_mode=fp32r", "binary32 read as TF32, one pass" },
    { "bf16-psum", TRN_BF16, TRN_BF16, TRN_MODE_PLAIN, TRN_TRAINIUM3, "psum_format=bfloat16", "bfloat16 in PSUM too" },
    { "bf16-f16", TRN_BF16, TRN_F16, TRN_MODE_PLAIN, 0, NULL, "mixed" },
    { "bf16-e4m3", TRN_BF16, TRN_F8_E4M3, TRN_MODE_PLAIN, 0, NULL, "FP8 weights" },
    { "e4m3", TRN_F8_E4M3, TRN_F8_E4M3, TRN_MODE_PLAIN, 0, NULL, "FP8 up to 240" },
    { "e5m2", TRN_F8_E5M2, TRN_F8_E5M2, TRN_MODE_PLAIN, 0, NULL, "FP8 up to 57344" },
    { "e3m4", TRN_F8_E3M4, TRN_F8_E3M4, TRN_MODE_PLAIN, 0, NULL, "FP8 up to 15.5" },
    { "cfp8", TRN_CFP8, TRN_CFP8, TRN_MODE_PLAIN, TRN_TRAINIUM1, NULL, "configurable FP8: 4 exponent bits, bias 7" },
    { "e4m3-e5m2", TRN_F8_E4M3, TRN_F8_E5M2, TRN_MODE_PLAIN, 0, NULL, "mixed FP8" },
    { "e4m3fn", TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_MODE_PLAIN, 0, NULL, "FP8 up to 448" },
    { "e4m3-double", TRN_F8_E4M3, TRN_F8_E4M3, TRN_MODE_DOUBLE_ROW, 0, NULL, "FP8, double rows" },
    { "e5m2-double", TRN_F8_E5M2, TRN_F8_E5M2, TRN_MODE_DOUBLE_ROW, 0, NULL, "FP8, double rows" },
    { "e4m3-e5m2-double", TRN_F8_E4M3, TRN_F8_E5M2, TRN_MODE_DOUBLE_ROW, 0, NULL, "mixed FP8, double rows" },
    { "e4m3fn-double", TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_MODE_DOUBLE_ROW, 0, NULL, "FP8 up to 448, double rows" },
    { "mxfp8", TRN_F8_E4M3FN, TRN_F8_E4M3FN, TRN_MODE_MX, 0, NULL, "block-scaled E4M3FN" },
    { "mxfp8-e5m2", TRN_F8_E5M2, TRN_F8_E5M2, TRN_MODE_MX, 0, NULL, "block-scaled E5M2" },
    { "mxfp8-mixed", TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_MODE_MX, 0, NULL, "block-scaled E4M3FN and E5M2" },
    { "mxfp8-mxfp4", TRN_F8_E4M3FN, TRN_F4_E2M1, TRN_MODE_MX, 0, NULL, "block-scaled, FP4 weights" },
    { "mxfp4", TRN_F4_E2M1, TRN_F4_E2M1, TRN_MODE_MX, 0, NULL, "block-scaled E2M1" },
    { "int8", TRN_I8, TRN_I8, TRN_MODE_INT8, TRN_TRAINIUM1, NULL, "int8 into int32" },
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

const tb_format *tb_format_at(int index) { return index >= 0 && index < FORMATS ? &formats[index] : NULL; }
int tb_format_index(const tb_format *format) { return (int)(format - formats); }

const tb_format *tb_format_find(const char *name)
{
    static const struct {
        const char *other, *name;
    } also[] = { { "fp32-split", "f32-split" }, { "f32r", "fp32r" } };
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++)
        if (strcmp(name, also[i].other) == 0) name = also[i].name;
    trn_format long_name = TRN_FORMAT_UNSET;
    trn_format_read(&long_name, name, NULL);
    const tb_format *best = NULL;
    for (int i = 0; i < FORMATS; i++) {
        if (strcmp(name, formats[i].name) == 0) return &formats[i];
        if (long_name != TRN_FORMAT_UNSET && formats[i].a == long_name && formats[i].b == long_name &&
            !formats[i].numerics && (!best || formats[i].mode > best->mode))
            best = &formats[i];
    }
    return best;
}

static bool has_setting(const tb_format *f, const char *setting)
{
    return f->numerics && strstr(f->numerics, setting) != NULL;
}

trn_matmul_cost_args tb_format_cost(const tb_format *f)
{
    const trn_matmul_cost_args args = { .a_format = f->a,
                                        .b_format = f->b,
                                        .mode = f->mode,
                                        .fp32r = has_setting(f, "fp32_mode=fp32r"),
                                        .psum_format = has_setting(f, "psum_format=bfloat16") ? TRN_BF16 : TRN_F32 };
    return args;
}

double tb_format_spec_tflops(const tb_format *f, const trn_system_spec *spec)
{
    trn_matmul_cost_args args = tb_format_cost(f);
    trn_core_cost cost;
    args.system = spec;
    if (trn_matmul_cost(&args, &cost) != TRN_OK) return NAN;
    return cost.spec_tflops * trn_spec_chips(spec) * spec->server->chip->cores;
}

trn_status tb_format_numerics(const tb_format *f, const trn_numerics *user, trn_numerics *result)
{
    char text[TRN_NUMERICS_TEXT + 64];
    const trn_status status = trn_numerics_format(user, text, TRN_NUMERICS_TEXT);
    if (status != TRN_OK) return status;
    if (f->numerics) snprintf(text + strlen(text), 64, ",%s", f->numerics);
    return trn_numerics_parse(result, text);
}

/* ---- matrices ---- */

static void *room(int64_t rows, int64_t columns, size_t bytes)
{
    const size_t size = (size_t)rows * (size_t)columns * bytes;
    return aligned_alloc(64, (size + 127) / 64 * 64);
}

static trn_tensor new_matrix(trn_format format, int64_t rows, int64_t columns)
{
    trn_tensor t = trn_tensor_2d(format, room(rows, columns, trn_format_bytes(format)), rows, columns);
    if (format == TRN_CFP8) t.cfp8 = (trn_cfp8){ 4, 7, false };
    return t;
}

trn_tensor tb_cast(const trn_tensor *src, trn_format format)
{
    trn_tensor dst = new_matrix(format, src->shape[0], src->shape[1]);
    const trn_convert_args args = { .dst = dst, .src = *src };
    if (dst.data && trn_convert(&args) != TRN_OK) {
        free(dst.data);
        dst.data = NULL;
    }
    return dst;
}

/* Symmetric, one scale for the matrix: codes from -127 to 127. */
static trn_tensor cast_int8(const trn_tensor *src)
{
    trn_tensor scaled = tb_cast(src, TRN_F32), none = scaled;
    float *x = scaled.data, most = 0;
    const int64_t n = src->shape[0] * src->shape[1];
    none.data = NULL;
    if (!x) return none;
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i]));
    for (int64_t i = 0; i < n && most > 0; i++) x[i] *= 127 / most;
    const trn_tensor codes = tb_cast(&scaled, TRN_I8);
    free(x);
    return codes;
}

/* Blocks of 32 along K, which is `axis`; scales [rows that are not K, K/32]. */
static trn_tensor quantise(const trn_tensor *src, trn_format format, int axis, trn_tensor *scale, trn_error *error)
{
    const int64_t k = src->shape[axis == -1 ? 1 : 0], others = src->shape[axis == -1 ? 0 : 1];
    trn_tensor dst = new_matrix(format, src->shape[0], src->shape[1]);
    *scale = new_matrix(TRN_F8_E8M0, others, k / TRN_MX_BLOCK);
    trn_mx_quantize_args args = { .dst = dst, .dst_scale = *scale, .src = *src, .axis = axis, .error = error };
    if (axis == -2) args.dst_scale = trn_tensor_transposed(*scale);
    if (!dst.data || !scale->data || trn_mx_quantize(&args) != TRN_OK) {
        free(dst.data);
        dst.data = NULL;
    }
    return dst;
}

bool tb_operands_make(const tb_format *f, const trn_tensor *a, const trn_tensor *b, tb_operands *x, trn_error *error)
{
    memset(x, 0, sizeof *x);
    error->status = TRN_ENOSPC;
    snprintf(error->text, sizeof error->text, "not enough memory for the operands");
    if (f->mode == TRN_MODE_MX) {
        x->a = quantise(a, f->a, -1, &x->a_scale, error);
        x->b = quantise(b, f->b, -2, &x->b_scale, error);
    } else if (f->mode == TRN_MODE_INT8) {
        x->a = cast_int8(a);
        x->b = cast_int8(b);
    } else {
        x->a = tb_cast(a, f->a);
        x->b = tb_cast(b, f->b);
    }
    if (!x->a.data || !x->b.data) return tb_operands_free(x), false;
    error->status = TRN_OK;
    error->text[0] = '\0';
    return true;
}

void tb_operands_free(tb_operands *x)
{
    trn_tensor *const all[] = { &x->a, &x->b, &x->a_scale, &x->b_scale };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]->data);
        all[i]->data = NULL;
    }
}

trn_matmul_args tb_operands_product(const tb_format *f, const tb_operands *x, void *dst, const trn_numerics *numerics)
{
    const trn_format result = f->mode == TRN_MODE_INT8 ? TRN_I32 : TRN_F32;
    const trn_matmul_args args = { .generation = f->generation,
                                   .dst = trn_tensor_2d(result, dst, x->a.shape[0], x->b.shape[1]),
                                   .a = x->a,
                                   .b = x->b,
                                   .a_scale = x->a_scale,
                                   .b_scale = x->b_scale,
                                   .double_row = f->mode == TRN_MODE_DOUBLE_ROW,
                                   .numerics = numerics };
    return args;
}
