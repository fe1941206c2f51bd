"""Members from whom somebody took a role on Discord are recorded as removed, and not added back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keywright.testing import Raw
from keywright_meetup import channels
from keywright_service.testing.discord_rest_simulator import Guild

from ..meetup_bots import Opened, Person, Surroundings
from ..meetup_town import everything, part

pytestmark = pytest.mark.anyio

PLAYER, HOST = "[Player] Dragon Hunt", "[Host] Dragon Hunt"


async def gathered(around: Surroundings, opened: Opened) -> tuple[Person, Person, int]:
    """A host and a guest with their roles, and their channel."""
    host, guest = around.linked
    event = around.announce(hosts=(host.meetup,))
    event.rsvps = {each.meetup: "YES" for each in (host, guest)}
    await opened.sync()
    assert around.discord.guild.roles_of(host.discord) == {PLAYER, HOST}
    assert around.discord.guild.roles_of(guest.discord) == {PLAYER}
    (channel,) = around.discord.guild.text_channels
    return host, guest, int(channel["id"])


@pytest.fixture(autouse=True)
def _people(around: Surroundings) -> None:
    around.person("Hanna")
    around.person("Gino")


def take(guild: Guild, user: int, name: str) -> None:
    """Take a role away, as a moderator does."""
    guild.members[user] -= {role for role in guild.members[user] if guild.roles[role]["name"] == name}


def removed(raw: Raw, name: str) -> dict[str, Any]:
    return part(everything(raw), "discord_channel", name)


async def test_a_guest_whose_role_was_taken_away_is_not_added_back(around: Surroundings, raw: Raw) -> None:
    async with around.opened() as opened:
        _, guest, channel = await gathered(around, opened)
        take(around.discord.guild, guest.discord, PLAYER)
        _, done = await opened.sync()
        assert (done.removed, done.added) == (1, 0)
        assert (await opened.sync_discord()).removed == 0
    assert around.discord.guild.roles_of(guest.discord) == set()
    assert removed(raw, "removed_users") == {str(channel): {str(guest.discord)}}
    assert removed(raw, "removed_hosts") == {}


async def test_a_host_whose_role_was_taken_away_stays_a_guest(around: Surroundings, raw: Raw) -> None:
    async with around.opened() as opened:
        host, _, channel = await gathered(around, opened)
        take(around.discord.guild, host.discord, HOST)
        await opened.sync()
    assert around.discord.guild.roles_of(host.discord) == {PLAYER}
    assert removed(raw, "removed_hosts") == {str(channel): {str(host.discord)}}
    assert removed(raw, "removed_users") == {}


async def test_members_of_an_older_database_are_recorded_when_they_are_met(
    around: Surroundings, raw: Raw
) -> None:
    async with around.opened() as opened:
        _, guest, channel = await gathered(around, opened)
        raw("DEL", f"discord_channel:{channel}:added_users", f"discord_channel:{channel}:added_hosts")
        assert (await opened.sync_discord()).added == 0
        take(around.discord.guild, guest.discord, PLAYER)
        assert (await opened.sync_discord()).removed == 1


async def test_somebody_who_leaves_the_guild_and_comes_back_gets_their_role_again(
    around: Surroundings, raw: Raw
) -> None:
    guild = around.discord.guild
    async with around.opened() as opened:
        _, guest, _ = await gathered(around, opened)
        guild.rejoin(guest.discord)  # between two syncs
        await opened.sync()
        assert guild.roles_of(guest.discord) == {PLAYER}
        guild.leave(guest.discord)
        await opened.sync()
        guild.rejoin(guest.discord)
        await opened.sync()
    assert guild.roles_of(guest.discord) == {PLAYER}
    assert removed(raw, "removed_users") == {}


async def test_a_role_that_was_deleted_is_replaced_and_given_to_all_again(
    around: Surroundings, raw: Raw
) -> None:
    guild = around.discord.guild
    async with around.opened() as opened:
        host, guest, _ = await gathered(around, opened)
        guild.delete_role(next(role for role, each in guild.roles.items() if each["name"] == PLAYER))
        await opened.sync()
    assert (guild.roles_of(host.discord), guild.roles_of(guest.discord)) == ({PLAYER, HOST}, {PLAYER})
    assert removed(raw, "removed_users") == {}


async def test_somebody_who_is_readmitted_gets_their_role_again(around: Surroundings, raw: Raw) -> None:
    async with around.opened() as opened:
        _, guest, channel = await gathered(around, opened)
        take(around.discord.guild, guest.discord, PLAYER)
        await opened.sync()
        assert await opened.db.run(channels.readmit(channel, guest.discord)) is True
        await opened.sync()
    assert around.discord.guild.roles_of(guest.discord) == {PLAYER}
    assert removed(raw, "removed_users") == {}


Fault = Callable[[Surroundings], None]
OUTAGES: dict[str, Fault] = {
    "an outage": lambda around: around.discord.faults.fail("/members/", 503, times=50),
    "an answer without content": lambda around: around.discord.faults.fail(
        "/members/", 200, times=50, body=""
    ),
    "an answer without roles": lambda around: around.discord.faults.fail(
        "/members/", 200, times=50, body="{}"
    ),
    "a 404 of a proxy": lambda around: around.discord.faults.fail("/members/", 404, times=50),
    "an unknown guild": lambda around: around.discord.faults.fail(
        "/members/", 404, times=50, body='{"message": "Unknown Guild", "code": 10004}'
    ),
}


@pytest.mark.parametrize("outage", OUTAGES)
async def test_nobody_counts_as_removed_while_discord_does_not_answer_about_members(
    around: Surroundings, raw: Raw, outage: str
) -> None:
    async with around.opened() as opened:
        await gathered(around, opened)
        before = everything(raw)
        OUTAGES[outage](around)
        assert len((await opened.sync_discord()).failures) == 1
        assert everything(raw) == before
        around.discord.faults.clear()
        assert (await opened.sync_discord()).removed == 0
    assert everything(raw) == before


async def test_a_channel_that_is_retired_leaves_no_record_of_its_members(
    around: Surroundings, raw: Raw
) -> None:
    async with around.opened() as opened:
        _, _, channel = await gathered(around, opened)
        assert set(removed(raw, "added_users")) == {str(channel)}
        await opened.db.run(channels.retire_channel(channel))
    assert (removed(raw, "added_users"), removed(raw, "added_hosts")) == ({}, {})
