"""Rotation of seals: stale ones are replaced in their place, and renewed where a key moves to another name.

A seal is stale if it is of the older form, or not by the primary key. Values in clear stay as they are, since
they may be planted. Entries of a stream cannot be rewritten: they keep their seals until they are trimmed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from keywright.errors import ConflictError, KeywrightError, UsageError
from keywright.keyspace.call import Call, Command, Plain, Steps, as_is, bound_context, procedure, undecodable
from keywright.keyspace.checks import Check, absent, equals, field_equals, hash_is, items_are, serialised_as
from keywright.keyspace.codecs import Ciphertext, Plaintext, SealRefused, is_sealed
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.composition import gather
from keywright.keyspace.context import Binding, Context
from keywright.keyspace.field_expiry import expiries_kept
from keywright.keyspace.key import Key, variant
from keywright.keyspace.layouts import StoredPage, pairs, stored_read
from keywright.keyspace.renames import Arrival
from keywright.keyspace.space import Keyspace
from keywright.keyspace.wires import Effect, Operation

__all__ = ["has_stale_seals", "moved_from_version", "resealed"]

ATTEMPTS = 8
DUMP = Operation("move", b"DUMP", Effect.READ)


class _Stale(NamedTuple):
    """A stale seal: its field in a hash, its bytes, and its content."""

    field: bytes
    data: bytes
    plain: Plaintext


@procedure
def has_stale_seals(key: Key) -> Steps[bool]:
    """Return whether a key has seals to be renewed."""
    context = yield bound_context()
    page = yield from _page(key, None)
    while not any(_stale_parts(key, page.stored, context)):
        if page.more is None:
            return False
        page = yield from _page(key, page)
    return True


@procedure
def resealed(key: Key) -> Steps[bool]:
    """Renew the stale seals of a key, page by page. Return whether there were any.

    Raise SealError if one of them does not open, after the others.
    """
    context = yield bound_context()
    changed, refusal, before = False, None, None
    while True:
        for _ in range(ATTEMPTS):
            page = yield from _page(key, before)
            stale, broken = _opened(key, page.stored, context)
            refusal = refusal or broken
            kept = yield from _kept(key, key, [each.field for each in stale])
            if not stale or (yield _renewal(key, stale, page.stored, kept)):
                break
        else:
            raise ConflictError(f"resealing {key!r}", ATTEMPTS)
        changed = changed or bool(stale)
        if page.more is None:
            break
        before = page
    if refusal is not None:
        raise refusal
    return changed


@procedure
def moved_from_version(key: Key, version: str, *, discard: bool = False) -> Steps[Arrival]:
    """Move a sealed key from its name in another version of the keyspace, and seal it for the new name.

    The expiry is kept. With `discard` the former key is deleted if the present one exists.
    """
    context = yield bound_context()
    binding = context.bindings.get(key._space) or Binding(key._space)
    kind = _class_of_version(type(key), binding.prefix, version)  # type: ignore[arg-type]  # a class is hashable
    former = kind.made(key._values)
    if key.redis_type == "stream":
        raise UsageError(
            f"{key._template.source!r} is a stream with sealed members, which cannot be sealed for another "
            f"name. Consume it under its former name, then delete it."
        )
    for _ in range(ATTEMPTS):
        name = context.name(former)
        dump, stored, left, present = yield gather(
            Plain(DUMP, (name,), name), _stored(former), former.ttl(), key.exists()
        )
        if dump is None or not stored:
            return Arrival.NOTHING
        if present and not discard:
            return Arrival.BOTH
        unchanged = _unchanged(former, stored, dump)
        if present:
            checks, writes = [unchanged], [former.delete()]
        else:
            operands = _moved_parts(key, former, stored, context)
            lasting = [] if left is None else [key.expire(left)]
            write = Command(_WRITES[key.redis_type], key, operands, as_is)
            fields = stored[::2] if key.redis_type == "hash" else ()
            kept = yield from _kept(key, former, fields)
            checks, writes = [absent(key), unchanged], [write, *kept, *lasting, former.delete()]
        if (yield commit(f"move {type(key).__name__}", checks, writes, subject=former)):
            return Arrival.MOVED
    raise ConflictError(f"moving to {key!r}", ATTEMPTS)


_WRITES = {
    kind: Operation("move", verb, Effect.REPEATABLE)
    for kind, verb in {"string": b"SET", "hash": b"HSET", "list": b"RPUSH"}.items()
}
_RENEW = Operation("reseal", b"SET", Effect.REPEATABLE)
_RENEW_FIELDS = Operation("reseal", b"HSET", Effect.REPEATABLE)
_INSERT = Operation("reseal", b"LINSERT", Effect.ONCE)
_REMOVE = Operation("reseal", b"LREM", Effect.ONCE)


def _page(key: Key, before: StoredPage | None) -> Steps[StoredPage]:
    """Read a map page by page, and any other key whole."""
    layout = key.declaration.storage.layout
    if key.kind != "map":
        return StoredPage((yield _stored(key)), None)
    ask = layout.first_page() if before is None or before.more is None else layout.next_page(before.more)
    return layout.page((yield stored_read(key, ask, "reseal")))


def _stored(key: Key) -> Call[Any]:
    return stored_read(key, key.declaration.storage.layout.everything, "reseal")


def _stale_parts(key: Key, stored: Any, context: Context) -> Iterator[tuple[bytes, bytes]]:
    """Yield the field, empty except in a hash, and the bytes of each stale seal that can be replaced."""
    keyring, storage = context.keyring_of(type(key)), key.declaration.storage
    if keyring is None or not stored or not storage.is_read or key.redis_type == "stream":
        return
    for entry in storage.entries(stored, key):
        for part in entry.parts:
            if part.codec.sealed and is_sealed(part.data) and keyring.needs_resealing(part.data):
                yield (part.entry or b"") if key.redis_type == "hash" else b"", part.data


def _opened(key: Key, stored: Any, context: Context) -> tuple[list[_Stale], KeywrightError | None]:
    """Return the stale seals that open, and the error of the first that does not."""
    stale, refusal = [], None
    for field, data in _stale_parts(key, stored, context):
        try:
            plain = context.placed(type(key), context.name(key), data).opened(field)
        except SealRefused as error:
            refusal = refusal or undecodable(key, context, error)
        else:
            stale.append(_Stale(field, data, plain))
    return stale, refusal


def _kept(key: Key, source: Key, fields: Sequence[bytes]) -> Steps[list[Command[Any]]]:
    """Return the writes that keep the expiries of single fields, if there are any."""
    return (yield from expiries_kept(key, source, fields)) if key.redis_type == "hash" else []


def _renewal(key: Key, stale: list[_Stale], stored: Any, kept: list[Command[Any]]) -> Call[Any]:
    """Return the commit that replaces stale seals, if nobody changed them. It keeps the expiry."""
    checks: list[Check]
    writes: list[Command[Any]]
    if key.redis_type == "string":
        checks = [equals(key, stored)]
        writes = [Command(_RENEW, key, (stale[0].plain, b"KEEPTTL"), as_is)]
    elif key.redis_type == "hash":
        checks = [field_equals(key, each.field, each.data) for each in stale]
        fresh = tuple(part for each in stale for part in (each.field, each.plain))
        writes = [Command(_RENEW_FIELDS, key, fresh, as_is), *kept]
    else:
        # Not by index, which changes with every pop of a queue.
        checks = [items_are(key, item, stored.count(item)) for item in {each.data for each in stale}]
        writes = [
            Command(operation, key, operands, as_is)
            for each in stale
            for operation, operands in (
                (_INSERT, (b"BEFORE", each.data, each.plain)),
                (_REMOVE, (1, each.data)),
            )
        ]
    return commit(f"reseal {type(key).__name__}", checks, writes, subject=key)


@functools.cache
def _class_of_version(kind: type[Key], prefix: str | None, version: str) -> type[Key]:
    """Return a class whose keys have the names of another version."""
    space = Keyspace(kind._space.name, kind._space.description, prefix=prefix, version=version)
    return variant(kind, f"{kind.__name__} of {version}", kind._template.source, space)


def _moved_parts(key: Key, former: Key, stored: Any, context: Context) -> tuple[Any, ...]:
    """Return the stored form of a former key as operands, with its seals opened where they are declared."""
    bound = Context([Binding(former._space, keyring=context.keyring_of(type(key)))])
    opened: dict[tuple[bytes | None, bytes], Plaintext] = {}
    for entry in former.declaration.storage.entries(stored, former):
        for part in entry.parts:
            closed = bound.placed(type(former), bound.name(former), part.data)
            if part.codec.sealed and isinstance(closed, Ciphertext):
                field = part.entry if key.redis_type == "hash" else None
                try:
                    opened[field, part.data] = closed.opened(field or b"")
                except SealRefused as error:
                    raise undecodable(former, context, error) from error
    if key.redis_type == "string":
        return (opened.get((None, stored), stored),)
    if key.redis_type == "list":
        return tuple(opened.get((None, item), item) for item in stored)
    return tuple(
        part for field, value in pairs(stored) for part in (field, opened.get((field, value), value))
    )


def _unchanged(former: Key, stored: Any, dump: bytes) -> Check:
    if former.redis_type == "string":
        return equals(former, stored)
    if former.redis_type == "hash":
        return hash_is(former, dict(pairs(stored)))
    return serialised_as(former, hashlib.sha1(dump).hexdigest())  # as the script computes it
