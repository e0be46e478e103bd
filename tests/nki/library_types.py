"""Arrays of formats that NumPy lacks, bfloat16 and float8, on their way to a kernel and back.

Values are rounded here, in NumPy, so that a kernel and its reference see the same numbers.
"""
import numpy as np

# name: bits of exponent, bits of fraction, what holds a code
FORMATS = {"bfloat16": (8, 7, np.uint16), "float8_e4m3": (4, 3, np.uint8), "float8_e5m2": (5, 2, np.uint8)}


def decoded(codes, dtype):
    """The numbers of IEEE codes with that many bits of exponent and fraction."""
    exponent_bits, fraction_bits, _ = FORMATS[dtype]
    codes, bias = codes.astype(np.int64), 2 ** (exponent_bits - 1) - 1
    sign = np.where(codes >> (exponent_bits + fraction_bits), -1.0, 1.0)
    e, f = (codes >> fraction_bits) & (2 ** exponent_bits - 1), codes & (2 ** fraction_bits - 1)
    small, large = np.ldexp(f / 2 ** fraction_bits, 1 - bias), np.ldexp(1 + f / 2 ** fraction_bits, e - bias)
    top = np.where(f == 0, np.inf, np.nan)
    return sign * np.where(e == 0, small, np.where(e == 2 ** exponent_bits - 1, top, large))


def encoded(values, dtype):
    """The codes of finite numbers within the range, to nearest, ties to even."""
    exponent_bits, fraction_bits, holder = FORMATS[dtype]
    bias = 2 ** (exponent_bits - 1) - 1
    size = np.abs(np.asarray(values, np.float64))
    e = np.maximum(np.frexp(size)[1] - 1, 1 - bias)
    units = np.rint(np.ldexp(size, fraction_bits - e)).astype(np.int64)
    code = units + np.where(size > 0, (e + bias - 1) << fraction_bits, 0)
    return (code | (np.signbit(values).astype(np.int64) << (exponent_bits + fraction_bits))).astype(holder)


def typed(values, dtype, bits=False):
    """values as an array of that format; bits: they are its codes already."""
    if dtype not in FORMATS:
        return np.ascontiguousarray(np.asarray(values).astype(dtype))
    import nki
    return nki.tensor(np.asarray(values, FORMATS[dtype][2]) if bits else encoded(values, dtype), dtype)


def as_float(x):
    """An argument or a result as float64."""
    codes, dtype = getattr(x, "array", None), str(getattr(x, "dtype", ""))
    return np.asarray(x, np.float64) if codes is None else \
        decoded(codes, dtype) if dtype in FORMATS else codes.astype(np.float64)


def raw_bytes(x):
    """The bytes of an argument."""
    return np.ascontiguousarray(getattr(x, "array", x)).view(np.uint8)
