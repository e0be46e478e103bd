"""DMA between places that follow no pattern (index.py's Scattered): one transfer for each run of even steps.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union

from . import _core
from ._numpy import np
from .index import Placed, Rows, Scattered
from .memories import HBM
from .tensor import NkiTensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What a transfer takes: views, rows that a tile of indices chooses, places without a pattern, a view that moves.
Side = Union[NkiTensor, Rows[NkiTensor], Scattered[NkiTensor], Placed[NkiTensor]]


def _tensor_of(side: Any) -> NkiTensor:
    view: NkiTensor = side.tensor if type(side) is Scattered else side
    return view


def _places(side: Any, where: NDArray[Any] | None) -> NDArray[np.int64]:
    """How many elements after its tensor's first each element lies, in order; where: those that count, None = all."""
    place = np.zeros(side.shape, np.int64)
    tensor = _tensor_of(side)
    if type(side) is not Scattered:
        for axis, (size, step) in enumerate(zip(tensor.shape, tensor.strides)):
            place = place + step * np.arange(size).reshape([-1 if a == axis else 1 for a in range(tensor.ndim)])
        return place.reshape(-1) if where is None else place.reshape(-1)[where]
    place = np.zeros(1, np.int64)
    for axis, index in enumerate(side.indices):
        index = index.reshape(-1) if where is None else index.reshape(-1)[where]
        outside = index[(index < 0) | (index >= tensor.shape[axis])]
        if outside.size:
            raise _core.Error(f"'{tensor.name}': index {int(outside[0])} of axis {axis}, which has "
                              f"{tensor.shape[axis]}")
        place = place + index.astype(np.int64) * tensor.strides[axis]
    return place.reshape(-1)


def _pitch(tensor: NkiTensor) -> int:
    """Elements from a partition of a tile to the next."""
    return tensor.base.strides[0] * tensor.base.dtype.itemsize // tensor.dtype.itemsize


def _steps(tensor: NkiTensor, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """From each element to the next; -1 where that is neither within a partition nor straight across partitions."""
    steps = np.diff(places)
    if tensor.space == HBM:
        return steps
    pitch = _pitch(tensor)
    partition = (places + tensor.element_offset) // pitch
    return np.where((np.diff(partition) != 0) & (steps % pitch != 0), -1, steps)


def _runs(dst: NDArray[np.int64], src: NDArray[np.int64]) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """First element, count and steps of each stretch in which both sides, given by their steps, go on evenly."""
    steps = np.stack([dst, src])
    at, end = 0, dst.size + 1
    while at < end:
        count = 1
        if at + 1 < end and steps[0, at] > 0 and steps[1, at] >= 0:
            other = np.flatnonzero((steps[:, at:] != steps[:, at:at + 1]).any(axis=0))
            count = int(other[0]) + 1 if other.size else end - at
        yield at, count, (int(steps[0, at]), int(steps[1, at])) if count > 1 else (1, 1)
        at += count


def _view(tensor: NkiTensor, place: int, count: int, step: int) -> NkiTensor:
    if tensor.space == HBM:
        return tensor.strided((count,), (step,), place)
    pitch = _pitch(tensor)
    if count > 1 and step >= pitch:
        return tensor.strided((count, 1), (step, 1), place)
    return tensor.strided((1, count), (pitch, step), place)


def within(side: Any, where: Any) -> None:
    """Refuses a slice that ends behind its tensor where no mask cuts it."""
    if where is None and isinstance(side, Scattered) and side.refusal:
        raise IndexError(side.refusal)


def pairs(dst: Side, src: Side, where: NDArray[Any] | None = None) -> Iterator[tuple[NkiTensor, NkiTensor]]:
    """Views of dst and of src, element by element in order, for each run; where: a mask of them."""
    for side in (dst, src):
        within(side, where)
    if np.prod(dst.shape) != np.prod(src.shape):
        raise _core.Error(f"dma_copy: dst has the shape {tuple(dst.shape)}, src {tuple(src.shape)}")
    where = None if where is None else where.reshape(-1)
    dst, src = (side.places() if type(side) is Rows else side for side in (dst, src))
    to, of, into, out_of = _places(dst, where), _places(src, where), _tensor_of(dst), _tensor_of(src)
    if not to.size:
        return
    for at, count, (dst_step, src_step) in _runs(_steps(into, to), _steps(out_of, of)):
        yield _view(into, int(to[at]), count, dst_step), _view(out_of, int(of[at]), count, src_step)
