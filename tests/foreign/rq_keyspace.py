"""RQ 2.12, as its workers, its scheduler and its producers write it. The declaration is ours, not RQ's.

Only the queue requires its jobs: RQ removes a job together with its place in a queue. Registries, groups and
the sets of workers are cleaned later, by RQ itself, so their entries may outlive what they name. Not
declared: cron jobs and the channels of commands.
"""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from keywright import (
    EmptyAsNone,
    EpochFloat,
    EpochSeconds,
    Id,
    Json,
    Keyspace,
    List,
    Pickled,
    Plain,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
    Zlib,
    may_expire,
    refers,
)

Time = Annotated[datetime | None, EmptyAsNone]
Name = Annotated[str, Plain(".")]
QueueKey = Annotated[str, Plain(":.")]
Execution = Annotated[str, Plain(":")]
Registry = Literal["canceled", "deferred", "failed", "finished", "scheduled"]
Status = Literal[
    "created", "queued", "finished", "failed", "started", "deferred", "scheduled", "stopped", "canceled"
]

rq = Keyspace("rq", "Queues, jobs and workers of RQ 2.12.", prefix="rq")


class JobDetails(msgspec.Struct):
    created_at: Time
    data: Annotated[bytes, partial(Zlib, min_size=0)]
    status: Status
    success_callback_name: str
    failure_callback_name: str
    stopped_callback_name: str
    started_at: Time
    ended_at: Time
    last_heartbeat: Time
    worker_name: str
    group_id: str
    origin: Name | None = None
    description: str | None = None
    enqueued_at: Time | None = None
    timeout: int | None = None
    result_ttl: int | None = None
    failure_ttl: int | None = None
    ttl: int | None = None
    meta: Annotated[bytes, Pickled] | None = None
    dependency_id: Id | None = None
    dependency_ids: Annotated[list[str], Json] | None = None
    allow_dependency_failures: int | None = None
    enqueue_at_front: int | None = None
    number_of_retries: int | None = None
    retries_left: int | None = None
    retry_intervals: Annotated[list[int], Json] | None = None
    enqueue_at_front_on_retry: int | None = None
    repeats_left: int | None = None
    repeat_intervals: Annotated[list[int], Json] | None = None
    success_callback_timeout: int | None = None
    failure_callback_timeout: int | None = None
    stopped_callback_timeout: int | None = None
    webhooks: Annotated[list[Any], Json] | None = None


class Job(Record[JobDetails], key="job:<job>", space=rq, expiry=may_expire()):
    """A job: the call as a compressed pickle, its state and its history. Ended jobs expire."""

    job: Id


class Dependents(Set[Id], key="job:<job>:dependents", space=rq):
    """The jobs that wait for this one."""

    job: Id


class Dependencies(Set[Id], key="job::<job>:dependencies", space=rq):
    """The jobs that this one waits for. The second colon is RQ's."""

    job: Id


class ResultType(IntEnum):
    SUCCESSFUL = 1
    FAILED = 2
    STOPPED = 3
    RETRIED = 4
    MAX_RETRIES_EXCEEDED = 5


class ResultDetails(msgspec.Struct):
    type: ResultType
    worker_name: str
    return_value: str | None = None
    exc_string: str | None = None
    execution_id: Id | None = None
    execution_started_at: Annotated[datetime, EpochFloat] | None = None
    execution_ended_at: Annotated[datetime, EpochFloat] | None = None


class Results(Stream[ResultDetails], key="results:<job>", space=rq):
    """The last ten results of a job."""

    job: Id


class Queues(Set[QueueKey], key="queues", space=rq):
    """All queues, by their whole key names."""


class Queue(List[Id], key="queue:<queue>", space=rq):
    """The waiting jobs of a queue, the next one first."""

    queue: Name


class Intermediate(List[Id], key="queue:<queue>:intermediate", space=rq):
    """Jobs between a queue and the registry of started jobs, for moments."""

    queue: Name


class JobRegistry(
    SortedSet[Id, Annotated[datetime | None, EpochSeconds]], key="<registry>:<queue>", space=rq
):
    """The jobs of a queue in one state, by the second at which an entry expires or is due; `inf`: never."""

    registry: Registry
    queue: Name


class StartedJobs(SortedSet[Execution, Annotated[datetime, EpochSeconds]], key="wip:<queue>", space=rq):
    """The executions in progress, as job and execution, by the second at which they count as lost."""

    queue: Name


class ExecutionDetails(msgspec.Struct):
    id: Id
    created_at: Annotated[datetime, EpochFloat]
    last_heartbeat: Annotated[datetime, EpochFloat]
    worker_name: str


class JobExecution(Record[ExecutionDetails], key="execution:<job>:<execution>", space=rq):
    """One attempt at a job."""

    job: Id
    execution: Id


class Executions(SortedSet[Id, Annotated[datetime, EpochSeconds]], key="executions:<job>", space=rq):
    """The attempts at a job that are in progress."""

    job: Id


class WorkerDetails(msgspec.Struct):
    birth: Time
    last_heartbeat: Time
    queues: str
    pid: int
    hostname: str
    ip_address: str
    version: str
    python_version: str
    state: Literal["starting", "started", "suspended", "busy", "idle"] | None = None
    current_job: Id | None = None
    current_job_working_time: float | None = None
    successful_job_count: int | None = None
    failed_job_count: int | None = None
    total_working_time: float | None = None
    shutdown_requested_date: Time | None = None
    death: Time | None = None


class Worker(Record[WorkerDetails], key="worker:<worker>", space=rq):
    """A worker; expires a while after its last heartbeat."""

    worker: Name


class Workers(Set[QueueKey], key="workers", space=rq):
    """All workers, by their whole key names."""


class QueueWorkers(Set[QueueKey], key="workers:<queue>", space=rq):
    """The workers of a queue, by their whole key names."""

    queue: Name


class SchedulerDetails(msgspec.Struct):
    name: Id
    hostname: str
    pid: int
    queues: str
    created_at: Time
    last_heartbeat: Time


class Scheduler(Record[SchedulerDetails], key="scheduler:<scheduler>", space=rq):
    """A scheduler, which moves due jobs to their queues."""

    scheduler: Id


class SchedulerLock(Value[Id], key="scheduler-lock:<queue>", space=rq):
    """The scheduler that serves a queue."""

    queue: Name


class CleaningLock(Value[str], key="clean_registries:<queue>", space=rq):
    """Held while a worker cleans the registries of a queue."""

    queue: Name


class Groups(Set[Name], key="groups", space=rq):
    """All groups."""


class Group(Set[Id], key="group:<group>", space=rq):
    """The jobs of a group."""

    group: Name


class Suspended(Value[str], key="suspended", space=rq):
    """There while the workers are suspended."""


refers(Queue, Job, lambda _, jobs: jobs, name="queued")
