"""The survey of pages by worker processes: what a worker does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from keywright.keyspace import Keyspace
from keywright.tools.infer.sources import SurveyedKeys, SurveyOptions
from keywright.tools.jobs import PagesJob, pacemaker_of
from keywright.tools.readable import ReadableDatabase

__all__ = ["survey_job"]


def survey_job(db: ReadableDatabase, spaces: Sequence[Keyspace], options: bytes) -> PagesJob:
    """Return the job of a worker."""
    pace, prefer_replica = msgspec.msgpack.decode(options, type=SurveyOptions)
    return PagesJob(db, pacemaker_of(pace, db), lambda: SurveyedKeys(db), prefer_replica=prefer_replica)
