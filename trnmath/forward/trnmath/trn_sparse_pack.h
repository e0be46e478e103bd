/* trn_sparse_pack.h is a part of trn_sparse.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_sparse.h"
