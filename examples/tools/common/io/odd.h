/* odd.h - a number of binary64 as binary32, so that one more rounding is as good as one alone.
 * SPDX-License-Identifier: MIT
 *
 *     #include "io/odd.h"
 *     const float x = io_odd(code * scale - least); // exact in binary64
 *     out = trn_bf16_from_f32(x);                   // the nearest of code * scale - least itself
 *
 * The number is cut off towards zero, and its last bit is set where something was lost ("round to odd"). Two bits more
 * than the target has are enough for every later rounding to come out as that of the exact number: BF16, FP16, FP8, FP4
 * and INT8 have fewer than 22 bits, binary32 has 24. What binary32 holds stays as it is; what is larger than all of its
 * numbers becomes the largest, which is odd; what is smaller becomes the smallest.
 *
 * CONTENTS
 *     io_odd                    binary64 to binary32
 *
 * KNOWN FROM: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
 *     odd", IEEE Transactions on Computers 57 (2008).
 */
#ifndef IO_ODD_H
#define IO_ODD_H

#include <math.h>

#include "io.h"

IO_FN float io_odd(double v)
{
    const float f = (float)v;
    if ((double)f == v) return f;
    const uint32_t bits = io_bits(f) - (fabs((double)f) > fabs(v)); /* it may have been rounded outward */
    return io_float(bits | 1);
}

#endif /* IO_ODD_H */
