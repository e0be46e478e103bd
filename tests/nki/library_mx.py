"""nki-library's kernels on MX weights: float8_e4m3fn codes, four to a word, a scale for each 8 partitions x 4 codes.

Axis H of a weight lies in [128 partitions, H / 512 tiles, 4 codes]: row q H/4 + 128 tile + partition. Axis I of a down
weight lies in [128, I / 512, 4]: row 512 tile + 128 q + partition. Kernels quantize what they multiply; so does the
reference, as quantize_mx does: the scale is twice that of OCP (trnmath's default, documented by NKI),
so that no code saturates; ties to even. The library's own goldens take OCP's scale.
"""
import numpy as np

import library_reference as ref
from case import Call
from library_models import experts_of
from library_types import decoded, encoded

DENSE = 2e-2


def numbers(codes):
    """float8_e4m3fn codes that are no NaN, as numbers."""
    codes = codes.astype(np.int64)
    e, f = (codes >> 3) & 15, codes & 7
    return np.where(codes & 128, -1.0, 1.0) * np.where(e == 0, np.ldexp(f / 8.0, -6), np.ldexp(1 + f / 8.0, e - 7))


def mx_rounded(x, axes):
    """x in float8_e4m3fn with one power of two for each group along these axes."""
    top = np.abs(x).max(axes, keepdims=True)
    scale = np.ldexp(1.0, np.frexp(top)[1] - 1 - 7)
    v = x / scale
    unit = np.ldexp(1.0, np.maximum(np.frexp(v)[1] - 1, -6) - 3)
    return np.clip(np.rint(v / unit) * unit, -448, 448) * scale


def random_weight(rng, shape, spread):
    """Words and scales [e, 128, .., n], [e, 16, .., n], and their numbers [e, 128, .., n, 4]."""
    codes = (rng.integers(0, 2, shape + (4,)) << 7 | rng.integers(4, 8, shape + (4,)) << 3 |
             rng.integers(0, 8, shape + (4,))).astype(np.uint8)
    scales = (127 + int(np.floor(np.log2(spread))) + rng.integers(-1, 2, (shape[0], 16) + shape[2:])).astype(np.uint8)
    factor = np.ldexp(1.0, np.repeat(scales.astype(int), 8, axis=1) - 127)
    return codes.view(np.uint32)[..., 0], scales, numbers(codes) * factor[..., None]


def moe_inputs(typed, part, all_expert, t=8, h=1024, i=512, experts=2, k=2):
    def inputs(rng):
        import nki
        enums = part("core.utils.common_types")
        index, affinities = experts_of(rng, t, experts, k)
        gate_up, gate_up_scale, _ = random_weight(rng, (experts, 128, 2, h // 512, i), h ** -0.5)
        down, down_scale, _ = random_weight(rng, (experts, 128, i // 512, h), i ** -0.5)
        return Call((), dict(
            hidden_input=typed(rng.standard_normal((t, h)), "bfloat16"),
            expert_gate_up_weights=nki.tensor(gate_up, "float8_e4m3fn_x4"),
            expert_down_weights=nki.tensor(down, "float8_e4m3fn_x4"),
            expert_gate_up_bias=typed(rng.standard_normal((experts, 128, 2, i // 512, 4)), "bfloat16"),
            expert_down_bias=typed(rng.standard_normal((experts, h)), "bfloat16"),
            expert_gate_up_weights_scale=gate_up_scale, expert_down_weights_scale=down_scale,
            expert_affinities=typed(affinities, "bfloat16" if all_expert else "float32"),
            expert_index=typed(index, "int32"), is_all_expert=all_expert,
            rank_id=np.zeros((1, 1), np.uint32) if all_expert else None,
            expert_affinities_scaling_mode=enums.ExpertAffinityScaleMode.POST_SCALE))
    return inputs


def half(x):
    """x in bfloat16."""
    return decoded(encoded(x, "bfloat16"), "bfloat16")


def moe(hidden_input, expert_gate_up_weights, expert_down_weights, expert_gate_up_bias, expert_down_bias,
        expert_gate_up_weights_scale, expert_down_weights_scale, expert_affinities, **_):
    def weight(words, scales):
        codes = np.ascontiguousarray(words.array).view(np.uint8).reshape(words.shape + (4,))
        return numbers(codes) * np.ldexp(1.0, np.repeat(scales.astype(int), 8, axis=1) - 127)[..., None]
    gate_up = weight(expert_gate_up_weights, expert_gate_up_weights_scale)      # [e, p, 2, tile, i, q]
    down = weight(expert_down_weights, expert_down_weights_scale)               # [e, p, tile, h, q]
    x, share = ref.plain(hidden_input), ref.plain(expert_affinities)
    t, h = x.shape
    tiles = mx_rounded(x.reshape(t, 4, h // 512, 16, 8), (1, 4)).reshape(t, 4, h // 512, 128)
    out = np.zeros((t, h))
    for e in range(len(down)):
        both = np.zeros(())
        for tile in range(h // 512):                                                # PSUM holds sums in bfloat16
            both = half(both + np.einsum("xqp,pgiq->gxi", tiles[:, :, tile], gate_up[e][:, :, tile]))
        both = both.reshape(2, t, -1, 4, 128)
        both = half(both + ref.plain(expert_gate_up_bias)[e].transpose(1, 2, 3, 0)[:, None])
        inner = half(half(ref.silu(both[0])) * both[1]).reshape(t, -1, 4, 16, 8)    # [x, tile, q, group, 8]
        inner = mx_rounded(inner, (2, 4)).reshape(t, -1, 4, 128)
        one = np.einsum("xtqp,pthq->xh", inner, down[e]) + ref.plain(expert_down_bias)[e]
        out += share[:, e, None] * one
    return out


def mx_cases(core, typed, part, wrapped):
    file, kernel = "moe/moe_tkg/moe_tkg.py", wrapped(lambda m, nki, nl, nisa: m.moe_tkg)
    more = dict(rtol=DENSE, atol=5e-2, generation=3)
    chosen = dict(more, no_poison=True, note="columns of tokens that are padding are multiplied, too")
    return [
        core("moe_tkg, MX, all experts (two cores)", file, kernel, moe_inputs(typed, part, True, t=32), moe, grid=2,
             **more),
        core("moe_tkg, MX, chosen experts (two cores)", file, kernel, moe_inputs(typed, part, False), moe, grid=2,
             **chosen),
        core("moe_tkg, MX, chosen experts", file, kernel, moe_inputs(typed, part, False), moe, **chosen),
    ]
