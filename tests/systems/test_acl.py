"""Access rules on a real server: a user with them can use the model, and nothing else."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from systems.discord.tests import discord_sample

import keywright.keyspace.kinds
import migrating
from audit_samples import SAMPLES
from audited import audited
from cli_spaces import kinds
from examples import bookshop
from keywright import Call, Database, Id, Keyspace, Secret, SortedSet, Value, connect, erase, gather, recover
from keywright.errors import EngineError, ServerRefusedError, UsageError
from keywright.keyspace import key as key_module
from keywright.keyspace.call import Plain
from keywright.keyspace.storage import Storage
from keywright.operations import Effect, Operation
from keywright.testing import RedisCluster, RedisServer, as_user
from keywright.testing.damage import plant
from keywright.tools.acl import ANY_READS, ANY_WRITES, READS, WRITES, AclRole, AclServer, acl
from keywright.tools.describe.globs import example_of
from keywright.tools.describe.inspection import inspect
from keywright.tools.model import Model
from keywright.tools.plugins import load_model, model_names
from keywright_discord.layouts import LAYOUTS
from keywright_meetup import schema as meetup
from keywright_meetup.schema import people, series_of_event
from keywright_openmod import schema as openmod
from keywright_openmod.schema import CachedUser
from keywright_registry import counters, lsn
from keywright_registry import schema as registry
from keywright_registry.rate_limit import RateLimiter
from old_redis import old_binary

PASSWORD = "s3cret"
HASH = hashlib.sha256(PASSWORD.encode()).hexdigest()
HOUR = timedelta(hours=1)
NOW = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture
def server(keywright_server: RedisServer, redis_url: str) -> Iterator[RedisServer]:
    yield keywright_server
    users = keywright_server.call("ACL", "USERS")
    assert isinstance(users, list)
    for user in users:
        if isinstance(user, bytes) and user != b"default":
            keywright_server.call("ACL", "DELUSER", user)


@contextmanager
def logged_in(
    server: RedisServer, model: Model, role: AclRole, version: AclServer = AclServer.REDIS_7_0, **options: Any
) -> Iterator[Database]:
    """Yield a database opened by a user with these rules, which are sent to the server as printed."""
    rules = acl(model.described(), role, server=version, password_hash=HASH, **options)
    assert server.call(*rules.as_command().split()) in (b"OK", "OK")
    url = as_user(server.tcp_url, rules.user, PASSWORD)
    with connect(url) as db:
        yield db


def refused(db: Database, call: Call[Any]) -> bool:
    with pytest.raises(ServerRefusedError) as error:
        db.run(call)
    return error.value.reply.startswith("NOPERM")


def _operations() -> dict[str, Operation]:
    """Return every command that a kind of key sends, from the modules that declare them."""
    found = pkgutil.iter_modules(keywright.keyspace.kinds.__path__, "keywright.keyspace.kinds.")
    modules = [key_module, *(importlib.import_module(each.name) for each in found)]
    values = [value for module in modules for value in vars(module).values()]
    values += [each for value in values if isinstance(value, dict) for each in value.values()]
    return {value.verb.decode().lower(): value for value in values if isinstance(value, Operation)}


def _storages(storage: type[Storage]) -> list[type[Storage]]:
    return [storage, *(each for below in storage.__subclasses__() for each in _storages(below))]


def test_every_command_of_every_kind_is_known_as_read_or_write() -> None:
    own = _storages(Storage)
    read = (*READS.values(), ANY_READS, *(storage.reads for storage in own))
    written = (*WRITES.values(), ANY_WRITES, *(storage.writes for storage in own))
    reads = {command.partition("|")[0] for commands in read for command in commands}
    writes = {command for commands in written for command in commands}
    found = _operations()
    assert len(found) > 60
    assert not reads & writes
    wrong = [
        verb
        for verb, operation in found.items()
        if verb
        not in (reads if operation.effect is Effect.READ else writes | {"hpexpire", "hpersist", "msetex"})
    ]
    assert wrong == []


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
@pytest.mark.parametrize("role", AclRole)
@pytest.mark.parametrize("model", model_names())
def test_the_server_takes_the_rules_of_every_model(
    server: RedisServer, model: str, role: AclRole, version: AclServer
) -> None:
    with logged_in(server, load_model(model), role, version) as db:
        assert db.run(Plain(Operation("ping", b"PING", Effect.READ))) in (b"PONG", "PONG")
        user = f"{model}-{role.value}"
        rules = str(server.call("ACL", "GETUSER", user))
        assert "allchannels" not in rules
        assert not re.search(r"&\*[ ']", rules)


def test_an_acl_file_line_makes_the_same_user(server: RedisServer) -> None:
    rules = acl(load_model("meetup").described(), AclRole.WRITER, password_hash=HASH)
    server.call(*rules.as_command().split())
    from_command = server.call("ACL", "GETUSER", rules.user)
    server.call("ACL", "DELUSER", rules.user)
    _, user, *line = rules.as_file_line().split()
    server.call("ACL", "SETUSER", user, *line)
    assert server.call("ACL", "GETUSER", user) == from_command


def _meetup() -> list[Call[Any]]:
    event = meetup.EventDetails("Game", NOW, "https://example.org", "group")
    return [
        meetup.MeetupEvent("e1").put(event),
        meetup.MeetupEvent("e1").get(),
        meetup.EventGuests("e1").add(1, 2),
        meetup.EventHosts("e1").members(),
        people.assign(1, 2),
        people.replace(3, 2),
        people.of(3),
        people.clear(3),
        series_of_event.assign("e1", "s1"),
        series_of_event.inverse_of("s1"),
        meetup.MeetupLinking("l1").set(5),
        meetup.MeetupLinking("l1").take(),
        meetup.RefreshTime().set(NOW),
        erase(meetup.MeetupEvent("e1")),
        recover(),
    ]


def _registry() -> list[Call[Any]]:
    path = "group/project"
    return [
        counters.count(path, pulls=2, pushes=1),
        counters.pending(path),
        counters.take(registry.CountedPath.of(path), "b1"),
        lsn.advance(path, 17),
        lsn.position(path),
        RateLimiter(rate=5, period=HOUR, burst=5).take("192.0.2.1"),
        registry.FillLease.of(path).acquire("t", HOUR),
        registry.FillLease.of(path).release("t"),
        registry.MetricsLock("row_count_lock").acquire("t", HOUR),
        registry.RepositoryBlobs("group").add("sha256:" + "0" * 64),
    ]


def _openmod() -> list[Call[Any]]:
    return [
        openmod.TrackingSet("t2_a").add("t3_b", NOW),
        openmod.EnforcementSet().schedule("t2_a", NOW),
        openmod.EnforcementSet().claim_due(5, HOUR),
        openmod.EnforcementSet().due_count(),
        openmod.EventMarker("e").begin("t", HOUR),
        openmod.EventMarker("e").finish("t"),
        openmod.CacheHash("t2_a").put(CachedUser("user", "ann")),
        openmod.CacheHash("t2_a").get(),
        openmod.ExtractHash("t3_b").get(),
    ]


def _discord(layout: str) -> list[Call[Any]]:
    cache = LAYOUTS[layout].cache()
    guild = discord_sample.event("GUILD_CREATE", discord_sample.guild())
    gone = discord_sample.event("GUILD_DELETE", {"id": discord_sample.GUILD})
    return [cache.apply([guild]), cache.apply([gone])]


WORK: dict[str, Callable[[], list[Call[Any]]]] = {
    "meetup": _meetup,
    "registry": _registry,
    "openmod": _openmod,
    "drc": lambda: _discord("drc"),
    "spectacles": lambda: _discord("spectacles"),
}


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
@pytest.mark.parametrize("model", WORK)
def test_a_writer_can_run_the_operations_of_the_model_and_nothing_else(
    server: RedisServer, model: str, version: AclServer
) -> None:
    with logged_in(server, load_model(model), AclRole.WRITER, version) as db:
        for call in WORK[model]():
            db.run(call)
        assert refused(db, Stranger("x").get())
        assert refused(db, Stranger("x").set("y"))


stranger = Keyspace("stranger", "Somebody else's keys on the same server.", prefix="stranger")


class Stranger(Value[str], key="value:<id>", space=stranger):
    """A key of another model."""

    id: Id


class Ranks(SortedSet[Id, int], key="ranks", space=stranger):
    """Another."""


def test_a_reader_reads_and_changes_nothing(server: RedisServer) -> None:
    with connect(server.tcp_url) as db:
        for call in _openmod():
            db.run(call)
    with logged_in(server, load_model("openmod"), AclRole.READER, renew=True) as db:
        assert db.run(openmod.TrackingSet("t2_a").range()) != []
        assert db.run(openmod.EnforcementSet().due_count()) == 0
        assert db.run(openmod.CacheHash("t2_a").get()) is not None  # renews an expiry that slides
        assert (
            db.run(gather(openmod.CacheHash("t2_a").ttl(), openmod.ExtractHash("t3_b").exists()))[0]
            is not None
        )
        for call in (
            openmod.TrackingSet("t2_a").add("t3_c", NOW),
            openmod.TrackingSet("t2_a").delete(),
            openmod.EnforcementSet().schedule("t2_b", NOW),
            openmod.CacheHash("t2_a").delete(),
            Stranger("x").get(),
        ):
            assert refused(db, call)


def test_a_reader_does_not_renew_expiries_unless_asked(server: RedisServer) -> None:
    with connect(server.tcp_url) as db:
        db.run(openmod.CacheHash("t2_a").put(CachedUser("user", "ann")))
    with (
        logged_in(server, load_model("openmod"), AclRole.READER) as db,
        pytest.raises(ServerRefusedError, match=r"renews an expiry that slides.*--renew"),
    ):
        db.run(openmod.CacheHash("t2_a").get())
    reading = openmod.openmod.bind(expiry={openmod.CacheHash: None})
    url = as_user(server.tcp_url, "openmod-reader", PASSWORD)
    with connect(url, reading) as db:
        assert db.run(openmod.CacheHash("t2_a").get()) is not None


def test_a_reader_runs_no_script(server: RedisServer) -> None:
    due = openmod.EnforcementSet()
    with connect(server.tcp_url) as db:
        db.run(due.schedule("t2_a", NOW))
        assert db.run(due.claim_due(1, HOUR)) != []  # the server knows the script
        db.run(due.schedule("t2_a", NOW))
    with logged_in(server, load_model("openmod"), AclRole.READER) as db:
        assert refused(db, due.claim_due(1, HOUR))
        assert db.run(due.due_count()) == 1


@pytest.mark.parametrize("renew", [False, True])
@pytest.mark.parametrize("role", [AclRole.READER, AclRole.AUDITOR])
@pytest.mark.parametrize("model", model_names())
def test_no_command_of_the_server_lets_a_reader_or_auditor_write(
    server: RedisServer, model: str, role: AclRole, *, renew: bool
) -> None:
    loaded = load_model(model)
    rules = acl(loaded.described(), role, password_hash=HASH, renew=renew)
    server.call(*rules.as_command().split())
    # Every name of a selector has the same commands.
    names = {example_of(each.patterns[0]) for each in rules.selectors}
    scripting = {"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"}
    with server.wire() as wire:
        let_through = {
            command
            for command, flags, arguments in _commands_of(server)
            if "write" in flags or command in scripting
            for name in names
            if wire.call("ACL", "DRYRUN", rules.user, *arguments(name)) in (b"OK", "OK")
        }
    keys = [key for space in loaded.described().spaces for key in space.keys]
    renewing = renew and role is AclRole.READER and any(key.expiry and key.expiry.sliding for key in keys)
    assert let_through == ({"getex", "pexpire", "pexpireat"} if renewing else set())


def _commands_of(server: RedisServer) -> Iterator[tuple[str, set[str], Callable[[str], tuple[str, ...]]]]:
    """Yield every command of the server: its name, its flags, and how it is called on a key."""
    described: Any = server.call("COMMAND")
    for raw_name, arity, raw_flags, *_ in described:
        name = raw_name.decode()
        flags = {flag.decode() if isinstance(flag, bytes) else str(flag) for flag in raw_flags}
        yield name, flags, partial(_called, name, max(abs(arity), 2))


def _called(command: str, length: int, key: str) -> tuple[str, ...]:
    forms = {
        "xread": ("COUNT", "1", "STREAMS", key, "0"),
        "xreadgroup": ("GROUP", "g", "c", "STREAMS", key, ">"),
        "xgroup": ("CREATE", key, "g", "$"),
        "sort": (key, "STORE", key),
        "migrate": ("host", "1", key, "0", "1"),
        "bitop": ("AND", key, key),
        "zunionstore": (key, "1", key),
        "zinterstore": (key, "1", key),
        "zdiffstore": (key, "1", key),
    }
    if command.startswith(("eval", "fcall")):
        return command, "return 1", "1", key
    return command, *forms.get(command, (key, *["1"] * (length - 2)))


@pytest.mark.parametrize("role", [AclRole.READER, AclRole.AUDITOR])
def test_secrets_are_read_with_the_option_only(server: RedisServer, role: AclRole) -> None:
    with connect(server.tcp_url) as db:
        db.run(meetup.AccessToken().set(Secret("t0ken")))
        db.run(meetup.EventGuests("e1").add(1))
    with logged_in(server, load_model("meetup"), role) as db:
        assert db.run(meetup.EventGuests("e1").members()) == {1}
        assert refused(db, meetup.AccessToken().get())
        assert refused(db, meetup.Csrf("c").exists())
    with logged_in(server, load_model("meetup"), role, with_secrets=True) as db:
        assert db.run(meetup.AccessToken().get()) == Secret("t0ken")


def test_an_auditor_without_secrets_reports_them_as_unread(server: RedisServer) -> None:
    with connect(server.tcp_url) as db:
        db.run(meetup.AccessToken().set(Secret("t0ken")))
    sample = SAMPLES["meetup"]()
    rules = acl(sample.model.described(), AclRole.AUDITOR, password_hash=HASH)
    server.call(*rules.as_command().split())
    url = as_user(server.tcp_url, rules.user, PASSWORD)
    _, findings = audited(url, sample)
    assert [(each.code, each.name, each.reason) for each in findings] == [
        ("KW502", b"meetup_access_token", "holds secrets, which this user may not read")
    ]


def test_a_secret_that_the_pattern_of_another_template_matches_is_reported() -> None:
    space = Keyspace("people", "A token below a person.")

    class Person(Value[str], key="person:<id>", space=space):
        """A person."""

        id: Id

    class Token(Value[Secret[str]], key="person:<id>:token", space=space):
        """A token."""

        id: Id

    described = Model("people", (space,)).described()
    assert acl(described, AclRole.READER).exposed == ("person:<id>:token",)
    assert acl(described, AclRole.READER, with_secrets=True).exposed == ()
    assert acl(described, AclRole.WRITER).exposed == ()


@pytest.fixture
def oldest() -> Iterator[RedisServer]:
    with RedisServer(tcp=True, binary=old_binary()) as server:
        yield server


@pytest.mark.parametrize("role", AclRole)
@pytest.mark.parametrize("model", model_names())
def test_redis_6_2_takes_its_rules_and_gives_no_channel_that_is_not_declared(
    oldest: RedisServer, model: str, role: AclRole
) -> None:
    rules = acl(load_model(model).described(), role, server=AclServer.REDIS_6_2, password_hash=HASH)
    assert oldest.call(*rules.as_command().split()) in (b"OK", "OK")
    _, user, *line = rules.as_file_line().split()
    got: Any = oldest.call("ACL", "GETUSER", user)
    described = dict(zip(got[::2], got[1::2], strict=True))
    declared = acl(load_model(model).described(), role, server=AclServer.REDIS_6_2).channels
    assert described[b"channels"] == [pattern.encode() for pattern in declared]
    assert b"*" not in described[b"channels"]
    assert oldest.call("ACL", "SETUSER", f"{user}-of-file", *line) in (b"OK", "OK")
    assert oldest.call("ACL", "GETUSER", f"{user}-of-file") == got


@pytest.mark.parametrize("model", WORK)
def test_on_redis_6_2_a_writer_can_run_the_operations_and_publish_nothing(
    oldest: RedisServer, model: str
) -> None:
    with logged_in(oldest, load_model(model), AclRole.WRITER, AclServer.REDIS_6_2) as db:
        for call in WORK[model]():
            db.run(call)
        assert refused(db, Stranger("x").get())
        publish = Operation("publish", b"PUBLISH", Effect.ONCE)
        assert refused(db, Plain(publish, (b"news", b"x"), b"news"))


def test_an_auditor_looks_at_everything_without_renewing_anything(server: RedisServer) -> None:
    with connect(server.tcp_url) as db:
        db.run(openmod.CacheHash("t2_a").put(CachedUser("user", "ann")))
        db.run(Stranger("x").set("y"))
    with logged_in(server, load_model("openmod"), AclRole.AUDITOR) as db:
        assert db.run(inspect(openmod.CacheHash("t2_a"))) is not None
        assert b"cache:t2_a" in list(db.names(openmod.openmod))
        assert db.run(Stranger("x").stored_type()) == "string"
        assert refused(db, openmod.CacheHash("t2_a").get())  # it would renew the expiry
        assert refused(db, Stranger("x").get())
        assert refused(db, openmod.CacheHash("t2_a").delete())


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
@pytest.mark.parametrize("name", SAMPLES)
def test_an_auditor_can_run_an_audit(server: RedisServer, name: str, version: AclServer) -> None:
    sample = SAMPLES[name]()
    with sample.open(server.tcp_url) as db:
        sample.fill(db)
        plant(db, sample.model.spaces, each=1, older=sample.older)
    rules = acl(
        sample.model.described(), AclRole.AUDITOR, server=version, password_hash=HASH, with_secrets=True
    )
    server.call(*rules.as_command().split())
    url = as_user(server.tcp_url, rules.user, PASSWORD)
    assert audited(url, sample)[0].counts == audited(server.tcp_url, sample)[0].counts != {}


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
def test_a_writer_moves_keys_from_former_names_and_a_reader_reads_them_there(
    server: RedisServer, version: AclServer
) -> None:
    library = Model("library", (migrating.now,))
    for name in ("loans:ann", "loans:ben", "loans:someone:else"):
        server.call("SADD", name, "b1")
    server.call("SET", "tag:b1", "good")
    with logged_in(server, library, AclRole.WRITER, version) as db:
        db.run(migrating.Loans("ann").add("b2"))
        assert db.run(migrating.Loans("ann").members()) == {"b1", "b2"}
        assert db.run(migrating.Tag("b1").get()) == "good"
        assert refused(db, Plain(Operation("get", b"SMEMBERS", Effect.READ), (b"loan:ann",), b"loan:ann"))
    with logged_in(server, library, AclRole.READER, version) as db:
        assert db.run(migrating.Loans("ann").members()) == {"b1", "b2"}
        with pytest.raises(EngineError):
            db.run(migrating.Loans("ben").members())
    assert server.call("EXISTS", "loans:ben") == 1


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
def test_a_writer_can_count_since_the_first_write(server: RedisServer, version: AclServer) -> None:
    with logged_in(server, Model("bookshop", (bookshop.shop,)), AclRole.WRITER, version) as db:
        assert [db.run(bookshop.SignIns(8).add()) for _ in range(2)] == [1, 2]
        assert (db.run(bookshop.SignIns(8).ttl()) or timedelta(0)) > timedelta(minutes=14)


def test_former_names_follow_the_prefix(server: RedisServer) -> None:
    library = Model("library", (migrating.now,))
    rules = acl(library.described(), AclRole.WRITER, prefix="two", password_hash=HASH)
    server.call(*rules.as_command().split())
    names = {"two:loans:ann": True, "loans:ann": False, "two:loan:ann": False}
    script = ("EVALSHA", "0" * 40, "2", "two:reader:ann:loans")
    found = {n: server.call("ACL", "DRYRUN", rules.user, *script, n) in (b"OK", "OK") for n in names}
    assert found == names


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
def test_an_upgrade_from_a_key_of_another_keyspace_is_let_through(
    server: RedisServer, version: AclServer
) -> None:
    shop = Model("bookshop", (bookshop.shop,))
    server.call("HSET", "shop:customer:7", "first_name", "Ben Nevis", "last_name", "")
    with logged_in(server, shop, AclRole.READER, version) as db:
        assert db.run(bookshop.Reader(8).get()) is None
    with logged_in(server, shop, AclRole.WRITER, version) as db:
        found = db.run(bookshop.Reader(7).get())
        assert found is not None
        assert found.last_name == "Nevis"


@pytest.mark.parametrize("prefix", ["two words", "a ~*", "a)", "(a", "a\n+@all"])
def test_a_prefix_that_would_be_read_as_other_rules_is_refused(prefix: str) -> None:
    with pytest.raises(UsageError, match="cannot be written in access rules"):
        acl(load_model("meetup").described(), AclRole.READER, prefix=prefix)


def test_each_type_has_its_own_commands_on_redis_7(server: RedisServer) -> None:
    model = Model("kinds", (kinds,))
    rules = acl(model.described(), AclRole.WRITER, password_hash=HASH)
    server.call(*rules.as_command().split())
    dry = [
        (("SADD", "kinds:members", "1"), True),
        (("SADD", "kinds:total", "1"), False),
        (("INCRBY", "kinds:total", "1"), True),
        (("INCRBY", "kinds:members", "1"), False),
        (("SADD", "members", "1"), False),
        (("FLUSHALL",), False),
        (("CONFIG", "GET", "*"), False),
        (("KEYS", "*"), False),
        (("PUBLISH", "a", "b"), False),
        (("EVAL", "return 1", "1", "other"), False),
        (("SCRIPT", "FLUSH"), False),
        (("EVALSHA", "0" * 40, "1", "kinds:total"), True),
        (("EVALSHA", "0" * 40, "1", "other"), False),
        (("HGET", "keywright:intents:kinds:kinds:a", "b"), True),
        (("HGET", "keywright:intents:kinds::a", "b"), False),
        (("HGET", "keywright:intents:meetup::a", "b"), False),
        (("HGET", "keywright:intents:a", "b"), False),
        (("HGET", "keywright:held:kinds:kinds:{kinds:total}", "x"), True),
        (("HGET", "keywright:held:kinds:kinds:{other}", "x"), False),
        (("HGET", "keywright:held:meetup::{kinds:total}", "x"), False),
    ]
    allowed = [(words, server.call("ACL", "DRYRUN", rules.user, *words) in (b"OK", "OK")) for words, _ in dry]
    assert allowed == dry


def test_patterns_follow_the_prefix_and_take_literal_stars_for_stars(server: RedisServer) -> None:
    space = Keyspace("starry", "A name with glob characters.", prefix="one")

    class Starry(Value[str], key=r"st*r:\[a\]:<id>", space=space):
        """Stars."""

        id: Id

    rules = acl(Model("starry", (space,)).described(), AclRole.READER, prefix="two", password_hash=HASH)
    server.call(*rules.as_command().split())
    names = {"two:st*r:[a]:x": True, "one:st*r:[a]:x": False, "two:star:[a]:x": False, "two:st*r:a:x": False}
    found = {name: server.call("ACL", "DRYRUN", rules.user, "GET", name) in (b"OK", "OK") for name in names}
    assert found == names


def test_scan_can_be_left_out(server: RedisServer) -> None:
    with (
        logged_in(server, load_model("meetup"), AclRole.WRITER, scan=False) as db,
        pytest.raises(ServerRefusedError),
    ):
        list(db.names(meetup.meetup))
    with logged_in(server, load_model("meetup"), AclRole.WRITER) as db:
        assert list(db.names(meetup.meetup)) == []


def test_passwords_are_hashes_or_a_placeholder() -> None:
    described = load_model("meetup").described()
    assert "#PASSWORD-SHA256" in acl(described, AclRole.READER).as_command()
    with pytest.raises(UsageError, match="64 lower-case"):
        acl(described, AclRole.READER, password_hash="s3cret")
    with pytest.raises(UsageError, match="is not a valid user name"):
        acl(described, AclRole.READER, user="two words")


@pytest.mark.cluster
def test_on_a_cluster_a_writer_uses_the_journal(keywright_cluster: RedisCluster, cluster_url: str) -> None:
    rules = acl(load_model("meetup").described(), AclRole.WRITER, password_hash=HASH)
    words = rules.as_command().split()
    for node in keywright_cluster.nodes:
        node.call(*words)
    try:
        with connect(as_user(cluster_url, rules.user, PASSWORD)) as db:
            for call in _meetup():
                db.run(call)
            assert refused(db, Stranger("x").get())
    finally:
        for node in keywright_cluster.nodes:
            node.call("ACL", "DELUSER", rules.user)
