"""Inputs of a form: how a value of a codec is entered as text, and read from it.

Text codecs read the text as it is stored; JSON and MessagePack are entered as JSON. A value that may not be
shown, or that a form cannot keep exactly, has an empty input: left empty, it keeps the stored value.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from keywright.explorer.atlas import text_of
from keywright.keyspace import Secret
from keywright.keyspace.codecs import (
    Boolean,
    Codec,
    CodecError,
    EmptyAsNone,
    EnumOf,
    Flag,
    Float,
    Int64,
    Json,
    LiteralOf,
    MessagePack,
    Pickled,
    Raw,
    SecretOf,
    Uint64,
)
from keywright.tools.describe.words import type_of

__all__ = ["Input", "entered", "input_of", "parse", "written"]

LONGEST = 64 * 1024
"""The most characters that a form shows of one value."""
A_LINE = 100
BASE64 = "base64:"
TRUE, FALSE = "true", "false"


class Input(msgspec.Struct):
    """One input: `sort` is text, long, number, check, choice, json or secret."""

    name: str
    label: str
    sort: str
    declared: str
    text: str = ""
    choices: list[str] = []
    required: bool = True
    kept: bool = False
    """Whether an empty text keeps the stored value."""
    fixed: bool = False
    """Whether the value names what is edited, so that it cannot be changed."""
    problem: str | None = None
    stored: str | None = None
    """The text that is stored now, where another writer changed it."""


def input_of(
    name: str,
    label: str,
    codec: Codec[Any],
    data: bytes | None = None,
    *,
    required: bool = True,
    hidden: bool = False,
) -> Input:
    """Return the input of a codec, filled with the stored bytes unless they are hidden."""
    bare, declared = _inner(codec), type_of(codec).words
    made = Input(name, label, _sort(bare), declared, choices=_choices(bare), required=required)
    if made.sort == "check" and not required and not isinstance(bare, Flag):
        made.sort, made.choices = "choice", [TRUE, FALSE]
    if codec.secret or codec.sealed:
        made.sort, made.kept, made.choices = "secret", data is not None, []
        return made
    if hidden and data is not None:
        made.kept = True
        made.declared += ", which may hold secrets: leave it empty to keep it"
        return made
    if data is None:
        made.text = FALSE if made.sort == "check" else ""
        return made
    text = _stored_text(codec, bare, data)
    if text is None or len(text) > LONGEST:
        made.kept = True
        made.declared += ", which a form cannot show: leave it empty to keep it"
        return made
    made.text = text
    if made.sort == "text" and ("\n" in text or len(text) > A_LINE):
        made.sort = "long"
    return made


def parse(codec: Codec[Any], text: str) -> Any:
    """Return the value of an entered text. Raise CodecError if it is not of the declared type."""
    if isinstance(codec, SecretOf):
        return Secret(parse(codec.inner, text))
    if isinstance(codec, EmptyAsNone):
        return parse(codec.inner, text) if text else None
    inner = getattr(codec, "inner", None)
    if isinstance(inner, Codec):
        return parse(inner, text)
    if isinstance(codec, Boolean | Flag):
        if text not in (TRUE, FALSE):
            raise CodecError("true or false", repr(text[:80]))
        return text == TRUE
    if isinstance(codec, Pickled):
        raise CodecError("a value that can be entered as text", "a pickle, which could run any code")
    if isinstance(codec, MessagePack):
        return Json(codec.python_type).decode(text.encode())
    if isinstance(codec, Raw) and text.startswith(BASE64):
        try:
            return base64.b64decode(text.removeprefix(BASE64), validate=True)
        except binascii.Error as error:
            raise CodecError("base64", repr(text[:80])) from error
    return codec.decode(text.encode())


def written(codec: Codec[Any], value: Any) -> str | None:
    """Return the text of a value in a form, or None if a form cannot keep it exactly."""
    bare = _inner(codec)
    if isinstance(bare, Boolean | Flag):
        return TRUE if value else FALSE
    if value is None:
        return ""
    if isinstance(bare, Json | MessagePack):
        encoded = Json(bare.python_type).encode(value)
        return _kept_text(msgspec.json.format(encoded, indent=2))
    encoded = bare.encode(value)
    text = _kept_text(encoded)
    if isinstance(bare, Raw) and (text is None or text.startswith(BASE64)):
        return BASE64 + base64.b64encode(encoded).decode()
    return text


def entered(text: str, before: str) -> str:
    """Return a text without the line ends that a browser gives it, unless the value had them."""
    return text if "\r\n" in before else text.replace("\r\n", "\n")


def _stored_text(codec: Codec[Any], bare: Codec[Any], data: bytes) -> str | None:
    try:
        return written(codec, codec.decode(data))
    except (CodecError, ValueError):
        # As it is stored, to be corrected.
        return FALSE if isinstance(bare, Boolean | Flag) else _kept_text(data)


def _kept_text(data: bytes) -> str | None:
    """Return bytes as text if a form sends it back as it is: it changes line ends and control characters."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    whole = text.replace("\r\n", "\n") if "\n" not in text.replace("\r\n", "") else text
    return text if not any(char < " " and char not in "\n\t" for char in whole) else None


def _inner(codec: Codec[Any]) -> Codec[Any]:
    inner = getattr(codec, "inner", None)
    return _inner(inner) if isinstance(inner, Codec) else codec


def _sort(bare: Codec[Any]) -> str:
    if isinstance(bare, Boolean | Flag):
        return "check"
    if isinstance(bare, EnumOf | LiteralOf):
        return "choice"
    if isinstance(bare, Json | MessagePack):
        return "json"
    return "number" if isinstance(bare, Int64 | Uint64 | Float) else "text"


def _choices(bare: Codec[Any]) -> list[str]:
    if not isinstance(bare, EnumOf | LiteralOf):
        return []
    return [text_of(bare.encode(each)) for each in bare.samples]
