"""Backlinks: the keys that refer to a key, with the cost of finding them."""

from __future__ import annotations

from typing import Any

import garden
from exploring import Explored, exploring
from keywright.testing.runs import Raw


def followed(explored: Explored, path: str) -> tuple[set[tuple[str, str]], Any]:
    """Return the references and names of all pages, and the last document."""
    found: set[tuple[str, str]] = set()
    while True:
        document = explored.get(path, Accept="application/json").json()
        found |= {(link["reference"], link["name"]) for link in document["links"]}
        if document["next"] is None:
            return found, document
        path = document["next"]


def fill(raw: Raw) -> None:
    raw("SET", "g:v1:plant:p", "rose")
    raw("SET", "g:v1:counter:p", "1")
    raw("SET", "g:v1:counter:q", "1")
    raw("SET", "g:v1:value:b1", "p")
    raw("SET", "g:v1:value:b2", "other")
    raw("HSET", "g:v1:record:b1", "plant", "p")
    raw("HSET", "g:v1:record:b2", "plant", "other")
    raw("HSET", "g:v1:record:b3", "width", "broken")
    raw("SADD", "g:v1:set:b1", "p", "q")
    raw("ZADD", "g:v1:sorted:b1", 1, "p")
    raw("RPUSH", "g:v1:list:b1", "q", "p")
    raw("HSET", "g:v1:map:b1", "r", "p")
    raw("XADD", "g:v1:stream:b1", "1-1", "plant", "p", "litres", "1")
    raw("RPUSH", "g:v1:value:wrong-type", "p")


EXPECTED = {
    ("counted", "g:v1:counter:p"),
    ("planted", "g:v1:value:b1"),
    ("in the bed", "g:v1:record:b1"),
    ("in the set", "g:v1:set:b1"),
    ("ranked", "g:v1:sorted:b1"),
    ("queued", "g:v1:list:b1"),
    ("in the row", "g:v1:map:b1"),
    ("watered", "g:v1:stream:b1"),
}


def test_every_reference_to_a_key_is_found_and_no_other(redis_url: str, raw: Raw) -> None:
    fill(raw)
    for number in range(3000):
        raw("SET", f"g:v1:value:many{number}", "other" if number % 100 else "p")
    with exploring(redis_url, [garden.garden], garden.SAMPLE.bindings) as explored:
        explored.surveyed()
        found, last = followed(explored, "/key/backlinks?name=g:v1:plant:p")
        none, _ = followed(explored, "/key/backlinks?name=g:v1:plant:nobody")
        unknown = explored.get("/key/backlinks?name=nothing").status_code
        no_source = explored.get("/key/backlinks?name=g:v1:tools").text
        hostile = explored.get("/key/backlinks?name=g:v1:plant:p&cursor=0-99-5-1").status_code
    assert found == EXPECTED | {("planted", f"g:v1:value:many{number}") for number in range(0, 3000, 100)}
    assert none == set()
    assert last["looked_at"] >= 3000
    assert last["about"] >= 3010
    assert (unknown, hostile) == (404, 200)
    assert "No declared reference leads to keys of Tools" in no_source


def test_a_value_too_large_to_read_is_counted(redis_url: str, raw: Raw) -> None:
    raw("HSET", "g:v1:record:b1", "plant", "p", "x", "y" * 600_000)
    raw("SET", "g:v1:plant:p", "rose")
    with exploring(redis_url, [garden.garden], garden.SAMPLE.bindings) as explored:
        found, last = followed(explored, "/key/backlinks?name=g:v1:plant:p")
    assert found == set()
    assert last["too_large"] == 1


def test_backlinks_are_found_on_a_cluster(cluster_url: str, raw_cluster: Raw) -> None:
    fill(raw_cluster)
    with exploring(cluster_url, [garden.garden], garden.SAMPLE.bindings) as explored:
        found, _ = followed(explored, "/key/backlinks?name=g:v1:plant:p")
    assert found == EXPECTED
