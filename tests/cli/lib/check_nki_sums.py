"""Sums in PSUM after each engine's write, on each machine; results that are assigned and used again; nl.sin, nl.cos and
nl.arctan of any number, and warnings that name the kernel's line where an instruction's table ends; what kernels that
return nothing leave in their arguments.

SPDX-License-Identifier: MIT
"""
import array
import re
import sys
import types
import unittest
import warnings
from unittest import mock

import numpy as np

import neuronxcc.nki as older
import neuronxcc.nki.compiler as compiler
import neuronxcc.nki.language as ol
import nki
import nki.isa as nisa
import nki.language as nl
from nki import tiles

RANDOM = np.random.default_rng(5)
X = RANDOM.integers(1, 4, (64, 64)).astype(np.float32)
with open(__file__, encoding="utf-8") as source:
    LINES = source.read().split("\n")


def line(mark):
    return next(n for n, text in enumerate(LINES, 1) if text.endswith("# " + mark))


def told(run):
    """What it returns, and (line, text) of each warning."""
    with warnings.catch_warnings(record=True) as all_of_them:
        warnings.simplefilter("always")
        got = run()
    for one in all_of_them:
        assert one.filename == __file__, one
    return got, [(one.lineno, str(one.message)) for one in all_of_them]


def stored(tile):
    out, copied = nl.ndarray(tile.shape, nl.float32, buffer=nl.shared_hbm), nl.ndarray(tile.shape, nl.float32)
    nisa.tensor_copy(copied, tile)
    nisa.dma_copy(out, copied)
    return out


# ---- PSUM ----

WRITERS = {
    "tensor_copy": lambda p, t: nisa.tensor_copy(p, t),
    "memset": lambda p, t: nisa.memset(p, 5.0),
    "activation": lambda p, t: nisa.activation(p, nl.relu, t),
    "activation_reduce": lambda p, t: nisa.activation_reduce(p, nl.square, t, nl.add, nl.ndarray((64, 1), nl.float32)),
    "tensor_tensor": lambda p, t: nisa.tensor_tensor(p, t, t, nl.add),
    "tensor_scalar": lambda p, t: nisa.tensor_scalar(p, t, nl.add, 1.0),
    "scalar_tensor_tensor": lambda p, t: nisa.scalar_tensor_tensor(p, t, nl.add, 1.0, nl.add, t),
    "tensor_tensor_scan": lambda p, t: nisa.tensor_tensor_scan(p, t, t, 0.0, nl.add, nl.add),
    "reciprocal": lambda p, t: nisa.reciprocal(p, t),
}


def after(x, write, before, accumulate):
    tile, p = nl.load(x), nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
    if before:
        nisa.nc_matmul(p, tile, tile)
    write(p, tile)
    there = stored(p)
    nisa.nc_matmul(p, tile, tile, accumulate=accumulate)  # after
    return stored(p), there


class Sums(unittest.TestCase):
    def outcome(self, write, generation, before, accumulate):
        try:
            (got, there), said = told(lambda: nki.simulate(after, generation=generation)(X, write, before, accumulate))
        except nki.Error as error:
            self.assertIn("finds what another engine has written", str(error))
            self.assertIn(f"check_nki_sums.py, line {line('after')}, generation {generation})", str(error))
            return "refused"
        self.assertTrue(all(at == line("after") for at, _ in said))
        for word, want in (("overwritten", X.T @ X), ("added", X.T @ X + there)):
            if np.allclose(got, want, 1e-6):
                return word + (", warned" if said else "")
        return "WRONG"

    def test_after_numbers_of_every_engine(self):
        for name, write in WRITERS.items():
            for generation in (1, 2, 3):
                last = generation == 3
                with self.subTest(name, generation=generation):
                    def one(*how):
                        return self.outcome(write, generation, *how)
                    self.assertEqual([one(b, False) for b in (False, True)], ["overwritten"] * 2)
                    self.assertEqual([one(b, True) for b in (False, True)], ["added" if last else "refused"] * 2)
                    self.assertEqual(one(False, None), "overwritten, warned")
                    self.assertEqual(one(True, None), "added" if last else "refused")

    def test_after_zeros(self):
        for generation in (1, 2, 3):
            for before in (False, True):
                for accumulate in (None, True, False):
                    word = self.outcome(lambda p, t: nisa.memset(p, 0.0), generation, before, accumulate)
                    self.assertEqual(word, "overwritten, warned" if generation < 3 and accumulate else "overwritten")

    def test_zeros_of_a_block(self):
        """nl.zeros of PSUM, then accumulate=True from the first product on."""
        def kernel(a, b):
            total = nl.zeros((64, 32), nl.float32, buffer=nl.psum)
            for k in range(3):
                nisa.nc_matmul(total, nl.load(a[k]), nl.load(b[k]), accumulate=True)
            return stored(total)
        a, b = RANDOM.integers(-3, 4, (3, 128, 64)), RANDOM.integers(-3, 4, (3, 128, 32))
        a, b = a.astype(np.float32), b.astype(np.float32)
        for generation in (1, 2, 3):
            got, said = told(lambda: nki.simulate(kernel, generation=generation)(a, b))
            np.testing.assert_array_equal(got, np.einsum("kpm,kpn->mn", a, b))
            self.assertEqual(len(said), int(generation < 3))
        with self.assertRaisesRegex(nki.Error, "which no(thing| matmul) has written"):
            nki.simulate(lambda a: stored(self.onto_nothing(a)), generation=2)(a[0])

    @staticmethod
    def onto_nothing(a):
        total, tile = nl.ndarray((64, 64), nl.float32, buffer=nl.psum), nl.load(a)
        nisa.nc_matmul(total, tile, tile, accumulate=True)
        return total

    def test_windows_that_overlap(self):
        """A convolution's products: each place is overwritten by its first one, none by a later one."""
        def kernel(x, w, begin):
            taps, n = w.shape[0], x.shape[1]
            total, tile = nl.ndarray((32, n + taps - 1), nl.float32, buffer=nl.psum), nl.load(x)
            begin(total)
            for s in range(taps):
                nisa.nc_matmul(total[:, s:s + n], nl.load(w[s]), tile)
            return stored(total)
        x, w = X[:, :40], RANDOM.integers(-3, 4, (3, 64, 32)).astype(np.float32)
        want = np.zeros((32, 42), np.float32)
        for s in range(3):
            want[:, s:s + 40] += w[s].T @ x
        for generation in (1, 2, 3):
            for begin in (lambda t: None, lambda t: nisa.memset(t, 0.0)):
                got, said = told(lambda: nki.simulate(kernel, generation=generation)(x, w, begin))
                np.testing.assert_array_equal(got, want)
                self.assertEqual(said, [])

    def test_a_part_that_another_engine_changed(self):
        """The rest is a product's, and goes on."""
        def kernel(x, columns):
            tile, p = nl.load(x), nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(p, tile, tile)
            nisa.activation(p[:, 0:32], nl.relu, tile[:, 0:32])
            nisa.nc_matmul(p[:, columns], tile, tile[:, columns])
            return stored(p)
        got = nki.simulate(kernel, generation=2)(X, slice(32, 64))
        np.testing.assert_array_equal(got, np.concatenate([X[:, :32], 2 * (X.T @ X)[:, 32:]], 1))
        with self.assertRaisesRegex(nki.Error, "accumulate=None finds what another engine has written in 'p'|'tile'"):
            nki.simulate(kernel, generation=2)(X, slice(31, 64))

    def test_older_sums_go_on_from_any_number(self):
        """psum += product of what an instruction has put there: the Vector engine adds."""
        def kernel(x):
            out, tile = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.load(x)
            total = ol.zeros((ol.par_dim(64), 64), dtype=np.float32, buffer=ol.psum)
            total += ol.matmul(tile, tile, transpose_x=True)
            nisa.tensor_scalar(total, total, nl.multiply, 0.5)
            total += ol.matmul(tile, tile, transpose_x=True)
            ol.store(out, total)
            return out
        np.testing.assert_array_equal(older.simulate_kernel(older.jit(kernel), X), 1.5 * (X.T @ X))


# ---- zeros in PSUM, which are written when something asks for them ----

def at(byte):
    return compiler.psum.alloc(lambda block, partitions, bytes_of_each: (byte // 2048, 0))


def zeros(shape=(64, 64), value=0, buffer=nl.psum):
    return nl.full(shape, value, nl.float32, buffer=buffer)


def negative_zeros(x):
    return stored(zeros(value=-0.0)), stored(zeros((2, nl.par_dim(64), 64), value=np.float32(-0.0))[1])


def placed_below(x):
    """Two names of one place: the later write is what is there."""
    a, b = zeros(buffer=at(0)), nl.ndarray((64, 64), nl.float32, buffer=at(0))
    nisa.memset(b, 3.0)
    return stored(a)


def placed_above(x):
    b = nl.ndarray((64, 64), nl.float32, buffer=at(0))
    nisa.memset(b, 3.0)
    a = zeros(buffer=at(0))
    return stored(b), stored(a)


def a_call_that_fails(x):
    total, tile = zeros(), nl.load(x)
    try:
        nisa.nc_matmul(total, tile, tile, tile_position="ab")
    except TypeError:
        pass
    return stored(total)


def in_part(accumulate, is_transpose=False):
    def kernel(x):
        total, tile = zeros((64, 192)), nl.load(x)
        eye = nl.load(nl.shared_constant(np.eye(64, dtype=np.float32)))
        nisa.nc_matmul(total[:, 64:128], tile, eye, is_transpose=is_transpose, accumulate=accumulate)
        return stored(total)
    return kernel


def all_of_it(dst, times=2, accumulate=None):
    def kernel(x):
        total, tile = zeros(), nl.load(x)
        for _ in range(times):
            nisa.nc_matmul(dst(total), tile, tile, accumulate=accumulate)
        return stored(total)
    return kernel


def added(x):
    total, tile = zeros((64, 128)), nl.load(x)
    total[:, 32:96] += nl.matmul(tile, tile)
    total[:, 32:96] += nl.matmul(tile, tile)
    return stored(total), stored(nl.add(total, zeros((64, 128))))


def returned(x):
    return zeros()


class Zeros(unittest.TestCase):
    KERNELS = [negative_zeros, placed_below, placed_above, a_call_that_fails, added, returned, in_part(False, True),
               *(in_part(accumulate) for accumulate in (None, True, False)),
               *(all_of_it(lambda t: t, 2, accumulate) for accumulate in (None, True, False)),
               all_of_it(lambda t: t, 0), all_of_it(lambda t: t.reshape((64, 4, 16))),
               all_of_it(lambda t: t.view(nl.int32).view(nl.float32))]

    @staticmethod
    def outcome(kernel, options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                got = nki.simulate(kernel, **options)(X)
            except nki.Error as refusal:
                return re.sub(r"instruction \d+", "", str(refusal))
        return [one.tobytes() for one in (got if isinstance(got, tuple) else (got,))]

    def test_as_if_written_at_once(self):
        options = [{"generation": 1}, {"generation": 2}, {"generation": 3}, {"no_poison": True}, {"trace": True}]
        numbers = 0
        for kernel in self.KERNELS:
            for option in options:
                got = self.outcome(kernel, option)
                with mock.patch.object(tiles, "fill", nisa.memset):
                    self.assertTrue(got == self.outcome(kernel, option), (kernel, option))  # too long to print
                numbers += isinstance(got, list)
        self.assertGreater(numbers, 60)
        self.assertTrue((nki.simulate(placed_below)(X) == 3).all() and (nki.simulate(placed_above)(X)[0] == 0).all())
        self.assertTrue(np.signbit(nki.simulate(negative_zeros)(X)[1]).all())

    def test_more_columns_than_products(self):
        """Of a moving tile of several axes, as of one of two."""
        def kernel(x, columns, width):
            total, tile = zeros((64, columns)), nl.load(x)
            nisa.nc_matmul(total, tile, tile.reshape((64, 4, 16))[:, :, :width])
            return stored(total)
        got = nki.simulate(kernel)(X, 32, 8)
        np.testing.assert_array_equal(got, X.T @ X.reshape(64, 4, 16)[:, :, :8].reshape(64, 32))
        for columns, width in ((33, 8), (31, 8), (128, 16)):
            with self.assertRaisesRegex(nki.Error, rf"dst is \[64, {columns}\], and moving .* has {4 * width} columns"):
                nki.simulate(kernel)(X, columns, width)


# ---- functions whose table ends ----

def turned(x, what, dtype=nl.float32):
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    nl.store(out, getattr(nl, what)(nl.load(x, dtype=dtype)))
    return out


def by_instruction(x, op, scale, bias):
    out, tile = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm), nl.load(x)
    column = nl.full((x.shape[0], 1), bias, nl.float32)
    nisa.activation(tile, op, tile, bias=column, scale=scale)  # activation
    nl.store(out, tile)
    return out


class Tables(unittest.TestCase):
    def test_any_number(self):
        for what, exact in (("sin", np.sin), ("cos", np.cos), ("arctan", np.arctan)):
            for most in (1.5, np.pi, 7, 100, 5000):
                x = np.linspace(-most, most, 128 * 64, dtype=np.float32).reshape(128, 64)
                got, said = told(lambda: nki.simulate(turned)(x, what))
                np.testing.assert_allclose(got, exact(x.astype(np.float64)), atol=6e-5, err_msg=f"{what} to {most}")
                self.assertEqual(said, [])
        for what in ("sin", "cos"):  # more turns than float32 takes off exactly: wrong, and said
            for most, warned in ((390000, 0), (1e6, 1), (1e8, 1)):
                x = np.linspace(-most, most, 128 * 64, dtype=np.float32).reshape(128, 64)
                got, said = told(lambda: nki.simulate(turned)(x, what))
                self.assertEqual(len(said), warned, (what, most))
                if not warned:
                    np.testing.assert_allclose(got, getattr(np, what)(x.astype(np.float64)), atol=6e-5)
        x = np.linspace(-30, 30, 64 * 64, dtype=np.float32).reshape(64, 64)
        np.testing.assert_allclose(nki.simulate(turned)(x, "tan") * np.cos(x), np.sin(x), atol=3e-4)
        x = np.array([[0.0, np.inf, -np.inf, np.nan]], np.float32)
        np.testing.assert_allclose(nki.simulate(turned)(x, "arctan"), np.arctan(x), atol=1e-6)
        self.assertTrue(np.isnan(np.asarray(nki.simulate(turned)(x, "sin"))[0, 1:]).all())
        x = np.arange(-64, 64, dtype=np.int32).reshape(8, 16)
        np.testing.assert_allclose(nki.simulate(turned)(x, "cos", nl.float32), np.cos(x), atol=6e-5)

    def test_remainders(self):
        """Of multiples, too, whose quotient may round to the wrong side; of numbers and columns on either side."""
        def kernel(x, y, what, of):
            out, a, b = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm), nl.load(x), nl.load(y)
            sides = {"tiles": (a, b), "number": (a, 0.75), "column": (a, b[:, 0:1]), "of a number": (7.5, b)}[of]
            nl.store(out, getattr(nl, what)(*sides))
            return out
        x = np.concatenate([np.round(RANDOM.normal(size=(64, 64)) * 40) / 4, RANDOM.normal(size=(64, 64)) * 100])
        y = np.concatenate([RANDOM.choice([-1, 1], (64, 64)) * RANDOM.integers(1, 9, (64, 64)) / 4,
                            RANDOM.normal(size=(64, 64)) * 3 + 0.01])
        x, y = x.astype(np.float32), y.astype(np.float32)
        for what, exact in (("mod", np.mod), ("fmod", np.fmod)):
            for of, want in (("tiles", exact(x, y)), ("number", exact(x, 0.75)), ("column", exact(x, y[:, 0:1])),
                             ("of a number", exact(7.5, y))):
                got = nki.simulate(kernel)(x, y, what, of)
                far = np.abs(got - want) > 2e-5 * np.abs(x) + 1e-3 * np.abs(y) + 1e-5
                self.assertLessEqual(far.sum(), 2, (what, of))  # next to a multiple either end is right
                whole = slice(0, 64)  # quarters: exactly
                if of in ("tiles", "number"):
                    np.testing.assert_array_equal(got[whole], want[whole], (what, of))

    def test_remainders_of_large_quotients(self):
        def kernel(x, what):
            out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
            nl.store(out, getattr(nl, what)(nl.load(x), 3.0))
            return out
        whole = np.arange(8000000, 8000064, dtype=np.float32).reshape(8, 8)
        for what in ("mod", "fmod"):
            got, said = told(lambda: nki.simulate(kernel)(whole, what))
            np.testing.assert_array_equal(got, np.mod(whole, 3))
            self.assertEqual(said, [])
            self.assertEqual(len(told(lambda: nki.simulate(kernel)(whole * 16, what))[1]), 1)

    def test_masks(self):
        def kernel(x):
            out, tile = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.load(x)
            i, j = ol.arange(64)[:, None], ol.arange(64)[None, :]
            made = ol.full((64, 64), -1.0, dtype=np.float32)
            made[i, j] = ol.cos(tile, mask=i + j < 40)
            ol.store(out, made)
            return out
        x, keep = 9 * X, np.add.outer(np.arange(64), np.arange(64)) < 40
        np.testing.assert_allclose(older.simulate_kernel(older.jit(kernel), x), np.where(keep, np.cos(x), -1), atol=6e-5)

    def test_the_instruction_warns(self):
        x = np.full((16, 8), 3.0, np.float32)
        for op, scale, bias, warned in ((nl.sin, 1.0, 0.0, False), (nl.sin, -1.0, 0.0, False), (nl.sin, 3.0, 0.0, True),
                                        (nl.sin, 1.0, 1.5, True), (nl.sin, 3.0, -7.0, False), (nl.arctan, 0.5, 0.0, False),
                                        (nl.arctan, 1.0, 0.0, True), (nl.exp, 9.0, 0.0, False)):
            _, said = told(lambda: nki.simulate(by_instruction)(x, op, scale, bias))
            self.assertEqual([at for at, _ in said], [line("activation")] * warned, (op, scale, bias))
        _, said = told(lambda: nki.simulate(by_instruction)(x, nl.sin, 3.0, 0.0))
        self.assertRegex(said[0][1], r"^sin: an argument lies outside of \[-3.1416, 3.1416\], where the Scalar engine's")
        with warnings.catch_warnings(record=True) as once:
            warnings.simplefilter("default")
            for scale in (3.0, 4.0, 5.0):
                nki.simulate(by_instruction)(x, nl.sin, scale, 0.0)
        self.assertEqual([one.lineno for one in once], [line("activation")])

    def test_what_nothing_has_written_is_not_told(self):
        def kernel(x):
            out = nl.ndarray((64, 32), nl.float32, buffer=nl.shared_hbm)
            nisa.memset(nl.ndarray((64, 64), nl.float32, address=(0, 0)), 100.0)
            tile = nl.ndarray((64, 64), nl.float32, address=(0, 0))
            nisa.memset(tile[:, 0:32], 1.0)
            nisa.activation(tile, nl.sin, tile)
            nl.store(out, tile[:, 0:32])
            return out
        got, said = told(lambda: nki.simulate(kernel)(X))
        np.testing.assert_allclose(got, np.sin(1.0), atol=1e-4)
        self.assertEqual(said, [])


# ---- results that have names ----

def named_results(x):
    """Each is assigned to a part of something, and used again."""
    out, tile = ol.ndarray((8, 64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.load(x)
    whole, columns = ol.ndarray((64, 64), dtype=np.float32), ol.ndarray((64, 4), dtype=np.float32)
    e = ol.exp(tile)
    whole[...] = e
    ol.store(out[0], e + whole)
    most = ol.max(tile, axis=1)
    columns[:, 2] = most
    ol.store(out[1], tile * most + columns[:, 2:3])
    blocks = ol.ndarray((2, ol.par_dim(64), 64), dtype=ol.bfloat16)
    s = ol.square(tile)
    blocks[1] = s  # rounded there, not in s
    ol.store(out[2], s)
    ol.store(out[3], ol.copy(blocks[1], dtype=np.float32))
    product, psum = ol.matmul(tile, tile, transpose_x=True), None
    psum = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.psum)
    product = ol.matmul(tile, tile, transpose_x=True)
    psum[...] = product
    ol.store(out[4], ol.copy(psum) + ol.copy(product))
    i, j = ol.arange(64)[:, None], ol.arange(64)[None, :]
    part = ol.add(tile, 1.0, mask=i < 32)
    whole[i, j] = part
    ol.store(out[5], whole)
    rows = ol.ndarray((128, 64), dtype=np.float32)
    row = ol.load(x[3:4, :])
    rows[5:6, :] = row
    ol.store(out[6], ol.multiply(tile, row.broadcast_to((64, 64))))
    ol.store(out[7, 0:1], rows[5:6, :])
    ol.store(out[7, 1:64], tile[1:64])
    return out


def assigned_in_a_function(x):
    def put(place, value):
        place[...] = value
        return value
    out, tile = ol.ndarray((2, 64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.load(x)
    there, kept = ol.ndarray((64, 64), dtype=np.float32), []
    ol.store(out[0], put(there, ol.sqrt(tile)))
    kept.append(ol.sqrt(tile))
    there[...] = kept[0]
    ol.store(out[1], kept[0])
    return out


def without_a_name(x):
    out, tile = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.load(x)
    there = ol.ndarray((64, 64), dtype=np.float32)
    blocks = ol.ndarray((2, ol.par_dim(64), 64), dtype=np.float32)
    there[...] = ol.exp(tile)
    blocks[0] = ol.exp(there)
    blocks[1, :, 0:32] = ol.log(blocks[0, :, 0:32])
    ol.store(out[:, 0:32], blocks[1, :, 0:32])
    ol.store(out[:, 32:64], there[:, 32:64])
    return out


def product_read_again(x, again):
    out, tile = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.load(x)
    total = ol.zeros((64, 64), dtype=np.float32, buffer=ol.psum)
    for _ in range(2):
        part = ol.matmul(tile, tile, transpose_x=True)
        total += part
    if again:
        part = ol.matmul(tile, tile, transpose_x=True)
        total += part
        ol.store(out, ol.copy(total) + ol.copy(part))
    else:
        ol.store(out, total)
    return out


class Names(unittest.TestCase):
    def test_a_product_that_was_added_is_still_there(self):
        """Those that nobody reads again are added by the array."""
        kernel = older.jit(product_read_again)
        np.testing.assert_allclose(older.simulate_kernel(kernel, X, True), 4 * (X.T @ X), 1e-6)
        np.testing.assert_allclose(older.simulate_kernel(kernel, X, False), 2 * (X.T @ X), 1e-6)
        one = kernel.report.engines["TensorE"]["cycles"], kernel.report.engines["VectorE"]["cycles"]

        def without_names(x, _):
            out, tile = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.load(x)
            total = ol.zeros((64, 64), dtype=np.float32, buffer=ol.psum)
            for _ in range(2):
                total += ol.matmul(tile, tile, transpose_x=True)
            ol.store(out, total)
            return out
        plain = older.jit(without_names)
        older.simulate_kernel(plain, X, False)
        self.assertEqual((plain.report.engines["TensorE"]["cycles"], plain.report.engines["VectorE"]["cycles"]), one)

    def test_a_result_that_was_assigned_is_still_there(self):
        x = X / 4
        product = x.T @ x
        got = older.simulate_kernel(older.jit(named_results), x)
        rounded = nki.tensor(x * x, nl.bfloat16).numpy()
        e, half = np.exp(x), np.arange(64)[:, None] < 32
        want = [2 * e, (x + 1) * x.max(1, keepdims=True), x * x, rounded, 2 * product, np.where(half, x + 1, e), x * x[3],
                np.concatenate([x[3:4], x[1:]])]
        for at, one in enumerate(want):
            np.testing.assert_allclose(got[at], one, 2e-5, err_msg=str(at))
        got = older.simulate_kernel(older.jit(assigned_in_a_function), x)
        np.testing.assert_allclose(got, np.stack([np.sqrt(x)] * 2), 1e-5)

    def test_one_without_a_name_is_not_copied(self):
        kernel = older.jit(without_a_name)
        np.testing.assert_allclose(older.simulate_kernel(kernel, X / 4), np.exp(X / 4), 1e-4)
        self.assertEqual(kernel.report.engines["VectorE"]["cycles"], 0)
        self.assertEqual(kernel.report.engines["GpSimdE"]["cycles"], 0)


# ---- comparisons ----

EQUALS = {  # of a tile: a tile, whose numbers are 1 and 0; of its truth: is it the same object?
    "where": (lambda t: ol.where(t == 2.0, 9.0, t), lambda x: np.where(x == 2, 9, x)),
    "times": (lambda t: t * (t != np.float32(2)), lambda x: x * (x != 2)),
    "column": (lambda t: ol.where(t == ol.copy(t[:, 0:1]), 1.0, 0.0), lambda x: x == x[:, :1]),
    "if": (lambda t: t * 2.0 if t == 2.0 else t, lambda x: x),
    "if not": (lambda t: t * 2.0 if t != 2.0 else t, lambda x: 2 * x),
    "itself": (lambda t: t if t == t and t in [t] and not t != t else t * 0.0, lambda x: x),
    "another": (lambda t: t * 0.0 if t in [ol.copy(t), ol.copy(t[:, 0:8])] or t == ol.copy(t) else t, lambda x: x),
    "nothing": (lambda t: t * 0.0 if t == None or "t" == t or not t else t, lambda x: x),  # noqa: E711
    "remainder": (lambda t: abs(t % 2.0 - 1.0), lambda x: abs(x % 2 - 1)),
}


class Equals(unittest.TestCase):
    def test_tiles_and_truth(self):
        for name, (of, want) in EQUALS.items():
            def kernel(x):
                out = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.shared_hbm)
                ol.store(out, of(ol.load(x)))
                return out
            got = older.simulate_kernel(older.jit(kernel), X)
            np.testing.assert_allclose(got, want(X), 1e-6, err_msg=name)


# ---- what comes back in arguments ----

@nki.jit
def doubled_into(x, out, more=None):
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    if more is not None:
        nl.store(more["there"][1], nl.load(x))


@nki.jit
def doubled(x, out):
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out


class Arguments(unittest.TestCase):
    def test_kernels_that_return_nothing(self):
        for run in (doubled_into, nki.simulate(doubled_into), older.jit(doubled_into.function)):
            out, deep = np.zeros((64, 64), np.float32), {"there": (0, np.zeros((64, 64), np.float32))}
            self.assertIsNone(run(X, out, deep))
            np.testing.assert_array_equal(out, 2 * X)
            np.testing.assert_array_equal(deep["there"][1], X)

    def test_others_leave_their_arguments(self):
        out = np.zeros((64, 64), np.float32)
        np.testing.assert_array_equal(doubled(X, out), 2 * X)
        self.assertFalse(out.any())
        older.simulate_kernel(doubled, X, out)
        np.testing.assert_array_equal(out, 2 * X)

    def test_in_the_format_they_came_in(self):
        given = nki.tensor(np.zeros((64, 64), np.float32), nl.bfloat16)
        doubled_into(X + 1 / 512, given)
        np.testing.assert_array_equal(given.numpy(), 2 * X)
        wide, exact = np.zeros((64, 64)), X + 1e-12
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            doubled_into(exact, wide)
        np.testing.assert_array_equal(wide, 2 * X)
        self.assertTrue((exact == X + 1e-12).all())  # what nothing wrote stays as it was
        numbers = memoryview(array.array("f", [0] * 4096)).cast("B").cast("f", (64, 64))
        doubled_into(X, numbers)
        np.testing.assert_array_equal(np.asarray(numbers), 2 * X)
        fixed = np.zeros((64, 64), np.float32)
        fixed.flags.writeable = False
        doubled_into(X, fixed)
        self.assertFalse(fixed.any())

    def test_torch(self):
        class Tensor:
            def __init__(self, numbers):
                self.array, self.dtype, self.shape = numbers, f"torch.{numbers.dtype.name}", numbers.shape

            def detach(self):
                return self

            cpu = detach

            def numpy(self):
                return self.array

            def copy_(self, other):
                self.array[...] = other.array
        Tensor.__module__ = "torch"
        torch = types.ModuleType("torch")
        torch.from_numpy = Tensor
        with mock.patch.dict(sys.modules, torch=torch):
            out = Tensor(np.zeros((64, 64), np.float32))
            doubled_into(Tensor(X), out)
        np.testing.assert_array_equal(out.array, 2 * X)


if __name__ == "__main__":
    unittest.main()
