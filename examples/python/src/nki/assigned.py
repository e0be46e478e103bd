"""tile[...] = value, where the kernel has another name for the value and may use it again: it gets a tile of its own
first, and the place a copy; so does a product that is added in PSUM and read again. Without a name what fills the value
fills the place, as no other instruction would be there.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import Any

from . import moves
from .frames import of_kernel
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


def has_name(value: NkiTensor) -> bool:
    """Has the kernel's function that is running a name for it?"""
    frame = of_kernel()
    return frame is not None and any(other is value for other in frame.f_locals.values())


def used_again(value: NkiTensor) -> bool:
    """Does the kernel's function that is running read a name of this value in a later line, before it has another?"""
    frame = of_kernel()
    if frame is None:
        return False
    names = [name for name, other in frame.f_locals.items() if other is value]
    return bool(names) and not _read(frame.f_code, frame.f_lasti).isdisjoint(names)


@functools.lru_cache(maxsize=4096)
def _read(code: CodeType, after: int) -> frozenset[str]:
    """Names that the instructions after this one read before they write them."""
    read: set[str] = set()
    written: set[str] = set()
    for one in dis.get_instructions(code):
        if one.offset <= after or not isinstance(one.argval, (str, tuple)):
            continue
        names = (one.argval,) if isinstance(one.argval, str) else one.argval
        if one.opname.startswith("LOAD"):
            read.update(name for name in names if name not in written)
        elif one.opname.startswith("STORE"):
            written.update(names[:1])
    return frozenset(read)
