"""Walks over the names of a database, and the keys of a model among them: bounded pages, at any rate."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import key_count, name_page
from keywright.errors import KeywrightError, UsageError
from keywright.keyspace import Key, Keyspace, gather_list
from keywright.keyspace.layouts import Ask, stored_read
from keywright.keyspace.template import escaped
from keywright.tools.audit.matcher import Matcher
from keywright.tools.describe.globs import regex_of
from keywright.tools.describe.inspection import Inspection, inspect
from keywright.tools.describe.plain import inspected, plain
from keywright.tools.pace import GENTLE, Pace, Pacemaker, WalkProgress, side_by_side

__all__ = ["Listed", "Wanted", "kind_named", "list_keys", "name_pages", "names_tagged", "variables_of"]

PAGE = 500
TOGETHER = 50
"""The keys whose values are read in one batch."""
MOST_STARS, LONGEST_PATTERN = 4, 1000
"""The server tries the places of all stars in each name."""
MOST_TAGGED = 100

OnProgress = Callable[[WalkProgress], None]


async def name_pages(
    db: AsyncDatabase,
    *,
    pattern: bytes = b"",
    pace: Pace = GENTLE,
    on_progress: OnProgress | None = None,
) -> AsyncGenerator[list[bytes], None]:
    """Yield the names of all primaries that match a pattern, page by page. SCAN may return a name twice.

    The rate counts all names that the server passes, whether they match or not.
    """
    nodes = await db.nodes()
    total = sum(await side_by_side(db.run(key_count(), at=node) for node in nodes))
    size, pacemaker, seen = pace.page(PAGE), Pacemaker(pace), 0
    for node in nodes:
        cursor = 0
        while True:
            cursor, names = await db.run(name_page(cursor, size, pattern=pattern), at=node)
            seen += max(len(names), size if cursor else 0)
            yield list(dict.fromkeys(names))
            if on_progress is not None and (pacemaker.due() or not cursor):
                on_progress(WalkProgress(min(seen, max(total, len(names))), total, pacemaker.seconds))
            await pacemaker.wait(size)
            if not cursor:
                break


class Wanted(NamedTuple):
    """The keys to list: of one class or of all, with some variables, whose full name matches a glob."""

    kind: type[Key] | None = None
    variables: Mapping[str, object] = {}
    match: str | None = None


class Listed(NamedTuple):
    """One stored key. `found` is its value as it may be shown, or why it cannot be."""

    name: bytes
    key: Key
    ttl_ms: int | None = None
    found: Inspection | KeywrightError | None = None

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "name": self.name.decode("utf-8", "backslashreplace"),
            "template": self.key.declaration.template.source,
            "variables": variables_of(self.key),
        }
        if self.found is not None:
            data["ttl_ms"] = self.ttl_ms
            if isinstance(self.found, Inspection):
                data["value"] = inspected(self.found)
                if self.found.truncated:
                    data["size"] = self.found.size
            else:
                data["problem"] = str(self.found)
        return data


def variables_of(key: Key) -> dict[str, Any]:
    """Return the variables of a key as JSON data."""
    declared = key.declaration
    return dict(zip(declared.arguments, map(plain, declared.values(key)), strict=True))


def kind_named(spaces: Sequence[Keyspace], name: str) -> type[Key]:
    """Return the class of a template, or of the name of a class. Raise UsageError if there is none."""
    kinds = [kind for space in spaces for kind in space]
    for kind in kinds:
        if name in (kind.declaration.template.source, kind.__name__):
            return kind
    known = [text for kind in kinds for text in (kind.declaration.template.source, kind.__name__)]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Templates are {', '.join(known[::2])}."
    raise UsageError(f"{name!r} is not a template of the model. {hint}")


async def list_keys(
    db: AsyncDatabase,
    spaces: Sequence[Keyspace],
    wanted: Wanted,
    *,
    values: int = 0,
    pace: Pace = GENTLE,
    on_progress: OnProgress | None = None,
) -> AsyncGenerator[Listed, None]:
    """Yield the stored keys that are wanted, each once a page. `values` is how many entries of each are read.

    Values are shown as `keywright get` does: secrets hidden, nothing renewed or upgraded.
    """
    matcher = Matcher(spaces, db.context)
    fits = _matching(wanted.match)
    pattern = _pattern(db, wanted)
    async for page in name_pages(db, pattern=pattern, pace=pace, on_progress=on_progress):
        groups, _ = matcher.grouped([name for name in page if fits(name)])
        found = [
            Listed(name, key)
            for known, names in groups.items()
            if known.ours and wanted.kind in (None, known.kind)
            for name in names
            if _has(key := known.key(name), wanted.variables)
        ]
        for start in range(0, len(found), TOGETHER):
            part = found[start : start + TOGETHER]
            for listed in await _read(db, part, values) if values else part:
                yield listed


async def _read(db: AsyncDatabase, part: Sequence[Listed], limit: int) -> list[Listed]:
    """Read values and TTLs. A key that is gone by now is left out."""
    values = await db.run(gather_list(inspect(each.key, limit).attempt() for each in part))
    ttls = await db.run(gather_list(stored_read(each.key, Ask(b"PTTL"), "scan") for each in part))
    return [
        each._replace(found=found, ttl_ms=ttl if ttl >= 0 else None)
        for each, found, ttl in zip(part, values, ttls, strict=True)
        if found is not None
    ]


def _has(key: Key, variables: Mapping[str, object]) -> bool:
    return all(getattr(key, name) == value for name, value in variables.items())


def _pattern(db: AsyncDatabase, wanted: Wanted) -> bytes:
    if wanted.kind is not None:
        declared = wanted.kind.declaration
        return escaped(db.context.prefixes[declared.space]) + declared.template.glob(wanted.variables)
    return b"" if wanted.match is None else wanted.match.encode("utf-8", "surrogateescape")


def _matching(glob: str | None) -> Callable[[bytes], bool]:
    if glob is None:
        return lambda _: True
    if glob.count("*") > MOST_STARS or len(glob) > LONGEST_PATTERN:
        raise UsageError(
            f"a pattern may have {MOST_STARS} stars and {LONGEST_PATTERN} characters. Use a shorter one."
        )
    fits = re.compile(regex_of(glob)).fullmatch
    return lambda name: fits(name.decode("utf-8", "surrogateescape")) is not None


async def names_tagged(
    db: AsyncDatabase, tag: str, *, pace: Pace = GENTLE, on_progress: OnProgress | None = None
) -> list[bytes]:
    """Return the names whose masked form has a tag (`f1ec88`), a hundred at most."""
    digest = bytes.fromhex(tag)
    found: dict[bytes, None] = {}
    async for page in name_pages(db, pace=pace, on_progress=on_progress):
        for name in page:
            if hashlib.blake2b(name, digest_size=len(digest)).digest() == digest:
                found[name] = None
        if len(found) >= MOST_TAGGED:
            break
    return list(found)[:MOST_TAGGED]
