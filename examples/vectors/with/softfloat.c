/* softfloat.c - Berkeley SoftFloat 3e as what check.c checks: casts of float16, bfloat16 and integers of 32 bits,
 * operators, and dot products and rings from its fused multiply-add and its sum.
 * SPDX-License-Identifier: MIT
 *
 * make -C SOFTFLOAT/build/Linux-x86_64-GCC SPECIALIZE_TYPE=RISCV      then, with that build's softfloat.a:
 * cc -std=c11 -O2 -ISOFTFLOAT/source/include -DCHECK_WITH='"with/softfloat.c"' check.c softfloat.a -o check
 */
#include <stdbool.h>

#include "softfloat.h"

static float32_t single(uint64_t word)
{
    const float32_t x = { (uint32_t)word };
    return x;
}

/* ---- casts ---- */

static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const bool zero = check_is(file, "rounding", "toward_zero");
    const uint_fast8_t mode = zero ? softfloat_round_minMag : softfloat_round_near_even;
    if (!zero && !check_is(file, "rounding", "nearest_even")) return CHECK_NOT_MINE;
    if (check_is(file, "to", "int32")) return out[0] = (uint32_t)f32_to_i32(single(in[0]), mode, false), CHECK_DONE;
    if (check_is(file, "to", "uint32")) return out[0] = (uint32_t)f32_to_ui32(single(in[0]), mode, false), CHECK_DONE;
    if (!check_is(file, "overflow", "default")) return CHECK_NOT_MINE;
    softfloat_roundingMode = mode;
    if (check_is(file, "to", "float16"))
        out[0] = f32_to_f16(single(in[0])).v;
    else if (check_is(file, "to", "bfloat16"))
        out[0] = f32_to_bf16(single(in[0])).v;
    else
        return CHECK_NOT_MINE;
    return CHECK_DONE;
}

/* A code as binary32. */
static bool wide(const check_file *file, const char *key, uint64_t code, float32_t *x)
{
    const float16_t half = { (uint16_t)code };
    const bfloat16_t upper = { (uint16_t)code };
    const bool f16 = check_is(file, key, "float16"), bf16 = check_is(file, key, "bfloat16");
    *x = f16 ? f16_to_f32(half) : bf16 ? bf16_to_f32(upper) : single(code);
    return f16 || bf16 || check_is(file, key, "tfloat32") || check_is(file, key, "float32");
}

static int decode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    float32_t x;
    softfloat_roundingMode = softfloat_round_near_even;
    if (check_is(file, "from", "int32"))
        x = i32_to_f32((int32_t)in[0]);
    else if (check_is(file, "from", "uint32"))
        x = ui32_to_f32((uint32_t)in[0]);
    else if (!wide(file, "from", in[0], &x))
        return CHECK_NOT_MINE;
    out[0] = x.v;
    return CHECK_DONE;
}

/* ---- operators ---- */

static int alu(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const char *op = check_value(file, "operator");
    const float32_t a = single(in[0]), b = single(file->in.words > 1 ? in[1] : 0), one = { 0x3f800000 };
    const uint64_t truth = 0x3f800000;
    softfloat_roundingMode = softfloat_round_near_even;
    if (strcmp(op, "add") == 0) return out[0] = f32_add(a, b).v, CHECK_DONE;
    if (strcmp(op, "subtract") == 0) return out[0] = f32_sub(a, b).v, CHECK_DONE;
    if (strcmp(op, "multiply") == 0) return out[0] = f32_mul(a, b).v, CHECK_DONE;
    if (strcmp(op, "square") == 0) return out[0] = f32_mul(a, a).v, CHECK_DONE;
    if (strcmp(op, "reciprocal") == 0) return out[0] = f32_div(one, a).v, CHECK_DONE;
    if (strcmp(op, "equal") == 0) return out[0] = f32_eq(a, b) ? truth : 0, CHECK_DONE;
    if (strcmp(op, "not_equal") == 0) return out[0] = f32_eq(a, b) ? 0 : truth, CHECK_DONE;
    if (strcmp(op, "less") == 0) return out[0] = f32_lt(a, b) ? truth : 0, CHECK_DONE;
    if (strcmp(op, "less_equal") == 0) return out[0] = f32_le(a, b) ? truth : 0, CHECK_DONE;
    if (strcmp(op, "greater") == 0) return out[0] = f32_lt(b, a) ? truth : 0, CHECK_DONE;
    if (strcmp(op, "greater_equal") == 0) return out[0] = f32_le(b, a) ? truth : 0, CHECK_DONE;
    return CHECK_NOT_MINE;
}

/* ---- sums in Trainium's order, as the heads of the files have it ---- */

static int dot(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const long k = check_number(file, "k", 0), chains = check_number(file, "chains", 0);
    const long rows = check_number(file, "rows", 0);
    const bool bf16 = check_is(file, "psum", "bfloat16");
    bool fresh = !check_is(file, "accumulate", "yes");
    float32_t psum = single(fresh ? 0 : in[2 * k]), a, b;
    if (check_number(file, "group", 0) != 1 || chains != 4) return CHECK_NOT_MINE;
    softfloat_roundingMode = softfloat_round_near_even;
    for (long first = 0; first < k; first += rows) {
        float32_t s[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
        for (long p = 0; p < rows && first + p < k; p++) {
            if (!wide(file, "a", in[first + p], &a) || !wide(file, "b", in[k + first + p], &b)) return CHECK_NOT_MINE;
            s[p % 4] = f32_mulAdd(a, b, s[p % 4]);
        }
        const float32_t tile = f32_add(f32_add(f32_add(s[0], s[1]), s[2]), s[3]);
        psum = fresh ? tile : f32_add(psum, tile);
        fresh = false;
        if (bf16) psum = bf16_to_f32(f32_to_bf16(psum));
    }
    out[0] = psum.v;
    return CHECK_DONE;
}

static int all_reduce(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const long ranks = check_number(file, "ranks", 0), owner = (long)in[0];
    const bool f16 = check_is(file, "wire", "float16");
    float32_t sum, x;
    if (!f16 && !check_is(file, "wire", "bfloat16")) return CHECK_NOT_MINE;
    softfloat_roundingMode = softfloat_round_near_even;
    out[0] = in[1 + (owner + 1) % ranks];
    for (long step = 2; step <= ranks; step++) {
        wide(file, "wire", out[0], &sum);
        wide(file, "wire", in[1 + (owner + step) % ranks], &x);
        sum = f32_add(sum, x);
        out[0] = f16 ? f32_to_f16(sum).v : f32_to_bf16(sum).v;
    }
    return CHECK_DONE;
}

static const check_operation check_table[] = { { "encode", encode }, { "decode", decode },         { "alu", alu },
                                               { "dot", dot },       { "all_reduce", all_reduce }, { NULL, NULL } };
