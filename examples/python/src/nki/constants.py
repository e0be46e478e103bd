"""nki.isa.constants: the choices that instructions take. Numbers are trnmath's.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import enum


class engine(enum.IntEnum):
    unknown = 0
    tensor = 1
    vector = 2
    scalar = 3
    gpsimd = 4
    dma = 5
    sync = 6


class reduce_cmd(enum.IntEnum):
    idle = 1
    reset = 2
    reduce = 3
    reset_reduce = 4
    load_reduce = 5


class dge_mode(enum.IntEnum):
    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(enum.IntEnum):
    error = 0
    skip = 1


class matmul_perf_mode(enum.Enum):
    none = "none"
    double_row = "double_row"
    double_pixel = "double_pixel"

    @classmethod
    def _missing_(cls, value: object) -> matmul_perf_mode | None:
        """By the names of any release: "double_row_gen3"."""
        return cls.__members__.get(str(value).removesuffix("_gen3"))

    @property
    def rows(self) -> int:
        return 2 if self is matmul_perf_mode.double_row else 1


class nc_version(enum.IntEnum):
    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(enum.IntEnum):
    dma = 1
    gpsimd_dma = 2
