"""What members, hosts and those who manage the server do with the commands and buttons of the bot."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import keywright_meetup
from keywright.testing import Raw, wait_until
from keywright_meetup.commands.meetup import meetup
from keywright_meetup.service.expiry import check_expiry
from keywright_meetup.service.slash_commands import COMMANDS
from keywright_service.testing.discord_rest_simulator import Guild

from ..meetup_bots import Person, RunningBot, Surroundings
from ..meetup_town import everything, part

PLAYER, HOST = "[Player] Dragon Hunt", "[Host] Dragon Hunt"
MANAGE_GUILD, ADMINISTRATOR = 1 << 5, 1 << 3


@dataclass
class Town:
    """A bot at work: a channel with a host and a guest, and a member who is neither."""

    around: Surroundings
    bot: RunningBot
    raw: Raw
    host: Person
    guest: Person
    stranger: int
    channel: int

    @property
    def guild(self) -> Guild:
        return self.around.discord.guild

    def says(self, user: int, name: str, /, **options: object) -> str:
        """Return the text of the reply to a command in the channel."""
        text: str = self.around.discord.command(user, name, self.channel, **options)["content"]
        return text

    def removed(self, name: str) -> Any:
        return part(everything(self.raw), "discord_channel", name).get(str(self.channel), set())


@pytest.fixture
def town(around: Surroundings, raw: Raw) -> Iterator[Town]:
    host, guest = around.person("Hanna"), around.person("Gino")
    event = around.announce(hosts=(host.meetup,))
    event.rsvps = {each.meetup: "YES" for each in (host, guest)}
    for each in (host, guest):
        raw("SET", f"meetup_user:{each.meetup}:discord_user", each.discord)
        raw("SET", f"discord_user:{each.discord}:meetup_user", each.meetup)
        raw("SADD", "meetup_users", each.meetup)
        raw("SADD", "discord_users", each.discord)
    stranger = around.discord.guild.join("Stranger")
    with RunningBot(around) as bot:
        (sync,) = (each for each in bot.bot.tasks if each.name == "sync")
        wait_until(lambda: sync.health.last, "a sync")
        (channel,) = around.discord.guild.text_channels
        assert around.discord.guild.roles_of(host.discord) == {PLAYER, HOST}
        yield Town(around, bot.listen(), raw, host, guest, stranger, int(channel["id"]))


def test_a_member_asks_for_a_link_and_gets_it_alone(town: Town) -> None:
    reply = town.around.discord.command(town.stranger, "link")
    assert reply["flags"] == 64
    assert reply["allowed_mentions"] == {"parse": []}
    ((button,),) = (row["components"] for row in reply["components"])
    assert httpx.get(button["url"]).status_code == 200
    linking = button["url"].rpartition("/")[2]
    assert town.raw("GET", f"meetup_linking:{linking}:discord_user") == str(town.stranger).encode()


def test_a_member_sees_and_ends_their_link(town: Town) -> None:
    user, partner = town.guest.discord, town.guest.meetup
    assert f"[Meetup member {partner}]" in town.says(user, "whoami")
    assert f"You are linked to [Meetup member {partner}]" in town.says(user, "link")
    assert "not linked any more" in town.says(user, "unlink")
    assert town.raw("EXISTS", f"discord_user:{user}:meetup_user", f"meetup_user:{partner}:discord_user") == 0
    assert "You are not linked" in town.says(user, "unlink")
    assert "not linked to a Meetup account" in town.says(user, "whoami")


HOSTS_ONLY: dict[str, dict[str, object]] = {
    "invite": {"user": "5"},
    "end": {},
    "extend": {"days": 7},
    "remove": {"user": "5"},
    "readmit": {"user": "5"},
}


def test_every_command_is_for_everybody_or_for_hosts() -> None:
    assert {each["name"] for each in COMMANDS} == {*HOSTS_ONLY, "link", "unlink", "whoami"}


@pytest.mark.parametrize("name", HOSTS_ONLY)
def test_a_guest_may_not_decide_about_the_channel(town: Town, name: str) -> None:
    before = everything(town.raw)
    for user in (town.guest.discord, town.stranger):
        assert "You are not a host of" in town.says(user, name, **HOSTS_ONLY[name])
    assert everything(town.raw) == before


@pytest.mark.parametrize("name", HOSTS_ONLY)
def test_a_host_may_not_decide_about_the_channel_of_others(town: Town, name: str) -> None:
    town.raw("SADD", "discord_channels", 77)
    before = everything(town.raw)
    reply = town.says(town.host.discord, name, **HOSTS_ONLY[name], channel="77")
    assert "You are not a host of <#77>" in reply
    assert everything(town.raw) == before


def test_a_member_removes_themselves_and_nobody_else(town: Town) -> None:
    guest, host = town.guest.discord, town.host.discord
    assert "You are not a host of" in town.says(guest, "remove", user=str(host))
    assert "is not added again" in town.says(guest, "remove", user=str(guest))
    assert (town.guild.roles_of(guest), town.removed("removed_users")) == (set(), {str(guest)})
    assert "You are not a host of" in town.says(guest, "readmit", user=str(guest))


@pytest.mark.parametrize("name", HOSTS_ONLY)
def test_a_command_in_another_channel_says_so(town: Town, name: str) -> None:
    other = town.guild.add_channel("general")
    town.guild.permissions[town.stranger] = ADMINISTRATOR
    reply = town.around.discord.command(town.stranger, name, other, **HOSTS_ONLY[name])
    assert reply["content"].startswith(f"<#{other}> is not a channel of the bot.")


def test_a_host_removes_and_readmits_a_guest(town: Town) -> None:
    guest = town.guest.discord
    assert "is not added again" in town.says(town.host.discord, "remove", user=str(guest))
    assert town.guild.roles_of(guest) == set()
    assert town.removed("removed_users") == {str(guest)}
    assert "was removed from" in town.says(town.host.discord, "invite", user=str(guest))
    assert "again within a quarter of an hour" in town.says(town.host.discord, "readmit", user=str(guest))
    assert town.removed("removed_users") == set()
    assert "was not removed" in town.says(town.host.discord, "readmit", user=str(guest))


def test_a_host_who_is_removed_from_the_hosts_stays_a_guest_and_decides_nothing_any_more(town: Town) -> None:
    town.guild.permissions[town.stranger] = MANAGE_GUILD
    host = town.host.discord
    reply = town.says(town.stranger, "remove", user=str(host), only_as_host=True)
    assert "was removed from the hosts of" in reply
    assert town.guild.roles_of(host) == {PLAYER}
    assert (town.removed("removed_hosts"), town.removed("removed_users")) == ({str(host)}, set())
    assert "You are not a host of" in town.says(host, "extend", days=7)


def test_a_host_of_an_event_decides_without_the_role(town: Town) -> None:
    town.guild.members[town.host.discord].clear()
    assert "is kept until" in town.says(town.host.discord, "extend", days=90)


def test_a_host_by_role_alone_decides(town: Town) -> None:
    role = next(role for role, each in town.guild.roles.items() if each["name"] == HOST)
    town.guild.members[town.stranger].add(role)
    assert "is kept until" in town.says(town.stranger, "extend", days=90)


def test_somebody_who_manages_the_server_decides_about_a_channel_from_elsewhere(town: Town) -> None:
    town.guild.permissions[town.stranger] = MANAGE_GUILD
    elsewhere = town.guild.add_channel("general")
    reply = town.around.discord.command(
        town.stranger, "extend", elsewhere, days=90, channel=str(town.channel)
    )
    assert f"<#{town.channel}> is kept until" in reply["content"]


def test_an_invited_member_gets_in_and_links_by_a_button(town: Town) -> None:
    reply = town.says(town.host.discord, "invite", user=str(town.stranger))
    assert "is asked there to link" in reply
    assert town.guild.roles_of(town.stranger) == {PLAYER}
    ((channel, text),) = town.guild.messages
    assert (channel, f"<@{town.stranger}>" in text) == (town.channel, True)
    (((button,),),) = ([row["components"] for row in rows] for rows in town.guild.components)
    pressed = town.around.discord.press(town.stranger, button["custom_id"], town.channel)
    ((opens,),) = (row["components"] for row in pressed["components"])
    assert httpx.get(opens["url"]).status_code == 200
    assert "can see" in town.says(town.host.discord, "invite", user=str(town.guest.discord))
    assert len(town.guild.messages) == 1  # nobody asks a linked member


def test_an_invited_user_who_left_is_named(town: Town) -> None:
    town.guild.leave(town.stranger)
    assert "is not a member of this server" in town.says(town.host.discord, "invite", user=str(town.stranger))


def test_a_channel_is_ended_after_its_last_session_and_extended_again(town: Town) -> None:
    assert "has not expired yet" in town.says(town.host.discord, "end")
    key = f"discord_channel:{town.channel}"
    town.raw("SET", f"{key}:expiration_time", town.around.clock().isoformat())
    assert f"<#{town.channel}> is deleted <t:" in town.says(town.host.discord, "end")
    assert town.raw("EXISTS", f"{key}:deletion_time") == 1
    assert "is kept until <t:" in town.says(town.host.discord, "extend", days=7)
    assert town.raw("EXISTS", f"{key}:deletion_time") == 0
    assert "is kept for longer already" in town.says(town.host.discord, "extend", days=6)


@pytest.mark.parametrize(("label", "says"), [("End", "is deleted <t:"), ("Keep", "is kept until <t:")])
def test_the_buttons_of_a_reminder_do_what_they_say(town: Town, label: str, says: str) -> None:
    async def remind() -> None:
        async with town.around.opened() as opened:
            for _ in range(2):  # the first sets until when the channel serves
                await check_expiry(opened.db, opened.discord, town.around.clock())

    town.around.clock.advance(days=5)
    asyncio.run(remind())
    ((channel, text),) = town.guild.messages
    assert channel == town.channel
    assert "`/end`" in text
    assert "`/extend`" in text
    buttons = [button for rows in town.guild.components for row in rows for button in row["components"]]
    (button,) = (each for each in buttons if each["label"].startswith(label))
    refused = town.around.discord.press(town.guest.discord, button["custom_id"], town.channel)
    assert "You are not a host of" in refused["content"]
    reply = town.around.discord.press(town.host.discord, button["custom_id"], town.channel)
    assert says in reply["content"]


SOURCES = Path(keywright_meetup.__file__).parent


def test_every_command_that_a_text_names_exists() -> None:
    texts = "\n".join(path.read_text() for path in SOURCES.rglob("*") if path.suffix in (".py", ".html"))
    slash = set(re.findall(r"(?:`| use )/([a-z]+)\b", texts))
    assert slash == {"link", "unlink", "end", "extend", "invite", "readmit"}
    assert slash <= {each["name"] for each in COMMANDS}
    shell = set(re.findall(r"keywright meetup ([a-z]+)", texts))
    assert {"authorize", "register"} <= shell
    names = {each.name or each.callback.__name__ for each in meetup.registered_commands if each.callback}
    assert shell - {"bot"} <= names


def test_an_unknown_command_or_button_gets_a_reply(town: Town) -> None:
    assert "does not know this" in town.says(town.host.discord, "dance")
    pressed = town.around.discord.press(town.host.discord, "old-button", town.channel)
    assert "does not know this" in pressed["content"]


def test_a_removal_is_recorded_though_discord_does_not_take_the_role(town: Town) -> None:
    town.around.discord.faults.fail("/roles/", 403, method="DELETE", times=9, body='{"code": 50013}')
    reply = town.says(town.host.discord, "remove", user=str(town.guest.discord))
    assert "Something went wrong on our side" in reply
    assert town.removed("removed_users") == {str(town.guest.discord)}
    town.around.discord.faults.clear()
    assert "is not added again" in town.says(town.host.discord, "remove", user=str(town.guest.discord))
    assert town.guild.roles_of(town.guest.discord) == set()
