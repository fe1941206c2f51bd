"""The linking pages over HTTP: cookies, headers, and every way in which a return from Meetup can be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from keywright import connect
from keywright.testing import Raw
from keywright_meetup import account_links
from keywright_meetup.schema import Csrf, DiscordUserOfMeetupUser, MeetupLinking, UserTokens
from keywright_meetup.service.meetup_api import MeetupApi
from keywright_meetup.service.oauth import Flow, OAuthClient
from keywright_meetup.service.pages import LinkingPages

from ..meetup_bots import Person, RunningBot, Surroundings


@pytest.fixture
def bot(around: Surroundings) -> Iterator[RunningBot]:
    with RunningBot(around, MEETUP_OFFER_RSVP="true") as running:
        yield running


@pytest.fixture
def someone(around: Surroundings) -> Person:
    person = around.person("Gino", linked=False)
    around.meetup.oauth.signed_in = person.meetup
    return person


@pytest.fixture
def browser() -> Iterator[httpx.Client]:
    with httpx.Client() as client:
        yield client


def leave(browser: httpx.Client, link: str, scope: str = "basic") -> str:
    """Press the button. Return the address of the consent page."""
    answer = browser.post(link, data={"scope": scope})
    assert answer.status_code == 303
    return answer.headers["Location"]


def allow(browser: httpx.Client, consent: str) -> str:
    """Consent. Return the address that Meetup sends the browser back to."""
    return browser.post(consent, data={"answer": "allow"}).headers["Location"]


def partner_of(around: Surroundings, person: Person) -> int | None:
    with connect(around.redis_url) as db:
        return db.run(DiscordUserOfMeetupUser(person.meetup).get())


def test_the_cookie_is_for_this_flow_only_and_out_of_reach_of_scripts(
    bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    answer = browser.post(bot.invite(someone.discord), data={})
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("csrf_user_id=")
    assert {"HttpOnly", "SameSite=lax", "Max-Age=3600", "Path=/"} <= {
        part.strip() for part in cookie.split(";")
    }
    assert "Secure" not in cookie


@pytest.mark.anyio
async def test_over_https_the_cookie_is_secure_and_bound_to_the_host(
    around: Surroundings, someone: Person
) -> None:
    url = "https://bot.example"
    async with (
        around.opened() as opened,
        OAuthClient(around.provider(), f"{url}/link/redirect") as oauth,
        MeetupApi(around.meetup.api_url) as meetup,
    ):
        pages = LinkingPages(opened.db, oauth, meetup, public_url=url, name_of=opened.discord.name_of)
        linking_id = await opened.db.run(account_links.begin_linking(someone.discord))
        transport = httpx.ASGITransport(pages.application())
        async with httpx.AsyncClient(transport=transport, base_url=url) as browser:
            answer = await browser.post(f"/link/{linking_id}")
    assert answer.headers["Set-Cookie"].startswith("__Host-csrf_user_id=")
    assert "; Secure" in answer.headers["Set-Cookie"]
    assert "Strict-Transport-Security" in answer.headers


def test_every_page_forbids_scripts_frames_and_caches(bot: RunningBot, browser: httpx.Client) -> None:
    for path in ("/link/nothing", "/link/outcome/linked", "/link/redirect", "/nowhere"):
        headers = browser.get(f"{bot.url}{path}").headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_pages_name_no_other_server_and_hold_no_script(
    bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    for page in (bot.invite(someone.discord), f"{bot.url}/link/outcome/meetup-taken"):
        text = browser.get(page).text
        assert "http" not in text.replace("http-equiv", "")
        assert "<script" not in text
        assert "style=" not in text


def test_the_request_to_meetup_has_a_state_and_a_challenge_of_its_own(
    bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    link = bot.invite(someone.discord)
    asked = [parse_qs(urlsplit(leave(browser, link)).query) for _ in range(2)]
    for one in asked:
        assert one["code_challenge_method"] == ["S256"]
        assert one["response_type"] == ["code"]
        assert one["redirect_uri"] == [f"{bot.url}/link/redirect"]
    assert asked[0]["state"] != asked[1]["state"]
    assert asked[0]["code_challenge"] != asked[1]["code_challenge"]


def test_opening_a_link_uses_nothing_up_and_does_not_prolong_it(
    bot: RunningBot, browser: httpx.Client, someone: Person, raw: Raw
) -> None:
    link = bot.invite(someone.discord)
    key = f"meetup_linking:{link.rpartition('/')[2]}:discord_user"
    raw("PEXPIRE", key, 5000)
    for _ in range(3):
        assert browser.get(link).status_code == 200
    assert 0 < raw("PTTL", key) <= 5000


@pytest.mark.parametrize(
    "lines",
    [
        ["theme=dark; csrf_user_id={}; lang=de"],
        ["theme=dark", "csrf_user_id={}"],
        ["a; csrf_user_id={};; =b"],
    ],
    ids=["one line", "several lines", "untidy"],
)
def test_our_cookie_is_found_among_others(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person, lines: list[str]
) -> None:
    """The original bot's check failed on this and was switched off: docs/resolutions.md#mistake-2."""
    consent = leave(browser, bot.invite(someone.discord))
    ours = browser.cookies["csrf_user_id"]
    back = allow(browser, consent)
    with httpx.Client() as other:
        answer = other.get(back, headers=[("Cookie", line.format(ours)) for line in lines])
    assert answer.headers["Location"] == "/link/outcome/linked"
    assert partner_of(around, someone) == someone.discord


def test_a_return_works_once(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    back = allow(browser, leave(browser, bot.invite(someone.discord)))
    cookies = dict(browser.cookies)
    assert browser.get(back).headers["Location"] == "/link/outcome/linked"
    with httpx.Client(cookies=cookies) as again:
        assert again.get(back).status_code == 400
    with connect(around.redis_url) as db:
        assert db.run(Csrf(cookies["csrf_user_id"]).get()) is None


def test_a_state_that_was_changed_is_refused(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    """It cannot be turned to another linking id, nor to other scopes."""
    victim = bot.invite(around.discord.guild.join("Victim")).rpartition("/")[2]
    for change in ("linking", "scope", "nonsense"):
        back = urlsplit(allow(browser, leave(browser, bot.invite(someone.discord))))
        asked = {name: values[0] for name, values in parse_qs(back.query).items()}
        flow = Flow.of(asked["state"])
        assert flow is not None
        changed = {
            "linking": flow._replace(linking=victim).state.reveal(),
            "scope": flow._replace(rsvp=True).state.reveal(),
            "nonsense": "…",
        }
        asked["state"] = changed[change]
        answer = browser.get(f"{bot.url}/link/redirect?{urlencode(asked)}")
        assert answer.status_code == 400
        assert "not for this browser" in answer.text
    assert partner_of(around, someone) is None


def test_a_stolen_code_is_worth_nothing_in_another_flow(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    """The verifier belongs to the state, so Meetup refuses the code of another."""
    stolen = parse_qs(urlsplit(allow(browser, leave(browser, bot.invite(someone.discord)))).query)["code"][0]
    thief = around.discord.guild.join("Thief")
    state = parse_qs(urlsplit(leave(browser, bot.invite(thief))).query)["state"][0]
    answer = browser.get(f"{bot.url}/link/redirect?{urlencode({'code': stolen, 'state': state})}")
    assert "after=failed" in answer.headers["Location"]
    assert partner_of(around, someone) is None


def test_a_linking_id_that_expired_at_meetup_is_reported_and_links_nothing(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    link = bot.invite(someone.discord)
    back = allow(browser, leave(browser, link))
    with connect(around.redis_url) as db:
        db.run(MeetupLinking(link.rpartition("/")[2]).delete())
    answer = browser.get(back)
    assert answer.status_code == 410
    assert "ask the bot for a new link" in answer.text
    assert partner_of(around, someone) is None


@pytest.mark.parametrize("fault", ["/oauth2/access", "/gql-ext"])
def test_after_a_failure_behind_the_consent_there_is_a_new_link(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person, fault: str
) -> None:
    link = bot.invite(someone.discord)
    back = allow(browser, leave(browser, link))
    around.meetup.faults.fail(fault, 400)
    path = browser.get(back).headers["Location"]
    assert path.endswith("?after=failed")
    assert link.rpartition("/")[2] not in path
    again = browser.get(f"{bot.url}{path}")
    assert "Meetup did not confirm who you are" in again.text
    back = allow(browser, leave(browser, f"{bot.url}{path.partition('?')[0]}"))
    assert browser.get(back).headers["Location"] == "/link/outcome/linked"


def test_tokens_are_kept_only_with_the_link_and_only_for_rsvps(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    other = around.discord.guild.join("Other")
    links = [bot.invite(someone.discord), bot.invite(other)]
    outcomes = [
        browser.get(allow(browser, leave(browser, link, "rsvp"))).headers["Location"] for link in links
    ]
    assert outcomes == ["/link/outcome/linked", "/link/outcome/meetup-taken"]
    with connect(around.redis_url) as db:
        kept = db.run(UserTokens(someone.meetup).get())
        assert kept is not None
        db.run(account_links.unlink(someone.meetup))
        assert db.run(UserTokens(someone.meetup).get()) is None
        # Somebody else links the Discord user while they are at Meetup: no tokens are left behind.
        back = allow(browser, leave(browser, bot.invite(someone.discord), "rsvp"))
        db.run(account_links.link(77, someone.discord))
        assert browser.get(back).headers["Location"] == "/link/outcome/discord-taken"
        assert db.run(UserTokens(someone.meetup).get()) is None


def test_trouble_with_discord_does_not_keep_anybody_from_linking(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    link = bot.invite(someone.discord)
    around.discord.faults.fail("/users/", 403)
    page = browser.get(link)
    assert page.status_code == 200
    assert "Discord account" not in page.text


def test_a_name_is_shown_as_text(around: Surroundings, bot: RunningBot, browser: httpx.Client) -> None:
    user = around.discord.guild.join("<script>alert(1)</script>")
    assert "<script" not in browser.get(bot.invite(user)).text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/link/" + "x" * 22, 410),
        ("GET", "/link/with:colon", 410),
        ("POST", "/link/unknown", 410),
        ("GET", "/link/redirect?state=a.b.c&code=d", 400),
        ("GET", "/link/outcome/other", 404),
        ("GET", "/", 404),
        ("DELETE", "/link/redirect", 405),
        ("GET", "/static/../pages.py", 404),
    ],
)
def test_a_missing_page_is_reported_in_plain_words(
    bot: RunningBot, browser: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = browser.request(method, f"{bot.url}{path}")
    assert answer.status_code == status
    assert '<p class="remedy">' in answer.text


def test_a_form_that_is_too_long_is_refused(bot: RunningBot, browser: httpx.Client, someone: Person) -> None:
    assert browser.post(bot.invite(someone.discord), content=b"x" * 5000).status_code == 413


def test_a_discord_that_does_not_answer_does_not_hold_a_page_up(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    link = bot.invite(someone.discord)
    around.discord.faults.fail("/users/", None, times=9)
    page = browser.get(link)  # a browser with patience for five seconds
    assert page.status_code == 200
    assert "Discord account" not in page.text
