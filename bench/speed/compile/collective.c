#include <stdio.h>
#include <trnmath/trn_collective.h>

int main(void)
{
    trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);
    trn_cost cost;
    trn_status status = trn_collective_cost(
        &(trn_collective_args){ .net = &net, .op = TRN_ALL_REDUCE, .wire = TRN_BF16, .bytes = 64 << 20 }, &cost);
    printf("%g us\n", 1e6 * cost.time_s);
    return status != TRN_OK;
}
