/* trn_calibration.h - what the runtime gets out of the machine: the few numbers between a collective's ideal time and
 * the time to expect, for each kind of software release. SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_calibration.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         trn_spec_field field; // what each number is, and how it is known
 *         for (int i = 0; trn_calibration_field_at(i, &field); i++)
 *             printf("%-10s %-10g %-6s %s: %s\n", field.field, field.value, field.unit,
 *                    trn_provenance_text(field.known), field.where);
 *         const trn_calibration old = trn_calibration_of_release(TRN_RELEASE_OLDER);
 *         return old.launch_s > 10 * trn_calibration_default().launch_s ? 0 : 1;
 *     }
 *
 * DOES: holds three factors of the ideal time (link loads of recursive doubling and of a mesh, the part of memory
 *     traffic that links wait for), and ten mechanisms of the expected time: what a launch costs, on one instance and
 *     across several; what software adds to a step; which share of its documented rate each kind of link, HBM and the
 *     DMA engines reach; how far published times scatter about all that.
 * DOES NOT: cost anything (trn_collective_cost.h does), or hold a number that a single row of a table gave.
 *
 * CONTENTS
 *   machine/calibration.h: the numbers between the ideal time of a collective and the time that it takes.
 *     trn_release, trn_release_name, trn_release_from_name   older or newer software
 *     trn_calibration             the numbers; zero = no effect (a factor of 1, no time, all of the rate)
 *     trn_calibration_default     of newer software
 *     trn_calibration_of_release  of either
 *     trn_calibration_field_at    each of them with its source
 *   machine/evidence.h: how near expected times have come to published ones, class by class, and how many there are.
 *     trn_evidence_class          dense, mixtures, first tokens, ...
 *     trn_evidence, trn_evidence_of   how many rows, how far they scatter, what they are of
 *
 * KNOWN FROM: nccom-test's samples in the Neuron SDK (tests/published/collectives.h; trnbench collective --published
 *     prints every row beside what is expected, and what a fit without the row predicts); the vendor's documented
 *     sizes at which its runtime changes algorithms.
 */
#ifndef TRN_CALIBRATION_H
#define TRN_CALIBRATION_H

#include "base/words_begin.h"

#include "machine/calibration.h"
#include "machine/evidence.h"

#include "base/words_end.h"

#endif /* TRN_CALIBRATION_H */
