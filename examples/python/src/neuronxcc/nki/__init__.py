"""neuronxcc.nki: kernels whose instructions return their results.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nki import Error, Kernel, tensor
from nki.simulator import Report, jit as _jit

from . import compiler, isa, language, typing


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """@nki.jit, @nki.jit(mode=...): the function becomes a kernel."""
    return _jit(function, **options)


def simulate_kernel(kernel: Kernel | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The kernel's results; tensors that it writes in place are the caller's arrays."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    return made.run(args, kwargs, in_place=True)


def _decorator(function: Kernel | Callable[..., Any] | None = None, **_: Any) -> Any:
    """@nki.baremetal, nki.benchmark(warmup=5)(kernel): the kernel itself; its report is kernel.report."""
    if function is None:
        return functools.partial(_decorator)
    return function if isinstance(function, Kernel) else Kernel(function)


class _Latency:
    """What nki.benchmark measures, of a simulated core: always the same."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def get_latency_percentile(self, percentile: float) -> float:
        """Microseconds, of any percentile."""
        return 1e6 * self.report.time_s


class BenchmarkResult:
    """kernel.benchmark_result of a kernel that has run."""

    def __init__(self, report: Report) -> None:
        self.nc_latency = _Latency(report)


setattr(Kernel, "benchmark_result", property(lambda kernel: BenchmarkResult(kernel.report)))
baremetal = benchmark = profile = trace = _decorator

__all__ = ["Error", "Kernel", "baremetal", "benchmark", "compiler", "isa", "jit", "language", "profile",
           "simulate_kernel", "tensor", "trace", "typing"]
