"""Words, attributes and types of MLIR text: what stablehlo.py reads statements with. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .graph import Shape, Trouble, Type
from .mlir_types import dense, type_of

_TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*) | (?P<string>"(?:[^"\\]|\\.)*") | (?P<dense>dense(?:_resource)?<) | (?P<arrow>->) | (?P<resources>\{-\#)
  | (?P<type>tensor<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>|tuple<|!stablehlo\.token)
  | (?P<value>%[\w$.\-]+(?:\#\d+)?(?::\d+)?) | (?P<symbol>@(?:[\w$.\-]+|"[^"]*")) | (?P<block>\^\w+)
  | (?P<alias>\#[\w$.]+) | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)) | (?P<word>[A-Za-z_!][\w$.\-!]*)
  | (?P<mark><\{|\}>|[()\[\]{}<>,:=?*+/;|])""", re.VERBOSE)
_RESOURCE = re.compile(r'"?([\w.$\-]+)"?\s*:\s*"0x([0-9A-Fa-f]*)"')


@dataclass
class Token:
    """kind: which of the above."""

    kind: str
    text: str
    line: int


def tokens(text: str) -> list[Token]:
    """Words, with their lines. Constants that are kept at the text's end are put where they belong."""
    found, at, line = [], 0, 1
    resources: dict[str, str] = {}
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Trouble(f"line {line}: no StableHLO: {text[at:at + 30].splitlines()[0]}")
        kind, word = match.lastgroup or "", match.group()
        end = match.end()
        if kind == "dense":  # up to its own end
            end = _end_of_dense(text, end, line)
            word = text[at:end]
        elif kind == "resources":
            end = text.find("#-}", end) + 3
            if end < 3:
                raise Trouble(f"line {line}: the resources do not end")
            resources |= dict(_RESOURCE.findall(text, at, end))
        if kind not in ("space", "resources"):
            found.append(Token(kind, word, line))
        line += text.count("\n", at, end)
        at = end
    for token in found:
        name = token.text[len("dense_resource<"):-1].strip('"') if token.text.startswith("dense_resource<") else ""
        if name in resources:  # four bytes say how it is aligned
            token.text = f'dense<"0x{resources[name][8:]}">'
    return found + [Token("end", "", line)]


def _end_of_dense(text: str, at: int, line: int) -> int:
    quoted = re.compile(r'\s*"[^"]*"\s*>').match(text, at)
    end = quoted.end() if quoted else text.find(">", at) + 1
    if end <= 0:
        raise Trouble(f"line {line}: a constant does not end")
    return end


# ---- the reader ----

class Reader:
    """A text, and where in it one is."""

    def __init__(self, text: str) -> None:
        self.tokens, self.at = tokens(text), 0
        self.aliases: dict[str, Any] = {}
        self.type_aliases: dict[str, Type] = {}

    # tokens

    @property
    def now(self) -> Token:
        """The next one."""
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def take(self, text: str | None = None, kind: str | None = None) -> Token:
        """The next one, which must be this."""
        token = self.now
        if token.kind == "end":
            raise Trouble(f"line {token.line}: the text ends too early")
        if (text is not None and token.text != text) or (kind is not None and token.kind != kind):
            raise Trouble(f"line {token.line}: '{text or kind}' is expected where '{token.text[:30]}' stands")
        self.at += 1
        return token

    def maybe(self, text: str) -> bool:
        """Is it the next one? Then it is taken."""
        if self.now.text == "}>" and text == "}":  # of an alias<name{...}>
            self.now.text = ">"
            return True
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
            made = number(token.text)
            if self.now.text == ":" and self.tokens[self.at + 1].kind == "word":
                self.at += 2  # 1 : i64
        elif token.kind == "dense":
            self.take(":")
            shape = type_of(self.take(kind="type").text, token.line)
            assert isinstance(shape, Shape)
            made = dense(token.text, shape, token.line)
        elif token.text == "<":
            made = self.until(">")
        elif token.text == "(":  # a function's type, which is not needed
            self.at -= 1
            self.skip("(", ")")
            made = self.several_types() if self.now.kind == "arrow" else None
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

    def angle(self, token: Token) -> Any:
        """#stablehlo.gather<a = ..., b = ...> is a dict, #stablehlo<direction LT> its words."""
        if self.now.text == "<":
            self.at += 1
            if self.tokens[self.at + 1].text == "=":
                return self.dictionary(">")
            return self.until(">")
        return self.aliases.get(token.text, token.text)

    def until(self, end: str) -> list[Any]:
        """Values, and names before "=" with theirs, up to the end."""
        made: list[Any] = []
        while not self.maybe(end):
            made.append(self.value())
            if self.maybe("="):  # name = value
                made.append(self.several())
            self.maybe(",")
            if self.now.kind == "arrow" or self.now.text == "x":
                made.append(self.take().text)
        return made

    def dictionary(self, end: str) -> dict[str, Any]:
        """Names with their values."""
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
        """All up to where the bracket closes."""
        depth = 0
        while True:
            token = self.take()
            depth += (token.text in (opening, "<{")) - (token.text in (closing, "}>"))
            if token.kind == "end" or depth == 0:
                return

    # types

    def type(self) -> Type:
        """A tensor's, a tuple's, or an alias."""
        token = self.take()
        if token.text == "tuple<":
            parts = []
            while not self.maybe(">"):
                parts.append(self.type())
                self.maybe(",")
            return tuple(parts)
        if token.text in self.type_aliases:
            return self.type_aliases[token.text]
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

    def several_types(self) -> list[Type]:
        """-> types"""
        self.at += 1
        return self.types()

    def location(self) -> None:
        """loc(...), which is left out."""
        if self.now.text == "loc" and self.tokens[self.at + 1].text == "(":
            self.at += 1
            self.skip("(", ")")


def number(text: str) -> int | float:
    """A whole one, if it is one."""
    try:
        return int(text, 0)
    except ValueError:
        return float(text)
