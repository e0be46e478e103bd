"""The machine that kernels run on where a call does not say, by the environment variables of the vendor's package.

NEURON_PLATFORM_TARGET_OVERRIDE: trn1, inf2 or gen2, trn2 or gen3, trn3 or gen4; without it Trainium2. NKI_SIMULATOR:
every run is simulated here, whatever it is. NKI_PRECISE_FP=0 asks for formats of 8 and 16 bits without their roundings,
which no engine can do: it is not followed, and a warning says so once. One of our own: TRNMATH_SPILL=1 is
nki.simulate's spill=True for programs that call kernels themselves. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import os
import warnings

from . import _core

_TARGET = "NEURON_PLATFORM_TARGET_OVERRIDE"
_GENERATIONS = {"trn1": 1, "trn1n": 1, "inf2": 1, "gen2": 1, "trn2": 2, "trn2n": 2, "gen3": 2, "trn3": 3,
                "trn3pre": 3, "gen4": 3}


def generation(said: object = None) -> int:
    """1, 2, 3 for Trainium1, 2, 3; said: a number, a name, or None for what the environment says."""
    of = "generation"
    if said is None:
        said, of = os.environ.get(_TARGET) or 2, _TARGET
        _precise()
    if isinstance(said, str):
        if said.lower() not in _GENERATIONS:
            raise _core.Error(f"{of} is {said!r}; there are trn1, inf2 or gen2, trn2 or gen3, trn3 or gen4")
        return _GENERATIONS[said.lower()]
    return int(said)  # type: ignore[call-overload]


class _Once:
    said = False


def _precise() -> None:
    if os.environ.get("NKI_PRECISE_FP") == "0" and not _Once.said:
        _Once.said = True
        warnings.warn("NKI_PRECISE_FP=0 is not followed: numbers are rounded to their formats, as the engines do",
                      RuntimeWarning, stacklevel=6)


def spills() -> bool:
    """May tiles that do not fit their memory wait outside of it?"""
    said = os.environ.get("TRNMATH_SPILL") or "0"
    if said not in ("0", "1"):
        raise _core.Error(f"TRNMATH_SPILL is {said!r}; it is 1 or 0")
    return said == "1"


def sbuf_bytes() -> int:
    """SBUF of the machine of the environment, all partitions."""
    return int(_core.Core(generation=generation()).report()["sbuf_bytes"])
