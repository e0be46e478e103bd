"""Arrays of ml_dtypes' dtypes in and out of trnmath, against ml_dtypes' own casts. Run by tests/cli/pip.sh where
ml_dtypes is installed.
"""
import ml_dtypes
import numpy as np

import trnmath

NAMES = ("bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float4_e2m1fn")


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def main():
    x = np.random.default_rng(3).standard_normal((64, 96)).astype(np.float32) * 0.5
    done = 0
    for name in NAMES:
        own = getattr(ml_dtypes, name, None)
        if own is None:
            continue
        want = x.astype(own)
        for to in (own, np.dtype(own)):
            got = trnmath.convert(x, to)
            assert same(got, want), f"{name}: another dtype, or other codes"
        codes = trnmath.convert(x, name)
        assert codes.dtype.kind == "u" and codes.tobytes() == want.tobytes(), f"{name}: a name gives codes"
        assert same(trnmath.convert(want, "float32"), want.astype(np.float32)), f"{name}: back"
        out = np.empty(x.shape, own)
        assert trnmath.convert(x, out=out) is out and same(out, want), f"{name}: out="
        if name == "float4_e2m1fn":  # which the engine multiplies in blocks only
            done += 1
            continue
        assert same(trnmath.matmul(want, want.T), trnmath.matmul((codes, name), (codes.T, name))), f"{name}: matmul"
        done += 1
    for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"):
        own, scale = getattr(ml_dtypes, name, None), getattr(ml_dtypes, "float8_e8m0fnu", None)
        if own is None or scale is None:
            continue
        codes, scales = trnmath.mx_quantize(x, own)
        plain, plain_scales = trnmath.mx_quantize(x, name)
        assert codes.dtype == own and scales.dtype == scale and plain_scales.dtype == np.uint8
        assert codes.tobytes() == plain.tobytes() and scales.tobytes() == plain_scales.tobytes()
        back = trnmath.mx_dequantize(codes, scales)
        want = codes.astype(np.float32) * np.repeat(scales.astype(np.float32), 32, axis=1)
        assert same(back, want), f"{name}: blocks"
        done += 1
    assert done >= 4, f"this ml_dtypes has too few of {NAMES}"
    print(done, "formats as ml_dtypes", ml_dtypes.__version__, "has them")


if __name__ == "__main__":
    main()
