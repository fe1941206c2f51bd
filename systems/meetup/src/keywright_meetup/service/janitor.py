"""The janitor: retires channels that are due, deletes orphans on Discord, forgets series that are over."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from keywright import AsyncDatabase, Call, recover
from keywright_meetup import channels
from keywright_meetup.channel_times import due_for_deletion
from keywright_meetup.schema import meetup
from keywright_meetup.vacuum import vacuum
from keywright_service.discord_rest import DiscordGuild
from keywright_service.errors import PlatformError

__all__ = ["Cleaned", "clean"]

log = logging.getLogger("keywright.meetup")


@dataclass
class Cleaned:
    """The result of a run. Orphans whose deletion failed stay orphans."""

    vacuumed: int = 0
    """Series without a channel and without an event to come, which were forgotten."""
    retired: int = 0
    deleted: int = 0
    failures: dict[int, PlatformError] = field(default_factory=dict)


async def clean(db: AsyncDatabase, api: DiscordGuild, now: datetime) -> Cleaned:
    """Retire the channels that are due, delete every orphan on Discord, forget series that are over.

    On a cluster, commits that a process left half done are finished first.
    """
    recovered = await db.run(recover(meetup))
    for fault in recovered.set_aside:
        log.warning("a commit was not recovered: %s", fault)
    done = Cleaned()
    for channel, due in (await db.run(due_for_deletion(now))).items():
        done.retired += await db.run(channels.retire_channel(channel, due=due))
    left = await db.run(channels.orphans())
    for orphan in sorted(left.in_use):
        log.warning("orphan %d is in use, so it is not deleted: run keywright repair meetup", orphan)
    for channel in sorted(left.channels):
        await _delete(db, done, channel, api.delete_channel, channels.confirm_channel_deleted)
    for role in sorted(left.roles):
        await _delete(db, done, role, api.delete_role, channels.confirm_role_deleted)
    done.vacuumed = len(await db.run(vacuum(now)))
    return done


async def _delete(
    db: AsyncDatabase,
    done: Cleaned,
    orphan: int,
    delete: Callable[[int], Awaitable[bool]],
    confirm: Callable[[int], Call[bool]],
) -> None:
    # Asked again right before: the deletions before this one may have taken minutes.
    if orphan in (await db.run(channels.orphans())).in_use:
        log.warning("orphan %d is in use since a moment ago, so it is not deleted", orphan)
        return
    try:
        await delete(orphan)  # one that Discord does not know counts as deleted
    except PlatformError as error:
        log.warning("orphan %d stays: %s", orphan, error)
        done.failures[orphan] = error
        return
    done.deleted += await db.run(confirm(orphan))
