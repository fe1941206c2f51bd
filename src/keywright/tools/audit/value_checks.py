"""Checks of stored values against their template. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from keywright.errors import excerpt
from keywright.keyspace import Context, Set
from keywright.keyspace.codecs import CodecError, is_sealed, unpacking_at_most
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.opener import Opener
from keywright.keyspace.kinds.stream import ConsumerGroup
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.layouts import Ask
from keywright.keyspace.relations import named_elsewhere
from keywright.keyspace.storage import Defect, Fault
from keywright.keyspace.wires import Reply

__all__ = ["Checked", "Checker", "Problem"]

SLACK_MS = 1500  # a TTL is read after it was set, and both are rounded
MOST_UNPACKED = 1 << 20  # of compressed values that are decoded together, or of one
CLOCK_SLACK_MS = 10_000  # a moment is compared with our clock, which is not the server's

_CODES = {
    Fault.MALFORMED: "KW202",
    Fault.MISSING: "KW203",
    Fault.UNSEALED: "KW204",
    Fault.BROKEN_SEAL: "KW205",
    Fault.TOO_LARGE: "KW502",
}


class Problem(NamedTuple):
    """One problem of a value; `member` is the stored entry concerned."""

    code: str
    reason: str
    found: str = ""
    member: bytes | None = None


class Checked(NamedTuple):
    """The result of a check: the value, UNSET if it is unknown, and its problems."""

    value: Any
    problems: Sequence[Problem] = ()
    sealed: int = 0
    in_clear: int = 0
    """How many values that are declared sealed are, and how many are stored in clear."""
    unpacked: int = 0
    """The bytes of compressed values that were unpacked."""


class Checker:
    """The checks of one key class in one database."""

    def __init__(self, kind: type[Key], context: Context) -> None:
        self.kind = kind
        self.context = context
        self.storage = kind.declaration.storage
        self.expiry: Expiry | None = context.expiry_of(kind)
        self._sealed = kind.declaration.sealed
        self._upgrades = kind.declaration.upgrades_in_place
        self._closed = self.storage.has_members and not kind.declaration.open
        fields = self.storage.fields if kind.redis_type == "hash" else None
        self.required = tuple(member.stored for member in fields.members if member.required) if fields else ()
        """The fields that every key of the class must have."""
        self.field_rules = kind.declaration.field_expiry
        self._others = tuple(named_elsewhere(kind))
        self._in_bulk = self.storage.is_read and not (self._sealed or self._upgrades or self._others)

    @cached_property
    def opener(self) -> Opener:
        """The decoder of single entries, which sound values do not need."""
        return Opener(self.kind, self.context)

    def sound(self, stored: Sequence[Any]) -> bool:
        """Return whether many stored values are all valid; False if they must be checked one by one."""
        try:
            with unpacking_at_most(MOST_UNPACKED):
                if not (self._in_bulk and self.storage.verify(stored)):
                    return False
            with unpacking_at_most(MOST_UNPACKED):
                return not (self._closed and any(map(self.storage.undeclared, stored)))
        except (CodecError, ValueError):
            return False

    def check(self, key: Callable[[], Any], stored: Any) -> Checked:
        """Check a stored value, or one page of a collection. `key` makes the key, which few checks need."""
        if self._upgrades:
            older = self.opener.older(stored, key())
            if older is not None:
                problem = Problem("KW103", f"stored in the older shape {older.version!r}")
                clear = self._sealed and isinstance(stored, bytes) and not is_sealed(stored)
                return Checked(UNSET, [problem], in_clear=int(clear))
        if not self.storage.is_read:
            return Checked(UNSET)
        named = key() if self.storage.by_name or self._sealed else None
        if not self._sealed:
            try:
                with unpacking_at_most(MOST_UNPACKED) as allowance:
                    value = self.storage.value(stored, named)
                if not self._others or all(self._unnamed(each) is None for each in self._held(value)):
                    problems = self._undeclared(stored, named) if self._closed else ()
                    return Checked(value, problems, unpacked=allowance.used)
            except (CodecError, ValueError):
                pass  # the checks of single entries find the invalid one
        return self._by_entry(stored, named)

    def _by_entry(self, stored: Any, key: Key | None) -> Checked:
        values: list[Any] = []
        problems: list[Problem] = []
        seals: list[bool] = []
        unpacked = 0
        name = b"" if key is None else self.context.name(key)
        for entry in self.storage.entries(stored, key):
            seals += [is_sealed(part.data) for part in entry.parts if part.codec.sealed]
            with unpacking_at_most(MOST_UNPACKED) as allowance:
                decoded = [self.opener.read(part, name) for part in entry.parts]
            unpacked += allowance.used
            defects = [*entry.defects, *(each for each in decoded if isinstance(each, Defect))]
            if defects:
                # An entry is removed as one, so its first defect stands for it; a record has many members.
                problems += map(_problem, defects if self.storage.whole else defects[:1])
            elif unpacked <= MOST_UNPACKED and (self.storage.fields is None or UNSET not in decoded):
                try:
                    value = entry.value(decoded)
                    unnamed = self._unnamed(value)
                    if unnamed is None:
                        values.append(value)
                    else:
                        problems.append(_problem(unnamed._replace(entry=entry.parts[0].entry)))
                except CodecError as error:  # the class refuses members that are valid one by one
                    problems.append(_problem(Defect(Fault.MALFORMED, f"expected {error.expected}", error)))
        if self._closed and not problems:
            problems += self._undeclared(stored, key)
        known = unpacked <= MOST_UNPACKED and (values or not self.storage.whole)
        value = self.storage.joined(values) if known else UNSET
        return Checked(value, problems, seals.count(True), seals.count(False), unpacked)

    def _held(self, value: Any) -> Iterable[Any]:
        return value if issubclass(self.kind, Set) else (value,)

    def _unnamed(self, value: Any) -> Defect | None:
        """Return the defect of an id that no key on another side of a relation can have."""
        for other in self._others:
            template = other.declaration.template
            variable = template.variables[0]
            alphabet = template.alphabets[variable]
            try:
                alphabet.render(value)
            except ValueError:
                expected = f"{alphabet.expected}, as <{variable}> of {template.source!r}"
                error = CodecError(expected, excerpt(value))
                return Defect(Fault.MALFORMED, f"expected {expected}", error)
        return None

    def _undeclared(self, stored: Any, key: Key | None) -> list[Problem]:
        with unpacking_at_most(MOST_UNPACKED):
            found = self.storage.undeclared(stored, key)
        return [
            Problem("KW206", "has members that are not declared", ", ".join(map(repr, names)), entry)
            for entry, names in found
        ]

    def group_problems(self, found: Sequence[ConsumerGroup]) -> list[Problem]:
        """Return the problems of the consumer groups of a stream, of a class that declares them."""
        names, declared = [group.name for group in found], self.storage.groups
        missing = [
            Problem("KW207", f"has no consumer group {name!r}", member=name.encode())
            for name in declared
            if name not in names
        ]
        return missing + [
            Problem("KW208", "has a consumer group that is not declared", member=name.encode())
            for name in names
            if name not in declared
        ]

    def field_expiry(self) -> Ask:
        """Return the command that reads the expiries of the required fields."""
        return Ask(b"HPTTL", (b"FIELDS", len(self.required), *self.required))

    def field_expiries(self, fields: Sequence[bytes]) -> Ask:
        """Return the command that reads the expiries of some fields."""
        return Ask(b"HPTTL", (b"FIELDS", len(fields), *fields))

    def timed_fields(self, fields: Iterable[bytes]) -> list[bytes]:
        """Return the fields whose expiries are declared; required ones are asked for with `field_expiry`."""
        return [] if self.field_rules is None else [field for field in fields if field not in self.required]

    def field_expiry_problem(self, field: bytes, ttl_ms: int, key: Callable[[], Any]) -> Problem | None:
        """Return the problem of the TTL of a field (-1: no expiry), where expiries of fields are declared."""
        assert self.field_rules is not None
        declared = self.field_rules.of(field)
        expiry = declared and _of_key(declared, key)
        if ttl_ms == -2 or (declared is not None and expiry is None):
            return None  # it is gone, or the declaration cannot compute its expiry
        if declared is None or expiry is None:
            reason = "a field expires that is declared without expiry"
            return None if ttl_ms == -1 else Problem("KW305", reason, f"{ttl_ms / 1000:g} s", field)
        if ttl_ms == -1:
            reason = f"a field has no expiry, declared {expiry.describe()}"
            return None if expiry.optional else Problem("KW304", reason, member=field)
        bound = self.field_bound_ms(expiry)
        if bound is not None and ttl_ms > bound:
            reason = f"a field expires in {ttl_ms / 1000:g} s, declared {expiry.describe()}"
            return Problem("KW304", reason, member=field)
        return None

    def field_bound_ms(self, expiry: Expiry) -> int | None:
        """Return the longest valid TTL of a field, with some slack; None without a bound."""
        if isinstance(expiry.moment, datetime):
            left = round(expiry.moment.timestamp() * 1000) - self.context.now_ms()
            return max(0, left) + CLOCK_SLACK_MS
        return None if expiry.longest_ms is None else expiry.longest_ms + SLACK_MS

    def field_problem(self, reply: Reply) -> Problem | None:
        """Return the problem in a reply to `field_expiry` (-1: no expiry), if any."""
        if not isinstance(reply, list):
            return None
        found = [
            f"{field.decode('utf-8', 'backslashreplace')} in {ttl / 1000:g} s"
            for field, ttl in zip(self.required, reply, strict=False)
            if ttl >= 0
        ]
        return Problem("KW303", "has required members that expire", ", ".join(found)) if found else None

    def expiry_problem(self, ttl_ms: int, value: Any, key: Callable[[], Any]) -> Problem | None:
        """Return the problem of a key's TTL (-1: no expiry), if any. Expiries by value need the value."""
        expiry = self.expiry_for(key)
        bound = self.longest_ms(value, key)
        if bound is None or expiry is None:
            return None
        if ttl_ms == -1:
            return (
                None if expiry.optional else Problem("KW301", f"has no expiry, declared {expiry.describe()}")
            )
        if ttl_ms > bound:
            return Problem("KW302", f"expires in {ttl_ms / 1000:g} s, declared {expiry.describe()}")
        return None

    def expiry_for(self, key: Callable[[], Any] | None) -> Expiry | None:
        """Return the expiry that is declared for a key; None if it follows from the key and none is given."""
        if self.expiry is None or self.expiry.ttl_of is None:
            return self.expiry
        return None if key is None else _of_key(self.expiry, key)

    def longest_ms(self, value: Any, key: Callable[[], Any] | None = None) -> int | None:
        """Return the longest valid TTL, with some slack; None without a bound."""
        expiry = self.expiry_for(key)
        if expiry is None or (expiry.optional and expiry.ttl_ms is None):
            return None
        if expiry.longest_ms is not None:
            return expiry.longest_ms + SLACK_MS
        if value is UNSET and callable(expiry.moment):
            return None
        moment = _moment(expiry, value)
        if moment is None:
            return None
        return max(0, round(moment.timestamp() * 1000) - self.context.now_ms()) + CLOCK_SLACK_MS

    @property
    def needs_value_for_expiry(self) -> bool:
        return self.expiry is not None and callable(self.expiry.moment)


def _problem(defect: Defect) -> Problem:
    if defect.fault is Fault.TOO_LARGE:
        reason = f"unpacks to more than {MOST_UNPACKED >> 20} MiB, so it was not read"
        return Problem(_CODES[defect.fault], reason, member=defect.entry)
    return Problem(_CODES[defect.fault], defect.reason, defect.found, defect.entry)


def _of_key(expiry: Expiry, key: Callable[[], Any]) -> Expiry | None:
    """Return the expiry of one key, where it follows from the key; None if that fails."""
    if expiry.ttl_of is None:
        return expiry
    try:
        return expiry.of_key(key())
    except Exception:  # noqa: BLE001  # the function is of the declaration, the name of anyone
        return None


def _moment(expiry: Expiry, value: Any) -> datetime | None:
    try:
        resolved = expiry.resolved(value)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # the value is not of the form that the declaration's function reads
    moment = None if resolved is None else resolved.moment
    return moment if isinstance(moment, datetime) else None
