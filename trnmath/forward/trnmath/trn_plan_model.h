/* trn_plan_model.h is a part of trn_plan.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_plan.h"
