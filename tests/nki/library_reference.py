"""What the kernels of nki-library compute, in NumPy and float64, written after their documented meaning.

Names and layouts of arguments are those of the kernels (aws-neuron/nki-library, src/nkilib_src/nkilib); each function
takes what the kernel takes and returns what the kernel returns.
"""
import math
from typing import Any

import numpy as np

from library_types import as_float as plain


def circulant(column):
    """The matrix whose columns are this one, turned on by one place each."""
    return np.stack([np.roll(column, k) for k in range(len(column))], axis=1)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def rms_norm(x, gamma=None, eps=1e-6, n=None):
    """x over the root of its mean square (n: how many of the last axis count), times gamma."""
    mean = (x * x).sum(-1, keepdims=True) / (n or x.shape[-1])
    y = x / np.sqrt(mean + eps)
    return y if gamma is None else y * gamma


def layer_norm(x, gamma=None, beta=None, eps=1e-6):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


# ---- small kernels ---------------------------------------------------------------------------------------------------

def cumsum(x, axis=-1):
    return np.cumsum(plain(x), axis=-1)


def cascaded_max(input_tensor):
    x = plain(input_tensor)
    return x.max(-1, keepdims=True), x.argmax(-1)[..., None]


def rope(x_in, cos, sin, contiguous_layout=True, **_):
    """x_in [d, B, heads, S]; pairs are (i, i + d/2) when contiguous, else (2i, 2i + 1)."""
    x, c, s = plain(x_in), plain(cos)[:, :, None, :], plain(sin)[:, :, None, :]
    half = x.shape[0] // 2
    first, second = (slice(0, half), slice(half, None)) if contiguous_layout else (slice(0, None, 2), slice(1, None, 2))
    out = np.empty_like(x)
    out[first] = x[first] * c - x[second] * s
    out[second] = x[first] * s + x[second] * c
    return out


def rope_hf(q, k, q_out=None, k_out=None, cos=None, sin=None, rope_cache=None, backward=False):
    """q, k [batch, heads, seq, d]; a head's halves turn against each other."""
    if rope_cache is not None:
        cos, sin = np.split(plain(rope_cache), 2, axis=-1)
    c, s = plain(cos), plain(sin)
    c, s = (a[None, None] if a.ndim == 2 else a[:, None] for a in (c, s))

    def turned(x):
        a, b = np.split(plain(x) * (s if backward else 1), 2, axis=-1)
        half = np.concatenate((b, -a) if backward else (-b, a), axis=-1)
        return plain(x) * c + half * (1 if backward else s)
    return turned(q), turned(k)


def find_nonzero_indices(input_tensor, col_start_id=None, n_cols=None, **_):
    """Of each column: where it is not zero, in order, -1 behind; and how many."""
    x = plain(input_tensor)
    if col_start_id is not None:
        x = x[:, int(plain(col_start_id)[0]):][:, :n_cols]
    where = np.full(x.T.shape, -1)
    for row, column in zip(where, x.T):
        found = np.flatnonzero(column)
        row[:found.size] = found
    return where, (x != 0).sum(0)


def find_nonzero_indices_with_count(input_tensor):
    where, count = find_nonzero_indices(plain(input_tensor).T)
    return np.concatenate((where, count[:, None]), axis=1)


def indexed_flatten(input_tensor, f_len, output_len, row_offsets, row_offsets_start=None, padding_val=-1):
    """Row e of [E, T], cut in blocks of f_len, goes to the output's blocks from row_offsets[start + e] on."""
    x, offsets = plain(input_tensor), plain(row_offsets).astype(int)
    start = 0 if row_offsets_start is None else int(plain(row_offsets_start)[0])
    out = np.full((output_len // f_len, f_len), padding_val, np.float64)
    for e, row in enumerate(x.reshape(x.shape[0], -1, f_len)):
        for p, block in enumerate(row):
            if offsets[start + e] + p < len(out):
                out[offsets[start + e] + p] = block
    return out.reshape(-1)


def topk(x, k):
    """Of each row the k largest, descending, and where they are."""
    x = plain(x)
    where = np.argsort(-x, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, where, -1), where


def dynamic_elementwise_add(input_a, input_b, num_m_tiles):
    return plain(input_a) + plain(input_b)


def topk_reduce(rows, tokens, n_tokens):
    """The sum of the rows of each token; tokens[r] is row r's token, -1 for none."""
    return np.stack([rows[tokens == t].sum(0) for t in range(n_tokens)])


# ---- norms of token generation: [B, S, H] -> [128, B S, H / 128] -----------------------------------------------------

def hidden_on_partitions(y, hidden_dim_tp=False):
    rows = y.reshape(-1, y.shape[-1])
    n, h = rows.shape
    return rows.reshape(n, h // 128, 128).transpose(2, 0, 1) if hidden_dim_tp else \
        rows.reshape(n, 128, h // 128).transpose(1, 0, 2)


def rmsnorm_tkg(input, gamma, output=None, eps=1e-6, hidden_actual=None, hidden_dim_tp=False, **_):
    return hidden_on_partitions(rms_norm(plain(input), plain(gamma), eps, hidden_actual), hidden_dim_tp)


def layernorm_tkg(input, gamma, output=None, beta=None, eps=1e-6, **_):
    return hidden_on_partitions(layer_norm(plain(input), plain(gamma), None if beta is None else plain(beta), eps))


# ---- convolution, loss -----------------------------------------------------------------------------------------------

def conv1d(x_in, filters, bias=None, stride=1, padding=(0, 0), dilation=1, activation=None):
    """x_in [B, C_in, L], filters [K, C_in, C_out] -> [B, C_out, L_out]."""
    x = np.pad(plain(x_in), ((0, 0), (0, 0), tuple(padding)))
    w = plain(filters)
    n = (x.shape[2] - dilation * (len(w) - 1) - 1) // stride + 1
    out = sum(np.einsum("bcl,cd->bdl", x[:, :, k * dilation:][:, :, :(n - 1) * stride + 1:stride], w[k])
              for k in range(len(w)))
    out = out if bias is None else out + plain(bias)[None, :, None]
    return out if activation is None else activation(out)


def depthwise_conv1d(img_ref, filter_ref, padding=((0, 0), (0, 0)), stride=(1, 1), **_):
    """img [N, C, 1, W], filter [C, 1, 1, S] -> [N, C, 1, Q]: each channel its own filter."""
    x = np.pad(plain(img_ref)[:, :, 0], ((0, 0), (0, 0), tuple(padding[1])))
    w, step = plain(filter_ref)[:, 0, 0], stride[1]
    n = (x.shape[2] - w.shape[1]) // step + 1
    out = sum(x[:, :, s:][:, :, :(n - 1) * step + 1:step] * w[None, :, s, None] for s in range(w.shape[1]))
    return out[:, :, None]


def cross_entropy_forward(logits_hbm, targets_hbm, **_):
    x, t = plain(logits_hbm), plain(targets_hbm).astype(int)
    top = x.max(-1)
    lse = top + np.log(np.exp(x - top[:, None]).sum(-1))
    return lse - x[np.arange(len(t)), t], lse


def cross_entropy_backward(logits_hbm, targets_hbm, lse_state_hbm=None, reduction="mean", **_):
    x, t = plain(logits_hbm), plain(targets_hbm).astype(int)
    grad = softmax(x)
    grad[np.arange(len(t)), t] -= 1
    return grad / (len(t) if reduction == "mean" else 1)


# ---- router ----------------------------------------------------------------------------------------------------------

def router_topk(x, w, w_bias, k, activation="softmax", x_is_th=False, router_pre_norm=True, norm_topk_prob=False):
    """Logits x w + bias [T, E], the k largest's experts [T, k], affinities [T, E]."""
    x = plain(x) if x_is_th else plain(x).T
    logits = x @ plain(w) + (0 if w_bias is None else plain(w_bias))
    _, experts = topk(logits, k)
    act: Any = softmax if activation == "softmax" else sigmoid
    chosen = np.zeros(logits.shape)
    if router_pre_norm:
        affinities = act(logits)
        if norm_topk_prob:
            np.put_along_axis(chosen, experts, np.take_along_axis(affinities, experts, -1), -1)
            affinities = chosen / chosen.sum(-1, keepdims=True)
    else:
        np.put_along_axis(chosen, experts, act(np.take_along_axis(logits, experts, -1)), -1)
        affinities = chosen
    return logits, experts, affinities


# ---- projections, MLP ------------------------------------------------------------------------------------------------

def output_projection_cte(attention, weight, bias=None, **_):
    """attention [B, N, D, S], weight [N D, H] -> [B, S, H]."""
    a = plain(attention)
    b, n, d, s = a.shape
    out = a.reshape(b, n * d, s).transpose(0, 2, 1) @ plain(weight)
    return out if bias is None else out + plain(bias)


def output_projection_tkg(attention, weight, bias=None, TRANSPOSE_OUT=False, **_):
    """attention [D, B, N, S] -> [B S, H], or [128, 1, H / 128, B S] when TRANSPOSE_OUT (one core)."""
    a = plain(attention)
    d, b, n, s = a.shape
    out = a.transpose(1, 3, 2, 0).reshape(b * s, n * d) @ plain(weight)
    out = out if bias is None else out + plain(bias)
    return out.reshape(b * s, 1, 128, -1).transpose(2, 1, 3, 0) if TRANSPOSE_OUT else out


def mlp(x, gate, up, down, norm=None, gate_b=None, up_b=None, down_b=None, activation=silu):
    """down(activation(x gate) * (x up)) of x [B, S, H]; norm, if any, first."""
    h = plain(x) if norm is None else norm(plain(x))
    g = h @ plain(gate) + (0 if gate_b is None else plain(gate_b))
    u = h @ plain(up) + (0 if up_b is None else plain(up_b))
    return (activation(g) * u) @ plain(down) + (0 if down_b is None else plain(down_b))


# ---- attention -------------------------------------------------------------------------------------------------------

def attention(q, k, v, scale=1.0, mask=None, sink=None):
    """softmax(scale q k^T) v of q [bs, Sq, d], k, v [bs_kv, Sk, d]; mask [Sq, Sk] true where a query may look."""
    repeat = len(q) // len(k)
    k, v = np.repeat(k, repeat, 0), np.repeat(v, repeat, 0)
    qk = scale * q @ k.transpose(0, 2, 1)
    if mask is not None:
        qk = np.where(mask, qk, -np.inf)
    if sink is not None:
        qk = np.concatenate((qk, np.broadcast_to(sink.reshape(-1, 1, 1), qk.shape[:2] + (1,))), -1)
    w = softmax(qk)
    return (w if sink is None else w[..., :-1]) @ v


def attention_cte(q, k, v, scale=1.0, causal_mask=True, k_prior=None, v_prior=None, prior_used_len=None, sink=None,
                  sliding_window=None, tp_q=True, tp_k=False, tp_out=False, **_):
    """Layouts: q [bs, Sq, d] when tp_q, else [bs, d, Sq]; k [bs, Sk, d] when tp_k, else [bs, d, Sk]; v [bs, Sk, d]."""
    q = plain(q) if tp_q else plain(q).transpose(0, 2, 1)
    as_rows = (lambda x: plain(x)) if tp_k else (lambda x: plain(x).transpose(0, 2, 1))
    k, v, used = as_rows(k), plain(v), 0
    if k_prior is not None:
        used = int(plain(prior_used_len)[0])
        k = np.concatenate((as_rows(k_prior)[:, :used], k), 1)
        v = np.concatenate((plain(v_prior)[:, :used], v), 1)
    ahead = np.arange(k.shape[1])[None, :] - used - np.arange(q.shape[1])[:, None]
    mask = np.ones(ahead.shape, bool)
    if causal_mask:
        mask &= ahead <= 0
    if sliding_window:
        mask &= ahead > -sliding_window
    out = attention(q, k, v, scale, mask, None if sink is None else plain(sink))
    return out.transpose(0, 2, 1) if tp_out else out


def attention_bwd(q_ref, k_ref, v_ref, o_ref, dy_ref, lse_ref=None, use_causal_mask=False, softmax_scale=None, **_):
    """Gradients of attention, all [bs, heads, d, S]."""
    q, k, v, dy = plain(q_ref), plain(k_ref), plain(v_ref), plain(dy_ref)
    scale = softmax_scale or 1 / math.sqrt(q.shape[2])
    groups = q.shape[1] // k.shape[1]
    kr, vr = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
    s = scale * np.einsum("bhdq,bhdk->bhqk", q, kr)
    if use_causal_mask:
        s = np.where(np.tri(s.shape[2], s.shape[3], dtype=bool), s, -np.inf)
    p = softmax(s)
    dv = np.einsum("bhqk,bhdq->bhdk", p, dy)
    dp = np.einsum("bhdq,bhdk->bhqk", dy, vr)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    dq = scale * np.einsum("bhqk,bhdk->bhdq", ds, kr)
    dk = scale * np.einsum("bhqk,bhdq->bhdk", ds, q)
    fold = (lambda x: x.reshape(x.shape[0], k.shape[1], groups, *x.shape[2:]).sum(2))
    return dq, fold(dk), fold(dv)
