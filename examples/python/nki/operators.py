"""Operators and functions of nki.language as handles: op=nl.add for instructions, nl.add(x, y) on tiles.

SPDX-License-Identifier: MIT
"""
from . import _core

ALU = ("add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal", "greater_equal", "greater",
       "less_equal", "less", "logical_and", "logical_or", "logical_xor", "abs_max", "abs_min", "power", "average",
       "abs", "square", "relu", "rsqrt", "reciprocal", "logical_not", "invert", "bitwise_and", "bitwise_or",
       "bitwise_xor", "left_shift", "right_shift", "bypass")
ACT = ("copy", "square", "sigmoid", "relu", "prelu", "gelu", "gelu_dx", "gelu_apprx_tanh", "gelu_apprx_sigmoid",
       "gelu_apprx_sigmoid_dx", "silu", "silu_dx", "tanh", "softplus", "mish", "erf", "erf_dx", "exp", "log", "sin",
       "arctan", "sqrt", "rsqrt", "reciprocal", "sign", "abs")
# What NumPy and older kernels call them; composites (divide, ...) have no number.
_SAME = {"max": "maximum", "min": "minimum", "amax": "maximum", "amin": "minimum", "sum": "add", "mult": "multiply",
         "absolute": "abs", "true_divide": "divide", "identity": "copy", "logistic": "sigmoid", "arctan2": "arctan",
         "right_shift_logical": "right_shift", "left_shift_logical": "left_shift", "logical_shift_right": "right_shift",
         "logical_shift_left": "left_shift", "is_equal": "equal", "pow": "power", "negative": "negative",
         "power": "power", "invert": "invert", "bitwise_not": "invert"}


class Operator:
    """op=nl.exp, or nl.exp(x)."""

    __slots__ = ("name", "alu", "act", "call")

    def __init__(self, name, call=None):
        known = _SAME.get(name, name)
        self.name, self.call = known, call
        self.alu = _core.alu(known) if known in ALU else None
        self.act = _core.act(known) if known in ACT else None

    def __call__(self, *args, **kwargs):
        from . import sugar
        return sugar.call(self, *args, **kwargs)

    def __repr__(self):
        return f"nki.language.{self.name}"

    def __eq__(self, other):
        return self.name == getattr(other, "name", None) or other is self

    def __hash__(self):
        return hash(self.name)


ALL = {name: Operator(name) for name in dict.fromkeys(ALU + ACT + ("divide", "negative", "mod", "fmod", "cos", "tan",
                                                                   "ceil", "floor", "trunc"))}


def named(op):
    """The handle of an operator, whoever made it: nki's, NumPy's, a name."""
    if isinstance(op, Operator):
        return op
    name = op if isinstance(op, str) else getattr(op, "__name__", str(op))
    name = _SAME.get(name, name)
    if name not in ALL:
        raise _core.Error(f"{op!r} is no operator of nki.language")
    return ALL[name]


def alu(op):
    """Its number for the Vector and GpSimd engines; None stays None."""
    if op is None:
        return None
    number = op.alu if type(op) is Operator else named(op).alu
    if number is None:
        raise _core.Error(f"{named(op).name} is no operator of the Vector engine")
    return number


def act(op):
    """Its number for the Scalar engine."""
    number = op.act if type(op) is Operator else named(op).act
    if number is None:
        raise _core.Error(f"{named(op).name} is no function of the Scalar engine")
    return number
