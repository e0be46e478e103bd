/* homes/instruction.c - tensor_twice, an instruction that house.homes adds to a copy of the headers, runs on a core.
 * SPDX-License-Identifier: MIT
 *
 * It computes, takes the time of its rule, is counted for its engine, and what it may not read is refused by its name.
 * Exits with 1 after a sentence for each finding.
 */
#include <stdio.h>
#include <string.h>

#include <trnmath/trn_core.h>

enum { P = 128, F = 512, ALL = P * F };

static int checks, failures;

static void holds(int true_or_not, const char *what)
{
    checks++;
    if (true_or_not) return;
    failures++;
    puts(what);
}

static float in[ALL], out[ALL];

/* The number of seconds that VectorE is busy with one instruction, and what became of it. */
static double run(trn_core *core, int twice)
{
    const trn_core_args args = { .generation = TRN_TRAINIUM2 };
    trn_core_report report;
    holds(trn_core_begin(core, &args) == TRN_OK, "trn_core_begin fails");
    const trn_tensor x = trn_core_hbm(core, "x", trn_tensor_2d(TRN_F32, in, P, F));
    const trn_tensor y = trn_core_hbm(core, "y", trn_tensor_2d(TRN_F32, out, P, F));
    const trn_tensor a = trn_core_sbuf(core, "a", TRN_F32, P, F), b = trn_core_sbuf(core, "b", TRN_F32, P, F);
    trn_core_dma_copy(core, &(trn_dma_copy_args){ .dst = a, .src = x });
    if (twice)
        trn_core_tensor_twice(core, &(trn_tensor_twice_args){ .dst = b, .data = a });
    else
        trn_core_tensor_copy(core, &(trn_tensor_copy_args){ .dst = b, .src = a });
    trn_core_dma_copy(core, &(trn_dma_copy_args){ .dst = y, .src = b });
    trn_core_report_of(core, &report);
    holds(report.engine[TRN_ENGINE_VECTOR].instructions == 1, "VectorE has not run one instruction");
    return report.engine[TRN_ENGINE_VECTOR].busy_s;
}

int main(void)
{
    static trn_core core;
    const char *text = "";
    for (int i = 0; i < ALL; i++) in[i] = 0.25f * (float)(i - 1000);
    const double copies = run(&core, 0);
    trn_core_end(&core);
    const double doubles = run(&core, 1);
    holds(trn_core_status(&core, &text) == TRN_OK, text);
    for (int i = 0; i < ALL; i++)
        if (out[i] != 2 * in[i]) {
            holds(0, "an element is not twice what it was");
            break;
        }
    holds(copies > 0 && doubles == copies, "it does not take the time of its rule, tensor_copy's");

    const trn_tensor nothing = trn_core_psum(&core, "nothing", TRN_F32, P, 8);
    const trn_tensor host = trn_tensor_2d(TRN_F32, in, P, F);
    holds(trn_core_tensor_twice(&core, &(trn_tensor_twice_args){ .dst = nothing, .data = host }) != TRN_OK,
          "it reads the host's memory");
    trn_core_status(&core, &text);
    holds(strstr(text, "instruction 3, tensor_twice: data ") != NULL, text);
    trn_core_end(&core);
    printf("instruction: %d checks, %d failed\n", checks, failures);
    return failures != 0;
}
