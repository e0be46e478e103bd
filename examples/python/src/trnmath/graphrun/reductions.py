"""What calls a computation for pairs of elements: reductions, windows, scatter, sort; and norms over a batch.

A body that is one operation which NumPy folds is folded; another is called once for all elements at a time, in order.
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .graph import Computation, Graph, Op, Trouble
from .indexing import scatter_places
from .machine import FOLDS, Array, Engines, Exact
from .products import padded, windows
from .structure import ordered

Machine = Exact | Engines
Arrays = list[Array]
Call = Callable[[Computation, Arrays], Arrays]


def kind_of(graph: Graph, op: Op, which: int = 0) -> str | None:
    """What a body of two parameters folds by; "" for one that keeps the later; None for another."""
    if "applies" in op.attributes:
        kind = str(op.attributes["applies"])
        return kind if kind in FOLDS else None
    body = graph.body(op, which)
    if len(body.parameters) != 2:
        return None
    if not body.ops and body.results == [body.parameters[1]]:
        return ""
    if len(body.ops) == 1 and body.results == body.ops[0].results and set(body.ops[0].operands) == set(body.parameters):
        return body.ops[0].kind if body.ops[0].kind in FOLDS else None
    return None


def reduce_(machine: Machine, op: Op, arrays: Arrays, graph: Graph, call: Call) -> Arrays:
    """Over axes, beginning with the initial values."""
    count = len(arrays) // 2
    given, initial, axes = arrays[:count], arrays[count:], sorted(op.get("dimensions"))
    flat = [_last(x, axes) for x in given]
    kind = kind_of(graph, op) if count == 1 else None
    if kind:
        start = np.broadcast_to(initial[0], flat[0].shape[:-1])[..., None].astype(flat[0].dtype)
        neutral = {"add": 0, "multiply": 1}.get(kind)
        x = flat[0] if neutral is not None and (initial[0] == neutral).all() else np.concatenate([start, flat[0]], -1)
        return [machine.fold(kind, x, op)]
    body = graph.body(op)
    held = [np.broadcast_to(i, x.shape[:-1]) for i, x in zip(initial, flat)]
    for n in range(flat[0].shape[-1]):
        held = call(body, [*held, *(x[..., n] for x in flat)])
    return held


def _last(x: Array, axes: list[int]) -> Array:
    """The axes that are folded as one, behind all others."""
    kept = [n for n in range(x.ndim) if n not in axes]
    return x.transpose(kept + axes).reshape([x.shape[n] for n in kept] + [-1] if x.size else
                                            [x.shape[n] for n in kept] + [int(np.prod([x.shape[n] for n in axes]))])


def reduce_window(machine: Machine, op: Op, arrays: Arrays, graph: Graph, call: Call) -> Arrays:
    """Over windows."""
    count = len(arrays) // 2
    given, initial = arrays[:count], arrays[count:]
    rank = given[0].ndim
    ones, attributes = [1] * rank, op.attributes
    sizes, strides = op.get("window_dimensions"), attributes.get("window_strides", ones)
    pads, base = attributes.get("padding", [(0, 0)] * rank), attributes.get("base_dilations", ones)
    views = []
    for x, start in zip(given, initial):
        wide = padded(x, pads, base, start)
        view = windows(wide, sizes, strides, attributes.get("window_dilations", ones))
        views.append(view.reshape(*view.shape[:rank], -1))
    kind = kind_of(graph, op) if count == 1 else None
    if kind:
        start = np.broadcast_to(initial[0], views[0].shape[:-1])[..., None].astype(views[0].dtype)
        return [machine.fold(kind, np.concatenate([start, views[0]], -1), op)]
    body = graph.body(op)
    held = [np.broadcast_to(i, v.shape[:-1]) for i, v in zip(initial, views)]
    for n in range(views[0].shape[-1]):
        held = call(body, [*held, *(v[..., n] for v in views)])
    return held


def select_and_scatter(machine: Machine, op: Op, arrays: Arrays, graph: Graph, call: Call) -> Arrays:
    """Of each window the element that is selected gets what belongs to the window: the backward pass of pooling."""
    x, source, start = arrays
    rank, attributes = x.ndim, op.attributes
    sizes, strides = attributes.get("window_dimensions", [1] * rank), attributes.get("window_strides", [1] * rank)
    pads = attributes.get("padding", [(0, 0)] * rank)
    places = np.indices(x.shape).reshape(rank, -1)
    inside = _cut_windows(np.ones(x.shape, bool), sizes, strides, pads)
    values = _cut_windows(x, sizes, strides, pads)
    numbers = _cut_windows(np.arange(x.size).reshape(x.shape), sizes, strides, pads)
    if values.shape[:-1] != source.shape:
        raise Trouble(f"line {op.line}: select_and_scatter '{op.name}' has windows {list(values.shape[:-1])}")
    best, at, there = values[..., 0], numbers[..., 0], inside[..., 0]
    for n in range(1, values.shape[-1]):  # the one that is held stays where select says so
        held = call(graph.body(op, 0), [best, values[..., n]])[0].astype(bool)
        later = inside[..., n] & (~there | ~held)
        best, at, there = (np.where(later, v[..., n], old)
                           for v, old in ((values, best), (numbers, at), (inside, there)))
    made, rows = np.full(x.shape, start, x.dtype), np.flatnonzero(there.reshape(-1))
    index, new = tuple(p[at.reshape(-1)[rows]] for p in places), source.reshape(-1)[rows]
    _into([made], index, [new], kind_of(graph, op, 1), lambda pair: call(graph.body(op, 1), pair))
    return [made]


def _cut_windows(x: Array, sizes: list[int], strides: list[int], pads: list[tuple[int, int]]) -> Array:
    """[..., window] with zeros around."""
    view = windows(padded(x, pads, [1] * x.ndim, np.zeros((), x.dtype)), sizes, strides, [1] * x.ndim)
    return view.reshape(*view.shape[:x.ndim], -1)


def _into(made: list[Array], at: tuple[Array, ...], news: list[Array], kind: str | None,
          call: Callable[[Arrays], Arrays]) -> None:
    """Updates at places, one after the other."""
    if kind == "":
        made[0][at] = news[0].astype(made[0].dtype)
        return
    if kind:
        FOLDS[kind].at(made[0], at, news[0].astype(made[0].dtype))
        return
    for rows in _rounds(at, made[0].shape):
        index = tuple(a[rows] for a in at)
        for x, new in zip(made, call([*(x[index] for x in made), *(u[rows] for u in news)])):
            x[index] = new


def scatter(machine: Machine, op: Op, arrays: Arrays, graph: Graph, call: Call) -> Arrays:
    """Updates into copies of the operands, one after the other; what does not lie inside is left out."""
    count = (len(arrays) - 1) // 2
    given, indices, updates = arrays[:count], arrays[count], arrays[count + 1:]
    made = [x.copy() for x in given]
    kind = kind_of(graph, op) if count == 1 else None
    if any(u.size == 0 for u in updates):
        return made
    where, _, inside = scatter_places(given[0], indices, updates[0], op)
    news = [scatter_places(x, indices, u, op)[1][inside] for x, u in zip(given, updates)]
    _into(made, tuple(w[inside] for w in where), news, kind, lambda pair: call(graph.body(op), pair))
    return made


def _rounds(at: tuple[Array, ...], shape: tuple[int, ...]) -> list[Array]:
    """Rows in rounds in which no place comes twice, in order."""
    keys = np.ravel_multi_index(at, shape) if at else np.zeros(1, np.int64)
    order = np.argsort(keys, kind="stable")
    ranked = np.empty(len(keys), np.int64)
    same = keys[order]
    starts = np.flatnonzero(np.r_[True, same[1:] != same[:-1]]) if len(keys) else np.zeros(0, np.int64)
    ranked[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    return [np.flatnonzero(ranked == n) for n in range(int(ranked.max(initial=-1)) + 1)]


def _key(op: Op, graph: Graph, moved: Arrays) -> Array | None:
    """What a body compares, if that is all it does: smaller goes first."""
    body = graph.body(op)
    compare = body.ops[0] if len(body.ops) == 1 else None
    if compare is None or compare.kind != "compare" or body.results != compare.results:
        return None
    at = [body.parameters.index(name) if name in body.parameters else -1 for name in compare.operands]
    turn = compare.attributes.get("direction") == "GT"
    if compare.attributes.get("direction") not in ("LT", "GT") or min(at) < 0 or at[0] ^ 1 != at[1]:
        return None
    x = moved[at[0] // 2]
    if x.dtype.kind == "f" and "TOTALORDER" in str(compare.attributes.get("compare_type")):
        x = ordered(x)
    elif x.dtype.kind == "f" and np.isnan(x).any() or x.dtype.kind not in "fiu":
        return None
    down = turn != (at[0] > at[1])
    return x if not down else -x if x.dtype.kind == "f" else ~x


def sort(machine: Machine, op: Op, arrays: Arrays, graph: Graph, call: Call) -> Arrays:
    """Along an axis, stable, by a comparison of any kind: runs of all rows are merged at once."""
    axis = op.axis(arrays[0].ndim - 1)
    moved = [np.moveaxis(x, axis, -1) for x in arrays]
    size = moved[0].shape[-1]
    key = _key(op, graph, moved)
    order = np.argsort(key, -1, "stable") if key is not None else np.broadcast_to(np.arange(size), moved[0].shape)

    def before(first: Array, second: Array) -> Array:
        pairs = [np.take_along_axis(x, at, -1) for x in moved for at in (first, second)]
        return call(graph.body(op), pairs)[0].astype(bool)
    run = 1 if key is None else size
    while run < size:
        order = _merged(order, run, before)
        run *= 2
    return [np.moveaxis(np.take_along_axis(x, order, -1), -1, axis) for x in moved]


def _merged(order: Array, run: int, before: Callable[[Array, Array], Array]) -> Array:
    """Runs of this length, two by two: an element's place is its own in its run, and how many of the other run go before
    it, which halving finds. Of equal ones the left run's go first."""
    size = order.shape[-1]
    at = np.arange(size)
    start, left = at // (2 * run) * 2 * run, at // run % 2 == 0
    low = np.broadcast_to(np.where(left, np.minimum(start + run, size), start), order.shape).copy()
    high = np.broadcast_to(np.where(left, np.minimum(start + 2 * run, size), start + run), order.shape).copy()
    while (low < high).any():
        middle = (low + high) // 2
        other = np.take_along_axis(order, np.minimum(middle, size - 1), -1)
        goes = before(np.where(left, other, order), np.where(left, order, other)) == left
        open_ = low < high
        low, high = np.where(open_ & goes, middle + 1, low), np.where(open_ & ~goes, middle, high)
    place = np.where(left, at + low - np.minimum(start + run, size), at - run + low - start)
    made = np.full(order.shape, -1)
    np.put_along_axis(made, place, order, -1)
    if (made < 0).any():
        raise Trouble("a comparison of sort contradicts itself: numbers that are no numbers, maybe")
    return made


# ---- norms over a batch ----

def _moments(machine: Machine, x: Array, axis: int, op: Op) -> tuple[Array, Array, list[int]]:
    rest = [n for n in range(x.ndim) if n != axis]
    flat = x.transpose([axis] + rest).reshape(x.shape[axis], -1)
    count = np.array(flat.shape[1], x.dtype)
    mean = machine.fold("add", flat, op) / count
    variance = machine.fold("add", np.square(flat - mean[:, None]), op) / count
    return mean, variance, [-1 if n == axis else 1 for n in range(x.ndim)]


def batch_norm_training(machine: Machine, op: Op, arrays: Arrays, *_: Any) -> Arrays:
    """(normalised, mean, variance) of each feature."""
    x, scale, offset = arrays
    mean, variance, along = _moments(machine, x, op.get("feature_index"), op)
    spread = machine.apply("rsqrt", [variance + x.dtype.type(op.get("epsilon"))], op)
    y = (x - mean.reshape(along)) * spread.reshape(along) * scale.reshape(along) + offset.reshape(along)
    return [y, mean, variance]


def batch_norm_inference(machine: Machine, op: Op, arrays: Arrays, *_: Any) -> Arrays:
    """By a mean and a variance that are given."""
    x, scale, offset, mean, variance = arrays
    along = [-1 if n == op.get("feature_index") else 1 for n in range(x.ndim)]
    spread = machine.apply("rsqrt", [variance + x.dtype.type(op.get("epsilon"))], op)
    return [(x - mean.reshape(along)) * (spread * scale).reshape(along) + offset.reshape(along)]


def batch_norm_grad(machine: Machine, op: Op, arrays: Arrays, *_: Any) -> Arrays:
    """(of the operand, of scale, of offset)"""
    x, scale, mean, variance, up = arrays
    axis = op.get("feature_index")
    rest, along = [n for n in range(x.ndim) if n != axis], [-1 if n == axis else 1 for n in range(x.ndim)]
    flat = lambda a: a.transpose([axis] + rest).reshape(a.shape[axis], -1)
    count = x.dtype.type(x.size // x.shape[axis])
    centred = x - mean.reshape(along)
    spread = machine.apply("rsqrt", [variance + x.dtype.type(op.get("epsilon"))], op)
    offset = machine.fold("add", flat(up), op)
    product = machine.fold("add", flat(up * centred), op)
    slope = (scale * spread / count).reshape(along)
    grown = count * up - offset.reshape(along) - centred * (product * spread * spread).reshape(along)
    return [slope * grown, product * spread, offset]


def map_(machine: Machine, op: Op, arrays: Arrays, graph: Graph, call: Call) -> Arrays:
    """A body of scalars, for each element."""
    return [np.broadcast_to(x, op.shape().dims) for x in call(graph.body(op), arrays)]


TABLE: dict[str, Any] = {"map": map_, "reduce": reduce_, "reduce_window": reduce_window, "select_and_scatter": select_and_scatter,
                         "scatter": scatter, "sort": sort, "batch_norm_training": batch_norm_training,
                         "batch_norm_inference": batch_norm_inference, "batch_norm_grad": batch_norm_grad}
