/* explain_products.c - what a hypothesis about a product predicts: by the library, by a host's sums, of bfloat16 parts.
 * SPDX-License-Identifier: MIT
 */
#include "explain_matmul.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <trnmath/trn_matmul.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

/* ---- the operands that take part ---- */

void mm_make_part(mm_context *c, bool whole)
{
    mm_operands *p = &c->part[whole];
    p->m = whole ? c->m : c->rows;
    p->n = whole ? c->n : c->columns;
    p->k = c->k;
    p->code_a = app_memory((size_t)(p->m * p->k), 4);
    p->code_b = app_memory((size_t)(p->k * p->n), 4);
    if (whole) {
        p->a = c->a;
        p->b = c->b;
        return;
    }
    p->a = app_memory((size_t)(p->m * p->k), sizeof(float));
    p->b = app_memory((size_t)(p->k * p->n), sizeof(float));
    for (int64_t m = 0; m < p->m; m++) memcpy(p->a + m * p->k, c->a + c->row[m] * c->k, sizeof(float) * (size_t)c->k);
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t n = 0; n < p->n; n++) p->b[k * p->n + n] = c->b[k * c->n + c->column[n]];
}

void mm_free_parts(mm_context *c)
{
    for (int i = 0; i < 2; i++) {
        free(c->part[i].code_a);
        free(c->part[i].code_b);
    }
    free(c->part[0].a); /* the other's are the context's */
    free(c->part[0].b);
}

/* ---- computing ---- */

static trn_format format_for(const mm_context *c, int cast, bool b)
{
    const bool wide =
        trn_format_bits(c->format_a) == 32 || trn_format_bits(c->format_b) == 32; /* these meet only their own kind */
    const trn_format own = b ? c->format_b : c->format_a;
    if (c->cast[cast] == TRN_FORMAT_UNSET) return wide && trn_format_bits(own) != 32 ? TRN_F32 : own;
    return ud_significand(c->cast[cast]) < ud_significand(own) || wide ? c->cast[cast] : own;
}

static trn_tensor encode(trn_format format, const float *value, void *code, int64_t rows, int64_t columns)
{
    const trn_tensor to = trn_tensor_2d(format, code, rows, columns);
    trn_convert_args args = { .dst = to, .src = trn_tensor_2d(TRN_F32, (void *)(uintptr_t)value, rows, columns) };
    if (trn_convert(&args) != TRN_OK) abort();
    return to;
}

static void decode(trn_tensor t, float *value)
{
    trn_convert_args args = { .dst = trn_tensor_2d(TRN_F32, value, t.shape[0], t.shape[1]), .src = t };
    if (trn_convert(&args) != TRN_OK) abort();
}

static void fma_chains(const mm_operands *p, const float *a, const float *b, int64_t block, float *out)
{
    float *chain = app_memory((size_t)p->n, sizeof *chain);
    for (int64_t m = 0; m < p->m; m++) {
        float *row = out + m * p->n;
        for (int64_t k0 = 0; k0 < p->k; k0 += block) {
            const int64_t end = k0 + block < p->k ? k0 + block : p->k;
            for (int64_t n = 0; n < p->n; n++) chain[n] = 0;
            for (int64_t k = k0; k < end; k++)
                for (int64_t n = 0; n < p->n; n++) chain[n] = fmaf(a[m * p->k + k], b[k * p->n + n], chain[n]);
            for (int64_t n = 0; n < p->n; n++) row[n] = k0 ? row[n] + chain[n] : chain[n];
        }
    }
    free(chain);
}

static void double_sums(const mm_operands *p, const float *a, const float *b, float *out)
{
    double *sum = app_memory((size_t)p->n, sizeof *sum);
    for (int64_t m = 0; m < p->m; m++) {
        memset(sum, 0, sizeof *sum * (size_t)p->n);
        for (int64_t k = 0; k < p->k; k++)
            for (int64_t n = 0; n < p->n; n++) sum[n] += (double)a[m * p->k + k] * (double)b[k * p->n + n];
        for (int64_t n = 0; n < p->n; n++) out[m * p->n + n] = (float)sum[n];
    }
    free(sum);
}

static bool by_reference(const mm_operands *p, const mm_sums *s, trn_tensor a, trn_tensor b, float *out)
{
    float *x = app_memory((size_t)(p->m * p->k), sizeof *x), *y = app_memory((size_t)(p->k * p->n), sizeof *y);
    decode(a, x);
    decode(b, y);
    if (s->reference == MM_FLOAT64)
        double_sums(p, x, y, out);
    else
        fma_chains(p, x, y, s->block ? s->block : p->k, out);
    free(x);
    free(y);
    return true;
}

static bool by_library(const mm_operands *p, const mm_sums *s, trn_tensor a, trn_tensor b, float *out)
{
    trn_numerics n;
    if (trn_numerics_parse(&n, s->text) != TRN_OK) return false;
    trn_matmul_args args = {
        .dst = trn_tensor_2d(TRN_F32, out, p->m, p->n), .a = a, .b = b, .numerics = &n, .double_row = s->double_row
    };
    return app_worked(trn_matmul(&args), NULL);
}

static void cut_parts(float *rest, uint16_t *code, int64_t n, int parts)
{
    for (int part = 0; part < parts; part++)
        for (int64_t i = 0; i < n; i++) {
            code[part * n + i] = trn_bf16_from_f32(rest[i]);
            rest[i] -= trn_bf16_to_f32(code[part * n + i]);
        }
}

/* The smallest products first; those below the last part are left out. */
static bool by_parts(const mm_operands *p, const mm_sums *s, trn_tensor a, trn_tensor b, float *out)
{
    const int parts = (int)s->block;
    const int64_t na = p->m * p->k, nb = p->k * p->n;
    float *x = app_memory((size_t)na, sizeof *x), *y = app_memory((size_t)nb, sizeof *y);
    uint16_t *u = app_memory((size_t)(na * parts), sizeof *u), *v = app_memory((size_t)(nb * parts), sizeof *v);
    trn_numerics n;
    bool good = trn_numerics_parse(&n, s->text) == TRN_OK;
    decode(a, x);
    decode(b, y);
    cut_parts(x, u, na, parts);
    cut_parts(y, v, nb, parts);
    for (int sum = parts - 1; sum >= 0; sum--)
        for (int i = 0; i <= sum && good; i++) {
            trn_matmul_args args = { .dst = trn_tensor_2d(TRN_F32, out, p->m, p->n),
                                     .a = trn_tensor_2d(TRN_BF16, u + i * na, p->m, p->k),
                                     .b = trn_tensor_2d(TRN_BF16, v + (sum - i) * nb, p->k, p->n),
                                     .numerics = &n };
            args.accumulate = sum < parts - 1 || i > 0;
            good = app_worked(trn_matmul(&args), NULL);
        }
    free(x);
    free(y);
    free(u);
    free(v);
    return good;
}

/* Threads cost more than they bring where a product is small. */
static void choose_threads(const mm_operands *p)
{
#if defined(_OPENMP)
    static int all;
    if (!all) all = omp_get_max_threads();
    omp_set_num_threads(p->m * p->n < (MM_SAMPLE_MACS << 2) / p->k ? 1 : all);
#else
    (void)p;
#endif
}

static bool multiply(mm_context *c, const ud_hypothesis *h, bool whole)
{
    mm_operands *p = &c->part[whole];
    const mm_sums *s = &c->sum[h->key[MM_KEY_SUMS]];
    const int key[3] = { h->key[MM_KEY_INPUTS], h->key[MM_KEY_SUMS], whole };
    if (memcmp(key, c->key, sizeof key) == 0) return !c->refused;
    memcpy(c->key, key, sizeof key);
    const trn_tensor a = encode(format_for(c, key[0], false), p->a, p->code_a, p->m, p->k);
    const trn_tensor b = encode(format_for(c, key[0], true), p->b, p->code_b, p->k, p->n);
    choose_threads(p);
    c->refused = !(s->reference == MM_PARTS ? by_parts
                   : s->reference           ? by_reference
                                            : by_library)(p, s, a, b, c->result);
    return !c->refused;
}

bool mm_run(void *context, const ud_hypothesis *h, bool whole, float *value)
{
    mm_context *c = context;
    const mm_rounding *to = &c->output[h->key[MM_KEY_OUTPUT]];
    const int64_t n = c->part[whole].m * c->part[whole].n;
    if (!multiply(c, h, whole)) return false;
    memcpy(value, c->result, sizeof *value * (size_t)n);
    ud_round_values(to->format, to->rounding, TRN_OVERFLOW_DEFAULT, value, n);
    return true;
}
