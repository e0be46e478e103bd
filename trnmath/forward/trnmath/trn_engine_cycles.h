/* trn_engine_cycles.h is a part of trn_cost.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_cost.h"
