/* plan.c - the scales that go in and come out.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- scales in files ---- */

static float read_one(const st_tensor *t, const unsigned char *at)
{
    return trn_decode(t->format, (uint32_t)io_little(at, t->bits / 8));
}

static void write_one(const st_tensor *t, float x, unsigned char *at)
{
    const uint32_t code = trn_encode(t->format, x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    for (int i = 0; i < t->bits / 8; i++) at[i] = (unsigned char)(code >> 8 * i);
}

bool fc_scale_read(fc_catalogue *c, const fc_item *scale, float **values, char *why)
{
    const st_tensor *t = &scale->tensor;
    const int64_t n = t->elements;
    const unsigned char *bytes = fc_bytes(c, scale, why);
    if (!bytes) return false;
    *values = malloc(((size_t)n + 1) * sizeof **values);
    if (!*values) return io_fail(why, t->name, "there is not enough memory for its %lld numbers", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const float x = (*values)[i] = read_one(t, bytes + i * (t->bits / 8));
        if (!isfinite(x) || x < 0)
            return io_fail(why, t->name, "scale %lld is %g; expected a number that is finite and not negative",
                           (long long)i, (double)x);
    }
    return true;
}

/* As it will be read again; false when its type cannot hold it. */
static bool store(const st_tensor *t, float x, unsigned char *at, float *stored)
{
    write_one(t, x, at);
    *stored = read_one(t, at);
    return isfinite(*stored);
}

static float times(float scale, fc_factor f) { return scale * ((float)f.up / (float)f.down); }

static bool too_large(const st_tensor *t, float x, char *why)
{
    return io_fail(why, t->name, "its new scale %g cannot be held by %s", (double)x, t->type);
}

/* ---- the plan of a weight ---- */

static bool scales_by_factor(fc_catalogue *c, fc_item *w, char *why)
{
    const fc_factor f = fc_factor_of(c->options->mode, c->options->to);
    const st_tensor *t = w->scale >= 0 ? &c->item[w->scale].result : NULL;
    for (int64_t i = 0; i < w->out.scales; i++) {
        const float in = w->in_scale ? w->in_scale[i] : 1;
        const double ideal = (double)in * f.up / f.down;
        unsigned char bytes[8];
        w->out_scale[i] = times(in, f);
        if (t && !store(t, times(in, f), bytes, &w->out_scale[i])) return too_large(t, times(in, f), why);
        const double error = ideal > 0 ? fabs((double)w->out_scale[i] / ideal - 1) : 0;
        if (error > w->scale_error) w->scale_error = error;
    }
    return true;
}

/* The largest magnitude of a group becomes the format's limit. */
static float fresh_scale(const fc_options *o, float amax)
{
    const float scale = amax / fc_limit(o->to);
    int exponent;
    if (amax == 0) return 1;
    if (scale < FLT_MIN) return FLT_MIN;
    if (!o->power_of_two) return scale;
    const float fraction = frexpf(scale, &exponent);
    return ldexpf(1, fraction == 0.5f ? exponent - 1 : exponent);
}

static bool scales_by_amax(fc_catalogue *c, int item, char *why)
{
    float *scale = c->item[item].out_scale;
    if (!fc_find_amax(c, item, scale, why)) return false;
    for (int64_t i = 0; i < c->item[item].out.scales; i++) scale[i] = fresh_scale(c->options, scale[i]);
    return true;
}

bool fc_plan(fc_catalogue *c, int item, char *why)
{
    fc_item *w = &c->item[item];
    if (w->planned) return true;
    if (w->old_scale >= 0 && !fc_scale_read(c, &c->item[w->old_scale], &w->in_scale, why)) return false;
    w->out_scale = calloc((size_t)w->out.scales + 1, sizeof *w->out_scale);
    if (!w->out_scale) return io_fail(why, w->tensor.name, "there is not enough memory for its scales");
    w->planned = true;
    w->uses = w->scale >= 0 && !c->options->check ? 2 : 1;
    const bool by_amax = w->role == FC_NUMBERS || c->options->mode == FC_REQUANT;
    return by_amax ? scales_by_amax(c, item, why) : scales_by_factor(c, w, why);
}

void fc_plan_release(fc_catalogue *c, int item)
{
    fc_item *w = &c->item[item];
    if (--w->uses > 0) return;
    free(w->in_scale);
    free(w->out_scale);
    w->in_scale = w->out_scale = NULL;
    w->planned = false;
}

/* ---- what is written ---- */

static bool run_scale_bytes(fc_catalogue *c, const fc_item *s, unsigned char *out, char *why)
{
    /* requant knows nothing of what will come: the range is what changes */
    const fc_factor f = fc_factor_of(c->options->mode, c->options->to);
    const int bytes = s->result.bits / 8;
    float *value = NULL, stored;
    bool ok = fc_scale_read(c, s, &value, why);
    for (int64_t i = 0; ok && i < s->tensor.elements; i++)
        ok = store(&s->result, times(value[i], f), out + i * bytes, &stored) || too_large(&s->result, value[i], why);
    free(value);
    return ok;
}

bool fc_scale_bytes(fc_catalogue *c, int item, void *out, char *why)
{
    const fc_item *s = &c->item[item];
    if (s->role == FC_RUN_SCALE) return run_scale_bytes(c, s, out, why);
    if (!fc_plan(c, s->weight, why)) return false;
    const fc_item *w = &c->item[s->weight];
    for (int64_t i = 0; i < w->out.scales; i++)
        write_one(&s->result, w->out_scale[i], (unsigned char *)out + i * (s->result.bits / 8));
    fc_plan_release(c, s->weight);
    return true;
}
