#!/usr/bin/env python3
"""Runs the kernels of checkouts of nki-samples and nki-library, unmodified, and prints a table of what they did.

    python3 tests/nki/nki_kernels.py --samples ../nki-samples --library ../nki-library

Each kernel runs on a simulated core (nki.simulate) beside its reference: the checkout's own where it is NumPy, else one
in NumPy that says the same (the tables beside this file). `python3 examples/python/nki_build.py` first. Prints per kernel whether it runs, the largest error beside what is allowed,
the time that the core took, and why not. Modules that the files import and the kernels do not use (torch, pytest, ...)
are stand-ins here, which do nothing. Status: 0 if every kernel that runs is equal, 1 if one differs, 2 for bad options.

SPDX-License-Identifier: MIT
"""
import argparse
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.util
import sys
import time
import types
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parents[1] / "examples/python/src")]

import numpy as np  # noqa: E402
import nki  # noqa: E402
from case import call_of  # noqa: E402

UNUSED = ("nkipy", "qiskit", "tqdm", "torch", "torch_xla", "torch_neuronx", "pytest", "jax", "scipy", "ml_dtypes",
          "jax_neuronx", "neuronx_distributed", "neuronx_distributed_inference",
          "transformers")


class _Anything:
    """Stands for whatever a module has that no kernel uses."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __iter__(self):
        return iter(())

    def __mro_entries__(self, bases):
        return ()


class _StandIn(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _Anything()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that are not installed and are among UNUSED."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in UNUSED:
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec):
        return _StandIn(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.append(_Finder())  # after the real ones


def module_of(root, file):
    """A file of a checkout as a module; those of a package by their package's name."""
    path = root / file
    parts = list(Path(file).with_suffix("").parts)
    for at in range(len(parts)):
        if (root.joinpath(*parts[:at + 1]) / "__init__.py").exists() and not parts[at].endswith("_src"):
            base = str(root.joinpath(*parts[:at]))
            if base not in sys.path:
                sys.path.insert(0, base)
            return importlib.import_module(".".join(parts[at:]))
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = path.stem
    if name in sys.modules and getattr(sys.modules[name], "__file__", "") == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def kernel_of(case, module):
    if callable(case.function):
        return case.function(module)
    found = module
    for part in case.function.split("."):
        found = getattr(found, part)
    return found


def reference_of(case, root, module):
    if not isinstance(case.reference, str):
        return case.reference
    file, _, name = case.reference.rpartition(":")
    return getattr(module_of(root, file) if file else module, name)


def listed(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def compare(case, got, want):
    """(largest error, its share of what is allowed), or raises."""
    got, want = listed(case.outputs(got) if case.outputs else got), listed(want)
    largest, share = 0.0, 0.0
    if len(got) < len(want):
        raise AssertionError(f"{len(got)} results, {len(want)} expected")
    for g, w in zip(got, want):
        if w is None:
            continue
        g, w = np.asarray(g, np.float64), np.asarray(w, np.float64)
        if g.shape != w.shape:
            raise AssertionError(f"shape {g.shape}, expected {w.shape}")
        if not np.array_equal(np.isnan(g), np.isnan(w)):
            raise AssertionError("NaN in different places")
        with np.errstate(invalid="ignore"):
            error = np.where(g == w, 0, abs(g - w))
            allowed = case.atol + case.rtol * abs(w)
            beyond = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
        largest = max(largest, float(np.nanmax(error, initial=0)))
        share = max(share, float(np.nanmax(beyond, initial=0)))
    return largest, share


def run(case, root):
    """A row: name, "equal" / "differs" / "runs" / "fails" / "needs", text."""
    if case.needs:
        return "needs", case.needs, ""
    rng = np.random.default_rng(int(hashlib.sha256(case.name.encode()).hexdigest()[:8], 16))
    try:
        module = module_of(root, case.file)
        kernel = kernel_of(case, module)
        call = call_of(case.inputs(rng))
        kernel = kernel if case.grid is None else kernel[case.grid]
        if isinstance(kernel, nki.Kernel):
            simulated = nki.simulate(kernel, generation=case.generation, no_poison=case.no_poison,
                                     no_races=case.no_races)
        else:
            simulated = kernel
        with contextlib.redirect_stdout(sys.stderr):  # kernels' own logs
            result = simulated(*call.args, **call.kwargs)
        report = getattr(simulated, "report", None) or nki.last_report()
        took = f"{report.time_s * 1e6:.1f} us" if report else ""
    except Exception as trouble:  # whatever a kernel does is a row of the table
        return "fails", f"{type(trouble).__name__}: {trouble}".replace("\n", " ").replace("|", "/")[:200], ""
    reference = reference_of(case, root, module)
    if reference is None:
        return "runs", case.note, took
    try:
        largest, share = compare(case, result, reference(*call.args, **call.kwargs))
    except AssertionError as trouble:
        return "differs", str(trouble), took
    text = f"{largest:.2g}, {100 * share:.0f} % of what is allowed" if largest else "every bit"
    return ("equal" if share <= 1 else "differs"), text, took


def table(name, cases, root, only):
    counts = {"equal": 0, "differs": 0, "runs": 0, "fails": 0, "needs": 0}
    print(f"\n## {name}\n\n| kernel | Trainium | runs | equal | largest error, or why not | simulated time |\n"
          "|---|---|---|---|---|---|")
    for case in cases:
        if only and only not in case.name:
            continue
        begun = time.time()
        what, text, took = run(case, root)
        counts[what] += 1
        runs = {"fails": "no", "needs": "-"}.get(what, "yes")
        equal = {"equal": "yes", "differs": "**no**"}.get(what, "-")
        note = f" ({case.note})" if case.note and what != "runs" else ""
        print(f"| {case.name} | {case.generation} | {runs} | {equal} | {text}{note} | {took} |", flush=True)
        if time.time() - begun > 60:
            print(f"{case.name} took {time.time() - begun:.0f} s here", file=sys.stderr)
    ran = counts["equal"] + counts["differs"] + counts["runs"]
    could = ran + counts["fails"]
    print(f"\n{name}: {ran} of {could} kernels run, {counts['equal']} equal to their references, "
          f"{counts['differs']} not; {counts['needs']} more need what only the vendor's compiler has.", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=Path, help="a checkout of aws-neuron/nki-samples")
    parser.add_argument("--library", type=Path, help="a checkout of aws-neuron/nki-library")
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose names contain it")
    options = parser.parse_args()
    if not options.samples and not options.library:
        parser.error("give a checkout: --samples PATH, --library PATH, or both")
    bad = 0
    for name, root in (("samples", options.samples), ("library", options.library)):
        if root is None:
            continue
        if not root.is_dir():
            parser.error(f"--{name}: '{root}' is no directory")
        counts = table(f"nki-{name}", importlib.import_module(name).CASES, root.resolve(), options.only)
        bad += counts["differs"] + counts["fails"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
