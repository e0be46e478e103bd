/* check.c - the slow definition of one output, and the comparison bit for bit.
 * SPDX-License-Identifier: MIT
 *
 * Written from the definition and from nothing else. A tile has up to 128 rows, of one number each, of two with double
 * rows, of four with MX. Each of `chains` partial sums starts at +0 and takes its rows in ascending order: one fused
 * multiply-add for a row of one; else the sum of the row's products, each addition rounded, then scaled, then added.
 * The chains are merged; the sum is added to PSUM, which the first tile overwrites. int8: a sum modulo 2^32.
 */
#include "host.h"

#include <math.h>
#include <string.h>

#include <trnmath/trn_random.h>

enum { MAX_CHAINS = 16, ARRAY_ROWS = 128, MAX_GROUP = 4, MX_BLOCK = 32 };

typedef struct matrix {
    const unsigned char *data;
    trn_format format;
    trn_cfp8 cfp8;
    int64_t stride[2];
} matrix;

static matrix view(const trn_tensor *t)
{
    matrix m = { t->data, t->format, t->cfp8, { t->stride[0], t->stride[1] } };
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

static float value_at(const matrix *m, int64_t i, int64_t j)
{
    const uint32_t code = code_at(m, i, j);
    return m->format == TRN_CFP8 ? trn_cfp8_decode(m->cfp8, (uint8_t)code) : trn_decode(m->format, code);
}

/* ---- the definition ---- */

/* A product, ready to be asked for one output after the other. */
typedef struct question {
    trn_numerics n;
    matrix a, b, a_scale, b_scale; /* of MX; else without data */
    int64_t depth;
    int group; /* numbers of one row of the array: 1, 2, 4 */
    bool f32, int8;
} question;

static trn_numerics filled(const trn_numerics *numerics)
{
    trn_numerics n = numerics ? *numerics : trn_numerics_default(TRN_GENERATION_DEFAULT);
    if (n.chains == 0) n.chains = 4;
    if (n.k_tile == 0) n.k_tile = ARRAY_ROWS;
    return n;
}

static question ask(const trn_matmul_args *p)
{
    question q;
    memset(&q, 0, sizeof q);
    q.n = filled(p->numerics);
    q.a = view(&p->a);
    q.b = view(&p->b);
    if (p->a_scale.data) q.a_scale = view(&p->a_scale), q.b_scale = view(&p->b_scale);
    q.depth = p->a.shape[1];
    q.group = p->a_scale.data ? MAX_GROUP : p->double_row ? 2 : 1;
    q.f32 = p->a.format == TRN_F32 || p->b.format == TRN_F32;
    q.int8 = p->a.format == TRN_I8;
    return q;
}

/* One chain has its own arithmetic only in these variants; the others would need a second emulator here. */
static bool covered(const question *q, const trn_matmul_args *p)
{
    const trn_numerics *n = &q->n;
    if (q->int8) return n->int32_overflow == TRN_INT32_WRAP;
    return n->accumulator == TRN_ACCUMULATOR_NEAREST_EVEN && n->accumulator_bits <= 24 && !n->flush_inputs &&
           !n->flush_products && !n->flush_sums && n->fp8_bias == 0 && !p->accumulate &&
           (n->psum_format != TRN_BF16 || n->psum_rounding == TRN_NEAREST_EVEN) &&
           (q->group == 1 || (n->group == TRN_GROUP_SEQUENTIAL && n->product == TRN_PRODUCT_EXACT)) &&
           !(q->f32 && n->fp32_mode != TRN_FP32_R && n->product == TRN_PRODUCT_BF16);
}

/* x + y rounded once to binary32. In binary64 the sum is rounded to odd first, so that the second rounding is as good
 * as one. */
static float add_once(double x, float y)
{
    double sum = x + (double)y;
    if (!isfinite(sum)) return (float)sum;
    const double y_part = sum - x, error = (x - (sum - y_part)) + ((double)y - y_part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (error != 0 && !(bits & 1))
        bits += (error > 0) == (sum > 0) ? 1 : (uint64_t)-1; /* to the neighbour that is odd */
    memcpy(&sum, &bits, sizeof bits);
    return (float)sum;
}

/* The product of two narrow operands is exact in binary64. On its way to BF16 it is first rounded to odd, as above. */
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

/* 11 bits of significand: nearest even, or cut. */
static float as_tf32(float x, const trn_numerics *n)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (!isfinite(x)) return x;
    if (n->tf32_input != TRN_TF32_TRUNCATE) bits += 0xfffu + (bits >> 13 & 1);
    bits &= ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The upper 12 bits of the significand, or the rest. */
static float half_of(float x, bool high)
{
    uint32_t bits;
    float top;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xfffff000u;
    memcpy(&top, &bits, sizeof top);
    return high ? top : x - top;
}

/* One row of a tile: its factors, and the exponent of what scales their sum (1000: not a number). */
typedef struct array_row {
    float x[MAX_GROUP], w[MAX_GROUP];
    int scale;
} array_row;

enum { NO_SCALE = 1000 };

/* Which numbers along K row p of a tile holds, slot by slot: one; of a pair, the second from the tile's other half; of
 * four, neighbours. A missing partner is a zero. */
static array_row row_of(const question *q, int64_t i, int64_t j, int64_t k0, int64_t numbers, int64_t p)
{
    array_row r = { { 0 }, { 0 }, 0 };
    const int64_t half = (numbers + 1) / 2;
    for (int slot = 0; slot < q->group; slot++) {
        const int64_t k = q->group == 2 ? p + slot * half : q->group * p + slot;
        if (k >= numbers) continue;
        r.x[slot] = value_at(&q->a, i, k0 + k);
        r.w[slot] = value_at(&q->b, k0 + k, j);
        if (!q->f32 || q->n.fp32_mode != TRN_FP32_R) continue;
        r.x[slot] = as_tf32(r.x[slot], &q->n);
        r.w[slot] = as_tf32(r.w[slot], &q->n);
    }
    if (q->a_scale.data) {
        const int64_t block = (k0 + q->group * p) / MX_BLOCK;
        const int x = (int)code_at(&q->a_scale, i, block), w = (int)code_at(&q->b_scale, j, block);
        r.scale = x == 255 || w == 255 ? NO_SCALE : x + w - 254;
    }
    return r;
}

/* `pass` counts 0 to 3 when F32 operands are split: low x low, low x high, high x low, high x high. Infinities and NaN
 * have no halves and take part in the last pass, whole. */
static float step(const question *q, const array_row *r, int pass, float sum)
{
    float x = r->x[0], w = r->w[0];
    if (q->group == 1 && q->f32 && q->n.fp32_mode == TRN_FP32_SPLIT) {
        if (isfinite(x) && isfinite(w))
            x = half_of(x, pass >= 2), w = half_of(w, pass % 2);
        else if (pass < 3)
            return sum;
    }
    if (q->group == 1) return q->n.product == TRN_PRODUCT_BF16 ? bf16_product(x, w) + sum : fmaf(x, w, sum);
    float group = x * w; /* of 8-bit numbers: exact */
    for (int slot = 1; slot < q->group; slot++) group = fmaf(r->x[slot], r->w[slot], group);
    if (r->scale == NO_SCALE) return NAN;
    return q->a_scale.data ? add_once(ldexp((double)group, r->scale), sum) : sum + group;
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

static float tile(const question *q, int64_t i, int64_t j, int64_t k0, int64_t numbers)
{
    const trn_numerics *n = &q->n;
    const int passes = q->f32 && n->fp32_mode == TRN_FP32_SPLIT ? 4 : 1;
    const int64_t rows = (numbers + q->group - 1) / q->group;
    float s[MAX_CHAINS] = { 0 };
    for (int pass = 0; pass < passes; pass++)
        for (int64_t p = 0; p < rows; p++) {
            const int64_t c = n->chain_layout == TRN_CHAINS_BLOCKED ? p / (ARRAY_ROWS / n->chains) : p % n->chains;
            const array_row r = row_of(q, i, j, k0, numbers, p);
            s[c] = step(q, &r, pass, s[c]);
        }
    return merged(n, s);
}

static uint32_t int8_sum(const question *q, int64_t i, int64_t j)
{
    uint32_t sum = 0;
    for (int64_t k = 0; k < q->depth; k++)
        sum += (uint32_t)((int8_t)code_at(&q->a, i, k) * (int8_t)code_at(&q->b, k, j));
    return sum;
}

static float float_sum(const question *q, int64_t i, int64_t j)
{
    const int64_t deep = (int64_t)q->n.k_tile * q->group;
    float psum = 0;
    for (int64_t k0 = 0; k0 < q->depth; k0 += deep) {
        const float t = tile(q, i, j, k0, q->depth - k0 < deep ? q->depth - k0 : deep);
        psum = k0 == 0 ? t : psum + t;
        if (q->n.psum_format == TRN_BF16) psum = trn_bf16_to_f32(trn_bf16_from_f32(psum));
    }
    return psum;
}

bool tb_define(const trn_matmul_args *product, int64_t row, int64_t column, uint32_t *bits)
{
    const question q = ask(product);
    if (!covered(&q, product)) return false;
    const float psum = q.int8 ? 0 : float_sum(&q, row, column);
    memcpy(bits, &psum, sizeof *bits);
    if (isnan(psum)) *bits = 0x7fc00000u;
    if (q.int8) *bits = int8_sum(&q, row, column);
    return true;
}

/* ---- the comparison ---- */

static void compare(const trn_matmul_args *product, const matrix *dst, int64_t row, int64_t column, tb_check *check)
{
    uint32_t expected;
    check->defined = tb_define(product, row, column, &expected);
    if (!check->defined) return;
    const uint32_t got = code_at(dst, row, column);
    check->compared++;
    if (got == expected) return;
    if (check->wrong++ == 0) check->row = row, check->column = column, check->got = got, check->expected = expected;
}

tb_check tb_check_product(const trn_matmul_args *product, uint64_t seed, int samples)
{
    enum { CORNERS = 4 };
    const uint64_t stream = 0x636865636b; /* "check" */
    const int64_t m = product->dst.shape[0], n = product->dst.shape[1], outputs = m * n;
    const int64_t corner[CORNERS][2] = { { 0, 0 }, { 0, n - 1 }, { m - 1, 0 }, { m - 1, n - 1 } };
    const matrix out = view(&product->dst);
    tb_check check = { true, 0, 0, 0, 0, 0, 0 };
    const bool all = outputs <= samples;
    for (int64_t i = 0; i < (all ? outputs : samples) && check.defined; i++) {
        const uint64_t draw = (uint64_t)trn_random_u32(seed, stream, (uint64_t)(2 * i)) << 32 |
                              trn_random_u32(seed, stream, (uint64_t)(2 * i + 1));
        const int64_t at = all ? i : (int64_t)(draw % (uint64_t)outputs);
        if (!all && i < CORNERS)
            compare(product, &out, corner[i][0], corner[i][1], &check);
        else
            compare(product, &out, at / n, at % n, &check);
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
