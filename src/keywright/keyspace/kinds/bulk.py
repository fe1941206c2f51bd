"""Batched reads of many strings by name (MGET)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from keywright.errors import KeywrightError, SealError, StoredDataError, WrongTypeError
from keywright.keyspace.call import Call
from keywright.keyspace.codecs import Codec, CodecError, SealRefused
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Decoded, DecodedAlong, Effect, Operation, Reply, Rounds, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.key import Key

T = TypeVar("T")

GET_MANY = Operation("get_many", b"MGET", Effect.READ)
GET = Operation("get_many", b"GET", Effect.READ)
GET_RENEWING = Operation("get_many", b"GETEX", Effect.REPEATABLE)

# Of one MGET: values are decoded while the server works on the next one.
LEAST_NAMES, MOST_NAMES = 256, 1024


class BulkRead(Call[list[T | None]]):
    """MGET in bounded batches, so that no single command blocks the server for long; by slot on a cluster."""

    __slots__ = ("codec", "kind", "names")

    def __init__(self, kind: type[Key], names: list[bytes], codec: Codec[T]) -> None:
        self.kind = kind
        self.names = names
        self.codec = codec

    def rounds(self, context: Context) -> Rounds[list[T | None]]:
        lead = context.prefixes[self.kind._space]
        names = [lead + name for name in self.names] if lead else self.names
        expiry = context.expiry_of(self.kind)
        if expiry is not None and expiry.sliding:
            replies = yield [self._renewing(name, expiry, context) for name in names]
            found: list[Any] = [checked(reply) for reply in replies]
        elif self.kind in context.cached:
            replies = yield [Wire((b"GET", name), name, GET, self.kind) for name in names]
            found = [None if isinstance(reply, WrongTypeError) else checked(reply) for reply in replies]
        elif context.sharded:
            groups = _by_slot(names)
            replies = yield [wire for group in groups for wire in self._wires([names[i] for i in group])]
            found = [None] * len(names)
            values = (value for reply in replies for value in checked(reply))
            for group in groups:
                for index in group:
                    found[index] = next(values)
        else:
            wires = self._wires(names)
            replies = yield wires if self.kind._sealed else DecodedAlong(wires, self.codec.decode_many)
            if type(replies) is Decoded:
                return list(chain.from_iterable(replies))
            found = list(chain.from_iterable(map(checked, replies)))
        return self._decoded(found, names, context)

    def _renewing(self, name: bytes, expiry: Expiry, context: Context) -> Wire:
        """Return a command that reads one value and renews its sliding expiry, which MGET does not."""
        return Wire((b"GETEX", name, *expiry.arguments(context)), name, GET_RENEWING, self.kind)

    def _wires(self, names: list[bytes]) -> list[Wire]:
        return mget(names, self.kind, min(max(len(names) // 4, LEAST_NAMES), MOST_NAMES))

    def _decoded(self, found: list[Any], names: list[bytes], context: Context) -> list[T | None]:
        if self.kind._sealed:
            return [self._decode_one(*pair, context) for pair in zip(names, found, strict=True)]
        try:
            return self.codec.decode_many(found)
        except CodecError:
            for name, value in zip(names, found, strict=True):
                self._decode_one(name, value, context)
            raise

    def _decode_one(self, name: bytes, value: bytes | None, context: Context) -> T | None:
        try:
            return None if value is None else self.codec.decode(context.placed(self.kind, name, value))
        except CodecError as error:
            if self.kind.hides:
                error.withhold()
            kind = SealError if isinstance(error, SealRefused) else StoredDataError
            raise kind(name, self.kind._template.source, error.expected, error.found) from error


def mget(names: list[bytes], kind: type[Key], chunk: int) -> list[Wire]:
    """Read names with MGET, in batches."""
    return [
        Wire((b"MGET", *names[start : start + chunk]), names[start], GET_MANY, kind)
        for start in range(0, len(names), chunk)
    ]


def checked(reply: Reply) -> Any:
    """Return a reply. Raise it if it is an error."""
    if isinstance(reply, KeywrightError):
        raise reply
    return reply


def _by_slot(names: list[bytes]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for index, name in enumerate(names):
        groups.setdefault(slot_of(name), []).append(index)
    return list(groups.values())
