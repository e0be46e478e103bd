"""Tiles by number: an array whose axes before par_dim count tiles.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from . import moves, tiles
from ._numpy import np
from .formats import DType
from .tensor import NkiTensor, Number


class Blocks:
    """counts x tiles of [P, ...]; indexed by numbers first. A tile is made, and filled, once it is used."""

    fill: Number | None = None  # what nl.full puts into all of them

    def __init__(self, counts: Sequence[int], shape: Sequence[int], dtype: DType, buffer: Any, name: str) -> None:
        self.counts, self.inner, self.dtype, self.buffer = tuple(counts), tuple(shape), dtype, buffer
        self.shape = self.counts + self.inner
        self.ndim = len(self.shape)
        self.name = name
        self.held: dict[tuple[int, ...], NkiTensor] = {}

    @property
    def tiles(self) -> list[NkiTensor]:
        return [self.tile(place) for place in itertools.product(*(range(n) for n in self.counts))]

    def tile(self, place: tuple[int, ...]) -> NkiTensor:
        """The tile of this number."""
        for p, n in zip(place, self.counts):
            if not -n <= p < n:
                raise IndexError(f"tile {p} of an axis of {n} tiles of '{self.name or 'tile'}' {list(self.shape)}")
        place = tuple(p % n for p, n in zip(place, self.counts))
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

    def _split(self, key: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
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
        place, rest = self._split(key)
        tile = self.tile(place)
        moves.assign(tile, rest if rest else (slice(None),) * tile.ndim, value)


def _is_grid(item: Any) -> bool:
    return np is not None and isinstance(item, np.ndarray) and item.ndim > 0


def _number(item: Any) -> int:
    if _is_grid(item):
        if item.size != 1 and item.min() != item.max():
            raise IndexError("a tile is chosen by one number")
        return int(item.reshape(-1)[0])
    return int(item)
