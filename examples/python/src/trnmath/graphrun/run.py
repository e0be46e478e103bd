"""Runs a graph on both machines side by side, operation by operation, on all its devices.

What an operation brings is told to a watcher before it is forgotten; values live until their last use.
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import trnmath

from . import collectives, customs, formats, indexing, products, reductions, sharding, solves, structure
from .fitting import fitting
from .graph import WRONG, Computation, Graph, Op, Shape, Trouble, Type, flat
from .machine import BINARY, MOVES, UNARY, Array, Engines, Exact

Machine = Exact | Engines
_PLAIN = structure.TABLE | products.TABLE | indexing.TABLE | customs.TABLE | solves.TABLE
_WITH_BODIES = reductions.TABLE
_BETWEEN = collectives.TABLE | sharding.TABLE
_PASSES = 100000  # of a loop
_SHAPELESS = ("compare", "select", "convert", "move", "clamp", "is_finite", "bitcast_convert", "reshape", "real", "imag",
              "complex")


class Value(NamedTuple):
    """A value on all devices, of both machines: arrays of the reference and of the engines, or tuples of values."""

    wide: tuple[Any, ...]
    near: tuple[Any, ...]


Watcher = Callable[[str, Op, list[Value], list[Value]], "list[Value] | None"]  # other results to go on with, or None
Scope = dict[str, Any]


KNOWN = frozenset({*_PLAIN, *_WITH_BODIES, *_BETWEEN, *UNARY, *BINARY, "call", "while", "case", "tuple",
                   "get_tuple_element", "manual_computation"})  # operations that can be run


def annotate(graph: Graph) -> None:
    """Tells each operation its operands' formats, and refuses what is not known or not there."""
    def walk(computation: Computation, outer: dict[str, Type]) -> None:
        types, own = outer | dict(zip(computation.parameters, computation.types)), set(computation.parameters)
        for op in computation.ops:
            if op.kind not in KNOWN:
                raise Trouble(f"line {op.line}: operation {op.kind} is not known here")
            for name in op.operands:
                if name not in types:
                    raise Trouble(f"line {op.line}: '{op.name}' uses '{name}', which is not there")
            given = [types[name] for name in op.operands]
            op.attributes["formats"] = [t.format if isinstance(t, Shape) else "" for t in given]
            op.attributes["of"] = op.attributes["formats"][0] if given else ""
            fitting(op, given)
            inner = types
            if op.kind == "while" and "parameters" in op.attributes:
                inner = types | dict(zip(op.attributes["parameters"], given))
            for n, name in enumerate(op.bodies):
                if name not in graph.computations:
                    raise Trouble(f"line {op.line}: '{op.name}' calls '{name}', which is not there")
                if name not in seen:
                    seen.add(name)
                    walk(graph.computations[name], inner)
            for name, type_ in zip(op.results, op.types):
                if name in own:
                    raise Trouble(f"line {op.line}: the name '{name}' is there twice")
                own.add(name)
                types[name] = type_
        for name in computation.results:
            if name not in types:
                raise Trouble(f"computation '{computation.name}' brings '{name}', which is not there")
    seen: set[str] = {graph.entry}
    walk(graph.main, {})


# ---- one operation, one machine, one device ----

def evaluate(machine: Machine, graph: Graph, op: Op, arrays: list[Array]) -> list[Array]:
    """Its results, each settled in its format; Trouble where operands and attributes do not fit."""
    try:
        return _evaluate(machine, graph, op, arrays)
    except (Trouble, trnmath.Error):
        raise
    except WRONG:
        shapes = ", ".join(str(list(getattr(a, "shape", ["a tuple"]))) for a in arrays)
        raise Trouble(f"line {op.line}: {op.kind} '{op.name}' does not fit its operands {shapes}") from None


def _evaluate(machine: Machine, graph: Graph, op: Op, arrays: list[Array]) -> list[Array]:
    if machine.wide:
        arrays = _widened_for(op, arrays)
    if op.kind in _PLAIN:
        made = _PLAIN[op.kind](machine, op, arrays)
    elif op.kind in _WITH_BODIES:
        made = _WITH_BODIES[op.kind](machine, op, arrays, graph, lambda body, given: fold_body(machine, graph, body, given))
    else:
        made = [machine.apply(op.kind, arrays, op)]
    return _fitted(machine, op, made)


def _between(machine: Machine, op: Op, arrays: list[list[Array]], graph: Graph) -> list[list[Array]]:
    """An operation between devices."""
    try:
        return list(_BETWEEN[op.kind](machine, op, arrays, graph))
    except (Trouble, trnmath.Error):
        raise
    except WRONG:
        words = f"{op.kind} '{op.name}' does not fit its operands or {len(arrays)} devices"
        raise Trouble(f"line {op.line}: {words}") from None


def _fitted(machine: Machine, op: Op, made: list[Array]) -> list[Array]:
    """Each in its format, and as large as its type says."""
    shapes = [shape for type_ in op.types for shape in flat(type_)]
    if len(made) < len(shapes):
        raise Trouble(f"line {op.line}: '{op.name}' has {len(shapes)} results, and {len(made)} were made")
    settled = [machine.settle(np.asarray(x), shape, op) for x, shape in zip(made, shapes)]
    for x, shape in zip(settled, shapes):
        if x.shape != shape.dims and shape.format != "token":
            raise Trouble(f"line {op.line}: '{op.name}' is {list(x.shape)} where its type says {shape}")
    return settled


def moves(op: Op) -> bool:
    """Does it round nothing, on either machine?"""
    return op.kind in MOVES or op.kind == "custom_call" and op.get("target") in customs.SAME


def _widened_for(op: Op, arrays: list[Array]) -> list[Array]:
    """Operands of the reference in float64. What is only moved, or multiplied block by block, may stay in float32."""
    wide = {"f": np.float64, "c": np.complex128}
    if (moves(op) or op.kind in products.TABLE) and len({a.dtype for a in arrays if a.dtype.kind in wide}) < 2:
        return arrays
    return [a.astype(wide[a.dtype.kind], copy=False) if a.dtype.kind in wide else a for a in arrays]


def fold_body(machine: Machine, graph: Graph, body: Computation, given: list[Array]) -> list[Array]:
    """A body of a reduction, for all elements at once: its shapes are those of the arrays."""
    values = dict(zip(body.parameters, given))
    for op in body.ops:
        arrays = [values[name] for name in op.operands]
        if op.kind == "constant":
            made = structure.constant(machine, op, [])
        elif op.kind == "get_tuple_element":
            made = [arrays[0][op.get("index")]]
        elif op.kind == "tuple":
            made = [tuple(arrays)]  # type: ignore[list-item]
        elif op.kind in ("call",):
            made = fold_body(machine, graph, graph.body(op), arrays)
        elif op.kind in _SHAPELESS:
            made = [arrays[0]] if op.kind == "reshape" else _PLAIN[op.kind](machine, op, arrays)
        else:
            made = [machine.apply(op.kind, arrays, op)]
        if op.kind not in ("tuple", "compare", "get_tuple_element") and isinstance(op.types[0], Shape):
            made = [machine.settle(np.asarray(made[0]), op.types[0], op), *made[1:]]
        values |= dict(zip(op.results, made))
    found = [values[name] for name in body.results]
    return list(found[0]) if len(found) == 1 and isinstance(found[0], tuple) else found


# ---- all of it ----

class Runner:
    """run(inputs): the results of the graph's entry. watch(name, op, operands, results) hears of each operation. only:
    operations that the engines do, if not all; the rest is float64 on both sides then."""

    def __init__(self, graph: Graph, near: Engines, devices: int = 1, watch: Watcher | None = None,
                 only: set[str] | None = None) -> None:
        annotate(graph)
        self.graph, self.near, self.wide = graph, near, Exact()
        self.devices, self.watch, self.only = devices, watch, only
        self.doubts: list[str] = []  # decisions that the machines do not share
        self._last: dict[str, dict[int, list[str]]] = {}  # of each computation: loops ask for it at every turn

    def run(self, inputs: dict[str, Value]) -> list[Value]:
        """inputs: of each parameter of the entry."""
        main = self.graph.main
        return self.computation(main, [inputs[name] for name in main.parameters], {}, "")

    def computation(self, body: Computation, given: list[Value], outer: Scope, where: str) -> list[Value]:
        """A computation with these operands, within values that it may use."""
        values: Scope = dict(outer)
        values.update(zip(body.parameters, given))
        if body.name not in self._last:
            self._last[body.name] = last_uses(self.graph, body)
        last = self._last[body.name]
        for n, op in enumerate(body.ops):
            operands = [values[name] for name in op.operands]
            results = self._results(op, operands, values, where)
            if len(results) != len(op.results) and op.results:
                raise Trouble(f"line {op.line}: {op.kind} brings {len(results)} values, and {len(op.results)} are named")
            values.update(zip(op.results, results))
            if self.watch is not None:
                results = self.watch(where + op.name, op, operands, results) or results
                values.update(zip(op.results, results))
            for name in last.get(n, ()):
                values.pop(name, None)
        return [values[name] for name in body.results]

    def _results(self, op: Op, operands: list[Value], values: Scope, where: str) -> list[Value]:
        if op.kind == "tuple":
            return [Value(*(tuple(zip(*(getattr(v, side) for v in operands))) for side in ("wide", "near")))]
        if op.kind in ("move", "optimization_barrier") and any(isinstance(v.wide[0], tuple) for v in operands):
            return operands
        if op.kind == "get_tuple_element":
            index = op.get("index")
            if not isinstance(operands[0].wide[0], tuple) or index >= len(operands[0].wide[0]):
                raise Trouble(f"line {op.line}: '{op.name}' takes part {index}, which is not there")
            return [Value(*(tuple(parts[index] for parts in side) for side in operands[0]))]
        if op.kind == "call":
            return self.computation(self.graph.body(op), operands, values, f"{where}{op.name}/")
        if op.kind == "manual_computation":
            return self._manual(op, operands, values, where)
        if op.kind == "while":
            return self._while(op, operands, values, where)
        if op.kind == "case":
            return self._case(op, operands, values, where)
        if moves(op) and all(a is b for v in operands for a, b in zip(v.near, v.wide)):
            return [Value(side, side) for side in self.side(self.near, op, [v.near for v in operands])]
        wide = self.side(self.wide, op, [v.wide for v in operands])
        near = self._near(op, [v.near for v in operands])
        return [Value(a, b) for a, b in zip(wide, near)]

    def _near(self, op: Op, operands: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if self.only is None:
            return self.side(self.near, op, operands)
        if op.name not in self.only:
            return self.side(self.wide, op, operands)
        narrow = [tuple(_narrowed(x, name) for x in side) for side, name in zip(operands, op.get("formats"))]
        return [tuple(_widened(x) for x in side) for side in self.side(self.near, op, narrow)]

    def side(self, machine: Machine, op: Op, operands: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Results of one machine, of each the devices'. Devices with the same arrays share the work."""
        if op.kind in _BETWEEN:
            per_device = [[values[d] for values in operands] for d in range(self.devices)]
            if machine.wide:
                per_device = [_widened_for(op, arrays) for arrays in per_device]
            made = [_fitted(machine, op, arrays) for arrays in _between(machine, op, per_device, self.graph)]
        else:
            done: dict[tuple[int, ...], list[Array]] = {}
            made = []
            for d in range(self.devices):
                arrays = [values[d] for values in operands]
                key = tuple(map(id, arrays))
                if key not in done:
                    done[key] = evaluate(machine, self.graph, op, arrays)
                made.append(done[key])
        if op.types and isinstance(op.types[0], tuple):
            return [tuple(tuple(arrays) for arrays in made)]
        if any(len(arrays) < len(op.results) for arrays in made):
            raise Trouble(f"line {op.line}: '{op.name}' brings {len(made[0])} values, and {len(op.results)} are named")
        return [tuple(arrays[n] for arrays in made) for n in range(len(op.results))]

    def _decision(self, value: Value, op: Op) -> int:
        """What all devices say. Where the machines differ the engines are followed, and that is a doubt."""
        sides = [[int(np.asarray(x).reshape(-1)[0]) for x in side] for side in value]
        if len(set(sides[1])) > 1:
            raise Trouble(f"line {op.line}: '{op.name}' goes different ways on different devices")
        if sides[0] != sides[1]:
            self.doubts.append(f"line {op.line}: {op.kind} '{op.name}' decides otherwise in float64")
        return sides[1][0]

    def _manual(self, op: Op, operands: list[Value], values: Scope, where: str) -> list[Value]:
        """Each device with its parts of the operands; the results' parts are put together."""
        given = [Value(*(tuple(tiles.cut(list(side), op)) for side in value))
                 for value, tiles in zip(operands, op.get("in_shardings_tiles"))]
        parts = self.computation(self.graph.body(op), given, values, f"{where}{op.name}/")
        return [Value(*(tuple(tiles.join(list(side), op)) for side in value))
                for value, tiles in zip(parts, op.get("out_shardings_tiles"))]

    def _while(self, op: Op, operands: list[Value], values: Scope, where: str) -> list[Value]:
        condition, body = self.graph.body(op, 0), self.graph.body(op, 1)
        names = op.attributes.get("parameters")
        state = operands
        for turn in range(_PASSES):
            outer = values | dict(zip(names, state)) if names else values
            given = [] if names and not condition.parameters else state
            here = f"{where}{op.name}[{turn}]/"
            if not self._decision(self.computation(condition, given, outer, here)[0], op):
                return state
            state = self.computation(body, [] if names and not body.parameters else state, outer, here)
        raise Trouble(f"line {op.line}: '{op.name}' had not ended after {_PASSES} passes")

    def _case(self, op: Op, operands: list[Value], values: Scope, where: str) -> list[Value]:
        which = self._decision(operands[0], op)
        if op.attributes["of"] == "pred":
            which = 0 if which else 1
        which = which if 0 <= which < len(op.bodies) else len(op.bodies) - 1
        body = self.graph.body(op, which)
        given = operands[1 + which:2 + which] if body.parameters else []
        return self.computation(body, given, values, f"{where}{op.name}/")


def _narrowed(x: Array, name: str) -> Array:
    """A number of the reference as the engines have it."""
    if x.dtype != np.float64 or name == "f64" or not formats.is_float(name):
        return x
    return formats.rounded(x, name)


def _widened(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(_widened(part) for part in x)
    return x.astype(np.float64) if x.dtype == np.float32 else x


def last_uses(graph: Graph, body: Computation) -> dict[int, list[str]]:
    """After which operation a value is needed no more: of those that this computation makes."""
    own = {name for op in body.ops for name in op.results} | set(body.parameters)
    last: dict[str, int] = {}
    for n, op in enumerate(body.ops):
        for name in (*op.operands, *op.results, *_captured(graph, op)):
            if name in own:
                last[name] = n
    for name in body.results:
        last.pop(name, None)
    made: dict[int, list[str]] = {}
    for name, n in last.items():
        made.setdefault(n, []).append(name)
    return made


def _captured(graph: Graph, op: Op) -> Iterable[str]:
    """What the regions of an operation use from around them."""
    for name in op.bodies:
        if not name.startswith(("region", "reducer")):
            continue
        body = graph.computations[name]
        for inner in body.ops:
            yield from inner.operands
            yield from _captured(graph, inner)
        yield from body.results


