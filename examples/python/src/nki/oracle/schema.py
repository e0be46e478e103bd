"""What a request may be, by schema.json; as sentences. As much of JSON Schema as that file uses.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import functools
import json
import os
from typing import Any

VERSION = 1
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}


class Malformed(ValueError):
    """A request that is none, in a sentence."""


@functools.lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "schema.json"), encoding="utf-8") as file:
        made: dict[str, Any] = json.load(file)
    return made


def checked(value: Any, kind: str = "request") -> None:
    """Malformed, if this is no `kind`."""
    _check(value, schema()["$defs"][kind], f"the {kind}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name]) or (name == "integer" and isinstance(value, float) and value.is_integer())


def _check(value: Any, rule: dict[str, Any], place: str) -> None:
    if "$ref" in rule:
        return _check(value, schema()["$defs"][rule["$ref"].rpartition("/")[2]], place)
    if "anyOf" in rule:
        return _any_of(value, rule["anyOf"], place)
    types = rule.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        raise Malformed(f"{place} is {_shown(value)}, expected {_listed(types)}")
    if "const" in rule and value != rule["const"]:
        raise Malformed(f"{place} is {_shown(value)}, expected {rule['const']}")
    if "enum" in rule and not any(value == known and type(value) is type(known) for known in rule["enum"]):
        raise Malformed(f"{place} is {_shown(value)}, expected {_listed(rule['enum'])}")
    for limit in ("minimum", "maximum"):
        if limit in rule and isinstance(value, (int, float)) and not _within(value, limit, rule[limit]):
            raise Malformed(f"{place} is {_shown(value)}, the {limit} is {rule[limit]}")
    _sizes(value, rule, place)
    if isinstance(value, dict):
        _members(value, rule, place)
    elif isinstance(value, list) and "items" in rule:
        for n, item in enumerate(value):
            _check(item, rule["items"], f"{place}[{n}]")


def _listed(names: list[Any]) -> str:
    said = [str(n) for n in names]
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + " or " + said[-1]


def _within(value: float, limit: str, bound: float) -> bool:
    return value >= bound if limit == "minimum" else value <= bound


def _sizes(value: Any, rule: dict[str, Any], place: str) -> None:
    of, unit = ("Items", "items") if isinstance(value, list) else ("Length", "characters")
    if not isinstance(value, (list, str)):
        return
    if len(value) < rule.get(f"min{of}", 0):
        raise Malformed(f"{place} has {len(value)} {unit}, at least {rule[f'min{of}']} are needed")
    if len(value) > rule.get(f"max{of}", len(value)):
        raise Malformed(f"{place} has {len(value)} {unit}, at most {rule[f'max{of}']} are taken")


def _members(value: dict[str, Any], rule: dict[str, Any], place: str) -> None:
    known = rule.get("properties", {})
    for name in rule.get("required", ()):
        if name not in value:
            raise Malformed(f"{place} has no '{name}'")
    for name, item in value.items():
        if name in known:
            _check(item, known[name], name if place.startswith("the ") else f"{place}.{name}")
        elif rule.get("additionalProperties") is False:
            raise Malformed(f"{place} has '{_shown(name)[1:-1]}', which is none of {', '.join(known)}")


def _any_of(value: Any, rules: list[dict[str, Any]], place: str) -> None:
    """The sentence of the alternative that means such a value."""
    defs = schema()["$defs"]
    for rule in rules:
        whole = defs[rule["$ref"].rpartition("/")[2]] if "$ref" in rule else rule
        types = [whole["type"]] if isinstance(whole["type"], str) else whole["type"]
        wanted = whole.get("required", [])
        if any(_is(value, name) for name in types) and (not wanted or any(name in value for name in wanted)):
            return _check(value, whole, place)
    raise Malformed(f"{place} is {_shown(value)}, expected {{\"shape\": ...}}, {{\"npy\": ...}}, a number or a list")
