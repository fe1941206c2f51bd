"""The sweep: upgrades every old key of a database, page by page, while programs run.

Names come from SCAN, node by node. Keys with former names or older shapes are upgraded by the calls that a
read would make, under an optimistic lock, and keep their expiry. So no concurrent write is lost, and a sweep
that was stopped may start again. Without `apply` it is a dry run: the same walk, which only counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import NodeReader, key_count, name_page
from keywright.errors import ConflictError, EngineError, KeywrightError, StoredDataError, UsageError
from keywright.keyspace import Call, Context, Key, Keyspace, gather_list
from keywright.keyspace.renames import Arrival, moved, moved_from_name
from keywright.keyspace.versions.rotation import moved_from_version
from keywright.keyspace.versions.upgrades import brought_up_to_date, older_version
from keywright.tools.audit.matcher import Matcher
from keywright.tools.migrate.bookmark import Bookmark
from keywright.tools.migrate.progress import MigrationPace, MigrationProgress, SweepCounts
from keywright.tools.pace import place_of, side_by_side

__all__ = ["Refusal", "SweepOptions", "SweepResult", "sweep"]

PAGE = 500
KEPT = 20


class SweepOptions(NamedTuple):
    """The options of a sweep. `max_rate` is in names a second; `most` ends a dry run after so many names.

    With `discard` a key under a former name is removed if the present one has other content. `from_version`
    is an earlier version of the keyspace: names that differ from the present ones in it only are moved too.
    """

    apply: bool = False
    max_rate: int | None = None
    most: int | None = None
    discard: bool = False
    from_version: str | None = None


class Refusal(NamedTuple):
    """A key that could not be upgraded, and why; `detail` may quote it, so it may hold ids."""

    template: str
    name: bytes
    reason: str
    detail: str = ""


class SweepResult(NamedTuple):
    """The result of a sweep: counts by template, the first refusals, and the number of names scanned."""

    counts: dict[str, SweepCounts]
    refusals: list[Refusal]
    seen: int
    total: int
    seconds: float

    @property
    def done(self) -> int:
        return sum(counts.done for counts in self.counts.values())

    @property
    def left(self) -> int:
        return sum(counts.left for counts in self.counts.values())


async def sweep(
    db: AsyncDatabase,
    spaces: Iterable[Keyspace],
    options: SweepOptions | None = None,
    *,
    bookmark: Bookmark | None = None,
    on_progress: Callable[[MigrationProgress], None] | None = None,
) -> SweepResult:
    """Upgrade every old key of some keyspaces, or only count them unless `options.apply` is set.

    A key that exists during the whole sweep is found; one that an older program writes behind the cursor is
    not. Raise EngineError if the server cannot be reached; keys upgraded until then stay upgraded.
    """
    spaces = tuple(spaces)
    mark = bookmark or Bookmark("sweep")
    run = _Sweep(db, spaces, options or SweepOptions(), mark, on_progress)
    try:
        result = await run.everywhere()
    finally:
        mark.save()
    mark.done()
    return result


class _Found(NamedTuple):
    """Keys that do not have their present name: renamed, converted with the move, or of another version."""

    renamed: list[Key]
    replaced: dict[Key, Key]
    versioned: dict[Key, bytes]


class _Sweep:
    def __init__(
        self,
        db: AsyncDatabase,
        spaces: tuple[Keyspace, ...],
        options: SweepOptions,
        bookmark: Bookmark,
        on_progress: Callable[[MigrationProgress], None] | None,
    ) -> None:
        self._db = db
        self._options = options
        self._bookmark = bookmark
        self._matcher = Matcher(spaces, db.context)
        self._upgradable = {k.kind for k in self._matcher.known if _upgradable(k.kind, db.context)}
        self._pace = MigrationPace(options.max_rate, on_progress)
        self._total = 0
        self._refusals: list[Refusal] = []

    async def everywhere(self) -> SweepResult:
        saved = self._bookmark.saved
        nodes = await self._db.nodes()
        self._total = sum(await side_by_side(self._db.run(key_count(), at=node) for node in nodes))
        await side_by_side(self._node(node) for node in nodes)
        result = SweepResult(saved.counts, self._refusals, saved.seen, self._total, self._pace.seconds)
        self._report(final=True)
        return result

    async def _node(self, node: NodeReader) -> None:
        place, saved = await place_of(self._db, node), self._bookmark.saved
        cursor = self._bookmark.cursor(place)
        lead = self._matcher.common_lead
        while cursor is not None and not self._enough:
            after, names = await self._db.run(name_page(cursor, self._page_size, lead=lead), at=node)
            await self._page(names)
            saved.seen += len(names)
            cursor = after or None
            self._bookmark.at_cursor(place, cursor)
            self._report()
            await self._pace.wait(self._page_size)  # the server walks so many, whether they are ours or not

    @property
    def _enough(self) -> bool:
        most = self._options.most
        return most is not None and self._bookmark.saved.seen >= most

    @property
    def _page_size(self) -> int:
        rate = self._options.max_rate
        return PAGE if rate is None else max(10, min(PAGE, rate // 20))

    async def _page(self, names: list[bytes]) -> None:
        groups, unknown = self._matcher.grouped(names)
        stored = [
            known.key(name)
            for known, group in groups.items()
            if known.kind in self._upgradable
            for name in group
        ]
        await self._reshape(stored)
        await self._move(unknown)

    async def _reshape(self, keys: list[Key]) -> None:
        """Upgrade the keys of a page that are stored in an older shape, as one batch."""
        versions = await self._tried(keys, older_version)
        old = [key for key, version in zip(keys, versions, strict=True) if isinstance(version, str)]
        if not self._options.apply:
            for key in old:
                self._of(key).upgraded += 1
            return
        for key, outcome in zip(old, await self._tried(old, brought_up_to_date), strict=True):
            if not isinstance(outcome, KeywrightError):
                self._of(key).upgraded += 1

    async def _move(self, names: list[bytes]) -> None:
        """Move keys from former names, and from the former templates of upgrades."""
        found = self._sorted(names)
        if not self._options.apply:
            for key in (*found.renamed, *found.replaced, *found.versioned):
                self._of(key).moved += 1
            return
        discard = self._options.discard
        await self._bring(found.renamed, lambda key: moved(key, discard=discard))
        version = self._options.from_version or ""
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
            older = self._matcher.old_place(name)
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
        left = await self._db.run(gather_list(replaced[key].exists() for key in idle))
        for key, is_left in zip(idle, left, strict=True):
            if is_left:
                self._arrived(key, Arrival.BOTH)

    async def _bring(self, keys: list[Key], make: Callable[[Key], Call[Arrival]]) -> None:
        for key, arrival in zip(keys, await self._tried(keys, make), strict=True):
            self._arrived(key, arrival)

    def _of_another_version(self, name: bytes) -> dict[Key, bytes]:
        """Return the present key of a name that differs in the version to migrate from."""
        found = self._matcher.other_version(name) if self._options.from_version else None
        if found is None or found[1] != self._options.from_version:
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
            name = self._db.context.name(key)
            self._keep(
                Refusal(key.declaration.template.source, name, "a key with other content has its former name")
            )

    async def _tried(self, keys: list[Key], make: Callable[[Key], Call[Any]]) -> list[Any]:
        """Run calls concurrently. Return their outcomes, errors included; refused ones are counted."""
        outcomes = await self._db.run(gather_list(make(key).attempt() for key in keys))
        for key, outcome in zip(keys, outcomes, strict=True):
            if isinstance(outcome, EngineError) and not isinstance(outcome, ConflictError):
                raise outcome
            if isinstance(outcome, KeywrightError):
                name = self._db.context.name(key)
                self._refuse(Refusal(key.declaration.template.source, name, _reason(outcome), str(outcome)))
        return outcomes

    def _refuse(self, refusal: Refusal) -> None:
        self._bookmark.saved.counts.setdefault(refusal.template, SweepCounts()).refused += 1
        self._keep(refusal)

    def _keep(self, refusal: Refusal) -> None:
        if len(self._refusals) < KEPT:
            self._refusals.append(refusal)

    def _of(self, key: Key) -> SweepCounts:
        return self._bookmark.saved.counts.setdefault(key.declaration.template.source, SweepCounts())

    def _report(self, *, final: bool = False) -> None:
        saved = self._bookmark.saved
        done = sum(counts.done for counts in saved.counts.values())
        left = sum(counts.left for counts in saved.counts.values())
        self._pace.report(saved.seen, self._total, done, left, final=final)


def _upgradable(kind: type[Key], context: Context) -> bool:
    """Return whether keys may be old in place: in shape, or in their seals, which a bound keyring renews."""
    declared = kind.declaration
    return declared.upgrades_in_place or (declared.sealed and context.keyring_of(kind) is not None)


def _reason(error: KeywrightError) -> str:
    """Return the reason of an error, without the key and its content."""
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, StoredDataError):
        return f"it should hold {error.expected}"
    return "other writers kept changing it" if isinstance(error, ConflictError) else type(error).__name__
