"""BullMQ 6.7: queues, jobs, flows and schedulers.

The option `prefix` of a queue, `bull`, is the prefix of the keyspace; a hash tag such as `{bull}` too. The id
of a job stands where `wait`, `meta` and the other words stand, so it is any text but these words. BullMQ
moves jobs with Lua scripts, so each list and sorted set of a queue requires its jobs.

Not declared: rate limits, paused queues, and children that failed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    Counter,
    Except,
    Json,
    Keyspace,
    List,
    Map,
    OneOf,
    Pattern,
    Record,
    Segment,
    Set,
    SortedSet,
    Stream,
    Value,
    refers,
)
from keywright.tools import Program

bullmq = Keyspace("bullmq", "Queues, jobs and schedulers of BullMQ 6.7.", prefix="bull")

_WORDS = (
    *(
        "active",
        "completed",
        "de",
        "delayed",
        "events",
        "failed",
        "id",
        "limiter",
        "marker",
        "meta",
        "metrics",
    ),
    *("paused", "pc", "prioritized", "repeat", "stalled", "stalled-check", "wait", "waiting-children"),
)
QueueName = Annotated[str, Segment()]
"""Any text without a colon, as BullMQ requires it."""
JobId = Annotated[str, Except(OneOf(Segment(), Pattern("repeat:[^:]+:[0-9]+")), *_WORDS)]
"""A number, a UUID, an id of the application, or an occurrence of a scheduler: `repeat:<scheduler>:<ms>`."""
JobKey = Annotated[str, Segment("")]
"""The whole name of the key of a job."""


class JobDetails(msgspec.Struct, rename="camel"):
    """A job."""

    name: str
    """What workers call this sort of job."""
    data: Annotated[Any, Json]
    """The data of the application."""
    opts: Annotated[dict[str, Any], Json]
    """Options: attempts, back-off, delay, what is removed when it ends."""
    timestamp: int
    """When it was added, in milliseconds."""
    delay: int
    """For how long it waits, in milliseconds."""
    priority: int
    """From 1, the most urgent; 0 is none."""
    processed_on: int | None = None
    """When a worker took it, in milliseconds."""
    finished_on: int | None = None
    """When it ended, in milliseconds."""
    ats: int | None = None
    """Attempts started."""
    atm: int | None = None
    """Attempts made."""
    stc: int | None = None
    """How often it stalled."""
    progress: Annotated[Any, Json] = None
    """Its progress, as the worker reports it."""
    returnvalue: Annotated[Any, Json] = None
    """Its result."""
    failed_reason: str | None = None
    """The message of its last failure."""
    stacktrace: Annotated[list[str], Json] | None = None
    """The stack traces of its failures."""
    defa: str | None = None
    """A failure to be applied later."""
    parent_key: JobKey | None = None
    """The job of the flow that waits for this one."""
    parent: Annotated[dict[str, Any], Json] | None = None
    """The same as id and queue."""
    rjk: str | None = None
    """The scheduler."""
    nrjid: str | None = None
    """The next job of the scheduler."""
    deid: str | None = None
    """The deduplication id."""
    pb: str | None = None
    """The worker."""


class Job(Record[JobDetails], key="<queue>:<job>", space=bullmq):
    """A job: its data, options, history and result."""

    queue: QueueName
    job: JobId


class JobLogs(List[str], key="<queue>:<job>:logs", space=bullmq):
    """The lines that a job has logged."""

    queue: QueueName
    job: JobId


class JobLock(Value[str], key="<queue>:<job>:lock", space=bullmq):
    """Held by the worker that runs the job, and renewed."""

    queue: QueueName
    job: JobId


class PendingChildren(Set[JobKey], key="<queue>:<job>:dependencies", space=bullmq):
    """The children that a job of a flow waits for, by their whole key names."""

    queue: QueueName
    job: JobId


class ProcessedChildren(Map[JobKey, Annotated[Any, Json]], key="<queue>:<job>:processed", space=bullmq):
    """The results of the children of a job."""

    queue: QueueName
    job: JobId


class Waiting(List[JobId], key="<queue>:<state>", space=bullmq):
    """Jobs that wait, or that workers have taken."""

    queue: QueueName
    state: Literal["wait", "active"]


class Ordered(SortedSet[JobId, int], key="<queue>:<registry>", space=bullmq):
    """Jobs in one state: by the millisecond, or by priority and order. A delay is shifted by twelve bits."""

    queue: QueueName
    registry: Literal["completed", "delayed", "failed", "prioritized", "waiting-children"]


class Stalled(Set[JobId], key="<queue>:stalled", space=bullmq):
    """Jobs to be looked at in the next search for stalled ones."""

    queue: QueueName


class StalledCheck(Value[int], key="<queue>:stalled-check", space=bullmq):
    """The millisecond of the last search for stalled jobs."""

    queue: QueueName


class LastId(Counter, key="<queue>:id", space=bullmq):
    """The last number that was given to a job."""

    queue: QueueName


class PriorityCounter(Counter, key="<queue>:pc", space=bullmq):
    """Orders jobs of the same priority."""

    queue: QueueName


class Marker(SortedSet[Literal["0", "1"], int], key="<queue>:marker", space=bullmq):
    """Wakes workers: 0 for a job that waits, 1 with the millisecond of the next delayed one."""

    queue: QueueName


class Meta(Map[str, str], key="<queue>:meta", space=bullmq):
    """Options of a queue, and the version that wrote them."""

    queue: QueueName


class EventDetails(msgspec.Struct, rename="camel"):
    """An event. It has the members of its type, so all but the type may be missing."""

    event: str
    """The type: added, waiting, active, progress, completed, failed, delayed, drained and others."""
    job_id: str | None = None
    """The job."""
    name: str | None = None
    """The name of an added job."""
    prev: str | None = None
    """The state that the job was in."""
    data: Annotated[Any, Json] = None
    """Progress."""
    returnvalue: str | None = None
    """The result of a completed job, in JSON."""
    failed_reason: str | None = None
    """The message of a failure."""
    delay: str | None = None
    """When a delayed job is due, in milliseconds."""
    attempts_made: int | None = None
    """How often the job was tried."""
    count: int | None = None
    """How many jobs were removed."""
    deduplication_id: str | None = None
    """The deduplication id of a job that was not added."""
    deduplicated_job_id: str | None = None
    """The job that was not added."""


class Events(Stream[EventDetails], key="<queue>:events", space=bullmq):
    """Everything that happened to the jobs of a queue, the last ten thousand or so."""

    queue: QueueName


class MetricsDetails(msgspec.Struct, rename="camel"):
    """A count of ended jobs, and what it was at the beginning of the minute."""

    count: int
    """Ended jobs."""
    prev_ts: int = msgspec.field(name="prevTS")
    """The millisecond of the last entry."""
    prev_count: int
    """The count at that time."""


class Metrics(Record[MetricsDetails], key="<queue>:metrics:<outcome>", space=bullmq):
    """Counts of ended jobs."""

    queue: QueueName
    outcome: Literal["completed", "failed"]


class MetricsData(List[int], key="<queue>:metrics:<outcome>:data", space=bullmq):
    """Ended jobs by the minute, the latest first."""

    queue: QueueName
    outcome: Literal["completed", "failed"]


class Schedulers(SortedSet[Annotated[str, Segment()], int], key="<queue>:repeat", space=bullmq):
    """The schedulers of a queue, by the millisecond of their next job."""

    queue: QueueName


class SchedulerDetails(msgspec.Struct, rename="camel"):
    """A scheduler."""

    name: str
    """The name of its jobs."""
    ic: int
    """How many jobs it has made."""
    offset: int | None = None
    """Milliseconds after a multiple of the interval."""
    every: int | None = None
    """The interval in milliseconds."""
    pattern: str | None = None
    """Its times, as cron writes them."""
    tz: str | None = None
    """The time zone of the pattern."""
    limit: int | None = None
    """The most jobs to make."""
    start_date: int | None = None
    """When it begins, in milliseconds."""
    end_date: int | None = None
    """When it ends, in milliseconds."""
    opts: Annotated[dict[str, Any], Json] | None = None
    """The options of its jobs."""
    data: Annotated[Any, Json] = None
    """The data of its jobs."""


class Scheduler(Record[SchedulerDetails], key="<queue>:repeat:<scheduler>", space=bullmq):
    """A scheduler, which adds a job at each of its times."""

    queue: QueueName
    scheduler: Annotated[str, Segment()]


class Deduplication(Value[JobId], key="<queue>:de:<deduplication>", space=bullmq):
    """The job that stands for all with this deduplication id."""

    queue: QueueName
    deduplication: Annotated[str, Segment()]


refers(Waiting, Job, lambda key, jobs: [(key.queue, job) for job in jobs], name="listed")
refers(Ordered, Job, lambda key, jobs: [(key.queue, job) for job, _ in jobs], name="ordered")
refers(Schedulers, Scheduler, lambda key, found: [(key.queue, each) for each, _ in found], name="scheduled")

program = Program(
    "bullmq",
    "BullMQ",
    "6.7",
    (bullmq,),
    distinctive=(Meta, Events, Marker),  # Bull, its predecessor, has the others too
    version_member=(Meta, "version"),
)
