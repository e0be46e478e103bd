"""What programs around kernels of other people use: variables of the environment, decorators that time, schedules,
arrays of 64 bits and of torch, formats that NumPy lacks, reprs, what the device leaves out.
SPDX-License-Identifier: MIT"""
import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

import numpy as np

import neuronxcc.nki as older
import neuronxcc.nki.isa as oisa
import neuronxcc.nki.language as ol
import neuronxcc.nki.typing as ont
import nki
import nki.isa as nisa
import nki.language as nl
import nki.typing as nt
from nki import arrays, machine

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) / 64


@nki.jit
def twice(x: nt.tensor[128, 64]):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(*[nl.load(x)] * 2))
    return out


@nki.jit
def generation():
    return int(nisa.get_nc_version())


class Machine(unittest.TestCase):
    def test_the_platform(self):
        for name, version in (("trn1", 2), ("inf2", 2), ("gen2", 2), ("trn2", 3), ("gen3", 3), ("trn3", 4), ("gen4", 4),
                              ("", 3)):
            with mock.patch.dict(os.environ, NEURON_PLATFORM_TARGET_OVERRIDE=name):
                self.assertEqual(generation(), version)
                self.assertEqual(nki.simulate(generation)(), version)
                self.assertEqual(nki.simulate(generation, generation=1)(), 2)
                self.assertEqual(nl.tile_size.sbuf_size_bytes, 128 * nl.tile_size.sbuf_fmax_bytes)
        self.assertEqual(nki.simulate(generation, generation="trn3")(), 4)
        self.assertEqual(older.jit(generation.function, platform_target="trn1")(), 2)
        self.assertEqual(older.jit(generation.function, mode="torchxla", debug_kernel=True)(), 3)
        with mock.patch.dict(os.environ, NEURON_PLATFORM_TARGET_OVERRIDE="trn9"):
            with self.assertRaisesRegex(nki.Error, "^NEURON_PLATFORM_TARGET_OVERRIDE is 'trn9'; there are trn1, inf2"):
                generation()
        with self.assertRaisesRegex(nki.Error, "^generation is 4; there are 1, 2 and 3"):
            nki.simulate(generation, generation=4)()

    def test_precise_numbers_are_the_only_ones(self):
        machine._Once.said = False
        with mock.patch.dict(os.environ, NKI_PRECISE_FP="0", NKI_SIMULATOR="1"):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                twice(X), twice(X)
        self.assertEqual([str(w.message)[:31] for w in told], ["NKI_PRECISE_FP=0 is not followed"[:31]])

    def test_sizes(self):
        @nki.jit
        def sizes():
            t = nl.tile_size
            return t.sbuf_size_bytes, t.sbuf_fmax_bytes, t.total_available_sbuf_size, t.sbuf_fmax, t.psum_bank_fmax
        self.assertEqual(nki.simulate(sizes, generation=1)(), (24 << 20, 192 << 10, 192 << 10, 48 << 10, 512))
        self.assertEqual(nl.tile_size.psum_bank_fmax_bytes, 2048)


class Decorators(unittest.TestCase):
    def test_times_are_the_models(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as told:
            kernel = older.benchmark(warmup=5, iters=10, save_neff_name="k.neff", save_trace_name=f"{folder}/k.ntff")(
                twice.function)
            np.testing.assert_array_equal(kernel(X), 2 * X)
            with open(f"{folder}/k.ntff.json", encoding="utf-8") as file:
                self.assertTrue(json.load(file)["traceEvents"])
            self.assertEqual(os.listdir(folder), ["k.ntff.json"])
        said = told.getvalue()
        self.assertRegex(said, r"^twice: \d+\.\d\d us by the model of Trainium2; nothing was measured; a timeline.*\n$")
        latency = kernel.benchmark_result.nc_latency
        self.assertEqual(latency.get_latency_percentile(50), 1e6 * kernel.report.time_s)
        self.assertIn("by the model, not measured", repr(kernel.benchmark_result))

    def test_arguments_that_only_say_their_shape(self):
        """What is timed gets random numbers for nt.tensor[shape, dtype]."""
        seen = []

        def kernel(x, index):
            seen.append((x.shape, str(x.dtype), index.shape, str(index.dtype)))
            return twice.function(x)
        with contextlib.redirect_stderr(io.StringIO()):
            for decorate in (nki.benchmark, older.benchmark(warmup=1, iters=2), older.profile, older.baremetal):
                made = decorate(kernel)
                got = np.asarray(made(ont.tensor[[128, 32], ol.bfloat16], index=nt.tensor[(4, 1), np.int32]), np.float32)
                self.assertGreater(made.benchmark_result.nc_latency.get_latency_percentile(99), 0)
                self.assertTrue(0 <= got.min() < got.max() <= 2)
        self.assertEqual(seen, [((128, 32), "bfloat16", (4, 1), "int32")] * 4)
        self.assertIs(nt.tensor[128, 64], nt.tensor)

    def test_all_of_them(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            for decorate in (older.baremetal, older.profile(working_directory="/nowhere"), nki.benchmark, nki.profile):
                np.testing.assert_array_equal(decorate(nki.jit(twice.function))(X), 2 * X)
            older.benchmark(older.jit(platform_target="trn1")(generation.function))()
        self.assertEqual(told.getvalue().count("by the model of Trainium2"), 4)
        self.assertEqual(told.getvalue().count("by the model of Trainium1"), 1)
        self.assertIs(older.trace(twice), twice)
        with self.assertRaisesRegex(AttributeError, "twice has not run yet"):
            nki.benchmark(twice.function).benchmark_result.nc_latency

    def test_schedules(self):
        scheduled = twice.with_schedule([("b", "a"), ("c", ["a", "b"])])
        np.testing.assert_array_equal(scheduled(X), 2 * X)
        for edges in ([("b",)], ["ba"], [("b", 3)], [("b", ["a", 3])]):
            with self.assertRaisesRegex(nki.Error, "is no edge; write"):
                twice.with_schedule(edges)

    def test_instructions_are_handles(self):
        @nki.jit
        def kernel(x):
            t = nl.ndarray(x.shape, x.dtype)
            first = nisa.dma_copy(dst=t, src=x, name="first")
            second = nisa.reciprocal(t, t)
            self.assertIs(second.depends_on(first).depends_on(), second)
            self.assertIsInstance(second, nisa.NkiInstruction)
            with self.assertRaisesRegex(nki.Error, "'first' is no instruction"):
                second.depends_on("first")
            return nl.copy(t) if False else x
        kernel(X)
        with self.assertRaises(nisa.NkiValidationError):
            nki.simulate(lambda x: nl.ndarray((256, 4), nl.float32))(X)


class Arrays(unittest.TestCase):
    def test_float64_is_told_once(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.assertEqual(nki.simulate(lambda x, y: [twice.function(x), twice.function(y)])(
                X.astype(float), X.astype(float) + 0)[0].dtype, np.float32)
            twice(np.float32(X))
        self.assertEqual(len(told), 1, told)
        self.assertIn("argument 0 (float64, taken as float32), argument 1", str(told[0].message))
        self.assertEqual(told[0].filename, __file__)

    def test_integers_of_64_bits_fit_or_are_refused(self):
        np.testing.assert_array_equal(twice(np.full((128, 64), 2**30 - 1)), 2**31 - 2)
        for array in (np.full((128, 64), 2**31), np.full((128, 64), -2**31 - 1), np.full((128, 64), 2**32, np.uint64)):
            with self.assertRaisesRegex(nki.Error, f"array of {array.dtype} holds {array[0, 0]}, which u?int32 does not"):
                twice(array)
        for dtype in (np.float64, "int64", np.uint64):
            with self.assertRaisesRegex(TypeError, "64 is no format of nki.language; the widest are float32"):
                nki.simulate(lambda x: nl.ndarray((128, 4), dtype))(X)

    @unittest.skipIf(arrays.ml_dtypes, "ml_dtypes has these formats")
    def test_formats_that_numpy_lacks(self):
        @nki.jit
        def format_of(x):
            seen.append(x.dtype)
            return twice.function(x)
        rough = np.float32(1) + X / 3
        for name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
            seen = []
            array = rough.astype(getattr(nl, name))
            self.assertEqual(array.dtype, getattr(nl, name))
            got = format_of(array)
            self.assertEqual((seen, got.dtype), ([name], getattr(nl, name)))
            np.testing.assert_array_equal(got, twice(nki.tensor(rough, name)))
            self.assertFalse((got == 2 * rough).all())
            self.assertEqual(np.zeros((2, 2), getattr(nl, name)).shape, (2, 2))
            with self.assertRaises(TypeError):  # the name alone stays unknown to NumPy, in all of the process
                np.dtype(name)
        seen = []
        format_of(rough.astype(nl.bfloat16).astype(np.float32))
        self.assertEqual(seen, ["float32"])

    def test_torch_in_torch_out(self):
        class Tensor:
            def __init__(self, array):
                self.array, self.dtype, self.shape = array, f"torch.{array.dtype.name}", array.shape

            def detach(self):
                return self
            cpu = contiguous = detach

            def numpy(self):
                return self.array
        Tensor.__module__ = "torch"
        torch = types.ModuleType("torch")
        torch.from_numpy = Tensor
        with mock.patch.dict(sys.modules, torch=torch):
            got = twice(Tensor(X))
        self.assertIsInstance(got, Tensor)
        np.testing.assert_array_equal(got.array, 2 * X)


class Language(unittest.TestCase):
    def test_mgrid_by_name(self):
        grid = nl.mgrid[0:128, 0:4, 0:16]
        for got, want in zip((grid.p, grid.x, grid.y), np.mgrid[0:128, 0:4, 0:16]):
            np.testing.assert_array_equal(got, want)

        @older.jit
        def kernel(x):
            i = ol.mgrid[0:128, 0:64]
            out = ol.ndarray(x.shape, dtype=x.dtype, buffer=ol.shared_hbm)
            ol.store(out[i.p, i.x], value=ol.load(x[i.p, i.x], mask=i.x < 64))
            return out
        np.testing.assert_array_equal(kernel(X), X)

    def test_loops_with_directives(self):
        def kernel(x):
            out, tile = ol.ndarray(x.shape, dtype=x.dtype, buffer=ol.shared_hbm), ol.load(x)
            for _ in ol.sequential_range(2, directives=older.compiler.no_reorder()):
                for _ in ol.affine_range(3, precise_schedule=True, multi_buffer=2):
                    tile += 1.0
            ol.store(out, tile)
            return out
        np.testing.assert_array_equal(older.simulate_kernel(older.jit(kernel), X), X + 6)

    def test_tiles_of_rank_six(self):
        for module, front in ((nl, nki), (ol, older)):
            @front.jit
            def kernel(x):
                tile = module.ndarray((128, 2, 2, 2, 2, 4), dtype=x.dtype, buffer=module.sbuf, name="six")
                tile[...] = module.load(x).reshape(tile.shape)
                out = module.ndarray(tile.shape, dtype=x.dtype, buffer=module.shared_hbm)
                module.store(out, module.exp(module.negative(tile)))
                return out
            got = kernel(X)
            self.assertEqual(got.shape, (128, 2, 2, 2, 2, 4))
            np.testing.assert_allclose(got.reshape(128, 64), np.exp(-X), atol=1e-5)

    def test_blocks_in_another_shape(self):
        @older.jit
        def kernel(x):
            t = ol.ndarray((4, ol.par_dim(32), 64), dtype=x.dtype, buffer=ol.sbuf, name="t")
            for i in range(4):
                t[i] = ol.load(x[32 * i:32 * i + 32])
            u = t.reshape((2, 2, ol.par_dim(32), 8, 8))
            out = ol.ndarray(x.shape, dtype=x.dtype, buffer=ol.shared_hbm)
            for i in range(2):
                for j in range(2):
                    u[i, j] = u[i, j] * 3
                    ol.store(out[64 * i + 32 * j:64 * i + 32 * j + 32], value=u.reshape(4, 32, 64)[2 * i + j])
            for bad in ((8, 32, 32), (4, 64, 32), (128, 64)):
                with self.assertRaisesRegex(nki.Error, r"'t' \[4, 32, 64\] has 4 tiles of 32 partitions"):
                    t.reshape(bad)
            with self.assertRaisesRegex(IndexError, "tile 2 of an axis of 2 tiles"):
                u[0, 2]
            return out
        np.testing.assert_array_equal(kernel(X), 3 * X)

    def test_windows_as_operands_of_a_product(self):
        """A convolution's window, [K, rows, columns] of a tile, whose axes do not follow each other in memory."""
        image, weights = X[:, :60].reshape(128, 6, 10) % 7, X[:, :32] % 5
        padded = np.zeros((128, 2, 9, 12), np.float32)
        padded[:, 1, 2:8, 1:11] = image

        @older.jit
        def kernel(x, w):
            tile, weight = ol.load(x), ol.load(w)
            acc = ol.zeros((32, 6, 10), dtype=np.float32, buffer=ol.psum)
            for i in range(2):
                acc += oisa.nc_matmul(weight, tile[:, 1, i:i + 6, 1:11])
            out = ol.ndarray(acc.shape, dtype=np.float32, buffer=ol.shared_hbm)
            ol.store(out, value=ol.copy(acc))
            return out
        want = sum(np.einsum("km,krc->mrc", weights, padded[:, 1, i:i + 6, 1:11]) for i in (0, 1))
        np.testing.assert_array_equal(kernel(padded, weights), want)

        def strided(x, w):
            tile, weight = nl.load(x), nl.load(w)
            acc = nl.ndarray((32, 2 * 3 * 4), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(acc, weight, tile[:, :, 0:9:3, 1:9:2])
            out = nl.ndarray((32, 2, 3, 4), nl.float32, buffer=nl.shared_hbm)
            nl.store(out.reshape(shape=(32, 48 / 2)), nl.copy(acc))
            return out
        np.testing.assert_array_equal(nki.simulate(strided)(padded, weights), np.einsum(
            "km,kbrc->mbrc", weights, padded[:, :, 0:9:3, 1:9:2]))

        def wide(x, w):
            tile, weight = nl.load(x), nl.load(w)
            nisa.nc_matmul(nl.ndarray((32, 600), nl.float32, buffer=nl.psum), weight, tile[:, 0:30, 0:20])
        with self.assertRaisesRegex(nki.Error, r"moving \[128, 30, 20\] has 600 columns; an instruction takes 512"):
            nki.simulate(wide)(np.zeros((128, 30, 21), np.float32), weights)

    def test_indices_that_are_comparisons_or_ranges(self):
        @older.jit
        def kernel(x):
            out = ol.ndarray(x.shape, dtype=x.dtype, buffer=ol.shared_hbm)
            i, j = ol.mgrid[0:128, 0:64]
            tile = ol.load(x[i, j])
            ol.store(out[i, j], value=tile[3 < 4][j < 64])
            with self.assertRaisesRegex(nki.Error, "holds for a part of the tensor only: write it as mask="):
                tile[j < 63]
            with self.assertRaisesRegex(nki.Error, "write it as mask="):
                tile[3 < 2]
            return out
        np.testing.assert_array_equal(kernel(X), X)

        @nki.jit
        def ranges(x):
            rows, columns = nl.affine_range(x.shape[0]), nl.affine_range(8, 24, 2)
            out = nl.ndarray((128, 8), x.dtype, buffer=nl.shared_hbm)
            nl.store(out[rows, nl.affine_range(8)], nl.load(x[rows, columns]))
            return out
        np.testing.assert_array_equal(ranges(X), X[:, 8:24:2])

    def test_formats_by_position_where_older_releases_have_a_mask(self):
        def kernel(x, w):
            t = nl.load(x, nl.bfloat16)
            made = [nl.mean(t, 1, nl.float16), nl.softmax(t, -1, "float16"),
                    nl.load_transpose2d(x[:, 0:32], np.float16),
                    nl.rms_norm(t, nl.load(w), 1, 64, 1e-5, nl.float16, nl.float32), nl.all(t, 1, nl.uint8),
                    nl.expand_dims(x=t, axis=1), nl.broadcast_to(t[:, 0:1], (128, 8), nl.float32),
                    nl.where(nl.load(x, nl.uint8), t, 0.0, nl.float32), nl.mean(t, 1, None, nl.float16)]
            seen.extend([str(m.dtype) for m in [t] + made])
            outs = [nl.ndarray(m.shape, m.dtype, buffer=nl.shared_hbm) for m in made]
            for out, tile in zip(outs, made):
                nl.store(out, tile)
            return outs
        seen = []
        x = np.abs(X) % 4 + 1
        got = nki.simulate(kernel)(x, np.ones((1, 64), np.float32).repeat(128, 0))
        self.assertEqual(seen, ["bfloat16", "float16", "float16", "float16", "float16", "uint8", "bfloat16", "float32",
                                "float32", "float16"])
        np.testing.assert_allclose(got[0][:, 0], x.mean(1), rtol=1e-2)
        np.testing.assert_allclose(got[2], x[:, 0:32].T, rtol=1e-3)

    def test_a_loop_reduces_onto_what_nothing_has_written(self):
        """As NKIBench's rmsnorm_matmul does; onto what is there otherwise, as NKI's page says."""
        @older.jit
        def kernel(x, begun):
            out = ol.ndarray((128, 2), dtype=x.dtype, buffer=ol.shared_hbm)
            made = ol.full if begun else lambda shape, value, dtype: ol.ndarray(shape, dtype, buffer=ol.sbuf)
            for n, op in enumerate((np.add, np.max)):
                total = made((128, 1), 5.0, ol.float32)
                for i in ol.affine_range(4):
                    part = ol.negative(ol.load(x[:, 16 * i:16 * i + 16]))
                    total[...] = ol.loop_reduce(oisa.tensor_reduce(op, part, axis=1), op=op, loop_indices=[i], name="t")
                ol.store(out[:, n:n + 1], value=total)
            return out
        x = np.rint(X)
        for begun in (False, True):
            want = np.stack([-x.sum(1) + 5 * begun, np.maximum((-x).max(1), 5 if begun else -np.inf)], 1)
            np.testing.assert_array_equal(kernel(x, begun), want)

    def test_columns_of_16_bits(self):
        """[P, 1] operands of the tile's own format, in functions and in instructions."""
        x = np.rint(X % 8).astype(np.float16)
        column = x[:, 1:2].copy()

        @older.jit
        def kernel(x, column):
            t, c = ol.load(x), ol.load(column)
            made = [ol.add(t, c), ol.multiply(t, c), ol.subtract(t, c), ol.maximum(t, c),
                    oisa.tensor_scalar(t, np.multiply, c, op1=np.add, operand1=c),
                    oisa.scalar_tensor_tensor(data=t, op0=np.add, operand0=c, op1=np.subtract, operand1=t),
                    oisa.activation(op=ol.relu, data=t, scale=c)]
            out = ol.ndarray((len(made), 128, 64), dtype=x.dtype, buffer=ol.shared_hbm)
            for n, tile in enumerate(made):
                ol.store(out[n], value=tile)
            return out
        want = [x + column, x * column, x - column, np.maximum(x, column), x * column + column, 0 * x + column,
                x * column]
        np.testing.assert_array_equal(kernel(x, column), np.stack(want))

    def test_bytes_of_a_format(self):
        from neuronxcc.nki.language.constants import sizeinbytes
        self.assertEqual([sizeinbytes(d) for d in (nl.bfloat16, np.float32, "float8_e4m3")], [2, 4, 1])

    def test_reprs(self):
        @nki.jit
        def kernel(x):
            t = nl.ndarray((64, 4, 8), nl.bfloat16, buffer=nl.psum, name="acc", address=(64, 0))
            self.assertEqual(repr(t), "<psum 'acc' bfloat16 [64, 4, 8], partitions 64 to 127>")
            self.assertEqual(repr(t[32:, 1]), "<psum 'acc' bfloat16 [32, 8], partitions 96 to 127>")
            self.assertEqual(repr(x), "<hbm 'argument 0' float32 [128, 64]>")
            return x
        kernel(X)

    def test_names_of_the_rest(self):
        self.assertEqual(logging.getLevelName(logging.OFF), "OFF")
        self.assertGreater(logging.OFF, logging.CRITICAL)
        self.assertIs(nt.tensor[2, 3], nt.tensor)
        self.assertTrue(issubclass(ont.mutable_tensor[4], ont.tensor) and ont.mutable and ont.immutable)
        run = subprocess.run([sys.executable, "-c", "import logging, neuronxcc.nki; logging.disable(logging.OFF)"],
                             capture_output=True, check=False)
        self.assertEqual(run.stderr, b"")


class Device(unittest.TestCase):
    def test_a_copy_with_a_bias(self):
        """aws-neuron-sdk, issue 1296: nl.copy does not add it."""
        def kernel(x, bias, op=nl.copy):
            out, t = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.load(x)
            u, b = nl.ndarray(x.shape, x.dtype), nl.load(bias)
            nisa.activation(u, op, t, bias=b, scale=2.0)
            nl.store(out, u)
            return out
        bias = np.ones((128, 1), np.float32)
        with self.assertRaisesRegex(nki.Error, "op copy leaves its bias out on the device; write tensor_scalar"):
            nki.simulate(kernel)(X, bias)
        np.testing.assert_allclose(nki.simulate(kernel)(X, bias, nl.relu), 2 * X + 1)
        np.testing.assert_array_equal(nki.simulate(kernel)(X, 0 * bias), 2 * X)  # as nki-library does
        np.testing.assert_array_equal(nki.simulate(kernel, generation=3)(X, bias), 2 * X + 1)

        @older.jit
        def old(x, bias):
            out = ol.ndarray(x.shape, dtype=x.dtype, buffer=ol.shared_hbm)
            ol.store(out, oisa.activation(op=np.copy, data=ol.load(x), bias=ol.load(bias)))
            return out
        with self.assertRaisesRegex(nki.Error, "op copy leaves its bias out"):
            old(X, bias)


if __name__ == "__main__":
    unittest.main()
