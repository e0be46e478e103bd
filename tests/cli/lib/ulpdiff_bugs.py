# Planted bugs and honest roundings, and what ulpdiff says of each: a table of who was taken for what. NumPy makes them;
# nothing here knows of trnmath.
# Usage: ulpdiff_bugs.py PROGRAM [all] [show], in an empty directory. Without `all`, every few of the cases.
import json, re, subprocess, sys
import numpy as np

f32, u32 = np.float32, np.uint32


def bf16(x):
    u = np.asarray(x, f32).view(u32).astype(np.uint64)
    return ((u + 0x7FFF + (u >> 16 & 1)) & 0xFFFF0000).astype(u32).view(f32)


def fp8(x, mantissa, low, top):
    """nearest even, saturating: the plain definition"""
    x = np.asarray(x, np.float64)
    e = np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 2.0**-60))), low)
    step = np.exp2(e - mantissa)
    return np.clip(np.round(x / step) * step, -top, top).astype(f32)


e4m3 = lambda x: fp8(x, 3, -6, 448)
e5m2 = lambda x: fp8(x, 2, -14, 57344)
f16 = lambda x: np.asarray(x, np.float16).astype(f32)
cut = lambda x: (np.asarray(x, f32).view(u32) & u32(0xFFFF0000)).view(f32)


def stochastic(x, r):
    u = np.asarray(x, f32).view(u32).astype(np.uint64)
    return ((u + r.integers(0, 65536, u.shape).astype(np.uint64)) & 0xFFFF0000).astype(u32).view(f32)


def f32_chain(x, w, every=lambda v: v):
    s = np.zeros((x.shape[0], w.shape[1]), f32)
    for k in range(x.shape[1]):
        s = every(s + x[:, k:k + 1] * w[k:k + 1])
    return s


def product(x, w):
    with np.errstate(invalid="ignore"):  # some NumPy warn without a reason
        return (x.astype(np.float64) @ w.astype(np.float64)).astype(f32)


def perm(a, axis, index):
    return np.take(a, index, axis)


# ---- bugs: name, what is said of it, and B of x, w, the product and a generator. `needs`: what shapes it asks for ----

bugs, roundings = [], []


def bug(name, says, make, operands=False, fits=lambda m, n, k: True):
    bugs.append((name, says, make, operands, fits))


def even(*which):
    return lambda m, n, k: all(dict(m=m, n=n, k=k)[c] % d == 0 and dict(m=m, n=n, k=k)[c] > d for c, d in which)


square = lambda m, n, k: m == n
ar = np.arange
bug("b transposed", r"operand b is transposed", lambda x, w, y, r: product(x, w.T), True, lambda m, n, k: n == k)
bug("a transposed", r"operand a is transposed", lambda x, w, y, r: product(x.T, w), True, lambda m, n, k: m == k)
bug("both transposed", r"both operands are transposed", lambda x, w, y, r: product(x.T, w.T), True,
    lambda m, n, k: m == n == k)
bug("b misread", r"operand b is transposed", lambda x, w, y, r: product(x, w.T.reshape(w.shape)), True,
    lambda m, n, k: n != k)
bug("a misread", r"operand a is transposed", lambda x, w, y, r: product(x.T.reshape(x.shape), w), True,
    lambda m, n, k: m != k)
bug("output transposed", r"output is transposed", lambda x, w, y, r: y.T.copy(), False, square)
bug("output transposed, its shape kept", r"transposed, written in A's shape|output is transposed",
    lambda x, w, y, r: y.T.reshape(y.shape))
bug("output column by column", r"read column by column", lambda x, w, y, r: y.reshape(y.shape[::-1]).T.copy(), False,
    lambda m, n, k: m != n)
bug("tiles transposed", r"each tile of 16 x 16 is transposed",
    lambda x, w, y, r: y.reshape(y.shape[0] // 16, 16, y.shape[1] // 16, 16).transpose(0, 3, 2, 1).reshape(y.shape),
    False, even(("m", 16), ("n", 16)))
bug("heads first", r"axes are interchanged",
    lambda x, w, y, r: y.reshape(y.shape[0], -1, 16).transpose(1, 0, 2).reshape(y.shape), False, even(("n", 16)))
bug("half turn", r"180 degrees", lambda x, w, y, r: y[::-1, ::-1].copy())
bug("rows rolled by 1", r"rows are rolled by 1\b", lambda x, w, y, r: np.roll(y, 1, 0))
bug("rows rolled by -1", r"rows are rolled by -1\b", lambda x, w, y, r: np.roll(y, -1, 0))
bug("columns rolled by 3", r"columns are rolled by 3\b", lambda x, w, y, r: np.roll(y, 3, 1))
bug("rows shifted, the first zero", r"rows are rolled by 1\b.*row 0 holds zeros",
    lambda x, w, y, r: np.concatenate([np.zeros_like(y[:1]), y[:-1]]))
bug("rows shifted, the last repeated", r"rows are shifted by -1|row.* repeat",
    lambda x, w, y, r: np.concatenate([y[1:], y[-1:]]))
bug("columns swapped", r"columns 2i and 2i\+1 are swapped", lambda x, w, y, r: perm(y, 1, ar(y.shape[1]) ^ 1), False,
    even(("n", 2)))
bug("rows swapped", r"rows 2i and 2i\+1 are swapped", lambda x, w, y, r: perm(y, 0, ar(y.shape[0]) ^ 1), False,
    even(("m", 4)))
bug("two rows swapped", r"rows 1 and 3 are swapped",
    lambda x, w, y, r: perm(y, 0, [0, 3, 2, 1] + list(range(4, y.shape[0]))))
bug("blocks of columns interchanged", r"neighbouring blocks of 16 columns",
    lambda x, w, y, r: perm(y, 1, ar(y.shape[1]) ^ 16), False, even(("n", 64)))
bug("halves interchanged", r"halves of the columns are interchanged",
    lambda x, w, y, r: np.roll(y, y.shape[1] // 2, 1), False, even(("n", 2)))
bug("two heads interchanged", r"columns 0 to 15 and 32 to 47 are interchanged",
    lambda x, w, y, r: np.concatenate([y[:, 32:48], y[:, 16:32], y[:, :16], y[:, 48:]], 1), False, even(("n", 64)))
bug("columns reversed", r"columns are reversed", lambda x, w, y, r: y[:, ::-1].copy())
bug("rows reversed", r"rows are reversed", lambda x, w, y, r: y[::-1].copy())
bug("interleaved", r"halves of the columns are interleaved",
    lambda x, w, y, r: y.reshape(y.shape[0], 2, -1).transpose(0, 2, 1).reshape(y.shape), False, even(("n", 4)))
bug("taken apart, in heads", r"even and odd columns are taken apart in each block of 16",
    lambda x, w, y, r: y.reshape(y.shape[0], -1, 8, 2).transpose(0, 1, 3, 2).reshape(y.shape), False, even(("n", 64)))
bug("rows permuted", r"rows are permuted", lambda x, w, y, r: perm(y, 0, r.permutation(y.shape[0])), False,
    lambda m, n, k: m >= 16 and n >= 16)
bug("columns permuted", r"columns are permuted", lambda x, w, y, r: perm(y, 1, r.permutation(y.shape[1])), False,
    lambda m, n, k: n >= 16 and m >= 16)
bug("first half of K missing", r"part of K is missing: places 0 to \d+ .*half of K",
    lambda x, w, y, r: product(x[:, x.shape[1] // 2:], w[x.shape[1] // 2:]), True, even(("k", 2)))
bug("a K tile missing", r"part of K is missing: places 32 to 63 ",
    lambda x, w, y, r: y - product(x[:, 32:64], w[32:64]), True, even(("k", 64)))
bug("the last K missing", r"part of K is missing: place \d+ ", lambda x, w, y, r: product(x[:, :-1], w[:-1]), True)
bug("every other K missing", r"part of K is missing: every other", lambda x, w, y, r: product(x[:, ::2], w[::2]), True,
    lambda m, n, k: m * n >= 3 * k)
bug("a K tile twice", r"part of K is added twice: places 32 to 63 ",
    lambda x, w, y, r: y + product(x[:, 32:64], w[32:64]), True, even(("k", 64)))
bug("a K tile negative", r"part of K counts -1", lambda x, w, y, r: y - 2 * product(x[:, 32:64], w[32:64]), True,
    lambda m, n, k: k % 64 == 0 and k > 64 and m * n >= 3 * k)
bug("K out of step", r"out of step along K.*rolled by 1\b", lambda x, w, y, r: product(x, np.roll(w, 1, 0)), True)
bug("K tiles swapped", r"out of step along K.*blocks of 32", lambda x, w, y, r: product(x, w[ar(len(w)) ^ 32]), True,
    even(("k", 128)))
bug("K reversed", r"out of step along K.*reversed", lambda x, w, y, r: product(x, w[::-1]), True)
bug("a scale along K", r"each k of the sum has a factor",
    lambda x, w, y, r: product(x, w * r.uniform(0.5, 2, (len(w), 1)).astype(f32)), True,
    lambda m, n, k: m * n >= 4 * k)
for value, text in ((2, "2"), (0.5, "1/2"), (np.sqrt(128), r"sqrt\(128\)"), (1 / 8, "1/8"), (448 / 240, "448/240"),
                    (240 / 448, "240/448"), (-1, r"-1 \(the sign\)"), (1.0712, "1.0712")):
    bug(f"factor {text}", f"B is A times {text}" if text != "1.0712" else r"B is A times 1\.07", lambda x, w, y, r, v=value: y * f32(v))
bug("factors of rows", r"each row of B is A's times a factor",
    lambda x, w, y, r: y * r.uniform(0.5, 2, (len(y), 1)).astype(f32))
bug("factors of columns", r"each column of B is A's times a factor",
    lambda x, w, y, r: y * r.uniform(0.5, 2, y.shape[1]).astype(f32), False, lambda m, n, k: m >= 2)
bug("some rows doubled", r"rows 2 to 3: B is A times 2",
    lambda x, w, y, r: np.where((ar(len(y))[:, None] | 1) == 3, 2 * y, y))
bug("bias", r"B is A plus 0\.7[45]", lambda x, w, y, r: y + f32(0.75))
bug("bias of columns", r"a bias per column", lambda x, w, y, r: y + r.standard_normal(y.shape[1], f32), False,
    lambda m, n, k: m >= 2)
bug("bias of rows", r"a bias per row", lambda x, w, y, r: y + r.standard_normal((len(y), 1), f32))
bug("last rows zero", r"rows \d+ to \d+ hold zeros", lambda x, w, y, r: np.where(ar(len(y))[:, None] >= len(y) - 3, 0, y))
bug("last columns zero", r"columns \d+ to \d+ hold zeros",
    lambda x, w, y, r: np.where(ar(y.shape[1]) >= y.shape[1] * 3 // 4, 0, y))
bug("every other row zero", r"every other row, from row 1 on hold",
    lambda x, w, y, r: np.where(ar(len(y))[:, None] % 2 == 1, 0, y))
bug("a box of zeros", r"rows 1 to 2, columns 2 to 9 hold zeros",
    lambda x, w, y, r: np.where((ar(len(y))[:, None] // 1 - 1 < 2) & (ar(len(y))[:, None] > 0) & (ar(y.shape[1]) > 1) &
                                (ar(y.shape[1]) < 10), 0, y))
bug("rows repeat others", r"rows \d+ to \d+ repeat rows 0 to",
    lambda x, w, y, r: np.concatenate([y[:-4], y[:4]]), False, lambda m, n, k: m >= 8)
bug("all rows the first", r"all rows.* repeat row 0", lambda x, w, y, r: np.repeat(y[:1], len(y), 0))
bug("a stale tile", r"stale tile|repeat",
    lambda x, w, y, r: np.block([[y[:8, :8], y[:8, 8:]], [y[8:, :-8], np.concatenate([y[8:-8, -8:], y[:8, :8]])]]), False,
    lambda m, n, k: m >= 32 and n >= 32)
bug("old output added", r"old output was added",
    lambda x, w, y, r: y + np.where(ar(len(y))[:, None] >= len(y) // 2, np.roll(y, len(y) // 2, 0), 0), False, even(("m", 4)))
bug("NaN rows", r"NaN in B alone: rows 1 to 2", lambda x, w, y, r: np.where((ar(len(y))[:, None] + 1) // 2 == 1, np.nan, y))
bug("NaN box", r"NaN in B alone: rows 2 to 3, columns 1 to 4",
    lambda x, w, y, r: np.where((ar(len(y))[:, None] // 2 == 1) & (ar(y.shape[1]) > 0) & (ar(y.shape[1]) < 5), np.nan, y))
bug("NaN columns", r"NaN in B alone: columns 1 to 2", lambda x, w, y, r: np.where((ar(y.shape[1]) + 1) // 2 == 1, np.nan, y))
bug("one element", r"one element differs|element|row 1, column 2", lambda x, w, y, r: np.where(
    (ar(len(y))[:, None] == 1) & (ar(y.shape[1]) == 2), y * 8 + 5, y))
bug("saturated", r"saturated at", lambda x, w, y, r: np.clip(y, -np.quantile(np.abs(y), 0.8), np.quantile(np.abs(y), 0.8)))
bug("relu left on", r"B is relu of A", lambda x, w, y, r: np.maximum(y, 0))
bug("sign lost", r"B is the absolute value", lambda x, w, y, r: np.abs(y))
bug("gelu twice", r"B is (gelu|silu)", lambda x, w, y, r: (y / (1 + np.exp(-y.astype(np.float64)))).astype(f32))


# ---- normalisations and masks: A and B of x alone ----

def normed(x, eps, gain, bias=0, centre=False):
    x = x.astype(np.float64)
    c = x - x.mean(1, keepdims=True) if centre else x
    return (c / np.sqrt((c * c).mean(1, keepdims=True) + eps) * gain + bias).astype(f32)


def weights(m, k, shift, length=None):
    s = np.random.default_rng(m + k).standard_normal((m, k))
    s = np.where(ar(k) <= ar(m)[:, None] + shift if length is None else ar(k) < length, s, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(s - np.max(s, 1, keepdims=True))
        return np.nan_to_num(e / e.sum(1, keepdims=True)).astype(f32)


def scores(m, shift, hidden):
    s = np.random.default_rng(m).standard_normal((m, m))
    return np.where(ar(m) <= ar(m)[:, None] + shift, s, hidden).astype(f32)


def pairs(r):
    x = r.standard_normal((96, 256)) * np.exp2(r.uniform(-6, 2, (96, 1)))
    g, b = 1 + 0.3 * r.standard_normal(256), r.standard_normal(256)
    for e1, e2 in ((1e-6, 1e-5), (1e-5, 1e-6), (1e-5, 1e-3)):
        yield f"rmsnorm eps {e1} {e2}", "epsilon", normed(x, e1, g), normed(x, e2, g)
        yield f"layernorm eps {e1} {e2}", "epsilon", normed(x, e1, g, 0, True), normed(x, e2, g, 0, True)
        yield f"layernorm with bias, eps {e1} {e2}", "epsilon", normed(x, e1, g, b, True), normed(x, e2, g, b, True)
    yield "layernorm without its mean", "bias|factor|larger than rounding|rank", normed(x + 1, 1e-5, g, b, True), normed(x + 1, 1e-5, g, b)
    yield "mask later by one", "mask .*off by 1", weights(64, 64, 0), weights(64, 64, 1)
    yield "mask earlier by one", "mask .*off by 1", weights(64, 64, 0), weights(64, 64, -1)
    yield "mask left out", "mask .*left out in B", weights(64, 64, 0), weights(64, 64, 64)
    yield "padding off by one", "mask .*off by 1", weights(64, 64, 0, 50), weights(64, 64, 0, 51)
    for hidden in (-np.inf, -1e9, -10000):
        yield f"scores {hidden}", "mask .*off by 1", scores(48, 0, hidden), scores(48, 1, hidden)
    v = r.standard_normal(4096).astype(f32)
    yield "vector rolled", "rolled by 1", v, np.roll(v, 1)
    yield "vector swapped", r"2i and 2i\+1", v, v[ar(4096) ^ 1]
    yield "vector's end zero", "elements 4000 to 4095 hold zeros", v, np.where(ar(4096) >= 4000, 0, v)
    yield "vector doubled", "times 2", v, 2 * v
    big = (1000 * r.standard_normal((64, 64))).astype(f32)
    with np.errstate(over="ignore"):
        yield "overflow 240", "NaN stands in B where.*overflows", big, np.where(np.abs(big) > 240, np.nan, big)
    yield "saturated 240", "saturated at -240 and 240", big, np.clip(big, -240, 240)
    yield "saturated 448", "saturated at -448 and 448", big, np.clip(big, -448, 448)
    t = r.standard_normal((4, 32, 48)).astype(f32)
    yield "batch order", r"rolled by 32|blocks of 32", t, np.roll(t, 1, 0)
    b = r.standard_normal((256, 384)).astype(f32)
    yield "scales of blocks", "each block of 128 x 128", b, b * np.kron(r.uniform(0.5, 2, (2, 3)), np.ones((128, 128)))
    yield "scales of groups", "each block of 1 x 32", b, b * np.kron(r.uniform(0.5, 2, (256, 12)), np.ones((1, 32)))
    l = r.standard_normal((32, 48))
    soft = lambda v: (np.exp(v) / np.exp(v).sum(1, keepdims=True)).astype(f32)
    yield "scores not scaled", r"softmax of scores that are 1/sqrt\(128\)|softmax of scores that are 8", soft(l / 8), soft(l)
    yield "dropped", "scattered, are 0", b, np.where(r.random(b.shape) < 0.1, 0, b / 0.9)
    yield "sign of half", "columns 192 to 383: B is A times -1", b, np.where(ar(384) >= 192, -b, b)
    yield "constant doubled", r"times 2", np.full((16, 16), 3, f32), np.full((16, 16), 6, f32)
    yield "zeros", "all zeros|hold zeros", v, 0 * v


# ---- roundings: B of x, w and y ----

def rounding(name, make, operands=True):
    roundings.append((name, make, operands))


rounding("bf16 output", lambda x, w, y, r: bf16(y))
rounding("f16 output", lambda x, w, y, r: f16(y))
rounding("e4m3 output", lambda x, w, y, r: e4m3(y))
rounding("e5m2 output", lambda x, w, y, r: e5m2(y))
rounding("bf16 output, cut", lambda x, w, y, r: cut(y))
rounding("bf16 output, stochastic", lambda x, w, y, r: stochastic(y, r))
rounding("bf16 inputs", lambda x, w, y, r: product(bf16(x), bf16(w)))
rounding("bf16 input a", lambda x, w, y, r: product(bf16(x), w))
rounding("bf16 inputs and output", lambda x, w, y, r: bf16(product(bf16(x), bf16(w))))
rounding("bf16 inputs, cut", lambda x, w, y, r: product(cut(x), cut(w)))
rounding("f16 inputs", lambda x, w, y, r: product(f16(x), f16(w)))
rounding("e4m3 inputs", lambda x, w, y, r: product(e4m3(x), e4m3(w)))
rounding("e5m2 inputs", lambda x, w, y, r: product(e5m2(x), e5m2(w)))
rounding("e4m3 weights, scaled by columns", lambda x, w, y, r: product(
    x, e4m3(w / np.abs(w).max(0) * 240) * np.abs(w).max(0) / 240))
rounding("int8 weights, scaled by columns", lambda x, w, y, r: product(
    x, np.round(w / np.abs(w).max(0) * 127) * np.abs(w).max(0) / 127))
rounding("another order", lambda x, w, y, r: (x[:, ::-1] @ w[::-1]).astype(f32))
rounding("one chain", lambda x, w, y, r: f32_chain(x, w))
rounding("bf16 sums", lambda x, w, y, r: f32_chain(x, w, bf16))
rounding("bf16 products", lambda x, w, y, r: sum(bf16(x[:, k:k + 1] * w[k:k + 1]) for k in range(x.shape[1])))
rounding("stochastic sums", lambda x, w, y, r: f32_chain(x, w, lambda v: stochastic(v, r)))
rounding("the same", lambda x, w, y, r: y.copy())


def data(kind, m, n, k, r):
    x, w = r.standard_normal((m, k), f32), r.standard_normal((k, n), f32)
    if kind == "uniform":
        x, w = r.random((m, k), f32), r.random((k, n), f32)
    elif kind == "relu":
        x = np.maximum(x, 0)
    elif kind == "tiny":
        x, w = x * f32(1e-12), w * f32(1e-12)
    elif kind == "wide":
        x, w = x * np.exp2(r.uniform(-20, 20, (m, 1))).astype(f32), w * np.exp2(r.uniform(-20, 20, n)).astype(f32)
    elif kind == "sparse":
        x = np.where(r.random((m, k)) < 0.1, x, 0).astype(f32)
    elif kind == "near":
        x, w = 1 + x / 64, 1 + w / 64
    return x.astype(f32), w.astype(f32)


quick = [(96, 64, 192), (16, 48, 96), (32, 512, 64), (64, 64, 64)]  # level 1
shapes = [(128, 256, 256), (128, 128, 128), (96, 64, 192), (32, 512, 64), (64, 64, 1024), (16, 48, 96)]
small = [(1, 64, 64), (4, 4, 256), (2, 2, 8), (1, 1, 128), (8, 1, 64), (3, 5, 7)]
kinds = ["normal", "uniform", "relu", "tiny", "wide", "sparse", "near"]


def save(name, value, kind):
    value = np.ascontiguousarray(value)
    if kind == "bf16":  # the codes, as those who have no such type in NumPy write them
        np.save(name, (bf16(value).view(u32) >> 16).astype(np.uint16))
    else:
        np.save(name, value.astype({"f32": f32, "f16": np.float16, "f64": np.float64}[kind]))


def ask(program, a, b, form, operands):
    save("a.npy", a, "f32")
    save("b.npy", b, form)
    command = [program, "a.npy", "b.npy", "--no-map", "--top", "0", "--json", "out.json"]
    command += ["--dtype-b", "bfloat16"] if form == "bf16" else []
    command += ["--a", "x.npy", "--b", "w.npy"] if operands else []
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode == 2:
        return "refused", run.stderr.strip(), 2
    v = json.load(open("out.json"))["details"][0]["verdict"]
    return v["kind"], "; ".join(v["findings"]) + "".join("; or: " + t for t in v["ties"]), run.returncode


class Table:
    def __init__(self, show):
        self.count, self.wrong, self.show = {}, [], show

    def add(self, truth, title, answer, says):
        kind, text, status = answer
        named = "named" if truth == "bug" and kind == "bug" and re.search(says, text, re.S) else kind
        self.count[truth, named] = self.count.get((truth, named), 0) + 1
        good = named in (("named",) if truth == "bug" else ("rounding", "same"))
        if not good or status != (truth == "bug"):
            self.wrong.append(f"{truth} {title}: {kind}, status {status}: {text[:230]}")
        if self.show:
            print(f"{truth:9} {title}: {named}: {text[:150]}")


def tame(y, form):
    return form != "f16" or (np.abs(y).max() < 60000 and np.abs(y).mean() > 1e-3)


# Those that were reported once: always tried.
always = {"b transposed", "rows rolled by 1", "columns swapped", "first half of K missing", "a K tile twice", "factor 2",
          "bias of columns", "last rows zero"}


def run_bugs(program, table, every, forms, seed):
    number, everything, tried = 0, every < 10, set()
    for name, says, make, operands, fits in bugs:
        for i, (m, n, k) in enumerate(shapes if everything else quick):
            if not fits(m, n, k):
                continue
            for f, form in enumerate(forms):
                number += 1
                if number % every and (name not in always or name in tried):
                    continue
                tried.add(name)
                kind = ["normal", "relu", "normal", "wide", "sparse", "uniform"][i] if every == 1 else "normal"
                r = np.random.default_rng([seed, number])
                x, w = data(kind if not name.startswith(("bias", "gelu", "sat")) else "normal", m, n, k, r)
                save("x.npy", x, "f32")
                save("w.npy", w, "f32")
                y = product(x, w)
                b = make(x, w, y, r)
                if tame(b, form):
                    table.add("bug", f"{name} {m}x{n}x{k} {form} {kind}", ask(program, y, b, form, operands or
                              (everything and number % 2)), says)


def run_pairs(program, table, every, seed):
    r = np.random.default_rng(seed)
    for i, (name, says, a, b) in enumerate(pairs(r)):
        if i % every == 0:
            table.add("bug", name, ask(program, a, b, "f32", False), says)


def run_roundings(program, table, every, seed):
    number = 0
    for name, make, operands in roundings:
        for m, n, k in shapes + small:
            for kind in kinds:
                number += 1
                if number % every or (every > 10 and k > 256):
                    continue
                r = np.random.default_rng([seed, 7, number])
                x, w = data(kind, m, n, k, r)
                save("x.npy", x, "f32")
                save("w.npy", w, "f32")
                y = product(x, w)
                with np.errstate(over="ignore", under="ignore"):
                    b = make(x, w, y, r)
                if name == "bf16 sums" and kind in ("near", "uniform") and number // every % 2:
                    continue  # such sums stop growing: without the operands, a factor
                if not np.all(np.isfinite(b)) or (name.startswith(("e4", "e5", "f16")) and kind in ("tiny", "wide", "near")):
                    continue  # these overflow or vanish: that is no rounding
                if name.startswith("e4m3 o") and np.abs(y).max() > 448:
                    continue
                table.add("rounding", f"{name} {m}x{n}x{k} {kind}", ask(program, y, b, "f32", number // every % 2 == 0), "")


def main():
    program, everything = sys.argv[1], "all" in sys.argv[2:]
    table = Table("show" in sys.argv[2:])
    seeds = (1, 2) if everything else (1,)
    for seed in seeds:
        run_bugs(program, table, 1 if everything else 37, ["f32", "bf16", "f16"], seed)
        run_pairs(program, table, 1 if everything else 3, seed)
        run_roundings(program, table, 3 if everything else 71, seed)
    for truth in ("bug", "rounding"):
        print(truth, {k[1]: v for k, v in sorted(table.count.items()) if k[0] == truth})
    for line in table.wrong:
        print("WRONG", line)
    sys.exit(len(table.wrong) > 0)


if __name__ == "__main__":
    main()
