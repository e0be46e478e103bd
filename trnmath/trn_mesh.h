/* trn_mesh.h - devices under names: axes such as data and tensor over the chips of a topology.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_mesh.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_of(TRN_TRN2_ULTRASERVER);   // 64 chips: levels x, y, z of 4
 *         trn_mesh mesh;
 *         if (trn_mesh_init(&mesh, &net, "data=4,tensor=16")) return 1;     // device 17 = data 1, tensor 1
 *         int tensor = trn_mesh_axis_named(&mesh, "tensor"), chips[64];
 *         int groups = trn_mesh_groups(&mesh, &tensor, 1, chips);           // [4][16], as collectives take them
 *         trn_mesh_reach reach;
 *         bool contiguous = trn_mesh_axis_contiguous(&mesh, tensor, &reach);
 *         printf("%d groups, contiguous: %d, steps of up to %d links\n", groups, contiguous, reach.hops);
 *         return groups == 4 && trn_mesh_chip(&mesh, 17) == 17 ? 0 : 1;
 *     }
 *
 * DOES: numbers devices with the first axis outermost, and says which chip each device is: the chip of its own number;
 *     or, with "data=4@z,tensor=16@y*x", by levels of the topology (the outermost named first); or by a list of the
 *     caller's. Groups along one or more axes, and whether their neighbours are neighbours in the machine.
 * DOES NOT: allocate, or own anything: the topology and the list of chips must outlive the mesh.
 *
 * CONTENTS
 *   network/mesh.h: devices under names: axes over the chips of a topology.
 *     trn_mesh, trn_mesh_axis                         the devices, and one of their axes
 *     trn_mesh_args, trn_mesh_make, trn_mesh_init     from text; args: with a sentence on failure, and lists of chips
 *     trn_mesh_format                                 the text that makes the same axes
 *     trn_mesh_axis_named                             -1 when there is none
 *     trn_mesh_coordinate, trn_mesh_coordinates       where a device is along one axis, along all
 *     trn_mesh_device_at, trn_mesh_device_of_chip     device numbers
 *     trn_mesh_chip, trn_mesh_chip_at                 chip numbers
 *     trn_mesh_group_size, trn_mesh_groups            the groups along axes, as lists of chips
 *     trn_mesh_reach, trn_mesh_contiguous, trn_mesh_axis_contiguous   are neighbours one link or one switch apart?
 *
 * KNOWN FROM: jax.sharding.Mesh and DTensor's DeviceMesh (the vocabulary); the questions that their users ask.
 */
#ifndef TRN_MESH_H
#define TRN_MESH_H

#include "base/words_begin.h"

#include "network/mesh.h"

#include "base/words_end.h"

#endif /* TRN_MESH_H */
