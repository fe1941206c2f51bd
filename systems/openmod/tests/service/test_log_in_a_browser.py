"""The public log as a person sees it: in Chromium, on a phone, in the dark, without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from browsing import SCREEN_NAMES, SCREENS, Chromium, assert_fits, shoot
from keywright_openmod.schema import CachedComment, CachedPost

from ..log_server import LogServer, minutes, plant
from ..newsroom import NOON, Newsroom, deleted, mod_action

if TYPE_CHECKING:
    from playwright.async_api import Page

LONG = "Sphinx of black quartz, judge my vow. " * 40


@pytest.fixture
def site(room: Newsroom) -> Iterator[LogServer]:
    fill(room)
    with LogServer(room.url) as server:
        yield server


def fill(room: Newsroom) -> None:
    """Plant entries of two days, one of each kind, with usual, long and hostile text."""
    comment = CachedComment("comment", f"First line.\nSecond line, {LONG}", "/r/cats/", "t2_ann")
    link = CachedPost(
        type="post",
        title="You will not believe what this cat did next",
        url="https://example.org/" + "very-long-path/" * 12,
        permalink="/r/cats/",
        author="t2_bob",
    )
    hostile = CachedComment(
        "comment", "<b>bold</b> \u202emoc.live\u2066 " + "W" * 300, "javascript:x", "t2_eve"
    )
    plant(room, "t3_a", content=comment, parent="t3_p1")
    plant(room, "t3_b", at=NOON - minutes(3), action="spamlink", thing="t3_p2", user="Bob", content=link)
    plant(room, "t3_c", at=NOON - minutes(9), action="banuser", thing="t2_bob", user="Bob")
    plant(
        room,
        "t3_d",
        at=NOON - timedelta(days=1),
        thing="t1_c4",
        user="Eve",
        moderator="Moderator0of20chars0",
        content=hostile,
    )
    plant(room, "t3_e", at=NOON - timedelta(days=1, hours=1), action="approvelink", thing="t3_p5")


@pytest.mark.parametrize(("width", "dark"), SCREENS, ids=SCREEN_NAMES)
def test_a_visitor_reads_searches_and_opens_an_entry(
    site: LogServer, chromium: Chromium, width: int, dark: bool
) -> None:
    name = f"{width}{'-dark' if dark else ''}"

    async def work(page: Page) -> None:
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        await page.goto(site.url)
        assert await page.locator("article").count() == 5
        assert await page.locator("section h2").all_inner_texts() == [
            "Tuesday, 2 January 2024",
            "Monday, 1 January 2024",
        ]
        await assert_fits(page)
        await shoot(page, f"log-{name}")
        await page.get_by_text("Search", exact=True).first.click()
        await page.get_by_label("User", exact=True).fill("bob")
        await page.get_by_label("Action").select_option(label="User banned")
        await assert_fits(page)
        await shoot(page, f"log-search-{name}")
        await page.get_by_role("button", name="Search").click()
        await page.wait_for_url("**action=banuser**")
        assert await page.locator("article").count() == 1
        await assert_fits(page)
        await shoot(page, f"log-found-{name}")
        await page.get_by_role("link", name="Remove the filter action").click()
        assert await page.locator("article").count() == 2
        await page.get_by_role("link", name="Details", exact=True).first.click()
        await page.wait_for_url("**/entry/t3_b")
        assert await page.locator("h1").inner_text() == "Post marked as spam"
        extract = page.get_by_role("link", name="Extract on Reddit")
        assert await extract.get_attribute("href") == "https://www.reddit.com/comments/b/"
        await assert_fits(page)
        await shoot(page, f"log-entry-{name}")
        await page.goto(f"{site.url}/entry/t3_a")
        assert "First line.\nSecond line" in await page.locator("blockquote").inner_text()
        await assert_fits(page)
        await shoot(page, f"log-entry-long-{name}")
        assert complaints == []
        await page.goto(f"{site.url}/?user=nobody_at_all")
        await page.get_by_text("No entry matches this search.").wait_for()
        await assert_fits(page)
        await shoot(page, f"log-empty-{name}")
        await page.goto(f"{site.url}/entry/t3_none")
        assert await page.locator("h1").inner_text() == "This entry does not exist"
        await assert_fits(page)
        await shoot(page, f"log-missing-{name}")

    chromium.visit(work, width=width, dark=dark)


def test_no_script_is_needed_and_hostile_text_stays_text(site: LogServer, chromium: Chromium) -> None:
    async def work(page: Page) -> None:
        await page.goto(f"{site.url}/?user=Eve")
        text = await page.locator("blockquote").inner_text()
        assert text.startswith("<b>bold</b> moc.live W")
        assert await page.locator("blockquote b").count() == 0
        await page.goto(f"{site.url}/entry/t3_d")
        assert await page.locator("a[href^='javascript']").count() == 0

    chromium.visit(work, java_script_enabled=False, width=390)


def test_a_deleted_submission_is_gone_after_reload_and_after_back(room: Newsroom, chromium: Chromium) -> None:
    """Neither the browser nor a cache on the way keeps a page."""
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    comment = room.reddit.write_comment(ann, "secret")
    room.handle(mod_action("removecomment", "Mod", ann, comment.id))

    async def work(page: Page) -> None:
        await page.goto(server.url)
        await page.get_by_text("body secret").wait_for()
        await page.get_by_role("link", name="Details", exact=True).click()
        await page.wait_for_url("**/entry/t3_x1")
        erase()
        await page.go_back()
        await page.get_by_text("There are no entries yet.").wait_for()
        assert await page.get_by_text("secret").count() == 0
        await page.go_forward()
        await page.get_by_role("heading", name="This entry does not exist").wait_for()

    def erase() -> None:
        del room.reddit.things[comment.id]
        assert room.meanwhile(deleted(comment.id))

    with LogServer(room.url) as server:
        chromium.visit(work)


def test_pages_of_the_log_are_walked_by_their_links(room: Newsroom, chromium: Chromium) -> None:
    for place in range(120):
        plant(room, f"t3_{place:03}", at=NOON - minutes(place))

    async def work(page: Page) -> None:
        seen: list[str] = []
        await page.goto(server.url)
        while True:
            whens = page.locator("a.when")
            seen += [str(await whens.nth(n).get_attribute("href")) for n in range(await whens.count())]
            older = page.get_by_role("link", name="Older entries")
            if not await older.count():
                break
            await older.click()
        assert seen == [f"/entry/t3_{place:03}" for place in range(120)]
        await page.get_by_role("link", name="Newest entries").click()
        assert await page.locator("a.when").first.get_attribute("href") == "/entry/t3_000"

    with LogServer(room.url) as server:
        chromium.visit(work)
