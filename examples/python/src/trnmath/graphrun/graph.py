"""A graph of operations, as HLO and StableHLO have it: what the readers make and the runner runs.

Operations have StableHLO's names, and their attributes its meaning, whatever the text was. Trouble is one sentence.
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union


class Trouble(ValueError):
    """What a graph, an input or an option has wrong: one sentence, with the line of the file where there is one."""

    def __init__(self, text: str) -> None:  # pieces of a file in it break no line and steer no terminal
        super().__init__("".join(c if c.isprintable() else "?" for c in " ".join(text.split()))[:300])


@dataclass(frozen=True)
class Shape:
    """A tensor: "f32", "bf16", "s32", "pred", ... and its axes."""

    format: str
    dims: tuple[int, ...]

    @property
    def size(self) -> int:
        """Elements."""
        count = 1
        for n in self.dims:
            count *= n
        return count

    def __str__(self) -> str:
        return f"{self.format}[{','.join(map(str, self.dims))}]"


Mesh = tuple[dict[str, int], list[int]]  # Shardy's: axes with their sizes, and the devices in order
Type = Union[Shape, tuple["Type", ...]]  # a tuple of types is one value with parts

OUTSIDE = ("call", "while", "case", "manual_computation")  # operations whose work is that of those inside


@dataclass
class Op:
    """An operation. results: a name for each value that it brings (StableHLO has several; HLO one, which may be a
    tuple). bodies: names of the computations that it calls. line: of the file."""

    results: list[str]
    kind: str
    operands: list[str]
    types: list[Type]
    attributes: dict[str, Any] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    line: int = 0
    scope: str = ""

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.results[0] if self.results else self.kind

    def shape(self, which: int = 0) -> Shape:
        """Of a result that is a tensor."""
        found = self.types[which] if which < len(self.types) else ()
        if not isinstance(found, Shape):
            raise Trouble(f"line {self.line}: {self.kind} '{self.name}' brings a tuple where a tensor is needed")
        return found

    def axis(self, default: int | None = None) -> int:
        """The axis of an operation that has one: StableHLO's dimension, the only one of HLO's dimensions."""
        listed = self.attributes.get("dimensions") or [default]
        axis = self.attributes.get("dimension", listed[0])
        if axis is None:
            raise Trouble(f"line {self.line}: {self.kind} '{self.name}' has no dimension")
        return int(axis)

    def get(self, name: str) -> Any:
        """An attribute that must be there."""
        if name not in self.attributes:
            raise Trouble(f"line {self.line}: {self.kind} '{self.name}' has no {name}")
        return self.attributes[name]


@dataclass
class Computation:
    """Operations in an order in which each stands after its operands; results are names. outer: values that it may use
    from around it (StableHLO's regions)."""

    name: str
    parameters: list[str] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


@dataclass
class Graph:
    """A module: its computations, which of them is run, and for how many devices it was made. meshes: Shardy's, by their
    names: axes with sizes, devices in order. parts: in some places each device has its part of an array."""

    computations: dict[str, Computation]
    entry: str
    partitions: int = 1
    replicas: int = 1
    meshes: dict[str, Mesh] = field(default_factory=dict)
    parts: bool = False

    @property
    def main(self) -> Computation:
        """The computation that is run."""
        return self.computations[self.entry]

    def body(self, op: Op, which: int = 0) -> Computation:
        """A computation that an operation calls."""
        if which >= len(op.bodies) or op.bodies[which] not in self.computations:
            raise Trouble(f"line {op.line}: {op.kind} '{op.name}' calls a computation that is not there")
        return self.computations[op.bodies[which]]


# What a text that is nobody's raises where nothing looked for it.
WRONG = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, ZeroDivisionError, AssertionError)


def flat(type_: Type) -> list[Shape]:
    """The tensors of a type, in order."""
    if isinstance(type_, Shape):
        return [type_]
    return [shape for part in type_ for shape in flat(part)]
