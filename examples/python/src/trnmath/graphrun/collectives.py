"""Operations between devices: all devices' operands give all devices' results.

Sums of the engines go in the order of the collective's algorithm on the system (trnmath.collective); the reference adds
in float64. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy as np
import trnmath

from . import formats
from .graph import Graph, Op, Trouble, flat
from .machine import FOLDS, Array, Engines, Exact
from .reductions import kind_of

Machine = Exact | Engines
Devices = list[list[Array]]  # of each device its operands, or its results


def groups_of(op: Op, devices: int, graph: Graph) -> list[list[int]]:
    """Who works together. Where no groups are given: all; but replicas alone without a channel, so that in a module of
    partitions each is by itself."""
    groups = [g for g in op.attributes.get("replica_groups", []) if g]
    if not groups and "channel_id" not in op.attributes and graph.partitions > 1:
        if graph.replicas > 1:
            raise Trouble(f"line {op.line}: '{op.name}' has no groups and no channel, in a module of replicas and partitions")
        return [[d] for d in range(devices)]
    groups = groups or [list(range(devices))]
    if sorted(d for g in groups for d in g) != list(range(devices)):
        raise Trouble(f"line {op.line}: groups of '{op.name}' are not those of {devices} devices")
    return groups


def _sum(machine: Machine, op: Op, kind: str, parts: list[Array], format_: str) -> Array:
    """Of one array for each device of a group."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(machine, Engines) and kind == "add" and formats.is_float(format_) and parts[0].dtype == np.float32:
        return _by_algorithm(machine, parts, format_)
    made = parts[0]
    for part in parts[1:]:
        made = FOLDS[kind](made, part)
    return made


def _by_algorithm(machine: Engines, parts: list[Array], format_: str) -> Array:
    """As the system's algorithm adds, each sum rounded to the format."""
    called = str(formats.FLOATS[format_][1])
    narrow = format_ != "f32"
    sources: list[Any] = [np.ascontiguousarray(p).reshape(-1) for p in parts]
    if narrow:
        sources = [trnmath.convert(s, called) for s in sources]
    out = [np.empty_like(s) for s in sources]
    pair: Any = (lambda a: (a, called)) if narrow and called != "float16" else (lambda a: a)
    ranks = next((n for n in range(1, len(parts) + 1) if len(parts) % n == 0 and len(parts) // n <= 16), len(parts))
    trnmath.collective("all_reduce", [pair(s) for s in sources], [pair(o) for o in out], machine.settings.system, None,
                       len(parts) // ranks, ranks)
    made = trnmath.convert(pair(out[0]), "float32") if narrow else out[0]
    return made.reshape(parts[0].shape)


def all_reduce(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """The sum (or what the body says) in all devices of a group."""
    kind = kind_of(graph, op)
    if not kind:
        raise Trouble(f"line {op.line}: all_reduce '{op.name}' by more than one operation is not known here")
    made: Devices = [[] for _ in given]
    for group in groups_of(op, len(given), graph):
        for n in range(len(given[0])):
            whole = _sum(machine, op, kind, [given[d][n] for d in group], op.get("formats")[n])
            for d in group:
                made[d].append(whole)
    return made


def _same(op: Op, n: int, x: Array) -> bool:
    """Is an operand's result as large as it is: a token that torch_xla sends along?"""
    shapes = [shape for type_ in op.types for shape in flat(type_)]
    return n < len(shapes) and shapes[n].dims == x.shape


def reduce_scatter(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """Each device of a group gets a part of the sum, of each operand."""
    kind, axis = kind_of(graph, op), op.axis()
    if not kind:
        raise Trouble(f"line {op.line}: reduce_scatter '{op.name}' by more than one operation is not known here")
    made: Devices = [[] for _ in given]
    for group in groups_of(op, len(given), graph):
        for n, first in enumerate(given[group[0]]):
            whole = _sum(machine, op, kind, [given[d][n] for d in group], op.get("formats")[n])
            parts = [whole] * len(group) if _same(op, n, first) else np.split(whole, len(group), axis)
            for d, part in zip(group, parts):
                made[d].append(part)
    return made


def all_gather(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """The parts of a group, side by side, of each operand."""
    made: Devices = [[] for _ in given]
    for group in groups_of(op, len(given), graph):
        for n, first in enumerate(given[group[0]]):
            same = _same(op, n, first)
            whole = first if same else np.concatenate([given[d][n] for d in group], op.axis())
            for d in group:
                made[d].append(given[d][n] if same else whole)
    return made


def all_to_all(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """Part j of device i becomes part i of device j. HLO's parts may be operands of their own, without an axis then."""
    made: Devices = [[] for _ in given]
    attributes = op.attributes
    cut = bool({"split_dimension", "dimension", "dimensions"} & set(attributes))
    split = attributes.get("split_dimension", op.axis(0))
    for group in groups_of(op, len(given), graph):
        for place, d in enumerate(group):
            if not cut:
                made[d] = [given[other][place] for other in group]
                continue
            for n, x in enumerate(given[d]):
                if not x.ndim:  # a token
                    made[d].append(x)
                    continue
                parts = [np.split(given[other][n], len(group), split)[place] for other in group]
                made[d].append(np.concatenate(parts, attributes.get("concat_dimension", split)))
    return made


def collective_permute(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """From source to target; zeros where nothing comes."""
    made: Devices = [[np.zeros_like(x) for x in arrays] for arrays in given]
    for source, target in op.get("source_target_pairs"):
        made[target] = list(given[source])
    return made


def collective_broadcast(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """What the first device of a group has; zeros where no group is."""
    made: Devices = [[np.zeros_like(x) for x in arrays] for arrays in given]
    for group in (g for g in op.get("replica_groups") if g):
        for d in group:
            made[d] = list(given[group[0]])
    return made


def partition_id(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """The device's number in its replica; devices are numbered replica by replica."""
    inner = graph.partitions if graph.partitions * graph.replicas > 1 else len(given)
    return [[np.array(d % inner, np.uint32)] for d in range(len(given))]


def replica_id(machine: Machine, op: Op, given: Devices, graph: Graph) -> Devices:
    """The replica's number. A module that says nothing of how many it is for has replicas."""
    return [[np.array(d // graph.partitions, np.uint32)] for d in range(len(given))]


TABLE: dict[str, Any] = {"all_reduce": all_reduce, "reduce_scatter": reduce_scatter, "all_gather": all_gather,
                         "all_to_all": all_to_all, "collective_permute": collective_permute,
                         "collective_broadcast": collective_broadcast,
                         "partition_id": partition_id, "replica_id": replica_id}


def devices_of(graph: Graph) -> int:
    """How many the module is for: what it says, or the highest that a group names; one, if nothing passes between them."""
    most = graph.partitions * graph.replicas
    if not graph.parts and not any(op.kind in TABLE for c in graph.computations.values() for op in c.ops):
        return 1
    most = max([most, *(len(order) for _, order in graph.meshes.values())] if graph.parts else [most])
    for computation in graph.computations.values():
        for op in computation.ops:
            for group in (*op.attributes.get("replica_groups", []), *op.attributes.get("source_target_pairs", [])):
                most = max([most, *(int(d) + 1 for d in group)])
    return most
