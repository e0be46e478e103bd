# What the models of modelrun.py and modelrun_more.py are made of, with NumPy alone: files, weights that are rounded
# when they are made, norms, functions, frequencies of positions. Shares no code with the program.
import json
import math

import numpy as np

VOCAB, TOKENS = 97, 24
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)

# ---- files ----


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(code):
    return (code.astype(np.uint32) << 16).view(np.float32)


def e4m3_values():
    code = np.arange(256)
    sign, exponent, fraction = code >> 7, (code >> 3) & 15, code & 7
    value = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    value = np.where((code & 127) == 127, np.nan, value)
    return np.where(sign, -value, value)


E4M3 = e4m3_values()
KEPT = np.where(np.abs(E4M3) <= 240, E4M3, np.nan)  # what a cache of FP8 holds
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def nearest(table, x):
    order = np.argsort(np.where(np.isnan(table), np.inf, table), kind="stable")
    sorted_values = table[order]
    n = int(np.sum(~np.isnan(table)))
    at = np.clip(np.searchsorted(sorted_values[:n], x), 1, n - 1)
    lower = np.abs(x - sorted_values[at - 1]) <= np.abs(sorted_values[at] - x)
    return order[np.where(lower, at - 1, at)].astype(np.uint8)


def save(path, tensors):
    header, at, data = {"__metadata__": {"format": "pt"}}, 0, []
    for name, (kind, array) in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(data))


# ---- a model: numbers are rounded to the file's type when they are made, and kept as float64 beside it ----


class Weights:
    def __init__(self, seed, kind):
        self.random = np.random.default_rng(seed)
        self.kind = kind
        self.file, self.value = {}, {}

    def put(self, name, x):
        if self.kind == "BF16":
            code = bf16(x)
            self.file[name] = ("BF16", code)
            x = from_bf16(code)
        elif self.kind == "F16":
            x = x.astype(np.float16)
            self.file[name] = ("F16", x)
        else:
            x = x.astype(np.float32)
            self.file[name] = ("F32", x)
        self.value[name] = x.astype(np.float64)

    def matrix(self, name, *shape, scale=None):
        scale = scale or 1.5 / math.sqrt(shape[-1])
        self.put(name, self.random.standard_normal(shape) * scale)

    def vector(self, name, n, mean=0.0, scale=0.3):
        self.put(name, mean + self.random.standard_normal(n) * scale)

    def fp8(self, name, rows, columns, grain):
        x = self.random.standard_normal((rows, columns)) * 1.5 / math.sqrt(columns)
        block = {"tensor": (rows, columns), "channel": (1, columns), "block": (128, 128)}[grain]
        up = [-(-n // b) for n, b in zip((rows, columns), block)]
        scale, code = np.zeros(up, np.float32), np.zeros((rows, columns), np.uint8)
        for i in range(up[0]):
            for j in range(up[1]):
                part = np.s_[i * block[0] : (i + 1) * block[0], j * block[1] : (j + 1) * block[1]]
                scale[i, j] = np.abs(x[part]).max() / 448
                code[part] = nearest(E4M3, x[part] / scale[i, j])
        full = np.repeat(np.repeat(scale, block[0], 0)[:rows], block[1], 1)[:, :columns]
        self.file[name + ".weight"] = ("F8_E4M3", code)
        kept = scale.reshape(()) if grain == "tensor" else scale
        self.file[name + (".weight_scale_inv" if grain == "block" else ".weight_scale")] = ("F32", kept)
        self.value[name + ".weight"] = (E4M3[code].astype(np.float32) * full).astype(np.float64)

    def mxfp4(self, name, experts, rows, columns):
        code = self.random.integers(0, 16, (experts, rows, columns)).astype(np.uint8)
        scale = self.random.integers(121, 125, (experts, rows, columns // 32)).astype(np.uint8)
        self.file[name + "_blocks"] = ("U8", (code[..., 0::2] | code[..., 1::2] << 4).reshape(
            experts, rows, columns // 32, 16))
        self.file[name + "_scales"] = ("U8", scale)
        full = E2M1[code] * 2.0 ** (np.repeat(scale.astype(np.float64), 32, -1) - 127)
        self.value[name] = np.swapaxes(full, 1, 2)  # [experts, in, out], as the plain form has it


# ---- the parts of a decoder ----


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ACT = {
    "silu": lambda x: x * sigmoid(x),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
}


def frequencies(c, n):
    rope = c.get("rope_parameters") or c.get("rope_scaling") or {}
    theta = rope.get("rope_theta", c.get("rope_theta", 10000.0))
    f = theta ** -(np.arange(0, n, 2) / n)
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "linear":
        return f / rope["factor"], 1.0
    if kind == "llama3":
        length, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
        wave = 2 * math.pi / f
        mix = (length / wave - low) / (high - low or 1)  # where they are equal, nothing is between
        between = (1 - mix) * f / rope["factor"] + mix * f
        return np.where(wave > length / low, f / rope["factor"], np.where(wave < length / high, f, between)), 1.0
    if kind == "yarn":
        length = rope.get("original_max_position_embeddings") or c["max_position_embeddings"]
        where = lambda turns: n * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(theta))
        low, high = where(rope.get("beta_fast") or 32), where(rope.get("beta_slow") or 1)
        if rope.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, n - 1)
        ramp = np.clip((np.arange(n // 2) - low) / ((high - low) or 0.001), 0, 1)
        scale = lambda m: 0.1 * m * math.log(rope["factor"]) + 1
        attention = rope.get("attention_factor")
        if attention is None:
            m, all_dim = rope.get("mscale"), rope.get("mscale_all_dim")
            attention = scale(m) / scale(all_dim) if m and all_dim else scale(1)
        return f / rope["factor"] * ramp + f * (1 - ramp), attention
    return f, 1.0


def kept(c, x):
    """What a cache gives back of x: with kv_fp8 the nearest number of FP8."""
    return KEPT[nearest(KEPT, x)] if c.get("kv_fp8") else x
