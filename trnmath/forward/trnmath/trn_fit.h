/* trn_fit.h is a part of trn_calibration_fit.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_calibration_fit.h"
