/* measure.c - the Scalar engine's functions raced (engine model, ideal function, raw SLEEF), and judged.
 * SPDX-License-Identifier: MIT
 *
 * One thread; all candidates take turns within each round; the processor time of this thread alone counts, so that what
 * other programs take away does not. Reported: the best round, and the median over the rounds of the ratios. Errors are
 * those of common/activation_error.h.
 */
#include "activation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>

#include "bench/common/activation_error.h"
#include "bench/common/measure.h"

enum { ENGINE, IDEAL, SLEEF, RUNNERS };

typedef struct lane {
    const tb_act_job *job;
    trn_activation_args args[2]; /* engine, ideal */
    tb_race *race;
    float *plain_dst, *plain_src;
    void *dst, *src, *scratch;
} lane;

/* Arguments that people have: on both sides of zero, up to 8; for roots, log and 1/x positive, 2^-20 .. 2^20. */
static float argument(trn_act op, uint32_t random)
{
    const trn_act_info *info = trn_act_info_of(op);
    const double unit = random * 0x1p-32;
    if (info->low > 0) return (float)exp2(40 * unit - 20);
    return (float)((2 * unit - 1) * fmin(8, info->high));
}

static bool prepare(lane *l, const tb_act_job *job)
{
    const size_t n = (size_t)job->elements;
    memset(l, 0, sizeof *l);
    l->job = job;
    l->plain_src = malloc(n * sizeof(float));
    l->plain_dst = calloc(n, sizeof(float));
    l->src = malloc(n * trn_format_bytes(job->format));
    l->dst = calloc(n, trn_format_bytes(job->format));
    if (!l->plain_src || !l->plain_dst || !l->src || !l->dst) return false;
    for (size_t i = 0; i < n; i++) l->plain_src[i] = argument(job->op, trn_random_u32(1, 0, i));
    trn_convert_args cast;
    memset(&cast, 0, sizeof cast);
    cast.dst = trn_tensor_1d(job->format, l->src, job->elements);
    cast.src = trn_tensor_1d(TRN_F32, l->plain_src, job->elements);
    if (trn_convert(&cast) != TRN_OK) return false;
    for (int i = 0; i < 2; i++) {
        trn_activation_args *a = &l->args[i];
        a->dst = trn_tensor_2d(job->format, l->dst, 1, job->elements);
        a->src = trn_tensor_2d(job->format, l->src, 1, job->elements);
        a->op = job->op;
        a->isa = job->isa;
        a->unlimited = true;
        a->math = i ? TRN_ACT_MATH_SLEEF : TRN_ACT_MATH_ENGINE;
    }
    l->args[0].scratch_bytes = l->args[1].scratch_bytes = trn_activation_scratch_bytes(&l->args[0]);
    l->scratch = l->args[0].scratch_bytes ? malloc(l->args[0].scratch_bytes) : NULL;
    l->args[0].scratch = l->args[1].scratch = l->scratch;
    l->race = job->format == TRN_F32 ? tb_sleef_race(job->op) : NULL;
    return true;
}

static void release(lane *l)
{
    free(l->plain_src);
    free(l->plain_dst);
    free(l->src);
    free(l->dst);
    free(l->scratch);
}

static bool run_once(lane *l, int runner)
{
    if (runner != SLEEF) return trn_activation(&l->args[runner]) == TRN_OK;
    if (l->race) l->race(l->plain_dst, l->plain_src, l->job->elements / 16 * 16);
    return l->race != NULL;
}

/* Elements per second over `calls` calls. */
static double rate(lane *l, int runner, int calls)
{
    const double start = tb_thread_seconds();
    for (int i = 0; i < calls; i++) run_once(l, runner);
    return (double)l->job->elements * calls / (tb_thread_seconds() - start);
}

static double ratio(const double *over, const double *under, bool there, int rounds)
{
    return there ? tb_median_ratio(over, under, rounds) : (double)NAN;
}

int tb_act_race(const tb_act_job *job, tb_act_speed *speed)
{
    static double got[RUNNERS][TB_MAX_ROUNDS];
    bool there[RUNNERS] = { false };
    int calls[RUNNERS] = { 0 };
    lane l;
    trn_error error = { TRN_OK, "" };
    if (!prepare(&l, job)) return release(&l), app_complain(APP_USAGE, "not enough memory for the arrays");
    l.args[0].error = &error;
    for (int i = 0; i < RUNNERS; i++) {
        there[i] = run_once(&l, i);
        const double first = there[i] ? rate(&l, i, 1) : 1;
        calls[i] = 1 + (int)(0.004 * first / (double)job->elements); /* about 4 ms a turn */
    }
    if (!there[ENGINE]) return release(&l), app_complain(APP_USAGE, "%s", error.text);
    for (int r = 0; r < job->rounds; r++)
        for (int i = 0; i < RUNNERS; i++)
            if (there[i]) got[i][r] = rate(&l, i, calls[i]);
    speed->engine = tb_best(got[ENGINE], job->rounds);
    speed->ideal = there[IDEAL] ? tb_best(got[IDEAL], job->rounds) : (double)NAN;
    speed->sleef = there[SLEEF] ? tb_best(got[SLEEF], job->rounds) : (double)NAN;
    speed->engine_ratio = ratio(got[ENGINE], got[SLEEF], there[SLEEF], job->rounds);
    speed->ideal_ratio = ratio(got[IDEAL], got[SLEEF], there[IDEAL] && there[SLEEF], job->rounds);
    release(&l);
    return APP_OK;
}

/* ---- errors: numbers for the table, a curve for the picture ---- */

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
