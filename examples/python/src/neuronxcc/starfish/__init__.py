"""neuronxcc.starfish: what tests of kernels import from it.

SPDX-License-Identifier: MIT
"""
