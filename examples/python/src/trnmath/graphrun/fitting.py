"""What XLA refuses and NumPy would take: axes, shapes and formats that do not go together.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import formats
from .graph import Op, Shape, Trouble, Type
from .machine import BINARY, UNARY

_AXES = ("dimensions", "lhs_batch", "rhs_batch", "lhs_contracting", "rhs_contracting", "offset_dims",
         "collapsed_slice_dims", "start_index_map", "update_window_dims", "inserted_window_dims", "start_indices",
         "scatter_dims_to_operand_dims", "operand_batching_dims", "start_indices_batching_dims", "interior", "strides",
         "slice_sizes", "window_dimensions", "window_strides", "dimension", "index", "iota_dimension")
_ALIKE = set(UNARY) | set(BINARY) | {"compare", "is_finite", "complex", "real", "imag", "convert", "reduce_precision"}


_OTHER_FORMATS = ("abs", "compare", "is_finite", "complex", "real", "imag", "convert")


def _class(name: str) -> str:
    """Of a format: floats, complex, booleans, or whole numbers."""
    if name in formats.INTEGERS:
        return "a boolean" if name == "pred" else "a whole number"
    return "a float" if formats.is_float(name) else "complex"


def _select(op: Op, given: list[Shape]) -> bool:
    dims = op.shape().dims
    return given[0].dims in ((), dims) and given[1].dims == given[2].dims == dims


def _clamp(op: Op, given: list[Shape]) -> bool:
    dims = op.shape().dims
    return given[1].dims == dims and all(given[n].dims in ((), dims) for n in (0, 2))


def _slice(op: Op, given: list[Shape]) -> bool:
    rows = list(zip(op.get("start_indices"), op.get("limit_indices"), given[0].dims))
    return len(rows) == len(given[0].dims) and all(0 <= a <= b <= n for a, b, n in rows)


def _dot(op: Op, given: list[Shape]) -> bool:
    """Axes that are shared, or summed over, are equally long."""
    pairs = (("lhs_batch", "rhs_batch"), ("lhs_contracting", "rhs_contracting"))
    sizes = lambda side, name: [given[side].dims[n] for n in op.attributes.get(name, [])]
    return all(sizes(0, left) == sizes(1, right) for left, right in pairs)


_RULES: dict[str, Callable[[Op, list[Shape]], bool]] = {
    "select": _select, "clamp": _clamp, "slice": _slice, "dot_general": _dot,
    "pad": lambda op, given: given[1].dims == (), "case": lambda op, given: given[0].dims == ()}


def _refused(op: Op, given: list[Type]) -> bool:
    """Do shapes or formats of tensors not go together? What has a tuple among its operands is not asked."""
    shapes = [t for t in given if isinstance(t, Shape)]
    if op.kind in _RULES and shapes and not _RULES[op.kind](op, shapes):
        return True
    if op.kind not in _ALIKE or not shapes:
        return False
    classes = {_class(t.format) for t in shapes}
    if op.kind in ("compare", "is_finite"):
        return len(classes) > 1 or op.shape().format != "pred"
    return op.kind not in _OTHER_FORMATS and classes != {_class(op.shape().format)}


def fitting(op: Op, given: list[Type]) -> None:
    """Trouble, or nothing. given: the operands' types."""
    for name in _AXES:
        if np.min(op.attributes.get(name, 0), initial=0) < 0:
            raise Trouble(f"line {op.line}: '{op.name}' has a negative number in {name}")
    if op.attributes["of"] in formats.FOUR and op.kind in ("popcnt", "count_leading_zeros", "shift_right_logical"):
        raise Trouble(f"line {op.line}: {op.kind} '{op.name}' of four bits is not known here")
    if op.kind in _ALIKE:
        for type_ in given:
            if not isinstance(type_, Shape) or type_.dims != op.shape().dims:
                raise Trouble(f"line {op.line}: {op.kind} '{op.name}' is {op.shape()}, and an operand {type_}")
    try:
        refused = _refused(op, given)
    except (IndexError, TypeError):
        refused = True
    if refused:
        listed = ", ".join(str(t) if isinstance(t, Shape) else "a tuple" for t in given)
        raise Trouble(f"line {op.line}: {op.kind} '{op.name}' does not fit its operands {listed}")
