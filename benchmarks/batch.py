"""The four batches of 1,000 calls, with Keywright and with a redis-py pipeline.

On both sides, building keys and encoding and decoding values is part of the measured time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from benchmarks.workload import (
    Meeting,
    MeetingJson,
    MeetingText,
    decode_meeting,
    encode_meeting,
    identities,
    json_name,
    meetings,
    text_name,
    texts,
)
from keywright import Call, gather_list

CALLS = 1_000

IDS = identities(CALLS)
MEETINGS = list(zip(IDS, meetings(CALLS), strict=True))
TEXTS = list(zip(IDS, texts(CALLS), strict=True))


class Pipe(Protocol):
    """The interface that all redis-py pipelines share: blocking, asyncio, cluster."""

    def set(self, name: str, value: bytes | str) -> object: ...

    def get(self, name: str) -> object: ...


class Batch(NamedTuple):
    """One batch; with `text` the peer uses `decode_responses=True`, as is usual for plain text."""

    name: str
    call: Callable[[], Call[list[Any]]]
    fill: Callable[[Pipe], None]
    read: Callable[[list[Any]], list[Any]]
    text: bool


def _set_json() -> Call[list[bool]]:
    return gather_list([MeetingJson(each).set(meeting) for each, meeting in MEETINGS])


def _get_json() -> Call[list[Meeting | None]]:
    return gather_list([MeetingJson(each).get() for each in IDS])


def _set_text() -> Call[list[bool]]:
    return gather_list([MeetingText(each).set(text) for each, text in TEXTS])


def _get_text() -> Call[list[str | None]]:
    return gather_list([MeetingText(each).get() for each in IDS])


def _fill_set_json(pipe: Pipe) -> None:
    for each, meeting in MEETINGS:
        pipe.set(json_name(each), encode_meeting(meeting))


def _fill_get_json(pipe: Pipe) -> None:
    for each in IDS:
        pipe.get(json_name(each))


def _fill_set_text(pipe: Pipe) -> None:
    for each, text in TEXTS:
        pipe.set(text_name(each), text)


def _fill_get_text(pipe: Pipe) -> None:
    for each in IDS:
        pipe.get(text_name(each))


def _meetings_of(replies: list[bytes | None]) -> list[Meeting | None]:
    return [None if data is None else decode_meeting(data) for data in replies]


def _as_they_are(replies: list[Any]) -> list[Any]:
    return replies


BATCHES = (
    Batch("SET json", _set_json, _fill_set_json, _as_they_are, text=False),
    Batch("GET json", _get_json, _fill_get_json, _meetings_of, text=False),
    Batch("SET text", _set_text, _fill_set_text, _as_they_are, text=True),
    Batch("GET text", _get_text, _fill_get_text, _as_they_are, text=True),
)
