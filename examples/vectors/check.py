"""Holds an implementation of Trainium's and OCP's arithmetic against trnmath-vectors. One file; it needs NumPy only.

    python3 check.py FOLDER                     what NumPy itself has: float16, and float32's operators
    python3 check.py --with mine.py FOLDER      your own

mine.py has an object `operations`, or functions of its own, with the names of operations:

    def encode(file, x, random=None):           # columns of all vectors of a file, as arrays of uint64
        if file.head["to"] != "bfloat16" or file.head["rounding"] != "nearest_even":
            return None                         # not mine: the file is skipped
        return my_bfloat16(x.astype(np.uint32))

A function gets the file, whose head says what is asked, and the columns that its line "in" names, each [vectors] or
[vectors, count]. It returns the column that "out" names, or a tuple of them, or None. A masked array skips vectors.
`run(folder, operations)` does the same from Python.

Exit status: 0 all right, 1 something is wrong, 2 bad usage, a bad file, or nothing was checked.
"""
import argparse
import hashlib
import importlib.util
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

Column = Tuple[str, int, int]  # name, words, digits of a word


class BadFile(Exception):
    """One sentence that names the file."""


# ---- reading ----

@dataclass
class File:
    path: str
    head: Dict[str, str]
    inputs: List[Column]
    outputs: List[Column]
    words: np.ndarray  # [vectors, words that go in, then those that come out] uint64
    lines: List[int]
    case: List[str]

    def columns(self, side: List[Column], first: int) -> List[Tuple[str, np.ndarray]]:
        found = []
        for name, count, _ in side:
            part = self.words[:, first:first + count]
            found.append((name, part[:, 0] if count == 1 else part))
            first += count
        return found

    def in_columns(self) -> Dict[str, np.ndarray]:
        return dict(self.columns(self.inputs, 0))

    def expected(self) -> np.ndarray:
        return self.words[:, sum(count for _, count, _ in self.inputs):]

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        found = np.zeros(codes.shape, bool)
        for first, last in re.findall("([0-9a-f]+)-([0-9a-f]+)", self.head.get("nan", "")):
            found |= (codes >= np.uint64(int(first, 16))) & (codes <= np.uint64(int(last, 16)))
        return found


def columns_of(path: str, text: str) -> List[Column]:
    found = []
    for word in text.split():
        match = re.fullmatch(r"([a-z_0-9]+)(?:\[(\d+)\])?/(\d+)", word)
        if not match or not 1 <= int(match[3]) <= 16 or not 1 <= int(match[2] or 1) <= 4096:
            raise BadFile(f"{path}: its columns are not NAME/DIGITS or NAME[COUNT]/DIGITS with a space between")
        found.append((match[1], int(match[2] or 1), int(match[3])))
    if not found:
        raise BadFile(f"{path}: its head does not say what goes in and what comes out")
    return found


def pattern_of(columns: List[Column]) -> str:
    return " ".join(f"[0-9a-f]{{{digits}}}" + (f"(?: [0-9a-f]{{{digits}}}){{{count - 1}}}" if count > 1 else "")
                    for _, count, digits in columns)


def read_text(path: str) -> List[str]:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().splitlines()
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"{path}: it is no text in ASCII") from error


def read(path: str) -> File:
    lines = read_text(path)
    if not lines or lines[0] != "# trnmath-vectors 1":
        raise BadFile(f'{path}: its first line is not "# trnmath-vectors 1", so it is no file of vectors')
    head: Dict[str, str] = {}
    at = 1
    while at < len(lines) and lines[at].startswith("# ") and ": " in lines[at] and lines[at][2:8] != "case: ":
        key, value = lines[at][2:].split(": ", 1)
        head.setdefault(key, value)
        at += 1
    inputs, outputs = (columns_of(path, head.get(side, "")) for side in ("in", "out"))
    vector = re.compile(pattern_of(inputs) + " -> " + pattern_of(outputs))
    case, cases, numbers, texts = "all", [], [], []
    for number, line in enumerate(lines[at:], at + 1):
        if line.startswith("# case: "):
            case = line[8:]
        elif vector.fullmatch(line):
            cases.append(case)
            numbers.append(number)
            texts.append(line.replace(" ->", ""))
        else:
            raise BadFile(f"{path}, line {number}: it is not a vector of the columns that the head names")
    if head.get("vectors") != str(len(texts)):
        raise BadFile(f"{path}: it does not have as many vectors as its head says, so it is cut off or changed")
    width = sum(count for _, count, _ in inputs + outputs)
    words = np.array([int(word, 16) for word in " ".join(texts).split()], np.uint64).reshape(len(texts), width)
    return File(path, head, inputs, outputs, words, numbers, cases)


def listed(folder: str, only: str = "") -> List[str]:
    """The files that SHA256SUMS names, each with the sum that it has there."""
    names = []
    index = os.path.join(folder, "SHA256SUMS")
    for number, line in enumerate(read_text(index), 1):
        match = re.fullmatch("([0-9a-f]{64})  (.+)", line)
        if not match:
            raise BadFile(f"{index}, line {number}: it is not a sum, two spaces and a file's name")
        path = os.path.join(folder, match[2])
        if not path.endswith(".txt") or only not in match[2]:
            continue
        try:
            with open(path, "rb") as file:
                same = hashlib.sha256(file.read()).hexdigest() == match[1]
        except OSError as error:
            raise BadFile(f"{path}: {error.strerror}") from error
        if not same:
            raise BadFile(f"{path}: its bytes are not those of SHA256SUMS")
        names.append(path)
    return names


# ---- checking ----

@dataclass
class Result:
    file: File
    right: int = 0
    wrong: int = 0
    skipped: int = 0
    nan: int = 0  # of the wrong ones: a NaN with other bits
    lines: List[str] = field(default_factory=list)  # of the wrong ones; only the first unless all are asked for
    cases: Dict[str, List[int]] = field(default_factory=dict)  # asked, wrong


def answer(file: File, operations: Any) -> Optional[np.ma.MaskedArray]:
    """What an implementation makes of a file's vectors: [vectors, words], masked where it does not say."""
    function = getattr(operations, file.head.get("operation", ""), None)
    got = function(file, **file.in_columns()) if function else None
    if got is None:
        return None
    parts = [np.ma.asarray(part) for part in (got if isinstance(got, tuple) else (got,))]
    count = len(file.lines)
    whole = np.ma.concatenate([part.reshape(count, -1).astype(np.uint64) for part in parts], axis=1)
    if whole.shape != file.expected().shape:
        raise BadFile(f"{file.path}: {file.head['operation']} gave {whole.shape[1]} words for a vector, and "
                      f"{file.expected().shape[1]} are asked for")
    return whole


def hexadecimal(columns: List[Column], words: np.ndarray) -> str:
    digits = [digits for _, count, digits in columns for _ in range(count)]
    shown = [f"{int(word):0{n}x}" for word, n in list(zip(words, digits))[:4]]
    return " ".join(shown) + (" ..." if len(digits) > 4 else "")


def told_of(file: File, i: int, codes: np.ndarray) -> str:
    width = sum(count for _, count, _ in file.inputs)
    at = int(np.argmax(file.expected()[i] != codes[i]))
    digits = [digits for _, count, digits in file.outputs for _ in range(count)][at]
    return (f"line {file.lines[i]}: {hexadecimal(file.inputs, file.words[i, :width])}: expected "
            f"{int(file.expected()[i, at]):0{digits}x}, got {int(codes[i, at]):0{digits}x}")


def judge(file: File, got: Optional[np.ma.MaskedArray], any_nan: bool = False, every: bool = False) -> Result:
    result = Result(file)
    if got is None:
        result.skipped = len(file.lines)
        return result
    want, codes = file.expected(), np.ma.getdata(got)
    asked = ~np.ma.getmaskarray(got).any(axis=1)
    differs = want != codes
    same_nan = differs & file.is_nan(want) & file.is_nan(codes)
    only_nan = asked & differs.any(axis=1) & (differs == same_nan).all(axis=1)
    wrong = asked & (differs & ~same_nan if any_nan else differs).any(axis=1)
    result.right, result.wrong = int((asked & ~wrong).sum()), int(wrong.sum())
    result.skipped, result.nan = int((~asked).sum()), int((only_nan & wrong).sum())
    for case, one, bad in zip(file.case, asked, wrong):
        counts = result.cases.setdefault(case, [0, 0])
        counts[0] += int(one)
        counts[1] += int(bad)
    bad_ones = np.flatnonzero(wrong)
    result.lines = [told_of(file, i, codes) + f" ({file.case[i]})" for i in (bad_ones if every else bad_ones[:1])]
    return result


def run(folder: str, operations: Any, only: str = "", any_nan: bool = False, every: bool = False) -> List[Result]:
    results = []
    for path in [folder] if folder.endswith(".txt") else listed(folder, only):
        file = read(path)
        results.append(judge(file, answer(file, operations), any_nan, every))
    return results


# ---- NumPy itself, as an example: what it rounds, compares and adds ----

class NumPy:
    def encode(self, file: File, x: np.ndarray, **other: np.ndarray) -> Optional[np.ndarray]:
        asked = [file.head[key] for key in ("to", "rounding", "overflow")]
        if asked != ["float16", "nearest_even", "default"]:
            return None
        with np.errstate(all="ignore"):
            return x.astype(np.uint32).view(np.float32).astype(np.float16).view(np.uint16)

    def decode(self, file: File, code: np.ndarray) -> Optional[np.ndarray]:
        if file.head["from"] != "float16":
            return None
        with np.errstate(all="ignore"):
            return code.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)

    def alu(self, file: File, a: np.ndarray, b: Optional[np.ndarray] = None) -> Optional[np.ndarray]:
        two: Dict[str, Callable[..., Any]] = {
            "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.fmax, "minimum": np.fmin,
            "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater, "less": np.less,
            "greater_equal": np.greater_equal, "less_equal": np.less_equal, "logical_and": np.logical_and,
            "logical_or": np.logical_or, "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and,
            "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
        one: Dict[str, Callable[..., Any]] = {
            "abs": np.abs, "square": np.square, "reciprocal": np.reciprocal, "logical_not": np.logical_not,
            "invert": np.invert}
        function = two.get(file.head["operator"]) if b is not None else one.get(file.head["operator"])
        if function is None:
            return None
        kind = np.uint32 if file.head["numbers"] == "uint32" else np.float32
        with np.errstate(all="ignore"):
            r = function(*[part.astype(np.uint32).view(kind) for part in (a, b) if part is not None])
        return np.asarray(r.astype(kind).view(np.uint32))


# ---- the program ----

def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("operations_to_check", path)
    if not path.endswith(".py") or not os.path.exists(path) or spec is None or spec.loader is None:
        raise BadFile(f"{path}: it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return getattr(module, "operations", module)


def told(result: Result) -> None:
    more = f" {result.skipped:7} skipped" if result.skipped else ""
    print(f"{result.file.head['name']:50} {result.right:7} right {result.wrong:7} wrong{more}")
    if result.wrong:
        parts = [f"{wrong} of {asked} {case}" for case, (asked, wrong) in result.cases.items() if wrong]
        nan = f"; {result.nan} of them a NaN with other bits" if result.nan else ""
        for line in result.lines:
            print(f"    {'first: ' if line == result.lines[0] else '       '}{line}")
        print(f"    wrong: {'; '.join(parts)}{nan}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="check.py", description="Holds an implementation against trnmath-vectors.")
    parser.add_argument("folder", nargs="+", help="of vectors, or a file of them")
    parser.add_argument("--with", dest="module", metavar="FILE.py",
                        help="the implementation; NumPy itself unless given")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose names have it")
    parser.add_argument("--any-nan", action="store_true", help="a NaN is right whatever its bits")
    parser.add_argument("--all", action="store_true", help="every wrong vector, not only the first of a file")
    parser.add_argument("--csv", action="store_true", help="file,operation,case,asked,wrong")
    options = parser.parse_args()
    try:
        operations = load(options.module) if options.module else NumPy()
        results = [one for folder in options.folder
                   for one in run(folder, operations, options.only, options.any_nan, options.all)]
    except BadFile as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    if options.csv:
        print("file,operation,case,asked,wrong")
    for one in results:
        for case, (asked, wrong) in one.cases.items() if options.csv else ():
            if asked:
                print(f'{one.file.head["name"]},{one.file.head["operation"]},"{case}",{asked},{wrong}')
        if not options.csv and one.right + one.wrong:
            told(one)
    wrong_files = sum(one.wrong > 0 for one in results)
    right_files = sum(one.right > 0 and one.wrong == 0 for one in results)
    right, wrong, skipped = (sum(getattr(one, key) for one in results) for key in ("right", "wrong", "skipped"))
    print(f"{len(results)} files: {right_files} right, {wrong_files} wrong, {len(results) - right_files - wrong_files} "
          f"skipped; vectors: {right} right, {wrong} wrong, {skipped} skipped",
          file=sys.stderr if options.csv else sys.stdout)
    if right + wrong == 0:
        print("check.py: nothing was checked: no operation took a vector", file=sys.stderr)
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
