"""trnmath.plots without matplotlib: what is drawn on axes that only listen, and the sentence when there are none.
Run by tests/cli/python.sh."""
import sys
import unittest

import numpy as np

import trnmath

LLAMA = dict(layers=32, hidden=4096, heads=32, kv_heads=8, intermediate=14336, vocab=128256)


class Axes:
    """Hears what is drawn."""

    def __init__(self):
        self.said = []

    def __getattr__(self, name):
        return lambda *args, **named: self.said.append((name, args, named))

    def of(self, name):
        return [(args, named) for said, args, named in self.said if said == name]


class Plots(unittest.TestCase):
    def test_a_grid_has_every_number(self):
        ax = Axes()
        self.assertIs(trnmath.plots.grid("float8_e4m3", 1, 2, ax=ax), ax)
        self.assertEqual(ax.of("plot")[0][0][0].tolist(), [1 + i / 8 for i in range(9)])
        self.assertEqual(trnmath.plots.numbers("float4_e2m1fn", -7, 7).tolist(),
                         [-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6])
        self.assertEqual(len(trnmath.plots.numbers("float16", 1, 2)), 1025)
        self.assertEqual(trnmath.plots.numbers("int8", -2, 2).tolist(), [-2, -1, 0, 1, 2])

    def test_an_error_is_half_a_step_at_most(self):
        ax = Axes()
        trnmath.plots.error("bfloat16", 1, 2, ax=ax)
        x, off = ax.of("plot")[0][0]
        self.assertTrue(0.9 * 2.0**-8 < abs(off).max() <= 2.0**-8 and len(x) == 1000)

    def test_stochastic_rounding_has_two_neighbours(self):
        ax = Axes()
        trnmath.plots.stochastic(1 + 2.0**-9, ax=ax)
        labels, counts = ax.of("bar")[0][0]
        self.assertEqual(labels, ["1", "1.0078125"])
        self.assertTrue(counts.sum() == 10000 and abs(counts[1] - 2500) < 200)

    def test_a_collective_stays_above_its_bound(self):
        ax = Axes()
        trnmath.plots.collective("all_reduce", sizes=[1024, 1 << 20], algorithm="ring", ax=ax)
        (sizes, time), (_, bound, _) = (args for args, _ in ax.of("loglog"))
        self.assertTrue(sizes == [1024, 1 << 20] and all(t >= b > 0 for t, b in zip(time, bound)))

    def test_a_plans_bar_is_its_time(self):
        found = trnmath.plans(LLAMA, most=3, job="decode", batch=64, sequence=8192)
        for given in (found, found[0]):
            ax = Axes()
            trnmath.plots.plan(given, ax=ax)
            bars = [args[1] for args, _ in ax.of("barh")]
            for before, (_, named) in enumerate(ax.of("barh")):  # each bar begins where the others end
                np.testing.assert_allclose(named["left"], sum(bars[:before]) if before else 0 * named["left"])
            shown = found if given is found else [given]
            for i, p in enumerate(shown):
                whole = p["expected_s"] + p["expected"]["hidden"] - p["expected"]["contention"]
                self.assertAlmostEqual(sum(bar[i] for bar in bars) / whole, 1, 9)

    def test_refusals(self):
        plots = trnmath.plots
        sys.modules["matplotlib"] = None
        for text, call, args in (
                ("matplotlib is not installed (Debian: python3-matplotlib), and no ax was given", plots.grid,
                 ("bfloat16", 1, 1.1)),
                ("low 2 and high 1: expected two numbers, the first one below the second", plots.grid,
                 ("bfloat16", 2, 1)),
                ("float32 has 32 bits; numbers of at most 16 are listed", plots.grid, ("float32",)),
                ("count is 1, expected 2 to 1048576", plots.error, ("bfloat16", 1, 2, 1)),
                ("draws is 0, expected 1 to 16777216", plots.stochastic, (1.0, "bfloat16", 0)),
                ("plans: expected legal plans of plans(), and of \"expected\" or \"time\"", plots.plan, ([],))):
            with self.assertRaises(trnmath.Error) as caught:
                call(*args)
            self.assertEqual(str(caught.exception), text)
        del sys.modules["matplotlib"]


if __name__ == "__main__":
    unittest.main()
