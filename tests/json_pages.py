"""Pages as JSON documents, for tests with and without a server that has JSON."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from audited import Sample
from keywright import Database, Id, JsonDocument, Keyspace, expires_in
from keywright.tools.model import Model

cms = Keyspace("cms", "Pages.", prefix="c")


class Page(msgspec.Struct):
    title: str
    views: int = 0
    tags: list[str] = []


class PageOf(JsonDocument[Page], key="page:<page>", space=cms):
    """A page."""

    page: Id


class Draft(JsonDocument[Page], key="draft:<page>", space=cms, expiry=expires_in(timedelta(hours=1))):
    """A draft, for an hour."""

    page: Id


def fill(db: Database) -> None:
    for name in ("a", "b", "c", "d"):
        db.run(PageOf(name).set(Page(name)))
        db.run(Draft(name).set(Page(name)))


CMS = Sample(Model("cms", (cms,)), (), fill, {}, each=1)
