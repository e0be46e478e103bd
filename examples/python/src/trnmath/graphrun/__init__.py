"""graphrun: HLO and StableHLO modules in float64 and on the engines, side by side.

    python3 -m trnmath.graphrun FILE.hlo --html report.html

SPDX-License-Identifier: MIT
"""
