/* trn_gpsimd_custom.h is a part of trn_gpsimd_engine.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_gpsimd_engine.h"
