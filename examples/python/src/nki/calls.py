"""What handles of operators and tensors do when they are called, added, assigned to: they are below the instructions,
and this file tells them.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core, assigned, moves
from ._numpy import np
from .arithmetic import binary, unary
from .composed import FUNCTIONS, composed, remainder
from .index import Wide, numbers
from .masks import Mask
from .memories import PSUM
from .names import surplus
from .operators import ALL, Op, named
from .reductions import reduced
from .results import onto, taken
from .running import is_preset
from .tensor import Format, NkiTensor, worked_by


_KEYWORDS = ("axis", "dtype", "keepdims", "mask", "negate")


_ON_INDICES = frozenset(("add", "subtract", "multiply", "maximum", "minimum", "left_shift", "right_shift",
                         "bitwise_and", "bitwise_or"))


def _of_indices(name: str, args: Sequence[Any]) -> Any:
    """A grid of indices and a tile of them, whose numbers are read at once: a grid."""
    if name not in _ON_INDICES or not all(isinstance(a, (int, np.integer, np.ndarray)) or
                                          isinstance(a, NkiTensor) and "int" in str(a.dtype) for a in args):
        raise _core.Error(f"nl.{name}: an array of NumPy's is no tile; nl.load(nl.shared_constant(array)) makes one")
    return getattr(np, name)(*(numbers(a) if isinstance(a, NkiTensor) else a for a in args))


class _Work:
    """As tensor.py wants it."""

    def assign(self, tensor: NkiTensor, key: Any, value: Any, has_name: bool) -> None:
        assigned.assign(tensor, key, value, has_name)

    def packed(self, wide: Wide[NkiTensor]) -> NkiTensor:
        return moves.packed(wide)

    def broadcast_to(self, x: NkiTensor, shape: Sequence[int]) -> NkiTensor:
        return moves.broadcast_to(x, shape)

    def cast(self, x: NkiTensor, dtype: Format) -> NkiTensor:
        return moves.copy(x, dtype=dtype)

    def call(self, op: Op, *args: Any, axis: Any = None, mask: Mask = None, dtype: Format = None,
             **options: Any) -> NkiTensor:
        """nl.op(x), nl.op(x, y), and reductions nl.max(x, axis)."""
        op = named(op)
        if np is not None and any(isinstance(a, np.ndarray) and a.ndim for a in args):
            return _of_indices(op.name, args)
        if args and not any(hasattr(a, "shape") for a in args):
            raise _core.Error(f"nl.{op.name}: {', '.join(map(repr, args))} is no tile; Python computes with numbers")
        surplus(f"nl.{op.name}", _KEYWORDS if op.reduction else (), options)
        if op.reduction:
            axis = args[1] if len(args) > 1 else axis
            return reduced(op, args[0], axis, mask=mask, dtype=dtype, **options)
        if len(args) == 1 and op.name in FUNCTIONS:
            return composed(op.name, args[0], mask, dtype)
        if len(args) == 1:
            return unary(op, args[0], mask=mask, dtype=dtype)
        x, y = args
        if op.name in ("mod", "fmod"):
            return remainder(op.name, x, y, mask, dtype)
        return binary(op, x, y, mask, dtype)

    def in_place(self, name: str, x: NkiTensor, y: Any) -> NkiTensor:
        """x += y: of a product that waits, in PSUM, where it accumulates."""
        waits = taken(y)
        if waits is not None and waits.adds and name == "add" and x.space == PSUM and not (
                is_preset(x) or assigned.used_again(y)):
            waits.adds(x)
            return x
        box = None
        if waits is not None:
            waits.materialise()
            box = waits.box
            if x.space == PSUM and y.space == PSUM:  # an instruction reads one of them
                y = moves.copy(y, mask=box)
        made = binary(ALL[name], x, y, box if box is None or x.shape == y.shape else None, dtype=x.dtype)
        if x.copied and not assigned.has_name(x):
            return made  # tensor[...] += y: which is assigned next
        onto(made, x)
        return x


worked_by(_Work())
