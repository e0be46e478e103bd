/* trn_act.h - the Scalar engine's functions: their names, their tables of buckets, and how these are evaluated.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_act.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         for (int op = 0; trn_act_info_of((trn_act)op); op++) printf("%s\n", trn_act_name((trn_act)op));
 *         return trn_act_from_name("gelu_apprx_tanh") == TRN_ACT_GELU_APPRX_TANH ? 0 : 1;
 *     }
 *
 * DOES: evaluates each function of NKI's list on binary32 numbers as tables of cubics do: a bucket is found from the
 *     exponent and the top bits of x's significand; d = x - centre (exact inside the bucket); then
 *     fma(fma(fma(c3, d, c2), d, c1), d, c0). Tables are public structs, so that one fitted to a chip can be used.
 * DOES NOT: scale, add, reduce or cast (trn_scalar_engine.h), honour flush flags, or know the ideal functions.
 *
 * CONTENTS
 *   engine/act.h: activation functions: names, tables of buckets, evaluation.
 *     trn_act                           the functions; TRN_ACT_ + NKI's name in capitals
 *     trn_act_name, trn_act_from_name   NKI's spelling
 *     trn_act_info, trn_act_info_of     formula, valid range, values at -0 and infinities, outside, source
 *     trn_act_bucket, trn_act_side, trn_act_table   a table
 *     trn_act_beyond, trn_act_symmetry, trn_act_scaling   values
 *     trn_act_table_of                  the library's own table of a function
 *     trn_act_table_check               can this one be evaluated for every x?
 *     trni_act_plan, trni_act_plan_init, trni_act_run   any of them, over an array
 *
 * KNOWN FROM: NKI, "Supported Activation Functions" (documented: the list, valid ranges, sin(9.0) = 27.65); patents
 *     10740432 and 11423313 (buckets of Taylor coefficients). `measured`: exp over [-64, 0] has an error of 1.1348e-5
 *     on Trainium2 (here 1.13479e-5), reciprocal over [1, 4] 1.1984e-5 (here 1.2004e-5); fused and separate rounding of
 *     the steps give the same maxima, so that the fused one is `assumed`. The rest: each function's row.
 */
#ifndef TRN_ACT_H
#define TRN_ACT_H

#include "base/words_begin.h"

#include "engine/act.h"

#include "base/words_end.h"

#endif /* TRN_ACT_H */
