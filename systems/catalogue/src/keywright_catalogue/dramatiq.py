"""dramatiq 2.2: the Redis broker, results, and rate limits.

dramatiq moves a message with one Lua script, so every id of a queue, of its dead letters and of a worker has
its message at all times. The names of the broker begin with its namespace, `dramatiq`, which is the prefix of
the keyspace `dramatiq`. Results, barriers and rate limits have names without it, in a keyspace of their own;
there the rate limits are fallbacks, because the application names them.

Not declared: results with `use_namespace_prefix_keys`, and barriers that the application names itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    U64,
    Counter,
    Except,
    Hex,
    Json,
    Keyspace,
    List,
    Map,
    Pattern,
    Plain,
    Segment,
    Set,
    SortedSet,
    UuidText,
    refers,
)
from keywright.tools import Program

Uuid = Annotated[str, UuidText()]
_NAME = Except(
    Pattern("[a-zA-Z_][a-zA-Z0-9._-]*"),
    "__heartbeats__",
    Pattern(r"__acks__\.[a-zA-Z0-9._-]*"),
    Pattern(r"[a-zA-Z0-9._-]*\.(DQ|XQ|msgs)"),
)
MainQueue = Annotated[str, _NAME]
"""The name of a queue."""

dramatiq = Keyspace("dramatiq", "Queues and messages of dramatiq 2.2.", prefix="dramatiq")
results = Keyspace("dramatiq-results", "Results, barriers and rate limits of dramatiq 2.2.")


class Message(msgspec.Struct):
    """A call of an actor."""

    queue_name: str
    """The queue, with `.DQ` while it is delayed."""
    actor_name: str
    """The actor to call."""
    args: list[Any]
    """Positional arguments."""
    kwargs: dict[str, Any]
    """Keyword arguments."""
    options: dict[str, Any]
    """Options of the middleware: retries, time limits, callbacks, and the id that Redis knows it by."""
    message_id: str
    """The id of the message, which stays the same when it is tried again."""
    message_timestamp: int
    """When it was made, in milliseconds."""


class Queue(List[Uuid], key="<queue>[.<delay>]", space=dramatiq):
    """The ids of the waiting messages. `<queue>.DQ` has those that are delayed."""

    queue: MainQueue
    delay: Literal["DQ"] | None = None


class Messages(Map[Uuid, Annotated[Message, Json]], key="<queue>[.<delay>].msgs", space=dramatiq):
    """The messages of a queue, waiting or taken by a worker."""

    queue: MainQueue
    delay: Literal["DQ"] | None = None


class DeadLetters(SortedSet[Uuid, int], key="<queue>.XQ", space=dramatiq):
    """The ids of failed messages, by the millisecond of their failure."""

    queue: MainQueue


class DeadMessages(Map[Uuid, Annotated[Message, Json]], key="<queue>.XQ.msgs", space=dramatiq):
    """The failed messages of a queue."""

    queue: MainQueue


class Taken(Set[Uuid], key="__acks__.<worker>.<queue>[.<delay>]", space=dramatiq):
    """The ids of the messages that a worker has taken and not acknowledged."""

    worker: Uuid
    queue: MainQueue
    delay: Literal["DQ"] | None = None


class Heartbeats(SortedSet[Uuid, int], key="__heartbeats__", space=dramatiq):
    """Brokers and workers, by the millisecond of their last command."""


class Result(List[Annotated[Any, Json]], key="<message>", space=results):
    """A result: a list of one, under the MD5 of namespace, queue, actor and message id."""

    message: Annotated[str, Hex(32)]


class Barrier(Counter, key="<barrier>", space=results):
    """The messages of a group that have not ended. Its callbacks are sent at zero."""

    barrier: Uuid


class BarrierEvents(List[str], key="<barrier>@events", space=results):
    """There once a barrier is passed, for those who wait for it."""

    barrier: Uuid


class WindowLimit(Counter, key="<limiter>@<second>", space=results, fallback=True):
    """A window or bucket rate limit: the calls in a second, or in the bucket that begins with it."""

    limiter: Annotated[str, Segment("@")]
    second: U64


class ConcurrentLimit(Counter, key="<limiter>", space=results, fallback=True):
    """A concurrent rate limit: the calls in progress."""

    limiter: Annotated[str, Plain(".")]


def _in_queue(key: Any, ids: Iterable[str]) -> list[tuple[tuple[str, str | None], str]]:
    return [((key.queue, key.delay), each) for each in ids]


refers(Queue, Messages, _in_queue, name="queued")
refers(Taken, Messages, _in_queue, name="taken")
refers(DeadLetters, DeadMessages, lambda key, ids: [(key.queue, each) for each, _ in ids], name="dead")

program = Program(
    "dramatiq",
    "dramatiq",
    "2.2",
    (dramatiq, results),
    distinctive=(Messages, DeadLetters, DeadMessages, Taken, Heartbeats),
)
