"""Gather and scatter, as XLA defines them. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .graph import Op, Trouble
from .machine import Array, Engines, Exact

Machine = Exact | Engines
Arrays = list[Array]


def _indices(starts: Array, axis: int, batch: list[int]) -> tuple[Array, list[int]]:
    """[rows, index], and the sizes of what the rows were."""
    if axis == starts.ndim:
        starts = starts[..., None]
    if starts.dtype == np.uint64:  # what lies beyond lies beyond any axis
        starts = np.minimum(starts, np.uint64(2**63 - 1))
    starts = np.moveaxis(starts, axis, -1)
    rows = int(np.prod(starts.shape[:-1], dtype=np.int64))  # (an index of no numbers is one, too)
    return starts.reshape(rows, starts.shape[-1]).astype(np.int64), list(starts.shape[:-1])


def _batched(rows: list[int], batch: list[int], axis: int) -> list[Array]:
    """Of each row its place along the axes that operand and indices share."""
    if not batch:
        return []
    grid = np.indices(rows).reshape(len(rows), -1)
    return [grid[n if n < axis else n - 1] for n in batch]


def gather(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """A slice of the operand for each row of indices; indices are pushed back until it lies inside."""
    x, starts = arrays
    given = op.attributes
    sizes, mapped, axis = op.get("slice_sizes"), given.get("start_index_map", []), given.get("index_vector_dim", 0)
    offset, collapsed = given.get("offset_dims", []), given.get("collapsed_slice_dims", [])
    shared = given.get("operand_batching_dims", [])
    rows, outer = _indices(starts, axis, [])
    at = np.zeros((x.ndim, rows.shape[0]), np.int64)
    for n, dim in enumerate(mapped):
        at[dim] = np.clip(rows[:, n], 0, x.shape[dim] - sizes[dim])
    for dim, place in zip(shared, _batched(outer, given.get("start_indices_batching_dims", []), axis)):
        at[dim] = place
    kept = [d for d in range(x.ndim) if d not in collapsed and d not in shared]
    index = []
    for dim in range(x.ndim):
        reach = [-1 if k == dim else 1 for k in kept]
        index.append(at[dim].reshape([-1] + [1] * len(kept)) + (np.arange(sizes[dim]).reshape([1] + reach) if dim in kept else 0))
    found = x[tuple(index)].reshape(outer + [sizes[d] for d in kept])
    rank = found.ndim
    others = [n for n in range(rank) if n not in offset]
    order = np.empty(rank, int)
    order[others] = np.arange(len(outer))
    order[list(offset)] = np.arange(len(outer), rank)
    return [found.transpose(order)]


def scatter_places(x: Array, indices: Array, updates: Array, op: Op) -> tuple[tuple[Array, ...], Array, Array]:
    """(index into x, updates, which of them lie inside), both flat."""
    given = op.attributes
    axis, window = given.get("index_vector_dim", 0), given.get("update_window_dims", [])
    inserted, mapped = given.get("inserted_window_dims", []), given.get("scatter_dims_to_operand_dims", [])
    shared = given.get("operand_batching_dims", [])
    rows, outer = _indices(indices, axis, [])
    outside = [n for n in range(updates.ndim) if n not in window]
    flat = updates.transpose(outside + list(window)).reshape(rows.shape[0], -1)
    kept = [d for d in range(x.ndim) if d not in inserted and d not in shared]
    sizes = [updates.shape[n] for n in window]
    at = np.zeros((x.ndim, rows.shape[0]), np.int64)
    for n, dim in enumerate(mapped):
        at[dim] = rows[:, n]
    for dim, place in zip(shared, _batched(outer, given.get("start_indices_batching_dims", []), axis)):
        at[dim] = place
    offsets = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), np.int64)
    where = [at[d][:, None] + (offsets[kept.index(d)][None, :] if d in kept else 0) for d in range(x.ndim)]
    whole = [np.broadcast_to(w, flat.shape).reshape(-1) for w in where]
    inside = np.ones(flat.size, bool)
    for w, n in zip(whole, x.shape):
        inside &= (w >= 0) & (w < n)
    start = [at[d][:, None] + 0 * offsets[:1] if len(offsets) else at[d][:, None] for d in range(x.ndim)]
    for d in kept:  # a window that does not lie inside as a whole changes nothing
        low = np.broadcast_to(start[d], flat.shape).reshape(-1)
        inside &= (low >= 0) & (low + sizes[kept.index(d)] <= x.shape[d])
    return tuple(whole), flat.reshape(-1), inside


def dynamic_gather(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """The same with sizes from an operand."""
    sizes = np.asarray(arrays[2]).reshape(-1).astype(int).tolist()
    return gather(machine, replace(op, attributes=op.attributes | {"slice_sizes": sizes}), arrays[:2])


def torch_index_select(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """Along an axis the elements that a list of indices names."""
    if op.attributes.get("batch_dims", 0):
        raise Trouble(f"line {op.line}: torch_index_select '{op.name}' of several batches is not known here")
    return [np.take(arrays[0], arrays[1].astype(np.int64), op.axis(0), mode="clip")]


TABLE: dict[str, Any] = {"gather": gather, "dynamic_gather": dynamic_gather, "torch_index_select": torch_index_select}
