/* trn_format.h - every number format as one row of one table, and the codec that reads the row.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_format.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         uint16_t code = trn_bf16_from_f32(3.14159f);
 *         printf("%s 0x%04x = %.9g\n", trn_format_name(TRN_BF16), code, (double)trn_bf16_to_f32(code));
 *         return trn_encode(TRN_F16, 65536.0f, TRN_NEAREST_EVEN, TRN_SATURATE, 0) == 0x7bff ? 0 : 1;
 *     }
 *
 * DOES: float <-> code for every format of the Trainium engines, by integer arithmetic, with one rounding in any of
 *     the six modes; gradual underflow; canonical NaN with the input's sign.
 * DOES NOT: convert arrays (trn_convert.h), pack sub-byte codes (trn_pack.h), or read the floating-point environment.
 *
 * CONTENTS
 *   number/format.h: the table of number formats, a row each, and the codec that reads a row.
 *     trn_format                           the formats
 *     trn_format_kind                      float, scale, signed or unsigned integer
 *     trn_format_info, trn_format_info_of  the row of one: names, bits, bias, largest code, NaN, what overflow becomes
 *     trn_format_limits, trn_format_limits_of  max, min normal, min subnormal, epsilon, infinity, NaN codes
 *     trn_format_name, trn_format_from_name  NKI's spelling; NKI's, ml_dtypes' and safetensors' are understood
 *     trn_format_read                        other spellings too, and a sentence for what is none
 *     trn_format_bits, trn_format_bytes    bits of one code; bytes of one array element
 *     trn_format_is_float, trn_format_is_integer   what kind it is
 *     trn_decode, trn_encode               any format
 *     trn_<format>_from_f32, trn_<format>_to_f32   bf16 f16 tf32 f8_e4m3 f8_e4m3fn f8_e5m2 f8_e3m4
 *     trn_cfp8, trn_cfp8_info, trn_cfp8_valid  Trainium1's configurable FP8: a row made at run time
 *     trn_cfp8_encode, trn_cfp8_decode     its codec
 *
 * Codes of sign-exponent-mantissa formats, E exponent and M mantissa bits:
 *
 *     | s | e e … e | m m … m |      value = (-1)^s · 2^(e - bias) · (1 + m/2^M),   e > 0
 *           E bits     M bits              = (-1)^s · 2^(1 - bias) · (m/2^M),       e = 0
 *
 * TF32 lives in a 32-bit container: those 19 bits on top, 13 zero bits below.
 *
 * TWO TRAPS OF FP8. First, the names: "float8_e4m3" of NKI and ml_dtypes is TRN_F8_E4M3 and ends at 240; "F8_E4M3" of
 * safetensors and "FP8 E4M3" of OCP are TRN_F8_E4M3FN and end at 448. Second, the codes: the two share all bytes up to
 * 77, and 14 of the bytes of a checkpoint that ends at 448 are no numbers at all to an engine that ends at 240:
 *
 *     byte (sign set)     78 (f8)  79 (f9)  7a (fa)  7b (fb)  7c (fc)  7d (fd)  7e (fe)  7f (ff)
 *     as E4M3FN            256      288      320      352      384      416      448     NaN
 *     relabelled E4M3      inf      NaN      NaN      NaN      NaN      NaN      NaN     NaN     (the bits stay)
 *     converted            inf      inf      inf      inf      inf      inf      inf     NaN     (rounded: 7f -> 7c)
 *     ", TRN_SATURATE      240      240      240      240      240      240      240     NaN
 *     halved, converted    128      144      160      176      192      208      224     NaN     (exact: scale by 2)
 *
 * KNOWN FROM: OCP MX v1.0 and OCP OFP8 (E4M3FN, E5M2, E8M0, FP6, FP4); AWS Neuron data types and NKI dtype pages
 *     (E4M3 of Trainium1/2 has infinities and ends at 240, documented); tests/golden (ml_dtypes, MPFR, a table walk).
 */
#ifndef TRN_FORMAT_H
#define TRN_FORMAT_H

#include "base/words_begin.h"

#include "number/format.h"

#include "base/words_end.h"

#endif /* TRN_FORMAT_H */
