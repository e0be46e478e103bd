"""How long threads of OpenMP spin for work before they sleep: not long enough to take a processor from another program.
Said to libgomp as it is loaded, unless the environment says something; a copy that is there already keeps its own.

SPDX-License-Identifier: MIT
"""
import os

_SPINS = "10000"  # some 50 us; libgomp's own choice is milliseconds

if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & set(os.environ):
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    try:
        from . import _core  # noqa: F401
    finally:
        del os.environ["GOMP_SPINCOUNT"]
