"""Changes of types, shapes and members, with their severity for stored data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from keywright.tools.describe.description import MemberDescription, ShapeDescription, TypeDescription

__all__ = [
    "Change",
    "Readers",
    "Severity",
    "breaks",
    "changes_of_shapes",
    "changes_of_type",
    "spares",
]


class Severity(Enum):
    BREAKING = "breaking"
    CAUTION = "caution"
    COMPATIBLE = "compatible"


class Readers(NamedTuple):
    """The effect on a running reader in another language, which knows the old schema file only."""

    breaking: bool
    because: str


def breaks(because: str) -> Readers:
    return Readers(True, because)


def spares(because: str) -> Readers:
    return Readers(False, because)


class Change(NamedTuple):
    """One change; `what` is a phrase that follows the subject."""

    severity: Severity
    subject: str
    what: str
    readers: Readers
    remedy: str = ""

    def healed(self, version: str) -> Change:
        """Return this change with the severity it has if an upgrade step brings older data up to date."""
        if self.severity is not Severity.BREAKING:
            return self
        return Change(
            Severity.CAUTION,
            self.subject,
            f"{self.what}; older data is upgraded from {version}",
            self.readers,
            "Programs of the old declaration cannot read new or upgraded data.",
        )


_KEEP = "Declare an Upgrade that converts stored data, or use another name."
_READERS = "Programs of the old declaration cannot read new data: update them first."


def changes_of_type(
    subject: str, what: str, old: TypeDescription | None, new: TypeDescription | None
) -> Iterator[Change]:
    """Yield the changes of the type of a value, field or item."""
    if old is None or new is None:
        return
    if _anonymous(old) != _anonymous(new):
        yield from _reworded(subject, what, old.words, new.words)
    if old.sealed != new.sealed:
        now = "sealed" if new.sealed else "not sealed any more"
        readers = breaks("it does not open seals" if new.sealed else "it takes the bytes for a seal")
        yield Change(
            Severity.BREAKING,
            subject,
            f"{what} is {now}",
            readers,
            "Read plaintext too until all is rewritten.",
        )
    if old.secret != new.secret and old.sealed == new.sealed:
        now = f"{what} is {'' if new.secret else 'not '}secret"
        yield Change(Severity.COMPATIBLE, subject, now, spares("the stored bytes are the same"))
    yield from changes_of_shapes(subject, old.shapes, new.shapes)


def _anonymous(described: TypeDescription) -> str:
    """Return the description of a type without class names, which are not stored."""
    words = described.words
    for number, shape in enumerate(described.shapes):
        words = re.sub(rf"\b{re.escape(shape.name)}\b", f"<{number}>", words)
    return words


def changes_of_shapes(
    subject: str, old: Sequence[ShapeDescription], new: Sequence[ShapeDescription]
) -> Iterator[Change]:
    """Yield the changes of the shapes that a record, an entry or a structured value may have.

    Shapes are matched by name, or if there is only one before and after.
    """
    before = {shape.name: shape for shape in old}
    if len(old) == len(new) == 1:
        before = {new[0].name: old[0]}
    for shape in new:
        if shape.name in before:
            yield from _shape(subject, before[shape.name], shape)
        elif old:
            what = f"may have the new shape {shape.name}"
            readers = breaks("it refuses a shape that it does not know")
            yield Change(Severity.CAUTION, subject, what, readers, _READERS)
    kept = {shape.name for shape in new}
    for gone in (name for name in before if name not in kept):
        readers = spares("it reads the shapes that are left")
        yield Change(Severity.BREAKING, subject, f"the shape {gone} is gone", readers, _KEEP)


def _shape(subject: str, old: ShapeDescription, new: ShapeDescription) -> Iterator[Change]:
    if old.when != new.when:
        what = f"{new.name} is now recognised by {new.when or 'nothing'}"
        readers = breaks("it recognises the shape by what it was")
        yield Change(Severity.BREAKING, subject, what, readers, _KEEP)
    before, after = ({member.name: member for member in shape.members} for shape in (old, new))
    for name, member in after.items():
        if name in before:
            yield from _member(subject, before[name], member)
        elif member.required:
            what, remedy = f"needs the new member {name}", f"Give it a default. {_KEEP}"
            yield Change(Severity.BREAKING, subject, what, _of_new_member(old), remedy)
        else:
            what = f"may have the new member {name}"
            yield Change(Severity.COMPATIBLE, subject, what, _of_new_member(old))
    for name, member in before.items():
        if name not in after:
            yield Change(
                Severity.CAUTION if member.required else Severity.COMPATIBLE,
                subject,
                f"has no member {name} any more; a stored one is ignored",
                breaks("it requires the member") if member.required else spares("it does without the member"),
                _READERS if member.required else "",
            )


def _member(subject: str, old: MemberDescription, new: MemberDescription) -> Iterator[Change]:
    what = f"the member {new.name}"
    if new.required and not old.required:
        readers = spares("it takes the member as well as its absence")
        remedy = f"Give it a default. {_KEEP}"
        yield Change(Severity.BREAKING, subject, f"{what} is required", readers, remedy)
    if old.required and not new.required:
        readers = breaks("it requires the member")
        yield Change(Severity.CAUTION, subject, f"{what} may be absent", readers, _READERS)
    if old.default != new.default and not (old.required or new.required):
        yield Change(
            Severity.CAUTION,
            subject,
            f"{what} is {new.default or 'nothing'} when absent, not {old.default or 'nothing'}",
            breaks("it takes an absent member for the former default"),
        )
    if old.expires != new.expires:
        now = f"expires: {new.expires}" if new.expires else "does not expire by itself any more"
        readers = spares("a member that expires may be absent anyway")
        yield Change(Severity.COMPATIBLE, subject, f"{what} {now}; from its next write", readers)
    yield from changes_of_type(
        subject,
        what,
        TypeDescription(old.type, old.secret, old.sealed),
        TypeDescription(new.type, new.secret, new.sealed),
    )


def _reworded(subject: str, what: str, old: str, new: str) -> Iterator[Change]:
    before, after = _alternatives(old), _alternatives(new)
    if before < after:
        more = " or ".join(sorted(after - before))
        readers = breaks(f"it refuses {more}")
        yield Change(Severity.CAUTION, subject, f"{what} may also be {more}", readers, _READERS)
        return
    readers = spares("it reads what is left") if after < before else breaks(f"it reads {old}")
    yield Change(Severity.BREAKING, subject, f"{what} is {new}, no longer {old}", readers, _KEEP)


def _of_new_member(old: ShapeDescription) -> Readers:
    if old.closed:
        return breaks("it refuses members that it does not know")
    if any(member.name == "*" for member in old.members):
        return breaks("it takes the member for one of the other fields, of their type")
    return spares("it ignores members that it does not know")


def _alternatives(words: str) -> set[str]:
    """Return the alternatives of "one of `a`, `b`" or "text or null"."""
    listed = words.removeprefix("one of ").split(", ")
    if all(word.startswith("`") and word.endswith("`") and word.count("`") == 2 for word in listed):
        return set(listed)
    return {word.strip(", ") for word in words.split(" or ")}
