"""The plan of a run in several processes: how many, and how each of them opens the same data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from keywright.errors import UsageError
from keywright.keyspace import Keyspace
from keywright.tools.plugins import load_model

__all__ = ["MOST_JOBS", "JobPlan"]

MOST_JOBS = 64


class JobPlan(NamedTuple):
    """How many worker processes share the work of a tool, and what each of them opens.

    `model` is the name of the model, as the command line takes it: keyspaces are code, so a worker imports
    them. `source` is the URL of the server, or `dump:` and the path of a dump; `prefix` and `database` are
    those that the database was opened with.
    """

    jobs: int
    model: str
    source: str
    prefix: str | None = None
    database: int | None = None

    def check(self) -> None:
        """Raise UsageError unless the number of jobs is one that can be started."""
        if not 1 <= self.jobs <= MOST_JOBS:
            raise UsageError(f"--jobs must be from 1 to {MOST_JOBS}, got {self.jobs}. Write --jobs 4.")

    def places(self, spaces: Sequence[Keyspace]) -> list[int]:
        """Return the places of keyspaces in the model. Raise UsageError if a worker would not find them."""
        if not spaces:
            return []
        if any(part.strip().startswith("__main__:") for part in self.model.split(",")):
            raise UsageError(
                f"{self.model!r} is in the program that runs, which a worker process does not import. "
                f"Move the keyspace to a module of its own, or use one job."
            )
        found = load_model(self.model).spaces
        missing = [space.name for space in spaces if not any(space is each for each in found)]
        if missing:
            raise UsageError(
                f"the keyspace {missing[0]!r} is not part of {self.model!r}, and worker processes find "
                f"keyspaces by that name only. Name the module and its attribute, or use one job."
            )
        return [next(place for place, each in enumerate(found) if each is space) for space in spaces]
