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
 *     machines   trn_spec.h machine/tensor_cycles.h trn_tensor_cost.h trn_engine_cycles.h trn_cost.h trn_trace.h
 *     data       trn_tensor.h data/cast_kernels.h data/cast.h trn_convert.h trn_pack.h trn_mx.h trn_sparse_pack.h
 *     engines    engine/span.h trn_alu.h array/systolic_aligned.h array/systolic.h array/systolic_feed.h array/systolic_panels.h array/product.h
 *                array/product_define.h array/product_lanes.h trn_tensor_engine.h array/sparse_kernels.h trn_sparse.h
 *     ScalarE    trn_scalar_engine.h (trn_act.h engine/act_data.h)
 *     VectorE    trn_vector_engine.h (trn_vector_elementwise.h trn_vector_reduce.h trn_vector_statistics.h
 *                engine/alu_kernels.h engine/alu_chain.h engine/vector_rows.h engine/vector_registers.h
 *                trn_vector_search.h trn_vector_move.h trn_vector_random.h; trn_vector_state.h engine/vector_transpose.h)
 *     GpSimd, DMA   engine/gpsimd_math.h trn_gpsimd_state.h trn_gpsimd_custom.h trn_gpsimd_engine.h trn_dma.h
 *     one core   trn_matmul.h (array/matmul_worker.h array/matmul_slabs.h array/matmul_row.h)
 *                trn_core.h (core/core_memory.h core/core_clock.h trn_core_state.h core/core_operand.h core/core_table.h
 *                core/core_run.h)
 *     placement  trn_topology.h (trn_topology_graph.h network/topology_cycles.h) trn_topology_svg.h (network/draw.h)
 *                trn_shard.h (trn_mesh.h trn_pspec.h base/parse.h)
 *     many chips trn_collective.h (trn_schedule.h trn_collective_group.h network/collective_layout.h network/collective_load.h
 *                network/collective_time.h trn_collective_cost.h network/collective_values.h network/collective_views.h)
 *     sharded work   trn_reshard.h (sharded/reshard_moves.h sharded/reshard_search.h trn_reshard_plan.h sharded/reshard_values.h
 *                trn_sharded_plan.h sharded/sharded_pack.h sharded/sharded_sums.h sharded/sharded_fold.h trn_sharded_matmul.h)
 *     a whole job    trn_plan.h (trn_plan_args.h trn_plan_model.h plan/plan_place.h plan/plan_memory.h plan/plan_cost.h
 *                plan/plan_time.h trn_plan_trace.h); trn_mpi.h and trn_mpi_sharded.h when TRN_USE_MPI is defined
 *     ground     trn_base.h trn_cpu.h base/threads.h
 *
 * KNOWN FROM: each header's own lines.
 */
#ifndef TRN_TRNMATH_H
#define TRN_TRNMATH_H

#include "trn_act.h"
#include "trn_alu.h"
#include "trn_base.h"
#include "trn_collective.h"
#include "trn_collective_cost.h"
#include "trn_collective_group.h"
#include "trn_convert.h"
#include "trn_core.h"
#include "trn_core_state.h"
#include "trn_cost.h"
#include "trn_cpu.h"
#include "trn_dma.h"
#include "trn_engine_cycles.h"
#include "trn_engine_state.h"
#include "trn_format.h"
#include "trn_gpsimd_custom.h"
#include "trn_gpsimd_engine.h"
#include "trn_instruction.h"
#include "trn_matmul.h"
#include "trn_mesh.h"
#include "trn_mx.h"
#include "trn_mx_layout.h"
#include "trn_numerics.h"
#include "trn_pack.h"
#include "trn_plan.h"
#include "trn_plan_args.h"
#include "trn_plan_model.h"
#include "trn_plan_trace.h"
#include "trn_pspec.h"
#include "trn_random.h"
#include "trn_reshard.h"
#include "trn_reshard_args.h"
#include "trn_reshard_plan.h"
#include "trn_round.h"
#include "trn_scalar_engine.h"
#include "trn_schedule.h"
#include "trn_shard.h"
#include "trn_sharded_matmul.h"
#include "trn_sharded_plan.h"
#include "trn_sparse.h"
#include "trn_sparse_pack.h"
#include "trn_spec.h"
#include "trn_tensor.h"
#include "trn_tensor_cost.h"
#include "trn_tensor_engine.h"
#include "trn_topology.h"
#include "trn_topology_graph.h"
#include "trn_topology_svg.h"
#include "trn_trace.h"
#include "trn_vector_elementwise.h"
#include "trn_vector_engine.h"
#include "trn_vector_move.h"
#include "trn_vector_random.h"
#include "trn_vector_reduce.h"
#include "trn_vector_search.h"
#include "trn_vector_statistics.h"
#if defined(TRN_USE_MPI) && TRN_USE_MPI + 0
#include "trn_mpi_sharded.h"
#endif

#endif /* TRN_TRNMATH_H */
