"""The operands of a graph's entry: from .npy and .npz files, or random by a seed.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from . import formats
from .graph import Graph, Shape, Trouble, Type
from .machine import Array
from .run import Value


def file_name(name: str) -> str:
    """What a value's file is called: letters that folders do not like become '_'; without '%'."""
    return "".join(c if c.isalnum() or c in ".-_" else "_" for c in name.lstrip("%@"))


def load(path: Path) -> Array:
    """An array of a .npy, without pickles."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as trouble:
        raise Trouble(f"{path}: {str(trouble).splitlines()[0] if str(trouble) else 'it cannot be read'}") from None


def given(words: list[str]) -> dict[str, Array]:
    """--inputs: a folder of NAME.npy, a .npz, or NAME=FILE.npy."""
    found: dict[str, Array] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if equals:
            found[name.lstrip("%")] = load(Path(path))
        elif Path(word).is_dir():
            found |= {p.stem: load(p) for p in sorted(Path(word).glob("*.npy"))}
        else:
            whole = load(Path(word))
            if not isinstance(whole, np.lib.npyio.NpzFile):
                raise Trouble(f"{word}: a folder, a .npz or NAME=FILE.npy is expected")
            found |= {key: whole[key] for key in whole.files}
    return found


def fit(x: Array, shape: Shape, name: str) -> Array:
    """An array as a value of this shape: codes of formats that NumPy lacks come as uint8 or uint16."""
    if x.shape != shape.dims:
        raise Trouble(f"input '{name}' is {list(x.shape)}, and {shape} is expected")
    floats = formats.is_float(shape.format)
    if floats and x.dtype.kind == "u" and formats.FLOATS[shape.format][1] not in (None, "float32"):
        return formats.numbers(np.ascontiguousarray(x), shape.format)
    if (floats and x.dtype.kind != "f") or (shape.format in formats.INTEGERS and x.dtype.kind not in "iub"):
        raise Trouble(f"input '{name}' has numbers of {x.dtype}, and {shape} is expected")
    return np.asarray(x)


def random(shape: Shape, name: str, seed: int, ints: tuple[int, int]) -> Array:
    """Gaussian numbers, matrices divided by the root of their rows; whole numbers in a range; by the name and the seed."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    draw = np.random.default_rng(np.frombuffer(digest[:16], np.uint32))
    if shape.format == "token":
        return np.zeros(0)
    if shape.format == "pred":
        return draw.integers(0, 2, shape.dims).astype(bool)
    if shape.format in formats.INTEGERS:
        stored = formats.holder(shape.format, True)
        low = max(ints[0], int(np.iinfo(stored).min))
        return draw.integers(low, min(ints[1], int(np.iinfo(stored).max)), shape.dims, np.int64).astype(stored)
    scale = 1 / np.sqrt(max(shape.dims[-2], 1)) if len(shape.dims) > 1 else 1.0
    x = draw.standard_normal(shape.dims, np.float32) * np.float32(scale)
    if shape.format in formats.COMPLEX:
        return x + 1j * draw.standard_normal(shape.dims, np.float32)
    return x


def both(x: Array, shape: Shape) -> tuple[Array, Array]:
    """As the reference and as the engines have it: the same numbers."""
    if shape.format == "token":
        return x, x
    if formats.is_float(shape.format):
        x = formats.rounded(x.astype(formats.holder(shape.format, False), copy=False), shape.format)
    x = formats.settled(x, shape, False)
    return x, x  # one array: the reference widens where something is done


def values(graph: Graph, named: dict[str, Array], devices: int, seed: int, ints: tuple[int, int],
           alike: bool) -> tuple[dict[str, Value], list[str]]:
    """Of each parameter its value, and the names of those that are random. Devices have numbers of their own where
    nothing is given, unless they are alike."""
    parameters = dict(zip(graph.main.parameters, graph.main.types))
    keys = {name: next((k for k in (name.lstrip("%"), file_name(name)) if k in named), None) for name in parameters}
    left = sorted(set(named) - set(keys.values()))
    if left:
        raise Trouble(f"the graph has no parameter '{left[0]}'; it has {', '.join(graph.main.parameters[:8])}, ...")

    def sides(name: str, d: int) -> tuple[Any, Any]:
        return _one(parameters[name], named.get(keys[name] or ""), name if d == 0 else f"{name} of {d}", seed, ints)
    made: dict[str, Value] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # NumPy draws and rounds without the interpreter
        asked = {name: [pool.submit(sides, name, d) for d in range(1 if alike or keys[name] is not None else devices)]
                 for name in parameters}
        for name, futures in asked.items():
            found = [future.result() for future in futures]
            found = found * devices if len(found) == 1 else found
            made[name] = Value(tuple(s[0] for s in found), tuple(s[1] for s in found))
    return made, [name for name in parameters if keys[name] is None]


def _one(type_: Type, x: Array | None, name: str, seed: int, ints: tuple[int, int]) -> tuple[Any, Any]:
    if not isinstance(type_, Shape):
        parts = [_one(part, None, f"{name}.{n}", seed, ints) for n, part in enumerate(type_)]
        return tuple(p[0] for p in parts), tuple(p[1] for p in parts)
    return both(random(type_, name, seed, ints) if x is None else fit(x, type_, name), type_)
