"""Worker processes that share the work of one tool: `--jobs`.

One process scans names and keeps the rate; the others work on the pages that it gives them. They speak over
private pipes, in messages of msgspec; no object is pickled. A tool's part is its job: a class that answers
requests in a worker, listed in `tools.worker`, which is the program of a worker.
"""

from __future__ import annotations

from keywright.tools.jobs.pages import Page, PagesJob, PageWork, SharedPages, Stretch, collected, pacemaker_of
from keywright.tools.jobs.plan import MOST_JOBS, JobPlan
from keywright.tools.jobs.workers import Workers

__all__ = [
    "MOST_JOBS",
    "JobPlan",
    "Page",
    "PageWork",
    "PagesJob",
    "SharedPages",
    "Stretch",
    "Workers",
    "collected",
    "pacemaker_of",
]
