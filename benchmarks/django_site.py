"""The keys of the site that `foreign.django_workload` runs, as its developer would declare them.

The catalogue declares Django's cache for every site: one class has all keys that an application names.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from keywright import U64, Counter, FirstOf, Id, Int64, Json, Keyspace, Pickled, Value, Zlib

site = Keyspace("site", "A site with django-redis.")

Cached = Annotated[Any, FirstOf(Int64(), Pickled())]
Compact = Annotated[Any, Json, partial(Zlib, min_size=16)]


class Page(Value[Cached], key="site:1:page:<page>", space=site):
    """A rendered page, for a second."""

    page: U64


class KeptPage(Value[Cached], key="site:1:page:<page>:kept", space=site):
    """The parts of a page that are kept longer."""

    page: U64


class User(Value[Cached], key="site:1:user:<user>", space=site):
    """A profile."""

    user: U64


class Count(Value[Cached], key="site:1:count:<user>", space=site):
    """A number, as an integer."""

    user: U64


class Hits(Counter, key="site:1:hits", space=site):
    """Visits of the site, kept forever."""


class Navigation(Value[Cached], key="site:1:navigation", space=site):
    """The menu, kept forever."""


class Lock(Value[Id], key="site:1:lock:<lock>", space=site):
    """A lock of the application, held by the owner of the token."""

    lock: Id


class Product(Value[Compact], key="api:2:product:<product>", space=site):
    """A product as JSON, compressed."""

    product: U64


class Stock(Value[Compact], key="api:2:stock:<product>", space=site):
    """How many there are."""

    product: U64


class OnSale(Value[Compact], key="api:2:flag:<product>", space=site):
    """Whether it is on sale, for a second."""

    product: U64


class Seen(Value[Cached], key="own:1:seen:<user>", space=site):
    """The last turn of a user, by Django's own backend."""

    user: U64


class Profile(Value[Cached], key="own:1:profile:<user>", space=site):
    """A profile, by Django's own backend."""

    user: U64
