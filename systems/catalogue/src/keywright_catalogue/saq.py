"""saq 0.26 with its Redis queue.

Members of the lists of a queue are whole names of keys. saq moves a job in one transaction or script, so what
waits has its job; `active` may have a job that has ended, until the next sweep. Queues may have any name
without a colon, except `job` and `abort`. Not declared: the channels of jobs, which have the names of their
keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    EpochFloat,
    Except,
    Json,
    Keyspace,
    List,
    Pattern,
    Segment,
    SortedSet,
    UuidText,
    Value,
    may_expire,
    refers,
)
from keywright.tools import Program

QueueName = Annotated[str, Except(Segment(), "job", "abort")]
JobKey = Annotated[str, Segment("")]
"""A UUID, `cron:<function>`, or a key of the application, with any characters."""
JobName = Annotated[str, Pattern("saq:job:[^:]+:.+")]
"""The whole name of the key of a job."""
WorkerName = Annotated[str, Pattern("saq:[^:]+:worker_info:.+")]
"""The whole name of the key of a worker."""
Worker = Annotated[str, UuidText()]

saq = Keyspace("saq", "Queues, jobs and workers of saq 0.26.", prefix="saq")


class JobDetails(msgspec.Struct, omit_defaults=True):
    """A job. Members with their usual value are left out."""

    function: str
    """The name of the function."""
    queue: str
    """The name of the queue."""
    key: str
    """The key of the job within its queue."""
    kwargs: dict[str, Any] | None = None
    """The arguments."""
    timeout: int | None = 10
    """How many seconds it may run; 0: any time."""
    heartbeat: int = 0
    """How many seconds it may be silent; 0: any time."""
    retries: int = 1
    """How often it is tried."""
    ttl: int = 600
    """How many seconds it is kept after its end; 0: forever, -1: not at all."""
    retry_delay: float = 0.0
    """Seconds between two attempts."""
    retry_backoff: bool | float = False
    """Whether the delay doubles with each attempt, or its upper bound."""
    scheduled: int = 0
    """The second at which it is due; 0: at once."""
    progress: float = 0.0
    """From 0 to 1, as the function reports it."""
    attempts: int = 0
    """How often it was started."""
    completed: int = 0
    """The millisecond of its end."""
    queued: int = 0
    """The millisecond at which it was enqueued."""
    started: int = 0
    """The millisecond at which it was started last."""
    touched: int = 0
    """The millisecond of the last sign of life."""
    result: Any = None
    """What the function returned."""
    error: str | None = None
    """A traceback, or why it was aborted."""
    status: Literal["new", "queued", "active", "aborting", "aborted", "failed", "complete"] = "new"
    """What it is doing."""
    priority: int = 0
    """Of no effect with Redis."""
    group_key: str | None = None
    """Of no effect with Redis."""
    meta: dict[str, Any] = {}
    """Data of the application."""
    worker_id: str | None = None
    """The worker that started it."""


class Job(Value[Annotated[JobDetails, Json]], key="job:<queue>:<job>", space=saq, expiry=may_expire()):
    """A job. One that has ended expires, unless its `ttl` is 0."""

    queue: QueueName
    job: JobKey


class Abort(Value[str], key="abort:<job>", space=saq, expiry=may_expire()):
    """Why a job is to be aborted, for the worker that runs it. Expires after seconds."""

    job: JobKey


class Incomplete(SortedSet[JobName, Annotated[datetime, EpochFloat]], key="<queue>:incomplete", space=saq):
    """All jobs of a queue that have not ended, by the second at which they are due; 0: they wait or run."""

    queue: QueueName


class Queued(List[JobName], key="<queue>:queued", space=saq):
    """The jobs that wait, the next one first."""

    queue: QueueName


class Active(List[JobName], key="<queue>:active", space=saq):
    """The jobs that run."""

    queue: QueueName


class ScheduleLock(Value[Literal["1"]], key="<queue>:schedule", space=saq, expiry=may_expire()):
    """Set for a second, in which no other worker moves due jobs to the queue."""

    queue: QueueName


class SweepLock(Value[Literal["1"]], key="<queue>:sweep", space=saq, expiry=may_expire()):
    """Set for a minute or as configured, in which no other worker looks for jobs that hang."""

    queue: QueueName


class Workers(SortedSet[WorkerName, datetime], key="<queue>:stats", space=saq, expiry=may_expire()):
    """The workers of a queue, by the millisecond at which they count as gone."""

    queue: QueueName


class WorkerStatistics(msgspec.Struct):
    """What a worker has done so far."""

    complete: int
    """Jobs that succeeded."""
    failed: int
    """Jobs that failed."""
    retried: int
    """Attempts that failed."""
    aborted: int
    """Jobs that were aborted."""
    uptime: int
    """Milliseconds since its start."""


class WorkerDetails(msgspec.Struct):
    """A worker."""

    stats: WorkerStatistics
    """What it has done so far."""
    queue_key: str | None
    """The name of its queue."""
    metadata: dict[str, Any] | None
    """Data of the application."""


class WorkerInfo(
    Value[Annotated[WorkerDetails, Json]],
    key="<queue>:worker_info:<worker>",
    space=saq,
    expiry=may_expire(),
):
    """What a worker has done so far. Expires if the worker does not renew it."""

    queue: QueueName
    worker: Worker


def _jobs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return queue and key of jobs, from the whole names of their keys."""
    return [(queue, job) for _, _, queue, job in (name.split(":", 3) for name in names)]


refers(Queued, Job, lambda _, names: _jobs(names), name="queued")
refers(Incomplete, Job, lambda _, names: _jobs(name for name, _due in names), name="incomplete")

program = Program(
    "saq", "saq", "0.26", (saq,), distinctive=(Job, Incomplete, Queued, Active, Workers, WorkerInfo)
)
