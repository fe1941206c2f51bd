"""Functions that are made of source, where a class decides what they do and they are called in bulk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any, TypeVar

__all__ = ["collector", "for_each", "function", "in_bulk"]

T = TypeVar("T")


def function(
    arguments: str, lines: Iterable[str], scope: dict[str, Any], plainly: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the function with this body. Where it raises, `plainly`, which does the same, reports why."""
    body = "\n        ".join(lines)
    source = (
        f"def quickly({arguments}):\n    try:\n        {body}\n    except Exception:\n        pass\n"
        f"    return plainly({arguments})\n"
    )
    return _made(source, {**scope, "plainly": plainly})


def for_each(argument: str, expression: str, scope: dict[str, Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the function from many arguments to the values of this expression. It may raise anything.

    `argument` is a name, or a pattern with the names that the expression uses.
    """
    return _made(f"def quickly(many):\n    return [{expression} for {argument} in many]\n", scope)


def collector(
    argument: str, lines: Iterable[str], scope: dict[str, Any]
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the function that runs these lines for each of many arguments, and returns what they `found`."""
    body = "\n        ".join(lines)
    source = (
        f"def quickly(many):\n    found = []\n    for {argument} in many:\n        {body}\n    return found\n"
    )
    return _made(source, scope)


def in_bulk(decoder: Callable[[Any], T], many: Callable[[Sequence[Any]], list[Any]]) -> Callable[[Any], T]:
    """Give a decoder a form for many replies, which may raise anything; see `decoded` of compositions."""
    decoder.many = many  # type: ignore[attr-defined]  # a function takes attributes
    return decoder


def _made(source: str, scope: dict[str, Any]) -> Callable[..., Any]:
    # With the name of a module, so that what it raises is not blamed on a function of the caller.
    names = {**scope, "__name__": __name__}
    exec(_compiled(source), names)
    made: Callable[..., Any] = names["quickly"]
    return made


@functools.lru_cache(1024)
def _compiled(source: str) -> CodeType:
    """Return the code of a source. Most classes share it with others: their members have the same types."""
    return compile(source, "<generated>", "exec")
