"""Types and constants of StableHLO text. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import formats
from .graph import Shape, Trouble, Type


def type_of(text: str, line: int) -> Type:
    """tensor<2x3xf32>, a token, or a tuple."""
    if text == "!stablehlo.token":
        return Shape("token", (0,))
    inner = text[len("tensor<"):-1].split(",")[0].strip()
    sizes = re.match(r"(?:(?:\d+|\?)x)*", inner)
    assert sizes is not None
    name = inner[sizes.end():]
    if "?" in sizes.group():
        raise Trouble(f"line {line}: sizes that are known only when it runs ({text}) cannot be run")
    if name not in formats.OF_STABLEHLO:
        raise Trouble(f"line {line}: numbers of format {name} cannot be run")
    return Shape(formats.OF_STABLEHLO[name], tuple(int(n) for n in sizes.group().split("x") if n))


def dense(text: str, shape: Shape, line: int) -> np.ndarray[Any, Any] | None:
    """None: it was left out when the module was printed."""
    if text.startswith("dense_resource"):
        return None
    inner = text[len("dense<"):-1].strip()
    if inner.startswith('"0x'):
        return formats.of_bits(bytes.fromhex(inner[3:-1]), shape)
    words = re.findall(r"\([^()]*\)|true|false|0x[0-9A-Fa-f]+|-?[\d.]+(?:[eE][-+]?\d+)?", inner)
    flat = _elements(words, shape)
    if len(flat) not in (1, shape.size):
        raise Trouble(f"line {line}: a constant of {shape} has {len(flat)} elements")
    return (np.broadcast_to(flat[0], shape.dims) if len(flat) == 1 else flat.reshape(shape.dims)) if shape.size else \
        np.zeros(shape.dims, formats.holder(shape.format, True))


def _elements(words: list[str], shape: Shape) -> np.ndarray[Any, Any]:
    name = shape.format
    if name == "pred":
        return np.array([w in ("true", "1") for w in words])
    if name in formats.COMPLEX:
        part = {"c64": "f32", "c128": "f64"}[name]
        each = [_elements(w.strip("()").replace(" ", "").split(","), Shape(part, ())) for w in words]
        return np.array([complex(*pair) for pair in each])
    if formats.is_float(name):
        return np.array([_of_hex(w, name) if w.startswith("0x") else float(w) for w in words])
    least, most = formats.limits(name)  # 2^63 is a way to write the least of 64 bits
    whole = [int(w, 0) for w in words]
    return np.array([n + 2 * least if most < n < -2 * least else n for n in whole], object).astype(
        formats.holder(name, True))


def _of_hex(word: str, name: str) -> float:
    stored = np.dtype(formats.FLOATS[name][2])
    data = int(word, 16).to_bytes(stored.itemsize, "little")
    return float(formats.of_bits(data, Shape(name, ())))
