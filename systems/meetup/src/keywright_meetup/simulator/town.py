"""A small town: one Meetup group and one Discord guild, with people who have accounts on both."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from keywright_meetup.simulator.simulator import MeetupSimulator
from keywright_meetup.simulator.world import SimulatedEvent
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator

__all__ = ["GROUP", "Person", "Town", "bot_variables"]

GROUP = "sample-roleplayers"
PEOPLE = ("Ada", "Bela", "Chidi", "Dana", "Emre", "Fay", "Goran", "Hana", "Ines", "Jun", "Kofi", "Lea")
TITLES = ("Dragon Hunt", "The Sunken City", "Night Train", "Clockwork Harbour", "The Long Winter")
CODES = ("[new adventure]", "[new campaign]")
MOST_EVENTS = 25
STEPS_AN_EVENT = 10
MANAGE_GUILD = 1 << 5


def bot_variables(meetup: MeetupSimulator, discord: DiscordRestSimulator, group: str) -> dict[str, str]:
    """Return the variables that point a bot at both, with tokens of another organizer each time."""
    access, refresh = meetup.oauth.grant(meetup.world.join("Organizer"))
    return {
        "DISCORD_TOKEN": discord.token,
        "DISCORD_GUILD": str(discord.guild.id),
        "DISCORD_API_URL": discord.api_url,
        "MEETUP_CLIENT_ID": meetup.client_id,
        "MEETUP_CLIENT_SECRET": meetup.client_secret,
        "MEETUP_ACCESS_TOKEN": access,
        "MEETUP_REFRESH_TOKEN": refresh,
        "MEETUP_GROUPS": group,
        "MEETUP_API_URL": meetup.api_url,
        "MEETUP_AUTHORIZE_URL": meetup.authorize_url,
        "MEETUP_TOKEN_URL": meetup.token_url,
    }


@dataclass(frozen=True)
class Person:
    name: str
    meetup: int
    discord: int


class Town:
    """The people and events of one group. The first person may manage the guild."""

    def __init__(self, meetup: MeetupSimulator, discord: DiscordRestSimulator, *, seed: int = 0) -> None:
        self.meetup = meetup
        self.discord = discord
        self.events: list[SimulatedEvent] = []
        self._chance = random.Random(seed)
        self._titles = itertools.cycle(TITLES)
        self._steps = itertools.count(1)
        meetup.world.groups.add(GROUP)
        self.people = [Person(name, meetup.world.join(name), discord.guild.join(name)) for name in PEOPLE]
        discord.guild.permissions[self.people[0].discord] = MANAGE_GUILD
        for _ in TITLES:
            self.announce()
        for _ in PEOPLE * 2:
            self.answer()

    def variables(self) -> dict[str, str]:
        """Return the variables that point a bot at the simulators."""
        return bot_variables(self.meetup, self.discord, GROUP)

    def announce(self) -> None:
        """Announce an event: a new series, or another session of a campaign."""
        campaigns = [each.id for each in self.events if "[new campaign]" in each.description]
        description = self._chance.choice([*CODES, f"[campaign {campaigns[0]}]"] if campaigns else CODES)
        host = self._chance.choice(self.people).meetup
        time = datetime.now(UTC) + timedelta(days=self._chance.randint(2, 30))
        title = next(self._titles)
        self.events.append(self.meetup.world.announce(GROUP, title, time, description, hosts=(host,)))

    def answer(self) -> None:
        """Answer an event as a random person."""
        event, person = self._chance.choice(self.events), self._chance.choice(self.people)
        event.rsvps[person.meetup] = self._chance.choice(("YES", "YES", "NO"))

    def act(self) -> None:
        """Answer an event, and announce one now and then."""
        self.answer()
        if next(self._steps) % STEPS_AN_EVENT == 0 and len(self.events) < MOST_EVENTS:
            self.announce()
