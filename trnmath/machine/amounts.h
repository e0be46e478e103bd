/* machine/amounts.h - what a rate, a time, a share may be, wherever it comes from: a file, or a struct filled by hand.
 * Behind trn_topology.h trn_calibration.h. SPDX-License-Identifier: MIT
 *
 * DOES: one table of ranges by unit, wider than any machine by far, and so narrow that no time that is made of them is
 *     0, infinite or no number; and the range in the words of a sentence.
 * DOES NOT: read text (network/topology_text.h).
 *
 * KNOWN FROM: definitions.
 */
#ifndef TRNI_MACHINE_AMOUNTS_H
#define TRNI_MACHINE_AMOUNTS_H

#include "../base/base.h"

typedef enum trni_measure {
    TRNI_RATE,   /* bytes per second of what has to be there */
    TRNI_LIMIT,  /* the same, or 0: no limit */
    TRNI_TIME,   /* seconds */
    TRNI_LENGTH, /* seconds that something was measured to take */
    TRNI_PASSES, /* how often, or how much more */
    TRNI_SHARE   /* of a whole */
} trni_measure;

typedef struct trni_legal {
    double least, most;
    bool zero; /* 0 has a meaning, too */
} trni_legal;

TRNI_FN trni_legal trni_legal_of(trni_measure unit)
{
    static const trni_legal range[] = {
        { 1, 1e18, false },                          /* a byte a second; a million terabytes */
        { 1, 1e18, true },     { 1e-15, 1e4, true }, /* a femtosecond; three hours */
        { 1e-12, 1e4, false }, { 1e-6, 1e6, true },  { 1e-6, 1, true },
    };
    return range[unit];
}

/* False for what is no number. */
TRNI_FN bool trni_amount_is(trni_measure unit, double x)
{
    const trni_legal r = trni_legal_of(unit);
    return (x >= r.least && x <= r.most) || (r.zero && x >= 0 && x <= 0);
}

/* "1e-09 to 1e+09", or "0, or 1e-09 to 1e+10", in units of 10^power. */
TRNI_FN const char *trni_legal_text(trni_measure unit, int power, char text[48])
{
    const trni_legal r = trni_legal_of(unit);
    double scale = 1;
    for (int i = 0; i < power; i++) scale *= 10;
    for (int i = 0; i > power; i--) scale /= 10;
    snprintf(text, 48, "%s%g to %g", r.zero ? "0, or " : "", r.least / scale, r.most / scale);
    return text;
}

#endif /* TRNI_MACHINE_AMOUNTS_H */
