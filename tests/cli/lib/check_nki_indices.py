"""Index forms of kernels: rows that a tile of numbers chooses along any axis, beside grids and under masks, slices that
end behind a tensor, arguments that nothing knows, products after a memset.
SPDX-License-Identifier: MIT"""
import itertools
import unittest

import numpy as np

import neuronxcc.nki as older
import neuronxcc.nki.isa as oisa
import neuronxcc.nki.language as ol
import nki
import nki.isa as nisa
import nki.language as nl

RNG = np.random.default_rng(5)
X = RNG.standard_normal((128, 64)).astype(np.float32)
EVEN = 2 * np.arange(50, dtype=np.int32)


def same(case, kernel, want, *args):
    got = np.asarray(nki.simulate(kernel)(*args))
    case.assertTrue(np.array_equal(got.reshape(want.shape), want), f"{kernel.__name__}: {got} is not {want}")


class Chosen(unittest.TestCase):
    def test_grids_beside_rows(self):
        """Grids that go along the tile's partitions, too, as mgrid makes them."""
        def gathers(x):
            out = nl.ndarray((50, 64), x.dtype, buffer=nl.shared_hbm)
            ix, iy = ol.mgrid[0:50, 0:64]
            rows = oisa.iota(2 * ol.arange(50)[:, None], dtype=np.int32)
            tile = oisa.memset(shape=(50, 64), value=-1, dtype=x.dtype)
            oisa.dma_copy(src=x[rows, iy], dst=tile[ix, iy])
            ol.store(out, tile)
            return out

        def scatters_and_adds(x):
            out = nl.ndarray((128, 64), x.dtype, buffer=nl.shared_hbm)
            ix, iy = ol.mgrid[0:50, 0:64]
            tile = ol.load(x[ix, iy])
            rows = oisa.iota(2 * ol.arange(50)[:, None], dtype=np.int32)
            ol.store(out, oisa.memset(shape=(128, 64), value=1, dtype=x.dtype))
            oisa.dma_copy(dst=out[rows, iy], src=tile, dst_rmw_op=np.add)
            return out
        same(self, gathers, X[EVEN], X)
        want = np.ones_like(X)
        want[EVEN] += X[:50]
        same(self, scatters_and_adds, want, X)
        with self.assertRaisesRegex(nki.Error, "maximum is none of its operators"):
            nki.simulate(lambda x: oisa.dma_copy(dst=x, src=x, dst_rmw_op=np.maximum))(X)

    def test_rows_that_differ(self):
        """A grid with other columns in each row, or several numbers in a partition: place by place."""
        def slopes(x, index):
            out = nl.ndarray((50, 8), x.dtype, buffer=nl.shared_hbm)
            i, j = ol.mgrid[0:50, 0:8]
            rows = ol.load(index)
            ol.store(out, ol.load(x[rows, j + i]))
            return out
        i, j = np.mgrid[0:50, 0:8]
        same(self, slopes, X[EVEN[:, None], j + i], X, EVEN[:, None])

        def many(x, index):
            out = nl.ndarray((4, 3, 5), x.dtype, buffer=nl.shared_hbm)
            ol.store(out, ol.load(x[ol.load(index), 2:7]))
            return out
        index = np.int32([[5, 0, 9], [1, 1, 1], [127, 2, 3], [8, 4, 6]])
        same(self, many, X[index, 2:7], X, index)

    def test_along_another_axis(self):
        def second(x, index):
            rows = ol.load(index)
            out = nl.ndarray((50, 64), x.dtype, buffer=nl.shared_hbm)
            ol.store(out, ol.load(x[1, rows]))
            return out

        def written(x, index):
            rows = ol.load(index)
            out = ol.zeros((2, 128, 64), x.dtype, buffer=nl.shared_hbm)
            ol.store(out[1, rows[:, 0]], ol.load(x[0, 0:50]))
            return out

        def columns(x, index):
            out = nl.ndarray((3, 50), x.dtype, buffer=nl.shared_hbm)
            ol.store(out, ol.load(x[0, 4:7, ol.load(index)]))
            return out
        both, index = np.stack([X, X + 1]), EVEN[:, None]
        same(self, second, both[1, EVEN], both, index)
        want = np.zeros_like(both)
        want[1, EVEN] = X[:50]
        same(self, written, want, both, index)
        small = np.int32(np.arange(50)[::-1, None].copy())
        same(self, columns, both[0, 4:7, small[:, 0]].T, both, small)

    def test_backwards(self):
        def flipped(x):
            i, j = ol.arange(128)[:, None], ol.arange(64)[None, :]
            out = ol.ndarray((2, 128, 64), x.dtype, buffer=ol.shared_hbm)
            ol.store(out[0, i, j], ol.load(x[127 - i, j]))
            ol.store(out[1, 127 - i, 63 - j], ol.load(x))
            return out
        same(self, flipped, np.stack([X[::-1], X[::-1, ::-1]]), X)

    def test_masks_cut_rows(self):
        def cut(x, index, odd):
            rows = ol.load(index)
            i, j = ol.arange(50)[:, None], ol.arange(64)[None, :]
            out = ol.zeros((50, 64), x.dtype, buffer=nl.shared_hbm)
            mask = (i < 20) & ((j + i) % 2 == 0 if odd else j < 32)
            ol.store(out[i, j], ol.load(x[rows[i, 0], j], mask=mask), mask=mask)
            return out
        i, j = np.ogrid[0:50, 0:64]
        for odd in (False, True):
            mask = (i < 20) & ((j + i) % 2 == 0 if odd else j < 32)
            same(self, cut, np.where(mask, X[EVEN], 0), X, EVEN[:, None], odd)

    def test_a_number_in_a_tile_and_a_grid(self):
        """An offset that lies in a tile, from either side, of SBUF and of HBM."""
        def moved(x, offsets):
            out, numbers = ol.ndarray((3, 128, 8), x.dtype, buffer=ol.shared_hbm), ol.load(offsets)
            i, j = ol.mgrid[0:128, 0:8]
            tile = ol.load(x)
            ol.store(out[0], oisa.tensor_copy_dynamic_src(tile[i, numbers[0, 1] + j]))
            ol.store(out[1], ol.copy(tile[i, 2 * j + numbers[0, 2]]))
            ol.store(out[2], ol.load(x[i, j * numbers[0, 0]]))
            return out
        want = np.stack([X[:, 4:12], X[:, 6:22:2], X[:, 0:40:5]])
        same(self, moved, want, X, np.int32([[5, 4, 6]]))
        for bad in (lambda x: nl.load(x) * np.ones((128, 64)), lambda x: np.ones((128, 64)) < nl.load(x)):
            with self.assertRaisesRegex(nki.Error, "an array of NumPy's is no tile; .*shared_constant"):
                nki.simulate(bad)(X)

    def test_indices_are_integers(self):
        def halves(x):
            return ol.load(x[ol.load(x[0:4, 0:3]), 0:2])
        with self.assertRaisesRegex(nki.Error, "indices are integers; those of 'result' are float32"):
            nki.simulate(halves)(X)


class Beyond(unittest.TestCase):
    def test_a_mask_cuts_slices(self):
        def blocks(x):
            rows, columns = x.shape
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            i = ol.arange(128)[:, None]
            for t in range(2):
                mask = i + 128 * t < rows
                part = ol.load(x[128 * t:128 * t + 128, 0:columns:2], mask=mask)
                ol.store(out[128 * t:128 * t + 128, 0:columns:2], part, mask=mask)
                ol.store(out[128 * t:128 * t + 128, 1:columns:2], ol.multiply(part, 2.0), mask=mask)
            return out
        x = RNG.standard_normal((200, 20)).astype(np.float32)
        want = x.copy()
        want[:, 1::2] = 2 * x[:, ::2]
        same(self, blocks, want, x)

    def test_a_mask_cuts_numbers(self):
        """A row behind the last one, which a condition of the loop leaves out."""
        def rows(x):
            out = ol.zeros((6, 64), x.dtype, buffer=ol.shared_hbm)
            for n in range(6):
                tile = ol.zeros((1, 64), x.dtype)
                tile[...] = ol.load(x[0:1, n, :], mask=n < x.shape[1])
                ol.store(out[n:n + 1, :], tile)
            return out
        x = X[:4].reshape(1, 4, 64)
        same(self, rows, np.concatenate([x[0], np.zeros((2, 64), np.float32)]), x)

    def test_nothing_else_does(self):
        for body in (lambda x: ol.load(x[64:192]), lambda x: nl.load(x[0:128, 60:70]),
                     lambda x: nisa.dma_copy(nl.ndarray((128, 70), x.dtype), x[:, 0:70]),
                     lambda x: ol.store(x[64:192], ol.load(x)), lambda x: x[0:200].reshape((100, 128)),
                     lambda x: ol.load(x[200])):
            with self.assertRaisesRegex(IndexError, r"(on|of) axis .*check_nki_indices.py, line \d+, generation 2\)"):
                nki.simulate(body)(X)


class Refused(unittest.TestCase):
    def refuses(self, pattern, body):
        with self.assertRaisesRegex(nki.Error, pattern):
            nki.simulate(body)(X)

    def test_what_nothing_knows(self):
        """Left out, these would change results."""
        self.refuses("nl.maximum has no argument 'keepdim'; the nearest is 'keepdims'",
                     lambda x: nl.max(nl.load(x), axis=1, keepdim=True))
        self.refuses("load has no argument 'masks'; the nearest is 'mask'", lambda x: nl.load(x, masks=None))
        self.refuses("nl.exp has no argument 'scale'", lambda x: nl.exp(nl.load(x), scale=2.0))
        self.refuses("nl.softmax computes in float32; what it gives with compute_dtype=bfloat16 is not known",
                     lambda x: nl.softmax(nl.load(x), axis=1, compute_dtype=nl.bfloat16))
        self.refuses("max8 has no argument 'count'", lambda x: oisa.max8(src=ol.load(x), count=4))
        self.refuses("ndarray has no argument 'adress'; the nearest is 'address'",
                     lambda x: nl.ndarray((1, 2), nl.float32, adress=(0, 0)))

    def test_what_changes_nothing(self):
        def kernel(x):
            out = ol.ndarray(x.shape, x.dtype, buffer=ol.shared_hbm, name="out")
            for _ in ol.affine_range(1, precise_schedule=True):
                ol.store(out, oisa.tensor_copy(ol.load(x, name="load"), engine=oisa.vector_engine, name="copy"))
            return out
        same(self, kernel, X, X)

    def test_and_between_comparisons(self):
        i, j = ol.arange(128)[:, None], ol.arange(64)[None, :]
        self.refuses(r"write & for `and`.*check_nki_indices.py, line \d+",
                     lambda x: ol.load(x, mask=(i < 9 and j < 9)))

    def test_numbers_are_no_tiles(self):
        self.refuses("nl.sqrt: 64.0 is no tile; Python computes with numbers", lambda x: nl.sqrt(64.0))
        self.refuses("nl.add: 1, 2 is no tile", lambda x: nl.add(1, 2))
        self.refuses(r"a tile has no 'transpse'.*line \d+", lambda x: nl.load(x).transpse(1, 0))


class Psum(unittest.TestCase):
    def test_a_memset_begins_anew(self):
        """Sums of two rounds in one tile of PSUM, which a memset parts."""
        def rounds(x):
            out = nl.ndarray((2, 64, 64), nl.float32, buffer=nl.shared_hbm)
            tile, total = nl.ndarray(x.shape, x.dtype), nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
            kept = nl.ndarray((64, 64), nl.float32)
            nisa.dma_copy(tile, x)
            for n in range(2):
                nisa.memset(total, 0.0)
                for _ in range(n + 1):
                    nisa.nc_matmul(total, tile, tile)
                nisa.tensor_copy(kept, total)
                nisa.dma_copy(out[n], kept)
            return out
        for generation in (1, 2, 3):
            got = nki.simulate(rounds, generation=generation)(X)
            want = X.T @ X
            self.assertTrue(np.allclose(got, np.stack([want, 2 * want]), rtol=1e-3, atol=1e-3), generation)

    def test_numbers_that_tiles_hold_are_whole(self):
        """A float's bits are no index; nl.gather_flattened takes whole numbers of every format."""
        def row(x, i):
            out = nl.ndarray((1, 64), nl.float32, buffer=nl.shared_hbm)
            nl.store(out, nl.load(x[nl.load(i)]))
            return out

        def turns(x, i):
            out, tile, count = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm), nl.load(x), nisa.register_alloc(0)
            nisa.register_load(count, nl.load(i))
            for _ in nl.dynamic_range(count):
                nisa.tensor_scalar(tile, tile, nl.add, 1.0)
            nl.store(out, tile)
            return out

        def gathered(x, i):
            out = nl.ndarray(i.shape, nl.float32, buffer=nl.shared_hbm)
            nl.store(out, nl.gather_flattened(nl.load(x), nl.load(i)))
            return out
        for dtype in (np.int32, np.uint32, np.int16, np.uint8, np.float32, np.float16):
            i = np.array([[2]], dtype)
            for kernel, want in ((row, X[2:3]), (turns, X + 2)):
                if np.dtype(dtype).kind == "f":
                    with self.assertRaisesRegex(nki.Error, f"is {np.dtype(dtype)} and stands for a whole number: .* cast it"):
                        nki.simulate(kernel)(X, i)
                else:
                    np.testing.assert_allclose(nki.simulate(kernel)(X, i), want, 1e-6)
            i = np.random.default_rng(1).integers(0, 64, (X.shape[0], 7)).astype(dtype)
            if np.dtype(dtype).kind == "f":
                with self.assertRaisesRegex(nki.Error, "indices is float"):
                    nki.simulate(gathered)(X, i)
            else:
                np.testing.assert_array_equal(nki.simulate(gathered)(X, i), np.take_along_axis(X, i.astype(int), 1))
        with self.assertRaisesRegex(nki.Error, "4294967295|-1"):
            nki.simulate(gathered)(X, np.full((X.shape[0], 1), -1, np.int32))

    def test_both_operands_of_nl(self):
        def kernel(x):
            tile = ol.load(x)
            out = ol.ndarray((64, 64), nl.float32, buffer=ol.shared_hbm)
            ol.store(out, ol.subtract(ol.matmul(tile, tile, transpose_x=True),
                                      ol.matmul(tile, ol.multiply(tile, 2.0), transpose_x=True)))
            return out
        self.assertTrue(np.allclose(nki.simulate(kernel)(X), -(X.T @ X), rtol=1e-3, atol=1e-3))


class Language(unittest.TestCase):
    def test_conditions_and_values_spread(self):
        def chosen(x, column, row):
            out, x = nl.ndarray((4, 128, 64), x.dtype, buffer=nl.shared_hbm), nl.load(x)
            column, row = nl.load(column), nl.load(row)
            nl.store(out[0], nl.where(nl.greater(column, 0.0), x, 0.0))
            nl.store(out[1], nl.where(nl.greater(x, 0.0), x, column))
            nl.store(out[2], nl.where(nl.greater(row, 0.0), 1.0, x))
            nl.store(out[3], nl.where(nl.greater(column, 0.0), x, row))
            return out
        column, row = X[:, :1] - 0.1, X[:1] + 0.1
        want = np.stack([np.where(column > 0, X, 0), np.where(X > 0, X, column), np.where(row > 0, 1, X),
                         np.where(column > 0, X, row)]).astype(np.float32)
        same(self, chosen, want, X, column, row)

    def test_keywords_of_the_first_release(self):
        """sbuf.view(dtype, shape), of which nothing in the file says what sbuf is."""
        source = """
@nki.jit
def kernel(x):
    tile, out = sbuf.view(dtype=x.dtype, shape=x.shape), hbm.view(x.dtype, x.shape)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
        there = {"nki": nki, "nisa": nisa}
        exec(source, there)
        same(self, there["kernel"].function, X, X)
        self.assertNotIn("psum", there)
        there = {"nki": nki, "nisa": nisa, "nl": nl, "sbuf": 3}
        exec(source.replace("hbm.view", "nl.hbm.view").replace("sbuf.view", "nl.sbuf.view"), there)
        self.assertEqual((there["sbuf"], "hbm" in there), (3, False))
        same(self, there["kernel"].function, X, X)

    def test_version(self):
        self.assertRegex(nki.__version__, r"^0\.\d+\.\d+$")


class Older(unittest.TestCase):
    def test_places_of_the_largest(self):
        def replaced(x):
            n, m = x.shape
            out, where = (ol.ndarray(s, d, buffer=ol.shared_hbm) for s, d in (((n, m), x.dtype), ((n, 8), np.uint32)))
            data, index = ol.load(x), ol.ndarray((n, 8), np.uint32)
            i, j = ol.mgrid[0:n, 0:8]
            ol.store(out, oisa.nc_match_replace8(dst_idx=index[i, j], data=data, vals=oisa.max8(src=data), imm=-9.0))
            ol.store(where, index)
            return out, where
        out, where = nki.simulate(replaced)(X)
        order = np.argsort(-X, axis=1, kind="stable")[:, :8]
        want = X.copy()
        np.put_along_axis(want, order, -9.0, 1)
        self.assertTrue(np.array_equal(where, order))
        self.assertTrue(np.array_equal(out, want))

    def test_cumulative(self):
        def sums(x, first):
            out, made = ol.ndarray(x.shape, x.dtype, buffer=ol.shared_hbm), ol.ndarray(x.shape, x.dtype)
            command = oisa.reduce_cmd.reset_reduce if first is None else oisa.reduce_cmd.load_reduce
            oisa.tensor_scalar_cumulative(src=ol.load(x), dst=made, op0=np.multiply, op1=np.add, imm0=2.0, imm1=first,
                                          reduce_cmd=command)
            ol.store(out, made)
            return out
        x = np.ones((128, 8), np.float32)
        same(self, sums, 2 * x.cumsum(1), x, None)
        same(self, sums, 2 * x.cumsum(1) + 3, x, 3.0)

    def test_many_rows_turned(self):
        def turned(x, masked):
            rows, columns = x.shape
            out = ol.zeros((columns, rows), x.dtype, buffer=ol.shared_hbm)
            i, j = ol.arange(columns)[:, None], ol.arange(rows)[None, :]
            mask = ol.arange(rows)[:, None] < 300 if masked else None
            ol.store(out[i, j], ol.load_transpose2d(x, mask=mask), mask=j < 300 if masked else None)
            return out
        x = RNG.standard_normal((400, 30)).astype(np.float32)
        same(self, turned, np.ascontiguousarray(x.T), x, False)
        same(self, turned, np.where(np.arange(400) < 300, x.T, 0), x, True)

    def test_two_rows_at_once(self):
        """perf_mode by the name of an older release; K is twice the partitions."""
        def product(a, b):
            out = ol.ndarray((16, 64), ol.float32, buffer=ol.shared_hbm)
            a, b = (ol.load(v) for v in (a, b))
            ol.store(out, oisa.nc_matmul(a, b, perf_mode="double_row_gen3"))
            return out
        a, b = (nki.tensor(RNG.integers(-4, 5, (128, 2, n)).astype(np.float32), "float8_e4m3") for n in (16, 64))
        want = np.einsum("kri,krj->ij", *(np.asarray(v.numpy(), np.float32) for v in (a, b)))
        same(self, product, want, a, b)

    def test_choices_are_a_module(self):
        from neuronxcc.nki.isa.constants import dge_mode
        self.assertIs(dge_mode, oisa.dge_mode)
        self.assertIs(older.isa.constants.engine, oisa.engine)

def into(place, value):
    """What of a tile of nines is, of which places of a tile are given a value that is made of x [4, 8]."""
    def kernel(x):
        out = nl.ndarray((4, 8), x.dtype, buffer=nl.shared_hbm)
        tile, w = nl.load(x), nl.full((4, 8), 9.0, x.dtype)
        key = (np.arange(4)[:, None], place)
        value(w, tile, key)
        nl.store(out, w)
        return out
    return kernel


class WithoutAPattern(unittest.TestCase):
    """Steps backwards, and places that no steps lead to, of tiles."""

    def test_assignments(self):
        x = X[:4, :8]
        mask = (np.arange(4)[None, :] < 2) & (np.arange(4)[:, None] >= 0)
        nine = np.full((4, 8), 9, np.float32)
        values = {
            "part of a row": (lambda w, t, key: w.__setitem__(key, t[:, 0:4]), x[:, :4]),
            "a column": (lambda w, t, key: w.__setitem__(key, t[:, 2:3]), x[:, 2:3]),
            "a column of its own": (lambda w, t, key: w.__setitem__(key, nl.copy(t[:, 2:3])), x[:, 2:3]),
            "a row": (lambda w, t, key: w.__setitem__(key, t[0:1, 0:4]), x[:1, :4]),
            "steps": (lambda w, t, key: w.__setitem__(key, t[:, 1:8:2]), x[:, 1:8:2]),
            "a number": (lambda w, t, key: w.__setitem__(key, 3.0), 3),
            "a result": (lambda w, t, key: w.__setitem__(key, nl.add(t[:, 0:4], 1.0)), x[:, :4] + 1),
            "places": (lambda w, t, key: w.__setitem__(key, t[key] + 1.0), None),
            "negated": (lambda w, t, key: w.__setitem__(key, -t[:, 0:4]), -x[:, :4]),
        }
        for place in (5 - np.arange(4)[None, :], np.array([[0, 1, 5, 2]])):
            for name, (value, want) in values.items():
                w = nine.copy()
                w[:, place[0]] = x[:, place[0]] + 1 if want is None else want
                with self.subTest(name, place=place):
                    same(self, into(place, value), w, x)
            w = nine.copy()
            w[:, place[0, :2]] = x[:, :2] + 1
            same(self, into(place, lambda w, t, key: w.__setitem__(key, nl.add(t[:, 0:4], 1.0, mask=mask))), w, x)
            w = nine.copy()
            w[:, place[0]] += x[:, place[0]]
            same(self, into(place, added), w, x)

    def test_stores(self):
        """Places of a tile into those of a tensor; and under a mask that leaves over what steps backwards."""
        def kernel(x):
            out = nl.ndarray((2, 4, 8), x.dtype, buffer=nl.shared_hbm)
            tile, w = nl.load(x), nl.zeros((4, 8), x.dtype)
            key = (np.arange(4)[:, None], np.array([[0, 1, 5, 2]]))
            ol.store(out[0], tile)
            ol.store(out[0, key[0], key[1]], tile[key[0], 7 - key[1]])
            ol.store(out[0, key[0], key[1] - 0], tile[key])
            back = np.array([[3, 2, 1, 8]])
            w[key[0], back] = ol.load(x[key[0], back], mask=(back < 8) & (key[0] >= 0))
            ol.store(out[1], w)
            return out
        x = X[:4, :8]
        same(self, kernel, np.stack([x, np.where(np.isin(np.arange(8), (1, 2, 3)), x, 0)]), x)

    def test_seven_axes(self):
        """More axes than a view has, though they follow each other: written, and added to."""
        def grids(*sizes):
            return [ol.arange(n).reshape([n if a == axis else 1 for a in range(len(sizes))])
                    for axis, n in enumerate(sizes)]

        def kernel(x):
            out = ol.ndarray((2, 4, 8, 8, 8), np.float32, buffer=ol.shared_hbm)
            p, dy, dx, hy, hx, wy, wx = grids(4, 3, 2, 3, 2, 3, 2)
            t, o = (ol.ndarray((ol.par_dim(4),) + n, np.float32, buffer=ol.sbuf) for n in ((4, 4, 4), (8, 8, 8)))
            t[...] = ol.load(x)
            o[...] = 0
            o[p, 2 * dy + dx, 2 * hy + hx, 2 * wy + wx] = t[p, dy + dx, hy + hx, wy + wx]
            o[p, 2 * dy + dx, 2 * hy + hx, 2 * wy + wx] += t[p, dy + 1 - dx, hy + hx, wy + wx]
            ol.store(out[0], o)
            o[p, 2 * dy + dx, 2 * hy + hx, 2 * wy + wx] = t[p, dy + dx, hy + hx, wy + wx]
            ol.store(out[1], o)
            return out

        x = np.random.default_rng(3).standard_normal((4, 4, 4, 4)).astype(np.float32)
        want = np.zeros((2, 4, 8, 8, 8), np.float32)
        for dy, dx, hy, hx, wy, wx in itertools.product(range(3), range(2), range(3), range(2), range(3), range(2)):
            there = (slice(None), 2 * dy + dx, 2 * hy + hx, 2 * wy + wx)
            want[1][there] = x[:, dy + dx, hy + hx, wy + wx]
            want[0][there] = want[1][there] + x[:, dy + 1 - dx, hy + hx, wy + wx]
        np.testing.assert_array_equal(nki.simulate(kernel)(x), want)

    def test_a_tile_to_itself(self):
        """All is read before any of it is written."""
        def within(w, t, key):
            w[...] = t
            w[key] = w[key[0], 2 + np.arange(4)[None, :]]
        want = X[:4, :8].copy()
        want[:, [5, 4, 3, 2]] = X[:4, 2:6]
        same(self, into(5 - np.arange(4)[None, :], within), want, X[:4, :8])

    def test_what_is_refused(self):
        """Shapes that differ; and writes into what is a copy, which would be lost."""
        def named(w, t, key):
            part = w[key]
            part += 1.0
        back, anywhere = 5 - np.arange(4)[None, :], np.array([[0, 1, 5, 2]])
        for why, place, value in (
                ("does not spread", back, lambda w, t, key: w.__setitem__(key, t)),
                ("does not spread", back, lambda w, t, key: w.__setitem__(key, t[:, 0:2])),
                ("would be lost", back, lambda w, t, key: nisa.memset(w[key], 1.0)),
                ("would be lost", back, lambda w, t, key: nisa.tensor_copy(w[key], t[:, 0:4])),
                ("would be lost", back, lambda w, t, key: nisa.dma_copy(w[key], t[:, 0:4])),
                ("would be lost", back, lambda w, t, key: w[key].__setitem__(slice(0, 4), t[:, 0:4])),
                ("would be lost", back, named),
                ("only transfers", anywhere, lambda w, t, key: nisa.tensor_copy(w[key], t[:, 0:4])),
                ("only transfers", anywhere, lambda w, t, key: nisa.tensor_copy(w[:, 0:4], t[key]))):
            with self.assertRaisesRegex((nki.Error, ValueError), why):
                nki.simulate(into(place, value))(X[:4, :8])

    def test_nothing(self):
        """Views of no elements, in any shape."""
        def nothing(w, t, key):
            for tensor in (w, t):
                self.assertEqual(tensor[:, 0:0].reshape((4, 0, 2)).shape, (4, 0, 2))
                with self.assertRaisesRegex(nki.Error, "any size"):
                    tensor[:, 0:0].reshape((0, -1))
        same(self, into(np.arange(4)[None, :], nothing), np.full((4, 8), 9, np.float32), X[:4, :8])


def added(w, t, key):
    w[key] += t[key]


if __name__ == "__main__":
    unittest.main()
