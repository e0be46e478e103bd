/* trn_shard.h - which device holds which part of a tensor; cutting a whole into those parts, and joining them again.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trn_shard.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         const trn_topology net = trn_topology_ring(4, 128e9, 1e-6);
 *         static float whole[10 * 6], part[4][3 * 6];
 *         trn_mesh mesh;
 *         trn_shard_args args = { .mesh = &mesh, .global = trn_tensor_2d(TRN_F32, whole, 10, 6) };
 *         trn_tensor parts[4];
 *         if (trn_mesh_init(&mesh, &net, "data=4") || trn_pspec_parse(&args.spec, &mesh, "(data, *)")) return 1;
 *         for (int i = 0; i < 4; i++) {                             // rows 0-2, 3-5, 6-8, and the tenth alone
 *             const trn_box box = trn_shard_box(&mesh, &args.spec, &args.global, i);
 *             parts[i] = trn_tensor_nd(TRN_F32, part[i], 2, box.count);
 *         }
 *         args.parts = parts;
 *         return trn_shard(&args) == TRN_OK && trn_unshard(&args) == TRN_OK ? 0 : 1;
 *     }
 *
 * DOES: a dimension of n elements over R parts: part i holds [i c, (i + 1) c) with c = ceil(n / R), the last ones less
 *     or nothing; what several axes cut is counted with the first axis outermost. Parts may have other formats and
 *     strides than the whole: one rounding, to nearest even. Over axes of a sum, trn_shard gives the values to the
 *     devices at 0 and -0, which adds nothing, to the others; trn_unshard adds in binary32, devices ascending, and
 *     rounds once.
 * DOES NOT: allocate, or repeat silently what does not divide; .even_only refuses it. trn_unshard takes the first of
 *     several equal parts and does not compare them: trn_shard_replicas_equal does.
 *
 * CONTENTS
 *   network/shard.h: each device's part of a tensor; whole to parts, and parts to whole.
 *     trn_box, trn_shard_box        first index and size of a device's part, per dimension
 *     trn_shard_part                a view of that part inside the whole: no copy
 *     trn_shard_local               shape and format of the largest part
 *     trn_shard_bytes               what it takes in a chip's memory
 *     trn_shard_even                have all devices the same?
 *     trn_shard_args                mesh, sharding, whole, parts
 *     trn_shard, trn_unshard        whole to parts, parts to whole
 *     trn_shard_replicas_equal, trn_replicas   do parts that should hold the same hold the same bits?
 *   network/pspec.h: how a tensor lies on a mesh: which axes cut which dimension, and over which axes its sum is
 *                    still open.
 *     trn_pspec, trn_pspec_dim             the sharding; all zero is a tensor that every device has whole
 *     trn_pspec_parse, trn_pspec_read      from text; the second tells why not
 *     trn_pspec_format                     the text with the fewest brackets that parses back
 *     trn_pspec_check                      is a struct that was filled in by hand a sharding?
 *     trn_pspec_same                       do two put every element on the same devices?
 *     trn_pspec_parts                      into how many parts a dimension is cut
 *     trn_pspec_is_sum, trn_pspec_axis_dim   what an axis does
 *     trn_placement, trn_placing, trn_reduction   the same, per axis of the mesh
 *     trn_pspec_placements, trn_pspec_of_placements   there and back
 *
 * KNOWN FROM: DTensor's Shard (the sizes of uneven parts).
 */
#ifndef TRN_SHARD_H
#define TRN_SHARD_H

#include "base/words_begin.h"

#include "network/shard.h"
#include "network/pspec.h"

#include "base/words_end.h"

#endif /* TRN_SHARD_H */
