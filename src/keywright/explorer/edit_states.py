"""A key as an edit finds it: its stored form within limits, and the checks that it has not changed since."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.explorer.key_reader import MOST_BYTES, Facts, ask, facts_of
from keywright.keyspace import Key
from keywright.keyspace.checks import Check, absent, equals, exists, hash_is, members_are, serialised_as
from keywright.keyspace.layouts import layout_of, pairs
from keywright.tools.repair.fingerprints import exact

__all__ = ["LARGEST", "State", "entry_state", "name_state", "whole_state"]

LARGEST = 4 * MOST_BYTES
"""The memory of the largest key that can be deleted here: an undo needs all of it."""
CONTENT = {"string": b"GET", "hash": b"HGETALL", "set": b"SMEMBERS"}


class State(NamedTuple):
    """A key, or one entry of it. `seen` is a digest by which a form names the state that it showed."""

    key: Key
    facts: Facts
    stored: Any
    """Its stored form, or the reply to `Layout.find` for an entry; None if it was not read."""
    checks: list[Check]
    seen: str

    @property
    def exists(self) -> bool:
        return self.facts.exists

    @property
    def as_declared(self) -> bool:
        """Whether it has the declared Redis type, or may get it."""
        return self.facts.stored_type in ("none", self.key.redis_type)

    @property
    def members(self) -> dict[bytes, bytes]:
        """Return the members of a hash."""
        return dict(pairs(self.stored or []))


async def name_state(db: AsyncDatabase, key: Key) -> State:
    """Return the state of a key without its content, for an edit that checks entries of its own."""
    facts = await facts_of(db, db.context.name(key))
    return State(key, facts, None, [], facts.stored_type)


async def whole_state(db: AsyncDatabase, key: Key) -> State:
    """Return the state of a key with its content, if it has at most 1 MiB."""
    name = db.context.name(key)
    facts = await facts_of(db, name)
    kind = facts.stored_type
    if kind == "none":
        return State(key, facts, None, [absent(key)], _digest(kind))
    heavy = (facts.size if kind == "string" else facts.memory) or 0
    # The groups of a stream are part of its serialisation, and every consumer changes them.
    if heavy > MOST_BYTES or kind == "stream":
        return State(key, facts, None, [exists(key)], _digest(kind))
    stored = await db.run(ask(CONTENT.get(kind, b"DUMP"), name))
    if stored is None or stored == []:
        return State(key, Facts("none", None, None, None), None, [absent(key)], _digest("none"))
    if kind == "string":
        return State(key, facts, stored, [equals(key, stored)], _digest(kind, stored))
    if kind == "hash":
        found = dict(pairs(stored))
        return State(key, facts, stored, [hash_is(key, found)], _digest(kind, sorted(found.items())))
    if kind == "set":
        return State(key, facts, stored, [members_are(key, stored)], _digest(kind, sorted(stored)))
    return State(key, facts, None, [serialised_as(key, exact(stored))], _digest(kind, exact(stored)))


async def entry_state(db: AsyncDatabase, key: Key, entry: bytes) -> State:
    """Return the state of one entry of a key."""
    name = db.context.name(key)
    facts = await facts_of(db, name)
    layout = layout_of(key.redis_type)
    if not facts.exists or facts.stored_type != key.redis_type:
        return State(key, facts, None, [], _digest(facts.stored_type))
    found = layout.find(entry)
    held = await db.run(ask(found.verb, name, *found.operands))
    if layout.found(entry, held) is None:
        return State(key, facts, None, [layout.absence(key, entry)], _digest("no entry"))
    return State(key, facts, held, layout.removal(key, entry, held).checks, _digest("entry", held))


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()
