"""The life of a session on the simulated gateway: identify, heartbeat, resume, reconnect, invalidation."""

from __future__ import annotations

import pytest

from keywright.errors import UsageError
from keywright.testing import ManualClock
from keywright_discord.simulator import CloseCode, DiscordSimulator, Op

from .simulator_client import Packet, client, on_discord, shard, simulated

pytestmark = pytest.mark.anyio


def _contents(packets: list[Packet]) -> list[str]:
    return [each["d"]["content"] for each in packets if each["t"] == "MESSAGE_CREATE"]


@on_discord(heartbeat_interval_ms=1234)
async def test_hello_comes_first_and_has_the_interval(discord: DiscordSimulator) -> None:
    async with client(discord) as bot:
        hello = await bot.packet()
        assert (hello["op"], hello["s"], hello["t"]) == (Op.HELLO, None, None)
        assert hello["d"]["heartbeat_interval"] == 1234


@on_discord(guilds=3)
async def test_ready_is_followed_by_every_guild_it_names(discord: DiscordSimulator) -> None:
    async with client(discord) as bot:
        await bot.identify(discord.token, shard=[0, 1])
        ready = await bot.next("READY")
        created = [await bot.packet() for _ in range(3)]
        assert ready["guilds"] == [{"id": guild, "unavailable": True} for guild in discord.world.guilds]
        assert [each["d"]["id"] for each in created] == discord.world.guilds
        assert [each["s"] for each in created] == [2, 3, 4]
        assert (ready["v"], ready["shard"]) == (10, [0, 1])
        assert ready["resume_gateway_url"] == discord.resume_url
        assert ready["user"]["id"] == ready["application"]["id"]
        assert await bot.silent()


@on_discord()
async def test_a_client_without_shards_receives_none(discord: DiscordSimulator) -> None:
    async with client(discord) as bot:
        await bot.identify(f"Bot {discord.token}")
        assert "shard" not in await bot.next("READY")


@on_discord()
async def test_a_heartbeat_is_acknowledged_even_before_identify(discord: DiscordSimulator) -> None:
    async with client(discord) as bot:
        await bot.next(Op.HELLO)
        assert await bot.silent()


@on_discord()
async def test_a_zombie_gets_no_acknowledgement(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        discord.stop_acks(0)
        await bot.send(Op.HEARTBEAT, bot.sequence)
        await bot.send(Op.REQUEST_SOUNDBOARD_SOUNDS, {"guild_ids": discord.world.guilds[:1]})
        assert (await bot.packet())["t"] == "SOUNDBOARD_SOUNDS"


@on_discord()
async def test_discord_can_ask_for_a_heartbeat(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await discord.request_heartbeat(0)
        assert (await bot.packet())["op"] == Op.HEARTBEAT


async def test_a_client_without_heartbeats_is_closed_and_its_session_ends() -> None:
    clock = ManualClock()

    async with simulated(
        clock=clock.monotonic, heartbeat_interval_ms=40000, heartbeat_grace_seconds=5
    ) as discord:
        async with shard(discord) as bot:
            clock.advance(seconds=44)
            assert await bot.silent()
            clock.advance(seconds=44)
            assert await bot.silent(), "the heartbeat before counted"
            clock.advance(seconds=46)
            assert await bot.closed_with() == CloseCode.SESSION_TIMED_OUT
        assert discord.sessions == []


@on_discord()
async def test_a_resume_replays_missed_events_once_and_in_order(discord: DiscordSimulator) -> None:
    guild = discord.world.guilds[0]
    async with shard(discord) as bot:
        await discord.say("seen", guild=guild)
        assert (await bot.next("MESSAGE_CREATE"))["content"] == "seen"
        await discord.cut(0)
        assert await bot.closed_with() == 1006
    for number in range(3):
        await discord.say(f"missed {number}", guild=guild)
    async with client(discord, url=discord.resume_url) as again:
        await again.resume(discord.token, bot.session_id, bot.sequence)
        replayed = await again.events("RESUMED")
        assert bot.sequence is not None
        assert [each["s"] for each in replayed] == [bot.sequence + n for n in (1, 2, 3, 4)]
        assert _contents(replayed) == ["missed 0", "missed 1", "missed 2"]
        await discord.say("live", guild=guild)
        assert (await again.packet())["d"]["content"] == "live"
        assert discord.connection(0).path == "/resume/"
        assert (discord.sessions[0].replayed, discord.sessions[0].resumes) == (3, 1)


@on_discord()
async def test_a_resume_takes_the_session_over_from_an_open_connection(discord: DiscordSimulator) -> None:
    async with shard(discord) as old, client(discord) as new:
        await new.resume(discord.token, old.session_id, old.sequence)
        await new.next("RESUMED")
        assert await old.closed_with() == CloseCode.UNKNOWN_ERROR
        await discord.say("to the new one", guild=discord.world.guilds[0])
        assert (await new.next("MESSAGE_CREATE"))["content"] == "to the new one"
        assert len(discord.sessions) == 1


@on_discord()
async def test_an_unknown_session_is_invalid_and_the_client_may_identify_in_place(
    discord: DiscordSimulator,
) -> None:
    async with client(discord) as bot:
        await bot.resume(discord.token, "no such session", 1)
        assert await bot.next(Op.INVALID_SESSION) is False
        await bot.identify(discord.token)
        await bot.next("READY")


@on_discord(replay_events=3)
async def test_a_resume_from_before_the_buffer_is_refused(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await discord.cut(0)
    for _ in range(4):
        await discord.say("more than is kept", guild=discord.world.guilds[0])
    async with client(discord) as again:
        await again.resume(discord.token, bot.session_id, bot.sequence)
        assert await again.next(Op.INVALID_SESSION) is False
    assert discord.sessions == []


@on_discord(replay_bytes=1000)
async def test_the_buffer_is_bounded_in_bytes_too(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await discord.cut(0)
    await discord.dispatch("SOMETHING_LARGE", {"text": "x" * 2000})
    async with client(discord) as again:
        await again.resume(discord.token, bot.session_id, bot.sequence)
        assert await again.next(Op.INVALID_SESSION) is False


async def test_a_session_that_is_not_resumed_expires() -> None:
    clock = ManualClock()

    async with simulated(clock=clock.monotonic, session_lifetime_seconds=60) as discord:
        async with shard(discord) as bot:
            await discord.cut(0)
        clock.advance(seconds=59)
        assert len(discord.sessions) == 1
        clock.advance(seconds=2)
        async with client(discord) as again:
            await again.resume(discord.token, bot.session_id, bot.sequence)
            assert await again.next(Op.INVALID_SESSION) is False


@on_discord()
async def test_a_session_cannot_be_resumed_in_another_encoding(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await discord.cut(0)
    async with client(discord, encoding="etf") as again:
        await again.resume(discord.token, bot.session_id, bot.sequence)
        assert await again.next(Op.INVALID_SESSION) is False


@on_discord()
async def test_closing_with_1000_or_1001_ends_the_session_and_any_other_code_keeps_it(
    discord: DiscordSimulator,
) -> None:
    for code, kept in ((1000, 0), (1001, 0), (4000, 1), (3000, 2)):
        async with shard(discord) as bot:
            await bot.socket.close(code)
        await discord.until(lambda: not discord.connections, "the client is gone")
        assert len(discord.sessions) == kept, code


@on_discord()
async def test_op_7_asks_to_reconnect_and_the_session_can_be_resumed(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await discord.reconnect(0)
        packet = await bot.packet()
        assert (packet["op"], packet["d"]) == (Op.RECONNECT, None)
        await bot.socket.close(4000)
    async with client(discord) as again:
        await again.resume(discord.token, bot.session_id, bot.sequence)
        await again.next("RESUMED")


@on_discord()
async def test_op_9_true_lets_the_client_resume_in_place(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        await discord.invalidate(0, resumable=True)
        assert await bot.next(Op.INVALID_SESSION) is True
        await discord.say("meanwhile", guild=discord.world.guilds[0])
        await bot.resume(discord.token, bot.session_id, bot.sequence)
        assert _contents(await bot.events("RESUMED")) == ["meanwhile"]


@on_discord()
async def test_op_9_false_ends_the_session(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        former = bot.session_id
        await discord.invalidate(0, resumable=False)
        assert await bot.next(Op.INVALID_SESSION) is False
        assert discord.sessions == []
        await bot.identify(discord.token)
        await bot.next("READY")
        assert bot.session_id != former


@on_discord()
async def test_during_an_outage_no_client_is_or_gets_connected(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot, discord.outage():
        assert await bot.closed_with() == 1006
        assert discord.connections == []
    async with client(discord) as again:
        await again.resume(discord.token, bot.session_id, bot.sequence)
        await again.next("RESUMED")


@on_discord()
async def test_a_shard_that_is_not_connected_cannot_be_closed(discord: DiscordSimulator) -> None:
    with pytest.raises(UsageError, match="no client is connected as shard 3"):
        await discord.close(3, CloseCode.UNKNOWN_ERROR)
