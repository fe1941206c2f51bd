"""What `keywright migrate` can do for single models: their own sweeps, and conversions between layouts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from keywright.engine import AsyncDatabase
from keywright.errors import UsageError
from keywright.keyspace import Binding
from keywright.tools.migrate import Conversion, Counts, Options, Progress, Refusal, Result
from keywright.tools.migrate.progress import Pace

if TYPE_CHECKING:
    from keywright.models.openmod.platform import Platform
    from keywright.models.openmod.upgrading import Progress as Upgraded

__all__ = ["OWN_SWEEPS", "OwnSweep", "Route", "route"]

Tell: TypeAlias = Callable[[Progress], None]
OwnSweep: TypeAlias = Callable[[AsyncDatabase, Options, Path | None, Tell], Awaitable[Result]]


class Route(NamedTuple):
    """A conversion, and the bindings of both layouts under their prefixes."""

    conversion: Conversion
    bindings: tuple[Binding, ...]


def route(source: str, target: str, prefix: str | None, to_prefix: str | None) -> Route:
    """The way from one layout to another; UsageError where there is none."""
    if (source, target) != ("spectacles", "drc"):
        raise UsageError(
            f"there is no conversion from {source!r} to {target!r}. There is one from spectacles to drc."
        )
    from keywright.models.discord.converting import SpectaclesToDrc
    from keywright.models.discord.layouts import LAYOUTS

    bindings = (*LAYOUTS[source].bind(prefix), *LAYOUTS[target].bind(to_prefix))
    return Route(SpectaclesToDrc(), bindings)


async def _openmod(db: AsyncDatabase, options: Options, config: Path | None, tell: Tell) -> Result:
    """v1 audits name people, so whose they are is asked of Reddit, where a configuration is given."""
    from keywright.models.openmod.upgrading import upgrade_all

    pace = Pace(None, tell)

    def advanced(progress: Upgraded) -> None:
        pace.report(progress.seen, progress.total, progress.upgraded, len(progress.left))

    async with _platform(config) as platform:
        done = await upgrade_all(db, platform, progress=advanced, per_second=options.max_rate)
    pace.report(done.seen, done.total, done.upgraded, len(done.left), final=True)
    remedy = "it is no whole v1 record, or names people only Reddit knows: give --config to ask it"
    refusals = [Refusal("audit:<post>", f"audit:{post}".encode(), remedy) for post in done.left[:20]]
    counts = {"audit:<post>": Counts(upgraded=done.upgraded, refused=len(done.left))}
    return Result(counts, refusals, done.seen, done.total, pace.seconds)


@asynccontextmanager
async def _platform(config: Path | None) -> AsyncIterator[Platform | None]:
    if config is None:
        yield None
        return
    from keywright.services.openmod.configuration import load

    configuration = load(config, dict(os.environ))
    try:
        from keywright.services.openmod.connection import RedditConnection
        from keywright.services.openmod.reddit import RedditPlatform
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed. Install keywright[openmod].") from error
    async with RedditConnection(configuration.credentials) as connection:
        yield RedditPlatform(connection, configuration.subreddit)


OWN_SWEEPS: Mapping[str, OwnSweep] = {"openmod": _openmod}
"""Sweeps of models that know more about their old data than their declaration says."""
