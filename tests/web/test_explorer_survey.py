"""The survey behind the pages: what it counts, how fast pages are beside it, and what it survives."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import kinship
from exploring import Explored, exploring, exploring_sample, filled, key_path
from keywright import Id, Keyspace, Map, Set, SnowflakeStr, Value, connect, expires_in
from keywright.explorer import key_scan
from keywright.explorer.notifications import Watcher
from keywright.explorer.survey import Counted
from keywright.testing import RedisServer, as_user
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright.tools.pace import Pace
from keywright_discord.drc import schema as drc
from keywright_meetup import schema as meetup

MANY = 100_000


def test_counts_are_exact_and_memory_and_expiries_close(redis_url: str) -> None:
    with exploring_sample(redis_url, "drc") as explored, connect(redis_url, *drc.bind()) as db:
        counted = explored.explorer.surveyor.latest.counted
        real = {kind: list(db.scan(kind)) for kind in explored.explorer.atlas.sheets}
        memory = sum(db.run(key.memory()) or 0 for key in real[drc.Message])
    assert {kind: found.keys for kind, found in counted.items()} == {
        kind: len(keys) for kind, keys in real.items() if keys
    }
    assert counted[drc.Message].coverage == 1.0
    assert counted[drc.User].coverage == 0.0
    assert counted[drc.Message].memory == pytest.approx(memory, rel=0.3)


def test_a_small_template_is_measured_completely_and_an_estimate_is_marked(redis_url: str, raw: Raw) -> None:
    for n in range(60):
        raw("SADD", f"event_series:few{n}:meetup_events", "x")
        if n < 20:
            raw("EXPIRE", f"event_series:few{n}:meetup_events", 600)
    with exploring(redis_url, [meetup.meetup]) as explored:
        exact = explored.surveyed().get("/template/meetup/SeriesEvents").text
        counted = explored.explorer.surveyor.latest.of(meetup.SeriesEvents)
    assert (counted.timed, counted.coverage, counted.estimated) == (60, 20 / 60, False)
    assert "~" not in exact
    for n in range(400):
        raw("SADD", f"event_series:many{n}:meetup_events", "x")
    with exploring(redis_url, [meetup.meetup]) as explored:
        page = explored.surveyed().get("/template/meetup/SeriesEvents").text
        overview = explored.get("/map").text
    assert "~ estimated from " in page
    assert "~ is an estimate from a sample of the keys of each template." in overview


def test_keys_of_nobody_are_told_by_what_they_look_like(redis_url: str, raw: Raw) -> None:
    for n in range(5):
        raw("SET", f"leftover:{n}", "x")
    with exploring_sample(redis_url, "meetup") as explored:
        snapshot = explored.explorer.surveyor.latest
        page = explored.get("/map").text
    assert snapshot.unknown_keys == 5
    assert snapshot.patterns == {"leftover:<number>": 5}
    assert "leftover:&lt;number&gt;" in page
    assert "/key?name=leftover:3" in page


def test_the_change_between_two_surveys_is_shown(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        for n in range(30):
            raw("SADD", f"event_series:new{n}:meetup_events", "x")
        explored.surveyed_again()
        rate = explored.explorer.surveyor.change_per_minute(meetup.SeriesEvents)
        page = explored.get("/changes").text
    assert rate is not None
    assert rate > 0
    assert '>SeriesEvents</a></td><td class="n">20</td><td class="n">50</td>' in page


def test_what_the_server_tells_of_is_shown_as_it_happens(redis_url: str, raw: Raw) -> None:
    raw("CONFIG", "SET", "notify-keyspace-events", "EA")
    try:
        with exploring_sample(redis_url, "meetup") as explored:
            watcher = explored.explorer.watcher
            wait_until(lambda: watcher.why_not is None, "the watcher")

            def heard() -> bool:
                raw("SET", "meetup_access_token_refresh_time", "2026-01-01T00:00:00+00:00")
                return any(change.kind is meetup.RefreshTime for change in watcher.changes)

            wait_until(heard, "a notification")
            page = explored.get("/changes/live").text
    finally:
        raw("CONFIG", "SET", "notify-keyspace-events", "")
    assert "meetup_access_token_refresh_time" in page
    assert "RefreshTime" in page


def test_notifications_are_never_enabled_by_looking(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        wait_until(
            lambda: "notify-keyspace-events" in (explored.explorer.watcher.why_not or ""), "the answer"
        )
        page = explored.get("/changes").text
    assert "Notifications are disabled" in page
    assert not any(raw("CONFIG", "GET", "notify-keyspace-events").values())


def test_a_server_that_is_down_is_the_reason_why_nothing_is_heard() -> None:
    with RedisServer(tcp=True) as server, exploring(server.url, [meetup.meetup]) as explored:
        explored.surveyed()
        server.stop()
        watcher = Watcher(explored.explorer.db, explored.explorer.atlas)
        listening = asyncio.run_coroutine_threadsafe(watcher.run(), explored.explorer.db._loop)
        wait_until(lambda: not (watcher.why_not or "").startswith("Checking"), "the reason")
        listening.cancel()
        server.start()
    assert "cannot be reached" in (watcher.why_not or "")


def test_a_template_has_the_slot_of_the_prefix_that_is_bound(redis_url: str) -> None:
    bound = meetup.meetup.bind(prefix="sample")
    with exploring(redis_url, [meetup.meetup], [bound]) as explored:
        page = explored.get("/template/meetup/MeetupEvent").text
    assert "<dt>Slot</dt><dd>by <code>sample:meetup_event:&lt;event&gt;</code></dd>" in page


def test_on_a_cluster_nodes_and_slots_are_counted(cluster_url: str) -> None:
    filled(cluster_url, "meetup")
    with exploring(cluster_url, [meetup.meetup]) as explored:
        snapshot = explored.surveyed().explorer.surveyor.latest
        page, key = explored.get("/map").text, explored.get(key_path("meetup_event:e1")).text
        scanned = explored.get("/template/meetup/MeetupEvent?cursor=0-0").text
        exported = explored.get("/template/meetup/MeetupEvent?cursor=0-0&format=csv").text
    assert len(exported.splitlines()) == len({line.partition(",")[0] for line in exported.splitlines()}) == 41
    assert len(snapshot.nodes) == 3
    assert sum(node.keys or 0 for node in snapshot.nodes) == sum(snapshot.slots.values())
    assert snapshot.counted[meetup.MeetupEvent].keys == 40
    assert "Fullest slots" in page
    assert "<dt>Slot</dt><dd>" in key
    assert "meetup_event:e" in scanned


def test_no_page_scans_and_each_is_bounded_on_many_keys(redis_url: str, raw: Raw) -> None:
    script = "for i=1,tonumber(ARGV[1]) do redis.call('SET','meetup_event:e'..i..':event_series','s1') end"
    raw("EVAL", script, "0", str(MANY))
    with exploring(redis_url, [meetup.meetup]) as explored:
        explored.surveyed()
        counted = explored.explorer.surveyor.latest.counted[meetup.SeriesOfEvent]
        raw("CONFIG", "RESETSTAT")
        paths = [
            "/",
            "/template/meetup/SeriesOfEvent",
            "/search?q=e77",
            key_path("meetup_event:e77:event_series"),
        ]
        pages = {path: explored.get(path) for path in paths}
        scans = raw.calls_of("scan")
    assert counted.keys == MANY
    assert len(counted.names) == 500
    assert {page.status_code for page in pages.values()} <= {200, 303}
    assert max(len(page.content) for page in pages.values()) < 100_000
    assert scans == 0


def test_a_search_among_many_keys_stops_after_a_moment_and_can_go_on(redis_url: str, raw: Raw) -> None:
    script = "for i=1,tonumber(ARGV[1]) do redis.call('SET','stray:'..i,'x') end"
    raw("EVAL", script, "0", str(MANY))
    wanted = drc.bind()[0].lead.decode() + "members:1:2"
    raw("SET", wanted, "{}")
    with exploring(redis_url, [drc.drc], drc.bind()) as explored:
        path, found, pages = "/template/drc/Member?guild=1", "", 0
        while True:
            page = explored.get(path).text
            pages += 1
            found += page
            if 'rel="next"' not in page:
                break
            path = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
            assert pages < 500
    assert found.count(f'<td><a class="row id" href="/key?name={wanted}"') == 1


def test_while_a_scan_has_met_nothing_no_page_says_that_there_is_nothing(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is up after one page of SCAN, however fast the server is, and the next page goes on."""
    monkeypatch.setattr(key_scan, "SCAN_SECONDS", 0.0)
    script = "for i=1,tonumber(ARGV[1]) do redis.call('SET','stray:'..i,'x') end"
    raw("EVAL", script, "0", str(MANY))
    with exploring(redis_url, [drc.drc], drc.bind()) as explored:
        begun = explored.get("/template/drc/Member?cursor=0-0").text
    assert 'rel="next"' in begun
    assert 'rel="next" href="/template/drc/Member?cursor=0-0' not in begun
    assert "No key was found so far." in begun
    assert "No key is stored" not in begun


def test_keys_that_are_gone_since_the_survey_are_said_to_be_so(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        raw("FLUSHDB")
        gone, never = (
            explored.get(f"/template/meetup/{name}").text for name in ("MeetupEvent", "OrphanedRoles")
        )
    assert "These keys no longer exist." in gone
    assert "These keys" not in never


def test_a_survey_goes_on_where_the_number_of_keys_may_not_be_asked(
    keywright_server: RedisServer, redis_url: str, raw: Raw
) -> None:
    """A server that is loading refuses it too, and must not end the survey for good."""
    filled(redis_url, "meetup")
    raw("ACL", "SETUSER", "few", "reset", "on", ">secret", "~*", "+@all", "-dbsize")
    url = as_user(keywright_server.tcp_url, "few", "secret")
    try:
        with exploring(url, [meetup.meetup], rest_seconds=0.1) as explored:
            counted = explored.surveyed().explorer.surveyor.latest.counted
            page = explored.get("/map")
    finally:
        raw("ACL", "DELUSER", "few")
    assert counted[meetup.MeetupEvent].keys == 40
    assert page.status_code == 200


def test_looking_at_changes_adds_nothing_to_what_was_counted(redis_url: str) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        explored.surveyed_again()
        explored.get("/changes")
        explored.get("/map")
        counted = explored.explorer.surveyor.latest.counted
    assert all(each.keys for each in counted.values())


PAGES = [
    "/",
    "/schema",
    "/operations",
    "/changes",
    "/audit",
    "/search?q=e1",
    "/template/meetup/MeetupEvent",
    "/template/meetup/MeetupEvent?cursor=0-0",
    "/template/meetup/MeetupEvent?cursor=0-0&format=csv",
    "/key/backlinks?name=meetup_event:e1",
    "/key/edit?name=meetup_event:e1",
    "/key/edit?name=meetup_event:e1&action=delete",
    "/compare",
    "/compare/key?name=meetup_event:e1",
]


def test_a_server_that_goes_away_and_comes_back(raw: Raw) -> None:
    with RedisServer(tcp=True) as server:
        filled(server.tcp_url, "meetup")
        beside = [(server.tcp_url, [meetup.meetup.bind(prefix="elsewhere")])]
        with exploring(
            server.tcp_url, [meetup.meetup], rest_seconds=0.1, write=True, beside=beside
        ) as explored:
            explored.surveyed()
            server.stop()
            wait_until(lambda: explored.explorer.surveyor.trouble, "the survey to notice")
            overview, key = explored.get("/map"), explored.get(key_path("meetup_event:e1"))
            during = {path: explored.get(path).status_code for path in PAGES}
            server.start()
            wait_until(lambda: explored.explorer.surveyor.trouble is None, "the survey to recover")
            again = wait_until(lambda: _good(explored, "meetup_event:e1"), "the key's page")
            after = {path: explored.get(path).status_code for path in PAGES}
    assert set(during.values()) == {200, 503}
    assert set(after.values()) == {200}
    assert overview.status_code == 200
    assert "The survey failed." in overview.text
    assert ">40</td>" in overview.text  # of the last survey
    assert key.status_code == 503
    assert "cannot be reached" in key.text
    assert "https://example.org" in again.text


def test_a_replica_that_goes_away_in_the_middle_does_not_falsify_the_counts() -> None:
    script = "for i=1,tonumber(ARGV[1]) do redis.call('SET','meetup_event:e'..i..':event_series','s1') end"
    with RedisServer(tcp=True) as primary, RedisServer(tcp=True, replica_of=primary) as replica:
        primary.call("EVAL", script, "0", "8000")
        wait_until(lambda: replica.call("DBSIZE") == 8000, "the replica follows")
        with exploring(primary.tcp_url, [meetup.meetup], survey_pace=Pace(4000)) as explored:
            surveyor = explored.explorer.surveyor
            wait_until(lambda: surveyor.current and surveyor.current.seen >= 2000, "the first pages")
            assert surveyor.current is not None
            assert surveyor.current.nodes[0].label.endswith("(replica)")
            replica.stop()
            counted = explored.surveyed().explorer.surveyor.latest.counted
    assert counted[meetup.SeriesOfEvent].keys == 8000


def _good(explored: Explored, name: str) -> Any:
    page = explored.get(key_path(name))
    return page if page.status_code == 200 else None


def test_two_keyspaces_with_relations_and_expiries_of_their_own_share_a_map(redis_url: str) -> None:
    space = Keyspace("a space, with marks & signs", "Of the test.")

    class Counting(Value[int], key="counting:<who>", space=space, expiry=expires_in(timedelta(minutes=1))):
        """How `far`."""

        who: Id

    class Wide(Map[SnowflakeStr, str], key="wide", space=space):
        """Wide."""

    class Names(Set[str], key="names", space=space):
        """Names."""

    with connect(redis_url) as db:
        db.run(Counting("me").set(4))
        db.run(kinship.Person("p1").set("name"))
    with exploring(redis_url, [space, kinship.town]) as explored:
        page = explored.surveyed().get("/map").text
        template = explored.get("/template/a%20space%2C%20with%20marks%20%26%20signs/Counting")
    assert "a space, with marks &amp; signs" in page
    assert template.status_code == 200
    assert "How <code>far</code>." in template.text
    assert {Wide, Names} <= explored.explorer.atlas.sheets.keys()


def test_the_names_that_are_kept_are_an_even_sample() -> None:
    kept = [0] * 10
    for _ in range(40):
        counted = Counted()
        for page in range(20):
            counted.keep([b"%d" % number for number in range(page * 1000, page * 1000 + 1000)])
        assert (counted.keys, len(counted.names), len(set(counted.names))) == (20_000, 500, 500)
        for name in counted.names:
            kept[int(name) // 2000] += 1
    assert max(kept) - min(kept) < 400  # 2,000 expected in each tenth; six standard deviations apart


def test_a_name_that_is_megabytes_long_is_counted_but_not_kept() -> None:
    counted = Counted()
    counted.keep([b"x" * (1 << 20), b"short"])
    assert (counted.keys, counted.names) == (2, [b"short"])
