/* trn_mx_layout.h is a part of trn_mx.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_mx.h"
