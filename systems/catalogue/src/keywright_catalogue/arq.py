"""arq 0.28: queues, jobs and results.

arq ends a job in one transaction: it leaves the queue and its definition is removed. A definition also
expires, a day after its job was due unless `_expires` says otherwise; its id then stays in the queue, which
the audit reports, until a worker takes it and notes that it has expired.

Queues are named `arq:queue`, as the default one, or `arq:queue:<name>`. Not declared: queues with other
names. Jobs and results are pickles, which are never loaded; other serializers need another codec.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from keywright import (
    Counter,
    Except,
    Keyspace,
    Pickled,
    Segment,
    SortedSet,
    Value,
    expires_in,
    may_expire,
    refers,
)
from keywright.tools import Program

JobId = Annotated[str, Segment("")]
"""32 hexadecimal digits, `cron:<name>:<millisecond>`, or an id of the application, with any characters."""
QueueName = Annotated[str, Except(Segment(), "health-check")]
Pickle = Annotated[bytes, Pickled]

arq = Keyspace("arq", "Queues, jobs and results of arq 0.28.", prefix="arq")


class Queue(SortedSet[JobId, datetime], key="queue[:<queue>]", space=arq):
    """The waiting and running jobs of a queue, by the millisecond at which they are due."""

    queue: QueueName | None = None


class HealthCheck(Value[str], key="queue[:<queue>]:health-check", space=arq, expiry=may_expire()):
    """What the worker of a queue has done so far, in words. Expires if the worker does not renew it."""

    queue: QueueName | None = None


class Job(Value[Pickle], key="job:<job>", space=arq, expiry=may_expire()):
    """The definition of a job: function, arguments, the time of enqueueing. Every one expires."""

    job: JobId


class InProgress(Value[Literal["1"]], key="in-progress:<job>", space=arq, expiry=may_expire()):
    """There while a worker runs a job, or a minute longer for a cron job. Expires after the timeout."""

    job: JobId


class Tries(Counter, key="retry:<job>", space=arq, expiry=expires_in(timedelta(seconds=88400))):
    """How often a job was started."""

    job: JobId


class Result(Value[Pickle], key="result:<job>", space=arq, expiry=may_expire()):
    """The result of a job, or its exception. Expires unless the function keeps its results forever."""

    job: JobId


class Aborts(SortedSet[JobId, datetime], key="abort", space=arq):
    """The jobs that are to be aborted, by the millisecond of the request."""


refers(Queue, Job, lambda _, jobs: [job for job, _due in jobs], name="queued")

program = Program(
    "arq", "arq", "0.28", (arq,), distinctive=(Queue, HealthCheck, Job, InProgress, Tries, Result)
)
