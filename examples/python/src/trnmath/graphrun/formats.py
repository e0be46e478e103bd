"""Formats of elements: their names in HLO and in StableHLO, what NumPy holds them in, and the bits of constants.

Numbers of any floating format lie in float64 (the reference) or in float32 (the engines), already rounded to their
format; integers lie in their own format. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy as np
import trnmath
from numpy.typing import NDArray

from .graph import Shape, Trouble

Array = NDArray[Any]

# HLO's name: (StableHLO's name, what trnmath calls it or None, NumPy's format of its bits)
FLOATS = {"f64": ("f64", None, np.float64), "f32": ("f32", "float32", np.float32), "f16": ("f16", "float16", np.float16),
          "bf16": ("bf16", "bfloat16", np.uint16), "f8e4m3": ("f8E4M3", "float8_e4m3", np.uint8),
          "f8e4m3fn": ("f8E4M3FN", "float8_e4m3fn", np.uint8), "f8e5m2": ("f8E5M2", "float8_e5m2", np.uint8)}
INTEGERS = {"s8": ("i8", np.int8), "s16": ("i16", np.int16), "s32": ("i32", np.int32), "s64": ("i64", np.int64),
            "u8": ("ui8", np.uint8), "u16": ("ui16", np.uint16), "u32": ("ui32", np.uint32), "u64": ("ui64", np.uint64),
            "s4": ("i4", np.int8), "u4": ("ui4", np.uint8), "pred": ("i1", np.bool_)}
COMPLEX = {"c64": ("complex<f32>", np.complex64), "c128": ("complex<f64>", np.complex128)}
OTHERS = {"token": "token"}
FOUR = ("s4", "u4")  # of four bits, in eight
OF_STABLEHLO = {row[0]: name for table in (FLOATS, INTEGERS, COMPLEX) for name, row in table.items()}  # type: ignore[attr-defined]
OF_STABLEHLO |= {f"si{n}": f"s{n}" for n in (4, 8, 16, 32, 64)} | {"index": "s64"}


def known(name: str) -> bool:
    """Is it a format of HLO that can be run?"""
    return name in FLOATS or name in INTEGERS or name in COMPLEX or name in OTHERS


def is_float(name: str) -> bool:
    """Does it have fractions, and no imaginary part?"""
    return name in FLOATS


def holder(name: str, wide: bool) -> np.dtype[Any]:
    """What numbers of a format lie in; wide: of the reference."""
    if name in FLOATS:
        return np.dtype(np.float64 if wide or name == "f64" else np.float32)
    if name in COMPLEX:
        return np.dtype(np.complex128 if wide else COMPLEX[name][1])
    if name in INTEGERS:
        return np.dtype(INTEGERS[name][1])
    raise Trouble(f"numbers of format {name} cannot be run")


def rounded(x: Array, name: str, seed: int | None = None) -> Array:
    """x, of float32 or float64, rounded to a format, each number once: nearest even, or stochastically by a seed.
    What lies beyond 24 bits of a float64 is rounded to odd first, which changes no later rounding to fewer bits."""
    called = FLOATS[name][1]
    if called is None or (called == "float32" and x.dtype == np.float32):
        return x
    if called == "float32":
        return x.astype(np.float32)
    narrow = np.ascontiguousarray(x if x.dtype == np.float32 else _to_odd(x)).reshape(-1)
    if narrow.size == 0:
        return narrow
    options: dict[str, Any] = {} if seed is None else {"rounding": "stochastic", "seed": seed}
    codes = trnmath.convert(narrow, called, **options)
    return trnmath.convert(codes if called == "float16" else (codes, called), "float32").reshape(x.shape)


def _to_odd(x: Array) -> Array:
    """float32 with the last bit set where anything was lost: rounding twice is then rounding once."""
    narrow = x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        toward = np.where(abs(narrow.astype(np.float64)) > abs(x), np.nextafter(narrow, np.float32(0)), narrow)
    lost = (toward.astype(np.float64) != x) & np.isfinite(x)
    bits = toward.view(np.uint32) | lost.astype(np.uint32)
    return bits.view(np.float32)


def settled(x: Array, shape: Shape, wide: bool) -> Array:
    """x in what holds the shape's format; floats keep their digits."""
    if shape.format == "pred":
        return x if x.dtype == np.bool_ else x != 0
    want = holder(shape.format, wide)
    with np.errstate(all="ignore"):
        x = x if x.dtype == want else x.astype(want)
    return _of_four(x, shape.format) if shape.format in FOUR else x


def _of_four(x: Array, name: str) -> Array:
    """The last four bits, with their sign."""
    low = x & np.array(15, x.dtype)
    return np.where(low > 7, low - 16, low).astype(x.dtype) if name == "s4" else low


def limits(name: str) -> tuple[int, int]:
    """The least and the largest whole number of a format."""
    if name in FOUR:
        return (-8, 7) if name == "s4" else (0, 15)
    found = np.iinfo(holder(name, True))
    return int(found.min), int(found.max)


def of_bits(data: bytes, shape: Shape) -> Array:
    """The numbers of a constant that is written as bytes, little endian; one element may stand for all."""
    name = shape.format
    if name == "pred":
        count = shape.size
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        if len(data) == count:
            return (np.frombuffer(data, np.uint8) != 0).reshape(shape.dims)
        if len(data) == 1 and count > 8:
            return np.full(shape.dims, bits[0] != 0)
        return (bits[:count] != 0).reshape(shape.dims)
    stored = np.dtype(FLOATS[name][2] if name in FLOATS else INTEGERS[name][1] if name in INTEGERS else COMPLEX[name][1])
    found = np.frombuffer(data, stored)
    if found.size not in (1, shape.size):
        raise Trouble(f"a constant of {shape} has {len(data)} bytes")
    made = numbers(found, name)
    return np.broadcast_to(made[0], shape.dims) if made.size == 1 else made.reshape(shape.dims)


def numbers(stored: Array, name: str) -> Array:
    """What codes of a format stand for; others are as they are."""
    called = FLOATS[name][1] if name in FLOATS else None
    if called is None or stored.dtype.kind != "u":
        return stored
    return trnmath.convert((np.ascontiguousarray(stored), called), "float32")


def codes(x: Array, name: str) -> Array:
    """The bits of numbers that are of this format: what bitcasts look at."""
    if name == "pred":
        return x.astype(np.uint8)
    if name not in FLOATS:
        return np.ascontiguousarray(x)
    called, stored = FLOATS[name][1], np.dtype(FLOATS[name][2])
    if called is None or stored.kind == "f":
        return np.ascontiguousarray(x.astype(stored))
    return trnmath.convert(np.ascontiguousarray(x.astype(np.float32)), called)
