/* formats.h - what --format names: two number formats, the mode in which they are multiplied, and how.
 * SPDX-License-Identifier: MIT
 */
#ifndef BENCH_COMMON_FORMATS_H
#define BENCH_COMMON_FORMATS_H

#include <trnmath/trn_cost.h>
#include <trnmath/trn_matmul.h>
#include <trnmath/trn_numerics.h>
#include <trnmath/trn_tensor.h>

typedef struct tb_format {
    const char *name;
    trn_format a, b;
    trn_matmul_mode mode;
    trn_generation generation; /* whose engine this host computes as; 0 = the default */
    const char *numerics;      /* settings on top of the user's; NULL = none */
    const char *text;          /* one phrase */
} tb_format;

enum { TB_MAX_FORMATS = 40 };

const tb_format *tb_format_at(int index); /* NULL after the last one */
int tb_format_index(const tb_format *format);
/* By its own name, or by any name of a number format: the fastest mode that multiplies it with itself. NULL: unknown.
 */
const tb_format *tb_format_find(const char *name);

/* The question to the cost model, but for sizes and machine. */
trn_matmul_cost_args tb_format_cost(const tb_format *format);
/* Published TFLOPS of a whole system for exactly this; NaN when nobody publishes them. */
double tb_format_spec_tflops(const tb_format *format, const trn_system_spec *spec);
/* The user's numerics (NULL: the defaults) with the format's own settings. */
trn_status tb_format_numerics(const tb_format *format, const trn_numerics *user, trn_numerics *result);

/* ---- matrices in such a format ---- */

/* a [M, K] and b [K, N]; MX: a_scale [M, K/32], b_scale [N, K/32]. All data are malloc'd. */
typedef struct tb_operands {
    trn_tensor a, b, a_scale, b_scale;
} tb_operands;

/* From F32, BF16 or F16: cast nearest even; MX: quantised; int8: 127 / the largest magnitude, then cast. */
bool tb_operands_make(const tb_format *format, const trn_tensor *a, const trn_tensor *b, tb_operands *x,
                      trn_error *error);
void tb_operands_free(tb_operands *x);
/* The product of x; dst is F32, or I32 for int8. */
trn_matmul_args tb_operands_product(const tb_format *format, const tb_operands *x, void *dst,
                                    const trn_numerics *numerics);

/* A packed copy in another format, nearest even; data is malloc'd (NULL: no memory). */
trn_tensor tb_cast(const trn_tensor *src, trn_format format);

#endif /* BENCH_COMMON_FORMATS_H */
