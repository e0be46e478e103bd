"""nki.isa: one function per instruction, with the names and arguments of NKI 0.6.0. Each is an instruction of
trn_core.h on the core that dst lies on; shapes, limits, roundings and costs are told there and in trnmath/engines.md.

SPDX-License-Identifier: MIT
"""
from . import _core, dtypes as _dtypes
from .constants import (dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd)
from .index import Placed, Register, Rows, Scattered, agree as _agree, scalar as _scalar
from .operators import act as _act, alu as _alu, named as _named
from .tensor import PSUM as _PSUM, NkiTensor

tensor_engine, vector_engine, scalar_engine = engine.tensor, engine.vector, engine.scalar
gpsimd_engine, dma_engines, unknown_engine = engine.gpsimd, engine.dma, engine.unknown
VirtualRegister = Register

_I = _core.instruction
_FLOAT32 = _dtypes.of("float32")


# ---- which machine ----

def get_nc_version():
    """The NeuronCore's version: gen2, gen3, gen4 for Trainium1, 2, 3."""
    from .simulator import current
    return nc_version(current().generation + 1)


def get_nc_sub_version():
    """The revision of it: 0."""
    return 0


# ---- the Tensor engine ----

def nc_matmul(dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False,
              accumulate=None, tile_position=(), tile_size=(), perf_mode=matmul_perf_mode.none, name=None):
    """dst [M, N] (+)= stationary [K, M] turned, times moving [K, N]. accumulate=None: the first product of a place in
    PSUM overwrites it, later ones add."""
    if accumulate is None:
        accumulate = not is_transpose and dst.touched()
    _I["nc_matmul"](dst.core, _flat(dst), stationary, moving, accumulate, perf_mode.rows == 2, is_transpose,
                    is_stationary_onezero, is_moving_onezero, tile_position, tile_size)
    dst.touch()


def nc_matmul_mx(dst, stationary, moving, stationary_scale, moving_scale, tile_position=None, tile_size=None,
                 accumulate=None, name=None):
    """The same of x4 formats with a scale for each 8 partitions x 4 elements."""
    if accumulate is None:
        accumulate = dst.touched()
    _I["nc_matmul_mx"](dst.core, _flat(dst), _four(_flat(stationary)), _four(_flat(moving)),
                       _scale(_flat(stationary_scale)), _scale(_flat(moving_scale)),
                       accumulate, tile_position or (), tile_size or ())
    dst.touch()


def nc_transpose(dst, data, engine=engine.unknown, name=None):
    """dst [F, P] = data [P, F] turned: on the Tensor engine, or in blocks of 32 on the Vector engine."""
    on_vector = engine == vector_engine or (engine == unknown_engine and dst.space != _PSUM)
    _I["vector_transpose" if on_vector else "nc_transpose"](dst.core, _flat(dst), _flat(data))
    if not on_vector:
        dst.touch()


# ---- the Vector engine, and what it shares with others ----

def tensor_tensor(dst, data1, data2, op, engine=engine.unknown, name=None):
    """dst = data1 op data2."""
    _I["tensor_tensor"](dst.core, dst, data1, data2, _alu(op), engine)


def tensor_scalar(dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False,
                  engine=engine.unknown, name=None):
    """dst = (data op0 operand0) op1 operand1; operands are numbers or tiles [P, 1]."""
    _I["tensor_scalar"](dst.core, dst, data, _alu(op0), operand0, reverse0, _alu(op1), operand1, reverse1, engine)


def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None):
    """dst = (data op0 operand0) op1 operand1, where operand1 is a tile like data."""
    _I["scalar_tensor_tensor"](dst.core, dst, data, _alu(op0), operand0, reverse0, _alu(op1), operand1, reverse1)


def tensor_copy(dst, src, engine=engine.unknown, name=None, **more):
    """dst = src, cast where formats differ."""
    if more:
        _older(more, dst)
    _I["tensor_copy"](dst.core, dst, src, engine)


def tensor_copy_predicated(dst, src, predicate, reverse_pred=False, name=None):
    """dst = src where predicate is not 0 (is 0 with reverse_pred); elsewhere dst stays."""
    _I["tensor_copy_predicated"](dst.core, dst, src, predicate, reverse_pred)


def memset(dst, value, engine=engine.unknown, name=None):
    """Every element of dst = value: an integer exactly, where dst holds integers."""
    if type(value) is int and abs(value) > 1 << 24 and "int" in str(dst.dtype):
        _I["memset"](dst.core, dst, 0.0, engine, True, value)
    else:
        _I["memset"](dst.core, dst, value, engine)


def reciprocal(dst, data, name=None):
    """dst = 1 / data."""
    _I["reciprocal"](dst.core, dst, data)


def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None):
    """dst = data reduced along free axes, in one ascending chain of float32."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = sorted(a % data.ndim for a in axes)
    rest = [a for a in range(data.ndim) if a not in axes]
    if axes != list(range(data.ndim - len(axes), data.ndim)):
        data = data.permute(tuple(rest + axes))
    if dst.ndim != len(rest):
        dst = dst.reshaped(data.shape[:len(rest)])
    _I["tensor_reduce"](dst.core, dst, data, _alu(op), len(axes), negate, False)


def tensor_scalar_reduce(dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False,
                         reduce_cmd=reduce_cmd.reset_reduce, reduce_init=None, reduce_res_negate=False, name=None):
    """dst = data op0 operand0, and reduce_res [P, 1] = all of it by reduce_op."""
    _I["tensor_scalar_reduce"](dst.core, dst, data, _alu(op0), operand0, reverse0, _alu(reduce_op), reduce_res,
                               reduce_cmd, reduce_init, reduce_res_negate)


def tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1=None, reduce_cmd=reduce_cmd.reset_reduce, name=None):
    """dst[i] = (src[i] op0 imm0) op1 what came before."""
    _I["tensor_scalar_cumulative"](dst.core, dst, src, _alu(op0), _alu(op1), imm0, imm1, reduce_cmd)


def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None):
    """dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i], in float32."""
    _I["tensor_tensor_scan"](dst.core, dst, data0, data1, initial, _alu(op0), _alu(op1), reverse0, reverse1)


def exponential(dst, src, max_value=0.0, reduce_res=None, reduce_cmd=reduce_cmd.idle, reduce_init=0.0, name=None):
    """dst = exp(src - max_value), and its sum per partition. Trainium3."""
    _I["exponential"](dst.core, dst, src, max_value, reduce_res, reduce_cmd, reduce_init)


def range_select(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.reset_reduce,
                 reduce_res=None, reduce_op="maximum", range_start=0, on_false_value=-3.4028235e38, name=None):
    """dst = on_true_tile where the column number lies between bound0 and bound1 [P, 1], else on_false_value."""
    _I["range_select"](dst.core, dst, on_true_tile, _alu(comp_op0), _alu(comp_op1), bound0, bound1, reduce_cmd,
                       reduce_res, _alu(reduce_op), range_start, on_false_value)


def select_reduce(dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=reduce_cmd.idle, reduce_op="maximum",
                  reverse_pred=False, name=None):
    """dst = on_true where predicate, else on_false, and its maximum per partition."""
    _I["select_reduce"](dst.core, dst, predicate, on_true, on_false, reduce_res, reduce_cmd, _alu(reduce_op),
                        reverse_pred)


def bn_stats(dst, data, name=None):
    """dst [P, 6]: count, mean, variance x count, of even and of odd elements."""
    _I["bn_stats"](dst.core, dst, data)


def bn_aggr(dst, data, name=None):
    """dst [P, 2]: mean and variance of several bn_stats."""
    _I["bn_aggr"](dst.core, dst, data)


def max8(dst, src, name=None):
    """The eight largest of each partition, descending."""
    _I["max8"](dst.core, dst, src)


def nc_find_index8(dst, data, vals, name=None):
    """Where the eight vals first stand in each partition."""
    _I["nc_find_index8"](dst.core, dst, data, vals)


def nc_match_replace8(dst, data, vals, imm, dst_idx=None, name=None):
    """data with the first place of each of eight vals replaced by imm."""
    _I["nc_match_replace8"](dst.core, dst, data, vals, imm, dst_idx)


def nc_stream_shuffle(dst, src, shuffle_mask, name=None):
    """Partition i of each 32 of dst is partition shuffle_mask[i] of src; 255 leaves it."""
    _I["nc_stream_shuffle"](dst.core, dst, src, shuffle_mask)


def quantize_mx(dst, src, dst_scale, name=None):
    """src [P, F] as MX: dst [P, F/4] of an x4 format and its scales. Trainium3."""
    _I["quantize_mx"](dst.core, _four(_flat(dst)), _flat(src), _scale(_flat(dst_scale)))


def rng(dst, engine=engine.vector, name=None):
    """Random bits."""
    _I["rng"](dst.core, dst, engine)


def rand2(dst, min, max, name=None):
    """Uniform numbers between min and max. Trainium3."""
    _I["rand2"](dst.core, dst, min, max)


def dropout(dst, data, prob, name=None):
    """data with elements set to 0 with this probability."""
    _I["dropout"](dst.core, dst, data, prob)


def set_rng_seed(src_seeds, name=None):
    """Seeds the Vector engine's generators."""
    _I["set_rng_seed"](src_seeds.core, src_seeds)


def rand_set_state(src_seeds, engine=engine.gpsimd, name=None):
    """Sets the states of a generator."""
    _I["rand_set_state"](src_seeds.core, src_seeds, engine)


def rand_get_state(dst, engine=engine.gpsimd, name=None):
    """Reads the states of a generator."""
    _I["rand_get_state"](dst.core, dst, engine)


# ---- the Scalar engine ----

def activation(dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle,
               name=None):
    """dst = op(scale data + bias); reduce_res [P, 1]: its sum."""
    _sums(reduce_op)
    _I["activation"](dst.core, dst, data, _act(op), _scale_of(scale, data), bias, None, reduce_res, reduce_cmd)


def activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0, name=None):
    """The same, whose sums begin anew."""
    _sums(reduce_op)
    _I["activation"](dst.core, dst, data, _act(op), _scale_of(scale, data), bias, None, reduce_res,
                     reduce_cmd.reset_reduce)


def _sums(reduce_op):
    if reduce_op is not None and _alu(reduce_op) != _alu("add"):
        raise _core.Error(f"activation adds up; {_named(reduce_op).name} is activate2's, of Trainium3")


def _scale_of(scale, data):
    """Scale 0, which the C library takes for none, as a column."""
    if isinstance(scale, NkiTensor) or scale != 0:
        return scale
    column = data.core.tile("zero", 0, 1, (data.shape[0], 1), _FLOAT32, 0, -1, False)
    memset(column, 0.0)
    return column


def activate2(dst, op, data, imm0, imm1, op0, op1, relu_param=0.0, reverse0=False, reverse1=False, reduce_op=None,
              reduce_res=None, reduce_cmd=reduce_cmd.idle, name=None):
    """dst = op((data op0 imm0) op1 imm1). Trainium3."""
    _I["activate2"](dst.core, dst, data, _act(op), _alu(op0), _alu(op1), imm0, imm1, relu_param, reverse0, reverse1,
                    _alu(reduce_op), reduce_res, reduce_cmd)


# ---- the GpSimd engine ----

def iota(dst, pattern, offset=0, channel_multiplier=0, name=None):
    """dst = offset + channel_multiplier x partition + what the pattern counts."""
    _I["iota"](dst.core, dst, pattern, offset, channel_multiplier)


def affine_select(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op="equal", offset=0, name=None):
    """on_true_tile where iota's number cmp_op 0, else on_false_value."""
    _I["affine_select"](dst.core, dst, pattern, channel_multiplier, on_true_tile, on_false_value, _alu(cmp_op), offset)


def local_gather(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None):
    """Groups of elements by the indices of 16 partitions together."""
    if num_valid_indices is not None and num_valid_indices < 1:  # 0 is C's word for all
        raise _core.Error(f"local_gather: num_valid_indices is {num_valid_indices}; it is one and more")
    _I["local_gather"](dst.core, dst, src_buffer, index, num_elem_per_idx, num_valid_indices)


def nc_n_gather(dst, data, indices, name=None):
    """dst[p, i] = data[p, indices[p, i]]."""
    _I["nc_n_gather"](dst.core, dst, data, indices)


def tensor_partition_reduce(dst, op, data, name=None):
    """dst [1, F] = data reduced across partitions."""
    _I["tensor_partition_reduce"](dst.core, dst, data, _alu(op))


def nonzero_with_count(dst, src, index_offset=0, padding_val=-1, name=None):
    """Indices of what is not 0, and how many."""
    _I["nonzero_with_count"](dst.core, dst, src, index_offset, padding_val)


def sequence_bounds(dst, segment_ids, name=None):
    """Where each segment begins and ends."""
    _I["sequence_bounds"](dst.core, dst, segment_ids)


def topk(val_dst, idx_dst, src, n, name=None):
    """The largest of each n elements, and where they stand."""
    _I["topk"](val_dst.core, val_dst, idx_dst, src, n)


# ---- DMA ----

def dma_copy(dst, src, priority=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, engine=engine.unknown,
             name=None, **more):
    """dst = src, in shapes that agree axis by axis; rows that a tile of indices chooses where a view says so."""
    if more:
        _older(more, dst)
    if type(src) is Scattered or type(dst) is Scattered:
        from . import scattered
        return scattered.copy(dst, src, priority=priority, dge_mode=dge_mode)
    src, rows = (src.tensor, src.rows) if type(src) is Rows else (src, None)
    dst, to_rows = (dst.tensor, dst.rows) if type(dst) is Rows else (dst, None)
    if rows is None and to_rows is None and dst.shape != src.shape:
        _agree("dma_copy", dst, src)
    src, *source = _placed(src)
    dst, *place = _placed(dst)
    _I["dma_copy"](dst.core, dst, src, rows, to_rows, oob_mode, dge_mode, priority, None, *source, *place)


def _placed(side):
    """The view; the number that it begins further on, of which tensor, along which axis."""
    return (side.view, side.value, side.of, side.dim) if type(side) is Placed else (side, None, None, None)


def dma_transpose(dst, src, axes=None, priority=None, dge_mode=dge_mode.unknown, oob_mode=oob_mode.error, name=None):
    """dst = src with its axes turned round: (1, 0), (2, 1, 0), (3, 1, 2, 0)."""
    if axes is not None and len(axes) != src.ndim:
        raise _core.Error(f"dma_transpose: {len(axes)} axes are given, src has {src.ndim}")
    src, rows = (src.tensor, src.rows) if type(src) is Rows else (src, None)
    _I["dma_transpose"](dst.core, dst, src, rows, oob_mode, dge_mode, axes, priority)


def dma_compute(dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=oob_mode.error, name=None):
    """dst = the sum of srcs. Where one of them, or dst, is rows that a tile of indices chooses, the other is dst."""
    index, to_rows = None, type(dst) is Rows
    if to_rows:
        dst, index = dst.tensor, dst.rows
    chosen = [s for s in srcs if type(s) is Rows]
    if chosen and not to_rows:
        index = chosen[0].rows
        srcs = chosen[:1] + [s for s in srcs if s is not chosen[0]]
    srcs = [s.tensor if type(s) is Rows else s for s in srcs]
    _I["dma_compute"](dst.core, dst, srcs, scales, _alu(reduce_op), index, to_rows, oob_mode, unique_indices)


# ---- registers ----

def register_alloc(x=None):
    """A register; x: what it begins with, a number or a tile of one element."""
    return Register(_scalar(x) if x is not None else 0)


def register_move(dst, src):
    """dst = src, a register or a number."""
    dst.value = _scalar(src)


def register_load(dst, src):
    """dst = the one element of a tile."""
    dst.value = _scalar(src)


def register_store(dst, src):
    """The elements of a tile = a register."""
    memset(dst, _scalar(src))


# ---- cores of a logical core ----

def core_barrier(data, cores, engine=engine.gpsimd, name=None):
    """Nobody goes on before all have come."""
    from .simulator import current
    current().barrier(data, cores, engine)


def sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine=dma_engine.dma, name=None):
    """src goes to another core of the logical core, dst comes from one."""
    dst.core.sendrecv(dst, src, _scalar(send_to_rank), _scalar(recv_from_rank), pipe_id, dma_engine == 2)


# ---- views that the C library wants otherwise ----

def _flat(tensor):
    """[P, everything else]."""
    if tensor.ndim == 2:
        return tensor
    return tensor.reshaped((tensor.shape[0], -1))


def _four(tensor):
    return tensor.four() if tensor.dtype.four else tensor


def _scale(tensor):
    return tensor.view("float8_e8m0fnu") if tensor.dtype == "uint8" else tensor


def _older(more, dst):
    """Arguments of older releases that kernels still write: a format (dst has the last word), no mask."""
    for name, value in more.items():
        if name == "dtype" or name == "mask" and value is None:
            continue
        if name == "mask":
            raise _core.Error("mask: the views of dst and its operands say what is written")
        raise TypeError(f"unexpected keyword argument '{name}'")
