"""How each instruction carries errors on, and which roundings it adds: one rule per instruction of nki.isa.

A rule gets a Step (step.py), which gives the numbers of an operand in binary64 and their errors, and keeps what
becomes of dst. Inside the engines numbers are binary32, and each operator rounds once; the cast to dst rounds again.
What a rule computes in binary64 is held against what the instruction really returned, so that a table's own error
counts, too. An instruction without a rule makes its results' bounds infinite.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import exact
from .numbers import codes, fours, numbers, rows_of_k
from .shadow import Error, bilinear, difference, drifted, rounding, spacing, through
from .step import Pair, Step
from .tensor import NkiTensor, Operand

Rule = Callable[..., None]
RULES: dict[str, Rule] = {}
Stage = tuple["str | None", "Operand | None", bool]  # an operator, its other operand, reversed


def rule(*names: str) -> Callable[[Rule], Rule]:
    def keep(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function
    return keep


# ---- element by element ----

def _operator(step: Step, name: str, x: Pair, y: Pair | None = None) -> Pair:
    """One operator: (numbers, error) of x and y to the same of the result."""
    operands: tuple[Pair, ...] = (x,) if y is None else (x, y)
    function: Callable[..., Any] | None = exact.ALU.get(name) if y is not None else exact.UNARY.get(name)
    if function is None:
        function, operands = exact.UNARY[name], (x,)
    result = np.asarray(function(*(v for v, _ in operands)), np.float64)
    values, errors = [v for v, _ in operands], [e for _, e in operands]
    if name in exact.SLOPES and len(values) == 2:
        error = bilinear(function, exact.SLOPES[name](*values), values, errors)
    else:
        error = through(function, values, errors)
    if name not in exact.KEEPS:
        rounding(error, step.source, "float32", result)
    return result, error


def _stage(step: Step, x: Pair, op: str | None, operand: Any, reverse: bool) -> tuple[Pair, bool]:
    if op is None or op in ("bypass", "copy"):
        return x, True
    if operand is None:
        return _operator(step, op, x), op in exact.KEEPS
    y = step.pair(operand, np.shape(x[0]))
    return _operator(step, op, *((y, x) if reverse else (x, y))), op in exact.KEEPS


def _chain(step: Step, dst: NkiTensor, data: NkiTensor, stages: Sequence[Stage]) -> Pair:
    x, kept = step.pair(data, fours(dst).shape), True
    used: list[Operand | None] = [data]
    for op, operand, reverse in stages:
        x, keeps = _stage(step, x, op, operand, reverse)
        kept = kept and keeps
        used.append(operand)
    step.finish(dst, *x, kept=used if kept else None)
    return x


@rule("tensor_copy")
def _copy(step: Step, dst: NkiTensor, src: NkiTensor, **_: Any) -> None:
    step.move(dst, src)


@rule("dma_copy")
def _dma_copy(step: Step, dst: NkiTensor, src: NkiTensor, src_index: NkiTensor | None = None,
              dst_index: NkiTensor | None = None, accumulate: bool = False, **_: Any) -> None:
    if accumulate or (src_index is not None and dst_index is not None):
        raise NotImplementedError("dma_copy that accumulates, or by two indices")
    if src_index is not None:
        return _gather_rows(step, dst, src, src_index)
    if dst_index is not None:
        return _scatter_rows(step, dst, src, dst_index)
    return step.move(dst, src)


def _rows_flat(x: Pair, shape: Sequence[int] | None = None) -> Pair:
    """[rows, everything else], numbers and errors; of another shape: those of so many rows."""
    value, error = x
    rows = len(value) if shape is None else shape[0]
    full = error.map(lambda e: np.array(np.broadcast_to(e, (len(e), *value.shape))).reshape(len(e), rows, -1))
    return np.array(value.reshape(rows, -1)), full


def _gather_rows(step: Step, dst: NkiTensor, src: NkiTensor, index: NkiTensor) -> None:
    """dst[i] = src[index[i]]; of rows that do not exist dst keeps its own."""
    at = step.value(index).reshape(-1).astype(np.int64)
    (value, error), (was, kept) = _rows_flat(step.pair(src)), _rows_flat(step.pair(dst), (len(at),))
    there = (at >= 0) & (at < len(value))
    was[there] = value[at[there]]
    kept.all[:, there] = error.all[:, at[there]]
    step.finish(dst, was.reshape(dst.shape), kept.map(lambda e: e.reshape(len(e), *dst.shape)), kept=[src])


def _scatter_rows(step: Step, dst: NkiTensor, src: NkiTensor, index: NkiTensor) -> None:
    """dst[index[i]] = src[i], the last one where several go to one row."""
    if dst.dtype != src.dtype:
        raise NotImplementedError("dma_copy by indices that casts")
    at = step.value(index).reshape(-1).astype(np.int64)
    (value, error), (was, kept) = _rows_flat(step.pair(src), (len(at),)), _rows_flat(step.pair(dst))
    for i in np.flatnonzero((at >= 0) & (at < len(was))):
        was[at[i]] = value[i]
        kept.all[:, at[i]] = error.all[:, i]
    step.finish(dst, was.reshape(dst.shape), kept.map(lambda e: e.reshape(len(e), *dst.shape)), kept=[src])


@rule("dma_compute")
def _dma_compute(step: Step, dst: NkiTensor, srcs: Sequence[NkiTensor], scales: Sequence[float] | None = None,
                 reduce_op: str = "add", index: NkiTensor | None = None, **_: Any) -> None:
    if index is not None:
        raise NotImplementedError("dma_compute by indices")
    parts: list[Pair] = []
    for n, src in enumerate(srcs):
        value, error = step.pair(src, dst.shape)
        part = value, error
        if scales is not None and float(scales[n]) != 1:
            part = _operator(step, "multiply", part, step.pair(scales[n]))
        parts.append(part)
    step.finish(dst, *functools.reduce(functools.partial(_operator, step, reduce_op), parts))


@rule("memset")
def _memset(step: Step, dst: NkiTensor, value: float = 0, **_: Any) -> None:
    if (numbers(dst) == value).all():
        return step.follow.keep(dst, step.none(dst.shape))
    whole = np.full(dst.shape, float(value))
    return step.finish(dst, whole, rounding(step.none(dst.shape), step.source, "float32", whole))


@rule("iota", "rng", "rand2", "dropout", "nonzero_with_count", "sequence_bounds", "nc_find_index8")
def _given(step: Step, dst: NkiTensor, **_: Any) -> None:
    """What no rounding decides, or a comparison: taken as it is."""
    step.follow.keep(dst, step.none(dst.shape))


@rule("tensor_tensor")
def _tensor_tensor(step: Step, dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: str, **_: Any) -> None:
    x = _operator(step, op, step.pair(data1, dst.shape), step.pair(data2, dst.shape))
    step.finish(dst, *x, kept=[data1, data2] if op in exact.KEEPS else None)


@rule("tensor_scalar")
def _tensor_scalar(step: Step, dst: NkiTensor, data: NkiTensor, op0: str | None = None, operand0: Any = None,
                   reverse0: bool = False, op1: str | None = None, operand1: Any = None, reverse1: bool = False,
                   **_: Any) -> None:
    _chain(step, dst, data, [(op0, operand0, reverse0), (op1, operand1, reverse1)])


@rule("scalar_tensor_tensor")
def _scalar_tensor_tensor(step: Step, dst: NkiTensor, data: NkiTensor, op0: str, operand0: Any, op1: str, operand1: Any,
                          reverse0: bool = False, reverse1: bool = False, **_: Any) -> None:
    _chain(step, dst, data, [(op0, operand0, reverse0), (op1, operand1, reverse1)])


@rule("reciprocal")
def _reciprocal(step: Step, dst: NkiTensor, data: NkiTensor, **_: Any) -> None:
    _chain(step, dst, data, [("reciprocal", None, False)])


def _is_number(operand: Any, number: float) -> bool:
    return isinstance(operand, (int, float)) and float(operand) == number


def _applied(step: Step, op: str, x: Pair) -> Pair:
    """A function of the Scalar engine: its result, rounded to binary32 unless it keeps its argument."""
    function = exact.ACTIVATION[op]
    result = np.asarray(function(x[0]), np.float64)
    error = through(function, [x[0]], [x[1]])
    if op not in exact.KEEPS:
        rounding(error, step.source, "float32", result)
    return result, error


def _activated(step: Step, op: str, x: Pair, bias: Any, scale: Any) -> tuple[Pair, bool]:
    if not _is_number(scale, 1) and not _is_number(scale, 0):
        x = _operator(step, "multiply", x, step.pair(scale, np.shape(x[0])))
    if bias is not None and not _is_number(bias, 0):
        x = _operator(step, "add", x, step.pair(bias, np.shape(x[0])))
    return _applied(step, op, x), op in exact.KEEPS


def _sum_beside(step: Step, dst: NkiTensor, total: NkiTensor, op: str, value: NDArray[Any], error: Error) -> None:
    """What an instruction adds up of its results before their cast. A table errs to one side: where the results are
    seen in binary32, what they are off by adds up as it is."""
    result, out = _reduced(step, op, value, error)
    if op == "add" and dst.dtype == "float32":
        off = numbers(dst) - value
        off = abs(np.where(np.isfinite(off), off, 0).reshape(len(value), -1).sum(1))
        out.add_local(step.source, off, off * off)
    _finish_reduced(step, total, result, out)


@rule("activation")
def _activation(step: Step, dst: NkiTensor, op: str, data: NkiTensor, bias: Any = None, scale: Any = 1.0,
                reduce_res: NkiTensor | None = None, reduce_cmd: int = 0, **_: Any) -> None:
    if op not in exact.ACTIVATION:
        raise NotImplementedError(f"activation {op}")
    x, kept = _activated(step, op, step.pair(data, dst.shape), bias, scale)
    step.finish(dst, *x, kept=[data] if kept and bias is None and _is_number(scale, 1) else None)
    if reduce_res is not None:
        if reduce_cmd in (2, 3):
            raise NotImplementedError("activation that goes on with registers")
        _sum_beside(step, dst, reduce_res, "add", *x)


@rule("activate2")
def _activate2(step: Step, dst: NkiTensor, data: NkiTensor, op: str, op0: str | None = None, op1: str | None = None,
               imm0: Any = 0, imm1: Any = 0, reverse0: bool = False, reverse1: bool = False, reduce_op: str = "add",
               reduce_res: NkiTensor | None = None, reduce_cmd: int = 0, **_: Any) -> None:
    if op not in exact.ACTIVATION:
        raise NotImplementedError(f"activate2 {op}")
    x, kept = step.pair(data, dst.shape), True
    for name, number, reverse in ((op0, imm0, reverse0), (op1, imm1, reverse1)):
        x, keeps = _stage(step, x, name, number, reverse)
        kept = kept and keeps
    result, error = _applied(step, op, x)
    step.finish(dst, result, error, kept=[data] if kept and op in exact.KEEPS else None)
    if reduce_res is not None:
        if reduce_cmd in (2, 3):
            raise NotImplementedError("activate2 that goes on with registers")
        _sum_beside(step, dst, reduce_res, "add" if reduce_op in (None, "bypass") else reduce_op, result, error)


@rule("exponential")
def _exponential(step: Step, dst: NkiTensor, src: NkiTensor, max_value: Any = 0.0, reduce_res: NkiTensor | None = None,
                 **_: Any) -> None:
    x = _operator(step, "subtract", step.pair(src, dst.shape), step.pair(max_value, dst.shape))
    result = np.exp(x[0])
    error = rounding(through(np.exp, [x[0]], [x[1]]), step.source, "float32", result)
    step.finish(dst, result, error)
    if reduce_res is not None:
        _finish_reduced(step, reduce_res, *_reduced(step, "add", result, error))


# ---- a choice between elements ----

def _full(error: Error, value: NDArray[Any]) -> NDArray[Any]:
    """As many axes as the numbers have."""
    return error.all.reshape(len(error.all), *(1,) * (value.ndim + 1 - error.all.ndim), *error.all.shape[1:])


def _stacked(errors: Sequence[Error]) -> Error:
    """Of columns: the errors of the whole."""
    return Error(np.stack([e.all for e in errors], -1))


def _chosen(step: Step, dst: NkiTensor, which: NDArray[Any], yes: Pair, no: Pair) -> Pair:
    """Where a comparison decides: as it was decided."""
    value = np.where(which, yes[0], no[0])
    error = Error(np.where(which, _full(yes[1], value), _full(no[1], value)))
    step.finish(dst, value, error)
    return value, error


@rule("tensor_copy_predicated")
def _predicated(step: Step, dst: NkiTensor, src: NkiTensor, predicate: NkiTensor, reverse_pred: bool = False,
                **_: Any) -> None:
    which = (step.pair(predicate, dst.shape)[0] != 0) != bool(reverse_pred)
    _chosen(step, dst, which, step.pair(src, dst.shape), step.pair(dst))


@rule("affine_select", "range_select", "select_reduce")
def _select(step: Step, dst: NkiTensor, on_true_tile: NkiTensor | None = None, on_true: NkiTensor | None = None,
            reduce_res: NkiTensor | None = None, reduce_op: str = "max", **_: Any) -> None:
    """The result shows what was chosen: the tile's own number, or the constant."""
    yes, now = step.pair(on_true_tile if on_true_tile is not None else on_true), numbers(dst)
    which = np.isclose(now, yes[0].reshape(now.shape), rtol=1e-2, atol=0)
    chosen = _chosen(step, dst, which, (yes[0].reshape(now.shape), yes[1].map(lambda e: e.reshape(len(e), *now.shape))),
                     (now, step.none(dst.shape)))
    if reduce_res is not None:
        _finish_reduced(step, reduce_res, *_reduced(step, reduce_op, *chosen))


@rule("nc_stream_shuffle")
def _shuffle(step: Step, dst: NkiTensor, src: NkiTensor, shuffle_mask: Sequence[int], **_: Any) -> None:
    value, error = step.pair(src)
    was, kept = step.pair(dst)
    from_rows = [shuffle_mask[p % 32] for p in range(len(was))]
    order = [min(p // 32 * 32 + (row if row < 32 else 0), len(value) - 1) for p, row in enumerate(from_rows)]
    stays = (np.array(from_rows) > 31).reshape((-1,) + (1,) * (was.ndim - 1))
    moved = error.map(lambda e: np.broadcast_to(e, (len(e), *value.shape))[:, order].reshape(len(e), *was.shape))
    _chosen(step, dst, np.broadcast_to(stays, was.shape), (was, kept), (value[order].reshape(was.shape), moved))


@rule("partition_broadcast")
def _spread(step: Step, dst: NkiTensor, src: NkiTensor, **_: Any) -> None:
    value, error = step.pair(src)
    shape = tuple(dst.shape)
    value, error = value.reshape(1, *shape[1:]), error.map(lambda e: e.reshape(len(e), 1, *shape[1:]))
    step.finish(dst, np.broadcast_to(value, shape), error, kept=[src])


@rule("nc_n_gather")
def _gather(step: Step, dst: NkiTensor, data: NkiTensor, indices: NkiTensor, **_: Any) -> None:
    value, error = step.pair(data)
    rows = len(value)
    at = step.value(indices).reshape(rows, -1).astype(np.int64)
    flat = value.reshape(rows, -1)
    picked = error.map(lambda e: np.take_along_axis(np.broadcast_to(e, (len(e), *value.shape)).reshape(
        len(e), rows, -1), np.broadcast_to(at, (len(e), *at.shape)), 2).reshape(len(e), *dst.shape))
    step.finish(dst, np.take_along_axis(flat, at, 1).reshape(dst.shape), picked, kept=[data])


@rule("max8")
def _max8(step: Step, dst: NkiTensor, src: NkiTensor, **_: Any) -> None:
    values, error = step.value(src), step.error(src)
    rows = len(values)
    values, error = values.reshape(rows, -1), error.map(lambda e: e.reshape(len(e), rows, -1))
    order = np.argsort(-values, axis=1, kind="stable")[:, :8]
    picked = error.map(lambda e: np.take_along_axis(e, order[None], axis=2))
    widest = error.worst.sum(0).max(1)[None, :, None]
    own = picked.worst.sum(0, keepdims=True)
    picked.worst *= np.divide(widest, own, out=np.ones_like(own), where=own > 0)  # another may have come first
    most = np.take_along_axis(values, order, 1)
    picked.drift = drifted(lambda v: -np.sort(-v, axis=1)[:, :8], most, [values], [error])
    step.finish(dst, most.reshape(dst.shape), picked.map(lambda e: e.reshape(len(e), *dst.shape)), kept=[src])


# ---- along the free axes ----

def _reduced(step: Step, name: str, values: NDArray[Any], error: Error, axes: Sequence[int] | None = None) -> Pair:
    """All numbers of a row, or those along `axes`, in one ascending chain of binary32."""
    along = list(range(1, values.ndim) if axes is None else axes)
    rest = [i for i in range(values.ndim) if i not in along]
    turned = np.transpose(values, rest + along).reshape([values.shape[i] for i in rest] + [-1])
    spread = error.map(lambda e: np.transpose(np.broadcast_to(e, (len(e), *values.shape)), [0] + [i + 1 for i in rest] +
                                              [i + 1 for i in along]).reshape(len(e), *turned.shape))
    if name == "add":
        return _summed(step, turned, spread)
    if name in _extremes:
        return _extreme(name, turned, spread)
    result, out = turned[..., 0], spread.map(lambda e: e[..., 0])
    for i in range(1, turned.shape[-1]):
        result, out = _operator(step, name, (result, out), (turned[..., i], spread.map(lambda e, i=i: e[..., i])))
    return result, out


def _summed(step: Step, values: NDArray[Any], error: Error) -> Pair:
    partial = np.cumsum(values, axis=-1)
    out = error.map(lambda e: e.sum(-1))
    steps = spacing("float32", partial[..., 1:])
    steps = np.where(np.isfinite(partial[..., 1:]), steps, 0)
    out.add_local(step.source, (steps / 2).sum(-1), (steps * steps / 12).sum(-1))
    return partial[..., -1], out


_extremes: dict[str, Callable[..., Any]] = {
    "max": np.max, "maximum": np.max, "min": np.min, "minimum": np.min,
    "abs_max": lambda v, axis: abs(v).max(axis), "abs_min": lambda v, axis: abs(v).min(axis),
}


def _extreme(name: str, values: NDArray[Any], error: Error) -> Pair:
    keyed = abs(values) if name.startswith("abs") else values
    which = (np.argmax if "max" in name else np.argmin)(keyed, axis=-1)[..., None]
    out = error.map(lambda e: np.take_along_axis(e, np.broadcast_to(which, (len(e), *which.shape)), -1)[..., 0])
    result = np.take_along_axis(keyed, which, -1)[..., 0]
    reach, of_all = (np.max if "max" in name else np.min), error.bound  # another may be the extreme one
    own = out.bound
    highest, lowest = (abs(difference(reach(keyed + sign * of_all, -1), result)) for sign in (1, -1))
    widest = np.maximum(highest, lowest)
    out.worst = out.worst * np.divide(widest, own, out=np.ones_like(own), where=own > 0)
    out.worst[-1] += np.where(own > 0, 0, widest)
    out.drift = drifted(functools.partial(_extremes[name], axis=-1), result, [values], [error])
    return result, out


def _finish_reduced(step: Step, dst: NkiTensor, value: NDArray[Any], error: Error) -> None:
    own = np.broadcast_to(error.local, error.worst.shape[1:]).reshape(dst.shape)
    step.finish(dst, value.reshape(dst.shape), error.map(lambda e: e.reshape(len(e), *dst.shape)), own=own)


@rule("tensor_reduce")
def _tensor_reduce(step: Step, dst: NkiTensor, op: str, data: NkiTensor, axes: int, negate: bool = False,
                   **_: Any) -> None:
    values = step.value(data)
    value, error = _reduced(step, op, values, step.error(data), tuple(range(values.ndim - axes, values.ndim)))
    _finish_reduced(step, dst, -value if negate else value, error)


@rule("tensor_scalar_reduce")
def _tensor_scalar_reduce(step: Step, dst: NkiTensor, data: NkiTensor, op0: str, operand0: Any, reduce_op: str,
                          reduce_res: NkiTensor, reverse0: bool = False, **_: Any) -> None:
    x = _chain(step, dst, data, [(op0, operand0, reverse0)])
    _finish_reduced(step, reduce_res, *_reduced(step, reduce_op, *x))


@rule("tensor_partition_reduce")
def _partition_reduce(step: Step, dst: NkiTensor, op: str, data: NkiTensor, **_: Any) -> None:
    _finish_reduced(step, dst, *_reduced(step, op, step.value(data), step.error(data), (0,)))


@rule("bn_stats")
def _bn_stats(step: Step, dst: NkiTensor, data: NkiTensor, **_: Any) -> None:
    """Count, mean and count x variance of the even and of the odd elements of each partition."""
    values, error = step.value(data), step.error(data)
    rows = len(values)
    values, error = values.reshape(rows, -1), error.map(lambda e: e.reshape(len(e), rows, -1))
    columns = []
    for first in (0, 1):
        columns += _moments(step, values[:, first::2], error.map(lambda e, f=first: e[:, :, f::2]))
    _finish_columns(step, dst, columns)


def _moments(step: Step, values: NDArray[Any], error: Error) -> list[Pair]:
    rows, count = values.shape
    if not count:
        return [(np.zeros(rows), step.none((rows,)))] * 3
    total, out = _summed(step, values, error)
    mean = total / count, out.map(lambda e: e / count)
    mean[1].variance /= count
    rounding(mean[1], step.source, "float32", mean[0])
    centred = _operator(step, "subtract", (values, error), (mean[0][:, None], mean[1].map(lambda e: e[:, :, None])))
    squares = _operator(step, "square", centred)
    return [(np.full(rows, float(count)), step.none((rows,))), mean, _summed(step, *squares)]


def _finish_columns(step: Step, dst: NkiTensor, columns: Sequence[Pair]) -> None:
    value = np.stack([v for v, _ in columns], -1)
    error = _stacked([e for _, e in columns])
    step.finish(dst, value.reshape(dst.shape), error.map(lambda e: e.reshape(len(e), *dst.shape)))


def _aggregate(triple: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and variance of all, of counts, means and count x variance of parts, [..., parts, 3]."""
    share = triple[..., 0] / np.maximum(triple[..., 0].sum(-1, keepdims=True), 1)
    mean = (share * triple[..., 1]).sum(-1)
    off = triple[..., 1] - mean[..., None]
    return mean, triple[..., 2].sum(-1) / np.maximum(triple[..., 0].sum(-1), 1) + (share * off * off).sum(-1)


def _aggregate_drift(triple: NDArray[Any], drift: NDArray[Any], mean: NDArray[Any],
                     variance: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    means, variances = _aggregate(triple - drift)
    return difference(mean, means), difference(variance, variances)


@rule("bn_aggr")
def _bn_aggr(step: Step, dst: NkiTensor, data: NkiTensor, **_: Any) -> None:
    values, error = step.value(data), step.error(data)
    rows = len(values)
    triple, errors = values.reshape(rows, -1, 3), error.map(lambda e: e.reshape(len(e), rows, -1, 3))
    count = triple[:, :, 0]
    share = count / np.maximum(count.sum(1, keepdims=True), 1)
    mean, variance = _aggregate(triple)
    means = errors.map(lambda e: e[..., 1])
    off = triple[:, :, 1] - mean[:, None]
    mean_drift, spread_drift = _aggregate_drift(triple, errors.drift, mean, variance)
    mean_error = Error.of((share * means.worst).sum(-1), (share * share * means.variance).sum(-1), mean_drift)
    total = np.maximum(count.sum(1), 1)
    reach = means.worst + mean_error.worst[..., None]
    spread = Error.of(errors.worst[..., 2].sum(-1) / total + (share * (2 * abs(off) + reach.sum(0)) * reach).sum(-1),
                   errors.variance[..., 2].sum(-1) / total**2 + (4 * share**2 * off**2 * means.variance).sum(-1),
                   spread_drift)
    for value, out in ((mean, mean_error), (variance, spread)):
        unit = np.ldexp(abs(value), -24) * (2 * triple.shape[1] + 2)
        out.add_local(step.source, unit, unit * unit / 12)
    _finish_columns(step, dst, [(mean, mean_error), (variance, spread)])


@rule("tensor_tensor_scan")
def _scan(step: Step, dst: NkiTensor, data0: NkiTensor, data1: NkiTensor, initial: Any, op0: str, op1: str,
          reverse0: bool = False, reverse1: bool = False, **_: Any) -> None:
    first, second = step.pair(data0), step.pair(data1)
    state, values, errors = step.pair(initial), [], []
    if np.ndim(state[0]):
        state = state[0].reshape(-1), state[1].map(lambda e: e.reshape(len(e), -1))
    else:
        state = np.full(first[0].shape[0], float(state[0])), step.none((first[0].shape[0],))
    for i in range(first[0].shape[1]):
        a, b = ((v[:, i], e.map(lambda x, i=i: np.broadcast_to(x, (len(x), *v.shape))[:, :, i])) for v, e in
                (first, second))
        state = _operator(step, op0, *((state, a) if reverse0 else (a, state)))
        state = _operator(step, op1, *((b, state) if reverse1 else (state, b)))
        values.append(state[0])
        errors.append(state[1])
    step.finish(dst, np.stack(values, -1), _stacked(errors))


# ---- the Tensor engine ----

@rule("dma_transpose")
def _dma_transpose(step: Step, dst: NkiTensor, src: NkiTensor, index: NkiTensor | None = None,
                   axes: Sequence[int] | None = None, **_: Any) -> None:
    if index is not None:
        raise NotImplementedError("dma_transpose of rows by indices")
    value, error = step.pair(src)
    turned = tuple(axes) if axes is not None else {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[value.ndim]
    rearranged = error.map(lambda e: e.transpose(0, *(1 + a for a in turned)).reshape(len(e), *dst.shape))
    step.finish(dst, value.transpose(turned).reshape(dst.shape), rearranged, kept=[src])


@rule("nc_transpose", "vector_transpose")
def _transpose(step: Step, dst: NkiTensor, data: NkiTensor, **_: Any) -> None:
    step.move(dst, data, turn=True)


def _turned(x: Pair, slots: int | None = None) -> Pair:
    """[K, ...] as [K, free], numbers and errors; slots: the axis of the rows of K that a partition holds."""
    value, error = x
    full = error.map(lambda e: np.stack([rows_of_k(part, slots)
                                         for part in np.broadcast_to(e, (len(e), *value.shape))]))
    return rows_of_k(value, slots), full


@rule("nc_matmul")
def _matmul(step: Step, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, accumulate: bool = False,
            double_row: bool = False, is_transpose: bool = False, **_: Any) -> None:
    if is_transpose:
        return step.move(dst, stationary, turn=True)
    step.slots = 1 if double_row else None
    _product(step, dst, stationary, moving, step.pair(stationary), step.pair(moving), accumulate)


def _scale_rows(scale: NDArray[Any], blocks: int) -> NDArray[Any]:
    """[blocks, free]: of a dense tile all rows, else rows 0 to 3 of each 32."""
    dense = scale.shape[0] == blocks
    return scale if dense else scale[[32 * (b // 4) + b % 4 for b in range(blocks)]]


def _scaled(error: Error, factor: NDArray[Any]) -> Error:
    return Error.of(error.worst * factor, error.variance * factor * factor, error.drift * factor)


@rule("nc_matmul_mx")
def _matmul_mx(step: Step, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, stationary_scale: NkiTensor,
               moving_scale: NkiTensor, accumulate: bool = False, **_: Any) -> None:
    """Scales are taken as they came out: each is a power of two, by which errors grow, too."""
    def scaled(operand: NkiTensor, scale: NkiTensor) -> Pair:
        value, error = step.pair(operand)
        blocks = len(value) // 8
        step.scales.append(_scale_rows(codes(scale), blocks).T)
        factor = np.repeat(_scale_rows(step.value(scale), blocks), 8, axis=0)[:, :, None]
        return value * factor, _scaled(error, factor)
    step.slots = 2
    _product(step, dst, stationary, moving, scaled(stationary, stationary_scale), scaled(moving, moving_scale),
             accumulate)


@rule("quantize_mx")
def _quantize_mx(step: Step, dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, **_: Any) -> None:
    """dst is src over its scale, rounded; the scale is taken as it came out."""
    value, error = step.pair(src)
    rows = len(value)
    value, error = value.reshape(rows, -1, 4), error.map(lambda e: e.reshape(len(e), rows, -1, 4))
    shrink = 1 / np.repeat(_scale_rows(numbers(dst_scale), rows // 8), 8, axis=0)[:, :, None]
    step.finish(dst, value * shrink, _scaled(error, shrink))
    step.follow.keep(dst_scale, step.none(dst_scale.shape))


@rule("nc_match_replace8")
def _match_replace8(step: Step, dst: NkiTensor, data: NkiTensor, vals: NkiTensor, imm: float,
                    dst_idx: NkiTensor | None = None, **_: Any) -> None:
    """The first place of each of eight numbers, as the comparisons fell, becomes imm, which is exact."""
    value, error = step.pair(data)
    rows = len(value)
    flat, wanted = value.reshape(rows, -1), step.value(vals).reshape(rows, -1)
    free = np.ones(flat.shape, bool)
    for i in range(wanted.shape[1]):
        hit = free & (flat == wanted[:, i:i + 1])
        first = np.argmax(hit, axis=1)
        free[hit.any(axis=1), first[hit.any(axis=1)]] = False
    which = free.reshape(dst.shape)
    _chosen(step, dst, which, (value.reshape(dst.shape), error.map(lambda e: e.reshape(len(e), *dst.shape))),
            (np.full(dst.shape, float(imm)), step.none(dst.shape)))
    if dst_idx is not None:
        step.follow.keep(dst_idx, step.none(dst_idx.shape))


def _product(step: Step, dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, left: Pair, right: Pair,
             accumulate: bool) -> None:
    """stationary turned times moving, of these numbers and errors; the roundings by the operands themselves."""
    (a, ea), (b, eb) = _turned(left, step.slots), _turned(right, step.slots)
    product, shape = a.T @ b, (a.shape[1], b.shape[1])
    error = step.none(shape)
    for s in range(step.sources):
        if ea.worst[s].any():
            error.worst[s] += ea.worst[s].T @ (abs(b) + eb.bound)
            error.variance[s] += ea.variance[s].T @ (b * b)
        if eb.worst[s].any():
            error.worst[s] += abs(a.T) @ eb.worst[s]
            error.variance[s] += (a * a).T @ eb.variance[s]
    error.drift = drifted(lambda x, y: x.T @ y, product, [a, b], [ea, eb])
    error.add_local(step.source, *step.product_tolerance(stationary, moving, shape))
    if accumulate:
        value, before = step.pair(dst)
        product = product + value.reshape(shape)
        error = error + before.map(lambda e: e.reshape(len(e), *shape))
        rounding(error, step.source, "float32", product)
    step.finish(dst, product.reshape(dst.shape), error.map(lambda e: e.reshape(len(e), *dst.shape)))
