"""An export is read back byte for byte; an import checks every line of a file before it writes a key."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import time
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest

from audit_samples import SAMPLES
from audited import Sample
from garden import SAMPLE as GARDEN
from garden import Dug, MapOf, Sown, StreamOf, UnionStreamOf, Watered
from keywright import (
    Bitmap,
    Claim,
    Counter,
    Database,
    DueQueue,
    Geo,
    HyperLogLog,
    Id,
    Keyring,
    Keyspace,
    Lease,
    List,
    Map,
    Point,
    Record,
    Sealed,
    Secret,
    Set,
    SortedSet,
    Stream,
    Value,
    aconnect,
    connect,
    expires_in,
    gather,
)
from keywright.errors import UsageError
from keywright.testing import Raw, RedisServer, as_user
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.model import Model
from keywright.tools.transfer import (
    Exported,
    Imported,
    Plan,
    export_keys,
    import_keys,
    importer,
    lines,
    plan_import,
    stored,
)
from new_valkey import new_binary
from old_redis import is_redis_6, old_binary

READS: dict[str, tuple[str, ...]] = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", "0", "-1", "WITHSCORES"),
    "list": ("LRANGE", "0", "-1"),
    "stream": ("XRANGE", "-", "+"),
}
STREAM_FACTS = ("last-generated-id", "entries-added", "max-deleted-entry-id", "length", "groups")


@pytest.fixture(params=["single", "cluster"])
def place(request: pytest.FixtureRequest) -> tuple[str, Raw]:
    suffix = "" if request.param == "single" else "_cluster"
    url = request.getfixturevalue("redis_url" if request.param == "single" else "cluster_url")
    return str(url), request.getfixturevalue(f"raw{suffix}")


def exported(url: str, sample: Sample, **options: Any) -> tuple[bytes, Exported]:
    file = io.BytesIO()

    async def run() -> Exported:
        async with aconnect(url, *sample.bindings) as db:
            return await export_keys(db, sample.model.name, sample.model.spaces, file.write, **options)

    done = asyncio.run(run())
    return file.getvalue(), done


def planned(url: str, sample: Sample, data: bytes, **options: Any) -> Plan:
    async def run() -> Plan:
        async with aconnect(url, *sample.bindings) as db:
            return await plan_import(db, sample.model.spaces, io.BytesIO(data), **options)

    return asyncio.run(run())


def imported(url: str, sample: Sample, data: bytes, **options: Any) -> Imported:
    async def run() -> Imported:
        async with aconnect(url, *sample.bindings) as db:
            plan = await plan_import(db, sample.model.spaces, io.BytesIO(data))
            return await import_keys(db, sample.model.spaces, io.BytesIO(data), plan, **options)

    return asyncio.run(run())


class Stored(NamedTuple):
    """All keys, read without the library: what each holds, and when it expires, in seconds."""

    content: dict[bytes, Any]
    expiries: dict[bytes, float]


def everything(raw: Raw) -> Stored:
    names = raw.names()
    left = {name: int(raw("PTTL", name)) for name in names}
    expiries = {name: time.time() + ttl / 1000 for name, ttl in left.items() if ttl >= 0}
    return Stored({name: held(raw, name) for name in names}, expiries)


def assert_same(found: Stored, before: Stored) -> None:
    """Assert that the same is stored; the time of an expiry is rounded by the server and read at another."""
    assert found.content == before.content
    assert found.expiries == pytest.approx(before.expiries, rel=0, abs=2)


def held(raw: Raw, name: bytes) -> Any:
    redis_type = raw("TYPE", name).decode()
    verb, *operands = READS[redis_type]
    found = raw(verb, name, *operands)
    if redis_type == "stream":
        facts, groups = raw("XINFO STREAM", name), raw("XINFO GROUPS", name)
        pending = [raw("XPENDING", name, group["name"]) for group in groups]
        return found, {fact: facts.get(fact) for fact in STREAM_FACTS}, groups, pending
    return frozenset(found) if redis_type == "set" else found


def emptied(raw: Raw) -> None:
    for name in raw.names():
        raw("UNLINK", name)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_database_of_every_model_comes_back_byte_for_byte(name: str, place: tuple[str, Raw]) -> None:
    url, raw = place
    sample = SAMPLES[name]()
    with sample.open(url) as db:
        sample.fill(db)
    before = everything(raw)
    data, done = exported(url, sample, with_secrets=True)
    assert (sum(done.keys.values()), done.left_out, done.failed) == (len(before.content), {}, False)
    emptied(raw)
    wrote = imported(url, sample, data)
    assert (wrote.written, wrote.overtaken, wrote.failed) == (len(before.content), 0, [])
    assert_same(everything(raw), before)
    again = imported(url, sample, data)
    assert (again.written, again.same) == (0, len(before.content))


space = Keyspace("kinds", "Keys of every kind.", prefix="kinds")


class Order(msgspec.Struct):
    title: str
    paid: bool = False


class Orders(Record[Order], key="order:<order>", space=space):
    """An order."""

    order: Id


class Blob(Value[bytes], key="blob:<blob>", space=space):
    """Bytes."""

    blob: Id


class Session(Value[str], key="session:<session>", space=space, expiry=expires_in(timedelta(hours=1))):
    """Who is logged in."""

    session: Id


class Tags(Set[Id], key="tags", space=space):
    """Tags."""


class Ranks(SortedSet[Id, float], key="ranks", space=space):
    """Ranks."""


class Queue(List[str], key="queue", space=space):
    """What waits."""


class Prices(Map[Id, int], key="prices", space=space):
    """Prices."""


class Log(Stream[Order], key="log:<log>", space=space):
    """What happened."""

    log: Id


class Seats(Bitmap, key="seats", space=space, bits=64):
    """Taken seats."""


class Visitors(HyperLogLog[Id], key="visitors", space=space):
    """Who came."""


class Shops(Geo[Id], key="shops", space=space):
    """Where shops are."""


class Due(DueQueue[Id], key="due", space=space):
    """When to act."""


class Total(Counter, key="total", space=space):
    """A count."""


class Worker(Lease, key="worker", space=space):
    """Who works."""


class Done(Claim, key="done", space=space):
    """What is done."""


class Opaque(Value[Annotated[Secret[str], Sealed]], key="sealed:<sealed>", space=space):
    """A sealed token."""

    sealed: Id


class Password(Value[Secret[str]], key="password:<user>", space=space):
    """A password in clear."""

    user: Id


KEYRING = Keyring.generate("k1")
KINDS = Sample(Model("kinds", (space,)), (space.bind(keyring=KEYRING),), lambda _: None, {})


def fill_kinds(db: Database) -> None:
    db.run(
        gather(
            Orders("a").put(Order('quoted "title"\n\u2028', True)),
            Blob("a").set(bytes(range(256))),
            Blob("b").set(b""),
            Session("a").set("ada"),
            Tags().add(*(f"tag{n}" for n in range(3000))),
            Ranks().add_many({"a": 0.1, "b": float("inf"), "c": -1e300}),
            Queue().push(*(f"item {n}" for n in range(1500))),
            Prices().put_many({f"p{n}": n for n in range(1500)}),
            Seats().set_many({3: True, 60: True}),
            Visitors().add("ada", "bob"),
            Shops().add("here", Point(7.4, 46.9)),
            Total().add(2**62),
            Done().done(),
            Opaque("a").set(Secret("token")),
        )
    )
    db.run(Worker().acquire("me", timedelta(minutes=5)))
    db.run(gather(*(Log("a").add(Order(f"o{n}")) for n in range(5))))
    log = Log("a")
    db.run(log.create_group("readers"))
    db.run(log.consume("readers", "one", count=3))
    db.run(Log("b").add(Order("gone"), entry_id="7-1"))
    db.run(Log("b").remove("7-1"))


@pytest.fixture
def kinds_url(redis_url: str) -> str:
    with connect(redis_url, *KINDS.bindings) as db:
        fill_kinds(db)
    return redis_url


def test_every_kind_comes_back_with_its_groups_and_pending_entries(kinds_url: str, raw: Raw) -> None:
    before = everything(raw)
    data, done = exported(kinds_url, KINDS)
    assert (sum(done.keys.values()), done.left_out) == (len(before.content), {})
    emptied(raw)
    assert imported(kinds_url, KINDS, data).failed == []
    assert_same(everything(raw), before)
    with connect(kinds_url, *KINDS.bindings) as db:
        (pending, *_) = db.run(Log("a").pending("readers"))
        assert (pending.consumer, pending.deliveries) == ("one", 1)
        secret = db.run(Opaque("a").get())
        assert secret is not None
        assert secret.reveal() == "token"


def test_expiries_of_fields_come_back() -> None:
    with RedisServer(binary=new_binary()) as server:
        with connect(server.url, *KINDS.bindings) as db:
            db.run(Prices().put_many({"a": 1, "b": 2}))
            server.call("HPEXPIREAT", "kinds:prices", "4102444800000", "FIELDS", "1", "a")
            server.call("XADD", "kinds:log:a", "5-1", "title", "x", "paid", "0")
        data, _ = exported(server.url, KINDS)
        server.call("FLUSHALL")
        assert imported(server.url, KINDS, data).written == 2
        asked = server.call("HPEXPIRETIME", "kinds:prices", "FIELDS", "2", "a", "b")
        assert asked == [4102444800000, -1]
        assert planned(server.url, KINDS, data).same == {"log:<log>": 1, "prices": 1}


def test_the_oldest_server_exports_and_imports_too(kinds_file: bytes) -> None:
    with RedisServer(binary=old_binary()) as server:
        wrote = imported(server.url, KINDS, kinds_file)
        assert wrote.failed == []
        data, done = exported(server.url, KINDS)
        assert sum(done.keys.values()) == wrote.written
        assert imported(server.url, KINDS, data).same == wrote.written
        assert imported(server.url, KINDS, kinds_file).same == wrote.written


def test_lines_have_the_decoded_variables_and_value(kinds_url: str) -> None:
    data, _ = exported(kinds_url, KINDS)
    found = {each["name"]: each for each in map(json.loads, data.splitlines()[1:-1])}
    assert found["order:a"]["variables"] == {"order": "a"}
    assert found["order:a"]["value"] == {"title": 'quoted "title"\n\u2028', "paid": True}
    assert found["session:a"]["expires_at_ms"] > 0
    assert found["blob:a"]["stored"].keys() == {"base64"}
    assert found["sealed:a"]["value"] == "(sealed)"


def test_secrets_in_clear_are_left_out_unless_they_are_asked_for(redis_url: str) -> None:
    with connect(redis_url, *KINDS.bindings) as db:
        db.run(gather(Password("ada").set(Secret("hunter2")), Opaque("a").set(Secret("hunter2"))))
    data, done = exported(redis_url, KINDS)
    assert b"hunter2" not in data
    assert (done.keys, done.failed) == ({"sealed:<sealed>": 1}, False)
    assert sum(done.left_out.values()) == 1
    data, done = exported(redis_url, KINDS, with_secrets=True)
    assert data.count(b"hunter2") == 1
    assert sum(done.keys.values()) == 2


def test_sealed_values_are_not_imported_under_another_prefix(redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *KINDS.bindings) as db:
        db.run(gather(Opaque("a").set(Secret("x")), Tags().add("t")))
    data, _ = exported(redis_url, KINDS)
    other = KINDS._replace(bindings=(space.bind(prefix="other", keyring=KEYRING),))
    plan = planned(redis_url, other, data)
    assert plan.invalid == 1
    assert "bound to the prefix" in plan.problems[0][1]
    without = other._replace(bindings=(space.bind(prefix="other"),))
    assert "bound to the prefix" in planned(redis_url, without, data).problems[0][1]
    with connect(redis_url, *KINDS.bindings) as db:
        db.run(Opaque("a").delete())
    data, _ = exported(redis_url, KINDS)
    assert imported(redis_url, other, data).written == 1
    assert raw("SMEMBERS", "other:tags") in ({b"t"}, [b"t"])


def test_keys_that_are_not_as_declared_are_named_and_left_out(redis_url: str, raw: Raw) -> None:
    raw("SET", "kinds:tags", "not a set")
    raw("HSET", "kinds:order:a", "paid", "1")
    raw("SET", "kinds:unknown", "x")
    raw("SET", "elsewhere", "x")
    data, done = exported(redis_url, KINDS)
    assert (done.keys, len(data.splitlines())) == ({}, 2)
    assert sum(done.left_out.values()) == 3
    assert done.failed
    assert {each.key.partition(" #")[0] for each in done.examples} == {"tags", "order:<order>"}


def test_keys_with_an_expiry_that_an_import_refuses_are_left_out(redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *KINDS.bindings) as db:
        db.run(gather(*(Session(each).set("ada") for each in ("a", "b", "c"))))
    raw("PERSIST", "kinds:session:b")
    raw("PEXPIRE", "kinds:session:c", 10**9)
    data, done = exported(redis_url, KINDS)
    assert done.keys == {"session:<session>": 1}
    assert sorted(each.reason[:5] for each in done.examples) == ["KW301", "KW302"]
    emptied(raw)
    assert imported(redis_url, KINDS, data).written == 1


def test_a_key_that_is_too_large_is_left_out(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "LARGEST_KEY", 10_000)
    raw("SADD", "kinds:tags", *(f"tag{n}" for n in range(3000)))
    raw("SET", "kinds:blob:a", "x" * 10_001)
    raw("SET", "kinds:blob:b", "x" * 9_999)
    _, done = exported(redis_url, KINDS)
    assert (done.keys, done.failed) == ({"blob:<blob>": 1}, True)


def test_existing_keys_stay_unless_they_are_to_be_replaced(kinds_url: str, raw: Raw) -> None:
    data, done = exported(kinds_url, KINDS)
    raw("SET", "kinds:total", "1")
    raw("UNLINK", "kinds:queue")
    plan = planned(kinds_url, KINDS, data)
    assert (plan.different, plan.new) == ({"total": 1}, {"queue": 1})
    wrote = imported(kinds_url, KINDS, data)
    assert (wrote.written, wrote.overtaken) == (1, 1)
    assert raw("GET", "kinds:total") == b"1"
    wrote = imported(kinds_url, KINDS, data, replace=True)
    assert (wrote.written, wrote.overtaken) == (1, 0)
    assert planned(kinds_url, KINDS, data).same == done.keys


def test_a_key_that_cannot_be_written_stays_as_it_was(redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *KINDS.bindings) as db:
        db.run(Log("a").add(Order("new"), entry_id="5-1"))
    data, _ = exported(redis_url, KINDS)
    raw("UNLINK", "kinds:log:a")
    with connect(redis_url, *KINDS.bindings) as db:
        db.run(Log("a").add(Order("old"), entry_id="4-1"))
    raw("PEXPIRE", "kinds:log:a", "100000")
    before = everything(raw)
    pending = {"id": "5-1", "consumer": "c", "delivered_at_ms": 1, "deliveries": 10**30}
    group = {"name": "g", "last_id": "5-1", "consumers": ["c"], "pending": [pending]}
    data = _line(data, "log:a", stream={"last_id": "5-1", "groups": [group]})
    wrote = imported(redis_url, KINDS, data, replace=True)
    assert (wrote.written, len(wrote.failed)) == (0, 1)
    assert_same(everything(raw), before)


def test_a_run_that_stopped_in_between_is_completed_by_another(
    kinds_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(raw)
    data, _ = exported(kinds_url, KINDS)
    emptied(raw)
    monkeypatch.setattr(importer, "TOGETHER", 2)

    def stop(progress: Any) -> None:
        if progress.verb == "written":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        imported(kinds_url, KINDS, data, on_progress=stop)
    assert 0 < len(raw.names()) < len(before.content)
    imported(kinds_url, KINDS, data)
    assert_same(everything(raw), before)


def test_an_expired_key_of_the_file_is_skipped(redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *KINDS.bindings) as db:
        db.run(Session("a").set("ada"))
    data, _ = exported(redis_url, KINDS)
    header, line, end = data.splitlines()
    emptied(raw)
    past = json.loads(line) | {"expires_at_ms": 1}
    plan = planned(redis_url, KINDS, b"\n".join([header, json.dumps(past).encode(), end]))
    assert (plan.expired, plan.new, plan.invalid) == ({"session:<session>": 1}, {}, 0)


def _line(data: bytes, of: str, **changes: Any) -> bytes:
    """Return the file with changes to the line of one key; None removes a member."""
    found = []
    for line in data.splitlines():
        read = json.loads(line)
        changed = {key: value for key, value in {**read, **changes}.items() if value is not None}
        found.append(json.dumps(changed).encode() if read.get("name") == of else line)
    return b"\n".join(found) + b"\n"


DEEP = "[" * 100_000 + "]" * 100_000


def _stream(data: bytes, entries: list[Any]) -> bytes:
    return _line(data, "log:a", stored=entries, value=None, stream={"last_id": "9-1"})


def _twice(data: bytes) -> bytes:
    header, *keys, end = data.splitlines()
    counted = json.loads(end) | {"keys": len(keys) + 1}
    written = json.dumps(counted, separators=(",", ":")).encode()
    return b"\n".join([header, *keys, keys[0], written]) + b"\n"


INVALID: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("another template", lambda d: _line(d, "tags", template="queue"), "not one of queue"),
    ("an unknown template", lambda d: _line(d, "tags", template="nothing"), "no template"),
    ("an unknown keyspace", lambda d: _line(d, "tags", keyspace="nothing"), "no template"),
    ("a name of another template", lambda d: _line(d, "tags", name="prices"), "not one of tags"),
    ("another type", lambda d: _line(d, "tags", type="list"), "is a set"),
    ("a member that is not one", lambda d: _line(d, "tags", stored=["a b", "x:y"], value=None), "KW202"),
    ("a record without its member", lambda d: _line(d, "order:a", stored=[["paid", "1"]]), "KW203"),
    ("a number for text", lambda d: _line(d, "session:a", stored=7), "not the content"),
    ("bad base64", lambda d: _line(d, "blob:a", stored={"base64": "!"}), "not the content"),
    ("a member twice", lambda d: _line(d, "tags", stored=["a", "a"], value=None), "twice"),
    ("an empty set", lambda d: _line(d, "tags", stored=[], value=None), "without entries"),
    ("a score that is no number", lambda d: _line(d, "ranks", stored=[["a", "nan"]]), "score"),
    ("a value that is not the stored one", lambda d: _line(d, "total", value=5), "'value'"),
    (
        "variables that are not the name's",
        lambda d: _line(d, "blob:a", variables={"blob": "x"}),
        "'variables'",
    ),
    ("no expiry", lambda d: _line(d, "session:a", expires_at_ms=None), "KW301"),
    ("a longer expiry", lambda d: _line(d, "session:a", expires_at_ms=4102444800000), "KW302"),
    ("a dump", lambda d: _line(d, "total", stored=None, value=None, dump="AAAA"), "dump"),
    ("nothing stored", lambda d: _line(d, "total", stored=None), "neither"),
    ("an unknown member", lambda d: _line(d, "total", command="FLUSHALL"), "not a line"),
    ("a field that is not there", lambda d: _line(d, "prices", fields_expire_at_ms=[["x", 1]]), "field"),
    ("ids that descend", lambda d: _stream(d, [["2-1", ["title", "x"]], ["1-1", ["title", "x"]]]), "ascend"),
    ("an id that is none", lambda d: _stream(d, [["*", ["title", "x"]]]), "two numbers"),
    ("a field without value", lambda d: _stream(d, [["1-1", ["title"]]]), "without a value"),
    ("no JSON", lambda d: d.replace(b'{"keyspace"', b'{{"keyspace"', 1), "not a line"),
    ("no text", lambda d: d.replace(b'"tags"', b'"\xff\xfe"', 1), "line"),
    ("a deep value", lambda d: _line(d, "total", value="DEEP").replace(b'"DEEP"', DEEP.encode()), "deep"),
    ("deep content", lambda d: _line(d, "total", stored="DEEP").replace(b'"DEEP"', DEEP.encode()), "deep"),
    ("a key twice", _twice, "twice"),
]


@pytest.fixture(scope="module")
def kinds_file(keywright_server: RedisServer) -> bytes:
    keywright_server.call("FLUSHALL")
    with connect(keywright_server.url, *KINDS.bindings) as db:
        fill_kinds(db)
    return exported(keywright_server.url, KINDS)[0]


@pytest.mark.parametrize(
    ("change", "reason"), [each[1:] for each in INVALID], ids=[each[0] for each in INVALID]
)
def test_one_line_that_is_invalid_and_nothing_is_written(
    redis_url: str, raw: Raw, kinds_file: bytes, change: Callable[[bytes], bytes], reason: str
) -> None:
    data = change(kinds_file)
    assert data != kinds_file
    plan = planned(redis_url, KINDS, data)
    assert plan.invalid == 1
    assert reason in plan.problems[0][1]
    with pytest.raises(UsageError, match="cannot be imported"):
        imported(redis_url, KINDS, data)
    assert raw.names() == set()


REFUSED: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("empty", lambda _: b"", "does not begin"),
    ("without its first line", lambda d: d.partition(b"\n")[2], "does not begin"),
    ("of another format", lambda d: d.replace(b'"format":1', b'"format":2', 1), "the format 2"),
    ("cut at a line", lambda d: d[: d.rindex(b'{"keys"')], "not complete"),
    ("cut in a line", lambda d: d[: len(d) // 2], "not complete"),
    ("with a line removed", lambda d: b"\n".join([*d.splitlines()[:2], *d.splitlines()[3:]]), "not complete"),
    ("with a line after its end", lambda d: d + d.splitlines()[1] + b"\n", "after the end"),
]


@pytest.mark.parametrize(
    ("change", "reason"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_a_file_that_is_not_a_whole_export_is_refused(
    redis_url: str, raw: Raw, kinds_file: bytes, change: Callable[[bytes], bytes], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        imported(redis_url, KINDS, change(kinds_file))
    assert raw.names() == set()


def test_a_line_without_end_is_not_read_whole(
    redis_url: str, raw: Raw, kinds_file: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "LONGEST_LINE", 1000)
    with pytest.raises(UsageError, match="line 2"):
        imported(redis_url, KINDS, kinds_file.partition(b"\n")[0] + b"\n" + b"x" * 5000)
    assert raw.names() == set()


def test_an_auditor_exports_what_it_may_read(kinds_url: str, raw: Raw, keywright_server: RedisServer) -> None:
    with connect(kinds_url, *KINDS.bindings) as db:
        db.run(Password("ada").set(Secret("hunter2")))
    password = hashlib.sha256(b"p").hexdigest()
    server = AclServer.REDIS_6_2 if is_redis_6(keywright_server) else AclServer.REDIS_7_0
    rules = acl(
        KINDS.model.described(), AclRole.AUDITOR, user="auditor", password_hash=password, server=server
    )
    raw(*rules.as_command().split())
    _, every = exported(kinds_url, KINDS)
    data, done = exported(as_user(kinds_url, "auditor", "p"), KINDS)
    assert b"hunter2" not in data
    assert done.left_out == {"access rules deny reading": 2}
    assert done.keys == {name: number for name, number in every.keys.items() if name != "sealed:<sealed>"}
    raw("ACL", "DELUSER", "auditor")


def test_no_damage_to_a_file_ends_in_another_error(redis_url: str, raw: Raw, kinds_file: bytes) -> None:
    random = Random(20)
    small = b"".join(line for line in kinds_file.splitlines(keepends=True) if len(line) < 2000)

    async def run() -> int:
        refused = 0
        async with aconnect(redis_url, *KINDS.bindings) as db:
            for _ in range(400):
                damaged = io.BytesIO(_damaged(small, random))
                try:
                    refused += bool((await plan_import(db, KINDS.model.spaces, damaged)).invalid)
                except UsageError:
                    refused += 1
        return refused

    assert asyncio.run(run()) > 300
    assert raw.names() == set()


def _damaged(data: bytes, random: Random) -> bytes:
    """Return a file with one change: other bytes somewhere, or another value of a member of a line."""
    if random.random() < 0.4:
        start = random.randrange(len(data))
        return data[:start] + random.randbytes(random.randrange(4)) + data[start + random.randrange(9) :]
    lines = data.splitlines()
    place = random.randrange(1, len(lines) - 1)
    read = json.loads(lines[place])
    odd: list[Any] = [
        None,
        True,
        -1,
        2**70,
        1e308,
        "",
        "\ud800",
        [],
        {},
        [[]],
        [["a"]],
        {"base64": "AA=="},
        [1, "2"],
    ]
    read[random.choice(list(read))] = random.choice(odd)
    lines[place] = json.dumps(read).encode()
    return b"\n".join(lines)


def test_reasons_have_no_data(redis_url: str, kinds_file: bytes) -> None:
    for _, change, _ in INVALID:
        for _, reason in planned(redis_url, KINDS, change(kinds_file)).problems:
            assert "hunter2" not in reason
            assert len(reason) < 500


def test_keys_of_all_classes_of_a_model_with_relations_come_back(redis_url: str, raw: Raw) -> None:
    with GARDEN.open(redis_url) as db:
        db.run(gather(MapOf("a").put_many({"x": "y"}), StreamOf("a").add(Watered("p", 1))))
        db.run(gather(UnionStreamOf("a").add(Dug("dug", 1)), UnionStreamOf("a").add(Sown("sown", 2))))
    raw("RPUSH", "g:v1:opaque:p", b"\x00", b"b")
    raw("RPUSH", "g:v1:module:b", b"a")
    before = everything(raw)
    data, done = exported(redis_url, GARDEN)
    assert sum(done.keys.values()) == len(before.content) == 5
    emptied(raw)
    assert planned(redis_url, GARDEN, data).problems == []
    imported(redis_url, GARDEN, data)
    assert_same(everything(raw), before)


def test_a_key_of_the_largest_size_fits_in_a_line() -> None:
    assert lines.LONGEST_LINE > 3 * stored.LARGEST_KEY
