"""`/health`: how a service is, for its operator and for the program that restarts it.

Reasons of failures may name servers and people. A request without the token gets the names of the parts only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import Secret
from keywright.tools.http import SharedToken, TokenVerdict, bearer_of
from keywright_service.http import json_response
from keywright_service.tasks import TaskHealth

__all__ = ["FailingTasks", "Health", "TasksHealth", "Trouble", "health_route"]


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
    """Answer with what `report` returns: 200 when it is ok, else 503; both as JSON.

    Reasons and other details are for requests with the token as bearer token: 401 if it is another one. For
    others, and for all requests without a configured token, the answer is what `public` returns.
    """
    shared = None if token is None else SharedToken(token)

    async def health(request: Request) -> Response:
        bearer = bearer_of(request.headers)
        verdict = None if shared is None or bearer is None else await shared.check(bearer)
        if verdict is TokenVerdict.BUSY:
            raise HTTPException(429, "too many wrong tokens were sent; try again later")
        if verdict is TokenVerdict.WRONG:
            raise HTTPException(401, "this is not the token of the health details")
        found = await report()
        shown = found if verdict is TokenVerdict.RIGHT else found.public()
        return json_response(shown, 200 if found.ok else 503)

    return Route(path, health)
