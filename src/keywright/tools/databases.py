"""The numbered databases of a server: those that a model is in, and those that have keys."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from keywright.engine.nodes import info
from keywright.errors import KeywrightError, ServerRefusedError, UsageError
from keywright.keyspace import Keyspace
from keywright.tools.model import Model
from keywright.tools.readable import ReadableDatabase

__all__ = ["DatabasePart", "numbers_with_keys", "parts_of"]

_LISTED = re.compile(r"db[0-9]{1,9}")


class DatabasePart(NamedTuple):
    """The keyspaces of a model that are in one database; None is the database of the URL, or 0."""

    database: int | None
    model: Model

    @property
    def declared(self) -> int | None:
        """The number for reports: None if no keyspace of the part declares one."""
        return self.database if any(space.database is not None for space in self.model.spaces) else None


def parts_of(model: Model, named: int | None = None) -> list[DatabasePart]:
    """Return the parts of a model by database, in the order of the numbers.

    `named` is the database that the URL or an option names, if one does: only its keyspaces are returned.
    A keyspace that does not declare a number is in it, else in 0. Raise UsageError if none is left.
    """
    if all(space.database is None for space in model.spaces):
        return [DatabasePart(named, model)]
    spaces: dict[int, list[Keyspace]] = {}
    for space in model.spaces:
        number = (named or 0) if space.database is None else space.database
        spaces.setdefault(number, []).append(space)
    if named is not None and named not in spaces:
        listed = ", ".join(map(str, sorted(spaces)))
        raise UsageError(
            f"{model.name} has no keyspace in database {named}: its keyspaces are in {listed}. "
            f"Name one of these, or none for all of them."
        )
    return [
        DatabasePart(number, replace(model, spaces=tuple(found)))
        for number, found in sorted(spaces.items())
        if named in (None, number)
    ]


async def numbers_with_keys(db: ReadableDatabase) -> list[int]:
    """Return the numbers of the databases of a server, or of all nodes of a cluster, that have keys."""
    found: set[int] = set()
    for node in await db.nodes():
        fields = await db.run(info(b"keyspace").attempt(), at=node)
        if isinstance(fields, ServerRefusedError):
            return []  # access rules deny INFO
        if isinstance(fields, KeywrightError):
            raise fields
        found.update(int(name[2:]) for name in fields if _LISTED.fullmatch(name))
    return sorted(found)
