/* flat_instructions.h - every call of nki.isa, NKI 0.6.0, as text.
 * Part of trnmath_flat.c. SPDX-License-Identifier: MIT
 *
 * Made by tests/house/nki_isa.py from tests/published/nki_isa_0_6_0.txt. Numerics and cost: d documented,
 * m measured, a assumed, as trnmath/engines.md explains.
 */
#ifndef TRNMATH_FLAT_INSTRUCTIONS_H
#define TRNMATH_FLAT_INSTRUCTIONS_H

enum { FLAT_INSTRUCTION_CELLS = 6 }; /* name, arguments, engine, generations, numerics, cost */

/* clang-format off */
static const char *const flat_instruction[][FLAT_INSTRUCTION_CELLS] = {
    { "get_nc_sub_version", "", "", "", "front alone: 0", "" },
    { "get_nc_version", "", "", "", ".generation, trn_core_spec_of", "" },
    { "dma_copy", "dst, src, priority=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, "
      "engine=engine.unknown", "DMA", "1 2 3", "d: casts through float32; a: nearest even (sr_where)",
      "d: 1.3 us, 17/23/33 B/ns; a: overlap" },
    { "tensor_copy", "dst, src, engine=engine.unknown", "Vector, Scalar, GpSimd", "1 2 3",
      "d: bits within one format, else through float32", "d; GpSimd a" },
    { "memset", "dst, value, engine=engine.unknown", "Vector, GpSimd", "1 2 3", "d", "d; GpSimd a" },
    { "tensor_copy_predicated", "dst, src, predicate, reverse_pred=False", "Vector", "1 2 3", "d", "d" },
    { "nc_matmul", "dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, "
      "is_transpose=False, accumulate=None, tile_position=(), tile_size=(), " "perf_mode=matmul_perf_mode.none",
      "Tensor", "1 2 3", "see the modes above", "d" },
    { "nc_matmul_mx", "dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, "
      "tile_size=None, accumulate=None", "Tensor", "3", "see the modes above; scales dense or in scale tiles", "d" },
    { "nc_transpose", "dst, data, engine=engine.unknown", "Tensor, Vector (vector_transpose)", "1 2 3",
      "d: bits move (Tensor of Trainium1: a product)", "d" },
    { "dma_transpose", "dst, src, axes=None, priority=None, dge_mode=dge_mode.unknown, oob_mode=oob_mode.error",
      "DMA", "2 3", "d: bits move", "d: 90 %, 50 % of copies" },
    { "tensor_tensor", "dst, data1, data2, op, engine=engine.unknown", "Vector, GpSimd", "1 2 3",
      "d: float32 inside, int32 exact on GpSimd; a: int32 wraps, max/min and comparisons with NaN", "d; GpSimd a" },
    { "tensor_scalar", "dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, "
      "engine=engine.unknown", "Vector, Scalar, GpSimd", "1 2 3",
      "d; a: one rounding for each of the two operators", "d; GpSimd a" },
    { "tensor_reduce", "dst, op, data, axis, negate=False, keepdims=False", "Vector", "1 2 3",
      "m: one ascending chain (a published figure of Trainium2)", "d" },
    { "tensor_partition_reduce", "dst, op, data", "GpSimd", "1 2 3", "d: operators; a: ascending", "a" },
    { "tensor_scalar_cumulative", "dst, src, op0, op1, imm0, imm1=None, reduce_cmd=reduce_cmd.reset_reduce",
      "Vector", "1 2 3", "d", "a" },
    { "activation", "dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, "
      "reduce_cmd=reduce_cmd.idle", "Scalar", "1 2 3",
      "m: exp, reciprocal (below); d: sin beyond its range; a: the other tables, reduce before " "the cast", "d" },
    { "activation_reduce", "dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0", "Scalar", "1 2 3",
      "as activation", "d" },
    { "activate2", "dst, op, data, imm0, imm1, op0, op1, relu_param=0.0, reverse0=False, reverse1=False, "
      "reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle", "Scalar", "3",
      "d: six pairs, five reductions; the table as activation", "a" },
    { "iota", "dst, pattern, offset=0, channel_multiplier=0", "GpSimd", "1 2 3", "d: int32", "d" },
    { "affine_select", "dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=equal, offset=0",
      "GpSimd", "1 2 3", "d", "d" },
    { "local_gather", "dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None", "GpSimd", "1 2 3",
      "d; outside the buffer: refused", "d; constant a" },
    { "nc_n_gather", "dst, data, indices", "GpSimd", "1 2 3", "d", "a" },
    { "bn_stats", "dst, data", "Vector", "1 2 3", "d: what is returned; a: two passes, Chan's update in order", "d" },
    { "bn_aggr", "dst, data", "Vector", "1 2 3", "d: what is returned; a: two passes, Chan's update in order", "d" },
    { "tensor_tensor_scan", "dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False", "Vector",
      "1 2 3", "d: strictly sequential, float32 state", "d" },
    { "nc_stream_shuffle", "dst, src, shuffle_mask", "Vector", "1 2 3", "d", "d" },
    { "rng", "dst, engine=engine.vector", "Vector, GpSimd", "1 2 3 (GpSimd 2 3)",
      "d: 32 bits, the low ones; a: which words", "a" },
    { "dropout", "dst, data, prob", "Vector", "1 2 3", "d: 0 and 1; a: the comparison", "d" },
    { "set_rng_seed", "src_seeds", "Vector", "1 2 3", "d; a: from seed to states", "a" },
    { "rand_set_state", "src_seeds, engine=engine.gpsimd", "GpSimd, Vector", "2 3 (Vector 3)",
      "d: 6 and 24 words; a: their order", "a" },
    { "rand_get_state", "dst, engine=engine.gpsimd", "GpSimd, Vector", "2 3 (Vector 3)",
      "d: 6 and 24 words; a: their order", "a" },
    { "rand2", "dst, min, max", "Vector", "3",
      "d: uniform between min and max, XORWOW; a: the words, the roundings", "a" },
    { "exponential", "dst, src, max_value=0.0, reduce_res=None, reduce_cmd=reduce_cmd.idle, reduce_init=0.0",
      "Vector", "3", "d; a: the Scalar engine's exp, sums before the cast", "d" },
    { "reciprocal", "dst, data", "Vector", "1 2 3", "a: correctly rounded", "d" },
    { "max8", "dst, src", "Vector", "1 2 3", "d; a: NaN comes last", "d" },
    { "sequence_bounds", "dst, segment_ids", "GpSimd", "1 2 3", "d", "a" },
    { "scalar_tensor_tensor", "dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False", "Vector",
      "1 2 3", "d; a: as above", "d" },
    { "tensor_scalar_reduce", "dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False, "
      "reduce_cmd=reduce_cmd.reset_reduce, reduce_init=None, reduce_res_negate=False", "Vector", "1 2 3",
      "d; a: ascending", "d" },
    { "core_barrier", "data, cores, engine=engine.gpsimd", "any", "2 3", "d: who waits (trn_cores_barrier)",
      "a: a step inside the chip" },
    { "dma_compute", "dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=oob_mode.error", "DMA",
      "1 2 3", "d: up to 16 sources in float32; a: ascending", "d: half of the rate" },
    { "quantize_mx", "dst, src, dst_scale", "Vector", "3",
      "d: scale twice OCP's, where scales lie; a: groups with NaN or infinity (mx_scale_rule)", "d" },
    { "range_select", "dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.reset_reduce,"
      " reduce_res=None, reduce_op=maximum, range_start=0, on_false_value=...", "Vector", "2 3", "d", "d" },
    { "select_reduce", "dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=reduce_cmd.idle, "
      "reduce_op=maximum, reverse_pred=False", "Vector", "1 2 3", "d", "a" },
    { "sendrecv", "src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=dma_engine.dma", "DMA", "2 3",
      "d: bits move (trn_cores_sendrecv)", "d: as dma_copy" },
    { "register_alloc", "x=None", "any", "1 2 3", "d: 32 bits, which loops and addresses depend on (trn_core.h)",
      "a: 64 cycles for a load, a store, a branch; HBM a transfer's latency" },
    { "register_move", "dst, src", "any", "1 2 3", "d: 32 bits, which loops and addresses depend on (trn_core.h)",
      "a: 64 cycles for a load, a store, a branch; HBM a transfer's latency" },
    { "register_load", "dst, src", "any", "1 2 3", "d: 32 bits, which loops and addresses depend on (trn_core.h)",
      "a: 64 cycles for a load, a store, a branch; HBM a transfer's latency" },
    { "register_store", "dst, src", "any", "1 2 3", "d: 32 bits, which loops and addresses depend on (trn_core.h)",
      "a: 64 cycles for a load, a store, a branch; HBM a transfer's latency" },
    { "nc_find_index8", "dst, data, vals", "Vector", "1 2 3", "d; a: NaN is not found", "d" },
    { "nc_match_replace8", "dst, data, vals, imm, dst_idx=None", "Vector", "1 2 3", "d; m: no dst_idx on Trainium1",
      "a" },
    { "nonzero_with_count", "dst, src, index_offset=0, padding_val=-1", "GpSimd", "2 3", "d", "a" },
    { "topk", "val_dst, idx_dst, src, n", "GpSimd", "1 2 3", "d: the snake, ascending; a: ties", "d" },
};
/* clang-format on */

#endif /* TRNMATH_FLAT_INSTRUCTIONS_H */
