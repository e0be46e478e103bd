/* quantise.c - a piece of a tensor there and back, and what is lost: squares, relative errors, zeros, saturation.
 * SPDX-License-Identifier: MIT
 *
 * Codes are trnmath's, scales of the grain that was asked for. To measure, a block of 32 is brought to the size of 1 by
 * a power of two first, so that squares of binary32 neither overflow nor vanish; its sums are trees of 16, 8, 4, 2, 1
 * additions and do not depend on anything but its values.
 */
#include "mxq.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "io/io.h"

/* ---- scales ---- */

/* What shares a scale with the block: amax over it, before anything is quantised. */
static float shared_amax(mxq_grain grain, const mxq_source *s, const mxq_facts *facts, int64_t row, int64_t column)
{
    const int64_t across = (s->columns + MXQ_SQUARE - 1) / MXQ_SQUARE;
    if (grain == MXQ_CHANNEL) return facts->row_amax[row];
    if (grain == MXQ_GRID) return facts->grid_amax[row / MXQ_SQUARE * across + column / MXQ_SQUARE];
    return (float)facts->amax;
}

/* The largest value becomes the largest number: scale = amax / max, rounded once. */
static float scale_of(const mxq_way *way, float amax)
{
    const float scale = amax / (float)way->model.max;
    if (way->grain == MXQ_NO_SCALE || !(amax > 0)) return 1;
    return scale > 0 ? scale : FLT_TRUE_MIN;
}

void mxq_scales(const mxq_way *way, const mxq_source *s, const mxq_place *at, const mxq_facts *facts, mxq_piece *p)
{
    int b = 0;
    for (int64_t r = 0; r < at->rows; r++)
        for (int64_t c = 0; c < at->columns; c += TRN_MX_BLOCK, b++) {
            const bool scaled = way->kind == MXQ_SCALED;
            p->best_amax[b] = scaled ? shared_amax(way->grain, s, facts, at->row + r, at->column + c) : p->amax[b];
            p->scale[b] = scaled ? scale_of(way, p->best_amax[b]) : 1;
        }
}

/* ---- there and back ---- */

/* Views and formats are the program's own: a refusal would be a mistake in it. */
static void expect(trn_status status, const trn_error *error)
{
    if (status == TRN_OK) return;
    fprintf(stderr, "%s: %s\n", app_name, error->text);
    abort();
}

static trn_tensor codes_of(const mxq_way *way, mxq_piece *p)
{
    trn_tensor t = trn_tensor_1d(way->format, p->code, p->n);
    t.cfp8 = way->cfp8;
    return t;
}

static void convert(const mxq_way *way, const mxq_job *job, mxq_piece *p, float *from)
{
    trn_error error;
    const trn_tensor codes = codes_of(way, p);
    expect(trn_convert(&(trn_convert_args){ .dst = codes,
                                            .src = trn_tensor_1d(TRN_F32, from, p->n),
                                            .rounding = way->rounding,
                                            .overflow = TRN_SATURATE,
                                            .seed = job->seed,
                                            .stream = 2,
                                            .index = p->index,
                                            .sr_bits = job->sr_bits,
                                            .error = &error }),
           &error);
    expect(trn_convert(&(trn_convert_args){ .dst = trn_tensor_1d(TRN_F32, p->y, p->n), .src = codes, .error = &error }),
           &error);
}

static void cast(const mxq_way *way, const mxq_job *job, mxq_piece *p) { convert(way, job, p, p->x); }

static void scaled(const mxq_way *way, const mxq_job *job, mxq_piece *p)
{
    for (int64_t b = 0; b < p->n / TRN_MX_BLOCK; b++) {
        const float scale = p->scale[b];
        const float *restrict x = p->x + b * TRN_MX_BLOCK;
        float *restrict y = p->y + b * TRN_MX_BLOCK;
        for (int i = 0; i < TRN_MX_BLOCK; i++) y[i] = x[i] / scale;
    }
    convert(way, job, p, p->y);
    for (int64_t b = 0; b < p->n / TRN_MX_BLOCK; b++) {
        const float scale = p->scale[b];
        float *y = p->y + b * TRN_MX_BLOCK;
        for (int i = 0; i < TRN_MX_BLOCK; i++) y[i] *= scale;
    }
}

static void mx(const mxq_way *way, const mxq_job *job, mxq_piece *p)
{
    trn_error error;
    const trn_tensor codes = codes_of(way, p), scales = trn_tensor_1d(TRN_F8_E8M0, p->scale_code, p->n / TRN_MX_BLOCK);
    expect(trn_mx_quantize(&(trn_mx_quantize_args){ .dst = codes,
                                                    .dst_scale = scales,
                                                    .src = trn_tensor_1d(TRN_F32, p->x, p->n),
                                                    .scale = way->rule,
                                                    .rounding = way->rounding,
                                                    .seed = job->seed,
                                                    .stream = 2,
                                                    .index = p->index,
                                                    .sr_bits = job->sr_bits,
                                                    .error = &error }),
           &error);
    expect(trn_mx_dequantize(&(trn_mx_dequantize_args){
               .dst = trn_tensor_1d(TRN_F32, p->y, p->n), .src = codes, .src_scale = scales, .error = &error }),
           &error);
    for (int64_t b = 0; b < p->n / TRN_MX_BLOCK; b++) p->scale[b] = trn_decode(TRN_F8_E8M0, p->scale_code[b]);
}

void mxq_quantise(const mxq_way *way, const mxq_job *job, mxq_piece *p)
{
    static void (*const how[])(const mxq_way *, const mxq_job *, mxq_piece *) = { cast, scaled, mx };
    how[way->kind](way, job, p);
}

/* ---- what is lost in blocks of 32 ---- */

enum { B = TRN_MX_BLOCK };

static float sum(float *restrict v)
{
    for (int i = 0; i < 16; i++) v[i] += v[i + 16];
    for (int i = 0; i < 8; i++) v[i] += v[i + 8];
    for (int i = 0; i < 4; i++) v[i] += v[i + 4];
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static int32_t count(int32_t *restrict v)
{
    for (int i = 0; i < 16; i++) v[i] += v[i + 16];
    for (int i = 0; i < 8; i++) v[i] += v[i + 8];
    for (int i = 0; i < 4; i++) v[i] += v[i + 4];
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static float most(float *restrict v)
{
    for (int i = 0; i < 16; i++) v[i] = v[i] > v[i + 16] ? v[i] : v[i + 16];
    for (int i = 0; i < 8; i++) v[i] = v[i] > v[i + 8] ? v[i] : v[i + 8];
    for (int i = 0; i < 4; i++) v[i] = v[i] > v[i + 4] ? v[i] : v[i + 4];
    const float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}

/* ---- the values themselves ---- */

/* 1 over the power of two at amax, a normal number itself. */
static float unit_of(float amax)
{
    const uint32_t exponent = io_bits(amax) >> 23;
    return io_float((254 - (exponent < 1 ? 1 : exponent > 253 ? 253 : exponent)) << 23);
}

static int crest_bin(float crest)
{
    const float share = (crest - 1) / (sqrtf(B) - 1);
    return share < 0 ? 0 : share >= 1 ? MXQ_CRESTS - 1 : (int)(share * MXQ_CRESTS);
}

double mxq_crest_of_bin(double bin) { return 1 + bin * (sqrt(B) - 1) / MXQ_CRESTS; }

void mxq_look(mxq_piece *p, int64_t *nonzero, double *energy, double *total)
{
    for (int64_t b = 0; b < p->n / B; b++) {
        const float *restrict x = p->x + b * B;
        float magnitude[B], square[B], value[B];
        int32_t some[B];
        for (int i = 0; i < B; i++) {
            magnitude[i] = fabsf(x[i]);
            some[i] = magnitude[i] > 0;
        }
        p->amax[b] = most(magnitude);
        const float unit = p->unit[b] = unit_of(p->amax[b]);
        for (int i = 0; i < B; i++) {
            value[i] = x[i] * unit;
            square[i] = value[i] * value[i];
        }
        p->energy[b] = sum(square);
        p->nonzero[b] = count(some);
        p->crest[b] = p->nonzero[b] ? crest_bin(p->amax[b] * unit / sqrtf(p->energy[b] / (float)p->real[b])) : -1;
        *nonzero += p->nonzero[b];
        *energy += (double)p->energy[b] / ((double)unit * (double)unit);
        *total += (double)sum(value) / (double)unit;
    }
}

/* ---- errors ---- */

/* Of a format in units of a block. */
typedef struct limits {
    float max, normal, lost, back; /* back: to the format's own units */
} limits;

typedef struct parts { /* of one block */
    float noise, binades, lost, relative, relative_max,
        absolute_max; /* binades: squares of powers of two below values */
    int32_t below, to_zero, saturated;
} parts;

/* x where the condition holds, else +0. Not a branch, nor what a compiler could make one of: the loop below is one of
 * vectors. Magnitudes are compared as integers for the same reason. */
static float where(bool condition, float x) { return io_float(io_bits(x) & (0u - (uint32_t)condition)); }

static int32_t magnitude_of(float x) { return (int32_t)(io_bits(x) & 0x7fffffffu); }

static parts compare(const float *restrict x, const float *restrict y, float unit, limits l)
{
    float noise[B], binade[B], lost[B], relative[B], most_relative[B], absolute[B];
    int32_t below[B], to_zero[B], saturated[B];
    const int32_t normal_from = magnitude_of(l.normal), lost_from = magnitude_of(l.lost), most_at = magnitude_of(l.max);
    for (int i = 0; i < B; i++) {
        const float v = x[i] * unit, w = y[i] * unit, error = fabsf(w - v);
        const int32_t size = magnitude_of(v);
        const float power = io_float(io_bits(fabsf(v) * l.back) & 0x7f800000u);
        const float ratio = error / io_float((uint32_t)(size + (size == 0) * 0x3f800000)); /* 0 becomes 0 */
        noise[i] = error * error;
        binade[i] = where(size >= normal_from, power * power);
        lost[i] = where(size < lost_from, v * v);
        below[i] = (size < normal_from) & (size >= lost_from) & (size > 0);
        relative[i] = most_relative[i] = ratio;
        absolute[i] = error;
        to_zero[i] = (size > 0) & (magnitude_of(w) == 0);
        saturated[i] = size > most_at;
    }
    return (parts){ sum(noise),     sum(binade),  sum(lost),      sum(relative),   most(most_relative),
                    most(absolute), count(below), count(to_zero), count(saturated) };
}

/* Bins begin at powers of two and half way between: 1 and 1.5 times 2^k. The last ones hold what is 1 and more, 1.5 and
 * more; the first one what is exact, or nearly so. */
static void add_errors(const float *x, const float *y, int64_t *errors)
{
    for (int i = 0; i < B; i++) {
        const float size = fabsf(x[i]);
        if (!(size > 0)) continue;
        const int bin = (int)(io_bits(fabsf(y[i] - x[i]) / size) >> 22) - 2 * 127 + MXQ_ERRORS - 2;
        errors[bin < 0 ? 0 : bin >= MXQ_ERRORS ? MXQ_ERRORS - 1 : bin]++;
    }
}

void mxq_measure(const mxq_way *way, const mxq_piece *p, bool histogram, mxq_sums *s, mxq_bins *bins)
{
    const mxq_model *m = &way->model;
    for (int64_t b = 0; b < p->n / B; b++) {
        if (!p->nonzero[b]) continue;
        const float *x = p->x + b * B, *y = p->y + b * B, unit = p->unit[b];
        const double scale = (double)p->scale[b] * (double)unit, back = 1 / ((double)unit * (double)unit);
        const double edge = m->max * scale * (1 + 0x1p-20); /* a scale that was rounded saturates nothing */
        const limits l = { (float)edge, (float)(m->normal * scale), (float)(m->lost * scale), (float)(1 / scale) };
        const parts e = compare(x, y, unit, l);
        const double coarse = 2 * m->alpha * (double)e.binades * scale * scale, step = m->step * scale;
        const double best = (double)p->best_amax[b] / 127;
        s->noise += back * (double)e.noise;
        bins->crest_noise[p->crest[b]] += back * (double)e.noise;
        s->theory += back * (m->twice * (coarse + e.below * step * step / 12) + (double)e.lost);
        s->ideal += m->twice * p->nonzero[b] * best * best / 12;
        s->relative += (double)e.relative;
        s->relative_max = fmaxf(s->relative_max, e.relative_max);
        s->absolute_max = fmaxf(s->absolute_max, e.absolute_max / unit);
        s->to_zero += e.to_zero;
        s->saturated += e.saturated;
        if (histogram) add_errors(x, y, bins->errors);
    }
}
