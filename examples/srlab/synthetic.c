/* synthetic.c - examples for the dense models.
 * SPDX-License-Identifier: MIT
 */
#include "synthetic.h"

#include <math.h>
#include <stdlib.h>

static double uniform(const sr_settings *s, uint64_t stream, uint64_t index)
{
    return 0x1p-32 * trn_random_u32(s->seed, SR_STREAM(SR_DATA) | stream, index);
}

/* Nearly normal, and the same on every host: the sum of twelve uniform numbers, less six. */
static double normal(const sr_settings *s, uint64_t stream, uint64_t index)
{
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++) sum += uniform(s, stream, 12 * index + i);
    return sum;
}

static sr_examples *start(const sr_settings *s, int features, int classes)
{
    sr_examples *e = sr_room(1, sizeof *e);
    e->features = features;
    e->classes = classes;
    e->train = s->examples;
    e->valid = s->examples / 4;
    e->x = sr_room((size_t)(e->train + e->valid) * (size_t)features, sizeof *e->x);
    e->label = sr_room((size_t)(e->train + e->valid), sizeof *e->label);
    return e;
}

sr_examples *sr_make_noisy_line(const sr_settings *s)
{
    sr_examples *e = start(s, s->features, 2);
    const double scale = 3 / sqrt((double)s->features);
    for (int64_t i = 0; i < e->train + e->valid; i++) {
        double along = 0;
        for (int j = 0; j < s->features; j++) {
            const double x = normal(s, 0, (uint64_t)(i * s->features + j));
            e->x[i * s->features + j] = (float)x;
            along += x * scale * normal(s, 1, (uint64_t)j);
        }
        e->label[i] = uniform(s, 2, (uint64_t)i) < 1 / (1 + exp(-along));
    }
    return e;
}

sr_examples *sr_make_spirals(const sr_settings *s)
{
    sr_examples *e = start(s, 2, s->classes);
    for (int64_t i = 0; i < e->train + e->valid; i++) {
        const int arm = (int)(i % s->classes);
        const double way = uniform(s, 0, (uint64_t)i), radius = 0.1 + 1.9 * way;
        const double angle = 6.283185307179586 * (way + (double)arm / s->classes) + 3 * way;
        e->x[2 * i] = (float)(radius * cos(angle) + 0.08 * normal(s, 1, (uint64_t)i));
        e->x[2 * i + 1] = (float)(radius * sin(angle) + 0.08 * normal(s, 2, (uint64_t)i));
        e->label[i] = arm;
    }
    return e;
}

void sr_free_examples(const void *examples)
{
    sr_examples *e = (sr_examples *)(uintptr_t)examples;
    free(e->x);
    free(e->label);
    free(e);
}
