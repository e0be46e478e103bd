"""New tiles of SBUF and PSUM, and new tensors in HBM.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _core, arrays, dtypes, isa
from .formats import DType
from .memories import HBM, PSUM, SBUF, name_of, space_of
from .running import current, hbm, known, preset
from .tensor import Format, NkiTensor, Number


def tile(shape: Sequence[int], dtype: Format, space: int = SBUF, name: str = "result", later: bool = False) -> NkiTensor:
    """A new tile that may be filled in part; later: it may never be used, and has no memory before it is."""
    shape = tuple(int(s) for s in shape)
    to = dtypes.of(dtype)
    return _begun(name, space, to, shape, 0, -1, later)


def _begun(name: str, space: int, to: DType, shape: tuple[int, ...], partition: int, byte: int,
           later: bool = False) -> NkiTensor:
    if len(shape) > 5:  # a view of one with fewer axes
        return _begun(name, space, to, (shape[0], math.prod(shape[1:])), partition, byte, later).reshaped(shape)
    made: NkiTensor = current().tile(name, space, to.format, shape if len(shape) > 1 else shape + (1,), to, partition,
                                     byte, False, later)
    return made


def placed(buffer: Any, block: Sequence[int], shape: Sequence[int], dtype: DType) -> Any:
    """Where a buffer of neuronxcc.nki.compiler puts the tile of this block, of [P, ...]; None: where there is room."""
    if not hasattr(buffer, "address"):
        return None
    return buffer.address(block, shape[0], math.prod(shape[1:]) * dtype.itemsize)


def new(shape: Sequence[int], dtype: Format, buffer: Any, name: str, address: Any = None) -> NkiTensor:
    """A tile [P, ...] of SBUF or PSUM with nothing in it, at an address if there is one, or a tensor in HBM."""
    space, to = space_of(buffer), dtypes.of(dtype)
    shape = tuple(int(s) for s in shape)
    if space == HBM:
        return hbm(name, to, shape, name_of(buffer) == "shared_hbm")
    if address is None:
        address = placed(buffer, (), shape, to)
    start, byte = (0, None) if address is None else address if isinstance(address, (tuple, list)) else (0, address)
    if byte is not None and int(byte) < 0:
        raise _core.Error(f"'{name or 'tile'}' is to begin at byte {int(byte)} of its partitions")
    return _begun(name or "tile", space, to, shape, int(start or 0), -1 if byte is None else int(byte))


def constant(numbers: Any, dtype: Format = None, name: str = "constant") -> NkiTensor:
    """A tensor in HBM with these numbers."""
    array = arrays.given(numbers) if dtype is None else arrays.Given(numbers, dtype)
    if array is None:
        raise TypeError(f"{type(numbers).__name__} is no array")
    made: NkiTensor = current().hbm(name, array.dtype.format, array.shape, array.dtype, array.array, False)
    return made


def table(numbers: Any, dtype: Format = None, name: str = "constant") -> NkiTensor:
    """The same, of an array that the kernel does not see and that may have been there before."""
    key = (name, str(numbers.dtype), numbers.shape, numbers.tobytes(), str(dtype))
    return known(key, lambda: constant(numbers, dtype, name))


def fill(made: NkiTensor, value: Number) -> None:
    """memset of all of a new tile. Zeros in PSUM wait for a use: a product that writes all of it needs none (measured:
    device.md)."""
    zeros = made.space == PSUM and not value and math.copysign(1, value) > 0
    if zeros and made.core.observer is None and made.zeros():
        return
    isa.memset(made, value)
    if value and made.space == PSUM:
        preset(made)


_core.fills(isa.memset)
