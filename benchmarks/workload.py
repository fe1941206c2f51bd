"""The stored data: a keyspace declared with Keywright, and the same names and formats for its peers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from keywright import AsyncDatabase, Id, Keyspace, Record, Value, aconnect

bench = Keyspace("bench", "Values of about 250 bytes.")


class Meeting(msgspec.Struct):
    name: str
    time: datetime
    link: str
    urlname: str
    attending: int


class MeetingJson(Value[Meeting], key="meeting:<meeting>:json", space=bench):
    """A meeting as one JSON document."""

    meeting: Id


class MeetingText(Value[str], key="meeting:<meeting>:text", space=bench):
    """A meeting as plain text."""

    meeting: Id


class MeetingRecord(Record[Meeting], key="meeting:<meeting>", space=bench):
    """A meeting as a hash, one field per member."""

    meeting: Id


encode_meeting: Callable[[Meeting], bytes] = msgspec.json.Encoder().encode
decode_meeting: Callable[[bytes], Meeting] = msgspec.json.Decoder(Meeting).decode


def json_name(identity: str) -> str:
    """Return the name of a MeetingJson key, as a user of redis-py builds it."""
    return f"meeting:{identity}:json"


def text_name(identity: str) -> str:
    return f"meeting:{identity}:text"


def identities(count: int) -> list[str]:
    return [f"m{number:05}" for number in range(count)]


def meetings(count: int) -> list[Meeting]:
    """Return meetings whose JSON is about 250 bytes long."""
    first = datetime(2026, 1, 1, 18, 30, tzinfo=UTC)
    return [
        Meeting(
            name=f"Evening {number:05} of talks on storage, queues and whatever else",
            time=first + timedelta(hours=number),
            link=f"https://meetings.example.org/berlin-storage-people/events/{number:05}/",
            urlname="berlin-storage-people",
            attending=number % 120,
        )
        for number in range(count)
    ]


def texts(count: int) -> list[str]:
    return [encode_meeting(meeting).decode() for meeting in meetings(count)]


async def opened(url: str) -> AsyncDatabase:
    return await aconnect(url)
