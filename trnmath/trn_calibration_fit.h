/* trn_calibration_fit.h - measured times of collectives into the numbers of trn_calibration.h.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_calibration_fit.h>
 *     int main(void) { // 64 ranks took 32 ms for 1 GiB: about half the rate that others see
 *         const trn_topology net = trn_topology_of(TRN_TRN2_48XLARGE);
 *         trn_calibration_sample sample = { 0 };
 *         sample.ask.net = &net;
 *         sample.ask.op = TRN_ALL_REDUCE;
 *         sample.ask.ranks_per_chip = 4;
 *         sample.ask.bytes = 1 << 30;
 *         sample.measured_s = 32e-3;
 *         trn_calibration_fit_args args = { 0 };
 *         args.sample = &sample;
 *         args.samples = 1;
 *         args.fields = "hbm";
 *         trn_calibration found;
 *         if (trn_calibration_fit(&args, &found) != TRN_OK) return 1;
 *         return found.hbm > 0.15 && found.hbm < 0.17 ? 0 : 1;
 *     }
 *
 * DOES: finds launch_s, instance_s, step_s and the shares of links, HBM and DMA such that expected times come as near
 *     to the measured ones as they can, as ratios; what the samples do not depend on stays as it was. Where AUTO is
 *     asked, it chooses anew as the numbers change: the runtime is taken to do so, too.
 * DOES NOT: fit the factors of the ideal time, or read files (trnbench collective --calibrate does).
 *
 * CONTENTS
 *   network/calibration_fit.h: measured times of collectives into a calibration.
 *     trn_calibration_sample      a collective, and what it took
 *     trn_calibration_fit_args    the samples, and which numbers may move
 *     trn_calibration_fit         the calibration
 *   network/fit.h: a few positive numbers from many measured times: bounded least squares of logarithms.
 *     trn_fit_model, trn_fit_args   the question
 *     trn_fit                       the numbers
 *   network/calibration_file.h: a calibration as a small text file, which programs write after a fit and all can
 *                               load.
 *     trn_calibration_load    text -> calibration
 *     trn_calibration_save    calibration -> text
 *
 * KNOWN FROM: network/fit.h.
 */
#ifndef TRN_CALIBRATION_FIT_H
#define TRN_CALIBRATION_FIT_H

#include "base/words_begin.h"

#include "network/calibration_fit.h"
#include "network/calibration_file.h"
#include "network/fit.h"

#include "base/words_end.h"

#endif /* TRN_CALIBRATION_FIT_H */
