/* trn_cores_args.h is a part of trn_cores.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_cores.h"
