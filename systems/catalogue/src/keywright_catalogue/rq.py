"""RQ 2.12: queues, jobs, workers and schedulers.

All names begin with `rq:`, which is fixed in RQ. Only the queue requires its jobs: RQ removes a job together
with its place in a queue. Registries, groups and the sets of workers are cleaned later, by RQ itself, so
their entries may outlive what they name.

Not declared: cron jobs, the channels of commands, and names of queues, groups and workers that have a colon.
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
    Segment,
    Set,
    SortedSet,
    Stream,
    Value,
    Zlib,
    may_expire,
    refers,
)
from keywright.tools import Program

Time = Annotated[datetime | None, EmptyAsNone]
Name = Annotated[str, Segment()]
KeyName = Annotated[str, Segment("")]
Execution = Annotated[str, Plain(":")]
Registry = Literal["canceled", "deferred", "failed", "finished", "scheduled"]
Status = Literal[
    "created", "queued", "finished", "failed", "started", "deferred", "scheduled", "stopped", "canceled"
]

rq = Keyspace("rq", "Queues, jobs and workers of RQ 2.12.", prefix="rq")


class JobDetails(msgspec.Struct):
    """A call, its state and its history. RQ writes an empty text where a time or a name is missing."""

    created_at: Time
    """When it was made."""
    data: Annotated[bytes, partial(Zlib, min_size=0)]
    """The call: function, instance and arguments, as a compressed pickle."""
    status: Status
    """Its state."""
    success_callback_name: str
    """The function to call after a success."""
    failure_callback_name: str
    """The function to call after a failure."""
    stopped_callback_name: str
    """The function to call when it was stopped."""
    started_at: Time
    """When a worker began with it."""
    ended_at: Time
    """When it ended."""
    last_heartbeat: Time
    """The last sign of life of its worker."""
    worker_name: str
    """The worker that runs it."""
    group_id: str
    """Its group."""
    origin: Name | None = None
    """The queue that it came from."""
    description: str | None = None
    """The call, for people."""
    enqueued_at: Time | None = None
    """When it was put into its queue."""
    timeout: int | None = None
    """How long it may run, in seconds."""
    result_ttl: int | None = None
    """How long its result is kept, in seconds."""
    failure_ttl: int | None = None
    """How long a failed job is kept, in seconds."""
    ttl: int | None = None
    """How long it may wait, in seconds."""
    meta: Annotated[bytes, Pickled] | None = None
    """Data of the application, as a pickle."""
    dependency_id: Id | None = None
    """The first job that it waits for."""
    dependency_ids: Annotated[list[str], Json] | None = None
    """All jobs that it waits for."""
    allow_dependency_failures: int | None = None
    """1 if it runs although one of them failed."""
    enqueue_at_front: int | None = None
    """1 if it goes to the front of its queue."""
    number_of_retries: int | None = None
    """How often it was tried again."""
    retries_left: int | None = None
    """How often it may still be tried."""
    retry_intervals: Annotated[list[int], Json] | None = None
    """The seconds between two attempts."""
    enqueue_at_front_on_retry: int | None = None
    """1 if another attempt goes to the front."""
    repeats_left: int | None = None
    """How often it is still repeated."""
    repeat_intervals: Annotated[list[int], Json] | None = None
    """The seconds between two repetitions."""
    success_callback_timeout: int | None = None
    """How long that callback may run, in seconds."""
    failure_callback_timeout: int | None = None
    """How long that callback may run, in seconds."""
    stopped_callback_timeout: int | None = None
    """How long that callback may run, in seconds."""
    webhooks: Annotated[list[Any], Json] | None = None
    """Addresses that are called when it ends."""


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
    """How an attempt ended."""

    SUCCESSFUL = 1
    FAILED = 2
    STOPPED = 3
    RETRIED = 4
    MAX_RETRIES_EXCEEDED = 5


class ResultDetails(msgspec.Struct):
    """The result of one attempt."""

    type: ResultType
    """How it ended."""
    worker_name: str
    """The worker that ran it."""
    return_value: str | None = None
    """Base64 of the pickled return value."""
    exc_string: str | None = None
    """The traceback of a failure."""
    execution_id: Id | None = None
    """The attempt."""
    execution_started_at: Annotated[datetime, EpochFloat] | None = None
    """When the attempt began."""
    execution_ended_at: Annotated[datetime, EpochFloat] | None = None
    """When the attempt ended."""


class Results(Stream[ResultDetails], key="results:<job>", space=rq):
    """The last ten results of a job."""

    job: Id


class Queues(Set[KeyName], key="queues", space=rq):
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
    """One attempt at a job."""

    id: Id
    """The attempt."""
    created_at: Annotated[datetime, EpochFloat]
    """When it began."""
    last_heartbeat: Annotated[datetime, EpochFloat]
    """The last sign of life of its worker."""
    worker_name: str
    """The worker that runs it."""


class JobExecution(Record[ExecutionDetails], key="execution:<job>:<execution>", space=rq):
    """One attempt at a job."""

    job: Id
    execution: Id


class Executions(SortedSet[Id, Annotated[datetime, EpochSeconds]], key="executions:<job>", space=rq):
    """The attempts at a job that are in progress."""

    job: Id


class WorkerDetails(msgspec.Struct):
    """A worker, as it describes itself."""

    birth: Time
    """When it was started."""
    last_heartbeat: Time
    """Its last sign of life."""
    queues: str
    """Its queues, separated by commas."""
    pid: int
    """The id of its process."""
    hostname: str
    """Its machine."""
    ip_address: str
    """The address of its connection to Redis."""
    version: str
    """The version of RQ."""
    python_version: str
    """The version of Python."""
    state: Literal["starting", "started", "suspended", "busy", "idle"] | None = None
    """What it does."""
    current_job: Id | None = None
    """The job that it runs."""
    current_job_working_time: float | None = None
    """For how long it has run that, in seconds."""
    successful_job_count: int | None = None
    """Jobs that succeeded."""
    failed_job_count: int | None = None
    """Jobs that failed."""
    total_working_time: float | None = None
    """The time that its jobs took, in seconds."""
    shutdown_requested_date: Time | None = None
    """When it was asked to stop."""
    death: Time | None = None
    """When it stopped."""


class Worker(Record[WorkerDetails], key="worker:<worker>", space=rq):
    """A worker; expires a while after its last heartbeat."""

    worker: Name


class Workers(Set[KeyName], key="workers", space=rq):
    """All workers, by their whole key names."""


class QueueWorkers(Set[KeyName], key="workers:<queue>", space=rq):
    """The workers of a queue, by their whole key names."""

    queue: Name


class SchedulerDetails(msgspec.Struct):
    """A scheduler, as it describes itself."""

    name: Id
    """Its id."""
    hostname: str
    """Its machine."""
    pid: int
    """The id of its process."""
    queues: str
    """Its queues, separated by commas."""
    created_at: Time
    """When it was started."""
    last_heartbeat: Time
    """Its last sign of life."""


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

program = Program(
    "rq",
    "RQ",
    "2.12",
    (rq,),
    distinctive=(Job, Queues, Queue, JobRegistry, StartedJobs, Worker, Workers, Results),
    version_member=(Worker, "version"),
)
