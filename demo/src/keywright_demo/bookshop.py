"""A small bookshop, the sample of the guided tour: no service uses it, so it may be damaged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import msgspec

from keywright import (
    Binding,
    Call,
    Database,
    Id,
    Keyring,
    Keyspace,
    List,
    Record,
    Sealed,
    Secret,
    Set,
    Value,
    expires_in,
    gather_list,
    index,
    many_to_one,
    refers,
)
from keywright_demo import names

__all__ = ["bind", "bookshop", "fill"]

AUTHORS, BOOKS, READERS, ORDERS, SESSIONS, CARDS = 15, 60, 70, 40, 30, 20
SUBJECTS = ("Lanterns", "Rivers", "Winters", "Maps", "Orchards", "Letters", "Harbours", "Clocks")
PLACES = ("Lisbon", "Bergen", "Trieste", "Galway", "Kyoto")
PEOPLE = ("Ada", "Ben", "Clara", "Dario", "Edda", "Farid", "Greta", "Hugo", "Ines", "Jonas")

bookshop = Keyspace("bookshop", "A small bookshop: the sample of the guided tour.", prefix=names.TOUR)


class BookDetails(msgspec.Struct):
    title: str
    pages: int
    published: date
    price_cents: int


class AuthorDetails(msgspec.Struct):
    name: str
    born: int


class ReaderDetails(msgspec.Struct):
    name: str
    member_since: date


class OrderDetails(msgspec.Struct):
    reader: Id
    book: Id
    copies: int
    placed: datetime


class Book(Record[BookDetails], key="book:<book>", space=bookshop):
    """A book that the shop sells."""

    book: Id


class Books(Set[Id], key="books", space=bookshop):
    """Every book; an index, kept with the books."""


class AuthorOf(Value[Id], key="book:<book>:author", space=bookshop):
    """Who wrote a book."""

    book: Id


class AuthorBooks(Set[Id], key="author:<author>:books", space=bookshop):
    """The books of an author."""

    author: Id


class Author(Record[AuthorDetails], key="author:<author>", space=bookshop):
    """An author."""

    author: Id


class Reader(Record[ReaderDetails], key="reader:<reader>", space=bookshop):
    """A customer of the shop."""

    reader: Id


class Order(Record[OrderDetails], key="order:<order>", space=bookshop):
    """One book, ordered by a reader."""

    order: Id


class Session(Value[Id], key="session:<session>", space=bookshop, expiry=expires_in(timedelta(hours=8))):
    """The reader of a session on the shop's pages. It ends after eight hours."""

    session: Id


class Basket(List[Id], key="basket:<reader>", space=bookshop, expiry=expires_in(timedelta(days=7))):
    """Books that a reader is about to order."""

    reader: Id


class Card(Value[Annotated[Secret[str], Sealed]], key="reader:<reader>:card", space=bookshop):
    """The number of a reader's payment card, encrypted."""

    reader: Id


all_books = index(Book, by=Books)
author_of = many_to_one(AuthorOf, inverse=AuthorBooks)
refers(Order, Reader, lambda _, order: [order.reader], name="ordered by")
refers(Order, Book, lambda _, order: [order.book], name="ordered")
refers(Session, Reader, lambda _, reader: [reader], name="signed in")


def bind() -> Binding:
    """Return the binding of the sample, with a key for its secrets that is not a secret itself."""
    return bookshop.bind(keyring=Keyring("sample", {"sample": bytes(range(32))}))


def fill(db: Database) -> None:
    """Write the shop: some three hundred keys, all as declared."""
    calls = [*_books(), *_readers()]
    for n in range(SESSIONS):
        calls.append(Session(f"s{n}").set(f"r{ORDERS + n}"))  # nothing refers to one reader twice
        calls.append(Basket(f"r{n}").push(f"b{n}", f"b{n + 1}"))
    db.run(gather_list(calls))


def _books() -> Iterator[Call[object]]:
    for n in range(AUTHORS):
        yield Author(f"a{n}").put(AuthorDetails(f"{PEOPLE[n % 10]} {PLACES[n % 5]}", 1900 + 5 * n))
    for n in range(BOOKS):
        title = f"The {SUBJECTS[n % 8]} of {PLACES[n % 5]}"
        details = BookDetails(title, 90 + 7 * n, date(1950 + n, 1 + n % 12, 1 + n % 28), 900 + 25 * n)
        yield all_books.put(Book(f"b{n}"), Book(f"b{n}").put(details))
        yield author_of.assign(f"b{n}", f"a{n % AUTHORS}")


def _readers() -> Iterator[Call[object]]:
    for n in range(READERS):
        yield Reader(f"r{n}").put(ReaderDetails(PEOPLE[n % 10], date(2015 + n % 10, 1 + n % 12, 5)))
    for n in range(ORDERS):
        placed = datetime(2026, 1 + n % 12, 1 + n % 28, 9 + n % 9, tzinfo=UTC)
        yield Order(f"o{n}").put(OrderDetails(f"r{n}", f"b{n}", 1 + n % 3, placed))
    for n in range(CARDS):
        yield Card(f"r{n}").set(Secret(f"4000 0000 0000 {n:04}"))
