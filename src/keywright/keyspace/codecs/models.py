"""Types that msgspec does not know: models of Pydantic are written as it dumps them, others are refused.

Pydantic is recognised by its methods and never imported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["dumped", "foreign_types", "is_model", "loaded"]


def is_model(kind: object) -> bool:
    """Return whether a class is a model of Pydantic."""
    return isinstance(kind, type) and hasattr(kind, "model_validate_json") and hasattr(kind, "model_dump")


def dumped(value: Any) -> Any:
    """Return a model as plain data: the hook of msgspec's encoders."""
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    raise NotImplementedError


def loaded(kind: Any, plain: Any) -> Any:
    """Return a model from plain data: the hook of msgspec's decoders."""
    if kind is object:
        return plain
    if is_model(kind):
        # As JSON: a strict model takes a time or an enum from text there only.
        return kind.model_validate_json(msgspec.json.encode(plain))
    raise NotImplementedError


def foreign_types(hint: Any) -> list[Any]:
    """Return the types inside a hint that neither msgspec nor the hooks can write."""
    custom = [
        kind.cls for kind in _walked(inspect.type_info(hint), set()) if type(kind) is inspect.CustomType
    ]
    return [kind for kind in custom if not (kind is object or is_model(kind))]


def _walked(node: Any, seen: set[int]) -> Iterator[inspect.Type]:
    if isinstance(node, tuple):
        for each in node:
            yield from _walked(each, seen)
    elif isinstance(node, inspect.Type | inspect.Field) and id(node) not in seen:
        seen.add(id(node))
        if isinstance(node, inspect.Type):
            yield node
        for name in node.__struct_fields__:
            yield from _walked(getattr(node, name), seen)
