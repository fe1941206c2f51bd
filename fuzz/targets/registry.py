"""Values of the registry's cache: MessagePack of Go's structs, integers and log positions."""

from __future__ import annotations

from typing import Any

from keywright import Codec, CodecError
from keywright_registry.go_encoding import GoInt64, GoRepository, LogPosition

CODECS: tuple[Codec[Any], ...] = (GoRepository(), GoInt64(), LogPosition())


def one_input(data: bytes) -> None:
    for codec in CODECS:
        try:
            value = codec.decode(data)
        except CodecError:
            continue
        assert codec.decode(codec.encode(value)) == value, value
