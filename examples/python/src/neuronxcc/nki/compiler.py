"""neuronxcc.nki.compiler: decorators, and memory by address: buffer=sbuf.alloc(function), sbuf.mod_alloc(base_addr=0).
Tiles of a tensor with blocks lie where the function says. One that comes to lie where another was takes its place, as
on the machine: the other shows what is written there then.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

_BANK_BYTES = 2048


def _same(function: Callable[..., Any] | None = None, **_: Any) -> Any:
    return function if function is not None else lambda f: f


skip_middle_end_transformations = enable_stack_allocator = force_auto_alloc = _same


def _modulo(base: int, tiles: Sequence[int], scale: int) -> Callable[[Sequence[int]], int]:
    """Numbers of a block to a place: each modulo the number of tiles along its axis, the last one fastest."""
    def place(block: Sequence[int]) -> int:
        counts = tuple(tiles) or (1,) * len(block)
        at, step = base, scale
        for axis in reversed(range(len(counts))):
            if axis < len(block):
                at += block[axis] % counts[axis] * step
            step *= counts[axis]
        return at
    return place


class _Buffer:
    """A memory, or one whose function places the tiles of a tensor."""

    def __init__(self, name: str, function: Callable[..., Any] | None = None) -> None:
        self.buffer_name, self.function = name, function

    def alloc(self, func: Callable[..., Any]) -> _Buffer:
        """func(block, partitions, bytes) -> (first partition, byte) in SBUF, (bank, first partition, byte) in PSUM."""
        return _Buffer(self.buffer_name, func)

    def mod_alloc(self, *, base_addr: int = 0, base_partition: int = 0, base_bank: int = 0,
                  num_par_tiles: Sequence[int] = (), num_free_tiles: Sequence[int] = (),
                  num_bank_tiles: Sequence[int] = ()) -> _Buffer:
        """Tiles in turn: so many along partitions, bytes and banks, and from the first place on again."""
        def place(block: Sequence[int], partitions: int, size: int) -> tuple[int, ...]:
            at = (_modulo(base_partition, num_par_tiles, partitions)(block),
                  _modulo(base_addr, num_free_tiles, size)(block))
            return at if self.buffer_name == "sbuf" else (_modulo(base_bank, num_bank_tiles, 1)(block),) + at
        return self.alloc(place)

    def auto_alloc(self) -> _Buffer:
        """Wherever there is room."""
        return _Buffer(self.buffer_name)

    def address(self, block: Sequence[int], partitions: int, size: int) -> tuple[int, int] | None:
        """(first partition, byte in each partition) of a tile; None: wherever there is room."""
        if self.function is None:
            return None
        *bank, partition, byte = (int(n) for n in self.function(tuple(block), int(partitions), int(size)))
        return partition, byte + sum(bank) * _BANK_BYTES


sbuf, psum = _Buffer("sbuf"), _Buffer("psum")
tensor_buffers = contextlib.nullcontext


def no_reorder() -> None:
    return None


def under_dynamic_control(*_: Any, **__: Any) -> None:
    return None
