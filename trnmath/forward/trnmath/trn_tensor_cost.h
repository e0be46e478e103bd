/* trn_tensor_cost.h is a part of trn_cost.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_cost.h"
