/* trn_calibration_file.h is a part of trn_calibration_fit.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_calibration_fit.h"
