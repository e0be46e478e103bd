"""Tensors of a kernel: handles to views of tiles and of HBM, cut without copies.

What a tensor does by instructions (tensor[...] = value, a + b) is done by calls.py, which is above this file and the
instructions, and says so when it is imported: worked_by(...).

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, SupportsFloat, SupportsIndex, Union

from . import _core, arrays, dtypes, index as _index
from .memories import BUFFERS, HBM, MemoryRegion, region_of

Number = Union[SupportsFloat, SupportsIndex]
Operand = Union["NkiTensor", Number]  # what an operator takes
Format = object  # what dtypes.of knows: a DType, a name, NumPy's, ml_dtypes' or torch's dtype


class Work(Protocol):
    """Who issues the instructions that a tensor's methods and operators stand for."""

    def assign(self, tensor: NkiTensor, key: Any, value: Any, has_name: bool) -> None: ...

    def packed(self, wide: _index.Wide[NkiTensor]) -> NkiTensor: ...

    def broadcast_to(self, x: NkiTensor, shape: Sequence[int]) -> NkiTensor: ...

    def cast(self, x: NkiTensor, dtype: Format) -> NkiTensor: ...

    def call(self, op: Any, *args: Any, **options: Any) -> NkiTensor: ...

    def in_place(self, op: str, x: NkiTensor, y: Any) -> NkiTensor: ...


class _Above:
    work: Work


def worked_by(work: Work) -> None:
    """From now on instructions are issued by this one."""
    _Above.work = work


def call(op: Any, *args: Any, **options: Any) -> NkiTensor:
    """op(x), op(x, y), op(x, axis) on tiles: a new tile."""
    return _Above.work.call(op, *args, **options)


_Method = Callable[["NkiTensor", Any], "NkiTensor"]


def _operator(name: str, turned: bool = False) -> _Method:
    def apply(self: NkiTensor, other: Any) -> NkiTensor:
        return call(name, other, self) if turned else call(name, self, other)
    return apply


def _operators(name: str) -> tuple[_Method, _Method, _Method]:
    """x + y, y + x, x += y."""
    def in_place(self: NkiTensor, other: Any) -> NkiTensor:
        return _Above.work.in_place(name, self, other)
    return _operator(name), _operator(name, True), in_place


class NkiTensor(_core.View):
    """A view [P, ...] of SBUF or PSUM, or of a tensor in HBM."""

    __slots__ = ()
    __array_ufunc__ = None  # grid + tile is the tile's to say

    @property
    def buffer(self) -> MemoryRegion:
        return region_of(self.space)

    @property
    def base_tensor(self) -> NkiTensor:
        """The tensor that it views."""
        return self.base

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def as_tile(self) -> NkiTensor:
        """Older kernels ask a view for it, which is one."""
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NkiTensor:
        try:
            view = self.index(key)
            if view is not NotImplemented:
                return view
            found = _index.view(self, key)
        except IndexError as refusal:
            found = _index.beyond(self, key, refusal)
        return _Above.work.packed(found) if type(found) is _index.Wide else found

    def place(self, key: Any) -> Any:
        """What is at this index, to be written: a view, or what only DMA or several instructions can follow."""
        view = self.index(key)
        return _index.view(self, key) if view is NotImplemented else view

    def __setitem__(self, key: Any, value: Any) -> None:
        named = sys.getrefcount(value) > UNNAMED  # before the call, which is one more
        _Above.work.assign(self, key, value, named)

    def __repr__(self) -> str:
        first = None if self.is_indirect() else self.partition
        where = "" if first is None else f", partitions {first} to {first + self.shape[0] - 1}"
        return f"<{BUFFERS[self.space]} '{self.name}' {self.dtype!s} {list(self.shape)}{where}>"

    # ---- views ----

    def ap(self, pattern: Sequence[Sequence[int]], offset: int | None = None, scalar_offset: Any = None,
           vector_offset: NkiTensor | None = None, indirect_dim: int = 0, dtype: Format = None) -> Any:
        """A view by [step, number] pairs, outermost first, in elements of the whole tensor, whatever this view of it
        is; offset: where it begins there (None: where this view does). Offsets may lie in tiles."""
        whole = self
        if not self.whole:
            offset = self.offset if offset is None else offset
            whole = self.base if self.base.dtype == self.dtype else self.base.view(self.dtype)
        if dtype is not None and dtypes.of(dtype) != self.dtype:
            whole = whole.view(dtype)
        if scalar_offset is None and vector_offset is None:
            return _index.leaving(whole, pattern, offset or 0)
        return _index.dynamic(whole, pattern, offset or 0, scalar_offset, vector_offset, indirect_dim)

    @property
    def offset(self) -> int:
        """Where the view begins, in elements of the whole tensor numbered as if it were packed."""
        if self.space == HBM:
            return self.element_offset
        base = self.base
        pitch = base.strides[0] * base.dtype.itemsize
        byte = self.element_offset * self.dtype.itemsize
        row = base.size // max(base.shape[0], 1) * base.dtype.itemsize
        return (byte // pitch * row + byte % pitch) // self.dtype.itemsize

    def get_pattern(self) -> list[list[int]]:
        """[step, number] of each axis, in elements of the tensor that it views."""
        return [[step, number] for step, number in zip(self.element_steps(), self.shape)]

    def element_steps(self) -> tuple[int, ...]:
        """Steps of the axes when the tensor is numbered as if it were packed."""
        if self.space == HBM:
            return self.strides
        base = self.base
        pitch, row = base.strides[0], base.size // max(base.shape[0], 1)
        scale = base.dtype.itemsize / self.dtype.itemsize
        return tuple(int(s // (pitch * scale) * (row * scale)) if abs(s) >= pitch * scale else s for s in self.strides)

    def is_contiguous(self) -> bool:
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.element_steps())):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    def reshape(self, *sizes: Any, shape: Any = None) -> NkiTensor:
        return self.reshaped(_listed(sizes if shape is None else (shape,)))

    def reshape_dim(self, dim: int, shape: Iterable[int]) -> NkiTensor:
        dim %= self.ndim
        return self.reshaped(self.shape[:dim] + tuple(shape) + self.shape[dim + 1:])

    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        start, end = start_dim % self.ndim, end_dim % self.ndim
        return self.reshaped(self.shape[:start] + (-1,) + self.shape[end + 1:])

    def view(self, dtype: Format) -> NkiTensor:
        to = dtypes.of(dtype)
        return self.view_as(to.format, to)

    def permute(self, *dims: Any) -> NkiTensor:
        return _index.permuted(self, _listed(dims))

    def broadcast(self, dim: int, size: int) -> NkiTensor:
        shape, strides = list(self.shape), list(self.strides)
        if shape[dim] != 1:
            raise ValueError(f"broadcast: axis {dim} has {shape[dim]} elements, not one")
        shape[dim], strides[dim] = size, 0
        return self.strided(shape, strides)

    def broadcast_to(self, shape: Sequence[int], dtype: Format = None) -> NkiTensor:
        """Axes of one element stand for many. Across partitions a copy is made, as an engine would."""
        return _Above.work.broadcast_to(self, shape)

    def expand_dim(self, dim: int) -> NkiTensor:
        dim %= self.ndim + 1
        return self.strided(self.shape[:dim] + (1,) + self.shape[dim:], self.strides[:dim] + (1,) + self.strides[dim:])

    expand_dims = expand_dim

    def squeeze_dim(self, dim: int) -> NkiTensor:
        dim %= self.ndim
        if self.shape[dim] != 1:
            raise ValueError(f"squeeze_dim: axis {dim} has {self.shape[dim]} elements")
        return self.strided(self.shape[:dim] + self.shape[dim + 1:], self.strides[:dim] + self.strides[dim + 1:])

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> NkiTensor:
        return self.index((slice(None),) * (dim % self.ndim) + (slice(start, end, step),))

    def select(self, dim: int, index: Any) -> Any:
        if isinstance(index, NkiTensor):
            return _index.selected(self, dim, index)
        return self.index((slice(None),) * (dim % self.ndim) + (index,))

    def vector_select(self, dim: int, vector_offset: NkiTensor) -> _index.Rows[NkiTensor]:
        """Rows along axis 0 that a tile of indices names: for DMA."""
        if dim % self.ndim:
            raise _core.Error("vector_select: rows are chosen along axis 0")
        return _index.Rows(self, vector_offset if vector_offset.ndim == 2 else
                           vector_offset.reshaped((vector_offset.size, 1)))

    def indirect(self, index: NkiTensor, num_elem: int = 0, inner: int = 1) -> NkiTensor:
        """[P, num_elem], or [P, num_elem, inner]: elements along the free axis that a tile of indices names, gathered
        where they are read and scattered where they are written; for the operands that NKI lists. Trainium3."""
        self.core.settle()
        made: NkiTensor = self.core.indirect(self, index, num_elem or 0, inner)
        return made

    def reinterpret_cast(self, dtype: Format) -> NkiTensor:
        return self.view(dtype)

    def assert_shape(self, shape: Sequence[int]) -> NkiTensor:
        if tuple(self.shape) != tuple(shape):
            raise AssertionError(f"'{self.name}' has the shape {tuple(self.shape)}, not {tuple(shape)}")
        return self

    def rearrange(self, src_pattern: _index.Axes, dst_pattern: _index.Axes,
                  fixed_sizes: Mapping[str, int] | None = None) -> NkiTensor:
        return _index.rearranged(self, src_pattern, dst_pattern, fixed_sizes or {})

    def four(self) -> NkiTensor:
        """Of an x4 format: the elements, with a last axis of four."""
        size = {18: 4}[self.dtype.format]
        strides = tuple(s * size for s in self.strides) + (1,)
        return self.strided(self.shape + (4,), strides, 0, self.dtype.four, self.dtype)

    # ---- numbers ----

    def numpy(self) -> Any:
        """The numbers, in a new array; formats that NumPy lacks as float32, which holds them exactly."""
        self.core.settle()
        return arrays.out(self)

    # ---- by instructions ----

    def astype(self, dtype: Format) -> NkiTensor:
        """A copy in another format."""
        return _Above.work.cast(self, dtype)

    def __neg__(self) -> NkiTensor:
        return call("negative", self)

    __add__, __radd__, __iadd__ = _operators("add")
    __sub__, __rsub__, __isub__ = _operators("subtract")
    __mul__, __rmul__, __imul__ = _operators("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operators("divide")
    __pow__, __rpow__, __ipow__ = _operators("power")
    __and__, __rand__, __iand__ = _operators("bitwise_and")
    __or__, __ror__, __ior__ = _operators("bitwise_or")
    __xor__, __rxor__, __ixor__ = _operators("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operators("left_shift")
    __rshift__, __rrshift__, __irshift__ = _operators("right_shift")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __mod__, __rmod__, _ = _operators("mod")

    def __abs__(self) -> NkiTensor:
        return call("abs", self)

    def __eq__(self, other: object) -> Any:
        return self._compared("equal", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("not_equal", other)

    __hash__ = _core.View.__hash__

    def _compared(self, op: str, other: Any) -> Any:
        """A tile of 1 and 0. Asked at once for its truth, as `if x == 1:` and `x in list` do, it says whether both are
        the same object, as the comparison of today's tensors does."""
        number = isinstance(other, SupportsFloat) and not isinstance(other, bool) and getattr(other, "shape", ()) == ()
        tile = isinstance(other, NkiTensor) and other.space != HBM and other.shape in (
            self.shape, self.shape[:1] + (1,) * (self.ndim - 1))
        if self.space == HBM or not (number or tile):
            return NotImplemented
        made = call(op, self, other)
        waits = self.core.pending
        if waits is not None and waits.tile is made:
            waits.truth = (self is other) == (op == "equal")
        return made

    def __bool__(self) -> bool:
        waits = self.core.pending
        if waits is None or waits.tile is not self or waits.truth is None:
            return True
        self.core.pending = None
        return bool(waits.truth)


class _Counter:
    count = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        self.count = sys.getrefcount(value)


def _unnamed() -> int:
    """References to a value that tile[...] = call() finds, in a __setitem__, of a call's result that waits; where a name
    makes none more, more than there ever are."""
    counter, value = _Counter(), object()
    counter[0] = value
    named = counter.count
    counter[0] = object()
    return counter.count + 1 if named > counter.count else sys.maxsize


UNNAMED = _unnamed()


def _listed(numbers: tuple[Any, ...]) -> tuple[int, ...]:
    """f(1, 2) and f((1, 2)) mean the same; 4 / 2 is 2."""
    listed = tuple(numbers[0]) if len(numbers) == 1 and isinstance(numbers[0], (tuple, list)) else numbers
    return tuple(int(n) if isinstance(n, float) and n.is_integer() else n for n in listed)


for _name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "xor", "lshift", "rshift", "mod"):
    for _operation in (f"__{_name}__", f"__r{_name}__"):  # places without a pattern are copied first
        setattr(_index.Scattered, _operation, getattr(NkiTensor, _operation))
for _operation in ("__neg__", "__abs__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(_index.Scattered, _operation, getattr(NkiTensor, _operation))
_core.register(NkiTensor)
