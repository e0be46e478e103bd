"""What the extension has (ext/core.c), for those who check types.

SPDX-License-Identifier: MIT
"""
from collections.abc import Callable, Sequence
from typing import Any, final

from typing_extensions import Self

from .formats import DType

MAX_RANK: int

class Error(RuntimeError): ...

class View:
    allocation: tuple[int, int]
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    space: int
    ndim: int
    name: str
    format: int
    owner: int
    core: Core
    element_offset: int
    partition: int | None
    blank: bool
    unwritten: int
    whole: bool
    copied: bool
    @property
    def base(self) -> Self: ...
    def index(self, key: Any) -> Self: ...  # NotImplemented for what ints, slices, None and ... do not say
    def pattern(self, pattern: Sequence[Sequence[int]], offset: int = 0) -> Self: ...
    def reshaped(self, shape: Sequence[int]) -> Self: ...
    def view_as(self, format: int, dtype: DType) -> Self: ...
    def strided(
        self, shape: Sequence[int], strides: Sequence[int], offset: int = 0, format: int = ..., dtype: DType = ...
    ) -> Self: ...
    def is_indirect(self) -> bool: ...
    def touched(self) -> bool: ...
    def touch(self) -> None: ...
    def sums(self) -> int: ...
    def begin_sums(self) -> None: ...
    def zeros(self) -> bool: ...  # a new tile is full of them; they are written when it is used. False: write them now
    def overwritten(self) -> bool: ...  # by a product, in full; had it such zeros?
    def frombytes(self, data: Any) -> None: ...
    def tobytes(self) -> bytes: ...
    def into(self, data: Any) -> None: ...
    def hand(self) -> Any: ...  # a buffer of the memory itself, once; or None

class Core:
    rank_id: int
    pending: Any  # with a method materialise(), called before whatever comes next; or None
    observer: Any  # called in place of each instruction; or None
    generation: int
    traced: bool
    def __new__(
        cls,
        *,
        generation: int = 2,
        numerics: str | None = None,
        rounding: str | None = None,
        seed: int = 0,
        events: int = 0,
        no_poison: bool = False,
        no_races: bool = False,
        spill: bool = False,
        pace: str = "measured",
    ) -> Self: ...
    def barrier(self, data: Any, cores: Any, engine: int) -> None: ...
    def sendrecv(self, dst: Any, src: Any, to: int, source: int, pipe: int, by_gpsimd: bool) -> None: ...
    def collective(
        self,
        name: str,
        dsts: Any,
        srcs: Any,
        srcs1: Any,
        groups: list[list[int]] | None,
        dim: int,
        op: int,
        pairs: Any,
        channels: Any,
        counts: Any,
    ) -> Any: ...  # NotImplemented on a core that runs alone
    def ring_rank(self, iteration: int, groups: list[list[int]] | None, channel: int) -> int: ...
    def tile(
        self,
        name: str | None,
        space: int,
        format: int,
        shape: Sequence[int],
        dtype: DType,
        start: int = 0,
        byte: int = -1,
        no_poison: bool = False,
        later: bool = False,
    ) -> Any: ...  # of the registered class
    def hbm(
        self,
        name: str | None,
        format: int,
        shape: Sequence[int],
        dtype: DType,
        data: Any = None,
        poison: bool = True,
        own: bool = False,
        shared: bool = False,
    ) -> Any: ...
    def adopt(self, tensor: Any) -> Any: ...
    def report(self) -> dict[str, Any]: ...
    def tiles(self) -> set[tuple[int, int]]: ...
    def trace(self) -> str: ...
    def path(self) -> list[tuple[float, float, int, str, str, int]]: ...
    def indirect(self, data: Any, index: Any, count: int, inner: int) -> Any: ...
    def settle(self) -> None: ...
    def written(self, tensor: View) -> None: ...
    def fits(self) -> None: ...
    def result(self, tensor: View) -> None: ...
    def part(self, program: int, programs: int) -> None: ...

@final
class Cores:
    def __new__(
        cls,
        ranks: int,
        programs: int,
        *,
        generation: int = 2,
        numerics: str | None = None,
        rounding: str | None = None,
        seed: int = 0,
        events: int = 0,
        no_poison: bool = False,
        no_races: bool = False,
        spill: bool = False,
        pace: str = "measured",
    ) -> Self: ...
    def run(self, kernel: Callable[[Core], None]) -> None: ...
    def ranks(self) -> list[Core]: ...

class _Instruction:
    names: list[str]
    def __call__(self, core: Core, *fields: Any) -> None: ...
    def repeat(self, times: int, core: Core, *fields: Any) -> None: ...

instruction: dict[str, _Instruction]

def register(views: type[View]) -> None: ...
def decode(codes: Any, format: int) -> bytearray: ...
def encode(numbers: Any, format: int) -> bytearray: ...
def fills(memset: Any) -> None: ...
def inside(prefixes: tuple[str, ...]) -> None: ...
def alu(name: str) -> int: ...
def act(name: str) -> int: ...
