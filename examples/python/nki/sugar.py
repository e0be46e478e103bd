"""What is made of instructions: results that are returned, operators on tiles, loads and stores, sums, softmax.

A call returns a new tile. The instruction that fills it waits until something else happens, so that `tile[...] = call`
writes where it says without a copy, and `psum += product` accumulates. Docstrings say what instructions a call is.

SPDX-License-Identifier: MIT
"""
from . import _core, dtypes, isa, operators
from .index import Scattered, Wide, agree
from .masks import box_of, copy_inside, cut, engine_box, filled, neutral, reduced_box, whole_box
from .simulator import current, is_preset, preset
from .tensor import HBM, PSUM, SBUF, NkiTensor

try:
    import numpy as np
except ImportError:
    np = None

_FLOATS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3", "float8_e4m3fn", "float8_e3m4")


# ---- results ----

class Pending:
    """A result's tile and how it is filled; adds: how it is added to another; box: the part of it that is computed;
    by_dma: a transfer fills it, which may begin at any partition."""

    def __init__(self, tile, emit, adds=None, box=None, by_dma=False):
        self.tile, self.emit, self.adds, self.box, self.by_dma = tile, emit, adds, box, by_dma

    def materialise(self):
        self.emit(self.tile)


def tile(shape, dtype, space=SBUF, name="result"):
    """A new tile that may be filled in part."""
    shape = tuple(int(s) for s in shape)
    to = dtypes.of(dtype)
    if len(shape) > 5:  # a view of one with fewer axes
        return tile((shape[0], _count(shape[1:])), dtype, space, name).reshaped(shape)
    return current().tile(name, space, to.format, shape if len(shape) > 1 else shape + (1,), to)


def result(shape, dtype, emit, space=SBUF, adds=None, box=None, exact=False):
    """A tile that emit fills: all of it, or a mask's box. exact: it writes those elements of the box that the mask
    names, and no others."""
    core = current()
    core.settle()
    made = tile(shape, dtype, space)
    if box is not None and box.empty:
        emit, adds = _nothing, _nothing if adds else None
    elif box is not None and box.inside is not None and not exact:
        emit = _through_a_tile(emit, box, space)
    core.pending = Pending(made, emit, adds, box, exact)
    return made


def _nothing(dst):
    """What an instruction does of which a mask leaves nothing."""


def _through_a_tile(emit, box, space):
    """Fills a tile of its own, of which tensor_copy_predicated takes the elements that the mask names."""
    def chosen(dst):
        whole = tile(dst.shape, dst.dtype, space)
        emit(whole)
        copy_inside(cut(dst, box), cut(whole, box), box.inside)
    return chosen


def taken(value):
    """The pending result that this tile stands for, which is now the caller's to fill; else None."""
    core = current()
    waits = core.pending
    if waits is not None and waits.tile is value:
        core.pending = None
        return waits
    return None


def assign(tensor, key, value):
    """tensor[key] = value."""
    waits = taken(value) if isinstance(value, NkiTensor) else None
    place = tensor.place(key)
    if isinstance(place, Wide):
        if waits is not None:
            waits.materialise()
        return put_in_pieces(place, value)
    if isinstance(value, NkiTensor) and isinstance(place, NkiTensor) and same_place(place, value):
        return
    if place.space == PSUM and isinstance(place, NkiTensor):
        preset(place)
    if isinstance(value, NkiTensor) and value.size == place.size:
        agree("assignment", place, value)
    direct = in_shape(place, value.shape) if waits is not None and fits(place, value, waits.by_dma) else None
    if direct is not None:
        waits.emit(direct)
        return
    if waits is not None:
        waits.materialise()
        if waits.box is not None:
            return put_inside(place, value, waits.box)
    put(place, value)


def packed(wide):
    """A tile [P, everything else] with the elements of a view that no pattern can follow: tensor_copy in pieces."""
    made = tile((wide.shape[0], _count(wide.shape[1:])), wide.dtype)
    for there, here in wide.pieces(made):
        isa.tensor_copy(here, there)
    return made


def put_in_pieces(wide, value):
    if not isinstance(value, NkiTensor):
        value = full((wide.shape[0], _count(wide.shape[1:])), value, wide.dtype)
        taken(value).materialise()
    flat = value.reshaped((wide.shape[0], -1))
    for there, here in wide.pieces(flat):
        isa.tensor_copy(there, here)


def in_shape(x, shape):
    """The view in another shape, or None where that needs a copy."""
    try:
        return x if x.shape == shape else x.reshaped(shape)
    except _core.Error:
        return None


def flat(x):
    """[P, everything else], copied where the axes do not follow each other."""
    shape = (x.shape[0], _count(x.shape[1:]))
    there = in_shape(x, shape)
    return copy(x).reshaped(shape) if there is None else there


def same_place(a, b):
    return a.owner == b.owner and a.element_offset == b.element_offset and a.shape == b.shape and a.strides == b.strides


def at_a_quadrant(x):
    """Does a view of a tile begin where engines can: at partition 0, 32, 64 or 96? Elsewhere only DMA reaches."""
    return x.space == HBM or x.element_offset * x.itemsize // (x.base.strides[0] * x.base.itemsize) % 32 == 0


def on_engines(x):
    """The same view, where engines can begin; NKI's compiler refuses others, too."""
    if not at_a_quadrant(x):
        first = x.element_offset * x.itemsize // (x.base.strides[0] * x.base.itemsize)
        raise _core.Error(f"{list(x.shape)} of '{x.name}' {list(x.base.shape)} begins at partition {first}; engines "
                          "begin at partition 0, 32, 64 or 96: a transfer (dma_copy, nl.load, nl.store) may move it")
    return x


def fits(place, value, by_dma=False):
    """May what fills value fill this place instead? A transfer begins anywhere, and casts."""
    if not (isinstance(place, NkiTensor) and place.size == value.size and place.space != HBM and
            place.shape[0] == value.shape[0] and place.space == value.space):
        return False
    return place.dtype == value.dtype if at_a_quadrant(place) else by_dma


def put(place, value):
    """A copy, by the engine that reaches both; numbers fill."""
    if isinstance(value, LoopSum):
        value.add_to(place)
    elif not isinstance(value, (NkiTensor, Scattered)):
        isa.memset(place, value)
    elif isinstance(place, Scattered) or isinstance(value, Scattered) or HBM in (place.space, value.space):
        isa.dma_copy(place, value)
    else:
        isa.tensor_copy(on_engines(place), alike(on_engines(value), place.shape))


def put_inside(place, value, box):
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
        box = engine_box(box, box.shape)
        copy_inside(cut(on_engines(place), box), cut(value, box), box.inside)


def _spread_box(box, shape):
    return box_of(box.full if box.full.size == _count(shape) else np.broadcast_to(box.full, shape), shape) or \
        whole_box(np.ones(shape, bool), shape)


def move_inside(dst, src, box, **options):
    """dma_copy of what a mask names."""
    if box is not None and box.empty:
        return None
    if box is None or box.inside is None:
        return isa.dma_copy(cut(dst, box), cut(src, box), **options)
    from . import scattered
    return scattered.copy(dst, src, box.full, **options)


def alike(value, shape):
    """A view with axes of one element spread out to a shape; partitions are copied, as engines need them."""
    if tuple(value.shape) == tuple(shape):
        return value
    if value.size == _count(shape):
        return value.reshaped(tuple(shape))
    return broadcast_to(value, shape)


def _count(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def broadcast_to(x, shape):
    """A view; from one partition to many a copy (a product with ones, as the Tensor engine does it for the others)."""
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


def _spread(x, shape):
    """nc_stream_shuffle of a tile whose first partition is x, into each quadrant."""
    inner = tuple(x.shape[1:])
    row = tile((32,) + inner, x.dtype)
    put(row[0:1], x)
    made = tile((shape[0],) + inner, x.dtype)
    for first in range(0, shape[0], 32):
        count = min(32, shape[0] - first)
        isa.nc_stream_shuffle(made[first:first + count], row[0:count], [0] * 32)
    return broadcast_to(made, shape)


class LoopSum:
    """nl.loop_reduce: what a loop adds up in SBUF, or its largest, ..."""

    def __init__(self, op, value, mask=None):
        self.op, self.value, self.mask = operators.named(op), value, mask

    def add_to(self, place):
        taken(binary(self.op, place, self.value, self.mask, place.dtype)).emit(place)


def loop_reduce(x, op, loop_indices, dtype=None, mask=None):
    """dst = dst op x, once for each turn of the loop: tensor_tensor onto dst, which holds what the loop begins with."""
    return LoopSum(op, x, mask)


# ---- loads and stores: dma_copy ----

def load(src, mask=None, dtype=None, **_):
    """A new tile with the numbers of a tensor in HBM: dma_copy."""
    shape = tuple(src.shape)
    box = box_of(mask, shape)

    def emit(dst):
        move_inside(dst.reshaped(shape) if dst.shape != shape else dst, src, box)
    return result(shape, dtype or src.dtype, emit, box=box, exact=True)


def store(dst, value, mask=None, **_):
    """dst in HBM = value: dma_copy. Numbers and values of PSUM go through a tile of SBUF."""
    if not isinstance(value, NkiTensor):
        value = full(dst.shape, value, dst.dtype)
    if value.space == PSUM:
        value = copy(value, dtype=dst.dtype)
    box = box_of(mask, tuple(dst.shape))
    if value.size == _count(dst.shape):
        agree("store", dst, value)
    else:
        value = alike(value, dst.shape)
    same = value if value.shape == tuple(dst.shape) else value.reshaped(tuple(dst.shape))
    move_inside(dst, same, box)


def atomic_rmw(dst, value, op, mask=None, **_):
    """dst in HBM += value: dma_compute, which adds."""
    if operators.named(op).name != "add":
        raise _core.Error(f"atomic_rmw: a DMA adds; {operators.named(op).name} is none of its operators")
    box, value = box_of(mask, tuple(dst.shape)), in_sbuf(value)
    if box is None or box.inside is None:
        pairs = [(cut(dst, box), cut(value, box))]
    else:
        from . import scattered
        pairs = scattered.pairs(dst, value, box.full)
    for place, part in pairs:
        isa.dma_compute(place, [place, part], "add")


def load_transpose2d(src, mask=None, dtype=None):
    """The same with its two axes turned: dma_copy, then nc_transpose and tensor_copy."""
    box = box_of(mask, tuple(src.shape))
    return copy(transpose(load(src, mask=box, dtype=dtype)), mask=None if box is None else box.full.T,
                dtype=dtype or src.dtype)


def gather_flattened(data, indices, axis=0, mask=None, dtype=None, **_):
    """result[p, i] = data[p, indices[p, i]]: nc_n_gather."""
    return result(indices.shape, dtype or data.dtype, lambda dst: isa.nc_n_gather(dst, data, indices),
                  box=whole_box(mask, tuple(indices.shape)))


# ---- fills ----

def full(shape, fill_value, dtype, mask=None, space=SBUF, **_):
    """memset."""
    box = engine_box(mask, shape)
    return result(shape, dtype, lambda dst: isa.memset(cut(dst, box), fill_value), space, box=box)


def copy(x, mask=None, dtype=None, **_):
    """tensor_copy."""
    shape = tuple(x.shape)
    if isinstance(x, Scattered) or x.space == HBM:
        return load(x, mask=mask, dtype=dtype)
    box = engine_box(mask, shape)
    return result(shape, dtype or x.dtype, lambda dst: isa.tensor_copy(cut(dst, box), cut(x, box)), box=box)


def static_cast(x, dtype):
    """A copy in another format; of an array outside of kernels an array, or nki.tensor where NumPy lacks the format."""
    if isinstance(x, NkiTensor):
        return copy(x, dtype=dtype)
    from . import arrays
    to = dtypes.of(dtype)
    if isinstance(x, arrays.Given) and x.dtype != to:
        x = x.numpy()
    return np.asarray(x, to.numpy) if to.numpy else x if isinstance(x, arrays.Given) else arrays.Given(x, to)


def expand_dims(data, axis):
    """A view with one more axis, of one element."""
    return data.expand_dim(axis)


def random_seed(seed, mask=None, **_):
    """memset, set_rng_seed."""
    isa.set_rng_seed(loaded(seed) if isinstance(seed, NkiTensor) else full((1, 1), seed, "uint32"))


def rand(shape, dtype="float32", mask=None, **_):
    """Uniform in [0, 1), multiples of 2^-24: rng, tensor_scalar(right_shift, 8), tensor_scalar(multiply)."""
    bits = tile(shape, "uint32")
    isa.rng(bits)
    isa.tensor_scalar(bits, bits, "right_shift", 8)
    return result(shape, dtype, lambda dst: isa.tensor_scalar(dst, bits, "multiply", 2.0 ** -24),
                  box=whole_box(mask, shape))


def dropout(x, rate, mask=None, dtype=None, **_):
    """dropout: elements become 0 with this probability, the others stay as they are."""
    box = engine_box(mask, tuple(x.shape))
    return result(x.shape, dtype or x.dtype, lambda dst: isa.dropout(cut(dst, box), cut(x, box), rate), box=box)


# ---- operators ----

def promoted(*values):
    """The format of a result: of the operands' the widest; float32 where they differ in kind."""
    names = [v.dtype for v in values if isinstance(v, NkiTensor)]
    floats = [n for n in names if n in _FLOATS]
    if not floats:
        return max(names, key=lambda n: n.itemsize)
    if len(set(floats)) > 1 and {"bfloat16", "float16"} <= set(floats):
        return dtypes.of("float32")
    return min(floats, key=_FLOATS.index)


def call(op, *args, axis=None, mask=None, dtype=None, **options):
    """nl.op(x), nl.op(x, y), and reductions nl.max(x, axis)."""
    if op.call is not None:
        axis = args[1] if len(args) > 1 else axis
        return reduced(op, args[0], axis, mask=mask, dtype=dtype, **options)
    if len(args) == 1:
        return unary(op, args[0], mask=mask, dtype=dtype)
    return binary(op, *args, mask=mask, dtype=dtype)


_UNARY = {"negative": ("multiply", -1.0)}


def unary(op, x, mask=None, dtype=None):
    """activation, or tensor_scalar for what only the Vector engine has."""
    box = engine_box(mask, tuple(x.shape))
    x = loaded(x, box)
    emit = _unary(op, x, box)
    return _composed(op.name, x, box, dtype) if emit is None else result(x.shape, dtype or x.dtype, emit, box=box)


def _unary(op, x, box):
    """How a result is filled, None: by several instructions."""
    name = op.name
    if name == "reciprocal":
        return lambda dst: isa.reciprocal(cut(dst, box), cut(x, box))
    if name in _UNARY:
        alu, number = _UNARY[name]
        return lambda dst: isa.tensor_scalar(cut(dst, box), cut(x, box), alu, number)
    if op.act is not None:
        return lambda dst: isa.activation(cut(dst, box), op, cut(x, box))
    if name == "cos":
        half = full((x.shape[0], 1), 1.5707963267948966, "float32")
        return lambda dst: isa.activation(cut(dst, box), "sin", cut(x, box), bias=cut(half, box and box[:1]))
    if op.alu is None:
        return None
    return lambda dst: isa.tensor_scalar(cut(dst, box), cut(x, box), name, 0.0)


def _composed(name, x, box, dtype):
    """What is made of several instructions; of a mask's part alone."""
    from . import composed
    if name not in composed.FUNCTIONS:
        raise _core.Error(f"nl.{name}: no engine has it")
    made = composed.FUNCTIONS[name](cut(x, box), dtype or x.dtype)
    if box is None:
        return made
    return result(x.shape, made.dtype, lambda dst: isa.tensor_copy(cut(dst, box), made), box=box)


def binary(op, x, y, mask=None, dtype=None):
    """tensor_tensor; tensor_scalar where one is a number or [P, 1]."""
    if op.name == "divide":
        return _divided(x, y, mask, dtype)
    x, y = (loaded(v, mask if v is x or getattr(v, "shape", None) == getattr(x, "shape", None) else None)
            for v in (x, y))
    if not isinstance(x, NkiTensor):
        return _with_scalar(op, y, x, True, mask, dtype)
    if not isinstance(y, NkiTensor):
        return _with_scalar(op, x, y, False, mask, dtype)
    to = dtype or promoted(x, y)
    if _is_column(y, x):
        return _with_scalar(op, x, y, False, mask, to)
    if _is_column(x, y):
        return _with_scalar(op, y, x, True, mask, to)
    if x.shape != y.shape and x.size == y.size and x.shape[0] == y.shape[0]:
        x, y = flat(x), flat(y)
    shape = tuple(np.broadcast_shapes(x.shape, y.shape))
    x, y = alike(x, shape), alike(y, shape)
    box = engine_box(mask, shape)
    return result(shape, to, lambda dst: isa.tensor_tensor(cut(dst, box), cut(x, box), cut(y, box), op), box=box)


def loaded(x, mask=None):
    """Operands in HBM are loaded first. Of indices that leave a tensor those are looked up that a mask names."""
    if isinstance(x, Scattered) or isinstance(x, NkiTensor) and x.space == HBM:
        return load(x, mask=mask if isinstance(x, Scattered) else None)
    return on_engines(x) if isinstance(x, NkiTensor) else x


def _is_column(y, x):
    return y.shape[0] == x.shape[0] and y.size == y.shape[0] and x.size != x.shape[0]


def _with_scalar(op, x, number, reverse, mask, dtype):
    box = engine_box(mask, tuple(x.shape))
    if isinstance(number, NkiTensor):
        number = number.reshaped((number.shape[0], 1))
        if number.dtype in _FLOATS and number.dtype != "float32":  # the engines take a column in binary32
            number = copy(number, dtype="float32")
        shape = x.shape if x.ndim >= number.ndim else number.shape
    else:
        number, shape = float(number), x.shape

    def emit(dst):
        isa.tensor_scalar(cut(dst, box), cut(x, box), op, cut(number, box and box[:1]), reverse)
    return result(shape, dtype or x.dtype, emit, box=box)


def _divided(x, y, mask, dtype):
    """reciprocal, then multiply."""
    multiply = operators.ALL["multiply"]
    if not isinstance(y, NkiTensor):
        return binary(multiply, x, 1.0 / y, mask, dtype)
    inverse = unary(operators.ALL["reciprocal"], y, dtype="float32")
    return binary(multiply, x, inverse, mask, dtype or promoted(*(v for v in (x, y) if isinstance(v, NkiTensor))))


def _truth(condition):
    """1 and 0 as tensor_copy_predicated takes them: tensor_scalar(not_equal, 0) where they are of another format."""
    if condition.dtype in ("uint8", "uint16", "uint32"):
        return condition
    return binary(operators.ALL["not_equal"], condition, 0.0, dtype="uint8")


def where(condition, x, y, mask=None, dtype=None):
    """tensor_copy of y, then tensor_copy_predicated of x; before both the condition as uint8, if it is none."""
    shape = tuple(condition.shape)
    condition = _truth(condition)
    tiles = [v for v in (x, y) if isinstance(v, NkiTensor)]
    to = dtype or (promoted(*tiles) if tiles else "float32")

    def emit(dst):
        put(dst, alike(y, shape) if isinstance(y, NkiTensor) else float(y))
        if isinstance(x, NkiTensor):
            isa.tensor_copy_predicated(dst, alike(x, shape), condition)
        else:
            isa.tensor_copy_predicated(dst, float(x), condition)
    return result(shape, to, emit, box=whole_box(mask, shape))


# ---- along axes ----

def _axes(x, axis):
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return sorted(a % x.ndim for a in axes)


def _rest(x, axes, keepdims):
    rest = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdims else \
        [n for i, n in enumerate(x.shape) if i not in axes]
    return tuple(rest) if len(rest) > 1 else tuple(rest) + (1,)


def reduced(op, x, axis, mask=None, dtype=None, keepdims=False, negate=False, **_):
    """tensor_reduce along free axes; along the partitions tensor_partition_reduce. Of a mask that is no box: where it
    is false a number goes in that changes nothing (memset, tensor_copy_predicated)."""
    box = engine_box(mask, tuple(x.shape))
    x = loaded(x, box)
    axes = _axes(x, axis)
    if 0 in axes:
        return _reduced_across(op, x, box, dtype)
    rest = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    over = reduced_box(box, axes, rest)

    def emit(dst):
        wide = dst.reshaped(rest)
        part = x if box is None else filled(x, box, _neutral(op, x, box))
        isa.tensor_reduce(cut(wide, _kept(box, axes)), op, part, axes, negate)
    shape = _rest(x, axes, keepdims)
    return result(shape, dtype or x.dtype, emit, box=_shaped_box(over, shape))


def _neutral(op, x, box):
    return neutral(op.name, x.dtype) if box.inside is not None else 0


def _kept(box, axes):
    return None if box is None else tuple(b for i, b in enumerate(box) if i not in axes)


def _shaped_box(box, shape):
    return None if box is None else engine_box(box.full.reshape(shape), shape)


def _reduced_across(op, x, box, dtype):
    shape = (1, _count(x.shape[1:]))
    if box is None:
        return result(shape, dtype or x.dtype, lambda dst: isa.tensor_partition_reduce(dst, op, x.reshaped(
            (x.shape[0], -1))))
    whole = whole_box(box, box.shape)
    over = box_of(box.full.any(axis=0).reshape(shape), shape)
    return result(shape, dtype or x.dtype, lambda dst: isa.tensor_partition_reduce(
        dst, op, filled(x, whole, neutral(op.name, x.dtype)).reshaped((x.shape[0], -1))), box=whole_box(over, shape))


def _op(name):
    return operators.ALL[name]


def mean(x, axis, mask=None, dtype=None, keepdims=False):
    """tensor_reduce(add), then multiply by one over the number of elements, of a mask of those that it names."""
    box, axes = box_of(mask, tuple(x.shape)), _axes(x, axis)
    total = reduced(_op("add"), x, axis, box, "float32", keepdims)
    if box is None:
        return binary(_op("multiply"), total, 1.0 / _count([x.shape[a] for a in axes]), dtype=dtype or x.dtype)
    counts = box.full.sum(axis=tuple(axes)).reshape(total.shape)
    share = 1.0 / np.maximum(counts, 1)
    if counts.size and share[counts > 0].size and (share[counts > 0] == share.min()).all():
        share = float(share.min())
    else:
        share = load(_constant(share.astype(np.float32)))
    return binary(_op("multiply"), total, share, mask=counts > 0, dtype=dtype or x.dtype)


def _constant(numbers):
    from . import language
    return language.shared_constant(numbers)


def var(x, axis, mask=None, dtype=None, keepdims=False):
    """The mean of squares of what is left without the mean."""
    off = binary(_op("subtract"), x, mean(x, axis, mask, "float32", True), mask, dtype="float32")
    return mean(unary(_op("square"), off, mask, dtype="float32"), axis, mask, dtype or x.dtype, keepdims)


def prod(x, axis, mask=None, dtype=None, keepdims=False):
    return reduced(_op("multiply"), x, axis, mask, dtype, keepdims)


def all(x, axis, mask=None, dtype=None):
    return reduced(_op("logical_and"), x, axis, mask, dtype)


def any(x, axis, mask=None, dtype=None):
    return reduced(_op("logical_or"), x, axis, mask, dtype)


def softmax(x, axis=-1, mask=None, dtype=None, **_):
    """tensor_reduce(max, negate), activation(exp, bias), tensor_reduce(add), reciprocal, multiply."""
    box = engine_box(mask, tuple(x.shape))
    top = reduced(_op("maximum"), x, axis, box, "float32", True, True)
    if _axes(x, axis) == list(range(1, x.ndim)):
        wide = result(x.shape, "float32", lambda dst: isa.activation(cut(dst, box), "exp", cut(x, box), bias=cut(
            top.reshaped((x.shape[0], 1)), box and box[:1])), box=box)
    else:
        wide = unary(_op("exp"), binary(_op("add"), x, top, box, dtype="float32"), box)
    total = reduced(_op("add"), wide, axis, box, "float32", True)
    return binary(_op("multiply"), wide, unary(_op("reciprocal"), total), box, dtype=dtype or x.dtype)


def rms_norm(x, w, axis, n, epsilon=1e-6, mask=None, dtype=None, compute_dtype=None, **_):
    """square, tensor_reduce(add), multiply and add, rsqrt, multiply, multiply."""
    squares = reduced(_op("add"), unary(_op("square"), x, mask, dtype="float32"), axis, mask, "float32", True)
    scaled = binary(_op("add"), binary(_op("multiply"), squares, 1.0 / n), float(epsilon))
    scaled = binary(_op("multiply"), x, unary(_op("rsqrt"), scaled), mask, dtype="float32")
    return binary(_op("multiply"), scaled, w, mask, dtype or x.dtype)


def layer_norm(x, gamma=None, beta=None, axis=-1, epsilon=1e-5, mask=None, dtype=None, **_):
    """The mean taken off, over the root of the variance."""
    off = binary(_op("subtract"), x, mean(x, axis, mask, "float32", True), mask, dtype="float32")
    spread = mean(unary(_op("square"), off, mask, dtype="float32"), axis, mask, "float32", True)
    root = unary(_op("rsqrt"), binary(_op("add"), spread, float(epsilon)))
    out = binary(_op("multiply"), off, root, mask, dtype="float32")
    out = out if gamma is None else binary(_op("multiply"), out, gamma, mask, dtype="float32")
    return binary(_op("add"), out, beta if beta is not None else 0.0, mask, dtype or x.dtype)


# ---- the Tensor engine ----

def matmul(x, y, transpose_x=False, mask=None, **_):
    """nc_matmul; x [M, K] is turned first (nc_transpose, tensor_copy) unless transpose_x says it is [K, M]. A mask is
    of the product."""
    stationary = x if transpose_x else copy(transpose(x), dtype=x.dtype)
    return product(stationary, y, box_of(mask, (_free(stationary), _free(y))))


def product(stationary, moving, box=None, **options):
    stationary, moving = (in_sbuf(v) for v in (stationary, moving))
    shape = (_free(stationary), _free(moving))
    box = engine_box(box, shape)

    def emit(dst):
        isa.nc_matmul(*_of_product(dst, stationary, moving, box), accumulate=False, **options)

    def adds(dst):
        isa.nc_matmul(*_of_product(dst, stationary, moving, box), **options)
    return result(shape, "float32", emit, PSUM, adds if box is None or box.inside is None else None, box)


def _of_product(dst, stationary, moving, box):
    return (dst, stationary, moving) if box is None else (cut(dst, box), stationary[:, box[0]], moving[:, box[1]])


def _free(tensor):
    return _count(tensor.shape[1:])


def in_sbuf(tensor):
    return copy(tensor) if tensor.space == PSUM else tensor


def transpose(x, dtype=None, mask=None, engine=isa.unknown_engine):
    """nc_transpose: of the Tensor engine, into PSUM."""
    x, shape = in_sbuf(x), (_free(x), x.shape[0])
    box = None if mask is None else box_of(_bools(mask, x.shape).reshape(shape[::-1]).T, shape)
    return turned(shape, x.dtype, lambda dst: isa.nc_transpose(dst, x, engine=isa.tensor_engine), whole_box(box, shape))


def turned(shape, dtype, emit, box=None):
    """What a transpose of the Tensor engine leaves in PSUM: bits of the same format, those of 8-bit formats in the
    lower byte of 16, of which this is a view. Trainium1's PSUM holds binary32 alone."""
    if isa.get_nc_version() == isa.nc_version.gen2:
        return result(shape, "float32" if dtype in _FLOATS else dtype, emit, PSUM, box=box)
    if dtype.itemsize > 1:
        return result(shape, dtype, emit, PSUM, box=box)
    wide = tile(shape, "uint16", PSUM)
    emit(wide)
    codes = wide.view(dtype)[:, ::2]
    return codes if box is None else copy(codes, mask=box)


def _bools(mask, shape):
    return np.broadcast_to(getattr(mask, "full", mask), tuple(shape))


# ---- operators on tensors ----

def _python_operator(name, reverse=False):
    op = operators.ALL[name]

    def apply(self, other):
        return binary(op, other, self) if reverse else binary(op, self, other)
    return apply


def _in_place(name):
    op = operators.ALL[name]

    def apply(self, other):
        waits = taken(other) if isinstance(other, NkiTensor) else None
        if waits is not None and waits.adds and name == "add" and self.space == PSUM and not is_preset(self):
            waits.adds(self)
            return self
        box = None
        if waits is not None:
            waits.materialise()
            box = waits.box
            if self.space == PSUM and other.space == PSUM:  # an instruction reads one of them
                other = copy(other, mask=box)
        made = binary(op, self, other, box if box is None or self.shape == other.shape else None, dtype=self.dtype)
        taken(made).emit(self)
        return self
    return apply


for _method, _name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide"),
                       ("pow", "power"), ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
                       ("lshift", "left_shift"), ("rshift", "right_shift")):
    setattr(NkiTensor, f"__{_method}__", _python_operator(_name))
    setattr(NkiTensor, f"__r{_method}__", _python_operator(_name, True))
    setattr(NkiTensor, f"__i{_method}__", _in_place(_name))
for _method, _name in (("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal")):
    setattr(NkiTensor, f"__{_method}__", _python_operator(_name))
NkiTensor.__neg__ = lambda self: unary(operators.Operator("negative"), self)
NkiTensor.astype = lambda self, dtype: copy(self, dtype=dtype)
