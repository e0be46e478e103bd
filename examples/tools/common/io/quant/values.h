/* values.h - what quantised numbers are worth: rows of a matrix as binary32, from its codes and scales.
 * SPDX-License-Identifier: MIT
 *
 *     quant_values v;
 *     const st_tensor *part[QUANT_PARTS] = { codes, scale, second, zero };    // NULL: there is none
 *     if (!quant_open(q, part, &v, why)) return puts(why), 2;
 *     quant_at(&v, codes->data);
 *     for (int64_t r = 0; r < v.rows; r++) quant_run(&v, r, 0, v.columns, row, 1);
 *     quant_close(&v);
 *
 * A value is code times scale, in binary64: exact but for the quotient by NVFP4's divisor. It becomes binary32 cut off,
 * with its last bit set where something was lost ("round to odd"): BF16, FP8 and MX, which hold less, round that as
 * they would the value itself.
 *
 * DOES: scales are copied when it is opened, so that their files can be closed; codes are read where they stand.
 * DOES NOT: take a scale that is negative or no finite number: that is a sentence.
 *
 * CONTENTS
 *     quant_values, quant_open, quant_close   a matrix with its scales
 *     quant_at                                where its codes stand now
 *     quant_run                               a part of a row
 *     quant_code_at, quant_factor_at          a code's number; its scale, and how far that reaches
 *     quant_product                           both
 *     quant_quotient                          one rounding that a later one does not notice
 *     quant_read_scale                        a scale's numbers
 */
#ifndef IO_QUANT_VALUES_H
#define IO_QUANT_VALUES_H

#include "../odd.h"
#include "quant.h"

typedef struct quant_values {
    const quant *q;
    const st_tensor *part[QUANT_PARTS]; /* as they were when it was opened */
    const unsigned char *codes;
    int64_t rows, columns, height; /* rows of all matrices; of one */
    float value[256];              /* of a code */
    float *scale, *zero;           /* FP8, INT8; NULL: 1, 0 */
    unsigned char *raw;            /* FP4: a byte for each block */
    double *second;                /* NVFP4: one, or one for each matrix */
    int64_t seconds;
    int_groups groups; /* INT4, from copies that are its own */
    nf4 blocks;        /* NF4, likewise */
    void *copy[QUANT_PARTS];
    bool alone; /* codes without their scales */
} quant_values;

/* ---- rounding ---- */

/* A quotient as odd.h rounds to binary32, but to binary64; b > 0. */
IO_FN double quant_quotient(double a, double b)
{
    const double q = a / b, rest = fma(-q, b, a);
    uint64_t bits;
    if (rest == 0 || !isfinite(q) || q == 0) return q;
    memcpy(&bits, &q, sizeof bits);
    bits -= (rest < 0) != (q < 0); /* it was rounded away from zero */
    bits |= 1;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

/* ---- scales ---- */

IO_FN float quant_number_at(const st_tensor *t, bool power, int64_t i)
{
    const unsigned char *at = (const unsigned char *)t->data + i * (t->bits / 8);
    const uint32_t bits = (uint32_t)io_little(at, t->bits / 8);
    if (power) return trn_decode(TRN_F8_E8M0, bits);
    if (quant_is(t, "I8")) return (float)(int8_t)bits;
    if (quant_is(t, "I32")) return (float)(int32_t)bits;
    if (quant_is(t, "U8")) return (float)bits;
    return trn_decode(t->format, bits);
}

/* Memory of its own; NULL with a sentence. */
IO_FN float *quant_read_scale(const st_tensor *t, bool power, char *why)
{
    float *x = (float *)malloc(((size_t)t->elements + 1) * sizeof *x);
    if (!x) return io_fail(why, t->name, "there is not enough memory for its %lld numbers", (long long)t->elements), x;
    for (int64_t i = 0; i < t->elements; i++) {
        x[i] = quant_number_at(t, power, i);
        if (isfinite(x[i]) && x[i] >= 0) continue;
        io_fail(why, t->name, "scale %lld is %g; expected a number that is finite and not negative", (long long)i,
                (double)x[i]);
        free(x);
        return NULL;
    }
    return x;
}

IO_FN bool quant_read_zero(const st_tensor *t, float **zero, char *why)
{
    float *x = (float *)malloc(((size_t)t->elements + 1) * sizeof *x);
    *zero = x;
    if (!x) return io_fail(why, t->name, "there is not enough memory for its %lld numbers", (long long)t->elements);
    for (int64_t i = 0; i < t->elements; i++) {
        x[i] = quant_number_at(t, false, i);
        if (!(fabsf(x[i]) <= 255) || x[i] != rintf(x[i]))
            return io_fail(why, t->name, "zero point %lld is %g; expected a whole number of eight bits", (long long)i,
                           (double)x[i]);
    }
    return true;
}

/* Bytes of FP4's scales. */
IO_FN bool quant_copy_raw(const quant *q, const st_tensor *s, quant_values *v, char *why)
{
    const size_t n = (size_t)s->elements;
    const bool power = q->kind == QUANT_MXFP4;
    v->raw = (unsigned char *)malloc(n + 1);
    if (!v->raw) return io_fail(why, s->name, "there is not enough memory for its scales");
    if (n) memcpy(v->raw, s->data, n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = v->raw[i];
        if (power ? byte != MXFP4_NAN : byte < 0x7f) continue;
        return io_fail(why, s->name, "scale %lld is %s; expected a number that is not negative", (long long)i,
                       power || (byte & 0x7f) == 0x7f ? "NaN" : "negative");
    }
    return true;
}

IO_FN bool quant_read_second(const quant *q, const st_tensor *s, quant_values *v, char *why)
{
    v->seconds = s->elements;
    v->second = (double *)malloc(((size_t)v->seconds + 1) * sizeof *v->second);
    if (!v->second) return io_fail(why, s->name, "there is not enough memory for its scales");
    for (int64_t i = 0; i < v->seconds; i++) {
        v->second[i] = (double)quant_number_at(s, false, i);
        if (!isfinite(v->second[i]) || v->second[i] < 0 || (q->divides && v->second[i] == 0))
            return io_fail(why, s->name, "it is %g; expected a number that is finite and %s", v->second[i],
                           q->divides ? "positive" : "not negative");
    }
    return true;
}

/* ---- opening ---- */

IO_FN void quant_close(quant_values *v)
{
    free(v->scale);
    free(v->zero);
    free(v->raw);
    free(v->second);
    for (int i = 0; i < QUANT_PARTS; i++) free(v->copy[i]);
    memset(v, 0, sizeof *v);
}

IO_FN float quant_value_of(const quant *q, int code)
{
    if (q->kind == QUANT_INT8) return (float)(int8_t)code;
    if (q->kind == QUANT_INT4) return (float)code;
    return q->kind == QUANT_FP8 ? trn_decode(q->codes.format, (uint32_t)code) : mxfp4_value(code);
}

/* INT4 and NF4: their rooms look at all parts; what is not their codes is copied. */
IO_FN bool quant_open_room(const quant *q, const st_tensor *const part[QUANT_PARTS], quant_values *v, char *why)
{
    st_tensor own[QUANT_PARTS];
    const st_tensor *to[QUANT_PARTS] = { NULL };
    for (int i = 0; i < QUANT_PARTS; i++) {
        if (!part[i] && i != QUANT_CODES) continue;
        own[i] = part[i] ? *part[i] : q->codes;
        to[i] = &own[i];
        const size_t size = (size_t)own[i].elements * (size_t)own[i].bits / 8;
        if (i == QUANT_CODES || !own[i].data) continue;
        v->copy[i] = malloc(size + 1);
        if (!v->copy[i]) return io_fail(why, own[i].name, "there is not enough memory for its %zu bytes", size);
        own[i].data = memcpy(v->copy[i], own[i].data, size);
    }
    if (q->kind == QUANT_INT4) return quant_open_groups(q, to, &v->groups, why);
    if (!quant_open_nf4(q, to, &v->blocks, why)) return false;
    for (int i = 0; i < NF4_CODES; i++) v->value[i] = v->blocks.table[i];
    return true;
}

IO_FN bool quant_open_parts(const quant *q, const st_tensor *const part[QUANT_PARTS], quant_values *v, char *why)
{
    const st_tensor *s = part[QUANT_SCALE], *second = part[QUANT_SECOND], *zero = part[QUANT_ZERO];
    const bool four = q->kind == QUANT_MXFP4 || q->kind == QUANT_NVFP4;
    if (q->kind == QUANT_INT4 || q->kind == QUANT_NF4) return quant_open_room(q, part, v, why);
    if (four && !quant_copy_raw(q, s, v, why)) return false;
    if (!four && s && (v->scale = quant_read_scale(s, q->powers, why)) == NULL) return false;
    if (second && !quant_read_second(q, second, v, why)) return false;
    return !zero || quant_read_zero(zero, &v->zero, why);
}

/* q->wrong must be NULL; `q` outlives *v. Parts have their data; the codes' may be told later. After a failure there is
 * nothing to close. */
IO_FN bool quant_open(const quant *q, const st_tensor *const part[QUANT_PARTS], quant_values *v, char *why)
{
    const st_tensor *t = &q->view;
    memset(v, 0, sizeof *v);
    v->q = q;
    memcpy(v->part, part, sizeof v->part);
    v->columns = t->rank >= 1 ? t->shape[t->rank - 1] : 1;
    v->height = t->rank >= 2 ? t->shape[t->rank - 2] : 1;
    v->rows = v->columns ? t->elements / v->columns : 0;
    v->codes = part[QUANT_CODES] ? (const unsigned char *)part[QUANT_CODES]->data : NULL;
    for (int i = 0; i < 256; i++) v->value[i] = quant_value_of(q, i);
    if (quant_open_parts(q, part, v, why)) return true;
    quant_close(v);
    return false;
}

IO_FN void quant_at(quant_values *v, const void *codes)
{
    v->codes = v->groups.code.words = v->blocks.codes = (const unsigned char *)codes;
}

/* ---- elements: `row` counts over all matrices ---- */

IO_FN int quant_code_at(const quant_values *v, int64_t row, int64_t column)
{
    const int64_t at = row * v->columns + column;
    if (v->q->kind == QUANT_INT4) return int_groups_code(&v->groups, row, column);
    if (v->q->kind == QUANT_NF4) return nf4_code(&v->blocks, row, column);
    if (v->q->kind == QUANT_FP8 || v->q->kind == QUANT_INT8) return v->codes[at];
    return at % 2 ? v->codes[at / 2] >> 4 : v->codes[at / 2] & 15;
}

typedef struct quant_factor { /* a number is (code - zero) * scale / over */
    double scale, over, zero;
    int64_t run;  /* so many columns from here on have it */
    bool rounded; /* to binary32, as the format itself has it */
} quant_factor;

IO_FN quant_factor quant_factor_of_groups(const int_groups *m, int64_t row, int64_t column)
{
    const int64_t group = int_groups_of(m, column);
    const quant_factor f = { (double)int_groups_scale(m, row, group), 1, int_groups_zero(m, row, group),
                             int_groups_run(m, column), false };
    return f;
}

IO_FN quant_factor quant_factor_of_blocks(const nf4 *m, int64_t row, int64_t column)
{
    const int64_t at = row * m->columns + column, left = m->block - at % m->block, all = m->columns - column;
    const quant_factor f = { (double)nf4_absmax(m, at / m->block), 1, 0, left < all ? left : all, true };
    return f;
}

IO_FN quant_factor quant_factor_at(const quant_values *v, int64_t row, int64_t column)
{
    const quant *q = v->q;
    const int64_t block = q->kind == QUANT_NVFP4 ? NVFP4_BLOCK : MXFP4_BLOCK;
    quant_factor f = { 1, 1, 0, block - column % block, false };
    if (q->kind == QUANT_INT4) return quant_factor_of_groups(&v->groups, row, column);
    if (q->kind == QUANT_NF4) return quant_factor_of_blocks(&v->blocks, row, column);
    if (q->kind == QUANT_FP8 || q->kind == QUANT_INT8) {
        const int64_t group = quant_grid_group(&q->grid, row, column);
        f.run = quant_grid_columns_left(&q->grid, column);
        if (v->scale) f.scale = (double)v->scale[group];
        if (v->zero) f.zero = (double)v->zero[group];
        return f;
    }
    const int byte = v->raw[row * (v->columns / block) + column / block];
    if (q->kind == QUANT_MXFP4) return f.scale = ldexp(1, byte - 127), f;
    const double second = v->second[v->seconds > 1 ? row / v->height : 0];
    f.scale = (double)trn_decode(TRN_F8_E4M3FN, (uint32_t)byte);
    if (q->divides)
        f.over = second;
    else
        f.scale *= second;
    return f;
}

/* code times scale, rounded to odd where binary64 does not hold it. */
IO_FN double quant_product(const quant_factor *f, double code)
{
    const double product = (code - f->zero) * f->scale;
    if (f->rounded) return (double)(float)product;
    return f->over == 1 ? product : quant_quotient(product, f->over);
}

/* x[0], x[step], ... = n elements along a row. */
IO_FN void quant_run(const quant_values *v, int64_t row, int64_t column, int64_t n, float *x, int64_t step)
{
    while (n > 0) {
        const quant_factor f = quant_factor_at(v, row, column);
        const int64_t run = f.run < n ? f.run : n;
        for (int64_t i = 0; i < run; i++, x += step) {
            const double code = (double)v->value[quant_code_at(v, row, column + i)];
            *x = v->alone ? (float)(code - f.zero) : io_odd(quant_product(&f, code));
        }
        column += run;
        n -= run;
    }
}

#endif /* IO_QUANT_VALUES_H */
