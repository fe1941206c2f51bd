"""Repairs of relations and indexes: the forward side decides, the other side and the index follow.

Each reads both sides, decides, and commits with an optimistic lock on both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keywright.engine import AsyncDatabase
from keywright.keyspace import gather
from keywright.keyspace.call import Call, Command, as_is
from keywright.keyspace.checks import Check, absent, equals, exists, has_member
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.commits.work import bind
from keywright.keyspace.key import Key
from keywright.keyspace.layouts import Ask, Layout, stored_read
from keywright.keyspace.relations import Link, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.repair.reversal import reversed_writes
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import UndoFile

__all__ = ["Relinking", "missing"]


class DoubleClaimError(ValueError):
    """Two forward keys of a one-to-one relation claim one partner, which names the other. `checks` say so."""

    def __init__(self, kind: str, checks: list[Check]) -> None:
        self.checks = checks
        super().__init__(
            f"two keys of {kind} claim it, and only one can have it. Delete one of them; "
            f"--remove missing-inverse deletes the one that the other side does not name"
        )


class Relinking:
    """The repairs of the relations of some keyspaces."""

    def __init__(
        self, db: AsyncDatabase, links: Mapping[str, Link], key: Callable[[bytes], Any], undo: UndoFile
    ) -> None:
        self.db = db
        self.links = links
        self.key = key
        self.undo = undo

    async def complete(self, step: Step) -> bool:
        """Add to the inverse side what the forward side holds."""
        link, here, there = self._sides(step)
        if isinstance(link, OneToOne):
            return await self._mirror(step, link, here, there)
        if isinstance(link, ManyToOne):
            stored = await self._stored(here)
            if stored is None:
                return False
            if self._name(_made(link.inverse, here.declaration.decode(stored))) != step.other:
                return False
            premise = equals(here, stored)
        else:
            assert step.member is not None
            premise = has_member(here, step.member)
        return await self._add(step, there, there.declaration.encode(_identity(here)), premise)

    async def settle(self, step: Step) -> bool:
        """Complete the inverse side, or end a claim on a partner that another key holds on both sides."""
        try:
            return await self.complete(step)
        except DoubleClaimError as double:
            return await self._commit(step, double.checks, [self.key(step.name).delete()])

    async def withdraw(self, step: Step) -> bool:
        """Remove from the inverse side what the forward side does not confirm."""
        link, here, forward = self._sides(step)
        if isinstance(link, OneToOne):
            stored, confirmed = await self._both(here, forward)
            own = forward.declaration.encode(_identity(here))
            if stored is None or confirmed == own or here.declaration.decode(stored) != _identity(forward):
                return False
            checks = [equals(here, stored), equals(forward, confirmed)]
            return await self._commit(step, checks, [here.delete()])
        assert step.member is not None
        if isinstance(link, ManyToOne):
            confirmed = await self._stored(forward)
            if confirmed == forward.declaration.encode(_identity(here)):
                return False
            premise = equals(forward, confirmed)
        else:
            premise = has_member(forward, forward.declaration.encode(_identity(here)), present=False)
        return await self._remove(step, here, step.member, premise)

    async def enlist(self, step: Step) -> bool:
        """Add a record to its index."""
        _, record, index = self._sides(step)
        return await self._add(step, index, index.declaration.encode(_identity(record)), exists(record))

    async def unlist(self, step: Step) -> bool:
        """Remove an index entry whose record does not exist."""
        _, index, record = self._sides(step)
        assert step.member is not None
        return await self._remove(step, index, step.member, absent(record))

    def keeps(self, key: Any) -> bool:
        """Return whether a key is the inverse side of a relation, which its forward side would restore."""
        return self._kept_by(key) is not None

    async def unrelate(self, step: Step) -> bool:
        """End the relations of an inverse key, on both sides; only one if the step names an entry."""
        inverse = self.key(step.name)
        link: Any = self._kept_by(inverse)
        b = _identity(inverse)
        if isinstance(link, OneToOne):
            partners = [await self.db.run(inverse.get())]
        elif step.member is not None:
            partners = [inverse.declaration.decode(step.member)]
        else:
            partners = list(await self.db.run(inverse.members()))
        ended = [await self._part(step, link, a, b) for a in partners if a is not None]
        return any(ended)

    async def _part(self, step: Step, link: Any, a: Any, b: Any) -> bool:
        forward, inverse = link.forward(a), link.inverse(b)
        checks = [] if step.other is None else [missing(self.key(step.other), step.field)]
        if isinstance(link, ManyToMany):
            checks.append(has_member(forward, forward.declaration.encode(b)))
            return await self._commit(step, checks, [forward.remove(b), inverse.remove(a)])
        checks.append(link.holds(a, b))
        if isinstance(link, OneToOne):
            checks.append(equals(inverse, inverse.declaration.encode(a)))
        return await self._commit(step, checks, link.parted(a, b))

    def _kept_by(self, key: Any) -> Link | None:
        relations = [
            link for link in self.links.values() if isinstance(link, ManyToOne | OneToOne | ManyToMany)
        ]
        return next((link for link in relations if type(key) is link.inverse), None)

    async def _mirror(self, step: Step, link: OneToOne[Any, Any], here: Any, there: Any) -> bool:
        stored, back = await self._both(here, there)
        own = there.declaration.encode(_identity(here))
        if stored is None or back == own or here.declaration.decode(stored) != _identity(there):
            return False
        checks = [equals(here, stored), equals(there, back)]
        if back is not None:
            rival = _made(link.forward, there.declaration.decode(back))
            held = await self._stored(rival)
            checks.append(equals(rival, held))
            if held == stored:
                raise DoubleClaimError(link.forward.__name__, checks)
        return await self._commit(step, checks, [there.set(there.declaration.decode(own))])

    async def _add(self, step: Step, into: Key, member: bytes, premise: Check) -> bool:
        layout = _layout(into)
        checks = [premise, layout.absence(into, member)]
        return await self._commit(step, checks, [_write(into, layout.addition(member))])

    async def _remove(self, step: Step, out_of: Key, member: bytes, premise: Check) -> bool:
        removal = _layout(out_of).removal(out_of, member, True)
        return await self._commit(step, [premise, *removal.checks], [_write(out_of, removal.command)])

    def _sides(self, step: Step) -> tuple[Link, Any, Any]:
        link = self.links.get(step.link)
        if link is None or step.other is None:
            raise ValueError(f"the relation {step.link!r} is not declared any more")
        return link, self.key(step.name), self.key(step.other)

    async def _both(self, one: Key, other: Key) -> tuple[bytes | None, bytes | None]:
        return await self.db.run(gather(_value(one), _value(other)))

    async def _stored(self, key: Key) -> bytes | None:
        return await self.db.run(_value(key))

    async def _commit(self, step: Step, checks: list[Check], writes: list[Call[Any]]) -> bool:
        work = bind(self.db.context, checks, writes)
        backs, unchanged = await reversed_writes(self.db, work, self.key, step.code)
        return await self.undo.run(self.db, commit("repair", [*checks, *unchanged], writes), *backs)

    def _name(self, key: Any) -> bytes:
        return self.db.context.name(key)


def missing(key: Key, entry: bytes | None) -> Check:
    """Return the check that the target of a dangling reference is still missing: a key, or an entry of it."""
    return absent(key) if entry is None else _layout(key).absence(key, entry)


def _made(kind: Callable[..., Any], identity: Any) -> Any:
    return kind(identity)


def _identity(key: Key) -> Any:
    """Return the only variable of a key of a relation."""
    return key.declaration.values(key)[0]


def _layout(key: Key) -> Layout:
    return key.declaration.storage.layout


def _value(key: Key) -> Call[bytes | None]:
    return stored_read(key, _layout(key).everything, "repair")


def _write(key: Key, ask: Ask) -> Call[Any]:
    return Command(Operation("repair", ask.verb, Effect.REPEATABLE), key, ask.operands, as_is)
