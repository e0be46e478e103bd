"""neuronxcc.nki.isa: instructions that return their results. Those of nki.isa are underneath: with dst= they are the
same.

SPDX-License-Identifier: MIT
"""
from nki import dtypes as _dtypes, isa as _isa, sugar as _sugar
from nki.constants import (dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode,  # noqa: F401
                           reduce_cmd)
from nki.isa import (dma_engines, get_nc_version, gpsimd_engine, scalar_engine, tensor_engine,  # noqa: F401
                     unknown_engine, vector_engine)
from nki.masks import box_of as _box_of, cut as _cut
from nki.tensor import PSUM as _PSUM, NkiTensor as _Tensor


def _elementwise(name, operands):
    """An instruction of which the result has the shape of its first operand; masks cut all."""
    function = getattr(_isa, name)

    def instruction(*args, dst=None, dtype=None, mask=None, **options):
        if dst is not None:
            return function(dst, *args, **options)
        given = dict(zip(operands, args), **options)
        given = {k: _sugar.loaded(v) for k, v in given.items()}
        first = next(given[k] for k in ("data", "data1", "data0", "src", "on_true_tile") if k in given)
        shape = tuple(first.shape)
        box = _box_of(mask, shape)
        tiles = [v for k, v in given.items() if isinstance(v, _Tensor) and k in ("data", "data1", "data2", "src")]
        to = dtype or _sugar.promoted(*tiles)
        if name == "tensor_tensor":
            given["data2"] = _sugar.alike(given["data2"], shape)

        def emit(out):
            function(_cut(out, box), **{k: _cut(v, _fit(box, v, shape)) for k, v in given.items()})
        return _sugar.result(shape, to, emit)
    instruction.__name__, instruction.__doc__ = name, function.__doc__
    return instruction


def _fit(box, value, shape):
    """The box of an operand that has fewer axes, such as [P, 1]."""
    if box is None or not isinstance(value, _Tensor):
        return None
    if value.ndim == len(shape):
        return box
    return box[:1] + tuple(slice(None) for _ in range(value.ndim - 1))


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
    box = _box_of(mask, tuple(data.shape))
    return _sugar.result(data.shape, dtype or data.dtype, lambda dst: _isa.tensor_scalar_reduce(
        _cut(dst, box), _cut(data, box), op0, _cut(operand0, _fit(box, operand0, data.shape)), reduce_op,
        _cut(reduce_res, _fit(box, reduce_res, data.shape)), reverse0))


def tensor_reduce(op, data, axis, mask=None, dtype=None, negate=False, keepdims=False, dst=None, **_):
    """data reduced along free axes."""
    if dst is not None:
        return _isa.tensor_reduce(dst, op, data, axis, negate, keepdims)
    return _sugar.reduced(_sugar.operators.named(op), data, axis, mask, dtype, keepdims, negate)


def tensor_partition_reduce(op, data, mask=None, dtype=None, **_):
    """data reduced across partitions."""
    return _sugar.result((1,) + tuple(data.shape[1:]), dtype or data.dtype,
                         lambda dst: _isa.tensor_partition_reduce(dst, op, data))


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
    stationary's own format, of 8-bit formats in the lower byte of 16. Whoever puts them into a tile of float32 gets them
    widened by a tensor_copy: the machine writes no other format in this mode."""
    stationary, moving = _sugar.in_sbuf(stationary), _sugar.in_sbuf(moving)
    shape = (_sugar._free(stationary), _sugar._free(moving))
    box = _box_of(mask, shape)

    def emit(dst):
        _isa.nc_matmul(_cut(dst, box), stationary if box is None else stationary[:, box[0]],
                       moving if box is None else moving[:, box[1]], is_transpose=True, accumulate=False, **options)
    if stationary.dtype.itemsize > 1:
        return _sugar.result(shape, stationary.dtype, emit, _PSUM)
    wide = _sugar.tile(shape, "uint16", _PSUM)
    emit(wide)
    return wide.view(stationary.dtype)[:, ::2]


def _nothing(dst):
    """What an instruction does of which a mask leaves nothing."""


def _masked_product(stationary, moving, mask, options):
    """Of a mask over (K, ...) grids the contraction shrinks; over [M, N] the result."""
    shape = (_sugar._free(stationary), _sugar._free(moving))
    if not getattr(mask, "ndim", 0):  # one comparison for all: of loop variables
        return _sugar.product(stationary, moving, **options) if mask else \
            _sugar.result(shape, "float32", _nothing, _PSUM, _nothing)
    box = _box_of(mask, tuple(mask.shape))
    if box is None:
        return _sugar.product(stationary, moving, **options)
    if tuple(mask.shape) == shape:
        return _sugar.result(shape, "float32", lambda dst: _isa.nc_matmul(
            _cut(dst, box), stationary[:, box[0]], moving[:, box[1]], accumulate=False, **options), _PSUM)
    return _sugar.product(stationary[box[0]], moving[box[0]], **options)


def nc_transpose(data=None, *more, dst=None, mask=None, dtype=None, engine=engine.unknown, **_):
    """data turned: in PSUM by the Tensor engine, in SBUF by the Vector engine."""
    if dst is not None or more:
        dst, data = (dst, data) if not more else (data, more[0])
        return _isa.nc_transpose(dst, data, engine)
    if engine == vector_engine or (max(data.shape[0], _sugar._free(data)) <= 32 and engine != tensor_engine):
        return _sugar.result((_sugar._free(data), data.shape[0]), data.dtype,
                             lambda out: _isa.nc_transpose(out, data, vector_engine))
    box = _box_of(mask, tuple(data.shape))
    source = _cut(data, box)
    made = _sugar.transpose(source)
    if dtype is not None and _dtypes.of(dtype) != made.dtype:
        return _sugar.copy(made, dtype=dtype)
    return made


def memset(shape, value=0, dtype="float32", mask=None, engine=engine.unknown, dst=None, **_):
    """A tile full of one number."""
    if isinstance(shape, _Tensor) or dst is not None:
        return _isa.memset(dst if dst is not None else shape, value)
    return _sugar.full(shape, value, dtype)


def iota(expr, dtype="int32", mask=None, **_):
    """The numbers of an index expression."""
    from nki import arrays, simulator
    import numpy as np
    numbers = np.asarray(expr)
    array = arrays.Given(numbers.astype("int32"), "int32")
    source = simulator.current().hbm("iota", array.dtype.format, array.shape, array.dtype, array.array, False)
    return _iota(numbers, dtype, source)


def _iota(numbers, dtype, source):
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
    return _sugar.result(numbers.shape, dtype, emit)


def affine_select(pred, on_true_tile, on_false_value, mask=None, dtype=None, **_):
    """on_true_tile where an affine comparison of indices holds, else on_false_value."""
    import numpy as np
    on_true_tile = _sugar.in_sbuf(on_true_tile)  # GpSimdE does not reach PSUM
    shape = tuple(on_true_tile.shape)
    which = np.broadcast_to(np.asarray(pred), shape)  # NumPy has compared already
    return _sugar.result(shape, dtype or on_true_tile.dtype,
                         lambda dst: _by_rows(dst, on_true_tile, which, float(on_false_value)))


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
    box = _box_of(mask, tuple(data.shape))
    return _sugar.result((data.shape[0], 6), dtype or "float32",
                         lambda dst: _isa.bn_stats(_cut(dst, box and box[:1]), _cut(data, box)))


def bn_aggr(data, mask=None, dtype=None, **_):
    """Mean and variance of several bn_stats."""
    return _sugar.result((data.shape[0], 2), dtype or "float32",
                         lambda dst: _isa.bn_aggr(dst, data.reshaped((data.shape[0], -1))))


def max8(src, mask=None, dtype=None, **_):
    """The eight largest of each partition."""
    return _sugar.result((src.shape[0], 8), dtype or src.dtype, lambda dst: _isa.max8(dst, src))


def nc_find_index8(data, vals, mask=None, dtype="uint32", **_):
    """Where they stand."""
    return _sugar.result((data.shape[0], 8), dtype, lambda dst: _isa.nc_find_index8(dst, data, vals))


def nc_match_replace8(data, vals, imm, mask=None, dtype=None, **_):
    """data with the first place of each replaced."""
    return _sugar.result(data.shape, dtype or data.dtype, lambda dst: _isa.nc_match_replace8(dst, data, vals, imm))


def nc_stream_shuffle(src, dst, shuffle_mask, **_):
    return _isa.nc_stream_shuffle(dst, src, shuffle_mask)


def range_select(on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.reset_reduce, reduce_res=None,
                 reduce_op="maximum", range_start=0, on_false_value=-3.4028235e38, mask=None, dtype=None, **_):
    """on_true_tile where the column lies between two bounds."""
    return _sugar.result(on_true_tile.shape, dtype or on_true_tile.dtype, lambda dst: _isa.range_select(
        dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd, reduce_res, reduce_op, range_start,
        on_false_value))


def select_reduce(dst, predicate, on_true, on_false, **options):
    return _isa.select_reduce(dst, predicate, on_true, on_false, **options)


def tensor_copy_predicated(src, dst, predicate, reverse_pred=False, mask=None, **_):
    return _isa.tensor_copy_predicated(dst, src, predicate, reverse_pred)


def tensor_copy_dynamic_src(src, mask=None, dtype=None, **_):
    return tensor_copy(src, dtype=dtype, mask=mask)


def local_gather(src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, mask=None, **_):
    valid = num_valid_indices or index.shape[-1] * 16
    return _sugar.result((src_buffer.shape[0], valid * num_elem_per_idx), src_buffer.dtype,
                         lambda dst: _isa.local_gather(dst, src_buffer, index, num_elem_per_idx, num_valid_indices))


def dma_copy(dst, src, mask=None, **options):
    """dst = src."""
    box = _box_of(mask, tuple(dst.shape))
    return _isa.dma_copy(_cut(dst, box), _cut(src, box), **{k: v for k, v in options.items() if k in (
        "oob_mode", "dge_mode", "priority")})


dma_start = dma_copy
