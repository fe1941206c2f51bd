"""What the words of a document say of a key: its kind, the types of values, its expiry."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Kind", "expiry_in", "kinds_in", "mapping_in", "per_in", "scalar_in", "score_in", "since_in"]

LONGEST_EXPIRY = 10 * 366 * 86400
_UNITS = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1,
    "sec": 1,
    "second": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hr": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
    "w": 604800,
    "week": 604800,
    "month": 30 * 86400,
    "year": 365 * 86400,
}
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "five": 5,
    "ten": 10,
    "fifteen": 15,
    "thirty": 30,
}
_TIME = (
    r"(?P<count>\d[\d,_]{0,11}(?:\.\d{1,3})?|\b(?:" + "|".join(_NUMBERS) + r")\b)[ -]?"
    r"(?P<unit>milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|[smhdw])\b"
)
_EXPIRIES = tuple(
    re.compile(expression.replace("TIME", _TIME), re.IGNORECASE)
    for expression in (
        r"\b(?:ttl|time[ -]to[ -]live|expiry|expiration|expires?(?: time)?)\b[^.;\n]{0,24}?TIME",
        (
            r"\b(?:expir\w+|evicted|removed|deleted|lives?|kept|dropped|valid|cached)\b[^.;\n]{0,20}?"
            r"\b(?:after|in|for|within)\b[^.;\n]{0,12}?TIME"
        ),
        r"TIME[^.;\n]{0,8}\b(?:ttl|expiry|expiration|time[ -]to[ -]live)\b",
    )
)
_SECONDS = re.compile(r"\bttl\b\W{0,6}(?P<count>\d{1,10})\b(?!\s*\w)", re.IGNORECASE)

_LAST_USE = re.compile(
    r"\b(?:sliding|rolling)\b|\b(?:since|after) (?:the |its )?last (?:use|access|read)\b"
    r"|\b(?:renewed|refreshed|extended|reset|prolonged)\b[^.;\n]{0,20}\b(?:on|by|with|at|when)\b[^.;\n]{0,20}"
    r"\b(?:access\w*|reads?|used?|visits?|requests?)\b",
    re.IGNORECASE,
)
_FIRST_WRITE = re.compile(
    r"\b(?:since|after|from) (?:the |its )?(?:first (?:write|use)|creation)\b", re.IGNORECASE
)
_MAPPING = re.compile(
    r"\b(?:from|maps?|mapping)\s+(?P<field>[^.;,\n]{1,40}?)\s+to\s+(?P<value>[^.;\n]{1,60})", re.IGNORECASE
)


class Kind(NamedTuple):
    """The kind of a key in a word, and the text behind the word, which may name its types."""

    name: str
    rest: str
    position: int


# By what a document says in few words (`hash`, `set of u64`), and by what it says in a sentence.
_SHORT = (
    ("sorted set", r"sorted[ -]?sets?|z-?sets?|ordered sets?"),
    ("hyperloglog", r"hyper-?log-?logs?|hll"),
    ("bitmap", r"bit-?maps?|bitsets?"),
    ("geo", r"geo(?:spatial)?(?: sets?| index(?:es)?)?"),
    ("stream", r"streams?"),
    ("hash", r"hash(?:es|[- ]?maps?|[- ]?tables?)?"),
    ("list", r"lists?|queues?|fifo"),
    ("set", r"sets?"),
    ("counter", r"counters?"),
    (
        "value",
        (
            r"strings?|str|values?|text|key|json|msgpack|messagepack|[ui](?:nt)?(?:8|16|32|64)|int(?:eger)?s?"
            r"|floats?|double|numbers?|bool(?:ean)?s?|blobs?|bytes|binary|timestamps?|dates?|uuids?|flags?|protobuf|pickled?"
        ),
    ),
)
_LONG = (
    ("sorted set", r"sorted[ -]?sets?\b|\bzsets?\b"),
    ("hyperloglog", r"\bhyper-?log-?logs?\b"),
    ("bitmap", r"\bbitmaps?\b"),
    ("geo", r"\bgeo(?:spatial)? (?:set|index)\b"),
    ("stream", r"\b(?:a|redis|the) stream\b|^streams?\b|\bstream of\b"),
    (
        "hash",
        (
            r"(?<!sha)(?<!sha1 )(?<!sha256 )(?<!md5 )(?<!path )(?<!password )(?<!content )(?<!commit )"
            r"\bhash(?:es|[- ]?maps?|[- ]?tables?)?\b(?! hex| tag| slot| key| collision| function| portion)"
        ),
    ),
    (
        "list",
        r"\blists? of\b|\b(?:a|the) (?:redis |linked )?list\b|^lists?\b|\bqueue of\b|\b(?:a|the) queue\b",
    ),
    (
        "set",
        r"\bsets? of\b|\b(?:a|an|the|this|another|index) (?:\w+ )?set\b(?! to\b)|^sets?\b(?= of| with|\W|$)",
    ),
    ("counter", r"\bcounters?\b|\bcounts? (?:of|the)\b|\bnumber of\b|\bincremented\b"),
    (
        "value",
        (
            r"\bstrings?\b|\bjson\b|\bmessage ?pack\b|\bmsgpack\b|\bserialized\b|\btimestamp\b"
            r"|\bsince th?e? ?epoch\b|\brfc ?3339\b|\biso ?8601\b|\bu64\b|\binteger\b|\btoken\b|\bflag\b"
        ),
    ),
)
_SHORT_PATTERNS = tuple((name, re.compile(rf"\b(?:{text})\b", re.IGNORECASE)) for name, text in _SHORT)
_LONG_PATTERNS = tuple((name, re.compile(text, re.IGNORECASE)) for name, text in _LONG)
_SCALARS = (
    (r"rfc ?3339|iso[ -]?8601|date and time", "datetime", ()),
    (r"\bms since|milliseconds|epoch ?ms|\bin ms\b|unix ms", "Annotated[datetime, EpochMs()]", ("EpochMs",)),
    (
        r"seconds since|unix (?:time|seconds|timestamp)|epoch seconds|\bepoch\b",
        "Annotated[datetime, EpochSeconds()]",
        ("EpochSeconds",),
    ),
    (r"\bu(?:int)?64\b|\bunsigned\b", "U64", ("U64",)),
    (r"\bi(?:nt)?(?:8|16|32|64)\b|\bu(?:int)?(?:8|16|32)\b|\bint(?:eger)?s?\b|\bcount\b", "int", ()),
    (r"\bfloats?\b|\bdouble\b|\bdecimal\b", "float", ()),
    (r"\buuids?\b", "UUID", ()),
    (r"\bbytes\b|\bbinary\b|\bblobs?\b|protobuf|pickle|gzip|zlib|compressed", "bytes", ()),
)
_SCALAR_PATTERNS = tuple((re.compile(text, re.IGNORECASE), hint, names) for text, hint, names in _SCALARS)
_PER = re.compile(r"\b(?:per|for each|for every)\s+(?P<noun>[A-Za-z][A-Za-z_]{1,30})\b", re.IGNORECASE)


def kinds_in(text: str, *, short: bool) -> list[Kind]:
    """Return the kinds that a text names, in their order. A `short` text is a cell or a few words."""
    found: list[Kind] = []
    taken: list[tuple[int, int]] = []
    for name, expression in _SHORT_PATTERNS if short else _LONG_PATTERNS:
        for match in expression.finditer(text):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                found.append(Kind(name, text[match.start() :], match.start()))
    return sorted(found, key=lambda kind: kind.position)


def per_in(text: str) -> str:
    """Return the noun of `per user` or `for each user`, or an empty text."""
    found = _PER.search(text)
    return "" if found is None else found["noun"].lower()


def scalar_in(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the type of a text that is not a document, as a hint with the names it needs."""
    for expression, hint, names in _SCALAR_PATTERNS:
        if expression.search(text):
            return hint, names
    return None


def score_in(text: str) -> str:
    """Return the type of the scores of a sorted set."""
    found = scalar_in(text)
    return "datetime" if found is not None and "EpochMs" in found[0] else "float"


def mapping_in(text: str) -> tuple[str, str] | None:
    """Return what the fields and what the values are, of `from a product to a count`; None for others."""
    found = _MAPPING.search(text)
    return None if found is None else (found["field"], found["value"])


def since_in(text: str) -> str:
    """Return from when on the time of an expiry runs, as a declaration says it; empty for the last write."""
    if _LAST_USE.search(text):
        return "last use"
    return "first write" if _FIRST_WRITE.search(text) else ""


def expiry_in(text: str) -> int | None:
    """Return the seconds after which keys expire, as a text says; None if it does not."""
    for expression in _EXPIRIES:
        found = expression.search(text)
        if found is not None:
            count = found["count"].lower().replace(",", "").replace("_", "")
            number = float(_NUMBERS.get(count, 0) or count)
            unit = found["unit"].lower()
            size = _UNITS.get(unit) or _UNITS[unit.rstrip("s")]
            seconds = round(number * size)
            return seconds if 0 < seconds <= LONGEST_EXPIRY else None
    plain = _SECONDS.search(text)
    if plain is not None and 0 < int(plain["count"]) <= LONGEST_EXPIRY:
        return int(plain["count"])
    return None
