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
from .shadow import FORMATS, Error, Shadow, difference, holds, rounding, spacing
from .tensor import NkiTensor, Operand

Pair = tuple[NDArray[Any], Error]  # numbers, and how far they may be off


class Errors:
    """Errors of everything on a core, by allocation. sources: how many places of the kernel are told apart; asked: the
    narrowest format to which numbers may be cast. A cast to a narrower one allows no more than a cast to that. hbm: of
    tensors in HBM, which cores share."""

    def __init__(self, core: _core.Core, sources: int = 1, numerics: str | None = None, random: bool = False,
                 asked: str | None = None, hbm: dict[tuple[int, int], Shadow] | None = None) -> None:
        self.core, self.sources, self.numerics, self.random, self.asked = core, sources, numerics, random, asked
        self.tiles: dict[tuple[int, int], Shadow] = {}
        self.hbm = {} if hbm is None else hbm
        self.narrowed: dict[tuple[int, str], None] = {}  # places that cast numbers to less than was asked, and to what
        self.place = 0  # the number of the place whose instruction runs

    def shadow(self, tensor: NkiTensor) -> Shadow:
        """Memory that is used again for a tensor of another size begins anew."""
        base = tensor.base
        rows, row_bytes = base.shape[0] if base.ndim else 1, max(int(np.prod(base.shape[1:])), 1) * BYTES[base.format]
        known = self.hbm if tensor.space == HBM else self.tiles
        found = known.get(tensor.allocation)
        if found is None or (found.rows, found.row_bytes) != (rows, row_bytes):
            self._forget()
            found = Shadow(self.sources, rows, row_bytes, 1 if tensor.dtype.four else BYTES[base.format])
            known[tensor.allocation] = found
        return found

    def _forget(self) -> None:
        """Tiles that there are no more."""
        if len(self.tiles) > 256:
            there = self.core.tiles()
            self.tiles = {k: v for k, v in self.tiles.items() if k in there}

    def error(self, tensor: NkiTensor) -> Error:
        """The errors of a view, which may be written through; of another size of elements: none, and not kept."""
        tensor = fours(tensor)
        shadow, wide = self.shadow(tensor), BYTES[tensor.format]
        if wide != shadow.itemsize:
            return Error.none(self.sources, tuple(tensor.shape))
        base = tensor.base
        if tensor.space == HBM:
            return shadow.view(*_in_hbm(tensor))
        pitch, width = base.strides[0] * BYTES[base.format] // wide, shadow.width
        at = tensor.element_offset
        steps = [s // pitch * width if s and s % pitch == 0 else s for s in tensor.strides]
        return shadow.view(at // pitch * width + at % pitch, tuple(tensor.shape), steps)

    def writers(self, tensor: NkiTensor) -> NDArray[Any]:
        """Of a tensor in HBM: which place has written an element last; may be written through."""
        tensor = fours(tensor)
        shadow = self.shadow(tensor)
        if BYTES[tensor.format] != shadow.itemsize:
            return np.zeros(tensor.shape, np.int32)
        return shadow.writers(*_in_hbm(tensor))

    def keep(self, tensor: NkiTensor, error: Error) -> None:
        self.error(tensor).all[...] = error.all


def _in_hbm(tensor: NkiTensor) -> tuple[int, tuple[int, ...], Sequence[int]]:
    return tensor.element_offset, tuple(tensor.shape), tensor.strides


class Step:
    """One instruction, made before it runs. slots, scales: of a product the axis with several rows of K per partition,
    and MX's scales [M, K / 32]."""

    slots: int | None = None

    def __init__(self, follow: Errors, source: int, overwritten: Sequence[NkiTensor]) -> None:
        self.follow, self.source = follow, source
        self._before: dict[int, Pair] = {id(t): (numbers(t), follow.error(t).map(np.array)) for t in overwritten}
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
        whole = error.map(lambda e: np.array(np.broadcast_to(e, (len(e), *got.shape))))
        allowed = np.where(np.isfinite(value), spacing("float32", value) / 2, 0) + own
        narrow, off = self._narrower(to), difference(got, value)
        if to != "float32" and not (kept and all(holds(to, name_of(k)) for k in kept if isinstance(k, NkiTensor))):
            rounding(whole, self.source, narrow or to, value, self.follow.random)
            allowed = allowed + np.where(np.isfinite(value), spacing(to, value), 0)
        if not narrow:
            self._beyond(whole, got, value, np.maximum(abs(off) - allowed, 0))
        self._drift(whole, to, off, bool(narrow))
        self.follow.keep(dst, whole)

    def _narrower(self, to: str) -> str | None:
        """The format that was asked for, where this one is a narrower one of fractions."""
        asked = self.follow.asked
        return asked if asked is not None and to in FORMATS and not holds(to, asked) else None

    def _beyond(self, whole: Error, got: NDArray[Any], value: NDArray[Any], beyond: NDArray[Any]) -> None:
        """Off by more than roundings explain; what is infinite or no number here and not there: by anything."""
        if not (np.isfinite(got).all() and np.isfinite(value).all()):
            same = (got == value) | (np.isnan(got) & np.isnan(value))
            beyond = np.where(same, 0, np.where(np.isfinite(got) & np.isfinite(value), beyond, np.inf))
        if beyond.any():
            whole.add_local(self.source, beyond, beyond * beyond)

    def _drift(self, whole: Error, to: str, off: NDArray[Any], narrow: bool) -> None:
        """Whole numbers are taken as they came out."""
        if to not in FORMATS:
            whole.drift[...] = 0
            return
        whole.drift[0] += off
        if narrow:
            whole.drift[1] += off
            if off.any():
                self.follow.narrowed[self.follow.place, to] = None

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
