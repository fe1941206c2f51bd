"""Pages of SCAN: keys of a declared template, or all names of a keyspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from keywright.errors import KeywrightError, UsageError, excerpt
from keywright.keyspace.context import Context
from keywright.keyspace.key import Key
from keywright.keyspace.space import Keyspace
from keywright.keyspace.template import escaped
from keywright.keyspace.wires import Effect, Operation, Reply, Wire

T = TypeVar("T")

SCAN = Operation("scan", b"SCAN", Effect.READ)
COUNT = 1000


class ScanPage(Protocol[T]):
    """One SCAN command and the parsing of its reply: the next cursor, and the page of results."""

    @property
    def wire(self) -> Wire: ...

    def read(self, reply: Reply) -> tuple[int, list[T]]: ...


class KeyPage:
    """A page of keys of one class."""

    def __init__(
        self, kind: type[Key], variables: Mapping[str, object], cursor: int, context: Context
    ) -> None:
        self.kind = kind
        self.variables = variables
        try:
            self.lead = context.prefixes[kind.declaration.space]
        except (AttributeError, TypeError) as error:
            raise UsageError(
                f"scan() takes the class of a key, got {excerpt(kind)}. Pass the class: db.scan(Name)."
            ) from error
        pattern = escaped(self.lead) + kind.declaration.template.glob(variables)
        arguments = (b"SCAN", cursor, b"MATCH", pattern, b"COUNT", COUNT, b"TYPE", kind.redis_type)
        self.wire = Wire(arguments, b"", SCAN, kind)

    def read(self, reply: Reply) -> tuple[int, list[Any]]:
        cursor, names = _checked(reply)
        # A glob is wider than a template: a name that the template does not match is another key.
        found = [key for name in names if (key := self.kind.parse(name[len(self.lead) :])) is not None]
        wanted = self.variables.items()
        return cursor, [key for key in found if all(getattr(key, name) == value for name, value in wanted)]


class NamePage:
    """A page of names of a keyspace, whether one of its templates matches them or not."""

    def __init__(self, space: Keyspace, cursor: int, context: Context) -> None:
        try:
            lead = context.prefixes[space]
        except (AttributeError, TypeError) as error:
            raise UsageError(
                f"names() takes a keyspace, got {excerpt(space)}. Pass the Keyspace of the declarations."
            ) from error
        arguments = (b"SCAN", cursor, b"MATCH", escaped(lead) + b"*", b"COUNT", COUNT)
        self.wire = Wire(arguments, b"", SCAN, None)

    def read(self, reply: Reply) -> tuple[int, list[bytes]]:
        return _checked(reply)


def _checked(reply: Reply) -> tuple[int, list[bytes]]:
    if isinstance(reply, KeywrightError):
        raise reply
    cursor, names = reply
    return int(cursor), names
