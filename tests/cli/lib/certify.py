# What modelrun --certify must say, judged apart from it: which operations depend on what, setting by setting, from the
# definitions; and the pairs of differing numbers, from a decoder in NumPy that adds in binary32 in the engines' order,
# with rings, cores and windows of its own. Shares no code with the program.
# Usage: certify.py make FOLDER (llama, window, moe, long, or hard, whose window shows in BF16)
#        | verdicts REPORT.json FEATURE... (each setting's; features of the model: window, long, whole)
#        | pairs FOLDER REPORT.json SETTING | scales FOLDER REPORT.json SETTING | window FOLDER REPORT.json
#        | cost REPORT.json SETTING RING.json RING_OF_ONE_TOKEN.json (trnbench's)
#        | logits FOLDER LOGITS.npy SETTING COUNT
import json
import math
import os
import sys

import numpy as np

F = np.float32
MESSAGE, TILE, CHAINS = 64, 128, 4
ALONE, WHOLE = (2, 3, 4, 5, 6, 8, 16, 64, 65), (2, 3)
CORES = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)

# ---- models ----

SIZES = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
             vocab_size=97, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu",
             tie_word_embeddings=False)
MODELS = {
    "llama": dict(SIZES, model_type="llama"),
    "window": dict(SIZES, model_type="mistral", sliding_window=6),
    "moe": dict(SIZES, model_type="qwen3_moe", num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                norm_topk_prob=True, head_dim=16, decoder_sparse_step=2),
    "long": dict(SIZES, model_type="llama", original_max_position_embeddings=4,
                 rope_scaling=dict(rope_type="longrope", short_factor=[1.0] * 8, long_factor=[4.0] * 8)),
    "hard": dict(SIZES, model_type="mistral", hidden_size=16, num_hidden_layers=1, num_attention_heads=1,
                 num_key_value_heads=1, intermediate_size=16, sliding_window=8),
}


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(code):
    return (code.astype(np.uint32) << 16).view(np.float32)


def save(folder, c, value, tokens):
    header, at, data = {}, 0, []
    for name, x in value.items():
        raw = bf16(x).tobytes()
        header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(folder + "/model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(data))
    np.savez(folder + "/weights.npz", **{k: from_bf16(bf16(v)) for k, v in value.items()})
    with open(folder + "/config.json", "w") as f:
        json.dump(c, f)
    with open(folder + "/tokens.txt", "w") as f:
        f.write(" ".join(map(str, tokens)) + "\n")


def shapes(c):
    h, n = c["hidden_size"], c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    wide, narrow = c["num_attention_heads"] * n, c["num_key_value_heads"] * n
    yield "model.embed_tokens", (c["vocab_size"], h)
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield at + name, (h,)
        for name, shape in (("q", (wide, h)), ("k", (narrow, h)), ("v", (narrow, h)), ("o", (h, wide))):
            yield f"{at}self_attn.{name}_proj", shape
        sparse = "num_experts" in c and (i + 1) % c["decoder_sparse_step"] == 0
        inner = c["moe_intermediate_size"] if sparse else c["intermediate_size"]
        if "num_experts" in c:
            yield from ((f"{at}self_attn.{name}_norm", (n,)) for name in "qk")
        if sparse:
            yield at + "mlp.gate", (c["num_experts"], h)
        for home in [f"mlp.experts.{e}." for e in range(c["num_experts"])] if sparse else ["mlp."]:
            for name, shape in (("gate", (inner, h)), ("up", (inner, h)), ("down", (h, inner))):
                yield f"{at}{home}{name}_proj", shape
    yield "model.norm", (h,)
    yield "lm_head", (c["vocab_size"], h)


def random_values(c, rng):
    for name, shape in shapes(c):
        x = rng.standard_normal(shape)
        scale = 1 if "embed" in name else 1.5 / shape[-1] ** 0.5
        yield name + ".weight", 1 + 0.3 * x if len(shape) == 1 else x * scale


def hard_values(c, rng):
    """Values are 1, -1 or about 2^-26 of that, and each key has the same probability: what is left of a sum is what was
    added after the large ones had gone."""
    for name, shape in shapes(c):
        x = np.ones(shape) if len(shape) == 1 else np.zeros(shape) if "k_proj" in name else np.eye(*shape)
        if "embed" in name:
            small, large = rng.standard_normal(shape) * 2.0**-26, np.where(rng.random(shape) < 0.5, 1.0, -1.0)
            x = np.where(rng.random(shape) < 0.5, small, large)
        yield name + ".weight", rng.standard_normal(shape) if "lm_head" in name else x


def make(model):
    c, rng = MODELS[model], np.random.default_rng(3)
    value = dict((hard_values if model == "hard" else random_values)(c, rng))
    save(model, c, value, rng.integers(0, c["vocab_size"], 24))


# ---- which operations depend on what ----

SUMS = {"attention's all-reduce", "down's all-reduce", "experts' all-reduce"}
PRODUCTS = {"queries, keys, values", "gate, up", "experts' gate, up"}
PARTS = {"attention's output", "down", "experts' down"}
ROWS = ("batch", "chunks")


def depends(setting, features):
    """{(operation, of): first cause} of a setting's words, and all operations of each cause."""
    words = setting.split(",")
    tp = max([int(w[3:]) for w in words if w.startswith("tp=")], default=1)
    found, causes = {}, {}

    def put(operations, ofs, cause):
        causes.setdefault(cause, set()).update(operations)
        for o in operations:
            for of in ofs:
                found.setdefault((o, of), cause)
                found.setdefault(("the whole model", of), cause)

    if "split=outputs" not in words and "whole" not in features:
        if tp > 2 and "reduce=token" not in words and "reduce=ordered" not in words:
            put(SUMS, ROWS, "ring")
        put(SUMS, ("cores",), "depth")
    if "scale=tensor" in words:
        put(PRODUCTS | PARTS, ROWS, "tensor scale")
    if "psum_rounding=stochastic" in words:
        alone = tp > 1 and "reduce=token" in words
        put(PRODUCTS | {"router", "logits"} | (set() if alone else PARTS), ROWS, "stochastic PSUM")
        put({"scores", "values times softmax"}, ("chunks",), "stochastic PSUM of a block")
    if "long" in features:
        put({"rotation"}, ("chunks",), "length")
    if "window" in features and "keys=aligned" not in words and "chains=1" not in words:
        put({"values times softmax"}, ("chunks",), "window")
    return found, causes


def exists(operation, of, words, features):
    """Is there such a row? (whole: the model's sizes have no parts.)"""
    cut = any(w.startswith("tp=") and w != "tp=1" for w in words) and "split=outputs" not in words
    if of == "cores":
        return operation not in PARTS and "whole" not in features
    return operation not in SUMS or cut


def verdicts(report, features):
    rows, wrong = report["operations"], []
    seen = {(r["setting"], r["operation"], r["of"]) for r in rows}
    operations = {r["operation"] for r in rows}
    for s in {r["setting"] for r in rows}:
        want, causes = depends(s, features)
        for o in operations:
            for of in ("batch", "chunks", "cores"):
                if ((s, o, of) in seen) != exists(o, of, s.split(","), features):
                    wrong.append(f"{s}: a row for {o}, {of}, is there or missing")
        for r in (r for r in rows if r["setting"] == s):
            cause = want.get((r["operation"], r["of"]))
            shown = r["found"] == ("differs" if cause else "same")
            if r["operation"] == "the whole model" and (cause == "window" or "wire=f32" in s):
                shown = r["found"] in ("differs", "not found")  # what is left of it may be rounded away
            if r["cause"] != cause or r["rule"] != ("depends" if cause else "same") or not shown:
                wrong.append(f"{s}: {r['operation']}, {r['of']}: {r['rule']}, {r['found']}, {r['cause']}; not {cause}")
            if r["found"] == "same" and not (r["numbers"] > 0 and r["differ"] == 0 and r["a"] is None):
                wrong.append(f"{s}: {r['operation']}, {r['of']}: nothing was compared")
            if r["found"] == "differs" and not (0 < r["differ"] <= r["numbers"] and r["a"] != r["b"]):
                wrong.append(f"{s}: {r['operation']}, {r['of']}: there is no pair")
        causes = {c for c, of in causes.items() if of & operations}
        cured = {c["cause"] for c in report["cures"] if c["setting"] == s}
        if causes != cured:
            wrong.append(f"{s}: cures are of {cured}, causes are {causes}")
    for c in report["cures"]:
        known = ("no setting cures it", 0) if c["cause"] == "length" else ("yes", 1)
        if c["cured"] != known[0] or c["differ"] or not c["numbers"] >= known[1]:
            wrong.append(f"{c['setting']}: {c['cure']} does not cure {c['cause']}: {c['cured']}, {c['differ']}")
    if report["wrong"]:
        wrong.append("the program says itself that its rules are wrong")
    sys.exit("\n".join(wrong) or 0)


# ---- a decoder in the engines' arithmetic: bf16,act=ideal ----


def r16(x):
    return from_bf16(bf16(x))


def product(x, w, first=0):
    """x [M, K], w [N, K]: four chains of binary32 in a tile of 128, merged from the first. first: where K begins."""
    psum = None
    for k0 in range(0, x.shape[1], TILE):
        chain = [np.zeros((x.shape[0], w.shape[0]), F) for _ in range(CHAINS)]
        for k in range(k0, min(k0 + TILE, x.shape[1])):
            at = (k + first) % CHAINS
            chain[at] = chain[at] + x[:, k, None] * w[None, :, k]
        tile = ((chain[0] + chain[1]) + chain[2]) + chain[3]
        psum = tile if psum is None else psum + tile
    return psum


def norm(x, weight, eps):
    total = np.zeros(x.shape[:-1], F)
    for i in range(x.shape[-1]):
        total = total + x[..., i] * x[..., i]
    inside = total * (F(1) / F(x.shape[-1])) + F(eps)
    s = (1 / np.sqrt(inside.astype(np.float64))).astype(F)
    return r16(x * s[..., None] * weight)


def rotate(x, c):
    n = x.shape[-1]
    f = (c["rope_theta"] ** (-2.0 * np.arange(n // 2) / n)).astype(F)
    angle = (np.arange(len(x), dtype=F)[:, None] * f).astype(np.float64)
    cos, sin = np.cos(angle).astype(F)[:, None], np.sin(angle).astype(F)[:, None]
    a, b = x[..., : n // 2], x[..., n // 2 :]
    return r16(np.concatenate([a * cos - b * sin, b * cos + a * sin], -1))


def attend(q, k, v):
    T, H, n = q.shape
    out = np.zeros((T, H, n), F)
    scale = F(1 / math.sqrt(n))
    for t in range(T):
        for h in range(H):
            g = h * k.shape[1] // H
            s = product(q[t : t + 1, h], k[: t + 1, g])[0]
            most = s.max() * scale
            e = np.exp((s * scale + -most).astype(np.float64)).astype(F)
            total = F(0)
            for x in e:
                total = total + x
            p = r16(e * (F(1) / total))
            out[t, h] = r16(product(p[None], v[: t + 1, g].T))[0]
    return out.reshape(T, H * n)


class Place:
    """Where a token's sums stand in a message: row `row` of `rows` that are multiplied together."""

    def __init__(self, row, rows):
        block = row // MESSAGE
        self.row, self.rows = row % MESSAGE, min(MESSAGE, rows - MESSAGE * block)


def reduce_ring(parts, place):
    """One token's parts [tp, N]: chunk c is summed from core c + 1 on, up to c, each sum rounded."""
    tp, n = parts.shape
    each, at = -(-place.rows * n // tp), np.arange(n)
    owner = (place.row * n + at) // each
    total = parts[(owner + 1) % tp, at]
    for k in range(2, tp + 1):
        total = r16(total + parts[(owner + k) % tp, at])
    return total


def reduce_ordered(parts, _):
    total = parts[0]
    for p in parts[1:]:
        total = total + p
    return r16(total)


class Setting:
    def __init__(self, text):
        words = text.split(",")
        self.tp = max([int(w[3:]) for w in words if w.startswith("tp=")], default=1)
        self.outputs, self.token = "split=outputs" in words, "reduce=token" in words
        self.fold = reduce_ordered if "reduce=ordered" in words else reduce_ring

    def with_cores(self, tp):
        other = Setting("")
        other.__dict__.update(self.__dict__, tp=tp)
        return other

    def sums(self, x, w, places):
        """x [T, K] w^T over the cores; what each token's message makes of it."""
        if self.tp == 1 or self.outputs:
            return r16(product(x, w))
        depth = x.shape[1] // self.tp
        parts = np.stack([r16(product(x[:, r * depth : (r + 1) * depth], w[:, r * depth : (r + 1) * depth]))
                          for r in range(self.tp)])
        return np.stack([self.fold(parts[:, t], Place(0, 1) if self.token else places[t]) for t in range(len(x))])


def silu(x):
    d = x.astype(np.float64)
    return (d / (1 + np.exp(-d))).astype(F)


class Decoder:
    def __init__(self, folder):
        with open(folder + "/config.json") as f:
            self.c = json.load(f)
        self.w = {k: v.astype(F) for k, v in np.load(folder + "/weights.npz").items()}
        self.text = [int(t) for t in open(folder + "/tokens.txt").read().split()]

    def weight(self, layer, name):
        return self.w[f"model.layers.{layer}.{name}.weight"]

    def first_norm(self, tokens):
        return norm(self.w["model.embed_tokens.weight"][tokens], self.weight(0, "input_layernorm"),
                    self.c["rms_norm_eps"])

    def run(self, tokens, setting, places):
        """Logits, and what the cut products take: {(operation, layer): (x, w, y)}."""
        c, kept = self.c, {}
        n = c["hidden_size"] // c["num_attention_heads"]
        h = self.w["model.embed_tokens.weight"][tokens]
        for i in range(c["num_hidden_layers"]):
            x = norm(h, self.weight(i, "input_layernorm"), c["rms_norm_eps"])
            q, k, v = (r16(product(x, self.weight(i, f"self_attn.{p}_proj"))).reshape(len(x), -1, n) for p in "qkv")
            x = attend(rotate(q, c), rotate(k, c), v)
            w = self.weight(i, "self_attn.o_proj")
            y = setting.sums(x, w, places)
            kept["attention's all-reduce", i] = x, w, y
            h = r16(h + y)
            x = norm(h, self.weight(i, "post_attention_layernorm"), c["rms_norm_eps"])
            up = r16(product(x, self.weight(i, "mlp.up_proj")))
            x = r16(r16(silu(r16(product(x, self.weight(i, "mlp.gate_proj"))))) * up)
            w = self.weight(i, "mlp.down_proj")
            y = setting.sums(x, w, places)
            kept["down's all-reduce", i] = x, w, y
            h = r16(h + y)
        return product(norm(h, self.w["model.norm.weight"], c["rms_norm_eps"]), self.w["lm_head.weight"]), kept


# ---- arrangements, in the order of the search: (name, the places of the probe's tokens, which are compared) ----


def whole(count):
    return [Place(t, count) for t in range(count)]


def decodes(count, batch=1, row=0):
    return [Place(t, count - 1) for t in range(count - 1)] + [Place(row, batch)]


def batches(count):
    for b in ALONE:
        for last in (True,) if b == 16 else (False, True):
            name = f"{b} sequences decode, the {'last' if last else 'first'} of them"
            yield name, decodes(count, b, b - 1 if last else 0), [count - 1]
    for b in WHOLE:
        for last in (False, True):
            at = (b - 1) * count if last else 0
            name = f"{b} sequences, the {'last' if last else 'first'} of them"
            yield name, [Place(at + t, b * count) for t in range(count)], range(count)


def tokens_text(n):
    return f"{n} token" + ("" if n == 1 else "s")


def chunks(count):
    for cut in range(1, count):
        yield (f"cut after {tokens_text(cut)}", whole(cut) + whole(count - cut), range(count))
    each = 1
    while each < count:
        places = [Place(t % each, min(each, count - t // each * each)) for t in range(count)]
        yield f"in pieces of {tokens_text(each)}", places, range(count)
        each *= 2


def code(x):
    return "0x%08x" % int(np.array(x, F).view(np.uint32))


def codes(a, b):
    both = [np.array([a], F), np.array([b], F)]
    if all((r16(x) == x).all() for x in both):
        return ["0x%04x" % int(bf16(x)[0]) for x in both]
    return [code(a), code(b)]


def first_difference(a, b, compared):
    for t in compared:
        for i in range(a.shape[1]):
            if a[t, i] != b[t, i]:
                return [t, i, *codes(a[t, i], b[t, i])]
    return None


def row_of(report, setting, operation, of):
    rows = [r for r in report["operations"]
            if r["setting"] == setting and r["operation"] == operation and r["of"] == of]
    if len(rows) != 1:
        sys.exit(f"{setting}: {len(rows)} rows for {operation}, {of}")
    return rows[0]


def compare(row, layer, pair, plain, other):
    have = [row[k] for k in ("layer", "token", "number", "a", "b", "plain", "other")]
    if have != [layer, *pair, plain, other]:
        sys.exit(f"{row['setting']}: {row['operation']}, {row['of']}: {have}; NumPy has {[layer, *pair, plain, other]}")


def cores_name(tp):
    return f"{tp} core" + ("" if tp == 1 else "s")


def splits(c, tp):
    return c["hidden_size"] % tp == 0 and c["intermediate_size"] % tp == 0


def tries(of, d, setting, count):
    """The arrangements in which one of the three is another: name, places, tokens to compare, setting."""
    if of == "cores":
        return [(cores_name(tp), whole(count), range(count), setting.with_cores(tp))
                for tp in CORES if tp != setting.tp and splits(d.c, tp)]
    return [(*a, setting) for a in (batches(count) if of == "batch" else chunks(count))]


def pair_of(operation, of, d, setting, plain, tokens):
    """The first arrangement with a difference in one operation, whose inputs are the plain arrangement's."""
    layers, count = range(d.c["num_hidden_layers"]), len(tokens)
    for name, places, compared, cores in tries(of, d, setting, count):
        key = "alone" if "decode" in name else "whole"
        for i in layers:
            x, w, y = plain[key][1][operation, i]
            pair = first_difference(y, cores.sums(x, w, places), compared)
            if pair:
                return i, pair, name, key
    return None


def model_pair(of, d, setting, plain, tokens):
    count = len(tokens)
    for name, places, compared, cores in tries(of, d, setting, count):
        key = "alone" if "decode" in name else "whole"
        pair = first_difference(plain[key][0], d.run(tokens, cores, places)[0], compared)
        if pair:
            return None, pair, name, key
    return None


def pairs(folder, report, text):
    d, setting = Decoder(folder), Setting(text)
    tokens = d.text[: report["tokens"]]
    count = len(tokens)
    plain = {"alone": d.run(tokens, setting, decodes(count)), "whole": d.run(tokens, setting, whole(count))}
    named = {"alone": "1 sequence decodes", "whole": "1 sequence, its prompt whole"}
    for operation in ("attention's all-reduce", "down's all-reduce", "the whole model"):
        for of in ("batch", "chunks", "cores"):
            row = row_of(report, text, operation, of)
            if operation == "the whole model":
                found = model_pair(of, d, setting, plain, tokens)
            else:
                found = pair_of(operation, of, d, setting, plain, tokens)
            if (found is None) != (row["found"] == "same"):
                sys.exit(f"{text}: {operation}, {of}: {row['found']}; NumPy finds {found}")
            if found:
                layer, pair, name, key = found
                compare(row, layer, pair, cores_name(setting.tp) if of == "cores" else named[key], name)


def logits(folder, path, text, count):
    d = Decoder(folder)
    want = d.run(d.text[:count], Setting(text), whole(count))[0]
    have = np.load(path)
    if have.shape != want.shape or not (have.view(np.uint32) == want.view(np.uint32)).all():
        sys.exit(f"{text}: {int((have != want).sum())} of {want.size} logits differ from NumPy's")


# ---- one scale for all tokens: FP8 ----


def e4m3(x):
    exponent = np.maximum(np.floor(np.log2(np.maximum(np.abs(x.astype(np.float64)), 2.0**-60))), -6)
    step = 2.0 ** (exponent - 3)
    return (np.rint(x.astype(np.float64) / step) * step).astype(F)


def halved(w):
    scale = (np.abs(w).max(1) / F(448)).astype(F)
    return e4m3(e4m3(w / scale[:, None]) / F(2)), scale * F(2)


def with_scales(x, most):
    scale = (most / F(240)).astype(F)
    return np.clip(e4m3(x * (F(1) / scale)[:, None]), -240, 240), scale


def quantised_product(x, w, tensor, together):
    """Rows of x; together: what sets a common scale with them."""
    most = np.full(len(x), np.abs(together).max(), F) if tensor else np.abs(x).max(1)
    (q, a), (p, b) = with_scales(x, most), halved(w)
    return r16(product(q, p) * a[:, None] * b)


def scales(folder, report, text):
    """Queries, keys and values of layer 0, whose tokens depend on nothing before."""
    d = Decoder(folder)
    x = d.first_norm(d.text[: report["tokens"]])
    w = [d.weight(0, f"self_attn.{p}_proj") for p in "qkv"]
    row = row_of(report, text, "queries, keys, values", "chunks")
    for cut in range(1, len(x)):
        for t in range(len(x)):
            piece = x[:cut] if t < cut else x[cut:]
            for m in w:
                a = quantised_product(x[t : t + 1], m, True, x)
                pair = first_difference(a, quantised_product(x[t : t + 1], m, True, piece), [0])
                if pair:
                    return compare(row, 0, [t, *pair[1:]], "1 sequence, its prompt whole",
                                   f"cut after {tokens_text(cut)}")
    return sys.exit("NumPy finds no pair of scales")


# ---- windows: a key's place in the chains ----

def mixed(v, t, block):
    """Token t's mean of the values that it sees; its block's keys begin with the first that token `block` sees."""
    window = MODELS["hard"]["sliding_window"]
    first, own = max(0, block + 1 - window), max(0, t + 1 - window)
    p = r16(np.full((1, t + 1 - own), F(1) / F(t + 1 - own), F))
    return r16(product(p, v[own : t + 1].T, own - first))


def window(folder, report):
    d = Decoder(folder)
    v = d.first_norm(d.text[: report["tokens"]])
    row = row_of(report, report["operations"][0]["setting"], "values times softmax", "chunks")
    for cut in range(1, len(v)):
        for t in range(len(v)):
            pair = first_difference(mixed(v, t, 0), mixed(v, t, cut if t >= cut else 0), [0])
            if pair:
                return compare(row, 0, [t, *pair[1:]], "1 sequence, its prompt whole", f"cut after {tokens_text(cut)}")
    return sys.exit("NumPy finds no pair of a window")


# ---- what a ring costs in a graph, from trnbench's report of the collective ----


def cost(report, text, ring, one):
    def seconds(bench):
        row, = bench["results"]
        graph, = (f["value"] for f in bench["calibration"] if f["field"] == "graph_s")
        return row["expected_us"] / 1e6 + row["steps"] * graph

    want = {"reduce=token": (seconds(ring), MESSAGE * seconds(one)), "reduce=ordered": (seconds(ring), None)}
    rows = [c for c in report["cures"] if c["setting"] == text and c["cure"] in want]
    for c in rows:
        for have, says in zip((c["before"], c["after"]), want[c["cure"]]):
            if not have or (says and abs(have - says) > 1e-3 * says):
                sys.exit(f"{c['cure']} takes {c['before']}, then {c['after']} s; trnbench says {want[c['cure']]}")
    if len(rows) != 2 or not rows[1]["after"] < rows[0]["after"]:
        sys.exit(f"{text}: {len(rows)} cures of a ring, or a mesh that takes longer than a message for each token")


def loaded(path):
    with open(path) as f:
        return json.load(f)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "make":
        make(rest[0])
    elif what == "verdicts":
        verdicts(loaded(rest[0]), rest[1:])
    elif what == "pairs":
        pairs(rest[0], loaded(rest[1]), rest[2])
    elif what == "scales":
        scales(rest[0], loaded(rest[1]), rest[2])
    elif what == "cost":
        cost(loaded(rest[0]), rest[1], loaded(rest[2]), loaded(rest[3]))
    elif what == "window":
        window(rest[0], loaded(rest[1]))
    else:
        logits(rest[0], rest[1], rest[2], int(rest[3]))
