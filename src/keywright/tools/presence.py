"""Which models the keys of a server are of, from a sample of names and types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from keywright.engine import AsyncDatabase
from keywright.engine.nodes import Batch, NodeReader, name_page
from keywright.keyspace import Binding
from keywright.keyspace.layouts import Ask
from keywright.tools.audit.page_reader import checked_replies, on_name
from keywright.tools.model import Model

__all__ = ["PresenceSample"]

MOST = 2_000
"""Names of each node, at most."""
PAGE = 500


class PresenceSample:
    """Sampled keys, each with the models that declare its name and its type."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models
        self.owners: list[frozenset[str]] = []

    async def read(self, db: AsyncDatabase, number: int) -> None:
        """Add keys of a database. Read only."""
        bindings = {
            name: [space.bind() for space in model.spaces if space.database in (None, number)]
            for name, model in self._models.items()
        }
        for node in await db.nodes():
            names = await _names(db, node)
            types = await db.run(Batch([on_name(Ask(b"TYPE", ()), name, None) for name in names]), at=node)
            for name, reply in zip(names, checked_replies(types), strict=True):
                kind = reply.decode() if isinstance(reply, bytes) else str(reply)
                self.owners.append(
                    frozenset(owner for owner, spaces in bindings.items() if _has(spaces, name, kind))
                )

    @property
    def models(self) -> list[str]:
        """The fewest models that have the declared keys; none if most keys are not declared."""
        left = [owners for owners in self.owners if owners]
        if len(left) * 2 < len(self.owners):
            return []
        found = []
        while left:
            counts = Counter(owner for owners in left for owner in owners)
            found.append(min(counts, key=lambda owner: (-counts[owner], owner)))
            left = [owners for owners in left if found[-1] not in owners]
        return sorted(found)


async def _names(db: AsyncDatabase, node: NodeReader) -> list[bytes]:
    cursor, names = 0, list[bytes]()
    while len(names) < MOST:
        cursor, page = await db.run(name_page(cursor, PAGE), at=node)
        names += page
        if not cursor:
            break
    return names


def _has(bindings: Sequence[Binding], name: bytes, redis_type: str) -> bool:
    for binding in bindings:
        if name.startswith(binding.lead):
            key = binding.space.find(name[len(binding.lead) :])
            if key is not None and type(key).redis_type == redis_type:
                return True
    return False
