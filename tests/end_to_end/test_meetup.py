"""The Meetup bot from the wheels: two copies, people on Discord, and everything killed once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from end_to_end.installation import Installation, answer, wait_ready
from keywright.testing import RedisServer, free_port, wait_until
from keywright_meetup.simulator import MeetupSimulator, SimulatedDiscord
from keywright_meetup.simulator.browser import link_accounts
from keywright_meetup.simulator.town import Person
from keywright_service.testing.http_faults import FaultyServer
from service_processes import ServiceProcess

GROUP = "sample-roleplayers"
SECONDS = 60
ATTEMPTS = 5  # of a request, before a sync fails
SETTINGS = """\
discord_token = "{discord.token}"
client_secret = "{meetup.client_secret}"
access_token = "{access}"
refresh_token = "{refresh}"

[discord]
guild = {discord.guild.id}
api_url = "{discord.api_url}"

[meetup]
groups = ["{group}"]
api_url = "{meetup.api_url}"

[oauth]
client_id = "{meetup.client_id}"
authorize_url = "{meetup.authorize_url}"
token_url = "{meetup.token_url}"

[pages]
public_url = "http://127.0.0.1:{port}"

[redis]
url = "{redis}"

[schedule]
sync_minutes = 0.01
clean_minutes = 0.01

[log]
format = "json"
"""


class Club:
    """Meetup, Discord, Redis and two copies of the bot."""

    def __init__(self, installed: Installation, folder: Path, running: ExitStack) -> None:
        self.redis = running.enter_context(RedisServer(tcp=True))
        self.meetup = running.enter_context(MeetupSimulator())
        self.discord = running.enter_context(SimulatedDiscord())
        self.ports = [free_port(), free_port()]
        self._installed, self._folder, self._running = installed, folder, running
        self._config = folder / "bot.toml"
        access, refresh = self.meetup.oauth.grant(self.meetup.world.join("Organizer"))
        self._config.write_text(
            SETTINGS.format(
                meetup=self.meetup,
                discord=self.discord,
                access=access,
                refresh=refresh,
                group=GROUP,
                port=self.ports[0],
                redis=self.redis.tcp_url,
            )
        )
        self.meetup.world.groups.add(GROUP)

    def person(self, name: str) -> Person:
        return Person(name, self.meetup.world.join(name), self.discord.guild.join(name))

    def announce(self, title: str, *guests: Person, host: Person, code: str = "[new adventure]") -> str:
        time = datetime.now(UTC) + timedelta(days=9)
        event = self.meetup.world.announce(GROUP, title, time, code, hosts=(host.meetup,))
        event.rsvps = {each.meetup: "YES" for each in guests}
        return event.id

    def start(self) -> list[ServiceProcess]:
        """Start both copies, and wait until they are ready."""
        copies = [
            self._running.enter_context(
                self._installed.service(
                    *("meetup", "serve", "--config", str(self._config)),
                    *("--set", f"pages.address=127.0.0.1:{port}"),
                    log=self._folder / f"{port}.log",
                )
            )
            for port in self.ports
        ]
        for port in self.ports:
            wait_ready(f"http://127.0.0.1:{port}/ready")
        return copies

    def register(self) -> None:
        self._installed.run("meetup", "register", "--config", str(self._config))

    def says(self, person: Person, command: str, channel: str | None = None, /, **options: object) -> Any:
        """Use a command as a person, and return the reply."""
        place = None if channel is None else self.channel(channel)
        return self.discord.command(person.discord, command, place, **options)

    def link(self, person: Person, *, member: int | None = None) -> httpx.Response:
        """Ask the bot for a link, open it, consent at Meetup, and confirm."""
        ((button,),) = (row["components"] for row in self.says(person, "link")["components"])
        return link_accounts(button["url"], member or person.meetup)

    def channel(self, name: str) -> int:
        (found,) = (each for each in self.discord.guild.text_channels if each["name"] == name)
        return int(found["id"])

    def roles_of(self, person: Person) -> set[str]:
        return self.discord.guild.roles_of(person.discord)


@pytest.fixture
def club(installed: Installation, tmp_path: Path) -> Iterator[Club]:
    with ExitStack() as running:
        yield Club(installed, tmp_path, running)


def refusals(simulator: FaultyServer) -> int:
    return sum(each.status == 503 for each in simulator.answered)


def until(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, seconds=SECONDS)


def test_a_bot_that_every_part_of_was_killed_leaves_one_channel_and_two_roles_for_each_series(
    club: Club,
) -> None:
    hanna, gino, mara = (club.person(name) for name in ("Hanna", "Gino", "Mara"))
    club.announce("Dragon Hunt", gino, mara, host=hanna)
    copies = club.start()
    club.register()

    # Use it.
    assert "Your accounts are linked" in club.link(hanna).text
    assert "Your accounts are linked" in club.link(gino).text
    assert club.link(mara, member=gino.meetup).status_code == 409
    until(lambda: club.roles_of(hanna) == {"[Host] Dragon Hunt"}, "a host with a role")
    until(lambda: club.roles_of(gino) == {"[Player] Dragon Hunt"}, "a guest with a role")
    assert "You are not a host of" in club.says(gino, "extend", "dragon-hunt", days=90)["content"]
    assert "is kept until" in club.says(hanna, "extend", "dragon-hunt", days=90)["content"]

    # Redis is killed.
    club.redis.kill()
    assert "Something went wrong on our side" in club.says(gino, "whoami")["content"]
    until(lambda: answer(f"http://127.0.0.1:{club.ports[1]}/health")[0] == 503, "a copy that says so")
    club.redis.start()
    until(lambda: "linked to" in club.says(gino, "whoami")["content"], "a bot that answers again")

    # Discord fails, then Meetup.
    for simulator, title in ((club.discord, "Night Train"), (club.meetup, "Sunken City")):
        with simulator.faults.outage():
            club.announce(title, gino, host=hanna)
            until(lambda: refusals(simulator) > ATTEMPTS, "a sync that gave up")  # noqa: B023  # waited for here
    nights = {"[Player] Night Train", "[Player] Sunken City"}
    until(lambda: nights <= club.roles_of(gino), "two series that were announced in an outage")

    # A host removes a guest, and every process is killed in the middle of a sync.
    reply = club.says(hanna, "remove", "dragon-hunt", user=str(gino.discord))
    assert "is not added again" in reply["content"]
    club.discord.faults.fail("/roles", None, method="POST", done=True)
    first = club.announce("The Long Winter", gino, host=hanna, code="[new campaign]")
    guild = club.discord.guild
    until(
        lambda: [each for each in guild.made_roles if each["name"].startswith("keywright-")],
        "a role that was made, but not recorded",
    )
    for copy in copies:
        copy.signal(signal.SIGKILL)
    with redis.Redis.from_url(club.redis.tcp_url, decode_responses=True) as raw:
        assert raw.exists("lock:meetup_task:sync")
        # Dead processes hold their leases for minutes, which pass here.
        for lease in raw.scan_iter("lock:*"):
            raw.pexpire(lease, 1)
        assert raw.exists("discord_provisioning")
    club.announce("The Long Winter", mara, host=hanna, code=f"[campaign {first}]")
    copies = club.start()
    assert "Your accounts are linked" in club.link(mara).text
    until(lambda: "[Player] The Long Winter" in club.roles_of(mara), "the guests of a later session")
    until(lambda: "[Player] Dragon Hunt" in club.roles_of(mara), "somebody who linked late")

    assert [copy.stop() for copy in copies] == [0, 0]
    people = {each.meetup: each.discord for each in (hanna, gino, mara)}
    with redis.Redis.from_url(club.redis.tcp_url, decode_responses=True) as raw:
        assert_whole(raw, club, {"dragon-hunt": 1, "night-train": 1, "sunken-city": 1, "the-long-winter": 2})
        assert_linked(raw, people)
        removed = raw.smembers(f"discord_channel:{club.channel('dragon-hunt')}:removed_users")
        assert removed == {str(gino.discord)}
    winter = "[Player] The Long Winter"
    assert club.roles_of(gino) == nights | {winter}
    assert club.roles_of(mara) == {"[Player] Dragon Hunt", winter}
    assert {name for name in club.roles_of(hanna) if name.startswith("[Host]")} == {
        f"[Host] {title}" for title in ("Dragon Hunt", "Night Train", "Sunken City", "The Long Winter")
    }


def assert_whole(raw: Any, club: Club, sessions: dict[str, int]) -> None:
    """Assert that each series has one channel and two roles on Discord, that its keys say so, and no more."""
    guild = club.discord.guild
    names = {channel["id"]: channel["name"] for channel in guild.text_channels}
    assert sorted(names.values()) == sorted(sessions)
    found, guests, hosts = {}, set(), set()
    for series in raw.smembers("event_series"):
        channel = raw.get(f"event_series:{series}:discord_channel")
        assert raw.get(f"discord_channel:{channel}:event_series") == series
        events = raw.smembers(f"event_series:{series}:meetup_events")
        assert {raw.get(f"meetup_event:{event}:event_series") for event in events} == {series}
        found[names.pop(channel)] = len(events)
        kind = "campaign" if len(events) > 1 else raw.get(f"event_series:{series}:type")
        assert raw.get(f"event_series:{series}:type") == kind
        guest, host = (raw.get(f"discord_channel:{channel}:discord_{each}") for each in ("role", "host_role"))
        assert raw.get(f"discord_role:{guest}:discord_channel") == channel
        assert raw.get(f"discord_host_role:{host}:discord_channel") == channel
        guests.add(guest)
        hosts.add(host)
    assert found == sessions
    assert raw.smembers("discord_channels") == {channel["id"] for channel in guild.text_channels}
    assert (raw.smembers("discord_roles"), raw.smembers("discord_host_roles")) == (guests, hosts)
    named = {role["id"]: role["name"] for role in guild.made_roles}
    assert {each for each, name in named.items() if name.startswith("[Player] ")} == guests
    assert {each for each, name in named.items() if name.startswith("[Host] ")} == hosts
    assert len(named) == 2 * len(sessions)
    assert raw.smembers("meetup_events") == set(club.meetup.world.events)
    left = ("orphaned_discord_channels", "orphaned_discord_roles", "discord_provisioning")
    assert not raw.exists(*left), "no orphan and no intent is left"
    assert list(raw.scan_iter("lock:*")) == []


def assert_linked(raw: Any, people: dict[int, int]) -> None:
    """Assert that exactly these people are linked, in both directions."""
    assert raw.smembers("meetup_users") == {str(each) for each in people}
    assert raw.smembers("discord_users") == {str(each) for each in people.values()}
    for meetup, discord in people.items():
        assert raw.get(f"meetup_user:{meetup}:discord_user") == str(discord)
        assert raw.get(f"discord_user:{discord}:meetup_user") == str(meetup)
    assert len(list(raw.scan_iter("meetup_user:*:discord_user"))) == len(people)
    assert len(list(raw.scan_iter("discord_user:*:meetup_user"))) == len(people)
