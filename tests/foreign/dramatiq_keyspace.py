"""dramatiq 2.2 with its Redis broker, results and rate limits. The declaration is ours, not dramatiq's.

dramatiq moves a message with one Lua script, so every id of a queue, of its dead letters and of a worker has
its message at all times. Names of rate limiters are the application's: replace ours with yours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from keywright import (
    Counter,
    Hex,
    Json,
    Keyspace,
    Language,
    List,
    Map,
    RestOfName,
    Set,
    SortedSet,
    UuidText,
    Verbatim,
    characters,
    literal,
    refers,
)

Uuid = Annotated[str, UuidText()]
dramatiq = Keyspace("dramatiq", "Queues, messages, results and rate limits of dramatiq 2.2.")

_LETTER = characters("", (0x41, 0x5A), (0x61, 0x7A))
_LETTER_OR_DIGIT = characters("_-", (0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))


@dataclass(frozen=True)
class QueueName(Verbatim):
    """The name of a queue: a letter, then letters, digits, `_` and `-`. `delayed` allows `.DQ` at its end.

    dramatiq also allows names with dots and a leading underscore, which overlap with its own keys.
    """

    delayed: bool = True

    @property
    def expected(self) -> str:
        return "the name of a queue" + (", which may end with .DQ" if self.delayed else "")

    @property
    def language(self) -> Language:
        name = _LETTER + _LETTER_OR_DIGIT.repeat(0)
        return name + literal(b".DQ").repeat(0, 1) if self.delayed else name

    @property
    def samples(self) -> tuple[str, ...]:
        return ("default", "low-priority", "default.DQ") if self.delayed else ("default", "low-priority")


AnyQueue = Annotated[str, QueueName()]
MainQueue = Annotated[str, QueueName(delayed=False)]


class Message(msgspec.Struct):
    queue_name: str
    actor_name: str
    args: list[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    message_id: str
    message_timestamp: int


class Queue(List[Uuid], key="dramatiq:<queue>", space=dramatiq):
    """The ids of the waiting messages; a name with .DQ holds those that are delayed."""

    queue: AnyQueue


class Messages(Map[Uuid, Annotated[Message, Json]], key="dramatiq:<queue>.msgs", space=dramatiq):
    """The messages of a queue, waiting or taken by a worker."""

    queue: AnyQueue


class DeadLetters(SortedSet[Uuid, int], key="dramatiq:<queue>.XQ", space=dramatiq):
    """The ids of failed messages, by the millisecond of their failure."""

    queue: MainQueue


class DeadMessages(Map[Uuid, Annotated[Message, Json]], key="dramatiq:<queue>.XQ.msgs", space=dramatiq):
    """The failed messages."""

    queue: MainQueue


class Taken(Set[Uuid], key="dramatiq:__acks__.<worker>.<queue>", space=dramatiq):
    """The ids of the messages that a worker has taken and not acknowledged."""

    worker: Uuid
    queue: AnyQueue


class Heartbeats(SortedSet[Uuid, int], key="dramatiq:__heartbeats__", space=dramatiq):
    """Brokers and workers, by the millisecond of their last command."""


class Result(List[Annotated[Any, Json]], key="<message>", space=dramatiq):
    """A result: a list of one, under the MD5 of namespace, queue, actor and message id."""

    message: Annotated[str, Hex(32)]


class Barrier(Counter, key="<barrier>", space=dramatiq):
    """The messages of a group that have not ended; its callbacks are sent at zero."""

    barrier: Uuid


class BarrierEvents(List[str], key="<barrier>@events", space=dramatiq):
    """There once a barrier is passed, for those who wait for it."""

    barrier: Uuid


class ImportLimit(Counter, key="imports", space=dramatiq):
    """A concurrent rate limit of the application: the calls in progress."""


class WindowLimit(Counter, key="window:<limited>", space=dramatiq):
    """A window rate limit of the application: the calls of a subject in a second, `<subject>@<second>`."""

    limited: RestOfName


def _in_queue(key: Any, ids: Iterable[str]) -> list[tuple[str, str]]:
    return [(key.queue, each) for each in ids]


refers(Queue, Messages, _in_queue, name="queued")
refers(Taken, Messages, _in_queue, name="taken")
refers(DeadLetters, DeadMessages, lambda key, ids: [(key.queue, each) for each, _ in ids], name="dead")
