"""Errors of Keywright as bytes, so that one of a worker is raised in the first process with its fields.

Only classes of this tree are made again, without running their code, from texts, numbers and lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from keywright.errors import KeywrightError

__all__ = ["carried", "raised_again"]

Plain: TypeAlias = str | int | float | bool | list[Any] | None


class _Carried(msgspec.Struct):
    classes: list[str]
    """The names of the class and of those above it: the first that is known here is raised."""
    text: str
    fields: dict[str, Plain]
    data: dict[str, bytes]


def carried(error: KeywrightError) -> bytes:
    """Return an error as bytes. Fields that are objects are left out; the text has what they say."""
    fields: dict[str, Plain] = {}
    data: dict[str, bytes] = {}
    for name, value in vars(error).items():
        if isinstance(value, bytes):
            data[name] = value
        elif _is_plain(value):
            fields[name] = value
    classes = [_name(each) for each in type(error).__mro__ if issubclass(each, KeywrightError)]
    return msgspec.msgpack.encode(_Carried(classes, str(error), fields, data))


def raised_again(content: bytes) -> KeywrightError:
    """Return the error that `carried` was given."""
    found = msgspec.msgpack.decode(content, type=_Carried)
    known = {_name(each): each for each in _tree(KeywrightError)}
    kind = next(known[name] for name in found.classes if name in known)
    error = kind.__new__(kind)
    Exception.__init__(error, found.text)
    vars(error).update(found.fields)
    vars(error).update(found.data)
    return error


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(each) for each in value)
    return value is None or isinstance(value, str | int | float)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _tree(kind: type[KeywrightError]) -> Iterator[type[KeywrightError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _tree(each)
