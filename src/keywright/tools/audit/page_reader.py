"""The commands that read one page of names, and what their replies are: one batch, bounded replies.

Every key of a template with an expiry is asked for its TTL, every collection for its memory. Of strings,
whose memory follows from their length, and of keys that need not expire, one in `EVERY` is asked. Strings
are read by MGET on one server. A collection is read by its first page; the rest follows if there is one.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from keywright.errors import KeywrightError, WrongTypeError
from keywright.keyspace.key import Key
from keywright.keyspace.wires import Arguments, Effect, Operation, Reply, Wire
from keywright.tools.audit.value_checks import Checker

__all__ = [
    "ENTRIES",
    "EVERY",
    "MOST_BYTES",
    "Page",
    "Reading",
    "all_there_is",
    "first_page",
    "next_page",
    "on_name",
    "told",
]

EVERY = 16
ENTRIES = 512
TOGETHER = 128
MOST_BYTES = 1 << 20  # of a string that is read whole; a larger one is measured, not read

_FIRST: dict[str, tuple[bytes, tuple[bytes, ...]]] = {
    "hash": (b"HSCAN", (b"0", b"COUNT", b"512")),
    "set": (b"SSCAN", (b"0", b"COUNT", b"512")),
    "zset": (b"ZSCAN", (b"0", b"COUNT", b"512")),
    "list": (b"LRANGE", (b"0", b"511")),
    "stream": (b"XRANGE", (b"-", b"+", b"COUNT", b"512")),
    "string": (b"GET", ()),
}
TTL = Operation("ttl", b"PTTL", Effect.READ)
MEMORY = Operation("memory", b"MEMORY", Effect.READ)
READ = Operation("read page", b"", Effect.READ)


class Page(NamedTuple):
    """What was read of one collection: its entries, and how to go on (None at the end)."""

    entries: Any
    more: int | bytes | None


class Reading:
    """The names of one template on one page, what to ask about them, and the answers in the same order."""

    def __init__(self, checker: Checker, names: list[bytes], turn: int, *, together: bool) -> None:
        self.checker = checker
        self.names = names
        strings = checker.kind.redis_type == "string"
        self._together = together and strings
        everyone = range(len(names))
        some = range(-turn % EVERY, len(names), EVERY)
        self.timed = everyone if checker.expiry is not None else some
        self.measured = some if strings else everyone
        self.ttls: list[int] = []
        self.sizes: list[int | None] = []
        self.stored: list[Reply] = []

    def commands(self) -> list[Wire]:
        names, kind = self.names, self.checker.kind
        wires = [Wire((b"PTTL", name), name, TTL, kind) for name in _at(names, self.timed)]
        wires += [Wire((b"MEMORY", b"USAGE", name), name, MEMORY, kind) for name in _at(names, self.measured)]
        if self._together:
            for start in range(0, len(names), TOGETHER):
                part = names[start : start + TOGETHER]
                wires.append(Wire((b"MGET", *part), part[0], READ, kind))
        else:
            verb, rest = _FIRST[kind.redis_type]
            wires += [Wire((verb, name, *rest), name, READ, kind) for name in names]
        return wires

    def take(self, replies: list[Reply], start: int) -> int:
        """Take the answers, in the order of the commands, from a place in all replies; the place after."""
        middle = start + len(self.timed)
        end = middle + len(self.measured)
        self.ttls = told(replies[start:middle])
        self.sizes = replies[middle:end]  # some servers do not tell, and bytes are no finding
        after = end + (-(-len(self.names) // TOGETHER) if self._together else len(self.names))
        stored = told(replies[end:after])
        self.stored = list(chain.from_iterable(stored)) if self._together else stored
        return after


def _at(names: list[bytes], places: range) -> list[bytes]:
    return names[places.start :: places.step]


def told(replies: list[Reply]) -> list[Reply]:
    """The replies, WrongTypeError among them where a key is of another type.

    Raise the first other error, such as that of a user without the right: what was not read must not pass
    for sound.
    """
    if any(issubclass(kind, KeywrightError) for kind in set(map(type, replies))):
        for reply in replies:
            if isinstance(reply, KeywrightError) and not isinstance(reply, WrongTypeError):
                raise reply
    return replies


def on_name(verb: bytes, name: bytes, *operands: bytes | int, source: type[Key] | None = None) -> Wire:
    """A reading command on a name; observers see its verb."""
    return Wire((verb, name, *operands), name, _operation(verb), source)


@cache
def _operation(verb: bytes) -> Operation:
    return Operation(verb.decode().lower(), verb, Effect.READ)


def first_page(redis_type: str, reply: Reply) -> Page:
    """The reply to a reading command as entries and how to go on."""
    if redis_type in ("hash", "set", "zset"):
        cursor = int(reply[0])
        return Page(reply[1], cursor or None)
    if redis_type == "list":
        return Page(reply, ENTRIES if len(reply) == ENTRIES else None)
    if redis_type == "stream":
        return Page(reply, reply[-1][0] if len(reply) == ENTRIES else None)
    return Page(reply, None)


def all_there_is(redis_type: str, replies: list[Reply]) -> list[Any] | None:
    """The entries of many collections, None unless each was read whole by its first page."""
    if redis_type in ("list", "stream"):
        return None if ENTRIES in set(map(len, replies)) else replies
    if [cursor for cursor, _ in replies].count(b"0") < len(replies):
        return None
    return [entries for _, entries in replies]


def next_page(kind: type[Key], name: bytes, more: int | bytes) -> Wire:
    """The command that reads on."""
    if kind.redis_type == "list":
        assert isinstance(more, int)
        arguments: Arguments = (b"LRANGE", name, more, more + ENTRIES - 1)
    elif kind.redis_type == "stream":
        assert isinstance(more, bytes)
        arguments = (b"XRANGE", name, b"(" + more, b"+", b"COUNT", ENTRIES)
    else:
        arguments = (_FIRST[kind.redis_type][0], name, more, b"COUNT", ENTRIES)
    return Wire(arguments, name, READ, kind)
