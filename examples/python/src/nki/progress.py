"""How far a kernel has come, on a terminal, once it has run for two seconds: tiles of its tensors in HBM, seconds left.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import math
import sys
import threading
import time
from typing import Protocol, TextIO

_AFTER, _STEP = 2.0, 0.25  # seconds
_ROWS = 128  # of a tile


class _Tensor(Protocol):
    shape: tuple[int, ...]
    unwritten: int  # bytes of its allocation

    @property
    def itemsize(self) -> int: ...


class Progress:
    """While it is entered a line on standard error tells, if that is a terminal."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: list[_Tensor] = []
        self.began = 0.0
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if sys.stderr is not None and sys.stderr.isatty():
            self.began = time.monotonic()
            self.thread = threading.Thread(target=self._tell, args=(sys.stderr,), daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.thread is not None:
            self.over.set()
            self.thread.join()
        self.tensors.clear()

    def add(self, tensor: _Tensor) -> None:
        """One that the kernel is to write."""
        if self.thread is not None:
            self.tensors.append(tensor)

    def line(self, seconds: float) -> str:
        """What there is to say after so many seconds."""
        tiles, done = 0, 0.0
        for tensor in list(self.tensors):
            size = math.prod(tensor.shape)
            count = -(-size // (tensor.shape[-1] * _ROWS)) if size else 0
            tiles += count
            done += count * (1 - tensor.unwritten / (size * tensor.itemsize)) if size else 0
        if not 0 < done <= tiles:
            return f"{self.name}: {seconds:.0f} s"
        return f"{self.name}: {int(done)} of {tiles} tiles, {seconds * (tiles / done - 1):.0f} s left"

    def _tell(self, out: TextIO) -> None:
        said = False
        while not self.over.wait(_STEP if said else _AFTER):
            out.write(f"\r{self.line(time.monotonic() - self.began)}\033[K")
            out.flush()
            said = True
        if said:
            out.write("\r\033[K")
            out.flush()
