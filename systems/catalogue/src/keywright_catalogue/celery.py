"""Celery 5.7: Redis as broker (kombu) and as result backend.

A queue of Celery has its bare name, so `Queue` is the fallback: a name of letters, digits, `_`, `-` and `.`
that no other template has. kombu stores the messages of a priority under the name of the queue, two control
characters and the priority. The transport option `global_keyprefix` "shop:" is the prefix "shop".

Not declared: events and remote control, which are pub/sub, and the keys of schedulers such as RedBeat.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from keywright import (
    Counter,
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
    Value,
    refers,
)
from keywright.tools import Program

Uuid = Annotated[str, UuidText()]
QueueName = Annotated[str, Plain(".")]
Exchange = Annotated[str, Segment(":\x06")]
TaskOfChord = Annotated[str, Segment("")]

celery = Keyspace("celery", "Queues, unacknowledged messages and results of Celery 5.7.")


class Message(
    msgspec.Struct, rename={"content_encoding": "content-encoding", "content_type": "content-type"}
):
    """A task as kombu wraps it."""

    body: str
    """Base64 of the arguments and the rest of a chain, in JSON unless another serializer is chosen."""
    content_encoding: str | None
    """The encoding of the body, `utf-8`."""
    content_type: str | None
    """The serializer of the body, `application/json`."""
    headers: dict[str, Any]
    """The task: its name, id, parent, retries, deadline."""
    properties: dict[str, Any]
    """The delivery: priority, exchange and routing key, and the tag of the message."""


class Queue(List[Annotated[Message, Json]], key="<queue>", space=celery, fallback=True):
    """The waiting messages of a queue. Workers take the last one."""

    queue: QueueName


class PriorityQueue(List[Annotated[Message, Json]], key=r"<queue>\x06\x16<priority>", space=celery):
    """The waiting messages of one priority of a queue. Those of priority 0 are in the queue itself."""

    queue: QueueName
    priority: Annotated[str, Pattern("[1-9][0-9]?")]


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
    """The bindings of an exchange that have no deadline."""

    exchange: Exchange


class BindingDeadlines(SortedSet[Exchange, int], key="_kombu.binding_deadlines", space=celery):
    """The millisecond at which the temporary bindings of an exchange expire."""


class ResultDetails(msgspec.Struct):
    """The state of a task. With `result_extended` it has the call as well."""

    status: str
    """SUCCESS, FAILURE, RETRY, STARTED, REVOKED, or a state of the application."""
    result: Any
    """What the task returned, or the exception."""
    traceback: str | None
    """The traceback of a failure."""
    children: list[Any] | None
    """The tasks that this one started."""
    date_done: str | None
    """When it ended, in ISO 8601."""
    task_id: str
    """The id of the task."""
    group_id: str | None = None
    """The group of the task."""
    parent_id: str | None = None
    """The task that started this one."""
    name: str | None = None
    """The name of the task."""
    args: Any = None
    """Its positional arguments."""
    kwargs: Any = None
    """Its keyword arguments."""
    worker: str | None = None
    """The worker that ran it."""
    retries: int | None = None
    """How often it was tried again."""
    queue: str | None = None
    """The queue that it came from."""


class Result(Value[Annotated[ResultDetails, Json]], key="celery-task-meta-<task>", space=celery):
    """The result of a task. `result_expires` decides how long it is kept."""

    task: Annotated[str, Segment(":\x06")]


class GroupDetails(msgspec.Struct):
    """A group of tasks."""

    result: list[Any]
    """The id of the group, and the ids of its tasks."""


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

program = Program(
    "celery",
    "Celery",
    "5.7",
    (celery,),
    distinctive=tuple(kind for kind in celery if kind not in (Queue, Unacknowledged)),
)
