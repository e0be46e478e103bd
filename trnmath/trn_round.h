/* trn_round.h - the one rounding decision of the library: given what is cut off, does the magnitude grow by one?
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_round.h>
 *     int main(void) {
 *         trn_rounder up = { .rounding = TRN_TOWARD_POSITIVE };
 *         return trn_round_magnitude(0x1fu, 4, false, up) == 2 ? 0 : 1;     // 1 and 15/16 becomes 2
 *     }
 *
 * DOES: nearest even, stochastic with 1..32 bits, toward zero, toward +infinity, toward -infinity, to odd, on integers.
 * DOES NOT: know formats, signs of zero, overflow or NaN: those belong to trn_format.h.
 *
 * CONTENTS
 *   number/round.h: rounding modes, and the one rounding decision.
 *     trn_rounding          the six modes
 *     trn_overflow          what a finite value beyond the largest becomes
 *     trn_rounder           mode, random word and its number of bits
 *     trn_round_text        the name of a mode
 *     trn_round_from_text   the mode of a name
 *     trn_round_magnitude   magnitude / 2^shift, rounded
 *
 * KNOWN FROM: IEEE 754-2019 §4.3; Boldo and Melquiond 2008 for rounding to odd; stochastic rounding as in design
 *     semantics: away from zero iff floor(2^n * fraction) + r >= 2^n. That the chip compares 32 bits is `assumed`.
 */
#ifndef TRN_ROUND_H
#define TRN_ROUND_H

#include "base/words_begin.h"

#include "number/round.h"

#include "base/words_end.h"

#endif /* TRN_ROUND_H */
