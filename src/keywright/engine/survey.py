"""Reading a whole database without being in anyone's way: node by node, from replicas where there are any.

A survey sends packed commands to the node whose keys it looks at, so a page of names and all that is
asked about them share one connection and no routing. Everything sent here only reads, so a connection
that breaks is opened again and asked again; a replica that goes away is replaced by its primary.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from weakref import WeakSet

import hiredis

from keywright.engine.address import Address
from keywright.engine.async_connections import Link, Links
from keywright.engine.async_database import AsyncDatabase
from keywright.engine.scan import escaped
from keywright.engine.settings import Settings
from keywright.engine.topology import Node
from keywright.engine.wire_format import ErrorReply, pack_command
from keywright.errors import ConnectionLostError, EngineError, ServerRefusedError
from keywright.keyspace.call import Call
from keywright.keyspace.context import Context
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

__all__ = ["Post", "Survey", "pack_command", "survey"]

ASK = Operation("survey", b"", Effect.READ)
READONLY = pack_command((b"READONLY",))
ATTEMPTS = 4
REDIRECTIONS = ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN")


class Post:
    """One node that is read: a primary, or a replica that stands in for it."""

    def __init__(self, primary: Node | None, links: Links, *, replica: bool, sharded: bool) -> None:
        self.primary = primary
        self.links = links
        self.replica = replica
        self.sharded = sharded
        self._greeted: WeakSet[Link] = WeakSet()

    @property
    def label(self) -> str:
        return self.links.address.shown + (" (replica)" if self.replica else "")

    async def send(self, buffer: bytes, count: int, seconds: float) -> list[Reply]:
        """The raw replies to packed commands, errors among them as values; asks again when a line breaks."""
        reason = "no answer"
        for attempt in range(ATTEMPTS):
            await asyncio.sleep(0.05 * attempt)
            try:
                # One of its own: replies that come alone on a link are parsed in one go.
                link = await self.links.borrow()
            except ConnectionLostError as error:
                reason = error.reason
                continue
            try:
                await self._greet(link, seconds)
                outcome = await link.send(buffer, count, seconds)
            finally:
                await self.links.give_back(link)
            if isinstance(outcome, tuple):
                return outcome[0]
            reason = str(outcome.reason)
        raise ConnectionLostError(self.links.address.shown, reason)

    async def _greet(self, link: Link, seconds: float) -> None:
        if self.replica and self.sharded and link not in self._greeted:
            # A replica of a cluster sends every reader to its primary, unless it is told.
            await link.send(READONLY, 1, seconds)
            self._greeted.add(link)


class Survey:
    """Every node of a database, each by one post."""

    def __init__(self, db: AsyncDatabase, posts: list[Post]) -> None:
        self.db = db
        self.posts = posts
        self.sharded = db.context.sharded
        self._seconds = db.settings.timeout_seconds
        self._by_node = {post.primary: post for post in posts}

    async def size(self, post: Post) -> int:
        """How many keys a node has, of whatever keyspace."""
        return int(await self._ask_node(post, (b"DBSIZE",)))

    async def page(self, post: Post, cursor: int, count: int, lead: bytes) -> tuple[int, list[bytes]]:
        """One SCAN: the next cursor, and names that begin with `lead`."""
        match = (b"MATCH", escaped(lead) + b"*") if lead else ()
        reply = await self._ask_node(post, (b"SCAN", cursor, *match, b"COUNT", count))
        return int(reply[0]), reply[1]

    async def ask(self, post: Post, commands: Sequence[bytes]) -> list[Reply]:
        """The replies of one node to packed reading commands; what a cluster moved meanwhile is followed."""
        if not commands:
            return []
        of_replica = post.replica
        try:
            replies = await post.send(b"".join(commands), len(commands), self._seconds)
        except EngineError:
            if not of_replica:
                raise
            self._fall_back(post)
            replies = await post.send(b"".join(commands), len(commands), self._seconds)
        if self.sharded:
            await self._follow(commands, replies)
        return replies

    async def ask_anywhere(self, questions: Sequence[tuple[bytes, bytes]]) -> list[Reply]:
        """The replies to (name, packed command) pairs, each asked where its name lives."""
        if not self.sharded:
            return await self.ask(self.posts[0], [command for _, command in questions])
        shares: dict[Post, list[int]] = {}
        for number, (name, _) in enumerate(questions):
            shares.setdefault(self._post_of(name), []).append(number)
        answers = await asyncio.gather(
            *(self.ask(post, [questions[n][1] for n in numbers]) for post, numbers in shares.items())
        )
        replies: list[Reply] = [None] * len(questions)
        for numbers, share in zip(shares.values(), answers, strict=True):
            for number, reply in zip(numbers, share, strict=True):
                replies[number] = reply
        return replies

    async def ask_primaries(self, questions: Sequence[tuple[bytes, bytes]]) -> list[Reply]:
        """The same, never of a replica, which may be behind: for what must be certain."""
        if not any(post.replica for post in self.posts):
            return await self.ask_anywhere(questions)
        return await self.db.run(_Again([_wire(command) for _, command in questions]))

    async def _ask_node(self, post: Post, command: tuple[Any, ...]) -> Reply:
        """The reply to a command about the node itself; raises what it refuses."""
        reply = (await self.ask(post, [pack_command(command)]))[0]
        if isinstance(reply, ErrorReply):
            raise ServerRefusedError(command[0].decode(), b"", str(reply))
        return reply

    def _post_of(self, name: bytes) -> Post:
        topology = self.db._topology
        owner = topology.owner(slot_of(name)) if topology is not None else None
        return self._by_node.get(owner) or self.posts[0]  # a wrong guess is answered with where to go

    def _fall_back(self, post: Post) -> None:
        """Go on at the primary. Its SCAN cursors differ, so whoever scans must begin that node again."""
        post.links = self.db._links_of(post.primary)
        post.replica = False

    async def _follow(self, commands: Sequence[bytes], replies: list[Reply]) -> None:
        moved = [
            number
            for number, reply in enumerate(replies)
            if type(reply) is ErrorReply and reply.code in REDIRECTIONS
        ]
        if moved:
            found = await self.db.run(_Again([_wire(commands[number]) for number in moved]))
            for number, reply in zip(moved, found, strict=True):
                replies[number] = reply


class _Again(Call[list[Reply]]):
    """Wires with their replies as they come, errors among them."""

    def __init__(self, wires: list[Wire]) -> None:
        self.wires = wires

    def rounds(self, context: Context) -> Rounds[list[Reply]]:
        return (yield self.wires)


def _wire(command: bytes) -> Wire:
    reader = hiredis.Reader()
    reader.feed(command)
    arguments: list[Any] = reader.gets()
    name = arguments[2] if arguments[0] == b"MEMORY" else arguments[1]
    return Wire(tuple(arguments), name, ASK, None)


@asynccontextmanager
async def survey(db: AsyncDatabase, *, prefer_replica: bool = True) -> AsyncIterator[Survey]:
    """A survey of an open database, at its replicas where there are reachable ones."""
    opened: list[Links] = []
    posts = []
    try:
        for primary in await db._primaries():
            links = await _replica_links(db, primary) if prefer_replica else None
            if links is not None:
                opened.append(links)
            chosen = links or db._links_of(primary)
            posts.append(Post(primary, chosen, replica=links is not None, sharded=db.context.sharded))
        yield Survey(db, posts)
    finally:
        for links in opened:
            await links.close()


class _Place(NamedTuple):
    host: str
    port: int


async def _replica_links(db: AsyncDatabase, primary: Node | None) -> Links | None:
    """An open way to a replica of a primary that is up to date, or None."""
    for place in await _replicas(db, primary):
        links = Links(_at(db.address, place), _impatient(db.settings))
        try:
            facts = await _replication(links, db.settings.timeout_seconds)
        except BaseException:
            await links.close()
            raise
        if "master_link_status:up" in facts:
            return links
        await links.close()
    return None


async def _replicas(db: AsyncDatabase, primary: Node | None) -> list[_Place]:
    if primary is not None:
        topology = db._topology
        return [] if topology is None else [_Place(*node) for node in topology.replicas.get(primary, [])]
    return list(_listed(await _replication(db._links_of(None), db.settings.timeout_seconds)))


async def _replication(links: Links, seconds: float) -> str:
    """INFO of a node on its replication; nothing where it cannot be asked or does not tell."""
    try:
        link = await links.shared()
    except EngineError:
        return ""
    outcome = await link.send(pack_command((b"INFO", b"replication")), 1, seconds)
    if isinstance(outcome, tuple) and isinstance(outcome[0][0], bytes):
        return outcome[0][0].decode("utf-8", "replace")
    return ""


def _listed(info: str) -> Sequence[_Place]:
    """The replicas in the words of INFO: `slave0:ip=10.0.0.2,port=6379,state=online,…`."""
    places = []
    for line in info.splitlines():
        name, _, told = line.partition(":")
        if not name.startswith("slave") or "state=online" not in told:
            continue
        facts = dict(part.split("=", 1) for part in told.split(",") if "=" in part)
        places.append(_Place(facts["ip"], int(facts["port"])))
    return places


def _at(address: Address, place: _Place) -> Address:
    scheme = "redis" if address.scheme == "unix" else address.scheme
    settings = {name: value for name, value in address.settings.items() if name != "path"}
    there = address._replace(scheme=scheme, settings=settings, sentinels=None)
    return there.at(place.host, place.port)


def _impatient(settings: Settings) -> Settings:
    # What INFO tells may be an address of another network: then the primary is soon asked instead.
    return settings._replace(connect_seconds=min(settings.connect_seconds, 2.0))
