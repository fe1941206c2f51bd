"""Inspecting a stored key without changing it: no expiry renewed, no shape upgraded, nothing written.

`inspect` reads any kind of key as it is stored and decodes it as declared, up to a limit, without
secrets. The kinds' own reads are for programs; this is for people and tools.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

from keywright.errors import KeywrightError, WrongTypeError
from keywright.keyspace.call import Command, Steps, bound_context, procedure, undecodable
from keywright.keyspace.codecs import CodecError, is_sealed
from keywright.keyspace.composition import gather
from keywright.keyspace.kinds.opener import Opener
from keywright.keyspace.layouts import Ask, stored_read
from keywright.keyspace.storage import EntryPart, StoredEntry

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

LIMIT = 1000
TYPE = Ask(b"TYPE")


class Hidden(enum.Enum):
    """The placeholder of a value that is not shown."""

    SECRET = "(secret)"
    SEALED = "(sealed)"
    IN_CLEAR = "(secret, stored in clear)"
    OPAQUE = "(only its module reads it)"


class Inspection(NamedTuple):
    """A stored key. The form of `value` depends on the kind:

    value, counter: the value; record: stored member names to values; set, list: a list; sorted set:
    (member, score) pairs; map: (field, value) pairs; stream: entries whose value is like a record.
    `size` is how many entries the key has, `truncated` whether `value` holds only some of them.
    `older` names the version of an older shape, whose bytes are then given as they are stored.
    """

    key: Key
    value: Any
    size: int
    truncated: bool = False
    older: str | None = None


@procedure
def inspect(key: Key, limit: int = LIMIT) -> Steps[Inspection | None]:
    """Read a key of any kind without changing it, at most `limit` of its entries; None if it does not exist.

    Raise WrongTypeError or StoredDataError if it is not as declared. Sealed values are opened and
    checked if a keyring is bound, and are never part of the result. Not atomic: a key that
    changes meanwhile may be seen half old, half new.
    """
    context = yield bound_context()
    layout = key.declaration.storage.layout
    found, size = yield gather(_asked(key, TYPE), _asked(key, Ask(layout.size)).attempt())
    if found == b"none":
        return None
    if found.decode() != key.redis_type:
        expected, template = f"a {key.kind} ({key.redis_type})", key.declaration.template.source
        raise WrongTypeError(context.name(key), template, expected, f"a {found.decode()}")
    if isinstance(size, KeywrightError):
        raise size
    if not layout.reads:
        return Inspection(key, Hidden.OPAQUE, 1)
    stored = yield from _stored(key, size, limit)
    if not stored and stored != b"":
        return None
    is_string = key.redis_type == "string"
    value, older = _Reader(key, context).read(stored)
    return Inspection(key, value, 1 if is_string else size, not is_string and size > limit, older)


def inspected_form(key: Key, context: Context, stored: Any) -> Inspection:
    """Return the value of a stored form that was read before, as `inspect` does."""
    value, older = _Reader(key, context).read(stored)
    return Inspection(key, value, 1, older=older)


@procedure
def inspect_entry(key: Key, entry: bytes) -> Steps[Inspection | None]:
    """Read one field of a map, or one member of a set or sorted set, given as it is stored.

    Return None if it does not exist, else a result like that of `inspect`, with that one entry as the value.
    """
    context = yield bound_context()
    layout = key.declaration.storage.layout
    stored = layout.found(entry, (yield _asked(key, layout.find(entry))))
    return None if stored is None else Inspection(key, _Reader(key, context).decoded(stored), 1)


def _stored(key: Key, size: int, limit: int) -> Steps[Any]:
    """Read at most `limit` entries in their stored form."""
    layout = key.declaration.storage.layout
    ask = layout.head(limit) or (layout.everything if size <= limit else None)
    if ask is not None:
        return (yield _asked(key, ask))
    # Page by page, so that no single command is slow; a page may repeat what one before it had.
    found: dict[bytes, list[bytes]] = {}
    ask = layout.first_page(limit)
    more = None
    while True:
        page = layout.page((yield _asked(key, ask)), more, limit)
        for place in range(0, len(page.stored), layout.width):
            found[page.stored[place]] = page.stored[place : place + layout.width]
        more = page.more
        if more is None or len(found) >= limit:
            return [item for entry in list(found.values())[:limit] for item in entry]
        ask = layout.next_page(more, limit)


class _Reader:
    """The decoder of one key, which hides secrets."""

    def __init__(self, key: Key, context: Context) -> None:
        self.key = key
        self.context = context
        self.storage = key.declaration.storage
        self.opener = Opener(type(key), context)

    def read(self, stored: Any) -> tuple[Any, str | None]:
        """Return the value to show, and the version of the upgrade that a read of the kind would make."""
        older = self.opener.older(stored, self.key)
        if older is None:
            return self.decoded(stored), None
        # Of an older shape it is not known which bytes are secret.
        hidden = self.key.declaration.secret or self.key.declaration.sealed
        return Hidden.SECRET if hidden else self.storage.form(stored), older.version

    def decoded(self, stored: Any) -> Any:
        if not self.storage.is_read:
            return stored
        try:
            return self.storage.listed([self._entry(each) for each in self.storage.entries(stored, self.key)])
        except CodecError as error:
            raise undecodable(self.key, self.context, error) from error

    def _entry(self, entry: StoredEntry) -> Any:
        for defect in entry.defects:
            raise defect.error
        return entry.shown([self._part(part) for part in entry.parts])

    def _part(self, part: EntryPart) -> Any:
        codec = part.codec
        sealed = codec.sealed and is_sealed(part.data)
        if codec.sealed and not self.opener.can_open:
            return Hidden.SEALED if sealed else Hidden.IN_CLEAR
        try:
            name = self.context.name(self.key)
            value = codec.decode(
                self.context.placed(type(self.key), name, part.data) if codec.sealed else part.data
            )
        except CodecError as error:
            if self.key.hides:
                error.withhold()
            raise type(error)(f"{error.expected}{part.role}", error.found) from error
        if codec.sealed:
            return Hidden.SEALED if sealed else Hidden.IN_CLEAR
        if codec.secret:
            return Hidden.SECRET
        if self.key.hides:
            hide(value, self.key.hides)
        return value


def hide(value: Any, names: tuple[str, ...]) -> None:
    """Hide fields at every depth of a value that was decoded for this. It may be deeper than the stack."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            found.update(dict.fromkeys(found.keys() & names, Hidden.SECRET))
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found


def _asked(key: Key, ask: Ask) -> Command[Any]:
    return stored_read(key, ask, "inspect")
