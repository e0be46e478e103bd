"""The DType of a name, or of what somebody else calls a format.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from . import formats
from .formats import DType

ALL = {name: dtype for name, dtype in vars(formats).items() if type(dtype) is DType}
_ALIASES = {"bool": "bool_", "float8e4": "float8_e4m3", "float8e5": "float8_e5m2", "fp32": "float32",
            "bf16": "bfloat16"}


def of(dtype: object) -> DType:
    """The DType of a name or of somebody's dtype."""
    if isinstance(dtype, DType):
        return dtype
    name = dtype.rsplit(".", 1)[-1] if isinstance(dtype, str) else formats._named(dtype)
    found = ALL.get(_ALIASES.get(name, name))
    if found is None:
        widest = "; the widest are float32, int32 and uint32" if name.endswith("64") else ""
        raise TypeError(f"{name} is no format of nki.language{widest}")
    return found
