/* activation_error.h - how far the Scalar engine's functions, and the ideal ones, are from the exact functions.
 * SPDX-License-Identifier: MIT
 *
 * The tests and trnbench activation share this. Errors are those of binary32 results before any output cast. In
 * ulp: |y - f(x)| in units of the last place of f(x), 2^(max(e, -126) - 23) where 2^e <= |f(x)| < 2^(e+1). Relative: to
 * |f(x)|, where that is a normal number. Only arguments in the function's valid range count, and only where f(x) rounds
 * to a finite number.
 *
 * The sums run over binary64 references (the C library's functions, whose error is a few 2^-53); what was found to be
 * worst is then settled by MPFR, where a program is compiled with it.
 */
#ifndef BENCH_COMMON_ACTIVATION_ERROR_H
#define BENCH_COMMON_ACTIVATION_ERROR_H

#include "trnmath/trn_scalar_engine.h"
#if defined(HAVE_MPFR) && HAVE_MPFR
#include <mpfr.h>
#endif

typedef struct activation_error {
    trn_act op;
    trn_act_math math;
    int64_t arguments;      /* that counted */
    int64_t wrong;          /* NaN or an infinity where a number is due, or the other way round */
    double max_ulp, ulp_at; /* the largest error in ulp, and where: x */
    double max_relative, relative_at;
    double max_absolute, absolute_at;
    double mean_ulp;
} activation_error;

/* Are the ideal functions (SLEEF), and is MPFR compiled in? */
bool activation_has_ideal(void);
bool activation_has_mpfr(void);

/* f(x) by the C library in binary64, and by MPFR rounded to binary64 (the former where there is no MPFR). prelu: param.
 * */
double activation_reference(trn_act op, float param, float x);
double activation_exact(trn_act op, float param, float x);

#if defined(HAVE_MPFR) && HAVE_MPFR
/* y = f(x), of a function that has a table, to about y's precision. */
void activation_mpfr(trn_act op, mpfr_t y, const mpfr_t x);
#endif

/* Is x in the function's valid range? */
bool activation_valid(trn_act op, float x);

/* One result's errors. False where it does not count. */
bool activation_error_of(double exact, float y, double *ulp, double *relative);

activation_error activation_error_begin(trn_act op, trn_act_math math);
/* n arguments, evaluated and compared; isa 0 = the best. */
void activation_error_add(activation_error *e, const float *x, size_t n, trn_isa isa);
/* MPFR has the last word on the worst ones. */
void activation_error_end(activation_error *e);

/* Every step-th pattern of binary32 in [first, last]; 65536 over all of them: every bfloat16 number. */
activation_error activation_error_sweep(trn_act op, trn_act_math math, uint32_t first, uint32_t last, uint32_t step);

#endif /* BENCH_COMMON_ACTIVATION_ERROR_H */
