"""Has a program left Python as it was? A child that has not is not used again.

Looked at: the attributes of our modules, NumPy's and those that were loaded for programs; in ours and NumPy's those of
classes and the tables that lie there; the code of our functions; threads; settings of NumPy and of the interpreter.
What a program hides deeper, inside of objects of C, is not seen.
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import _thread
import ctypes
import gc
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


def _same(now: Any, then: Any) -> bool:
    """One level deep, and at the speed of C: what is the same object is equal."""
    try:
        return bool(now == then)
    except Exception:  # an array, whose equality is no truth: it was another one before
        return False


class _Table:
    """What a dict, a list or a set holds. CPython 3.8 to 3.12 number the changes of a dict (PEP 509), which is quicker
    to look at than all that lies in it."""

    _NUMBERED = sys.implementation.name == "cpython" and (3, 8) <= sys.version_info < (3, 13) and sys.maxsize > 2**32

    def __init__(self, table: Any) -> None:
        self.table, self.held = table, table.copy()
        numbered = self._NUMBERED and type(table) is dict
        self.number = ctypes.c_uint64.from_address(id(table) + 24) if numbered else None
        self.then = self.number.value if self.number is not None else 0

    def same(self) -> bool:
        if self.number is not None and self.number.value == self.then:
            return True
        if not _same(self.table, self.held):
            return False
        if self.number is not None:
            self.then = self.number.value
        return True


def _of_class(cls: type) -> Any:
    """Its dict itself where that can be had, or else the view of it."""
    return next((table for table in gc.get_referents(vars(cls)) if type(table) is dict), vars(cls))


def _settings() -> tuple[Any, ...]:
    return (sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), sys.stdout, sys.stderr, sys.excepthook,
            sys.getswitchinterval(), np.geterr(), np.geterrcall(), warnings.showwarning, dict(os.environ), sys.path[:],
            sys.meta_path[:])


class Snapshot:
    """Python as it is, in _CLOSELY and these modules, too; same() later."""

    def __init__(self, more: Iterable[str]) -> None:
        names, close = {"builtins", *more}, dict[int, Any]()
        self.modules: list[tuple[str, types.ModuleType, _Table]] = []
        for name, module in list(sys.modules.items()):
            ours = name.split(".")[0] in _CLOSELY
            if isinstance(module, types.ModuleType) and (ours or name in names) and not name.startswith(_CHANGING):
                self.modules.append((name, module, _Table(vars(module))))
                close.update((id(v), v) for v in vars(module).values() if ours)
        self.names = set(sys.modules)
        self.tables = [_Table(_of_class(v) if isinstance(v, type) else v) for v in close.values()
                       if isinstance(v, type) or type(v) in (dict, list, set)]
        self.functions = [v for v in close.values() if isinstance(v, types.FunctionType)
                          and not v.__module__.startswith("numpy")]
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
                and all(sys.modules.get(name) is module and table.same() for name, module, table in self.modules)
                and all(table.same() for table in self.tables)
                and all(f.__code__ is code and f.__defaults__ is defaults
                        for f, (code, defaults) in zip(self.functions, self.code)))
