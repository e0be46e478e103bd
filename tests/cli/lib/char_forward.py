"""The loss of an exported character model on held-out text, by NumPy alone: srlab's definition of both, written anew.

    char_forward.py FOLDER TEXT float32|bfloat16      prints nats per character

Held out is the last twentieth; of it at most 128 windows, one after another, are scored. With bfloat16 the operands of
products are rounded to nearest even first, as srlab's are.
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np

folder, text, products = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
config = json.loads((folder / "config.json").read_text())
assert config["model_type"] == "srlab_char"


def tensors():
    raw = (folder / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    for name, t in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        data = raw[8 + size:][slice(*t["data_offsets"])]
        if t["dtype"] == "BF16":
            numbers = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        else:
            assert t["dtype"] == "F32"
            numbers = np.frombuffer(data, "<f4")
        yield name, numbers.astype(np.float64).reshape(t["shape"])


def rounded(x):
    if products == "float32":
        return x
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1) >> 16 << 16).astype(np.uint32)).view(np.float32).astype(np.float64)


def product(a, b):
    return rounded(a) @ rounded(b)


def norm(x, gain):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * gain


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


erf = np.vectorize(math.erf)
w = dict(tensors())
heads, context = config["num_attention_heads"], config["max_position_embeddings"]
mask = np.triu(np.full((context, context), -np.inf), 1)


def attention(x, at):
    q, k, v = (product(x, w[f"{at}.{n}_proj.weight"].T) for n in "qkv")
    width = q.shape[1] // heads
    parts = []
    for h in range(heads):
        here = slice(h * width, (h + 1) * width)
        scores = product(q[:, here], k[:, here].T) / math.sqrt(width) + mask
        parts.append(product(softmax(scores), v[:, here]))
    return product(np.hstack(parts), w[f"{at}.o_proj.weight"].T)


def logits(tokens):
    x = w["model.embed_tokens.weight"][tokens] + w["model.embed_positions.weight"]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}"
        x = x + attention(norm(x, w[f"{at}.input_layernorm.weight"]), f"{at}.self_attn")
        up = product(norm(x, w[f"{at}.post_attention_layernorm.weight"]), w[f"{at}.mlp.up_proj.weight"].T)
        x = x + product(0.5 * up * (1 + erf(up / math.sqrt(2))), w[f"{at}.mlp.down_proj.weight"].T)
    return product(norm(x, w["model.norm.weight"]), w["lm_head.weight"].T)


# The alphabet of byte-level BPE, from its definition: bytes that can be seen stand for themselves.
shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
hidden = [b for b in range(256) if b not in shown]
letter = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}
vocab = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]

everything = text.read_bytes()
tokens = np.array([vocab[letter[b]] for b in everything])
held_out = tokens[len(everything) - len(everything) // 20:]
windows = min(128, (len(held_out) - 1) // context)
loss = 0.0
for i in range(windows):
    here = held_out[i * context:(i + 1) * context + 1]
    p = softmax(logits(here[:-1]))
    loss -= np.log(p[np.arange(context), here[1:]]).sum()
print(f"{loss / (windows * context):.6f}")
