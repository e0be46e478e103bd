/* trn_convert.h - whole arrays from any number format to any other, through binary32, at memory speed.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_convert.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         float x[3] = { 1.0f, 3.14159f, 3.4e38f };
 *         uint16_t y[3];
 *         trn_error error;
 *         trn_status status = trn_convert(&(trn_convert_args){
 *             .dst = trn_tensor_1d(TRN_BF16, y, 3), .src = trn_tensor_1d(TRN_F32, x, 3), .error = &error });
 *         if (status) return fprintf(stderr, "%s\n", error.text), 1;
 *         printf("%04x %04x %04x\n", y[0], y[1], y[2]);            // 3f80 4049 7f80
 *         return 0;
 *     }
 *
 * DOES: source -> binary32 -> destination, one rounding at the end, all six rounding modes, for integers too; any
 *     strides, up to six axes, inputs that broadcast; in place when data, element size and strides are the same. Copies
 *     within one format keep every bit. All sources are exact in binary32 but I32 and U32: beyond 2^24 these round to
 *     nearest even first, as on the chip, whatever they become (I32 to U32 included); .integers_once rounds the exact
 *     integer once instead. Stochastic rounding takes its bits from (seed, stream, row-major position), so the result
 *     does not depend on threads, strides or instruction set; or the words of a generator that the caller owns. Uses
 *     OpenMP when compiled with it.
 * DOES NOT: allocate, pack sub-byte codes, scale (trn_mx.h), or accept other overlaps of dst and src.
 *
 * CONTENTS
 *   data/convert.h: whole arrays from any number format to any other.
 *     trn_convert_args   the two views (any format, any valid cFP8) and how to round
 *     trn_convert        does it, or says in one sentence why not; on failure nothing is written
 *
 * How it works: the axes are sorted and merged so that the innermost one is as long and as contiguous as can be, the
 * index space is cut into tiles, and each row of a tile runs through the straight-line kernels of data/cast.h, or
 * data/integers.h.
 *
 * KNOWN FROM: tests/unit/test_convert.c (every BF16 and F16 code, all 2^32 floats at level 2, the golden vectors);
 *     bench/trnbench convert for what each kernel is worth.
 */
#ifndef TRN_CONVERT_H
#define TRN_CONVERT_H

#include "base/words_begin.h"

#include "data/convert.h"

#include "base/words_end.h"

#endif /* TRN_CONVERT_H */
