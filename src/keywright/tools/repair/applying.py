"""Applying a plan, step by step.

Each step re-checks, where it writes, that what was seen still holds: one that was overtaken changes
nothing and says so. Applying a plan twice does nothing more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import EngineError, KeywrightError
from keywright.keyspace import gather
from keywright.keyspace.call import Command, Effect, Operation, Plain, as_is
from keywright.keyspace.codecs import Plaintext
from keywright.keyspace.guard import Check, absent, equals, field_equals, has_member
from keywright.keyspace.journal import commit
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.script import BoundScript, Script
from keywright.keyspace.versions import Upgrade
from keywright.tools.audit.checking import CLOCK_SLACK_MS, Checker
from keywright.tools.audit.matching import Matcher
from keywright.tools.repair.fingerprints import exact, fingerprint
from keywright.tools.repair.planning import Step
from keywright.tools.repair.relinking import Relinking
from keywright.tools.repair.undoing import UndoFile, restoring

__all__ = ["Outcome", "Repairer"]

REMOVE_UNCHANGED = Script("keywright.tools.repair", "remove_unchanged", Effect.REPEATABLE)
GIVE_EXPIRY = Script("keywright.tools.repair", "give_expiry", Effect.REPEATABLE)
ATTEMPTS = 8
DUMP = Operation("repair", b"DUMP", Effect.READ)
TTL = Operation("repair", b"PTTL", Effect.READ)
GET = Operation("repair", b"GET", Effect.READ)
HGET = Operation("repair", b"HGET", Effect.READ)
SET = Operation("repair", b"SET", Effect.REPEATABLE)
HSET = Operation("repair", b"HSET", Effect.REPEATABLE)


class Outcome(NamedTuple):
    """What became of one step: `done`, `overtaken` (nothing to do any more), or `left`, and why."""

    step: Step
    state: str
    why: str = ""


class Repairer:
    """Does the steps of a plan in one database."""

    def __init__(self, db: AsyncDatabase, matcher: Matcher, undo: UndoFile) -> None:
        self.db = db
        self.matcher = matcher
        self.undo = undo
        links = {link.name: link for space in matcher.spaces for link in space.links}
        relinking = self._relinking = Relinking(db, links, self._key, undo)
        self._actions: Mapping[str, Callable[[Step], Awaitable[bool]]] = {
            "remove-key": self._remove_key,
            "remove-entry": self._remove_entry,
            "expire": self._expire,
            "seal": self._seal,
            "upgrade": self._upgrade,
            "move": self._move,
            "complete": relinking.complete,
            "withdraw": relinking.withdraw,
            "list": relinking.enlist,
            "unlist": relinking.unlist,
        }

    async def apply(self, step: Step) -> Outcome:
        action = self._actions.get(step.action)
        if action is None:
            return Outcome(step, "left", f"there is no action {step.action!r}")
        try:
            return Outcome(step, "done" if await action(step) else "overtaken")
        except EngineError:
            raise
        except (KeywrightError, ValueError) as error:
            return Outcome(step, "left", _masked(str(error), step))

    async def _remove_key(self, step: Step) -> bool:
        name = step.name
        if step.code == "KW401" and self._relinking.keeps(self._key(name)):
            return await self._relinking.unrelate(step)
        for attempt in range(ATTEMPTS):  # the order of a set may change between two reads
            dump, ttl = await self.db.run(gather(Plain(DUMP, (name,), name), Plain(TTL, (name,), name)))
            if dump is None or fingerprint(dump) != step.seen:
                return False
            if not attempt:
                self.undo.keep(name, step.code, restoring(name, dump, ttl))
            if await self.db.run(BoundScript(REMOVE_UNCHANGED, [name], (exact(dump).encode(),))):
                return True
        return False

    async def _remove_entry(self, step: Step) -> bool:
        key = self._key(step.name)
        assert step.member is not None
        if step.code == "KW401" and self._relinking.keeps(key):
            return await self._relinking.unrelate(step)
        removal, back, checks = await self._removal(key, step.member)
        if removal is None:
            return False
        if step.code == "KW401" and step.other is not None:
            checks = [*checks, _missing(self._key(step.other), step.field)]
        self.undo.keep(step.name, step.code, back)
        return bool(await self.db.run(commit("repair", checks, [removal])))

    async def _removal(
        self, key: Any, entry: bytes
    ) -> tuple[Command[Any] | None, list[bytes | int], list[Check]]:
        """The command that removes one entry, the one that puts it back, and what must hold."""
        name, kind = self.db.context.name(key), key.redis_type
        if kind == "set":
            return _on(key, b"SREM", entry), [b"SADD", name, entry], [has_member(key, entry)]
        if kind == "hash":
            held = await self.db.run(Plain(HGET, (name, entry), name))
            if held is None:
                return None, [], []
            return _on(key, b"HDEL", entry), [b"HSET", name, entry, held], [field_equals(key, entry, held)]
        if kind == "zset":
            score = await self.db.run(Plain(Operation("repair", b"ZSCORE", Effect.READ), (name, entry), name))
            if score is None:
                return None, [], []
            return _on(key, b"ZREM", entry), [b"ZADD", name, score, entry], []
        if kind == "list":
            return _on(key, b"LREM", 0, entry), [b"RPUSH", name, entry], []
        found = await self.db.run(
            Plain(Operation("repair", b"XRANGE", Effect.READ), (name, entry, entry), name)
        )
        if not found:
            return None, [], []
        return _on(key, b"XDEL", entry), [b"XADD", name, entry, *found[0][1]], []

    async def _expire(self, step: Step) -> bool:
        key = self._key(step.name)
        checker = Checker(type(key), self.db.context)
        value = UNSET
        if checker.needs_value_for_expiry:
            stored = await self.db.run(Plain(GET, (step.name,), step.name))
            value = checker.check(lambda: key, stored).value if stored is not None else UNSET
        bound = checker.longest_ms(value)
        if bound is None or checker.expiry is None:
            return False
        given = checker.expiry.ttl_ms or max(1, bound - CLOCK_SLACK_MS)
        had = await self.db.run(BoundScript(GIVE_EXPIRY, [step.name], (bound, given)))
        if had == -2:
            return False
        back: list[bytes | int] = (
            [b"PERSIST", step.name]
            if had == -1
            else [b"PEXPIREAT", step.name, self.db.context.now_ms() + had]
        )
        self.undo.keep(step.name, step.code, back)
        return True

    async def _seal(self, step: Step) -> bool:
        key = self._key(step.name)
        field = step.member if key.redis_type == "hash" else None
        read = Plain(GET, (step.name,), step.name)
        if field is not None:
            read = Plain(HGET, (step.name, field), step.name)
        stored = await self.db.run(read)
        if stored is None:
            return False
        (sealed,) = self.db.context.seal(key, (Plaintext(stored),))
        if field is None:
            write = Command(SET, key, (sealed, b"KEEPTTL"), as_is)
            return bool(await self.db.run(commit("seal", [equals(key, stored)], [write])))
        write = Command(HSET, key, (field, sealed), as_is)
        return bool(await self.db.run(commit("seal", [field_equals(key, field, stored)], [write])))

    async def _upgrade(self, step: Step) -> bool:
        key = self._key(step.name)
        await self._keep_whole(step.name, step.code, replace=True)
        await self.db.run(key.get())
        return True

    async def _move(self, step: Step) -> bool:
        """Reading the successor moves what is in the older place."""
        assert step.other is not None
        successor = self._key(step.other)
        upgrades: tuple[Upgrade, ...] = successor._upgrades
        if not any(u.moved_from and self._name(u.moved_from(successor)) == step.name for u in upgrades):
            return False
        await self._keep_whole(step.name, step.code, replace=False)
        return await self.db.run(successor.get()) is not None

    async def _keep_whole(self, name: bytes, code: str, *, replace: bool) -> None:
        dump, ttl = await self.db.run(gather(Plain(DUMP, (name,), name), Plain(TTL, (name,), name)))
        if dump is not None:
            self.undo.keep(name, code, restoring(name, dump, ttl, replace=replace))

    def _name(self, key: Key) -> bytes:
        return self.db.context.name(key)

    def _key(self, name: bytes) -> Any:
        known = self.matcher.match(name)
        if known is None:
            raise ValueError("no template matches its name any more")
        return known.key(name)


def _masked(message: str, step: Step) -> str:
    """A message without the name it is about, with or without its prefix."""
    parts = step.name.split(b":")
    for start in range(len(parts)):
        message = message.replace(repr(b":".join(parts[start:])), f"a key of {step.template}")
    return message


def _missing(key: Any, field: bytes | None) -> Check:
    if field is None:
        return absent(key)
    return (
        field_equals(key, field, None) if key.redis_type == "hash" else has_member(key, field, present=False)
    )


def _on(key: Key, verb: bytes, *operands: bytes | int) -> Command[Any]:
    return Command(Operation("repair", verb, Effect.REPEATABLE), key, operands, as_is)
