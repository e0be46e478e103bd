"""nki.baremetal, nki.benchmark, nki.profile of older releases: the kernel, which tells the model's time when it has
run. Nothing is measured, so each percentile is the same number. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from .simulator import Kernel, Report
from .typing import numbers

_NAMES = {1: "Trainium1", 2: "Trainium2", 3: "Trainium3"}


class Latency:
    """Microseconds of the model's clock, of any percentile."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def get_latency_percentile(self, percentile: float) -> float:
        return 1e6 * self.report.time_s

    def __repr__(self) -> str:
        return f"<{1e6 * self.report.time_s:.2f} us by the model, not measured>"


class BenchmarkResult:
    """kernel.benchmark_result of a kernel that has run; .nc_latency."""

    def __init__(self, report: Report) -> None:
        self.nc_latency = Latency(report)

    def __repr__(self) -> str:
        return f"<BenchmarkResult {self.nc_latency!r}>"


class Timed(Kernel):
    """A kernel whose runs write the model's time to standard error, and a timeline where a trace has a name."""

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], in_place: bool = False) -> Any:
        args, kwargs = tuple(numbers(a) for a in args), {name: numbers(a) for name, a in kwargs.items()}
        results = super().run(args, kwargs, in_place)
        report = self.report
        assert report is not None
        said = f"{self.function.__name__}: {1e6 * report.time_s:.2f} us by the model of {_NAMES[report.generation]}; " \
            "nothing was measured"
        path = self.options.get("save_trace_name")
        if path:
            path = os.path.join(self.options.get("working_directory") or "", f"{path}.json")
            report.write_trace(path)
            said += f"; a timeline for ui.perfetto.dev is in {path}"
        print(said, file=sys.stderr)
        return results

    @property
    def benchmark_result(self) -> BenchmarkResult:
        if self.report is None:
            raise AttributeError(f"{self.function.__name__} has not run yet: benchmark_result is of its last run")
        return BenchmarkResult(self.report)


def timed(function: Kernel | Callable[..., Any] | None = None, **options: Any) -> Any:
    """@nki.benchmark, nki.benchmark(warmup=5, iters=10, save_trace_name="p.ntff")(kernel)."""
    if function is None:
        return functools.partial(timed, **options)
    options = dict(function.options if isinstance(function, Kernel) else {}, **options)
    if options.get("save_trace_name"):
        options["trace"] = True
    made = Timed(function.function if isinstance(function, Kernel) else function, **options)
    made.grid = function.grid if isinstance(function, Kernel) else ()
    return made
