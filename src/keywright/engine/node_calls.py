"""Calls about a node itself or about names that are known already, for `db.run(call, at=node)`."""

from __future__ import annotations

from collections.abc import Sequence

from keywright.engine.scan import SCAN, escaped
from keywright.keyspace.call import Call, Plain
from keywright.keyspace.context import Context
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

__all__ = ["Batch", "info", "key_count", "name_page"]

DBSIZE = Operation("key count", b"DBSIZE", Effect.READ)
INFO = Operation("info", b"INFO", Effect.READ)


def key_count() -> Call[int]:
    """Return the number of keys of a node, of any keyspace."""
    return Plain(DBSIZE).map(int)


def info(*sections: bytes) -> Call[dict[str, str]]:
    """Return the fields of INFO, of some sections or of all."""
    return Plain(INFO, sections).map(_fields)


def name_page(cursor: int, count: int, *, lead: bytes = b"", pattern: bytes = b"") -> Call[Names]:
    """Return one page of SCAN: the next cursor, and the names that begin with `lead` or match a pattern."""
    pattern = pattern or (escaped(lead) + b"*" if lead else b"")
    match = (b"MATCH", pattern) if pattern else ()
    return Plain(SCAN, (cursor, *match, b"COUNT", count)).map(_page)


Names = tuple[int, list[bytes]]


class Batch(Call[list[Reply]]):
    """A batch of commands on bound names. It returns the raw replies, with errors as values."""

    __slots__ = ("wires",)

    def __init__(self, wires: Sequence[Wire]) -> None:
        self.wires = wires

    def rounds(self, context: Context) -> Rounds[list[Reply]]:
        return (yield list(self.wires))


def _page(reply: Reply) -> Names:
    return int(reply[0]), reply[1]


def _fields(reply: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in reply.decode("utf-8", "replace").splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
