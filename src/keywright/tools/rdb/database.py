"""A dump as a database that is only read: calls run on it as on a server that has loaded it."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from keywright.engine.address import Address
from keywright.engine.capabilities import FEATURES, Server
from keywright.engine.nodes import At, NodeReader, require_reads
from keywright.keyspace import Binding, Call, Context
from keywright.keyspace.wires import Reply, Resting, Wire
from keywright.tools.rdb.answers import Answers
from keywright.tools.rdb.checksum import check_checksum
from keywright.tools.rdb.files import open_dump
from keywright.tools.rdb.keys import StoredKeys

__all__ = ["DumpDatabase"]

T = TypeVar("T")

_ARRIVAL = re.compile(r"(Redis|Valkey) ([0-9]+)(?:\.([0-9]+))?")
_COMPATIBLE = (7, 2)
"""The version of Redis that every Valkey is compatible with."""


class DumpDatabase:
    """One database of a dump, at the moment at which the dump was taken. Close it, or use it in `async with`.

    Expiries count from that moment, and keys that had expired by then are not there, as on the server.
    MEMORY USAGE is the bytes that a key takes in the file.
    """

    is_still = True

    def __init__(
        self,
        path: Path,
        *bindings: Binding,
        number: int = 0,
        checked: bool = False,
        now: datetime | None = None,
    ) -> None:
        file = open_dump(path)
        try:
            keys = StoredKeys(file, number, 0)
            facts = keys.frames.facts
            stated = facts.get("ctime", "")
            # The file states the second. Its end is taken, so that no key seems to live longer than was set.
            taken_ms = (
                int(stated) * 1000 + 999 if stated.isdecimal() and len(stated) < 12 else file.modified_ms
            )
            if now is not None:
                taken_ms = round(now.timestamp() * 1000)
            keys.now_ms = taken_ms
            self.taken = datetime.fromtimestamp(taken_ms / 1000, UTC)
            if checked:
                check_checksum(file)
        except BaseException:
            file.close()
            raise
        self.keys = keys
        self.product = "Valkey" if "valkey-ver" in facts else file.header.product
        self.version = facts.get("valkey-ver", facts.get("redis-ver", "unknown"))
        self.context = Context(bindings, now=lambda: self.taken)
        self.context.database = number
        self.address = Address("file", {"path": self._shown(), "db": number}, None, False)
        self._server = Server(self.product, self.version, "standalone", self._features(), "")
        self._answers = Answers(keys, self._info, file.shown)

    async def run(self, call: Call[T], *, at: At | None = None) -> T:
        """Run a call that only reads. Raise UsageError for one that writes, or that a file cannot answer."""
        rounds = call.rounds(self.context)
        try:
            wires = next(rounds)
            while True:
                wires = rounds.send(self.answer(wires))
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def nodes(self, *, prefer_replica: bool = False) -> list[NodeReader]:
        return [NodeReader(None, self.address.shown)]

    async def server(self) -> Server:
        """Return the server that took the dump."""
        return self._server

    @property
    def unread(self) -> int:
        """Return the bytes of commands behind the dump, which are not read, as far as that is known."""
        file, end = self.keys.file, self.keys.frames.end
        trailer = 8 if file.header.version >= 5 else 0
        return file.unread + (0 if end is None else max(0, file.size - end - trailer))

    def numbers(self) -> list[int]:
        """Return the databases of the file that have keys. This reads all of it."""
        return list(self.keys.numbers())

    def answer(self, wires: Sequence[Wire]) -> list[Reply]:
        """Return the replies to reading commands, with errors as values."""
        require_reads(wires)
        to = self._answers.to
        try:
            return [None if isinstance(wire, Resting) else to(wire) for wire in wires]
        except (IndexError, ValueError, struct.error, OverflowError) as error:
            raise self.keys.file.malformed(0, f"a value is malformed: {error}") from error

    def close(self) -> None:
        self.keys.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _shown(self) -> str:
        of = f"{self.product} {self.version} at {self.taken:%Y-%m-%d %H:%M:%S} UTC"
        return f"{self.keys.file.shown} (a dump of {of}, sizes as in the file)"

    def _info(self, sections: Sequence[Any]) -> str:
        """Return the fields of INFO that tools read. The numbers of keys cost a pass over the file."""
        fields = [f"run_id:{self.keys.file.identity}"]
        if not sections or b"keyspace" in sections:
            fields += [f"db{number}:keys={count}" for number, count in self.keys.numbers().items()]
        return "\r\n".join(fields)

    def _features(self) -> frozenset[str]:
        return frozenset(name for name, (_, arrival) in FEATURES.items() if self._had(arrival))

    def _had(self, arrival: str) -> bool:
        """Return whether a feature had arrived in the version that took the dump."""
        found = re.match(r"([0-9]+)\.([0-9]+)", self.version)
        if found is None:
            return False
        version = int(found[1]), int(found[2])
        first = {
            product: (int(major), int(minor or 0)) for product, major, minor in _ARRIVAL.findall(arrival)
        }
        if self.product in first:
            return version >= first[self.product]
        return self.product == "Valkey" and first.get("Redis", (99, 0)) <= _COMPATIBLE
