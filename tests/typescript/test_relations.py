"""Both languages change the same relations at the same time; raw reads and the audit judge what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import redis

import shelf
from audited import Sample, audited
from keywright import Call, connect
from keywright.errors import ConflictError, TakenError
from keywright.tools.plugins import load_model
from keywright_meetup.schema import channel_of_series, meetup, series_of_event
from typescript_project import NodeProject

OPERATIONS = 400
IDS = 4
RELATIONS = ("KW402", "KW403", "KW404", "KW405")


def _at_once(
    project: NodeProject, program: str, url: str, ours: Callable[[], dict[str, int]]
) -> list[dict[str, int]]:
    """Run a program with both clients, and the changes of this process, at once. Return what each did."""
    programs = [
        project.start(program, client, url, seed, str(OPERATIONS))
        for client, seed in (("ioredis", "7"), ("node-redis", "11"))
    ]
    for each in programs:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in programs:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    outcomes = [ours(), *(json.loads(each.communicate(timeout=120)[0]) for each in programs)]
    assert [each.returncode for each in programs] == [0, 0]
    assert all(each["changed"] > 0 for each in outcomes), outcomes
    return outcomes


def test_relations_stay_whole_while_both_languages_change_them(project: NodeProject, tcp_url: str) -> None:
    _, *theirs = _at_once(project, "relate", tcp_url, partial(_changes, tcp_url))
    assert all(each["taken"] > 0 for each in theirs), theirs
    server = redis.Redis.from_url(tcp_url, decode_responses=True)
    assert _pairs(server, "event_series:*:discord_channel") == {
        (series, channel) for channel, series in _pairs(server, "discord_channel:*:event_series")
    }
    forward = _pairs(server, "meetup_event:*:event_series")
    inverse = {
        (event, name.split(":")[1])
        for name in server.scan_iter("event_series:*:meetup_events")
        for event in server.smembers(name)
    }
    assert forward == inverse
    assert server.smembers("meetup_events") == {event for event, _ in forward}
    sample = Sample(load_model("meetup"), (meetup.bind(),), lambda _: None, {})
    _, findings = audited(tcp_url, sample)
    assert [each for each in findings if each.code in RELATIONS] == []


def test_many_to_many_and_an_index_stay_whole_while_both_languages_change_them(
    project: NodeProject, tcp_url: str
) -> None:
    _at_once(project, "shelve", tcp_url, partial(_shelved, tcp_url))
    server = redis.Redis.from_url(tcp_url, decode_responses=True)
    forward = {
        (name.split(":")[1], tag) for name in server.scan_iter("book:*:tags") for tag in server.smembers(name)
    }
    inverse = {
        (book, name.split(":")[1])
        for name in server.scan_iter("tag:*:books")
        for book in server.smembers(name)
    }
    assert forward == inverse
    books = {name.split(":")[1] for name in server.scan_iter("book:*") if name.count(":") == 1}
    assert server.smembers("books") == books
    sample = Sample(shelf.model, (shelf.shelf.bind(),), lambda _: None, {})
    _, findings = audited(tcp_url, sample)
    assert findings == []


def _shelved(url: str) -> dict[str, int]:
    """Change the shelf from Python. Return how many calls changed something."""
    random = Random(5)
    found = {"changed": 0}
    with connect(url, shelf.shelf.bind()) as db:
        for _ in range(OPERATIONS):
            book, tag, other = f"b{random.randrange(5)}", f"t{random.randrange(4)}", f"t{random.randrange(4)}"
            title = shelf.Book(book).set("a title")
            made: list[Call[Any]] = [
                shelf.tags_of_book.assign(book, tag),
                shelf.tags_of_book.clear(book, tag),
                shelf.tags_of_book.replace(book, [tag, other]),
                shelf.all_books.put(shelf.Book(book), title).map(lambda _: True),
                shelf.all_books.delete(shelf.Book(book)),
            ]
            with suppress(ConflictError):
                found["changed"] += bool(db.run(random.choice(made)))
    return found


def _pairs(server: Any, pattern: str) -> set[tuple[str, str]]:
    return {(name.split(":")[1], server.get(name)) for name in server.scan_iter(pattern)}


def _changes(url: str) -> dict[str, int]:
    """Change the same relations from Python. Return how many calls changed something."""
    random = Random(3)
    found = {"changed": 0, "refused": 0}
    with connect(url, meetup.bind()) as db:
        for _ in range(OPERATIONS):
            series, event = f"series{random.randrange(IDS)}", f"event{random.randrange(2 * IDS)}"
            channel = random.randrange(IDS) + 1
            made: list[Callable[[], Call[Any]]] = [
                partial(channel_of_series.assign, series, channel),
                partial(channel_of_series.replace, series, channel),
                partial(channel_of_series.clear, series),
                partial(channel_of_series.clear_inverse, channel),
                partial(series_of_event.assign, event, series),
                partial(series_of_event.replace, event, series),
                partial(series_of_event.clear, event),
                partial(series_of_event.clear_inverse, series),
            ]
            call = random.choice(made)
            try:
                found["changed"] += bool(db.run(call()))
            except (ConflictError, TakenError):
                found["refused"] += 1
    return found
