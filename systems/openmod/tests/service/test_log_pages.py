"""The public log over HTTP: pages, JSON and feed; hostile text; deletion; outages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis

from keywright.testing import Raw, RedisServer, wait_until
from keywright_openmod.schema import CachedComment, CachedPost

from ..log_server import LogServer, minutes, plant
from ..newsroom import NOON, Newsroom, deleted, mod_action, newsroom

ATOM = "{http://www.w3.org/2005/Atom}"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;{{ 7*7 }}"
BIDI = "good\u202egnp.exe\u2066\u200b\u0007\u061c\ufeff end"
EVERYWHERE = ("/", "/?user=Ann", "/api/actions", "/api/actions?user=ann", "/feed.atom")


@pytest.fixture
def site(room: Newsroom) -> Iterator[LogServer]:
    with LogServer(room.url) as server:
        yield server


def hostile_post(text: str, *, url: str = "javascript:alert(1)") -> CachedPost:
    return CachedPost(
        type="post", title=text, url=url, body=text, permalink="javascript:alert(2)", author="t2_ann"
    )


def links(page: str) -> list[str]:
    return re.findall(r'(?:href|src|action)="([^"]*)"', page)


def test_the_list_and_the_entry_have_the_facts(room: Newsroom, site: LogServer) -> None:
    content = CachedComment("comment", "the text", "/r/cats/comments/p1/_/c1/", "t2_ann")
    plant(room, "t3_a", content=content, parent="t3_p1")
    for path in ("/", "/entry/t3_a"):
        page = site.get(path)
        assert page.status_code == 200
        for fact in ("Comment removed", "Mod", "Ann", "r/cats", "the text"):
            assert fact in page.text
    assert {
        "https://www.reddit.com/comments/a/",
        "https://www.reddit.com/comments/p1/_/c1/",
    } <= set(links(site.get("/entry/t3_a").text))
    assert "/entry/t3_a" in links(site.get("/").text)


def test_json_has_the_same_entries(room: Newsroom, site: LogServer) -> None:
    content = hostile_post("a title", url="https://example.org/")
    plant(room, "t3_a", action="removelink", thing="t3_p1", content=content)
    expected = {
        "id": "t3_a",
        "link": "/entry/t3_a",
        "at": "2024-01-02T12:00:00Z",
        "subreddit": "cats",
        "action": "removelink",
        "moderator": {"name": "Mod", "search": "Mod"},
        "user": {"name": "Ann", "search": "Ann"},
        "thing": "t3_p1",
        "text": {"title": "a title", "url": "https://example.org/", "body": "a title"},
        "thing_link": "https://www.reddit.com/comments/p1/",
        "extract_link": "https://www.reddit.com/comments/a/",
    }
    assert site.get("/api/actions").json() == {"actions": [expected], "next": None}
    assert site.get("/api/actions/t3_a").json() == expected


def test_next_leads_through_all_pages_with_the_filters(room: Newsroom, site: LogServer) -> None:
    for place in range(7):
        plant(room, f"t3_{place}", at=NOON - minutes(place))
        plant(room, f"t3_o{place}", at=NOON - minutes(place), user="Bob")
    found, path = [], "/api/actions?user=Ann&limit=3"
    while path:
        page = site.get(path).json()
        assert len(page["actions"]) <= 3
        found += [each["id"] for each in page["actions"]]
        path = page["next"]
    assert found == [f"t3_{place}" for place in range(7)]
    older = re.search(r'class="next" href="([^"]*)"', site.get("/?user=Ann&limit=3").text)
    assert older is not None
    following = site.get(older[1].replace("&amp;", "&")).text
    assert [name for name in found if f"/entry/{name}" in following] == found[3:6]


@pytest.mark.parametrize(
    "query",
    [
        "since=yesterday",
        "until=9999-99-99",
        "action=execute",
        "before=1",
        "before=99999999999999.t3_a'",
        "limit=0",
        "limit=1000",
        f"user={'x' * 100}",
    ],
)
def test_an_invalid_filter_is_refused_with_the_reason(site: LogServer, query: str) -> None:
    name = query.partition("=")[0]
    page = site.get(f"/?{query}")
    assert (page.status_code, name in page.text) == (400, True)
    answer = site.get(f"/api/actions?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(name)


def test_a_misspelt_filter_of_the_api_is_refused_and_foreign_parameters_of_a_page_are_ignored(
    room: Newsroom, site: LogServer
) -> None:
    plant(room, "t3_a")
    assert site.get("/api/actions?usr=Ann").status_code == 400
    assert "/entry/t3_a" in site.get("/?utm_source=mail").text


def test_dates_include_the_whole_day(room: Newsroom, site: LogServer) -> None:
    plant(room, "t3_a", at=NOON)
    plant(room, "t3_b", at=NOON - timedelta(days=1))

    def listed(**query: str) -> list[str]:
        return [each["id"] for each in site.get("/api/actions", **query).json()["actions"]]

    assert listed(since="2024-01-02") == ["t3_a"]
    assert listed(until="2024-01-01") == ["t3_b"]
    assert listed(since="2024-01-01", until="2024-01-02") == ["t3_a", "t3_b"]
    assert listed(since="2024-01-02T12:00:01Z") == []
    assert listed(until="2024-01-02T13:00:00+02:00") == ["t3_b"]
    assert listed(until="9999-12-31", since="0001-01-01") == ["t3_a", "t3_b"]


def test_names_may_be_written_as_on_reddit(room: Newsroom, site: LogServer) -> None:
    plant(room, "t3_a")
    for query in ("user=u/ann", "moderator=/u/Mod", "subreddit=r/Cats", "action=RemoveComment"):
        assert "/entry/t3_a" in site.get(f"/?{query}").text


@pytest.mark.parametrize(
    "text", [MARKUP, BIDI, "\x00\x01\x1b[31m\ufffe]]>"], ids=["markup", "bidi", "controls"]
)
def test_hostile_text_is_text(room: Newsroom, site: LogServer, text: str) -> None:
    """In titles, bodies, names of people and of subreddits, and in what a visitor searches for."""
    plant(
        room, "t3_a", action="removelink", thing="t3_p1", subreddit=f"cats{text}", content=hostile_post(text)
    )
    room.raw("HSET", "log-account:t2_ann", "username", f"Ann{text}")
    for path in ("/", "/entry/t3_a", "/feed.atom"):
        page = site.get(path).text
        assert "<script" not in page
        assert "<img" not in page
        assert not re.search(
            "[\x00-\x08\x0b-\x1f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe]", page
        )
        assert all(
            link.startswith(("/", "#content", "https://www.reddit.com/", "http://127."))
            for link in links(page)
        ), path
    ET.fromstring(site.get("/feed.atom").text)
    answer = site.get("/api/actions")
    assert answer.headers["content-type"] == "application/json"
    assert "javascript" not in str([answer.json()["actions"][0][name] for name in ("link", "thing_link")])
    searched = site.get("/", user=text[:40], moderator=text[:40], subreddit=text[:40])
    assert "<script" not in searched.text
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", searched.text)
    assert all(link.startswith(("/", "#content")) for link in links(searched.text))


def test_huge_text_is_cut(room: Newsroom, site: LogServer) -> None:
    huge = "x" * 1_000_000
    plant(room, "t3_a", action="removelink", thing="t3_p1", subreddit=huge, content=hostile_post(huge))
    room.raw("HSET", "log-account:t2_ann", "username", huge)
    assert len(site.get("/").content) < 20_000
    assert len(site.get("/entry/t3_a").content) < 60_000
    assert len(site.get("/api/actions").content) < 5_000


def test_ids_that_reddit_does_not_make_become_no_links(room: Newsroom, site: LogServer) -> None:
    plant(room, "t3_local1", action="banuser", thing="t2_ann")
    room.raw("HSET", "log-account:t2_ann", "username", "../../evil")
    page = site.get("/entry/t3_local1")
    assert page.status_code == 200
    assert "https://www.reddit.com" not in page.text


@pytest.mark.parametrize(
    "path",
    ["/entry/t3_none", "/entry/t3_", "/entry/log", "/entry/t3_%00", "/entry/t3_A", "/entry/x/y", "/nowhere"],
)
def test_an_address_that_leads_nowhere_is_a_page(site: LogServer, path: str) -> None:
    page = site.get(path)
    assert page.status_code == 404
    assert "does not exist" in page.text
    assert site.get("/api/actions/t3_none").json() == {"error": "this entry does not exist"}


def test_an_empty_log_and_an_empty_search_say_so(room: Newsroom, site: LogServer) -> None:
    assert "There are no entries yet" in site.get("/").text
    plant(room, "t3_a")
    assert "No entry matches this search" in site.get("/?user=nobody").text


@pytest.mark.parametrize("host", ["[", "a b", "<script>", "log.example.org:99999999", ""])
def test_a_hostile_host_is_neither_an_error_nor_reflected(room: Newsroom, site: LogServer, host: str) -> None:
    plant(room, "t3_a")
    for path in (*EVERYWHERE, "/entry/t3_none", "/api/actions/t3_none"):
        answer = site.client.get(path, headers={"Host": host})
        assert answer.status_code in (200, 400, 404), path
        assert "<script" not in answer.text


@pytest.mark.parametrize(
    "name", ["a:b", "{a}", "*", "[ unavailable ]", "%00", "%ff%fe", "%ED%A0%80", "😀", "a b"]
)
def test_any_name_can_be_searched_for(site: LogServer, name: str) -> None:
    for filtered in ("user", "moderator", "subreddit"):
        assert site.get(f"/?{filtered}={name}").status_code == 200
        assert site.get(f"/api/actions?{filtered}={name}").json() == {"actions": [], "next": None}


def test_only_reads_are_answered(site: LogServer) -> None:
    for path in ("/", "/api/actions", "/entry/t3_a"):
        assert site.client.post(path).status_code == 405
        assert site.client.head(path).status_code in (200, 404)


def test_no_answer_may_be_stored_framed_or_indexed(room: Newsroom, site: LogServer) -> None:
    plant(room, "t3_a")
    for path in (
        *EVERYWHERE,
        "/entry/t3_a",
        "/api/actions/t3_a",
        "/entry/none",
        "/?limit=0",
        "/api/actions?limit=0",
    ):
        headers = site.get(path).headers
        assert headers["cache-control"] == "no-store", path
        assert "noindex" in headers["x-robots-tag"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "etag" not in headers
        assert "set-cookie" not in headers


def test_the_feed_names_nobody_and_has_the_public_address(room: Newsroom) -> None:
    plant(room, "t3_a", content=CachedComment("comment", "the text", "/r/cats/", "t2_ann"))
    plant(room, "t3_b", subreddit="dogs")
    with LogServer(room.url, public_url="https://log.example.org") as site:
        answer = site.get("/feed.atom?subreddit=cats")
    assert answer.headers["content-type"].startswith("application/atom+xml")
    feed = ET.fromstring(answer.text)
    (entry,) = feed.findall(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "Comment removed in r/cats"
    assert entry.findtext(f"{ATOM}id") == "https://log.example.org/entry/t3_a"
    assert feed.findtext(f"{ATOM}id") == "https://log.example.org/feed.atom?subreddit=cats"
    assert entry.findtext(f"{ATOM}updated") == "2024-01-02T12:00:00+00:00"
    for word in ("Ann", ">Mod<", "u/Mod", "the text"):
        assert word not in answer.text


def test_a_deleted_submission_is_gone_from_every_page_with_the_next_request(
    room: Newsroom, site: LogServer
) -> None:
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    comment = room.reddit.write_comment(ann, "secret")
    room.handle(mod_action("removecomment", "Mod", ann, comment.id))
    assert all("t3_x1" in site.get(path).text for path in EVERYWHERE)
    assert site.get("/entry/t3_x1").status_code == site.get("/api/actions/t3_x1").status_code == 200
    del room.reddit.things[comment.id]
    room.reddit.uneditable = {"t3_x1"}
    with pytest.raises(Exception, match="t3_x1"):
        room.handle(deleted(comment.id))
    for path in EVERYWHERE:
        assert not re.search("t3_x1|secret|t1_c", site.get(path).text), path
    assert site.get("/entry/t3_x1").status_code == site.get("/api/actions/t3_x1").status_code == 404


def test_a_deleted_account_is_gone_from_every_page_with_the_next_request(
    room: Newsroom, site: LogServer
) -> None:
    ann, _ = room.reddit.join("Ann"), room.reddit.join("Mod")
    room.handle(mod_action("banuser", "Mod", ann))
    assert all("t3_x1" in site.get(path).text for path in EVERYWHERE)
    room.reddit.delete_account("t2_ann")
    room.reddit.uneditable = {"t3_x1"}
    room.clock.advance(days=1, seconds=1)
    room.enforce()
    for path in EVERYWHERE:
        assert not re.search(r"t3_x1|t2_ann|<article|<entry", site.get(path).text), path
    assert site.get("/entry/t3_x1").status_code == site.get("/api/actions/t3_x1").status_code == 404


def test_without_redis_it_says_so_and_recovers() -> None:
    with (
        RedisServer(tcp=True) as server,
        redis.Redis.from_url(server.tcp_url) as client,
        newsroom(server.tcp_url, Raw(client)) as room,
        LogServer(server.tcp_url) as site,
    ):
        plant(room, "t3_a")
        assert "/entry/t3_a" in site.get("/").text
        server.kill()
        page = site.get("/")
        assert (page.status_code, page.headers["retry-after"]) == (503, "5")
        assert "cannot be read now" in page.text
        answer = site.get("/api/actions")
        assert answer.status_code == 503
        assert server.tcp_url.rpartition(":")[2] not in page.text + answer.text
        server.start()
        wait_until(lambda: site.get("/").status_code == 200, "it answers again")
