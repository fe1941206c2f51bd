"""Classes with fields, of four libraries: msgspec, dataclasses, attrs and Pydantic.

Classes of attrs and models of Pydantic are recognised by their attributes; neither is imported here. A model
is written as Pydantic dumps it, with its aliases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec
from msgspec import inspect

from keywright.keyspace.alphabets import Alphabet
from keywright.keyspace.codecs.contract import Codec

__all__ = [
    "REQUIRED",
    "ClassField",
    "dumped",
    "fields_of",
    "foreign_types",
    "has_fields",
    "is_model",
    "loaded",
    "maker_of",
    "reason_of",
]

REQUIRED: Any = object()


class ClassField(NamedTuple):
    """A field of a class: its attribute, its stored name, its default or REQUIRED, and its type hint."""

    attribute: str
    stored: str
    default: Any
    hint: Any
    argument: str
    """The name of the argument that the class takes for it."""
    doc: str = ""


def has_fields(kind: object) -> bool:
    """Return whether a class has fields: a Struct, a dataclass, a class of attrs or a model of Pydantic."""
    return isinstance(kind, type) and (
        issubclass(kind, msgspec.Struct)
        or dataclasses.is_dataclass(kind)
        or hasattr(kind, "__attrs_attrs__")
        or is_model(kind)
    )


def fields_of(kind: Any) -> Iterator[ClassField]:
    """Yield the fields of a class that has fields."""
    if is_model(kind):
        yield from _model_fields(kind)
        return
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            default = _default(field, msgspec.NODEFAULT)
            yield ClassField(field.name, field.encode_name, default, hints[field.name], field.name)
    elif dataclasses.is_dataclass(kind):
        for entry in dataclasses.fields(kind):
            default = _default(entry, dataclasses.MISSING)
            yield ClassField(entry.name, entry.name, default, hints[entry.name], entry.name)
    else:
        for each in kind.__attrs_attrs__:
            if each.init:
                yield ClassField(each.name, each.name, _attrs_default(each), hints[each.name], each.alias)


def _default(field: Any, missing: object) -> Any:
    if field.default is not missing:
        return field.default
    return REQUIRED if field.default_factory is missing else field.default_factory


def _attrs_default(field: Any) -> Any:
    if type(field.default).__name__ == "Factory" and hasattr(field.default, "takes_self"):
        # A default that depends on other members is not known without them, so the member is always stored.
        return REQUIRED if field.default.takes_self else field.default.factory
    return REQUIRED if getattr(field.default, "name", None) == "NOTHING" else field.default


def _model_fields(model: Any) -> Iterator[ClassField]:
    for name, field in model.model_fields.items():
        default = REQUIRED
        if not field.is_required():
            made = field.default_factory is not None
            default = partial(field.get_default, call_default_factory=True) if made else field.default
        argument = field.validation_alias if isinstance(field.validation_alias, str) else name
        marks = [mark for mark in field.metadata if _says_how_to_write(mark)]
        hint = Annotated[field.annotation, *marks] if marks else field.annotation
        stored = field.serialization_alias or name
        yield ClassField(name, stored, default, hint, argument, field.description or "")


def _says_how_to_write(mark: object) -> bool:
    made = mark.func if isinstance(mark, partial) else mark
    return isinstance(made, Codec | Alphabet) or (
        isinstance(made, type) and issubclass(made, Codec | Alphabet)
    )


def maker_of(kind: Any) -> Callable[..., Any]:
    """Return the function that makes a value from the arguments of its fields."""
    if is_model(kind):
        return lambda **values: kind.model_validate(values)
    make: Callable[..., Any] = kind
    return make


def reason_of(error: Exception) -> str:
    """Return why a class refuses its fields, in one line."""
    errors: Any = getattr(error, "errors", None)
    if errors is not None and hasattr(error, "error_count"):  # of Pydantic
        found = errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
    return str(error)


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
