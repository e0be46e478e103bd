"""One instruction and the errors of its operands: what rules (rules.py) ask and tell.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .memories import HBM
from .numbers import BYTES, NAMES, codes, fours, name_of, numbers, rows_of_k
from .shadow import FORMATS, Error, Shadow, difference, holds, rounding, spacing
from .tensor import NkiTensor, Operand

_OTHER = 2.0**-7  # of an element, and of the largest one
_ALL: NDArray[Any] = np.array(np.inf)
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
        self.unknown: dict[str, None] = {}  # what has no rule

    def label(self) -> str:
        """What runs, and where."""
        return "an instruction"

    def _found(self, tensor: NkiTensor) -> Shadow | None:
        """None: nothing has been kept of it, so that it has no errors. Memory that is used again for a tensor of
        another size begins anew."""
        found = (self.hbm if tensor.space == HBM else self.tiles).get(tensor.allocation)
        return found if found is not None and (found.rows, found.row_bytes) == _size(tensor) else None

    def _made(self, tensor: NkiTensor) -> Shadow:
        """To be written through a view of this format; what was kept through another one is lost."""
        found = self._found(tensor)
        if found is not None and _alike(found, tensor):
            return found
        self._forget()
        made = Shadow(self.sources, *_size(tensor), BYTES[tensor.format], tensor.format)
        if found is not None and found.error.all.any():
            self.unknown[f"a tile that is written as {name_of(tensor)} and as another format"] = None
            made.error.worst, made.error.variance = _ALL, _ALL
        (self.hbm if tensor.space == HBM else self.tiles)[tensor.allocation] = made
        return made

    def _forget(self) -> None:
        """Tiles that there are no more."""
        if len(self.tiles) > 256:
            there = self.core.tiles()
            self.tiles = {k: v for k, v in self.tiles.items() if k in there}

    def error(self, tensor: NkiTensor) -> Error:
        """The errors of a view, to be read: there may be no memory behind them."""
        tensor = fours(tensor)
        found = self._found(tensor)
        if found is not None and _alike(found, tensor):
            return found.view(*_place(tensor, found))
        none = Error(np.broadcast_to(np.zeros(()), (2 * self.sources + 2, *tensor.shape)))
        if found is None or not found.error.all.any():
            return none
        self.unknown[f"a view as {name_of(tensor)} of another format"] = None
        lost = none.map(np.array)
        lost.worst, lost.variance = _ALL, _ALL
        return lost

    def written(self, tensor: NkiTensor) -> bool:
        """Has anything been kept of it?"""
        return self._found(fours(tensor)) is not None

    def writers(self, tensor: NkiTensor) -> NDArray[Any]:
        """Of a tensor in HBM: which place has written an element last."""
        tensor = fours(tensor)
        found = self._found(tensor)
        if found is None or not _alike(found, tensor):
            return np.zeros(tensor.shape, np.int32)
        return found.writers(*_place(tensor, found))

    def keep(self, tensor: NkiTensor, error: Error) -> None:
        """What is known of these elements from now on."""
        tensor = fours(tensor)
        made = self._made(tensor)
        made.view(*_place(tensor, made)).all[...] = error.all
        if tensor.space == HBM:
            made.writers(*_place(tensor, made))[...] = self.place


def _alike(shadow: Shadow, tensor: NkiTensor) -> bool:
    """Are errors of the one those of the other? Of whole numbers and of codes of one size they are."""
    name, kept = name_of(tensor), NAMES[shadow.format]
    codes = name not in FORMATS and kept not in FORMATS
    return name == kept or (codes and BYTES[shadow.format] == BYTES[tensor.format])


def _size(tensor: NkiTensor) -> tuple[int, int]:
    """Rows, and bytes of each, of all that it is a view of."""
    base = tensor.base
    return base.shape[0] if base.ndim else 1, max(int(np.prod(base.shape[1:])), 1) * BYTES[base.format]


def _place(tensor: NkiTensor, shadow: Shadow) -> tuple[int, tuple[int, ...], Sequence[int]]:
    """Where a view begins, its shape and its steps, in elements of a shadow."""
    base, at, shape = tensor.base, tensor.element_offset, tuple(tensor.shape)
    if tensor.space == HBM:
        return at, shape, tensor.strides
    pitch, width = base.strides[0] * BYTES[base.format] // BYTES[tensor.format], shadow.width
    steps = [s // pitch * width if s and s % pitch == 0 else s for s in tensor.strides]
    return at // pitch * width + at % pitch, shape, steps


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

    def pair(self, operand: Any, shape: Sequence[int] | None = None) -> Pair:
        """Numbers and their error before the instruction; beside a tile of this shape: as many elements as it has in
        its shape, [P, 1] with as many axes."""
        value, error = self.value(operand), self.error(operand)
        if shape is None or not np.ndim(value) or tuple(shape) == value.shape:
            return value, error
        if value.size == math.prod(shape):
            new = tuple(shape)
        else:
            new = value.shape + (1,) * (len(shape) - value.ndim) if value.size != len(value) else (
                len(value), *(1,) * (len(shape) - 1))
        return value.reshape(new), error.map(lambda e: e.reshape(len(e), *new))

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
        self._other(whole, value, np.maximum(abs(off) - allowed, 0))
        self.follow.keep(dst, whole)

    def _other(self, whole: Error, value: NDArray[Any], beyond: NDArray[Any]) -> None:
        """What is so far off is no rounding: the instruction does something that its rule does not know. And what is
        infinite stays so, whatever it is multiplied with."""
        other = beyond > _OTHER * (abs(value) + abs(value[np.isfinite(value)]).max(initial=0))
        if other.any():
            self.follow.unknown[f"{self.follow.label()}, which its rule does not follow"] = None
            whole.worst[:, other] = whole.variance[:, other] = np.inf
        lost = np.isnan(whole.all[:-2])
        if lost.any():
            whole.all[:-2][lost] = np.inf

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
