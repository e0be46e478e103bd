/* quantise.c - a piece of a tensor there and back: codes by trnmath, scales of the grain that was asked for.
 * SPDX-License-Identifier: MIT
 */
#include "mxq.h"

#include <float.h>
#include <stdlib.h>

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
