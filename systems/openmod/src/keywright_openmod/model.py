"""Open Mod as a model of the tools: its keyspaces, those of its service, and the migration from v1."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from keywright import AsyncDatabase
from keywright.tools import (
    MigrationPacemaker,
    MigrationProgress,
    Model,
    Refusal,
    SweepCounts,
    SweepOptions,
    SweepResult,
)
from keywright_openmod import schema
from keywright_openmod.service import schema as service_schema

if TYPE_CHECKING:
    from keywright_openmod.service.reddit import RedditPlatform
    from keywright_openmod.upgrade import UpgradeProgress

__all__ = ["openmod"]


async def _upgrade_from_v1(
    db: AsyncDatabase,
    options: SweepOptions,
    config: Path | None,
    report_progress: Callable[[MigrationProgress], None],
) -> SweepResult:
    """v1 audits contain names, so the ids come from Reddit if there is a configuration."""
    from keywright_openmod.upgrade import upgrade_all

    pacemaker = MigrationPacemaker(options.pace, report_progress)

    def report(progress: UpgradeProgress) -> None:
        pacemaker.report(progress.seen, progress.total, progress.upgraded, len(progress.left))

    async with _platform(config) as platform:
        subreddit = None if platform is None else platform.subreddit
        done = await upgrade_all(
            db, platform, subreddit=subreddit, progress=report, per_second=options.pace.max_rate
        )
    pacemaker.report(done.seen, done.total, done.upgraded, len(done.left), final=True)
    remedy = "it is malformed, or names people whose ids only Reddit knows: give --config to look them up"
    refusals = [Refusal("audit:<post>", f"audit:{post}".encode(), remedy) for post in done.left[:20]]
    counts = {"audit:<post>": SweepCounts(upgraded=done.upgraded, refused=len(done.left))}
    return SweepResult(counts, refusals, done.seen, done.total, pacemaker.seconds)


@asynccontextmanager
async def _platform(config: Path | None) -> AsyncIterator[RedditPlatform | None]:
    if config is None:
        yield None
        return
    from keywright_openmod.service.configuration import load
    from keywright_openmod.service.connection import RedditConnection
    from keywright_openmod.service.reddit import RedditPlatform

    configuration = load(config, dict(os.environ))
    async with RedditConnection(configuration.credentials) as connection:
        yield RedditPlatform(connection, configuration.subreddit)


openmod = Model(
    "openmod",
    (
        schema.openmod,
        schema.openmod_v1,
        service_schema.openmod_service,
        service_schema.openmod_local,
    ),
    sweep=_upgrade_from_v1,
)
