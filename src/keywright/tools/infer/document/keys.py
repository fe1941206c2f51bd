"""A key of a document, and the words that describe it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from keywright.tools.infer.document.blocks import Line
from keywright.tools.infer.document.notation import Notation, Piece
from keywright.tools.infer.document.words import kinds_in, scalar_in
from keywright.tools.infer.words import is_fixed_name

__all__ = [
    "MOST_MEMBERS",
    "DocumentedKey",
    "Member",
    "member_of",
    "members_within",
    "merged_keys",
    "without_label",
]

MOST_KEYS = 400
MOST_MEMBERS = 80
LONGEST_DESCRIPTION = 2_000

_TRAIT = re.compile(
    r"(?i)^\W*(?:(?P<type>(?:data |redis |value )?(?:type|kind|structure))"
    r"|ttl|expiry|expires?|expiration|time to live)\s*:"
    r"\s*(?P<rest>.*)"
)
_HOLDING_MEMBERS = re.compile(
    r"(?i)\bhash|\bjson\b|\bmessage ?pack\b|\bmsgpack\b|\bobject\b|\bstruct\b|\brecord\b"
)

_LISTING = re.compile(r"(?i)\b(?:with|fields?|members?|contain(?:s|ing)|holds?|properties|columns)\W*$")
"""The words before the first member of a list in a sentence."""
_LISTED = re.compile(r"\s*(?:\([^()]{1,60}\))?\s*(?:,\s*and|,|;|and|&)\s*")
"""What stands between two members."""


class Member(NamedTuple):
    """A field of a hash or a member of an object."""

    name: str
    type: str
    text: str
    optional: bool


class DocumentedKey:
    """One notation of a key, and what the document says of it."""

    def __init__(self, notation: Notation, number: int, headings: Sequence[str], *, defined: bool) -> None:
        self.notation = notation
        self.number = number
        self.headings = tuple(headings)
        self.defined = defined
        """Whether the document describes it there, and does not only mention it."""
        self.short = ""
        """What a cell or a few words beside the name say of its type."""
        self.expiry = ""
        self.description = ""
        self.lead = ""
        """The sentence that introduces a list of keys."""
        self.members: list[Member] = []
        self.example: object = None
        self.doubts: list[str] = [notation.doubt] if notation.doubt else []

    def describe(self, text: str, *, joined: bool = False) -> None:
        """Add text, as a sentence of its own unless it is `joined` to the one before."""
        text = " ".join(text.split())
        if text and len(self.description) < LONGEST_DESCRIPTION:
            ended = joined or not self.description or self.description[-1] in ".!?:;,"
            self.description = f"{self.description}{'' if ended else '.'} {text}".strip()[
                :LONGEST_DESCRIPTION
            ]

    def add(self, text: str, *, joined: bool = False) -> None:
        """Add a line of text, which may be labelled as a type or an expiry."""
        label = _TRAIT.match(text)
        if label is None:
            self.describe(without_label(text), joined=joined)
        elif label["type"]:
            self.short = self.short or label["rest"][:80]
        else:
            self.expiry = self.expiry or f"TTL {label['rest'][:200]}"

    @property
    def holds_members(self) -> bool:
        return _HOLDING_MEMBERS.search(" ".join((self.short, self.description, *self.headings))) is not None

    def merge(self, other: DocumentedKey) -> None:
        """Add what the document says of the same key elsewhere."""
        self.doubts = [] if not other.doubts or not self.doubts else self.doubts
        self.defined = self.defined or other.defined
        self.short = self.short or other.short
        self.expiry = self.expiry or other.expiry
        self.example = self.example or other.example
        if other.defined or not self.description:
            self.describe(other.description)
        everywhere = {each.name for each in self.members} & {each.name for each in other.members}
        both = bool(self.members and other.members)
        merged = {each.name: each for each in (*other.members, *self.members)}
        self.members = [
            each._replace(optional=True) if both and each.name not in everywhere else each
            for each in merged.values()
        ][:MOST_MEMBERS]


def merged_keys(found: Sequence[DocumentedKey], prefix: str) -> tuple[list[DocumentedKey], int]:
    """Return one key for each template, and how many more there are than are looked at.

    All get the prefix that the document states, unless it writes it with the keys.
    """
    shapes: dict[str, DocumentedKey] = {}
    stated = any(key.notation.literal.startswith(prefix) for key in found)
    for key in sorted(found, key=lambda key: not key.defined):
        if not stated:
            key.notation = _prefixed(key.notation, prefix)
        known = shapes.get(key.notation.shape)
        if known is None:
            shapes[key.notation.shape] = key
        else:
            known.merge(key)
    kept = [key for key in shapes.values() if not _is_example(key, shapes)]
    kept.sort(key=lambda key: key.number)
    return kept[:MOST_KEYS], max(0, len(kept) - MOST_KEYS)


def _is_example(key: DocumentedKey, shapes: dict[str, DocumentedKey]) -> bool:
    """Return whether a name with plain words is one of another, certain template."""
    if key.defined and not key.notation.doubt:
        return False
    if key.notation.variables and not key.notation.doubt:
        return False
    parts = [re.escape(part) for part in key.notation.shape.split("<>")]
    for other in shapes.values():
        if other is not key and other.notation.is_certain:
            expression = "[^:]+".join(map(re.escape, other.notation.shape.split("<>")))
            if re.fullmatch(expression, "x".join(part.replace("\\", "") for part in parts)):
                return True
    return False


def _prefixed(notation: Notation, prefix: str) -> Notation:
    first, *others = notation.pieces
    if first.kind == "text":
        return notation._replace(pieces=(Piece("text", prefix + first.text), *others))
    return notation._replace(pieces=(Piece("text", prefix), first, *others))


def member_of(name: str, rest: str) -> Member | None:
    """Return the member of a list item or a row; None if its name is not a word of a program."""
    name = name.strip().strip("`*\"'")
    optional = (
        name.endswith("?")
        or re.search(r"(?i)\boptional\b|\bif set\b|\bnullable\b|\bmay be missing\b", rest) is not None
    )
    name = name.rstrip("?")
    rest = rest.strip(" :.-\u2013\u2014")[:400]
    kind, text = rest, rest
    typed = re.match(r"\(?(?P<type>[A-Za-z0-9 ]{1,24})\)?\s*(?:[:.,;\u2013\u2014-]\s*|$)(?P<rest>.*)", rest)
    if typed is not None and kinds_in(typed["type"], short=True):
        kind, text = typed["type"], typed["rest"]
        kind = kind if scalar_in(kind) else rest
    return Member(name, kind, text, optional) if is_fixed_name(name) else None


def members_within(line: Line) -> list[Member]:
    """Return the members that a sentence lists: `with `name` (string) and `age` (integer)`."""
    found: list[Member] = []
    before = ""
    for position, span in enumerate(line):
        if span.is_code:
            behind = (
                line[position + 1].text if position + 1 < len(line) and not line[position + 1].is_code else ""
            )
            member = member_of(span.text, behind.rstrip(" ,;").removesuffix(" and"))
            listed = _LISTING.search(before) if not found else _LISTED.fullmatch(before)
            if member is None or not listed:
                if found:
                    return found
                before = ""
                continue
            found.append(member)
            before = ""
        else:
            before = span.text
    return found


def without_label(text: str) -> str:
    """Return a line without a label that says nothing, such as `Description:`."""
    return re.sub(r"^\s*(?:Description|Comment|Note|Purpose)\s*:\s*", "", text)
