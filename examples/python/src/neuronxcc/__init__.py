"""The older spelling of NKI's packages: neuronxcc.nki and what kernels import beside it.

SPDX-License-Identifier: MIT
"""
