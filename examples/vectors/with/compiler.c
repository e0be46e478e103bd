/* compiler.c - the compiler's own binary32 and _Float16, compiled for this very machine, as what check.c checks.
 * SPDX-License-Identifier: MIT
 *
 * cc -std=c11 -O2 -DCHECK_WITH='"with/compiler.c"' check.c -o check -lm                 conversions of its library
 * cc -std=c11 -O2 -mf16c -DCHECK_WITH='"with/compiler.c"' check.c -o check -lm          of the processor
 */
#include <math.h>

static float single(uint64_t word)
{
    const uint32_t bits = (uint32_t)word;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t code_of_single(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static int encode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    if (!check_is(file, "to", "float16") || !check_is(file, "rounding", "nearest_even")) return CHECK_NOT_MINE;
    if (!check_is(file, "overflow", "default")) return CHECK_NOT_MINE;
    const _Float16 half = (_Float16)single(in[0]);
    memcpy(out, &half, sizeof half);
    return CHECK_DONE;
}

static int decode(const check_file *file, const uint64_t *in, uint64_t *out)
{
    _Float16 half;
    if (!check_is(file, "from", "float16")) return CHECK_NOT_MINE;
    memcpy(&half, in, sizeof half);
    out[0] = code_of_single((float)half);
    return CHECK_DONE;
}

static int alu(const check_file *file, const uint64_t *in, uint64_t *out)
{
    const char *op = check_value(file, "operator");
    const float a = single(in[0]), b = single(file->in.words > 1 ? in[1] : 0);
    if (strcmp(op, "add") == 0) return out[0] = code_of_single(a + b), CHECK_DONE;
    if (strcmp(op, "multiply") == 0) return out[0] = code_of_single(a * b), CHECK_DONE;
    if (strcmp(op, "maximum") == 0) return out[0] = code_of_single(fmaxf(a, b)), CHECK_DONE;
    if (strcmp(op, "minimum") == 0) return out[0] = code_of_single(fminf(a, b)), CHECK_DONE;
    if (strcmp(op, "reciprocal") == 0) return out[0] = code_of_single(1.0f / a), CHECK_DONE;
    return CHECK_NOT_MINE;
}

static const check_operation check_table[] = {
    { "encode", encode }, { "decode", decode }, { "alu", alu }, { NULL, NULL }
};
