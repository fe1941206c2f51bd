"""The conversation with a server that reports changes of keys (CLIENT TRACKING). No I/O.

A connection of its own, in RESP3, receives the names of all keys that change and begin with one of some
prefixes. A question at regular intervals shows that it is alive, that its server is still the primary, and
which slots it has. Its answer vouches for the replies that are kept, for some seconds from when it was asked.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import hiredis

from keywright.engine.address import Address
from keywright.engine.packed_commands import pack_command
from keywright.engine.reply_cache import Link, ReplyCache
from keywright.engine.resp3 import in_resp2
from keywright.engine.topology import Node, Topology, described
from keywright.engine.wire_format import NOTHING, UNPARSABLE, ErrorReply, Parser
from keywright.errors import KeywrightError
from keywright.keyspace.slots import SLOTS

__all__ = ["REFUSED_PAUSE_SECONDS", "LostTrackingError", "RefusedTrackingError", "TrackingLink", "in_resp3"]

# HELLO needs no permission, and says whether the server is a primary. Redis 6.0 wants the version with it.
HELLO = pack_command((b"HELLO", b"3"))
CLUSTER_SLOTS = pack_command((b"CLUSTER", b"SLOTS"))
MOST_UNREAD = 64 * 1024 * 1024
BEATS = 3
"""How often a server is asked in the time that an answer vouches for."""
REFUSED_PAUSE_SECONDS = 30.0
"""How long a server that refuses to report changes is not asked again."""


class LostTrackingError(Exception):
    """The connection does not report changes any more, or not reliably."""


class RefusedTrackingError(Exception):
    """The server does not report changes: the user may not ask for it, or the version is too old."""


def in_resp3(address: Address) -> Address:
    """Return the address for connections that receive pushes."""
    return address._replace(settings={**address.settings, "protocol": 3})


class TrackingLink(Link):
    """One connection that reports changes. Feed it what is received; send what it returns."""

    def __init__(
        self,
        cache: ReplyCache,
        node: Node | None,
        prefixes: Sequence[bytes],
        address: Address,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cache = cache
        self.node = node
        self.slots: list[int] = []
        """The slots that the node of a cluster has, as it says itself."""
        self.topology: Topology | None = None
        self.established = False
        self.asked = self.answered = 0
        self._prefixes = prefixes
        self._address = address
        self._clock = clock
        self._silence = cache.limits.silence_seconds
        self.interval = self._silence / BEATS
        """The seconds between two questions."""
        self._parser = Parser()
        self._unread = 0
        self._last_slots: Any = None
        self._asked_at = 0.0
        self._expected: deque[Callable[[Any], None]] = deque()
        self._ended = False

    def greeting(self) -> bytes:
        """Return the request to report changes, and the first question."""
        words: list[bytes] = []
        for prefix in self._prefixes:
            words += (b"PREFIX", prefix)
        self._expected.append(self._accepted)
        return pack_command((b"CLIENT", b"TRACKING", b"ON", b"BCAST", *words)) + self.question()

    def question(self) -> bytes:
        """Return a question whose answer vouches for what is kept."""
        self.asked += 1
        self._asked_at = self._clock()
        self._expected.append(self._described)
        if self.node is None:
            return HELLO
        self._expected.append(self._has_slots)
        return HELLO + CLUSTER_SLOTS

    def due(self) -> float:
        """Return the seconds until the next question. Raise LostTrackingError if the last had no answer."""
        waited = self._clock() - self._asked_at
        if not self._expected:
            return max(0.0, self.interval - waited)
        if waited >= self._silence:
            raise LostTrackingError("no answer in time")
        return self._silence - waited

    @property
    def waiting(self) -> bool:
        """Return whether a question has no answer yet."""
        return bool(self._expected)

    def feed(self, data: bytes) -> None:
        """Take received bytes. Raise an error unless they are reports and answers."""
        self._unread += len(data)
        if self._unread > MOST_UNREAD:
            raise LostTrackingError("a message is too long")
        try:
            self._parser.feed(data)
            while (message := self._parser.gets()) is not NOTHING:
                self._unread = 0
                if type(message) is hiredis.PushNotification:
                    self._reported(message)
                else:
                    self._answer(message)
        except UNPARSABLE as error:
            raise LostTrackingError("a message is malformed") from error

    def end(self) -> None:
        """Vouch for nothing any more, and drop what was kept."""
        if not self._ended:
            self._ended = True
            self.established = False
            self.vouched_until = float("-inf")
            self.cache.forget_all(self)

    def _reported(self, push: Any) -> None:
        if len(push) != 2 or push[0] != b"invalidate":
            return  # another sort of push, which this connection did not ask for
        if push[1] is None:
            self.cache.forget_all(self)  # the server was emptied
        elif isinstance(push[1], list) and all(type(name) is bytes for name in push[1]):
            self.cache.forget(push[1])
        else:
            raise LostTrackingError("a report is malformed")

    def _answer(self, reply: Any) -> None:
        if not self._expected:
            raise LostTrackingError("an answer was not asked for")
        self._expected.popleft()(reply)
        if not self._expected:
            self.answered = self.asked
            if not self._ended:
                self.established = True
                self.vouched_until = self._asked_at + self._silence

    def _accepted(self, reply: Any) -> None:
        if isinstance(reply, ErrorReply):
            raise RefusedTrackingError(str(reply))
        if reply != b"OK":
            raise LostTrackingError("an answer is malformed")

    def _described(self, reply: Any) -> None:
        if not isinstance(reply, dict) or reply.get(b"role") != b"master":
            raise LostTrackingError("it is not a primary")

    def _has_slots(self, reply: Any) -> None:
        plain = in_resp2(reply, b"CLUSTER")
        if plain == self._last_slots:
            return
        try:
            found = None if isinstance(reply, ErrorReply) else described(plain, self.node, self._address)
        except KeywrightError as error:
            raise LostTrackingError("an answer is malformed") from error
        if not isinstance(found, Topology):
            raise LostTrackingError("it does not describe the cluster")
        slots = [slot for slot in range(SLOTS) if found.owner(slot) == self.node]
        if self.established and slots != self.slots:
            raise LostTrackingError("its slots have changed")  # what is kept may be of slots it has no more
        self._last_slots, self.topology, self.slots = plain, found, slots
