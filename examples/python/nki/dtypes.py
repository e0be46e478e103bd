"""The number formats of nki.language, each a str with its storage; and what NumPy calls them.

SPDX-License-Identifier: MIT
"""
try:
    import numpy as np
except ImportError:  # buffers go in and come out then
    np = None

# name: trnmath's format number, bytes of an element, NumPy's name ("" = none without ml_dtypes), of four: their format
_ROWS = {
    "float32": (1, 4, "float32", 0), "tfloat32": (2, 4, "float32", 0), "bfloat16": (3, 2, "", 0),
    "float16": (4, 2, "float16", 0), "float8_e4m3": (5, 1, "", 0), "float8_e4m3fn": (6, 1, "", 0),
    "float8_e5m2": (7, 1, "", 0), "float8_e3m4": (8, 1, "", 0), "float8_e8m0fnu": (9, 1, "", 0),
    "int8": (13, 1, "int8", 0), "uint8": (14, 1, "uint8", 0), "int16": (15, 2, "int16", 0),
    "uint16": (16, 2, "uint16", 0), "int32": (17, 4, "int32", 0), "uint32": (18, 4, "uint32", 0),
    "bool_": (14, 1, "bool", 0),
    "float8_e4m3fn_x4": (18, 4, "uint32", 6), "float8_e5m2_x4": (18, 4, "uint32", 7),
    "float4_e2m1fn_x4": (18, 4, "uint32", 12),
}


class DType(str):
    """A format: compares equal to its name and to NumPy's dtype of that name."""

    __slots__ = ("format", "itemsize", "numpy", "four")

    def __new__(cls, name):
        self = super().__new__(cls, name)
        self.format, self.itemsize, self.numpy, self.four = _ROWS[name]
        return self

    @property
    def name(self):
        return str(self)

    def __eq__(self, other):
        return str.__eq__(self, other) is True or (not isinstance(other, str) and _named(other) == str(self))

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self):
        return f"nki.language.{self!s}"

    def __str__(self):
        return str.__str__(self)


ALL = {name: DType(name) for name in _ROWS}
_ALIASES = {"bool": "bool_", "float8e4": "float8_e4m3", "float8e5": "float8_e5m2", "fp32": "float32",
            "bf16": "bfloat16", "int64": "int32", "float64": "float32", "uint64": "uint32"}


def _named(dtype):
    """What somebody's dtype is called: NumPy's, ml_dtypes', torch's."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return name.rsplit(".", 1)[-1]


def of(dtype):
    """The DType of a name or of somebody's dtype."""
    if isinstance(dtype, DType):
        return dtype
    name = dtype if isinstance(dtype, str) else _named(dtype)
    name = name.rsplit(".", 1)[-1]
    found = ALL.get(_ALIASES.get(name, name))
    if found is None:
        raise TypeError(f"{dtype!r} is no format of nki.language")
    return found
