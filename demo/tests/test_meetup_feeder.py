"""The simulated users of the Meetup bot."""

from __future__ import annotations

import asyncio
import socket

import pytest

from keywright import aconnect
from keywright_demo.meetup_feeder import Town
from keywright_meetup.schema import DiscordUserOfMeetupUser
from keywright_meetup.service.bot import Bot
from keywright_meetup.service.configuration import load
from keywright_meetup.simulator import MeetupSimulator
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator

pytestmark = pytest.mark.anyio


async def test_a_simulated_user_links_their_accounts_on_the_pages_of_the_bot(redis_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = "{}:{}".format(*probe.getsockname())
    with MeetupSimulator() as meetup, DiscordRestSimulator() as discord:
        town = Town(meetup, discord)
        pages = {"PAGES_URL": f"http://{address}", "PAGES_ADDRESS": address}
        bot = Bot(load(environment={**town.variables(), **pages, "REDIS_URL": redis_url}))
        running = asyncio.create_task(bot.run())
        while bot.address is None:
            assert not running.done()
            await asyncio.sleep(0.005)
        async with aconnect(redis_url) as db:
            person = town.people[0]
            await town.link(person, db, pages["PAGES_URL"])
            assert await db.run(DiscordUserOfMeetupUser(person.meetup).get()) == person.discord
        bot.stop()
        await running
