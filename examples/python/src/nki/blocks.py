"""Tiles by number: an array whose axes before par_dim count tiles.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import itertools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import _core, moves, tiles
from ._numpy import np
from .assigned import assign
from .formats import DType
from .tensor import NkiTensor, Number, UNNAMED


class Blocks:
    """counts x tiles of [P, ...]; indexed by numbers first. A tile is made, and filled, once it is used. turns: indices
    that name the turn of a loop outside of which a tile is not used: turns.py."""

    fill: Number | None = None  # what nl.full puts into all of them

    def __init__(self, counts: Sequence[int], shape: Sequence[int], dtype: DType, buffer: Any, name: str,
                 turns: Sequence[int] = ()) -> None:
        self.counts, self.inner, self.dtype, self.buffer = tuple(counts), tuple(shape), dtype, buffer
        self.shape = self.counts + self.inner
        self.ndim = len(self.shape)
        self.name = name
        self.held: dict[tuple[int, ...], NkiTensor] = {}
        self.turn_of = _chosen(turns)
        self.turn: tuple[int, ...] = ()
        self.over: set[tuple[int, ...]] = set()

    @property
    def tiles(self) -> list[NkiTensor]:
        return [self.tile(place) for place in itertools.product(*(range(n) for n in self.counts))]

    def tile(self, place: tuple[int, ...]) -> NkiTensor:
        """The tile of this number."""
        there = self.held.get(place)
        if there is not None:  # of this turn: others are not held
            return there
        for p, n in zip(place, self.counts):
            if not -n <= p < n:
                raise IndexError(f"tile {p} of an axis of {n} tiles of '{self.name or 'tile'}' {list(self.shape)}")
        given, place = place, tuple(p % n for p, n in zip(place, self.counts))
        if self.turn_of(place) != self.turn:
            self._begin(self.turn_of(place), self.turn_of(given))
        if place not in self.held:
            address = tiles.placed(self.buffer, place, self.inner, self.dtype)
            name = f"{self.name or 'tile'}[{', '.join(map(str, place))}]"
            made = self.held[place] = tiles.new(self.inner, self.dtype, self.buffer, name, address)
            if self.fill is not None:
                core = made.core
                waits, core.pending = core.pending, None  # what waits is not about this tile
                tiles.fill(made, self.fill)
                core.pending = waits
        return self.held[place]

    def _begin(self, turn: tuple[int, ...], given: tuple[int, ...]) -> None:
        """The turn before is over; tiles that somebody else has stay. Turns that are counted from the end may be those
        that are counted from the beginning later: then none is over."""
        if not self.over and min(given) < 0:
            self.turn_of, self.turn = _chosen(()), ()
            return
        if turn in self.over:
            raise _core.Error(f"turn {list(turn)} of '{self.name or 'tile'}' {list(self.shape)} comes twice")
        self.over.add(turn)
        self.held.clear()
        self.turn = turn

    def reshape(self, *shape: Any) -> Blocks:
        """The same tiles, numbered by other axes, each in another shape: [4, par_dim(128), 8] as [2, 2, 128, 4, 2]."""
        sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        counts = _leading(sizes, math.prod(self.counts), self.inner[0])
        if counts is None or math.prod(sizes[counts:]) != math.prod(self.inner):
            raise _core.Error(f"'{self.name or 'tile'}' {list(self.shape)} has {math.prod(self.counts)} tiles of "
                              f"{self.inner[0]} partitions; {list(sizes)} has not")
        return _Reshaped(self, [int(s) for s in sizes[:counts]], [int(s) for s in sizes[counts:]])

    def _split(self, key: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        axes = len(self.counts)
        if type(key) is tuple and len(key) >= axes:
            for number in key[:axes]:
                if type(number) is not int:
                    break
            else:
                return key[:axes], key[axes:]
        items = list(key) if isinstance(key, tuple) else [key]
        front = items[:len(self.counts)]
        if len(front) < len(self.counts):
            raise IndexError(f"{len(self.counts)} numbers choose a tile of {list(self.shape)}")
        place = tuple(_number(i) for i in front)
        rest = items[len(self.counts):]
        return place, tuple(rest)

    def __getitem__(self, key: Any) -> NkiTensor:
        place, rest = self._split(key)
        tile = self.tile(place)
        return tile[rest] if rest else tile

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is Ellipsis or (isinstance(key, slice) and key == slice(None)):  # all tiles get the same
            for tile in self.tiles:
                moves.assign(tile, Ellipsis, value)
            return
        named = sys.getrefcount(value) > UNNAMED
        place, rest = self._split(key)
        tile = self.tile(place)
        assign(tile, rest if rest else (slice(None),) * tile.ndim, value, named)


def _chosen(axes: Sequence[int]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """What takes the numbers of these axes from a place."""
    if len(axes) > 1:
        return operator.itemgetter(*axes)
    first = axes[0] if axes else 0
    return lambda place: place[first:first + len(axes)]


class _Reshaped(Blocks):
    """The tiles of other blocks in their order, numbered by other axes."""

    def __init__(self, of: Blocks, counts: Sequence[int], shape: Sequence[int]) -> None:
        super().__init__(counts, shape, of.dtype, of.buffer, of.name)
        self.of = of

    def tile(self, place: tuple[int, ...]) -> NkiTensor:
        number = 0
        for p, n in zip(place, self.counts):
            if not -n <= p < n:
                raise IndexError(f"tile {p} of an axis of {n} tiles of '{self.name or 'tile'}' {list(self.shape)}")
            number = number * n + p % n
        there: list[int] = []
        for n in reversed(self.of.counts):
            there.insert(0, number % n)
            number //= n
        return self.of.tile(tuple(there)).reshaped(self.inner)


def _leading(sizes: Sequence[int], blocks: int, partitions: int) -> int | None:
    """How many axes number so many blocks, before one of so many partitions; None: no first axes do."""
    product = 1
    for count, size in enumerate(sizes):
        if product == blocks and size == partitions:
            return count
        product *= size
    return None


def _is_grid(item: Any) -> bool:
    return np is not None and isinstance(item, np.ndarray) and item.ndim > 0


def _number(item: Any) -> int:
    if _is_grid(item):
        if item.size != 1 and item.min() != item.max():
            raise IndexError("a tile is chosen by one number")
        return int(item.reshape(-1)[0])
    return int(item)
