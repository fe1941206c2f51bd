"""Generated traffic: the same from the same seed, of the right size, about entities that exist."""

from __future__ import annotations

import json
from collections import Counter

import msgspec
import pytest

from keywright_discord.traffic import EVERYDAY, Traffic

UNIFORM = dict.fromkeys(EVERYDAY, 1.0)


def test_a_seed_gives_the_same_bytes_every_time() -> None:
    assert list(Traffic(3).packets(300)) == list(Traffic(3).packets(300))
    assert list(Traffic(3).packets(300)) != list(Traffic(4).packets(300))


def test_a_guild_of_a_thousand_members_is_about_620_kilobytes() -> None:
    body = msgspec.json.encode(Traffic(1).guild(members=1000))
    assert 500_000 < len(body) < 740_000
    assert len(json.loads(body)["members"]) == json.loads(body)["member_count"] == 1000


@pytest.mark.parametrize("members", [1, 2, 300])
def test_a_guild_may_have_any_size(members: int) -> None:
    assert len(Traffic(1).guild(members=members)["members"]) == members


def test_ids_are_unique_and_above_2_to_the_53() -> None:
    traffic = Traffic(1)
    guild = traffic.guild(members=200)
    ids = [each["id"] for kind in ("channels", "threads", "emojis", "stickers") for each in guild[kind]]
    ids += [each["user"]["id"] for each in guild["members"]]
    assert len(set(ids)) == len(ids)
    assert min(map(int, ids)) > 2**53


def test_a_session_begins_with_ready_and_its_guilds() -> None:
    (ready, first, second, *_) = Traffic(1).events(10, guilds=2, members=3)
    assert ready[0] == "READY"
    assert [first[0], second[0]] == ["GUILD_CREATE"] * 2
    assert [each["id"] for each in ready[1]["guilds"]] == [first[1]["id"], second[1]["id"]]


def test_a_session_goes_on_where_it_was() -> None:
    traffic = Traffic(1)
    list(traffic.events(50, guilds=1, members=3))
    assert "READY" not in dict(traffic.events(50, guilds=1, members=3))


def test_every_event_comes_in_a_long_session() -> None:
    seen = Counter(event for event, _ in Traffic(1).events(10_000, members=10, mix=UNIFORM))
    assert set(seen) == {*EVERYDAY, "READY"}


def test_a_mix_decides_what_comes() -> None:
    only = dict.fromkeys(EVERYDAY, 0.0) | {"TYPING_START": 1.0}
    assert {event for event, _ in Traffic(1).events(50, guilds=1, mix=only)} == {
        "READY",
        "GUILD_CREATE",
        "TYPING_START",
    }


def test_a_mix_of_unknown_events_is_refused() -> None:
    with pytest.raises(AssertionError, match="NOVELTY"):
        list(Traffic(1).events(50, mix={"NOVELTY": 1.0}))


def test_packets_are_dispatches_in_sequence() -> None:
    packets = [json.loads(packet) for packet in Traffic(1).packets(20, members=3)]
    assert [packet["s"] for packet in packets] == list(range(1, 21))
    assert {packet["op"] for packet in packets} == {0}
    assert {tuple(sorted(packet)) for packet in packets} == {("d", "op", "s", "t")}


def test_members_that_leave_had_joined() -> None:

    known: set[str] = set()
    for event, data in Traffic(5).events(3000, guilds=1, members=10, mix=UNIFORM):
        if event == "GUILD_CREATE":
            known |= {each["user"]["id"] for each in data.get("members", [])}
        elif event == "GUILD_MEMBER_ADD":
            known.add(data["user"]["id"])
        elif event == "GUILD_MEMBER_REMOVE":
            assert data["user"]["id"] in known
