"""Pictures, where matplotlib is there: of a format, of roundings, of collectives and of plans.

Each function draws on `ax`, or on a new figure, and returns the axes. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._chips import collective_cost
from ._core import convert
from ._facts import format_of
from ._library import Error, listed, real, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS = "seconds (a model's)"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot  # here: nothing else needs it
    except ImportError:
        raise Error("matplotlib is not installed (Debian: python3-matplotlib), and no ax was given") from None
    return pyplot.subplots()[1]


def _many(what: str, count: Any, least: int, most: int) -> int:
    number = whole(what, count)
    if not least <= number <= most:
        raise Error(f"{what} is {number}, expected {least} to {most}")
    return number


def _range(low: Any, high: Any) -> None:
    if not (isfinite(real("low", low)) and isfinite(real("high", high)) and low < high):
        raise Error(f"low {low} and high {high}: expected two numbers, the first one below the second")


def numbers(format: str, low: float = -2.0, high: float = 2.0) -> NDArray[np.float32]:
    """Every number of a format of at most 16 bits between low and high, ascending: float32 [N]. Error: a wider one."""
    row = format_of(format)
    _range(low, high)
    if row["bits"] > 16 or row["kind"] == "none":
        raise Error(f"{row['name']} has {row['bits']} bits; numbers of at most 16 are listed")
    codes = np.arange(1 << row["bits"], dtype=np.uint32).astype(f"uint{8 * row['bytes']}")
    own = codes.view(row["name"]) if row["name"] in ("float16", "int8", "int16") else codes
    values = convert((own, row["name"]), "float32")
    return np.unique(values[(values >= low) & (values <= high)])


def grid(format: str, low: float = -2.0, high: float = 2.0, ax: Any = None) -> Any:
    """Every number of a format between low and high, as marks on a line."""
    marks = numbers(format, low, high)
    ax = _axes(ax)
    ax.plot(marks, np.zeros_like(marks), "|", markersize=14)
    ax.set_xlabel(f"the {len(marks)} numbers of {format_of(format)['name']} from {low:g} to {high:g}")
    ax.set_yticks([])
    return ax


def error(format: str, low: float = 1.0, high: float = 4.0, count: int = 1000, ax: Any = None, **options: Any) -> Any:
    """What rounding to a format adds to `count` numbers from low to high, in their own unit. Options: those of
    convert."""
    _range(low, high)
    x = np.linspace(low, high, _many("count", count, 2, 1 << 20)).astype(np.float32)
    back = convert((convert(x, format, **options), format), "float32")
    ax = _axes(ax)
    ax.plot(x, back.astype(np.float64) - x)
    ax.set_xlabel("number")
    ax.set_ylabel(f"{format_of(format)['name']} less the number")
    return ax


def stochastic(value: float, format: str = "bfloat16", draws: int = 10000, seed: int = 0, ax: Any = None) -> Any:
    """How often stochastic rounding of one number gives each of its two neighbours, and where the number lies."""
    x = np.full(_many("draws", draws, 1, 1 << 24), real("value", value), np.float32)
    back = convert((convert(x, format, rounding="stochastic", seed=seed), format), "float32")
    found, counts = np.unique(back, return_counts=True)
    ax = _axes(ax)
    ax.bar([f"{number:.9g}" for number in found], counts)
    ax.set_ylabel(f"of {len(x)} draws")
    ax.set_title(f"{float(np.float32(value)):.9g} in {format_of(format)['name']}; mean {back.mean(dtype=float):.9g}")
    return ax


def collective(op: str, system: str = "trn2.48xlarge", sizes: Sequence[int] | None = None, ax: Any = None,
               **options: Any) -> Any:
    """The time of a collective over sizes (bytes per rank; by default 1 KiB to 1 GiB), and the bound that no algorithm
    is below. Options: those of collective_cost."""
    sizes = [1 << n for n in range(10, 31)] if sizes is None else [whole("sizes", n) for n in listed("sizes", sizes)]
    costs = [collective_cost(op, n, system, **options) for n in sizes]
    ax = _axes(ax)
    ax.loglog(sizes, [cost["time_s"] for cost in costs], label=f"{op} on {system}")
    ax.loglog(sizes, [cost["lower_bound_s"] for cost in costs], "--", label="lower bound")
    ax.set_xlabel("bytes per rank")
    ax.set_ylabel(_SECONDS)
    ax.legend()
    return ax


def plan(plans: Mapping[str, Any] | Sequence[Mapping[str, Any]], ax: Any = None, of: str = "expected") -> Any:
    """Plans as bars, each cut into the parts of its time; of: "expected" or "time" (ideal). What runs beside other work
    is in its bar, too."""
    one: Any = plans
    given: list[Any] = [one] if isinstance(one, dict) else listed("plans", one)
    named = isinstance(of, str) and of in ("expected", "time")
    if not named or not given or not all(isinstance(p, dict) and p.get("legal") for p in given):
        raise Error("plans: expected legal plans of plans(), and of \"expected\" or \"time\"")
    labels = [" ".join(f"{axis} {p[axis]}" for axis in ("tp", "cp", "ep", "dp", "pp") if p[axis] > 1) or "one chip"
              for p in given]
    ax = _axes(ax)
    left = np.zeros(len(given))
    for part in [name for name in given[0][of] if name not in ("hidden", "contention")]:
        width = np.array([p[of][part] for p in given])
        if width.any():
            ax.barh(range(len(given)), width, left=left, label=part)
        left = left + width
    ax.set_yticks(range(len(given)), labels)
    ax.invert_yaxis()
    ax.set_xlabel(_SECONDS)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))  # beside the bars
    return ax
