/* num.h - a number as it should be, and what roundings may have made of it: references that explain their errors.
 * SPDX-License-Identifier: MIT
 *
 *     num x = num_of(3.0), s = num_f32(num_mul(x, x));     // 9, and at most half an ulp of binary32 beside it
 *     s = num_round(s, TRN_BF16, NUM_OUTPUT);              // at most half an ulp of bfloat16 more
 *
 * DOES: carries binary64 values (exact for all that is asked here) and, for each source of error, a bound that holds
 *     and a variance that is expected. A reference written with it, one call per rounding of the kernel, is also its
 *     error bound, element by element, and says which rounding or table the error comes from.
 * DOES NOT: know that two errors are one and the same, so that what cancels on the engine is counted twice here: bounds
 *     stay bounds.
 */
#ifndef KERNELS_NUM_H
#define KERNELS_NUM_H

#include <trnmath/trn_format.h>

typedef enum num_source {
    NUM_INPUT,      /* inputs that the kernel quantises */
    NUM_CAST,       /* results between instructions in a narrow format */
    NUM_ARITHMETIC, /* binary32 on the Vector, Scalar and GpSimd engines */
    NUM_SUM,        /* binary32 sums of the Tensor engine */
    NUM_TABLE,      /* the Scalar engine's functions */
    NUM_OUTPUT,     /* the output's format */
    NUM_SOURCES
} num_source;

typedef struct num {
    double v;
    double bound[NUM_SOURCES];    /* |what the engine has - v| is at most their sum */
    double variance[NUM_SOURCES]; /* of that difference, were each rounding a uniform random number */
} num;

/* A matrix of operands; bound and variance null: exact. Both go to one source. */
typedef struct num_matrix {
    const double *v, *bound, *variance; /* [K, N] */
    num_source source;
} num_matrix;

/* Functions of the Scalar engine. */
typedef enum num_function { NUM_EXP, NUM_RSQRT, NUM_SILU, NUM_GELU, NUM_SOFTPLUS } num_function;

num num_of(double v);
double num_bound(const num *a); /* of all sources */

/* Without a rounding: what follows rounds. */
num num_add(num a, num b);
num num_subtract(num a, num b);
num num_mul(num a, num b);
num num_square(num a);
num num_times(num a, double exact);
num num_maximum(num a, num b);
num num_divide(num a, num b);

double num_ulp(trn_format format, double v);
num num_round(num a, trn_format format, num_source source);
num num_f32(num a); /* num_round to binary32, as an engine's operation does */

/* By the Scalar engine's tables: cubic expansions about the centres of buckets of a quarter (or eight an octave). */
num num_table(num_function f, num a);
/* The sum of n numbers in ascending order, rounded after each. */
num num_sum(const num *a, int64_t n);
/* out[n] = sum over k of a[k] b[k, n], each product passing `depth` roundings of the array (0: exact). */
void num_dots(num *out, const num *a, const num_matrix *b, int64_t k, int64_t n, int depth);
/* Four chains of the array's rows, their merge, and one sum in PSUM per tile. */
int num_depth(int64_t rows, int64_t tiles);

#endif
