"""Pages of names that workers share: what the process that scans sends, and what a worker does with it.

A worker keeps what it learnt of the pages of a walk until it is asked for it, so names are most of what goes
through the pipes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from keywright.engine.nodes import NodeReader, name_page
from keywright.errors import ConnectionLostError
from keywright.tools.jobs.workers import Workers
from keywright.tools.pace import Pace, Pacemaker
from keywright.tools.page_tasks import PageTasks
from keywright.tools.readable import ReadableDatabase

__all__ = ["Page", "PageWork", "PagesJob", "SharedPages", "Stretch", "collected", "pacemaker_of"]


IN_FLIGHT = 3
"""The pages of a stretch that are at work at a time."""


class Page(NamedTuple):
    """A page of names, and the place in the walk that it was read from."""

    cursor: int
    size: int
    """How many names were asked for."""
    names: list[bytes]


class _PageRequest(msgspec.Struct, tag="page", array_like=True):
    walk: int
    node: str
    page: Page


class _StretchRequest(msgspec.Struct, tag="stretch", array_like=True):
    walk: int
    node: str
    cursor: int
    size: int
    pages: int


class Stretch(msgspec.Struct, array_like=True):
    """A part of the names of a node that a worker read itself: where it ended, and what came of its pages."""

    cursor: int
    names: int
    contents: list[bytes]


class _CollectRequest(msgspec.Struct, tag="collect", array_like=True):
    walk: int


_encode = msgspec.msgpack.Encoder().encode
_request = msgspec.msgpack.Decoder(_PageRequest | _StretchRequest | _CollectRequest)
_stretch = msgspec.msgpack.Decoder(Stretch)


class SharedPages:
    """Gives the pages of one node to workers.

    `walk` is a number that no other walk of these workers has. Pages of several nodes may have the same.
    """

    def __init__(self, workers: Workers, walk: int, db: ReadableDatabase, node: NodeReader) -> None:
        self._workers = workers
        self._walk = walk
        self._node = _named(node)
        self._reads_again = db.is_still

    async def work(self, page: Page) -> bytes:
        """Return what a worker returned for a page."""
        if self._reads_again:  # of a file it must know where the values are
            page = page._replace(names=[])
        return await self._workers.ask(_encode(_PageRequest(self._walk, self._node, page)))

    async def stretch(self, cursor: int, size: int, pages: int) -> Stretch:
        """Have a worker read so many pages of a primary from a cursor on, and work on them."""
        request = _StretchRequest(self._walk, self._node, cursor, size, pages)
        return _stretch.decode(await self._workers.ask(_encode(request)))

    async def collected(self) -> list[bytes]:
        """Return what all workers learnt of the walk so far."""
        return await collected(self._workers, self._walk)


async def collected(workers: Workers, walk: int) -> list[bytes]:
    """Return what all workers learnt of a walk so far."""
    return await workers.ask_all(_encode(_CollectRequest(walk)))


class PageWork(Protocol):
    """The work of one worker on one walk."""

    async def work(self, names: list[bytes], node: NodeReader, nodes: Sequence[NodeReader]) -> bytes: ...

    async def collected(self) -> bytes: ...


class PagesJob:
    """The job of a worker that gets pages. `begin` makes the work of a walk, at its first page.

    At a gentle pace a worker rests after each page, before it replies. A node then has one page at a time at
    work, so it has the rests of one process, however many there are. The rate is kept where names are read.
    """

    def __init__(
        self,
        db: ReadableDatabase,
        pacemaker: Pacemaker,
        begin: Callable[[], PageWork],
        *,
        prefer_replica: bool = False,
    ) -> None:
        self._db = db
        self._pacemaker = pacemaker
        self._begin = begin
        self._prefer_replica = prefer_replica
        self._nodes: list[NodeReader] = []
        self._walks: dict[int, PageWork] = {}

    async def answer(self, content: bytes) -> bytes:
        request = _request.decode(content)
        walk = self._walks.get(request.walk)
        if walk is None:
            walk = self._walks[request.walk] = self._begin()
        if isinstance(request, _CollectRequest):
            return await walk.collected()
        node = await self._node(request.node)
        if isinstance(request, _StretchRequest):
            return _encode(await self._stretched(walk, node, request))
        page = request.page
        names = page.names
        if self._db.is_still:
            _, names = await self._db.run(name_page(page.cursor, page.size), at=node)
        return await self._worked(walk, names, node)

    async def _worked(self, walk: PageWork, names: list[bytes], node: NodeReader) -> bytes:
        found = await walk.work(names, node, self._nodes)
        await self._pacemaker.wait(0)
        return found

    async def _stretched(self, walk: PageWork, node: NodeReader, request: _StretchRequest) -> Stretch:
        node.fall_back()  # a cursor is that of the primary
        cursor, seen, contents = request.cursor, 0, list[bytes]()

        async def work(names: list[bytes]) -> None:
            contents.append(await self._worked(walk, names, node))

        async with PageTasks(self._pacemaker.pace.together(IN_FLIGHT)) as in_flight:
            for _ in range(request.pages):
                cursor, names = await self._db.run(name_page(cursor, request.size), at=node)
                seen += len(names)
                await in_flight.add(work(names))
                if not cursor:
                    break
            await in_flight.all_done()
        return Stretch(cursor, seen, contents)

    async def _node(self, name: str) -> NodeReader:
        if not self._nodes:
            self._nodes = await self._db.nodes(prefer_replica=self._prefer_replica)
        for node in self._nodes:
            if _named(node) == name:
                return node
        raise ConnectionLostError(name, "it is not a node of the cluster any more")


def pacemaker_of(pace: Pace, db: ReadableDatabase) -> Pacemaker:
    """Return the pacemaker of a worker, for the pace of the walk."""
    return Pacemaker(Pace(full_speed=pace.on(db).full_speed))


def _named(node: NodeReader) -> str:
    return "" if node.primary is None else str(node.primary)
