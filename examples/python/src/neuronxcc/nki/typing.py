"""neuronxcc.nki.typing: annotations, tensor[128, 512] and mutable_tensor. They say, and check, nothing.

SPDX-License-Identifier: MIT
"""
from nki.typing import tensor


class mutable_tensor(tensor):
    pass


scalar = object
mutable, immutable = mutable_tensor, tensor
