/* values.c - what packed and scaled codes are worth, and BF16 and MX made from them.
 * SPDX-License-Identifier: MIT
 *
 * A value is code times scale, in binary64: exact but for the quotient by NVFP4's divisor. It becomes binary32 cut
 * off, with its last bit set where something was lost ("round to odd"): BF16, FP8 and MX, which hold less, round that
 * as they would the value itself.
 *
 * MX on Trainium3 (trnmath/trn_mx_layout.h): four inputs in a word, element 0 lowest, [.., inputs/4, outputs]; beside
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
#include <trnmath/trn_mx_layout.h>

#include "io/mxfp4.h"

enum { BAND = MXFP4_BLOCK, NVFP4_BLOCK = 16 };

/* ---- the scales that go in ---- */

static bool copy_scales(fc_catalogue *c, fc_item *w, char *why)
{
    const fc_item *s = &c->item[w->old_scale];
    const size_t n = (size_t)s->tensor.elements;
    const unsigned char *bytes = fc_bytes(c, s, why);
    if (!bytes) return false;
    w->raw_scale = malloc(n + 1);
    if (!w->raw_scale) return io_fail(why, s->tensor.name, "there is not enough memory for its scales");
    memcpy(w->raw_scale, bytes, n);
    for (size_t i = 0; i < n; i++) {
        const bool good = w->kind == FC_IS_MXFP4 ? bytes[i] != MXFP4_NAN : bytes[i] < 0x7f;
        if (!good)
            return io_fail(why, s->tensor.name, "scale %lld is %s; expected a number that is not negative",
                           (long long)i, w->kind == FC_IS_MXFP4 || (bytes[i] & 0x7f) == 0x7f ? "NaN" : "negative");
    }
    return true;
}

static bool read_second(fc_catalogue *c, fc_item *w, char *why)
{
    const fc_item *s = &c->item[w->second_scale];
    const unsigned char *bytes = fc_bytes(c, s, why);
    if (!bytes) return false;
    w->seconds = s->tensor.elements;
    w->second = malloc(((size_t)w->seconds + 1) * sizeof *w->second);
    if (!w->second) return io_fail(why, s->tensor.name, "there is not enough memory for its scales");
    for (int64_t i = 0; i < w->seconds; i++) {
        w->second[i] = (double)io_float(io_little32(bytes + 4 * i));
        if (!isfinite(w->second[i]) || w->second[i] < 0 || (w->divides && w->second[i] == 0))
            return io_fail(why, s->tensor.name, "it is %g; expected a number that is finite and %s", w->second[i],
                           w->divides ? "positive" : "not negative");
    }
    return true;
}

bool fc_source_open(fc_catalogue *c, fc_item *w, char *why)
{
    if (w->old_scale < 0 || w->in_scale || w->raw_scale) return true;
    if (w->kind == FC_IS_FP8 || w->kind == FC_IS_NUMBERS)
        return fc_scale_read(c, &c->item[w->old_scale], &w->in_scale, why);
    return copy_scales(c, w, why) && (w->second_scale < 0 || read_second(c, w, why));
}

void fc_source_close(fc_item *w)
{
    free(w->in_scale);
    free(w->raw_scale);
    free(w->second);
    w->in_scale = NULL;
    w->raw_scale = NULL;
    w->second = NULL;
}

/* ---- values ---- */

typedef struct stored { /* as it stands in the file: [matrices * rows, columns] */
    const fc_item *item;
    const unsigned char *bytes;
    int64_t rows, columns;
    float value[256];
    bool alone; /* codes without their scales */
} stored;

static stored stored_of(const fc_work *w)
{
    const fc_item *item = w->item;
    const st_tensor *v = &item->view;
    const int64_t a = v->rank >= 2 ? v->shape[v->rank - 2] : 1, b = v->rank >= 1 ? v->shape[v->rank - 1] : 1;
    stored s = { .item = item, .bytes = w->bytes, .rows = item->transposed ? b : a,
                 .columns = item->transposed ? a : b };
    const float *eight = fc_values(fc_format_of(item->side));
    for (int i = 0; i < 256; i++) s.value[i] = item->kind == FC_IS_FP8 ? eight[i] : mxfp4_value(i);
    return s;
}

static int code_at(const stored *s, int64_t row, int64_t column)
{
    const int64_t at = row * s->columns + column;
    if (s->item->kind == FC_IS_FP8) return s->bytes[at];
    return at % 2 ? s->bytes[at / 2] >> 4 : s->bytes[at / 2] & 15;
}

/* *run: so many more columns have it, too. */
static double scale_of(const stored *s, int64_t row, int64_t column, int64_t *run)
{
    const fc_item *w = s->item;
    const int64_t block = w->kind == FC_IS_NVFP4 ? NVFP4_BLOCK : MXFP4_BLOCK;
    if (s->alone) return *run = s->columns - column, 1;
    if (w->kind == FC_IS_FP8) {
        *run = fc_grid_columns_left(&w->source, column);
        return (double)fc_scale_at(w->in_scale, fc_grid_group(&w->source, row, column));
    }
    const int byte = w->raw_scale[row * (s->columns / block) + column / block];
    *run = block - column % block;
    if (w->kind == FC_IS_MXFP4) return ldexp(1, byte - 127);
    const double first = (double)fc_values(TRN_F8_E4M3FN)[byte], second = w->second[w->seconds > 1 ? row / s->rows : 0];
    return w->divides ? first / second : first * second;
}

/* Cut off, and odd where something was lost. */
static float odd(double v)
{
    const float f = (float)v;
    if ((double)f == v || isnan(v) || isinf(v)) return f;
    const uint32_t bits = io_bits(f) - (fabs((double)f) > fabs(v));
    return io_float(bits | 1);
}

/* x[0], x[step], ... = stored elements along a row. */
static void decode_run(const stored *s, int64_t row, int64_t column, int64_t n, float *x, int64_t step)
{
    while (n > 0) {
        int64_t run;
        const double scale = scale_of(s, row, column, &run);
        run = run < n ? run : n;
        for (int64_t i = 0; i < run; i++, x += step) *x = odd((double)s->value[code_at(s, row, column + i)] * scale);
        column += run;
        n -= run;
    }
}

static void decode(const stored *s, const fc_piece *p, float *x)
{
    if (!s->item->transposed) {
        for (int64_t r = 0; r < p->rows; r++) decode_run(s, p->row + r, p->column, p->columns, x + r * p->columns, 1);
        return;
    }
    for (int64_t r = 0, n; r < p->rows; r += n) { /* as much of a matrix as the piece has */
        const int64_t matrix = (p->row + r) / s->columns, from = (p->row + r) % s->columns;
        n = s->columns - from < p->rows - r ? s->columns - from : p->rows - r;
        for (int64_t k = 0; k < p->columns; k++)
            decode_run(s, matrix * s->rows + p->column + k, from, n, x + r * p->columns + k, p->columns);
    }
}

void fc_decode(const fc_work *w, const fc_piece *p, float *x)
{
    const stored s = stored_of(w);
    decode(&s, p, x);
}

void fc_decode_codes(const fc_work *w, const fc_piece *p, float *x)
{
    stored s = stored_of(w);
    s.alone = true;
    decode(&s, p, x);
}

/* ---- FP8 of codes that it holds all: the scales are the same, but that NVFP4's two become one ---- */

bool fc_scales_of_source(fc_item *w, char *why)
{
    const fc_work work = { .item = w };
    const stored s = stored_of(&work);
    const int64_t block = w->kind == FC_IS_NVFP4 ? NVFP4_BLOCK : MXFP4_BLOCK;
    const int64_t rows = s.columns ? w->view.elements / s.columns : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0, run; k < s.columns; k += block) {
            const double ideal = scale_of(&s, r, k, &run);
            const int64_t row = w->transposed ? r / s.rows * s.columns + k : r, column = w->transposed ? r % s.rows : k;
            const float scale = (float)ideal;
            if (!isfinite(scale)) return io_fail(why, w->tensor.name, "its scale %g cannot be held by F32", ideal);
            w->out_scale[fc_grid_group(&w->out, row, column)] = scale;
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

typedef struct band { /* 32 inputs of all outputs */
    int64_t first, columns; /* row of the view, over all matrices */
    const float *x;
    unsigned char *code, *scale; /* [32, columns], [columns] */
} band;

/* The scale of these 32 codes is a power of two that E8M0 has; its byte, or -1. */
static int power_of(const stored *s, int64_t row, int64_t column)
{
    int64_t run;
    int exponent;
    const double scale = scale_of(s, row, column, &run);
    if (run < BAND || frexp(scale, &exponent) != 0.5 || exponent < -126 || exponent > 128) return -1;
    return exponent - 1 + 127;
}

/* Codes as they are, where their scale can be. */
static void keep_codes(const fc_work *w, const stored *s, const band *b)
{
    const fc_item *item = w->item;
    const bool turned = item->transposed;
    const int64_t height = turned ? s->columns : s->rows;
    const int64_t matrix = b->first / height, k = b->first % height;
    if (item->kind == FC_IS_NVFP4 || (item->kind == FC_IS_FP8 && item->side != FC_OCP)) return;
    for (int64_t n = 0; n < b->columns && turned; n++) {
        const int64_t row = matrix * s->rows + n;
        const int power = power_of(s, row, k);
        if (power < 0) continue;
        b->scale[n] = (unsigned char)power;
        for (int64_t i = 0; i < BAND; i++) b->code[i * b->columns + n] = (unsigned char)code_at(s, row, k + i);
    }
}

static void write_band(const fc_work *w, const stored *s, const band *b, void *words)
{
    const bool four = w->item->mx_fp4;
    const trn_format format = four ? TRN_F4_E2M1 : TRN_F8_E4M3FN;
    const int64_t m = b->columns;
    if (!four)
        trn_mx_quantize(&(trn_mx_quantize_args){ .dst = trn_tensor_2d(format, b->code, BAND, m),
                                                 .dst_scale = trn_tensor_2d(TRN_U8, b->scale, 1, m),
                                                 .src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)b->x, BAND, m),
                                                 .axis = -2 });
    keep_codes(w, s, b);
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
    const stored s = stored_of(w);
    const int64_t n = BAND * p->columns, word = w->item->mx_fp4 ? 2 : 4;
    float *x = fc_numbers(w, p, (size_t)(p->rows * p->columns)), *y = x + p->rows * p->columns;
    unsigned char *code = app_memory((size_t)n + 1, 1);
    for (int64_t r = 0; r < p->rows; r += BAND) {
        unsigned char *scale = w->item->mx_scale + (p->row + r) / BAND * p->columns;
        const band b = { p->row + r, p->columns, x + r * p->columns, code, scale };
        write_band(w, &s, &b, out + r / 4 * p->columns * word);
        tally_band(w, &b, y, tally);
    }
    free(code);
    free(x);
}
