"""Names by keyspace, and a purge that removes only those."""

from __future__ import annotations

import asyncio

import pytest

from keywright import Binding, aconnect, connect
from keywright.testing.runs import Raw
from keywright.tools.pace import WalkProgress
from keywright.tools.purger import apurge, count, purge
from keywright_discord.drc import bind
from keywright_discord.drc.schema import User, drc, private
from keywright_discord.spectacles import bind as bind_spectacles
from keywright_discord.spectacles import spectacles

OWN = {b"bot:v1json:users:1", b"bot:v1json:guilds", b"bot:v1json:not-declared:x", b"bot:v1json:"}
INDEX = {b"bot:v1json-private:threads:1", b"bot:v1json-private:presences:1"}
OTHERS = {
    b"bot:2:v1json:users:1",
    b"bot:v2json:users:1",
    b"bot:v1jso:users:1",
    b"bot:v1jsonx:users:1",
    b"robot:v1json:users:1",
    b"xbot:v1json:users:1",
    b"bot",
    b"users:1",
}


def removed(engine: str, url: str, *bindings: Binding) -> int:
    spaces = [binding.space for binding in bindings]
    if engine == "sync":
        with connect(url, *bindings) as db:
            return purge(db, *spaces)

    async def main() -> int:
        async with aconnect(url, *bindings) as db:
            return await apurge(db, *spaces)

    return asyncio.run(main())


def put(raw: Raw, names: set[bytes]) -> None:
    for name in names:
        raw("SET", name, "x")


@pytest.mark.parametrize("engine", ["sync", "async"])
@pytest.mark.parametrize("where", ["single", "cluster"])
def test_a_purge_takes_one_version_of_one_prefix(
    request: pytest.FixtureRequest, engine: str, where: str
) -> None:
    url, raw = _server(request, where)
    put(raw, OWN | INDEX | OTHERS)
    assert removed(engine, url, *bind("bot")) == len(OWN | INDEX)
    assert raw.names() == OTHERS


@pytest.mark.parametrize("prefix", ["b*t", "b?t", "b[o]t", "b\\ot", "b^t", "ü", "{bot}"])
def test_a_prefix_is_taken_literally(redis_url: str, raw: Raw, prefix: str) -> None:
    name = f"{prefix}:v1json:users:1".encode()
    put(raw, {name, *OWN})
    assert removed("sync", redis_url, *bind(prefix)) == 1
    assert raw.names() == OWN


@pytest.mark.parametrize("where", ["single", "cluster"])
def test_many_keys_are_removed_in_batches(request: pytest.FixtureRequest, where: str) -> None:
    url, raw = _server(request, where)
    with connect(url, *bind("bot")) as db:
        db.run(User.set_many([(str(number), {"id": str(number)}) for number in range(5000)]))
        assert count(db, drc, private) == 5000
        assert len(set(db.names(drc))) == 5000
        assert purge(db, drc, private) == 5000
        assert purge(db, drc, private) == 0
    assert raw.names() == set()


@pytest.mark.parametrize(("prefix", "lead"), [(None, b""), ("bot", b"bot:")])
def test_without_a_version_only_declared_names_are_removed(
    redis_url: str, raw: Raw, prefix: str | None, lead: bytes
) -> None:
    own = {b"USERS", b"CHANNELS:1", b"MESSAGES:1:2", b"spectacles-private:guilds"}
    others = {b"users", b"CHANNELS:x", b"v1json:users:1", b"MESSAGES:1", b"USERS:1"}
    put(raw, {lead + name for name in own | others} | {b"else"})
    assert removed("sync", redis_url, *bind_spectacles(prefix)) == len(own)
    assert raw.names() == {lead + name for name in others} | {b"else"}


@pytest.mark.anyio
async def test_names_are_those_of_the_bound_prefix(redis_url: str, raw: Raw) -> None:
    put(raw, OWN | INDEX | OTHERS)

    async with aconnect(redis_url, *bind("bot")) as db:
        found = {name async for name in db.names(drc)}
    assert found == OWN
    with connect(redis_url, *bind("bot")) as db:
        assert set(db.names(private)) == INDEX
        assert set(db.names(spectacles)) == OWN | INDEX | OTHERS, "without a prefix it is every name"


def test_no_command_of_a_purge_blocks(redis_url: str, raw: Raw) -> None:
    put(raw, OWN)
    raw("CONFIG", "RESETSTAT")
    removed("sync", redis_url, *bind("bot"))
    assert (raw.calls_of("keys"), raw.calls_of("del"), raw.calls_of("flushdb")) == (0, 0, 0)
    assert raw.calls_of("unlink") == 1


def _server(request: pytest.FixtureRequest, where: str) -> tuple[str, Raw]:
    single = where == "single"
    url: str = request.getfixturevalue("redis_url" if single else "cluster_url")
    raw: Raw = request.getfixturevalue("raw" if single else "raw_cluster")
    return url, raw


def test_a_purge_reports_its_progress(redis_url: str, raw: Raw) -> None:
    for number in range(1200):
        raw("SET", f"bot:v1json:users:{number}", "x")
    bindings = bind("bot")
    reports: list[WalkProgress] = []
    with connect(redis_url, *bindings) as db:
        spaces = [binding.space for binding in bindings]
        assert purge(db, *spaces, on_progress=reports.append) == 1200
    assert [report.seen for report in reports] == [500, 1000]
    assert {report.total for report in reports} == {1200}
