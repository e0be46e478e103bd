"""Numbers that move as they are: assignments, loads and stores, fills, copies, views spread out. Docstrings say what
instructions a call is.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _core, arrays, dtypes, isa, scattered
from ._numpy import np
from .index import Placed, Rows, Scattered, Wide, agree
from .masks import Box, Mask, bools, box_of, copy_inside, cut, engine_box, whole, whole_box
from .memories import HBM, PSUM, SBUF
from .operators import Op, named
from .results import result, taken
from .running import current, preset
from .tensor import Format, NkiTensor, Number
from .tiles import tile


class Sum:
    """What is added to the place that it is assigned to."""

    def add_to(self, place: NkiTensor) -> None:
        raise NotImplementedError


# ---- assignments ----

def assign(tensor: NkiTensor, key: Any, value: Any) -> None:
    """tensor[key] = value."""
    waits = taken(value) if isinstance(value, NkiTensor) else None
    place = tensor.place(key)
    if isinstance(place, Wide):
        if waits is not None:
            waits.materialise()
        put_in_pieces(place, value, None if waits is None else waits.box)
        return
    if isinstance(value, NkiTensor) and isinstance(place, NkiTensor) and same_place(place, value):
        return
    if place.space == PSUM and isinstance(place, NkiTensor):
        preset(place)
    if isinstance(value, NkiTensor) and value.size == place.size:
        agree("assignment", place, value)
    if waits is not None:
        direct = in_shape(place, value.shape) if fits(place, value, waits.by_dma) else None
        if direct is not None:
            waits.emit(direct)
            return
        waits.materialise()
        if waits.box is not None:
            put_inside(place, value, waits.box)
            return
    put(place, value)


def packed(wide: Wide[NkiTensor]) -> NkiTensor:
    """A tile [P, everything else] with the elements of a view that no pattern can follow: tensor_copy in pieces."""
    made = tile((wide.shape[0], math.prod(wide.shape[1:])), wide.dtype)
    for there, here, _ in wide.pieces(made):
        isa.tensor_copy(here, there)
    made.copied = True
    return made


def put_in_pieces(wide: Wide[NkiTensor], value: Any, box: Box | None) -> None:
    """Of a value that a mask made in part, that part."""
    if not isinstance(value, NkiTensor):
        value = full((wide.shape[0], math.prod(wide.shape[1:])), value, wide.dtype)
        current().settle()
    elif value.size == math.prod(wide.shape):
        agree("assignment", wide, value)
    else:
        value = alike(value, wide.shape)
    if value.allocation == wide.tensor.allocation:
        value = copy(value)  # pieces must not find what others wrote
    named = None if box is None else _spread_box(box, wide.shape).full
    if wide.ndim <= _core.MAX_RANK or value.shape[0] != wide.shape[0]:  # of more axes a value has all but one in one
        value = value.reshaped(wide.shape)
    for there, here, part in wide.pieces(flat(value)):
        if named is None:
            isa.tensor_copy(there, here)
        else:
            put_inside(there, here, box_of(named[part], there.shape) or whole(there.shape))


def in_shape(x: NkiTensor, shape: Sequence[int]) -> NkiTensor | None:
    """The view in another shape, or None where that needs a copy."""
    try:
        return x if x.shape == shape else x.reshaped(shape)
    except _core.Error:
        return None


def flat(x: NkiTensor) -> NkiTensor:
    """[P, everything else], copied where the axes do not follow each other."""
    shape = (x.shape[0], math.prod(x.shape[1:]))
    there = in_shape(x, shape)
    return copy(x).reshaped(shape) if there is None else there


def same_place(a: NkiTensor, b: NkiTensor) -> bool:
    return a.owner == b.owner and a.element_offset == b.element_offset and a.shape == b.shape and a.strides == b.strides


def at_a_quadrant(x: NkiTensor) -> bool:
    """Does a view of a tile begin where engines can: at partition 0, 32, 64 or 96? Elsewhere only DMA reaches."""
    return x.space == HBM or x.element_offset * x.itemsize // (x.base.strides[0] * x.base.itemsize) % 32 == 0


def on_engines(x: NkiTensor) -> NkiTensor:
    """The same view, where engines can begin; NKI's compiler refuses others, too."""
    if not at_a_quadrant(x):
        first = x.element_offset * x.itemsize // (x.base.strides[0] * x.base.itemsize)
        raise _core.Error(f"{list(x.shape)} of '{x.name}' {list(x.base.shape)} begins at partition {first}; engines "
                          "begin at partition 0, 32, 64 or 96: a transfer (dma_copy, nl.load, nl.store) may move it")
    return x


def fits(place: Any, value: NkiTensor, by_dma: bool = False) -> bool:
    """May what fills value fill this place instead? A transfer begins anywhere, and casts."""
    if not (isinstance(place, NkiTensor) and place.size == value.size and place.space != HBM and
            place.shape[0] == value.shape[0] and place.space == value.space):
        return False
    return place.dtype == value.dtype if at_a_quadrant(place) else by_dma


def put(place: Any, value: Any) -> None:
    """A copy, by the engine that reaches both; numbers fill."""
    if isinstance(value, Sum):
        value.add_to(place)
    elif isinstance(place, Wide):
        put_in_pieces(place, value, None)
    elif not isinstance(value, (NkiTensor, Scattered, Rows, Placed)):
        if isinstance(place, Scattered):
            isa.dma_copy(place, full(place.shape, value, place.dtype))
        else:
            isa.memset(place, value)
    elif isinstance(place, Scattered) and isinstance(value, NkiTensor):
        isa.dma_copy(place, alike(value, place.shape))
    elif not isinstance(value, NkiTensor) or HBM in (place.space, value.space):
        isa.dma_copy(place, value)
    else:
        isa.tensor_copy(on_engines(place), alike(on_engines(value), place.shape))


def put_inside(place: Any, value: NkiTensor, box: Box) -> None:
    """The same of a mask's elements alone."""
    if box.empty:
        return
    if value.shape != tuple(place.shape):
        box = _spread_box(box, tuple(place.shape))
        value = alike(value, tuple(place.shape))
    part = cut(place, box) if box.inside is None else place
    by_dma = isinstance(part, Scattered) or HBM in (place.space, value.space)
    if not by_dma and box.inside is None:
        put(part, cut(value, box))
    elif by_dma:
        move_inside(place, value, box)
    else:
        over = engine_box(box, box.shape)
        assert over is not None and over.inside is not None
        copy_inside(cut(on_engines(place), over), cut(value, over), over.inside)


def _spread_box(box: Box, shape: Sequence[int]) -> Box:
    full = box.full if box.full.size == math.prod(shape) else np.broadcast_to(box.full, shape)
    return box_of(full, shape) or whole(shape)


def move_inside(dst: Any, src: Any, box: Box | None, **options: Any) -> None:
    """dma_copy of what a mask names."""
    if box is not None and box.empty:
        return
    if box is None or box.inside is None:
        isa.dma_copy(cut(dst, box), cut(src, box), **options)
        return
    for to, of in scattered.pairs(dst, src, box.full):
        isa.dma_copy(to, of, **options)


# ---- views spread out ----

def alike(value: NkiTensor, shape: Sequence[int]) -> NkiTensor:
    """A view with axes of one element spread out to a shape; partitions are copied, as engines need them."""
    if tuple(value.shape) == tuple(shape):
        return value
    if value.size == math.prod(shape):
        return value.reshaped(tuple(shape))
    return broadcast_to(value, shape)


def broadcast_to(x: NkiTensor, shape: Sequence[int], dtype: Format | None = None) -> NkiTensor:
    """A view; from one partition to many a copy (a product with ones, as the Tensor engine does it for the others)."""
    if dtype is not None and dtypes.of(dtype) != x.dtype:
        return copy(broadcast_to(x, shape), dtype=dtype)
    shape = tuple(shape)
    steps, sizes = list(x.strides), list(x.shape)
    while len(sizes) < len(shape):
        sizes.insert(1, 1)
        steps.insert(1, 1)
    if x.space != HBM and sizes[0] == 1 and shape[0] > 1:
        return _spread(x, shape)
    for i, (have, want) in enumerate(zip(sizes, shape)):
        if have != want:
            if have != 1:
                raise ValueError(f"broadcast_to: {tuple(x.shape)} does not spread to {shape}")
            sizes[i], steps[i] = want, 0
    return x.strided(sizes, steps)


def _spread(x: NkiTensor, shape: Sequence[int]) -> NkiTensor:
    """partition_broadcast, into the tile that it is assigned to."""
    row = on_engines(x) if x.space == SBUF else copy(x)

    def emit(dst: NkiTensor) -> None:
        apart = dst.allocation != row.allocation
        to = dst if apart else tile(dst.shape, dst.dtype)
        _core.instruction["partition_broadcast"](dst.core, to, row)
        if not apart:
            isa.tensor_copy(dst, to)
    made = result((shape[0], *x.shape[1:]), x.dtype, emit)
    return made if made.shape == shape else broadcast_to(made, shape)


# ---- loads and stores: dma_copy ----

def load(src: Any, mask: Mask | None = None, dtype: Format | None = None, **_: Any) -> NkiTensor:
    """A new tile with the numbers of a tensor in HBM: dma_copy."""
    shape = tuple(src.shape)
    box = box_of(mask, shape)
    scattered.within(src, box)

    def emit(dst: NkiTensor) -> None:
        move_inside(dst.reshaped(shape) if dst.shape != shape else dst, src, box)
    return result(shape, dtype or src.dtype, emit, box=box, exact=True)


def store(dst: Any, value: Any, mask: Mask | None = None, **_: Any) -> None:
    """dst in HBM = value: dma_copy. Numbers and values of PSUM go through a tile of SBUF."""
    if isinstance(value, (Scattered, Rows, Placed)):
        value = load(value)
    elif not isinstance(value, NkiTensor):
        value = full(dst.shape, value, dst.dtype)
    if value.space == PSUM:
        value = copy(value, dtype=dst.dtype)
    box = box_of(mask, tuple(dst.shape))
    if value.size == math.prod(dst.shape):
        agree("store", dst, value)
    else:
        value = alike(value, dst.shape)
    same = value if value.shape == tuple(dst.shape) else value.reshaped(tuple(dst.shape))
    move_inside(dst, same, box)


def atomic_rmw(dst: Any, value: Any, op: Op, mask: Mask | None = None, oob_mode: Any = isa.oob_mode.error,
               unique_indices: bool = True, **_: Any) -> None:
    """dst in HBM += value: dma_compute, which adds."""
    if named(op).name != "add":
        raise _core.Error(f"atomic_rmw: a DMA adds; {named(op).name} is none of its operators")
    box, value = box_of(mask, tuple(dst.shape)), in_sbuf(value)
    even = (box is None or box.inside is None) and not isinstance(dst, Scattered)
    parts = iter([(cut(dst, box), cut(value, box))]) if even else scattered.pairs(
        dst, value, None if box is None else bools(box, dst.shape))
    for place, part in parts:
        isa.dma_compute(place, [place, part], "add", None, unique_indices, oob_mode)


def gather_flattened(data: NkiTensor, indices: NkiTensor, axis: int = 0, mask: Mask | None = None,
                     dtype: Format | None = None, **_: Any) -> NkiTensor:
    """result[p, i] = data[p, indices[p, i]]: nc_n_gather."""
    return result(indices.shape, dtype or data.dtype, lambda dst: isa.nc_n_gather(dst, data, indices),
                  box=whole_box(mask, tuple(indices.shape)))


def loaded(x: Any, mask: Mask | None = None) -> Any:
    """Operands in HBM are loaded first. Of indices that leave a tensor those are looked up that a mask names."""
    apart = isinstance(x, (Scattered, Rows, Placed))
    if apart or isinstance(x, NkiTensor) and x.space == HBM:
        return load(x, mask=mask if apart else None)
    return on_engines(x) if isinstance(x, NkiTensor) else x


def in_sbuf(tensor: NkiTensor) -> NkiTensor:
    return copy(tensor) if tensor.space == PSUM else tensor


# ---- fills and copies ----

def full(shape: Sequence[int], fill_value: Number, dtype: Format, mask: Mask | None = None, space: int = SBUF,
         **_: Any) -> NkiTensor:
    """memset."""
    box = engine_box(mask, shape)
    return result(shape, dtype, lambda dst: isa.memset(cut(dst, box), fill_value), space, box=box)


def copy(x: Any, mask: Mask | None = None, dtype: Format | None = None, **_: Any) -> NkiTensor:
    """tensor_copy."""
    shape = tuple(x.shape)
    if isinstance(x, Scattered) or x.space == HBM:
        return load(x, mask=mask, dtype=dtype)
    box = engine_box(mask, shape)
    return result(shape, dtype or x.dtype, lambda dst: isa.tensor_copy(cut(dst, box), cut(x, box)), box=box)


def static_cast(x: Any, dtype: Format) -> Any:
    """A copy in another format; of an array outside of kernels an array, or nki.tensor where NumPy lacks the format."""
    if isinstance(x, NkiTensor):
        return copy(x, dtype=dtype)
    to = dtypes.of(dtype)
    if isinstance(x, arrays.Given) and x.dtype != to:
        x = x.numpy()
    return np.asarray(x, to.numpy) if to.numpy else x if isinstance(x, arrays.Given) else arrays.Given(x, to)


def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    """A view with one more axis, of one element."""
    return x.expand_dim(axis)
