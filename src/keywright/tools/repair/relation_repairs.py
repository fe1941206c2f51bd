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
from keywright.keyspace.key import Key
from keywright.keyspace.layouts import Ask, Layout, stored_read
from keywright.keyspace.relations import Link, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import Back, UndoFile

__all__ = ["Relinking"]


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

    async def withdraw(self, step: Step) -> bool:
        """Remove from the inverse side what the forward side does not confirm."""
        link, here, forward = self._sides(step)
        if isinstance(link, OneToOne):
            stored, confirmed = await self._both(here, forward)
            own = forward.declaration.encode(_identity(here))
            if stored is None or confirmed == own or here.declaration.decode(stored) != _identity(forward):
                return False
            checks = [equals(here, stored), equals(forward, confirmed)]
            return await self._commit(checks, [here.delete()], self._back(step, here, stored))
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
        if step.other is not None and await self._there(step):
            return False
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
        backs = [
            self._back(step, forward, forward.declaration.encode(b)),
            self._back(step, inverse, inverse.declaration.encode(a)),
        ]
        if isinstance(link, ManyToMany):
            return await self.undo.run(self.db, link.clear(a, b), *backs)
        if await self.db.run(forward.get()) != b:
            return False
        return await self.undo.run(self.db, link.clear(a), *backs)

    def _back(self, step: Step, key: Key, partner: bytes) -> Back:
        """Return the command that adds a partner to a key again."""
        return Back.by(_layout(key).restoration(partner), self._name(key), step.code)

    async def _there(self, step: Step) -> bool:
        """Return whether the missing key exists now."""
        target = self.key(step.other or b"")
        if step.field is None:
            return await self.db.run(target.exists())
        layout = _layout(target)
        return layout.is_present(
            await self.db.run(stored_read(target, layout.presence(step.field), "repair"))
        )

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
            if held == stored:
                raise ValueError(f"two keys of {link.forward.__name__} claim it, and only one can have it")
            checks.append(equals(rival, held))
        name = self._name(there)
        command = [b"UNLINK", name] if back is None else [b"SET", name, back]
        write = there.set(there.declaration.decode(own))
        return await self._commit(checks, [write], Back(command, name, step.code, wrote=own))

    async def _add(self, step: Step, into: Key, member: bytes, premise: Check) -> bool:
        layout = _layout(into)
        back = Back.by(layout.removal(into, member, True).command, self._name(into), step.code)
        checks = [premise, layout.absence(into, member)]
        return await self._commit(checks, [_write(into, layout.addition(member))], back)

    async def _remove(self, step: Step, out_of: Key, member: bytes, premise: Check) -> bool:
        removal = _layout(out_of).removal(out_of, member, True)
        back = self._back(step, out_of, member)
        return await self._commit([premise, *removal.checks], [_write(out_of, removal.command)], back)

    def _sides(self, step: Step) -> tuple[Link, Any, Any]:
        link = self.links.get(step.link)
        if link is None or step.other is None:
            raise ValueError(f"the relation {step.link!r} is not declared any more")
        return link, self.key(step.name), self.key(step.other)

    async def _both(self, one: Key, other: Key) -> tuple[bytes | None, bytes | None]:
        return await self.db.run(gather(_value(one), _value(other)))

    async def _stored(self, key: Key) -> bytes | None:
        return await self.db.run(_value(key))

    async def _commit(self, checks: list[Check], writes: list[Call[Any]], back: Back) -> bool:
        return await self.undo.run(self.db, commit("repair", checks, writes), back)

    def _name(self, key: Any) -> bytes:
        return self.db.context.name(key)


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
