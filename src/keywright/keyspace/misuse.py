"""Arguments of the wrong type: the bare error of Python becomes one that names the function and its types.

Nothing is checked beforehand. A function that is called in bulk has its own `except`, which costs nothing
until it is reached; the others are decorated with `explained`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

from keywright.errors import KeywrightError, UsageError, excerpt

__all__ = ["MISUSE", "explained", "explained_constructor", "raise_explained", "raise_unrunnable"]

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

MISUSE = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""What Python raises for an argument of the wrong type."""

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
    if not _is_ours(error):
        raise error
    name = function.__qualname__.removesuffix(".__init__")
    types = ", ".join(f"{each}={_type_name(value)}" for each, value in given.items() if each != "self")
    takes = ", ".join(str(each) for each in signature.parameters.values() if each.name != "self")
    plain = takes.replace("'", "")  # annotations are text, and shown in quotes
    raise UsageError(f"{name}({types}) cannot work: {_text(error)}. Pass {plain}.") from error


def raise_unrunnable(call: object, error: Exception) -> NoReturn:
    """Raise UsageError for a call that cannot be sent, or the given error if the caller's code raised it."""
    from keywright.keyspace.call import Call

    if not isinstance(call, Call):
        raise _not_a_call(call) from error
    if not _is_ours(error):
        raise error
    raise UsageError(f"{call!r} cannot be run: {_text(error)}. Check the types of its arguments.") from error


def _not_a_call(found: object) -> UsageError:
    """Return the error for something else in the place of a call."""
    if inspect.iscoroutine(found):
        found.close()
        return UsageError("a coroutine is given instead of a call. Await it, and pass the call inside it.")
    subject = f"the class {found.__name__}" if isinstance(found, type) else excerpt(found)
    return UsageError(f"{subject} is not a call. Pass an operation of a key, as in Name('id').get().")


def _is_ours(error: Exception) -> bool:
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


def _text(error: Exception) -> str:
    text = excerpt(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return f"{text} is not known" if isinstance(error, KeyError) else text.rstrip(".")
