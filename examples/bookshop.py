"""A bookshop in Redis: every kind of key, type of variable, codec, expiry, relation and upgrade, once.

Read it from the top: ids, what is stored, the keys, how they relate, then a tour that uses them.
Run it with `python examples/bookshop.py`; it starts a server of its own and leaves nothing behind.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from keywright import (
    I64,
    U64,
    Binding,
    Boolean,
    Call,
    Counter,
    Derived,
    EmbeddedServer,
    EpochMs,
    EpochSeconds,
    Flag,
    FreeText,
    Hex,
    Id,
    Keyring,
    Keyspace,
    List,
    Map,
    MessagePack,
    OneOf,
    Plain,
    Prefixed,
    Record,
    RestOfName,
    Sealed,
    Secret,
    Set,
    SnowflakeId,
    SortedSet,
    Stream,
    Upgrade,
    Value,
    Zstd,
    atomic,
    before_first,
    check,
    connect,
    erase,
    expires_at,
    expires_in,
    gather,
    index,
    many_to_many,
    many_to_one,
    one_to_one,
    sha256_hex,
)

shop = Keyspace("bookshop", "What a small bookshop keeps in Redis.", prefix="shop")
last_year = Keyspace("bookshop, last year", "Keys of last year whose data is still around.", prefix="shop")

# Ids. Each has an alphabet, so that every key name parses back to exactly one key.

BookId = Annotated[str, Prefixed("b_")]
ItemId = Annotated[str, OneOf(Prefixed("b_"), Prefixed("m_"))]
CardId = Annotated[str, Hex(8)]
Shelving = Literal["read", "wish"]


class Bound(enum.Enum):
    """How a book is bound."""

    PAPER = "paper"
    CLOTH = "cloth"


# What is stored.


class BookDetails(msgspec.Struct, kw_only=True):
    """Members become the fields of a hash; an optional one is left out when it is None."""

    title: str
    pages: int
    weight_kg: float
    bound: Bound
    language: Literal["en", "fr"]
    published: datetime
    stocked: Annotated[datetime, EpochMs]
    in_print: bool = True
    lendable: Annotated[bool, Boolean("yes", "no")] = False
    signed: Annotated[bool, Flag("signed")] = False
    subtitle: str | None = None


class ByCard(msgspec.Struct):
    method: Literal["card"]
    last_digits: str


class InCash(msgspec.Struct):
    method: Literal["cash"]
    given_cents: int


class Volume(msgspec.Struct):
    isbn: str


class Magazine(msgspec.Struct):
    issue: int


class Profile(msgspec.Struct):
    first_name: str
    last_name: str
    member_since: Annotated[datetime, EpochSeconds] | None = None


class CouponTerms(msgspec.Struct):
    percent: int
    ends: datetime


class Receipt(msgspec.Struct):
    lines: list[str]
    total_cents: int


class Sale(msgspec.Struct):
    book: BookId
    cents: int
    remark: str | None = None


class Hours(msgspec.Struct):
    opens: int
    closes: int


# The keys. The class is the template, an instance is one key, the docstring is the documentation.


class Book(Record[BookDetails], key="book:<book>", space=shop):
    """A book the shop sells."""

    book: BookId


class Books(Set[BookId], key="books", space=shop):
    """Every book there is; an index, kept with the books."""


class Stock(Counter, key="book:<book>:stock", space=shop, part_of=Book):
    """Copies in the shop."""

    book: BookId


class Cover(Value[bytes], key="book:<book>:cover", space=shop, part_of=Book):
    """The picture on the cover, as it came."""

    book: BookId


class Prices(Map[Literal["eur", "chf"], int], key="book:<book>:prices", space=shop, part_of=Book):
    """Prices in the smallest coin, by currency."""

    book: BookId


class CopiesBound(Value[int], key="book:<book>:bound:<how>", space=shop):
    """Copies of one binding."""

    book: BookId
    how: Bound


class BookAuthors(Set[Id], key="book:<book>:authors", space=shop, part_of=Book):
    """Who wrote a book."""

    book: BookId


class AuthorBooks(Set[BookId], key="author:<author>:books", space=shop):
    """What an author wrote."""

    author: Id


class ShelfOf(Value[I64], key="book:<book>:shelf", space=shop, part_of=Book):
    """The shelf a book stands on; shelves below the ground have negative numbers."""

    book: BookId


class ShelfBooks(Set[BookId], key="shelf:<shelf>:books", space=shop):
    """The books on a shelf."""

    shelf: I64


class Shelved(Set[BookId], key="shelved", space=shop):
    """Every book that stands on some shelf."""


class Item(
    Record[Volume | Magazine],
    key="item:<item>",
    space=shop,
    shape_by=("item", {"b_": Volume, "m_": Magazine}),
):
    """Anything with a bar code; the id tells what it is."""

    item: ItemId


class Payment(Record[ByCard | InCash], key="payment:<receipt>", space=shop):
    """How a receipt was paid; the method tells the shape."""

    receipt: U64


class ReceiptOf(Value[Annotated[Receipt, MessagePack]], key="receipt:<receipt>", space=shop):
    """A receipt, packed small."""

    receipt: U64


class LastReceipt(Value[U64], key="last_receipt", space=shop):
    """The number of the last receipt."""


class Customer(Record[Profile], key="customer:<reader>", space=last_year):
    """Where readers were kept last year, with their name in one piece."""

    reader: SnowflakeId


def _named_in_two(members: Mapping[bytes, bytes], reader: Reader) -> Profile:
    first, last = members[b"first_name"].decode().split(" ", 1)
    return Profile(first, last)


class Reader(
    Record[Profile],
    key="reader:<reader>",
    space=shop,
    upgrades=[Upgrade("customers", bool, _named_in_two, moved_from=lambda key: Customer(key.reader))],
):
    """Someone who buys books. Moved here from `customer:<reader>` when first read."""

    reader: SnowflakeId


class ReaderBooks(Set[BookId], key="reader:<reader>:<shelving>", space=shop):
    """What a reader has read, or wishes for."""

    reader: SnowflakeId
    shelving: Shelving


class Viewed(
    List[BookId],
    key="reader:<reader>:viewed",
    space=shop,
    expiry=expires_in(timedelta(days=30), since="last use"),
):
    """What a reader looked at lately; forgotten a month after the last look."""

    reader: SnowflakeId


class CardOf(Value[CardId], key="reader:<reader>:card", space=shop):
    """The loyalty card of a reader."""

    reader: SnowflakeId


class CardHolder(Value[SnowflakeId], key="card:<card>:reader", space=shop):
    """The reader of a loyalty card."""

    card: CardId


class CardHolders(Set[SnowflakeId], key="card_holders", space=shop):
    """Every reader with a card."""


class Cards(Set[CardId], key="cards", space=shop):
    """Every card that is out."""


class Session(
    Value[Annotated[Secret[str], Sealed]],
    key="session:<reader>",
    space=shop,
    expiry=expires_in(timedelta(hours=8)),
):
    """A reader's session token: never printed, encrypted in Redis, gone after a working day."""

    reader: SnowflakeId


class SignIns(
    Counter,
    key="sign_ins:<reader>",
    space=shop,
    expiry=expires_in(timedelta(minutes=15), since="first write"),
):
    """How often a reader tried to sign in within a quarter of an hour, counted from the first time."""

    reader: SnowflakeId


class DoorCode(Value[Secret[str]], key="door_code", space=shop):
    """What opens the back door: never printed, but in clear in Redis."""


class Coupon(Value[CouponTerms], key="coupon:<code>", space=shop, expiry=expires_at(lambda c: c.ends)):
    """A discount, as JSON; it expires when its terms say."""

    code: Annotated[str, Hex(6)]


class SearchResult(
    Value[list[BookId]],
    key="search:<phrase>",
    space=shop,
    expiry=expires_in(timedelta(minutes=10), jitter=0.2),
):
    """What a search found; jitter keeps results that were stored together from expiring together."""

    phrase: FreeText


class Page(
    Value[Annotated[str, Zstd]],
    key="page:{<site>}:<digest>",
    space=shop,
    expiry=expires_in(timedelta(days=1)),
):
    """A publisher's web page, compressed; `Page.of(address)` makes the key. One site, one slot."""

    site: Annotated[str, Plain("."), Derived("address", before_first("/"))]
    digest: Annotated[str, Hex(64), Derived("address", sha256_hex)]


class Note(Value[str], key="note:<path>", space=shop):
    """Anything worth noting, under a path of its own."""

    path: RestOfName


class Arrivals(SortedSet[BookId, datetime], key="arrivals", space=shop):
    """Books by when they came in."""


class Bestsellers(SortedSet[BookId, int], key="bestsellers", space=shop):
    """Books by copies sold."""


class Ratings(SortedSet[BookId, float], key="ratings", space=shop):
    """Books by what readers think of them."""


class Sales(Stream[Sale], key="sales", space=shop):
    """Every sale, in order; the bookkeeper reads along."""


class Open(Value[bool], key="open", space=shop):
    """Whether the door is open."""


class Opened(Value[datetime], key="opened", space=shop):
    """When it was opened last."""


class HoursText(Value[str], key="hours", space=last_year):
    """The opening hours as they were written last year: `9-18`."""


def _two_numbers(text: bytes, key: OpeningHours) -> Hours:
    return Hours(*map(int, text.split(b"-")))


class OpeningHours(
    Value[Hours],
    key="hours",
    space=shop,
    upgrades=[Upgrade("text", lambda stored: not stored.startswith(b"{"), _two_numbers)],
):
    """The opening hours. Rewritten from last year's text when first read."""


# How they relate. Both directions and the indexes are written together or not at all.

all_books = index(Book, by=Books)
shelf_of = many_to_one(ShelfOf, inverse=ShelfBooks, index=Shelved)
authors_of = many_to_many(BookAuthors, inverse=AuthorBooks)
card_of = one_to_one(CardOf, inverse=CardHolder, index=CardHolders, inverse_index=Cards)


def bindings(keyring: Keyring, prefix: str = "shop") -> list[Binding]:
    """What this database decides: the prefix, the sealing keys, and other expiries than declared."""
    expiry = {SearchResult: expires_in(timedelta(minutes=1)), Viewed: None}
    return [shop.bind(prefix=prefix, keyring=keyring, expiry=expiry), last_year.bind(prefix=prefix)]


# The tour. A call does nothing by itself, so the same steps run on a blocking and on an async database.

MONDAY = datetime(2024, 5, 6, 9, 0, tzinfo=UTC)
FAR_OFF = datetime(2100, 1, 1, tzinfo=UTC)
ADA, BEN = 2**60 + 1, 2**60 + 2  # ids beyond 2**53 stay exact: nothing passes through a float

WAVES = BookDetails(
    title="The Waves",
    pages=297,
    weight_kg=0.25,
    bound=Bound.CLOTH,
    language="en",
    published=datetime(1931, 10, 8, tzinfo=UTC),
    stocked=MONDAY,
    signed=True,
)
ORLANDO = msgspec.structs.replace(WAVES, title="Orlando", subtitle="A Biography", signed=False)


class Step(NamedTuple):
    """One thing the tour does."""

    title: str
    call: Call[Any]


def tour() -> list[Step]:
    return [*stocking(), *opening(), *selling(), *reading(), *relating(), *upgrading(), *clearing()]


def stocking() -> list[Step]:
    waves = Book("b_1")
    return [
        Step("write a book and name it in the index", all_books.put(waves, waves.put(WAVES))),
        Step("the same for another", all_books.put(Book("b_2"), Book("b_2").put(ORLANDO))),
        Step("read it back", waves.get()),
        Step("only two of its members", waves.pick("title", "signed")),
        Step("change a member, remove another", Book("b_2").update(pages=336, subtitle=None)),
        Step("what the index knows", all_books.members()),
        Step("count ten copies in", Stock("b_1").add(10)),
        Step("store the cover as bytes", Cover("b_1").set(b"\x89PNG")),
        Step("prices by currency", Prices("b_1").put_many({"eur": 1200, "chf": 1500})),
        Step("copies bound in cloth", CopiesBound("b_1", Bound.CLOTH).set(4)),
        Step("an id that says what it names", Item("m_7").put(Magazine(issue=7))),
        Step("and one of the other shape", Item("b_1").put(Volume(isbn="9780156949606"))),
        Step("read both in one round trip", Item.get_many(["m_7", "b_1"])),
        Step("order by time", Arrivals().add_many({"b_1": MONDAY, "b_2": MONDAY + timedelta(days=1)})),
        Step("what came in by Monday", Arrivals().range_by_score(high=MONDAY)),
    ]


def opening() -> list[Step]:
    return [
        Step("open: one transaction a slot", atomic(Open().set(True), Opened().set(MONDAY), spread=True)),
        Step("is it open, and since when?", gather(Open().get(), Opened().get())),
        Step("write and read a secret in one step", atomic(DoorCode().set(Secret("4711")), DoorCode().get())),
        Step("a note under a path", Note("till:left drawer").set("sticks; pull hard")),
        Step("a coupon that expires when it says", Coupon("c0ffee").set(CouponTerms(10, FAR_OFF))),
        Step("keep a page, compressed", Page.of("example.org/waves").set("<p>The Waves</p>" * 50)),
        Step("how few bytes it takes", Page.of("example.org/waves").length()),
    ]


def selling() -> list[Step]:
    return [
        Step("sell one", Stock("b_1").add(-1)),
        Step("paid by card", Payment(1).put(ByCard("card", "0042"))),
        Step("paid in cash", Payment(2).put(InCash("cash", 2000))),
        Step("both payments", Payment.get_many([1, 2])),
        Step("the receipt, packed", ReceiptOf(1).set(Receipt(["The Waves"], 1200))),
        Step("its number, unsigned", LastReceipt().set(2**64 - 1)),
        Step("log the sale", Sales().add(Sale("b_1", 1200), entry_id="1-1")),
        Step("the bookkeeper reads along", Sales().create_group("books")),
        Step("gets what is new", Sales().consume("books", "eve").map(lambda found: found[0].value)),
        Step("and is done with it", Sales().acknowledge("books", "1-1")),
        Step("count it", Bestsellers().increase("b_1", 1)),
        Step("the other sells better", Bestsellers().increase("b_2", 3)),
        Step("rate both", Ratings().add_many({"b_1": 4.5, "b_2": 4.0})),
        Step(
            "the best of all",
            gather(
                Bestsellers().range(0, 0, descending=True),
                Ratings().range(0, 0, descending=True),
            ),
        ),
    ]


def reading() -> list[Step]:
    return [
        Step("what Ada looked at", Viewed(ADA).push("b_1", "b_2")),
        Step("this database keeps it for good", Viewed(ADA).ttl()),
        Step("what she wishes for", ReaderBooks(ADA, "wish").add("b_2")),
        Step("she signs in: one of five times in a quarter of an hour", SignIns(ADA).add()),
        Step("a session, sealed in Redis", Session(ADA).set(Secret("token"))),
        Step("opened again, still not shown", Session(ADA).get()),
        Step("remember what a search found", SearchResult("waves: {50% off}").set(["b_1"])),
        Step("and find it by any text", SearchResult("waves: {50% off}").get()),
    ]


def relating() -> list[Step]:
    return [
        Step("many to one: shelve a book in the cellar", shelf_of.assign("b_1", -1)),
        Step("move it upstairs", shelf_of.replace("b_1", 2)),
        Step("what the shelves know", gather(ShelfBooks(-1).members(), shelf_of.inverse_of(2))),
        Step("many to many: who wrote it", authors_of.assign("b_1", "woolf")),
        Step("and the other", authors_of.assign("b_2", "woolf")),
        Step("what she wrote", authors_of.inverse_of("woolf")),
        Step("one to one: Ada's card", card_of.assign(ADA, "0badcafe")),
        Step("Ben cannot have it too", card_of.assign(BEN, "0badcafe").attempt().map(_kind_of_error)),
        Step("unless Ada gives it up", card_of.replace(BEN, "0badcafe")),
        Step("who has cards now", CardHolders().members()),
    ]


def upgrading() -> list[Step]:
    return [
        Step("hours as last year's program wrote them", HoursText().set("9-18")),
        Step("read as they are today", OpeningHours().get()),
        Step("a customer of last year", Customer(BEN).put(Profile("Ben Nevis", ""))),
        Step("is a reader today", Reader(BEN).get()),
        Step("and has left the old place", Customer(BEN).exists()),
    ]


def clearing() -> list[Step]:
    return [
        Step("erase a book with all that is part of it", erase(Book("b_1"))),
        Step("its parts are gone", gather(Stock("b_1").get(), Cover("b_1").get(), Prices("b_1").all())),
        Step("so are its relations", gather(shelf_of.inverse_of(2), authors_of.inverse_of("woolf"))),
        Step("and the indexes know", gather(all_books.members(), Shelved().members())),
    ]


def _kind_of_error(outcome: object) -> str:
    return type(outcome).__name__


def main() -> None:
    for finding in check(shop):
        print(f"{finding.severity}: {finding}")
    with EmbeddedServer() as server, connect(server.url, *bindings(Keyring.generate("2024"))) as db:
        for step in tour():
            print(f"{step.title:45} {db.run(step.call)!r}")


if __name__ == "__main__":
    main()
