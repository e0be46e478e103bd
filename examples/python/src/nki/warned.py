"""Warnings of what runs and is likely not what was meant: once for each line of a kernel, which they name.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

from ._numpy import np
from .frames import INSIDE
from .operators import Op, act as _act, named as _named
from .tensor import NkiTensor, Operand

_PI = 3.1415927410125732  # a little more, as float32 has it
_RANGES = {_act("sin"): _PI, _act("arctan"): _PI / 2}  # NKI's table of functions; beyond them it extrapolates


def warn(text: str) -> None:
    """At the innermost line that is not in this package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)


def in_range(op: Op, data: NkiTensor, scale: Operand, bias: NkiTensor | None) -> None:
    """Warns of arguments beyond those that the table of a function holds."""
    most = _RANGES.get(_act(op))
    sizes = None if most is None else _sizes(data, scale, bias)
    if sizes is not None and (sizes > most).any():  # one text for all values: Python shows it once for a line
        name = _named(op).name
        warn(f"{name}: an argument lies outside of [-{most:.5g}, {most:.5g}], where the Scalar engine's table ends, and what "
             f"comes out is no {name}; bring it inside first, as nl.{name} does")


def lost(name: str, what: str, data: NkiTensor, most: float) -> None:
    """Warns of numbers beyond +-most, of which a function of nl loses what is left when the whole is taken off."""
    sizes = _sizes(data)
    if sizes is not None and ((sizes > most) & np.isfinite(sizes)).any():
        warn(f"nl.{name}: {what} lies outside of [-{most:.7g}, {most:.7g}], beyond which float32 loses the rest: what comes "
             f"out is no {name}")


def _sizes(data: NkiTensor, scale: Operand = 1.0, bias: NkiTensor | None = None) -> Any:
    """How large a function's arguments are, if that is known; what nothing has written is NaN."""
    if np is None or not isinstance(data, NkiTensor) or data.is_indirect():
        return None
    data.core.settle()
    x = np.asarray(data.numpy()).astype(np.float32).reshape(data.shape[0], -1)
    with np.errstate(all="ignore"):
        return np.abs(x * _column(scale) + (0 if bias is None else _column(bias)))


def _column(operand: Operand) -> Any:
    if isinstance(operand, NkiTensor):
        return np.asarray(operand.numpy()).astype(np.float32).reshape(operand.shape[0], -1)
    return np.float32(operand)
