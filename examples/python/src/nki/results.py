"""Results that are returned. A call returns a new tile. The instruction that fills it waits until something else
happens, so that `tile[...] = call` writes where it says without a copy, and `psum += product` accumulates.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .masks import Box, copy_inside, cut
from .memories import SBUF
from .running import current
from .tensor import Format, NkiTensor
from .tiles import tile

if TYPE_CHECKING:
    from numpy.typing import NDArray

Emit = Callable[[NkiTensor], Any]  # fills a tile, or a view that is like it


class Pending:
    """A result's tile and how it is filled; adds: how it is added to another; box: the part of it that is computed;
    by_dma: a transfer fills it, which may begin at any partition; truth: of a comparison by == or !=, what `if` hears."""

    truth: bool | None = None

    def __init__(self, tile: NkiTensor, emit: Emit, adds: Emit | None = None, box: Box | None = None,
                 by_dma: bool = False) -> None:
        self.tile, self.emit, self.adds, self.box, self.by_dma = tile, emit, adds, box, by_dma

    def materialise(self) -> None:
        self.emit(self.tile)


def result(shape: Sequence[int], dtype: Format, emit: Emit, space: int = SBUF, adds: Emit | None = None,
           box: Box | None = None, exact: bool = False) -> NkiTensor:
    """A tile that emit fills: all of it, or a mask's box. exact: it writes those elements of the box that the mask
    names, and no others."""
    core = current()
    core.settle()
    made = tile(shape, dtype, space, later=True)
    if box is not None and box.empty:
        emit, adds = _nothing, _nothing if adds else None
    elif box is not None and box.inside is not None and not exact:
        emit = _through_a_tile(emit, box, box.inside, space)
    core.pending = Pending(made, emit, adds, box, exact)
    return made


def _nothing(dst: NkiTensor) -> None:
    """What an instruction does of which a mask leaves nothing."""


def _through_a_tile(emit: Emit, box: Box, inside: NDArray[Any], space: int) -> Emit:
    """Fills a tile of its own, of which tensor_copy_predicated takes the elements that the mask names."""
    def chosen(dst: NkiTensor) -> None:
        whole = tile(dst.shape, dst.dtype, space)
        emit(whole)
        copy_inside(cut(dst, box), cut(whole, box), inside)
    return chosen


def taken(value: object) -> Pending | None:
    """The pending result that this tile stands for, which is now the caller's to fill; else None."""
    core = current()
    waits = core.pending
    if waits is not None and waits.tile is value:
        core.pending = None
        return waits
    return None


def onto(made: NkiTensor, dst: NkiTensor) -> None:
    """What would fill the tile that a call has just returned fills dst instead."""
    waits = taken(made)
    assert waits is not None
    waits.emit(dst)
