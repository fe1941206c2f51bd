"""Celery 5.7 with Redis as broker (kombu) and result backend. The declaration is ours, not Celery's.

A queue of Celery has its bare name, so `QueueName` must list your queues: a free name would overlap with all
other keys. kombu stores the messages of a priority under the name of the queue, two control characters and
the priority. Not declared: the channels of events and results, which are pub/sub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    Counter,
    Json,
    Keyspace,
    Language,
    List,
    Map,
    Plain,
    Set,
    SortedSet,
    UuidText,
    Value,
    Verbatim,
    characters,
    literal,
    refers,
)

Uuid = Annotated[str, UuidText()]
QueueName = Literal["celery", "slow.queue"]
Exchange = Annotated[str, Plain(".")]
TaskOfChord = Annotated[str, Plain(":+")]

celery = Keyspace("celery", "Queues, unacknowledged messages and results of Celery 5.7.")


@dataclass(frozen=True)
class PriorityText(Verbatim):
    """kombu's separator and a priority from 1 to 9. Priority 0 has no suffix."""

    @property
    def expected(self) -> str:
        return "kombu's separator (bytes 06 16) and a priority from 1 to 9"

    @property
    def language(self) -> Language:
        return literal(b"\x06\x16") + characters("123456789")

    @property
    def samples(self) -> tuple[str, ...]:
        return "\x06\x161", "\x06\x169"


class Message(
    msgspec.Struct, rename={"content_encoding": "content-encoding", "content_type": "content-type"}
):
    """A task as kombu wraps it; the body is Base64 of JSON."""

    body: str
    content_encoding: str | None
    content_type: str | None
    headers: dict[str, Any]
    properties: dict[str, Any]


class Queue(List[Annotated[Message, Json]], key="<queue>", space=celery):
    """The waiting messages of a queue. Workers take the last one."""

    queue: QueueName


class PriorityQueue(List[Annotated[Message, Json]], key="<queue><priority>", space=celery):
    """The waiting messages of one priority."""

    queue: QueueName
    priority: Annotated[str, PriorityText()]


class Replies(List[Annotated[Message, Json]], key="<caller>.reply.celery.pidbox", space=celery):
    """Answers to a remote control command, for the process that sent it."""

    caller: Uuid


class Unacknowledged(Map[Uuid, Annotated[list[Any], Json]], key="unacked", space=celery):
    """Messages that a worker has taken and not acknowledged, with exchange and routing key, by their tag."""


class UnacknowledgedIndex(SortedSet[Uuid, float], key="unacked_index", space=celery):
    """The same delivery tags by the second of delivery, to find those to restore."""


class RestoreLock(Value[str], key="unacked_mutex", space=celery):
    """Held while a worker restores unacknowledged messages."""


class Bindings(Set[str], key="_kombu.binding.<exchange>", space=celery):
    """The queues of an exchange: routing key, pattern and queue, separated by control characters."""

    exchange: Exchange


class PermanentBindings(Set[str], key="_kombu.binding_permanent.<exchange>", space=celery):
    """Those of them that have no deadline."""

    exchange: Exchange


class BindingDeadlines(SortedSet[Exchange, int], key="_kombu.binding_deadlines", space=celery):
    """The millisecond at which the temporary bindings of an exchange expire."""


class ResultDetails(msgspec.Struct):
    status: Literal["PENDING", "RECEIVED", "STARTED", "SUCCESS", "FAILURE", "REVOKED", "RETRY", "IGNORED"]
    result: Any
    traceback: str | None
    children: list[Any] | None
    date_done: str | None
    task_id: str
    group_id: str | None = None
    parent_id: str | None = None


class Result(Value[Annotated[ResultDetails, Json]], key="celery-task-meta-<task>", space=celery):
    """The result of a task; `result_expires` decides how long it is kept."""

    task: Uuid


class GroupDetails(msgspec.Struct):
    result: list[Any]


class GroupResult(Value[Annotated[GroupDetails, Json]], key="celery-taskset-meta-<group>", space=celery):
    """A saved group: its own id and those of its tasks."""

    group: Uuid


class ChordResults(SortedSet[bytes, float], key="celery-taskset-meta-<group>.j", space=celery):
    """The results of a chord so far, by their place in it."""

    group: Uuid


class ChordCount(Counter, key="celery-taskset-meta-<group>.t", space=celery):
    """How many tasks a chord has gained or lost since its size was set."""

    group: Uuid


class ChordSize(Counter, key="celery-taskset-meta-<group>.s", space=celery):
    """The number of tasks of a chord."""

    group: Uuid


class ChordTasks(Set[TaskOfChord], key="celery-taskset-meta-<group>.d", space=celery):
    """The tasks of a chord whose results were counted, each with its place: `<task>:<place>`."""

    group: Uuid


class ChordClaim(Value[str], key="celery-taskset-meta-<group>.c", space=celery):
    """The worker that sends the body of a chord, or `done`."""

    group: Uuid


refers(
    UnacknowledgedIndex, Unacknowledged, lambda _, tags: [((), tag) for tag, _score in tags], name="indexed"
)
