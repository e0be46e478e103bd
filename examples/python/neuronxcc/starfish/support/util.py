"""neuronxcc.starfish.support.util: comparisons of results.

SPDX-License-Identifier: MIT
"""
import numpy as np


def allclose(expected, actual, rtol=1e-5, atol=1e-8, verbose=0, **_):
    """numpy.allclose in binary64; with verbose the largest difference is printed."""
    expected, actual = (np.asarray(x, np.float64) for x in (expected, actual))
    if verbose:
        print("largest difference", np.abs(expected - actual).max(initial=0))
    return bool(np.allclose(actual, expected, rtol=rtol, atol=atol))
