"""python -m trnmath: what formats and orders of sums lose. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import convert, matmul
from ._library import Rounding, __version__, isa
from ._small import mx_dequantize, mx_quantize


def main() -> None:
    print(f"trnmath {__version__}, kernels run as {isa()}\n")
    x = np.random.default_rng(1).standard_normal((128, 512), dtype=np.float32)

    def sqnr(back: NDArray[Any]) -> float:
        return float(10 * np.log10((x**2).sum() / ((back - x)**2).sum()))

    print("128 x 512 Gaussian numbers, there and back; SQNR = signal over error")
    roundings: tuple[Rounding, ...] = ("nearest_even", "stochastic")
    for name in ("bfloat16", "float8_e4m3", "float8_e5m2"):
        for rounding in roundings:
            back = convert((convert(x, name, rounding=rounding, seed=7), name), "float32")
            print(f"  {name:14} {rounding:13} {sqnr(back):6.2f} dB")
    for name in ("float8_e4m3fn", "float4_e2m1fn"):
        codes, scales = mx_quantize(x, name)
        print(f"  {name:14} {'MX blocks':13} {sqnr(mx_dequantize((codes, name), scales)):6.2f} dB")
    print("\nx @ x.T, 128 x 128 sums of 512 products on the Tensor engine; error against float64")
    for numerics in ("chains=4", "chains=1", "product=bf16"):
        print(f"  {numerics:14} largest {abs(matmul(x, x.T, numerics=numerics) - x.astype(float) @ x.T).max():.1e}")


if __name__ == "__main__":
    main()
