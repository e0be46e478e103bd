"""NKI's front door to trnmath: kernels as they are, on a simulated NeuronCore with its limits and its clock.

    import numpy as np, nki, nki.isa as nisa, nki.language as nl

    result = nki.simulate(kernel, generation=2)(x, y)

SPDX-License-Identifier: MIT
"""
import importlib
import sys

from ._core import Error
from .dtypes import DType as dtype
from .simulator import Kernel, PerRank as per_rank, jit, last_report, simulate

_isa = importlib.import_module(".isa", __name__)
sys.modules[__name__ + ".isa.constants"] = importlib.import_module(".constants", __name__)
isa, language = _isa, importlib.import_module(".language", __name__)
_isa.constants = sys.modules[__name__ + ".isa.constants"]
_isa.__path__ = []

from . import collectives  # noqa: E402,F401
from .arrays import Given as tensor  # noqa: E402  (the module of that name has been imported by now)

try:
    from .bounds import assert_close, tolerance  # noqa: E402
except ImportError:  # they need NumPy, which `import nki` does not
    pass

baremetal = benchmark = profile = trace = jit

__all__ = ["Error", "Kernel", "assert_close", "dtype", "isa", "jit", "language", "last_report", "per_rank", "simulate",
           "tensor", "tolerance"]
