"""How message bodies are written, and how any of them is recognised."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar, overload

__all__ = ["Encoding", "decode", "encode"]

T = TypeVar("T")


class Encoding(StrEnum):
    """How a body is written."""

    JSON = "json"
    """The Spectacles document's choice."""
    ETF = "etf"
    """Erlang's external term format, the document's other choice."""
    MSGPACK = "msgpack"
    """What the published Spectacles clients of today send."""
    SPECTACLES = "spectacles"
    """JSON text inside a MessagePack string: the Go gateway's form, and the only one its SEND reads."""


def encode(data: object, encoding: Encoding) -> bytes:
    """The body; `msgspec.Raw` is JSON text. Raises ValueRefusedError for what cannot be written."""
    raise NotImplementedError


@overload
def decode(body: bytes, *, content_type: str | None = None) -> Any: ...
@overload
def decode(body: bytes, to: type[T], *, content_type: str | None = None) -> T: ...
def decode(body: bytes, to: Any = Any, *, content_type: str | None = None) -> Any:
    """The data of a body in any of the encodings, told apart by its first bytes. Raises UndecodableError."""
    raise NotImplementedError
