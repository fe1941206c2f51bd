"""Invalid handlers are refused when they are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keywright.errors import DeclarationError
from keywright_messaging import Delivery, Worker

EVENT = "MESSAGE_CREATE"


async def accepted(data: Any) -> None: ...


def blocking(data: Any) -> None: ...


async def without_payload() -> None: ...


async def delivery_first(delivery: Delivery) -> None: ...


async def unknown_extra(data: Any, something: int) -> None: ...


async def keyword_only(*, data: Any) -> None: ...


async def many(*data: Any) -> None: ...


async def unresolved(data: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


async def undecodable(data: Callable[[], None]) -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (blocking, "is not an async function"),
        (without_payload, "not a payload"),
        (delivery_first, "not a payload"),
        (unknown_extra, "the worker has no argument for 'something'"),
        (keyword_only, "not a payload"),
        (many, "not a payload"),
        (unresolved, "cannot be resolved: name 'Nowhere'"),
        (undecodable, "a message cannot be converted to"),
    ],
)
def test_a_handler_that_cannot_work_is_refused_when_it_is_declared(function: Any, reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason) as refused:
        Worker().on(EVENT)(function)
    assert f"handler {function.__qualname__} of 'MESSAGE_CREATE'" in refused.value.subject


@pytest.mark.parametrize("event", ["", "a:b"])
def test_an_event_that_cannot_be_named_is_refused(event: str) -> None:
    with pytest.raises(DeclarationError, match="empty or has a colon"):
        Worker().on(event)(accepted)


def test_impossible_bounds_are_refused() -> None:
    with pytest.raises(DeclarationError):
        Worker().on(EVENT, concurrency=0)(accepted)
    with pytest.raises(DeclarationError):
        Worker().on(EVENT, concurrency=5, prefetch=4)(accepted)
    with pytest.raises(DeclarationError):
        Worker(concurrency=0)


def test_an_event_has_one_handler() -> None:
    worker = Worker()
    worker.on(EVENT)(accepted)
    with pytest.raises(DeclarationError, match="has a handler already"):
        worker.on(EVENT)(accepted)


def test_the_decorated_function_stays_as_it_is() -> None:
    assert Worker().on(EVENT)(accepted) is accepted
