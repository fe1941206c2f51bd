"""List: an ordered sequence, cheap at both ends."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar, Generic, Literal, TypeVar

from keywright.errors import ConflictError
from keywright.keyspace.call import (
    Call,
    Command,
    Patient,
    Refreshing,
    Sliding,
    Steps,
    as_is,
    bound_context,
    nothing,
    procedure,
)
from keywright.keyspace.checks import items_are
from keywright.keyspace.codecs import Codec, codec_of
from keywright.keyspace.commits.journal import ATTEMPTS, commit
from keywright.keyspace.composition import atomic
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import encoder, items, optional
from keywright.keyspace.kinds.several import Moving
from keywright.keyspace.layouts import Ask, stored_read
from keywright.keyspace.misuse import explained, raise_explained
from keywright.keyspace.storage import ItemStorage
from keywright.keyspace.wires import Effect, Operation

M = TypeVar("M")
End = Literal["left", "right"]

PUSH = {end: Operation("push", verb, Effect.ONCE) for end, verb in (("left", b"LPUSH"), ("right", b"RPUSH"))}
POP = {end: Operation("pop", verb, Effect.ONCE) for end, verb in (("left", b"LPOP"), ("right", b"RPOP"))}
# A server waits forever if the time is 0, and Redis 6.2 rounds 0.001 s down to it.
LEAST_WAIT = timedelta(milliseconds=2)
WAIT = {end: Operation("wait", verb, Effect.ONCE) for end, verb in (("left", b"BLPOP"), ("right", b"BRPOP"))}
RANGE = Operation("range", b"LRANGE", Effect.READ)
LENGTH = Operation("length", b"LLEN", Effect.READ)
AT = Operation("at", b"LINDEX", Effect.READ)
PUT_AT = Operation("put_at", b"LSET", Effect.REPEATABLE)
TRIM = Operation("trim", b"LTRIM", Effect.ONCE)
REMOVE = Operation("remove", b"LREM", Effect.ONCE)
INSERT = Operation("insert", b"LINSERT", Effect.ONCE)
FIND = Operation("find", b"LPOS", Effect.READ)
MOVE = Operation("move", b"LMOVE", Effect.ONCE)


class ListStorage(ItemStorage):
    """Items in order; each names itself, and equal ones each other."""

    divisible = True


class List(Key, Generic[M]):
    """An ordered list; an item may occur in it several times."""

    redis_type: ClassVar[str] = "list"
    kind: ClassVar[str] = "list"
    _storage = ListStorage
    _codec: ClassVar[Codec[Any]]
    _encode: ClassVar[Unbound]
    _decode: ClassVar[Unbound]
    _decode_items: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._codec = codec_of(type_arguments(cls, List)[0])
        cls._encode = staticmethod(encoder(cls, cls._codec))
        cls._decode = staticmethod(optional(cls._codec))
        cls._decode_items = staticmethod(items(cls._codec))
        return (cls._codec,)

    def push(self, *items: M, end: End = "right") -> Call[int]:
        """Add items at one end in one command. Return the new length."""
        try:
            operation = PUSH[end]
        except (KeyError, TypeError) as error:
            raise_explained(List.push, (self, *items), {"end": end}, error)
        if len(items) == 1:
            return Refreshing(operation, self, (self._encode(items[0]),), int)
        return Refreshing(operation, self, tuple(map(self._encode, items)), int) if items else self.length()

    def pop(self, *, end: End = "left") -> Call[M | None]:
        """Remove and return the item at one end."""
        try:
            return Refreshing(POP[end], self, (), self._decode)
        except (KeyError, TypeError) as error:
            raise_explained(List.pop, (self,), {"end": end}, error)

    @explained
    def pop_many(self, count: int, *, end: End = "left") -> Call[list[M]]:
        """Remove and return up to `count` elements of an end, the outermost first."""
        decode = self._decode_items
        return Refreshing(POP[end], self, (count,), lambda reply: decode(reply or []))

    @explained
    def wait(self, timeout: timedelta, *, end: End = "left") -> Call[M | None]:
        """Pop an item, and wait for one up to `timeout`, on a connection of its own; 2 ms at least."""
        decode = self._codec.decode
        seconds = max(timeout, LEAST_WAIT) / timedelta(seconds=1)
        operation = WAIT[end]._replace(blocking=seconds)
        return Patient(operation, self, (seconds,), lambda reply: None if reply is None else decode(reply[1]))

    def range(self, first: int = 0, last: int = -1) -> Call[list[M]]:
        """Return items by index, both ends included, negative from the end."""
        return Sliding(RANGE, self, (first, last), self._decode_items)

    def length(self) -> Call[int]:
        """Return the number of elements."""
        return Sliding(LENGTH, self, (), int)

    def at(self, place: int) -> Call[M | None]:
        """Return the element at an index, negative from the right; None if there is none."""
        return Sliding(AT, self, (place,), self._decode)

    def put_at(self, place: int, item: M) -> Call[None]:
        """Write the item at an index. Raise ServerRefusedError if the list is shorter."""
        return Refreshing(PUT_AT, self, (place, self._encode(item)), nothing)

    def find(self, item: M) -> Call[int | None]:
        """Return the first index of an item, or None."""
        return Sliding(FIND, self, (self._encode(item),), as_is)

    def insert(self, item: M, *, before: M) -> Call[bool]:
        """Insert before the first item equal to `before`. Return whether there was one."""
        operands = (b"BEFORE", self._encode(before), self._encode(item))
        return Refreshing(INSERT, self, operands, lambda reply: reply > 0)

    def remove(self, item: M, *, count: int = 0) -> Call[int]:
        """Remove items equal to `item`: all, or the first `count`, or the last where it is negative."""
        return Refreshing(REMOVE, self, (count, self._encode(item)), int)

    def trim(self, first: int, last: int) -> Call[None]:
        """Keep only the items from first to last, both included."""
        return Refreshing(TRIM, self, (first, last), nothing)

    @explained
    def replace(self, items: Iterable[M]) -> Call[None]:
        """Make these the only items, in one transaction."""
        wanted = tuple(items)
        if not wanted:
            return self.delete().map(nothing)
        return atomic(self.delete(), self.push(*wanted)).map(nothing)

    @explained
    def move(self, to: List[M], *, take: End = "left", put: End = "right") -> Call[M | None]:
        """Move one item to another list of the same slot, in one command.

        A sealed item is sealed for the other list: it is read first, and moved if it is still there, in
        several round trips. Its list may have another end by then.
        """
        if self._sealed:
            return _moved_and_resealed(self, to, take, put)
        sides = (take.upper().encode(), put.upper().encode())
        return Moving(MOVE, self, sides, self._decode, (to,))


@procedure
def _moved_and_resealed(source: List[M], to: List[M], take: End, put: End) -> Steps[M | None]:
    context = yield bound_context()
    at_left = take == "left"
    for _ in range(ATTEMPTS):
        stored = yield stored_read(source, Ask(b"LINDEX", (0 if at_left else -1,)), "move")
        if stored is None:
            return None
        item: M = Command(AT, source, (), source._codec.decode).read(stored, context)
        places = yield stored_read(source, Ask(b"LPOS", (stored, b"COUNT", 0)), "move")
        removal: Call[int] = Refreshing(REMOVE, source, (1 if at_left else -1, stored), int)
        checks = [items_are(source, stored, len(places))]
        if places and (yield commit("move", checks, [removal, to.push(item, end=put)], subject=source)):
            return item
    raise ConflictError(f"moving from {source!r}", ATTEMPTS)
