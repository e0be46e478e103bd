"""Requests by the line: read, checked, answered by one of some processes, and remembered.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import collections
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from . import schema
from .answers import Answer, refused
from .schema import Malformed

LONGEST = 1 << 24  # bytes of a request
_LONGEST_TEXT = 1 << 20  # characters of a program, in a file as in the schema
_REMEMBERED = 4096  # answers


# ---- a request ----

def parsed(line: bytes) -> dict[str, Any]:
    """A request, or Malformed."""
    if len(line) > LONGEST:
        raise Malformed(f"a request has at most {LONGEST} bytes")
    try:
        request = json.loads(line.decode())
    except (ValueError, RecursionError) as trouble:
        raise Malformed(f"a line is no JSON: {trouble}".split("\n")[0]) from None
    if not isinstance(request, dict):
        raise Malformed(f"a request is an object, and not {type(request).__name__}")
    schema.checked(request)
    return request


def read(request: dict[str, Any]) -> dict[str, Any]:
    """The request with the texts of its files, names for what has none, and what tells its other files apart."""
    made = dict(request)
    programs = made.get("variants", [made])
    if "variants" in made and ("source" in made or "file" in made):
        raise Malformed("a request has variants, or one source or file")
    if "variants" in made:
        made["variants"] = programs = [dict(p) for p in programs]
    if "reference" in made:
        made["reference"] = dict(made["reference"])
    for n, said in enumerate(programs):
        where = "the request" if said is made else f"variant {n}"
        said["called"] = said.get("name", str(n))
        _with_text(said, "kernel.py", where)
        if said is not made:
            said.setdefault("entry", made.get("entry"))
            if said["entry"] is None:
                del said["entry"]
    if "reference" in made:
        _with_text(made["reference"], "reference.py", "the reference")
    made.setdefault("arguments", [])
    made["files"] = [[path, *_stamp(path)] for path in _paths(made["arguments"])]
    return made


def _with_text(said: dict[str, Any], name: str, where: str) -> None:
    if ("source" in said) == ("file" in said):
        both = "both 'source' and" if "source" in said else "neither 'source' nor"
        raise Malformed(f"{where} has {both} 'file'")
    path = said.pop("file", None)
    said["name"] = os.path.basename(path) if path else name
    if path is None:
        return
    try:
        with open(path, encoding="utf-8") as file:
            said["source"] = file.read(_LONGEST_TEXT + 1)
    except (OSError, ValueError) as trouble:
        raise Malformed(f"{path}: {getattr(trouble, 'strerror', None) or 'it is no text'}") from None
    if len(said["source"]) > _LONGEST_TEXT:
        raise Malformed(f"{path}: a program has at most {_LONGEST_TEXT} characters")


def _paths(arguments: Any) -> list[str]:
    if isinstance(arguments, list):
        return [path for a in arguments for path in _paths(a)]
    return [arguments["npy"]] if isinstance(arguments, dict) and "npy" in arguments else []


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return 0, 0
    return found.st_mtime_ns, found.st_size


def key_of(request: dict[str, Any]) -> str:
    """What tells it from others."""
    text = json.dumps({k: v for k, v in request.items() if k != "id"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# ---- processes ----

class _Worker:
    """A process of python -m nki.oracle --worker: a line in, a line out."""

    def __init__(self, options: list[str]) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "nki.oracle", "--worker", *options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line: bytes) -> bytes:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


class Pool:
    """answer(line): by a worker that is free. Answers are remembered by what the request says."""

    def __init__(self, workers: int, options: list[str]) -> None:
        self.options, self.size = options, workers
        self.idle: queue.Queue[_Worker] = queue.Queue()
        self.known: collections.OrderedDict[str, Answer] = collections.OrderedDict()
        self.lock = threading.Lock()
        for _ in range(workers):
            self.idle.put(_Worker(options))

    def answer(self, line: bytes) -> str:
        """One line of JSON, whatever the request is."""
        made = self.asked(line)
        return json.dumps(made, allow_nan=False)

    def asked(self, line: bytes) -> Answer:
        name: Any = None
        try:
            request = parsed(line)
            name = request.get("id")
            request = read(request)
        except Malformed as trouble:
            return {"id": _id(line) if name is None else name} | refused(str(trouble), "request")
        key = key_of(request)
        return {"id": name} | (self._known(key) or self._work(key, json.dumps(request).encode()))

    def _known(self, key: str) -> Answer | None:
        with self.lock:
            known = self.known.get(key)
        return None if known is None else known | {"cached": True}

    def _keep(self, key: str, made: Answer) -> None:
        with self.lock:
            self.known[key] = made
            while len(self.known) > _REMEMBERED:
                self.known.popitem(last=False)

    def _work(self, key: str, line: bytes) -> Answer:
        worker = self.idle.get()
        try:
            known = self._known(key)  # while this one waited another may have answered the same
            if known is not None:
                return known
            said = worker.ask(line)
            if not said:
                raise BrokenPipeError
            made: Answer = json.loads(said)
            if made.pop("lasting", False):
                self._keep(key, made)
            return made
        except OSError:
            worker.end()
            worker = _Worker(self.options)
            return refused("the process that answered ended", "oracle")
        finally:
            self.idle.put(worker)

    def end(self) -> None:
        while not self.idle.empty():
            self.idle.get().end()


def _id(line: bytes) -> Any:
    """The id of a request that is none, if it can be read."""
    try:
        found = json.loads(line)["id"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return found if isinstance(found, (str, int, float)) and not isinstance(found, bool) else None


# ---- lines ----

def serve(lines: Iterable[bytes], write: Callable[[str], None], pool: Pool) -> None:
    """Answers in the order of the requests, some of which are worked on at once."""
    waiting: queue.Queue[Future[str] | None] = queue.Queue(4 * pool.size)

    def tell() -> None:
        while True:
            future = waiting.get()
            if future is None:
                return
            write(future.result() + "\n")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    with ThreadPoolExecutor(pool.size + 1) as at_once:
        for line in lines:
            if line.strip():
                waiting.put(at_once.submit(pool.answer, line))
        waiting.put(None)
        teller.join()


def lines_of(file: Any) -> Iterable[bytes]:
    """Its lines; of a longer one as much as tells that it is too long."""
    while True:
        line = file.readline(LONGEST + 2)
        if not line:
            return
        if len(line) > LONGEST and not line.endswith(b"\n"):
            while True:
                more = file.readline(1 << 20)
                if not more or more.endswith(b"\n"):
                    break
        yield line
