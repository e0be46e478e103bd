"""Array arguments: which memory, which format, which strides; and arrays for results.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes as C
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._dlpack import borrowed
from ._library import Error, View, format_bytes, format_name, format_number, known_format

if TYPE_CHECKING:
    from collections.abc import Sequence

class SupportsDLPack(Protocol):
    """What goes in by DLPack."""

    def __dlpack__(self) -> Any:
        ...

    def __dlpack_device__(self) -> tuple[Any, Any]:
        ...


Array = Union[NDArray[Any], tuple[Any, str], SupportsDLPack]  # the pair: (array, "format")
Format = Union[str, DTypeLike]

_NATIVE = {"float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32"}


class Operand(NamedTuple):
    """An array, and the name of the format that its caller gave, if any."""
    array: NDArray[Any]
    name: str | None


def operand(what: str, argument: Array) -> Operand:
    """The NumPy array over an argument's own memory."""
    given: Any = argument
    array, name = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        array, own = borrowed(what, array)
        name = name or own
    if not isinstance(array, np.ndarray):
        raise Error(f"{what}: expected a NumPy array or a pair (array, \"format\"), not {type(array).__name__}")
    return Operand(array, name)


def shape_of(x: Operand) -> tuple[int, ...]:
    return x.array.shape


def view(what: str, x: Operand | None, write: bool = False) -> View | None:
    """The view that C sees, of the array's own memory; or the reason why there is none."""
    if x is None:
        return None
    array, name = x
    own = array.dtype.name
    if name is None and not known_format(own):
        raise Error(f"{what}: {own} is no format of trnmath; convert it first, for example with .astype(numpy.float32)")
    number = format_number(name or own)
    spelled, size = format_name(number), format_bytes(number)
    if array.itemsize != size:
        bits = 8 * array.itemsize
        raise Error(f"{what}: elements of {own} have {bits} bits, those of {spelled} are stored in {8 * size}")
    if array.dtype.kind not in "uV" and own != spelled and (own, spelled) != ("float32", "tfloat32"):
        raise Error(f"{what}: an array of {own} holds no codes of {spelled}; pass them as uint{8 * size}")
    if not array.dtype.isnative:
        raise Error(f"{what}: its bytes are in the other order, which would need a copy")
    if write and not array.flags.writeable:
        raise Error(f"{what}: the array is read-only")
    if array.ndim > 6:
        raise Error(f"{what}: it has {array.ndim} axes, at most 6 are possible")
    return _strided(what, array if array.ndim else array.reshape(1), number)


def _strided(what: str, array: NDArray[Any], number: int) -> View:
    result = View(array.ctypes.data, number, array.ndim)
    result.shape[:array.ndim] = array.shape
    if array.flags.c_contiguous:
        return result  # strides 0: packed rows
    if any(step % array.itemsize or step < 0 for size, step in zip(array.shape, array.strides) if size > 1):
        raise Error(f"{what}: strides {array.strides} are negative or no whole elements, which would need a copy")
    steps = [step // array.itemsize if size > 1 else 1 for size, step in zip(array.shape, array.strides)]
    if not any(steps):
        raise Error(f"{what}: one element that stands for all of {array.shape} would need a copy along some axis")
    result.stride[:array.ndim] = steps
    return result


def at(what: str, x: Operand | None, write: bool = False) -> Any:
    """A pointer to the view; null where there is no array."""
    found = view(what, x, write)
    return None if found is None else C.byref(found)


def optional(what: str, argument: Array | None, name: str | None = None) -> Operand | None:
    """An argument that may be missing; name: its format where it says none."""
    if argument is None:
        return None
    x = operand(what, argument)
    return x if x.name or name is None else Operand(x.array, name)


# ---- results ----

def _empty(shape: Sequence[int], to: Format) -> Operand:
    """A new array for numbers of this format."""
    number = format_number(to)
    name, bits = format_name(number), 8 * format_bytes(number)
    try:
        own = None if isinstance(to, str) else np.dtype(to)
    except TypeError:  # somebody else's object that has a format's name
        own = None
    if own is not None and own.name == name:
        return Operand(np.empty(shape, own), name)
    dtype = name if name in _NATIVE else "float32" if name == "tfloat32" else f"uint{bits}"
    return Operand(np.empty(shape, dtype), name)


def result(out: Array | None, to: Format | None, shape: Sequence[int], default: Format | None = None,
           what: str = "out") -> tuple[Operand, Any]:
    """out, or a new array: for the call, and to return."""
    if out is None:
        if to is None and default is None:
            raise Error("to: which format? (or give out)")
        made = _empty(shape, default if to is None else to)
        return made, made.array
    x = operand(what, out)
    if to is not None and x.name is None:
        x = Operand(x.array, format_name(format_number(to)))
    return x, out[0] if isinstance(out, tuple) else out
