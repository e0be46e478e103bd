"""Block tensors whose tiles are used in one turn of a loop only: after it they are over, and hold no memory.

Kernels that a compiler wrote name a block tensor once, before all loops, and index it by their variables: v[i, j, ...].
The text of the function tells that tile (i, j) is used in no other turn. Where the text is not at hand, or anything in
it could mean more, tiles stay as long as the block tensor.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import NamedTuple

from .frames import of_kernel

_MAKERS = ("ndarray", "empty", "zeros", "ones", "full")
_RANGES = ("range", "affine_range", "sequential_range", "static_range", "dynamic_range")
_EVERYTHING = {"eval", "exec", "locals", "vars"}  # what may use names that the text does not show
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp, ast.ListComp, ast.SetComp,
          ast.DictComp)  # what runs at another time, or in turns of its own
_Loops = tuple[ast.AST, ...]
_Axes = tuple[int, ...]
_Place = tuple[int, int]  # line and column


class _Use(NamedTuple):
    indices: Sequence[ast.expr]  # of a subscript; none: used in another way
    loops: _Loops  # around it, the outermost first
    at: _Place


class _Names(ast.NodeVisitor):
    """Of a function: which names block tensors may have, where names are used, and what else becomes of them."""

    def __init__(self) -> None:
        self.loops: _Loops = ()
        self.made: dict[str, tuple[ast.Assign, _Loops]] = {}
        self.uses: dict[str, list[_Use]] = {}
        self.stored: dict[str, int] = {}  # how often, by anything but a loop
        self.later = 0

    def _use(self, name: str, indices: Sequence[ast.expr], node: ast.expr | ast.stmt) -> None:
        use = _Use(() if self.later else indices, self.loops, (node.lineno, node.col_offset))
        self.uses.setdefault(name, []).append(use)

    def _store(self, name: str) -> None:
        self.stored[name] = self.stored.get(name, 0) + 1

    def _inside(self, loop: ast.AST, body: Sequence[ast.AST]) -> None:
        outside, self.loops = self.loops, (*self.loops, loop)
        for part in body:
            self.visit(part)
        self.loops = outside

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        if not isinstance(node.target, ast.Name) or node.target.id in [_target(loop) for loop in self.loops]:
            self.visit(node.target)
        self._inside(node, node.body)
        for part in node.orelse:
            self.visit(part)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self._inside(node, [node.test, *node.body])
        for part in node.orelse:
            self.visit(part)

    def generic_visit(self, node: ast.AST) -> None:
        for name in (getattr(node, field, None) for field in ("name", "asname", "rest")):
            if isinstance(name, str):  # a function's, of an exception, a pattern or an import
                self._store(name)
        later = isinstance(node, _LATER)
        self.later += later
        super().generic_visit(node)
        self.later -= later

    def visit_Assign(self, node: ast.Assign) -> None:
        target, makes = node.targets[0], _called(node.value) in _MAKERS and not self.later
        if makes and len(node.targets) == 1 and isinstance(target, ast.Name):
            self.made[target.id] = (node, self.loops)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Del):
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            self._use(node.value.id, indices, node)
        else:
            self.visit(node.value)
        self.visit(node.slice)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node.id, (), node)
        else:
            self._store(node.id)

    def _shared(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self._use(name, (), node)

    visit_Global = visit_Nonlocal = _shared


def _called(node: ast.AST) -> str:
    """The last name of the function that is called; "" for all else."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _own(call: ast.AST, names: _Names) -> bool:
    """Does the function that is called have a name that this text gives it?"""
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names.stored


def _target(loop: ast.AST) -> str:
    return loop.target.id if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) else ""


def _variable(loop: ast.AST, names: _Names) -> str:
    """What a loop over a range calls its turns; "": they may come twice, or the name means something else too."""
    ranges = isinstance(loop, ast.For) and _called(loop.iter) in _RANGES and not _own(loop.iter, names)
    return _target(loop) if ranges and not _descends(loop) and _target(loop) not in names.stored else ""


def _descends(loop: ast.AST) -> bool:
    """3, 2, 1, 0, -1: the last may be the first tile again, counted from the end. (Ascending ranges begin with those
    that are: blocks.py sees it.)"""
    steps = loop.iter.args[2:] if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) else []
    return any(isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub) for step in steps)


def _turns(names: _Names, made_in: _Loops, uses: Sequence[_Use]) -> list[_Axes]:
    """Where each use has the variables of the outermost loops between the block tensor and all of them: of one loop, of
    two, ..."""
    found: list[_Axes] = []
    for count in range(1, min(len(use.loops) for use in uses) - len(made_in) + 1):
        loops = uses[0].loops[:len(made_in) + count]
        variables = [_variable(loop, names) for loop in loops[len(made_in):]]
        if "" in variables or len(set(variables)) < count:
            break
        axes = _axes(uses[0], variables)
        if axes and all(use.loops[:len(loops)] == loops and _axes(use, variables) == axes for use in uses):
            found.append(axes)
    return found


def _axes(use: _Use, variables: Sequence[str]) -> _Axes:
    """The indices that are these variables alone; none where one of them is missing, or the text hides how many there
    are."""
    if any(isinstance(i, ast.Starred) for i in use.indices):
        return ()
    named = [i.id if isinstance(i, ast.Name) else "" for i in use.indices]
    return tuple(map(named.index, variables)) if set(variables) <= set(named) else ()


def _end(node: ast.stmt) -> _Place:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _lasts(text: ast.AST) -> dict[ast.stmt, ast.stmt]:
    """Of each statement the last of its list."""
    lists = [part for node in ast.walk(text) for _, part in ast.iter_fields(node) if isinstance(part, list)]
    return {one: part[-1] for part in lists for one in part if isinstance(one, ast.stmt)}


def _found(text: ast.AST, names: _Names) -> Iterator[tuple[ast.Assign, list[_Axes]]]:
    """In a loop a block tensor has to be made anew in each turn that uses it: uses are in statements behind."""
    last = _lasts(text)
    for name, (node, loops) in names.made.items():
        uses = names.uses.get(name, ())
        anew = not loops or all(_end(node) <= use.at < _end(last[node]) for use in uses)
        if anew and names.stored[name] == 1 and not _own(node.value, names) and uses and all(
                u.indices and u.loops[:len(loops)] == loops for u in uses):
            yield node, _turns(names, loops, uses)


def _functions(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _functions(part)


def _text(code: CodeType) -> ast.FunctionDef | None:
    """The text of a function, if it is still what was compiled."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
        module = compile(tree, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURE)
    except (SyntaxError, ValueError):
        return None
    if code not in _functions(module):  # equal codes have equal names, lines and constants
        return None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == code.co_name and
             min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno]
    return found[0] if len(found) == 1 else None


_FUTURE = 0x1000000  # from __future__ import annotations


@functools.lru_cache(maxsize=1024)
def _of(code: CodeType, file: str) -> dict[int, list[_Axes]]:
    """By line: of a block tensor that is made there the indices that its turns may be. file: the code's, which equal
    codes need not share."""
    text = _text(code)
    if text is None:
        return {}
    names = _Names()
    for argument in [part for part in ast.walk(text.args) if isinstance(part, ast.arg)]:
        names.stored[argument.arg] = 1
    for part in text.body:
        names.visit(part)
    if not _EVERYTHING.isdisjoint(names.uses):
        return {}
    makers = [call.lineno for call in ast.walk(text) if isinstance(call, ast.Call) and _called(call) in _MAKERS]
    found: dict[int, list[_Axes]] = {}
    for node, turns in _found(text, names):
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if sum(line in lines for line in makers) == 1:
            found.update(dict.fromkeys(lines, turns))
    return found


def here(axes: int) -> _Axes:
    """Of the block tensor that the kernel makes now, with so many axes of tiles: those that name the turn that a tile is
    used in."""
    frame = of_kernel()
    known = [] if frame is None else _of(frame.f_code, frame.f_code.co_filename).get(frame.f_lineno, [])
    return next((turns for turns in reversed(known) if max(turns) < axes), ())
