"""neuronxcc.nki: kernels whose instructions return their results.

SPDX-License-Identifier: MIT
"""
import functools
import importlib

from nki import Error, Kernel, tensor
from nki.simulator import jit as _jit

language = importlib.import_module(".language", __name__)
isa = importlib.import_module(".isa", __name__)
typing = importlib.import_module(".typing", __name__)
compiler = importlib.import_module(".compiler", __name__)


def jit(function=None, **options):
    """@nki.jit, @nki.jit(mode=...): the function becomes a kernel."""
    return _jit(function, **options)


def simulate_kernel(kernel, *args, **kwargs):
    """The kernel's results; tensors that it writes in place are the caller's arrays."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    return made.run(args, kwargs, in_place=True)


def _decorator(function=None, **_):
    """@nki.baremetal, nki.benchmark(warmup=5)(kernel): the kernel itself; its report is kernel.report."""
    if function is None:
        return functools.partial(_decorator)
    return function if isinstance(function, Kernel) else Kernel(function)


class _Latency:
    """What nki.benchmark measures, of a simulated core: always the same."""

    def __init__(self, report):
        self.report = report

    def get_latency_percentile(self, percentile):
        """Microseconds, of any percentile."""
        return 1e6 * self.report.time_s


class BenchmarkResult:
    """kernel.benchmark_result of a kernel that has run."""

    def __init__(self, report):
        self.nc_latency = _Latency(report)


Kernel.benchmark_result = property(lambda kernel: BenchmarkResult(kernel.report))
baremetal = benchmark = profile = trace = _decorator

__all__ = ["Error", "Kernel", "baremetal", "benchmark", "compiler", "isa", "jit", "language", "profile",
           "simulate_kernel", "tensor", "trace", "typing"]
