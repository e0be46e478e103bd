"""Programs that say how arrays lie on devices: GSPMD's annotations and Shardy's (sdy).

Outside of manual parts such a program is one program on whole arrays, the same on all devices; annotations change no
number. Inside (shard_map) each device has its part. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graph import Graph, Mesh, Op, Trouble

Array = NDArray[Any]
Devices = list[list[Array]]

# sdy's operations that move parts between devices, and change no number of the whole
SAME = frozenset("sharding_constraint reshard all_gather all_slice all_to_all all_reduce reduce_scatter collective_permute "
                 "propagation_barrier sharded_to_unreduced replicated_to_unreduced".split())
_INTO, _OUT_OF = "SPMDFullToShardShape", "SPMDShardToFullShape"


class Tiles:
    """counts: into how many parts each axis is cut; places: of each device, which part it has."""

    def __init__(self, counts: list[int], places: list[tuple[int, ...]]) -> None:
        self.counts, self.places = counts, places

    def part(self, dims: tuple[int, ...], device: int, op: Op) -> tuple[slice, ...]:
        """Of a whole array, what the device has."""
        if len(dims) < len(self.counts) or any(n % count for n, count in zip(dims, self.counts)):
            raise Trouble(f"line {op.line}: '{op.name}' does not cut {list(dims)} into equal parts {self.counts}")
        if device >= len(self.places):
            raise Trouble(f"line {op.line}: '{op.name}' has no part for device {device}")
        sizes = [n // count for n, count in zip(dims, self.counts)]
        return tuple(slice(p * size, (p + 1) * size) for p, size in zip(self.places[device], sizes))

    def cut(self, wholes: list[Array], op: Op) -> list[Array]:
        """Of each device its part; devices with the same part of one array share it."""
        found: dict[tuple[int, ...], Array] = {}
        made = []
        for d, x in enumerate(wholes):
            rows = self.part(x.shape, d, op)
            key = (id(x), *(r.start for r in rows))
            made.append(found.setdefault(key, x if all(c == 1 for c in self.counts) else x[rows]))
        return made

    def join(self, parts: list[Array], op: Op) -> list[Array]:
        """The whole, on all devices. Devices that have the same part must agree on it."""
        first = parts[0]
        counts = self.counts + [1] * (first.ndim - len(self.counts))
        dims = tuple(n * count for n, count in zip(first.shape, counts))
        owner: dict[tuple[int, ...], int] = {}
        whole = np.empty(dims, first.dtype)
        for d, x in enumerate(parts):
            rows = self.part(dims, d, op)
            place = tuple(r.start for r in rows)
            other = parts[owner.setdefault(place, d)]
            if other is x and owner[place] != d:
                continue
            if not np.array_equal(other, x, equal_nan=x.dtype.kind in "fc"):
                raise Trouble(f"line {op.line}: '{op.name}' takes as one what devices {owner[place]} and {d} do not agree on")
            whole[rows] = x
        return [whole] * len(parts)


# ---- GSPMD: "{devices=[2,4]<=[8]}", "{replicated}", ... ----

def _listed(text: str) -> list[int]:
    return [int(n) for n in text.split(",")]


def of_gspmd(text: str, devices: int, op: Op) -> Tiles:
    """Of an annotation's text, or Trouble."""
    if text == "{replicated}" or re.fullmatch(r"\{maximal device=\d+\}", text):
        return Tiles([], [()] * devices)
    found = re.fullmatch(r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))"
                         r"( last_tile_dim_replicate| last_tile_dims=\{replicated\})?\}", text)
    if found is None:
        raise Trouble(f"line {op.line}: the sharding {text} of '{op.name}' is not known here")
    counts = _listed(found.group(1))
    if found.group(2):
        sizes = _listed(found.group(2))
        order = np.arange(int(np.prod(sizes))).reshape(sizes)
        order = order.transpose(_listed(found.group(3))).reshape(-1) if found.group(3) else order.reshape(-1)
    else:
        order = np.array(_listed(found.group(4)))
    if order.size != np.prod(counts) or sorted(order) != list(range(order.size)):
        raise Trouble(f"line {op.line}: the sharding {text} of '{op.name}' does not name each device once")
    rank = len(counts) - bool(found.group(5))
    grid = np.argwhere(np.ones(counts, bool))[:, :rank]
    places: list[tuple[int, ...]] = [()] * order.size
    for row, d in zip(grid, order):
        places[d] = tuple(int(n) for n in row)
    return Tiles(counts[:rank], places)


# ---- Shardy: <@mesh, [{"x"}, {}]> ----

def mesh_of(value: list[Any], line: int) -> Mesh:
    """<["x"=2, "y"=4]>, with device_ids maybe."""
    axes = dict(zip(value[0][::2], value[0][1::2]))
    ids = next((row for name, row in zip(value, value[1:]) if name == "device_ids"), None)
    count = int(np.prod(list(axes.values()))) if axes else 1
    order = [int(n) for n in ids] if ids is not None else list(range(count))
    if sorted(order) != list(range(count)) or not all(isinstance(n, int) and n > 0 for n in axes.values()):
        raise Trouble(f"line {line}: this mesh is not known here")
    return axes, order


def of_sdy(value: Any, meshes: dict[str, Mesh], manual: list[str], op: Op) -> Tiles:
    """Parts along those of its axes that are manual, or Trouble."""
    if not isinstance(value, list) or len(value) < 2 or value[0] not in meshes or not isinstance(value[1], list):
        raise Trouble(f"line {op.line}: a sharding of '{op.name}' is of a mesh that is not there")
    if "unreduced" in value:
        raise Trouble(f"line {op.line}: '{op.name}' has sums that are not complete: not known here")
    axes, order = meshes[value[0]]
    along = [[name for name in dim if name != "?"] for dim in value[1] if isinstance(dim, dict)]
    for name in (name for dim in along for name in dim):
        if name not in axes:
            raise Trouble(f"line {op.line}: the mesh of '{op.name}' has no axis '{name}'")
    cut = [[name for name in dim if name in manual] for dim in along]
    counts = [int(np.prod([axes[name] for name in dim], dtype=int)) for dim in cut]
    places: list[tuple[int, ...]] = [()] * len(order)
    for n, d in enumerate(order):
        at = dict(zip(axes, map(int, np.unravel_index(n, tuple(axes.values())) if axes else ())))
        places[d] = tuple(_number([(at[name], axes[name]) for name in dim]) for dim in cut)
    return Tiles(counts, places)


def _number(digits: list[tuple[int, int]]) -> int:
    """Of several axes, the first counts most."""
    made = 0
    for digit, size in digits:
        made = made * size + digit
    return made


# ---- what a graph has of it ----

def resolve(graph: Graph) -> None:
    """Custom calls between whole and part become shard and unshard; manual computations get their tiles."""
    devices = graph.partitions * graph.replicas
    for axes, order in graph.meshes.values():
        devices = max(devices, len(order))
    for computation in graph.computations.values():
        made_by = {name: op for op in computation.ops for name in op.results}
        for op in computation.ops:
            if op.kind == "manual_computation":
                _manual(graph, op)
            elif op.kind == "custom_call" and op.attributes.get("target") == _INTO:
                before = made_by.get(op.operands[0]) if op.operands else None
                text = before.attributes.get("sharding") if before else None
                if text is None:
                    raise Trouble(f"line {op.line}: '{op.name}' takes parts of what no sharding is said of")
                op.kind, op.attributes["tiles"] = "shard", of_gspmd(text, devices, op)
            elif op.kind == "custom_call" and op.attributes.get("target") == _OUT_OF:
                op.kind, op.attributes["tiles"] = "unshard", of_gspmd(op.get("sharding"), devices, op)
            else:
                continue
            graph.parts = True


def _manual(graph: Graph, op: Op) -> None:
    manual = list(op.attributes.get("manual_axes", []))
    for name, count in (("in_shardings", len(op.operands)), ("out_shardings", len(op.results))):
        found = [of_sdy(value, graph.meshes, manual, op) for value in op.get(name)]
        if len(found) != count:
            raise Trouble(f"line {op.line}: '{op.name}' has {len(found)} {name}, and {count} are needed")
        op.attributes[name + "_tiles"] = found


def shard(_: Any, op: Op, given: Devices, __: Graph) -> Devices:
    """Of whole arrays, each device's part."""
    return [[x] for x in op.get("tiles").cut([arrays[0] for arrays in given], op)]


def unshard(_: Any, op: Op, given: Devices, __: Graph) -> Devices:
    """Of parts, the whole."""
    return [[x] for x in op.get("tiles").join([arrays[0] for arrays in given], op)]


TABLE: dict[str, Any] = {"shard": shard, "unshard": unshard}
