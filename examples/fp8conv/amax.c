/* amax.c - the largest finite magnitude of each group: what fresh scales are made from.
 * SPDX-License-Identifier: MIT
 */
#include "fp8conv.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Several threads may meet in a group. */
static void raise_amax(float *amax, float value)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    if (value > *amax) *amax = value;
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
        raise_amax((float *)w->user + t.out, largest * fc_scale_at(w->item->in_scale, t.in));
    }
}

/* Magnitudes of binary32 numbers are in the order of their bits. */
static float largest_number(const float *x, int64_t n)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        if (bits < 0x7f800000 && bits > largest) largest = bits;
    }
    float amax;
    memcpy(&amax, &largest, sizeof amax);
    return amax;
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
        raise_amax((float *)w->user + t.out, largest);
    }
    free(x);
}

bool fc_find_amax(fc_catalogue *c, int item, float *amax, char *why)
{
    fc_work work = { .item = &c->item[item], .user = amax };
    work.run = work.item->role == FC_NUMBERS ? amax_of_numbers : amax_of_codes;
    return fc_run_pieces(c, &work, why);
}
