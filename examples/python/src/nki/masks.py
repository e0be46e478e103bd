"""Masks: which elements of a result an instruction computes. A box of its axes shrinks the views. Of any other mask
the box around it is computed into a tile of its own, and tensor_copy_predicated copies what the mask names; DMA moves
these elements alone, run by run. All others of the destination stay as they are.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import _core, isa, tiles
from ._numpy import np
from .formats import DType
from .index import Rows, Scattered
from .tensor import NkiTensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

Mask = Any  # a Box, an array of truth, True or None for everything


class Box(tuple[slice, ...]):
    """Slices of each axis; inside: which elements between them, None = all. shape: of what the mask is of."""

    inside: NDArray[Any] | None = None
    shape: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        return any(b.start == b.stop for b in self)

    @property
    def full(self) -> NDArray[Any]:
        """The mask that it was made from."""
        made = np.zeros(self.shape, bool)
        made[tuple(self)] = True if self.inside is None else self.inside
        return made


def _box(slices: Iterable[slice], shape: Sequence[int], inside: NDArray[Any] | None = None) -> Box:
    made = Box(slices)
    made.shape, made.inside = tuple(shape), inside
    return made


def _over(mask: Any, shape: Sequence[int]) -> NDArray[Any]:
    """The mask as an array of this shape."""
    named = np.asarray(mask.full if isinstance(mask, Box) else mask, bool)
    shape = tuple(shape)
    try:
        return np.broadcast_to(named, shape)
    except ValueError:
        pass
    if named.size == np.prod(shape):
        return named.reshape(shape)
    raise _core.Error(f"a mask of {list(named.shape)} does not spread over a tile of {list(shape)}")


def box_of(mask: Mask, shape: Sequence[int]) -> Box | None:
    """The box around what a mask names; None = everything."""
    if mask is None or mask is True or isinstance(mask, Box) and mask.shape == tuple(shape):
        return mask if isinstance(mask, Box) else None
    if isinstance(mask, NkiTensor):
        raise _core.Error("a mask is made of indices; a tile that tells where goes to nl.where")
    mask = _over(mask, shape)
    if mask.all():
        return None
    slices = []
    for axis in range(mask.ndim):
        line = np.flatnonzero(mask.any(axis=tuple(a for a in range(mask.ndim) if a != axis)))
        if not len(line):
            return _box((slice(0, 0) for _ in shape), shape)
        step = int(line[1] - line[0]) if len(line) > 1 else 1
        even = len(line) < 2 or (np.diff(line) == step).all()
        slices.append(slice(int(line[0]), int(line[-1]) + 1, step if even else 1))
    inside = mask[tuple(slices)]
    return _box(slices, shape, None if inside.all() else inside)


def bools(mask: Mask, shape: Sequence[int]) -> NDArray[Any]:
    """What a mask names, spread over a shape."""
    named: Any = getattr(mask, "full", mask)
    return np.broadcast_to(named, tuple(shape))


def engine_box(mask: Mask, shape: Sequence[int]) -> Box | None:
    """The same where engines can begin: at a quadrant of the partitions."""
    box = box_of(mask, shape)
    if not box or not shape:
        return box
    rows = box[0]
    count = rows.stop - rows.start
    if count <= 1 and rows.start == 0 or not count:
        return box
    if rows.step == 1 and (rows.start == 0 or rows.start == 64 or (rows.start in (32, 96) and count <= 32)):
        return box
    slices = (slice(0, rows.stop), *box[1:])
    return _box(slices, shape, box.full[slices])


def whole(shape: Sequence[int]) -> Box:
    """The box of everything."""
    return _box((slice(0, n) for n in shape), shape)


def whole_box(mask: Mask, shape: Sequence[int]) -> Box | None:
    """A mask of what no instruction computes in part."""
    box = box_of(mask, shape)
    return None if box is None else _box((slice(0, n) for n in shape), shape, box.full)


def reduced_box(box: Box | None, axes: Sequence[int], shape: Sequence[int]) -> Box | None:
    """The mask of a reduction's results, of this shape: where anything has been reduced."""
    return None if box is None else engine_box(box.full.any(axis=tuple(axes), keepdims=True).reshape(shape), shape)


def cut(value: Any, box: Sequence[slice] | None) -> Any:
    """The part of an operand; axes of one element stay, of a column [P, 1] the partitions are cut."""
    if box is None or not isinstance(value, (NkiTensor, Scattered, Rows)):
        return value
    if len(value.shape) != len(box):
        box = [*box[:1], *(slice(None) for _ in value.shape[1:])]
    key = tuple(slice(None) if size == 1 and (b.start, b.stop) != (0, 0) else b for b, size in zip(box, value.shape))
    if isinstance(value, (Scattered, Rows)):
        return value.part(key)
    return value[key]


# ---- elements of a box ----

_LEAST = {"float8_e4m3fn": 448.0, "int8": 127, "int16": 32767, "int32": 2 ** 31 - 1, "uint8": 255, "uint16": 65535,
          "uint32": 2 ** 32 - 1, "bool_": 1}
_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "logical_and": 1, "logical_or": 0, "logical_xor": 0,
            "bitwise_or": 0, "bitwise_xor": 0, "abs_max": 0, "maximum": None, "minimum": None, "bitwise_and": None}


def neutral(op: str, dtype: DType) -> float:
    """The number that changes no reduction by this operator."""
    if op not in _NEUTRAL:
        raise _core.Error(f"a reduction by {op} takes no mask that is no box of its axes")
    number = _NEUTRAL[op]
    if number is not None:
        return number
    most = _LEAST.get(str(dtype), float("inf"))
    signed = not str(dtype).startswith("u") and dtype != "bool_"
    if op == "bitwise_and":
        return -1 if signed else most
    if op == "minimum":
        return most
    return (-most - (1 if str(dtype).startswith("int") else 0)) if signed else 0


def predicate_of(inside: NDArray[Any]) -> NkiTensor:
    """Ones and zeros in a tile, loaded by dma_copy."""
    flat = np.ascontiguousarray(inside, dtype=np.uint8).reshape(inside.shape[0], -1)
    made = tiles.tile(flat.shape, "uint8", name="mask")
    isa.dma_copy(made, tiles.table(flat))
    return made


def copy_inside(dst: NkiTensor, src: NkiTensor, inside: NDArray[Any]) -> None:
    """dst = src where inside is true."""
    if src.dtype != dst.dtype:
        narrow = tiles.tile(src.shape, dst.dtype)
        isa.tensor_copy(narrow, src)
        src = narrow
    isa.tensor_copy_predicated(dst, src, predicate_of(inside).reshaped(tuple(dst.shape)))


def filled(value: NkiTensor, box: Box | None, number: float) -> NkiTensor:
    """The part of an operand, with a number where the mask is false: the view itself where there is no such place."""
    part: NkiTensor = cut(value, box)
    if box is None or box.inside is None:
        return part
    made = tiles.tile(part.shape, part.dtype)
    isa.memset(made, number)
    isa.tensor_copy_predicated(made, part, predicate_of(box.inside).reshaped(tuple(part.shape)))
    return made
