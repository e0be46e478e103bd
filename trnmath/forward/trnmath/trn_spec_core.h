/* trn_spec_core.h is a part of trn_spec.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_spec.h"
