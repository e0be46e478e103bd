/* synthetic.h - examples that the program makes itself: a function of the seed.
 * SPDX-License-Identifier: MIT
 */
#ifndef SRLAB_SYNTHETIC_H
#define SRLAB_SYNTHETIC_H

#include "srlab.h"

typedef struct sr_examples {
    int features, classes;
    int64_t train, valid; /* the first, and those after them */
    float *x;             /* [train + valid, features] */
    int *label;
} sr_examples;

/* Normal features; the label is drawn with the probability that a hidden line through them gives it. */
sr_examples *sr_make_noisy_line(const sr_settings *s);
/* Points in the plane, on as many arms of a spiral as there are classes, with noise. */
sr_examples *sr_make_spirals(const sr_settings *s);
void sr_free_examples(const void *examples);

#endif /* SRLAB_SYNTHETIC_H */
