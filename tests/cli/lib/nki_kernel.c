/* A kernel of a product, a softmax and a transpose on one core, whose numbers, cycles and times check_nki.py compares
 * with those of the same kernel in Python. Usage: nki_kernel GENERATION. SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>

#include <trnmath/trn_core.h>

enum { K = 128, M = 96, N = 256 };

/* What check_nki.py's inputs are, too. */
static void fill(float *x, int n, int seed)
{
    for (int i = 0; i < n; i++) x[i] = (float)((i * 37 + seed * 11) % 101 - 50) / 16.0f;
}

static uint32_t sum_of(const float *x, int n)
{
    uint32_t hash = 2166136261u;
    const unsigned char *byte = (const unsigned char *)x;
    for (int i = 0; i < 4 * n; i++) hash = (hash ^ byte[i]) * 16777619u;
    return hash;
}

static void softmax(trn_core *core, trn_tensor tile)
{
    const trn_tensor most = trn_core_sbuf(core, "most", TRN_F32, M, 1), sum = trn_core_sbuf(core, "sum", TRN_F32, M, 1);
    trn_core_tensor_reduce(
        core, &(trn_tensor_reduce_args){ .dst = most, .data = tile, .op = TRN_ALU_MAXIMUM, .axes = 1, .negate = true });
    trn_core_activation(core, &(trn_activation_args){ .dst = tile,
                                                      .data = tile,
                                                      .op = TRN_ACT_EXP,
                                                      .scale = 1.0f,
                                                      .bias_tile = most,
                                                      .reduce_res = sum,
                                                      .reduce_cmd = TRN_REDUCE_CMD_RESET_REDUCE });
    trn_core_reciprocal(core, &(trn_reciprocal_args){ .dst = sum, .data = sum });
    trn_core_tensor_scalar(
        core, &(trn_tensor_scalar_args){ .dst = tile, .data = tile, .op0 = TRN_ALU_MULTIPLY, .operand0_tile = sum });
}

static void kernel(trn_core *core, trn_tensor a, trn_tensor b, trn_tensor out)
{
    const trn_tensor left = trn_core_sbuf(core, "left", TRN_BF16, K, M);
    const trn_tensor right = trn_core_sbuf(core, "right", TRN_BF16, K, N);
    const trn_tensor psum = trn_core_psum(core, "psum", TRN_F32, M, N);
    const trn_tensor tile = trn_core_sbuf(core, "tile", TRN_F32, M, N);
    trn_core_dma_copy(core, &(trn_dma_copy_args){ .dst = left, .src = a });
    trn_core_dma_copy(core, &(trn_dma_copy_args){ .dst = right, .src = b });
    for (int i = 0; i < 2; i++)
        trn_core_nc_matmul(
            core, &(trn_nc_matmul_args){ .dst = psum, .stationary = left, .moving = right, .accumulate = i > 0 });
    trn_core_tensor_copy(core, &(trn_tensor_copy_args){ .dst = tile, .src = psum });
    softmax(core, tile);
    trn_core_dma_copy(core, &(trn_dma_copy_args){ .dst = out, .src = tile });
}

int main(int count, char **word)
{
    static float a[K * M], b[K * N], out[M * N];
    static trn_core core;
    const trn_core_args args = { .generation = (trn_generation)(TRN_TRAINIUM1 - 1 + (count > 1 ? atoi(word[1]) : 2)),
                                 .pace = TRN_PACE_MEASURED };
    const char *why;
    trn_core_report report;
    fill(a, K * M, 1);
    fill(b, K * N, 2);
    if (trn_core_begin(&core, &args)) return 1;
    kernel(&core, trn_core_hbm(&core, "a", trn_tensor_2d(TRN_F32, a, K, M)),
           trn_core_hbm(&core, "b", trn_tensor_2d(TRN_F32, b, K, N)),
           trn_core_hbm(&core, "out", trn_tensor_2d(TRN_F32, out, M, N)));
    if (trn_core_status(&core, &why)) return fprintf(stderr, "%s\n", why), 1;
    trn_core_report_of(&core, &report);
    printf("%08x %.17g %lld %lld", sum_of(out, M * N), report.time_s, (long long)report.sbuf_high_water,
           (long long)report.psum_high_water);
    for (int e = 1; e < TRN_ENGINE_COUNT; e++) printf(" %.17g", report.engine[e].cycles);
    printf("\n");
    trn_core_end(&core);
    return 0;
}
