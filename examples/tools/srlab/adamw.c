/* adamw.c - AdamW, how its updates reach stored weights, and what rounding took of them.
 * SPDX-License-Identifier: MIT
 *
 * Everything is binary32 but the weights: gradients, both moments, the update. The new weight is computed in binary32
 * and rounded once into the arm's format. Kahan's arm adds what earlier roundings took, and keeps in bfloat16 what this
 * one takes (Zamirai et al., "Revisiting BFloat16 training", 2020).
 */
#include "srlab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096 };

typedef struct chunk {
    int tensor;
    int64_t within, first, count; /* in the tensor, in the flat arrays */
} chunk;

static int64_t chunks_of(const sr_tensor *t) { return (t->rows * t->columns + CHUNK - 1) / CHUNK; }

static int64_t count_chunks(const sr_weights *w)
{
    int64_t chunks = 0;
    for (int i = 0; i < w->tensors; i++) chunks += chunks_of(&w->tensor[i]);
    return chunks;
}

static chunk chunk_at(const sr_weights *w, int64_t index)
{
    chunk c = { 0, 0, 0, 0 };
    while (index >= chunks_of(&w->tensor[c.tensor])) index -= chunks_of(&w->tensor[c.tensor++]);
    const sr_tensor *t = &w->tensor[c.tensor];
    const int64_t left = t->rows * t->columns - index * CHUNK;
    c.within = index * CHUNK;
    c.first = t->first + c.within;
    c.count = left < CHUNK ? left : CHUNK;
    return c;
}

/* ---- the gradient of all shards ---- */

/* gradient[0] = sum in ascending order; returns the sum of squares. */
static double add_shards(sr_weights *w, const chunk *c)
{
    float *sum = w->gradient[0] + c->first;
    double square = 0;
    for (int s = 1; s < SR_SHARDS; s++)
        for (int64_t i = 0; i < c->count; i++) sum[i] += w->gradient[s][c->first + i];
    for (int64_t i = 0; i < c->count; i++) square += (double)sum[i] * (double)sum[i];
    return square;
}

static float clip_scale(double square, double clip)
{
    const double norm = sqrt(square);
    return clip > 0 && norm > clip ? (float)(clip / norm) : 1;
}

/* ---- one chunk ---- */

typedef struct plan {
    float rate, decay, scale; /* decay: rate x weight decay */
    float correct1, correct2; /* 1 / (1 - beta^step) */
    uint64_t stream;
} plan;

static const float BETA1 = 0.9f, BETA2 = 0.95f, EPSILON = 1e-8f;

/* The update that AdamW wants, in binary32. */
static void want(sr_weights *w, const chunk *c, const plan *p, float *change)
{
    const float *g = w->gradient[0] + c->first, *value = w->value + c->first;
    float *m = w->first + c->first, *v = w->second + c->first;
    const float decay = w->tensor[c->tensor].use == SR_VECTOR ? 0 : p->decay;
    for (int64_t i = 0; i < c->count; i++) {
        const float gradient = g[i] * p->scale;
        m[i] = BETA1 * m[i] + (1 - BETA1) * gradient;
        v[i] = BETA2 * v[i] + (1 - BETA2) * (gradient * gradient);
        const float direction = (m[i] * p->correct1) / (sqrtf(v[i] * p->correct2) + EPSILON);
        change[i] = -(p->rate * direction + decay * value[i]);
    }
}

static void convert(const sr_weights *w, void *dst, const void *src, bool store, const chunk *c, uint64_t stream)
{
    const trn_format format = w->arm->weights;
    trn_error error;
    trn_convert_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_1d(store ? format : TRN_F32, dst, c->count);
    args.src = trn_tensor_1d(store ? TRN_F32 : format, (void *)(uintptr_t)src, c->count);
    args.rounding = store ? w->arm->update : TRN_NEAREST_EVEN;
    args.seed = w->seed;
    args.stream = stream;
    args.index = (uint64_t)c->within;
    args.error = &error;
    sr_must(trn_convert(&args), &error);
}

static void keep_rest(sr_weights *w, const chunk *c, const float *wanted, const float *old)
{
    for (int64_t i = 0; i < c->count; i++)
        w->rest[c->first + i] = trn_bf16_from_f32(wanted[i] - (w->value[c->first + i] - old[i]));
}

static void count_motion(sr_weights *w, const chunk *c, const float *change, const float *old, int64_t tally[2])
{
    for (int64_t i = 0; i < c->count; i++) {
        w->wanted[c->first + i] += change[i];
        tally[0] += change[i] != 0;
        tally[1] += change[i] != 0 && w->value[c->first + i] == old[i];
    }
}

static void update_chunk(sr_weights *w, const chunk *c, const plan *p, int64_t tally[2])
{
    float change[CHUNK], wanted[CHUNK], next[CHUNK], old[CHUNK];
    char *stored = (char *)w->stored + (size_t)c->first * ((size_t)trn_format_bits(w->arm->weights) / 8);
    memcpy(old, w->value + c->first, (size_t)c->count * sizeof *old);
    want(w, c, p, change);
    for (int64_t i = 0; i < c->count; i++) {
        wanted[i] = change[i] + (w->arm->kahan ? trn_bf16_to_f32(w->rest[c->first + i]) : 0.0f);
        next[i] = old[i] + wanted[i];
    }
    convert(w, stored, next, true, c, p->stream + (uint64_t)c->tensor);
    convert(w, w->value + c->first, stored, false, c, 0);
    if (w->arm->kahan) keep_rest(w, c, wanted, old);
    count_motion(w, c, change, old, tally);
}

/* ---- the step ---- */

static plan plan_step(const sr_update *how, double square)
{
    double power1 = 1, power2 = 1;
    for (int64_t i = 0; i < how->step && (power1 > 1e-30 || power2 > 1e-30); i++)
        power1 *= (double)BETA1, power2 *= (double)BETA2;
    plan p;
    p.rate = (float)how->rate;
    p.decay = (float)(how->rate * how->weight_decay);
    p.scale = clip_scale(square, how->clip);
    p.correct1 = (float)(1 / (1 - power1));
    p.correct2 = (float)(1 / (1 - power2));
    p.stream = SR_STREAM(SR_UPDATE) | (uint64_t)how->step << 24;
    return p;
}

void sr_adamw(sr_weights *w, const sr_update *how)
{
    const int64_t chunks = count_chunks(w);
    double *square = app_memory((size_t)chunks, sizeof *square), all = 0;
    int64_t updates = 0, unmoved = 0;
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic, 8)
#endif
    for (int64_t i = 0; i < chunks; i++) {
        const chunk c = chunk_at(w, i);
        square[i] = add_shards(w, &c);
    }
    for (int64_t i = 0; i < chunks; i++) all += square[i];
    free(square);
    const plan p = plan_step(how, all);
#if defined(_OPENMP)
#pragma omp parallel for schedule(dynamic, 8) reduction(+ : updates, unmoved)
#endif
    for (int64_t i = 0; i < chunks; i++) {
        const chunk c = chunk_at(w, i);
        int64_t tally[2] = { 0, 0 };
        update_chunk(w, &c, &p, tally);
        updates += tally[0];
        unmoved += tally[1];
    }
    w->updates += updates;
    w->unmoved += unmoved;
}

/* ---- what became of the updates ---- */

sr_motion sr_take_motion(sr_weights *w)
{
    sr_motion motion = { (double)w->updates, (double)w->unmoved, 0, 0 };
    for (int64_t i = 0; i < w->count; i++) {
        const double wanted = (double)w->wanted[i], moved = (double)w->value[i] - (double)w->before[i];
        motion.along += moved * wanted;
        motion.square += wanted * wanted;
    }
    memcpy(w->before, w->value, (size_t)w->count * sizeof *w->before);
    memset(w->wanted, 0, (size_t)w->count * sizeof *w->wanted);
    w->updates = w->unmoved = 0;
    return motion;
}

/* Up from 0 over the warm-up, then half a cosine down to rate x rate_end at the last step. step from 1. */
double sr_rate_at(const sr_settings *s, double rate, int64_t step)
{
    const double pi = 3.14159265358979323846;
    if (step <= s->warmup) return rate * (double)step / (double)s->warmup;
    const double way = s->steps > s->warmup ? (double)(step - s->warmup) / (double)(s->steps - s->warmup) : 1;
    return (double)(float)(rate * (s->rate_end + (1 - s->rate_end) * 0.5 * (1 + cos(pi * way))));
}
