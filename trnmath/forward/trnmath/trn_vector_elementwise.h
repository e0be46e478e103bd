/* trn_vector_elementwise.h is a part of trn_vector_engine.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_vector_engine.h"
