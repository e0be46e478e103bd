/* trn_mpi_cores.h is a part of trn_mpi.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_mpi.h"
