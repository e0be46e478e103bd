/* trnmath.h - all of trnmath: the Trainium you can #include.
 * SPDX-License-Identifier: MIT
 *
 *     #include <trnmath/trnmath.h>
 *     #include <stdio.h>
 *     int main(void) {
 *         printf("trnmath %s, kernels run as %s\n", TRN_VERSION, trn_isa_name());
 *         return 0;
 *     }
 *
 * DOES: includes every header. Each of them also stands alone.
 * DOES NOT: define anything.
 *
 * CONTENTS
 *     numbers    trn_format.h trn_round.h trn_random.h trn_numerics.h
 *     machines   trn_spec.h trn_tensor_cycles.h trn_tensor_cost.h trn_engine_cycles.h trn_cost.h trn_trace.h
 *     data       trn_tensor.h trn_cast_kernels.h trn_cast.h trn_convert.h trn_pack.h trn_mx.h trn_sparse_pack.h
 *     engines    trn_span.h trn_alu.h trn_systolic_aligned.h trn_systolic.h trn_systolic_feed.h trn_systolic_panels.h trn_product.h
 *                trn_product_define.h trn_product_lanes.h trn_tensor_engine.h trn_sparse_kernels.h trn_sparse.h
 *     ScalarE    trn_scalar_engine.h (trn_act.h trn_act_data.h)
 *     VectorE    trn_vector_engine.h (trn_vector_elementwise.h trn_vector_reduce.h trn_vector_statistics.h
 *                trn_alu_kernels.h trn_alu_chain.h trn_vector_rows.h trn_vector_registers.h
 *                trn_vector_search.h trn_vector_move.h trn_vector_random.h; trn_vector_state.h trn_vector_side.h)
 *     GpSimd, DMA   trn_gpsimd_math.h trn_gpsimd_state.h trn_gpsimd_custom.h trn_gpsimd_engine.h trn_dma.h
 *     one core   trn_matmul.h (trn_matmul_worker.h trn_matmul_slabs.h trn_matmul_row.h)
 *                trn_core.h (trn_core_memory.h trn_core_clock.h trn_core_state.h trn_core_operand.h trn_core_table.h
 *                trn_core_run.h)
 *     placement  trn_topology.h (trn_topology_graph.h trn_topology_cycles.h) trn_topology_svg.h (trn_topology_paper.h)
 *                trn_shard.h (trn_mesh.h trn_pspec.h trn_words.h)
 *     many chips trn_collective.h (trn_schedule.h trn_collective_group.h trn_collective_layout.h trn_collective_load.h
 *                trn_collective_time.h trn_collective_cost.h trn_collective_values.h trn_collective_views.h)
 *     sharded work   trn_reshard.h (trn_reshard_moves.h trn_reshard_search.h trn_reshard_plan.h trn_reshard_values.h
 *                trn_sharded_plan.h trn_sharded_pack.h trn_sharded_sums.h trn_sharded_fold.h trn_sharded_matmul.h)
 *     a whole job    trn_plan.h (trn_plan_args.h trn_plan_model.h trn_plan_place.h trn_plan_memory.h trn_plan_cost.h
 *                trn_plan_time.h trn_plan_trace.h); trn_mpi.h and trn_mpi_sharded.h when TRN_USE_MPI is defined
 *     ground     trn_base.h trn_cpu.h trn_share.h
 *
 * KNOWN FROM: each header's own lines.
 */
#ifndef TRN_TRNMATH_H
#define TRN_TRNMATH_H

#include "trn_act.h"
#include "trn_act_data.h"
#include "trn_alu.h"
#include "trn_alu_chain.h"
#include "trn_alu_kernels.h"
#include "trn_base.h"
#include "trn_cast.h"
#include "trn_cast_kernels.h"
#include "trn_collective.h"
#include "trn_collective_cost.h"
#include "trn_collective_group.h"
#include "trn_collective_layout.h"
#include "trn_collective_load.h"
#include "trn_collective_time.h"
#include "trn_collective_values.h"
#include "trn_collective_views.h"
#include "trn_convert.h"
#include "trn_core.h"
#include "trn_core_clock.h"
#include "trn_core_memory.h"
#include "trn_core_operand.h"
#include "trn_core_run.h"
#include "trn_core_state.h"
#include "trn_core_table.h"
#include "trn_cost.h"
#include "trn_cpu.h"
#include "trn_dma.h"
#include "trn_engine_cycles.h"
#include "trn_format.h"
#include "trn_gpsimd_custom.h"
#include "trn_gpsimd_engine.h"
#include "trn_gpsimd_math.h"
#include "trn_gpsimd_state.h"
#include "trn_matmul.h"
#include "trn_matmul_row.h"
#include "trn_matmul_slabs.h"
#include "trn_matmul_worker.h"
#include "trn_mesh.h"
#include "trn_mx.h"
#include "trn_mx_layout.h"
#include "trn_numerics.h"
#include "trn_pack.h"
#include "trn_plan.h"
#include "trn_plan_args.h"
#include "trn_plan_cost.h"
#include "trn_plan_memory.h"
#include "trn_plan_model.h"
#include "trn_plan_place.h"
#include "trn_plan_time.h"
#include "trn_plan_trace.h"
#include "trn_product.h"
#include "trn_product_define.h"
#include "trn_product_lanes.h"
#include "trn_pspec.h"
#include "trn_random.h"
#include "trn_reshard.h"
#include "trn_reshard_moves.h"
#include "trn_reshard_plan.h"
#include "trn_reshard_search.h"
#include "trn_reshard_values.h"
#include "trn_round.h"
#include "trn_scalar_engine.h"
#include "trn_schedule.h"
#include "trn_shard.h"
#include "trn_sharded_fold.h"
#include "trn_sharded_matmul.h"
#include "trn_sharded_pack.h"
#include "trn_sharded_plan.h"
#include "trn_sharded_sums.h"
#include "trn_share.h"
#include "trn_span.h"
#include "trn_sparse.h"
#include "trn_sparse_kernels.h"
#include "trn_sparse_pack.h"
#include "trn_spec.h"
#include "trn_systolic.h"
#include "trn_systolic_aligned.h"
#include "trn_systolic_feed.h"
#include "trn_systolic_lanes.h"
#include "trn_systolic_panels.h"
#include "trn_tensor.h"
#include "trn_tensor_cost.h"
#include "trn_tensor_cycles.h"
#include "trn_tensor_engine.h"
#include "trn_topology.h"
#include "trn_topology_cycles.h"
#include "trn_topology_graph.h"
#include "trn_topology_paper.h"
#include "trn_topology_svg.h"
#include "trn_trace.h"
#include "trn_vector_elementwise.h"
#include "trn_vector_engine.h"
#include "trn_vector_move.h"
#include "trn_vector_random.h"
#include "trn_vector_reduce.h"
#include "trn_vector_registers.h"
#include "trn_vector_rows.h"
#include "trn_vector_search.h"
#include "trn_vector_side.h"
#include "trn_vector_state.h"
#include "trn_vector_statistics.h"
#include "trn_walk.h"
#include "trn_words.h"
#if defined(TRN_USE_MPI) && TRN_USE_MPI + 0
#include "trn_mpi_sharded.h"
#endif

#endif /* TRN_TRNMATH_H */
