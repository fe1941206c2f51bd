"""The kind of a template and the types of what it holds, from the keys that were read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from keywright.keyspace import CodecError
from keywright.keyspace.kinds.geo import point_of
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.forms import are_bits, are_hyperloglogs
from keywright.tools.infer.structs import Field, Structs, quoted
from keywright.tools.infer.values import (
    Hint,
    hint_of,
    is_text,
    json_documents,
    member_hint,
    rough_form,
    score_hint,
)

__all__ = ["Kind", "kind_of"]

ENOUGH = 3
MIXED = 2
"""A hash with so many fixed members, and others that vary, is a record with other fields; else a map."""
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,40}").fullmatch
_POSITIONS = range(1 << 44, 1 << 52)
_MICROSECONDS = range(1_000_000_000_000_000, 2_100_000_000_000_000)


class Kind(NamedTuple):
    """A base class with its types as source text, and what it needs."""

    text: str
    hints: tuple[Hint, ...] = ()
    doubts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def kind_of(redis_type: str, facts: Sequence[Facts], structs: Structs, label: str) -> Kind:
    """Return the kind of keys of one type. `label` names the structs of their values."""
    values = [value for each in facts for value in each.values]
    match redis_type:
        case "string":
            return _string(values, structs, label)
        case "list":
            hint = hint_of(values, structs, label)
            return Kind(f"List[{hint.text}]", (hint,))
        case "set":
            hint = member_hint(values)
            return Kind(f"Set[{hint.text}]", (hint,))
        case "zset":
            return _sorted_set(values, [each for one in facts for each in one.scores])
        case "hash":
            return _hash(facts, structs, label)
        case "stream":
            return _stream(facts, structs, label)
        case "":
            return Kind("Value[bytes]", (), ("the kind: only names were read",))
        case "ReJSON-RL" if (documents := json_documents(values, scalars=True)) is not None and documents:
            return Kind(f"JsonDocument[{structs.hint(documents, label, is_json=True)}]")
    if _TYPE(redis_type):
        return Kind("Opaque", options=(f'redis_type="{redis_type}"',))
    return Kind("Value[bytes]", (), ("the server says another type, which has no kind here",))


def _string(values: Sequence[bytes], structs: Structs, label: str) -> Kind:
    if values and are_hyperloglogs(values):
        return Kind("HyperLogLog[str]", doubts=("the type of the members, which are not stored",))
    hint = hint_of(values, structs, label)
    if hint.text in ("bytes", "str") and not hint.note and are_bits(values):
        return Kind("Bitmap", doubts=("bits, as few of them are set",))
    return Kind(f"Value[{hint.text}]", (hint,))


def _sorted_set(members: Sequence[bytes], scores: Sequence[bytes]) -> Kind:
    member, score = member_hint(members), score_hint(scores)
    if score.text == "int" and _are_positions(scores):
        return Kind(
            f"Geo[{member.text}]", (member,), ("positions, as the scores are whole numbers of 52 bits",)
        )
    return Kind(f"SortedSet[{member.text}, {score.text}]", (member, score))


def _are_positions(scores: Sequence[bytes]) -> bool:
    """Return whether scores may be positions; numbers of the size of microseconds since 1970 are not."""
    numbers = {int(score) for score in scores}
    if len(numbers) < ENOUGH or not all(number in _POSITIONS for number in numbers):
        return False
    with suppress(CodecError):
        for number in numbers:
            point_of(number)
        return not all(number in _MICROSECONDS for number in numbers)
    return False


def _hash(facts: Sequence[Facts], structs: Structs, label: str) -> Kind:
    hashes = [found for each in facts for found in each.fields]
    shown = structs.words.members(hashes, lambda value: rough_form([value]))
    names = dict.fromkeys(name for found in hashes for name in found)
    is_complete = all(each.size <= len(found) for each in facts for found in each.fields)
    if is_complete and (len(shown) >= MIXED or len(shown) == len(names) > 0):
        return _fields("Record", hashes, shown, structs, label)
    field = member_hint(list(names))
    value = hint_of([v for found in hashes for v in found.values()], structs, label)
    return Kind(f"Map[{field.text}, {value.text}]", (field, value))


def _stream(facts: Sequence[Facts], structs: Structs, label: str) -> Kind:
    entries = [found for each in facts for found in each.fields]
    shown = structs.words.members(entries, lambda value: rough_form([value]))
    found = _fields("Stream", entries, shown, structs, label)
    counts = Counter(name for each in facts for name in each.groups)
    groups = [
        name.decode()
        for name in sorted(counts)
        if name and is_text([name]) and structs.words.is_shown(name, counts[name])
    ]
    if len(groups) < len(counts):
        hidden = len(counts) - len(groups)
        return found._replace(notes=(f"Consumer groups that are not shown: {hidden:,}.",))
    if groups:
        return found._replace(options=(*found.options, f"groups=[{', '.join(map(quoted, groups))}]"))
    return found


def _fields(
    kind: str, found: Sequence[dict[bytes, bytes]], shown: Sequence[bytes], structs: Structs, label: str
) -> Kind:
    """Return the kind of hashes or entries with these members; the others are entries of a dict."""
    fields, hints = [], []
    for name in shown:
        values = [each[name] for each in found if name in each]
        hint = hint_of(values, structs, f"{label} {name.decode()}")
        hints.append(hint._replace(doubt=""))
        optional = len(values) < len(found) or len(found) == 1
        fields.append(Field(name.decode(), hint.text, optional, hint.doubt))
    named = set(shown)
    rest = [value for each in found for name, value in each.items() if name not in named]
    others, doubts = "", []
    names: tuple[str, ...] = ()
    if rest or not found:
        other = hint_of(rest, structs, f"{label} other")._replace(doubt="")
        hints.append(other)
        others, names = other.text, ("OtherFields",)
    if len(found) == 1:
        doubts.append("which members may be missing: one was read")
    struct = structs.declare(f"{label} details", fields, "Members as they were seen.", others)
    return Kind(f"{kind}[{struct}]", tuple(hints), tuple(doubts), names=names)
