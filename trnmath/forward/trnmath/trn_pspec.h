/* trn_pspec.h is a part of trn_shard.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_shard.h"
