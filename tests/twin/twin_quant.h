/* twin_quant.h - quantised weights the other way round: dense integers, zeros and scales, packed as the writers of each
 * format pack them, bit by bit, and what each element is worth.
 * SPDX-License-Identifier: MIT
 *
 * Nothing here comes from trnmath/ or examples/: names, orders and offsets are those of the formats' documents.
 */
#ifndef TWIN_QUANT_H
#define TWIN_QUANT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "twin/cases.h"

enum { TWIN_ROWS = 40, TWIN_COLUMNS = 200, TWIN_GROUPS = 16 };

typedef struct twin_quant {
    int rows, columns, groups, group, bits;
    int code[TWIN_ROWS][TWIN_COLUMNS];
    int zero[TWIN_ROWS][TWIN_GROUPS];
    uint32_t scale[TWIN_ROWS][TWIN_GROUPS]; /* as stored */
    int scale_bytes, scale_mantissa;        /* binary16, bfloat16, binary32 */
    int of[TWIN_COLUMNS];                   /* the group of a column */
} twin_quant;

/* ---- values ---- */

/* A stored IEEE number of 16 or 32 bits with so many bits of mantissa. */
static inline double twin_quant_float(uint32_t stored, int bytes, int mantissa)
{
    const int width = 8 * bytes - 1 - mantissa, bias = (1 << (width - 1)) - 1;
    const int exponent = (int)(stored >> mantissa) & ((1 << width) - 1);
    const double m = (double)(stored & ((1u << mantissa) - 1)), sign = stored >> (8 * bytes - 1) ? -1 : 1;
    if (exponent == (1 << width) - 1) return m > 0 ? NAN : sign * HUGE_VAL;
    if (exponent == 0) return sign * ldexp(m, 1 - bias - mantissa);
    return sign * ldexp(m + ldexp(1, mantissa), exponent - bias - mantissa);
}

static inline double twin_quant_scale(const twin_quant *q, int row, int group)
{
    return twin_quant_float(q->scale[row][group], q->scale_bytes, q->scale_mantissa);
}

static inline double twin_quant_value(const twin_quant *q, int row, int column)
{
    const int group = q->of[column];
    return (double)(q->code[row][column] - q->zero[row][group]) * twin_quant_scale(q, row, group);
}

/* Bits of binary32: cut off, and odd where something was lost. Units of the last place are at least 2^-149. */
static inline uint32_t twin_quant_odd(double v)
{
    const uint32_t sign = signbit(v) ? 0x80000000u : 0;
    int exponent;
    if (isnan(v)) return 0x7fc00000u;
    if (isinf(v)) return sign | 0x7f800000u;
    frexp(v, &exponent);
    const int unit = exponent - 24 < -149 ? -149 : exponent - 24;
    const double places = ldexp(fabs(v), -unit), whole = floor(places);
    uint64_t bits = (uint64_t)whole;
    if (whole != places) bits |= 1;
    if (exponent > 128) return sign | 0x7f7fffffu;
    if (bits >> 23) bits = (bits & 0x7fffff) | (uint64_t)(unit + 150) << 23;
    return sign | (uint32_t)bits;
}

/* ---- words ---- */

/* `bits` bits from bit `at` on, of words that are `step` apart. */
static inline void twin_quant_put(unsigned char *words, long step, long at, int bits, int number)
{
    for (int b = 0; b < bits; b++, at++) {
        unsigned char *byte = words + 4 * (at / 32 * step) + at % 32 / 8;
        *byte = (unsigned char)(*byte | (number >> b & 1) << at % 8);
    }
}

static inline long twin_quant_words(int numbers, int bits) { return (numbers * bits + 31L) / 32; }

/* AutoAWQ: outputs 0 2 4 6 1 3 5 7 of eight in a word, [inputs, outputs/8]. */
static inline void twin_quant_awq(const twin_quant *q, unsigned char *qweight, unsigned char *qzeros)
{
    static const int order[8] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    const long words = q->rows / 8;
    for (int i = 0; i < q->rows; i++) {
        const int row = i / 8 * 8 + order[i % 8];
        for (int k = 0; k < q->columns; k++)
            twin_quant_put(qweight + 4 * (k * words + i / 8), 1, i % 8 * 4, 4, q->code[row][k]);
        for (int g = 0; g < q->groups; g++)
            twin_quant_put(qzeros + 4 * (g * words + i / 8), 1, i % 8 * 4, 4, q->zero[row][g]);
    }
}

/* AutoGPTQ: inputs one after the other down a column of words; zeros along a row of words, less `less`. */
static inline void twin_quant_gptq(const twin_quant *q, int less, unsigned char *qweight, unsigned char *qzeros)
{
    const long words = twin_quant_words(q->rows, q->bits);
    for (int r = 0; r < q->rows; r++) {
        for (int k = 0; k < q->columns; k++)
            twin_quant_put(qweight + 4 * r, q->rows, (long)k * q->bits, q->bits, q->code[r][k]);
        for (int g = 0; g < q->groups; g++)
            twin_quant_put(qzeros + 4 * g * words, 1, (long)r * q->bits, q->bits, q->zero[r][g] - less);
    }
}

/* compressed-tensors: so many numbers to a word, none of them in two. */
static inline long twin_quant_share(int numbers, int bits) { return (numbers + 32 / bits - 1) / (32 / bits); }

static inline long twin_quant_packed_bit(int number, int bits)
{
    return number / (32 / bits) * 32L + number % (32 / bits) * bits;
}

static inline void twin_quant_packed(const twin_quant *q, unsigned char *packed, unsigned char *zeros)
{
    const long words = twin_quant_share(q->columns, q->bits);
    for (int r = 0; r < q->rows; r++) {
        for (int k = 0; k < q->columns; k++)
            twin_quant_put(packed + 4 * r * words, 1, twin_quant_packed_bit(k, q->bits), q->bits, q->code[r][k]);
        for (int g = 0; g < q->groups; g++)
            twin_quant_put(zeros + 4 * g, q->groups, twin_quant_packed_bit(r, q->bits), q->bits, q->zero[r][g]);
    }
}

/* ---- a matrix ---- */

static inline uint32_t twin_quant_draw_scale(uint64_t *rng, const twin_quant *q)
{
    const uint32_t any = cases_u32(rng) >> (32 - 8 * q->scale_bytes);
    if (cases_one_in(rng, 8)) return any; /* NaN, infinity, negative, huge */
    const int width = 8 * q->scale_bytes - 1 - q->scale_mantissa;
    return (any & ((1u << q->scale_mantissa) - 1)) | ((1u << (width - 1)) - 4 - (uint32_t)cases_below(rng, 8))
                                                         << q->scale_mantissa;
}

/* rows, columns, group and bits are given; `largest` of the zeros is, too. An order is drawn where it is asked for. */
static inline void twin_quant_draw(uint64_t *rng, twin_quant *q, int largest, bool ordered)
{
    static const int bytes[3] = { 2, 2, 4 }, mantissa[3] = { 10, 7, 23 };
    const int type = cases_below(rng, 3), ends = cases_below(rng, 3);
    q->scale_bytes = bytes[type];
    q->scale_mantissa = mantissa[type];
    q->groups = (q->columns + q->group - 1) / q->group;
    for (int k = 0; k < q->columns; k++) q->of[k] = k / q->group;
    for (int k = q->columns - 1; k > 0 && ordered; k--) {
        const int other = cases_below(rng, k + 1), keep = q->of[k];
        q->of[k] = q->of[other];
        q->of[other] = keep;
    }
    for (int r = 0; r < q->rows; r++) {
        for (int k = 0; k < q->columns; k++) q->code[r][k] = cases_below(rng, 1 << q->bits);
        for (int g = 0; g < q->groups; g++) {
            q->zero[r][g] = ends == 0 ? cases_below(rng, 2) * largest : cases_below(rng, largest + 1);
            q->scale[r][g] = twin_quant_draw_scale(rng, q);
        }
    }
}

#endif /* TWIN_QUANT_H */
