"""Masks of NKI's older spelling against NumPy: boxes, triangles, diagonals, stripes, checkers, single places, nothing
at all; for loads, stores, instructions, reductions, products. What a mask does not name stays as it was.

SPDX-License-Identifier: MIT
"""
import unittest

import numpy as np

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

ROWS, WIDTH, LEFT = 128, 24, -77.0

# Of the indices of a tile, as NumPy and kernels see them.
MASKS = {
    "below a sum": lambda i, j: i + j < 40,
    "causal": lambda i, j: j <= i,
    "causal, far": lambda i, j: i + 3 >= 5 * j,
    "strictly above": lambda i, j: j > i,
    "diagonal": lambda i, j: i == j,
    "band": lambda i, j: (i - j < 3) & (j - i < 2),
    "box": lambda i, j: (i < 100) & (j >= 3),
    "box within a quadrant": lambda i, j: (i >= 5) & (i < 77) & (j < 9),
    "quadrants": lambda i, j: (i >= 64) & (j >= 0),
    "third quadrant on": lambda i, j: (i >= 32) & (j < 7),
    "rows alone": lambda i, j: i < 70,
    "columns alone": lambda i, j: j < 11,
    "every third column": lambda i, j: j % 3 == 1,
    "uneven columns": lambda i, j: (j == 1) | (j == 2) | (j == 7),
    "odd rows": lambda i, j: i % 2 == 1,
    "checkers": lambda i, j: (i + j) % 2 == 0,
    "two boxes": lambda i, j: ((i < 10) & (j < 3)) | ((i > 90) & (j > 20)),
    "one place": lambda i, j: (i == 37) & (j == 5),
    "nothing": lambda i, j: i + j < 0,
    "everything": lambda i, j: i + j >= 0,
}


def indices():
    return nl.mgrid[0:ROWS, 0:WIDTH]


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).integers(-9, 10, shape or (ROWS, WIDTH)).astype(np.float32)


# What a kernel computes of tiles x, y and a column c under a mask, and what NumPy does.
ELEMENTWISE = {
    "nl.add": (lambda x, y, c, m: nl.add(x, y, mask=m), lambda x, y, c: x + y),
    "nl.multiply by a column": (lambda x, y, c, m: nl.multiply(x, c, mask=m), lambda x, y, c: x * c),
    "nl.subtract from a number": (lambda x, y, c, m: nl.subtract(3.0, x, mask=m), lambda x, y, c: 3 - x),
    "nl.copy": (lambda x, y, c, m: nl.copy(x, mask=m), lambda x, y, c: x),
    "nl.negative": (lambda x, y, c, m: nl.negative(x, mask=m), lambda x, y, c: -x),
    "nl.abs": (lambda x, y, c, m: nl.abs(x, mask=m), lambda x, y, c: abs(x)),
    "nl.floor": (lambda x, y, c, m: nl.floor(nl.multiply(x, 0.5), mask=m), lambda x, y, c: np.floor(x / 2)),
    "nl.where": (lambda x, y, c, m: nl.where(nl.greater(x, y), x, y, mask=m), lambda x, y, c: np.maximum(x, y)),
    "nl.full": (lambda x, y, c, m: nl.full((ROWS, WIDTH), 4.0, nl.float32, mask=m), lambda x, y, c: 0 * x + 4),
    "in bfloat16": (lambda x, y, c, m: nl.add(x, y, dtype=nl.bfloat16, mask=m), lambda x, y, c: x + y),
    "tensor_tensor": (lambda x, y, c, m: nisa.tensor_tensor(x, y, np.subtract, mask=m), lambda x, y, c: x - y),
    "tensor_scalar": (lambda x, y, c, m: nisa.tensor_scalar(x, np.multiply, c, False, np.add, 2.0, mask=m),
                      lambda x, y, c: x * c + 2),
    "scalar_tensor_tensor": (lambda x, y, c, m: nisa.scalar_tensor_tensor(
        data=x, op0=np.multiply, operand0=c, op1=np.add, operand1=y, mask=m), lambda x, y, c: x * c + y),
    "activation": (lambda x, y, c, m: nisa.activation(nl.relu, x, bias=c, scale=2.0, mask=m),
                   lambda x, y, c: np.maximum(2 * x + c, 0)),
    "tensor_copy": (lambda x, y, c, m: nisa.tensor_copy(x, mask=m), lambda x, y, c: x),
    "memset": (lambda x, y, c, m: nisa.memset((ROWS, WIDTH), 5.0, nl.float32, mask=m), lambda x, y, c: 0 * x + 5),
    "affine_select": (lambda x, y, c, m: nisa.affine_select(indices()[1] < 4, x, 1.5, mask=m),
                      lambda x, y, c: np.where(np.arange(WIDTH) < 4, x, 1.5)),
    "iota": (lambda x, y, c, m: nisa.iota(indices()[0] * 3 + indices()[1], nl.float32, mask=m),
             lambda x, y, c: 3.0 * np.arange(ROWS)[:, None] + np.arange(WIDTH)),
    "range_select": (lambda x, y, c, m: nisa.range_select(
        on_true_tile=x, comp_op0=np.greater_equal, comp_op1=np.less, bound0=nl.multiply(c, 0.0),
        bound1=nl.full((ROWS, 1), 9.0, nl.float32), mask=m),
        lambda x, y, c: np.where(np.arange(WIDTH) < 9, x, np.float32(-3.4028235e38))),
    "nc_match_replace8": (lambda x, y, c, m: nisa.nc_match_replace8(x, nl.full((ROWS, 8), 50.0, nl.float32), 1.0,
                                                                    mask=m), lambda x, y, c: x),
    "two masks, one after the other": (lambda x, y, c, m: nl.add(nl.multiply(x, y, mask=m), c, mask=m),
                                       lambda x, y, c: x * y + c),
}


# Reductions along the free axis of elements that a mask names.
REDUCED = {
    "nl.sum": (lambda x, m: nl.sum(x, axis=1, mask=m), np.sum),
    "nl.max": (lambda x, m: nl.max(x, axis=[1], mask=m), np.max),
    "nl.min": (lambda x, m: nl.min(x, axis=1, mask=m), np.min),
    "nl.prod": (lambda x, m: nl.prod(nl.sign(x), axis=1, mask=m), lambda x, **o: np.prod(np.sign(x), **o)),
    "nl.mean": (lambda x, m: nl.mean(x, axis=1, mask=m), np.mean),
    "nl.var": (lambda x, m: nl.var(x, axis=1, mask=m), np.var),
    "tensor_reduce": (lambda x, m: nisa.tensor_reduce(np.add, x, axis=(1,), negate=True, mask=m),
                      lambda x, **o: -np.sum(x, **o)),
}


def over(reduce, x, where):
    """The twin of a reduction: row by row."""
    out = np.full((ROWS, 1), LEFT)
    for row in range(ROWS):
        if where[row].any():
            out[row] = reduce(x[row][where[row]].astype(np.float64))
    return out


def elementwise(function, mask, space, dtype=nl.float32):
    def kernel(x, y, c):
        out = nl.ndarray((ROWS, WIDTH), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.full((ROWS, WIDTH), LEFT, dtype, buffer=space)
        i, j = indices()
        tile[i, j] = function(nl.load(x), nl.load(y), nl.load(c), mask(i, j))
        nl.store(out, nl.copy(tile, dtype=nl.float32))
        return out
    return kernel


def run(kernel, *arrays):
    return nki.simulate_kernel(nki.jit(kernel), *arrays)


def place_of(mask):
    i, j = np.mgrid[0:ROWS, 0:WIDTH]
    return np.broadcast_to(mask(i, j), (ROWS, WIDTH))


def under_every_mask(test):
    def each(self):
        for name, mask in MASKS.items():
            with self.subTest(mask=name):
                test(self, mask, place_of(mask))
    return each


class Masks(unittest.TestCase):
    @under_every_mask
    def test_elementwise(self, mask, where):
        x, y, c = numbers(), numbers(seed=2), numbers(ROWS, 1, seed=3)
        for name, (function, twin) in ELEMENTWISE.items():
            for space, dtype in ((nl.sbuf, nl.float32), (nl.psum, nl.float32), (nl.sbuf, nl.bfloat16)):
                if dtype == nl.bfloat16 and name == "iota":
                    continue  # its numbers are too large for bfloat16
                with self.subTest(name=name, space=space, dtype=dtype):
                    got, want = run(elementwise(function, mask, space, dtype), x, y, c), twin(x, y, c)
                    if dtype == nl.bfloat16 and name == "range_select":
                        want = np.where(want < -1e38, -np.inf, want)
                    np.testing.assert_array_equal(got, np.where(where, want, LEFT))

    @under_every_mask
    def test_reductions(self, mask, where):
        x = numbers(seed=4)
        for name, (function, twin) in REDUCED.items():
            def kernel(x):
                out = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.shared_hbm)
                total = nl.full((ROWS, 1), LEFT, nl.float32)
                i, j = indices()
                total[...] = function(nl.load(x), mask(i, j))
                nl.store(out, total)
                return out
            with self.subTest(name=name):
                np.testing.assert_allclose(run(kernel, x), over(twin, x, where), rtol=1e-5, atol=1e-5)

    @under_every_mask
    def test_the_eight_largest_and_where_they_stand(self, mask, where):
        x = np.random.default_rng(13).permuted(np.tile(np.arange(WIDTH, dtype=np.float32), (ROWS, 1)), axis=1)

        def kernel(x):
            out = nl.full((2, ROWS, 8), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m, tile = mask(i, j), nl.load(x)
            top, places = (nl.full((ROWS, 8), LEFT, nl.float32) for _ in range(2))
            top[...] = nisa.max8(src=tile, mask=m)
            places[...] = nisa.nc_find_index8(data=tile, vals=top, mask=m)
            nl.store(out[0], top)
            nl.store(out[1], places)
            return out
        top, places = run(kernel, x)
        for row in range(ROWS):
            named = np.flatnonzero(where[row])
            order = named[np.argsort(-x[row][named])][:8]
            want = np.full(8, -np.inf if len(named) else LEFT)
            want[:len(order)] = x[row][order]
            np.testing.assert_array_equal(top[row], want)
            np.testing.assert_array_equal(places[row][:len(order)], order)

    @under_every_mask
    def test_across_partitions(self, mask, where):
        x = numbers(seed=5)
        def kernel(x):
            out = nl.ndarray((1, WIDTH), dtype=nl.float32, buffer=nl.shared_hbm)
            total = nl.full((1, WIDTH), LEFT, nl.float32)
            i, j = indices()
            total[...] = nisa.tensor_partition_reduce(np.add, nl.load(x), mask=mask(i, j))
            nl.store(out, total)
            return out
        want = np.where(where.any(0), np.where(where, x, 0).sum(0), LEFT)
        np.testing.assert_array_equal(run(kernel, x)[0], want)

    @under_every_mask
    def test_loads_and_stores(self, mask, where):
        x = numbers()
        def kernel(x):
            out = nl.full((5, ROWS, WIDTH), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m, tile = mask(i, j), nl.full((ROWS, WIDTH), LEFT, nl.float32)
            tile[i, j] = nl.load(x[i, j], mask=m)
            nl.store(out[0], tile)
            nl.store(out[1, i, j], nl.load(x), mask=m)
            nl.store(out[2], 3.5, mask=m)
            nisa.dma_copy(dst=out[3], src=x, mask=m)
            tile[...] = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            nisa.dma_copy(dst=tile, src=x[i, j], mask=m)
            nl.store(out[4], tile)
            return out
        got = run(kernel, x)
        for n, want in enumerate((x, x, 3.5, x, x)):
            with self.subTest(number=n):
                np.testing.assert_array_equal(got[n], np.where(where, want, LEFT))

    @under_every_mask
    def test_indices_outside_of_a_tensor_are_not_looked_at(self, mask, where):
        x = numbers()
        def kernel(x):
            """Of the row below and the column to the right, where there are such; in HBM and in a tile."""
            out = nl.full((3, ROWS, WIDTH), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m = mask(i, j) & (i + 1 < ROWS) & (j + 1 < WIDTH)
            tile = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            tile[i, j] = nl.load(x[i + 1, j + 1], mask=m)
            nl.store(out[0], tile)
            whole, far = nl.load(x), mask(i, j) & (j + 1 < WIDTH)
            tile[i, j] = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            tile[i, j] = nl.add(whole[i, j + 1], 1.0, mask=far)
            nl.store(out[1], tile)
            nl.store(out[2, i + 1, j + 1], whole, mask=m)
            return out
        got, far = run(kernel, x), np.full((ROWS + 1, WIDTH + 1), LEFT)
        far[:-1, :-1] = x
        inside = where & (np.arange(WIDTH) + 1 < WIDTH)
        both = inside & (np.arange(ROWS)[:, None] + 1 < ROWS)
        np.testing.assert_array_equal(got[0], np.where(both, far[1:, 1:], LEFT))
        np.testing.assert_array_equal(got[1], np.where(inside, far[:-1, 1:] + 1, LEFT))
        np.testing.assert_array_equal(got[2][1:, 1:], np.where(both, x, LEFT)[:-1, :-1])
        self.assertTrue((got[2][0] == LEFT).all() and (got[2][:, 0] == LEFT).all())

    @under_every_mask
    def test_sums_beside_a_result(self, mask, where):
        x = numbers(seed=6)
        def kernel(x):
            out = nl.full((2, ROWS, WIDTH + 1), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m, tile = mask(i, j), nl.load(x)
            made, total = (nl.full((ROWS, n), LEFT, nl.float32) for n in (WIDTH, 1))
            made[...] = nisa.activation_reduce(nl.square, tile, reduce_op=np.add, reduce_res=total, mask=m)
            nl.store(out[0, :, 0:WIDTH], made)
            nl.store(out[0, :, WIDTH:], total)
            made, total = (nl.full((ROWS, n), LEFT, nl.float32) for n in (WIDTH, 1))
            made[...] = nisa.tensor_scalar_reduce(data=tile, op0=np.add, operand0=2.0, reduce_op=np.add,
                                                  reduce_res=total, mask=m)
            nl.store(out[1, :, 0:WIDTH], made)
            nl.store(out[1, :, WIDTH:], total)
            return out
        for got, want in zip(run(kernel, x), (x * x, x + 2)):
            np.testing.assert_array_equal(got[:, :WIDTH], np.where(where, want, LEFT))
            np.testing.assert_array_equal(got[:, WIDTH:], over(np.sum, want, where))

    @under_every_mask
    def test_softmax_and_norms(self, mask, where):
        x = numbers(seed=7) / np.float32(4)
        w = numbers(ROWS, WIDTH, seed=8)
        def kernel(x, w):
            out = nl.full((3, ROWS, WIDTH), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m, tile, weight = mask(i, j), nl.load(x), nl.load(w)
            for n, f in enumerate((lambda: nl.softmax(tile, axis=1, mask=m),
                                   lambda: nl.rms_norm(tile, weight, axis=[1], n=WIDTH, mask=m),
                                   lambda: nl.layer_norm(tile, gamma=weight, axis=[1], mask=m))):
                made = nl.full((ROWS, WIDTH), LEFT, nl.float32)
                made[...] = f()
                nl.store(out[n], made)
            return out
        got, want = run(kernel, x, w), np.full((3, ROWS, WIDTH), LEFT)
        for row in range(ROWS):
            named = where[row]
            y, v = x[row][named].astype(np.float64), w[row][named]
            if named.any():
                want[0, row, named] = np.exp(y - y.max()) / np.exp(y - y.max()).sum()
                want[1, row, named] = y / np.sqrt((y * y).sum() / WIDTH + 1e-6) * v
                want[2, row, named] = (y - y.mean()) / np.sqrt(y.var() + 1e-5) * v
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3)

    @under_every_mask
    def test_products(self, mask, where):
        a, b = numbers(64, ROWS, seed=9), numbers(64, WIDTH, seed=10)
        def kernel(a, b):
            out = nl.full((4, ROWS, WIDTH), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m, left, right = mask(i, j), nl.load(a), nl.load(b)
            tile = nl.full((ROWS, WIDTH), LEFT, nl.float32, buffer=nl.psum)
            tile[...] = nisa.nc_matmul(left, right, mask=m)
            nl.store(out[0], nl.copy(tile))
            tile = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            tile[...] = nl.matmul(left, right, transpose_x=True, mask=m)
            nl.store(out[1], tile)
            total = nl.full((ROWS, WIDTH), LEFT, nl.float32, buffer=nl.psum)
            total += nisa.nc_matmul(left, right, mask=m)
            nl.store(out[2], nl.copy(total))
            k, n = nl.mgrid[0:64, 0:WIDTH]
            nl.store(out[3], nl.copy(nisa.nc_matmul(left, right, mask=mask(k, n))))
            return out
        got, product = run(kernel, a, b), a.T @ b
        np.testing.assert_array_equal(got[0], np.where(where, product, LEFT))
        np.testing.assert_array_equal(got[1], np.where(where, product, LEFT))
        np.testing.assert_array_equal(got[2], np.where(where, product + LEFT, LEFT))
        np.testing.assert_array_equal(got[3], a.T @ np.where(where[:64], b, 0))

    @under_every_mask
    def test_transposes(self, mask, where):
        x = numbers(seed=11)
        def kernel(x):
            out = nl.full((4, WIDTH, ROWS), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m, tile = mask(i, j), nl.load(x)
            identity = nl.load(nl.shared_constant(np.identity(ROWS), dtype=nl.float32))
            for n, f in enumerate((lambda: nisa.nc_transpose(tile, mask=m), lambda: nl.transpose(tile, mask=m),
                                   lambda: nl.load_transpose2d(x, mask=m),
                                   lambda: nisa.nc_matmul(tile, identity, is_transpose=True, mask=np.transpose(m)))):
                made = nl.full((WIDTH, ROWS), LEFT, nl.float32)
                made[...] = f()
                nl.store(out[n], made)
            return out
        for n, got in enumerate(run(kernel, x)):
            with self.subTest(number=n):
                np.testing.assert_array_equal(got, np.where(where, x, LEFT).T)

    @under_every_mask
    def test_what_is_written_where_it_lies(self, mask, where):
        x, y = numbers(), numbers(seed=12)
        def kernel(x, y):
            out = nl.full((5, ROWS, WIDTH), LEFT, nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            m, a, b = mask(i, j), nl.load(x), nl.load(y)
            tile = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            tile += nl.copy(a, mask=m)
            nl.store(out[0], tile)
            tile = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            for k in nl.affine_range(2):
                tile[...] = nl.loop_reduce(a, op=np.add, loop_indices=[k], mask=m)
            nl.store(out[1], tile)
            nl.atomic_rmw(out[2], value=a, op=np.add, mask=m)
            tile = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            nisa.tensor_copy_predicated(src=a, dst=tile, predicate=nl.greater(a, b, dtype=nl.uint8), mask=m)
            nl.store(out[3], tile)
            tile = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            nisa.tensor_copy_predicated(src=a, dst=tile, predicate=nl.greater(a, b, dtype=nl.uint8), mask=m,
                                        reverse_pred=True)
            nl.store(out[4], tile)
            return out
        got = run(kernel, x, y)
        for n, want in enumerate((np.where(where, LEFT + x, LEFT), np.where(where, LEFT + x + x, LEFT),
                                  np.where(where, LEFT + x, LEFT), np.where(where & (x > y), x, LEFT),
                                  np.where(where & (x <= y), x, LEFT))):
            with self.subTest(number=n):
                np.testing.assert_array_equal(got[n], want)

    def test_a_scan_of_each_rows_first_elements(self):
        x, mask = numbers(), MASKS["causal"]

        def kernel(x):
            out = nl.ndarray((ROWS, WIDTH), nl.float32, buffer=nl.shared_hbm)
            i, j = indices()
            made = nl.full((ROWS, WIDTH), LEFT, nl.float32)
            made[...] = nisa.tensor_tensor_scan(nl.full((ROWS, WIDTH), 1.0, nl.float32), nl.load(x), 0.0, np.multiply,
                                                np.add, mask=mask(i, j))
            nl.store(out, made)
            return out
        np.testing.assert_array_equal(run(kernel, x), np.where(place_of(mask), np.cumsum(x, 1), LEFT))

    def test_more_axes(self):
        x = numbers(64, 4, 6)

        def kernel(x):
            out = nl.full((64, 4, 6), LEFT, nl.float32, buffer=nl.shared_hbm)
            p, a, b = nl.mgrid[0:64, 0:4, 0:6]
            tile = nl.full((64, 4, 6), LEFT, nl.float32)
            tile[p, a, b] = nl.square(nl.load(x), mask=(a + b < p) & (p < 50))
            nl.store(out[p, a, b], tile[p, a, b], mask=a != b)
            return out
        p, a, b = np.mgrid[0:64, 0:4, 0:6]
        np.testing.assert_array_equal(run(kernel, x), np.where((a + b < p) & (p < 50) & (a != b), x * x, LEFT))

    def test_refusals(self):
        x = numbers()

        def counts(x):
            i, j = indices()
            nl.copy(nisa.bn_stats(nl.load(x), mask=j <= i))

        def too_small(x):
            i, j = nl.mgrid[0:ROWS, 0:5]
            nl.copy(nl.copy(nl.load(x), mask=j <= i))

        def a_tile(x):
            tile = nl.load(x)
            nl.copy(nl.copy(tile, mask=nl.greater(tile, 0.0)))
        for kernel, why in ((counts, "bn_stats"), (too_small, r"\[128, 5\]"), (a_tile, "nl.where")):
            with self.subTest(why=why), self.assertRaisesRegex(nki.Error, why):
                run(kernel, x)


if __name__ == "__main__":
    unittest.main()
