"""python3 -m trnmath.graphrun FILE: a module of HLO or StableHLO in float64 and on the engines, side by side.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from typing import Any

import numpy as np
import trnmath

from . import device, inputs, memory, page
from .graph import OUTSIDE, Trouble
from .job import Job
from .machine import CASTS
from .measure import Measure, Row, adds_most, first_apart, relative
from .run import Value

_PATIENCE = 20.0  # seconds of the first run up to which operations are tried alone


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    p = argparse.ArgumentParser(prog="graphrun", description="Runs HLO (.hlo, .txt) or StableHLO (.mlir) text twice: in "
                                "float64, and on the engines with the compiler's casts; says where they part.")
    p.add_argument("file", metavar="FILE")
    p.add_argument("--module", type=int, metavar="N", help="of a file with several, which one, from 1")
    p.add_argument("--inputs", nargs="+", default=[], metavar="DIR|FILE.npz|NAME=FILE.npy",
                   help="the entry's parameters; those that are not given are random")
    p.add_argument("--seed", type=int, default=0, help="of random parameters")
    p.add_argument("--ints", default="0:2", metavar="LOW:HIGH", help="of random whole numbers; HIGH is left out")
    p.add_argument("--fill", choices=["random"], help="constants that were left out when the module was printed")
    p.add_argument("--auto-cast", choices=["none", "matmult", "all"], default="none")
    p.add_argument("--auto-cast-type", choices=sorted(CASTS), default="bf16")
    p.add_argument("--matmult-to-fp8", action="store_true", help="every product of floats in FP8 (E4M3, +-240)")
    p.add_argument("--stochastic-rounding", type=int, nargs="?", const=0, metavar="SEED",
                   help="results that are narrower than FP32")
    p.add_argument("--generation", type=int, choices=[1, 2, 3], default=2)
    p.add_argument("--numerics", help="of the Tensor engine, such as chains=1")
    p.add_argument("--system", default="trn2.48xlarge", help="whose collectives' order it is")
    p.add_argument("--devices", type=int, help="if not as many as the module is for")
    p.add_argument("--alike", action="store_true", help="random parameters are the same on all devices")
    p.add_argument("--parts", type=float, default=1e-2, metavar="REL", help="from where on two results are apart")
    p.add_argument("--alone", type=int, default=3, metavar="N", help="try the N operations with most error alone")
    p.add_argument("--device", metavar="DIR", help="a device's NAME.npy: each operation replayed from its operands there")
    p.add_argument("--top", type=int, default=10, metavar="N", help="rows to print")
    p.add_argument("--json", metavar="FILE", help="all of it")
    p.add_argument("--html", metavar="FILE", help="one self-contained page")
    p.add_argument("--dump", metavar="DIR", help="the engines' results of each operation as NAME.npy")
    return p.parse_args(words)


def _dumper(folder: str, also: Any) -> Any:
    """A watcher that also writes what the engines made, of the first device."""
    os.makedirs(folder, exist_ok=True)

    def see(name: str, op: Any, operands: list[Value], results: list[Value]) -> None:
        also(name, op, operands, results)
        for result, value in zip(op.results, results):
            if op.kind not in ("tuple", *OUTSIDE) and not isinstance(value.near[0], tuple):
                np.save(os.path.join(folder, inputs.file_name(result) + ".npy"), value.near[0])
    see.__self__ = also.__self__  # type: ignore[attr-defined]
    return see


def alone(job: Job, rows: list[Row], took: float) -> list[tuple[Row, float]]:
    """What each of these brings to the results if the engines do it alone, the largest first."""
    if took > _PATIENCE:
        return []
    found = []
    for row in rows:
        _, results = job.run(None, {row.name.split("/")[-1]})
        found.append((row, max((relative(v.near, v.wide) for v in results), default=0.0)))
    return sorted(found, key=lambda pair: -pair[1])


def _parts(name: str, value: Value) -> list[tuple[str, float]]:
    """A result, or the parts of one that is a tuple, each with its distance."""
    if not isinstance(value.near[0], tuple):
        return [(name, relative(value.near, value.wide))]
    near, wide = (list(zip(*side)) for side in value)
    return [(f"{name}[{n}]", relative(a, b)) for n, (a, b) in enumerate(zip(near, wide))]


def report(job: Job) -> dict[str, Any]:
    """Runs, and says what it saw."""
    options, measure = job.options, Measure()
    began = time.monotonic()
    watch = _dumper(options.dump, measure.see) if options.dump else measure.see
    runner, results = job.run(watch)
    took = time.monotonic() - began
    rows = list(measure.rows.values())
    most = alone(job, adds_most(rows, options.alone), took) if options.alone else []
    apart, differs = first_apart(rows, options.parts), first_apart(rows, 0.0)
    return {"file": options.file, "settings": job.settings.words(), "devices": job.devices,
            "operations": len(rows), "random": job.drawn, "filled": job.filled, "seconds": round(took, 3),
            "results": [{"name": called, "rel_l2": value} for name, v in zip(job.graph.main.results, results)
                        for called, value in _parts(name, v)],
            "first_that_differs": differs.name if differs else None, "first_apart": apart.name if apart else None,
            "parts": options.parts, "adds_most": [{"name": row.name, "kind": row.kind, "line": row.line, "own": row.own,
                                                   "alone": value} for row, value in most],
            "doubts": runner.doubts, "rows": [vars(row) for row in rows]}


def told(said: dict[str, Any], top: int) -> str:
    """The report in lines."""
    rows = {row["name"]: row for row in said["rows"]}
    place = lambda name: f"{name} ({rows[name]['kind']} {rows[name]['shape']}, line {rows[name]['line']})"
    lines = [f"{said['file']}: {said['operations']} operations on {said['devices']} "
             f"{'device' if said['devices'] == 1 else 'devices'}, {said['settings']}, {said['seconds']:.2f} s"]
    if said["random"]:
        lines.append(f"random operands: {', '.join(said['random'][:6])}{', ...' if len(said['random']) > 6 else ''}")
    if said["filled"]:
        lines.append(f"constants that the file leaves out, filled with random numbers: {said['filled']}")
    for one in sorted(said["results"], key=lambda r: -r["rel_l2"])[:4]:
        lines.append(f"result {one['name']}: rel-L2 {one['rel_l2']:.3e} from float64")
    if len(said["results"]) > 4:
        lines.append(f"... and {len(said['results']) - 4} results that are nearer")
    differs, apart = said["first_that_differs"], said["first_apart"]
    lines.append(f"first that differs: {place(differs)}" if differs else "nothing differs")
    lines.append(f"first beyond {said['parts']:g}: {place(apart)}" if apart else f"nothing is beyond {said['parts']:g}")
    for one in said["adds_most"]:
        lines.append(f"alone on the engines, {place(one['name'])} brings {one['alone']:.3e} to the results")
    lines += said["doubts"][:3]
    if not top:
        return "\n".join(lines)
    lines.append(f"{'operation':32} {'kind':18} {'own':>9} {'total':>9}  line")
    for row in sorted(said["rows"], key=lambda r: -r["own"])[:top]:
        lines.append(f"{row['name'][:32]:32} {row['kind'][:18]:18} {row['own']:9.2e} {row['total']:9.2e}  {row['line']}")
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _write(path: str, text: str) -> None:
    """Whole, or not at all."""
    part = f"{path}.part"
    try:
        with open(part, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(part, path)
    except OSError as trouble:
        raise Trouble(f"{path}: {trouble.strerror}") from None


def main(words: list[str] | None = None) -> int:
    """0: it ran (and, with --device, no operation is a bug); 1: an operation of the device is a bug; 2: one sentence."""
    options = arguments(sys.argv[1:] if words is None else words)
    if words is None:  # a process of its own
        memory.guard(options.inputs)
    try:
        job = Job(options)
        said = device.report(job, options.device) if options.device else report(job)
        if options.json:
            _write(options.json, json.dumps(_plain(said), indent=1, allow_nan=False) + "\n")
        if options.html:
            _write(options.html, page.made(said, (device.told if options.device else told)(said, 0)))
        print((device.told if options.device else told)(said, options.top))
        return 1 if said.get("bugs") else 0
    except (Trouble, trnmath.Error) as trouble:
        print(f"graphrun: {trouble}", file=sys.stderr)
    except BrokenPipeError:  # nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print("graphrun: there is not enough memory", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
