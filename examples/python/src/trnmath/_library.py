"""The shared object: where it is, the structs of trnmath_flat.h, and one way to call its functions.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes as C
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable

I64 = C.c_int64
Rounding = Literal["nearest_even", "stochastic", "toward_zero", "toward_positive", "toward_negative", "to_odd"]


class Error(ValueError):
    """One sentence that says what is wrong; .status is trnmath's number for it, 0 if it was found before any call."""

    def __init__(self, text: str, status: int = 0) -> None:  # names in it do not steer a terminal
        super().__init__("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))
        self.status = status


# ---- trnmath_flat.h ----

class View(C.Structure):
    _fields_ = [("data", C.c_void_p), ("format", I64), ("rank", I64), ("shape", I64 * 6), ("stride", I64 * 6)]


class Common(TypedDict, total=False):
    """What many functions take beside their own arguments."""
    numerics: str | None
    rounding: Rounding | None
    seed: int
    stream: int
    sr_bits: int
    generation: Literal[0, 1, 2, 3]
    saturate: bool
    accumulate: bool
    double_row: bool


class _Options(C.Structure):
    _fields_ = [("numerics", C.c_char_p), ("rounding", C.c_char_p), ("seed", C.c_uint64), ("stream", C.c_uint64),
                ("sr_bits", I64), ("generation", I64), ("saturate", I64), ("accumulate", I64), ("double_row", I64)]


class Ask(C.Structure):
    _fields_ = [("system", C.c_char_p), ("op", C.c_char_p), ("algorithm", C.c_char_p), ("wire", C.c_char_p),
                ("chips", C.POINTER(C.c_int32)), ("count", I64), ("ranks_per_chip", I64), ("bytes", I64)]


class Answer(C.Structure):
    _fields_ = [("time_s", C.c_double), ("lower_bound_s", C.c_double), ("latency_s", C.c_double),
                ("bytes_per_s", C.c_double), ("bus_bytes_per_s", C.c_double), ("steps", I64),
                ("algorithm", C.c_char * 32), ("bottleneck", C.c_char * 64)]


# ---- the shared object ----

def _open() -> C.CDLL:
    beside = Path(__file__).resolve().parent / "libtrnmath_flat.so"
    named = os.environ.get("TRNMATH_LIBRARY")
    why: object = None
    for path in [named] if named else [str(beside)] * beside.exists() + ["libtrnmath_flat.so.0.3", beside.name]:
        try:
            return C.CDLL(path)  # calls release the interpreter's lock
        except OSError as trouble:
            why = trouble
    raise ImportError(f"libtrnmath_flat.so cannot be loaded ({why}); the module's text says how to build it")


_lib = _open()
_lib.trnmath_version.restype = _lib.trnmath_isa.restype = _lib.trnmath_format_name.restype = C.c_char_p
_lib.trnmath_format.restype = _lib.trnmath_format_bytes.restype = I64
_lib.trnmath_format_name.argtypes = [I64]
_lib.trnmath_format_bytes.argtypes = [I64]
__version__: str = _lib.trnmath_version().decode()


def isa() -> str:
    """The instruction set that the kernels use here ("avx512", "avx2", "neon", "portable"); results do not depend on
    it."""
    return str(_lib.trnmath_isa().decode())


def call(name: str, *args: Any) -> None:
    """trnmath_<name>(args..., why); Error with its sentence when it fails."""
    why = C.create_string_buffer(256)
    function: Callable[..., int] = getattr(_lib, "trnmath_" + name)
    status = function(*args, why)
    if status:
        raise Error(why.value.decode(errors="replace"), status)


def format_number(name: object) -> int:
    """trnmath's number of a format: its name in any spelling, or a dtype."""
    number = int(_lib.trnmath_format(str(getattr(name, "__name__", name)).encode()))
    if not number:
        raise Error(f"{name!r} is no format of trnmath")
    return number


def known_format(name: str) -> bool:
    return bool(_lib.trnmath_format(name.encode()))


def format_name(number: int) -> str:
    return str(_lib.trnmath_format_name(number).decode())


def format_bytes(number: int) -> int:
    return int(_lib.trnmath_format_bytes(number))


# ---- arguments ----

def text(value: object) -> bytes | None:
    """What a char pointer gets. A zero within would end it early."""
    if value is None:
        return None
    if "\0" in str(value):
        raise Error(f"{str(value)!r} has a zero byte")
    return str(value).encode()


def whole(what: str, value: Any) -> int:
    """An integer that fits 64 bits: ctypes would cut what is larger."""
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        raise Error(f"{what}: expected a whole number, not {type(value).__name__}") from None
    if not -2**63 <= number < 2**63:
        raise Error(f"{what}: {number} does not fit 64 bits")
    return int(number)


def real(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Error(f"{what}: expected a number, not {type(value).__name__}") from None


def listed(what: str, value: Any) -> list[Any]:
    if not isinstance(value, (str, bytes, dict)):
        try:
            return list(value)
        except TypeError:
            pass
    raise Error(f"{what}: expected a list, not {type(value).__name__}")


def _bits(what: str, value: Any) -> int:
    """64 bits of a seed: one that is too large or negative is refused, not cut."""
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        raise Error(f"{what}: expected a whole number, not {type(value).__name__}") from None
    if not 0 <= number < 2**64:
        raise Error(f"{what}: {number} is not 0 to 2^64 - 1")
    return number


def options(numerics: str | None = None, rounding: str | None = None, seed: int = 0, stream: int = 0, sr_bits: int = 0,
            generation: int = 0, saturate: bool = False, accumulate: bool = False, double_row: bool = False) -> Any:
    return C.byref(_Options(text(numerics), text(rounding), _bits("seed", seed), _bits("stream", stream),
                            whole("sr_bits", sr_bits), whole("generation", generation), bool(saturate),
                            bool(accumulate), bool(double_row)))


# ---- tables ----

_KINDS: dict[str, Callable[[str], Any]] = {"text": str, "integer": int, "number": float, "flag": "1".__eq__}
ROOM = 1 << 18  # enough for each table


def sheet(name: str, *args: Any, room: int = ROOM) -> list[str]:
    """The lines that trnmath_<name>(args..., lines, room, why) writes."""
    lines = C.create_string_buffer(room)
    call(name, *args, lines, C.c_size_t(room))
    return lines.value.decode().splitlines()


def rows(lines: list[str]) -> list[dict[str, Any]]:
    """A table's lines as a dict for each row. "a/b" is b in a dict a; an empty cell is None, or "" of a text."""
    head = [column.rsplit(":", 1) for column in lines[0].split("\t")]
    found = []
    for line in lines[1:]:
        row: dict[str, Any] = {}
        for (name, kind), cell in zip(head, line.split("\t")):
            group, _, part = name.rpartition("/")
            place = row.setdefault(group, {}) if group else row
            place[part] = _KINDS[kind](cell) if cell or kind == "text" else None
        found.append(row)
    return found


def table(name: str, of: str | None = None) -> list[dict[str, Any]]:
    """One of trnmath_table's."""
    return rows(sheet("table", text(name), text(of)))
