"""Where stored keys are read from: a server, or a file that a server saved."""

from __future__ import annotations

from typing import Protocol, TypeVar

from keywright.engine.address import Address
from keywright.engine.capabilities import Server
from keywright.engine.nodes import At, NodeReader
from keywright.keyspace import Call, Context

__all__ = ["ReadableDatabase"]

T = TypeVar("T")


class ReadableDatabase(Protocol):
    """What tools that only read need of a database: an `AsyncDatabase`, or a `DumpDatabase`.

    Everything is read with commands, as SCAN for names, so a tool is written once for both.
    """

    address: Address
    context: Context
    is_still: bool
    """Whether the data never changes, so that nothing has to be looked at twice."""

    async def run(self, call: Call[T], *, at: At | None = None) -> T: ...

    async def nodes(self, *, prefer_replica: bool = False) -> list[NodeReader]: ...

    async def server(self) -> Server: ...
