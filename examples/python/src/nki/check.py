"""python -m nki.check FILE.py KERNEL --shapes x=128*k,512 w=512,n: nki.check of a kernel in a file, printed.

Status 0: all cases are right, 1: some fail, 2: it was not asked well. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from .sweep import check


def _pairs(texts: Sequence[str], of: Callable[[str], Any]) -> dict[str, Any]:
    made = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise _core.Error(f"check: '{text}' has no =, as in x=128*k,512")
        made[name] = of(value)
    return made


def _sizes(text: str) -> tuple[Any, ...]:
    return tuple(int(s) if s.strip().isdecimal() else s for s in text.split(","))


def _numbers(text: str) -> list[int]:
    """1,2,4 or 1..8."""
    first, dots, last = text.partition("..")
    try:
        return list(range(int(first), int(last) + 1)) if dots else [int(n) for n in text.split(",")]
    except ValueError:
        raise _core.Error(f"check: '{text}' is no list of numbers; write 1,2,4 or 1..8") from None


def _literal(text: str) -> Any:
    import ast
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _kernel(path: str, *entries: str | None) -> list[Any]:
    """What a file calls these names."""
    spec = importlib.util.spec_from_file_location("checked", path)
    if spec is None or spec.loader is None:
        raise _core.Error(f"check: {path} is no file of Python's")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as trouble:
        raise _core.Error(f"check: {path}: {trouble.strerror}") from None
    for entry in entries:
        if entry is not None and not hasattr(module, entry):
            raise _core.Error(f"check: {path} has no '{entry}'")
    return [None if entry is None else getattr(module, entry) for entry in entries]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m nki.check", description="Runs a kernel with many shapes.")
    parser.add_argument("file")
    parser.add_argument("kernel")
    parser.add_argument("--shapes", nargs="+", metavar="NAME=SIZE,SIZE", help="x=128*k,512 w=512,n")
    parser.add_argument("--where", nargs="+", default=[], metavar="SYMBOL=NUMBERS", help="k=1..8 n=64,100")
    parser.add_argument("--grids", nargs="+", metavar="SIZES", help="1 2 4,2")
    parser.add_argument("--generations", nargs="+", metavar="1|2|3", help="trn2 3")
    parser.add_argument("--arguments", nargs="+", default=[], metavar="NAME=VALUE", help="eps=1e-5")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--expected", metavar="FUNCTION", help="of the same file, in NumPy: what the kernel is to compute")
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args(arguments)
    try:
        kernel = _kernel(asked.file, asked.kernel, asked.expected)
        found = check(kernel[0], _pairs(asked.shapes, _sizes) if asked.shapes else None,
                      _pairs(asked.where, _numbers), [_sizes(g) for g in asked.grids or ()],
                      [int(g) if g.isdecimal() else g for g in asked.generations or ()],
                      _pairs(asked.arguments, _literal), asked.dtype, seconds=asked.seconds,
                      expected=kernel[1], tolerance=asked.tolerance)
    except _core.Error as trouble:
        print(trouble, file=sys.stderr)
        return 2
    print(found)
    return int(not found.ok)


if __name__ == "__main__":
    sys.exit(main())
sys.modules[__name__] = check  # type: ignore[assignment]  # whoever imports nki.check means the function
