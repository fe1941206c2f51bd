"""Events in any order: grouping does not matter, and removed guilds leave nothing."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .payloads import (
    Event,
    World,
    channel,
    guild,
    member,
    message,
    presence,
    thread,
    user,
    voice_state,
)

GUILDS = ("1", "2")
PEOPLE = ("11", "12")


def of_guild(each: str) -> list[Event]:
    """Return events of one guild, about two channels, a thread in each, and two users."""
    rooms, inner = (f"{each}1", f"{each}2"), (f"{each}3", f"{each}4")
    pairs = list(zip(rooms, inner, strict=True))
    stage = {"guild_id": each, "id": "81", "channel_id": rooms[0]}
    events: list[Event] = [
        ("GUILD_CREATE", guild(each)),
        (
            "GUILD_CREATE",
            guild(
                each,
                channels=[channel(rooms[0], each)],
                threads=[thread(inner[0], rooms[0], each)],
                members=[member("11", "ann")],
                emojis=[{"id": f"{each}5"}],
                presences=[presence("11", each)],
            ),
        ),
        ("GUILD_CREATE", {"id": each, "unavailable": True}),
        ("GUILD_DELETE", {"id": each, "unavailable": True}),
        ("GUILD_DELETE", {"id": each}),
        ("GUILD_UPDATE", {"id": each, "name": "new", "emojis": [{"id": f"{each}6"}], "roles": [{"id": "9"}]}),
        ("READY", {"user": user("10", "bot"), "guilds": [{"id": each}]}),
        ("THREAD_LIST_SYNC", {"guild_id": each, "threads": []}),
        ("GUILD_EMOJIS_UPDATE", {"guild_id": each, "emojis": [{"id": f"{each}5"}, {"id": f"{each}6"}]}),
        ("GUILD_EMOJIS_UPDATE", {"guild_id": each, "emojis": []}),
        ("STAGE_INSTANCE_CREATE", stage),
        ("STAGE_INSTANCE_DELETE", stage),
    ]
    for room, in_room in pairs:
        events += [
            ("CHANNEL_CREATE", channel(room, each)),
            ("CHANNEL_DELETE", channel(room, each)),
            ("THREAD_CREATE", thread(in_room, room, each)),
            ("THREAD_DELETE", thread(in_room, room, each)),
            ("THREAD_LIST_SYNC", {"guild_id": each, "channel_ids": [room], "threads": []}),
            ("MESSAGE_CREATE", message("61", room, guild_id=each)),
            ("MESSAGE_CREATE", message("62", in_room, guild_id=each)),
            ("MESSAGE_UPDATE", {"id": "61", "channel_id": room, "content": "bye"}),
            ("MESSAGE_DELETE", {"id": "61", "channel_id": room}),
        ]
    for person in PEOPLE:
        events += [
            ("GUILD_MEMBER_ADD", member(person, "name", guild_id=each)),
            ("GUILD_MEMBER_REMOVE", {"guild_id": each, "user": user(person, "name")}),
            ("PRESENCE_UPDATE", presence(person, each)),
            ("PRESENCE_UPDATE", presence(person, each, "offline")),
            ("VOICE_STATE_UPDATE", voice_state(person, rooms[0], each)),
            ("VOICE_STATE_UPDATE", voice_state(person, None, each)),
        ]
    return events


ANY = st.lists(st.sampled_from([event for each in GUILDS for event in of_guild(each)]), max_size=25)
REAL = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@REAL
@given(ANY)
def test_one_by_one_and_all_at_once_are_the_same(world: World, events: list[Event]) -> None:
    world.raw("FLUSHALL")
    for event in events:
        world.apply(event)
    one_by_one = world.all()
    world.raw("FLUSHALL")
    world.apply(*events)
    assert world.all() == one_by_one


@REAL
@given(ANY)
def test_guilds_that_go_leave_only_users(world: World, events: list[Event]) -> None:
    world.raw("FLUSHALL")
    world.apply(*events, *(("GUILD_DELETE", {"id": each}) for each in GUILDS))
    assert world.all().keys() <= {"USERS"}


@REAL
@given(ANY)
def test_a_presence_is_there_only_while_a_guild_shows_it(world: World, events: list[Event]) -> None:
    world.raw("FLUSHALL")
    world.apply(*events)
    for person in PEOPLE:
        shown = world.raw("EXISTS", f"PRESENCES:{person}")
        assert not shown or world.raw("EXISTS", f"spectacles-private:presence-guilds:{person}")


@REAL
@given(ANY)
def test_every_channel_is_listed_and_every_listed_channel_is_there(world: World, events: list[Event]) -> None:
    world.raw("FLUSHALL")
    world.apply(*events)
    stored = world.all()
    listed = [channel for each in GUILDS for channel in stored.get(f"CHANNELS:{each}", ())]
    assert sorted(listed) == sorted(stored.get("CHANNELS", ()))
    threads = {thread for each in GUILDS for thread in stored.get(f"spectacles-private:threads:{each}", ())}
    assert threads <= set(listed)
