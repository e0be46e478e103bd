/* trn_topology_svg.h is a part of trn_topology.h now: include that. This file goes with 0.4.0.
 * SPDX-License-Identifier: MIT */
#include "../../trn_topology.h"
