/* matmul.c - one product as Trainium's tensor engine computes it: four chains, not one.
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <trnmath/trnmath.h>

int main(void)
{
    uint16_t a[128], b[128]; /* bfloat16: 2^24 and 127 ones, times ones */
    float c;
    for (int k = 0; k < 128; k++) a[k] = b[k] = trn_bf16_from_f32(1.0f);
    a[0] = trn_bf16_from_f32(0x1p24f);
    trn_error error;
    const trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, &c, 1, 1),
                                   .a = trn_tensor_2d(TRN_BF16, a, 1, 128),
                                   .b = trn_tensor_2d(TRN_BF16, b, 128, 1),
                                   .error = &error };
    if (trn_matmul(&args) != TRN_OK) return fprintf(stderr, "%s\n", error.text), 1;
    printf("%.0f\n", (double)c); /* 16777312; a single binary32 chain stays at 16777216, the exact sum is 16777343 */
    return fflush(stdout) == 0 ? 0 : 1;
}
