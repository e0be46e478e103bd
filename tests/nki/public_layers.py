"""Inputs and right results of public kernels, as in public_cases.py: layers of a decoder in float32 on one core or two,
kernels in the cells of notebooks, one product in many shapes of its loops.

SPDX-License-Identifier: MIT
"""
import numpy as np

from public_cases import near, normal, rounded, softmax, uniform
from public_more import rms
from public_wider import stub


# ---- layers of a decoder ----

HEADS, DIM = 6, 256  # four of queries, then keys, then values


def turned_in_part(load, name):
    """The first 64 of 256 numbers of queries and keys turn by their positions."""
    tokens = 2
    x, angle = normal(HEADS, 1, tokens, DIM), uniform(tokens, 32) * 6
    cos, sin = (np.concatenate([turn, turn], -1).astype(np.float32) for turn in (np.cos(angle), np.sin(angle)))
    want = x.copy()
    first = x[:-1, 0, :, :64]
    half = np.concatenate([-first[..., 32:], first[..., :32]], -1)
    want[:-1, 0, :, :64] = first * cos + half * sin
    return near(getattr(load(), name)[1](x, cos, sin), want, 1e-5)


def norms_of_heads(load, name):
    """Queries and keys by a weight each; values as they are."""
    x, q, k = normal(HEADS, 1, 2, DIM), normal(DIM), normal(DIM)
    want = x.copy()
    want[:4], want[4:5] = rms(x[:4]) * q, rms(x[4:5]) * k
    return near(getattr(load(), name)[1](x, q, k), want, 3e-5)


def norm_in_two_parts(load, name):
    """[128, tokens, 16], of which either half is that of a core."""
    x, gamma = normal(1, 2, 2048), 1 + normal(1, 2048) / 50
    want = (rms(x) * gamma).reshape(2, 2, 128, 8).transpose(2, 0, 1, 3).reshape(128, 2, 16)
    return near(getattr(load(), name)[2](x, gamma), want, 3e-5)


def norm_and_product(load, name):
    x, w, gamma = normal(1, 2, 2048), normal(2048, HEADS * DIM), normal(1, 2048)
    return near(getattr(load(), name)[1](x, w, gamma), (rms(x) * gamma)[0] @ w, 1e-4)


def product_of_heads(load, name):
    """On two cores, each with its heads."""
    x, w = normal(2, 1024), normal(1024, 2048)
    return near(getattr(load(), name)[2](x, w), x @ w, 1e-4)


def gated_product_of_heads(load, name):
    x, w, gate = normal(2, 1024), normal(1024, 2048), normal(2, 1024)
    return near(getattr(load(), name)[1](x, w, gate), x / (1 + np.exp(-gate)) @ w, 1e-4)


def product_of_heads_bfloat16(load, name):
    import nki
    x, w = rounded(normal(2, 1024)), rounded(normal(1024, 2048))
    return near(getattr(load(), name)[2](nki.tensor(x, "bfloat16"), nki.tensor(w, "bfloat16")), x @ w, 1e-2)


def _attended(tokens=2, length=256, heads=4):
    """Queries [256, heads of tokens], keys, values, and what the last tokens see of them."""
    q, k, v = normal(tokens, heads, DIM), normal(length, DIM), normal(length, DIM)
    ahead = np.arange(length)[None, :] > length - tokens + np.arange(tokens)[:, None]
    scores = np.where(ahead, -np.inf, np.einsum("thd,jd->htj", q, k) / 16)
    want = (softmax(scores) @ v).transpose(2, 0, 1).reshape(DIM, heads * tokens)
    return q.transpose(2, 1, 0).reshape(DIM, heads * tokens), k, v, ahead, want


def attention_of_the_last(load, name):
    q, k, v, _, want = _attended()
    return near(getattr(load(), name)[2](q, np.ascontiguousarray(k.T), v, 2), want, 1e-4)


def attention_with_a_mask(load, name):
    """Keys and values before and now apart."""
    q, k, v, ahead, want = _attended()
    mask = np.ascontiguousarray(np.broadcast_to(~ahead.T[:, None, None, :], (256, 1, 4, 2))).astype(np.uint8)
    turned = np.ascontiguousarray(k.T)
    return near(getattr(load(), name)[1](q / 16, np.ascontiguousarray(turned[:, -2:]), turned[None, None],
                                         v[None, None], v[None, None, -2:], mask, 2), want, 1e-4)


# ---- cells of notebooks, and products ----

def sum_of_programs(load, name):
    """A grid of programs, each with a tile."""
    a, b = normal(256, 1024), normal(256, 1024)
    return near(getattr(load(), name)[2, 2](a, b), a + b, 0)


def exponential(load, name):
    x = uniform(100, 512)
    return near(getattr(load(), name)(x), np.exp(x), 2e-5)


def into_its_output(load, name):
    """An elementwise kernel of a release whose kernels returned nothing."""
    import neuronxcc.nki as older
    kernel = getattr(load(), name)
    a, b, out = normal(128, 512), normal(128, 512), np.zeros((128, 512), np.float32)
    older.simulate_kernel(older.jit(kernel, mode="simulation"), a, b, out)
    return near(out, a + b, 0)


def small_product(load, name):
    a, b = normal(128, 64), normal(128, 512)
    return near(getattr(load(), name)(a, b), a.T @ b, 1e-5)


def product_in_loops(load, name):
    import nki
    stub("nkigym"), stub("nkigym.synthesis", simulate_fp32=None)
    a, b = rounded(normal(2048, 2048)), rounded(normal(2048, 2048))
    return near(getattr(load(), name)(nki.tensor(a, "bfloat16"), nki.tensor(b, "bfloat16")), a.T @ b, 1e-2)


def transposed_and_product(load, name):
    stub("torch_xla")
    x, w = normal(256, 128), normal(128, 64)
    return near(getattr(load(), name)(x, w), x @ w, 1e-5)
