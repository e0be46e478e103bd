"""What the Tensor engine does: nl.matmul, nl.transpose.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import isa
from .constants import engine as _engine, matmul_perf_mode
from .arithmetic import FLOATS
from .formats import DType
from .index import Scattered
from .masks import Box, Mask, bools, box_of, cut, engine_box, whole_box
from .memories import PSUM
from .moves import copy, in_sbuf, load
from .results import Emit, result
from .tensor import Format, NkiTensor
from .tiles import tile


def matmul(x: NkiTensor, y: NkiTensor, transpose_x: bool = False, mask: Mask | None = None, **_: Any) -> NkiTensor:
    """nc_matmul; x [M, K] is turned first (nc_transpose, tensor_copy) unless transpose_x says it is [K, M]. A mask is
    of the product."""
    stationary = x if transpose_x else copy(transpose(x), dtype=x.dtype)
    return product(stationary, y, box_of(mask, (free(stationary), free(y))))


def product(stationary: NkiTensor, moving: NkiTensor, box: Box | None = None, **options: Any) -> NkiTensor:
    stationary, moving = (in_sbuf(v) for v in (stationary, moving))
    rows = matmul_perf_mode(options.get("perf_mode") or "none").rows
    shape = (free(stationary) // rows, free(moving) // rows)
    box = engine_box(box, shape)

    def emit(dst: NkiTensor) -> None:
        isa.nc_matmul(*_of_product(dst, stationary, moving, box), accumulate=False, **options)

    def adds(dst: NkiTensor) -> None:
        isa.nc_matmul(*_of_product(dst, stationary, moving, box), **options)
    return result(shape, "float32", emit, PSUM, adds if box is None or box.inside is None else None, box)


def _of_product(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor,
                box: Box | None) -> tuple[NkiTensor, NkiTensor, NkiTensor]:
    return (dst, stationary, moving) if box is None else (cut(dst, box), stationary[:, box[0]], moving[:, box[1]])


def free(tensor: NkiTensor) -> int:
    return math.prod(tensor.shape[1:])


def transpose(x: NkiTensor, dtype: Format | None = None, mask: Mask | None = None,
              engine: _engine = _engine.unknown) -> NkiTensor:
    """nc_transpose: of the Tensor engine, into PSUM."""
    x, shape = in_sbuf(x), (free(x), x.shape[0])
    box = None if mask is None else box_of(bools(mask, x.shape).reshape(shape[::-1]).T, shape)
    return turned(shape, x.dtype, lambda dst: isa.nc_transpose(dst, x, engine=isa.tensor_engine), whole_box(box, shape))


def turned(shape: Sequence[int], dtype: DType, emit: Emit, box: Box | None = None) -> NkiTensor:
    """What a transpose of the Tensor engine leaves in PSUM: bits of the same format, those of 8-bit formats in the
    lower byte of 16, of which this is a view. Trainium1's PSUM holds binary32 alone."""
    if isa.get_nc_version() == isa.nc_version.gen2:
        return result(shape, "float32" if dtype in FLOATS else dtype, emit, PSUM, box=box)
    if dtype.itemsize > 1:
        return result(shape, dtype, emit, PSUM, box=box)
    wide = tile(shape, "uint16", PSUM)
    emit(wide)
    codes = wide.view(dtype)[:, ::2]
    return codes if box is None else copy(codes, mask=box)


def load_transpose2d(src: Any, mask: Mask | None = None, dtype: Format | None = None) -> NkiTensor:
    """The same with its two axes turned, 128 rows at a time: dma_copy, then nc_transpose and tensor_copy."""
    rows, columns = src.shape
    box, to = box_of(mask, (rows, columns)), dtype or src.dtype
    if rows <= 128:
        return _load_turned(src, None if box is None else box.full, dtype, to)
    made = tile((columns, rows), to)
    for first in range(0, rows, 128):
        part = slice(first, min(first + 128, rows))
        which = None if box is None else box.full[part]
        here = src.part((part, slice(None))) if isinstance(src, Scattered) else src[part]
        if which is None or which.any():
            made[:, part] = _load_turned(here, which, dtype, to)
    return made


def _load_turned(src: Any, which: Any, dtype: Format, to: Format) -> NkiTensor:
    return copy(transpose(load(src, mask=which, dtype=dtype)), mask=None if which is None else which.T, dtype=to)
