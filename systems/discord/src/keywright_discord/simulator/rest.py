"""The REST routes of the simulated Discord: for logins, resources without events, answers to interactions.

Answers have the form of Discord's, errors included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright_discord.simulator import resources
from keywright_discord.simulator.gateway import SimulatedGateway
from keywright_service.http import json_response

__all__ = ["rest_app"]

Json = dict[str, Any]
Handler = Callable[[Request], Awaitable[Response]]

_VERSIONS = (9, 10)
_ROOT = "/api/v{version:int}"
_COMMANDS = "/applications/{application}/commands"
_GUILD_COMMANDS = "/applications/{application}/guilds/{guild}/commands"
_CALLBACK = "/interactions/{interaction}/{token}/callback"
# The routes that need no token: the answer to an interaction has the token of the interaction.
_PUBLIC = ("/gateway", _CALLBACK, "/guilds/{guild}/widget.json")

_UNKNOWN_GUILD = 10004
_UNKNOWN_INTERACTION = 10062
_UNKNOWN_APPLICATION = 10002
_ALREADY_ANSWERED = 40060


class SimulatedRefusal(HTTPException):
    """A refusal with a code of Discord's."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(status, message)
        self.code = code


def rest_app(
    gateway: SimulatedGateway, gateway_url: Callable[[], str], reachable: asyncio.Event
) -> Starlette:
    """Return the application that answers for this gateway. Requests wait until it is reachable."""
    routes = _Routes(gateway, gateway_url)
    table: dict[tuple[str, str], Handler] = {
        ("GET", "/gateway"): routes.gateway,
        ("GET", "/gateway/bot"): routes.gateway_bot,
        ("GET", "/users/@me"): routes.me,
        ("GET", "/applications/@me"): routes.application,
        ("GET", "/oauth2/applications/@me"): routes.application,
        ("GET", _COMMANDS): routes.commands,
        ("PUT", _COMMANDS): routes.replace_commands,
        ("GET", _GUILD_COMMANDS): routes.commands,
        ("PUT", _GUILD_COMMANDS): routes.replace_commands,
        ("POST", _CALLBACK): routes.answer_interaction,
    }
    for path, made in resources.OF_A_GUILD.items():
        table["GET", "/guilds/{guild}/" + path] = routes.resource(made)

    def checked(path: str, handler: Handler) -> Handler:
        async def handled(request: Request) -> Response:
            await reachable.wait()
            if request.path_params["version"] not in _VERSIONS:
                raise SimulatedRefusal(400, 50041, "Invalid API version")
            if path not in _PUBLIC and not gateway.knows(_token(request)):
                raise HTTPException(HTTPStatus.UNAUTHORIZED)
            return await handler(request)

        return handled

    return Starlette(
        routes=[
            Route(_ROOT + path, checked(path, handler), methods=[method])
            for (method, path), handler in table.items()
        ],
        exception_handlers={HTTPException: _refuse},
    )


class _Routes:
    def __init__(self, gateway: SimulatedGateway, gateway_url: Callable[[], str]) -> None:
        self._gateway = gateway
        self._url = gateway_url

    async def gateway(self, _request: Request) -> Response:
        return json_response({"url": self._url()})

    async def gateway_bot(self, _request: Request) -> Response:
        return json_response(
            {
                "url": self._url(),
                "shards": self._gateway.settings.shards,
                "session_start_limit": self._gateway.identifies.as_data(),
            }
        )

    async def me(self, _request: Request) -> Response:
        return json_response(self._gateway.world.bot)

    async def application(self, _request: Request) -> Response:
        return json_response(resources.application(self._gateway.world))

    async def commands(self, request: Request) -> Response:
        return json_response(self._gateway.commands.get(self._place(request), []))

    async def replace_commands(self, request: Request) -> Response:
        """Replace all commands of a place, as an application does at its start."""
        application, guild = self._place(request)
        made = [
            resources.command(self._gateway.world, application, guild, each) for each in await request.json()
        ]
        self._gateway.commands[application, guild] = made
        return json_response(made)

    def _place(self, request: Request) -> tuple[str, str | None]:
        application = request.path_params["application"]
        if application != self._gateway.world.application["id"]:
            raise SimulatedRefusal(404, _UNKNOWN_APPLICATION, "Unknown Application")
        return application, self._guild(request) if "guild" in request.path_params else None

    def _guild(self, request: Request) -> str:
        guild: str = request.path_params["guild"]
        if guild not in self._gateway.world.guilds:
            raise SimulatedRefusal(404, _UNKNOWN_GUILD, "Unknown Guild")
        return guild

    def resource(self, made: resources.OfGuild) -> Handler:
        async def found(request: Request) -> Response:
            return json_response(made(self._gateway.world, self._guild(request)))

        return found

    async def answer_interaction(self, request: Request) -> Response:
        known = self._gateway.interactions.get(request.path_params["interaction"])
        if known is None or known.token != request.path_params["token"]:
            raise SimulatedRefusal(404, _UNKNOWN_INTERACTION, "Unknown interaction")
        if known.response is not None:
            raise SimulatedRefusal(400, _ALREADY_ANSWERED, "Interaction has already been acknowledged.")
        known.response = await request.json()
        return Response(status_code=204)


def _token(request: Request) -> str | None:
    given = request.headers.get("Authorization", "")
    return given.removeprefix("Bot ") if given.startswith("Bot ") else None


async def _refuse(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, SimulatedRefusal):
        return json_response({"message": error.detail, "code": error.code}, error.status_code)
    return json_response(
        {"message": f"{error.status_code}: {HTTPStatus(error.status_code).phrase}", "code": 0},
        error.status_code,
    )
