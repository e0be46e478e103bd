/* work.c - a stranger's file that uses trnmath; ways.sh compiles it twice into one program, for different processors.
 * SPDX-License-Identifier: MIT
 *
 * WORK is the function's name. C11 and C++17.
 */
#if defined(ONE_FILE)
#include "trnmath.h"
#elif defined(PRODUCT)
#include <trnmath/trnmath.h>
#else
#include <trnmath/trn_convert.h>
#include <trnmath/trn_mx.h>
#endif
#include "work.h"

enum { M = 96, K = 300, N = 41 };

static uint64_t hashed(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Stochastic rounding out of a transposed view, and blocks of 32 with a scale. */
static trn_status quantise(float *wide, uint8_t *a, uint8_t *codes, uint8_t *scales)
{
    trn_convert_args convert;
    trn_mx_quantize_args blocks;
    memset(&convert, 0, sizeof convert);
    convert.dst = trn_tensor_2d(TRN_F8_E4M3, a, M, K);
    convert.src = trn_tensor_transposed(trn_tensor_2d(TRN_F32, wide, K, M));
    convert.rounding = TRN_STOCHASTIC;
    convert.seed = 7;
    memset(&blocks, 0, sizeof blocks);
    blocks.dst = trn_tensor_2d(TRN_F8_E5M2, codes, K, M);
    blocks.dst_scale = trn_tensor_2d(TRN_F8_E8M0, scales, K, M / 32);
    blocks.src = trn_tensor_2d(TRN_F32, wide, K, M);
    return trn_convert(&convert) != TRN_OK ? TRN_EINVAL : trn_mx_quantize(&blocks);
}

/* With -DPRODUCT, which takes the compiler some seconds more: a matrix product, and a function of it. */
static trn_status product(uint8_t *a, uint16_t *b, float *c, float *y)
{
#if defined(PRODUCT)
    trn_matmul_args matmul;
    trn_activation_args activation;
    memset(&matmul, 0, sizeof matmul);
    matmul.dst = trn_tensor_2d(TRN_F32, c, M, N);
    matmul.a = trn_tensor_2d(TRN_F8_E4M3, a, M, K);
    matmul.b = trn_tensor_2d(TRN_BF16, b, K, N);
    memset(&activation, 0, sizeof activation);
    activation.dst = trn_tensor_2d(TRN_F32, y, M, N);
    activation.src = trn_tensor_2d(TRN_F32, c, M, N);
    activation.op = TRN_ACT_TANH;
    activation.scale = 0.125f;
    return trn_matmul(&matmul) != TRN_OK ? TRN_EINVAL : trn_activation(&activation);
#else
    (void)a, (void)b, (void)c, (void)y;
    return TRN_OK;
#endif
}

uint64_t WORK(const char **version)
{
    static float wide[K * M], c[M * N], y[M * N];
    static uint8_t a[M * K], codes[K * M], scales[K * M / 32];
    static uint16_t b[K * N];

    *version = trn_version();
    for (int i = 0; i < K * M; i++) {
        const int32_t any = (int32_t)(trn_random_u32(1, 2, (uint64_t)i) >> 8);
        wide[i] = (float)(any - 0x800000) * 0x1p-22f;
    }
    for (int i = 0; i < K * N; i++) b[i] = trn_bf16_from_f32((float)(i % 61 - 30));
    if (quantise(wide, a, codes, scales) != TRN_OK) return 1;
    if (product(a, b, c, y) != TRN_OK) return 2;

    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = hashed(hash, a, sizeof a);
    hash = hashed(hash, codes, sizeof codes);
    hash = hashed(hash, scales, sizeof scales);
    hash = hashed(hash, c, sizeof c);
    return hashed(hash, y, sizeof y);
}
