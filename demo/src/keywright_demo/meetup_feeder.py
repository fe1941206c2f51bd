"""The simulators for the sample Meetup bot, and simulated users who announce, answer and link."""

from __future__ import annotations

import asyncio
import os
import sys

import httpx

from keywright import AsyncDatabase, aconnect
from keywright.errors import KeywrightError
from keywright_demo import names
from keywright_meetup.account_links import begin_linking
from keywright_meetup.schema import meetup as space
from keywright_meetup.simulator import MeetupSimulator, town
from keywright_meetup.simulator.browser import link_accounts
from keywright_meetup.simulator.town import Person
from keywright_service.backoff import Backoff, retry
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator

__all__ = ["Town"]

PAUSE_SECONDS = 2.0


class Town(town.Town):
    """The people of a sample group, who link their accounts one after the other."""

    async def link(self, person: Person, db: AsyncDatabase, pages: str) -> None:
        """Link a user's accounts: open the page of the bot, consent at Meetup, and confirm both accounts."""
        linking = await db.run(begin_linking(person.discord))
        page = await asyncio.to_thread(link_accounts, f"{pages}/link/{linking}", person.meetup, scope="rsvp")
        page.raise_for_status()

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
            while True:
                self.act()
                if (person := next(unlinked, None)) is not None:
                    await self._try_to_link(person, db, pages)
                await asyncio.sleep(PAUSE_SECONDS)


def main(pages: str) -> None:
    with MeetupSimulator() as meetup, DiscordRestSimulator() as discord:
        people = Town(meetup, discord)
        for name, value in people.variables().items():
            print(f"export {name}={value}")
        print("ready")
        asyncio.run(people.live(pages))


if __name__ == "__main__":
    main(*sys.argv[1:])
