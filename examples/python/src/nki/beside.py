"""Beside what a kernel has computed, what it was to: nki.check(expected=...).

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._numpy import np
from .arrays import Given, given

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Of a result's format, how far an element may be off: a few roundings, and the engines' tables of functions.
_FAR = {"float32": 1e-3, "tfloat32": 4e-3, "float16": 4e-3, "bfloat16": 3e-2}
_FAR_8_BITS = 0.25


def wrong(got: Any, expected: Callable[..., Any], arrays: Mapping[str, Given], arguments: Mapping[str, Any],
          tolerance: float | None) -> str | None:
    """A sentence about the element that is furthest off, or None. What is expected is computed of the same numbers in
    binary64; an element may be off by the tolerance times itself and the root of the mean square of all."""
    takes = inspect.signature(expected).parameters
    loose = any(p.kind is p.VAR_KEYWORD for p in takes.values())
    inputs = {**{name: _wide(a) for name, a in arrays.items()}, **arguments}
    want = expected(**{name: value for name, value in inputs.items() if loose or name in takes})
    if got is None:
        raise _core.Error("check: the kernel returns nothing that expected= could be held against")
    results, wanted = _listed(got), _listed(want)
    if len(results) != len(wanted):
        return f"{len(results)} results, of which {len(wanted)} are expected"
    for number, (one, other) in enumerate(zip(results, wanted)):
        name = "the result" if len(results) == 1 else f"result {number}"
        said = _off(name, one, np.asarray(other), tolerance)
        if said:
            return said
    return None


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (tuple, list)) else [values]


def _wide(array: Given) -> NDArray[Any]:
    numbers = np.asarray(array.numpy())
    return numbers if numbers.dtype.kind in "iub" else numbers.astype(np.float64)


def _off(name: str, one: Any, want: NDArray[Any], tolerance: float | None) -> str | None:
    array = given(one)
    assert array is not None
    got = np.asarray(_wide(array), np.float64)
    if got.shape != want.shape:
        return f"{name} has the shape {list(got.shape)}, expected is {list(want.shape)}"
    if tolerance is None:
        kind = str(array.dtype)
        tolerance = _FAR.get(kind, 0.0 if got.size and array.dtype.numpy else _FAR_8_BITS)
    wide = np.asarray(want, np.float64)
    finite = np.isfinite(wide)
    size = float(np.sqrt(np.mean(wide[finite] ** 2))) if finite.any() else 0.0
    with np.errstate(all="ignore"):
        far = np.abs(got - wide) / (np.where(finite, np.abs(wide), 0.0) + size + np.finfo(float).tiny)
    far = np.where((got == wide) | (np.isnan(got) & np.isnan(wide)), 0.0, np.where(np.isnan(far), np.inf, far))
    if not far.size or float(far.max()) <= tolerance:
        return None
    at = tuple(int(i) for i in np.unravel_index(int(far.argmax()), far.shape))
    return (f"{name}{list(at)} is {got[at]:.7g}, expected is {wide[at]:.7g}; {int((far > tolerance).sum())} of {far.size} "
            f"elements are further off than {tolerance:g} of themselves and of the result's {size:.3g}")
