"""Django: a blocking database for sync views, and one of the event loop for async views.

gunicorn examples.frameworks.django_app:wsgi
uvicorn examples.frameworks.django_app:asgi
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.utils.deprecation import MiddlewareMixin
from examples.frameworks.guestbook import Visits

from keywright import AsyncDatabase, Database, aconnect, connect
from keywright.errors import EngineError, VariableError

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["127.0.0.1"],
    SECRET_KEY="of an example",
    MIDDLEWARE=[f"{__name__}.DatabaseErrors"],
)


class DatabaseErrors(MiddlewareMixin):
    """Answer errors of all views, sync and async."""

    def process_exception(self, request: HttpRequest, error: Exception) -> JsonResponse | None:
        if isinstance(error, VariableError):
            return JsonResponse({"detail": str(error)}, status=404)  # a name that no key can have
        if isinstance(error, EngineError):
            return JsonResponse({"detail": "the database is not available"}, status=503)
        return None


@cache
def database() -> Database:
    """Return the database of sync views, opened once, shared by threads. It may be forked."""
    return connect(client_name="django")


def visit(request: HttpRequest, guest: str) -> JsonResponse:
    return JsonResponse({"visits": database().run(Visits(guest).add(1))})


opened: list[AsyncDatabase] = []


async def visit_async(request: HttpRequest, guest: str) -> JsonResponse:
    return JsonResponse({"visits": await opened[0].run(Visits(guest).add(1))})


urlpatterns = [path("guests/<guest>/visits", visit), path("async/guests/<guest>/visits", visit_async)]

wsgi = get_wsgi_application()
django_asgi = get_asgi_application()

Message = MutableMapping[str, Any]


async def asgi(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Serve Django. Open the database of async views with the server: Django has no lifespan."""
    if scope["type"] != "lifespan":
        await django_asgi(scope, receive, send)
        return
    await receive()  # lifespan.startup
    async with aconnect(client_name="django-async") as db:
        opened[:] = [db]
        await send({"type": "lifespan.startup.complete"})
        await receive()  # lifespan.shutdown
    await send({"type": "lifespan.shutdown.complete"})
