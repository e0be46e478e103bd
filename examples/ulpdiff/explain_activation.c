/* explain_activation.c - hypotheses about a function: the engine's table or an ideal one, and the roundings around it.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/activation_error.h"

enum { INPUTS, MATH, OUTPUT };
static const char *const aspects[] = { "inputs", "math", "output", NULL };
enum { KEY_INPUTS, KEY_MATH, KEY_OUTPUT, KEY_ROUNDING };
enum { SAMPLE = 1 << 16 };

typedef enum act_math { ENGINE, IDEAL, LIBM } act_math;

typedef struct act_context {
    trn_act op;
    float *x;
    int64_t n, sampled, *index;
} act_context;

static bool evaluate(trn_act op, act_math math, float *x, int64_t n)
{
    if (math != LIBM) {
        trn_activation_args args;
        memset(&args, 0, sizeof args);
        args.src = args.dst = trn_tensor_2d(TRN_F32, x, 1, n);
        args.op = op;
        args.unlimited = true;
        args.math = math == IDEAL ? TRN_ACT_MATH_SLEEF : TRN_ACT_MATH_ENGINE;
        return trn_activation(&args) == TRN_OK;
    }
    for (int64_t i = 0; i < n; i++) x[i] = (float)activation_reference(op, 0, x[i]);
    return true;
}

static bool run(void *context, const ud_hypothesis *h, bool whole, float *value)
{
    const act_context *c = context;
    const int64_t n = whole ? c->n : c->sampled;
    for (int64_t i = 0; i < n; i++) value[i] = c->x[whole ? i : c->index[i]];
    ud_round_values((trn_format)h->key[KEY_INPUTS], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, value, n);
    if (!evaluate(c->op, (act_math)h->key[KEY_MATH], value, n)) return false;
    ud_round_values((trn_format)h->key[KEY_OUTPUT], (trn_rounding)h->key[KEY_ROUNDING], TRN_OVERFLOW_DEFAULT, value, n);
    return true;
}

static void suppose(ud_explanation *e, const char *function, trn_format input, bool cast, act_math math,
                    trn_format output, trn_rounding rounding)
{
    static const char *const name[] = { "the engine's table", "SLEEF", "the C library in binary64" };
    ud_hypothesis *h = ud_suppose(e);
    const char *cut = rounding == TRN_TOWARD_ZERO ? " toward zero" : "";
    snprintf(h->text, sizeof h->text, "%s by %s%s%s; output %s%s", function, name[math], cast ? "; inputs " : "",
             cast ? trn_format_name(input) : "", trn_format_name(output), cut);
    ud_say(h, INPUTS, "%s", cast ? trn_format_name(input) : "as they are");
    ud_say(h, MATH, "%s", name[math]);
    ud_say(h, OUTPUT, "%s%s", trn_format_name(output), cut);
    h->key[KEY_INPUTS] = (int)input;
    h->key[KEY_MATH] = (int)math;
    h->key[KEY_OUTPUT] = (int)output;
    h->key[KEY_ROUNDING] = (int)rounding;
    h->surprise = 2 * cast + (int)math + 2 * (rounding != TRN_NEAREST_EVEN);
}

static void suppose_all(const ud_job *job, ud_explanation *e, trn_format own)
{
    static const trn_format formats[] = {
        TRN_F32, TRN_TF32, TRN_BF16, TRN_F16, TRN_F8_E4M3, TRN_F8_E4M3FN, TRN_F8_E5M2
    };
    enum { FORMATS = sizeof formats / sizeof formats[0] };
    for (int i = -1; i < FORMATS; i++) {
        if (i >= 0 && ud_significand(formats[i]) >= ud_significand(own)) continue;
        for (int math = ENGINE; math <= LIBM; math++)
            for (int o = 0; o < FORMATS; o++)
                for (int cut = 0; cut < 2; cut++) {
                    if (!ud_can_be(&job->pair[0], formats[o]) || (cut && o == 0)) continue;
                    suppose(e, job->options.function, i < 0 ? TRN_F32 : formats[i], i >= 0, (act_math)math, formats[o],
                            cut ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN);
                }
    }
}

static void close_context(void *context)
{
    act_context *c = context;
    free(c->x);
    free(c);
}

int ud_open_activation(ud_job *job, ud_explanation *e)
{
    const ud_array *x = &job->operand[0];
    char shape[128];
    if (job->operands != 1 || x->elements != job->pair[0].b.elements)
        return app_complain(APP_USAGE, "--inputs: a function has one operand with as many elements as its result, %lld",
                            (long long)job->pair[0].b.elements);
    act_context *c = ud_need(1, sizeof *c);
    c->op = trn_act_from_name(job->options.function);
    c->x = ud_read_floats(x);
    c->n = e->source.outputs = e->source.total = x->elements;
    c->sampled = e->source.sampled = c->n < SAMPLE ? c->n : SAMPLE;
    c->index = e->source.index = ud_spread(c->n, c->sampled);
    e->source.context = c;
    e->source.close = close_context;
    e->source.run = run;
    e->source.aspect = aspects;
    snprintf(e->source.inputs, sizeof e->source.inputs, "%s of %.200s %s %s", job->options.function, x->name, x->type,
             ud_shape(x, shape, sizeof shape));
    suppose_all(job, e, x->kind == UD_CODES && trni_is_float(x->format) ? x->format : TRN_F32);
    return APP_OK;
}
