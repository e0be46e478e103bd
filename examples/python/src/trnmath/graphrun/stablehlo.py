"""Reads StableHLO text (MLIR), in the short and in the generic form, without MLIR.

A statement is read in one way whatever its operation is: operands, words, lists, named attributes, regions, types;
statements.py says what they mean. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import re
from typing import Any

from . import sharding
from .graph import WRONG, Computation, Graph, Mesh, Trouble
from .mlir_reader import Reader, number
from .statements import RETURNS, Statement, operation


class _Reader(Reader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.computations: dict[str, Computation] = {}
        self.public: list[str] = []
        self.partitions = self.replicas = 1
        self.meshes: dict[str, Mesh] = {}
        self.resources: dict[str, bytes] = {}

    # types of a statement

    def signature(self, made: Statement) -> None:
        made.typed = True
        made.inputs = made.outputs = self.types()
        if self.now.kind == "arrow":
            self.at += 1
            made.outputs = self.types()

    # regions

    def parameters(self, into: Computation) -> None:
        """(%a: tensor<..>, %b: ...), each with attributes maybe."""
        self.take("(")
        while not self.maybe(")"):
            into.parameters.append(self.take(kind="value").text)
            self.take(":")
            into.types.append(self.type())
            if self.now.text == "{":
                self.at += 1
                self.dictionary("}")
            self.location()
            self.maybe(",")

    def region(self, into: Computation | None = None) -> str:
        """{ ... }: a computation of its own."""
        made = into or Computation(f"region at line {self.now.line}, {self.at}")
        self.take("{")
        if self.now.kind == "block":
            self.at += 1
            if self.now.text == "(":
                self.parameters(made)
            self.take(":")
        while not self.maybe("}"):
            line = self.now.line
            try:
                statement = self.statement()
                if statement.kind in RETURNS:
                    made.results = statement.operands
                else:
                    made.ops.append(operation(statement))
            except Trouble:
                raise
            except WRONG:
                raise Trouble(f"line {line}: this operation cannot be read") from None
            self.location()
        self.computations[made.name] = made
        return made.name

    # statements

    def statement(self) -> Statement:
        line, results = self.now.line, []
        while self.now.kind == "value":
            results.append(self.take().text)
            self.maybe(",")
        if results:
            self.take("=")
        token = self.take()
        if token.kind not in ("word", "string"):
            raise Trouble(f"line {line}: no operation: {token.text[:30]}")
        made = Statement(token.text.strip('"'), line, [r for text in results for r in _several_results(text)])
        if made.kind == "func.func":  # the generic form
            self.generic_function(made)
        elif made.kind == "sdy.manual_computation" and token.kind == "word":
            self.manual(made)
        else:
            self.rest(made)
        return made

    def manual(self, made: Statement) -> None:
        """(%a, ...) in_shardings=[...] out_shardings=[...] manual_axes={...} (%b: type, ...) {...} : (...) -> ..."""
        self.group(made)
        while self.now.kind == "word":
            name = self.take().text
            self.take("=")
            made.named[name] = self.value()
        body = Computation(f"region at line {self.now.line}, {self.at}")
        self.parameters(body)
        made.regions.append(self.region(body))
        self.take(":")
        self.signature(made)

    def rest(self, made: Statement) -> None:
        """All up to the types, and the regions that follow them in short forms."""
        while True:
            token = self.now
            if made.typed and token.text not in ("cond", "do", "reducer"):
                return
            if token.text == ":" and token.kind == "mark":
                self.at += 1
                self.signature(made)
            elif token.kind == "value":
                made.operands.append(self.take().text)
                if self.now.text == "[" and made.kind.endswith("get_tuple_element"):
                    made.lists.append(self.value())
            elif token.text == "(" and token.kind == "mark":
                self.group(made)
            elif token.text in ("<{", "{") and token.kind == "mark":
                self.at += 1
                made.named |= self.dictionary("}>" if token.text == "<{" else "}")
            elif token.text == "[":
                made.lists.append(self.bracket())
            elif token.text == "<" and token.kind == "mark":
                made.lists.append(self.value())
            elif token.kind in ("word", "symbol", "dense", "string", "number"):
                self.word(made)
            elif token.text in (",", "->"):
                self.at += 1
            else:
                return

    def bracket(self) -> list[Any]:
        """[0:1, 0:7:2] of a slice, or a list."""
        self.take("[")
        made: list[Any] = []
        while not self.maybe("]"):
            row = [self.take().text]
            while self.maybe(":"):
                row.append(self.take().text)
            made.append([number(text) if re.fullmatch(r"-?\d+", text) else text for text in row])
            self.maybe(",")
        return made

    def group(self, made: Statement) -> None:
        """(%a, %b), (%x init: %c), (%a = %b) or regions in parentheses."""
        self.take("(")
        names: list[str] = []
        while not self.maybe(")"):
            if self.now.text == "{":
                made.regions.append(self.region())
            elif self.now.kind == "value":
                name = self.take().text
                if self.maybe("="):
                    made.pairs.append((name, self.take(kind="value").text))
                elif self.now.text == ":":
                    self.at += 1
                    self.type()
                    names.append(name)
                else:
                    names.append(name)
            elif self.now.text == "init":
                self.at += 1
                self.take(":")
                names.append(self.take(kind="value").text)
            else:
                made.words.append(str(self.take().text))
            self.maybe(",")
        made.groups.append(names)
        made.operands += names

    def word(self, made: Statement) -> None:
        """name = value, the words cond, do and reducer before regions, or a word."""
        token, after = self.now, self.tokens[self.at + 1]
        self.at += 1
        if token.kind == "word" and after.text == "=":
            self.at += 1
            made.named[token.text] = self.several()
        elif token.text in ("cond", "do") and after.text == "{":
            made.regions.append(self.region())
        elif token.text == "reducer":
            body = Computation(f"reducer at line {token.line}, {self.at}")
            left, right = Computation(""), Computation("")
            while self.now.text == "(":
                pair = Computation("")
                self.parameters(pair)
                left.parameters.append(pair.parameters[0])
                right.parameters.append(pair.parameters[1])
                left.types.append(pair.types[0])
                right.types.append(pair.types[1])
            body.parameters, body.types = left.parameters + right.parameters, left.types + right.types
            made.regions.append(self.region(body))
        elif token.kind == "dense":
            made.words.append(token.text)
        else:
            made.words.append(token.text.strip('"') if token.kind == "string" else token.text)

    # the module

    def function(self) -> None:
        name = ""
        while self.now.kind != "symbol":
            self.take()
        name = self.take().text
        made = Computation(name)
        self.parameters(made)
        if self.now.kind == "arrow":
            self.at += 1
            self.types()
        if self.now.text == "attributes":
            self.at += 1
            self.take("{")
            self.dictionary("}")
        self.region(made)
        self.defined(self.computations.pop(name))

    def generic_function(self, made: Statement) -> None:
        """"func.func"() <{sym_name = "main", ...}> ({...}) : () -> ()"""
        first = self.at
        self.rest(made)
        name = "@" + str(made.named.get("sym_name", ""))
        if len(made.regions) != 1 or name == "@":
            raise Trouble(f"line {self.tokens[first].line}: a function without a name or a body")
        body = self.computations.pop(made.regions[0])
        body.name = name
        self.defined(body)

    def defined(self, body: Computation) -> None:
        """A function, of which there is one with this name."""
        if body.name in self.public:
            raise Trouble(f"the function {body.name} is there twice")
        self.computations[body.name] = body
        self.public.append(body.name)

    def module(self) -> Graph:
        """All of it: functions, aliases, meshes; what else stands between them is left out."""
        while self.now.kind != "end":
            token, after = self.now, self.tokens[min(self.at + 1, len(self.tokens) - 1)]
            if token.text in ("func.func", "func") and token.kind == "word":
                self.function()
            elif token.text in ('"func.func"', '"func"'):
                self.at += 1
                self.generic_function(Statement("func.func", token.line))
            elif token.text == '"builtin.module"':
                self.generic_module()
            elif token.text in ("mhlo.num_partitions", "mhlo.num_replicas") and after.text == "=":
                self.at += 2
                setattr(self, token.text[len("mhlo.num_"):], int(self.value()))
            elif token.text == "sdy.mesh":
                self.mesh()
            elif token.text == '"sdy.mesh"':
                self.at += 1
                self.generic_mesh(Statement("sdy.mesh", token.line))
            elif token.kind == "alias" and after.text == "=":
                self.at += 2
                self.alias(token.text)
            elif token.kind == "word" and token.text.startswith("!") and after.text == "=":
                self.at += 2
                self.type_alias(token.text)
            elif token.text == "loc":
                self.location()
            else:
                self.at += 1
        entry = "@main" if "@main" in self.computations else self.public[0] if self.public else ""
        if not entry:
            raise Trouble("there is no function of StableHLO in it")
        return Graph(self.computations, entry, self.partitions, self.replicas, self.meshes)

    def generic_module(self) -> None:
        """"builtin.module"() <{...}> ({: its functions follow, and its attributes stand behind them."""
        self.at += 1
        self.take("(")
        self.take(")")
        if self.maybe("<{"):
            self.dictionary("}>")
        self.take("(")
        self.take("{")

    def type_alias(self, name: str) -> None:
        """!name = a tensor or a tuple; others are not needed."""
        if self.now.kind == "type":
            self.type_aliases[name] = self.type()

    def mesh(self) -> None:
        """sdy.mesh @mesh = <["x"=2, "y"=4]>"""
        line = self.take().line
        name = self.take(kind="symbol").text
        self.take("=")
        self.meshes[name] = sharding.mesh_of(self.value(), line)

    def generic_mesh(self, made: Statement) -> None:
        """"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()"""
        self.rest(made)
        self.meshes["@" + made.named["sym_name"]] = sharding.mesh_of(made.named["mesh"], made.line)

    def alias(self, name: str) -> None:
        if self.now.text == "loc":
            self.location()
        else:
            self.aliases[name] = self.value()


def _several_results(text: str) -> list[str]:
    """%0:2 is %0#0 and %0#1."""
    name, colon, count = text.partition(":")
    return [f"{name}#{n}" for n in range(int(count))] if colon else [name]


def read(text: str) -> Graph:
    """The graph of a module's text, or Trouble."""
    reader = _Reader(text)
    try:
        return reader.module()
    except Trouble:
        raise
    except WRONG:
        raise Trouble(f"line {reader.tokens[min(reader.at, len(reader.tokens) - 1)].line}: this cannot be read") from None

