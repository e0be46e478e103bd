"""The larger kernels of nki-library: attention of token generation, its masks, mixtures of experts.

Those that the library leaves plain functions over tiles in SBUF stand here inside a small kernel that loads, calls and
stores.
"""
import numpy as np

import library_reference as ref
from case import Call

DENSE = 2e-2


def wrapped(make):
    """A kernel made by make(module, nki, nl, nisa) when the front is there."""
    def find(module):
        import nki
        import nki.isa as nisa
        import nki.language as nl
        return nki.jit(make(module, nki, nl, nisa))
    return find


# ---- mask of token generation ----------------------------------------------------------------------------------------

def gen_mask_kernel(module, nki, nl, nisa):
    def gen_mask(positions, like, bs, q_head, s_active, s_prior):
        from nkilib.core.utils.allocator import SbufManager
        from nkilib.core.utils.logging import Logger
        sbm = SbufManager(0, 128 * 1024, Logger("mask"), use_auto_alloc=True)
        sbm.open_scope(name="mask")
        pos = sbm.alloc_stack(positions.shape, dtype=positions.dtype, buffer=nl.sbuf, name="pos")
        mask = sbm.alloc_stack(like.shape, dtype=like.dtype, buffer=nl.sbuf, name="mask_tile")
        nisa.dma_copy(dst=pos, src=positions)
        module.gen_mask_tkg(pos_ids=pos, mask_out=mask, bs=bs, q_head=q_head, s_active=s_active,
                            is_s_prior_sharded=False, s_prior_per_shard=s_prior, strided_mm1=False, sbm=sbm)
        out = nl.ndarray(like.shape, dtype=like.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=mask)
        sbm.close_scope()
        return out
    return gen_mask


def gen_mask_inputs(typed):
    def inputs(rng):
        bs, heads, active, prior = 2, 2, 2, 256
        at = np.repeat(rng.integers(20, 200, (1, bs)), active, axis=1)
        return (typed(np.repeat(at, 128, axis=0), "float32"),
                typed(np.zeros((128, prior // 128, bs, heads, active)), "uint8"), bs, heads, active, prior)
    return inputs


def gen_mask(positions, like, bs, q_head, s_active, s_prior):
    """mask[p, tile, b, h, s]: key tile * 128 + p lies before the position of (b, s)."""
    key = np.arange(s_prior).reshape(-1, 128).T
    pos = ref.plain(positions)[0].reshape(bs, s_active)
    return np.broadcast_to(key[:, :, None, None, None] < pos[None, None, :, None, :], like.shape).astype(np.float64)


# ---- attention of token generation -----------------------------------------------------------------------------------

def attention_tkg_kernel(module, nki, nl, nisa):
    def attention_tkg(q, k_active, v_active, k_prior, v_prior, mask, config):
        from nkilib.core.attention.attention_tkg_utils import AttnTKGConfig
        from nkilib.core.utils.allocator import SbufManager
        from nkilib.core.utils.logging import Logger
        cfg = AttnTKGConfig(**config)
        sbm = SbufManager(0, nl.tile_size.total_available_sbuf_size - 16 * 1024, Logger("attention"))
        sbm.open_scope()
        out = nl.ndarray((cfg.bs, cfg.q_head, cfg.d_head, cfg.s_active), dtype=q.dtype, buffer=nl.shared_hbm)
        q_tile = sbm.alloc_stack(q.shape, dtype=q.dtype, buffer=nl.sbuf)
        k_tile = sbm.alloc_stack(k_active.shape, dtype=k_active.dtype, buffer=nl.sbuf)
        nisa.dma_copy(q_tile, q)
        nisa.dma_copy(k_tile, k_active)
        out, _ = module.attention_tkg(q_tile, k_tile, v_active, k_prior, v_prior, mask, out, cfg, sbm)
        sbm.close_scope()
        return out
    return attention_tkg


def attention_tkg_inputs(typed, **more):
    """q [d, B heads s], k active [d, B s], which the kernel finds in SBUF; keys before [B, 1, d, S]; mask [S, B, H, s]:
    a query sees the keys before its position, and of the last s those up to its own."""
    def inputs(rng):
        cfg = dict(bs=2, q_head=2, s_active=2, curr_sprior=256, full_sprior=256, d_head=64, qk_in_sb=True,
                   **more)
        b, h, s, prior, d = (cfg[k] for k in ("bs", "q_head", "s_active", "curr_sprior", "d_head"))

        def some(shape, scale=1.0):
            return typed(scale * rng.standard_normal(shape), "bfloat16")
        see = np.arange(prior)[:, None] < rng.integers(20, 200, (1, b))
        mask = np.broadcast_to(see[:, :, None, None], (prior, b, h, s)).copy()
        mask[prior - s:] = (np.arange(s)[:, None] <= np.arange(s)[None, :])[:, None, None, :]
        return Call((some((d, b * h * s), d ** -0.5), some((d, b * s)), some((b, 1, s, d)),
                     some((b, 1, prior, d) if cfg.get("tp_k_prior") else (b, 1, d, prior)), some((b, 1, prior, d)),
                     typed(mask, "uint8"), cfg))
    return inputs


def attention_tkg(q, k_active, v_active, k_prior, v_prior, mask, config):
    b, h, s, d = (config[k] for k in ("bs", "q_head", "s_active", "d_head"))
    q = ref.plain(q).reshape(d, b, h, s).transpose(1, 2, 3, 0)
    k_active = ref.plain(k_active).reshape(d, b, 1, s).transpose(1, 2, 3, 0)
    k = ref.plain(k_prior) if config.get("tp_k_prior") else ref.plain(k_prior).transpose(0, 1, 3, 2)
    k, v = np.concatenate((k[:, :, :-s], k_active), 2), np.concatenate(
        (ref.plain(v_prior)[:, :, :-s], ref.plain(v_active)), 2)
    scores = np.where(ref.plain(mask).transpose(1, 2, 3, 0) != 0, q @ k.transpose(0, 1, 3, 2), -np.inf)
    return (ref.softmax(scores) @ v).transpose(0, 1, 3, 2)


# ---- MLP ------------------------------------------------------------------------------------------------------------

def mlp_kernel(module, nki, nl, nisa):
    """What the library's mlp does: parameters, output, then its mlp_tkg or mlp_cte, whichever is in the module."""
    def mlp(**arguments):
        from nkilib.core.mlp.mlp_parameters import MLPParameters, validate_mlp_arguments
        from nkilib.core.utils.allocator import SbufManager
        from nkilib.core.utils.logging import Logger
        params = MLPParameters(**arguments)
        validate_mlp_arguments(params)
        out = nl.ndarray((params.batch_size, params.sequence_len, params.hidden_size), dtype=params.output_dtype,
                         buffer=nl.shared_hbm)
        if hasattr(module, "mlp_tkg"):
            module.mlp_tkg(params, out, None, sbm=SbufManager(0, 200 * 1024, Logger("mlp")))
        else:
            module.mlp_cte(params, out, None)
        return out
    return mlp


# ---- mixture of experts, token generation ----------------------------------------------------------------------------

def experts_of(rng, t, experts, k):
    index = np.stack([rng.choice(experts, k, replace=False) for _ in range(t)])
    share = rng.random((t, k)) + 0.1
    affinities = np.zeros((t, experts))
    np.put_along_axis(affinities, index, share / share.sum(1, keepdims=True), 1)
    return index, affinities


def moe_tkg_inputs(typed, part, all_expert, scale="POST_SCALE", t=4, h=256, i=128, experts=4, k=2):
    def inputs(rng):
        enums = part("core.utils.common_types")
        index, affinities = experts_of(rng, t, experts, k)
        return Call((), dict(
            hidden_input=typed(rng.standard_normal((t, h)), "bfloat16"),
            expert_gate_up_weights=typed(rng.standard_normal((experts, h, 2, i)) * h ** -0.5, "bfloat16"),
            expert_down_weights=typed(rng.standard_normal((experts, i, h)) * i ** -0.5, "bfloat16"),
            expert_affinities=typed(affinities, "bfloat16" if all_expert else "float32"),
            expert_index=typed(index, "int32"), is_all_expert=all_expert,
            rank_id=np.zeros((1, 1), np.uint32) if all_expert else None,
            expert_affinities_scaling_mode=getattr(enums.ExpertAffinityScaleMode, scale)))
    return inputs


def expert(x, gate_up, down):
    return (ref.silu(x @ gate_up[:, 0]) * (x @ gate_up[:, 1])) @ down


def moe_tkg(hidden_input, expert_gate_up_weights, expert_down_weights, expert_affinities, **_):
    """Each token's sum over experts of affinity times the expert's MLP; affinities are 0 where not chosen."""
    x, gate_up, down = ref.plain(hidden_input), ref.plain(expert_gate_up_weights), ref.plain(expert_down_weights)
    share = ref.plain(expert_affinities)
    return sum(share[:, e, None] * expert(x, gate_up[e], down[e]) for e in range(len(down)))


# ---- mixture of experts, whole block of token generation -------------------------------------------------------------

def moe_block_inputs(typed, part, t=4, h=512, i=128, experts=8, k=2):
    def inputs(rng):
        enums = part("core.utils.common_types")
        return Call((), dict(
            inp=typed(rng.standard_normal((1, t, h)), "bfloat16"),
            gamma=typed(rng.uniform(0.5, 1.5, (1, h)), "bfloat16"),
            router_weights=typed(rng.standard_normal((h, experts)) * h ** -0.5, "bfloat16"),
            expert_gate_up_weights=typed(rng.standard_normal((experts, h, 2, i)) * h ** -0.5, "bfloat16"),
            expert_down_weights=typed(rng.standard_normal((experts, i, h)) * i ** -0.5, "bfloat16"),
            top_k=k, router_act_fn=enums.RouterActFnType.SOFTMAX, router_pre_norm=False,
            expert_affinities_scaling_mode=enums.ExpertAffinityScaleMode.POST_SCALE))
    return inputs


def moe_block(inp, gamma, router_weights, expert_gate_up_weights, expert_down_weights, top_k, **_):
    x = ref.rms_norm(ref.plain(inp)[0], ref.plain(gamma), 1e-6)
    logits, _, share = ref.router_topk(x, router_weights, None, top_k, "softmax", True, False)
    return moe_tkg(x, expert_gate_up_weights, expert_down_weights, share), logits


# ---- mixture of experts, context encoding ----------------------------------------------------------------------------

def blocks_by_expert(index, t, experts, block):
    """Tokens in blocks of one expert each, padded by token t; and whose each block is."""
    tokens, owner = [], []
    for e in range(experts):
        own = np.flatnonzero(index[:, 0] == e)
        own = np.concatenate((own, np.full(-len(own) % block, t)))
        tokens.append(own)
        owner += [e] * (len(own) // block)
    return np.concatenate(tokens), np.array(owner)


def moe_cte_inputs(typed, part, implementation, t=256, h=512, i=256, experts=2, block=256):
    """Blocks of tokens, each of one expert; a block's missing tokens are token t, a row of zeros."""
    def inputs(rng):
        m = part("core.moe.moe_cte.moe_cte")
        index, affinities = experts_of(rng, t, experts, 1)
        tokens, owner = blocks_by_expert(index, t, experts, block)
        hidden = np.concatenate((rng.standard_normal((t, h)), np.zeros((1, h))))
        share = np.concatenate((affinities, np.zeros((1, experts))))
        return Call((), dict(
            hidden_states=typed(hidden, "bfloat16"), expert_affinities_masked=typed(share.reshape(-1, 1), "bfloat16"),
            gate_up_proj_weight=typed(rng.standard_normal((experts, h, 2, i)) * h ** -0.5, "bfloat16"),
            down_proj_weight=typed(rng.standard_normal((experts, i, h)) * i ** -0.5, "bfloat16"),
            token_position_to_id=typed(tokens, "int32"),
            block_to_expert=typed(owner.reshape(-1, 1), "int32"), block_size=block,
            spec=m.MoECTESpec(implementation=getattr(m.MoECTEImplementation, implementation))))
    return inputs


def moe_cte(hidden_states, expert_affinities_masked, gate_up_proj_weight, down_proj_weight, token_position_to_id,
            block_to_expert, block_size, spec):
    x, gate_up, down = ref.plain(hidden_states), ref.plain(gate_up_proj_weight), ref.plain(down_proj_weight)
    share = ref.plain(expert_affinities_masked).reshape(len(x), -1)
    out = np.zeros(x.shape)
    tokens = ref.plain(token_position_to_id).astype(int).reshape(-1, block_size)
    for own, e in zip(tokens, ref.plain(block_to_expert).astype(int).reshape(-1)):
        own = own[own < len(x) - 1]
        out[own] += share[own, e, None] * expert(x[own], gate_up[e], down[e])
    return out[:-1]


# ---- collectives: each rank has its own argument and its own result -------------------------------------------------

def on_ranks(name, ranks):
    def find(module):
        import nki
        from nki.collectives import ReplicaGroup

        def launch(*parts):
            run = nki.simulate(getattr(module, name), ranks=ranks)
            return tuple(run(nki.per_rank(list(parts)), ReplicaGroup([list(range(ranks))]), ranks))
        return launch
    return find


def gathered(*parts):
    return (np.concatenate(parts, axis=1),) * len(parts)


def ring(name, cores, hbm):
    """A kernel of four ranks, each on so many cores, that passes rows round a ring; hbm: through HBM, not SBUF."""
    def find(module):
        import nki

        def launch(*parts):
            kernel = getattr(module, name)
            run = nki.simulate(kernel[cores] if cores > 1 else kernel, ranks=4)
            operands = [nki.per_rank(list(parts[at:at + 4])) for at in range(0, len(parts), 4)]
            return tuple(made.reshape(-1, made.shape[-1]) for made in run(*operands, 4, 1, hbm))
        return launch
    return find


def ring_inputs(rows, width, columns=0):
    """Rows of each of four ranks, and the columns of the right operand that each has."""
    def inputs(rng):
        shapes = [(rows, width)] * 4 + [(width, columns)] * (4 if columns else 0)
        return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return inputs


def all_rows(*parts):
    whole = np.concatenate(parts[:4], axis=0)
    return tuple(whole @ right for right in parts[4:]) or (whole,) * 4


def ring_cases(experimental):
    cases = []
    for cores, hbm in ((1, False), (2, False), (1, True), (2, True)):
        how = f"(four ranks{' of two cores' if cores > 1 else ''}{', through HBM' if hbm else ''})"
        cases.append(experimental(f"fine_grained_allgather {how}", "collectives/fg_allgather.py",
                                  ring("fine_grained_allgather", cores, hbm), ring_inputs(128 * cores, 256), all_rows,
                                  rtol=0, atol=0))
        cases.append(experimental(f"allgather_compute_matmul {how}", "collectives/fgcc.py",
                                  ring("allgather_compute_matmul", cores, hbm), ring_inputs(128 * cores, 256, 64),
                                  all_rows, rtol=1e-4, atol=1e-3))
    return cases


def model_cases(core, experimental, typed, part):
    return [
        core("gen_mask_tkg", "attention/gen_mask_tkg.py", wrapped(gen_mask_kernel), gen_mask_inputs(typed), gen_mask,
             rtol=0, atol=0),
        core("attention_tkg", "attention/attention_tkg.py", wrapped(attention_tkg_kernel), attention_tkg_inputs(typed),
             attention_tkg, rtol=DENSE, atol=1e-2),
        core("attention_tkg, keys by rows", "attention/attention_tkg.py", wrapped(attention_tkg_kernel),
             attention_tkg_inputs(typed, tp_k_prior=True), attention_tkg, rtol=DENSE, atol=1e-2),
        core("moe_tkg, chosen experts", "moe/moe_tkg/moe_tkg.py", wrapped(lambda m, nki, nl, nisa: m.moe_tkg),
             moe_tkg_inputs(typed, part, False), moe_tkg, rtol=DENSE, atol=DENSE),
        core("moe_tkg, all experts", "moe/moe_tkg/moe_tkg.py", wrapped(lambda m, nki, nl, nisa: m.moe_tkg),
             moe_tkg_inputs(typed, part, True), moe_tkg, rtol=DENSE, atol=DENSE),
        core("moe_block_tkg", "moe_block/moe_block_tkg.py", "moe_block_tkg", moe_block_inputs(typed, part), moe_block,
             rtol=DENSE, atol=4e-2, grid=2, note="atol: the norm's result rounds to bfloat16 first"),
        core("moe_cte, sharded on the intermediate axis", "moe/moe_cte/moe_cte.py", "moe_cte",
             moe_cte_inputs(typed, part, "shard_on_i"), moe_cte, rtol=DENSE, atol=DENSE, grid=2,
             outputs=lambda r: r[:-1]),
        core("moe_cte, sharded on blocks", "moe/moe_cte/moe_cte.py", "moe_cte",
             moe_cte_inputs(typed, part, "shard_on_block"), moe_cte, rtol=DENSE, atol=DENSE, grid=2,
             outputs=lambda r: r[:-1, 0]),
        experimental("allgather_sb2sb (four ranks)", "collectives/sb2sb_allgather.py", on_ranks("allgather_sb2sb", 4),
                     lambda rng: tuple(rng.standard_normal((4, 64, 32)).astype(np.float32)), gathered, rtol=0, atol=0),
        experimental("allgather_sb2sb_tiled (four ranks)", "collectives/sb2sb_allgather.py",
                     on_ranks("allgather_sb2sb_tiled", 4),
                     lambda rng: tuple(rng.standard_normal((4, 256, 32)).astype(np.float32)), gathered, rtol=0, atol=0),
    ] + ring_cases(experimental)
