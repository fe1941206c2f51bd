"""The REST routes of the simulated Discord."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from keywright.testing import ManualClock
from keywright_discord.simulator import DiscordSimulator

from .simulator_client import client, on_discord, shard, simulated

pytestmark = pytest.mark.anyio


async def _get(discord: DiscordSimulator, route: str, *, token: str | None = None) -> tuple[int, Any]:
    async with httpx.AsyncClient(trust_env=False) as http:
        headers = {"Authorization": f"Bot {discord.token if token is None else token}"}
        answer = await http.get(discord.api_url + route, headers=headers)
        assert answer.headers["content-type"] == "application/json"
        return answer.status_code, answer.json()


@on_discord(shards=3, max_concurrency=2, session_starts=100)
async def test_the_gateway_of_a_bot_counts_its_session_starts(discord: DiscordSimulator) -> None:
    status, before = await _get(discord, "/gateway/bot")
    assert (status, before["url"], before["shards"]) == (200, discord.gateway_url, 3)
    assert before["session_start_limit"] == {
        "total": 100,
        "remaining": 100,
        "reset_after": 0,
        "max_concurrency": 2,
    }
    async with shard(discord):
        _, after = await _get(discord, "/gateway/bot")
    assert after["session_start_limit"]["remaining"] == 99
    assert 0 < after["session_start_limit"]["reset_after"] <= 24 * 3600 * 1000


async def test_session_starts_come_back_after_a_day() -> None:
    clock = ManualClock()

    async with simulated(session_starts=10, clock=clock.monotonic) as discord:
        async with shard(discord):
            clock.advance(hours=23)
        _, late = await _get(discord, "/gateway/bot")
        assert late["session_start_limit"]["remaining"] == 9
        assert late["session_start_limit"]["reset_after"] == 3600 * 1000
        clock.advance(hours=1)
        _, next_day = await _get(discord, "/gateway/bot")
        assert next_day["session_start_limit"]["remaining"] == 10


@on_discord()
async def test_a_wrong_token_is_unauthorized_except_for_the_public_gateway(discord: DiscordSimulator) -> None:
    for route in ("/gateway/bot", "/users/@me", "/applications/@me"):
        refusal = {"message": "401: Unauthorized", "code": 0}
        assert await _get(discord, route, token="wrong") == (401, refusal)
    assert await _get(discord, "/gateway", token="wrong") == (200, {"url": discord.gateway_url})


@on_discord()
async def test_the_bot_can_ask_who_it_is(discord: DiscordSimulator) -> None:
    status, me = await _get(discord, "/users/@me")
    assert (status, me) == (200, discord.world.bot)
    for route in ("/applications/@me", "/oauth2/applications/@me"):
        status, application = await _get(discord, route)
        assert (status, application["id"], application["bot"]) == (200, me["id"], me)


@on_discord()
async def test_other_routes_are_not_found(discord: DiscordSimulator) -> None:
    assert await _get(discord, "/guilds/1/bans") == (404, {"message": "404: Not Found", "code": 0})
    async with httpx.AsyncClient(trust_env=False) as http:
        root = discord.api_url.removesuffix("/api/v10")
        old = await http.get(f"{root}/api/v6/gateway")
        assert (old.status_code, old.json()["code"]) == (400, 50041)
        nine = await http.get(f"{root}/api/v9/gateway")
        assert (nine.status_code, nine.json()) == (200, {"url": discord.gateway_url})
        assert (await http.get(f"{root}/elsewhere")).status_code == 404
        assert (await http.post(f"{discord.api_url}/gateway")).status_code == 405


@on_discord(token="a token of my own")
async def test_the_token_can_be_chosen(discord: DiscordSimulator) -> None:
    assert discord.token == "a token of my own"
    async with client(discord) as bot:
        await bot.identify("a token of my own")
        await bot.next("READY")
