"""A request's arguments as arrays: what the kernel gets, and the same numbers for the reference.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtypes
from ..arrays import Given
from .schema import Malformed

_LARGEST = 1 << 31  # bytes of all arguments


def _normal(rng: np.random.Generator, shape: tuple[int, ...], _: dict[str, Any]) -> Any:
    return rng.standard_normal(shape)


def _integers(rng: np.random.Generator, shape: tuple[int, ...], said: dict[str, Any]) -> Any:
    low, high = said.get("low", 0), said.get("high", 100)
    if low >= high:
        raise Malformed(f"integers from {low} to less than {high}: there are none")
    return rng.integers(low, high, shape)


_MADE = {
    "normal": _normal,
    "uniform": lambda rng, shape, _: rng.random(shape),
    "zeros": lambda rng, shape, _: np.zeros(shape),
    "ones": lambda rng, shape, _: np.ones(shape),
    "arange": lambda rng, shape, _: np.arange(math.prod(shape)).reshape(shape),
    "integers": _integers,
    "permutation": lambda rng, shape, _: rng.permutation(math.prod(shape)).reshape(shape),
}


def _given(array: Any, dtype: str | None, place: str) -> Given:
    if dtype is None:
        dtype = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(array.dtype.name, array.dtype.name)
    name = {"bool": "bool_"}.get(dtype, dtype)
    if name not in dtypes.ALL:
        raise Malformed(f"{place}: no engine has '{dtype}'; there are {', '.join(sorted(dtypes.ALL))}")
    made = dtypes.ALL[name]
    if made.four:
        raise Malformed(f"{place}: {dtype} is made in the kernel, by quantize_mx")
    if not made.numpy:
        return Given(np.ascontiguousarray(array, np.float32), made)
    whole = np.dtype(made.numpy).kind in "iu"
    array = np.rint(array) if whole and array.dtype.kind == "f" else array
    return Given(np.ascontiguousarray(array).astype(made.numpy), made)


def _made(said: dict[str, Any], n: int) -> Given:
    place, shape = f"argument {n}", tuple(int(s) for s in said["shape"])
    if math.prod(shape) * 4 > _LARGEST:
        raise Malformed(f"{place} has {math.prod(shape)} elements; {_LARGEST // 4} are the most")
    dtype = said.get("dtype", "float32")
    whole = "int" in dtype or "bool" in dtype
    make = _MADE[said.get("distribution", "integers" if whole else "normal")]
    array = make(np.random.default_rng(said.get("seed", n)), shape, said)
    if "scale" in said or "offset" in said:
        array = array * said.get("scale", 1) + said.get("offset", 0)
    return _given(np.asarray(array), dtype, place)


def _read(said: dict[str, Any], n: int) -> Given:
    try:
        array = np.load(said["npy"], mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as trouble:
        raise Malformed(f"argument {n}: {said['npy']!r} is no .npy file ({trouble})") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" or array.nbytes > _LARGEST:
        raise Malformed(f"argument {n}: {said['npy']!r} is no array of numbers of at most {_LARGEST} bytes")
    return _given(array, said.get("dtype"), f"argument {n}")


def made(arguments: list[Any]) -> list[Any]:
    """Numbers, texts and lists as they are, arrays as Given."""
    def one(said: Any, n: int) -> Any:
        if isinstance(said, list):
            return [one(item, n) for item in said]
        if not isinstance(said, dict):
            return said
        return _made(said, n) if "shape" in said else _read(said, n)
    return [one(said, n) for n, said in enumerate(arguments)]


def packed(value: Any) -> Any:
    """Arrays as (codes, name of the format), to go through a pipe."""
    if isinstance(value, list):
        return [packed(v) for v in value]
    return (value.array, str(value.dtype)) if isinstance(value, Given) else value


def unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [unpacked(v) for v in value]
    return Given(*value) if isinstance(value, tuple) else value


def for_reference(value: Any, wide: bool) -> Any:
    """The same numbers: wide, in binary64 (integers in 64 bits), so that a reference need not round; or in the
    argument's own format, float32 where NumPy lacks it."""
    if isinstance(value, list):
        return [for_reference(v, wide) for v in value]
    if not isinstance(value, Given):
        return value
    numbers = np.array(value.numpy())
    if not wide or numbers.dtype.kind == "b":
        return numbers
    return numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64)


def formats(value: Any) -> list[str]:
    """The formats of all arrays."""
    if isinstance(value, list):
        return [name for v in value for name in formats(v)]
    return [str(value.dtype)] if isinstance(value, Given) else []
