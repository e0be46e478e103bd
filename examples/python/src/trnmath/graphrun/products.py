"""Products and convolutions, as rows of a matrix times columns of another: what the array multiplies.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from .graph import Op, Trouble
from .machine import Array, Engines, Exact

Machine = Exact | Engines
Arrays = list[Array]


def dot_general(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Axes of the result: shared ones, rows of the left, columns of the right."""
    (a, b), given = arrays, op.attributes
    batch = given.get("lhs_batch", []), given.get("rhs_batch", [])
    inner = given.get("lhs_contracting", []), given.get("rhs_contracting", [])
    left, rows = _sides(a, batch[0], inner[0], False)
    right, columns = _sides(b, batch[1], inner[1], True)
    shape = tuple(a.shape[n] for n in batch[0])
    if left.dtype != right.dtype:
        wider = np.result_type(left, right)
        left, right = left.astype(wider), right.astype(wider)
    pair: tuple[str, str] = (op.get("formats")[0], op.get("formats")[1])
    if left.dtype.kind in "iub":
        made = [x.astype(np.int64) @ y.astype(np.int64) for x, y in zip(left, right)]
    else:
        made = [machine.product(x, y, op, pair) for x, y in zip(left, right)]
    whole = np.stack(made) if made else np.zeros((0, left.shape[1], right.shape[2]), left.dtype)
    return [whole.reshape(shape + rows + columns)]


def _sides(x: Array, batch: list[int], inner: list[int], right: bool) -> tuple[Array, tuple[int, ...]]:
    """[batch, M, K] or [batch, K, N], and what M or N was."""
    outer = [n for n in range(x.ndim) if n not in batch and n not in inner]
    order = batch + inner + outer if right else batch + outer + inner
    sizes = [int(np.prod([x.shape[n] for n in part], dtype=np.int64)) for part in (batch, outer, inner)]
    kept = tuple(x.shape[n] for n in outer)
    return x.transpose(order).reshape((sizes[0], sizes[2], sizes[1]) if right else tuple(sizes)), kept


def einsum(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """"bij,bjk->bik": a product, and its axes in the order that is asked for."""
    left, right, out = re.split(r",|->", str(op.get("einsum_config")).replace(" ", ""))
    shared = [c for c in left if c in right]
    alone = [c for c in left + right if c not in out and c not in shared]
    if alone or "." in out or any(len(set(part)) < len(part) for part in (left, right, out)):
        raise Trouble(f"line {op.line}: einsum '{op.name}' ({op.get('einsum_config')}) is not known here")
    batch, inner = [c for c in shared if c in out], [c for c in shared if c not in out]
    axes = {f"{side}_{name}": [labels.index(c) for c in part] for side, labels in (("lhs", left), ("rhs", right))
            for name, part in (("batch", batch), ("contracting", inner))}
    made = dot_general(machine, replace(op, attributes=op.attributes | axes), arrays)[0]
    order = batch + [c for c in left if c not in shared] + [c for c in right if c not in shared]
    return [made.transpose([order.index(c) for c in out])]


# ---- convolutions ----

def _axes(labels: str, names: str) -> list[int]:
    """Where an operand has its axes: the two that are named, then the spatial ones."""
    digits = sorted(c for c in labels if c.isdigit())
    return [labels.index(c) for c in (*names, *digits)]


def padded(x: Array, pads: list[tuple[int, int]], dilation: list[int], value: Array | float = 0) -> Array:
    """[..., spatial] with a value between and around; negative widths cut off."""
    rank = len(pads)
    front, spatial = (slice(None),) * (x.ndim - rank), x.shape[x.ndim - rank:]
    spread = [(n - 1) * d + 1 if n else 0 for n, d in zip(spatial, dilation)]
    sizes = [n + max(a, 0) + max(b, 0) for n, (a, b) in zip(spread, pads)]
    wide = np.full((*x.shape[:x.ndim - rank], *sizes), value, x.dtype)
    wide[(*front, *(slice(max(a, 0), max(a, 0) + n, d) for n, (a, _), d in zip(spread, pads, dilation)))] = x
    return wide[(*front, *(slice(max(-a, 0), max(n - max(-b, 0), 0)) for (a, b), n in zip(pads, sizes)))]


def windows(x: Array, sizes: list[int], strides: list[int], dilation: list[int]) -> Array:
    """[..., spatial] as [..., out, window], without a copy; the last axes are spatial."""
    rank = len(sizes)
    reach = [(k - 1) * d + 1 for k, d in zip(sizes, dilation)]
    if any(r > n for r, n in zip(reach, x.shape[-rank:] if rank else ())):
        out = [max((n - r) // s + 1, 0) for n, r, s in zip(x.shape[-rank:], reach, strides)]
        return np.zeros((*x.shape[:x.ndim - rank], *out, *sizes), x.dtype)
    spatial: Any = tuple(range(x.ndim - rank, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, spatial) if rank else x
    picked: Any = (Ellipsis, *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilation))
    return view[picked] if rank else view


def convolution(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Each window of the input is a row, each kernel a column."""
    given, (lhs, rhs, out) = op.attributes, op.get("labels")
    x = arrays[0].transpose(_axes(lhs, "bf"))
    w = arrays[1].transpose(_axes(rhs, "oi"))
    rank = x.ndim - 2
    ones = [1] * rank
    if any(given.get("window_reversal", [])):
        w = np.flip(w, [2 + n for n, turned in enumerate(given["window_reversal"]) if turned])
    strides, right = given.get("window_strides", ones), given.get("rhs_dilation", ones)
    x = padded(x, given.get("padding", [(0, 0)] * rank), given.get("lhs_dilation", ones))
    groups, batches = given.get("feature_group_count", 1), given.get("batch_group_count", 1)
    if batches > 1:
        if groups > 1:
            raise Trouble(f"line {op.line}: convolution '{op.name}' has groups of features and of batches")
        parts = [_convolve(machine, op, a, b, strides, right) for a, b in zip(np.split(x, batches), np.split(w, batches))]
    else:
        parts = [_convolve(machine, op, a, b, strides, right)
                 for a, b in zip(np.split(x, groups, 1), np.split(w, groups, 0))]
    whole = np.concatenate(parts, 1)
    return [whole.transpose(np.argsort(_axes(out, "bf")))]


def _convolve(machine: Machine, op: Op, x: Array, w: Array, strides: list[int], dilation: list[int]) -> Array:
    view = windows(x, list(w.shape[2:]), strides, dilation)  # [N, C, out, window]
    rank = w.ndim - 2
    spatial = view.shape[2:2 + rank]
    order = (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
    rows = view.transpose(order).reshape(-1, int(np.prod(w.shape[1:], dtype=np.int64)))
    columns = w.reshape(w.shape[0], -1).T
    pair: tuple[str, str] = (op.get("formats")[0], op.get("formats")[1])
    whole = rows.dtype.kind in "iub" and columns.dtype.kind in "iub"
    made = rows.astype(np.int64) @ columns.astype(np.int64) if whole else machine.product(rows, columns, op, pair)
    return made.reshape(x.shape[0], *spatial, w.shape[0]).transpose(0, rank + 1, *range(1, rank + 1))


TABLE: dict[str, Any] = {"dot_general": dot_general, "einsum": einsum, "convolution": convolution}
