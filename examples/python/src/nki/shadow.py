"""Errors beside values: for every element of every tile how far it may be from the exact number, and how far it
usually is, by the instruction that brought it.

A Shadow belongs to one allocation (a tile, a tensor in HBM) and holds three arrays of binary64: `worst`, whose sum over
sources bounds the distance, and `variance`, both [sources, elements], and `drift` [2, elements]: how far the numbers
really are from those of the same kernel in exact arithmetic, with their sign; and what of that came from casts to a
format that is narrower than asked. Views of the allocation are views of the shadow.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Significand bits after the point, exponent of the smallest normal number; whole numbers have steps of 1.
FORMATS = {
    "float32": (23, -126), "tfloat32": (10, -126), "bfloat16": (7, -126), "float16": (10, -14),
    "float8_e4m3": (3, -6), "float8_e4m3fn": (3, -6), "float8_e5m2": (2, -14), "float8_e3m4": (4, -2),
    "float4_e2m1fn": (1, 0),
}


def spacing(name: str, x: Array) -> Array:
    """The distance of neighbours in this format where x lies; 1 for whole numbers."""
    if name not in FORMATS:
        return np.ones_like(x)
    bits, least = FORMATS[name]
    exponent = np.asarray(x, np.float64).view(np.int64) >> 52 & 0x7FF
    exponent = np.where(exponent == 0x7FF, 0, exponent)
    made: Array = (np.maximum(exponent, least + 1023) - bits << 52).view(np.float64)
    return made


def holds(name: str, other: str) -> bool:
    """Does every number of `other` exist in `name`?"""
    if name == other:
        return True
    if name in FORMATS and other in FORMATS:
        (bits, least), (fewer, higher) = FORMATS[name], FORMATS[other]
        return bits >= fewer and least <= higher and (name, other) not in {("float8_e4m3", "float8_e4m3fn")}
    if name in FORMATS:
        return int("".join(filter(str.isdigit, other)) or 8) <= FORMATS[name][0] + 1
    return False


class Error:
    """Of a view: worst and variance [sources, ...shape], drift [2, ...shape], all of them rows of one array `all`; each
    may be written through. local: how much of worst the instruction itself has added since the error was made,
    [...shape] or 0."""

    __slots__ = ("all", "sources", "local")

    def __init__(self, all: Array) -> None:
        self.all, self.sources = all, len(all) // 2 - 1
        self.local: Any = 0

    @classmethod
    def none(cls, sources: int, shape: Sequence[int]) -> Error:
        return cls(np.zeros((2 * sources + 2, *shape)))

    @classmethod
    def of(cls, worst: Array, variance: Array, drift: Array) -> Error:
        made = cls(np.empty((2 * len(worst) + 2, *np.broadcast(worst[0], variance[0], drift[0]).shape)))
        made.worst, made.variance, made.drift = worst, variance, drift
        return made

    @property
    def worst(self) -> Array:
        return self.all[:self.sources]

    @worst.setter
    def worst(self, value: Array) -> None:
        self.all[:self.sources] = value

    @property
    def variance(self) -> Array:
        return self.all[self.sources:-2]

    @variance.setter
    def variance(self, value: Array) -> None:
        self.all[self.sources:-2] = value

    @property
    def drift(self) -> Array:
        return self.all[-2:]

    @drift.setter
    def drift(self, value: Array) -> None:
        self.all[-2:] = value

    @property
    def bound(self) -> Array:
        return self.worst[0] if self.sources == 1 else self.worst.sum(0)

    @property
    def sigma(self) -> Array:
        return np.sqrt(self.variance[0] if self.sources == 1 else self.variance.sum(0))

    def map(self, function: Callable[..., Any]) -> Error:
        """The same rearrangement of all; function takes and gives [any number, ...]."""
        return Error(function(self.all))

    def __add__(self, other: Error) -> Error:
        return Error(self.all + other.all)

    def add_local(self, source: int, worst: Any, variance: Any) -> Error:
        self.all[source] += worst
        self.all[self.sources + source] += variance
        self.local = self.local + worst
        return self


class Shadow:
    """[rows, width] elements of so many bytes, of one format; a view begins at an element and steps by elements."""

    def __init__(self, sources: int, rows: int, row_bytes: int, itemsize: int, format: int) -> None:
        self.rows, self.row_bytes, self.format = rows, row_bytes, format
        self.width = row_bytes // itemsize
        self.error = Error.none(sources, (rows * self.width,))
        self.writer = np.zeros((1, rows * self.width), np.int32)  # numbers of places, as whoever follows has them

    def view(self, begin: int, shape: Sequence[int], steps: Sequence[int]) -> Error:
        return self.error.map(lambda flat: _view(flat, begin, shape, steps))

    def writers(self, begin: int, shape: Sequence[int], steps: Sequence[int]) -> Array:
        return _view(self.writer, begin, shape, steps)[0]


def _view(flat: Array, begin: int, shape: Sequence[int], steps: Sequence[int]) -> Array:
    step = flat.strides[1]
    strides = flat.strides[0], *(s * step for s in steps)
    return np.ndarray((len(flat), *shape), flat.dtype, flat, begin * step, strides)


def rounding(error: Error, source: int, name: str, exact: Array, random: bool = False) -> Error:
    """One rounding to this format of numbers that are about `exact`: half a step at most and evenly spread, or a whole
    one, drawn."""
    step = np.where(np.isfinite(exact), spacing(name, exact), 0)
    if name not in FORMATS:
        step = np.where(exact == np.rint(exact), 0, step)  # a whole number is not rounded
    return error.add_local(source, step if random else step / 2, step * step / (6 if random else 12))


def drifted(function: Callable[..., Any], centre: Array, values: Sequence[Array], errors: Sequence[Error]) -> Array:
    """How far centre = function(*values) is from the function of what the values would be without their drift."""
    out = np.zeros((2, *np.shape(centre)))
    for i in range(2):
        if any(e.drift[i].any() for e in errors):
            out[i] = difference(centre, function(*(v - e.drift[i] for v, e in zip(values, errors))))
    return out


def difference(x: Array, y: Array) -> Array:
    """x - y, and 0 where it is no number: of the same infinities, of what is no number itself."""
    off = np.asarray(x - y)
    return np.where(np.isfinite(off), off, 0)


def _corners(count: int) -> list[list[int]]:
    return [[(n >> i & 1) * 2 - 1 for i in range(count)] for n in range(1 << count)]


def through(function: Callable[..., Any], values: Sequence[Array], errors: Sequence[Error]) -> Error:
    """The error of function(*values) that its operands' errors bring: first each alone, which tells the sources'
    shares, then all at once at every corner, which bounds it where the function is monotonic in each of them."""
    centre = np.asarray(function(*values))
    bounds, sigmas = [e.bound for e in errors], [e.sigma for e in errors]
    moved = [bool(np.any(b)) for b in bounds]
    out = Error.none(len(errors[0].worst), np.shape(centre))
    alone = np.zeros(np.shape(centre))
    for i, error in enumerate(errors):
        if not moved[i]:
            continue
        reach = _reach(function, values, i, bounds[i], centre)
        share = np.divide(error.worst, bounds[i], out=np.zeros_like(error.worst), where=bounds[i] > 0)
        out.worst += share * reach
        alone = alone + reach
        slope = _reach(function, values, i, sigmas[i], centre)
        part = np.divide(slope, sigmas[i], out=np.zeros(np.broadcast(slope, sigmas[i]).shape), where=sigmas[i] > 0)
        out.variance += error.variance * part * part
    if sum(moved) > 1:
        most = alone
        for signs in _corners(len(values)):
            shifted = function(*(v + s * b for v, s, b in zip(values, signs, bounds)))
            most = np.fmax(most, abs(shifted - centre))
        out.worst *= np.divide(most, alone, out=np.ones_like(alone), where=alone > 0)
    out.drift = drifted(function, centre, values, errors)
    return out


def bilinear(function: Callable[..., Any], slopes: tuple[Any, Any, float], values: Sequence[Array],
             errors: Sequence[Error]) -> Error:
    """The same of a function that is linear in each of two operands, by exact.SLOPES: exact, and in fewer passes."""
    centre = np.asarray(function(*values))
    x, y = (e.map(lambda p: p.reshape(len(p), *(1,) * (centre.ndim + 1 - p.ndim), *p.shape[1:])) for e in errors)
    of_x, of_y, of_both = slopes
    worst, variance = of_x * x.worst + of_y * y.worst, of_x * of_x * x.variance + of_y * of_y * y.variance
    if of_both:
        worst += of_both * x.worst * y.bound
    return Error.of(worst, variance, drifted(function, centre, values, errors))


def _reach(function: Callable[..., Any], values: Sequence[Array], i: int, distance: Array, centre: Array) -> Array:
    most = np.zeros(np.shape(centre))
    for sign in (1, -1):
        there = function(*(v + sign * distance if j == i else v for j, v in enumerate(values)))
        change = abs(there - centre)
        most = np.fmax(most, np.where(np.isnan(change), 0, change))
    return most
