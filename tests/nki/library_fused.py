"""nki-library's fused, quantized and backward kernels: attention block, mixtures of experts backward, float8, MX."""
import numpy as np

import library_reference as ref
from case import Call
from library_models import DENSE, blocks_by_expert, experts_of, moe_cte
from library_types import decoded

# ---- attention block of token generation ----------------------------------------------------------------------------


def attention_block_inputs(typed, part, b=2, s=1, h=512, d=64, heads=2, context=256):
    def inputs(rng):
        none = part("core.utils.common_types").QuantizationType.NONE

        def some(shape, scale=1.0):
            return typed(scale * rng.standard_normal(shape), "bfloat16")
        at = rng.integers(20, 200, b)
        mask = np.broadcast_to((np.arange(context)[:, None] < at)[:, :, None, None], (context, b, heads, s)).copy()
        mask[context - s:] = np.tri(s).T[:, None, None, :] != 0
        angle = rng.uniform(0, 6, (d // 2, b, s))
        return Call((), dict(
            X=some((b, s, h)), X_hidden_dim_actual=None, rmsnorm_X_enabled=True, rmsnorm_X_eps=1e-3,
            rmsnorm_X_gamma=typed(rng.uniform(0.5, 1.5, (1, h)), "bfloat16"),
            W_qkv=some((h, (heads + 2) * d), h ** -0.5), bias_qkv=None, quantization_type_qkv=none,
            weight_dequant_scale_qkv=None, input_dequant_scale_qkv=None, rmsnorm_QK_pre_rope_enabled=False,
            rmsnorm_QK_pre_rope_eps=1e-3, rmsnorm_QK_pre_rope_W_Q=None, rmsnorm_QK_pre_rope_W_K=None,
            cos=typed(np.cos(angle), "bfloat16"), sin=typed(np.sin(angle), "bfloat16"), rope_contiguous_layout=True,
            rmsnorm_QK_post_rope_enabled=False, rmsnorm_QK_post_rope_eps=1e-3, rmsnorm_QK_post_rope_W_Q=None,
            rmsnorm_QK_post_rope_W_K=None, K_cache_transposed=False, active_blocks_table=None,
            K_cache=some((b, 1, context, d)), V_cache=some((b, 1, context, d)), attention_mask=typed(mask, "uint8"),
            sink=None, update_cache=True, kv_cache_update_idx=typed(at.reshape(b, 1), "uint32"),
            W_out=some((heads * d, h), (heads * d) ** -0.5), bias_out=None, quantization_type_out=none,
            weight_dequant_scale_out=None, input_dequant_scale_out=None, transposed_out=False, out_in_sb=False))
    return inputs


def attention_block(X, rmsnorm_X_eps, rmsnorm_X_gamma, W_qkv, cos, sin, K_cache, V_cache, attention_mask,
                    kv_cache_update_idx, W_out, **_):
    """norm, q k v, RoPE, attention to cache and new token, output; the caches with the new token at its place."""
    x = ref.rms_norm(ref.plain(X), ref.plain(rmsnorm_X_gamma), rmsnorm_X_eps)
    k_cache, v_cache = ref.plain(K_cache).copy(), ref.plain(V_cache).copy()
    b, _, _, d = k_cache.shape
    s = x.shape[1]
    heads = (x @ ref.plain(W_qkv)).reshape(b, s, -1, d).transpose(3, 0, 2, 1)       # [d, B, heads, s]
    turned = ref.rope(heads[:, :, :-1], cos, sin)
    q, k_new, v_new = turned[:, :, :-1], turned[:, :, -1:], heads[:, :, -1:]
    k_new, v_new = k_new.transpose(1, 2, 3, 0), v_new.transpose(1, 2, 3, 0)         # [B, 1, s, d]
    k = np.concatenate((k_cache[:, :, :-s], k_new), 2)
    v = np.concatenate((v_cache[:, :, :-s], v_new), 2)
    scores = q.transpose(1, 2, 3, 0) @ k.transpose(0, 1, 3, 2) * d ** -0.5
    see = ref.plain(attention_mask).transpose(1, 2, 3, 0) != 0
    out = ref.softmax(np.where(see, scores, -np.inf)) @ v                            # [B, heads, s, d]
    for i, at in enumerate(ref.plain(kv_cache_update_idx).astype(int)[:, 0]):
        k_cache[i, :, at:at + s], v_cache[i, :, at:at + s] = k_new[i], v_new[i]
    return out.transpose(0, 2, 1, 3).reshape(b * s, -1) @ ref.plain(W_out), k_cache, v_cache


# ---- mixtures of experts, other ways --------------------------------------------------------------------------------

def blocks_of(rng, t, experts, block):
    """One expert for each token; blocks of tokens of one expert, padded by token t; whose each block is; affinities."""
    index, affinities = experts_of(rng, t, experts, 1)
    tokens, owner = blocks_by_expert(index, t, experts, block)
    affinities = affinities * rng.uniform(0.3, 1, (t, 1))
    return tokens, owner, np.concatenate((affinities, np.zeros((1, experts))))


def shard_on_h_inputs(typed, part, t=128, h=512, i=256, experts=2, block=128):
    def inputs(rng):
        tokens, owner, share = blocks_of(rng, t, experts, block)
        hidden = np.concatenate((rng.standard_normal((t, h)), np.zeros((1, h))))
        return Call((), dict(
            hidden_states=typed(hidden, "bfloat16"), expert_affinities_masked=typed(share.reshape(-1, 1), "bfloat16"),
            gate_up_proj_weight=typed(rng.standard_normal((experts, h, 2, i)) * h ** -0.5, "bfloat16"),
            down_proj_weight=typed(rng.standard_normal((experts, i, h)) * i ** -0.5, "bfloat16"),
            token_position_to_id=typed(tokens, "int32"), block_to_expert=typed(owner.reshape(-1, 1), "int32"),
            block_size=block))
    return inputs


def shard_on_h(**arguments):
    return moe_cte(spec=None, **arguments)


def silu_slope(x):
    return ref.sigmoid(x) * (1 + x * (1 - ref.sigmoid(x)))


def backward_inputs(typed, part, t=256, h=256, i=128, experts=2, block=256):
    def inputs(rng):
        import nki.language as nl
        tokens, owner, share = blocks_of(rng, t, experts, block)
        x = np.concatenate((rng.random((t, h)), np.zeros((1, h))))
        dy = np.concatenate((rng.uniform(-1, 1, (t, h)), np.zeros((1, h))))
        gate_up, down = (rng.uniform(-0.1, 0.1, s) for s in ((experts, h, 2, i), (experts, i, h)))
        own = tokens.reshape(-1, block)
        acts = np.stack([np.einsum("bh,hgi->gib", x[o], gate_up[e]) for o, e in zip(own, owner)])
        downs = np.stack([(ref.silu(a[0]) * a[1]).T @ down[e] for a, e in zip(acts, owner)])
        return Call((), dict(
            hidden_states=typed(x, "bfloat16"), expert_affinities_masked=typed(share.reshape(-1, 1), "bfloat16"),
            gate_up_proj_weight=typed(gate_up, "bfloat16"), down_proj_weight=typed(down, "bfloat16"),
            gate_up_proj_act_checkpoint_T=typed(acts, "bfloat16"), down_proj_act_checkpoint=typed(downs, "bfloat16"),
            token_position_to_id=typed(tokens, "int32"), block_to_expert=typed(owner, "int32"),
            output_hidden_states_grad=typed(dy, "bfloat16"), block_size=block, compute_dtype=nl.bfloat16,
            is_tensor_update_accumulating=False))
    return inputs


def blockwise_mm_bwd(hidden_states, expert_affinities_masked, gate_up_proj_weight, down_proj_weight,
                     gate_up_proj_act_checkpoint_T, down_proj_act_checkpoint, token_position_to_id, block_to_expert,
                     output_hidden_states_grad, block_size, **_):
    """Gradients of hidden states, affinities, gate and up weights, down weights."""
    x, dy = ref.plain(hidden_states), ref.plain(output_hidden_states_grad)
    gate_up, down = ref.plain(gate_up_proj_weight), ref.plain(down_proj_weight)
    share = ref.plain(expert_affinities_masked).reshape(len(x), -1)
    acts, downs = ref.plain(gate_up_proj_act_checkpoint_T), ref.plain(down_proj_act_checkpoint)
    dx, dshare, dgu, dd = (np.zeros(a.shape) for a in (x, share, gate_up, down))
    own = ref.plain(token_position_to_id).astype(int).reshape(-1, block_size)
    for n, (o, e) in enumerate(zip(own, ref.plain(block_to_expert).astype(int).reshape(-1))):
        gate, up = acts[n, 0].T, acts[n, 1].T
        dshare[o, e] = (dy[o] * downs[n]).sum(1)
        dout = dy[o] * share[o, e, None]
        dd[e] += (ref.silu(gate) * up).T @ dout
        inner = dout @ down[e].T
        both = np.stack((inner * up * silu_slope(gate), inner * ref.silu(gate)), axis=1)      # [B, 2, I]
        dgu[e] += np.einsum("bh,bgi->hgi", x[o], both)
        dx[o] += np.einsum("bgi,hgi->bh", both, gate_up[e])
    return dx, dshare.reshape(-1, 1), dgu, dd


def without_affinities(reference):
    def others(*args, **kwargs):
        dx, _, dgu, dd = reference(*args, **kwargs)
        return dx, None, dgu, dd
    return others


# ---- float8 ---------------------------------------------------------------------------------------------------------

TOP = 240.0     # the largest float8_e4m3


def row_quantized(typed, w):
    """float8_e4m3 codes of w, and a scale for each column."""
    scale = np.abs(w).max(0, keepdims=True) / TOP
    return typed(w / scale, "float8_e4m3"), scale


def projection_row_inputs(typed, part, d=64, b=4, n=2, h=512):
    def inputs(rng):
        weight, scale = row_quantized(typed, rng.uniform(-1, 1, (n * d, h)))
        return Call((), dict(attention=typed(rng.uniform(-1, 1, (d, b, n, 1)), "bfloat16"), weight=weight,
                             bias=typed(rng.standard_normal((1, h)), "bfloat16"),
                             quantization_type=part("core.utils.common_types").QuantizationType.ROW,
                             weight_scale=typed(np.broadcast_to(scale, (128, h)), "float32")))
    return inputs


def projection_row(attention, weight, bias, quantization_type, weight_scale):
    return ref.output_projection_tkg(attention, ref.plain(weight) * ref.plain(weight_scale)[:1], bias)


# ---- MX -------------------------------------------------------------------------------------------------------------

def four_of(words):
    """[.., n] words of float8_e4m3fn_x4 as [.., n, 4] numbers."""
    codes = np.ascontiguousarray(words).view(np.uint8).reshape(words.shape + (4,))
    top = (codes & 0x78) == 0x78        # the highest exponent holds numbers up to 448 here
    wide = 256 * (1 + (codes & 7) / 8) * np.where(codes & 0x80, -1, 1)
    return np.where(top, wide, decoded(np.where(top, 0, codes).astype(np.uint8), "float8_e4m3"))


def scales_of(tile):
    """The scale of each partition [128, n], of a tile that holds those of 8 partitions in one of 4 of each 32."""
    group = np.arange(128) // 8
    return np.ldexp(1.0, tile[32 * (group // 4) + group % 4].astype(int) - 127)


def mx_load_kernel(module, nki, nl, nisa):
    """load_and_quantize_mxfp_mk, whose scales are stored where they are: four partitions of each 32."""
    def mx_load(x):
        shape = (128, x.shape[0] * x.shape[1] // 512)
        data = nl.ndarray(shape, dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
        scale = nl.ndarray(shape, dtype=nl.uint8, buffer=nl.sbuf)
        nisa.memset(scale, 0)
        module.load_and_quantize_mxfp_mk(x, data, scale)
        out = nl.ndarray(shape, dtype=nl.float8_e4m3fn_x4, buffer=nl.shared_hbm)
        out_scale = nl.ndarray(shape, dtype=nl.uint8, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=data)
        nisa.dma_copy(dst=out_scale, src=scale)
        return out, out_scale
    return mx_load


def mx_loaded(result):
    """[M, K] again: word (p, m) of block k holds elements 512 k + 4 p to 4 p + 3 of row m."""
    words, scale = result
    values = four_of(np.asarray(words)) * scales_of(np.asarray(scale))[:, :, None]     # [128, blocks M, 4]
    blocks = values.shape[1] // 128
    return values.reshape(128, blocks, 128, 4).transpose(2, 1, 0, 3).reshape(128, -1)


def norm_mx_kernel(module, nki, nl, nisa):
    def norm_mx(x, gamma):
        b, s, h = x.shape
        shape, packed = (128, b * s, h // 128), (128, h // 512, b * s)
        out = nl.ndarray(shape, dtype=x.dtype, buffer=nl.sbuf)
        data = nl.ndarray(packed, dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
        scale = nl.ndarray(packed, dtype=nl.uint8, buffer=nl.sbuf)
        module.rmsnorm_mx_quantize_tkg(input=x, gamma=gamma, output=out, output_quant=data, output_scale=scale)
        stored = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
        mine = nl.ds(b * s // 2 * nl.program_id(0), b * s // 2)
        nisa.dma_copy(dst=stored[:, mine, :], src=out[:, mine, :])
        return stored
    return norm_mx


def fused_cases(core, experimental, typed, part, wrapped):
    block = "transformer/attention_block_tkg.py"
    return [
        experimental("attention_block_tkg", block, "attention_block_tkg", attention_block_inputs(typed, part),
                     attention_block, rtol=DENSE, atol=4e-2, note="atol: q, k, v round to bfloat16 between the stages"),
        experimental("attention_block_tkg (two cores)", block, "attention_block_tkg",
                     attention_block_inputs(typed, part), attention_block, rtol=DENSE, atol=4e-2, grid=2,
                     no_poison=True, note="atol: q, k, v round to bfloat16 between the stages; whole tiles are sent"),
        experimental("transformer_tkg", "transformer/transformer_tkg.py", "llama3_transformer_fwd_tkg", lambda rng: (),
                     None, needs="it imports mlp.py, which is no valid Python in the release of 2026-04-13"),
        experimental("bwmm_shard_on_H", "moe/forward/bwmm_shard_on_H.py", "blockwise_mm_baseline_shard_hidden",
                     shard_on_h_inputs(typed, part), shard_on_h, rtol=DENSE, atol=DENSE, grid=2,
                     outputs=lambda r: r[:-1]),
        experimental("blockwise_mm_bwd", "moe/bwd/blockwise_mm_backward.py", "blockwise_mm_bwd",
                     backward_inputs(typed, part), blockwise_mm_bwd, rtol=4e-2, atol=5e-2,
                     note="activations, products and gradients each round to bfloat16; a row's sums reach 20"),
        experimental("blockwise_mm_bwd (two cores)", "moe/bwd/blockwise_mm_backward.py", "blockwise_mm_bwd",
                     backward_inputs(typed, part), without_affinities(blockwise_mm_bwd), rtol=4e-2, atol=5e-2, grid=2,
                     no_races=True, note="a race: no barrier parts a core's zeroes from the other's results; the "
                                         "affinities' gradient is left out"),
        core("output_projection_tkg, float8, scale per column", "output_projection/output_projection_tkg.py",
             "output_projection_tkg", projection_row_inputs(typed, part), projection_row, rtol=DENSE, atol=DENSE),
        experimental("load_and_quantize_mxfp_mk", "mxfp_subkernels/mxfp_load_utils.py", wrapped(mx_load_kernel),
                     lambda rng: (typed(rng.standard_normal((128, 1024)), "bfloat16"),), lambda x: ref.plain(x),
                     rtol=2.0 ** -4, atol=2.0 ** -7, generation=3, outputs=mx_loaded,
                     note="half a step of float8_e4m3fn, or of its smallest numbers at the block's scale"),
        core("rmsnorm_mx_quantize_tkg", "subkernels/rmsnorm_mx_quantize_tkg.py", wrapped(norm_mx_kernel),
             lambda rng: (typed(rng.standard_normal((1, 8, 512)), "bfloat16"),
                          typed(rng.uniform(0.5, 1.5, (1, 512)), "bfloat16")),
             lambda x, gamma: ref.hidden_on_partitions(ref.rms_norm(ref.plain(x), ref.plain(gamma)), True),
             rtol=DENSE, atol=1e-2, generation=3, grid=2, no_poison=True,
             note="the normed output; its MX copy stays in SBUF; whole scale tiles are sent"),
    ]
