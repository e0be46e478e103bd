"""What Python itself refuses a program, before the system does: in a sentence, by its audit events.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import errno
import sys
import types
from typing import Any

_REFUSED = ("open", "os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pty.", "fcntl.", "ftplib.", "urllib.",
            "http.",
            "mmap.", "tempfile.", "glob.", "sqlite3.", "signal.", "resource.", "syslog.", "webbrowser.", "smtplib.",
            "cpython.", "sys.setprofile", "sys.settrace", "gc.", "code.__new__", "marshal.")
_OURSELVES = ("importlib", "linecache", "tokenize", "traceback", "inspect", "genericpath", "posixpath")
_WORDS = {"open": "open", "os.system": "run", "subprocess.Popen": "run", "socket.connect": "connect to"}


def _asking(frame: types.FrameType | None) -> str:
    """The module that asks, beyond ctypes' own."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("ctypes"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")) if frame is not None else ""


def _line(frame: types.FrameType | None) -> int:
    """Of the program's, whose modules are called so (program.py)."""
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith("kernel_"):
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


class Guard:
    """Refuses what a program may not do, and remembers the first sentence: the program may catch the exception."""

    def __init__(self) -> None:
        self.on, self.said, self.line = False, "", 0

    def begin(self) -> None:
        self.on, self.said, self.line = True, "", 0

    def end(self) -> None:
        self.on = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on or not event.startswith(_REFUSED) or event in ("os.putenv", "gc.get_objects"):
            return
        module = _asking(sys._getframe(1))
        if module.partition(".")[0] == "trnmath":
            return
        if module.startswith(_OURSELVES):
            raise PermissionError(errno.EPERM, "the sandbox has no files")
        what = next((repr(a) for a in arguments if isinstance(a, (str, bytes))), "")
        said = f"the program may not {_WORDS.get(event, 'call ' + event)} {what}".strip()
        if not self.said:
            self.said, self.line = f"{said} in the sandbox", _line(sys._getframe(1))
        raise PermissionError(errno.EPERM, self.said)


GUARD = Guard()
