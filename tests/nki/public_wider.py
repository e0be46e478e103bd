"""Inputs and right results of public kernels, as in public_cases.py: random numbers and points, caches of models that are
written in place, attention with wide heads, what libraries make of NKI's examples.

SPDX-License-Identifier: MIT
"""
import sys
import types

import numpy as np

from public_cases import _delta, delta_rule, near, normal, rounded, softmax, uniform
from public_more import bfloat16, rms, silu


def stub(name, **functions):
    """A module that a file imports, with what its kernels call of it."""
    module = types.ModuleType(name)
    vars(module).update(functions)
    sys.modules[name] = module
    return module


# ---- random numbers and points ----

MASK = np.uint64(0xFFFFFFFF)


def threefry(counter, key):
    """Threefry 4x32-20: a column of words each."""
    x, k = [np.asarray(c, np.uint64) for c in counter], [np.asarray(c, np.uint64) for c in key]
    k.append(k[0] ^ k[1] ^ k[2] ^ k[3] ^ np.uint64(0x1BD11BDA))
    for step in range(21):
        if step % 4 == 0:
            x = [(x[i] + k[(step // 4 + i) % 5] + np.uint64(step // 4 if i == 3 else 0)) & MASK for i in range(4)]
        if step == 20:
            return np.stack(x, -1)
        for (a, b), turn in zip(((0, 1), (2, 3)) if step % 2 == 0 else ((0, 3), (2, 1)),
                                ((10, 26), (11, 21), (13, 27), (23, 5))[step % 4]):
            x[a] = (x[a] + x[b]) & MASK
            x[b] = (x[b] << np.uint64(turn) | x[b] >> np.uint64(32 - turn)) & MASK ^ x[a]
    return None


def philox(counter, key):
    x, k = [np.asarray(c, np.uint64) for c in counter], [np.asarray(c, np.uint64) for c in key]
    for _ in range(10):
        p, q = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [q >> np.uint64(32) ^ x[1] ^ k[0], q & MASK, p >> np.uint64(32) ^ x[3] ^ k[1], p & MASK]
        k = [(k[0] + np.uint64(0x9E3779B9)) & MASK, (k[1] + np.uint64(0xBB67AE85)) & MASK]
    return np.stack(x, -1)


def normals(u):
    """Box-Muller, of pairs of columns."""
    radius, turn = np.sqrt(-2 * np.log(u[:, ::2])), 2 * np.pi * u[:, 1::2]
    return np.stack([radius * np.cos(turn), radius * np.sin(turn)], -1).reshape(u.shape)


def box_muller(load, name):
    u = uniform(128, 2) * np.float32(0.999) + np.float32(1e-4)
    return near(getattr(load(), name)(u), normals(u.astype(np.float64)), 1e-4)


def columns(*words):
    return [np.broadcast_to(np.asarray(w, np.int32).reshape(-1, 1), (128, 1)).copy() for w in words]


def threefry_uniform(load, name):
    words = columns(np.arange(128), 77, 0, 0, 0x123456, 0x89, 0, 0)
    bits = threefry([w[:, 0] for w in words[:4]], [w[:, 0] for w in words[4:]])
    want = (bits & np.uint64(0xFFFFFF)) / 2.0**24
    got = getattr(load(), name)(*words)
    return near(got, normals(np.maximum(want, 1e-10)), 1e-4) if "normal" in name else near(got, want, 0)


def threefry_stream(load, name):
    words = columns(np.arange(128), 5, 0x123456, 0x89, 0, 0)
    key, parts = [w[:, 0] for w in words[2:]], []
    for tile in range(32):
        bits = threefry([np.arange(128), np.full(128, 5 + tile), np.zeros(128, int), np.zeros(128, int)], key)
        u = (bits & np.uint64(0xFFFFFF)) / 2.0**24
        parts.append(normals(np.maximum(u, 1e-10)) if "normal" in name else u)
    return near(getattr(load(), name)(*words), np.concatenate(parts, 1), 1e-4 if "normal" in name else 0)


def philox_words(load, name):
    words = columns(np.arange(128), 0x12345678, 0x1ABCDEF0)
    zero = np.zeros(128, np.int64)
    want = philox([np.arange(128), zero, zero, zero], [w[:, 0] for w in words[1:]])
    return near(np.asarray(getattr(load(), name)(*words)).view(np.uint32), want, 0)


def halton(load, name):
    first, primes = np.arange(1, 129), (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
    want = np.zeros((128, 10))
    for d, p in enumerate(primes):
        n, part = first.copy(), 1.0
        while n.any():
            part /= p
            want[:, d] += n % p * part
            n //= p
    return near(getattr(load(), name)(first.astype(np.int32).reshape(-1, 1)), want, 1e-6)


def sobol(load, name):
    """Joe and Kuo's directions, of which the file's table is one more reader: only its use is checked."""
    module = load()
    gray = (np.arange(128) ^ np.arange(128) >> 1).astype(np.int32)
    kernel = getattr(module, name)
    vectors = module._SOBOL_DIR_VECS if hasattr(module, "_SOBOL_DIR_VECS") else module._init_sobol_directions()
    want = np.zeros((128, len(vectors)), np.int64)
    for d, row in enumerate(vectors):
        for k, v in enumerate(row):
            want[:, d] ^= (gray >> k & 1) * v
    return near(kernel(gray.reshape(-1, 1)), want / 2.0**24, 0)


# ---- caches, and parts of tensors that a number in HBM names ----

def _programs():
    import neuronxcc.nki.language as nl
    grid = nl.program_ndim()
    return grid, nl.num_programs(0) if grid else 1, nl.program_id(0) if grid else 0


def _helpers():
    names = "neuronxcc.nki._pre_prod_kernels", "neuronxcc.nki._pre_prod_kernels.util"
    for name in names:
        stub(name).__path__ = []
    stub("neuronxcc.nki._pre_prod_kernels.util.kernel_helpers", get_program_sharding_info=_programs,
         get_verified_program_sharding_info=lambda *_: _programs())


def cache_of_one(load, name):
    """A sequence's keys and values, at a place of the batch that a tensor names."""
    _helpers()
    k, v, keys, values = normal(1, 2, 32, 64), normal(1, 2, 32, 64), normal(4, 2, 32, 64), normal(4, 2, 32, 64)
    want = keys.copy(), values.copy()
    want[0][2], want[1][2] = k[0], v[0]
    import neuronxcc.nki.language as nl
    right = True
    said: list[str] = []
    for grid in (1, 2):
        got = getattr(load(), name)[nl.nc(grid)](k, v, keys.copy(), values.copy(), np.array([[2]], np.int32))
        one, text = near(tuple(got), want, 0)
        right, said = right and one, said + [text]
    return right, ", ".join(said)


def rolling_buffer(load, name):
    buffer, states = normal(4, 6, 256), normal(3, 256)
    batch, position = np.array([3, 0, 2], np.int32), np.array([5, 1, 0], np.int32)
    want = buffer.copy()
    want[batch, position] = states
    return near(getattr(load(), name)(buffer.copy(), states, batch, position), want, 0)


def part_of_rows(load, name):
    _helpers()
    stub("neuronx_distributed.parallel_layers.utils", divide=lambda a, b: a // b)
    x = normal(8, 3, 50)
    import neuronxcc.nki.language as nl
    got = getattr(load(), name)[nl.nc(2)](x, np.array([2], np.int32), 4)
    return near(got, x[4:6], 0)


# ---- norms, attention ----

def norm_of_batches(load, name):
    stub("neuronxcc.nki._private_kernels").__path__ = []
    stub("neuronxcc.nki._private_kernels.cumsum", cumsum=None)
    x, w = normal(2, 200, 256), normal(256)
    return near(getattr(load(), name)(x, w, 1, 256, 1e-6), rms(x) * w, 1e-4)


def wide_heads(load, name):
    """Causal attention of heads of 256, and with a window."""
    right = True
    said: list[str] = []
    for window in (0, 300):
        d, n = 256, 1024
        q, k, v = rounded(normal(2, d, n)) / 16, rounded(normal(2, d, n)), rounded(normal(2, n, d))
        i, j = np.ogrid[0:n, 0:n]
        keep = (j <= i) & ((i - j < window) if window else True)
        scores = np.where(keep, np.einsum("bdi,bdj->bij", q, k), -np.inf)
        out = np.zeros((2, d, n), np.float32)
        given = bfloat16(out)
        getattr(load(), name)(bfloat16(q), bfloat16(k), bfloat16(v), 1.0, given, True, window)
        one, text = near(np.asarray(given.numpy(), np.float32), (softmax(scores) @ v).swapaxes(1, 2), 2e-2)
        right, said = right and one, said + [text]
    return right, ", ".join(said)


def sampled_norm(load, name):
    stub("config", Config=object)
    x, w = normal(200, 512), normal(512)
    return near(getattr(load(), name)(x, w, 1e-5), rms(x, 1e-5) * w, 1e-4)


# ---- steps of a small Llama ----

def mlp_of_one(load, name):
    x, up, gate, down = (rounded(n) for n in (normal(1, 1, 2048), normal(2048, 4096) / 45, normal(2048, 4096) / 45,
                                              normal(4096, 2048) / 64))
    got = getattr(load(), name)(*(bfloat16(a) for a in (x, up, gate, down)))
    row = x.reshape(1, -1)
    return near(np.asarray(got, np.float32), ((silu(row @ gate) * (row @ up)) @ down)[None], 2e-2)


def attention_of_one(load, name):
    """Sixteen heads of four groups, a token, and what came before that a mask leaves."""
    q, k, v = rounded(normal(1, 16, 1, 64)), rounded(normal(1, 4, 1, 64)), rounded(normal(1, 4, 1, 64))
    keys, values = rounded(normal(1, 4, 512, 64)), rounded(normal(1, 4, 512, 64))
    mask = uniform(1, 1, 1, 512) < 0.5
    got = getattr(load(), name)(*(bfloat16(a) for a in (q, k, v, keys, values)), mask)
    all_keys, all_values = (np.concatenate(p, 2).repeat(4, 1) for p in ((keys, k), (values, v)))
    scores = np.where(np.append(mask, True), (q @ all_keys.swapaxes(2, 3)) / 8, -np.inf)
    return near(np.asarray(got, np.float32), softmax(scores) @ all_values, 2e-2)


def mlp_of_many(load, name):
    x, up, gate, down = (rounded(n) for n in (normal(32, 1, 2048), normal(2048, 4096) / 45, normal(2048, 4096) / 45,
                                              normal(4096, 2048) / 64))
    got = getattr(load(), name)(*(bfloat16(a) for a in (x, up, gate, down)))
    return near(np.asarray(got, np.float32), (silu(x @ gate) * (x @ up)) @ down, 2e-2)


def attention_of_many(load, name):
    q, k, v = rounded(normal(32, 16, 1, 64)), rounded(normal(32, 4, 1, 64)), rounded(normal(32, 4, 1, 64))
    keys, values = rounded(normal(32, 4, 512, 64)), rounded(normal(32, 4, 512, 64))
    mask = np.broadcast_to(uniform(32, 1, 1, 512) < 0.5, (32, 16, 1, 512)).copy()
    got = getattr(load(), name)(*(bfloat16(a) for a in (q, k, v)), [bfloat16(keys), bfloat16(values)], mask)
    all_keys, all_values = (np.concatenate(p, 2).repeat(4, 1) for p in ((keys, k), (values, v)))
    keep = np.concatenate([mask, np.ones((32, 16, 1, 1), bool)], 3)
    scores = np.where(keep, (q @ all_keys.swapaxes(2, 3)) / 8, -np.inf)
    return near(np.asarray(got, np.float32), softmax(scores) @ all_values, 2e-2)


def rotated_columns(load, name):
    x, cos, sin = normal(128, 2048), normal(64, 2048), normal(64, 2048)
    upper, lower = x[:64], x[64:]
    return near(getattr(load(), name)(x, cos, sin),
                np.concatenate([upper * cos - lower * sin, lower * cos + upper * sin]), 1e-6)


def logits_of_one(load, name):
    x, w = rounded(normal(1, 1, 2048)), rounded(normal(2048, 64128) / 45)
    return near(np.asarray(getattr(load(), name)(bfloat16(x), bfloat16(w)), np.float32), x @ w, 2e-2)


# ---- what courses and tutorials add ----

def delta_from_nothing(load, name):
    """Two chunks of the gated delta rule, from a state of zeros."""
    q, k, v, g, beta = _delta(256)
    g, ones = g / 16, np.ones((128, 128), np.float32)
    got = getattr(load(), name)(q, k, v, g[:, None], beta[:, None], np.tril(ones, -1), np.eye(128, dtype=np.float32),
                                np.tril(ones))
    return near(tuple(got), delta_rule(q, k, v, g, beta, np.zeros((128, 128), np.float32)), 1e-2)


def experts_beside_numpy(load, name):
    """Four of eight experts for each of 128 tokens, beside the file's own function in NumPy, v1."""
    np.random.seed(3)
    module = load()
    given = [np.asarray(a, np.float32) for a in module.generate_input_shapes()]
    given[1:] = [a / 8 if a.ndim > 1 and a.shape[0] > 1 else a for a in given[1:]]
    want = module.v1(*given)
    got = getattr(module, name)(*given)
    return near(np.asarray(got, np.float32), want, 1e-3)


def chunked_without_norm(load, name):
    """Causal linear attention by chunks, whose state stays in PSUM."""
    kernel, rows, columns = getattr(load(), name)(192, 128, 64)
    q, k, v = (normal(rows, columns) / 8 for _ in range(3))
    return near(kernel(q, k, v), np.tril(q @ k.T) @ v, 1e-5)


def pooled_twice(load, name):
    x = normal(64, 16, 16)
    return near(getattr(load(), name)(x, 2), x.reshape(64, 4, 4, 4, 4).max((2, 4)), 0)


def product_of_programs(load, name):
    """One program's, of which the file makes a grid."""
    a, b = normal(128, 128), normal(128, 128)
    import neuronxcc.nki.language as nl
    return near(getattr(load(), name)[nl.spmd_dim(1, nl.nc(1)), 1](a, b), a.T @ b, 1e-5)
