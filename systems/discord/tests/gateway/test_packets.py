"""The packets that workers may send, and their shards."""

from __future__ import annotations

from typing import Any

import pytest

from keywright_discord.gateway.packets import MalformedPacketError, packet_of, request_of, shard_of

GUILD = "613425648685547541"


@pytest.mark.parametrize("op", [3, 4, 8, 31, 43])
def test_workers_may_send_these(op: int) -> None:
    packet = packet_of({"op": op, "d": {"guild_id": GUILD}, "s": None, "t": None})
    assert (packet.op, packet.d) == (op, {"guild_id": GUILD})


@pytest.mark.parametrize("op", [0, 1, 2, 5, 6, 7, 9, 10, 11, 99, -1, None, "4", 4.0, True])
def test_other_opcodes_are_refused(op: Any) -> None:
    with pytest.raises(MalformedPacketError, match="op"):
        packet_of({"op": op, "d": {}})


@pytest.mark.parametrize(
    "op",
    [10**5000, -(10**5000), ["x"] * 100_000, "x" * 100_000, {"x": 10**5000}],
    ids=["huge", "negative", "list", "text", "map"],
)
def test_a_refusal_does_not_repeat_a_long_opcode(op: Any) -> None:
    with pytest.raises(MalformedPacketError, match="op") as caught:
        packet_of({"op": op, "d": {}})
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize("data", [None, [], "x", 7, {}, {"op": 4}, {"op": 4, "d": []}, {"op": 4, "d": None}])
def test_a_malformed_packet_is_refused(data: Any) -> None:
    with pytest.raises(MalformedPacketError):
        packet_of(data)


@pytest.mark.parametrize("guild", [GUILD, int(GUILD)])
def test_a_request_names_a_guild(guild: Any) -> None:
    request = request_of({"guild_id": guild, "packet": {"op": 4, "d": {}}})
    assert request.guild == int(GUILD)


@pytest.mark.parametrize("guild", [None, "", "some id", "-1", -1, 2**64, "9" * 21, "١٢", 1.5, True, []])
def test_a_request_without_a_guild_is_refused(guild: Any) -> None:
    with pytest.raises(MalformedPacketError, match="guild_id"):
        request_of({"guild_id": guild, "packet": {"op": 4, "d": {}}})


@pytest.mark.parametrize("data", [None, [], {}, {"guild_id": GUILD}, {"guild_id": GUILD, "packet": {}}])
def test_a_request_without_a_packet_is_refused(data: Any) -> None:
    with pytest.raises(MalformedPacketError):
        request_of(data)


def test_a_guild_belongs_to_the_shard_of_discords_formula() -> None:
    assert [shard_of(int(GUILD), shards) for shards in (1, 2, 4)] == [
        0,
        (int(GUILD) >> 22) % 2,
        (int(GUILD) >> 22) % 4,
    ]
    assert shard_of(3 << 22, 4) == 3
