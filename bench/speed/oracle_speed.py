"""How many kernels python -m nki.oracle judges a second, and how long one waits: each request has numbers of its own, so
that none is answered from memory.

    python3 examples/python/nki_build.py && python3 bench/speed/oracle_speed.py [REQUESTS]

SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "examples/python/src"
HEAD = "import nki, nki.isa as nisa, nki.language as nl\n\n@nki.jit\ndef kernel(x):\n" \
       "    out, t = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.ndarray(x.shape, nl.float32)\n" \
       "    nisa.dma_copy(dst=t, src=x)\n"
TAIL = "    nisa.dma_copy(dst=out, src=t)\n    return out\n"
KERNELS = {  # a name: instructions between the transfers, and what they are in NumPy
    "exp": ("    nisa.activation(dst=t, op=nl.exp, data=t)\n", "np.exp(x)"),
    "softmax": ("    m, s = nl.ndarray((x.shape[0], 1), nl.float32), nl.ndarray((x.shape[0], 1), nl.float32)\n"
                "    nisa.tensor_reduce(dst=m, op=nl.maximum, data=t, axis=1, negate=True)\n"
                "    nisa.activation(dst=t, op=nl.exp, data=t, bias=m)\n"
                "    nisa.tensor_reduce(dst=s, op=nl.add, data=t, axis=1)\n"
                "    nisa.reciprocal(dst=s, data=s)\n"
                "    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=s)\n",
                "np.exp(x) / np.exp(x).sum(1, keepdims=True)"),
}
SHAPES = ([128, 16], [128, 64], [128, 512])


def request(name, shape, seed):
    body, exact = KERNELS[name]
    return json.dumps({"id": seed, "source": HEAD + body + TAIL, "arguments": [{"shape": shape, "seed": seed}],
                       "reference": {"source": f"import numpy as np\ndef f(x):\n    return {exact}\n"}}).encode() + b"\n"


def judged(program, requests):
    """(seconds, answers) of all of them, which a thread sends while they are answered."""
    start = time.perf_counter()
    sender = threading.Thread(target=lambda: (program.stdin.write(b"".join(requests)), program.stdin.flush()))
    sender.start()
    answers = [json.loads(program.stdout.readline()) for _ in requests]
    sender.join()
    return time.perf_counter() - start, answers


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    environment = os.environ | {"PYTHONPATH": f"{SRC}:{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen([sys.executable, "-m", "nki.oracle"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=environment) as program:
        judged(program, [request("exp", [128, 16], 10**6 + n) for n in range(8)])  # all processes are there
        print(f"{'kernel':>8} {'shape':>9} {'a second':>9} {'p50 ms':>7} {'p95 ms':>7}   on {os.cpu_count()} processors")
        for name in KERNELS:
            for shape in SHAPES:
                seconds, answers = judged(program, [request(name, shape, n) for n in range(count)])
                wrong = sum(a["right"] is not True for a in answers)
                each = sorted(1e3 * a["seconds"] for a in answers)
                print(f"{name:>8} {'x'.join(map(str, shape)):>9} {count / seconds:9.1f} {each[count // 2]:7.1f} "
                      f"{each[count * 19 // 20]:7.1f}" + (f"   {wrong} wrong" if wrong else ""), flush=True)
        program.communicate()


if __name__ == "__main__":
    main()
