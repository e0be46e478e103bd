"""Which tiles have room together: kernels that keep more tiles than fit, of which those that live at the same time do;
others, which are refused; random kernels beside a twin that adds up what lives. SPDX-License-Identifier: MIT"""
import unittest

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl
import neuronxcc.nki as older
import neuronxcc.nki.isa as oisa
import neuronxcc.nki.language as ol

SBUF = 224 * 1024  # bytes of a partition of Trainium2
BANK = 2048


def refused(test, call, *says):
    with test.assertRaises(nki.Error) as caught:
        call()
    for words in says:
        test.assertIn(words, str(caught.exception))


# ---- block tensors ----

@older.jit
def one_alive(v, n):
    """Block tiles for all n iterations, of which each uses its own."""
    out = ol.ndarray(v.shape, dtype=np.float32, buffer=ol.shared_hbm)
    x, y = (ol.ndarray((n, ol.par_dim(128), 1024), dtype=np.float32, buffer=ol.sbuf, name=s) for s in "xy")
    a, b, c = (ol.ndarray((n, 2, ol.par_dim(128), 512), dtype=np.float32, buffer=ol.sbuf, name=s) for s in "abc")
    for i in ol.affine_range(n):
        x[i] = ol.load(v[:, i])
        for j in ol.affine_range(2):
            p, f = ol.arange(128)[:, None], 512 * j + ol.arange(512)[None, :]
            a[i, j] = oisa.activation(op=ol.exp, data=x[i, p, f], scale=-1.5)
            b[i, j] = oisa.tensor_scalar(data=a[i, j], op0=ol.add, operand0=1.0)
            c[i, j] = oisa.reciprocal(data=b[i, j])
            y[i, p, f] = ol.multiply(x[i, p, f], c[i, j])
        ol.store(out[:, i], value=y[i])
    return out


@older.jit
def two_passes(v, n, zeros):
    """All of x lives from the first loop to the second; t does not."""
    out = ol.ndarray(v.shape, dtype=np.float32, buffer=ol.shared_hbm)
    make = ol.zeros if zeros else ol.ndarray
    x = make((n, ol.par_dim(128), 1024), dtype=np.float32, buffer=ol.sbuf, name="x")
    t = make((n, ol.par_dim(128), 1024), dtype=np.float32, buffer=ol.sbuf, name="t")
    for i in ol.affine_range(n):
        t[i] = ol.load(v[:, i])
        x[i] = ol.add(t[i], 1.0)
    for i in ol.affine_range(n):
        ol.store(out[:, i], value=x[i])
    return out


@older.jit
def banks(a, b, n, columns):
    """n sums side by side in PSUM: += takes no bank of its own."""
    out = ol.ndarray((n, 128, columns), dtype=np.float32, buffer=ol.shared_hbm)
    s, m = ol.load(a), ol.load(b)
    acc = ol.zeros((n, ol.par_dim(128), columns), dtype=np.float32, buffer=ol.psum, name="acc")
    for k in range(3):
        for i in range(n):
            acc[i] += oisa.nc_matmul(s, m)
    for i in range(n):
        ol.store(out[i], value=ol.copy(acc[i]))
    return out


class Blocks(unittest.TestCase):
    def test_one_alive_at_a_time(self):
        for n in (8, 40):
            v = np.random.default_rng(n).standard_normal((128, n, 1024)).astype(np.float32)
            got = older.simulate_kernel(one_alive, v, n)
            np.testing.assert_allclose(got, v / (1 + np.exp(-1.5 * v.astype(float))), atol=1e-3)

    def test_all_alive_or_not(self):
        """55 and one of t are 56 tiles of 4 KiB, which is all there is."""
        for zeros in (False, True):
            v = np.random.default_rng(0).standard_normal((128, 55, 1024)).astype(np.float32)
            np.testing.assert_array_equal(older.simulate_kernel(two_passes, v, 55, zeros), v + np.float32(1))
            v = np.ones((128, 57, 1024), np.float32)
            refused(self, lambda: older.simulate_kernel(two_passes, v, 57, zeros), "SBUF has 229376 bytes",
                    "does not fit: with 'x[55]', 4096 bytes", "made in line", "and 51 more; beside",
                    "room for 0 (spilling is not imitated)", "check_nki_memory.py, line")

    def test_banks(self):
        """Eight banks of 2 KiB; tiles do not cross them: three of 768 bytes fill one of them but for 512 bytes."""
        for n, columns in ((8, 512), (16, 256), (16, 192), (32, 128)):
            got = older.simulate_kernel(banks, np.ones((128, 128), "f"), np.ones((128, columns), "f"), n, columns)
            self.assertTrue((got == 384).all())
        for n, columns in ((9, 512), (17, 256), (17, 192 + 96)):
            refused(self, lambda: older.simulate_kernel(banks, np.ones((128, 128), "f"), np.ones(
                (128, columns), "f"), n, columns), "PSUM has 16384 bytes", "'acc[", "does not fit")


# ---- tiles by hand ----

def tile(kilobytes, name, rows=128):
    return nl.ndarray((rows, kilobytes * 256), nl.float32, name=name)


def one_instruction(kilobytes):
    """Three operands, after others that leave holes."""
    out = nl.ndarray((128, kilobytes * 256), nl.float32, nl.shared_hbm)
    early = [tile(20, f"early{i}") for i in range(11)]
    for t in early:
        nisa.memset(t, 7.0)
    del early[::2], t
    a, b, c = (tile(kilobytes, s) for s in "abc")
    nisa.memset(a, 1.0)
    nisa.memset(b, 2.0)
    nisa.tensor_tensor(c, a, b, nl.add)
    nisa.dma_copy(out, c)
    return out


def in_the_holes():
    """c comes back last, and is larger than each hole beside a and b, which have to move once they were looked up."""
    out = nl.ndarray((128, 40 * 256), nl.float32, nl.shared_hbm)
    c = tile(100, "c")
    nisa.memset(c, 5.0)
    x, a, y, b = (tile(k, s) for k, s in ((20, "x"), (40, "a"), (64, "y"), (40, "b")))
    for value, t in enumerate((x, a, y, b)):
        nisa.memset(t, float(value))
    nisa.tensor_tensor(a, b, c[:, :40 * 256], nl.add)
    nisa.dma_copy(out, a)
    return out


def late(kilobytes):
    """What t waited for it waits for when it comes back."""
    out = nl.ndarray((128, 1024), nl.float32, nl.shared_hbm)
    source, t = tile(4, "source"), tile(4, "t")
    nisa.memset(source, 0.5)
    for _ in range(8):
        nisa.activation(source, nl.exp, source)
    nisa.activation(t, nl.exp, source)
    kept = [tile(kilobytes, f"big{i}") for i in range(3)]
    for big in kept:
        nisa.memset(big[:, 0:8], 1.0)
    nisa.dma_copy(out, t)
    return out


def written_in_part(use):
    """Half of t is written when others need its room."""
    out = nl.ndarray((128, 1024), nl.float32, nl.shared_hbm)
    t = nl.ndarray((128, 1024), nl.float32, name="t")
    nisa.memset(t[:, 0:512], 3.0)
    kept = [tile(200, f"big{i}") for i in range(3)]
    for i, big in enumerate(kept):
        nisa.memset(big[:32], float(i))
    if use == "rest":
        nisa.memset(t[:, 512:1024], 4.0)
    nisa.dma_copy(out, t)
    return out


def products(again):
    """What products have written of PSUM is known after a tile has come back: they add there, and nowhere else."""
    out = nl.ndarray((128, 512), nl.float32, nl.shared_hbm)
    one, wide = nl.ndarray((128, 128), nl.bfloat16), nl.ndarray((128, 256), nl.bfloat16)
    nisa.memset(one, 1.0)
    nisa.memset(wide, 1.0)
    t = nl.ndarray((128, 512), nl.float32, nl.psum, name="t")
    nisa.nc_matmul(t[:, 0:256], one, wide)
    for i in range(again):
        others = [nl.ndarray((128, 512), nl.float32, nl.psum, name=f"o{i}") for _ in range(7)]
        for o in others:
            nisa.nc_matmul(o[:, 0:256], one, wide)
        last = nl.ndarray((128, 512), nl.float32, nl.psum, name="last")
        nisa.nc_matmul(last[:, 0:256], one, wide)
        del o, others
        copy = nl.ndarray((128, 256), nl.float32)
        nisa.tensor_copy(copy, last[:, 0:256])
    for half in (0, 256):
        nisa.nc_matmul(t[:, half:half + 256], one, wide)
    back = nl.ndarray((128, 512), nl.float32)
    nisa.tensor_copy(back, t)
    nisa.dma_copy(out, back)
    return out


def small(x, count, space, width):
    """Tiles of few elements, all of which live when the last is filled."""
    tile = nl.load(x)
    kept = [nl.ndarray((128, width), nl.float32, buffer=space, name=f"t{i}") for i in range(count)]
    for i, one in enumerate(kept):
        nisa.tensor_scalar(one, tile, nl.add, float(i))
    row = nl.ndarray((128, count * width), nl.float32)
    for i, one in enumerate(kept):
        nisa.tensor_copy(row[:, i * width:(i + 1) * width], one)
    out = nl.ndarray(row.shape, nl.float32, nl.shared_hbm)
    nisa.dma_copy(out, row)
    return out


def swapped(n):
    """Programs exchange tiles of which others took the room meanwhile."""
    i = nl.program_id(0)
    out = nl.ndarray((2, 128, 256), nl.float32, nl.shared_hbm)
    mine, other = tile(1, "mine"), tile(1, "other")
    nisa.memset(mine, float(i + 1))
    for k in range(n):
        big = tile(224, f"big{k}")
        nisa.memset(big, 9.0)
        del big
    nisa.sendrecv(src=mine, dst=other, send_to_rank=1 - i, recv_from_rank=1 - i, pipe_id=0)
    nisa.dma_copy(out[i], other)
    return out


def between(width, other):
    """Three tiles of an instruction, beside two that are no longer used but were there first."""
    out = nl.ndarray((128, 64), nl.float32, nl.shared_hbm)
    before = nl.full((128, width), 2.0, nl.float32)
    x = nl.negative(before)
    beside = nl.full((128, other), 1.0, nl.float32)
    nisa.dma_copy(out, nl.add(x, nl.multiply(x, x))[:, :64])
    del beside
    return out


class Tiles(unittest.TestCase):
    def test_holes(self):
        """Operands of one instruction move together where holes are too small; 74 KiB each leave 2 KiB."""
        for kilobytes in (40, 63, 74):
            self.assertTrue((nki.simulate(one_instruction)(kilobytes) == 3).all())
        refused(self, lambda: nki.simulate(one_instruction)(75), "SBUF has 229376 bytes", "with 'c', 76800 bytes",
                "'a' 76800 (line", "'b' 76800 (line", "room for 75776")

    def test_operands_move_together(self):
        self.assertTrue((nki.simulate(in_the_holes)() == 8).all())

    def test_results_lie_in_a_row(self):
        """Results that get memory when they are used; three of 74 KiB leave 2 KiB."""
        for generation, room in ((1, 192), (2, 224), (3, 256)):
            for width in range(11000, 1024 * room // 12 - 700, 1500):
                for other in (64, 4096, 12000, 16000, 20000):
                    got = nki.simulate(between, generation=generation)(width, other)
                    self.assertTrue((got == 2).all(), (generation, width, other))
        refused(self, lambda: nki.simulate(between)(19200, 64), "what lives at the same time does not fit")

    def test_no_time_is_won_outside(self):
        times = []
        for kilobytes in (1, 210):
            nki.simulate(late)(kilobytes)
            times.append(nki.last_report().time_s)
        self.assertEqual(times[0], times[1])

    def test_small_tiles_take_what_they_have(self):
        """Not a whole line of the simulated memory, 64 bytes, each."""
        x = np.arange(128, dtype=np.float32).reshape(128, 1)
        for count, space, width in ((300, nl.psum, 1), (600, nl.psum, 3), (3500, nl.sbuf, 1)):
            got = nki.simulate(small)(np.repeat(x, width, 1), count, space, width)
            np.testing.assert_array_equal(got, x + np.repeat(np.arange(count), width))
        with self.assertRaisesRegex(nki.Error, "PSUM has 16384 bytes .* does not fit: with .* 132 bytes"):
            nki.simulate(small)(np.repeat(x, 33, 1), 125, nl.psum, 33)

    def test_what_was_written_stays_known(self):
        got = nki.simulate(written_in_part)("rest")
        self.assertTrue((got[:, :512] == 3).all() and (got[:, 512:] == 4).all())
        refused(self, lambda: nki.simulate(written_in_part)("all"), "'t'", "nothing has written")

    def test_what_products_wrote_stays_known(self):
        for generation in (2, 3):
            got = [nki.simulate(products, generation=generation)(again) for again in (0, 1)]
            self.assertTrue((got[0] == got[1]).all() and (got[0][:, :256] == 256).all(), generation)
            self.assertTrue((got[0][:, 256:] == 128).all())

    def test_exchange(self):
        got = nki.simulate(swapped)[2](0)
        self.assertTrue((got[0] == 2).all() and (got[1] == 1).all())
        refused(self, lambda: nki.simulate(swapped)[2](2), "'mine' 1024 (line", "with 'big0', 229376 bytes",
                "room for 228352")


# ---- random kernels ----

class Random(unittest.TestCase):
    """Tiles of many sizes on one or two quadrants, all kept to the end; each step fills one or adds one to another."""

    @staticmethod
    def program(seed):
        """About as many live at a time as fit; now and then an old one is used again."""
        rng = np.random.default_rng(seed)
        size = (8, 16, 24, 33)[seed % 4]  # KiB at most
        together = SBUF // 1024 // size + seed // 2
        tiles, steps = [], []
        for i in range(60):
            tiles.append((int(rng.integers(size // 2, size + 1)), 32 * int(rng.integers(1, 3))))
            steps.append((i, None))
            for _ in range(2):
                low = max(0, i - together) if rng.random() > 0.02 else 0
                a, b = (int(k) for k in rng.integers(low, i + 1, 2))
                if a != b:
                    steps.append((a, b))
        return tiles, steps

    @staticmethod
    def most(tiles, steps):
        """The most bytes of a partition that live at once: those of the first quadrant, where all begin."""
        first, last = {}, {}
        for n, step in enumerate(steps):
            for t in step:
                first.setdefault(t, n)
                last[t] = n
        return max(sum(1024 * tiles[t][0] for t in first if t is not None and first[t] <= n <= last[t])
                   for n in range(len(steps)))

    @staticmethod
    def kernel(tiles, steps):
        out = nl.ndarray((len(steps), 32, 128), nl.float32, nl.shared_hbm)
        made = {}
        for n, (a, b) in enumerate(steps):
            if b is None:
                made[a] = tile(tiles[a][0], f"t{a}", tiles[a][1])
                nisa.memset(made[a], float(n + 1))
            else:
                rows, columns = (min(made[a].shape[i], made[b].shape[i]) for i in (0, 1))
                part = made[a][:rows, :columns]
                nisa.tensor_tensor(part, part, made[b][:rows, :columns], nl.add)
            nisa.dma_copy(out[n], made[a][:32, :128])
        return out

    def test_against_a_twin(self):
        answered = 0
        for seed in range(16):
            tiles, steps = self.program(seed)
            if self.most(tiles, steps) > SBUF:
                refused(self, lambda: nki.simulate(self.kernel)(tiles, steps), "what lives at the same time does not")
                continue
            answered += 1
            got, value = nki.simulate(self.kernel)(tiles, steps), {}
            for n, (a, b) in enumerate(steps):
                value[a] = np.float32(n + 1 if b is None else value[a] + value[b])
                self.assertTrue((got[n] == value[a]).all(), (seed, n))
        self.assertTrue(4 < answered < 12, answered)


if __name__ == "__main__":
    unittest.main()
