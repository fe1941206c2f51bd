"""Batches of values that expire: one MSETEX where the server has it, else the same result by SETs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from keywright import (
    Call,
    Database,
    Id,
    Keyspace,
    Value,
    atomic,
    connect,
    expires_at,
    expires_in,
    gather_list,
)
from keywright.testing import RedisServer
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.model import Model
from new_valkey import new_binary
from old_redis import old_binary

space = Keyspace("cinema", "Seats that are held for a while.", prefix="cinema")
HOUR = timedelta(hours=1)
SEATS = [f"s{number}" for number in range(100)]
DENIED = ["ACL", "SETUSER", "usher", "reset", "on", ">ticket", "~*", "&*", "+@all", "-msetex"]


class Hold(Value[str], key="hold:<seat>", space=space, expiry=expires_in(HOUR)):
    """Who holds a seat for an hour."""

    seat: Id


class Spread(Value[str], key="spread:<seat>", space=space, expiry=expires_in(HOUR, jitter=0.5)):
    """Who holds a seat for about an hour."""

    seat: Id


class Until(Value[str], key="until:<seat>", space=space, expiry=expires_at(datetime(2100, 1, 1, tzinfo=UTC))):
    """Who holds a seat until a moment."""

    seat: Id


def held(kind: type[Hold | Spread | Until]) -> Call[Any]:
    return kind.set_many((seat, "ada") for seat in SEATS)


def gathered(kind: type[Hold | Spread | Until]) -> Call[Any]:
    return gather_list(kind(seat).set("ada") for seat in SEATS)


@pytest.fixture(scope="module")
def new_server() -> Iterator[RedisServer]:
    with RedisServer(tcp=True, binary=new_binary()) as server:
        yield server


@pytest.fixture
def server(new_server: RedisServer) -> RedisServer:
    new_server.text("FLUSHALL")
    new_server.text("CONFIG", "RESETSTAT")
    return new_server


def commands(server: RedisServer) -> dict[str, int]:
    """The writing commands that a server ran, and the calls that its rules rejected."""
    stats = server.text("INFO", "commandstats")
    found = re.findall(r"cmdstat_(set|mset|msetex):calls=(\d+).*?rejected_calls=(\d+)", stats)
    return {name: int(calls) + int(rejected) for name, calls, rejected in found}


def check_written(database: Database, kind: type[Hold | Spread | Until]) -> None:
    assert database.run(kind.get_many(SEATS)) == ["ada"] * len(SEATS)
    lives = database.run(gather_list(kind(seat).ttl() for seat in SEATS))
    assert all(life is not None and life > HOUR / 3 for life in lives)


@pytest.mark.parametrize("write", [held, gathered])
@pytest.mark.parametrize("kind", [Hold, Until])
def test_one_command_writes_many_values_that_expire_together(
    server: RedisServer, kind: type[Hold | Spread | Until], write: Any
) -> None:
    with connect(server.url) as database:
        database.run(write(kind))
        assert commands(server) == {"msetex": 1}
        check_written(database, kind)


@pytest.mark.parametrize("write", [held, gathered])
def test_values_that_expire_at_different_times_have_commands_of_their_own(
    server: RedisServer, write: Any
) -> None:
    with connect(server.url) as database:
        database.run(write(Spread))
        assert commands(server) == {"set": len(SEATS)}
        check_written(database, Spread)


@pytest.mark.parametrize("write", [held, gathered])
def test_a_user_who_may_not_run_the_command_writes_all_the_same(server: RedisServer, write: Any) -> None:
    server.text(*DENIED)
    with connect(f"redis://usher:ticket@127.0.0.1:{server.port}") as database:
        for _ in range(2):
            database.run(write(Hold))
        check_written(database, Hold)
    assert commands(server) == {"msetex": 1, "set": 2 * len(SEATS)}


def test_a_writer_with_generated_rules_for_a_new_server_may_run_the_command(server: RedisServer) -> None:
    password_hash = hashlib.sha256(b"ticket").hexdigest()
    described = Model("cinema", (space,)).described()
    rules = acl(described, AclRole.WRITER, server=AclServer.REDIS_8_4, password_hash=password_hash)
    server.call(*rules.as_command().split())
    with connect(f"redis://{rules.user}:ticket@127.0.0.1:{server.port}") as database:
        database.run(held(Hold))
        check_written(database, Hold)
    assert commands(server) == {"msetex": 1}


def test_in_a_transaction_the_command_is_not_tried(server: RedisServer) -> None:
    with connect(server.url) as database:
        database.run(atomic(held(Hold), spread=True))
        assert commands(server) == {"set": len(SEATS)}


def test_an_old_server_gets_commands_that_it_knows() -> None:
    with RedisServer(binary=old_binary()) as server, connect(server.url) as database:
        database.run(held(Hold))
        check_written(database, Hold)
