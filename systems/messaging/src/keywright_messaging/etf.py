"""Erlang's external term format (ETF) for JSON-like data, compatible with Discord and erlpack.

Not supported are terms of an Erlang node: processes, ports, references, functions and bit strings. A binary
may be text or bytes without a mark, so it is decoded as text if it is valid UTF-8.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from keywright import CodecError

__all__ = ["VERSION", "EtfError", "decode", "encode"]

VERSION = 131
"""The first byte of every term."""

_DEEPEST = 256
_LARGEST_UNPACKED = 16 * 1024 * 1024

# A byte of a term may become an object of 64 bytes, and a byte of a compressed term a thousand objects, so
# both are bounded by the bytes received, above what any small message may have.
_UNPACKED_PER_BYTE, _SMALL_UNPACKED = 64, 256 * 1024
_TERMS_PER_BYTE, _FEW_TERMS, _MOST_TERMS = 8, 10_000, 1_000_000

# The hashes of numbers are predictable, unlike those of text: a sender can choose keys that all collide.
_MOST_NUMBER_KEYS = 1024
_KEY_BITS = 64

_NEW_FLOAT = ord("F")
_SMALL_INTEGER, _INTEGER, _FLOAT, _ATOM = ord("a"), ord("b"), ord("c"), ord("d")
_SMALL_TUPLE, _LARGE_TUPLE, _NIL, _STRING, _LIST = ord("h"), ord("i"), ord("j"), ord("k"), ord("l")
_BINARY, _SMALL_BIG, _LARGE_BIG = ord("m"), ord("n"), ord("o")
_SMALL_ATOM, _MAP, _ATOM_UTF8, _SMALL_ATOM_UTF8 = ord("s"), ord("t"), ord("v"), ord("w")

_u16 = struct.Struct(">H").unpack_from
_u32 = struct.Struct(">I").unpack_from
_i32 = struct.Struct(">i").unpack_from
_f64 = struct.Struct(">d").unpack_from
_sized = struct.Struct(">BI").pack
_integer = struct.Struct(">Bi").pack
_small_big = struct.Struct(">BBB").pack
_large_big = struct.Struct(">BIB").pack
_new_float = struct.Struct(">Bd").pack


class EtfError(CodecError):
    """Data that cannot be encoded, or malformed bytes."""


def encode(data: object) -> bytes:
    """Return the term of plain data. Other types of msgspec, such as structs, are converted first.

    Text and bytes become binaries, lists and tuples lists; None, True and False the atoms nil, true, false.
    Keys are text or integers of at most 64 bits, and a map has at most 1,024 integers as keys. Raise EtfError
    for anything else, for nan and the infinities, which Erlang does not have, and for data nested more than
    256 deep.
    """
    pieces = [b"\x83"]
    try:
        _write(data, pieces.append, _DEEPEST, _Written())
    except (UnicodeEncodeError, RecursionError, struct.error) as exc:
        raise EtfError("data for ETF", str(exc)) from exc
    return b"".join(pieces)


def decode(data: bytes, *, max_unpacked: int = _LARGEST_UNPACKED) -> Any:
    """Return the data of a term. Raise EtfError, and no other exception, if the term is malformed.

    Binaries become text, or bytes if they are not UTF-8; atoms become text, except for nil, true and false;
    tuples stay tuples. Keys that are atoms become text, even nil. Refused are improper lists, lists and maps
    as keys, integers over 64 bits as keys, maps with more than 1,024 numbers as keys, nesting over 256 deep,
    bytes after the term, and compressed terms that unpack to more than `max_unpacked` bytes, or to more than
    64 times the bytes received if that is over 256 KiB. Lists, tuples and maps hold at most 1,000,000 terms
    together, at most 8 for each byte received if that is over 10,000.
    """
    terms = min(_MOST_TERMS, max(_FEW_TERMS, _TERMS_PER_BYTE * len(data)))
    if data[:1] != b"\x83":
        raise _refusal("bytes that do not begin with 131")
    if data[1:2] == b"P":
        data, at = _unpacked(data, min(max_unpacked, max(_SMALL_UNPACKED, _UNPACKED_PER_BYTE * len(data)))), 0
    else:
        at = 1
    try:
        value, end = _READERS[data[at]](data, at + 1, _DEEPEST, _Names(terms))
    except (IndexError, struct.error) as exc:
        raise _refusal("a truncated term") from exc
    except (UnicodeDecodeError, RecursionError) as exc:
        raise _refusal(str(exc)) from exc
    # Readers do not check the length of a slice: a truncated one moves the position beyond the end.
    if end != len(data):
        raise _refusal("a truncated term" if end > len(data) else f"{len(data) - end} bytes after it")
    return value


def _refusal(found: str) -> EtfError:
    return EtfError("an ETF term", found)


def _unpacked(data: bytes, limit: int) -> bytes:
    if len(data) < 6:
        raise _refusal("a truncated term")
    size = _u32(data, 2)[0]
    if size > limit:
        raise _refusal(f"a compressed term of {size} bytes, over the limit of {limit}")
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(data[6:], size + 1)
    except zlib.error as exc:
        raise _refusal(f"a compressed term that does not unpack ({exc})") from exc
    if len(plain) != size or not inflater.eof or inflater.unused_data:
        raise _refusal(f"a compressed term that does not unpack to its {size} bytes")
    if plain[:1] == b"P":
        raise _refusal("a compressed term inside a compressed term")
    return plain


class _Names(dict[bytes, Any]):
    """The keys of one term: each is decoded once, and its text shared by all maps. Counts the terms, too."""

    def __init__(self, terms: int) -> None:
        super().__init__()
        self._terms = self._left = terms

    def take(self, count: int) -> None:
        """Count the terms of a container. Raise EtfError if there are too many."""
        self._left -= count
        if self._left < 0:
            raise _refusal(f"more than {self._terms} terms, the most for its size")

    def __missing__(self, raw: bytes) -> str | bytes:
        name = self[raw] = _text(raw)
        return name


_Reader = Callable[[bytes, int, int, _Names], tuple[Any, int]]


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _read_unknown(data: bytes, at: int, room: int, names: _Names) -> tuple[Any, int]:
    raise _refusal(f"the tag {data[at - 1]} at byte {at - 1}")


def _read_small_integer(data: bytes, at: int, room: int, names: _Names) -> tuple[int, int]:
    return data[at], at + 1


def _read_integer(data: bytes, at: int, room: int, names: _Names) -> tuple[int, int]:
    return _i32(data, at)[0], at + 4


def _read_small_big(data: bytes, at: int, room: int, names: _Names) -> tuple[int, int]:
    end = at + 2 + data[at]
    value = int.from_bytes(data[at + 2 : end], "little")
    return (-value if data[at + 1] else value), end


def _read_large_big(data: bytes, at: int, room: int, names: _Names) -> tuple[int, int]:
    end = at + 5 + _u32(data, at)[0]
    value = int.from_bytes(data[at + 5 : end], "little")
    return (-value if data[at + 4] else value), end


def _read_new_float(data: bytes, at: int, room: int, names: _Names) -> tuple[float, int]:
    return _f64(data, at)[0], at + 8


_float_text = re.compile(rb" *([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)(?:\0.*)?", re.DOTALL).fullmatch


def _read_float(data: bytes, at: int, room: int, names: _Names) -> tuple[float, int]:
    text = _float_text(data[at : at + 31])
    value = float(text[1]) if text else float("nan")
    if not isfinite(value):
        raise _refusal(f"a float written as {data[at : at + 31]!r}")
    return value, at + 31


def _read_binary(data: bytes, at: int, room: int, names: _Names) -> tuple[str | bytes, int]:
    end = at + 4 + _u32(data, at)[0]
    return _text(data[at + 4 : end]), end


def _read_string(data: bytes, at: int, room: int, names: _Names) -> tuple[list[int], int]:
    end = at + 2 + _u16(data, at)[0]
    return list(data[at + 2 : end]), end


class _Atoms(dict[bytes, Any]):
    """The values of atoms: three constants, otherwise their name in the charset of their tag."""

    def __init__(self, charset: str) -> None:
        super().__init__({b"nil": None, b"true": True, b"false": False})
        self._charset = charset

    def __missing__(self, raw: bytes) -> str:
        return raw.decode(self._charset)


_latin_atoms = _Atoms("latin-1")
_utf8_atoms = _Atoms("utf-8")


def _read_small_atom(data: bytes, at: int, room: int, names: _Names) -> tuple[Any, int]:
    end = at + 1 + data[at]
    return _latin_atoms[data[at + 1 : end]], end


def _read_small_atom_utf8(data: bytes, at: int, room: int, names: _Names) -> tuple[Any, int]:
    end = at + 1 + data[at]
    return _utf8_atoms[data[at + 1 : end]], end


def _read_atom(data: bytes, at: int, room: int, names: _Names) -> tuple[Any, int]:
    end = at + 2 + _u16(data, at)[0]
    return _latin_atoms[data[at + 2 : end]], end


def _read_atom_utf8(data: bytes, at: int, room: int, names: _Names) -> tuple[Any, int]:
    end = at + 2 + _u16(data, at)[0]
    return _utf8_atoms[data[at + 2 : end]], end


def _checked_count(count: int, width: int, data: bytes, at: int, room: int, names: _Names) -> int:
    """Return the count of a container whose entries have `width` terms.

    Raise EtfError if the bytes left, the depth or the number of terms do not allow it.
    """
    if count * width > len(data) - at:
        raise _refusal(f"a count of {count} at byte {at}, more than the following bytes can hold")
    if room <= 0:
        raise _refusal(f"nesting over {_DEEPEST} deep")
    names.take(count * width)
    return count


def _read_items(data: bytes, at: int, count: int, room: int, names: _Names) -> tuple[list[Any], int]:
    items = []
    for _ in range(_checked_count(count, 1, data, at, room, names)):
        item, at = _READERS[data[at]](data, at + 1, room - 1, names)
        items.append(item)
    return items, at


def _read_list(data: bytes, at: int, room: int, names: _Names) -> tuple[list[Any], int]:
    items, at = _read_items(data, at + 4, _u32(data, at)[0], room, names)
    if data[at] != _NIL:
        raise _refusal("an improper list")
    return items, at + 1


def _read_nil(data: bytes, at: int, room: int, names: _Names) -> tuple[list[Any], int]:
    return [], at


def _read_small_tuple(data: bytes, at: int, room: int, names: _Names) -> tuple[tuple[Any, ...], int]:
    items, at = _read_items(data, at + 1, data[at], room, names)
    return tuple(items), at


def _read_large_tuple(data: bytes, at: int, room: int, names: _Names) -> tuple[tuple[Any, ...], int]:
    items, at = _read_items(data, at + 4, _u32(data, at)[0], room, names)
    return tuple(items), at


def _read_map(data: bytes, at: int, room: int, names: _Names) -> tuple[dict[Any, Any], int]:
    count = _checked_count(_u32(data, at)[0], 2, data, at + 4, room, names)
    at += 4
    entries: dict[Any, Any] = {}
    numbers = 0
    for _ in range(count):
        # Binaries are nearly all keys and half of the values, so they are decoded without a call.
        if data[at] == _BINARY:
            start = at + 5
            at = start + _u32(data, at + 1)[0]
            key = names[data[start:at]]
        else:
            key, at = _read_key(data, at, room, names)
            if type(key) is int or type(key) is float:
                numbers += 1
                if numbers > _MOST_NUMBER_KEYS:
                    raise _refusal(_TOO_MANY_NUMBERS)
        tag = data[at]
        if tag == _BINARY:
            start = at + 5
            at = start + _u32(data, at + 1)[0]
            try:
                entries[key] = data[start:at].decode()
            except UnicodeDecodeError:
                entries[key] = data[start:at]
        elif tag == _SMALL_ATOM:
            start = at + 2
            at = start + data[at + 1]
            entries[key] = _latin_atoms[data[start:at]]
        else:
            entries[key], at = _READERS[tag](data, at + 1, room - 1, names)
    return entries, at


_TOO_MANY_NUMBERS = f"a map with more than {_MOST_NUMBER_KEYS} numbers as keys"
_SHORT_ATOMS = frozenset([_SMALL_ATOM, _SMALL_ATOM_UTF8])
_LONG_ATOMS = frozenset([_ATOM, _ATOM_UTF8])


def _read_key(data: bytes, at: int, room: int, names: _Names) -> tuple[Any, int]:
    tag = data[at]
    if tag in _SHORT_ATOMS:
        start = at + 2
        end = start + data[at + 1]
    elif tag in _LONG_ATOMS:
        start = at + 3
        end = start + _u16(data, at + 1)[0]
    else:
        key, end = _KEY_READERS.get(tag, _read_unknown_key)(data, at + 1, room, names)
        if type(key) is int and key.bit_length() > _KEY_BITS:
            raise _refusal(f"a key of {key.bit_length()} bits, over the limit of {_KEY_BITS}")
        return key, end
    raw = data[start:end]
    if raw.isascii():
        return names[raw], end
    return raw.decode("latin-1" if tag in (_SMALL_ATOM, _ATOM) else "utf-8"), end


def _read_unknown_key(data: bytes, at: int, room: int, names: _Names) -> tuple[Any, int]:
    raise _refusal(f"a key with the tag {data[at - 1]} at byte {at - 1}")


_KEY_READERS: dict[int, _Reader] = {
    _SMALL_INTEGER: _read_small_integer,
    _INTEGER: _read_integer,
    _SMALL_BIG: _read_small_big,
    _LARGE_BIG: _read_large_big,
    _NEW_FLOAT: _read_new_float,
    _FLOAT: _read_float,
}
_BY_TAG: dict[int, _Reader] = {
    **_KEY_READERS,
    _SMALL_ATOM: _read_small_atom,
    _SMALL_ATOM_UTF8: _read_small_atom_utf8,
    _ATOM: _read_atom,
    _ATOM_UTF8: _read_atom_utf8,
    _SMALL_TUPLE: _read_small_tuple,
    _LARGE_TUPLE: _read_large_tuple,
    _NIL: _read_nil,
    _STRING: _read_string,
    _LIST: _read_list,
    _BINARY: _read_binary,
    _MAP: _read_map,
}
_READERS = [_BY_TAG.get(tag, _read_unknown) for tag in range(256)]


class _Written(dict[str, bytes]):
    """The encoded keys of one value: each is encoded once."""

    def __missing__(self, name: str) -> bytes:
        raw = name.encode()
        term = self[name] = _sized(_BINARY, len(raw)) + raw
        return term


_Put = Callable[[bytes], None]
_Writer = Callable[[Any, _Put, int, _Written], None]
_SMALL_INTEGERS = [bytes([_SMALL_INTEGER, value]) for value in range(256)]


def _write(value: object, put: _Put, room: int, names: _Written) -> None:
    _WRITERS.get(type(value), _write_other)(value, put, room, names)


def _write_none(value: None, put: _Put, room: int, names: _Written) -> None:
    put(b"s\x03nil")


def _write_bool(value: bool, put: _Put, room: int, names: _Written) -> None:
    put(b"s\x04true" if value else b"s\x05false")


def _write_int(value: int, put: _Put, room: int, names: _Written) -> None:
    if 0 <= value <= 255:
        put(_SMALL_INTEGERS[value])
    elif -(2**31) <= value < 2**31:
        put(_integer(_INTEGER, value))
    else:
        size = (value.bit_length() + 7) // 8
        head = (
            _small_big(_SMALL_BIG, size, value < 0) if size < 256 else _large_big(_LARGE_BIG, size, value < 0)
        )
        put(head + abs(value).to_bytes(size, "little"))


def _write_float(value: float, put: _Put, room: int, names: _Written) -> None:
    if not isfinite(value):
        raise EtfError("data for ETF", f"the float {value}")
    put(_new_float(_NEW_FLOAT, value))


def _write_str(value: str, put: _Put, room: int, names: _Written) -> None:
    raw = value.encode()
    put(_sized(_BINARY, len(raw)) + raw)


def _write_bytes(value: bytes, put: _Put, room: int, names: _Written) -> None:
    put(_sized(_BINARY, len(value)) + value)


def _write_list(value: list[Any] | tuple[Any, ...], put: _Put, room: int, names: _Written) -> None:
    if value:
        put(_sized(_LIST, len(value)))
        room = _less(room)
        writer_of = _WRITERS.get
        for item in value:
            writer_of(type(item), _write_other)(item, put, room, names)
    put(b"j")


def _write_dict(value: dict[Any, Any], put: _Put, room: int, names: _Written) -> None:
    put(_sized(_MAP, len(value)))
    room = _less(room)
    writer_of = _WRITERS.get
    numbers = 0
    for key, item in value.items():
        if type(key) is str:
            put(names[key])
        else:
            term = _key(key)
            numbers += term[0] != _BINARY
            if numbers > _MOST_NUMBER_KEYS:
                raise EtfError("data for ETF", _TOO_MANY_NUMBERS)
            put(term)
        writer_of(type(item), _write_other)(item, put, room, names)


def _key(key: object) -> bytes:
    pieces: list[bytes] = []
    plain = key if type(key) is int else _plain(key)
    if type(plain) not in (int, str):
        raise EtfError("data for ETF", f"a key of type {type(key).__name__}")
    if type(plain) is int and plain.bit_length() > _KEY_BITS:
        raise EtfError("data for ETF", f"a key of {plain.bit_length()} bits, over the limit of {_KEY_BITS}")
    _write(plain, pieces.append, 0, _Written())
    return pieces[0]


def _write_other(value: object, put: _Put, room: int, names: _Written) -> None:
    plain = _plain(value)
    if type(plain) not in _WRITERS:
        raise EtfError("data for ETF", f"a value of type {type(value).__name__}")
    _write(plain, put, room, names)


def _plain(value: object) -> object:
    try:
        return msgspec.to_builtins(value, builtin_types=(bytes,))
    except (TypeError, ValueError, RecursionError) as exc:
        raise EtfError("data for ETF", f"a value of type {type(value).__name__} ({exc})") from exc


def _less(room: int) -> int:
    if room <= 0:
        raise EtfError("data for ETF", f"nesting over {_DEEPEST} deep")
    return room - 1


_WRITERS: dict[type, _Writer] = {
    type(None): _write_none,
    bool: _write_bool,
    int: _write_int,
    float: _write_float,
    str: _write_str,
    bytes: _write_bytes,
    list: _write_list,
    tuple: _write_list,
    dict: _write_dict,
}
