/* trn_tolerance.h - how far a product may be from the exact one: a bound, and what is likely.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_tolerance.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static uint16_t a[64 * 512], b[512 * 64];
 *         static float c[64 * 64], worst[64 * 64], sigma[64 * 64];
 *         trn_error error;
 *         const trn_matmul_args product = { .dst = trn_tensor_2d(TRN_F32, c, 64, 64), .error = &error,
 *                                           .a = trn_tensor_2d(TRN_BF16, a, 64, 512),
 *                                           .b = trn_tensor_2d(TRN_BF16, b, 512, 64) };
 *         const trn_tolerance_args args = { .matmul = &product, .worst = trn_tensor_2d(TRN_F32, worst, 64, 64),
 *                                           .sigma = trn_tensor_2d(TRN_F32, sigma, 64, 64), .error = &error };
 *         if (trn_tolerance(&args)) return fprintf(stderr, "%s\n", error.text), 1;
 *         return 0; // |c - exact| <= worst always, and <= 3 sigma in more than 99 of 100 elements
 *     }
 *
 * DOES: for each element of trn_matmul's result two numbers that follow from the roundings that these numerics really
 *     make on their way (products, chains or blocks, merges, PSUM, the cast to dst) and from the operands' own values:
 *     the sums are followed step by step, and each step that rounds adds what such a rounding is likely to lose.
 * DOES NOT: multiply, know what another library's order does (add its own tolerance), or follow a whole kernel.
 *
 * CONTENTS
 *   array/tolerance.h: how far a product may be from the exact one.
 *     trn_tolerance_args, trn_tolerance
 *
 * KNOWN FROM: Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., chapter 3 (the bound); Higham and
 *     Mary, "A new approach to probabilistic rounding error analysis", SISC 41(5), 2019 (independent roundings);
 *     tests/unit/test_tolerance_sigma.c (every preset, 15 kinds of data).
 */
#ifndef TRN_TOLERANCE_H
#define TRN_TOLERANCE_H

#include "base/words_begin.h"

#include "array/tolerance.h"

#include "base/words_end.h"

#endif /* TRN_TOLERANCE_H */
