"""The number formats of nki.language, each a str with its storage: one row per format.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations


def _named(dtype: object) -> str:
    """What somebody's dtype is called: NumPy's, ml_dtypes', torch's."""
    told = getattr(dtype, "metadata", None)
    if told and "nki" in told:  # arrays.py's
        return str(told["nki"])
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).rsplit(".", 1)[-1]


class DType(str):
    """A format: compares equal to its name and to NumPy's dtype of that name. format: trnmath's number; itemsize: bytes
    of an element; numpy: NumPy's name ("" = none without ml_dtypes); four: the number of the format that it has four
    elements of, or 0."""

    __slots__ = ("format", "itemsize", "numpy", "four")

    format: int  # type: ignore[assignment]  # str has a method of this name, which nobody asks a format for
    itemsize: int
    numpy: str
    four: int

    def __new__(cls, name: str, number: int, itemsize: int, numpy: str = "", four: int = 0) -> DType:
        self = super().__new__(cls, name)
        self.format, self.itemsize, self.numpy, self.four = number, itemsize, numpy, four
        return self

    def __reduce__(self) -> str:
        return str(self)  # there is one of each: a copy is the row below

    @property
    def name(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or (not isinstance(other, str) and _named(other) == str(self))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"nki.language.{self!s}"

    def __str__(self) -> str:
        return str.__str__(self)


float32 = DType("float32", 1, 4, "float32")
tfloat32 = DType("tfloat32", 2, 4, "float32")
bfloat16 = DType("bfloat16", 3, 2)
float16 = DType("float16", 4, 2, "float16")
float8_e4m3 = DType("float8_e4m3", 5, 1)
float8_e4m3fn = DType("float8_e4m3fn", 6, 1)
float8_e5m2 = DType("float8_e5m2", 7, 1)
float8_e3m4 = DType("float8_e3m4", 8, 1)
float8_e8m0fnu = DType("float8_e8m0fnu", 9, 1)
int8 = DType("int8", 13, 1, "int8")
uint8 = DType("uint8", 14, 1, "uint8")
int16 = DType("int16", 15, 2, "int16")
uint16 = DType("uint16", 16, 2, "uint16")
int32 = DType("int32", 17, 4, "int32")
uint32 = DType("uint32", 18, 4, "uint32")
bool_ = DType("bool_", 14, 1, "bool")
float8_e4m3fn_x4 = DType("float8_e4m3fn_x4", 18, 4, "uint32", 6)
float8_e5m2_x4 = DType("float8_e5m2_x4", 18, 4, "uint32", 7)
float4_e2m1fn_x4 = DType("float4_e2m1fn_x4", 18, 4, "uint32", 12)
