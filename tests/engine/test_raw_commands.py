"""Commands that the caller writes: bound names, routes, types of replies, effects, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest

from engines import Engine
from keywright import (
    Binding,
    Call,
    Context,
    Effect,
    Id,
    Keyspace,
    MessagePack,
    Retry,
    Set,
    Settings,
    Value,
    aconnect,
    atomic,
    connect,
    gather,
    preview,
    raw,
)
from keywright.errors import (
    CapabilityError,
    CrossSlotError,
    OutcomeUnknownError,
    ServerRefusedError,
    UsageError,
    WrongTypeError,
)
from keywright.operations import Steps, commit, procedure
from keywright.testing import Proxy, RedisServer
from keywright.testing.runs import OpenRun, Run
from keywright.testing.runs import Raw as Server

pantry = Keyspace("pantry", "Jars on shelves.")
OpenEngine = Callable[..., Engine]
IMPATIENT = Settings(retry=Retry(attempts=3, first_seconds=0.001))


class Label(msgspec.Struct):
    text: str


class Jar(Value[str], key="jar:<id>", space=pantry):
    """What is in a jar."""

    id: Id


class Shelf(Set[Id], key="shelf:{<room>}:<id>", space=pantry):
    """The jars on a shelf. Those of a room share a slot."""

    room: Id
    id: Id


class Renamed(Value[str], key="box:<id>", space=pantry, moved_from="crate:<id>"):
    """Called a crate before."""

    id: Id


@pytest.fixture
def prefixed(open_run: OpenRun, redis_url: str) -> Run:
    return open_run(redis_url, Binding(pantry, prefix="home"))


def test_keys_have_their_bound_names(prefixed: Run, raw_server: Server) -> None:
    prefixed(raw(b"MSET", Jar("a"), "plums", Jar("b"), b"figs"))
    assert raw_server("MGET", "home:jar:a", "home:jar:b") == [b"plums", b"figs"]
    assert prefixed(raw(b"OBJECT", b"ENCODING", Jar("a"), as_type=str, effect=Effect.READ)) == "embstr"


@pytest.fixture
def raw_server(raw: Server) -> Server:  # the fixture of the plugin has the name of the function
    return raw


@pytest.mark.parametrize(
    ("words", "as_type", "value"),
    [
        (("SET", "n", "1"), bool, True),
        (("SISMEMBER", "s", "zz"), bool, False),
        (("GET", "n"), int, 1),
        (("GET", "n"), bytes, b"1"),
        (("GET", "n"), str | None, "1"),
        (("GET", "none"), str | None, None),
        (("GET", "f"), float, 1.5),
        (("GET", "none"), Any, None),
        (("LRANGE", "l", 0, -1), list[int], [1, 2]),
        (("LRANGE", "l", 0, -1), tuple[int, ...], (1, 2)),
        (("LRANGE", "l", 0, -1), tuple[int, str], (1, "2")),
        (("SMEMBERS", "s"), set[str], {"a", "b"}),
        (("SMEMBERS", "s"), frozenset, {b"a", b"b"}),
        (("HGETALL", "h"), dict[str, int], {"x": 1, "y": 2}),
        (("MGET", "n", "none"), list[int | None], [1, None]),
        (("XRANGE", "log", "-", "+"), dict[str, dict[str, str]], {"1-1": {"text": "hi"}}),
        (("GET", "json"), Label, Label("jam")),
        (("GET", "packed"), Annotated[Label, MessagePack], Label("jam")),
    ],
)
def test_replies_have_the_type_of_the_caller(words: Any, as_type: Any, value: object, run: Run) -> None:
    run(
        raw(
            "MSET",
            "n",
            1,
            "f",
            1.5,
            "json",
            b'{"text":"jam"}',
            "packed",
            msgspec.msgpack.encode(Label("jam")),
        )
    )
    run(raw("RPUSH", "l", 1, 2))
    run(raw("SADD", "s", "a", "b"))
    run(raw("HSET", "h", "x", 1, "y", 2))
    run(raw("XADD", "log", "1-1", "text", "hi"))
    assert run(raw(*words, as_type=as_type)) == value


@pytest.mark.parametrize(
    ("words", "as_type"),
    [
        (("GET", "text"), int),
        (("GET", "text"), bool),
        (("GET", "text"), list[str]),
        (("GET", "none"), str),
        (("GET", "text"), Label),
        (("LRANGE", "l", 0, -1), dict[str, str]),
        (("LRANGE", "l", 0, -1), tuple[str]),
        (("LRANGE", "l", 0, -1), float),
    ],
)
def test_a_reply_of_another_type_is_an_error_that_does_not_quote_it(
    words: Any, as_type: Any, run: Run
) -> None:
    run(raw("SET", "text", "S3cr3t"))
    run(raw("RPUSH", "l", "S3cr3t", "b", "c"))
    with pytest.raises(UsageError, match="Pass another as_type") as caught:
        run(raw(*words, as_type=as_type))
    assert "S3cr3t" not in str(caught.value)


def test_a_raw_command_is_a_call_as_others(run: Run) -> None:
    call = raw(b"STRLEN", Jar("a"), as_type=int)
    assert run(gather(Jar("a").set("figs"), call, raw(b"ECHO", "x"))) == (True, 4, b"x")
    assert run(atomic(Jar("a").set("plum"), call, spread=True)) == (True, 4)
    assert run(call.map(str)) == "4"
    assert isinstance(run(raw(b"LPUSH", Jar("a"), "x").attempt()), WrongTypeError)


@procedure
def _doubled(jar: Jar) -> Steps[int]:
    length = yield raw(b"STRLEN", jar, as_type=int)
    return 2 * int(length)


def test_procedures_use_raw_commands(run: Run) -> None:
    run(Jar("a").set("figs"))
    assert run(_doubled(Jar("a"))) == 8


def test_a_commit_refuses_a_raw_command(run: Run) -> None:
    with pytest.raises(UsageError, match=r"cannot be part of a commit\. Use a Command"):
        run(commit("fill", [], [raw(b"SET", Jar("a"), "x")]))


def test_a_renamed_key_is_moved_first(run: Run, raw_server: Server) -> None:
    raw_server("SET", "crate:a", "tea")
    assert run(raw(b"GET", Renamed("a"), as_type=str)) == "tea"
    assert raw_server("EXISTS", "crate:a") == 0


@pytest.mark.cluster
def test_keys_route_a_command(cluster_run: Run) -> None:
    for number in range(20):
        cluster_run(raw(b"SET", Jar(f"j{number}"), number))
    assert [cluster_run(raw(b"GET", Jar(f"j{number}"), as_type=int)) for number in range(20)] == list(
        range(20)
    )
    cluster_run(gather(Shelf("r", "a").add("x", "y"), Shelf("r", "b").add("y", "z")))
    assert cluster_run(raw(b"SINTER", Shelf("r", "a"), Shelf("r", "b"), as_type=set[str])) == {"y"}


@pytest.mark.cluster
def test_names_without_a_key_are_followed_to_their_node(cluster_run: Run) -> None:
    calls = [raw(b"SET", f"plain:{number}", number) for number in range(20)]
    assert cluster_run(gather(*calls)) == (b"OK",) * 20


def test_keys_of_several_slots_are_refused_on_a_cluster_before_anything_is_sent() -> None:
    call = raw(b"MSET", Jar("a"), 1, Jar("b"), 2)
    with pytest.raises(CrossSlotError, match=r"one MSET must stay.*jar:a.*send one command per slot"):
        preview(call, Context(sharded=True))
    assert len(preview(call)) == 1


@pytest.mark.parametrize("effect", [Effect.READ, Effect.REPEATABLE])
def test_a_command_that_may_be_repeated_is_sent_again(
    effect: Effect, open_engine: OpenEngine, redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    run = open_engine(proxy.url, IMPATIENT).run
    proxy.cut_before_reply(1)
    assert run(raw(b"SET", Jar("a"), "x", effect=effect)) == b"OK"


def test_a_command_is_sent_once_if_nothing_else_is_said(
    open_engine: OpenEngine, redis_url: str, raw_server: Server, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    run = open_engine(proxy.url, IMPATIENT).run
    proxy.cut_before_reply(1)
    with pytest.raises(OutcomeUnknownError):
        run(raw(b"APPEND", Jar("a"), "x"))
    assert raw_server("GET", "jar:a") == b"x"


def test_a_blocking_command_waits_longer_than_a_timeout(open_engine: OpenEngine, redis_url: str) -> None:
    run = open_engine(redis_url, Settings(timeout_seconds=0.2)).run
    assert run(raw(b"BLPOP", "empty", 0.4, blocking=0.4)) is None


def anything(value: object) -> Any:
    """Return a value as a program without a type checker passes it."""
    return value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: raw(b"CONFIG GET", "x"), "Pass each word"),
        (lambda: raw(""), "is not a command"),
        (lambda: raw("MULTI"), r"changes the state .*atomic\(\)"),
        (lambda: raw("subscribe", "x"), r"db\.subscribe\(\)"),
        (lambda: raw("client", "reply", "off"), "changes the state"),
        (lambda: raw("BLPOP", "x", 0), "Pass blocking="),
        (lambda: raw("XREAD", "block", 0, "STREAMS", "x", "$"), "Pass blocking="),
        (lambda: raw("SET", "x", anything(None)), "not a NoneType"),
        (lambda: raw("SET", "x", True), "not a bool"),
        (lambda: raw("GET", "x", as_type=int | str), "several types"),
        (lambda: raw("GET", "x", as_type=complex), "is not possible"),
        (lambda: raw("GET", "x", effect=anything("reads")), "effect must be Effect"),
    ],
)
def test_a_command_that_cannot_be_sent_is_refused_with_the_remedy(
    make: Callable[[], Call[Any]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_the_text_of_a_call_has_its_keys_and_no_values() -> None:
    assert repr(raw("SET", Jar("a"), "S3cr3t")) == "<SET Jar(id='a') …>"


def test_errors_of_the_server_are_those_of_other_calls(run: Run) -> None:
    with pytest.raises(CapabilityError):
        run(raw("UNHEARDOF"))
    with pytest.raises(ServerRefusedError, match="CONFIG"):
        run(raw("CONFIG", "NONSENSE"))


async def _async_name(url: str) -> bytes:
    async with aconnect(url, pantry.bind(prefix="home", version="v2")) as db:
        return db.name(Jar("a"))


@pytest.mark.anyio
async def test_names_of_keys_are_those_that_other_clients_use(redis_url: str, raw_server: Server) -> None:
    with connect(redis_url, pantry.bind(prefix="home", version="v2")) as db:
        db.run(Jar("a").set("figs"))
        assert raw_server("GET", db.name(Jar("a"))) == b"figs"
        raw_server("SET", db.name(Jar("b")), "plums")
        assert db.run(Jar("b").get()) == "plums"
        assert db.name(Jar("a")) == b"home:v2:jar:a" == await _async_name(redis_url)
        with pytest.raises(UsageError, match="Pass key: Key"):
            db.name("a")  # type: ignore[arg-type]  # what a program without a type checker does


def test_a_chosen_node_takes_reads_only(run: Run, keywright_server: RedisServer) -> None:
    with connect(keywright_server.url) as db:
        (node,) = db.nodes()
        assert db.run(raw("DBSIZE", as_type=int, effect=Effect.READ), at=node) == 0
        with pytest.raises(UsageError, match="may write"):
            db.run(raw("DBSIZE"), at=node)
