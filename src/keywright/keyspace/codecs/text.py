"""Values that are text, ids or plain bytes already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keywright.keyspace.alphabets import Alphabet
from keywright.keyspace.codecs.contract import Codec

__all__ = ["IdOf", "Raw", "Text"]

_utf8 = str.encode


class Text(Codec[str]):
    """UTF-8. A lone surrogate has no UTF-8 form and is refused."""

    expected = "UTF-8 text"
    python_type = str
    samples = ("", "plain", "naïve café ☕ 𝄞", "\x00\r\n")

    def encode(self, value: str) -> bytes:
        try:
            return _utf8(value)
        except (TypeError, UnicodeEncodeError) as exc:
            raise self.refusal(value) from exc

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as exc:
            raise self.refusal(data) from exc

    def decode_many(self, replies: Sequence[bytes | None]) -> list[str | None]:
        try:
            return [None if data is None else data.decode() for data in replies]
        except UnicodeDecodeError:
            return super().decode_many(replies)


class Raw(Codec[bytes]):
    """Bytes, untouched."""

    expected = "bytes"
    python_type = bytes
    samples = (b"", b"\x00\xff\r\n")

    def encode(self, value: bytes) -> bytes:
        if isinstance(value, bytes):
            return value
        raise self.refusal(value)

    def decode(self, data: bytes) -> bytes:
        return data


class IdOf(Codec[Any]):
    """An id, written as its alphabet writes it in key names."""

    def __init__(self, alphabet: Alphabet[Any]) -> None:
        self.expected = alphabet.expected
        self.python_type = alphabet.python_type
        self.samples = tuple(alphabet.samples)
        self.alphabet = alphabet
        self._render = alphabet.render
        self._parse = alphabet.parse

    def encode(self, value: Any) -> bytes:
        try:
            return self._render(value).encode()
        except Exception as exc:
            raise self.refusal(value) from exc

    def decode(self, data: bytes) -> Any:
        try:
            return self._parse(data.decode())
        except Exception as exc:
            raise self.refusal(data) from exc
