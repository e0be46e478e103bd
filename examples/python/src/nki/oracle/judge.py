"""Is a result right? Inside the bound that follows from the kernel's own roundings, none of them coarser than asked.

Of each element four things are known (bounds.py): the number, the number of the same kernel without roundings, how far
roundings to the formats that were asked for can bring it (worst, and sigma, what is usual), and what casts to narrower
formats brought. Wrong is

    formula    without roundings the kernel is not the reference, nor is it with them: both are further than 4 sigma
               and what the reference itself may have rounded. A bound may be wide; this is not
    narrow     casts to less than was asked moved an element by more than 4 sigma, and it is that far off
    far        the number is further from the reference than worst and that allow

and not known what an instruction brought that has no rule. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..shadow import FORMATS, difference, holds, spacing

Array = NDArray[Any]
_WIDE = ("float32", "tfloat32", "bfloat16", "float16")
_SIGMAS = 4.0  # of an element, for what roundings do not explain
_SIGMAS_OF_ANOTHER = 32.0  # where the reference rounded, too: in another order, which may err to one side


class Result(NamedTuple):
    """Of one result of a kernel: as program.kernel sends it."""

    got: Array
    exact: Array
    worst: Array
    sigma: Array
    narrow: Array
    writer: Array
    format: str


class Verdict(NamedTuple):
    """right: None where it is not known. kind: "", or formula, narrow, far, shape, unknown. at: the element that is
    furthest from what is allowed."""

    right: bool | None
    kind: str
    why: str
    at: tuple[int, ...] | None
    distance: dict[str, float | None]


# ---- what was asked for ----

def asked(precision: str | None, arguments: list[str], reference: list[str]) -> str | None:
    """The narrowest format to which a kernel may cast: as the request says, or that of an argument or of the
    reference's result. Arguments of 8 bits and less are products' operands, which are exact in bfloat16. Of whole
    numbers and codes alone nobody knows, and any may be."""
    if precision is not None:
        return precision
    formats = [name if name in _WIDE else "bfloat16" for name in arguments if name in FORMATS]
    formats += [name for name in reference if name in FORMATS]
    narrowest = "float32"
    for name in formats:
        if not holds(name, narrowest):
            narrowest = name
    return narrowest if formats else None


# ---- one result ----

def _own_rounding(want: Array, format_of_reference: str) -> Array:
    """What the reference itself may be off: binary64 next to nothing, float32 some steps."""
    largest = abs(want[np.isfinite(want)]).max(initial=0)
    allowed = 2.0**-40 * abs(want) + 2.0**-46 * largest
    if format_of_reference in FORMATS:
        allowed = allowed + (4 if format_of_reference == "float32" else 0.5) * spacing(format_of_reference, want)
    return np.where(np.isfinite(want), allowed, 0)


def _shaped(want: Array, shape: tuple[int, ...]) -> Array | None:
    """The reference in the result's shape, where they differ in axes of size 1 alone."""
    same = [s for s in want.shape if s != 1] == [s for s in shape if s != 1]
    return want.reshape(shape) if same else None


def _ulps(off: Array, want: Array, name: str) -> float:
    return float((off / spacing(name, want)).max(initial=0)) if off.size else 0.0


def _norm(x: Array) -> float:
    return float(np.sqrt(np.square(np.where(np.isfinite(x), x, 0)).sum()))


def _number(x: float) -> float | None:
    return x if math.isfinite(x) else None


def judged(result: Result, want: Array, format_of_reference: str, asked_for: str | None) -> Verdict:
    """One result beside one of the reference."""
    shaped = _shaped(want, result.got.shape)
    if shaped is None:
        return Verdict(False, "shape", f"the result is {result.got.shape}, the reference's {want.shape}", None, {})
    want, got = shaped, result.got
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0, abs(got - want))
        off = np.where(np.isnan(off), np.inf, off)
    own = _own_rounding(want, format_of_reference)
    formula = np.where(same, 0, abs(difference(result.exact, want)))
    known = np.isfinite(result.worst)
    with np.errstate(all="ignore"):
        sigma = np.nan_to_num(result.sigma)
        tight = np.where(known, _SIGMAS * sigma + own, np.inf)
        loose = tight if format_of_reference not in FORMATS else np.where(
            known, np.minimum(result.worst, _SIGMAS_OF_ANOTHER * sigma) + own, np.inf)
        shares = {"formula": _share(np.minimum(formula, off), loose),
                  "narrow": _share(np.minimum(abs(result.narrow), off), tight),
                  "far": _share(off, np.where(known, result.worst + loose, np.inf))}
    distance = {"worst_ulp": _number(_ulps(off, want, result.format)),
                "rel_l2": _number(_relative(got, want)), "of_bound": _number(float(shares["far"].max(initial=0))),
                "exact_rel_l2": _number(_relative(result.exact, want))}
    for kind in ("narrow", "formula", "far"):
        worst = float(shares[kind].max(initial=0))
        if worst > 1:
            at = tuple(int(i) for i in np.unravel_index(int(shares[kind].argmax()), got.shape))
            return Verdict(False, kind, _WORDS[kind].format(got=got[at], want=want[at], exact=result.exact[at], at=at,
                                                            asked=asked_for), at, distance)
    lost = ~known & ~same & (off > own)
    if lost.any():
        at = tuple(int(i) for i in np.unravel_index(int(np.where(lost, off, -1).argmax()), got.shape))
        return Verdict(None, "unknown", f"of {int(lost.sum())} elements it is not known how far they may be off", at,
                       distance)
    worst_at = tuple(int(i) for i in np.unravel_index(int(shares["far"].argmax()), got.shape)) if got.size else None
    return Verdict(True, "", "", worst_at, distance)


_WORDS = {
    "formula": "not by rounding: without any the kernel gives {exact:.9g} at {at}, the reference {want:.9g}",
    "narrow": "numbers are cast to less than {asked}, which was asked for: {got:.9g} at {at}, the reference {want:.9g}",
    "far": "further off than the kernel's roundings explain: {got:.9g} at {at}, the reference {want:.9g}",
}


def _share(off: Array, allowed: Array) -> Array:
    """Off by so much of what is allowed; 0 where nothing is off, or where anything is allowed."""
    return np.where((off > 0) & np.isfinite(allowed), off / np.where(allowed > 0, allowed, 5e-324), 0)


def _relative(x: Array, want: Array) -> float:
    off, whole = _norm(difference(x, want)), _norm(want)
    return off / whole if whole > 0 else (0.0 if off == 0 else math.inf)


# ---- what it looks like ----

def likeness(result: Result, want: Array, arguments: list[Array]) -> list[str]:
    """What a wrong result looks like, for whoever writes the next one."""
    got, shaped = result.got, _shaped(want, result.got.shape)
    if shaped is None or not got.size:
        return []
    want = shaped
    if not got.any():
        return ["the result is zero everywhere"]
    if (got == got.flat[0]).all():
        return [f"the result is {got.flat[0]:.9g} everywhere"]
    for n, argument in enumerate(arguments):
        if argument.shape == got.shape and np.array_equal(argument, got) and not np.array_equal(argument, want):
            return [f"the result is argument {n}"]
    for name, other in (("turned", want.T), ("upside down", want[::-1]), ("with its rows backwards", want[..., ::-1])):
        if other.shape == got.shape and _relative(got, other) < 1e-2 < _relative(got, want):
            return [f"the result is the reference {name}"]
    factor = float((got * want).sum() / max(float((want * want).sum()), 5e-324))
    if factor and math.isfinite(factor) and _relative(got / factor, want) < abs(factor - 1) / 10:
        return [f"the result is {factor:.6g} times the reference"]
    return _part(got, want)


def _part(got: Array, want: Array) -> list[str]:
    """Where the elements lie that are off by much, if that is a part."""
    off = abs(difference(got, want))
    bad = off > 0.05 * np.sqrt(np.mean(np.square(np.where(np.isfinite(want), want, 0))))
    if not bad.any() or bad.mean() > 0.9:
        return []
    spans = []
    for axis in range(bad.ndim):
        there = np.flatnonzero(bad.any(tuple(i for i in range(bad.ndim) if i != axis)))
        spans.append(f"{there[0]}:{there[-1] + 1}")
    return [f"what is off by much lies in [{', '.join(spans)}] of {got.shape}; the rest is right"]
