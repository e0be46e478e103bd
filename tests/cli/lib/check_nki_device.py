"""What devices gave, and what the model gives today: tests/nki/device.csv, by kernels of tests/nki/device_kernels.py.

A relative L2 distance from products that are rounded once ("exact") is held to a twentieth of itself, a time to a
hundredth. "ours" of a distance is from NumPy's own products, as the published one is, whose roundings differ from library
to library (here OpenBLAS's): no less. The page examples/python/src/nki/device.md tells every row of the table. SPDX-License-Identifier: MIT
"""
import csv
import functools
import unittest
from fractions import Fraction
from pathlib import Path

import numpy as np

root = Path(__file__).resolve().parents[3]
EMPTY_MS = 0.0098  # a run of the published profiles in which nothing happens


def distance(got, want):
    got, want = (np.asarray(a, np.float64) for a in (got, want))
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def rows():
    with open(root / "tests/nki/device.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@functools.cache
def ran(case, args):
    return kernels.CASES[case](*map(int, args.split()))


class Device(unittest.TestCase):
    def test_errors(self):
        errors = [row for row in rows() if row["quantity"] == "rel-L2"]
        self.assertGreaterEqual(len(errors), 10)
        for row in errors:
            with self.subTest(row["operator"]):
                _, got, want = ran(row["case"], row["args"])
                exact = float(row["exact"])
                self.assertAlmostEqual(distance(got, want), exact, delta=0.05 * exact)
                self.assertGreaterEqual(float(row["ours"]), 0.95 * exact)

    def test_times(self):
        times = [row for row in rows() if row["quantity"] == "us"]
        self.assertGreaterEqual(len(times), 5)
        for row in times:
            with self.subTest(row["operator"]):
                ours, runs = float(row["ours"]), int(row["runs"])
                report = ran(row["case"], row["args"])[0]
                self.assertAlmostEqual(1e6 * report.time_s, ours, delta=0.01 * ours)
                device = 1e3 * (runs * float(row["published"]) - (runs - 1) * EMPTY_MS) * Fraction(row["part"])
                self.assertTrue(1 / 1.5 <= ours / device <= 1.5, (ours, device))

    def test_the_page_has_every_row(self):
        page = (root / "examples/python/src/nki/device.md").read_text(encoding="utf-8")
        for row in rows():
            line = next((line for line in page.splitlines()
                         if line.startswith(f"| {row['operator']} | {row['published']} |")), "")
            self.assertIn(f" | {row['ours']} | ", line, row["operator"])


if __name__ == "__main__":
    import sys
    sys.path.insert(0, str(root / "tests/nki"))
    import device_kernels as kernels
    unittest.main()
