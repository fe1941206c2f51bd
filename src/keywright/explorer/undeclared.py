"""A key that no template matches: its entries as they are stored, decoded by guess, within limits."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.explorer.atlas import text_of
from keywright.explorer.key_reader import Facts, answers, ask
from keywright.explorer.presentation import Part, Presenter, sized
from keywright.keyspace.layouts import LAYOUTS, Ask
from keywright.tools.describe.plain import plain
from keywright.tools.infer.guess import guess

__all__ = ["GuessedPart", "Undeclared", "undeclared"]

MOST_ENTRIES = 100
MOST_BYTES = 1 << 20
PAGE_BYTES = 4 << 20
LONGEST_NAME = 200
LONGEST_TEXT = 2_000


class GuessedPart(NamedTuple):
    """One entry: its name, what its bytes look like (empty for text), and its value."""

    entry: str
    form: str
    part: Part
    value: Any
    """As JSON data."""


class Undeclared(NamedTuple):
    """The first entries of a key. `problem` says in a sentence why there are none."""

    parts: list[GuessedPart]
    more: bool = False
    problem: str | None = None


async def undeclared(db: AsyncDatabase, name: bytes, facts: Facts) -> Undeclared:
    """Read the beginning of a key in one command, and guess at each entry in a thread."""
    layout = LAYOUTS.get(facts.stored_type)
    if layout is None:
        problem = (
            f"{facts.stored_type} is a type of a server module, whose commands the explorer does not know."
        )
        return Undeclared([], problem=problem)
    size = facts.size or 0
    if facts.stored_type == "string":
        asked, more = Ask(b"GETRANGE", (0, MOST_BYTES - 1)), size > MOST_BYTES
    else:
        if (facts.memory or 0) // max(1, size) > MOST_BYTES:
            return Undeclared(
                [], problem=f"Its entries are too large to be shown: {sized(facts.memory)} in all."
            )
        count = max(1, min(MOST_ENTRIES, PAGE_BYTES * size // max(1, facts.memory or PAGE_BYTES)))
        asked, more = layout.head(count) or layout.first_page(count), size > count
    (reply,) = await answers(db, [ask(asked.verb, name, *asked.operands)])
    if reply is None:
        return Undeclared([], problem="The server refused to read it, or it has just changed its type.")
    if facts.stored_type in ("hash", "set"):
        reply = layout.page(reply).stored
    entries = _entries(facts.stored_type, reply, layout.named_entries)
    parts = await asyncio.to_thread(_guessed, entries[:MOST_ENTRIES])
    return Undeclared(parts, more or len(entries) > MOST_ENTRIES)


def _entries(stored_type: str, reply: Any, named: Any) -> list[tuple[str, bytes]]:
    if stored_type == "string":
        return [("", reply)]
    if stored_type == "stream":
        return [
            (f"{identity.decode()} {text_of(field, LONGEST_NAME)}", value)
            for identity, flat in reply
            for field, value in zip(flat[::2], flat[1::2], strict=True)
        ]
    return [(text_of(entry, LONGEST_NAME), value) for entry, value in named(reply)]


def _guessed(entries: list[tuple[str, bytes]]) -> list[GuessedPart]:
    presenter, most = Presenter(), max(1 << 14, MOST_BYTES // max(1, len(entries)))
    found = []
    for entry, data in entries:
        form, value = guess(data, most)
        if isinstance(value, str) and len(entries) > 1:
            value = value[:LONGEST_TEXT]
        found.append(GuessedPart(entry, form, presenter.part(value), plain(value)))
    return found
