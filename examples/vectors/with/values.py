"""From a peer's values to the codes of a file: for implementations that return rounded numbers instead of codes."""
import numpy as np


def floats(words):
    return np.ascontiguousarray(words.astype(np.uint32)).view(np.float32)


def codes(head, key, values):
    """The codes of numbers that the format has; all ones for one that it does not have. A NaN is masked where the
    format has none: no value says which code it would be."""
    number = lambda what: int(head[f"{key}.{what}"])  # noqa: E731
    word = lambda what: int(head[f"{key}.{what}"], 16) >> up  # noqa: E731
    up = int(head.get(f"{key}.zero_bits_below", 0))
    mantissa_bits, bias = number("mantissa_bits"), number("bias")
    sign_bit = 1 << (number("exponent_bits") + mantissa_bits)
    values = np.asarray(values, np.float64)
    sign = np.where(np.signbit(values), sign_bit, 0)
    finite = np.where(np.isfinite(values), np.abs(values), 0)
    fraction, exponent = np.frexp(finite)
    place = np.where(finite == 0, 1, np.maximum(exponent - 1 + bias, 1))
    units = np.ldexp(fraction, exponent + mantissa_bits + bias - place)
    code = ((place - 1) << mantissa_bits) + units.astype(np.int64)
    code = np.where((units != np.floor(units)) | (code > word("largest")), sign_bit - 1, code) | sign
    code = np.where(np.isinf(values), word("overflow") | sign, code)
    nan = np.isnan(values)
    code = np.where(nan, word("nan") ^ sign, code) << up
    return np.ma.masked_where(nan & (word("nan") >= sign_bit), code)
