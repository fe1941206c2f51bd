"""The end of a migration: an audit says whether anything old is left, and so what may be dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from keywright.engine import AsyncDatabase
from keywright.keyspace import Key
from keywright.keyspace.kinds.opener import Opener
from keywright.tools.audit import Options, audit
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.walk import Progress as Walked
from keywright.tools.model import Model

__all__ = ["Contract", "contract", "upgrades_in_place"]

OLD = frozenset({"KW102", "KW103"})


class Contract(NamedTuple):
    """What an audit found old, by template; and the declarations that nothing stored needs any more.

    `untold` are templates of which it could not see whether all is up to date, and why.
    """

    old: dict[str, int]
    untold: dict[str, str]
    droppable: list[str]

    @property
    def ready(self) -> bool:
        return not self.old and not self.untold


async def contract(
    db: AsyncDatabase,
    model: Model,
    *,
    max_rate: int | None = None,
    on_progress: Callable[[Walked], None] | None = None,
) -> Contract:
    """Audit a whole model for what is old. Only reads: dropping declarations is an edit of the schema.

    At the primaries, since what a sweep wrote a moment ago may not have reached a replica.
    """
    kinds = [kind for space in model.spaces for kind in space]
    old: dict[str, int] = {}
    untold = {
        kind.declaration.template.source: "it is sealed, and no key that opens it is bound"
        for kind in kinds
        if upgrades_in_place(kind) and kind.declaration.sealed and not Opener(kind, db.context).can_open
    }
    upgradable = {kind.declaration.template.source for kind in kinds if upgrades_in_place(kind)}

    def count(finding: Finding) -> None:
        if finding.code in OLD:
            old[finding.template] = old.get(finding.template, 0) + 1
        elif finding.code == "KW502" and finding.template in upgradable:
            untold[finding.template] = "some values are too large to be read by an audit"

    options = Options(max_rate=max_rate, keep=0, prefer_replica=False)
    await audit(db, model, options, on_finding=count, on_progress=on_progress)
    droppable = [] if old or untold else [words for kind in kinds for words in _transitional(kind)]
    return Contract(old, untold, droppable)


def upgrades_in_place(kind: type[Key]) -> bool:
    """Whether values of a class may be in an older form under their present name."""
    return any(upgrade.moved_from is None for upgrade in kind.declaration.upgrades)


def _transitional(kind: type[Key]) -> Iterator[str]:
    """What a class declares for the sake of older data."""
    for former in kind.declaration.former:
        yield f"{kind.__name__}: moved_from {former.declaration.template.source!r}"
    for upgrade in kind.declaration.upgrades:
        what = "formerly" if upgrade.recodings else "the upgrade from"
        yield f"{kind.__name__}: {what} {upgrade.version!r}"
