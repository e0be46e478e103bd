/* trn_core_register.h is a part of trn_core.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_core.h"
