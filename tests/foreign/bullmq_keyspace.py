"""BullMQ 6.7, as its queues, workers, flows and schedulers write it. The declaration is ours, not BullMQ's.

The id of a job stands where `wait`, `meta` and the other words stand, so `JobIdText` must know the form of
your own ids; a free text would overlap with those words. BullMQ moves jobs with Lua scripts, so each list and
sorted set of a queue requires its jobs. Not declared: rate limits, paused queues, and children that failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    Counter,
    Id,
    Json,
    Keyspace,
    Language,
    List,
    Map,
    Plain,
    Record,
    Set,
    SortedSet,
    Stream,
    UuidText,
    Value,
    Verbatim,
    characters,
    literal,
    refers,
)

bull = Keyspace("bull", "Queues, jobs and schedulers of BullMQ 6.7.", prefix="bull")

_DIGITS = characters("0123456789").repeat(1)
_NAME = Plain().language


@dataclass(frozen=True)
class JobIdText(Verbatim):
    """A number, a UUID (jobs of a flow), an occurrence of a scheduler, or the application's own `order-…`."""

    @property
    def expected(self) -> str:
        return "the id of a job: a number, a UUID, repeat:<scheduler>:<milliseconds> or order-<number>"

    @property
    def language(self) -> Language:
        repeated = literal(b"repeat:") + _NAME + literal(b":") + _DIGITS
        return _DIGITS | UuidText().language | repeated | literal(b"order-") + _DIGITS

    @property
    def samples(self) -> tuple[str, ...]:
        return ("1", *UuidText().samples, "repeat:daily:1794816090623", "order-17")


JobId = Annotated[str, JobIdText()]
JobKey = Annotated[str, Plain(":")]


class JobDetails(msgspec.Struct, rename="camel"):
    name: str
    data: Annotated[Any, Json]
    opts: Annotated[dict[str, Any], Json]
    timestamp: int
    delay: int
    priority: int
    processed_on: int | None = None
    finished_on: int | None = None
    ats: int | None = None
    """Attempts started."""
    atm: int | None = None
    """Attempts made."""
    stc: int | None = None
    """How often it stalled."""
    progress: Annotated[Any, Json] = None
    returnvalue: Annotated[Any, Json] = None
    failed_reason: str | None = None
    stacktrace: Annotated[list[str], Json] | None = None
    defa: str | None = None
    """A failure to be applied later."""
    parent_key: JobKey | None = None
    parent: Annotated[dict[str, Any], Json] | None = None
    rjk: str | None = None
    """The scheduler."""
    nrjid: str | None = None
    """The next job of the scheduler."""
    deid: str | None = None
    """The deduplication id."""
    pb: str | None = None
    """The worker."""


class Job(Record[JobDetails], key="<queue>:<job>", space=bull):
    """A job: its data, options, history and result."""

    queue: Id
    job: JobId


class JobLogs(List[str], key="<queue>:<job>:logs", space=bull):
    """The lines that a job has logged."""

    queue: Id
    job: JobId


class JobLock(Value[str], key="<queue>:<job>:lock", space=bull):
    """Held by the worker that runs the job, and renewed."""

    queue: Id
    job: JobId


class PendingChildren(Set[JobKey], key="<queue>:<job>:dependencies", space=bull):
    """The children that a job of a flow waits for, by their whole key names."""

    queue: Id
    job: JobId


class ProcessedChildren(Map[JobKey, Annotated[Any, Json]], key="<queue>:<job>:processed", space=bull):
    """The results of the children of a job."""

    queue: Id
    job: JobId


class Waiting(List[JobId], key="<queue>:<state>", space=bull):
    """Jobs that wait, or that workers have taken."""

    queue: Id
    state: Literal["wait", "active"]


class Ordered(SortedSet[JobId, int], key="<queue>:<registry>", space=bull):
    """Jobs in one state: by the millisecond, or by priority and order. A delay is shifted by twelve bits."""

    queue: Id
    registry: Literal["completed", "delayed", "failed", "prioritized", "waiting-children"]


class Stalled(Set[JobId], key="<queue>:stalled", space=bull):
    """Jobs to be looked at in the next search for stalled ones."""

    queue: Id


class StalledCheck(Value[int], key="<queue>:stalled-check", space=bull):
    """The millisecond of the last search for stalled jobs."""

    queue: Id


class LastId(Counter, key="<queue>:id", space=bull):
    """The last number that was given to a job."""

    queue: Id


class PriorityCounter(Counter, key="<queue>:pc", space=bull):
    """Orders jobs of the same priority."""

    queue: Id


class Marker(SortedSet[Literal["0", "1"], int], key="<queue>:marker", space=bull):
    """Wakes workers: 0 for a job that waits, 1 with the millisecond of the next delayed one."""

    queue: Id


class Meta(Map[str, str], key="<queue>:meta", space=bull):
    """Options of a queue, and the version that wrote them."""

    queue: Id


class EventDetails(msgspec.Struct, rename="camel"):
    """An event has the members of its type, so all but the type may be missing."""

    event: str
    job_id: str | None = None
    name: str | None = None
    prev: str | None = None
    data: Annotated[Any, Json] = None
    returnvalue: str | None = None
    failed_reason: str | None = None
    delay: str | None = None
    attempts_made: int | None = None
    count: int | None = None
    deduplication_id: str | None = None
    deduplicated_job_id: str | None = None


class Events(Stream[EventDetails], key="<queue>:events", space=bull):
    """Everything that happened to the jobs of a queue, the last ten thousand or so."""

    queue: Id


class MetricsDetails(msgspec.Struct, rename="camel"):
    count: int
    prev_ts: int = msgspec.field(name="prevTS")
    prev_count: int


class Metrics(Record[MetricsDetails], key="<queue>:metrics:<outcome>", space=bull):
    """Counts of ended jobs."""

    queue: Id
    outcome: Literal["completed", "failed"]


class MetricsData(List[int], key="<queue>:metrics:<outcome>:data", space=bull):
    """Ended jobs by the minute, the latest first."""

    queue: Id
    outcome: Literal["completed", "failed"]


class Schedulers(SortedSet[Id, int], key="<queue>:repeat", space=bull):
    """The schedulers of a queue, by the millisecond of their next job."""

    queue: Id


class SchedulerDetails(msgspec.Struct, rename="camel"):
    name: str
    ic: int
    """How many jobs it has made."""
    offset: int | None = None
    every: int | None = None
    pattern: str | None = None
    tz: str | None = None
    limit: int | None = None
    start_date: int | None = None
    end_date: int | None = None
    opts: Annotated[dict[str, Any], Json] | None = None
    data: Annotated[Any, Json] = None


class Scheduler(Record[SchedulerDetails], key="<queue>:repeat:<scheduler>", space=bull):
    """A scheduler, which adds a job at each of its times."""

    queue: Id
    scheduler: Id


class Deduplication(Value[JobId], key="<queue>:de:<deduplication>", space=bull):
    """The job that stands for all with this deduplication id."""

    queue: Id
    deduplication: Id


refers(Waiting, Job, lambda key, jobs: [(key.queue, job) for job in jobs], name="listed")
refers(Ordered, Job, lambda key, jobs: [(key.queue, job) for job, _ in jobs], name="ordered")
refers(Schedulers, Scheduler, lambda key, found: [(key.queue, each) for each, _ in found], name="scheduled")
