"""Channels: typed messages by declaration, in both engines, on one server and on a cluster."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

import msgspec
import pytest

from keywright import (
    Channel,
    Database,
    Effect,
    Id,
    Keyspace,
    Message,
    Published,
    Sealed,
    Settings,
    aconnect,
    check,
    connect,
)
from keywright import raw as command
from keywright.errors import (
    CapabilityError,
    ConnectionLostError,
    DeclarationError,
    KeywrightError,
    MessageError,
    ServerRefusedError,
    UsageError,
    ValueRefusedError,
    VariableError,
)
from keywright.keyspace.slots import slot_of
from keywright.testing import RedisCluster, RedisServer, as_user, wait_until
from keywright.testing.runs import Raw
from keywright.tools.acl import AclRole, AclServer, acl
from keywright.tools.diff import Severity, diff
from keywright.tools.docs.formats import Format, written
from keywright.tools.model import Model
from old_redis import is_redis_6

WITHIN = 60.0
press = Keyspace("press", "News.", prefix="p*ss")
model = Model("press", (press,))


class Article(msgspec.Struct):
    title: str
    words: int = 0


class News(Channel[Article], channel="news:<place>:<topic>", space=press):
    """Articles about a topic at a place."""

    place: Id
    topic: Id


class Ticker(Channel[int], channel="ticker:<share>", space=press, sharded=True):
    """The price of a share."""

    share: Id


def test_a_blocking_program_gets_messages_of_channels_and_patterns(redis_url: str) -> None:
    art, sport = News("rome", "art"), News("oslo", "sport")
    with connect(redis_url) as db, db.subscribe(art, News.matching(topic="sport")) as messages:
        assert db.run(News("oslo", "art").publish(Article("not asked for"))) == 0
        assert db.run(art.publish(Article("a", 3))) == 1
        assert db.run(sport.publish(Article("b"))) == 1
        assert next(messages) == Published(art, Article("a", 3))
        assert messages.get(timeout=WITHIN) == Published(sport, Article("b"))
        assert messages.get(timeout=0) is None
        messages.add(News("oslo", "art"))
        db.run(News("oslo", "art").publish(Article("c")))
        found = next(messages)
        assert (found.channel, found.message.title) == (News("oslo", "art"), "c")
        assert (messages.active, messages.interruptions) == (True, 0)


@pytest.mark.anyio
async def test_a_program_with_asyncio_gets_the_same(redis_url: str) -> None:
    art = News("rome", "art")
    async with asyncio.timeout(WITHIN), aconnect(redis_url) as db:
        async with db.subscribe(art, News.matching(topic="sport")) as messages:
            await db.run(art.publish(Article("a", 3)))
            await db.run(News("oslo", "sport").publish(Article("b")))
            found = [await anext(messages), await anext(messages)]
            await messages.add(Ticker("x")) if (await db.server()).can("sharded pub/sub") else None
        assert found == [Published(art, Article("a", 3)), Published(News("oslo", "sport"), Article("b"))]


def test_names_that_only_the_glob_matches_are_left_out_and_prefixes_are_apart(redis_url: str) -> None:
    other = press.bind(prefix="pass")
    with (
        connect(redis_url) as db,
        connect(redis_url, other) as elsewhere,
        db.subscribe(News.matching()) as messages,
    ):
        elsewhere.run(News("rome", "art").publish(Article("other prefix")))
        db.run(_raw(b"p*ss:news:only-one", b"{}"))
        db.run(_raw(b"p*ss:news:a:b:c", b"{}"))
        db.run(News("rome", "art").publish(Article("ours")))
        assert next(messages).message == Article("ours")


def _raw(name: bytes, payload: bytes) -> Any:
    return command(b"PUBLISH", name, payload, as_type=int, effect=Effect.ONCE)


def test_a_malformed_message_is_an_error_and_the_next_one_follows(redis_url: str) -> None:
    with connect(redis_url) as db, db.subscribe(News("rome", "art")) as messages:
        db.run(_raw(b"p*ss:news:rome:art", b"<xml/>"))
        db.run(News("rome", "art").publish(Article("a")))
        with pytest.raises(MessageError, match="iterate again"):
            next(messages)
        assert next(messages).message == Article("a")


def test_a_name_as_bytes_gives_bytes(redis_url: str) -> None:
    with connect(redis_url) as db, db.subscribe(b"a", patterns=[b"b*"]) as messages:
        db.run(_raw(b"b1", b"x"))
        assert next(messages) == Message(b"b1", b"x")
        with pytest.raises(UsageError, match="Make two"):
            db.subscribe(b"a", News("rome", "art"))  # type: ignore[call-overload]  # one or the other
        with pytest.raises(UsageError, match="is not a channel"):
            db.subscribe("a")  # type: ignore[call-overload]  # text is not bytes


def test_a_lost_connection_is_made_again_and_counted(redis_url: str, raw: Raw) -> None:
    with connect(redis_url) as db, db.subscribe(News("rome", "art")) as messages:
        raw("CLIENT", "KILL", "TYPE", "pubsub")
        assert db.run(News("rome", "art").publish(Article("lost"))) == 0
        while messages.interruptions == 0 or not messages.active:
            assert messages.get(timeout=0.01) is None
        db.run(News("rome", "art").publish(Article("later")))
        assert next(messages).message == Article("later")
        assert messages.interruptions == 1


def test_closing_in_another_thread_ends_the_iteration(redis_url: str) -> None:
    found: list[Published[Article]] = []
    with connect(redis_url) as db, db.subscribe(News("rome", "art")) as messages:
        reader = threading.Thread(target=lambda: found.extend(messages))
        reader.start()
        db.run(News("rome", "art").publish(Article("a")))
        wait_until(lambda: bool(found), "the message arrives")
        messages.close()
        reader.join(WITHIN)
        assert not reader.is_alive()
        assert messages.get() is None


def test_a_connection_that_falls_silent_is_given_up(redis_url: str, keywright_server: RedisServer) -> None:
    with (
        connect(redis_url, settings=Settings(timeout_seconds=0.2)) as db,
        db.subscribe(News("rome", "art")) as messages,
    ):
        keywright_server.pause()
        try:
            while messages.interruptions == 0:
                assert messages.get(timeout=0.1) is None
        finally:
            keywright_server.resume()


def test_a_quiet_connection_is_kept(redis_url: str) -> None:
    with (
        connect(redis_url, settings=Settings(timeout_seconds=0.2)) as db,
        db.subscribe(News("rome", "art")) as messages,
    ):
        assert messages.get(timeout=0.9) is None
        assert messages.interruptions == 0


def test_a_server_that_cannot_be_reached_fails_the_entering(redis_url: str) -> None:
    with RedisServer() as server:
        db = connect(server.url, settings=Settings(timeout_seconds=0.3))
    with db, pytest.raises(ConnectionLostError):
        db.subscribe(News("rome", "art")).__enter__()
    with connect(redis_url) as closed:
        pass
    with pytest.raises(ConnectionLostError, match="closed"):
        closed.subscribe(News("rome", "art")).__enter__()


def test_a_refused_channel_is_an_error(redis_url: str, raw: Raw) -> None:
    raw("ACL", "SETUSER", "deaf", "on", "nopass", "+@all", "~*", "resetchannels")
    try:
        with (
            connect(as_user(redis_url, "deaf", "x")) as db,
            pytest.raises(ServerRefusedError, match="NOPERM"),
        ):
            db.subscribe(News("rome", "art")).__enter__()
    finally:
        raw("ACL", "DELUSER", "deaf")


def test_a_thousand_messages_arrive_in_order(redis_url: str) -> None:
    with connect(redis_url) as db, db.subscribe(News("rome", "art")) as messages:
        for number in range(1000):
            db.run(News("rome", "art").publish(Article("x" * 900, number)))
        assert [next(messages).message.words for _ in range(1000)] == list(range(1000))


@pytest.mark.cluster
def test_sharded_messages_on_a_cluster_reach_the_subscribers_of_each_slot(cluster_url: str) -> None:
    shares = [f"s{number}" for number in range(8)]
    with connect(cluster_url) as db:
        if not _sharded(db):
            pytest.skip("this server has no sharded channels")
        with db.subscribe(*map(Ticker, shares)) as messages:
            assert len(messages._lines) > 1
            for number, share in enumerate(shares):
                assert db.run(Ticker(share).publish(number)) == 1
            got = {each.channel.share: each.message for each in (next(messages) for _ in shares)}  # type: ignore[attr-defined]  # Ticker
        assert got == {share: number for number, share in enumerate(shares)}


@pytest.mark.cluster
@pytest.mark.anyio
async def test_sharded_messages_follow_a_slot_that_moves(
    cluster_url: str, keywright_cluster: RedisCluster
) -> None:
    """The server ends a subscription to a slot that it gives away. Both engines subscribe at the new node."""
    async with asyncio.timeout(WITHIN), aconnect(cluster_url) as db:
        if not (await db.server()).can("sharded pub/sub"):
            pytest.skip("this server has no sharded channels")
        slot = slot_of(db.name(Ticker("moving")))
        with connect(cluster_url) as blocking, blocking.subscribe(Ticker("moving")) as waiting:
            async with db.subscribe(Ticker("moving"), Ticker("staying")) as messages:
                source = keywright_cluster.master_of(slot)
                target = next(each for each in keywright_cluster.masters() if each is not source)
                try:
                    await asyncio.to_thread(keywright_cluster.migrate_slot, slot, target)
                    while waiting.interruptions == 0 or not waiting.active:
                        assert await asyncio.to_thread(waiting.get, 0.01) is None
                    await asyncio.to_thread(
                        wait_until, lambda: messages.interruptions == 1 and messages.active, "both know"
                    )
                    await db.run(Ticker("staying").publish(1))
                    await db.run(Ticker("moving").publish(2))
                    found = {
                        each.channel: each.message for each in [await anext(messages), await anext(messages)]
                    }
                    assert await asyncio.to_thread(waiting.get, WITHIN) == Published(Ticker("moving"), 2)
                finally:
                    await asyncio.to_thread(keywright_cluster.migrate_slot, slot, source)
    assert found == {Ticker("staying"): 1, Ticker("moving"): 2}


def _sharded(db: Database) -> bool:
    return db.run(Ticker("a").publish(1).attempt()).__class__ is not CapabilityError


def test_sharded_channels_on_one_server(redis_url: str) -> None:
    with connect(redis_url) as db:
        if not db.server().can("sharded pub/sub"):
            with pytest.raises(CapabilityError, match=r"Redis 7\.0"):
                db.run(Ticker("a").publish(1))
            with pytest.raises(KeywrightError):
                db.subscribe(Ticker("a")).__enter__()
            return
        with db.subscribe(Ticker("a"), Ticker("b")) as messages:
            db.run(Ticker("b").publish(7))
            assert next(messages) == Published(Ticker("b"), 7)


def test_a_declaration_that_cannot_work_is_refused() -> None:
    with pytest.raises(UsageError, match="sharded"):
        Ticker.matching()
    with pytest.raises(UsageError, match="no variable <colour>"):
        News.matching(colour="red")
    with pytest.raises(VariableError):
        News("ro:me", "art")
    with pytest.raises(ValueRefusedError):
        News("rome", "art").publish("text")  # type: ignore[arg-type]  # not an article
    with pytest.raises(DeclarationError, match="sealed"):

        class Hidden(Channel[Annotated[str, Sealed]], channel="h", space=Keyspace("h", "h")):
            """Not possible."""

    with pytest.raises(DeclarationError, match="keyspace"):

        class Homeless(Channel[str], channel="h"):
            """Not possible."""


def test_the_proof_finds_channels_that_overlap_or_have_no_docstring() -> None:
    space = Keyspace("twice", "Two channels of one name.")

    class One(Channel[str], channel="a:<x>", space=space):
        """One."""

        x: Id

    class Two(Channel[str], channel="<y>:b", space=space):
        y: Id

    assert {finding.code for finding in check(space)} >= {"overlapping-templates", "missing-docstring"}
    assert [finding for finding in check(press) if finding.severity == "error"] == []


def test_documents_and_diff_know_channels() -> None:
    text = written(model.described(), Format.MARKDOWN)
    assert "## Channels" in text
    assert "Articles about a topic at a place." in text
    assert "stay in the shard" in text
    former = Keyspace("press", "News.", prefix="p*ss")
    _older(former)
    changes = diff(Model("press", (former,)).described(), model.described()).changes
    assert [(each.severity, each.subject) for each in changes] == [
        (Severity.BREAKING, "ticker:<share>"),
        (Severity.BREAKING, "ticker:<share>"),
        (Severity.BREAKING, "gone"),
        (Severity.COMPATIBLE, "news:<place>:<topic>"),
    ]


def _older(space: Keyspace) -> None:
    class Ticker(Channel[str], channel="ticker:<share>", space=space):
        """The price of a share."""

        share: Id

    class Gone(Channel[str], channel="gone", space=space):
        """Nothing."""


@pytest.mark.parametrize("version", [AclServer.REDIS_6_2, AclServer.REDIS_7_0])
def test_access_rules_let_writers_publish_and_readers_listen(
    version: AclServer, redis_url: str, raw: Raw, keywright_server: RedisServer
) -> None:
    if version is AclServer.REDIS_7_0 and is_redis_6(keywright_server):
        pytest.skip("Redis 6.2 has no sharded channels")
    try:
        for role in AclRole:
            rules = acl(model.described(), role, user=role.value, server=version).rules()
            raw("ACL", "SETUSER", role.value, "reset", "resetchannels", "on", ">pw", *rules)
        with (
            connect(as_user(redis_url, "reader", "pw")) as reader,
            connect(as_user(redis_url, "writer", "pw")) as writer,
            reader.subscribe(News.matching(), News("rome", "art")) as messages,
        ):
            writer.run(News("oslo", "art").publish(Article("a")))
            assert next(messages).message == Article("a")
            with pytest.raises(ServerRefusedError, match="NOPERM"):
                reader.run(News("oslo", "art").publish(Article("a")))
            with pytest.raises(ServerRefusedError, match="NOPERM"):
                writer.run(_raw(b"other", b"x"))
            with pytest.raises(ServerRefusedError, match="NOPERM"):
                reader.subscribe(b"other").__enter__()
        url = as_user(redis_url, "auditor", "pw")
        with connect(url) as auditor, pytest.raises(ServerRefusedError, match="NOPERM"):
            auditor.subscribe(News("rome", "art")).__enter__()
    finally:
        for role in AclRole:
            raw("ACL", "DELUSER", role.value)
