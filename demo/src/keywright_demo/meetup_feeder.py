"""The simulators for the sample Meetup bot, and simulated users who announce, answer and link."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx

from keywright import AsyncDatabase, aconnect
from keywright.errors import KeywrightError
from keywright_demo import names
from keywright_meetup.account_links import begin_linking
from keywright_meetup.schema import meetup as space
from keywright_meetup.simulator import MeetupSimulator, SimulatedEvent
from keywright_meetup.simulator.town import bot_variables
from keywright_service.backoff import Backoff, retry
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator

__all__ = ["Town"]

GROUP = "sample-roleplayers"
PEOPLE = ("Ada", "Bela", "Chidi", "Dana", "Emre", "Fay", "Goran", "Hana", "Ines", "Jun", "Kofi", "Lea")
TITLES = ("Dragon Hunt", "The Sunken City", "Night Train", "Clockwork Harbour", "The Long Winter")
CODES = ("[new adventure]", "[new campaign]")
MOST_EVENTS = 25
PAUSE_SECONDS = 2.0
STEPS_AN_EVENT = 10


@dataclass
class Person:
    meetup: int
    discord: int


class Town:
    """The users of one group, who have accounts on both platforms."""

    def __init__(self, meetup: MeetupSimulator, discord: DiscordRestSimulator) -> None:
        self.meetup = meetup
        self.discord = discord
        self.events: list[SimulatedEvent] = []
        self._chance = random.Random(0)
        self._titles = itertools.cycle(TITLES)
        meetup.world.groups.add(GROUP)
        self.people = [Person(meetup.world.join(name), discord.guild.join(name)) for name in PEOPLE]
        for _ in TITLES:
            self.announce()

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
        """Answer an event as a random user."""
        event, person = self._chance.choice(self.events), self._chance.choice(self.people)
        event.rsvps[person.meetup] = self._chance.choice(("YES", "YES", "NO"))

    async def link(self, person: Person, db: AsyncDatabase, pages: str) -> None:
        """Link a user's accounts: open the page of the bot, consent at Meetup, and confirm both accounts."""
        linking = await db.run(begin_linking(person.discord))
        self.meetup.oauth.signed_in = person.meetup
        async with httpx.AsyncClient(follow_redirects=True, timeout=10) as browser:
            start = await browser.get(f"{pages}/link/{linking}")
            consent = await browser.post(start.url, data=_hidden(start) | {"scope": "rsvp"})
            last = await browser.post(consent.url, data={"answer": "allow"})
            done = await browser.post(f"{start.url}/confirm", data=_hidden(last) | {"answer": "yes"})
            done.raise_for_status()

    async def _try_to_link(self, person: Person, db: AsyncDatabase, pages: str) -> None:
        """Link a user. The bot may be down, or a real server may have the link from an earlier run."""
        try:
            await self.link(person, db, pages)
        except (httpx.HTTPError, KeywrightError) as error:
            print(f"{person} could not link: {error}")

    async def live(self, pages: str) -> None:
        """Act every few seconds, until the process is stopped."""
        unlinked = iter(self.people)
        async with aconnect(os.environ["REDIS_URL"], space.bind(prefix=names.MEETUP)) as db:
            async with httpx.AsyncClient(timeout=5) as client:

                async def look() -> None:
                    (await client.get(f"{pages}/health")).raise_for_status()

                # The bot is started after us.
                await retry(look, "reach the bot", on=httpx.HTTPError, backoff=Backoff.constant(0.2))
            for step in itertools.count(1):
                self.answer()
                if (person := next(unlinked, None)) is not None:
                    await self._try_to_link(person, db, pages)
                if step % STEPS_AN_EVENT == 0 and len(self.events) < MOST_EVENTS:
                    self.announce()
                await asyncio.sleep(PAUSE_SECONDS)


def _hidden(page: httpx.Response) -> dict[str, str]:
    """Return the hidden fields of the form of a page, as a browser sends them."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', page.text))


def main(pages: str) -> None:
    with MeetupSimulator() as meetup, DiscordRestSimulator() as discord:
        town = Town(meetup, discord)
        for name, value in town.variables().items():
            print(f"export {name}={value}")
        print("ready")
        asyncio.run(town.live(pages))


if __name__ == "__main__":
    main(*sys.argv[1:])
