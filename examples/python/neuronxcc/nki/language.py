"""neuronxcc.nki.language: nki.language, whose tiles may count blocks before par_dim, and its older names.

SPDX-License-Identifier: MIT
"""
from nki import dtypes as _dtypes, language as _language, sugar as _sugar
from nki.language import *  # noqa: F401,F403
from nki.language import NKIObject, NkiTensor, par_dim  # noqa: F401

for _name in dir(_language):
    if not _name.startswith("__"):
        globals()[_name] = getattr(_language, _name)


def ndarray(shape, dtype, buffer=_language.sbuf, name="", **options):
    return _language.ndarray(shape, dtype, buffer, name, **options)


def zeros(shape, dtype, buffer=_language.sbuf, name="", **options):
    return _language.zeros(shape, dtype, buffer, name, **options)


class fp32:
    """Limits of float32."""

    min, max = -3.4028234663852886e38, 3.4028234663852886e38


class nc(int):
    """nl.nc(2): programs on so many cores."""


def spmd_dim(*extents):
    """Programs along one axis of a grid: the product."""
    count = 1
    for extent in extents:
        count *= int(extent)
    return count


def __getattr__(name):
    if name in _dtypes.ALL:
        return _dtypes.ALL[name]
    found = getattr(_sugar, name, None)
    if found is None:
        raise AttributeError(f"neuronxcc.nki.language has no '{name}'")
    return found
