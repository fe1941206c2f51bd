"""A journal is data that others may write: what it asks for is carried out only if its author could do it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from keywright import Context, Counter, Database, Id, Keyspace, RoundTrip, Value, connect, recover
from keywright.errors import ConflictError, IntentError, ServerRefusedError, UsageError
from keywright.keyspace.commits.plans import CommitPart, CommitPlan, Intent, Journal, Marker
from keywright.keyspace.commits.recovery import abandoned, discard_intent
from keywright.operations import Command, Effect, Operation, as_is, commit, equals
from keywright.testing import RedisCluster, as_user
from keywright.testing.runs import Raw
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.model import Model
from kinship import HomeOf, Mortal, Moves, Residents, assert_whole, desk, home, survey, town
from old_redis import is_redis_6

Opener = Callable[..., Database]

NOW = timedelta(0)
PASSWORD = "s3cret"

vault = Keyspace("vault", "Keys of another model on the same servers.")


class Treasure(Value[str], key="treasure:<id>", space=vault):
    """What writers of the town must not reach."""

    id: Id


class Opened(Counter, key="opened", space=vault):
    """How often the vault was opened."""


@pytest.fixture
def database(cluster_url: str, open_database: Opener) -> Database:
    return open_database(cluster_url)


@pytest.fixture
def everywhere(cluster_url: str) -> Iterator[Database]:
    """A privileged process that uses both keyspaces, by whose clock everyone else is silent for long."""
    ahead = timedelta(minutes=1)
    with connect(cluster_url, town.bind(), vault.bind(), clock=lambda: datetime.now(UTC) + ahead) as db:
        yield db


def _part(*names: bytes, write: list[bytes] | None = None, space: str = "town") -> CommitPart:
    """Return an exclusive part that sets its last name."""
    write = write or [b"SET", b"planted"]
    return CommitPart(space, "", list(names), [(0, "any", [])], [(len(names) - 1, write)])


def _planted(raw: Raw, *parts: CommitPart, state: bytes = b"C", markers: bool = True) -> Intent:
    """Write an intent of the town's journal as the owner of its keyspace could, with all its markers."""
    plan = msgspec.msgpack.encode(CommitPlan(0, b"salt", list(parts)))
    intent = Intent.of(Journal("town", ""), plan)
    _store(raw, intent, state + plan)
    for part in parts if markers else ():
        raw("HSET", Context().name(part.marker), *part.field(intent))
    return intent


def _store(raw: Raw, intent: Intent, stored: bytes) -> None:
    raw("HSET", Context().name(intent.home), intent.id, stored)


def _until_decided(database: Database, call: Any) -> None:
    process = Mortal(database, call)
    while not process.wires[0].operation.name.startswith("decide"):
        process.step()
    process.step()


ANN, BOB = b"person:ann:home", b"person:bob:home"

IMPERMISSIBLE: dict[str, list[CommitPart]] = {
    "a key of another keyspace": [_part(ANN), _part(b"treasure:1")],
    "a name that no template has": [_part(ANN), _part(b"anything")],
    "a key of a keyspace that is not used": [_part(ANN), _part(b"treasure:1", space="unheard")],
    "the journal itself": [_part(ANN), _part(b"keywright:intents:town::0", write=[b"HSET", b"a", b"b"])],
    "another hash tag than that of the marker": [_part(ANN, BOB)],
    "no part of its own keyspace": [_part(b"treasure:1", space="vault")],
    "two parts with one marker": [_part(ANN), _part(ANN)],
    "no parts": [],
    "a command on several keys": [_part(b"people", write=[b"SMOVE", b"housed", b"x"])],
    "a command that is not a write": [_part(ANN, write=[b"EVAL", b"return 1"])],
    "a command of another type": [_part(b"people", write=[b"SET", b"x"])],
    "no command": [CommitPart("town", "", [ANN], [(0, "any", [])], [(0, [])])],
    "a write without a key": [CommitPart("town", "", [ANN], [(0, "any", [])], [(7, [b"SET", b"x"])])],
}


@pytest.mark.parametrize("fault", IMPERMISSIBLE)
def test_an_impermissible_intent_is_set_aside_and_does_not_stop_others(
    fault: str, everywhere: Database, raw_cluster: Raw
) -> None:
    raw_cluster("SET", "treasure:1", "gold")
    intent = _planted(raw_cluster, *IMPERMISSIBLE[fault])
    before = survey(raw_cluster)
    for person in ("cleo", "dora"):
        _until_decided(everywhere, home.assign(person, "six"))
    recovered = everywhere.run(recover(grace=NOW))
    assert (recovered.finished, recovered.undone, recovered.waiting) == (2, 0, 0)
    assert [error.intent for error in recovered.set_aside] == [intent.id.decode()]
    assert everywhere.run(Residents("six").members()) == {"cleo", "dora"}
    for person in ("cleo", "dora"):
        everywhere.run(home.clear(person))
    assert survey(raw_cluster) == before


@pytest.mark.parametrize(
    "stored",
    [
        *(b"", b"C", b"Cgarbage", b"\xff\x00", b"C" + msgspec.msgpack.encode([1]), b"X"),
        b"C\x93\x01\xc4\x01s\x91\x95\xa2\xff\xff\xa0\x90\x90\x90",  # the name of the space is not UTF-8
        b"C\x94\x01\xc4\x01s\x90" + b"\x91" * 100_000 + b"\x90",
    ],
    ids=lambda stored: repr(stored[:30]),
)
def test_an_unreadable_intent_is_set_aside(stored: bytes, database: Database, raw_cluster: Raw) -> None:
    _store(raw_cluster, Intent(b"b" * 40, Journal("town", "").shards()[11]), stored)
    assert [error.intent for error in database.run(recover(grace=NOW)).set_aside] == ["b" * 40]


def test_a_plan_that_was_changed_after_it_was_prepared_is_set_aside(
    database: Database, everywhere: Database, raw_cluster: Raw
) -> None:
    _until_decided(database, home.assign("ann", "one", also=[Treasure("1").set("gold")]))
    name = next(name for name in raw_cluster.names() if name.startswith(b"keywright:intents:town:"))
    [(intent, stored)] = raw_cluster("HGETALL", name).items()
    raw_cluster("HSET", name, intent, stored.replace(b"gold", b"lead"))
    assert everywhere.run(recover()).set_aside
    assert raw_cluster("GET", "treasure:1") is None
    raw_cluster("HSET", name, intent, stored)
    assert everywhere.run(recover()).finished == 1
    assert raw_cluster("GET", "treasure:1") == b"gold"
    assert_whole(_without_the_vault(raw_cluster))


def _without_the_vault(raw: Raw) -> Any:
    found = survey(raw)
    return found._replace(values={name: v for name, v in found.values.items() if "treasure" not in name})


def test_whoever_meets_a_marker_of_an_intent_that_is_set_aside_is_told_and_changes_nothing(
    database: Database, raw_cluster: Raw
) -> None:
    raw_cluster("SET", ANN, "one")
    raw_cluster("SADD", "house:one:residents", "ann")
    raw_cluster("SADD", "housed", "ann")
    intent = _planted(raw_cluster, _part(ANN), _part(b"anything"))
    for call in (home.of("ann"), home.replace("ann", "two"), home.clear("ann")):
        with pytest.raises(IntentError, match=rf"'anything'.*not a key.*--remove {intent.id.decode()}"):
            database.run(call)
    assert raw_cluster("GET", ANN) == b"one"
    assert [each.fault is not None for each in database.run(abandoned(town))] == [True]
    assert database.run(discard_intent(town, intent.id.decode())) is True
    assert database.run(discard_intent(town, intent.id.decode())) is False
    assert database.run(home.of("ann")) == "one"
    assert database.run(home.replace("ann", "two")) is True
    assert_whole(survey(raw_cluster)._replace(journal=frozenset()))


def test_a_marker_that_names_no_intent_is_reported(database: Database, raw_cluster: Raw) -> None:
    raw_cluster("HSET", "keywright:held:town::{person:ann:home}", "x", "garbage")
    with pytest.raises(Exception, match="the name of an intent, but holds b'garbage'"):
        database.run(home.of("ann"))


def test_an_intent_that_can_be_settled_cannot_be_discarded(database: Database, raw_cluster: Raw) -> None:
    _until_decided(database, home.assign("ann", "one"))
    [found] = database.run(abandoned(town))
    assert (found.state, found.fault) == ("C", None)
    with pytest.raises(UsageError, match="is not set aside"):
        database.run(discard_intent(town, found.intent))
    assert database.run(recover()).finished == 1


def test_a_recovery_on_one_server_sends_nothing(redis_url: str, raw: Raw) -> None:
    raw("SET", "treasure:1", "gold")
    _planted(raw, _part(ANN), _part(b"treasure:1", space="vault"))
    raw("HSET", "keywright:intents:0", "0" * 24, "Cgarbage")
    trips: list[RoundTrip] = []
    with connect(redis_url, town.bind(), vault.bind(), observers=[trips.append]) as db:
        trips.clear()
        assert db.run(recover()) == (0, 0, 0, ())
    assert trips == []
    assert raw("GET", "treasure:1") == b"gold"


def test_a_recovery_needs_to_know_its_keyspaces(cluster_url: str, database: Database) -> None:
    _until_decided(database, home.assign("ann", "one"))
    with connect(cluster_url) as db:
        with pytest.raises(UsageError, match=r"recover\(shop\)"):
            db.run(recover())
        assert db.run(recover(town)).finished == 1


def test_intents_of_the_former_version_are_reported(database: Database, raw_cluster: Raw) -> None:
    raw_cluster("HSET", "keywright:intents:a", "a" * 24, "Pplan")
    raw_cluster("SET", "treasure:1", "gold")
    [error] = database.run(recover()).set_aside
    assert "1 intents of Keywright 0.1.0" in str(error)
    assert "Run recover() of that version" in str(error)
    assert raw_cluster("HLEN", "keywright:intents:a") == 1


def test_an_undecided_intent_from_a_clock_far_ahead_is_undone(
    cluster_url: str, database: Database, open_database: Opener, raw_cluster: Raw
) -> None:
    ahead = open_database(cluster_url, timedelta(days=365))
    process = Mortal(ahead, home.assign("ann", "one"))
    while not process.wires[0].operation.name.startswith("decide"):
        process.step()
    assert database.run(recover()).undone == 1
    assert raw_cluster.names() == set()


def test_a_commit_over_two_keyspaces_is_recovered_by_whoever_uses_both(
    cluster_url: str, database: Database, everywhere: Database, raw_cluster: Raw
) -> None:
    """Its intent is in the journal of its first check; where only one is used, it is left to others."""
    guarded = [equals(HomeOf("ann"), None), equals(Treasure("1"), None)]
    writes = [HomeOf("ann").set("one"), Treasure("1").set("gold"), Opened().add()]
    _until_decided(everywhere, commit("two", guarded, writes))
    journals = {name for name in raw_cluster.names() if name.startswith(b"keywright:intents:")}
    assert {name.split(b":")[2] for name in journals} == {b"town"}
    [set_aside] = database.run(recover()).set_aside
    assert "keyspace 'vault'" in str(set_aside)
    with connect(cluster_url, vault.bind()) as other, pytest.raises(ConflictError):
        other.run(commit("take", [equals(Treasure("1"), None)], [Treasure("1").delete()]))
    assert everywhere.run(recover()).finished == 1
    values = survey(raw_cluster).values
    assert (values["person:ann:home"], values["treasure:1"], values["opened"]) == ("one", "gold", "1")


def test_a_reader_that_looks_while_a_commit_is_applied_sees_its_result(
    database: Database, everywhere: Database, raw_cluster: Raw
) -> None:
    """A reader that saw the other side of the relation must not see this one as it was before."""
    _until_decided(database, desk.assign("ann", "one"))
    reader = Mortal(everywhere, desk.of("ann"))
    first = reader.send([0])
    everywhere.run(recover())
    second = reader.send([1])
    try:
        reader.receive([*first, *second])
        found = reader.finish()
    except StopIteration as stop:
        found = stop.value
    assert found == "one"


@contextmanager
def _users(cluster: RedisCluster, *models: Model) -> Iterator[list[str]]:
    """Yield the names of users with the generated rules of writers, on every node."""
    digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
    server = AclServer.REDIS_6_2 if is_redis_6(cluster.nodes[0]) else AclServer.REDIS_7_0
    described = [model.described() for model in models]
    rules = [acl(each, AclRole.WRITER, server=server, password_hash=digest) for each in described]
    with ExitStack() as users:
        for node in cluster.nodes:
            for each in rules:
                node.call(*each.as_command().split())
                users.callback(node.call, "ACL", "DELUSER", each.user)
        yield [each.user for each in rules]


def test_a_writer_of_one_model_gains_nothing_through_the_journal_of_a_process_that_serves_two(
    keywright_cluster: RedisCluster, cluster_url: str, everywhere: Database, raw_cluster: Raw
) -> None:
    raw_cluster("SET", "treasure:1", "gold")
    intent = _planted(raw_cluster, _part(ANN), _part(b"treasure:1", space="vault"), markers=False)
    raw_cluster("FLUSHALL")
    raw_cluster("SET", "treasure:1", "gold")
    plan = CommitPlan(0, b"salt", [_part(ANN), _part(b"treasure:1", space="vault")])
    with _users(keywright_cluster, Model("town", (town,))) as [user]:
        with connect(as_user(cluster_url, user, PASSWORD)) as mallory:
            stored = b"C" + msgspec.msgpack.encode(plan)
            mallory.run(_hset(intent.home, intent.id, stored))
            mallory.run(_hset(plan.parts[0].marker, *plan.parts[0].field(intent)))
            for refused in (
                _hset(plan.parts[1].marker, *plan.parts[1].field(intent)),
                _hset(Journal("vault", "").shards()[0], b"0" * 40, b"Cgarbage"),
                Treasure("1").set("lead"),
            ):
                with pytest.raises(ServerRefusedError, match="NOPERM"):
                    mallory.run(refused)
        everywhere.run(recover())
        assert raw_cluster("GET", "treasure:1") == b"gold"


def _hset(key: Any, field: bytes, value: bytes) -> Command[Any]:
    return Command(Operation("plant", b"HSET", Effect.ONCE), key, (field, value), as_is)


def test_the_markers_of_two_keyspaces_on_one_hash_tag_are_apart(
    database: Database, everywhere: Database, raw_cluster: Raw
) -> None:
    other = Keyspace("suburb", "Names of the town, declared by another model.")

    class Moves2(Counter, key="moves", space=other):
        """The same name, for another program."""

    everywhere.run(Moves2().get())
    call = commit("count", [equals(HomeOf("ann"), None)], [Moves().add(), HomeOf("ann").set("one")])
    process = Mortal(database, call)
    while not process.wires[0].operation.name.startswith("decide"):
        process.step()
    assert raw_cluster("EXISTS", Context().name(Marker("town", "", "moves"))) == 1
    assert raw_cluster("EXISTS", Context().name(Marker("suburb", "", "moves"))) == 0
