"""Inputs and right results of public kernels whose repositories have none in NumPy: a function each, which is given how
to load a kernel's file and its name there, and says whether it is right, and by how much. For public_kernels.py.

SPDX-License-Identifier: MIT
"""
import numpy as np

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def uniform(*shape):
    return RNG.random(shape, np.float32)


def error(got, want):
    """Relative, of all elements together."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return float(np.linalg.norm(got.reshape(want.shape) - want)) / (float(np.linalg.norm(want)) or 1.0)


def near(got, want, most):
    pairs = list(zip(got, want)) if isinstance(want, tuple) else [(got, want)]
    worst = max(error(g, w) for g, w in pairs)
    return worst <= most, f"{worst:.2g} of {most:g}"


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    from math import erf
    return x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2


def silu(x):
    return x / (1 + np.exp(-x))


# ---- softmax, GELU, products, attention ----

def softmax_of(load, name):
    x = normal(256, 1024)
    return near(getattr(load(), name)(x), softmax(x), 1e-4)


def product_and_bias(load, name):
    a, b, bias = normal(256, 128), normal(256, 512), normal(1, 512)
    return near(getattr(load(), name)(a, b, bias), a.T @ b + bias, 1e-5)


def gelu_of(load, name):
    x = normal(128, 512)
    return near(getattr(load(), name)(x), gelu(x), 1e-3)


def product_bias_gelu(load, name):
    a, b, bias = normal(256, 128), normal(256, 512) / 16, normal(1, 512)
    return near(getattr(load(), name)(a, b, bias), gelu(a.T @ b + bias), 1e-3)


def attention(load, name):
    q, k, v = (normal(128, 512) / 4 for _ in range(3))
    return near(getattr(load(), name)(q, k, v), softmax(q.T @ k) @ v.T, 1e-3)


def complex_product(load, name):
    gate, state = normal(2, 128, 128), normal(2, 128, 1024)
    want = (gate[0] + 1j * gate[1]) @ (state[0] + 1j * state[1])
    return near(getattr(load(), name)(gate, state), np.stack([want.real, want.imag]), 1e-5)


def polynomial_attention(load, name):
    """(numerator, denominator) of causal attention with 1 + a + a²/2."""
    heads, n, d = 2, 192, 128
    kernel, *_ = getattr(load(), name)(n, d, heads)
    q, k, v = (normal(heads, n, d) / 8 for _ in range(3))
    a = np.einsum("hid,hjd->hij", q, k)
    weights = np.tril(1 + a + a * a / 2)
    got = kernel(q, k, v)
    return near(tuple(got), (weights @ v, weights.sum(-1, keepdims=True)), 1e-5)


# ---- grids ----

def sum_in_tiles(load, name):
    a, b = normal(512, 1024), normal(512, 1024)
    return near(getattr(load(), name)(a, b), a + b, 0)


def sum_in_one(load, name):
    a, b = normal(128, 512), normal(128, 512)
    return near(getattr(load(), name)(a, b), a + b, 0)


# ---- norms ----

def rms_norm(load, name):
    x, w = normal(256, 512), normal(512)
    return near(getattr(load(), name)(x, w, 1e-5), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w, 1e-4)


def rounded(x):
    """To bfloat16."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def product_2048(load, name):
    import nki
    a, b = rounded(normal(2048, 2048)), rounded(normal(2048, 2048))
    kernel = getattr(load(), name)
    left = a.T if "lhsT" in name else a
    if "rmsnorm" in name:
        left = left / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-6)
    got = kernel(nki.tensor(a, "bfloat16"), nki.tensor(b, "bfloat16"))
    return near(got, left @ b, 1e-2)


def gated_norm(load, name):
    d, heads, t = 128, 4, 2
    x, z, gamma = normal(t, heads * d), normal(t, heads * d), normal(d)
    wide = x.reshape(t, heads, d)
    want = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * gamma
    return near(getattr(load(), name)(x, gamma, z, 1e-6), want.reshape(t, -1) * silu(z), 1e-3)


# ---- the gated delta rule ----

def delta_rule(q, k, v, g, beta, state):
    out = np.zeros_like(v)
    for t in range(len(q)):
        state = state * np.exp(g[t])
        state = state + np.outer(k[t], (v[t] - k[t] @ state) * beta[t])
        out[t] = q[t] @ state
    return out, state


def _delta(tokens):
    q, k, v = (normal(tokens, 128) for _ in range(3))
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
    return q, k, v, -uniform(tokens), uniform(tokens)


def delta_forward(load, name):
    q, k, v, g, beta = _delta(24)
    wide = [np.repeat(x[:, None], 128, 1) for x in (g, beta)]
    got = getattr(load(), name)(q, k, v, *wide)
    out, state = delta_rule(q, k, v, g, beta, np.zeros((128, 128), np.float32))
    return near(got, (out, state) if isinstance(got, (tuple, list)) else out, 1e-4)


def delta_step(load, name):
    q, k, v, g, beta = _delta(1)
    state = normal(128, 128)
    got = getattr(load(), name)(q, k, v, *(np.repeat(x[:, None], 128, 1) for x in (g, beta)), state)
    return near(tuple(got), delta_rule(q, k, v, g, beta, state), 1e-4)


def delta_step_batched(load, name):
    q, k, v, g, beta = _delta(3)
    state = normal(3 * 128, 128)
    got = getattr(load(), name)(q, k, v, g[:, None], beta[:, None], state)
    rows = []
    for i in range(3):
        one = slice(i, i + 1)
        rows.append(delta_rule(q[one], k[one], v[one], g[one], beta[one], state[128 * i:128 * i + 128]))
    return near(tuple(got), tuple(np.concatenate(part) for part in zip(*rows)), 1e-4)


def delta_chunk(load, name):
    q, k, v, g, beta = _delta(128)
    g, state = g / 16, normal(128, 128) / 8
    sums = np.cumsum(g)
    ones = np.ones((128, 128), np.float32)
    wide = [np.repeat(x[:, None], 128, 1).astype(np.float32) for x in (beta, sums, np.full(128, sums[-1]))]
    got = getattr(load(), name)(q, k, v, *wide, state, np.tril(ones, -1), np.eye(128, dtype=np.float32), np.tril(ones))
    return near(tuple(got), delta_rule(q, k, v, g, beta, state), 1e-3)


# ---- convolutions of a decode step ----

def conv_step(load, name):
    taps, tiles = 4, 3
    channels = 128 * tiles
    x, state, w = normal(1, channels), normal(channels, taps - 1), normal(channels, taps)
    window = np.concatenate([state, x.T], 1)
    out, new = getattr(load(), name)(x, state, w, 128)
    return near((out, new), (silu((window * w).sum(1)).reshape(tiles, 1, 128), window[:, 1:]), 1e-3)


# ---- linear and windowed attention ----

def linear_attention(load, name):
    """Causal, of features that are given."""
    heads, n, features, d = 2, 192, 256, 64
    kernel, *_ = getattr(load(), name)(n, features, d, heads)
    q, k, v = normal(heads, n, features) / 16, normal(heads, n, features) / 16, normal(heads, n, d)
    got = kernel(q, k, v)
    return near(got[0] if isinstance(got, tuple) else got, np.tril(np.einsum("hif,hjf->hij", q, k)) @ v, 1e-5)


def window_attention(load, name):
    heads, n, d, window = 2, 192, 128, 64
    kernel, _, _, padded, mask = getattr(load(), name)(n, d, heads, window)
    q, k, v = (normal(heads, n, d) / 8 for _ in range(3))
    ahead = [np.concatenate([np.zeros((heads, padded - n, d), np.float32), x], 1) for x in (k, v)]
    i, j = np.ogrid[0:n, 0:n]
    scores = np.where((j <= i) & (j > i - window), np.einsum("hid,hjd->hij", q, k), -np.inf)
    return near(kernel(q, *ahead, mask), softmax(scores) @ v, 1e-4)


def flash_window(load, name):
    """Heads of attention, each token with so many before it."""
    heads, d, n, window = 2, 64, 2048, 256
    q, k, v = normal(1, heads, d, n), normal(1, heads, d, n), normal(1, heads, n, d)
    got = getattr(load(), name)[1, heads](q, k, v, window_size=(window, -1), mixed_precision=False)
    i, j = np.ogrid[0:n, 0:n]
    scores = np.where((j <= i) & (j >= i - window), np.einsum("bhdi,bhdj->bhij", q, k) / np.sqrt(d), -np.inf)
    return near(got[0] if isinstance(got, (tuple, list)) else got, softmax(scores) @ v, 1e-3)


# ---- state spaces ----

def selective_scan(load, name):
    channels, n, states = 256, 512, 4
    delta, u, a = uniform(channels, n), normal(channels, n), -uniform(channels, states)
    b, c = normal(states, n), normal(states, n)
    out = np.zeros((channels, n))
    for s in range(states):
        state = np.zeros(channels)
        for t in range(n):
            state = np.exp(delta[:, t] * a[:, s]) * state + delta[:, t] * b[s, t] * u[:, t]
            out[:, t] += c[s, t] * state
    return near(getattr(load(), name)(delta, u, a, b, c), out, 1e-4)


def delta_fused(load, name):
    """Two chunks of raw queries and keys, which the kernel normalises."""
    q, k, v, g, beta = _delta(256)
    g, state, ones = g / 16, normal(128, 128) / 8, np.ones((128, 128), np.float32)
    got = getattr(load(), name)(q * 3, k * 2, v, g[:, None], beta[:, None], state, np.tril(ones, -1),
                                np.eye(128, dtype=np.float32), np.tril(ones))
    return near(tuple(got), delta_rule(q / np.sqrt(128), k, v, g, beta, state), 1e-2)
