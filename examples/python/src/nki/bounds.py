"""How far a kernel's results may be from the exact ones, by the roundings that it really makes.

    bounds = nki.tolerance(kernel, generation=2)(x, w)   # runs it; .value, .worst, .sigma of each result
    nki.assert_close(bounds, expected)                   # or an AssertionError that names the instruction to blame

worst: no element is further from what exact arithmetic gives for the same inputs, as long as operators are monotonic
within their operands' errors (to first order all are). sigma: the root mean square, were all roundings independent of
each other. Comparisons, predicates, masks and random numbers are taken as they came out. What has no rule makes all
that depends on it infinite, and .unknown names it.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, operators, rules
from .frames import of_kernel
from .index import scalar
from .numbers import fours, name_of, numbers
from .running import Grid
from .shadow import Error
from .simulator import Kernel, Launch, Report
from .step import Errors, Step
from .tensor import NkiTensor

_ALU = {op.alu: name for name, op in reversed(operators.ALL.items()) if op.alu is not None}
_ACT = {op.act: name for name, op in reversed(operators.ALL.items()) if op.act is not None}
_RESULTS = ("dst", "val_dst", "idx_dst", "reduce_res", "dst_scale", "dst_idx")  # an instruction's, by its field
Label = tuple[str, int, str]  # file, line, instruction


def _further(view: NkiTensor, value: Any, of: NkiTensor, dim: int) -> NkiTensor:
    """A view that begins so many indices of an axis of a tensor further on, by a number that lies in a tile."""
    return view.strided(view.shape, view.strides, scalar(value) * math.prod(of.shape[dim + 1:]))


def _overwritten(given: dict[str, Any]) -> list[NkiTensor]:
    """Those operands whose memory the instruction writes, so that what they hold has to be kept."""
    operands = [v for v in (*given.values(), *given.get("srcs", ())) if isinstance(v, NkiTensor)]
    written = {given[name].allocation for name in _RESULTS if isinstance(given.get(name), NkiTensor)}
    return [t for t in operands if t.allocation in written]


class Follow(Errors):
    """Errors of everything on a core, kept up while a kernel runs. labels: the places of the kernel that are told
    apart, or none of them; before: what followed a program of the same launch, whose tensors in HBM it shares."""

    def __init__(self, core: _core.Core, labels: Sequence[Label] = (), numerics: str | None = None,
                 random: bool = False, asked: str | None = None, before: Follow | None = None) -> None:
        super().__init__(core, max(len(labels), 1), numerics, random, asked, before.hbm if before else None)
        self.labels = list(labels)
        self.seen: dict[Label, int] = {}
        if before is not None:
            self.seen, self.unknown, self.narrowed = before.seen, before.unknown, before.narrowed

    def label(self) -> str:
        file, line, name = list(self.seen)[self.place]
        return f"{name} of {file}, line {line}"

    def source(self, name: str) -> int:
        """The place in the kernel that issues this instruction, by number; a new place is remembered."""
        frame = of_kernel()
        label = (os.path.basename(frame.f_code.co_filename), frame.f_lineno, name) if frame else ("", 0, name)
        self.place = self.seen.setdefault(label, len(self.seen))
        return self.labels.index(label) if self.labels else 0

    def __call__(self, instruction: _core._Instruction, name: str, core: _core.Core, args: tuple[Any, ...]) -> None:
        given = {field: value for field, value in zip(instruction.names, args) if value is not None}
        for field in ("op", "op0", "op1", "reduce_op"):
            if field in given:
                table = _ACT if field == "op" and name in ("activation", "activate2") else _ALU
                given[field] = table.get(given[field], given[field])
        source = self.source(name)
        step = Step(self, source, _overwritten(given))
        instruction(core, *args)
        for side in ("src", "dst"):
            offset = [given.pop(f"{side}_offset.{part}", None) for part in ("value", "of", "dim")]
            if offset[1] is not None:
                given[side] = _further(given[side], *offset)
        rule = rules.RULES.get(name)
        try:
            if rule is None:
                raise NotImplementedError(name)
            with np.errstate(all="ignore"):  # infinities and what is no number have rules of their own
                rule(step, **given)
        except NotImplementedError as lacking:
            self.lost(str(lacking), [given[f] for f in _RESULTS if isinstance(given.get(f), NkiTensor)])

    def lost(self, why: str, tensors: Sequence[NkiTensor]) -> None:
        """Nothing is known of what these hold now."""
        self.unknown[why] = None
        for tensor in tensors:
            error = Error.none(self.sources, tuple(fours(tensor).shape))
            error.worst[0] = error.variance[0] = np.inf
            self.keep(tensor, error)


# ---- a kernel ----

class Bound:
    """A result: .value as the kernel returned it, .worst and .sigma per element; .exact: what the same kernel gives in
    exact arithmetic (binary64); .places: who brought how much. .narrow: what casts to less than was asked brought, with
    its sign; .casts: where these were, and to what. .numbers: the value in binary64, .format: what it is; .writer:
    which of .seen has written an element last."""

    def __init__(self, tensor: NkiTensor, error: Error, follow: Follow) -> None:
        self.value, self.worst, self.sigma = tensor.numpy(), error.bound, error.sigma
        self.numbers, self.format, self.writer = numbers(tensor), name_of(tensor), np.array(follow.writers(tensor))
        self.exact, self.narrow = self.numbers - error.drift[0], error.drift[1]
        self.error, self.labels, self.unknown = error, list(follow.labels), list(follow.unknown)
        self.seen = list(follow.seen)
        self.casts = [(self.seen[place], to) for place, to in follow.narrowed]

    def places(self, index: Sequence[int]) -> list[tuple[float, str]]:
        """[(share of the variance, "file, line n, instruction")] of one element, the largest first."""
        variance = self.error.variance[(slice(None),) + tuple(index)]
        total = variance.sum()
        rows = [(float(v / total) if total > 0 else 0.0, f"{file}, line {line}, {name}")
                for v, (file, line, name) in zip(variance, self.labels)]
        return sorted(rows, reverse=True)


class _Followed(Launch):
    """A launch whose instructions are followed; labels as Follow wants them."""

    def __init__(self, *args: Any, labels: Sequence[Label] = (), options: dict[str, Any] | None = None) -> None:
        super().__init__(*args)
        self.labels, self.options = labels, options or {}
        self.follow: Follow | None = None  # of the first program

    def program(self, core: _core.Core, place: int) -> None:
        with self.lock:
            follow = Follow(core, self.labels, self.options.get("numerics"),
                            self.options.get("rounding") == "stochastic", self.options.get("asked"), self.follow)
            self.follow = self.follow or follow
        core.observer = follow
        try:
            super().program(core, place)
        finally:
            core.observer = None

    def result(self) -> Any:
        """What the kernel returned; of one that returns nothing the arguments that it has written."""
        assert self.follow is not None
        if self.results[0] is not None:
            return self.results[0]
        given = [tensor for key, (tensor, _) in self.shared.items() if isinstance(key, tuple) and isinstance(key[1], int)]
        return tuple(tensor for tensor in given if self.follow.written(tensor))


def _bound(follow: Follow, value: Any) -> Any:
    """A result as a Bound; of lists, tuples and dicts each."""
    if isinstance(value, NkiTensor):
        return Bound(value, follow.error(value).map(np.array), follow)
    if isinstance(value, (list, tuple)):
        return type(value)(_bound(follow, v) for v in value)
    if isinstance(value, dict):
        return {name: _bound(follow, v) for name, v in value.items()}
    return value


class Tolerance:
    """A kernel that is followed when it is called; .report is of the last call."""

    def __init__(self, kernel: Kernel, by_place: bool, options: dict[str, Any]) -> None:
        self.kernel, self.by_place, self.options = kernel, by_place, options
        self.report: Report | None = None
        self.follow: Follow | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        launch = self._run(args, kwargs, ())
        if self.by_place and launch.follow is not None:
            launch = self._run(args, kwargs, tuple(launch.follow.seen))
        self.report, self.follow = Report(launch.reports, launch.traces), launch.follow
        assert launch.follow is not None
        return _bound(launch.follow, launch.result())

    def places(self, *args: Any, **kwargs: Any) -> Any:
        """The same with places=True."""
        return Tolerance(self.kernel, True, self.options)(*args, **kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], labels: Sequence[Label]) -> _Followed:
        launch = _Followed(self.kernel.function, self.kernel.grid, args, kwargs, labels=labels, options=self.options)
        launch.run(self.options)
        return launch


def tolerance(kernel: Kernel | Callable[..., Any], places: bool = False, **options: Any) -> Tolerance:
    """tolerance(kernel, generation=2, numerics=None, ...)(inputs): the kernel's results as Bounds. places: each place
    of the kernel is a source of its own, so that Bound.places can say who brought how much; slower, and run twice."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    if options.get("ranks") not in (None, 1):
        raise _core.Error(f"nki.tolerance follows one core, not {options['ranks']} ranks")
    return Tolerance(made, places, options)


def assert_close(bound: Bound, expected: Any, sigmas: float | None = None, why: str | None = None) -> None:
    """Fails where a result is further from `expected`, the exact one, than its worst bound (or than so many sigmas):
    with the element, both numbers, the bound, and the place of the kernel that brings most of it (if `bound` was made
    with places=True). NaN is as expected where NaN is expected."""
    expected = np.asarray(expected, np.float64)
    got = np.asarray(bound.value, np.float64)
    if got.shape != expected.shape:
        raise AssertionError(f"the result is {got.shape}, expected {expected.shape}")
    allowed = bound.worst if sigmas is None else np.minimum(sigmas * bound.sigma, bound.worst)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0, abs(got - expected))
    bad = ~(off <= allowed) & ~same
    if not bad.any():
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(bad, np.where(np.isnan(off), np.inf, off) / np.where(allowed > 0, allowed, 1e-300), 0)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(share)), share.shape))
    said = (f"{int(bad.sum())} of {bad.size} elements are further from the exact ones than rounding explains; "
            f"element {index} is {got[index]!r}, expected {expected[index]!r}: "
            f"off by {off[index]:.3g}, where {'at most' if sigmas is None else f'{sigmas} sigma ='} "
            f"{allowed[index]:.3g} is allowed")
    if bound.labels:
        part, place = bound.places(index)[0]
        said += f"; {100 * part:.0f} % of its own error comes from {place}"
    raise AssertionError(said + (f" ({why})" if why else ""))
