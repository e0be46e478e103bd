/* plan.c - groups of elements that share a scale, and the scales that go in and come out.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

fc_grid fc_grid_of_grain(const st_tensor *tensor, fc_grain grain, const int64_t block[2])
{
    fc_grid g = quant_grid_matrices(tensor);
    if (grain == FC_PER_BLOCK)
        quant_grid_cut(&g, 1, block[0], block[1]);
    else if (grain == FC_PER_CHANNEL)
        quant_grid_cut(&g, 1, 1, g.columns);
    else
        g = quant_grid_whole(tensor);
    return g;
}

/* ---- the largest finite magnitude of each group, over the format's limit: what fresh scales are ---- */

/* Rounded once, so that what has been quantised keeps its scale; 0 only of nothing but zeros. Several threads may meet
 * in a group. */
static void raise_amax(const fc_work *w, int64_t group, double amax)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    float *most = (float *)w->user + group;
    const float share = (float)(amax / (double)fc_limit(w->catalogue->options->to));
    const float value = amax > 0 && share < FLT_MIN ? FLT_MIN : share;
    pthread_mutex_lock(&one);
    if (value > *most) *most = value;
    pthread_mutex_unlock(&one);
}

static void amax_of_codes(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const float *value = fc_values(fc_format_of(w->item->side));
    uint64_t count[FC_MAGNITUDES];
    (void)out;
    (void)tally;
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);) {
        float largest = 0;
        fc_count(w->bytes + p->first + t.first, p->columns, t.rows, t.columns, count);
        for (int i = 0; i < FC_MAGNITUDES; i++)
            if (count[i] && isfinite(value[i]) && value[i] > largest) largest = value[i];
        raise_amax(w, t.out, (double)largest * (double)fc_scale_at(w->item->values.scale, t.in));
    }
}

/* Magnitudes of binary32 numbers are in the order of their bits. */
static float largest_number(const float *x, int64_t n)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t bits = (int32_t)(io_bits(x[i]) & INT32_MAX);
        if (bits < 0x7f800000 && bits > largest) largest = bits;
    }
    return io_float((uint32_t)largest);
}

static void amax_of_numbers(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    float *x = fc_numbers(w, p, 0);
    (void)out;
    (void)tally;
    for (fc_tile t = { 0 }; fc_next_tile(w, p, &t);) {
        float largest = 0;
        for (int64_t r = 0; r < t.rows; r++)
            largest = fmaxf(largest, largest_number(x + t.first + r * p->columns, t.columns));
        raise_amax(w, t.out, (double)largest);
    }
    free(x);
}

bool fc_find_amax(fc_catalogue *c, int item, float *share, char *why)
{
    fc_work work = { .catalogue = c, .item = &c->item[item], .user = share };
    work.run = work.item->role == FC_NUMBERS ? amax_of_numbers : amax_of_codes;
    return fc_run_pieces(c, &work, why);
}

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
        const float in = fc_scale_at(w->values.scale, i);
        const double ideal = (double)in * f.up / f.down;
        unsigned char bytes[8];
        w->out_scale[i] = times(in, f);
        if (t && !store(t, times(in, f), bytes, &w->out_scale[i])) return too_large(t, times(in, f), why);
        const double error = ideal > 0 ? fabs((double)w->out_scale[i] / ideal - 1) : 0;
        if (error > w->scale_error) w->scale_error = error;
    }
    return true;
}

/* `share`: what makes the largest magnitude of a group the format's limit. A power of two that was chosen for it before
 * stays: the largest code may be 120 since. */
static float fresh_scale(const fc_options *o, float share, float before)
{
    int exponent;
    if (share == 0) return 1;
    if (!o->power_of_two || share == FLT_MIN) return share;
    const float fraction = frexpf(share, &exponent);
    if (fraction == 0.5f) return before == 2 * share ? before : share;
    return ldexpf(1, exponent);
}

static bool scales_by_amax(fc_catalogue *c, int item, char *why)
{
    const fc_item *w = &c->item[item];
    float *scale = w->out_scale;
    const bool same = w->role == FC_CODES && memcmp(&w->in, &w->out, sizeof w->in) == 0;
    if (!fc_find_amax(c, item, scale, why)) return false;
    for (int64_t i = 0; i < w->out.scales; i++) {
        scale[i] = fresh_scale(c->options, scale[i], same ? fc_scale_at(w->values.scale, i) : 0);
        if (!isfinite(scale[i]))
            return io_fail(why, w->tensor.name, "its fresh scale %lld is beyond F32", (long long)i);
    }
    return true;
}

bool fc_plan(fc_catalogue *c, int item, char *why)
{
    fc_item *w = &c->item[item];
    const int64_t bands = w->form == FC_AS_MX ? w->view.elements / 32 : 0;
    if (w->planned) return true;
    if (!fc_source_open(c, w, why)) return false;
    w->out_scale = calloc((size_t)w->out.scales + 1, sizeof *w->out_scale);
    w->mx_scale = bands ? calloc((size_t)bands, 1) : NULL;
    if (!w->out_scale || (bands && !w->mx_scale))
        return io_fail(why, w->tensor.name, "there is not enough memory for its scales");
    w->planned = true;
    w->uses = w->scale >= 0 && !c->options->check ? 2 : 1;
    if (w->form != FC_AS_FP8) return true;
    if (fc_keeps_codes(w, c->options)) return fc_scales_of_source(w, why);
    const bool by_amax = w->role == FC_NUMBERS || c->options->mode == FC_REQUANT;
    return by_amax ? scales_by_amax(c, item, why) : scales_by_factor(c, w, why);
}

void fc_plan_release(fc_catalogue *c, int item)
{
    fc_item *w = &c->item[item];
    if (--w->uses > 0) return;
    fc_source_close(w);
    free(w->out_scale);
    free(w->mx_scale);
    w->out_scale = NULL;
    w->mx_scale = NULL;
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
    if (w->form == FC_AS_MX && w->mx_scale) memcpy(out, w->mx_scale, (size_t)s->result.elements);
    for (int64_t i = 0; i < w->out.scales && w->form != FC_AS_MX; i++)
        write_one(&s->result, w->out_scale[i], (unsigned char *)out + i * (s->result.bits / 8));
    fc_plan_release(c, s->weight);
    return true;
}
