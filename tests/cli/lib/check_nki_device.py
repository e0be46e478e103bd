"""What devices gave, and what the model gives today: tests/nki/device.csv, by kernels of tests/nki/device_kernels.py.

A relative L2 distance is held to a tenth of itself, since NumPy's products differ from machine to machine; a time to a
hundredth. The page examples/python/src/nki/device.md tells every row of the table. SPDX-License-Identifier: MIT
"""
import csv
import unittest
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np

root = Path(__file__).resolve().parents[3]
EMPTY_MS = 0.0098  # a run of the published profiles in which nothing happens


def distance(got, want):
    got, want = (np.asarray(a, np.float64) for a in (got, want))
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


class Device(unittest.TestCase):
    def test_every_row(self):
        with open(root / "tests/nki/device.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        page = (root / "examples/python/src/nki/device.md").read_text(encoding="utf-8")
        self.assertGreaterEqual(sum(row["quantity"] == "rel-L2" for row in rows), 10)
        ran = {}
        for row in rows:
            with self.subTest(row["operator"], quantity=row["quantity"]):
                key = row["case"], row["args"]
                if key not in ran:
                    ran[key] = kernels.CASES[row["case"]](*map(int, row["args"].split()))
                report, got, want = ran[key]
                ours = float(row["ours"])
                if row["quantity"] == "rel-L2":
                    self.assertLessEqual(abs(distance(got, want) - ours), 0.1 * ours)
                else:
                    self.assertLessEqual(abs(1e6 * report.time_s - ours), 0.01 * ours)
                    runs = int(row["runs"])
                    device = 1e3 * (runs * float(row["published"]) - (runs - 1) * EMPTY_MS) * Fraction(row["part"])
                    self.assertTrue(1 / 1.5 <= ours / device <= 1.5, (ours, device))
                self.assertIn(f"| {row['operator']} | {row['published']} |", page)
                self.assertIn(f"| {row['ours']} |", page)


if __name__ == "__main__":
    import sys
    sys.path.insert(0, str(root / "tests/nki"))
    import device_kernels as kernels
    warnings.simplefilter("ignore", RuntimeWarning)  # exp of NumPy's silu
    unittest.main()
