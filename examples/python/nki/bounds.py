"""How far a kernel's results may be from the exact ones, by the roundings that it really makes.

    bounds = nki.tolerance(kernel, generation=2)(x, w)   # runs it; .value, .worst, .sigma of each result
    nki.assert_close(bounds, expected)                   # or an AssertionError that names the instruction to blame

worst: no element is further from what exact arithmetic gives for the same inputs, as long as operators are monotonic
within their operands' errors (to first order all are). sigma: the root mean square, were all roundings independent of
each other. Comparisons, predicates, masks and random numbers are taken as they came out. What has no rule makes all
that depends on it infinite, and .unknown names it.

SPDX-License-Identifier: MIT
"""
import os
import sys

import numpy as np

from . import _core, arrays, dtypes, operators, rules
from .shadow import Error, Shadow, holds, rounding, spacing
from .simulator import INSIDE, Kernel, Report, _Launch
from .tensor import HBM, NkiTensor

_ALU = {op.alu: name for name, op in reversed(operators.ALL.items()) if op.alu is not None}
_ACT = {op.act: name for name, op in reversed(operators.ALL.items()) if op.act is not None}


# ---- one instruction ----

class Step:
    """One instruction that has run: what rules (rules.py) ask and tell."""

    def __init__(self, follow, source, before):
        self.follow, self.source, self._before = follow, source, before
        self.sources = follow.sources

    def none(self, shape=()):
        return Error.none(self.sources, tuple(shape))

    def value(self, operand):
        if isinstance(operand, NkiTensor):
            kept = self._before.get(id(operand))
            return kept[0] if kept is not None else numbers(operand)
        return np.float64(operand)

    def error(self, operand):
        if not isinstance(operand, NkiTensor):
            return self.none()
        kept = self._before.get(id(operand))
        return kept[1] if kept is not None else self.follow.error(operand)

    def pair(self, operand, ndim=None):
        """Numbers and their error before the instruction; [P, 1] with as many axes as a tile has."""
        value, error = self.value(operand), self.error(operand)
        more = 0 if ndim is None or not np.ndim(value) else ndim - value.ndim
        if more > 0:
            value = value.reshape(value.shape + (1,) * more)
            error = error.map(lambda e: e.reshape(e.shape + (1,) * more))
        return value, error

    def move(self, dst, src, turn=False):
        """Elements that keep their order, or change rows for columns; cast where the formats differ."""
        if not turn:
            dst, src = fours(dst), fours(src)
        value, error = self.pair(src)
        if turn:
            rows = len(value)
            value = value.reshape(rows, -1).T
            error = error.map(lambda e: e.reshape(len(e), rows, -1).transpose(0, 2, 1))
        shape = tuple(dst.shape)
        self.finish(dst, value.reshape(shape), error.map(lambda e: e.reshape(len(e), *shape)), kept=[src])

    def finish(self, dst, value, error, kept=None, own=0):
        """dst is about `value`, with this error, and was rounded to its format; not if each operand of `kept` fits it.
        What the instruction returned beyond that, and beyond what it may be off by its own roundings, counts, too."""
        dst = fours(dst)
        to, got = _format(dst), numbers(dst)
        value = np.broadcast_to(value, got.shape)
        whole = error.map(lambda e: np.array(np.broadcast_to(e, (self.sources, *got.shape))))
        allowed = np.where(np.isfinite(value), spacing("float32", value) / 2, 0) + own
        if to != "float32" and not (kept and all(holds(to, _format(k)) for k in kept if isinstance(k, NkiTensor))):
            rounding(whole, self.source, to, value, self.follow.random)
            allowed = allowed + np.where(np.isfinite(value), spacing(to, value), 0)
        with np.errstate(invalid="ignore"):
            beyond = np.maximum(abs(got - value) - allowed, 0)
        same = (got == value) | (np.isnan(got) & np.isnan(value))
        beyond = np.where(same, 0, np.where(np.isnan(beyond), np.inf, beyond))
        whole.add_local(self.source, beyond, beyond * beyond)
        self.follow.keep(dst, whole)

    def product_tolerance(self, stationary, moving, shape):
        """Of TensorE's chains, merges and PSUM: trn_tolerance, as worst and variance."""
        import trnmath
        a, b = (_rows_of_k(codes(t), self.slots) for t in (stationary, moving))
        options = {} if self.follow.numerics is None else {"numerics": self.follow.numerics}
        scales = {name: np.ascontiguousarray(s) for name, s in zip(("a_scale", "b_scale"), self.scales)}
        worst, sigma = trnmath.tolerance((np.ascontiguousarray(a.T), _format(stationary)), (b, _format(moving)),
                                         generation=self.follow.core.generation, **scales, **options)
        return worst.astype(np.float64).reshape(shape), np.square(sigma.astype(np.float64)).reshape(shape)

    slots, scales = None, ()  # of a product: the axis with several rows of K per partition; MX's scales [M, K / 32]


def _rows_of_k(data, slots):
    """An operand [K, free] of a product, or [K, 2, free], [K, free, 4]: rows of K, those of a partition together."""
    if slots is None:
        return data.reshape(len(data), -1)
    data = np.moveaxis(data, slots, 1)
    return np.ascontiguousarray(data).reshape(data.shape[0] * data.shape[1], -1)


# Bytes of an element, and its name, by trnmath's number of the format.
_NAMES = {d.format: name for name, d in reversed(dtypes.ALL.items()) if not d.four} | {12: "float4_e2m1fn"}
_BYTES = {d.format: d.itemsize for d in dtypes.ALL.values()} | {12: 1}


def _format(tensor):
    return _NAMES[fours(tensor).format]


def fours(tensor):
    """Of x4 formats the elements, with a last axis of four; others as they are."""
    return tensor.four() if tensor.dtype.four and tensor.format != tensor.dtype.four else tensor


def codes(tensor):
    tensor = fours(tensor)
    return np.frombuffer(tensor.tobytes(), arrays._CODES[_BYTES[tensor.format]]).reshape(tensor.shape)


def numbers(tensor):
    """The numbers of a tensor in binary64."""
    if not tensor.dtype.four:
        return np.asarray(arrays.out(tensor), np.float64)
    tensor = fours(tensor)
    wide = np.frombuffer(_core.decode(tensor.tobytes(), tensor.format), np.float32)
    return wide.astype(np.float64).reshape(tensor.shape)


# ---- a core's instructions ----

class Follow:
    """Errors of everything on a core, kept up while a kernel runs. labels: the places of the kernel that are told
    apart, or none of them."""

    def __init__(self, core, labels=(), numerics=None, random=False):
        self.core, self.labels, self.numerics, self.random = core, list(labels), numerics, random
        self.sources = max(len(self.labels), 1)
        self.shadows, self.seen, self.unknown = {}, {}, {}

    def shadow(self, tensor):
        key = tensor.allocation
        if key not in self.shadows:
            if len(self.shadows) > 256:
                there = self.core.tiles()
                self.shadows = {k: v for k, v in self.shadows.items() if k[0] == HBM or k in there}
            base = tensor.base
            rows, wide = base.shape[0] if base.ndim else 1, _BYTES[base.format]
            width = max(int(np.prod(base.shape[1:])), 1)
            self.shadows[key] = Shadow(self.sources, rows, width * wide, 1 if tensor.dtype.four else wide)
        return self.shadows[key]

    def error(self, tensor):
        """The errors of a view, which may be written through; of another size of elements: none, and not kept."""
        tensor = fours(tensor)
        shadow, wide = self.shadow(tensor), _BYTES[tensor.format]
        if wide != shadow.itemsize:
            return Error.none(self.sources, tuple(tensor.shape))
        base = tensor.base
        if tensor.space == HBM:
            return shadow.view(tensor.element_offset, tuple(tensor.shape), tensor.strides)
        pitch, width = base.strides[0] * _BYTES[base.format] // wide, shadow.width
        at = tensor.element_offset
        steps = [s // pitch * width if s and s % pitch == 0 else s for s in tensor.strides]
        return shadow.view(at // pitch * width + at % pitch, tuple(tensor.shape), steps)

    def keep(self, tensor, error):
        view = self.error(tensor)
        view.worst[...] = error.worst
        view.variance[...] = error.variance

    def source(self, name):
        """The place in the kernel that issues this instruction, by number; a new place is remembered."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(INSIDE):
            frame = frame.f_back
        label = (os.path.basename(frame.f_code.co_filename), frame.f_lineno, name) if frame else ("", 0, name)
        self.seen[label] = None
        return self.labels.index(label) if self.labels else 0

    def __call__(self, instruction, name, core, args):
        given = {field: value for field, value in zip(instruction.names, args) if value is not None}
        for field in ("op", "op0", "op1", "reduce_op"):
            if field in given:
                table = _ACT if field == "op" and name in ("activation", "activate2") else _ALU
                given[field] = table.get(given[field], given[field])
        source = self.source(name)
        operands = [v for v in given.values() if isinstance(v, NkiTensor)] + list(given.get("srcs", ()))
        before = {id(t): (numbers(t), self.error(t).map(np.array)) for t in operands}
        instruction(core, *args)
        step = Step(self, source, before)
        rule = rules.RULES.get(name)
        try:
            if rule is None:
                raise NotImplementedError(name)
            rule(step, **given)
        except NotImplementedError as lacking:
            self.unknown[str(lacking)] = None
            for field in ("dst", "val_dst", "idx_dst", "reduce_res", "dst_scale"):
                if isinstance(given.get(field), NkiTensor):
                    lost = step.none(fours(given[field]).shape)
                    lost.worst[source] = lost.variance[source] = np.inf
                    self.keep(given[field], lost)


# ---- a kernel ----

class Bound:
    """A result: .value as the kernel returned it, .worst and .sigma per element; .places: who brought how much."""

    def __init__(self, value, error, labels, unknown):
        self.value, self.worst, self.sigma = value, error.bound, error.sigma
        self.error, self.labels, self.unknown = error, labels, unknown

    def places(self, index):
        """[(share of the variance, "file, line n, instruction")] of one element, the largest first."""
        variance = self.error.variance[(slice(None),) + tuple(index)]
        total = variance.sum()
        rows = [(float(v / total) if total > 0 else 0.0, f"{file}, line {line}, {name}")
                for v, (file, line, name) in zip(variance, self.labels)]
        return sorted(rows, reverse=True)


class _Followed(_Launch):
    """A launch whose instructions are followed; labels as Follow wants them."""

    def __init__(self, *args, labels=(), options=None):
        super().__init__(*args)
        self.labels, self.options, self.follow, self.bounds = labels, options or {}, None, None

    def program(self, core, number):
        if self.follow is None:
            self.follow = Follow(core, self.labels, self.options.get("numerics"),
                                 self.options.get("rounding") == "stochastic")
        elif self.follow.core is not core:
            raise _core.Error("nki.tolerance follows one core: give a kernel without a grid")
        core.observer = self.follow
        try:
            super().program(core, number)
        finally:
            core.observer = None
        self.bounds = self.bound(self.results[0])

    def bound(self, value):
        if isinstance(value, NkiTensor):
            return Bound(value.numpy(), self.follow.error(value).map(np.array), list(self.follow.labels),
                         list(self.follow.unknown))
        if isinstance(value, (list, tuple)):
            return type(value)(self.bound(v) for v in value)
        if isinstance(value, dict):
            return {name: self.bound(v) for name, v in value.items()}
        return value


def tolerance(kernel, places=False, **options):
    """tolerance(kernel, generation=2, numerics=None, ...)(inputs): the kernel's results as Bounds. places: each place
    of the kernel is a source of its own, so that Bound.places can say who brought how much; slower, and run twice."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    if options.get("ranks") not in (None, 1):
        raise _core.Error(f"nki.tolerance follows one core, not {options['ranks']} ranks")

    def run(*args, **kwargs):
        def once(labels):
            launch = _Followed(made.function, made.grid, args, kwargs, labels=labels, options=options)
            launch.run(options)
            return launch
        launch = once(())
        if places:
            launch = once(tuple(launch.follow.seen))
        run.report = Report(launch.reports, launch.traces)
        return launch.bounds
    run.places = lambda *args, **kwargs: tolerance(kernel, True, **options)(*args, **kwargs)
    return run


def assert_close(bound, expected, sigmas=None, why=None):
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
    index = np.unravel_index(int(np.argmax(share)), share.shape)
    said = (f"{int(bad.sum())} of {bad.size} elements are further from the exact ones than rounding explains; "
            f"element {tuple(int(i) for i in index)} is {got[index]!r}, expected {expected[index]!r}: "
            f"off by {off[index]:.3g}, where {'at most' if sigmas is None else f'{sigmas} sigma ='} "
            f"{allowed[index]:.3g} is allowed")
    if bound.labels:
        share, place = bound.places(index)[0]
        said += f"; {100 * share:.0f} % of its own error comes from {place}"
    raise AssertionError(said + (f" ({why})" if why else ""))
