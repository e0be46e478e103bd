/* trnbench_check.c - the slow definition of one output, and the comparison bit for bit.
 * SPDX-License-Identifier: MIT
 *
 * Written from the definition and from nothing else: per tile of K, `chains` partial sums that start at +0 and take
 * their rows in ascending order, one fused multiply-add each; merged; added to PSUM, which the first tile overwrites.
 */
#include "trnbench_host.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_random.h>

enum { MAX_CHAINS = 16, ARRAY_ROWS = 128 };

typedef struct matrix {
    const unsigned char *data;
    trn_format format;
    int64_t stride[2];
} matrix;

static matrix view(const trn_tensor *t)
{
    matrix m = { t->data, t->format, { t->stride[0], t->stride[1] } };
    if (m.stride[0] == 0 && m.stride[1] == 0) m.stride[0] = t->shape[1], m.stride[1] = 1;
    return m;
}

static uint32_t code_at(const matrix *m, int64_t i, int64_t j)
{
    const size_t bytes = trn_format_bytes(m->format);
    uint32_t code = 0;
    memcpy(&code, m->data + (size_t)(i * m->stride[0] + j * m->stride[1]) * bytes, bytes);
    return code;
}

static float value_at(const matrix *m, int64_t i, int64_t j) { return trn_decode(m->format, code_at(m, i, j)); }

/* ---- the definition ---- */

static trn_numerics filled(const trn_numerics *numerics)
{
    trn_numerics n = numerics ? *numerics : trn_numerics_default(TRN_GENERATION_DEFAULT);
    if (n.chains == 0) n.chains = 4;
    if (n.k_tile == 0) n.k_tile = ARRAY_ROWS;
    return n;
}

/* One chain has its own arithmetic only in these variants; the others would need a second emulator here. */
static bool covered(const trn_numerics *n, trn_format a, trn_format b)
{
    const bool f32 = a == TRN_F32 || b == TRN_F32;
    return n->accumulator == TRN_ACCUMULATOR_NEAREST_EVEN && n->accumulator_bits <= 24 && !n->flush_inputs &&
           !n->flush_products && !n->flush_sums && n->psum_format != TRN_BF16 &&
           !(f32 && (n->fp32_mode == TRN_FP32_SPLIT || n->product == TRN_PRODUCT_BF16));
}

/* The product of two narrow operands is exact in binary64. On its way to BF16 it is first rounded to odd, so that the
 * second rounding is as good as one. */
static float bf16_product(float x, float w)
{
    const double exact = (double)x * (double)w;
    const float nearest = (float)exact;
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    if (isfinite(nearest) && (double)nearest != exact) {
        bits -= fabs((double)nearest) > fabs(exact);
        bits |= 1;
    }
    return trn_bf16_to_f32(trn_bf16_from_f32(trn_decode(TRN_F32, bits)));
}

static float step(const trn_numerics *n, float x, float w, float sum)
{
    return n->product == TRN_PRODUCT_BF16 ? bf16_product(x, w) + sum : fmaf(x, w, sum);
}

static float merged(const trn_numerics *n, float s[MAX_CHAINS])
{
    if (n->merge == TRN_MERGE_PAIRWISE)
        for (int apart = 1; apart < n->chains; apart *= 2)
            for (int c = 0; c + apart < n->chains; c += 2 * apart) s[c] = s[c] + s[c + apart];
    else
        for (int c = 1; c < n->chains; c++) s[0] = s[0] + s[c];
    return s[0];
}

static float tile(const trn_numerics *n, const matrix *a, const matrix *b, int64_t row, int64_t column, int64_t k0,
                  int64_t rows)
{
    float s[MAX_CHAINS] = { 0 };
    for (int64_t p = 0; p < rows; p++) {
        const int64_t c = n->chain_layout == TRN_CHAINS_BLOCKED ? p / (ARRAY_ROWS / n->chains) : p % n->chains;
        s[c] = step(n, value_at(a, row, k0 + p), value_at(b, k0 + p, column), s[c]);
    }
    return merged(n, s);
}

bool tb_define(const trn_tensor *a, const trn_tensor *b, const trn_numerics *numerics, int64_t row, int64_t column,
               float *value)
{
    const trn_numerics n = filled(numerics);
    const matrix va = view(a), vb = view(b);
    const int64_t depth = a->shape[1];
    float psum = 0;
    if (!covered(&n, a->format, b->format)) return false;
    for (int64_t k0 = 0; k0 < depth; k0 += n.k_tile) {
        const int64_t rows = depth - k0 < n.k_tile ? depth - k0 : n.k_tile;
        const float t = tile(&n, &va, &vb, row, column, k0, rows);
        psum = k0 == 0 ? t : psum + t;
    }
    *value = isnan(psum) ? trn_decode(TRN_F32, 0x7fc00000u) : psum;
    return true;
}

/* ---- the comparison ---- */

static void compare(const trn_tensor *a, const trn_tensor *b, const matrix *dst, const trn_numerics *numerics,
                    int64_t row, int64_t column, tb_check *check)
{
    float value;
    uint32_t expected;
    check->defined = tb_define(a, b, numerics, row, column, &value);
    if (!check->defined) return;
    memcpy(&expected, &value, sizeof expected);
    const uint32_t got = code_at(dst, row, column);
    check->compared++;
    if (got == expected) return;
    if (check->wrong++ == 0) check->row = row, check->column = column, check->got = got, check->expected = expected;
}

tb_check tb_check_product(const trn_tensor *a, const trn_tensor *b, const trn_tensor *dst, const trn_numerics *numerics,
                          uint64_t seed, int samples)
{
    enum { CORNERS = 4 };
    const uint64_t stream = 0x636865636b; /* "check" */
    const int64_t m = dst->shape[0], n = dst->shape[1], outputs = m * n;
    const int64_t corner[CORNERS][2] = { { 0, 0 }, { 0, n - 1 }, { m - 1, 0 }, { m - 1, n - 1 } };
    const matrix out = view(dst);
    tb_check check = { true, 0, 0, 0, 0, 0, 0 };
    const bool all = outputs <= samples;
    for (int64_t i = 0; i < (all ? outputs : samples) && check.defined; i++) {
        const uint64_t draw = (uint64_t)trn_random_u32(seed, stream, (uint64_t)(2 * i)) << 32 |
                              trn_random_u32(seed, stream, (uint64_t)(2 * i + 1));
        const int64_t at = all ? i : (int64_t)(draw % (uint64_t)outputs);
        if (!all && i < CORNERS)
            compare(a, b, &out, numerics, corner[i][0], corner[i][1], &check);
        else
            compare(a, b, &out, numerics, at / n, at % n, &check);
    }
    return check;
}

uint64_t tb_digest(const trn_tensor *dst)
{
    const matrix m = view(dst);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < dst->shape[0]; i++)
        for (int64_t j = 0; j < dst->shape[1]; j++) hash = (hash ^ code_at(&m, i, j)) * 0x100000001b3u;
    return hash;
}
