"""huey 3.5: the storages of RedisHuey, PriorityRedisHuey, RedisExpireHuey and PriorityRedisExpireHuey.

The queue `huey.redis.<name>` is a list, or a sorted set with priorities: names do not say which. So there are
two programs, `huey` and `huey-priority`, which differ in the queue only. Tasks and results are pickles, which
are never loaded; compressed or signed ones need another codec.

RedisHuey keeps results, revocations, locks and windows of rate limits together in a hash, RedisExpireHuey in
keys of their own, of which results and counters expire. Not declared: task ids that the application chooses,
names of a queue with other characters than letters, digits and `_` (`clean_name=False`).
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from keywright import (
    U64,
    Codec,
    Counter,
    EpochFloat,
    Keyspace,
    List,
    Map,
    OneOf,
    Pattern,
    Pickled,
    Segment,
    SortedSet,
    UuidText,
    Value,
    may_expire,
)
from keywright.tools import Program

Pickle = Annotated[bytes, Pickled]
QueueName = Annotated[str, Pattern("[A-Za-z0-9_]+")]
Uuid = Annotated[str, UuidText()]
AnyText = Annotated[str, Segment("")]
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

huey = Keyspace("huey", "Schedules, results and counters of huey 3.5.")
lists = Keyspace("huey-queues", "Queues of huey 3.5 without priorities.")
ranked = Keyspace("huey-priority-queues", "Queues of huey 3.5 with priorities.")


class StampedTask(NamedTuple):
    """A task in a queue with priorities."""

    enqueued: datetime
    """When it was enqueued: tasks of the same priority are taken in this order."""
    task: bytes
    """The pickle of the task."""


class Stamped(Codec[StampedTask]):
    """Microseconds as eight bytes, big-endian, and a pickle."""

    expected = "eight bytes of time and a pickle"
    python_type = StampedTask
    samples = (StampedTask(datetime(2026, 11, 16, tzinfo=UTC), b"\x80\x04N."),)
    _epoch = datetime(1970, 1, 1, tzinfo=UTC)
    _microsecond = timedelta(microseconds=1)
    _pickled = Pickled()

    def encode(self, value: StampedTask) -> bytes:
        try:
            stamp = struct.pack(">Q", (value.enqueued - self._epoch) // self._microsecond)
            return stamp + self._pickled.encode(value.task)
        except (AttributeError, TypeError, struct.error, ValueError) as error:
            raise self.refusal(value) from error

    def decode(self, data: bytes) -> StampedTask:
        try:
            (stamp,) = struct.unpack(">Q", data[:8])
            enqueued = self._epoch + stamp * self._microsecond
            return StampedTask(enqueued, self._pickled.decode(data[8:]))
        except (OverflowError, struct.error, ValueError) as error:
            raise self.refusal(data) from error


class Queue(List[Pickle], key="huey.redis.<queue>", space=lists):
    """The waiting tasks. Consumers take the last one."""

    queue: QueueName


class PriorityQueue(SortedSet[Annotated[StampedTask, Stamped], int], key="huey.redis.<queue>", space=ranked):
    """The waiting tasks by their priority, negated, so that consumers take the lowest score."""

    queue: QueueName


class Schedule(SortedSet[Pickle, Annotated[datetime, EpochFloat]], key="huey.schedule.<queue>", space=huey):
    """Tasks that are delayed, or tried again later, by the second at which they are due."""

    queue: QueueName


class Results(Map[str, Pickle], key="huey.results.<queue>", space=huey):
    """Of a storage without expiry: all that it keeps by name, until it is read.

    `<task>` is a result, `chord:<chord>:<place>` one of a chord. `r:<task>` and `rt:<function>` are
    revocations. `<queue>.lock.<lock>` is a lock that is held, `<queue>.rl.<limit>.w` the window of a limit.
    """

    queue: QueueName


class Counters(Map[str, int], key="huey.counters.<queue>", space=huey):
    """Of a storage without expiry: `<queue>.rl.<limit>` for calls, `chord:<chord>` for tasks that ended."""

    queue: QueueName


class Notification(List[Literal["1"]], key="huey.notify.<queue>.<result>", space=huey, expiry=may_expire()):
    """There once a result is stored, for those who wait for it. Expires after a minute, or as configured."""

    queue: QueueName
    result: Annotated[str, OneOf(UuidText(), Pattern(f"chord:{_UUID}:[0-9]+"))]


class Result(Value[Pickle], key="huey.r.<queue>.<task>", space=huey, expiry=may_expire()):
    """The result of a task, or its error. Every one expires, after a day or as configured."""

    queue: QueueName
    task: Uuid


class ChordResult(Value[Pickle], key="huey.r.<queue>.chord:<chord>:<place>", space=huey, expiry=may_expire()):
    """The result of a task of a chord, until the last one has ended."""

    queue: QueueName
    chord: Uuid
    place: U64


class Revocation(Value[Pickle], key="huey.r.<queue>.r:<task>", space=huey):
    """A task that is not to be run: until when, and whether once only. Removed when the task is due."""

    queue: QueueName
    task: Uuid


class FunctionRevocation(Value[Pickle], key="huey.r.<queue>.rt:<function>", space=huey):
    """A function whose tasks are not to be run."""

    queue: QueueName
    function: AnyText


class Lock(Value[Pickle], key="huey.r.<queue>.<owner>.lock.<lock>", space=huey, expiry=may_expire()):
    """A lock that is held, by the name of its queue and its own. Expires if it has a `ttl`."""

    queue: QueueName
    owner: Annotated[str, Segment(".:")]
    lock: AnyText


class Window(Value[Pickle], key="huey.r.<queue>.<owner>.rl.<limit>.w", space=huey):
    """The number of the window that a rate limit counts."""

    queue: QueueName
    owner: Annotated[str, Segment(".:")]
    limit: AnyText


class LimitCount(Counter, key="huey.c.<queue>.<owner>.rl.<limit>", space=huey, expiry=may_expire()):
    """The calls in the window of a rate limit. Every one expires."""

    queue: QueueName
    owner: Annotated[str, Segment(".:")]
    limit: AnyText


class ChordCount(Counter, key="huey.c.<queue>.chord:<chord>", space=huey, expiry=may_expire()):
    """The tasks of a chord that have ended. Every one expires."""

    queue: QueueName
    chord: Uuid


_OWN_TEXT = (Schedule, Results, Counters, Notification, Result, ChordResult, Revocation)
program = Program("huey", "huey", "3.5", (huey, lists), distinctive=(Queue, *_OWN_TEXT))
priority_program = Program(
    "huey-priority", "huey with priorities", "3.5", (huey, ranked), distinctive=(PriorityQueue, *_OWN_TEXT)
)
