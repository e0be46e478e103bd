/* trn_mpi_sharded.h is a part of trn_mpi.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_mpi.h"
