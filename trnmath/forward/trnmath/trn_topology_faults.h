/* trn_topology_faults.h is a part of trn_topology.h now: include that. This file goes with the next release.
 * SPDX-License-Identifier: MIT */
#include "../../trn_topology.h"
