"""The kernels of aws-neuron/nki-samples: what they are given, and what they must return.

SPDX-License-Identifier: MIT
"""
import numpy as np

from case import Call, Case

TUTORIALS = "src/nki_samples/tutorials/"
CONTRIBUTED = "contributed/"


def normal(*shape, dtype=np.float32, scale=1.0):
    return lambda rng: (rng.standard_normal(shape) * scale).astype(dtype)


def several(*make, **kwargs):
    return lambda rng: Call(tuple(m(rng) if callable(m) else m for m in make), kwargs)


# ---- references ----

def product(lhsT, rhs, **_):
    return lhsT.astype(np.float64).T @ rhs.astype(np.float64)


def attention(q, k, v):
    """Of q, k, v [d, tokens], without a scale."""
    scores = q.astype(np.float64).T @ k
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True) @ v.T.astype(np.float64)


def scan(delta, u, A, B, C):
    """Mamba's state space: h = exp(delta A) h + delta u B; the sum of h C over states."""
    out = np.zeros(delta.shape)
    for n in range(A.shape[1]):
        state = np.zeros(delta.shape[:2])
        for t in range(delta.shape[2]):
            state = np.exp(delta[:, :, t].astype(np.float64) * A[None, :, n]) * state + \
                delta[:, :, t].astype(np.float64) * u[:, :, t] * B[:, n, t][:, None]
            out[:, :, t] += state * C[:, n, t][:, None]
    return out


def turned(x, shape):
    return x.reshape(-1, *shape).transpose(0, 2, 1).reshape(x.shape)


def pooled_max(x, size):
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size))
    return windows.max((2, 3))


def doubled(x, axes):
    """Twice the size along each of these axes, linearly, with corners that are not aligned."""
    x = x.astype(np.float64)
    for axis in axes:
        n = x.shape[axis]
        at = np.clip((np.arange(2 * n) + 0.5) / 2 - 0.5, 0, n - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, n - 1)
        part = (at - low).reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x


# ---- MX, as the samples' files store it ----

def _mx(rng, rows, columns, mantissa):
    """Codes of E5M2 (mantissa 2) packed in fours as uint32 [rows, columns], and their scales [rows / 8, columns]."""
    codes = rng.integers(0, 0x78, (rows, columns, 4)).astype(np.uint8) | \
        (rng.integers(0, 2, (rows, columns, 4)).astype(np.uint8) << 7)
    scales = rng.integers(120, 134, (rows // 8, columns)).astype(np.uint8)
    return codes.view(np.uint32).reshape(rows, columns), scales


def _mx_numbers(codes, scales):
    """E5M2 [rows, columns, 4] times their scales."""
    halves = (codes.view(np.uint8).astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    return halves.reshape(*codes.shape, 4) * np.exp2(np.repeat(scales, 8, 0).astype(np.float64) - 127)[..., None]


def offline_inputs(rng):
    from nki import language as nl
    return (*_mx(rng, 128, 128, 2), *_mx(rng, 128, 512, 2), nl.float8_e5m2_x4)


def offline(a, a_scale, b, b_scale, _):
    return np.einsum("kmi,kni->mn", _mx_numbers(a, a_scale), _mx_numbers(b, b_scale))


def _widened(x):
    """The numbers of E5M2 that come out of a quantisation to it: already of that form."""
    return x


def strided_inputs(tensor_copy):
    def make(rng):
        import nki
        from nki import language as nl
        exact = [np.ldexp(rng.integers(-4, 5, (512, n)).astype(np.float32), rng.integers(-2, 3, (512, n)))
                 for n in (128, 512)]
        return (*(nki.tensor(x, "bfloat16") for x in exact), nl.float8_e5m2_x4, tensor_copy)
    return make


def strided(a, b, *_):
    a, b = ((x.array.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for x in (a, b))
    return a.T @ b


def on_device_inputs(rng):
    import nki
    from nki import language as nl
    moving = np.ldexp(rng.integers(-4, 5, (128, 2048)).astype(np.float32), rng.integers(-2, 3, (128, 2048)))
    return (*_mx(rng, 128, 128, 2), nki.tensor(moving, "bfloat16"), nl.float8_e5m2_x4, nl.float8_e5m2_x4)


def on_device(codes, scales, moving, *_):
    """The moving numbers are E5M2's already, so that quantisation rounds nothing; the result is bfloat16."""
    wide = (moving.array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.einsum("kmi,kni->mn", _mx_numbers(codes, scales), wide.reshape(128, 512, 4))


def _matmul(name, k, m, n):
    return Case(name, TUTORIALS + "matrix_multiplication/matrix_multiplication_nki_kernels.py", name,
                several(normal(k, m, dtype=np.float16), normal(k, n, dtype=np.float16)), product, 2e-3, 0.05)


def _attention(name, tokens, allowed):
    return Case(name, TUTORIALS + "attention_fwd_performance/attention_kernels.py", name,
                several(*[normal(128, tokens, scale=0.5)] * 3), attention, allowed, allowed)


def _mamba(name):
    positive = [lambda rng, s=s: rng.random(s).astype(np.float32) for s in ((1, 256, 512), (1, 256, 512))]
    return Case(name, TUTORIALS + "fused_mamba/mamba_nki_kernels.py", name,
                several(*positive, lambda rng: -rng.random((256, 4)).astype(np.float32),
                        *[lambda rng: rng.random((1, 4, 512)).astype(np.float32)] * 2), scan, 1e-4, 1e-5)


ADD = TUTORIALS + "tensor_addition/"
MX = TUTORIALS + "mxfp-matmul/mx_kernels.py"

CASES = [
    Case("tensor_addition", ADD + "tensor_addition_nki_kernels.py", "nki_tensor_add",
         several(normal(256, 1024, dtype=np.float16), normal(256, 1024, dtype=np.float16)), lambda a, b: a + b, 0, 0),
    Case("spmd_tensor_addition", ADD + "spmd_tensor_addition_nki_kernels.py", "nki_tensor_add",
         several(normal(256, 1024, dtype=np.float16), normal(256, 1024, dtype=np.float16)), lambda a, b: a + b, 0, 0),
    Case("spmd_multiple_nc_tensor_addition", ADD + "spmd_multiple_nc_tensor_addition_nki_kernels.py",
         "nki_tensor_add_nc2",
         several(normal(512, 2048, dtype=np.float16), normal(512, 2048, dtype=np.float16)), lambda a, b: a + b, 0, 0),
    Case("average_pool2d", TUTORIALS + "average_pool2d/average_pool2d_nki_kernels.py", "tensor_avgpool_kernel",
         several(lambda rng: np.arange(72, dtype=np.float16).reshape(2, 6, 6), 2), "np_average_pool_2D", 0, 0),
    Case("transpose2d", TUTORIALS + "transpose2d/transpose2d_nki_kernels.py", "tensor_transpose2D_kernel_",
         several(lambda rng: rng.integers(-99, 99, (64, 12)).astype(np.int8), (3, 4)), turned, 0, 0),
    _matmul("nki_matmul_basic_", 128, 64, 512), _matmul("nki_matmul_tiled_", 256, 256, 1024),
    _matmul("nki_matmul_hoist_load_", 256, 256, 1024), _matmul("nki_matmul_block_free_dimension_", 256, 512, 1024),
    _matmul("nki_matmul_fully_optimized_", 1024, 2048, 1024),
    _mamba("mamba_v1"), _mamba("mamba_v2"), _mamba("mamba_v3"),
    _attention("attn_fwd_v1", 128, 1e-4), _attention("attn_fwd_v2", 128, 1e-4),
    *[_attention(f"attn_fwd_v{n}", 512, 1e-4) for n in (3, 4, 5, 6)],
    *[_attention(f"attn_fwd_v{n}", 512, 2e-2) for n in ("7", "8", "8a", "9", "10", "11")],  # scores and v in BF16
    Case("max_pooling_2d_stride_1", CONTRIBUTED + "maxpooling.py", "max_pooling_2d_stride_1",
         several(normal(300, 96), 3), pooled_max, 0, 0),
    Case("contributed matmul", CONTRIBUTED + "matmul.py", lambda module: __import__("nki").jit(module.matmul),
         several(normal(1024, 512, dtype=np.float16), normal(1024, 2048, dtype=np.float16)), product, 2e-3, 0.05),
    Case("interpolate_bilinear_2x_fwd", CONTRIBUTED + "interpolate_bilinear_fwd.py", "interpolate_bilinear_2x_fwd",
         several(normal(2, 64, 28, 16)), lambda x: doubled(x, (2, 3)), 1e-5, 1e-5),
    Case("interpolate_trilinear_2x_fwd", CONTRIBUTED + "interpolate_trilinear_fwd.py", "interpolate_trilinear_2x_fwd",
         several(normal(2, 64, 10, 6, 6)), lambda x: doubled(x, (2, 3, 4)), 1e-5, 1e-5),
    Case("mx offline quantized", MX, "kernel_offline_quantized_mx_matmul", offline_inputs, offline, 2e-2, 1e-2,
         generation=3),
    Case("mx on device quantized", MX, "kernel_on_device_quantize_matmul_mx", on_device_inputs, on_device, 2e-2, 1e-2,
         generation=3),
    Case("mx copy strided, tensor_copy", MX, "kernel_copy_strided_quantize_matmul_mx", strided_inputs(True), strided,
         1e-2, 1e-2, generation=3),
    Case("mx copy strided, DMA", MX, "kernel_copy_strided_quantize_matmul_mx", strided_inputs(False), strided,
         1e-2, 1e-2, generation=3),
    Case("pipelined_attention", CONTRIBUTED + "pipelined_attention.py", "flash_fwd", lambda rng: (),
         needs="its file runs it on 16,384 tokens as soon as it is imported, and needs ml_dtypes for that"),
]
