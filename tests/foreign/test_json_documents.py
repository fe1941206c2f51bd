"""JSON documents that another program writes; collected where KEYWRIGHT_JSON_MODULE names the module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import redis

from audited import Sample, audited
from inferred_modules import declared_space, inferred_server
from keywright import Id, JsonDocument, Keyspace, check
from keywright.testing import RedisServer
from keywright.tools import Model
from new_valkey import new_binary


class Animal(msgspec.Struct):
    """A JSON model of redis-om."""

    name: str
    legs: int
    pk: str


animals = Keyspace("animals", "Models of redis-om.")


class AnimalOf(JsonDocument[Animal], key=":zoo.Animal:<pk>", space=animals):
    """One animal."""

    pk: Id


def fill(client: Any) -> None:
    for number in range(30):
        pk = f"01ARZ3NDEKTSV4RRFFQ69G5F{number:02}"
        document = f'{{"pk": "{pk}", "name": "n", "legs": 4}}'
        client.execute_command("JSON.SET", f":zoo.Animal:{pk}", "$", document)


ZOO = Sample(Model("animals", (animals,)), (), lambda _: None, {})


@pytest.fixture
def server() -> Iterator[RedisServer]:
    options = {"loadmodule": os.environ["KEYWRIGHT_JSON_MODULE"]}
    with RedisServer(tcp=True, binary=new_binary(), options=options) as server:
        yield server


def test_documents_are_declared_proved_and_audited(server: RedisServer) -> None:
    assert [finding for finding in check(animals) if finding.severity == "error"] == []
    with redis.Redis.from_url(server.tcp_url) as client:
        fill(client)
        report, _ = audited(server.url, ZOO)
        assert (report.counts, report.keys, report.tally.outside) == ({}, 30, 0)
        odd = '{"pk": "odd", "name": "n", "legs": "many"}'
        client.execute_command("JSON.SET", ":zoo.Animal:odd", "$", odd)
        report, _ = audited(server.url, ZOO)
        assert report.counts == {"KW202": 1}


def test_documents_are_inferred(server: RedisServer) -> None:
    with redis.Redis.from_url(server.tcp_url) as client:
        fill(client)
        client.execute_command("JSON.SET", "whole:large", "$", f'{{"text": "{"x" * 100_000}"}}')
    found = inferred_server(server.url)
    assert [finding for finding in check(declared_space(found)) if finding.severity == "error"] == []
    assert {key.declared.template.source: key.kind for key in found.keys} == {
        ":zoo.Animal:<animal>": "JsonDocument[ZooAnimalDetails]",
        "whole:large": "Opaque",
    }
    assert "    legs: int\n    name: str\n    pk: str\n" in found.text
