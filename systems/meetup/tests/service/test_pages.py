"""The linking pages over HTTP: cookies, headers, and every way in which a return from Meetup can be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from keywright import connect
from keywright.testing import Raw
from keywright_meetup import account_links
from keywright_meetup.schema import Csrf, DiscordUserOfMeetupUser, MeetupLinking, UserTokens
from keywright_meetup.service.authorization import OrganizerAuthorization
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


def fields(page: httpx.Response) -> dict[str, str]:
    """Return the hidden fields of the form of a page."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', page.text))


def leave(browser: httpx.Client, link: str, scope: str = "basic") -> str:
    """Open the page and press the button. Return the address of the consent page."""
    answer = browser.post(link, data=fields(browser.get(link)) | {"scope": scope})
    assert answer.status_code == 303
    return answer.headers["Location"]


def allow(browser: httpx.Client, consent: str) -> str:
    """Consent. Return the address that Meetup sends the browser back to."""
    return browser.post(consent, data={"answer": "allow"}).headers["Location"]


def confirm(browser: httpx.Client, back: str, answer: str = "yes") -> str:
    """Return from Meetup, and answer on the last page. Return the path of the outcome."""
    page = browser.get(back)
    assert page.status_code == 200
    (action,) = re.findall(r'action="([^"]+)"', page.text)
    done = browser.post(httpx.URL(back).join(action), data=fields(page) | {"answer": answer})
    return done.headers["Location"]


def partner_of(around: Surroundings, person: Person) -> int | None:
    with connect(around.redis_url) as db:
        return db.run(DiscordUserOfMeetupUser(person.meetup).get())


def test_the_cookie_is_for_this_flow_only_and_out_of_reach_of_scripts(
    bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    answer = browser.get(bot.invite(someone.discord))
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
        pages = LinkingPages(
            opened.db,
            oauth,
            meetup,
            public_url=url,
            find_user=opened.discord.find_user,
            organizer=OrganizerAuthorization(opened.db, oauth, meetup, opened.around.clock),
        )
        linking_id = await opened.db.run(account_links.begin_linking(someone.discord))
        transport = httpx.ASGITransport(pages.application())
        async with httpx.AsyncClient(transport=transport, base_url=url) as browser:
            answer = await browser.get(f"/link/{linking_id}")
            form = fields(answer)
            left = [
                await browser.post(f"/link/{linking_id}", data=form, headers={"Origin": origin})
                for origin in (url, "https://evil.example", "http://bot.example")
            ]
    assert [each.status_code for each in left] == [303, 403, 403]
    assert answer.headers["Set-Cookie"].startswith("__Host-csrf_user_id=")
    assert "; Secure" in answer.headers["Set-Cookie"]
    assert "Strict-Transport-Security" in answer.headers


def test_every_page_forbids_scripts_frames_and_caches(bot: RunningBot, browser: httpx.Client) -> None:
    for path in ("/link/nothing", "/link/outcome/linked", "/link/redirect", "/nowhere"):
        headers = browser.get(f"{bot.url}{path}").headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"
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
    with httpx.Client(headers=[("Cookie", line.format(ours)) for line in lines]) as other:
        assert confirm(other, back) == "/link/outcome/linked"
    assert partner_of(around, someone) == someone.discord


def test_a_return_works_once(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    link = bot.invite(someone.discord)
    back = allow(browser, leave(browser, link))
    cookies = dict(browser.cookies)
    assert confirm(browser, back) == "/link/outcome/linked"
    with httpx.Client(cookies=cookies) as again:
        assert again.get(back).status_code == 400
    with connect(around.redis_url) as db:
        assert db.run(Csrf(link.rpartition("/")[2]).get()) is None


def test_a_state_that_was_changed_is_refused(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    """It cannot be turned to another linking id, nor to other scopes."""
    victim = bot.invite(around.discord.guild.join("Victim")).rpartition("/")[2]
    for change in ("linking", "scope", "organizer", "nonsense"):
        back = urlsplit(allow(browser, leave(browser, bot.invite(someone.discord))))
        asked = {name: values[0] for name, values in parse_qs(back.query).items()}
        flow = Flow.of(asked["state"])
        assert flow is not None
        changed = {
            "linking": flow._replace(linking=victim).state.reveal(),
            "scope": flow._replace(purpose="rsvp").state.reveal(),
            "organizer": flow._replace(purpose="organizer").state.reveal(),
            "nonsense": "…",
        }
        asked["state"] = changed[change]
        answer = browser.get(f"{bot.url}/link/redirect?{urlencode(asked)}")
        assert answer.status_code == 400
        refusal = "was not authorized" if change == "organizer" else "not for this browser"
        assert refusal in answer.text
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
    assert "use <code>/link</code> for a new one" in answer.text
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
    assert confirm(browser, back) == "/link/outcome/linked"


def test_tokens_are_kept_only_with_the_link_and_only_for_rsvps(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    other = around.discord.guild.join("Other")
    links = [bot.invite(someone.discord), bot.invite(other)]
    outcomes = [confirm(browser, allow(browser, leave(browser, link, "rsvp"))) for link in links]
    assert outcomes == ["/link/outcome/linked", "/link/outcome/meetup-taken"]
    with connect(around.redis_url) as db:
        kept = db.run(UserTokens(someone.meetup).get())
        assert kept is not None
        db.run(account_links.unlink(someone.meetup))
        assert db.run(UserTokens(someone.meetup).get()) is None
        # Somebody else links the Discord user while they are at Meetup: no tokens are left behind.
        back = allow(browser, leave(browser, bot.invite(someone.discord), "rsvp"))
        db.run(account_links.link(77, someone.discord))
        assert confirm(browser, back) == "/link/outcome/discord-taken"
        assert db.run(UserTokens(someone.meetup).get()) is None


@pytest.mark.parametrize("status", [403, None], ids=["refuses", "does not answer"])
def test_while_discord_cannot_name_the_account_nothing_is_offered(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person, status: int | None
) -> None:
    """A browser has patience for five seconds; the page says so before that, and the link stays."""
    link = bot.invite(someone.discord)
    around.discord.faults.fail("/users/", status, times=9)
    page = browser.get(link)
    assert page.status_code == 503
    assert "We cannot see who you are on Discord" in page.text
    assert "<form" not in page.text
    around.discord.faults.clear()
    assert confirm(browser, allow(browser, leave(browser, link))) == "/link/outcome/linked"


def test_while_discord_cannot_name_the_account_nothing_is_linked_after_the_consent(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    back = allow(browser, leave(browser, bot.invite(someone.discord), "rsvp"))
    around.discord.faults.fail("/users/", 403)
    path = browser.get(back).headers["Location"]
    assert path.endswith("?after=unnamed")
    assert "Discord did not say who you are" in browser.get(f"{bot.url}{path}").text
    assert partner_of(around, someone) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
    ids=["cross-site", "no origin", "same-site", "no fetch metadata", "null", "an old browser"],
)
def test_a_page_of_another_site_cannot_send_its_visitors_through_its_own_link(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person, headers: dict[str, str]
) -> None:
    """Mallory's page posts Mallory's link: its visitor would consent, and be linked to Mallory."""
    mallory = around.discord.guild.join("Mallory")
    link = bot.invite(mallory)
    with httpx.Client() as mallorys:
        mallorys_form = fields(mallorys.get(link))
    browser.get(bot.invite(someone.discord))  # the visitor has a cookie of their own
    for form in ({}, mallorys_form):
        for path in (link, f"{link}/confirm"):
            answer = browser.post(path, data=form | {"scope": "rsvp", "answer": "yes"}, headers=headers)
            assert answer.status_code == 403
            assert "Nothing was changed" in answer.text
    assert partner_of(around, someone) is None


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_form_with_the_right_mark_is_refused_from_another_site(
    bot: RunningBot, browser: httpx.Client, someone: Person, headers: dict[str, str]
) -> None:
    link = bot.invite(someone.discord)
    form = fields(browser.get(link))
    assert browser.post(link, data=form, headers=headers).status_code == 403
    ours = {"Origin": bot.url, "Sec-Fetch-Site": "same-origin"}
    assert browser.post(link, data=form, headers=ours).status_code == 303


def test_the_last_page_names_both_accounts_and_stores_nothing_before_it_is_confirmed(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, raw: Raw
) -> None:
    """A person who was led through the link of somebody else sees that here, and can say no."""
    mallory, victor = around.discord.guild.join("Mallory"), around.meetup.world.join("Victor")
    around.meetup.oauth.signed_in = victor
    back = allow(browser, leave(browser, bot.invite(mallory), "rsvp"))
    page = browser.get(back)
    # Each name in an element of its own, which keeps characters that turn the direction of text inside.
    named = re.findall(r"<bdi[^>]*>([^<]+)", page.text)
    assert named == ["Mallory", "@mallory", "Victor", f"member {victor}"]
    people = ("meetup_user*", "discord_user*")
    assert [name for pattern in people for name in raw("KEYS", pattern)] == []
    (action,) = re.findall(r'action="([^"]+)"', page.text)
    declined = browser.post(f"{bot.url}{action}", data=fields(page) | {"answer": "no"})
    assert declined.headers["Location"] == "/link/outcome/declined"
    confirmed = browser.post(f"{bot.url}{action}", data=fields(page) | {"answer": "yes"})
    assert confirmed.status_code == 403, "the cookie is gone"
    assert [name for pattern in people for name in raw("KEYS", pattern)] == []


def test_a_consent_counts_for_its_browser_and_its_link_only(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    other = bot.invite(around.discord.guild.join("Other"))
    page = browser.get(allow(browser, leave(browser, bot.invite(someone.discord))))
    consent = fields(page)["consent"]
    with httpx.Client() as elsewhere:
        for client in (elsewhere, browser):
            form = fields(client.get(other)) | {"answer": "yes"}
            for given in (consent, consent[:-4] + "AAAA", "", "…"):
                answer = client.post(f"{other}/confirm", data=form | {"consent": given})
                assert answer.status_code == 400
    assert partner_of(around, someone) is None


def test_a_button_that_is_pressed_twice_links_once(
    around: Surroundings, bot: RunningBot, browser: httpx.Client, someone: Person
) -> None:
    page = browser.get(allow(browser, leave(browser, bot.invite(someone.discord))))
    cookies = dict(browser.cookies)
    (action,) = re.findall(r'action="([^"]+)"', page.text)
    for _ in range(2):
        with httpx.Client(cookies=cookies) as client:
            answer = client.post(f"{bot.url}{action}", data=fields(page) | {"answer": "yes"})
        assert answer.headers["Location"] == "/link/outcome/linked"
    assert partner_of(around, someone) == someone.discord


def test_a_link_has_one_csrf_key_however_often_it_is_used(
    bot: RunningBot, browser: httpx.Client, someone: Person, raw: Raw
) -> None:
    link = bot.invite(someone.discord)
    for _ in range(5):
        browser.cookies.clear()
        leave(browser, link)
    assert len(raw("KEYS", "csrf:*")) == 1


@pytest.mark.parametrize("path", ["/link/redirect?state=a.basic.b", "/link/abc", "/static/link.css"])
def test_a_long_cookie_is_refused_before_anything_else_is_done(
    bot: RunningBot, browser: httpx.Client, path: str
) -> None:
    """40,000 backslashes took http.cookies five seconds, in which nobody else was answered."""
    cookie = 'csrf_user_id="' + "\\" * 40_000 + '"'
    assert browser.get(f"{bot.url}{path}", headers={"Cookie": cookie}).status_code == 431


def test_a_name_is_shown_as_text(around: Surroundings, bot: RunningBot, browser: httpx.Client) -> None:
    user = around.discord.guild.join("<script>alert(1)</script>")
    assert "<script" not in browser.get(bot.invite(user)).text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/link/" + "x" * 22, 410),
        ("GET", "/link/with:colon", 410),
        ("POST", "/link/unknown", 403),
        ("POST", "/link/unknown/confirm", 403),
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
    assert browser.post(bot.invite(someone.discord), content=b"x" * 20_000).status_code == 413
