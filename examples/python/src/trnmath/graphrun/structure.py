"""Operations that move numbers, make them, or compare them: op(machine, op, arrays) gives a list of results.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy as np

from . import formats
from .graph import Op, Shape, Trouble
from .machine import COMPARE, Array, Engines, Exact
from .products import padded

Machine = Exact | Engines
Arrays = list[Array]


def constant(machine: Machine, op: Op, _: Arrays) -> Arrays:
    """The numbers as they are written, rounded to their format in both machines."""
    shape, value = op.shape(), op.get("value")
    if value is None:
        raise Trouble(f"line {op.line}: constant '{op.name}' was left out when the module was printed: --fill random")
    x = np.broadcast_to(np.asarray(value), shape.dims)
    if formats.is_float(shape.format):
        with np.errstate(over="ignore"):
            x = formats.rounded(x.astype(formats.holder(shape.format, False)), shape.format)
    return [formats.settled(x, shape, False)]


def iota(machine: Machine, op: Op, _: Arrays) -> Arrays:
    """0, 1, 2, ... along an axis."""
    shape, axis = op.shape(), op.attributes.get("iota_dimension", 0)
    if not shape.dims:
        return [np.zeros((), formats.holder(shape.format, machine.wide))]
    line = np.arange(shape.dims[axis]).reshape([-1 if n == axis else 1 for n in range(len(shape.dims))])
    return [np.broadcast_to(line, shape.dims).astype(formats.holder(shape.format, machine.wide))]


def reshape(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """In order of rows; HLO's bitcast in the order in which both lie in memory (bits, lies: axes, outermost first)."""
    x, shape, bits = arrays[0], op.shape(), op.attributes.get("bits")
    if bits is None:
        return [x.reshape(shape.dims)]
    lies, bits = op.attributes["lies"] or list(range(x.ndim)), bits or list(range(len(shape.dims)))
    if op.get("of") != shape.format:
        if lies + bits != [*range(x.ndim), *range(len(shape.dims))]:
            raise Trouble(f"line {op.line}: bitcast '{op.name}' to another format and another layout is not known here")
        return bitcast_convert(machine, op, arrays)
    return [x.transpose(lies).reshape([shape.dims[n] for n in bits]).transpose(np.argsort(bits).astype(int))]


def move(_: Machine, __: Op, arrays: Arrays) -> Arrays:
    """As they are."""
    return arrays


def first(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """As many as there are results."""
    return arrays[:max(1, len(op.results))]


def transpose(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Axes in another order."""
    return [arrays[0].transpose(op.get("dimensions"))]


def broadcast_in_dim(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Axis n of the operand is axis dimensions[n] of the result."""
    x, shape, axes = arrays[0], op.shape(), op.attributes.get("dimensions", [])
    sizes = [1] * len(shape.dims)
    order = sorted(range(len(axes)), key=lambda n: axes[n])
    for n, axis in enumerate(axes):
        sizes[axis] = x.shape[n]
    return [np.broadcast_to(x.transpose(order).reshape(sizes), shape.dims)]


def slice_(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """start:limit:stride of each axis."""
    rows = zip(op.get("start_indices"), op.get("limit_indices"), op.get("strides"))
    return [arrays[0][tuple(slice(a, b, c) for a, b, c in rows)]]


def _starts(indices: Arrays, sizes: tuple[int, ...], whole: tuple[int, ...]) -> list[int]:
    """Indices, pushed back until all lies inside."""
    return [int(np.clip(int(i), 0, n - size)) for i, size, n in zip(indices, sizes, whole)]


def dynamic_slice(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """A part that begins at indices which are operands."""
    sizes = op.shape().dims
    starts = _starts(arrays[1:], sizes, arrays[0].shape)
    return [arrays[0][tuple(slice(a, a + n) for a, n in zip(starts, sizes))]]


def dynamic_update_slice(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """The first operand with the second at indices which are operands."""
    made, part = arrays[0].copy(), arrays[1]
    starts = _starts(arrays[2:], part.shape, made.shape)
    made[tuple(slice(a, a + n) for a, n in zip(starts, part.shape))] = part
    return [made]


def real_dynamic_slice(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """start:limit:stride of each axis, from operands."""
    rows = zip(*(np.asarray(a).reshape(-1).astype(int) for a in arrays[1:4]))
    return [arrays[0][tuple(slice(a, b, c) for a, b, c in rows)]]


def get_dimension_size(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """How long an axis is."""
    return [np.array(arrays[0].shape[op.axis()], np.int32)]


def concatenate(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Side by side along an axis."""
    return [np.concatenate(arrays, op.axis(0))]


def reverse(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Backwards along axes."""
    return [np.flip(arrays[0], op.get("dimensions"))]


def pad(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Around and between; negative widths cut off."""
    low, high, inner = (op.get(name) for name in ("low", "high", "interior"))
    return [padded(arrays[0], list(zip(low, high)), [i + 1 for i in inner], arrays[1])]


def dynamic_pad(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """The same with widths from operands."""
    low, high, inner = (np.asarray(a).reshape(-1).astype(int).tolist() for a in arrays[2:5])
    return [padded(arrays[0], list(zip(low, high)), [i + 1 for i in inner], arrays[1])]


def select(_: Machine, __: Op, arrays: Arrays) -> Arrays:
    """The second where the first is true, else the third."""
    return [np.where(arrays[0], arrays[1], arrays[2])]


def clamp(_: Machine, __: Op, arrays: Arrays) -> Arrays:
    """(least, x, most)"""
    return [np.minimum(np.maximum(arrays[1], arrays[0]), arrays[2])]


def compare(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """EQ, NE, LT, LE, GT, GE."""
    x, y = arrays
    if "TOTALORDER" in str(op.attributes.get("compare_type")) and x.dtype.kind == "f":
        x, y = (ordered(a) for a in arrays)
    return [COMPARE[op.get("direction")](x, y)]


def ordered(x: Array) -> Array:
    """Whole numbers in the order of -NaN, -infinity, ..., -0, +0, ..., NaN."""
    bits: Array = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, -(bits & np.iinfo(bits.dtype).max) - 1, bits).reshape(x.shape)


def convert(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """To another format: floats to whole numbers towards zero."""
    x, shape = arrays[0], op.shape()
    if x.dtype.kind == "c" and shape.format not in formats.COMPLEX:
        x = x.real
    if x.dtype.kind == "f" and shape.format in formats.INTEGERS and shape.format != "pred":
        least, most = formats.limits(shape.format)
        with np.errstate(invalid="ignore"):
            inside = np.clip(np.trunc(np.nan_to_num(x, nan=0.0)), float(least), float(most))
            x = np.where(inside >= float(most), most, inside.astype(np.int64 if least < 0 else np.uint64))
    return [x if shape.format == "pred" else x.astype(formats.holder(shape.format, machine.wide)
                                                      if shape.format != "pred" else bool)]


def bitcast_convert(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """The same bits in another format; the last axis comes or goes where sizes differ. Numbers of the reference are
    rounded to their format first: without that they have no bits."""
    given, shape = op.get("of"), op.shape()
    x = arrays[0]
    if given in formats.FOUR or shape.format in formats.FOUR:
        raise Trouble(f"line {op.line}: bits of {given} as {shape} are not known here")
    if formats.is_float(given):
        x = formats.rounded(x.astype(formats.holder(given, False)), given)
    data = np.ascontiguousarray(formats.codes(x, given)).tobytes()
    return [formats.settled(formats.of_bits(data, shape), shape, machine.wide)]


def is_finite(_: Machine, __: Op, arrays: Arrays) -> Arrays:
    """Neither infinite nor NaN."""
    return [np.isfinite(arrays[0])]


def complex_(_: Machine, __: Op, arrays: Arrays) -> Arrays:
    """Of two parts."""
    made = np.empty(arrays[0].shape, np.result_type(*arrays, np.complex64))
    made.real, made.imag = arrays
    return [made]


def real(_: Machine, __: Op, arrays: Arrays) -> Arrays:
    """The real part."""
    return [np.real(arrays[0])]


def imag(_: Machine, __: Op, arrays: Arrays) -> Arrays:
    """The imaginary part; 0 of what has none."""
    return [np.imag(arrays[0])]


def reduce_precision(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Rounded to so many bits: in both machines, as the graph asks for it."""
    exponent, mantissa = op.get("exponent_bits"), op.get("mantissa_bits")
    known = {(8, 7): "bf16", (5, 10): "f16", (8, 23): "f32", (5, 2): "f8e5m2", (11, 52): "f64"}
    if (exponent, mantissa) not in known:
        raise Trouble(f"line {op.line}: reduce_precision to e{exponent}m{mantissa} is not known here")
    x = arrays[0]
    return [formats.rounded(x, known[exponent, mantissa]).astype(x.dtype)]


def top_k(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """The largest k along the last axis in the total order, and where they were; of equal ones the first."""
    x, k = arrays[0], op.attributes.get("k", flat_last(op))
    if not op.attributes.get("largest", True):
        raise Trouble(f"line {op.line}: top_k '{op.name}' of the smallest is not known here")
    keys = ordered(x) if x.dtype.kind == "f" else x
    backwards = np.flip(keys, -1)  # a stable sort from the end: of equal ones the last comes last
    order = (x.shape[-1] - 1 - np.flip(np.argsort(backwards, -1, kind="stable"), -1))[..., :k]
    return [np.take_along_axis(x, order, -1), order.astype(np.int32)]


def flat_last(op: Op) -> int:
    """The last axis of the first result."""
    shape = op.types[0] if isinstance(op.types[0], Shape) else op.types[0][0]
    assert isinstance(shape, Shape)
    return shape.dims[-1]


def fft(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """FFT, IFFT, RFFT, IRFFT over the last axes, as long as fft_length has."""
    x, kind, sizes = arrays[0], str(op.get("fft_type")), op.get("fft_length")
    axes = list(range(x.ndim - len(sizes), x.ndim))
    made = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[kind](x, sizes, axes)
    return [made]


def rng_bit_generator(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Bits that depend on the state alone, the same in both machines: which ones is the device's business."""
    state = arrays[0]
    shapes = [t for t in (op.types[0] if isinstance(op.types[0], tuple) else op.types)]
    shape = shapes[-1]
    assert isinstance(shape, Shape)
    draw = np.random.default_rng([int(n) & 0xffffffff for n in np.ascontiguousarray(state).view(np.uint32)])
    stored = formats.holder(shape.format, machine.wide)
    bits = draw.integers(0, 1 << (8 * stored.itemsize), shape.dims, np.dtype(f"u{stored.itemsize}"), endpoint=False) \
        if stored.itemsize < 8 else draw.integers(0, (1 << 64) - 1, shape.dims, np.uint64, endpoint=True)
    return [state + np.array(1, state.dtype), np.asarray(bits).view(stored) if stored.kind in "iu" else np.asarray(bits)]


def rng(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Uniform or normal numbers, by the operation's line."""
    shape, draw = op.shape(), np.random.default_rng(op.line)
    a, b = (np.asarray(x).item() for x in arrays[:2])
    uniform = "NORMAL" not in str(op.attributes.get("distribution", "UNIFORM")).upper()
    return [(a + (b - a) * draw.random(shape.dims) if uniform else draw.normal(a, b, shape.dims)).astype(
        formats.holder(shape.format, machine.wide))]


TABLE: dict[str, Any] = {
    "constant": constant, "iota": iota, "reshape": reshape, "move": move, "optimization_barrier": move, "copy": move,
    "transpose": transpose, "broadcast_in_dim": broadcast_in_dim, "slice": slice_, "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice, "real_dynamic_slice": real_dynamic_slice, "dynamic_pad": dynamic_pad,
    "get_dimension_size": get_dimension_size, "concatenate": concatenate, "reverse": reverse, "pad": pad,
    "select": select, "clamp": clamp, "compare": compare, "convert": convert, "bitcast_convert": bitcast_convert,
    "is_finite": is_finite, "complex": complex_, "real": real, "imag": imag, "reduce_precision": reduce_precision,
    "top_k": top_k, "rng_bit_generator": rng_bit_generator, "rng": rng, "fft": fft, "after_all": lambda m, o, a: [np.zeros(0)],
    "create_token": lambda m, o, a: [np.zeros(0)]}
