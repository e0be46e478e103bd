#include <stdio.h>
#include <trnmath/trn_vector_engine.h>

int main(void)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 5, 6, 7, 8 }, z[4];
    trn_status status = trn_tensor_tensor(&(trn_tensor_tensor_args){ .dst = trn_tensor_2d(TRN_F32, z, 1, 4),
                                                                     .data1 = trn_tensor_2d(TRN_F32, x, 1, 4),
                                                                     .data2 = trn_tensor_2d(TRN_F32, y, 1, 4),
                                                                     .op = TRN_ALU_ADD });
    printf("%g %g %g %g\n", z[0], z[1], z[2], z[3]);
    return status != TRN_OK;
}
