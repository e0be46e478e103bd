"""Custom calls: those that Neuron's frameworks write, and those that say something about sharding or checks.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .graph import Op, Trouble
from .machine import UNARY, Array, Engines, Exact, plain
from .structure import top_k

Machine = Exact | Engines
Arrays = list[Array]


def _f(x: Array, value: float) -> Array:
    return np.array(value, x.dtype)


def _gelu(x: Array) -> Array:
    return x / 2 * (1 + plain("erf", [x / _f(x, math.sqrt(2))]))


def _gelu_dx(x: Array) -> Array:
    density = np.exp(-x * x / 2) / _f(x, math.sqrt(2 * math.pi))
    return (1 + plain("erf", [x / _f(x, math.sqrt(2))])) / 2 + x * density


def _gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(_f(x, math.sqrt(2 / math.pi)) * (x + _f(x, 0.044715) * x * x * x)))


def _silu(x: Array) -> Array:
    return x * plain("logistic", [x])


def _silu_dx(x: Array) -> Array:
    s = plain("logistic", [x])
    return s * (1 + x * (1 - s))


_FUNCTIONS: dict[str, tuple[str, Any]] = {"AwsNeuronGelu": ("gelu", _gelu), "AwsNeuronGeluBackward": ("gelu_dx", _gelu_dx),
              "AwsNeuronGeluApprxTanh": ("gelu_apprx_tanh", _gelu_tanh), "AwsNeuronSilu": ("silu", _silu),
              "AwsNeuronSiluBackward": ("silu_dx", _silu_dx)}
SAME = {"AwsNeuronTransferWithStaticRing", "AwsNeuronModuleMarkerStart-Forward", "AwsNeuronModuleMarkerEnd-Forward",
         "AwsNeuronModuleMarkerStart-Backward", "AwsNeuronModuleMarkerEnd-Backward", "Sharding",
         "xla.sdy.FuncResultSharding", "annotate_device_placement", "LayoutConstraint"}
_TOP = ("TopK", "mhlo.topk", "chlo.top_k")
_NOTHING = {"check.expect_close", "check.expect_eq", "check.expect_almost_eq", "check.expect_eq_const",
            "shape_assertion", "check.expect_almost_eq_const"}


def _function(machine: Machine, op: Op, x: Array) -> Array:
    """By the Scalar engine's table, or as it is defined. A second operand is what comes from above."""
    table, exact = _FUNCTIONS[op.get("target")]
    if x.dtype == np.float32 and isinstance(machine, Engines):
        return trn(machine, table, x)
    with np.errstate(all="ignore"):
        return exact(x)


def trn(machine: Engines, table: str, x: Array) -> Array:
    """A function of the Scalar engine."""
    return machine.apply(table, [x], Op([], table, [], []))


def _rms_norm(machine: Machine, op: Op, arrays: Arrays) -> Array:
    """x / sqrt(mean of squares along the axis that the config names + epsilon), times the scale."""
    x, scale, epsilon = arrays
    axis = int(str(op.attributes.get("config", "-1")).strip() or -1)
    flat = np.moveaxis(x, axis, -1)
    count = _f(x, flat.shape[-1])
    squares = machine.fold("add", np.square(np.ascontiguousarray(flat)), op) / count
    spread = machine.apply("rsqrt", [squares + epsilon.astype(x.dtype)], op)
    return np.moveaxis(flat * spread[..., None] * scale, -1, axis)


def _softmax(machine: Machine, op: Op, arrays: Arrays) -> Array:
    """Along the last axis."""
    x = arrays[0]
    power = machine.apply("exponential", [x - x.max(-1, keepdims=True)], op)
    return power / machine.fold("add", power, op)[..., None]


def custom_call(machine: Machine, op: Op, arrays: Arrays) -> Arrays:
    """By its target, or Trouble."""
    target = op.attributes.get("target", "")
    if target in _NOTHING:
        return []
    if target in SAME:
        return arrays[:1]
    if target in _FUNCTIONS and len(arrays) in (1, 2):
        made = _function(machine, op, arrays[-1])
        return [made if len(arrays) == 1 else arrays[0] * made]
    if target in _TOP and len(arrays) == 1:
        return top_k(machine, op, arrays)
    if target.partition(".")[0] in ("mhlo", "chlo") and target.partition(".")[2] in UNARY and len(arrays) == 1:
        return [machine.apply(target.partition(".")[2], arrays, op)]
    if target == "AwsNeuronRmsNorm" and len(arrays) == 3:
        return [_rms_norm(machine, op, arrays)]
    if target == "AwsNeuronSoftmax" and len(arrays) == 1:
        return [_softmax(machine, op, arrays)]
    raise Trouble(f"line {op.line}: custom call '{target}' is not known here")


TABLE: dict[str, Any] = {"custom_call": custom_call}
