"""Inputs and right results of public kernels, as in public_cases.py: models (decode steps of Qwen, experts), science
(Fourier transforms, sparse products, attention in blocks, quantum states and chemistry), seeds of a kernel optimiser.

SPDX-License-Identifier: MIT
"""
import numpy as np

from public_cases import RNG, delta_rule, near, normal, rounded, silu, softmax, uniform


def bfloat16(x):
    import nki
    return nki.tensor(x, "bfloat16")


def rms(x, epsilon=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- Qwen's decode and prefill steps ----

def norm_of_one(load, name):
    x, w = normal(5120), normal(5120)
    return near(getattr(load(), name)(x, w), rms(x) * (1 + w), 1e-4)


def product_of_codes(load, name):
    """Weights of 8 bits that the caller passes as int8."""
    import nki
    x, w, scale = rounded(normal(3, 300)), nki.tensor(normal(300, 200), "float8_e4m3"), uniform(200, 1)
    got = getattr(load(), name)(bfloat16(x), np.asarray(w.array).view(np.int8), scale)
    return near(got, x @ np.asarray(w.numpy(), np.float32) * scale.T, 1e-2)


def products_of_codes(load, name):
    import nki
    x, w, scale = rounded(normal(3, 256)), nki.tensor(normal(3, 256, 200), "float8_e4m3"), uniform(3, 200, 1)
    got = getattr(load(), name)(bfloat16(x), np.asarray(w.array).view(np.int8), scale)
    return near(got, np.einsum("gi,gio->go", x, np.asarray(w.numpy(), np.float32)) * scale[..., 0], 1e-2)


def rotated(x, cos, sin):
    """The first 64 of the features."""
    head = x[..., :64]
    turned = np.concatenate([-head[..., 32:], head[..., :32]], -1)
    return np.concatenate([head * cos + turned * sin, x[..., 64:]], -1)


def attention_tail(load, name):
    module = load()
    batch, heads, tokens, d = 2, module.Q_HEADS, 128, 256
    q, gate, k, v = normal(batch, heads, d), normal(batch, heads, d), normal(batch, tokens, d), normal(batch, tokens, d)
    weight, cos, sin = normal(d) / 10, normal(64), normal(64)
    mask = (np.arange(tokens) <= 100).astype(np.float32)
    got = getattr(module, name)(q.reshape(-1, d), gate.reshape(-1, d), weight[None], cos[None], sin[None],
                                k.reshape(-1, d), v.reshape(-1, d), mask[None])
    scores = np.einsum("bhd,btd->bht", rotated(rms(q) * (1 + weight), cos, sin), k) / 16 + (1 - mask) * -1e9
    return near(got, (np.einsum("bht,btd->bhd", softmax(scores), v) * sigmoid(gate)).reshape(-1, d), 1e-3)


def delta_prefill(load, name, sequences=1):
    module, tokens, chunk = load(), 32, 16
    heads = module.V_HEADS * sequences
    q, k, v = (normal(heads, tokens, 128) for _ in range(3))
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    g, beta, state = -uniform(heads, tokens), uniform(heads, tokens), normal(heads, 128, 128) / 8
    ones = np.ones((chunk, chunk), np.float32)
    given = state.reshape(-1, 128) if sequences == 1 else state.reshape(sequences, -1, 128)
    out, new = getattr(module, name)(given, *(x.reshape(-1, 128) for x in (q, k, v)), g.reshape(-1, 1),
                                     beta.reshape(-1, 1), np.tril(ones), np.tril(ones, -1), np.eye(chunk, dtype="f"))
    want = [delta_rule(q[h] / np.sqrt(128), k[h], v[h], g[h], beta[h], state[h]) for h in range(heads)]
    return near((out, new), tuple(np.concatenate(part) for part in zip(*want)), 1e-3)


def delta_prefills(load, name):
    return delta_prefill(load, name, 2)


def delta_weights(module):
    """Taps, bias, decay, step, the norm's weight."""
    heads, channels = module.V_HEADS, module.QKV_DIM
    return normal(channels, 4) / 2, normal(channels) / 4, normal(heads) / 2, normal(heads), normal(128)


def delta_inputs(module):
    """A token of a sequence: the state, channels and those before them, two gates, z."""
    heads, channels = module.V_HEADS, module.QKV_DIM
    return (normal(heads, 128, 128) / 8, rounded(normal(channels)), rounded(normal(channels, 3)), normal(heads),
            normal(heads), rounded(normal(heads, 128)))


def delta_expected(module, inputs, weights):
    """Convolution, gates, the delta rule, a gated norm."""
    (state, x, before, a, b, z), (taps, bias, decay, step, weight) = inputs, weights
    group, keys = module.HEAD_GROUP, module.K_HEADS
    window = np.concatenate([before, x[:, None]], 1)
    q, k, v = (part.reshape(-1, 128) for part in
               np.split(silu((window * taps).sum(1) + bias), [keys * 128, 2 * keys * 128]))
    q, k = (y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6) for y in (q, k))
    g, beta = -np.exp(decay) * np.log1p(np.exp(a + step)), sigmoid(b)
    want = [delta_rule(q[h // group][None] / np.sqrt(128), k[h // group][None], v[h][None], g[h:h + 1], beta[h:h + 1],
                       state[h]) for h in range(module.V_HEADS)]
    out = [rms(o)[0] * weight * silu(z[h]) for h, (o, _) in enumerate(want)]
    return np.concatenate([s for _, s in want]), window[:, 1:], np.stack(out)


def delta_layer(load, name, sequences=1):
    """A layer of one token, of each sequence."""
    module = load()
    weights, inputs = delta_weights(module), [delta_inputs(module) for _ in range(sequences)]
    state, x, before, a, b, z = (np.concatenate(part) for part in zip(*inputs))
    taps, bias, decay, step, weight = weights
    got = getattr(module, name)(state.reshape(-1, 128), bfloat16(x), bfloat16(before), taps, bias, a, b, bfloat16(z),
                                decay, step, weight)
    want = zip(*(delta_expected(module, one, weights) for one in inputs))
    return near(tuple(got[:3]), tuple(np.concatenate(part) for part in want), 1e-2)


def delta_layers(load, name):
    return delta_layer(load, name, 3)


def flash_prefill(load, name):
    q, k, v = normal(2, 256, 256) / 4, normal(256, 256) / 4, normal(256, 256)
    scores = np.where(np.tri(256, dtype=bool), q @ k.T / 16, -np.inf)
    return near(getattr(load(), name)(q, k, v), softmax(scores) @ v, 1e-3)


def flash_chunk(load, name):
    """A chunk that begins where a number in HBM says."""
    q, k, v, first = normal(2, 128, 256) / 4, normal(512, 256) / 4, normal(512, 256), 128
    scores = np.where(np.arange(512) <= first + np.arange(128)[:, None], q @ k.T / 16, -np.inf)
    return near(getattr(load(), name)(q, k, v, np.array([[first]], np.float32)), softmax(scores) @ v, 1e-3)


def rotate_and_keep(load, name):
    heads, tokens, rows, first = 2, 128, 512, 64
    q, k, v = (rounded(normal(*s, tokens, 256)) for s in ((1, heads), (1,), (1,)))
    cos, sin, keys, values = normal(rows, 64), normal(rows, 64), rounded(normal(1024, 256)), rounded(normal(1024, 256))
    got = getattr(load(), name)(bfloat16(q), bfloat16(k), bfloat16(v), cos, sin, bfloat16(keys), bfloat16(values),
                                np.array([[first]], np.int32), 1, 2)
    here = slice(first, first + tokens)
    keys, values = keys.copy(), values.copy()
    turned = rotated(k[0], cos[here], sin[here])
    keys[rows + first:rows + first + tokens], values[rows + first:rows + first + tokens] = turned, v[0]
    return near(tuple(got), (rotated(q, cos[here], sin[here]), turned[None], keys, values), 1e-2)


def causal(load, name):
    x = normal(8, 16)
    keep = 4 + np.arange(8)[:, None] >= np.arange(16)
    if name == "causal_tile":
        return near(getattr(load(), name)[1](x, 4, 0), np.where(keep, x, -30000), 0)
    return near(getattr(load(), name)(x, np.array([[4]], np.float32)), np.where(keep, x, x - np.float32(30000)), 0)


def kept_in_place(load, name):
    cache, rows = normal(3 * 1024, 256), normal(128, 256)
    want = cache.copy()
    want[1024:1152] = rows
    return near(tuple(getattr(load(), name)(cache, rows, 1, 3)), (rows, want), 0)


def cross_attention(load, name):
    q, k, v = (normal(2, n, 128) / 4 for n in (256, 1024, 1024))
    mask = np.where(uniform(2, 1024) < 0.2, -10000, 0).astype(np.float32)
    return near(getattr(load(), name)(q, k, v, mask), softmax(q @ k.swapaxes(1, 2) + mask[:, None]) @ v, 1e-3)


def experts(load, name):
    """Eight of 128 for one token, on two cores; nki-library's allocator is beside it."""
    h, e, inner, k = 2048, 128, 192, 8
    x, gamma, router = rounded(normal(1, h)), rounded(1 + normal(h) / 8), rounded(normal(h, e) / 16)
    up, down = rounded(normal(e, h, 2 * inner) / 32), rounded(normal(e, inner, h) / 16)
    got = getattr(load(), name)[2](bfloat16(x[None]), bfloat16(gamma[None]), bfloat16(router), bfloat16(up),
                                   bfloat16(down))
    y = rms(x[0]) * gamma
    chosen = np.argsort(-(y @ router))[:k]
    weights, out = softmax((y @ router)[chosen]), np.zeros(h)
    for n, weight in zip(chosen, weights):
        both = y @ up[n]
        out += weight * ((silu(both[:inner]) * both[inner:]) @ down[n])
    return near(np.asarray(got, np.float32), out, 2e-2)


# ---- seeds of a kernel optimiser: sources that a file holds as text ----

def authored(load, name):
    rows, n = 200, 256
    x, cos, sin = normal(rows, n), normal(rows, n // 2), normal(rows, n // 2)
    left, right = x[:, :n // 2], x[:, n // 2:]
    even, odd, turned = x[:, ::2], x[:, 1::2], np.empty_like(x)
    turned[:, ::2], turned[:, 1::2] = even * cos - odd * sin, odd * cos + even * sin
    gelu = left * (1 + np.tanh(0.7978845608028654 * (left + 0.044715 * left**3))) / 2
    cap = np.array([3], np.float32)
    args, want = {"softcap_kernel": ((x, cap), np.tanh(x / 3) * 3), "geglu_kernel": ((x,), gelu * right),
                  "rope_apply_kernel": ((x, cos, sin), turned), "silu_gate_kernel": ((x,), silu(left) * right),
                  "softmax_kernel": ((x,), softmax(x))}[name]
    module = load()
    source = next(text for text in (f() for n, f in vars(module).items() if n.startswith("_src_"))
                  if f"def {name}(" in text)
    made: dict = {"__name__": name}
    exec(compile(source, f"{name}.py", "exec"), made)
    return near(made[name](*args), want, 1e-4)


# ---- quantum states ----

def gates_by_rows(load, name):
    """Two gates of 128 x 128 on nine qubits, whose places in the state are computed by bit operations."""
    n, size = 512, 128
    gates, swaps = normal(2, 2, size, size) / 11, np.zeros((2, 2, 4), np.uint32)
    for g, (a, b) in enumerate(((0, 8), (1, 7))):
        swaps[g] = [[a, b, 1 << a, 1 << b], [b, a, 1 << b, 1 << a]]
    base = (np.arange(size)[:, None] + size * np.arange(4)).astype(np.uint32)
    got = getattr(load().QuantumCircuit, name)(gates, swaps, n, size, 4, 4, base)
    state = np.eye(1, n, dtype=complex)[0]
    for g in range(2):
        old, place, at = state, np.arange(n), np.arange(n)
        for a, b, _, bit in swaps[g].astype(int):
            place = place & ~bit | (at >> a & 1) << b
        state = old.copy()
        for tile in place.reshape(4, size):
            state[tile] = (gates[g, 0] + 1j * gates[g, 1]) @ old[tile]
    return near(np.asarray(got).reshape(2, n), np.stack([state.real, state.imag]), 1e-5)


# ---- Fourier transforms ----

def _complex(*shape):
    return normal(*shape) + 1j * normal(*shape)


def _parts(z):
    return np.ascontiguousarray(z.real, np.float32), np.ascontiguousarray(z.imag, np.float32)


def complex_of_two(load, name):
    a, b = _complex(128, 128), _complex(128, 512 if "gemm" in name else 128)
    want = a @ b if "gemm" in name else a @ b.T if "linear" in name else a * b
    return near(tuple(getattr(load(), name)(*_parts(a), *_parts(b))), _parts(want), 1e-2 if "bf16" in name else 1e-5)


def butterflies(load, name):
    n, kernel = 32, getattr(load(), name)
    x = _complex(4, n)
    parts = _parts(x[:, [int(f"{i:05b}"[::-1], 2) for i in range(n)]])
    for stage in range(5):
        half = 1 << stage
        turns = np.broadcast_to(np.exp(-1j * np.pi * np.arange(half) / half), (4 * n // (2 * half), half))
        parts = tuple(np.asarray(p) for p in kernel(*parts, *_parts(turns), n, stage))
    return near(parts, _parts(np.fft.fft(x, axis=1)), 1e-5)


def stockham(load, name):
    n = 4 if "radix4" in name else 8
    x, fourier = _complex(256, n), np.fft.fft(np.eye(n))
    turns = _complex(256, n) if n == 4 else fourier
    want = (x * turns) @ fourier if n == 4 else x @ fourier
    return near(tuple(getattr(load(), name)(*_parts(x), *_parts(turns))), _parts(want), 1e-5)


# ---- sparse products, attention in blocks ----

def block_rows(load, name):
    a, b = normal(2, 3, 128, 128), normal(2, 3, 128, 256)
    return near(getattr(load(), name)(a, b), np.einsum("mkij,mkjn->min", a, b).reshape(256, 256), 1e-5)


def screened(load, name):
    a, b, q = normal(256, 256), normal(256, 256), uniform(256, 1)
    return near(getattr(load(), name)(a, q, np.float32(0.3), b), np.where(q * q.T > 0.3, a, 0) @ b, 1e-5)


def attention_blocks(load, name):
    """Heads of 64 and of 256 features: maxima and sums, or, with these, the result."""
    right, kernel = True, getattr(load(), name)
    said: list[str] = []
    for d in (64, 256):
        q, k, v = normal(2, 128, d) / 8, normal(2, 3, 128, d), normal(2, 3, 128, d)
        scores = np.einsum("mid,mkjd->mkij", q, k)
        if "stats" in name:
            most = scores.max(-1)
            got, want = tuple(kernel(q, k)), (most, np.exp(scores - most[..., None]).sum(-1))
        else:
            most = scores.max((1, 3))
            e = np.exp(scores - most[:, None, :, None])
            total = e.sum((1, 3))
            got = kernel(q, k, v, most[..., None], total[..., None])
            want = (np.einsum("mkij,mkjd->mid", e, v) / total[..., None]).reshape(-1, d)
        one, text = near(got, want, 1e-4)
        right, said = right and one, said + [text]
    return right, ", ".join(said)


# ---- linear algebra ----

def product(load, name):
    a, b = (normal(2, 128, 128), normal(2, 128, 512)) if "batched" in name else (normal(128, 128), normal(128, 512))
    return near(getattr(load(), name)(a, b), a @ b, 1e-5)


def matrix_and_vector(load, name):
    a, v = normal(100, 100), normal(100, 1)
    return near(getattr(load(), name)(a, v), a @ v, 1e-5)


def rank_two(load, name):
    a, u, v = normal(100, 100), normal(100, 1), normal(100, 1)
    return near(getattr(load(), name)(a, u, v), a - u @ v.T - v @ u.T, 1e-5)


def orbitals(load, name):
    integrals, occupied, virtual = normal(256, 256, 3), normal(256, 20), normal(256, 40)
    return near(getattr(load(), name)(integrals, occupied, virtual),
                np.einsum("mi,na,mnp->iap", occupied, virtual, integrals), 1e-5)


def smooth_gelu(load, name):
    x = RNG.standard_normal((128, 256)).astype(np.float32)
    want = x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))) / 2
    return near(getattr(load(), name)(x), want, 1e-4)
