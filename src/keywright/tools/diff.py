"""The changes between two versions of a declaration, and whether they are compatible.

A change is *breaking* if programs of the new declaration cannot read or find data that the old one stored. It
asks for *caution* if they can, but programs that still run the old declaration may not read new data, or
something has to be done once. All other changes are *compatible*.

Keys are matched by template, then by class name. So renaming a class changes nothing, and after a change of
template the stored key is not found any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from keywright.tools.changes import Change, Severity, changes_of_shapes, changes_of_type
from keywright.tools.describe.description import (
    KeyDescription,
    LinkDescription,
    SpaceDescription,
    UpgradeDescription,
)
from keywright.tools.model import ModelDescription

__all__ = ["Change", "Difference", "Severity", "diff"]


class Difference(NamedTuple):
    """All changes between two versions of a model, the worst first."""

    model: str
    changes: tuple[Change, ...]

    @property
    def compatible(self) -> bool:
        return not any(change.severity is Severity.BREAKING for change in self.changes)

    def as_data(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "compatible": self.compatible,
            "changes": [{**change._asdict(), "severity": change.severity.value} for change in self.changes],
        }

    def as_text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if not self.changes:
            yield f"{self.model}: nothing changed."
            return
        for change in self.changes:
            yield f"{change.severity.value:<10}  {change.subject}: {change.what}"
            if change.remedy:
                yield f"{'':<10}  {change.remedy}"
        breaking = sum(change.severity is Severity.BREAKING for change in self.changes)
        verdict = "compatible" if self.compatible else f"{breaking} of {len(self.changes)} changes break"
        yield f"\n{self.model}: {verdict}."


def diff(old: ModelDescription, new: ModelDescription) -> Difference:
    """Return the changes between two versions of a model."""
    changes = [*_spaces(old.spaces, new.spaces)]
    order = list(Severity)
    return Difference(new.name, tuple(sorted(changes, key=lambda change: order.index(change.severity))))


def _spaces(old: Iterable[SpaceDescription], new: Iterable[SpaceDescription]) -> Iterator[Change]:
    before, after = {space.name: space for space in old}, {space.name: space for space in new}
    for name in (name for name in before if name not in after):
        yield Change(
            Severity.BREAKING, name, "the keyspace is gone", "Keep it, or purge what it stored first."
        )
    for name, space in after.items():
        if name in before:
            yield from _space(before[name], space)
        else:
            yield Change(Severity.COMPATIBLE, name, "a new keyspace")


def _space(old: SpaceDescription, new: SpaceDescription) -> Iterator[Change]:
    if old.lead != new.lead:
        yield Change(
            Severity.BREAKING,
            new.name,
            f"names begin with {new.lead or 'nothing'!r}, no longer with {old.lead or 'nothing'!r}",
            "Open databases with the prefix and version they have, or move the keys.",
        )
    if old.description != new.description:
        yield Change(Severity.COMPATIBLE, new.name, "is described in other words")
    pairs = _matched(old, new)
    for before, after in pairs:
        yield from _key(before, after)
    known = {id(key) for pair in pairs for key in pair}
    for gone in (key for key in old.keys if id(key) not in known):
        yield Change(
            Severity.BREAKING, gone.template, "is not declared any more", "Keep it until nothing is stored."
        )
    for added in (key for key in new.keys if id(key) not in known):
        yield Change(Severity.COMPATIBLE, added.template, "is new")
    yield from _links(old, new)
    yield from _invariants(old, new)


def _matched(old: SpaceDescription, new: SpaceDescription) -> list[tuple[KeyDescription, KeyDescription]]:
    by_template = {key.template: key for key in old.keys}
    pairs = [(by_template[key.template], key) for key in new.keys if key.template in by_template]
    taken = {id(key) for pair in pairs for key in pair}
    by_name = {key.name: key for key in old.keys if id(key) not in taken}
    pairs += [(by_name[key.name], key) for key in new.keys if id(key) not in taken and key.name in by_name]
    return pairs


def _key(old: KeyDescription, new: KeyDescription) -> Iterator[Change]:
    """Yield the changes of one key. A new upgrade step makes changes of stored data less severe."""
    steps = [step for step in new.upgrades if step not in old.upgrades]
    moved = next((step for step in steps if step.moved and _leaves(old, new, step)), None)
    reshaped = next((step for step in steps if not step.moved), moved)
    for change in _place(old, new):
        yield change.healed(moved.version) if moved else change
    for change in _content(old, new):
        yield change.healed(reshaped.version) if reshaped else change
    for gone in (
        step for step in old.upgrades if step.version not in {each.version for each in new.upgrades}
    ):
        yield Change(
            Severity.BREAKING,
            new.template,
            f"data of version {gone.version} is not upgraded any more",
            "Sweep it with keywright migrate first.",
        )
    for step in steps:
        yield Change(
            Severity.COMPATIBLE, new.template, f"data of version {step.version} is upgraded when read"
        )
    yield from _circumstances(old, new)


def _leaves(old: KeyDescription, new: KeyDescription, step: UpgradeDescription) -> bool:
    """Return whether a step moves keys away from their old names, as far as the description shows."""
    lead = new.full_template.removesuffix(new.template)
    return step.moved_from in (None, old.full_template, lead + old.template)


def _place(old: KeyDescription, new: KeyDescription) -> Iterator[Change]:
    if old.template != new.template:
        yield Change(
            Severity.BREAKING,
            new.template,
            f"is named otherwise than {old.template!r}: stored keys are not found",
            "Declare an Upgrade with moved_from.",
        )
        return
    before = {variable.name: variable for variable in old.variables}
    for variable in new.variables:
        if before[variable.name].pattern != variable.pattern:
            yield Change(
                Severity.BREAKING,
                new.template,
                f"<{variable.name}> is {variable.type}, no longer {before[variable.name].type}",
                "Names that are stored may not be read back: keep the variable's type.",
            )
    if (old.yields_to, old.fallback) != (new.yields_to, new.fallback):
        words = "every other key" if new.fallback else ", ".join(new.yields_to) or "nothing"
        yield Change(Severity.BREAKING, new.template, f"yields names to {words}, other than before")


def _content(old: KeyDescription, new: KeyDescription) -> Iterator[Change]:
    if old.redis_type != new.redis_type or old.kind != new.kind:
        yield Change(
            Severity.BREAKING,
            new.template,
            f"is a {new.kind} ({new.redis_type}), no longer a {old.kind} ({old.redis_type})",
            "Use another name, or declare an Upgrade that moves it.",
        )
        return
    for what, before, after in (("a field", old.field, new.field), ("what it holds", old.value, new.value)):
        yield from changes_of_type(new.template, what, before, after)
    if old.score != new.score:
        yield Change(Severity.BREAKING, new.template, f"a score is {new.score}, no longer {old.score}")
    yield from changes_of_shapes(new.template, old.shapes, new.shapes)


def _circumstances(old: KeyDescription, new: KeyDescription) -> Iterator[Change]:
    """Yield the changes that cannot make stored data unreadable."""
    if old.name != new.name:
        yield Change(Severity.COMPATIBLE, new.template, f"the class is {new.name}, no longer {old.name}")
    if old.expiry != new.expiry:
        before, after = (key.expiry.words if key.expiry else "never" for key in (old, new))
        yield Change(
            Severity.COMPATIBLE,
            new.template,
            f"expires {after}, no longer {before}; {_from_when(new)}",
        )
    if old.slot.hashed != new.slot.hashed and old.template == new.template:
        yield Change(Severity.CAUTION, new.template, f"is hashed by {new.slot.hashed!r} on a cluster")
    for group in (group for group in new.groups if group not in old.groups):
        yield Change(
            Severity.CAUTION,
            new.template,
            f"the consumer group {group!r} is new: it does not exist in stored streams",
            "Create it with create_groups() before it consumes.",
        )
    for group in (group for group in old.groups if group not in new.groups):
        yield Change(
            Severity.CAUTION,
            new.template,
            f"the consumer group {group!r} is not declared any more: its entries stay pending",
            "Delete it with delete_group().",
        )
    if old.part_of != new.part_of:
        yield Change(Severity.COMPATIBLE, new.template, f"is part of {new.part_of or 'nothing'}")
    if old.doc != new.doc:
        yield Change(Severity.COMPATIBLE, new.template, "is described in other words")


def _from_when(key: KeyDescription) -> str:
    if key.expiry is not None and key.expiry.since_first_write:
        return "keys that have an expiry keep it"
    return "each key from its next write"


def _links(old: SpaceDescription, new: SpaceDescription) -> Iterator[Change]:
    before, after = {link.name: link for link in old.links}, {link.name: link for link in new.links}
    for name, link in after.items():
        if name not in before:
            yield Change(
                Severity.CAUTION,
                name,
                f"a new {link.type}: stored data does not keep it yet",
                "Fill the inverse with keywright repair.",
            )
        elif _kept(before[name]) != _kept(link):
            yield Change(
                Severity.BREAKING,
                name,
                f"keeps {_listed(link)}, no longer {_listed(before[name])}",
                "Stored data does not keep it so: repair it with the new declaration.",
            )
    for name in (name for name in before if name not in after):
        yield Change(Severity.CAUTION, name, "is not kept any more: its sides may now disagree")


def _invariants(old: SpaceDescription, new: SpaceDescription) -> Iterator[Change]:
    before = {each.name: each for each in old.invariants}
    after = {each.name: each for each in new.invariants}
    for name in (name for name in after if name not in before):
        yield Change(
            Severity.CAUTION,
            name,
            "a new invariant: stored data may break it",
            "Look for violations with keywright audit.",
        )
    for name in (name for name in before if name not in after):
        yield Change(Severity.CAUTION, name, "the invariant is not checked any more")
    for name in (name for name in after if name in before and after[name] != before[name]):
        yield Change(Severity.COMPATIBLE, name, "the invariant is declared otherwise")


def _kept(link: LinkDescription) -> tuple[str | None, ...]:
    return link.type, link.forward, link.inverse, link.index, link.inverse_index


def _listed(link: LinkDescription) -> str:
    return ", ".join(filter(None, _kept(link)))
