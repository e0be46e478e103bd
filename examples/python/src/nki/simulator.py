"""Kernels on simulated cores: nki.jit, nki.simulate, grids, reports.

Programs of a grid of up to eight run on the cores of one logical core: side by side in simulated time, with barriers
and sendrecv between them. Programs of a larger grid run one after the other, each on a core of its own. Tensors in
shared HBM are one for all of them; what the first program returns is the result.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import builtins
import copy
import dataclasses
import dis
import functools
import itertools
import os
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from . import _core, arrays, machine, names, running
from .frames import INSIDE
from .memories import MemoryRegion
from .progress import Progress
from .record import NKIObject
from .running import Grid
from .tensor import NkiTensor

TOGETHER = 8  # so many programs may wait for each other

_core.inside(INSIDE)


# ---- what a run was ----

class Wait(NamedTuple):
    """Seconds of the run's longest chain, each of whose instructions waited for the one before: at work, and until a
    transfer began, of so many instructions of this engine that this line of the kernel asked for."""

    work_s: float
    latency_s: float
    instructions: int
    engine: str
    file: str
    line: int

    @property
    def seconds(self) -> float:
        return self.work_s + self.latency_s

    def __str__(self) -> str:
        late = f", {1e6 * self.latency_s:.2f} of them until it begins" if self.latency_s > 0.1 * self.work_s else ""
        return f"{1e6 * self.seconds:.2f} us of {self.engine}, {self.file}, line {self.line}{late}"


class Report:
    """What a run was: .time_s, .instructions, .engines, .sbuf_high_water, .psum_high_water, .bound, .waits (what would
    have to change first) of the core that took longest; .cores has one dict for each."""

    time_s: float
    instructions: int
    engines: dict[str, dict[str, float]]
    sbuf_high_water: int
    sbuf_high_water_partition: int
    psum_high_water: int
    psum_high_water_partition: int
    sbuf_bytes: int
    psum_bytes: int
    dma_bytes: float
    bound: str
    waits: list[Wait]
    generation: int

    def __init__(self, reports: list[dict[str, Any]], traces: list[str]) -> None:
        self.cores, self._traces = reports, traces
        self.__dict__.update(max(reports, key=lambda r: r["time_s"]))

    def write_trace(self, path: str | os.PathLike[str], core: int = 0) -> None:
        """The timeline of a core, for ui.perfetto.dev."""
        if not self._traces:
            raise _core.Error("run the kernel with trace=True to get a trace")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._traces[core])

    def __str__(self) -> str:
        lines = [f"{self.time_s * 1e6:.2f} us, {self.instructions} instructions; {self.bound}"]
        for name, e in self.engines.items():
            if e["instructions"] or e["busy_s"]:
                lines.append(f"  {name:8} {e['instructions']:6} instructions {e['cycles']:12.0f} cycles "
                             f"{100 * e['share']:5.1f} % busy")
        lines.append(f"  SBUF {self.sbuf_high_water_partition} bytes of a partition, "
                     f"PSUM {self.psum_high_water_partition}")
        for n, wait in enumerate(self.waits[:3]):
            lines.append(f"  {'then' if n else 'first to change'}: {100 * wait.seconds / self.time_s:.0f} %, {wait}")
        return "\n".join(lines)


# ---- a run ----

class Launch:
    """One call of a kernel: its programs, and the memory in HBM that they share."""

    def __init__(self, function: Callable[..., Any], grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any],
                 ranks: int = 1) -> None:
        self.function, self.grid, self.args, self.kwargs, self.ranks = function, grid, args, kwargs, ranks
        self.programs = list(itertools.product(*(range(n) for n in grid)))
        self.shared: dict[Hashable, tuple[NkiTensor, _core.Core]] = {}
        self.given: dict[Hashable, tuple[Any, arrays.Given]] = {}  # the caller's arrays, wherever they stand
        self.lock = threading.Lock()
        self.results: list[Any] = [None] * ranks
        self.reports: list[dict[str, Any]] = []
        self.traces: list[str] = []
        self.narrowed: dict[str, str] = {}
        self.torch = False
        self.shown = Progress(getattr(function, "__name__", "kernel"))

    def program(self, core: _core.Core, place: int) -> None:
        """The program at this place: those of a rank follow each other."""
        rank, number = divmod(place, len(self.programs))
        running.begin(self, core, self.programs[number], self.grid, rank)
        try:
            args = [self.argument(core, a, f"argument {n}") for n, a in enumerate(self.args)]
            kwargs = {name: self.argument(core, a, name) for name, a in self.kwargs.items()}
            result = self.function(*args, **kwargs)
            core.settle()
            core.fits()
        except (_core.Error, AttributeError, IndexError, TypeError, ValueError) as trouble:
            told = str(trouble) if isinstance(trouble, _core.Error) else names.unexpected(trouble)
            if told is None and type(trouble) is IndexError and ours(trouble):
                raise IndexError(f"{trouble} ({where(trouble, self.function)}, generation {core.generation})") from None
            if told is None:
                raise
            said = f"{told} ({where(trouble, self.function)}, generation {core.generation})"
            raise _core.Error("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in said)) from None
        finally:
            running.end()
        if number == 0:
            self.results[rank] = result

    def done(self, core: _core.Core) -> None:
        waits = sorted((Wait(*one) for one in core.path()), key=lambda w: -w.seconds)
        self.reports.append(core.report() | {"generation": core.generation, "waits": waits})
        if core.traced:
            self.traces.append(core.trace())

    def run(self, options: dict[str, Any]) -> None:
        cores = _together(self.ranks, len(self.programs), options)
        if cores is not None:
            ranks = cores.ranks()
            cores.run(lambda core: self.program(core, next(n for n, c in enumerate(ranks) if c is core)))
            for core in ranks:
                self.done(core)
        for number in range(len(self.programs) if cores is None else 0):
            core = make_core(**options)
            core.part(number, len(self.programs))
            self.program(core, number)
            self.done(core)
        for result in self.results:
            self.complete(result)
        if self.narrowed:
            said = ", ".join(f"{name} ({what})" for name, what in self.narrowed.items())
            warnings.warn(f"{self.function.__name__}: {said}: no engine has 64 bits", RuntimeWarning, stacklevel=4)

    def complete(self, result: Any) -> None:
        """What a kernel returns has been written, all of it."""
        if isinstance(result, NkiTensor):
            try:
                result.core.result(result)
            except _core.Error as trouble:
                of = _line_of(self.function)
                raise _core.Error(f"{trouble} (returned by {self.function.__name__}, {of}generation "
                                  f"{result.core.generation})") from None
        elif isinstance(result, (list, tuple)):
            for one in result:
                self.complete(one)
        elif isinstance(result, dict):
            self.complete(list(result.values()))

    def same(self, core: _core.Core, key: Hashable, make: Callable[[], NkiTensor]) -> NkiTensor:
        """What the programs of a rank share under this key: whoever comes first makes it."""
        key = (running.rank(), key)
        with self.lock:
            if key not in self.shared:
                self.shared[key] = (make(), core)
            tensor, maker = self.shared[key]
        return tensor if maker is core else core.adopt(tensor)

    def argument(self, core: _core.Core, value: Any, name: str) -> Any:
        """Arrays become tensors in HBM, in lists, tuples, dicts and records, too."""
        if type(value) is PerRank:
            value = value.of(running.rank(), self.ranks)
        array = arrays.given(value)
        if array is not None:
            if arrays.narrowed(value) == "float32":
                self.narrowed[name] = "float64, taken as float32"
            self.torch = self.torch or arrays.is_torch(value)
            self.given[running.rank(), id(value)] = value, array
            made = functools.partial(core.hbm, name, array.dtype.format, array.shape, array.dtype, array.array, True,
                                     True, True)
            return self.same(core, id(value), made)
        if type(value) in (list, tuple):
            return type(value)(self.argument(core, v, name) for v in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.argument(core, v, name) for v in value))
        if type(value) is dict:
            return {k: self.argument(core, v, name) for k, v in value.items()}
        if _is_record(value):
            return self.record(core, value, name)
        return value

    def give_back(self) -> None:
        """What the kernel has left in its arguments, into the caller's arrays."""
        for key, (value, array) in self.given.items():
            arrays.back(value, array, self.shared[key][0].tobytes())

    def record(self, core: _core.Core, value: Any, name: str) -> Any:
        made = copy.copy(value)
        for field, was in list(vars(value).items()):
            now = self.argument(core, was, f"{name}.{field}")
            if now is not was:
                object.__setattr__(made, field, now)
        return made


def _is_record(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type) and (
        isinstance(value, NKIObject) or dataclasses.is_dataclass(value))


class PerRank:
    """nki.per_rank([x0, x1, ...]): an argument that is another one on each rank."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)

    def of(self, rank: int, ranks: int) -> Any:
        if len(self.values) != ranks:
            raise _core.Error(f"per_rank has {len(self.values)} values; the kernel runs on {ranks} ranks")
        return self.values[rank]


def _together(ranks: int, programs: int, options: dict[str, Any]) -> _core.Cores | None:
    """The cores of a run that wait for each other; None: programs run one after the other."""
    if ranks < 1:
        raise _core.Error(f"ranks is {ranks}; a kernel runs on one and more, or without ranks")
    if ranks == 1 and not 1 < programs <= TOGETHER:
        return None
    try:
        return _core.Cores(ranks, programs, **_core_options(**options))
    except _core.Error:  # no chip has so many
        if ranks > 1:
            raise
        return None


def _core_options(generation: int | str | None = None, platform_target: str | None = None, numerics: str | None = None,
                  rounding: str | None = None, seed: int = 0, trace: bool = False, no_poison: bool = False,
                  no_races: bool = False, spill: bool = False, pace: str = "measured",
                  **_: Any) -> dict[str, Any]:
    return {"generation": machine.generation(platform_target if generation is None else generation),
            "numerics": numerics, "rounding": rounding, "seed": seed, "events": 1 << 18 if trace else 0,
            "no_poison": no_poison, "no_races": no_races, "pace": pace,
            "spill": spill or machine.spills()}


def make_core(**options: Any) -> _core.Core:
    return _core.Core(**_core_options(**options))


def where(trouble: BaseException, function: Callable[..., Any]) -> str:
    """The kernel's line: the innermost frame that does not lie in this package."""
    frames = [f for f in traceback.extract_tb(trouble.__traceback__) if not f.filename.startswith(INSIDE)]
    if frames:
        return f"{frames[-1].filename.rsplit('/', 1)[-1]}, line {frames[-1].lineno}"
    return _line_of(function) + function.__name__


def ours(trouble: BaseException) -> bool:
    """Has this package raised it, and not the kernel?"""
    return traceback.extract_tb(trouble.__traceback__)[-1].filename.startswith(INSIDE)


def _line_of(function: Callable[..., Any]) -> str:
    """Where a kernel begins: "file.py, line 12, "; nothing of what is no Python."""
    code = getattr(function, "__code__", None)
    return f"{os.path.basename(code.co_filename)}, line {code.co_firstlineno}, " if code else ""


def _result(value: Any, torch: bool = False) -> Any:
    """What a kernel has returned, as the caller's; it has run, and nobody writes any more."""
    if isinstance(value, NkiTensor):
        numbers = arrays.out(value, last=True)
        return arrays.as_torch(numbers) if torch else numbers
    if isinstance(value, (list, tuple)):
        return type(value)(_result(v, torch) for v in value)
    if isinstance(value, dict):
        return {name: _result(v, torch) for name, v in value.items()}
    return value


# ---- kernels ----

class _latest:
    report: Report | None = None


def last_report() -> Report | None:
    """The report of the last kernel that has run, whoever called it."""
    return _latest.report


_KEYWORDS = {name: MemoryRegion[name] for name in ("sbuf", "psum", "hbm")}


@functools.lru_cache(maxsize=1024)
def _globals_of(code: types.CodeType) -> frozenset[str]:
    """Which of them a function reads as globals."""
    return frozenset(i.argval for i in dis.get_instructions(code)
                     if i.opname == "LOAD_GLOBAL" and i.argval in _KEYWORDS)


def _keywords(function: Callable[..., Any]) -> None:
    """NKI 0.1 had keywords, sbuf.view(dtype, shape): a kernel that says one which its file does not name finds it."""
    code, there = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    for name in _globals_of(code) if code else ():
        if not hasattr(builtins, name):
            there.setdefault(name, _KEYWORDS[name])


class Kernel:
    """A kernel that can be called, with a grid or without; .report is of the last call."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, function)
        _keywords(function)
        self.function, self.options = function, options
        self.grid: Grid = ()
        self.report: Report | None = None
        self.gridless: Kernel | None = None  # the kernel that this one is with a grid

    def __getitem__(self, grid: Any) -> Kernel:
        made = type(self)(self.function, **self.options)
        made.grid = tuple(int(g) for g in (grid if isinstance(grid, (tuple, list)) else (grid,)))
        made.gridless = self
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if running.inside():  # a kernel calls another
            return self.function(*args, **kwargs)
        return self.run(args, kwargs)

    def with_schedule(self, edges: Iterable[tuple[str, str | Iterable[str]]]) -> Kernel:
        """The kernel with edges between instructions, by name: (later, earlier) or (later, [earlier, ...]). Here they
        change no number, and the clock leaves them out."""
        for edge in edges:
            later, earlier = edge if isinstance(edge, (tuple, list)) and len(edge) == 2 else (None, None)
            several = list(earlier) if isinstance(earlier, (list, tuple)) else [earlier]
            if not all(isinstance(name, str) for name in [later, *several]):
                raise _core.Error(f"with_schedule: {edge!r} is no edge; write (later, earlier) or (later, [earlier])")
        made = type(self)(self.function, **self.options)
        made.grid = self.grid
        return made

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], in_place: bool = False) -> Any:
        ranks = self.options.get("ranks")
        launch = Launch(self.function, self.grid, args, kwargs, 1 if ranks is None else ranks)
        with launch.shown:
            launch.run(self.options)
        if in_place or all(r is None for r in launch.results):  # one that returns nothing writes to its arguments
            launch.give_back()
        self.report = _latest.report = Report(launch.reports, launch.traces)
        if self.gridless is not None:
            self.gridless.report = self.report
        results = [_result(r, launch.torch) for r in launch.results]
        return results[0] if ranks is None else results


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """@nki.jit: the function becomes a kernel that a call runs on a simulated core."""
    if function is None:
        return lambda f: jit(f, **options)
    return function if isinstance(function, Kernel) else Kernel(function, **options)


def simulate(kernel: Kernel | Callable[..., Any], generation: int | str | None = None, numerics: str | None = None,
             rounding: str | None = None, seed: int = 0, trace: bool = False, no_poison: bool = False,
             ranks: int | None = None, no_races: bool = False, pace: str = "measured", spill: bool = False) -> Kernel:
    """nki.simulate(kernel)(...): runs it on a core of this generation (1, 2, 3 for Trainium1, 2, 3, or "trn2"; without
    one on that of machine.py); .report afterwards says how long it took. numerics: settings of trn_numerics.h,
    "chains=1"; rounding: of every cast, "stochastic"; trace: keep a timeline; no_poison: reads of what nothing has
    written pass; no_races: uses of the same HBM by programs that nothing orders pass; ranks: so many logical cores run
    it at once, for nki.collectives, and a list of their results comes back (nki.per_rank: an argument for each); pace:
    what the clock believes, profiles of devices, or "documented": the pages alone; spill: tiles that do not fit pass,
    as of a compiler that moves them out and back, which takes no time here."""
    made = Kernel(kernel.function if isinstance(kernel, Kernel) else kernel, generation=generation, numerics=numerics,
                  rounding=rounding, seed=seed, trace=trace, no_poison=no_poison, ranks=ranks, no_races=no_races,
                  pace=pace, spill=spill)
    made.grid = kernel.grid if isinstance(kernel, Kernel) else ()
    return made
