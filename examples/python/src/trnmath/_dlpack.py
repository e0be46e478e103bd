"""DLPack: arrays of other libraries as they lie in memory, and codes that go out with their format.

NumPy's own from_dlpack knows no bfloat16 and no FP8. Here a capsule is read by hand, versioned or not; its owner is
told when the last array over its memory is gone. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes as C
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._library import Error, format_name, format_number


# ---- dlpack.h ----

class _Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


class _Managed(C.Structure):
    _fields_ = [("tensor", _Tensor), ("context", C.c_void_p), ("deleter", C.c_void_p)]


class _Versioned(C.Structure):
    _fields_ = [("major", C.c_uint32), ("minor", C.c_uint32), ("context", C.c_void_p), ("deleter", C.c_void_p),
                ("flags", C.c_uint64), ("tensor", _Tensor)]


_CPU = (1, 3, 11)  # kDLCPU, and what lies in the host's memory for CUDA and ROCm
_READ_ONLY = 1
_CODES = {  # (code, bits): the format
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32",
    (2, 16): "float16", (2, 32): "float32", (4, 16): "bfloat16", (7, 8): "float8_e3m4", (8, 8): "float8_e4m3",
    (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2", (14, 8): "float8_e8m0fnu"
}
_TYPES = {name: key for key, name in _CODES.items()}


def _function(name: str, result: Any, *args: Any) -> Any:
    return C.PYFUNCTYPE(result, *args)((name, C.pythonapi))


_is = _function("PyCapsule_IsValid", C.c_int, C.py_object, C.c_char_p)
_pointer = _function("PyCapsule_GetPointer", C.c_void_p, C.py_object, C.c_char_p)
_rename = _function("PyCapsule_SetName", C.c_int, C.py_object, C.c_char_p)
_PLAIN, _NEW, _USED, _USED_NEW = b"dltensor", b"dltensor_versioned", b"used_dltensor", b"used_dltensor_versioned"


# ---- in ----

class _Borrowed:
    """Memory of somebody else's, for as long as an array over it lives."""

    def __init__(self, at: int, deleter: int | None, interface: dict[str, Any]) -> None:
        self._at, self._deleter = at, deleter
        self.__array_interface__ = interface

    def __del__(self, call: Any = C.PYFUNCTYPE(None, C.c_void_p)) -> None:
        if self._deleter:
            call(self._deleter)(self._at)


def _capsule(what: str, given: Any) -> Any:
    """The capsule of an object in the memory of this machine."""
    try:
        device = given.__dlpack_device__()
        if int(device[0]) not in _CPU:
            raise Error(f"{what}: it lies on another device (DLPack's kind {int(device[0])}), which would need a copy")
        try:
            return given.__dlpack__(max_version=(1, 0))
        except TypeError:  # it knows no versions
            return given.__dlpack__()
    except Error:
        raise
    except Exception as trouble:
        raise Error(f"{what}: {type(given).__name__} gives nothing by DLPack ({trouble})") from None


def _interface(what: str, t: Any, read_only: bool) -> tuple[dict[str, Any], str]:
    name = _CODES.get((t.code, t.bits)) if t.lanes == 1 else None
    if name is None:
        raise Error(f"{what}: DLPack's type {t.code} of {t.bits} bits in {t.lanes} lanes is no format of trnmath")
    if t.device_type not in _CPU or not 0 <= t.ndim <= 64:
        raise Error(f"{what}: a DLPack capsule of device kind {t.device_type} with {t.ndim} axes")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    size = t.bits // 8
    strides = tuple(t.strides[i] * size for i in range(t.ndim)) if t.strides else None
    if any(n < 0 for n in shape):
        raise Error(f"{what}: a DLPack capsule of shape {shape}")
    kind = {0: "i", 2: "f"}.get(t.code, "u")
    return {"version": 3, "shape": shape, "strides": strides, "typestr": f"<{kind}{size}" if size > 1 else f"|{kind}1",
            "data": ((t.data or 0) + t.byte_offset, read_only)}, name


def borrowed(what: str, given: Any) -> tuple[NDArray[Any], str]:
    """An array over the memory of an object with __dlpack__, and the name of its format. The object may go; its memory
    stays until the array goes."""
    capsule = _capsule(what, given)
    versioned = bool(_is(capsule, _NEW))
    if not versioned and not _is(capsule, _PLAIN):
        raise Error(f"{what}: __dlpack__ of {type(given).__name__} gives no fresh DLPack capsule")
    at = _pointer(capsule, _NEW if versioned else _PLAIN)
    managed: Any = (_Versioned if versioned else _Managed).from_address(at)
    if versioned and managed.major != 1:
        raise Error(f"{what}: a DLPack capsule of version {managed.major}, expected 1")
    interface, name = _interface(what, managed.tensor, versioned and bool(managed.flags & _READ_ONLY))
    _rename(capsule, _USED_NEW if versioned else _USED)  # from here on it is ours to free
    owner = _Borrowed(at, managed.deleter, interface)
    if 0 in interface["shape"]:  # without memory
        return np.empty(interface["shape"], interface["typestr"]), name
    try:
        return np.asarray(owner), name
    except (ValueError, TypeError, OverflowError) as trouble:
        raise Error(f"{what}: a DLPack capsule that is no array ({trouble})") from None


# ---- out ----

class Typed:
    """Codes with their format: what others take by DLPack as bfloat16 or FP8, over the same memory."""

    def __init__(self, array: NDArray[Any], name: str) -> None:
        self.array, self.format = array, name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        if dl_device is not None and tuple(dl_device) != (1, 0):
            raise BufferError("these codes lie in the memory of a CPU")
        if not copy and not self.array.flags.writeable:
            raise BufferError("these codes are read-only, which a DLPack capsule of this kind does not say")
        array = self.array.copy() if copy else self.array
        code, bits = _TYPES[self.format]
        capsule = array.view(f"uint{bits}").__dlpack__()  # NumPy's: it keeps the memory, and knows who frees it
        tensor = _Managed.from_address(_pointer(capsule, _PLAIN)).tensor
        tensor.code, tensor.bits = code, bits
        return capsule

    def __repr__(self) -> str:
        return f"<trnmath.Typed {self.format} {list(self.array.shape)}>"


def typed(codes: NDArray[Any], format: object) -> Typed:
    """Codes (unsigned integers of the format's width, any shape and strides) as an object that goes out by DLPack as
    `format`, without a copy: torch.from_dlpack(trnmath.typed(trnmath.convert(x, "bfloat16"), "bfloat16")). Functions
    of this module take it, too. Error: the width is another, or DLPack has no such type of whole bytes."""
    name = format_name(format_number(format))
    if name not in _TYPES:
        raise Error(f"DLPack has no type for arrays of {name}, a byte for each code")
    if not isinstance(codes, np.ndarray) or codes.dtype.kind not in "uifV" or not codes.dtype.isnative:
        raise Error(f"codes: expected a NumPy array of unsigned integers, not {type(codes).__name__}")
    own = codes.dtype.name
    if own != name and (codes.dtype.kind != "u" or 8 * codes.itemsize != _TYPES[name][1]):
        raise Error(f"codes: {own} holds no codes of {name}; pass them as uint{_TYPES[name][1]}")
    if any(step % codes.itemsize for step in codes.strides):
        raise Error(f"codes: strides {codes.strides} are no whole elements")
    return Typed(codes, name)
