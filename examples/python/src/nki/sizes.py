"""Shapes with symbols in them, "128*k" and "n", and what to put in: the cases that nki.check runs.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from . import _core

Size = Union[int, str]
Shape = Union[Size, Sequence[Size]]
Shapes = Union[Mapping[str, Any], Sequence[Mapping[str, Any]], Callable[..., Mapping[str, Any]]]
Values = Mapping[str, Iterable[int]]

_BY = range(1, 9)  # of a symbol with something around it: "128*k"
_EDGES = (1, 2, 31, 32, 33, 64, 96, 127, 128, 129, 200, 256, 257, 384, 511, 512, 513, 1000, 1024)  # of one that is alone
_WORK: dict[type, Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b, ast.Pow: lambda a, b: a ** b}


class Case(NamedTuple):
    """One run."""

    symbols: dict[str, int]
    shapes: dict[str, tuple[int, ...]]
    grid: tuple[int, ...]
    generation: int

    @property
    def size(self) -> int:
        return sum(math.prod(s) for s in self.shapes.values())

    def __str__(self) -> str:
        said = ", ".join(f"{name} {list(shape)}" for name, shape in self.shapes.items())
        said += f", grid {list(self.grid)}" if self.grid else ""
        of = ", ".join(f"{name} = {value}" for name, value in self.symbols.items())
        return f"{said}, generation {self.generation}" + (f" ({of})" if of else "")


# ---- one size ----

def _tree(size: str) -> ast.expr:
    try:
        return ast.parse(size.strip(), mode="eval").body
    except SyntaxError:
        raise _core.Error(f"check: '{size}' is no size; write 512, \"n\" or \"128*k + 1\"") from None


def _value(node: ast.expr, symbols: Mapping[str, int], size: str) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return symbols[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _WORK:
        return _WORK[type(node.op)](_value(node.left, symbols, size), _value(node.right, symbols, size))
    raise _core.Error(f"check: '{size}' is no size; it takes whole numbers, names and + - * // % **")


def _names(size: Size) -> dict[str, bool]:
    """The symbols of a size: does it stand alone?"""
    if not isinstance(size, str):
        return {}
    tree = _tree(size)
    return {n.id: n is tree for n in ast.walk(tree) if isinstance(n, ast.Name)}


def _number(size: Size, symbols: Mapping[str, int]) -> int:
    return _value(_tree(size), symbols, size) if isinstance(size, str) else int(size)


def _axes(shape: Any) -> tuple[Size, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _filled(shape: Any, symbols: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(_number(size, symbols) for size in _axes(shape))


# ---- all of them ----

def listed(shapes: Shapes) -> list[Callable[..., Mapping[str, Any]] | Mapping[str, Any]]:
    """What to run side by side: each has one shape, with or without symbols, for each name."""
    if callable(shapes):
        return [shapes]
    if not isinstance(shapes, Mapping):
        return [one for several in shapes for one in listed(several)]
    lists = {name: s for name, s in shapes.items() if isinstance(s, list) and s and isinstance(s[0], (tuple, list))}
    counts = {len(s) for s in lists.values()}
    if len(counts) > 1:
        of = ", ".join(f"'{name}' {len(s)}" for name, s in lists.items())
        raise _core.Error(f"check: lists of shapes go side by side, so they have one length: {of}")
    return [{name: lists[name][n] if name in lists else s for name, s in shapes.items()}
            for n in range(counts.pop() if counts else 1)]


def _symbols(one: Any, grids: Iterable[Any]) -> dict[str, bool]:
    if callable(one):
        return dict.fromkeys(inspect.signature(one).parameters, False)
    found: dict[str, bool] = {}
    for size in (*(s for shape in one.values() for s in _axes(shape)), *(s for g in grids for s in _axes(g))):
        for name, alone in _names(size).items():
            found[name] = found.get(name, False) or alone
    return found


def filled(one: Any, symbols: Mapping[str, int], grid: Any, generation: int) -> Case | None:
    """The case of these numbers; None where a size is less than one."""
    shapes = one(**symbols) if callable(one) else one
    made = Case(dict(symbols), {name: _filled(shape, symbols) for name, shape in shapes.items()},
                _filled(grid, symbols), generation)
    return made if all(n > 0 for s in (*made.shapes.values(), made.grid) for n in s) else None


def cases(one: Any, where: Values, grids: Sequence[Any], generations: Sequence[int]) -> Iterator[Case]:
    values = {name: tuple(where[name]) if name in where else _EDGES if alone else tuple(_BY)
              for name, alone in _symbols(one, grids).items()}
    for numbers in itertools.product(*values.values()):
        for grid, generation in itertools.product(grids, generations):
            case = filled(one, dict(zip(values, numbers)), grid, generation)
            if case is not None:
                yield case


def symbols_of(several: Iterable[Any], grids: Iterable[Any]) -> set[str]:
    return {name for one in several for name in _symbols(one, list(grids))}
