"""Many strings by name in one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from keywright.errors import KeywrightError, StoredDataError
from keywright.keyspace.call import Call, Effect, Operation, Reply, Rounds, Wire
from keywright.keyspace.codecs import Codec, CodecError
from keywright.keyspace.slots import slot_of

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

T = TypeVar("T")

GET_MANY = Operation("get_many", b"MGET", Effect.READ)


class BulkRead(Call[list[T | None]]):
    """MGET in bounded pieces, so that no single command holds the server for long; by slot on a cluster."""

    CHUNK = 4096
    __slots__ = ("codec", "kind", "names")

    def __init__(self, kind: type[Key], names: list[bytes], codec: Codec[T]) -> None:
        self.kind = kind
        self.names = names
        self.codec = codec

    def rounds(self, context: Context) -> Rounds[list[T | None]]:
        lead = context.prefixes[self.kind._space]
        names = [lead + name for name in self.names] if lead else self.names
        if context.sharded:
            groups = _by_slot(names)
            replies = yield [wire for group in groups for wire in self._wires([names[i] for i in group])]
            found: list[Any] = [None] * len(names)
            values = (value for reply in replies for value in _checked(reply))
            for group in groups:
                for index in group:
                    found[index] = next(values)
        else:
            replies = yield self._wires(names)
            found = [value for reply in replies for value in _checked(reply)]
        return self._decoded(found, names, context)

    def _wires(self, names: list[bytes]) -> list[Wire]:
        return [
            Wire((b"MGET", *names[start : start + self.CHUNK]), names[start], GET_MANY, self.kind)
            for start in range(0, len(names), self.CHUNK)
        ]

    def _decoded(self, found: list[Any], names: list[bytes], context: Context) -> list[T | None]:
        if self.kind._sealed:
            found = [context.unseal(self.kind, value) for value in found]
        try:
            return self.codec.decode_many(found)
        except CodecError:
            for name, value in zip(names, found, strict=True):
                self._decode_one(name, value)
            raise

    def _decode_one(self, name: bytes, value: bytes | None) -> None:
        try:
            if value is not None:
                self.codec.decode(value)
        except CodecError as error:
            raise StoredDataError(name, self.kind._template.source, error.expected, error.found) from error


def _checked(reply: Reply) -> list[Any]:
    if isinstance(reply, KeywrightError):
        raise reply
    values: list[Any] = reply
    return values


def _by_slot(names: list[bytes]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for index, name in enumerate(names):
        groups.setdefault(slot_of(name), []).append(index)
    return list(groups.values())
