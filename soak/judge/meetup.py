"""Judges the Meetup bot: links are there, relations are mutual, and Redis agrees with Meetup and Discord."""

from __future__ import annotations

import json
from pathlib import Path

from soak.judge.findings import Findings
from soak.judge.logs import NO, OK, attempts
from soak.judge.raw import Keys, client

__all__ = ["FIRST_STRANGER", "PREFIX", "is_settled", "judge_meetup"]

PREFIX = "soak-meetup"
FIRST_STRANGER = 500_000_000
"""The first Meetup id of people whom only the load links."""

# Both sides of each relation: the key of one, and the member of the name that names the other.
_MUTUAL = [
    ("meetup_user:{}:discord_user", "discord_user:{}:meetup_user"),
    ("event_series:{}:discord_channel", "discord_channel:{}:event_series"),
    ("discord_channel:{}:discord_role", "discord_role:{}:discord_channel"),
    ("discord_channel:{}:discord_host_role", "discord_host_role:{}:discord_channel"),
]


def is_settled(port: int, wanted: int) -> bool:
    """Return whether the bot tracks so many events, and makes or removes nothing at the moment."""
    with client(port) as server:
        waiting = [
            f"{PREFIX}:{name}"
            for name in ("orphaned_discord_channels", "orphaned_discord_roles", "discord_provisioning")
        ]
        return server.scard(f"{PREFIX}:meetup_events") >= wanted and not server.exists(*waiting)


def judge_meetup(linked: Path, world: Path, keys: Keys) -> Findings:
    """Judge by the log of links, the worlds of the two simulators, and all keys of Redis."""
    findings = Findings()
    towns = json.loads(world.read_text())
    stored = {name.removeprefix(f"{PREFIX}:"): value for name, value in keys.items()}
    for attempt in attempts([linked]):
        meetup, _, discord = attempt.item.partition("/")
        is_there = stored.get(f"meetup_user:{meetup}:discord_user") == discord.encode()
        if attempt.outcome == OK:
            findings.acknowledged += 1
            if not is_there:
                findings.lose(f"the link of {meetup} and {discord}")
        else:
            findings.error(attempt.error)
        if attempt.outcome == NO and is_there:
            findings.violate(f"{meetup} is linked, but the writer got {attempt.error}")
    for forward, inverse in _MUTUAL:
        for one, other in ((forward, inverse), (inverse, forward)):
            _judge_halves(one, other, stored, findings)
    _judge_indexes(stored, findings)
    _judge_events(towns["events"], stored, findings)
    _judge_discord(towns, stored, findings)
    return findings


def _judge_halves(one: str, other: str, stored: Keys, findings: Findings) -> None:
    before, _, after = one.partition("{}")
    for name, value in stored.items():
        if name.startswith(before) and name.endswith(after) and name.count(":") == one.count(":"):
            own = name[len(before) : -len(after)]
            if stored.get(other.format(value.decode())) != own.encode():
                findings.violate(f"{name} is {value.decode()}, which does not name {own}")


def _judge_indexes(stored: Keys, findings: Findings) -> None:
    for index, pattern in (
        ("meetup_users", "meetup_user:{}:discord_user"),
        ("discord_users", "discord_user:{}:meetup_user"),
        ("event_series", "event_series:{}:type"),
        ("discord_roles", "discord_role:{}:discord_channel"),
        ("discord_host_roles", "discord_host_role:{}:discord_channel"),
        ("meetup_events", "meetup_event:{}:event_series"),
    ):
        before, _, after = pattern.partition("{}")
        there = {
            name[len(before) : -len(after)].encode()
            for name in stored
            if name.startswith(before) and name.endswith(after) and name.count(":") == pattern.count(":")
        }
        for each in there ^ set(stored.get(index, ())):
            findings.violate(f"{index} and {pattern.format(each.decode())} disagree")


def _judge_events(events: dict[str, dict[str, list[int]]], stored: Keys, findings: Findings) -> None:
    for event, announced in events.items():
        findings.acknowledged += 1
        series = stored.get(f"meetup_event:{event}:event_series")
        if series is None or f"meetup_event:{event}" not in stored:
            findings.lose(f"the event {event}")
            continue
        if event.encode() not in stored.get(f"event_series:{series.decode()}:meetup_events", ()):
            findings.violate(f"the series {series.decode()} does not have its event {event}")
        for part, people in (("meetup_users", announced["guests"]), ("meetup_hosts", announced["hosts"])):
            if {int(each) for each in stored.get(f"meetup_event:{event}:{part}", ())} != set(people):
                findings.violate(f"meetup_event:{event}:{part} is not as on Meetup")


def _judge_discord(world: dict[str, list[str]], stored: Keys, findings: Findings) -> None:
    """Everything that the bot made on Discord is known, once; what it is still making is only noted."""
    making = stored.get("discord_provisioning", {})
    if making:
        findings.notes.append(f"{len(making)} channels or roles that a killed bot began")
    known = {
        "channels": {each.decode() for each in stored.get("discord_channels", ())},
        "roles": {
            each.decode() for name in ("discord_roles", "discord_host_roles") for each in stored.get(name, ())
        },
    }
    for kind, ids in known.items():
        orphans = {each.decode() for each in stored.get(f"orphaned_discord_{kind}", ())}
        for each in set(world[kind]) - ids - orphans:
            if not making:
                findings.double(f"{kind} {each} is on Discord, and unknown")
        for each in ids - set(world[kind]):
            findings.violate(f"{kind} {each} is not on Discord")
    if making:
        return
    for name in stored:
        series = name.removeprefix("event_series:").removesuffix(":type")
        has_type = name == f"event_series:{series}:type"
        if has_type and f"event_series:{series}:discord_channel" not in stored:
            findings.lose(f"the channel of the series {series}")
