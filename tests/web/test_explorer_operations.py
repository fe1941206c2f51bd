"""Operations, changes and comparison: what servers report, decoded by template."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from browsing import Chromium
from exploring import Explored, exploring, key_path
from keywright import Keyspace, Record, Secret, Stream, Value, connect
from keywright.explorer.trends import sparkline
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw

yard = Keyspace("yard", "Orders and their log.", prefix="yard")


class Order(msgspec.Struct):
    """An order."""

    item: str
    card: Secret[str]


class Orders(Record[Order], key="order:<order>", space=yard):
    """One order."""

    order: int


class Note(Value[str], key="note:<order>", space=yard):
    """A note on an order."""

    order: int


class Log(Stream[Order], key="log", space=yard, groups=("billing",)):
    """What happened to orders."""


@pytest.fixture
def filled(redis_url: str, raw: Raw) -> str:
    with connect(redis_url, yard.bind()) as db:
        db.run(Orders(1).put(Order("spade", Secret("4111"))))
        db.run(Note(1).set("urgent"))
    raw("XADD", "yard:log", "*", "item", "spade", "card", "4111")
    raw("XGROUP", "CREATE", "yard:log", "billing", "0")
    return redis_url


def document(explored: Explored, path: str) -> Any:
    answer = explored.get(path, Accept="application/json")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_slow_commands_are_counted_by_template_and_their_values_stay_hidden(filled: str, raw: Raw) -> None:
    with exploring(filled, [yard], [yard.bind()]) as explored:
        explored.surveyed()
        raw("CONFIG", "SET", "slowlog-log-slower-than", "0")
        try:
            raw("SLOWLOG", "RESET")
            raw("HSET", "yard:order:2", "item", "rake", "card", "card-number-9")
            raw("HGETALL", "yard:order:2")
            found = document(explored, "/operations")
            page = explored.get("/operations").text
        finally:
            raw("CONFIG", "SET", "slowlog-log-slower-than", "10000")
            raw("SLOWLOG", "RESET")
    orders = next(each for each in found["slow_by_template"] if each["template"] == "Orders")
    assert (orders["verbs"], orders["commands"]) == (["HGETALL", "HSET"], 2)
    assert "card-number-9" not in page
    assert "card-number-9" not in str(found)
    assert 'href="/key?name=yard:order:2"' in page
    commands = found["nodes"][0]["commands"]
    assert commands
    assert all(each["calls"] > 0 for each in commands)


def test_slow_commands_by_template_are_kept_over_surveys(filled: str, raw: Raw) -> None:
    with exploring(filled, [yard], [yard.bind()]) as explored:
        explored.surveyed()
        raw("CONFIG", "SET", "slowlog-log-slower-than", "0")
        try:
            raw("GET", "yard:note:1")
            explored.surveyed_again()
            raw("SLOWLOG", "RESET")
            raw("CONFIG", "SET", "slowlog-log-slower-than", "-1")
            explored.surveyed_again()
            found = document(explored, "/operations")
            page = explored.get("/operations").text
        finally:
            raw("CONFIG", "SET", "slowlog-log-slower-than", "10000")
            raw("SLOWLOG", "RESET")
    notes = next(each for each in found["slow_by_template"] if each["template"] == "Note")
    assert notes["commands"] == 0, "the log was emptied"
    before, during, after = notes["history"]["commands"]
    assert (before, after) == (0, 0)
    assert during >= 1
    assert notes["history"]["slowest_us"][0::2] == [0, 0]
    assert found["mean_us"][0] is None
    assert all(each > 0 for each in found["mean_us"][1:])
    assert f"{during} slow commands in 3 surveys" in page
    assert "Mean time of a command between surveys" in page


def test_a_stream_has_its_groups_with_lag_and_pending(filled: str) -> None:
    with exploring(filled, [yard], [yard.bind()]) as explored:
        found = document(explored.surveyed(), "/operations")["streams"]
    assert [(each["name"], each["entries"]) for each in found] == [("yard:log", 1)]
    assert (found[0]["groups"][0]["name"], found[0]["groups"][0]["pending"]) == ("billing", 0)


def test_memory_by_template_is_kept_over_surveys(filled: str, raw: Raw) -> None:
    with exploring(filled, [yard], [yard.bind()]) as explored:
        explored.surveyed()
        raw("SET", "yard:note:2", "x" * 10_000)
        explored.surveyed_again()
        history = document(explored, "/operations")["history"]
    notes = next(each for each in history if each["template"] == "Note")
    assert notes["keys"] == [1, 2]
    assert notes["memory"][1] > notes["memory"][0] + 10_000


def test_a_user_without_slowlog_and_info_gets_the_page_without_them(filled: str, raw: Raw) -> None:
    raw(
        "ACL",
        "SETUSER",
        "narrow",
        "on",
        ">narrow-password",
        "~*",
        "+@read",
        "+ping",
        "+dbsize",
        "+memory|usage",
    )
    url = filled.replace(filled.split("@")[0], "unix://narrow:narrow-password")
    try:
        with exploring(url, [yard], [yard.bind()]) as explored:
            page = explored.get("/operations")
    finally:
        raw("ACL", "DELUSER", "narrow")
    assert page.status_code == 200
    assert "may not run SLOWLOG" in page.text
    assert "may not run INFO" in page.text


@pytest.mark.parametrize(
    ("values", "points"),
    [([], ""), ([5], "0.0,1.0 160.0,1.0"), ([0, 0], "0.0,27.0 160.0,27.0"), ([1, 2], "0.0,14.0 160.0,1.0")],
)
def test_a_line_goes_from_zero_to_the_largest_value(values: list[int], points: str) -> None:
    assert sparkline(values) == points


@pytest.fixture
def notified(raw: Raw) -> Any:
    raw("CONFIG", "SET", "notify-keyspace-events", "KEA")
    yield
    raw("CONFIG", "SET", "notify-keyspace-events", "")


@pytest.mark.usefixtures("notified")
def test_changes_are_filtered_paused_and_decoded(chromium: Chromium, filled: str, raw: Raw) -> None:
    async def watch(page: Any) -> list[Any]:
        await page.goto(explored.base + "/changes?template=Orders&event=hset&values=1")
        rows = await page.locator("#heard tbody tr").all_inner_texts()
        await page.click("a:text-is('Pause')")
        paused = await page.get_attribute("#changes", "hx-get")
        return [rows, paused, await page.input_value("select[name=template]")]

    with exploring(filled, [yard], [yard.bind()]) as explored:

        def heard() -> bool:
            raw("SET", "yard:note:7", "quiet")
            raw("HSET", "yard:order:7", "item", "hoe", "card", "secret-card")
            return {each.kind for each in explored.explorer.watcher.changes} >= {Note, Orders}

        wait_until(heard, "both changes")  # what happens before the subscription is not published to it
        rows, paused, template = chromium.visit(watch)
        every = document(explored, "/changes")["changes"]
    assert rows
    assert all("yard:order:7" in row for row in rows)
    assert '"item":"hoe"' in rows[0]
    assert "secret-card" not in rows[0]
    assert paused is None
    assert template == "Orders"
    assert {each["template"] for each in every} >= {"Orders", "Note"}


def test_two_prefixes_are_compared_by_template_and_by_key(filled: str) -> None:
    staging = yard.bind(prefix="staging")
    with connect(filled, staging) as db:
        db.run(Note(1).set("calm"))
        db.run(Note(2).set("more"))
    with exploring(filled, [yard], [yard.bind()], beside=[(filled, [staging])]) as explored:
        explored.surveyed()
        wait_until(lambda: explored.explorer.beside[0].surveyor.complete, "the survey of the other side")
        counts = {each["name"]: each["keys"] for each in document(explored, "/compare")["templates"]}
        key = document(explored, f"/compare/key?{key_path('yard:note:1').partition('?')[2]}")
        page = explored.get(f"/compare/key?{key_path('yard:note:1').partition('?')[2]}").text
        absent = document(explored, "/compare/key?name=yard:order:1")
        link = explored.get(key_path("yard:note:1")).text
    assert counts == {"Orders": [1, 0], "Note": [1, 2], "Log": [1, 0]}
    assert [each["value"] for each in key["databases"]] == ["urgent", "calm"]
    assert [each["same"] for each in key["databases"]] == [True, False]
    assert "differs" in page
    assert [each["exists"] for each in absent["databases"]] == [True, False]
    assert 'href="/compare/key?name=yard:note:1"' in link


def test_a_phone_shows_which_database_has_how_many_keys(filled: str, chromium: Chromium) -> None:
    async def phone(page: Any) -> list[Any]:
        await page.goto(explored.base + "/compare")
        labels = await page.locator("tr:has-text('Note') td[data-label]").evaluate_all(
            "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
        )
        return [labels, await page.evaluate("document.documentElement.scrollWidth <= innerWidth")]

    staging = yard.bind(prefix="staging")
    with exploring(filled, [yard], [yard.bind()], beside=[(filled, [staging])]) as explored:
        explored.surveyed()
        wait_until(lambda: explored.explorer.beside[0].surveyor.complete, "the survey of the other side")
        labels, fits = chromium.visit(phone, width=390)
        databases = document(explored, "/compare")["databases"]
    assert len(labels) == len(databases) == 2
    assert all(name in label for name, label in zip(databases, labels, strict=True))
    assert fits


def test_one_database_is_not_compared(filled: str) -> None:
    with exploring(filled, [yard], [yard.bind()]) as explored:
        assert explored.get("/compare").status_code == 404
        assert ">Compare<" not in explored.get("/").text
