/* trn_mx.h - block scaling: 32 elements share a power of two (MXFP8, MXFP6, MXFP4, MXINT8).
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_mx.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         static float x[2 * 64];
 *         static uint8_t code[2 * 64], scale[2 * 2];
 *         for (int i = 0; i < 2 * 64; i++) x[i] = (float)(i - 60);
 *         trn_mx_quantize_args args = { .dst = trn_tensor_2d(TRN_F8_E4M3FN, code, 2, 64),
 *             .dst_scale = trn_tensor_2d(TRN_F8_E8M0, scale, 2, 2), .src = trn_tensor_2d(TRN_F32, x, 2, 64) };
 *         if (trn_mx_quantize(&args)) return 1;
 *         printf("2^%d times %g\n", scale[0] - 127, (double)trn_f8_e4m3fn_to_f32(code[0]));  // 2^-2 times -240
 *         return scale[0] == 125 ? 0 : 1;
 *     }
 *
 * .axis, the axis that is cut into blocks: 0, the default, is the LAST one; -1, -2, ... count from the back, as in
 * NumPy; 1, 2, ... from the front. So axis 0 itself is written as -rank: -2 for the K of a [K, M] matrix.
 *
 * DOES: one E8M0 scale X for 32 elements, each element v/X rounded once, in any of the six modes, and saturated; five
 *     rules for X; back again, exactly or with one rounding. Any strides, up to six axes, blocks along any of them.
 *     Random bits come from (seed, stream, row-major position). Uses OpenMP when compiled with it.
 * DOES NOT: allocate, multiply matrices, lay codes out as Trainium3's memory holds them (data/mx_layout.h), or pack
 *     codes of 4 and 6 bits in files' order (trn_pack.h).
 *
 * CONTENTS
 *   data/mx_cast.h: block scaling: quantise, dequantise and check; the scales, the elements, the rules.
 *     TRN_MX_BLOCK                              32
 *     trn_mx_scale_code                         amax -> X, the rule by itself
 *     trn_mx_quantize_args, trn_mx_quantize     values -> codes and scales
 *     trn_mx_dequantize_args, trn_mx_dequantize codes and scales -> values
 *   data/mx_layout.h: MX data as Trainium3's memory holds it: x4 words, quadrants of scales, FP4 codes as FP8 codes.
 *     trn_mx_sbuf_args, trn_mx_to_sbuf, trn_mx_from_sbuf   x4 words and scale quadrants
 *     trn_mx_fp4_map, trn_mx_fp4_args, trn_mx_fp4_to_fp8   MXFP4 codes as the FP8 codes that the multiplier sees
 *
 * X = 2^(floor(log2 amax) - emax), amax the largest magnitude of the block, 2^emax the format's largest power of two:
 *
 *     TRN_MX_SCALE_NEURON      twice that, the default: what the QuantizeMX instruction does; nothing saturates
 *                              (but int8 blocks of 2^127 and more, whose X is kept at 2^127)
 *     TRN_MX_SCALE_OCP_FLOOR   that: the sample algorithm of OCP MX 1.0; the largest elements may saturate
 *     TRN_MX_SCALE_ROUND_UP    the smallest power of two with amax/X <= the format's maximum (elsewhere: rceil)
 *     TRN_MX_SCALE_EVEN        OCP's, of an amax rounded to nearest even at the element's mantissa bits (6 of int8)
 *     TRN_MX_SCALE_CEIL        2^(ceil(log2 amax) - emax); nothing saturates (but int8's, as above)
 *
 * X is kept within 2^-127 and 2^127. All zeros: code 00, and zeros keep their signs. Any NaN or infinity in the block:
 * code ff, which is NaN, and all element codes 0.
 *
 * KNOWN FROM: OCP MX 1.0; torchao's mx_tensor.py (even and ceil); NKI's quantize_mx and MXFP guide (documented: the
 *     default rule, zeros, x4 words, quadrants; assumed: blocks with NaN, the default FP4 map); tests/golden/mx_*;
 *     tests/unit/test_mx.c.
 */
#ifndef TRN_MX_H
#define TRN_MX_H

#include "base/words_begin.h"

#include "data/mx_cast.h"
#include "data/mx_layout.h"

#include "base/words_end.h"

#endif /* TRN_MX_H */
