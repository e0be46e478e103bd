/* core/core_rows.h - every instruction of a NeuronCore as one row: who runs it, what it reads, writes, and costs.
 * Behind trn_core.h. SPDX-License-Identifier: MIT
 *
 * X(name, args, engine, cost, carry, special, operands ...)
 *
 *     name      trn_<name> with trn_<name>_args, which its engine's door has, becomes trn_core_<name>
 *     args      FULL: the core fills in numerics, rounding and random stream, too; BARE: there are none
 *     engine    who runs it unless the args say otherwise
 *     cost      rules of machine/engine_cycles.h: on VectorE, ScalarE and GpSimdE; TRNI_OWN: TensorE's and DMA's own
 *     carry     trni_carry of core_table.h: what becomes of elements that nothing has written
 *     special   TRNI_PLAIN: nothing; else TRNI_WITH(hooks, state, command), or a part of it:
 *                   hooks    the few functions of core_table.h that this row needs
 *                   state    where the args have the registers of an engine: V, S, or V and G
 *                   command  where they say what becomes of sums in registers, and what is meant by default
 *     operands  outputs first; at most 7: W is written, R read, E read (not two of these in PSUM), C a column that is
 *               read, O a column that is written, G gathered, S scattered, IN read from SBUF, OUT written to PSUM;
 *               with _I: it may be an indirect view (trn_core_indirect)
 *
 * KNOWN FROM: NKI's instruction pages, for memories and engines (documented).
 */
#ifndef TRNI_CORE_CORE_ROWS_H
#define TRNI_CORE_CORE_ROWS_H

#include "core_types.h"

#define TRNI_INSTRUCTIONS(X)                                                                                           \
    X(nc_matmul, FULL, TENSOR, TRNI_OWN, PRODUCT,                                                                      \
      TRNI_WITH_HOOKS(TRNI_TENSOR(trni_more_nc_matmul, trni_request_nc_matmul)),                                       \
      TRNI_OUT_I(nc_matmul, dst), TRNI_IN_I(nc_matmul, stationary), TRNI_IN_I(nc_matmul, moving))                      \
    X(nc_matmul_mx, FULL, TENSOR, TRNI_OWN, STRICT,                                                                    \
      TRNI_WITH_HOOKS(TRNI_TENSOR(trni_more_nc_matmul_mx, trni_request_nc_matmul_mx)),                                 \
      TRNI_OUT_I(nc_matmul_mx, dst), TRNI_IN_I(nc_matmul_mx, stationary), TRNI_IN_I(nc_matmul_mx, moving),             \
      TRNI_IN_I(nc_matmul_mx, stationary_scale), TRNI_IN_I(nc_matmul_mx, moving_scale))                                \
    X(nc_matmul_sparse, FULL, TENSOR, TRNI_OWN, STRICT,                                                                \
      TRNI_WITH_HOOKS(TRNI_TENSOR(trni_more_nc_matmul_sparse, trni_request_nc_matmul_sparse)),                         \
      TRNI_OUT(nc_matmul_sparse, dst), TRNI_IN(nc_matmul_sparse, stationary), TRNI_IN(nc_matmul_sparse, tags),         \
      TRNI_IN(nc_matmul_sparse, moving))                                                                               \
    X(nc_transpose, BARE, TENSOR, TRNI_OWN, TURNED, TRNI_WITH_HOOKS(TRNI_TENSOR(NULL, trni_request_nc_transpose)),     \
      TRNI_OUT(nc_transpose, dst), TRNI_IN(nc_transpose, data))                                                        \
    X(partition_broadcast, BARE, TENSOR, TRNI_OWN, SPREAD,                                                             \
      TRNI_WITH_HOOKS(TRNI_TENSOR(NULL, trni_request_partition_broadcast)),                                            \
      TRNI_W(partition_broadcast, dst), TRNI_IN(partition_broadcast, src))                                             \
    X(tensor_tensor, FULL, VECTOR, TRNI_COST(TENSOR_TENSOR, NONE, GPSIMD_TENSOR_TENSOR), ELEMENTS,                     \
      TRNI_WITH_HOOKS(TRNI_HOOKS(NULL, trni_choose_tensor_tensor, trni_tune_tensor_tensor, NULL)),                     \
      TRNI_W_I(tensor_tensor, dst), TRNI_E_I(tensor_tensor, data1), TRNI_E(tensor_tensor, data2))                      \
    X(tensor_scalar, FULL, VECTOR, TRNI_COST(TENSOR_SCALAR, SCALAR_TENSOR_SCALAR, GPSIMD_TENSOR_SCALAR), ELEMENTS,     \
      TRNI_WITH_HOOKS(TRNI_HOOKS(NULL, trni_choose_tensor_scalar, trni_tune_tensor_scalar, NULL)),                     \
      TRNI_W_I(tensor_scalar, dst), TRNI_R_I(tensor_scalar, data), TRNI_C(tensor_scalar, operand0_tile),               \
      TRNI_C(tensor_scalar, operand1_tile))                                                                            \
    X(scalar_tensor_tensor, FULL, VECTOR, TRNI_ON_V(SCALAR_TENSOR_TENSOR), ELEMENTS,                                   \
      TRNI_WITH_HOOKS(TRNI_TUNE(trni_tune_scalar_tensor_tensor)),                                                      \
      TRNI_W(scalar_tensor_tensor, dst), TRNI_E(scalar_tensor_tensor, data),                                           \
      TRNI_C(scalar_tensor_tensor, operand0_tile), TRNI_E(scalar_tensor_tensor, operand1))                             \
    X(tensor_copy, FULL, VECTOR, TRNI_COST(TENSOR_COPY, SCALAR_COPY, GPSIMD_COPY), ELEMENTS,                           \
      TRNI_WITH_HOOKS(TRNI_HOOKS(NULL, trni_choose_tensor_copy, NULL, NULL)),                                          \
      TRNI_W_I(tensor_copy, dst), TRNI_R_I(tensor_copy, src))                                                          \
    X(tensor_copy_predicated, FULL, VECTOR, TRNI_ON_V(TENSOR_COPY_PREDICATED), CHOSEN,                                 \
      TRNI_WITH_HOOKS(TRNI_HOOKS(NULL, NULL, NULL, trni_scatter_predicated)),                                          \
      TRNI_S_I(tensor_copy_predicated, dst), TRNI_E(tensor_copy_predicated, src),                                      \
      TRNI_E_I(tensor_copy_predicated, predicate))                                                                     \
    X(memset, FULL, VECTOR, TRNI_COST(MEMSET, NONE, GPSIMD_COPY), STRICT,                                              \
      TRNI_WITH_HOOKS(TRNI_TUNE(trni_tune_memset)),                                                                    \
      TRNI_W(memset, dst))                                                                                             \
    X(reciprocal, FULL, VECTOR, TRNI_ON_V(RECIPROCAL), ELEMENTS, TRNI_PLAIN,                                           \
      TRNI_W(reciprocal, dst), TRNI_R(reciprocal, data))                                                               \
    X(tensor_reduce, FULL, VECTOR, TRNI_ON_V(TENSOR_REDUCE), SUMS,                                                     \
      TRNI_WITH_HOOKS(TRNI_TUNE(trni_tune_tensor_reduce)),                                                             \
      TRNI_W_I(tensor_reduce, dst), TRNI_R_I(tensor_reduce, data))                                                     \
    X(tensor_scalar_reduce, FULL, VECTOR, TRNI_ON_V(TENSOR_SCALAR_REDUCE), SUMS,                                       \
      TRNI_WITH_SUMS(TRNI_STATE_V(tensor_scalar_reduce), TRNI_COMMAND(tensor_scalar_reduce, RESET_REDUCE)),            \
      TRNI_W_I(tensor_scalar_reduce, dst), TRNI_R_I(tensor_scalar_reduce, data),                                       \
      TRNI_C(tensor_scalar_reduce, operand0_tile), TRNI_O(tensor_scalar_reduce, reduce_res),                           \
      TRNI_C(tensor_scalar_reduce, reduce_init_tile))                                                                  \
    X(tensor_scalar_cumulative, FULL, VECTOR, TRNI_ON_V(TENSOR_SCALAR_CUMULATIVE), STRICT,                             \
      TRNI_WITH_STATE(TRNI_STATE_V(tensor_scalar_cumulative)),                                                         \
      TRNI_W_I(tensor_scalar_cumulative, dst), TRNI_R_I(tensor_scalar_cumulative, src),                                \
      TRNI_C(tensor_scalar_cumulative, imm0_tile), TRNI_C(tensor_scalar_cumulative, imm1_tile))                        \
    X(tensor_tensor_scan, FULL, VECTOR, TRNI_ON_V(TENSOR_TENSOR_SCAN), SUMS, TRNI_PLAIN,                               \
      TRNI_W(tensor_tensor_scan, dst), TRNI_E(tensor_tensor_scan, data0), TRNI_E(tensor_tensor_scan, data1),           \
      TRNI_C(tensor_tensor_scan, initial_tile))                                                                        \
    X(exponential, FULL, VECTOR, TRNI_ON_V(EXPONENTIAL), ELEMENTS,                                                     \
      TRNI_WITH_SUMS(TRNI_STATE_V(exponential), TRNI_COMMAND(exponential, IDLE)),                                      \
      TRNI_W_I(exponential, dst), TRNI_R_I(exponential, src), TRNI_C(exponential, max_value_tile),                     \
      TRNI_O(exponential, reduce_res), TRNI_C(exponential, reduce_init_tile))                                          \
    X(range_select, FULL, VECTOR, TRNI_ON_V(RANGE_SELECT), DATA,                                                       \
      TRNI_WITH_SUMS(TRNI_STATE_V(range_select), TRNI_COMMAND(range_select, RESET_REDUCE)),                            \
      TRNI_W(range_select, dst), TRNI_R(range_select, on_true_tile), TRNI_C(range_select, bound0),                     \
      TRNI_C(range_select, bound1), TRNI_O(range_select, reduce_res))                                                  \
    X(select_reduce, FULL, VECTOR, TRNI_ON_V(SELECT_REDUCE), ELEMENTS,                                                 \
      TRNI_WITH_SUMS(TRNI_STATE_V(select_reduce), TRNI_COMMAND(select_reduce, IDLE)),                                  \
      TRNI_W(select_reduce, dst), TRNI_E(select_reduce, predicate), TRNI_E(select_reduce, on_true),                    \
      TRNI_C(select_reduce, on_false_tile), TRNI_O(select_reduce, reduce_res))                                         \
    X(bn_stats, FULL, VECTOR, TRNI_ON_V(BN_STATS), SUMS, TRNI_PLAIN,                                                   \
      TRNI_W(bn_stats, dst), TRNI_R(bn_stats, data))                                                                   \
    X(bn_aggr, FULL, VECTOR, TRNI_ON_V(BN_AGGR), SUMS, TRNI_PLAIN,                                                     \
      TRNI_W(bn_aggr, dst), TRNI_R(bn_aggr, data))                                                                     \
    X(max8, FULL, VECTOR, TRNI_ON_V(MAX8), SUMS, TRNI_PLAIN,                                                           \
      TRNI_W(max8, dst), TRNI_R(max8, src))                                                                            \
    X(nc_find_index8, FULL, VECTOR, TRNI_ON_V(NC_FIND_INDEX8), SUMS, TRNI_PLAIN,                                       \
      TRNI_W(nc_find_index8, dst), TRNI_R(nc_find_index8, data), TRNI_R(nc_find_index8, vals))                         \
    X(nc_match_replace8, FULL, VECTOR, TRNI_ON_V(NC_MATCH_REPLACE8), SUMS, TRNI_PLAIN,                                 \
      TRNI_W(nc_match_replace8, dst), TRNI_R(nc_match_replace8, data), TRNI_R(nc_match_replace8, vals),                \
      TRNI_O(nc_match_replace8, dst_idx))                                                                              \
    X(nc_stream_shuffle, FULL, VECTOR, TRNI_ON_V(NC_STREAM_SHUFFLE), SHUFFLED,                                         \
      TRNI_WITH_HOOKS(TRNI_HOOKS(NULL, NULL, NULL, trni_scatter_shuffled)),                                            \
      TRNI_S(nc_stream_shuffle, dst), TRNI_G(nc_stream_shuffle, src))                                                  \
    X(vector_transpose, FULL, VECTOR, TRNI_ON_V(VECTOR_TRANSPOSE), TURNED, TRNI_PLAIN,                                 \
      TRNI_W(vector_transpose, dst), TRNI_R(vector_transpose, data))                                                   \
    X(quantize_mx, FULL, VECTOR, TRNI_ON_V(QUANTIZE_MX), STRICT,                                                       \
      TRNI_WITH_HOOKS(TRNI_HOOKS(trni_more_quantize_mx, NULL, NULL, NULL)),                                            \
      TRNI_W(quantize_mx, dst), TRNI_IN(quantize_mx, src), TRNI_O(quantize_mx, dst_scale))                             \
    X(rng, FULL, VECTOR, TRNI_COST(RNG, NONE, GPSIMD_RNG), STRICT, TRNI_WITH_STATE(TRNI_STATE_VG(rng)),                \
      TRNI_W(rng, dst))                                                                                                \
    X(rand2, FULL, VECTOR, TRNI_ON_V(RAND2), STRICT, TRNI_WITH_STATE(TRNI_STATE_V(rand2)),                             \
      TRNI_W(rand2, dst), TRNI_C(rand2, min_tile), TRNI_C(rand2, max_tile))                                            \
    X(dropout, FULL, VECTOR, TRNI_ON_V(DROPOUT), DATA, TRNI_WITH_STATE(TRNI_STATE_V(dropout)),                         \
      TRNI_W(dropout, dst), TRNI_R(dropout, data), TRNI_C(dropout, prob_tile))                                         \
    X(set_rng_seed, FULL, VECTOR, TRNI_ON_V(SET_RNG_SEED), STRICT, TRNI_WITH_STATE(TRNI_STATE_V(set_rng_seed)),        \
      TRNI_R(set_rng_seed, src_seeds))                                                                                 \
    X(rand_set_state, FULL, GPSIMD, TRNI_COST(RAND_STATE, NONE, GPSIMD_RNG), STRICT,                                   \
      TRNI_WITH_STATE(TRNI_STATE_VG(rand_set_state)),                                                                  \
      TRNI_R(rand_set_state, src_seeds))                                                                               \
    X(rand_get_state, FULL, GPSIMD, TRNI_COST(RAND_STATE, NONE, GPSIMD_RNG), STRICT,                                   \
      TRNI_WITH_STATE(TRNI_STATE_VG(rand_get_state)),                                                                  \
      TRNI_W(rand_get_state, dst))                                                                                     \
    X(activation, FULL, SCALAR, TRNI_COST(NONE, ACTIVATION, NONE), ELEMENTS,                                           \
      TRNI_WITH(TRNI_HOOKS(trni_more_activation, NULL, trni_tune_activation, NULL),                                    \
                TRNI_STATE_S(activation), TRNI_COMMAND(activation, IDLE)),                                             \
      TRNI_W_I(activation, dst), TRNI_R_I(activation, src), TRNI_C(activation, scale_tile),                            \
      TRNI_C(activation, bias_tile), TRNI_C(activation, param_tile), TRNI_O(activation, reduce_res))                   \
    X(activation_reduce, FULL, SCALAR, TRNI_COST(NONE, ACTIVATION, NONE), SUMS,                                        \
      TRNI_WITH(TRNI_HOOKS(trni_more_activation, NULL, trni_tune_activation, NULL),                                    \
                TRNI_STATE_S(activation_reduce), TRNI_COMMAND(activation_reduce, RESET_REDUCE)),                       \
      TRNI_W_I(activation_reduce, dst), TRNI_R_I(activation_reduce, src), TRNI_C(activation_reduce, scale_tile),       \
      TRNI_C(activation_reduce, bias_tile), TRNI_C(activation_reduce, param_tile),                                     \
      TRNI_O(activation_reduce, reduce_res))                                                                           \
    X(activate2, FULL, SCALAR, TRNI_COST(NONE, ACTIVATE2, NONE), ELEMENTS,                                             \
      TRNI_WITH(TRNI_HOOKS(trni_more_activate2, NULL, trni_tune_activate2, NULL),                                      \
                TRNI_STATE_S(activate2), TRNI_COMMAND(activate2, IDLE)),                                               \
      TRNI_W_I(activate2, dst), TRNI_R_I(activate2, src), TRNI_C(activate2, imm0_tile), TRNI_C(activate2, imm1_tile),  \
      TRNI_C(activate2, relu_param_tile), TRNI_O(activate2, reduce_res))                                               \
    X(iota, FULL, GPSIMD, TRNI_ON_G(IOTA), STRICT, TRNI_PLAIN,                                                         \
      TRNI_W(iota, dst))                                                                                               \
    X(affine_select, FULL, GPSIMD, TRNI_ON_G(AFFINE_SELECT), ELEMENTS, TRNI_PLAIN,                                     \
      TRNI_W(affine_select, dst), TRNI_R(affine_select, on_true_tile))                                                 \
    X(local_gather, FULL, GPSIMD, TRNI_ON_G(LOCAL_GATHER), STRICT, TRNI_WITH_HOOKS(TRNI_TUNE(trni_tune_output)),       \
      TRNI_W(local_gather, dst), TRNI_G(local_gather, src_buffer), TRNI_G(local_gather, index))                        \
    X(nc_n_gather, FULL, GPSIMD, TRNI_ON_G(NC_N_GATHER), STRICT, TRNI_WITH_HOOKS(TRNI_TUNE(trni_tune_output)),         \
      TRNI_W(nc_n_gather, dst), TRNI_G(nc_n_gather, data), TRNI_R(nc_n_gather, indices))                               \
    X(tensor_partition_reduce, FULL, GPSIMD, TRNI_ON_G(TENSOR_PARTITION_REDUCE), STRICT, TRNI_PLAIN,                   \
      TRNI_W(tensor_partition_reduce, dst), TRNI_R(tensor_partition_reduce, data))                                     \
    X(nonzero_with_count, FULL, GPSIMD, TRNI_ON_G(NONZERO_WITH_COUNT), STRICT,                                         \
      TRNI_WITH_HOOKS(TRNI_HOOKS(NULL, NULL, NULL, trni_scatter_nonzero_with_count)),                                  \
      TRNI_S(nonzero_with_count, dst), TRNI_G(nonzero_with_count, src))                                                \
    X(sequence_bounds, FULL, GPSIMD, TRNI_ON_G(SEQUENCE_BOUNDS), STRICT, TRNI_PLAIN,                                   \
      TRNI_W(sequence_bounds, dst), TRNI_R(sequence_bounds, segment_ids))                                              \
    X(topk, FULL, GPSIMD, TRNI_ON_G(TOPK), STRICT, TRNI_WITH_HOOKS(TRNI_TUNE(trni_tune_topk)),                         \
      TRNI_W(topk, val_dst), TRNI_W(topk, idx_dst), TRNI_G(topk, src))                                                 \
    X(gpsimd_custom, FULL, GPSIMD, TRNI_ON_G(GPSIMD_CUSTOM), STRICT,                                                   \
      TRNI_WITH_HOOKS(TRNI_HOOKS(trni_more_gpsimd_custom, NULL, trni_tune_gpsimd_custom, NULL)),                       \
      TRNI_NO_PART)                                                                                                    \
    X(dma_copy, FULL, DMA, TRNI_OWN, DATA,                                                                             \
      TRNI_WITH_HOOKS(TRNI_DMA(trni_more_dma_copy, trni_scatter_dma_copy, trni_move_dma_copy)),                        \
      TRNI_W(dma_copy, dst), TRNI_R(dma_copy, src), TRNI_C(dma_copy, src_index), TRNI_C(dma_copy, dst_index),          \
      TRNI_IN(dma_copy, dst_offset.value), TRNI_IN(dma_copy, src_offset.value))                                        \
    X(dma_transpose, FULL, DMA, TRNI_OWN, TURNED,                                                                      \
      TRNI_WITH_HOOKS(TRNI_DMA(trni_more_dma_transpose, NULL, trni_move_dma_transpose)),                               \
      TRNI_W(dma_transpose, dst), TRNI_R(dma_transpose, src), TRNI_C(dma_transpose, index))                            \
    X(dma_compute, FULL, DMA, TRNI_OWN, DATA,                                                                          \
      TRNI_WITH_HOOKS(TRNI_DMA(trni_more_dma_compute, trni_scatter_dma_compute, trni_move_dma_compute)),               \
      TRNI_W(dma_compute, dst), TRNI_C(dma_compute, index))

#endif /* TRNI_CORE_CORE_ROWS_H */
