"""The reasons for which the simulated gateway closes a connection, and their codes."""

from __future__ import annotations

from typing import Any

import pytest

from keywright.testing import ManualClock
from keywright_discord.simulator import CloseCode, DiscordSimulator, Intents, Op

from .simulator_client import Client, client, on_discord, shard, simulated

pytestmark = pytest.mark.anyio

_FATAL = [4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014]
_RESUMABLE = [1000, 1001, 4000, 4001, 4002, 4003, 4005, 4008]


@pytest.mark.parametrize("code", [*_FATAL, *_RESUMABLE])
async def test_any_code_can_be_ordered_and_decides_about_the_session(code: int) -> None:
    async with simulated() as discord:
        async with shard(discord) as bot:
            await discord.close(0, CloseCode(code))
            assert await bot.closed_with() == code
        assert len(discord.sessions) == (code in _RESUMABLE)


@on_discord()
async def test_what_was_sent_before_a_close_arrives_before_it(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await discord.say("first", guild=discord.world.guilds[0])
        await discord.close(0, CloseCode.UNKNOWN_ERROR)
        assert (await bot.packet())["d"]["content"] == "first"
        assert await bot.closed_with() == CloseCode.UNKNOWN_ERROR


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ({"v": 8}, CloseCode.INVALID_VERSION),
        ({"v": "ten"}, CloseCode.INVALID_VERSION),
        ({"v": ""}, CloseCode.INVALID_VERSION),
        ({"encoding": "xml"}, CloseCode.DECODE_ERROR),
        ({"compress": "lz4-stream"}, CloseCode.DECODE_ERROR),
    ],
)
async def test_an_address_that_asks_for_the_impossible_is_refused(address: dict[str, Any], code: int) -> None:
    async with simulated() as discord, client(discord, **address) as bot:
        assert await bot.closed_with() == code
        assert bot.frames == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"token": "another"}, CloseCode.AUTHENTICATION_FAILED),
        ({"token": None}, CloseCode.AUTHENTICATION_FAILED),
        ({"properties": None}, CloseCode.DECODE_ERROR),
        ({"shard": [1, 1]}, CloseCode.INVALID_SHARD),
        ({"shard": [-1, 2]}, CloseCode.INVALID_SHARD),
        ({"shard": [0]}, CloseCode.INVALID_SHARD),
        ({"shard": ["0", "1"]}, CloseCode.INVALID_SHARD),
        ({"shard": [0, 0]}, CloseCode.INVALID_SHARD),
        ({"intents": 1 << 30}, CloseCode.INVALID_INTENTS),
        ({"intents": -1}, CloseCode.INVALID_INTENTS),
        ({"intents": None}, CloseCode.INVALID_INTENTS),
        ({"intents": int(Intents.GUILD_PRESENCES)}, CloseCode.DISALLOWED_INTENTS),
    ],
)
async def test_an_identify_that_is_wrong_is_refused(change: dict[str, Any], code: int) -> None:
    async with simulated(privileged=Intents.GUILD_MEMBERS) as discord:
        right = {"token": discord.token, "properties": {}, "intents": 1, "shard": [0, 1]}
        async with client(discord) as bot:
            await bot.send(Op.IDENTIFY, right | change)
            assert await bot.closed_with() == code
        assert discord.sessions == []


@on_discord(guilds=2, guilds_per_shard=1)
async def test_too_many_guilds_for_one_shard_require_sharding(discord: DiscordSimulator) -> None:
    async with client(discord) as bot:
        await bot.identify(discord.token)
        assert await bot.closed_with() == CloseCode.SHARDING_REQUIRED


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("not json", CloseCode.DECODE_ERROR),
        (b"\xff\xfe", CloseCode.DECODE_ERROR),
        ("[]", CloseCode.DECODE_ERROR),
        ("[" * 4096, CloseCode.DECODE_ERROR),
        ('{"d": 1}', CloseCode.DECODE_ERROR),
        ('{"op": "2", "d": {}}', CloseCode.DECODE_ERROR),
        ('{"op": 2, "d": null}', CloseCode.DECODE_ERROR),
        ('{"op": 1, "d": "soon"}', CloseCode.DECODE_ERROR),
        ('{"op": 6, "d": {"token": "wrong", "session_id": "x", "seq": 1}}', CloseCode.AUTHENTICATION_FAILED),
        ('{"op": 99, "d": null}', CloseCode.UNKNOWN_OPCODE),
        ('{"op": 0, "d": null}', CloseCode.UNKNOWN_OPCODE),
        ('{"op": 8, "d": {}}', CloseCode.NOT_AUTHENTICATED),
        ('{"op": 3, "d": {"status": "online"}}', CloseCode.NOT_AUTHENTICATED),
        ('{"op": 1, "d": null, "padding": "' + "x" * 4096 + '"}', CloseCode.DECODE_ERROR),
    ],
)
async def test_a_malformed_message_is_refused(message: str | bytes, code: int) -> None:
    async with simulated() as discord, client(discord) as bot:
        await bot.socket.send(message)
        assert await bot.closed_with() == code


@pytest.mark.parametrize("message", ["text", b"\x00"])
async def test_malformed_etf_is_refused(message: str | bytes) -> None:
    async with simulated() as discord, client(discord, encoding="etf") as bot:
        await bot.socket.send(message)
        assert await bot.closed_with() == CloseCode.DECODE_ERROR


@on_discord()
async def test_4096_bytes_are_not_too_many(discord: DiscordSimulator) -> None:
    async with client(discord) as bot:
        await bot.next(Op.HELLO)
        await bot.socket.send('{"op": 1, "d": null}'.ljust(4096))
        assert (await bot.packet())["op"] == Op.HEARTBEAT_ACK


@pytest.mark.parametrize(
    ("op", "data"),
    [
        (Op.PRESENCE_UPDATE, {"status": "asleep", "activities": []}),
        (Op.PRESENCE_UPDATE, {"status": "online", "activities": "chess"}),
        (Op.REQUEST_GUILD_MEMBERS, {"guild_id": "1"}),
        (Op.REQUEST_GUILD_MEMBERS, {"guild_id": "1", "query": "a", "limit": "all"}),
        (Op.REQUEST_GUILD_MEMBERS, {"guild_id": "1", "query": "a", "limit": -1}),
        (Op.REQUEST_SOUNDBOARD_SOUNDS, {"guild_ids": "1"}),
        (Op.REQUEST_CHANNEL_INFO, {"guild_id": "1"}),
        (Op.VOICE_STATE_UPDATE, "here"),
    ],
)
async def test_a_malformed_request_is_refused(op: Op, data: Any) -> None:
    async with simulated() as discord, shard(discord) as bot:
        await bot.send(op, data)
        assert await bot.closed_with() == CloseCode.DECODE_ERROR


@on_discord()
async def test_identifying_or_resuming_twice_is_refused(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await bot.identify(discord.token)
        assert await bot.closed_with() == CloseCode.ALREADY_AUTHENTICATED
    async with shard(discord) as bot:
        await bot.resume(discord.token, bot.session_id, bot.sequence)
        assert await bot.closed_with() == CloseCode.ALREADY_AUTHENTICATED


@on_discord()
async def test_a_sequence_that_was_never_sent_is_refused_and_ends_the_session(
    discord: DiscordSimulator,
) -> None:
    async with shard(discord) as bot:
        await discord.cut(0)
    async with client(discord) as again:
        await again.resume(discord.token, bot.session_id, 1000)
        assert await again.closed_with() == CloseCode.INVALID_SEQUENCE
    assert discord.sessions == []


async def test_more_than_120_packets_in_a_minute_are_too_many() -> None:
    clock = ManualClock()

    async with simulated(clock=clock.monotonic) as discord, client(discord) as bot:
        await bot.next(Op.HELLO)
        for _ in range(120):
            assert await bot.silent()
        clock.advance(seconds=60)
        for _ in range(120):
            assert await bot.silent()
        await bot.send(Op.HEARTBEAT, None)
        assert await bot.closed_with() == CloseCode.RATE_LIMITED


async def test_more_than_5_presences_in_20_seconds_are_too_many() -> None:
    clock = ManualClock()

    async with simulated(clock=clock.monotonic) as discord:
        async with shard(discord) as bot:
            await _change_presence(bot, 5)
            assert await bot.silent()
            clock.advance(seconds=20)
            await _change_presence(bot, 5)
            assert await bot.silent()
            await _change_presence(bot, 1)
            assert await bot.closed_with() == CloseCode.RATE_LIMITED
        assert len(discord.received(Op.PRESENCE_UPDATE, shard=0)) == 11


async def _change_presence(bot: Client, times: int) -> None:
    for _ in range(times):
        await bot.send(Op.PRESENCE_UPDATE, {"status": "dnd", "activities": [], "since": None, "afk": False})


async def test_a_bucket_admits_one_identify_in_five_seconds() -> None:
    clock = ManualClock()

    async with (
        simulated(clock=clock.monotonic, max_concurrency=2, identify_window_seconds=5.0) as discord,
        shard(discord, 0, 4),
        shard(discord, 1, 4),
        client(discord) as bot,
    ):
        await bot.identify(discord.token, shard=[2, 4])
        assert await bot.next(Op.INVALID_SESSION) is False, "2 % 2 is the bucket of shard 0"
        clock.advance(seconds=5)
        await bot.identify(discord.token, shard=[2, 4])
        await bot.next("READY")


@on_discord(session_starts=2)
async def test_too_many_session_starts_reset_the_token(discord: DiscordSimulator) -> None:
    async with shard(discord) as first, shard(discord), client(discord) as third:
        await third.identify(discord.token)
        assert await third.closed_with() == CloseCode.AUTHENTICATION_FAILED
        assert await first.closed_with() == CloseCode.AUTHENTICATION_FAILED
    assert discord.sessions == []
    async with client(discord) as again:
        await again.identify(discord.token)
        assert await again.closed_with() == CloseCode.AUTHENTICATION_FAILED


@on_discord(outbox=200, replay_events=100_000)
async def test_a_client_that_does_not_read_is_cut_off_and_others_are_served(
    discord: DiscordSimulator,
) -> None:
    """64 MB are more than the buffers between the two can hold."""
    async with shard(discord) as slow, shard(discord, intents=Intents.GUILDS) as quick:
        slow.socket.transport.pause_reading()
        for _ in range(1000):
            await discord.dispatch(
                "MESSAGE_CREATE", {"content": "x" * 65536, "guild_id": discord.world.guilds[0]}
            )
        await discord.until(lambda: len(discord.connections) == 1, "the slow one is cut off")
        await discord.dispatch("CHANNEL_DELETE", {"id": "1", "guild_id": discord.world.guilds[0]})
        assert (await quick.next("CHANNEL_DELETE"))["id"] == "1"
        assert len(discord.sessions) == 2
        slow.socket.transport.abort()
