"""The keys of a journal, the plans in it, and the rules for plans that other programs left there.

Each keyspace has a journal of its own under each prefix, and markers of its own, so that access rules for one
keyspace give no access to the journal of another. A commit over several keyspaces has its intent in one
journal, that of the keyspace of its first check or else of its first write, and a marker in every keyspace
that it writes.

A program that may write to a keyspace may write to its journal. An intent is therefore carried out only if
it does nothing that its author could not do directly:

- its id is the digest of its plan, so a plan that was changed after it was prepared is recognised;
- each part stays in one keyspace that this database knows and in one hash tag, which name its marker, and
  applies only where that marker names the intent: markers are written with the rights of their keyspace;
- its names match templates, and its commands are those that commits write to keys of that type.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import msgspec

from keywright.errors import IntentError, excerpt
from keywright.keyspace.alphabets import Hex, TagText, Text
from keywright.keyspace.codecs import Codec, Raw
from keywright.keyspace.commits.work import Work, is_writable
from keywright.keyspace.key import Key
from keywright.keyspace.slots import hash_tag
from keywright.keyspace.space import Keyspace

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

SHARDS = tuple("0123456789abcdef")

journals = Keyspace(
    "keywright", "The journals of commits that reach across the slots of a cluster.", prefix="keywright"
)


class Intents(Key, key="intents:<space>:<prefix>:<shard>", space=journals):
    """The intents that are under way, by id: a state letter (P, C, A) and the plan in MessagePack."""

    redis_type: ClassVar[str] = "hash"
    kind: ClassVar[str] = "map"
    space: Annotated[str, Text()]
    prefix: Annotated[str, Text(allow_empty=True)]
    shard: Annotated[str, Hex(1)]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return (Raw(),)

    @property
    def journal(self) -> Journal:
        return Journal(self.space, self.prefix)


class Marker(Key, key="held:<space>:<prefix>:{<tag>}", space=journals):
    """The intents at work on the keys of one hash tag: field `x` for the only one, ids for shared ones."""

    redis_type: ClassVar[str] = "hash"
    kind: ClassVar[str] = "map"
    space: Annotated[str, Text()]
    prefix: Annotated[str, Text(allow_empty=True)]
    tag: Annotated[str, TagText()]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return (Raw(),)


class Journal(NamedTuple):
    """The journal of one keyspace under one prefix."""

    space: str
    prefix: str

    @classmethod
    def of(cls, space: Keyspace, context: Context) -> Journal:
        return cls(space.name, context.prefixes[space].decode().removesuffix(":"))

    def marker(self, name: bytes) -> Marker:
        """Return the marker beside a name of the keyspace."""
        return Marker(self.space, self.prefix, hash_tag(name).decode())

    def shards(self) -> list[Intents]:
        return [Intents(self.space, self.prefix, shard) for shard in SHARDS]


class Intent(NamedTuple):
    """An intent by its id, and the hash that holds it."""

    id: bytes
    home: Intents

    @classmethod
    def of(cls, journal: Journal, plan: bytes) -> Intent:
        digest = _digest(plan)
        return cls(digest, Intents(journal.space, journal.prefix, digest[:1].decode()))

    @classmethod
    def held(cls, stored: bytes) -> Intent | None:
        """Return the intent that the field `x` of a marker names, or None if it names none."""
        digest, _, name = stored.partition(b"@")
        home = Intents.parse(name)
        return None if home is None or digest[:1] != home.shard.encode() else cls(digest, home)

    def __bytes__(self) -> bytes:
        return self.id + b"@" + bytes(self.home)


class CommitPart(msgspec.Struct, array_like=True, frozen=True):
    """The part of a commit on the keys of one keyspace and one hash tag."""

    space: str
    prefix: str
    names: list[bytes]
    checks: list[tuple[int, str, list[bytes]]]
    writes: list[tuple[int, list[bytes]]]

    @property
    def exclusive(self) -> bool:
        return bool(self.checks)

    @property
    def journal(self) -> Journal:
        return Journal(self.space, self.prefix)

    @property
    def marker(self) -> Marker:
        return self.journal.marker(self.names[0])

    def field(self, intent: Intent) -> tuple[bytes, bytes]:
        """Return the field of the marker that an intent holds, and its value."""
        return (b"x", bytes(intent)) if self.exclusive else (intent.id, b"s")


class CommitPlan(msgspec.Struct, array_like=True, frozen=True):
    """A commit as the journal keeps it, with the time it was begun and random bytes for its digest."""

    at_ms: int
    salt: bytes
    parts: list[CommitPart]


def planned(work: Work, context: Context) -> tuple[list[CommitPart], Intent, bytes]:
    """Return the parts of a commit, its intent, and its plan as it is stored."""
    places: dict[tuple[Journal, bytes], list[int]] = {}
    for index, (name, kind) in enumerate(zip(work.names, work.kinds, strict=True)):
        place = Journal.of(kind._space, context), hash_tag(name)
        places.setdefault(place, []).append(index)
    parts = [_part(work, journal, indexes) for (journal, _), indexes in places.items()]
    # The names of a work begin with those of its checks, so the first part has the first of them.
    plan = msgspec.msgpack.encode(CommitPlan(context.now_ms(), secrets.token_bytes(16), parts))
    return parts, Intent.of(parts[0].journal, plan), plan


def _part(work: Work, journal: Journal, indexes: list[int]) -> CommitPart:
    place = {index: number for number, index in enumerate(indexes)}
    return CommitPart(
        *journal,
        [work.names[index] for index in indexes],
        [(place[i], kind, arguments) for i, kind, arguments in work.checks if i in place],
        [(place[i], arguments) for i, arguments in work.writes if i in place],
    )


def _digest(plan: bytes) -> bytes:
    return hashlib.sha256(plan).hexdigest()[:40].encode()


_decode = msgspec.msgpack.Decoder(CommitPlan).decode


def read_plan(intent: Intent, stored: bytes, context: Context) -> CommitPlan:
    """Return the plan of a stored intent. Raise IntentError if it is malformed or not permitted."""
    fault, plan = None, None
    try:
        plan = _decode(stored[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the first also for another type
        fault = "bytes that are not a plan"
    if plan is not None:
        fault = _fault(plan, intent, stored, context)
    if plan is None or fault is not None:
        raise IntentError(
            context.name(intent.home), type(intent.home)._template.source, intent.id, str(fault)
        )
    return plan


def _fault(plan: CommitPlan, intent: Intent, stored: bytes, context: Context) -> str | None:
    """Return why a plan may not be carried out, or None."""
    if stored[:1] not in (b"P", b"C", b"A"):
        return f"the state {excerpt(stored[:1])}"
    if Intent.of(intent.home.journal, stored[1:]) != intent:
        return "a plan that is not the one of its id"
    places = [(part.journal, hash_tag(name)) for part in plan.parts for name in part.names[:1]]
    if len(places) != len(plan.parts) or len(set(places)) != len(places):
        return "parts without a key, or two parts of one hash tag"
    if intent.home.journal not in (journal for journal, _ in places):
        return "no key of its own keyspace"
    return next((fault for part in plan.parts for fault in _faults(part, context)), None)


def _faults(part: CommitPart, context: Context) -> Iterator[str]:
    spaces = known_spaces(context).get(part.journal, [])
    if not spaces:
        yield (
            f"keys of the keyspace {part.space!r} under the prefix {part.prefix!r}, which this database does "
            f"not use: pass it to recover()"
        )
        return
    kinds = [_kind(name, spaces, context) for name in part.names]
    for name, kind in zip(part.names, kinds, strict=True):
        if kind is None:
            yield f"{excerpt(name)}, which is not a key of {part.space!r}"
        if hash_tag(name) != hash_tag(part.names[0]):
            yield f"{excerpt(name)} beside a key of another hash tag"
    for index, command in part.writes:
        if not 0 <= index < len(kinds) or not command:
            yield "a write without a key or a command"
        elif not is_writable(kinds[index], command[0]):
            yield f"{excerpt(command[0])}, which commits do not write to {excerpt(part.names[index])}"


def known_spaces(context: Context) -> dict[Journal, list[Keyspace]]:
    """Return the keyspaces that a database was opened with, or has used, by their journals."""
    found: dict[Journal, list[Keyspace]] = {}
    for space in context.spaces:
        if space is not journals:
            found.setdefault(Journal.of(space, context), []).append(space)
    return found


def _kind(name: bytes, spaces: Iterable[Keyspace], context: Context) -> type[Key] | None:
    """Return the class of a name, which may be a former one."""
    for space in spaces:
        lead = context.prefixes[space]
        if name.startswith(lead):
            for kind in (each for key in space for each in (key, *key._former)):
                if kind._template.parse(name[len(lead) :]) is not None:
                    return kind
    return None
