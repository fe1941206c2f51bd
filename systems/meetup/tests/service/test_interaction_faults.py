"""Interactions with copies of the bot at once, bots that die between two steps, and hostile names."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from keywright.testing import Raw, wait_until
from keywright_meetup.service.interactions import PATH, Interaction
from keywright_meetup.service.slash_commands import SlashCommands
from keywright_meetup.simulator.discord import COMMAND
from keywright_service.testing.discord_rest_simulator import Guild

from ..deaths import die_at
from ..meetup_bots import Opened, RunningBot, Surroundings
from ..meetup_town import Stored, everything

PLAYER, HOST = "[Player] Dragon Hunt", "[Host] Dragon Hunt"
PUBLIC_URL = "https://bot.example.org"


def body_of(around: Surroundings, user: int, name: str, channel: int, /, **options: object) -> bytes:
    """Return the body of a command in a channel."""
    given = [{"name": each, "value": value} for each, value in options.items()]
    return around.discord.interaction(COMMAND, user, channel, {"name": name, "options": given})


async def said(opened: Opened, body: bytes) -> str:
    commands = SlashCommands(opened.db, opened.discord, opened.around.clock, PUBLIC_URL)
    return (await commands.answer(msgspec.json.decode(body, type=Interaction))).content


class Club:
    """A channel with a host and a guest, who are linked, and a stranger."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.host, self.guest = around.person("Hanna"), around.person("Gino")
        event = around.announce(days=3, hosts=(self.host.meetup,))
        event.rsvps = {each.meetup: "YES" for each in (self.host, self.guest)}
        self.stranger = around.discord.guild.join("Stranger")

    @property
    def guild(self) -> Guild:
        return self.around.discord.guild

    @property
    def channel(self) -> int:
        (channel,) = self.guild.text_channels
        return int(channel["id"])

    def people(self) -> dict[str, set[str]]:
        users = {"host": self.host.discord, "guest": self.guest.discord, "stranger": self.stranger}
        return {name: self.guild.roles_of(user) for name, user in users.items()}


CHANGES: Mapping[str, tuple[str, Mapping[str, str | bool | int]]] = {
    "remove a guest": ("remove", {"user": "guest"}),
    "remove from the hosts": ("remove", {"user": "host", "only_as_host": True}),
    "invite": ("invite", {"user": "stranger"}),
    "readmit": ("readmit", {"user": "guest"}),
    "end": ("end", {}),
    "extend": ("extend", {"days": 90}),
    "unlink": ("unlink", {}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("change", CHANGES)
async def test_a_bot_that_dies_at_any_step_of_a_command_leaves_nothing_that_repeating_it_does_not_finish(
    around: Surroundings, raw: Raw, change: str
) -> None:
    club = Club(around)
    name, options = CHANGES[change]
    users = {"guest": club.guest.discord, "host": club.host.discord, "stranger": club.stranger}

    async def prepare(opened: Opened) -> bytes:
        raw("FLUSHALL")
        club.guild.channels.clear()
        club.guild.messages.clear()
        for role in club.guild.made_roles:
            club.guild.delete_role(int(role["id"]))
        await opened.prepare()
        await opened.sync()
        if name == "end":
            raw("SET", f"discord_channel:{club.channel}:expiration_time", around.clock().isoformat())
        if name == "readmit":
            removed = str(users["guest"])
            await said(opened, body_of(around, club.host.discord, "remove", club.channel, user=removed))
        given = {key: users.get(str(value), value) for key, value in options.items()}
        return body_of(around, club.host.discord, name, club.channel, **given)

    def outcome() -> tuple[Stored, dict[str, set[str]], int]:
        # Channels and roles have other ids each time.
        stored = {key: value for key, value in everything(raw).items() if "removed" in key or "time" in key}
        people = sum(":discord_user" in key or ":meetup_user" in key for key in everything(raw))
        stored = {key.replace(str(club.channel), "channel"): value for key, value in stored.items()}
        return {**stored, "links": people}, club.people(), len(club.guild.messages)

    async with around.opened() as opened:
        body = await prepare(opened)
        await said(opened, body)
        undisturbed = outcome()
        step = 0
        for step in itertools.count():
            body = await prepare(opened)
            died = await die_at(opened, step, lambda mortal: said(mortal, body))  # noqa: B023  # awaited here
            await said(opened, body)
            assert outcome() == undisturbed, f"died after step {step}"
            if not died:
                break
    assert step >= 1


@pytest.mark.anyio
async def test_a_sync_between_a_death_and_the_repetition_does_not_let_a_removed_guest_in(
    around: Surroundings,
) -> None:
    club = Club(around)
    async with around.opened() as opened:
        await opened.sync()
        body = body_of(around, club.host.discord, "remove", club.channel, user=str(club.guest.discord))
        for step in itertools.count():
            died = await die_at(opened, step, lambda mortal: said(mortal, body))
            if club.people()["guest"] == set():
                break
            assert died
        await opened.sync()
        assert club.people()["guest"] == set()


def test_two_copies_that_are_asked_the_same_at_once_do_it_once(around: Surroundings, raw: Raw) -> None:
    guest = around.person("Gino")
    for command in (
        ("SET", f"meetup_user:{guest.meetup}:discord_user", guest.discord),
        ("SET", f"discord_user:{guest.discord}:meetup_user", guest.meetup),
        ("SADD", "meetup_users", guest.meetup),
        ("SADD", "discord_users", guest.discord),
    ):
        raw(*command)
    with RunningBot(around) as one, RunningBot(around) as other, ThreadPoolExecutor() as threads:

        def use(bot: RunningBot) -> str:
            body = body_of(around, guest.discord, "unlink", around.discord.guild.id)
            text: str = around.discord.reply_to(body, url=f"{bot.url}{PATH}")["content"]
            return text

        replies = sorted(threads.map(use, (one, other) * 4))
    assert sum("not linked any more" in each for each in replies) == 1
    assert sum("You are not linked" in each for each in replies) == 7
    assert not [key for key in everything(raw) if str(guest.discord) in key]


def test_two_copies_that_start_at_once_register_the_commands_once(around: Surroundings) -> None:
    with RunningBot(around) as one, RunningBot(around) as other:
        tasks = [each for bot in (one, other) for each in bot.bot.tasks if each.name == "commands"]
        wait_until(lambda: any(each.health.last for each in tasks), "commands that are registered")
    writes = [each for each in around.discord.answered if each.method == "PUT" and "/commands" in each.path]
    assert len(writes) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name",
    ["@everyone", "<@&1> `/end`", "[x](https://evil.example)", "\u202e\x00\n" + "a" * 5000],
    ids=str.split,
)
async def test_a_hostile_name_is_not_part_of_any_reply_or_message(around: Surroundings, name: str) -> None:
    club = Club(around)
    club.guild.names[club.stranger] = club.guild.names[club.host.discord] = name
    async with around.opened() as opened:
        await opened.sync()
        asked: list[tuple[int, str, dict[str, object]]] = [
            (club.stranger, "whoami", {}),
            (club.stranger, "link", {}),
            (club.stranger, "unlink", {}),
            (club.stranger, "end", {}),
            (club.host.discord, "invite", {"user": str(club.stranger)}),
            (club.host.discord, "remove", {"user": str(club.stranger)}),
            (club.host.discord, "readmit", {"user": str(club.stranger)}),
        ]
        replies = [
            await said(opened, body_of(around, user, command, club.channel, **options))
            for user, command, options in asked
        ]
    texts = [*replies, *(text for _, text in club.guild.messages)]
    assert len(texts) == 8
    assert not [text for text in texts if name in text or name.lower() in text]
    assert max(map(len, texts)) < 2000


MALFORMED: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "no user": ("invite", {}),
    "a user that is not an id": ("remove", {"user": "x; DROP"}),
    "a channel that is not an id": ("end", {"channel": "general"}),
    "no days": ("extend", {}),
    "days that are not a number": ("extend", {"days": "ten"}),
    "negative days": ("extend", {"days": -3}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", MALFORMED)
async def test_options_that_discord_would_not_send_are_refused_with_a_reply(
    around: Surroundings, raw: Raw, case: str
) -> None:
    club = Club(around)
    name, options = MALFORMED[case]
    async with around.opened() as opened:
        await opened.sync()
        before = everything(raw)
        body = body_of(around, club.host.discord, name, club.channel, **options)
        assert "is missing or not valid" in await said(opened, body)
        assert everything(raw) == before


@pytest.mark.anyio
async def test_more_days_than_allowed_are_as_many_as_allowed(around: Surroundings, raw: Raw) -> None:
    club = Club(around)
    async with around.opened() as opened:
        await opened.sync()
        body = body_of(around, club.host.discord, "extend", club.channel, days=10**15)
        assert "is kept until" in await said(opened, body)
    kept = raw("GET", f"discord_channel:{club.channel}:expiration_time")
    assert kept.startswith(f"{around.clock.advance(days=180):%Y-%m-%d}".encode())
