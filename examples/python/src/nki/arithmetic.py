"""Operators on tiles: x + y, nl.exp(x), nl.where.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

from . import _core, dtypes, isa, operators
from ._numpy import np
from .formats import DType
from .handle import Operator
from .masks import Box, Mask, cut, engine_box, whole_box
from .memories import PSUM
from .moves import Sum, alike, copy, flat, full, loaded, put
from .operators import Op
from .results import Emit, onto, result
from .tensor import Format, NkiTensor
from .tiles import tile
from .warned import lost

FLOATS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3", "float8_e4m3fn", "float8_e3m4")


def promoted(*values: Any) -> DType:
    """The format of a result: of the operands' the widest; float32 where they differ in kind."""
    names = [v.dtype for v in values if isinstance(v, NkiTensor)]
    floats = [n for n in names if n in FLOATS]
    if not floats:
        return max(names, key=lambda n: n.itemsize)
    if len(set(floats)) > 1 and {"bfloat16", "float16"} <= set(floats):
        return dtypes.of("float32")
    return min(floats, key=FLOATS.index)


_UNARY = {"negative": ("multiply", -1.0)}
_TURNS = {"sin": 0.0, "cos": 1.5707963267948966}
_EXACT = 400000.0  # fewer than 2^16 turns
_WHOLE = 12582912.0  # 1.5 x 2^23: adding it to a float32 rounds to an integer


def unary(op: Operator, x: Any, mask: Mask | None = None, dtype: Format | None = None) -> NkiTensor:
    """activation, or tensor_scalar for what only the Vector engine has."""
    box = engine_box(mask, tuple(x.shape))
    x = loaded(x, box)
    emit = _unary(op, x, box)
    if emit is None:
        raise _core.Error(f"nl.{op.name}: no engine has it")
    return result(x.shape, dtype or x.dtype, emit, box=box)


def _unary(op: Operator, x: NkiTensor, box: Box | None) -> Emit | None:
    """How a result is filled; None: by no instruction."""
    name = op.name
    if name == "reciprocal":
        return lambda dst: isa.reciprocal(cut(dst, box), cut(x, box))
    if name in _UNARY:
        alu, number = _UNARY[name]
        return lambda dst: isa.tensor_scalar(cut(dst, box), cut(x, box), alu, number)
    if name in _TURNS:
        return lambda dst: _turned(name, cut(dst, box), cut(x, box))
    if name == "arctan":
        return lambda dst: _arctan(cut(dst, box), cut(x, box))
    if name == "copy":
        return lambda dst: isa.tensor_copy(cut(dst, box), cut(x, box))
    if op.act is not None:
        return lambda dst: isa.activation(cut(dst, box), op, cut(x, box))
    if op.alu is None:
        return None
    return lambda dst: isa.tensor_scalar(cut(dst, box), cut(x, box), name, 0.0)


def _turned(name: str, dst: NkiTensor, x: NkiTensor) -> None:
    """The sine of x or x + pi/2, whole turns taken off first, as NKI's pages say of nl.sin: the table holds [-pi, pi].
    A turn is 6.28125, of 8 bits, and a rest: products of the first by fewer than 2^16 turns are exact."""
    further = _TURNS[name]
    lost(name, "an argument", x, _EXACT)
    turns, rest = tile(x.shape, "float32"), tile(x.shape, "float32")
    isa.tensor_scalar(turns, x, "add", further, op1="multiply", operand1=0.15915494309189535)
    isa.tensor_scalar(turns, turns, "add", _WHOLE, op1="subtract", operand1=_WHOLE)
    isa.scalar_tensor_tensor(rest, turns, "multiply", -6.28125, "add", x)
    isa.scalar_tensor_tensor(rest, turns, "multiply", -0.0019353071795864769, "add", rest)
    isa._within(dst, "sin", rest, full((x.shape[0], 1), further, "float32") if further else None)


def _arctan(dst: NkiTensor, x: NkiTensor) -> None:
    """arctan(x), whose table holds [-pi/2, pi/2]; beyond, sign(x) pi/2 - arctan(1/x)."""
    size, far, other = (tile(x.shape, kind) for kind in ("float32", "uint8", "float32"))
    near = tile(x.shape, "float32")
    isa.activation(size, "abs", x)
    isa.tensor_scalar(far, size, "greater", 1.5707963267948966)
    isa.tensor_scalar(size, size, "maximum", 1.0)
    isa.reciprocal(size, size)
    isa.activation(other, "arctan", size, scale=-1.0)
    isa.tensor_scalar(other, other, "add", 1.5707963267948966)
    isa.activation(size, "sign", x)
    isa.tensor_tensor(other, other, size, "multiply")
    isa._within(near, "arctan", x)
    isa.tensor_copy_predicated(near, other, far)
    isa.tensor_copy(dst, near)


def binary(op: Operator, x: Any, y: Any, mask: Mask | None = None, dtype: Format | None = None) -> NkiTensor:
    """tensor_tensor; tensor_scalar where one is a number or [P, 1]."""
    if op.name == "divide":
        return _divided(x, y, mask, dtype)
    x, y = (loaded(v, mask if v is x or getattr(v, "shape", None) == getattr(x, "shape", None) else None)
            for v in (x, y))
    if not isinstance(x, NkiTensor):
        return _with_scalar(op, y, x, True, mask, dtype)
    if not isinstance(y, NkiTensor):
        return _with_scalar(op, x, y, False, mask, dtype)
    to = dtype or promoted(x, y)
    if _is_column(y, x):
        return _with_scalar(op, x, y, False, mask, to)
    if _is_column(x, y):
        return _with_scalar(op, y, x, True, mask, to)
    if x.shape != y.shape and x.size == y.size and x.shape[0] == y.shape[0]:
        x, y = flat(x), flat(y)
    shape = tuple(np.broadcast_shapes(x.shape, y.shape))
    x, y = alike(x, shape), alike(y, shape)
    if x.space == PSUM == y.space:  # an instruction reads one of them
        y = copy(y)
    box = engine_box(mask, shape)
    return result(shape, to, lambda dst: isa.tensor_tensor(cut(dst, box), cut(x, box), cut(y, box), op), box=box)


def _is_column(y: NkiTensor, x: NkiTensor) -> bool:
    return y.shape[0] == x.shape[0] and y.size == y.shape[0] and x.size != x.shape[0]


def _with_scalar(op: Operator, x: NkiTensor, number: Any, reverse: bool, mask: Mask, dtype: Format) -> NkiTensor:
    box = engine_box(mask, tuple(x.shape))
    if isinstance(number, NkiTensor):
        number = number.reshaped((number.shape[0], 1))
        if number.dtype in FLOATS and number.dtype != "float32":  # the engines take a column in binary32
            number = copy(number, dtype="float32")
        shape = x.shape if x.ndim >= number.ndim else number.shape
    else:
        number, shape = float(number), x.shape

    def emit(dst: NkiTensor) -> None:
        isa.tensor_scalar(cut(dst, box), cut(x, box), op, cut(number, box and box[:1]), reverse)
    return result(shape, dtype or x.dtype, emit, box=box)


def _divided(x: Any, y: Any, mask: Mask, dtype: Format) -> NkiTensor:
    """reciprocal, then multiply."""
    multiply = operators.ALL["multiply"]
    if not isinstance(y, NkiTensor):
        return binary(multiply, x, 1.0 / y, mask, dtype)
    inverse = unary(operators.ALL["reciprocal"], y, dtype="float32")
    return binary(multiply, x, inverse, mask, dtype or promoted(*(v for v in (x, y) if isinstance(v, NkiTensor))))


def _truth(condition: NkiTensor) -> NkiTensor:
    """1 and 0 as tensor_copy_predicated takes them: tensor_scalar(not_equal, 0) where they are of another format."""
    if condition.dtype in ("uint8", "uint16", "uint32"):
        return condition
    return binary(operators.ALL["not_equal"], condition, 0.0, dtype="uint8")


def where(condition: NkiTensor, x: Any, y: Any, mask: Mask | None = None, dtype: Format | None = None) -> NkiTensor:
    """tensor_copy of y, then tensor_copy_predicated of x; before both the condition as uint8, if it is none."""
    x, y = (loaded(v) for v in (x, y))
    condition = _truth(loaded(condition))
    tiles = [v for v in (x, y) if isinstance(v, NkiTensor)]
    shape = tuple(np.broadcast_shapes(condition.shape, *(v.shape for v in tiles if v.size != condition.size)))
    condition = alike(condition, shape)
    to = dtype or (promoted(*tiles) if tiles else "float32")

    def emit(dst: NkiTensor) -> None:
        put(dst, alike(y, shape) if isinstance(y, NkiTensor) else float(y))
        if isinstance(x, NkiTensor):
            same = x if x.dtype == dst.dtype else copy(x, dtype=dst.dtype)
            isa.tensor_copy_predicated(dst, alike(same, shape), condition)
        else:
            isa.tensor_copy_predicated(dst, float(x), condition)
    return result(shape, to, emit, box=whole_box(mask, shape))


class LoopSum(Sum):
    """nl.loop_reduce: what a loop adds up in SBUF, or its largest, ..."""

    def __init__(self, op: Op, value: Any, mask: Mask | None = None) -> None:
        self.op, self.value, self.mask = operators.named(op), value, mask

    def add_to(self, place: NkiTensor) -> None:
        place.core.settle()
        if place.blank:
            return onto(copy(loaded(self.value, self.mask), self.mask, place.dtype), place)
        onto(binary(self.op, place, self.value, self.mask, place.dtype), place)


def loop_reduce(x: Any, op: Op, loop_indices: Any, dtype: Format | None = None, mask: Mask | None = None,
                name: str | None = None) -> LoopSum:
    """dst = dst op x, once for each turn of the loop: tensor_tensor onto dst, which holds what the loop begins with; a
    dst that nothing has written becomes x in the first turn, by tensor_copy."""
    return LoopSum(op, x, mask)
