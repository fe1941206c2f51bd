"""taskiq 0.13 with taskiq-redis 1.2: brokers, the result backend, and both sources of schedules.

A queue has the name that the application gives it, `taskiq` by default, and is a list or a stream: names do
not say which. So there are two programs, `taskiq` with ListQueueBroker and `taskiq-streams` with
RedisStreamBroker, where the queue is the fallback. The names of results begin with the `prefix_str` of their
backend, or are bare ids. Results are pickles, which are never loaded, or JSON.

Not declared: task ids that the application chooses, another prefix of schedules than `schedule`,
PubSubBroker, which stores nothing.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from keywright import (
    Except,
    FirstOf,
    Hex,
    Json,
    Keyspace,
    List,
    Pattern,
    Pickled,
    Plain,
    Segment,
    Stream,
    Value,
    may_expire,
    refers,
)
from keywright.tools import Program

HexId = Annotated[str, Hex(32)]
QueueName = Annotated[str, Plain(".")]
ResultPrefix = Annotated[str, Except(Segment(), "schedule")]
Minute = Annotated[str, Pattern("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}")]
"""A minute in UTC, as `2026-11-16T12:00`."""

taskiq = Keyspace("taskiq", "Results and schedules of taskiq-redis 1.2.")
lists = Keyspace("taskiq-queues", "Queues of taskiq-redis 1.2 that are lists.")
streams = Keyspace("taskiq-streams", "Queues of taskiq-redis 1.2 that are streams.")


class Message(msgspec.Struct):
    """A call of a task."""

    task_id: str
    """The id of the call, by which its result is stored."""
    task_name: str
    """The task to call."""
    labels: dict[str, Any]
    """Options of the middleware and data of the application, as text."""
    labels_types: dict[str, int] | None
    """The type of each label, to read its text."""
    args: list[Any]
    """Positional arguments."""
    kwargs: dict[str, Any]
    """Keyword arguments."""


class Queue(List[Annotated[Message, Json]], key="<queue>", space=lists, fallback=True):
    """The waiting calls of a queue. Workers take the last one."""

    queue: QueueName


class Delivery(msgspec.Struct):
    """An entry of a stream."""

    data: Annotated[Message, Json]
    """The call."""


class StreamQueue(Stream[Delivery], key="<queue>", space=streams, fallback=True, groups=["taskiq"]):
    """The calls of a queue, waiting, running and done, up to the `maxlen` of the broker."""

    queue: QueueName


class ClaimLock(Value[HexId], key="autoclaim:<group>:<queue>", space=streams, expiry=may_expire()):
    """Held while a worker takes over entries of others. Expires if the broker has a timeout for it."""

    group: Annotated[str, Segment()]
    queue: QueueName


class ResultDetails(msgspec.Struct):
    """The end of a call."""

    is_err: bool
    """Whether it failed."""
    log: str | None
    """Always None; former versions stored output here."""
    return_value: Any
    """What the task returned."""
    execution_time: float
    """How many seconds it took."""
    labels: dict[str, Any]
    """The labels of the call."""
    error: Any
    """The exception."""


class ProgressDetails(msgspec.Struct):
    """What a task has reported of itself."""

    state: str
    """`STARTED`, `SUCCESS`, `FAILURE`, `RETRY`, or a word of the application."""
    meta: Any
    """Data of the application."""


class Result(
    Value[Annotated[Any, FirstOf(Pickled(), Json(ResultDetails))]],
    key="[<prefix>:]<task>",
    space=taskiq,
    expiry=may_expire(),
):
    """The result of a call. Expires as the backend is configured."""

    task: HexId
    prefix: ResultPrefix | None = None


class Progress(
    Value[Annotated[Any, FirstOf(Pickled(), Json(ProgressDetails))]],
    key="[<prefix>:]<task>__progress",
    space=taskiq,
    expiry=may_expire(),
):
    """The progress of a call. Expires as its result."""

    task: HexId
    prefix: ResultPrefix | None = None


class OldSchedule(Value[Annotated[bytes, Pickled]], key="schedule:<schedule>", space=taskiq):
    """A schedule of RedisScheduleSource."""

    schedule: HexId


class Schedule(Value[Annotated[bytes, Pickled]], key="schedule:data:<schedule>", space=taskiq):
    """A schedule of ListRedisScheduleSource: the call, and its cron expression, time or interval."""

    schedule: HexId


class Moments(List[HexId], key="schedule:time:<minute>", space=taskiq):
    """The schedules of a minute, which are sent once."""

    minute: Minute


class CronSchedules(List[HexId], key="schedule:cron", space=taskiq):
    """The schedules with a cron expression."""


class IntervalSchedules(List[HexId], key="schedule:interval", space=taskiq):
    """The schedules with an interval."""


for _index, _name in ((Moments, "at"), (CronSchedules, "cron"), (IntervalSchedules, "every")):
    refers(_index, Schedule, lambda _, schedules: schedules, name=_name)

program = Program(
    "taskiq",
    "taskiq",
    "0.13 with taskiq-redis 1.2",
    (taskiq, lists),
    distinctive=(Progress, Schedule),
)
stream_program = Program(
    "taskiq-streams",
    "taskiq with streams",
    "0.13 with taskiq-redis 1.2",
    (taskiq, streams),
    distinctive=(ClaimLock, Progress, Schedule),
)
