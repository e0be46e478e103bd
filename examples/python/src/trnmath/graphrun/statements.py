"""What statements of StableHLO text mean: attributes under the runner's names, and the short forms.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import sharding
from .graph import Op, Shape, Trouble, Type
from .mlir_types import dense

RETURNS = ("return", "func.return", "stablehlo.return", "mhlo.return", "sdy.return")


@dataclass
class Statement:
    """What stands after the operation's name."""

    kind: str
    line: int
    results: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=list)  # operands in parentheses
    words: list[str] = field(default_factory=list)
    lists: list[Any] = field(default_factory=list)
    named: dict[str, Any] = field(default_factory=dict)
    regions: list[str] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)  # %a = %b, of while
    inputs: list[Type] = field(default_factory=list)
    outputs: list[Type] = field(default_factory=list)
    typed: bool = False  # what follows types are regions alone


def _ints(value: Any) -> list[int]:
    if isinstance(value, np.ndarray):
        return [int(n) for n in value.ravel()]
    return [int(n[0] if isinstance(n, list) else n) for n in value]


_LISTS = {"dims": "dimensions", "permutation": "dimensions", "dimensions": "dimensions",
          "broadcast_dimensions": "dimensions", "low": "low", "high": "high", "interior": "interior",
          "edge_padding_low": "low", "edge_padding_high": "high", "interior_padding": "interior", "sizes": "slice_sizes",
          "slice_sizes": "slice_sizes", "start_indices": "start_indices", "limit_indices": "limit_indices",
          "strides": "strides", "window_dimensions": "window_dimensions", "window_strides": "window_strides",
          "base_dilations": "base_dilations", "window_dilations": "window_dilations", "lhs_dilation": "lhs_dilation",
          "rhs_dilation": "rhs_dilation", "rhs_dilations": "rhs_dilation", "fft_length": "fft_length", "length": "fft_length"}
_NUMBERS = {"dim": "dimension", "dimension": "dimension", "iota_dimension": "iota_dimension", "index": "index", "k": "k",
            "feature_group_count": "feature_group_count", "batch_group_count": "batch_group_count",
            "all_gather_dim": "dimension", "scatter_dimension": "dimension", "split_dimension": "split_dimension",
            "concat_dimension": "concat_dimension", "feature_index": "feature_index", "epsilon": "epsilon",
            "batch_dims": "batch_dims", "split_count": "split_count", "exponent_bits": "exponent_bits", "mantissa_bits": "mantissa_bits"}
_DIM_NUMBERS = {"offset_dims": "offset_dims", "collapsed_slice_dims": "collapsed_slice_dims",
                "operand_batching_dims": "operand_batching_dims", "input_batching_dims": "operand_batching_dims",
                "start_indices_batching_dims": "start_indices_batching_dims",
                "scatter_indices_batching_dims": "start_indices_batching_dims", "start_index_map": "start_index_map",
                "update_window_dims": "update_window_dims", "inserted_window_dims": "inserted_window_dims",
                "scatter_dims_to_operand_dims": "scatter_dims_to_operand_dims", "lhs_batching_dimensions": "lhs_batch",
                "rhs_batching_dimensions": "rhs_batch", "lhs_contracting_dimensions": "lhs_contracting",
                "rhs_contracting_dimensions": "rhs_contracting"}


def _named(name: str, value: Any, op: Op) -> None:
    """One attribute, under the name that the runner asks for."""
    into = op.attributes
    if name in _LISTS:
        into[_LISTS[name]] = _ints(value)
    elif name in _NUMBERS:
        into[_NUMBERS[name]] = value
    elif name in ("dimension_numbers", "scatter_dimension_numbers", "dot_dimension_numbers") and isinstance(value, dict):
        for key, found in value.items():
            into[_DIM_NUMBERS.get(key, key)] = int(found) if key == "index_vector_dim" else _ints(found)
    elif name in ("dimension_numbers", "dim_numbers"):
        into["labels"] = tuple("".join(str(n) for n in part) for part in value if isinstance(part, list))
    elif name == "batching_dims":
        into["lhs_batch"], into["rhs_batch"] = _ints(value[0]), _ints(value[1])
    elif name == "contracting_dims":
        into["lhs_contracting"], into["rhs_contracting"] = _ints(value[0]), _ints(value[1])
    elif name == "window":
        for key, ours in (("stride", "window_strides"), ("lhs_dilate", "lhs_dilation"), ("rhs_dilate", "rhs_dilation")):
            if key in value:
                into[ours] = _ints(value[key])
        if "pad" in value:
            into["padding"] = [tuple(_ints(pair)) for pair in value["pad"]]
        if "reverse" in value:
            into["window_reversal"] = [n in (True, 1) for n in value["reverse"]]
    elif name == "window_reversal":
        into["window_reversal"] = [bool(n) for n in np.ravel(value)]
    elif name == "padding":
        into["padding"] = [tuple(map(int, pair)) for pair in np.reshape(value, (-1, 2))]
    elif name == "channel_handle":
        into["channel_id"] = True
    elif name in ("replica_groups", "source_target_pairs"):
        into[name] = [[int(n) for n in row if n >= 0] for row in np.atleast_2d(value)] if np.size(value) else []
    elif name in ("comparison_direction", "compare_type", "algorithm", "rng_algorithm", "rng_distribution", "fft_type"):
        key = {"comparison_direction": "direction", "rng_algorithm": "algorithm", "rng_distribution": "distribution"}.get(name, name)
        into[key] = value[-1] if isinstance(value, list) else value
    elif name in ("is_stable", "largest", "use_global_device_ids", "lower", "left_side", "unit_diagonal", "transpose_a"):
        into[{"use_global_device_ids": "global_ids"}.get(name, name)] = value[-1] if isinstance(value, list) else value
    elif name == "mhlo.sharding":
        into["sharding"] = value
    elif name in ("in_shardings", "out_shardings"):  # <[...]> of the generic form
        into[name] = value[0] if value and isinstance(value[0], list) and value[0] and isinstance(value[0][0], list) else value
    elif name == "manual_axes":
        into[name] = list(value[-1] if isinstance(value, list) else value)
    elif name == "callee":
        op.bodies = [value]
    elif name == "call_target_name":
        into["target"] = value.lstrip("@")
    elif name in ("composite_attributes", "decomposition", "value", "einsum_config"):
        into[name] = value


def _constant(s: Statement, op: Op) -> None:
    word = next((w for w in s.words if w.startswith("dense")), None)
    op.operands = []
    if word is not None:
        op.attributes["value"] = dense(word, op.shape(), s.line)
    op.get("value")


def _call(s: Statement, op: Op) -> None:
    op.bodies = [w for w in s.words if w.startswith("@")] or op.bodies


def _compare(s: Statement, op: Op) -> None:
    if s.words:
        op.attributes["direction"] = s.words[0]
        if len(s.words) > 1:
            op.attributes["compare_type"] = s.words[1]


def _slice(s: Statement, op: Op) -> None:
    if s.lists:
        rows = s.lists[0]
        op.attributes |= {"start_indices": [r[0] for r in rows], "limit_indices": [r[1] for r in rows],
                          "strides": [r[2] if len(r) > 2 else 1 for r in rows]}


def _reduce(s: Statement, op: Op) -> None:
    """stablehlo.reduce(%x init: %c), (%y init: %d) applies OP across dimensions = [..] : ... reducer(...) {...}"""
    pairs = [g for g in s.groups if g]  # the generic form has one group, and an empty one of regions
    if len(pairs) > 1:
        op.operands = [g[0] for g in pairs] + [g[1] for g in pairs]
    applied = [w for w in s.words if "." in w]
    if applied:
        op.attributes["applies"] = applied[0].partition(".")[2]


def _while(s: Statement, op: Op) -> None:
    """Its parameters are those of both regions."""
    op.operands = [b for _, b in s.pairs] or op.operands
    op.attributes["parameters"] = [a for a, _ in s.pairs]


def _custom(s: Statement, op: Op) -> None:
    target = next((w for w in s.words if w.startswith("@")), None)
    if target:
        op.attributes["target"] = target.lstrip("@").strip('"')
    for name, value in s.named.get("mhlo.attributes", {}).items():
        _named(name, value, op)


def _tuple_part(s: Statement, op: Op) -> None:
    if s.lists:
        op.attributes["index"] = int(np.ravel(s.lists[0])[0])


def _precision(s: Statement, op: Op) -> None:
    """format = e5m10"""
    found = re.fullmatch(r"e(\d+)m(\d+)", str(s.named.get("format", "")))
    if found:
        op.attributes |= {"exponent_bits": int(found.group(1)), "mantissa_bits": int(found.group(2))}


def _composite(s: Statement, op: Op) -> None:
    op.kind, op.bodies = "call", [op.get("decomposition")]


def _fusion(s: Statement, op: Op) -> None:
    op.kind = "call"


def _iota(_: Statement, op: Op) -> None:
    op.attributes.setdefault("iota_dimension", op.attributes.get("dimension", 0))


def _known_shape(kind: str) -> Callable[[Statement, Op], None]:
    """A dynamic operation whose result's type says its sizes: the operand that says them is not needed."""
    def plain(s: Statement, op: Op) -> None:
        op.kind, op.operands = kind, op.operands[:0 if kind == "iota" else 1]
        _iota(s, op)
    return plain


def _old_broadcast(s: Statement, op: Op) -> None:
    """mhlo.broadcast: axes in front."""
    rank = _rank(s.inputs[0])
    op.kind, op.attributes["dimensions"] = "broadcast_in_dim", list(range(_rank(op.types[0]) - rank, _rank(op.types[0])))


_SHORT: dict[str, Callable[[Statement, Op], None]] = {
    "constant": _constant, "call": _call, "compare": _compare, "slice": _slice, "reduce": _reduce, "while": _while,
    "custom_call": _custom, "get_tuple_element": _tuple_part, "iota": _iota, "reduce_precision": _precision,
    "composite": _composite, "fusion": _fusion, "broadcast": _old_broadcast, "dynamic_reshape": _known_shape("reshape"),
    "dynamic_broadcast_in_dim": _known_shape("broadcast_in_dim"), "dynamic_iota": _known_shape("iota")}
_DIALECTS = ("stablehlo", "mhlo", "chlo", "func", "", "arith")
_OF_SDY = ("sdy.constant", "sdy.manual_computation")
_KINDS = {"dot": "dot_general", "if": "case", "convolution": "convolution", "conv": "convolution", "cosine": "cosine"}


def operation(s: Statement) -> Op:
    dialect, _, kind = s.kind.rpartition(".")
    if dialect == "sdy" and kind in sharding.SAME:
        return Op(s.results, "move", s.operands[:1], list(s.outputs), line=s.line)
    if dialect not in _DIALECTS and s.kind not in _OF_SDY:
        raise Trouble(f"line {s.line}: {s.kind} is no operation of StableHLO")
    op = Op(s.results, _KINDS.get(kind, kind), list(s.operands), list(s.outputs), bodies=list(s.regions), line=s.line)
    for name, value in s.named.items():
        _named(name, value, op)
    if kind == "dot":
        op.attributes |= {"lhs_contracting": [_rank(s.inputs[0]) - 1], "rhs_contracting": [0]}
    if op.kind == "fft" and "fft_type" not in op.attributes:
        op.attributes["fft_type"] = next((w for w in s.words if "FFT" in w), s.named.get("type"))
    if op.kind in _SHORT:
        _SHORT[op.kind](s, op)
    if kind == "select" and len(op.types) > 1:
        op.types = op.types[1:]
    if kind == "complex" or kind in ("real", "imag") or len(op.types) != len(op.results) and op.kind != "custom_call":
        op.types = _result_types(s, op)
    return op


def _rank(type_: Type) -> int:
    return len(type_.dims) if isinstance(type_, Shape) else 0


def _result_types(s: Statement, op: Op) -> list[Type]:
    """Of short forms that list operands' types with the result's: the last ones."""
    return list(s.outputs[-len(op.results):]) if op.results else []
