/* cast.c - operands of products: cast to narrow formats, with a scale for FP8, and multiplied.
 * SPDX-License-Identifier: MIT
 */
#include "srlab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_matmul.h>

void sr_must(trn_status status, const trn_error *error)
{
    if (status != TRN_OK) exit(app_complain(app_refused(status), "%s", error->text));
}

void sr_workspace_free(sr_workspace *workspace)
{
    free(workspace->scratch);
    free(workspace->scaled);
}

void sr_operand_free(sr_operand *o)
{
    free(o->view.data);
    o->view.data = NULL;
}

/* ---- per-tensor scales ---- */

static float largest(const float *x, int64_t count)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++) {
        const float magnitude = fabsf(x[i]);
        if (magnitude > most && magnitude < INFINITY) most = magnitude;
    }
    return most;
}

/* The largest power of two that keeps all of x within the format: scaling and its undoing are exact. */
static float scale_for(const float *x, int64_t count, trn_format format)
{
    const float most = largest(x, count), limit = (float)trn_format_limits_of(format).max;
    int exponent;
    if (most == 0) return 1;
    (void)frexpf(limit / most, &exponent);
    exponent = exponent - 1 > 100 ? 100 : exponent - 1 < -100 ? -100 : exponent - 1;
    return ldexpf(1.0f, exponent);
}

static const float *scaled(sr_workspace *workspace, const float *x, int64_t count, float scale)
{
    if (workspace->scaled_capacity < (size_t)count) {
        free(workspace->scaled);
        workspace->scaled_capacity = (size_t)count;
        workspace->scaled = app_memory(workspace->scaled_capacity, sizeof *workspace->scaled);
    }
    for (int64_t i = 0; i < count; i++) workspace->scaled[i] = x[i] * scale;
    return workspace->scaled;
}

static void reserve(sr_operand *o, int64_t elements)
{
    if (o->view.data && o->capacity >= elements) return;
    free(o->view.data);
    o->capacity = elements;
    o->view.data = app_memory((size_t)elements, sizeof(float));
}

void sr_cast(sr_workspace *workspace, sr_operand *o, const float *x, int64_t rows, int64_t columns, sr_rule rule)
{
    trn_error error;
    trn_convert_args args;
    reserve(o, rows * columns);
    o->view = trn_tensor_2d(rule.format, o->view.data, rows, columns);
    o->undo = 1;
    if (trn_format_bits(rule.format) == 8) {
        const float scale = scale_for(x, rows * columns, rule.format);
        x = scaled(workspace, x, rows * columns, scale);
        o->undo = 1 / scale;
    }
    memset(&args, 0, sizeof args);
    args.dst = o->view;
    args.src = sr_matrix((float *)(uintptr_t)x, rows, columns, columns);
    args.rounding = rule.rounding;
    args.overflow = TRN_SATURATE;
    args.seed = workspace->seed;
    args.stream = workspace->stream++;
    args.error = &error;
    sr_must(trn_convert(&args), &error);
}

/* ---- views and products ---- */

trn_tensor sr_matrix(float *x, int64_t rows, int64_t columns, int64_t stride)
{
    trn_tensor t = trn_tensor_2d(TRN_F32, x, rows, columns);
    t.stride[0] = stride;
    t.stride[1] = 1;
    return t;
}

sr_operand sr_transposed(const sr_operand *o)
{
    sr_operand t = *o;
    t.view = trn_tensor_transposed(o->view);
    return t;
}

/* Of a packed operand. */
sr_operand sr_part(const sr_operand *o, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    sr_operand p = *o;
    const int64_t stride = o->view.shape[1];
    const size_t bytes = (size_t)trn_format_bits(o->view.format) / 8;
    p.view =
        trn_tensor_2d(o->view.format, (char *)o->view.data + (size_t)(row * stride + column) * bytes, rows, columns);
    p.view.stride[0] = stride;
    p.view.stride[1] = 1;
    return p;
}

static void need_scratch(sr_workspace *workspace, trn_matmul_args *args)
{
    const size_t bytes = trn_matmul_scratch_bytes(args);
    if (bytes > workspace->scratch_bytes) {
        free(workspace->scratch);
        workspace->scratch = app_memory(bytes, 1);
        workspace->scratch_bytes = bytes;
    }
    args->scratch = workspace->scratch;
    args->scratch_bytes = workspace->scratch_bytes;
}

static void undo_scales(trn_tensor dst, float by)
{
    for (int64_t i = 0; i < dst.shape[0]; i++) {
        float *row = (float *)dst.data + i * dst.stride[0];
        for (int64_t j = 0; j < dst.shape[1]; j++) row[j] *= by;
    }
}

void sr_product(sr_workspace *workspace, trn_tensor dst, const sr_operand *a, const sr_operand *b)
{
    trn_error error;
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = dst;
    args.a = a->view;
    args.b = b->view;
    args.error = &error;
    need_scratch(workspace, &args);
    sr_must(trn_matmul(&args), &error);
    const float undo = a->undo * b->undo;
    if (undo != 1) undo_scales(dst, undo);
}
