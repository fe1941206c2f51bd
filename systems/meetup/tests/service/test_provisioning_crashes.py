"""A process that dies at any point of provisioning leaks nothing: the next one finishes its work."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from keywright.testing import ManualClock, Raw, wait_until
from keywright.tools import audit_database
from keywright_meetup import channels, intents
from keywright_meetup.model import meetup
from keywright_meetup.queries import upcoming_series
from keywright_meetup.schema import Target
from keywright_meetup.service.janitor import clean
from keywright_meetup.service.provisioner import SETTLED_AFTER

from ..deaths import Work, die_at
from ..meetup_bots import Opened, Surroundings

pytestmark = pytest.mark.anyio


async def settle(opened: Opened) -> None:
    """Restart at once, and run the next scheduled tasks."""
    around = opened.around
    await opened.sync_discord()
    around.clock.advance(minutes=15)
    await opened.sync_discord()
    around.clock.advance(minutes=15)
    await opened.sync_discord()
    await clean(opened.db, opened.discord, around.clock())
    await assert_whole(opened)


async def assert_whole(opened: Opened) -> None:
    """Assert that Discord has one channel and two roles, which Redis knows, and nothing is left to do."""
    guild = opened.around.discord.guild
    (state,) = await opened.db.run(upcoming_series(opened.around.clock()))
    assert [int(each["id"]) for each in guild.text_channels] == [state.channel]
    by_name = {role["name"]: int(role["id"]) for role in guild.made_roles}
    assert by_name == {"[Player] Dragon Hunt": state.guest_role, "[Host] Dragon Hunt": state.host_role}
    assert len(guild.made_roles) == 2
    assert guild.text_channels[0]["topic"].startswith("Next session: ")
    assert await opened.db.run(intents.pending()) == {}
    assert await opened.db.run(channels.orphans()) == (set(), set(), set())
    assert (await audit_database(opened.db, meetup)).counts == {}


def start_again(around: Surroundings, raw: Raw) -> None:
    raw("FLUSHALL")
    guild = around.discord.guild
    guild.channels.clear()
    for role in [each for each in guild.roles if each != guild.id]:
        guild.delete_role(role)


async def each_death(around: Surroundings, raw: Raw, first: Work, work: Work) -> int:
    """Let a process die after each of its steps in turn. Return how many there are."""
    async with around.opened() as opened:
        for step in itertools.count():
            start_again(around, raw)
            await opened.prepare()
            await first(opened)
            died = await die_at(opened, step, work)
            await settle(opened)
            if not died:
                return step
    raise AssertionError


async def test_death_at_any_step_of_a_first_sync_leaks_nothing(around: Surroundings, raw: Raw) -> None:
    host, guest = around.person("Hanna"), around.person("Gino")
    around.announce(days=30, hosts=(host.meetup,)).rsvps = {guest.meetup: "YES"}
    steps = await each_death(around, raw, Opened.sync_meetup, Opened.sync_discord)
    # Redis: pending, series, three times begin and finish. Discord: at least the requests that make them.
    assert steps >= 8 + 10
    assert around.discord.guild.roles_of(guest.discord) == {"[Player] Dragon Hunt"}


async def test_death_at_any_step_of_replacing_a_channel_leaks_nothing(around: Surroundings, raw: Raw) -> None:
    around.announce(days=30)

    async def lost_channel(opened: Opened) -> None:
        await opened.sync()
        around.discord.guild.channels.clear()

    async def make_another(opened: Opened) -> None:
        await opened.sync_discord()
        await clean(opened.db, opened.discord, around.clock())

    assert await each_death(around, raw, lost_channel, make_another) >= 18


async def test_death_at_any_step_of_replacing_roles_leaks_nothing(around: Surroundings, raw: Raw) -> None:
    around.announce(days=30)

    async def lost_roles(opened: Opened) -> None:
        await opened.sync()
        for role in around.discord.guild.made_roles:
            around.discord.guild.delete_role(int(role["id"]))

    assert await each_death(around, raw, lost_roles, Opened.sync_discord) >= 10


@pytest.mark.parametrize("what", ["channels", "roles"])
@pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
async def test_an_answer_that_is_lost_makes_nothing_twice(
    around: Surroundings, what: str, done: bool
) -> None:
    around.announce(days=30)
    around.discord.faults.fail(f"/{what}", 502, method="POST", done=done)
    async with around.opened() as opened:
        _, outcome = await opened.sync()
        assert len(outcome.failures) == 1
        assert len(await opened.db.run(intents.pending())) == 1
    made = [each for each in around.discord.answered if each.method == "POST" and what in each.path]
    assert len(made) == 1  # it was not repeated
    async with around.opened() as opened:
        await settle(opened)


async def test_a_refusal_leaves_no_intent_behind(around: Surroundings) -> None:
    around.announce(days=30)
    body = '{"message": "Missing Permissions", "code": 50013}'
    around.discord.faults.fail("/channels", 403, method="POST", body=body)
    async with around.opened() as opened:
        _, outcome = await opened.sync()
        assert "Manage Channels" in str(next(iter(outcome.failures.values())))
        assert await opened.db.run(intents.pending()) == {}


async def test_a_request_that_may_still_be_under_way_is_waited_for(around: Surroundings) -> None:
    around.announce(days=30)
    async with around.opened() as opened:
        await opened.sync_meetup()
        (state,) = await opened.db.run(upcoming_series(around.clock()))
        begun = await opened.db.run(intents.begin_channel(state.series, around.clock()))
        assert begun.intent is not None
        assert (await opened.sync_discord()).waiting == 1
        assert around.discord.guild.text_channels == []
        # The request of the dead process arrives after all.
        around.discord.guild.add_channel("late", topic=f"keywright-{begun.intent.mark}")
        assert (await opened.sync_discord()).waiting == 0
        (channel,) = around.discord.guild.text_channels
        assert channel["name"] == "late"


async def test_an_intent_for_a_series_that_is_gone_ends_with_its_channel(around: Surroundings) -> None:
    event = around.announce(days=30)
    async with around.opened() as opened:
        await opened.sync_meetup()
        (state,) = await opened.db.run(upcoming_series(around.clock()))
        begun = await opened.db.run(intents.begin_channel(state.series, around.clock()))
        assert begun.intent is not None
        made = around.discord.guild.add_channel("made", topic=f"keywright-{begun.intent.mark}")
        assert await opened.db.run(intents.pending()) == {Target("channel", state.series): begun.intent}
        del around.meetup.world.events[event.id]
        await opened.sync()
        around.clock.advance(SETTLED_AFTER)
        await opened.sync()
        assert await opened.db.run(intents.pending()) == {}
        # The series is still tracked, so the channel is its; once it is retired it goes.
        await opened.db.run(channels.retire_channel(made))
        await clean(opened.db, opened.discord, around.clock())
        assert around.discord.guild.text_channels == []


async def test_a_process_that_is_killed_while_discord_answers_is_recovered_from(around: Surroundings) -> None:
    around.announce(days=30)
    around.discord.faults.fail("/roles", None, method="POST", done=True)
    environment = {**os.environ, **around.environment()}
    around.clock = _real_clock()
    for event in around.meetup.world.events.values():
        event.time = around.clock.advance(days=30)
    program = "from keywright_meetup.commands.meetup import meetup; meetup(['sync'])"
    command = [sys.executable, "-c", program]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=subprocess.PIPE)
    try:
        await asyncio.to_thread(wait_until, lambda: around.discord.guild.made_roles, "a role that is made")
    finally:
        process.send_signal(signal.SIGKILL)
        await process.communicate()
    around.clock = _real_clock()
    async with around.opened() as opened:
        await settle(opened)


def _real_clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))
