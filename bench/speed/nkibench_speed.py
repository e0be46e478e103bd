"""How long NKIBench's kernels take on a simulated core, beside their own references in NumPy.

    python3 examples/python/nki_build.py && python3 bench/speed/nkibench_speed.py ACCELOPT [--busy] [operator] ...

ACCELOPT is a checkout of github.com/zhang677/AccelOpt, of which nothing is in this repository. Each kernel runs as it is,
of its full shape, in a process of its own: once, and twice more if that takes less than ten seconds; then its reference,
three times. The shortest of each is printed, what the results differ by (relative L2), and whether the kernel fits only
where a compiler spills (spill=True). With --busy each runs on one thread and on all beside a process that does nothing
but count, which has a processor of its own as long as there is one. SPDX-License-Identifier: MIT
"""
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "examples/python/src"), str(root / "tests/nki")]

import nki  # noqa: E402
from device_variants import cases  # noqa: E402

AGAIN_S = 10  # what takes less runs twice more


def shortest(run):
    """Its result, and seconds."""
    times = []
    while not times or (len(times) < 3 and times[0] < AGAIN_S):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return result, min(times)


def loaded(path):
    made = {"__name__": "kernels"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), made)
    return made


def simulated(kernel, inputs):
    """Result, seconds, and "spills" where it fits in no other way."""
    try:
        return *shortest(lambda: nki.simulate(kernel, generation=2)(*inputs)), ""
    except nki.Error as refusal:
        if "does not fit" not in str(refusal):
            raise
    return *shortest(lambda: nki.simulate(kernel, generation=2, spill=True)(*inputs)), "spills"


def one(folder, operator, beside_numpy):
    """Prints a row."""
    where = cases(folder)[operator]
    reference, kernel = (loaded(folder / "NKIBench" / where[part]) for part in ("task", "kernel"))
    np.random.seed(42)
    given = reference["get_inputs"]()
    result, took_s, spills = simulated(kernel["kernel"], reference["transform_to_nki_inputs"](given))
    if not beside_numpy:
        print(f"{took_s:.3f}")
        return
    want, numpy_s = shortest(lambda: reference["forward"](*given))
    got = np.asarray(reference["transform_nki_outputs"](result, want), np.float64)
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    print(f"{operator:24} {took_s:7.2f} s {numpy_s:7.2f} s {took_s / numpy_s:7.2f} {error:10.2e} {spills}", flush=True)


def counts():
    while True:
        pass


def busy(folder, operator):
    """Prints what threads are worth beside a busy process: 1 is no loss."""
    other = multiprocessing.Process(target=counts, daemon=True)
    other.start()
    times = [float(subprocess.run([sys.executable, __file__, str(folder), "--one", operator], check=True, text=True,
                                  env={**os.environ, "OMP_NUM_THREADS": str(threads)}, capture_output=True).stdout)
             for threads in (1, os.cpu_count() or 1)]
    other.terminate()
    print(f"{operator:24} {times[0]:7.2f} s {times[1]:7.2f} s {times[0] / times[1]:7.2f}", flush=True)


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder, asked = Path(sys.argv[1]), [a for a in sys.argv[2:] if not a.startswith("--")]
    if "--row" in sys.argv or "--one" in sys.argv:
        one(folder, asked[0], "--row" in sys.argv)
        return 0
    beside = "--busy" in sys.argv
    print(f"{'':24} {'1 thread':>9} {'all':>9}    gain" if beside else f"{'':24} {'ours':>9} {'NumPy':>9}   ratio   rel. L2")
    for operator in cases(folder):
        if asked and operator not in asked:
            continue
        if beside:
            busy(folder, operator)
        else:
            subprocess.run([sys.executable, "-W", "ignore", __file__, str(folder), "--row", operator], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
