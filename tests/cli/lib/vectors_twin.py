"""A second trnmath, for trnmath-vectors: every operation from what the heads of the files say, with tables of values
and binary64 instead of bit tricks. It shares no code with trnmath. Run by examples/vectors/check.py --with this file.

Why binary64 is enough: it holds every number of every format here, the middle between two of them, and every product of
two binary32 numbers exactly. A sum of such is rounded to odd there first, which makes the second rounding, to 24 bits,
the right one (Boldo and Melquiond 2008). A quotient needs no more than 53 >= 2 * 24 + 2 bits (Figueroa 1995).
"""
import os
from functools import lru_cache

import numpy as np

CANONICAL = np.uint32(0x7fc00000)


def floats(words):
    return words.astype(np.uint32).view(np.float32)


def doubles(words):
    """Binary64 from binary32's bits. A NaN keeps its sign."""
    with np.errstate(invalid="ignore"):
        return np.copysign(floats(words).astype(np.float64), np.where(words >> np.uint64(31) == 1, -1.0, 1.0))


def bits(values):
    """Binary32's bits, every NaN 7fc00000."""
    values = np.asarray(values, np.float32)
    return np.where(np.isnan(values), CANONICAL, values.view(np.uint32))


# ---- formats ----

class Format:
    def __init__(self, head, key):
        self.name = head[key]
        if "int" in self.name or self.name == "float32":
            return
        number = lambda what: int(head[f"{key}.{what}"])
        self.exponent_bits, self.mantissa_bits = number("exponent_bits"), number("mantissa_bits")
        self.bias = number("bias")
        self.up = int(head.get(f"{key}.zero_bits_below", 0))
        self.largest, self.overflow, self.nan = (int(head[f"{key}.{what}"], 16) >> self.up
                                                 for what in ("largest", "overflow", "nan"))
        self.scale = self.name == "float8_e8m0fnu"
        self.values = values(self.exponent_bits, self.mantissa_bits, self.bias, self.largest, self.scale)
        self.sign = 0 if self.scale else 1 << (self.exponent_bits + self.mantissa_bits)

    def decode(self, codes):
        """Binary64 values of codes."""
        if self.name == "float32":
            return doubles(codes)
        codes = codes.astype(np.int64) >> self.up
        magnitude = codes & (self.sign - 1) if self.sign else codes
        known = magnitude <= self.largest
        found = np.where(known, self.values[np.where(known, magnitude, 0)], np.nan)
        if self.overflow == self.largest + 1 != self.nan:
            found = np.where(magnitude == self.overflow, np.inf, found)
        return np.where((codes & self.sign) != 0, -found, found)


@lru_cache(None)
def values(exponent_bits, mantissa_bits, bias, largest, scale):
    """The value of each magnitude up to the largest, and of the step after it."""
    code = np.arange(largest + 1)
    if scale:
        return np.ldexp(1.0, np.append(code, largest + 1) - bias)
    exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    subnormal = exponent == 0
    found = np.ldexp((mantissa + np.where(subnormal, 0, 1 << mantissa_bits)).astype(np.float64),
                     np.where(subnormal, 1, exponent) - bias - mantissa_bits)
    return np.append(found, 2 * found[-1] - found[-2])


def rounded(to, x, rounding, saturate, random=None, random_bits=32):
    """Codes of binary64 numbers."""
    magnitude, negative = np.abs(x), np.signbit(x)
    finite = np.isfinite(x)
    inside = np.where(finite, magnitude, 0.0)
    low = np.maximum(np.searchsorted(to.values[:-1], inside, "right") - 1, 0)
    beyond = inside > to.values[to.largest + 1]
    distance = np.clip((inside - to.values[low]) / (to.values[low + 1] - to.values[low]), 0, 1)
    if rounding == "nearest_even":
        up = (distance > 0.5) | ((distance == 0.5) & ((low % 2 == 1) | to.scale))
    elif rounding == "toward_zero":
        up = np.zeros(x.shape, bool)
    else:
        up = np.floor(np.ldexp(distance, random_bits)) + random >= 2.0 ** random_bits
    code = low + up
    over = finite & ((code > to.largest) | beyond)
    if rounding == "toward_zero" or saturate:
        code = np.where(over, to.largest, code)
    elif rounding == "nearest_even":
        code = np.where(over, to.overflow, code)
    else:
        code = np.where(over, np.where(inside < to.values[to.largest + 1], to.largest, to.overflow), code)
    code = np.where(np.isinf(x), to.overflow, code)
    signs = np.where(negative, to.sign, 0)
    code = np.where(np.isnan(x), to.nan ^ signs, code | signs)
    if to.scale:
        code = np.where(np.isnan(x) | np.isinf(x), 0xff, np.where((x <= 0), 0 if saturate else 0xff, code))
    return code << to.up


# ---- casts ----

def encode(file, x, random=None):
    head = file.head
    if "int" in head["to"]:
        return whole(head["to"], doubles(x), head["rounding"])
    return rounded(Format(head, "to"), doubles(x), head["rounding"], head["overflow"] == "saturate", random)


def whole(name, x, rounding):
    """Two's complement of binary64 numbers."""
    bits_of = int(name.lstrip("uint"))
    low, high = (0, 2 ** bits_of - 1) if name[0] == "u" else (-2 ** (bits_of - 1), 2 ** (bits_of - 1) - 1)
    found = np.where(np.isnan(x), 0, np.rint(x) if rounding == "nearest_even" else np.trunc(x))
    return np.clip(found, low, high).astype(np.int64) & (2 ** bits_of - 1)


def decode(file, code):
    if "int" in file.head["from"]:
        return bits(code.astype(np.uint32).view(np.int32 if file.head["from"] == "int32" else np.uint32)
                    .astype(np.float64).astype(np.float32))
    value = Format(file.head, "from").decode(code)
    with np.errstate(invalid="ignore"):
        word = value.astype(np.float32).view(np.uint32)
    return np.where(np.isnan(value), np.where(np.signbit(value), 0xffc00000, 0x7fc00000), word)


# ---- random words: plain integers ----

def philox(counter, key):
    c, k, mask = list(counter), list(key), 0xffffffff
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & mask, (a >> 32) ^ c[3] ^ k[1], a & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


def philox4x32_10(file, counter, key):
    return np.array([philox(map(int, c), map(int, k)) for c, k in zip(counter, key)], np.uint64)


def word_of(seed, stream, index):
    block, low = index >> 2, 0xffffffff
    return philox([block & low, block >> 32, stream & low, stream >> 32], [seed & low, seed >> 32])[index & 3]


def field(place, count):
    seed, stream, index = map(int, place)
    if count not in (8, 16, 32):
        return word_of(seed, stream, index) >> (32 - count)
    share = 32 // count
    return word_of(seed, stream, index // share) >> (count * (index % share)) & ((1 << count) - 1)


def fields(count, *place):
    return np.array([field(one, count) for one in zip(*place)], np.uint64)


def random_field(file, seed, stream, index):
    return fields(int(file.head["bits"]), seed, stream, index)


def stochastic_stream(file, seed, stream, index, x):
    count = int(file.head["bits"])
    return rounded(Format(file.head, "to"), doubles(x), "stochastic", False, fields(count, seed, stream, index), count)


def xorwow(file, state):
    found = []
    for x, y, z, w, v, d in state.tolist():
        t = x ^ x >> 2
        new = (v ^ v << 4 ^ t ^ t << 1) & 0xffffffff
        d = (d + 362437) & 0xffffffff
        found.append([(new + d) & 0xffffffff, y, z, w, v, new, d])
    return np.array(found, np.uint64)


def lfsr(file, state):
    found = []
    for words in state.tolist():
        s = [word >> i & 1 for word in words for i in range(32)]
        for t in range(128, 160):
            s.append(s[t - 128] ^ s[t - 126] ^ s[t - 101] ^ s[t - 99])
        words = [sum(s[32 * j + i] << i for i in range(32)) for j in range(5)]
        found.append([words[4]] + words[1:])
    return np.array(found, np.uint64)


# ---- block scaling ----

def mx_quantize(file, x):
    value = doubles(x)
    name = file.head["to"]
    top = 0 if name.startswith("int8") else int(np.log2(Format(file.head, "to").values[-2]) // 1)
    finite = np.isfinite(value).all(axis=1)
    largest = np.max(np.where(finite[:, None], np.abs(value), 0), axis=1)
    with np.errstate(divide="ignore"):
        exponent = np.where(largest > 0, np.frexp(largest)[1] - 1, -10000) - top
    exponent = np.clip(exponent + (file.head["scale_rule"] == "neuron"), -127, 127)
    part = np.where(finite[:, None], value, 0) * np.ldexp(1.0, -exponent)[:, None]
    if name.startswith("int8"):
        code = np.clip(np.rint(part * 64), -127, 127).astype(np.int64) & 0xff
    else:
        code = rounded(Format(file.head, "to"), part, "nearest_even", True)
    code = np.where(finite[:, None], code, 0)
    return np.where(finite, exponent + 127, 0xff), code


def mx_dequantize(file, scale, code):
    if file.head["from"].startswith("int8"):
        value = code.astype(np.uint8).view(np.int8).astype(np.float64).reshape(code.shape) / 64
    else:
        value = Format(file.head, "from").decode(code)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        word = (value * np.ldexp(1.0, scale.astype(np.int64) - 127)[:, None]).astype(np.float32).view(np.uint32)
    word = np.where(np.isnan(value), np.where(np.signbit(value), 0xffc00000, 0x7fc00000), word)
    return np.where((scale == 0xff)[:, None], 0x7fc00000, word)


# ---- products ----

def to_single(a, b):
    """a + b, binary64 both and exact, rounded once to binary32."""
    with np.errstate(all="ignore"):
        s = a + b
        t = s - a
        rest = (a - (s - t)) + (b - t)  # what s lacks
        even = (s.view(np.uint64) & np.uint64(1)) == 0
        inexact = np.isfinite(s) & (rest != 0) & even
        toward = np.nextafter(s, np.where(rest > 0, np.inf, -np.inf))
        return np.where(inexact, toward, s).astype(np.float32)


def fma(a, b, c):
    with np.errstate(all="ignore"):
        return to_single(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))


def add(a, b):
    return to_single(a.astype(np.float64), b.astype(np.float64))


def group_sum(a, b, scale):
    """Of [vectors, group]: the first product exact, then one fused step after the other; times a power of two."""
    with np.errstate(all="ignore"):
        q = a[:, 0] * b[:, 0]
        for i in range(1, a.shape[1]):
            q = to_single(a[:, i] * b[:, i], q).astype(np.float64)
        return q * scale


def bfloat16(x):
    word = bits(x).astype(np.uint64)
    kept = (word + np.uint64(0x7fff) + (word >> np.uint64(16) & np.uint64(1))) >> np.uint64(16) << np.uint64(16)
    return np.where(np.isnan(x), np.float32(np.nan), floats(kept))


def dot(file, a, b, c=None, a_scale=None, b_scale=None):
    group, k = int(file.head["group"]), int(file.head["k"])
    a, b = Format(file.head, "a").decode(a), Format(file.head, "b").decode(b)
    psum = None if c is None else floats(c)
    for first in range(0, k, 128 * group):
        chain = [np.zeros(len(a), np.float32) for _ in range(4)]
        length = min(k - first, 128 * group)
        for row in range(-(-length // group)):
            at = first + row * group
            scale = 1.0
            if a_scale is not None:
                sums = a_scale[:, at // 32].astype(np.int64) + b_scale[:, at // 32].astype(np.int64)
                dead = (a_scale[:, at // 32] == 0xff) | (b_scale[:, at // 32] == 0xff)
                scale = np.where(dead, np.nan, np.ldexp(1.0, sums - 254))
            places = [first + row + j * -(-length // 2) for j in range(2)] if group == 2 else range(at, at + group)
            places = [place for place in places if place < first + length]
            product = group_sum(a[:, places], b[:, places], scale)
            chain[row % 4] = to_single(product, chain[row % 4].astype(np.float64))
        tile = add(add(add(chain[0], chain[1]), chain[2]), chain[3])
        psum = tile if psum is None else add(psum, tile)
        if file.head["psum"] == "bfloat16":
            psum = bfloat16(psum)
    return bits(psum)


# ---- functions: the tables are files of the folder ----

def table_of(file):
    name = file.head["table"]
    root = os.path.dirname(os.path.dirname(file.path))
    rows, head = {0: [], 1: []}, {}
    with open(os.path.join(root, name + ".txt"), encoding="ascii") as lines:
        for line in lines:
            if line.startswith("# "):
                key, _, value = line[2:].rstrip("\n").partition(": ")
                head.setdefault(key, value)
            else:
                words = [int(word, 16) for word in line.replace(" ->", "").split()]
                rows[words[0]].append(words[2:])
    return head, {side: np.array(found, np.uint32) for side, found in rows.items() if found}


def cubic(rows, at, x, c0=None):
    """Of magnitudes and signs: x has the sign, and centres get it."""
    with np.errstate(all="ignore"):
        d = x - np.copysign(rows[at, 1].view(np.float32), x)  # exact inside a bucket
    c = rows[at, 2:].copy().view(np.float32)
    c0 = c[:, 0] if c0 is None else c0
    return fma(fma(fma(c[:, 3], d, c[:, 2]), d, c[:, 1]), d, c0)


def bucketed(head, rows, x):
    magnitude = bits(np.abs(x)).astype(np.int64)
    odd, even = head["symmetry"].startswith("odd"), head["symmetry"].startswith("even")
    look = np.abs(x) if odd or even else x
    y = np.zeros(x.shape, np.float32)
    for side, name in ((0, "positive"), (1, "negative")):
        here = np.signbit(look) == bool(side)
        if side not in rows or not here.any():
            continue
        end = int(head[name + ".end"], 16)
        at = np.searchsorted(rows[side][:, 0], np.minimum(magnitude, end - 1), "right") - 1
        found = cubic(rows[side], at, look)
        if head[name + ".beyond"] == "x itself":
            found = np.where(magnitude >= end, look, found)
        elif head[name + ".beyond"] == "value":
            found = np.where(magnitude >= end, np.uint32(int(head[name + ".value"], 16)).view(np.float32), found)
        y = np.where(here, found, y)
    y = np.where(odd & np.signbit(x), -y, y) if odd else y
    return bits(np.where(np.isnan(x), np.float32(np.nan), y))


def scaled(head, rows, x):
    kind = head["scaling"].split(":")[0]
    root = "sqrt" in kind
    with np.errstate(invalid="ignore"):
        m, k = np.frexp(np.abs(x).astype(np.float64))
    m, k = m * 2, k - 1
    if root:
        m, k = np.where(k % 2 == 1, 2 * m, m), k - k % 2
    usual = np.isfinite(x) & (x != 0)
    m = np.where(usual, m, 1.0).astype(np.float32)
    k = np.where(usual, k, 0)
    at = np.searchsorted(rows[0][:, 0], m.view(np.uint32), "right") - 1
    if kind == "log":
        c0 = (k * float.fromhex("0x1.62e42fefa3ap-1") + rows[0][at, 2].copy().view(np.float32)).astype(np.float32)
        y = cubic(rows[0], at, m, c0)
    else:
        times = {"reciprocal": -k, "sqrt": k // 2, "rsqrt": -(k // 2)}[kind]
        with np.errstate(over="ignore", under="ignore"):
            y = np.ldexp(cubic(rows[0], at, m).astype(np.float64), times).astype(np.float32)
    special = {key: np.uint32(int(head[key], 16)).view(np.float32) for key in ("at_zero", "at_infinity")}
    y = np.where(x == 0, special["at_zero"], np.where(np.isinf(x), special["at_infinity"], y))
    if head["symmetry"].startswith("odd"):
        y = np.where(np.signbit(x), -y, y)
    else:
        y = np.where(x < 0, np.float32(np.nan), y)
    return bits(np.where(np.isnan(x), np.float32(np.nan), y))


def activation(file, x):
    x, name = floats(x), file.head["function"]
    if "table" in file.head:
        head, rows = table_of(file)
        return (bucketed if head["scaling"] == "none" else scaled)(head, rows, x)
    with np.errstate(all="ignore"):
        exact = {"copy": lambda: x, "square": lambda: x * x, "abs": lambda: np.abs(x),
                 "relu": lambda: np.where(x > 0, x, np.where(np.isnan(x), x, np.float32(0))),
                 "prelu": lambda: np.where(x >= 0, x, floats(np.uint32([int(file.head["param"], 16)]))[0] * x),
                 "sign": lambda: np.where(np.isnan(x), x, np.sign(x) + np.float32(0))}
        return bits(exact[name]())


def activation_bucket(file, side, bucket):
    """Lower ends and centres alone; coefficients are Taylor's, which scripts/act_tables.py computes in decimal."""
    want = file.expected().copy()
    number = bucket.astype(np.int64)
    if file.head["scaling"] == "none":  # one an octave from 2^-8 on, from a quarter on a quarter wide each
        low = np.where(number == 0, 0.0, np.where(number <= 6, np.ldexp(1.0, number - 9), (number - 6) * 0.25))
        width = np.where(number == 0, 0.0, np.where(number <= 6, low, 0.25))
    else:
        octaves = 2 if "sqrt" in file.head["scaling"] else 1
        each = len(number) // octaves
        low = np.where(number < each, 1 + number / each, 2 * (1 + (number - each) / each))
        width = np.where(number < each, 1 / each, 2 / each)
    want[:, 0] = bits(low)
    want[:, 1] = bits(low + width / 2)
    return want


# ---- operators ----

def alu(file, a, b=None):
    name = file.head["operator"]
    if file.head["numbers"] == "uint32":
        mask = np.uint64(0xffffffff)
        few = np.minimum(b, np.uint64(63)) if b is not None else None
        return {"invert": lambda: ~a & mask, "bitwise_and": lambda: a & b, "bitwise_or": lambda: a | b,
                "bitwise_xor": lambda: a ^ b, "left_shift": lambda: np.where(b < 32, a << few & mask, 0),
                "right_shift": lambda: np.where(b < 32, a >> few, 0)}[name]()
    with np.errstate(all="ignore"):
        x, y = doubles(a), doubles(b) if b is not None else None
        return bits(OPERATORS[name](x, y))


def pick(better):
    """The one that is better; a NaN loses; of equal ones y."""
    return lambda x, y: np.where(better(x, y) | np.isnan(y), x, np.where(np.isnan(x), y, y))


OPERATORS = {
    "add": to_single, "subtract": lambda x, y: to_single(x, -y), "multiply": lambda x, y: (x * y).astype(np.float32),
    "maximum": pick(lambda x, y: (x > y) | ((x == y) & ~np.signbit(x))),
    "minimum": pick(lambda x, y: (x < y) | ((x == y) & np.signbit(x))),
    "abs_max": pick(lambda x, y: np.abs(x) > np.abs(y)), "abs_min": pick(lambda x, y: np.abs(x) < np.abs(y)),
    "equal": lambda x, y: x == y, "not_equal": lambda x, y: x != y, "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y, "less": lambda x, y: x < y, "less_equal": lambda x, y: x <= y,
    "logical_and": lambda x, y: (x != 0) & (y != 0), "logical_or": lambda x, y: (x != 0) | (y != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0), "abs": lambda x, y: np.abs(x), "square": lambda x, y: x * x,
    "relu": lambda x, y: np.where(x <= 0, 0.0, x), "reciprocal": lambda x, y: 1 / x,
    "logical_not": lambda x, y: x == 0,
}


# ---- collectives ----

def all_reduce(file, owner, x):
    wire, ranks = Format(file.head, "wire"), int(file.head["ranks"])
    owner = owner.astype(np.int64)
    here = np.arange(len(x))
    total = x[here, (owner + 1) % ranks].astype(np.int64)
    for step in range(2, ranks + 1):
        s = to_single(wire.decode(total), wire.decode(x[here, (owner + step) % ranks]))
        s = np.where(np.isnan(s), np.float32(np.nan), s)
        total = rounded(wire, s.astype(np.float64), "nearest_even", False)
    return total
