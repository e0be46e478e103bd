/* chance.h - the tool "chance": one number rounded stochastically many times, counted.
 * SPDX-License-Identifier: MIT
 *
 *     chance?x=0.1&format=bfloat16&seed=1&draws=4096&bits=32&group=16
 *
 * Two histograms: how often x became each of the numbers beside it; and the means of groups of draws, which gather
 * round x, while nearest even always gives the same neighbour.
 */
#ifndef WEB_CHANCE_H
#define WEB_CHANCE_H

#include <trnmath/trn_convert.h>

#include "choices.h"

enum { CHANCE_DRAWS = 65536, CHANCE_BINS = 33, CHANCE_VALUES = 4 };

typedef struct chance_ask {
    float x;
    trn_format format;
    int64_t seed, draws, bits, group;
} chance_ask;

/* What came out, in the order of values. */
typedef struct tally {
    int values;
    double value[CHANCE_VALUES];
    int64_t count[CHANCE_VALUES];
} tally;

static void tally_add(tally *t, double value)
{
    int at = 0;
    while (at < t->values && t->value[at] < value) at++;
    if (at < t->values && !(value < t->value[at]) && !(value > t->value[at])) {
        t->count[at]++;
        return;
    }
    if (t->values == CHANCE_VALUES) return; /* there are at most two, one of them perhaps infinite */
    for (int i = t->values++; i > at; i--) {
        t->value[i] = t->value[i - 1];
        t->count[i] = t->count[i - 1];
    }
    t->value[at] = value;
    t->count[at] = 1;
}

static bool draw(const chance_ask *c, float *drawn, trn_error *why)
{
    trn_convert_args args = { 0 };
    uint32_t *codes = (uint32_t *)malloc(sizeof *codes * (size_t)c->draws);
    if (!codes) return refuse(why, "there is not enough memory for %lld draws", (long long)c->draws);
    for (int64_t i = 0; i < c->draws; i++) drawn[i] = c->x;
    args.src = trn_tensor_1d(TRN_F32, drawn, c->draws);
    args.dst = trn_tensor_1d(c->format, codes, c->draws);
    args.rounding = TRN_STOCHASTIC;
    args.seed = (uint64_t)c->seed;
    args.sr_bits = (int)c->bits;
    args.error = why;
    trn_status status = trn_convert(&args);
    args.src = args.dst;
    args.dst = trn_tensor_1d(TRN_F32, drawn, c->draws);
    args.rounding = TRN_NEAREST_EVEN;
    if (status == TRN_OK) status = trn_convert(&args);
    free(codes);
    return status == TRN_OK;
}

/* Means of groups: a bin for each that there can be, up to CHANCE_BINS, whose middles reach from `low` to `high`. */
static void put_means(answer *a, const chance_ask *c, const float *drawn, double low, double high)
{
    int64_t bin[CHANCE_BINS] = { 0 };
    const int bins = c->group < CHANCE_BINS ? (int)c->group + 1 : CHANCE_BINS;
    for (int64_t g = 0; g + c->group <= c->draws; g += c->group) {
        double sum = 0;
        for (int64_t i = 0; i < c->group; i++) sum += (double)drawn[g + i];
        const double share = (sum / (double)c->group - low) / (high - low);
        bin[(int)floor(fmin(fmax(share, 0), 1) * (bins - 1) + 0.5)]++;
    }
    put_open(a, "bins", '[');
    for (int i = 0; i < bins; i++) put_whole(a, NULL, bin[i]);
    put_close(a, ']');
}

static void put_chance(answer *a, const chance_ask *c, const float *drawn)
{
    tally t = { 0 };
    double sum = 0;
    for (int64_t i = 0; i < c->draws; i++) {
        tally_add(&t, (double)drawn[i]);
        sum += (double)drawn[i];
    }
    const double low = t.value[0], high = t.value[t.values - 1];
    const uint32_t even = trn_encode(c->format, c->x, TRN_NEAREST_EVEN, TRN_OVERFLOW_DEFAULT, 0);
    put_shown(a, "x", (double)c->x);
    put_text(a, "format", trn_format_name(c->format));
    put_whole(a, "draws", c->draws);
    put_whole(a, "group", c->group);
    put_open(a, "outcomes", '[');
    for (int i = 0; i < t.values; i++) {
        put_open(a, NULL, '{');
        put_shown(a, "value", t.value[i]);
        put_whole(a, "count", t.count[i]);
        put_close(a, '}');
    }
    put_close(a, ']');
    put_shown(a, "mean", sum / (double)c->draws);
    put_shown(a, "nearest", (double)trn_decode(c->format, even));
    put_shown(a, "mean_error", sum / (double)c->draws - (double)c->x);
    put_shown(a, "nearest_error", (double)trn_decode(c->format, even) - (double)c->x);
    if (t.values < 2 || !(high - low < INFINITY)) return; /* it was exact, or out of range */
    put_number(a, "share", ((double)c->x - low) / (high - low));
    put_means(a, c, drawn, low, high);
}

static bool chance(const ask *q, answer *a, trn_error *why)
{
    chance_ask c;
    if (!ask_knows(q, "x format seed draws bits group", why) || !ask_float(q, "x", "0.1", &c.x, why) ||
        !ask_format(q, "format", "bfloat16", &c.format, why) || !ask_whole(q, "seed", 1, 0, INT64_MAX, &c.seed, why) ||
        !ask_whole(q, "draws", 4096, 1, CHANCE_DRAWS, &c.draws, why) ||
        !ask_whole(q, "bits", 32, 1, 32, &c.bits, why) || !ask_whole(q, "group", 16, 1, c.draws, &c.group, why))
        return false;
    if (c.x != c.x) return refuse(why, "x is not a number, and there is nothing to round");
    float *drawn = (float *)malloc(sizeof *drawn * (size_t)c.draws);
    if (!drawn) return refuse(why, "there is not enough memory for %lld draws", (long long)c.draws);
    const bool ok = draw(&c, drawn, why);
    if (ok) put_chance(a, &c, drawn);
    free(drawn);
    return ok;
}

#endif /* WEB_CHANCE_H */
