"""Functions that NumPy lacks. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python's math, for the few that NumPy lacks."""
    def guarded(x: float) -> float:
        try:
            return function(float(x))
        except (ValueError, OverflowError):
            return math.inf if function is math.lgamma else math.nan
    whole = np.frompyfunc(guarded, 1, 1)
    return lambda x: np.asarray(whole(x), x.dtype).reshape(x.shape)


def erf_inv(y: Array) -> Array:
    """By Newton's steps from a start that is good to two digits."""
    with np.errstate(all="ignore"):
        log = np.log1p(-np.square(y.astype(np.float64)))
        half = 2 / (math.pi * 0.147) + log / 2
        x = np.sign(y) * np.sqrt(np.sqrt(np.square(half) - log / 0.147) - half)
        for _ in range(4):
            x = x - (each(math.erf)(x) - y) / (2 / math.sqrt(math.pi) * np.exp(-np.square(x)))
        return np.where(abs(y) == 1, np.copysign(np.inf, y), np.where(y == 0, y, x)).astype(y.dtype)


_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)  # of 1 / x^2, 1 / x^4, ...


def digamma(x: Array) -> Array:
    """The derivative of log gamma: by its recurrence up to 12, then by Stirling's series; reflected below 1/2."""
    with np.errstate(all="ignore"):
        given = x.astype(np.float64)
        y = np.where(given < 0.5, 1 - given, given)
        steps = np.zeros_like(y)
        for _ in range(12):
            small = y < 12
            steps, y = np.where(small, steps - 1 / y, steps), np.where(small, y + 1, y)
        squares = 1 / np.square(y)
        made = steps + np.log(y) - 1 / (2 * y) - squares * np.polyval(_SERIES[::-1], squares)
        turn = given - np.rint(given)  # tan has the period 1
        made = np.where(given < 0.5, made - math.pi / np.tan(math.pi * turn), made)
        return np.where((given <= 0) & (turn == 0), np.where(given == 0, -np.copysign(np.inf, given), np.nan),
                        made).astype(x.dtype)


def bessel_i1e(x: Array) -> Array:
    """exp(-|x|) I1(x): its power series up to 1; the mean of exp(|x| (cos t - 1)) cos t, which is periodic; Hankel's series
    from 10,000 on."""
    size = abs(x.astype(np.float64))
    with np.errstate(all="ignore"):
        little, middle = np.minimum(size, 1.0), np.minimum(size, 1e4)
        series = np.ones_like(size)
        for k in range(16, 0, -1):
            series = 1 + series * np.square(little / 2) / (k * (k + 1))
        mean, points = np.zeros_like(size), 64 + 8 * int(math.sqrt(np.nanmax(middle, initial=0.0)))
        for n in range(points):
            cosine = math.cos(2 * math.pi * n / points)
            mean += np.exp(middle * (cosine - 1)) * cosine / points
        z = 1 / (8 * size)
        far = (1 - z * (3 + z * (7.5 + z * 52.5))) / np.sqrt(2 * math.pi * size)
        made = np.where(size <= 1, series * little / 2 * np.exp(-little), np.where(size < 1e4, mean, far))
        return np.copysign(np.where(np.isinf(size), 0.0, made), x).astype(x.dtype)
