"""Arrays on their way in and out: NumPy's, ml_dtypes', anything with a buffer.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import _core, dtypes, formats
from ._numpy import np
from .formats import DType

if TYPE_CHECKING:
    from numpy.typing import NDArray

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

CODES = {1: "uint8", 2: "uint16", 4: "uint32"}
_LETTERS = {"f": "float32", "e": "float16", "b": "int8", "B": "uint8", "c": "uint8", "h": "int16", "H": "uint16",
            "i": "int32", "I": "uint32", "?": "bool_"}
_NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32"}
_NUMBERS: dict[DType, Any] = {d: None for d in dtypes.ALL.values() if not d.numpy and not d.four}


class _Key:
    """A key of NumPy's table that finds one of nki.language's formats, and not its name as anybody's text."""

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __eq__(self, other: object) -> bool:
        return other is self.dtype or (isinstance(other, _Key) and other.dtype is self.dtype)


if np is not None and ml_dtypes is None:
    # x.astype(nl.bfloat16) without ml_dtypes: float32 that says what it is to become; given() rounds it.
    _table: Any = np.sctypeDict
    for _dtype in _NUMBERS:
        _wide: Any = np.dtype
        _NUMBERS[_dtype] = _table.setdefault(_Key(_dtype), _wide("float32", metadata={"nki": str(_dtype)}))


class Given:
    """An array of codes and the format that they are of: nki.tensor(array, dtype)."""

    array: Any  # NumPy's; without it a memoryview

    def __init__(self, array: Any, dtype: object) -> None:
        self.dtype = dtypes.of(dtype)
        self.array = _codes(array, self.dtype) if np is not None else memoryview(array)
        self.shape: tuple[int, ...] = tuple(self.array.shape)

    def numpy(self) -> Any:
        """Its numbers; of formats that NumPy lacks as float32, which holds them exactly."""
        if self.dtype.numpy:
            return self.array
        return np.frombuffer(_core.decode(self.array.tobytes(), self.dtype.format), np.float32).reshape(self.shape)


def _codes(array: Any, dtype: DType) -> NDArray[Any]:
    """The codes of this format, of an array of them, of its own dtype, or of numbers (which are rounded)."""
    whole = np.asarray(array)
    array = np.ascontiguousarray(whole).reshape(whole.shape)
    if array.dtype.name == (dtype.numpy or str(dtype)):
        return array.view(dtype.numpy or CODES[dtype.itemsize])
    if array.dtype.kind in "uV" and array.itemsize == dtype.itemsize:
        return array.view(CODES[dtype.itemsize])
    if dtype.numpy:
        return array.astype(dtype.numpy)
    if dtype.four:
        raise TypeError(f"{dtype!s} takes codes, {dtype.itemsize} bytes for four elements")
    codes = _core.encode(np.ascontiguousarray(array, np.float32).reshape(-1), dtype.format)
    return np.frombuffer(codes, CODES[dtype.itemsize]).reshape(array.shape)


def given(value: Any) -> Given | None:
    """A kernel's argument as an array of codes with its format; None if it is no array. Formats of 64 bits become those
    of 32; integers have to fit."""
    if isinstance(value, Given):
        return value
    if np is not None and isinstance(value, np.ndarray):
        narrow = narrowed(value)
        return Given(_narrow(value, narrow) if narrow else value, narrow or formats._named(value.dtype))
    if is_torch(value):
        return _torch(value)
    if hasattr(value, "numpy") and hasattr(value, "dtype") and hasattr(value, "shape"):  # jax's, tensorflow's
        return given(np.asarray(value.numpy()))
    if isinstance(value, memoryview) or type(value).__name__ == "array":
        view = memoryview(value)
        if view.format not in _LETTERS:
            raise TypeError(f"a buffer of '{view.format}' has no format of nki.language; nki.tensor(buffer, dtype) has")
        return Given(np.asarray(view) if np is not None else view, _LETTERS[view.format])
    return None


def narrowed(value: Any) -> str | None:
    """The format of 32 bits that an array of 64 becomes; None: it has no such format."""
    return _NARROW.get(value.dtype.name) if np is not None and isinstance(value, np.ndarray) else None


def _narrow(value: NDArray[Any], to: str) -> NDArray[Any]:
    if to != "float32" and value.size:
        most = np.iinfo(to)
        for number in (value.min(), value.max()):
            if not most.min <= number <= most.max:
                raise _core.Error(f"an array of {value.dtype.name} holds {number}, which {to} does not")
    return value.astype(to)


def is_torch(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def _torch(value: Any) -> Given | None:
    """torch's tensor; formats that NumPy lacks as their codes."""
    value = value.detach().cpu()
    name = formats._named(value.dtype)
    lacks = name in dtypes.ALL and not dtypes.ALL[name].numpy
    if not lacks:
        return given(value.numpy())
    torch = sys.modules["torch"]
    codes = value.contiguous().view({1: torch.uint8, 2: torch.int16}[dtypes.ALL[name].itemsize]).numpy()
    return Given(codes.view(CODES[codes.itemsize]), name)


def as_torch(value: Any) -> Any:
    """A result for somebody who gave torch's tensors."""
    torch = sys.modules["torch"]
    name = formats._named(value.dtype)
    if value.dtype.kind not in "V":
        made = torch.from_numpy(value if value.dtype.name != "uint32" else value.view("int32"))
        return made.to(getattr(torch, name)) if name in dtypes.ALL and not dtypes.ALL[name].numpy else made
    return torch.from_numpy(value.view(CODES[value.itemsize])).view(getattr(torch, name))


def out(tensor: _core.View, last: bool = False) -> Any:
    """The numbers of a tensor, in a new array of its shape. Formats that NumPy lacks: ml_dtypes' if it is there, else
    float32, which holds them exactly; x4 formats: their words. Without NumPy a memoryview of numbers or codes. last:
    nobody else asks for the tensor, whose own memory may be the array's."""
    dtype = tensor.dtype
    if np is None:
        return _view(tensor)
    codes = dtype.numpy or CODES[dtype.itemsize]
    memory = tensor.hand() if last else None
    if memory is not None:
        data = np.frombuffer(memory, codes).reshape(tensor.shape)
    else:
        data = np.empty(tensor.shape, codes)
        tensor.into(data)
    if dtype.numpy or dtype.four:
        return data
    own = getattr(ml_dtypes, str(dtype), None) if ml_dtypes else None
    if own is not None:
        return data.view(own)
    wide = np.frombuffer(_core.decode(tensor.tobytes(), dtype.format), np.float32).reshape(tensor.shape)
    return wide if _NUMBERS.get(dtype) is None else wide.view(_NUMBERS[dtype])


def _view(tensor: _core.View) -> memoryview:
    letters = {name: letter for letter, name in reversed(_LETTERS.items())}
    letter = letters.get(str(tensor.dtype)) or letters[CODES[tensor.dtype.itemsize]]
    return memoryview(bytearray(tensor.tobytes())).cast(letter, tensor.shape)


def back(value: Any, was: Given, now: bytes) -> None:
    """What a kernel has left in the copy of an argument, into the caller's own, if it is another than what was given:
    NumPy's array, torch's tensor, nki.tensor(...), a buffer; in its own format, where that has 64 bits."""
    if was.array.tobytes() == now:
        return
    if np is None or isinstance(value, memoryview) or type(value).__name__ == "array":
        view = memoryview(value.array if isinstance(value, Given) else value)
        if not view.readonly:
            view.cast("B")[:] = now
        return
    codes = np.frombuffer(now, was.array.dtype).reshape(was.shape)
    if isinstance(value, Given):
        value.array = codes
        return
    numbers = codes if was.dtype.numpy else np.frombuffer(_core.decode(now, was.dtype.format), np.float32)
    if is_torch(value):
        value.detach().copy_(sys.modules["torch"].from_numpy(numbers.reshape(was.shape).copy()))
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        own = not was.dtype.numpy and value.itemsize == codes.itemsize  # ml_dtypes' formats
        value[...] = codes.view(value.dtype) if own else numbers.reshape(was.shape)
