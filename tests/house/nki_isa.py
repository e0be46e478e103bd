#!/usr/bin/env python3
"""The table of every instruction of nki.isa in trnmath/engines.md, made from tests/published/nki_isa_0_6_0.txt.

    tests/house/nki_isa.py          says what differs, and whether every argument is answered: status 1 if something is
    tests/house/nki_isa.py --write  puts the tables into the page, and into what Python's module reads

Every call of NKI 0.6.0 has a row; each of its arguments is a field of the instruction's args, or has an answer in the
file; and the front door for Python has the same arguments in the same order.
"""
import ast
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "trnmath/engines.md"
FRONT = ROOT / "examples/python/src/nki/isa.py"
FLAT = ROOT / "examples/python/ext/flat_instructions.h"
STRUCTS = {"activation_reduce": "trn_activation_args", "core_barrier": "trn_cores_barrier_args",
           "sendrecv": "trn_cores_sendrecv_args"}


def read():
    rows, calls, answers = [], {}, {}
    for line in (ROOT / "tests/published/nki_isa_0_6_0.txt").read_text(encoding="utf-8").splitlines():
        kind, _, rest = line.partition(" | ")
        parts = [part.strip() for part in rest.split(" | ")]
        if kind == "row":
            rows.append(parts + [""] * (5 - len(parts)))
        elif kind.startswith("call"):
            calls[parts[0]] = [a.strip() for a in parts[1].split(",")] if len(parts) > 1 and parts[1] else []
        elif kind == "answer":
            for argument in parts[1].split(","):
                answers[parts[0], argument.strip()] = parts[2]
    return rows, calls, answers


def fields(struct):
    """Names of the fields of an args struct; None where there is none."""
    for header in sorted((ROOT / "trnmath").rglob("*.h")):
        found = re.search(r"typedef struct %s \{(.*?)\n\} %s;" % (struct, struct), header.read_text(encoding="utf-8"),
                          re.S)
        if found:
            body = re.sub(r"/\*.*?\*/", "", found.group(1), flags=re.S)
            names = set(re.findall(r"\b([a-z_][a-z_0-9]*)\s*(?:\[[^\]]*\])?\s*[,;]", body))
            return names | ({"engine"} if "TRN_INSTRUCTION_FIELDS" in body else set())
    return None


def unanswered(calls, answers):
    for name, arguments in calls.items():
        have = fields(STRUCTS.get(name, f"trn_{name}_args")) or set()
        for argument in (a.split("=")[0] for a in arguments):
            if argument not in have and argument + "_tile" not in have and not (
                    {(name, argument), ("every", argument)} & set(answers)):
                yield f"{name}: no field and no answer for its argument {argument}"


def front(calls):
    functions = {f.name: [a.arg for a in f.args.args] for f in ast.parse(FRONT.read_text(encoding="utf-8")).body
                 if isinstance(f, ast.FunctionDef)}
    for name, arguments in calls.items():
        want = [a.split("=")[0] for a in arguments]
        if functions.get(name) != want:
            yield f"examples/python/src/nki/isa.py: {name} takes {functions.get(name)}, NKI 0.6.0 {want}"


def rowless(rows, calls):
    named = {n for row in rows for n in re.findall(r"`([a-z_0-9]+)`", row[0])}
    for name in calls:
        if name not in named:
            yield f"{name} has no row"


def tables(rows, calls, answers):
    first = ["| instruction | engine | Trainium | numerics | cost |", "|---|---|---|---|---|"]
    first += ["| " + " | ".join(row) + " |" for row in rows]
    second = ["| instruction | arguments, as in NKI 0.6.0 | those that no field of the same name answers |", "|---|---|---|"]
    for name, arguments in calls.items():
        given = [a.split("=")[0] for a in arguments if a.split("=")[0] != "name"]
        others = [f"{a}: {answers[name, a]}" for a in given if (name, a) in answers]
        second.append(f"| `{name}` | {', '.join(given)} | {'; '.join(others)} |")
    return {"rows": "\n".join(first), "arguments": "\n".join(second)}


def put(page, made):
    for name, text in made.items():
        begin, end = f"<!-- {name}: made by tests/house/nki_isa.py -->\n", f"\n<!-- end of {name} -->"
        i, j = page.index(begin) + len(begin), page.index(end)
        page = page[:i] + text + page[j:]
    return page


def cells(rows, calls):
    """name, arguments, engine, generations, numerics, cost of each call; its row is the first that names it."""
    for name, arguments in calls.items():
        row = next(row for row in rows if name in re.findall(r"`([a-z_0-9]+)`", row[0]))
        yield [name, ", ".join(a for a in arguments if not a.startswith("name="))] + [c.replace("`", "") for c in row[1:5]]


def literals(row):
    """The strings of a row of C, in lines that are not too long."""
    words = []
    for cell in row:
        pieces = textwrap.wrap(cell, 90, drop_whitespace=False, break_on_hyphens=False) or [""]
        words += ['"' + piece.replace("\\", "\\\\").replace('"', '\\"') + '"' for piece in pieces]
        words[-1] += ","
    line = "    {"
    for word in words:
        if len(line) + len(word) > 115:
            yield line
            line = "     "
        line += " " + word
    yield line[:-1] + " },"


def flat(rows, calls):
    made = ["/* flat_instructions.h - every call of nki.isa, NKI 0.6.0, as text.",
            " * Part of trnmath_flat.c. SPDX-License-Identifier: MIT",
            " *",
            " * Made by tests/house/nki_isa.py from tests/published/nki_isa_0_6_0.txt. Numerics and cost: d documented,",
            " * m measured, a assumed, as trnmath/engines.md explains.",
            " */",
            "#ifndef TRNMATH_FLAT_INSTRUCTIONS_H",
            "#define TRNMATH_FLAT_INSTRUCTIONS_H",
            "",
            "enum { FLAT_INSTRUCTION_CELLS = 6 }; /* name, arguments, engine, generations, numerics, cost */",
            "",
            "/* clang-format off */",
            "static const char *const flat_instruction[][FLAT_INSTRUCTION_CELLS] = {"]
    for row in cells(rows, calls):
        made += literals(row)
    made += ["};", "/* clang-format on */", "", "#endif /* TRNMATH_FLAT_INSTRUCTIONS_H */"]
    return "\n".join(made) + "\n"


def main():
    rows, calls, answers = read()
    page = PAGE.read_text(encoding="utf-8")
    made = put(page, tables(rows, calls, answers))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
        FLAT.write_text(flat(rows, calls), encoding="utf-8")
        return 0
    wrong = list(unanswered(calls, answers)) + list(front(calls)) + list(rowless(rows, calls))
    if made != page:
        wrong.append("trnmath/engines.md is not what tests/house/nki_isa.py --write makes of the file")
    if not FLAT.is_file() or FLAT.read_text(encoding="utf-8") != flat(rows, calls):
        wrong.append(f"{FLAT.relative_to(ROOT)} is not what tests/house/nki_isa.py --write makes of the file")
    for sentence in wrong:
        print(f"FAIL {sentence}")
    print(f"nki_isa: {len(calls)} calls of NKI 0.6.0, {sum(map(len, calls.values()))} arguments, {len(wrong)} not answered")
    return 1 if wrong or len(calls) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
