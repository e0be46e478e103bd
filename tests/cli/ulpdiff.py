# What tests/cli/ulpdiff.sh compares: arrays, and what a twin in NumPy says of them. It knows nothing of trnmath.
# Usage: ulpdiff.py, in an empty directory.
import json, struct
import numpy as np

rng = np.random.default_rng(7)
f32, u8, u16, u32 = np.float32, np.uint8, np.uint16, np.uint32
np.seterr(invalid="ignore")  # signalling NaN are among the codes


def to_bf16(x):  # nearest even; numbers only
    u = np.asarray(x, f32).view(u32).astype(np.uint64)
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype(u16)


def of_bf16(code):
    return (np.asarray(code, u16).astype(u32) << 16).view(f32)


def bf16(x):
    return of_bf16(to_bf16(x))


# ---- distances: the rank of a value in the sorted list of all values of its format ----

def e4m3(code, top):
    """top: 240 (exponent field 15 is infinity and NaN) or 448 (7f is NaN)"""
    sign, e, m = code >> 7, code >> 3 & 15, code & 7
    v = (m / 8) * 2.0**-6 if e == 0 else (1 + m / 8) * 2.0 ** (e - 7)
    if top == 240 and e == 15:
        v = np.nan if m else np.inf
    if top == 448 and e == 15 and m == 7:
        v = np.nan
    return -v if sign else v


def distances(x, y, table):
    """x, y: values; table: all finite values of the format, or None for binary32"""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    good = np.isfinite(x) & np.isfinite(y)
    if table is None:
        def place(v):
            i = np.asarray(v, f32).view(np.int32).astype(np.int64)
            return np.where(i < 0, -(i & 0x7FFFFFFF), i)
        return good, np.abs(place(x[good]) - place(y[good]))
    return good, np.abs(np.searchsorted(table, x[good]) - np.searchsorted(table, y[good]))


def expect(name, x, y, table, dtype):
    x, y = np.asarray(x, np.float64).ravel(), np.asarray(y, np.float64).ravel()
    good, d = distances(x, y, table)
    same = (np.isnan(x) & np.isnan(y)) | (x == y)
    limits = [-1, 0, 1, 2, 10, 100, np.inf]
    edges = [np.sum((d > low) & (d <= high)) for low, high in zip(limits, limits[1:])]
    mismatches = int(np.sum(~good & ~same))
    a, b = x[good], y[good]
    e, nonzero = np.abs(b - a), a != 0
    row = dict(buckets=[int(n) for n in edges], mismatches=mismatches, ulp_mean=float(d.mean()), abs_max=float(e.max()),
               abs_mean=float(e.mean()), rel_max=float((e[nonzero] / np.abs(a[nonzero])).max()),
               rel_mean=float((e[nonzero] / np.abs(a[nonzero])).mean()),
               sqnr_db=float(10 * np.log10((a * a).sum() / (e * e).sum())),
               cosine=float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())), pcc=float(np.corrcoef(a, b)[0, 1]),
               nan_a=int(np.isnan(x).sum()), nan_b=int(np.isnan(y).sum()),
               inf_a=int(np.isinf(x).sum()), inf_b=int(np.isinf(y).sum()))
    if not mismatches:
        row["ulp_max"] = float(d.max())
        differ = np.nonzero(~same & ~(x == y))[0]
        row["first"] = int(differ[0])
    expected[name] = dict(row=row, dtype=dtype)


def finite_values(values):
    v = np.unique(np.asarray([x for x in values if np.isfinite(x)]))
    return v


expected = {}
all16 = np.arange(65536, dtype=u16)
tables = {
    "f16": finite_values(all16.view(np.float16).astype(np.float64)),
    "bf16": finite_values(of_bf16(all16).astype(np.float64)),
    "e4m3": finite_values([e4m3(c, 240) for c in range(256)]),
    "e4m3fn": finite_values([e4m3(c, 448) for c in range(256)]),
}
n = (37, 53)
near = rng.integers(-3, 4, n)
for kind, special in (("", False), ("_special", True)):
    c = rng.integers(0, 2**32, n, dtype=np.uint64)
    if not special:
        c = c & 0xBFFFFFFF  # below 2: no sums that overflow
    a = c.astype(u32)
    b = np.where(rng.random(n) < 0.5, a, (c + near.astype(np.uint64)) & 0xFFFFFFFF).astype(u32)
    if special:
        b[0, :5] = [0x7FC00000, 0x7F800000, 0xFF800000, 0, 0x80000000]
        a[0, :5] = [0x7F800001, 0x7F800000, 0x7F800000, 0x80000000, 0]
        a[1, :], b[1, :] = 0x40000000, 0x40000003
        big = (a & 0x7F800000) > 0x6F800000
        a[big & ((a & 0x7F800000) != 0x7F800000)] &= 0xBFFFFFFF
        big = (b & 0x7F800000) > 0x6F800000
        b[big & ((b & 0x7F800000) != 0x7F800000)] &= 0xBFFFFFFF
    np.save(f"f32{kind}_a.npy", a.view(f32))
    np.save(f"f32{kind}_b.npy", b.view(f32))
    expect(f"f32{kind}", a.view(f32), b.view(f32), None, "")
    for name in ("f16", "bf16"):
        a = rng.integers(0, 65536, n).astype(u16)
        if not special:
            a &= 0xBBFF if name == "f16" else 0xBFFF
        b = np.where(rng.random(n) < 0.5, a, a + near.astype(u16)).astype(u16)
        if name == "bf16":  # squares of the largest numbers stay in binary64, but keep the twin's sums tame
            tame = lambda v: np.where(((v & 0x7F80) > 0x6F80) & ((v & 0x7F80) != 0x7F80), v & 0xBFFF, v).astype(u16)
            a, b = tame(a), tame(b)
        decode = (lambda v: v.view(np.float16)) if name == "f16" else of_bf16
        np.save(f"{name}{kind}_a.npy", decode(a) if name == "f16" else a)
        np.save(f"{name}{kind}_b.npy", decode(b) if name == "f16" else b)
        expect(f"{name}{kind}", decode(a), decode(b), tables[name], "bfloat16" if name == "bf16" else "")
    for name, top in (("e4m3", 240), ("e4m3fn", 448)):
        value = np.array([e4m3(c, top) for c in range(256)])
        a = rng.integers(0, 256, n).astype(u8)
        b = np.where(rng.random(n) < 0.5, a, rng.integers(0, 256, n)).astype(u8)
        if not special:
            a, b = a & 0xF7 & ~u8(0x40), b & 0xF7 & ~u8(0x40)
        np.save(f"{name}{kind}_a.npy", a)
        np.save(f"{name}{kind}_b.npy", b)
        expect(f"{name}{kind}", value[a], value[b], tables[name], "float8_" + name)
json.dump(expected, open("expected.json", "w"))

# ---- products, by definition: bfloat16 numbers, whose products are exact in binary32 ----

M, N, K = 20, 12, 256
x, w = bf16(rng.standard_normal((M, K))), bf16(rng.standard_normal((K, N)))
np.save("x.npy", to_bf16(x))
np.save("w.npy", to_bf16(w))
np.save("x32.npy", rng.standard_normal((M, K)).astype(f32))
np.save("w32.npy", rng.standard_normal((K, N)).astype(f32))


def product(x, w, chains=4, k_tile=128, rounded=lambda p: p):
    psum = None
    for k0 in range(0, K, k_tile):
        s = np.zeros((chains, M, N), f32)
        for p in range(min(k_tile, K - k0)):
            s[p % chains] += rounded(x[:, k0 + p, None] * w[None, k0 + p, :])
        t = s[0]
        for c in range(1, chains):
            t = t + s[c]
        psum = t if psum is None else psum + t
    return psum


np.save("p_default.npy", product(x, w))
np.save("p_single.npy", product(x, w, chains=1, rounded=bf16))
np.save("p_tile64.npy", product(x, w, k_tile=64))
np.save("p_bf16.npy", to_bf16(product(x, w, chains=8)))
np.save("p_cast.npy", product(bf16(np.load("x32.npy")), bf16(np.load("w32.npy"))))
np.save("p_none.npy", product(x, w) * f32(1.01))
np.save("wt.npy", to_bf16(w).T.copy())

# ---- sums over ranks ----

R, n = 8, 1000
r = rng.standard_normal((R, n)).astype(f32)
np.save("ranks.npy", r)
np.savez("ranks.npz", **{f"rank{i}": r[i] for i in range(R)})
for i in range(R):
    np.save(f"rank{i}.npy", r[i])
c = bf16(r)
ring = np.empty(n, f32)
for v in range(R):  # the sum of block v begins at rank v + 1 and ends at v
    part = slice(v * n // R, (v + 1) * n // R)
    s = c[(v + 1) % R, part]
    for k in range(2, R + 1):
        s = bf16(s + c[(v + k) % R, part])
    ring[part] = s
np.save("ring.npy", to_bf16(ring))
np.save("part3.npy", to_bf16(ring[3 * n // R:4 * n // R]))
s = c[0]
for k in range(1, R):
    s = bf16(s + c[k])
np.save("fold.npy", s)
np.save("sum.npy", r.astype(np.float64).sum(0).astype(f32))
np.save("mean.npy", (r.astype(np.float64).sum(0).astype(f32) * f32(1 / R)).astype(f32))

# ---- casts and functions ----

y = (rng.standard_normal(5000) * np.exp2(rng.integers(-6, 7, 5000))).astype(f32)
y[:64] = np.asarray(1 + (2 * np.arange(64) + 1) / 256, f32)  # halfway between bfloat16 numbers
np.save("y.npy", y)
np.save("cut.npy", (y.view(u32) >> 16).astype(u16))
np.save("away.npy", (y.view(u32).astype(np.uint64) + 0x8000 >> 16).astype(u16))
np.save("even.npy", to_bf16(y))
np.save("f16.npy", y.astype(np.float16))
np.save("twice.npy", to_bf16(y.astype(np.float16).astype(f32)))
np.save("exp.npy", np.exp((y % 4).astype(np.float64)).astype(f32))
np.save("mod.npy", (y % 4).astype(f32))

# ---- what errors look like ----

z = rng.standard_normal((64, 48)).astype(f32)
np.save("z.npy", z)
np.save("factor.npy", (z * f32(1.0712)).astype(f32))
np.save("bias.npy", (z + f32(0.125)).astype(f32))
np.save("square.npy", z[:48])
np.save("turned.npy", z[:48].T.copy())
box = z.copy()
box[10:20, 5:9] += 1
np.save("box.npy", box)
np.save("f64.npy", z.astype(np.float64))
small = (z * f32(1e-40)).astype(f32)
small[::2] = 1
np.save("small.npy", small)
np.save("flushed.npy", np.where(np.abs(small) < 2**-126, f32(0), small))
np.save("fortran.npy", np.asfortranarray(box))
big = rng.standard_normal(700001).astype(f32)
np.save("big_a.npy", big)
big[::3] *= f32(1.000001)
np.save("big_b.npy", big)

some = z.copy()
some[:, 8:24] = z[:, 23:7:-1]
np.save("turned_some.npy", some)
np.save("nearly.npy", bf16(z))
np.save("short.npy", (r.astype(np.float64).sum(0) - r[3]).astype(f32))
np.save("tanh.npy", np.tanh((y % 4).astype(np.float64)).astype(f32))
np.save("shifted.npy", product(x, np.roll(w, 1, 0)))
np.save("biased.npy", (product(x, w) + 10 * rng.standard_normal(N)).astype(f32))

# ---- many tensors ----

np.savez("many_a.npz", q=z, k=box, only=z, shape=z)
np.savez("many_b.npz", q=z, k=z, shape=z.T)


def safetensors(path, tensors):
    header, data = {}, b""
    for name, kind, array in tensors:
        place = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": place}
        data += array.tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


rest = [("w.k", "F8_E4M3", np.arange(256, dtype=u8)), ("norm", "F32", z)]
safetensors("a.safetensors", [("w.q", "BF16", to_bf16(z))] + rest)
safetensors("b.safetensors", [("w.q", "BF16", to_bf16(z) + u16(1))] + rest)
np.save("empty.npy", np.zeros((0, 4), f32))
np.save("complex.npy", np.zeros(4, np.complex64))
