"""Pages of SCAN, matched and parsed by a declared template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keywright.errors import KeywrightError
from keywright.keyspace.call import Effect, Operation, Reply, Wire
from keywright.keyspace.context import Context
from keywright.keyspace.key import Key

SCAN = Operation("scan", b"SCAN", Effect.READ)


class Page:
    """One SCAN command and how to read its reply."""

    def __init__(
        self, kind: type[Key], variables: Mapping[str, object], cursor: int, context: Context
    ) -> None:
        self.kind = kind
        self.variables = variables
        self.lead = context.prefixes[kind._space]
        pattern = escaped(self.lead) + kind._template.glob(variables)
        arguments = (b"SCAN", cursor, b"MATCH", pattern, b"COUNT", 1000, b"TYPE", kind.redis_type)
        self.wire = Wire(arguments, b"", SCAN, kind)

    def read(self, reply: Reply) -> tuple[int, list[Any]]:
        if isinstance(reply, KeywrightError):
            raise reply
        cursor, names = reply
        found = (self.kind.parse(name[len(self.lead) :]) for name in names)
        # A glob is wider than a template: what it matches and the template does not is another key.
        return int(cursor), [key for key in found if key is not None and self._wanted(key)]

    def _wanted(self, key: Key) -> bool:
        return all(getattr(key, name) == value for name, value in self.variables.items())


def escaped(text: bytes) -> bytes:
    """A literal in a SCAN pattern."""
    return b"".join(b"\\" + bytes([byte]) if byte in b"*?[]\\^" else bytes([byte]) for byte in text)
