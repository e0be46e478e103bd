"""Reads StableHLO text (MLIR), in the short and in the generic form, without MLIR.

A statement is read in one way whatever its operation is: operands, words, lists, named attributes, regions, types;
statements.py says what they mean. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .graph import WRONG, Computation, Graph, Shape, Trouble, Type
from .mlir_types import dense, type_of
from .statements import Statement, operation

_TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*) | (?P<string>"(?:[^"\\]|\\.)*") | (?P<dense>dense(?:_resource)?<) | (?P<arrow>->)
  | (?P<type>tensor<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>|tuple<|!stablehlo\.token)
  | (?P<value>%[\w$.\-]+(?:\#\d+)?(?::\d+)?) | (?P<symbol>@(?:[\w$.\-]+|"[^"]*")) | (?P<block>\^\w+)
  | (?P<alias>\#[\w$.]+) | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)) | (?P<word>[A-Za-z_!][\w$.\-!]*)
  | (?P<mark><\{|\}>|[()\[\]{}<>,:=?*+/;|])""", re.VERBOSE)


@dataclass
class _Token:
    kind: str
    text: str
    line: int


def _tokens(text: str) -> list[_Token]:
    found, at, line = [], 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Trouble(f"line {line}: no StableHLO: {text[at:at + 30].splitlines()[0]}")
        kind, word = match.lastgroup or "", match.group()
        end = match.end()
        if kind == "dense":  # up to its own end
            end = _end_of_dense(text, end, line)
            word = text[at:end]
        if kind != "space":
            found.append(_Token(kind, word, line))
        line += text.count("\n", at, end)
        at = end
    return found + [_Token("end", "", line)]


def _end_of_dense(text: str, at: int, line: int) -> int:
    quoted = re.compile(r'\s*"[^"]*"\s*>').match(text, at)
    end = quoted.end() if quoted else text.find(">", at) + 1
    if end <= 0:
        raise Trouble(f"line {line}: a constant does not end")
    return end


# ---- the reader ----

class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens, self.at = _tokens(text), 0
        self.computations: dict[str, Computation] = {}
        self.public: list[str] = []
        self.partitions = self.replicas = 1
        self.aliases: dict[str, Any] = {}

    # tokens

    @property
    def now(self) -> _Token:
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def take(self, text: str | None = None, kind: str | None = None) -> _Token:
        token = self.now
        if token.kind == "end":
            raise Trouble(f"line {token.line}: the text ends too early")
        if (text is not None and token.text != text) or (kind is not None and token.kind != kind):
            raise Trouble(f"line {token.line}: '{text or kind}' is expected where '{token.text[:30]}' stands")
        self.at += 1
        return token

    def maybe(self, text: str) -> bool:
        if self.now.text != text or self.now.kind == "string":
            return False
        self.at += 1
        return True

    # attributes

    def value(self) -> Any:
        """A number, text, list, dict, or a list of what stands in <...>."""
        token = self.take()
        if token.kind == "string":
            made: Any = token.text[1:-1]
        elif token.kind == "number":
            made = _number(token.text)
            if self.now.text == ":" and self.tokens[self.at + 1].kind == "word":
                self.at += 2  # 1 : i64
        elif token.kind == "dense":
            self.take(":")
            shape = type_of(self.take(kind="type").text, token.line)
            assert isinstance(shape, Shape)
            made = dense(token.text, shape, token.line)
        elif token.text == "[":
            made = self.until("]")
        elif token.text == "{":
            made = self.dictionary("}")
        elif token.text == "array":
            self.take("<")
            self.take()
            made = self.until(">") if self.maybe(":") else (self.take(">"), [])[1]
        elif token.kind == "alias":
            made = self.angle(token)
        elif token.kind in ("word", "symbol", "type"):
            made = {"true": True, "false": False, "unit": True}.get(token.text, token.text)
            if self.now.text == "<" and token.kind == "word":
                self.skip("<", ">")
        else:
            raise Trouble(f"line {token.line}: no attribute: {token.text[:30]}")
        return made

    def angle(self, token: _Token) -> Any:
        """#stablehlo.gather<a = ..., b = ...> is a dict, #stablehlo<direction LT> its words."""
        if self.now.text == "<":
            self.at += 1
            if self.tokens[self.at + 1].text == "=":
                return self.dictionary(">")
            return self.until(">")
        return self.aliases.get(token.text, token.text)

    def until(self, end: str) -> list[Any]:
        made: list[Any] = []
        while not self.maybe(end):
            made.append(self.value())
            self.maybe(",")
            if self.now.kind == "arrow" or self.now.text == "x":
                made.append(self.take().text)
        return made

    def dictionary(self, end: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while not self.maybe(end):
            name = self.take().text.strip('"')
            made[name] = self.several() if self.maybe("=") else True
            self.maybe(",")
        return made

    def several(self) -> Any:
        """A value; or [..]x[..]->[..], or [0] x [1]: a list of their parts."""
        parts = [self.value()]
        while self.now.kind == "arrow" or self.now.text == "x" or re.fullmatch(r"x\[?", self.now.text):
            self.at += 1
            parts.append(self.value())
        return parts if len(parts) > 1 else parts[0]

    def skip(self, opening: str, closing: str) -> None:
        depth = 0
        while True:
            token = self.take()
            depth += (token.text in (opening, "<{")) - (token.text in (closing, "}>"))
            if token.kind == "end" or depth == 0:
                return

    # types

    def type(self) -> Type:
        token = self.take()
        if token.text == "tuple<":
            parts = []
            while not self.maybe(">"):
                parts.append(self.type())
                self.maybe(",")
            return tuple(parts)
        if token.kind != "type":
            raise Trouble(f"line {token.line}: a type is expected where '{token.text[:30]}' stands")
        return type_of(token.text, token.line)

    def types(self) -> list[Type]:
        """One, or some in parentheses, each with attributes maybe."""
        if not self.maybe("("):
            found = [self.type()]
            while self.now.text == "," and self.tokens[self.at + 1].kind == "type":
                self.at += 1
                found.append(self.type())
            return found
        found = []
        while not self.maybe(")"):
            found.append(self.type())
            if self.now.text == "{":
                self.at += 1
                self.dictionary("}")
            self.maybe(",")
        return found

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

    def location(self) -> None:
        if self.now.text == "loc" and self.tokens[self.at + 1].text == "(":
            self.at += 1
            self.skip("(", ")")

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
                if statement.kind in ("return", "func.return", "stablehlo.return"):
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
        self.rest(made)
        return made

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
            made.append([_number(text) if re.fullmatch(r"-?\d+", text) else text for text in row])
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
        self.public.append(name)

    def attributes(self) -> None:
        self.take("{")
        given = self.dictionary("}")
        self.partitions = int(given.get("mhlo.num_partitions", 1))
        self.replicas = int(given.get("mhlo.num_replicas", 1))

    def module(self) -> Graph:
        while self.now.kind != "end":
            token = self.now
            if token.text in ("func.func", "func"):
                self.function()
            elif token.text == "attributes":
                self.at += 1
                self.attributes()
            elif token.kind == "alias" and self.tokens[self.at + 1].text == "=":
                self.at += 2
                self.alias(token.text)
            elif token.text == "loc":
                self.location()
            else:
                self.at += 1
        entry = "@main" if "@main" in self.computations else self.public[0] if self.public else ""
        if not entry:
            raise Trouble("there is no function of StableHLO in it")
        return Graph(self.computations, entry, self.partitions, self.replicas)

    def alias(self, name: str) -> None:
        if self.now.text == "loc":
            self.location()
        else:
            self.aliases[name] = self.value()


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


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

