"""Whole kernels in both spellings of NKI against NumPy in binary64: what models are made of.

SPDX-License-Identifier: MIT
"""
import math
import unittest

import numpy as np

import neuronxcc.nki as older
import neuronxcc.nki.isa as oisa
import neuronxcc.nki.language as onl
import nki
import nki.isa as nisa
import nki.language as nl
from neuronxcc.nki.compiler import psum as psum_memory, sbuf as sbuf_memory


def random(*shape, seed=1, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def softmax_of(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- NKI 0.6.0: instructions write dst ----

@nki.jit
def flash_attention(q, k, v):
    """q, k [heads, d, tokens], v [heads, tokens, d]: causal, tile by tile, with a running maximum and sum."""
    heads, d, tokens = q.shape
    out = nl.ndarray((heads, tokens, d), q.dtype, buffer=nl.shared_hbm)
    scale, tiles = 1 / math.sqrt(d), tokens // 128
    for h in nl.affine_range(heads):
        keys, values = nl.ndarray((d, tokens), nl.bfloat16), nl.ndarray((128, tiles, d), nl.bfloat16)
        nisa.dma_copy(dst=keys, src=k[h])
        nisa.dma_copy(dst=values, src=v[h].rearrange((("t", "p"), "d"), ("p", "t", "d"), {"p": 128}))
        for i in nl.affine_range(tiles):
            queries = nl.ndarray((d, 128), nl.bfloat16)
            nisa.dma_copy(dst=queries, src=q[h, :, nl.ds(i * 128, 128)])
            top, total, acc = nl.ndarray((128, 1), nl.float32), nl.ndarray((128, 1), nl.float32), \
                nl.ndarray((128, d), nl.float32)
            nisa.memset(dst=top, value=-3e38)
            nisa.memset(dst=total, value=0)
            nisa.memset(dst=acc, value=0)
            for j in nl.sequential_range(i + 1):
                scores, seen = nl.ndarray((128, 128), nl.float32, buffer=nl.psum), nl.ndarray((128, 128), nl.float32)
                nisa.nc_matmul(dst=scores, stationary=queries, moving=keys[:, nl.ds(j * 128, 128)])
                nisa.activation(dst=seen, op=nl.copy, data=scores, scale=scale)
                if i == j:
                    nisa.affine_select(dst=seen, pattern=[[-1, 128]], channel_multiplier=1, on_true_tile=seen,
                                       on_false_value=-3e38, cmp_op=nl.greater_equal)
                here, now, shrink = (nl.ndarray((128, 1), nl.float32) for _ in range(3))
                nisa.tensor_reduce(dst=here, op=nl.maximum, data=seen, axis=1)
                nisa.tensor_tensor(dst=now, data1=here, data2=top, op=nl.maximum)
                nisa.tensor_tensor(dst=shrink, data1=top, data2=now, op=nl.subtract)
                nisa.activation(dst=shrink, op=nl.exp, data=shrink)
                nisa.tensor_copy(dst=top, src=now)
                nisa.tensor_scalar(dst=now, data=now, op0=nl.multiply, operand0=-1.0)
                share, sums = nl.ndarray((128, 128), nl.bfloat16), nl.ndarray((128, 1), nl.float32)
                nisa.activation_reduce(dst=share, op=nl.exp, data=seen, reduce_op=nl.add, reduce_res=sums, bias=now)
                nisa.scalar_tensor_tensor(dst=total, data=total, op0=nl.multiply, operand0=shrink, op1=nl.add,
                                          operand1=sums)
                turned, weights = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.psum), nl.ndarray((128, 128),
                                                                                                 nl.bfloat16)
                nisa.nc_transpose(dst=turned, data=share)
                nisa.tensor_copy(dst=weights, src=turned)
                product = nl.ndarray((128, d), nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=product, stationary=weights, moving=values[:, j, :])
                nisa.scalar_tensor_tensor(dst=acc, data=acc, op0=nl.multiply, operand0=shrink, op1=nl.add,
                                          operand1=product)
            nisa.reciprocal(dst=total, data=total)
            made = nl.ndarray((128, d), q.dtype)
            nisa.tensor_scalar(dst=made, data=acc, op0=nl.multiply, operand0=total)
            nisa.dma_copy(dst=out[h, nl.ds(i * 128, 128), :], src=made)
    return out


@nki.jit
def causal_conv1d(x, weight, bias):
    """x [channels, tokens], weight [channels, taps]: each channel for itself, then silu."""
    channels, tokens = x.shape
    taps = weight.shape[1]
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    padded = nl.zeros((channels, tokens + taps - 1), nl.float32)
    w, b, acc = nl.ndarray((channels, taps), nl.float32), nl.ndarray((channels, 1), nl.float32), \
        nl.ndarray((channels, tokens), nl.float32)
    nisa.dma_copy(dst=padded[:, taps - 1:], src=x)
    nisa.dma_copy(dst=w, src=weight)
    nisa.dma_copy(dst=b, src=bias.reshape((channels, 1)))
    for tap in range(taps):
        window = padded[:, nl.ds(tap, tokens)]
        if tap == 0:
            nisa.tensor_scalar(dst=acc, data=window, op0=nl.multiply, operand0=w[:, 0:1])
        else:
            nisa.scalar_tensor_tensor(dst=acc, data=window, op0=nl.multiply, operand0=w[:, tap:tap + 1], op1=nl.add,
                                      operand1=acc)
    nisa.activation(dst=acc, op=nl.silu, data=acc, bias=b)
    nisa.dma_copy(dst=out, src=acc)
    return out


@nki.jit
def top_k(x, k):
    """The k largest of each row, descending, and where they stand: rounds of eight."""
    rows, width = x.shape
    values = nl.ndarray((rows, k), nl.float32, buffer=nl.shared_hbm)
    places = nl.ndarray((rows, k), nl.uint32, buffer=nl.shared_hbm)
    left = nl.ndarray((rows, width), nl.float32)
    nisa.dma_copy(dst=left, src=x)
    for first in range(0, k, 8):
        top, at = nl.ndarray((rows, 8), nl.float32), nl.ndarray((rows, 8), nl.uint32)
        nisa.max8(dst=top, src=left)
        nisa.nc_match_replace8(dst=left, data=left, vals=top, imm=-3e38, dst_idx=at)
        nisa.dma_copy(dst=values[:, first:first + 8], src=top)
        nisa.dma_copy(dst=places[:, first:first + 8], src=at)
    return values, places


@nki.jit
def embedding(tokens, table):
    """Rows of a table, 128 tokens at a time; then the same by vector_select."""
    count, width = tokens.shape[0], table.shape[1]
    out = nl.ndarray((2, count, width), table.dtype, buffer=nl.shared_hbm)
    for first in range(0, count, 128):
        index, rows = nl.ndarray((128, 1), nl.int32), nl.ndarray((128, width), table.dtype)
        nisa.dma_copy(dst=index, src=tokens[first:first + 128].reshape((128, 1)))
        nisa.dma_copy(dst=rows, src=table.ap(pattern=[[width, 128], [1, width]], offset=0, vector_offset=index,
                                             indirect_dim=0))
        nisa.dma_copy(dst=out[0, first:first + 128], src=rows)
        again = nl.ndarray((128, width), table.dtype)
        nisa.dma_copy(dst=again, src=table.vector_select(0, index))
        nisa.dma_copy(dst=out[1, first:first + 128], src=again)
    return out


@nki.jit
def rope(x, cos, sin):
    """x [tokens, heads, d]: halves of d turned by each token's angles, for all heads at once."""
    tokens, heads, d = x.shape
    half = d // 2
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile, made = nl.ndarray((tokens, heads, d), nl.float32), nl.ndarray((tokens, heads, d), nl.float32)
    c, s, t = nl.ndarray((tokens, half), nl.float32), nl.ndarray((tokens, half), nl.float32), \
        nl.ndarray((tokens, heads, half), nl.float32)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=c, src=cos)
    nisa.dma_copy(dst=s, src=sin)
    wide_c, wide_s = (v.expand_dim(1).broadcast(1, heads) for v in (c, s))
    low, high = tile[:, :, 0:half], tile[:, :, half:d]
    nisa.tensor_tensor(dst=made[:, :, 0:half], data1=low, data2=wide_c, op=nl.multiply)
    nisa.tensor_tensor(dst=t, data1=high, data2=wide_s, op=nl.multiply)
    nisa.tensor_tensor(dst=made[:, :, 0:half], data1=made[:, :, 0:half], data2=t, op=nl.subtract)
    nisa.tensor_tensor(dst=made[:, :, half:d], data1=high, data2=wide_c, op=nl.multiply)
    nisa.tensor_tensor(dst=t, data1=low, data2=wide_s, op=nl.multiply)
    nisa.tensor_tensor(dst=made[:, :, half:d], data1=made[:, :, half:d], data2=t, op=nl.add)
    nisa.dma_copy(dst=out, src=made)
    return out


@nki.jit
def gated_mlp(x, gate, up, down):
    """x [128 tokens, d] in bfloat16: (silu(x gate) * (x up)) down; d and the hidden width in blocks of 128."""
    tokens, d = x.shape
    hidden = gate.shape[1]
    out = nl.ndarray((tokens, d), nl.float32, buffer=nl.shared_hbm)
    turned = [nl.ndarray((128, tokens), nl.bfloat16) for _ in range(d // 128)]
    for i, tile in enumerate(turned):
        nisa.dma_transpose(dst=tile, src=x[:, i * 128:(i + 1) * 128])
    result = nl.ndarray((tokens, d), nl.float32, buffer=nl.psum)
    for h in range(hidden // 128):
        g, u = (nl.ndarray((128, tokens), nl.float32, buffer=nl.psum) for _ in range(2))
        for i, tile in enumerate(turned):
            for weight, dst in ((gate, g), (up, u)):
                block = nl.ndarray((128, 128), nl.bfloat16)
                nisa.dma_copy(dst=block, src=weight[i * 128:(i + 1) * 128, h * 128:(h + 1) * 128])
                nisa.nc_matmul(dst=dst, stationary=block, moving=tile)
        active, both = nl.ndarray((128, tokens), nl.float32), nl.ndarray((128, tokens), nl.bfloat16)
        nisa.activation(dst=active, op=nl.silu, data=g)
        nisa.tensor_tensor(dst=both, data1=active, data2=u, op=nl.multiply)
        block = nl.ndarray((128, d), nl.bfloat16)
        nisa.dma_copy(dst=block, src=down[h * 128:(h + 1) * 128, :])
        nisa.nc_matmul(dst=result, stationary=both, moving=block)
    made = nl.ndarray((tokens, d), nl.float32)
    nisa.tensor_copy(dst=made, src=result)
    nisa.dma_copy(dst=out, src=made)
    return out


@nki.jit
def moe_dispatch(x, router, experts):
    """x [128, d]: each token by its best expert of x router, times the expert's probability; experts [e, d, d]. Tokens
    go to their experts' lists by running sums, and come back from there."""
    tokens, d = x.shape
    count = router.shape[1]
    out = nl.zeros((tokens, d), nl.float32, buffer=nl.shared_hbm)
    lists = nl.full((count * tokens, d), 0.0, nl.float32, buffer=nl.private_hbm)
    tile, turned, w = nl.ndarray((tokens, d), nl.float32), nl.ndarray((d, tokens), nl.float32), \
        nl.ndarray((d, count), nl.float32)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_transpose(dst=turned, src=x)
    nisa.dma_copy(dst=w, src=router)
    logits = nl.ndarray((tokens, count), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=logits, stationary=turned, moving=w)
    top, sums, shares = nl.ndarray((tokens, 1), nl.float32), nl.ndarray((tokens, 1), nl.float32), \
        nl.ndarray((tokens, count), nl.float32)
    nisa.tensor_reduce(dst=top, op=nl.maximum, data=logits, axis=1, negate=True)
    nisa.activation(dst=shares, op=nl.exp, data=logits, bias=top, reduce_op=nl.add, reduce_res=sums,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)
    chosen, place = nl.ndarray((tokens, count), nl.float32), nl.ndarray((tokens, 1), nl.float32)
    nisa.tensor_scalar(dst=chosen, data=shares, op0=nl.equal, operand0=1.0)
    # How many tokens before this one have the same expert: a product with a triangle of ones.
    ones, triangle = nl.full((tokens, tokens), 1.0, nl.float32), nl.ndarray((tokens, tokens), nl.float32)
    nisa.affine_select(dst=triangle, pattern=[[1, tokens]], channel_multiplier=-1, on_true_tile=ones,
                       on_false_value=0.0, cmp_op=nl.greater, offset=0)
    before, index = nl.ndarray((tokens, count), nl.float32, buffer=nl.psum), nl.ndarray((tokens, count), nl.float32)
    nisa.nc_matmul(dst=before, stationary=triangle, moving=chosen)
    first = nl.ndarray((tokens, count), nl.int32)
    nisa.iota(dst=first, pattern=[[tokens, count]], offset=0, channel_multiplier=0)
    nisa.tensor_tensor(dst=index, data1=before, data2=first, op=nl.add)
    nisa.tensor_tensor(dst=index, data1=index, data2=chosen, op=nl.multiply)
    nisa.tensor_reduce(dst=place, op=nl.add, data=index, axis=1)
    rows = nl.ndarray((tokens, 1), nl.int32)
    nisa.tensor_copy(dst=rows, src=place)
    nisa.dma_copy(dst=lists.vector_select(0, rows), src=tile)
    done = nl.ndarray((count * tokens, d), nl.float32, buffer=nl.private_hbm)
    for e in range(count):
        mine, weight, made = nl.ndarray((d, tokens), nl.float32), nl.ndarray((d, d), nl.float32), \
            nl.ndarray((tokens, d), nl.float32)
        nisa.dma_transpose(dst=mine, src=lists[e * tokens:(e + 1) * tokens, :])
        nisa.dma_copy(dst=weight, src=experts[e])
        product = nl.ndarray((tokens, d), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=mine, moving=weight)
        nisa.tensor_copy(dst=made, src=product)
        nisa.dma_copy(dst=done[e * tokens:(e + 1) * tokens, :], src=made)
    back = nl.ndarray((tokens, d), nl.float32)
    nisa.dma_copy(dst=back, src=done.vector_select(0, rows))
    nisa.reciprocal(dst=sums, data=sums)
    nisa.tensor_scalar(dst=back, data=back, op0=nl.multiply, operand0=sums)
    nisa.dma_copy(dst=out, src=back)
    return out


@nki.jit
def selective_scan(x, delta, a, b, c):
    """h = exp(delta a) h + delta b x for each state, summed with c: x, delta [channels, tokens], a [channels, states],
    b, c [states, tokens]."""
    channels, tokens = x.shape
    states = a.shape[1]
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    u, dt, decays, total = nl.ndarray((channels, tokens), nl.float32), nl.ndarray((channels, tokens), nl.float32), \
        nl.ndarray((channels, states), nl.float32), nl.zeros((channels, tokens), nl.float32)
    nisa.dma_copy(dst=u, src=x)
    nisa.dma_copy(dst=dt, src=delta)
    nisa.dma_copy(dst=decays, src=a)
    nisa.tensor_tensor(dst=u, data1=u, data2=dt, op=nl.multiply)
    for n in nl.sequential_range(states):
        bs, cs, decay, h = (nl.ndarray((channels, tokens), nl.float32) for _ in range(4))
        nisa.dma_copy(dst=bs, src=b[n:n + 1, :].broadcast(0, channels))
        nisa.dma_copy(dst=cs, src=c[n:n + 1, :].broadcast(0, channels))
        nisa.activation(dst=decay, op=nl.exp, data=dt, scale=decays[:, n:n + 1])
        nisa.tensor_tensor(dst=bs, data1=bs, data2=u, op=nl.multiply)
        nisa.tensor_tensor_scan(dst=h, data0=decay, data1=bs, initial=0.0, op0=nl.multiply, op1=nl.add)
        nisa.tensor_tensor(dst=h, data1=h, data2=cs, op=nl.multiply)
        nisa.tensor_tensor(dst=total, data1=total, data2=h, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def loops_at_run_time(x, steps):
    """x doubled as often as a tensor says, by a register; then a slice from where another says."""
    out = nl.ndarray((2, 16, 8), nl.float32, buffer=nl.shared_hbm)
    tile, limit = nl.ndarray((16, 32), nl.float32), nl.ndarray((1, 2), nl.int32)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=limit, src=steps)
    register = nisa.register_alloc()
    nisa.register_load(register, limit[0:1, 0:1])

    def double(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nl.fori_loop(0, register, double)
    nisa.dma_copy(dst=out[0], src=tile[:, 0:8])
    nisa.dma_copy(dst=out[1], src=tile.ap(pattern=[[32, 16], [1, 8]], offset=0, scalar_offset=limit[0:1, 1:2],
                                          indirect_dim=1))
    return out


# ---- the older spelling: instructions return their results ----

@older.jit
def older_flash(q, k, v):
    """The same attention, without a mask, of blocks that mod_alloc places, two of keys and of values at a time."""
    d, tokens = q.shape
    tiles = tokens // 128
    out = onl.ndarray((tokens, d), dtype=q.dtype, buffer=onl.shared_hbm)
    keys = onl.ndarray((tiles, onl.par_dim(d), 128), dtype=onl.bfloat16,
                       buffer=sbuf_memory.mod_alloc(base_addr=0, num_free_tiles=(2,)))
    values = onl.ndarray((tiles, onl.par_dim(128), d), dtype=onl.bfloat16,
                         buffer=sbuf_memory.mod_alloc(base_addr=512, num_free_tiles=(2,)))
    for i in onl.affine_range(tiles):
        query = onl.load(q[:, onl.ds(i * 128, 128)], dtype=onl.bfloat16)
        top = onl.full((onl.par_dim(128), 1), -1e30, dtype=onl.float32)
        total, acc = onl.zeros((onl.par_dim(128), 1), onl.float32), onl.zeros((onl.par_dim(128), d), onl.float32)
        scores = onl.ndarray((tiles, onl.par_dim(128), 128), dtype=onl.float32,
                             buffer=psum_memory.mod_alloc(base_bank=0, num_bank_tiles=(2,)))
        for j in onl.sequential_range(tiles):
            keys[j], values[j] = onl.load(k[:, onl.ds(j * 128, 128)]), onl.load(v[onl.ds(j * 128, 128), :])
            scores[j] = oisa.nc_matmul(query, keys[j])
            now = onl.maximum(top, onl.max(scores[j], axis=1))
            shrink, share = onl.exp(top - now), oisa.activation(op=onl.exp, data=scores[j], bias=-now)
            total[...] = total * shrink + onl.sum(share, axis=1)
            acc[...] = acc * shrink + onl.matmul(onl.copy(share, dtype=onl.bfloat16), values[j])
            top[...] = now
        onl.store(out[onl.ds(i * 128, 128), :], acc / total)
    return out


@older.jit
def older_banded_softmax(x, reach):
    """Softmax over a band around the diagonal, by masks; elsewhere 0."""
    rows, width = x.shape
    out = onl.ndarray(x.shape, dtype=x.dtype, buffer=onl.shared_hbm)
    i, j = onl.mgrid[0:rows, 0:width]
    band = (i - j <= reach) & (j - i <= reach)
    tile = onl.load(x[i, j], mask=band)
    top = onl.max(tile, axis=1, mask=band)
    made = onl.zeros((rows, width), dtype=onl.float32)
    made[i, j] = onl.exp(onl.subtract(tile, top, mask=band), mask=band)
    onl.store(out[i, j], onl.divide(made, onl.sum(made, axis=1)))
    return out


@older.jit
def older_depthwise(image, weight):
    """image [channels, h, w], weight [channels, 3, 3]: a convolution whose border is what a mask leaves out."""
    channels, h, w = image.shape
    out = onl.ndarray(image.shape, dtype=image.dtype, buffer=onl.shared_hbm)
    p, a, b = onl.mgrid[0:channels, 0:h, 0:w]
    tile, taps = onl.load(image), onl.load(weight.reshape((channels, 9)))
    acc = onl.zeros((onl.par_dim(channels), h, w), dtype=onl.float32)
    for y in range(3):
        for x in range(3):
            down, right = a + y - 1, b + x - 1
            inside = (down >= 0) & (down < h) & (right >= 0) & (right < w)
            acc[p, a, b] = oisa.tensor_tensor(acc, onl.multiply(tile[p, down, right], taps[:, 3 * y + x], mask=inside),
                                              np.add, mask=inside)
    onl.store(out, acc)
    return out


@older.jit
def older_largest_over_a_loop(x):
    """The largest of each row over blocks of columns, by loop_reduce; and how many are positive."""
    rows, width = x.shape
    out = onl.ndarray((rows, 2), dtype=onl.float32, buffer=onl.shared_hbm)
    top, count = onl.full((rows, 1), -1e30, dtype=onl.float32), onl.zeros((rows, 1), dtype=onl.float32)
    for block in onl.affine_range(width // 64):
        tile = onl.load(x[:, onl.ds(block * 64, 64)])
        top[...] = onl.loop_reduce(onl.max(tile, axis=1), op=np.max, loop_indices=[block])
        count += onl.sum(onl.greater(tile, 0.0, dtype=onl.float32), axis=1)
    onl.store(out[:, 0:1], top)
    onl.store(out[:, 1:2], count)
    return out


@older.jit
def older_tiles_in_turn(x):
    """Three tiles in room for two: the third lies where the first was. Another way to say so, and one tile for each."""
    out = onl.ndarray((3,) + tuple(x.shape), dtype=x.dtype, buffer=onl.shared_hbm)
    ways = (sbuf_memory.mod_alloc(base_addr=64, num_free_tiles=(2,)),
            sbuf_memory.alloc(lambda block, partitions, size: (32, 4096 + block[0] % 2 * size)),
            sbuf_memory.auto_alloc())
    for way, buffer in enumerate(ways):
        tiles = onl.ndarray((3, onl.par_dim(x.shape[1]), x.shape[2]), dtype=x.dtype, buffer=buffer)
        for i in range(3):
            tiles[i] = onl.load(x[i])
        for i in range(3):
            onl.store(out[way, i], tiles[i])
    return out


# ---- tests ----

class Kernels(unittest.TestCase):
    def near(self, got, want, allowed=1e-4):
        np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=allowed, atol=allowed)

    def test_flash_attention(self):
        q, k, v = random(2, 64, 256), random(2, 64, 256, seed=2), random(2, 256, 64, seed=3)
        scores = np.einsum("hdi,hdj->hij", q, k, dtype=np.float64) / 8
        scores[:, np.triu(np.ones((256, 256), bool), 1)] = -np.inf
        self.near(flash_attention(q, k, v), softmax_of(scores) @ v, 3e-2)

    def test_causal_conv1d(self):
        x, w, b = random(128, 100), random(128, 4, seed=2), random(128, seed=3)
        padded = np.pad(x.astype(np.float64), ((0, 0), (3, 0)))
        y = sum(padded[:, t:t + 100] * w[:, t:t + 1] for t in range(4)) + b[:, None]
        self.near(causal_conv1d(x, w, b), y / (1 + np.exp(-y)), 1e-3)

    def test_top_k(self):
        x = random(100, 300)
        values, places = top_k(x, 24)
        order = np.argsort(-x, axis=1, kind="stable")[:, :24]
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
        np.testing.assert_array_equal(places, order)

    def test_embedding(self):
        tokens, table = np.random.default_rng(4).integers(0, 500, 256).astype(np.int32), random(500, 48)
        for got in embedding(tokens, table):
            np.testing.assert_array_equal(got, table[tokens])

    def test_rope(self):
        x, angles = random(128, 4, 32), random(128, 16, seed=2)
        c, s = np.cos(angles), np.sin(angles)
        low, high = x[:, :, :16].astype(np.float64), x[:, :, 16:].astype(np.float64)
        want = np.concatenate([low * c[:, None] - high * s[:, None], high * c[:, None] + low * s[:, None]], 2)
        self.near(rope(x, c, s), want)

    def test_gated_mlp(self):
        x, g, u, d = (random(*s, seed=i, scale=0.1) for i, s in enumerate(((128, 256), (256, 384), (256, 384),
                                                                           (384, 256))))
        narrow = [nki.tensor(t, "bfloat16") for t in (x, g, u, d)]
        x, g, u, d = (t.numpy().astype(np.float64) for t in narrow)
        gate = x @ g
        self.near(gated_mlp(*narrow), (gate / (1 + np.exp(-gate)) * (x @ u)) @ d, 1e-2)

    def test_moe_dispatch(self):
        x, router, experts = random(128, 64), random(64, 8, seed=2), random(8, 64, 64, seed=3, scale=0.2)
        shares = softmax_of(x.astype(np.float64) @ router)
        best = shares.argmax(1)
        want = np.einsum("td,tdf->tf", x.astype(np.float64), experts[best]) * shares.max(1, keepdims=True)
        self.near(moe_dispatch(x, router, experts), want, 1e-3)

    def test_selective_scan(self):
        x, dt, a = random(64, 50), np.abs(random(64, 50, seed=2)) * np.float32(0.2), -np.abs(random(64, 4, seed=3))
        b, c = random(4, 50, seed=4), random(4, 50, seed=5)
        h, want = np.zeros((64, 4)), np.zeros((64, 50))
        for t in range(50):
            h = np.exp(dt[:, t:t + 1].astype(np.float64) * a) * h + (dt[:, t] * x[:, t])[:, None] * b[:, t]
            want[:, t] = (h * c[:, t]).sum(1)
        self.near(selective_scan(x, dt, a, b, c), want, 1e-3)

    def test_loops_at_run_time(self):
        x = random(16, 32)
        got = loops_at_run_time(x, np.int32([[3, 5]]))
        np.testing.assert_array_equal(got, np.stack([8 * x[:, :8], 8 * x[:, 5:13]]))

    def test_older_flash(self):
        q, k, v = random(64, 512, scale=0.4), random(64, 512, seed=2, scale=0.4), random(512, 64, seed=3)
        self.near(older_flash(q, k, v), softmax_of(q.astype(np.float64).T @ k) @ v, 3e-2)

    def test_older_banded_softmax(self):
        x = random(128, 100)
        i, j = np.indices(x.shape)
        band = abs(i - j) <= 9
        rows = band.any(1)
        y = np.where(band, x.astype(np.float64), -np.inf)[rows]
        got = older_banded_softmax(x[rows], 9)
        self.near(got, softmax_of(y))

    def test_older_depthwise(self):
        x, w = random(32, 9, 11), random(32, 3, 3, seed=2)
        padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
        want = sum(padded[:, y:y + 9, z:z + 11] * w[:, y, z][:, None, None] for y in range(3) for z in range(3))
        self.near(older_depthwise(x, w), want)

    def test_older_largest_over_a_loop(self):
        x = random(100, 256)
        np.testing.assert_array_equal(older_largest_over_a_loop(x), np.stack([x.max(1), (x > 0).sum(1)], 1))

    def test_tiles_in_turn(self):
        x = random(3, 32, 16)
        got = older_tiles_in_turn(x)
        for way in range(2):
            np.testing.assert_array_equal(got[way], x[[2, 1, 2]])
        np.testing.assert_array_equal(got[2], x)

    def test_places_that_do_not_exist(self):
        def kernel(x, buffer):
            onl.store(x, onl.copy(onl.load(x)))
            tile = onl.ndarray((32, 16), dtype=onl.float32, buffer=buffer)
            tile[...] = onl.load(x)
        for place, why in (({"base_addr": 1 << 20}, "128 partitions of"), ({"base_addr": -4}, "byte -4"),
                           ({"base_addr": 0, "base_partition": 120}, "partitions from 120"),
                           ({"base_addr": 224 * 1024 - 60}, "128 partitions of 229376")):
            with self.subTest(place=place), self.assertRaisesRegex(nki.Error, why):
                older.simulate_kernel(older.jit(kernel), random(32, 16), sbuf_memory.mod_alloc(**place))


if __name__ == "__main__":
    unittest.main()
