/* ideal_activation.c - a function of the Scalar engine by its table and by SLEEF, which is within one ulp of the truth.
 * SPDX-License-Identifier: MIT
 *
 *     cc -O2 -DTRN_USE_SLEEF=1 -I. examples/ideal_activation.c -o ideal_activation -lsleef -lm
 *
 * Without TRN_USE_SLEEF it prints the engine's column only, and says how to get the other.
 */
#include <stdio.h>
#include <trnmath/trn_scalar_engine.h>

enum { N = 4 };

static const float x[N] = { -8.0f, -1.25f, 0.125f, 2.0f };

static trn_status apply(trn_act op, trn_act_math math, float *y, trn_error *error)
{
    trn_activation_args args = { .op = op, .math = math, .error = error };
    args.src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)x, 1, N); /* it is only read */
    args.dst = trn_tensor_2d(TRN_F32, y, 1, N);
    return trn_activation(&args);
}

int main(void)
{
    static const trn_act functions[] = { TRN_ACT_EXP, TRN_ACT_GELU, TRN_ACT_TANH };
    float engine[N], ideal[N];
    trn_error error;
    const bool both = apply(TRN_ACT_EXP, TRN_ACT_MATH_SLEEF, ideal, &error) == TRN_OK;
    printf("function         x   engine's table%s\n", both ? "           ideal  relative difference" : "");
    for (int f = 0; f < 3; f++) {
        if (apply(functions[f], TRN_ACT_MATH_ENGINE, engine, &error) != TRN_OK ||
            (both && apply(functions[f], TRN_ACT_MATH_SLEEF, ideal, &error) != TRN_OK))
            return fprintf(stderr, "%s\n", error.text), 1;
        for (int i = 0; i < N; i++) {
            printf("%-8s  %8g  %15.7g", trn_act_name(functions[f]), (double)x[i], (double)engine[i]);
            if (both) {
                const double truth = (double)ideal[i], difference = ((double)engine[i] - truth) / truth;
                printf(" %15.7g  %19.1e", truth, difference + 0.0); /* + 0: no -0 */
            }
            puts("");
        }
    }
    if (both) return fflush(stdout) == 0 ? 0 : 1;
    printf("No ideal column: %s.\n", error.text);
    puts("It takes SLEEF (Debian: libsleef-dev): compile with -DTRN_USE_SLEEF=1, link with -lsleef.");
    return fflush(stdout) == 0 ? 0 : 1;
}
