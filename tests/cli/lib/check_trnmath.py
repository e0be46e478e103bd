"""What examples/python/src/trnmath promises, against NumPy and Python's own arithmetic. Run by tests/cli/python.sh."""
import ctypes
import multiprocessing
import threading
import time
import tracemalloc
import unittest
from fractions import Fraction

import numpy as np

import trnmath

RNG = np.random.default_rng(20)
FLOATS = {"float8_e4m3": (4, 3, 7), "float8_e5m2": (5, 2, 15), "float8_e3m4": (3, 4, 3), "bfloat16": (8, 7, 127)}
ROUNDINGS = ("nearest_even", "toward_zero", "toward_positive", "toward_negative", "to_odd")


def magnitudes(name):
    """The finite numbers >= 0 of an IEEE-like format, by the textbook: their codes are 0, 1, 2, ..."""
    exponent_bits, mantissa_bits, bias = FLOATS[name]
    codes = np.arange(((1 << exponent_bits) - 1) << mantissa_bits)
    exponent, mantissa = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    fraction = mantissa / 2.0**mantissa_bits
    return np.where(exponent == 0, fraction * 2.0**(1 - bias), (1 + fraction) * 2.0**(exponent.astype(float) - bias))


def rounded(x, name, rounding):
    """The codes of x, |x| below the largest number, by looking between which two neighbours it lies."""
    table, sign = magnitudes(name), np.signbit(x)
    size = np.abs(x).astype(np.float64)
    low = np.searchsorted(table, size, side="right") - 1
    up, down = table[np.minimum(low + 1, len(table) - 1)] - size, size - table[low]
    exact, odd = down == 0, low % 2 == 1
    away = {"nearest_even": (up < down) | ((up == down) & odd), "toward_zero": np.zeros_like(odd),
            "toward_positive": ~sign, "toward_negative": sign, "to_odd": ~odd}[rounding]
    code = low + (away & ~exact)
    return code + sign * (1 << (8 if name == "bfloat16" else 0) + 7)


def square(x):
    return trnmath.matmul(x, x)


def some_floats(n, name="float8_e5m2"):
    x = RNG.standard_normal(n) * 2.0**RNG.integers(-12, 3, n)
    return np.clip(x, -magnitudes(name)[-1], magnitudes(name)[-1]).astype(np.float32)


def philox(seed, stream, index):
    """Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011: word index % 4 of block index // 4."""
    mask = 0xffffffff
    block = index >> 2
    c, k = [block & mask, block >> 32, stream & mask, stream >> 32], [seed & mask, seed >> 32]
    for _ in range(10):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(q >> 32) ^ c[1] ^ k[0], q & mask, (p >> 32) ^ c[3] ^ k[1], p & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c[index & 3]


class Conversions(unittest.TestCase):
    def test_every_code_decodes_as_the_textbook_says(self):
        for name in FLOATS:
            table = magnitudes(name)
            kind = np.uint16 if name == "bfloat16" else np.uint8
            codes = np.arange(len(table)).astype(kind)
            self.assertTrue((trnmath.convert((codes, name), "float32") == table.astype(np.float32)).all(), name)

    def test_five_roundings(self):
        for name in FLOATS:
            x = some_floats(5000, name)
            for rounding in ROUNDINGS:
                got = trnmath.convert(x, name, rounding=rounding)
                self.assertTrue((got == rounded(x, name, rounding)).all(), f"{name} {rounding}")

    def test_float16_is_numpys(self):
        x = some_floats(5000)
        got = trnmath.convert(x, "float16")
        self.assertEqual(got.dtype, np.float16)
        self.assertTrue((got.view(np.uint16) == x.astype(np.float16).view(np.uint16)).all())
        self.assertTrue((trnmath.convert(got, "float32") == got.astype(np.float32)).all())

    def test_integers_and_saturation(self):
        x = np.array([-1000.0, -128.5, -0.5, 0.5, 1.5, 2.5, 127.4, 1000.0], np.float32)
        self.assertEqual(trnmath.convert(x, "int8").tolist(), [-128, -128, 0, 0, 2, 2, 127, 127])
        x = np.array([300.0, -1e9], np.float32)
        self.assertEqual(trnmath.convert(x, "float8_e4m3").tolist(), [0x78, 0xf8])
        self.assertEqual(trnmath.convert(x, "float8_e4m3", saturate=True).tolist(), [0x77, 0xf7])

    def test_stochastic_rounding_is_philox(self):
        x, seed, stream = some_floats(300), 0x123456789abcdef, 0x1_0000_0002
        got = trnmath.convert(x, "float8_e5m2", rounding="stochastic", seed=seed, stream=stream)
        table = magnitudes("float8_e5m2")
        for i, number in enumerate(x):
            size = Fraction(abs(float(number)))
            low = int(np.searchsorted(table, float(size), side="right")) - 1
            step = Fraction(table[min(low + 1, len(table) - 1)]) - Fraction(table[low])
            part = (size - Fraction(table[low])) / step if step else Fraction(0)
            code = low + (int(part * 2**32) + philox(seed, stream, i) >= 2**32) + (0x80 if number < 0 else 0)
            self.assertEqual(int(got[i]), code, f"element {i}: {number}")

    def test_stochastic_rounding_depends_on_the_seed_alone(self):
        x = RNG.standard_normal((301, 703)).astype(np.float32)
        ask = dict(to="bfloat16", rounding="stochastic", seed=5)
        first = trnmath.convert(x, **ask)
        self.assertTrue((first == trnmath.convert(x, **ask)).all())
        self.assertTrue((first == trnmath.convert(np.asfortranarray(x), **ask)).all())
        self.assertTrue((first != trnmath.convert(x, **{**ask, "seed": 6})).mean() > 0.1)
        self.assertTrue((first != trnmath.convert(x, stream=1, **ask)).mean() > 0.1)
        down, up = (trnmath.convert(x, "bfloat16", rounding=r) for r in ("toward_negative", "toward_positive"))
        self.assertTrue(((first == down) | (first == up)).all())


class Views(unittest.TestCase):
    def test_the_view_is_the_array(self):
        x = np.zeros((6, 8, 10), np.float32)
        for part in (x, x[1:5:2, :, 3], x.transpose(2, 0, 1), x[::3, 1::2, ::5], x.T):
            view = trnmath._arrays.view("x", trnmath._arrays.operand("x", part))
            self.assertEqual(view.data, part.__array_interface__["data"][0])
            self.assertEqual(list(view.shape)[:part.ndim], list(part.shape))
            strides = list(view.stride)[:part.ndim]
            if any(strides):
                self.assertEqual(strides, [s // 4 for s in part.strides])
            else:
                self.assertTrue(part.flags.c_contiguous)

    def test_strided_and_transposed(self):
        x = some_floats(40 * 60).reshape(40, 60)
        for part in (x.T, x[::2, 5::7], x[3], x[:, 2], x.reshape(4, 10, 6, 10).transpose(3, 1, 2, 0)):
            want = trnmath.convert(np.ascontiguousarray(part), "bfloat16")
            self.assertTrue((trnmath.convert(part, "bfloat16") == want).all())
            room = np.full(tuple(2 * n for n in part.shape), 0x1234, np.uint16)
            out = room[tuple(slice(None, None, 2) for _ in part.shape)]
            self.assertIs(trnmath.convert(part, out=(out, "bfloat16")), out)
            self.assertTrue((out == want).all())
            out[...] = 0x1234
            self.assertTrue((room == 0x1234).all(), "it wrote beside the view")

    def test_broadcast_scalar_and_empty(self):
        row = some_floats(7)
        self.assertTrue((trnmath.convert(np.broadcast_to(row, (5, 7)), "float16") == row.astype(np.float16)).all())
        self.assertEqual(float(trnmath.convert(np.array(1.5, np.float32), "float16")), 1.5)
        self.assertEqual(trnmath.convert(np.empty((0, 4), np.float32), "bfloat16").shape, (0, 4))

    def test_nothing_is_copied(self):
        x, out = np.ones((4096, 1024), np.float32), np.zeros((1024, 4096), np.uint8)
        tracemalloc.start()
        trnmath.convert(x.T, out=(out, "float8_e4m3"))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertTrue((out == 0x38).all())
        self.assertLess(peak, 100_000)

    def test_in_place(self):
        x = some_floats(1000)
        want = trnmath.activation(x, "tanh")
        self.assertIs(trnmath.activation(x, "tanh", out=x), x)
        self.assertTrue((x == want).all())

    def test_memory_that_numpy_does_not_own(self):
        raw = (ctypes.c_uint16 * 8)(*range(0x3f80, 0x3f88))
        codes = np.frombuffer(raw, np.uint16)
        trnmath.convert(np.arange(8, dtype=np.float32), out=(codes, "bfloat16"))
        self.assertEqual(raw[3], 0x4040)


class Products(unittest.TestCase):
    def test_exact_products_are_numpys(self):
        a, b = (RNG.integers(-8, 9, shape).astype(np.float32) for shape in ((130, 517), (517, 71)))
        self.assertTrue((trnmath.matmul(a, b) == a @ b).all())
        codes = [trnmath.convert(x, "float8_e4m3") for x in (a, b)]
        got = trnmath.matmul((codes[0], "float8_e4m3"), (codes[1], "float8_e4m3"))
        self.assertTrue((got == a @ b).all())
        self.assertTrue((trnmath.matmul(b.T, a.T) == (a @ b).T).all())
        total = got.copy()
        self.assertTrue((trnmath.matmul(a, b, out=total, accumulate=True) == 2 * (a @ b)).all())
        self.assertTrue((trnmath.matmul(a.astype(np.int8), b.astype(np.int8), to="int32", generation=1) == a @ b).all())

    def twin(self, a, b, chains):
        """Tiles of 128 rows; row p joins chain p mod chains; each step rounds once: the product is exact in float64,
        and with so few binades the sum of it and a float32 is, too."""
        psum = None
        for k in range(0, a.shape[1], 128):
            sums = []
            for c in range(chains):
                s = np.zeros((a.shape[0], b.shape[1]), np.float32)
                for p in range(k + c, min(k + 128, a.shape[1]), chains):
                    s = (s.astype(np.float64) + np.outer(a[:, p], b[p]).astype(np.float64)).astype(np.float32)
                sums.append(s)
            tile = sums[0]
            for s in sums[1:]:
                tile = tile + s
            psum = tile if psum is None else psum + tile
        return psum

    def test_the_order_of_sums(self):
        a, b = ((RNG.integers(-255, 256, shape) * 2.0**RNG.integers(-12, 1, shape)).astype(np.float32)
                for shape in ((9, 300), (300, 11)))
        codes = [(trnmath.convert(x, "bfloat16"), "bfloat16") for x in (a, b)]
        a, b = (trnmath.convert(c, "float32") for c in codes)
        for chains in (1, 2, 4, 8):
            got = trnmath.matmul(*codes, numerics=f"chains={chains}")
            self.assertTrue((got == self.twin(a, b, chains)).all(), f"{chains} chains")
        self.assertTrue((trnmath.matmul(*codes) == self.twin(a, b, 4)).all())
        self.assertTrue((trnmath.matmul(*codes, to="bfloat16") ==
                         rounded(self.twin(a, b, 4), "bfloat16", "nearest_even")).all())

    def test_tolerance(self):
        a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((40, 600), (600, 30)))
        exact = a.astype(np.float64) @ b.astype(np.float64)
        for to, numerics in (("float32", "trn2"), ("float16", "trn2"), ("float32", "chains=1,product=bf16")):
            off = abs(trnmath.matmul(a, b, to=to, numerics=numerics) - exact)
            worst, sigma = trnmath.tolerance(a, b, to=to, numerics=numerics)
            self.assertTrue((off <= worst).all() and (off > 3 * sigma).mean() < 0.02 and (off > sigma / 9).mean() > 0.7)
        bound = trnmath.tolerance(np.full((1, 8), 300, np.float32), np.full((8, 1), 300, np.float32), to="float16")[0]
        self.assertTrue(np.isinf(bound).all())
        with self.assertRaisesRegex(trnmath.Error, "int8 products are exact, or wrap"):
            trnmath.tolerance(a.astype(np.int8), b.astype(np.int8), to="int32", generation=1)

    def test_block_scaled(self):
        x, y = (RNG.standard_normal(shape).astype(np.float32) for shape in ((64, 256), (256, 48)))
        a, a_scale = trnmath.mx_quantize(x)
        b, b_scale = trnmath.mx_quantize(y, axis=0)
        got = trnmath.matmul((a, "float8_e4m3fn"), (b, "float8_e4m3fn"), a_scale=a_scale, b_scale=b_scale.T)
        back = [trnmath.mx_dequantize((c, "float8_e4m3fn"), s, axis=axis).astype(np.float64)
                for c, s, axis in ((a, a_scale, 1), (b, b_scale, 0))]
        self.assertLess(abs(got - back[0] @ back[1]).max(), 1e-4)

    def test_activation(self):
        x = np.array([[9.0, 0.0], [-1.0, 2.0]], np.float32)
        self.assertAlmostEqual(float(trnmath.activation(x, "sin")[0, 0]), 27.65, places=2)
        self.assertEqual(trnmath.activation(x, "relu", bias=-1.0).tolist(), [[8.0, 0.0], [0.0, 1.0]])
        self.assertTrue((trnmath.activation(x.T, "exp") == trnmath.activation(x, "exp").T).all())

    def test_block_scales_by_the_book(self):
        x = some_floats(64 * 32).reshape(64, 32)
        codes, scales = trnmath.mx_quantize(x, "float8_e5m2", rule="ocp_floor")
        power = np.clip(np.floor(np.log2(np.abs(x).max(1))) - 15, -127, 127)
        self.assertTrue((scales[:, 0] == power + 127).all())
        scaled = np.clip(x / np.float32(2)**power[:, None].astype(np.float32), -57344, 57344)
        self.assertTrue((codes == rounded(scaled, "float8_e5m2", "nearest_even")).all())


class Chips(unittest.TestCase):
    def test_a_ring_rounds_at_every_hop(self):
        for wire, want in ((None, 256), ("float32", 272)):  # 271 lies between 270 and 272 of BF16
            arrays = [trnmath.convert(np.array([256.0 if r == 1 else 1.0], np.float32), "bfloat16") for r in range(16)]
            pairs = [(array, "bfloat16") for array in arrays]
            trnmath.collective("all_reduce", pairs, pairs, algorithm="ring", wire=wire)
            self.assertEqual({float(trnmath.convert(pair, "float32")[0]) for pair in pairs}, {float(want)})

    def test_all_gather(self):
        sources, out = [np.full(3, r, np.int32) for r in range(4)], [np.zeros(12, np.int32) for r in range(4)]
        trnmath.collective("all_gather", sources, out, chips=[0, 1, 2, 3])
        self.assertEqual({tuple(o) for o in out}, {(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)})

    def test_costs(self):
        cost = trnmath.collective_cost("all_reduce", 1 << 30, "trn2.48xlarge")
        self.assertGreaterEqual(cost["time_s"], cost["lower_bound_s"])
        self.assertAlmostEqual(cost["bus_bytes_per_s"] / cost["bytes_per_s"], 2 * 15 / 16, places=9)
        self.assertIsInstance(cost["algorithm"], str)
        plan = trnmath.redistribute_cost((8192, 4096), "(data, *) + sum(tensor)", "(data, tensor)", "data=4,tensor=4")
        self.assertEqual(len(plan["steps"]), 1)
        self.assertIn("reduce_scatter", plan["steps"][0])


class Errors(unittest.TestCase):
    def refused(self, text, call, *args, **named):
        with self.assertRaises(trnmath.Error) as caught:
            call(*args, **named)
        self.assertEqual(str(caught.exception), text)

    def test_each_has_its_sentence(self):
        x, fixed = np.zeros((4, 6), np.float32), np.zeros((4, 6), np.uint16)
        fixed.flags.writeable = False
        convert = trnmath.convert
        self.refused("x: float64 is no format of trnmath; convert it first, for example with .astype(numpy.float32)",
                     convert, x.astype(float), "bfloat16")
        self.refused("x: expected a NumPy array or a pair (array, \"format\"), not list", convert, [1.0], "bfloat16")
        self.refused("x: elements of uint8 have 8 bits, those of bfloat16 are stored in 16",
                     convert, (np.zeros(3, np.uint8), "bfloat16"), "float32")
        self.refused("x: an array of float16 holds no codes of bfloat16; pass them as uint16",
                     convert, (np.zeros(3, np.float16), "bfloat16"), "float32")
        self.refused("'float9' is no format of trnmath", convert, x, "float9")
        self.refused("x: strides (-24, 4) are negative or no whole elements, which would need a copy",
                     convert, x[::-1], "float16")
        odd = np.frombuffer(bytes(30), np.uint8)[:24].reshape(4, 6)[:, :4].view(np.float32)
        self.refused("x: strides (6, 4) are negative or no whole elements, which would need a copy",
                     convert, odd, "float16")
        self.refused("x: its bytes are in the other order, which would need a copy",
                     convert, x.astype(">f4"), "float16")
        self.refused("x: one element that stands for all of (4, 6) would need a copy along some axis",
                     convert, np.broadcast_to(np.float32(1), (4, 6)), "float16")
        self.refused("out: the array is read-only", convert, x, out=(fixed, "bfloat16"))
        self.refused("x: it has 7 axes, at most 6 are possible", convert, np.zeros((1,) * 7, np.float32), out=x)
        self.refused("to: which format? (or give out)", convert, x)
        self.refused("rounding \"upward\" is unknown", convert, x, "float16", rounding="upward")
        self.refused("chains takes 1, 2, 4, 8, 16, not '3'", trnmath.matmul, x, x.T, numerics="chains=3")
        self.refused("a and b: expected two axes each, not 2 and 1", trnmath.matmul, x, x[0])
        self.refused("the Scalar engine has no function \"cosh\"", trnmath.activation, x, "cosh")
        self.refused("scale is 0, so that no element of the source would count", trnmath.activation, x, "exp", scale=0)
        self.refused("system \"a?]0;x??b\\u202ec\" is unknown", trnmath.collective_cost, "all_reduce", 1,
                     "a\x1b]0;x\x07\nb\u202ec")
        self.refused("system \"trn9\" is unknown", trnmath.collective_cost, "all_reduce", 1, "trn9")
        collective = trnmath.collective
        self.refused("2 sources and 1 results; there is one of each per rank", collective, "all_reduce", [x, x], [x])
        self.refused("3 arrays are given, but the group has 16 ranks", collective, "all_reduce", [x] * 3, [x] * 3)

    def test_the_librarys_own(self):
        with self.assertRaises(trnmath.Error) as caught:
            trnmath.matmul(np.zeros((3, 4), np.float32), np.zeros((5, 6), np.float32))
        self.assertGreater(caught.exception.status, 0)
        with self.assertRaises(trnmath.Error):
            trnmath.convert(np.zeros(3, np.float32), out=np.zeros(4, np.float16))


class Names(unittest.TestCase):
    def test_formats_are_understood_as_people_write_them(self):
        x = np.float32([1, 300, 1e-3])
        for spelled, name in (("bf16", "bfloat16"), ("fp16", "float16"), ("e4m3fn", "float8_e4m3fn"),
                              ("torch.float8_e5m2", "float8_e5m2"), ("F8_E4M3", "float8_e4m3fn")):
            np.testing.assert_array_equal(trnmath.convert(x, spelled), trnmath.convert(x, name))
        with self.assertRaises(trnmath.Error):
            trnmath.convert(x, "fp8")

    def test_explain(self):
        lines = trnmath.explain("chains=1")
        self.assertTrue(lines[0].startswith("chains = 1 (default 4; 1, 2, 4, 8, 16) - "), lines[0])
        self.assertGreater(len(lines), 20)
        self.assertTrue(all(" - documented" in l or " - measured" in l or " - assumed" in l for l in lines))
        self.assertEqual(trnmath.explain()[0][:10], "chains = 4")
        with self.assertRaisesRegex(trnmath.Error, "chains takes 1, 2, 4, 8, 16, not '5'"):
            trnmath.explain("chains=5")


class Threads(unittest.TestCase):
    def test_many_at_once(self):
        x = RNG.standard_normal((200, 400)).astype(np.float32)
        want, got = trnmath.matmul(x, x.T), [None] * 8
        def work(i):
            got[i] = trnmath.matmul(x, x.T)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(all((g == want).all() for g in got))

    def test_a_forked_process_computes_the_same(self):
        x = RNG.standard_normal((512, 512)).astype(np.float32)
        want = trnmath.matmul(x, x)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for got in pool.map_async(square, [x, x, x]).get(timeout=300):
                self.assertTrue((got == want).all())

    def test_the_interpreter_goes_on_meanwhile(self):
        x, laps = RNG.standard_normal((1600, 1600)).astype(np.float32), 0
        thread = threading.Thread(target=trnmath.matmul, args=(x, x), kwargs={"numerics": "chains=16"})
        thread.start()
        while thread.is_alive():
            time.sleep(0.001)
            laps += 1
        self.assertGreater(laps, 3)


if __name__ == "__main__":
    unittest.main()
