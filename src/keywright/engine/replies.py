"""Replies of a form that no Redis sends, as of a broken or hostile server, become an error of ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from keywright.errors import KeywrightError, MalformedReplyError
from keywright.keyspace.misuse import message_of

__all__ = ["UNREADABLE", "reading_a_reply"]

P = ParamSpec("P")
T = TypeVar("T")

UNREADABLE = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What Python raises where a reply has another type or length than expected."""


def reading_a_reply(command: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function that reads a reply raise MalformedReplyError for one of another form."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def reading(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except KeywrightError:
                raise
            except UNREADABLE as error:
                raise MalformedReplyError(command, message_of(error)) from error

        return reading

    return decorate
