"""Other people's Python in a child process: so many seconds, so much memory, no files, no network, no processes.

    limits     setrlimit: memory, size of files, core dumps; the parent ends what takes too long
    seccomp    the system refuses all calls but a few (seccomp.py)
    audit      what Python is about to do is refused first, in a sentence with the line (guard.py)

A child answers many requests while each leaves Python as it was (intact.py), and another takes its place if one did
not, or ended. What a program prints is dropped. A child's answer is a header in JSON and arrays, never a pickle. A
program that forges that answer by attacking Python from within is not found out. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import gc
import json
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from . import guard, intact, seccomp

_LONGEST = 1 << 31  # bytes of an answer
_REQUESTS = 1024  # that a child answers at most
Arrays = list[Any]
Work = Callable[..., bytes]


class Stopped(Exception):
    """A program that was ended since it was late, or that ended its process: a sentence."""

    def __init__(self, sentence: str, late: bool = False) -> None:
        super().__init__(sentence)
        self.late = late


# ---- messages ----

def packed(header: dict[str, Any], arrays: Arrays) -> bytes:
    """What a child sends: JSON, then the arrays' bytes, whose formats and shapes it tells."""
    whole = [np.asarray(a, order="C") for a in arrays]
    text = json.dumps(header | {"arrays": [[a.dtype.str, list(a.shape)] for a in whole]}).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *(a.tobytes() for a in whole)])


def _unpacked(data: bytes) -> tuple[dict[str, Any], Arrays]:
    length = struct.unpack_from("<Q", data)[0]
    header, at, arrays = json.loads(data[8:8 + length]), 8 + length, []
    for letters, shape in header.pop("arrays"):
        dtype = np.dtype(letters)
        if dtype.kind not in "fiub":
            raise ValueError(letters)
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(data, dtype, count, at).reshape(shape))
        at += count * dtype.itemsize
    return header, arrays


def _send(descriptor: int, data: bytes) -> None:
    rest = memoryview(struct.pack("<Q", len(data)) + data)
    while rest:
        rest = rest[os.write(descriptor, rest):]


def _exactly(descriptor: int, size: int, until: float | None = None) -> bytes | None:
    """So many bytes; None: not in time, or fewer."""
    parts: list[bytes] = []
    while size:
        if until is not None and not select.select([descriptor], [], [], max(until - time.monotonic(), 0))[0]:
            return None
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _message(descriptor: int, until: float | None = None) -> bytes | None:
    size = _exactly(descriptor, 8, until)
    if size is None or struct.unpack("<Q", size)[0] > _LONGEST:
        return None
    return _exactly(descriptor, struct.unpack("<Q", size)[0], until)


# ---- a child ----

def _pages() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


class _Child:
    """A process that answers with works[name](*arguments)."""

    def __init__(self, works: dict[str, Work], loaded: Sequence[str], filtered: seccomp.Filter | None,
                 most: int) -> None:
        self.loaded, self.most, self.answered = loaded, most, 0
        takes, self.give = os.pipe()
        self.take, gives = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(works, filtered, takes, gives)
        os.close(takes)
        os.close(gives)

    def _run(self, works: dict[str, Work], filtered: seccomp.Filter | None, take: int, give: int) -> NoReturn:
        """Never returns: not by an exception either."""
        try:
            gc.disable()  # it would touch, and so copy, all that is there
            _alone(take, give)
            for limit, value in ((resource.RLIMIT_AS, _pages() + self.most), (resource.RLIMIT_FSIZE, 0),
                                 (resource.RLIMIT_CORE, 0)):
                resource.setrlimit(limit, (value, value))
            sys.addaudithook(guard.GUARD)
            if filtered is not None:
                filtered.load()
            before = intact.Snapshot(self.loaded)
            gc.freeze()
            while True:
                asked = _message(take)
                if asked is None:
                    break
                name, arguments = pickle.loads(asked)
                guard.GUARD.begin()
                data = works[name](*arguments)
                guard.GUARD.end()
                del arguments
                gc.collect()
                clean = not guard.GUARD.said and before.same()
                _send(give, (b"1" if clean else b"0") + data)
        finally:
            os._exit(0)

    def ask(self, asked: bytes, seconds: float) -> bytes:
        """Its answer, or Stopped."""
        self.answered += 1
        try:
            _send(self.give, asked)
        except BrokenPipeError:
            raise Stopped("its process had ended") from None
        until = time.monotonic() + seconds
        data = _message(self.take, until)
        if not data:
            if time.monotonic() >= until:
                raise Stopped(f"it had not ended after {seconds:g} s", late=True)
            raise Stopped("it ended its process before it had an answer")
        return data

    def end(self) -> None:
        os.close(self.give)
        os.close(self.take)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _alone(*kept: int) -> None:
    """No descriptor but these; what is printed goes nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, 4096)


class Sandbox:
    """run(name, arguments, seconds, bytes): what works[name](*arguments) returns in a child, (header, arrays). layers:
    what keeps it there. loaded: the modules that programs find."""

    def __init__(self, works: dict[str, Work], loaded: Sequence[str], allow_none: bool = False) -> None:
        self.works, self.loaded, self.layers = works, loaded, ["limits", "audit"]
        self.filter: seccomp.Filter | None = None
        try:
            self.filter = seccomp.Filter()
            self.layers.append("seccomp")
        except seccomp.Unsafe:
            if not allow_none:
                raise
        self.children: dict[str, _Child] = {}  # by what they do: a kernel's never sees a reference

    def run(self, name: str, arguments: tuple[Any, ...], seconds: float, most: int) -> tuple[dict[str, Any], Arrays]:
        child = self.children.pop(name, None)
        if child is not None and child.most != most:
            child.end()
            child = None
        child = child or _Child(self.works, self.loaded, self.filter, most)
        keep = False
        try:
            data = child.ask(pickle.dumps((name, arguments)), seconds)
            keep = data[:1] == b"1" and child.answered < _REQUESTS
            return _unpacked(data[1:])
        except (ValueError, KeyError, TypeError, AttributeError, struct.error, OverflowError):
            raise Stopped("it ended its process before it had an answer") from None
        finally:
            if keep:
                self.children[name] = child
            else:
                child.end()
