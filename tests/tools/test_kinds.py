"""The tools on kinds that interpret a string or a sorted set, such as HyperLogLog."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest

from audited import Sample, audited
from exploring import exploring, key_path
from keywright import (
    BitFields,
    Bitmap,
    Bits,
    Call,
    Database,
    Geo,
    HyperLogLog,
    Id,
    Key,
    Keyspace,
    Point,
    SortedSet,
    check,
    connect,
)
from keywright.errors import ServerRefusedError
from keywright.testing import RedisServer, as_user
from keywright.testing.damage import plant
from keywright.testing.runs import Raw
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.describe.inspection import inspect
from keywright.tools.describe.plain import inspected
from keywright.tools.diff import Severity, diff
from keywright.tools.docs.formats import Format, written
from keywright.tools.model import Model

space = Keyspace("interpreted", "Kinds that interpret what others store.", prefix="k")
model = Model("interpreted", (space,))
PASSWORD = "s3cret"


class Visitors(HyperLogLog[Id], key="visitors:<page>", space=space):
    """Who visited a page."""

    page: Id


class Taken(Bitmap, key="taken:<hall>", space=space, bits=64):
    """The taken seats of a hall."""

    hall: Id


class State(msgspec.Struct):
    level: Annotated[int, Bits(5)]
    mood: Annotated[int, Bits(4, signed=True)]


class Player(BitFields[State], key="player:<player>", space=space):
    """The state of a player."""

    player: Id


class Stops(Geo[Id], key="stops:<line>", space=space):
    """The stops of a line."""

    line: Id


class Use(NamedTuple):
    """One kind: how a key of it is filled and read, and its form in the tools."""

    key: Callable[[str], Any]
    fill: Callable[[Any], Call[Any]]
    read: Callable[[Any], Call[Any]]
    got: Any
    """The data that `keywright get` prints."""
    page: str
    """A part of its page in the explorer."""
    documented: str
    other: Callable[[Keyspace], object]
    """Declares the same template with another type of content."""


def _visitors(other: Keyspace) -> object:
    class Visitors(HyperLogLog[int], key="visitors:<page>", space=other):
        """Who visited a page."""

        page: Id

    return Visitors


def _taken(other: Keyspace) -> object:
    class Taken(Bitmap, key="taken:<hall>", space=other, bits=8):
        """The taken seats of a hall."""

        hall: Id

    return Taken


def _stops(other: Keyspace) -> object:
    class Stops(SortedSet[Id, int], key="stops:<line>", space=other):
        """The stops of a line."""

        line: Id

    return Stops


class Swapped(msgspec.Struct):
    mood: Annotated[int, Bits(4, signed=True)]
    level: Annotated[int, Bits(5)]


def _player(other: Keyspace) -> object:
    class Player(BitFields[Swapped], key="player:<player>", space=other):
        """The state of a player."""

        player: Id

    return Player


USES = {
    "bitmap": Use(
        Taken,
        lambda key: key.set_many({3: True, 17: True}),
        lambda key: key.get_many([3]),
        {"bits": 24, "set": 2, "first": [3, 17]},
        "17",
        "at most 64 bits",
        _taken,
    ),
    "bit fields": Use(
        Player,
        lambda key: key.put(State(7, -3)),
        lambda key: key.get(),
        {"level": 7, "mood": -3},
        "mood",
        "an integer from -8 to 7 (4 bits, from bit 5)",
        _player,
    ),
    "geo": Use(
        Stops,
        lambda key: key.add("m", Point(13, 38)),
        lambda key: key.within(Point(13, 38), 10),
        [{"member": "m", "longitude": pytest.approx(13, abs=1e-5), "latitude": pytest.approx(38, abs=1e-5)}],
        "38.00000°, 13.00000°",
        "a position: longitude and latitude",
        _stops,
    ),
    "hyperloglog": Use(
        Visitors,
        lambda key: key.add("a", "b", "c"),
        lambda key: key.estimate(),
        {"estimate": 3},
        "an estimate",
        "an estimate of distinct members",
        _visitors,
    ),
}

each_kind = pytest.mark.parametrize("use", USES.values(), ids=USES)


def _sample(use: Use) -> Sample:
    return Sample(model, (), lambda db: _fill(db, use), {})


def _fill(db: Database, use: Use, count: int = 20) -> None:
    for number in range(count):
        db.run(use.fill(use.key(f"n{number}")))


@pytest.fixture
def db(redis_url: str) -> Iterator[Database]:
    with connect(redis_url) as opened:
        yield opened


def test_the_keyspace_is_proved() -> None:
    assert [finding for finding in check(space) if finding.severity == "error"] == []


@each_kind
def test_an_audit_finds_nothing_in_what_the_kind_writes(use: Use, db: Database, redis_url: str) -> None:
    _fill(db, use)
    report, findings = audited(redis_url, _sample(use))
    assert findings == []
    assert sum(row.keys for row in report.rows) == 20


@each_kind
def test_an_audit_finds_all_planted_damage(use: Use, db: Database, redis_url: str) -> None:
    _fill(db, use)
    planted = {(fault.code, fault.name) for fault in plant(db, [space], each=3)}
    assert {"KW201", "KW202"} <= {code for code, _ in planted}
    _, findings = audited(redis_url, _sample(use))
    assert {(finding.code, finding.name) for finding in findings} == planted


@each_kind
def test_its_value_is_shown_as_json(use: Use, db: Database) -> None:
    key: Key = use.key("n0")
    db.run(use.fill(key))
    found = db.run(inspect(key))
    assert found is not None
    assert inspected(found) == use.got


@each_kind
def test_the_explorer_shows_it(use: Use, db: Database, redis_url: str) -> None:
    key: Key = use.key("n0")
    db.run(use.fill(key))
    with exploring(redis_url, [space]) as explored:
        page = explored.surveyed().get(key_path(db.context.name(key)))
    assert page.status_code == 200
    assert use.page in page.text


@each_kind
def test_the_document_describes_its_content(use: Use) -> None:
    assert use.documented in written(model.described(), Format.MARKDOWN)


@each_kind
def test_another_type_of_content_is_a_breaking_change(use: Use) -> None:
    other = Keyspace("interpreted", space.description, prefix="k")
    use.other(other)
    template = use.key("a").declaration.template.source
    changes = diff(model.described(), Model("interpreted", (other,)).described()).changes
    own = [change for change in changes if change.subject == template]
    assert Severity.BREAKING in {change.severity for change in own}


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
@each_kind
def test_a_reader_reads_and_does_not_write_and_a_writer_does_both(
    use: Use, version: AclServer, keywright_server: RedisServer, redis_url: str
) -> None:
    for role in (AclRole.WRITER, AclRole.READER):
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
        rules = acl(model.described(), role, server=version, password_hash=digest)
        keywright_server.call(*rules.as_command().split())
        try:
            with connect(as_user(keywright_server.tcp_url, rules.user, PASSWORD)) as user:
                if role is AclRole.WRITER:
                    user.run(use.fill(use.key("n0")))
                else:
                    with pytest.raises(ServerRefusedError, match="NOPERM"):
                        user.run(use.fill(use.key("n0")))
                user.run(use.read(use.key("n0")))
        finally:
            keywright_server.call("ACL", "DELUSER", rules.user)


def test_an_inspected_estimate_does_not_change_the_key(db: Database, raw: Raw) -> None:
    db.run(Visitors("a").add("x", "y"))
    before = raw("GET", "k:visitors:a")
    db.run(inspect(Visitors("a")))
    assert raw("GET", "k:visitors:a") == before
