"""The table of who differs where: from what check.c and check.py counted of each peer, printed as Markdown.

    python3 differences.py FOLDER       which run.sh filled: N.name, N.strict and N.any of peer N
"""
import csv
import glob
import os
import sys

GROUPS = [  # the first whose words are all in a file's name
    ("casts to integers", ("cast/int",)), ("casts to integers", ("cast/uint",)),
    ("casts, saturating", ("cast/", ".saturate")), ("casts, stochastic", ("cast/", ".stochastic")),
    ("casts, nearest even", ("cast/", ".nearest_even")), ("casts, toward zero", ("cast/", ".toward_zero")),
    ("decodes", ("decode/",)), ("MX, quantise", ("mx/quantize",)), ("MX, dequantise", ("mx/dequantize",)),
    ("dot products", ("dot/",)), ("operators", ("operator/",)), ("functions", ("function/",)),
    ("rings", ("collective/",)), ("random words", ("random/",)),
]


def group_of(name):
    return next(group for group, words in GROUPS if all(word in name for word in words))


def counts(path):
    """group -> files, asked, wrong, and of each case asked and wrong."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            asked, wrong = int(row["asked"]), int(row["wrong"])
            group = found.setdefault(group_of(row["file"]), {"files": set(), "asked": 0, "wrong": 0, "cases": {}})
            group["files"].add(row["file"])
            group["asked"] += asked
            group["wrong"] += wrong
            case = group["cases"].setdefault(row["case"], [0, 0])
            case[0] += asked
            case[1] += wrong
    return found


def rows(path):
    with open(path + ".name", encoding="utf-8") as file:
        name, version = file.read().splitlines()[:2]
    strict, any_nan = counts(path + ".strict"), counts(path + ".any")
    for group in dict.fromkeys(group for group, _ in GROUPS):
        if group not in strict:
            continue
        other = any_nan[group]
        where = "; ".join(f"{wrong:,} of {asked:,} {case}" for case, (asked, wrong) in other["cases"].items() if wrong)
        yield (f"{name} ({version})", group, str(len(other["files"])), f"{other['asked']:,}",
               f"{strict[group]['wrong'] - other['wrong']:,}", f"{other['wrong']:,}", where or "-")


def main():
    print("| who (version or commit) | vectors | files | asked | NaN with other bits | other results | of which |")
    print("|---|---|---|---|---|---|---|")
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.name"))):
        for row in rows(path[:-5]):
            print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
