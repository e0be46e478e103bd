"""What is run: a graph, its operands, and how. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from . import collectives, hlo, inputs, memory, sharding, stablehlo
from .graph import Graph, Trouble
from .machine import Engines, Settings
from .run import Runner, Value


_DIVIDED = re.compile(r"^// ----.*$", re.MULTILINE)  # several modules in a file, as MLIR's tests have them


def _module(text: str, which: int | None, path: str) -> str:
    """One of a file's modules, its lines with their numbers."""
    ends = [found.end() for found in _DIVIDED.finditer(text)]
    parts = [(a, text[a:b]) for a, b in zip([0, *ends], [*ends, len(text)])]
    parts = [(a, part) for a, part in parts if re.search(r"\bfunc\b", part) or hlo.is_hlo(part)]
    if which is None and len(parts) > 1:
        raise Trouble(f"{path} has {len(parts)} modules, divided by '// -----': --module 1 to {len(parts)}")
    if which is not None and not 1 <= which <= len(parts):
        raise Trouble(f"--module is {which}, and {path} has {len(parts)}")
    if len(parts) < 2:
        return text
    at, part = parts[(which or 1) - 1]
    return "\n" * text.count("\n", 0, at) + part


def read(path: str, which: int | None = None) -> Graph:
    """The graph of a file, by what its text is; of several modules the one that is asked for, from 1."""
    try:
        text = _module(Path(path).read_text(encoding="utf-8"), which, path)
    except (OSError, UnicodeDecodeError) as trouble:
        raise Trouble(f"{path}: {getattr(trouble, 'strerror', None) or 'it is no text'}") from None
    reader = hlo if hlo.is_hlo(text) else stablehlo
    try:
        graph = reader.read(text)
        sharding.resolve(graph)
        return graph
    except RecursionError:
        raise Trouble(f"{path}: its brackets are nested too deeply") from None


def settings_of(options: argparse.Namespace) -> Settings:
    """What the engines do."""
    return Settings(options.auto_cast, options.auto_cast_type, options.matmult_to_fp8, options.stochastic_rounding,
                    options.generation, options.numerics, options.system)


def fill(graph: Graph, seed: int) -> int:
    """Numbers for constants that were left out; how many there were."""
    count = 0
    for computation in graph.computations.values():
        for op in computation.ops:
            if op.kind == "constant" and op.attributes.get("value") is None:
                op.attributes["value"] = inputs.random(op.shape(), f"{computation.name} {op.name}", seed, (0, 2))
                count += 1
    return count


class Job:
    """What is run: the graph, its operands, and how."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.graph = options, read(options.file, options.module)
        self.filled = fill(self.graph, options.seed) if options.fill else 0
        self.settings = settings_of(options)
        self.devices = options.devices or collectives.devices_of(self.graph)
        low, _, high = options.ints.partition(":")
        try:
            self.ints = (int(low), int(high))
        except ValueError:
            raise Trouble(f"--ints is '{options.ints}', expected LOW:HIGH") from None
        if self.ints[0] >= self.ints[1]:
            raise Trouble(f"--ints is '{options.ints}': there is no number in it")
        alike = options.alike or self.graph.parts or self.devices > 8
        memory.enough(self.graph, 1 if alike else self.devices)
        self.values, self.drawn = inputs.values(self.graph, inputs.given(options.inputs), self.devices, options.seed,
                                                self.ints, alike)

    def run(self, watch: Any, only: set[str] | None = None) -> tuple[Runner, list[Value]]:
        """All of it once."""
        given = self.values
        if only is not None:
            given = {name: Value(v.wide, v.wide) for name, v in given.items()}
        runner = Runner(self.graph, Engines(self.settings), self.devices, watch, only)
        if hasattr(watch, "__self__"):
            watch.__self__.runner = runner
        return runner, runner.run(given)
