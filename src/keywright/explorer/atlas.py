"""The templates of an explorer: match names to templates, describe templates, build page URLs.

Needs no server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

from keywright.errors import VariableError
from keywright.keyspace import Context, Key, Keyspace
from keywright.keyspace.references import Place
from keywright.tools.audit.matcher import Matcher
from keywright.tools.describe.description import KeyDescription, SpaceDescription, describe

__all__ = [
    "Atlas",
    "Sheet",
    "key_url",
    "query_of",
    "quoted",
    "spelled",
    "template_url",
    "text_of",
]


class Sheet(NamedTuple):
    """One template: its class and its description."""

    kind: type[Key]
    space: SpaceDescription
    about: KeyDescription

    @property
    def source(self) -> str:
        """Return the template with the prefix and version that are bound here."""
        return self.about.full_template

    @property
    def url(self) -> str:
        return template_url(self.space.name, self.about.name)


class Atlas:
    """Every template of some keyspaces, as one database binds them."""

    def __init__(self, spaces: Iterable[Keyspace], context: Context) -> None:
        self.spaces = tuple(spaces)
        self.context = context
        self.matcher = Matcher(self.spaces, context)
        self.descriptions = {space: describe(space, context) for space in self.spaces}
        self.sheets: dict[type[Key], Sheet] = {
            kind: self._sheet(space, kind) for space in self.spaces for kind in space
        }
        self.by_space = {
            description: [sheet for sheet in self.sheets.values() if sheet.space is description]
            for description in self.descriptions.values()
        }

    def named(self, space: str, name: str) -> Sheet | None:
        """Return the template with that keyspace and class name."""
        return next((s for s in self.sheets.values() if (s.space.name, s.about.name) == (space, name)), None)

    def key_of(self, name: bytes) -> Key | None:
        """Return the key with a full name, or None if no template matches it."""
        known = self.matcher.match(name)
        if known is None or not known.ours:
            return None
        found: Key | None = known.key(name)
        return found

    def hides(self, name: bytes) -> bool:
        """Return whether a stored value may be secret, as declared now or before an upgrade."""
        kind = self.matcher.kind_of(name)
        return kind is not None and (kind.declaration.secret or kind.declaration.sealed or bool(kind.hides))

    def is_unknown(self, name: bytes) -> bool:
        """Return whether no template matches a name, neither now nor before an upgrade."""
        return self.matcher.kind_of(name) is None

    def key_from(self, sheet: Sheet, texts: Mapping[str, str]) -> Key:
        """Return the key of a template with these variables. Raise VariableError if one is invalid."""
        values = {}
        for variable, alphabet in sheet.kind.declaration.template.alphabets.items():
            try:
                values[variable] = alphabet.parse(texts[variable])
            except ValueError as error:
                template = sheet.kind.declaration.template.source
                raise VariableError(template, variable, alphabet.expected, texts[variable]) from error
        return sheet.kind(**values)

    def variables(self, key: Key) -> list[tuple[str, str]]:
        """Return the variables of a key as texts, in the order of its template, invalid UTF-8 escaped."""
        return [
            (name, _escaped(alphabet.render(getattr(key, name))))
            for name, alphabet in key.declaration.template.alphabets.items()
        ]

    def url(self, place: Place) -> str:
        return key_url(self.context.name(place.key), place.stored_field)

    def _sheet(self, space: Keyspace, kind: type[Key]) -> Sheet:
        description = self.descriptions[space]
        about = next(each for each in description.keys if each.name == kind.__name__)
        return Sheet(kind, description, about)


def _escaped(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def template_url(space: str, name: str) -> str:
    return f"/template/{quote(space, safe='')}/{quote(name, safe='')}"


def key_url(name: bytes, entry: bytes | None = None) -> str:
    """Return the URL of a key, or of one entry of it, for any bytes."""
    more = "" if entry is None else f"&entry={quoted(entry)}"
    return f"/key?name={quoted(name)}{more}"


def quoted(data: bytes) -> str:
    """Quote any bytes for a query string; `query_of` parses them."""
    return quote(data, safe=":")


def query_of(query: bytes) -> dict[str, bytes]:
    """Parse a query string into parameters with their exact bytes, which need not be UTF-8."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    return {name: value.encode("latin-1", "replace") for name, value in pairs}


def text_of(data: bytes, limit: int = 400) -> str:
    """Return bytes as one readable line, with control characters and invalid UTF-8 escaped."""
    text = data[: limit * 4].decode("utf-8", "backslashreplace")
    shown = "".join(char if char.isprintable() else spelled(char) for char in text[:limit])
    return shown if len(text) <= limit and len(data) <= limit * 4 else f"{shown}… ({len(data)} bytes)"


def spelled(char: str) -> str:
    """Return the Python escape sequence of a character."""
    return char.encode("unicode_escape").decode()
