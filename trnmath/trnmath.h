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
 *     base       trn_base.h trn_cpu.h
 *     number     trn_format.h trn_round.h trn_random.h
 *     machine    trn_spec.h trn_numerics.h trn_cost.h trn_trace.h trn_calibration.h
 *     data       trn_tensor.h trn_convert.h trn_mx.h trn_pack.h
 *     array      trn_matmul.h trn_tensor_engine.h trn_tolerance.h trn_sparse.h
 *     engine     trn_instruction.h trn_alu.h trn_act.h trn_engine_state.h trn_scalar_engine.h trn_vector_engine.h
 *                trn_gpsimd_engine.h trn_dma.h
 *     core       trn_core.h
 *     network    trn_topology.h trn_mesh.h trn_shard.h trn_schedule.h trn_collective.h trn_collective_cost.h
 *                trn_calibration_fit.h trn_traffic.h
 *     sharded    trn_reshard.h
 *     cores      trn_cores.h
 *     plan       trn_plan.h
 *     mpi        trn_mpi.h, when TRN_USE_MPI is defined
 *
 * KNOWN FROM: each header's own lines.
 */
#ifndef TRN_TRNMATH_H
#define TRN_TRNMATH_H

#include "trn_act.h"
#include "trn_alu.h"
#include "trn_base.h"
#include "trn_calibration.h"
#include "trn_calibration_fit.h"
#include "trn_collective.h"
#include "trn_collective_cost.h"
#include "trn_convert.h"
#include "trn_core.h"
#include "trn_cores.h"
#include "trn_cost.h"
#include "trn_cpu.h"
#include "trn_dma.h"
#include "trn_engine_state.h"
#include "trn_format.h"
#include "trn_gpsimd_engine.h"
#include "trn_instruction.h"
#include "trn_matmul.h"
#include "trn_mesh.h"
#include "trn_mx.h"
#include "trn_numerics.h"
#include "trn_pack.h"
#include "trn_plan.h"
#include "trn_shard.h"
#include "trn_random.h"
#include "trn_reshard.h"
#include "trn_round.h"
#include "trn_scalar_engine.h"
#include "trn_schedule.h"
#include "trn_sparse.h"
#include "trn_spec.h"
#include "trn_tensor.h"
#include "trn_tensor_engine.h"
#include "trn_tolerance.h"
#include "trn_topology.h"
#include "trn_trace.h"
#include "trn_traffic.h"
#include "trn_vector_engine.h"
#if defined(TRN_USE_MPI) && TRN_USE_MPI + 0
#include "trn_mpi.h"
#endif

#endif /* TRN_TRNMATH_H */
