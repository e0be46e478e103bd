"""Reads HLO text: what XLA prints (HloModule ...), of any age, with or without types of operands.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from . import formats
from .graph import WRONG, Computation, Graph, Op, Shape, Trouble, Type

_NAMES = {"dot": "dot_general", "broadcast": "broadcast_in_dim", "copy": "move", "bitcast": "reshape",
          "copy_start": "move", "copy_done": "move", "fusion": "call", "conditional": "case", "tan": "tan",
          "async_start": "call", "async_update": "move", "async_done": "move", "topk": "top_k",
          "all_reduce_start": "all_reduce", "all_reduce_done": "move", "all_gather_start": "all_gather",
          "all_gather_done": "move", "collective_permute_start": "collective_permute", "collective_permute_done": "move",
          "rng_get_and_update_state": "", "add_dependency": "move",
          "opt_barrier": "optimization_barrier", "domain": "move", "sharding": "move"}
_STARTED = {"async-start": 1, "async-update": 1, "all-gather-start": 1, "collective-permute-start": 1, "copy-start": 0}  # the result's part
_HEADER = re.compile(r"^\s*(ENTRY\s+)?%?([\w.\-+<>]+)\s*(\(.*\)\s*->.*)?\{\s*$")
_COMMENT = re.compile(r"/\*.*?\*/")
_OP = re.compile(r"^\s*(ROOT\s+)?%?([\w.\-+<>]+)\s*=\s*(.*)$")


# ---- the pieces of a line ----

def _closing(text: str, at: int, line: int) -> int:
    """Where the bracket at `at` closes."""
    depth, quoted = 0, False
    for i in range(at, len(text)):
        letter = text[i]
        if letter == '"' and text[i - 1] != "\\":
            quoted = not quoted
        elif not quoted and letter in "([{":
            depth += 1
        elif not quoted and letter in ")]}":
            depth -= 1
            if depth == 0:
                return i
    raise Trouble(f"line {line}: a bracket does not close")


def _split(text: str, by: str = ",") -> list[str]:
    """Parts between commas that lie in no bracket and no string."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, letter in enumerate(text):
        if letter == '"' and (i == 0 or text[i - 1] != "\\"):
            quoted = not quoted
        elif not quoted:
            depth += (letter in "([{") - (letter in ")]}")
            if letter == by and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 1
    last = text[start:].strip()
    return parts + [last] * bool(last)


def _type(text: str, line: int) -> tuple[Type, str]:
    """A type at the beginning of a text, and what follows it."""
    text = text.lstrip()
    if text.startswith("("):
        end = _closing(text, 0, line)
        return tuple(_type(part, line)[0] for part in _split(text[1:end])), text[end + 1:]
    found = re.match(r"([a-z]+\d*[a-z0-9]*)\[([^\]]*)\](\{[^}]*\})?", text) or re.match(r"(token)\[\]()", text)
    if found is None:
        raise Trouble(f"line {line}: no type of HLO: {text[:40]}")
    name, sizes = found.group(1), found.group(2)
    if not formats.known(name):
        raise Trouble(f"line {line}: numbers of format {name} cannot be run")
    if "<" in sizes or "?" in sizes:
        raise Trouble(f"line {line}: sizes that are known only when it runs ({text[:40]}) cannot be run")
    return Shape(name, tuple(int(n) for n in sizes.split(",") if n.strip())), text[found.end():]


def _layout(text: str) -> list[int]:
    """Of a tensor's type: its axes as they lie in memory, the outermost first; nothing where none is said."""
    found = re.match(r"\s*[a-z]\w*\[[^\]]*\]\{([\d,]*)", text)
    return _ints(found.group(1))[::-1] if found else []


def _ints(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"-?\d+", text)]


def _nested(text: str) -> list[list[int]]:
    """{{0,1},{2,3}}, or {} (all in one), or the iota form [2,4]<=[8] with an optional transpose."""
    iota = re.match(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    if iota:
        sizes, whole = _ints(iota.group(1)), _ints(iota.group(2))
        ranks = np.arange(int(np.prod(whole))).reshape(whole)
        turned = ranks.transpose(_ints(iota.group(3))) if iota.group(3) else ranks
        return [list(map(int, row)) for row in turned.reshape(sizes[0], -1)]
    return [_ints(group) for group in re.findall(r"\{([\d,\s]+)\}", text)]


# ---- attributes, in the words of StableHLO ----

def _window(text: str) -> dict[str, Any]:
    """window={size=2x2 stride=2x2 pad=0_0x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}"""
    given = dict(part.split("=") for part in text.strip("{}").split())
    rank = len(given["size"].split("x")) if "size" in given else 0
    each = lambda name, default: [int(n) for n in given[name].split("x")] if name in given else [default] * rank
    pads = [tuple(int(n) for n in pair.split("_")) for pair in given["pad"].split("x")] if "pad" in given else [(0, 0)] * rank
    return {"window_dimensions": each("size", 1), "window_strides": each("stride", 1), "padding": pads,
            "lhs_dilation": each("lhs_dilate", 1), "rhs_dilation": each("rhs_dilate", 1),
            "base_dilations": each("lhs_dilate", 1), "window_dilations": each("rhs_dilate", 1),
            "window_reversal": [bool(n) for n in each("rhs_reversal", 0)]}


def _labels(text: str) -> dict[str, Any]:
    """dim_labels=b01f_01io->b01f"""
    return {"labels": tuple(re.split("_|->", text))}


def _slice(text: str) -> dict[str, Any]:
    rows = [[int(n) for n in part.split(":")] for part in re.findall(r"\[([\d:\s]+)\]", text)]
    return {"start_indices": [r[0] for r in rows], "limit_indices": [r[1] for r in rows],
            "strides": [r[2] if len(r) > 2 else 1 for r in rows]}


def _padding(text: str) -> dict[str, Any]:
    rows = [[int(n) for n in part.split("_")] for part in text.split("x")] if text else []
    return {"low": [r[0] for r in rows], "high": [r[1] for r in rows], "interior": [r[2] if len(r) > 2 else 0 for r in rows]}


def _list(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: _ints(text)}


def _one(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: _ints(text)[0]}


def _word(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: text.strip('"')}


def _truth(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: text == "true"}


_ATTRIBUTES: dict[str, Callable[[str], dict[str, Any]]] = {
    "dimensions": _list("dimensions"), "slice": _slice, "padding": _padding, "window": _window, "dim_labels": _labels,
    "lhs_batch_dims": _list("lhs_batch"), "rhs_batch_dims": _list("rhs_batch"),
    "lhs_contracting_dims": _list("lhs_contracting"), "rhs_contracting_dims": _list("rhs_contracting"),
    "direction": _word("direction"), "type": _word("compare_type"), "index": _one("index"),
    "iota_dimension": _one("iota_dimension"),
    "feature_group_count": _one("feature_group_count"), "batch_group_count": _one("batch_group_count"),
    "offset_dims": _list("offset_dims"), "collapsed_slice_dims": _list("collapsed_slice_dims"),
    "operand_batching_dims": _list("operand_batching_dims"), "input_batching_dims": _list("operand_batching_dims"),
    "start_indices_batching_dims": _list("start_indices_batching_dims"),
    "scatter_indices_batching_dims": _list("start_indices_batching_dims"),
    "start_index_map": _list("start_index_map"), "index_vector_dim": _one("index_vector_dim"),
    "slice_sizes": _list("slice_sizes"), "dynamic_slice_sizes": _list("slice_sizes"),
    "update_window_dims": _list("update_window_dims"), "inserted_window_dims": _list("inserted_window_dims"),
    "scatter_dims_to_operand_dims": _list("scatter_dims_to_operand_dims"),
    "replica_groups": lambda text: {"replica_groups": _nested(text)},
    "source_target_pairs": lambda text: {"source_target_pairs": [tuple(p) for p in _nested(text)]},
    "channel_id": _one("channel_id"), "use_global_device_ids": lambda text: {"global_ids": text == "true"},
    "sharding": _word("sharding"), "custom_call_target": _word("target"), "backend_config": _word("config"), "algorithm": _word("algorithm"),
    "epsilon": lambda text: {"epsilon": float(text)}, "feature_index": _one("feature_index"),
    "exponent_bits": _one("exponent_bits"), "mantissa_bits": _one("mantissa_bits"), "k": _one("k"),
    "distribution": _word("distribution"), "fft_type": _word("fft_type"), "split_dimension": _one("split_dimension"),
    "transpose_a": _word("transpose_a"),
} | {name: _truth(name) for name in ("is_stable", "largest", "lower", "left_side", "unit_diagonal")}
_BODIES = ("to_apply", "calls", "condition", "body", "true_computation", "false_computation", "select", "scatter",
           "branch_computations", "comparator")


# ---- constants ----

def _constant(text: str, shape: Shape, line: int) -> np.ndarray[Any, Any] | None:
    """None: it was left out when the module was printed."""
    if "..." in text:
        return None
    words = re.findall(r"\([^()]*\)|true|false|-?nan(?:\(0x[0-9a-f]+\))?|-?inf|-?[\d.]+(?:e[-+]?\d+)?", text)
    if shape.format == "pred":
        flat: list[Any] = [w in ("true", "1") for w in words]
    elif shape.format in formats.COMPLEX:
        flat = [complex(*(float(p) for p in w.strip("()").split(","))) for w in words]
    elif formats.is_float(shape.format):
        flat = [float(re.sub(r"\(.*", "", w)) for w in words]
    else:
        flat = [int(w) for w in words]
    if len(flat) != shape.size:
        raise Trouble(f"line {line}: a constant of {shape} has {len(flat)} elements")
    if shape.format == "token":
        return np.zeros(0)
    return np.array(flat, formats.holder(shape.format, True)).reshape(shape.dims)


# ---- lines ----

def _operands(text: str) -> list[str]:
    """Names: the last word of each, without its type."""
    return [part.split()[-1].lstrip("%") for part in _split(_COMMENT.sub("", text)) if part]


def _op(found: re.Match[str], line: int) -> Op:
    type_, rest = _type(found.group(3), line)
    head = re.match(r"\s*([a-z][\w\-]*)\s*\(", rest)
    if head is None:
        raise Trouble(f"line {line}: no operation follows the type: {rest.strip()[:40]}")
    kind = head.group(1).replace("-", "_")
    kind = _NAMES.get(kind, kind)
    if not kind:
        raise Trouble(f"line {line}: {head.group(1)} is not known here")
    end = _closing(rest, head.end() - 1, line)
    inner = rest[head.end():end]
    if head.group(1) in _STARTED and isinstance(type_, tuple):
        type_ = type_[_STARTED[head.group(1)]]
    op = Op([found.group(2)], kind, [], [type_], line=line)
    if head.group(1) == "bitcast":
        op.attributes["bits"] = _layout(found.group(3))
    bodies: dict[str, list[str]] = {}
    for part in _split(rest[end + 1:].lstrip().lstrip(",")):
        name, equals, value = part.partition("=")
        if name in _BODIES:
            bodies[name] = [n.strip().lstrip("%") for n in value.strip("{}").split(",") if n.strip()]
        elif name in _ATTRIBUTES:
            op.attributes |= _ATTRIBUTES[name](value)
        elif name == "metadata":
            scope = re.search(r'op_name="([^"]*)"', value)
            op.scope = scope.group(1) if scope else ""
    op.bodies = [body for name in _BODIES for body in bodies.get(name, [])]
    if kind == "constant":
        op.attributes["value"] = _constant(inner, op.shape(), line)
    elif kind == "parameter":
        op.attributes["number"] = int(inner)
    else:
        op.operands = _operands(inner)
    return op


_BEGINS = re.compile(r"^\s*(ROOT\s+)?%?[\w.\-+<>]+\s*=\s+\(?|^\s*[{}]|^\s*$|^HloModule|^\s*//|.*\{\s*$")


def _rows(text: str) -> list[tuple[int, str]]:
    """Lines with their numbers; what goes on in the next line is joined to it."""
    rows: list[tuple[int, str]] = []
    for line, row in enumerate(text.split("\n"), 1):
        row = _COMMENT.sub("", row) if "/*" in row else row
        row = "" if row.lstrip().startswith("//") else row
        if rows and " = " in rows[-1][1] and not _BEGINS.match(row):
            rows[-1] = rows[-1][0], rows[-1][1] + " " + row.strip()
        else:
            rows.append((line, row))
    return rows


def is_hlo(text: str) -> bool:
    """Does it look like HLO? Pieces of it may have no module and no entry."""
    return bool(re.search(r"^HloModule|^ENTRY |^\s*(?:ROOT )?%?[\w.\-]+ = \(*[a-z]+\d*\[[\d, ]*\]", text, re.MULTILINE))


def read(text: str) -> Graph:
    """The graph of a module's text, or Trouble."""
    computations: dict[str, Computation] = {}
    entry, current, last, rooted = "", None, "", False
    numbered: dict[int, Op] = {}
    layouts: dict[str, list[int]] = {}
    for line, row in _rows(text):
        header = None if current is not None or row.startswith("HloModule") else _HEADER.match(row)
        if header:
            current, rooted, numbered, layouts = Computation(header.group(2)), False, {}, {}
            computations[current.name] = current
            last = current.name
            entry = last if header.group(1) else entry
        elif current is not None and row.strip().startswith("}"):
            _close(current, numbered, current.name == entry)
            current = None
        elif current is not None and row.strip():
            found = _OP.match(row)
            if found is None:
                raise Trouble(f"line {line}: no operation of HLO: {row.strip()[:60]}")
            try:
                op = _op(found, line)
            except Trouble:
                raise
            except WRONG:
                raise Trouble(f"line {line}: operation '{found.group(2)}' cannot be read") from None
            layouts[op.name] = _layout(found.group(3))
            if "bits" in op.attributes:
                op.attributes["lies"] = layouts.get(op.operands[0] if op.operands else "", [])
            if op.kind == "parameter":
                numbered[op.attributes["number"]] = op
            else:
                current.ops.append(op)
            if found.group(1) or not rooted:
                current.results, rooted = op.results[:1], bool(found.group(1))
    if current is not None:
        raise Trouble(f"computation '{current.name}' does not end")
    if not computations:
        raise Trouble("there is no computation of HLO in it")
    head = next((row for row in text.split("\n") if row.lstrip().startswith("HloModule")), "")
    several = {name: re.search(rf"\b{name}=(\d+)", head) for name in ("num_partitions", "replica_count")}
    partitions, replicas = (int(found.group(1)) if found else 1 for found in several.values())
    return Graph(computations, entry or last, partitions, replicas)


def _close(computation: Computation, numbered: dict[int, Op], entry: bool) -> None:
    """Its parameters in order. In a part of a module that somebody cut out the entry may lack some."""
    if not entry and sorted(numbered) != list(range(len(numbered))):
        raise Trouble(f"computation '{computation.name}': its parameters are numbered {sorted(numbered)}")
    for n in sorted(numbered):
        computation.parameters.append(numbered[n].results[0])
        computation.types.append(numbered[n].types[0])
