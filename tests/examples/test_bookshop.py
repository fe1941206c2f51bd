"""The bookshop: proved, and the same on both engines, on one server and on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from examples.bookshop import ADA, BEN, FAR_OFF, MONDAY, WAVES

from examples import bookshop
from keywright import Keyring, check
from keywright.operations import slot_of
from keywright.testing.runs import OpenRun, Raw, Run

SCRIPT = Path(bookshop.__file__)
TUESDAY = MONDAY + timedelta(days=1)

EXPECTED: dict[str, object] = {
    "read it back": WAVES,
    "only two of its members": {"title": "The Waves", "signed": True},
    "change a member, remove another": True,
    "what the index knows": {"b_1", "b_2"},
    "count ten copies in": 10,
    "prices by currency": 2,
    "read both in one round trip": [bookshop.Magazine(7), bookshop.Volume("9780156949606")],
    "what came in by Monday": [("b_1", MONDAY)],
    "is it open, and since when?": (True, MONDAY),
    "sell one": 9,
    "both payments": [bookshop.ByCard("card", "0042"), bookshop.InCash("cash", 2000)],
    "gets what is new": bookshop.Sale("b_1", 1200),
    "and is done with it": 1,
    "count it": 1,
    "the best of all": ([("b_2", 3)], [("b_1", 4.5)]),
    "this database keeps it for good": None,
    "she signs in: one of five times in a quarter of an hour": 1,
    "and find it by any text": ["b_1"],
    "move it upstairs": True,
    "what the shelves know": (set(), {"b_1"}),
    "what she wrote": {"b_1", "b_2"},
    "one to one: Ada's card": True,
    "Ben cannot have it too": "TakenError",
    "who has cards now": {BEN},
    "read as they are today": bookshop.Hours(9, 18),
    "is a reader today": bookshop.Profile("Ben", "Nevis"),
    "and has left the old place": False,
    "erase a book with all that is part of it": True,
    "its parts are gone": (0, None, {}),
    "so are its relations": (set(), {"b_2"}),
    "and the indexes know": ({"b_2"}, set()),
}


def _toured(run: Run) -> dict[str, object]:
    return {step.title: run(step.call) for step in bookshop.tour()}


def _assert_toured(found: dict[str, object]) -> None:
    assert {title: found[title] for title in EXPECTED} == EXPECTED
    assert "token" not in repr(found)
    assert "4711" not in repr(found)


def test_the_keyspace_is_proved() -> None:
    findings = [*check(bookshop.shop), *check(bookshop.last_year)]
    assert [finding for finding in findings if finding.severity == "error"] == []


def test_no_two_steps_have_one_title() -> None:
    titles = [step.title for step in bookshop.tour()]
    assert len(titles) == len(set(titles))


def test_the_tour_runs_on_a_single_server(open_run: OpenRun, redis_url: str) -> None:
    _assert_toured(_toured(open_run(redis_url, *bookshop.bindings(Keyring.generate("k1")))))


def test_the_tour_runs_on_a_cluster(open_run: OpenRun, cluster_url: str) -> None:
    _assert_toured(_toured(open_run(cluster_url, *bookshop.bindings(Keyring.generate("k1")))))


def test_the_tour_runs_in_one_slot_of_a_cluster(
    open_run: OpenRun, cluster_url: str, raw_cluster: Raw
) -> None:
    run = open_run(cluster_url, *bookshop.bindings(Keyring.generate("k1"), prefix="{shop}"))
    _assert_toured(_toured(run))
    names = {name for name in raw_cluster.names() if not name.startswith(b"keywright:")}
    assert {slot_of(name) for name in names} == {slot_of(b"shop")}


def test_the_tour_leaves_the_keys_it_says(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, *bookshop.bindings(Keyring.generate("k1")))
    _toured(run)
    keys = {type(bookshop.shop.parse(name, run.context)).__name__ for name in raw.names()}
    assert {"Book", "Payment", "Session", "SearchResult", "Page", "Note", "CardOf"} <= keys
    assert raw("GET", "shop:hours") == b'{"opens":9,"closes":18}'
    assert raw("GET", "shop:door_code") == b"4711"
    assert raw("GET", f"shop:session:{ADA}").startswith(b"kw2")
    assert raw("HGETALL", f"shop:reader:{BEN}") == {b"first_name": b"Ben", b"last_name": b"Nevis"}
    assert raw("HGET", "shop:book:b_2", "subtitle") is None
    assert raw("GET", "shop:last_receipt") == b"18446744073709551615"


def test_the_tour_leaves_the_expiries_it_says(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    _toured(open_run(redis_url, *bookshop.bindings(Keyring.generate("k1"))))
    assert raw.expires_at("shop:coupon:c0ffee") == pytest.approx(FAR_OFF.timestamp(), abs=1)
    assert 0 < raw("PTTL", "shop:search:waves%3A%20%7B50%25%20off%7D") <= 60_000
    assert 0 < raw("PTTL", f"shop:session:{ADA}") <= 8 * 3_600_000
    assert raw("PTTL", f"shop:reader:{ADA}:viewed") == -1
    assert raw("PTTL", "shop:open") == -1


def test_the_example_runs_as_a_script() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for step in bookshop.tour():
        assert step.title in done.stdout
    assert "Secret(…)" in done.stdout
