"""Functions of nki.language that no engine has in one instruction, each made of several. Intermediate values are
binary32; results are cast once, at the end.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import isa
from .arithmetic import binary, unary
from .masks import Mask, cut, engine_box
from .moves import copy, loaded
from .operators import ALL
from .results import result
from .tensor import Format, NkiTensor


def _op(name: str, *args: NkiTensor, dtype: Format = "float32") -> NkiTensor:
    return binary(ALL[name], args[0], args[1], dtype=dtype) if len(args) > 1 else unary(ALL[name], args[0], dtype=dtype)


def _nearest(x: NkiTensor) -> NkiTensor:
    """The nearest integer, ties to even, of |x| < 2^31: a cast to int32 and back."""
    return copy(copy(x, dtype="int32"), dtype="float32")


def floor(x: NkiTensor, dtype: Format) -> NkiTensor:
    """tensor_copy to int32 and back, tensor_tensor(greater), tensor_tensor(subtract). For |x| < 2^31."""
    near = _nearest(x)
    return _op("subtract", near, _op("greater", near, x), dtype=dtype)


def ceil(x: NkiTensor, dtype: Format) -> NkiTensor:
    """tensor_copy to int32 and back, tensor_tensor(less), tensor_tensor(add). For |x| < 2^31."""
    near = _nearest(x)
    return _op("add", near, _op("less", near, x), dtype=dtype)


def trunc(x: NkiTensor, dtype: Format) -> NkiTensor:
    """activation(abs), the floor of it, times activation(sign). For |x| < 2^31."""
    return _op("multiply", floor(_op("abs", x), "float32"), _op("sign", x), dtype=dtype)


def tan(x: NkiTensor, dtype: Format) -> NkiTensor:
    """activation(sin), of x and of x + pi/2, reciprocal, tensor_tensor(multiply). sin's table holds up to pi."""
    return _op("multiply", _op("sin", x), _op("reciprocal", _op("cos", x)), dtype=dtype)


FUNCTIONS: dict[str, Callable[[NkiTensor, Format], NkiTensor]] = {
    "floor": floor, "ceil": ceil, "trunc": trunc, "tan": tan}


def composed(name: str, x: Any, mask: Mask = None, dtype: Format = None) -> NkiTensor:
    """One of FUNCTIONS; of a mask's part alone."""
    box = engine_box(mask, tuple(x.shape))
    x = loaded(x, box)
    made = FUNCTIONS[name](cut(x, box), dtype or x.dtype)
    if box is None:
        return made
    return result(x.shape, made.dtype, lambda dst: isa.tensor_copy(cut(dst, box), made), box=box)
