"""The linking flow as a person has it: in Chromium, with the mouse or keys alone, on a phone, in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse
from starlette.routing import Route

from browsing import SCREEN_NAMES, SCREENS, Chromium, assert_fits, shoot
from keywright import connect
from keywright_meetup.schema import DiscordUserOfMeetupUser, MeetupLinking, UserTokens
from keywright_service.testing.http_server import HttpServer

from ..meetup_bots import Person, RunningBot, Surroundings

if TYPE_CHECKING:
    from playwright.async_api import Page, Request


@pytest.fixture
def bot(around: Surroundings) -> Iterator[RunningBot]:
    with RunningBot(around) as running:
        yield running


@pytest.fixture
def offering_bot(around: Surroundings) -> Iterator[RunningBot]:
    """One that lets people choose."""
    with RunningBot(around, MEETUP_OFFER_RSVP="true") as running:
        yield running


@pytest.fixture
def someone(around: Surroundings) -> Person:
    person = around.person("Gino Rossi", linked=False)
    around.meetup.oauth.signed_in = person.meetup
    return person


def partner_of(around: Surroundings, person: Person) -> int | None:
    with connect(around.redis_url) as db:
        return db.run(DiscordUserOfMeetupUser(person.meetup).get())


def _failure(request: Request) -> list[str]:
    """Return the requests that failed, without those that the browser gave up when it left a page."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.url}: {request.failure}"]


@pytest.mark.parametrize(("width", "dark"), SCREENS, ids=SCREEN_NAMES)
def test_a_person_links_their_accounts_with_the_mouse(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person, width: int, dark: bool
) -> None:
    link = bot.invite(someone.discord)
    name = f"{width}{'-dark' if dark else ''}"

    async def work(page: Page) -> None:
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("requestfailed", lambda request: complaints.extend(_failure(request)))
        await page.goto(link)
        assert await page.locator("dd").inner_text() == "Gino Rossi\n@gino rossi"
        await assert_fits(page)
        await shoot(page, f"start-{name}")
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.get_by_role("button", name="Allow").click()
        await page.get_by_role("heading", name="Link these two accounts?").wait_for()
        assert await page.locator("dd").all_inner_texts() == [
            "Gino Rossi\n@gino rossi",
            f"Gino Rossi\nmember {someone.meetup}",
        ]
        assert partner_of(around, someone) is None
        await assert_fits(page)
        await shoot(page, f"confirm-{name}")
        await page.get_by_role("button", name="Link these accounts").click()
        await page.wait_for_url("**/link/outcome/linked")
        assert await page.locator("h1").text_content() == "Your accounts are linked"
        await assert_fits(page)
        await shoot(page, f"linked-{name}")
        await page.reload()
        assert await page.locator("h1").text_content() == "Your accounts are linked"
        assert await page.context.cookies(bot.url) == []
        assert complaints == []

    chromium.visit(work, width=width, dark=dark)
    assert partner_of(around, someone) == someone.discord
    assert around.meetup.oauth.scopes == ["basic"]
    with connect(around.redis_url) as db:
        assert db.run(UserTokens(someone.meetup).get()) is None


def test_a_person_links_their_accounts_with_keys_alone(
    around: Surroundings, offering_bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    link = offering_bot.invite(someone.discord)

    async def focused(page: Page) -> str:
        return str(await page.evaluate("document.activeElement.value || document.activeElement.innerText"))

    async def work(page: Page) -> None:
        await page.goto(link)
        await page.keyboard.press("Tab")
        assert await focused(page) == "basic"
        await page.keyboard.press("ArrowDown")
        assert await focused(page) == "rsvp"
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        await shoot(page, "keys")
        await page.keyboard.press("Tab")
        assert await focused(page) == "Continue to Meetup"
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/oauth2/authorize*")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Link these two accounts?").wait_for()
        await shoot(page, "confirm-rsvp")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.innerText") == "Link these accounts"
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/link/outcome/linked")

    chromium.visit(work)
    assert partner_of(around, someone) == someone.discord
    assert around.meetup.oauth.scopes == ["basic rsvp"]
    with connect(around.redis_url) as db:
        tokens = db.run(UserTokens(someone.meetup).get())
    assert tokens is not None
    assert around.meetup.oauth.holder(tokens.access_token.reveal()) == someone.meetup


def test_a_person_who_must_sign_in_first_reaches_another_host_of_meetups(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    """Chromium holds a form to its policy through all redirects that follow."""

    async def sign_in(request: HttpRequest) -> HTMLResponse:
        return HTMLResponse("<h1>Sign in</h1>")

    link = bot.invite(someone.discord)
    with HttpServer(Starlette(routes=[Route("/", sign_in)])) as elsewhere:
        around.meetup.faults.fail("/oauth2/authorize", 303, headers={"Location": elsewhere.url})

        async def work(page: Page) -> None:
            await page.goto(link)
            await page.get_by_role("button", name="Continue to Meetup").click()
            await page.get_by_role("heading", name="Sign in").wait_for(timeout=5000)

        chromium.visit(work)


def test_a_person_who_says_no_sees_that_and_may_start_again(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    link = bot.invite(someone.discord)

    async def work(page: Page) -> None:
        await page.goto(link)
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.get_by_role("button", name="Deny").click()
        await page.wait_for_url("**/link/*?after=denied")
        assert "You said no at Meetup" in (await page.get_by_role("status").text_content() or "")
        assert not page.url.startswith(link)
        await shoot(page, "denied")
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.get_by_role("button", name="Allow").click()
        await page.get_by_role("button", name="Link these accounts").click()
        await page.wait_for_url("**/link/outcome/linked")

    chromium.visit(work, width=390)
    assert partner_of(around, someone) == someone.discord


def test_a_person_who_is_led_through_the_link_of_another_sees_that_and_says_no(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    mallory = around.discord.guild.join("Mallory the Third of a Rather Long Name, and Longer Still")
    link = bot.invite(mallory)

    async def evil(request: HttpRequest) -> HTMLResponse:
        return HTMLResponse(f'<form method="post" action="{link}"><button>Win a prize</button></form>')

    with HttpServer(Starlette(routes=[Route("/", evil)]), host="localhost") as elsewhere:

        async def work(page: Page) -> None:
            await page.goto(link)  # the visitor has opened the page before, and has its cookie
            await page.goto(elsewhere.url)
            await page.get_by_role("button", name="Win a prize").click()
            assert await page.locator("h1").text_content() == "This form is not from this page"
            await shoot(page, "foreign")
            await page.goto(link)
            await page.get_by_role("button", name="Continue to Meetup").click()
            await page.get_by_role("button", name="Allow").click()
            assert "Mallory" in await page.locator("dd").first.inner_text()
            await assert_fits(page)
            await shoot(page, "confirm-mallory")
            await page.get_by_role("button", name="Do not link them").click()
            await page.wait_for_url("**/link/outcome/declined")
            await shoot(page, "declined")
            assert await page.context.cookies(bot.url) == []

        chromium.visit(work, width=390)
    assert partner_of(around, someone) is None


def test_trouble_at_meetup_is_shown_with_a_new_link(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    link = bot.invite(someone.discord)
    around.meetup.faults.fail(
        "/oauth2/access", 400, times=9
    )  # also if the bot refreshes its own tokens meanwhile

    async def work(page: Page) -> None:
        await page.goto(link)
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.get_by_role("button", name="Allow").click()
        await page.wait_for_url("**/link/*?after=failed")
        assert "nothing was linked" in (await page.get_by_role("status").text_content() or "")
        await shoot(page, "failed")
        around.meetup.faults.clear()
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.get_by_role("button", name="Allow").click()
        await page.get_by_role("button", name="Link these accounts").click()
        await page.wait_for_url("**/link/outcome/linked")

    chromium.visit(work)


def test_an_account_that_is_taken_is_refused_in_plain_words(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    other = around.discord.guild.join("Other")

    async def linked(page: Page) -> None:
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.get_by_role("button", name="Allow").click()
        await page.get_by_role("button", name="Link these accounts").click()
        await page.wait_for_url("**/link/outcome/*")

    async def work(page: Page) -> None:
        await page.goto(bot_links[0])
        await linked(page)
        await page.goto(bot_links[1])
        await linked(page)
        assert await page.locator("h1").text_content() == "This Meetup account is taken"
        await shoot(page, "taken")

    bot_links = [bot.invite(someone.discord), bot.invite(other)]
    chromium.visit(work)
    assert partner_of(around, someone) == someone.discord


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_link_that_has_expired_says_where_to_get_another(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person, dark: bool
) -> None:
    link = bot.invite(someone.discord)

    async def work(page: Page) -> None:
        await page.goto(link)
        with connect(around.redis_url) as db:
            db.run(MeetupLinking(link.rpartition("/")[2]).delete())  # ten minutes pass
        await page.get_by_role("button", name="Continue to Meetup").click()
        assert await page.locator("h1").text_content() == "This link does not work any more"
        assert await page.locator(".remedy").text_content() == (
            "Go back to Discord and use /link for a new one."
        )
        await assert_fits(page)
        await shoot(page, f"expired{'-dark' if dark else ''}")

    chromium.visit(work, width=390, dark=dark)


def test_a_return_to_another_browser_links_nothing(
    around: Surroundings, bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    link = bot.invite(someone.discord)

    async def begin(page: Page) -> str:
        await page.goto(link)
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.wait_for_url("**/oauth2/authorize*")
        return page.url

    async def elsewhere(page: Page) -> None:
        await page.goto(consent)
        await page.get_by_role("button", name="Allow").click()
        await page.wait_for_url("**/link/redirect*")
        assert await page.locator("h1").text_content() == "This page is not for this browser"
        await shoot(page, "stray")
        await page.goto(link)  # which was not used up by that
        await page.get_by_role("button", name="Continue to Meetup").click()

    consent = chromium.visit(begin)
    chromium.visit(elsewhere)
    assert partner_of(around, someone) is None


def test_text_contrasts_with_its_background_in_light_and_dark(
    offering_bot: RunningBot, chromium: Chromium, someone: Person
) -> None:
    link = offering_bot.invite(someone.discord)

    async def check(page: Page, *pairs: tuple[str, str]) -> None:
        for selector, ground in pairs:
            text = await _color(page, selector, "color")
            behind = await _color(page, ground, "background-color")
            assert _contrast(text, behind) >= 4.5, selector

    async def work(page: Page) -> None:
        await page.goto(link)
        await check(page, ("p", "main"), (".aside", "main"), ("button", "button"), ("legend", "main"))
        await page.get_by_role("button", name="Continue to Meetup").click()
        await page.get_by_role("button", name="Allow").click()
        await page.get_by_role("heading", name="Link these two accounts?").wait_for()
        await check(page, (".handle", "main"), (".notice", ".notice"), ("button.quiet", "main"))
        await page.goto(f"{offering_bot.url}/link/outcome/declined")
        await check(page, (".sign", "main"), (".remedy", "main"), ("code", "code"))

    for dark in (False, True):
        chromium.visit(work, dark=dark)


async def _color(page: Page, selector: str, name: str) -> tuple[int, ...]:
    script = "([s, n]) => getComputedStyle(document.querySelector(s)).getPropertyValue(n)"
    text = str(await page.evaluate(script, [selector, name]))
    return tuple(int(part) for part in text.partition("(")[2].rstrip(")").split(",")[:3])


def _contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Return the contrast as WCAG defines it; 4.5 is enough for text."""

    def luminance(color: tuple[int, ...]) -> float:
        parts = [part / 255 for part in color]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dim, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dim + 0.05)
