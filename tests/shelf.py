"""Books with tags: a relation of many to many, and an index, for tests in two languages."""

from __future__ import annotations

from keywright import Id, Keyspace, Set, Value, index, many_to_many
from keywright.tools.model import Model

shelf = Keyspace("shelf", "Books and their tags.")


class TagsOf(Set[Id], key="book:<book>:tags", space=shelf):
    """The tags of a book."""

    book: Id


class BooksOf(Set[Id], key="tag:<tag>:books", space=shelf):
    """The books with a tag."""

    tag: Id


class Book(Value[str], key="book:<book>", space=shelf):
    """The title of a book."""

    book: Id


class Books(Set[Id], key="books", space=shelf):
    """Every book."""


tags_of_book = many_to_many(TagsOf, inverse=BooksOf)
all_books = index(Book, by=Books)

model = Model("shelf", (shelf,))
