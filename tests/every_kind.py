"""A model with every kind, alphabet and codec, for tests of what is made from a declaration."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec

from keywright import (
    BitFields,
    Bitmap,
    Bits,
    Channel,
    Claim,
    Counter,
    DueQueue,
    Geo,
    HyperLogLog,
    JsonDocument,
    Keyspace,
    Lease,
    List,
    Map,
    Opaque,
    Record,
    Secret,
    Set,
    SortedSet,
    Stream,
    Upgrade,
    Value,
    expires_at,
    expires_in,
    index,
    invariant,
    many_to_many,
    many_to_one,
    may_expire,
    one_to_one,
    refers,
)
from keywright.keyspace import alphabets as a
from keywright.keyspace import codecs as c
from keywright.keyspace.fields import OtherFields

shop = Keyspace("shop", "A shop with one key of every sort.", prefix="shop", version="v2", database=3)
archive = Keyspace("archive", "What the shop kept before.", replaced_by=shop)

Sku = Annotated[str, a.Plain(".", max_length=20)]
Day = Annotated[date, a.Day("")]
Custom = Annotated[str, a.Except(a.Plain(), "stock", "all")]


class Size(enum.Enum):
    """How large it is."""

    SMALL = "s"
    LARGE = "l"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Tag(msgspec.Struct, array_like=True, frozen=True):
    """A word and its weight."""

    word: str
    weight: float = 1.0


class Part(msgspec.Struct, omit_defaults=True, rename="camel", tag="part"):
    part_number: int
    """The number of the maker."""
    made_on: date | None = None


class Kit(msgspec.Struct, tag="kit", forbid_unknown_fields=True):
    parts: list[Part]
    inner: Kit | None = None


class Extra(TypedDict, total=False):
    note: str
    seen: datetime


@dataclass
class Article:
    """What is sold."""

    name: str
    """As the customer sees it."""
    price: Decimal
    size: Size = Size.SMALL
    level: Level = Level.LOW
    id: UUID | None = None
    photo: bytes = b""
    lasts: timedelta | None = None
    tags: list[Tag] = field(default_factory=list)
    colours: set[str] = field(default_factory=set)
    of: Part | Kit | None = None
    by_year: dict[int, float] = field(default_factory=dict)
    pair: tuple[int, str] = (0, "")
    extra: Extra | None = None
    more: Any = None


class Customer(msgspec.Struct):
    """A customer as a hash."""

    name: str
    """The name on parcels."""
    since: Annotated[datetime, c.EpochMs]
    kind: Literal["person", "company"] = "person"
    orders: int = 0
    active: Annotated[bool, c.Flag("yes")] = False
    password: Annotated[Secret[str], c.Sealed] | None = None
    last_seen: Annotated[datetime | None, c.EmptyAsNone] = None
    roles: list[str] = msgspec.field(default_factory=list)
    address: Annotated[str, partial(c.Gzip, min_size=32)] | None = msgspec.field(name="addr", default=None)


class Paid(msgspec.Struct):
    type: Literal["paid", "refunded"]
    amount: Decimal


class Shipped(msgspec.Struct):
    type: Literal["shipped"]
    others: Annotated[dict[str, int], OtherFields]
    by: str = "post"


class Kite(msgspec.Struct):
    metres: float


class Feelings(msgspec.Struct):
    happy: Annotated[int, Bits(4)]
    shift: Annotated[int, Bits(5, signed=True, overflow="wrap")]
    late: Annotated[int, Bits(1, overflow="saturate", at=16)]


class Packed(c.Codec[int]):
    """A number as 4 bytes, the lowest first."""

    expected = "a number in 4 bytes"
    python_type = int
    samples = (0, 7)

    def encode(self, value: int) -> bytes:
        return value.to_bytes(4, "little")

    def decode(self, data: bytes) -> int:
        if len(data) != 4:
            raise self.refusal(data)
        return int.from_bytes(data, "little")


def of_tier(key: Any) -> timedelta | None:
    """As long as the tier of the key says."""
    return timedelta(days=1) if key.tier is Size.LARGE else None


def when_stale(value: Article) -> datetime | None:
    """When the article is not made any more."""
    del value
    return None


class Worded(c.Codec[bytes]):
    """Text that the program keeps as bytes."""

    expected = "text as bytes"
    python_type = bytes
    alike = c.Text()
    samples = (b"a",)

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        return data


class Articles(
    Value[Annotated[Article, c.MessagePack]],
    key="article:{<sku>}",
    space=shop,
    expiry=expires_at(when_stale),
    moved_from="art:{<sku>}",
):
    """An article in MessagePack."""

    sku: Sku


class ArticleNames(
    Value[str],
    key="article:{<sku>}:name",
    space=shop,
    part_of=Articles,
    expiry=expires_in(timedelta(hours=1), jitter=0.1, since="last use"),
):
    """The name of an article."""

    sku: Sku


class Titles(Value[str], key="title:<sku>[:<lang>]", space=shop):
    """The title of an article, in one language or in general."""

    sku: Sku
    lang: Annotated[str, a.Pattern("[a-z]{2}")] | None


class Drafts(Value[Article], key="draft:<number>", space=shop, open=True, expiry=may_expire()):
    """An article that is being written, in JSON."""

    number: a.U64
    hides = ("photo",)


class Tiered(Value[bytes], key="tier:<tier>:<on>", space=shop, expiry=expires_in(of_tier)):
    tier: Size
    on: Day


class Prices(
    Value[Annotated[float, c.FirstOf(c.Float(), c.Pickled())]],
    key="price:<sku>",
    space=shop,
    formerly=[Annotated[float, c.Json]],
):
    sku: Sku


class Sizes(Value[Size], key="size:<sku>", space=shop):
    sku: Sku


class Weights(Value[Annotated[int, Packed()]], key="weight:<id>", space=shop):
    """A codec of its own."""

    id: UUID


class Words(Value[Annotated[bytes, Worded()]], key="word:<id>", space=shop):
    id: UUID


class Spans(Value[Annotated[timedelta, c.Duration("ms")]], key="span:<at>", space=shop):
    at: datetime


class Sales(
    Counter, key="sales:<sku>", space=shop, expiry=expires_in(timedelta(days=1), since="first write")
):
    sku: Sku


class Customers(
    Record[Customer],
    key="customer:<id>",
    space=shop,
    field_expiry={"last_seen": expires_in(timedelta(days=30))},
    upgrades=[
        Upgrade("without a kind", lambda stored: b"kind" not in stored, lambda _, key: Customer("", key))
    ],
):
    """A customer."""

    id: a.Id


class ByPrefix(Record[Any], key="thing:<thing>", space=shop, shape_by=("thing", {"p_": Part, "k_": Kite})):
    thing: Annotated[str, a.OneOf(a.Prefixed("p_"), a.Prefixed("k_", "hex", 8))]


class Stock(Map[Sku, int], key="stock:<house>", space=shop, field_expiry=expires_in(timedelta(days=7))):
    house: Literal["north", "south"]


class Baskets(Set[Sku], key="basket:<customer>", space=shop):
    customer: a.Id


class InBaskets(Set[a.Id], key="in:<sku>", space=shop):
    sku: Sku


class Seats(Value[a.Id], key="seat:<customer>", space=shop):
    customer: a.Id


class SeatTaken(Value[a.Id], key="seat-taken:<seat>", space=shop):
    seat: a.Id


class Groups(Value[a.Id], key="group-of:<customer>", space=shop):
    customer: a.Id


class Members(Set[a.Id], key="group:<group>:members", space=shop):
    group: a.Id


class Known(Set[a.Id], key="customers", space=shop):
    """Every customer."""


class Ranks(SortedSet[Sku, int], key="rank", space=shop):
    """Articles by rank."""


class Ends(SortedSet[a.U64, datetime | None], key="ends:<flag>", space=shop):
    flag: bool


class Lasting(SortedSet[str, timedelta], key="lasting", space=shop):
    """Durations."""


class History(List[Annotated[Tag, c.Json]], key="history:<mail>", space=shop):
    mail: Annotated[str, a.Email()]


class Events(Stream[Paid | Shipped], key="events:<hash>", space=shop, groups=["mail", "books"]):
    """What happened to an order."""

    hash: Annotated[str, a.Hex(64), a.Derived("path", a.sha256_hex)]


class Seen(Bitmap, key="seen:<name>", space=shop, bits=1000):
    name: a.FreeText


class Moods(BitFields[Feelings], key="mood:<raw>", space=shop):
    raw: Annotated[bytes, a.Bytes(b":/")]


class Places(Geo[Sku], key="places", space=shop):
    """Where articles are."""


class Documents(JsonDocument[dict[str, Article]], key="doc:<custom>", space=shop):
    custom: Custom


class Visitors(HyperLogLog[a.U64], key="visitors:<ulid>", space=shop):
    ulid: Annotated[str, a.Ulid()]


class Locks(Lease, key="lock:<rest>", space=shop):
    rest: a.RestOfName


class Jobs(Claim, key="job:<amount>", space=shop, expiry=expires_in(timedelta(days=1))):
    amount: Decimal


class Queue(DueQueue[Sku], key="queue", space=shop):
    """Articles to look at."""


class Bloom(Opaque, key="bloom:<token>", space=shop, redis_type="MBbloom--"):
    token: Annotated[str, a.Base64Url(22)]


class Anything(Value[str], key="any:<word>:<segment>", space=shop, fallback=True):
    word: a.Id
    segment: Annotated[str, a.Segment(":*")]


class Yielding(Value[str], key="customer:<rest>", space=shop, yields_to=Customers):
    rest: a.RestOfName


class Signs(Value[a.I64], key="sign:<number>", space=shop):
    number: a.I64


class News(Channel[Article], channel="news:<lang>", space=shop):
    """Articles that are new."""

    lang: Annotated[str, a.Pattern("[a-z]{2}")]


class Shard(Channel[str], channel="shard:{<number>}", space=shop, sharded=True):
    number: a.SnowflakeId


class Old(Value[str], key="old:<id>", space=archive):
    id: a.SnowflakeStr


baskets = many_to_many(Baskets, inverse=InBaskets)
seats = one_to_one(Seats, inverse=SeatTaken)
groups = many_to_one(Groups, inverse=Members)
known = index(Customers, by=Known)
refers(Baskets, Customers, lambda key, _: [key.customer], name="customer")
refers(History, Old, lambda key, _: [key.mail], name="before", required=False)
whole = invariant("whole-customers", "Every customer is known.", [Customers], settles=[known])
