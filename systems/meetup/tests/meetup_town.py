"""The bot's data as redis-py reads it, the invariants as assertions, and small events for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from keywright import Database, Secret
from keywright.testing import Raw
from keywright_meetup.events import Announced
from keywright_meetup.schema import EventDetails, Tokens

NOW = datetime(2019, 8, 8, 17, 30, tzinfo=UTC)
DAY = timedelta(days=1)
JOURNAL = b"keywright:"
BIG = 2**63 + 11  # no float holds it

Opener = Callable[..., Database]


class Place(NamedTuple):
    """A server of one kind: its URL, a database on it, and raw access to the stored keys."""

    url: str
    db: Database
    raw: Raw


Stored = dict[str, Any]
"""Every key by name: text, a set of texts, or a dict for a hash."""


def details(name: str = "Dungeon night [1]", time: datetime = NOW + DAY) -> EventDetails:
    return EventDetails(name, time, "https://meetup.example/e", "swiss-rpg")


def announced(
    event: str,
    description: str = "[new adventure]",
    *,
    hosts: Iterable[int] = (),
    guests: Iterable[int] | None = (),
    **changed: Any,
) -> Announced:
    said_yes = None if guests is None else frozenset(guests)
    return Announced(event, details(**changed), description, frozenset(hosts), said_yes)


def tokens(name: str = "a") -> Tokens:
    return Tokens(Secret(f"access-{name}"), Secret(f"refresh-{name}"))


def everything(raw: Raw) -> Stored:
    """Read every key without the library."""
    return {name.decode(): _value(raw, name) for name in raw.names() if not name.startswith(JOURNAL)}


def journal(raw: Raw) -> set[bytes]:
    return {name for name in raw.names() if name.startswith(JOURNAL)}


def _value(raw: Raw, name: bytes) -> Any:
    kind = raw("TYPE", name)
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind == "string":
        return raw("GET", name).decode()
    if kind == "set":
        return {member.decode() for member in raw("SMEMBERS", name)}
    found = raw("HGETALL", name)
    pairs = found.items() if isinstance(found, dict) else zip(found[::2], found[1::2], strict=True)
    return {field.decode(): value.decode() for field, value in pairs}


def part(stored: Stored, first: str, last: str) -> Stored:
    """Return the keys `first:<id>:last`, by id."""
    split = ((name.split(":"), value) for name, value in stored.items())
    return {
        words[1]: value for words, value in split if len(words) == 3 and (words[0], words[2]) == (first, last)
    }


def assert_invariants(stored: Stored) -> None:
    """Assert invariants 1 to 7, written from the published facts and not from the code."""
    _people(stored)
    _events(stored)
    _channels(stored)
    for kind in ("role", "host_role"):
        _roles(stored, kind)
    guests = part(stored, "discord_channel", "discord_role")
    hosts = part(stored, "discord_channel", "discord_host_role")
    assert set(hosts) <= set(guests), "4: a host role alone"
    assert not set(guests.values()) & set(hosts.values()), "4: a role of both kinds"


def _people(stored: Stored) -> None:
    of_meetup = part(stored, "meetup_user", "discord_user")
    of_discord = part(stored, "discord_user", "meetup_user")
    assert {d: m for m, d in of_meetup.items()} == of_discord, "1: both directions"
    assert len(of_meetup) == len(of_discord), "1: unique"
    assert stored.get("meetup_users", set()) == set(of_meetup), "1: index of Meetup users"
    assert stored.get("discord_users", set()) == set(of_discord), "1: index of Discord users"
    assert set(part(stored, "meetup_user", "oauth2_tokens")) <= set(of_meetup), "1: tokens without a link"


def _events(stored: Stored) -> None:
    tracked = stored.get("meetup_events", set())
    hashes = {
        name.split(":")[1]: value
        for name, value in stored.items()
        if name.startswith("meetup_event:") and name.count(":") == 1
    }
    assert tracked == set(hashes), "2: index and details"
    assert all(value.keys() >= {"name", "time", "link", "urlname"} for value in hashes.values()), "2: whole"
    home = part(stored, "meetup_event", "event_series")
    members = part(stored, "event_series", "meetup_events")
    assert set(home) == tracked, "2: a series each"
    assert set(home.items()) == {(e, s) for s, events in members.items() for e in events}, (
        "2: both directions"
    )
    series = stored.get("event_series", set())
    assert set(members) <= series, "2: index of series"
    for of_whom in ("meetup_users", "meetup_hosts"):
        assert set(part(stored, "meetup_event", of_whom)) <= tracked, "2: people of unknown events"
    types = part(stored, "event_series", "type")
    assert set(types) == series, "5: a type each"
    assert set(types.values()) <= {"campaign", "adventure"}, "5: known types"
    several = {s for s, events in members.items() if len(events) > 1}
    assert {types[s] for s in several} <= {"campaign"}, "5: several events"


def _channels(stored: Stored) -> None:
    of_series = part(stored, "event_series", "discord_channel")
    of_channel = part(stored, "discord_channel", "event_series")
    known = stored.get("discord_channels", set())
    assert {c: s for s, c in of_series.items()} == of_channel, "3: both directions"
    assert len(of_series) == len(of_channel), "3: unique"
    assert set(of_channel) <= known, "3: index"
    assert set(of_series) <= stored.get("event_series", set()), "3: series are tracked"
    assert not known & stored.get("orphaned_discord_channels", set()), "6: an orphan that is known"
    people = ("removed_users", "removed_hosts", "added_users", "added_hosts")
    for name in (*people, "expiration_time", "last_expiration_reminder_time", "deletion_time"):
        assert set(part(stored, "discord_channel", name)) <= known, f"7: {name} of an unknown channel"


def _roles(stored: Stored, kind: str) -> None:
    of_channel = part(stored, "discord_channel", f"discord_{kind}")
    of_role = part(stored, f"discord_{kind}", "discord_channel")
    known = stored.get(f"discord_{kind}s", set())
    assert {r: c for c, r in of_channel.items()} == of_role, "4: both directions"
    assert len(of_channel) == len(of_role), "4: unique"
    assert set(of_role) == known, "4: index"
    assert set(of_channel) <= stored.get("discord_channels", set()), "4: of known channels"
    assert not known & stored.get("orphaned_discord_roles", set()), "6: an orphan that is known"
