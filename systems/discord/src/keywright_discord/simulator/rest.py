"""The REST routes that a client calls to log in, answered as Discord does."""

from __future__ import annotations

import email.utils
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import msgspec
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from keywright_discord.simulator.gateway import SimulatedGateway

__all__ = ["answer"]

Json = dict[str, Any]

_route_of = re.compile(r"/api/v(\d+)(/.*)").fullmatch
_VERSIONS = ("9", "10")


def answer(gateway: SimulatedGateway, request: Request, gateway_url: str) -> Response:
    path = urlsplit(request.path).path
    found = _route_of(path)
    if found is None:
        return _refusal(HTTPStatus.NOT_FOUND)
    version, route = found.groups()
    if version not in _VERSIONS:
        return _response(HTTPStatus.BAD_REQUEST, {"message": "Invalid API version", "code": 50041})
    # Older releases of websockets answer other methods themselves, and have no such attribute.
    if getattr(request, "method", "GET") != "GET":
        return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
    if route == "/gateway":
        return _response(HTTPStatus.OK, {"url": gateway_url})
    if not gateway.knows(_token(request)):
        return _refusal(HTTPStatus.UNAUTHORIZED)
    known = _known(gateway, route, gateway_url)
    return _refusal(HTTPStatus.NOT_FOUND) if known is None else _response(HTTPStatus.OK, known)


def _token(request: Request) -> str | None:
    given = request.headers.get("Authorization", "")
    return given.removeprefix("Bot ") if given.startswith("Bot ") else None


def _known(gateway: SimulatedGateway, route: str, gateway_url: str) -> Json | None:
    if route == "/gateway/bot":
        return {
            "url": gateway_url,
            "shards": gateway.settings.shards,
            "session_start_limit": gateway.identifies.as_data(),
        }
    if route == "/users/@me":
        return gateway.world.bot
    if route in ("/oauth2/applications/@me", "/applications/@me"):
        return _application(gateway)
    return None


def _application(gateway: SimulatedGateway) -> Json:
    bot = gateway.world.bot
    return {
        **gateway.world.application,
        "name": bot["username"],
        "icon": None,
        "description": "",
        "summary": "",
        "type": None,
        "bot": bot,
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "00" * 32,
        "hook": True,
        "owner": bot,
        "team": None,
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "role_connections_verification_url": None,
        "integration_types_config": {"0": {}},
        "approximate_guild_count": len(gateway.world.guilds),
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "event_webhooks_url": None,
        "event_webhooks_status": 1,
        "event_webhooks_types": [],
    }


def _refusal(status: HTTPStatus) -> Response:
    return _response(status, {"message": f"{status.value}: {status.phrase}", "code": 0})


def _response(status: HTTPStatus, data: Json) -> Response:
    body = msgspec.json.encode(data)
    headers = Headers(
        [
            ("Date", email.utils.formatdate(usegmt=True)),
            ("Connection", "close"),
            ("Content-Length", str(len(body))),
            ("Content-Type", "application/json"),
        ]
    )
    return Response(status.value, status.phrase, headers, body)
