"""python -m nki.lint FILE...: what newer releases of NKI remove or change of what a file says, line by line, with
the release and what to write instead; names.py has the rows. Status 0: nothing was found, 1: something was, 2: a file
was not read. The files are read, never run. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from . import names
from .names import OLDER, Row, find, way

_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_ENUMS = ("dge_mode", "oob_mode", "engine", "reduce_cmd", "perf_mode")
_BUFFERS = ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm")
_VALUES = ("get_", "register_alloc", "nc_version", "engine", "NkiInstruction")  # of nki.isa, what has a value


class Finding(NamedTuple):
    line: int
    name: str  # as the file means it
    row: Row

    def __str__(self) -> str:
        return f"{self.line}: " + self.row.said(self.row.name[1:-1] if self.row.name.startswith("<") else self.name)


def _ours(module: str) -> bool:
    return module.split(".")[0] == "nki" or module == OLDER or module.startswith(OLDER + ".")


class _Names(ast.NodeVisitor):
    """What the names of a file mean: those that it imports from NKI."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.imported: list[tuple[int, str]] = []
        self.stars: list[str] = []

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            if _ours(one.name):
                self.imported.append((node.lineno, one.name))
                top = one.name.split(".")[0]
                self.of[one.asname or top] = one.name if one.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or not (_ours(module) or module == "neuronxcc"):
            return
        for one in node.names:
            if one.name == "*":
                self.stars.append(module)
                self.imported.append((node.lineno, module))
            elif _ours(f"{module}.{one.name}"):
                self.of[one.asname or one.name] = f"{module}.{one.name}"
                self.imported.append((node.lineno, f"{module}.{one.name}"))

    def meaning(self, node: ast.AST) -> str | None:
        """neuronxcc.nki.isa.iota, of nisa.iota; None: of nothing that comes from NKI."""
        if isinstance(node, ast.Name):
            if node.id in self.of:
                return self.of[node.id]
            return next((f"{m}.{node.id}" for m in self.stars if names.known(f"{m}.{node.id}")), None)
        if isinstance(node, ast.Attribute):
            base = self.meaning(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None


class _Kernels(NamedTuple):
    functions: list[_Function]

    @classmethod
    def of(cls, tree: ast.AST, known: _Names) -> _Kernels:
        return cls([n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and
                    any(_decorates(d, known) for d in n.decorator_list)])


def _decorates(node: ast.expr, known: _Names) -> bool:
    meaning = names.today(known.meaning(node.func if isinstance(node, ast.Call) else node) or "")
    return meaning in ("nki.jit", "nki.baremetal", "nki.benchmark", "nki.profile", "nki.trace")


# ---- what is looked for ----

def _imports(known: _Names) -> Iterator[Finding]:
    for line, module in known.imported:
        if module == OLDER or module.startswith(OLDER + "."):
            yield Finding(line, OLDER, names.older)
        row = find(module)
        if row is not None and row.name != OLDER:
            yield Finding(line, module, row)


def _uses(tree: ast.AST, known: _Names) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(getattr(node, "ctx", None), ast.Load):
            meaning = known.meaning(node)
            row = find(meaning) if meaning else None
            if meaning and row is not None and row.name != OLDER:
                yield Finding(node.lineno, meaning, row)


def _calls(tree: ast.AST, known: _Names) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        meaning = known.meaning(node.func)
        if meaning is None:
            continue
        for word in node.keywords:
            row = find(f"{meaning}({word.arg}=)") if word.arg else None
            if row is not None:
                yield Finding(word.value.lineno, f"{meaning}({word.arg}=)", row)
            elif word.arg in _ENUMS and isinstance(word.value, ast.Constant) and type(word.value.value) is int:
                yield Finding(word.value.lineno, meaning, way("a number for an enum"))
            elif word.arg == "buffer" and isinstance(word.value, ast.Constant) and word.value.value in _BUFFERS:
                yield Finding(word.value.lineno, meaning, way("a buffer's name as a string"))
        yield from _positions(node, meaning)


def _positions(node: ast.Call, meaning: str) -> Iterator[Finding]:
    given = len(node.args) + len(node.keywords)
    if any(isinstance(a, ast.Starred) for a in node.args):
        return
    if meaning == "nki.isa.affine_select" and len(node.args) > 5 or \
            meaning == "nki.isa.affine_select" and len(node.args) > 2 and _is_number(node.args[2]) and \
            len(node.args) > 3 and _is_number(node.args[3]):
        yield Finding(node.lineno, meaning, way("offset of affine_select by position"))
    if meaning == "nki.isa.dma_compute" and len(node.args) > 2 and isinstance(node.args[2], (ast.List, ast.Tuple)):
        yield Finding(node.lineno, meaning, way("scales of dma_compute before reduce_op"))
    if meaning == "nki.language.matmul" and given == 2:
        yield Finding(node.lineno, meaning, way("matmul without transpose_x"))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int or \
        isinstance(node, ast.UnaryOp) and _is_number(node.operand)


def _values(tree: ast.AST, known: _Names) -> Iterator[Finding]:
    """Instructions whose value is used: with dst they are statements of their own. Today's return a handle, which may
    have a name; it is no tile."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    named = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign) and
             all(isinstance(t, ast.Name) for t in node.targets)}
    for node in ast.walk(tree):
        meaning = known.meaning(node.func) if isinstance(node, ast.Call) else None
        if meaning is None or not isinstance(node, ast.Call) or id(node) in alone:
            continue
        head, _, function = names.today(meaning).rpartition(".")
        if head != "nki.isa" or function.startswith(_VALUES) or any(word.arg == "dst" for word in node.keywords):
            continue
        if meaning.startswith(OLDER) or id(node) not in named:
            yield Finding(node.lineno, meaning, way("a value of an instruction"))


def _kernels(tree: ast.AST, known: _Names) -> Iterator[Finding]:
    kernels = _Kernels.of(tree, known).functions
    called = {k.name for k in kernels}
    for kernel in kernels:
        if kernel.args.kwonlyargs and not kernel.args.vararg:
            yield Finding(kernel.lineno, kernel.name, way("* in a kernel's signature"))
        for default in kernel.args.defaults + [d for d in kernel.args.kw_defaults if d is not None]:
            if isinstance(default, ast.List):
                yield Finding(default.lineno, kernel.name, way("a list as a kernel's argument"))
        yield from _inside(kernel, called, known)


def _inside(kernel: _Function, called: set[str], known: _Names) -> Iterator[Finding]:
    made: dict[str, int] = {}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            yield Finding(node.lineno, kernel.name, way("is in a kernel"))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in called:
            yield Finding(node.lineno, node.func.id, way("a kernel in a kernel"))
        elif isinstance(node, ast.Assign) and _in_hbm(node.value, known):
            made.update({t.id: node.lineno for t in node.targets if isinstance(t, ast.Name)})
    for node in ast.walk(kernel):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id in made:
            yield Finding(made[node.value.id], node.value.id, way("a result in nl.hbm"))


def _in_hbm(node: ast.expr, known: _Names) -> bool:
    def is_hbm(word: ast.keyword) -> bool:
        return word.arg == "buffer" and names.today(known.meaning(word.value) or "") == "nki.language.hbm"
    return isinstance(node, ast.Call) and any(map(is_hbm, node.keywords))


# ---- files ----

def findings(text: str) -> list[Finding]:
    """What is found in a file's text, by line; each name once a line. A SyntaxError of its own is the caller's."""
    tree = ast.parse(text)
    known = _Names()
    known.visit(tree)
    found = [*_imports(known), *_uses(tree, known), *_calls(tree, known), *_values(tree, known), *_kernels(tree, known)]
    longest: dict[tuple[int, str], Finding] = {}
    for one in found:
        longest.setdefault((one.line, one.row.name), one)
    return sorted(longest.values(), key=lambda f: (f.line, f.row.name))


def page() -> str:
    """The table of names.md."""
    lines = ["| name | release | what it does | instead |", "|---|---|---|---|"]
    for row in names.ROWS:
        name = row.name[1:-1].replace("*", "\\*") if row.name.startswith("<") else f"`{row.name}`"
        lines.append(f"| {name} | {row.release} | {row.change} | {row.instead} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    if not arguments or any(a in ("-h", "--help") for a in arguments):
        print(__doc__)
        return 0 if arguments else 2
    if list(arguments) == ["--table"]:
        print(page())
        return 0
    status = 0
    for path in arguments:
        try:
            with open(path, encoding="utf-8") as file:
                found = findings(file.read())
        except (OSError, SyntaxError, ValueError) as trouble:
            what = getattr(trouble, "strerror", None) or getattr(trouble, "msg", None) or trouble
            print(f"nki.lint: {path}: {what}", file=sys.stderr)
            status = 2
            continue
        for one in found:
            print(f"{path}:{one}")
        status = max(status, 1 if found else 0)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
