"""The daily check of expiry: channels are extended, and hosts of expired ones are reminded."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime

from keywright import AsyncDatabase
from keywright_meetup.channel_times import claim_reminder, expiration, extend, reminder_is_due
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.queries import SeriesState, read_series
from keywright_meetup.schema import ChannelId, EventSeries
from keywright_meetup.service.slash_commands import END_BUTTONS
from keywright_service.discord_rest import DiscordGuild
from keywright_service.errors import PlatformError

__all__ = ["Expired", "check_expiry"]

log = logging.getLogger("keywright.meetup")

REMINDER = (
    "{mention}This channel has served its last session. If you are done with it, end it with the button or "
    "`/end`: it is deleted some hours later. `/extend` keeps it for longer; so does a new session on Meetup."
)


@dataclass
class Expired:
    """The result of a run."""

    extended: int = 0
    reminded: int = 0
    failures: dict[ChannelId, PlatformError] = field(default_factory=dict)


async def check_expiry(db: AsyncDatabase, api: DiscordGuild, now: datetime) -> Expired:
    """Extend the channels of series that got later events; remind the hosts of others when that is due."""
    done = Expired()
    series = sorted(await db.run(EventSeries().members()))
    for state in await db.run(read_series(series, now)):
        if state.channel is None:
            continue
        try:
            if await _extended(db, state, state.channel, now):
                done.extended += 1
            elif reminder_is_due(state.times, state.type or "adventure", now):
                await _remind(db, api, state, state.channel, now, done)
        except RefusedChangeError:
            log.info("channel %d was retired meanwhile", state.channel)
    return done


async def _extended(db: AsyncDatabase, state: SeriesState, channel: ChannelId, now: datetime) -> bool:
    stored = state.times.expiration
    # A series whose events are gone expired once, not again each day.
    if not state.events and stored is not None:
        return False
    until = expiration(state.type or "adventure", (each.time for each in state.events.values()), now)
    if stored is not None and until <= stored:
        return False
    return await db.run(extend(channel, until))


async def _remind(
    db: AsyncDatabase, api: DiscordGuild, state: SeriesState, channel: ChannelId, now: datetime, done: Expired
) -> None:
    """Post a reminder. It is recorded first, so a crash in between costs one reminder and repeats none."""
    if not await db.run(claim_reminder(channel, state.type or "adventure", now)):
        return
    mention = f"<@&{state.host_role}> " if state.host_role is not None else ""
    try:
        nonce = f"{channel % 10**10}-{int(now.timestamp())}"
        text = REMINDER.format(mention=mention)
        done.reminded += await api.post(channel, text, nonce, components=[END_BUTTONS])
    except PlatformError as error:
        log.warning("no reminder in channel %d: %s", channel, error)
        done.failures[channel] = error
