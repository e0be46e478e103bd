"""Masks: which elements of a result an instruction computes. Those that are boxes shrink the views.

SPDX-License-Identifier: MIT
"""
from . import _core
from .index import Scattered
from .tensor import NkiTensor

try:
    import numpy as np
except ImportError:
    np = None


def box_of(mask, shape):
    """Slices of each axis that together are the mask; None = everything."""
    if mask is None or mask is True:
        return None
    mask = np.broadcast_to(np.asarray(mask, bool), shape) if np.ndim(mask) <= len(shape) else np.asarray(mask, bool)
    if mask.all():
        return None
    box = []
    for axis in range(mask.ndim):
        line = np.flatnonzero(mask.any(axis=tuple(a for a in range(mask.ndim) if a != axis)))
        if not len(line):
            return tuple(slice(0, 0) for _ in shape)
        step = int(line[1] - line[0]) if len(line) > 1 else 1
        box.append(slice(int(line[0]), int(line[-1]) + 1, step))
    if not mask[tuple(box)].all() or mask.sum() != mask[tuple(box)].size:
        raise _core.Error("a mask that is no box of its axes: use affine_select, or nl.where")
    return tuple(box)


def cut(value, box):
    """The part of an operand; axes of one element stay."""
    if box is None or not isinstance(value, (NkiTensor, Scattered)):
        return value
    key = tuple(slice(None) if size == 1 and (b.start, b.stop) != (0, 0) else b for b, size in zip(box, value.shape))
    if isinstance(value, Scattered):
        return value.part(key)
    return value[key]
