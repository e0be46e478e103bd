/* machine/calibration.h - the numbers between the ideal time of a collective and the time that it takes.
 * A part of trn_calibration.h. SPDX-License-Identifier: MIT
 */
#ifndef TRNI_MACHINE_CALIBRATION_H
#define TRNI_MACHINE_CALIBRATION_H

#include "spec_physical.h"
#include "evidence.h"

/* The published samples fall into two classes: up to about 2023, floors of 60 to 150 us on one instance; later, 6. */
typedef enum trn_release { TRN_RELEASE_NEWER = 0, TRN_RELEASE_OLDER, TRN_RELEASE_COUNT } trn_release;

/* "newer", "older"; "unknown" for anything else. */
TRN_API const char *trn_release_name(trn_release release);

/* TRN_RELEASE_COUNT when unknown. */
TRN_API trn_release trn_release_from_name(const char *name);

/* Ideal time. The thresholds that the vendor documents for an all-reduce over all ranks of a Trainium2 instance (mesh
 * below 1 MB, recursive doubling to 56 MB, KangaRing above) fix three factors, given 1.5 us a step and 128 GB/s a link.
 * Each is relative to what the schedule's own loads say.
 *
 * Expected time = launch_s (+ instance_s where a group leaves its instance) + steps x (ideal step + step_s, and in a
 * graph + graph_s) + for each phase the longest of links, HBM and DMA, each at its share of the documented rate. Never
 * less than the ideal time.
 * The range is from expected / spread to expected x spread, and begins at the ideal time at the least.
 *
 * field, newer, older, unit, how known, where. */
#define TRNI_CALIBRATION_LIST(X)                                                                                       \
    X(rdh, 1.4, 1.4, "times", TRN_ASSUMED,                                                                             \
      "56 MB, where KangaRing takes over: 10 steps + 1.4 times the link time = 62 steps + the link time")              \
    X(mesh, 1.78125, 1.78125, "times", TRN_ASSUMED,                                                                    \
      "1 MB, where recursive doubling takes over: 3.8 times the injection bound, of which routes that share links "    \
      "explain 2.13")                                                                                                  \
    X(memory, 0.7, 0.7, "times", TRN_ASSUMED,                                                                          \
      "share of the documented HBM touches and DMA passes that the links have to wait for: below the most (0.71) at "  \
      "which KangaRing's reduce-scatter runs at link rate, which the 56 MB imply")                                     \
    X(launch_s, 2.6e-6, 55e-6, "s", TRN_FITTED,                                                                        \
      "before the first DMA and after the last: what is left of nccom-test's smallest samples when steps are "         \
      "counted")                                                                                                       \
    X(instance_s, 90e-6, 900e-6, "s", TRN_FITTED,                                                                      \
      "more for a group that leaves its instance, by the hosts: two nodes of older software; newer assumed a tenth, "  \
      "as launches are")                                                                                               \
    X(step_s, 0.6e-6, 1.1e-6, "s", TRN_FITTED,                                                                         \
      "software and semaphores of a step beyond its DMA start: with the shares below, the 56 MB (newer); 32 ranks' "   \
      "151 us (older)")                                                                                                \
    X(torus, 0.49, 0.49, "share", TRN_FITTED,                                                                          \
      "of links between chips of a server: the slope of 32 ranks' newer samples, and the 1 MB at which a mesh loses")  \
    X(peer, 0.49, 0.49, "share", TRN_ASSUMED, "of the third ring, and between racks: as torus, by the same DMA")       \
    X(switched, 0.49, 0.49, "share", TRN_ASSUMED, "of ports of a NeuronLink switch: as torus; nothing published")      \
    X(efa, 0.8, 0.8, "share", TRN_FITTED, "of network cards: two Trainium1 instances from 64 MiB on")                  \
    X(hbm, 0.325, 0.325, "share", TRN_FITTED,                                                                          \
      "of HBM's rate while collectives read and write it: large all-reduces of 2 and 64 ranks of Trainium1 and of 4 "  \
      "and 64 of Trainium2 give 0.29 to 0.35")                                                                         \
    X(dma, 0.5, 0.5, "share", TRN_ASSUMED,                                                                             \
      "of the DMA engines' practical rate: the same rows are explained by HBM; it cannot be below 0.31")               \
    X(rings, 0, 1, "flag", TRN_FITTED,                                                                                 \
      "AUTO takes rings and hierarchies of rings only: 32 ranks take 31 steps in the older samples, 2 in the newer")   \
    X(graph_s, 2.8e-6, 2.8e-6, "s", TRN_FITTED,                                                                        \
      "more for a step in a compiled graph or kernel than in nccom-test: one number for two profiles, 64 ranks of "    \
      "Trainium2 (4 steps) and 4 of Trainium3 (1); a third, of all_gather_v, was not fitted")                          \
    X(spread, 1.3, 1.3, "times", TRN_FITTED,                                                                           \
      "four of five published times from 1 MiB lie within expected / spread to expected x spread; those of other "     \
      "classes further or nearer (machine/evidence.h), and move with it")

typedef struct trn_calibration {
#define TRNI_X(field, newer, older, unit, known, where) double field;
    TRNI_CALIBRATION_LIST(TRNI_X)
#undef TRNI_X
} trn_calibration;

/* As the list above has them for newer software. */
TRN_API trn_calibration trn_calibration_default(void);

/* The same for either; a release that does not exist is the newer one. */
TRN_API trn_calibration trn_calibration_of_release(trn_release release);

/* Number index of the list, with its default; false when there is none, so that a loop from 0 sees them all. */
TRN_API bool trn_calibration_field_at(int index, trn_spec_field *out);

#if TRNI_BODIES

#include "amounts.h"

TRN_API const char *trn_release_name(trn_release release)
{
    static const char *const name[] = { "newer", "older" };
    return (unsigned)release < TRN_RELEASE_COUNT ? name[(unsigned)release] : "unknown";
}

TRN_API trn_release trn_release_from_name(const char *name)
{
    int i = 0;
    while (i < TRN_RELEASE_COUNT && (!name || strcmp(name, trn_release_name((trn_release)i)) != 0)) i++;
    return (trn_release)i;
}

TRN_API trn_calibration trn_calibration_of_release(trn_release release)
{
    const bool old = release == TRN_RELEASE_OLDER;
    trn_calibration c;
#define TRNI_X(field, newer, older, unit, known, where) c.field = old ? older : newer;
    TRNI_CALIBRATION_LIST(TRNI_X)
#undef TRNI_X
    return c;
}

TRN_API trn_calibration trn_calibration_default(void) { return trn_calibration_of_release(TRN_RELEASE_NEWER); }

/* What each unit of the list may be; 0 has no effect. With these all expected times are finite. */
TRNI_FN trni_measure trni_calibration_unit(const char *unit)
{
    return strcmp(unit, "share") == 0 ? TRNI_SHARE : strcmp(unit, "s") == 0 ? TRNI_TIME : TRNI_PASSES;
}

TRNI_FN bool trni_calibration_can_be(const char *unit, double x)
{
    return trni_amount_is(trni_calibration_unit(unit), x);
}

TRN_API bool trn_calibration_field_at(int index, trn_spec_field *out)
{
    static const struct {
        const char *field;
        double value;
        const char *unit;
        trn_provenance known;
        const char *where;
    } row[] = {
#define TRNI_X(field, newer, older, unit, known, where) { #field, newer, unit, known, where },
        TRNI_CALIBRATION_LIST(TRNI_X)
#undef TRNI_X
    };
    if (index < 0 || index >= (int)(sizeof row / sizeof row[0])) return false;
    out->level = "calibration";
    out->owner = "collectives";
    out->field = row[index].field;
    out->unit = row[index].unit;
    out->value = row[index].value;
    out->known = row[index].known;
    out->where = row[index].where;
    return true;
}

#endif /* TRNI_BODIES */

#endif /* TRNI_MACHINE_CALIBRATION_H */
