"""Along axes: nl.sum, nl.mean, nl.softmax, norms.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Union

from . import _core, dtypes, isa, operators
from ._numpy import np
from .arithmetic import binary, unary
from .handle import Operator
from .masks import Box, Mask, box_of, cut, engine_box, filled, neutral, reduced_box, whole_box
from .moves import load, loaded
from .results import result
from .tensor import Format, NkiTensor, Operand
from .tiles import table

Axis = Union[int, Sequence[int]]


def _axes(x: NkiTensor, axis: Axis) -> list[int]:
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return sorted(a % x.ndim for a in axes)


def _rest(x: NkiTensor, axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    rest = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdims else \
        [n for i, n in enumerate(x.shape) if i not in axes]
    return tuple(rest) if len(rest) > 1 else tuple(rest) + (1,)


def reduced(op: Operator, x: Any, axis: Axis, mask: Mask | None = None, dtype: Format | None = None,
            keepdims: bool = False, negate: bool = False, **_: Any) -> NkiTensor:
    """tensor_reduce along free axes; along the partitions tensor_partition_reduce. Of a mask that is no box: where it
    is false a number goes in that changes nothing (memset, tensor_copy_predicated)."""
    box = engine_box(mask, tuple(x.shape))
    x = loaded(x, box)
    axes = _axes(x, axis)
    if 0 in axes:
        return _reduced_across(op, x, box, dtype)
    rest = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    over = reduced_box(box, axes, rest)

    def emit(dst: NkiTensor) -> None:
        wide = dst.reshaped(rest)
        part = x if box is None else filled(x, box, _neutral(op, x, box))
        isa.tensor_reduce(cut(wide, _kept(box, axes)), op, part, axes, negate)
    shape = _rest(x, axes, keepdims)
    return result(shape, dtype or x.dtype, emit, box=_shaped_box(over, shape))


def _neutral(op: Operator, x: NkiTensor, box: Box) -> float:
    return neutral(op.name, x.dtype) if box.inside is not None else 0


def _kept(box: Box | None, axes: Sequence[int]) -> tuple[slice, ...] | None:
    return None if box is None else tuple(b for i, b in enumerate(box) if i not in axes)


def _shaped_box(box: Box | None, shape: Sequence[int]) -> Box | None:
    return None if box is None else engine_box(box.full.reshape(shape), shape)


def _reduced_across(op: Operator, x: NkiTensor, box: Box | None, dtype: Format) -> NkiTensor:
    shape = (1, math.prod(x.shape[1:]))
    if box is None:
        return result(shape, dtype or x.dtype, lambda dst: isa.tensor_partition_reduce(dst, op, x.reshaped(
            (x.shape[0], -1))))
    whole = whole_box(box, box.shape)
    over = box_of(box.full.any(axis=0).reshape(shape), shape)
    return result(shape, dtype or x.dtype, lambda dst: isa.tensor_partition_reduce(
        dst, op, filled(x, whole, neutral(op.name, x.dtype)).reshaped((x.shape[0], -1))), box=whole_box(over, shape))


def _op(name: str) -> Operator:
    return operators.ALL[name]


def mean(x: NkiTensor, axis: Axis, mask: Mask | None = None, dtype: Format | None = None,
         keepdims: bool = False) -> NkiTensor:
    """tensor_reduce(add), then multiply by one over the number of elements, of a mask of those that it names."""
    box, axes = box_of(mask, tuple(x.shape)), _axes(x, axis)
    total = reduced(_op("add"), x, axis, box, "float32", keepdims)
    if box is None:
        return binary(_op("multiply"), total, 1.0 / math.prod([x.shape[a] for a in axes]), dtype=dtype or x.dtype)
    counts = box.full.sum(axis=tuple(axes)).reshape(total.shape)
    share = 1.0 / np.maximum(counts, 1)
    if counts.size and share[counts > 0].size and (share[counts > 0] == share.min()).all():
        share = float(share.min())
    else:
        share = load(table(share.astype(np.float32)))
    return binary(_op("multiply"), total, share, mask=counts > 0, dtype=dtype or x.dtype)


def var(x: NkiTensor, axis: Axis, mask: Mask | None = None, dtype: Format | None = None,
        keepdims: bool = False) -> NkiTensor:
    """The mean of squares of what is left without the mean."""
    off = binary(_op("subtract"), x, mean(x, axis, mask, "float32", True), mask, dtype="float32")
    return mean(unary(_op("square"), off, mask, dtype="float32"), axis, mask, dtype or x.dtype, keepdims)


def prod(x: NkiTensor, axis: Axis, mask: Mask | None = None, dtype: Format | None = None,
         keepdims: bool = False) -> NkiTensor:
    return reduced(_op("multiply"), x, axis, mask, dtype, keepdims)


def all(x: NkiTensor, axis: Axis, mask: Mask | None = None, dtype: Format | None = None) -> NkiTensor:
    return reduced(_op("logical_and"), x, axis, mask, dtype)


def any(x: NkiTensor, axis: Axis, mask: Mask | None = None, dtype: Format | None = None) -> NkiTensor:
    return reduced(_op("logical_or"), x, axis, mask, dtype)


def _in_float32(function: str, compute_dtype: Format | None) -> None:
    """Refuses another format of what is computed between: its numbers are not known."""
    if compute_dtype is not None and dtypes.of(compute_dtype) != dtypes.of("float32"):
        raise _core.Error(f"nl.{function} computes in float32; what it gives with compute_dtype="
                          f"{dtypes.of(compute_dtype)} is not known")


def softmax(x: NkiTensor, axis: Axis = -1, mask: Mask | None = None, dtype: Format | None = None,
            compute_dtype: Format | None = None, **_: Any) -> NkiTensor:
    """tensor_reduce(max, negate), activation(exp, bias), tensor_reduce(add), reciprocal, multiply."""
    _in_float32("softmax", compute_dtype)
    box = engine_box(mask, tuple(x.shape))
    top = reduced(_op("maximum"), x, axis, box, "float32", True, True)
    if _axes(x, axis) == list(range(1, x.ndim)):
        wide = result(x.shape, "float32", lambda dst: isa.activation(cut(dst, box), "exp", cut(x, box), bias=cut(
            top.reshaped((x.shape[0], 1)), box and box[:1])), box=box)
    else:
        wide = unary(_op("exp"), binary(_op("add"), x, top, box, dtype="float32"), box)
    total = reduced(_op("add"), wide, axis, box, "float32", True)
    return binary(_op("multiply"), wide, unary(_op("reciprocal"), total), box, dtype=dtype or x.dtype)


def rms_norm(x: NkiTensor, w: Operand, axis: Axis, n: float, epsilon: float = 1e-6, mask: Mask | None = None,
             dtype: Format | None = None, compute_dtype: Format | None = None, **_: Any) -> NkiTensor:
    """square, tensor_reduce(add), multiply and add, rsqrt, multiply, multiply."""
    _in_float32("rms_norm", compute_dtype)
    squares = reduced(_op("add"), unary(_op("square"), x, mask, dtype="float32"), axis, mask, "float32", True)
    scaled = binary(_op("add"), binary(_op("multiply"), squares, 1.0 / n), float(epsilon))
    scaled = binary(_op("multiply"), x, unary(_op("rsqrt"), scaled), mask, dtype="float32")
    return binary(_op("multiply"), scaled, w, mask, dtype or x.dtype)


def layer_norm(x: NkiTensor, gamma: Operand | None = None, beta: Operand | None = None, axis: Axis = -1,
               epsilon: float = 1e-5, mask: Mask | None = None, dtype: Format | None = None, **_: Any) -> NkiTensor:
    """The mean taken off, over the root of the variance."""
    off = binary(_op("subtract"), x, mean(x, axis, mask, "float32", True), mask, dtype="float32")
    spread = mean(unary(_op("square"), off, mask, dtype="float32"), axis, mask, "float32", True)
    root = unary(_op("rsqrt"), binary(_op("add"), spread, float(epsilon)))
    out = binary(_op("multiply"), off, root, mask, dtype="float32")
    out = out if gamma is None else binary(_op("multiply"), out, gamma, mask, dtype="float32")
    return binary(_op("add"), out, beta if beta is not None else 0.0, mask, dtype or x.dtype)
