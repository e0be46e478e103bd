"""Blocks with scales, and structured sparsity.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes as C
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._arrays import Array, Format, Operand, at, operand, optional, result, shape_of
from ._library import I64, Common, Error, call, format_name, format_number, listed, options, text, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

Rule = Literal["neuron", "ocp_floor", "round_up", "even", "ceil"]
_SCALE = "float8_e8m0fnu"


# ---- blocks of 32 with a power of two each ----

def _axis(axis: int, shape: tuple[int, ...]) -> int:
    """Counted from the back."""
    axis = whole("axis", axis)
    if not -len(shape) <= axis < len(shape):
        raise Error(f"axis {axis}: there are {len(shape)} axes")
    return axis if axis < 0 else axis - len(shape)


def mx_quantize(x: Array, to: Format = "float8_e4m3fn", axis: int = -1, rule: Rule = "neuron",
                out: Array | None = None, out_scale: Array | None = None,
                **more: Unpack[Common]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Blocks of 32 along `axis` with a power of two each: (codes, scales), of x [M, K] along the last axis: codes
    [M, K], scales uint8 [M, K/32] (ml_dtypes' where `to` is), 2^(scale - 127). rule: how a block's scale follows from
    its largest number; each element is rounded once, and saturates. Error: the axis is no multiple of 32."""
    source = operand("x", x)
    shape = shape_of(source)
    axis = _axis(axis, shape)
    scale_shape = tuple(n // 32 if i == len(shape) + axis else n for i, n in enumerate(shape))
    target, codes = result(out, to, shape)
    module = None if target.array.dtype.kind == "u" else sys.modules.get("ml_dtypes")  # whose dtype `to` was
    scale, scales = result(out_scale, getattr(module, _SCALE, _SCALE), scale_shape, what="out_scale")
    call("mx_quantize", at("out", target, True), at("out_scale", scale, True), at("x", source), text(rule), I64(axis),
         options(**more))
    return codes, scales


def mx_dequantize(codes: Array, scales: Array, to: Format | None = None, axis: int = -1,
                  out: Array | None = None) -> NDArray[Any]:
    """The numbers of such blocks: codes [M, K], ml_dtypes' or a pair (array, "format"), and scales [M, K/32], uint8,
    give [M, K], float32 (exact) unless `to` or `out` says otherwise (rounded once)."""
    source = operand("codes", codes)
    axis = _axis(axis, shape_of(source))
    target, array = result(out, to, shape_of(source), "float32")
    call("mx_dequantize", at("out", target, True), at("codes", source),
         at("scales", optional("scales", scales, _SCALE)), I64(axis))
    return array


def mx_to_sbuf(codes: Array, scales: Array, scale_offset: int = 0,
               slot_distance: int = 1) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """MX data as Trainium3's SBUF holds it: codes [K, M], a byte each, and scales [K/32, M] become x4 words [K/4, M],
    uint32 (uint16 of FP4), and a tile of scales [rows, M], uint8, whose other rows are 0. scale_offset: 0, 4, 8 or 12.
    slot_distance: how far apart in k the four slots of a word are. Error: K is no multiple of 32."""
    source, scale = operand("codes", codes), operand("scales", scales)
    if source.array.ndim != 2 or scale.array.ndim != 2:
        raise Error(f"codes and scales: expected two axes each, not {source.array.ndim} and {scale.array.ndim}")
    rows, columns = shape_of(source)
    narrow = source.name is not None and format_name(format_number(source.name)) == "float4_e2m1fn"
    words = np.zeros((rows // 4, columns), np.uint16 if narrow else np.uint32)
    blocks, offset = shape_of(scale)[0], whole("scale_offset", scale_offset)
    tile = np.zeros(((blocks - 1) // 4 * 32 + offset + (blocks - 1) % 4 + 1 if blocks else 0, columns), np.uint8)
    _sbuf(Operand(words, None), Operand(tile, _SCALE), source, Operand(scale.array, scale.name or _SCALE), offset,
          slot_distance, False)
    return words, tile


def mx_from_sbuf(words: Array, tile: Array, to: Format, scale_offset: int = 0,
                 slot_distance: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """The inverse: x4 words [K/4, M] and the tile of their scales give codes [K, M] of the format `to`, a byte each,
    and scales [K/32, M], uint8."""
    packed, scale = operand("words", words), operand("tile", tile)
    if packed.array.ndim != 2 or scale.array.ndim != 2:
        raise Error(f"words and tile: expected two axes each, not {packed.array.ndim} and {scale.array.ndim}")
    rows, columns = shape_of(packed)
    target, codes = result(None, to, (4 * rows, columns))
    back = np.empty((rows // 8, columns), np.uint8)
    _sbuf(packed, Operand(scale.array, scale.name or _SCALE), target, Operand(back, _SCALE), scale_offset,
          slot_distance, True)
    return codes, back


def _sbuf(words: Operand, tile: Operand, codes: Operand, scales: Operand, offset: int, distance: int,
          back: bool) -> None:
    call("mx_sbuf", at("words", words, not back), at("tile", tile, not back), at("codes", codes, back),
         at("scales", scales, back), I64(whole("scale_offset", offset)), I64(whole("slot_distance", distance)),
         I64(back))


def mx_fp4_to_fp8(codes: Array, to: Format = "float8_e4m3fn", table: Sequence[int] | None = None) -> NDArray[Any]:
    """FP4 codes of any shape as the FP8 codes ("float8_e4m3fn", "float8_e5m2") that Trainium3's multiplier sees. table:
    16 codes, one for each FP4 code; None: those of the same values."""
    source = operand("codes", codes)
    target, array = result(None, to, shape_of(source))
    codes16 = None if table is None else [whole("table", code) for code in listed("table", table)]
    if codes16 is not None and (len(codes16) != 16 or not all(0 <= code < 256 for code in codes16)):
        raise Error("table: expected 16 codes of 0 to 255")
    given = None if codes16 is None else (C.c_uint8 * 16)(*codes16)
    call("mx_fp4_to_fp8", at("out", target, True), at("codes", source), given)
    return array


# ---- m of every n along K ----

def _pattern(pattern: Any) -> tuple[int, int]:
    parts = str(pattern).split(":") if isinstance(pattern, str) else pattern
    try:
        m, n = (int(part) for part in parts)
    except (TypeError, ValueError):
        raise Error(f"pattern: expected m of n such as (4, 16), not {pattern!r}") from None
    if not 0 < m <= n <= 16:
        raise Error(f"pattern: there is no {m}:{n}")
    return m, n


def sparse_pack(x: Array, pattern: tuple[int, int] | str = (4, 16),
                prune: bool = False) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """x [M, K] with at most m nonzeros in every n along K: (values [M, K m/n] in the format of x, tags uint8 of the
    same shape, the places in the windows). pattern: 4:16 4:12 4:8 2:8 2:4 1:4 1:2. prune: keep the m largest magnitudes
    of a window instead of refusing one with more. Error: a window with too many, or K is no multiple of n."""
    source = operand("x", x)
    m, n = _pattern(pattern)
    if source.array.ndim != 2:
        raise Error(f"x: expected two axes, not {source.array.ndim}")
    rows, columns = shape_of(source)
    stored = (rows, columns // n * m)
    values, tags = np.empty(stored, source.array.dtype), np.empty(stored, np.uint8)
    call("sparse_pack", at("values", Operand(values, source.name)), at("tags", Operand(tags, None)),
         at("x", source), I64(m), I64(n), I64(bool(prune)))
    return values, tags


def sparse_unpack(values: Array, tags: Array, pattern: tuple[int, int] | str = (4, 16)) -> NDArray[Any]:
    """The inverse: values and tags [M, S] give [M, S n/m] in the format of the values; what was not stored is +0.
    Error: a tag outside of its window, or not ascending."""
    source, places = operand("values", values), operand("tags", tags)
    m, n = _pattern(pattern)
    if source.array.ndim != 2:
        raise Error(f"values: expected two axes, not {source.array.ndim}")
    rows, stored = shape_of(source)
    out = np.empty((rows, stored // m * n), source.array.dtype)
    call("sparse_unpack", at("out", Operand(out, source.name)), at("values", source), at("tags", places), I64(m),
         I64(n))
    return out


def sparse_matmul(values: Array, tags: Array, b: Array, pattern: tuple[int, int] | str = (4, 16),
                  out: Array | None = None, to: Format | None = None, **more: Unpack[Common]) -> NDArray[Any]:
    """The product of a sparse matrix (values and tags [M, S], of sparse_pack) with b [K, N], K = S n/m, as the Tensor
    engine computes it from the stored elements alone: [M, N], float32 unless `to` or `out` says otherwise. Its bits are
    those of the dense product only where sums are exact. Options: the common ones, accumulate. Error: sizes or tags
    that do not fit, or a generation without sparsity."""
    stored, places, right = operand("values", values), operand("tags", tags), operand("b", b)
    m, n = _pattern(pattern)
    if stored.array.ndim != 2 or right.array.ndim != 2:
        raise Error(f"values and b: expected two axes each, not {stored.array.ndim} and {right.array.ndim}")
    target, array = result(out, to, (shape_of(stored)[0], shape_of(right)[1]), "float32")
    call("sparse_matmul", at("out", target, True), at("values", stored), at("tags", places), at("b", right), I64(m),
         I64(n), options(**more))
    return array
