"""One core: conversions, products, their tolerances, functions of the Scalar engine.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes as C
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import Array, Format, Operand, at, operand, optional, result, shape_of
from ._library import Common, Error, call, options, real, text

if TYPE_CHECKING:
    from typing_extensions import Unpack


def convert(x: Array, to: Format | None = None, out: Array | None = None, **more: Unpack[Common]) -> NDArray[Any]:
    """The numbers of x, of any shape, in another format, each rounded once; a result of the same shape. Options:
    rounding, saturate, seed, stream, sr_bits. Error: `to` is no format, or out has another shape."""
    source = operand("x", x)
    target, array = result(out, to, shape_of(source))
    call("convert", at("out", target, True), at("x", source), options(**more))
    return array


def _product(a: Array, b: Array, out: Array | None, to: Format | None, a_scale: Array | None,
             b_scale: Array | None) -> tuple[list[Any], Any, tuple[int, ...]]:
    """What a call about a @ b passes, the array of the result, and its shape."""
    left, right = operand("a", a), operand("b", b)
    if left.array.ndim != 2 or right.array.ndim != 2:
        raise Error(f"a and b: expected two axes each, not {left.array.ndim} and {right.array.ndim}")
    shape = (shape_of(left)[0], shape_of(right)[1])
    target, array = result(out, to, shape, "float32")
    scales = [optional("a_scale", a_scale, "float8_e8m0fnu"), optional("b_scale", b_scale, "float8_e8m0fnu")]
    return [at("out", target, True), at("a", left), at("b", right), at("a_scale", scales[0]),
            at("b_scale", scales[1])], array, shape


def matmul(a: Array, b: Array, out: Array | None = None, to: Format | None = None, a_scale: Array | None = None,
           b_scale: Array | None = None, **more: Unpack[Common]) -> NDArray[Any]:
    """a [M, K] @ b [K, N] as the Tensor engine computes it: [M, N], float32 unless `to` or `out` says otherwise,
    rounded once at the end. MX operands come with uint8 scales [M, K/32] and [N, K/32]. Options: all common ones,
    accumulate (out += a @ b), double_row. Error: shapes or formats that cannot meet."""
    views, array, _ = _product(a, b, out, to, a_scale, b_scale)
    call("matmul", *views, options(**more))
    return array


def tolerance(a: Array, b: Array, out: Array | None = None, to: Format | None = None, a_scale: Array | None = None,
              b_scale: Array | None = None,
              **more: Unpack[Common]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """How far each element of what matmul returns for the same arguments may be from the exact product, and how far it
    usually is: (worst, sigma), float32 [M, N] each, in the numbers' own unit, by the roundings of these numerics. out
    is read under accumulate. Error: as matmul, and products of integers, which are exact."""
    views, _, shape = _product(a, b, out, to, a_scale, b_scale)
    worst, sigma = np.empty(shape, np.float32), np.empty(shape, np.float32)
    call("tolerance", at("worst", Operand(worst, None)), at("sigma", Operand(sigma, None)), *views, options(**more))
    return worst, sigma


def activation(x: Array, function: str, out: Array | None = None, to: Format | None = None, scale: float = 1.0,
               bias: float = 0.0, **more: Unpack[Common]) -> NDArray[Any]:
    """function(scale x + bias) by the Scalar engine's tables, for instance "exp", "gelu_apprx_tanh", "reciprocal"
    (activations() lists them). The shape of x; float32 unless `to` or `out` says otherwise. Error: no such function, or
    a scale of 0."""
    source = operand("x", x)
    target, array = result(out, to, shape_of(source), "float32")
    call("activation", at("out", target, True), at("x", source), text(function), C.c_float(real("scale", scale)),
         C.c_float(real("bias", bias)), options(**more))
    return array
