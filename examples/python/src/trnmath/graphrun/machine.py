"""The two machines that run a graph: Exact, float64 without roundings to formats, and Engines, Trainium's.

Both have the same calls, so that an operation is written once: apply (elementwise), product, fold (reductions), settle
(the result's format). SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import trnmath
from numpy.typing import NDArray

from . import formats
from .graph import Op, Shape, Trouble
from .special import bessel_i1e, digamma, each, erf_inv

Array = NDArray[Any]
CASTS = {"bf16": "bfloat16", "fp16": "float16", "tf32": "tfloat32", "fp8_e4m3": "float8_e4m3"}  # neuronx-cc's words


# ---- elementwise, in whatever the arrays are ----

def _logistic(x: Array) -> Array:
    small = np.exp(-abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def _away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


def _sign(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _bits(x: Array) -> int:
    return 8 * x.dtype.itemsize


def _popcnt(x: Array) -> Array:
    return np.unpackbits(np.ascontiguousarray(x)[..., None].view(np.uint8), axis=-1).sum(-1).astype(x.dtype)


def _leading_zeros(x: Array) -> Array:
    whole, found = x.view(f"u{x.dtype.itemsize}"), np.full(x.shape, _bits(x), np.int64)
    for n in range(_bits(x)):
        found = np.where(whole >> np.array(n, whole.dtype) != 0, _bits(x) - 1 - n, found)
    return found.astype(x.dtype)


def _divide(x: Array, y: Array) -> Array:
    """Whole numbers are cut towards zero."""
    if x.dtype.kind not in "iu":
        return x / y
    safe = np.where(y == 0, 1, y)
    quotient = np.where((x % safe != 0) & ((x < 0) != (safe < 0)), x // safe + 1, x // safe)
    return np.where(y == 0, np.array(-1).astype(x.dtype), quotient).astype(x.dtype)


def _remainder(x: Array, y: Array) -> Array:
    """The sign is the first one's; a whole number over 0 leaves all of it."""
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y).astype(y.dtype)))


def _shift(how: Callable[[Array, Array], Array], beyond: Callable[[Array], Array | int]) -> Callable[[Array, Array], Array]:
    def shifted(x: Array, by: Array) -> Array:
        inside = (by >= 0) & (by < _bits(x))
        return np.where(inside, how(x, np.where(inside, by, 0).astype(by.dtype)), beyond(x)).astype(x.dtype)
    return shifted


def _logical(x: Array, by: Array) -> Array:
    return (x.view(f"u{x.dtype.itemsize}") >> by.view(f"u{by.dtype.itemsize}")).view(x.dtype)


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    positive = np.power(x, np.where(y < 0, 0, y))
    return np.where(y < 0, np.where(x == 1, 1, np.where(x == -1, np.where(y % 2, -1, 1), 0)), positive).astype(x.dtype)


def _rsqrt(x: Array) -> Array:
    return np.array(1, x.dtype) / np.sqrt(x)


UNARY: dict[str, Callable[[Array], Array]] = {
    "negate": np.negative, "abs": np.abs, "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log,
    "log_plus_one": np.log1p, "tanh": np.tanh, "logistic": _logistic, "sine": np.sin, "cosine": np.cos, "tan": np.tan,
    "sqrt": np.sqrt, "rsqrt": _rsqrt, "cbrt": np.cbrt, "floor": np.floor, "ceil": np.ceil, "sign": _sign,
    "round_nearest_even": np.rint, "round_nearest_afz": _away, "not": np.invert, "popcnt": _popcnt,
    "count_leading_zeros": _leading_zeros, "erf": each(math.erf), "erfc": each(math.erfc), "erf_inv": erf_inv,
    "lgamma": each(math.lgamma), "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "digamma": digamma, "bessel_i1e": bessel_i1e, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "square": np.square}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": _divide, "maximum": np.maximum,
    "minimum": np.minimum, "power": _power, "remainder": _remainder, "atan2": np.arctan2, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "shift_left": _shift(np.left_shift, lambda x: 0),
    "shift_right_logical": _shift(_logical, lambda x: 0), "next_after": np.nextafter,
    "shift_right_arithmetic": _shift(np.right_shift, lambda x: np.where(x < 0, -1, 0))}
FOLDS: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and,
         "or": np.bitwise_or, "xor": np.bitwise_xor}
COMPARE: dict[str, Any] = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}


def plain(kind: str, arrays: list[Array]) -> Array:
    """An elementwise operation by NumPy, in the arrays' own precision."""
    with np.errstate(all="ignore"):
        if kind in UNARY and len(arrays) == 1:
            return UNARY[kind](arrays[0])
        if kind in BINARY and len(arrays) == 2:
            return BINARY[kind](*arrays)
    raise Trouble(f"{kind} of {len(arrays)} operands is not known here")


# ---- float64 ----

_BLOCK = 1 << 22  # elements that are widened at a time


class Exact:
    """What the graph means: float64 (complex128) where it has floats, whole numbers as they are. What nothing has been
    done to yet stays in float32, so that weights lie in memory once; it is widened where something is done."""

    wide = True

    def apply(self, kind: str, arrays: list[Array], op: Op) -> Array:
        """An elementwise operation."""
        return plain(kind, arrays)

    def product(self, a: Array, b: Array, op: Op, given: tuple[str, str]) -> Array:
        """[M, K] @ [K, N]; given: formats of both."""
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        rows, made = max(_BLOCK // max(a.shape[1], 1), 1), np.empty((a.shape[0], b.shape[1]), wide)
        columns = rows if b.dtype != wide else max(b.shape[1], 1)
        rows = rows if a.dtype != wide else max(a.shape[0], 1)
        with np.errstate(all="ignore"):
            for m in range(0, a.shape[0], rows):
                left = a[m:m + rows].astype(wide, copy=False)
                for n in range(0, b.shape[1], columns):
                    made[m:m + rows, n:n + columns] = left @ b[:, n:n + columns].astype(wide, copy=False)
        return made

    def fold(self, kind: str, x: Array, op: Op) -> Array:
        """Along the last axis."""
        if kind in ("and", "or") and x.dtype == np.bool_:
            return x.all(-1) if kind == "and" else x.any(-1)
        return FOLDS[kind].reduce(x, -1, dtype=x.dtype)

    def settle(self, x: Array, shape: Shape, op: Op) -> Array:
        """The result."""
        kept = x.dtype in (np.float32, np.complex64) and (op.kind in MOVES or op.kind == "custom_call")
        return x if kept else formats.settled(x, shape, True)


# ---- the engines ----

@dataclass(frozen=True)
class Settings:
    """auto_cast, auto_cast_type: neuronx-cc's (none, matmult, all; bf16, fp16, tf32, fp8_e4m3). fp8_products: every
    product of floats in FP8 (matmult-to-fp8). stochastic: results narrower than FP32 are rounded so, by this seed."""

    auto_cast: str = "none"
    auto_cast_type: str = "bf16"
    fp8_products: bool = False
    stochastic: int | None = None
    generation: Any = 2
    numerics: str | None = None
    system: str = "trn2.48xlarge"

    def words(self) -> str:
        """As a person would type them."""
        said = [f"--auto-cast {self.auto_cast}"] + [f"--auto-cast-type {self.auto_cast_type}"] * (self.auto_cast != "none")
        said += ["--matmult-to-fp8"] * self.fp8_products + ["--stochastic-rounding"] * (self.stochastic is not None)
        said += [f"--numerics {self.numerics}"] * (self.numerics is not None)
        return " ".join(said)


_TABLES = {"exponential": "exp", "tanh": "tanh", "logistic": "sigmoid", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt",
           "erf": "erf", "gelu": "gelu", "gelu_dx": "gelu_dx", "gelu_apprx_tanh": "gelu_apprx_tanh", "silu": "silu",
           "softplus": "softplus", "mish": "mish"}


class Engines:
    """TensorE for products, the Scalar engine's tables for its functions, FP32 for the rest; each result is rounded
    once to its format. Sums go in order in FP32 (assumed: one partition's free axis from its beginning)."""

    wide = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def apply(self, kind: str, arrays: list[Array], op: Op) -> Array:
        """An elementwise operation: floats in FP32, or float64 where the graph has that."""
        if arrays[0].dtype != np.float32:
            return plain(kind, arrays)
        if kind in _TABLES:
            return self._table(_TABLES[kind], arrays[0])
        if kind in ("sine", "cosine"):  # the table ends at pi: whole turns are taken off first (assumed)
            x = arrays[0] + np.float32(math.pi / 2) if kind == "cosine" else arrays[0]
            turns = np.rint(x / np.float32(2 * math.pi))
            return self._table("sin", x - turns * np.float32(6.28125) - turns * np.float32(2 * math.pi - 6.28125))
        return plain(kind, arrays)

    def _table(self, name: str, x: Array) -> Array:
        whole = np.ascontiguousarray(x).reshape(-1)  # (a scalar too)
        if whole.size == 0:
            return x
        return trnmath.activation(whole, name, generation=self.settings.generation).reshape(x.shape)

    def product(self, a: Array, b: Array, op: Op, given: tuple[str, str]) -> Array:
        """By the Tensor engine. Operands of whole numbers, float64 or complex are NumPy's: it has no rows for them."""
        if a.dtype != np.float32 or b.dtype != np.float32:
            with np.errstate(all="ignore"):
                return a @ b
        if 0 in (a.shape[0], a.shape[1], b.shape[1]):
            return np.zeros((a.shape[0], b.shape[1]), np.float32)
        pair = [self._operand(x, name) for x, name in zip((a, b), given)]
        return trnmath.matmul(*pair, generation=self.settings.generation, numerics=self.settings.numerics)

    def _operand(self, x: Array, name: str) -> Any:
        """The numbers in the format that the array reads; columns that lie one after the other go on doing so."""
        if x.flags.f_contiguous and not x.flags.c_contiguous:
            made = self._operand(x.T, name)
            return (made[0].T, made[1]) if isinstance(made, tuple) else made.T
        settings, x = self.settings, np.ascontiguousarray(x)
        if settings.fp8_products:
            called = "float8_e4m3"
        elif name == "f32":
            called = CASTS[settings.auto_cast_type] if settings.auto_cast != "none" else "float32"
        else:
            called = str(formats.FLOATS[name][1])
        if called == "float8_e4m3fn":  # no format of the array's: its numbers up to 240 are
            called = "float8_e4m3"
        if called == "float32":
            return x
        if called == "tfloat32":
            return (trnmath.convert(x, "tfloat32"), "tfloat32")
        made = trnmath.convert(x, called)
        return made if called == "float16" else (made, called)

    def fold(self, kind: str, x: Array, op: Op) -> Array:
        """Along the last axis: floats one after the other."""
        if kind in ("and", "or") and x.dtype == np.bool_:
            return x.all(-1) if kind == "and" else x.any(-1)
        if x.dtype != np.float32 or kind in ("maximum", "minimum") or x.shape[-1] == 0:
            return FOLDS[kind].reduce(x, -1, dtype=x.dtype)
        with np.errstate(all="ignore"):
            return FOLDS[kind].accumulate(x, -1)[..., -1].copy()

    def settle(self, x: Array, shape: Shape, op: Op) -> Array:
        """The result, rounded once to its format."""
        name, settings = shape.format, self.settings
        x = formats.settled(x, shape, False)
        if not formats.is_float(name) or op.kind in MOVES:
            return x
        seed = None if settings.stochastic is None else settings.stochastic + op.line
        if name == "f32" and settings.auto_cast == "all":
            return self._cast(x, seed)
        return formats.rounded(x, name, None if name == "f32" else seed)

    def _cast(self, x: Array, seed: int | None) -> Array:
        called = CASTS[self.settings.auto_cast_type]
        if called == "tfloat32":
            return trnmath.convert(np.ascontiguousarray(x), "tfloat32").reshape(x.shape)
        name = next(n for n, row in formats.FLOATS.items() if row[1] == called)
        return formats.rounded(x, name, seed)


# What moves numbers, and rounds none.
MOVES = frozenset("reshape transpose broadcast_in_dim slice dynamic_slice dynamic_update_slice concatenate reverse gather "
                  "select tuple get_tuple_element move optimization_barrier constant iota bitcast_convert pad clamp sort "
                  "all_gather all_to_all collective_permute collective_broadcast maximum minimum abs negate".split())
