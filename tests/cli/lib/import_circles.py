"""Modules that import each other, each circle as a line "a -> b -> a"; status 1 if there is one. An import counts wherever
it stands, also in a function. Usage: import_circles.py FOLDER-OF-PACKAGES. Run by tests/cli/types.sh."""
import ast
import sys
from pathlib import Path


def modules(root):
    """Names and files below root; a stub stands for a module that is compiled."""
    found = {}
    for path in sorted([*root.rglob("*.pyi"), *root.rglob("*.py")]):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name, path, known):
    """Which of the known modules this one imports."""
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) - node.level + 1] if node.level else []
            base = ".".join(above + ([node.module] if node.module else []))
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in known else base


def circles(edges):
    """Each circle that a walk through all modules closes."""
    done, way = set(), []

    def walk(name):
        if name in way:
            yield way[way.index(name):] + [name]
        elif name not in done:
            way.append(name)
            for other in sorted(edges[name]):
                yield from walk(other)
            way.pop()
            done.add(name)

    for name in edges:
        yield from walk(name)


def main(folder):
    known = modules(Path(folder))
    edges = {name: {other for other in imported(name, path, known) if other in known and other != name}
             for name, path in known.items()}
    found = list(circles(edges))
    for way in found:
        print(" -> ".join(way))
    print(f"{len(known)} modules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
