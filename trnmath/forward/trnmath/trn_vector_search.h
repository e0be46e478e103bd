/* trn_vector_search.h is a part of trn_vector_engine.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_vector_engine.h"
