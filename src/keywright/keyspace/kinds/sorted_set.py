"""SortedSet: members ordered by a typed score."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, ClassVar, Generic, Literal, TypeVar

from keywright.errors import DeclarationError, ValueRefusedError
from keywright.keyspace.call import Call, Ready, Refreshing, Sliding, as_is, nothing
from keywright.keyspace.codecs import Codec, CodecError, codec_of
from keywright.keyspace.composition import atomic
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import comparable, encoder, items, scored
from keywright.keyspace.kinds.scores import FLOAT, Score, ScoreCodec, score_of
from keywright.keyspace.layouts import Ask, pairs
from keywright.keyspace.misuse import explained, raise_explained
from keywright.keyspace.storage import EntryPart, Storage, StoredEntry
from keywright.keyspace.wires import Effect, Operation, Reply

M = TypeVar("M")
S = TypeVar("S", bound=int | float | datetime | timedelta | None)

ADD = Operation("add", b"ZADD", Effect.REPEATABLE)
ADD_ONCE = Operation("add", b"ZADD", Effect.ONCE)
INCREASE = Operation("increase", b"ZINCRBY", Effect.ONCE)
REMOVE = Operation("remove", b"ZREM", Effect.REPEATABLE)
REMOVE_BY_SCORE = Operation("remove_by_score", b"ZREMRANGEBYSCORE", Effect.REPEATABLE)
REMOVE_BY_RANK = Operation("remove_by_rank", b"ZREMRANGEBYRANK", Effect.ONCE)
SCORE = Operation("score", b"ZSCORE", Effect.READ)
SCORES = Operation("scores", b"ZMSCORE", Effect.READ)
RANK = Operation("rank", b"ZRANK", Effect.READ)
REVERSE_RANK = Operation("rank", b"ZREVRANK", Effect.READ)
SIZE = Operation("size", b"ZCARD", Effect.READ)
COUNT = Operation("count", b"ZCOUNT", Effect.READ)
RANGE = Operation("range", b"ZRANGE", Effect.READ)
POP_MIN = Operation("pop_lowest", b"ZPOPMIN", Effect.ONCE)
POP_MAX = Operation("pop_highest", b"ZPOPMAX", Effect.ONCE)
SAMPLE = Operation("sample", b"ZRANDMEMBER", Effect.READ)
SCAN = Operation("scan", b"ZSCAN", Effect.READ)

AddWhen = Literal["absent", "present", "greater", "less"]
_CONDITIONS: dict[str | None, tuple[bytes, ...]] = {
    None: (),
    "absent": (b"NX",),
    "present": (b"XX",),
    "greater": (b"GT",),
    "less": (b"LT",),
}


class SortedSetStorage(Storage):
    """Members with scores; each member names its entry."""

    divisible = True
    item: Codec[Any]

    def __init__(self, kind: type[SortedSet[Any, Any]]) -> None:
        super().__init__(kind)
        self.item = kind._codec
        self.score = ScoreCodec(kind._score)

    @property
    def score_meaning(self) -> str:
        return self.score.expected

    @property
    def score_form(self) -> Score[Any]:
        return self.score.score

    def verify(self, stored: Sequence[Any]) -> bool:
        flat = list(chain.from_iterable(stored))
        self.item.decode_many(flat[::2])
        deque(map(self.score.decode, flat[1::2]), maxlen=0)
        return True

    def value(self, stored: Any, key: Key | None = None) -> Any:
        members = self.item.decode_many(stored[::2])
        return list(zip(members, map(self.score.decode, stored[1::2]), strict=True))

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        for member, score in pairs(stored):
            parts = EntryPart(self.item, member, member), EntryPart(self.score, score, member, " as score")
            yield StoredEntry(parts, tuple, tuple)

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        bad = refused(self.item)
        return None if bad is None else self.layout.addition(bad)


class SortedSet(Key, Generic[M, S]):
    """Distinct members with a score: a float, an int, a datetime or a timedelta.

    A datetime is kept as epoch milliseconds, `Annotated[datetime, EpochSeconds]` and `EpochFloat` as seconds,
    a timedelta as seconds. `datetime | None` reads and writes the score `inf` as None; `has` says whether
    a member exists.
    """

    redis_type: ClassVar[str] = "zset"
    kind: ClassVar[str] = "sorted set"
    _storage = SortedSetStorage
    _codec: ClassVar[Codec[Any]]
    _score: ClassVar[Score[Any]]
    _encode: ClassVar[Unbound]
    _decode_pairs: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        member, score = type_arguments(cls, SortedSet)
        meaning = score_of(score)
        if meaning is None:
            raise DeclarationError(
                cls.__name__,
                f"a score cannot be {score!r}",
                "Use float, int, datetime, timedelta, Annotated[datetime, EpochSeconds] or "
                "Annotated[datetime, EpochFloat] as its second type.",
            )
        cls._codec, cls._score = comparable(cls, codec_of(member)), meaning
        cls._encode = staticmethod(encoder(cls, cls._codec))
        cls._decode_pairs = staticmethod(scored(cls._codec, cls._score.read))
        return (cls._codec,)

    def add(self, member: M, score: S, *, when: AddWhen | None = None) -> Call[bool]:
        """Add or move a member. Return whether anything changed. `when` limits it to new or moving ones."""
        if when is None:
            return Refreshing(ADD, self, (b"CH", self._written(score), self._encode(member)), bool)
        operation = ADD_ONCE if when == "absent" else ADD
        try:
            condition = _CONDITIONS[when]
        except (KeyError, TypeError) as error:
            raise_explained(SortedSet.add, (self, member, score), {"when": when}, error)
        operands = (*condition, b"CH", self._written(score), self._encode(member))
        return Refreshing(operation, self, operands, bool)

    @explained
    def add_many(self, scores: Mapping[M, S], *, when: AddWhen | None = None) -> Call[int]:
        """Add or move members in one command. Return how many changed."""
        if not scores:
            return Ready(0)
        pairs = (x for member, score in scores.items() for x in (self._written(score), self._encode(member)))
        operation = ADD_ONCE if when == "absent" else ADD
        return Refreshing(operation, self, (*_CONDITIONS[when], b"CH", *pairs), int)

    @explained
    def replace(self, scores: Mapping[M, S]) -> Call[None]:
        """Make these the only members, in one transaction."""
        if not scores:
            return self.delete().map(nothing)
        return atomic(self.delete(), self.add_many(scores)).map(nothing)

    def increase(self, member: M, by: float) -> Call[S]:
        """Add to a score (in its stored unit) and return it."""
        read = self._score.read
        return Refreshing(INCREASE, self, (by, self._encode(member)), lambda reply: read(float(reply)))

    def remove(self, *members: M) -> Call[int]:
        """Remove members. Return how many there were."""
        return Refreshing(REMOVE, self, tuple(map(self._encode, members)), int) if members else Ready(0)

    def remove_by_score(self, low: S | None = None, high: S | None = None) -> Call[int]:
        """Remove members scored from low to high, both included. Return how many there were."""
        return Refreshing(REMOVE_BY_SCORE, self, self._bounds(low, high), int)

    def remove_by_rank(self, first: int, last: int) -> Call[int]:
        """Remove the members from one rank to another, both included. Return how many."""
        return Refreshing(REMOVE_BY_RANK, self, (first, last), int)

    def score(self, member: M) -> Call[S | None]:
        """Return the score of a member, or None if it is missing."""
        return Sliding(SCORE, self, (self._encode(member),), self._read_score)

    @explained
    def scores(self, members: Iterable[M]) -> Call[dict[M, S]]:
        """Return the scores of these members, those that exist, in one command."""
        asked = list(members)
        if not asked:
            return Ready({})
        read = self._score.read

        def found(reply: Reply) -> dict[M, S]:
            return {m: read(float(s)) for m, s in zip(asked, reply, strict=True) if s is not None}

        return Sliding(SCORES, self, tuple(map(self._encode, asked)), found)

    def has(self, member: M) -> Call[bool]:
        """Return whether the set has a member."""
        return Sliding(SCORE, self, (self._encode(member),), _present)

    def rank(self, member: M, *, descending: bool = False) -> Call[int | None]:
        """Return the member's rank from 0, or None."""
        operation = REVERSE_RANK if descending else RANK
        return Sliding(operation, self, (self._encode(member),), as_is)

    def size(self) -> Call[int]:
        """Return the number of members."""
        return Sliding(SIZE, self, (), int)

    def count(self, low: S | None = None, high: S | None = None) -> Call[int]:
        """Count members scored from low to high, both included."""
        return Sliding(COUNT, self, self._bounds(low, high), int)

    def range(self, first: int = 0, last: int = -1, *, descending: bool = False) -> Call[list[tuple[M, S]]]:
        """Return members and scores by rank, both ends included, negative from the end."""
        reverse = (b"REV",) if descending else ()
        return Sliding(RANGE, self, (first, last, *reverse, b"WITHSCORES"), self._decode_pairs)

    def range_by_score(
        self,
        low: S | None = None,
        high: S | None = None,
        *,
        descending: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Call[list[tuple[M, S]]]:
        """Return members and scores from low to high, both included; None is unbounded."""
        ends = self._bounds(low, high)
        order = (*reversed(ends), b"BYSCORE", b"REV") if descending else (*ends, b"BYSCORE")
        page = (b"LIMIT", offset, -1 if limit is None else limit) if limit is not None or offset else ()
        return Sliding(RANGE, self, (*order, *page, b"WITHSCORES"), self._decode_pairs)

    def members(self) -> Call[list[M]]:
        """Return every member, lowest score first."""
        return Sliding(RANGE, self, (0, -1), items(self._codec))

    def pop_lowest(self, count: int = 1) -> Call[list[tuple[M, S]]]:
        """Remove and return up to `count` members with the lowest scores."""
        return Refreshing(POP_MIN, self, (count,), self._decode_pairs)

    def pop_highest(self, count: int = 1) -> Call[list[tuple[M, S]]]:
        """Remove and return up to `count` members with the highest scores."""
        return Refreshing(POP_MAX, self, (count,), self._decode_pairs)

    def sample(self, count: int) -> Call[list[M]]:
        """Return members chosen at random: up to `count` different ones, or `-count` with repetitions."""
        return Sliding(SAMPLE, self, (count,), items(self._codec))

    def scan(self, cursor: int = 0, count: int = 500) -> Call[tuple[int, list[tuple[M, S]]]]:
        """Return one page: the next cursor (0 at the end) and some members; a member may come twice."""
        pairs = self._decode_pairs

        def page(reply: Reply) -> tuple[int, list[tuple[M, S]]]:
            return int(reply[0]), pairs(reply[1])

        return Sliding(SCAN, self, (cursor, b"COUNT", count), page)

    def _written(self, score: Any) -> int | float:
        if type(score) is float and self._score is FLOAT and score == score:
            return score
        if not isinstance(score, self._score.accepts) or isinstance(score, bool):
            raise ValueRefusedError(self._template.source, self._score.meaning, repr(score))
        try:
            return self._score.write(score)
        except (CodecError, TypeError) as error:
            raise ValueRefusedError(self._template.source, self._score.meaning, repr(score)) from error

    def _bounds(self, low: S | None, high: S | None) -> tuple[Any, Any]:
        return (
            b"-inf" if low is None else self._written(low),
            b"+inf" if high is None else self._written(high),
        )

    def _read_score(self, reply: Reply) -> S | None:
        return None if reply is None else self._score.read(float(reply))


def _present(reply: Reply) -> bool:
    return reply is not None
