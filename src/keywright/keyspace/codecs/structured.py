"""Values with parts, written whole: JSON and MessagePack, both by msgspec."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Union, get_args, get_origin, is_typeddict

import msgspec

from keywright.errors import UsageError
from keywright.keyspace.codecs.contract import Codec
from keywright.keyspace.codecs.members import undeclared_members
from keywright.keyspace.codecs.models import dumped, foreign_types, loaded
from keywright.keyspace.codecs.samples import samples_of
from keywright.keyspace.misuse import explained_constructor

__all__ = ["DEEPEST", "Json", "MessagePack"]

DEEPEST = 200
"""The levels of nesting that are written as JSON. How many can be read depends on Python and on the stack of
the caller: less than 1,000 before 3.14."""

_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))
_STRING = re.compile(rb'"[^"]*"')


class _Structured(Codec[Any]):
    """Only the outermost type is checked on writing: what is inside is the type checker's business.

    `samples` are values for the proof, of types for which none can be generated.
    """

    def __init__(
        self,
        form: str,
        hint: Any,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
        samples: tuple[Any, ...],
        *,
        strict: bool,
    ) -> None:
        for foreign in foreign_types(hint):
            raise UsageError(unwritable(foreign, form))
        self.expected = form if hint in (Any, object) else f"{form} of {_name_of(hint)}"
        self.python_type = hint
        self.strict = strict
        accepted = _accepted_classes(hint)
        self._accepted = accepted[0] if len(accepted) == 1 else accepted  # a lone class is checked faster
        self._encode = encode
        self._decode = decode
        self.quick_decode = decode
        self.samples = samples or samples_of(hint)

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, self._accepted):
            raise self.refusal(value)
        try:
            return self._encode(value)
        except Exception as exc:
            raise self.refusal(value, exc) from exc

    def decode(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except Exception as exc:
            raise self.refusal(data, exc) from exc

    def decode_many(self, replies: Sequence[bytes | None]) -> list[Any]:
        decode = self._decode
        try:
            return list(map(decode, replies))  # type: ignore[arg-type]  # a missing one raises
        except Exception:  # noqa: BLE001  # the careful way says what is wrong
            pass
        try:
            return [None if data is None else decode(data) for data in replies]
        except Exception:
            super().decode_many(replies)  # raises for the first reply that is wrong
            raise


@explained_constructor
class Json(_Structured):
    """Compact UTF-8 JSON. Integers stay exact, null stays null, an empty list stays a list.

    JSON has no nan or infinity: msgspec writes them as null. A model of Pydantic is written as it dumps it.
    More than 200 levels of nesting are refused: another Python might not read them.
    """

    def __init__(self, hint: Any = Any, *, strict: bool = True, samples: tuple[Any, ...] = ()) -> None:
        encoder = msgspec.json.Encoder(enc_hook=dumped)

        def encode(value: Any) -> bytes:
            data = encoder.encode(value)
            if len(data) > DEEPEST and data.count(b"[") + data.count(b"{") > DEEPEST and _is_deep(data):
                raise ValueError(f"nested deeper than {DEEPEST} levels")
            return data

        decoder = msgspec.json.Decoder(hint, strict=strict, dec_hook=loaded)
        super().__init__("JSON", hint, encode, decoder.decode, samples, strict=strict)
        self.undeclared = undeclared_members(hint, msgspec.json.Decoder)


@explained_constructor
class MessagePack(_Structured):
    """MessagePack. Integers beyond 64 bits are refused."""

    def __init__(self, hint: Any = Any, *, strict: bool = True, samples: tuple[Any, ...] = ()) -> None:
        encoder = msgspec.msgpack.Encoder(enc_hook=dumped)
        decoder = msgspec.msgpack.Decoder(hint, strict=strict, dec_hook=loaded)
        super().__init__("MessagePack", hint, encoder.encode, decoder.decode, samples, strict=strict)
        self.undeclared = undeclared_members(hint, msgspec.msgpack.Decoder)


def _is_deep(data: bytes) -> bool:
    """Return whether JSON is nested deeper than DEEPEST. Nothing here is a Python loop over its bytes."""
    if b"\\" in data:
        data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    brackets = data.translate(_AS_SQUARE, _OTHERS).replace(b'""', b"")
    if b'"' in brackets:
        brackets = _STRING.sub(b"", brackets)
    for _ in range(DEEPEST):
        brackets = brackets.replace(b"[]", b"")  # the innermost level
        if not brackets:
            return False
    return True


def unwritable(kind: Any, form: str) -> str:
    """Return why a type has no stored form, and the remedy."""
    name = _name_of(kind)
    return (
        f"{name} cannot be written as {form}. Use a msgspec.Struct, a dataclass or a Pydantic model, "
        f"or write a Codec of your own: Annotated[{name}, YourCodec()]"
    )


def _accepted_classes(hint: Any) -> tuple[type, ...]:
    """Return the classes that a value of the hint may have; object if it does not say."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(found for arm in get_args(hint) for found in _accepted_classes(arm))
    if get_origin(hint) is Annotated:
        return _accepted_classes(hint.__origin__)
    if hint is Any:
        return (object,)
    if hint is None:
        return (type(None),)
    if is_typeddict(hint):
        return (dict,)
    outer = get_origin(hint) or hint
    if outer is float:
        return (float, int)
    return (outer,) if isinstance(outer, type) else (object,)


def _name_of(hint: Any) -> str:
    if hint is type(None):
        return "None"
    if isinstance(hint, type) and not get_args(hint):
        return hint.__name__
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(_name_of(arm) for arm in get_args(hint))
    arms = ", ".join("…" if arm is Ellipsis else _name_of(arm) for arm in get_args(hint))
    return f"{_name_of(get_origin(hint))}[{arms}]" if arms else str(hint).removeprefix("typing.")
