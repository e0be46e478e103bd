"""nki.check: planted bugs are found with their smallest shapes, right kernels pass, what is asked badly is refused; the
program `python -m nki.check`; spilling; how far a kernel has come. SPDX-License-Identifier: MIT"""
import contextlib
import importlib
import importlib.util
import io
import os
import tempfile
import time
import unittest
import warnings

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl
from nki import progress, sizes

sweeps = importlib.import_module("nki.sweep")


def tiles_of(rows):
    return [(at, min(128, rows - at)) for at in range(0, rows, 128)]


def copied(x):
    """Right for all shapes that fit."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for at, rows in tiles_of(x.shape[0]):
        tile = nl.ndarray((rows, x.shape[1]), x.dtype)
        nisa.dma_copy(dst=tile, src=x[at:at + rows])
        nisa.dma_copy(dst=out[at:at + rows], src=tile)
    return out


def last_tile(x):
    """Rows after the last whole tile are not written."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for at in range(0, max(x.shape[0] // 128, 1) * 128, 128):
        rows = min(128, x.shape[0])
        tile = nl.ndarray((rows, x.shape[1]), x.dtype)
        nisa.dma_copy(dst=tile, src=x[at:at + rows])
        nisa.dma_copy(dst=out[at:at + rows], src=tile)
    return out


def pairs(x):
    """Takes columns by twos: one past an odd number of them."""
    out = nl.ndarray((x.shape[0], 1), x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((x.shape[0], 2), x.dtype)
    for at in range(0, x.shape[1], 2):
        nisa.dma_copy(dst=tile, src=x[:, at:at + 2] if x.shape[1] > 2 else x[:, 0:1].broadcast(1, 2))
    nisa.dma_copy(dst=out, src=tile[:, 0:1])
    return out


def shares(x):
    """Programs round their rows up and meet where these do not divide."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    many = nl.num_programs(0)
    rows = -(-x.shape[0] // many)
    at = min(nl.program_id(0) * rows, x.shape[0] - rows)
    tile = nl.ndarray((rows, x.shape[1]), x.dtype)
    nisa.dma_copy(dst=tile, src=x[at:at + rows])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(nl.program_id(0)))
    nisa.dma_copy(dst=out[at:at + rows], src=tile)
    return out


def summed(x):
    """A column of sums of each tile, all kept, in PSUM banks of their own."""
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    kept = [nl.ndarray((128, 512), nl.float32, buffer=nl.psum) for _ in range(x.shape[0] // 128)]
    for tile in kept:
        nisa.memset(dst=tile, value=1.0)
    total = nl.ndarray((128, 512), nl.float32)
    nisa.tensor_copy(dst=total, src=kept[0])
    for tile in kept:
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


def kept(x, scale=1.0):
    """All of x in SBUF at once."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    held = []
    for at, rows in tiles_of(x.shape[0]):
        held.append(nl.ndarray((rows, x.shape[1]), x.dtype, name="held"))
        nisa.dma_copy(dst=held[-1], src=x[at:at + rows])
    for (at, rows), tile in zip(tiles_of(x.shape[0]), held):
        nisa.dma_copy(dst=out[at:at + rows], src=tile)
    return out


def whole_tiles(x):
    assert x.shape[0] % 128 == 0, "rows come in tiles of 128"
    return copied(x)


def mean_of_rows(x, scale):
    """Divides by 256 what has as many columns or less: right for those alone."""
    total = nl.sum(nl.load(x), axis=1, keepdims=True)
    out, twice = (nl.ndarray((x.shape[0], 1), x.dtype, buffer=nl.shared_hbm) for _ in range(2))
    nl.store(out, nl.multiply(total, scale / max(x.shape[1], 256)))
    nl.store(twice, nl.multiply(total, 2.0))
    return out, twice


def means(x, scale):
    return x.mean(1, keepdims=True) * scale, 2 * x.sum(1, keepdims=True)


class Found(unittest.TestCase):
    def smallest(self, kind, shape, kernel, shapes, words, **options):
        found = nki.check(kernel, shapes, **options)
        self.assertFalse(found)
        self.assertEqual((found.smallest.kind, found.smallest.case.shapes["x"]), (kind, shape), str(found))
        self.assertIn(words, found.smallest.sentence)
        self.assertIn("check_nki_sweep.py, line", found.smallest.sentence)
        self.assertIn(f"{kind}: x {list(shape)}", str(found))
        return found

    def test_unwritten(self):
        found = self.smallest("unwritten", (129, 4), last_tile, {"x": ("n", 4)}, "nothing has written 4 of 516 elements")
        self.assertIn((128, 4), [c.shapes["x"] for c in found.passed])

    def test_shrinks(self):
        """200 fails and 128 is right: 129 fails, too."""
        one = {"x": ("n", 4)}
        sweep = sweeps._Sweep(nki.Kernel(last_tile), {}, "float32", 0)
        for n in (128, 200):
            sweep.run(sizes.filled(one, {"n": n}, (), 2))
        sweep.shrink(one, sweep.found.failures[0], {"n"})
        self.assertEqual(min(f.case.symbols["n"] for f in sweep.found.failures), 129)

    def test_access(self):
        self.smallest("access", (2, 3), pairs, {"x": (2, "n")}, "slice ends at 4 on axis 1, which has 3",
                      where={"n": range(1, 9)})

    def test_race(self):
        found = self.smallest("race", (3, 4), shares, {"x": ("n", 4)}, "no core_barrier", grids=(1, 2),
                              where={"n": range(2, 7)})
        self.assertEqual(found.smallest.case.grid, (2,))
        self.assertTrue(all(c.grid == (1,) or c.shapes["x"][0] % 2 == 0 for c in found.passed))

    def test_psum(self):
        self.smallest("PSUM", (9 * 128, 1), summed, {"x": ("128*k", 1)}, "PSUM has 16384 bytes", where={"k": (1, 8, 9)})

    def test_sbuf(self):
        """56 tiles of 4 KiB fit Trainium2, 48 Trainium1."""
        found = self.smallest("SBUF", (49 * 128, 1024), kept, {"x": ("128*k", 1024)}, "'held'",
                              where={"k": (1, 48, 49, 57)}, generations=(1, 2))
        self.assertEqual(sorted((f.case.symbols["k"], f.case.generation) for f in found.failures),
                         [(49, 1), (57, 1), (57, 2)])
        self.assertEqual(found.kinds, {"SBUF": found.smallest})

    def test_right(self):
        found = nki.check(copied, {"x": ("n", "8*k")}, where={"n": (1, 127, 300), "k": (1, 2)}, generations=(1, 2, 3))
        self.assertTrue(found.ok, str(found))
        self.assertEqual((len(found.passed), found.smallest), (18, None))
        self.assertEqual(repr(found), "copied: 18 of 18 cases are right")

    def test_limit(self):
        """Beyond what was asked for: 57344 columns of float32 are all of a partition of SBUF."""
        found = nki.check(kept, {"x": (128, "512*k")}, where={"k": (1, 2, 3)}, arguments={"scale": 2.0})
        self.assertEqual((found.ok, found.limits, len(found.passed)), (True, {"k": 112}, 3))
        self.assertIn("k up to 112 fits", str(found))

    def test_declined(self):
        found = nki.check(whole_tiles, {"x": [(128, 2), (130, 2), (256, 2)]})
        self.assertTrue(found.ok)
        self.assertEqual([(c.shapes["x"], "tiles of 128" in said) for c, said in found.declined], [((130, 2), True)])
        self.assertFalse(nki.check(whole_tiles, {"x": (130, 2)}).ok)

    def test_ways_to_say_shapes(self):
        for shapes in ({"x": (64, 2)}, [{"x": (64, 2)}], {"x": [(64, 2)]}, lambda: {"x": (64, 2)},
                       {"x": ("2**5 * 2", "(9 - 1) // 4")}, {"x": (64, "n - n + 2")}):
            self.assertEqual(nki.check(copied, shapes, where={"n": (7,)} if "n -" in str(shapes) else None)
                             .passed[0].shapes, {"x": (64, 2)})

    def test_formats(self):
        for dtype in ("int32", nl.bfloat16, {"x": "uint8"}, np.float16):
            self.assertTrue(nki.check(copied, {"x": (3, 4)}, dtype=dtype))

    def test_no_time(self):
        found = nki.check(copied, {"x": ("n", 4)}, seconds=-1)
        self.assertEqual((found.ok, found.left > 9), (False, True))


class Refused(unittest.TestCase):
    def test_sentences(self):
        for words, call in (
                ("say what shapes copied(x) is to be given", lambda: nki.check(copied)),
                ("there is no 'y' in copied(x)", lambda: nki.check(copied, {"x": (1, 2), "y": (1, 2)})),
                ("kept(x, scale) is given no 'x'", lambda: nki.check(kept, {"scale": (1,)})),
                ("'128*' is no size", lambda: nki.check(copied, {"x": ("128*", 2)})),
                ("takes whole numbers, names", lambda: nki.check(copied, {"x": ("f(k)", 2)})),
                ("they have one length: 'x' 2, 'y' 1", lambda: nki.check(copied, {"x": [(1,), (2,)], "y": [(1,)]})),
                ("where= says what 'm' is", lambda: nki.check(copied, {"x": ("n", 2)}, where={"m": (1,)})),
                ("no size of these shapes is larger", lambda: nki.check(copied, {"x": (0, 2)}))):
            with self.assertRaises(nki.Error) as caught:
                call()
            self.assertIn(words, str(caught.exception))


class Program(unittest.TestCase):
    def test_program(self):
        spec = importlib.util.find_spec("nki.check")
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        self.assertIs(importlib.import_module("nki.check"), nki.check)
        self.assertIsNot(nki.check, program)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.py")
            with open(path, "w", encoding="utf-8") as file, open(__file__, encoding="utf-8") as here:
                file.write(here.read().split("class Found")[0])
            for status, words, arguments in (
                    (0, "copied: 4 of 4 cases are right", ["copied", "--shapes", "x=n,4", "--where", "n=1..4"]),
                    (1, "unwritten: x [129, 4]", ["last_tile", "--shapes", "x=n,4", "--where", "n=128,129"]),
                    (1, "numbers: x [4, 64]", ["mean_of_rows", "--shapes", "x=4,64", "--arguments", "scale=1",
                                               "--expected", "means"]),
                    (0, "are right", ["mean_of_rows", "--shapes", "x=4,64", "--arguments", "scale=1",
                                      "--expected", "means", "--tolerance", "9"]),
                    (2, "has no 'nothing'", ["nothing", "--shapes", "x=1"]),
                    (2, "has no 'none'", ["copied", "--shapes", "x=1,1", "--expected", "none"]),
                    (2, "say what shapes", ["copied"]), (2, "is no list of numbers",
                                                         ["copied", "--shapes", "x=n,1", "--where", "n=a"])):
                said = io.StringIO()
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    self.assertEqual(program.main([path, *arguments]), status, said.getvalue())
                self.assertIn(words, said.getvalue())


class Numbers(unittest.TestCase):
    """What a kernel computes, beside what it was to."""

    def test_the_smallest_that_is_wrong(self):
        found = nki.check(mean_of_rows, {"x": (4, "n")}, {"n": (256, 512)}, arguments={"scale": 3.0}, expected=means)
        self.assertTrue(found, found)
        found = nki.check(mean_of_rows, {"x": (4, "n")}, {"n": (64, 128, 256)}, arguments={"scale": 3.0}, expected=means)
        self.assertEqual([f.case.symbols["n"] for f in found.failures], [64, 128])
        self.assertRegex(str(found.smallest), r"numbers: x \[4, 64\].*: result 0\[\d, 0\] is .*, expected is .*; 4 of 4 "
                                              "elements are further off than 0.001 of")
        self.assertTrue(nki.check(mean_of_rows, {"x": (4, 64)}, arguments={"scale": 3.0}, expected=means, tolerance=9))

    def test_formats_shapes_and_counts(self):
        def same(x):
            return x
        self.assertTrue(nki.check(copied, {"x": (130, "n")}, dtype="bfloat16", expected=same))
        self.assertTrue(nki.check(copied, {"x": (130, 4)}, dtype="int32", expected=same))
        self.assertFalse(nki.check(copied, {"x": (130, 4)}, dtype="bfloat16", expected=lambda x: x * 1.1))
        for expected, words in ((lambda x: x[1:], r"shape \[4, 4\], expected is \[3, 4\]"),
                                (lambda x: (x, x), "1 results, of which 2 are expected"),
                                (lambda x: np.where(x == x[2, 1], np.nan, x), r"result\[2, 1\] is .*, expected is nan; 1 of")):
            self.assertRegex(nki.check(copied, {"x": (4, 4)}, expected=expected).smallest.sentence, words)
        with self.assertRaisesRegex(nki.Error, "returns nothing that expected= could be held against"):
            nki.check(lambda x: None, {"x": (4, 4)}, expected=same)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def said(self, out):
        """What a kernel of 20 tiles writes that waits in the middle."""
        def slow(x):
            made = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            for n, (at, rows) in enumerate(tiles_of(x.shape[0])):
                tile = nl.load(x[at:at + rows])
                nl.store(made[at:at + rows], tile)
                time.sleep(0.1 if n == 9 else 0)
            return made
        after, step = progress._AFTER, progress._STEP
        progress._AFTER, progress._STEP = 0.02, 0.02
        try:
            with contextlib.redirect_stderr(out):
                nki.simulate(slow)(np.ones((20 * 128, 8), np.float32))
        finally:
            progress._AFTER, progress._STEP = after, step
        return out.getvalue()

    def test_on_a_terminal(self):
        said = self.said(Terminal())
        self.assertRegex(said, r"\rslow: 10 of 20 tiles, 0 s left\x1b\[K")
        self.assertTrue(said.endswith("\r\x1b[K"), said)

    def test_elsewhere(self):
        self.assertEqual(self.said(io.StringIO()), "")

    def test_seconds(self):
        class Tensor:
            shape, itemsize, unwritten = (256, 100), 4, 256 * 100 * 3
        shown = progress.Progress("k")
        self.assertEqual(shown.line(3), "k: 3 s")
        shown.tensors = [Tensor]
        self.assertEqual(shown.line(3), "k: 0 of 2 tiles, 9 s left")


class Spilling(unittest.TestCase):
    def test_where_it_is_asked_for(self):
        x = np.arange(58 * 128 * 1024, dtype=np.float32).reshape(-1, 1024)
        with self.assertRaisesRegex(nki.Error, "spilling is not imitated"):
            nki.simulate(kept)(x)
        np.testing.assert_array_equal(nki.simulate(kept, spill=True)(x), x)
        os.environ["TRNMATH_SPILL"] = "1"
        try:
            np.testing.assert_array_equal(nki.simulate(kept)(x), x)
            os.environ["TRNMATH_SPILL"] = "yes"
            with self.assertRaisesRegex(nki.Error, "TRNMATH_SPILL is 'yes'"):
                nki.simulate(kept)(x)
        finally:
            del os.environ["TRNMATH_SPILL"]


if __name__ == "__main__":
    warnings.simplefilter("error")
    unittest.main()
