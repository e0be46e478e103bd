"""What Python costs in front of a simulated core, and how fast kernels run beside a twin in NumPy.

    python3 examples/python/nki_build.py && python3 bench/speed/nki_speed.py

First microseconds per instruction on tiles of one element: all of a call, the C core alone, what Python adds. Then
three kernels, each as it is on the simulated core (with its checks and its clock) and instruction by instruction in NumPy in
binary32, as nki.simulate of the vendor works. SPDX-License-Identifier: MIT
"""
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/python/src"))

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402
from nki import _core  # noqa: E402


def best(run, repeat=5):
    """The shortest time of a few runs, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


# ---- instructions ----

TIMES = 20000


def overhead():
    """Rows of name, microseconds of a call, of them in the C core."""
    a, b = nl.zeros((1, 1), nl.float32), nl.zeros((1, 1), nl.float32)
    add, exp, core, call = nl.add, nl.exp, a.core, _core.instruction
    engine = nisa.vector_engine

    def each(run):
        def loop():
            for _ in range(TIMES):
                run()
        empty = best(lambda: [None for _ in range(TIMES)])
        return (best(loop) - empty) / TIMES * 1e6

    def alone(name, *args):
        return best(lambda: call[name].repeat(TIMES, core, *args)) / TIMES * 1e6

    tile = nl.zeros((128, 512), nl.float32)
    return [
        ("tensor_tensor", each(lambda: nisa.tensor_tensor(dst=b, data1=a, data2=a, op=add, engine=engine)),
         alone("tensor_tensor", b, a, a, add.alu, engine)),
        ("tensor_scalar", each(lambda: nisa.tensor_scalar(dst=b, data=a, op0=add, operand0=1.0)),
         alone("tensor_scalar", b, a, add.alu, 1.0)),
        ("activation", each(lambda: nisa.activation(dst=b, op=exp, data=a, scale=1.0)),
         alone("activation", b, a, exp.act, 1.0)),
        ("tensor_copy", each(lambda: nisa.tensor_copy(dst=b, src=a)), alone("tensor_copy", b, a)),
        ("memset", each(lambda: nisa.memset(dst=b, value=0.0)), alone("memset", b, 0.0)),
        ("a slice", each(lambda: tile[0:64, 10:20]), 0.0),
        ("a tile, and back", each(lambda: nl.ndarray((1, 1), nl.float32)), 0.0),
    ]


# ---- the twin ----

def _rounded(x, dtype):
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)
    return np.asarray(x, np.float32)


def _operand(x):
    """A number in binary32, or a tile."""
    return np.float32(x) if isinstance(x, (int, float)) else np.asarray(x)


class Tile(np.ndarray):
    """Binary32, rounded to its format whenever it is written."""

    format = "float32"

    def __array_finalize__(self, other):
        self.format = getattr(other, "format", "float32")


class Language:
    """nki.language of NumPy: what the three kernels use."""

    sbuf, psum, shared_hbm, float32, bfloat16 = "sbuf", "psum", "hbm", "float32", "bfloat16"
    add, multiply, maximum = np.add, np.multiply, np.maximum
    exp, square = np.exp, np.square

    @staticmethod
    def rsqrt(x):
        return np.float32(1) / np.sqrt(x)

    @staticmethod
    def ndarray(shape, dtype, buffer="sbuf"):
        made = np.zeros(shape, np.float32).view(Tile)
        made.format = str(dtype)
        return made


class Isa:
    """nki.isa of NumPy, one instruction at a time."""

    @staticmethod
    def _write(dst, value):
        dst[...] = _rounded(value, dst.format).reshape(dst.shape)

    @classmethod
    def dma_copy(cls, dst, src):
        cls._write(dst, src)

    tensor_copy = dma_copy

    @classmethod
    def memset(cls, dst, value):
        cls._write(dst, np.full(dst.shape, value, np.float32))

    @classmethod
    def tensor_tensor(cls, dst, data1, data2, op):
        cls._write(dst, op(np.asarray(data1), np.asarray(data2)))

    @classmethod
    def tensor_scalar(cls, dst, data, op0, operand0, op1=None, operand1=None):
        out = op0(np.asarray(data), _operand(operand0))
        if op1 is not None:
            out = op1(out, _operand(operand1))
        cls._write(dst, out)

    @classmethod
    def tensor_reduce(cls, dst, op, data, axis, negate=False):
        out = op.reduce(np.asarray(data), axis=axis, keepdims=True)
        cls._write(dst, -out if negate else out)

    @classmethod
    def activation(cls, dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=None):
        out = np.asarray(data) * _operand(scale)
        out = op(out if bias is None else out + np.asarray(bias))
        cls._write(dst, out)
        if reduce_res is not None:
            cls._write(reduce_res, out.sum(axis=1, keepdims=True))

    @classmethod
    def reciprocal(cls, dst, data):
        cls._write(dst, np.float32(1) / np.asarray(data))

    @classmethod
    def tensor_tensor_scan(cls, dst, data0, data1, initial, op0, op1):
        a, b = np.asarray(data0), np.asarray(data1)
        out, state = np.empty(a.shape, np.float32), np.asarray(initial)[:, 0]
        for i in range(a.shape[1]):
            state = op1(op0(a[:, i], state), b[:, i])
            out[:, i] = state
        cls._write(dst, out)

    @classmethod
    def nc_matmul(cls, dst, stationary, moving, accumulate):
        out = np.asarray(stationary).T @ np.asarray(moving)
        cls._write(dst, np.asarray(dst) + out if accumulate else out)

    class reduce_cmd:
        reset_reduce = None


# ---- three kernels, for either ----

def softmax(x, nl, nisa):
    """Rows of [512, 512], 128 at a time."""
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    for i in range(0, x.shape[0], 128):
        tile = nl.ndarray((128, x.shape[1]), nl.float32, buffer=nl.sbuf)
        most, total = nl.ndarray((128, 1), nl.float32), nl.ndarray((128, 1), nl.float32)
        nisa.dma_copy(dst=tile, src=x[i:i + 128])
        nisa.tensor_reduce(dst=most, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation(dst=tile, op=nl.exp, data=tile, bias=most, reduce_op=nl.add, reduce_res=total,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[i:i + 128], src=tile)
    return out


def rms_norm(x, nl, nisa):
    """Rows of [512, 512] over the root of their mean square, in bfloat16."""
    out = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
    for i in range(0, x.shape[0], 128):
        tile, squares = nl.ndarray((128, x.shape[1]), nl.bfloat16), nl.ndarray((128, x.shape[1]), nl.float32)
        total = nl.ndarray((128, 1), nl.float32)
        nisa.dma_copy(dst=tile, src=x[i:i + 128])
        nisa.activation(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=1 / x.shape[1], op1=nl.add, operand1=1e-6)
        nisa.activation(dst=total, op=nl.rsqrt, data=total)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[i:i + 128], src=tile)
    return out


def running_sum(x, nl, nisa):
    """Along rows of [512, 512], 256 elements at a time."""
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, 256), nl.float32)
    nisa.memset(dst=ones, value=1.0)
    for i in range(0, x.shape[0], 128):
        carry = nl.ndarray((128, 1), nl.float32)
        nisa.memset(dst=carry, value=0.0)
        for j in range(0, x.shape[1], 256):
            tile = nl.ndarray((128, 256), nl.float32)
            nisa.dma_copy(dst=tile, src=x[i:i + 128, j:j + 256])
            nisa.tensor_tensor_scan(dst=tile, data0=ones, data1=tile, initial=carry, op0=nl.multiply, op1=nl.add)
            nisa.tensor_copy(dst=carry, src=tile[:, 255:256])
            nisa.dma_copy(dst=out[i:i + 128, j:j + 256], src=tile)
    return out


def compare(kernel, x):
    """Seconds here and in NumPy, and the largest difference of their results."""
    here, elapsed = [None], []

    def inside(hbm):
        for _ in range(7):
            start = time.perf_counter()
            here[0] = kernel(hbm, nl, nisa)
            elapsed.append(time.perf_counter() - start)
        return here[0]
    result = nki.simulate(inside)(x)
    twin = [None]

    def in_numpy():
        twin[0] = kernel(x.view(Tile), Language, Isa)
    return min(elapsed), best(in_numpy), float(np.abs(result.astype(np.float32) - np.asarray(twin[0])).max())


def main():
    rows = []
    nki.simulate(lambda: rows.extend(overhead()))()
    print(f"{'us per instruction':22} {'call':>7} {'C core':>7} {'Python':>7}")
    for name, call, core in rows:
        print(f"{name:22} {call:7.2f} {core:7.2f} {call - core:7.2f}")
    x = np.random.default_rng(0).standard_normal((512, 512), np.float32)
    print(f"\n{'us per kernel':22} {'here':>7} {'NumPy':>7} {'ratio':>7}  largest difference")
    for kernel in (softmax, rms_norm, running_sum):
        here, twin, apart = compare(kernel, x)
        print(f"{kernel.__name__:22} {1e6 * here:7.0f} {1e6 * twin:7.0f} {twin / here:7.1f}  {apart:.2g}")


if __name__ == "__main__":
    main()
