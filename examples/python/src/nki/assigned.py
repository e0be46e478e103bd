"""tile[...] = value, where the kernel has another name for the value and may use it again: it gets a tile of its own
first, and the place a copy. Without a name what fills the value fills the place, as no other instruction would be there.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

from . import moves
from .tensor import NkiTensor


def assign(tensor: NkiTensor, key: Any, value: Any, named: bool) -> None:
    waits = value.core.pending if named and isinstance(value, NkiTensor) else None
    place = tensor.place(key) if waits is not None and waits.tile is value else None
    if waits is None or not isinstance(place, NkiTensor):
        moves.assign(tensor, key, value)
        return
    value.core.settle()
    if waits.by_dma and (waits.box is not None or (place.partition or 0) % 32):
        value.core.pending = waits  # once more: a transfer may begin anywhere
    elif waits.box is not None:
        moves.put_inside(place, value, waits.box)
        return
    moves.assign(tensor, key, value)
