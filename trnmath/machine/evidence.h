/* machine/evidence.h - how near expected times have come to published ones, class by class, and how many there are.
 * A part of trn_calibration.h. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_calibration.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         for (int c = 0; c < TRN_EVIDENCE_COUNT; c++) {
 *             const trn_evidence e = trn_evidence_of((trn_evidence_class)c);
 *             printf("%-16s %2d rows, %.2f times: %s\n", e.name, e.rows, e.spread, e.where);
 *         }
 *         return trn_evidence_of(TRN_EVIDENCE_DENSE).rows > 30 ? 0 : 1;
 *     }
 *
 * DOES: says for each class of times how far the published rows of that class lie from what is expected of them: within
 *     `spread` times to either side lie at least four of five, each row left out of the fit and of the spread in turn.
 * DOES NOT: know of anything that no row is about. A class of few rows is wide, and says so.
 *
 * KNOWN FROM: tests/published/jobs.h and collectives.h, by tests/published/errors.h, which makes these numbers;
 *     shardplan --published prints them beside the rows.
 */
#ifndef TRNI_MACHINE_EVIDENCE_H
#define TRNI_MACHINE_EVIDENCE_H

#include <math.h>

#include "../base/base.h"

/* class, name, rows, spread, where. */
#define TRNI_EVIDENCE(X)                                                                                               \
    X(DENSE, "dense, a token", 31, 1.2, "25 of Trainium1, 6 of Trainium2")                                             \
    X(MIXTURE, "mixture, a token", 5, 1.7, "2 of Trainium1, 3 of Trainium2")                                           \
    X(TRAINING, "decoder, a step", 10, 1.2, "dense, Trainium1")                                                        \
    X(ENCODER, "encoder", 8, 2, "4 passes and 4 trainings, Trainium1")                                                 \
    X(FIRST, "first token", 36, 1.45, "27 of Trainium1, 9 of Trainium2")                                               \
    X(COLLECTIVE, "from 1 MiB", 22, 1.3, "nccom-test")                                                                 \
    X(SMALL, "below 1 MiB", 23, 1.55, "nccom-test")                                                                    \
    X(GRAPH, "in a graph", 3, 1.25, "profiles of Trainium2 and Trainium3")                                             \
    X(PAIRS, "pairs", 1, 2.5, "nccom-test, 32 MiB on Trainium1")                                                       \
    X(OTHER, "of no class", 0, 2.5, "Trainium3, mixtures trained, linear layers, recommenders")

typedef enum trn_evidence_class {
#define TRNI_X(name, text, rows, spread, where) TRN_EVIDENCE_##name,
    TRNI_EVIDENCE(TRNI_X)
#undef TRNI_X
        TRN_EVIDENCE_COUNT
} trn_evidence_class;

typedef struct trn_evidence {
    const char *name;
    int rows;      /* published, that are held to */
    double spread; /* times, to either side of what is expected; of a class without rows assumed */
    const char *where;
} trn_evidence;

/* That of no class when there is no such class. */
TRN_API trn_evidence trn_evidence_of(trn_evidence_class of);

#if TRNI_BODIES

TRN_API trn_evidence trn_evidence_of(trn_evidence_class of)
{
    static const trn_evidence row[] = {
#define TRNI_X(name, text, rows, spread, where) { text, rows, spread, where },
        TRNI_EVIDENCE(TRNI_X)
#undef TRNI_X
    };
    return row[(unsigned)of < TRN_EVIDENCE_COUNT ? (unsigned)of : (unsigned)TRN_EVIDENCE_OTHER];
}

/* `asked` instead of the `usual` spread of one class moves those of all others, in logarithms; 1 leaves none. */
TRNI_FN double trni_evidence_spread(trn_evidence_class of, double asked, double usual)
{
    return asked > 1 ? exp(log(asked) * log(trn_evidence_of(of).spread) / log(usual)) : 1;
}

/* Where four of five times lie; none is below the ideal one. */
TRNI_FN void trni_evidence_range(double spread, double ideal_s, double expected_s, double *low_s, double *high_s)
{
    *low_s = fmax(ideal_s, expected_s / spread);
    *high_s = expected_s * spread;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_EVIDENCE_H */
