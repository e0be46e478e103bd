#!/usr/bin/env python3
"""The headers as Doxygen reads them, so that they keep plain comments. Run by scripts/docs.sh, once for all of them
(an INPUT_FILTER would run for every #include of every header: four minutes instead of seconds).

    python3 filter.py DIRECTORY              writes trnmath/ there, its comments in Doxygen's words, and the
                                             list of what Doxygen is to read: the doors and their parts
    python3 filter.py trnmath/trn_plan.h     one header, to standard output, to see what happens to it
    python3 filter.py --names                every public function and type, as the doors' CONTENTS have them

A door becomes a group, whose page has the opening comment; a part's names go to its door's group. A comment right
before a declaration, or behind a member, becomes that one's. Public names become links, wherever a comment has them.
The line numbers of code change; nothing else of it does. SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "trnmath"
PART = re.compile(r"^ \* A part of (trn_[a-z0-9_]+)\.h\.")
SECTION = re.compile(r"^(DOES NOT|DOES|KNOWN FROM|CONTENTS[^:]*|Presets):? ?(.*)$")
BANNER = re.compile(r"^---- (.*?) ----(?: (?=\S))?")


def inputs():
    doors = sorted(HEADERS.glob("trn_*.h"))
    found = [path for path in sorted(HEADERS.glob("*/*.h")) if PART.match(path.read_text().split("\n")[1])]
    return doors + found


def public_names():
    names = set()
    for path in HEADERS.glob("trn_*.h"):
        contents = path.read_text().split("* CONTENTS", 1)[1].split("\n *\n")[0].split("*/")[0]
        for line in contents.split("\n"):
            words = re.match(r" \*     ((?:trn|TRN)_.*?)(?:   *\S.*)?$", line)
            names.update(re.findall(r"\btrn_[a-z0-9_]+\b(?![<*])", words.group(1)) if words else [])
    return sorted(names)


# ---- prose ----

class Writer:
    """Text of a comment in Doxygen's words: its special characters are only characters, known names are links."""

    def __init__(self, names):
        self.names = names

    def escaped(self, text):
        text = re.sub(r"[\\@<>&$#%\"~]", lambda c: "\\" + c.group(), text).replace("::", "\\::")
        text = re.sub(r"`([^`]+)`", r"<tt>\1</tt>", text)
        text = re.sub(r"^(\s*)([-*+]|\d+[.)]) ", r"\1&zwj;\2 ", text)  # no list begins here
        return re.sub(r"\btrn_[a-z0-9_]+\b(?!\.h)", self.linked, text)

    def linked(self, match):
        name = match.group()
        if name not in self.names:
            return "%" + name
        called = match.string[match.end():match.end() + 1] == "("  # "#" would take the arguments for types
        return f'@ref {name} "{name}"' if called else "#" + name

    def prose(self, lines):
        """Paragraphs; lines with columns, and what is indented below them, keep their places."""
        out, table, deep = [], False, 0
        for line in lines + [""]:
            indent = len(line) - len(line.lstrip())
            columns = re.search(r"[^\s.] {2,}\S", line.strip())
            keeps = bool(line.strip()) and (bool(columns) or (table and indent > deep))
            if keeps and not table:
                out.append("<pre>")
                deep = indent
            if table and not keeps:
                out.append("</pre>")
            table = keeps
            out.append(self.escaped(line) if keeps else self.escaped(line.strip()))
        return out


# ---- the opening comment ----

def sentence_of(lines):
    """What the header is: from its name to the licence."""
    text = " ".join(line.lstrip(" *").strip() for line in lines[:3]).split(" - ", 1)[1]
    return re.split(r" *(?:SPDX|A part of trn_)", text)[0]


def opening(path, lines, writer):
    """The header's first comment, as a group or as an addition to one."""
    part = PART.match(lines[1] if len(lines) > 1 else "")
    name = path.name[:-2]
    group = part.group(1) if part else name
    relative = path.relative_to(HEADERS).as_posix()
    text = [re.sub(r"^ \*(?: |$)", "", line) for line in lines]
    sentence = sentence_of(text)
    heading = [f"@addtogroup {group}", "@anchor part_" + name, f"@par {relative}: {writer.escaped(sentence)}"]
    if not part:
        heading = [f"@defgroup {group} {path.name}", f"@brief {writer.escaped(sentence)}", "",
                   f"@par \"\\#include \\<trnmath/{path.name}\\>\""]
    return ["/** " + heading[0]] + heading[1:] + body_of_opening(text[1:], writer) + ["*/"], group


def body_of_opening(text, writer):
    out, block, contents = [], [], False

    def flush():
        out.extend(["<pre>"] + [writer.escaped(line) for line in block] + ["</pre>"] if contents else writer.prose(block))
        block.clear()

    code = shown = False
    for line in text:
        line = line.replace("*/", "").rstrip()
        if code:
            if line.startswith("    "):
                out.append(line[4:])
                continue
            out.append("@endcode")
            code = False
        if not shown and line.startswith("    #include"):
            out += ["@code{.c}", line[4:]]
            code = shown = True
            continue
        section = SECTION.match(line)
        if section:
            flush()
            contents = section.group(1).startswith("CONTENTS")
            out += ["", f"@par {section.group(1)}"]
            line = section.group(2)
        elif not line.strip():
            flush()
            out.append("@par" if out and not contents and out[-1] == "" else "")
            contents = False
            continue
        if not (contents and re.match(r" +(trni|TRNI)_", line)) and "SPDX-License-Identifier" not in line:
            block.append(line)
    flush()
    return [line for line in out if line != "@par"]


# ---- other comments ----

def declares(lines, i):
    """Is the line after a comment one that a comment may belong to?"""
    return i < len(lines) and lines[i].strip() and not re.match(r"\s*(/\*|\}|#\s*(?!define TRN_)|#undef|#define TRNI_)", lines[i])


def comment(indent, text, behind, writer):
    mark = "/**<" if behind else "/**"
    out = writer.prose(text)
    while out and not out[-1]:
        out.pop()
    out[0] = f"{indent}{mark} {out[0]}" if out[0] != "<pre>" else f"{indent}{mark} \n<pre>"
    out[-1] += " */"
    return out


def convert(path, names):
    lines = path.read_text(encoding="utf-8").split("\n")
    writer = Writer(names)
    end = next(i for i, line in enumerate(lines) if "*/" in line)
    out, group = opening(path, lines[:end + 1], writer)
    out.append(f"/** @addtogroup {group}\n@{{ */")
    i = end + 1
    while i < len(lines):
        line = lines[i]
        at = line.find("/*")
        if at < 0 or re.search(r'"[^"]*/\*[^"]*"', line) or line.rstrip().endswith("\\"):
            out.append(line)
            i += 1
            continue
        last = i
        while "*/" not in (lines[last][at:] if last == i else lines[last]):
            last += 1
        before, behind = line[:at], lines[last].split("*/", 1)[1] if last > i else line[at:].split("*/", 1)[1]
        text = [line[at + 2:]] + [re.sub(r"^\s*\*? ?", "", more) for more in lines[i + 1:last + 1]]
        text[-1] = text[-1].rsplit("*/", 1)[0].rstrip()
        text[0] = text[0].split("*/")[0].strip()
        i = last + 1
        banner = BANNER.match(text[0])
        if re.match(r"\s*#(?!define TRN_)", before):
            out.append(before)
        elif behind.strip() or (not before.strip() and not banner and not declares(lines, i)):
            out.extend([before + behind] if behind.strip() else [])
        elif banner:
            rest = [text[0][banner.end():]] + text[1:]
            if any(rest):
                out += ["/** @} */", f"/** @addtogroup {group}", f"@par {writer.escaped(banner.group(1))}"] + \
                    writer.prose(rest) + ["@{ */"]
        elif before.strip():
            shown = comment("", text, True, writer)
            out += [before.rstrip() + " " + shown[0]] + shown[1:]
        else:
            out += comment(before, text, False, writer)
    out.append("/** @} */")
    return "\n".join(public(line) for line in once_each(out, path.stem)) + "\n"


def once_each(lines, stem):
    """Doxygen's preprocessor expands a macro that is defined a second time no more: each gets a name of its own."""
    times = 0
    for line in lines:
        times += line.startswith("#define TRNI_X(")
        if not line.startswith("#undef TRNI_X"):
            yield re.sub(r"\bTRNI_X\b", f"TRNI_X_{stem}_{times}", line)


def public(line):
    """Without private members of a public struct and private values of an enumeration; a size of a private name is
    left out."""
    if re.match(r"    (const |struct )*trni_\w+ .*;", line):
        return ""
    if re.match(r"(typedef )?enum.*\{|    (TRNI?_\w+( = [^;]*)?(, )?)+,?( |$)", line):
        line = re.sub(r",? *\bTRNI_(?!X_)\w+\b( = [^,}/]*)?(?=[, }]|$)", "", line).replace("{,", "{ ")
        line = re.sub(r"^enum \{ *\};.*|^, /\*\*<.*", "", line)
    return re.sub(r"\[TRNI_\w+\]", "[]", line)


def main_page(names):
    """The umbrella's opening: a row for each door, under its floor."""
    writer, out, floor = Writer(names), ["/** @mainpage", "@brief The Trainium you can \\#include", ""], None
    for line in (HEADERS / "trnmath.h").read_text(encoding="utf-8").split("*/")[0].split("\n"):
        row = re.match(r" \*     ([a-z]+)?\s+(trn_[a-z_]+\.h.*)$", line)
        for door in re.findall(r"trn_[a-z_]+(?=\.h)", row.group(2)) if row else []:
            if row.group(1) and row.group(1) != floor:
                floor = row.group(1)
                out.append(f"@par {floor}")
            sentence = sentence_of((HEADERS / f"{door}.h").read_text(encoding="utf-8").split("\n", 3))
            out.append(f"- @ref {door} \"{door}.h\": {writer.escaped(sentence)}")
    return "\n".join(out + ["*/", ""])


def write_all(directory):
    names, read = set(public_names()), set(inputs())
    (directory / "main.dox").write_text(main_page(names), encoding="utf-8")
    for path in sorted(HEADERS.rglob("*.h")):
        relative = path.relative_to(HEADERS)
        if relative.parts[0] == "forward":
            continue
        target = directory / "trnmath" / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(convert(path, names) if path in read else path.read_text(encoding="utf-8"), encoding="utf-8")
    print("main.dox\n" + "\n".join(f"trnmath/{path.relative_to(HEADERS).as_posix()}" for path in inputs()))


def main(argument):
    path = pathlib.Path(argument)
    if argument == "--names":
        print("\n".join(public_names()))
    elif path.suffix == ".h":
        sys.stdout.write(convert(path.resolve(), set(public_names())))
    else:
        write_all(path)


if __name__ == "__main__":
    main(sys.argv[1])
