"""What is run: a graph, its operands, and how. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from . import collectives, hlo, inputs, stablehlo
from .graph import Graph, Trouble
from .machine import Engines, Settings
from .run import Runner, Value


def read(path: str) -> Graph:
    """The graph of a file, by what its text is."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as trouble:
        raise Trouble(f"{path}: {getattr(trouble, 'strerror', None) or 'it is no text'}") from None
    reader = hlo if text.lstrip().startswith("HloModule") or "\nENTRY " in text else stablehlo
    try:
        return reader.read(text)
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
        self.options, self.graph = options, read(options.file)
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
        self.values, self.drawn = inputs.values(self.graph, inputs.given(options.inputs), self.devices, options.seed,
                                                self.ints, options.alike or self.devices > 8)

    def run(self, watch: Any, only: set[str] | None = None) -> tuple[Runner, list[Value]]:
        """All of it once."""
        given = self.values
        if only is not None:
            given = {name: Value(v.wide, v.wide) for name, v in given.items()}
        runner = Runner(self.graph, Engines(self.settings), self.devices, watch, only)
        if hasattr(watch, "__self__"):
            watch.__self__.runner = runner
        return runner, runner.run(given)
