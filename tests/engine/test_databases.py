"""Keyspaces that are bound to a numbered database are never read or written in another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from engines import Engine
from keywright import Id, Keyspace, Value, atomic, check, connect, gather, raw
from keywright.errors import DeclarationError, KeywrightError, UsageError
from numbered_spaces import Note, Page, User, anywhere, pages, people

OpenEngine = Callable[..., Engine]


def stored(redis_url: str) -> dict[int, list[bytes]]:
    found = {}
    for number in (0, 2, 3):
        with redis.Redis.from_url(f"{redis_url}?db={number}") as client:
            found[number] = sorted(client.keys())
    return found


@pytest.mark.parametrize(
    "call",
    [
        Page("a").set(1),
        Page("a").get(),
        gather(User("a").set("x"), Page("a").set(1)),
        atomic(User("a").set("x"), Page("a").set(1), spread=True),
        Page.set_many([("a", 1)]),
        raw(b"SET", Page("a"), b"1"),
    ],
    ids=["write", "read", "gather", "atomic", "many", "raw"],
)
def test_a_keyspace_of_another_database_is_refused_before_anything_is_sent(
    call: Any, open_engine: OpenEngine, redis_url: str
) -> None:
    engine = open_engine(redis_url)
    with pytest.raises(UsageError, match=r"'pages' is in database 2.*to database 0.*db=2"):
        engine.run(call)
    with pytest.raises(UsageError, match="'pages' is in database 2"):
        engine.scan(Page)
    assert stored(redis_url) == {0: [], 2: [], 3: []}


def test_the_number_selects_the_database(open_engine: OpenEngine, redis_url: str) -> None:
    open_engine(redis_url, db=2).run(Page("a").set(1))
    open_engine(redis_url, db=0).run(User("a").set("x"))
    open_engine(redis_url, db=3).run(Note("a").add("x"))
    assert stored(redis_url) == {0: [b"user:a"], 2: [b"user:a"], 3: [b"note:a"]}


def test_the_bound_keyspace_selects_a_database_that_the_url_does_not_name(redis_url: str) -> None:
    with connect(redis_url, pages.bind(), anywhere.bind()) as db:
        db.run(Page("a").set(1))
        db.run(Note("a").add("x"))
    with connect(redis_url, pages.bind(database=3)) as db:
        db.run(Page("b").set(1))
    assert stored(redis_url) == {0: [], 2: [b"note:a", b"user:a"], 3: [b"user:b"]}


def test_a_url_of_another_database_is_refused_when_it_is_opened(redis_url: str) -> None:
    with pytest.raises(UsageError, match=r"'pages' is in database 2.*would be to database 1"):
        connect(f"{redis_url}?db=1", pages.bind())
    with pytest.raises(UsageError, match="Open a database for each"):
        connect(redis_url, pages.bind(), people.bind())
    client = redis.Redis(unix_socket_path="/nowhere")  # whose database is 0
    with pytest.raises(UsageError, match="'pages' is in database 2"):
        connect(client, pages.bind())


@pytest.mark.parametrize("database", [-1, True, "1", 1.5, 2**31])
def test_a_number_that_is_not_one_is_refused(database: Any) -> None:
    with pytest.raises(DeclarationError, match="which is not a number from 0"):
        Keyspace("a", "b", database=database)
    with pytest.raises(DeclarationError, match="which is not a number from 0"):
        people.bind(database=database)


def test_a_database_that_the_server_lacks_is_an_error_of_the_connection(redis_url: str) -> None:
    with pytest.raises(KeywrightError, match="out of range"):
        connect(redis_url, people.bind(database=1_000_000))


def test_names_overlap_only_in_one_database() -> None:
    assert [finding for finding in check(people, pages) if finding.severity == "error"] == []
    together = check(people, pages.bind(database=0))
    assert [finding.code for finding in together if finding.severity == "error"] == ["overlapping-keyspaces"]
    floating = Keyspace("floating", "In any database.")

    class Other(Value[str], key="user:<user>", space=floating):
        """The same name."""

        user: Id

    errors = [finding for finding in check(people, floating) if finding.severity == "error"]
    assert [finding.code for finding in errors] == ["overlapping-keyspaces"]


def test_a_cluster_has_one_database(cluster_url: str) -> None:
    with connect(cluster_url, people.bind()) as db:
        db.run(User("a").set("x"))
        with pytest.raises(UsageError, match="'pages' is in database 2"):
            db.run(Page("a").set(1))
    with pytest.raises(KeywrightError, match=r"(?i)select is not allowed|out of range"):
        connect(cluster_url.removesuffix("/0"), pages.bind())
