"""Times of published variants of NKIBench's kernels, beside what the model says: the tables of times and of variants in
examples/python/src/nki/device.md.

Usage: device_variants.py KDA ACCELOPT [operator | name of a variant] ...
       device_variants.py --kernels ACCELOPT [operator] ...     NKIBench's own kernels, on Trainium2 and Trainium1

KDA and ACCELOPT are checkouts of github.com/Jerry2423/kda-for-trainium and github.com/zhang677/AccelOpt, of which
nothing is in this repository. Each variant runs as it is, of its full shape, in a process of its own: seconds to
minutes. What one is refused for is printed; --kernels runs what does not fit as a compiler that spills would, which
costs nothing here. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

EMPTY_MS = 0.0098  # a run of the published profiles in which nothing happens
AS_PRINTED = ("silu_v2_k3", "silu_v2_pingpong")  # their shares of engines say that p50 is the run itself
APART = 1.10  # pairs that differ by less are noise


def variants(kda: Path, operator: str) -> list[tuple[str, Path, float, Any]]:
    """(name, file, ms that it took, its shares of engines), one for each file: the last record of it."""
    found: dict[str, tuple[str, Path, float, Any]] = {}
    with open(kda / "workspaces" / operator / "candidates.jsonl", encoding="utf-8") as file:
        for one in map(json.loads, file):
            source = kda / "workspaces" / operator / str(one.get("candidate"))
            if not one.get("latency_ms") or not source.is_file():
                continue
            printed = float(one["latency_ms"])
            ms = printed if source.stem in AS_PRINTED else 2 * printed - EMPTY_MS
            found[source.stem] = (source.stem, source, ms, one.get("metrics"))
    return list(found.values())


def cases(accelopt: Path) -> dict[str, dict[str, str]]:
    """Of each operator: where its reference and its kernel are."""
    with open(accelopt / "NKIBench" / "summary.json", encoding="utf-8") as file:
        return {name: next(iter(one["cases"].values()))["impls"][0] for name, one in json.load(file).items()}


def run(accelopt: Path, operator: str, source: Path, generation: int, spill: bool) -> None:
    """Prints what one kernel takes, in a process of its own."""
    import numpy as np

    from nki import simulate
    reference: dict[str, Any] = {}
    exec(compile((accelopt / "NKIBench" / cases(accelopt)[operator]["task"]).read_text(), operator, "exec"), reference)
    np.random.seed(42)
    inputs = reference["transform_to_nki_inputs"](reference["get_inputs"]())
    sys.path.insert(0, str(source.parent))
    made: dict[str, Any] = {"__name__": "kernels"}
    exec(compile(source.read_text(), str(source), "exec"), made)
    kernel = simulate(made["kernel"], generation=generation, spill=spill)
    kernel(*inputs)
    report = kernel.report
    assert report is not None
    shares = {name: round(100 * of["share"]) for name, of in report.engines.items()}
    print(json.dumps({"ms": 1e3 * report.time_s, "shares": shares}))


def time_of(accelopt: Path, operator: str, source: Path, timeout_s: float, generation: int = 2,
            spill: bool = False) -> dict[str, Any]:
    command = [sys.executable, __file__, "--run", str(accelopt), operator, str(source), str(generation), str(int(spill))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return {"refused": f"not done after {timeout_s:.0f} s"}
    said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    last = said[-1] if said else "nothing said"
    return dict(json.loads(last)) if done.returncode == 0 else {"refused": last}


def ranks(values: list[float]) -> list[float]:
    """Ranks from 0; of equal ones the middle."""
    return [sum(w < v for w in values) + (sum(w == v for w in values) - 1) / 2 for v in values]


def spearman(a: list[float], b: list[float]) -> float:
    ra, rb = ranks(a), ranks(b)
    middle = (len(a) - 1) / 2
    both = sum((x - middle) * (y - middle) for x, y in zip(ra, rb))
    return both / (sum((x - middle) ** 2 for x in ra) * sum((y - middle) ** 2 for y in rb)) ** 0.5


def summary(operator: str, there: int, rows: list[tuple[float, float]]) -> str:
    """A row of device.md's table, of (device, ours) in ms."""
    pairs = [(a, b) for i, a in enumerate(rows) for b in rows[i + 1:]
             if max(a[0], b[0]) > APART * min(a[0], b[0])]
    right = sum((a[0] < b[0]) == (a[1] < b[1]) and a[1] != b[1] for a, b in pairs)
    quotients = [ours / device for device, ours in rows]
    order = f"{spearman([r[0] for r in rows], [r[1] for r in rows]):.2f}" if len(rows) > 2 else ""
    return (f"| {operator} | {len(rows)} of {there} | {order} | {right} of {len(pairs)} | "
            f"{min(quotients):.2f} to {max(quotients):.2f} |")


def kernels(accelopt: Path, asked: list[str]) -> None:
    """NKIBench's own kernels."""
    for operator, where in cases(accelopt).items():
        for generation in (2, 1) if not asked or operator in asked else ():
            source, spills = accelopt / "NKIBench" / where["kernel"], ""
            got = time_of(accelopt, operator, source, 600, generation)
            if "does not fit" in got.get("refused", ""):
                got, spills = time_of(accelopt, operator, source, 600, generation, spill=True), ", where it spills"
            told = f"{got['ms']:.3f} ms{spills}" if "ms" in got else f"refused: {got['refused']}"
            print(f"{operator}, Trainium{generation}: {told}", flush=True)


def main() -> int:
    if sys.argv[1:2] == ["--kernels"] and len(sys.argv) > 2:
        kernels(Path(sys.argv[2]), sys.argv[3:])
        return 0
    if sys.argv[1:2] == ["--run"]:
        try:
            run(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]), sys.argv[6] == "1")
        except Exception as trouble:
            traceback.print_exc()
            print(" ".join(str(trouble).split()), file=sys.stderr)
            return 1
        return 0
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    kda, accelopt, asked = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    table: list[str] = []
    for workspace in sorted((kda / "workspaces").iterdir()):
        operator, all_of_it = workspace.name, not asked or workspace.name in asked
        known = variants(kda, operator)
        wanted = [v for v in known if all_of_it or v[0] in asked]
        rows: list[tuple[float, float]] = []
        for name, source, device_ms, shares in wanted:
            got = time_of(accelopt, operator, source, 1200)
            if "ms" in got:
                rows.append((device_ms, got["ms"]))
                print(f"{operator} {name}: device {device_ms:.3f} ms {json.dumps(shares)}, ours {got['ms']:.5f} "
                      f"({got['ms'] / device_ms:.2f}) {json.dumps(got['shares'])}", flush=True)
            else:
                print(f"{operator} {name}: device {device_ms:.3f} ms, refused: {got['refused']}", flush=True)
        if rows and all_of_it:
            table.append(summary(operator, len(known), rows))
    print("\n".join(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
