"""neuronxcc.nki: kernels whose instructions return their results.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from nki import Error, Kernel, constants as choices, names, tensor
from nki.simulator import jit as _jit
from nki.timed import timed

from . import compiler, constants, isa, language, typing

# neuronxcc.nki.language.constants is a module, too, and so is that of the instructions.
sys.modules[language.__name__ + ".constants"] = constants
setattr(language, "constants", constants)
sys.modules[isa.__name__ + ".constants"] = choices
setattr(isa, "constants", choices)

# The vendor's package gives Python's logging a level above all.
logging.addLevelName(logging.CRITICAL + 10, "OFF")
setattr(logging, "OFF", getattr(logging, "OFF", logging.CRITICAL + 10))


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """@nki.jit, @nki.jit(mode=...): the function becomes a kernel."""
    return _jit(function, **options)


def simulate_kernel(kernel: Kernel | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The kernel's results; tensors that it writes in place are the caller's arrays."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    return made.run(args, kwargs, in_place=True)


baremetal = benchmark = profile = timed
trace = jit

for _module in (__name__, isa.__name__, language.__name__, compiler.__name__):
    names.told(_module)

__all__ = ["Error", "Kernel", "baremetal", "benchmark", "compiler", "isa", "jit", "language", "profile",
           "simulate_kernel", "tensor", "trace", "typing"]
