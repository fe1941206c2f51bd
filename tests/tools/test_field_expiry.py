"""Fields that expire on their own (Redis 7.4, Valkey 9) are visible to the audit and the explorer."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import redis

from audited import Sample, audited
from exploring import exploring, key_path
from keywright import Id, Keyspace, Map, Record
from keywright.testing import Raw, RedisServer
from keywright.tools.model import Model
from new_valkey import new_binary

post = Keyspace("post", "Parcels.")


class ParcelDetails(msgspec.Struct):
    sender: str
    note: str = ""


class Parcel(Record[ParcelDetails], key="parcel:<parcel>", space=post):
    """A parcel."""

    parcel: Id


class Weights(Map[Id, int], key="weights:<depot>", space=post):
    """The weights of parcels."""

    depot: Id


POST = Sample(Model("post", (post,)), (), lambda _: None, {})


@pytest.fixture(scope="module")
def new_server() -> Iterator[RedisServer]:
    with RedisServer(binary=new_binary()) as server:
        yield server


@pytest.fixture
def url(new_server: RedisServer) -> str:
    new_server.call("FLUSHALL")
    return new_server.url


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url, protocol=2) as client:
        client.hset("parcel:1", mapping={"sender": "ann", "note": "soon"})
        client.hset("parcel:2", mapping={"sender": "ben"})
        client.hset("weights:1", mapping={"1": "7"})
        yield client


def _expire(client: redis.Redis, key: str, *fields: str) -> None:
    Raw(client)("HPEXPIRE", key, 100_000, "FIELDS", len(fields), *fields)


def test_a_required_member_that_expires_is_a_finding_and_an_optional_one_is_not(
    url: str, client: redis.Redis
) -> None:
    assert audited(url, POST)[1] == []
    _expire(client, "parcel:1", "note")
    _expire(client, "weights:1", "1")
    assert audited(url, POST)[1] == []
    _expire(client, "parcel:2", "sender")
    (finding,) = audited(url, POST)[1]
    assert (finding.code, finding.name) == ("KW303", b"parcel:2")
    assert finding.reason == "has required members that expire"
    assert finding.found.startswith("sender in ")


def test_a_server_without_field_expiry_is_not_asked(redis_url: str, keywright_server: RedisServer) -> None:
    keywright_server.call("HSET", "parcel:1", "sender", "ann")
    assert audited(redis_url, POST)[1] == []


def test_the_explorer_shows_the_fields_that_expire(url: str, client: redis.Redis) -> None:
    _expire(client, "parcel:1", "note")
    with exploring(url, [post]) as explored:
        page = explored.get(key_path("parcel:1")).text
        assert "Fields expire" in page
        assert '<code>note</code> <span data-ttl="' in page
        assert "Fields expire" not in explored.get(key_path("parcel:2")).text
