/* trn_sparse_pack.h is a part of trn_sparse.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_sparse.h"
