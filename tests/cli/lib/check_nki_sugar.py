"""Kernels in NKI's older spelling, where instructions return their results, against NumPy: norms, softmax, pooling, a
scan, attention, masks, blocks of tiles, loops that add up.

Each kernel is written from what the documentation says of these names. References are computed in binary64.
SPDX-License-Identifier: MIT
"""
import contextlib
import io
import math
import unittest

import numpy as np

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
from neuronxcc.nki.language import par_dim
from neuronxcc.starfish.support.util import allclose
from nki import simulate


def random(*shape, seed=1, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ---- kernels ----

@nki.jit
def layer_norm(x, gamma, beta):
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_one, i_f = nl.arange(128)[:, None], nl.arange(1)[:, None], nl.arange(width)[None, :]
    weight, shift = nl.load(gamma.reshape((1, width))[i_one, i_f]), nl.load(beta.reshape((1, width))[i_one, i_f])
    for i in nl.affine_range((rows + 127) // 128):
        mask = i * 128 + i_p < rows
        tile = nl.load(x[i * 128 + i_p, i_f], mask=mask)
        mean = nl.sum(tile, axis=[1], mask=mask) / width
        off = nl.subtract(tile, mean, mask=mask)
        spread = nl.mean(nl.square(off, mask=mask), axis=[1], mask=mask)
        made = nl.multiply(off, nl.rsqrt(spread + 1e-5), mask=mask)
        made = made * weight.broadcast_to((128, width)) + shift.broadcast_to((128, width))
        nl.store(out[i * 128 + i_p, i_f], value=made, mask=mask)
    return out


@nki.jit
def composites(x, weight):
    """nl.layer_norm, nl.rms_norm, nl.softmax, one after the other into one tensor."""
    rows, width = x.shape
    out = nl.ndarray((3, rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, w = nl.load(x), nl.load(weight).broadcast_to((rows, width))
    nl.store(out[0], nl.layer_norm(tile, gamma=w, axis=[1]))
    nl.store(out[1], nl.rms_norm(tile, w, axis=[1], n=width))
    nl.store(out[2], nl.softmax(tile, axis=[1]))
    return out


@nki.jit
def rms_norm(x, weight):
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ix, iw, iy = nl.arange(128)[:, None], nl.arange(1)[:, None], nl.arange(width)[None, :]
    w = nl.load(weight.reshape((1, width))[iw, iy])
    for i in nl.affine_range((rows + 127) // 128):
        tile = nl.load(x[i * 128 + ix, iy], mask=(i * 128 + ix < rows))
        total = nl.sum(nl.square(tile), axis=[1])
        mean = total / width
        root = nl.rsqrt(mean)
        made = nl.multiply(tile, root)
        made[...] = nl.multiply(made, w.broadcast_to((128, width)), mask=(i * 128 + ix < rows))
        nl.store(out[i * 128 + ix, iy], value=made, mask=(i * 128 + ix < rows))
    return out


@nki.jit
def softmax(x):
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile: nt.tensor[128, width] = nl.load(x)
    top = nisa.tensor_reduce(np.max, tile, axis=(1,), negate=True)
    total = nl.ndarray((par_dim(rows), 1), dtype=nl.float32)
    wide = nisa.activation_reduce(nl.exp, tile, bias=top, reduce_op=np.add, reduce_res=total[:, 0])
    nl.store(out, nisa.tensor_scalar(wide, np.multiply, nisa.reciprocal(total)))
    return out


@nki.jit
def scan(decay, inputs, readout):
    """h = decay h + inputs along the last axis, times a row that all channels share, summed over states."""
    states, channels, steps = decay.shape
    out = nl.ndarray((channels, steps), dtype=decay.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((channels // 128, par_dim(128), steps), dtype=nl.float32)
    for n in nl.affine_range(states):
        row = nl.load(readout[n:n + 1, 0:steps])
        for c in nl.affine_range(channels // 128):
            here = slice(c * 128, c * 128 + 128)
            first = nl.zeros((128, 1), dtype=nl.float32)
            for half in nl.static_range(2):
                at = slice(half * steps // 2, (half + 1) * steps // 2)
                h = nisa.tensor_tensor_scan(nl.load(decay[n, here, at]), nl.load(inputs[n, here, at]), initial=first,
                                            op0=np.multiply, op1=np.add)
                first[...] = h[0:128, steps // 2 - 1]
                total[c, 0:128, at] += h * row[0:1, at].broadcast_to((128, steps // 2))
    for c in nl.affine_range(channels // 128):
        nl.store(out[c * 128:(c + 1) * 128, :], total[c])
    return out


@nki.jit
def average_pool(x, size):
    channels, height, width = x.shape
    out = nl.ndarray((channels, height // size, width // size), dtype=x.dtype, buffer=nl.shared_hbm)
    p, i, a, j, b = nl.mgrid[0:channels, 0:height // size, 0:size, 0:width // size, 0:size]
    tile = nl.load(x)
    nl.store(out, value=nl.sum(tile[p, size * i + a, size * j + b], axis=[2, 4]) / (size * size))
    return out


@nki.jit
def attention(q, k, v):
    """Of q, k [d, tokens], v [tokens, d], a causal mask, tile by tile with a running maximum and sum."""
    d, tokens = q.shape
    out = nl.ndarray((tokens, d), dtype=q.dtype, buffer=nl.shared_hbm)
    keys, values = nl.load(k), nl.ndarray((tokens // 128, par_dim(128), d), dtype=v.dtype)
    for j in nl.affine_range(tokens // 128):
        values[j] = nl.load(v[nl.ds(j * 128, 128), :])
    for i in nl.affine_range(tokens // 128):
        queries = nl.load(q[:, nl.ds(i * 128, 128)])
        top = nl.full((par_dim(128), 1), -1e30, dtype=nl.float32)
        total, acc = nl.zeros((par_dim(128), 1), nl.float32), nl.zeros((par_dim(128), d), nl.float32)
        for j in nl.sequential_range(i + 1):
            scores = nl.ndarray((par_dim(128), 128), dtype=nl.float32, buffer=nl.psum)
            scores[...] = nisa.nc_matmul(queries, keys[:, nl.ds(j * 128, 128)])
            iq, ik = nl.mgrid[0:128, 0:128]
            seen = nisa.affine_select(pred=(i * 128 + iq >= j * 128 + ik),
                                      on_true_tile=scores[iq, ik], on_false_value=-1e30)
            now = nl.maximum(top, nl.max(seen, axis=1))
            shrink = nl.exp(top - now)
            share = nisa.activation(op=nl.exp, data=seen, bias=now * -1.0)
            total[...] = total * shrink + nl.sum(share, axis=1)
            product = nl.zeros((par_dim(128), d), nl.float32, buffer=nl.psum)
            product += nl.matmul(share, values[j])
            acc[...] = nisa.scalar_tensor_tensor(data=acc, op0=np.multiply, operand0=shrink, op1=np.add,
                                                 operand1=product)
            top[...] = nl.copy(now)
        nl.store(out[nl.ds(i * 128, 128), :], acc / total)
    return out


@nki.jit
def blocked_product(a, b):
    """a [K, M] turned times b [K, N]: PSUM over a block of K, loop_reduce over blocks."""
    rows, m = a.shape
    n = b.shape[1]
    out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((m // 128, par_dim(128), n), dtype=nl.float32)
    for outer in nl.affine_range(rows // 256):
        for i in nl.affine_range(m // 128):
            part = nl.zeros((128, n), dtype=nl.float32, buffer=nl.psum)
            for inner in nl.affine_range(2):
                at = nl.ds(outer * 256 + inner * 128, 128)
                part += nisa.nc_matmul(nl.load(a[at, nl.ds(i * 128, 128)]), nl.load(b[at, :]))
            total[i] = nl.loop_reduce(part, op=np.add, loop_indices=[outer], dtype=nl.float32)
    for i in nl.affine_range(m // 128):
        nl.store(out[nl.ds(i * 128, 128), :], value=total[i])
    return out


@nki.jit
def elementwise(x, y):
    """Operators and functions in the order in which `elementwise_reference` lists them."""
    out = nl.ndarray((10,) + tuple(x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    made = [a + b * 2.0, 1.0 - a, a / b, -a, nl.minimum(a, 0.5), nl.where(nl.greater(a, b), a, b), nl.abs(a),
            a[:, 0:1] * b, nl.power(b, 2.0), nl.reciprocal(b)]
    for i, tile in enumerate(made):
        nl.store(out[i], value=tile)
    return out


def elementwise_reference(a, b):
    return [a + b * 2, 1 - a, a / b, -a, np.minimum(a, 0.5), np.maximum(a, b), np.abs(a), a[:, 0:1] * b, b ** 2, 1 / b]


@nki.jit
def add_programs(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ix = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    iy = nl.program_id(1) * 256 + nl.arange(256)[None, :]
    nl.store(out[ix, iy], value=nl.load(a[ix, iy]) + nl.load(b[ix, iy]))
    return out


@nki.jit
def functions(x):
    """Every function of nki.language of one argument in FUNCTIONS, in order."""
    out = nl.ndarray((len(FUNCTIONS),) + tuple(x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i, name in enumerate(FUNCTIONS):
        nl.store(out[i], value=getattr(nl, name)(tile))
    return out


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "arctan": np.arctan, "sigmoid": sigmoid, "square": np.square,
    "silu": lambda x: x * sigmoid(x), "softplus": lambda x: np.log1p(np.exp(x)), "relu": lambda x: np.maximum(x, 0),
    "abs": np.abs, "sign": np.sign, "negative": np.negative, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "tan": np.tan, "erf": np.vectorize(math.erf),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2,
}


@nki.jit
def reductions(x):
    """[P, A, B] along both free axes, along the last, and the last row to all partitions."""
    parts, a, b = x.shape
    out = nl.ndarray((parts, 6 + a), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    sums = nl.ndarray((par_dim(parts), 6 + a), dtype=nl.float32)
    for i, f in enumerate((nl.sum, nl.max, nl.min, nl.mean, nl.var, nl.prod)):
        sums[:, i] = f(tile, axis=[1, 2])
    sums[:, 6:6 + a] = nl.sum(tile, axis=2)
    nl.store(out, value=sums)
    return out


@nki.jit
def rows_by_formula(x):
    """Row i // 2 of x for row i, as a resize to the nearest does; indices that no pattern follows."""
    rows, width = x.shape
    out = nl.ndarray((2 * rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:2 * rows, 0:width]
    nl.store(out[i_p, i_f], value=nl.load(x[i_p // 2, i_f]))
    return out


@nki.jit
def one_row_to_all(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, four = nl.load(x), nl.ndarray((par_dim(128), x.shape[1]), dtype=x.dtype)
    four[32:34], four[0:1], four[64:65] = tile[64:66], nl.maximum(tile[96:97], tile[64:65]), nl.copy(tile[64:65])
    nl.store(out, value=four[32:33, :].broadcast_to(tuple(x.shape)))
    nl.store(out[0:1], value=four[0:1])
    return out


@nki.jit
def spread(x, way):
    """Row 0 or 32 of x [128, N] for all, by way of several places."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, shape = nl.load(x), tuple(x.shape)
    if way == "new":
        nl.store(out, value=tile[0:1].broadcast_to(shape))
    elif way == "place":
        place = nl.ndarray((par_dim(128), shape[1]), dtype=x.dtype)
        place[...] = tile[32:33].broadcast_to(shape)
        nl.store(out, value=place)
    elif way == "itself":
        tile[...] = tile[0:1].broadcast_to(shape)
        nl.store(out, value=tile)
    elif way == "parts":
        tile[:, 1:] = tile[32:33, 1:].broadcast_to((128, shape[1] - 1))
        nl.store(out, value=tile)
    elif way == "psum":
        sums = nl.copy(tile)
        held = nl.ndarray((par_dim(128), shape[1]), dtype=x.dtype, buffer=nl.psum)
        held[...] = sums
        nl.store(out, value=held[0:1].broadcast_to(shape))
    elif way == "axes":
        deep = tile[0:1].reshape((1, 2, 1, shape[1] // 2)).broadcast_to((128, 2, 3, shape[1] // 2))
        nl.store(out, value=nl.copy(deep[:, :, 1, :]).reshape(shape))
    return out


@nki.jit
def bfloat16_and_masks(x):
    """Rounded to bfloat16, twice as much where the column is even, of the first 100 rows."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x, dtype=nl.bfloat16)
    i_p, i_f = nl.mgrid[0:128, 0:x.shape[1]]
    even = nl.ndarray((par_dim(128), x.shape[1]), dtype=nl.float32)
    even[...] = nl.copy(tile)
    j_p, j_f = nl.mgrid[0:128, 0:x.shape[1] // 2]
    even[j_p, 2 * j_f] = tile[j_p, 2 * j_f] * 2.0
    nl.store(out[i_p, i_f], value=0.0)
    nl.store(out[i_p, i_f], value=even, mask=(i_p < 100) & (i_f >= 3))
    return out


@nki.jit
def rows_by_tile(x, order):
    """Rows in the order that a tile of numbers tells: gathered into out[0], scattered to out[1]."""
    rows, width = x.shape
    out = nl.ndarray((2, rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(rows)[:, None], nl.arange(width)[None, :]
    index = nl.load(order)
    nl.store(out[0], value=nl.load(x[index[i_p, 0], i_f]))
    scattered = out[1]
    nl.store(scattered[index[i_p, 0], i_f], value=nl.load(x))
    return out


@nki.jit
def masks_of_loop_variables(x):
    """x turned times x, once for each of the iterations whose number is below 3, of four."""
    width = x.shape[1]
    out = nl.ndarray((width, width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, total = nl.load(x), nl.zeros((par_dim(width), width), nl.float32, buffer=nl.psum)
    for i in nl.affine_range(4):
        total += nisa.nc_matmul(tile, tile, mask=i < 3)
    result = nl.ndarray((par_dim(width), width), dtype=nl.float32)
    result[...] = nl.copy(total, mask=True)
    result[...] = nl.copy(total * 9.0, mask=3 < 2)
    nl.store(out, value=result)
    return out


@nki.jit
def any_comparison(x):
    """x where twice the column is at most the partition, else -1, in bfloat16; where it differs from 5, else 0."""
    out = nl.ndarray((2,) + tuple(x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    p, f = nl.mgrid[0:x.shape[0], 0:x.shape[1]]
    nl.store(out[0], value=nl.copy(nisa.affine_select(pred=p >= 2 * f, on_true_tile=tile, on_false_value=-1.0,
                                                      dtype=nl.bfloat16), dtype=nl.float32))
    nl.store(out[1], value=nisa.affine_select(pred=f != 5, on_true_tile=tile, on_false_value=0.0))
    return out


@nki.jit
def random_numbers(x):
    out = nl.ndarray((2,) + tuple(x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.random_seed(7)
    nl.store(out[0], value=nl.rand(x.shape))
    nl.store(out[1], value=nl.dropout(nl.load(x), rate=0.25))
    return out


@nki.jit
def prints(x):
    tile = nl.load(x[0:2, 0:2])
    nl.device_print("tile", tile)
    out = nl.ndarray((2, 1, 2), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.expand_dims(tile, 1))
    return out


@nki.jit
def nearest(x):
    """Twice the size along both axes of [P, H, W]: indices in a tile that no pattern follows."""
    parts, height, width = x.shape
    out = nl.ndarray((parts, 2 * height, 2 * width), dtype=x.dtype, buffer=nl.shared_hbm)
    p, h, w = nl.arange(parts)[:, None, None], nl.arange(2 * height)[None, :, None], nl.arange(2 * width)[None, None, :]
    tile, made = nl.load(x), nl.ndarray((par_dim(parts), 2 * height, 2 * width), dtype=x.dtype)
    made[p, h, w] = nl.copy(tile[p, h // 2, w // 2])
    nl.store(out[p, h, w], value=made)
    return out


@nki.jit
def adds_in_memory(x):
    """Blocks of tiles filled at once, and sums in HBM."""
    blocks = nl.ndarray((2, par_dim(x.shape[0]), x.shape[1]), dtype=nl.float32)
    blocks[...] = 0.25
    out = nl.zeros(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    for i in nl.sequential_range(2):
        nl.atomic_rmw(out, value=nl.load(x) + blocks[i], op=np.add)
    return out


@nki.jit
def turned_by_the_array(x, dtype):
    """x [P, F] turned in transpose mode, as it is and in a tile of float32."""
    out = nl.ndarray((2, x.shape[1], x.shape[0]), dtype=nl.float32, buffer=nl.shared_hbm)
    identity = nl.load(nl.shared_constant(np.identity(x.shape[0], dtype=np.int8), dtype=dtype))
    tile, wide = nl.load(x, dtype=dtype), nl.ndarray((2, par_dim(x.shape[1]), x.shape[0]), nl.float32, buffer=nl.psum)
    turned = nisa.nc_matmul(tile, identity, is_transpose=True, is_moving_onezero=True)
    nl.store(out[0], nl.copy(turned, dtype=nl.float32))
    wide[1] = nisa.nc_matmul(tile, identity, is_transpose=True, is_moving_onezero=True)
    nl.store(out[1], nl.copy(wide[1]))
    return out


@nki.jit
def turned(x, dtype):
    """In three ways, and the product of x and x turned."""
    rows, width = x.shape
    out = nl.ndarray((3, width, rows), dtype=nl.float32, buffer=nl.shared_hbm)
    square = nl.ndarray((rows, rows), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x, dtype=dtype)
    nl.store(out[0], nl.copy(nl.transpose(tile), dtype=nl.float32))
    nl.store(out[1], nl.copy(nisa.nc_transpose(tile), dtype=nl.float32))
    nl.store(out[2], nl.copy(nl.load_transpose2d(x, dtype=dtype), dtype=nl.float32))
    nl.store(square, nl.matmul(tile, nl.copy(nl.transpose(tile), dtype=dtype)))
    return out, square


@nki.jit
def half_is_no_onezero(x):
    nisa.nc_matmul(nl.load(x), nl.load(x), is_moving_onezero=True) + 0.0


def fills_its_argument(x, out):
    nl.store(out, value=nl.load(x) * 3.0)


@nki.jit
def reads_too_far(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :]
    nl.store(out[i_p, i_f], value=nl.load(x[i_p, i_f + 1]))
    return out


# ---- tests ----

class Sugar(unittest.TestCase):
    def near(self, got, want, allowed=1e-4):
        np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=allowed, atol=allowed)

    def test_layer_norm_of_rows_that_fill_no_tile(self):
        x, gamma, beta = random(200, 96), random(96, seed=2), random(96, seed=3)
        y = x.astype(np.float64)
        want = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5) * gamma + beta
        self.near(layer_norm(x, gamma, beta), want)

    def test_composites(self):
        x, w = random(128, 64), random(1, 64, seed=2)
        y = x.astype(np.float64)
        e = np.exp(y - y.max(1, keepdims=True))
        got = composites(x, w)
        self.near(got[0], (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5) * w)
        self.near(got[1], y / np.sqrt((y * y).mean(1, keepdims=True) + 1e-6) * w)
        self.near(got[2], e / e.sum(1, keepdims=True))

    def test_rms_norm_of_rows_that_fill_no_tile(self):
        x, w = random(250, 64), random(64, seed=2)
        y = x.astype(np.float64)
        self.near(rms_norm(x, w), y / np.sqrt((y * y).mean(1, keepdims=True)) * w)

    def test_softmax(self):
        x = random(128, 300)
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        self.near(softmax(x), e / e.sum(1, keepdims=True))

    def test_scan(self):
        a, x, c = np.abs(random(3, 256, 64)) * 0.3, random(3, 256, 64, seed=2), random(3, 64, seed=3)
        want, h = np.zeros((256, 64)), np.zeros((3, 256))
        for t in range(64):
            h = a[:, :, t].astype(np.float64) * h + x[:, :, t]
            want[:, t] = (h * c[:, t][:, None]).sum(0)
        self.near(scan(a, x, c), want)

    def test_average_pool(self):
        x = random(64, 12, 9)
        self.near(average_pool(x, 3), x.astype(np.float64).reshape(64, 4, 3, 3, 3).mean((2, 4)))

    def test_causal_attention(self):
        q, k, v = random(64, 256), random(64, 256, seed=2), random(256, 64, seed=3)
        q *= np.float32(0.3)
        scores = q.astype(np.float64).T @ k
        scores[np.triu_indices(256, 1)] = -np.inf
        e = np.exp(scores - scores.max(1, keepdims=True))
        self.near(attention(q, k, v), e / e.sum(1, keepdims=True) @ v, 1e-3)

    def test_blocked_product(self):
        a, b = random(512, 256), random(512, 128, seed=2)
        self.near(blocked_product(a, b), a.astype(np.float64).T @ b, 1e-3)

    def test_elementwise(self):
        a, b = random(128, 40), np.abs(random(128, 40, seed=2)) + np.float32(0.5)
        exact = elementwise_reference(a.astype(np.float64), b.astype(np.float64))
        for i, (got, want) in enumerate(zip(elementwise(a, b), exact)):
            with self.subTest(number=i):
                self.near(got, want)

    def test_functions(self):
        x = np.random.default_rng(4).uniform(0.25, 1.5, (128, 40)).astype(np.float32)  # where all tables hold
        for name, got in zip(FUNCTIONS, functions(x)):
            with self.subTest(name=name):
                self.near(got, FUNCTIONS[name](x.astype(np.float64)), 1e-3)

    def test_whole_numbers(self):
        x = np.concatenate([random(128, 40) * np.float32(9), np.arange(-10, 10, 0.5, np.float32)[None].repeat(128, 0),
                            np.full((128, 1), -2.0 ** 30, np.float32)], 1)
        for name, got in zip(FUNCTIONS, functions(x)):
            if name in ("floor", "ceil", "trunc", "sign", "abs", "negative"):
                with self.subTest(name=name):
                    np.testing.assert_array_equal(got, FUNCTIONS[name](x))

    def test_reductions(self):
        x = random(64, 4, 6)
        y = x.astype(np.float64)
        want = [f(y, axis=(1, 2)) for f in (np.sum, np.max, np.min, np.mean, np.var, np.prod)]
        self.near(reductions(x), np.concatenate([np.stack(want, 1), y.sum(2)], 1))

    def test_rows_by_formula(self):
        x = random(60, 32)
        np.testing.assert_array_equal(rows_by_formula(x), x[np.arange(120) // 2])

    def test_one_row_to_all(self):
        x = random(128, 32)
        want = np.broadcast_to(x[64:65], x.shape).copy()
        want[0] = np.maximum(x[96], x[64])
        np.testing.assert_array_equal(one_row_to_all(x), want)

    def test_a_row_spreads_by_products(self):
        """Bit for bit, in any format, by TensorE; by others only what a kernel copies, or a place that overlaps."""
        copies = {"new": 0, "place": 0, "itself": 1, "parts": 1, "psum": 3, "axes": 1}
        for width in (2, 64, 700):
            bits = np.random.default_rng(width).integers(0, 1 << 32, (128, width), np.uint32)
            bits[:, :2] = 0x80000000, 0x7f800001  # -0, and a NaN
            for dtype in (np.float32, np.int32, np.uint32, np.uint8, np.float16):
                for way in copies if dtype is np.float32 else ("new", "place", "itself", "parts"):
                    x = np.ascontiguousarray(bits.view(dtype)[:, :width])
                    if way in ("psum", "axes"):
                        x = random(128, width)
                    want = np.broadcast_to(x[32:33] if way in ("place", "parts") else x[0:1], x.shape).copy()
                    want[:, :way == "parts"] = x[:, :way == "parts"]
                    with self.subTest(width=width, dtype=dtype, way=way):
                        made = simulate(spread)
                        np.testing.assert_array_equal(made(x, way).view(np.uint8), want.view(np.uint8))
                        engines = made.report.engines
                        self.assertEqual(engines["TensorE"]["instructions"], 1)
                        others = engines["VectorE"]["instructions"] + engines["ScalarE"]["instructions"]
                        self.assertEqual(others, copies[way])

    def test_bfloat16_and_masks(self):
        x = np.round(random(128, 32) * 8) / np.float32(8)  # bfloat16 holds these
        want = x * np.where(np.arange(32) % 2, 1, 2)
        want[100:], want[:, :3] = 0, 0
        np.testing.assert_array_equal(bfloat16_and_masks(x), want)

    def test_rows_by_tile(self):
        x, order = random(128, 24), np.random.default_rng(5).permutation(128).astype(np.int32)[:, None]
        gathered, scattered = rows_by_tile(x, order)
        np.testing.assert_array_equal(gathered, x[order[:, 0]])
        np.testing.assert_array_equal(scattered[order[:, 0]], x)

    def test_masks_of_loop_variables(self):
        x = random(128, 48)
        self.near(masks_of_loop_variables(x), 3 * x.astype(np.float64).T @ x, 1e-3)

    def test_any_comparison(self):
        x = np.round(random(64, 40) * 8) / np.float32(8)
        p, f = np.indices(x.shape)
        first, second = any_comparison(x)
        np.testing.assert_array_equal(first, np.where(p >= 2 * f, x, -1))
        np.testing.assert_array_equal(second, np.where(f != 5, x, 0))

    def test_random_numbers(self):
        x = np.abs(random(128, 512)) + np.float32(1)
        uniform, kept = random_numbers(x)
        self.assertTrue(0 <= uniform.min() < 0.01 and 0.99 < uniform.max() < 1)
        self.assertLess(abs(uniform.mean() - 0.5), 0.01)
        self.assertTrue(np.all((kept == 0) | (kept == x)))
        self.assertLess(abs((kept == 0).mean() - 0.25), 0.02)

    def test_what_is_printed_has_been_computed(self):
        x, said = random(128, 16), io.StringIO()
        with contextlib.redirect_stdout(said):
            prints(x)
        self.assertIn(str(x[0:2, 0:2]), said.getvalue())

    def test_outside_of_kernels(self):
        x = random(128, 64)
        narrow = nl.static_cast(x, nl.bfloat16)
        wide = nl.static_cast(narrow, np.float32)
        self.assertLess(np.abs(wide - x).max(), 2.0 ** -7)
        self.assertFalse(np.any(wide.view(np.uint32) & 0xffff))
        timed = nki.benchmark(warmup=5, iters=10)(softmax)
        np.testing.assert_allclose(timed(narrow), timed(wide), rtol=2.0 ** -7)
        self.assertTrue(allclose(x, narrow.numpy(), rtol=2.0 ** -8))
        self.assertGreater(timed.benchmark_result.nc_latency.get_latency_percentile(50), 0)

    def test_nearest(self):
        x = random(64, 3, 5)
        np.testing.assert_array_equal(nearest(x), x.repeat(2, 1).repeat(2, 2))

    def test_adds_in_memory(self):
        x = np.round(random(128, 16) * 8) / np.float32(8)
        np.testing.assert_array_equal(adds_in_memory(x), 2 * (x + np.float32(0.25)))

    def test_transpose_mode_keeps_every_bit(self):
        x = np.random.default_rng(6).integers(-7, 8, (128, 48)).astype(np.float32)
        x[3, 4], x[5, 6], x[7, 8] = np.inf, np.nan, -0.0
        for dtype in (nl.float32, nl.bfloat16, nl.float16, nl.float8_e4m3, nl.float8_e5m2):
            for generation in (2, 3):
                with self.subTest(dtype=dtype, generation=generation):
                    for got in simulate(turned_by_the_array, generation=generation)(x, dtype):
                        np.testing.assert_array_equal(got, x.T)
                        self.assertTrue(np.signbit(got[8, 7]))
        x[np.isnan(x) | np.isinf(x)] = 1
        np.testing.assert_array_equal(simulate(turned_by_the_array, generation=1)(x, nl.bfloat16)[1], x.T)

    def test_transposes_of_every_format(self):
        x = np.random.default_rng(7).integers(-7, 8, (128, 48)).astype(np.float32)
        for dtype in (nl.float32, nl.bfloat16, nl.float16, nl.float8_e4m3, nl.float8_e5m2):
            for generation in (1, 2, 3):
                with self.subTest(dtype=dtype, generation=generation):
                    y = np.where(abs(x) == 7, np.sign(x) * 6, x) if dtype == nl.float8_e5m2 else x
                    y = np.where(abs(y) == 5, np.sign(y) * 4, y) if dtype == nl.float8_e5m2 else y
                    got, square = simulate(turned, generation=generation)(y, dtype)
                    for way in range(3):
                        np.testing.assert_array_equal(got[way], y.T)
                    np.testing.assert_array_equal(square, y @ y.T)

    def test_hints_are_checked(self):
        with self.assertRaisesRegex(nki.Error, "moving"):
            half_is_no_onezero(np.full((128, 16), 0.5, np.float32))

    def test_grid(self):
        a, b = random(256, 512), random(256, 512, seed=2)
        for grid in ((2, 2), (nl.spmd_dim(1, nl.nc(2)), 2)):
            np.testing.assert_array_equal(add_programs[grid](a, b), a + b)

    def test_arguments_are_written_in_place(self):
        x, out = random(128, 16), np.zeros((128, 16), np.float32)
        nki.simulate_kernel(nki.baremetal(fills_its_argument), x, out)
        np.testing.assert_array_equal(out, x * np.float32(3))

    def test_indices_out_of_bounds_are_told(self):
        with self.assertRaises((nki.Error, IndexError)):
            reads_too_far(random(128, 16))


if __name__ == "__main__":
    unittest.main()
