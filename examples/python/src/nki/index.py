"""Index expressions beyond ints and slices: grids of indices, offsets that lie in tiles, axes by name.

A grid (nl.arange, nl.mgrid, and sums and products of them) is a NumPy array of integers per axis. Where the places that
it names are evenly spaced along each of its axes, it is a view without a copy; other grids only DMA can follow, row by
row (Scattered).

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, Union

from . import _core
from ._numpy import np
from .memories import HBM

if TYPE_CHECKING:
    from numpy.typing import NDArray

View = TypeVar("View", bound=_core.View)
Pattern = Sequence[Sequence[int]]  # [step, number] of each axis, outermost first
Axes = Sequence[Union[str, Sequence[str]]]  # names, and names that share an axis


class Register:
    """A scalar of the sequencer; its value is known as soon as it has been loaded."""

    __slots__ = ("value",)

    def __init__(self, value: int = 0) -> None:
        self.value = int(value)

    def __index__(self) -> int:
        return self.value

    __int__ = __index__

    def __bool__(self) -> bool:
        return self.value != 0


def _register_operator(name: str) -> Callable[[Register, Any], Any]:
    def apply(self: Register, other: Any) -> Any:
        return getattr(int(self), name)(int(other))
    return apply


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "mod", "eq", "lt", "le", "gt", "ge", "ne"):
    setattr(Register, f"__{_name}__", _register_operator(f"__{_name}__"))
setattr(Register, "__hash__", object.__hash__)  # __eq__ took it away


def scalar(value: Any) -> int:
    """An int, of an int, a register or a tile of one element (read at once)."""
    if isinstance(value, _core.View):
        if "int" not in str(value.dtype):
            raise _core.Error(f"'{value.name}' is {value.dtype!s} and stands for a whole number: the device would read its "
                              "bits as one; cast it first, nl.copy(..., dtype=nl.int32)")
        value.core.settle()
        value.core.result(value)
        data = value.tobytes()
        return int.from_bytes(data, "little", signed=str(value.dtype).startswith("int"))
    return int(value)


def _expanded(tensor: _core.View, key: Any) -> list[Any]:
    """The key as one item per axis, with None between them kept."""
    items = list(key) if isinstance(key, tuple) else [key]
    named = sum(item is not None and item is not Ellipsis for item in items)
    if Ellipsis in [i for i in items if not _is_array(i)]:
        at = next(n for n, i in enumerate(items) if not _is_array(i) and i is Ellipsis)
        items[at:at + 1] = [slice(None)] * (tensor.ndim - named)
    return items + [slice(None)] * (tensor.ndim - named)


def _count(tensor: _core.View) -> int:
    return math.prod(tensor.shape)


def _is_array(item: object) -> bool:
    return np is not None and isinstance(item, np.ndarray)


def _rows(tensor: View, index: Any, rest: Sequence[Any]) -> Rows[View]:
    """tensor[tile of row numbers, rest]: rows of HBM that DMA gathers or scatters to."""
    line = view(tensor, (0,) + tuple(rest))
    kept = [(n, s) for n, s in zip(line.shape, line.strides) if n != 1] or [(1, 1)]
    sizes, steps = zip(*kept)
    all_rows = tensor.strided((tensor.shape[0],) + sizes, (tensor.strides[0],) + steps,
                              line.element_offset - tensor.element_offset)
    return Rows(all_rows, index.reshaped((_count(index), 1)))


def _holds(key: Any) -> bool:
    """A comparison of indices as an index, which older kernels write for a mask: does it hold for all?"""
    if type(key) is not bool and not (_is_array(key) and key.dtype == bool):
        return False
    if not np.all(key):
        raise _core.Error("a comparison as an index holds for a part of the tensor only: write it as mask=")
    return True


def view(tensor: View, key: Any) -> Any:
    """tensor[key], whatever the key is: a view, Rows, Scattered or Wide."""
    if _holds(key):
        return tensor
    items = _expanded(tensor, key)
    if tensor.space == HBM:
        tiles = [n for n, i in enumerate(items) if isinstance(i, _core.View) and _count(i) > 1]
        if tiles:
            return _chosen(tensor, items, tiles)
    items = [_plain(item) for item in items]
    if any(_is_array(item) for item in items):
        return _grid(tensor, items)
    return tensor.index(tuple(items))


def _chosen(tensor: View, items: list[Any], tiles: Sequence[int]) -> Any:
    """tensor[numbers, tile of indices, rest]: rows, where rest is the same for all of them; else place by place."""
    at = tiles[0]
    if len(tiles) == 1 and items[at].shape[0] == _count(items[at]):
        before = [_plain(i) for i in items[:at]]
        rest = _of_one_row([_plain(i) for i in items[at + 1:]], _count(items[at]))
        if rest is not None and all(isinstance(i, SupportsIndex) for i in before):
            inner = tensor.index((*before, *(slice(None),) * (tensor.ndim - at))) if before else tensor
            return _rows(inner, items[at], rest)
    return _place_by_place(tensor, items)


def _of_one_row(rest: Sequence[Any], rows: int) -> list[Any] | None:
    """Index expressions beside a tile of row numbers, for one of the rows: grids go along the tile's partitions with
    their first axis. None: they differ from row to row."""
    line = []
    for item in rest:
        if _is_array(item) and item.ndim > 1:
            if item.shape[0] not in (1, rows) or not (item == item[:1]).all():
                return None
            item = item[:1]
        line.append(item)
    return line


def numbers(tile: _core.View) -> NDArray[Any]:
    """The integers of a tile, read at once."""
    kind = str(tile.dtype)
    if "int" not in kind:
        raise _core.Error(f"indices are integers; those of '{tile.name}' are {kind}")
    tile.core.settle()
    tile.core.result(tile)
    return np.frombuffer(tile.tobytes(), kind).astype(np.int64).reshape(tuple(tile.shape))


def _place_by_place(tensor: View, items: Sequence[Any]) -> Any:
    """Tiles of indices as the numbers in them; slices beside them become axes of their own."""
    found = [numbers(i) if isinstance(i, _core.View) and _count(i) > 1 else _plain(i) for i in items if i is not None]
    slices = [n for n, i in enumerate(found) if isinstance(i, slice)]
    arrays = [i for i in found if _is_array(i)]
    if slices and all(a.ndim < 2 or a.size == a.shape[0] for a in arrays):
        arrays = [a.reshape(-1) for a in arrays]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    first = next(n for n, i in enumerate(found) if _is_array(i))
    before, after = sum(n < first for n in slices), sum(n > first for n in slices)
    given, number = iter(arrays), 0
    grids: list[Any] = []
    for n, item in enumerate(found):
        if isinstance(item, slice):
            line = np.arange(*item.indices(tensor.shape[n]))
            behind = before + after - 1 - number + (len(shape) if number < before else 0)
            grids.append(line.reshape((-1,) + (1,) * behind))
            number += 1
        else:
            grid = next(given) if _is_array(item) else np.asarray(item)
            grids.append(grid.reshape(grid.shape + (1,) * after) if grid.ndim else grid)
    return _grid(tensor, [np.asarray(g) for g in grids])


def beyond(tensor: View, key: Any, refusal: IndexError) -> Any:
    """tensor[key] where a slice or a number goes beyond the tensor, which a mask may leave out: looked at when used."""
    if np is None or tensor.space != HBM:
        raise refusal
    items = [_plain(item) for item in _expanded(tensor, key)]
    plain = all(all(p is None or isinstance(p, SupportsIndex) and not _is_array(p) and int(p) >= 0
                    for p in ((i.start, i.stop, i.step) if isinstance(i, slice) else (i,))) for i in items)
    if len(items) != tensor.ndim or not plain:
        raise refusal
    lines = [range(i.start or 0, size if i.stop is None else i.stop, i.step or 1) if isinstance(i, slice) else int(i)
             for i, size in zip(items, tensor.shape)]
    shape = tuple(len(line) for line in lines if isinstance(line, range))
    grids: list[NDArray[Any]] = []
    axis = 0
    for line in lines:
        grid = np.asarray(line)
        if isinstance(line, range):
            axis += 1
            grid = grid.reshape((-1,) + (1,) * (len(shape) - axis))
        grids.append(np.broadcast_to(grid, shape))
    return Scattered(tensor, grids, shape, str(refusal))


def _plain(item: Any) -> Any:
    if isinstance(item, Register):
        return int(item)
    if isinstance(item, range):  # nl.affine_range as an index
        return slice(item.start, item.stop, item.step)
    if isinstance(item, _core.View):
        return scalar(item)
    if isinstance(item, slice) and any(isinstance(part, (Register, _core.View)) for part in
                                       (item.start, item.stop, item.step)):
        return slice(*(None if p is None else scalar(p) for p in (item.start, item.stop, item.step)))
    if _is_array(item) and item.ndim == 0:
        return int(item)
    return item


def _grid(tensor: View, items: Sequence[Any]) -> Any:
    """All arrays broadcast against each other; slices beside them keep their axis in its place."""
    items = [i for i in items if i is not None]
    arrays = [i for i in items if _is_array(i)]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    slices = [n for n, i in enumerate(items) if isinstance(i, slice)]
    if slices:
        return _grid_beside_slices(tensor, items, shape, slices)
    found = _spread(tensor, items, shape)
    if found is None:
        return Scattered(tensor, [np.broadcast_to(np.asarray(i), shape) for i in items], shape)
    steps, origin = found
    no_view = any(s < 0 for s in steps) or len(shape) > _core.MAX_RANK
    if tensor.space == HBM and no_view:  # DMA follows it run by run
        return Scattered(tensor, [np.broadcast_to(np.asarray(i), shape) for i in items], shape)
    if no_view or _unmerged(shape, steps) > (4 if tensor.space != HBM else _core.MAX_RANK - 1):
        return Wide(tensor, shape, steps, origin)
    return tensor.strided(shape, steps, origin)


def _unmerged(shape: Sequence[int], steps: Sequence[int]) -> int:
    """Free axes that are left when those that follow each other have merged."""
    count = 0
    inner: tuple[int, int] | None = None
    for size, step in list(zip(shape, steps))[:0:-1]:
        if size == 1:
            continue
        if inner is None or step != inner[0] * inner[1]:
            count += 1
            inner = (step, size)
        else:
            inner = (inner[0], inner[1] * size)
    return count


def _spread(tensor: View, items: Sequence[Any], shape: tuple[int, ...]) -> tuple[tuple[int, ...], int] | None:
    """Steps and origin of the places that indices name, if these are within the tensor and evenly spaced. Where each
    index is so by itself nothing as large as the grid is made."""
    steps, origin, even = [0] * len(shape), 0, 0 not in shape
    for item, size, stride in zip(items, tensor.shape, tensor.strides):
        numbers = np.asarray(item)
        own = _steps(numbers) if even else None
        first = int(numbers.flat[0]) if numbers.size else 0
        if own is None:
            low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
            even = False
        else:
            ends = [s * (n - 1) for s, n in zip(own, numbers.shape)]
            low, high = first + sum(e for e in ends if e < 0), first + sum(e for e in ends if e > 0)
            for axis, (s, n) in enumerate(zip(own, numbers.shape), len(shape) - len(own)):
                steps[axis] += s * stride if n > 1 else 0
        if low < 0 or high >= size:
            return None
        origin += first * stride
    if even:
        return tuple(s if n > 1 else 1 for s, n in zip(steps, shape)), origin
    place = np.zeros(shape, np.int64)
    for item, stride in zip(items, tensor.strides):
        place = place + np.asarray(item).astype(np.int64) * stride
    together = _steps(place)
    return None if together is None else (together, int(place.flat[0]) if place.size else 0)


@functools.lru_cache(maxsize=256)
def _ramp(size: int) -> NDArray[np.int64]:
    return np.arange(size, dtype=np.int64)


def _steps(place: NDArray[Any]) -> tuple[int, ...] | None:
    """How far numbers lie apart along each axis, if they do so evenly; else None."""
    if not place.size:
        return tuple(1 if n == 1 else 0 for n in place.shape)
    origin = int(place.flat[0])
    steps: list[int] = []
    even: Any = np.int64(origin)
    for axis, size in enumerate(place.shape):
        step = int(place[(0,) * axis + (1,) + (0,) * (place.ndim - axis - 1)]) - origin if size > 1 else 1
        steps.append(step)
        if size > 1:
            even = even + (_ramp(size) * step).reshape((size,) + (1,) * (place.ndim - axis - 1))
    return tuple(steps) if bool((place == even).all()) else None


def _grid_beside_slices(tensor: View, items: Sequence[Any], shape: tuple[int, ...], slices: list[int]) -> View:
    """NumPy's places for the axes: arrays that stand together keep their place."""
    arrays = [n for n, i in enumerate(items) if not isinstance(i, slice)]
    first = tensor
    for n in slices:
        first = first.index((slice(None),) * n + (items[n],))
    place = np.zeros(shape, np.int64)
    for n in arrays:
        place = place + np.asarray(items[n], np.int64) * first.strides[n]
    steps = _steps(place)
    if steps is None:
        raise _core.Error(f"'{tensor.name}': indices that are not evenly spaced beside slices")
    before = [n for n in slices if n < arrays[0]]
    after = [n for n in slices if n > arrays[0]]
    return first.strided(tuple(first.shape[n] for n in before) + tuple(shape) + tuple(first.shape[n] for n in after),
                         tuple(first.strides[n] for n in before) + steps + tuple(first.strides[n] for n in after),
                         int(place.reshape(-1)[0]))


class Wide(Generic[View]):
    """A view with more axes than an access pattern has, or with steps backwards: instructions take it in pieces."""

    def __init__(self, tensor: View, shape: Sequence[int], steps: tuple[int, ...], origin: int) -> None:
        self.tensor, self.shape, self.steps, self.origin = tensor, tuple(shape), steps, origin
        self.dtype, self.name, self.space, self.core = tensor.dtype, tensor.name, tensor.space, tensor.core
        self.ndim = len(self.shape)

    def pieces(self, packed: View) -> Iterator[tuple[View, View, Any]]:
        """Views of the tensor and of `packed`, a view [P, everything else] with the same elements, and which these
        are."""
        size, packed_steps = packed.strides[1], [0] * self.ndim
        for axis in range(self.ndim - 1, 0, -1):
            packed_steps[axis], size = size, size * self.shape[axis]
        packed_steps[0] = packed.strides[0]
        apart = [a for a in range(1, self.ndim) if self.steps[a] < 0]
        free = [a for a in range(1, self.ndim) if a not in apart]
        while len(free) > 4:
            apart.append(free.pop(0))
        kept = [0] + free
        for at in itertools.product(*(range(self.shape[a]) for a in apart)):
            there, here = (t.strided([self.shape[a] for a in kept], [steps[a] for a in kept],
                                     origin + sum(i * steps[a] for i, a in zip(at, apart)))
                           for t, steps, origin in ((self.tensor, self.steps, self.origin), (packed, packed_steps, 0)))
            yield there, here, tuple(at[apart.index(a)] if a in apart else slice(None) for a in range(self.ndim))


class Scattered(Generic[View]):
    """Places of a tensor that follow no pattern: for DMA, and for masks that leave out what lies outside."""

    def __init__(self, tensor: View, indices: Sequence[NDArray[Any]], shape: Sequence[int],
                 refusal: str | None = None) -> None:
        self.tensor, self.indices, self.shape, self.refusal = tensor, indices, tuple(shape), refusal
        self.dtype, self.name, self.space, self.core = tensor.dtype, tensor.name, tensor.space, tensor.core
        self.ndim = len(self.shape)

    def __getattr__(self, name: str) -> Any:
        raise IndexError(self.refusal) if self.refusal else AttributeError(
            f"'{self.name}' at places that follow no pattern has no '{name}': load them first")

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def part(self, key: Any) -> Any:
        """Those that a mask leaves over, which may be evenly spaced."""
        return _grid(self.tensor, [i[key] for i in self.indices])


def _merge(finer: Sequence[int], coarser: Sequence[int]) -> bool:
    """Are the coarser axes runs of the finer ones, in their order?"""
    rest = list(finer)
    for size in coarser:
        product = 1
        while product < size and rest:
            product *= rest.pop(0)
        if product != size:
            return False
    return not rest


def _many(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]


def agree(what: str, dst: Any, src: Any) -> None:
    """Shapes of a transfer agree axis by axis; axes of one element do not count, and those within a row (in HBM all)
    may be one on the other side. As many elements in another shape are no reason: NKI's compiler refuses that."""
    to, of = _many(dst.shape), _many(src.shape)
    if to == of or 0 in to or 0 in of:
        return
    first: int | None = 0
    if not (dst.space == HBM and src.space == HBM):
        first = 1 if to and of and to[0] == of[0] else None
    if first is not None and (_merge(to[first:], of[first:]) or _merge(of[first:], to[first:])):
        return
    count = math.prod(to)
    for n in of:
        count //= n if count % n == 0 else count + 1  # another number of elements: the core says so
    if count == 1:
        raise _core.Error(f"{what}: dst '{dst.name}' has the shape {list(dst.shape)}, src '{src.name}' "
                          f"{list(src.shape)}; they agree in the number of elements only: reshape one of them")


class Rows(Generic[View]):
    """A view whose rows along its first axis are chosen by a tile of indices."""

    def __init__(self, tensor: View, index: View) -> None:
        self.tensor, self.rows = tensor, index
        self.shape = (index.shape[0],) + tuple(tensor.shape[1:])
        self.dtype, self.name, self.space, self.core = tensor.dtype, tensor.name, tensor.space, tensor.core
        self.ndim = len(self.shape)

    def part(self, key: Sequence[slice]) -> Rows[View]:
        """Those that a mask leaves over."""
        return Rows(self.tensor.index((slice(None), *key[1:])), self.rows.index((key[0], slice(None))))

    def places(self) -> Scattered[View]:
        """The same by the numbers that lie in the tile now."""
        grids = np.ix_(numbers(self.rows).reshape(-1), *(np.arange(n) for n in self.shape[1:]))
        return Scattered(self.tensor, [np.broadcast_to(g, self.shape) for g in grids], self.shape)


class Placed(Generic[View]):
    """A view of HBM that begins `value` indices of an axis further on, where the number lies in a tile: a transfer reads
    it when it runs; whatever else asks for the view reads it at once."""

    def __init__(self, tensor: View, pattern: Pattern, offset: int, value: Any, dim: int, step: int) -> None:
        self.view, self.value, self.of, self.dim = leaving(tensor, pattern, offset), value, tensor, dim
        self.shape, self.dtype, self.core = self.view.shape, self.view.dtype, tensor.core
        self.now = lambda: leaving(tensor, pattern, offset + scalar(value) * step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now(), name)

    def __getitem__(self, key: Any) -> Any:
        return self.now()[key]


def dynamic(tensor: View, pattern: Pattern, offset: int, scalar_offset: Any, vector_offset: View | None,
            indirect_dim: int) -> Any:
    """.ap() with an offset that lies in a tile or a register: of a whole view, or one per row."""
    step = math.prod(tensor.shape[indirect_dim + 1:])
    if isinstance(scalar_offset, _core.View) and vector_offset is None and tensor.space == HBM:
        return Placed(tensor, pattern, offset, scalar_offset, indirect_dim, step)
    if scalar_offset is not None:
        offset += scalar(scalar_offset) * step
    if vector_offset is None:
        return leaving(tensor, pattern, offset)
    if indirect_dim:
        raise _core.Error(f"'{tensor.name}': a vector_offset goes along axis 0 of the pattern")
    rest = list(pattern[1:])
    rows = (_count(tensor) - 1 - offset - sum(s * (n - 1) for s, n in rest)) // step + 1
    index = vector_offset if vector_offset.ndim == 2 else vector_offset.reshaped((vector_offset.shape[0], -1))
    return Rows(leaving(tensor, [[step, rows]] + rest, offset), index)


class Nowhere(Generic[View]):
    """A pattern that leaves its tensor: kernels make such views before they ask whether they need them. Whoever uses it
    is refused."""

    def __init__(self, tensor: View, pattern: Pattern, offset: int, refusal: _core.Error) -> None:
        self.refusal = f"{refusal}: {[list(p) for p in pattern]} from {offset} on of {tensor!r}"
        self.shape, self.dtype = tuple(n for _, n in pattern), tensor.dtype

    def __getattr__(self, name: str) -> Any:
        raise _core.Error(self.refusal)


def leaving(tensor: View, pattern: Pattern, offset: int) -> Any:
    """tensor.pattern(), whose refusal waits until somebody uses the view."""
    try:
        return tensor.pattern(pattern, offset)
    except _core.Error as refusal:
        return Nowhere(tensor, pattern, offset, refusal)


def selected(tensor: View, dim: int, index: View) -> Any:
    """One index of an axis, or rows, as a tile says."""
    if _count(index) == 1:
        return tensor.index((slice(None),) * (dim % tensor.ndim) + (scalar(index),))
    if dim % tensor.ndim:
        raise _core.Error("select: rows are chosen along axis 0")
    return Rows(tensor, index)


def permuted(tensor: View, dims: tuple[int, ...]) -> View:
    """The axes in another order."""
    if sorted(dims) != list(range(tensor.ndim)):
        raise ValueError(f"permute: {dims} are not the axes of a tensor of {tensor.ndim}")
    return tensor.strided([tensor.shape[d] for d in dims], [tensor.strides[d] for d in dims])


def rearranged(tensor: View, source: Axes, target: Axes, sizes: Mapping[str, int]) -> View:
    """Axes by name: ("p", ("a", "b")) to (("p", "a"), "b")."""
    shape: list[int] = []
    names: list[str] = []
    for axis, name in enumerate(source):
        parts = [name] if isinstance(name, str) else list(name)
        known = [sizes.get(p) for p in parts]
        product = math.prod(k for k in known if k is not None)
        shape += [tensor.shape[axis] // max(product, 1) if k is None else k for k in known]
        names += parts
    split = tensor.reshaped(tuple(shape))
    order = [p for name in target for p in ([name] if isinstance(name, str) else name)]
    turned = permuted(split, tuple(names.index(n) for n in order))
    merged, at = [], 0
    for name in target:
        width = 1 if isinstance(name, str) else len(name)
        merged.append(math.prod(turned.shape[at:at + width]))
        at += width
    return turned.reshaped(tuple(merged))
