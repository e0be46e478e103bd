"""A stub says what its module has: the same public names, and of each function the same parameters and defaults, and
options of the same names. Usage: check_stub.py MODULE STUB, where the module can be imported. Run by tests/cli/pip.sh.
"""
import ast
import importlib
import inspect
import sys


def public(module):
    """The names that the module itself defines for others."""
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    return {name for name in own if not name.startswith("_")} | {"__version__"}


def stubbed(tree):
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def parameters(node):
    """(name, default or nothing) of a function's node, in order; "**name" for what takes the rest."""
    args = node.args
    defaults = [inspect.Parameter.empty] * (len(args.args) - len(args.defaults)) + \
        [ast.literal_eval(value) for value in args.defaults]
    rest = [("**" + args.kwarg.arg, inspect.Parameter.empty)] if args.kwarg else []
    return [(a.arg, d) for a, d in zip(args.args, defaults)] + rest


def parameters_of(function):
    named = inspect.signature(function).parameters.values()
    return [(("**" if p.kind is p.VAR_KEYWORD else "") + p.name, p.default) for p in named]


def main(name, path):
    module = importlib.import_module(name)
    with open(path, encoding="utf-8") as file:
        stub = stubbed(ast.parse(file.read()))
    names = {name for name in stub if not name.startswith("_") or name == "__version__"}
    assert names == public(module), f"only one of stub and module has {sorted(names ^ public(module))}"
    for name, node in stub.items():
        if isinstance(node, ast.FunctionDef):
            assert parameters(node) == parameters_of(getattr(module, name)), \
                f"{name}: the stub has {parameters(node)}, the module {parameters_of(getattr(module, name))}"
            assert node.returns is not None and all(a.annotation for a in node.args.args), f"{name} lacks a type"
            assert inspect.getdoc(getattr(module, name)), f"{name} has no docstring"
    fields = {f.target.id for f in stub["_Common"].body}
    assert fields == set(inspect.signature(module._options).parameters), "the stub's options are others"
    cost = {f.target.id for f in stub["_Cost"].body}
    assert cost == {field for field, _ in module._Answer._fields_}, "the stub's costs are others"
    print(f"{len(names)} names")


if __name__ == "__main__":
    main(*sys.argv[1:])
