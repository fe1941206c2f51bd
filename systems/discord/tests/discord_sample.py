"""A small Discord for tests of reads: events by hand, with ids that say what they are."""

from __future__ import annotations

from typing import Any

import msgspec

from keywright import Call, Context
from keywright.testing import Run

Event = tuple[str, bytes]
Json = dict[str, Any]

GUILD, CHANNEL, THREAD, VOICE = "100", "200", "201", "202"
BOT, ANN, BEN, CAT = "1", "11", "12", "13"
FIRST, ANSWER, DEEP = "300", "301", "302"
WEBHOOK = "400"


def event(name: str, data: Json) -> Event:
    return name, msgspec.json.encode(data)


def user(identity: str, **more: Any) -> Json:
    return {"id": identity, "username": f"user {identity}", "avatar": None, **more}


def member(identity: str | None = None, **more: Any) -> Json:
    own = {} if identity is None else {"user": user(identity)}
    return {**own, "roles": ["110"], "nick": None, "joined_at": "2020-01-01T00:00:00+00:00", **more}


def guild(**more: Any) -> Json:
    return {
        "id": GUILD,
        "name": "Guild",
        "member_count": 3,
        "channels": [{"id": CHANNEL, "type": 0}, {"id": VOICE, "type": 2}],
        "threads": [{"id": THREAD, "type": 11, "parent_id": CHANNEL, "member": {"flags": 1}}],
        "members": [member(ANN), member(BEN), member(BOT)],
        "roles": [{"id": "110", "name": "role"}],
        "emojis": [{"id": "120", "name": "emoji", "user": user(ANN)}],
        "stickers": [{"id": "130", "name": "sticker", "user": user(BEN)}],
        "voice_states": [{"user_id": BEN, "channel_id": VOICE}],
        "presences": [{"user": {"id": ANN}, "status": "idle"}],
        "stage_instances": [{"id": "140", "channel_id": VOICE, "topic": "stage"}],
        "guild_scheduled_events": [{"id": "150", "creator": user(ANN)}],
        **more,
    }


def message(identity: str = FIRST, author: str = ANN, **more: Any) -> Json:
    return {
        "id": identity,
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "author": user(author),
        "member": member(),
        "content": f"message {identity}",
        "mentions": [],
        **more,
    }


def answer(identity: str = ANSWER, to: Json | None = None, **more: Any) -> Json:
    """A message that answers another, mentions a member and a stranger, and began a thread."""
    return message(
        identity,
        BEN,
        mentions=[{**user(ANN), "member": member()}, user(CAT)],
        message_reference={"message_id": FIRST, "channel_id": CHANNEL, "guild_id": GUILD},
        referenced_message=_without(to or message(), "guild_id", "member"),
        interaction={"id": "500", "user": user(ANN), "member": member()},
        interaction_metadata={
            "id": "500",
            "user": user(ANN),
            "target_user": user(CAT),
            "triggering_interaction_metadata": {"id": "501", "user": user(BEN)},
        },
        thread={"id": THREAD, "type": 11, "parent_id": CHANNEL},
        **more,
    )


READY = event("READY", {"user": user(BOT), "guilds": [{"id": GUILD, "unavailable": True}]})
OPENING = [READY, event("GUILD_CREATE", guild())]


def _without(body: Json, *names: str) -> Json:
    return {name: value for name, value in body.items() if name not in names}


def rounds_of(call: Call[Any], run: Run) -> int:
    """How many round trips a call takes, counted between the call and the database."""
    counted = 0

    class Counting(Call[Any]):
        def rounds(self, context: Context) -> Any:
            nonlocal counted
            track = call.rounds(context)
            try:
                wires = next(track)
                while True:
                    counted += bool(wires)
                    wires = track.send((yield wires))
            except StopIteration as stop:
                return stop.value

    run(Counting())
    return counted
