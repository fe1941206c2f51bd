"""`/health`: how a service is, for its operator and for the program that restarts it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright_service.http import json_response
from keywright_service.tasks import TaskHealth

__all__ = ["Health", "TasksHealth", "Trouble", "health_route"]


class Health(msgspec.Struct, frozen=True):
    """How a service is. A subclass adds the parts that `/health` shows beside `ok`."""

    ok: bool


class Trouble(Health, frozen=True):
    """The health of a service that cannot say more, because something that it needs is away."""

    trouble: str


class TasksHealth(Health, frozen=True):
    """The health of a service whose parts are its tasks."""

    tasks: list[TaskHealth]


def health_route(report: Callable[[], Awaitable[Health]], path: str = "/health") -> Route:
    """Answer with what `report` returns: 200 when it is ok, else 503; both as JSON that says why."""

    async def health(request: Request) -> Response:
        found = await report()
        return json_response(found, 200 if found.ok else 503)

    return Route(path, health)
