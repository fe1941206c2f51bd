"""Stream: an append-only log with consumer groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, Unpack

from keywright.errors import DeclarationError, ValueRefusedError, excerpt
from keywright.keyspace.call import Call, Command, Ready, Refreshing, Sliding, patient
from keywright.keyspace.codecs import Codec
from keywright.keyspace.composition import gather_list
from keywright.keyspace.fields import FieldSet, Shape
from keywright.keyspace.key import Key, KeyOptions, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import each
from keywright.keyspace.layouts import Ask, pairs
from keywright.keyspace.member_functions import entries_reader
from keywright.keyspace.misuse import explained, raise_explained
from keywright.keyspace.storage import Storage, StoredEntry, member_entry, undeclared_names
from keywright.keyspace.wires import Effect, Operation, Reply

E = TypeVar("E")
MILLISECOND = timedelta(milliseconds=1)

ADD = Operation("add", b"XADD", Effect.ONCE)
ADD_AT = Operation("add", b"XADD", Effect.REPEATABLE)
RANGE = Operation("range", b"XRANGE", Effect.READ)
REVERSE = Operation("range", b"XREVRANGE", Effect.READ)
LENGTH = Operation("length", b"XLEN", Effect.READ)
REMOVE = Operation("remove", b"XDEL", Effect.REPEATABLE)
TRIM = Operation("trim", b"XTRIM", Effect.REPEATABLE)
READ = Operation("read", b"XREAD", Effect.READ)
GROUP = Operation("group", b"XGROUP", Effect.REPEATABLE)
CONSUME = Operation("consume", b"XREADGROUP", Effect.ONCE)
ACKNOWLEDGE = Operation("acknowledge", b"XACK", Effect.REPEATABLE)
CLAIM = Operation("claim", b"XCLAIM", Effect.REPEATABLE)
RECLAIM = Operation("reclaim", b"XAUTOCLAIM", Effect.REPEATABLE)
PENDING = Operation("pending", b"XPENDING", Effect.READ)
INFO = Operation("info", b"XINFO", Effect.READ)


class Entry(NamedTuple, Generic[E]):
    """One entry: its id (`<ms>-<number>`) and its value."""

    id: str
    value: E


class Pending(NamedTuple):
    """An entry that was delivered and not acknowledged."""

    id: str
    consumer: str
    idle: timedelta
    deliveries: int


class Reclaimed(NamedTuple, Generic[E]):
    """One page of reclaimed entries; go on from `cursor` until it is `0-0`.

    On Redis 6.2 `deleted` is empty: the server does not report them.
    """

    cursor: str
    entries: list[Entry[E]]
    deleted: list[str]


class ConsumerGroup(NamedTuple):
    """A consumer group as the server describes it; `lag` is None where the server does not know it."""

    name: str
    consumers: int
    pending: int
    last_delivered: str
    lag: int | None


class StreamStorage(Storage):
    """Entries of members; the id names an entry."""

    divisible = True
    fields: FieldSet[Any]

    def __init__(self, kind: type[Stream[Any]]) -> None:
        super().__init__(kind)
        self.fields = kind._fields
        self.groups = kind._groups

    def value(self, stored: Any, key: Key | None = None) -> Any:
        return [Entry(identity.decode(), self.fields.unflatten(flat)) for identity, flat in stored]

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        for identity, flat in stored:
            wrap = partial(Entry, identity.decode())
            yield member_entry(self.fields, dict(pairs(flat)), identity, wrap)

    def undeclared(self, stored: Any, key: Key | None = None) -> list[tuple[bytes | None, list[str]]]:
        found = super().undeclared(stored, key)
        for identity, flat in stored:
            others = undeclared_names(self.fields, dict(pairs(flat)))
            if others:
                found.append((identity, list(others.values())))
        return found

    def _names(self, stored: Any) -> Sequence[bytes]:
        return [identity for identity, _ in stored]

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        members = [(member.stored, refused(member.codec) or b"") for member in self.fields.members]
        others = getattr(self.fields, "others", None)
        if others is not None and (bad := refused(others.value)) is not None:
            members.append((others.field.encode(others.field.samples[0]), bad))
        if not any(bad for _, bad in members):
            return None
        return self.layout.addition(*(part for pair in members for part in pair))


class Stream(Key, Generic[E]):
    """A log of entries whose fields are those of the struct or dataclass E.

    Fields that vary from entry to entry are in a member of E that is marked with `OtherFields`.
    `groups=` declares its consumer groups: `create_groups` makes them, and other names are refused.
    """

    redis_type: ClassVar[str] = "stream"
    kind: ClassVar[str] = "stream"
    _storage = StreamStorage
    _fields: ClassVar[FieldSet[Any]]
    _decode_entries: ClassVar[Unbound]
    _groups: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, groups: Iterable[str] | None = None, **options: Unpack[KeyOptions]) -> None:
        if groups is not None:
            declared = () if isinstance(groups, str) else tuple(groups)
            names = [name for name in declared if isinstance(name, str) and name]
            if not names or len(set(names)) != len(declared):
                raise DeclarationError(
                    cls.__name__,
                    f"{groups!r} are not names of consumer groups",
                    "Give different names, as a list.",
                )
            cls._groups = declared
        super().__init_subclass__(**options)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._fields = FieldSet.of(cls, type_arguments(cls, Stream)[0])
        cls._decode_entries = staticmethod(_entries(cls._fields))
        return cls._fields.codecs

    def add(
        self, entry: E, *, entry_id: str = "*", max_length: int | None = None, min_id: str | None = None
    ) -> Call[str]:
        """Append an entry and return its id. Trim roughly to `max_length` entries or below `min_id`.

        An entry with a whole id of its own can be sent twice without harm; the second is refused, also where
        the engine sent it again because the first reply was lost.
        """
        trim = () if max_length is None and min_id is None else _trimming(max_length, min_id)
        members = self._fields.flat(entry)
        if not members:
            raise ValueRefusedError(
                self._template.source, "at least one member", "an entry whose members are all absent"
            )
        if entry_id == "*":
            return Refreshing(ADD, self, (*trim, b"*", *members), bytes.decode)
        try:
            operation = ADD if entry_id.endswith("*") else ADD_AT
        except (AttributeError, TypeError) as error:
            raise_explained(Stream.add, (self, entry), {"entry_id": entry_id}, error)
        return Refreshing(operation, self, (*trim, entry_id, *members), bytes.decode)

    def range(self, start: str = "-", end: str = "+", *, count: int | None = None) -> Call[list[Entry[E]]]:
        """Return entries from start to end, both included; `(` before an id excludes it."""
        # Bytes are packed while the first commands of a batch are sent.
        first, last = b"-" if start == "-" else start, b"+" if end == "+" else end
        return Sliding(RANGE, self, (first, last, *_counted(count)), self._decode_entries)

    def newest(self, count: int) -> Call[list[Entry[E]]]:
        """Return the last entries, newest first."""
        return Sliding(REVERSE, self, (b"+", b"-", b"COUNT", count), self._decode_entries)

    def length(self) -> Call[int]:
        """Return the number of entries."""
        return Sliding(LENGTH, self, (), int)

    def remove(self, *ids: str) -> Call[int]:
        """Remove entries by id. Return how many there were."""
        return Refreshing(REMOVE, self, ids, int) if ids else Ready(0)

    def trim(
        self, *, max_length: int | None = None, min_id: str | None = None, exact: bool = False
    ) -> Call[int]:
        """Delete the oldest entries, roughly unless `exact`. Return how many were deleted."""
        return Refreshing(TRIM, self, _trimming(max_length, min_id, exact=exact), int)

    @explained
    def read(
        self, after: str = "0-0", *, count: int | None = None, wait: timedelta | None = None
    ) -> Call[list[Entry[E]]]:
        """Return entries after an id (`$` for new ones only). Wait up to `wait` if there are none."""
        operation = _patient(READ, wait)
        lead = (*_counted(count), *_waiting(wait), b"STREAMS")
        return _Placed(operation, self, (lead, (after,)), self._decode_read)

    def create_group(self, group: str, *, start: str = "0") -> Call[bool]:
        """Create a consumer group, and the stream if need be. Return False if the group exists."""
        self._check_group(group)
        return (
            _Placed(GROUP, self, ((b"CREATE",), (group, start, b"MKSTREAM")), bool)
            .attempt()
            .map(_unless_there)
        )

    def create_groups(self, *, start: str = "0") -> Call[list[str]]:
        """Create the declared consumer groups that do not exist. Return their names.

        They are created one by one: if the process dies in between, the next call creates the rest.
        """
        names = self._groups
        created = gather_list(self.create_group(name, start=start) for name in names)
        return created.map(lambda made: [name for name, new in zip(names, made, strict=True) if new])

    def delete_group(self, group: str) -> Call[bool]:
        """Delete a consumer group with its pending entries. Return False if it does not exist."""
        return _Placed(GROUP, self, ((b"DESTROY",), (group,)), bool)

    def delete_consumer(self, group: str, consumer: str) -> Call[int]:
        """Delete a consumer. The group loses its unacknowledged entries, so reclaim them first."""
        return _Placed(GROUP, self, ((b"DELCONSUMER",), (group, consumer)), int)

    @explained
    def consume(
        self,
        group: str,
        consumer: str,
        *,
        count: int | None = None,
        wait: timedelta | None = None,
        again_from: str | None = None,
    ) -> Call[list[Entry[E]]]:
        """Return new entries for one consumer of a group, or its unacknowledged ones after `again_from`."""
        self._check_group(group)
        operation = _patient(CONSUME, wait)
        lead = (b"GROUP", group, consumer, *_counted(count), *_waiting(wait), b"STREAMS")
        return _Placed(operation, self, (lead, (again_from or b">",)), self._decode_read)

    def acknowledge(self, group: str, *ids: str) -> Call[int]:
        """Remove entries from the pending ones of a group. Return how many were pending."""
        self._check_group(group)
        return Command(ACKNOWLEDGE, self, (group, *ids), int) if ids else Ready(0)

    @explained
    def claim(self, group: str, consumer: str, *ids: str, idle: timedelta) -> Call[list[Entry[E]]]:
        """Take over these entries, those that were left unacknowledged for `idle`. Return them."""
        self._check_group(group)
        if not ids:
            return Ready([])

        def taken(reply: Reply) -> list[Entry[E]]:
            found: list[Entry[E]] = self._decode_entries([item for item in reply if item is not None])
            return found

        return Command(CLAIM, self, (group, consumer, idle // MILLISECOND, *ids), taken)

    @explained
    def reclaim(
        self, group: str, consumer: str, *, idle: timedelta, cursor: str = "0-0", count: int = 100
    ) -> Call[Reclaimed[E]]:
        """Take over entries that others left unacknowledged for `idle`. Return one page of them."""
        self._check_group(group)
        operands = (group, consumer, idle // MILLISECOND, cursor, b"COUNT", count)
        return Command(RECLAIM, self, operands, self._decode_reclaimed)

    @explained
    def pending(self, group: str, *, count: int = 100, idle: timedelta = timedelta(0)) -> Call[list[Pending]]:
        """Return entries that were delivered to some consumer and not acknowledged."""
        self._check_group(group)
        operands = (group, b"IDLE", idle // MILLISECOND, b"-", b"+", count)
        return Command(PENDING, self, operands, each(_pending))

    def groups(self) -> Call[list[ConsumerGroup]]:
        """Return the consumer groups that the server has."""
        return _Placed(INFO, self, ((b"GROUPS",), ()), each(consumer_group))

    def group_state(self, group: str) -> Call[ConsumerGroup | None]:
        """Return the lag of one consumer group and how much is pending; None if it does not exist."""
        self._check_group(group)
        return self.groups().map(lambda found: next((each for each in found if each.name == group), None))

    def _check_group(self, group: str) -> None:
        if self._groups and group not in self._groups:
            expected = f"one of the declared consumer groups {', '.join(self._groups)}"
            raise ValueRefusedError(self._template.source, expected, excerpt(group))

    def _members_of(self, entry: E) -> dict[bytes, bytes]:
        return self._fields.write(entry)

    def _own_fields(self) -> FieldSet[Any]:
        return self._fields

    def _decode_read(self, reply: Reply) -> list[Entry[E]]:
        found: list[Entry[E]] = self._decode_entries(reply[0][1]) if reply else []
        return found

    def _decode_reclaimed(self, reply: Reply) -> Reclaimed[E]:
        # Redis 6.2 answers without the third element, and with nil for deleted entries.
        present = [item for item in reply[1] if item is not None]
        deleted = [item.decode() for item in reply[2]] if len(reply) > 2 else []
        return Reclaimed(reply[0].decode(), self._decode_entries(present), deleted)


class _Placed(Command[E]):
    """A command whose key is not its first argument: operands before the key, and after it."""

    def lower(self, context: Any) -> Any:
        wire = super().lower(context)
        before, after = self.operands
        return patient(wire.with_arguments((self.operation.verb, *before, wire.name, *after)))


def _entries(fields: FieldSet[Any]) -> Callable[[Reply], list[Entry[Any]]]:
    unflatten = fields.unflatten

    def plainly(reply: list[Any]) -> list[Entry[Any]]:
        # A deleted entry that is still pending comes back as [id, nil].
        return [Entry(item[0].decode(), unflatten(item[1])) for item in reply if item[1] is not None]

    return entries_reader(fields, Entry, plainly) if isinstance(fields, Shape) else plainly


def _patient(operation: Operation, wait: timedelta | None) -> Operation:
    return operation if wait is None else operation._replace(blocking=wait / timedelta(seconds=1))


def _counted(count: int | None) -> tuple[Any, ...]:
    return () if count is None else (b"COUNT", count)


def _waiting(wait: timedelta | None) -> tuple[Any, ...]:
    return () if wait is None else (b"BLOCK", max(1, wait // MILLISECOND))


def _trimming(max_length: int | None, min_id: str | None, *, exact: bool = False) -> tuple[Any, ...]:
    mark = b"=" if exact else b"~"
    if max_length is not None:
        return b"MAXLEN", mark, max_length
    return () if min_id is None else (b"MINID", mark, min_id)


def _unless_there(result: object) -> bool:
    if isinstance(result, Exception):
        if "BUSYGROUP" in str(result):
            return False
        raise result
    return True


def _pending(row: list[Any]) -> Pending:
    return Pending(row[0].decode(), row[1].decode(), row[2] * MILLISECOND, row[3])


def consumer_group(row: list[Any]) -> ConsumerGroup:
    """Return a group from its row of XINFO GROUPS."""
    facts = {row[i].decode(): row[i + 1] for i in range(0, len(row), 2)}
    return ConsumerGroup(
        facts["name"].decode("utf-8", "backslashreplace"),
        facts["consumers"],
        facts["pending"],
        facts["last-delivered-id"].decode(),
        facts.get("lag"),
    )
