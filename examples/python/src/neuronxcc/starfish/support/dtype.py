"""neuronxcc.starfish.support.dtype: nki.language's formats, and arrays cast to them.

SPDX-License-Identifier: MIT
"""
from nki.formats import *  # noqa: F401,F403
from nki.sugar import static_cast  # noqa: F401
