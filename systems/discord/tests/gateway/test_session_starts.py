"""Requests to Discord's API: retries, and errors that no retry helps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from keywright import Secret
from keywright_discord.gateway.connection import RefusedByDiscordError
from keywright_discord.gateway.session_starts import OPTIONS, UnreachableApiError, ask_gateway
from keywright_service.discord_rest import DiscordRest, GatewayInfo

pytestmark = pytest.mark.anyio

GOOD = b'{"url":"wss://g","shards":3,"session_start_limit":{"total":9,"remaining":5,"reset_after":7,"max_concurrency":2}}'


class Answers:
    """Answers requests in turn; the last answer is repeated."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, socket: ServerConnection, request: Request) -> Response:
        self.asked.append((request.path, request.headers.get("Authorization", "")))
        status, body = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        headers = Headers({"Content-Length": str(len(body)), "Retry-After": "0", "Connection": "close"})
        return Response(status, HTTPStatus(status).phrase, headers, body)


@asynccontextmanager
async def answering(*answers: tuple[int, bytes]) -> AsyncIterator[tuple[str, Answers]]:
    given = Answers(*answers)

    async def unused(socket: ServerConnection) -> None: ...

    async with serve(unused, "127.0.0.1", 0, process_request=given) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}/api/v10", given


async def asked_at(url: str, attempts: int) -> GatewayInfo:
    async with DiscordRest(Secret("hush"), url=url, options=OPTIONS._replace(attempts=attempts)) as api:
        return await ask_gateway(api)


async def asked(*answers: tuple[int, bytes], attempts: int = 4) -> tuple[GatewayInfo | Exception, Answers]:
    async with answering(*answers) as (url, given):
        try:
            return await asked_at(url, attempts), given
        except (RefusedByDiscordError, UnreachableApiError) as error:
            return error, given


async def test_it_asks_as_the_bot() -> None:
    info, given = await asked((200, GOOD))
    assert isinstance(info, GatewayInfo)
    assert (info.url, info.shards, info.session_start_limit.max_concurrency) == ("wss://g", 3, 2)
    assert given.asked == [("/api/v10/gateway/bot", "Bot hush")]


async def test_it_asks_again_after_errors_of_discord_and_limits() -> None:
    info, given = await asked((500, b""), (429, b""), (502, b""), (200, GOOD))
    assert isinstance(info, GatewayInfo)
    assert len(given.asked) == 4


async def test_it_gives_up_in_the_end() -> None:
    error, given = await asked((503, b""), attempts=3)
    assert isinstance(error, UnreachableApiError)
    assert (len(given.asked), error.exit_code) == (3, 3)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_an_error_that_no_retry_helps_is_raised_at_once(status: int) -> None:
    error, given = await asked((status, b"{}"))
    assert isinstance(error, RefusedByDiscordError)
    assert (len(given.asked), error.exit_code) == (1, 2)
    assert "hush" not in str(error)


async def test_a_port_without_a_server_is_unreachable(unused_port: int) -> None:
    with pytest.raises(UnreachableApiError, match="Check the network"):
        await asked_at(f"http://127.0.0.1:{unused_port}", 1)
