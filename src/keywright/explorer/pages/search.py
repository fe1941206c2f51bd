"""Search for a key, with or without its prefix, an id, a path that ids are derived from, or a word.

An id is looked up in every template where it identifies a key or an entry on its own, in one round trip; for
templates with several variables only the survey's sample is searched. A pattern, as in `shop:order:1*`, is
looked for by scanning for a short time; the page has a cursor to continue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.errors import KeywrightError
from keywright.explorer.atlas import Sheet, key_url, query_of, text_of
from keywright.explorer.explorer import Explorer, explorer_of, page
from keywright.explorer.json_pages import exact
from keywright.explorer.key_reader import answers, are_there, ask
from keywright.explorer.key_scan import Cursor, as_glob, is_glob, scan
from keywright.explorer.survey import LONGEST_NAME
from keywright.keyspace import Key
from keywright.keyspace.references import Place
from keywright.keyspace.template import escaped

__all__ = ["search"]

LONGEST = 4096
MOST_SAMPLED = 30
MOST_MATCHING = 100


class Hit(NamedTuple):
    """A search result, and why it matches."""

    url: str
    title: str
    name: str
    why: str


async def search(request: Request) -> Response:
    explorer = explorer_of(request)
    asked = query_of(request.scope["query_string"]).get("q", b"").strip()[:LONGEST]
    if asked and (name := await _named(explorer, asked)) is not None:
        return RedirectResponse(key_url(name), 303)
    text = asked.decode("utf-8", "replace")
    if is_glob(text):
        return await _by_pattern(request, explorer, text)
    hits = await _by_id(explorer, text) if asked else []
    sampled = _sampled(explorer, text) if asked else []
    sheets = _by_word(explorer, text) if asked else []
    document = {
        "asked": text,
        "found": [hit._asdict() for hit in hits],
        "sampled": [hit._asdict() for hit in sampled],
        "templates": [
            {"keyspace": each.space.name, "name": each.about.name, "url": each.url} for each in sheets
        ],
    }
    return page(
        request,
        "search.html",
        document,
        q=text_of(asked) if asked else "",
        hits=hits,
        sampled=sampled,
        sheets=sheets,
        scan=None,
        more=None,
    )


async def _by_pattern(request: Request, explorer: Explorer, text: str) -> Response:
    """Return the page of a pattern: the names that a short scan found, and the cursor of the rest."""
    lead = explorer.atlas.matcher.common_lead
    pattern = as_glob(text).encode()
    if lead and not pattern.startswith((lead, b"*")):
        pattern = escaped(lead) + pattern
    cursor = Cursor.of(request.query_params.get("cursor", ""))

    def wanted(name: bytes) -> bool:
        return name.startswith(lead) and len(name) <= LONGEST_NAME

    found = await scan(explorer.db, pattern, wanted, cursor, enough=MOST_MATCHING)
    hits = [_named_hit(explorer, name) for name in sorted(found.names)]
    total = explorer.surveyor.latest.total
    of = f" of {total:,}" if found.passed < total else ""
    seen = "all" if found.more is None else f"about {found.passed:,}{of}"
    more = None if found.more is None else f"/search?{urlencode({'q': text, 'cursor': str(found.more)})}"
    document = {
        "asked": text,
        "pattern": exact(pattern),
        "scanned": found.passed,
        "found": [hit._asdict() for hit in hits],
        "next": more,
    }
    return page(
        request,
        "search.html",
        document,
        q=text_of(text.encode()),
        hits=hits,
        sampled=[],
        sheets=[],
        scan=f"Scanned {seen} keys of this database for names like {text_of(pattern)}.",
        more=more,
    )


def _named_hit(explorer: Explorer, name: bytes) -> Hit:
    key = explorer.atlas.key_of(name)
    title = type(key).__name__ if key is not None else "not declared"
    return Hit(key_url(name), title, text_of(name), "")


async def _named(explorer: Explorer, asked: bytes) -> bytes | None:
    """Return the full name of the existing key with this name, with or without a prefix."""
    leads = dict.fromkeys([b"", *(explorer.db.context.prefixes[space] for space in explorer.atlas.spaces)])
    names = [lead + asked for lead in leads]
    there = await answers(explorer.db, [ask(b"EXISTS", name) for name in names])
    return next((name for name, found in zip(names, there, strict=True) if found), None)


async def _by_id(explorer: Explorer, text: str) -> list[Hit]:
    """Return the existing keys and entries that an id identifies on its own."""
    candidates = list(_candidates(explorer, text))
    there = await are_there(explorer.db, [place for place, _ in candidates])
    return [
        _hit(explorer, place, why) for (place, why), found in zip(candidates, there, strict=True) if found
    ]


def _candidates(explorer: Explorer, text: str) -> Iterator[tuple[Place, str]]:
    for kind in explorer.atlas.sheets:
        try:
            found = _place(kind, text)
            if found is not None and found[0].stored_field != b"":
                yield found
        except (KeywrightError, ValueError):
            continue  # not an id of this template


def _place(kind: type[Key], text: str) -> tuple[Place, str] | None:
    """Return the key or entry with an id in a template, and why; None if it needs more than one id."""
    alphabets = kind.declaration.template.alphabets
    if kind.declaration.derived and not alphabets.keys() - kind.declaration.derived.keys():
        return Place(kind.of(text)), "derived from it"
    if len(alphabets) == 1:
        ((variable, alphabet),) = alphabets.items()
        return Place(kind.made(alphabet.parse(text))), f"its {variable}"
    field = kind.declaration.storage.field
    if not alphabets and field is not None:
        return Place(kind(), field.decode(text.encode())), "an entry"
    return None


def _sampled(explorer: Explorer, text: str) -> list[Hit]:
    """Return keys with several variables, one of them this id, from the last survey's sample."""
    hits = []
    for kind, counted in explorer.surveyor.latest.counted.items():
        if len(kind.declaration.template.variables) < 2:
            continue
        needle = text.encode()
        for name in counted.names:
            key = explorer.atlas.key_of(name) if needle in name else None
            if key is not None and any(text == each for _, each in explorer.atlas.variables(key)):
                hits.append(_hit(explorer, Place(key), "one of its variables"))
                if len(hits) == MOST_SAMPLED:
                    return hits
    return hits


def _by_word(explorer: Explorer, text: str) -> list[Sheet]:
    word = text.casefold()
    return [
        sheet
        for sheet in explorer.atlas.sheets.values()
        if len(word) > 1
        and any(word in each.casefold() for each in (sheet.about.name, sheet.about.doc, sheet.source))
    ]


def _hit(explorer: Explorer, place: Place, why: str) -> Hit:
    key: Key = place.key
    name = text_of(explorer.db.context.name(key))
    entry = place.stored_field
    return Hit(
        explorer.atlas.url(place),
        type(key).__name__,
        name if entry is None else f"{name} → {text_of(entry)}",
        why,
    )
