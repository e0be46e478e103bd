#include <stdio.h>
#include <trnmath/trn_scalar_engine.h>

int main(void)
{
    float x[4] = { -1, 0, 1, 2 }, y[4];
    trn_status status = trn_activation(&(trn_activation_args){
        .dst = trn_tensor_2d(TRN_F32, y, 1, 4), .src = trn_tensor_2d(TRN_F32, x, 1, 4), .op = TRN_ACT_EXP });
    printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
    return status != TRN_OK;
}
