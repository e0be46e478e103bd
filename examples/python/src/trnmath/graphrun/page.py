"""The report as one page: what parts where, the graph's operations along a line, and each with links to its operands.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import html
import math
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #fff; --line: #d0d7de; --shadow: #1b1d2238; --own: #c9510a; --all: #1855b3;
  --bad: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #a0a9b4; --paper: #111418; --line: #363d46; --shadow: #000000b0;
  --own: #f5a04a; --all: #7ca8fd; --bad: #ff8d84 } }
body { margin: 0 auto; max-width: 72rem; padding: 2rem 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { margin: .4rem 0; overflow-wrap: anywhere } a { color: inherit } .soft { color: var(--soft) }
svg { display: block; width: 100%; min-width: 900px; height: auto } svg text { fill: var(--soft); font-size: 14px }
.scroll { overflow-x: auto; background: linear-gradient(to right, var(--paper) 40%, transparent) left/48px 100% local,
  linear-gradient(to left, var(--paper) 40%, transparent) right/48px 100% local,
  linear-gradient(to right, var(--shadow), transparent) left/18px 100%,
  linear-gradient(to left, var(--shadow), transparent) right/18px 100%; background-repeat: no-repeat }
table { border-collapse: collapse; font-size: 13px; width: 100% }
th, td { text-align: left; padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); white-space: nowrap }
td.r, th.r { text-align: right; font-variant-numeric: tabular-nums } tr:target { outline: 2px solid var(--all) }
.bug { color: var(--bad); font-weight: 600 }
"""


_SCROLL = '<div class="scroll" tabindex="0" role="region" aria-label="{}">'


def _id(name: str) -> str:
    return "op-" + "".join(c if c.isalnum() else "_" for c in name)


def _number(x: float) -> str:
    return f"{x:.2e}" if math.isfinite(x) else str(x)


def _chart(rows: list[dict[str, Any]]) -> str:
    """Each operation's own and whole error, on a scale of powers of ten."""
    shown = [(n, r) for n, r in enumerate(rows) if 0 < r["total"] < math.inf or 0 < r["own"] < math.inf]
    if not shown:
        return ""
    values = [v for _, r in shown for v in (r["own"], r["total"]) if 0 < v < math.inf]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) or 1
    high = max(high, low + 1)
    width, height, left = 1000, 240, 60
    x = lambda n: left + (width - left - 10) * (n + 0.5) / len(rows)
    y = lambda v: 10 + (height - 20) * (high - math.log10(v)) / (high - low)
    lines = [f'<line x1="{left}" x2="{width - 10}" y1="{y(10.0 ** e):.1f}" y2="{y(10.0 ** e):.1f}" stroke="var(--line)"/>'
             f'<text x="{left - 8}" y="{y(10.0 ** e) + 4:.1f}" text-anchor="end">1e{e}</text>'
             for e in range(low, high + 1, max(1, (high - low) // 6))]
    dots = []
    for n, r in shown:
        for key, colour, radius in (("total", "--all", 2.5), ("own", "--own", 3)):
            if 0 < r[key] < math.inf:
                dots.append(f'<circle cx="{x(n):.1f}" cy="{y(r[key]):.1f}" r="{radius}" fill="var({colour})"><title>'
                            f'{html.escape(r["name"])}, {r["kind"]}: {key} {_number(r[key])}</title></circle>')
    return (f'{_SCROLL.format("chart")}<svg viewBox="0 0 {width} {height}" role="img"><title>rel-L2 of each operation</title>'
            f"<desc>operations in their order from left to right; blue: from float64; orange: what the operation adds "
            f'itself</desc>{"".join(lines)}{"".join(dots)}</svg></div>'
            '<p class="soft">Operations in their order; blue: how far from float64, orange: what the operation adds.</p>')


def _table(heads: list[str], rows: list[list[str]], ids: list[str]) -> str:
    head = "".join(f'<th scope="col">{html.escape(h)}</th>' for h in heads)
    body = "".join(f'<tr id="{i}">' + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for i, row in zip(ids, rows))
    return f'{_SCROLL.format("operations")}<table><tr>{head}</tr>\n{body}</table></div>'


def _operations(said: dict[str, Any]) -> str:
    names = {r["name"] for r in said["rows"]}
    rows = []
    for r in said["rows"]:
        links = ", ".join(f'<a href="#{_id(b)}">{html.escape(b)}</a>' if b in names else html.escape(b) for b in r["before"][:6])
        rows.append([html.escape(r["name"]), r["kind"], html.escape(r["shape"][:60]), _number(r["own"]), _number(r["total"]),
                     str(r["line"]), links, html.escape(r["scope"][:80])])
    return _table(["operation", "kind", "result", "own", "total", "line", "operands", "scope"], rows,
                  [_id(r["name"]) for r in said["rows"]])


def _verdicts(said: dict[str, Any]) -> str:
    rows = [[html.escape(r["name"]), r["kind"], html.escape(r["shape"]), f'<span class="{r["verdict"]}">{r["verdict"]}</span>',
             _number(r["of_allowed"]), _number(r["rel_l2"]), str(r["line"]), html.escape(r["why"])] for r in said["rows"]]
    return _table(["operation", "kind", "result", "verdict", "of allowed", "rel-L2", "line", "why"], rows,
                  [_id(r["name"]) for r in said["rows"]])


def made(said: dict[str, Any], summary: str) -> str:
    """A whole page; summary: the lines that a terminal shows."""
    lines = "".join(f"<p>{html.escape(line)}</p>\n" for line in summary.split("\n") if not line.startswith("operation "))
    device = "device" in said
    return ("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
            f"content=\"width=device-width, initial-scale=1\"><title>graphrun: {html.escape(said['file'])}</title>"
            f"<style>{_STYLE}</style></head><body><main>\n<h1>{html.escape(said['file'])}</h1>\n{lines}"
            f"{'' if device else _chart(said['rows'])}\n<h2>Operations</h2>\n"
            f"{_verdicts(said) if device else _operations(said)}\n</main></body></html>\n")
