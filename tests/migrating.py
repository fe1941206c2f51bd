"""A keyspace as it was and as it is: one key for each way in which data becomes old."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import msgspec

from keywright import (
    Counter,
    Id,
    Keyspace,
    List,
    Map,
    MessagePack,
    Record,
    Sealed,
    Set,
    SortedSet,
    Upgrade,
    Value,
    Zstd,
    expires_in,
    many_to_one,
)

then = Keyspace("library-then", "The library as older programs declare it.")
now = Keyspace("library", "The library as it is declared now.")
vault_then = Keyspace("vault-then", "Tokens in clear.")
vault = Keyspace("vault", "Tokens, sealed.")

DAY = timedelta(days=1)


class Book(msgspec.Struct):
    title: str
    pages: int = 1


class Card(msgspec.Struct):
    name: str
    notes: Annotated[list[str], MessagePack]


class OldCard(msgspec.Struct):
    name: str
    notes: list[str]


class OldBookOf(Value[Book], key="book:<book>", space=then):
    """A book, as JSON."""

    book: Id


class BookOf(
    Value[Annotated[Book, MessagePack]], key="book:<book>", space=now, formerly=[Book], expiry=expires_in(DAY)
):
    """A book, as MessagePack; as JSON before."""

    book: Id


class OldReview(Value[str], key="review:<book>", space=then):
    """A review as it was typed."""

    book: Id


class Review(Value[Annotated[str, Zstd]], key="review:<book>", space=now, formerly=[str]):
    """A review, compressed; as it was typed before."""

    book: Id


class OldCardOf(Record[OldCard], key="card:<reader>", space=then):
    """A reader's card, its notes as JSON."""

    reader: Id


class CardOf(Record[Card], key="card:<reader>", space=now, formerly={"notes": list[str]}):
    """A reader's card, its notes as MessagePack."""

    reader: Id


def _from_one_line(stored: Mapping[bytes, bytes], _: object) -> Book:
    """Title and pages stood in one member."""
    title, _, pages = stored[b"line"].decode().partition("/")
    return Book(title, int(pages))


class Sheet(
    Record[Book],
    key="sheet:<sheet>",
    space=now,
    expiry=expires_in(DAY, since="last use"),
    upgrades=[Upgrade("one line", lambda stored: b"line" in stored, _from_one_line)],
):
    """A sheet; its title and pages in one line before."""

    sheet: Id


class OldLoans(Set[str], key="loans:<reader>", space=then):
    """What a reader has borrowed."""

    reader: Id


class Loans(Set[str], key="reader:<reader>:loans", space=now, moved_from="loans:<reader>"):
    """What a reader has borrowed; under another name before."""

    reader: Id


class OldShelf(Map[str, int], key="shelf:<room>:<shelf>", space=then):
    """How many copies of each book a shelf has."""

    room: Id
    shelf: Id


class Shelf(Map[str, int], key="shelf:{<room>}:<shelf>", space=now, moved_from="shelf:<room>:<shelf>"):
    """How many copies of each book a shelf has; shelves of a room share a slot now."""

    room: Id
    shelf: Id


class Tag(
    Value[str],
    key="tag:{<book>}",
    space=now,
    moved_from=("tag:<book>", "label:<book>"),
    expiry=expires_in(DAY),
):
    """A book's tag; it had two other names."""

    book: Id


class Visits(Counter, key="visits:{<reader>}", space=now, moved_from="visits:<reader>"):
    """How often a reader came."""

    reader: Id


class Queue(List[str], key="queue:{<book>}", space=now, moved_from="queue:<book>"):
    """Who waits for a book."""

    book: Id


class Fines(SortedSet[str, int], key="fines:{<reader>}", space=now, moved_from="fines:<reader>"):
    """What a reader owes for."""

    reader: Id


class Profile(Record[Book], key="profile:{<reader>}", space=now, moved_from="profile:<reader>"):
    """A record that got a hash tag."""

    reader: Id


class HomeOf(Value[Id], key="home:{<book>}", space=now, moved_from="home:<book>"):
    """The room that a book belongs to."""

    book: Id


class BooksAt(Set[Id], key="books:{<room>}", space=now, moved_from="books:<room>"):
    """The books of a room."""

    room: Id


book_home = many_to_one(HomeOf, inverse=BooksAt)


class Leaf(Record[Book], key="leaf:<leaf>", space=then):
    """Where pages were."""

    leaf: Id


class Page(
    Record[Book],
    key="page:{<leaf>}",
    space=now,
    expiry=expires_in(DAY),
    upgrades=[
        Upgrade(
            "leaf",
            bool,
            lambda stored, _: Book(stored[b"title"].decode().upper(), int(stored.get(b"pages", 1))),
            moved_from=lambda key: Leaf(key.leaf),
        )
    ],
):
    """A page; before it was a leaf, in lower case."""

    leaf: Id


class OldToken(Value[str], key="token:<reader>", space=vault_then):
    """A token in clear."""

    reader: Id


class Token(Value[Annotated[str, Sealed]], key="token:<reader>", space=vault, formerly=[str]):
    """A token, sealed; in clear before."""

    reader: Id
