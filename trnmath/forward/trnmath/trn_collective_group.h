/* trn_collective_group.h is a part of trn_collective_cost.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_collective_cost.h"
