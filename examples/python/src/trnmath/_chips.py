"""Many chips: collectives, their values and their times.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes as C
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

import numpy as np

from ._arrays import Array, operand, view
from ._library import I64, Answer, Ask, Common, Error, View, call, listed, options, text, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

_Results = TypeVar("_Results", bound="list[Any]")


class Cost(TypedDict):
    """What a collective takes, by the model of the network: seconds, bytes per second ("algbw" and "busbw")."""
    time_s: float
    lower_bound_s: float
    latency_s: float
    bytes_per_s: float
    bus_bytes_per_s: float
    steps: int
    algorithm: str
    bottleneck: str


class Redistribution(TypedDict):
    """From one sharding to another: seconds, and a text for each move."""
    time_s: float
    lower_bound_s: float
    steps: list[str]


def _ask(op: str, system: str, algorithm: str | None, chips: int | Sequence[int] | None, ranks_per_chip: int,
         wire: str | None = None, nbytes: int = 0) -> Ask:
    """chips: None = all of the system; a number = so many; or a list of them, in rank order."""
    one = chips is None or isinstance(chips, (int, np.integer))
    named = [] if one else [whole("chips", c) for c in listed("chips", chips)]
    if any(not -2**31 <= c < 2**31 for c in named):
        raise Error("chips: a chip's number does not fit 32 bits")
    count = whole("chips", chips or 0) if one else len(named)
    given = None if one else (C.c_int32 * max(count, 1))(*named)
    return Ask(text(system), text(op), text(algorithm), text(wire), given, count,
               whole("ranks_per_chip", ranks_per_chip), whole("nbytes", nbytes))


def _views(what: str, arrays: Sequence[Any]) -> Any:
    views: list[Any] = [view(f"{what}[{i}]", operand(f"{what}[{i}]", a), what == "out") for i, a in enumerate(arrays)]
    return (View * max(len(views), 1))(*views)


def collective_cost(op: str, nbytes: int, system: str = "trn2.48xlarge", algorithm: str | None = None,
                    chips: int | Sequence[int] | None = None, ranks_per_chip: int = 1) -> Cost:
    """What an "all_reduce", "all_gather", ... (collectives() lists them) of so many bytes per rank takes, by the
    cheapest algorithm or by the one that is named: seconds and rates. chips: all, the first so many, or a list in rank
    order. Error: an unknown name, or an algorithm that this group cannot run."""
    answer = Answer()
    call("collective_cost", C.byref(_ask(op, system, algorithm, chips, ranks_per_chip, None, nbytes)), C.byref(answer))
    values = {name: getattr(answer, name) for name in Cost.__annotations__}
    return cast(Cost, {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()})


def collective(op: str, sources: Sequence[Array], out: _Results, system: str = "trn2.48xlarge",
               algorithm: str | None = None, chips: int | Sequence[int] | None = None, ranks_per_chip: int = 1,
               wire: str | None = None, **more: Unpack[Common]) -> _Results:
    """The values: sources and out are lists with an array per rank (the same list: in place). Each sum is rounded to
    `wire`, or to the sources' format, in the order of the algorithm. Returns out. Error: shapes that do not belong to
    this collective, or another number of arrays than the group has ranks."""
    given, results = listed("sources", sources), listed("out", out)
    if len(given) != len(results):
        raise Error(f"{len(given)} sources and {len(results)} results; there is one of each per rank")
    call("collective", C.byref(_ask(op, system, algorithm, chips, ranks_per_chip, wire)), _views("out", results),
         _views("sources", given), I64(len(given)), options(**more))
    return out


def redistribute_cost(shape: Sequence[int], source: str, target: str, mesh: str, system: str = "trn2.48xlarge",
                      format: str = "bfloat16") -> Redistribution:
    """The cheapest way from one sharding of a tensor of this shape to another, such as "(data, *) + sum(tensor)" to
    "(data, tensor)" on the mesh "data=4,tensor=4": seconds, a lower bound, and steps (texts). Error: a sharding that
    the mesh or the shape does not have."""
    seconds, steps = (C.c_double * 2)(), C.create_string_buffer(8192)
    sizes = [whole("shape", n) for n in listed("shape", shape)]
    call("redistribute_cost", text(system), text(mesh), text(source), text(target), text(format),
         (I64 * max(len(sizes), 1))(*sizes), I64(len(sizes)), seconds, steps, C.c_size_t(len(steps)))
    return {"time_s": seconds[0], "lower_bound_s": seconds[1], "steps": steps.value.decode().splitlines()}
