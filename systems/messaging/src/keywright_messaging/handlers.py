"""The handlers of a worker: functions with typed payloads, checked when they are declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec.inspect

from keywright.errors import DeclarationError, UsageError
from keywright_messaging.contract import Broker, Delivery, is_name

__all__ = ["Discard", "HandedDelivery", "Handler", "Retry", "handler_of"]

HandlerFunction = Callable[..., Coroutine[Any, Any, Any]]
_EMPTY = inspect.Parameter.empty
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Retry(Exception):  # noqa: N818  # an outcome that a handler chooses, not an error
    """Raise it in a handler to deliver the message again later, while attempts are left."""


class Discard(Exception):  # noqa: N818  # the same
    """Raise it in a handler to make the message a dead letter without a retry."""


class HandedDelivery(Delivery):
    """The delivery that a handler receives. Only the worker settles it."""

    __slots__ = ("_inner",)

    def __init__(self, event: str, body: bytes, inner: Delivery | None) -> None:
        attempt = inner.attempt if inner else 1
        content_type = inner.content_type if inner else None
        super().__init__(event, body, inner.id if inner else "", attempt, content_type)
        self._inner = inner

    @property
    def wants_reply(self) -> bool:
        return self._inner is not None and self._inner.wants_reply

    async def acknowledge(self) -> None:
        raise self._settling_refused()

    async def reject(self, reason: str, *, retry: bool = False) -> None:
        raise self._settling_refused()

    async def reply(self, data: object) -> None:
        if self._inner is not None:
            await self._inner.reply(data)

    def _settling_refused(self) -> UsageError:
        return UsageError(
            f"the worker settles {self.event!r} when its handler ends. Return, or raise Retry or Discard."
        )


@dataclass(frozen=True, slots=True)
class Handler:
    """One function for one event, with the types of its parameters."""

    event: str
    function: HandlerFunction
    payload: Any
    answers: bool | None
    """Whether its result is a reply. None: it has no return annotation, so a result other than None is."""
    extras: tuple[type, ...]
    concurrency: int
    prefetch: int

    def replies_with(self, returned: object) -> bool:
        return returned is not None if self.answers is None else self.answers

    async def __call__(self, payload: Any, delivery: Delivery, broker: Broker | None) -> Any:
        given = [delivery if extra is Delivery else broker for extra in self.extras]
        return await self.function(payload, *given)


def handler_of(event: str, function: HandlerFunction, *, concurrency: int, prefetch: int | None) -> Handler:
    """Return the handler that a function declares. Raise DeclarationError if its signature is invalid."""
    name = f"the handler {getattr(function, '__qualname__', function)!s} of {event!r}"
    if not is_name(event):
        raise DeclarationError(name, "the event is empty or has a colon", "Choose another name.")
    if not inspect.iscoroutinefunction(function):
        raise DeclarationError(
            name,
            "it is not an async function and would block all others",
            "Declare it with async def, and call blocking code through asyncio.to_thread.",
        )
    if concurrency < 1 or (prefetch is not None and prefetch < concurrency):
        raise DeclarationError(
            name,
            "its concurrency is below 1, or its prefetch below its concurrency",
            "Use a concurrency of 1 or more; leave prefetch out for twice of it.",
        )
    signature = _signature(name, function)
    payload, *extras = _parameters(name, signature)
    returned = signature.return_annotation
    return Handler(
        event=event,
        function=function,
        payload=_payload_type(name, payload),
        answers=None if returned is _EMPTY else returned not in (None, type(None)),
        extras=tuple(_extra(name, each) for each in extras),
        concurrency=concurrency,
        prefetch=prefetch or 2 * concurrency,
    )


def _signature(name: str, function: HandlerFunction) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise DeclarationError(
            name,
            f"an annotation cannot be resolved: {error}",
            "Define or import the type at the top of the module, outside TYPE_CHECKING.",
        ) from error


def _parameters(name: str, signature: inspect.Signature) -> list[inspect.Parameter]:
    taken = [each for each in signature.parameters.values() if each.default is _EMPTY or _is_extra(each)]
    if not taken or _is_extra(taken[0]) or any(each.kind not in _POSITIONAL for each in taken):
        raise DeclarationError(
            name,
            "its parameters are not a payload, followed by a Delivery or a Broker",
            "Take the payload first; parameters annotated Delivery or Broker may follow.",
        )
    return taken


def _is_extra(parameter: inspect.Parameter) -> bool:
    return parameter.annotation in (Delivery, Broker)


def _extra(name: str, parameter: inspect.Parameter) -> type:
    if not _is_extra(parameter):
        raise DeclarationError(
            name,
            f"the worker has no argument for {parameter.name!r}",
            "Annotate it with Delivery or Broker, or give it a default.",
        )
    found: type = parameter.annotation
    return found


def _payload_type(name: str, parameter: inspect.Parameter) -> Any:
    if parameter.annotation is _EMPTY:
        return Any
    try:
        known = not isinstance(msgspec.inspect.type_info(parameter.annotation), msgspec.inspect.CustomType)
    except TypeError:
        known = False
    if not known:
        raise DeclarationError(
            name,
            f"a message cannot be converted to {parameter.annotation}",
            "Annotate a struct, a dataclass, a built-in type or Any.",
        )
    return parameter.annotation
