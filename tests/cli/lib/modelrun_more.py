# Families of modelrun that are no plain decoders, in float64 with NumPy alone: deepseek_v3, kimi_k2, glm4_moe, phi3,
# gemma3, llama4, minimax_m2, ministral3, qwen3_next, nemotron_h. From the papers and from what transformers documents.
# Read by modelrun.py.
import math

import numpy as np

import modelrun_basics as m


# ---- positions ----

def mscale(factor, by):
    return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1


def frequencies(c, rope, n, length):
    """Of n dimensions that turn, and what sines and cosines are multiplied by, in a text of `length`."""
    if rope.get('rope_type', rope.get('type')) not in ('longrope', 'su'):
        return m.frequencies(dict(c, rope_parameters=rope), n)
    original = c.get('original_max_position_embeddings') or rope['original_max_position_embeddings']
    factor = rope.get('factor') or c['max_position_embeddings'] / original
    by = np.array(rope['long_factor' if length > original else 'short_factor'])
    attention = rope.get('attention_factor') or math.sqrt(1 + math.log(factor) / math.log(original))
    return 1 / (by * rope.get('rope_theta', c.get('rope_theta')) ** (np.arange(0, n, 2) / n)), attention


def turn(x, c, rope, n, pairs=False):
    """The first n dimensions of x [T, heads, any] turn: neighbours, or one half and the other."""
    f, attention = frequencies(c, rope, n, len(x))
    by = attention * np.exp(1j * np.arange(len(x))[:, None, None] * f)
    a, b = (x[..., 0:n:2], x[..., 1:n:2]) if pairs else (x[..., :n // 2], x[..., n // 2:n])
    z = (a + 1j * b) * by
    halves = np.stack([z.real, z.imag], -1).reshape(*x.shape[:-1], n) if pairs else np.concatenate([z.real, z.imag], -1)
    return np.concatenate([halves, x[..., n:]], -1)


def attend(q, k, v, scale, seen):
    """q [T, H, n], k [T, G, n], v [T, G, any]; seen [T, T]."""
    group = q.shape[1] // k.shape[1]
    s = np.einsum('ihd,jhd->hij', q, np.repeat(k, group, 1)) * scale
    p = m.softmax(np.where(seen, s, -np.inf))
    return np.einsum('hij,jhd->ihd', p, np.repeat(v, group, 1)).reshape(len(q), -1)


def causal(T, window=0, chunk=0):
    i, j = np.mgrid[:T, :T]
    seen = j <= i
    if window:
        seen &= j > i - window
    return seen & (i // chunk == j // chunk) if chunk else seen


# ---- parts ----

class Layer:
    """The weights whose names begin so."""

    def __init__(self, w, at, c):
        self.w, self.at, self.eps = w, at, c.get('rms_norm_eps')

    def __getitem__(self, name):
        return self.w[self.at + name]

    def has(self, name):
        return self.at + name in self.w

    def linear(self, x, name):
        y = x @ self[name + '.weight'].T
        return y + self[name + '.bias'] if self.has(name + '.bias') else y

    def norm(self, x, name, eps=None, plus=0.0):
        return m.rms(x, self[name + '.weight'] + plus, self.eps if eps is None else eps)

    def heads(self, x, name, n):
        return self.linear(x, name).reshape(len(x), -1, n)

    def gated(self, x, home, act='silu', names=('gate_proj', 'up_proj', 'down_proj')):
        g, u, d = (home + n for n in names)
        return self.linear(m.ACT[act](self.linear(x, g)) * self.linear(x, u), d)


def deepseek_experts(c, layer, x, correction, home='mlp.', names=('gate_proj', 'up_proj', 'down_proj'), run=None):
    run = run or (lambda x, at: layer.gated(x, at, names=names))
    groups, kept = c.get('n_group', 1), c.get('topk_group', 1)
    y = np.zeros_like(x)
    score = m.sigmoid(layer.linear(x, home + 'gate'))
    for t, s in enumerate(score):
        choice = (s + layer[correction]).reshape(groups, -1)
        worth = np.sort(choice, 1)[:, -2:].sum(1)
        for g in np.argsort(worth, kind='stable')[:groups - kept]:
            choice[g] = -np.inf
        best = np.argsort(choice.ravel())[::-1][:c['num_experts_per_tok']]
        share = s[best] / s[best].sum() if c.get('norm_topk_prob', True) else s[best]
        for e, by in zip(best, share * c.get('routed_scaling_factor', 1.0)):
            y[t] += by * run(x[t:t + 1], f'{home}experts.{e}.')[0]
    return y


# ---- families: what attention and the perceptron add to x ----

def latent(c, layer, x):
    H, plain, turned, v = (c[k] for k in ('num_attention_heads', 'qk_nope_head_dim', 'qk_rope_head_dim', 'v_head_dim'))
    rope, rank, T = c.get('rope_scaling') or {}, c['kv_lora_rank'], len(x)
    scale = (plain + turned)**-0.5
    if rope.get('mscale_all_dim'):
        scale *= mscale(rope['factor'], rope['mscale_all_dim'])**2
    q = x
    if c['q_lora_rank']:
        q = layer.norm(layer.linear(x, 'self_attn.q_a_proj'), 'self_attn.q_a_layernorm', 1e-6)
    q = layer.heads(q, 'self_attn.q_b_proj' if c['q_lora_rank'] else 'self_attn.q_proj', plain + turned)
    down = layer.linear(x, 'self_attn.kv_a_proj_with_mqa')
    c_kv = m.kept(c, layer.norm(down[:, :rank], 'self_attn.kv_a_layernorm', 1e-6))
    kv = layer.heads(c_kv, 'self_attn.kv_b_proj', plain + v)
    pairs = c.get('rope_interleave', True)
    shared = np.repeat(m.kept(c, turn(down[:, None, rank:], c, rope, turned, pairs)), H, 1)
    q = np.concatenate([q[..., :plain], turn(q[..., plain:], c, rope, turned, pairs)], -1)
    k = np.concatenate([kv[..., :plain], shared], -1)
    return layer.linear(attend(q, k, kv[..., plain:], scale, causal(T)), 'self_attn.o_proj')


def deepseek_mlp(c, layer, x, i):
    if i < c['first_k_dense_replace']:
        return layer.gated(x, 'mlp.')
    y = deepseek_experts(c, layer, x, 'mlp.gate.e_score_correction_bias')
    return y + layer.gated(x, 'mlp.shared_experts.') if c['n_shared_experts'] else y


def deepseek(c, layer, x, i):
    x = x + latent(c, layer, layer.norm(x, 'input_layernorm'))
    return x + deepseek_mlp(c, layer, layer.norm(x, 'post_attention_layernorm'), i)


def plain_attention(c, layer, x, rope, turned, scale=None, grow=None, window=0, whole=False, plus=0.0):
    n = c['head_dim']
    q, k, v = (layer.linear(x, f'self_attn.{p}_proj') for p in 'qkv')
    if not whole:
        q, k = q.reshape(len(x), -1, n), k.reshape(len(x), -1, n)
    if layer.has('self_attn.q_norm.weight'):
        q, k = layer.norm(q, 'self_attn.q_norm', plus=plus), layer.norm(k, 'self_attn.k_norm', plus=plus)
    q, k, v = (p.reshape(len(x), -1, n) for p in (q, k, v))
    q, k = turn(q, c, rope, turned), turn(k, c, rope, turned)
    if grow is not None:
        q = q * grow[:, None, None]
    return layer.linear(attend(q, k, v, scale or n**-0.5, causal(len(x), window)), 'self_attn.o_proj')


def glm(c, layer, x, i):
    turned = int(c['head_dim'] * c['partial_rotary_factor'])
    x = x + plain_attention(c, layer, layer.norm(x, 'input_layernorm'), c.get('rope_scaling') or {}, turned)
    return x + deepseek_mlp(c, layer, layer.norm(x, 'post_attention_layernorm'), i)


def minimax(c, layer, x, _):
    h = layer.norm(x, 'input_layernorm')
    x = x + plain_attention(c, layer, h, {}, c['rotary_dim'], whole=True)
    h, home = layer.norm(x, 'post_attention_layernorm'), 'block_sparse_moe.'
    return x + deepseek_experts(c, layer, h, home + 'e_score_correction_bias', home, ('w1', 'w3', 'w2'))


# What the class takes where a file has nothing.
MINISTRAL3 = dict(rope_type='yarn', rope_theta=1e6, factor=16.0, original_max_position_embeddings=16384, beta_fast=32.0,
                  beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)


def ministral3(c, layer, x, _):
    rope = c.get('rope_parameters', MINISTRAL3)
    grow = 1 + rope['llama_4_scaling_beta'] * np.log(
        1 + np.floor(np.arange(len(x)) / rope['original_max_position_embeddings']))
    h = layer.norm(x, 'input_layernorm')
    x = x + plain_attention(c, layer, h, rope, c['head_dim'], grow=grow, window=c.get('sliding_window') or 0)
    return x + layer.gated(layer.norm(x, 'post_attention_layernorm'), 'mlp.')


def phi3(c, layer, x, _):
    H, G, T = c['num_attention_heads'], c['num_key_value_heads'], len(x)
    n = c['hidden_size'] // H
    turned, rope = int(n * c.get('partial_rotary_factor', 1.0)), c.get('rope_scaling') or {}
    qkv = layer.linear(layer.norm(x, 'input_layernorm'), 'self_attn.qkv_proj')
    q, k, v = (p.reshape(T, -1, n) for p in np.split(qkv, [H * n, (H + G) * n], -1))
    seen = causal(T, c.get('sliding_window') or 0)
    mixed = attend(turn(q, c, rope, turned), turn(k, c, rope, turned), v, n**-0.5, seen)
    x = x + layer.linear(mixed, 'self_attn.o_proj')
    gate, up = np.split(layer.linear(layer.norm(x, 'post_attention_layernorm'), 'mlp.gate_up_proj'), 2, -1)
    return x + layer.linear(up * m.ACT['silu'](gate), 'mlp.down_proj')


def gemma3(c, layer, x, i):
    types, every = c.get('layer_types'), c.get('sliding_window_pattern', 6)
    slides = types[i] == 'sliding_attention' if types else (i + 1) % every != 0
    ropes = c.get('rope_parameters') or {
        'sliding_attention': dict(rope_theta=c['rope_local_base_freq']),
        'full_attention': dict(c.get('rope_scaling') or {}, rope_theta=c['rope_theta'])}
    h = plain_attention(c, layer, layer.norm(x, 'input_layernorm', plus=1.0),
                        ropes['sliding_attention' if slides else 'full_attention'], c['head_dim'],
                        c['query_pre_attn_scalar']**-0.5, window=c['sliding_window'] if slides else 0, plus=1.0)
    x = x + layer.norm(h, 'post_attention_layernorm', plus=1.0)
    h = layer.gated(layer.norm(x, 'pre_feedforward_layernorm', plus=1.0), 'mlp.', 'gelu_new')
    return x + layer.norm(h, 'post_feedforward_layernorm', plus=1.0)


def llama4_experts(c, layer, x):
    I, home = c['intermediate_size'], 'feed_forward.'
    y = layer.gated(x, home + 'shared_expert.')
    logit = layer.linear(x, home + 'router')
    for t in range(len(x)):
        for e in np.argsort(logit[t])[::-1][:c['num_experts_per_tok']]:
            h = x[t] * m.sigmoid(logit[t, e])
            if layer.has(home + 'experts.gate_up_proj'):
                both = h @ layer[home + 'experts.gate_up_proj'][e]
                y[t] += (both[I:] * m.ACT['silu'](both[:I])) @ layer[home + 'experts.down_proj'][e]
            else:
                y[t] += layer.gated(h[None], f'{home}experts.{e}.')[0]
    return y


def llama4(c, layer, x, i):
    n, T = c['head_dim'], len(x)
    turns = c['no_rope_layers'][i] if c.get('no_rope_layers') else (i + 1) % c.get('no_rope_layer_interval', 4) != 0
    chunk = c['attention_chunk_size'] if turns else 0
    if c.get('layer_types'):
        chunk = c['attention_chunk_size'] if c['layer_types'][i] == 'chunked_attention' else 0
    h = layer.norm(x, 'input_layernorm')
    q, k, v = (layer.heads(h, f'self_attn.{p}_proj', n) for p in 'qkv')
    if turns:
        q, k = (turn(p, c, c.get('rope_scaling') or {}, n, True) for p in (q, k))
        if c.get('use_qk_norm', True):
            q, k = (m.rms(p, 1.0, c['rms_norm_eps']) for p in (q, k))
    elif c.get('attn_temperature_tuning', True):
        q = q * (np.log1p(np.floor((np.arange(T) + 1.0) / c['floor_scale'])) * c['attn_scale'] + 1)[:, None, None]
    x = x + layer.linear(attend(q, k, v, n**-0.5, causal(T, 0, chunk)), 'self_attn.o_proj')
    h = layer.norm(x, 'post_attention_layernorm')
    step = c.get('interleave_moe_layer_step', 1)
    sparse = i in c['moe_layers'] if 'moe_layers' in c else (i + 1) % step == 0
    return x + (llama4_experts(c, layer, h) if sparse else layer.gated(h, 'feed_forward.'))


def delta_rule(c, layer, x):
    G, H, n, wide = (c['linear_' + k] for k in ('num_key_heads', 'num_value_heads', 'key_head_dim', 'value_head_dim'))
    T, each, at = len(x), H // G, 'linear_attn.'
    parts = layer.linear(x, at + 'in_proj_qkvz').reshape(T, G, -1)
    q, k, v, z = np.split(parts, [n, 2 * n, 2 * n + each * wide], -1)
    b, a = np.split(layer.linear(x, at + 'in_proj_ba').reshape(T, G, -1), 2, -1)
    mixed = np.concatenate([p.reshape(T, -1) for p in (q, k, v)], -1)
    q, k, v = np.split(convolve(mixed, layer, at + 'conv1d'), [G * n, 2 * G * n], -1)
    q, k = (np.repeat(p.reshape(T, G, n), each, 1) for p in (q, k))
    q, k = (p / np.sqrt((p * p).sum(-1, keepdims=True) + 1e-6) for p in (q, k))
    v, z, a, b = v.reshape(T, H, wide), z.reshape(T, H, wide), a.reshape(T, H), m.sigmoid(b.reshape(T, H))
    g = -np.exp(layer[at + 'A_log']) * np.log1p(np.exp(a + layer[at + 'dt_bias']))
    state, out = np.zeros((H, n, wide)), np.zeros((T, H, wide))
    for t in range(T):
        state *= np.exp(g[t])[:, None, None]
        delta = (v[t] - np.einsum('hnv,hn->hv', state, k[t])) * b[t][:, None]
        state += k[t][:, :, None] * delta[:, None]
        out[t] = np.einsum('hnv,hn->hv', state, q[t]) / math.sqrt(n)
    y = layer.norm(out, at + 'norm') * m.ACT['silu'](z)
    return layer.linear(y.reshape(T, -1), at + 'out_proj')


def recurs(c, i):
    types = c.get('layer_types')
    return types[i] == 'linear_attention' if types else (i + 1) % c.get('full_attention_interval', 4) != 0


def gated_attention(c, layer, x):
    n, T = c['head_dim'], len(x)
    q, gate = np.split(layer.linear(x, 'self_attn.q_proj').reshape(T, -1, 2 * n), 2, -1)
    k, v = (layer.heads(x, f'self_attn.{p}_proj', n) for p in 'kv')
    turned = int(n * c['partial_rotary_factor'])
    q, k = (turn(layer.norm(p, f'self_attn.{name}_norm', plus=1.0), c, {}, turned) for p, name in ((q, 'q'), (k, 'k')))
    y = attend(q, k, v, n**-0.5, causal(T)) * m.sigmoid(gate.reshape(T, -1))
    return layer.linear(y, 'self_attn.o_proj')


def qwen_experts(c, layer, x):
    p, y = m.softmax(layer.linear(x, 'mlp.gate')), np.zeros_like(x)
    for t in range(len(x)):
        best = np.argsort(p[t])[::-1][:c['num_experts_per_tok']]
        for e, share in zip(best, p[t][best] / (p[t][best].sum() if c.get('norm_topk_prob', True) else 1)):
            y[t] += share * layer.gated(x[t:t + 1], f'mlp.experts.{e}.')[0]
    return y + m.sigmoid(layer.linear(x, 'mlp.shared_expert_gate')) * layer.gated(x, 'mlp.shared_expert.')


def qwen3_next(c, layer, x, i):
    h = layer.norm(x, 'input_layernorm', plus=1.0)
    x = x + (delta_rule if recurs(c, i) else gated_attention)(c, layer, h)
    h = layer.norm(x, 'post_attention_layernorm', plus=1.0)
    return x + (layer.gated(h, 'mlp.') if i in c.get('mlp_only_layers', ()) else qwen_experts(c, layer, h))


def convolve(x, layer, name):
    kernel = layer[name + '.weight'][:, 0]
    padded = np.concatenate([np.zeros((kernel.shape[1] - 1, x.shape[1])), x])
    y = sum(padded[j:j + len(x)] * kernel[:, j] for j in range(kernel.shape[1]))
    return m.ACT['silu'](y + (layer[name + '.bias'] if layer.has(name + '.bias') else 0))


def mamba2(c, layer, x):
    T, H, P, N, G = len(x), *(c[k] for k in ('mamba_num_heads', 'mamba_head_dim', 'ssm_state_size', 'n_groups'))
    gate, mixed, dt = np.split(layer.linear(x, 'mixer.in_proj'), [H * P, 2 * H * P + 2 * G * N], -1)
    value, B, C = np.split(convolve(mixed, layer, 'mixer.conv1d'), [H * P, H * P + G * N], -1)
    value, (B, C) = value.reshape(T, H, P), (np.repeat(p.reshape(T, G, N), H // G, 1) for p in (B, C))
    low, high = (float(x) for x in c.get('time_step_limit', (0, 'inf')))
    dt = np.clip(np.log1p(np.exp(dt + layer['mixer.dt_bias'])), low, high)
    state, out = np.zeros((H, P, N)), np.zeros((T, H, P))
    for t in range(T):
        state *= np.exp(-np.exp(layer['mixer.A_log']) * dt[t])[:, None, None]
        state += (dt[t][:, None] * value[t])[:, :, None] * B[t][:, None]
        out[t] = np.einsum('hpn,hn->hp', state, C[t]) + layer['mixer.D'][:, None] * value[t]
    y = (out.reshape(T, -1) * m.ACT['silu'](gate)).reshape(T, G, -1)
    y = y / np.sqrt((y * y).mean(-1, keepdims=True) + c['layer_norm_epsilon'])
    return layer.linear(y.reshape(T, -1) * layer['mixer.norm.weight'], 'mixer.out_proj')


def kinds(c):
    named = dict(mamba='M', linear_attention='M', attention='*', full_attention='*', mlp='-', moe='E')
    return c.get('hybrid_override_pattern') or ''.join(named[t] for t in c['layers_block_type'])


def squared(layer, x, home):
    return layer.linear(np.maximum(layer.linear(x, home + 'up_proj'), 0)**2, home + 'down_proj')


def nemotron_attention(c, layer, x):
    q, k, v = (layer.heads(x, f'mixer.{p}_proj', c['head_dim']) for p in 'qkv')
    return layer.linear(attend(q, k, v, c['head_dim']**-0.5, causal(len(x))), 'mixer.o_proj')


def nemotron_experts(c, layer, x):
    own = dict(c, n_group=c.get('n_group', 1), topk_group=c.get('topk_group', 1))
    y = deepseek_experts(own, layer, x, 'mixer.gate.e_score_correction_bias', 'mixer.',
                         run=lambda x, home: squared(layer, x, home))
    return y + squared(layer, x, 'mixer.shared_experts.')


def nemotron(c, layer, x, i):
    h = layer.norm(x, 'norm', c['layer_norm_epsilon'])
    kind = kinds(c)[i]
    if kind == '-':
        return x + squared(layer, h, 'mixer.')
    return x + {'M': mamba2, '*': nemotron_attention, 'E': nemotron_experts}[kind](c, layer, h)


FAMILY = {'deepseek_v3': deepseek, 'kimi_k2': deepseek, 'glm4_moe': glm, 'minimax_m2': minimax, 'phi3': phi3,
          'gemma3_text': gemma3, 'llama4_text': llama4, 'ministral3': ministral3,
          'qwen3_next': qwen3_next, 'nemotron_h': nemotron}
ONE_MORE = ('gemma3_text', 'qwen3_next')  # norms multiply by 1 + weight


def logits(c, w, tokens):
    outer = 'language_model.' if 'language_model.model.norm.weight' in w else ''
    c = c.get('text_config', c)
    plus = 1.0 if c['model_type'] in ONE_MORE else 0.0
    nemotron_h = c['model_type'] == 'nemotron_h'
    pre = 'backbone.' if nemotron_h else outer + 'model.'
    x = w[pre + ('embeddings.weight' if nemotron_h else 'embed_tokens.weight')][tokens]
    if c['model_type'] == 'gemma3_text':
        x = x * math.sqrt(c['hidden_size'])
    for i in range(len(kinds(c)) if nemotron_h else c['num_hidden_layers']):
        x = FAMILY[c['model_type']](c, Layer(w, f'{pre}layers.{i}.', c), x, i)
    if nemotron_h:
        return m.rms(x, w[pre + 'norm_f.weight'], c['layer_norm_epsilon']) @ w['lm_head.weight'].T
    x = m.rms(x, w[pre + 'norm.weight'] + plus, c['rms_norm_eps'])
    head = outer + 'lm_head.weight'
    return x @ w[head if head in w else pre + 'embed_tokens.weight'].T


# ---- the cases: each field has a value that shows ----

BASE = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=56,
            vocab_size=m.VOCAB, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0,
            tie_word_embeddings=False)
DEEPSEEK = dict(q_lora_rank=20, kv_lora_rank=16, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=10,
                num_key_value_heads=4, n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=3,
                moe_intermediate_size=24, n_shared_experts=2, routed_scaling_factor=2.5, first_k_dense_replace=1)
YARN = dict(type='yarn', factor=40, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0,
            original_max_position_embeddings=16)
LONG = dict(short_factor=[1.0, 1.1, 1.3, 1.7, 2.0, 2.5], long_factor=[1.0, 1.5, 3.0, 7.0, 12.0, 20.0])
LLAMA4 = dict(head_dim=16, num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=72,
              attention_chunk_size=7, floor_scale=5, attn_scale=0.3)
CASES = {
    'deepseek': dict(model_type='deepseek_v3', rope_scaling=YARN, topk_method='noaux_tc', scoring_func='sigmoid',
                     moe_layer_freq=1, **DEEPSEEK),
    'deepseek_plain': dict(model_type='deepseek_v3', kind='F32', rope_interleave=False, attention_bias=True,
                           **dict(DEEPSEEK, q_lora_rank=None, norm_topk_prob=False, n_shared_experts=0)),
    'kimi': dict(fp8='block', model_type='kimi_k2', rope_scaling=dict(YARN, mscale_all_dim=0.7, factor=64),
                 rope_theta=50000.0,
                 **dict(DEEPSEEK, n_group=1, topk_group=1)),
    'glm': dict(model_type='glm4_moe', head_dim=16, partial_rotary_factor=0.5, attention_bias=True, use_qk_norm=True,
                n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, n_shared_experts=1,
                first_k_dense_replace=1, routed_scaling_factor=1.5),
    'minimax': dict(model_type='minimax_m2', head_dim=16, rotary_dim=8, num_local_experts=6, num_experts_per_tok=2,
                    use_qk_norm=True, qk_norm_type='per_layer', use_routing_bias=True, scoring_func='sigmoid',
                    attn_type_list=[1, 1], shared_intermediate_size=0),
    'ministral3': dict(model_type='ministral3', head_dim=16, sliding_window=9, rope_parameters=dict(
        rope_type='yarn', rope_theta=1e6, factor=4.0, original_max_position_embeddings=8, beta_fast=32.0, beta_slow=1.0,
        mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.4)),
    'ministral3_usual': dict(model_type='ministral3', head_dim=16),
    'phi3': dict(model_type='phi3', sliding_window=11),
    'phi3_short': dict(fp8='channel', model_type='phi3', rope_scaling=dict(type='su', **LONG),
                       original_max_position_embeddings=32),
    'phi3_long': dict(model_type='phi3', hidden_size=64, rope_scaling=dict(type='longrope', **LONG),
                      original_max_position_embeddings=16, partial_rotary_factor=0.75, tie_word_embeddings=True),
    'gemma3': dict(outer='gemma3', model_type='gemma3_text', num_hidden_layers=3, head_dim=16, sliding_window=5,
                   sliding_window_pattern=3, rope_local_base_freq=100.0, query_pre_attn_scalar=24,
                   tie_word_embeddings=True,
                   rope_scaling=dict(rope_type='linear', factor=8.0), hidden_activation='gelu_pytorch_tanh'),
    'gemma3_types': dict(model_type='gemma3_text', head_dim=8, sliding_window=4, query_pre_attn_scalar=8, kind='F32',
                         tie_word_embeddings=True, layer_types=['full_attention', 'sliding_attention'],
                         rope_parameters=dict(full_attention=dict(rope_type='default', rope_theta=1e6),
                                              sliding_attention=dict(rope_type='default', rope_theta=500.0))),
    'llama4': dict(outer='llama4', model_type='llama4_text', num_hidden_layers=4, no_rope_layers=[],
                   rope_scaling=m.LLAMA3, attn_temperature_tuning=4, **LLAMA4),
    'llama4_steps': dict(model_type='llama4_text', num_hidden_layers=4, no_rope_layers=[1, 0, 1, 1], use_qk_norm=False,
                         interleave_moe_layer_step=2, attention_bias=True, named=True,
                         rope_scaling=dict(m.LLAMA3, low_freq_factor=1.0, high_freq_factor=1.0),
                         layer_types=['chunked_attention', 'full_attention', 'full_attention', 'chunked_attention'],
                         **dict(LLAMA4, num_experts_per_tok=2)),
}


QWEN3_NEXT = dict(model_type='qwen3_next', head_dim=16, partial_rotary_factor=0.25, linear_num_value_heads=4,
                  linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=16, linear_conv_kernel_dim=4,
                  num_experts=6, num_experts_per_tok=3, moe_intermediate_size=24, shared_expert_intermediate_size=20)
NEMOTRON = dict(model_type='nemotron_h', head_dim=16, mamba_num_heads=6, mamba_head_dim=8, ssm_state_size=10,
                n_groups=2, conv_kernel=4, mlp_hidden_act='relu2', layer_norm_epsilon=1e-5)
CASES.update({
    'nemotron': dict(hybrid_override_pattern='M-*EM', num_hidden_layers=5, n_routed_experts=6, num_experts_per_tok=2,
                     moe_intermediate_size=24, moe_shared_expert_intermediate_size=20, routed_scaling_factor=2.5,
                     n_group=2, topk_group=1, time_step_limit=[0.1, math.inf], mlp_bias=True,
                     **NEMOTRON),
    'nemotron_blocks': dict(layers_block_type=['linear_attention', 'mamba', 'attention', 'mlp'], num_hidden_layers=None,
                            use_bias=True, use_conv_bias=False, mlp_bias=True, kind='F32',
                            **dict(NEMOTRON, n_groups=3, time_step_limit=[0.25, 1.5])),
    'qwen3_next': dict(num_hidden_layers=4, mlp_only_layers=[1], **QWEN3_NEXT),
    'qwen3_next_types': dict(kind='F32', layer_types=['full_attention', 'linear_attention'], norm_topk_prob=False,
                             attention_bias=True, **dict(QWEN3_NEXT, linear_num_key_heads=4, linear_conv_kernel_dim=3)),
})


# ---- their weights ----

def put_latent(c, w, linear, at):
    H, plain, turned, v = (c[k] for k in ('num_attention_heads', 'qk_nope_head_dim', 'qk_rope_head_dim', 'v_head_dim'))
    hidden, q, kv, bias = c['hidden_size'], c['q_lora_rank'], c['kv_lora_rank'], c.get('attention_bias', False)
    if q:
        linear(at + 'q_a_proj', q, hidden, bias)
        w.vector(at + 'q_a_layernorm.weight', q, 1)
    linear(at + ('q_b_proj' if q else 'q_proj'), H * (plain + turned), q or hidden)
    linear(at + 'kv_a_proj_with_mqa', kv + turned, hidden, bias)
    w.vector(at + 'kv_a_layernorm.weight', kv, 1)
    linear(at + 'kv_b_proj', H * (plain + v), kv)
    linear(at + 'o_proj', hidden, H * v, bias)


def put_heads(c, w, linear, at):
    kind, hidden, bias = c['model_type'], c['hidden_size'], c.get('attention_bias', False)
    n = c.get('head_dim') or hidden // c['num_attention_heads']
    wide, narrow = c['num_attention_heads'] * n, c['num_key_value_heads'] * n
    if kind == 'phi3':
        linear(at + 'qkv_proj', wide + 2 * narrow, hidden)
    else:
        for p, rows in (('q', wide), ('k', narrow), ('v', narrow)):
            linear(at + p + '_proj', rows * (2 if p == 'q' and kind == 'qwen3_next' else 1), hidden, bias)
    linear(at + 'o_proj', hidden, wide, bias and kind != 'glm4_moe')
    if kind in ONE_MORE or c.get('use_qk_norm') and kind in ('glm4_moe', 'minimax_m2'):
        for p, rows in (('q', wide), ('k', narrow)):
            w.vector(f'{at}{p}_norm.weight', rows if kind == 'minimax_m2' else n, 0 if kind in ONE_MORE else 1)


def put_states(c, w, linear, at):
    G, H, n, wide = (c['linear_' + k] for k in ('num_key_heads', 'num_value_heads', 'key_head_dim', 'value_head_dim'))
    linear(at + 'in_proj_qkvz', 2 * G * n + 2 * H * wide, c['hidden_size'])
    linear(at + 'in_proj_ba', 2 * H, c['hidden_size'])
    w.matrix(at + 'conv1d.weight', 2 * G * n + H * wide, 1, c['linear_conv_kernel_dim'], scale=0.6)
    w.vector(at + 'A_log', H)
    w.vector(at + 'dt_bias', H)
    w.vector(at + 'norm.weight', wide, 1)
    linear(at + 'out_proj', c['hidden_size'], H * wide)


def put_sparse(c, w, linear, gated, at, named):
    kind, hidden = c['model_type'], c['hidden_size']
    count = c.get('n_routed_experts') or c.get('num_experts') or c['num_local_experts']
    wide = c.get('moe_intermediate_size') or c['intermediate_size']
    linear(at + ('router' if kind == 'llama4_text' else 'gate'), count, hidden)
    if kind == 'llama4_text' and not named:
        w.matrix(at + 'experts.gate_up_proj', count, hidden, 2 * wide, scale=0.2)
        w.matrix(at + 'experts.down_proj', count, wide, hidden, scale=0.2)
    else:
        names = ('w1', 'w3', 'w2') if kind == 'minimax_m2' else ('gate_proj', 'up_proj', 'down_proj')
        for e in range(count):
            gated(f'{at}experts.{e}.', wide, names)
    if kind == 'llama4_text':
        gated(at + 'shared_expert.', wide)
        return
    if kind == 'qwen3_next':
        gated(at + 'shared_expert.', c['shared_expert_intermediate_size'])
        linear(at + 'shared_expert_gate', 1, hidden)
        return
    w.vector(at + ('' if kind == 'minimax_m2' else 'gate.') + 'e_score_correction_bias', count)
    if c.get('n_shared_experts'):
        gated(at + 'shared_experts.', wide * c['n_shared_experts'])


def is_sparse(c, i):
    if c['model_type'] == 'llama4_text':
        return (i + 1) % c.get('interleave_moe_layer_step', 1) == 0
    if c['model_type'] == 'qwen3_next':
        return i not in c.get('mlp_only_layers', ())
    return c['model_type'] == 'minimax_m2' or i >= c.get('first_k_dense_replace', c['num_hidden_layers'])


def put_layer(c, w, at, i, named, fp8):
    kind, hidden = c['model_type'], c['hidden_size']

    def linear(name, rows, columns, bias=False):
        if fp8 and not name.endswith('mlp.gate'):
            w.fp8(name, rows, columns, fp8)
        else:
            w.matrix(name + '.weight', rows, columns)
        if bias:
            w.vector(name + '.bias', rows)

    def gated(home, wide, names=('gate_proj', 'up_proj', 'down_proj')):
        linear(home + names[0], wide, hidden)
        linear(home + names[1], wide, hidden)
        linear(home + names[2], hidden, wide)

    more = ('pre_feedforward_layernorm', 'post_feedforward_layernorm') if kind == 'gemma3_text' else ()
    for name in ('input_layernorm', 'post_attention_layernorm', *more):
        w.vector(f'{at}{name}.weight', hidden, 0 if kind in ONE_MORE else 1)
    if kind == 'qwen3_next' and recurs(c, i):
        put_states(c, w, linear, at + 'linear_attn.')
    else:
        (put_latent if 'kv_lora_rank' in c else put_heads)(c, w, linear, at + 'self_attn.')
    home = at + {'llama4_text': 'feed_forward.', 'minimax_m2': 'block_sparse_moe.'}.get(kind, 'mlp.')
    if is_sparse(c, i):
        put_sparse(c, w, linear, gated, home, named)
    elif kind == 'phi3':
        linear(home + 'gate_up_proj', 2 * c['intermediate_size'], hidden)
        linear(home + 'down_proj', hidden, c['intermediate_size'])
    else:
        gated(home, c.get('intermediate_size_mlp', c['intermediate_size']))


def put_nemotron(c, w, at, kind):
    hidden, wide = c['hidden_size'], c['num_attention_heads'] * c['head_dim']
    H, P, N, G = (c[k] for k in ('mamba_num_heads', 'mamba_head_dim', 'ssm_state_size', 'n_groups'))

    def linear(name, rows, columns, bias=False):
        w.matrix(f'{at}mixer.{name}.weight', rows, columns)
        if bias:
            w.vector(f'{at}mixer.{name}.bias', rows)

    w.vector(at + 'norm.weight', hidden, 1)
    if kind == 'M':
        channels = H * P + 2 * G * N
        linear('in_proj', H * P + channels + H, hidden, c.get('use_bias', False))
        w.matrix(at + 'mixer.conv1d.weight', channels, 1, c['conv_kernel'], scale=0.6)
        if c.get('use_conv_bias', True):
            w.vector(at + 'mixer.conv1d.bias', channels)
        for name in ('A_log', 'D', 'dt_bias'):
            w.vector(f'{at}mixer.{name}', H)
        w.vector(at + 'mixer.norm.weight', H * P, 1)
        linear('out_proj', hidden, H * P, c.get('use_bias', False))
    elif kind == '*':
        for p, rows in (('q', wide), ('k', c['num_key_value_heads'] * 16), ('v', c['num_key_value_heads'] * 16)):
            linear(p + '_proj', rows, hidden)
        linear('o_proj', hidden, wide)
    elif kind == '-':
        linear('up_proj', c['intermediate_size'], hidden, c.get('mlp_bias', False))
        linear('down_proj', hidden, c['intermediate_size'], c.get('mlp_bias', False))
    else:
        linear('gate', c['n_routed_experts'], hidden)
        w.vector(at + 'mixer.gate.e_score_correction_bias', c['n_routed_experts'])
        homes = [(f'experts.{e}.', c['moe_intermediate_size']) for e in range(c['n_routed_experts'])]
        for home, rows in homes + [('shared_experts.', c['moe_shared_expert_intermediate_size'])]:
            bias = c.get('mlp_bias', False) and home == 'shared_experts.'
            linear(home + 'up_proj', rows, hidden, bias)
            linear(home + 'down_proj', hidden, rows, bias)


def make_nemotron(w, c):
    w.matrix('backbone.embeddings.weight', m.VOCAB, c['hidden_size'], scale=1)
    for i, kind in enumerate(kinds(c)):
        put_nemotron(c, w, f'backbone.layers.{i}.', kind)
    w.vector('backbone.norm_f.weight', c['hidden_size'], 1)
    w.matrix('lm_head.weight', m.VOCAB, c['hidden_size'])
    return c


def make(w, own, fp8):
    """The configuration, as its file has it, of a case whose fields are `own`; weights go to w."""
    outer, named = own.pop('outer', None), own.pop('named', False)
    c = {k: v for k, v in dict(BASE, **own).items() if v is not None or k == 'q_lora_rank'}
    if fp8 == 'block':
        c['quantization_config'] = dict(quant_method='fp8', weight_block_size=[128, 128])
    if c['model_type'] == 'nemotron_h':
        return make_nemotron(w, c)
    pre = 'language_model.model.' if outer else 'model.'
    w.matrix(pre + 'embed_tokens.weight', m.VOCAB, c['hidden_size'], scale=0.3 if outer == 'gemma3' else 1)
    for i in range(c['num_hidden_layers']):
        put_layer(c, w, f'{pre}layers.{i}.', i, named, fp8)
    w.vector(pre + 'norm.weight', c['hidden_size'], 0 if c['model_type'] in ONE_MORE else 1)
    if not c['tie_word_embeddings']:
        w.matrix(('language_model.' if outer else '') + 'lm_head.weight', m.VOCAB, c['hidden_size'])
    return dict(model_type=outer, text_config=c, vision_config={}) if outer else c
