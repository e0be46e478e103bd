"""Kernels that would be wrong on the chip, and what is said of them: the tile or tensor, its shape, the line that made it
and the line that reads or writes it, the generation; and beside each kind kernels that are right.

Lines are found by marks at their ends: `# made a`, `# used a`. SPDX-License-Identifier: MIT
"""
import re
import unittest

import numpy as np

import neuronxcc.nki as older
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as oisa
import neuronxcc.nki.language as ol
import nki
import nki.isa as nisa
import nki.language as nl

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
with open(__file__, encoding="utf-8") as source:
    LINES = source.read().split("\n")


def line(mark):
    found = [n for n, text in enumerate(LINES, 1) if text.endswith("# " + mark) or "# " + mark + "," in text]
    assert len(found) == 1, (mark, found)
    return f"check_nki_refusals.py, line {found[0]}"


class Case(unittest.TestCase):
    def refused(self, run, *parts, made=None, used=None, shape=None, generation=2):
        with self.assertRaises(nki.Error) as caught:
            run()
        text = str(caught.exception)
        self.assertNotIn("\n", text)
        for part in parts + (f"generation {generation})",):
            self.assertIn(part, text)
        if shape:
            self.assertRegex(text, rf"'\w+' is \w+ {re.escape(str(shape))}, made in")
        if made:
            self.assertIn(f"made in {line(made)}", text)
        if used:
            self.assertIn(f"({line(used)}", text)
        return text


def sbuf(shape, dtype=nl.float32, **more):
    return nl.ndarray(shape, dtype, buffer=nl.sbuf, **more)


def shared(shape, dtype=nl.float32, name="out"):
    return nl.ndarray(shape, dtype, buffer=nl.shared_hbm, name=name)


# ---- HBM that nothing has written ----

def private(x):
    h, out = nl.ndarray((128, 64), nl.int32, buffer=nl.private_hbm, name="h"), shared((128, 64), nl.int32)  # made private
    t = sbuf((128, 64), nl.int32)
    nisa.dma_copy(dst=t, src=h)  # used private
    nisa.dma_copy(dst=out, src=t)
    return out


def part_of_shared(x):
    t = sbuf((128, 64))
    mid = shared((256, 64), name="mid")
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=mid[0:128], src=t)
    nisa.dma_copy(dst=t, src=mid[100:228])  # used part_of_shared
    return x


def every_other_column(x):
    t = sbuf((128, 64))
    mid = nl.ndarray((128, 128), nl.float32, buffer=nl.hbm, name="mid")
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=mid[:, ::2], src=t)
    nisa.dma_copy(dst=t, src=mid[:, ::2])
    nisa.dma_copy(dst=t[:, 0:3], src=mid[:, 4:7])  # used every_other_column
    return x


def row_by_index(x, rows):
    mid, t, index = shared((200, 64), name="mid"), sbuf((128, 64)), sbuf((4, 1), nl.int32)
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=mid[0:128], src=t)
    nisa.dma_copy(dst=index, src=rows)
    nisa.dma_copy(dst=t[0:4], src=mid.ap([[64, 4], [1, 64]], 0, vector_offset=index))  # used row_by_index
    out = shared((4, 64))
    nisa.dma_copy(dst=out, src=t[0:4])
    return out


@older.jit
def old_load(a):
    mid = ol.ndarray(a.shape, dtype=a.dtype, buffer=ol.private_hbm)
    out = ol.ndarray(a.shape, dtype=a.dtype, buffer=ol.shared_hbm)
    ol.store(mid[0:100], value=ol.load(a[0:100]))
    ol.store(out, value=ol.load(mid))  # used old_load
    return out


def register_of_nothing(x):
    n, t, out = sbuf((1, 1), nl.int32, name="n"), sbuf((128, 64)), shared((128, 64))
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=out, src=t)
    return out[0:nisa.register_alloc(n)]  # used register


def through_hbm(x):
    t, mid, out = sbuf((128, 64)), nl.ndarray((64, 128), nl.float32, buffer=nl.private_hbm), shared((128, 64))
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=mid.reshape((128, 64)), src=t)
    nisa.dma_copy(dst=out[:, 1::2], src=mid.reshape((128, 64))[:, ::2])
    nisa.dma_copy(dst=out[:, ::2], src=mid.reshape((128, 64))[:, 1::2])
    return out


class Hbm(Case):
    def test_what_nothing_has_written(self):
        run = nki.simulate
        self.refused(lambda: run(private)(X), "dma_copy: src reads row 0, element 0 of 'h', which nothing has written",
                     shape=[128, 64], made="made private", used="used private")
        self.refused(lambda: run(part_of_shared, generation=3)(X), "reads row 128, element 0 of 'mid'",
                     shape=[256, 64], used="used part_of_shared", generation=3)
        self.refused(lambda: run(every_other_column)(X), "reads row 0, element 5 of 'mid'", shape=[128, 128],
                     used="used every_other_column")
        rows = np.array([[3], [127], [0], [128]], np.int32)
        self.refused(lambda: run(row_by_index)(X, rows), "reads row 128, element 0 of 'mid'", used="used row_by_index")
        np.testing.assert_array_equal(run(row_by_index)(X, rows % 128), X[rows[:, 0] % 128])
        self.refused(lambda: older.simulate_kernel(old_load, X), "row 100, element 0", used="used old_load")
        self.refused(lambda: run(register_of_nothing)(X), "'n', which nothing has written", shape=[1, 1],
                     used="used register")

    def test_what_has_been_written(self):
        want = X.reshape(128, 32, 2)[:, :, ::-1].reshape(128, 64)
        np.testing.assert_array_equal(nki.simulate(through_hbm)(X), want)
        self.assertEqual(nki.simulate(private, no_poison=True)(X).shape, (128, 64))  # whatever lies there


# ---- results ----

def half(x):
    out = shared((128, 128))  # made half
    t = nl.load(x)
    nl.store(out[:, :64], t)
    return out


def nothing(x):
    return x, nl.ndarray((3, 4, 5), nl.int8, buffer=nl.shared_hbm, name="none")  # made nothing


def but_one(x):
    out, t = nl.ndarray((2, 128, 64), nl.bfloat16, buffer=nl.shared_hbm, name="pair"), sbuf((128, 64), nl.bfloat16)
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=out[0], src=t)
    nisa.dma_copy(dst=out[1, 0:127], src=t[0:127])
    nisa.dma_copy(dst=out[1, 127:128, 0:63], src=t[127:128, 0:63])
    return {"a": [out[0], out]}


@older.jit
def masked_store(a):
    out = ol.ndarray((130, 64), dtype=a.dtype, buffer=ol.shared_hbm)
    for tile in ol.affine_range(2):
        i, j = ol.mgrid[0:128, 0:64]
        ol.store(out[tile * 128 + i, j], value=ol.load(a[i, j]), mask=(tile * 128 + i < 129))
    return out


class Results(Case):
    def test_parts_that_nothing_has_written(self):
        self.refused(lambda: nki.simulate(half)(X), "of the result 'out' nothing has written 8192 of 16384 elements, "
                     "all within [0:128, 64:128]", "returned by half", shape=[128, 128])
        self.refused(lambda: nki.simulate(nothing)(X), "result 'none' nothing has written 60 of 60 elements;",
                     "returned by nothing", shape=[3, 4, 5], made="made nothing")
        self.refused(lambda: nki.simulate(but_one)(X), "1 of 16384 elements, all within [1:2, 127:128, 63:64]",
                     shape=[2, 128, 64])
        self.refused(lambda: older.simulate_kernel(masked_store, X), "64 of 8320 elements, all within [129:130, 0:64]",
                     "returned by masked_store")
        self.refused(lambda: nki.simulate(half)[2](X), "8192 of 16384")


# ---- several programs ----

def neighbour(x, wait=0):
    mid, out, i = shared((2, 128, 64), name="mid"), shared((2, 128, 64)), nl.program_id(0)
    other, t = shared((2, 64), name="other"), sbuf((128, 64))
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=float(i + 1))
    nisa.dma_copy(dst=mid[i], src=t)
    if wait:
        nisa.core_barrier(mid if wait == 1 else other, (0, 1))
    nisa.dma_copy(dst=t, src=mid[1 - i])  # used neighbour
    nisa.dma_copy(dst=out[i], src=t)
    return out


def looks_back(x):
    """The second program reads what the first one wrote."""
    mid, out, i, t = shared((128, 64), name="mid"), shared((2, 128, 64)), nl.program_id(0), sbuf((128, 64))
    if i == 0:
        nisa.dma_copy(dst=t, src=x)
        nisa.dma_copy(dst=mid, src=t)  # wrote looks_back
    nisa.dma_copy(dst=t, src=mid)  # used looks_back
    nisa.dma_copy(dst=out[i], src=t)
    return out


def overlap(x, rows, step):
    out, t, i = shared((128, 64)), sbuf((rows, 64)), nl.program_id(0)
    nisa.memset(dst=t, value=float(i))
    nisa.dma_copy(dst=out[step * i:step * i + rows], src=t)  # used overlap
    return out


def combs(x, both):
    """Program i writes every second column from the i-th on; with `both` the last one of the other's, too."""
    out, t, i = shared((128, 64)), sbuf((128, 32)), nl.program_id(0)
    nisa.memset(dst=t, value=float(i))
    nisa.dma_copy(dst=out[:, i::2], src=t)
    if both and i:
        nisa.dma_copy(dst=out[:, 62:63], src=t[:, 0:1])  # used combs
    return out


def in_place(x):
    """Program 1 changes the input that program 0 reads."""
    t, i = sbuf((128, 64)), nl.program_id(0)
    nisa.memset(dst=t, value=1.0)
    if i == 0:
        nisa.dma_copy(dst=t, src=x)
    else:
        nisa.dma_copy(dst=x[5:6], src=t[0:1])  # used in_place
    return x


def alike(x):
    """Both write all of it, the same bytes, and read their own."""
    out, t, i = shared((128, 64)), sbuf((128, 64)), nl.program_id(0)
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=out, src=t)
    nisa.dma_copy(dst=t, src=out)
    return out


def many_tiles(x):
    """More transfers than any list remembers, then one that meets the first of the other program's."""
    out, t, i = shared((2, 3000, 64)), sbuf((1, 64)), nl.program_id(0)
    nisa.memset(dst=t, value=float(i))
    for k in range(3000):
        nisa.dma_copy(dst=out[i, k], src=t)
    if i:
        nisa.dma_copy(dst=out[0, 1], src=t)
    return out


def turns(x):
    """Write, wait, write what the other one wrote before: ordered. Without the second barrier the read is a race."""
    mid, out, i, t = shared((2, 128, 64), name="mid"), shared((2, 128, 64)), nl.program_id(0), sbuf((128, 64))
    nisa.memset(dst=t, value=float(i))
    nisa.dma_copy(dst=mid[i], src=t)
    nisa.core_barrier(mid, (0, 1))
    nisa.memset(dst=t, value=float(i + 10))
    nisa.dma_copy(dst=mid[1 - i], src=t)
    nisa.core_barrier(mid, (0, 1))
    nisa.dma_copy(dst=t, src=mid[i])
    nisa.dma_copy(dst=out[i], src=t)
    return out


class Programs(Case):
    def test_reads_of_what_another_writes(self):
        self.refused(lambda: nki.simulate(neighbour)[2](X), "of 'mid'", shape=[2, 128, 64], used="used neighbour")
        self.refused(lambda: nki.simulate(neighbour)[2](X, 2), "of 'mid'", used="used neighbour")
        out = nki.simulate(neighbour)[2](X, 1)
        np.testing.assert_array_equal(out, np.stack([2 * X, X]))
        for programs in (2, 16):
            text = self.refused(lambda: nki.simulate(looks_back)[programs](X) if programs == 2 else
                                nki.simulate(lambda x: looks_back(x))[programs](X),
                                "program 1 reads row 0, element 0 of 'mid', which program 0", "no core_barrier orders them",
                                shape=[128, 64], used="used looks_back")
            self.assertIn(f"program 0 ({line('wrote looks_back')}) writes", text)

    def test_writes_of_two(self):
        for programs, rows, step in ((2, 96, 32), (3, 64, 32), (16, 9, 8)):
            self.refused(lambda: nki.simulate(overlap)[programs](X, rows, step), "program 1 writes row "
                         f"{step}, element 0 of 'out', which program 0", "writes with other bytes", shape=[128, 64],
                         used="used overlap")
        out = nki.simulate(overlap)[16](X, 8, 8)
        np.testing.assert_array_equal(out[:, 0], np.arange(128) // 8)
        self.refused(lambda: nki.simulate(combs)[2](X, True), "program 1 writes row 0, element 62 of 'out'",
                     used="used combs")
        np.testing.assert_array_equal(nki.simulate(combs)[2](X, False), np.arange(64) % 2 + 0 * X)
        self.refused(lambda: nki.simulate(in_place)[2](X.copy()), "program 1 writes row 5, element 0 of 'argument 0', "
                     "which program 0", "reads, and no core_barrier", used="used in_place")
        self.refused(lambda: nki.simulate(many_tiles)[2](X), "program 1 writes row 1, element 0 of 'out'")

    def test_what_is_ordered_or_alike(self):
        for programs in (2, 16):
            np.testing.assert_array_equal(nki.simulate(alike)[programs](X), X)
        np.testing.assert_array_equal(nki.simulate(turns)[2](X)[:, 0, 0], [11, 10])


# ---- the older names: tiles of which a part is unwritten ----

@older.jit
def old_exp(a):
    out = ol.ndarray(a.shape, dtype=a.dtype, buffer=ol.shared_hbm)
    u = ol.ndarray((128, 64), dtype=np.float32, buffer=ol.sbuf, name="u")  # made old_exp
    u[0:64] = ol.load(a[0:64])
    ol.store(out, value=ol.exp(u))  # used old_exp
    return out


@older.jit
def old_columns(a):
    out, u = ol.ndarray(a.shape, dtype=a.dtype, buffer=ol.shared_hbm), ol.ndarray((128, 64), dtype=np.float32, name="u")
    u[:, 0:63] = ol.copy(ol.load(a)[:, 0:63])
    ol.store(out, value=ol.add(u, ol.load(a)))  # used old_columns
    return out


@older.jit
def old_psum(a):
    out, p = ol.ndarray((64, 64), dtype=np.float32, buffer=ol.shared_hbm), ol.ndarray(
        (64, 128), dtype=np.float32, buffer=ol.psum, name="p")
    p[:, 0:64] = oisa.nc_matmul(ol.load(a), ol.load(a))
    ol.store(out, value=ol.copy(p[:, 32:96]))  # used old_psum
    return out


@older.jit
def old_untouched(a):
    out, u = ol.ndarray((128, 1), dtype=a.dtype, buffer=ol.shared_hbm), ol.ndarray((128, 64), dtype=np.float32, name="u")
    ol.store(out, value=ol.max(u, axis=1))  # used old_untouched
    return out


@older.jit
def old_right(a):
    out, u = ol.ndarray((64, 64), dtype=a.dtype, buffer=ol.shared_hbm), ol.ndarray((128, 64), dtype=np.float32)
    u[0:64] = ol.load(a[0:64])
    ol.store(out, value=ol.exp(u)[0:64])
    return out


# ---- and what a mask left out ----

@older.jit
def forgot_the_mask(a):
    out = ol.ndarray((128, 1), dtype=a.dtype, buffer=ol.shared_hbm)
    i, j = ol.arange(128)[:, None], ol.arange(64)[None, :]
    ol.store(out, value=ol.max(ol.load(a[i, j], mask=j < 40), axis=[1]))  # used forgot
    return out


@older.jit
def masked(a, what):
    out = ol.ndarray((128, 64), dtype=a.dtype, buffer=ol.shared_hbm)
    i, j = ol.arange(128)[:, None], ol.arange(64)[None, :]
    t = ol.load(a)
    if what == "exp":
        ol.store(out, value=ol.exp(t, mask=j < 60))
    elif what == "add":
        ol.store(out, value=ol.add(t, t, mask=i < 100))
    elif what == "triangle":
        ol.store(out, value=oisa.tensor_copy(ol.load(a[i, j], mask=i >= j)))
    elif what == "sum":
        ol.store(out[:, 0:1], value=ol.sum(ol.multiply(t, 2.0, mask=j % 3 < 1), axis=1))
    elif what == "product":
        ol.store(out[0:64], value=ol.matmul(ol.load(a[i, j], mask=i < 100), t, transpose_x=True))
    return out


@older.jit
def kept_the_mask(a):
    out = ol.ndarray((128, 64), dtype=a.dtype, buffer=ol.shared_hbm)
    i, j = ol.arange(128)[:, None], ol.arange(64)[None, :]
    t = ol.load(a[i, j], mask=j < 40)
    top = ol.max(t, axis=[1], mask=j < 40)
    ol.store(out, value=ol.copy(ol.load(a)))
    ol.store(out[i, j], value=ol.add(ol.exp(t, mask=j < 40), top, mask=j < 40), mask=j < 40)
    return out


@older.jit
def last_rows(a):
    """Sums and products of rows that a mask left out stay there, and are not stored."""
    rows, width = a.shape
    out, gram = (ol.ndarray(s, dtype=np.float32, buffer=ol.shared_hbm) for s in ((rows, 1), (40, 40)))
    for k in ol.affine_range((rows + 127) // 128):
        i, j = ol.arange(128)[:, None], ol.arange(width)[None, :]
        t = ol.load(a[k * 128 + i, j], mask=(k * 128 + i < rows))
        total = ol.sum(ol.square(t), axis=[1])
        ol.store(out[k * 128 + i, 0], value=ol.rsqrt(total), mask=(k * 128 + i < rows))
    i, j = ol.arange(128)[:, None], ol.arange(64)[None, :]
    t = ol.load(a[i, j], mask=j < 40)
    m, n = ol.arange(64)[:, None], ol.arange(64)[None, :]
    ol.store(gram[m, n], value=ol.copy(oisa.nc_matmul(t, t)), mask=(m < 40) & (n < 40))
    return out, gram


class Older(Case):
    def test_unwritten_tiles(self):
        self.refused(lambda: older.simulate_kernel(old_exp, X), "which nothing has written", "'u'", shape=[128, 64],
                     made="made old_exp", used="used old_exp")
        self.refused(lambda: older.simulate_kernel(old_columns, X), "partition 0, element 63", "'u' is float32",
                     used="used old_columns")
        self.refused(lambda: older.simulate_kernel(old_psum, X), "'p'", used="used old_psum")
        self.refused(lambda: older.simulate_kernel(old_untouched, X), "'u'", used="used old_untouched")
        np.testing.assert_allclose(older.simulate_kernel(old_right, X / 100), np.exp(X[0:64] / 100), rtol=1e-4)

    def test_what_a_mask_left_out(self):
        a = np.full((128, 64), -100, np.int32)
        self.refused(lambda: older.simulate_kernel(forgot_the_mask, a), "which nothing has written", used="used forgot")
        for what in ("exp", "add", "triangle", "sum", "product"):
            self.refused(lambda: older.simulate_kernel(masked, X / 100, what), "which nothing has written")

    def test_masks_that_are_kept(self):
        a = X / 10000
        want = a.copy()
        want[:, :40] = np.exp(a[:, :40]) + a[:, :40].max(1, keepdims=True)
        np.testing.assert_allclose(older.simulate_kernel(kept_the_mask, a), want, rtol=1e-4)
        b = np.concatenate([X, X + 1, X[:3]]) / 10000 + 1
        out, gram = older.simulate_kernel(last_rows, b)
        np.testing.assert_allclose(out[:, 0], 1 / np.sqrt((b * b).sum(1)), rtol=1e-3)
        np.testing.assert_allclose(gram, b[:128, :40].T @ b[:128, :40], rtol=1e-4)


# ---- addresses ----

@older.jit
def shared_address(p, q, base):
    """Two tensors of block tiles at one address are one memory: the second load wins."""
    out = ol.ndarray(p.shape, dtype=p.dtype, buffer=ol.shared_hbm)
    a, b = (ol.ndarray((2, ol.par_dim(128), 64), dtype=np.float32, buffer=ncc.sbuf.mod_alloc(
        base_addr=base, num_free_tiles=(2,))) for _ in "ab")
    for m in ol.affine_range(2):
        a[m] = ol.load(p[m])
        b[m] = ol.load(q[m])
        ol.store(out[m], value=oisa.tensor_tensor(a[m], b[m], op=ol.subtract))
    return out


@older.jit
def own_function(p, q, base):
    out = ol.ndarray(p.shape, dtype=p.dtype, buffer=ol.shared_hbm)
    a = ol.ndarray((2, ol.par_dim(128), 64), dtype=np.float32, buffer=ncc.sbuf.alloc(lambda n, p, s: (0, base)))
    for m in ol.affine_range(2):
        a[m] = ol.load(p[m])
    a[1] = ol.load(q[1])
    for m in ol.affine_range(2):
        ol.store(out[m], value=ol.copy(a[m]))
    return out


@older.jit
def one_bank(p, q):
    out = ol.ndarray((2, 64, 64), dtype=p.dtype, buffer=ol.shared_hbm)
    a, b = (ol.ndarray((1, ol.par_dim(64), 64), dtype=np.float32, buffer=ncc.psum.mod_alloc(base_bank=0, base_addr=0))
            for _ in "ab")
    a[0] = oisa.nc_matmul(ol.load(p[0]), ol.load(p[0]))
    b[0] = oisa.nc_matmul(ol.load(q[0]), ol.load(q[0]))
    ol.store(out[0], value=ol.copy(a[0]))
    ol.store(out[1], value=ol.copy(b[0]))
    return out


@older.jit
def in_the_way(p, full, again=False):
    """c lies where a is to lie, and goes elsewhere; big leaves no room for it if it is used again."""
    out = ol.ndarray((128, 64), dtype=p.dtype, buffer=ol.shared_hbm)
    c = ol.ndarray((128, 64), dtype=np.float32)
    c[...] = ol.load(p[0])
    if full:
        big = ol.zeros((128, ol.tile_size.sbuf_fmax - 64), dtype=np.float32)
    a = ol.ndarray((128, 64), dtype=np.float32, buffer=ncc.sbuf.mod_alloc(base_addr=0), name="a")
    a[...] = ol.load(p[1])
    ol.store(out, value=ol.add(a, c))
    if again:
        big += 1.0
    return out


class Addresses(Case):
    def test_zero_is_one(self):
        p, q = (np.random.default_rng(i).random((2, 128, 64), np.float32) for i in (0, 1))
        for base in (0, 1024):
            out = older.simulate_kernel(shared_address, p, q, base)
            np.testing.assert_array_equal(out, np.zeros_like(out))
            out = older.simulate_kernel(own_function, p, q, base)
            np.testing.assert_array_equal(out, np.stack([q[1], q[1]]))
        out = older.simulate_kernel(one_bank, p, q)
        np.testing.assert_array_equal(out[0], out[1])
        np.testing.assert_allclose(out[0], q[0].T @ q[0], rtol=1e-5)

    def test_a_tile_in_the_way(self):
        for full in (False, True):
            np.testing.assert_array_equal(older.simulate_kernel(in_the_way, np.stack([X, 2 * X]), full), 3 * X)
        self.refused(lambda: older.simulate_kernel(in_the_way, np.stack([X, X]), True, True),
                     "does not fit: with 'a', 256 bytes, made in line", "'tile' 256 (line", "room for 0")


# ---- where engines begin, and which shapes agree ----

@older.jit
def begins(a, what):
    out, t = ol.ndarray((32, 64), dtype=a.dtype, buffer=ol.shared_hbm), ol.load(a)
    u = ol.ndarray((128, 64), dtype=a.dtype, buffer=ol.sbuf, name="u")
    if what == "copy from":
        ol.store(out, value=ol.copy(t[16:48]))
    elif what == "copy to":
        u[16:48] = ol.copy(t[0:32])
    elif what == "operand":
        ol.store(out, value=ol.exp(t[1:33]))
    elif what == "assign":
        u[0:32] = t[95:127]
    elif what == "second":
        ol.store(out, value=ol.add(t[0:32], t[8:40]))
    elif what == "transfers":
        u[16:48] = ol.load(a[0:32])
        half = ol.ndarray((128, 64), dtype=ol.bfloat16, buffer=ol.sbuf)
        half[47:79] = ol.load(a[0:32])  # casts, too
        ol.store(out, value=half[47:79])
        ol.store(out[0:31], value=u[16:47])
    return out


def first_partition(x, dst, src, rows):
    t, u, out = sbuf((128, 64), name="t"), sbuf((128, 64), name="u"), shared((rows, 64))
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_copy(dst=u[dst:dst + rows], src=t[src:src + rows])
    nisa.dma_copy(dst=out, src=u[dst:dst + rows])
    return out


def transfer(x, to, of):
    t, out = sbuf(to, name="t"), shared(to)
    nisa.dma_copy(dst=t, src=x.reshape(of))
    nisa.dma_copy(dst=out, src=t)
    return out


def within_hbm(x, to, of):
    out = shared(to)
    nisa.dma_copy(dst=out, src=x.reshape(of))
    return out


@older.jit
def stored(a, to):
    out = ol.ndarray(to, dtype=a.dtype, buffer=ol.shared_hbm)
    ol.store(out, value=ol.load(a))
    return out


class Places(Case):
    def test_where_engines_begin(self):
        for what, tile, first in (("copy from", "result", 16), ("copy to", "u", 16), ("operand", "result", 1),
                                  ("assign", "result", 95), ("second", "result", 8)):
            self.refused(lambda: older.simulate_kernel(begins, X, what), f"[32, 64] of '{tile}' [128, 64] begins at "
                         f"partition {first}; engines begin at partition 0, 32, 64 or 96")
        out = older.simulate_kernel(begins, X, "transfers")
        np.testing.assert_array_equal(out[0:31], X[0:31])
        np.testing.assert_allclose(out[31], X[31], rtol=2**-8)
        for dst, src, rows in ((16, 0, 32), (0, 8, 16), (32, 0, 64), (32, 64, 33), (32, 32, 65)):
            self.refused(lambda: nki.simulate(first_partition)(X, dst, src, rows), "partitions of", "begin at",
                         shape=[128, 64])
        for dst, src, rows in ((96, 0, 32), (0, 64, 64), (64, 32, 32), (0, 0, 128)):
            np.testing.assert_array_equal(nki.simulate(first_partition)(X, dst, src, rows), X[src:src + rows])

    def test_shapes_of_transfers(self):
        for to, of in (((64, 128), (128, 64)), ((128, 64), (8192,)), ((1, 8192), (128, 64)), ((128, 4, 16), (128, 16, 4)),
                       ((128, 64), (2, 64, 64))):
            self.refused(lambda: nki.simulate(transfer)(X, to, of), f"dst 't' has the shape {list(to)}, src 'argument 0' "
                         f"{list(of)}; they agree in the number of elements only: reshape one of them")
        for to, of in (((128, 64), (1, 128, 1, 64)), ((128, 4, 16), (128, 64)), ((128, 64), (128, 2, 32)),
                       ((128, 4, 16), (128, 2, 2, 16))):
            np.testing.assert_array_equal(nki.simulate(transfer)(X, to, of), X.reshape(to))
        self.refused(lambda: nki.simulate(within_hbm)(X, (64, 128), (128, 64)), "dst 'out' has the shape [64, 128]")
        np.testing.assert_array_equal(nki.simulate(within_hbm)(X, (2, 64, 64), (128, 64)), X.reshape(2, 64, 64))
        self.refused(lambda: older.simulate_kernel(stored, X, (64, 128)), "store: dst", "[64, 128]")
        np.testing.assert_array_equal(older.simulate_kernel(stored, X, (128, 8, 8)), X.reshape(128, 8, 8))


class Generations(Case):
    def test_are_counted_as_the_caller_does(self):
        for generation in (0, 4, -1):
            with self.assertRaises(nki.Error) as caught:
                nki.simulate(half, generation=generation)(X)
            self.assertEqual(str(caught.exception), f"generation is {generation}; there are 1, 2 and 3, for Trainium1, 2 "
                             "and 3")


if __name__ == "__main__":
    unittest.main()
