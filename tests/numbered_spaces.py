"""Keyspaces of two databases that make the same names."""

from __future__ import annotations

from datetime import timedelta

from keywright import Id, Keyspace, Set, Value, expires_in

people = Keyspace("people", "Users, in the first database.", database=0)
pages = Keyspace("pages", "A cache, in another database.", database=2)
anywhere = Keyspace("anywhere", "Keys of any database.")


class User(Value[str], key="user:<user>", space=people):
    """The name of a user."""

    user: Id


class Page(Value[int], key="user:<user>", space=pages, expiry=expires_in(timedelta(hours=1))):
    """A page of a user, under the same name."""

    user: Id


class Note(Set[str], key="note:<note>", space=anywhere):
    """Words of a note."""

    note: Id
