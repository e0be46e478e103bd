"""The kernels of aws-neuron/nki-library (src/nkilib_src/nkilib), each in one or two small configurations.

Inputs come from a seeded generator, references from library_reference.py (NumPy, float64). Kernels for a logical core
of two (LNC=2) run with one core here where they allow it. Tolerances are chosen here, by
the roundings that a kernel makes; where one is the library's own, its note says so.
"""
import dataclasses
import importlib
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import library_reference as ref                 # noqa: E402
from case import Call, Case                     # noqa: E402
from library_fused import fused_cases          # noqa: E402
from library_models import mlp_kernel, model_cases, wrapped          # noqa: E402
from library_mx import mx_cases                # noqa: E402
from library_types import decoded, raw_bytes, typed       # noqa: E402

CORE = "src/nkilib_src/nkilib/core/"
EXPERIMENTAL = "src/nkilib_src/nkilib/experimental/"
BF16 = 2.0 ** -8        # half a unit in the last place of bfloat16, relative: one rounding of the result
FP16 = 2.0 ** -11


def part(name):
    """A module of the library, for its enumerations and its configurations."""
    return importlib.import_module("nkilib." + name)


def types():
    return part("core.utils.common_types")


def jitted(name):
    """The kernel of that name as a launchable one, where the library leaves it a plain function."""
    def find(module):
        import nki
        return nki.jit(getattr(module, name))
    return find


def normal(rng, shape, dtype="float32", scale=1.0):
    return typed(scale * rng.standard_normal(shape), dtype)


def zeros(shape, dtype="float32"):
    return typed(np.zeros(shape), dtype)


def core(name, file, function, inputs, reference, **more):
    return Case(name, CORE + file, function, inputs, reference, **more)


def experimental(name, file, function, inputs, reference, **more):
    return Case(name, EXPERIMENTAL + file, function, inputs, reference, **more)


# ---- small kernels ---------------------------------------------------------------------------------------------------

def rope_inputs(contiguous, in_sbuf=False, seq=16):
    def inputs(rng):
        return Call((normal(rng, (64, 2, 2, seq), "bfloat16"), normal(rng, (32, 2, seq), "bfloat16"),
                     normal(rng, (32, 2, seq), "bfloat16")),
                    dict(lnc_shard=False, contiguous_layout=contiguous, relayout_in_sbuf=in_sbuf))
    return inputs


def rope_reference(x_in, cos, sin, lnc_shard, contiguous_layout, relayout_in_sbuf):
    return ref.rope(x_in, cos, sin, contiguous_layout)


def rope_hf_inputs(dtype, packed=False, backward=False):
    def inputs(rng):
        q, k = normal(rng, (1, 4, 256, 64), dtype), normal(rng, (1, 2, 256, 64), dtype)
        more = dict(rope_cache=normal(rng, (256, 128), dtype)) if packed else \
            dict(cos=normal(rng, (1, 256, 64), dtype), sin=normal(rng, (1, 256, 64), dtype))
        return Call((), dict(q=q, k=k, q_out=zeros(q.shape, dtype), k_out=zeros(k.shape, dtype), backward=backward,
                             **more))
    return inputs


def sparse(rng, t, columns, ones):
    x = np.zeros((columns, t))
    for row in x:
        row[rng.choice(t, ones, replace=False)] = 1
    return x.T


def topk_inputs(rng):
    topk = part("core.topk.rotational_topk")
    part("core.topk.rotational_topk_utils").circulant = ref.circulant    # SciPy's, which need not be there
    rows, vocab, k = 4, 512, 16
    x = normal(rng, (rows, vocab))
    import nki.language as nl
    config = topk.create_topk_config(inp_shape=(rows, 1, vocab), inp_dtype=nl.float32, k=k, sorted=True,
                                     num_programs=1)
    config = topk.create_rotational_topk_config(inp_shape=(rows, vocab), topk_config=config)
    return Call((), dict(inp=x, config=topk.prepare_rotational_constants(config)))


def topk_reduce_inputs(rng):
    t, k, h, rows = 4, 4, 256, 32
    tokens = np.full(rows, -1, np.int32)
    tokens[rng.permutation(rows)[:t * k]] = np.repeat(np.arange(t, dtype=np.int32), k)
    values = raw_bytes(normal(rng, (rows, h), "bfloat16")).view(np.uint16)
    whole = np.concatenate((values, tokens.reshape(rows, 1).view(np.uint16)), axis=1)
    return Call((), dict(input=typed(whole, "bfloat16", bits=True), T=t, K=k))


def topk_reduce_reference(input, T, K):
    h = input.shape[1] - 2
    tokens = np.ascontiguousarray(raw_bytes(input).view(np.uint16).reshape(input.shape)[:, h:]).view(np.int32)[:, 0]
    return ref.topk_reduce(ref.plain(input)[:, :h], tokens, T)


SMALL = [
    core("cumsum", "cumsum/cumsum.py", "cumsum", lambda rng: (normal(rng, (4, 256)),), ref.cumsum,
         rtol=1e-3, atol=1e-4),
    core("cumsum of three axes, bfloat16, two tiles", "cumsum/cumsum.py", "cumsum",
         lambda rng: (typed(rng.integers(-2, 3, (2, 3, 2560)), "bfloat16"),), ref.cumsum, rtol=BF16, atol=1e-3),
    core("cascaded_max", "max/cascaded_max.py", "cascaded_max", lambda rng: (normal(rng, (4, 5, 512)),),
         ref.cascaded_max, rtol=0, atol=0),
    core("cascaded_max of one row", "max/cascaded_max.py", "cascaded_max", lambda rng: (normal(rng, (1, 1, 3168)),),
         ref.cascaded_max, rtol=0, atol=0),
    core("RoPE", "embeddings/rope.py", "RoPE", rope_inputs(True), rope_reference, rtol=2 ** -7, atol=2 ** -5,
         note="products and sum each round to bfloat16"),
    core("RoPE, interleaved", "embeddings/rope.py", "RoPE", rope_inputs(False), rope_reference,
         rtol=2 ** -7, atol=2 ** -5, note="products and sum each round to bfloat16"),
    core("RoPE, interleaved, layout by matmul", "embeddings/rope.py", "RoPE", rope_inputs(False, True), rope_reference,
         rtol=2 ** -7, atol=2 ** -5, note="products and sum each round to bfloat16"),
    core("rope_hf", "embeddings/rope_hf.py", "rope_hf", rope_hf_inputs("float32"), ref.rope_hf, rtol=1e-5, atol=1e-5),
    core("rope_hf, cache of cos and sin", "embeddings/rope_hf.py", "rope_hf", rope_hf_inputs("float32", packed=True),
         ref.rope_hf, rtol=1e-5, atol=1e-5),
    core("rope_hf, backward", "embeddings/rope_hf.py", "rope_hf", rope_hf_inputs("float32", backward=True),
         ref.rope_hf, rtol=1e-5, atol=1e-5),
    experimental("find_nonzero_indices_with_count", "benchmark/find_nonzero_indices_with_count.py",
                 "find_nonzero_indices_with_count", lambda rng: (typed(sparse(rng, 256, 1, 40).T, "float32"),),
                 ref.find_nonzero_indices_with_count, rtol=0, atol=0, generation=2),
    core("find_nonzero_indices", "subkernels/find_nonzero_indices.py", "find_nonzero_indices",
         lambda rng: Call((typed(sparse(rng, 512, 16, 32), "int32"),), dict(chunk_size=512)),
         ref.find_nonzero_indices, rtol=0, atol=0, grid=2),
    core("find_nonzero_indices of some columns", "subkernels/find_nonzero_indices.py", "find_nonzero_indices",
         lambda rng: Call((typed(sparse(rng, 512, 16, 32), "float32"),),
                          dict(col_start_id=np.array([4], np.int32), n_cols=4, chunk_size=256)),
         ref.find_nonzero_indices, rtol=0, atol=0, grid=2),
    core("indexed_flatten", "subkernels/indexed_flatten.py", "indexed_flatten",
         lambda rng: Call((), dict(input_tensor=np.arange(2 * 2048, dtype=np.int32).reshape(2, 2048), f_len=128,
                                   output_len=2 * 2048 + 1024, row_offsets=np.array([0, 16], np.int32))),
         ref.indexed_flatten, rtol=0, atol=0, grid=2),
    core("indexed_flatten from a row on", "subkernels/indexed_flatten.py", "indexed_flatten",
         lambda rng: Call((), dict(input_tensor=np.arange(2 * 2048, dtype=np.int32).reshape(2, 2048), f_len=128,
                                   output_len=4 * 2048 + 1024, row_offsets=np.array([0, 16, 32, 48], np.int32),
                                   row_offsets_start=np.array([2], np.int32))),
         ref.indexed_flatten, rtol=0, atol=0, grid=2),
    core("rotational_topk", "topk/rotational_topk.py", "rotational_topk", topk_inputs,
         lambda inp, config: ref.topk(inp, 16), rtol=0, atol=0),
    experimental("dynamic_elementwise_add", "dynamic_shapes/dynamic_elementwise_add.py", "dynamic_elementwise_add",
                 lambda rng: (normal(rng, (256, 512), "bfloat16"), normal(rng, (256, 512), "bfloat16"),
                              np.array([[2]], np.int32)),
                 ref.dynamic_elementwise_add, rtol=BF16, atol=1e-6),
    experimental("topk_reduce", "collectives/topk_reduce.py", "topk_reduce", topk_reduce_inputs,
                 topk_reduce_reference, rtol=5e-2, atol=5e-2, note="the library's own tolerances: sums in bfloat16"),
]

# ---- norms -----------------------------------------------------------------------------------------------------------


def norm_inputs(hidden, more=(), dtype="float16", beta=False):
    def inputs(rng):
        call = dict(input=normal(rng, (1, 4, hidden), dtype), gamma=normal(rng, (1, hidden), dtype),
                    output=zeros((128, 4, hidden // 128), dtype), **dict(more))
        return Call((), dict(call, beta=normal(rng, (1, hidden), dtype)) if beta else call)
    return inputs


def rmsnorm_quant_inputs(quantization, norm="RMS_NORM"):
    def inputs(rng):
        m = part("core.rmsnorm.rmsnorm_quant")
        kargs = m.RmsNormQuantKernelArgs(quantization_type=getattr(types().QuantizationType, quantization),
                                         norm_type=getattr(types().NormType, norm))
        static = quantization == "STATIC"
        return Call((), dict(hidden=normal(rng, (1, 128, 512), "bfloat16"), ln_w=normal(rng, (512,), "bfloat16"),
                             kargs=kargs, input_dequant_scale=typed(np.full((128, 1), 0.05), "float32") if static
                             else None))
    return inputs


def rmsnorm_quant_reference(hidden, ln_w, kargs, input_dequant_scale):
    x = ref.plain(hidden)
    return ref.rms_norm(x, ref.plain(ln_w), 1e-6) if kargs.norm_type.name == "RMS_NORM" else x


def rmsnorm_quant_codes(module):
    """The kernel, whose result is returned as bytes: what is in it is float8_e4m3 and float32."""
    import nki

    def rmsnorm_quant(**arguments):
        return module.rmsnorm_quant_kernel(**arguments).view("uint8")
    return nki.jit(rmsnorm_quant)


def dequantized_rows(codes):
    """[B, S, H] of what the row quantization stores: H values of 8 bits, then the float32 scale's 4 bytes."""
    h = codes.shape[-1] - 4
    return decoded(codes[..., :h], "float8_e4m3") * np.ascontiguousarray(codes[..., h:]).view(np.float32)


E4M3 = 2.0 ** -4        # half a unit in the last place of float8_e4m3, relative
NORMS = [
    core("rmsnorm_tkg", "subkernels/rmsnorm_tkg.py", jitted("rmsnorm_tkg"), norm_inputs(512), ref.rmsnorm_tkg,
         rtol=2e-2, atol=1e-5),
    core("rmsnorm_tkg, padded", "subkernels/rmsnorm_tkg.py", jitted("rmsnorm_tkg"),
         norm_inputs(512, dict(hidden_actual=384)), ref.rmsnorm_tkg, rtol=2e-2, atol=1e-5),
    core("rmsnorm_tkg, hidden axis in rows", "subkernels/rmsnorm_tkg.py", jitted("rmsnorm_tkg"),
         norm_inputs(512, dict(hidden_dim_tp=True)), ref.rmsnorm_tkg, rtol=2e-2, atol=1e-5),
    core("layernorm_tkg", "subkernels/layernorm_tkg.py", jitted("layernorm_tkg"), norm_inputs(512, beta=True),
         ref.layernorm_tkg, rtol=2e-2, atol=4e-3, note="atol: gamma's product and beta each round to float16"),
    core("rmsnorm_quant, scale per row", "rmsnorm/rmsnorm_quant.py", rmsnorm_quant_codes,
         rmsnorm_quant_inputs("ROW"), rmsnorm_quant_reference, rtol=E4M3 + 4 * BF16, atol=2e-2,
         outputs=dequantized_rows, note="half a step of float8_e4m3"),
    core("rmsnorm_quant, fixed scale", "rmsnorm/rmsnorm_quant.py", rmsnorm_quant_codes,
         rmsnorm_quant_inputs("STATIC"), rmsnorm_quant_reference, rtol=E4M3 + 4 * BF16, atol=2e-2,
         outputs=lambda codes: decoded(codes, "float8_e4m3") * 0.05, note="half a step of float8_e4m3"),
    core("rmsnorm_quant, no norm", "rmsnorm/rmsnorm_quant.py", rmsnorm_quant_codes,
         rmsnorm_quant_inputs("ROW", "NO_NORM"), rmsnorm_quant_reference, rtol=E4M3 + 4 * BF16, atol=2e-2,
         outputs=dequantized_rows, note="half a step of float8_e4m3"),
]

# ---- convolution, loss -----------------------------------------------------------------------------------------------


def conv_inputs(batch, c_in, c_out, length, k, activation=None, bias=False, **more):
    def inputs(rng):
        act = activation and getattr(types().ActFnType, activation)
        return Call((), dict(x_in=normal(rng, (batch, c_in, length)), filters=normal(rng, (k, c_in, c_out)),
                             bias=normal(rng, (c_out,)) if bias else None, activation_fn=act, lnc_shard=False, **more))
    return inputs


ACTIVATIONS = {"SiLU": ref.silu, "GELU": ref.gelu, "GELU_Tanh_Approx": ref.gelu_tanh}


def conv_reference(x_in, filters, bias, activation_fn, lnc_shard, **more):
    return ref.conv1d(x_in, filters, bias, activation=activation_fn and ACTIVATIONS[activation_fn.name], **more)


def depthwise_inputs(**more):
    return lambda rng: Call((normal(rng, (1, 16, 1, 512), "bfloat16"), normal(rng, (16, 1, 1, 7), "bfloat16")),
                            dict(dict(padding=((0, 0), (0, 0)), stride=(1, 1), feature_group_count=16), **more))


def loss_inputs(dtype, backward=False, **more):
    def inputs(rng):
        import nki.language as nl
        x = normal(rng, (16, 2048), dtype)
        t = rng.integers(0, 2048, 16).astype(np.int32)
        args = (x, t, typed(ref.cross_entropy_forward(x, t)[1], dtype)) if backward else (x, t)
        return Call(args, dict(positions_per_batch=8, chunk_size=1024, dtype=getattr(nl, dtype), **more))
    return inputs


CONV_AND_LOSS = [
    experimental("conv1d", "conv/conv1d.py", "conv1d", conv_inputs(1, 16, 32, 20, 3), conv_reference,
                 rtol=1e-4, atol=1e-4),
    experimental("conv1d, bias, SiLU", "conv/conv1d.py", "conv1d", conv_inputs(1, 16, 32, 20, 3, "SiLU", True),
                 conv_reference, rtol=1e-3, atol=1e-3),
    experimental("conv1d, stride, padding, dilation, GELU", "conv/conv1d.py", "conv1d",
                 conv_inputs(2, 64, 128, 40, 5, "GELU", True, stride=2, padding=(2, 2), dilation=2), conv_reference,
                 rtol=1e-3, atol=1e-3),
    experimental("depthwise_conv1d", "conv/depthwise_conv1d.py", "depthwise_conv1d_implicit_gemm", depthwise_inputs(),
                 ref.depthwise_conv1d, rtol=BF16, atol=1e-3),
    experimental("depthwise_conv1d, stride, padding", "conv/depthwise_conv1d.py", "depthwise_conv1d_implicit_gemm",
                 depthwise_inputs(padding=((0, 0), (3, 3)), stride=(1, 2)), ref.depthwise_conv1d,
                 rtol=BF16, atol=1e-3),
    experimental("cross_entropy_forward", "loss/cross_entropy.py", "cross_entropy_forward", loss_inputs("float32"),
                 ref.cross_entropy_forward, rtol=1e-4, atol=1e-4),
    experimental("cross_entropy_forward, bfloat16", "loss/cross_entropy.py", "cross_entropy_forward",
                 loss_inputs("bfloat16"), ref.cross_entropy_forward, rtol=2e-2, atol=2e-2,
                 note="state of the running sum is kept in bfloat16"),
    experimental("cross_entropy_backward", "loss/cross_entropy.py", "cross_entropy_backward",
                 loss_inputs("float32", True, inplace=False), ref.cross_entropy_backward, rtol=1e-3, atol=1e-6),
    experimental("cross_entropy_backward, in place", "loss/cross_entropy.py", "cross_entropy_backward",
                 loss_inputs("float32", True, reduction="sum"), ref.cross_entropy_backward, rtol=1e-3, atol=1e-6),
]

# ---- router, projections, MLP ----------------------------------------------------------------------------------------


def router_inputs(activation="SOFTMAX", layout=0, bias=True, t=8, h=256, e=32, k=4, **more):
    def inputs(rng):
        def small(shape):
            return typed(rng.uniform(-1, 1, shape), "bfloat16")
        return Call((), dict(x=small((h, t) if layout == 0 else (t, h)), w=small((h, e)),
                             w_bias=small((1, e)) if bias else None, router_logits=zeros((t, e), "bfloat16"),
                             expert_affinities=zeros((t, e), "bfloat16"), expert_index=zeros((t, k), "uint32"),
                             act_fn=getattr(types().RouterActFnType, activation), k=k, x_hbm_layout=layout,
                             x_sb_layout=0, **more))
    return inputs


def router_reference(x, w, w_bias, act_fn, k, x_hbm_layout, router_pre_norm=True, norm_topk_prob=False, **_):
    logits, experts, affinities = ref.router_topk(x, w, w_bias, k, act_fn.name.lower(), x_hbm_layout == 1,
                                                  router_pre_norm, norm_topk_prob)
    return logits, experts, affinities


def projection_inputs(tkg, b=1, n=2, d=64, s=128, h=512, bias=True, **more):
    def inputs(rng):
        a = normal(rng, (d, b, n, s) if tkg else (b, n, d, s), "bfloat16")
        return Call((), dict(attention=a, weight=normal(rng, (n * d, h), "bfloat16", 0.1),
                             bias=normal(rng, (1, h), "bfloat16") if bias else None, **more))
    return inputs


def mlp_inputs(b, s, h, i, norm="NO_NORM", bias=False, activation="SiLU", **more):
    def inputs(rng):
        t = types()
        call = dict(hidden_tensor=normal(rng, (b, s, h), "bfloat16"),
                    gate_proj_weights_tensor=normal(rng, (h, i), "bfloat16", h ** -0.5),
                    up_proj_weights_tensor=normal(rng, (h, i), "bfloat16", h ** -0.5),
                    down_proj_weights_tensor=normal(rng, (i, h), "bfloat16", i ** -0.5),
                    activation_fn=getattr(t.ActFnType, activation), normalization_type=getattr(t.NormType, norm))
        if norm != "NO_NORM":
            call["normalization_weights_tensor"] = normal(rng, (1, h), "bfloat16")
        if norm == "LAYER_NORM":
            call["normalization_bias_tensor"] = normal(rng, (1, h), "bfloat16")
        if bias:
            call.update(gate_proj_bias_tensor=normal(rng, (1, i), "bfloat16"),
                        up_proj_bias_tensor=normal(rng, (1, i), "bfloat16"),
                        down_proj_bias_tensor=normal(rng, (1, h), "bfloat16"))
        return Call((), dict(call, **more))
    return inputs


def norm_of(kind, gamma, beta=None, eps=1e-6):
    gamma = None if gamma is None else ref.plain(gamma)
    if kind.name == "RMS_NORM":
        return lambda x: ref.rms_norm(x, gamma, eps)
    if kind.name == "LAYER_NORM":
        return lambda x: ref.layer_norm(x, gamma, None if beta is None else ref.plain(beta), eps)
    return lambda x: x


def mlp_reference(hidden_tensor, gate_proj_weights_tensor, up_proj_weights_tensor, down_proj_weights_tensor,
                  activation_fn, normalization_type, normalization_weights_tensor=None, gate_proj_bias_tensor=None,
                  up_proj_bias_tensor=None, down_proj_bias_tensor=None, normalization_bias_tensor=None, **_):
    return ref.mlp(hidden_tensor, gate_proj_weights_tensor, up_proj_weights_tensor, down_proj_weights_tensor,
                   norm_of(normalization_type, normalization_weights_tensor, normalization_bias_tensor),
                   gate_proj_bias_tensor, up_proj_bias_tensor, down_proj_bias_tensor, ACTIVATIONS[activation_fn.name])


def qkv_inputs(b, s, h, heads=2, kv=1, d=64, norm="NO_NORM", bias=False, rope=False, layout="BSD", **more):
    def inputs(rng):
        t, width = types(), (heads + 2 * kv) * d
        call = dict(input=normal(rng, (b, s, h), "bfloat16"),
                    fused_qkv_weights=normal(rng, (h, width), "bfloat16", h ** -0.5),
                    output_layout=getattr(t.QKVOutputLayout, layout), fused_norm_type=getattr(t.NormType, norm),
                    d_head=d, num_q_heads=heads, num_kv_heads=kv)
        if norm != "NO_NORM":
            call["gamma_norm_weights"] = normal(rng, (1, h), "bfloat16")
        if bias:
            call["bias"] = normal(rng, (1, width), "bfloat16")
        if rope:
            angle = rng.uniform(0, 6, (b, s, d // 2))
            call.update(fused_rope=True, cos_cache=typed(np.tile(np.cos(angle), 2), "bfloat16"),
                        sin_cache=typed(np.tile(np.sin(angle), 2), "bfloat16"))
        return Call((), dict(call, **more))
    return inputs


def qkv_reference(input, fused_qkv_weights, output_layout, fused_norm_type, d_head, num_q_heads, num_kv_heads,
                  gamma_norm_weights=None, bias=None, fused_rope=False, cos_cache=None, sin_cache=None, **_):
    """x w + bias of the normed x; heads [q.., k.., v..]; RoPE turns the halves of the q and k heads."""
    x = norm_of(fused_norm_type, gamma_norm_weights)(ref.plain(input))
    out = x @ ref.plain(fused_qkv_weights) + (0 if bias is None else ref.plain(bias))
    heads = out.reshape(*out.shape[:2], -1, d_head)
    if fused_rope:
        turn = num_q_heads + num_kv_heads
        q, _ = ref.rope_hf(heads[:, :, :turn].transpose(0, 2, 1, 3), heads[:, :, :1].transpose(0, 2, 1, 3),
                           cos=cos_cache, sin=sin_cache)
        heads = np.concatenate((q.transpose(0, 2, 1, 3), heads[:, :, turn:]), axis=2)
    return heads.transpose(2, 0, 1, 3) if output_layout.name == "NBSd" else heads.reshape(out.shape)


DENSE = 2e-2            # chosen here for bfloat16: operands, inner results and results each round, 2^-8 at a time
PROJECTIONS = [
    core("router_topk", "router_topk/router_topk.py", jitted("router_topk"), router_inputs(), router_reference,
         rtol=DENSE, atol=2e-3, outputs=lambda r: (r[0], r[1], r[2])),
    core("router_topk, x [T, H], after top k, normalized", "router_topk/router_topk.py", jitted("router_topk"),
         router_inputs(layout=1, router_pre_norm=False), router_reference, rtol=DENSE, atol=2e-3,
         outputs=lambda r: (r[0], r[1], r[2])),
    core("router_topk, sigmoid, scattered", "router_topk/router_topk.py", jitted("router_topk"),
         router_inputs("SIGMOID", router_pre_norm=False, use_indirect_dma_scatter=True), router_reference,
         rtol=DENSE, atol=2e-3, outputs=lambda r: (r[0], r[1], r[2])),
    core("output_projection_cte", "output_projection/output_projection_cte/output_projection_cte.py",
         "output_projection_cte", projection_inputs(False), ref.output_projection_cte, rtol=DENSE, atol=DENSE),
    core("output_projection_tkg", "output_projection/output_projection_tkg.py", "output_projection_tkg",
         projection_inputs(True, b=2, s=2), ref.output_projection_tkg, rtol=DENSE, atol=DENSE),
    core("output_projection_tkg, transposed", "output_projection/output_projection_tkg.py", "output_projection_tkg",
         projection_inputs(True, b=2, s=2, TRANSPOSE_OUT=True), ref.output_projection_tkg, rtol=DENSE, atol=DENSE),
    core("mlp", "mlp/mlp.py", "mlp", mlp_inputs(1, 4, 256, 256), mlp_reference,
         needs="mlp.py of the release of 2026-04-13 is no valid Python (its docstring ends twice)"),
    core("mlp_tkg", "mlp/mlp_tkg/mlp_tkg.py", wrapped(mlp_kernel), mlp_inputs(1, 4, 256, 256), mlp_reference,
         rtol=DENSE, atol=DENSE),
    core("mlp_tkg, RMS norm", "mlp/mlp_tkg/mlp_tkg.py", wrapped(mlp_kernel), mlp_inputs(1, 4, 256, 256, "RMS_NORM"),
         mlp_reference, rtol=DENSE, atol=DENSE),
    core("mlp_tkg, bias, GELU", "mlp/mlp_tkg/mlp_tkg.py", wrapped(mlp_kernel),
         mlp_inputs(1, 4, 256, 256, bias=True, activation="GELU"), mlp_reference, rtol=DENSE, atol=DENSE),
    core("mlp_cte", "mlp/mlp_cte/mlp_cte.py", wrapped(mlp_kernel), mlp_inputs(1, 256, 512, 256), mlp_reference,
         rtol=DENSE, atol=DENSE),
    core("mlp_cte, layer norm, bias", "mlp/mlp_cte/mlp_cte.py", wrapped(mlp_kernel),
         mlp_inputs(1, 256, 512, 256, "LAYER_NORM", True), mlp_reference, rtol=DENSE, atol=4e-2,
         note="atol: the norm's result and each bias round to bfloat16"),
    core("qkv (token generation)", "qkv/qkv.py", "qkv", qkv_inputs(1, 4, 512), qkv_reference, rtol=DENSE, atol=DENSE),
    core("qkv (token generation), RMS norm, heads first", "qkv/qkv.py", "qkv",
         qkv_inputs(1, 4, 512, norm="RMS_NORM", layout="NBSd"), qkv_reference, rtol=DENSE, atol=DENSE),
    core("qkv (context encoding)", "qkv/qkv.py", "qkv", qkv_inputs(1, 256, 512), qkv_reference, rtol=DENSE,
         atol=DENSE),
    core("qkv (context encoding), RMS norm, bias, RoPE", "qkv/qkv.py", "qkv",
         qkv_inputs(1, 256, 512, norm="RMS_NORM", bias=True, rope=True), qkv_reference, rtol=DENSE, atol=4e-2,
         note="atol: q and k round to bfloat16 before and after RoPE"),
]

# ---- attention -------------------------------------------------------------------------------------------------------


def attention_inputs(bs=2, bs_kv=1, sq=256, sk=256, d=64, tp_q=True, tp_k=False, prior=0, sink=False, **more):
    def inputs(rng):
        def rows(n, s, as_rows, scale=1.0):
            return normal(rng, (n, s, d) if as_rows else (n, d, s), "bfloat16", scale)
        call = dict(q=rows(bs, sq, tp_q, d ** -0.5), k=rows(bs_kv, sk, tp_k), v=rows(bs_kv, sk, True), tp_q=tp_q,
                    tp_k=tp_k, **more)
        if prior:
            call.update(k_prior=rows(bs_kv, prior, tp_k), v_prior=rows(bs_kv, prior, True),
                        prior_used_len=np.array([prior - 32], np.int32))
        if sink:
            call["sink"] = normal(rng, (bs, 1), "bfloat16")
        return Call((), call)
    return inputs


def backward_inputs(causal, heads=1, kv=1, s=512, d=64):
    def inputs(rng):
        q, dy = (normal(rng, (1, heads, d, s)) for _ in range(2))
        k, v = (normal(rng, (1, kv, d, s)) for _ in range(2))
        qf, kf, vf = (ref.plain(x) for x in (q, np.repeat(k, heads // kv, 1), np.repeat(v, heads // kv, 1)))
        scores = np.einsum("bhdq,bhdk->bhqk", qf, kf) * d ** -0.5
        if causal:
            scores = np.where(np.tri(s, dtype=bool), scores, -np.inf)
        out = np.einsum("bhqk,bhdk->bhdq", ref.softmax(scores), vf)
        top = scores.max(-1)
        lse = top + np.log(np.exp(scores - top[..., None]).sum(-1))
        return Call((), dict(q_ref=q, k_ref=k, v_ref=v, o_ref=typed(out, "float32"), dy_ref=dy,
                             lse_ref=typed(lse.reshape(1, heads, s // 128, 128).transpose(0, 1, 3, 2), "float32"),
                             use_causal_mask=causal, mixed_precision=True))
    return inputs


ATTENTION = [
    core("attention_cte", "attention/attention_cte.py", "attention_cte", attention_inputs(), ref.attention_cte,
         rtol=DENSE, atol=1e-2),
    core("attention_cte, no mask, transposed", "attention/attention_cte.py", "attention_cte",
         attention_inputs(causal_mask=False, tp_q=False, tp_k=True, tp_out=True), ref.attention_cte, rtol=DENSE,
         atol=1e-2),
    core("attention_cte, sliding window", "attention/attention_cte.py", "attention_cte",
         attention_inputs(sliding_window=64), ref.attention_cte, rtol=DENSE, atol=1e-2),
    core("attention_cte, prior keys", "attention/attention_cte.py", "attention_cte", attention_inputs(prior=128),
         ref.attention_cte, rtol=DENSE, atol=1e-2),
    core("attention_cte, sink", "attention/attention_cte.py", "attention_cte", attention_inputs(sink=True),
         ref.attention_cte, rtol=DENSE, atol=1e-2),
    core("attention_bwd", "attention/attention_bwd.py", "attention_bwd", backward_inputs(False), ref.attention_bwd,
         rtol=DENSE, atol=DENSE),
    core("attention_bwd, causal", "attention/attention_bwd.py", "attention_bwd", backward_inputs(True),
         ref.attention_bwd, rtol=DENSE, atol=DENSE),
]

# ---- on a logical core of two ----------------------------------------------------------------------------------------


def interleaved(reference):
    """Of a result [128, n, H / 128] what two cores make: each half of H on all partitions, one after the other."""
    def on_two(input, gamma, output=None, **more):
        whole = reference(input, gamma, output, **more)
        flat = whole.transpose(1, 0, 2).reshape(whole.shape[1], -1)
        halves = (ref.hidden_on_partitions(half) for half in np.split(flat, 2, axis=1))
        return np.concatenate(tuple(halves), axis=2)
    return on_two


def with_keywords(inputs, **more):
    def changed(rng):
        call = inputs(rng)
        return Call(call.args, dict(call.kwargs, **more))
    return changed


def on_two(case, changed=None, **more):
    """The same case with a grid of two: programs that share HBM, wait for each other and exchange tiles."""
    inputs = with_keywords(case.inputs, **changed) if changed else case.inputs
    return dataclasses.replace(case, name=case.name + " (two cores)", grid=2, inputs=inputs, **more)


def projection_on_two(attention, weight, bias=None, TRANSPOSE_OUT=False):
    """output_projection_tkg with TRANSPOSE_OUT by two cores: [128, 2, H / 256, B S]."""
    flat = ref.output_projection_tkg(attention, weight, bias)
    return flat.reshape(len(flat), 2, 128, -1).transpose(2, 1, 3, 0)


def named(cases, *names):
    return [case for case in cases if case.name in names]


MODELS = model_cases(core, experimental, typed, part)
FUSED = fused_cases(core, experimental, typed, part, wrapped) + mx_cases(core, typed, part, wrapped)
LOGICAL = (
    [on_two(case) for case in named(SMALL, "cascaded_max", "rope_hf", "topk_reduce")] +
    [on_two(case, dict(lnc_shard=True)) for case in named(SMALL, "RoPE", "RoPE, interleaved")] +
    [on_two(case, reference=interleaved(case.reference)) for case in named(NORMS, "rmsnorm_tkg", "layernorm_tkg")] +
    [on_two(case) for case in named(NORMS, "rmsnorm_quant, scale per row")] +
    [on_two(case, dict(lnc_shard=True)) for case in named(CONV_AND_LOSS, "conv1d, bias, SiLU")] +
    [on_two(case) for case in named(CONV_AND_LOSS, "depthwise_conv1d", "cross_entropy_forward",
                                    "cross_entropy_backward")] +
    [on_two(case, reference=projection_on_two) for case in named(PROJECTIONS, "output_projection_tkg, transposed")] +
    [on_two(case) for case in named(PROJECTIONS, "router_topk", "output_projection_cte", "output_projection_tkg",
                                    "mlp_tkg, RMS norm", "mlp_cte", "qkv (token generation)",
                                    "qkv (context encoding), RMS norm, bias, RoPE")] +
    [on_two(case) for case in named(ATTENTION, "attention_cte", "attention_bwd, causal")] +
    [on_two(case, no_poison=True) for case in named(MODELS, "attention_tkg")] +
    [on_two(case) for case in named(MODELS, "moe_tkg, chosen experts", "moe_tkg, all experts")]
)

CASES = SMALL + NORMS + CONV_AND_LOSS + PROJECTIONS + ATTENTION + MODELS + FUSED + LOGICAL
