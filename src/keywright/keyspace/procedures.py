"""Procedures: operations that read before they write, as generators of calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from keywright.errors import KeywrightError
from keywright.keyspace.call import Call
from keywright.keyspace.wires import PAUSE, Resting, Rounds

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

__all__ = ["Pause", "Procedure", "Steps", "bound_context", "procedure"]

T = TypeVar("T")
P = ParamSpec("P")

Steps: TypeAlias = Generator[Call[Any], Any, T]
"""The body of a procedure: yields calls, receives their values, returns the value of the procedure."""


class Procedure(Call[T]):
    """A generator of calls: each is run, and its value sent back in. Errors are thrown in."""

    __slots__ = ("begin", "label")

    def __init__(self, begin: Callable[[], Steps[T]], label: str) -> None:
        self.begin = begin
        self.label = label

    @property
    def one_round(self) -> bool:
        return False

    def rounds(self, context: Context) -> Rounds[T]:
        track = self.begin()
        try:
            call = next(track)
            while True:
                try:
                    value = yield from call.rounds(context)
                except KeywrightError as error:
                    call = track.throw(error)
                else:
                    call = track.send(value)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def __repr__(self) -> str:
        return f"<{self.label}>"


def procedure(steps: Callable[P, Steps[T]]) -> Callable[P, Call[T]]:
    """Make an operation of a generator function.

    The generator yields calls and receives their values; its return value is that of the operation. An error
    of a call is raised at its `yield`. Every run starts the generator from the beginning, so an operation can
    be run several times, also by a retry. Between two yields other clients may write: check what was read in
    the `commit` that depends on it.

        @procedure
        def promote(order: Order) -> Steps[bool]:
            details = yield order.get()
            if details is None:
                return False
            yield Queue().push(order.order)
            return True
    """
    label = steps.__name__.strip("_").replace("_", " ")

    @functools.wraps(steps)
    def build(*args: P.args, **kwargs: P.kwargs) -> Call[T]:
        return Procedure(functools.partial(steps, *args, **kwargs), label)

    return build


class _BoundContext(Call["Context"]):
    """The context of the database that runs the procedure; no round trip."""

    __slots__ = ()

    def rounds(self, context: Context) -> Rounds[Context]:
        return context
        yield  # the rounds of a call are a generator, here of no round


_BOUND = _BoundContext()


def bound_context() -> Call[Context]:
    """Return a call whose value is the context: prefixes, clock, random numbers, whether there are slots."""
    return _BOUND


class Pause(Call[None]):
    """Lets time pass between two calls of a procedure; the engine decides how."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def rounds(self, context: Context) -> Rounds[None]:
        yield [Resting((self.seconds,), b"", PAUSE, None)]
