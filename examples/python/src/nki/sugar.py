"""What nki.language has that is made of instructions, gathered. Today's signatures have no mask, which the older ones
have before dtype: a format by position where a mask would be is one, and what follows it goes on in today's order.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import functools as _functools
import inspect as _inspect
from collections.abc import Callable as _Callable
from typing import Any as _Any, TypeVar as _TypeVar, cast as _cast

from . import arithmetic as _arithmetic, calls as _calls, draws as _draws  # noqa: F401  (calls: tensors hear what to do)
from . import moves as _moves, products as _products, reductions as _reductions
from ._numpy import np as _np
from .arithmetic import loop_reduce
from .draws import random_seed
from .formats import DType as _DType
from .moves import atomic_rmw, broadcast_to, expand_dims, static_cast, store
from .products import matmul, transpose
from .reductions import layer_norm
from .tensor import NkiTensor as _NkiTensor

_F = _TypeVar("_F", bound=_Callable[..., _Any])


def _is_format(value: object) -> bool:
    return isinstance(value, (str, _DType)) or _np is not None and (
        isinstance(value, _np.dtype) or isinstance(value, type) and issubclass(value, _np.generic))


def _today(function: _F) -> _F:
    names = list(_inspect.signature(function).parameters)
    at = names.index("mask")
    rest = [name for name in names[at:] if name != "mask"]

    @_functools.wraps(function)
    def call(*args: _Any, **options: _Any) -> _Any:
        if len(args) > at and _is_format(args[at]):
            options.update(zip(rest, args[at:]))
            args = args[:at]
        return function(*args, **options)
    return _cast(_F, call)


@_functools.wraps(_moves.gather_flattened)
def _gather_flattened(data: _NkiTensor, indices: _NkiTensor, *args: _Any, **options: _Any) -> _NkiTensor:
    """The instruction takes uint32, the function any integers."""
    kind = str(getattr(indices, "dtype", ""))
    if kind == "int32":
        indices = indices.view("uint32")  # one below 0 is beyond the data
    elif kind in ("int8", "uint8", "int16", "uint16"):
        indices = _moves.copy(indices, dtype="uint32")
    return _moves.gather_flattened(data, indices, *args, **options)


where = _today(_arithmetic.where)
dropout, rand = _today(_draws.dropout), _draws.rand
gather_flattened, load = _today(_gather_flattened), _today(_moves.load)
load_transpose2d = _today(_products.load_transpose2d)
all, any = _today(_reductions.all), _today(_reductions.any)
mean, prod, var = _today(_reductions.mean), _today(_reductions.prod), _today(_reductions.var)
rms_norm, softmax = _today(_reductions.rms_norm), _today(_reductions.softmax)

__all__ = ["all", "any", "atomic_rmw", "broadcast_to", "dropout", "expand_dims", "gather_flattened", "layer_norm",
           "load", "load_transpose2d", "loop_reduce", "matmul", "mean", "prod", "rand", "random_seed", "rms_norm",
           "softmax", "static_cast", "store", "transpose", "var", "where"]
