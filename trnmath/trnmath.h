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
 * CONTENTS (by floor; README.md beside this file says what each gives)
 *     base       trn_base.h trn_cpu.h trn_fit.h
 *     number     trn_format.h trn_round.h trn_random.h
 *     machine    trn_spec_core.h trn_spec.h trn_spec_physical.h trn_numerics.h trn_cost.h trn_tensor_cost.h
 *                trn_engine_cycles.h trn_trace.h trn_calibration.h
 *     data       trn_tensor.h trn_convert.h trn_mx.h trn_mx_layout.h trn_pack.h
 *     array      trn_matmul.h trn_tensor_engine.h trn_tolerance.h trn_sparse.h trn_sparse_pack.h
 *     engine     trn_instruction.h trn_alu.h trn_act.h trn_engine_state.h trn_scalar_engine.h trn_vector_engine.h
 *                trn_vector_elementwise.h trn_vector_reduce.h trn_vector_statistics.h trn_vector_search.h
 *                trn_vector_move.h trn_vector_random.h trn_gpsimd_engine.h trn_gpsimd_custom.h trn_dma.h
 *     core       trn_core.h trn_core_state.h trn_core_register.h
 *     network    trn_topology.h trn_topology_parts.h trn_topology_levels.h trn_topology_graph.h trn_topology_faults.h
 *                trn_topology_file.h trn_topology_svg.h trn_mesh.h trn_pspec.h trn_shard.h trn_schedule.h
 *                trn_collective.h trn_collective_group.h trn_collective_cost.h
 *                trn_calibration_fit.h trn_calibration_file.h trn_traffic.h
 *     sharded    trn_reshard.h trn_reshard_args.h trn_reshard_plan.h trn_sharded_matmul.h trn_sharded_plan.h
 *     cores      trn_cores.h trn_cores_args.h
 *     plan       trn_plan.h trn_plan_args.h trn_plan_model.h trn_plan_trace.h
 *     mpi        trn_mpi.h trn_mpi_sharded.h trn_mpi_cores.h, when TRN_USE_MPI is defined
 *
 * KNOWN FROM: each header's own lines.
 */
#ifndef TRN_TRNMATH_H
#define TRN_TRNMATH_H

#include "trn_act.h"
#include "trn_alu.h"
#include "trn_base.h"
#include "trn_calibration.h"
#include "trn_calibration_file.h"
#include "trn_calibration_fit.h"
#include "trn_collective.h"
#include "trn_collective_cost.h"
#include "trn_collective_group.h"
#include "trn_convert.h"
#include "trn_core.h"
#include "trn_core_register.h"
#include "trn_core_state.h"
#include "trn_cores.h"
#include "trn_cores_args.h"
#include "trn_cost.h"
#include "trn_cpu.h"
#include "trn_dma.h"
#include "trn_engine_cycles.h"
#include "trn_engine_state.h"
#include "trn_fit.h"
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
#include "trn_spec_core.h"
#include "trn_spec_physical.h"
#include "trn_tensor.h"
#include "trn_tensor_cost.h"
#include "trn_tensor_engine.h"
#include "trn_tolerance.h"
#include "trn_topology.h"
#include "trn_topology_faults.h"
#include "trn_topology_file.h"
#include "trn_topology_graph.h"
#include "trn_topology_levels.h"
#include "trn_topology_parts.h"
#include "trn_topology_svg.h"
#include "trn_trace.h"
#include "trn_traffic.h"
#include "trn_vector_elementwise.h"
#include "trn_vector_engine.h"
#include "trn_vector_move.h"
#include "trn_vector_random.h"
#include "trn_vector_reduce.h"
#include "trn_vector_search.h"
#include "trn_vector_statistics.h"
#if defined(TRN_USE_MPI) && TRN_USE_MPI + 0
#include "trn_mpi_cores.h"
#include "trn_mpi_sharded.h"
#endif

#endif /* TRN_TRNMATH_H */
