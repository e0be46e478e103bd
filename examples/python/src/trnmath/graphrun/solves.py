"""Systems of equations, row by row in the arrays' own precision: neither machine has an instruction for them.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Op
from .machine import Array, Engines, Exact

Machine = Exact | Engines
Arrays = list[Array]


def _turned(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def triangular_solve(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """x of op(a) x = b, or of x op(a) = b; of a only the triangle is read."""
    (a, b), given = arrays, op.attributes
    lower, turn = bool(given.get("lower")), str(given.get("transpose_a", "NO_TRANSPOSE"))
    a = np.tril(a) if lower else np.triu(a)
    if turn in ("TRANSPOSE", "ADJOINT"):
        a, lower = _turned(a.conj() if turn == "ADJOINT" else a), not lower
    if not given.get("left_side"):
        a, b, lower = _turned(a), _turned(b), not lower
    x, size = np.array(b), a.shape[-1]
    with np.errstate(all="ignore"):
        for i in range(size) if lower else reversed(range(size)):
            done = slice(0, i) if lower else slice(i + 1, size)
            left = b[..., i, :] - (a[..., i, done, None] * x[..., done, :]).sum(-2)
            x[..., i, :] = left if given.get("unit_diagonal") else left / a[..., i, i, None]
    return [x if given.get("left_side") else _turned(x)]


def cholesky(_: Machine, op: Op, arrays: Arrays) -> Arrays:
    """l of l l* = a, or u of u* u = a; of a only that triangle is read."""
    lower = bool(op.attributes.get("lower"))
    a = arrays[0] if lower else _turned(arrays[0].conj())
    made = np.zeros_like(a)
    with np.errstate(all="ignore"):
        for j in range(a.shape[-1]):
            rest = a[..., j:, j] - (made[..., j:, :j] * made[..., j, None, :j].conj()).sum(-1)
            made[..., j:, j] = rest / np.sqrt(rest[..., :1])
    return [made if lower else _turned(made.conj())]


TABLE: dict[str, Any] = {"triangular_solve": triangular_solve, "cholesky": cholesky}
