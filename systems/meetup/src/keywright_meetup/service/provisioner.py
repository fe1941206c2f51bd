"""Channels and roles on Discord, made so that no crash leaks one.

An intent is recorded before Discord is asked. Its mark is the topic of the new channel, or the name of the
new role, until the object is attached; so a process that finds the intent of one that died finds the object
too. An intent whose mark is nowhere is given up only after a while: a request whose answer was lost may still
be under way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from keywright import AsyncDatabase
from keywright_meetup import intents
from keywright_meetup.intents import Begun, Finished
from keywright_meetup.schema import ChannelId, Intent, RoleId, RoleKind, SeriesId, Target
from keywright_service.discord_rest import Channel, DiscordGuild, Role
from keywright_service.errors import PlatformRefusedError

__all__ = ["MARK", "SETTLED_AFTER", "Provisioner", "is_marked"]

log = logging.getLogger("keywright.meetup")

MARK = "keywright-"
# Longer than a run of the sync may take, so that no process can still be about to ask Discord.
SETTLED_AFTER = timedelta(minutes=10)


def is_marked(text: str | None) -> bool:
    """Return whether a topic or name is still the mark that the object was made with."""
    return text is not None and text.startswith(MARK)


class Provisioner:
    """Makes missing channels and roles. Only one runs at a time: the bot that has the lease of the task."""

    def __init__(self, db: AsyncDatabase, api: DiscordGuild, clock: Callable[[], datetime]) -> None:
        self._db = db
        self._api = api
        self._clock = clock

    async def recover(self) -> int:
        """Finish or give up the intents of earlier processes. Return how many must wait."""
        pending = await self._db.run(intents.pending())
        if not pending:
            return 0
        topics = {each.topic: int(each.id) for each in (await self._api.channels()).values() if each.topic}
        names = {each.name: int(each.id) for each in (await self._api.roles()).values()}
        waiting = 0
        for target, intent in pending.items():
            places = topics if target.made == "channel" else names
            settled = await self._settle(target, intent, places.get(f"{MARK}{intent.mark}"))
            waiting += not settled
        return waiting

    async def _settle(self, target: Target, intent: Intent, made: int | None) -> bool:
        if made is not None:
            finished = await self._finish(target, intent.mark, made)
            log.info("found %s %d, made for %s: %s", target.made, made, target.owner, _said(finished))
            return True
        if self._clock() - intent.since < SETTLED_AFTER:
            return False
        await self._db.run(intents.abandon(target, intent.mark))
        log.info("gave up a %s for %s that was never made", target.made, target.owner)
        return True

    async def channel(self, series: SeriesId, **wanted: Any) -> ChannelId | None:
        """Return the channel of a series, made if need be; None while that is not settled."""
        begun = await self._db.run(intents.begin_channel(series, self._clock()))

        async def make(mark: str) -> Channel:
            return await self._api.create_channel(topic=mark, **wanted)

        return await self._made(Target("channel", series), begun, make)

    async def role(
        self, made: RoleKind, channel: ChannelId, *, instead_of: RoleId | None = None, **wanted: Any
    ) -> RoleId | None:
        """Return a role of a channel, made if need be. `instead_of` is one that is gone from Discord."""
        begin = intents.begin_role(made, channel, self._clock(), instead_of=instead_of)
        begun = await self._db.run(begin)

        async def make(mark: str) -> Role:
            return await self._api.create_role(name=mark, **wanted)

        return await self._made(Target(made, str(channel)), begun, make, instead_of)

    async def _made(
        self, target: Target, begun: Begun, make: Callable[[str], Any], instead_of: RoleId | None = None
    ) -> int | None:
        if not begun.mine or begun.intent is None:
            return begun.existing
        mark = begun.intent.mark
        try:
            made = await make(f"{MARK}{mark}")
        except PlatformRefusedError:
            # Nothing was made, and Discord said so: unlike after trouble there is nothing to look for.
            await self._db.run(intents.abandon(target, mark))
            raise
        finished = await self._finish(target, mark, int(made.id), instead_of)
        return finished.existing

    async def _finish(
        self, target: Target, mark: str, made: int, instead_of: RoleId | None = None
    ) -> Finished:
        if target.made == "channel":
            return await self._db.run(intents.finish_channel(target.owner, mark, made))
        channel = int(target.owner)
        return await self._db.run(
            intents.finish_role(target.made, channel, mark, made, instead_of=instead_of)
        )


def _said(finished: Finished) -> str:
    return "it is in use" if finished.kept else "it is deleted"
