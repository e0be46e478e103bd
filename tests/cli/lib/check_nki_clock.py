"""What the measured clock believes, beyond times of devices: who runs what several engines take, and which products warm
the Tensor engine. SPDX-License-Identifier: MIT"""
import unittest

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


class Shared(unittest.TestCase):
    """Copies, and products and sums with a number, which VectorE and ScalarE both take, go to the one that has worked less;
    what names an engine, and what ScalarE lacks, stay. Numbers are the same, and bits where no format changes."""

    def kernel(self, x, engine, op):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for _ in range(20):
            made = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
            if op is None:
                nisa.tensor_copy(dst=made, src=tile, engine=engine)
            else:
                nisa.tensor_scalar(dst=made, data=tile, op0=op, operand0=1.0, engine=engine)
            tile = nl.copy(made)
        nl.store(out, tile)
        return out

    def count(self, engine=nisa.unknown_engine, op=None, dtype=np.float32, **options):
        x = np.random.default_rng(1).integers(0, 1 << 32, (128, 256), np.uint32).view(dtype)
        if op is not None:
            x = np.random.default_rng(1).standard_normal((128, 256)).astype(np.float32)
        run = nki.simulate(self.kernel, **options)
        got = run(x, engine, op)
        if op in (None, nl.multiply, nl.bypass):
            np.testing.assert_array_equal(got.view(np.uint32), x.view(np.uint32))
        engines = run.report.engines
        return [(engines[name]["instructions"], engines[name]["busy_s"]) for name in ("VectorE", "ScalarE")]

    def test_who(self):
        for op in (None, nl.multiply, nl.add):
            (vector, vector_s), (scalar, scalar_s) = self.count(op=op)
            self.assertEqual(vector + scalar, 40)
            self.assertLess(abs(vector_s - scalar_s), 0.6e-6, "one instruction at most")
        self.assertEqual([n for n, _ in self.count(pace="documented")], [40, 0])
        self.assertEqual([n for n, _ in self.count(generation=1)], [40, 0])
        for op, engine in ((nl.maximum, nisa.unknown_engine), (None, nisa.vector_engine), (nl.multiply, nisa.vector_engine)):
            self.assertGreaterEqual(self.count(engine, op)[0][0], 20)
        for op in (None, nl.multiply):
            self.assertGreaterEqual(self.count(nisa.scalar_engine, op)[1][0], 20)
        self.count(dtype=np.int32)


class Warm(unittest.TestCase):
    def times(self, rows, turns=40):
        """Seconds of one product of 512 columns, after `turns` of these and as many of `rows` rows."""
        def kernel(x, w):
            out = nl.ndarray((128, 512), np.float32, buffer=nl.shared_hbm)
            a, b = nl.load(x), nl.load(w)
            for of in (128, rows):
                for _ in range(turns):
                    made = nl.ndarray((128, 512), np.float32, buffer=nl.psum)
                    nisa.nc_matmul(dst=made, stationary=a[:of], moving=b[:of])
            nl.store(out, nl.copy(made))
            return out
        x = np.ones((128, 640), np.float32)
        run = nki.simulate(kernel)
        run(x[:, :128].copy(), x[:, 128:].copy())
        return run.report.engines["TensorE"]["busy_s"] / turns

    def test_rows(self):
        """Half of the rows keep it warm, fewer let it become cold: 512 columns of float32 take 0.853 us, and twice that."""
        both, few, half = self.times(128), self.times(48), self.times(64)
        self.assertAlmostEqual(both, 2 * 0.8533e-6, delta=0.05e-6)
        self.assertAlmostEqual(half, both, delta=0.01e-6)
        self.assertAlmostEqual(few, 1.5 * both, delta=0.15e-6)


if __name__ == "__main__":
    unittest.main()
