"""Expiries of the cache, chosen in the gateway's file, by a variable, by a flag, and for `discord ingest`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from invoking import invoke_keywright
from keywright.errors import UsageError
from keywright.testing import Raw
from keywright_discord.changes import Kind
from keywright_discord.expiries import cache_bindings, of_layout
from keywright_discord.gateway.configuration import ConfigurationError, load
from keywright_discord.layouts import LAYOUTS
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings

from .gateways import configured, eventually, ready, running

TOKEN = {"DISCORD_TOKEN": "abc"}
QUICK = SimulatorSettings(identify_window_seconds=0.01)
MESSAGES = {"drc": "bot:v1json:messages:{id}", "spectacles": "bot:MESSAGES:{channel_id}:{id}"}


@pytest.mark.anyio
@pytest.mark.parametrize("layout", MESSAGES)
@pytest.mark.parametrize(("given", "expected"), [("message=1h", range(3000, 3601)), ("message=none", [-1])])
async def test_messages_of_the_gateway_live_as_long_as_configured(
    redis_url: str, raw: Raw, layout: str, given: str, expected: range
) -> None:
    async with DiscordSimulator(QUICK) as discord:
        more = {"CACHE_LAYOUT": layout, "CACHE_EXPIRY": given}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            said = await discord.say("hello", guild=discord.world.guilds[0])
            name = MESSAGES[layout].format(**said)
            await eventually(lambda: raw("EXISTS", name), "it is cached")
            assert raw("TTL", name) in expected


@pytest.mark.anyio
async def test_every_kind_of_drc_can_expire(redis_url: str, raw: Raw) -> None:
    async with DiscordSimulator(QUICK) as discord:
        every = ",".join(f"{kind.value}=2h" for kind in Kind)
        more = {"CACHE_EXPIRY": every, "REST_FETCH": "webhooks,templates", "REST_EVERY": "100ms"}
        async with running(configured(discord, redis_url, **more)) as gateway:
            await ready(gateway)
            guild = discord.world.guilds[0]
            names = [
                f"bot:v1json:{name}:{guild}" for name in ("guilds", "channels", "roles", "templates")
            ] + [f"bot:v1json:webhooks:{int(guild) + 1}", f"bot:v1json:users:{discord.world.bot['id']}"]
            for name in names:
                await eventually(lambda: 7000 < raw("TTL", name) <= 7200, name)  # noqa: B023


def test_the_file_the_variable_and_the_flag_set_an_expiry(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[cache.expiry]\nmessage = "1h"\npresence = "none"\n')
    assert load(file, TOKEN).cache.expiry == {Kind.MESSAGE: "1h", Kind.PRESENCE: "none"}
    given = TOKEN | {"CACHE_EXPIRY": "message=2h"}
    assert load(file, given).cache.expiry[Kind.MESSAGE] == "2h"
    by_flag = load(file, given, {"cache.expiry.message": "3h"})
    assert by_flag.cache.expiry[Kind.MESSAGE] == "3h"
    assert load(None, TOKEN, {"cache.expiry": "user=3h"}).cache.expiry == {Kind.USER: "3h"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"CACHE_EXPIRY": "messages=1h"}, "'messages' is not one of application,"),
        ({"CACHE_EXPIRY": "message"}, "write it as in message=1h"),
        ({"CACHE_EXPIRY": "message=soon"}, "'soon' is not a duration"),
        ({"CACHE_EXPIRY": "user=1h", "CACHE_LAYOUT": "spectacles"}, "user cannot have an expiry"),
    ],
)
def test_an_expiry_that_cannot_be_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises((ConfigurationError, UsageError)) as caught:
        load(environment=TOKEN | given)
    assert message in str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_kinds_with_an_expiry_are_all_of_the_layout(layout: str) -> None:
    assert of_layout("drc") == set(Kind)
    for kind in of_layout(layout):
        assert cache_bindings(layout, "bot", {kind: None})


def test_recorded_messages_live_as_long_as_the_option_says(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    message = {"id": "3", "channel_id": "2", "author": {"id": "1", "username": "ann"}, "content": "hi"}
    recording = tmp_path / "packets.jsonl"
    recording.write_bytes(msgspec.json.encode({"op": 0, "t": "MESSAGE_CREATE", "s": 1, "d": message}))
    given = ("discord", "ingest", str(recording), "--prefix", "bot", "--url", redis_url)
    done = invoke_keywright(*given, "--expiry", "message=1h", "--expiry", "user=none")
    assert done.exit_code == 0, done.output
    assert 3500 < raw("TTL", "bot:v1json:messages:3") <= 3600
    wrong = invoke_keywright(*given, "--expiry", "messages=1h")
    assert wrong.exit_code == 2
    assert "--expiry must be KIND=DURATION" in wrong.stderr
