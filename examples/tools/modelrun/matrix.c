/* matrix.c - a weight as a setting has it: rounded to BF16, FP8 with a scale for each row, MX, or where it stands.
 * SPDX-License-Identifier: MIT
 */
#include "engine.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_convert.h>
#include <trnmath/trn_matmul.h>
#include <trnmath/trn_mx.h>

#include "fp8conv/fp8conv.h"

enum { PIECE = 32 }; /* rows that are decoded at a time */

static int64_t padded(int64_t n) { return (n + TRN_MX_BLOCK - 1) / TRN_MX_BLOCK * TRN_MX_BLOCK; }

/* ---- numbers of 16 or 32 bits ---- */

static void convert(trn_format format, const float *x, int64_t n, void *out)
{
    trn_error error;
    trn_convert_args a = { .dst = trn_tensor_1d(format, out, n), .error = &error };
    a.src = trn_tensor_1d(TRN_F32, (void *)(uintptr_t)x, n);
    mr_must(trn_convert(&a), &error);
}

static bool stands(const mr_weight *w, trn_format format)
{
    return !w->codes && w->tensor->format == format && (uintptr_t)w->tensor->data % trn_format_bytes(format) == 0;
}

/* One after the other: a turned matrix costs nothing more, and the next one is decoded while this one is not needed. */
static void make_plain(const mr_run *run, const mr_weight *w, mr_matrix *m)
{
    const trn_format format = run->setting.act;
    if (stands(w, format)) {
        m->b = trn_tensor_transposed(mr_view(w));
        return;
    }
    const size_t bytes = trn_format_bytes(format);
    float *piece = app_memory((size_t)(PIECE * w->columns), sizeof *piece);
    m->memory = app_memory((size_t)(w->rows * w->columns), bytes);
    m->b = trn_tensor_transposed(trn_tensor_2d(format, m->memory, w->rows, w->columns));
    for (int64_t o = 0; o < w->rows; o += PIECE) {
        const int64_t count = w->rows - o < PIECE ? w->rows - o : PIECE;
        mr_decode(w, o, count, piece);
        convert(format, piece, count * w->columns, (char *)m->memory + (size_t)(o * w->columns) * bytes);
    }
    free(piece);
}

/* ---- FP8 ---- */

static float largest(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* As a checkpoint for GPUs has it: its own codes, or a scale for the row and codes up to 448. */
static trn_format codes_of_row(const mr_weight *w, int64_t o, const float *x, unsigned char *code, float *scale)
{
    const int64_t n = w->columns;
    const unsigned char *own = mr_codes_of_row(w, o, scale);
    if (own) {
        memcpy(code, own, (size_t)n);
        return w->codes->q->codes.format;
    }
    const float most = largest(x, n);
    *scale = most > 0 ? most / fc_limit(FC_OCP) : 1;
    for (int64_t i = 0; i < n; i++)
        code[i] = (unsigned char)trn_encode(TRN_F8_E4M3FN, x[i] / *scale, TRN_NEAREST_EVEN, TRN_SATURATE, 0);
    return TRN_F8_E4M3FN;
}

/* Codes of 448 become codes of 240, and the scale with them. */
static void to_neuron(mr_way way, unsigned char *code, int64_t n, float *scale)
{
    static const fc_mode mode[] = { [MR_HALVE] = FC_HALVE, [MR_RATIO] = FC_RATIO };
    const float *const value = fc_values(TRN_F8_E4M3FN);
    fc_table table;
    if (way == MR_REQUANT) {
        float most = 0;
        for (int64_t i = 0; i < n; i++) most = fabsf(value[code[i]]) > most ? fabsf(value[code[i]]) : most;
        const float fresh = most > 0 ? most * *scale / fc_limit(FC_NEURON) : 1;
        fc_table_of_scales(FC_OCP, FC_NEURON, *scale, fresh, &table);
        *scale = fresh;
    } else {
        const fc_factor f = fc_factor_of(mode[way], FC_NEURON);
        fc_table_of_mode(mode[way], FC_OCP, FC_NEURON, &table);
        *scale = *scale * (float)f.up / (float)f.down;
    }
    for (int64_t i = 0; i < n; i++) code[i] = (unsigned char)table.to[code[i]];
}

static void make_fp8(const mr_run *run, const mr_weight *w, mr_matrix *m)
{
    const int64_t n = w->columns;
    unsigned char *code = app_memory((size_t)(w->rows * n), 1);
    m->memory = code;
    m->out_scale = app_memory((size_t)w->rows, sizeof *m->out_scale);
    m->b = trn_tensor_transposed(trn_tensor_2d(TRN_F8_E4M3, code, w->rows, n));
    fc_values(TRN_F8_E4M3FN);
    fc_values(TRN_F8_E4M3);
    MR_PARALLEL
    for (int64_t o = 0; o < w->rows; o++) {
        float *x = app_memory((size_t)n, sizeof *x);
        mr_decode(w, o, 1, x);
        if (codes_of_row(w, o, x, code + o * n, &m->out_scale[o]) == TRN_F8_E4M3FN)
            to_neuron(run->setting.way, code + o * n, n, &m->out_scale[o]);
        free(x);
    }
}

/* ---- MX ---- */

static void make_mx(const mr_run *run, const mr_weight *w, mr_matrix *m)
{
    const int64_t n = padded(w->columns), blocks = n / TRN_MX_BLOCK;
    unsigned char *code = app_memory((size_t)(w->rows * (n + blocks)), 1), *scale = code + w->rows * n;
    const trn_format format = run->setting.weight_codes;
    float *piece = app_memory((size_t)(PIECE * n), sizeof *piece);
    float *plain = app_memory((size_t)(PIECE * n), sizeof *plain);
    trn_error error;
    m->memory = code;
    for (int64_t o = 0; o < w->rows; o += PIECE) {
        const int64_t count = w->rows - o < PIECE ? w->rows - o : PIECE;
        mr_decode(w, o, count, plain);
        for (int64_t i = 0; i < count; i++)
            memcpy(piece + i * n, plain + i * w->columns, sizeof *piece * (size_t)w->columns);
        trn_mx_quantize_args a = { .dst = trn_tensor_2d(format, code + o * n, count, n),
                                   .dst_scale = trn_tensor_2d(TRN_F8_E8M0, scale + o * blocks, count, blocks),
                                   .src = trn_tensor_2d(TRN_F32, piece, count, n),
                                   .scale = TRN_MX_SCALE_OCP_FLOOR,
                                   .error = &error };
        mr_must(trn_mx_quantize(&a), &error);
    }
    free(piece);
    free(plain);
    m->b = trn_tensor_transposed(trn_tensor_2d(format, code, w->rows, n));
    m->b_scale = trn_tensor_2d(TRN_F8_E8M0, scale, w->rows, blocks);
}

/* ---- weights alone: codes times scale, rounded to what activations are ---- */

static void dequantise(const mr_run *run, const mr_weight *w, mr_matrix *m)
{
    const trn_format act = run->setting.act;
    const int64_t n = w->columns, step = m->b.shape[0];
    unsigned char *plain = app_memory((size_t)(w->rows * n), trn_format_bytes(act));
    const unsigned char *code = m->memory;
    float *x = app_memory((size_t)step, sizeof *x);
    trn_error error;
    for (int64_t o = 0; o < w->rows; o++) {
        const trn_tensor from = trn_tensor_2d(m->b.format, (void *)(uintptr_t)(code + o * step), 1, step);
        if (m->b_scale.rank) {
            trn_mx_dequantize_args a = { .dst = trn_tensor_2d(TRN_F32, x, 1, step),
                                         .src = from,
                                         .src_scale = trn_tensor_slice(m->b_scale, 0, o, 1),
                                         .error = &error };
            mr_must(trn_mx_dequantize(&a), &error);
        } else
            for (int64_t i = 0; i < n; i++) x[i] = fc_values(TRN_F8_E4M3)[code[o * step + i]] * m->out_scale[o];
        convert(act, x, n, plain + (size_t)(o * n) * trn_format_bytes(act));
    }
    free(x);
    free(m->memory);
    free(m->out_scale);
    *m = (mr_matrix){ .memory = plain };
    m->b = trn_tensor_transposed(trn_tensor_2d(act, plain, w->rows, n));
}

/* ---- any ---- */

static void pack(const mr_run *run, mr_matrix *m)
{
    trn_error error;
    trn_matmul_args a = { .generation = run->setting.generation,
                          .b = m->b,
                          .b_scale = m->b_scale,
                          .numerics = &run->setting.numerics,
                          .error = &error };
    const size_t bytes = trn_matmul_pack_bytes(&a);
    if (!bytes) return;
    m->packed = app_memory(bytes, 1);
    mr_must(trn_matmul_pack(&a, m->packed, bytes), &error);
}

const mr_matrix *mr_matrix_of(mr_run *run, mr_weight *w)
{
    static void (*const make[])(const mr_run *run, const mr_weight *w, mr_matrix *m) = {
        [MR_CODES_AS_ACT] = make_plain, [MR_CODES_FP8] = make_fp8, [MR_CODES_MX] = make_mx
    };
    if (w->ready) return w->ready;
    mr_matrix *m = app_memory(1, sizeof *m);
    const bool plain = w->plain; /* routers and heads, which published checkpoints leave alone */
    (plain ? make_plain : make[run->setting.codes])(run, w, m);
    if (run->setting.weights_only && !plain) dequantise(run, w, m);
    if (run->pack) pack(run, m);
    return w->ready = m;
}

void mr_matrix_free(mr_weight *w)
{
    if (!w->ready) return;
    free(w->ready->memory);
    free(w->ready->out_scale);
    free(w->ready->packed);
    free(w->ready);
    w->ready = NULL;
}
