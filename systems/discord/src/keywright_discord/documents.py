"""How Discord's objects are stored: JSON objects, as they came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, cast

import msgspec

from keywright import Codec, IdOf, SnowflakeText

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class JsonObject(Codec[dict[str, Any]]):
    """A JSON object; bytes of one are stored as they are, so what was received is not encoded again."""

    expected = "a JSON object"
    python_type = dict
    samples = ({}, {"id": "151120006600001", "roles": [], "nick": None})

    def encode(self, value: dict[str, Any] | bytes) -> bytes:
        if type(value) is bytes:
            return value
        if not isinstance(value, dict):
            raise self.refusal(value)
        try:
            return _encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.refusal(value, error) from error

    def encode_many(self, values: Sequence[dict[str, Any] | bytes]) -> list[bytes]:
        if set(map(type, values)) == {bytes}:
            return list(cast("Sequence[bytes]", values))
        return [self.encode(value) for value in values]

    def decode(self, data: bytes) -> dict[str, Any]:
        try:
            return _decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self.refusal(data, error) from error


class StoredId(IdOf):
    """The id of another entity; like a document's, its bytes are stored as they are."""

    def __init__(self) -> None:
        super().__init__(SnowflakeText())

    def encode(self, value: str | bytes) -> bytes:
        return value if type(value) is bytes else super().encode(value)


Document: TypeAlias = Annotated[dict[str, Any], JsonObject()]
Reference: TypeAlias = Annotated[str, StoredId()]
