/* number/round.h - rounding modes, and the one rounding decision.
 * A part of trn_round.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_NUMBER_ROUND_H
#define TRNI_NUMBER_ROUND_H

#include "../base/base.h"

typedef enum trn_rounding {
    TRN_NEAREST_EVEN = 0,
    TRN_STOCHASTIC,
    TRN_TOWARD_ZERO,
    TRN_TOWARD_POSITIVE,
    TRN_TOWARD_NEGATIVE,
    TRN_TO_ODD /* an inexact result gets an odd last bit, so that a second, narrower rounding is still correct */
} trn_rounding;
enum { TRN_ROUNDING_COUNT = TRN_TO_ODD + 1 };

typedef enum trn_overflow {
    TRN_OVERFLOW_DEFAULT = 0, /* infinity where the format has one, else its NaN, else its maximum */
    TRN_SATURATE              /* finite values stop at the maximum; infinities and NaN stay what they are */
} trn_overflow;

typedef struct trn_rounder {
    trn_rounding rounding;
    uint32_t random; /* stochastic only: `bits` random bits, low-aligned */
    int bits;        /* 1..32; 0 means 32 */
} trn_rounder;

/* "nearest_even", "stochastic", …; "unknown" for anything else. */
TRN_API const char *trn_round_text(trn_rounding rounding);

/* One past the last mode if there is none of this name; exact case. */
TRN_API trn_rounding trn_round_from_text(const char *name);

/* Rounds magnitude / 2^shift to an integer; shift >= 0. `negative` is the sign of the number whose magnitude this is;
 * only the directed modes look at it. Exact quotients never move. */
TRN_API uint32_t trn_round_magnitude(uint32_t magnitude, int shift, bool negative, trn_rounder how);

#if TRNI_BODIES

TRN_API const char *trn_round_text(trn_rounding rounding)
{
    static const char *const name[] = { "nearest_even",    "stochastic",      "toward_zero",
                                        "toward_positive", "toward_negative", "to_odd" };
    return (unsigned)rounding < TRN_ROUNDING_COUNT ? name[(unsigned)rounding] : "unknown";
}

TRN_API trn_rounding trn_round_from_text(const char *name)
{
    int mode = 0;
    while (mode < TRN_ROUNDING_COUNT && strcmp(name, trn_round_text((trn_rounding)mode)) != 0) mode++;
    return (trn_rounding)mode;
}

TRN_API uint32_t trn_round_magnitude(uint32_t magnitude, int shift, bool negative, trn_rounder how)
{
    if (shift <= 0) return magnitude;
    /* Beyond 63 places the quotient is below 2^-32: less than half, and smaller than any of 32 random thresholds
     * except where it is zero, so the exact distance no longer matters. */
    if (shift > 63) return trn_round_magnitude(magnitude != 0, 63, negative, how);
    const int s = shift;
    const uint64_t m = magnitude;
    const uint32_t kept = (uint32_t)(m >> s);
    const uint64_t cut = m & (((uint64_t)1 << s) - 1), half = (uint64_t)1 << (s - 1);
    if (cut == 0) return kept;

    switch (how.rounding) {
    case TRN_TOWARD_ZERO: return kept;
    case TRN_TOWARD_POSITIVE: return kept + !negative;
    case TRN_TOWARD_NEGATIVE: return kept + negative;
    case TRN_TO_ODD: return kept | 1u;
    case TRN_STOCHASTIC: {
        /* threshold = floor(2^n * cut / 2^s); cut < 2^s keeps the left shift below 2^n */
        const int n = how.bits ? how.bits : 32;
        const uint64_t threshold = s >= n ? cut >> (s - n) : cut << (n - s);
        return kept + (threshold + how.random >= (uint64_t)1 << n);
    }
    case TRN_NEAREST_EVEN:
    default: return kept + (cut > half || (cut == half && (kept & 1u)));
    }
}

/* TRN_OK, or what is wrong with a caller's mode and number of random bits. */
TRNI_FN trn_status trni_check_rounding(trn_rounding rounding, int sr_bits, trn_error *error)
{
    if ((unsigned)rounding >= TRN_ROUNDING_COUNT)
        return trni_fail(error, TRN_EINVAL, "rounding %d is not a rounding mode", (int)rounding);
    if (sr_bits < 0 || sr_bits > 32)
        return trni_fail(error, TRN_EINVAL, "sr_bits is %d; stochastic rounding takes 1 to 32 bits (0 means 32)",
                         sr_bits);
    return TRN_OK;
}

TRNI_FN trn_status trni_check_overflow(trn_overflow overflow, trn_error *error)
{
    if ((unsigned)overflow <= TRN_SATURATE) return TRN_OK;
    return trni_fail(error, TRN_EINVAL, "overflow %d is neither TRN_OVERFLOW_DEFAULT nor TRN_SATURATE", (int)overflow);
}

#endif /* TRNI_BODIES */

#endif /* TRNI_NUMBER_ROUND_H */
