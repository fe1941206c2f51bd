"""The cache of one database: which connections vouch for which keys, and how a batch goes through it.

Both engines have one. What differs, the connections and how they are read, is in `blocking_cache` and
`async_cache`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from keywright.engine.reply_cache import CacheStats, Lookup, ReplyCache
from keywright.engine.settings import Caching
from keywright.engine.topology import Node, Topology
from keywright.engine.tracking_link import TrackingLink
from keywright.keyspace.cached_reads import is_cacheable, names_written, writes_unnamed
from keywright.keyspace.context import Context
from keywright.keyspace.slots import SLOTS, slot_of
from keywright.keyspace.wires import Effect, Wire

__all__ = ["ClientCache", "is_left", "is_served", "only_reads"]


class Line(Protocol):
    """What keeps the link to one node."""

    link: TrackingLink | None


class ClientCache:
    """The replies that are kept of a database, and the links that vouch for them."""

    def __init__(self, limits: Caching, context: Context, topology: Callable[[], Topology | None]) -> None:
        self.context = context
        self.replies = ReplyCache(limits, self.link_of)
        self.detours = 0
        """How many deliveries were redirected or tried again. What they read is not kept."""
        self.refusal: str | None = None
        """Why a server does not report changes."""
        self.prefixes: tuple[bytes, ...] = ()
        self.classes = 0
        self._topology = topology
        self._links: list[TrackingLink | None] = [None] * (SLOTS if context.sharded else 1)

    def link_of(self, name: bytes) -> TrackingLink | None:
        """Return the link that vouches for a key, of the node that its commands are sent to."""
        if not self.context.sharded:
            return self._links[0]
        slot, topology = slot_of(name), self._topology()
        link = self._links[slot]
        if link is None or topology is None or topology.owner(slot) != link.node:
            return None
        return link

    def links(self, wires: Sequence[Wire]) -> set[TrackingLink]:
        """Return the links that vouch for what these wires read."""
        cached = self.context.cached
        found = {self.link_of(wire.name) for wire in wires if wire.source in cached and is_cacheable(wire)}
        found.discard(None)
        return found  # type: ignore[return-value]  # None was taken out

    def serve(self, link: TrackingLink) -> None:
        """Let a link vouch for the keys of its node from now on."""
        for place in link.slots if self.context.sharded else [0]:
            self._links[place] = link

    def withdraw(self, link: TrackingLink) -> None:
        """Let a link vouch for nothing any more."""
        link.end()
        for place, each in enumerate(self._links):
            if each is link:
                self._links[place] = None

    def look(self, wires: Sequence[Wire]) -> Lookup:
        return self.replies.look(wires, self.context.cached)

    def forget_written(self, wires: Sequence[Wire]) -> None:
        """Drop the replies of keys that these wires write: before they are sent, and after."""
        if writes_unnamed(wires):
            self.replies.forget_all()
        else:
            self.replies.forget(names_written(wires, self.prefixes))

    def learn_prefixes(self) -> None:
        self.prefixes, self.classes = self.context.cached_prefixes(), len(self.context.cached)

    def stats(self, *, tracking: bool) -> CacheStats:
        return self.replies.stats(tracking=tracking, refusal=self.refusal)


def only_reads(wires: Iterable[Wire]) -> bool:
    return all(wire.operation.effect is Effect.READ for wire in wires)


def is_served(lines: Iterable[Line]) -> bool:
    """Return whether every node that is known reports changes."""
    states = [line.link is not None and line.link.established for line in lines]
    return bool(states) and all(states)


def is_left(node: Node | None, lines: Mapping[Node | None, Line]) -> bool:
    """Return whether no other node that reports changes names this one as a primary."""
    links = [line.link for each, line in lines.items() if each != node]
    known = [link.topology for link in links if link is not None and link.established and link.topology]
    return bool(known) and all(node not in topology.primaries for topology in known)
