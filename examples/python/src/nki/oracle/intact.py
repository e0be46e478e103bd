"""Has a program left Python as it was? A child that has not is not used again.

Looked at: the attributes of our modules, NumPy's and those that were loaded for programs; in ours and NumPy's those of
classes, functions and the tables that lie there; threads; settings of NumPy and of the interpreter. What a program
hides deeper, inside of objects of C, is not seen.
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import _thread
import os
import random
import sys
import types
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

_CLOSELY = ("nki", "neuronxcc", "trnmath", "numpy")
_CHANGING = ("nki.oracle", "nki.simulator", "linecache", "re", "warnings", "random", "numpy.random")  # of themselves


def _inside(value: Any) -> Any:
    """A copy of what an object holds that a program could change."""
    if isinstance(value, type):
        return dict(vars(value))
    return value.copy()


def _same(now: Any, then: Any) -> bool:
    """One level deep, and at the speed of C: what is the same object is equal."""
    try:
        return bool(now == then)
    except Exception:  # an array, whose equality is no truth: it was another one before
        return False


def _settings() -> tuple[Any, ...]:
    return (sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), sys.stdout, sys.stderr, sys.excepthook,
            sys.getswitchinterval(), np.geterr(), np.geterrcall(), warnings.showwarning, dict(os.environ), sys.path[:],
            sys.meta_path[:])


class Snapshot:
    """Python as it is, in _CLOSELY and these modules, too; same() later."""

    def __init__(self, more: Iterable[str]) -> None:
        names = {"builtins", *more}
        self.modules = {name: (module, dict(vars(module))) for name, module in sys.modules.items()
                        if isinstance(module, types.ModuleType) and not name.startswith(_CHANGING)
                        and (name in names or name.split(".")[0] in _CLOSELY)}
        self.names = set(sys.modules)
        close: dict[int, Any] = {}
        for name, (_, members) in self.modules.items():
            if name.split(".")[0] in _CLOSELY:
                close.update((id(v), v) for v in members.values())
        self.tables = [(v, _inside(v)) for v in close.values() if isinstance(v, type) or type(v) in (dict, list, set)]
        self.functions = [v for v in close.values() if isinstance(v, types.FunctionType)]
        self.code = [(f.__code__, f.__defaults__) for f in self.functions]
        self.settings = _settings()
        self.threads = _thread._count()

    def same(self) -> bool:
        """Names of modules that a program has defined are taken away; NumPy's and Python's random states begin anew."""
        for name in set(sys.modules) - self.names:
            del sys.modules[name]
        random.seed(0)
        np.random.seed(0)
        return (set(sys.modules) == self.names and _thread._count() == self.threads and _settings() == self.settings
                and all(sys.modules.get(name) is module and _same(vars(module), members)
                        for name, (module, members) in self.modules.items())
                and all(_same(vars(v) if isinstance(v, type) else v, inner) for v, inner in self.tables)
                and all(f.__code__ is code and f.__defaults__ is defaults
                        for f, (code, defaults) in zip(self.functions, self.code)))
