"""The memories that tiles and tensors lie in, by number and by name.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from . import _core

SBUF, PSUM, HBM = 0, 1, 2
BUFFERS = {SBUF: "sbuf", PSUM: "psum", HBM: "hbm"}


class MemoryRegion(enum.Enum):
    sbuf = "sbuf"
    psum = "psum"
    hbm = "hbm"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    def view(self, dtype: Any, shape: Any) -> Any:
        """A new tensor here: nl.ndarray, as NKI 0.1 spelt it."""
        return _New.ndarray(shape, dtype, self)


class _New:
    ndarray: Callable[..., Any]


def made_by(ndarray: Callable[..., Any]) -> None:
    """nki.language says how a tensor is made."""
    _New.ndarray = ndarray


_SPACE = {"sbuf": SBUF, "psum": PSUM, "hbm": HBM, "private_hbm": HBM, "shared_hbm": HBM}
_REGION = {SBUF: MemoryRegion.sbuf, PSUM: MemoryRegion.psum, HBM: MemoryRegion.shared_hbm}


def region_of(space: int) -> MemoryRegion:
    """What nki.language calls a memory."""
    return _REGION[space]


def name_of(buffer: object) -> str:
    """What a buffer= is called: a region, a name, a buffer of neuronxcc.nki.compiler."""
    return str(getattr(buffer, "buffer_name", None) or getattr(buffer, "name", None) or buffer)


def space_of(buffer: object) -> int:
    """The number of the memory that a buffer= means."""
    space = _SPACE.get(name_of(buffer))
    if space is None:
        raise _core.Error(f"{buffer!r} is no memory: sbuf, psum, hbm, private_hbm, shared_hbm")
    return space
