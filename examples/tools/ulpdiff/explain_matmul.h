/* explain_matmul.h - a product that is explained: its operands, the orders of sums that are tried, the last result.
 * SPDX-License-Identifier: MIT
 */
#ifndef ULPDIFF_EXPLAIN_MATMUL_H
#define ULPDIFF_EXPLAIN_MATMUL_H

#include "ulpdiff.h"

#define MM_SAMPLE_MACS (INT64_C(1) << 20) /* per hypothesis in the first round */

/* key[] of a hypothesis */
enum { MM_KEY_INPUTS, MM_KEY_SUMS, MM_KEY_OUTPUT };

enum { MM_SUMS = 400, MM_CASTS = 8, MM_OUTPUTS = 12 };

/* ---- orders of sums ---- */

typedef enum mm_reference { MM_LIBRARY, MM_FMA_CHAIN, MM_FLOAT64, MM_PARTS } mm_reference; /* who computes it */

typedef struct mm_sums {
    char text[96]; /* for trn_numerics_parse, or a name */
    char value[UD_ASPECTS][48];
    mm_reference reference;
    int64_t block; /* MM_FMA_CHAIN: so many of K in a chain; 0: all. MM_PARTS: so many bfloat16 numbers make a number */
    bool core, double_row;
    int surprise;
} mm_sums;

typedef struct mm_rounding {
    trn_format format;
    trn_rounding rounding;
} mm_rounding;

/* ---- the operands that take part: some rows of a, some columns of b ---- */

typedef struct mm_operands {
    int64_t m, n, k;
    float *a, *b;          /* [m, k], [k, n] */
    void *code_a, *code_b; /* the same in the formats of a hypothesis */
} mm_operands;

typedef struct mm_context {
    const ud_job *job;
    float *a, *b; /* [m, k], [k, n]: as the product takes them */
    int64_t m, n, k;
    trn_format format_a, format_b;
    trn_format cast[MM_CASTS]; /* [0] unset: as they are */
    int casts, sums, outputs;
    mm_sums sum[MM_SUMS];
    mm_rounding output[MM_OUTPUTS];
    int64_t *row, *column, rows, columns; /* the sample */
    mm_operands part[2];                  /* sample, whole */
    float *result;                        /* of the last product in binary32, before its output cast */
    int key[3];                           /* which that was: inputs, sums, whole; -1: none */
    bool refused;
} mm_context;

/* ---- explain_products.c ---- */

void mm_make_part(mm_context *c, bool whole);
void mm_free_parts(mm_context *c);
bool mm_run(void *context, const ud_hypothesis *h, bool whole, float *value);

#endif /* ULPDIFF_EXPLAIN_MATMUL_H */
