"""Older shapes and older places of a value: recognised on read, upgraded atomically, swept by `migrate`.

A shape upgrade stays under the same key; a move comes from the key of an older template. Both
write with compare-and-set, so two readers that upgrade at once agree, and a writer in between wins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from keywright.errors import ConflictError, KeywrightError, SealError, StoredDataError
from keywright.keyspace.call import Call, Command, Steps, bound_context, procedure, undecodable
from keywright.keyspace.checks import Check, absent, equals, hash_is
from keywright.keyspace.codecs import Ciphertext, Codec, SealRefused
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.composition import gather
from keywright.keyspace.field_expiry import expiries_given, expiries_kept
from keywright.keyspace.layouts import stored_read
from keywright.keyspace.recognition import older_shape
from keywright.keyspace.storage import Storage
from keywright.keyspace.versions.rotation import has_stale_seals, resealed
from keywright.keyspace.wires import Effect, Operation, Reply

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

T = TypeVar("T")
ATTEMPTS = 8

SET_KEEPING = Operation("upgrade", b"SET", Effect.REPEATABLE)
HSET = Operation("upgrade", b"HSET", Effect.REPEATABLE)
HDEL = Operation("upgrade", b"HDEL", Effect.REPEATABLE)

Stored = bytes | Mapping[bytes, bytes]


class Recoding(NamedTuple):
    """A codec and its former one."""

    present: Codec[Any]
    former: Codec[Any]
    member: bytes | None = None
    """The member of a record that it is about."""


class Upgrade(NamedTuple):
    """One step from an older version to the present one.

    `applies` looks at the stored form (bytes of a value, members of a record). `convert` gets it and
    the key, and returns the new value, or is a generator of calls that returns it. With `moved_from`
    the older version lives under another key, which the function gives for a key. A key that only has
    another name is declared with the class's own `moved_from`, another codec with its `formerly`.
    """

    version: str
    applies: Callable[[Any], bool]
    convert: Callable[[Any, Any], Any]
    moved_from: Callable[[Any], Key] | None = None
    recodings: tuple[Recoding, ...] = ()
    """The codecs that it changes, where that is all it does."""


@procedure
def upgraded(key: Key, read: Command[T | None], upgrades: tuple[Upgrade, ...]) -> Steps[T | None]:
    """Read a key and upgrade an older version: one round trip if there is nothing old, else a few."""
    context = yield bound_context()
    for _ in range(ATTEMPTS):
        # Both in one round trip: where nothing is old, which is nearly always, the read is the answer.
        stored, value = yield gather(_raw(key), read.attempt())
        opened = opened_form(key, stored, context)
        upgrade = older_shape(upgrades, opened)
        if upgrade is None and stored is None:
            moved = yield from _move(key, upgrades, context)
            if moved is None:
                return None
            if moved:
                continue
        elif upgrade is None:
            if isinstance(value, KeywrightError):
                raise value
            current: T | None = value
            return current
        elif (yield from _reshape(key, upgrade, stored, opened, context)):
            continue
    raise ConflictError(f"upgrading {key!r}", ATTEMPTS)


@procedure
def older_version(key: Key) -> Steps[str | None]:
    """Return the older version of a stored key that can be upgraded in place. Change nothing."""
    context = yield bound_context()
    if key.declaration.upgrades_in_place:
        opened = opened_form(key, (yield _raw(key)), context)
        upgrade = older_shape(key.declaration.upgrades, opened)
        if upgrade is not None:
            return upgrade.version
    stale = key._sealed and (yield has_stale_seals(key))
    return "an older seal" if stale else None


@procedure
def brought_up_to_date(key: Key, upgrades: tuple[Upgrade, ...] | None = None) -> Steps[bool]:
    """Upgrade a key and its seals without renewing a sliding expiry. Return whether anything was old."""
    chosen = key.declaration.upgrades if upgrades is None else upgrades
    context = yield bound_context()
    changed = False
    for _ in range(ATTEMPTS):
        stored: Any = (yield _raw(key)) if chosen else None
        opened = opened_form(key, stored, context)
        upgrade = older_shape(chosen, opened)
        if upgrade is not None:
            changed = (yield from _reshape(key, upgrade, stored, opened, context)) or changed
            continue
        moved = None if stored is not None else (yield from _move(key, chosen, context))
        if moved is None:
            return (key._sealed and (yield resealed(key))) or changed
        changed = changed or moved
    raise ConflictError(f"upgrading {key!r}", ATTEMPTS)


def _reshape(
    key: Key, upgrade: Upgrade, stored: Stored, opened: Stored, context: Context
) -> Generator[Call[Any], Any, bool]:
    value = yield from _converted(upgrade, opened, key, context)
    writes = _rewrites(key, stored, value)
    if key._field_expiry is not None and not isinstance(stored, bytes):
        writes += expiries_given(
            key, [name for name in writes[0].operands[::2] if name not in stored], context
        )
        writes += yield from expiries_kept(key, key, stored)
    return bool(
        (
            yield commit(
                f"upgrade {type(key).__name__}",
                [_unchanged(key, stored)],
                writes,
                subject=key,
            )
        )
    )


def _move(
    key: Key, upgrades: tuple[Upgrade, ...], context: Context
) -> Generator[Call[Any], Any, bool | None]:
    """Move a value from an older key. Return None if there is none, else whether it was written."""
    for upgrade in upgrades:
        if upgrade.moved_from is None:
            continue
        old = upgrade.moved_from(key)
        stored, left = yield gather(_raw(old), old.ttl())
        opened = opened_form(old, stored, context)
        if opened is None or not upgrade.applies(opened):
            continue
        value = yield from _converted(upgrade, opened, key, context)
        lasting = [] if left is None else [key.expire(left)]
        writes = [_first_write(key, value), *lasting, old.delete()]
        return bool(
            (
                yield commit(
                    f"move {type(old).__name__}", [absent(key), _unchanged(old, stored)], writes, subject=old
                )
            )
        )
    return None


def _converted(
    upgrade: Upgrade, stored: Stored, key: Key, context: Context
) -> Generator[Call[Any], Any, Any]:
    try:
        value = upgrade.convert(stored, key)
        return (yield from value) if isinstance(value, Generator) else value
    except (ValueError, LookupError, TypeError) as error:
        # An older program may have written invalid data, which is not a bug of the upgrade.
        expected = f"a value that the upgrade from {upgrade.version!r} can convert"
        found = f"something else ({type(error).__name__} in {getattr(upgrade.convert, '__name__', 'it')})"
        raise StoredDataError(context.name(key), key._template.source, expected, found) from error


def opened_form(key: Key, stored: Any, context: Context) -> Any:
    """Return a stored form with its seals opened, as `applies` and `convert` get it.

    Raise SealError for a sealed member that does not open: it is not an older shape. Members that are
    declared clear stay closed. One that is not declared any more is opened if it was sealed there.
    """
    if not key._sealed or stored is None:
        return stored
    placed = partial(context.placed, type(key), context.name(key))
    if isinstance(stored, bytes):
        return _opened(key, placed(stored), b"", context)
    declared = {member.stored: member.codec.sealed for member in key._own_fields().members}  # type: ignore[attr-defined]  # a hash that is upgraded is a record
    opened = {}
    for name, value in stored.items():
        opened[name] = closed = placed(value)
        if declared.get(name, True):
            try:
                opened[name] = _opened(key, closed, name, context)
            except SealError:
                if name in declared:
                    raise
    return opened


def _opened(key: Key, closed: bytes, member: bytes, context: Context) -> bytes:
    try:
        return closed.opened(member) if isinstance(closed, Ciphertext) else closed
    except SealRefused as refusal:
        raise undecodable(key, context, refusal) from refusal


def _raw(key: Key) -> Command[Stored | None]:
    """Read the stored form with its seals closed: a check compares with it."""
    storage = key.declaration.storage
    return stored_read(key, storage.layout.everything, "get", lambda reply: _form(storage, reply))


def _form(storage: Storage, reply: Reply) -> Stored | None:
    form: Stored | None = None if reply is None or reply == [] else storage.form(reply)
    return form


def _unchanged(key: Key, stored: Stored) -> Check:
    return equals(key, stored) if isinstance(stored, bytes) else hash_is(key, stored)


def _first_write(key: Any, value: Any) -> Call[Any]:
    """Return the command that writes a new value with the declared expiry."""
    write: Call[Any] = key.set(value) if key.redis_type == "string" else key._written(value)
    return write


def _rewrites(key: Any, stored: Stored, value: Any) -> list[Command[Any]]:
    """Return the commands that leave exactly `value` and keep the expiry."""
    if key.redis_type == "string":
        return [Command(SET_KEEPING, key, (key._encode(value), b"KEEPTTL"), _bytes)]
    members: dict[bytes, bytes] = key._members_of(value)
    obsolete = [name for name in stored if name not in members]
    writes = [Command(HSET, key, tuple(x for pair in members.items() for x in pair), _bytes)]
    if obsolete:
        writes.append(Command(HDEL, key, tuple(obsolete), _bytes))
    return writes


def _bytes(reply: Reply) -> Any:
    return reply
