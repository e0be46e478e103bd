/* ggml.c - ggml's (llama.cpp's) float16, bfloat16 and MXFP4 as what check.c checks.
 * SPDX-License-Identifier: MIT
 *
 * cc -std=c11 -O2 -ffunction-sections -IGGML/src -IGGML/include -DCHECK_WITH='"with/ggml.c"' check.c -o check -lm
 *     -static -Wl,--gc-sections -Wl,--unresolved-symbols=ignore-all
 *
 * Of ggml only these functions are needed: what they do not call is left out, and never resolved. Its FP4 has no -0:
 * the sign of a zero is taken from what went in, so that nothing else is counted.
 */
#include "ggml-quants.c"

#include "ggml-impl.h"

static float single(uint64_t word)
{
    const uint32_t bits = (uint32_t)word;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t code_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    if (!check_is(file, "rounding", "nearest_even") || !check_is(file, "overflow", "default")) return CHECK_NOT_MINE;
    if (check_is(file, "to", "float16")) return out[0] = ggml_compute_fp32_to_fp16(single(in[0])), CHECK_DONE;
    if (check_is(file, "to", "bfloat16")) return out[0] = ggml_compute_fp32_to_bf16(single(in[0])).bits, CHECK_DONE;
    return CHECK_NOT_MINE;
}

static int decode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const ggml_bf16_t upper = { (uint16_t)in[0] };
    if (check_is(file, "from", "float16"))
        out[0] = code_of(ggml_compute_fp16_to_fp32((ggml_fp16_t)in[0]));
    else if (check_is(file, "from", "bfloat16"))
        out[0] = code_of(ggml_compute_bf16_to_fp32(upper));
    else if (check_is(file, "from", "float8_e8m0fnu"))
        out[0] = code_of(ggml_e8m0_to_fp32((uint8_t)in[0]));
    else
        return CHECK_NOT_MINE;
    return CHECK_DONE;
}

static int mx_quantize(const check_file *file, const uint64_t *in, uint64_t *out)
{
    float x[32];
    block_mxfp4 block;
    if (!check_is(file, "to", "float4_e2m1fn") || !check_is(file, "scale_rule", "ocp_floor")) return CHECK_NOT_MINE;
    for (int i = 0; i < 32; i++) x[i] = single(in[i]);
    quantize_row_mxfp4_ref(x, &block, 32);
    out[0] = block.e;
    for (int i = 0; i < 32; i++) out[1 + i] = i < 16 ? block.qs[i] & 15 : block.qs[i - 16] >> 4;
    for (int i = 0; i < 32; i++)
        if (out[1 + i] == 0 && in[i] >> 31) out[1 + i] = 8;
    return CHECK_DONE;
}

static int mx_dequantize(const check_file *file, const uint64_t *in, uint64_t *out)
{
    float x[32];
    block_mxfp4 block;
    if (!check_is(file, "from", "float4_e2m1fn")) return CHECK_NOT_MINE;
    block.e = (uint8_t)in[0];
    for (int i = 0; i < 16; i++) block.qs[i] = (uint8_t)(in[1 + i] | in[17 + i] << 4);
    dequantize_row_mxfp4(&block, x, 32);
    for (int i = 0; i < 32; i++) out[i] = code_of(x[i]) | (in[1 + i] == 8 ? 0x80000000u : 0);
    return CHECK_DONE;
}

static const check_operation check_table[] = { { "encode", encode },
                                               { "decode", decode },
                                               { "mx_quantize", mx_quantize },
                                               { "mx_dequantize", mx_dequantize },
                                               { NULL, NULL } };
