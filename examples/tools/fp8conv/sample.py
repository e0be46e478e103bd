#!/usr/bin/env python3
"""sample.py - writes a small model of random weights as people keep them: BF16 safetensors, two shards, an index.

SPDX-License-Identifier: MIT

    python3 examples/tools/fp8conv/sample.py DIRECTORY [HIDDEN]

Names and shapes are those of a two-layer Llama; HIDDEN defaults to 512. Needs NumPy and nothing else.
"""
import json
import os
import struct
import sys

import numpy as np


def layer(number, hidden):
    """The tensors of one decoder layer, by name: shapes [out, in]."""
    inner, kv = 4 * hidden, hidden // 4
    shapes = {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (kv, hidden), "self_attn.v_proj": (kv, hidden),
              "self_attn.o_proj": (hidden, hidden), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
              "mlp.down_proj": (hidden, inner), "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,)}
    return {f"model.layers.{number}.{name}.weight": shape for name, shape in shapes.items()}


def bfloat16(x):
    """Binary32 rounded to nearest even, as the upper 16 bits."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write(path, tensors, random):
    """One shard; returns how many bytes of data it has."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape in tensors.values():
            plain = len(shape) == 1  # a norm's weights are near 1
            values = random.standard_normal(shape)
            values = 1 + 0.01 * values if plain else values / shape[-1] ** 0.5
            file.write(bfloat16(values).tobytes())
    return at


def main():
    directory, hidden = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 512
    random = np.random.default_rng(1)
    ends = (
        {"model.embed_tokens.weight": (4096, hidden)},
        {"model.norm.weight": (hidden,), "lm_head.weight": (4096, hidden)},
    )
    os.makedirs(directory, exist_ok=True)
    index, total = {}, 0
    for shard in 0, 1:
        name = f"model-{shard + 1:05}-of-00002.safetensors"
        tensors = {**layer(shard, hidden), **ends[shard]}
        total += write(os.path.join(directory, name), tensors, random)
        index.update(dict.fromkeys(tensors, name))
    with open(os.path.join(directory, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": index}, file, indent=1)
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump({"model_type": "llama", "hidden_size": hidden, "num_hidden_layers": 2}, file, indent=1)


if __name__ == "__main__":
    main() if len(sys.argv) in (2, 3) else sys.exit(__doc__)
