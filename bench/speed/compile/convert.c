#include <stdio.h>
#include <trnmath/trn_convert.h>

int main(void)
{
    float x[4] = { 1, -2.5f, 300, 1e-3f };
    unsigned char y[4];
    trn_status status = trn_convert(
        &(trn_convert_args){ .dst = trn_tensor_1d(TRN_F8_E4M3, y, 4), .src = trn_tensor_1d(TRN_F32, x, 4) });
    printf("%02x %02x %02x %02x\n", y[0], y[1], y[2], y[3]);
    return status != TRN_OK;
}
