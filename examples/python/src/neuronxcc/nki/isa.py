"""neuronxcc.nki.isa: instructions that return their results. Those of nki.isa are underneath: with dst= they are the
same.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import TYPE_CHECKING, Any as _Any

from nki import (_core, arithmetic as _arithmetic, constants as _constants, dtypes as _dtypes, isa as _isa,
                 masks as _masks, moves as _moves, names as _names, products as _products, reductions as _reductions,
                 tiles as _tiles)
from nki._numpy import np as _np
from nki.constants import (dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode,  # noqa: F401
                           reduce_cmd)
from nki.isa import (dma_engines, get_nc_version, gpsimd_engine, scalar_engine, tensor_engine,  # noqa: F401
                     unknown_engine, vector_engine)
from nki.masks import (Box as _Box, Mask as _Mask, box_of as _box_of, cut as _cut, engine_box as _engine_box,
                       whole_box as _whole_box)
from nki.operators import Op as _Op, named as _named
from nki.results import Emit as _Emit, result as _result
from nki.scattered import Side as _Side
from nki.tensor import Format as _Format, NkiTensor as _Tensor, Number as _Number, Operand as _Operand

if TYPE_CHECKING:
    from numpy.typing import NDArray as _NDArray


def _elementwise(name: str, operands: _Sequence[str]) -> _Callable[..., _Any]:
    """An instruction of which the result has the shape of its first operand; masks cut all."""
    function = getattr(_isa, name)

    def instruction(*args: _Any, dst: _Any = None, dtype: _Format | None = None, mask: _Mask | None = None,
                    **options: _Any) -> _Any:
        if dst is not None:
            return _onto(dst, mask, lambda to: function(to, *args, **options))
        given = dict(zip(operands, args), **options)
        first = next(given[k] for k in _FIRST if k in given)
        shape = tuple(first.shape)
        box = _engine_box(mask, shape)
        given = {k: _moves.loaded(v, box if tuple(getattr(v, "shape", ())) == shape else None)
                 for k, v in given.items()}
        given = {k: _column(v) if k in ("operand0", "operand1", "scale") else v for k, v in given.items()}
        tiles = [v for k, v in given.items() if isinstance(v, _Tensor) and k in ("data", "data1", "data2", "src")]
        to = dtype or _arithmetic.promoted(*tiles)
        if name == "tensor_tensor":
            given["data2"] = _moves.alike(given["data2"], shape)
        if box is not None and box.inside is not None and given.get("reduce_res") is not None:
            plain = _isa.activation if name == "activation_reduce" else function
            return _result(shape, to, _and_sum(plain, given, box), box=box)

        def emit(out: _Tensor) -> None:
            function(_cut(out, box), **{k: _cut(v, box) for k, v in given.items()})
        return _result(shape, to, emit, box=box)
    instruction.__name__, instruction.__doc__ = name, function.__doc__
    return instruction


def _column(operand: _Any) -> _Any:
    """A column [P, 1], which the engines take in binary32: of 16 bits a copy, as the older compiler made it."""
    if isinstance(operand, _Tensor) and operand.size == operand.shape[0] and operand.dtype in ("bfloat16", "float16"):
        return _moves.copy(operand, dtype="float32")
    return operand


_FIRST = ("data", "data1", "data0", "src", "on_true_tile")


def _and_sum(function: _Callable[..., _Any], given: dict[str, _Any], box: _Box) -> _Emit:
    """Of a mask that is no box: the instruction without its sum into a tile of binary32, then tensor_reduce of what the
    mask names."""
    given = dict(given)
    total, op = given.pop("reduce_res"), _named(given.pop("reduce_op", None) or "add")
    if given.pop("reduce_cmd", reduce_cmd.reset_reduce) not in (reduce_cmd.reset_reduce, reduce_cmd.idle):
        raise _core.Error("a mask that is no box of its axes goes with reset_reduce alone")

    def emit(out: _Tensor) -> None:
        wide = _tiles.tile(out.shape, "float32")
        function(_cut(wide, box), **{k: _cut(v, box) for k, v in given.items()})
        made = _reductions.reduced(op, wide, tuple(range(1, len(box.shape))), box, "float32")
        _moves.assign(total, Ellipsis, made if made.shape == total.shape else made.reshaped(total.shape))
        _moves.put(_cut(out, box), _cut(wide, box))
    return emit


activation = _elementwise("activation", ("op", "data"))
activation_reduce = _elementwise("activation_reduce", ("op", "data"))
tensor_tensor = _elementwise("tensor_tensor", ("data1", "data2", "op"))
tensor_scalar = _elementwise("tensor_scalar", ("data", "op0", "operand0", "reverse0", "op1", "operand1", "reverse1"))
scalar_tensor_tensor = _elementwise("scalar_tensor_tensor", ("data", "op0", "operand0", "op1", "operand1"))
tensor_copy = _elementwise("tensor_copy", ("src",))
reciprocal = _elementwise("reciprocal", ("data",))
tensor_tensor_scan = _elementwise("tensor_tensor_scan", ("data0", "data1", "initial", "op0", "op1", "reverse0",
                                                         "reverse1"))
dropout = _elementwise("dropout", ("data", "prob"))


def tensor_scalar_reduce(*, data: _Tensor, op0: _Op, operand0: _Operand, reduce_op: _Op, reduce_res: _Tensor,
                         reverse0: bool = False, dtype: _Format | None = None, mask: _Mask | None = None,
                         **_: _Any) -> _Tensor:
    """data op0 operand0, and its reduction in reduce_res."""
    box = _engine_box(mask, tuple(data.shape))
    given = {"data": data, "op0": op0, "operand0": operand0, "reverse0": reverse0}
    if box is not None and box.inside is not None:
        emit = _and_sum(_isa.tensor_scalar, dict(given, reduce_op=reduce_op, reduce_res=reduce_res), box)
    else:
        given.update(reduce_op=reduce_op, reduce_res=reduce_res)

        def emit(dst: _Tensor) -> None:
            _isa.tensor_scalar_reduce(_cut(dst, box), **{k: _cut(v, box) for k, v in given.items()})
    return _result(data.shape, dtype or data.dtype, emit, box=box)


def tensor_reduce(op: _Op, data: _Tensor, axis: int | _Sequence[int], mask: _Mask | None = None,
                  dtype: _Format | None = None, negate: bool = False, keepdims: bool = False, dst: _Any = None,
                  **_: _Any) -> _Any:
    """data reduced along free axes."""
    if dst is not None:
        return _onto(dst, mask, lambda to: _isa.tensor_reduce(to, op, data, axis, negate, keepdims))
    return _reductions.reduced(_named(op), data, axis, mask, dtype, keepdims, negate)


def tensor_partition_reduce(op: _Op, data: _Tensor, mask: _Mask | None = None, dtype: _Format | None = None,
                            **_: _Any) -> _Tensor:
    """data reduced across partitions."""
    made = _reductions.reduced(_named(op), data, 0, mask, dtype)
    return made if data.ndim == 2 else made.reshaped((1,) + tuple(data.shape[1:]))


def nc_matmul(stationary: _Any = None, moving: _Any = None, *more: _Any, dst: _Any = None, mask: _Mask | None = None,
              is_stationary_onezero: bool = False, is_moving_onezero: bool = False, is_transpose: bool = False,
              **options: _Any) -> _Any:
    """A product in PSUM; psum += nc_matmul(...) accumulates. is_transpose: stationary turned, bit by bit."""
    options.update(is_stationary_onezero=is_stationary_onezero, is_moving_onezero=is_moving_onezero)
    if dst is not None or more:
        dst, stationary, moving = (dst, stationary, moving) if not more else (stationary, moving, more[0])
        return _onto(dst, mask, lambda to: _isa.nc_matmul(to, stationary, moving, is_transpose=is_transpose, **options))
    if is_transpose and _isa.get_nc_version() != nc_version.gen2:
        return _turned(stationary, moving, mask, options)
    if mask is not None:
        return _masked_product(stationary, moving, mask, options)
    return _products.product(stationary, moving, **options)


def _turned(stationary: _Tensor, moving: _Tensor, mask: _Mask, options: dict[str, _Any]) -> _Tensor:
    """Transpose mode, which Trainium1 lacks (a product by the identity stands for it there): PSUM gets the bits in
    stationary's own format, of 8-bit formats in the lower byte of 16. Whoever puts them into a tile of float32 gets
    them widened by a tensor_copy: the machine writes no other format in this mode."""
    stationary, moving = _moves.in_sbuf(stationary), _moves.in_sbuf(moving)
    shape = (_products.free(stationary), _products.free(moving))
    box = _whole_box(mask, shape)

    def emit(dst: _Tensor) -> None:
        _isa.nc_matmul(dst, stationary, moving, is_transpose=True, accumulate=False, **options)
    return _products.turned(shape, stationary.dtype, emit, box)


def _masked_product(stationary: _Tensor, moving: _Tensor, mask: _Any, options: dict[str, _Any]) -> _Tensor:
    """Of a mask over [M, N] the part of the result; over the grid of an operand, [K, ...], what it leaves out of it is
    0: of a box of K the contraction shrinks."""
    shape = (_products.free(stationary), _products.free(moving))
    if not getattr(mask, "ndim", 0) or tuple(mask.shape) == shape:  # ndim 0: one comparison for all, of loop variables
        return _products.product(stationary, moving, _box_of(mask, shape), **options)
    box = _engine_box(mask, tuple(mask.shape))
    if box is None:
        return _products.product(stationary, moving, **options)
    if box.inside is None and (len(box) == 1 or _spans(box[1:], box.shape[1:])):
        return _products.product(stationary[box[0]], moving[box[0]], **options)
    of_stationary = tuple(mask.shape) == tuple(stationary.shape) != tuple(moving.shape)
    which = _moves.in_sbuf(stationary if of_stationary else moving)
    part = _masks.filled(which, _whole_box(box.full, which.shape), 0)
    return _products.product(*((part, moving) if of_stationary else (stationary, part)), **options)


def _spans(slices: _Sequence[slice], shape: _Sequence[int]) -> bool:
    return all((s.start, s.stop, s.step) == (0, n, 1) or n == 1 for s, n in zip(slices, shape))


def nc_transpose(data: _Any = None, *more: _Any, dst: _Any = None, mask: _Mask | None = None,
                 dtype: _Format | None = None, engine: _constants.engine = engine.unknown, **_: _Any) -> _Any:
    """data turned: in PSUM by the Tensor engine, in SBUF by the Vector engine."""
    if dst is not None or more:
        dst, data = (dst, data) if not more else (data, more[0])
        return _onto(dst, mask, lambda to: _isa.nc_transpose(to, data, engine))
    if engine == vector_engine or (max(data.shape[0], _products.free(data)) <= 32 and engine != tensor_engine):
        shape = (_products.free(data), data.shape[0])
        turned = None if mask is None else _masks.bools(mask, data.shape).reshape(shape[::-1]).T
        return _result(shape, data.dtype, lambda out: _isa.nc_transpose(out, data, vector_engine),
                             box=_whole_box(turned, shape))
    made = _products.transpose(data, mask=mask)
    if dtype is not None and _dtypes.of(dtype) != made.dtype:
        return _moves.copy(made, dtype=dtype)
    return made


def memset(shape: _Any, value: _Number = 0, dtype: _Format = "float32", mask: _Mask | None = None,
           engine: _constants.engine = engine.unknown, dst: _Any = None, **_: _Any) -> _Any:
    """A tile full of one number."""
    if isinstance(shape, _Tensor) or dst is not None:
        return _onto(dst if dst is not None else shape, mask, lambda to: _isa.memset(to, value))
    return _moves.full(shape, value, dtype, mask)


def iota(expr: _Any, dtype: _Format = "int32", mask: _Mask | None = None, **_: _Any) -> _Tensor:
    """The numbers of an index expression."""
    numbers = _np.asarray(expr)
    source = _tiles.table(numbers.astype("int32"), "int32", "iota")
    return _iota(numbers, dtype, source, _whole_box(mask, numbers.shape))


def _iota(numbers: _NDArray[_Any], dtype: _Format, source: _Tensor, box: _Box | None) -> _Tensor:
    """As a pattern where it is one, else loaded."""
    def emit(dst: _Tensor) -> None:
        steps = [int(numbers.take(1, axis=a).reshape(-1)[0] - numbers.reshape(-1)[0]) if n > 1 else 0
                 for a, n in enumerate(numbers.shape)]
        whole = dst.dtype == "int32" and numbers.ndim <= 5
        if whole:
            _isa.iota(dst.reshaped((numbers.shape[0], -1)), [[s, n] for s, n in zip(steps[1:], numbers.shape[1:])],
                      int(numbers.reshape(-1)[0]), steps[0])
        else:
            _isa.dma_copy(dst, source)
    return _result(numbers.shape, dtype, emit, box=box)


def affine_select(pred: _Any, on_true_tile: _Tensor, on_false_value: _Any, mask: _Mask | None = None,
                  dtype: _Format | None = None, **_: _Any) -> _Tensor:
    """on_true_tile where an affine comparison of indices holds, else on_false_value."""
    on_true_tile = _moves.in_sbuf(on_true_tile)  # GpSimdE does not reach PSUM
    shape = tuple(on_true_tile.shape)
    which = _np.broadcast_to(_np.asarray(pred), shape)  # NumPy has compared already
    return _result(shape, dtype or on_true_tile.dtype,
                         lambda dst: _by_rows(dst, on_true_tile, which, float(on_false_value)),
                         box=_whole_box(mask, shape))


def _by_rows(dst: _Tensor, tile: _Tensor, which: _NDArray[_Any], otherwise: float) -> _Any:
    """A step that slopes by one column from partition to partition, as a causal mask does: found from the numbers."""
    flat = which.reshape(which.shape[0], -1)
    count = flat.sum(1)
    width = flat.shape[1]
    rows, columns = _np.indices(flat.shape)
    for slope in (1, -1, 0):
        for upper in (False, True):
            number = slope * rows - columns
            for offset in {int(o) for o in (count - 1 - slope * _np.arange(len(count)),) for o in _np.unique(o)} | \
                    {int(o) for o in _np.unique((width - count) - slope * _np.arange(len(count)))}:
                test = number + offset
                held = (test >= 0) if not upper else (test <= 0)
                if _np.array_equal(held, flat):
                    return _isa.affine_select(dst.reshaped((flat.shape[0], -1)), [[-1, width]], slope,
                                              tile.reshaped((flat.shape[0], -1)), otherwise,
                                              "greater_equal" if not upper else "less_equal", offset)
    return _by_table(dst, tile, flat, otherwise)


def _by_table(dst: _Tensor, tile: _Tensor, which: _NDArray[_Any], otherwise: float) -> None:
    """Any other: memset, then tensor_copy_predicated by ones and zeros that are loaded."""
    predicate = _moves.load(_tiles.table(which.astype("uint8")))
    source = tile if tile.dtype == dst.dtype else _moves.copy(tile, dtype=dst.dtype)
    to, source = (v.reshaped(which.shape) for v in (dst, source))
    _isa.memset(to, otherwise)
    _isa.tensor_copy_predicated(to, source, predicate)


def bn_stats(data: _Tensor, mask: _Mask | None = None, dtype: _Format | None = None, **_: _Any) -> _Tensor:
    """Count, mean, variance x count, of even and of odd elements."""
    box = _engine_box(mask, tuple(data.shape))
    if box is not None and box.inside is not None and (box.full.any(axis=1, keepdims=True) != box.full).any():
        raise _core.Error("bn_stats: partitions count the same elements; this mask names others in each")
    rows = None if box is None else _box_of(box.full.any(axis=1, keepdims=True), (data.shape[0], 6))
    return _result((data.shape[0], 6), dtype or "float32",
                         lambda dst: _isa.bn_stats(_cut(dst, box and box[:1]), _cut(data, box)), box=rows)


def bn_aggr(data: _Tensor, mask: _Mask | None = None, dtype: _Format | None = None, **_: _Any) -> _Tensor:
    """Mean and variance of several bn_stats."""
    rows = _rows(mask, data, 2)
    return _result((data.shape[0], 2), dtype or "float32", lambda dst: _isa.bn_aggr(
        _cut(dst, rows), _cut(data.reshaped((data.shape[0], -1)), rows and rows[:1])), box=rows)


def _rows(mask: _Mask, data: _Tensor, width: int) -> _Box | None:
    """A mask of rows, of a result [P, width]."""
    if mask is None:
        return None
    full = _masks.bools(mask, data.shape)
    return _engine_box(full.reshape(full.shape[0], -1).any(axis=1)[:, None], (data.shape[0], width))


def _searched(data: _Tensor, mask: _Mask, op: str | float) -> _Tensor:
    """data, where the mask is false with a number that nothing finds."""
    if mask is None:
        return data
    return _masks.filled(data, _whole_box(mask, data.shape), op if isinstance(op, float) else
                         _masks.neutral(op, data.dtype))


def max8(src: _Tensor, mask: _Mask | None = None, dtype: _Format | None = None, **_: _Any) -> _Tensor:
    """The eight largest of each partition."""
    data = _searched(src, mask, "maximum")
    return _result((src.shape[0], 8), dtype or src.dtype, lambda dst: _isa.max8(dst, data),
                         box=_whole_box(_rows(mask, src, 8), (src.shape[0], 8)))


def nc_find_index8(data: _Tensor, vals: _Tensor, mask: _Mask | None = None, dtype: _Format = "uint32",
                   **_: _Any) -> _Tensor:
    """Where they stand."""
    found = _searched(data, mask, float("nan"))
    return _result((data.shape[0], 8), dtype, lambda dst: _isa.nc_find_index8(dst, found, vals),
                         box=_whole_box(_rows(mask, data, 8), (data.shape[0], 8)))


def nc_match_replace8(data: _Tensor, vals: _Tensor, imm: _Number, dst_idx: _Tensor | None = None,
                      mask: _Mask | None = None, dtype: _Format | None = None, **_: _Any) -> _Tensor:
    """data with the first place of each replaced; dst_idx: where they stood."""
    found = _searched(data, mask, float("nan"))

    def emit(dst: _Tensor) -> None:
        if dst_idx is None:
            _isa.nc_match_replace8(dst, found, vals, imm)
        else:
            _onto(dst_idx, _rows(mask, data, 8), lambda to: _isa.nc_match_replace8(dst, found, vals, imm, to))
    return _result(data.shape, dtype or data.dtype, emit, box=_whole_box(mask, data.shape))


def _onto(dst: _Tensor, mask: _Mask, run: _Callable[[_Tensor], _Any]) -> _Any:
    """run(dst), of a mask's elements alone: through a tile."""
    box = _box_of(mask, tuple(dst.shape))
    if box is None:
        return run(dst)
    if not box.empty:
        made = _tiles.tile(dst.shape, dst.dtype)
        run(made)
        _masks.copy_inside(dst, made, box.full)


def tensor_scalar_cumulative(src: _Tensor, dst: _Tensor, op0: _Op, op1: _Op, imm0: _Operand,
                             imm1: _Operand | None = None,
                             reduce_cmd: _constants.reduce_cmd = reduce_cmd.reset_reduce, mask: _Mask | None = None,
                             **_: _Any) -> None:
    """dst[i] = (src[i] op0 imm0) op1 what came before: imm1, if reduce_cmd loads it."""
    begins = imm1 if reduce_cmd == _constants.reduce_cmd.load_reduce else None
    return _onto(dst, mask, lambda to: _isa.tensor_scalar_cumulative(to, src, op0, op1, imm0, begins, reduce_cmd))


def nc_stream_shuffle(src: _Tensor, dst: _Tensor, shuffle_mask: _Sequence[int], mask: _Mask | None = None,
                      **_: _Any) -> None:
    """Partition i of each 32 of dst is partition shuffle_mask[i] of src; 255 leaves it."""
    return _onto(dst, mask, lambda to: _isa.nc_stream_shuffle(to, src, shuffle_mask))


def range_select(on_true_tile: _Tensor, comp_op0: _Op, comp_op1: _Op, bound0: _Operand, bound1: _Operand,
                 reduce_cmd: _constants.reduce_cmd = reduce_cmd.reset_reduce, reduce_res: _Tensor | None = None,
                 reduce_op: _Op = "maximum", range_start: int = 0, on_false_value: _Any = -3.4028235e38,
                 mask: _Mask | None = None, dtype: _Format | None = None, **_: _Any) -> _Tensor:
    """on_true_tile where the column lies between two bounds."""
    return _result(on_true_tile.shape, dtype or on_true_tile.dtype, lambda dst: _isa.range_select(
        dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd, reduce_res, reduce_op, range_start,
        on_false_value), box=_whole_box(mask, on_true_tile.shape))


def select_reduce(dst: _Tensor, predicate: _Tensor, on_true: _Tensor, on_false: _Operand, mask: _Mask | None = None,
                  **options: _Any) -> None:
    """dst = on_true where predicate, else on_false, and its maximum per partition."""
    return _onto(dst, mask, lambda to: _isa.select_reduce(to, predicate, on_true, on_false, **options))


def tensor_copy_predicated(src: _Tensor, dst: _Tensor, predicate: _Tensor, reverse_pred: bool = False,
                           mask: _Mask | None = None, **_: _Any) -> None:
    """dst = src where predicate is not 0."""
    box = _engine_box(mask, tuple(dst.shape))
    if box is not None and box.empty:
        return
    dst, src, predicate = (_cut(v, box) for v in (dst, src, predicate))
    if box is not None and box.inside is not None:
        inside = _masks.predicate_of(~box.inside if reverse_pred else box.inside).reshaped(tuple(dst.shape))
        both = _tiles.tile(dst.shape, "uint8")
        _isa.tensor_tensor(both, predicate, inside, "logical_or" if reverse_pred else "logical_and")
        predicate = both
    _isa.tensor_copy_predicated(dst, src, predicate, reverse_pred)


def tensor_copy_dynamic_src(src: _Tensor, mask: _Mask | None = None, dtype: _Format | None = None, **_: _Any) -> _Tensor:
    """tensor_copy: offsets in tiles are read when the view is made."""
    return tensor_copy(src, dtype=dtype, mask=mask)


def tensor_copy_dynamic_dst(dst: _Tensor, src: _Tensor, mask: _Mask | None = None, dtype: _Format | None = None,
                            **_: _Any) -> None:
    """tensor_copy into dst: offsets in tiles are read when the view is made."""
    _moves.assign(dst, Ellipsis, tensor_copy(src, dtype=dtype or dst.dtype, mask=mask))


def dma_transpose(src: _Any = None, *more: _Any, dst: _Any = None, axes: _Sequence[int] | None = None,
                  mask: _Mask | None = None, dtype: _Format | None = None, **_: _Any) -> _Any:
    """src with its axes turned round, in a new tile."""
    if dst is not None or more:
        dst, src = (dst, src) if not more else (src, more[0])
        return _onto(dst, mask, lambda to: _isa.dma_transpose(to, src, axes))
    order = tuple(axes) if axes is not None else tuple(range(src.ndim))[::-1]
    shape = tuple(src.shape[a] for a in order)
    box = None if mask is None else _whole_box(_masks.bools(mask, src.shape).transpose(order), shape)
    return _result(shape, dtype or src.dtype, lambda out: _isa.dma_transpose(out.reshaped(shape), src, axes),
                         box=box)


def sequence_bounds(segment_ids: _Tensor, dtype: _Format | None = None, mask: _Mask | None = None, **_: _Any) -> _Tensor:
    """Where each segment begins and ends."""
    return _result((segment_ids.shape[0], 2, segment_ids.shape[-1]), dtype or segment_ids.dtype,
                         lambda dst: _isa.sequence_bounds(dst, segment_ids))


def local_gather(src_buffer: _Tensor, index: _Tensor, num_elem_per_idx: int = 1, num_valid_indices: int | None = None,
                 mask: _Mask | None = None, **_: _Any) -> _Tensor:
    valid = num_valid_indices or index.shape[-1] * 16
    shape = (src_buffer.shape[0], valid * num_elem_per_idx)
    return _result(shape, src_buffer.dtype, lambda dst: _isa.local_gather(
        dst, src_buffer, index, num_elem_per_idx, num_valid_indices), box=_whole_box(mask, shape))


def dma_copy(dst: _Side, src: _Side, mask: _Mask | None = None, dst_rmw_op: _Op | None = None,
             oob_mode: _constants.oob_mode = oob_mode.error, unique_indices: bool = True, **_: _Any) -> _Any:
    """dst = src, or dst op= src."""
    if dst_rmw_op is not None:
        return _moves.atomic_rmw(dst, src, dst_rmw_op, mask, oob_mode=oob_mode, unique_indices=unique_indices)
    if mask is None:
        return _isa.dma_copy(dst, src, oob_mode=oob_mode)
    return _moves.move_inside(dst, src, _box_of(mask, tuple(dst.shape)))


dma_start = dma_copy


_names.strict(globals())
