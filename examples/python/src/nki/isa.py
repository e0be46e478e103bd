"""nki.isa: one function per instruction, with the names and arguments of NKI 0.6.0. Each is an instruction of
trn_core.h on the core that dst lies on; shapes, limits, roundings and costs are told there and in trnmath/engines.md.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as _product
from math import prod as _prod
from typing import Any

from . import _core, constants as _constants, formats as _formats
from .constants import (dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd)
from .index import Placed, Register, Rows, Scattered, agree as _agree, scalar as _scalar
from .memories import PSUM as _PSUM
from .operators import Op, act as _act, alu as _alu, named as _named
from .running import current as _current
from .scattered import Side, pairs as _pairs
from .tensor import NkiTensor, Number, Operand
from .warned import in_range as _in_range, warn as _warn

tensor_engine, vector_engine, scalar_engine = engine.tensor, engine.vector, engine.scalar
gpsimd_engine, dma_engines, unknown_engine = engine.gpsimd, engine.dma, engine.unknown
VirtualRegister = Register

_Pair = Sequence[int]

_I = _core.instruction
_FLOAT32 = _formats.float32
_COPY = _act("copy")



class NkiInstruction:
    """What an instruction returns. Each engine goes in the program's order here, so depends_on changes no number, and
    the clock leaves it out."""

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        for one in producers:
            if not isinstance(one, NkiInstruction):
                raise _core.Error(f"depends_on: {one!r} is no instruction")
        return self


_DONE = NkiInstruction()
NkiValidationError = _core.Error

# ---- which machine ----

def get_nc_version() -> nc_version:
    """The NeuronCore's version: gen2, gen3, gen4 for Trainium1, 2, 3."""
    return nc_version(_current().generation + 1)


def get_nc_sub_version() -> int:
    """The revision of it: 0."""
    return 0


# ---- the Tensor engine ----

def nc_matmul(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, is_stationary_onezero: bool = False,
              is_moving_onezero: bool = False, is_transpose: bool = False, accumulate: bool | None = None,
              tile_position: _Pair = (), tile_size: _Pair = (),
              perf_mode: matmul_perf_mode | str | None = matmul_perf_mode.none,
              name: str | None = None) -> NkiInstruction:
    """dst [M, N] (+)= stationary [K, M] turned, times moving [K, N]. accumulate=None: the first product of a place in
    PSUM overwrites it, later ones add."""
    accumulate = _adds(dst, False if accumulate is None and is_transpose else accumulate)
    rows = matmul_perf_mode(perf_mode or "none").rows
    parts = [(_flat(dst), moving)] if moving.ndim == 1 + rows else _windows(_flat(dst), moving, rows)
    zeros = not accumulate and isinstance(dst, NkiTensor) and dst.overwritten()
    try:
        for to, of in parts:
            _I["nc_matmul"](dst.core, to, stationary if stationary.ndim == 1 + rows else _flat(stationary), of,
                            accumulate, rows == 2, is_transpose, is_stationary_onezero, is_moving_onezero,
                            tile_position, tile_size)
    except Exception:
        if zeros:  # a kernel may go on
            dst.zeros()
        raise
    dst.touch()
    return _DONE


_ZEROS, _NUMBERS, _NOTHING = 2, 4, 8  # what View.sums finds beside products


def _adds(dst: NkiTensor, accumulate: bool | None) -> bool:
    """Does a product add to what is there? None: where a product has been, as NKI's simulator has it; what none has
    written of such a place begins at zero. Before Trainium3 NKI leaves undefined what a product makes of other engines'
    numbers: it is refused; of a memset's zeros both answers are one, and a warning tells."""
    if accumulate is False or not isinstance(dst, NkiTensor) or dst.space != _PSUM:
        return bool(accumulate)
    dst.core.settle()
    found, older = dst.sums(), dst.core.generation < 3
    zeros = older and found & (_ZEROS | _NOTHING) == _ZEROS  # of another engine, and no part that nothing has written
    if accumulate is None and not dst.touched():
        if found & _NUMBERS:
            _warn("nc_matmul(accumulate=None) overwrites what another engine has written, as the first product there; write "
                  "accumulate=False if that is meant, else add it to the product in SBUF")
        return False
    if older and found & _NUMBERS:
        raise _core.Error(f"nc_matmul: accumulate={accumulate} finds what another engine has written in '{dst.name}', and "
                          "before Trainium3 adding to that is undefined; write accumulate=False to overwrite it, or add "
                          "it to the product in SBUF")
    if accumulate is None and found & (_NOTHING | _ZEROS) or zeros:
        dst.begin_sums()
    if accumulate and zeros:
        _warn("nc_matmul(accumulate=True) adds to zeros that no product has written, which NKI leaves undefined before "
              "Trainium3; leave accumulate= out, or begin with accumulate=False")
    return True


def nc_matmul_mx(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, stationary_scale: NkiTensor,
                 moving_scale: NkiTensor, tile_position: _Pair | None = None, tile_size: _Pair | None = None,
                 accumulate: bool | None = None, name: str | None = None) -> NkiInstruction:
    """The same of x4 formats with a scale for each 8 partitions x 4 elements."""
    accumulate = _adds(dst, accumulate)
    _I["nc_matmul_mx"](dst.core, _flat(dst), _four(_flat(stationary)), _four(_flat(moving)),
                       _scale(_flat(stationary_scale)), _scale(_flat(moving_scale)),
                       accumulate, tile_position or (), tile_size or ())
    dst.touch()
    return _DONE


def nc_transpose(dst: NkiTensor, data: NkiTensor, engine: _constants.engine = engine.unknown,
                 name: str | None = None) -> NkiInstruction:
    """dst [F, P] = data [P, F] turned: on the Tensor engine, or in blocks of 32 on the Vector engine."""
    on_vector = engine == vector_engine or (engine == unknown_engine and dst.space != _PSUM)
    _I["vector_transpose" if on_vector else "nc_transpose"](dst.core, _flat(dst), _flat(data))
    if not on_vector:
        dst.touch()
    return _DONE


# ---- the Vector engine, and what it shares with others ----

def tensor_tensor(dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: Op,
                  engine: _constants.engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """dst = data1 op data2."""
    _I["tensor_tensor"](dst.core, dst, data1, data2, _alu(op), engine)
    return _DONE


def tensor_scalar(dst: NkiTensor, data: NkiTensor, op0: Op, operand0: Operand, reverse0: bool = False,
                  op1: Op | None = None, operand1: Operand | None = None, reverse1: bool = False,
                  engine: _constants.engine = engine.unknown, name: str | None = None) -> NkiInstruction:
    """dst = (data op0 operand0) op1 operand1; operands are numbers or tiles [P, 1]."""
    _I["tensor_scalar"](dst.core, dst, data, _alu(op0), operand0, reverse0, _alu(op1), operand1, reverse1, engine)
    return _DONE


def scalar_tensor_tensor(dst: NkiTensor, data: NkiTensor, op0: Op, operand0: Operand, op1: Op, operand1: Operand,
                         reverse0: bool = False, reverse1: bool = False, name: str | None = None) -> NkiInstruction:
    """dst = (data op0 operand0) op1 operand1, where operand1 is a tile like data."""
    _I["scalar_tensor_tensor"](dst.core, dst, data, _alu(op0), operand0, reverse0, _alu(op1), operand1, reverse1)
    return _DONE


def tensor_copy(dst: NkiTensor, src: NkiTensor, engine: _constants.engine = engine.unknown, name: str | None = None,
                **more: Any) -> NkiInstruction:
    """dst = src, cast where formats differ."""
    if more:
        _older("tensor_copy", more)
    _I["tensor_copy"](dst.core, dst, src, engine)
    return _DONE


def tensor_copy_predicated(dst: NkiTensor, src: Operand, predicate: NkiTensor, reverse_pred: bool = False,
                           name: str | None = None) -> NkiInstruction:
    """dst = src where predicate is not 0 (is 0 with reverse_pred); elsewhere dst stays."""
    _I["tensor_copy_predicated"](dst.core, dst, src, predicate, reverse_pred)
    return _DONE


def memset(dst: NkiTensor, value: Number, engine: _constants.engine = engine.unknown,
           name: str | None = None) -> NkiInstruction:
    """Every element of dst = value: an integer exactly, where dst holds integers."""
    if type(value) is int and abs(value) > 1 << 24 and "int" in str(dst.dtype):
        _I["memset"](dst.core, dst, 0.0, engine, True, value)
    else:
        _I["memset"](dst.core, dst, value, engine)
    return _DONE


def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst = 1 / data."""
    _I["reciprocal"](dst.core, dst, data)
    return _DONE


def tensor_reduce(dst: NkiTensor, op: Op, data: NkiTensor, axis: int | Sequence[int], negate: bool = False,
                  keepdims: bool = False, name: str | None = None) -> NkiInstruction:
    """dst = data reduced along free axes, in one ascending chain of float32."""
    axes = sorted(a % data.ndim for a in ((axis,) if isinstance(axis, int) else axis))
    rest = [a for a in range(data.ndim) if a not in axes]
    if axes != list(range(data.ndim - len(axes), data.ndim)):
        data = data.permute(tuple(rest + axes))
    if dst.ndim != len(rest):
        dst = dst.reshaped(data.shape[:len(rest)])
    _I["tensor_reduce"](dst.core, dst, data, _alu(op), len(axes), negate, False)
    return _DONE


def tensor_scalar_reduce(dst: NkiTensor, data: NkiTensor, op0: Op, operand0: Operand, reduce_op: Op,
                         reduce_res: NkiTensor | None = None, reverse0: bool = False,
                         reduce_cmd: _constants.reduce_cmd = reduce_cmd.reset_reduce, reduce_init: Number | None = None,
                         reduce_res_negate: bool = False, name: str | None = None) -> NkiInstruction:
    """dst = data op0 operand0, and reduce_res [P, 1] = all of it by reduce_op."""
    _I["tensor_scalar_reduce"](dst.core, dst, data, _alu(op0), operand0, reverse0, _alu(reduce_op), reduce_res,
                               reduce_cmd, reduce_init, reduce_res_negate)
    return _DONE


def tensor_scalar_cumulative(dst: NkiTensor, src: NkiTensor, op0: Op, op1: Op, imm0: Operand,
                             imm1: Operand | None = None, reduce_cmd: _constants.reduce_cmd = reduce_cmd.reset_reduce,
                             name: str | None = None) -> NkiInstruction:
    """dst[i] = (src[i] op0 imm0) op1 what came before."""
    _I["tensor_scalar_cumulative"](dst.core, dst, src, _alu(op0), _alu(op1), imm0, imm1, reduce_cmd)
    return _DONE


def tensor_tensor_scan(dst: NkiTensor, data0: NkiTensor, data1: NkiTensor, initial: Operand, op0: Op, op1: Op,
                       reverse0: bool = False, reverse1: bool = False, name: str | None = None) -> NkiInstruction:
    """dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i], in float32."""
    _I["tensor_tensor_scan"](dst.core, dst, data0, data1, initial, _alu(op0), _alu(op1), reverse0, reverse1)
    return _DONE


def exponential(dst: NkiTensor, src: NkiTensor, max_value: Operand = 0.0, reduce_res: NkiTensor | None = None,
                reduce_cmd: _constants.reduce_cmd = reduce_cmd.idle, reduce_init: Number = 0.0,
                name: str | None = None) -> NkiInstruction:
    """dst = exp(src - max_value), and its sum per partition. Trainium3."""
    _I["exponential"](dst.core, dst, src, max_value, reduce_res, reduce_cmd, reduce_init)
    return _DONE


def range_select(dst: NkiTensor, on_true_tile: NkiTensor, comp_op0: Op, comp_op1: Op, bound0: Operand, bound1: Operand,
                 reduce_cmd: _constants.reduce_cmd = reduce_cmd.reset_reduce, reduce_res: NkiTensor | None = None,
                 reduce_op: Op = "maximum", range_start: int = 0, on_false_value: Number = -3.4028235e38,
                 name: str | None = None) -> NkiInstruction:
    """dst = on_true_tile where the column number lies between bound0 and bound1 [P, 1], else on_false_value."""
    _I["range_select"](dst.core, dst, on_true_tile, _alu(comp_op0), _alu(comp_op1), bound0, bound1, reduce_cmd,
                       reduce_res, _alu(reduce_op), range_start, on_false_value)
    return _DONE


def select_reduce(dst: NkiTensor, predicate: NkiTensor, on_true: NkiTensor, on_false: Operand,
                  reduce_res: NkiTensor | None = None, reduce_cmd: _constants.reduce_cmd = reduce_cmd.idle,
                  reduce_op: Op = "maximum", reverse_pred: bool = False, name: str | None = None) -> NkiInstruction:
    """dst = on_true where predicate, else on_false, and its maximum per partition."""
    _I["select_reduce"](dst.core, dst, predicate, on_true, on_false, reduce_res, reduce_cmd, _alu(reduce_op),
                        reverse_pred)
    return _DONE


def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst [P, 6]: count, mean, variance x count, of even and of odd elements."""
    _I["bn_stats"](dst.core, dst, data)
    return _DONE


def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst [P, 2]: mean and variance of several bn_stats."""
    _I["bn_aggr"](dst.core, dst, data)
    return _DONE


def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> NkiInstruction:
    """The eight largest of each partition, descending."""
    _I["max8"](dst.core, dst, src)
    return _DONE


def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Where the eight vals first stand in each partition."""
    _I["nc_find_index8"](dst.core, dst, data, vals)
    return _DONE


def nc_match_replace8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, imm: Number, dst_idx: NkiTensor | None = None,
                      name: str | None = None) -> NkiInstruction:
    """data with the first place of each of eight vals replaced by imm."""
    _I["nc_match_replace8"](dst.core, dst, data, vals, imm, dst_idx)
    return _DONE


def nc_stream_shuffle(dst: NkiTensor, src: NkiTensor, shuffle_mask: Sequence[int],
                      name: str | None = None) -> NkiInstruction:
    """Partition i of each 32 of dst is partition shuffle_mask[i] of src; 255 leaves it."""
    _I["nc_stream_shuffle"](dst.core, dst, src, shuffle_mask)
    return _DONE


def quantize_mx(dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = None) -> NkiInstruction:
    """src [P, F] as MX: dst [P, F/4] of an x4 format and its scales. Trainium3."""
    _I["quantize_mx"](dst.core, _four(_flat(dst)), _flat(src), _scale(_flat(dst_scale)))
    return _DONE


def rng(dst: NkiTensor, engine: _constants.engine = engine.vector, name: str | None = None) -> NkiInstruction:
    """Random bits."""
    _I["rng"](dst.core, dst, engine)
    return _DONE


def rand2(dst: NkiTensor, min: Operand, max: Operand, name: str | None = None) -> NkiInstruction:
    """Uniform numbers between min and max. Trainium3."""
    _I["rand2"](dst.core, dst, min, max)
    return _DONE


def dropout(dst: NkiTensor, data: NkiTensor, prob: Operand, name: str | None = None) -> NkiInstruction:
    """data with elements set to 0 with this probability."""
    _I["dropout"](dst.core, dst, data, prob)
    return _DONE


def set_rng_seed(src_seeds: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Seeds the Vector engine's generators."""
    _I["set_rng_seed"](src_seeds.core, src_seeds)
    return _DONE


def rand_set_state(src_seeds: NkiTensor, engine: _constants.engine = engine.gpsimd,
                   name: str | None = None) -> NkiInstruction:
    """Sets the states of a generator."""
    _I["rand_set_state"](src_seeds.core, src_seeds, engine)
    return _DONE


def rand_get_state(dst: NkiTensor, engine: _constants.engine = engine.gpsimd,
                   name: str | None = None) -> NkiInstruction:
    """Reads the states of a generator."""
    _I["rand_get_state"](dst.core, dst, engine)
    return _DONE


# ---- the Scalar engine ----

def activation(dst: NkiTensor, op: Op, data: NkiTensor, bias: NkiTensor | None = None, scale: Operand = 1.0,
               reduce_op: Op | None = None, reduce_res: NkiTensor | None = None,
               reduce_cmd: _constants.reduce_cmd = reduce_cmd.idle, name: str | None = None) -> NkiInstruction:
    """dst = op(scale data + bias); reduce_res [P, 1]: its sum."""
    _sums(reduce_op)
    _no_bias(op, bias)
    _in_range(op, data, scale, bias)
    _I["activation"](dst.core, dst, data, _act(op), _scale_of(scale, data), bias, None, reduce_res, reduce_cmd)
    return _DONE


def _within(dst: NkiTensor, op: Op, data: NkiTensor, bias: NkiTensor | None = None) -> NkiInstruction:
    """activation of arguments that lie in the function's table, or whose results nobody uses."""
    _I["activation"](dst.core, dst, data, _act(op), 1.0, bias, None, None, reduce_cmd.idle)
    return _DONE


def activation_reduce(dst: NkiTensor, op: Op, data: NkiTensor, reduce_op: Op, reduce_res: NkiTensor,
                      bias: NkiTensor | None = None, scale: Operand = 1.0, name: str | None = None) -> NkiInstruction:
    """The same, whose sums begin anew."""
    _sums(reduce_op)
    _no_bias(op, bias)
    _in_range(op, data, scale, bias)
    _I["activation"](dst.core, dst, data, _act(op), _scale_of(scale, data), bias, None, reduce_res,
                     reduce_cmd.reset_reduce)
    return _DONE


def _sums(reduce_op: Op | None) -> None:
    if reduce_op is not None and _alu(reduce_op) != _alu("add"):
        raise _core.Error(f"activation adds up; {_named(reduce_op).name} is activate2's, of Trainium3")


def _no_bias(op: Op, bias: NkiTensor | None) -> None:
    """The device leaves the bias of a copy out (aws-neuron-sdk, issue 1296, on Trainium1), its page says that it is
    added. One of zeros does not matter; nki-library has others on Trainium3."""
    if bias is None or _act(op) != _COPY or bias.core.generation > 2:
        return
    bias.core.settle()
    if any(bias.tobytes()):
        raise _core.Error(f"activation: op {_named(op).name} leaves its bias out on the device; write "
                          "tensor_scalar(op0=multiply, operand0=scale, op1=add, operand1=bias)")


def _scale_of(scale: Operand, data: NkiTensor) -> Operand:
    """Scale 0, which the C library takes for none, as a column."""
    if isinstance(scale, NkiTensor) or scale != 0:
        return scale
    column = data.core.tile("zero", 0, 1, (data.shape[0], 1), _FLOAT32, 0, -1, False)
    memset(column, 0.0)
    return column


def activate2(dst: NkiTensor, op: Op, data: NkiTensor, imm0: Operand, imm1: Operand, op0: Op, op1: Op,
              relu_param: Operand = 0.0, reverse0: bool = False, reverse1: bool = False, reduce_op: Op | None = None,
              reduce_res: NkiTensor | None = None, reduce_cmd: _constants.reduce_cmd = reduce_cmd.idle,
              name: str | None = None) -> NkiInstruction:
    """dst = op((data op0 imm0) op1 imm1). Trainium3."""
    _I["activate2"](dst.core, dst, data, _act(op), _alu(op0), _alu(op1), imm0, imm1, relu_param, reverse0, reverse1,
                    _alu(reduce_op), reduce_res, reduce_cmd)
    return _DONE


# ---- the GpSimd engine ----

def iota(dst: NkiTensor, pattern: Sequence[Sequence[int]], offset: int = 0, channel_multiplier: int = 0,
         name: str | None = None) -> NkiInstruction:
    """dst = offset + channel_multiplier x partition + what the pattern counts."""
    _I["iota"](dst.core, dst, pattern, offset, channel_multiplier)
    return _DONE


def affine_select(dst: NkiTensor, pattern: Sequence[Sequence[int]], channel_multiplier: int, on_true_tile: NkiTensor,
                  on_false_value: Number, cmp_op: Op = "equal", offset: int = 0,
                  name: str | None = None) -> NkiInstruction:
    """on_true_tile where iota's number cmp_op 0, else on_false_value."""
    _I["affine_select"](dst.core, dst, pattern, channel_multiplier, on_true_tile, on_false_value, _alu(cmp_op), offset)
    return _DONE


def local_gather(dst: NkiTensor, src_buffer: NkiTensor, index: NkiTensor, num_elem_per_idx: int = 1,
                 num_valid_indices: int | None = None, name: str | None = None) -> NkiInstruction:
    """Groups of elements by the indices of 16 partitions together."""
    if num_valid_indices is not None and num_valid_indices < 1:  # 0 is C's word for all
        raise _core.Error(f"local_gather: num_valid_indices is {num_valid_indices}; it is one and more")
    _I["local_gather"](dst.core, dst, src_buffer, index, num_elem_per_idx, num_valid_indices)
    return _DONE


def nc_n_gather(dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst[p, i] = data[p, indices[p, i]]."""
    _I["nc_n_gather"](dst.core, dst, data, indices)
    return _DONE


def tensor_partition_reduce(dst: NkiTensor, op: Op, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst [1, F] = data reduced across partitions."""
    _I["tensor_partition_reduce"](dst.core, dst, data, _alu(op))
    return _DONE


def nonzero_with_count(dst: NkiTensor, src: NkiTensor, index_offset: int = 0, padding_val: Any = -1,
                       name: str | None = None) -> NkiInstruction:
    """Indices of what is not 0, and how many."""
    _I["nonzero_with_count"](dst.core, dst, src, index_offset, padding_val)
    return _DONE


def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor, name: str | None = None) -> NkiInstruction:
    """Where each segment begins and ends."""
    _I["sequence_bounds"](dst.core, dst, segment_ids)
    return _DONE


def topk(val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: int, name: str | None = None) -> NkiInstruction:
    """The largest of each n elements, and where they stand."""
    _I["topk"](val_dst.core, val_dst, idx_dst, src, n)
    return _DONE


# ---- DMA ----

def dma_copy(dst: Side, src: Side, priority: int | None = None, oob_mode: _constants.oob_mode = oob_mode.error,
             dge_mode: _constants.dge_mode = dge_mode.unknown, engine: _constants.engine = engine.unknown,
             name: str | None = None, **more: Any) -> NkiInstruction:
    """dst = src, in shapes that agree axis by axis; rows that a tile of indices chooses where a view says so."""
    if more:
        _older("dma_copy", more)
    if type(src) is Scattered or type(dst) is Scattered:
        for part in _pairs(dst, src):
            dma_copy(*part, priority, dge_mode=dge_mode)
        return _DONE
    of, rows = (src.tensor, src.rows) if type(src) is Rows else (src, None)
    to, to_rows = (dst.tensor, dst.rows) if type(dst) is Rows else (dst, None)
    if rows is None and to_rows is None and to.shape != of.shape:
        _agree("dma_copy", to, of)
    of, *source = _placed(of)
    to, *place = _placed(to)
    _I["dma_copy"](to.core, to, of, rows, to_rows, oob_mode, dge_mode, priority, None, *source, *place)
    return _DONE


def _placed(side: Any) -> tuple[Any, Any, Any, Any]:
    """The view; the number that it begins further on, of which tensor, along which axis."""
    return (side.view, side.value, side.of, side.dim) if type(side) is Placed else (side, None, None, None)


def dma_transpose(dst: NkiTensor, src: Side, axes: Sequence[int] | None = None, priority: int | None = None,
                  dge_mode: _constants.dge_mode = dge_mode.unknown, oob_mode: _constants.oob_mode = oob_mode.error,
                  name: str | None = None) -> NkiInstruction:
    """dst = src with its axes turned round: (1, 0), (2, 1, 0), (3, 1, 2, 0)."""
    if axes is not None and len(axes) != src.ndim:
        raise _core.Error(f"dma_transpose: {len(axes)} axes are given, src has {src.ndim}")
    of, rows = (src.tensor, src.rows) if type(src) is Rows else (src, None)
    _I["dma_transpose"](dst.core, dst, of, rows, oob_mode, dge_mode, axes, priority)
    return _DONE


def dma_compute(dst: Side, srcs: Sequence[Side], reduce_op: Op, scales: Sequence[float] | None = None,
                unique_indices: bool = True, oob_mode: _constants.oob_mode = oob_mode.error,
                name: str | None = None) -> NkiInstruction:
    """dst = the sum of srcs. Where one of them, or dst, is rows that a tile of indices chooses, the other is dst."""
    to, index = (dst.tensor, dst.rows) if type(dst) is Rows else (dst, None)
    to_rows = index is not None
    chosen = next((s for s in srcs if type(s) is Rows), None)
    if chosen is not None and not to_rows:
        index = chosen.rows
        srcs = [chosen] + [s for s in srcs if s is not chosen]
    views = [s.tensor if type(s) is Rows else s for s in srcs]
    _I["dma_compute"](to.core, to, views, scales, _alu(reduce_op), index, to_rows, oob_mode, unique_indices)
    return _DONE


# ---- registers ----

def register_alloc(x: Any = None) -> Register:
    """A register; x: what it begins with, a number or a tile of one element."""
    return Register(_scalar(x) if x is not None else 0)


def register_move(dst: Register, src: Any) -> None:
    """dst = src, a register or a number."""
    dst.value = _scalar(src)


def register_load(dst: Register, src: Any) -> None:
    """dst = the one element of a tile."""
    dst.value = _scalar(src)


def register_store(dst: NkiTensor, src: Any) -> None:
    """The elements of a tile = a register."""
    memset(dst, _scalar(src))


# ---- cores of a logical core ----

def core_barrier(data: Any, cores: Any, engine: _constants.engine = engine.gpsimd,
                 name: str | None = None) -> NkiInstruction:
    """Nobody goes on before all have come."""
    _current().barrier(data, cores, engine)
    return _DONE


def sendrecv(src: NkiTensor, dst: NkiTensor, send_to_rank: Any, recv_from_rank: Any, pipe_id: int,
             dma_engine: _constants.dma_engine = dma_engine.dma, name: str | None = None) -> NkiInstruction:
    """src goes to another core of the logical core, dst comes from one."""
    dst.core.sendrecv(dst, src, _scalar(send_to_rank), _scalar(recv_from_rank), pipe_id, dma_engine == 2)
    if dst.core.observer is not None:
        dst.core.observer.lost("sendrecv", [dst])
    return _DONE


# ---- views that the C library wants otherwise ----

def _flat(tensor: NkiTensor) -> NkiTensor:
    """[P, everything else]."""
    if tensor.ndim == 2:
        return tensor
    return tensor.reshaped((tensor.shape[0], -1))


def _windows(dst: NkiTensor, moving: NkiTensor, rows: int) -> Iterator[tuple[NkiTensor, NkiTensor]]:
    """[K, N] of an operand [K, ...], and where its products go: one, or one for each run of axes that do not follow
    each other in memory, as those of a convolution's window. (The engine takes a window at once: the clock charges
    more.)"""
    if rows == 2:
        yield dst, moving
        return
    columns = _prod(moving.shape[1:])
    if columns > 512:
        raise _core.Error(f"nc_matmul: moving {list(moving.shape)} has {columns} columns; an instruction takes 512")
    if dst.shape[1] != columns:
        raise _core.Error(f"nc_matmul: dst is {list(dst.shape)}, and moving {list(moving.shape)} has {columns} columns")
    outer = next(n for n in range(1, moving.ndim + 1) if all(
        moving.strides[a] == moving.strides[a + 1] * moving.shape[a + 1] for a in range(n, moving.ndim - 1)))
    width = _prod(moving.shape[outer:])
    for number, place in enumerate(_product(*(range(n) for n in moving.shape[1:outer]))):
        yield dst[:, number * width:(number + 1) * width], _flat(moving[(slice(None), *place)])


def _four(tensor: NkiTensor) -> NkiTensor:
    return tensor.four() if tensor.dtype.four else tensor


def _scale(tensor: NkiTensor) -> NkiTensor:
    return tensor.view("float8_e8m0fnu") if tensor.dtype == "uint8" else tensor


def _older(instruction: str, more: dict[str, Any]) -> None:
    """Arguments of older releases that kernels still write: a format (dst has the last word), no mask."""
    for name, value in more.items():
        if name == "dtype" or name == "mask" and value is None:
            continue
        if name == "mask":
            raise _core.Error("mask: the views of dst and its operands say what is written")
        raise TypeError(f"{instruction}() got an unexpected keyword argument '{name}'")
