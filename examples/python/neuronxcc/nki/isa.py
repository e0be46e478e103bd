"""neuronxcc.nki.isa: instructions that return their results. Those of nki.isa are underneath: with dst= they are the
same.

SPDX-License-Identifier: MIT
"""
from nki import dtypes as _dtypes, isa as _isa, sugar as _sugar
from nki.constants import (dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode,  # noqa: F401
                           reduce_cmd)
from nki.isa import (dma_engines, get_nc_version, gpsimd_engine, scalar_engine, tensor_engine,  # noqa: F401
                     unknown_engine, vector_engine)
from nki import masks as _masks
from nki.masks import box_of as _box_of, cut as _cut, engine_box as _engine_box, whole_box as _whole_box
from nki.tensor import NkiTensor as _Tensor


def _elementwise(name, operands):
    """An instruction of which the result has the shape of its first operand; masks cut all."""
    function = getattr(_isa, name)

    def instruction(*args, dst=None, dtype=None, mask=None, **options):
        if dst is not None:
            return function(dst, *args, **options)
        given = dict(zip(operands, args), **options)
        first = next(given[k] for k in _FIRST if k in given)
        shape = tuple(first.shape)
        box = _engine_box(mask, shape)
        given = {k: _sugar.loaded(v, box if tuple(getattr(v, "shape", ())) == shape else None)
                 for k, v in given.items()}
        tiles = [v for k, v in given.items() if isinstance(v, _Tensor) and k in ("data", "data1", "data2", "src")]
        to = dtype or _sugar.promoted(*tiles)
        if name == "tensor_tensor":
            given["data2"] = _sugar.alike(given["data2"], shape)
        if box is not None and box.inside is not None and given.get("reduce_res") is not None:
            plain = _isa.activation if name == "activation_reduce" else function
            return _sugar.result(shape, to, _and_sum(plain, given, box), box=box)

        def emit(out):
            function(_cut(out, box), **{k: _cut(v, box) for k, v in given.items()})
        return _sugar.result(shape, to, emit, box=box)
    instruction.__name__, instruction.__doc__ = name, function.__doc__
    return instruction


_FIRST = ("data", "data1", "data0", "src", "on_true_tile")


def _and_sum(function, given, box):
    """Of a mask that is no box: the instruction without its sum into a tile of binary32, then tensor_reduce of what the
    mask names."""
    given = dict(given)
    total, op = given.pop("reduce_res"), _sugar.operators.named(given.pop("reduce_op", None) or "add")
    if given.pop("reduce_cmd", reduce_cmd.reset_reduce) not in (reduce_cmd.reset_reduce, reduce_cmd.idle):
        raise _sugar._core.Error("a mask that is no box of its axes goes with reset_reduce alone")

    def emit(out):
        wide = _sugar.tile(out.shape, "float32")
        function(_cut(wide, box), **{k: _cut(v, box) for k, v in given.items()})
        made = _sugar.reduced(op, wide, tuple(range(1, len(box.shape))), box, "float32")
        _sugar.assign(total, Ellipsis, made if made.shape == total.shape else made.reshaped(total.shape))
        _sugar.put(_cut(out, box), _cut(wide, box))
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


def tensor_tensor_reduce(*_, **__):
    raise _sugar._core.Error("tensor_tensor_reduce: NKI 0.6.0 no longer has it; use tensor_tensor and tensor_reduce")


def tensor_scalar_reduce(*, data, op0, operand0, reduce_op, reduce_res, reverse0=False, dtype=None, mask=None, **_):
    """data op0 operand0, and its reduction in reduce_res."""
    box = _engine_box(mask, tuple(data.shape))
    given = {"data": data, "op0": op0, "operand0": operand0, "reverse0": reverse0}
    if box is not None and box.inside is not None:
        emit = _and_sum(_isa.tensor_scalar, dict(given, reduce_op=reduce_op, reduce_res=reduce_res), box)
    else:
        given.update(reduce_op=reduce_op, reduce_res=reduce_res)

        def emit(dst):
            _isa.tensor_scalar_reduce(_cut(dst, box), **{k: _cut(v, box) for k, v in given.items()})
    return _sugar.result(data.shape, dtype or data.dtype, emit, box=box)


def tensor_reduce(op, data, axis, mask=None, dtype=None, negate=False, keepdims=False, dst=None, **_):
    """data reduced along free axes."""
    if dst is not None:
        return _isa.tensor_reduce(dst, op, data, axis, negate, keepdims)
    return _sugar.reduced(_sugar.operators.named(op), data, axis, mask, dtype, keepdims, negate)


def tensor_partition_reduce(op, data, mask=None, dtype=None, **_):
    """data reduced across partitions."""
    made = _sugar.reduced(_sugar.operators.named(op), data, 0, mask, dtype)
    return made if data.ndim == 2 else made.reshaped((1,) + tuple(data.shape[1:]))


def nc_matmul(stationary=None, moving=None, *more, dst=None, mask=None, is_stationary_onezero=False,
              is_moving_onezero=False, is_transpose=False, **options):
    """A product in PSUM; psum += nc_matmul(...) accumulates. is_transpose: stationary turned, bit by bit."""
    options.update(is_stationary_onezero=is_stationary_onezero, is_moving_onezero=is_moving_onezero)
    if dst is not None or more:
        dst, stationary, moving = (dst, stationary, moving) if not more else (stationary, moving, more[0])
        return _isa.nc_matmul(dst, stationary, moving, is_transpose=is_transpose, **options)
    if is_transpose and _isa.get_nc_version() != nc_version.gen2:
        return _turned(stationary, moving, mask, options)
    if mask is not None:
        return _masked_product(stationary, moving, mask, options)
    return _sugar.product(stationary, moving, **options)


def _turned(stationary, moving, mask, options):
    """Transpose mode, which Trainium1 lacks (a product by the identity stands for it there): PSUM gets the bits in
    stationary's own format, of 8-bit formats in the lower byte of 16. Whoever puts them into a tile of float32 gets
    them widened by a tensor_copy: the machine writes no other format in this mode."""
    stationary, moving = _sugar.in_sbuf(stationary), _sugar.in_sbuf(moving)
    shape = (_sugar._free(stationary), _sugar._free(moving))
    box = _whole_box(mask, shape)

    def emit(dst):
        _isa.nc_matmul(dst, stationary, moving, is_transpose=True, accumulate=False, **options)
    return _sugar.turned(shape, stationary.dtype, emit, box)


def _masked_product(stationary, moving, mask, options):
    """Of a mask over [M, N] the part of the result; over the grid of an operand, [K, ...], what it leaves out of it is
    0: of a box of K the contraction shrinks."""
    shape = (_sugar._free(stationary), _sugar._free(moving))
    if not getattr(mask, "ndim", 0) or tuple(mask.shape) == shape:  # ndim 0: one comparison for all, of loop variables
        return _sugar.product(stationary, moving, _box_of(mask, shape), **options)
    box = _engine_box(mask, tuple(mask.shape))
    if box is None:
        return _sugar.product(stationary, moving, **options)
    if box.inside is None and (len(box) == 1 or _spans(box[1:], box.shape[1:])):
        return _sugar.product(stationary[box[0]], moving[box[0]], **options)
    of_stationary = tuple(mask.shape) == tuple(stationary.shape) != tuple(moving.shape)
    which = _sugar.in_sbuf(stationary if of_stationary else moving)
    part = _masks.filled(which, _whole_box(box.full, which.shape), 0)
    return _sugar.product(*((part, moving) if of_stationary else (stationary, part)), **options)


def _spans(slices, shape):
    return all((s.start, s.stop, s.step) == (0, n, 1) or n == 1 for s, n in zip(slices, shape))


def nc_transpose(data=None, *more, dst=None, mask=None, dtype=None, engine=engine.unknown, **_):
    """data turned: in PSUM by the Tensor engine, in SBUF by the Vector engine."""
    if dst is not None or more:
        dst, data = (dst, data) if not more else (data, more[0])
        return _isa.nc_transpose(dst, data, engine)
    if engine == vector_engine or (max(data.shape[0], _sugar._free(data)) <= 32 and engine != tensor_engine):
        shape = (_sugar._free(data), data.shape[0])
        turned = None if mask is None else _sugar._bools(mask, data.shape).reshape(shape[::-1]).T
        return _sugar.result(shape, data.dtype, lambda out: _isa.nc_transpose(out, data, vector_engine),
                             box=_whole_box(turned, shape))
    made = _sugar.transpose(data, mask=mask)
    if dtype is not None and _dtypes.of(dtype) != made.dtype:
        return _sugar.copy(made, dtype=dtype)
    return made


def memset(shape, value=0, dtype="float32", mask=None, engine=engine.unknown, dst=None, **_):
    """A tile full of one number."""
    if isinstance(shape, _Tensor) or dst is not None:
        return _isa.memset(dst if dst is not None else shape, value)
    return _sugar.full(shape, value, dtype, mask)


def iota(expr, dtype="int32", mask=None, **_):
    """The numbers of an index expression."""
    from nki import arrays, simulator
    import numpy as np
    numbers = np.asarray(expr)
    array = arrays.Given(numbers.astype("int32"), "int32")
    source = simulator.current().hbm("iota", array.dtype.format, array.shape, array.dtype, array.array, False)
    return _iota(numbers, dtype, source, _whole_box(mask, numbers.shape))


def _iota(numbers, dtype, source, box):
    """As a pattern where it is one, else loaded."""
    def emit(dst):
        steps = [int(numbers.take(1, axis=a).reshape(-1)[0] - numbers.reshape(-1)[0]) if n > 1 else 0
                 for a, n in enumerate(numbers.shape)]
        whole = dst.dtype == "int32" and numbers.ndim <= 5
        if whole:
            _isa.iota(dst.reshaped((numbers.shape[0], -1)), [[s, n] for s, n in zip(steps[1:], numbers.shape[1:])],
                      int(numbers.reshape(-1)[0]), steps[0])
        else:
            _isa.dma_copy(dst, source)
    return _sugar.result(numbers.shape, dtype, emit, box=box)


def affine_select(pred, on_true_tile, on_false_value, mask=None, dtype=None, **_):
    """on_true_tile where an affine comparison of indices holds, else on_false_value."""
    import numpy as np
    on_true_tile = _sugar.in_sbuf(on_true_tile)  # GpSimdE does not reach PSUM
    shape = tuple(on_true_tile.shape)
    which = np.broadcast_to(np.asarray(pred), shape)  # NumPy has compared already
    return _sugar.result(shape, dtype or on_true_tile.dtype,
                         lambda dst: _by_rows(dst, on_true_tile, which, float(on_false_value)),
                         box=_whole_box(mask, shape))


def _by_rows(dst, tile, which, otherwise):
    """A step that slopes by one column from partition to partition, as a causal mask does: found from the numbers."""
    import numpy as np
    flat = which.reshape(which.shape[0], -1)
    count = flat.sum(1)
    width = flat.shape[1]
    rows, columns = np.indices(flat.shape)
    for slope in (1, -1, 0):
        for upper in (False, True):
            number = slope * rows - columns
            for offset in {int(o) for o in (count - 1 - slope * np.arange(len(count)),) for o in np.unique(o)} | \
                    {int(o) for o in np.unique((width - count) - slope * np.arange(len(count)))}:
                test = number + offset
                held = (test >= 0) if not upper else (test <= 0)
                if np.array_equal(held, flat):
                    return _isa.affine_select(dst.reshaped((flat.shape[0], -1)), [[-1, width]], slope,
                                              tile.reshaped((flat.shape[0], -1)), otherwise,
                                              "greater_equal" if not upper else "less_equal", offset)
    _by_table(dst, tile, flat, otherwise)


def _by_table(dst, tile, which, otherwise):
    """Any other: memset, then tensor_copy_predicated by ones and zeros that are loaded."""
    predicate = _sugar.load(_language().shared_constant(which.astype("uint8")))
    source = tile if tile.dtype == dst.dtype else _sugar.copy(tile, dtype=dst.dtype)
    to, source = (v.reshaped(which.shape) for v in (dst, source))
    _isa.memset(to, otherwise)
    _isa.tensor_copy_predicated(to, source, predicate)


def _language():
    from nki import language
    return language


def bn_stats(data, mask=None, dtype=None, **_):
    """Count, mean, variance x count, of even and of odd elements."""
    box = _engine_box(mask, tuple(data.shape))
    if box is not None and box.inside is not None and (box.full.any(axis=1, keepdims=True) != box.full).any():
        raise _sugar._core.Error("bn_stats: partitions count the same elements; this mask names others in each")
    rows = None if box is None else _sugar.box_of(box.full.any(axis=1, keepdims=True), (data.shape[0], 6))
    return _sugar.result((data.shape[0], 6), dtype or "float32",
                         lambda dst: _isa.bn_stats(_cut(dst, box and box[:1]), _cut(data, box)), box=rows)


def bn_aggr(data, mask=None, dtype=None, **_):
    """Mean and variance of several bn_stats."""
    rows = _rows(mask, data, 2)
    return _sugar.result((data.shape[0], 2), dtype or "float32", lambda dst: _isa.bn_aggr(
        _cut(dst, rows), _cut(data.reshaped((data.shape[0], -1)), rows and rows[:1])), box=rows)


def _rows(mask, data, width):
    """A mask of rows, of a result [P, width]."""
    if mask is None:
        return None
    full = _sugar._bools(mask, data.shape)
    return _engine_box(full.reshape(full.shape[0], -1).any(axis=1)[:, None], (data.shape[0], width))


def _searched(data, mask, op):
    """data, where the mask is false with a number that nothing finds."""
    if mask is None:
        return data
    return _masks.filled(data, _whole_box(mask, data.shape), op if isinstance(op, float) else
                         _masks.neutral(op, data.dtype))


def max8(src, mask=None, dtype=None, **_):
    """The eight largest of each partition."""
    data = _searched(src, mask, "maximum")
    return _sugar.result((src.shape[0], 8), dtype or src.dtype, lambda dst: _isa.max8(dst, data),
                         box=_whole_box(_rows(mask, src, 8), (src.shape[0], 8)))


def nc_find_index8(data, vals, mask=None, dtype="uint32", **_):
    """Where they stand."""
    found = _searched(data, mask, float("nan"))
    return _sugar.result((data.shape[0], 8), dtype, lambda dst: _isa.nc_find_index8(dst, found, vals),
                         box=_whole_box(_rows(mask, data, 8), (data.shape[0], 8)))


def nc_match_replace8(data, vals, imm, mask=None, dtype=None, **_):
    """data with the first place of each replaced."""
    found = _searched(data, mask, float("nan"))
    return _sugar.result(data.shape, dtype or data.dtype, lambda dst: _isa.nc_match_replace8(dst, found, vals, imm),
                         box=_whole_box(mask, data.shape))


def _onto(dst, mask, run):
    """run(dst), of a mask's elements alone: through a tile."""
    box = _box_of(mask, tuple(dst.shape))
    if box is None:
        return run(dst)
    if not box.empty:
        whole = _whole_box(box, box.shape)
        made = _sugar.tile(dst.shape, dst.dtype)
        run(made)
        _masks.copy_inside(dst, made, whole.inside)
    return None


def nc_stream_shuffle(src, dst, shuffle_mask, mask=None, **_):
    """Partition i of each 32 of dst is partition shuffle_mask[i] of src; 255 leaves it."""
    return _onto(dst, mask, lambda to: _isa.nc_stream_shuffle(to, src, shuffle_mask))


def range_select(on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.reset_reduce, reduce_res=None,
                 reduce_op="maximum", range_start=0, on_false_value=-3.4028235e38, mask=None, dtype=None, **_):
    """on_true_tile where the column lies between two bounds."""
    return _sugar.result(on_true_tile.shape, dtype or on_true_tile.dtype, lambda dst: _isa.range_select(
        dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd, reduce_res, reduce_op, range_start,
        on_false_value), box=_whole_box(mask, on_true_tile.shape))


def select_reduce(dst, predicate, on_true, on_false, mask=None, **options):
    """dst = on_true where predicate, else on_false, and its maximum per partition."""
    return _onto(dst, mask, lambda to: _isa.select_reduce(to, predicate, on_true, on_false, **options))


def tensor_copy_predicated(src, dst, predicate, reverse_pred=False, mask=None, **_):
    """dst = src where predicate is not 0."""
    box = _engine_box(mask, tuple(dst.shape))
    if box is not None and box.empty:
        return
    dst, src, predicate = (_cut(v, box) for v in (dst, src, predicate))
    if box is not None and box.inside is not None:
        inside = _masks.predicate_of(~box.inside if reverse_pred else box.inside).reshaped(tuple(dst.shape))
        both = _sugar.tile(dst.shape, "uint8")
        _isa.tensor_tensor(both, predicate, inside, "logical_or" if reverse_pred else "logical_and")
        predicate = both
    _isa.tensor_copy_predicated(dst, src, predicate, reverse_pred)


def tensor_copy_dynamic_src(src, mask=None, dtype=None, **_):
    """tensor_copy: offsets in tiles are read when the view is made."""
    return tensor_copy(src, dtype=dtype, mask=mask)


def tensor_copy_dynamic_dst(dst, src, mask=None, dtype=None, **_):
    """tensor_copy into dst: offsets in tiles are read when the view is made."""
    _sugar.assign(dst, Ellipsis, tensor_copy(src, dtype=dtype or dst.dtype, mask=mask))


def dma_transpose(src=None, *more, dst=None, axes=None, mask=None, dtype=None, **_):
    """src with its axes turned round, in a new tile."""
    if dst is not None or more:
        dst, src = (dst, src) if not more else (src, more[0])
        return _isa.dma_transpose(dst, src, axes)
    order = tuple(axes) if axes is not None else tuple(range(src.ndim))[::-1]
    shape = tuple(src.shape[a] for a in order)
    box = None if mask is None else _whole_box(_sugar._bools(mask, src.shape).transpose(order), shape)
    return _sugar.result(shape, dtype or src.dtype, lambda out: _isa.dma_transpose(out.reshaped(shape), src, axes),
                         box=box)


def sequence_bounds(segment_ids, dtype=None, mask=None, **_):
    """Where each segment begins and ends."""
    return _sugar.result((segment_ids.shape[0], 2, segment_ids.shape[-1]), dtype or segment_ids.dtype,
                         lambda dst: _isa.sequence_bounds(dst, segment_ids))


def local_gather(src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, mask=None, **_):
    valid = num_valid_indices or index.shape[-1] * 16
    shape = (src_buffer.shape[0], valid * num_elem_per_idx)
    return _sugar.result(shape, src_buffer.dtype, lambda dst: _isa.local_gather(
        dst, src_buffer, index, num_elem_per_idx, num_valid_indices), box=_whole_box(mask, shape))


def dma_copy(dst, src, mask=None, **options):
    """dst = src."""
    known = {k: v for k, v in options.items() if k in ("oob_mode", "dge_mode", "priority")}
    if mask is None:
        return _isa.dma_copy(dst, src, **known)
    known.pop("oob_mode", None)
    return _sugar.move_inside(dst, src, _box_of(mask, tuple(dst.shape)), **known)


dma_start = dma_copy
