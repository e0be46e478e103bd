/* trn_collective_group.h is a part of trn_collective_cost.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_collective_cost.h"
