"""Tolerances of whole kernels: no result is further from exact arithmetic than its bound, bounds are no wider than they
have to be, a wrong kernel fails, and the message names the instruction that brings the error.

Run by tests/cli/nki.sh.
"""
import inspect
import math
import sys
import unittest

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl
from nki import rules

P, F, K = 128, 256, 96


def tile(shape, dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def loaded(x, dtype=None):
    t = tile(x.shape, dtype or x.dtype)
    nisa.dma_copy(dst=t, src=x)
    return t


def stored(t, dtype=nl.float32):
    out = nl.ndarray(t.shape, dtype=dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out


# ---- kernels and what they are exactly ----

def softmax(q, k):
    scores = tile((P, F), buffer=nl.psum)
    nisa.nc_matmul(dst=scores, stationary=loaded(q, nl.bfloat16), moving=loaded(k, nl.bfloat16))
    top, total, inverse, e = tile((P, 1)), tile((P, 1)), tile((P, 1)), tile((P, F))
    nisa.tensor_reduce(dst=top, op=nl.maximum, data=scores, axis=1, negate=True)
    nisa.activation(dst=e, op=nl.exp, data=scores, bias=top)
    nisa.tensor_reduce(dst=total, op=nl.add, data=e, axis=1)
    nisa.reciprocal(dst=inverse, data=total)
    nisa.tensor_scalar(dst=e, data=e, op0=nl.multiply, operand0=inverse)
    return stored(e)


def softmax_exact(q, k):
    x = q.T @ k
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x):
    t, stats, both, y = loaded(x), tile((P, 6)), tile((P, 2)), tile((P, F), nl.bfloat16)
    nisa.bn_stats(dst=stats, data=t)
    nisa.bn_aggr(dst=both, data=stats)
    spread = tile((P, 1))
    nisa.tensor_scalar(dst=spread, data=both[:, 1:2], op0=nl.add, operand0=1e-3)
    nisa.activation(dst=spread, op=nl.rsqrt, data=spread)
    nisa.tensor_scalar(dst=y, data=t, op0=nl.subtract, operand0=both[:, 0:1], op1=nl.multiply, operand1=spread)
    return stored(y, nl.bfloat16)


def layer_norm_exact(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3)


def mlp(x, w, v):
    """gelu(x w) v, of x [K, P], w [K, 128], v [128, F]; two products summed in PSUM."""
    xs, ws, vs = (loaded(t, nl.bfloat16) for t in (x, w, v))
    hidden = tile((128, P), buffer=nl.psum)
    nisa.nc_matmul(dst=hidden, stationary=ws, moving=xs)
    active = tile((128, P), nl.bfloat16)
    nisa.activation(dst=active, op=nl.gelu, data=hidden)
    out = tile((P, F), buffer=nl.psum)
    nisa.nc_matmul(dst=out, stationary=active, moving=vs)
    nisa.nc_matmul(dst=out, stationary=active, moving=vs)
    y = tile((P, F))
    nisa.tensor_copy(dst=y, src=out)
    return stored(y)


def mlp_exact(x, w, v):
    h = w.T @ x
    erf = np.vectorize(math.erf)
    return 2 * (h * (1 + erf(h / math.sqrt(2))) / 2).T @ v


def scan(x, decay):
    a, b, y = loaded(decay), loaded(x), tile((P, F), nl.bfloat16)
    nisa.tensor_tensor_scan(dst=y, data0=a, data1=b, initial=0.0, op0=nl.multiply, op1=nl.add)
    return stored(y, nl.bfloat16)


def scan_exact(x, decay):
    out, state = np.zeros_like(x), np.zeros(len(x))
    for i in range(x.shape[1]):
        state = decay[:, i] * state + x[:, i]
        out[:, i] = state
    return out


def moved(x):
    """Turned, shuffled, spread, gathered, predicated: nothing is rounded but by the cast to FP8."""
    t = loaded(x, nl.bfloat16)
    narrow, turned, back = tile((P, P), nl.float8_e4m3), tile((P, P), nl.bfloat16, nl.psum), tile((P, P), nl.bfloat16)
    nisa.tensor_copy(dst=narrow, src=t[:, 0:P])
    wide = tile((P, P), nl.bfloat16)
    nisa.tensor_copy(dst=wide, src=narrow)
    nisa.nc_transpose(dst=turned, data=wide)
    nisa.tensor_copy(dst=back, src=turned)
    nisa.nc_stream_shuffle(dst=back, src=back, shuffle_mask=list(range(31, -1, -1)))
    y, sums = tile((P, P)), tile((P, P))
    nisa.tensor_scalar(dst=y, data=back, op0=nl.multiply, operand0=3.0, op1=nl.add, operand1=0.1)
    nisa.tensor_tensor(dst=sums, data1=y, data2=nl.broadcast_to(back[32:33], (P, P)), op=nl.add)
    return stored(sums)


def moved_exact(x):
    t = x[:, :P].T
    t = t.reshape(4, 32, P)[:, ::-1].reshape(P, P)
    return 3 * t + 0.1 + t[32]


def functions(x):
    """Tables of the Scalar engine, whose own errors are larger than a rounding."""
    t, y = loaded(x), tile((P, F))
    nisa.activation(dst=y, op=nl.exp, data=t, scale=0.5)
    return stored(y)


def functions_exact(x):
    return np.exp(0.5 * x)


def two_rows(x, w):
    """x [K, 2, P] turned times w [K, 2, F] in FP8, two rows of K per PE."""
    out, y = tile((P, F), buffer=nl.psum), tile((P, F))
    nisa.nc_matmul(dst=out, stationary=loaded(x, nl.float8_e4m3), moving=loaded(w, nl.float8_e4m3),
                   perf_mode=nisa.matmul_perf_mode.double_row)
    nisa.tensor_copy(dst=y, src=out)
    return stored(y)


def two_rows_exact(x, w):
    return np.einsum("ksm,ksn->mn", x, w)


def mx(x, w):
    """x turned times w, both [128, free x 4] quantized in groups of 8 partitions x 4 and multiplied with their scales;
    x is doubled before."""
    both = []
    for t, free in ((x, 64), (w, 128)):
        wide, codes = loaded(t, nl.bfloat16), tile((128, free), nl.float8_e4m3fn_x4)
        scale = tile((128, free), nl.uint8)
        if t is x:
            nisa.tensor_scalar(dst=wide, data=wide, op0=nl.multiply, operand0=1.7)
        nisa.memset(dst=scale, value=0)
        nisa.quantize_mx(dst=codes, src=wide, dst_scale=scale)
        moved = tile((128, free), nl.float8_e4m3fn_x4)
        nisa.tensor_copy(dst=moved, src=codes)
        both += [moved, scale]
    out, y = tile((64, 128), buffer=nl.psum), tile((64, 128))
    nisa.nc_matmul_mx(dst=out, stationary=both[0], moving=both[2], stationary_scale=both[1], moving_scale=both[3])
    nisa.tensor_copy(dst=y, src=out)
    return stored(y)


def mx_exact(x, w):
    return 1.7 * np.einsum("pmq,pnq->mn", x.reshape(128, 64, 4), w.reshape(128, 128, 4))


def all_but_eight(x):
    """Each row without its eight largest, which become -1, added up."""
    t, top, total = loaded(x, nl.bfloat16), tile((P, 8), nl.bfloat16), tile((P, 1))
    nisa.max8(dst=top, src=t)
    nisa.nc_match_replace8(dst=t, data=t, vals=top, imm=-1.0)
    nisa.tensor_reduce(dst=total, op=nl.add, data=t, axis=1)
    return stored(total)


def all_but_eight_exact(x):
    y = np.sort(x, axis=1)
    return (y[:, :-8].sum(1) - 8)[:, None]


def rows_by_index(x, table, order):
    """Rows of a table that indices choose, plus x, to the rows of a tensor that they choose again."""
    index, rows, t = loaded(order), tile((P, F)), loaded(x)
    nisa.dma_copy(dst=rows, src=table.vector_select(0, index))
    nisa.tensor_tensor(dst=rows, data1=rows, data2=t, op=nl.multiply)
    out = nl.full((2 * P, F), 1.0, nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out.vector_select(0, index), src=rows)
    return out


def rows_by_index_exact(x, table, order):
    out, at = np.ones((2 * P, F)), order[:, 0].astype(int)
    out[at] = table[at] * x
    return out


def two_stages(x):
    """exp(0.3 x - 0.5) of Trainium3's Scalar engine, over its sum."""
    t, y, total = loaded(x), tile((P, F)), tile((P, 1))
    nisa.activate2(dst=y, op=nl.exp, data=t, imm0=0.3, imm1=0.5, op0=nl.multiply, op1=nl.subtract, reduce_op=nl.add,
                   reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=y, data=y, op0=nl.multiply, operand0=total)
    return stored(y)


def two_stages_exact(x):
    y = np.exp(0.3 * x - 0.5)
    return y / y.sum(1, keepdims=True)


def normal(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


KERNELS = {
    "softmax": (softmax, softmax_exact, lambda rng: (normal(rng, K, P, scale=0.3), normal(rng, K, F))),
    "layer_norm": (layer_norm, layer_norm_exact, lambda rng: (normal(rng, P, F, scale=3) + 1,)),
    "mlp": (mlp, mlp_exact, lambda rng: (normal(rng, K, P), normal(rng, K, 128, scale=0.1), normal(rng, 128, F))),
    "scan": (scan, scan_exact, lambda rng: (normal(rng, P, F), rng.uniform(0.5, 1, (P, F)).astype(np.float32))),
    "functions": (functions, functions_exact, lambda rng: (normal(rng, P, F, scale=4),)),
    "moved": (moved, moved_exact, lambda rng: (normal(rng, P, F),)),
    "two_rows": (two_rows, two_rows_exact, lambda rng: (normal(rng, K, 2, P), normal(rng, K, 2, F))),
    "mx": (mx, mx_exact, lambda rng: (normal(rng, 128, 256), normal(rng, 128, 512))),
    "rows_by_index": (rows_by_index, rows_by_index_exact,
                      lambda rng: (normal(rng, P, F), normal(rng, 2 * P, F),
                                   rng.permutation(2 * P)[:P].astype(np.int32)[:, None])),
    "two_stages": (two_stages, two_stages_exact, lambda rng: (normal(rng, P, F),)),
    "all_but_eight": (all_but_eight, all_but_eight_exact, lambda rng: (normal(rng, P, F),)),
}
FROM = {"moved": 2, "two_rows": 2, "mx": 3, "two_stages": 3}  # the first generation that has it


class Tolerance(unittest.TestCase):
    def each(self):
        for name, (kernel, exact, make) in KERNELS.items():
            inputs = make(np.random.default_rng(len(name)))
            yield name, kernel, exact(*(x.astype(np.float64) for x in inputs)), inputs

    def test_no_result_leaves_its_bound(self):
        for generation in (1, 2, 3):
            for numerics in (None, "chains=1", "product=bf16"):
                for name, kernel, exact, inputs in self.each():
                    if generation < FROM.get(name, 1):
                        continue
                    with self.subTest(kernel=name, generation=generation, numerics=numerics):
                        bound = nki.tolerance(nki.jit(kernel), generation=generation, numerics=numerics)(*inputs)
                        self.assertEqual(bound.unknown, [])
                        off = abs(np.asarray(bound.value, np.float64) - exact)
                        self.assertTrue((off <= bound.worst).all())
                        nki.assert_close(bound, exact)

    def test_sigma_is_what_is_usual(self):
        for name, kernel, exact, inputs in self.each():
            with self.subTest(kernel=name):
                bound = nki.tolerance(nki.jit(kernel), generation=max(2, FROM.get(name, 2)))(*inputs)
                off = abs(np.asarray(bound.value, np.float64) - exact)
                rounded = bound.sigma > 0
                usual = math.sqrt(float((off[rounded]**2 / bound.sigma[rounded]**2).mean()))
                self.assertGreater(usual, 0.3)
                self.assertLess(usual, 1.5)
                self.assertTrue((bound.worst >= bound.sigma).all())

    def test_a_wrong_kernel_fails_and_the_place_is_named(self):
        kernel, exact, make = KERNELS["layer_norm"]
        x = make(np.random.default_rng(7))[0]
        bound = nki.tolerance(nki.jit(kernel)).places(x)
        wrong = exact(x.astype(np.float64)) * 1.02  # as if epsilon were another
        with self.assertRaises(AssertionError) as caught:
            nki.assert_close(bound, wrong, sigmas=8)
        line = inspect.getsourcelines(layer_norm)[1] + 7
        self.assertRegex(str(caught.exception), rf"of its own error comes from .*line {line}, tensor_scalar")
        self.assertNotIn("\n", str(caught.exception))
        shares = [share for share, _ in bound.places((3, 5))]
        self.assertAlmostEqual(sum(shares), 1, places=9)

    def test_places_add_up_to_the_whole(self):
        kernel, _, make = KERNELS["softmax"]
        inputs = make(np.random.default_rng(8))
        whole, apart = nki.tolerance(nki.jit(kernel))(*inputs), nki.tolerance(nki.jit(kernel)).places(*inputs)
        self.assertEqual(whole.value.tobytes(), apart.value.tobytes())
        np.testing.assert_allclose(apart.sigma, whole.sigma, rtol=0.05)
        np.testing.assert_allclose(apart.worst, whole.worst, rtol=0.05)

    def test_a_sum_rounds_after_each_addition(self):
        @nki.jit
        def total(x):
            s = tile((P, 1))
            nisa.tensor_reduce(dst=s, op=nl.add, data=loaded(x), axis=1)
            return stored(s)
        x = normal(np.random.default_rng(11), P, F)
        partial = np.cumsum(x.astype(np.float64), axis=1)[:, 1:]
        halves = np.spacing(abs(partial).astype(np.float32)).astype(np.float64) / 2
        bound = nki.tolerance(total)(x)
        np.testing.assert_allclose(bound.worst[:, 0], halves.sum(1), rtol=0.02)
        np.testing.assert_allclose(bound.sigma[:, 0], np.sqrt((halves**2 / 3).sum(1)), rtol=0.02)

    def test_stochastic_rounding_doubles_the_bound_of_a_cast(self):
        @nki.jit
        def cast(x):
            return stored(loaded(x, nl.bfloat16), nl.bfloat16)
        x = normal(np.random.default_rng(9), P, F)
        nearest, drawn = (nki.tolerance(cast, rounding=r)(x) for r in (None, "stochastic"))
        np.testing.assert_array_equal(drawn.worst, 2 * nearest.worst)

    def test_what_has_no_rule_is_infinite_and_named(self):
        @nki.jit
        def largest(x):
            t, y = loaded(x), tile((P, F))
            nisa.tensor_scalar_cumulative(dst=y, src=t, op0=nl.multiply, op1=nl.add, imm0=2.0, imm1=0.0)
            return stored(y)
        bound = nki.tolerance(largest)(normal(np.random.default_rng(10), P, F))
        self.assertEqual(bound.unknown, ["tensor_scalar_cumulative"])
        self.assertTrue(np.isinf(bound.worst).all())

    def test_ranks_are_not_followed(self):
        kernel, _, make = KERNELS["scan"]
        with self.assertRaisesRegex(nki.Error, "follows one core, not 2 ranks"):
            nki.tolerance(kernel, ranks=2)(*make(np.random.default_rng(13)))

    def test_programs_of_a_grid_share_what_lies_in_hbm(self):
        @nki.jit
        def crossed(x):
            """Each program halves the other's exponentials, which it reads in BF16."""
            between = nl.ndarray((2, P, F), nl.bfloat16, buffer=nl.shared_hbm, name="between")
            out = nl.ndarray((2, P, F), nl.float32, buffer=nl.shared_hbm, name="out")
            mine = nl.program_id(0)
            t, y = loaded(x[mine]), tile((P, F))
            nisa.activation(dst=t, op=nl.exp, data=t)
            nisa.dma_copy(dst=between[mine], src=t)
            if nl.num_programs() == 2:
                nisa.core_barrier(between, (0, 1))
            nisa.dma_copy(dst=y, src=between[1 - mine if nl.num_programs() == 2 else mine])
            nisa.tensor_scalar(dst=y, data=y, op0=nl.multiply, operand0=0.5)
            nisa.dma_copy(dst=out[mine], src=y)
            return out
        x = normal(np.random.default_rng(21), 2, P, F)
        bound, exact = nki.tolerance(crossed[2])(x), np.exp(x.astype(np.float64))[::-1] / 2
        np.testing.assert_allclose(bound.exact, exact, rtol=1e-12)
        nki.assert_close(bound, exact)
        self.assertTrue((bound.sigma > exact / 2048).all())  # the cast is among them

    def test_exact_is_the_kernel_without_its_roundings(self):
        for name, kernel, exact, inputs in self.each():
            with self.subTest(kernel=name):
                bound = nki.tolerance(nki.jit(kernel), generation=max(2, FROM.get(name, 2)))(*inputs)
                off = abs(bound.exact - exact) > 1e-9 * (abs(exact) + abs(exact).max())
                self.assertLess(off.mean(), 0.1 if name == "all_but_eight" else 1e-9)  # choices stay as they fell
                self.assertFalse(bound.narrow.any())

    def test_a_cast_to_less_than_was_asked_allows_nothing(self):
        @nki.jit
        def total(x, dtype):
            s = tile((P, 1))
            nisa.tensor_reduce(dst=s, op=nl.add, data=loaded(x, dtype), axis=1)
            return stored(s)
        x = normal(np.random.default_rng(22), P, F)
        for dtype, asked, narrowed in ((nl.bfloat16, "float32", True), (nl.bfloat16, "bfloat16", False),
                                       (nl.float8_e4m3, "bfloat16", True), (nl.float32, "bfloat16", False)):
            with self.subTest(dtype=dtype, asked=asked):
                bound = nki.tolerance(total, asked=asked)(x, dtype)
                own = np.asarray(bound.value, np.float64) - bound.exact
                self.assertEqual((abs(bound.narrow) > 4 * bound.sigma).any(), narrowed)
                self.assertEqual(bool(bound.casts), narrowed)
                if not narrowed:
                    nki.assert_close(bound, bound.exact)
                else:
                    self.assertLess(abs(own - bound.narrow).max(), abs(own).max() / 100)

    def exact(self, kernel, want, *inputs, **options):
        """Without its roundings the kernel is `want`, and with them inside its bound, which is finite."""
        bound = nki.tolerance(nki.jit(kernel), **options)(*inputs)
        self.assertEqual(bound.unknown, [])
        np.testing.assert_allclose(bound.exact, want, rtol=1e-9, atol=1e-9 * abs(want).max())
        self.assertTrue(np.isfinite(bound.worst).all())
        nki.assert_close(bound, want)
        return bound

    def test_operands_in_other_shapes(self):
        def kernel(x, y):
            t, u, s, out = loaded(x), loaded(y), tile((P, 1)), tile((P, 2, F // 2))
            nisa.tensor_reduce(dst=s, op=nl.add, data=t, axis=1)
            nisa.tensor_scalar(dst=out, data=t, op0=nl.multiply, operand0=s)
            nisa.tensor_tensor(dst=out, data1=out, data2=u, op=nl.add)
            nisa.activation(dst=t, op=nl.tanh, data=out, scale=0.125)
            return stored(t)
        x, y = (normal(np.random.default_rng(n), P, F, scale=0.1).astype(np.float64) for n in (31, 32))
        x, y = x.astype(np.float32), y.astype(np.float32)
        a, b = x.astype(np.float64), y.astype(np.float64)
        self.exact(kernel, np.tanh((a * a.sum(1, keepdims=True) + b) / 8), x, y)

    def test_transfers_that_turn_axes_or_begin_further_on(self):
        def turned(x):
            t, y = tile((32, 2, 4, 16), nl.bfloat16), tile((32, 2, 4, 16))
            nisa.dma_transpose(dst=t, src=x)
            nisa.tensor_copy(dst=y, src=t)
            return stored(y)
        x = np.float32(np.random.default_rng(33).integers(-8, 8, (16, 2, 4, 32)))
        half = nki.tensor(x, nl.bfloat16)
        self.exact(turned, x.transpose(3, 1, 2, 0).astype(np.float64), half)

        def further(x, at):
            index, t = loaded(at), tile((64, F))
            nisa.dma_copy(dst=t, src=x.ap(pattern=[[F, 64], [1, F]], offset=0, scalar_offset=index, indirect_dim=0))
            nisa.activation(dst=t, op=nl.exp, data=t)
            return stored(t)
        x = normal(np.random.default_rng(34), P, F)
        self.exact(further, np.exp(x[24:88].astype(np.float64)), x, np.array([[24]], np.int32))

    def test_a_running_maximum_that_begins_at_the_least_number(self):
        def kernel(x):
            most, now, old, y, t = tile((P, 1)), tile((P, 2)), tile((P, 1)), tile((P, F)), loaded(x)
            nisa.memset(dst=most, value=-3.4028235e38)
            for half in (0, 1):
                nisa.tensor_copy(dst=old, src=most)
                nisa.tensor_reduce(dst=now[:, 0:1], op=nl.maximum, data=t[:, half * P:half * P + P], axis=1)
                nisa.tensor_copy(dst=now[:, 1:2], src=old)
                nisa.tensor_reduce(dst=most, op=nl.maximum, data=now, axis=1)
            nisa.tensor_scalar(dst=y, data=t, op0=nl.subtract, operand0=most)
            nisa.activation(dst=y, op=nl.exp, data=y)
            return stored(y)
        x = normal(np.random.default_rng(35), P, F)
        a = x.astype(np.float64)
        bound = self.exact(kernel, np.exp(a - a.max(1, keepdims=True)), x)
        self.assertLess(bound.worst.max(), 1e-5)

    def test_what_a_rule_does_not_follow_is_not_known(self):
        @nki.jit
        def bits(x):
            t, y = loaded(x), tile((P, F))
            nisa.activation(dst=t, op=nl.exp, data=t)
            nisa.tensor_scalar(dst=y.view(nl.int32), data=t.view(nl.int32), op0=nl.add, operand0=1 << 23)
            return stored(y)
        bound = nki.tolerance(bits)(normal(np.random.default_rng(36), P, F))
        self.assertTrue(bound.unknown and "of another format" in bound.unknown[0])
        self.assertTrue(np.isinf(bound.worst).all())

        @nki.jit
        def doubled(x):
            y = tile((P, F))
            nisa.tensor_scalar(dst=y, data=loaded(x), op0=nl.multiply, operand0=2.0)
            return stored(y)
        rule = rules.RULES["tensor_scalar"]
        rules.RULES["tensor_scalar"] = lambda step, dst, data, **more: rule(step, dst, data, op0="add", operand0=0.0)
        try:
            bound = nki.tolerance(doubled)(normal(np.random.default_rng(37), P, F))
        finally:
            rules.RULES["tensor_scalar"] = rule
        self.assertRegex(bound.unknown[0], r"tensor_scalar of check_nki_tolerance.py, line \d+, which its rule does not follow")
        self.assertGreater(np.isinf(bound.worst).mean(), 0.9)

    def test_values_are_those_without_it(self):
        for name, kernel, _, inputs in self.each():
            on = {"generation": max(2, FROM.get(name, 2))}
            plain = nki.simulate(nki.jit(kernel), **on)(*inputs)
            self.assertEqual(plain.tobytes(), nki.tolerance(nki.jit(kernel), **on)(*inputs).value.tobytes(), name)

    def test_nan_is_close_to_nan_alone(self):
        @nki.jit
        def root(x):
            t = loaded(x)
            nisa.activation(dst=t, op=nl.sqrt, data=t)
            return stored(t)
        x = np.abs(normal(np.random.default_rng(12), P, F)) + 1
        x[3, 5], x[7, 9] = np.nan, np.inf
        bound, want = nki.tolerance(root)(x), np.sqrt(x.astype(np.float64))
        self.assertTrue(np.isnan(bound.value[3, 5]))
        nki.assert_close(bound, want)
        nki.assert_close(bound, want, sigmas=8)
        for place, wrong in (((3, 5), 1.0), ((4, 4), np.nan), ((7, 9), np.nan), ((4, 4), np.inf)):
            other = want.copy()
            other[place] = wrong
            with self.subTest(place=place, wrong=wrong), self.assertRaises(AssertionError) as caught:
                nki.assert_close(bound, other)
            self.assertIn(f"element {place}", str(caught.exception))


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False, verbosity=1).result.wasSuccessful())
