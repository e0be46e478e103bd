/* example.c - a product of two BF16 matrices, whose sum of 128 numbers is not the exact one: as the engine has it.
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>

#include <trnmath/trnmath.h>

int main(void)
{
    uint16_t a[128], b[128]; /* 2^24 and 127 ones, times 128 ones */
    float c;
    trn_error error;
    for (int k = 0; k < 128; k++) {
        a[k] = trn_bf16_from_f32(k ? 1.0f : 0x1p24f);
        b[k] = trn_bf16_from_f32(1.0f);
    }
    const trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, &c, 1, 1),
                                   .a = trn_tensor_2d(TRN_BF16, a, 1, 128),
                                   .b = trn_tensor_2d(TRN_BF16, b, 128, 1),
                                   .error = &error };
    if (trn_matmul(&args) != TRN_OK) return puts(error.text), 1;
    printf("trnmath %s: %.0f\n", trn_version(), (double)c);
    return c == 16777312.0f ? 0 : 1;
}
