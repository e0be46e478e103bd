"""Which function of a kernel is running, and which files are no kernel's.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import os
import sys
from types import FrameType

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INSIDE = tuple(os.path.join(_HERE, name) + os.sep for name in ("nki", "neuronxcc"))  # files that are no kernel's


def of_kernel() -> FrameType | None:
    """The innermost frame that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame = frame.f_back
    return frame
