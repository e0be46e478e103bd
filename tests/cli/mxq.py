# What tests/cli/mxq.sh compares: arrays, and what a twin in NumPy says of them. It knows nothing of trnmath: formats
# are lists of their values, rounding is a search in them, random bits are Philox4x32-10 written out.
# Usage: mxq.py make, in an empty directory; mxq.py check ARRAY.npy RESULT.json SR-BITS
import json, math, sys
import numpy as np

f32, f64 = np.float32, np.float64
BLOCK, SEED, STREAM = 32, 1, 2


# ---- formats: the values from 0 up, in the order of their codes ----


def floats(exponent_bits, mantissa_bits, bias, last):
    values = []
    for code in range(last + 1):
        e, m = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        fraction = m / (1 << mantissa_bits)
        values.append(fraction * 2.0 ** (1 - bias) if e == 0 else (1 + fraction) * 2.0 ** (e - bias))
    return np.array(values)


FLOAT = {
    "MXFP8 E4M3": floats(4, 3, 7, 0x7E),
    "MXFP8 E5M2": floats(5, 2, 15, 0x7B),
    "MXFP6 E2M3": floats(2, 3, 1, 31),
    "MXFP6 E3M2": floats(3, 2, 3, 31),
    "MXFP4": floats(2, 1, 1, 7),
    "MXINT8": np.arange(128) / 64,
    "FP8 E3M4": floats(3, 4, 3, 0x6F),
    "FP8 E4M3": floats(4, 3, 7, 0x77),
    "FP8 E4M3FN": floats(4, 3, 7, 0x7E),
    "FP8 E5M2": floats(5, 2, 15, 0x7B),
    "INT8": np.arange(128.0),
    "FP16": floats(5, 10, 15, 0x7BFF),
    "cFP8 E2M5 bias -1": floats(2, 5, -1, 0x5F),
}
EMAX = {"MXFP8 E4M3": 8, "MXFP8 E5M2": 15, "MXFP6 E2M3": 2, "MXFP6 E3M2": 4, "MXFP4": 2, "MXINT8": 0}
DIGITS = {"MXFP8 E4M3": 3, "MXFP8 E5M2": 2, "MXFP6 E2M3": 3, "MXFP6 E3M2": 2, "MXFP4": 1, "MXINT8": 6}


def nearest(values, v):
    size = np.abs(v).astype(f64)
    low = np.clip(np.searchsorted(values, size, side="right") - 1, 0, len(values) - 1)
    high = np.minimum(low + 1, len(values) - 1)
    below, above = size - values[low], values[high] - size
    up = (above < below) | ((above == below) & (low % 2 == 1))
    return np.copysign(values[np.where(up, high, low)], v)


# Away from zero iff floor(2^n fraction) + r >= 2^n.
def stochastic(values, v, word, bits):
    size = np.abs(v).astype(f64)
    low = np.clip(np.searchsorted(values, size, side="right") - 1, 0, len(values) - 1)
    high = np.minimum(low + 1, len(values) - 1)
    gap = np.where(high > low, values[high] - values[low], 1)
    fraction = np.clip((size - values[low]) / gap, 0, 1)
    up = np.floor(fraction * 2.0**bits) + word >= 2.0**bits
    return np.copysign(values[np.where(up, high, low)], v)


def philox(index):
    c, k = [index & 0xFFFFFFFF, index >> 32, STREAM, 0], [SEED, 0]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


# The fields of the padded tensor.
def fields(count, bits):
    words = [w for i in range((count + 3) // 4) for w in philox(i)]
    if bits in (8, 16, 32):
        share = 32 // bits
        return np.array([words[i // share] >> (bits * (i % share)) & ((1 << bits) - 1) for i in range(count)], f64)
    return np.array([w >> (32 - bits) for w in words[:count]], f64)


# ---- ways ----


def padded(x):
    return np.pad(x, ((0, 0), (0, -x.shape[1] % BLOCK)))


def mx_scale(name, rule, amax):
    if amax == 0:
        return 2.0**-127
    power = math.frexp(float(amax))[1] - 1  # floor(log2 amax)
    if rule == "ROUND_UP":
        largest = FLOAT[name][-1]
        e = math.ceil(math.log2(float(amax) / largest)) - 2
        while float(amax) / 2.0**e > largest:
            e += 1
    elif rule == "CEIL":
        e = power - EMAX[name] + (float(amax) > 2.0**power)
    elif rule == "EVEN":
        grid = 2.0 ** (power - DIGITS[name])
        e = math.frexp(round(float(amax) / grid) * grid)[1] - 1 - EMAX[name]
    else:
        e = power - EMAX[name] + (rule == "NEURON")
    return 2.0 ** min(max(e, -127), 127)


def scales(name, scale, x):
    p = padded(x)
    s = np.ones(p.shape)
    largest = f32(FLOAT[name][-1])
    if name in EMAX:
        amax = np.abs(p).reshape(len(p), -1, BLOCK).max(axis=2)
        s = np.repeat(np.vectorize(lambda a: mx_scale(name, scale, a))(amax), BLOCK, axis=1)
    elif scale == "tensor":
        s[:] = f32(np.abs(p).max()) / largest
    elif scale == "channel":
        row = np.abs(p).max(axis=1).astype(f32) / largest
        s[:] = np.where(row > 0, row, 1)[:, None]
    elif scale == "128x128":
        for r in range(0, p.shape[0], 128):
            for c in range(0, p.shape[1], 128):
                part = np.abs(p[r : r + 128, c : c + 128]).max()
                s[r : r + 128, c : c + 128] = f32(part) / largest if part > 0 else 1
    return s


def expected(x, row, sr_bits):
    name, scale, values = row["format"], row["scale"], FLOAT[row["format"]]
    s = scales(name, scale, x)
    v = (padded(x) / s.astype(f32)).astype(f32) if name not in EMAX else padded(x).astype(f64) / s
    if row["rounding"] == "SR":
        word = fields(v.size, sr_bits).reshape(v.shape)
        q = stochastic(values, v, word, sr_bits)
    else:
        q = nearest(values, v)
    y = (q.astype(f32) * s.astype(f32)).astype(f32) if name not in EMAX else q * s
    keep = np.arange(v.shape[1]) < x.shape[1]
    y, s, x64 = y[:, keep].astype(f64), s[:, keep], x.astype(f64)
    error, some = np.abs(y - x64), x64 != 0
    noise = (error**2).sum()
    relative = error[some] / np.abs(x64[some])
    bits = {"FP16": 16, "MXFP6 E2M3": 6, "MXFP6 E3M2": 6, "MXFP4": 4}.get(name, 8)
    if name in EMAX:
        bits += 8 * -(-x.shape[1] // BLOCK) / x.shape[1]
    count = {"tensor": 1, "channel": x.shape[0], "128x128": -(-x.shape[0] // 128) * -(-x.shape[1] // 128)}
    bits += 32 * count.get(scale, 0) / x.size
    return {
        "bits": bits,
        "sqnr_db": None if noise == 0 else 10 * math.log10((x64**2).sum() / noise),
        "mean_relative": relative.mean(),
        "max_relative": relative.max(),
        "max_absolute": error.max(),
        "to_zero": ((y == 0) & some).sum() / some.sum(),
        "saturated": (np.abs(x64) > values[-1] * s * (1 + 2.0**-20)).sum() / x.size,
    }


# ---- the test ----


def make():
    rng = np.random.default_rng(5)
    normal = rng.standard_normal((70, 200)).astype(f32)
    wild = (rng.standard_t(3, (140, 130)) * np.exp(rng.normal(0, 4, (140, 1)))).astype(f32)
    wild[3] = 0
    wild[5, :64] = 0
    ties = (rng.integers(-512, 513, (64, 64)) / 64).astype(f32)
    np.save("normal.npy", normal)
    np.save("wild.npy", wild)
    np.save("ties.npy", ties)
    np.save("columns.npy", np.asfortranarray(normal))
    np.save("half.npy", normal.astype(np.float16))
    np.save("double.npy", normal.astype(f64))
    np.savez_compressed("several.npz", normal=normal, wild=wild, steps=np.arange(5))
    holes = normal.copy()
    holes[0, 0], holes[1, 1] = np.nan, np.inf
    np.save("holes.npy", holes)
    holes[~np.isfinite(holes)] = 0
    np.save("filled.npy", holes)
    np.save("empty.npy", np.zeros((0, 32), f32))
    np.save("zeros.npy", np.zeros((3, 5), f32))
    np.save("scalar.npy", f32(3))
    np.save("huge.npy", np.full((2, 32), 3.4e38, f32))
    np.save("tiny.npy", (normal * 1e-41).astype(f32))
    np.save("codes.npy", np.arange(64, dtype=np.uint8))
    np.save("text.npy", np.array(["a", "b"]))


def check(array, result, sr_bits):
    x = np.load(array)
    bad = checked = 0
    for row in json.load(open(result))["rows"]:
        for key, want in expected(x, row, sr_bits).items():
            got, checked = row[key], checked + 1
            close = got is None if want is None else got is not None and abs(got - want) <= 1e-9 + 2e-5 * abs(want)
            if not close:
                bad += 1
                print(array, row["format"], row["scale"], row["rounding"], key, "is", got, "expected", want)
    sys.exit(bad > 0 or checked < 7)


if sys.argv[1] == "make":
    make()
else:
    check(sys.argv[2], sys.argv[3], int(sys.argv[4]))
