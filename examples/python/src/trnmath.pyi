"""What trnmath.py has, for those who check types. tests/cli/lib/check_stub.py holds the two against each other.

SPDX-License-Identifier: MIT
"""
from collections.abc import Sequence
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import Unpack

_Rounding = Literal["nearest_even", "stochastic", "toward_zero", "toward_positive", "toward_negative", "to_odd"]
_Array = NDArray[Any] | tuple[NDArray[Any], str]
_Format = str | DTypeLike
_Out = TypeVar("_Out", bound=list[Any])

class _Common(TypedDict, total=False):
    numerics: str | None
    rounding: _Rounding | None
    seed: int
    stream: int
    sr_bits: int
    generation: Literal[0, 1, 2, 3]
    saturate: bool
    accumulate: bool
    double_row: bool

class _Cost(TypedDict):
    time_s: float
    lower_bound_s: float
    latency_s: float
    bytes_per_s: float
    bus_bytes_per_s: float
    steps: int
    algorithm: str
    bottleneck: str

class _Redistribution(TypedDict):
    time_s: float
    lower_bound_s: float
    steps: list[str]

__version__: str

class Error(ValueError):
    status: int
    def __init__(self, text: str, status: int = 0) -> None: ...

def isa() -> str: ...
def convert(
    x: _Array, to: _Format | None = None, out: _Array | None = None, **options: Unpack[_Common]
) -> NDArray[Any]: ...
def matmul(
    a: _Array,
    b: _Array,
    out: _Array | None = None,
    to: _Format | None = None,
    a_scale: _Array | None = None,
    b_scale: _Array | None = None,
    **options: Unpack[_Common],
) -> NDArray[Any]: ...
def tolerance(
    a: _Array,
    b: _Array,
    out: _Array | None = None,
    to: _Format | None = None,
    a_scale: _Array | None = None,
    b_scale: _Array | None = None,
    **options: Unpack[_Common],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
def activation(
    x: _Array,
    function: str,
    out: _Array | None = None,
    to: _Format | None = None,
    scale: float = 1.0,
    bias: float = 0.0,
    **options: Unpack[_Common],
) -> NDArray[Any]: ...
def mx_quantize(
    x: _Array,
    to: _Format = "float8_e4m3fn",
    axis: int = -1,
    rule: Literal["neuron", "ocp_floor", "round_up", "even", "ceil"] = "neuron",
    out: _Array | None = None,
    out_scale: _Array | None = None,
    **options: Unpack[_Common],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
def mx_dequantize(
    codes: _Array, scales: _Array, to: _Format | None = None, axis: int = -1, out: _Array | None = None
) -> NDArray[Any]: ...
def collective_cost(
    op: str,
    nbytes: int,
    system: str = "trn2.48xlarge",
    algorithm: str | None = None,
    chips: int | Sequence[int] | None = None,
    ranks_per_chip: int = 1,
) -> _Cost: ...
def collective(
    op: str,
    sources: Sequence[_Array],
    out: _Out,
    system: str = "trn2.48xlarge",
    algorithm: str | None = None,
    chips: int | Sequence[int] | None = None,
    ranks_per_chip: int = 1,
    wire: str | None = None,
    **options: Unpack[_Common],
) -> _Out: ...
def redistribute_cost(
    shape: Sequence[int],
    source: str,
    target: str,
    mesh: str,
    system: str = "trn2.48xlarge",
    format: str = "bfloat16",
) -> _Redistribution: ...
def explain(numerics: str = "") -> list[str]: ...
