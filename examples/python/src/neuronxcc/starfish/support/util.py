"""neuronxcc.starfish.support.util: comparisons of results.

SPDX-License-Identifier: MIT
"""
from typing import Any

import numpy as np


def allclose(expected: Any, actual: Any, rtol: float = 1e-5, atol: float = 1e-8, verbose: int = 0, **_: Any) -> bool:
    """numpy.allclose in binary64; with verbose the largest difference is printed."""
    expected, actual = (np.asarray(x, np.float64) for x in (expected, actual))
    if verbose:
        print("largest difference", np.abs(expected - actual).max(initial=0))
    return bool(np.allclose(actual, expected, rtol=rtol, atol=atol))
