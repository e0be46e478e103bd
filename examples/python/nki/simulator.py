"""Kernels on simulated cores: nki.jit, nki.simulate, grids, reports.

Programs of a grid of up to eight run on the cores of one logical core: side by side in simulated time, with barriers
and sendrecv between them. Programs of a larger grid run one after the other, each on a core of its own. Tensors in
shared HBM are one for all of them; what the first program returns is the result.

SPDX-License-Identifier: MIT
"""
import copy
import dataclasses
import functools
import itertools
import os
import threading
import traceback

from . import _core, arrays
from .tensor import NkiTensor

TOGETHER = 8  # so many programs may wait for each other

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INSIDE = tuple(os.path.join(_HERE, name) + os.sep for name in ("nki", "neuronxcc"))  # files that are no kernel's
_core.inside(INSIDE)

_local = threading.local()


def current():
    """The core that the running kernel is on."""
    core = getattr(_local, "core", None)
    if core is None:
        raise _core.Error("tiles and instructions exist inside a kernel only: call it, or nki.simulate(kernel)(...)")
    return core


def preset(tile):
    """A tile of PSUM holds what no product has made: `tile += product` reads it, as the array cannot add to it."""
    _local.preset.add(tile.allocation)


def is_preset(tile):
    return tile.allocation in _local.preset and not tile.touched()


# ---- the grid ----

def _program():
    return getattr(_local, "program", None) or ((), ())


def grid_id(axis=0):
    ids = _program()[0]
    return ids[axis] if axis < len(ids) else 0


def grid_size(axes=None):
    sizes = _program()[1]
    if axes is None:
        return _product(sizes)
    if isinstance(axes, (tuple, list)):
        return tuple(grid_size(a) for a in axes)
    return sizes[axes] if axes < len(sizes) else 1


def grid_rank():
    return len(_program()[1])


def _product(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


# ---- what a run was ----

class Report:
    """What a run was: .time_s, .instructions, .engines, .sbuf_high_water, .psum_high_water, .bound of the core that
    took longest; .cores has one dict for each."""

    def __init__(self, reports, traces):
        self.cores, self._traces = reports, traces
        self.__dict__.update(max(reports, key=lambda r: r["time_s"]))

    def write_trace(self, path, core=0):
        """The timeline of a core, for ui.perfetto.dev."""
        if not self._traces:
            raise _core.Error("run the kernel with trace=True to get a trace")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._traces[core])

    def __str__(self):
        lines = [f"{self.time_s * 1e6:.2f} us, {self.instructions} instructions; {self.bound}"]
        for name, e in self.engines.items():
            if e["instructions"] or e["busy_s"]:
                lines.append(f"  {name:8} {e['instructions']:6} instructions {e['cycles']:12.0f} cycles "
                             f"{100 * e['share']:5.1f} % busy")
        lines.append(f"  SBUF {self.sbuf_high_water_partition} bytes of a partition, "
                     f"PSUM {self.psum_high_water_partition}")
        return "\n".join(lines)


# ---- a run ----

class _Launch:
    """One call of a kernel: its programs, and the memory in HBM that they share."""

    def __init__(self, function, grid, args, kwargs, ranks=1):
        self.function, self.grid, self.args, self.kwargs, self.ranks = function, grid, args, kwargs, ranks
        self.programs = list(itertools.product(*(range(n) for n in grid)))
        self.shared, self.lock = {}, threading.Lock()
        self.results, self.reports, self.traces = [None] * ranks, [], []

    def program(self, core, place):
        """The program at this place: those of a rank follow each other."""
        rank, number = divmod(place, len(self.programs))
        _local.core, _local.program, _local.launch = core, (self.programs[number], self.grid), self
        _local.counts, _local.preset, _local.rank = {}, set(), rank
        try:
            args = [self.argument(core, a, f"argument {n}") for n, a in enumerate(self.args)]
            kwargs = {name: self.argument(core, a, name) for name, a in self.kwargs.items()}
            result = self.function(*args, **kwargs)
            core.settle()
            core.fits()
        except _core.Error as trouble:
            said = f"{trouble} ({_where(trouble, self.function)}, generation {core.generation})"
            raise _core.Error("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in said)) from None
        finally:
            _local.core = _local.program = _local.launch = None
        if number == 0:
            self.results[rank] = result

    def done(self, core):
        self.reports.append(core.report())
        if core.traced:
            self.traces.append(core.trace())

    def run(self, options):
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

    def complete(self, result):
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

    def same(self, core, key, make):
        """What the programs of a rank share under this key: whoever comes first makes it."""
        key = (_local.rank, key)
        with self.lock:
            if key not in self.shared:
                self.shared[key] = (make(), core)
            tensor, maker = self.shared[key]
        return tensor if maker is core else core.adopt(tensor)

    def argument(self, core, value, name):
        """Arrays become tensors in HBM, in lists, tuples, dicts and records, too."""
        if type(value) is PerRank:
            value = value.of(_local.rank, self.ranks)
        array = arrays.given(value)
        if array is not None:
            return self.same(core, id(value), lambda: core.hbm(name, array.dtype.format, array.shape, array.dtype,
                                                               array.array, True, True, True))
        if type(value) in (list, tuple):
            return type(value)(self.argument(core, v, name) for v in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.argument(core, v, name) for v in value))
        if type(value) is dict:
            return {k: self.argument(core, v, name) for k, v in value.items()}
        if _is_record(value):
            return self.record(core, value, name)
        return value

    def give_back(self):
        """What the kernel has left in its arguments, into the caller's arrays."""
        for value in list(self.args) + list(self.kwargs.values()):
            if (0, id(value)) in self.shared:
                arrays.back(value, self.shared[0, id(value)][0].tobytes())

    def record(self, core, value, name):
        made = copy.copy(value)
        for field, was in list(vars(value).items()):
            now = self.argument(core, was, f"{name}.{field}")
            if now is not was:
                object.__setattr__(made, field, now)
        return made


def _is_record(value):
    from .record import NKIObject
    return hasattr(value, "__dict__") and not isinstance(value, type) and (
        isinstance(value, NKIObject) or dataclasses.is_dataclass(value))


def hbm(name, dtype, shape, shared):
    """A tensor in HBM; shared: one for all programs, by its name and which one of its shape it is."""
    core, launch = current(), getattr(_local, "launch", None)

    def make():
        return core.hbm(name or "hbm", dtype.format, shape, dtype, None, True, False, shared)

    if not shared or launch is None or len(launch.programs) == 1:
        return make()
    key = (name, shape, dtype)
    _local.counts[key] = _local.counts.get(key, 0) + 1
    return launch.same(core, key + (_local.counts[key],), make)


class PerRank:
    """nki.per_rank([x0, x1, ...]): an argument that is another one on each rank."""

    def __init__(self, values):
        self.values = list(values)

    def of(self, rank, ranks):
        if len(self.values) != ranks:
            raise _core.Error(f"per_rank has {len(self.values)} values; the kernel runs on {ranks} ranks")
        return self.values[rank]


def _together(ranks, programs, options):
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


def _core_options(generation=2, numerics=None, rounding=None, seed=0, trace=False, no_poison=False, no_races=False,
                  **_):
    return {"generation": generation, "numerics": numerics, "rounding": rounding, "seed": seed,
            "events": 1 << 18 if trace else 0, "no_poison": no_poison, "no_races": no_races}


def make_core(**options):
    return _core.Core(**_core_options(**options))


def _where(trouble, function):
    """The kernel's line: the innermost frame that does not lie in this package."""
    frames = [f for f in traceback.extract_tb(trouble.__traceback__) if not f.filename.startswith(INSIDE)]
    if frames:
        return f"{frames[-1].filename.rsplit('/', 1)[-1]}, line {frames[-1].lineno}"
    return _line_of(function) + function.__name__


def _line_of(function):
    """Where a kernel begins: "file.py, line 12, "; nothing of what is no Python."""
    code = getattr(function, "__code__", None)
    return f"{os.path.basename(code.co_filename)}, line {code.co_firstlineno}, " if code else ""


def _result(value):
    if isinstance(value, NkiTensor):
        return value.numpy()
    if isinstance(value, (list, tuple)):
        return type(value)(_result(v) for v in value)
    if isinstance(value, dict):
        return {name: _result(v) for name, v in value.items()}
    return value


# ---- kernels ----

class _latest:
    report = None


def last_report():
    """The report of the last kernel that has run, whoever called it."""
    return _latest.report


class Kernel:
    """A kernel that can be called, with a grid or without; .report is of the last call."""

    def __init__(self, function, **options):
        functools.update_wrapper(self, function)
        self.function, self.options, self.grid, self.report = function, options, (), None
        self.gridless = None  # the kernel that this one is with a grid

    def __getitem__(self, grid):
        made = Kernel(self.function, **self.options)
        made.grid = tuple(int(g) for g in (grid if isinstance(grid, (tuple, list)) else (grid,)))
        made.gridless = self
        return made

    def __call__(self, *args, **kwargs):
        if getattr(_local, "core", None) is not None:  # a kernel calls another
            return self.function(*args, **kwargs)
        return self.run(args, kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def run(self, args, kwargs, in_place=False):
        ranks = self.options.get("ranks")
        launch = _Launch(self.function, self.grid, args, kwargs, 1 if ranks is None else ranks)
        launch.run(self.options)
        if in_place:
            launch.give_back()
        self.report = _latest.report = Report(launch.reports, launch.traces)
        if self.gridless is not None:
            self.gridless.report = self.report
        return _result(launch.results[0]) if ranks is None else [_result(r) for r in launch.results]


def jit(function=None, **options):
    """@nki.jit: the function becomes a kernel that a call runs on a simulated core."""
    if function is None:
        return lambda f: jit(f, **options)
    return function if isinstance(function, Kernel) else Kernel(function)


def simulate(kernel, generation=2, numerics=None, rounding=None, seed=0, trace=False, no_poison=False, ranks=None,
             no_races=False):
    """nki.simulate(kernel)(...): runs it on a core of this generation (1, 2, 3 for Trainium1, 2, 3); .report afterwards
    says how long it took. numerics: settings of trn_numerics.h, "chains=1"; rounding: of every cast, "stochastic";
    trace: keep a timeline; no_poison: reads of what nothing has written pass; no_races: uses of the same HBM by programs
    that nothing orders pass; ranks: so many logical cores run it at once, for nki.collectives, and a list of their
    results comes back (nki.per_rank: an argument for each)."""
    made = Kernel(kernel.function if isinstance(kernel, Kernel) else kernel, generation=generation, numerics=numerics,
                  rounding=rounding, seed=seed, trace=trace, no_poison=no_poison, ranks=ranks, no_races=no_races)
    made.grid = kernel.grid if isinstance(kernel, Kernel) else ()
    return made
