"""RESP3: every kind returns what it returns in RESP2, and pushes are not taken for replies."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import pytest
import redis
import redis.asyncio

from engines import Engine
from keywright import (
    BitFields,
    Bitmap,
    Bits,
    Call,
    Channel,
    Counter,
    Effect,
    Geo,
    HyperLogLog,
    Id,
    Keyspace,
    List,
    Map,
    Plain,
    Point,
    Record,
    Retry,
    Set,
    Settings,
    SortedSet,
    Stream,
    Value,
    aconnect,
    atomic,
    gather,
    gather_list,
    raw,
)
from keywright.engine.resp3 import in_resp2
from keywright.errors import CapabilityError, ConnectionLostError, ServerRefusedError, UsageError
from keywright.testing import RedisServer
from old_redis import is_redis_6

OpenEngine = Callable[..., Engine]

space = Keyspace("forms", "A key of each kind.")
ONCE = Settings(timeout_seconds=5.0, retry=Retry(attempts=1))


class Word(Value[str], key="word:{<n>}", space=space):
    """A text."""

    n: Id


class Hits(Counter, key="hits:{<n>}", space=space):
    """A number."""

    n: Id


class Details(msgspec.Struct):
    """Members of a record or an entry."""

    name: str
    age: int | None = None


class Person(Record[Details], key="person:{<n>}", space=space):
    """A record."""

    n: Id


class Names(Map[str, int], key="names:{<n>}", space=space):
    """A hash."""

    n: Id


class Tags(Set[str], key="tags:{<n>}", space=space):
    """A set."""

    n: Id


class Scores(SortedSet[str, float], key="scores:{<n>}", space=space):
    """A sorted set."""

    n: Id


class Lines(List[str], key="lines:{<n>}", space=space):
    """A list."""

    n: Id


class Log(Stream[Details], key="log:{<n>}", space=space):
    """A stream."""

    n: Id


class Visitors(HyperLogLog[str], key="visitors:{<n>}", space=space):
    """Distinct members."""

    n: Id


class Flags(Bitmap, key="flags:{<n>}", space=space):
    """Bits."""

    n: Id


class Levels(msgspec.Struct):
    """Fields of bits."""

    level: Annotated[int, Bits(5)]
    mood: Annotated[int, Bits(7, signed=True)]


class Gauge(BitFields[Levels], key="gauge:{<n>}", space=space):
    """Numbers in bits."""

    n: Id


class Shops(Geo[str], key="shops:{<n>}", space=space):
    """Places."""

    n: Id


def calls(n: str) -> Iterator[Call[Any]]:
    """Yield writes and reads of every kind, in order."""
    word, person, names, tags = Word(n), Person(n), Names(n), Tags(n)
    scores, lines, log, shops = Scores(n), Lines(n), Log(n), Shops(n)
    here = Point(13.361389, 38.115556)
    yield word.get()
    yield word.set("a")
    yield gather(word.get(), word.exists(), word.stored_type())
    yield Word.get_many([n])
    yield gather_list(word.get() for _ in range(40))
    yield gather(word.expire(timedelta(hours=1)), word.persist())
    yield Hits(n).add(5)
    yield Hits(n).get()
    yield person.put(Details("ann", 7))
    yield gather(person.get(), person.pick("age"))
    yield names.put_many({"a": 1, "b": 2})
    yield gather(names.all(), names.get("a"), names.get_many(["a", "c"]))
    yield gather(names.fields(), names.scan(), names.sample(9), names.has("a"))
    yield tags.add("a", "b")
    yield gather(tags.members(), tags.has("a"), tags.has_many(["a", "c"]))
    yield gather(tags.union(tags), tags.sample(9).map(set), tags.scan().map(lambda page: set(page[1])))
    yield tags.pop_many(5)
    yield scores.add_many({"a": 0.1, "b": float("inf"), "c": -3.0, "d": 1e300, "e": 2.0})
    yield gather(scores.range(), scores.range(descending=True), scores.range_by_score(0.0, 3.0))
    yield gather(scores.score("a"), scores.score("none"), scores.scores(["a", "none"]), scores.rank("b"))
    yield scores.scan()
    yield scores.increase("a", 0.2)
    yield gather(scores.pop_lowest(), scores.pop_highest(2))
    yield lines.push("a", "b", "c")
    yield gather(lines.range(), lines.pop(), lines.pop_many(5), lines.pop())
    yield lines.wait(timedelta(milliseconds=1))
    yield log.add(Details("bob"), entry_id="5-1")
    yield gather(log.range(), log.read(), log.newest(1))
    yield log.read("5-1", wait=timedelta(milliseconds=1))
    yield log.create_group("g")
    yield log.consume("g", "one")
    yield log.consume("g", "one")
    yield gather(log.groups(), log.pending("g").map(len), log.group_state("g"))
    yield log.reclaim("g", "two", idle=timedelta(0))
    yield log.acknowledge("g", "5-1")
    yield Visitors(n).add("a", "b")
    yield Visitors(n).estimate()
    yield Flags(n).set_many({7: True})
    yield gather(Flags(n).get(7), Flags(n).count(), Flags(n).first())
    yield Gauge(n).put(Levels(3, -2))
    yield gather(Gauge(n).get(), Gauge(n).pick("level"))
    yield shops.add_many({"a": here, "b": Point(13.4, 38.1)})
    yield gather(shops.position("a"), shops.position("none"), shops.distance("a", "b"))
    yield gather(shops.within(here, 20_000), shops.in_box("a", 50_000, 50_000, limit=1))
    yield atomic(word.set("b"), word.get(), scores.add_many({"x": 1.5}), scores.range(), names.all())
    yield raw(b"ZRANGE", scores, 0, -1, b"WITHSCORES")
    yield raw(b"ZADD", scores, b"INCR", 1, b"x", as_type=float)
    yield raw(b"HGETALL", names, as_type=dict[str, int])
    yield raw(b"XREAD", b"STREAMS", log, 0).map(lambda found: [entries for _, entries in found])
    yield raw(b"XINFO", b"STREAM", log).map(lambda found: found[::2])
    yield raw(b"CONFIG", b"GET", b"maxmemory-policy", as_type=dict[str, str])


@pytest.mark.parametrize("where", ["redis_url", "cluster_url"])
def test_every_kind_returns_the_same_in_both_protocols(
    where: str, open_engine: OpenEngine, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(where)
    old, new = open_engine(url), open_engine(f"{url}?protocol=3")
    for before, after in zip(calls("a"), calls("b"), strict=True):
        assert old.run(before) == new.run(after), repr(after)
    assert new.run(raw(b"CLIENT", b"GETNAME", effect=Effect.READ)) is None
    kinds = (Word, Hits, Person, Names, Scores, Log)
    assert {kind: len(new.scan(kind)) for kind in kinds} == dict.fromkeys(kinds, 2)


@pytest.mark.parametrize(
    ("verb", "reply", "expected"),
    [
        (b"GET", None, None),
        (b"HGETALL", {b"a": 1, b"b": {b"c": True}}, [b"a", 1, b"b", [b"c", 1]]),
        (b"ZSCORE", 2.0, b"2"),
        (b"ZSCORE", float("-inf"), b"-inf"),
        (b"ZSCORE", 1e300, b"1e+300"),
        (b"ZRANGE", [[b"a", 1.5], [b"b", 2.0]], [b"a", b"1.5", b"b", b"2"]),
        (b"ZRANGE", [b"a", b"b"], [b"a", b"b"]),
        (b"ZMPOP", [b"k", [[b"a", 1.5]]], [b"k", [[b"a", b"1.5"]]]),
        (b"XREAD", {b"s": [[b"1-1", [b"f", b"v"]]]}, [[b"s", [[b"1-1", [b"f", b"v"]]]]]),
        (b"JSON.NUMINCRBY", [5, 1.5, None], b"[5,1.5,null]"),
        (b"LRANGE", [False, [True]], [0, [1]]),
    ],
)
def test_a_reply_gets_the_form_of_resp2(verb: bytes, reply: Any, expected: Any) -> None:
    assert in_resp2(reply, verb) == expected


@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis])
def test_the_protocol_of_a_client_is_taken_over(
    kind: Any, open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    client = kind.from_url(redis_url, protocol=3, client_name="third")
    engine = open_engine(client)
    engine.run(Scores("a").add("x", 1.5))
    assert engine.run(Scores("a").range()) == [("x", 1.5)]
    listed = keywright_server.text("CLIENT", "LIST")
    (ours,) = [line for line in listed.splitlines() if "name=third" in line]
    assert is_redis_6(keywright_server) or "resp=3" in ours


def test_user_and_password_are_sent_with_hello(open_engine: OpenEngine) -> None:
    with RedisServer(tcp=True, password="open sesame") as server:
        server.call("ACL", "SETUSER", "ann", "on", ">letmein", "+@all", "~*", "&*")
        engine = open_engine(server.tcp_url, ONCE, protocol=3, username="ann", password="letmein")
        assert engine.run(raw(b"ACL", b"WHOAMI")) == b"ann"
        with pytest.raises(ServerRefusedError, match="WRONGPASS"):
            open_engine(server.tcp_url, ONCE, protocol=3, username="ann", password="wrong")


def test_a_server_without_hello_is_an_error_that_says_so(open_engine: OpenEngine) -> None:
    with RedisServer(tcp=True, options={"rename-command": 'HELLO ""'}) as server:
        with pytest.raises(CapabilityError, match=r"has no RESP3.*without protocol=3"):
            open_engine(server.tcp_url, ONCE, protocol=3)
        open_engine(server.tcp_url, ONCE)


@pytest.mark.parametrize("protocol", [1, 4, "three", 2.5])
def test_another_version_is_refused(protocol: Any, open_engine: OpenEngine, redis_url: str) -> None:
    with pytest.raises(UsageError, match="protocol must be 2 or 3"):
        open_engine(redis_url, protocol=protocol)


class _Pushing(socketserver.BaseRequestHandler):
    """Answers as Redis does, with a message before and after each reply, and one while idle."""

    def handle(self) -> None:
        server: Any = self.server
        while received := self.request.recv(65536):
            answers = [server.answer(command) for command in received.split(b"*")[1:]]
            self.request.sendall(b"".join(answers))


PUSH = b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n"
INFO = b"redis_version:7.0.15\r\nredis_mode:standalone\r\n"


class PushingServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    around = PUSH

    def answer(self, command: bytes) -> bytes:
        words = command.upper()
        if b"HELLO" in words:
            return b"%1\r\n$5\r\nproto\r\n:3\r\n"
        if b"CLIENT" in words or b"SELECT" in words:
            return b"+OK\r\n"
        if b"COMMAND" in words:
            return b"*0\r\n"
        if b"INFO" in words:
            return b"=%d\r\ntxt:%b\r\n" % (len(INFO) + 4, INFO)
        number = command.split(b"word:{")[1].split(b"}")[0]
        return self.around + b"$%d\r\n%b\r\n" % (len(number), number) + self.around


@pytest.fixture
def pushing() -> Iterator[PushingServer]:
    with PushingServer(("127.0.0.1", 0), _Pushing) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server
        server.shutdown()
        serving.join()


def test_pushes_between_replies_are_not_replies(open_engine: OpenEngine, pushing: PushingServer) -> None:
    engine = open_engine(f"redis://127.0.0.1:{pushing.server_address[1]}", ONCE, protocol=3)
    for round_trip in range(3):
        numbers = [f"{round_trip}-{number}" for number in range(20)]
        assert engine.run(gather_list(Word(number).get() for number in numbers)) == numbers


@pytest.mark.parametrize("surplus", [b"|1\r\n+ttl\r\n:5\r\n", b"+OK\r\n", b"!"])
def test_replies_that_cannot_be_matched_to_commands_are_an_error(
    surplus: bytes, open_engine: OpenEngine, pushing: PushingServer
) -> None:
    engine = open_engine(f"redis://127.0.0.1:{pushing.server_address[1]}", ONCE, protocol=3)
    pushing.around = surplus
    with pytest.raises(ConnectionLostError):
        engine.run(Word("a").get())


class News(Channel[bytes], channel="news:<topic>", space=space):
    """What happened."""

    topic: Annotated[str, Plain()]


@pytest.mark.anyio
async def test_a_subscription_works_in_resp3(redis_url: str) -> None:
    async with (
        aconnect(redis_url, protocol=3) as db,
        db.subscribe(News("a"), News("b")) as messages,
    ):
        await db.run(News("b").publish(b"hello"))
        assert await anext(messages) == (News("b"), b"hello")
