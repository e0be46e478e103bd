"""What tensors hold, for tolerances: their codes, and their numbers in binary64.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, arrays, dtypes
from .tensor import NkiTensor

# Bytes of an element, and its name, by trnmath's number of the format.
NAMES = {d.format: name for name, d in reversed(dtypes.ALL.items()) if not d.four} | {12: "float4_e2m1fn"}
BYTES = {d.format: d.itemsize for d in dtypes.ALL.values()} | {12: 1}


def name_of(tensor: NkiTensor) -> str:
    """What the format of its elements is called."""
    return NAMES[fours(tensor).format]


def fours(tensor: NkiTensor) -> NkiTensor:
    """Of x4 formats the elements, with a last axis of four; others as they are."""
    return tensor.four() if tensor.dtype.four and tensor.format != tensor.dtype.four else tensor


def codes(tensor: NkiTensor) -> NDArray[Any]:
    """The codes of its elements."""
    tensor = fours(tensor)
    return np.frombuffer(tensor.tobytes(), arrays.CODES[BYTES[tensor.format]]).reshape(tensor.shape)


def numbers(tensor: NkiTensor) -> NDArray[np.float64]:
    """The numbers of a tensor in binary64."""
    if not tensor.dtype.four:
        return np.asarray(arrays.out(tensor), np.float64)
    tensor = fours(tensor)
    wide = np.frombuffer(_core.decode(tensor.tobytes(), tensor.format), np.float32)
    return wide.astype(np.float64).reshape(tensor.shape)


def rows_of_k(data: NDArray[Any], slots: int | None) -> NDArray[Any]:
    """An operand [K, free] of a product, or [K, 2, free], [K, free, 4]: rows of K, those of a partition together."""
    if slots is None:
        return data.reshape(len(data), -1)
    data = np.moveaxis(data, slots, 1)
    return np.ascontiguousarray(data).reshape(data.shape[0] * data.shape[1], -1)
