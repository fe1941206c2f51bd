"""The encodings of message bodies, and how received ones are recognised (docs/resolutions.md#encoding)."""

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
    """The encoding of a body."""

    JSON = "json"
    """The default of the Spectacles document."""
    ETF = "etf"
    """Erlang's external term format, the alternative of the document."""
    MSGPACK = "msgpack"
    """The encoding of the published Spectacles clients."""
    SPECTACLES = "spectacles"
    """JSON text inside a MessagePack string: the form of the Go gateway, and the only one its SEND takes."""


CONTENT_TYPES: Mapping[Encoding, str] = MappingProxyType(
    {
        Encoding.JSON: "application/json",
        Encoding.ETF: "application/x-erlang-etf",
        Encoding.MSGPACK: "application/msgpack",
        Encoding.SPECTACLES: "application/msgpack",
    }
)
"""The content type of each encoding, for brokers that label messages."""

_to_json = msgspec.json.Encoder().encode
_to_msgpack = msgspec.msgpack.Encoder().encode
_from_json = msgspec.json.Decoder().decode
_from_msgpack = msgspec.msgpack.Decoder().decode


def encode(data: object, encoding: Encoding) -> bytes:
    """Return the body of a message; `msgspec.Raw` is JSON text. Raise UnwritableError if encoding fails.

    JSON and SPECTACLES copy a Raw unchanged, also inside other data. With MSGPACK and ETF a Raw must be the
    whole data: it is decoded and encoded again. ETF has the values of the JSON, with bytes as base64; but
    integer keys stay integers, and nan is refused instead of becoming null.
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
    """Return the data of a body in any encoding, recognised by its first bytes. Raise UndecodableError.

    A known content type takes precedence. Where two encodings share their first byte:

    - a single ASCII digit is JSON, though it is also MessagePack for 48 to 57;
    - 131 begins both ETF and MessagePack's maps of three entries: a body that is valid ETF to its end is ETF.
      A map whose first key is text never is.

    A MessagePack string or binary with JSON text is decoded as that JSON; other text is returned as it is.
    """
    try:
        return _reader_of(body, content_type)(body, to)
    except KeywrightError:
        raise
    except Exception as exc:
        expected = "JSON, MessagePack or ETF" if to is Any else f"a {_name_of(to)}"
        raise UndecodableError(expected, f"{_excerpt(body)} ({_reason(exc)})") from exc


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
        # Not JSON, though it may begin like it: "7 wonders". It is the text itself, if text is expected.
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
    _json_decoder(to)  # raises UsageError for a type that messages cannot have
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
        pass  # may be unhashable only, such as an Annotated with a dict
    try:
        return kind(to)
    except TypeError as exc:
        raise UsageError(
            f"a message cannot be decoded as {_name_of(to)}: {_reason(exc)}. "
            f"Use a type that msgspec knows, such as a struct or a dataclass."
        ) from exc


@lru_cache(maxsize=512)
def _kept_decoder(kind: Callable[[Any], Any], to: Any) -> Any:
    return kind(to)


# First bytes: those of MessagePack strings and binaries, and those of JSON.
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


def _name_of(to: Any) -> str:
    plain = isinstance(to, type) and not get_args(to)
    return to.__name__ if plain else str(to).replace("typing.", "")


def _excerpt(body: bytes) -> str:
    shown = repr(body[:_EXCERPT])
    return shown if len(body) <= _EXCERPT else f"{shown}… of {len(body)} bytes"


def _reason(exc: Exception) -> str:
    text = str(exc) or type(exc).__name__
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
