"""Geo: members with a position on the earth, in one sorted set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from keywright.errors import ValueRefusedError, excerpt
from keywright.keyspace.call import Call, Ready, Refreshing, Sliding
from keywright.keyspace.codecs import Codec, CodecError, codec_of
from keywright.keyspace.generated import for_each, in_bulk
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import comparable, encoder, items
from keywright.keyspace.kinds.scores import Score
from keywright.keyspace.kinds.sorted_set import SortedSetStorage
from keywright.keyspace.layouts import Ask
from keywright.keyspace.misuse import explained, raise_explained
from keywright.keyspace.wires import Effect, Operation, Reply

M = TypeVar("M")

ADD = Operation("add", b"GEOADD", Effect.REPEATABLE)
ADD_ONCE = Operation("add", b"GEOADD", Effect.ONCE)
POSITIONS = Operation("positions", b"GEOPOS", Effect.READ)
DISTANCE = Operation("distance", b"GEODIST", Effect.READ)
SEARCH = Operation("search", b"GEOSEARCH", Effect.READ)
REMOVE = Operation("remove", b"ZREM", Effect.REPEATABLE)
SIZE = Operation("size", b"ZCARD", Effect.READ)
MEMBERS = Operation("members", b"ZRANGE", Effect.READ)

STEPS = 26  # bits of each coordinate
HIGHEST_LATITUDE = 85.05112878  # of the Mercator projection in which the servers store positions
FARTHEST = 50_000_000  # metres, more than the way around the earth

PlaceWhen = Literal["absent", "present"]
_CONDITIONS: dict[str | None, tuple[bytes, ...]] = {None: (), "absent": (b"NX",), "present": (b"XX",)}


class Point(NamedTuple):
    """A position in degrees. The server rounds it to less than a metre."""

    longitude: float
    latitude: float


class Near(NamedTuple, Generic[M]):
    """A member that a search found, and its distance from the centre in metres."""

    member: M
    distance: float
    point: Point


def point_of(score: float) -> Point:
    """Return the position that a score stands for: the bits of latitude and longitude in turn."""
    if not 0 <= score < 1 << 2 * STEPS or score != int(score):
        raise CodecError("a position as a whole number of 52 bits", repr(score))
    bits = int(score)
    latitude, longitude = (sum((bits >> 2 * n + odd & 1) << n for n in range(STEPS)) for odd in (0, 1))
    cells = 1 << STEPS
    return Point(
        -180 + 360 * (longitude + 0.5) / cells,
        -HIGHEST_LATITUDE + 2 * HIGHEST_LATITUDE * (latitude + 0.5) / cells,
    )


def score_of(point: Point) -> int:
    """Return the score that stands for a position."""
    cells = 1 << STEPS
    latitude = int((point.latitude + HIGHEST_LATITUDE) / (2 * HIGHEST_LATITUDE) * cells)
    longitude = int((point.longitude + 180) / 360 * cells)
    return sum((latitude >> n & 1) << 2 * n | (longitude >> n & 1) << 2 * n + 1 for n in range(STEPS))


# Read back exactly: Redis rounds a position to a cell, of which these are centres.
SAMPLES = tuple(point_of(score_of(Point(*each))) for each in ((2.35, 48.86), (-180.0, -85.0), (180.0, 85.0)))
POSITION: Score[Any] = Score(
    "a position: longitude and latitude in 52 bits", Point, score_of, point_of, SAMPLES, form="position"
)


class GeoStorage(SortedSetStorage):
    """Members with a position as their score; each member names its entry."""

    reads = ("geopos", "geodist", "geosearch")
    writes = ("geoadd",)

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        return super().malformed(refused, key) or self.layout.addition(b"nowhere", b"-1")


class Geo(Key, Generic[M]):
    """Distinct members with a position: longitude and latitude in degrees. Distances are in metres.

    Latitudes beyond ±85.05 degrees cannot be stored.
    """

    redis_type: ClassVar[str] = "zset"
    kind: ClassVar[str] = "geo"
    _storage = GeoStorage
    _codec: ClassVar[Codec[Any]]
    _score: ClassVar[Score[Any]] = POSITION
    _encode: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._codec = comparable(cls, codec_of(type_arguments(cls, Geo)[0]))
        cls._encode = staticmethod(encoder(cls, cls._codec))
        return (cls._codec,)

    def add(self, member: M, point: Point, *, when: PlaceWhen | None = None) -> Call[bool]:
        """Add or move a member. Return whether anything changed. `when` limits it to new or known ones."""
        if when is None:
            return Refreshing(ADD, self, (b"CH", *self._placed(point), self._encode(member)), bool)
        operation = ADD_ONCE if when == "absent" else ADD
        try:
            condition = _CONDITIONS[when]
        except (KeyError, TypeError) as error:
            raise_explained(Geo.add, (self, member, point), {"when": when}, error)
        operands = (*condition, b"CH", *self._placed(point), self._encode(member))
        return Refreshing(operation, self, operands, bool)

    @explained
    def add_many(self, points: Mapping[M, Point]) -> Call[int]:
        """Add or move members in one command. Return how many changed."""
        if not points:
            return Ready(0)
        operands = (
            x for member, point in points.items() for x in (*self._placed(point), self._encode(member))
        )
        return Refreshing(ADD, self, (b"CH", *operands), int)

    def remove(self, *members: M) -> Call[int]:
        """Remove members in one command. Return how many existed."""
        return Refreshing(REMOVE, self, tuple(map(self._encode, members)), int) if members else Ready(0)

    def position(self, member: M) -> Call[Point | None]:
        """Return the position of a member, or None."""
        return Sliding(POSITIONS, self, (self._encode(member),), _first_point)

    @explained
    def positions(self, members: Iterable[M]) -> Call[dict[M, Point]]:
        """Return the positions of these members, those that exist, in one command."""
        asked = list(members)
        if not asked:
            return Ready({})

        def found(reply: Reply) -> dict[M, Point]:
            points = zip(asked, map(_point, reply), strict=True)
            return {member: point for member, point in points if point is not None}

        return Sliding(POSITIONS, self, tuple(map(self._encode, asked)), found)

    def distance(self, first: M, second: M) -> Call[float | None]:
        """Return the distance of two members in metres, or None if one does not exist."""
        return Sliding(DISTANCE, self, (self._encode(first), self._encode(second), b"m"), _metres)

    @explained
    def within(self, center: Point | M, radius: float, *, limit: int | None = None) -> Call[list[Near[M]]]:
        """Return the members within a radius in metres around a position or a member, the nearest first.

        The server refuses a centre that is not a member.
        """
        return self._search(center, (b"BYRADIUS", self._length(radius)), limit)

    @explained
    def in_box(
        self, center: Point | M, width: float, height: float, *, limit: int | None = None
    ) -> Call[list[Near[M]]]:
        """Return the members in a box with sides in metres around a position or a member, nearest first."""
        return self._search(center, (b"BYBOX", self._length(width), self._length(height)), limit)

    def members(self) -> Call[list[M]]:
        """Return every member."""
        return Sliding(MEMBERS, self, (0, -1), items(self._codec))

    def size(self) -> Call[int]:
        """Return the number of members."""
        return Sliding(SIZE, self, (), int)

    def _search(self, center: Any, area: tuple[Any, ...], limit: int | None) -> Call[list[Near[M]]]:
        if isinstance(center, Point):
            start: tuple[Any, ...] = (b"FROMLONLAT", *self._placed(center))
        else:
            start = (b"FROMMEMBER", self._encode(center))
        if limit is not None and (type(limit) is not int or limit < 1):
            raise ValueRefusedError(self._template.source, "a positive limit", excerpt(limit))
        count = () if limit is None else (b"COUNT", limit)
        decode = self._codec.decode

        def found(reply: Reply) -> list[Near[M]]:
            return [
                Near(decode(member), float(distance), Point(float(point[0]), float(point[1])))
                for member, distance, point in reply
            ]

        operands = (*start, *area, b"m", b"ASC", *count, b"WITHCOORD", b"WITHDIST")
        return Sliding(SEARCH, self, operands, found)

    def _placed(self, point: Any) -> tuple[float, float]:
        longitude, latitude = point if isinstance(point, Point) else (inf, inf)
        numbers = type(longitude) in _NUMBERS and type(latitude) in _NUMBERS
        if not (numbers and -180 <= longitude <= 180 and -HIGHEST_LATITUDE <= latitude <= HIGHEST_LATITUDE):
            expected = f"a Point with a longitude within ±180 and a latitude within ±{HIGHEST_LATITUDE}"
            raise ValueRefusedError(self._template.source, expected, excerpt(point))
        return longitude, latitude

    def _length(self, metres: float) -> float:
        if type(metres) not in (int, float) or not 0 <= metres <= FARTHEST:
            expected = f"a number of metres from 0 to {FARTHEST:,}"
            raise ValueRefusedError(self._template.source, expected, excerpt(metres))
        return metres


_NUMBERS = frozenset({int, float})
# Point(…) itself takes twice the time.
_new_point: Callable[[tuple[float, float]], Point] = partial(tuple.__new__, Point)


def _point(reply: Reply) -> Point | None:
    return None if reply is None else _new_point((float(reply[0]), float(reply[1])))


def _first_plainly(reply: Reply) -> Point | None:
    return _point(reply[0])


_first_point = in_bulk(
    _first_plainly,
    for_each(
        "[found]",
        "None if found is None else new(Point, (float(found[0]), float(found[1])))",
        {"new": tuple.__new__, "Point": Point},
    ),
)


def _metres(reply: Reply) -> float | None:
    return None if reply is None else float(reply)
