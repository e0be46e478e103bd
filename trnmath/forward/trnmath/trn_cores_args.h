/* trn_cores_args.h is a part of trn_cores.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_cores.h"
