"""Signing in and out, sessions, proxies, and requests that cost something before anybody is signed in."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from browsing import Chromium
from exploring import Explored, exploring, exploring_sample
from keywright import Secret, aconnect
from keywright.errors import UsageError
from keywright.explorer import ExplorerSettings, create_app
from keywright.testing import ManualClock
from keywright_meetup import schema as meetup

TOKEN = "a-long-random-token-for-tests"
PUBLIC = "https://keys.example.org"
HALF_A_FORM = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf"


def signed_in(explored: Explored, **headers: str) -> tuple[httpx.Response, str]:
    """Sign in as a browser does. Return the answer and the cookie, as a browser sends it."""
    page = explored.get("/login", **headers)
    cookie = page.headers.get("Set-Cookie", "").partition(";")[0]
    mark = re.search(r'name="mark" value="([0-9a-f]+)"', page.text)
    form = {"mark": mark[1] if mark else "", "token": TOKEN}
    answer = explored.post("/login", form, Cookie=cookie, **headers)
    return answer, answer.headers.get("Set-Cookie", cookie).partition(";")[0]


@pytest.mark.parametrize("path", ["/", "/login", "/static/icon.svg", "/nowhere"])
def test_a_long_cookie_is_refused_before_anything_else_is_done(redis_url: str, path: str) -> None:
    """40,000 backslashes took http.cookies four seconds, in which nobody else was answered."""
    with exploring(redis_url, [meetup.meetup]) as explored:
        cookie = f"keywright_explorer_{explored.port}=" + '"' + "\\" * 40_000 + '"'
        answer = explored.get(path, Cookie=cookie, Host="evil.example")
    assert answer.status_code == 431
    assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("host", ["keys.example.org", "127.0.0.1:8600"], ids=["kept", "replaced"])
def test_behind_a_proxy_with_tls_the_public_address_decides(redis_url: str, host: str) -> None:
    """The proxy passes the Host header on, or puts the address of the explorer there."""
    with exploring(redis_url, [meetup.meetup], token=Secret(TOKEN), public_url=PUBLIC) as explored:
        answer, cookie = signed_in(explored, Host=host, Origin=PUBLIC)
        opened = explored.get("/", Host=host, Cookie=cookie).status_code
        foreign = [
            signed_in(explored, Host=host, Origin=origin)[0].status_code
            for origin in ("https://evil.example", "http://keys.example.org", f"http://{host}", "null")
        ]
        elsewhere = explored.get("/login", Host="evil.example").status_code
    assert answer.status_code == 303
    assert re.fullmatch(
        rf"__Host-keywright_explorer_{explored.port}=[\w.-]+; Path=/; HttpOnly; SameSite=Strict; Secure",
        answer.headers["Set-Cookie"],
    )
    assert (opened, foreign, elsewhere) == (200, [403] * 4, 421)


@pytest.mark.parametrize(
    ("public_url", "token", "problem"),
    [
        (PUBLIC, None, "without a token"),
        ("keys.example.org", TOKEN, "a scheme and a host"),
        ("https://example.org/keys", TOKEN, "a scheme and a host"),
    ],
)
def test_a_public_address_needs_a_token_and_has_no_path(
    public_url: str, token: str | None, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        ExplorerSettings(public_url=public_url, token=Secret(token) if token else None).check()


@pytest.mark.anyio
async def test_without_a_token_other_machines_are_refused_whatever_they_call_it(redis_url: str) -> None:
    """The program that has the application may listen anywhere."""
    async with aconnect(redis_url) as db:
        app = create_app(db, [meetup.meetup], ExplorerSettings(write=True))
        answers = {}
        for peer in ("203.0.113.9", "2001:db8::9", "127.0.0.1", "::1"):
            transport = httpx.ASGITransport(app, client=(peer, 4444))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                answers[peer] = (await client.get("/login")).status_code
    assert list(answers.values()) == [403, 403, 303, 303]


@pytest.mark.parametrize("token", ["a" * 16, "abcabcabcabcabcabc", " " * 16 + "x"])
def test_a_token_of_few_characters_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="repeats fewer than 6 characters"):
        ExplorerSettings(host="0.0.0.0", token=Secret(token)).check()


def test_while_many_guesses_wait_others_are_not_looked_at(redis_url: str) -> None:
    async def guesses(explored: Explored, number: int) -> tuple[list[httpx.Response], httpx.Response]:
        limits = httpx.Limits(max_connections=number)
        async with httpx.AsyncClient(base_url=explored.base, timeout=60, limits=limits) as client:
            asked = (client.get("/", headers={"Authorization": f"Bearer {each}"}) for each in range(number))
            answers = await asyncio.gather(*asked)
            return answers, await client.get("/", headers={"Authorization": f"Bearer {TOKEN}"})

    with exploring(redis_url, [meetup.meetup], token=Secret(TOKEN)) as explored:
        answers, right = asyncio.run(guesses(explored, 60))
    found = [answer.status_code for answer in answers]
    assert set(found) == {401, 429}
    assert {answer.headers.get("Retry-After") for answer in answers} == {None, "5"}
    assert right.status_code == 200


def test_a_session_ends_after_twelve_hours(redis_url: str) -> None:
    clock = ManualClock(datetime.now(UTC))
    with exploring(redis_url, [meetup.meetup], token=Secret(TOKEN)) as explored:
        explored.explorer.access.clock = clock
        _, cookie = signed_in(explored)
        clock.advance(timedelta(hours=11))
        before = explored.get("/", Cookie=cookie).status_code
        clock.advance(timedelta(hours=2))
        after = explored.get("/", Cookie=cookie)
    assert (before, after.status_code) == (200, 401)
    assert "Set-Cookie" in after.headers


def test_signing_out_ends_the_session_for_every_copy_of_its_cookie(
    chromium: Chromium, redis_url: str
) -> None:
    async def visit(page: Any) -> str:
        await page.goto(explored.base + "/login")
        await page.fill("input[name=token]", TOKEN)
        await page.click("button:text-is('Sign in')")
        (cookie,) = await page.context.cookies()
        assert explored.get("/", Cookie=f"{cookie['name']}={cookie['value']}").status_code == 200
        await page.click("button:text-is('Sign out')")
        assert await page.inner_text("h1") == "Sign in"
        await page.goto(explored.base + "/audit")
        assert await page.inner_text("h1") == "Sign in"
        return f"{cookie['name']}={cookie['value']}"

    with exploring_sample(redis_url, "meetup", token=Secret(TOKEN)) as explored:
        cookie = chromium.visit(visit)
        assert explored.get("/", Cookie=cookie).status_code == 401


def test_a_page_of_another_site_cannot_sign_anybody_out(redis_url: str) -> None:
    with exploring(redis_url, [meetup.meetup], token=Secret(TOKEN)) as explored:
        _, cookie = signed_in(explored)
        assert explored.post("/logout", {}, Cookie=cookie).status_code == 403
        assert explored.get("/", Cookie=cookie).status_code == 200


def test_without_a_token_there_is_nothing_to_sign_out_of(redis_url: str) -> None:
    with exploring(redis_url, [meetup.meetup]) as explored:
        assert "Sign out" not in explored.get("/").text


def test_a_form_that_ends_early_does_no_harm(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def leave(explored: Explored) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", explored.port)
        writer.write(HALF_A_FORM)
        writer.close()
        await writer.wait_closed()

    with exploring(redis_url, [meetup.meetup], token=Secret(TOKEN)) as explored:
        asyncio.run(leave(explored))
        assert explored.get("/login").status_code == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    ("asked", "followed"),
    [
        ("/template/meetup/MeetupEvent?event=e1", "/template/meetup/MeetupEvent?event=e1"),
        ("/key?name=%FF%2Fa", "/key?name=%FF%2Fa"),
        ("//example.org/", "/"),
        ("/\\example.org", "/"),
        ("https://example.org", "/"),
        ("/login?next=/login", "/"),
        ("/a\r\nSet-Cookie: x=1", "/"),
    ],
)
def test_signing_in_leads_to_the_page_that_was_asked_for_and_to_no_other_host(
    redis_url: str, asked: str, followed: str
) -> None:
    with exploring_sample(redis_url, "meetup", token=Secret(TOKEN)) as explored, httpx.Client() as client:
        form = client.get(f"{explored.base}/login").text
        mark = re.findall(r'name="mark" value="([0-9a-f]+)"', form)[0]
        answer = client.post(
            f"{explored.base}/login",
            data={"mark": mark, "token": TOKEN, "next": asked},
            follow_redirects=False,
        )
    assert (answer.status_code, answer.headers["location"]) == (303, followed)
