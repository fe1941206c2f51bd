"""Backlinks: the keys whose values refer to a key, by declared references.

Keys that share its variables are looked at first. The others are found by scanning the templates that refer
to its class, for a short time from a cursor; their values are read in bounded batches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import name_page
from keywright.errors import KeywrightError, ServerRefusedError
from keywright.explorer.atlas import Atlas
from keywright.explorer.key_reader import MOST_BYTES, ask, measures
from keywright.keyspace import Key, gather_list
from keywright.keyspace.codecs import CodecError, unpacking_at_most
from keywright.keyspace.layouts import Ask
from keywright.keyspace.references import Reference
from keywright.keyspace.template import escaped

__all__ = ["Backlink", "Backlinks", "Cursor", "Found"]

SCAN_SECONDS = 0.04
A_PAGE = 50
FEWEST, MOST = 64, 1024
LARGEST = 256 * 1024
"""The memory of the largest value that is read."""
ENTRIES = 500
LONGEST_NAME = 1024


class Backlink(NamedTuple):
    """A key that refers to another, by the name of its reference."""

    reference: str
    key: Key


class Cursor(NamedTuple):
    """Where a scan goes on: the number of the template, the node, the cursor of SCAN, the keys looked at."""

    source: int = 0
    node: int = 0
    place: int = 0
    looked: int = 0

    @classmethod
    def parse(cls, text: str) -> Cursor:
        parts = text.split("-")
        valid = len(parts) == 4 and all(
            part.isascii() and part.isdigit() and len(part) <= 20 for part in parts
        )
        return cls(*map(int, parts)) if valid else cls()

    def __str__(self) -> str:
        return "-".join(map(str, self))


class Found(NamedTuple):
    """A page of backlinks: how many keys were looked at so far, how many were too large, and what follows."""

    links: list[Backlink]
    looked: int
    skipped: int
    more: Cursor | None


class Backlinks:
    """The references of some keyspaces, seen from their targets."""

    def __init__(self, db: AsyncDatabase, atlas: Atlas) -> None:
        self.db = db
        self.atlas = atlas
        self._references: dict[type[Key], list[Reference]] = {}
        for space in atlas.spaces:
            for reference in space.references:
                if reference.source in atlas.sheets:
                    self._references.setdefault(reference.target, []).append(reference)

    def sources(self, kind: type[Key]) -> list[type[Key]]:
        """Return the classes that refer to a class."""
        return list(dict.fromkeys(each.source for each in self._references.get(kind, ())))

    async def find(self, target: Key, cursor: Cursor) -> Found:
        """Return some keys that refer to a key, from a cursor on."""
        sources = self.sources(type(target))
        near = self._near(target, sources)
        links: list[Backlink] = []
        skipped, looked = 0, cursor.looked
        if cursor == Cursor():
            links, skipped = await self._leading(target, near)
        nodes = await self.db.nodes()
        source, node, place = cursor.source, cursor.node, cursor.place
        count, until = FEWEST, time.monotonic() + SCAN_SECONDS
        if node >= len(nodes):  # the cluster has fewer nodes by now
            source, node, place = source + 1, 0, 0
        while source < len(sources) and len(links) < A_PAGE:
            kind = sources[source]
            lead = self.db.context.prefixes[kind.declaration.space]
            pattern = escaped(lead) + kind.declaration.template.glob({})
            place, page = await self.db.run(name_page(place, count, pattern=pattern), at=nodes[node])
            named = [key for name in page if (key := self._key(name)) is not None]
            keys = [key for key in named if type(key) is kind and key not in near]
            found, heavy = await self._leading(target, keys)
            links, skipped, looked = [*links, *found], skipped + heavy, looked + len(keys)
            count = FEWEST if keys else min(MOST, count * 4)
            node += place == 0
            if node >= len(nodes):
                source, node = source + 1, 0
            if time.monotonic() >= until:  # after a page at least, so that each visit gets further
                break
        more = Cursor(source, node, place, looked) if source < len(sources) else None
        return Found(list(dict.fromkeys(links)), looked, skipped, more)

    def _key(self, name: bytes) -> Key | None:
        return self.atlas.key_of(name) if len(name) <= LONGEST_NAME else None

    def _near(self, target: Key, sources: Iterable[type[Key]]) -> list[Key]:
        """Return the keys of the sources whose variables are all variables of the target."""
        alphabets = target.declaration.template.alphabets
        near = []
        for kind in sources:
            theirs = kind.declaration.template.alphabets
            if all(name in alphabets and alphabets[name] == theirs[name] for name in theirs):
                near.append(kind(**{name: getattr(target, name) for name in theirs}))
        return near

    async def _leading(self, target: Key, keys: Sequence[Key]) -> tuple[list[Backlink], int]:
        """Return the references of some keys that lead to the target, and how many keys are too large."""
        if not keys:
            return [], 0
        names = [self.db.context.name(key) for key in keys]
        measured = await measures(self.db, names)
        sound, total, skipped = [], 0, 0
        for key, name, (ttl, memory) in zip(keys, names, measured, strict=True):
            if ttl == -2:
                continue
            whole = key.declaration.storage.whole
            size = (memory or 0) if whole or (memory or 0) <= LARGEST else LARGEST
            if (whole and size > LARGEST) or total + size > 4 * MOST_BYTES:
                skipped += 1
                continue
            total += size
            sound.append((key, name))
        asked = [ask(what.verb, name, *what.operands) for key, name in sound for what in [_read(key)]]
        replies = await self.db.run(gather_list(call.attempt() for call in asked))
        found = await asyncio.to_thread(self._followed, target, [key for key, _ in sound], replies)
        return found, skipped

    def _followed(self, target: Key, keys: Sequence[Key], replies: Sequence[Any]) -> list[Backlink]:
        found: list[Backlink] = []
        with unpacking_at_most(MOST_BYTES):
            for key, reply in zip(keys, replies, strict=True):
                if isinstance(reply, KeywrightError):
                    if isinstance(reply, ServerRefusedError):
                        raise reply
                    continue  # it has another type
                value = _value(key, reply)
                found += [
                    Backlink(reference.name, key)
                    for reference in self._references[type(target)]
                    if reference.source is type(key) and _leads(reference, key, value, target)
                ]
        return found


def _read(key: Key) -> Ask:
    layout = key.declaration.storage.layout
    return layout.everything if key.declaration.storage.whole else layout.first_page(ENTRIES)


def _value(key: Key, reply: Any) -> Any:
    """Return a value in the form that references are declared on; None for secrets and malformed values."""
    declared = key.declaration
    storage = declared.storage
    if declared.secret or declared.sealed or not reply or not storage.is_read:
        return None
    stored = reply if storage.whole else storage.layout.page(reply, count=ENTRIES).stored
    try:
        return storage.value(stored, key)
    except (CodecError, ValueError):
        return None


def _leads(reference: Reference, key: Key, value: Any, target: Key) -> bool:
    return key != target and any(found == target for found in _targets(reference, key, value))


def _targets(reference: Reference, key: Key, value: Any) -> Iterator[Key]:
    try:
        yield from (place.key for place in reference.places(key, value))
    except (AttributeError, LookupError, TypeError, ValueError, KeywrightError):
        return
