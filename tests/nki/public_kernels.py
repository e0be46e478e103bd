#!/usr/bin/env python3
"""Runs kernels that other people published, unmodified, as the rows of public_kernels.csv say, and prints what they
did.

    python3 tests/nki/public_kernels.py --folder DIRECTORY [--only WORD] [--jobs 2] [--seconds 600]

DIRECTORY has a checkout of each repository, at the row's commit, as DIRECTORY/OWNER+NAME. A row's `how` says where its
inputs and the right results come from: a function below, with what stands after the colon; +spill: tiles of it do not
fit unless a compiler spills or reorders loops, and may (TRNMATH_SPILL=1); +trn1, +trn3: on Trainium1, 3; +bare: its
packages import more than the kernel needs, and are not executed. Each kernel runs in a process of its own, on a
simulated core. `python3 examples/python/nki_build.py` first. Status: 0 if all are right.

SPDX-License-Identifier: MIT
"""
import argparse
import concurrent.futures
import contextlib
import csv
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import time
import types
import unittest
import warnings
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parents[1] / "examples/python/src")]

import numpy as np  # noqa: E402
from public_cases import error, near  # noqa: E402
import neuronxcc.nki  # noqa: E402
import nki  # noqa: E402
import public_cases  # noqa: E402
import public_layers  # noqa: E402
import public_more  # noqa: E402
import public_wider  # noqa: E402
import nki_kernels  # noqa: E402  # stands in for modules that files import and kernels do not use


# ---- torch, of which programs around kernels use little ----

class Tensor(np.ndarray):
    """An array that answers to the names of torch's tensors."""

    def to(self, *args, device=None, dtype=None, **_):
        wanted = [a for a in (*args, dtype) if isinstance(a, (np.dtype, type))]
        return self.astype(wanted[0]).view(Tensor) if wanted else self

    def numpy(self):
        return np.asarray(self)

    def detach(self):
        return self

    cpu = contiguous = clone = detach

    def float(self):
        return self.astype(np.float32).view(Tensor)

    def size(self, axis=None):
        return self.shape if axis is None else self.shape[axis]

    def permute(self, *axes):
        return np.transpose(np.asarray(self), axes).view(Tensor)

    def transpose(self, *axes):
        return np.swapaxes(self, *axes) if len(axes) == 2 else super().transpose(*axes)

    def expand(self, *sizes):
        front = len(sizes) - self.ndim
        return np.broadcast_to(self, [self.shape[n - front] if s < 0 else s for n, s in enumerate(sizes)]).view(Tensor)

    def unsqueeze(self, axis):
        return np.expand_dims(self, axis).view(Tensor)

    def view(self, *args, **options):
        return self.reshape(args) if args and all(isinstance(a, int) for a in args) else super().view(*args, **options)

    def type(self, dtype):
        return self.to(dtype)

    def copy_(self, other):
        self[...] = other

    def pow(self, exponent):
        return np.power(self, exponent)

    def mean(self, *axes, dim=None, keepdim=False, **options):
        return super().mean(*axes, **(options if dim is None else {"axis": dim, "keepdims": keepdim}))

    def cos(self):
        return np.cos(self)

    def sin(self):
        return np.sin(self)


Tensor.__module__ = "torch"


def tensors(value):
    if isinstance(value, (tuple, list)):
        return type(value)(tensors(v) for v in value)
    return np.asarray(value).view(Tensor) if isinstance(value, np.ndarray) else value


def as_numpy(name):
    """torch's function of a name that NumPy has, too, with `dim` as its axis."""
    function = getattr(np, {"cat": "concatenate", "bmm": "matmul"}.get(name, name))

    def call(*args, device=None, dim=None, **options):
        return tensors(function(*args, **options, **({} if dim is None else {"axis": dim})))
    return call


def stand_in_for_torch():
    torch = types.ModuleType("torch")
    torch.__path__ = []

    def made(function):
        return lambda *shape, dtype=np.float32, device=None, generator=None: tensors(np.asarray(
            function(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)).astype(dtype))
    names = {"from_numpy": tensors, "tensor": lambda v, dtype=None, **_: tensors(np.asarray(v, dtype)),
             "Tensor": Tensor, "bfloat16": np.dtype(nki.language.bfloat16),
             **{n: np.dtype(n) for n in ("float16", "float32", "float64", "int32", "int64")},
             "randn": made(lambda s: np.random.randn(*s)),
             "rand": made(lambda s: np.random.rand(*s)), "zeros": made(np.zeros), "ones": made(np.ones),
             "manual_seed": np.random.seed, "allclose": np.allclose, "device": lambda *_: "cpu",
             "rsqrt": lambda x: tensors(1 / np.sqrt(x)), "no_grad": contextlib.nullcontext, "inference_mode": contextlib.nullcontext}
    vars(torch).update(names)
    setattr(torch, "__getattr__", as_numpy)
    functional = types.ModuleType("torch.nn.functional")
    setattr(functional, "softmax", lambda x, dim: tensors(public_cases.softmax(x)))
    nn = nki_kernels._StandIn("torch.nn")
    vars(nn)["functional"], vars(torch)["nn"] = functional, nn
    sys.modules.update({nn.__name__: nn, functional.__name__: functional})
    sys.modules["torch"] = torch


# ---- files ----

# What files without imports find in the harness that they are put into.
PRELUDE = """import numpy as np, neuronxcc.nki as nki, neuronxcc.nki.isa as nisa, neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
from neuronxcc.nki.language import par_dim
"""


def module_of(path, source=None):
    """A file as a module of its own."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem.replace(".", "_"), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if source is None:
        spec.loader.exec_module(module)
    else:
        exec(compile(source, str(path), "exec"), vars(module))
    return module


def member_of(path):
    """A file as a module of its package, of which nothing else is executed but what it imports."""
    names = [path.stem]
    while (path.parent / "__init__.py").exists():
        path = path.parent
        names.insert(0, path.name)
    for n in range(1, len(names)):
        package = types.ModuleType(".".join(names[:n]))
        package.__path__ = [str(path.parent.joinpath(*names[:n]))]
        sys.modules[package.__name__] = package
    return importlib.import_module(".".join(names))


class Bare(importlib.machinery.PathFinder):
    """Packages of a folder, of which nothing is executed but the modules that somebody imports."""

    root = ""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = super().find_spec(fullname, path, target)
        origin = (spec.origin if spec else None) or ""
        if spec is None or not origin.startswith(cls.root) or not origin.endswith("__init__.py"):
            return None
        bare = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        bare.submodule_search_locations = spec.submodule_search_locations
        return bare


def found(module, entry):
    for part in entry.split("."):
        module = getattr(module, part)
    return module


# ---- where inputs and right results come from: (right?, what was found) ----

def nkibench(case, folder, what):
    """A kernel of an operator of NKIBench, beside its reference in NumPy: inputs of seed 42, relative L2."""
    reference = next((folder / "zhang677+AccelOpt/NKIBench/reference").glob(f"{what}_[A-Z]*_numpy_*.py"))
    ref = module_of(reference)
    np.random.seed(42)
    inputs = ref.get_inputs()
    got = found(module_of(folder / case["folder"] / case["file"]), case["entry"])(*ref.transform_to_nki_inputs(inputs))
    want = ref.forward(*inputs)
    got = ref.transform_nki_outputs(got, want)
    return near(tuple(got), want if isinstance(want, tuple) else (want,), 3e-5 if what == "mamba" else 2e-5)


def harness(case, folder, what):
    """A solution in a harness of its repository, which holds it against a reference of its own: test_nki."""
    root = folder / case["folder"]
    text = (root / what).read_text(encoding="utf-8")
    mark = "# SUBSTITUTE HERE"
    if mark in text:
        text = text.replace(mark, (root / case["file"]).read_text(encoding="utf-8"), 1)
    target = re.search(r"""NEURON_PLATFORM_TARGET_OVERRIDE"\] *= *"(\w+)\"""", text)
    if target or "-nki2/" in what:  # whose programs choose Trainium1, where they choose
        os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = target[1] if target else "trn1"
    module = module_of(root / what, text)
    reference = re.search(r"^ *test_result = test_nki\((\w+), *\w+\)", text, re.M)
    reference = vars(module)[reference[1] if reference else "ref"]
    return bool(module.test_nki(reference, found(module, case["entry"]))), "its harness's tolerance"


def conv2d(case, folder, what):
    """A fused convolution and max pool of a course's fourth assignment."""
    kernel = found(module_of(folder / case["folder"] / case["file"]), case["entry"])
    rng, worst = np.random.default_rng(1), 0.0
    shapes = [(128, 128, (32, 16)), (256, 256, (32, 16))] if what != "small" else [(128, 128, (10, 12))]
    for inner, outer, image in shapes:
        x = rng.random((4 if what != "one" else 1, inner, *image), np.float32)
        w, b = rng.random((outer, inner, 3, 3), np.float32), rng.random(outer, np.float32)
        for pool in (1,) if what == "nopool" else (1, 2):
            worst = max(worst, error(kernel(x, w, b, pool_size=pool), convolved(x, w, b, pool)))
    return worst < 1e-5, f"{worst:.2g} of 1e-5"


def convolved(x, w, bias, pool):
    shape = (*x.shape[:2], x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1, *w.shape[2:])
    windows = np.lib.stride_tricks.as_strided(x, shape, x.strides + x.strides[2:])
    out = np.einsum("nihwab,oiab->nohw", windows, w, optimize=True) + bias[:, None, None]
    n, o, h, v = out.shape
    return out[:, :, :h // pool * pool, :v // pool * pool].reshape(n, o, h // pool, pool, v // pool, pool).max((3, 5))


def vectors(case, folder, what):
    """Two vectors, added: so many elements."""
    kernel = found(module_of(folder / case["folder"] / case["file"]), case["entry"])
    a, b = (np.random.default_rng(s).random((int(what), 1) if case["entry"] != "vector_add_stream" else (int(what),),
                                            np.float32) for s in (1, 2))
    return near(np.asarray(kernel(a, b)).reshape(a.shape), a + b, 0)


def transposed(case, folder, what):
    """A matrix, transposed."""
    kernel = found(module_of(folder / case["folder"] / case["file"]), case["entry"])
    a = np.random.default_rng(1).random(tuple(int(n) for n in what.split("x")), np.float32)
    return near(kernel(a), a.T, 0)


def cell_of(notebook, entry):
    """The first cell that defines it, without what is for the notebook alone."""
    cells = ("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code")
    cell = next(c for c in cells if f"def {entry}(" in c)
    return re.sub(r"^[%!].*", "", cell, flags=re.M)


def program(case, folder, what):
    """A function of public_cases.py or the files beside it, which makes inputs and knows what is right. Modules of
    nki-library are those of its checkout, if there is one."""
    path = folder / case["folder"] / case["file"]
    text = path.read_text(encoding="utf-8")
    bare, notebook = None, path.suffix == ".ipynb"
    if notebook:
        path, text = path.with_suffix(".py"), cell_of(json.loads(text), case["entry"])
    relative = re.search(r"^ *from \.", text, re.M)
    if notebook or not re.search(r"^ *(import|from) ", text, re.M):
        bare = PRELUDE + text
    sys.path.append(str(folder / "aws-neuron+nki-library/src/nkilib_src"))
    known = next(m for m in (public_cases, public_more, public_wider, public_layers) if hasattr(m, what))
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        return getattr(known, what)(lambda: member_of(path) if relative else module_of(path, bare), case["entry"])


def tests(case, folder, what):
    """A unittest of the file itself: Class.test."""
    made = unittest.TestLoader().loadTestsFromName(case["entry"], module_of(folder / case["folder"] / case["file"]))
    result = unittest.TestResult()
    with contextlib.redirect_stdout(io.StringIO()):
        made.run(result)
    trouble = [text.strip().split("\n")[-1] for _, text in result.errors + result.failures]
    return result.testsRun > 0 and not trouble, "; ".join(trouble) or f"{result.testsRun} of its own tests"


def demo(case, folder, what):
    """A program that traces its kernel with triton-viz, asserting what it computes: nki.simulate takes that place."""
    class Traced:
        def __init__(self, function):
            self.kernel = neuronxcc.nki.jit(function)

        def __getitem__(self, grid):
            return self

        def __call__(self, *args, pre_trace=None, **kwargs):
            return neuronxcc.nki.simulate_kernel(self.kernel, *args, **kwargs)

    stands = nki_kernels._StandIn("triton_viz")
    vars(stands).update(trace=lambda *a, **k: Traced, launch=lambda **_: None)
    sys.modules.update({stands.__name__: stands, **{n: nki_kernels._StandIn(n) for n in (
        "triton_viz.clients", "triton_viz.core", "triton_viz.core.trace")}})
    vars(sys.modules["triton_viz.core.trace"])["launches"] = []
    module = module_of(folder / case["folder"] / case["file"])
    with contextlib.redirect_stdout(io.StringIO()):
        found(module, case["entry"])()
    return True, "its own assertion"


HOW = {f.__name__: f for f in (nkibench, harness, conv2d, vectors, transposed, program, tests, demo)}


# ---- rows ----

def rows(only):
    with open(here / "public_kernels.csv", encoding="utf-8", newline="") as file:
        for case in csv.DictReader(file):
            case["folder"] = case["repository"].replace("/", "+")
            case["name"] = f"{case['repository']} {case['file']} {case['entry']}"
            if only in case["name"] + " " + case["how"]:
                yield case


def one(case, folder):
    """In a process of its own."""
    stand_in_for_torch()
    warnings.simplefilter("ignore")
    how, _, what = case["how"].partition(":")
    what, *lets = what.split("+")
    os.environ["TRNMATH_SPILL"] = str(int("spill" in lets))
    if "bare" in lets:
        Bare.root = str(folder / case["folder"])
        sys.meta_path.insert(0, Bare)
    for machine in {"trn1", "trn3"}.intersection(lets):
        os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = machine
    began = time.time()
    try:
        right, said = HOW[how](case, folder, what)
        word = "right" if right else "WRONG"
    except BaseException as trouble:
        word, said = "FAILED", f"{type(trouble).__name__}: {trouble}"
        if os.environ.get("TRACE"):
            raise
    print(f"\n{word}\t{said}\t{time.time() - began:.1f} s".replace("\n", " ", 0))


def started(case, folder, seconds):
    command = [sys.executable, __file__, "--folder", str(folder), "--row", case["name"], case["how"]]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "SLOW", f"more than {seconds} s", ""
    last = run.stdout.strip().split("\n")[-1].split("\t")
    return last if len(last) == 3 else ("FAILED", run.stderr.strip().split("\n")[-1], "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.row:
        one(next(c for c in rows(options.row[0]) if [c["name"], c["how"]] == options.row), folder)
        return 0
    cases = list(rows(options.only))
    right = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, (word, said, took) in zip(cases, pool.map(lambda c: started(c, folder, options.seconds), cases)):
            right += word == "right"
            print(f"{word:7} {case['name']} | {said} | {took}", flush=True)
    print(f"{right} of {len(cases)} public kernels are right")
    return int(right != len(cases))


if __name__ == "__main__":
    sys.exit(main())
