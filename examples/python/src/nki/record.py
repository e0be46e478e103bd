"""NKIObject: what the classes of kernels derive from. Its objects are records, filled by keyword.

Kernels call their classes with keywords, whatever stands in the class: annotated fields, plain attributes with a
default, a field that a call leaves out. NKI's compiler takes a call's keywords as the object's attributes; so does
this, where the class's own __init__ (or that which @dataclass makes) would not take them.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import copy
import dataclasses
import inspect
from typing import Any


def _own_init(cls: type) -> bool:
    """Whether somebody wrote this class's __init__; @dataclass's says so in the name of its file."""
    init = getattr(cls, "__init__")
    return init is not object.__init__ and getattr(getattr(init, "__code__", None), "co_filename", "") != "<string>"


def _fits(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    init = getattr(cls, "__init__")
    if init is object.__init__:
        return not args and not kwargs
    try:
        inspect.signature(init).bind(None, *args, **kwargs)
    except TypeError:
        return False
    return True


def _names(cls: type) -> list[str]:
    """Annotated fields, those of base classes first."""
    found: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        found.update(dict.fromkeys(base.__dict__.get("__annotations__", {})))
    return list(found)


class _Record(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if _own_init(cls) or _fits(cls, args, kwargs):
            return super().__call__(*args, **kwargs)
        made: Any = getattr(cls, "__new__")(cls)
        for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
            if field.default_factory is not dataclasses.MISSING:
                object.__setattr__(made, field.name, field.default_factory())
        values = dict(zip(_names(cls), args), **kwargs)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        for name in _names(cls):
            if name not in values and not hasattr(made, name):
                object.__setattr__(made, name, None)
            elif name not in values and isinstance(made.__dict__.get(name, getattr(made, name)), (list, dict, set)):
                object.__setattr__(made, name, copy.copy(getattr(made, name)))
        if hasattr(made, "__post_init__"):
            made.__post_init__()
        return made


class NKIObject(metaclass=_Record):
    """A record: its keywords are its attributes."""
