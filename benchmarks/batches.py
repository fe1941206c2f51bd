"""1,000 typed calls in one batch, of every kind: against pipelines of other clients, and the limits.

Before a write is timed, Keywright and redis-py leave keys with the same DUMP (streams: of the same length);
before a read is, they return the same values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import redis
import redis.asyncio

from benchmarks.kinds import CALLS, fill_all
from benchmarks.measuring import (
    FULL,
    Effort,
    Race,
    Result,
    Sampler,
    Target,
    at_least,
    at_most,
    blocking,
    in_loop,
)
from benchmarks.other_clients import (
    COREDIS,
    COREDIS_FORMS,
    GLIDE,
    GLIDE_FORMS,
    GLIDE_SYNC,
    Form,
    Held,
    coredis_batch,
    coredis_client,
    glide_batch,
    glide_client,
    glide_sync_batch,
    glide_sync_client,
    missing,
)
from benchmarks.prepacked import CALLS_MADE, PREPACKED, SERVER, Prepacked, packed, server_rate
from benchmarks.workload import identities, opened
from benchmarks.works import MIXED, WORK, Work
from keywright import Database, connect
from keywright.testing import RedisServer

EXECUTIONS, QUICK_EXECUTIONS = 6, 2
SYNC, ASYNCIO = "redis-py pipeline", "redis-py asyncio pipeline"
TARGETS: dict[str, Target] = {SYNC: at_least(3), ASYNCIO: at_least(5), PREPACKED: at_most(3)}
LIMITS = frozenset({PREPACKED, SERVER, CALLS_MADE})

WRITTEN = [f"w{each}" for each in identities(CALLS)]
"""The keys that are written: those that are read stay as they are."""
WRITTEN_KEYS = "bench:*:w*"
STORED = identities(CALLS)


def measure(server: RedisServer, effort: Effort = FULL, kinds: Sequence[str] = ()) -> Iterator[Result]:
    """Yield the comparisons of all kinds, or of some."""
    chosen = [work for work in (*WORK, MIXED) if not kinds or work.kind in kinds]
    url = server.tcp_url
    with connect(url) as db:
        db.run(fill_all(STORED))
        for work in chosen:
            _same(db, url, work)
    for work in chosen:
        yield from _blocking(url, work, effort)
    for work in chosen:
        yield from _asyncio(url, work, effort)


def ids_of(work: Work) -> list[str]:
    return STORED if work.read else WRITTEN


def _same(db: Database, url: str, work: Work) -> None:
    """Compare what both sides return, or what they leave in the server. Raise if it differs."""
    ids = ids_of(work)
    with redis.Redis.from_url(url) as client:

        def by_hand() -> list[Any]:
            pipe = client.pipeline(transaction=False)
            work.filled(pipe, ids)
            replies: list[Any] = pipe.execute()
            return replies

        if work.read:
            assert work.plainly(db.run(work.batch(ids))) == work.values(by_hand()), work.subject
            return
        left = []
        writes: tuple[Callable[[], Any], ...] = (lambda: db.run(work.batch(ids)), by_hand)
        for write in writes:
            client.delete(WRITTEN[0], *client.keys(WRITTEN_KEYS))
            write()
            left.append(_left(client))
        assert left[0] == left[1], work.subject


def _left(client: Any) -> dict[bytes, object]:
    names = sorted(client.keys(WRITTEN_KEYS))
    pipe = client.pipeline(transaction=False)
    for name in names:
        (pipe.xlen if b":stream:" in name else pipe.dump)(name)
    return dict(zip(names, pipe.execute(), strict=True))


def _blocking(url: str, work: Work, effort: Effort) -> Iterator[Result]:
    with ExitStack() as stack:
        db = stack.enter_context(connect(url))
        client = stack.enter_context(redis.Redis.from_url(url))
        ids, read, executions = ids_of(work), work.values, effort.pick(EXECUTIONS, QUICK_EXECUTIONS)

        def ours() -> list[Any]:
            return db.run(work.batch(ids))

        def theirs() -> list[Any]:
            with client.pipeline(transaction=False) as pipe:
                work.filled(pipe, ids)
                return read(pipe.execute())

        sides = {"keywright": blocking(ours, executions), SYNC: blocking(theirs, executions)}
        form = GLIDE_FORMS.get(work.subject)
        if form and GLIDE_SYNC not in missing():
            other = stack.enter_context(glide_sync_client(url))
            fill = _fill(form, ids)

            def glide() -> list[Any]:
                return _read(form, glide_sync_batch(other, fill))

            _check_read(work, db.run(work.batch(ids)), glide())
            sides[GLIDE_SYNC] = blocking(glide, executions)
        sides |= _limits(stack, url, work, client, executions, server=not effort.quick)
        race = Race("batches", f"sync {work.subject}", sides, effort.rounds(), TARGETS, LIMITS)
        yield from race.throughput(CALLS)


def _asyncio(url: str, work: Work, effort: Effort) -> Iterator[Result]:
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        others: list[Held] = []
        db, client = runner.run(opened(url)), redis.asyncio.Redis.from_url(url)
        ids, read, executions = ids_of(work), work.values, effort.pick(EXECUTIONS, QUICK_EXECUTIONS)

        async def ours() -> list[Any]:
            return await db.run(work.batch(ids))

        async def theirs() -> list[Any]:
            async with client.pipeline(transaction=False) as pipe:
                work.filled(pipe, ids)
                return read(await pipe.execute())

        sides = {"keywright": in_loop(runner, ours, executions), ASYNCIO: in_loop(runner, theirs, executions)}
        for name, forms, connected, batch in (
            (COREDIS, COREDIS_FORMS, coredis_client, coredis_batch),
            (GLIDE, GLIDE_FORMS, glide_client, glide_batch),
        ):
            form = forms.get(work.subject)
            if form is None or name in missing():
                continue
            others.append(Held(connected(url)))
            other = runner.run(others[-1].open())
            fill = _fill(form, ids)

            async def peer(
                form: Form = form, batch: Any = batch, other: Any = other, fill: Any = fill
            ) -> list[Any]:
                return _read(form, await batch(other, fill))

            _check_read(work, runner.run(ours()), runner.run(peer()))
            sides[name] = in_loop(runner, peer, executions)
        with redis.Redis.from_url(url) as packing:
            sides |= _limits(stack, url, work, packing, executions, server=False)
        race = Race("batches", f"asyncio {work.subject}", sides, effort.rounds(), TARGETS, LIMITS)
        try:
            yield from race.throughput(CALLS)
        finally:
            for held in others:
                runner.run(held.close())
            runner.run(db.close())
            runner.run(client.aclose())


def _limits(
    stack: ExitStack, url: str, work: Work, client: Any, executions: int, *, server: bool
) -> dict[str, Sampler]:
    """Return the samplers of the limits. redis-benchmark repeats the first command on one key."""
    ids = ids_of(work)
    line = Prepacked(url)
    stack.callback(line.close)
    data, replies = packed(lambda pipe: work.filled(pipe, ids), client)

    def calls_made() -> None:
        work.batch(ids)
        line.send(data, replies)

    found = {
        PREPACKED: blocking(lambda: line.send(data, replies), executions),
        CALLS_MADE: blocking(calls_made, executions),
    }
    if server and replies == CALLS and work is not MIXED:
        pipe = client.pipeline(transaction=False)
        work.fill(pipe, ids[0], 0)
        command = pipe.command_stack[0][0]
        found[SERVER] = lambda: [CALLS / server_rate(url, command, CALLS)]
    return found


def _fill(form: Form, ids: Sequence[str]) -> Callable[[Any], None]:
    add = form.fill

    def filled(pipe: Any) -> None:
        for number, each in enumerate(ids):
            add(pipe, each, number)

    return filled


def _read(form: Form, replies: Sequence[Any]) -> list[Any]:
    return list(map(form.read, replies)) if form.read else list(replies)


def _check_read(work: Work, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    if work.read:
        assert work.plainly(ours) == list(theirs), work.subject
