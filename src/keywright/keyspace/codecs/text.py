"""Values that are text, ids or plain bytes already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from keywright.keyspace.alphabets import Alphabet
from keywright.keyspace.codecs.contract import Codec
from keywright.keyspace.misuse import explained_constructor

__all__ = ["IdOf", "Raw", "Text"]

_utf8 = str.encode
_PLAIN = frozenset([bytes, type(None)])


class Text(Codec[str]):
    """UTF-8. A lone surrogate has no UTF-8 form and is refused."""

    expected = "UTF-8 text"
    python_type = str
    samples = ("", "plain", "naïve café ☕ 𝄞", "\x00\r\n")
    quick_encode = staticmethod(str.encode)
    quick_decode = staticmethod(bytes.decode)
    inline_encode = "{0}.encode() if {0}.__class__ is str else {1}({0})"
    inline_decode = "{0}.decode()"

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
        return bytes(data)  # without the place of bytes that look like a seal

    def decode_many(self, replies: Sequence[bytes | None]) -> list[bytes | None]:
        return list(replies) if set(map(type, replies)) <= _PLAIN else super().decode_many(replies)


@explained_constructor
class IdOf(Codec[Any]):
    """An id, written as its alphabet writes it in key names."""

    def __init__(self, alphabet: Alphabet[Any]) -> None:
        self.expected = alphabet.expected
        self.python_type = alphabet.python_type
        self.samples = tuple(alphabet.samples)
        self.alphabet = alphabet
        self._errors = "strict" if alphabet.is_text else "surrogateescape"
        self.quick_encode = _quick_encoder(alphabet)
        self._render = alphabet.render
        self._parse = alphabet.parse

    def encode(self, value: Any) -> bytes:
        try:
            return self._render(value).encode(errors=self._errors)
        except Exception as exc:
            raise self.refusal(value) from exc

    def encode_many(self, values: Sequence[Any]) -> list[bytes]:
        # Checking together has a price of its own, which a few ids do not win back.
        return super().encode_many(values) if len(values) < 8 else self.alphabet.render_all(values)

    def decode_many(self, replies: Sequence[bytes | None]) -> list[Any]:
        if replies and None not in replies:
            try:
                return self.alphabet.read_all(cast("Sequence[bytes]", replies))
            except ValueError:
                pass  # one by one it is found which
        return super().decode_many(replies)

    def decode(self, data: bytes) -> Any:
        try:
            return self._parse(data.decode(errors=self._errors))
        except Exception as exc:
            raise self.refusal(data) from exc


def _quick_encoder(alphabet: Alphabet[Any]) -> Callable[[Any], bytes] | None:
    """Return an encoder with the check in line, for an alphabet that writes values verbatim."""
    condition = alphabet.inline("value", "match")
    if condition is None:
        return None
    scope: dict[str, Any] = {"match": alphabet.matcher}
    body = f"if {condition}:\n        return f'{{value}}'.encode()\n    raise ValueError"
    exec(f"def encode(value):\n    {body}", scope)
    encode: Callable[[Any], bytes] = scope["encode"]
    return encode
