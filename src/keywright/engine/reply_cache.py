"""Replies that are kept in memory, each as long as a connection vouches for its key. No I/O.

A reply is kept under the arguments of its command, as the bytes that the server sent: sealed values stay
sealed, and every read decodes again. A read is registered before it is sent. If its key changes meanwhile,
the reply may be older than the change, whose report has come already, so it is not kept.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from keywright.engine.settings import Caching
from keywright.errors import KeywrightError
from keywright.keyspace.cached_reads import is_cacheable
from keywright.keyspace.key import TTL, Key
from keywright.keyspace.wires import Arguments, Reply, Sound, Wire

__all__ = ["CacheStats", "Link", "Lookup", "ReplyCache"]

# An entry's share of the tables, and what an object takes beside its bytes, as measured.
ENTRY_BYTES = 300
PART_BYTES = 50


class CacheStats(NamedTuple):
    """What the cache of a database holds and has done. `tracking` is whether it serves replies now."""

    tracking: bool
    entries: int
    bytes: int
    hits: int
    misses: int
    invalidations: int
    """Replies that were dropped because their key had changed, or may have."""
    evictions: int
    """Replies that were dropped because others needed their place."""
    refusal: str | None = None
    """Why the server does not report changes, if it refused; nothing is cached then."""


NO_CACHE = CacheStats(False, 0, 0, 0, 0, 0, 0)


class Link:
    """One connection that reports changes of keys. It vouches for them until a moment, then for nothing."""

    vouched_until = float("-inf")


class _Entry:
    __slots__ = ("bytes", "expires", "link", "name", "reply")

    def __init__(self, reply: Any, size: int, expires: float, link: Link, name: bytes) -> None:
        self.reply = reply
        self.bytes = size
        self.expires = expires
        self.link = link
        self.name = name


class _Flight:
    """A read under way. It is not kept once its name may have changed."""

    __slots__ = ("link", "longest", "started", "sure", "wire")

    def __init__(self, wire: Wire, link: Link, started: float, longest: float) -> None:
        self.wire = wire
        self.link = link
        self.started = started
        self.longest = longest
        self.sure = True


class Lookup:
    """A batch of reads: replies from the cache, and the wires that are to be sent for the others.

    A read that is to be kept is preceded by PTTL, so that the reply is not kept longer than its key lives.
    """

    __slots__ = ("flights", "replies", "sent")

    def __init__(self, size: int) -> None:
        self.replies: list[Reply] = [None] * size
        self.flights: list[tuple[int, _Flight | None]] = []
        self.sent: list[Wire] = []


class ReplyCache:
    """The kept replies of one database. Safe to share between threads."""

    def __init__(
        self,
        limits: Caching,
        link_of: Callable[[bytes], Link | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._link_of = link_of
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Arguments, _Entry] = OrderedDict()
        self._by_name: dict[bytes, list[Arguments]] = {}
        self._flights: dict[bytes, list[_Flight]] = {}
        self._bytes = self._hits = self._misses = self._invalidations = self._evictions = 0

    def look(self, wires: Sequence[Wire], cached: Mapping[type[Key], float]) -> Lookup:
        """Return the replies that are kept, and what to send for the others."""
        lookup = Lookup(len(wires))
        with self._lock:
            now = self._clock()
            for place, wire in enumerate(wires):
                longest = cached.get(wire.source) if wire.source is not None else None
                if longest is None or not is_cacheable(wire):
                    lookup.flights.append((place, None))
                    lookup.sent.append(wire)
                    continue
                link = self._link_of(wire.name)
                entry = self._entries.get(wire.arguments)
                if entry is not None:
                    if entry.link is link and entry.link.vouched_until > now < entry.expires:
                        self._entries.move_to_end(wire.arguments)
                        self._hits += 1
                        lookup.replies[place] = _thawed(entry.reply)
                        continue
                    self._remove(wire.arguments)
                self._misses += 1
                flight = None
                if link is not None and link.vouched_until > now:
                    flight = _Flight(wire, link, now, min(longest, self.limits.longest_seconds))
                    self._flights.setdefault(wire.name, []).append(flight)
                    lookup.sent.append(Wire((TTL.verb, wire.name), wire.name, TTL, wire.source))
                lookup.flights.append((place, flight))
                lookup.sent.append(wire)
        if not lookup.sent:
            lookup.replies = Sound(lookup.replies)
        return lookup

    def land(self, lookup: Lookup, answers: list[Reply], *, straight: bool) -> list[Reply]:
        """Return all replies of a lookup, and keep those that may be kept.

        `straight` is whether they came from the nodes that the links are for, at the first attempt.
        """
        replies, place_of_answer = lookup.replies, 0
        with self._lock:
            for place, flight in lookup.flights:
                if flight is None:
                    replies[place] = answers[place_of_answer]
                    place_of_answer += 1
                    continue
                milliseconds, reply = answers[place_of_answer : place_of_answer + 2]
                place_of_answer += 2
                replies[place] = reply
                if self._forget_flight(flight) and straight:
                    self._keep(flight, milliseconds, reply)
        return Sound(replies) if type(answers) is Sound else replies

    def abandon(self, lookup: Lookup) -> None:
        """Forget a lookup whose replies did not come."""
        with self._lock:
            for _, flight in lookup.flights:
                if flight is not None:
                    self._forget_flight(flight)

    def forget(self, names: Iterable[bytes]) -> None:
        """Drop the replies of keys that changed, also those that are still to come."""
        with self._lock:
            for name in names:
                for flight in self._flights.pop(name, ()):
                    flight.sure = False
                for arguments in list(self._by_name.get(name, ())):
                    self._remove(arguments)
                    self._invalidations += 1

    def forget_all(self, link: Link | None = None) -> None:
        """Drop all replies that a link vouched for, or that any did."""
        with self._lock:
            for flights in self._flights.values():
                for flight in flights:
                    flight.sure = flight.sure and link is not None and flight.link is not link
            gone = [key for key, entry in self._entries.items() if link is None or entry.link is link]
            for arguments in gone:
                self._remove(arguments)
            self._invalidations += len(gone)

    def stats(self, *, tracking: bool, refusal: str | None) -> CacheStats:
        with self._lock:
            return CacheStats(
                tracking,
                len(self._entries),
                self._bytes,
                self._hits,
                self._misses,
                self._invalidations,
                self._evictions,
                refusal,
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._entries)} replies>"  # never the replies or their names

    def _forget_flight(self, flight: _Flight) -> bool:
        """Take a read out of those under way. Return whether its key did not change meanwhile."""
        flights = self._flights.get(flight.wire.name)
        if flights is not None and flight in flights:
            flights.remove(flight)
            if not flights:
                del self._flights[flight.wire.name]
        return flight.sure

    def _keep(self, flight: _Flight, milliseconds: Reply, reply: Reply) -> None:
        now, wire = self._clock(), flight.wire
        if isinstance(reply, KeywrightError) or type(milliseconds) is not int:
            return
        longest = flight.longest if milliseconds < 0 else min(flight.longest, milliseconds / 1000)
        expires = flight.started + longest
        size = _size(reply) + _size(wire.arguments) + ENTRY_BYTES
        # The link once more: a topology that was learned meanwhile may have sent the read elsewhere.
        if expires <= now or size > self.limits.most_bytes or self._link_of(wire.name) is not flight.link:
            return
        kept, frozen = self._entries.get(wire.arguments), _frozen(reply)
        if kept is not None:
            self._remove(wire.arguments)
            if kept.link is flight.link and kept.reply != frozen:
                return  # of two reads at once: one is older, and which is not known before the report
        self._entries[wire.arguments] = _Entry(frozen, size, expires, flight.link, wire.name)
        self._by_name.setdefault(wire.name, []).append(wire.arguments)
        self._bytes += size
        while self._bytes > self.limits.most_bytes or len(self._entries) > self.limits.most_entries:
            self._remove(next(iter(self._entries)))
            self._evictions += 1

    def _remove(self, arguments: Arguments) -> None:
        entry = self._entries.pop(arguments)
        self._bytes -= entry.bytes
        commands = self._by_name[entry.name]
        if len(commands) == 1:
            del self._by_name[entry.name]
        else:
            commands.remove(arguments)


def _frozen(reply: Any) -> Any:
    """Return a reply whose lists no reader can change."""
    return tuple(map(_frozen, reply)) if isinstance(reply, list) else reply


def _thawed(reply: Any) -> Any:
    """Return a reply as the server sent it: its lists are the reader's own."""
    return list(map(_thawed, reply)) if type(reply) is tuple else reply


def _size(part: Any) -> int:
    if isinstance(part, list | tuple):
        return PART_BYTES + sum(map(_size, part))
    return PART_BYTES + (len(part) if isinstance(part, bytes | str) else 0)
