"""A process that dies between two commands of an edit leaves all of it or nothing, and can be undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import garden
from keywright import aconnect, connect, recover
from keywright.engine.nodes import Batch
from keywright.errors import OutcomeUnknownError
from keywright.explorer.edits import Edit, Edits
from keywright.explorer.relation_forms import Roles
from keywright.testing import Proxy
from keywright.testing.runs import Raw
from keywright.tools.audit.matcher import Matcher
from keywright.tools.repair.undo import undo

BINDINGS = garden.SAMPLE.bindings
MOST_ROUNDS = 30


class DiedError(BaseException):
    """The end of the process, which nothing catches."""


class Mortal:
    """A database whose process dies before its next round trip once it has made so many."""

    def __init__(self, db: Any, rounds: int) -> None:
        self.db = db
        self.context = db.context
        self.left = rounds

    async def run(self, call: Any) -> Any:
        rounds, replies = call.rounds(self.context), None
        while True:
            try:
                wires = next(rounds) if replies is None else rounds.send(replies)
            except StopIteration as stop:
                return stop.value
            if self.left == 0:
                raise DiedError
            self.left -= 1
            replies = await self.db.run(Batch(wires))


def fill(raw: Raw) -> None:
    raw("FLUSHALL")
    raw("SET", "g:v1:gardener:ann:plot", "p1")
    raw("SADD", "g:v1:plot:p1:gardeners", "ann", "ben")
    raw("SADD", "g:v1:working", "ann")
    raw("HSET", "g:v1:tool:t", "width", "1")
    raw("SADD", "g:v1:tools", "t")


def stored(raw: Raw) -> dict[str, Any]:
    return {
        "plot": raw("GET", "g:v1:gardener:ann:plot"),
        "one": set(raw("SMEMBERS", "g:v1:plot:p1:gardeners")),
        "two": set(raw("SMEMBERS", "g:v1:plot:p2:gardeners")),
        "working": set(raw("SMEMBERS", "g:v1:working")),
        "tool": raw("HGETALL", "g:v1:tool:t"),
        "tools": set(raw("SMEMBERS", "g:v1:tools")),
    }


async def planned(edits: Edits, db: Any, key: Any, action: str, texts: dict[str, str]) -> Edit:
    roles = Roles([garden.garden])
    form = roles.form(db, key, action)
    assert form is not None
    change = await form.change(await form.state(), texts)
    listing = roles.listing(key, present=False) if action == "delete" else []
    return edits.plan(form.title, key, change._replace(writes=[*change.writes, *listing]))


async def applied(url: str, path: Path, key: Any, action: str, texts: dict[str, str], rounds: int) -> Edit:
    async with aconnect(url, *BINDINGS) as db:
        matcher = Matcher([garden.garden], db.context)
        edits = Edits(db, [garden.garden], matcher.key, writable=True, undo_file=path)
        edit = await planned(edits, db, key, action, texts)
        edits.db = Mortal(db, rounds)  # type: ignore[assignment]  # it runs calls as a database does
        with suppress(DiedError):
            await edits.apply(edit, edit.mark)
        return edit


def undone(url: str, path: Path) -> None:
    async def run() -> None:
        async with aconnect(url, *BINDINGS) as db:
            await undo(db, path, [garden.garden])

    asyncio.run(run())


def recovered(url: str) -> None:
    with connect(url, *BINDINGS) as db:
        while any(db.run(recover(garden.garden, grace=timedelta(0)))):
            pass


def deaths(url: str, raw: Raw, tmp_path: Path, key: Any, action: str, texts: dict[str, str]) -> set[str]:
    """Die at every point. Return how the data was found."""
    fill(raw)
    before = stored(raw)
    found = set()
    for rounds in range(MOST_ROUNDS):
        fill(raw)
        edit = asyncio.run(applied(url, tmp_path / f"{rounds}.undo", key, action, texts, rounds))
        recovered(url)
        now = stored(raw)
        found.add("before" if now == before else "after")
        if now != before:
            assert edit.undo_file.exists()
        if edit.undo_file.exists():
            undone(url, edit.undo_file)
        assert stored(raw) == before, rounds
        if edit.state == "applied":
            return found
    raise AssertionError("it never came to an end")


EDITS: dict[str, tuple[Callable[[], Any], str, dict[str, str]]] = {
    "move": (lambda: garden.PlotOf(gardener="ann"), "relate", {"partner": "p2"}),
    "delete": (lambda: garden.Tool(tool="t"), "delete", {}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_death_between_two_commands_on_one_server(
    redis_url: str, raw: Raw, tmp_path: Path, edit: str
) -> None:
    key, action, texts = EDITS[edit]
    assert deaths(redis_url, raw, tmp_path, key(), action, texts) == {"before", "after"}


@pytest.mark.parametrize("edit", EDITS)
def test_death_between_two_commands_on_a_cluster(
    cluster_url: str, raw_cluster: Raw, tmp_path: Path, edit: str
) -> None:
    key, action, texts = EDITS[edit]
    assert deaths(cluster_url, raw_cluster, tmp_path, key(), action, texts) == {"before", "after"}


def test_a_lost_reply_is_reported_and_can_be_undone(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    async def run() -> tuple[Any, Edit]:
        with Proxy(redis_url) as proxy:
            async with aconnect(proxy.url, *BINDINGS) as db:
                matcher = Matcher([garden.garden], db.context)
                edits = Edits(db, [garden.garden], matcher.key, writable=True, undo_file=tmp_path / "undo")
                edit = await planned(edits, db, garden.Tool(tool="t"), "change", {"member.width": "2"})
                probe = await planned(edits, db, garden.Plant(plant="p"), "set", {"value": "rose"})
                await edits.apply(probe, probe.mark)  # so that the server knows the script
                proxy.cut_before_reply(3)  # two reads, then the commit
                with pytest.raises(OutcomeUnknownError):
                    await edits.apply(edit, edit.mark)
                proxy.heal()
                written = raw("HGET", "g:v1:tool:t", "width")
                await edits.undo(edit)
                return written, edit

    fill(raw)
    written, edit = asyncio.run(run())
    assert written == b"2"
    assert edit.problem is not None
    assert "It may have been written" in edit.problem
    assert raw("HGET", "g:v1:tool:t", "width") == b"1"
