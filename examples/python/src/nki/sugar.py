"""What nki.language has that is made of instructions, gathered.

SPDX-License-Identifier: MIT
"""
from . import calls as _calls  # noqa: F401  (tensors and operators hear what they do)
from .arithmetic import loop_reduce, where
from .draws import dropout, rand, random_seed
from .moves import atomic_rmw, broadcast_to, expand_dims, gather_flattened, load, static_cast, store
from .products import load_transpose2d, matmul, transpose
from .reductions import all, any, layer_norm, mean, prod, rms_norm, softmax, var

__all__ = ["all", "any", "atomic_rmw", "broadcast_to", "dropout", "expand_dims", "gather_flattened", "layer_norm",
           "load", "load_transpose2d", "loop_reduce", "matmul", "mean", "prod", "rand", "random_seed", "rms_norm",
           "softmax", "static_cast", "store", "transpose", "var", "where"]
