"""Counter: a 64-bit signed integer that the server adds to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from keywright.keyspace.call import Call, Command, Refreshing, Sliding, nothing
from keywright.keyspace.codecs import Codec, Int64
from keywright.keyspace.composition import gather_list
from keywright.keyspace.key import Key, Unbound
from keywright.keyspace.kinds.bulk import BulkRead
from keywright.keyspace.kinds.encoders import encoder, or_else
from keywright.keyspace.kinds.value import GET, SET, SET_ONCE, TAKE
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import StringStorage
from keywright.keyspace.wires import Effect, Operation

ADD = Operation("add", b"INCRBY", Effect.ONCE)


class Counter(Key):
    """A number that starts at 0 and is added to without a read.

    As the window of a rate limiter it needs `expires_in(…, since="first write")`: else `add` renews its
    expiry.
    """

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "counter"
    _storage = StringStorage
    _codec: ClassVar[Codec[int]]
    _encode: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._codec = Int64()
        cls._encode = staticmethod(encoder(cls, cls._codec))
        return (cls._codec,)

    @classmethod
    @explained
    def get_many(cls, ids: Iterable[object]) -> Call[list[int]]:
        """Read many counters in one batch; 0 for those that do not exist."""
        if cls._former:
            return gather_list(cls.made(each).get() for each in ids)
        return BulkRead(cls, cls.names(ids), cls._codec).map(lambda found: [value or 0 for value in found])

    def get(self) -> Call[int]:
        """Return the number; 0 if the key does not exist."""
        return Sliding(GET, self, (), _or_zero)

    def add(self, by: int = 1) -> Call[int]:
        """Add to the number and return it. The server refuses an overflow of 64 bits and changes nothing."""
        return Refreshing(ADD, self, (self._encode(by),), int)

    def set(self, value: int) -> Call[None]:
        """Set the number."""
        return Refreshing(SET, self, (self._encode(value),), nothing)

    def take(self) -> Call[int]:
        """Return the number and delete the key, in one command."""
        return Command(TAKE, self, (), _or_zero)

    def swap(self, value: int) -> Call[int]:
        """Write a number and return the previous one, in one command."""
        return Refreshing(SET_ONCE, self, (self._encode(value), b"GET"), _or_zero)


_or_zero = or_else(0, Int64())
