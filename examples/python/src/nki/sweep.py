"""nki.check(kernel, shapes=...): runs a kernel with many shapes, grids and generations, and tells the smallest that
fails: an access outside of a tensor, a race of two programs, a result that is not all written, SBUF or PSUM overflow,
whatever else a run refuses, and numbers that are not what was expected.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import inspect
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _core, beside, machine, sizes
from ._numpy import np
from .arrays import Given
from .frames import INSIDE
from .simulator import Kernel, where as line_of
from .sizes import Case, Shapes, Values

_KINDS = (("unwritten", "nothing has written"), ("race", "no core_barrier"), ("SBUF", r"\bSBUF (has|of) "),
          ("PSUM", r"\bPSUM (has|of) |stays in one bank"),
          ("access", r"of axis \d+, which has|on axis \d+, which has|partitions; there are|leaves"))
_LARGE = 1 << 25  # elements of a case that nobody asked for


class Failure(NamedTuple):
    """kind: access, race, unwritten, SBUF, PSUM, numbers, refused or error."""

    kind: str
    case: Case
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.case}: {self.sentence}"


class Checked:
    """What nki.check found: .ok, .failures, .smallest, .passed, .declined, .left, .limits; printed it says so."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.failures: list[Failure] = []  # the smallest first
        self.passed: list[Case] = []
        self.declined: list[tuple[Case, str]] = []  # the kernel itself does not take the shape: assert, raise
        self.left = 0  # cases for which there was no time
        self.limits: dict[str, int] = {}  # the largest value of a symbol that fits, beyond those that were asked for
        self.memory: dict[str, tuple[int, int]] = {}  # of cases: SBUF and PSUM of a partition

    @property
    def ok(self) -> bool:
        return not self.failures and bool(self.passed)

    def __bool__(self) -> bool:
        return self.ok

    @property
    def smallest(self) -> Failure | None:
        """The smallest case that fails."""
        return self.failures[0] if self.failures else None

    @property
    def kinds(self) -> dict[str, Failure]:
        """Of each kind the smallest."""
        return {f.kind: f for f in reversed(self.failures)}

    def __repr__(self) -> str:
        count = len(self.passed) + len(self.failures) + len(self.declined)
        said = f"{self.name}: " + (f"{len(self.failures)} of {count} cases fail" if self.failures
                                   else f"{len(self.passed)} of {count} cases are right")
        said += f", {len(self.declined)} it declines" if self.declined else ""
        said += f", {self.left} not run" if self.left else ""
        said += "".join(f"; {name} up to {most} fits" for name, most in self.limits.items())
        return "\n".join([said, *(f"  {self.kinds[kind]}" for kind in reversed(list(self.kinds)))])


# ---- one case ----

class _Sweep:
    """A kernel, what it is given beside arrays, and what has been found."""

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Any], dtype: Any, seed: int,
                 expected: Callable[..., Any] | None = None, tolerance: float | None = None) -> None:
        self.kernel, self.arguments, self.dtype, self.seed = kernel, arguments, dtype, seed
        self.expected, self.tolerance = expected, tolerance
        self.found = Checked(kernel.function.__name__)
        self.outcome: dict[str, str | None] = {}  # of a case: the kind of its failure, "" declined, None right

    def arrays(self, case: Case) -> dict[str, Any]:
        rng = np.random.default_rng(self.seed)
        dtypes = self.dtype if isinstance(self.dtype, Mapping) else dict.fromkeys(case.shapes, self.dtype)
        made = {}
        for name, shape in case.shapes.items():
            dtype = dtypes.get(name, "float32")
            whole = re.search("int|bool", str(getattr(dtype, "__name__", dtype)))
            made[name] = Given(np.ones(shape, np.int32) if whole else rng.standard_normal(shape).astype(np.float32), dtype)
        return made

    def run(self, case: Case) -> str | None:
        """Its outcome, which is remembered."""
        key = str(case)
        if key not in self.outcome:
            self.outcome[key] = self.again(case)
        return self.outcome[key]

    def again(self, case: Case) -> str | None:
        made = Kernel(self.kernel.function, **dict(self.kernel.options, generation=case.generation))
        made.grid = case.grid
        arrays = self.arrays(case)
        try:
            got = made(**arrays, **self.arguments)
        except Exception as trouble:
            return self.failed(case, trouble)
        off = self.expected and beside.wrong(got, self.expected, self.arrays(case), self.arguments, self.tolerance)
        if off:
            self.found.failures.append(Failure("numbers", case, f"{off} (generation {case.generation})"))
            return "numbers"
        self.found.passed.append(case)
        assert made.report is not None
        self.found.memory[str(case)] = (made.report.sbuf_high_water_partition, made.report.psum_high_water_partition)
        return None

    def failed(self, case: Case, trouble: Exception) -> str:
        line = line_of(trouble, self.kernel.function)
        if isinstance(trouble, (AssertionError, NotImplementedError, ValueError)) and _own(trouble):
            self.found.declined.append((case, f"{trouble} ({line})".strip()))
            return ""
        said = str(trouble) or type(trouble).__name__
        kind = next((kind for kind, words in _KINDS if re.search(words, said)), None)
        if not isinstance(trouble, _core.Error):
            kind = kind or ("access" if isinstance(trouble, IndexError) else "error")
            said = f"{said} ({line}, generation {case.generation})"
        self.found.failures.append(Failure(kind or "refused", case, said))
        return kind or "refused"

    # ---- several ----

    def shrink(self, one: Any, failure: Failure, free: Iterable[str]) -> None:
        """Smaller numbers for the symbols that nobody has chosen, as long as it fails like that."""
        case = failure.case
        for name in set(case.symbols) & set(free):
            right = [c.symbols[name] for c in (*self.found.passed, *(c for c, _ in self.found.declined))
                     if _but(c, name) == _but(case, name) and c.symbols[name] < case.symbols[name]]
            low, high = max(right, default=0), case.symbols[name]
            while high - low > 1:
                middle = low + 1 if low in right and low + 1 not in right else (low + high) // 2
                tried = sizes.filled(one, {**case.symbols, name: middle}, case.grid, case.generation)
                if tried is not None and self.run(tried) == failure.kind:
                    case, high = tried, middle
                else:
                    low = middle

    def limit(self, one: Any, name: str, cases: Sequence[Case]) -> None:
        """Memory that grows by the same for each step of a symbol says which is the last that fits; runs confirm it."""
        first = min(self.found.passed, key=lambda c: c.size)
        line = sorted((c for c in self.found.passed if _but(c, name) == _but(first, name)),
                      key=lambda c: c.symbols[name])
        if len(line) < 3 or self.found.failures:
            return
        capacity = _capacity(first.generation)
        for which in (0, 1):
            points = [(c.symbols[name], self.found.memory[str(c)][which]) for c in line]
            step = (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])
            if step <= 0 or any(abs(points[0][1] + step * (x - points[0][0]) - y) > 64 for x, y in points):
                continue
            last = points[0][0] + int((capacity[which] - points[0][1]) / step)
            both = [sizes.filled(one, {**first.symbols, name: n}, first.grid, first.generation)
                    for n in (last, last + 1)]
            if last > points[-1][0] and all(c is not None and c.size < _LARGE for c in both) and self.fits(both):
                self.found.limits[name] = last

    def fits(self, both: Sequence[Any]) -> bool:
        """Does the first fit and the second not? Neither counts as a case."""
        kept = list(self.found.passed), list(self.found.failures), list(self.found.declined)
        said = self.again(both[0]), self.again(both[1])
        self.found.passed, self.found.failures, self.found.declined = kept
        return said[0] is None and said[1] in ("SBUF", "PSUM")


def _but(case: Case, name: str) -> tuple[Any, ...]:
    return case.grid, case.generation, {k: v for k, v in case.symbols.items() if k != name}


def _own(trouble: Exception) -> bool:
    """Did the kernel's own code raise it?"""
    at = trouble.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and not at.tb_frame.f_code.co_filename.startswith(INSIDE)


def _capacity(generation: int) -> tuple[int, int]:
    report = _core.Core(generation=generation).report()
    return int(report["sbuf_bytes"]) // 128, int(report["psum_bytes"]) // 128


# ---- check ----

def _parameters(function: Callable[..., Any], given: set[str], arguments: Mapping[str, Any]) -> None:
    """Do the names fit the kernel? Else a sentence."""
    parameters = inspect.signature(function).parameters
    takes = f"{function.__name__}({', '.join(parameters)})"
    loose = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in [*given, *arguments]:
        if name not in parameters and not loose:
            raise _core.Error(f"check: there is no '{name}' in {takes}")
    empty = inspect.Parameter.empty
    for name, p in parameters.items():
        if p.default is empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and name not in {*given, *arguments}:
            raise _core.Error(f"check: {takes} is given no '{name}': an array has a shape in shapes=, anything else a "
                              "value in arguments=")


def check(kernel: Kernel | Callable[..., Any], shapes: Shapes | None = None, where: Values | None = None,
          grids: Sequence[Any] | None = None, generations: Sequence[int | str] | None = None,
          arguments: Mapping[str, Any] | None = None, dtype: Any = "float32", seed: int = 0, seconds: float = 60,
          expected: Callable[..., Any] | None = None, tolerance: float | None = None) -> Checked:
    """Runs the kernel with each shape, grid and generation, small ones first, and returns what it found.

    shapes: {"x": (128, "n"), "w": ("128*k", 512)}, sizes with symbols that stand for the same number everywhere; lists of
    shapes, {"x": [(128, 64), (256, 64)]}, which go side by side; a list of such dicts; or a function of symbols that
    returns one. where: {"k": range(1, 5)}, the numbers of symbols; without it 1 to 8, and for a size that is a symbol
    alone numbers about the edges of tiles, from which the smallest that fails is looked for. grids: numbers or tuples,
    of symbols, too; generations: 1, 2, 3. arguments: what the kernel takes that is no array. dtype: of all arrays, or
    a dict. seconds: after so many no further case begins. expected: what it is to compute, a function in NumPy that takes
    what it names of the kernel's parameters, in binary64; tolerance: how far a result may be off, else by its format."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    if shapes is None:
        names = ", ".join(inspect.signature(made.function).parameters)
        raise _core.Error(f"check: say what shapes {made.function.__name__}({names}) is to be given, as shapes={{\"x\": "
                          "(\"128*k\", 512)}")
    several, places = sizes.listed(shapes), list(grids) if grids else [made.grid]
    machines = [machine.generation(g) for g in generations or (made.options.get("generation"),)]
    strange = set(where or {}) - sizes.symbols_of(several, places)
    if strange:
        raise _core.Error(f"check: where= says what '{strange.pop()}' is; no size says it")
    sweep = _Sweep(made, arguments or {}, dtype, seed, expected, tolerance)
    until = time.monotonic() + seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in several:
            _all(sweep, one, list(sizes.cases(one, where or {}, places, machines)), set(where or {}), until)
    sweep.found.failures.sort(key=lambda f: f.case.size)
    return sweep.found


def _all(sweep: _Sweep, one: Any, cases: list[Case], chosen: set[str], until: float) -> None:
    if not cases:
        raise _core.Error("check: no size of these shapes is larger than 0")
    _parameters(sweep.kernel.function, set(cases[0].shapes), sweep.arguments)
    before = len(sweep.found.failures)
    for case in sorted(cases, key=lambda c: (c.size, c.grid, c.generation)):
        if time.monotonic() > until:
            sweep.found.left += 1
        else:
            sweep.run(case)
    first: dict[str, Failure] = {}
    for failure in sweep.found.failures[before:]:
        first.setdefault(failure.kind, failure)
    for failure in first.values():
        if time.monotonic() < until:
            sweep.shrink(one, failure, set(failure.case.symbols) - chosen)
    for name in cases[0].symbols if sweep.found.passed else ():
        if time.monotonic() < until:
            sweep.limit(one, name, cases)
