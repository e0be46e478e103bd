/* values.c - BF16 and MX made of packed and scaled codes, whose values io/quant knows.
 * SPDX-License-Identifier: MIT
 *
 * MX on Trainium3 (trnmath/trn_mx.h): four inputs in a word, element 0 lowest, [.., inputs/4, outputs]; beside
 * them a power of two for 32 inputs of one output, [.., inputs/32, outputs]. MXFP4 keeps its codes and scales, OCP's
 * FP8 keeps them where its scale is a power of two; all else is quantised anew, to E4M3 of 448 by the instruction's
 * rule.
 */
#include "fp8conv.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_convert.h>
#include <trnmath/trn_mx.h>

enum { BAND = MXFP4_BLOCK };

/* ---- the scales that go in ---- */

bool fc_source_open(fc_catalogue *c, fc_item *w, char *why)
{
    st_tensor copy[QUANT_PARTS];
    const st_tensor *part[QUANT_PARTS] = { NULL };
    if (!w->quant || w->opened) return true;
    for (int p = QUANT_SCALE; p < QUANT_PARTS; p++) {
        const int i = fc_item_at(c, w->quant->part[p]);
        if (i < 0) continue;
        copy[p] = c->item[i].tensor;
        copy[p].data = fc_bytes(c, &c->item[i], why);
        if (!copy[p].data) return false;
        part[p] = &copy[p];
    }
    w->opened = quant_open(w->quant, part, &w->values, why);
    return w->opened;
}

void fc_source_close(fc_item *w)
{
    if (w->opened) quant_close(&w->values);
    w->opened = false;
}

/* ---- values ---- */

/* As it stands in the file: [matrices * rows, columns]. */
quant_values fc_source_of(const fc_work *w)
{
    quant_values v = w->item->values;
    quant_at(&v, w->bytes);
    return v;
}

static void decode(const quant_values *v, bool transposed, const fc_piece *p, float *x)
{
    if (!transposed) {
        for (int64_t r = 0; r < p->rows; r++) quant_run(v, p->row + r, p->column, p->columns, x + r * p->columns, 1);
        return;
    }
    for (int64_t r = 0, n; r < p->rows; r += n) { /* as much of a matrix as the piece has */
        const int64_t matrix = (p->row + r) / v->columns, from = (p->row + r) % v->columns;
        n = v->columns - from < p->rows - r ? v->columns - from : p->rows - r;
        for (int64_t k = 0; k < p->columns; k++)
            quant_run(v, matrix * v->height + p->column + k, from, n, x + r * p->columns + k, p->columns);
    }
}

void fc_decode(const fc_work *w, const fc_piece *p, float *x)
{
    const quant_values v = fc_source_of(w);
    decode(&v, w->item->transposed, p, x);
}

void fc_decode_codes(const fc_work *w, const fc_piece *p, float *x)
{
    quant_values v = fc_source_of(w);
    v.alone = true;
    decode(&v, w->item->transposed, p, x);
}

double fc_exact_at(const quant_values *v, bool transposed, int64_t row, int64_t column)
{
    const int64_t at = transposed ? row / v->columns * v->height + column : row;
    const int64_t across = transposed ? row % v->columns : column;
    const quant_factor f = quant_factor_at(v, at, across);
    return quant_product(&f, (double)v->value[quant_code_at(v, at, across)]);
}

/* ---- FP8 of codes that it holds all: the scales are the same, but that NVFP4's two become one ---- */

bool fc_scales_of_source(fc_item *w, char *why)
{
    const quant_values *v = &w->values;
    for (int64_t r = 0; r < v->rows; r++)
        for (int64_t k = 0, run; k < v->columns; k += run) {
            const quant_factor f = quant_factor_at(v, r, k);
            const double ideal = f.over == 1 ? f.scale : quant_quotient(f.scale, f.over);
            const int64_t row = w->transposed ? r / v->height * v->columns + k : r;
            const int64_t column = w->transposed ? r % v->height : k;
            const float scale = (float)ideal;
            run = f.run;
            if (!isfinite(scale)) return io_fail(why, w->tensor.name, "its scale %g cannot be held by F32", ideal);
            if (scale < 0) return io_fail(why, w->tensor.name, "its scale %g is negative: make bf16 of it", ideal);
            w->out_scale[quant_grid_group(&w->out, row, column)] = scale;
            const double error = ideal > 0 ? fabs((double)scale / ideal - 1) : 0;
            if (error > w->scale_error) w->scale_error = error;
        }
    return true;
}

/* ---- BF16 ---- */

void fc_write_bf16(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const int64_t n = p->rows * p->columns;
    float *x = fc_numbers(w, p, (size_t)n), *y = x + n;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t code = trn_bf16_from_f32(x[i]);
        out[2 * i] = (unsigned char)code;
        out[2 * i + 1] = (unsigned char)(code >> 8);
        y[i] = trn_bf16_to_f32(code);
    }
    fc_tally_pairs(tally, x, y, n);
    free(x);
}

/* ---- MX ---- */

typedef struct band {       /* 32 inputs of all outputs */
    int64_t first, columns; /* row of the view, over all matrices */
    const float *x;
    unsigned char *code, *scale; /* [32, columns], [columns] */
} band;

/* The scale of these 32 codes is a power of two that E8M0 has; its byte, or -1. */
static int power_of(const quant_values *v, int64_t row, int64_t column)
{
    int exponent;
    const quant_factor f = quant_factor_at(v, row, column);
    if (f.run < BAND || frexp(f.scale, &exponent) != 0.5 || exponent < -126 || exponent > 128) return -1;
    return exponent - 1 + 127;
}

/* Are its codes MX's own? */
static bool has_mx_codes(const fc_item *item)
{
    return item->kind == FC_IS_MXFP4 || (item->kind == FC_IS_FP8 && item->quant->codes.format == TRN_F8_E4M3FN);
}

/* Codes as they are, where their scale can be. */
static void keep_codes(const fc_work *w, const quant_values *v, const band *b)
{
    const bool turned = w->item->transposed;
    const int64_t height = turned ? v->columns : v->height;
    const int64_t matrix = b->first / height, k = b->first % height;
    if (!has_mx_codes(w->item)) return;
    for (int64_t n = 0; n < b->columns && turned; n++) {
        const int64_t row = matrix * v->height + n;
        const int power = power_of(v, row, k);
        if (power < 0) continue;
        b->scale[n] = (unsigned char)power;
        for (int64_t i = 0; i < BAND; i++) b->code[i * b->columns + n] = (unsigned char)quant_code_at(v, row, k + i);
    }
}

static void write_band(const fc_work *w, const quant_values *v, const band *b, void *words)
{
    const bool four = w->item->mx_fp4;
    const trn_format format = four ? TRN_F4_E2M1 : TRN_F8_E4M3FN;
    const int64_t m = b->columns;
    if (!four)
        trn_mx_quantize(&(trn_mx_quantize_args){ .dst = trn_tensor_2d(format, b->code, BAND, m),
                                                 .dst_scale = trn_tensor_2d(TRN_U8, b->scale, 1, m),
                                                 .src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)b->x, BAND, m),
                                                 .axis = -2 });
    keep_codes(w, v, b);
    trn_mx_to_sbuf(&(trn_mx_sbuf_args){ .words = trn_tensor_2d(four ? TRN_U16 : TRN_U32, words, BAND / 4, m),
                                        .codes = trn_tensor_2d(format, b->code, BAND, m) });
}

/* MXFP4 is what it was, also where binary32 has no number for it. */
static void tally_band(const fc_work *w, const band *b, float *y, fc_tally *tally)
{
    const float *eight = fc_values(TRN_F8_E4M3FN);
    const bool same = w->item->mx_fp4;
    for (int64_t i = 0; i < BAND * b->columns && !same; i++)
        y[i] = eight[b->code[i]] * mxfp4_power(b->scale[i % b->columns]);
    fc_tally_pairs(tally, b->x, same ? b->x : y, BAND * b->columns);
}

/* Pieces are whole bands. */
void fc_write_mx(const fc_work *w, const fc_piece *p, unsigned char *out, fc_tally *tally)
{
    const quant_values v = fc_source_of(w);
    const int64_t n = BAND * p->columns, word = w->item->mx_fp4 ? 2 : 4;
    float *x = fc_numbers(w, p, (size_t)(p->rows * p->columns)), *y = x + p->rows * p->columns;
    unsigned char *code = app_memory((size_t)n + 1, 1);
    for (int64_t r = 0; r < p->rows; r += BAND) {
        unsigned char *scale = w->item->mx_scale + (p->row + r) / BAND * p->columns;
        const band b = { p->row + r, p->columns, x + r * p->columns, code, scale };
        write_band(w, &v, &b, out + r / 4 * p->columns * word);
        tally_band(w, &b, y, tally);
    }
    free(code);
    free(x);
}
