"""A page of all pictures that the tools draw, each with the command that drew it and with what it says in words.

    python3 gallery.py pictures.tsv

A row of pictures.tsv is a file beside it, what the file shows, and the command. index.html comes beside it, too, and
each picture of a report (.html) as a file of its own: plan-1.svg, plan-2.svg, ... Pictures are dark where the reader's
screen is. SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import base64
import html
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #fff; --line: #d0d7de; --code: #f3f5f7 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --soft: #a0a9b4; --paper: #111418; --line: #363d46; --code: #1b2027 } }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif }
h1 { font-size: 1.7rem; margin: 0 0 .5rem } h2 { font-size: 1.15rem; margin: 0 0 .25rem }
section { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1.5rem }
a { color: inherit } p { margin: .5rem 0 } nav ul { columns: 18rem; padding-left: 1.2rem }
code, pre { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--code) }
code { overflow-wrap: anywhere } pre { margin: .5rem 0; padding: .6rem .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere; border-radius: 4px }
section div { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 28rem), 1fr)); gap: 1rem }
figure { margin: .5rem 0; min-width: 0 }
img { display: block; width: auto; height: auto; max-width: 100%; max-height: 40rem; border-radius: 4px }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .3rem }
"""
OPENING = """<h1>Pictures that the tools of trnmath draw</h1>
<p>Each stands below the command that drew it. Run a command in this folder, where its inputs are: in a checkout
<code>shardplan</code> is <code>scripts/tool.sh shardplan</code>, <code>trnbench</code> is
<code>scripts/bench.sh</code>, <code>conformance</code> is <code>scripts/conformance.sh</code>, and <code>kernels/run</code> is <code>scripts/bench.sh
kernels</code>, and <code>python3</code> <code>scripts/tool.sh python3</code>. The pictures are light or dark as the screen is. Not affiliated with AWS.</p>
"""


# ---- the pictures of a report ----

def rules(sheet: str) -> list[str]:
    """The rules of a style sheet, @media whole."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(sheet):
        depth += (letter == "{") - (letter == "}")
        if letter == "}" and depth == 0:
            found.append(sheet[start:at + 1].strip())
            start = at + 1
    return found


def style_of(report: str) -> str:
    """What its sheet says of colours and of what is in pictures."""
    sheet = re.search("<style>(.*?)</style>", report, re.DOTALL)
    kept = [r for r in rules(sheet.group(1) if sheet else "")
            if r.startswith((":root", "svg.", "svg ", ".small", "@media screen"))]
    return "".join(kept) + "svg{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;background:var(--card)}"


def as_file(svg: str, style: str) -> str:
    """A picture of a page as a file: HTML's attributes get their quotes, and the page's style comes along."""
    svg = re.sub(r"<[^<>]+>", lambda tag: re.sub(r"=([^\s\"'<>=/]+)(?=[\s/>])", r'="\1"', tag.group()), svg)
    svg = re.sub(r"^(<svg[^>]*?) style='[^']*'", r"\1", svg)
    width, height = size_of(svg)
    space = "" if "xmlns" in svg.partition(">")[0] else ' xmlns="http://www.w3.org/2000/svg"'
    svg = svg.replace("<svg", f'<svg{space} width="{width}" height="{height}"', 1)
    return re.sub(r"</desc>|</title>", lambda end: f"{end.group()}<style>{style}</style>", svg, count=1)


def pictures_of(report: str) -> list[str]:
    """Those that lie in the page, of several widths of a chart one, and those that it carries as files."""
    style = style_of(report)
    drawn = [as_file(svg, style) for svg in re.findall(r"<svg.*?</svg>", report, re.DOTALL)
             if not re.match(r'<svg class="chart w[013]"', svg)]
    carried = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", report)
    return list(dict.fromkeys(drawn + [base64.b64decode(data).decode() for data in carried]))


def pictures(path: Path) -> list[Path]:
    """Files, which are made where the pictures lie in a report."""
    if path.suffix == ".svg":
        return [path]
    made = []
    for number, svg in enumerate(pictures_of(path.read_text(encoding="utf-8")), 1):
        made.append(path.with_name(f"{path.stem}-{number}.svg"))
        made[-1].write_text(svg, encoding="utf-8")
    return made


# ---- the page ----

def size_of(svg: str) -> tuple[int, int]:
    """Of a picture, in pixels."""
    found = re.search(r"viewBox=[\"'][-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)", svg)
    if not found:
        raise SystemExit(f"gallery.py: a picture has no viewBox: {svg[:80]}")
    return round(float(found.group(1))), round(float(found.group(2)))


def figure(path: Path) -> str:
    """Its title and words are the alternative; below it stands the title, for those who see the picture."""
    root = ElementTree.fromstring(path.read_bytes())  # well formed, or a browser shows nothing
    title, words = (" ".join((root.findtext(f"{{*}}{tag}") or "").split()) for tag in ("title", "desc"))
    if not title:
        raise SystemExit(f"gallery.py: {path.name} has no title")
    width, height = size_of(path.read_text(encoding="utf-8"))
    alt = html.escape(f"{title}: {words}" if words else title)
    return (f'<figure><a href="{path.name}"><img src="{path.name}" width="{width}" height="{height}" loading="lazy" '
            f'alt="{alt}"></a><figcaption>{html.escape(title)}</figcaption></figure>\n')


def section(path: Path, shows: str, command: str) -> str:
    """One command, and what it drew."""
    name = html.escape(path.stem)
    report = "" if path.suffix == ".svg" else f'<p><a href="{path.name}">The whole report, {path.name}</a></p>\n'
    return (f'<section id="{name}"><h2>{html.escape(shows[:1].upper() + shows[1:])}</h2>\n'
            f"<pre>{html.escape(command)}</pre>\n{report}"
            f"<div>{''.join(figure(one) for one in pictures(path))}</div></section>\n")


def page(listing: Path) -> str:
    """The page of all rows."""
    rows = [line.split("\t") for line in listing.read_text(encoding="utf-8").splitlines()]
    links = "".join(f'<li><a href="#{html.escape(Path(file).stem)}">{html.escape(shows)}</a></li>\n'
                    for file, shows, _ in rows)
    sections = "".join(section(listing.parent / file, shows, command) for file, shows, command in rows)
    return ("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            f"<title>Pictures of trnmath's tools</title>\n<style>{STYLE}</style></head>\n<body><main>\n{OPENING}"
            f"<nav aria-label=\"Pictures\"><ul>\n{links}</ul></nav>\n{sections}</main></body></html>\n")


if __name__ == "__main__":
    Path(sys.argv[1]).with_name("index.html").write_text(page(Path(sys.argv[1])), encoding="utf-8")
