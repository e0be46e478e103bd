"""Executes notebooks, and compares what each cell prints with what the file holds; a difference is printed as one.

    notebooks.py FILE...            status 1 if an output is another, or a notebook is not as it should be
    notebooks.py --write FILE...    puts the outputs of this run into the files
    notebooks.py --look FILE...     looks at the files alone: valid, small, no counts, no paths, no trace of a machine

Needs nbformat, and to execute nbclient and ipykernel (Debian: python3-nbclient python3-ipykernel). Kernels import what
PYTHONPATH names. Text is compared; pictures are not, and none is kept. Run by tests/cli/notebooks.sh.
"""
from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

MOST_BYTES, CELLS = 60 * 1024, range(8, 15)
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
PATHS = re.compile(r"/(home|tmp|root|usr|work|var|Users|build)/|ipykernel_|site-packages|0x[0-9a-f]{6,}")


def text_of(cell: Any) -> str:
    """What a cell prints and returns, in order."""
    parts = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type in ("execute_result", "display_data"):
            parts.append(output.data.get("text/plain", "") + "\n")
        else:
            parts.append(f"{output.ename}: {output.evalue}\n")
    return "".join(parts)


def wrong(path: Path, book: Any) -> Iterator[str]:
    """What a stored notebook must not have."""
    try:
        nbformat.validate(book)
    except nbformat.ValidationError as trouble:
        yield f"it is not valid: {trouble.message}"
    if path.stat().st_size > MOST_BYTES:
        yield f"it has {path.stat().st_size} bytes, at most {MOST_BYTES} are wanted"
    if book.metadata != METADATA:
        yield f"its metadata are {dict(book.metadata)}"
    if len(book.cells) not in CELLS:
        yield f"it has {len(book.cells)} cells"
    if not book.cells[0].source.startswith("# ") or "**Question:**" not in book.cells[0].source:
        yield "it does not begin with a title and a question"
    for number, cell in enumerate(book.cells, 1):
        if cell.metadata or cell.get("execution_count") is not None:
            yield f"cell {number} has metadata or a count"
        if PATHS.search(cell.source) or PATHS.search(text_of(cell)):
            yield f"cell {number} has a path or an address of a machine"
        for line in cell.source.splitlines():
            if len(line) > 120:
                yield f"cell {number} has a line of {len(line)} characters"
        if any(o.output_type != "stream" or o.name != "stdout" for o in cell.get("outputs", ())):
            yield f"cell {number} has an output that is no text on standard output"


def executed(books: list[Any]) -> list[Any]:
    """The notebooks with the outputs of a run, counts and times taken away. One kernel runs them one after the other,
    as a start takes longer than most of them; its variables are gone in between."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    fresh = [nbformat.from_dict(book) for book in books]
    whole = nbformat.v4.new_notebook()
    for book in fresh:
        whole.cells.append(nbformat.v4.new_code_cell("%reset -f"))
        whole.cells += book.cells
    for number, cell in enumerate(whole.cells):
        cell.id = f"cell-{number}"
    try:
        NotebookClient(whole, timeout=120, kernel_name="python3").execute()
    except CellExecutionError as trouble:
        raise SystemExit(f"a cell fails: {trouble}") from None
    for book in fresh:
        for number, cell in enumerate(book.cells, 1):
            cell.id, cell.metadata = f"cell-{number}", {}
            if cell.cell_type == "code":
                cell.execution_count = None
                said = text_of(cell)
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=said)] if said else []
        book.metadata = METADATA
    return fresh


def differences(stored: Any, fresh: Any) -> Iterator[str]:
    for number, (old, new) in enumerate(zip(stored.cells, fresh.cells), 1):
        yield from difflib.unified_diff(text_of(old).splitlines(), text_of(new).splitlines(), f"cell {number}, stored",
                                        f"cell {number}, now", lineterm="")


def main(arguments: list[str]) -> int:
    way = arguments.pop(0) if arguments and arguments[0].startswith("--") else ""
    if way not in ("", "--write", "--look") or not arguments:
        print(__doc__)
        return 2
    paths, status = [Path(name) for name in arguments], 0
    books = [nbformat.read(path, as_version=4) for path in paths]
    now = executed(books) if way != "--look" else books
    for path, book, fresh in zip(paths, books, now):
        if way == "--write":
            path.write_text(nbformat.writes(fresh, indent=1) + "\n", encoding="utf-8")
            book = fresh
        found = [f"{path.name}: {sentence}" for sentence in wrong(path, book)] + list(differences(book, fresh))
        print("\n".join(found) if found else f"{path.name}: {len(book.cells)} cells")
        status = status or bool(found)
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
