/* answer.c - what the library returns for the operands of one execution.
 * SPDX-License-Identifier: MIT
 */
#include "execution.h"

#include <string.h>

#include "trnmath/trn_convert.h"
#include "trnmath/trn_matmul.h"

typedef union results {
    uint32_t word[GPU_MOST_OUTPUTS];
    uint16_t half[GPU_MOST_OUTPUTS];
    float real[GPU_MOST_OUTPUTS];
} results;

/* Product p of the execution, elements k0 .. k0 + depth - 1 of K, onto what dst holds. */
static trn_status multiply(const gpu_unit *u, const gpu_execution *e, const trn_numerics *n, int p, int k0, int depth,
                           results *dst, trn_error *error)
{
    const size_t size = (size_t)u->k * trn_format_bytes(u->a);
    const size_t skip = (size_t)k0 * trn_format_bytes(u->a);
    const size_t bytes = trn_format_bytes(u->result);
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = u->a == TRN_I8 ? TRN_TRAINIUM1 : TRN_TRAINIUM3;
    args.dst = trn_tensor_2d(u->result, (unsigned char *)dst + (size_t)(p * u->m * u->n) * bytes, u->m, u->n);
    args.a = trn_tensor_2d(u->a, (void *)(uintptr_t)(e->a + (size_t)(p * u->m) * size + skip), u->m, depth);
    args.a.stride[0] = u->k, args.a.stride[1] = 1;
    args.b = trn_tensor_2d(u->b, (void *)(uintptr_t)(e->b + (size_t)(p * u->n) * size + skip), depth, u->n);
    args.b.stride[0] = 1, args.b.stride[1] = u->k;
    if (u->scale) {
        args.a_scale = trn_tensor_2d(TRN_F8_E8M0, (void *)(uintptr_t)e->a_scale, u->m, u->k / u->scale);
        args.b_scale = trn_tensor_2d(TRN_F8_E8M0, (void *)(uintptr_t)e->b_scale, u->n, u->k / u->scale);
    }
    args.accumulate = true;
    args.numerics = n;
    args.error = error;
    return trn_matmul(&args);
}

/* FP8 codes as those of F16, which has all their values. */
static void widen(const gpu_unit *u, const gpu_execution *e, gpu_unit *wide, gpu_execution *half)
{
    *wide = *u;
    wide->a = wide->b = TRN_F16;
    for (int row = 0; row < u->m; row++)
        for (int k = 0; k < u->k; k++) {
            const float x = trn_decode(u->a, gpu_code(e->a, u->a, u->k, row, k));
            gpu_put(half->a, TRN_F16, u->k, row, k, trn_f16_from_f32(x));
        }
    for (int row = 0; row < u->n; row++)
        for (int k = 0; k < u->k; k++) {
            const float x = trn_decode(u->b, gpu_code(e->b, u->b, u->k, row, k));
            gpu_put(half->b, TRN_F16, u->k, row, k, trn_f16_from_f32(x));
        }
}

static bool half_first(const gpu_unit *u, const trn_numerics *n, gpu_execution *e, trn_error *error)
{
    gpu_execution half;
    gpu_unit wide;
    results dst;
    memset(&dst, 0, sizeof dst);
    widen(u, e, &wide, &half);
    if (multiply(&wide, &half, n, 0, 0, u->k, &dst, error) != TRN_OK) return false;
    for (int i = 0; i < gpu_outputs(u); i++) {
        float c;
        memcpy(&c, &e->c[i], sizeof c);
        dst.real[i] += c;
    }
    memcpy(e->ours, dst.word, sizeof e->ours);
    return true;
}

bool gpu_answer(const gpu_unit *u, gpu_how how, const trn_numerics *n, gpu_execution *e, trn_error *error)
{
    const int outputs = gpu_outputs(u);
    const bool narrow = u->result == TRN_F16;
    const int wanted = n->aligned_bytes / (int)trn_format_bytes(u->a);
    const int depth = how == GPU_BLOCKS && wanted < u->k ? wanted : u->k;
    results dst;
    if (how == GPU_HALF_FIRST) return half_first(u, n, e, error);
    for (int i = 0; i < outputs; i++)
        if (narrow)
            dst.half[i] = (uint16_t)e->c[i];
        else
            dst.word[i] = e->c[i];
    for (int p = 0; p < gpu_products(u); p++)
        for (int k0 = 0; k0 < u->k; k0 += depth)
            if (multiply(u, e, n, p, k0, depth, &dst, error) != TRN_OK) return false;
    for (int i = 0; i < outputs; i++) e->ours[i] = narrow ? dst.half[i] : dst.word[i];
    return true;
}

bool gpu_same(const gpu_unit *u, uint32_t x, uint32_t y)
{
    if (x == y) return true;
    if (u->result == TRN_I32) return false;
    const uint32_t infinity = u->result == TRN_F16 ? 0x7c00u : 0x7f800000u;
    const uint32_t all = u->result == TRN_F16 ? 0x7fffu : 0x7fffffffu;
    return (x & all) > infinity && (y & all) > infinity;
}
