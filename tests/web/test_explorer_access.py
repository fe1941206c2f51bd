"""Who gets to see anything, and what never leaves the server."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from html import unescape
from typing import Annotated, Any

import httpx
import pytest

from browsing import Chromium
from exploring import Explored, exploring, exploring_sample, filled, key_path
from keywright import Codec, Id, Keyring, Keyspace, Secret, Value, connect
from keywright.errors import UsageError
from keywright.explorer import ExplorerSettings
from keywright.explorer.server import serve
from keywright.testing import as_user
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright.tools.acl import AclRole, acl
from keywright_discord.drc import schema as drc
from keywright_meetup import schema as meetup

TOKEN = "a-long-random-token-for-tests"
MARK = "zq-never-to-be-seen"


def crawled(explored: Explored, most: int = 250) -> dict[str, httpx.Response]:
    """Pages reached by links from the map, raw bytes included."""
    pages: dict[str, httpx.Response] = {}
    waiting = deque(["/"])
    with httpx.Client(base_url=explored.base, timeout=20) as client:
        while waiting and len(pages) < most:
            path = waiting.popleft()
            if path in pages or path.startswith(("/static", "#")):
                continue
            pages[path] = found = client.get(path)
            waiting += map(unescape, re.findall(r'(?:href|hx-get)="(/[^"]*)"', found.text))
    return pages


def test_nothing_secret_is_on_any_page_nor_in_the_raw_bytes(redis_url: str, raw: Raw) -> None:
    with connect(redis_url) as db:
        db.run(meetup.AccessToken().set(Secret(MARK)))
        db.run(meetup.RefreshToken().set(Secret(MARK)))
        db.run(meetup.Csrf("c1").set(Secret(MARK)))
        for user in range(3):
            db.run(meetup.UserTokens(user).put(meetup.Tokens(Secret(MARK), Secret(MARK))))
    raw("HSET", "meetup_user:7:oauth2_tokens", "access_token", MARK)  # a member is missing
    raw("SADD", "csrf:c2", MARK)  # another type than declared
    assert MARK.encode() in raw("GET", "meetup_access_token")
    with exploring(redis_url, [meetup.meetup]) as explored:
        pages = crawled(explored.surveyed())
        explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.auditing.start)
        _audited(explored)
        pages |= crawled(explored) | {"audit": explored.get("/audit")}
    shown = [path for path in pages if "oauth2_tokens" in path or "csrf" in path or "access_token" in path]
    assert len(shown) >= 10
    assert [path for path, page in pages.items() if MARK in page.text] == []
    assert MARK.encode().hex(" ") not in "".join(page.text for page in pages.values())


def test_bytes_of_keys_that_no_template_matches_are_shown_only_on_demand(redis_url: str, raw: Raw) -> None:
    raw("SET", "meetup_access_token", MARK)
    raw("HSET", "other:v1json:webhooks:1", "token", MARK)
    paths = [f"/key/raw?name={name}" for name in ("meetup_access_token", "other:v1json:webhooks:1")]
    with exploring(redis_url, [drc.drc], drc.bind()) as explored:
        pages = crawled(explored.surveyed()) | {path: explored.get(path) for path in paths}
    assert [path for path, page in pages.items() if MARK in page.text] == []
    assert all("--show-unknown" in pages[path].text for path in paths)
    with exploring(redis_url, [drc.drc], drc.bind(), show_unknown=True) as explored:
        shown = [explored.get(path).text for path in paths]
    assert all(MARK.encode()[:8].hex(" ") in page for page in shown)


def test_the_credential_in_the_address_of_a_webhook_is_not_shown(redis_url: str, raw: Raw) -> None:
    raw(
        "SET",
        "keywright:v1json:webhooks:5",
        f'{{"id": "5", "token": "{MARK}", "url": "https://discord.com/api/webhooks/5/{MARK}"}}',
    )
    with exploring(redis_url, [drc.drc], drc.bind()) as explored:
        pages = crawled(explored.surveyed())
    assert any("(secret)" in page.text for page in pages.values())
    assert [path for path, page in pages.items() if MARK in page.text] == []


def test_a_document_with_hidden_members_that_does_not_decode_is_not_quoted(redis_url: str, raw: Raw) -> None:
    for kind in ("webhooks", "interactions"):
        raw("SET", f"keywright:v1json:{kind}:5", f'{{"token": "{MARK}", broken')
    with exploring(redis_url, [drc.drc], drc.bind()) as explored:
        explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.auditing.start)
        _audited(explored)
        pages = crawled(explored.surveyed())
    assert sum("is not stored as declared" in page.text for page in pages.values()) == 2
    assert sum(path.startswith("/audit/") for path in pages) >= 2
    assert [path for path, page in pages.items() if MARK in page.text] == []


def _audited(explored: Explored) -> None:
    wait_until(lambda: explored.explorer.auditing.tally, "an audit")


def test_every_page_carries_the_headers_that_bind_a_browser(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        pages = [explored.get(path) for path in ("/", "/nowhere", "/static/explorer.css", "/search?q=x")]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cache-control"] == "no-store"
    assert not any(re.search(r"<script(?! src)| style=| on[a-z]+=", page.text) for page in pages[:2])


class Faulty(Codec[str]):
    """Breaks the contract of codecs: a fault that nobody foresaw."""

    expected = "anything"
    python_type = str

    def encode(self, value: str) -> bytes:
        return value.encode()

    def decode(self, data: bytes) -> str:
        raise ZeroDivisionError


faulty = Keyspace("faulty", "Of the test.")


class Fault(Value[Annotated[str, Faulty()]], key="fault:<fault>", space=faulty):
    """Cannot be read."""

    fault: Id


def test_a_fault_of_ours_is_a_page_with_the_headers_too(redis_url: str, raw: Raw) -> None:
    raw("SET", "fault:1", "x")
    with exploring(redis_url, [faulty]) as explored:
        page = explored.get(key_path("fault:1"))
    assert page.status_code == 500
    assert "<h1>Something is wrong</h1>" in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert page.headers["x-frame-options"] == "DENY"


def test_an_audit_that_fails_by_a_fault_of_ours_is_not_passed_over_in_silence(
    redis_url: str, raw: Raw
) -> None:
    raw("SET", "fault:1", "x")
    with exploring(redis_url, [faulty]) as explored:
        explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.auditing.start)
        trouble = wait_until(lambda: explored.explorer.auditing.trouble, "the audit's end")
        page = explored.get("/audit").text
    assert "ZeroDivisionError" in trouble
    assert "The audit failed." in page


def test_a_page_addressed_to_another_name_is_refused(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        answers = {
            host: explored.get("/", Host=host).status_code
            for host in (
                "evil.example",
                f"evil.example:{explored.port}",
                f"localhost:{explored.port}",
                "[::1]:1",
            )
        }
    assert list(answers.values()) == [421, 421, 200, 200]


def test_a_token_is_needed_for_everything_but_signing_in(chromium: Chromium, redis_url: str) -> None:
    async def sign_in(page: Any) -> list[str]:
        await page.goto(explored.base + "/audit")
        steps = [await page.inner_text("h1")]
        for token in ("wrong", TOKEN):
            await page.fill("input[name=token]", token)
            await page.click("button:text-is('Sign in')")
            steps.append(await page.inner_text("h1"))
        await page.goto(explored.base + "/audit")
        return [*steps, await page.inner_text("h1")]

    with exploring_sample(redis_url, "meetup", token=Secret(TOKEN)) as explored:
        refused = {
            path: explored.get(path).status_code for path in ("/", "/key?name=x", "/map/live", "/loginx")
        }
        browser = explored.get("/", Accept="text/html")
        bearer = explored.get("/", Authorization=f"Bearer {TOKEN}").status_code
        wrong = explored.get("/", Authorization="Bearer no").status_code
        login = explored.get("/login").text
        steps = chromium.visit(sign_in)
    assert set(refused.values()) == {401}
    assert (browser.status_code, browser.headers["location"]) == (303, "/login?next=/")
    assert (bearer, wrong) == (200, 401)
    assert "meetup" not in login
    assert steps == ["Sign in", "Sign in", "Audit", "Audit"]


def test_whoever_is_not_signed_in_learns_nothing_from_an_error_page(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup", token=Secret(TOKEN)) as explored:
        server = explored.explorer.db.address.shown
        pages = [
            explored.get("/static/nothing"),
            httpx.put(explored.base + "/login"),
            explored.post("/login", {"token": "x" * 20_000}),
        ]
        known = explored.get("/static/nothing", Authorization=f"Bearer {TOKEN}")
    assert [page.status_code for page in pages] == [404, 405, 413]
    assert not any(server in page.text or "surveyed" in page.text for page in pages)
    assert server in known.text


def test_a_cookie_that_was_not_given_by_this_process_opens_nothing(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup", token=Secret(TOKEN)) as explored:
        name = explored.get("/login").headers["set-cookie"].partition("=")[0]
        for cookie in ("x.1.y", "x.1.", ".1." + "0" * 64, TOKEN):
            assert explored.get("/", Cookie=f"{name}={cookie}").status_code == 401


def test_two_explorers_of_one_machine_do_not_end_each_others_sessions(redis_url: str) -> None:
    with (
        exploring_sample(redis_url, "meetup") as one,
        exploring(redis_url, [meetup.meetup]) as other,
        httpx.Client() as browser,  # like any, it gives a cookie to every port of a host
    ):
        mark = re.search(r'name="mark" value="([0-9a-f]+)"', browser.get(f"{one.base}/audit").text)
        assert mark is not None
        browser.get(other.base)
        assert browser.post(one.base + "/survey", data={"mark": mark[1]}).status_code == 303


def test_listening_beyond_loopback_needs_a_token() -> None:
    with pytest.raises(UsageError, match="anybody could read"):
        asyncio.run(serve([meetup.meetup], ExplorerSettings(host="0.0.0.0", port=0)))
    ExplorerSettings(host="0.0.0.0", token=Secret(TOKEN)).check()


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(UsageError, match="fewer than 16"):
        ExplorerSettings(token=Secret("short")).check()


def test_a_form_of_another_page_changes_nothing(redis_url: str) -> None:
    with (
        exploring_sample(redis_url, "meetup", write=True) as explored,
        httpx.Client(base_url=explored.base) as client,
    ):
        page = client.get("/audit").text
        found = re.search(r'name="mark" value="([0-9a-f]+)"', page)
        assert found is not None
        good = {"mark": found[1]}
        answers = [
            client.post("/audit", data={}).status_code,
            client.post("/audit", data={"mark": "0" * 64}).status_code,
            client.post("/audit", data=good, headers={"Origin": "https://evil.example"}).status_code,
            client.post("/audit", data=good, headers={"Sec-Fetch-Site": "cross-site"}).status_code,
            explored.post("/audit", good).status_code,  # another session
        ]
        assert not explored.explorer.auditing.running
        assert client.post("/audit", data=good, headers={"Origin": explored.base}).status_code == 303
    assert answers == [403] * 5


def test_only_reading_commands_are_sent(redis_url: str, raw: Raw) -> None:
    sample = filled(redis_url, "drc")
    raw("CONFIG", "RESETSTAT")
    with exploring(redis_url, sample.model.spaces, sample.bindings) as explored:
        crawled(explored.surveyed(), 120)
        explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.auditing.start)
        _audited(explored)
    stats = raw("INFO", "commandstats")
    sent = {name.removeprefix("cmdstat_").partition("|")[0] for name in stats} - {"config", "info", "command"}
    writing = {name for name in sent if "write" in raw("COMMAND", "INFO", name)[name]["flags"]}
    assert {"scan", "pttl", "type"} <= sent
    assert writing == set()
    assert not sent & {"keys", "monitor", "flushall", "config"}


def test_an_auditors_user_is_enough(keywright_server: Any, redis_url: str, raw: Raw) -> None:
    sample = filled(redis_url, "meetup")
    rules = acl(sample.model.described(), AclRole.AUDITOR).rules()
    raw("ACL", "SETUSER", "looker", "reset", "on", ">secret", *rules)
    url = as_user(keywright_server.tcp_url, "looker", "secret")
    try:
        with exploring(url, sample.model.spaces, sample.bindings) as explored:
            pages = crawled(explored.surveyed(), 120)
            memory = explored.explorer.surveyor.latest
    finally:
        raw("ACL", "DELUSER", "looker")
    refused = {
        path: page.status_code for path, page in pages.items() if page.status_code not in (200, 204, 303, 404)
    }
    assert refused == {}
    assert memory.counted[meetup.MeetupEvent].keys == 40
    assert memory.counted[meetup.MeetupEvent].memory is not None


def test_what_a_user_may_not_ask_is_left_out(keywright_server: Any, redis_url: str, raw: Raw) -> None:
    filled(redis_url, "meetup")
    allowed = ["+scan", "+type", "+get", "+hgetall", "+hlen", "+strlen", "+exists", "+dbsize", "+ping"]
    raw("ACL", "SETUSER", "few", "reset", "on", ">secret", "~*", *allowed, "+hello", "+client")
    url = as_user(keywright_server.tcp_url, "few", "secret")
    try:
        with exploring(url, [meetup.meetup]) as explored:
            counted = explored.surveyed().explorer.surveyor.latest.counted[meetup.MeetupEvent]
            overview, key = explored.get("/map"), explored.get(key_path("meetup_event:e1"))
            listed = explored.get("/template/meetup/MeetupEvent", Accept="application/json").json()["listing"]
    finally:
        raw("ACL", "DELUSER", "few")
    row = listed["keys"][0]
    assert (row["ttl_ms"], row["memory"], row["values"]["link"]) == (None, None, "https://example.org")
    assert (counted.keys, counted.memory, counted.coverage) == (40, None, None)
    assert (overview.status_code, key.status_code) == (200, 200)
    assert re.search(r"<dt>Memory</dt><dd>—</dd>", key.text)
    assert "https://example.org" in key.text


def test_tokens_that_are_stored_in_clear_are_not_shown_as_sealed(redis_url: str) -> None:
    keyring = Keyring.generate("k1")
    with connect(redis_url) as db:
        db.run(meetup.AccessToken().set(Secret("hunter2")))
    with exploring(redis_url, [meetup.meetup]) as explored:
        name = b"meetup_access_token"
        page, template = explored.get(key_path(name)).text, explored.get("/template/meetup/AccessToken").text
    assert "(secret, stored in clear)" in page
    assert "declared sealed, stored in clear (1 read)" in template
    assert "hunter2" not in page + template
    with connect(redis_url, meetup.meetup.bind(keyring=keyring)) as db:
        db.run(meetup.AccessToken().set(Secret("hunter2")))
    with exploring(redis_url, [meetup.meetup]) as explored:
        page, template = explored.get(key_path(name)).text, explored.get("/template/meetup/AccessToken").text
    assert "(sealed)" in page
    assert "declared sealed, stored sealed (1 read)" in template
