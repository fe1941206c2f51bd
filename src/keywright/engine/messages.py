"""What a subscription asks for, and what it receives; the same for both engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias, TypeVar

from keywright.errors import UsageError, excerpt
from keywright.keyspace.channel import Channel, ChannelPattern, published, shard_of
from keywright.keyspace.context import Context
from keywright.keyspace.wires import Reply

__all__ = ["Interest", "Message", "Wanted", "interests_of", "message_in", "wanted"]

M = TypeVar("M")

Asked: TypeAlias = bytes | Channel[Any] | ChannelPattern[Any]


class Interest(NamedTuple):
    """SUBSCRIBE and a channel, PSUBSCRIBE and a pattern, or SSUBSCRIBE and a channel of a slot."""

    verb: bytes
    name: bytes
    slot: int | None = None
    """The slot whose node is asked; None if any node may be."""


class Message(NamedTuple):
    """A message as it was published on a channel."""

    channel: bytes
    payload: bytes


class Wanted(NamedTuple):
    """The interests of a new subscription, and how its messages are decoded (None: to be left out)."""

    interests: list[Interest]
    decode: Callable[[Message], Any]


def wanted(asked: Iterable[Asked], patterns: Iterable[bytes], context: Context) -> Wanted:
    """Return what is asked for, as bytes or as declared channels. Raise UsageError for both together."""
    chosen = list(asked)
    kinds = list(
        dict.fromkeys(
            each.channels if isinstance(each, ChannelPattern) else type(each)
            for each in chosen
            if isinstance(each, Channel | ChannelPattern)
        )
    )
    raw = [each for each in chosen if isinstance(each, bytes)]
    interests = interests_of(chosen, patterns, context)
    if not kinds:
        return Wanted(interests, lambda message: message)
    if raw or len(interests) > len(chosen):
        raise UsageError(
            "names and declared channels cannot be in one subscription: their messages differ. Make two."
        )
    return Wanted(interests, lambda message: published(kinds, message.channel, message.payload, context))


def interests_of(asked: Iterable[Asked], patterns: Iterable[bytes], context: Context) -> list[Interest]:
    """Return the interests in channels and patterns. Raise UsageError for something else."""
    return [
        *(_interest(each, context) for each in asked),
        *(Interest(b"PSUBSCRIBE", each) for each in patterns),
    ]


def _interest(asked: Asked, context: Context) -> Interest:
    if isinstance(asked, bytes):
        return Interest(b"SUBSCRIBE", asked)
    if isinstance(asked, ChannelPattern):
        return Interest(b"PSUBSCRIBE", asked.glob(context))
    if not isinstance(asked, Channel):
        raise UsageError(
            f"{excerpt(asked)} is not a channel. Pass declared channels, patterns of them as "
            f"`matching` returns, or names as bytes."
        )
    name = context.name(asked)
    if asked.declaration.sharded:
        return Interest(b"SSUBSCRIBE", name, shard_of(asked, context))
    return Interest(b"SUBSCRIBE", name)


def message_in(reply: Reply) -> Message | None:
    """Return the message in something that a server sent to a subscriber, or None."""
    kind = reply[0] if isinstance(reply, list) else None
    if kind == b"pmessage":
        return Message(reply[2], reply[3])
    return Message(reply[1], reply[2]) if kind in (b"message", b"smessage") else None


def is_withdrawn(reply: Reply) -> bool:
    """Return whether a server ends a subscription by itself, because a slot moved to another node."""
    return isinstance(reply, list) and reply[0] == b"sunsubscribe"


def is_elsewhere(refused: object) -> bool:
    """Return whether a refusal says that another node has the slot, or will have it."""
    return str(refused).startswith(("MOVED", "CLUSTERDOWN", "TRYAGAIN", "ASK "))
