"""nki.typing: annotations of a kernel's arguments, nt.tensor, nt.tensor[128, 512]. They say, and check, nothing.
nt.tensor[[128, 512], nl.bfloat16] is also an argument of what nki.benchmark and nki.profile time: random numbers.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

from . import arrays, dtypes
from ._numpy import np


class _Annotation(type):
    shape: tuple[int, ...] | None = None
    dtype: Any = None

    def __getitem__(cls, said: Any) -> _Annotation:
        if not (isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], (list, tuple))):
            return cls
        made = _Annotation(cls.__name__, (cls,), {})
        made.shape, made.dtype = tuple(int(n) for n in said[0]), said[1]
        return made


def numbers(argument: Any) -> Any:
    """Random ones for nt.tensor[shape, dtype], the same in each run; any other argument as it is."""
    if not isinstance(argument, _Annotation) or argument.shape is None:
        return argument
    to, draw = dtypes.of(argument.dtype), np.random.default_rng(0)
    array = draw.integers(0, 2, argument.shape) if "int" in str(to) else draw.random(argument.shape, np.float32)
    return arrays.Given(array, to)


class tensor(metaclass=_Annotation):
    pass
