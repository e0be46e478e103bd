/* trn_pspec.h is a part of trn_shard.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_shard.h"
