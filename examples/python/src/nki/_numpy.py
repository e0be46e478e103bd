"""NumPy where it is installed; `import nki` does without.

SPDX-License-Identifier: MIT
"""
try:
    import numpy as np
except ImportError:  # buffers go in and memoryviews come out then
    np = None  # type: ignore[assignment]
