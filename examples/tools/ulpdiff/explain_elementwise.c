/* explain_elementwise.c - hypotheses about what was done to each element: a function, or a cast.
 * SPDX-License-Identifier: MIT
 */
#include "ulpdiff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/activation_error.h"

enum { SAMPLE = 1 << 16 };

/* ---- a function: the engine's table or an ideal one, and the roundings around it ---- */

enum { ACT_INPUTS, ACT_MATH, ACT_OUTPUT };
static const char *const act_aspects[] = { "inputs", "math", "output", NULL };
enum { ACT_KEY_INPUTS, ACT_KEY_MATH, ACT_KEY_OUTPUT, ACT_KEY_ROUNDING };

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
        return app_worked(trn_activation(&args), NULL);
    }
    for (int64_t i = 0; i < n; i++) x[i] = (float)activation_reference(op, 0, x[i]);
    return true;
}

static bool act_run(void *context, const ud_hypothesis *h, bool whole, float *value)
{
    const act_context *c = context;
    const int64_t n = whole ? c->n : c->sampled;
    for (int64_t i = 0; i < n; i++) value[i] = c->x[whole ? i : c->index[i]];
    ud_round_values((trn_format)h->key[ACT_KEY_INPUTS], TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, value, n);
    if (!evaluate(c->op, (act_math)h->key[ACT_KEY_MATH], value, n)) return false;
    ud_round_values((trn_format)h->key[ACT_KEY_OUTPUT], (trn_rounding)h->key[ACT_KEY_ROUNDING], TRN_OVERFLOW_DEFAULT,
                    value, n);
    return true;
}

static void act_suppose(ud_explanation *e, const char *function, trn_format input, bool cast, act_math math,
                        trn_format output, trn_rounding rounding)
{
    static const char *const name[] = { "the engine's table", "SLEEF", "the C library in binary64" };
    ud_hypothesis *h = ud_suppose(e);
    const char *cut = rounding == TRN_TOWARD_ZERO ? " toward zero" : "";
    snprintf(h->text, sizeof h->text, "%s by %s%s%s; output %s%s", function, name[math], cast ? "; inputs " : "",
             cast ? trn_format_name(input) : "", trn_format_name(output), cut);
    ud_say(h, ACT_INPUTS, "%s", cast ? trn_format_name(input) : "as they are");
    ud_say(h, ACT_MATH, "%s", name[math]);
    ud_say(h, ACT_OUTPUT, "%s%s", trn_format_name(output), cut);
    h->key[ACT_KEY_INPUTS] = (int)input;
    h->key[ACT_KEY_MATH] = (int)math;
    h->key[ACT_KEY_OUTPUT] = (int)output;
    h->key[ACT_KEY_ROUNDING] = (int)rounding;
    h->surprise = 2 * cast + (int)math + 2 * (rounding != TRN_NEAREST_EVEN);
}

static void act_suppose_all(const ud_job *job, ud_explanation *e, trn_format own)
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
                    act_suppose(e, job->options.function, i < 0 ? TRN_F32 : formats[i], i >= 0, (act_math)math,
                                formats[o], cut ? TRN_TOWARD_ZERO : TRN_NEAREST_EVEN);
                }
    }
}

static void act_close_context(void *context)
{
    act_context *c = context;
    free(c->x);
    free(c);
}

bool ud_open_activation(ud_job *job, ud_explanation *e, char *why)
{
    const ud_array *x = &job->operand[0];
    char shape[128];
    if (job->operands != 1 || x->elements != job->pair[0].b.elements)
        return app_fail(why, "--inputs: a function has one operand with as many elements as its result, %lld",
                        (long long)job->pair[0].b.elements);
    act_context *c = app_memory(1, sizeof *c);
    c->op = trn_act_from_name(job->options.function);
    c->x = ud_read_floats(x);
    c->n = e->source.outputs = e->source.total = x->elements;
    c->sampled = e->source.sampled = c->n < SAMPLE ? c->n : SAMPLE;
    c->index = e->source.index = ud_spread(c->n, c->sampled);
    job->product = (ud_product){ app_memory(1, sizeof(float)), ud_read_floats(x), 1, c->n, 1, true };
    job->product.a[0] = 1; /* for those who look for another function of it */
    e->source.context = c;
    e->source.close = act_close_context;
    e->source.run = act_run;
    e->source.aspect = act_aspects;
    io_say_in(e->source.inputs, sizeof e->source.inputs, IO_SAID, "%s of %.200s %s %s", job->options.function, x->name,
              x->type, ud_shape(x, shape, sizeof shape));
    act_suppose_all(job, e, ud_has_floats(x) ? x->format : TRN_F32);
    return true;
}

/* ---- a cast: rounding, overflow, flushed subnormals, a format in between ---- */

enum { CAST_OUTPUT, CAST_ROUNDING, CAST_OVERFLOW, CAST_FLUSH, CAST_VIA };
static const char *const cast_aspects[] = { "output", "rounding", "overflow", "flush", "via", NULL };

enum {
    CAST_KEY_FORMAT,
    CAST_KEY_ROUNDING,
    CAST_KEY_FLUSH,
    CAST_KEY_VIA
}; /* saturation is added to the rounding's key */
enum { CAST_SATURATE = 16 };

typedef enum cast_flush { FLUSH_NONE, FLUSH_INPUTS, FLUSH_OUTPUTS } cast_flush;

/* The library's modes, and two that it has no cast for: made of its directed ones. */
enum { AWAY = TRN_TO_ODD + 1, NEIGHBOUR };
static const struct {
    int mode;
    const char *name;
    int surprise;
} modes[] = { { TRN_NEAREST_EVEN, "nearest even", 0 },
              { TRN_TOWARD_ZERO, "toward zero", 1 },
              { AWAY, "nearest, ties away", 2 },
              { TRN_TOWARD_NEGATIVE, "down", 3 },
              { TRN_TOWARD_POSITIVE, "up", 3 },
              { TRN_TO_ODD, "to odd", 4 },
              { NEIGHBOUR, "stochastic (either neighbour)", 50 } };

typedef struct cast_context {
    ud_explanation *e;
    float *x;
    int64_t n, sampled, *index;
    trn_format own;
} cast_context;

static double least_normal(trn_format format) { return trn_format_limits_of(format).min_normal; }

static void flush(float *x, int64_t n, double least)
{
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)x[i]) < least) x[i] = copysignf(0, x[i]);
}

/* Of the two neighbours, the nearer; of two that are equally near, the one away from zero. */
static float nearer(float x, float down, float up)
{
    const float inner = x < 0 ? up : down, outer = x < 0 ? down : up;
    const double far = fabs((double)outer) - fabs((double)x), near = fabs((double)x) - fabs((double)inner);
    return far <= near ? outer : inner; /* infinity is far from everything but itself */
}

/* AWAY and NEIGHBOUR: the latter is whatever B has, where that is one of the two neighbours. */
static void round_between(const cast_context *c, int mode, trn_format format, trn_overflow overflow, float *x,
                          int64_t n)
{
    float *down = app_memory((size_t)n, sizeof *down), *up = app_memory((size_t)n, sizeof *up);
    memcpy(down, x, sizeof *x * (size_t)n);
    memcpy(up, x, sizeof *x * (size_t)n);
    ud_round_values(format, TRN_TOWARD_NEGATIVE, overflow, down, n);
    ud_round_values(format, TRN_TOWARD_POSITIVE, overflow, up, n);
    if (mode == NEIGHBOUR) ud_round_values(format, TRN_NEAREST_EVEN, overflow, x, n);
    for (int64_t i = 0; i < n; i++) {
        const double is = c->e->source.target[1][i];
        if (mode == AWAY)
            x[i] = nearer(x[i], down[i], up[i]);
        else if (is == (double)down[i] || is == (double)up[i])
            x[i] = (float)is;
    }
    free(down);
    free(up);
}

static bool cast_run(void *context, const ud_hypothesis *h, bool whole, float *value)
{
    const cast_context *c = context;
    const trn_format format = (trn_format)h->key[CAST_KEY_FORMAT];
    const int64_t n = whole ? c->n : c->sampled;
    const trn_overflow overflow = h->key[CAST_KEY_ROUNDING] & CAST_SATURATE ? TRN_SATURATE : TRN_OVERFLOW_DEFAULT;
    const int mode = h->key[CAST_KEY_ROUNDING] & (CAST_SATURATE - 1);
    for (int64_t i = 0; i < n; i++) value[i] = c->x[whole ? i : c->index[i]];
    if (h->key[CAST_KEY_FLUSH] == FLUSH_INPUTS) flush(value, n, least_normal(c->own));
    if (h->key[CAST_KEY_VIA]) ud_round_values((trn_format)h->key[CAST_KEY_VIA], TRN_NEAREST_EVEN, overflow, value, n);
    if (mode >= AWAY)
        round_between(c, mode, format, overflow, value, n);
    else
        ud_round_values(format, (trn_rounding)mode, overflow, value, n);
    if (h->key[CAST_KEY_FLUSH] == FLUSH_OUTPUTS) flush(value, n, least_normal(format));
    return true;
}

static void cast_suppose(ud_explanation *e, trn_format format, size_t mode, bool saturate, cast_flush flush_,
                         trn_format via, int surprise)
{
    static const char *const flush_name[] = { "none", "subnormal inputs", "subnormal results" };
    ud_hypothesis *h = ud_suppose(e);
    const char *name = trn_format_name(format), *way = via ? trn_format_name(via) : "nothing";
    snprintf(h->text, sizeof h->text, "to %s, %s%s%s%s%s%s", name, modes[mode].name, saturate ? ", saturating" : "",
             flush_ ? ", flushing " : "", flush_ ? flush_name[flush_] : "", via ? ", by way of " : "", via ? way : "");
    ud_say(h, CAST_OUTPUT, "%s", name);
    ud_say(h, CAST_ROUNDING, "%s", modes[mode].name);
    ud_say(h, CAST_OVERFLOW, "%s", saturate ? "saturates" : "default");
    ud_say(h, CAST_FLUSH, "%s", flush_name[flush_]);
    ud_say(h, CAST_VIA, "%s", way);
    h->key[CAST_KEY_FORMAT] = (int)format;
    h->key[CAST_KEY_ROUNDING] = modes[mode].mode + (saturate ? CAST_SATURATE : 0);
    h->key[CAST_KEY_FLUSH] = (int)flush_;
    h->key[CAST_KEY_VIA] = (int)via;
    h->surprise =
        surprise + modes[mode].surprise + saturate + 2 * (flush_ != FLUSH_NONE) + 3 * (via != TRN_FORMAT_UNSET);
}

static void cast_suppose_format(ud_explanation *e, const cast_context *c, trn_format format, int surprise)
{
    static const trn_format vias[] = { TRN_FORMAT_UNSET, TRN_BF16, TRN_F16, TRN_TF32 };
    for (size_t v = 0; v < sizeof vias / sizeof vias[0]; v++) {
        const bool between =
            ud_significand(vias[v]) > ud_significand(format) && ud_significand(vias[v]) < ud_significand(c->own);
        if (vias[v] != TRN_FORMAT_UNSET && !between) continue;
        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
            for (int s = 0; s < 2; s++)
                for (int f = 0; f < 3; f++) {
                    if (f && m > 1) continue; /* flushing engines round to nearest, or cut */
                    cast_suppose(e, format, m, s == 1, (cast_flush)f, vias[v], surprise);
                }
    }
}

static void cast_close_context(void *context)
{
    cast_context *c = context;
    free(c->x);
    free(c);
}

bool ud_open_cast(ud_job *job, ud_explanation *e, char *why)
{
    static const trn_format formats[] = { TRN_F32,     TRN_TF32,      TRN_BF16,    TRN_F16,
                                          TRN_F8_E4M3, TRN_F8_E4M3FN, TRN_F8_E5M2, TRN_F8_E3M4 };
    const ud_array *x = &job->operand[0], *b = &job->pair[0].b, *a = &job->pair[0].a;
    char shape[128];
    if (job->operands != 1 || x->elements != b->elements)
        return app_fail(why, "--inputs: a cast has one operand with as many elements as its result, %lld",
                        (long long)b->elements);
    cast_context *c = app_memory(1, sizeof *c);
    c->e = e;
    c->x = ud_read_floats(x);
    c->n = e->source.outputs = e->source.total = x->elements;
    c->sampled = e->source.sampled = c->n < SAMPLE ? c->n : SAMPLE;
    c->index = e->source.index = ud_spread(c->n, c->sampled);
    c->own = ud_has_floats(x) ? x->format : TRN_F32;
    e->source.context = c;
    e->source.close = cast_close_context;
    e->source.run = cast_run;
    e->source.aspect = cast_aspects;
    io_say_in(e->source.inputs, sizeof e->source.inputs, IO_SAID, "a cast of %.200s %s %s", x->name, x->type,
              ud_shape(x, shape, sizeof shape));
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const bool of_b = b->format == formats[i], of_a = a->format == formats[i];
        const bool inside = ud_can_be(&job->pair[0], formats[i]) && ud_significand(formats[i]) < ud_significand(c->own);
        if (of_b || of_a || inside) cast_suppose_format(e, c, formats[i], of_b ? 0 : 2);
    }
    return true;
}
