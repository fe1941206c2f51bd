"""How message bodies are written, and how any of them is recognised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar, get_args, overload

import msgspec

from keywright.errors import KeywrightError, UsageError
from keywright_messaging import etf
from keywright_messaging.errors import UndecodableError, UnwritableError

__all__ = ["CONTENT_TYPES", "Encoding", "decode", "encode"]

T = TypeVar("T")
_Reader = Callable[[bytes, Any], Any]

_BEYOND_TAGS = 0x80
_EXCERPT = 80
_LONGEST_REASON = 200


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


CONTENT_TYPES: Mapping[Encoding, str] = MappingProxyType(
    {
        Encoding.JSON: "application/json",
        Encoding.ETF: "application/x-erlang-etf",
        Encoding.MSGPACK: "application/msgpack",
        Encoding.SPECTACLES: "application/msgpack",
    }
)
"""What a broker that labels its messages puts on each encoding."""

_to_json = msgspec.json.Encoder().encode
_to_msgpack = msgspec.msgpack.Encoder().encode
_from_json = msgspec.json.Decoder().decode
_from_msgpack = msgspec.msgpack.Decoder().decode


def encode(data: object, encoding: Encoding) -> bytes:
    """The body; `msgspec.Raw` is JSON text. Raises UnwritableError for what cannot be written.

    JSON takes a Raw as it stands, also deep inside other data; SPECTACLES does too. For MSGPACK and ETF a Raw
    must be all of the data: it is read and written anew. ETF holds what the JSON would, bytes as base64 too;
    but integers stay integers as keys, and nan is refused instead of becoming null.
    """
    try:
        if encoding is Encoding.JSON:
            return _to_json(data)
        return _WRITERS[Encoding(encoding)](data)
    except Exception as exc:
        raise UnwritableError(encoding, f"a value of type {type(data).__name__} ({_reason(exc)})") from exc


def _write_msgpack(data: object) -> bytes:
    return _to_msgpack(_from_json(data) if type(data) is msgspec.Raw else data)


def _write_spectacles(data: object) -> bytes:
    return _to_msgpack(_to_json(data).decode())


def _write_etf(data: object) -> bytes:
    return etf.encode(_from_json(data) if type(data) is msgspec.Raw else msgspec.to_builtins(data))


_WRITERS: dict[Encoding, Callable[[object], bytes]] = {
    Encoding.JSON: _to_json,
    Encoding.ETF: _write_etf,
    Encoding.MSGPACK: _write_msgpack,
    Encoding.SPECTACLES: _write_spectacles,
}


@overload
def decode(body: bytes, *, content_type: str | None = None) -> Any: ...
@overload
def decode(body: bytes, to: type[T], *, content_type: str | None = None) -> T: ...
def decode(body: bytes, to: Any = Any, *, content_type: str | None = None) -> Any:
    """The data of a body in any of the encodings, told apart by its first bytes. Raises UndecodableError.

    A content type that is known decides instead. Otherwise, and where two encodings share their first byte:

    - one ASCII digit alone is JSON, though MessagePack writes 48 to 57 so;
    - 131 opens both ETF and MessagePack's maps of three entries: what reads as ETF to its end is ETF. A map
      whose first key is text never does.

    A MessagePack string or binary that holds JSON text is what that JSON says; with other text it is itself.
    """
    try:
        return _reader_of(body, content_type)(body, to)
    except KeywrightError:
        raise
    except Exception as exc:
        raise UndecodableError(_expectation(to), f"{_excerpt(body)} ({_reason(exc)})") from exc


def _reader_of(body: bytes, content_type: str | None) -> _Reader:
    if content_type is not None:
        reader = _BY_CONTENT_TYPE.get(content_type.partition(";")[0].strip().lower())
        if reader is not None:
            return reader
    if len(body) > 1:
        return _BY_FIRST_BYTE[body[0]]
    return _read_json if body.isdigit() or not body else _read_msgpack


def _read_json(body: bytes, to: Any) -> Any:
    return _from_json(body) if to is Any else _json_decoder(to).decode(body)


def _read_msgpack(body: bytes, to: Any) -> Any:
    if body and body[0] in _TEXT_OPENERS:
        return _unwrapped(_from_msgpack(body), to)
    return _from_msgpack(body) if to is Any else _msgpack_decoder(to).decode(body)


def _unwrapped(text: str | bytes, to: Any) -> Any:
    try:
        return _from_json(text) if to is Any else _json_decoder(to).decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        # Text for who wants text, even if it begins as JSON does: "7 wonders".
        try:
            return msgspec.convert(text, to, builtin_types=(bytes,))
        except msgspec.ValidationError:
            raise exc from None


def _read_etf(body: bytes, to: Any) -> Any:
    data = etf.decode(body)
    return data if to is Any else _converted(data, to)


def _read_etf_or_map(body: bytes, to: Any) -> Any:
    if body[1] >= _BEYOND_TAGS:
        return _read_msgpack(body, to)
    try:
        data = etf.decode(body)
    except etf.EtfError as exc:
        try:
            return _read_msgpack(body, to)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise exc from None
    return data if to is Any else _converted(data, to)


def _converted(data: Any, to: Any) -> Any:
    _json_decoder(to)  # refuses what is no type of messages
    return msgspec.convert(data, to)


def _json_decoder(to: Any) -> msgspec.json.Decoder[Any]:
    decoder: msgspec.json.Decoder[Any] = _decoder(msgspec.json.Decoder, to)
    return decoder


def _msgpack_decoder(to: Any) -> msgspec.msgpack.Decoder[Any]:
    decoder: msgspec.msgpack.Decoder[Any] = _decoder(msgspec.msgpack.Decoder, to)
    return decoder


def _decoder(kind: Callable[[Any], Any], to: Any) -> Any:
    try:
        return _kept_decoder(kind, to)
    except TypeError:
        pass  # perhaps only unhashable, such as an Annotated with a dict
    try:
        return kind(to)
    except TypeError as exc:
        raise _unreadable(to, exc) from exc


@lru_cache(maxsize=512)
def _kept_decoder(kind: Callable[[Any], Any], to: Any) -> Any:
    return kind(to)


# By the first byte: the string and binary families of MessagePack, then where JSON can begin.
_TEXT_OPENERS = frozenset([*range(0xA0, 0xC0), 0xC4, 0xC5, 0xC6, 0xD9, 0xDA, 0xDB])
_JSON_OPENERS = frozenset(b' \t\n\r{["-0123456789tfn')
_BY_FIRST_BYTE: list[_Reader] = [
    _read_json if first in _JSON_OPENERS else _read_etf_or_map if first == etf.VERSION else _read_msgpack
    for first in range(256)
]
_BY_CONTENT_TYPE: dict[str, _Reader] = {
    "application/json": _read_json,
    "application/msgpack": _read_msgpack,
    "application/x-msgpack": _read_msgpack,
    "application/vnd.msgpack": _read_msgpack,
    "application/x-erlang-etf": _read_etf,
}


def _unreadable(to: Any, exc: TypeError) -> UsageError:
    return UsageError(
        f"a message cannot be read as {_name_of(to)}: {_reason(exc)}. "
        f"Use a type msgspec knows, such as a struct or a dataclass."
    )


def _expectation(to: Any) -> str:
    return "JSON, MessagePack or ETF" if to is Any else f"a {_name_of(to)}"


def _name_of(to: Any) -> str:
    plain = isinstance(to, type) and not get_args(to)
    return to.__name__ if plain else str(to).replace("typing.", "")


def _excerpt(body: bytes) -> str:
    shown = repr(body[:_EXCERPT])
    return shown if len(body) <= _EXCERPT else f"{shown}… of {len(body)} bytes"


def _reason(exc: Exception) -> str:
    text = str(exc) or type(exc).__name__
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
