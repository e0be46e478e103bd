#!/usr/bin/env python3
"""Makes one header of all headers of trnmath, or of one header and what it needs:

    python3 scripts/amalgamate.py --output trnmath.h
    python3 scripts/amalgamate.py --only trn_convert.h --output trn_convert.h
    python3 scripts/amalgamate.py --modules DIRECTORY

The last makes the whole and the popular parts, each a file of its own: formats, conversions, products, activation
functions, structured sparsity, collectives.

The result is what a compiler would read: each header where it is first included, once; texts that are read once per
instruction set, as often as they are read. System headers, conditions and include guards stay, so all switches work
(TRN_USE_MPI, TRN_USE_SLEEF, TRN_NO_INTRINSICS, ...), and so does a program that also includes single headers of the
same version; compilers name the single headers, by #line. The same sources give the same file. Only the standard
library is used.
"""
import argparse
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "trnmath"
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")


# What every header has at both ends stands there once.
WORDS = ("base/words_begin.h", "base/words_end.h")

MODULES = ["trnmath.h", "trn_format.h", "trn_convert.h", "trn_matmul.h", "trn_scalar_engine.h", "trn_sparse.h",
           "trn_collective.h"]


class Trouble(Exception):
    """One sentence for the user."""


def guard_of(name):
    """The macro that says that this header has been read."""
    stem = re.sub(r"[/.]", "_", name).upper()
    return f"TRNI_{stem}" if "/" in name else stem if stem.startswith("TRN_") else f"TRN_{stem}"


class Amalgam:
    def __init__(self, line_directives):
        self.line_directives = line_directives
        self.out = []        # lines
        self.parts = []      # files, in the order of their first appearance
        self.open = []       # files that include each other just now
        self.conditions = []  # of the preprocessor, around what is being read; include guards do not count
        self.seen = {}       # file -> the sets of conditions under which it stands above

    def mark(self, line, name, text):
        """Says where the next line comes from."""
        self.out.append(f'#line {line} "trnmath/{name}"' if self.line_directives else f"/* {text} trnmath/{name} */")

    def condition(self, word, text, guard):
        """Follows #if ... #endif. The guard of a header is no condition: what it holds is read once in any case."""
        if word in ("if", "ifdef", "ifndef"):
            own = word == "ifndef" and text == guard
            self.conditions.append(None if own else f"{word} {text}")
        elif not self.conditions:
            raise Trouble(f"trnmath/{self.open[-1]}: #{word} without #if")
        elif word == "endif":
            self.conditions.pop()
        else:
            self.conditions[-1] = f"{self.conditions[-1]}; {word} {text}"

    def held(self):
        return tuple(c for c in self.conditions if c is not None)

    def wanted(self, name, text):
        """Is this file to stand here? Not when it is around us, or above us under no condition that is unknown here."""
        if guard_of(name) not in text:
            return True  # read once per instruction set
        here = self.held()
        return name not in self.open and not any(here[:len(c)] == c for c in self.seen.get(name, []))

    def whole(self, top):
        """A header and what it needs, between the words that are put aside and brought back."""
        begin, end = WORDS
        for name in (begin, top, end):
            self.include(name)

    def include(self, name):
        if name in WORDS and self.open:
            return
        path = SOURCE / name
        if not path.is_file():
            by = f"trnmath/{self.open[-1]} includes {name}" if self.open else name
            raise Trouble(f"{by}: there is no such file in {SOURCE}")
        text = path.read_text(encoding="utf-8")
        if not self.wanted(name, text):
            self.out.append(f"/* trnmath/{name} stands above */")
            return
        if len(self.open) > 60:
            raise Trouble(f"trnmath/{name} includes itself")
        if name not in self.parts:
            self.parts.append(name)
        self.seen.setdefault(name, []).append(self.held())
        self.open.append(name)
        self.mark(1, name, "from")
        self.read(name, text.splitlines())
        self.open.pop()
        if self.open and not self.line_directives:
            self.mark(0, self.open[-1], "back in")

    def read(self, name, lines):
        level = len(self.conditions)
        guard = guard_of(name)
        number = 0
        while number < len(lines):
            line = lines[number]
            number += 1
            found = INCLUDE.match(line)
            if found:
                self.include(os.path.normpath(os.path.join(os.path.dirname(name), found[1])))
                if self.line_directives:
                    self.mark(number + 1, name, "")
                continue
            self.out.append(line)
            while line.endswith("\\") and number < len(lines):  # one logical line
                line = line[:-1] + lines[number]
                self.out.append(lines[number])
                number += 1
            found = DIRECTIVE.match(line)
            if found:
                self.condition(found[1], re.sub(r"\s*/\*.*?\*/\s*", "", found[2]).strip(), guard)
        if len(self.conditions) != level:
            raise Trouble(f"trnmath/{name}: #if and #endif do not pair")


def version_of():
    base = (SOURCE / "base" / "base.h").read_text(encoding="utf-8")
    return [re.search(rf"^#define TRN_VERSION_{part} (\d+)$", base, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH")]


def opening(top, output, parts):
    """What the file is, its licence, and a guard against two versions in one program's file."""
    major, minor, patch = version = version_of()
    all_of = "all of trnmath" if top == "trnmath.h" else f"trnmath's {top} and what it needs"
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8").strip().splitlines()
    what = f"{all_of} in one file, version {'.'.join(version)}: {len(parts)} headers"
    head = [f"/* {output} - {what}. Made by amalgamate.py.",
            " * SPDX-License-Identifier: MIT", " *", f' *     #include "{output}"        cc -O2 app.c -lm', " *"]
    head += [f" * {line}".rstrip() for line in licence]
    head += [" */",
             f"#if defined(TRN_VERSION_MAJOR) && \\",
             f"    (TRN_VERSION_MAJOR != {major} || TRN_VERSION_MINOR != {minor} || TRN_VERSION_PATCH != {patch})",
             f'#error "this is trnmath {".".join(version)}, and headers of another version were included before it"',
             "#endif", ""]
    return head


def amalgamate(top, output, line_directives):
    if "/" in top or not (SOURCE / top).is_file():
        raise Trouble(f"--only {top}: there is no such header in {SOURCE}")
    amalgam = Amalgam(line_directives)
    amalgam.whole(top)
    return "\n".join(opening(top, output, amalgam.parts) + amalgam.out) + "\n", amalgam.parts


def write(path, text):
    """All of it or nothing: under a temporary name first."""
    try:
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as trouble:
        raise Trouble(f"--output {path}: {trouble.strerror}") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", metavar="FILE", default="-", help="where to; standard output unless given")
    parser.add_argument("--only", metavar="HEADER", default="trnmath.h", help="this header and what it needs, not all")
    parser.add_argument("--modules", metavar="DIRECTORY", help="all of them and the popular ones, each into a file there")
    parser.add_argument("--marks", action="store_true", help="comments instead of #line directives between the parts: "
                        "compilers then name lines of the one file, and gcc -Wall takes two seconds more")
    parser.add_argument("--list", action="store_true", help="print the names of the parts, in order, and nothing else")
    options = parser.parse_args()
    name = options.only if options.output == "-" else Path(options.output).name
    try:
        if options.modules:
            for module in MODULES:
                text, parts = amalgamate(module, module, not options.marks)
                write(Path(options.modules) / module, text)
                print(f"{module}: {len(parts)} headers, {text.count(chr(10)):,} lines", file=sys.stderr)
            return 0
        text, parts = amalgamate(options.only, name, not options.marks)
        if options.list:
            print("\n".join(parts))
        elif options.output == "-":
            sys.stdout.write(text)
        else:
            write(Path(options.output), text)
            print(f"{options.output}: {len(parts)} headers, {text.count(chr(10)):,} lines", file=sys.stderr)
    except Trouble as trouble:
        print(f"amalgamate.py: {trouble}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
