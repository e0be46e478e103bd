#!/usr/bin/env python3
"""Whether each header includes what it uses, whoever is included first; and whether a kernel's name is its alone.

includes.py FOLDER reads every header of FOLDER as text, in the order in which a compiler that is given this header alone
would. A line of its output is HEADER: NAME is of OTHER: a name of ours that no text before it defines, or that is a
kernel here and something else there. What macros paste together it does not know. simd/ is empty alone: its texts are
read where a room includes them.
"""

import os
import re
import sys

NAME = re.compile(r"\b(?:trni?|TRNI?)_\w+")
SILENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
# How a name comes to be: each with the name as its group.
DEFINITIONS = [re.compile(pattern, re.M) for pattern in (
    r"\b(?:struct|union|enum)\s+(\w+)",  # or it is only declared, which is enough
    r"^\}\s*(\w+);",
    r"^typedef\b[^;{]*?(\w+);",
    r"^typedef\b[^;{(]*?(\w+)\(",
    r"^typedef\b[^;{]*\(\*(\w+)\)\(",
    r"^[A-Z_0-9]+\((\w+)",  # kernels that a macro makes, by their first argument
    r"^(?!typedef\b)[A-Za-z_][\w *]*?(\w+) ?[(\[]",  # functions and tables, at the margin
)]
DISPATCH = re.compile(r"^TRNI_DISPATCH\w*\((\w+)", re.M)
ENUM = re.compile(r"\benum\b[^{;()]*\{([^}]*)\}")
ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


class Header:
    """A header's text as events in its order: what it includes, defines and uses."""

    def __init__(self, folder, path):
        with open(os.path.join(folder, path), encoding="utf-8") as file:
            text = file.read()
        here = os.path.dirname(path)
        self.events = [(m.start(), "include", os.path.normpath(os.path.join(here, m.group(1))))
                       for m in INCLUDE.finditer(text)]
        text = SILENT.sub(blank, text)
        self.defines = {}
        self.define(MACRO, text)
        code = DIRECTIVE.sub(blank, text)
        for pattern in DEFINITIONS:
            self.define(pattern, code)
        self.kernels = {kernel.group(1): kernel.start(1) for kernel in DISPATCH.finditer(code)}
        for kernel, at in self.kernels.items():
            self.defines.setdefault(kernel + "_for", at)
        for enum in ENUM.finditer(code):
            self.define(ENUMERATOR, enum.group(1), enum.start(1))
        self.events += [(at, "define", name) for name, at in self.defines.items()]
        self.events += [(m.start(), "use", m.group()) for m in NAME.finditer(code) if m.group() not in self.defines]
        self.events.sort()

    def define(self, pattern, text, offset=0):
        for match in pattern.finditer(text):
            self.defines.setdefault(match.group(1), offset + match.start(1))


def unknown(path, headers):
    """The names that this header, included first, uses before anything has defined them."""
    known, seen = set(), {path}

    def enter(header):
        for _, kind, what in header.events:
            if kind == "define":
                known.add(what)
            elif kind == "include" and what in headers and what not in seen:
                seen.add(what)
                enter(headers[what])
            elif kind == "use" and header is headers[path] and what not in known:
                missing.append(what)

    missing = []
    enter(headers[path])
    return sorted(set(missing))


def main():
    folder = sys.argv[1]
    paths = sorted(os.path.relpath(os.path.join(base, file), folder)
                   for base, _, files in os.walk(folder) if "forward" not in base.split(os.sep)
                   for file in files if file.endswith(".h"))
    headers = {path: Header(folder, path) for path in paths}
    homes = {}
    for path in paths:
        for name in headers[path].defines:
            homes.setdefault(name, []).append(path)
    for path in paths:
        if path.startswith("simd/"):
            continue
        taken = [name for name in headers[path].kernels if homes[name] != [path]]
        for name in taken + [name for name in unknown(path, headers) if name in homes]:
            print(f"{path}: {name} is of {' or '.join(home for home in homes[name] if home != path)}")


if __name__ == "__main__":
    main()
