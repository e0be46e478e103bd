/* linear.c - products: the engines', those of several cores with their all-reduce, and the reference's.
 * SPDX-License-Identifier: MIT
 */
#include "engine.h"
#include "vector.h"

#include <math.h>
#include <stdlib.h>

#include <trnmath/trn_collective.h>
#include <trnmath/trn_convert.h>
#include <trnmath/trn_matmul.h>
#include <trnmath/trn_mx.h>

void mr_must(trn_status status, const trn_error *error)
{
    if (status != TRN_OK) exit(app_complain(APP_USAGE, "%s", error->text));
}

static void convert(trn_tensor dst, trn_tensor src)
{
    trn_error error;
    trn_convert_args a = { .dst = dst, .src = src, .error = &error };
    mr_must(trn_convert(&a), &error);
}

void mr_round(const mr_run *run, float *x, int64_t n)
{
    enum { piece = 4096 };
    uint16_t code[piece];
    const trn_format act = run->setting.act;
    if (run->setting.reference || act == TRN_F32) return;
    for (int64_t i = 0; i < n; i += piece) {
        const int64_t count = n - i < piece ? n - i : piece;
        convert(trn_tensor_1d(act, code, count), trn_tensor_1d(TRN_F32, x + i, count));
        convert(trn_tensor_1d(TRN_F32, x + i, count), trn_tensor_1d(act, code, count));
    }
}

void mr_vector(const mr_weight *w, const mr_run *run, float *out)
{
    mr_decode(w, 0, w->rows, out);
    mr_round(run, out, w->rows);
}

static trn_tensor floats(const float *x, int64_t rows, int64_t columns)
{
    return trn_tensor_2d(TRN_F32, (void *)(uintptr_t)x, rows, columns);
}

/* ---- activations as the Tensor engine reads them ---- */

typedef struct operand {
    trn_tensor a, a_scale;
    float *row_scale; /* FP8: of each token */
    void *memory;
} operand;

static float largest(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t k = 0; k < n; k++) most = fabsf(x[k]) > most ? fabsf(x[k]) : most;
    return most;
}

/* A scale for each token, taken from its largest number: amax / 240; or one for all, from the largest of all. */
static void quantise_fp8(const mr_run *run, operand *q, const float *x, int64_t rows, int64_t n)
{
    const float all = run->setting.scale_tensor ? largest(x, rows * n) : 0;
    unsigned char *code = q->memory = app_memory((size_t)(rows * n), 1);
    float *scaled = app_memory((size_t)n, sizeof *scaled);
    q->row_scale = app_memory((size_t)rows, sizeof *q->row_scale);
    q->a = trn_tensor_2d(TRN_F8_E4M3, code, rows, n);
    for (int64_t i = 0; i < rows; i++, x += n) {
        const float most = run->setting.scale_tensor ? all : largest(x, n);
        const float scale = most > 0 ? most / 240.0f : 1, inverse = 1 / scale;
        for (int64_t k = 0; k < n; k++) scaled[k] = x[k] * inverse;
        trn_convert_args a = { .dst = trn_tensor_1d(TRN_F8_E4M3, code + i * n, n),
                               .src = trn_tensor_1d(TRN_F32, scaled, n),
                               .overflow = TRN_SATURATE };
        app_worked(trn_convert(&a), NULL);
        q->row_scale[i] = scale;
    }
    free(scaled);
}

static void quantise_mx(const mr_run *run, operand *q, const float *x, int64_t rows, int64_t n, int64_t wide)
{
    const int64_t blocks = wide / TRN_MX_BLOCK;
    float *padded = app_memory((size_t)(rows * wide), sizeof *padded);
    unsigned char *code = q->memory = app_memory((size_t)(rows * (wide + blocks)), 1);
    for (int64_t i = 0; i < rows; i++) memcpy(padded + i * wide, x + i * n, sizeof *x * (size_t)n);
    q->a = trn_tensor_2d(TRN_F8_E4M3FN, code, rows, wide);
    q->a_scale = trn_tensor_2d(TRN_F8_E8M0, code + rows * wide, rows, blocks);
    trn_error error;
    trn_mx_quantize_args a = { .dst = q->a,
                               .dst_scale = q->a_scale,
                               .src = floats(padded, rows, wide),
                               .scale = run->setting.numerics.mx_scale_rule,
                               .error = &error };
    mr_must(trn_mx_quantize(&a), &error);
    free(padded);
}

static operand operand_of(const mr_run *run, const mr_matrix *m, const float *x, int64_t rows, int64_t n)
{
    const trn_format act = run->setting.act;
    operand q = { .memory = NULL };
    if (m->b_scale.rank)
        quantise_mx(run, &q, x, rows, n, m->b.shape[0]);
    else if (m->out_scale)
        quantise_fp8(run, &q, x, rows, n);
    else if (act == TRN_F32)
        q.a = floats(x, rows, n);
    else {
        q.memory = app_memory((size_t)(rows * n), trn_format_bytes(act));
        q.a = trn_tensor_2d(act, q.memory, rows, n);
        convert(q.a, floats(x, rows, n));
    }
    return q;
}

static void operand_free(operand *q)
{
    free(q->memory);
    free(q->row_scale);
}

/* ---- one core's product ---- */

/* Few rows, and weights as torch has them: the library packs b for that, which costs more than it gains. Row by row on
 * stripes of b that stay in a cache it reads b once, in memory order; the bits are the same, but for PSUM's stochastic
 * rounding, whose words are those of rows and columns of the whole. */
enum { FEW_ROWS = 5, STRIPE = 64 };

static bool is_few(const trn_matmul_args *a)
{
    return a->numerics->psum_rounding != TRN_STOCHASTIC && a->a.shape[0] > 1 && a->a.shape[0] <= FEW_ROWS &&
           !a->packed && !a->b_scale.rank && a->b.stride[0] == 1 && a->b.shape[1] >= 2 * STRIPE;
}

static void multiply_stripe(const trn_matmul_args *whole, int64_t n)
{
    const int64_t out = whole->b.shape[1], count = out - n < STRIPE ? out - n : STRIPE;
    trn_error error;
    for (int64_t i = 0; i < whole->a.shape[0]; i++) {
        trn_matmul_args a = *whole;
        a.a = trn_tensor_slice(whole->a, 0, i, 1);
        a.b = trn_tensor_slice(whole->b, 1, n, count);
        a.dst = trn_tensor_2d(TRN_F32, (float *)whole->dst.data + i * out + n, 1, count);
        a.error = &error;
        mr_must(trn_matmul(&a), &error);
    }
}

static void multiply_few(const trn_matmul_args *a)
{
    const int64_t stripes = (a->b.shape[1] + STRIPE - 1) / STRIPE;
    MR_PARALLEL
    for (int64_t i = 0; i < stripes; i++) multiply_stripe(a, i * STRIPE);
}

/* Columns [k, k + depth) of a and rows of b; y [rows, out] binary32, scales multiplied in. */
static void multiply(const mr_run *run, const mr_matrix *m, const operand *q, int64_t k, int64_t depth, float *y)
{
    const int64_t rows = q->a.shape[0], out = m->b.shape[1];
    const bool whole = depth == m->b.shape[0];
    trn_error error;
    trn_matmul_args a = { .generation = run->setting.generation,
                          .dst = floats(y, rows, out),
                          .a = q->a,
                          .b = m->b,
                          .a_scale = q->a_scale,
                          .b_scale = m->b_scale,
                          .numerics = &run->setting.numerics,
                          .packed = whole ? m->packed : NULL,
                          .error = &error };
    if (!whole) {
        a.a = trn_tensor_slice(a.a, 1, k, depth);
        a.b = trn_tensor_slice(a.b, 0, k, depth);
    }
    if (!whole && m->b_scale.rank) {
        a.a_scale = trn_tensor_slice(a.a_scale, 1, k / TRN_MX_BLOCK, depth / TRN_MX_BLOCK);
        a.b_scale = trn_tensor_slice(a.b_scale, 1, k / TRN_MX_BLOCK, depth / TRN_MX_BLOCK);
    }
    if (is_few(&a))
        multiply_few(&a);
    else
        mr_must(trn_matmul(&a), &error);
    if (!m->out_scale) return;
    for (int64_t i = 0; i < rows; i++) /* the Vector engine: two products, each rounded */
        for (int64_t o = 0; o < out; o++) y[i * out + o] = y[i * out + o] * q->row_scale[i] * m->out_scale[o];
}

/* ---- several cores: each has a part of the depth, and their sums meet in a ring ---- */

/* A ring adds in an order that an element's place selects; a mesh in one step adds in the order of the cores. */
static void all_reduce(const mr_run *run, int tp, unsigned char *codes, int64_t n)
{
    const bool ordered = run->setting.reduce == MR_REDUCE_ORDERED;
    const trn_format wire = run->setting.wire;
    const trn_topology ring = trn_topology_torus(1, &tp, 64e9, 1e-6); /* values do not depend on its times */
    trn_tensor view[64];
    trn_error error;
    for (int r = 0; r < tp; r++)
        view[r] = trn_tensor_1d(wire, codes + (size_t)r * (size_t)n * trn_format_bytes(wire), n);
    trn_collective_args a = {
        .net = &ring, .op = TRN_ALL_REDUCE, .algorithm = TRN_RING, .src = view, .dst = view, .error = &error
    };
    if (ordered) a.algorithm = TRN_MESH;
    a.single_step = ordered;
    mr_must(trn_collective_run(&a), &error);
}

/* All tokens of q, which begin with row `first` of the product, together: one message. */
static void multiply_parts(const mr_run *run, const mr_product *p, const mr_matrix *m, const operand *q, int64_t first,
                           float *y)
{
    const int tp = run->setting.tp;
    const int64_t size = q->a.shape[0] * m->b.shape[1], depth = p->w->columns / tp;
    const trn_format wire = run->setting.wire;
    const size_t bytes = trn_format_bytes(wire) * (size_t)size;
    unsigned char *codes = app_memory((size_t)tp, bytes);
    for (int r = 0; r < tp; r++) {
        multiply(run, m, q, r * depth, depth, y);
        mr_see(run, (mr_made){ .op = MR_OP_PART,
                               .of = p->w,
                               .x = y,
                               .rows = q->a.shape[0],
                               .columns = m->b.shape[1],
                               .row = first,
                               .core = r });
        convert(trn_tensor_1d(wire, codes + (size_t)r * bytes, size), trn_tensor_1d(TRN_F32, y, size));
    }
    all_reduce(run, tp, codes, size);
    convert(trn_tensor_1d(TRN_F32, y, size), trn_tensor_1d(wire, codes, size));
    free(codes);
}

static void multiply_rows(const mr_run *run, const mr_product *p, const mr_matrix *m, const operand *q)
{
    const int64_t rows = q->a.shape[0], out = m->b.shape[1];
    const int64_t most = run->setting.reduce == MR_REDUCE_TOKEN ? 1 : MR_MESSAGE_ROWS;
    for (int64_t i = 0; i < rows; i += most) {
        const int64_t count = rows - i < most ? rows - i : most;
        operand part = *q;
        part.a = trn_tensor_slice(q->a, 0, i, count);
        if (q->a_scale.rank) part.a_scale = trn_tensor_slice(q->a_scale, 0, i, count);
        if (q->row_scale) part.row_scale = q->row_scale + i;
        multiply_parts(run, p, m, &part, i, p->y + i * out);
    }
}

static void add_bias(const mr_run *run, const mr_product *p)
{
    if (!p->bias || !p->bias->tensor) return;
    const int64_t out = p->w->rows;
    float *bias = app_memory((size_t)out, sizeof *bias);
    mr_vector(p->bias, run, bias);
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t o = 0; o < out; o++) p->y[i * out + o] += bias[o];
    free(bias);
}

static void engine_linear(mr_run *run, const mr_product *p)
{
    const mr_matrix *m = mr_matrix_of(run, p->w);
    operand q = operand_of(run, m, p->x, p->rows, p->w->columns);
    const bool cut = p->row_parallel && run->setting.tp > 1 && !run->setting.split_outputs;
    if (cut)
        multiply_rows(run, p, m, &q);
    else
        multiply(run, m, &q, 0, m->b.shape[0], p->y);
    operand_free(&q);
    add_bias(run, p);
    if (!p->raw) mr_round(run, p->y, p->rows * p->w->rows);
    mr_see(run,
           (mr_made){
               .op = MR_OP_PRODUCT, .of = p->w, .x = p->y, .rows = p->rows, .columns = p->w->rows, .reduced = cut });
}

static void engine_scores(mr_run *run, const float *x, const void *k, int64_t rows, int64_t keys, int64_t n, float *y)
{
    const mr_matrix m = { .b = trn_tensor_transposed(trn_tensor_2d(run->setting.act, (void *)(uintptr_t)k, keys, n)) };
    operand q = operand_of(run, &m, x, rows, n);
    multiply(run, &m, &q, 0, n, y);
    operand_free(&q);
}

static void engine_mix(mr_run *run, const float *x, const void *v, int64_t rows, int64_t keys, int64_t n, float *y)
{
    const mr_matrix m = { .b = trn_tensor_2d(run->setting.act, (void *)(uintptr_t)v, keys, n) };
    operand q = operand_of(run, &m, x, rows, keys);
    multiply(run, &m, &q, 0, keys, y);
    operand_free(&q);
    mr_round(run, y, rows * n);
}

/* ---- the reference: products and sums in binary64, eight sums side by side; one rounding at the end ---- */

enum { LANES = 8, ROWS = 16 };

/* A product of two binary32 numbers is exact in binary64: with or without fused operations the bits are the same. */
#define DOT_BODY                                                                                                       \
    double sum[LANES] = { 0 };                                                                                         \
    int64_t i = 0;                                                                                                     \
    for (; i + LANES <= n; i += LANES)                                                                                 \
        for (int j = 0; j < LANES; j++) sum[j] += (double)a[i + j] * (double)b[i + j];                                 \
    for (; i < n; i++) sum[i % LANES] += (double)a[i] * (double)b[i];                                                  \
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]))

static double dot_portable(const float *a, const float *b, int64_t n) { DOT_BODY; }

#if defined(__x86_64__) && defined(__GNUC__)
#ifdef __clang__
#define FOR_AVX2 __attribute__((target("avx2,fma")))
#else
#define FOR_AVX2 __attribute__((target("avx2,fma"), optimize("O3")))
#endif
FOR_AVX2 static double dot_avx2(const float *a, const float *b, int64_t n) { DOT_BODY; }
#endif

typedef double dot_fn(const float *a, const float *b, int64_t n);

static dot_fn *pick_dot(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (trn_isa_default() >= TRN_ISA_AVX2) return dot_avx2;
#endif
    return dot_portable;
}

static void reference_linear(mr_run *run, const mr_product *p)
{
    const int64_t n = p->w->columns, out = p->w->rows;
    const mr_weight *w = p->w;
    dot_fn *const dot = pick_dot();
    (void)run;
    MR_PARALLEL
    for (int64_t block = 0; block < (out + ROWS - 1) / ROWS; block++) {
        const int64_t first = block * ROWS, count = out - first < ROWS ? out - first : ROWS;
        float *row = app_memory((size_t)(count * n), sizeof *row);
        float bias[ROWS] = { 0 };
        mr_decode(w, first, count, row);
        for (int64_t o = 0; o < count && p->bias && p->bias->tensor; o++) mr_decode(p->bias, first + o, 1, bias + o);
        for (int64_t o = 0; o < count; o++)
            for (int64_t i = 0; i < p->rows; i++)
                p->y[i * out + first + o] = (float)(dot(p->x + i * n, row + o * n, n) + (double)bias[o]);
        free(row);
    }
}

static void reference_scores(mr_run *run, const float *x, const void *k, int64_t rows, int64_t keys, int64_t n,
                             float *y)
{
    dot_fn *const dot = pick_dot();
    const float *key = k;
    (void)run;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) y[i * keys + j] = (float)dot(x + i * n, key + j * n, n);
}

static void reference_mix(mr_run *run, const float *x, const void *v, int64_t rows, int64_t keys, int64_t n, float *y)
{
    const float *value = v;
    double *sum = app_memory((size_t)n, sizeof *sum);
    (void)run;
    for (int64_t i = 0; i < rows; i++) {
        memset(sum, 0, sizeof *sum * (size_t)n);
        for (int64_t j = 0; j < keys; j++)
            for (int64_t d = 0; d < n; d++) sum[d] += (double)x[i * keys + j] * (double)value[j * n + d];
        for (int64_t d = 0; d < n; d++) y[i * n + d] = (float)sum[d];
    }
    free(sum);
}

/* ---- the two tables: vector.c has the rest ---- */

const mr_ops mr_reference_ops = { reference_linear,     mr_reference_rms_norm, mr_reference_layer_norm,
                                  mr_reference_softmax, mr_reference_function, reference_scores,
                                  reference_mix };
const mr_ops mr_engine_ops = { engine_linear,     mr_engine_rms_norm, mr_engine_layer_norm,
                               mr_engine_softmax, mr_engine_function, engine_scores,
                               engine_mix };
