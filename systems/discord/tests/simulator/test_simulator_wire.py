"""Every encoding and compression of the simulated gateway carries the same events."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
import zstandard

from keywright_discord.simulator import DiscordSimulator, Op
from keywright_discord.simulator.wire import PacketEncoding, PayloadZlib, ZlibStream, ZstdStream

from .simulator_client import Client, client, on_discord, shard, simulated

pytestmark = pytest.mark.anyio

_ENCODINGS = ["json", "etf"]
_COMPRESSIONS = [None, "zlib-stream", "zstd-stream"]
_VERSIONS = [9, 10]


@pytest.mark.parametrize("v", _VERSIONS)
@pytest.mark.parametrize("encoding", _ENCODINGS)
@pytest.mark.parametrize("compress", _COMPRESSIONS)
async def test_a_session_begins_and_resumes_in_each(v: int, encoding: str, compress: str | None) -> None:
    async with simulated(integer_ids=False) as discord:
        how: dict[str, Any] = {"v": v, "encoding": encoding, "compress": compress}
        guild = discord.world.guilds[0]
        async with client(discord, **how) as bot:
            await bot.identify(discord.token, compress=compress is not None)
            ready = await bot.next("READY")
            created = [await bot.next("GUILD_CREATE") for _ in discord.world.guilds]
            assert ready["v"] == v
            assert [each["id"] for each in created] == discord.world.guilds
            assert created[0] == discord.world.guild_create(guild)
            await discord.cut(0)
        await discord.say("grüße 🌊", guild=guild)
        async with client(discord, **how) as again:
            await again.resume(discord.token, bot.session_id, bot.sequence)
            replayed = await again.events("RESUMED")
            assert [each["t"] for each in replayed] == ["MESSAGE_CREATE", "RESUMED"]
            assert replayed[0]["d"]["content"] == "grüße 🌊"
            _check_frames(again, encoding, compress)


def _check_frames(bot: Client, encoding: str, compress: str | None) -> None:
    text = encoding == "json" and compress is None
    assert all(isinstance(frame, str if text else bytes) for frame in bot.frames)


@on_discord()
async def test_packets_are_compressed_by_themselves_when_the_identify_asks_for_it(
    discord: DiscordSimulator,
) -> None:
    async with client(discord) as bot:
        await bot.identify(discord.token, compress=True)
        await bot.next("READY")
        hello, ready = bot.frames
        assert isinstance(hello, str)
        assert isinstance(ready, bytes)
        await bot.next("GUILD_CREATE")


@pytest.mark.parametrize(("encoding", "compress"), [("etf", None), ("json", "zlib-stream")])
async def test_packets_are_not_compressed_twice_nor_in_etf(encoding: str, compress: str | None) -> None:
    async with simulated() as discord, client(discord, encoding=encoding, compress=compress) as bot:
        await bot.identify(discord.token, compress=True)
        assert (await bot.next("READY"))["v"] == 10


@on_discord()
async def test_ids_are_integers_in_etf_unless_asked_otherwise(discord: DiscordSimulator) -> None:
    guild = discord.world.guilds[0]
    async with shard(discord, encoding="etf") as bot:
        said = await discord.say("whose ids?", guild=guild)
        seen = await bot.next("MESSAGE_CREATE")
        assert (seen["guild_id"], seen["id"]) == (int(guild), int(said["id"]))
        assert seen["author"]["id"] == int(said["author"]["id"])
        assert seen["member"]["roles"] == [int(role) for role in said["member"]["roles"]]
        assert seen["content"] == "whose ids?"
        await bot.send(Op.REQUEST_SOUNDBOARD_SOUNDS, {"guild_ids": [int(guild)]})
        assert (await bot.next("SOUNDBOARD_SOUNDS"))["guild_id"] == int(guild)


@on_discord()
async def test_json_may_come_in_binary_frames(discord: DiscordSimulator) -> None:
    async with client(discord) as bot:
        await bot.next(Op.HELLO)
        await bot.socket.send(b'{"op": 1, "d": null}')
        assert (await bot.packet())["op"] == Op.HEARTBEAT_ACK


def test_a_zlib_stream_has_one_context_and_flushes_each_packet() -> None:
    stream, inflate = ZlibStream(), zlib.decompressobj()
    packets = [b'{"a": 1}', b'{"a": 1}', b"x" * 100_000]
    frames = [stream.pack(packet) for packet in packets]
    assert all(frame.data.endswith(b"\x00\x00\xff\xff") and not frame.is_text for frame in frames)
    assert [inflate.decompress(frame.data) for frame in frames] == packets
    with pytest.raises(zlib.error):
        zlib.decompressobj().decompress(frames[1].data)


def test_a_zstd_stream_has_one_context_and_flushes_each_packet() -> None:
    stream, inflate = ZstdStream(), zstandard.ZstdDecompressor().decompressobj()
    packets = [b'{"a": 1}', b'{"a": 1}', b"x" * 300_000]
    frames = [stream.pack(packet) for packet in packets]
    assert [inflate.decompress(frame.data) for frame in frames] == packets
    with pytest.raises(zstandard.ZstdError):
        zstandard.ZstdDecompressor().decompressobj().decompress(frames[1].data)


def test_a_compressed_packet_stands_alone() -> None:
    packing = PayloadZlib()
    assert [zlib.decompress(packing.pack(packet).data) for packet in (b"one", b"two")] == [b"one", b"two"]


def test_only_ids_become_integers() -> None:
    data = {
        "id": "custom",
        "user_id": "1532900671633785427",
        "nonce": "1532900671633785427",
        "session_id": "1a",
    }
    term = PacketEncoding.ETF_INTEGER_IDS.encode(data)
    assert PacketEncoding.ETF.decode(term) == {**data, "user_id": 1532900671633785427}
