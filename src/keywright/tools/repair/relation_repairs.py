"""Repairs of relations and indexes: the forward side decides, the other side and the index follow.

Each reads both sides, decides, and commits with a check that both are still what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keywright.engine import AsyncDatabase
from keywright.keyspace import gather
from keywright.keyspace.call import Call, Command, Plain, as_is
from keywright.keyspace.commits.checks import Check, absent, equals, exists, has_member
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.relations import Link, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import Back, UndoFile

__all__ = ["Relinking"]

GET = Operation("repair", b"GET", Effect.READ)


class Relinking:
    """Steps on the relations of some keyspaces."""

    def __init__(
        self, db: AsyncDatabase, links: Mapping[str, Link], key: Callable[[bytes], Any], undo: UndoFile
    ) -> None:
        self.db = db
        self.links = links
        self.key = key
        self.undo = undo

    async def complete(self, step: Step) -> bool:
        """Give the other side what the forward side says."""
        link, here, there = self._sides(step)
        if isinstance(link, OneToOne):
            return await self._mirror(step, link, here, there)
        if isinstance(link, ManyToOne):
            stored = await self._get(step.name)
            if stored is None or self._name(_made(link.inverse, here._codec.decode(stored))) != step.other:
                return False
            premise = equals(here, stored)
        else:
            assert step.member is not None
            premise = has_member(here, step.member)
        return await self._add(step, there, there._encode(here._values[0]), premise)

    async def withdraw(self, step: Step) -> bool:
        """Take from the other side what the forward side does not say."""
        link, here, forward = self._sides(step)
        if isinstance(link, OneToOne):
            stored, confirmed = await self._both(step.name, self._name(forward))
            own = forward._encode(here._values[0])
            if stored is None or confirmed == own or here._codec.decode(stored) != forward._values[0]:
                return False
            back = Back([b"SET", step.name, stored, b"NX"], step.name, step.code)
            checks = [equals(here, stored), equals(forward, confirmed)]
            return await self._commit(checks, [here.delete()], back)
        assert step.member is not None
        if isinstance(link, ManyToOne):
            confirmed = await self._get(self._name(forward))
            if confirmed == forward._encode(here._values[0]):
                return False
            premise = equals(forward, confirmed)
        else:
            premise = has_member(forward, forward._encode(here._values[0]), present=False)
        return await self._remove(step, here, step.member, premise)

    async def enlist(self, step: Step) -> bool:
        """Name a record in its index."""
        _, record, index = self._sides(step)
        return await self._add(step, index, index._encode(record._values[0]), exists(record))

    async def unlist(self, step: Step) -> bool:
        """Drop a name from an index whose record is not there."""
        _, index, record = self._sides(step)
        assert step.member is not None
        return await self._remove(step, index, step.member, absent(record))

    def keeps(self, key: Any) -> bool:
        """Whether a key is the other side of a relation, which its forward side would bring back."""
        return self._kept_by(key) is not None

    async def unrelate(self, step: Step) -> bool:
        """End the relations of a key that is the other side, on both sides; one, where one is meant."""
        inverse = self.key(step.name)
        link: Any = self._kept_by(inverse)
        if step.other is not None and await self._there(step):
            return False
        b = inverse._values[0]
        if isinstance(link, OneToOne):
            partners = [await self.db.run(inverse.get())]
        elif step.member is not None:
            partners = [inverse._codec.decode(step.member)]
        else:
            partners = list(await self.db.run(inverse.members()))
        ended = [await self._part(step, link, a, b) for a in partners if a is not None]
        return any(ended)

    async def _part(self, step: Step, link: Any, a: Any, b: Any) -> bool:
        forward, inverse = link.forward(a), link.inverse(b)
        backs = [self._kept(step, forward, b), self._kept(step, inverse, a)]
        if isinstance(link, ManyToMany):
            return await self.undo.run(self.db, link.clear(a, b), *backs)
        if await self.db.run(forward.get()) != b:
            return False
        return await self.undo.run(self.db, link.clear(a), *backs)

    def _kept(self, step: Step, key: Any, held: Any) -> Back:
        """What makes a key hold a partner again."""
        name, stored = self._name(key), key._encode(held)
        into = key.redis_type == "set"
        return Back([b"SADD", name, stored] if into else [b"SET", name, stored, b"NX"], name, step.code)

    async def _there(self, step: Step) -> bool:
        """Whether what was missing has come."""
        target = self.key(step.other or b"")
        name = self._name(target)
        if step.field is None:
            return await self.db.run(target.exists())
        verb = {"hash": b"HEXISTS", "set": b"SISMEMBER"}.get(target.redis_type, b"ZSCORE")
        call = Plain(Operation("repair", verb, Effect.READ), (name, step.field), name)
        return bool(await self.db.run(call))

    def _kept_by(self, key: Any) -> Link | None:
        relations = [
            link for link in self.links.values() if isinstance(link, ManyToOne | OneToOne | ManyToMany)
        ]
        return next((link for link in relations if type(key) is link.inverse), None)

    async def _mirror(self, step: Step, link: OneToOne[Any, Any], here: Any, there: Any) -> bool:
        stored, back = await self._both(step.name, self._name(there))
        own = there._encode(here._values[0])
        if stored is None or back == own or here._codec.decode(stored) != there._values[0]:
            return False
        checks = [equals(here, stored), equals(there, back)]
        if back is not None:
            rival = _made(link.forward, there._codec.decode(back))
            held = await self._get(self._name(rival))
            if held == stored:
                raise ValueError(f"two keys of {link.forward.__name__} claim it, and only one can have it")
            checks.append(equals(rival, held))
        name = self._name(there)
        command = [b"UNLINK", name] if back is None else [b"SET", name, back]
        write = there.set(there._codec.decode(own))
        return await self._commit(checks, [write], Back(command, name, step.code, wrote=own))

    async def _add(self, step: Step, into: Any, member: bytes, premise: Check) -> bool:
        name = self._name(into)
        checks = [premise, has_member(into, member, present=False)]
        back = Back([b"SREM", name, member], name, step.code)
        return await self._commit(checks, [_on(into, b"SADD", member)], back)

    async def _remove(self, step: Step, out_of: Any, member: bytes, premise: Check) -> bool:
        name = self._name(out_of)
        back = Back([b"SADD", name, member], name, step.code)
        checks = [premise, has_member(out_of, member)]
        return await self._commit(checks, [_on(out_of, b"SREM", member)], back)

    def _sides(self, step: Step) -> tuple[Link, Any, Any]:
        link = self.links.get(step.link)
        if link is None or step.other is None:
            raise ValueError(f"there is no relation {step.link!r} any more")
        return link, self.key(step.name), self.key(step.other)

    async def _both(self, one: bytes, other: bytes) -> tuple[bytes | None, bytes | None]:
        return await self.db.run(gather(Plain(GET, (one,), one), Plain(GET, (other,), other)))

    async def _get(self, name: bytes) -> bytes | None:
        stored: bytes | None = await self.db.run(Plain(GET, (name,), name))
        return stored

    async def _commit(self, checks: list[Check], writes: list[Call[Any]], back: Back) -> bool:
        return await self.undo.run(self.db, commit("repair", checks, writes), back)

    def _name(self, key: Any) -> bytes:
        return self.db.context.name(key)


def _made(kind: Callable[..., Any], identity: Any) -> Any:
    return kind(identity)


def _on(key: Any, verb: bytes, member: bytes) -> Command[Any]:
    return Command(Operation("repair", verb, Effect.REPEATABLE), key, (member,), as_is)
