"""The mutants of a C source: what can be changed in its functions, and the source with many changes at once.

Each mutant is one edit inside one region of the text. woven() writes every region twice, as it was and as it would be,
and asks trn_mutant(number) which of both to run: so one compilation holds all mutants, and a run chooses one.

The sources are formatted by clang-format, which this relies on: a binary operator stands between spaces. Left alone are
comments, lines of the preprocessor (and so macros), initializers of static tables, text, and sizes of arrays.
"""
import hashlib
import re
from collections import namedtuple

# start, end: the region in the text. edits: (start, end, new text), what the mutant does. kind: how it is woven.
Mutant = namedtuple("Mutant", "file function start end edits kind")
Token = namedtuple("Token", "kind text start end")

TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<cpp>(?:(?<=\n)|\A)[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)
    |(?P<space>\s+)|(?P<string>"(?:\\.|[^"\\])*")|(?P<char>'(?:\\.|[^'\\])*')
    |(?P<number>(?:\d|\.\d)(?:[eEpP][+-]|[\w.])*)|(?P<name>[A-Za-z_]\w*)
    |(?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""", re.X | re.S)

LEVELS = [{"="}, {"?", ":"}, {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"<<", ">>"},
          {"+", "-"}, {"*", "/", "%"}]
BINDS = {op: level for level, ops in enumerate(LEVELS) for op in ops}
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
          "%": "/", "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
# Calls whose arguments may change places.
EITHER_WAY = re.compile(r"^(f?(min|max)f?|calloc|strcmp|memcmp|.*_(min|max|gcd)[0-9]*(_.*)?)$")
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
TYPES = set("const static struct enum union volatile unsigned int long char double float bool void _Alignas".split())
SAID = {"true", "false", "NULL", "TRN_OK"}
RELEASES = {"free", "cJSON_Delete", "pcre2_code_free", "pcre2_match_data_free"}  # without them memory leaks, which is LeakSanitizer's to tell
FLOW = {"if", "while", "for", "switch", "return", "sizeof", "do", "else", "case", "default", "goto"}


def tokens(text):
    found = [Token(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text)]
    return [t for t in found if t.kind not in ("comment", "cpp", "space")], [t for t in found if t.kind == "cpp"]


def number(text):
    """A number that is not this one; None when it is not understood."""
    m = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", text)
    if m:
        value = int(m.group(1), 0) if not re.fullmatch(r"0\d+", m.group(1)) else int(m.group(1), 8)
        value += 1 if value == 0 or hashlib.md5(text.encode()).digest()[0] % 2 else -1
        return ("0x%x" if m.group(1)[:2].lower() == "0x" else "%d") % value + m.group(2)
    m = re.fullmatch(r"(\d*\.?\d*(?:[eE][+-]?\d+)?)([fF]?)", text)
    if m:
        value = float(m.group(1))
        value = 2 * value if value >= 16 or 0 < value < 0.01 else value + 1
        text = "%.17g" % value
        return (text if re.search("[.e]", text) else text + ".0") + m.group(2)
    return None


class Body:
    """Finds the mutants of one file."""

    def __init__(self, name, text):
        self.name, self.text, self.out, self.function = name, text, [], ""
        self.t, self.cpp = tokens(text)
        self.pair, open_at = {}, []
        for i, t in enumerate(self.t):
            if t.kind == "op" and t.text in OPEN:
                open_at.append(i)
            elif t.kind == "op" and t.text in CLOSE and open_at:
                j = open_at.pop()
                self.pair[i], self.pair[j] = j, i
        self.outside()

    def add(self, first, last, edits, kind="value"):
        """A mutant over tokens [first, last]."""
        start, end = self.t[first].start, self.t[last].end
        if not any(start < c.end and c.start < end for c in self.cpp):
            self.out.append(Mutant(self.name, self.function, start, end, tuple(edits), kind))

    def outside(self):
        i = 0
        while i < len(self.t):
            if self.t[i].text == "{" and i in self.pair:
                before = self.t[i - 1].text if i else ""
                if before == ")" and i - 1 in self.pair:
                    self.function = self.t[self.pair[i - 1] - 1].text
                    self.block(i)
                if before == '"C"':  # of extern
                    i += 1
                    continue
                i = self.pair[i]
            i += 1

    # ---- statements ----

    def block(self, i):
        end, i = self.pair[i], i + 1
        while i < end:
            i = self.statement(i, end)
        return end + 1

    def statement(self, i, end):
        """The statement at token i; says where the next one is."""
        text = self.t[i].text
        if text == "{":
            return self.block(i)
        if text in ("if", "while", "switch", "for"):
            close = self.pair[i + 1]
            if text == "if":
                self.add(i + 2, close - 1, [], "negated")
            self.expression(i + 2, close, step_from=self.last_semicolon(i + 2, close) if text == "for" else None)
            i = self.statement(close + 1, end)
            if text == "if" and i < end and self.t[i].text == "else":
                i = self.statement(i + 1, end)
            return i
        if text == "do":
            i = self.statement(i + 1, end)
            close = self.pair[i + 1]
            self.expression(i + 2, close)
            return close + 2
        if text in ("case", "default"):
            while self.t[i].text != ":":
                i += 1
            return i + 1
        if self.t[i].kind == "name" and self.t[i + 1].text == ":" and text not in FLOW:
            return i + 2
        return self.plain(i, end)

    def last_semicolon(self, i, end):
        return max((j for j in range(i, end) if self.t[j].text == ";"), default=None)

    def plain(self, i, end):
        stop = i
        while stop < end and self.t[stop].text != ";":
            stop = self.pair[stop] + 1 if self.t[stop].text in OPEN else stop + 1
        if stop >= end:  # a macro that needs no semicolon
            return end
        first = self.t[i].text
        if first == "return":
            if stop == i + 1:
                self.add(i, stop, [], "dropped")
            elif stop > i + 2 or not (self.t[i + 1].kind == "number" or self.t[i + 1].text in SAID):
                self.add(i + 1, stop - 1, [(self.t[i + 1].start, self.t[stop - 1].end, "0")])
            self.expression(i + 1, stop)
        elif first in ("break", "continue"):
            self.add(i, stop, [], "dropped")
        elif self.declares(i):
            if first != "static":
                self.expression(i, stop, declares=True)
        elif stop > i and first not in ("goto", "_Static_assert", "asm"):
            if first not in RELEASES and not (first == "(" and self.t[i + 1].text == "void"):
                self.add(i, stop, [], "dropped")
            self.expression(i, stop)
        return stop + 1

    def declares(self, i):
        a, b = self.t[i], self.t[i + 1]
        return a.text in TYPES or (a.kind == "name" and (b.kind == "name" or (
            b.text == "*" and self.t[i + 2].start == b.end and b.start > a.end)))

    # ---- expressions ----

    def expression(self, i, end, step_from=None, declares=False):
        sizes, valued, j = set(), not declares, i
        while j < end:  # sizes of arrays: brackets before the '=' of a declaration
            text = self.t[j].text
            if text == "[" and not valued:
                sizes.update(range(j, self.pair[j]))
            valued = not declares or (text == "=" or valued and text != ",")
            j = self.pair[j] + 1 if text in OPEN else j + 1
        for j in range(i, end):
            if j not in sizes and not (declares and self.t[j].text == "*" and self.t[j + 1].start == self.t[j].end):
                self.at(j, i, end, step_from is not None and j > step_from)

    def spaced(self, j):
        t = self.t[j]
        return self.text[t.start - 1] in " \n" and self.text[t.end] in " \n"

    def at(self, j, begin, end, step):
        t = self.t[j]
        if t.kind == "number":
            call = self.t[j - 2].text if self.t[j - 1].text == "(" else ""
            new = number(t.text)
            if new and not call.endswith("_C"):
                self.add(j, j, [(t.start, t.end, new)])
        elif t.text in ("true", "false"):
            self.add(j, j, [(t.start, t.end, "false" if t.text == "true" else "true")])
        elif t.text in TURNED and self.spaced(j) and j > begin and not (step and t.text in ("+=", "-=", "*=", "/=")):
            self.add(self.left(j, begin), self.right(j, end), [(t.start, t.end, TURNED[t.text])])
        elif t.text == "?" and j > begin:
            self.add(self.left(j, begin), j - 1, [], "negated")
        elif t.text == "!" and self.t[j + 1].start == t.end:
            self.add(j, self.unary(j, end), [(t.start, t.end, "!!")])
        elif t.text == "(" and j > begin and self.t[j - 1].kind == "name" and self.t[j - 1].end == t.start:
            self.call(j)

    def left(self, j, begin):
        """The first token of the operand before operator j."""
        binds = BINDS.get(self.t[j].text, 0)
        i = j - 1
        while i >= begin:
            t = self.t[i]
            if t.text in CLOSE:
                i = self.pair[i]
            elif t.text in OPEN or t.text in (",", ";", "return", "case", "?", ":", "{", "}") or t.text in ASSIGNS:
                break
            elif t.text in BINDS and self.spaced(i) and BINDS[t.text] < binds:
                break
            i -= 1
        i += 1
        while self.t[i].kind == "name" and self.t[i].text in ("else", "do"):
            i += 1
        return i

    def right(self, j, end):
        """The last token of the operand after operator j."""
        assigns = self.t[j].text in ASSIGNS
        binds = -1 if assigns else BINDS[self.t[j].text]
        i = j + 1
        while i < end:
            t = self.t[i]
            if t.text in OPEN:
                i = self.pair[i]
            elif t.text in CLOSE or t.text in (",", ";"):
                break
            elif not assigns and t.text in BINDS and self.spaced(i) and BINDS[t.text] <= max(binds, BINDS["?"]):
                break
            i += 1
        return i - 1

    def unary(self, j, end):
        i = j + 1
        while self.t[i].text in ("!", "-", "~", "*", "&"):
            i += 1
        if self.t[i].text == "(":
            i = self.pair[i]
        while i + 1 < end and self.t[i + 1].text in ("(", "[", ".", "->"):
            i = self.pair[i + 1] if self.t[i + 1].text in OPEN else i + 2
        return i

    def call(self, j):
        """Two neighbouring arguments change places."""
        name, close = self.t[j - 1].text, self.pair[j]
        if name in FLOW or EITHER_WAY.match(name) or name.isupper():
            return
        arguments, i = [[j + 1, j]], j + 1
        while i < close:
            if self.t[i].text == ",":
                arguments.append([i + 1, i])
            else:
                i = self.pair[i] if self.t[i].text in OPEN else i
                arguments[-1][1] = i
            i += 1
        spans = [(self.t[a].start, self.t[b].end) for a, b in arguments if b >= a]
        texts = [self.text[a:b] for a, b in spans]
        can = [n for n in range(len(texts) - 1)
               if texts[n] != texts[n + 1] and '"' not in texts[n] + texts[n + 1] and len(texts) == len(arguments)]
        if not can:
            return
        digest = hashlib.md5((name + "".join(texts)).encode()).digest()[0]
        n = can[digest % len(can)]
        first = j - 1
        while first >= 2 and self.t[first - 1].text in (".", "->") and self.t[first - 2].kind == "name":
            first -= 2
        self.add(first, close, [(*spans[n], texts[n + 1]), (*spans[n + 1], texts[n])])


def mutants(name, text):
    return Body(name, text).out


def plain(text, mutant):
    """What the mutant makes of its region."""
    part, at = "", mutant.start
    if mutant.kind == "dropped":
        return ";"
    if mutant.kind == "negated":
        return "!(" + text[mutant.start:mutant.end] + ")"
    for start, end, new in mutant.edits:
        part += text[at:start] + new
        at = end
    return part + text[at:mutant.end]


def shown(text, mutant):
    """The lines that it touches, as they were and as they would be, each as one line of single spaces."""
    first, last = text.rfind("\n", 0, mutant.start) + 1, text.find("\n", mutant.end)
    if mutant.edits:
        last = text.find("\n", max(end for _, end, _ in mutant.edits))
        first = text.rfind("\n", 0, min(start for start, _, _ in mutant.edits)) + 1
        first, last = min(first, mutant.start), max(last, mutant.end)
    before = text[first:last]
    after = text[first:mutant.start] + plain(text, mutant) + text[mutant.end:last]
    return tuple(" ".join(t.split()) for t in (before, after))


def woven(text, chosen):
    """The text with all of `chosen` ({number: mutant}), and where each lies in it: {number: (start, end)}."""
    order = sorted(chosen.items(), key=lambda item: (item[1].start, -item[1].end))
    where, out = {}, []
    size = [0]

    def put(piece):
        out.append(piece)
        size[0] += len(piece)

    def write(start, end, inner):
        at = start
        while inner:
            number_, m = inner.pop(0)
            put(text[at:m.start])
            within = []
            while inner and inner[0][1].start < m.end:
                within.append(inner.pop(0))
            began = size[0]
            if m.kind == "dropped":
                put("{ if (!trn_mutant(%d)) " % number_)
                write(m.start, m.end, within)
                put(" }")
            elif m.kind == "negated":
                put("(trn_mutant(%d) != !!(" % number_)
                write(m.start, m.end, within)
                put("))")
            else:
                put("(trn_mutant(%d) ? (%s) : (" % (number_, plain(text, m)))
                write(m.start, m.end, within)
                put("))")
            where[number_] = (began, size[0])
            at = m.end
        put(text[at:end])

    write(0, len(text), order)
    return "".join(out), where
