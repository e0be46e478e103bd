"""`import nki` and `import neuronxcc` find trnmath's, where no other package has the name.

An installed trnmath keeps its two fronts in trnmath/fronts, never in another package's place: nothing of a vendor's
nki or neuronxcc is overwritten when trnmath comes, or deleted when it goes. trnmath.pth imports this file whenever
Python starts; all that it does is to put a finder behind all others. With TRNMATH_FRONTS=first in the environment it
goes before them, so that trnmath's are found although others are installed. Where no .pth is read (pip --target),
PYTHONPATH=.../trnmath/fronts does the same. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any

FRONTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trnmath", "fronts")


class Finder:
    """For sys.meta_path: the packages that lie in trnmath/fronts. What is in them is then found as in any package."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        place = os.path.join(FRONTS, name)
        first = os.path.join(place, "__init__.py")
        if path is not None or name not in ("nki", "neuronxcc") or not os.path.isfile(first):
            return None
        return importlib.util.spec_from_file_location(name, first, submodule_search_locations=[place])


def install() -> None:
    finders: list[Any] = sys.meta_path
    if Finder not in finders:
        finders.insert(0 if os.environ.get("TRNMATH_FRONTS") == "first" else len(finders), Finder)


install()
