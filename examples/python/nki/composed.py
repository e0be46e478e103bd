"""Functions of nki.language that no engine has in one instruction, each made of several. Intermediate values are
binary32; results are cast once, at the end.

SPDX-License-Identifier: MIT
"""
from . import sugar
from .operators import ALL


def _op(name, *args, **options):
    return sugar.call(ALL[name], *args, **{"dtype": "float32", **options})


def _nearest(x):
    """The nearest integer, ties to even, of |x| < 2^31: a cast to int32 and back."""
    return sugar.copy(sugar.copy(x, dtype="int32"), dtype="float32")


def floor(x, dtype):
    """tensor_copy to int32 and back, tensor_tensor(greater), tensor_tensor(subtract). For |x| < 2^31."""
    near = _nearest(x)
    return _op("subtract", near, _op("greater", near, x), dtype=dtype)


def ceil(x, dtype):
    """tensor_copy to int32 and back, tensor_tensor(less), tensor_tensor(add). For |x| < 2^31."""
    near = _nearest(x)
    return _op("add", near, _op("less", near, x), dtype=dtype)


def trunc(x, dtype):
    """activation(abs), the floor of it, times activation(sign). For |x| < 2^31."""
    return _op("multiply", floor(_op("abs", x), "float32"), _op("sign", x), dtype=dtype)


def tan(x, dtype):
    """activation(sin), of x and of x + pi/2, reciprocal, tensor_tensor(multiply). sin's table holds up to pi."""
    return _op("multiply", _op("sin", x), _op("reciprocal", _op("cos", x)), dtype=dtype)


FUNCTIONS = {"floor": floor, "ceil": ceil, "trunc": trunc, "tan": tan}
