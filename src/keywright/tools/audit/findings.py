"""The findings of an audit: stable codes, and findings with the data that a repair needs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from keywright.errors import UsageError, did_you_mean

__all__ = ["CODES", "Finding", "FindingCode", "codes_named", "masked_name", "words"]


class FindingCode(NamedTuple):
    """One type of finding. Codes and words are stable; `docs/findings/<code>.md` explains each."""

    code: str
    word: str
    title: str
    level: str = "error"

    @property
    def page(self) -> str:
        return f"docs/findings/{self.code}.md"


_ALL = (
    FindingCode("KW101", "unknown", "a key that no template matches", "warning"),
    FindingCode("KW102", "old-version", "a key of another version, or in an older place", "warning"),
    FindingCode("KW103", "old-shape", "a value in an older shape", "warning"),
    FindingCode("KW201", "wrong-type", "another Redis type than declared"),
    FindingCode("KW202", "undecodable", "a value that does not decode as declared"),
    FindingCode("KW203", "missing-member", "a record without a member that it must have"),
    FindingCode("KW204", "plaintext", "plaintext where a sealed value is declared"),
    FindingCode("KW205", "broken-seal", "a seal that the bound keys do not open"),
    FindingCode("KW206", "undeclared-member", "a member that the declaration does not have", "warning"),
    FindingCode("KW207", "missing-group", "a declared consumer group that does not exist", "warning"),
    FindingCode("KW208", "undeclared-group", "a consumer group that is not declared", "warning"),
    FindingCode("KW301", "missing-expiry", "no expiry where one is declared"),
    FindingCode("KW302", "excessive-expiry", "a longer expiry than declared"),
    FindingCode("KW303", "expiring-member", "a required member with an expiry of its own"),
    FindingCode("KW304", "field-expiry", "a field without its declared expiry, or with a longer one"),
    FindingCode("KW305", "undeclared-field-expiry", "a field that expires, and is declared not to"),
    FindingCode("KW401", "dangling", "a reference that leads nowhere"),
    FindingCode("KW402", "missing-inverse", "a relation whose other side does not know of it"),
    FindingCode("KW403", "stray-inverse", "an inverse side that its forward side does not confirm"),
    FindingCode("KW404", "stray-index", "an index entry without its record"),
    FindingCode("KW405", "missing-index", "a record that its index does not name"),
    FindingCode("KW501", "over-budget", "more bytes than the budget allows"),
    FindingCode("KW502", "unread", "a value that was not read", "note"),
    FindingCode("KW601", "invariant", "an invariant of the model that does not hold"),
    FindingCode("KW602", "unusual", "a state that the model allows and wants reported", "note"),
    FindingCode("KW603", "unchecked", "an invariant that could not be checked", "note"),
)
CODES: dict[str, FindingCode] = {code.code: code for code in _ALL}
_BY_WORD = {code.word: code for code in _ALL}
_GROUPS = {
    "expiry": ("KW301", "KW302", "KW303", "KW304", "KW305"),
    "inverse": ("KW402", "KW403"),
    "group": ("KW207", "KW208"),
    "index": ("KW404", "KW405"),
    "old": ("KW102", "KW103"),
    "seal": ("KW204", "KW205"),
    "all": tuple(CODES),
}


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One deviation from the declaration, found on one key.

    `name` is the key's full name; `member` the stored bytes of the entry concerned, where there is one;
    `other` the key on the other side of a relation or reference, `field` the missing part of it. All
    of these are ids: show them with `show_ids` only. `link` is the name of the relation, reference or
    invariant concerned.
    """

    code: str
    template: str
    name: bytes
    reason: str
    found: str = ""
    member: bytes | None = None
    other: bytes | None = None
    field: bytes | None = None
    link: str = ""
    secret: bool = False

    @property
    def kind(self) -> FindingCode:
        return CODES[self.code]

    @property
    def invariant(self) -> str | None:
        """Return the name of the invariant that a finding is about."""
        return self.link if self.code.startswith("KW6") else None

    @property
    def identity(self) -> tuple[str, bytes, bytes | None, str]:
        return self.code, self.name, self.member, self.link

    def shown_name(self, *, show_ids: bool) -> str:
        if not self.name:
            return self.template
        return _text(self.name) if show_ids else masked_name(self.template, self.name)

    def shown_reason(self, *, show_ids: bool) -> str:
        if not show_ids or self.secret:
            return self.reason
        details = [f"found {self.found}"] if self.found else []
        details += [f"entry {_text(self.member)}"] if self.member is not None else []
        details += [f"other side {_text(self.other)}"] if self.other is not None else []
        return "; ".join([self.reason, *details])


def masked_name(template: str, name: bytes) -> str:
    """Return a name without its ids: the template, and a tag that is equal for findings on the same key."""
    digest = hashlib.blake2b(name, digest_size=3).hexdigest()
    return f"{template} #{digest}"


def words() -> list[str]:
    """Return the words of findings and of groups of them, which stand for codes."""
    return sorted([*_BY_WORD, *_GROUPS])


def codes_named(named: Iterable[str]) -> frozenset[str]:
    """Return the codes of some names: codes (KW101), their words (unknown) or groups of them (expiry)."""
    found: set[str] = set()
    for word in named:
        name = word.strip()
        if name.upper() in CODES:
            found.add(name.upper())
        elif name in _GROUPS:
            found.update(_GROUPS[name])
        elif name in _BY_WORD:
            found.add(_BY_WORD[name].code)
        elif name:
            hint = f"{did_you_mean(name, [*CODES, *words()])} Use a code such as KW101, or one of"
            raise UsageError(f"{name!r} does not name a finding.{hint} {', '.join(words())}.")
    return frozenset(found)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
