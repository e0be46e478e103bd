/* trn_reshard_plan.h is a part of trn_reshard.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_reshard.h"
