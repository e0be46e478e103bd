"""neuronxcc.starfish.support.dtype: nki.language's formats, and arrays cast to them.

SPDX-License-Identifier: MIT
"""
from nki.dtypes import ALL as _ALL
from nki.sugar import static_cast  # noqa: F401

globals().update(_ALL)
