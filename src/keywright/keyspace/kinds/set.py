"""Set: distinct members in one Redis set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from keywright.keyspace.call import Call, Ready, Refreshing, Sliding, as_is, nothing
from keywright.keyspace.codecs import Codec, codec_of
from keywright.keyspace.composition import atomic
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import comparable, encoder, items, many_encoder, optional, unique
from keywright.keyspace.kinds.several import Moving, Several
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import ItemStorage
from keywright.keyspace.wires import Effect, Operation, Reply

M = TypeVar("M")

ADD = Operation("add", b"SADD", Effect.REPEATABLE)
REMOVE = Operation("remove", b"SREM", Effect.REPEATABLE)
MEMBERS = Operation("members", b"SMEMBERS", Effect.READ)
HAS = Operation("has", b"SISMEMBER", Effect.READ)
HAS_MANY = Operation("has_many", b"SMISMEMBER", Effect.READ)
SIZE = Operation("size", b"SCARD", Effect.READ)
POP = Operation("pop", b"SPOP", Effect.ONCE)
SAMPLE = Operation("sample", b"SRANDMEMBER", Effect.READ)
SCAN = Operation("scan", b"SSCAN", Effect.READ)
UNION = Operation("union", b"SUNION", Effect.READ)
INTERSECTION = Operation("intersection", b"SINTER", Effect.READ)
DIFFERENCE = Operation("difference", b"SDIFF", Effect.READ)
MOVE = Operation("move", b"SMOVE", Effect.ONCE)


class SetStorage(ItemStorage):
    """Members in no order; each names itself."""

    divisible = True

    def listed(self, values: list[Any]) -> Any:
        return _ordered(values)


class Set(Key, Generic[M]):
    """An unordered set of distinct members."""

    redis_type: ClassVar[str] = "set"
    kind: ClassVar[str] = "set"
    _storage = SetStorage
    _codec: ClassVar[Codec[Any]]
    _encode: ClassVar[Unbound]
    _encode_many: ClassVar[Unbound]
    _decode: ClassVar[Unbound]
    _decode_set: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._codec = comparable(cls, codec_of(type_arguments(cls, Set)[0]))
        cls._encode = staticmethod(encoder(cls, cls._codec))
        cls._encode_many = staticmethod(many_encoder(cls, cls._codec))
        cls._decode = staticmethod(optional(cls._codec))
        cls._decode_set = staticmethod(unique(cls._codec))
        return (cls._codec,)

    def add(self, *members: M) -> Call[int]:
        """Add members in one command. Return how many are new. Without members nothing is sent."""
        if len(members) == 1:
            return Refreshing(ADD, self, (self._encode(members[0]),), int)
        return Refreshing(ADD, self, tuple(self._encode_many(members)), int) if members else Ready(0)

    def remove(self, *members: M) -> Call[int]:
        """Remove members in one command. Return how many existed."""
        return Refreshing(REMOVE, self, tuple(map(self._encode, members)), int) if members else Ready(0)

    @explained
    def replace(self, members: Iterable[M]) -> Call[None]:
        """Make these the only members, in one transaction."""
        wanted = tuple(members)
        if not wanted:
            return self.delete().map(nothing)
        return atomic(self.delete(), self.add(*wanted)).map(nothing)

    def members(self) -> Call[set[M]]:
        """Return every member. For sets of unknown size use `scan`, which reads pages."""
        return Sliding(MEMBERS, self, (), self._decode_set)

    def has(self, member: M) -> Call[bool]:
        """Return whether the set has a member."""
        return Sliding(HAS, self, (self._encode(member),), bool)

    @explained
    def has_many(self, members: Iterable[M]) -> Call[dict[M, bool]]:
        """Return for each of these members whether the set has it."""
        asked = list(members)
        if not asked:
            return Ready({})

        def answers(reply: Reply) -> dict[M, bool]:
            return {member: bool(found) for member, found in zip(asked, reply, strict=True)}

        return Sliding(HAS_MANY, self, tuple(map(self._encode, asked)), answers)

    def size(self) -> Call[int]:
        """Return the number of members."""
        return Sliding(SIZE, self, (), int)

    def pop(self) -> Call[M | None]:
        """Remove and return some member."""
        return Refreshing(POP, self, (), self._decode)

    def pop_many(self, count: int) -> Call[set[M]]:
        """Remove and return up to `count` members, chosen at random."""
        return Refreshing(POP, self, (count,), self._decode_set)

    def sample(self, count: int) -> Call[list[M]]:
        """Return up to `count` different members, chosen at random."""
        return Sliding(SAMPLE, self, (count,), items(self._codec))

    def scan(self, cursor: int = 0, count: int = 500) -> Call[tuple[int, list[M]]]:
        """Return one page: the next cursor (0 at the end) and some members; a member may come twice."""
        decode = items(self._codec)

        def page(reply: Reply) -> tuple[int, list[M]]:
            return int(reply[0]), decode(reply[1])

        return Sliding(SCAN, self, (cursor, b"COUNT", count), page)

    @explained
    def union(self, *others: Set[M]) -> Call[set[M]]:
        """Return the members of any of these sets; on a cluster all must share a slot."""
        return Several(UNION, self, (), self._decode_set, others)

    @explained
    def intersection(self, *others: Set[M]) -> Call[set[M]]:
        """Return the members of all of these sets; on a cluster all must share a slot."""
        return Several(INTERSECTION, self, (), self._decode_set, others)

    @explained
    def difference(self, *others: Set[M]) -> Call[set[M]]:
        """Return the members that are in none of the other sets; on a cluster all must share a slot."""
        return Several(DIFFERENCE, self, (), self._decode_set, others)

    @explained
    def move(self, member: M, to: Set[M]) -> Call[bool]:
        """Move a member to another set of the same slot, in one command. Return whether it was here."""
        return Moving(MOVE, self, (self._encode(member),), bool, (to,))


def _ordered(members: list[Any]) -> list[Any]:
    """Return members by value if values have an order, else by how they print; the server has none."""
    by: Callable[[Any], Any]
    for by in (as_is, repr):
        try:
            return sorted(members, key=by)
        except TypeError:
            continue
    return members
