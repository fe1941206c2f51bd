"""The cache of a blocking database: a thread for each node reads the changes that it reports.

A thread that makes a call first reads what has arrived itself. So no reply is served whose key's change was
received before the call began, even while the thread that reads waits for its turn.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from keywright.engine.address import Address
from keywright.engine.client_cache import ClientCache, is_left, is_served, only_reads
from keywright.engine.connections import READ_SIZE, ConnectionPool
from keywright.engine.reply_cache import CacheStats
from keywright.engine.settings import Settings
from keywright.engine.topology import Node, Topology
from keywright.engine.tracking_link import (
    REFUSED_PAUSE_SECONDS,
    LostTrackingError,
    RefusedTrackingError,
    TrackingLink,
    in_resp3,
)
from keywright.errors import ConnectionLostError, KeywrightError
from keywright.keyspace.context import Context
from keywright.keyspace.wires import Reply, Wire

__all__ = ["BlockingCache"]

log = logging.getLogger("keywright.engine")

MOST_READS = 256
_NOT_YET = (BlockingIOError, ssl.SSLWantReadError)
_HOLDERS: weakref.WeakSet[Any] = weakref.WeakSet()


class BlockingCache(ClientCache):
    """What a blocking database keeps, and the threads that read what its nodes report."""

    def __init__(
        self,
        address: Address,
        settings: Settings,
        context: Context,
        topology: Callable[[], Topology | None],
        primaries: Callable[[], Iterable[Node | None]],
    ) -> None:
        assert settings.caching is not None  # or there is no cache
        super().__init__(settings.caching, context, topology)
        self.settings = settings
        self.changed = threading.Condition()
        self._address = in_resp3(address)
        self._primaries = primaries
        self._lines: dict[Node | None, BlockingLine] = {}
        self._guard = threading.Lock()
        self._closed = False

    def exchange(self, wires: list[Wire], deliver: Callable[[list[Wire]], list[Reply]]) -> list[Reply]:
        """Return the replies to a batch: kept ones, and those that `deliver` brings."""
        if not only_reads(wires):
            self.forget_written(wires)
            try:
                return deliver(wires)
            finally:
                self.forget_written(wires)
        if self.classes != len(self.context.cached):
            self._track_more()
        for link in self.links(wires):
            line = self._lines.get(link.node)
            if line is not None:
                line.catch_up()
        lookup = self.look(wires)
        if not lookup.sent:
            return lookup.replies
        detours = self.detours
        try:
            answers = deliver(lookup.sent)
        except BaseException:
            self.replies.abandon(lookup)
            raise
        return self.replies.land(lookup, answers, straight=detours == self.detours)

    def settle(self, seconds: float) -> bool:
        """Wait until every node reports changes and has been asked again since. Return whether it is so."""
        until = time.monotonic() + seconds
        if self.classes != len(self.context.cached) or not self._lines:
            self._track_more()
        with self.changed:
            if not self.changed.wait_for(self._is_served, until - time.monotonic()):
                return False
            lines = [(line, line.link) for line in list(self._lines.values())]
            wanted = [(line, link, line.ask_again(link)) for line, link in lines if link is not None]
            return self.changed.wait_for(
                lambda: all(line.link is not link or link.answered >= count for line, link, count in wanted),
                until - time.monotonic(),
            ) and all(line.link is link for line, link, _ in wanted)

    def watch(self, nodes: Iterable[Node | None]) -> None:
        """Have a line to each of these nodes."""
        with self._guard:
            if self._closed:
                return
            for node in nodes:
                if node not in self._lines:
                    self._lines[node] = line = BlockingLine(self, node, self._address)
                    line.start()

    def leave(self, node: Node | None) -> bool:
        """Give up the line to a node that is not a primary any more. Return whether it is so."""
        with self._guard:
            if not is_left(node, self._lines):
                return False
            self._lines.pop(node, None)
        with self.changed:
            self.changed.notify_all()
        return True

    def stats_now(self) -> CacheStats:
        return self.stats(tracking=self._is_served())

    def close(self) -> None:
        with self._guard:
            self._closed = True
            lines = list(self._lines.values())
        for line in lines:
            line.stop()
        for line in lines:
            line.join()

    def _is_served(self) -> bool:
        return is_served(list(self._lines.values()))

    def _track_more(self) -> None:
        """Follow the names of all cached classes, also of those that were met just now."""
        with self._guard:
            if self.classes == len(self.context.cached) and self._lines:
                return
            self.learn_prefixes()
            lines = list(self._lines.values())
        for line in lines:
            line.begin_again()
        with suppress(KeywrightError):  # the next read tries again, and has its own error
            self.watch(self._primaries())


class BlockingLine:
    """The connection to one node that reports changes, and the thread that keeps it."""

    def __init__(self, cache: BlockingCache, node: Node | None, address: Address) -> None:
        self.link: TrackingLink | None = None
        self._cache = cache
        self._node = node
        there = address if node is None else address.at(node.host, node.port)
        self._pool = ConnectionPool(there, cache.settings._replace(most_connections=1))
        self._there = there
        self._lock = threading.Lock()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._sock: Any = None
        self._poller: Any = None
        self._lost = False
        self._serving = False
        self._seen: Topology | None = None
        self._refusal: RefusedTrackingError | None = None
        self._wanted = 0
        self._stopped = False
        self._thread = threading.Thread(target=self._keep, name="keywright-cache", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._rouse()

    def join(self) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join()

    def catch_up(self) -> None:
        """Take what has arrived, without waiting."""
        with self._lock:
            # A link that was given up is closed by the thread a little later.
            if self.link is not None and self._poller.poll(0):
                self._read(self.link)

    def ask_again(self, link: TrackingLink) -> int:
        """Have the node asked after any question that is under way. Return the number of that question."""
        self._wanted = link.asked + 2
        self._rouse()
        return self._wanted

    def begin_again(self) -> None:
        """Give the connection up, for one that reports other names too."""
        with self._lock:
            self._give_up()
        self._rouse()

    def _rouse(self) -> None:
        with suppress(OSError):
            self._wake.send(b"x")

    def _keep(self) -> None:
        attempt = 0
        while not self._stopped:
            pause, reason = 0.0, None
            try:
                connection = self._pool.take(lambda: self._cache.settings.timeout_seconds)
            except ConnectionLostError:
                attempt += 1
                pause = self._cache.settings.retry.pause(attempt)
            except KeywrightError as error:
                pause, reason = REFUSED_PAUSE_SECONDS, str(error)
            else:
                try:
                    established = self._listen(connection)
                    attempt = 1 if established else attempt + 1
                    pause = self._cache.settings.retry.pause(attempt)
                except RefusedTrackingError as error:
                    pause, reason = REFUSED_PAUSE_SECONDS, str(error)
                finally:
                    self._pool.drop(connection)
            if reason is not None:
                self._refused(reason)
            self._rest(pause)
            if self._cache.leave(self._node):
                break
        self._pool.close()
        self._woken.close()
        self._wake.close()

    def _listen(self, connection: Any) -> bool:
        """Follow the reports on a connection until it is lost. Return whether it ever vouched for keys."""
        link = TrackingLink(self._cache.replies, self._node, self._cache.prefixes, self._there)
        sock = connection._sock
        sock.setblocking(False)
        own, shared = select.poll(), select.poll()  # one for each thread that polls at once
        for poller in (own, shared):
            poller.register(sock, select.POLLIN)
        own.register(self._woken, select.POLLIN)
        self._serving, self._seen, self._refusal = False, None, None
        try:
            with self._lock:
                self.link, self._sock, self._poller, self._lost = link, sock, shared, False
                self._send(link.greeting())
            while not (self._lost or self._stopped):
                own.poll(1000 * self._patience(link))
                self._drain_wakes()
                with self._lock:
                    if not self._lost:
                        self._read(link)
                self._tell(link)
        finally:
            with self._lock:
                self._give_up()
                self._sock = self._poller = None
            self._told()
        if self._refusal is not None:
            raise self._refusal
        return self._serving

    def _patience(self, link: TrackingLink) -> float:
        """Ask the node if it is time. Return how long nothing else is to be done."""
        with self._lock:
            try:
                seconds = link.due()
                if not self._lost and not link.waiting and (seconds <= 0 or self._wanted > link.asked):
                    self._send(link.question())
                    seconds = link.due()
            except LostTrackingError:
                self._give_up()
                return 0.0
            return 0.0 if self._lost else seconds

    def _tell(self, link: TrackingLink) -> None:
        """Let the cache use a link that is established, and know what it learned of the cluster."""
        with self._lock:
            if link.established and not self._serving and not self._lost:
                self._serving = True
                self._cache.refusal = None
                self._cache.serve(link)
        if link.topology is not None and link.topology is not self._seen:
            self._seen = link.topology
            self._cache.watch(link.topology.primaries)
        self._told()

    def _told(self) -> None:
        with self._cache.changed:
            self._cache.changed.notify_all()

    def _send(self, data: bytes) -> None:
        try:
            if self._sock.send(data) != len(data):
                raise OSError("the connection takes no more")
        except OSError:
            self._give_up()

    def _read(self, link: TrackingLink) -> None:
        """Take all that has arrived. Called with the lock."""
        try:
            for _ in range(MOST_READS):
                data = self._sock.recv(READ_SIZE)
                if not data:
                    raise LostTrackingError("the server closed the connection")
                link.feed(data)
            raise LostTrackingError("changes are reported faster than they can be read")
        except _NOT_YET:
            return
        except RefusedTrackingError as error:
            self._refusal = error
            self._give_up()
        except (OSError, LostTrackingError):
            self._give_up()

    def _give_up(self) -> None:
        """Vouch for nothing any more. The thread closes the connection. Called with the lock."""
        self._lost = True
        if self.link is not None:
            self._cache.withdraw(self.link)
            self.link = None

    def _refused(self, reason: str) -> None:
        if self._cache.refusal is None:
            log.warning("nothing is cached: %s does not report changes: %s", self._there.shown, reason)
        self._cache.refusal = reason
        self._told()

    def _rest(self, seconds: float) -> None:
        if seconds and not self._stopped:
            poller = select.poll()
            poller.register(self._woken, select.POLLIN)
            poller.poll(1000 * seconds)
        self._drain_wakes()

    def _drain_wakes(self) -> None:
        with suppress(OSError):
            while self._woken.recv(4096):
                pass


def drop_after_fork(holder: Any) -> None:
    """Have a database forget its cache in forked children: the threads are its parent's."""
    _HOLDERS.add(holder)


def _forget_in_child() -> None:
    for holder in list(_HOLDERS):
        holder._cache = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
