"""The handle of an operator: its numbers for the engines, and a call.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

from . import _core
from .tensor import NkiTensor, call

ALU, ACT = 1, 2  # engines that have an operator: Vector and GpSimd; Scalar


class Operator:
    """op=nl.exp, or nl.exp(x). alu, act: its numbers for these engines, None where they lack it."""

    __slots__ = ("name", "alu", "act", "reduction")

    def __init__(self, name: str, engines: int = 0, reduction: bool = False) -> None:
        self.name, self.reduction = name, reduction
        self.alu = _core.alu(name) if engines & ALU else None
        self.act = _core.act(name) if engines & ACT else None

    def __call__(self, *args: Any, **kwargs: Any) -> NkiTensor:
        return call(self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"nki.language.{self.name}"

    def __eq__(self, other: object) -> bool:
        return bool(self.name == getattr(other, "name", None)) or other is self

    def __hash__(self) -> int:
        return hash(self.name)
