"""The keyspace of the streams broker: the streams and reply channels of Spectacles, and our additions.

The name of a stream is its event, as in Spectacles; a prefix separates two bots on one server. Without a
prefix the dead letters of an event share the slot of its stream, so that a message moves there in one step
on a cluster too. With a prefix they do so only if the prefix is a hash tag: `{bot}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from keywright import Channel, Keyspace, Language, Lease, Plain, Stream, Verbatim, characters, literal
from keywright_messaging.contract import name_refusal

__all__ = [
    "LONGEST_NAME",
    "DeadLetters",
    "EventStream",
    "GivenUp",
    "Posted",
    "ProcessSlot",
    "Replies",
    "checked_name",
    "group_name",
    "streams",
]

LONGEST_NAME = 200

_NAME = characters("|~", (0x20, 0x39), (0x3B, 0x7A), (0xA0, 0xD7FF), (0xE000, 0x10FFFF)).repeat(1)


@dataclass(frozen=True)
class Name(Verbatim):
    """A group, subgroup or event: text without colons, which separate them, at most 200 bytes."""

    max_bytes: ClassVar[int] = LONGEST_NAME

    @property
    def pattern_decides(self) -> bool:
        return False

    @property
    def expected(self) -> str:
        return f"1 to {LONGEST_NAME} bytes of text without colons, braces and control characters"

    @property
    def samples(self) -> tuple[str, ...]:
        return ("MESSAGE_CREATE", "0", "a b", "ü" * (LONGEST_NAME // 2))

    @property
    def language(self) -> Language:
        return _NAME

    def read(self, text: str) -> str:
        if len(text.encode()) > LONGEST_NAME:
            raise self._refusal(text)
        return text

    def inline(self, var: str, const: str) -> str | None:
        return None


@dataclass(frozen=True)
class GroupName(Verbatim):
    """A consumer group: `<group>`, or `<group>:<subgroup>`."""

    @property
    def expected(self) -> str:
        return "a group, or a group and a subgroup with a colon between them"

    @property
    def samples(self) -> tuple[str, ...]:
        return ("gateway", "gateway:logger")

    @property
    def language(self) -> Language:
        return _NAME | (_NAME + literal(b":") + _NAME)


EventName = Annotated[str, Name()]

streams = Keyspace(
    "spectacles-streams",
    "Events between the services of a bot: a stream each, read by consumer groups.",
)


class Posted(msgspec.Struct):
    """A published message. Other clients may add fields, such as Rust's `timeout_at`."""

    data: bytes = b""
    """The encoded body."""
    only: str = ""
    """The group that a replayed dead letter is for. Other groups skip the entry."""


class GivenUp(msgspec.Struct):
    """A dead letter."""

    data: bytes
    """The encoded body."""
    reason: str
    """The error of the last attempt, or why there was none."""
    attempts: int
    """The number of deliveries."""
    id: str
    """The id of the entry in the stream of the event."""
    at: datetime
    """The time at which it became a dead letter."""


class EventStream(Stream[Posted], key="<event>", space=streams):
    """The messages of an event, until every group has settled them and the retention is over."""

    event: EventName


class DeadLetters(Stream[GivenUp], key="{<event>}:<group>:dead", space=streams):
    """The dead letters of an event in one group. They stay until they are replayed or dropped."""

    event: EventName
    group: Annotated[str, GroupName()]


class ProcessSlot(Lease, key="<group>:consumer:<consumer>", space=streams):
    """The lease of the process that consumes under this name."""

    group: EventName
    consumer: EventName


class Replies(Channel[bytes], channel="<event>:<id>", space=streams):
    """The reply to one message, by its event and entry id: the encoded body."""

    event: EventName
    id: Annotated[str, Plain()]


def checked_name(kind: str, name: str) -> str:
    """Return the name. Raise UsageError if it is invalid."""
    alphabet = Name()
    try:
        return alphabet.render(name)
    except ValueError:
        raise name_refusal(kind, name, alphabet.expected) from None


def group_name(group: str, subgroup: str | None) -> str:
    """Return the consumer group of a group, or of one of its subgroups."""
    return group if subgroup is None else f"{group}:{checked_name('a subgroup', subgroup)}"
