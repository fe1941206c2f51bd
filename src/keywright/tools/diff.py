"""The changes between two versions of a declaration, and whether they are compatible.

A change is *breaking* if programs of the new declaration cannot read or find data that the old one stored. It
asks for *caution* if they can, but programs that still run the old declaration may not read new data, or
something has to be done once. All other changes are *compatible*.

Each change also says whether a running reader in another language breaks: a program that has the old schema
file only, and is as strict as `docs/schema.md` says.

Keys are matched by template, then by class name. So renaming a class changes nothing, and after a change of
template the stored key is not found any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from keywright.keyspace.alphabets.expression import language_of
from keywright.keyspace.languages.automaton import shortest_common
from keywright.keyspace.languages.language import difference
from keywright.tools.changes import (
    Change,
    Readers,
    Severity,
    breaks,
    changes_of_shapes,
    changes_of_type,
    spares,
)
from keywright.tools.describe.description import (
    KeyDescription,
    LinkDescription,
    SpaceDescription,
    UpgradeDescription,
    VariableDescription,
)
from keywright.tools.layout import Block, Line, Meaning, plain
from keywright.tools.model import ModelDescription

__all__ = ["Change", "Difference", "Readers", "Severity", "diff"]


class Difference(NamedTuple):
    """All changes between two versions of a model, the worst first."""

    model: str
    changes: tuple[Change, ...]

    @property
    def compatible(self) -> bool:
        return not any(change.severity is Severity.BREAKING for change in self.changes)

    @property
    def breaks_readers(self) -> bool:
        """Whether a running reader in another language, which has the old schema file, breaks."""
        return any(change.readers.breaking for change in self.changes)

    def as_data(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "compatible": self.compatible,
            "breaks_readers": self.breaks_readers,
            "changes": [
                {
                    **change._asdict(),
                    "severity": change.severity.value,
                    "readers": change.readers._asdict(),
                }
                for change in self.changes
            ],
        }

    def as_text(self) -> str:
        return plain(self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the changes for people, each with its remedy, and the verdict."""
        if not self.changes:
            yield f"{self.model}: nothing changed."
            return
        for change in self.changes:
            severity = _MEANINGS[change.severity](f"{change.severity.value:<10}")
            yield Line(severity, "  ", Meaning.NAME(change.subject), f": {change.what}", hang=12)
            if change.remedy:
                yield Line(f"{'':<12}", Meaning.MUTED(change.remedy))
            reader = "yes" if change.readers.breaking else "no"
            because = f"A running reader in another language breaks: {reader}, because "
            because += f"{change.readers.because}."
            yield Line(f"{'':<12}", Meaning.MUTED(because))
        breaking = sum(change.severity is Severity.BREAKING for change in self.changes)
        yield ""
        verdict = (
            Meaning.OK("compatible")
            if self.compatible
            else Meaning.ERROR(f"{breaking} of {len(self.changes)} changes break")
        )
        running = "A" if self.breaks_readers else "No"
        yield Line(f"{self.model}: ", verdict, f". {running} running reader in another language breaks.")


_MEANINGS = {
    Severity.BREAKING: Meaning.ERROR,
    Severity.CAUTION: Meaning.WARNING,
    Severity.COMPATIBLE: Meaning.OK,
}
_WORDS = spares("words are not stored")
_SLOT = spares("it computes the slot from the name")
_CLASS = spares("names of classes are not stored")
_UNKNOWN = spares("it does not look for what it does not know")
_UNWRITTEN = breaks("nothing writes its keys any more")
_WRITERS = spares("only writers have to do with it")
_BOTH_ENDS = "Update publishers and subscribers together, or use another name."


def diff(old: ModelDescription, new: ModelDescription) -> Difference:
    """Return the changes between two versions of a model."""
    changes = [*_spaces(old.spaces, new.spaces)]
    order = list(Severity)
    return Difference(new.name, tuple(sorted(changes, key=lambda change: order.index(change.severity))))


def _spaces(old: Iterable[SpaceDescription], new: Iterable[SpaceDescription]) -> Iterator[Change]:
    before, after = {space.name: space for space in old}, {space.name: space for space in new}
    for name in (name for name in before if name not in after):
        yield Change(
            Severity.BREAKING,
            name,
            "the keyspace is gone",
            _UNWRITTEN,
            "Keep it, or purge what it stored first.",
        )
    for name, space in after.items():
        if name in before:
            yield from _space(before[name], space)
        else:
            yield Change(Severity.COMPATIBLE, name, "a new keyspace", _UNKNOWN)


def _space(old: SpaceDescription, new: SpaceDescription) -> Iterator[Change]:
    if old.lead != new.lead:
        yield Change(
            Severity.BREAKING,
            new.name,
            f"names begin with {new.lead or 'nothing'!r}, no longer with {old.lead or 'nothing'!r}",
            breaks("it looks for the former names"),
            "Open databases with the prefix and version they have, or move the keys.",
        )
    if old.database != new.database:
        yield from _moved(old, new)
    if old.description != new.description:
        yield Change(Severity.COMPATIBLE, new.name, "is described in other words", _WORDS)
    pairs = _matched(old, new)
    for before, after in pairs:
        yield from _key(before, after)
    known = {id(key) for pair in pairs for key in pair}
    for gone in (key for key in old.keys if id(key) not in known):
        yield Change(
            Severity.BREAKING,
            gone.template,
            "is not declared any more",
            _UNWRITTEN,
            "Keep it until nothing is stored.",
        )
    for added in (key for key in new.keys if id(key) not in known):
        yield Change(Severity.COMPATIBLE, added.template, "is new", _UNKNOWN)
    yield from _links(old, new)
    yield from _invariants(old, new)
    yield from _channels(old, new)


def _channels(old: SpaceDescription, new: SpaceDescription) -> Iterator[Change]:
    before, after = ({each.template: each for each in space.channels} for space in (old, new))
    for template, channel in after.items():
        known = before.get(template)
        if known is None:
            yield Change(Severity.COMPATIBLE, template, "is a new channel", _UNKNOWN)
            continue
        patterns = {each.name: each.pattern for each in known.variables}
        if not all(_alike(patterns.get(each.name, ""), each.pattern) for each in channel.variables):
            readers = _of_names(patterns, channel.variables)
            yield Change(Severity.BREAKING, template, "its variables have other types", readers, _BOTH_ENDS)
        yield from changes_of_type(template, "a message", known.message, channel.message)
        if known.sharded != channel.sharded:
            now = "sharded" if channel.sharded else "not sharded any more"
            yield Change(
                Severity.BREAKING,
                template,
                f"is {now}: one side does not receive the other",
                breaks("it subscribes in the other way"),
                _BOTH_ENDS,
            )
        if known.name != channel.name:
            what = f"the class is {channel.name}, no longer {known.name}"
            yield Change(Severity.COMPATIBLE, template, what, _CLASS)
        if known.doc != channel.doc:
            yield Change(Severity.COMPATIBLE, template, "is described in other words", _WORDS)
    for template in (each for each in before if each not in after):
        readers = breaks("nothing publishes on it any more")
        yield Change(Severity.BREAKING, template, "the channel is not declared any more", readers, _BOTH_ENDS)


def _moved(old: SpaceDescription, new: SpaceDescription) -> Iterator[Change]:
    if old.database is None:
        yield Change(
            Severity.CAUTION,
            new.name,
            f"is bound to database {new.database}; it could be opened in any",
            spares("it looks where its own URL says"),
            "Check that the URLs of all programs name that database, or none.",
        )
    elif new.database is None:
        yield Change(
            Severity.CAUTION,
            new.name,
            f"is not bound to database {old.database} any more",
            spares("the keys stay where it looks"),
            "Check that the URLs of all programs name the database that has the keys.",
        )
    else:
        yield Change(
            Severity.BREAKING,
            new.name,
            f"is in database {new.database}, no longer in {old.database}",
            breaks("it looks in the former database"),
            "Move the keys, or bind the keyspace to the database that has them.",
        )


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
            spares("it reads the version of its schema only"),
            "Sweep it with keywright migrate first.",
        )
    for step in steps:
        yield Change(
            Severity.COMPATIBLE,
            new.template,
            f"data of version {step.version} is upgraded when read",
            spares("the step itself changes nothing; what it leads to is listed for itself"),
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
            breaks("it looks for the former names"),
            f"Declare moved_from={old.template!r}; where the shape changes too, an Upgrade with moved_from.",
        )
        return
    before = {variable.name: variable for variable in old.variables}
    patterns = {variable.name: variable.pattern for variable in old.variables}
    for variable in new.variables:
        if not _alike(before[variable.name].pattern, variable.pattern):
            yield Change(
                Severity.BREAKING,
                new.template,
                f"<{variable.name}> is {variable.type}, no longer {before[variable.name].type}",
                _of_names(patterns, [variable]),
                "Names that are stored may not be read back: keep the variable's type.",
            )
    if (old.yields_to, old.fallback) != (new.yields_to, new.fallback):
        words = "every other key" if new.fallback else ", ".join(new.yields_to) or "nothing"
        readers = breaks("it takes some names for those of another key")
        yield Change(Severity.BREAKING, new.template, f"yields names to {words}, other than before", readers)


def _of_names(before: Mapping[str, str], variables: Iterable[VariableDescription]) -> Readers:
    """Return whether variables have texts that a reader refuses."""
    for variable in variables:
        found = _unknown_text(before.get(variable.name, ""), variable.pattern)
        if found is not None:
            shown = f", such as {found!r}" if found else ""
            return breaks(f"it refuses new texts of <{variable.name}>{shown}")
    return spares("every text that is left is valid to it")


def _alike(old: str, new: str) -> bool:
    """Return whether two expressions match the same texts."""
    return _unknown_text(old, new) is None and _unknown_text(new, old) is None


def _unknown_text(old: str, new: str) -> str | None:
    """Return a text of one expression that another does not match; empty if it is not known, None if none."""
    if old == new:
        return None
    try:
        more = difference(language_of(new), language_of(old))
        found = shortest_common(more, more)
        return None if found is None else found.decode()
    except (ValueError, UnicodeDecodeError):
        return ""


def _content(old: KeyDescription, new: KeyDescription) -> Iterator[Change]:
    if old.redis_type != new.redis_type or old.kind != new.kind:
        yield Change(
            Severity.BREAKING,
            new.template,
            f"is a {new.kind} ({new.redis_type}), no longer a {old.kind} ({old.redis_type})",
            breaks(f"it reads a {old.kind}"),
            "Use another name, or declare an Upgrade that moves it.",
        )
        return
    for what, before, after in (("a field", old.field, new.field), ("what it holds", old.value, new.value)):
        yield from changes_of_type(new.template, what, before, after)
    if old.score != new.score:
        readers = breaks("it takes the score for what it was")
        what = f"a score is {new.score}, no longer {old.score}"
        yield Change(Severity.BREAKING, new.template, what, readers)
    yield from changes_of_shapes(new.template, old.shapes, new.shapes)


def _circumstances(old: KeyDescription, new: KeyDescription) -> Iterator[Change]:
    """Yield the changes that cannot make stored data unreadable."""
    if old.name != new.name:
        what = f"the class is {new.name}, no longer {old.name}"
        yield Change(Severity.COMPATIBLE, new.template, what, _CLASS)
    if old.expiry != new.expiry:
        before, after = (key.expiry.words if key.expiry else "never" for key in (old, new))
        yield Change(
            Severity.COMPATIBLE,
            new.template,
            f"expires {after}, no longer {before}; {_from_when(new)}",
            _WRITERS,
        )
    if old.field_expiry != new.field_expiry:
        now, then = (key.field_expiry.words if key.field_expiry else "never" for key in (new, old))
        yield Change(
            Severity.COMPATIBLE,
            new.template,
            f"its entries expire {now}, no longer {then}; each from its next write",
            _WRITERS,
        )
    if old.slot.hashed != new.slot.hashed and old.template == new.template:
        yield Change(Severity.CAUTION, new.template, f"is hashed by {new.slot.hashed!r} on a cluster", _SLOT)
    for group in (group for group in new.groups if group not in old.groups):
        yield Change(
            Severity.CAUTION,
            new.template,
            f"the consumer group {group!r} is new: it does not exist in stored streams",
            spares("it reads by the groups that it knows"),
            "Create it with create_groups() before it consumes.",
        )
    for group in (group for group in old.groups if group not in new.groups):
        yield Change(
            Severity.CAUTION,
            new.template,
            f"the consumer group {group!r} is not declared any more: its entries stay pending",
            spares("the group stays until it is deleted"),
            "Delete it with delete_group().",
        )
    if old.part_of != new.part_of:
        what = f"is part of {new.part_of or 'nothing'}"
        yield Change(Severity.COMPATIBLE, new.template, what, _WRITERS)
    if old.doc != new.doc:
        yield Change(Severity.COMPATIBLE, new.template, "is described in other words", _WORDS)


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
                _WRITERS,
                "Fill the inverse with keywright repair.",
            )
        elif _kept(before[name]) != _kept(link):
            yield Change(
                Severity.BREAKING,
                name,
                f"keeps {_listed(link)}, no longer {_listed(before[name])}",
                _WRITERS,
                "Stored data does not keep it so: repair it with the new declaration.",
            )
    for name in (name for name in before if name not in after):
        yield Change(Severity.CAUTION, name, "is not kept any more: its sides may now disagree", _WRITERS)


def _invariants(old: SpaceDescription, new: SpaceDescription) -> Iterator[Change]:
    before = {each.name: each for each in old.invariants}
    after = {each.name: each for each in new.invariants}
    for name in (name for name in after if name not in before):
        yield Change(
            Severity.CAUTION,
            name,
            "a new invariant: stored data may break it",
            _WRITERS,
            "Look for violations with keywright audit.",
        )
    for name in (name for name in before if name not in after):
        yield Change(Severity.CAUTION, name, "the invariant is not checked any more", _WRITERS)
    for name in (name for name in after if name in before and after[name] != before[name]):
        yield Change(Severity.COMPATIBLE, name, "the invariant is declared otherwise", _WRITERS)


def _kept(link: LinkDescription) -> tuple[str | None, ...]:
    return link.type, link.forward, link.inverse, link.index, link.inverse_index


def _listed(link: LinkDescription) -> str:
    return ", ".join(filter(None, _kept(link)))
