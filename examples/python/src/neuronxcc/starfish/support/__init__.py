"""neuronxcc.starfish.support: util (comparisons) and dtype (formats).

SPDX-License-Identifier: MIT
"""
