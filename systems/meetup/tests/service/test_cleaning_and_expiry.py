"""Channels whose time has come: reminders, deletion, and orphans until Discord confirms."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from keywright import aconnect
from keywright.testing import Raw
from keywright_meetup import channel_times, channels
from keywright_meetup.queries import read_series
from keywright_meetup.schema import DiscordChannels, EventSeries, OrphanedRoles
from keywright_meetup.service.expiry import Expired, check_expiry
from keywright_meetup.service.janitor import Cleaned, clean
from keywright_service.errors import PlatformTroubleError

from ..meetup_bots import Opened, Surroundings, between

pytestmark = pytest.mark.anyio


async def cleaned(opened: Opened) -> Cleaned:
    return await clean(opened.db, opened.discord, opened.around.clock())


async def checked(opened: Opened) -> Expired:
    return await check_expiry(opened.db, opened.discord, opened.around.clock())


async def channel_of(opened: Opened) -> int:
    series = sorted(await opened.db.run(EventSeries().members()))
    (state,) = await opened.db.run(read_series(series, opened.around.clock()))
    assert state.channel is not None
    return state.channel


async def test_hosts_are_reminded_after_the_last_event_and_again_some_days_later(
    around: Surroundings,
) -> None:
    around.announce(days=1)
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        assert await checked(opened) == Expired(extended=1)
        assert await checked(opened) == Expired()
        sent = []
        for day in range(6):
            around.clock.advance(days=1)
            if (await checked(opened)).reminded:
                sent.append(day + 1)
        assert sent == [2, 4, 6]
    hosts = next(role["id"] for role in guild.made_roles if role["name"].startswith("[Host]"))
    assert len(guild.messages) == 3
    assert all(text.startswith(f"<@&{hosts}> ") for _, text in guild.messages)


async def test_a_later_event_extends_a_channel_and_takes_its_end_back(around: Surroundings) -> None:
    first = around.announce(days=1)
    async with around.opened() as opened:
        await opened.sync()
        await checked(opened)
        around.clock.advance(days=3)
        channel = await channel_of(opened)
        await opened.db.run(channel_times.end(channel, around.clock()))
        around.announce("Dragon Hunt 2", f"[campaign {first.id}]", days=5)
        await opened.sync()
        assert await checked(opened) == Expired(extended=1)
        around.clock.advance(days=1)
        assert await cleaned(opened) == Cleaned()
        times = (await opened.db.run(channel_times.times_of([channel])))[channel]
        assert times.deletion is None
    assert len(around.discord.guild.text_channels) == 1


async def test_a_series_whose_events_are_gone_expires_once_and_is_reminded_of(around: Surroundings) -> None:
    event = around.announce(days=5)
    async with around.opened() as opened:
        await opened.sync()
        del around.meetup.world.events[event.id]
        await opened.sync()
        assert await checked(opened) == Expired(extended=1)
        around.clock.advance(hours=1)
        assert await checked(opened) == Expired(reminded=1)


async def test_an_ended_channel_is_deleted_with_its_roles_when_its_time_has_come(
    around: Surroundings,
) -> None:
    around.announce(days=1)
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        await checked(opened)
        around.clock.advance(days=3)
        due = await opened.db.run(channel_times.end(await channel_of(opened), around.clock()))
        assert await cleaned(opened) == Cleaned()
        around.clock.advance(due - around.clock() + timedelta(seconds=1))
        assert await cleaned(opened) == Cleaned(vacuumed=1, retired=1, deleted=3)
        assert await opened.db.run(EventSeries().members()) == set()
        assert await opened.db.run(channels.orphans()) == (set(), set(), set())
    assert (guild.text_channels, guild.made_roles) == ([], [])


async def test_orphans_are_tried_again_until_discord_confirms(around: Surroundings) -> None:
    around.announce(days=1)
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        channel = await channel_of(opened)
        await opened.db.run(channels.retire_channel(channel))
        around.discord.faults.fail("/roles/", 500, method="DELETE", times=3)
        first = await cleaned(opened)
        assert (first.deleted, len(first.failures)) == (2, 1)
        assert all(isinstance(each, PlatformTroubleError) for each in first.failures.values())
        # Under the name that is read: not among the misnamed of earlier versions.
        assert await opened.db.run(OrphanedRoles().members()) == set(first.failures)
        assert await cleaned(opened) == Cleaned(deleted=1)
    assert (guild.text_channels, guild.made_roles) == ([], [])


async def test_an_orphan_that_discord_does_not_know_counts_as_deleted(around: Surroundings) -> None:
    around.announce(days=1)
    async with around.opened() as opened:
        await opened.sync()
        await opened.db.run(channels.retire_channel(await channel_of(opened)))
        around.discord.guild.channels.clear()
        assert await cleaned(opened) == Cleaned(deleted=3)


async def test_orphans_that_are_in_use_are_not_deleted_and_are_logged(
    around: Surroundings, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    around.announce(days=1)
    async with around.opened() as opened:
        await opened.sync()
        channel = await channel_of(opened)
        raw("SADD", "orphaned_discord_channels", channel)
        raw("SADD", "orphaned_discord_roles", *(role["id"] for role in around.discord.guild.made_roles))
        assert await cleaned(opened) == Cleaned()
    assert (len(around.discord.guild.text_channels), len(around.discord.guild.made_roles)) == (1, 2)
    assert f"orphan {channel} is in use, so it is not deleted" in caplog.text


async def test_an_orphan_that_is_used_again_while_others_are_deleted_stays(
    around: Surroundings, raw: Raw
) -> None:
    around.announce(days=1)
    async with around.opened() as opened:
        await opened.sync()
        channel = await channel_of(opened)
        await opened.db.run(channels.retire_channel(channel))

        async def use_again() -> None:
            raw("SET", f"discord_channel:{channel}:event_series", "old")

        meddled = replace(opened, db=between(opened.db, 3, use_again))  # after the orphans are read
        assert await cleaned(meddled) == Cleaned(deleted=2)
    assert len(around.discord.guild.text_channels) == 1


async def test_a_reminder_that_discord_refuses_is_reported_and_not_repeated_at_once(
    around: Surroundings,
) -> None:
    around.announce(days=1)
    async with around.opened() as opened:
        await opened.sync()
        await checked(opened)
        around.clock.advance(days=2)
        around.discord.faults.fail("/messages", 500, times=3)
        assert len((await checked(opened)).failures) == 1
        assert await checked(opened) == Expired()


@pytest.mark.parametrize("reminding", [False, True], ids=["extending", "reminding"])
async def test_a_channel_that_is_retired_meanwhile_does_not_stop_the_others(
    around: Surroundings, reminding: bool
) -> None:
    for name in ("One", "Two", "Three"):
        around.announce(name, days=1)
    async with around.opened() as opened:
        await opened.sync()
        if reminding:
            await checked(opened)
            around.clock.advance(days=3)
        retired = min(await opened.db.run(DiscordChannels().members()))

        async def retire() -> None:
            await opened.db.run(channels.retire_channel(retired))

        meddled = replace(opened, db=between(opened.db, 2, retire))  # after the series are read
        done = await checked(meddled)
        assert (done.reminded if reminding else done.extended, done.failures) == (2, {})


@pytest.mark.cluster
async def test_a_malformed_intent_is_logged_and_does_not_end_the_bot(
    around: Surroundings, cluster_url: str, raw_cluster: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    raw_cluster("HSET", "keywright:intents:meetup::b", "b" * 40, "Cgarbage")
    async with around.opened() as opened, aconnect(cluster_url) as db:
        assert await clean(db, opened.discord, around.clock()) == Cleaned()
    assert f"keywright recover MODEL --remove {'b' * 40} --yes" in caplog.text
