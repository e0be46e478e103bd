/* trn_mx_layout.h is a part of trn_mx.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_mx.h"
