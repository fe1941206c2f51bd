"""Arguments of the wrong type: the bare error of Python becomes one that names the function and its types.

Nothing is checked beforehand. A function that is called in bulk has its own `except`, which costs nothing
until it is reached; the others are decorated with `explained`.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, get_args, get_origin

from keywright.errors import KeywrightError, UsageError, excerpt

__all__ = ["MISUSE", "explained", "explained_constructor", "is_ours", "message_of", "raise_explained"]

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

MISUSE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What Python raises for an argument of the wrong type."""

OWN = ("self", "cls")
_THEIRS = frozenset({"hiredis", "msgspec", "redis", "keywright"}) | sys.stdlib_module_names


def explained(function: Callable[P, T]) -> Callable[P, T]:
    """Raise UsageError, with the types that a function takes, if it cannot work with what it was given."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except MISUSE as error:
            raise_explained(function, args, kwargs, error)

    return wrapper


def explained_constructor(kind: C) -> C:
    """Decorate the constructor of a class with `explained`."""
    kind.__init__ = explained(kind.__init__)  # type: ignore[misc]  # mypy: accessing __init__ on an instance
    return kind


def raise_explained(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> NoReturn:
    """Raise UsageError for a call with wrong arguments, or the given error if they are not its cause."""
    try:
        signature = inspect.signature(function)
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        raise error from None  # an argument is missing, or too much: Python says which
    if not is_ours(error):
        raise error
    name = function.__qualname__.removesuffix(".__init__")
    types = ", ".join(f"{each}={_type_name(value)}" for each, value in given.items() if each not in OWN)
    takes = ", ".join(
        _declared(each, function) for each in signature.parameters.values() if each.name not in OWN
    )
    raise UsageError(f"{name}({types}) is not possible: {message_of(error)}. Pass {takes}.") from error


def _declared(parameter: inspect.Parameter, function: Callable[..., Any]) -> str:
    """Return a parameter as it is declared; the choices of a Literal instead of its name."""
    text = str(parameter).replace("'", "")  # annotations are text, and shown in quotes
    for word in re.findall(r"\w+", str(parameter.annotation)):
        alias = getattr(function, "__globals__", {}).get(word)
        if get_origin(alias) is Literal:
            text = text.replace(f": {word}", f": {' | '.join(map(repr, get_args(alias)))}")
    return text


def is_ours(error: Exception) -> bool:
    """Return whether no function of the caller raised the error: a callback, a codec, a property."""
    if isinstance(error, KeywrightError):
        return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _THEIRS:
            return False
        trace = trace.tb_next
    return True


def _type_name(value: object) -> str:
    return f"class {value.__name__}" if isinstance(value, type) else type(value).__name__


def message_of(error: Exception) -> str:
    """Return the text of an error, to be followed by a full stop."""
    text = excerpt(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return f"{text} is not known" if isinstance(error, KeyError) else text.rstrip(".")
