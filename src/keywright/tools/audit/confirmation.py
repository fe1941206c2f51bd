"""The second look at keys with a problem: data changes between the reads of a page.

A key that expires, is deleted or is written in two steps while an audit reads it looks wrong for a moment. So
a problem is reported only if the key still has it when it is read again at its primary. Each second look is
one command, and so atomic. Where a problem depends on a value and its TTL, the TTL is read before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from keywright.engine.nodes import Batch
from keywright.errors import KeywrightError
from keywright.keyspace.kinds.stream import consumer_group
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.layouts import Ask
from keywright.keyspace.wires import Reply, Wire
from keywright.tools.audit.matcher import Known
from keywright.tools.audit.page_reader import checked_replies, on_name
from keywright.tools.audit.value_checks import Checker, Problem
from keywright.tools.readable import ReadableDatabase

__all__ = ["Suspect", "confirmed"]

TYPE = Ask(b"TYPE")
TTL = Ask(b"PTTL")
FIELD_EXPIRY = ("KW304", "KW305")
GROUPS = Ask(b"XINFO", (b"GROUPS",))
GROUP_CODES = ("KW207", "KW208")


class Suspect(NamedTuple):
    """A problem of one key that was seen once."""

    known: Known
    checker: Checker
    name: bytes
    problem: Problem

    def asks(self) -> tuple[Ask, ...]:
        """Return the commands of the second look."""
        code, layout = self.problem.code, self.checker.storage.layout
        if code == "KW201":
            return (TYPE,)
        if code in ("KW301", "KW302"):
            return (TTL, layout.everything, TTL) if self.checker.needs_value_for_expiry else (TTL,)
        if code == "KW303":
            return (self.checker.field_expiry(),)
        if code in GROUP_CODES:
            return (GROUPS,)
        if code in FIELD_EXPIRY:
            return (self.checker.field_expiries([self._field]),)
        return (layout.everything,) if self._entry is None else (layout.find(self._entry),)

    def problem_in(self, replies: Sequence[Reply]) -> Problem | None:
        """Return the problem as the replies to `asks` show it; None if it is gone, or the key is."""
        code = self.problem.code
        if code == "KW201":
            return type_problem(self.known, replies[0])
        if code in ("KW301", "KW302"):
            return self._expiry_problem(replies)
        if code == "KW303":
            return self.checker.field_problem(replies[0])
        if code in GROUP_CODES:
            if not isinstance(replies[0], list):
                return None
            groups = self.checker.group_problems(list(map(consumer_group, replies[0])))
            return next((each for each in groups if each == self.problem), None)
        if code in FIELD_EXPIRY:
            if not isinstance(replies[0], list):
                return None
            key = partial(self.known.key, self.name)
            return self.checker.field_expiry_problem(self._field, replies[0][0], key)
        stored = self._stored(replies[0])
        if stored is None:
            return None
        problems = self.checker.check(lambda: self.known.key(self.name), stored).problems
        same = (each for each in problems if (each.code, each.member) == (code, self.problem.member))
        return next(same, None)

    @property
    def _field(self) -> bytes:
        assert self.problem.member is not None
        return self.problem.member

    @property
    def _entry(self) -> bytes | None:
        """Return the entry that the problem is about; None if it is about the value."""
        return None if self.checker.storage.whole else self.problem.member

    def _stored(self, reply: Reply) -> Any:
        if isinstance(reply, KeywrightError) or reply is None or reply == []:
            return None
        return reply if self._entry is None else self.checker.storage.layout.found(self._entry, reply)

    def _expiry_problem(self, replies: Sequence[Reply]) -> Problem | None:
        value: Any = UNSET
        if len(replies) > 1:
            stored = self._stored(replies[1])
            if stored is None:
                return None
            value = self.checker.check(lambda: self.known.key(self.name), stored).value
        key = partial(self.known.key, self.name)
        found = [None if ttl == -2 else self.checker.expiry_problem(ttl, value, key) for ttl in replies[::2]]
        return found[-1] if all(found) else None


def type_problem(known: Known, reply: bytes) -> Problem | None:
    """Return the problem of a key that is of another Redis type than declared."""
    found = reply.decode()
    if found in ("none", known.kind.redis_type):
        return None
    return Problem("KW201", f"is a {found}, declared a {known.kind.kind} ({known.kind.redis_type})")


async def confirmed(db: ReadableDatabase, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects that still have their problem, as it is now, in one batch at the primaries."""
    if db.is_still:
        return list(suspects)
    looks = [(suspect.name, suspect.asks()) for suspect in suspects]
    places: dict[tuple[bytes, tuple[Ask, ...]], int] = {}
    wires: list[Wire] = []
    for suspect, look in zip(suspects, looks, strict=True):
        if look not in places:
            places[look] = len(wires)
            wires += [on_name(ask, suspect.name, suspect.known.kind) for ask in look[1]]
    replies = checked_replies(await db.run(Batch(wires)))
    found = []
    for suspect, look in zip(suspects, looks, strict=True):
        start = places[look]
        problem = suspect.problem_in(replies[start : start + len(look[1])])
        if problem is not None:
            found.append(suspect._replace(problem=problem))
    return found
