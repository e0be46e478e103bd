"""Random numbers: nl.rand, nl.random_seed, nl.dropout.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import isa
from .masks import Mask, cut, engine_box, whole_box
from .moves import full, loaded
from .results import result
from .tensor import Format, NkiTensor, Operand
from .tiles import tile


def random_seed(seed: Any, mask: Mask | None = None, **_: Any) -> None:
    """memset, set_rng_seed."""
    isa.set_rng_seed(loaded(seed) if isinstance(seed, NkiTensor) else full((1, 1), seed, "uint32"))


def rand(shape: Sequence[int], dtype: Format = "float32", mask: Mask | None = None, **_: Any) -> NkiTensor:
    """Uniform in [0, 1), multiples of 2^-24: rng, tensor_scalar(right_shift, 8), tensor_scalar(multiply)."""
    bits = tile(shape, "uint32")
    isa.rng(bits)
    isa.tensor_scalar(bits, bits, "right_shift", 8)
    return result(shape, dtype, lambda dst: isa.tensor_scalar(dst, bits, "multiply", 2.0 ** -24),
                  box=whole_box(mask, shape))


def dropout(x: NkiTensor, rate: Operand, mask: Mask | None = None, dtype: Format | None = None, **_: Any) -> NkiTensor:
    """dropout: elements become 0 with this probability, the others stay as they are."""
    box = engine_box(mask, tuple(x.shape))
    return result(x.shape, dtype or x.dtype, lambda dst: isa.dropout(cut(dst, box), cut(x, box), rate), box=box)
