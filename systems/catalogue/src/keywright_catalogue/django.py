"""Django's cache and sessions: django-redis 7, and Django's own backend.

A name is KEY_PREFIX, VERSION and the key of the application: `site:1:user:17`, or `:1:user:17` without a
prefix. Django's own keys have templates; all others are an `Entry`, the fallback. A KEY_PREFIX with a colon
is bound: `bind(prefix="a")` or `--prefix a` for the names `a:b:1:…`.

Not declared: names of a KEY_FUNCTION, MessagePack, and compressors other than zlib.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from keywright import (
    U64,
    Codec,
    FirstOf,
    Hex,
    Int64,
    Json,
    Keyspace,
    Pattern,
    Pickled,
    Prefixed,
    Segment,
    Value,
    Zlib,
)
from keywright.tools import Program

Site = Annotated[str, Pattern("[^:]*")]
Version = U64

django = Keyspace("django", "Django's cache and sessions, by django-redis 7 or Django's own backend.")


class LockToken(Codec[str]):
    """The token of the owner of a lock: 32 hexadecimal digits."""

    expected = "the token of a lock"
    python_type = str
    samples = ("d41d8cd98f00b204e9800998ecf8427e",)

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str) or re.fullmatch("[0-9a-f]{32}", value) is None:
            raise self.refusal(value)
        return value.encode()

    def decode(self, data: bytes) -> str:
        if re.fullmatch(b"[0-9a-f]{32}", data) is None:
            raise self.refusal(data)
        return data.decode()


Cached = Annotated[
    Any, FirstOf(Int64(), Pickled(), LockToken(), Zlib(Json(Any, samples=({"id": 1},)), min_size=16))
]
"""An integer, a pickle, which is never loaded, the token of a lock, or JSON, compressed if it is long."""


class Session(Value[Cached], key="<site>:<version>:django.contrib.sessions.<session>", space=django):
    """A session of a visitor that is kept in the cache only, by its key after the word `cache`."""

    site: Site
    version: Version
    session: Annotated[str, Prefixed("cache", "base36", 32)]


class StoredSession(Value[Cached], key="<site>:<version>:django.contrib.sessions.<session>", space=django):
    """A session of a visitor that is kept in the database too, by its key after the word `cached_db`."""

    site: Site
    version: Version
    session: Annotated[str, Prefixed("cached_db", "base36", 32)]


class Page(Value[Cached], key="<site>:<version>:views.decorators.cache.cache_page.<page>", space=django):
    """A response of a view: key prefix, method, and the MD5 of its URL and of the headers it depends on."""

    site: Site
    version: Version
    page: Annotated[str, Segment("")]


class PageHeaders(
    Value[Cached], key="<site>:<version>:views.decorators.cache.cache_header.<page>", space=django
):
    """The headers on which the responses of a URL depend."""

    site: Site
    version: Version
    page: Annotated[str, Segment("")]


class Fragment(Value[Cached], key="<site>:<version>:template.cache.<fragment>.<digest>", space=django):
    """A part of a template, and the MD5 of what it depends on."""

    site: Site
    version: Version
    fragment: Annotated[str, Segment("")]
    digest: Annotated[str, Hex(32)]


class Entry(Value[Cached], key="<site>:<version>:<name>", space=django, fallback=True):
    """A value that the application has cached under its own name, or a lock."""

    site: Site
    version: Version
    name: Annotated[str, Segment("")]


program = Program(
    "django",
    "Django's cache",
    "5.2 with django-redis 7",
    (django,),
    distinctive=(Session, StoredSession, Page, PageHeaders, Fragment),
    shared=("site", "version"),
)
