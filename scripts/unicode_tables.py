#!/usr/bin/env python3
"""Makes examples/tools/common/io/unicode_data.h: the classes of all characters, and what NFC composes. Run by hand:

    python3 scripts/unicode_tables.py > examples/tools/common/io/unicode_data.h

Only the standard library is used: unicodedata, in the version of Unicode that this Python has (3.11: 14.0.0), which the
file names. tests/unit/test_tokenizer.c checks that the committed file is what this makes, where the version is the same.
"""
import sys
import unicodedata

CLASSES = ["Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "P", "S", "Z", "C"]
ALTERNATING = len(CLASSES)  # Lu, Ll, Lu, Ll, ...: scripts with capitals are written down in pairs
HANGUL = range(0xac00, 0xd7a4)  # composed by arithmetic
LAST = 0x110000


def class_of(code):
    name = unicodedata.category(chr(code))
    return CLASSES.index(name if name[0] == "L" else name[0])


def classes():
    """(first code, class), each up to the next one's first."""
    upper, lower = CLASSES.index("Lu"), CLASSES.index("Ll")
    code, runs = 0, []
    while code < LAST:
        end = code
        while end + 1 < LAST and class_of(end) == upper and class_of(end + 1) == lower:
            end += 2
        if end - code >= 4:
            runs.append((code, ALTERNATING))
        else:
            end, kind = code, class_of(code)
            while end < LAST and class_of(end) == kind:
                end += 1
            # The last capital of a run may begin a row of pairs.
            if kind == upper and end - code > 1 and end < LAST and class_of(end) == lower:
                end -= 1
            runs.append((code, kind))
        code = end
    return runs


def combining():
    """(first code, canonical combining class), each up to the next one's first."""
    runs = []
    for code in range(LAST):
        kind = unicodedata.combining(chr(code))
        if not runs or runs[-1][1] != kind:
            runs.append((code, kind))
    return runs


def decompositions():
    """(code, first, second or 0, whether NFC composes the two to the code)."""
    rows = []
    for code in range(LAST):
        parts = unicodedata.decomposition(chr(code)).split()
        if code in HANGUL or not parts or parts[0][0] == "<":
            continue
        pair = [int(p, 16) for p in parts] + [0] * (2 - len(parts))
        composed = len(parts) == 2 and unicodedata.normalize("NFC", chr(pair[0]) + chr(pair[1])) == chr(code)
        rows.append((code, pair[0], pair[1], composed))
    return rows


def print_list(kind, name, items):
    print(f"\nstatic const {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 120:
            print(line)
            line = "   "
        line += f" {item},"
    print(line)
    print("};")


def main():
    names = ", ".join(CLASSES)
    print(f"""/* unicode_data.h - classes of characters and what NFC composes: made by scripts/unicode_tables.py, not by hand.
 * SPDX-License-Identifier: MIT
 *
 * From Python's unicodedata, Unicode {unicodedata.unidata_version}. unicode.h reads it.
 *
 *     uc_classes         first code << 4 | class, up to the next one's; classes: {names},
 *                        and after them pairs, a capital and its small letter, from the first code on
 *     uc_combining       first code << 8 | canonical combining class, likewise
 *     uc_decompositions  a character, and the one or two that it is made of (canonically, one step); Hangul is computed
 *     uc_compositions    rows of uc_decompositions that NFC composes, in the order of their two parts
 */
#ifndef UNICODE_DATA_H
#define UNICODE_DATA_H

#include <stdint.h>

#define UC_VERSION "{unicodedata.unidata_version}"

typedef struct uc_made {{
    uint32_t code, first, second; /* second 0: one character stands for another */
}} uc_made;""")
    print_list("uint32_t", "uc_classes", [f"{code << 4 | kind:#x}" for code, kind in classes()])
    print_list("uint32_t", "uc_combining", [f"{code << 8 | kind:#x}" for code, kind in combining()])
    rows = decompositions()
    print_list("uc_made", "uc_decompositions", [f"{{ {a:#x}, {b:#x}, {c:#x} }}" for a, b, c, _ in rows])
    pairs = sorted((b, c, i) for i, (_, b, c, composed) in enumerate(rows) if composed)
    print_list("uint16_t", "uc_compositions", [str(i) for _, _, i in pairs])
    print("\n#endif /* UNICODE_DATA_H */")


if __name__ == "__main__":
    sys.exit(main())
