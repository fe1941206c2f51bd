"""Walking through live data by its links, in a browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from browsing import Chromium
from exploring import exploring_sample, key_path
from keywright import connect, gather_list
from keywright.testing.runs import Raw
from keywright_discord.drc import schema as drc
from keywright_discord.spectacles import schema as spectacles

Page = Any


async def _title(page: Page) -> str:
    return str(await page.inner_text("h1"))


async def _follow(page: Page, kind: str, but_not: Collection[str] = ()) -> str:
    """Follow the first link of the lists that leads to a key of a kind, and return its name."""
    others = "".join(f":not(:has-text('{each}'))" for each in but_not)
    await page.click(f"ul.ways li:not(.gone) a.row:has(.what:text-is('{kind}')){others} >> nth=0")
    return await _title(page)


def walked(
    chromium: Chromium, base: str, start: str, work: Callable[[Page], Awaitable[list[str]]]
) -> list[str]:
    async def visit(page: Page) -> list[str]:
        await page.goto(base + start)
        return await work(page)

    return chromium.visit(visit)


def test_one_walks_from_a_guild_to_a_channel_to_a_message_to_its_author(
    chromium: Chromium, redis_url: str
) -> None:
    async def walk(page: Page) -> list[str]:
        steps = [await _follow(page, "Channels"), await _follow(page, "Message", by_webhooks)]
        await page.click(".value li:has(> .label:text-is('author')) a")
        return [*steps, await _title(page)]

    with exploring_sample(redis_url, "drc") as explored, connect(redis_url, *drc.bind()) as db:
        guild = next(iter(db.scan(drc.Guild)))
        users = {user.user for user in db.scan(drc.User)}
        messages = list(db.scan(drc.Message))
        authors = [found and found["author"] for found in db.run(gather_list(m.get() for m in messages))]
        # The author of a webhook's message is the webhook, which is not a user.
        by_webhooks = [m.message for m, who in zip(messages, authors, strict=True) if who not in users]
        channels, message, author = walked(
            chromium, explored.base, key_path(b"keywright:v1json:" + guild._name), walk
        )
        found = db.run(drc.Message(message.rpartition(":")[2]).get())
    assert channels == f"keywright:v1json:channels:{guild.guild}"
    assert found is not None
    assert author == f"keywright:v1json:users:{found['author']}"


def test_one_channel_of_a_guild_has_a_page_of_its_own(chromium: Chromium, redis_url: str) -> None:
    async def walk(page: Page) -> list[str]:
        await _follow(page, "Channels")
        channel = await page.inner_text("table.rows tbody a.row >> nth=0")
        await page.click("table.rows tbody a.row >> nth=0")
        return [
            channel,
            await page.inner_text("main h2 >> nth=0"),
            str(await page.locator(".value > ul > li").count()),
        ]

    with exploring_sample(redis_url, "drc") as explored, connect(redis_url, *drc.bind()) as db:
        guild = next(iter(db.scan(drc.Guild)))
        channel, heading, entries = walked(
            chromium, explored.base, key_path(b"keywright:v1json:" + guild._name), walk
        )
    assert heading == f"Entry {channel}"
    assert entries == "1"


def _kept_conversation(url: str) -> tuple[str, str, str]:
    """A guild, one of its channels, and that channel's last message, all of which are stored."""
    with connect(url, *spectacles.bind()) as db:
        channels = db.run(spectacles.Channels().all())
        for message in db.scan(spectacles.Message):
            channel = channels.get(message.channel, {})
            if channel.get("last_message_id") == message.message:
                return channel["guild_id"], message.channel, message.message
    raise AssertionError("no channel has its last message")


def test_one_walks_from_a_guild_to_an_author_where_guilds_are_fields_of_a_hash(
    chromium: Chromium, redis_url: str, raw: Raw
) -> None:
    with exploring_sample(redis_url, "spectacles") as explored:
        guild, channel, message = _kept_conversation(redis_url)

        async def walk(page: Page) -> list[str]:
            steps = []
            for text in (guild, channel, message):
                await page.click(f"main a:has-text('{text}') >> visible=true >> nth=0")
                steps.append(await _title(page))
            await _follow(page, "Users")
            return [*steps, await page.inner_text("main h2 >> nth=0")]

        *steps, heading = walked(chromium, explored.base, key_path("GUILDS", guild), walk)
    assert steps == [f"CHANNELS:{guild}", "CHANNELS", f"MESSAGES:{channel}:{message}"]
    assert raw("HEXISTS", "USERS", heading.removeprefix("Entry ")) == 1


def test_one_walks_from_an_event_to_its_series_to_its_channel_to_its_role(
    chromium: Chromium, redis_url: str
) -> None:
    async def walk(page: Page) -> list[str]:
        kinds = ["SeriesOfEvent", "SeriesEvents", "ChannelOfSeries", "SeriesOfChannel", "GuestRoleOfChannel"]
        return [*[await _follow(page, kind) for kind in kinds], await _follow(page, "ChannelOfGuestRole")]

    with exploring_sample(redis_url, "meetup") as explored:
        steps = walked(chromium, explored.base, key_path("meetup_event:e1"), walk)
    channel = 10**18 + 1
    assert steps == [
        "meetup_event:e1:event_series",
        "event_series:s0:meetup_events",
        "event_series:s0:discord_channel",
        f"discord_channel:{channel}:event_series",
        f"discord_channel:{channel}:discord_role",
        f"discord_role:{channel + 10**6}:discord_channel",
    ]


def test_one_walks_from_a_person_to_the_extracts_about_them_and_back(
    chromium: Chromium, redis_url: str
) -> None:
    async def walk(page: Page) -> list[str]:
        return [await _follow(page, kind) for kind in ("ModActionSet", "ExtractHash", "TrackingSet")]

    with exploring_sample(redis_url, "openmod") as explored:
        steps = walked(chromium, explored.base, key_path("user:t2_u1"), walk)
    assert steps == ["mod-actions:t3_p1", "audit:t3_x1", "user:t2_u1"]


def test_a_repository_path_leads_to_all_its_keys_though_their_names_are_hashed(
    chromium: Chromium, redis_url: str
) -> None:
    async def walk(page: Page) -> list[str]:
        await page.keyboard.press("/")
        await page.keyboard.type("group/project-3")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/search?*")
        hits = await page.locator("ul.hits .what").all_inner_texts()
        await page.click("a.row:has(.what:text-is('CachedRepository'))")
        return [*hits, await page.inner_text(".value li:has(> .label:text-is('path'))")]

    with exploring_sample(redis_url, "registry") as explored:
        *hits, path = walked(chromium, explored.base, "/", walk)
    assert {"CachedRepository", "PullCount", "SizeWithDescendants"} <= set(hits)
    assert "group/project-3" in path


def test_the_graph_leads_on_too(chromium: Chromium, redis_url: str) -> None:
    async def walk(page: Page) -> list[str]:
        await page.click("svg.diagram a:has-text('SeriesEvents')")
        return [await _title(page)]

    with exploring_sample(redis_url, "meetup") as explored:
        assert walked(chromium, explored.base, key_path("meetup_event:e1"), walk) == [
            "event_series:s0:meetup_events"
        ]
