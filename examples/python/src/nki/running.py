"""What the kernel of this thread runs on: its core, its place in a grid, and what it shares with others.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, Union

from . import _core
from .formats import DType
from .progress import Progress
from .tensor import NkiTensor

Grid = tuple[int, ...]


class Launch(Protocol):
    """One call of a kernel (simulator.py), as its programs see it."""

    programs: list[Grid]
    shown: Progress

    def same(self, core: _core.Core, key: Hashable, make: Callable[[], NkiTensor]) -> NkiTensor: ...


class _Local(threading.local):
    core: Union[_core.Core, None] = None
    launch: Union[Launch, None] = None
    place: Grid = ()
    grid: Grid = ()
    rank: int = 0
    counts: dict[Hashable, int]
    known: dict[Hashable, NkiTensor]
    preset: set[tuple[int, int]]


_local = _Local()


def begin(launch: Launch, core: _core.Core, place: Grid, grid: Grid, rank: int) -> None:
    """This thread runs the program at this place of a grid."""
    _local.core, _local.launch, _local.place, _local.grid, _local.rank = core, launch, place, grid, rank
    _local.counts, _local.known, _local.preset = {}, {}, set()


def end() -> None:
    """It no longer does."""
    _local.core = _local.launch = None
    _local.place = _local.grid = ()


def inside() -> bool:
    """Is a kernel running?"""
    return _local.core is not None


def current() -> _core.Core:
    """The core that the running kernel is on."""
    core = _local.core
    if core is None:
        raise _core.Error("tiles and instructions exist inside a kernel only: call it, or nki.simulate(kernel)(...)")
    return core


def core() -> _core.Core | None:
    """The same, or None where no kernel is running."""
    return _local.core


def rank() -> int:
    return _local.rank


def preset(tile: _core.View) -> None:
    """A tile of PSUM holds what no product has made: `tile += product` reads it, as the array cannot add to it."""
    _local.preset.add(tile.allocation)


def is_preset(tile: _core.View) -> bool:
    return (tile.allocation in _local.preset and not tile.touched()) or bool(tile.sums() & 4)


# ---- the grid ----

def grid_id(axis: int = 0) -> int:
    return _local.place[axis] if axis < len(_local.place) else 0


def grid_size(axes: Union[int, Sequence[int], None] = None) -> Any:
    """Programs along an axis, each of some axes, or all there are."""
    if axes is None:
        return math.prod(_local.grid)
    if isinstance(axes, Sequence):
        return tuple(grid_size(a) for a in axes)
    return _local.grid[axes] if axes < len(_local.grid) else 1


def grid_rank() -> int:
    return len(_local.grid)


# ---- memory ----

def known(key: Hashable, make: Callable[[], NkiTensor]) -> NkiTensor:
    """What the program has made under this key, for itself alone."""
    if key not in _local.known:
        _local.known[key] = make()
    return _local.known[key]


def hbm(name: str, dtype: DType, shape: Sequence[int], shared: bool) -> NkiTensor:
    """A tensor in HBM; shared: one for all programs, by its name and which one of its shape it is."""
    core, launch = current(), _local.launch

    def make() -> NkiTensor:
        made: NkiTensor = core.hbm(name or "hbm", dtype.format, shape, dtype, None, True, False, shared)
        if launch is not None:
            launch.shown.add(made)
        return made

    if not shared or launch is None or len(launch.programs) == 1:
        return make()
    key = (name, tuple(shape), dtype)
    _local.counts[key] = _local.counts.get(key, 0) + 1
    return launch.same(core, key + (_local.counts[key],), make)
