#include <stdio.h>
#include <trnmath/trn_matmul.h>

int main(void)
{
    float a[2 * 3] = { 1, 2, 3, 4, 5, 6 }, b[3 * 2] = { 1, 0, 0, 1, 1, 1 }, c[2 * 2];
    trn_status status = trn_matmul(&(trn_matmul_args){ .dst = trn_tensor_2d(TRN_F32, c, 2, 2),
                                                       .a = trn_tensor_2d(TRN_F32, a, 2, 3),
                                                       .b = trn_tensor_2d(TRN_F32, b, 3, 2) });
    printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);
    return status != TRN_OK;
}
