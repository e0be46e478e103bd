/* decode.c - matrices of a checkpoint as numbers, whatever they are kept as.
 * SPDX-License-Identifier: MIT
 */
#include "model.h"

#include <trnmath/trn_convert.h>

static unsigned char *place(const mr_weight *w, int64_t row)
{
    return (unsigned char *)(uintptr_t)w->tensor->data + (w->first + row * w->row) * w->tensor->bits / 8;
}

trn_tensor mr_view(const mr_weight *w)
{
    if (w->codes) return trn_tensor_nd(TRN_FORMAT_UNSET, NULL, 0, NULL);
    trn_tensor t = trn_tensor_2d(w->tensor->format, place(w, 0), w->rows, w->columns);
    t.stride[0] = w->row;
    t.stride[1] = w->column;
    return t;
}

double mr_bytes_each(const mr_weight *w)
{
    double bytes = 0;
    if (!w->codes) return w->tensor->bits / 8.0;
    const quant *q = w->codes->q;
    for (int i = 0; i < QUANT_PARTS; i++)
        if (q->part[i] >= 0) bytes += (double)st_bytes(w->codes->part[i]);
    return q->view.elements ? bytes / (double)q->view.elements : 0;
}

const unsigned char *mr_codes_of_row(const mr_weight *w, int64_t row, float *scale)
{
    const quant *q = w->codes ? w->codes->q : NULL;
    const bool eight = q && q->kind == QUANT_FP8 && q->codes.format != TRN_F8_E5M2 && w->column == 1;
    if (!eight) return NULL;
    const int64_t at = (w->first + row * w->row) / w->columns;
    const quant_factor f = quant_factor_at(w->codes, at, 0);
    if (f.run < w->columns) return NULL;
    *scale = (float)f.scale;
    return w->codes->codes + at * w->columns;
}

static void decode_codes(const mr_weight *w, int64_t row, float *out)
{
    const int64_t first = w->first + row * w->row, wide = w->codes->columns;
    if (w->column == 1)
        quant_run(w->codes, first / wide, first % wide, w->columns, out, 1);
    else
        for (int64_t i = 0, at = first; i < w->columns; i++, at += w->column)
            quant_run(w->codes, at / wide, at % wide, 1, &out[i], 1);
}

/* From any address. */
static void decode_numbers(const mr_weight *w, int64_t row, int64_t count, float *out)
{
    const size_t bytes = (size_t)w->tensor->bits / 8;
    trn_error error;
    if ((uintptr_t)w->tensor->data % bytes == 0) {
        trn_convert_args a = { .dst = trn_tensor_2d(TRN_F32, out, count, w->columns),
                               .src = trn_tensor_slice(mr_view(w), 0, row, count),
                               .error = &error };
        app_worked(trn_convert(&a), &error);
        return;
    }
    for (int64_t o = 0; o < count; o++)
        for (int64_t i = 0; i < w->columns; i++) {
            uint32_t code = 0;
            memcpy(&code, place(w, row + o) + (size_t)(i * w->column) * bytes, bytes);
            *out++ = trn_decode(w->tensor->format, code);
        }
}

void mr_decode(const mr_weight *w, int64_t row, int64_t count, float *out)
{
    if (!w->codes)
        decode_numbers(w, row, count, out);
    else
        for (int64_t o = 0; o < count; o++) decode_codes(w, row + o, out + o * w->columns);
}
