"""Tensors and codes in a debugger, as numbers.

    (gdb)  source scripts/debugger.py                    or in ~/.gdbinit
    (lldb) command script import scripts/debugger.py     or in ~/.lldbinit

A trn_tensor then prints as its format, its shape and its numbers, of whatever strides. `trn EXPRESSION FORMAT [COUNT]`
prints an array of codes: trn weights bf16 16. Formats are read from trnmath/number/format.h beside this file.
SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import itertools
import os
import re
import struct

MOST = 64  # numbers that are shown of a tensor

try:
    import gdb
except ImportError:
    gdb = None
try:
    import lldb
except ImportError:
    lldb = None


# ---- formats ----

class Format:
    """A row of TRNI_FORMATS: how a code is read."""

    def __init__(self, row):
        self.id, self.name, words = row[0], row[1], row[4].split()
        self.names = {self.id.lower(), self.name, "trn_" + self.id.lower(), *words}
        self.kind = row[5]
        self.bits, self.exponent, self.mantissa, self.bias, self.zeros = (int(n) for n in row[6:11])
        self.largest, self.overflow, self.nan = (int(n, 0) for n in row[11:14])
        self.bytes = 4 if self.bits > 16 or self.zeros else 2 if self.bits > 8 else 1

    def number(self, code):
        """The number of a code; nan and infinities are Python's."""
        if self.kind == "UNSIGNED":
            return code
        if self.kind == "SIGNED":
            return code - (1 << self.bits) if code >> (self.bits - 1) else code
        if self.kind == "SCALE":
            return float("nan") if code == self.nan else 2.0 ** (code - self.bias)
        code >>= self.zeros
        width = self.exponent + self.mantissa
        size = self._size(code & ((1 << width) - 1))
        return -size if code >> width & 1 else size

    def _size(self, code):
        if code > self.largest:
            return float("inf") if code == self.overflow != self.nan else float("nan")
        exponent, fraction = code >> self.mantissa, code & ((1 << self.mantissa) - 1)
        whole = fraction if exponent == 0 else fraction + (1 << self.mantissa)
        return whole * 2.0 ** (max(exponent, 1) - self.bias - self.mantissa)


def formats():
    """All of them, in the order of the enumeration."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "trnmath", "number", "format.h")
    with open(path, encoding="utf-8") as file:
        text = file.read().split("#define TRNI_FORMATS(X)")[1].split("/* clang-format on */")[0].replace("\\\n", " ")
    rows = re.findall(r"X\(([^()]*)\)", text)
    return [Format([cell.strip().strip('"') for cell in row.split(",")]) for row in rows]


FORMATS = formats()


def named(word):
    for one in FORMATS:
        if word.lower() in one.names:
            return one
    raise ValueError(f"there is no format '{word}'; there are {', '.join(f.name for f in FORMATS)}")


# ---- tensors ----

def decoded(one, data):
    letter = {1: "B", 2: "<H", 4: "<I"}[one.bytes]
    return one.number(struct.unpack(letter, data)[0])


def shown(number):
    return str(number) if isinstance(number, int) else f"{number:.9g}"


def nested(texts, shape):
    """{{1, 2}, {3, 4}}: texts in order, as far as they go."""
    parts = []
    for _ in range(shape[0]):
        part = nested(texts, shape[1:]) if len(shape) > 1 else next(texts, "...")
        parts.append("..." if part in ("...", "{...}") else part)
        if parts[-1] == "...":
            break
    return "{" + ", ".join(parts) + "}"


def tensor_text(format_number, rank, shape, stride, read, default_cfp8):
    """read(offset in bytes, bytes) -> bytes, which may raise."""
    if rank == 0:
        return "no tensor"
    if not 0 < format_number <= len(FORMATS) or not 0 < rank <= len(shape):
        return f"a trn_tensor that is none: format {format_number}, rank {rank}"
    one, shape, stride = FORMATS[format_number - 1], shape[:rank], stride[:rank]
    head = f"{one.name} [{', '.join(map(str, shape))}]"
    if one.id == "CFP8" and not default_cfp8:
        return f"{head}, a format of its own"
    if not any(stride):
        stride = [1] * rank
        for axis in range(rank - 2, -1, -1):
            stride[axis] = stride[axis + 1] * shape[axis + 1]
    places = itertools.islice(itertools.product(*(range(n) for n in shape)), MOST)
    try:
        offsets = [one.bytes * sum(i * s for i, s in zip(at, stride)) for at in places]
        texts = [shown(decoded(one, read(offset, one.bytes))) for offset in offsets]
    except Exception as trouble:
        return f"{head}, whose memory cannot be read ({str(trouble).rstrip('.')})"
    return f"{head} = {nested(iter(texts), shape)}"


def array_text(word, count, read):
    one = named(word)
    return "{" + ", ".join(shown(decoded(one, read(one.bytes * i, one.bytes))) for i in range(count)) + "}"


# ---- gdb ----

if gdb is not None:
    def _reader(address):
        inferior = gdb.selected_inferior()
        return lambda offset, size: bytes(inferior.read_memory(address + offset, size))

    class TensorPrinter:
        def __init__(self, value):
            self.value = value

        def to_string(self):
            v = self.value
            most = v["shape"].type.range()[1] + 1
            shape, stride = ([int(v[name][i]) for i in range(most)] for name in ("shape", "stride"))
            default = not int(v["cfp8"]["exponent_bits"]) and not int(v["cfp8"]["bias"])
            return tensor_text(int(v["format"]), int(v["rank"]), shape, stride, _reader(int(v["data"])), default)

    def _printer(value):
        kind = value.type.strip_typedefs()
        return TensorPrinter(value) if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag == "trn_tensor" else None

    class ArrayCommand(gdb.Command):
        """trn EXPRESSION FORMAT [COUNT]: an array of codes as numbers; trn weights bf16 16."""

        def __init__(self):
            super().__init__("trn", gdb.COMMAND_DATA)

        def invoke(self, argument, from_tty):
            words = gdb.string_to_argv(argument)
            if len(words) not in (2, 3):
                raise gdb.GdbError("usage: trn EXPRESSION FORMAT [COUNT]")
            value = gdb.parse_and_eval(words[0])
            is_array = value.type.strip_typedefs().code == gdb.TYPE_CODE_ARRAY
            try:
                count = int(words[2], 0) if len(words) == 3 else (value.type.range()[1] + 1 if is_array else 8)
                print(array_text(words[1], count, _reader(int(value.address if is_array else value))))
            except ValueError as trouble:
                raise gdb.GdbError(str(trouble)) from None

    gdb.pretty_printers.append(_printer)
    ArrayCommand()


# ---- lldb ----

if lldb is not None:
    def _process_reader(process, address):
        def read(offset, size):
            error = lldb.SBError()
            data = process.ReadMemory(address + offset, size, error)
            if not error.Success():
                raise ValueError(str(error))
            return data
        return read

    def tensor_summary(value, unused):
        v = value.GetNonSyntheticValue()

        def numbers(name):
            array = v.GetChildMemberWithName(name)
            return [array.GetChildAtIndex(i).GetValueAsSigned() for i in range(array.GetNumChildren())]
        cfp8 = v.GetChildMemberWithName("cfp8")
        default = not any(cfp8.GetChildMemberWithName(n).GetValueAsSigned() for n in ("exponent_bits", "bias"))
        return tensor_text(v.GetChildMemberWithName("format").GetValueAsSigned(),
                           v.GetChildMemberWithName("rank").GetValueAsSigned(), numbers("shape"), numbers("stride"),
                           _process_reader(v.GetProcess(), v.GetChildMemberWithName("data").GetValueAsUnsigned()),
                           default)

    def array_command(debugger, command, context, result, unused):
        words = command.split()
        if len(words) not in (2, 3):
            return result.SetError("usage: trn EXPRESSION FORMAT [COUNT]")
        value = context.GetFrame().EvaluateExpression(words[0])
        if not value.GetError().Success():
            return result.SetError(str(value.GetError()))
        is_array = value.GetType().GetCanonicalType().IsArrayType()
        address = value.GetLoadAddress() if is_array else value.GetValueAsUnsigned()
        try:
            count = int(words[2], 0) if len(words) == 3 else (value.GetNumChildren() if is_array else 8)
            print(array_text(words[1], count, _process_reader(context.GetProcess(), address)), file=result)
        except ValueError as trouble:
            result.SetError(str(trouble))
        return None

    def __lldb_init_module(debugger, unused):
        debugger.HandleCommand(f"type summary add --python-function {__name__}.tensor_summary trn_tensor")
        debugger.HandleCommand(f"command script add -f {__name__}.array_command trn")
