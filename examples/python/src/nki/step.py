"""One instruction and the errors of its operands: what rules (rules.py) ask and tell.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .memories import HBM
from .numbers import BYTES, codes, fours, name_of, numbers, rows_of_k
from .shadow import Error, Shadow, holds, rounding, spacing
from .tensor import NkiTensor, Operand

Pair = tuple[NDArray[Any], Error]  # numbers, and how far they may be off


class Errors:
    """Errors of everything on a core, by allocation. sources: how many places of the kernel are told apart."""

    def __init__(self, core: _core.Core, sources: int = 1, numerics: str | None = None, random: bool = False) -> None:
        self.core, self.sources, self.numerics, self.random = core, sources, numerics, random
        self.shadows: dict[tuple[int, int], Shadow] = {}

    def shadow(self, tensor: NkiTensor) -> Shadow:
        key = tensor.allocation
        if key not in self.shadows:
            if len(self.shadows) > 256:
                there = self.core.tiles()
                self.shadows = {k: v for k, v in self.shadows.items() if k[0] == HBM or k in there}
            base = tensor.base
            rows, wide = base.shape[0] if base.ndim else 1, BYTES[base.format]
            width = max(int(np.prod(base.shape[1:])), 1)
            self.shadows[key] = Shadow(self.sources, rows, width * wide, 1 if tensor.dtype.four else wide)
        return self.shadows[key]

    def error(self, tensor: NkiTensor) -> Error:
        """The errors of a view, which may be written through; of another size of elements: none, and not kept."""
        tensor = fours(tensor)
        shadow, wide = self.shadow(tensor), BYTES[tensor.format]
        if wide != shadow.itemsize:
            return Error.none(self.sources, tuple(tensor.shape))
        base = tensor.base
        if tensor.space == HBM:
            return shadow.view(tensor.element_offset, tuple(tensor.shape), tensor.strides)
        pitch, width = base.strides[0] * BYTES[base.format] // wide, shadow.width
        at = tensor.element_offset
        steps = [s // pitch * width if s and s % pitch == 0 else s for s in tensor.strides]
        return shadow.view(at // pitch * width + at % pitch, tuple(tensor.shape), steps)

    def keep(self, tensor: NkiTensor, error: Error) -> None:
        view = self.error(tensor)
        view.worst[...] = error.worst
        view.variance[...] = error.variance


class Step:
    """One instruction that has run. slots, scales: of a product the axis with several rows of K per partition, and MX's
    scales [M, K / 32]."""

    slots: int | None = None

    def __init__(self, follow: Errors, source: int, before: dict[int, Pair]) -> None:
        self.follow, self.source, self._before = follow, source, before
        self.sources = follow.sources
        self.scales: list[NDArray[Any]] = []

    def none(self, shape: Sequence[int] = ()) -> Error:
        return Error.none(self.sources, tuple(shape))

    def value(self, operand: Any) -> NDArray[Any]:
        if isinstance(operand, NkiTensor):
            kept = self._before.get(id(operand))
            return kept[0] if kept is not None else numbers(operand)
        number: Any = np.float64(operand)
        return number

    def error(self, operand: Any) -> Error:
        if not isinstance(operand, NkiTensor):
            return self.none()
        kept = self._before.get(id(operand))
        return kept[1] if kept is not None else self.follow.error(operand)

    def pair(self, operand: Any, ndim: int | None = None) -> Pair:
        """Numbers and their error before the instruction; [P, 1] with as many axes as a tile has."""
        value, error = self.value(operand), self.error(operand)
        more = 0 if ndim is None or not np.ndim(value) else ndim - value.ndim
        if more > 0:
            value = value.reshape(value.shape + (1,) * more)
            error = error.map(lambda e: e.reshape(e.shape + (1,) * more))
        return value, error

    def move(self, dst: NkiTensor, src: NkiTensor, turn: bool = False) -> None:
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

    def finish(self, dst: NkiTensor, value: NDArray[Any], error: Error, kept: Sequence[Any] | None = None,
               own: Any = 0) -> None:
        """dst is about `value`, with this error, and was rounded to its format; not if each operand of `kept` fits it.
        What the instruction returned beyond that, and beyond what it may be off by its own roundings, counts, too."""
        dst = fours(dst)
        to, got = name_of(dst), numbers(dst)
        value = np.broadcast_to(value, got.shape)
        whole = error.map(lambda e: np.array(np.broadcast_to(e, (self.sources, *got.shape))))
        allowed = np.where(np.isfinite(value), spacing("float32", value) / 2, 0) + own
        if to != "float32" and not (kept and all(holds(to, name_of(k)) for k in kept if isinstance(k, NkiTensor))):
            rounding(whole, self.source, to, value, self.follow.random)
            allowed = allowed + np.where(np.isfinite(value), spacing(to, value), 0)
        with np.errstate(invalid="ignore"):
            beyond = np.maximum(abs(got - value) - allowed, 0)
        same = (got == value) | (np.isnan(got) & np.isnan(value))
        beyond = np.where(same, 0, np.where(np.isnan(beyond), np.inf, beyond))
        whole.add_local(self.source, beyond, beyond * beyond)
        self.follow.keep(dst, whole)

    def product_tolerance(self, stationary: NkiTensor, moving: NkiTensor,
                          shape: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of TensorE's chains, merges and PSUM: trn_tolerance, as worst and variance."""
        import trnmath  # here: a kernel runs without the library
        a, b = (rows_of_k(codes(t), self.slots) for t in (stationary, moving))
        options: Any = {name: np.ascontiguousarray(s) for name, s in zip(("a_scale", "b_scale"), self.scales)}
        if self.follow.numerics is not None:
            options["numerics"] = self.follow.numerics
        options["generation"] = self.follow.core.generation
        left, right = (np.ascontiguousarray(a.T), name_of(stationary)), (b, name_of(moving))
        worst, sigma = trnmath.tolerance(left, right, **options)
        return worst.astype(np.float64).reshape(shape), np.square(sigma.astype(np.float64)).reshape(shape)
