"""The type of stored values, from those that were seen. Nothing is unpickled; unpacking is bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from keywright.errors import MissingDependencyError
from keywright.keyspace import (
    Boolean,
    Codec,
    CodecError,
    EpochMs,
    EpochSeconds,
    Gzip,
    Int64,
    Lz4,
    Raw,
    Zlib,
    Zstd,
)
from keywright.keyspace.codecs import codec_of, unpacking_at_most
from keywright.keyspace.codecs.compression import Compressed
from keywright.keyspace.codecs.times import Rfc3339
from keywright.tools.infer.forms import are_pickles, opaque_form
from keywright.tools.infer.structs import Structs

__all__ = [
    "Hint",
    "hint_of",
    "is_text",
    "json_documents",
    "member_hint",
    "rough_form",
    "scalar_hint",
    "score_hint",
]

SECONDS = range(1_000_000_000, 2_100_000_000)
MILLISECONDS = range(1_000_000_000_000, 2_100_000_000_000)
ENOUGH = 3
MOST_UNPACKED = 1 << 22
MOST_LAYERS = 2
_FLOAT = re.compile(rb"-?(?:(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?|inf)").fullmatch
_DECIMAL = re.compile(rb"-?(?:0|[1-9][0-9]{0,15})\.([0-9]{2,8})").fullmatch
_DAY = re.compile(rb"[12][0-9]{3}-[01][0-9]-[0-3][0-9]").fullmatch
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_TYPES: dict[str, type] = {"date": date, "UUID": UUID}
_COMPRESSIONS: dict[str, Compressed[bytes]] = {
    name: make(Raw(), max_size=MOST_UNPACKED)
    for name, make in (("Zlib", Zlib), ("Gzip", Gzip), ("Lz4", Lz4), ("Zstd", Zstd))
}


class Hint(NamedTuple):
    """A type as source text, the codecs of its annotation, the names they need, and what is doubtful."""

    of: str
    codecs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    doubt: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """The type hint."""
        return f"Annotated[{', '.join((self.of, *self.codecs))}]" if self.codecs else self.of

    def around(self, codec: str) -> Hint:
        """Return the hint with another codec around it."""
        return self._replace(codecs=(*self.codecs, codec), names=(*self.names, codec))


TEXT, BYTES = Hint("str"), Hint("bytes")
UNREAD = Hint("bytes", doubt="no value was read")


def hint_of(values: Sequence[bytes], structs: Structs, label: str, layers: int = 0) -> Hint:
    """Return the type of whole values. `label` names the struct of JSON and MessagePack objects."""
    if not values:
        return UNREAD
    present = [value for value in values if value]
    if present and len(present) < len(values):
        return _or_empty(hint_of(present, structs, label, layers))
    found = _compressed(values, structs, label, layers)
    if found is not None:
        return found
    others = [value for value in values if not _reads(Int64(), [value])]
    if others and are_pickles(others):
        if len(others) == len(values):
            return Hint("bytes", ("Pickled",), ("Pickled",), note="The bytes are pickled by Python.")
        names = ("FirstOf", "Int64", "Pickled")
        return Hint(
            "int | bytes", ("FirstOf(Int64(), Pickled())",), names, note="Some are pickled by Python."
        )
    found = _pickles_and_documents(values, structs, label)
    if found is not None:
        return found
    opaque = opaque_form(values)
    if opaque is not None:
        return Hint("bytes", note=f"The bytes are {opaque[0]}.", doubt=opaque[1])
    documents = json_documents(values)
    if documents is not None:
        return Hint(structs.hint(documents, label, is_json=True), ("Json",), ("Json",))
    documents = _packed_documents(values)
    if documents is not None:
        return Hint(structs.hint(documents, label), ("MessagePack",), ("MessagePack",))
    return _mixed_documents(values, structs, label) or scalar_hint(values)


def scalar_hint(values: Sequence[bytes]) -> Hint:
    """Return the type of texts that are not documents."""
    if not values:
        return UNREAD
    if _reads(Int64(), values):
        return _number(values)
    if all(map(_FLOAT, values)) and any(value[-1:].isdigit() for value in values):
        return _fraction(values)
    if _reads(Rfc3339(), values):
        return Hint("datetime")
    for matches, name in ((_DAY, "date"), (_UUID, "UUID")):
        if all(map(matches, values)) and _reads(codec_of(_TYPES[name]), values):
            return Hint(name)
    for true, false in (("true", "false"), ("True", "False")):
        if _reads(Boolean(true, false), values):
            return _flag(true, false)
    for true, false in (("yes", "no"), ("on", "off")):
        if set(values) == {true.encode(), false.encode()}:
            return _flag(true, false)
    return TEXT if is_text(values) else BYTES


def member_hint(values: Sequence[bytes]) -> Hint:
    """Return the type of members, which must have one text for each value."""
    hint = scalar_hint(values)
    if hint.text in ("int", "bytes", "UUID", "date"):
        return hint
    return TEXT if is_text(values) else BYTES


def score_hint(scores: Sequence[bytes]) -> Hint:
    """Return the type of scores. Of times, `inf` is None."""
    finite = [score for score in scores if score not in (b"inf", b"+inf")]
    hint = scalar_hint(finite)
    if hint.of == "datetime":
        optional = " | None" if len(finite) < len(scores) else ""
        codec = tuple(name for name in hint.codecs if name != "EpochMs()")
        return hint._replace(of=f"datetime{optional}", codecs=codec, names=hint.names if codec else ())
    return Hint("int") if hint.text == "int" and len(finite) == len(scores) else Hint("float")


def rough_form(values: Sequence[bytes]) -> str:
    """Return the form of values in a word, to distinguish keys of different templates."""
    if not values:
        return ""
    if all(value[:1] in (b"{", b"[") for value in values):
        documents = json_documents(values)
        if documents is not None:
            return "objects" if isinstance(documents[0], dict) else "lists"
    if are_pickles(values):
        return "pickles"
    opaque = opaque_form(values)
    if opaque is not None:
        return opaque[0]
    found = scalar_hint(values).of
    return "str" if found in ("UUID", "date") else found


def _or_empty(inner: Hint) -> Hint:
    """Return the type of values of which some are empty."""
    if inner.of in ("str", "bytes") and set(inner.codecs) <= _COMPRESSIONS.keys():
        return inner
    optional = inner.of if inner.of == "Any" or inner.of.endswith("| None") else f"{inner.of} | None"
    return inner._replace(of=optional).around("EmptyAsNone")


def _compressed(values: Sequence[bytes], structs: Structs, label: str, layers: int) -> Hint | None:
    """Return the type of values of which some are compressed and the others too short for it."""
    for name, codec in _COMPRESSIONS.items():
        packed = [value for value in values if codec.recognises(value)]
        if not packed:
            continue
        try:
            with unpacking_at_most(MOST_UNPACKED):
                plain = [codec.decode(value) for value in values]
        except MissingDependencyError:
            return BYTES._replace(note=f"The bytes are compressed with {codec.form}.")
        except CodecError:
            if len(packed) < len(values) or is_text(values):
                continue
            return BYTES._replace(note=f"The bytes begin as {codec.form} does.")
        if layers >= MOST_LAYERS:
            return BYTES._replace(note=f"The bytes are compressed with {codec.form}, several times.")
        inner = hint_of(plain, structs, label, layers + 1)
        return inner._replace(
            note=inner.note and inner.note.replace("The bytes are", "Inside they are")
        ).around(name)
    return None


def _number(values: Sequence[bytes]) -> Hint:
    numbers = {int(value) for value in values}
    for unit, codec in ((SECONDS, EpochSeconds), (MILLISECONDS, EpochMs)):
        if all(number in unit for number in numbers):
            return _time(codec.__name__, len(numbers))
    return Hint("int")


def _fraction(values: Sequence[bytes]) -> Hint:
    """Return the type of numbers with a fraction: a decimal if its digits are kept, a time by its size."""
    found = [_DECIMAL(value) for value in values]
    lengths = {len(each[1]) for each in found if each is not None}
    if all(found) and len(lengths) == 1 and len(values) >= ENOUGH and any(v.endswith(b"0") for v in values):
        return Hint("Decimal")
    if all(SECONDS[0] <= float(value) < SECONDS[-1] for value in values):
        return _time("EpochFloat", len(set(values)))
    return Hint("float")


def _flag(true: str, false: str) -> Hint:
    return Hint("bool", (f'Boolean("{true}", "{false}")',), ("Boolean",))


def _time(codec: str, count: int) -> Hint:
    doubt = "" if count >= ENOUGH else f"a time by its size, from {count} value(s)"
    return Hint("datetime", (f"{codec}()",), (codec,), doubt)


def json_documents(values: Sequence[bytes], *, scalars: bool = False) -> list[Any] | None:
    """Return what all values hold as JSON; None if one does not, or all are `scalars`: numbers or words."""
    try:
        found = [msgspec.json.decode(value) for value in values]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    simple = {type(each) for each in found}
    return None if not scalars and (simple <= {int, float} or simple == {bool}) else found


def _packed_documents(values: Sequence[bytes]) -> list[Any] | None:
    """Return what all values hold as MessagePack; None if one does not, or if all are text."""
    if is_text(values):
        return None
    try:
        found = [msgspec.msgpack.decode(value) for value in values]
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
        return None
    has_containers = any(isinstance(each, dict | list) for each in found)
    return found if has_containers or any(len(value) > 1 for value in values) else None


def _mixed_documents(values: Sequence[bytes], structs: Structs, label: str) -> Hint | None:
    """Return the type of values of which some are JSON and the others MessagePack; None if they are not."""
    texts = [value for value in values if value[:1] in (b"{", b"[")]
    one, other = json_documents(texts), _packed_documents([v for v in values if v[:1] not in (b"{", b"[")])
    if not one or not other or not all(isinstance(each, dict | list) for each in other):
        return None
    hint = structs.hint([*one, *other], label)
    return Hint(hint, (f"FirstOf(Json({hint}), MessagePack({hint}))",), ("FirstOf", "Json", "MessagePack"))


def _pickles_and_documents(values: Sequence[bytes], structs: Structs, label: str) -> Hint | None:
    """Return the type of values of which some are pickles and the others JSON; None if they are not."""
    texts = [value for value in values if value[:1] in (b"{", b"[")]
    pickles = [value for value in values if value[:1] not in (b"{", b"[")]
    if not texts or not pickles or not are_pickles(pickles):
        return None
    documents = json_documents(texts)
    if documents is None:
        return None
    codec = f"FirstOf(Pickled(), Json({structs.hint(documents, label, is_json=True)}))"
    return Hint("Any", (codec,), ("FirstOf", "Json", "Pickled"), note="Some are pickled by Python.")


def is_text(values: Iterable[bytes]) -> bool:
    """Return whether all values are UTF-8."""
    with suppress(UnicodeDecodeError):
        for value in values:
            value.decode()
        return True
    return False


def _reads(codec: Codec[Any], values: Iterable[bytes]) -> bool:
    try:
        for value in values:
            codec.decode(value)
    except (CodecError, IndexError):
        return False
    return True
