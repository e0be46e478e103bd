"""NKI's front door to trnmath: kernels as they are, on a simulated NeuronCore with its limits and its clock.

    import numpy as np, nki, nki.isa as nisa, nki.language as nl

    result = nki.simulate(kernel, generation=2)(x, y)

SPDX-License-Identifier: MIT
"""
import sys

from . import waits  # noqa: F401  # first: it says something to what the others load
from . import collectives, constants, isa, language, names, typing  # noqa: F401
from ._core import Error
from .arrays import Given as tensor  # the module of that name has been imported by now
from .formats import DType as dtype
from .simulator import Kernel, PerRank as per_rank, jit, last_report, simulate
from .timed import timed

# nki.isa.constants is a module, too.
sys.modules[__name__ + ".isa.constants"] = constants
setattr(isa, "constants", constants)
for _module in (__name__, isa.__name__, language.__name__, collectives.__name__, typing.__name__):
    names.told(_module)

try:
    from .bounds import assert_close, tolerance
    from .sweep import check
except ImportError:  # they need NumPy, which `import nki` does not
    pass

__version__ = "0.6.0"  # NKI's, whose names and arguments these are
baremetal = benchmark = profile = timed
trace = jit

__all__ = ["Error", "Kernel", "assert_close", "check", "dtype", "isa", "jit", "language", "last_report", "per_rank",
           "simulate", "tensor", "tolerance", "typing"]
