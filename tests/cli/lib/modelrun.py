# Tiny models of every family that modelrun knows, written with NumPy alone, and their logits in float64, from the
# papers and from what transformers documents of each family: shares no code with the program.
# Usage: modelrun.py make (a folder for each case; prints them) | check LOGITS.npy TOLERANCE ... (in each of them)
#        | greedy FOLDER COUNT | cached FOLDER LOGITS.npy TOLERANCE (keys and values in FP8)
#        | noise REPORT.json (R and flips; prints the flips)
#        | tokenizer FOLDER TEXT (a tiny tokenizer.json, and the text's tokens)
#        | edit FOLDER FIELD JSON (of config.json) | wrong LIST (configurations with one wrong field)
#        | rename FOLDER FROM TO (tensors, in place)
import json
import math
import os
import sys

import numpy as np

import modelrun_more
from modelrun_basics import ACT, LLAMA3, TOKENS, VOCAB, Weights, frequencies, kept, rms, save, sigmoid, softmax

def rotate(x, c):  # x [T, heads, n]
    n = x.shape[-1]
    f, attention = frequencies(c, n)
    angle = np.arange(len(x))[:, None, None] * f
    cos, sin = np.cos(angle) * attention, np.sin(angle) * attention
    a, b = x[..., : n // 2], x[..., n // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q, k, v, scale, window, sinks=None):  # q [T, H, n], k, v [T, G, n]
    T, H, n = q.shape
    group = H // k.shape[1]
    out = np.empty_like(q)
    i, j = np.mgrid[:T, :T]
    hidden = (j > i) | ((j <= i - window) if window else False)
    for h in range(H):
        s = np.where(hidden, -np.inf, q[:, h] @ k[:, h // group].T * scale)
        if sinks is not None:
            s = np.concatenate([s, np.full((T, 1), sinks[h])], 1)
        out[:, h] = softmax(s)[:, :T] @ v[:, h // group]
    return out.reshape(T, H * n)


def windows(c):
    n, kind = c["num_hidden_layers"], c["model_type"]
    if c.get("layer_types"):
        return [c["sliding_window"] if t == "sliding_attention" else 0 for t in c["layer_types"]]
    w = c.get("sliding_window") or 0
    if kind in ("mistral", "mixtral"):
        return [w] * n
    if kind in ("qwen2", "qwen3") and c.get("use_sliding_window"):
        return [w if i >= c["max_window_layers"] else 0 for i in range(n)]
    if kind == "gpt_oss":
        return [w if i % 2 == 0 else 0 for i in range(n)]
    return [0] * n


def logits(c, w, tokens):
    if c.get("text_config", c)["model_type"] in modelrun_more.FAMILY:
        return modelrun_more.logits(c, w, tokens)
    return gpt2(c, w, tokens) if c["model_type"] == "gpt2" else usual(c, w, tokens)


def gpt2(c, w, tokens):
    def norm(x, name):
        d = x - x.mean(-1, keepdims=True)
        return d / np.sqrt((d * d).mean(-1, keepdims=True) + c["layer_norm_epsilon"]) * w[name + ".weight"] + w[
            name + ".bias"]

    def conv(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    T, H = len(tokens), c["n_head"]
    x = w["wte.weight"][tokens] + w["wpe.weight"][:T]
    for i in range(c["n_layer"]):
        at = f"h.{i}."
        q, k, v = (p.reshape(T, H, -1) for p in np.split(conv(norm(x, at + "ln_1"), at + "attn.c_attn"), 3, -1))
        scale = 1 / math.sqrt(q.shape[-1]) / (i + 1 if c.get("scale_attn_by_inverse_layer_idx") else 1)
        x = x + conv(attend(q, k, v, scale, 0), at + "attn.c_proj")
        x = x + conv(ACT[c["activation_function"]](conv(norm(x, at + "ln_2"), at + "mlp.c_fc")), at + "mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def experts(c, w, at, x):
    kind, k = c["model_type"], c["num_experts_per_tok"]
    home = at + ("block_sparse_moe." if kind == "mixtral" else "mlp.")
    y = np.zeros_like(x)
    if kind == "gpt_oss":
        r = x @ w[home + "router.weight"].T + w[home + "router.bias"]
        for t in range(len(x)):
            best = np.argsort(-r[t], kind="stable")[:k]
            for share, e in zip(softmax(r[t][best]), best):
                gu = x[t] @ w[home + "experts.gate_up_proj"][e] + w[home + "experts.gate_up_proj_bias"][e]
                gate, up = np.minimum(gu[0::2], 7), np.clip(gu[1::2], -7, 7)
                hidden = (up + 1) * gate * sigmoid(1.702 * gate)
                y[t] += share * (hidden @ w[home + "experts.down_proj"][e] + w[home + "experts.down_proj_bias"][e])
        return y
    p = softmax(x @ w[home + "gate.weight"].T)
    names = ("w1", "w3", "w2") if kind == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    for t in range(len(x)):
        best = np.argsort(-p[t], kind="stable")[:k]
        share = p[t][best] / (p[t][best].sum() if kind == "mixtral" or c.get("norm_topk_prob") else 1)
        for s, e in zip(share, best):
            g, u, d = (w[f"{home}experts.{e}.{n}.weight"] for n in names)
            y[t] += s * ((ACT["silu"](x[t] @ g.T) * (x[t] @ u.T)) @ d.T)
    if kind == "qwen2_moe":
        g, u, d = (w[f"{home}shared_expert.{n}.weight"] for n in names)
        y += sigmoid(x @ w[home + "shared_expert_gate.weight"].T) * ((ACT["silu"](x @ g.T) * (x @ u.T)) @ d.T)
    return y


def usual(c, w, tokens):
    pre = "model." if "model.norm.weight" in w else ""
    eps, n = c["rms_norm_eps"], c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]

    def linear(x, name):
        y = x @ w[name + ".weight"].T
        return y + w[name + ".bias"] if name + ".bias" in w else y

    T = len(tokens)
    x = w[pre + "embed_tokens.weight"][tokens]
    for i, window in zip(range(c["num_hidden_layers"]), windows(c)):
        at = f"{pre}layers.{i}."
        h = rms(x, w[at + "input_layernorm.weight"], eps)
        q, k, v = (linear(h, at + f"self_attn.{p}_proj").reshape(T, -1, n) for p in "qkv")
        if at + "self_attn.q_norm.weight" in w:
            q, k = rms(q, w[at + "self_attn.q_norm.weight"], eps), rms(k, w[at + "self_attn.k_norm.weight"], eps)
        k, v = kept(c, rotate(k, c)), kept(c, v)
        o = attend(rotate(q, c), k, v, n**-0.5, window, w.get(at + "self_attn.sinks"))
        x = x + linear(o, at + "self_attn.o_proj")
        h = rms(x, w[at + "post_attention_layernorm.weight"], eps)
        if at + "mlp.up_proj.weight" in w:
            gate = ACT[c.get("hidden_act", "silu")](linear(h, at + "mlp.gate_proj"))
            x = x + linear(gate * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj")
        else:
            x = x + experts(c, w, at, h)
    x = rms(x, w[pre + "norm.weight"], eps)
    return x @ w[pre + "embed_tokens.weight" if c["tie_word_embeddings"] else "lm_head.weight"].T


# ---- the cases ----

BASE = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
            vocab_size=VOCAB, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu",
            tie_word_embeddings=False)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)
CASES = {
    "llama": dict(model_type="llama"),
    "llama_biases": dict(model_type="llama", attention_bias=True, mlp_bias=True, head_dim=24, kind="F32"),
    "llama_tied": dict(model_type="llama", tie_word_embeddings=True, kind="F16", num_key_value_heads=4),
    "llama_base": dict(model_type="llama", tie_word_embeddings=True, prefix=""),
    "llama3": dict(model_type="llama", rope_theta=500000.0, rope_scaling=LLAMA3, num_key_value_heads=1),
    "llama_linear": dict(model_type="llama", rope_scaling=dict(type="linear", factor=2.5)),
    "llama_parameters": dict(model_type="llama", rope_parameters=dict(rope_theta=3000.0, **LLAMA3), rope_theta=None),
    "llama_gelu": dict(model_type="llama", hidden_act="gelu", kind="F32"),
    "llama_sharded": dict(model_type="llama", shards=3),
    "llama_fp8_tensor": dict(model_type="llama", fp8="tensor"),
    "llama_fp8_channel": dict(model_type="llama", fp8="channel"),
    "llama_fp8_block": dict(model_type="llama", fp8="block", hidden_size=192, intermediate_size=320,
                            quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "mistral": dict(model_type="mistral", sliding_window=5, head_dim=20),
    "mistral_full": dict(model_type="mistral", sliding_window=None),
    "qwen2": dict(model_type="qwen2", rms_norm_eps=1e-6, use_sliding_window=False, sliding_window=4),
    "qwen2_window": dict(model_type="qwen2", use_sliding_window=True, sliding_window=6, max_window_layers=1),
    "qwen2_yarn": dict(model_type="qwen2", rope_scaling=YARN),
    "qwen2_types": dict(model_type="qwen2", use_sliding_window=True, sliding_window=3, max_window_layers=3,
                        layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "qwen3": dict(model_type="qwen3", head_dim=32, rope_theta=1000000.0, tie_word_embeddings=True),
    "qwen3_bias": dict(model_type="qwen3", head_dim=16, attention_bias=True),
    "yarn_mscale": dict(model_type="qwen3", head_dim=32,
                        rope_scaling=dict(mscale=0.7, mscale_all_dim=1.1, beta_fast=8, beta_slow=2, **YARN)),
    "mixtral": dict(model_type="mixtral", num_local_experts=4, num_experts_per_tok=2, sliding_window=None),
    "qwen2_moe": dict(model_type="qwen2_moe", num_experts=5, num_experts_per_tok=3, moe_intermediate_size=40,
                      shared_expert_intermediate_size=56, mlp_only_layers=[1]),
    "qwen3_moe": dict(model_type="qwen3_moe", num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                      norm_topk_prob=True, head_dim=32, decoder_sparse_step=2),
    "gpt_oss": dict(model_type="gpt_oss", num_local_experts=4, num_experts_per_tok=2, head_dim=16, sliding_window=7,
                    rope_theta=150000.0, rope_scaling=dict(truncate=False, beta_fast=32.0, beta_slow=1.0, **YARN),
                    swiglu_limit=7.0, mxfp4=True),
    "gpt_oss_plain": dict(model_type="gpt_oss", num_local_experts=3, num_experts_per_tok=2, head_dim=16,
                          sliding_window=4, rope_theta=150000.0, rope_scaling=dict(truncate=False, **YARN)),
    "gpt2": dict(model_type="gpt2"),
    "gpt2_plain_names": dict(model_type="gpt2", prefix="", scale_attn_by_inverse_layer_idx=True, kind="F32"),
    **modelrun_more.CASES,
}


def make_gpt2(c, w, prefix):
    H = c["n_embd"]
    w.matrix(prefix + "wte.weight", VOCAB, H)
    w.matrix(prefix + "wpe.weight", c["n_positions"], H, scale=0.1)
    for i in range(c["n_layer"]):
        at = f"{prefix}h.{i}."
        for name, a, b in (("attn.c_attn", H, 3 * H), ("attn.c_proj", H, H), ("mlp.c_fc", H, 4 * H),
                           ("mlp.c_proj", 4 * H, H)):
            w.matrix(at + name + ".weight", a, b, scale=1 / math.sqrt(a))
            w.vector(at + name + ".bias", b)
        for name in ("ln_1", "ln_2"):
            w.vector(at + name + ".weight", H, 1)
            w.vector(at + name + ".bias", H)
    w.vector(prefix + "ln_f.weight", H, 1)
    w.vector(prefix + "ln_f.bias", H)


def make_usual(c, w, pre, fp8, mxfp4):
    H, kind = c["hidden_size"], c["model_type"]
    n = c.get("head_dim") or H // c["num_attention_heads"]

    def linear(name, rows, columns, bias=False):
        w.fp8(name, rows, columns, fp8) if fp8 else w.matrix(name + ".weight", rows, columns)
        if bias:
            w.vector(name + ".bias", rows)

    def gated(home, wide, names=("gate_proj", "up_proj", "down_proj"), bias=False):
        linear(home + names[0], wide, H, bias)
        linear(home + names[1], wide, H, bias)
        linear(home + names[2], H, wide, bias)

    w.matrix(pre + "embed_tokens.weight", VOCAB, H, scale=1)
    asked = c.get("attention_bias", kind == "gpt_oss")
    for i in range(c["num_hidden_layers"]):
        at = f"{pre}layers.{i}."
        w.vector(at + "input_layernorm.weight", H, 1)
        w.vector(at + "post_attention_layernorm.weight", H, 1)
        bias = asked or kind in ("qwen2", "qwen2_moe")
        for p, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads"), ("v", "num_key_value_heads")):
            linear(at + f"self_attn.{p}_proj", c[heads] * n, H, bias)
        linear(at + "self_attn.o_proj", H, c["num_attention_heads"] * n, asked)
        if kind in ("qwen3", "qwen3_moe"):
            w.vector(at + "self_attn.q_norm.weight", n, 1)
            w.vector(at + "self_attn.k_norm.weight", n, 1)
        if kind == "gpt_oss":
            w.vector(at + "self_attn.sinks", c["num_attention_heads"], scale=1)
            E, I = c["num_local_experts"], c["intermediate_size"]
            linear(at + "mlp.router", E, H, True)
            if mxfp4:
                w.mxfp4(at + "mlp.experts.gate_up_proj", E, 2 * I, H)
                w.mxfp4(at + "mlp.experts.down_proj", E, H, I)
            else:
                w.matrix(at + "mlp.experts.gate_up_proj", E, H, 2 * I, scale=0.3)
                w.matrix(at + "mlp.experts.down_proj", E, I, H, scale=0.1)
            w.matrix(at + "mlp.experts.gate_up_proj_bias", E, 2 * I, scale=0.3)
            w.matrix(at + "mlp.experts.down_proj_bias", E, H, scale=0.3)
        elif kind == "mixtral":
            linear(at + "block_sparse_moe.gate", c["num_local_experts"], H)
            for e in range(c["num_local_experts"]):
                gated(at + f"block_sparse_moe.experts.{e}.", c["intermediate_size"], ("w1", "w3", "w2"))
        elif kind in ("qwen2_moe", "qwen3_moe") and (i + 1) % c.get("decoder_sparse_step", 1) == 0 and i not in c.get(
                "mlp_only_layers", []):
            linear(at + "mlp.gate", c["num_experts"], H)
            for e in range(c["num_experts"]):
                gated(at + f"mlp.experts.{e}.", c["moe_intermediate_size"])
            if kind == "qwen2_moe":
                gated(at + "mlp.shared_expert.", c["shared_expert_intermediate_size"])
                linear(at + "mlp.shared_expert_gate", 1, H)
        else:
            gated(at + "mlp.", c["intermediate_size"], bias=c.get("mlp_bias", False))
    w.vector(pre + "norm.weight", H, 1)
    if not c["tie_word_embeddings"]:
        w.matrix("lm_head.weight", VOCAB, H)


def make(case):
    own = dict(CASES[case])
    kind, prefix, shards = own.pop("kind", "BF16"), own.pop("prefix", None), own.pop("shards", 1)
    fp8, mxfp4 = own.pop("fp8", None), own.pop("mxfp4", False)
    w = Weights(sum(map(ord, case)), kind)
    if own["model_type"] == "gpt2":
        c = dict(n_embd=64, n_layer=3, n_head=4, n_positions=64, vocab_size=VOCAB, layer_norm_epsilon=1e-5,
                 activation_function="gelu_new", **own)
        make_gpt2(c, w, "transformer." if prefix is None else prefix)
    elif own["model_type"] in modelrun_more.FAMILY:
        c = modelrun_more.make(w, own, fp8)
    else:
        c = {k: v for k, v in dict(BASE, **own).items() if v is not None or k == "sliding_window"}
        make_usual(c, w, "model." if prefix is None else prefix, fp8, mxfp4)
    if fp8:
        c.setdefault("quantization_config", dict(quant_method="fp8"))
    os.makedirs(case)
    with open(case + "/config.json", "w") as f:
        json.dump(c, f, indent=1)
    names = list(w.file)
    if shards == 1:
        save(case + "/model.safetensors", w.file)
    else:
        place = {name: f"model-{i % shards + 1:05d}-of-{shards:05d}.safetensors" for i, name in enumerate(names)}
        for shard in set(place.values()):
            save(f"{case}/{shard}", {k: v for k, v in w.file.items() if place[k] == shard})
        with open(case + "/model.safetensors.index.json", "w") as f:
            json.dump(dict(metadata=dict(total_size=0), weight_map=place), f)
    tokens = np.random.default_rng(7).integers(0, VOCAB, TOKENS)
    with open(case + "/tokens.txt", "w") as f:
        f.write(" ".join(map(str, tokens)) + "\n")
    value = {k[len("transformer."):] if k.startswith("transformer.") else k: v for k, v in w.value.items()}
    np.save(case + "/expected.npy", logits(c, value, tokens))
    np.savez(case + "/weights.npz", **value)


def check(folder, path, tolerance, want=None):
    have, want = np.load(path).astype(np.float64), np.load(folder + "/expected.npy") if want is None else want
    if have.shape != want.shape or not np.isfinite(have).all():
        return f"{path}: logits of shape {have.shape}, or not finite"
    error = np.abs(have - want).max() / np.abs(want).max()
    return not error <= tolerance and f"{path}: logits differ by {error:.3g} of the largest, more than {tolerance:g}"


def noise(path):
    """A report as JSON: R is what the SQNR say, and the flips of all routers are those of each."""
    with open(path) as f:
        report = json.load(f)
    rows = {row["setting"]: row for row in report["settings"]}
    sqnr, ratio, flips = ({row["setting"]: row["layers"] for row in report.get(name, [])}
                          for name in ("sqnr_db", "r", "flips_percent"))
    for name, row in rows.items():
        both = zip(sqnr[name] + [row["logits"]], sqnr["bf16"] + [rows["bf16"]["logits"]], ratio[name] + [row["R"]])
        for one, bf16_db, r in both:
            assert abs(r - (0 if one is None else 10 ** ((bf16_db - one) / 20))) <= 1e-9 * r, (name, one, bf16_db, r)
        if flips:
            known = [x for x in flips[name] if x is not None]
            assert len(flips[name]) == len(sqnr[name]) and abs(row["flips"] - sum(known) / len(known)) < 1e-9, row
            assert all(0 <= x <= 100 and abs(x * report["tokens"] / 100 % 1 - 0.5) > 0.499 for x in known), known
    print(*(f"{name}={[x for x in flips.get(name, [])]}" for name in rows))


def read(folder):
    with open(folder + "/config.json") as f:
        c = json.load(f)
    return c, dict(np.load(folder + "/weights.npz")), [int(t) for t in open(folder + "/tokens.txt").read().split()]


def cached(folder, path, tolerance):
    c, w, tokens = read(folder)
    return check(folder, path, tolerance, logits(dict(c, kv_fp8=True), w, np.array(tokens)))


def greedy(folder, count):
    c, w, tokens = read(folder)
    made = []
    for _ in range(count):
        made.append(int(np.argmax(logits(c, w, np.array(tokens + made))[-1])))
    print(*made)


def tokenizer(folder, text):
    shown = {" ": "\u0120", "\n": "\u010a"}
    letters = [chr(i) for i in range(33, 127)] + list(shown.values())
    vocab = {c: i for i, c in enumerate(letters + ["th"])}
    with open(folder + "/tokenizer.json", "w") as f:
        json.dump(dict(model=dict(type="BPE", vocab=vocab, merges=["t h"]), added_tokens=[],
                       pre_tokenizer=dict(type="ByteLevel", add_prefix_space=False)), f)
    parts = text.replace("th", "\0")
    print(*(vocab["th"] if c == "\0" else vocab[shown.get(c, c)] for c in parts))


def edit(folder, field, value, to=None):
    with open(folder + "/config.json") as f:
        c = json.load(f)
    c.get("text_config", c)[field] = json.loads(value)
    with open((to or folder) + "/config.json", "w") as f:
        json.dump(c, f)


def wrong(path):
    """A folder wrong1, wrong2, ... with a configuration alone for each second line, MODEL|FIELD|JSON."""
    with open(path) as f:
        for i, line in enumerate(f.readlines()[::2], 1):
            os.makedirs(f"wrong{i}")
            edit(*line.split("|"), f"wrong{i}")


def rename(folder, old, new):
    if len(old) != len(new):
        sys.exit("both names have the same length, so that no offset changes")
    with open(folder + "/model.safetensors", "rb") as f:
        raw = f.read()
    with open(folder + "/model.safetensors", "wb") as f:
        f.write(raw.replace(old.encode(), new.encode()))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for case in CASES:
            make(case)
        print(*CASES)
    elif sys.argv[1] == "cached":
        sys.exit(cached(sys.argv[2], sys.argv[3], float(sys.argv[4])) or 0)
    elif sys.argv[1] == "noise":
        noise(sys.argv[2])
    elif sys.argv[1] == "greedy":
        greedy(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "tokenizer":
        tokenizer(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "edit":
        edit(*sys.argv[2:5])
    elif sys.argv[1] == "wrong":
        wrong(sys.argv[2])
    elif sys.argv[1] == "rename":
        rename(*sys.argv[2:5])
    else:
        wrong = [check(case, f"{case}/{file}", float(most)) for case in CASES
                 for file, most in zip(sys.argv[2::2], sys.argv[3::2])]
        sys.exit("\n".join(filter(None, wrong)) or 0)
