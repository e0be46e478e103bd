"""An operator by whatever it is called: a handle of nki.language, a name, NumPy's function.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

from . import _core, functions
from .handle import Operator

Op = Union[Operator, str, Callable[..., Any]]
ALL = {name: op for name, op in vars(functions).items() if isinstance(op, Operator) and not op.reduction}
# What NumPy and older kernels call them; composites (divide, ...) have no number.
_SAME = {"max": "maximum", "min": "minimum", "amax": "maximum", "amin": "minimum", "sum": "add", "mult": "multiply",
         "absolute": "abs", "true_divide": "divide", "identity": "copy", "logistic": "sigmoid", "arctan2": "arctan",
         "right_shift_logical": "right_shift", "left_shift_logical": "left_shift", "logical_shift_right": "right_shift",
         "logical_shift_left": "left_shift", "is_equal": "equal", "pow": "power", "negative": "negative",
         "power": "power", "invert": "invert", "bitwise_not": "invert"}


def named(op: Op) -> Operator:
    """The handle of an operator, whoever made it: nki's, NumPy's, a name."""
    if isinstance(op, Operator):
        return op
    name = op if isinstance(op, str) else str(getattr(op, "__name__", op))
    name = _SAME.get(name, name)
    if name not in ALL:
        raise _core.Error(f"{op!r} is no operator of nki.language")
    return ALL[name]


def alu(op: Op | None) -> int | None:
    """Its number for the Vector and GpSimd engines; None stays None."""
    if op is None:
        return None
    number = op.alu if type(op) is Operator else named(op).alu
    if number is None:
        raise _core.Error(f"{named(op).name} is no operator of the Vector engine")
    return number


def act(op: Op) -> int:
    """Its number for the Scalar engine."""
    number = op.act if type(op) is Operator else named(op).act
    if number is None:
        raise _core.Error(f"{named(op).name} is no function of the Scalar engine")
    return number
