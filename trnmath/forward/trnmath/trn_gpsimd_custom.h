/* trn_gpsimd_custom.h is a part of trn_gpsimd_engine.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_gpsimd_engine.h"
