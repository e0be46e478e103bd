/* trn_scalar_engine.h - the Scalar engine's instructions: scale, add, apply a function, reduce, cast.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_scalar_engine.h>
 *     int main(void) {
 *         float x[2][2] = { { 0.0f, -1.0f }, { -2.0f, -3.0f } }, sum[2];
 *         trn_tensor t = trn_tensor_2d(TRN_F32, x, 2, 2);
 *         trn_activation_args a = { .dst = t, .src = t, .op = TRN_ACT_EXP, .reduce = sum };       // in place
 *         if (trn_activation(&a) != TRN_OK) return 1;
 *         return x[0][0] == 1.0f && sum[0] > 1.367f && sum[0] < 1.369f ? 0 : 1;
 *     }
 *
 * DOES: dst = f(src * scale + bias), binary32 inside, each operation rounded once (numerics.activation_fused: one
 *     rounding for both); sums of a partition's results in ascending order, before the output cast; the engine's
 *     accumulator registers. The function is the engine's table (trn_act.h), a table of the caller's, or, where
 *     TRN_USE_SLEEF is defined, the ideal function. All codes of 16 bits or fewer are tabulated where it
 *     pays: same bits.
 * DOES NOT: honour flush flags or numerics.reduce_order (the registers add one number after the other), or copy
 *     (trn_tensor_copy does).
 *
 * CONTENTS
 *   engine/scalar_engine.h: the instructions of the Scalar engine.
 *     trn_act_math                        the engine's tables, or ideal functions
 *     trn_scalar_state                    the engine's registers, in the caller's hands
 *     trn_activation, trn_activation_args
 *     trn_activation_reduce, trn_activation_reduce_args   the same with a reduction that is written out
 *     trn_activation_scratch_bytes        what .scratch must hold; 0 when nothing is tabulated
 *     trn_activate2, trn_activate2_args   Trainium3: two operations first, more reductions
 *
 * TRN_USE_SLEEF. Affects: TRN_ACT_MATH_SLEEF only. Issue: it takes <sleef.h>, and linking with -lsleef. Default: not
 * defined; that math is TRN_EUNSUPPORTED. Defined: functions within 1 ulp of the exact ones, the same bits on every
 * instruction set (SLEEF's finz_ and purecfma entry points). Their errors, `measured` over one float in 37: exp 0.98
 * ulp, log 0.63, sin 0.80, arctan 0.92, tanh 1.00, erf 1.00; all others, over one in 199, at most 0.501.
 *
 * KNOWN FROM: NKI, activation, activation_reduce, activate2 (documented: arithmetic in float32, registers and commands,
 *     Trainium1's limits, the six pairs); two roundings of scale and bias: `measured` (an error published for
 *     Trainium1); the sum taken before the output cast: `assumed`, and so is one order for all reductions.
 */
#ifndef TRN_SCALAR_ENGINE_H
#define TRN_SCALAR_ENGINE_H

#include "base/words_begin.h"

#include "engine/scalar_engine.h"

#include "base/words_end.h"

#endif /* TRN_SCALAR_ENGINE_H */
