/* trn_sharded_matmul.h is a part of trn_reshard.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_reshard.h"
