"""neuronxcc.nki.language: nki.language, whose tiles may count blocks before par_dim, and its older names.

SPDX-License-Identifier: MIT
"""
import math as _math

from nki.language import *  # noqa: F401,F403
from nki.language import NKIObject, NkiTensor, par_dim  # noqa: F401


class fp32:  # type: ignore[no-redef]  # nki.language's is the format
    """Limits of float32."""

    min, max = -3.4028234663852886e38, 3.4028234663852886e38


class nc(int):
    """nl.nc(2): programs on so many cores."""


def spmd_dim(*extents: int) -> int:
    """Programs along one axis of a grid: the product."""
    return _math.prod(int(extent) for extent in extents)
