/* trnbench_activation_error.c - the errors of one function, as numbers for the table and as a curve for the picture.
 * SPDX-License-Identifier: MIT
 */
#include "trnbench_activation.h"

#include <math.h>

#include "activation_error.h"

enum { POINTS = 32 }; /* tried in each part of the picture */

/* What the picture shows: the valid range, or the part of it where functions bend. */
static void show(trn_act op, tb_act_error *error)
{
    const trn_act_info *info = trn_act_info_of(op);
    error->from = fmax(info->low, -8);
    error->to = fmin(info->high, 8);
}

static double worst_of_part(trn_act op, trn_act_math math, trn_isa isa, double from, double width)
{
    float x[POINTS];
    activation_error part = activation_error_begin(op, math);
    for (int i = 0; i < POINTS; i++) x[i] = (float)(from + width * (i + 0.5) / POINTS);
    activation_error_add(&part, x, POINTS, isa);
    return part.arguments ? part.max_relative : -1;
}

bool tb_act_judge(trn_act op, trn_act_math math, trn_isa isa, int between, tb_act_error *error)
{
    if (!activation_has_mpfr() || (math == TRN_ACT_MATH_SLEEF && !activation_has_ideal())) return false;
    const activation_error all = activation_error_sweep(op, math, 0, UINT32_MAX, 65536u / (uint32_t)(between + 1));
    show(op, error);
    error->there = true;
    error->compared = all.arguments;
    error->max_ulp = all.max_ulp;
    error->at_ulp = (float)all.ulp_at;
    error->max_absolute = all.max_absolute;
    error->max_relative = all.max_relative;
    error->at_relative = (float)all.relative_at;
    const double width = (error->to - error->from) / TB_ACT_BINS;
    for (int i = 0; i < TB_ACT_BINS; i++)
        error->worst[i] = worst_of_part(op, math, isa, error->from + i * width, width);
    return true;
}
