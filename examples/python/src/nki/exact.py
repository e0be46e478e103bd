"""What operators and functions are in real arithmetic, for tolerances: NumPy in binary64, one row per name.

ALU[name](x, y) are the operators of the Vector and GpSimd engines, UNARY those of one operand, ACTIVATION[name](x) the
functions of the Scalar engine. Names are those of nki.language. KEEPS: operators whose result is one of their operands
or a whole number, so that nothing is rounded before the cast.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    return np.asarray(_erf(x), np.float64)


def sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def _phi(x: Array) -> Array:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _cdf(x: Array) -> Array:
    return (1 + erf(x / math.sqrt(2))) / 2


def _sigmoid_dx(x: Array, slope: float) -> Array:
    s = sigmoid(slope * x)
    return s * (1 + slope * x * (1 - s))


def _truth(function: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    return lambda x, y: function(x, y).astype(np.float64)


def _logical(function: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    return lambda x, y: function(x != 0, y != 0).astype(np.float64)


def _whole(function: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    """Of integers; nan where an operand is none."""
    def apply(x: Array, y: Array) -> Array:
        fits = np.isfinite(x) & np.isfinite(y) & (x == np.floor(x)) & (y == np.floor(y)) & (abs(x) < 2.0**62)
        a, b = (np.where(fits, v, 0).astype(np.int64) for v in (x, y))
        return np.where(fits, function(a, b), np.nan).astype(np.float64)
    return apply


ALU: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "max": np.maximum, "min": np.minimum, "fmod": np.fmod, "mod": np.mod,
    "average": lambda x, y: (x + y) / 2, "bypass": lambda x, y: x,
    "abs_max": lambda x, y: np.maximum(abs(x), abs(y)), "abs_min": lambda x, y: np.minimum(abs(x), abs(y)),
    "equal": _truth(np.equal), "not_equal": _truth(np.not_equal), "greater": _truth(np.greater),
    "greater_equal": _truth(np.greater_equal), "less": _truth(np.less), "less_equal": _truth(np.less_equal),
    "logical_and": _logical(np.logical_and), "logical_or": _logical(np.logical_or),
    "logical_xor": _logical(np.logical_xor),
    "bitwise_and": _whole(np.bitwise_and), "bitwise_or": _whole(np.bitwise_or), "bitwise_xor": _whole(np.bitwise_xor),
    "left_shift": _whole(lambda x, y: x << (y & 63)), "right_shift": _whole(lambda x, y: x >> (y & 63)),
}

# Of operators that are linear in each operand: what an operand's error is multiplied with, as its size; the last, the
# product of both errors.
SLOPES: dict[str, Callable[[Array, Array], tuple[Any, Any, float]]] = {
    "add": lambda x, y: (1.0, 1.0, 0.0), "subtract": lambda x, y: (1.0, 1.0, 0.0),
    "multiply": lambda x, y: (abs(y), abs(x), 1.0),
}

UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs, "square": np.square, "relu": lambda x: np.maximum(x, 0), "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x, "negative": np.negative,
    "logical_not": lambda x: (x == 0).astype(np.float64), "invert": lambda x: -x - 1,
}

KEEPS = frozenset({"bypass", "maximum", "minimum", "max", "min", "abs_max", "abs_min", "equal", "not_equal", "greater",
                   "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
                   "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "abs", "relu", "negative",
                   "invert", "copy", "sign"})

ACTIVATION: dict[str, Callable[[Array], Array]] = {
    "copy": lambda x: x, "identity": lambda x: x, "square": np.square, "sigmoid": sigmoid,
    "relu": lambda x: np.maximum(x, 0), "abs": np.abs, "sign": np.sign, "exp": np.exp, "log": np.log,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "sin": np.sin,
    "cos": np.cos, "arctan": np.arctan, "tanh": np.tanh, "erf": erf, "softplus": softplus,
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "mish": lambda x: x * np.tanh(softplus(x)), "silu": lambda x: x * sigmoid(x),
    "silu_dx": lambda x: _sigmoid_dx(x, 1.0),
    "gelu": lambda x: x * _cdf(x), "gelu_dx": lambda x: _cdf(x) + x * _phi(x),
    "gelu_apprx_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": lambda x: _sigmoid_dx(x, 1.702),
}

