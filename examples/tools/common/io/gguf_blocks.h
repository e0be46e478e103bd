/* gguf_blocks.h - rows of GGUF tensors, whose numbers stand in blocks of 32 or 256 with scales of their own.
 * SPDX-License-Identifier: MIT
 *
 *     #define _POSIX_C_SOURCE 200809L
 *     #include "io/gguf_blocks.h"
 *     gguf_matrix m;
 *     if (!gguf_matrix_open(gguf_find(&f, "blk.0.ffn_up.weight"), &m, why)) return puts(why), 2;
 *     for (int64_t r = 0; r < m.rows; r++) gguf_row(&m, r, row); // m.columns numbers
 *
 * | type   | elements | bytes: fields in their order                       | w                                       |
 * |--------|----------|----------------------------------------------------|-----------------------------------------|
 * | Q4_0   | 32       | d, 16 of halves                                    | (q - 8) * d                             |
 * | Q4_1   | 32       | d, m, 16 of halves                                 | q * d + m                               |
 * | Q5_0   | 32       | d, 4 of fifth bits, 16 of halves                   | (q - 16) * d                            |
 * | Q5_1   | 32       | d, m, 4 of fifth bits, 16 of halves                | q * d + m                               |
 * | Q8_0   | 32       | d, 32 with a sign                                  | q * d                                   |
 * | Q2_K   | 256      | 16 of scales and mins, 64 of quarters, d, dmin     | d * scale * q - dmin * min              |
 * | Q3_K   | 256      | 32 of third bits, 64 of quarters, 12 of scales, d  | d * (scale - 32) * (q - 4)              |
 * | Q4_K   | 256      | d, dmin, 12 of scales and mins, 128 of halves      | d * scale * q - dmin * min              |
 * | Q5_K   | 256      | d, dmin, 12, 32 of fifth bits, 128 of halves       | d * scale * q - dmin * min              |
 * | Q6_K   | 256      | 128 of halves, 64 of quarters, 16 scales, d        | d * scale * (q - 32)                    |
 * | IQ4_NL | 32       | d, 16 of halves                                    | d * table[q]                            |
 * | IQ4_XS | 256      | d, 2 and 4 of scales, 128 of halves                | d * (scale - 32) * table[q]             |
 * | TQ2_0  | 256      | 64 of quarters, d                                  | (q - 1) * d                             |
 * | MXFP4  | 32       | E8M0, 16 of halves                                 | E2M1 * 2^(e - 127)                      |
 *
 * d, m and dmin are FP16, little-endian. F32, F16 and BF16 have no blocks. Low halves of bytes come first, all of them:
 * 16 elements (32 of the larger blocks) in low halves, then as many in the high ones.
 *
 * The right side of each row is exact in binary64 (multiples of 2^-24 below 2^29), and becomes binary32 rounded to odd
 * (odd.h). llama.cpp rounds it to the nearest of binary32: the same where binary32 holds it, else one beside it.
 * TRAP: an E8M0 of 255 is NaN here and a -0 stays one, as OCP has them; llama.cpp makes 2^128 and 0 of these.
 *
 * DOES: one row at a time; a tensor of more than two axes as rows of all its matrices.
 * DOES NOT: IQ1_*, IQ2_*, IQ3_*, TQ1_0, Q1_0, Q2_0, NVFP4, Q8_1, Q8_K, integers and F64: refused by name.
 *
 * CONTENTS
 *     gguf_matrix, gguf_matrix_open      a tensor whose type can be read
 *     gguf_row                           one row as binary32
 *     gguf_decoder                       a block's numbers as binary64, exact
 *
 * KNOWN FROM: ggml (ggml-common.h: fields; ggml-quants.c: what each is worth; gguf-py's quants.py, against which all of
 *     these were held); OCP MX 1.0.
 */
#ifndef IO_GGUF_BLOCKS_H
#define IO_GGUF_BLOCKS_H

#include "gguf.h"
#include "mxfp4.h"
#include "odd.h"

enum { GGUF_SMALL = 32, GGUF_LARGE = 256 };

typedef struct gguf_matrix {
    int64_t rows, columns;
    const gguf_type *type;
    const unsigned char *data;
    void (*decode)(const unsigned char *block, double *x);
} gguf_matrix;

/* ---- fields ---- */

IO_FN double gguf_half(const unsigned char *at) { return (double)trn_decode(TRN_F16, io_little16(at)); }

/* Of 2n numbers in n bytes: the first n are the low halves. */
IO_FN int gguf_nibble(const unsigned char *at, int i, int n) { return i < n ? at[i] & 15 : at[i - n] >> 4; }

/* Element i of 256 in halves or quarters: bytes serve 32 elements that follow each other, `each` times. */
IO_FN int gguf_part(const unsigned char *at, int i, int each)
{
    const int run = 32 * each, bits = 8 / each;
    return at[i / run * 32 + i % 32] >> i % run / 32 * bits & ((1 << bits) - 1);
}

/* ---- 32 elements ---- */

/* Q4_0, Q4_1, Q5_0, Q5_1: with a least value, or centred on zero. */
IO_FN void gguf_linear(const unsigned char *b, bool least, bool five, double *x)
{
    const double d = gguf_half(b), m = least ? gguf_half(b + 2) : 0;
    const unsigned char *at = b + (least ? 4 : 2);
    const uint32_t high = five ? io_little32(at) : 0;
    const int middle = five ? 16 : 8;
    if (five) at += 4;
    for (int i = 0; i < GGUF_SMALL; i++) {
        const int q = gguf_nibble(at, i, 16) | (int)(high >> i & 1) << 4;
        x[i] = least ? q * d + m : (q - middle) * d;
    }
}

IO_FN void gguf_q4_0(const unsigned char *b, double *x) { gguf_linear(b, false, false, x); }
IO_FN void gguf_q4_1(const unsigned char *b, double *x) { gguf_linear(b, true, false, x); }
IO_FN void gguf_q5_0(const unsigned char *b, double *x) { gguf_linear(b, false, true, x); }
IO_FN void gguf_q5_1(const unsigned char *b, double *x) { gguf_linear(b, true, true, x); }

IO_FN void gguf_q8_0(const unsigned char *b, double *x)
{
    const double d = gguf_half(b);
    for (int i = 0; i < GGUF_SMALL; i++) x[i] = (signed char)b[2 + i] * d;
}

IO_FN int gguf_uneven(int q)
{
    static const signed char value[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
    return value[q];
}

IO_FN void gguf_iq4_nl(const unsigned char *b, double *x)
{
    const double d = gguf_half(b);
    for (int i = 0; i < GGUF_SMALL; i++) x[i] = gguf_uneven(gguf_nibble(b + 2, i, 16)) * d;
}

IO_FN void gguf_mxfp4(const unsigned char *b, double *x)
{
    const float power = mxfp4_power(b[0]);
    for (int i = 0; i < GGUF_SMALL; i++) x[i] = (double)(mxfp4_value(gguf_nibble(b + 1, i, 16)) * power);
}

/* ---- 256 elements ---- */

/* Scale j of eight of Q4_K and Q5_K, and the least value beside it: six bits each, those of the last four in two
 * places. */
IO_FN void gguf_scale_min(const unsigned char *s, int j, int *scale, int *least)
{
    *scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    *least = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

IO_FN void gguf_four_five(const unsigned char *b, const unsigned char *high, const unsigned char *low, double *x)
{
    const double d = gguf_half(b), dmin = gguf_half(b + 2);
    for (int i = 0; i < GGUF_LARGE; i++) {
        int scale, least;
        gguf_scale_min(b + 4, i / 32, &scale, &least);
        const int q = gguf_part(low, i, 2) | (high ? gguf_part(high, i, 8) << 4 : 0);
        x[i] = d * scale * q - dmin * least;
    }
}

IO_FN void gguf_q4_k(const unsigned char *b, double *x) { gguf_four_five(b, NULL, b + 16, x); }
IO_FN void gguf_q5_k(const unsigned char *b, double *x) { gguf_four_five(b, b + 16, b + 48, x); }

IO_FN void gguf_q2_k(const unsigned char *b, double *x)
{
    const double d = gguf_half(b + 80), dmin = gguf_half(b + 82);
    for (int i = 0; i < GGUF_LARGE; i++)
        x[i] = d * (b[i / 16] & 15) * gguf_part(b + 16, i, 4) - dmin * (b[i / 16] >> 4);
}

/* Scale j of sixteen: four bits low or high in the first eight bytes, two in the other four. */
IO_FN int gguf_q3_scale(const unsigned char *s, int j)
{
    return gguf_nibble(s, j, 8) | (s[8 + j % 4] >> j / 4 * 2 & 3) << 4;
}

IO_FN void gguf_q3_k(const unsigned char *b, double *x)
{
    const double d = gguf_half(b + 108);
    for (int i = 0; i < GGUF_LARGE; i++) {
        const int q = gguf_part(b + 32, i, 4) | gguf_part(b, i, 8) << 2;
        x[i] = d * (gguf_q3_scale(b + 96, i / 16) - 32) * (q - 4);
    }
}

/* Halves serve 64 elements that follow each other, twice. */
IO_FN void gguf_q6_k(const unsigned char *b, double *x)
{
    const double d = gguf_half(b + 208);
    for (int i = 0; i < GGUF_LARGE; i++) {
        const int q = gguf_nibble(b + i / 128 * 64, i % 128, 64) | gguf_part(b + 128, i, 4) << 4;
        x[i] = d * (signed char)b[192 + i / 16] * (q - 32);
    }
}

IO_FN void gguf_iq4_xs(const unsigned char *b, double *x)
{
    const double d = gguf_half(b);
    for (int i = 0; i < GGUF_LARGE; i++) {
        const int j = i / 32, low = b[4 + j / 2] >> j % 2 * 4 & 15, high = io_little16(b + 2) >> j * 2 & 3;
        x[i] = d * ((low | high << 4) - 32) * gguf_uneven(gguf_nibble(b + 8 + j * 16, i % 32, 16));
    }
}

IO_FN void gguf_tq2_0(const unsigned char *b, double *x)
{
    const double d = gguf_half(b + 64);
    for (int i = 0; i < GGUF_LARGE; i++) x[i] = (gguf_part(b, i, 4) - 1) * d;
}

/* ---- no blocks ---- */

IO_FN void gguf_f32(const unsigned char *b, double *x) { *x = (double)io_float(io_little32(b)); }
IO_FN void gguf_f16(const unsigned char *b, double *x) { *x = gguf_half(b); }
IO_FN void gguf_bf16(const unsigned char *b, double *x) { *x = (double)io_float((uint32_t)io_little16(b) << 16); }

/* ---- tensors ---- */

/* NULL for a type that is not read. */
IO_FN void (*gguf_decoder(uint32_t type))(const unsigned char *block, double *x)
{
    static void (*const row[GGUF_TYPES])(const unsigned char *, double *) = {
        [GGUF_F32] = gguf_f32,       [GGUF_F16] = gguf_f16,       [GGUF_BF16] = gguf_bf16,   [GGUF_Q4_0] = gguf_q4_0,
        [GGUF_Q4_1] = gguf_q4_1,     [GGUF_Q5_0] = gguf_q5_0,     [GGUF_Q5_1] = gguf_q5_1,   [GGUF_Q8_0] = gguf_q8_0,
        [GGUF_Q2_K] = gguf_q2_k,     [GGUF_Q3_K] = gguf_q3_k,     [GGUF_Q4_K] = gguf_q4_k,   [GGUF_Q5_K] = gguf_q5_k,
        [GGUF_Q6_K] = gguf_q6_k,     [GGUF_IQ4_NL] = gguf_iq4_nl, [GGUF_TQ2_0] = gguf_tq2_0, [GGUF_MXFP4] = gguf_mxfp4,
        [GGUF_IQ4_XS] = gguf_iq4_xs,
    };
    return type < GGUF_TYPES ? row[type] : NULL;
}

/* false with a sentence that names the tensor. */
IO_FN bool gguf_matrix_open(const gguf_tensor *t, gguf_matrix *m, char *why)
{
    memset(m, 0, sizeof *m);
    if (!t) return io_fail(why, "GGUF", "the tensor is missing");
    m->type = gguf_type_of(t->type);
    m->decode = gguf_decoder(t->type);
    if (!m->decode)
        return io_fail(why, t->name, "it is %s, which is not read; Q2_K to Q6_K, Q4_0, Q8_0, MXFP4 and others are",
                       m->type ? m->type->name : "of an unknown type");
    m->columns = t->rank ? t->shape[t->rank - 1] : 1;
    m->rows = m->columns ? t->elements / m->columns : 0;
    m->data = t->data;
    return true;
}

/* out[columns] = a row. */
IO_FN void gguf_row(const gguf_matrix *m, int64_t row, float *out)
{
    double x[GGUF_LARGE];
    const int n = m->type->elements;
    const unsigned char *block = m->data + row * (m->columns / n) * m->type->bytes;
    for (int64_t c = 0; c < m->columns; c += n, block += m->type->bytes) {
        m->decode(block, x);
        for (int i = 0; i < n; i++) *out++ = io_odd(x[i]);
    }
}

#endif /* IO_GGUF_BLOCKS_H */
