"""Django's cache and sessions with django-redis 7. The declaration is ours, not django-redis's.

A name is prefix, version and the key of the application, so the templates are those of one site, and yours
differ. "Any other key" cannot be declared: it would overlap with the keys that say more. Two aliases are
declared, which share a database: `site` stores integers or pickles, `api` JSON, compressed if it is long.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from keywright import U64, Counter, FirstOf, Id, Int64, Json, Keyspace, Pickled, Prefixed, Value, Zlib

cache = Keyspace("cache", "Django's cache with django-redis 7.")


Cached = Annotated[Any, FirstOf(Int64(), Pickled())]
Compact = Annotated[Any, Json, partial(Zlib, min_size=16)]


class Session(Value[Cached], key="site:1:django.contrib.sessions.<session>", space=cache):
    """A session of a visitor, by its key after the word `cache`."""

    session: Annotated[str, Prefixed("cache", "base36", 32)]


class Page(Value[Cached], key="site:1:page:<page>", space=cache):
    """A rendered page, for a second."""

    page: U64


class KeptPage(Value[Cached], key="site:1:page:<page>:kept", space=cache):
    """The parts of a page that are kept longer."""

    page: U64


class User(Value[Cached], key="site:1:user:<user>", space=cache):
    """A profile."""

    user: U64


class Count(Value[Cached], key="site:1:count:<user>", space=cache):
    """A number, as an integer."""

    user: U64


class Hits(Counter, key="site:1:hits", space=cache):
    """Visits of the site, kept forever."""


class Navigation(Value[Cached], key="site:1:navigation", space=cache):
    """The menu, kept forever."""


class Lock(Value[Id], key="site:1:lock:<lock>", space=cache):
    """A lock of the application, held by the owner of the token."""

    lock: Id


class Product(Value[Compact], key="api:2:product:<product>", space=cache):
    """A product as JSON, compressed."""

    product: U64


class Stock(Value[Compact], key="api:2:stock:<product>", space=cache):
    """How many there are."""

    product: U64


class Flag(Value[Compact], key="api:2:flag:<product>", space=cache):
    """Whether it is on sale, for a second."""

    product: U64
