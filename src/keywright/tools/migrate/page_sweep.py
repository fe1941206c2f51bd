"""The sweep of one page of names: which of its keys are old, and their upgrade."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import (
    ConflictError,
    DeclarationError,
    EngineError,
    KeywrightError,
    StoredDataError,
    UsageError,
)
from keywright.keyspace import Call, Context, Key, Keyspace, gather_list
from keywright.keyspace.renames import Arrival, moved, moved_from_name
from keywright.keyspace.versions.rotation import moved_from_version
from keywright.keyspace.versions.upgrades import brought_up_to_date, older_version
from keywright.tools.audit.matcher import Matcher
from keywright.tools.migrate.progress import SweepCounts
from keywright.tools.pace import GENTLE, Pace

__all__ = ["KEPT", "PageCounts", "PageSweep", "Refusal", "SweepOptions", "SweepRules"]

KEPT = 20
"""The refusals that are listed; all are counted."""


class SweepOptions(NamedTuple):
    """The options of a sweep. `pace` counts names; `most` ends a dry run after so many of them.

    With `discard` a key under a former name is removed if the present one has other content. `from_version`
    is an earlier version of the keyspace: names that differ from the present ones in it only are moved too.
    """

    apply: bool = False
    pace: Pace = GENTLE
    most: int | None = None
    discard: bool = False
    from_version: str | None = None


class Refusal(NamedTuple):
    """A key that could not be upgraded, and why; `detail` may quote it, so it may hold ids."""

    template: str
    name: bytes
    reason: str
    detail: str = ""


class PageCounts(msgspec.Struct):
    """What was done with the keys of a page: counts by template, and the first refusals."""

    counts: dict[str, SweepCounts] = {}
    refusals: list[Refusal] = []

    def add(self, other: PageCounts) -> None:
        for template, counts in other.counts.items():
            self.counts.setdefault(template, SweepCounts()).add(counts)
        self.refusals += other.refusals[: KEPT - len(self.refusals)]


class SweepRules:
    """What the sweeps of all pages of a database go by."""

    def __init__(self, db: AsyncDatabase, spaces: Iterable[Keyspace], options: SweepOptions) -> None:
        self.db = db
        self.options = options
        self.matcher = Matcher(spaces, db.context)
        self.upgradable = {k.kind for k in self.matcher.known if _upgradable(k.kind, db.context)}


class _Found(NamedTuple):
    """Keys that do not have their present name: renamed, converted with the move, or of another version."""

    renamed: list[Key]
    replaced: dict[Key, Key]
    versioned: dict[Key, bytes]


class PageSweep:
    """The sweep of one page, and what it did so far."""

    def __init__(self, rules: SweepRules, done: PageCounts) -> None:
        """Prepare the sweep of a page. It counts in `done`, also what it did before an error."""
        self._rules = rules
        self.done = done

    async def run(self, names: list[bytes]) -> None:
        """Upgrade or count the old keys among some names."""
        groups, unknown = self._rules.matcher.grouped(names)
        stored = [
            known.key(name)
            for known, group in groups.items()
            if known.kind in self._rules.upgradable
            for name in group
        ]
        await self._reshape(stored)
        await self._move(unknown)

    async def _reshape(self, keys: list[Key]) -> None:
        """Upgrade the keys of a page that are stored in an older shape, as one batch."""
        versions = await self._tried(keys, older_version)
        old = [key for key, version in zip(keys, versions, strict=True) if isinstance(version, str)]
        if not self._rules.options.apply:
            for key in old:
                self._of(key).upgraded += 1
            return
        for key, outcome in zip(old, await self._tried(old, brought_up_to_date), strict=True):
            if not isinstance(outcome, KeywrightError):
                self._of(key).upgraded += 1

    async def _move(self, names: list[bytes]) -> None:
        """Move keys from former names, and from the former templates of upgrades."""
        found = self._sorted(names)
        if not self._rules.options.apply:
            for key in (*found.renamed, *found.replaced, *found.versioned):
                self._of(key).moved += 1
            return
        discard = self._rules.options.discard
        await self._bring(found.renamed, lambda key: moved(key, discard=discard))
        version = self._rules.options.from_version or ""
        await self._bring(
            list(found.versioned),
            lambda key: (
                moved_from_version(key, version, discard=discard)
                if key.declaration.sealed
                else moved_from_name(key, found.versioned[key], discard=discard)
            ),
        )
        await self._convert(found.replaced)

    def _sorted(self, names: list[bytes]) -> _Found:
        found = _Found([], {}, {})
        for name in names:
            older = self._rules.matcher.old_place(name)
            if older is None:
                found.versioned.update(self._of_another_version(name))
                continue
            former = older.known.key(name)
            key = older.place.present_key(former)
            if key is None:
                template = older.place.present.declaration.template.source
                self._refuse(
                    Refusal(template, name, "its present name cannot be derived from its former one")
                )
            elif older.place.upgrade is None:
                found.renamed.append(key)
            else:
                found.replaced[key] = former
        return found

    async def _convert(self, replaced: dict[Key, Key]) -> None:
        """Move and convert keys, unless the present key exists already."""
        keys = list(replaced)
        outcomes = await self._tried(keys, brought_up_to_date)
        for key, outcome in zip(keys, outcomes, strict=True):
            if outcome is True:
                self._of(key).moved += 1
        idle = [key for key, outcome in zip(keys, outcomes, strict=True) if outcome is False]
        left = await self._rules.db.run(gather_list(replaced[key].exists() for key in idle))
        for key, is_left in zip(idle, left, strict=True):
            if is_left:
                self._arrived(key, Arrival.BOTH)

    async def _bring(self, keys: list[Key], make: Callable[[Key], Call[Arrival]]) -> None:
        for key, arrival in zip(keys, await self._tried(keys, make), strict=True):
            self._arrived(key, arrival)

    def _of_another_version(self, name: bytes) -> dict[Key, bytes]:
        """Return the present key of a name that differs in the version to migrate from."""
        found = self._rules.matcher.other_version(name) if self._rules.options.from_version else None
        if found is None or found[1] != self._rules.options.from_version:
            return {}
        known, version = found
        prefix = known.lead[:-1].rpartition(b":")[0]
        rest = name[len(prefix) + bool(prefix) + len(version.encode()) + 1 :]
        return {known.key(known.lead + rest): name}

    def _arrived(self, key: Key, arrival: Arrival | KeywrightError) -> None:
        if arrival is Arrival.MOVED:
            self._of(key).moved += 1
        elif arrival is Arrival.BOTH:
            self._of(key).both += 1
            name = self._rules.db.context.name(key)
            self._keep(
                Refusal(key.declaration.template.source, name, "a key with other content has its former name")
            )

    async def _tried(self, keys: list[Key], make: Callable[[Key], Call[Any]]) -> list[Any]:
        """Run calls concurrently. Return their outcomes, errors included; refused ones are counted."""
        outcomes = await self._rules.db.run(gather_list(make(key).attempt() for key in keys))
        for key, outcome in zip(keys, outcomes, strict=True):
            if isinstance(outcome, EngineError) and not isinstance(outcome, ConflictError):
                raise outcome
            if isinstance(outcome, KeywrightError):
                name = self._rules.db.context.name(key)
                self._refuse(Refusal(key.declaration.template.source, name, _reason(outcome), str(outcome)))
        return outcomes

    def _refuse(self, refusal: Refusal) -> None:
        self.done.counts.setdefault(refusal.template, SweepCounts()).refused += 1
        self._keep(refusal)

    def _keep(self, refusal: Refusal) -> None:
        if len(self.done.refusals) < KEPT:
            self.done.refusals.append(refusal)

    def _of(self, key: Key) -> SweepCounts:
        return self.done.counts.setdefault(key.declaration.template.source, SweepCounts())


def _upgradable(kind: type[Key], context: Context) -> bool:
    """Return whether keys may be old in place: in shape, or in their seals, which a bound keyring renews."""
    declared = kind.declaration
    return declared.upgrades_in_place or (declared.sealed and context.keyring_of(kind) is not None)


def _reason(error: KeywrightError) -> str:
    """Return the reason of an error, without the key and its content."""
    if isinstance(error, DeclarationError):
        return f"{error.reason}. {error.remedy}"
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, StoredDataError):
        return f"it should hold {error.expected}"
    return "other writers kept changing it" if isinstance(error, ConflictError) else type(error).__name__
