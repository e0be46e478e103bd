"""Functions of nki.language that no engine has in one instruction, each made of several. Intermediate values are
binary32; results are cast once, at the end.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import isa
from .arithmetic import binary, promoted, unary
from .masks import Mask, cut, engine_box
from .moves import copy, full, loaded
from .operators import ALL
from .results import result
from .tensor import Format, NkiTensor
from .warned import lost


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
    """The sine and the cosine, reciprocal, tensor_tensor(multiply)."""
    return _op("multiply", _op("sin", x), _op("reciprocal", _op("cos", x)), dtype=dtype)


FUNCTIONS: dict[str, Callable[[NkiTensor, Format], NkiTensor]] = {
    "floor": floor, "ceil": ceil, "trunc": trunc, "tan": tan}


def remainder(name: str, x: Any, y: Any, mask: Mask = None, dtype: Format = None) -> NkiTensor:
    """x - n y, of whole n: nl.mod has the sign of y, nl.fmod that of x. Where the quotient's rounding made n one too
    large or too small, y is put back or taken off once more. n y rounds: off by at most x 2^-24 where it is no number of
    float32; a warning tells of quotients beyond 2^23, which keep no fraction."""
    like = x if isinstance(x, NkiTensor) else y
    x, y = (v if isinstance(v, NkiTensor) else full((like.shape[0], 1), v, "float32") for v in (x, y))
    quotient, whole = _op("divide", x, y), floor if name == "mod" else trunc
    lost(name, "a quotient", quotient, 8388608.0)
    rest = _op("subtract", x, _op("multiply", whole(quotient, "float32"), y))
    step = y if name == "mod" else _op("multiply", _op("abs", y), _op("sign", x))
    zero = full((like.shape[0], 1), 0.0, "float32")
    rest = _op("add", rest, _op("multiply", _op("less", _op("multiply", rest, step), zero), step))
    over = _op("greater_equal", _op("abs", rest), _op("abs", y))
    to = promoted(x, y) if dtype is None else dtype
    return binary(ALL["subtract"], rest, _op("multiply", over, step), mask, to)


def composed(name: str, x: Any, mask: Mask = None, dtype: Format = None) -> NkiTensor:
    """One of FUNCTIONS; of a mask's part alone."""
    box = engine_box(mask, tuple(x.shape))
    x = loaded(x, box)
    made = FUNCTIONS[name](cut(x, box), dtype or x.dtype)
    if box is None:
        return made
    return result(x.shape, made.dtype, lambda dst: isa.tensor_copy(cut(dst, box), made), box=box)
