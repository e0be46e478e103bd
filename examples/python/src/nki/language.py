"""nki.language: formats, memories, tiles, loops, operators. Names and arguments are those of NKI 0.6.0.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import builtins as _builtins
import contextlib as _contextlib
import operator as _operator
from collections.abc import Callable, Sequence
from typing import Any, Union as _Union

from . import (arrays as _arrays, dtypes as _dtypes, isa as _isa, machine as _machine, memories as _memories,
               names as _names, running as _running, tiles as _tiles, turns as _turns)
from ._numpy import np as _np
from .blocks import Blocks as _Blocks
from .formats import *  # noqa: F403
from .formats import DType, float32 as fp32, float8_e4m3 as float8e4, float8_e5m2 as float8e5, uint8 as _uint8
from .functions import *  # noqa: F403
from .index import scalar as _scalar
from .masks import Mask as _Mask
from .memories import MemoryRegion
from .moves import full as _full_where
from .record import NKIObject
from .sugar import *  # noqa: F403
from .tensor import Format as _Format, NkiTensor, Number as _Number

_Shape = _Union[int, Sequence[int]]

# ---- memories ----

sbuf, psum, hbm = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.hbm
private_hbm, shared_hbm = MemoryRegion.private_hbm, MemoryRegion.shared_hbm


def buffer_of(tensor: NkiTensor) -> MemoryRegion:
    return tensor.buffer


def is_hbm(buffer: Any) -> bool:
    return _memories.space_of(buffer) == _memories.HBM


def is_psum(buffer: Any) -> bool:
    return _memories.space_of(buffer) == _memories.PSUM


def is_sbuf(buffer: Any) -> bool:
    return _memories.space_of(buffer) == _memories.SBUF


def is_on_chip(buffer: Any) -> bool:
    return not is_hbm(buffer)


class _TileSize:
    """Sizes of the core that a kernel runs on; outside of kernels of the one that it would run on."""

    pmax, psum_fmax, gemm_stationary_fmax, gemm_moving_fmax = 128, 512, 128, 512
    bn_stats_fmax, psum_min_align, sbuf_min_align = 512, 4, 1
    psum_num_banks, psum_bank_fmax, psum_bank_fmax_bytes, psum_bank_bytes = 8, 512, 2048, 2048

    @property
    def sbuf_size_bytes(self) -> int:
        """Of all partitions together."""
        core = _running.core()
        return _machine.sbuf_bytes() if core is None else int(core.report()["sbuf_bytes"])

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Of one partition."""
        return self.sbuf_size_bytes // self.pmax

    total_available_sbuf_size = sbuf_fmax_bytes

    @property
    def sbuf_fmax(self) -> int:
        """Elements of float32 in one partition."""
        return self.sbuf_fmax_bytes // 4


tile_size = _TileSize()


# ---- tiles ----

class par_dim(int):
    """The axis of a tile that lies across partitions; axes before it count tiles."""


def ndarray(shape: _Shape, dtype: _Format, buffer: Any = sbuf, name: str = "", address: Any = None, **_: Any) -> Any:
    """A tile [P, ...] of SBUF or PSUM with nothing in it, or a tensor in HBM; with axes before par_dim a Blocks."""
    if buffer is None:
        buffer = sbuf
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    blocks = next((n for n, s in enumerate(shape) if type(s) is par_dim), 0)
    if blocks and _memories.space_of(buffer) != _memories.HBM:
        return _Blocks([int(s) for s in shape[:blocks]], [int(s) for s in shape[blocks:]], _dtypes.of(dtype), buffer,
                       name, _turns.here(blocks))
    return _tiles.new(shape, dtype, buffer, name, address)


_memories.made_by(ndarray)


def zeros(shape: _Shape, dtype: _Format, buffer: Any = sbuf, name: str = "", mask: _Mask = None, **_: Any) -> Any:
    return full(shape, 0, dtype, buffer, name, mask)


def ones(shape: _Shape, dtype: _Format, buffer: Any = sbuf, name: str = "", mask: _Mask = None, **_: Any) -> Any:
    return full(shape, 1, dtype, buffer, name, mask)


def full(shape: _Shape, fill_value: _Number, dtype: _Format, buffer: Any = sbuf, name: str = "", mask: _Mask = None,
         **_: Any) -> Any:
    """A new tile, tensor or Blocks full of one number."""
    if mask is not None:
        shape = (shape,) if isinstance(shape, int) else shape
        return _full_where(shape, fill_value, dtype, mask, _memories.space_of(buffer or sbuf))
    made = ndarray(shape, dtype, buffer, name)
    if not isinstance(made, NkiTensor):
        made.fill = fill_value
    elif made.space == _memories.HBM:
        array = _arrays.Given(_np.full(shape, fill_value), dtype)
        return _running.current().hbm(name or "hbm", array.dtype.format, made.shape, array.dtype, array.array)
    else:
        _tiles.fill(made, fill_value)
    return made


def zeros_like(x: NkiTensor, dtype: _Format = None, buffer: Any = None, name: str = "") -> Any:
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(x: NkiTensor, dtype: _Format = None, buffer: Any = None, name: str = "") -> Any:
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def shared_constant(constant: Any, dtype: _Format = None, **_: Any) -> NkiTensor:
    """A tensor in HBM with these numbers: an array, or the path of a .npy file."""
    if isinstance(constant, str):
        constant = _np.load(constant)
    return _tiles.constant(_np.asarray(constant) if dtype is None else constant, dtype)


def shared_identity_matrix(n: int, dtype: _Format = _uint8, dst: NkiTensor | None = None) -> NkiTensor:
    """An identity [n, n]: a tile of SBUF (dst, or a new one)."""
    made = _tiles.constant(_np.eye(n, dtype=_np.float32), dtype, "identity")
    tile = _tiles.new((n, n), dtype, sbuf, "identity") if dst is None else dst
    _isa.dma_copy(tile, made)
    return tile


# ---- indices and loops ----

def ds(start: Any, size: Any) -> slice:
    """A slice of `size` from `start`, which may be a register or a tile of one element."""
    start = _scalar(start)
    return slice(start, start + _scalar(size))


def arange(*args: Any) -> Any:
    """A grid of indices, an array of NumPy's."""
    return _np.arange(*args)


class _Axes(tuple[Any, ...]):
    """Grids of indices, one for each axis: .p goes along partitions, .x, .y, .z along free axes."""

    p, x, y, z = (property(_operator.itemgetter(n)) for n in (0, 1, 2, 3))


class _Grid:
    def __getitem__(self, key: Any) -> Any:
        grids = _np.mgrid[key]
        return _Axes(grids) if isinstance(key, tuple) else grids


mgrid = _Grid()


def _range(start: Any, stop: Any = None, step: Any = 1, **_: Any) -> _builtins.range:
    start, stop = (0, start) if stop is None else (start, stop)
    return _builtins.range(_scalar(start), _scalar(stop), _scalar(step))


range = affine_range = sequential_range = static_range = dynamic_range = _range


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[int], Any], step: Any = 1) -> None:
    for i in _range(lower, upper, step):
        body_fun(i)


def while_loop(init: Any, body_fun: Callable[[Any], Any]) -> None:
    register = init
    while register:
        register = body_fun(register)


program_id, num_programs, program_ndim = _running.grid_id, _running.grid_size, _running.grid_rank


def no_reorder() -> _contextlib.nullcontext[None]:
    return _contextlib.nullcontext()


def device_print(print_prefix: str, tensor: Any) -> None:
    print(print_prefix, tensor.numpy() if isinstance(tensor, NkiTensor) else tensor)


_names.strict(globals())
