"""What runs in the sandbox: a kernel, followed, and its reference.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ctypes
import gc
import importlib
import json
import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core, running
from ..bounds import Bound, Tolerance
from ..frames import INSIDE
from ..simulator import Kernel, Report, simulate
from ..tensor import NkiTensor
from . import guard, inputs, sandbox
from .schema import Malformed

# Loaded before a sandbox closes, in which nothing can be.
PRELOADED = ("abc collections contextlib copy dataclasses enum functools inspect itertools json logging math numbers "
             "operator os random re socket string subprocess sys threading time typing warnings numpy.random "
             "numpy.linalg numpy.fft neuronxcc.nki neuronxcc.nki.isa neuronxcc.nki.language neuronxcc.nki.typing "
             "neuronxcc.nki.compiler nki.check nki.typing nki.collectives trnmath ml_dtypes scipy.special").split()


def preload() -> None:
    """What is not installed is left out."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    import trnmath  # here: it looks for its library
    hide_numbers()
    trnmath.tolerance(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32))  # loads its library
    gc.collect()
    gc.freeze()
    mallopt = ctypes.CDLL(None).mallopt
    for setting, value in ((-3, 1 << 25), (-1, 1 << 30), (-2, 1 << 25)):  # M_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD
        mallopt(setting, value)  # temporaries use the same pages again


# ---- loading ----

def load(said: dict[str, Any]) -> types.ModuleType:
    """The module of a text; its lines are there for those who quote them."""
    name = said["name"]
    linecache.cache[name] = (len(said["source"]), None, said["source"].splitlines(keepends=True), name)
    module = types.ModuleType("kernel_" + "".join(c if c.isalnum() else "_" for c in name))
    module.__file__ = name
    sys.modules[module.__name__] = module
    guard.GUARD.end()  # the sentence of a SyntaxError looks for the file
    code = compile(said["source"], name, "exec")
    guard.GUARD.on = True
    exec(code, module.__dict__)
    return module


def entry(module: types.ModuleType, said: dict[str, Any], of: str) -> Any:
    """The function that the request names, or the only one that it can mean."""
    name = said.get("entry")
    if name is not None:
        found = getattr(module, name, None)
        if not callable(found):
            raise Malformed(f"{said['name']} has no function '{name}'")
        return found
    own: list[Any] = [v for v in vars(module).values() if isinstance(v, (Kernel, types.FunctionType))
                      and getattr(v, "__module__", None) == module.__name__]
    kernels = [v for v in own if isinstance(v, Kernel)]
    own = kernels if of == "kernel" and kernels else own
    if len(own) != 1:
        raise Malformed(f"{said['name']} has {len(own)} functions; 'entry' says which is the {of}")
    return own[0]


# ---- what went wrong ----

def _frames(trouble: BaseException) -> list[tuple[str, int, str]]:
    """(file, line, function), the innermost last, without reading any file."""
    found, step = [], trouble.__traceback__
    while step is not None:
        found.append((step.tb_frame.f_code.co_filename, step.tb_lineno, step.tb_frame.f_code.co_name))
        step = step.tb_next
    return found


def _words(trouble: BaseException) -> str:
    try:
        return str(trouble)
    except Exception:  # a program's own exception may refuse even this
        return ""


def told(trouble: BaseException, name: str, of: str) -> dict[str, Any]:
    """The error of an answer: the sentence, and the line of the program."""
    if guard.GUARD.said:
        sentence = guard.GUARD.said
    elif isinstance(trouble, (_core.Error, Malformed)):
        sentence = str(trouble)
    elif isinstance(trouble, MemoryError):
        sentence = "it asked for more memory than it may have"
    elif isinstance(trouble, SyntaxError):
        sentence = f"SyntaxError: {trouble.msg}"
    else:
        sentence = f"{type(trouble).__name__}: {_words(trouble)}".rstrip(": ")
    sentence = "".join(c if c.isprintable() else " " for c in " ".join(sentence.split())[:2000])
    error: dict[str, Any] = {"sentence": sentence, "of": "request" if isinstance(trouble, Malformed) else of}
    frames = _frames(trouble.__context__ or trouble) if isinstance(trouble, _core.Error) else _frames(trouble)
    own = [n for n, (file, _, _) in enumerate(frames) if file == name]
    if isinstance(trouble, SyntaxError) and trouble.filename == name:
        error |= {"file": name, "line": trouble.lineno or 1}
    elif own:
        error |= {"file": name, "line": frames[own[-1]][1]}
        inner = frames[own[-1] + 1:]
        if inner and inner[0][0].startswith(INSIDE) and not guard.GUARD.said:
            error["instruction"] = inner[0][2]
    elif guard.GUARD.said:
        error |= {"file": name, "line": guard.GUARD.line}
    if isinstance(trouble, _core.Error) and "'" in sentence:
        error["tile"] = sentence.split("'")[1]
    return error


def _answered(said: dict[str, Any], of: str, work: Callable[[], bytes]) -> bytes:
    """What work() returns, or what went wrong."""
    try:
        data = work()
        if guard.GUARD.said:
            raise PermissionError(guard.GUARD.said)
        return data
    except BaseException as trouble:  # a program may raise anything, SystemExit, too
        return sandbox.packed({"error": told(trouble, said["name"], of)}, [])


# ---- the kernel ----

def hide_numbers() -> None:
    """A kernel does not read numbers: on the machine there are none while it is compiled."""
    def guarded(name: str) -> Callable[..., Any]:
        real = getattr(NkiTensor, name)

        def call(self: NkiTensor, *args: Any) -> Any:
            if running.inside() and not sys._getframe(1).f_code.co_filename.startswith(INSIDE):
                raise _core.Error(f"the kernel reads the numbers of '{self.name}' on the host: there are none when it "
                                  "is compiled")
            return real(self, *args)
        return call
    for name in ("numpy", "tobytes", "into", "frombytes"):
        setattr(NkiTensor, name, guarded(name))


def _flat(value: Any, kind: type) -> list[Any]:
    """All results, in order; what is no tensor is refused."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)) and value:
        return [one for v in value for one in _flat(v, kind)]
    if isinstance(value, dict) and value:
        return _flat(list(value.values()), kind)
    raise _core.Error("the kernel returns nothing, and writes none of its arguments" if value in (None, ()) else
                      f"the kernel returns {type(value).__name__}, where a tensor in HBM is its result")


def _engines(report: Report, traced: bool) -> dict[str, Any]:
    busy = {name: e["share"] for name, e in report.engines.items() if e["busy_s"] > 0}
    made: dict[str, Any] = {name: {"busy": round(share, 4)} for name, share in busy.items()}
    if not traced or not report._traces:
        return made
    events = json.loads(report._traces[0])["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    for name, engine in made.items():
        of = [e for e in events if e["ph"] == "X" and names.get(e["tid"]) == name]
        total, lines = sum(e["dur"] for e in of), dict[str, float]()
        for e in of:
            place = e["args"].get("where", "")
            lines[place] = lines.get(place, 0.0) + e["dur"]
        engine["lines"] = [[int(place.rpartition(":")[2] or 0), round(time / total, 4)]
                           for place, time in sorted(lines.items(), key=lambda row: -row[1]) if total > 0]
    return made


def _told(report: Report, traced: bool) -> dict[str, Any]:
    """The clock's part of an answer: no order of the same instructions is faster than the busiest engine."""
    name, busiest = max(report.engines.items(), key=lambda row: float(row[1]["busy_s"]))
    waits = [f"{100 * w.seconds / report.time_s:.0f} % of the time: {w}" for w in report.waits[:3]]
    return {"time_us": round(1e6 * report.time_s, 4), "bound_us": round(1e6 * busiest["busy_s"], 4), "waits": waits,
            "limited_by": name if busiest["busy_s"] > 0.8 * report.time_s else "waits of the engines for each other",
            "engines": _engines(report, traced)}


def _kernel(function: Any, request: dict[str, Any]) -> Kernel:
    grid = request.get("grid") or ([request["lnc"]] if "lnc" in request else None)
    made = function if isinstance(function, Kernel) else Kernel(function)
    return made[tuple(grid)] if grid else made


def kernel(said: dict[str, Any], arguments: list[Any], request: dict[str, Any], asked: str | None,
           how: str) -> bytes:
    """Runs it. how: "followed", per result its numbers, those without roundings, worst, sigma, narrow and writer;
    "places", also the variance that each place of the kernel brings; "plain", the numbers alone."""
    options: dict[str, Any] = {"generation": request.get("generation"), "trace": bool(request.get("trace"))}

    def work() -> bytes:
        made = _kernel(entry(load(said), said, "kernel"), request)
        if how == "plain":
            return _plain(made, arguments, request, options)
        places = how == "places"
        follow = Tolerance(made, places, options | {"asked": asked})
        results: list[Bound] = _flat(follow(*inputs.unpacked(arguments)), Bound)
        assert follow.report is not None
        arrays: list[Any] = []
        for one in results:
            arrays += [one.numbers, one.exact, one.worst, one.sigma, one.narrow, one.writer]
            if places:
                arrays.append(one.error.variance)
        header = _told(follow.report, options["trace"]) | {
            "formats": [one.format for one in results], "unknown": results[0].unknown,
            "casts": results[0].casts, "seen": results[0].seen, "labels": results[0].labels if places else []}
        return sandbox.packed(header, arrays)
    return _answered(said, "kernel", work)


def _plain(made: Kernel, arguments: list[Any], request: dict[str, Any], options: dict[str, Any]) -> bytes:
    """The numbers alone: of several ranks, or of what takes long."""
    run = simulate(made, ranks=request.get("ranks"), **options)
    value = run(*inputs.unpacked(arguments))
    results = [] if value is None else _flat(value, np.ndarray)  # of one that writes its arguments: not known
    assert run.report is not None
    return sandbox.packed(_told(run.report, options["trace"]), [np.asarray(r, np.float64) for r in results])


# ---- the reference ----

def reference(said: dict[str, Any], ways: list[list[Any]]) -> bytes:
    """Runs it with these arguments, or else with the next ones: a reference may want them in their own formats."""
    def work() -> bytes:
        function = entry(load(said), said, "reference")
        for n, arguments in enumerate(ways):
            try:
                value = function(*arguments)
                break
            except Exception:
                if n == len(ways) - 1:
                    raise
        flat = [np.asarray(v) for v in (value if isinstance(value, (list, tuple)) else
                                        value.values() if isinstance(value, dict) else [value])]
        formats = [v.dtype.name for v in flat]
        if any(v.dtype.kind not in "fiubV" for v in flat):
            raise Malformed(f"the reference returns {', '.join(formats)}, where arrays of numbers are its results")
        return sandbox.packed({"formats": formats}, [v.astype(np.float64) for v in flat])
    return _answered(said, "reference", work)


WORKS: dict[str, sandbox.Work] = {"kernel": kernel, "reference": reference}
