/* matrix_units.h - reads tests/golden/tensor_core_*.txt, results of other makers' matrix units, and asks the same here.
 * SPDX-License-Identifier: MIT
 *
 * Up to four vectors of one kind are one product: row i of a and column i of b are vector i, so that the diagonal of
 * the result holds the answers. Each answer goes to .compared.
 */
#ifndef PUBLISHED_MATRIX_UNITS_H
#define PUBLISHED_MATRIX_UNITS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trnmath/trn_matmul.h"
#include "twin/cases.h"

enum { UNITS_LINE = 1024, UNITS_BATCH = 4, UNITS_DEEPEST = 128 };

/* The files, with the number of their vectors. */
typedef enum units_how { UNITS_PLAIN, UNITS_MMA_FP8, UNITS_SCALED } units_how;
static const struct units_file {
    const char *name, *unit;
    int vectors;
    units_how how;
} units_files[] = {
    { "v100", "NVIDIA V100", 100, UNITS_PLAIN },
    { "a100", "NVIDIA A100", 300, UNITS_PLAIN },
    { "a2", "NVIDIA A2", 300, UNITS_PLAIN },
    { "ada", "NVIDIA RTX 1000 Ada", 500, UNITS_PLAIN },
    { "h100", "NVIDIA H100", 500, UNITS_PLAIN },
    { "h200", "NVIDIA H200", 300, UNITS_PLAIN },
    { "b200", "NVIDIA B200", 300, UNITS_PLAIN },
    { "b200_mma_fp8", "NVIDIA B200, FP8 by mma.sync", 200, UNITS_MMA_FP8 },
    { "mma_sim_nv", "NVIDIA tensor cores, by MMA-Sim", 648, UNITS_PLAIN },
    { "mma_sim_amd", "AMD matrix cores, by MMA-Sim", 634, UNITS_PLAIN },
    { "mma_sim_mx", "NVIDIA tensor cores with block scales, by MMA-Sim", 108, UNITS_SCALED },
};
enum { UNITS_FILES = sizeof units_files / sizeof units_files[0] };

typedef struct units_vector {
    char preset[32], format[2][24], code[2][UNITS_LINE], scale[2][8];
    unsigned c, d;
} units_vector;

typedef struct units_batch {
    units_vector v[UNITS_BATCH];
    int count, k;
    trn_format format[2];
    uint32_t a[UNITS_BATCH * UNITS_DEEPEST], b[UNITS_DEEPEST * UNITS_BATCH]; /* memory for elements of any size */
    uint32_t a_down[UNITS_DEEPEST * UNITS_BATCH];
    uint8_t scale[2][UNITS_BATCH][2];
    float dst[UNITS_BATCH * UNITS_BATCH];
    trn_error error;
    void (*compared)(void *user, const char *what, const units_vector *v, uint32_t expected, uint32_t got);
    void *user;
} units_batch;

/* ---- operands ---- */

static inline void units_put(uint32_t *memory, trn_format format, int at, uint32_t code)
{
    const size_t bytes = trn_format_bytes(format);
    memcpy((unsigned char *)memory + (size_t)at * bytes, &code, bytes); /* little endian */
}

static inline uint32_t units_code(const units_vector *v, int which, int k, size_t bytes)
{
    char digits[9] = "";
    memcpy(digits, v->code[which] + (size_t)k * 2 * bytes, 2 * bytes);
    return (uint32_t)strtoul(digits, NULL, 16);
}

/* False when the vectors name no format or are too deep. */
static inline bool units_fill(units_batch *t)
{
    const int n = t->count;
    for (int which = 0; which < 2; which++) {
        t->format[which] = trn_format_from_name(t->v[0].format[which]);
        if (!t->format[which]) return false;
    }
    const size_t bytes[2] = { trn_format_bytes(t->format[0]), trn_format_bytes(t->format[1]) };
    t->k = (int)(strlen(t->v[0].code[0]) / 2 / bytes[0]);
    if (t->k > UNITS_DEEPEST || strlen(t->v[0].code[1]) != 2 * bytes[1] * (size_t)t->k) return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < t->k; k++) {
            const uint32_t x = units_code(&t->v[i], 0, k, bytes[0]);
            units_put(t->a, t->format[0], i * t->k + k, x);
            units_put(t->a_down, t->format[0], k * n + i, x);
            units_put(t->b, t->format[1], k * n + i, units_code(&t->v[i], 1, k, bytes[1]));
        }
    return true;
}

static inline void units_start(units_batch *t, bool accumulate)
{
    for (int i = 0; i < t->count * t->count; i++) t->dst[i] = 1.0f;
    for (int i = 0; accumulate && i < t->count; i++) t->dst[i * t->count + i] = cases_float_of(t->v[i].c);
}

static inline void units_compare(const units_batch *t, const char *what)
{
    for (int i = 0; i < t->count; i++)
        t->compared(t->user, what, &t->v[i], t->v[i].d, cases_bits_of(t->dst[i * t->count + i]));
}

/* ---- one batch, in each of the ways ---- */

static inline trn_matmul_args units_product(units_batch *t, const trn_numerics *n, trn_isa isa)
{
    trn_matmul_args args;
    memset(&args, 0, sizeof args);
    args.dst = trn_tensor_2d(TRN_F32, t->dst, t->count, t->count);
    args.a = trn_tensor_2d(t->format[0], t->a, t->count, t->k);
    args.b = trn_tensor_2d(t->format[1], t->b, t->k, t->count);
    args.numerics = n;
    args.isa = isa;
    args.error = &t->error;
    return args;
}

static inline bool units_matmul(units_batch *t, const trn_numerics *n, trn_isa isa, bool accumulate)
{
    trn_matmul_args args = units_product(t, n, isa);
    args.generation = TRN_TRAINIUM3;
    args.accumulate = accumulate;
    units_start(t, accumulate);
    if (trn_matmul(&args) != TRN_OK) return false;
    units_compare(t, "matmul");
    return true;
}

static inline bool units_instruction(units_batch *t, const trn_numerics *n, bool accumulate)
{
    trn_nc_matmul_args args;
    memset(&args, 0, sizeof args);
    args.generation = TRN_TRAINIUM3;
    args.dst = trn_tensor_2d(TRN_F32, t->dst, t->count, t->count);
    args.stationary = trn_tensor_2d(t->format[0], t->a_down, t->k, t->count);
    args.moving = trn_tensor_2d(t->format[1], t->b, t->k, t->count);
    args.accumulate = accumulate;
    args.numerics = n;
    args.error = &t->error;
    units_start(t, accumulate);
    if (trn_nc_matmul(&args) != TRN_OK) return false;
    units_compare(t, "nc_matmul");
    return true;
}

/* FP8 through mma.sync on a B200: F16 tensor cores from zero, then C is added (the file says how that was found). */
static inline bool units_mma_fp8(units_batch *t, const trn_numerics *n, trn_isa isa)
{
    enum { MOST = UNITS_BATCH * UNITS_DEEPEST };
    uint16_t half[2][MOST];
    uint32_t *const memory[2] = { t->a, t->b };
    if (trn_format_bytes(t->format[0]) != 1 || trn_format_bytes(t->format[1]) != 1) return false;
    for (int which = 0; which < 2; which++) {
        const unsigned char *code = (const unsigned char *)memory[which];
        for (size_t i = 0; i < MOST; i++) {
            const float x = trn_decode(t->format[which], code[i]);
            half[which][i] = trn_f16_from_f32(x);
        }
        memcpy(memory[which], half[which], sizeof half[which]);
    }
    trn_matmul_args args = units_product(t, n, isa);
    args.a.format = args.b.format = TRN_F16;
    if (trn_matmul(&args) != TRN_OK) return false;
    for (int i = 0; i < t->count; i++) t->dst[i * t->count + i] += cases_float_of(t->v[i].c);
    units_compare(t, "mma.sync");
    return true;
}

/* Block scales: two blocks of 32 along K, each with a scale of its own. */
static inline bool units_scaled(units_batch *t, const trn_numerics *n, trn_isa isa)
{
    trn_matmul_args args = units_product(t, n, isa);
    if (t->k != 64) return false;
    for (int i = 0; i < t->count; i++)
        for (int which = 0; which < 2; which++) {
            const unsigned long both = strtoul(t->v[i].scale[which], NULL, 16);
            t->scale[which][i][0] = (uint8_t)(both >> 8);
            t->scale[which][i][1] = (uint8_t)both;
        }
    args.a_scale = trn_tensor_2d(TRN_F8_E8M0, t->scale[0], t->count, 2);
    args.b_scale = trn_tensor_2d(TRN_F8_E8M0, t->scale[1], t->count, 2);
    args.accumulate = true;
    units_start(t, true);
    if (trn_matmul(&args) != TRN_OK) return false;
    units_compare(t, "matmul with scales");
    return true;
}

/* ---- files ---- */

/* 1: there is one more; 0: the end; -1: the line is none. */
static inline int units_next(FILE *file, units_how how, units_vector *v)
{
    char line[2 * UNITS_LINE];
    do
        if (!fgets(line, sizeof line, file)) return 0;
    while (line[0] == '#');
    if (how == UNITS_SCALED)
        return sscanf(line, "%31s %23s %23s %1023s %1023s %7s %7s %x %x", v->preset, v->format[0], v->format[1],
                      v->code[0], v->code[1], v->scale[0], v->scale[1], &v->c, &v->d) == 9
                   ? 1
                   : -1;
    return sscanf(line, "%31s %23s %23s %1023s %1023s %x %x", v->preset, v->format[0], v->format[1], v->code[0],
                  v->code[1], &v->c, &v->d) == 7
               ? 1
               : -1;
}

static inline bool units_alike(const units_vector *v, const units_vector *w)
{
    return strcmp(v->preset, w->preset) == 0 && strcmp(v->format[0], w->format[0]) == 0 &&
           strcmp(v->format[1], w->format[1]) == 0 && strlen(v->code[0]) == strlen(w->code[0]);
}

/* Hands all vectors of a file to check, in batches of one kind. How many there were; -1 when the file cannot be read,
 * -2 when a line is no vector or check returns false. */
static inline int units_read(const char *directory, const struct units_file *f, units_batch *t,
                             bool (*check)(units_batch *t, void *user), void *user)
{
    static units_vector v;
    char path[1024];
    int seen = 0, next;
    bool good = true;
    snprintf(path, sizeof path, "%s/tensor_core_%s.txt", directory, f->name);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    t->count = 0;
    t->error.text[0] = '\0';
    while (good && (next = units_next(file, f->how, &v)) > 0) {
        if (t->count && (t->count == UNITS_BATCH || !units_alike(&t->v[0], &v))) {
            good = units_fill(t) && check(t, user);
            t->count = 0;
        }
        t->v[t->count++] = v;
        seen++;
    }
    if (good && t->count) good = units_fill(t) && check(t, user);
    fclose(file);
    return good && next == 0 ? seen : -2;
}

#endif /* PUBLISHED_MATRIX_UNITS_H */
