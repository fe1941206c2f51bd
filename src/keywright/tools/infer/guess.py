"""A guess at one stored value without a declaration: what it looks like, and the value if it can be read.

Nothing is executed: of a pickle only the opcodes are listed. Unpacking is bounded.
"""

from __future__ import annotations

import pickletools
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from keywright.errors import MissingDependencyError
from keywright.keyspace import CodecError, Gzip, Lz4, Raw, Zlib, Zstd
from keywright.keyspace.codecs import UnpackedTooLarge, unpacking_at_most
from keywright.tools.infer.forms import are_hyperloglogs, are_pickles, opaque_form
from keywright.tools.infer.values import scalar_hint

__all__ = ["Guess", "guess"]

MOST_UNPACKED = 1 << 20
MOST_LAYERS = 3
MOST_OPCODES = 2_000
DEEPEST = 64
MOST_BITS = 4096
_COMPRESSIONS = tuple(make(Raw()) for make in (Zlib, Gzip, Lz4, Zstd))
_packed = msgspec.msgpack.Decoder(ext_hook=lambda _, data: bytes(data))
_WORDS = {"int": "a number", "float": "a number", "Decimal": "a number", "date": "a date", "UUID": "a UUID"}
_TIMES = {"EpochSeconds()": 1.0, "EpochFloat()": 1.0, "EpochMs()": 1000.0}


class Guess(NamedTuple):
    """What bytes look like, in words; empty for plain text. `value` is the bytes if they cannot be read."""

    form: str
    value: Any


def guess(data: bytes, most: int = MOST_UNPACKED, layers: int = 0) -> Guess:
    """Return what one value looks like. A compressed one is unpacked up to `most` bytes."""
    if not data:
        return Guess("", "")
    return (
        _unpacked(data, most, layers)
        or _pickle(data)
        or _document(data)
        or _opaque(data)
        or _text(data)
        or Guess("", data)
    )


def _unpacked(data: bytes, most: int, layers: int) -> Guess | None:
    for codec in _COMPRESSIONS:
        if not codec.recognises(data):
            continue
        try:
            with unpacking_at_most(most):
                plain = codec.decode(data)
        except MissingDependencyError:
            return Guess(f"compressed with {codec.form}", data)
        except CodecError as error:
            if isinstance(error, UnpackedTooLarge):
                return Guess(f"compressed with {codec.form}, and too large to be unpacked here", data)
            continue
        if layers >= MOST_LAYERS:
            return Guess(f"compressed with {codec.form}, several times", data)
        inner = guess(plain, most, layers + 1)
        return Guess(f"{inner.form or 'text'}, compressed with {codec.form}", inner.value)
    return None


def _pickle(data: bytes) -> Guess | None:
    """Return the names, texts and numbers in a pickle, in their order."""
    if not are_pickles([data]):
        return None
    held = [
        _bounded(argument)
        for opcode, argument, _ in islice(pickletools.genops(data), MOST_OPCODES)
        if isinstance(argument, str | int | float | bytes) and opcode.name not in _BOOKKEEPING
    ]
    return Guess("a pickle of Python, which is not loaded: its texts and numbers", held)


def _document(data: bytes) -> Guess | None:
    if data[:1] in (b"{", b"[", b'"'):
        form = "JSON"
    elif not _is_text(data):
        form = "MessagePack"
    else:
        return None
    try:
        found = msgspec.json.decode(data) if form == "JSON" else _packed.decode(data)
        if form == "MessagePack" and not isinstance(found, dict | list):
            return None  # nearly any byte is a small number
        return Guess(form, _bounded(found))
    except _TooDeepError:
        return Guess(f"{form}, nested in more than {DEEPEST} levels", data)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError):
        return None


class _TooDeepError(Exception):
    pass


def _bounded(value: Any, left: int = DEEPEST) -> Any:
    """Return a document with large numbers as text. Raise _TooDeepError if it is too deep."""
    if not left:
        raise _TooDeepError
    if isinstance(value, dict):
        return {_bounded(name, left - 1): _bounded(item, left - 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        kind = list if isinstance(value, list) else tuple  # a tuple is hashable, as a key must be
        return kind(_bounded(item, left - 1) for item in value)
    if isinstance(value, int) and value.bit_length() > 63:
        return str(value) if value.bit_length() <= MOST_BITS else f"a number of {value.bit_length()} bits"
    return value


def _opaque(data: bytes) -> Guess | None:
    if are_hyperloglogs([data]):
        return Guess("a HyperLogLog", data)
    found = opaque_form([data, data])  # twice: one value is enough for a guess
    if found is None:
        return None
    return Guess(found[0], data.decode() if _is_text(data) else data)


def _text(data: bytes) -> Guess | None:
    if not _is_text(data):
        return None
    hint, text = scalar_hint([data]), data.decode()
    if hint.of == "datetime":
        unit = next((_TIMES[codec] for codec in hint.codecs if codec in _TIMES), None)
        if unit is None:
            return Guess("a time", text)
        return Guess(f"a time, by its size ({text})", datetime.fromtimestamp(float(text) / unit, UTC))
    if hint.of == "bool":
        return Guess("true or false", text)
    return Guess(_WORDS.get(hint.of, ""), text)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return not any(byte < 9 for byte in data)


_BOOKKEEPING = {"PROTO", "FRAME", "BINPUT", "LONG_BINPUT", "PUT", "BINGET", "LONG_BINGET", "GET", "MEMOIZE"}
