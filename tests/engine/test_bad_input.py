"""Invalid input of callers, servers and stored data: a documented error each, with problem and remedy."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest
import redis

from engines import Engine, Group, Log, Number, Queue, Tally, Word, bench
from keywright import AsyncDatabase, Call, Retry, Settings, aconnect, atomic, connect, gather
from keywright.errors import (
    CapabilityError,
    ConnectionLostError,
    CrossSlotError,
    KeywrightError,
    ScriptError,
    ServerRefusedError,
    StoredDataError,
    UnknownKeyError,
    UsageError,
    ValueRefusedError,
    VariableError,
    WrongTypeError,
)
from keywright.operations import Command, Effect, Operation, Script
from keywright.testing import Proxy, RedisServer
from keywright.testing.runs import Raw
from kinship import home

OpenEngine = Callable[..., Engine]

SECRET = "correct horse battery"
HASTY = Settings(retry=Retry(attempts=2, first_seconds=0.001))


@pytest.fixture
def engine(open_engine: OpenEngine, redis_url: str) -> Engine:
    return open_engine(redis_url)


@pytest.mark.parametrize("value", [7, None, b"a", "", "a b", "a{b}", ["a"], 1.5])
def test_a_variable_outside_its_alphabet_makes_no_key(value: object) -> None:
    with pytest.raises(
        VariableError, match=r"<word> of 'word:<word>' must be .*Pass (a value of that form|it as text)"
    ):
        Word(value)  # type: ignore[arg-type]  # what a program without a type checker does


@pytest.mark.parametrize("value", [7, None, b"x", ["x"]])
def test_a_value_of_another_type_is_not_sent(value: object) -> None:
    with pytest.raises(ValueRefusedError, match=r"'word:<word>' stores .*Convert the value"):
        Word("a").set(value)  # type: ignore[arg-type]  # what a program without a type checker does


@pytest.mark.parametrize(
    "operand", [None, 10**5000, ["x"], "\ud800"], ids=["None", "a long number", "a list", "a surrogate"]
)
def test_of_a_batch_with_one_command_that_cannot_be_sent_the_others_are_applied_once(
    operand: object, engine: Engine, raw: Raw
) -> None:
    add = Operation("add", b"INCRBY", Effect.ONCE)

    def adding(by: object) -> Call[object]:
        return Command(add, Tally("a"), (by,), int).attempt()

    found = engine.run(gather(*[Command(add, Tally("a"), (1,), int) for _ in range(600)]))
    assert found[-1] == 600
    with pytest.raises(UsageError, match=r"INCRBY.*tally:a.*cannot be sent"):
        engine.run(gather(*[Command(add, Tally("a"), (by,), int) for by in (*[1] * 599, operand)]))
    assert raw("GET", "tally:a") == b"1199"
    *applied, refused = engine.run(gather(adding(1), adding(operand)))
    assert applied == [1200]
    assert isinstance(refused, UsageError)


def test_an_unknown_name_is_reported_with_the_nearest_template() -> None:
    with pytest.raises(UnknownKeyError, match=r"'tally:a:b'.*closest template is 'tally:<tally>'"):
        bench.parse(b"tally:a:b")


def test_an_unknown_name_that_resembles_nothing_hints_at_the_prefix() -> None:
    with pytest.raises(UnknownKeyError, match="Check the prefix"):
        bench.parse(b"zzz")


def test_a_stored_value_that_does_not_decode_is_named_and_left(engine: Engine, raw: Raw) -> None:
    raw("SET", "number:a", "many")
    with pytest.raises(StoredDataError, match=r"number:a.*'number:<number>'.*Correct the stored value"):
        engine.run(Number("a").get())
    assert raw("GET", "number:a") == b"many"


@pytest.mark.parametrize(
    "call",
    [Word("a").get(), Tally("a").add(1), Queue("a").push("x"), Log("a").length()],
    ids=["GET", "INCRBY", "RPUSH", "XLEN"],
)
def test_a_key_of_another_type_is_named(call: Call[object], engine: Engine, raw: Raw) -> None:
    for name in ("word:a", "tally:a", "queue:a", "log:a"):
        raw("SADD", name, "stray")
    with pytest.raises(WrongTypeError, match=r":a.*should hold.*rename one of the two"):
        engine.run(call)


def test_a_failure_does_not_hide_the_answers_of_others(engine: Engine, raw: Raw) -> None:
    raw("SADD", "word:a", "stray")
    first, second = engine.run(gather(Word("a").get().attempt(), Word("b").set("x").attempt()))
    assert isinstance(first, WrongTypeError)
    assert second is True


def test_a_script_that_fails_is_named(engine: Engine) -> None:
    broken = Script("keywright.keyspace", "commit", Effect.ONCE)
    with pytest.raises(ScriptError, match=r"'commit' failed.*Report it"):
        engine.run(broken.call([Word("a")], ("1", "0", "no such check", "1", "0"), bytes))


def test_a_command_that_the_server_does_not_know_is_a_missing_capability(engine: Engine) -> None:
    unheard = Operation("unheard", b"UNHEARDOF", Effect.READ)
    with pytest.raises(CapabilityError, match=r"UNHEARDOF.*Upgrade it"):
        engine.run(Command(unheard, Word("a"), (), bytes))


def test_an_atomic_call_over_several_slots_sends_nothing(
    open_engine: OpenEngine, redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    engine = open_engine(proxy.url)
    sent = proxy.commands
    with pytest.raises(CrossSlotError, match=r"word:a.*slot \d+.*common hash tag"):
        engine.run(atomic(Word("a").set("x"), Word("b").set("x")))
    assert proxy.commands == sent


def test_an_atomic_call_over_several_slots_may_be_spread(engine: Engine) -> None:
    assert engine.run(atomic(Word("a").set("x"), Word("b").set("x"), spread=True)) == (True, True)


def test_a_relation_inside_an_atomic_call_sends_nothing(
    open_engine: OpenEngine, redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    engine = open_engine(proxy.url)
    sent = proxy.commands
    with pytest.raises(UsageError, match=r"cannot be part of atomic\(\).*Run it by itself"):
        engine.run(atomic(Group("r", "a").add("x"), home.assign("ann", "one")))
    assert proxy.commands == sent


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "localhost:6379",
        "redis+ring://localhost",
        "redis://localhost:port",
        "redis://localhost:99999",
        "redis://localhost/zero",
        "redis+sentinel://localhost",
        "redis+sentinel://localhost:x/service",
        "redis+sentinel://localhost/service/zero",
        "redis://localhost?socket_timeout=soon",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(UsageError, match=r"[.]$"):
        connect(url, settings=HASTY)


def test_an_option_of_a_url_that_is_not_known_is_named(open_engine: OpenEngine, redis_url: str) -> None:
    with pytest.raises(UsageError, match=r"the option 'bogus' of the Redis URL is not known\. Remove it"):
        open_engine(f"{redis_url}?bogus=1")


@pytest.mark.parametrize("client", [b"redis://localhost", 6379, redis.Redis])
def test_something_else_than_a_url_is_refused_with_the_remedy(client: object) -> None:
    with pytest.raises(
        UsageError, match=r"as text, .*got .*Pass the address, as in redis://localhost:6379/0"
    ):
        connect(client)  # type: ignore[arg-type]  # what a program without a type checker does


def test_sentinels_that_do_not_answer_are_asked_once_in_each_attempt(open_engine: OpenEngine) -> None:
    settings = Settings(timeout_seconds=0.2, connect_seconds=0.2, retry=Retry(attempts=2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ConnectionLostError, match=rf"sentinel 127.0.0.1:{port}/main cannot be reached"):
            open_engine(f"redis+sentinel://127.0.0.1:{port}/main", settings=settings)
        silent.setblocking(False)
        assert len(list(_connections(silent))) == settings.retry.attempts


def _connections(listening: socket.socket) -> Iterator[socket.socket]:
    """Yield the connections that wait to be accepted."""
    while True:
        try:
            connection, _ = listening.accept()
        except BlockingIOError:
            return
        connection.close()
        yield connection


def test_a_database_of_another_event_loop_says_so(redis_url: str) -> None:
    async def opened() -> AsyncDatabase:
        return await aconnect(redis_url)

    async def used(db: AsyncDatabase) -> None:
        for use in (db.run(Word("a").get()), db.run(gather(Word("a").get())), db.nodes(), db.close()):
            with pytest.raises(UsageError, match=r"belongs to another event loop\. Open it in the loop"):
                await use

    with asyncio.Runner() as loop:
        db = loop.run(opened())
        asyncio.run(used(db))
        loop.run(db.close())


def test_a_url_that_cannot_be_read_does_not_show_its_password() -> None:
    with pytest.raises(UsageError) as caught:
        connect("redis://:hunter2@localhost:port")
    assert "hunter2" not in _all_texts(caught.value)


@pytest.fixture(scope="module")
def locked() -> Iterator[RedisServer]:
    """A server with a password, and a user who may read the words and nothing else."""
    with RedisServer(tcp=True, password=SECRET) as server:
        server.call("ACL", "SETUSER", "reader", "on", ">letmein", "~word:*", "+get", "+client", "+ping")
        yield server


def _url(server: RedisServer, credentials: str) -> str:
    return f"redis://{credentials}127.0.0.1:{server.port}/0"


def _refused(open_engine: OpenEngine, url: str, call: Call[object]) -> ServerRefusedError:
    with pytest.raises(ServerRefusedError) as caught:
        open_engine(url, HASTY).run(call)
    return caught.value


def test_a_wrong_password_is_refused_and_not_shown(open_engine: OpenEngine, locked: RedisServer) -> None:
    error = _refused(open_engine, _url(locked, ":hunter2@"), Word("a").get())
    assert "Check user and password" in str(error)
    assert "hunter2" not in _all_texts(error)


def test_a_missing_password_is_asked_for(open_engine: OpenEngine, locked: RedisServer) -> None:
    error = _refused(open_engine, _url(locked, ""), Word("a").get())
    assert "Give the password in the URL" in str(error)


def test_a_refused_user_gets_the_permission_to_grant(open_engine: OpenEngine, locked: RedisServer) -> None:
    url = _url(locked, "reader:letmein@")
    assert open_engine(url).run(Word("a").get()) is None
    for call in (Word("a").set("x"), Tally("a").get()):
        error = _refused(open_engine, url, call)
        assert "NOPERM" in str(error)
        assert "Grant this user" in str(error)


def test_a_script_of_a_refused_user_gets_the_permission_to_grant_too(
    open_engine: OpenEngine, locked: RedisServer
) -> None:
    locked.call("ACL", "SETUSER", "caller", "on", ">letmein", "~*", "+@all", "-hset", "-hget")
    decide = Script("keywright.keyspace", "decide", Effect.ONCE)
    call = decide.call([Word("a")], ("id", "P", "C"), bytes)
    error = _refused(open_engine, _url(locked, "caller:letmein@"), call)
    assert error.reply.startswith("NOPERM")
    assert "Grant this user" in str(error)


def test_a_script_without_memory_gets_the_remedy(open_engine: OpenEngine) -> None:
    with RedisServer(tcp=True, options={"maxmemory-policy": "noeviction"}) as server:
        engine = open_engine(server.tcp_url)
        server.call("HSET", "word:a", "id", "Pplan")
        server.call("CONFIG", "SET", "maxmemory", "1")
        decide = Script("keywright.keyspace", "decide", Effect.ONCE)
        with pytest.raises(ServerRefusedError, match=r"OOM.*free memory"):
            engine.run(decide.call([Word("a")], ("id", "P", "C"), bytes))


def test_no_text_of_a_database_holds_its_password(open_engine: OpenEngine, locked: RedisServer) -> None:
    engine = open_engine(locked.tcp_url)
    assert engine.run(Word("a").set("x")) is True
    assert SECRET not in repr(engine)
    assert "correct" not in repr(engine)


def test_no_error_of_a_lost_server_holds_its_password(
    open_engine: OpenEngine, locked: RedisServer, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(locked.tcp_url)
    engine = open_engine(proxy.url, HASTY)
    proxy.refuse()
    proxy.cut()
    with pytest.raises(ConnectionLostError) as caught:
        engine.run(Word("a").get())
    assert "correct" not in _all_texts(caught.value)


def test_a_server_that_is_not_there_is_reported_when_the_database_is_opened(open_engine: OpenEngine) -> None:
    with pytest.raises(ConnectionLostError, match="Check that it runs"):
        open_engine("redis://127.0.0.1:1", HASTY)


def _all_texts(error: BaseException) -> str:
    """Return all texts of an error and its causes, as a traceback would print them."""
    texts = []
    shown: BaseException | None = error
    while shown is not None:
        fields = shown.__dict__ if isinstance(shown, KeywrightError) else {}
        texts.append(f"{shown} {shown!r} {fields}")
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    return "\n".join(texts)


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:S3cr3t#x@host",
        "redis://user:123#S3cr3t@host",
        "redis://user:S3cr3t/x@host",
        "redis://user:123/S3cr3t@host",
        "redis://user:S3cr3t?x@host",
        "redis://user:S3cr3t\u2100@host",
        "redis://user:S3cr3t[@host",
        "redis://user:S3cr3t@host:port/0",
        "redis+cluster://user:S3cr3t#x@host",
        "redis+sentinel://user:S3cr3t@host:port/main",
        "redis+sentinel://user:S3cr3t/x@host/main",
        "redis+sentinel://user:S3cr3t#x@host/main",
        "redis://user:x@host/0?password=S3cr3t&socket_timeout=S3cr3t",
    ],
)
def test_a_malformed_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(UsageError, match="percent-encoded") as caught:
        connect(url)
    assert "S3cr3t" not in f"{caught.value} {caught.value.__cause__}"


def test_an_invalid_value_of_an_option_is_an_error(open_engine: OpenEngine) -> None:
    with pytest.raises(UsageError, match="an option of the connection is invalid"):
        open_engine("rediss://127.0.0.1:1/0?ssl_cert_reqs=bogus")
