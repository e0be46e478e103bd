"""What an ELF shared object asks of the machine it runs on, read from its own tables; for a wheel's platform tag.

    python3 elf_needs.py FILE...    the libraries it names, the newest glibc it needs, the tag of a wheel of them

DOES: 64-bit little-endian ELF. DOES NOT: follow the libraries that it names. Tags are those of PEP 600.
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import os
import platform
import re
import struct
import sys
from collections.abc import Iterator, Sequence

# What PEP 600 lets an object name: parts of glibc, which its versions of symbols speak for.
GLIBC = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.[0-9]+|ld-linux[a-z0-9-]*\.so\.[0-9]+)")
_VERNEED, _DYNAMIC, _NEEDED = 0x6FFFFFFE, 6, 1
_RELR = {"GLIBC_ABI_DT_RELR": (2, 36)}  # the linker's mark for packed relocations


class Unreadable(ValueError):
    """The file is no ELF object that this reads."""


def _text(data: bytes, at: int) -> str:
    return data[at:data.index(b"\0", at)].decode("ascii")


def _sections(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(type, offset, size, link) of each section."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise Unreadable("not a 64-bit little-endian ELF file")
    start, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for i in range(count):
        kind, _flags, _address, offset, length, link = struct.unpack_from("<IQQQQI", data, start + i * size + 4)
        yield kind, offset, length, link


def _versions(data: bytes, at: int, texts: int) -> Iterator[tuple[str, str]]:
    """(library, version) of each symbol version that section .gnu.version_r asks for."""
    while True:
        _v, count, file, first, following = struct.unpack_from("<HHIII", data, at)
        entry = at + first
        for _ in range(count):
            _hash, _flags, _other, name, step = struct.unpack_from("<IHHII", data, entry)
            yield _text(data, texts + file), _text(data, texts + name)
            entry += step
        if not following:
            return
        at += following


def needs(path: str | os.PathLike[str]) -> tuple[list[str], dict[str, set[str]]]:
    """(libraries, versions): names of shared objects, and sets of symbol versions by such names."""
    with open(path, "rb") as file:
        data = file.read()
    libraries: list[str] = []
    versions: dict[str, set[str]] = {}
    try:
        sections = list(_sections(data))
        for kind, offset, length, link in sections:
            texts = sections[link][1]
            if kind == _DYNAMIC:
                pairs = (struct.unpack_from("<QQ", data, at) for at in range(offset, offset + length, 16))
                libraries += [_text(data, texts + value) for tag, value in pairs if tag == _NEEDED]
            elif kind == _VERNEED and length:
                for library, version in _versions(data, offset, texts):
                    versions.setdefault(library, set()).add(version)
    except (struct.error, IndexError, ValueError) as trouble:
        raise Unreadable(f"{path}: {trouble}") from None
    return libraries, versions


def _number(version: str) -> tuple[int, int] | None:
    """(2, 34) of "GLIBC_2.34"; None of what is no such version."""
    match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
    return (int(match[1]), int(match[2])) if match else _RELR.get(version)


def glibc(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """The oldest glibc, as (2, 14), that has all this object needs; None if it needs more than glibc."""
    libraries, versions = needs(path)
    if not all(GLIBC.fullmatch(library) for library in libraries):
        return None
    asked = [_number(version) for of in versions.values() for version in of]
    known = [number for number in asked if number is not None]
    return max(known, default=(2, 5)) if len(known) == len(asked) else None


def tag(paths: Sequence[str | os.PathLike[str]], machine: str) -> str:
    """A wheel's platform: manylinux_X_Y_MACHINE where glibc is all that its objects need, else linux_MACHINE."""
    most = (2, 5) if machine == "x86_64" else (2, 17)  # the oldest that pip knows of
    for path in paths:
        try:
            asked = glibc(path)
        except Unreadable:
            asked = None
        if asked is None:
            return f"linux_{machine}"
        most = max(most, asked)
    return f"manylinux_{most[0]}_{most[1]}_{machine}" if platform.libc_ver()[0] == "glibc" else f"linux_{machine}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            oldest = glibc(name)
            print(name, *needs(name)[0], f"glibc {oldest[0]}.{oldest[1]}" if oldest else "more than glibc")
        except (OSError, Unreadable) as wrong:
            raise SystemExit(f"elf_needs: {wrong}") from None
    print(tag(sys.argv[1:], platform.machine()))
