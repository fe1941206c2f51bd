"""`/health`: whether a service does its work; `/ready`: whether it can be sent requests.

Reasons of failures may name servers and people. A request without the token gets the names of the parts only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import Secret
from keywright.errors import KeywrightError
from keywright.tools.http import SharedToken, TokenVerdict, bearer_of
from keywright_service.http import json_response
from keywright_service.tasks import TaskHealth

__all__ = ["FailingTasks", "Health", "TasksHealth", "Trouble", "checked_token", "health_route", "ready_route"]

# Shorter than the second that probes usually wait.
REPORT_SECONDS = 0.8


class Health(msgspec.Struct, frozen=True):
    """How a service is. A subclass adds the parts that `/health` shows beside `ok`."""

    ok: bool

    def public(self) -> Health:
        """Return what anybody may see."""
        return Health(self.ok)


class Trouble(Health, frozen=True):
    """The health of a service that cannot say more, because something that it needs is away."""

    trouble: str


class FailingTasks(Health, frozen=True):
    """The names of the tasks that fail."""

    failing: list[str]

    def public(self) -> Health:
        return self


class TasksHealth(Health, frozen=True):
    """The health of a service whose parts are its tasks."""

    tasks: list[TaskHealth]

    def public(self) -> Health:
        return FailingTasks(self.ok, [each.name for each in self.tasks if not each.ok])


def health_route(
    report: Callable[[], Awaitable[Health]], path: str = "/health", *, token: Secret[str] | None = None
) -> Route:
    """Answer with what `report` returns: 200 when it is ok, else 503; both as JSON, within a second.

    Reasons and other details are for requests with the token as bearer token: 401 if it is another one. For
    others, and for all requests without a configured token, the answer is what `public` returns.
    """
    shared = None if token is None else SharedToken(token)

    async def health(request: Request) -> Response:
        trusted = shared is not None and await checked_token(shared, request)
        found = await _within_a_second(report)
        shown = found if trusted else found.public()
        return json_response(shown, 200 if found.ok else 503)

    return Route(path, health)


def ready_route(
    is_started: Callable[[], bool], check: Callable[[], Awaitable[object]], path: str = "/ready"
) -> Route:
    """Answer 200 between the start and the stop, if `check` returns; else 503, within a second.

    `check` asks what every request needs, such as Redis, and raises a KeywrightError.
    """

    async def checked() -> Health:
        await check()
        return Health(ok=True)

    async def ready(_request: Request) -> Response:
        ok = is_started() and (await _within_a_second(checked)).ok
        return json_response(Health(ok), 200 if ok else 503)

    return Route(path, ready)


async def checked_token(shared: SharedToken, request: Request, *, required: bool = False) -> bool:
    """Return whether the request has the token. Raise HTTPException for a wrong one, or a required one."""
    bearer = bearer_of(request.headers)
    verdict = None if bearer is None else await shared.check(bearer)
    if verdict is TokenVerdict.BUSY:
        raise HTTPException(429, "too many wrong tokens were sent; try again later")
    if verdict is TokenVerdict.WRONG or (required and verdict is None):
        raise HTTPException(401, "send the health token as bearer token", {"WWW-Authenticate": "Bearer"})
    return verdict is TokenVerdict.RIGHT


async def _within_a_second(report: Callable[[], Awaitable[Health]]) -> Health:
    try:
        async with asyncio.timeout(REPORT_SECONDS):
            return await report()
    except TimeoutError:
        return Trouble(ok=False, trouble=f"no answer within {REPORT_SECONDS:g} s")
    except KeywrightError as error:
        return Trouble(ok=False, trouble=str(error))
