"""How far the engines are from the reference at each operation, and how much of that is the operation's own.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .graph import OUTSIDE, Op, Shape, flat
from .machine import MOVES, Array
from .run import Runner, Value

_BLOCK = 1 << 15  # elements
_TURN = re.compile(r"\[\d+\]")
_UNMEASURED = ("tuple", "get_tuple_element", *OUTSIDE)


@dataclass
class Row:
    """total: ‖engines - float64‖ / ‖float64‖ of the results, all devices. own: the same where float64 begins from the
    engines' operands. Of a loop the largest of all turns."""

    name: str
    kind: str
    shape: str
    line: int
    scope: str
    total: float
    own: float
    before: tuple[str, ...]


def distance(near: Array, wide: Array) -> tuple[float, float]:
    """Squares of the difference and of the reference; equal infinities and NaN beside NaN differ by nothing."""
    if near.dtype.kind not in "fc" or not near.size:
        return float(np.count_nonzero(near != wide)), float(near.size)
    off = whole = 0.0
    with np.errstate(all="ignore"):
        for a, b in _blocks(near, wide):
            a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64).reshape(-1) for x in (a, b))
            apart, held = _squares(a - b), _squares(b)
            if not math.isfinite(apart + held):
                apart, held = _beside(a, b)
            off, whole = off + apart, whole + held
    return off, whole


def _squares(x: Array) -> float:
    """Their sum. (No BLAS: its threads cost more than they bring.)"""
    numbers: Array = x.view(np.float64)
    return float(np.square(numbers).sum())


def _blocks(a: Array, b: Array) -> Iterator[tuple[Array, Array]]:
    """Parts that stay in a cache, whatever the strides are."""
    rows = _BLOCK * len(a) // a.size if a.ndim else 0
    if a.size <= _BLOCK or not a.ndim:
        yield a, b
        return
    for n in range(0, len(a), max(rows, 1)):
        if rows > 0:
            yield a[n:n + rows], b[n:n + rows]
        else:
            yield from _blocks(a[n], b[n])


def _beside(near: Array, wide: Array) -> tuple[float, float]:
    """Of a block in which something is not finite, or whose squares are not."""
    same = (near == wide) | ((near != near) & (wide != wide))
    off, held = abs(np.where(same, 0, near - wide)), abs(wide[np.isfinite(wide)])
    return (math.inf if not np.isfinite(off).all() else float(np.square(off).sum())), float(np.square(held).sum())


def relative(near: Any, wide: Any) -> float:
    """Of all devices and parts."""
    pairs = {(id(a), id(b)): (a, b) for a, b in _pairs(near, wide)}.values()  # each once: devices may share them
    if all(a is b for a, b in pairs):
        return 0.0
    off = whole = 0.0
    for a, b in pairs:
        squares = distance(a, b)
        off, whole = off + squares[0], whole + squares[1]
    return math.sqrt(off / whole) if whole > 0 else (0.0 if off == 0 else math.inf)


def _pairs(near: Any, wide: Any) -> Iterator[tuple[Array, Array]]:
    """The arrays of tuples in tuples, side by side."""
    if isinstance(near, tuple):
        for a, b in zip(near, wide):
            yield from _pairs(a, b)
    else:
        yield near, wide


class Measure:
    """A watcher that makes a row of each operation."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.runner: Runner | None = None

    def see(self, name: str, op: Op, operands: list[Value], results: list[Value]) -> None:
        """One operation."""
        if op.kind in _UNMEASURED or not results:
            return
        total = max((relative(v.near, v.wide) for v in results), default=0.0)
        name = _TURN.sub("", name)
        own = 0.0 if op.kind in MOVES or op.kind == "parameter" else self._own(op, operands, results)
        row = Row(name, op.kind, _shape(op), op.line, op.scope, total, own, tuple(op.operands))
        old = self.rows.get(name)
        if old is not None:
            row.total, row.own = max(row.total, old.total), max(row.own, old.own)
        self.rows[name] = row

    def _own(self, op: Op, operands: list[Value], results: list[Value]) -> float:
        assert self.runner is not None
        if all(_same(v.near, v.wide) for v in operands):
            exact: list[Any] = [v.wide for v in results]
        else:
            exact = self.runner.side(self.runner.wide, op, [v.near for v in operands])
        return max((relative(v.near, e) for v, e in zip(results, exact)), default=0.0)


def _same(near: Any, wide: Any) -> bool:
    """Are all operands of the engines the reference's numbers?"""
    if near is wide:
        return True
    if isinstance(near, tuple):
        return len(near) == len(wide) and all(_same(a, b) for a, b in zip(near, wide))
    return near.shape == wide.shape and bool(np.array_equal(near, wide))


def _shape(op: Op) -> str:
    shapes = [shape for type_ in op.types for shape in flat(type_)]
    return ", ".join(str(s) for s in shapes) if all(isinstance(s, Shape) for s in shapes) else ""


def first_apart(rows: list[Row], beyond: float) -> Row | None:
    """The first whose total is beyond that."""
    return next((row for row in rows if row.total > beyond), None)


def adds_most(rows: list[Row], count: int) -> list[Row]:
    """Those with the largest error of their own."""
    return sorted((r for r in rows if r.own > 0), key=lambda r: -r.own)[:count]
