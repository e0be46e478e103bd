/* trn_pack.h - codes of 4, 6 and 8 bits between arrays of one code per byte and the packed words of files and machines.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_pack.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         uint8_t code[4] = { 0x2, 0x5, 0xf, 0x0 }, byte[2];                  // FP4: 1, 3, -6, 0
 *         trn_pack_args args = { .dst = trn_tensor_1d(TRN_U8, byte, 2), .src = trn_tensor_1d(TRN_F4_E2M1, code, 4) };
 *         if (trn_pack(&args)) return 1;
 *         printf("%02x %02x\n", byte[0], byte[1]);                            // 52 0f
 *         return byte[0] == 0x52 && byte[1] == 0x0f ? 0 : 1;
 *     }
 *
 * DOES: packs and unpacks along the last axis, any strides and up to six axes. The two formats say which form is meant:
 *
 *         codes      words   form                                                            known from
 *         F4_E2M1    U8      two in a byte, element 0 in the low nibble: safetensors' F4,    documented
 *                            PyTorch's float4_e2m1fn_x2
 *         F4_E2M1    U16     four in a word, element 0 lowest: Trainium's float4_e2m1fn_x4   documented
 *         8 bits     U32     four in a word, element 0 lowest: Trainium's float8_*_x4        documented
 *         F6_*       U8      four in three bytes, as one little-endian stream of bits        assumed: OCP has no order
 *
 *     In memory both F4 forms are the same bytes, and the x4 words of an 8-bit format are its array. Bits of a code
 *     above its format are ignored. Uses OpenMP when compiled with it.
 * DOES NOT: convert between formats (trn_convert.h), or know blocks, scales and partitions (trn_mx.h).
 *
 * CONTENTS
 *   data/pack.h: codes of 4, 6 and 8 bits, one to a byte or packed into words.
 *     trn_packed_words, trn_packed_bytes   what n codes take in a form
 *     trn_pack_args, trn_pack       codes to words
 *     trn_unpack_args, trn_unpack   words to codes
 *
 * Tails: n codes that do not fill the last word (FP6: the last three bytes) are refused, unless .pad says that its
 * missing codes are 0 (unpacking: ignored).
 *
 * KNOWN FROM: the x4 types of the NKI reference; the safetensors format; PyTorch's float4_e2m1fn_x2;
 *     tests/unit/test_pack.c (every code in every place, against shifts written out).
 */
#ifndef TRN_PACK_H
#define TRN_PACK_H

#include "base/words_begin.h"

#include "data/pack.h"

#include "base/words_end.h"

#endif /* TRN_PACK_H */
