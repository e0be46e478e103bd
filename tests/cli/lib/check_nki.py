"""What examples/python/src/nki promises: bits and cycles of the same kernel in C, views as NumPy has them, refusals of one
sentence with the kernel's line, memory that goes back. Run by tests/cli/nki.sh in a folder with in_c.1, in_c.2, in_c.3.
"""
import array
import dataclasses
import gc
import inspect
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl

RANDOM = np.random.default_rng(5)


def run(kernel, *args, **options):
    made = nki.simulate(kernel, **options)
    result = made(*args)
    return result, made.report


def line_of(text):
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if line.strip() == text)


def refusal(test, kernel, *args, **options):
    with test.assertRaises(nki.Error) as caught:
        run(kernel, *args, **options)
    text = str(caught.exception)
    test.assertNotIn("\n", text)
    return text


# ---- the kernel of nki_kernel.c ----

def softmax(tile):
    most, total = nl.ndarray((96, 1), nl.float32), nl.ndarray((96, 1), nl.float32)
    nisa.tensor_reduce(dst=most, data=tile, op=nl.maximum, axis=1, negate=True)
    nisa.activation(dst=tile, data=tile, op=nl.exp, bias=most, reduce_op=nl.add, reduce_res=total,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)


@nki.jit
def product(a, b):
    out = nl.ndarray((96, 256), nl.float32, buffer=nl.shared_hbm)
    left, right = nl.ndarray((128, 96), nl.bfloat16), nl.ndarray((128, 256), nl.bfloat16)
    psum, tile = nl.ndarray((96, 256), nl.float32, nl.psum), nl.ndarray((96, 256), nl.float32, nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    for _ in nl.affine_range(2):
        nisa.nc_matmul(psum, left, right)
    nisa.tensor_copy(dst=tile, src=psum)
    softmax(tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


def filled(shape, seed):
    i = np.arange(np.prod(shape))
    return (((i * 37 + seed * 11) % 101 - 50) / 16).astype(np.float32).reshape(shape)


def hash_of(x):
    value = 2166136261
    for byte in x.tobytes():
        value = (value ^ byte) * 16777619 & 0xffffffff
    return value


class SameAsC(unittest.TestCase):
    def test_bits_and_cycles(self):
        for generation in (1, 2, 3):
            out, report = run(product, filled((128, 96), 1), filled((128, 256), 2), generation=generation)
            with open(f"in_c.{generation}", encoding="ascii") as file:
                word = file.read().split()
            self.assertEqual(f"{hash_of(out):08x}", word[0])
            self.assertEqual([report.time_s, report.sbuf_high_water, report.psum_high_water],
                             [float(word[1]), int(word[2]), int(word[3])])
            self.assertEqual([e["cycles"] for e in report.engines.values()], [float(w) for w in word[4:]])

    def test_report_and_trace(self):
        _, report = run(product, filled((128, 96), 1), filled((128, 256), 2), trace=True)
        self.assertEqual(report.instructions, 10)
        self.assertIn("TensorE       2 instructions", str(report))
        with tempfile.NamedTemporaryFile("r") as file:
            report.write_trace(file.name)
            events = json.load(file)["traceEvents"]
        self.assertEqual(sum(e.get("name") == "nc_matmul" for e in events), 2)
        where = {e["args"]["where"] for e in events if e.get("name") == "nc_matmul"}
        self.assertEqual(where, {f"check_nki.py:{line_of('nisa.nc_matmul(psum, left, right)')}"})

    def test_waits(self):
        """A chain that nothing runs beside: transfer, activation, transfer; each waits for the one before."""
        def kernel(x):
            out, t = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm), nl.ndarray(x.shape, nl.float32)
            nisa.dma_copy(dst=t, src=x)
            nisa.activation(dst=t, op=nl.exp, data=t)
            nisa.activation(dst=nl.ndarray((128, 64), nl.float32), op=nl.exp, data=t[:, 0:64])  # nobody waits for it
            nisa.dma_copy(dst=out, src=t)
            return out
        _, report = run(kernel, filled((128, 4096), 1))
        self.assertEqual(sorted((w.engine, w.instructions) for w in report.waits),
                         [("DMA", 1), ("DMA", 1), ("ScalarE", 1)])
        self.assertAlmostEqual(sum(w.seconds for w in report.waits), report.time_s, delta=1e-12)
        self.assertEqual({w.file for w in report.waits}, {"check_nki.py"})
        self.assertEqual([w.latency_s > 1e-6 for w in report.waits], [w.engine == "DMA" for w in report.waits])
        self.assertIn(f"first to change: {100 * report.waits[0].seconds / report.time_s:.0f} %, ", str(report))

    def test_paces(self):
        times = [run(product, filled((128, 96), 1), filled((128, 256), 2), pace=p)[1].time_s
                 for p in ("documented", "measured")]
        self.assertNotEqual(*times)
        with self.assertRaisesRegex(nki.Error, "^pace 'warm': there are measured and documented$"):
            run(product, filled((128, 96), 1), filled((128, 256), 2), pace="warm")


# ---- views ----

def numbers(tensor):
    return np.frombuffer(tensor.tobytes(), np.float32).reshape(tensor.shape)


class Views(unittest.TestCase):
    def inside(self, body, *args, **options):
        """Runs body in a kernel, where tensors exist."""
        def kernel(*tensors):
            body(*tensors)
        run(kernel, *args, **options)

    def test_indices_are_numpys(self):
        x = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
        parts = [0, -1, 2, slice(None), slice(1, 3), slice(0, 4, 2), slice(-2, None), None, Ellipsis, nl.ds(1, 2)]

        def body(t):
            for key in itertools.product(parts, parts, parts):
                if key.count(Ellipsis) > 1:
                    continue
                want = x[key]
                self.assertTrue(np.array_equal(numbers(t[key]), want.reshape(want.shape or (1,))), key)
            for bad in (4, -5, (0, 5), (slice(None), slice(0, 6)), (0, 0, 0, 0)):
                with self.assertRaises(IndexError):
                    numbers(t[bad])
        self.inside(body, x)

    def test_tiles_keep_their_partitions(self):
        def body(x):
            t = nl.ndarray((4, 5, 6), nl.float32)
            nisa.dma_copy(t, x)
            self.assertEqual(t[2].shape, (1, 5, 6))
            self.assertEqual(t[2, 3].shape, (1, 6))
            self.assertEqual(t[:, 3, 2].shape, (4, 1))
            self.assertEqual(numbers(t[2, 3]).tolist(), [numbers(x)[2, 3].tolist()])
        self.inside(body, np.arange(120, dtype=np.float32).reshape(4, 5, 6))

    def test_patterns(self):
        x = np.arange(8 * 24, dtype=np.float32).reshape(8, 24)

        def body(hbm):
            tile = nl.ndarray((8, 24), nl.float32)
            nisa.dma_copy(tile, hbm)
            for t in (hbm, tile):
                for offset, pattern in ((0, [[24, 8], [1, 24]]), (5, [[24, 3], [2, 7]]), (3, [[24, 8], [6, 3], [1, 2]]),
                                        (25, [[24, 2], [0, 4], [3, 5]])):
                    want = np.full([n for _, n in pattern], offset)
                    for axis, (step, n) in enumerate(pattern):
                        want = want + step * np.arange(n).reshape([-1 if a == axis else 1 for a in range(len(pattern))])
                    self.assertTrue(np.array_equal(numbers(t.ap(pattern=pattern, offset=offset)), x.reshape(-1)[want]))
                    got = t.ap(pattern, offset)
                    self.assertEqual([list(p) for p in got.get_pattern() if p[1] > 1], [p for p in pattern if p[1] > 1])
                with self.assertRaises(nki.Error):
                    numbers(t.ap([[24, 9], [1, 24]]))
                part = t[1:, 3:9]
                self.assertEqual((part.offset, part.get_pattern()), (27, [[24, 7], [1, 6]]))
                self.assertEqual(numbers(part.ap([[24, 2], [1, 2]])).tolist(), x[1:3, 3:5].tolist())
                self.assertEqual(numbers(part.ap([[24, 2], [1, 2]], 0)).tolist(), x[:2, :2].tolist())
                of_three_axes = t.reshape((8, 4, 6)).ap([[24, 8], [12, 2]], 1)
                self.assertEqual(numbers(of_three_axes).tolist(), x[:, 1:25:12].tolist())
        self.inside(body, x)

    def test_shapes(self):
        x = np.arange(8 * 24, dtype=np.float32).reshape(8, 24)

        def body(t):
            self.assertTrue(np.array_equal(numbers(t.reshape((8, 4, 6))), x.reshape(8, 4, 6)))
            self.assertTrue(np.array_equal(numbers(t.reshape((2, 4, 3, 8))), x.reshape(2, 4, 3, 8)))
            self.assertTrue(np.array_equal(numbers(t.reshape((-1, 12))), x.reshape(-1, 12)))
            self.assertTrue(np.array_equal(numbers(t.reshape((8, 4, 6)).permute((0, 2, 1))),
                                           x.reshape(8, 4, 6).transpose(0, 2, 1)))
            self.assertTrue(np.array_equal(numbers(t[:, 0:1].broadcast(1, 5)), np.broadcast_to(x[:, 0:1], (8, 5))))
            self.assertTrue(np.array_equal(numbers(t.rearrange(("p", ("a", "b")), ("p", "b", "a"), {"a": 4})),
                                           x.reshape(8, 4, 6).transpose(0, 2, 1)))
            self.assertEqual(t.view(nl.bfloat16).shape, (8, 48))
            self.assertEqual(t.view(nl.bfloat16).view(nl.float32).tobytes(), t.tobytes())
            with self.assertRaises(nki.Error):
                t[:, 0:12].reshape((4, 24))
        self.inside(body, x)

    def test_offsets_in_tiles(self):
        x = RANDOM.random((8, 16), np.float32)

        def kernel(t):
            at = nl.ndarray((1, 1), nl.int32)
            nisa.memset(at, 3)
            row = nl.ndarray((1, 16), nl.float32)
            nisa.dma_copy(row, t.ap([[16, 1], [1, 16]], scalar_offset=at, indirect_dim=0))
            rows = nl.ndarray((4, 1), nl.int32)
            nisa.iota(rows, [[1, 1]], offset=1, channel_multiplier=2)
            many = nl.ndarray((4, 16), nl.float32)
            nisa.dma_copy(many, t.ap([[16, 4], [1, 16]], vector_offset=rows))
            out, more = nl.ndarray((1, 16), nl.float32, nl.hbm), nl.ndarray((4, 16), nl.float32, nl.hbm)
            nisa.dma_copy(out, row)
            nisa.dma_copy(more, many)
            return out, more
        (one, many), _ = run(kernel, x)
        self.assertTrue(np.array_equal(one, x[3:4]))
        self.assertTrue(np.array_equal(many, x[1::2]))

    def test_one_element_many_times(self):
        def kernel(t):
            tile, out = nl.ndarray((4, 5), nl.float32), nl.ndarray((4, 5), nl.float32, nl.shared_hbm)
            one = nl.ndarray((1, 1), nl.float32)
            nisa.dma_copy(tile, t.ap([[0, 4], [0, 5]], 13))
            nisa.dma_copy(one, t[2:3, 3:4])
            nisa.tensor_scalar(tile[0:1], one.broadcast(1, 5), nl.multiply, 2.0)
            nisa.dma_copy(out, tile)
            return out
        x = RANDOM.random((4, 5), np.float32)
        want = np.full((4, 5), x[2, 3])
        want[0] *= 2
        self.assertTrue(np.array_equal(run(kernel, x)[0], want))

    def test_scattered_places(self):
        x = RANDOM.random((9, 12), np.float32)
        rows, columns = RANDOM.integers(0, 9, (6, 1)), RANDOM.integers(0, 12, (1, 8))
        to = RANDOM.permutation(6 * 8).reshape(6, 8)

        def kernel(t):
            tile, out = nl.ndarray((6, 8), nl.float32), nl.ndarray((6, 8), nl.float32, nl.shared_hbm)
            nisa.dma_copy(tile, t[rows, nl.arange(8)[None, :]])
            nisa.dma_copy(out, tile)
            more, again = nl.ndarray((6, 8), nl.float32), nl.ndarray((6, 8), nl.float32, nl.shared_hbm)
            nisa.dma_copy(more, t[rows, columns])
            nisa.dma_copy(again[to // 8, to % 8], more)
            with self.assertRaisesRegex(nki.Error, "index 9 of axis 0, which has 9"):
                nisa.dma_copy(tile, t[rows * 0 + 9, columns])
            return out, again
        (out, again), _ = run(kernel, x)
        self.assertTrue(np.array_equal(out, x[rows, np.arange(8)]))
        want = np.empty((6, 8), np.float32)
        want[to // 8, to % 8] = x[rows, columns]
        self.assertTrue(np.array_equal(again, want))


# ---- formats ----

class Formats(unittest.TestCase):
    def test_in_and_out(self):
        def kernel(x, dtype):
            tile, out = nl.ndarray(x.shape, dtype), nl.ndarray(x.shape, dtype, nl.shared_hbm)
            nisa.dma_copy(tile, x)
            nisa.dma_copy(out, tile)
            return out
        x = np.arange(-64, 64, dtype=np.float32).reshape(8, 16) / 4
        for dtype in (nl.float32, nl.bfloat16, nl.float16, nl.float8_e4m3, nl.float8_e5m2, nl.int32, nl.int8):
            out, _ = run(kernel, x, dtype)
            self.assertEqual(out.shape, x.shape)
            if dtype in (nl.float32, nl.bfloat16, nl.float16):
                self.assertTrue(np.array_equal(out.astype(np.float32), x), dtype)
        given = nki.tensor(x, nl.bfloat16)
        out, _ = run(kernel, given, nl.float32)
        self.assertTrue(np.array_equal(out, x))
        self.assertEqual(nl.bfloat16, "bfloat16")
        self.assertEqual(nl.float32, np.dtype("float32"))

    def test_without_numpy(self):
        program = ("import sys; sys.modules['numpy'] = None\n"
                   "import array, nki, nki.isa as nisa, nki.language as nl\n"
                   "def kernel(x):\n"
                   "    t, o = nl.ndarray((4, 4), nl.float32), nl.ndarray((4, 4), nl.float32, nl.shared_hbm)\n"
                   "    nisa.dma_copy(t, x); nisa.tensor_scalar(t, t, nl.multiply, 2.0); nisa.dma_copy(o, t)\n"
                   "    return o\n"
                   "x = memoryview(array.array('f', range(16))).cast('B').cast('f', (4, 4))\n"
                   "print(nki.simulate(kernel)(x).tolist()[1])\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "[8.0, 10.0, 12.0, 14.0]\n", done.stderr)


# ---- refusals ----

class Refusals(unittest.TestCase):
    def test_a_line(self):
        def kernel(x):
            tile = nl.ndarray((128, 4), nl.float32)
            nisa.tensor_copy(dst=tile, src=x)
        text = refusal(self, kernel, np.zeros((128, 4), np.float32))
        line = inspect.getsourcelines(kernel)[1] + 2
        self.assertEqual(text, "instruction 0, tensor_copy: src is not in SBUF or PSUM; only DMA reaches other memory "
                               f"(check_nki.py, line {line}, generation 2)")

    def test_names_are_text(self):
        def kernel():
            nl.ndarray((129, 4), nl.float32, name="a\x1b]0;x\x07\nb\u202e")
        text = refusal(self, kernel)
        self.assertTrue(text.isprintable() and "'a\\x1b]0;x\\x07\\nb\\u202e'" in text, text)

    def test_what_the_machine_cannot_do(self):
        def unwritten():
            a, out = nl.ndarray((128, 4), nl.float32), nl.ndarray((128, 4), nl.float32, nl.shared_hbm)
            nisa.tensor_copy(a, nl.ndarray((128, 4), nl.float32))
            nisa.dma_copy(out, a)

        def large():
            nl.ndarray((128, 64 * 1024), nl.float32)

        def partitions():
            nl.ndarray((129, 4), nl.float32)

        def many():
            tiles = [nl.zeros((128, 16 * 1024), nl.float32) for _ in range(5)]
            for tile in tiles:
                nisa.tensor_copy(tile, tile)

        def shapes():
            a, b = nl.zeros((128, 4), nl.float32), nl.zeros((128, 5), nl.float32)
            nisa.tensor_tensor(a, a, b, nl.add)

        def operator():
            a = nl.zeros((128, 4), nl.float32)
            nisa.tensor_tensor(a, a, a, nl.exp)

        def host():
            a = nl.zeros((128, 4), nl.float32)
            nisa.tensor_tensor(a, a, [1, 2], nl.add)

        def alone():
            a = nl.zeros((128, 4), nl.float32)
            nisa.sendrecv(a, a, 0, 0, 0)

        for kernel, says in ((unwritten, "which nothing has written"),
                             (large, "bytes per partition; SBUF of Trainium2 has"),
                             (partitions, "there are 128"), (many, "lives at the same time does not fit"),
                             (shapes, "128 partitions of 5 elements"), (operator, "exp is no operator"),
                             (host, "data2 is a list, not a tensor"), (alone, "runs on one core")):
            text = refusal(self, kernel)
            self.assertIn(says, text)
            self.assertIn("(check_nki.py, line ", text)
        with self.assertRaisesRegex(nki.Error, "inside a kernel only"):
            nl.ndarray((128, 4), nl.float32)
        with self.assertRaisesRegex(nki.Error, "no such field|neither a preset|takes"):
            run(large, numerics="nonsense=1")
        with self.assertRaisesRegex(nki.Error, "rounding 'up'"):
            run(large, rounding="up")

    def test_no_poison(self):
        def kernel():
            a, b = nl.ndarray((128, 4), nl.float32), nl.ndarray((128, 4), nl.float32)
            nisa.tensor_copy(a, b)
            nisa.dma_copy(nl.ndarray((128, 4), nl.float32, nl.shared_hbm), a)
        self.assertIn("which nothing has written", refusal(self, kernel))
        run(kernel, no_poison=True)

    def test_arguments(self):
        def kernel():
            a = nl.zeros((4, 4), nl.float32)
            for call in (lambda: nisa.tensor_tensor(a, a), lambda: nisa.tensor_copy(a, a, colour=1),
                         lambda: nisa.iota(a, [[1, 2, 3]]), lambda: nisa.memset(a, "x"),
                         lambda: nisa.tensor_reduce(a, nl.add, a, "y"), lambda: nisa.dma_copy(None, a)):
                with self.assertRaises((TypeError, ValueError, AttributeError, nki.Error)):
                    call()
        run(kernel)


# ---- memory ----

class Memory(unittest.TestCase):
    def test_tiles_go_back(self):
        def kernel(x):
            for _ in range(200):
                tile = nl.ndarray((128, 16 * 1024), nl.float32)
                part = tile[0:64, 0:8]
                del tile
                nisa.memset(part, 1.0)
        _, report = run(kernel, np.zeros(4, np.float32))
        self.assertLessEqual(report.sbuf_high_water_partition, 2 * 64 * 1024)

    def test_a_kernels_places(self):
        def kernel(x):
            out = nl.ndarray((128, 32), nl.float32, nl.shared_hbm)
            for i in range(300):
                tile = nl.ndarray((128, 16 * 1024), nl.float32, address=(0, 4096))
                keep.append(tile)
            nisa.dma_copy(tile[:, 0:32], x)
            nisa.dma_copy(out, tile[:, 0:32])
            return out
        keep, x = [], RANDOM.random((128, 32), np.float32)
        out, report = run(kernel, x)
        self.assertTrue(np.array_equal(out, x))
        self.assertLessEqual(report.sbuf_high_water_partition, 64 * 1024)

        def overwritten(x):
            first = nl.ndarray((128, 32), nl.float32, address=(0, 0))
            nisa.dma_copy(first, x)
            nisa.memset(nl.ndarray((128, 32), nl.float32, address=(0, 64)), 0.0)
            nisa.tensor_copy(first, first)
        self.assertIn("'tile', which was freed", refusal(self, overwritten, x).replace("reads", "writes"))

    def test_nothing_is_left(self):
        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        if not os.path.exists("/proc/self/statm"):
            self.skipTest("no /proc")
        x, y = filled((128, 96), 1), filled((128, 256), 2)

        def all_kinds():
            for _ in range(15):
                product(x, y)
                product[2](x, y)
                refusal(self, lambda: nl.ndarray((129, 1), nl.float32))
            gc.collect()
            return len(gc.get_objects()), resident()
        all_kinds()
        objects, bytes_ = all_kinds()
        more, more_bytes = all_kinds()
        self.assertLess(more - objects, 50)
        self.assertLess(more_bytes - bytes_, 16 << 20)


# ---- grids ----

@nki.jit
def exchange(x):
    out = nl.ndarray((2, 128, 16), nl.float32, buffer=nl.shared_hbm)
    me, other = nl.program_id(0), 1 - nl.program_id(0)
    mine, theirs = nl.ndarray((128, 16), nl.float32), nl.ndarray((128, 16), nl.float32)
    nisa.dma_copy(mine, x[me])
    nisa.sendrecv(src=mine, dst=theirs, send_to_rank=other, recv_from_rank=other, pipe_id=0)
    nisa.dma_copy(out[me], theirs)
    nisa.core_barrier(out, (0, 1))
    return out


class Grids(unittest.TestCase):
    def test_two_cores(self):
        x = RANDOM.random((2, 128, 16), np.float32)
        for _ in range(3):
            self.assertTrue(np.array_equal(exchange[2](x), x[::-1]))
        self.assertEqual(len(exchange.report.cores), 2)
        self.assertEqual(exchange.report.cores[0]["instructions"], exchange.report.cores[1]["instructions"])

    def test_many_programs(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray((4, 6, 8), nl.float32, buffer=nl.shared_hbm)
            i, j = nl.program_id(0), nl.program_id(1)
            self.assertEqual((nl.program_ndim(), nl.num_programs(0), nl.num_programs(1), nl.num_programs()),
                             (2, 4, 6, 24))
            tile = nl.ndarray((1, 8), nl.float32)
            nisa.dma_copy(tile, x[i, j:j + 1])
            nisa.tensor_scalar(tile, tile, nl.add, float(10 * i + j))
            nisa.dma_copy(out[i, j:j + 1], tile)
            return out
        x = RANDOM.integers(0, 9, (4, 6, 8)).astype(np.float32)
        want = x + (10 * np.arange(4)[:, None] + np.arange(6))[:, :, None]
        self.assertTrue(np.array_equal(kernel[4, 6](x), want))

    def test_who_waits_for_ever_is_told(self):
        def kernel():
            tile = nl.zeros((128, 4), nl.float32)
            if nl.program_id(0) == 0:
                nisa.sendrecv(tile, nl.ndarray((128, 4), nl.float32), 1, 1, 0)
        made = nki.simulate(nki.jit(kernel)[2])
        with self.assertRaisesRegex(nki.Error, "rank 0"):
            made()

    def test_a_program_that_fails_ends_all(self):
        def kernel():
            if nl.program_id(0) == 1:
                raise ValueError("mine")
            nisa.core_barrier(None, (0, 1))
        with self.assertRaisesRegex(ValueError, "mine"):
            nki.simulate(nki.jit(kernel)[2])()


# ---- ranks ----

class Ranks(unittest.TestCase):
    def test_collectives(self):
        x = RANDOM.integers(-8, 9, (4, 8, 16)).astype(np.float32)
        group = ncc.ReplicaGroup([[0, 1, 2, 3]])

        def kernel(mine, base):
            def new(*shape):
                return nl.ndarray(shape, nl.float32, nl.private_hbm)
            own, total, most, all_, share, swapped, ring = (new(8, 16), new(8, 16), new(8, 16), new(32, 16), new(2, 16),
                                                            new(8, 16), new(8, 16))
            tile = nl.ndarray((8, 16), nl.float32)
            nisa.dma_copy(tile, mine)
            nisa.tensor_scalar(tile, tile, nl.add, float(base))
            nisa.dma_copy(own, tile)
            ncc.all_reduce(srcs=[own], dsts=[total], replica_group=group, op=nl.add)
            ncc.all_reduce([own], [most], group, nl.maximum)
            ncc.all_gather([own], [all_], group, 0)
            ncc.reduce_scatter([own], [share], group, 0, nl.add)
            ncc.all_to_all([own], [swapped], group, 0)
            ncc.collective_permute_implicit([[own]], [[ring]], group)
            whose = ncc.collective_permute_implicit_current_processing_rank_id(1, group)
            return ncc.rank_id(), total, most, all_, share, swapped, ring, whose
        made = nki.simulate(kernel, ranks=4)
        results = made(nki.per_rank(list(x)), 1)
        y = x + 1
        for rank, (id_, total, most, all_, share, swapped, ring, whose) in enumerate(results):
            self.assertEqual(id_, rank)
            self.assertTrue(np.array_equal(total, y.sum(axis=0)))
            self.assertTrue(np.array_equal(most, y.max(axis=0)))
            self.assertTrue(np.array_equal(all_, y.reshape(32, 16)))
            self.assertTrue(np.array_equal(share, y.sum(axis=0)[2 * rank:2 * rank + 2]))
            self.assertTrue(np.array_equal(swapped, y[:, 2 * rank:2 * rank + 2].reshape(8, 16)))
            self.assertTrue(np.array_equal(ring, y[whose]))
            self.assertEqual(whose, (rank - 1) % 4)
        self.assertEqual(len(made.report.cores), 4)

    def test_as_many_as_each_rank_says(self):
        """all_gather_v and all_to_all_v of four ranks and of one, with and without the rows that say what comes."""
        rng, slot = np.random.default_rng(11), 6

        def kernel(mine, counts, name, known, places, ranks):
            made = nl.full((ranks * slot,), -1.0, nl.float32, nl.private_hbm)
            getattr(ncc, name)([mine], [made], ncc.ReplicaGroup([list(range(ranks))]), counts, known, places)
            return made
        for ranks in (1, 2, 4):
            x = rng.integers(-8, 9, (ranks, 5, 8)).astype(np.float32)
            for name in ("all_gather_v", "all_to_all_v"):
                for known, places in ((False, False), (True, False), (True, True)):
                    table = np.zeros((ranks, 4, ranks), np.uint32)
                    table[:, 0] = rng.integers(0, slot + 1, (ranks, ranks))
                    table[:, 1] = rng.integers(0, 40 - slot, (ranks, ranks))
                    if name == "all_gather_v":
                        table[:, :2] = table[:, :2, :1]
                    table[:, 2] = table[:, 0].T
                    table[:, 3] = (np.arange(ranks)[::-1] * slot)
                    rows = 4 if places else 3 if known else 2
                    want = np.full((ranks, ranks * slot), -1.0)
                    for to in range(ranks):
                        for one in range(ranks):
                            count, begin = (int(n) for n in table[one, :2, to])
                            place = int(table[to, 3, one]) if places else one * slot
                            want[to, place:place + count] = x[one].reshape(-1)[begin:begin + count]
                    counts = np.ascontiguousarray(table[:, :rows])
                    arguments = (nki.per_rank(list(x)), nki.per_rank(list(counts))) if ranks > 1 else (x[0], counts[0])
                    run = nki.simulate(kernel, ranks=ranks if ranks > 1 else None)
                    got = run(*arguments, name, known, places, ranks)
                    with self.subTest(name=name, ranks=ranks, known=known, places=places):
                        self.assertTrue(np.array_equal(np.stack(got if ranks > 1 else [got]), want))

    def test_refusals_of_counts(self):
        x, group = np.zeros(8, np.float32), ncc.ReplicaGroup([[0]])

        def kernel(x, counts, known):
            made = nl.ndarray((8,), nl.float32, nl.private_hbm)
            ncc.all_to_all_v([x], [made], group, counts, recv_counts_known=known)
        self.assertIn("uint32 [2, 1]", refusal(self, kernel, x, np.zeros((2, 1), np.int32), False))
        self.assertIn("do not go", refusal(self, kernel, x, np.uint32([[9], [0]]), False))
        self.assertIn("which sends 3", refusal(self, kernel, x, np.uint32([[3], [0], [4]]), True))

    def test_channels(self):
        """Two channels of an implicit permute: the first of the rank before, the second of the one after."""
        x = RANDOM.integers(-8, 9, (4, 2, 8, 16)).astype(np.float32)
        group = ncc.ReplicaGroup([[0, 2], [1, 3]])

        def kernel(mine):
            own = [nl.ndarray((8, 16), nl.float32) for _ in range(2)]
            came = [nl.ndarray((8, 16), nl.float32) for _ in range(2)]
            out = nl.ndarray((2, 8, 16), nl.float32, nl.private_hbm)
            for channel in range(2):
                nisa.dma_copy(own[channel], mine[channel])
            ncc.collective_permute_implicit([[t] for t in own], [[t] for t in came], group, channel_ids=[0, 1])
            for channel in range(2):
                nisa.dma_copy(out[channel], came[channel])
            return [out] + [ncc.collective_permute_implicit_current_processing_rank_id(1, group, channel_id=channel)
                            for channel in range(2)]
        for rank, (out, first, second) in enumerate(nki.simulate(kernel, ranks=4)(nki.per_rank(list(x)))):
            self.assertEqual((first, second), ((rank + 2) % 4,) * 2)
            self.assertTrue(np.array_equal(out, np.stack([x[first, 0], x[second, 1]])))

    def test_ranks_of_two_cores(self):
        def kernel(x):
            out = nl.ndarray((2, 8, 16), nl.float32, nl.shared_hbm)
            me = nl.program_id(0)
            tile, more = nl.ndarray((8, 16), nl.float32), nl.ndarray((8, 16), nl.float32)
            nisa.dma_copy(tile, x[me])
            ncc.all_reduce([tile], [more], ncc.ReplicaGroup([[0, 1]]), nl.add)
            nisa.tensor_scalar(more, more, nl.add, float(ncc.rank_id()))
            nisa.dma_copy(out[me], more)
            nisa.core_barrier(out, (0, 1))
            return out
        x = RANDOM.integers(-8, 9, (2, 2, 8, 16)).astype(np.float32)
        results = nki.simulate(nki.jit(kernel)[2], ranks=2)(nki.per_rank(list(x)))
        for rank, result in enumerate(results):
            self.assertTrue(np.array_equal(result, x.sum(axis=0) + rank))

    def test_refusals(self):
        def alone(x):
            ncc.all_reduce([x], [x], ncc.ReplicaGroup([[0, 1]]), nl.add)
        text = refusal(self, alone, np.zeros(4, np.float32))
        self.assertIn("all_reduce of several ranks: the kernel runs on one", text)
        with self.assertRaisesRegex(nki.Error, "per_rank has 1 values"):
            nki.simulate(alone, ranks=2)(nki.per_rank([1]))
        with self.assertRaisesRegex(nki.Error, "up to 128 cores"):
            nki.simulate(alone, ranks=2000)(1)


# ---- arguments and results ----

@dataclasses.dataclass
class Pair(nl.NKIObject):
    first: object
    scale: float


class Results(unittest.TestCase):
    """An array that a kernel returns is the caller's, and no other's, though it may be the memory of the tensor."""

    @staticmethod
    def doubled(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.multiply(nl.load(x), 2.0))
        return out

    def test_whose(self):
        x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
        run = nki.simulate(self.doubled)
        first = run(x)
        second = run(x)
        second[:] = 7
        np.testing.assert_array_equal(first, 2 * x)
        self.assertTrue(first.flags.writeable and first.flags.c_contiguous)
        del run
        gc.collect()
        again = [nki.simulate(self.doubled)(x) for _ in range(40)]
        np.testing.assert_array_equal(first, 2 * x)
        self.assertTrue((second == 7).all())
        first[:] = 3
        self.assertTrue(all(np.array_equal(one, 2 * x) for one in again))

    def test_returned_twice_and_in_part(self):
        kept = []

        def several(x):
            out = self.doubled(x)
            kept.append(out)
            return {"one": out, "list": [out, out[:, ::2], out[32:64], out.reshape((64, 128))], "given": x}

        x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
        got = nki.simulate(several)(x)
        all_of_it = [got["one"], *got["list"], got["given"]]
        want = [2 * x, 2 * x, 2 * x[:, ::2], 2 * x[32:64], (2 * x).reshape(64, 128), x]
        for one in range(len(all_of_it)):
            all_of_it[one][:] = -1
            for n in range(one + 1, len(want)):
                np.testing.assert_array_equal(all_of_it[n], want[n])
        np.testing.assert_array_equal(x, np.arange(128 * 64, dtype=np.float32).reshape(128, 64))

    def test_large_ones_are_not_copied(self):
        """4 MiB and more, of all formats; as many bytes as the result more, and not twice as many."""
        x = np.ones((2048, 1024), np.float32)
        for dtype in (np.float32, np.int32, np.uint8):
            got = nki.simulate(lambda v: self.stored(v))(x.astype(dtype))
            self.assertEqual(type(got.base.base if got.base.base is not None else got.base).__name__, "Memory")
            self.assertTrue((got == 1).all())

    @staticmethod
    def stored(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        return out


class Calls(unittest.TestCase):
    def test_what_goes_in_and_comes_out(self):
        @nki.jit
        def twice(x):
            tile, out = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
            nisa.dma_copy(tile, x)
            nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
            nisa.dma_copy(out, tile)
            return out

        @nki.jit
        def kernel(pair, more, name=None, flag=False):
            return {"a": twice(pair.first), "b": (twice(more[0]), pair.scale, name, flag)}
        x = RANDOM.random((4, 8), np.float32)
        result = kernel(Pair(first=x, scale=3.0), [x + 1], name="n", flag=True)
        self.assertTrue(np.array_equal(result["a"], 2 * x))
        self.assertTrue(np.array_equal(result["b"][0], 2 * (x + 1)))
        self.assertEqual(result["b"][1:], (3.0, "n", True))
        buffer = memoryview(array.array("f", [1, 2])).cast("B").cast("f", (1, 2))
        self.assertTrue(np.array_equal(twice(buffer), [[2, 4]]))

    def test_arguments_stay_as_they_are(self):
        def kernel(x):
            tile = nl.zeros(x.shape, x.dtype)
            nisa.dma_copy(x, tile)
            return x
        x = np.ones((4, 8), np.float32)
        self.assertTrue(np.array_equal(run(kernel, x)[0], np.zeros((4, 8))))
        self.assertTrue(np.array_equal(x, np.ones((4, 8))))

    def test_accumulation(self):
        def kernel(x, how):
            tile, psum = nl.ndarray((16, 16), nl.bfloat16), nl.ndarray((16, 2, 16), nl.float32, nl.psum)
            out, sums = nl.ndarray((16, 16), nl.float32, nl.shared_hbm), nl.ndarray((16, 16), nl.float32)
            nisa.dma_copy(tile, x)
            nisa.nc_matmul(psum[:, 1, :], tile, tile)
            for flag in how:
                nisa.nc_matmul(psum[:, 0, :], tile, tile, accumulate=flag)
            nisa.tensor_copy(sums, psum[:, 0, :])
            nisa.dma_copy(out, sums)
            return out
        x = RANDOM.integers(-3, 4, (16, 16)).astype(np.float32)
        for how, times in (([None, None, None], 3), ([None, False], 1), ([False, True], 2), ([False, True, None], 3)):
            self.assertTrue(np.array_equal(run(kernel, x, how)[0], times * (x.T @ x)), how)

    def test_bits(self):
        def kernel(x):
            tile, out = nl.ndarray((4, 8), nl.int32), nl.ndarray((4, 8), nl.int32, nl.shared_hbm)
            nisa.dma_copy(tile, x)
            nisa.tensor_scalar(tile, tile, nl.bitwise_and, 0x7f0f0f0f, op1=nl.left_shift, operand1=1)
            nisa.dma_copy(out, tile)
            return out
        x = RANDOM.integers(0, 1 << 30, (4, 8)).astype(np.int32)
        self.assertTrue(np.array_equal(run(kernel, x)[0], (x & 0x7f0f0f0f) << 1))

    def test_integers_and_places_from_tiles(self):
        """memset of what float32 does not hold; a transfer that begins where a tile says; indirect views."""
        def kernel(x, at, index):
            out = [nl.ndarray(shape, dtype, nl.shared_hbm) for shape, dtype in
                   (((4, 2), nl.int32), ((3, 64), x.dtype), ((16, 32), x.dtype), ((16, 64), x.dtype))]
            whole, rows = nl.ndarray((4, 2), nl.int32), nl.ndarray((3, 64), x.dtype)
            first, tile, chosen, names = nl.load(at), nl.load(x), nl.ndarray((16, 32), x.dtype), nl.load(index)
            nisa.memset(whole, 2 ** 31 - 3)
            nisa.dma_copy(out[0], whole)
            nisa.dma_copy(rows, x.ap([[64, 3], [1, 64]], scalar_offset=first, indirect_dim=0))
            nisa.dma_copy(out[1], rows)
            self.assertTrue(tile.indirect(names).is_indirect() and not tile.is_indirect())
            nisa.tensor_copy(chosen, tile.indirect(names), engine=nisa.engine.vector)
            nisa.dma_copy(out[2], chosen)
            nisa.tensor_copy(tile.indirect(names), nl.zeros((16, 32), x.dtype), engine=nisa.engine.vector)
            nisa.dma_copy(out[3], tile)
            return out
        x = RANDOM.normal(size=(16, 64)).astype(np.float32)
        index = np.stack([RANDOM.permutation(64)[:32] for _ in range(1)]).reshape(2, 16).T.astype(np.uint32)
        named = index.T.reshape(-1)
        got = nki.simulate(kernel, generation=3)(x, np.int32([[11]]), index)
        left = x.copy()
        left[:, named] = 0
        for have, want in zip(got, (np.full((4, 2), 2 ** 31 - 3), x[11:14], x[:, named], left)):
            self.assertTrue(np.array_equal(have, want))
        self.assertIn("begins 14 of axis 0", refusal(self, nki.simulate(kernel, generation=3), x, np.int32([[14]]), index))
        self.assertIn("Trainium2 has no indirect views", refusal(self, nki.simulate(kernel, generation=2), x,
                                                                 np.int32([[11]]), index))

    def test_every_instruction(self):
        """The names and the order of arguments of NKI 0.6.0."""
        want = """activate2(dst, op, data, imm0, imm1, op0, op1, relu_param, reverse0, reverse1, reduce_op,
    reduce_res, reduce_cmd, name)
activation(dst, op, data, bias, scale, reduce_op, reduce_res, reduce_cmd, name)
activation_reduce(dst, op, data, reduce_op, reduce_res, bias, scale, name)
affine_select(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op, offset, name)
bn_aggr(dst, data, name)
bn_stats(dst, data, name)
core_barrier(data, cores, engine, name)
dma_compute(dst, srcs, reduce_op, scales, unique_indices, oob_mode, name)
dma_copy(dst, src, priority, oob_mode, dge_mode, engine, name)
dma_transpose(dst, src, axes, priority, dge_mode, oob_mode, name)
dropout(dst, data, prob, name)
exponential(dst, src, max_value, reduce_res, reduce_cmd, reduce_init, name)
iota(dst, pattern, offset, channel_multiplier, name)
local_gather(dst, src_buffer, index, num_elem_per_idx, num_valid_indices, name)
max8(dst, src, name)
memset(dst, value, engine, name)
nc_find_index8(dst, data, vals, name)
nc_match_replace8(dst, data, vals, imm, dst_idx, name)
nc_matmul(dst, stationary, moving, is_stationary_onezero, is_moving_onezero, is_transpose, accumulate,
    tile_position, tile_size, perf_mode, name)
nc_matmul_mx(dst, stationary, moving, stationary_scale, moving_scale, tile_position, tile_size, accumulate, name)
nc_n_gather(dst, data, indices, name)
nc_stream_shuffle(dst, src, shuffle_mask, name)
nc_transpose(dst, data, engine, name)
nonzero_with_count(dst, src, index_offset, padding_val, name)
quantize_mx(dst, src, dst_scale, name)
rand2(dst, min, max, name)
rand_get_state(dst, engine, name)
rand_set_state(src_seeds, engine, name)
range_select(dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd, reduce_res, reduce_op, range_start,
    on_false_value, name)
reciprocal(dst, data, name)
register_alloc(x)
register_load(dst, src)
register_move(dst, src)
register_store(dst, src)
rng(dst, engine, name)
scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0, reverse1, name)
select_reduce(dst, predicate, on_true, on_false, reduce_res, reduce_cmd, reduce_op, reverse_pred, name)
sendrecv(src, dst, send_to_rank, recv_from_rank, pipe_id, dma_engine, name)
sequence_bounds(dst, segment_ids, name)
set_rng_seed(src_seeds, name)
tensor_copy(dst, src, engine, name)
tensor_copy_predicated(dst, src, predicate, reverse_pred, name)
tensor_partition_reduce(dst, op, data, name)
tensor_reduce(dst, op, data, axis, negate, keepdims, name)
tensor_scalar(dst, data, op0, operand0, reverse0, op1, operand1, reverse1, engine, name)
tensor_scalar_cumulative(dst, src, op0, op1, imm0, imm1, reduce_cmd, name)
tensor_scalar_reduce(dst, data, op0, operand0, reduce_op, reduce_res, reverse0, reduce_cmd, reduce_init,
    reduce_res_negate, name)
tensor_tensor(dst, data1, data2, op, engine, name)
tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0, reverse1, name)
topk(val_dst, idx_dst, src, n, name)"""
        for line in want.replace(",\n    ", ", ").splitlines():
            name, parameters = line[:-1].split("(")
            function = getattr(nisa, name)
            got = [p for p in inspect.signature(function).parameters if p not in ("_", "more")]
            self.assertEqual(", ".join(got), parameters, name)
            self.assertTrue(function.__doc__, name)


if __name__ == "__main__":
    unittest.main()
