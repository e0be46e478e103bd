"""neuronxcc.nki.language.constants: what older kernels take from it.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from nki import dtypes as _dtypes
from nki.tensor import Format as _Format


def sizeinbytes(dtype: _Format) -> int:
    """Bytes of an element."""
    return _dtypes.of(dtype).itemsize
