"""Checks of requests: hosts, origins, cookies, and tokens whose guesses are slow."""

from __future__ import annotations

import asyncio

import pytest
from starlette.datastructures import Headers

from keywright import Secret
from keywright.errors import UsageError
from keywright.tools.http import (
    LOOPBACK_HOSTS,
    SharedToken,
    TokenVerdict,
    check_token,
    cookie_of,
    is_own_form,
    origin_of,
    refusal_of,
)

pytestmark = pytest.mark.anyio

TOKEN = "a-long-random-token"


def headers(*pairs: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.lower().encode(), value.encode("latin-1")) for name, value in pairs])


@pytest.mark.parametrize(
    "lines",
    [
        ["session=abc.1-_"],
        ["theme=dark; session=abc.1-_; lang=de"],
        ["theme=dark", "session=abc.1-_"],
        ["a; session=abc.1-_;; =b"],
        ["x-session=other;session=abc.1-_ "],
    ],
)
def test_a_cookie_is_found_among_others(lines: list[str]) -> None:
    assert cookie_of(headers(*(("Cookie", line) for line in lines)), "session") == "abc.1-_"


@pytest.mark.parametrize(
    "line", ["", "session=", 'session="abc"', "xsession=abc", "session=a\\b", "session=\xe9"]
)
def test_another_cookie_is_not_taken_for_it(line: str) -> None:
    assert cookie_of(headers(("Cookie", line)), "session") is None


def test_cookies_that_are_long_are_refused_whichever_lines_they_come_in() -> None:
    lines = [("Cookie", "a=" + "\\" * 4000)] * 3
    refusal = refusal_of(headers(*lines), None)
    assert refusal is not None
    assert refusal.status_code == 431
    assert refusal_of(headers(*lines[:2]), None) is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8600", "127.0.0.1:1", "[::1]", "[::1]:8600"])
def test_loopback_has_several_names(host: str) -> None:
    assert refusal_of(headers(("Host", host)), LOOPBACK_HOSTS) is None


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "localhost.evil.example", "localhost:x@evil.example", "127.0.0.1:1:2", "[::1]x"],
)
def test_a_request_to_another_host_is_refused(host: str) -> None:
    refusal = refusal_of(headers(("Host", host)), LOOPBACK_HOSTS)
    assert refusal is not None
    assert refusal.status_code == 421


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Keys.Example.org/", "https://keys.example.org"),
        ("https://keys.example.org:443", "https://keys.example.org"),
        ("http://keys.example.org:8080", "http://keys.example.org:8080"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "keys.example.org",
        "ftp://a",
        "https://",
        "https://a/path",
        "https://a?b",
        "https://a:x",
        "https://[a",
    ],
)
def test_a_url_that_is_not_an_origin_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"https://keys\.example\.org"):
        origin_of(url)


def test_a_password_in_a_public_address_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError) as refused:
        origin_of("https://me:hunter2@keys.example.org")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("sent", "ours"),
    [
        ([], True),
        ([("Origin", "https://a.example")], True),
        ([("Origin", "https://a.example"), ("Sec-Fetch-Site", "same-origin")], True),
        ([("Sec-Fetch-Site", "none")], True),
        ([("Sec-Fetch-Site", "cross-site")], False),
        ([("Sec-Fetch-Site", "same-site")], False),
        ([("Origin", "https://evil.example")], False),
        ([("Origin", "http://a.example")], False),
        ([("Origin", "null")], False),
    ],
)
def test_a_form_of_another_origin_is_not_ours(sent: list[tuple[str, str]], ours: bool) -> None:
    assert is_own_form(headers(("Host", "127.0.0.1:8600"), *sent), "https://a.example") is ours


def test_without_an_origin_a_form_belongs_to_the_host_it_is_sent_to() -> None:
    for origin, ours in (("http://a:1", True), ("http://a:2", False), ("null", False)):
        assert is_own_form(headers(("Host", "a:1"), ("Origin", origin)), None) is ours


@pytest.mark.parametrize("token", ["", "short", "fifteen-letters", "a" * 16, "ab" * 40, " " * 16 + "x"])
def test_a_token_that_could_be_guessed_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="random"):
        check_token(Secret(token))
    check_token(Secret("0123456789abcdef"))


class Pause:
    """A pause that lasts until it is released. `most` is how many there were at once."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.begun = asyncio.Event()
        self.most = self._under_way = self.count = 0

    async def __call__(self, seconds: float) -> None:
        self.count += 1
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        self.begun.set()
        await self.released.wait()
        await asyncio.sleep(0)
        self._under_way -= 1


async def test_wrong_tokens_are_answered_one_after_another() -> None:
    pause = Pause()
    shared = SharedToken(Secret(TOKEN), sleep=pause)
    guesses = [asyncio.create_task(shared.check(b"guess")) for _ in range(8)]
    await pause.begun.wait()
    pause.released.set()
    assert set(await asyncio.gather(*guesses)) == {TokenVerdict.WRONG}
    assert (pause.count, pause.most) == (8, 1)


async def test_a_right_token_does_not_wait_for_wrong_ones() -> None:
    pause = Pause()
    shared = SharedToken(Secret(TOKEN), sleep=pause)
    guess = asyncio.create_task(shared.check(b"guess"))
    await pause.begun.wait()
    assert await asyncio.wait_for(shared.check(TOKEN.encode()), 10) is TokenVerdict.RIGHT
    assert not guess.done()
    pause.released.set()
    assert await guess is TokenVerdict.WRONG


async def test_while_many_wrong_tokens_wait_none_is_looked_at() -> None:
    pause = Pause()
    shared = SharedToken(Secret(TOKEN), sleep=pause)
    guesses = [asyncio.create_task(shared.check(b"guess")) for _ in range(1000)]
    await pause.begun.wait()
    assert await shared.check(TOKEN.encode()) is TokenVerdict.BUSY
    pause.released.set()
    verdicts = await asyncio.gather(*guesses)
    assert verdicts.count(TokenVerdict.WRONG) == pause.count == 16
    assert verdicts.count(TokenVerdict.BUSY) == 1000 - 16
    assert await shared.check(TOKEN.encode()) is TokenVerdict.RIGHT
