/* modes.c - the instructions of the tensor engine: what each mode costs on each generation, and who says so.
 * SPDX-License-Identifier: MIT
 *
 * One full instruction of each mode, its load hidden behind the one before: what the clock makes of it, beside the
 * figures that the vendor prints for a core and for a chip.
 */
#include "spec.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_cost.h>

typedef enum published { NOTHING, F32, BF16, F8, MX, SPARSE, INT8 } published; /* whose figure is printed */

static const struct {
    const char *name;
    trn_tensor_instruction i;
    published figure;
} modes[] = {
    { "bf16", { .stationary_format = TRN_BF16 }, BF16 },
    { "f16", { .stationary_format = TRN_F16 }, BF16 },
    { "tf32", { .stationary_format = TRN_TF32 }, BF16 },
    { "f32", { .stationary_format = TRN_F32 }, F32 },
    { "f32, one operand 0 or 1", { .stationary_format = TRN_F32, .is_moving_onezero = true }, NOTHING },
    { "fp32r", { .stationary_format = TRN_F32, .fp32r = true }, NOTHING },
    { "e4m3", { .stationary_format = TRN_F8_E4M3, .mode = TRN_MODE_PLAIN }, NOTHING },
    { "cfp8", { .stationary_format = TRN_CFP8, .mode = TRN_MODE_PLAIN }, NOTHING },
    { "e4m3, double rows", { .stationary_format = TRN_F8_E4M3, .mode = TRN_MODE_DOUBLE_ROW }, F8 },
    { "mxfp8", { .stationary_format = TRN_F8_E4M3FN, .mode = TRN_MODE_MX }, MX },
    { "mxfp4", { .stationary_format = TRN_F4_E2M1, .mode = TRN_MODE_MX }, MX },
    { "int8", { .stationary_format = TRN_I8, .mode = TRN_MODE_INT8 }, INT8 },
    { "bf16 4:16", { .stationary_format = TRN_BF16, .sparse_m = 4, .sparse_n = 16 }, SPARSE },
    { "bf16 4:12", { .stationary_format = TRN_BF16, .sparse_m = 4, .sparse_n = 12 }, NOTHING },
    { "bf16 4:8", { .stationary_format = TRN_BF16, .sparse_m = 4, .sparse_n = 8 }, NOTHING },
    { "bf16 2:8", { .stationary_format = TRN_BF16, .sparse_m = 2, .sparse_n = 8 }, NOTHING },
    { "bf16 2:4", { .stationary_format = TRN_BF16, .sparse_m = 2, .sparse_n = 4 }, NOTHING },
    { "bf16 1:4", { .stationary_format = TRN_BF16, .sparse_m = 1, .sparse_n = 4 }, NOTHING },
    { "bf16 1:2", { .stationary_format = TRN_BF16, .sparse_m = 1, .sparse_n = 2 }, NOTHING },
    { "bf16, 64 x 64 tiles", { .stationary_format = TRN_BF16, .tile_rows = 64, .tile_columns = 64 }, NOTHING },
    { "bf16, 32 x 32 tiles", { .stationary_format = TRN_BF16, .tile_rows = 32, .tile_columns = 32 }, NOTHING },
    { "transpose of bf16", { .stationary_format = TRN_BF16, .mode = TRN_MODE_TRANSPOSE }, NOTHING },
    { "transpose of f32", { .stationary_format = TRN_F32, .mode = TRN_MODE_TRANSPOSE }, NOTHING },
};
enum { MODES = sizeof modes / sizeof modes[0] };

static const app_column columns[] = {
    { "chip", APP_TEXT, "", "generation" },
    { "mode", APP_TEXT, "", "formats and mode of the tensor engine" },
    { "K", APP_INTEGER, "rows", "that one instruction covers, at most" },
    { "M", APP_INTEGER, "columns", "of the stationary operand" },
    { "N", APP_INTEGER, "columns", "of the moving operand, at most" },
    { "at once", APP_INTEGER, "", "instructions that share the array" },
    { "load", APP_REAL, "cycles", "LoadStationary, hidden behind the multiplication before" },
    { "multiply", APP_REAL, "cycles", "MultiplyMoving" },
    { "by clock", APP_REAL, "TFLOPS", "of one core; those that sparsity skips count" },
    { "core page", APP_REAL, "TFLOPS", "as printed for one core" },
    { "differs", APP_REAL, "%", "by clock, from the core's page" },
    { "chip page", APP_REAL, "TFLOPS", "as printed for the chip, over its cores" },
    { "known", APP_TEXT, "", "how the multiplication's speed is known" },
    { "source", APP_TEXT, "", "where" },
};

/* Of one core, in flop/s; 0 when it is not printed. */
static double core_figure(const trn_core_spec *core, published figure)
{
    const double all[] = { 0,
                           core->f32_flops_per_s,
                           core->bf16_flops_per_s,
                           core->f8_flops_per_s,
                           core->mx_flops_per_s,
                           core->sparse_flops_per_s,
                           0 };
    return all[figure];
}

static double chip_figure(const trn_chip_spec *chip, published figure)
{
    const double all[] = { 0,
                           chip->f32_flops_per_s,
                           chip->bf16_flops_per_s,
                           chip->f8_flops_per_s,
                           chip->mx_flops_per_s,
                           chip->sparse_bf16_flops_per_s,
                           chip->int8_ops_per_s };
    return all[figure] / chip->cores;
}

static double or_nothing(double flops) { return flops > 0 ? flops / 1e12 : NAN; }

/* The largest instruction of a kind: sizes are tried from the top, because the cost model knows the limits. */
static bool largest(trn_tensor_instruction *i, trn_tensor_cost *cost)
{
    const trn_core_spec *core = trn_core_spec_of(i->generation);
    memset(cost, 0, sizeof *cost); /* for gcc, which does not see that only a success is read */
    i->m = i->tile_columns ? i->tile_columns : core->max_m;
    i->n = i->mode == TRN_MODE_TRANSPOSE ? 0 : core->max_n;
    i->before_cycles = core->max_n;
    for (i->k = 4 * core->max_k; i->k > 0; i->k -= 32)
        if (trn_tensor_instruction_cost(i, cost) == TRN_OK) break;
    if (i->k <= 0) return false;
    i->pack = cost->at_once;
    return trn_tensor_instruction_cost(i, cost) == TRN_OK;
}

static void mode_row(app_table *t, const trn_chip_spec *chip, int mode)
{
    trn_tensor_instruction i = modes[mode].i;
    trn_tensor_cost cost;
    i.generation = chip->core->generation;
    if (!largest(&i, &cost)) return;
    const double core = core_figure(chip->core, modes[mode].figure);
    app_row(t);
    app_text(t, "%s", chip->name);
    app_text(t, "%s", modes[mode].name);
    app_integer(t, i.k);
    app_integer(t, i.m);
    app_integer(t, i.n ? i.n : i.k);
    app_integer(t, cost.at_once);
    app_real(t, cost.load_cycles);
    app_real(t, cost.multiply_cycles);
    app_real(t, or_nothing(cost.tflops * 1e12));
    app_real(t, or_nothing(core));
    app_real(t, core > 0 ? 100 * (cost.tflops * 1e12 / core - 1) : NAN);
    app_real(t, or_nothing(chip_figure(chip, modes[mode].figure)));
    app_text(t, "%s", trn_provenance_text(cost.multiply_known.known));
    app_text(t, "%s", cost.multiply_known.where);
}

void tb_mode_rows(app_table *table)
{
    app_table_start(table, columns, (int)(sizeof columns / sizeof columns[0]));
    for (int g = TRN_TRAINIUM1; g <= TRN_TRAINIUM3; g++)
        for (int m = 0; m < MODES; m++) mode_row(table, trn_chip_spec_of((trn_generation)g), m);
}
