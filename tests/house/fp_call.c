/* fp_call: built with a flag that changes bits and that no macro shows. Calls of each kind must refuse, with its
 * sentence, and write nothing. Exit status 1 after the sentence of one that did not. */
#include <stdio.h>
#include <trnmath/trn_act.h>
#include <trnmath/trn_collective.h>
#include <trnmath/trn_matmul.h>
#include <trnmath/trn_vector_engine.h>

static int wrong;

static void expect_refusal(const char *call, trn_status status, const trn_error *error, const float *untouched)
{
    if (status == TRN_EUNSUPPORTED && strstr(error->text, "compiled with a flag") && *untouched == 7) return;
    printf("%s: %s, \"%s\"\n", call, trn_status_text(status), error->text);
    wrong = 1;
}

int main(void)
{
    static float x[16], y[16];
    trn_error error = { TRN_OK, "" };
    const trn_tensor in = trn_tensor_2d(TRN_F32, x, 4, 4), out = trn_tensor_2d(TRN_F32, y, 4, 4);
    const trn_convert_args convert = { .dst = out, .src = in, .error = &error };
    const trn_matmul_args matmul = { .a = in, .b = in, .dst = out, .error = &error };
    const trn_reciprocal_args reciprocal = { .dst = out, .data = in, .error = &error };
    const trn_topology net = trn_topology_ring(2, 1e9, 1e-6);
    const trn_tensor rank[2] = { out, out };
    const trn_collective_args collective = {
        .net = &net, .op = TRN_ALL_REDUCE, .src = rank, .dst = rank, .error = &error
    };
    y[0] = 7;
    expect_refusal("trn_convert", trn_convert(&convert), &error, y);
#if !defined(ONE_CALL)
    expect_refusal("trn_matmul", trn_matmul(&matmul), &error, y);
    expect_refusal("trn_reciprocal", trn_reciprocal(&reciprocal), &error, y);
    expect_refusal("trn_collective_run", trn_collective_run(&collective), &error, y);
#endif
    return wrong;
}
