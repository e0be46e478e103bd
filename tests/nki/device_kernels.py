"""Kernels of the operators of NKIBench, of our own, in pieces that one processor simulates in a moment: what device.csv
holds published figures of devices against.

Each function of CASES makes a kernel's inputs, runs it, and returns (report, what it computed, what NumPy computes in
binary32 as NKIBench does, but for products, which are rounded once). Shapes are parts of NKIBench's: fewer rows, columns,
heads or iterations, the same lengths of sums. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

from typing import Any

import numpy as np

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from nki import simulate

F32, BF16 = np.float32, nl.bfloat16


def draws(*shapes: tuple[int, ...], seed: int = 42) -> Any:
    rng = np.random.RandomState(seed)
    return [rng.normal(size=shape).astype(F32) for shape in shapes]


def exact_product(a: Any, b: Any) -> Any:
    """Rounded once, so that it is the same whatever library NumPy has for its products."""
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(F32)


def run(kernel: Any, *args: Any, rsqrt_buckets: int = 4) -> Any:
    made = simulate(kernel, numerics=f"rsqrt_buckets={rsqrt_buckets}")
    got = made(*args)
    return made.report, got


# ---- elementwise ----

@nki.jit
def silu_kernel(x: Any, width: int) -> Any:
    out = nl.ndarray(x.shape, dtype=F32, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[1] // width):
        at = nl.ds(i * width, width)
        nl.store(out[:, at], nisa.activation(op=nl.silu, data=nl.load(x[:, at])))
    return out


def silu(width: int) -> Any:
    x, = draws((128, 28672))
    report, got = run(silu_kernel, x, width)
    return report, got, x / (1 + np.exp(-x))


@nki.jit
def rope_kernel(x: Any, cos: Any, sin: Any, width: int) -> Any:
    out = nl.ndarray(x.shape, dtype=F32, buffer=nl.shared_hbm)
    half = x.shape[0] // 2
    for i in nl.affine_range(x.shape[1] // width):
        at = nl.ds(i * width, width)
        even, odd = nl.load(x[0:half, at]), nl.load(x[nl.ds(half, half), at])
        c, s = nl.load(cos[:, at]), nl.load(sin[:, at])
        nl.store(out[0:half, at], nl.subtract(nl.multiply(even, c), nl.multiply(odd, s)))
        nl.store(out[nl.ds(half, half), at], nl.add(nl.multiply(odd, c), nl.multiply(even, s)))
    return out


def rope(width: int) -> Any:
    x, c, s = draws((128, 8192), (64, 8192), (64, 8192))
    report, got = run(rope_kernel, x, c, s, width)
    return report, got, np.concatenate([x[:64] * c - x[64:] * s, x[64:] * c + x[:64] * s])


@nki.jit
def adamw_kernel(theta: Any, g: Any, m: Any, v: Any, width: int) -> Any:
    out = nl.ndarray(theta.shape, dtype=F32, buffer=nl.shared_hbm)
    for i in nl.affine_range(theta.shape[1] // width):
        at = nl.ds(i * width, width)
        t, gt, mt, vt = (nl.load(a[:, at]) for a in (theta, g, m, v))
        second = nisa.scalar_tensor_tensor(data=vt, op0=nl.multiply, operand0=999.0, op1=nl.add,
                                           operand1=nisa.activation(op=nl.square, data=gt))
        turned = nisa.activation(op=nl.rsqrt, data=second)
        first = nisa.scalar_tensor_tensor(data=mt, op0=nl.multiply, operand0=9.0, op1=nl.add, operand1=gt)
        step = nisa.scalar_tensor_tensor(data=first, op0=nl.multiply, operand0=1e-3, op1=nl.multiply, operand1=turned)
        nl.store(out[:, at], nisa.scalar_tensor_tensor(data=t, op0=nl.multiply, operand0=1 - 1e-5, op1=nl.subtract,
                                                       operand1=step))
    return out


def adamw(width: int) -> Any:
    theta, g, m, v = draws(*[(128, 8 * width)] * 4)
    v = np.abs(v)
    report, got = run(adamw_kernel, theta, g, m, v, width)
    root = np.sqrt((F32(0.999) * v + F32(0.001) * g * g) * 1000) + F32(1e-8)
    return report, got, theta - F32(1e-5) * theta - F32(0.01) * (F32(0.9) * m + F32(0.1) * g) / root


@nki.jit
def mamba_kernel(delta: Any, u: Any, a: Any, b: Any, c: Any, width: int) -> Any:
    """A selective scan, whose rows b and c are the same for all channels."""
    out = nl.ndarray(delta.shape, dtype=F32, buffer=nl.shared_hbm)
    states = nl.load(a)
    carried = nl.zeros((nl.par_dim(128), a.shape[1]), dtype=F32)
    for i in range(delta.shape[1] // width):
        at = nl.ds(i * width, width)
        total = nl.zeros((nl.par_dim(128), width), dtype=F32)
        d, x = nl.load(delta[:, at]), nl.load(u[:, at])
        for s in range(a.shape[1]):
            one = nl.ds(s, 1)
            decay = nisa.activation(op=nl.exp, data=d, scale=states[:, one])
            enters = nl.multiply(nl.multiply(d, x), nl.load(b[one, at]).broadcast_to((128, width)))
            held = nisa.tensor_tensor_scan(decay, enters, initial=carried[:, one], op0=np.multiply, op1=np.add)
            carried[:, one] = nl.copy(held[:, width - 1:width])
            total += nl.multiply(held, nl.load(c[one, at]).broadcast_to((128, width)))
        nl.store(out[:, at], total)
    return out


def mamba(width: int) -> Any:
    delta, u, a, b, c = (F32(0.05) * x for x in draws((128, 1024), (128, 1024), (128, 16), (16, 1024), (16, 1024)))
    report, got = run(mamba_kernel, delta, u, a, b, c, width)
    held, want = np.zeros((128, 16)), np.zeros(delta.shape)
    for i in range(1024):
        held = np.exp(delta[:, i, None] * a) * held + (delta * u)[:, i, None] * b[:, i]
        want[:, i] = held @ c[:, i]
    return report, got, want.astype(F32)


# ---- products ----

def halves(x: Any) -> Any:
    """A tile of binary32 as the sum of two of BF16."""
    high = nl.copy(x, dtype=BF16)
    return high, nl.copy(nl.subtract(x, high, dtype=F32), dtype=BF16)


def turned(x: Any) -> Any:
    """[128, 128] with its axes exchanged, in SBUF."""
    return nl.copy(nisa.nc_transpose(x, engine=nisa.tensor_engine))


def add_product(acc: Any, a: Any, b: Any, split: int) -> Any:
    """acc += a.T b: in binary32, or as three products of BF16; `split` may be 4 of them."""
    if not split:
        acc[...] += nisa.nc_matmul(a, b)
        return
    for n, (x, y) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)][:split]):
        acc[...] += nisa.nc_matmul(a[x], b[y])


def product(rows: Any, weights: Any, split: int) -> Any:
    """[128, N] of rows [128, K] in SBUF and weights [K, N], which are prepared tiles."""
    acc = nl.zeros((nl.par_dim(128), weights[0][0].shape[1] if split else weights[0].shape[1]), dtype=F32,
                   buffer=nl.psum)
    for k, w in enumerate(weights):
        x = turned(nl.copy(rows[:, nl.ds(128 * k, 128)]))
        add_product(acc, halves(x) if split else x, w, split)
    return acc


def prepared(w: Any, split: int) -> Any:
    tiles = [nl.load(w[nl.ds(128 * k, 128), :]) for k in range(w.shape[0] // 128)]
    return [halves(t) for t in tiles] if split else tiles


@nki.jit
def matmul_kernel(x: Any, w: Any, split: int) -> Any:
    out = nl.ndarray((x.shape[0], w.shape[1]), dtype=F32, buffer=nl.shared_hbm)
    weights = prepared(w, split)
    for m in nl.affine_range(x.shape[0] // 128):
        rows = nl.ds(128 * m, 128)
        nl.store(out[rows, :], nl.copy(product(nl.load(x[rows, :]), weights, split)))
    return out


def matmul(rows: Any, k: Any, split: int) -> Any:
    x, w = draws((rows, k), (k, 512))
    report, got = run(matmul_kernel, x, w, split)
    return report, got, exact_product(x, w)


@nki.jit
def norm_first_kernel(x: Any, w: Any, z: Any, g: Any, split: int) -> Any:
    """rmsnorm(x + z) g, times w."""
    out = nl.ndarray((x.shape[0], w.shape[1]), dtype=F32, buffer=nl.shared_hbm)
    y = nl.add(nl.load(x), nl.load(z))
    mean = nl.add(nl.multiply(nl.sum(nl.square(y), axis=[1]), 1 / x.shape[1]), 1e-5)
    scaled = nl.multiply(nl.multiply(y, nl.rsqrt(mean)), nl.load(g).broadcast_to((128, x.shape[1])))
    nl.store(out, nl.copy(product(scaled, prepared(w, split), split)))
    return out


def norm_first(split: int, rsqrt_buckets: int) -> Any:
    x, w, z, g = draws((128, 1024), (1024, 512), (128, 1024), (1, 1024))
    report, got = run(norm_first_kernel, x, w, z, g, split, rsqrt_buckets=rsqrt_buckets)
    y = x + z
    t = np.sum(np.divide(np.square(y), F32(1024)), axis=-1, keepdims=True) + F32(1e-5)
    return report, got, exact_product(y / np.sqrt(t) * g, w)


@nki.jit
def norm_last_kernel(x: Any, w: Any, z: Any, g: Any, split: int) -> Any:
    """rmsnorm(x w + z) g."""
    out = nl.ndarray((x.shape[0], w.shape[1]), dtype=F32, buffer=nl.shared_hbm)
    rows, y = nl.load(x), nl.ndarray((nl.par_dim(128), w.shape[1]), dtype=F32, buffer=nl.sbuf)
    for n in range(w.shape[1] // 512):
        at = nl.ds(512 * n, 512)
        y[:, at] = nl.add(product(rows, prepared(w[:, at], split), split), nl.load(z[:, at]))
    mean = nl.add(nl.multiply(nl.sum(nl.square(y), axis=[1]), 1 / w.shape[1]), 1e-5)
    nl.store(out, nl.multiply(nl.multiply(y, nl.rsqrt(mean)), nl.load(g).broadcast_to((128, w.shape[1]))))
    return out


def norm_last(split: int, rsqrt_buckets: int) -> Any:
    x, w, z, g = draws((128, 2048), (2048, 2048), (128, 2048), (1, 2048))
    report, got = run(norm_last_kernel, x, w, z, g, split, rsqrt_buckets=rsqrt_buckets)
    y = exact_product(x, w) + z
    return report, got, y * g / np.sqrt(np.mean(y ** 2, axis=-1, keepdims=True) + F32(1e-5))


@nki.jit
def swiglu_kernel(x: Any, up: Any, down: Any, gate: Any, split: int) -> Any:
    """Only the last product is split."""
    out = nl.ndarray((x.shape[0], down.shape[1]), dtype=F32, buffer=nl.shared_hbm)
    rows = nl.load(x)
    wide = nl.ndarray((nl.par_dim(128), up.shape[1]), dtype=F32, buffer=nl.sbuf)
    for n in range(up.shape[1] // 512):
        at = nl.ds(512 * n, 512)
        gated = nisa.activation(op=nl.silu, data=product(rows, prepared(gate[:, at], 0), 0))
        wide[:, at] = nl.multiply(gated, product(rows, prepared(up[:, at], 0), 0))
    nl.store(out, nl.copy(product(wide, prepared(down, split), split)))
    return out


def swiglu(split: int) -> Any:
    x, up, down, gate = draws((128, 1024), (1024, 1536), (1536, 512), (1024, 1536))
    report, got = run(swiglu_kernel, x, up, down, gate, split)
    opened = exact_product(x, gate)
    with np.errstate(over="ignore"):
        return report, got, exact_product(opened / (1 + np.exp(-opened)) * exact_product(x, up), down)


# ---- softmax ----

def softmax(scores: Any) -> Any:
    e = nl.exp(nl.subtract(scores, nl.max(scores, axis=[1])))
    return nl.multiply(e, nl.reciprocal(nl.sum(e, axis=[1])))


@nki.jit
def attention_kernel(q: Any, k: Any, v: Any, split: int, sequence: int) -> Any:
    """q [128, d], k [n, d], v [n, d] or None: softmax(q k.T) v, or the softmax alone."""
    d, n = q.shape[1], k.shape[0]
    out = nl.ndarray((128, n if v is None else d), dtype=F32, buffer=nl.shared_hbm)
    queries = nl.copy(nisa.nc_transpose(nl.load(q), engine=nisa.tensor_engine))
    scores = nl.ndarray((nl.par_dim(128), n), dtype=F32, buffer=nl.sbuf)
    for i in range(n // 512):
        keys = nl.ndarray((nl.par_dim(d), 512), dtype=F32, buffer=nl.sbuf)
        for j in range(4):
            keys[:, nl.ds(128 * j, 128)] = nl.copy(nisa.nc_transpose(nl.load(k[nl.ds(512 * i + 128 * j, 128), :]),
                                                                     engine=nisa.tensor_engine))
        acc = nl.zeros((nl.par_dim(128), 512), dtype=F32, buffer=nl.psum)
        add_product(acc, halves(queries) if split else queries, halves(keys) if split else keys, split)
        scores[:, nl.ds(512 * i, 512)] = nl.multiply(acc, 1 / np.sqrt(sequence))
    shares = softmax(scores)
    nl.store(out, shares if v is None else nl.copy(product(shares, prepared(v, 0), 0)))
    return out


def softmax_of(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(split: int) -> Any:
    q, k, v = draws((128, 128), (4096, 128), (4096, 128))
    report, got = run(attention_kernel, q, k, v, split, 128)
    return report, got, exact_product(softmax_of(exact_product(q, k.T) / F32(np.sqrt(128))), v)


def bmm_softmax() -> Any:
    q, k = draws((128, 64), (4096, 64))
    report, got = run(attention_kernel, q, k, None, 0, 1)
    return report, got, softmax_of(exact_product(q, k.T))


@nki.jit
def bmm_kernel(x: Any, w: Any) -> Any:
    """x [128 tiles, 64], w [64, 4096]: for each tile a transpose, then one product for each 512 columns."""
    out = nl.ndarray((x.shape[0], w.shape[1]), dtype=F32, buffer=nl.shared_hbm)
    wide = nl.load(w)
    for m in nl.affine_range(x.shape[0] // 128):
        rows = nl.ds(128 * m, 128)
        turned = nl.copy(nisa.nc_transpose(nl.load(x[rows, :]), engine=nisa.tensor_engine))
        for n in nl.affine_range(w.shape[1] // 1024):
            both = nl.ndarray((nl.par_dim(128), 1024), dtype=F32, buffer=nl.sbuf)
            for i in range(2):
                both[:, nl.ds(512 * i, 512)] = nl.copy(nisa.nc_matmul(turned, wide[:, nl.ds(1024 * n + 512 * i, 512)]))
            nl.store(out[rows, nl.ds(1024 * n, 1024)], both)
    return out


def bmm() -> Any:
    x, w = draws((1024, 64), (64, 4096))
    report, got = run(bmm_kernel, x, w)
    return report, got, exact_product(x, w)


CASES = {f.__name__: f for f in (silu, rope, adamw, mamba, matmul, norm_first, norm_last, swiglu, attention,
                                 bmm_softmax, bmm)}
