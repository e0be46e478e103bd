"""How much memory a run needs at least, before anything is drawn or computed. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import resource
from pathlib import Path
from typing import Union

from . import formats
from .graph import OUTSIDE, Computation, Graph, Op, Shape, Trouble, Type, flat
from .machine import MOVES
from .run import last_uses

_FEW = 1 << 28  # bytes that nobody asks about
_SLACK = 1 << 30  # that threads reserve and do not use


def _bytes(type_: Type, wide: bool) -> int:
    """Of one device, on one side."""
    shapes = [s for s in flat(type_) if s.format != "token" and formats.known(s.format)]
    return sum(s.size * formats.holder(s.format, wide).itemsize for s in shapes)


def _made(op: Op) -> int:
    """What an operation's results take on both sides; what is only moved may be a view."""
    if op.kind in MOVES or op.kind in OUTSIDE:
        return 0
    return sum(_bytes(t, True) + _bytes(t, False) for t in op.types if isinstance(t, Shape))


Most = tuple[int, Union[Op, None]]


def _most(graph: Graph, body: Computation, known: dict[str, Most]) -> Most:
    """The most that what a computation makes takes at once, and the operation where that is. known: those that were asked
    before; one that calls itself is not asked again."""
    found: Most = (0, None)
    if body.name in known:
        return known[body.name]
    known[body.name] = found
    last, sizes, live = last_uses(graph, body), dict[str, int](), 0
    for n, op in enumerate(body.ops):
        inner = 0
        if op.kind in OUTSIDE and op.bodies and op.bodies[-1] in graph.computations:
            inner = _most(graph, graph.computations[op.bodies[-1]], known)[0]
        for name in op.results:
            sizes[name] = _made(op) // max(len(op.results), 1)
            live += sizes[name]
        found = max(found, (live + inner, op), key=lambda pair: pair[0])
        for name in last.get(n, ()):
            live -= sizes.pop(name, 0)
    known[body.name] = found
    return found


def _free() -> int:
    """Bytes that a process may still have."""
    free = 1 << 62
    try:
        words = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        free = int(words["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        pass  # no Linux: nobody says
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return free if soft == resource.RLIM_INFINITY else min(free, soft)


def guard(files: list[str]) -> None:
    """From here on this process is refused memory that the machine has not, and says so, instead of being killed. files:
    operands that are mapped, which count, too."""
    free, (soft, hard) = _free(), resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY or free >= 1 << 62:
        return
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    paths = [Path(word.rpartition("=")[2]) for word in files]
    mapped = sum(f.stat().st_size for p in paths for f in (p.glob("*.npy") if p.is_dir() else [p]) if f.exists())
    resource.setrlimit(resource.RLIMIT_AS, (used + free + mapped + _SLACK, hard))


def enough(graph: Graph, devices: int) -> None:
    """Trouble where memory cannot be enough. devices: that have parameters of their own."""
    given = sum(_bytes(t, False) for t in graph.main.types) * devices
    most, op = _most(graph, graph.main, {})
    need, free = given + most, _free()
    if need > max(free, _FEW):
        where = f" at line {op.line}, '{op.name}'" if op and most > given else ""
        raise Trouble(f"at least {need / 2**30:.1f} GiB of memory are needed{where}, and {free / 2**30:.1f} are there")
